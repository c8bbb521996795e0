"""Decisions about the labels of rows that are at hand as a batch, by what these rows are expected to be worth together.

Must not know metrics: a form says what counts are worth.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import kernels
from ..core.errors import InvalidParameter, InvalidType, shown
from ..core.label_rows import LabelRows, LabelsPerRow, fill_labels
from . import codec

FloatArray = NDArray[np.float64]
LongArray = NDArray[np.int64]
Terms = tuple[float, float, float, float]
Decided = tuple[LongArray, NDArray[Any]]

_N_PASSES = 3  # row by row: two converge, and the third changes few rows
_MAX_PASSES = 20  # of thresholds and of pooled ratios
_SMALL = 1e-5  # below, (1 - exp(-x)) / x is a polynomial
_ROUNDING = 1e-12  # relative gains below this are none
_LEAST = -1e300  # less than any value


@dataclass(frozen=True)
class BatchForm:
    """What the decisions about rows are worth: a ratio of two linear functions of counts, for each label or all.

    The counts of a label are its hits, the rows that it is true for, those that it is predicted for, and all rows.

    Parameters
    ----------
    numerator, denominator : tuple of 4 floats
        Coefficients of hits, true, predicted and total.
    damped : bool, default=False
        Whether the ratio ``hits / x`` of a label is expected as ``hits * (1 - exp(-x)) / x``, as where x is the mean of
        few rows; the numerator has hits alone then.
    coverage : bool, default=False
        Whether a label is worth the probability that it is hit at least once; the ratio is not used.
    pooled : bool, default=False
        Whether the ratio is of the counts of all labels together.
    """

    numerator: Terms
    denominator: Terms
    damped: bool = False
    coverage: bool = False
    pooled: bool = False

    def __post_init__(self) -> None:
        for name in ("numerator", "denominator"):
            object.__setattr__(self, name, _read_terms(getattr(self, name), f"form.{name}"))
        for name in ("damped", "coverage", "pooled"):
            if not isinstance(getattr(self, name), bool):
                raise InvalidType(f"form.{name}", "be True or False", shown(getattr(self, name)))
        hit, *others = self.numerator
        if self.coverage:
            if self.damped or self.pooled:
                raise InvalidParameter("form", "not be damped or pooled if it is coverage", shown(self.to_dict()))
            return
        if hit == 0 and not any(others):
            raise InvalidParameter("form.numerator", "not be 0", shown(self.numerator))
        if not any(self.denominator):
            raise InvalidParameter("form.denominator", "not be 0", shown(self.denominator))
        if self.damped and (any(others) or hit <= 0 or self.pooled):
            raise InvalidParameter(
                "form", "have hits alone in its numerator, and not be pooled, if it is damped", shown(self.to_dict())
            )

    @classmethod
    def of(cls, value: Any) -> BatchForm | None:
        """Return a form that is given as one or by its fields."""
        if value is None or isinstance(value, BatchForm):
            return value
        if not isinstance(value, Mapping):
            raise InvalidType("form", "be a mapping with numerator and denominator", shown(value))
        unknown = sorted(set(value) - set(cls.__dataclass_fields__))
        lacking = [name for name in ("numerator", "denominator") if name not in value]
        if unknown or lacking:
            raise InvalidParameter("form", f"have the fields {list(cls.__dataclass_fields__)}", shown(sorted(value)))
        return cls(**value)

    def to_dict(self) -> dict[str, Any]:
        """Return the form as JSON values."""
        return {
            "numerator": list(self.numerator),
            "denominator": list(self.denominator),
            "damped": self.damped,
            "coverage": self.coverage,
            "pooled": self.pooled,
        }

    @property
    def arrays(self) -> kernels.LabelForm:
        """The form of one label, as kernels take it."""
        return kernels.LabelForm(self.numerator, self.denominator, self.damped, self.coverage)

    @property
    def rises_alone(self) -> bool:
        """Whether a label may be worth predicting without any chance of a hit."""
        return self.numerator[2] > 0 or self.denominator[2] < 0

    def value(self, tp: FloatArray, true: FloatArray, predicted: FloatArray, total: float) -> FloatArray:
        """Return what each label is worth, (M,); 0 where the denominator is not positive."""
        numerator, denominator = (
            terms[0] * tp + terms[1] * true + terms[2] * predicted + terms[3] * total
            for terms in (self.numerator, self.denominator)
        )
        if not self.damped:
            return np.divide(numerator, denominator, out=np.zeros_like(numerator), where=denominator > 0)
        x = np.maximum(denominator / self.numerator[0], 0.0)
        series = 1.0 - x * (0.5 - x / 6.0)
        return np.asarray(tp * np.divide(-np.expm1(-x), x, out=series, where=x > _SMALL))


def _read_terms(value: Any, name: str) -> Terms:
    try:
        numbers = [float(number) for number in value]
    except (TypeError, ValueError):
        numbers = []
    if len(numbers) != 4 or not np.isfinite(numbers).all():
        raise InvalidParameter(name, "have 4 numbers, of hits, true, predicted and total", shown(value))
    return numbers[0], numbers[1], numbers[2], numbers[3]


def decide_together(
    rows: LabelRows,
    form: BatchForm,
    budget: LabelsPerRow | None,
    factor: FloatArray | None = None,
    label_weight: FloatArray | None = None,
) -> Decided:
    """Decide rows so that what they are expected to be worth together is large.

    Parameters
    ----------
    rows : LabelRows
        Of calibrated probabilities.
    form : BatchForm
    budget : (int, int), optional
        The least and the largest number of labels of a row.
    factor : ndarray of shape (M,), optional
        What the probabilities of each label are multiplied by.
    label_weight : ndarray of shape (M,), optional
        Weights of the labels, 1 by default.

    Returns
    -------
    indptr : ndarray of shape (N + 1,)
    indices : ndarray
        Predicted labels of each row, ascending.
    """
    factor = np.ones(rows.n_labels) if factor is None else factor
    weight = np.ones(rows.n_labels) if label_weight is None else label_weight
    if form.pooled:
        return _decide_pooled(rows, form, budget, factor, weight)
    if budget is None:
        return _decide_alone(rows, form, factor)
    return _decide_in_turn(rows, form, budget, factor, weight)


def _expected_true(block: kernels.LabelBlock, factor: FloatArray) -> FloatArray:
    return np.ascontiguousarray(kernels.label_sums(block)[:, 0] * factor)


def _decide_in_turn(
    rows: LabelRows, form: BatchForm, budget: LabelsPerRow, factor: FloatArray, weight: FloatArray
) -> Decided:
    """Decide row after row by what its labels add to all other rows, three times."""
    low, high = budget
    if low > 0 or form.rises_alone:
        rows = _without_zeros(rows)  # so that dense rows are filled up as sparse ones are
    block = rows.block()
    if not form.rises_alone:  # then no more than its stored labels are predicted for a row
        high = min(high, max(low, rows.longest, 1))
    arrays, total = form.arrays, float(rows.n_rows)
    true = np.zeros(rows.n_labels) if form.coverage else _expected_true(block, factor)
    tp, predicted = np.zeros(rows.n_labels), np.zeros(rows.n_labels)
    scale, offset = kernels.label_table(arrays, factor, true, weight, tp, predicted, total)
    chosen = np.full((rows.n_rows, high), -1, dtype=np.int64)
    for _ in range(_N_PASSES):
        fill = _fill(offset, low, high + rows.longest, rows.n_labels)
        kernels.label_ascend(
            block, arrays, factor, true, weight, tp, predicted, scale, offset, chosen, low, high, fill, total
        )
    return _chosen_labels(rows, chosen)


def _without_zeros(rows: LabelRows) -> LabelRows:
    """Return rows without entries of probability 0, which is what labels have that are not stored."""
    kept = rows.values != 0
    if kept.all():
        return rows
    indptr = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(kept, dtype=np.int64)])[rows.indptr]
    indices = np.flatnonzero(kept) % rows.n_labels if rows.indices is None else rows.indices[kept]
    return LabelRows(indptr, indices, rows.values[kept], rows.n_labels, rows.weight)


def _fill(offset: FloatArray, low: int, count: int, n_labels: int) -> LongArray | None:
    """Return the labels that take part in rows that do not store them; None if none of them can be predicted."""
    if low == 0 and offset.max() <= 0:
        return None
    count = min(count, n_labels)
    return np.arange(count) if len(offset) == 1 else fill_labels(offset, count)


def _chosen_labels(rows: LabelRows, chosen: LongArray) -> Decided:
    """Return the labels of what was chosen: positions of entries, or labels that are not stored, below -1."""
    if rows.indices is None:
        labels = chosen - rows.indptr[:-1, None]
    elif len(rows.indices):
        labels = rows.indices[np.maximum(chosen, 0)].astype(np.int64)
    else:
        labels = np.empty_like(chosen)
    labels = np.where(chosen >= 0, labels, np.where(chosen < -1, -chosen - 2, rows.n_labels))
    labels.sort(axis=1)
    taken = labels < rows.n_labels
    indptr = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(taken.sum(axis=1), dtype=np.int64)])
    dtype = np.int64 if rows.indices is None else rows.indices.dtype
    return indptr, labels[taken].astype(dtype)


def _decide_alone(rows: LabelRows, form: BatchForm, factor: FloatArray) -> Decided:
    """Decide each label by its own threshold: the best of those that its counts lead to, one after the other."""
    block, arrays, total = rows.block(), form.arrays, float(rows.n_rows)
    nothing, ones = np.zeros(rows.n_labels), np.ones(rows.n_labels)
    if form.coverage:  # every chance of a hit is worth something
        return kernels.label_decide(block, ones, nothing, 0, -1, None)
    true = _expected_true(block, factor)
    scale, offset = kernels.label_table(arrays, factor, true, ones, nothing, nothing, total)
    offset = np.minimum(offset, 0.0)
    best = scale, offset
    best_value = np.full(rows.n_labels, _LEAST)
    for _ in range(_MAX_PASSES):
        hits, _, predicted = kernels.label_count(block, [(scale, offset)], 0, -1, None)[0].T
        tp, predicted = factor * hits, predicted.copy()
        value = form.value(tp, true, predicted, total)
        better = value > best_value + _ROUNDING * np.abs(best_value)
        if not better.any():
            break
        best = np.where(better, scale, best[0]), np.where(better, offset, best[1])
        best_value = np.where(better, value, best_value)
        scale, offset = kernels.label_table(arrays, factor, true, ones, tp, predicted, total)
        scale, offset = np.where(better, scale, best[0]), np.where(better, np.minimum(offset, 0.0), best[1])
    return kernels.label_decide(block, *best, 0, -1, None)


def _decide_pooled(
    rows: LabelRows, form: BatchForm, budget: LabelsPerRow | None, factor: FloatArray, weight: FloatArray
) -> Decided:
    """Maximise the ratio of the counts of all labels, by Dinkelbach's algorithm over the best decisions of each row."""
    block, total, (low, high) = rows.block(), float(rows.n_rows), (0, -1) if budget is None else budget
    true = _expected_true(block, factor)
    by_hit, by_row = _once(weight * factor), _once(weight)
    level, best = 0.0, None
    for _ in range(_MAX_PASSES):
        of_hit, _, of_row, _ = np.subtract(form.numerator, level * np.array(form.denominator)).tolist()
        scale, offset = of_hit * by_hit, of_row * by_row
        offset = np.minimum(offset, 0.0) if budget is None else offset
        fill = None if budget is None else _fill(offset, low, high + rows.longest, rows.n_labels)
        hits, _, predicted = kernels.label_count(block, [(scale, offset)], low, high, [fill])[0].T
        sums = np.array([weight @ counts for counts in (factor * hits, true, predicted)] + [weight.sum() * total])
        numerator, denominator = float(sums @ form.numerator), float(sums @ form.denominator)
        value = numerator / denominator if denominator > 0 else 0.0
        if best is not None and value <= level + _ROUNDING * abs(level):
            break
        level, best = value, (scale, offset, low, high, fill)
    assert best is not None
    return kernels.label_decide(block, *best)


