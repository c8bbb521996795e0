"""What rules for very many labels have in common: reading of sparse rows, their calibration, and their JSON.

All labels have one pair of classes, 0 and 1 or False and True. Rows are decided some at a time, so that no more than a
calibrated copy of these is held. Must not know metrics or solvers.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any, ClassVar, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from .. import kernels
from ..core.errors import InvalidParameter, InvalidType, argument, entry_point, shown
from ..core.inputs import Input
from ..core.label_rows import CALIBRATION_FLOOR, MAX_LABELS, LabelRows, LabelsPerRow, read_labels_per_row
from ..core.labels import are_one, python_labels, shared
from ..core.probabilities import Probabilities
from ..core.schema import Schema
from ..data.label_rows import csr_like, is_sparse, read_label_rows
from ..data.logits import OTHER_RULE
from . import codec
from .base import Rule, RuleRows, check_outputs
from .codec import JsonField
from .metadata import RuleMetadata

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
LongArray = NDArray[np.int64]

_PAIRS: tuple[list[Any], ...] = ([0, 1], [False, True])
_INPUTS = ("probabilities", "logits", "scores")
_INPUT_WORDS = (
    "What the stored numbers of rows are; omitted for probabilities. Labels that are not stored have probability 0."
)
_SHOWN_ENDS = 3  # numbers at either end of a long array that are shown of a rule
_MAX_NUMBER = 1e100  # of scales, offsets and weights, so that no product or sum overflows


# ------------------------------------------------------------------------------------------------------------- fields


def _read_classes(value: Any, name: str) -> NDArray[Any]:
    labels = codec.read_list(value, name)
    if not _is_pair(labels):
        raise InvalidParameter(name, "be [0, 1] or [false, true]", codec.shown(value))
    return np.array(labels)


def _read_n_labels(value: Any, name: str) -> int:
    if not 1 <= codec.read_int(value, name) <= MAX_LABELS:
        raise InvalidParameter(name, f"be an integer from 1 to {MAX_LABELS}", codec.shown(value))
    return int(value)


def _read_budget(value: Any, name: str) -> list[int]:
    return [codec.read_int(number, name) for number in codec.read_list(value, name)]


def read_number(value: Any, name: str) -> float:
    """Read a finite number of a document."""
    return float(codec.read_numbers(value, name, 0))


PAIR = JsonField(
    "classes",
    {"description": "The two classes that every label has.", "enum": list(_PAIRS)},
    _read_classes,
    lambda classes, name: codec.json_labels(classes[0], name),
)
N_LABELS = JsonField(
    "n_labels",
    {"description": "Number of labels.", "type": "integer", "minimum": 1, "maximum": MAX_LABELS},
    _read_n_labels,
)
LABELS_PER_ROW = JsonField(
    "labels_per_row",
    {
        "description": "The least and the largest number of labels that are predicted for a row; omitted if there is "
        "no limit.",
        **codec.array_of({"type": "integer", "minimum": 0}, minItems=2, maxItems=2),
    },
    _read_budget,
    optional=True,
)
TEMPERATURE = JsonField(
    "temperature",
    {
        "description": "Stored probabilities p above 0 become sigmoid(temperature * log(p / (1 - p)) + bias) first, "
        f"with p kept from {CALIBRATION_FLOOR:g} to 1 - {CALIBRATION_FLOOR:g}; logits and scores z become "
        "sigmoid(temperature * z + bias). The result has the precision of the numbers. Omitted with bias if "
        "probabilities are taken as they are.",
        "type": "number",
        "exclusiveMinimum": 0,
    },
    read_number,
    optional=True,
)
BIAS = JsonField("bias", {"type": "number"}, read_number, optional=True)


def numbers_field(name: str, description: str, *, optional: bool = False) -> JsonField:
    """Return the field of a number for each label."""
    schema = {"description": description, **codec.PACKED_SCHEMA}
    return JsonField(name, schema, codec.read_packed, codec.write_packed, optional=optional)


_INPUT = replace(codec.INPUT, schema={**codec.INPUT.schema, "description": _INPUT_WORDS, "enum": list(_INPUTS)})
SHARED_FIELDS = (PAIR, N_LABELS, codec.OUTPUT_NAMES, _INPUT)


# -------------------------------------------------------------------------------------------------------------- rule


class LabelRuleBase(Rule):
    """Base of rules for very many labels, which take sparse rows and share one pair of classes."""

    multioutput: ClassVar[bool] = True  # type: ignore[misc]  # the same for all
    normalize: ClassVar[bool] = False  # type: ignore[misc]
    abstain_label: ClassVar[None] = None  # type: ignore[misc]
    shared_fields: ClassVar = SHARED_FIELDS
    n_labels: int
    labels_per_row: LabelsPerRow | None
    temperature: float | None
    bias: float | None
    factor: FloatArray | None

    def _settle(self, n_labels: int) -> None:
        """Read and check the fields that all kinds have; n_labels is the number of labels."""
        settled: dict[str, Any] = {"metadata": RuleMetadata.of(self.metadata)}
        if not 1 <= n_labels <= MAX_LABELS:
            raise InvalidParameter(
                "n_labels", f"be from 1 to {MAX_LABELS:,}", f"{n_labels:,}", "leave labels out that never occur"
            )
        settled["n_labels"] = n_labels
        settled["labels_per_row"] = read_labels_per_row(self.labels_per_row, n_labels)
        classes = _read_pair(self.classes, n_labels)
        settled["temperature"], settled["bias"] = _read_map(self.temperature, self.bias, self.input)
        if self.factor is not None:
            settled["factor"] = read_label_numbers(self.factor, "factor", n_labels, least=0.0)
        schema = Schema(classes, True, False, self.output_names, input=Input.of(self.input))
        check_outputs(schema, None, needs_link=False)
        settled |= {"schema": schema, "classes": schema.classes, "output_names": schema.output_names}
        for name, value in settled.items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        with np.printoptions(threshold=2 * _SHOWN_ENDS, edgeitems=_SHOWN_ENDS):
            values = {part.name: getattr(self, part.name) for part in fields(self) if part.repr}  # type: ignore[arg-type]
            shown_values = [f"{name}={value!r}" for name, value in values.items() if value is not None]
        return f"{type(self).__name__}({', '.join(shown_values)})"

    @property
    def decides_together(self) -> bool:
        """Whether rows of a batch can be decided together, with another result than one by one."""
        return False

    @property
    def budget(self) -> LabelsPerRow:
        """The least and the largest number of labels of a row, as kernels take them: -1 for no limit."""
        return (0, -1) if self.labels_per_row is None else self.labels_per_row

    # ---------------------------------------------------------------------------------------------- decisions

    @entry_point()
    def predict(
        self,
        proba: Any,
        *,
        sensitive_features: Any = None,
        cost: Any = None,
        start: int = 0,
        pos_label: Any = None,
        segments: Any = None,
    ) -> Any:
        """Predict labels.

        Parameters
        ----------
        proba : sparse array or matrix of shape (N, M), or array-like
            Probabilities of the labels, or logits or scores if `input` says so. Of sparse rows, a label that is not
            stored has probability 0. Formats other than CSR are converted; labels that are not in order within a row
            are sorted. Dense rows are of shape (N, M) or any other shape that :meth:`WeightedRule.predict` takes, and
            the columns of a data frame are matched by name.
        sensitive_features : object, optional
            Not used.
        cost : None
            Refused.
        start : int, default=0
            Not used: nothing is drawn.
        pos_label : object, optional
            The class that columns are of; of sparse rows, always the second one.
        segments : object, optional
            Not used.

        Returns
        -------
        csr_array or csr_matrix of shape (N, M), int8
            For sparse rows: 1 where a label is predicted. A matrix if `proba` is one.
        ndarray of shape (N, M)
            For dense rows: the classes that are predicted. A Dask collection if `proba` is one.
        """
        if not is_sparse(proba):
            row_inputs = {
                "sensitive_features": sensitive_features,
                "cost": cost,
                "start": start,
                "pos_label": pos_label,
            }
            return super().predict(proba, **row_inputs)
        self.read_cost(cost, 0)
        return self._as_csr(proba, *self.decide_labels(self.read_sparse(proba, pos_label)))

    @entry_point()
    def calibrated(
        self, proba: Any, *, sensitive_features: Any = None, pos_label: Any = None, segments: Any = None
    ) -> Any:
        """Return the probabilities behind the recalibration of the rule, in the form that they were given in.

        Parameters
        ----------
        proba, sensitive_features, pos_label, segments
            As in `predict`.

        Returns
        -------
        csr_array, csr_matrix or ndarray of the shape of proba, or list of M ndarrays
            Probabilities, of labels that are stored and of 0 elsewhere; float32 stays float32.
        """
        if not is_sparse(proba):
            return super().calibrated(proba, sensitive_features=sensitive_features, pos_label=pos_label)
        rows = self.read_sparse(proba, pos_label)
        assert rows.indices is not None
        values = self.probabilities_of(rows)
        return csr_like(proba, values, rows.indices.copy(), rows.indptr.copy(), (rows.n_rows, rows.n_labels))

    @abstractmethod
    def choose(self, block: kernels.LabelBlock) -> tuple[LongArray, NDArray[Any]]:
        """Return what is predicted for rows of calibrated probabilities: where the labels of each begin, and labels."""

    def decide_labels(self, rows: LabelRows) -> tuple[LongArray, NDArray[Any]]:
        """Return the predicted labels of rows: where those of each row begin (N + 1,), and the labels, ascending."""
        if self.temperature is None:
            return self.choose(rows.block())
        counts: list[LongArray] = [np.zeros(1, dtype=np.int64)]
        labels = []
        for part in rows.chunks():
            some_rows = rows.take(part)
            indptr, indices = self.choose(some_rows.block(self.map_values(some_rows.values)))
            counts.append(np.diff(indptr))
            labels.append(indices)
        return np.cumsum(np.concatenate(counts)), np.concatenate(labels)

    def decide(self, rows: RuleRows) -> IntArray:
        """Return the codes of the decisions about dense rows, of shape (N, M)."""
        proba = rows.proba
        codes = np.zeros((proba.n_rows, self.n_labels), dtype=np.intp)
        for part in proba.chunks():
            some_rows = LabelRows.of_array(positive_numbers(proba.take(part)))
            fill_codes(codes[part], *self.decide_labels(some_rows))
        return codes

    def _as_csr(self, proba: Any, indptr: LongArray, indices: NDArray[Any]) -> Any:
        """Return predicted labels as CSR of the kind of what was given."""
        shape = (len(indptr) - 1, self.n_labels)
        return csr_like(proba, np.ones(len(indices), dtype=np.int8), indices, indptr, shape)

    def read_sparse(self, proba: Any, pos_label: Any = None) -> LabelRows:
        """Read sparse rows for this rule."""
        second = self.classes[0][1]
        if pos_label is not None and (isinstance(pos_label, (list, tuple)) or pos_label != second):
            raise InvalidParameter(
                "pos_label",
                f"be {shown(second)} or left out for sparse rows, which hold probabilities of that class",
                shown(pos_label),
                "pass an array (N, M) for the other class",
            )
        return read_label_rows(proba, self.n_labels, self.input, OTHER_RULE)

    def refuse_new_shares(self) -> NoReturn:
        """Refuse to move to other class shares, of which every label has its own."""
        raise InvalidType(
            "rule",
            f"be for few outputs to follow class shares, which a {type(self).__name__} does not",
            remedy="fit it again with recent labels",
        )

    # -------------------------------------------------------------------------------------------- calibration

    def map_values(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return probabilities of the numbers of entries, by temperature and bias: the same array without these."""
        if self.temperature is None or self.bias is None:
            return values
        of_logits = self.schema.input.is_logits
        return kernels.label_calibrate(values, self.temperature, self.bias, CALIBRATION_FLOOR, of_logits)

    def probabilities_of(self, rows: LabelRows) -> NDArray[Any]:
        """Return a copy of the entries behind the calibration, factors included."""
        values = rows.values.copy() if self.temperature is None else self.map_values(rows.values)
        if self.factor is not None:
            by_label = self.factor[np.arange(rows.n_entries) % self.n_labels if rows.indices is None else rows.indices]
            np.minimum(values * by_label, 1.0, out=values, casting="same_kind")
        return values

    def calibrate(self, rows: RuleRows) -> Probabilities:
        """Return the probabilities that the rule decides by."""
        proba = rows.proba
        label_rows = LabelRows.of_array(positive_numbers(proba))
        values = self.probabilities_of(label_rows).reshape(proba.n_rows, self.n_labels)
        blocks = []
        for block, span in proba.spans():
            column = values[:, span]
            blocks.append(column if block.ndim == 2 else np.stack([1.0 - column, column], axis=2))
        return replace(proba, blocks=tuple(blocks), link=None)

    # --------------------------------------------------------------------------------------------------- files

    @classmethod
    def _from_values(cls, values: dict[str, Any], metadata: RuleMetadata) -> Self:
        values = {**values, "input": values.get("input") or "probabilities"}
        return super()._from_values(values, metadata)


