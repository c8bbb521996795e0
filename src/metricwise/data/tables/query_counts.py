"""Decisions counted within a database, as SQL.

One statement counts several losses: every row is decided by each, and rows are grouped by label and decision. Scores
are those of the kernels: products and comparisons in double precision. Must not know connections.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import shown
from ...core.losses import Loss

__all__ = ["CountStatement", "CountedColumns", "quoted"]

# Of one statement; more are counted as fast by reading the rows. Tuned on PostgreSQL 15, ten classes, 10^6 rows.
_MAX_LOSSES = 2


@dataclass(frozen=True)
class CountedColumns:
    """Columns of one output: probabilities in the order of the K classes, label and weight."""

    proba: Sequence[str]
    label: str | None
    weight: str | None


@dataclass(frozen=True)
class CountStatement:
    """A statement that counts losses, and the names of what it selects.

    A row of its result belongs to one loss: `decisions` has a column for each, NULL for the other losses. `sums` are
    the weight of a label, or expected weights of all K classes.
    """

    text: str
    label: str | None
    decisions: tuple[str, ...]
    sums: tuple[str, ...]

    @classmethod
    def of(cls, rows: str, columns: CountedColumns, losses: Sequence[Loss], expected: bool) -> CountStatement | None:
        """Return the statement for rows, a subquery; None where it would not be faster than reading them.

        That is so with more than weights of classes: offsets, full losses. `OFFSET 0` keeps PostgreSQL from computing
        the columns of the subquery wherever they are used.
        """
        if len(losses) > _MAX_LOSSES or any(not loss.is_diagonal or np.any(loss.offset) for loss in losses):
            return None
        eta = [_double(name) for name in columns.proba]
        decisions = {f"d{r}": _decision(loss, eta) for r, loss in enumerate(losses)}
        weight = None if columns.weight is None else _double(columns.weight)
        if expected:
            counted = {f"n{j}": share if weight is None else f"{weight} * {share}" for j, share in enumerate(eta)}
        else:
            counted = {"n0": weight or "1"}
        label = None if expected else columns.label
        labels = {} if label is None else {"y": quoted(label)}
        observed = "" if columns.label is None else f" WHERE {quoted(columns.label)} IS NOT NULL"
        named = ", ".join(f"{text} AS {name}" for name, text in {**labels, **decisions, **counted}.items())
        sums = ", ".join(
            "COUNT(*) AS n0" if text == "1" else f"SUM({name}) AS {name}" for name, text in counted.items()
        )
        sets = ", ".join(f"({', '.join([*labels, name])})" for name in decisions)
        text = (
            f"SELECT {', '.join([*labels, *decisions])}, {sums} FROM (SELECT {named} FROM {rows}{observed} OFFSET 0) "
            f"metricwise_decided GROUP BY GROUPING SETS ({sets})"
        )
        return cls(text, "y" if labels else None, tuple(decisions), tuple(counted))

    @property
    def names(self) -> list[str]:
        """Names of the columns that are selected."""
        return [*([] if self.label is None else [self.label]), *self.decisions, *self.sums]

    def read(self, batches: Iterable[Any], classes: Sequence[Any]) -> NDArray[np.float64]:
        """Return sums (R, K, K) by loss, class and decision."""
        out = np.zeros((len(self.decisions), len(classes), len(classes)))
        place = {label: code for code, label in enumerate(classes)}
        for row in (row for batch in batches for row in batch.to_pylist()):
            r = next(r for r, name in enumerate(self.decisions) if row[name] is not None)
            label = None if self.label is None else row[self.label]
            if label != label:  # NaN, which is a missing label
                continue
            if label is not None and label not in place:
                raise RuntimeError(
                    f"the query: the labels must be the same in every pass, got the new one {shown(label)}."
                )
            true = slice(None) if label is None else place[label]
            sums = [float(row[name]) for name in self.sums]
            out[r, true, int(row[self.decisions[r]])] = sums if self.label is None else sums[0]
        return out


def quoted(name: str) -> str:
    """Return the name of a column as SQL has it."""
    return '"' + name.replace('"', '""') + '"'


def _double(name: str) -> str:
    return f"CAST({quoted(name)} AS DOUBLE PRECISION)"


def _decision(loss: Loss, eta: Sequence[str]) -> str:
    """Return the code of the decision with the largest worth, minus the score, the first of several."""
    assert loss.diagonal is not None
    factors = [f"CAST('{-float(d)!r}' AS DOUBLE PRECISION) * " if d != -1 else "" for d in loss.diagonal[0]]
    worths = [factor + share for factor, share in zip(factors, eta, strict=False)]  # losses may be padded
    cases = " ".join(f"WHEN {worth} THEN {j}" for j, worth in enumerate(worths[:-1]))
    return f"CASE GREATEST({', '.join(worths)}) {cases} ELSE {len(worths) - 1} END"
