"""Metrics that need more than a name: the table of costs of --cost. Must not know rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.errors import InvalidParameter, shown
from ..data.columns import few, match_label
from ..data.tables.reading import Arrays, open_file
from ..metrics.linear import Cost
from ..metrics.registry import needed_parameter

__all__ = ["CostTable", "read_costs"]


class CostTable:
    """Turns names of metrics into metrics, "cost" into that of a table.

    Parameters
    ----------
    metric : Cost or None
        None if there is no table.
    """

    def __init__(self, metric: Cost | None) -> None:
        self._metric, self._used = metric, False

    def metric(self, name: Any) -> Any:
        """Return the metric of a name, or a dict of names; names that need nothing stay as they are."""
        if isinstance(name, dict):
            return {output: self.metric(output_metric) for output, output_metric in name.items()}
        if not isinstance(name, str) or needed_parameter(name) is None:
            return name
        if name == Cost.declared.name and self._metric is not None:
            self._used = True
            return self._metric
        raise _refusal(name)

    def metrics(self, names: Sequence[Any] | None) -> list[Any] | None:
        """Return the metrics of some names, None if there are none."""
        return None if names is None else [self.metric(name) for name in names]

    def check_used(self) -> None:
        """Refuse a table that no metric is about."""
        if self._metric is not None and not self._used:
            raise InvalidParameter(
                "cost", problem="--cost is only for the metric cost", remedy="pass --metric cost, or leave it out"
            )


def _refusal(name: str) -> ValueError:
    """Return the error for a metric that says nothing without a parameter."""
    if name == Cost.declared.name:
        return InvalidParameter(
            "metric",
            problem=(
                "--metric cost needs --cost FILE, a table with a row for each true class and a column for "
                "each predicted class: the first column and the header have their names"
            ),
        )
    remedy = "; use f2, f0.5 or another number after the f" if needed_parameter(name) == "beta" else ""
    return InvalidParameter(
        "metric",
        problem=f"--metric: {name!r} needs {needed_parameter(name)}, which can only be given in Python{remedy}",
    )


def read_costs(path: str | None, labels: Sequence[Any], separator: str | None = None) -> CostTable:
    """Read a table of costs.

    Parameters
    ----------
    path : str or None
        True classes in the first column, predicted classes in the header; an additional column has the cost of
        abstaining.
    labels : sequence
        Classes that are known, of which texts are read as labels.
    separator : str, optional
        Of CSV.

    Returns
    -------
    CostTable
    """
    if path is None:
        return CostTable(None)
    table = open_file(path, separator if path.lower().endswith(".csv") else None)
    if isinstance(table, Arrays):
        raise InvalidParameter(
            "cost", problem="--cost must be a table with names of classes, such as CSV, got arrays", owner=path
        )
    first, *predicted = table.names
    texts = [str(text) for text in table.read([first]).column(0).to_pylist()]
    true = [match_label(text, labels) for text in texts]
    columns = {match_label(name, labels): name for name in predicted}
    _check_names(path, true, list(columns), labels)
    order = [*true, *(label for label in columns if label not in true)]
    numbers = table.numbers([columns[label] for label in order])
    costs = np.column_stack([np.asarray(column, dtype=np.float64) for column in numbers.columns])
    return CostTable(Cost(costs, classes=true))


def _check_names(path: str, true: list[Any], predicted: list[Any], labels: Sequence[Any]) -> None:
    """Refuse a table that lacks a class, names one twice, or has columns that are none."""
    twice = [label for at, label in enumerate(true) if label in true[:at]]
    if twice:
        raise InvalidParameter(
            "", problem=f"every class must have one row of costs, got {shown(twice[0])} twice", owner=path
        )
    for label in [*labels, *true]:
        for kind, names in (("row", true), ("column", predicted)):
            if label not in names:
                raise InvalidParameter(
                    "",
                    problem=f"there is no {kind} of costs for the class {shown(label)}",
                    remedy=f"there are {kind}s for {few(names)}",
                    owner=path,
                )
    further = [label for label in predicted if label not in true]
    if len(further) > 1:
        raise InvalidParameter(
            "classes",
            problem=(
                f"the columns must be the classes of the rows, {few(true)}, and at most one more with the "
                f"cost of abstaining, got also {few(further)}"
            ),
            owner=path,
        )