def positive_numbers(proba: Probabilities) -> NDArray[Any]:
    """Return the probabilities (N, M) of the second class of each output, or log-odds."""
    columns = []
    for block, _ in proba.spans():
        if block.ndim == 2:
            columns.append(block)
        elif proba.of_logits:
            columns.append(np.subtract(block[:, :, 1], block[:, :, 0], dtype=np.float64))
        else:
            columns.append(block[:, :, 1])
    return columns[0] if len(columns) == 1 else np.concatenate(columns, axis=1)


def fill_codes(codes: IntArray, indptr: LongArray, indices: NDArray[Any]) -> None:
    """Set the codes (N, M) of predicted labels to 1, in place."""
    codes[np.repeat(np.arange(len(codes)), np.diff(indptr)), indices] = 1


def read_label_numbers(values: Any, name: str, n_labels: int, least: float | None = None) -> FloatArray:
    """Read a number for each label, (M,)."""
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidType(name, "be an array of numbers", shown(values)) from None
    if array.shape != (n_labels,):
        raise InvalidParameter(name, f"have one number for each label, shape ({n_labels},)", f"shape {array.shape}")
    if not np.isfinite(array).all() or (len(array) and np.abs(array).max() > _MAX_NUMBER):
        raise InvalidParameter(name, f"be finite and at most {_MAX_NUMBER:g}", "NaN, infinity or a larger number")
    if least is not None and array.min(initial=least) < least:
        raise InvalidParameter(name, f"be at least {least:g}", f"{array.min():.6g}")
    return array


