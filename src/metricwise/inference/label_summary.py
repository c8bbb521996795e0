"""Counts and values of each of very many labels, for a rule and its baseline, and their means by frequency.

Must not know rows, rules or how anything is shown.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InvalidParameter
from ..metrics.label_aims import LabelAim, LabelCounts, MetricAim

__all__ = ["LabelGroup", "LabelSummary", "summarize_labels"]

FloatArray = NDArray[np.float64]

# Labels by their true rows: the name of a group, and the largest number of true rows in it.
_FREQUENCIES = (
    ("none", 0.0),
    ("up to 5", 5.0),
    ("6 to 20", 20.0),
    ("21 to 100", 100.0),
    ("more than 100", np.inf),
)


class LabelGroup(NamedTuple):
    """Labels of similar frequency: their number, true rows, labels that are predicted, and mean values."""

    name: str
    n_labels: int
    true: float
    n_predicted: int
    value: float
    baseline: float


@dataclass(frozen=True, eq=False)
class LabelSummary:
    """Counts and values of each label on the rows that a rule was fitted to, for the rule and for the baseline.

    The baseline predicts the labels with a probability above 1/2, within the same number of labels per row. Counts are
    weights of rows: of true labels, or their expectation if there are no labels.

    Parameters
    ----------
    metric : str
        Name of the metric that is the value of a label: the one that was maximised, or "recall" for precision at k,
        where labels have no value of their own, and "hit" for label coverage.
    true : ndarray of shape (M,)
        True rows of each label, also those that do not store it.
    predicted, hits, value : ndarray of shape (M,)
        Of the rule: rows that a label is predicted for, those of them where it is true, and the metric of the label.
    baseline_predicted, baseline_hits, baseline : ndarray of shape (M,)
        Of the baseline.
    total : float
        Weight of all rows.
    n_entries : int
        Number of stored entries.
    unstored : float
        Weight of the true labels that are not stored, which no rule without a least number of labels finds.

    See Also
    --------
    metricwise.Solution : Has it as `by_label`, for rules of very many labels.
    metricwise.displays.LabelGainsDisplay : Draw the values by frequency.

    Examples
    --------
    >>> import metricwise as mw
    >>> from scipy.sparse import csr_array
    >>> proba = csr_array([[0.9, 0.2, 0.0], [0.4, 0.0, 0.6], [0.3, 0.4, 0.0]])
    >>> y = csr_array([[1, 0, 0], [1, 0, 1], [0, 1, 0]])
    >>> solution = mw.optimize(proba, y, "f1", average="macro",
    ...     strategy=mw.Strategy(confusion="labels", recalibrate=False))
    >>> solution.by_label.true, solution.by_label.baseline_hits
    (array([2., 1., 1.]), array([1., 0., 1.]))
    """

    metric: str
    true: FloatArray
    predicted: FloatArray
    hits: FloatArray
    value: FloatArray
    baseline_predicted: FloatArray
    baseline_hits: FloatArray
    baseline: FloatArray
    total: float
    n_entries: int
    unstored: float

    def __post_init__(self) -> None:
        for name in ("predicted", "hits", "value", "baseline_predicted", "baseline_hits", "baseline"):
            if getattr(self, name).shape != self.true.shape or self.true.ndim != 1:
                raise InvalidParameter(
                    name, f"have one number for each of {self.true.size} labels", f"shape {getattr(self, name).shape}"
                )

    @property
    def n_labels(self) -> int:
        """M."""
        return len(self.true)

    @property
    def never_predicted(self) -> NDArray[np.intp]:
        """Labels with true rows that the rule predicts for none, the most frequent first."""
        labels = np.flatnonzero((self.predicted <= 0) & (self.true > 0))
        return labels[np.argsort(-self.true[labels], kind="stable")]

    def by_frequency(self) -> list[LabelGroup]:
        """Return the mean values of labels by their true rows, from the rarest to the most frequent.

        Returns
        -------
        list of LabelGroup
            Tuples `name`, `n_labels`, `true` (their true rows), `n_predicted` (labels that the rule predicts at least
            once), and the means of `value` and `baseline`. Groups without labels are left out.
        """
        groups, least = [], -np.inf
        for name, most in _FREQUENCIES:
            of_group = (self.true > least) & (self.true <= most)
            least = most
            if of_group.any():
                true, value, baseline = (part[of_group] for part in (self.true, self.value, self.baseline))
                n_predicted = int(np.count_nonzero(self.predicted[of_group] > 0))
                means = float(value.mean()), float(baseline.mean())
                groups.append(LabelGroup(name, len(true), float(true.sum()), n_predicted, *means))
        return groups


def summarize_labels(
    aim: LabelAim, counts: LabelCounts, baseline: LabelCounts, n_entries: int, unstored: float
) -> LabelSummary:
    """Return the values of each label for counts of a rule and of the baseline, on the same rows."""
    name, values = _values(aim, counts)
    return LabelSummary(
        metric=name,
        true=counts.true,
        predicted=counts.predicted,
        hits=counts.hits,
        value=values,
        baseline_predicted=baseline.predicted,
        baseline_hits=baseline.hits,
        baseline=_values(aim, baseline)[1],
        total=counts.total,
        n_entries=n_entries,
        unstored=unstored,
    )


def _values(aim: LabelAim, counts: LabelCounts) -> tuple[str, FloatArray]:
    """Return the value of each label, and what it is."""
    values = aim.by_label(counts)
    if values is None:
        return "recall", np.divide(counts.hits, counts.true, out=np.zeros_like(counts.hits), where=counts.true > 0)
    return aim.metric.name if isinstance(aim, MetricAim) else "hit", values
