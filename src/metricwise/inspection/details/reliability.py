"""Observed frequencies of predicted probabilities, before and after the link."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core.probabilities import Probabilities
from ...oracles.problem import InMemory
from ...rules.calibration import TemperatureScaling

__all__ = ["Bins", "Reliability", "calibration_bins", "count_reliability"]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Bins:
    """Rows binned by their predicted probability.

    Parameters
    ----------
    predicted, observed, weight : ndarray of shape (B,)
        Mean predicted probability, observed frequency, and weight of the rows of each non-empty bin.

    See Also
    --------
    calibration_bins : Computes the bins.

    Examples
    --------
    >>> from metricwise.inspection.details import calibration_bins
    >>> bins = calibration_bins([0.1, 0.2, 0.7, 0.9], [0, 1, 1, 1], n_bins=2)
    >>> round(bins.error, 3)
    0.275
    """

    predicted: FloatArray
    observed: FloatArray
    weight: FloatArray

    @property
    def error(self) -> float:
        """Mean distance between predicted and observed (the expected calibration error)."""
        return float(np.abs(self.predicted - self.observed) @ self.weight / self.weight.sum())


@dataclass(frozen=True, eq=False)
class Reliability:
    """Predicted probabilities against observed frequencies, before and after the link.

    Parameters
    ----------
    before : Bins
        Bins of the raw probabilities: of class 1 for binary outputs, otherwise of every class against the rest, pooled.
        Of logits and scores, the probabilities by the map whose most probable class is argmax.
    after : Bins or None
        Bins of the probabilities after the link; None if the rule has no link that changes them.
    sampled : int or None
        Number of rows that were counted, if they are a sample.
    given : str, default="as given"
        Where the probabilities before the link come from.

    See Also
    --------
    metricwise.displays.ReliabilityDisplay : Draw the reliability diagram.

    Examples
    --------
    >>> import metricwise as mw
    >>> solution = mw.optimize([0.1, 0.3, 0.4, 0.8], [0, 0, 1, 1], "f1",
    ...     strategy=mw.Strategy(confusion="labels", recalibrate=False))
    >>> round(solution.details.reliability.before.error, 2)
    0.3
    """

    before: Bins
    after: Bins | None
    sampled: int | None = None
    given: str = "as given"


def calibration_bins(
    p: ArrayLike,
    happened: ArrayLike,
    sample_weight: ArrayLike | None = None,
    *,
    n_bins: int = 10,
    strategy: Literal["quantile", "uniform"] = "quantile",
) -> Bins:
    """Sort rows into bins by their probability.

    Parameters
    ----------
    p : array-like of shape (N,)
        Predicted probabilities.
    happened : array-like of shape (N,)
        Whether the event occurred, 0 or 1.
    sample_weight : array-like of shape (N,), optional
        Sample weights.
    n_bins : int, default=10
        Number of bins.
    strategy : {"quantile", "uniform"}, default="quantile"
        Whether bins have equal numbers of rows or equal widths, as in :func:`sklearn.calibration.calibration_curve`.

    Returns
    -------
    Bins

    See Also
    --------
    metricwise.displays.ReliabilityDisplay : Draw the bins.

    Examples
    --------
    >>> from metricwise.inspection.details.reliability import calibration_bins
    >>> bins = calibration_bins([0.1, 0.2, 0.7, 0.9], [0, 1, 1, 1], n_bins=2)
    >>> bins.predicted.round(2).tolist(), bins.observed.tolist()
    ([0.15, 0.8], [0.5, 1.0])
    """
    p, happened = np.asarray(p, dtype=np.float64), np.asarray(happened, dtype=np.float64)
    weight = np.ones(len(p)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    share = np.linspace(0.0, 1.0, n_bins + 1)
    edges = share if strategy == "uniform" else np.quantile(p, share)
    where = np.searchsorted(edges[1:-1], p)
    sums = (weight, weight * p, weight * happened)
    total, predicted, observed = np.array([np.bincount(where, values, n_bins) for values in sums])
    filled = total > 0
    return Bins(predicted[filled] / total[filled], observed[filled] / total[filled], total[filled])


def count_reliability(problem: InMemory, link: TemperatureScaling | None) -> Reliability:
    """Bin the probabilities of labelled rows in memory, before and after a link."""
    rows, row_input = problem.source.rows, problem.schema.input
    before = calibration_bins(*_events(rows, rows.proba))
    after = None
    if link is not None and not _is_applied(link, rows.proba):
        after = calibration_bins(*_events(rows, link.view(rows.proba).recalibrated()))
    return Reliability(before, after, given=f"from the {row_input.plural}" if row_input.is_logits else "as given")


def _is_applied(link: TemperatureScaling, proba: Probabilities) -> bool:
    """Whether logits are behind a map already."""
    return proba.of_logits and proba.link is not None and link == TemperatureScaling.of_arrays(proba.link)


def _events(rows: Any, proba: Any) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return probability, occurrence and weight of every class of every labelled output; of class 1 if it is binary."""
    weights = np.ones(rows.n_rows) if rows.weight is None else rows.weight
    events = []
    for m, k in enumerate(proba.n_classes.tolist()):
        eta = np.asarray(proba.output(m)[:, 0], dtype=np.float64)
        codes = rows.codes[:, m]
        labelled = codes >= 0
        for j in [1] if k == 2 else range(k):
            predicted = eta if eta.ndim == 1 else eta[:, j]
            events.append((predicted[labelled], (codes == j)[labelled].astype(np.float64), weights[labelled]))
    predicted, occurred, weight = (np.concatenate(column) for column in zip(*events, strict=True))
    return predicted, occurred, weight