def same_numbers(left: FloatArray | None, right: FloatArray | None) -> bool:
    """Whether two arrays are equal, or both are None."""
    if left is None or right is None:
        return left is right
    return np.array_equal(left, right)


def read_count(value: Any, name: str) -> int:
    """Check that a number of labels is one."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)) or value < 1:
        raise InvalidParameter(name, "be a number of labels from 1", shown(value))
    return int(value)


def _read_pair(classes: Any, n_labels: int) -> tuple[NDArray[Any], ...]:
    """Return the pair of classes once for each label, given so or once."""
    items = list(classes) if not isinstance(classes, (tuple, list)) and np.ndim(classes) == 1 else classes
    if not isinstance(items, Sequence) or isinstance(items, str) or len(items) == 0:
        _refuse_pair(classes)
    if np.ndim(items[0]) == 0:
        pair, n_given = np.asarray(items), n_labels
    else:
        each = shared(items)
        pair, n_given = each[0], len(each)
        if not are_one(each):
            _refuse_pair(classes)
    if n_given != n_labels:
        raise InvalidParameter("classes", f"be one pair, or one for each of {n_labels} labels", f"{n_given} pairs")
    is_pair = pair.ndim == 1 and pair.dtype.kind in "iubO" and _is_pair(python_labels(pair))
    return (pair,) * n_labels if is_pair else _refuse_pair(classes)


def _is_pair(labels: list[Any]) -> bool:
    return any(
        labels == pair and [type(label) for label in labels] == [type(label) for label in pair] for pair in _PAIRS
    )


def _refuse_pair(classes: Any) -> NoReturn:
    raise InvalidParameter(
        "classes",
        "be (0, 1) or (False, True), the same for all labels",
        shown(classes),
        "pass y as an indicator matrix",
    )


def _read_map(temperature: Any, bias: Any, kind: Any) -> tuple[float | None, float | None]:
    """Return temperature and bias; of logits, those of a sigmoid by default."""
    if kind not in _INPUTS or not isinstance(kind, str):
        raise InvalidParameter(
            "input",
            f"be one of {', '.join(map(repr, _INPUTS))} for very many labels",
            shown(kind),
            f"pass log-odds, log(p) - log(1 - p), with {argument('input', 'logits')}",
        )
    if temperature is None and bias is None:
        if kind == "scores":
            raise InvalidParameter(
                "temperature",
                f"be given with bias if {argument('input', 'scores')}, because scores need a map to probabilities",
                None,
                "pass both, as optimize fits them",
            )
        return (1.0, 0.0) if kind == "logits" else (None, None)
    numbers = []
    for name, value in (("temperature", temperature), ("bias", bias)):
        if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
            raise InvalidParameter(name, "be a number, or left out together with the other of the two", shown(value))
        if not abs(float(value)) <= _MAX_NUMBER:
            raise InvalidParameter(name, f"be finite and at most {_MAX_NUMBER:g}", shown(value))
        numbers.append(float(value))
    if numbers[0] <= 0:
        raise InvalidParameter("temperature", "be positive", shown(temperature))
    return numbers[0], numbers[1]
