"""Table and figure of the MovieLens experiment, on both scales, next to the paper's numbers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..protocol import Row
from .figures import COLOURS, new_figure, save
from .intervals import paired_interval
from .pages import markdown_table, picture
from .paper_numbers import MOVIELENS

__all__ = ["report", "to_paper_scale"]

FloatArray = NDArray[np.float64]

_MODELS = {"bias": "biases and thresholds only", "ordrec": "OrdRec"}
_RULES = {
    "argmax": "argmax",
    "micro": "consistent",
    "macro": "consistent, films of one class keep argmax",
    "link": "consistent + link",
}
_AVERAGES = {
    "micro": "micro",
    "macro": "macro",
    "many": "macro over films with 20 or more test ratings",
    "users": "macro over users",
}


def to_paper_scale(values: FloatArray) -> FloatArray:
    """Turn 1 - |i - j| / (K - 1) into 1 - |i - j| / K for K = 5.

    Examples
    --------
    >>> import numpy as np
    >>> from reproduction.reports.movielens import to_paper_scale
    >>> float(to_paper_scale(np.array(0.5)))
    0.6
    """
    return 1 - (1 - values) * 0.8


def report(rows: Sequence[Row], folder: Path) -> dict[str, str]:
    """Return tables by title, and draw the figure."""
    columns = {key: np.array([float(row[key]) for row in rows]) for key in rows[0] if key != "repetition"}
    return {
        "In short": _summary(columns),
        "Ordinal on the paper's scale, 1 - |i - j| / K": _table(columns, paper=True),
        "Ordinal on our scale, 1 - |i - j| / (K - 1)": _table(columns, paper=False),
        "Every repetition": picture(_figure(columns, folder), "OrdRec and consistent OrdRec in every repetition"),
    }


def _summary(columns: dict[str, FloatArray]) -> str:
    lines = [f"- {len(columns['ordrec_loss'])} repetitions of a 50/50 split of the ratings."]
    for average, (plain, consistent) in MOVIELENS.items():
        before = to_paper_scale(columns[f"ordrec_argmax_{average}"])
        after = to_paper_scale(columns[f"ordrec_micro_{average}"])
        mean, low, high = paired_interval(after - before, test_over_train=1.0)
        lines.append(
            f"- {average}: OrdRec {before.mean():.4f} (the paper {plain[0]:.4f}), C-OrdRec {after.mean():.4f} (the "
            f"paper {consistent[0]:.4f}); gain {mean:+.4f} [{low:+.4f}, {high:+.4f}] (the paper "
            f"{consistent[0] - plain[0]:+.4f}). Repetitions with a gain: {int(np.sum(after > before))}."
        )
    lines.append(
        "- Log loss of held-out ratings: "
        + ", ".join(f"{words} {columns[f'{model}_loss'].mean():.4f}" for model, words in _MODELS.items())
        + "."
    )
    return "\n".join(lines)


def _table(columns: dict[str, FloatArray], *, paper: bool) -> str:
    rows = []
    for model, words in _MODELS.items():
        for rule, name in _RULES.items():
            cells = []
            for average in _AVERAGES:
                values = columns[f"{model}_{rule}_{average}"]
                values = to_paper_scale(values) if paper else values
                cells.append(f"{values.mean():.4f} ± {values.std():.4f}")
            rows.append([words, name, *cells])
    if paper:
        for i, name in enumerate(("argmax", "consistent")):
            cells = [f"{MOVIELENS[a][i][0]:.4f} ± {MOVIELENS[a][i][1]:.4f}" for a in ("micro", "macro")]
            rows.append(["**the paper's OrdRec**", name, *cells, "-", "-"])
    return markdown_table(["model", "rule", *_AVERAGES.values()], rows)


def _figure(columns: dict[str, FloatArray], folder: Path) -> str:
    figure = new_figure(9, 4)
    axes = figure.subplots(1, 2, sharey=True)
    for ax, average in zip(axes, ("micro", "macro"), strict=True):
        for k, rule in enumerate(("argmax", "micro")):
            values = to_paper_scale(columns[f"ordrec_{rule}_{average}"])
            words = ("OrdRec", "C-OrdRec")[k]
            ax.plot(np.arange(1, len(values) + 1), values, "o-", ms=3, lw=0.8, color=COLOURS[k], label=words)
            ax.axhline(MOVIELENS[average][k][0], color=COLOURS[k], ls="--", lw=1, label=f"{words}, the paper")
        ax.set_title(f"{average}-average")
        ax.set_xlabel("repetition")
        ax.locator_params(axis="x", integer=True)
        ax.grid(alpha=0.3)
    axes[0].set_ylabel("1 - |i - j| / K")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=8, frameon=False)
    return save(figure, folder, "movielens")
