"""Which configuration or round each criterion chooses, and what the choice is worth on held-out rows."""

from __future__ import annotations

import pandas as pd

from .values import CRITERIA

__all__ = ["CELL", "chosen", "stopped"]

CELL = ["set", "model", "split", "metric"]
SIZES = ["n_train", "n_held_out", "n_classes"]


def chosen(configurations: pd.DataFrame) -> pd.DataFrame:
    """One line per search: the true value of what each criterion chooses, of the best one, and of their mean.

    Of equal configurations the first is chosen, as `GridSearchCV` does.
    """
    lines = []
    for key, rows in configurations.groupby(CELL, sort=False):
        line = dict(zip(CELL, key, strict=True)) | rows[SIZES].iloc[0].to_dict()
        line |= {name: rows["truth"].loc[rows[name].idxmax()] for name in CRITERIA}
        lines.append(line | {"oracle": rows["truth"].max(), "mean": rows["truth"].mean()})
    return pd.DataFrame(lines)


def stopped(rounds: pd.DataFrame) -> pd.DataFrame:
    """One line per training: the true value at the round where each criterion stops, and at the last round."""
    return rounds.drop(columns=["model"])
