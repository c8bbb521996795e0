"""The rule for very many labels: each is predicted by its own scale and offset, at most so many for a row.

Must not know metrics or solvers.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from .. import kernels
from ..core.cached import cached_property
from ..core.errors import InvalidParameter, InvalidType, argument, entry_point, shown
from ..core.label_rows import LabelRows, LabelsPerRow, fill_labels
from ..core.labels import decode
from ..core.schema import Schema
from ..data.label_rows import is_sparse
from .base import same_classes
from .codec import JsonField, read_bool
from .label_base import (
    BIAS,
    LABELS_PER_ROW,
    TEMPERATURE,
    LabelRuleBase,
    fill_codes,
    numbers_field,
    positive_numbers,
    read_count,
    read_label_numbers,
    same_numbers,
)
from .label_batch import FORM, BatchForm, decide_together
from .label_words import label_lines
from .metadata import NO_METADATA, RuleMetadata
from .writer import RuleWriter

__all__ = ["LabelRule"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
LongArray = NDArray[np.int64]
T = TypeVar("T")

_SCALE = numbers_field(
    "scale",
    "The score of a label is scale * eta + offset in double precision, the product rounded before the sum; eta is 0 "
    "for a label that is not stored. Labels of positive score are predicted. With labels_per_row, all labels of a row "
    "are ranked by score, the first of equals first, and predicted from the top: as many as the least number, and "
    "further ones of positive score up to the largest.",
)
_OFFSET = numbers_field("offset", "See scale. Not positive without labels_per_row.")
_FACTOR = numbers_field(
    "factor",
    "What calibrated probabilities are multiplied by to be those of each label; scale includes it.",
    optional=True,
)
_LINEAR = JsonField("linear", {"description": "Whether the metric is a sum over rows.", "type": "boolean"}, read_bool)
_LABEL_WEIGHT = numbers_field("label_weight", "Weight of each label in what a batch is worth.", optional=True)


@dataclass(frozen=True, eq=False, repr=False)
class LabelRule(LabelRuleBase):
    """Rule for very many labels, which takes sparse probabilities and may limit the number of labels of a row.

    The score of a label is ``scale * probability + offset``. Without `labels_per_row`, labels of positive score are
    predicted. With ``labels_per_row=(low, high)``, the labels of a row are ranked by score, of equal ones the first
    label first: the first `low` are predicted, and further ones up to `high` if their score is positive. A label that
    is not stored in a sparse row has probability 0 and takes part with its offset alone.

    Two rules are equal if they have the same numbers; `metadata` is not compared.

    Parameters
    ----------
    scale, offset : array-like of shape (M,)
        Of each label. Offsets are not positive without `labels_per_row`.
    labels_per_row : int or (int, int), optional
        The largest number of labels of a row, or the least and the largest.
    temperature, bias : float, optional
        Recalibration of all labels: a probability p that is stored and not 0 becomes
        ``sigmoid(temperature * logit(p) + bias)``, a logit or score z ``sigmoid(temperature * z + bias)``. Scores need
        it; for logits, the default is a sigmoid.
    factor : array-like of shape (M,), optional
        What recalibrated probabilities are multiplied by to be those of each label. `predict` does not use it, because
        `scale` includes it; `predict_together` and `calibrated` do.
    input : {"probabilities", "logits", "scores"}, default="probabilities"
        What the numbers of rows are. Whatever is not stored has probability 0.
    classes : (0, 1) or (False, True), or tuple of M such pairs, default=(0, 1)
        The classes of every label.
    output_names : tuple of str, optional
        Names of the labels, to which the columns of a data frame are matched.
    form : mapping, optional
        What decisions about a batch are worth, for `predict_together`: `numerator` and `denominator`, each with the
        coefficients of hits, true, predicted and all rows of a label; `damped`, `coverage` and `pooled`.
    linear : bool, default=False
        Whether the metric is a sum over rows, so that `predict_together` is `predict`.
    label_weight : array-like of shape (M,), optional
        Weight of each label in what a batch is worth; 1 by default.
    metadata : RuleMetadata, or mapping
        As in WeightedRule.

    See Also
    --------
    LabelSetRule : Predicts the set of labels with the highest expected F1 or Jaccard of each row.
    WeightedRule : Rule for few outputs, of any classes.
    metricwise.load_rule : Load a rule.

    Examples
    --------
    >>> import numpy as np
    >>> import metricwise as mw
    >>> from scipy.sparse import csr_array
    >>> rule = mw.LabelRule(scale=[1, 2, 1, 1], offset=[-0.3, -0.3, -0.3, -0.1], labels_per_row=2)
    >>> proba = csr_array([[0.5, 0.3, 0.0, 0.2], [0.0, 0.1, 0.2, 0.0]])
    >>> rule.predict(proba).toarray()
    array([[1, 1, 0, 0],
           [0, 0, 0, 0]], dtype=int8)
    >>> rule.predict(proba.toarray())
    array([[1, 1, 0, 0],
           [0, 0, 0, 0]])
    """

    scale: FloatArray
    offset: FloatArray
    labels_per_row: LabelsPerRow | None = None
    temperature: float | None = None
    bias: float | None = None
    factor: FloatArray | None = None
    input: str = "probabilities"
    classes: tuple[NDArray[Any], ...] = field(default=(0, 1), repr=False)  # type: ignore[arg-type]  # read later
    output_names: tuple[str, ...] | None = field(default=None, repr=False)
    form: BatchForm | None = None
    linear: bool = False
    label_weight: FloatArray | None = None
    metadata: RuleMetadata = NO_METADATA
    n_labels: int = field(init=False, repr=False)
    schema: Schema = field(init=False, repr=False)
    kind: ClassVar[str] = "labels"
    summary: ClassVar[str] = "Predict labels by their scores, at most so many for a row."
    fields: ClassVar = (_SCALE, _OFFSET, LABELS_PER_ROW, TEMPERATURE, BIAS, _FACTOR, FORM, _LINEAR, _LABEL_WEIGHT)

    @entry_point("{class}")
    def __post_init__(self) -> None:
        if np.ndim(self.scale) != 1:
            raise InvalidParameter("scale", "have one number for each label, shape (M,)", shown(self.scale))
        self._settle(len(self.scale))
        numbers = {name: read_label_numbers(getattr(self, name), name, self.n_labels) for name in ("scale", "offset")}
        if self.label_weight is not None:
            numbers["label_weight"] = read_label_numbers(self.label_weight, "label_weight", self.n_labels, least=0.0)
        for name, value in {**numbers, "form": BatchForm.of(self.form)}.items():
            object.__setattr__(self, name, value)
        if not isinstance(self.linear, bool):
            raise InvalidType("linear", "be True or False", shown(self.linear))
        highest = int(self.offset.argmax())
        if self.labels_per_row is None and self.offset[highest] > 0:
            raise InvalidParameter(
                "offset",
                f"not be positive without {argument('labels_per_row')}, because such a label would be predicted for "
                "every row that does not store it",
                f"{self.offset[highest]:.6g} for label {highest}",
                f"pass {argument('labels_per_row')}, or offsets of at most 0",
            )

    # ---------------------------------------------------------------------------------------------- rules by hand

    @classmethod
    @entry_point()
    def from_thresholds(
        cls,
        thresholds: Any,
        n_labels: int | None = None,
        *,
        labels_per_row: Any = None,
        classes: Any = (0, 1),
        output_names: Any = None,
    ) -> Self:
        """Return the rule that predicts a label when its probability exceeds a threshold.

        Parameters
        ----------
        thresholds : float, or array-like of shape (M,)
            Thresholds in [0, 1], of all labels or of each.
        n_labels : int, optional
            M, for one threshold of all labels.
        labels_per_row : int or (int, int), optional
            The largest number of labels of a row, or the least and the largest: labels are ranked by how far their
            probability is above the threshold.
        classes, output_names
            As in the class.

        Returns
        -------
        LabelRule

        See Also
        --------
        top : The most probable labels.

        Examples
        --------
        >>> import metricwise as mw
        >>> rule = mw.LabelRule.from_thresholds([0.5, 0.25, 0.5])
        >>> rule.predict([[0.5, 0.3, 0.6]])
        array([[0, 1, 1]])
        >>> print(mw.LabelRule.from_thresholds(0.3, n_labels=50_000).describe())
        50,000 labels: 1 if the probability exceeds 0.3, else 0.
        """
        values = np.asarray(thresholds, dtype=np.float64) if _are_numbers(thresholds) else None
        if values is None or values.ndim > 1 or not ((values >= 0) & (values <= 1)).all() or values.size == 0:
            raise InvalidParameter("thresholds", "be a number in [0, 1], or one for each label", shown(thresholds))
        if values.ndim == 0:
            values = np.full(read_count(n_labels, "n_labels"), float(values))
        elif n_labels is not None and n_labels != len(values):
            raise InvalidParameter("n_labels", f"be the number of thresholds, {len(values)}", shown(n_labels))
        return cls._by_hand(np.ones(len(values)), -values, labels_per_row, classes, output_names)

    @classmethod
    @entry_point()
    def top(cls, k: int, n_labels: int, *, classes: Any = (0, 1), output_names: Any = None) -> Self:
        """Return the rule that predicts the k most probable labels of each row.

        Of equally probable labels, the first are taken. A row that stores fewer than k labels is filled up by the first
        of the others, which have probability 0. To leave these out, pass ``labels_per_row=k`` to
        ``LabelRule.from_thresholds(0, n_labels)``.

        Parameters
        ----------
        k : int
        n_labels : int
            M.
        classes, output_names
            As in the class.

        Returns
        -------
        LabelRule

        See Also
        --------
        from_thresholds : Labels whose probability exceeds a threshold.

        Examples
        --------
        >>> import metricwise as mw
        >>> mw.LabelRule.top(2, n_labels=4).predict([[0.1, 0.4, 0.3, 0.3]])
        array([[0, 1, 1, 0]])
        """
        n_labels = read_count(n_labels, "n_labels")
        k = read_count(k, "k")
        if k > n_labels:
            raise InvalidParameter("k", f"be at most the number of labels, {n_labels}", k, "pass a smaller number")
        return cls._by_hand(np.ones(n_labels), np.zeros(n_labels), (k, k), classes, output_names)

    @classmethod
    def _by_hand(
        cls, scale: FloatArray, offset: FloatArray, labels_per_row: Any, classes: Any, output_names: Any
    ) -> Self:
        from .._version import __version__

        metadata = RuleMetadata.of({"recipe": "by hand", "metricwise": __version__})
        return cls(scale, offset, labels_per_row, classes=classes, output_names=output_names, metadata=metadata)

    # ---------------------------------------------------------------------------------------------- decisions

    def choose(self, block: kernels.LabelBlock) -> tuple[LongArray, NDArray[Any]]:
        """Return the predicted labels of rows of calibrated probabilities."""
        return kernels.label_decide(block, self.scale, self.offset, *self.budget, self._fill)

    @cached_property
    def _fill(self) -> LongArray | None:
        """The labels that are predicted though a row does not store them, the first ones first; None if none are."""
        low, high = self.budget
        if high < 0 or (low == 0 and self.offset.max() <= 0):
            return None
        return fill_labels(self.offset, self.n_labels)

    @entry_point()
    def predict_together(self, proba: Any, *, pos_label: Any = None) -> Any:
        """Predict the labels of rows that are at hand as a batch, for the highest expected metric of these rows.

        `predict` decides row by row, for rows to come. Where the rows to decide are known, more is possible: a label
        that was predicted for some rows of the batch is worth less, or more, in others. It needs no labels: expected
        counts are those of the recalibrated probabilities.

        With `labels_per_row`, rows are taken one after the other in their order, three times: the decisions about a row
        are taken out, its labels are ranked by what they add to the expected metric of all other rows, and the best
        ones are put in. Without it, each label is decided by its own threshold, the best on the batch of those that its
        counts lead to. Pooled (micro) ratios are maximised by Dinkelbach's algorithm. For metrics that are a sum over
        rows, the result is that of `predict`.

        Decisions depend on the batch and, with `labels_per_row`, on the order of its rows.

        Parameters
        ----------
        proba : sparse array or matrix of shape (N, M), or array-like
            As in `predict`; all rows must be in memory.
        pos_label : object, optional
            As in `predict`.

        Returns
        -------
        csr_array or csr_matrix of shape (N, M), int8; or ndarray of shape (N, M)
            As in `predict`.

        See Also
        --------
        predict : Decides row by row.

        Examples
        --------
        Three labels that are equally probable for three rows, at most one of them for each: to hit many labels, each is
        predicted once.

        >>> import metricwise as mw
        >>> recall = {"numerator": (1, 0, 0, 0), "denominator": (0, 1, 0, 0)}
        >>> coverage = {**recall, "coverage": True}
        >>> rule = mw.LabelRule([1, 1, 1], [0, 0, 0], labels_per_row=1, form=coverage)
        >>> rule.predict([[0.5, 0.5, 0.5]] * 3)
        array([[1, 0, 0],
               [1, 0, 0],
               [1, 0, 0]])
        >>> rule.predict_together([[0.5, 0.5, 0.5]] * 3)
        array([[1, 0, 0],
               [0, 1, 0],
               [0, 0, 1]])
        """
        self._check_together()
        if is_sparse(proba):
            return self._as_csr(proba, *self._together(self.read_sparse(proba, pos_label)))
        read = self.read(proba, pos_label)
        codes = np.zeros((read.n_rows, self.n_labels), dtype=np.intp)
        fill_codes(codes, *self._together(LabelRows.of_array(positive_numbers(read))))
        return decode(codes, self.schema.decisions)

    def _together(self, rows: LabelRows) -> tuple[LongArray, NDArray[Any]]:
        if self.linear:
            return self.decide_labels(rows)
        assert self.form is not None
        calibrated = replace(rows, values=self.map_values(rows.values))
        return decide_together(calibrated, self.form, self.labels_per_row, self.factor, self.label_weight)

    @property
    def decides_together(self) -> bool:
        """Whether a batch can be decided together, and that differs from deciding its rows one by one."""
        bounded = self.metadata.subject_to or self.metadata.promises
        return self.form is not None and not self.linear and not bounded

    def _check_together(self) -> None:
        constraints = self.metadata.subject_to or [promise["name"] for promise in self.metadata.promises or ()]
        if constraints:
            raise InvalidParameter(
                "rule",
                "be fitted without constraints to decide a batch together, because they would not be kept",
                f"a rule subject to {' and '.join(constraints)}",
                "use rule.predict(proba)",
            )
        if self.form is None and not self.linear:
            raise InvalidParameter(
                "rule",
                "know what decisions about a batch are worth, its form, which rules by hand do not",
                "form=None",
                "use rule.predict(proba), or a rule from optimize",
            )

    # ------------------------------------------------------------------------------------- in other words

    @property
    def score_zeros(self) -> FloatArray:
        """The recalibrated probability above which the score of each label is positive, (M,); inf if it never is."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            zeros = -self.offset / self.scale
        return np.where(self.scale > 0, np.where(zeros < 1, zeros, np.inf), np.inf) + 0.0

    @property
    def thresholds(self) -> FloatArray:
        """For each label, the number above which it is predicted, (M,), in the unit of the rows and up to rounding.

        inf for a label that is never predicted. NaN for all with `labels_per_row`, where decisions about a label depend
        on the others.
        """
        if self.labels_per_row is not None:
            return np.full(self.n_labels, np.nan)
        zeros = self.score_zeros
        if self.temperature is None or self.bias is None:
            return zeros
        with np.errstate(divide="ignore", over="ignore"):
            logits = (np.log(zeros) - np.log1p(-np.minimum(zeros, 1.0)) - self.bias) / self.temperature
            logits = np.where(zeros == np.inf, np.inf, logits)
            if self.schema.input.is_logits:
                return logits
            return np.where(logits == np.inf, np.inf, 1.0 / (1.0 + np.exp(-logits)))

    @property
    def threshold(self) -> FloatArray | None:
        """The `thresholds`, as of other rules; None with `labels_per_row`."""
        return None if self.labels_per_row is not None else self.thresholds

    @classmethod
    def _from_values(cls, values: dict[str, Any], metadata: RuleMetadata) -> Self:
        n_labels, others = values["n_labels"], {name: value for name, value in values.items() if name != "n_labels"}
        if len(values["scale"]) != n_labels:
            raise InvalidParameter("scale", f"have n_labels = {n_labels} numbers", len(values["scale"]))
        return super()._from_values(others, metadata)

    def decision_lines(self, metadata: RuleMetadata) -> list[str]:
        """Say what the rule decides."""
        return label_lines(self)

    def accept(self, writer: RuleWriter[T]) -> T:
        """Return what a writer writes of the rule."""
        return writer.labels(self)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LabelRule):
            return NotImplemented
        names = ("labels_per_row", "temperature", "bias", "input", "output_names", "form", "linear")
        arrays = ("scale", "offset", "factor", "label_weight")
        return (
            all(getattr(self, name) == getattr(other, name) for name in names)
            and all(same_numbers(getattr(self, name), getattr(other, name)) for name in arrays)
            and same_classes(self.classes, other.classes)
        )

    __hash__ = None  # type: ignore[assignment]  # holds arrays, compares by content


def _are_numbers(values: Any) -> bool:
    try:
        return np.asarray(values).dtype.kind in "iuf"
    except ValueError:  # lists of unequal length
        return False
