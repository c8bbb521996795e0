"""Results as numbers: estimates for new rows, recorded metrics, constraints, candidates, and those of ``evaluate``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Candidate", "Comparison", "ConstraintResult", "Estimate", "Evaluation", "Gain", "Recorded"]


@dataclass(frozen=True)
class Estimate:
    """Estimate of a quantity on new rows, with a 95 % interval.

    Parameters
    ----------
    estimate : float
        The estimate.
    low, high : float
        Ends of the 95 % interval.

    See Also
    --------
    metricwise.evaluate : Returns estimates of metrics.
    Gain : Estimate of the gain over argmax.

    Examples
    --------
    >>> from metricwise.inference import Estimate
    >>> Estimate(0.6, low=0.55, high=0.65).estimate
    0.6
    """

    estimate: float
    low: float
    high: float


@dataclass(frozen=True)
class Gain(Estimate):
    """Estimate of the gain of a rule over argmax on new rows, corrected for selection bias.

    Parameters
    ----------
    estimate : float
        Mean difference in the metric.
    low, high : float
        Ends of the 95 % interval.

    See Also
    --------
    metricwise.Solution : Has the gain of its rule.

    Examples
    --------
    >>> from metricwise.inference import Gain
    >>> gain = Gain(0.02, low=-0.01, high=0.05)
    >>> gain.low > 0  # not a clear gain
    False
    """


@dataclass(frozen=True)
class Recorded:
    """A metric that was recorded in addition to the one that is maximised.

    Parameters
    ----------
    value : float
        Value for the rule, counted with the labels, or in expectation without labels.
    baseline : float
        Value for argmax, counted in the same way.

    See Also
    --------
    metricwise.optimize : Takes metrics to record.

    Examples
    --------
    >>> import metricwise as mw
    >>> solution = mw.optimize([0.1, 0.3, 0.4, 0.8], [0, 0, 1, 1], "f1", record=["recall"],
    ...     strategy=mw.Strategy(confusion="labels", recalibrate=False))
    >>> solution.recorded["recall"].value, solution.recorded["recall"].baseline
    (1.0, 0.5)
    """

    value: float
    baseline: float


@dataclass(frozen=True)
class ConstraintResult:
    """A constraint, and how the rule satisfies it.

    Parameters
    ----------
    name : str
        The constraint as it was written.
    low, high : float
        The bounds; infinite if there is none.
    value : float
        Value of the bounded metric for the rule, counted with the labels, or in expectation without labels.
    margin : float
        By how much the bound was tightened on the given rows, so that the constraint also holds on new rows: the rule
        keeps at least this distance from the bound. Of two bounds, or of those in several groups, the margin of the one
        that `value` is nearest to.
    confidence : float or None
        Approximate confidence with which all constraints together hold in the population that the rows are drawn from:
        the requested one, a lower one if there are too few labels, or None if nothing can be said about new rows.
    on_new_rows : Estimate or None
        Estimate of the metric on new rows, with a 95 % interval; None without labels.
    price : float or None
        Gain in the optimised value per unit by which the bound is loosened (its shadow price); 0 if the constraint does
        not bind, None if the solver does not provide it.
    guarantee : {"exact"} or None
        "exact" if the confidence holds for any distribution of independent rows; None if it is approximate.

    See Also
    --------
    metricwise.optimize : Takes constraints as `subject_to`.
    metricwise.Solution : Has a result for each constraint.

    Examples
    --------
    >>> import numpy as np
    >>> import metricwise as mw
    >>> rng = np.random.default_rng(0)
    >>> p = rng.beta(1, 3, 2000)
    >>> y = (rng.random(2000) < p).astype(int)
    >>> solution = mw.optimize(p, y, "recall", subject_to="precision >= 0.6")
    >>> (result,) = solution.constraints
    >>> result.value >= 0.6, result.margin > 0
    (True, True)
    """

    name: str
    low: float
    high: float
    value: float
    margin: float = 0.0
    confidence: float | None = None
    on_new_rows: Estimate | None = None
    price: float | None = None
    guarantee: str | None = None


@dataclass(frozen=True)
class Candidate:
    """A candidate way to fit a rule, and its estimated gain.

    Parameters
    ----------
    recipe : str
        What is counted, and whether the probabilities are recalibrated first.
    value : float
        The metric on rows that the rules were not fitted to.
    gain : float
        Difference between this value and that of argmax.
    std_error : float
        Standard error of the gain.
    recorded : dict of str to float
        The recorded metrics on the same rows.

    See Also
    --------
    metricwise.Solution : Has the candidates that were compared.

    Examples
    --------
    >>> from metricwise.inference import Candidate
    >>> Candidate("recalibrated + labels", value=0.61, gain=0.02, std_error=0.01).gain
    0.02
    """

    recipe: str
    value: float
    gain: float
    std_error: float
    recorded: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Comparison:
    """A metric of a rule and of its baseline, on the same rows.

    Parameters
    ----------
    value : Estimate
        The metric of the rule on the given rows, with a 95 % interval for the population that they are drawn from.
    baseline : Estimate
        The same for the baseline: argmax, or another rule.
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
        return {name: _numbers(comparison) for name, comparison in self.comparisons.items()}

    def __repr__(self) -> str:
        head = ["metric", self.title, self.against, "difference"]
        rows = [head, *([name, *_cells(comparison)] for name, comparison in self.comparisons.items())]
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
    estimates = [(comparison.value, ".4f"), (comparison.baseline, ".4f"), (comparison.difference, "+.4f")]
    # Adding 0 turns -0 into 0.
    return [f"{e.estimate + 0.0:{form}} [{e.low + 0.0:{form}}, {e.high + 0.0:{form}}]" for e, form in estimates]