def _once(values: FloatArray) -> FloatArray:
    """Return one number for all labels if they have the same."""
    return values[:1] if (values == values[0]).all() else values


# -------------------------------------------------------------------------------------------------------------- JSON


def _read_form(value: Any, name: str) -> BatchForm:
    document = codec.read_object(value, name)
    codec.check_keys(document, tuple(BatchForm.__dataclass_fields__), name)
    numerator, denominator = (
        _read_terms(codec.read_numbers(document[part], f"{name}.{part}", 1), f"{name}.{part}")
        for part in ("numerator", "denominator")
    )
    flags = (codec.read_bool(document[flag], f"{name}.{flag}") for flag in ("damped", "coverage", "pooled"))
    return BatchForm(numerator, denominator, *flags)


_TERMS_SCHEMA = codec.array_of({"type": "number"}, minItems=4, maxItems=4)
FORM = codec.JsonField(
    "form",
    codec.object_of(
        {
            **dict.fromkeys(("numerator", "denominator"), _TERMS_SCHEMA),
            **{flag: {"type": "boolean"} for flag in ("damped", "coverage", "pooled")},
        },
        "What decisions about a batch of rows are worth: a ratio of linear functions of hits, true, predicted and all "
        "rows, of each label or pooled; damped for few rows, or the probability of a hit (coverage). Omitted if it is "
        "not known; predictions row by row do not use it.",
    ),
    _read_form,
    lambda form, name: codec.json_value(form.to_dict(), name),
    optional=True,
)
