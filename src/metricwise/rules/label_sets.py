"""The rule for averages over rows: each row gets the set of labels with the highest expected F-beta or Jaccard.

Must not know metrics or solvers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from .. import kernels
from ..core.errors import InvalidParameter, InvalidType, entry_point, shown
from ..core.label_rows import LabelsPerRow
from ..core.schema import Schema
from .base import same_classes
from .codec import JsonField, read_bool
from .label_base import (
    BIAS,
    LABELS_PER_ROW,
    TEMPERATURE,
    LabelRuleBase,
    numbers_field,
    read_count,
    read_number,
    same_numbers,
)
from .label_words import label_set_lines
from .metadata import NO_METADATA, RuleMetadata
from .writer import RuleWriter

__all__ = ["LabelSetRule"]

FloatArray = NDArray[np.float64]
LongArray = NDArray[np.int64]
T = TypeVar("T")

_MAX_BETA2 = 1e12  # far beyond any beta of use: decisions are those of recall
_MAX_MISSING = 1e6  # true labels of a row that are not stored

_BETA2 = JsonField(
    "beta2",
    {
        "description": "The labels of a row are taken as independent, and as many of the most probable ones, the first "
        "of equals first, are predicted as have the highest expected F-beta, (1 + beta2) * hits / (beta2 * true + "
        "predicted), or Jaccard; of equally good numbers the smallest.",
        "type": "number",
        "minimum": 0,
        "maximum": _MAX_BETA2,
    },
    read_number,
)
_JACCARD = JsonField("jaccard", {"description": "Whether it is Jaccard instead.", "type": "boolean"}, read_bool)
_ZERO_DIVISION = JsonField(
    "zero_division",
    {
        "description": "Value of a row with no true and no predicted labels.",
        "type": "number",
        "minimum": 0,
        "maximum": 1,
    },
    read_number,
)
_MISSING = JsonField(
    "missing",
    {
        "description": "Expected number of true labels of a row that are not stored, taken as Poisson.",
        "type": "number",
        "minimum": 0,
        "maximum": _MAX_MISSING,
    },
    read_number,
)
_FACTOR = numbers_field(
    "factor",
    "What calibrated probabilities are multiplied by to be those of each label; results are at most 1.",
    optional=True,
)


@dataclass(frozen=True, eq=False, repr=False)
class LabelSetRule(LabelRuleBase):
    """Rule that predicts the set of labels with the highest expected F-beta or Jaccard of each row.

    It is for metrics that are averaged over rows, such as ``f1_samples``. The labels of a row are taken as independent:
    the best set of j labels then holds the j most probable ones, and j is the number with the highest expected value.
    No threshold has the same effect, because j depends on all probabilities of the row. Of equally good numbers the
    smallest is taken, of equally probable labels the first.

    Two rules are equal if they have the same numbers; `metadata` is not compared.

    Parameters
    ----------
    n_labels : int
        M.
    beta2 : float, default=1.0
        Square of beta: 1 for F1. Not used for Jaccard.
    jaccard : bool, default=False
        Whether it is the Jaccard index instead of F-beta.
    zero_division : float, default=0.0
        Value of a row with no true and no predicted labels, from 0 to 1.
    missing : float, default=0.0
        Expected number of true labels of a row that are not stored; they are misses of any set.
    labels_per_row : int or (int, int), optional
        The largest number of labels of a row, or the least and the largest.
    temperature, bias : float, optional
        Recalibration of all labels, as in LabelRule.
    factor : array-like of shape (M,), optional
        What recalibrated probabilities are multiplied by to be those of each label.
    input : {"probabilities", "logits", "scores"}, default="probabilities"
        What the numbers of rows are. Whatever is not stored has probability 0.
    classes : (0, 1) or (False, True), or tuple of M such pairs, default=(0, 1)
        The classes of every label.
    output_names : tuple of str, optional
        Names of the labels, to which the columns of a data frame are matched.
    metadata : RuleMetadata, or mapping
        As in WeightedRule.

    See Also
    --------
    LabelRule : Decides each label by a scale and an offset.
    metricwise.load_rule : Load a rule.

    Examples
    --------
    >>> import metricwise as mw
    >>> rule = mw.LabelSetRule(n_labels=3)
    >>> rule.predict([[0.9, 0.4, 0.1], [0.5, 0.4, 0.4], [0.1, 0.1, 0.0]])
    array([[1, 0, 0],
           [1, 1, 1],
           [1, 1, 0]])
    >>> rule = mw.LabelSetRule(n_labels=3, zero_division=1.0, labels_per_row=2)
    >>> rule.predict([[0.9, 0.4, 0.1], [0.5, 0.4, 0.4], [0.1, 0.1, 0.0]])
    array([[1, 0, 0],
           [1, 1, 0],
           [0, 0, 0]])
    """

    n_labels: int
    beta2: float = 1.0
    jaccard: bool = False
    zero_division: float = 0.0
    missing: float = 0.0
    labels_per_row: LabelsPerRow | None = None
    temperature: float | None = None
    bias: float | None = None
    factor: FloatArray | None = None
    input: str = "probabilities"
    classes: tuple[NDArray[Any], ...] = field(default=(0, 1), repr=False)  # type: ignore[arg-type]  # read later
    output_names: tuple[str, ...] | None = field(default=None, repr=False)
    metadata: RuleMetadata = NO_METADATA
    schema: Schema = field(init=False, repr=False)
    kind: ClassVar[str] = "label_sets"
    summary: ClassVar[str] = "Predict the set of labels with the highest expected F-beta or Jaccard of each row."
    fields: ClassVar = (
        _BETA2,
        _JACCARD,
        _ZERO_DIVISION,
        _MISSING,
        LABELS_PER_ROW,
        TEMPERATURE,
        BIAS,
        _FACTOR,
    )

    @entry_point("{class}")
    def __post_init__(self) -> None:
        self._settle(read_count(self.n_labels, "n_labels"))
        if not isinstance(self.jaccard, bool):
            raise InvalidType("jaccard", "be True or False", shown(self.jaccard))
        for name, most in (("beta2", _MAX_BETA2), ("zero_division", 1.0), ("missing", _MAX_MISSING)):
            value = getattr(self, name)
            number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
            if not (number and 0 <= value <= most):
                raise InvalidParameter(name, f"be a number from 0 to {most:g}", shown(value))
            object.__setattr__(self, name, float(value))

    def choose(self, block: kernels.LabelBlock) -> tuple[LongArray, NDArray[Any]]:
        """Return the predicted labels of rows of calibrated probabilities."""
        values, indices, indptr, n_labels, _, rows = block
        metric = self.beta2, self.jaccard, self.zero_division, self.missing
        sizes = kernels.label_set_sizes(values, indices, indptr, rows, *metric, *self.budget, self.factor)
        return kernels.label_set_choose(values, indices, indptr, n_labels, rows, sizes, self.factor)

    @entry_point()
    def predict_together(self, proba: Any, *, pos_label: Any = None) -> Any:
        """Predict the labels of rows that are at hand as a batch: as `predict`, because rows are judged one by one.

        Parameters
        ----------
        proba, pos_label
            As in `predict`.

        Returns
        -------
        csr_array or csr_matrix of shape (N, M), int8; or ndarray of shape (N, M)
        """
        return self.predict(proba, pos_label=pos_label)

    def decision_lines(self, metadata: RuleMetadata) -> list[str]:
        """Say what the rule decides."""
        return label_set_lines(self)

    def accept(self, writer: RuleWriter[T]) -> T:
        """Return what a writer writes of the rule."""
        return writer.label_sets(self)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LabelSetRule):
            return NotImplemented
        metric = ("n_labels", "beta2", "jaccard", "zero_division", "missing")
        names = (*metric, "labels_per_row", "temperature", "bias", "input", "output_names")
        return (
            all(getattr(self, name) == getattr(other, name) for name in names)
            and same_numbers(self.factor, other.factor)
            and same_classes(self.classes, other.classes)
        )

    __hash__ = None  # type: ignore[assignment]  # holds arrays, compares by content
