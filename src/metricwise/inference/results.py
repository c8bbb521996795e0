"""Results of ``evaluate``: comparisons of a rule with its baseline, as numbers and as a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..solvers import Estimate

__all__ = ["Comparison", "Evaluation"]


@dataclass(frozen=True)
class Comparison:
    """A metric of a rule and of its baseline, on the same rows.

    Parameters
    ----------
    value : Estimate
        The metric of the rule on the given rows, with a 95 % interval for the population that they are drawn from.
    baseline : Estimate
        The same for the baseline: plain argmax, or another rule.
    difference : Estimate
        ``value - baseline``. Its interval is that of the paired difference, which is narrower than the other two would
        suggest because both are counted on the same rows.

    See Also
    --------
    metricwise.evaluate : Returns one for every metric.

    Examples
    --------
    >>> import metricwise as mw
    >>> rule = mw.WeightedRule.from_thresholds(0.3)
    >>> comparison = mw.evaluate(rule, [0.1, 0.2, 0.4, 0.6, 0.8], [0, 0, 1, 0, 1], "recall")["recall"]
    >>> comparison.value.estimate, comparison.baseline.estimate
    (1.0, 0.5)
    """

    value: Estimate
    baseline: Estimate
    difference: Estimate


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation(Mapping[str, Comparison]):
    """Results of evaluating a rule: a mapping of metric names to comparisons, which prints as a table.

    Parameters
    ----------
    comparisons : dict of str to Comparison
        One comparison per metric, by name.
    n_rows : int
        Number of rows.
    against : str
        What the rule is compared with: "argmax", "other rule", or the name of the second of two models.
    by_group : dict of object to Evaluation
        The results on the rows of each sensitive group, by group name; empty if there are no groups.
    notes : tuple of str
        What should be known of the intervals: how far rows in time are taken to depend on one another, and whether
        that leaves any interval to be trusted.
    title : str, default="rule"
        What is evaluated: "rule", or the name of the first of two models.

    See Also
    --------
    metricwise.evaluate : Evaluates a rule.

    Examples
    --------
    >>> import metricwise as mw
    >>> rule = mw.WeightedRule.from_thresholds(0.3)
    >>> evaluation = mw.evaluate(rule, [0.1, 0.2, 0.4, 0.6, 0.8], [0, 0, 1, 0, 1], ["recall", "precision"])
    >>> evaluation["recall"].difference.estimate
    0.5
    >>> list(evaluation.to_dict()["precision"])[:3]
    ['value', 'low', 'high']
    """

    comparisons: dict[str, Comparison]
    n_rows: int
    against: str
    by_group: dict[Any, Evaluation] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    title: str = "rule"

    def __getitem__(self, name: str) -> Comparison:
        return self.comparisons[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.comparisons)

    def __len__(self) -> int:
        return len(self.comparisons)

    def to_dict(self) -> dict[str, dict[str, float]]:
        """Return a dict of numbers per metric, for ``pandas.DataFrame.from_dict(..., orient="index")``."""
        return {name: _numbers(one) for name, one in self.comparisons.items()}

    def __repr__(self) -> str:
        head = ["metric", self.title, self.against, "difference"]
        rows = [head, *([name, *_cells(one)] for name, one in self.comparisons.items())]
        widths = [max(len(row[c]) for row in rows) for c in range(len(head))]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        return "\n".join([f"{self.n_rows} rows, with 95 % intervals:", *lines, *self.notes])


def _numbers(comparison: Comparison) -> dict[str, float]:
    out: dict[str, float] = {}
    for name in ("value", "baseline", "difference"):
        estimate, prefix = getattr(comparison, name), "" if name == "value" else f"{name}_"
        out |= {name: estimate.estimate, f"{prefix}low": estimate.low, f"{prefix}high": estimate.high}
    return out


def _cells(comparison: Comparison) -> list[str]:
    plain = [(comparison.value, ".4f"), (comparison.baseline, ".4f"), (comparison.difference, "+.4f")]
    # Adding 0 turns -0 into 0.
    return [f"{one.estimate + 0.0:{form}} [{one.low + 0.0:{form}}, {one.high + 0.0:{form}}]" for one, form in plain]
