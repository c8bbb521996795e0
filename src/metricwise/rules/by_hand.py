"""Rules from thresholds, class weights or cut points of the expected grade.

Returns the fields of a :class:`.WeightedRule`. Must not know metrics or data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._version import __version__
from ..core.errors import InvalidParameter, InvalidType, argument, entry_point, shown
from ..core.labels import known_positive, per_output, python_label, python_labels, sorted_labels
from ..core.losses import Loss
from ..data.classes import checked_classes, is_number

FloatArray = NDArray[np.float64]
Fields = dict[str, Any]

# Beyond every probability, and finite, for a rule is JSON.
_ALWAYS, _NEVER = -1.0, 2.0


@dataclass(frozen=True)
class _OutputValues:
    """What was given for each output, and which outputs these are."""

    each: list[Any]
    names: tuple[str, ...] | None
    several: bool

    @classmethod
    def read(
        cls, values: Any, is_for_one_output: Callable[[Any], bool], output_names: Any, parameter: str, what: str
    ) -> _OutputValues:
        """Tell what is for one output from what is for several.

        Parameters
        ----------
        values : object
            For one output, or a mapping or a sequence of such.
        is_for_one_output : callable
            Whether a value is for one output.
        output_names : sequence of str, or None
        parameter, what : str
            For messages; `what` is for one output.
        """
        if is_for_one_output(values):
            if output_names is not None:
                raise InvalidParameter(
                    "output_names",
                    problem=f"output_names is only for several outputs, but {parameter} is {what}, for one output",
                    remedy="leave it out",
                )
            return cls([values], None, False)
        names: tuple[str, ...] | None
        if isinstance(values, Mapping):
            each, names = _by_name(values, output_names, parameter)
        elif isinstance(values, (list, tuple)) and len(values):
            each, names = list(values), None if output_names is None else _names(output_names, len(values))
        else:
            raise InvalidType(
                parameter,
                (
                    f"be {what} for one output, or for several outputs a mapping from their names or a list "
                    "with one per output"
                ),
                shown(values),
            )
        for m, value in enumerate(each):
            if not is_for_one_output(value):
                raise InvalidType(parameter, f"be {what} for output {_title(names, m)}", shown(value))
        return cls(each, names, True)

    def title(self, m: int) -> str:
        """Say which output is meant, where there are several."""
        return f" for output {_title(self.names, m)}" if self.several else ""

    def fields(self, loss: Loss, classes: tuple[NDArray[Any], ...]) -> Fields:
        """Return the fields of a weighted rule."""
        return {"loss": loss, **self.shared_fields(classes)}

    def shared_fields(self, classes: tuple[NDArray[Any], ...]) -> Fields:
        """Return the fields that rules of all kinds have."""
        metadata = {"recipe": "by hand", "metricwise": __version__}
        return {
            "classes": classes,
            "multioutput": self.several,
            "output_names": self.names,
            "metadata": metadata,
        }


def _title(names: tuple[str, ...] | None, m: int) -> str:
    return str(m) if names is None else repr(names[m])


def _by_name(values: Mapping[Any, Any], output_names: Any, parameter: str) -> tuple[list[Any], tuple[str, ...]]:
    """Values by the names of outputs, in the order of `output_names` if that is given."""
    odd = [key for key in values if not isinstance(key, str)]
    if odd or not values:
        raise InvalidParameter(
            parameter,
            problem=(
                f"{parameter} as a mapping must have the names of outputs, as text, for keys, got "
                f"{shown(odd[0] if odd else dict(values))}"
            ),
            remedy="use a list for outputs without names",
        )
    if output_names is None:
        return list(values.values()), tuple(values)
    names = _names(output_names, None)
    if set(names) != set(values):
        raise InvalidParameter(
            parameter, f"have exactly the keys output_names, {shown(list(names))}", shown(list(values))
        )
    return [values[name] for name in names], names


def _names(output_names: Any, size: int | None) -> tuple[str, ...]:
    good = isinstance(output_names, (list, tuple, np.ndarray)) or hasattr(output_names, "tolist")
    names = tuple(python_label(name) for name in output_names) if good else ()
    if not names or not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        raise InvalidParameter("output_names", "be a list of distinct names, text", shown(output_names))
    if size is not None and len(names) != size:
        raise InvalidParameter("output_names", f"have one name per output, {size}", len(names))
    return names


def _plain(values: Any) -> Any:
    """Arrays and Series as lists, numbers and mappings: a Series whose index has names is a mapping."""
    if hasattr(values, "to_dict") and getattr(values, "ndim", None) == 1:
        named = {python_label(key): value for key, value in values.to_dict().items()}
        return list(named.values()) if list(named) == list(range(len(named))) else named
    if isinstance(values, (np.ndarray, np.generic)) or hasattr(values, "__array__"):
        return np.asarray(values).tolist()
    if isinstance(values, Mapping):
        return {python_label(key): _plain(value) for key, value in values.items()}
    if isinstance(values, (list, tuple, range)):
        return [_plain(value) for value in values]
    return values


def _labels(classes: Any, n_outputs: int) -> list[list[Any] | None]:
    """Labels of each output as Python's own types, None where they are not given."""
    items = per_output(classes, n_outputs)
    checked = iter(checked_classes([labels for labels in items if labels is not None]))
    return [None if labels is None else python_labels(next(checked)) for labels in items]


def _of_numbers(value: Any) -> bool:
    return isinstance(value, list) and len(value) > 0 and all(map(is_number, value))


# --------------------------------------------------------------------------------------------------------- thresholds


@entry_point("WeightedRule.from_thresholds")
def by_thresholds(thresholds: Any, classes: Any, pos_label: Any, output_names: Any) -> Fields:
    """Return the fields of a rule that predicts the positive class above a threshold of its probability."""
    outputs, pairs, places = _read_thresholds(thresholds, classes, pos_label, output_names)
    diagonal, offset = np.zeros((len(pairs), 2)), np.zeros((len(pairs), 2))
    for m, (threshold, place) in enumerate(zip(outputs.each, places, strict=True)):
        # Scores 0 and t - p: exact in floating point, as those of the sweep are. Ties go to the lowest class, so that
        # a positive one that comes first needs the next number.
        t = _checked_threshold(threshold, outputs.title(m))
        diagonal[m, place], offset[m, place] = -1.0, t if place == 1 else np.nextafter(t, np.inf)
    return outputs.fields(Loss(diagonal=diagonal, offset=offset), checked_classes(pairs))


@entry_point("WeightedRule.from_thresholds")
def by_score_thresholds(thresholds: Any, classes: Any, pos_label: Any, output_names: Any, row_input: str) -> Fields:
    """Return the fields of a rule of cut points that predicts the positive class above a threshold of its score."""
    outputs, pairs, places = _read_thresholds(thresholds, classes, pos_label, output_names)
    for m, threshold in enumerate(outputs.each):
        if np.isnan(threshold):
            raise InvalidParameter("thresholds", "be numbers, -inf or inf", f"{shown(threshold)}{outputs.title(m)}")
    ascending = [pair if place == 1 else pair[::-1] for pair, place in zip(pairs, places, strict=True)]
    cuts = np.array(outputs.each, dtype=np.float64)[:, None]
    return {"cuts": cuts, "input": row_input, **outputs.shared_fields(checked_classes(ascending))}


def _read_thresholds(
    thresholds: Any, classes: Any, pos_label: Any, output_names: Any
) -> tuple[_OutputValues, list[list[Any]], list[int]]:
    """Return the threshold of each output, its two labels, and which of them is the positive one."""
    thresholds = _plain(thresholds)
    if pos_label is None and output_names is None and _names_a_label(thresholds, classes):
        ((pos_label, thresholds),) = thresholds.items()
    outputs = _OutputValues.read(thresholds, is_number, output_names, "thresholds", "a number")
    n_outputs = len(outputs.each)
    pairs = [[0, 1] if labels is None else labels for labels in _labels(classes, n_outputs)]
    for m, pair in enumerate(pairs):
        if len(pair) != 2:
            raise InvalidParameter(
                "classes",
                "be two labels, because a threshold separates two classes",
                f"{shown(pair)}{outputs.title(m)}",
                "use from_weights or from_cut_points for more",
            )
    positive_labels = _positive_labels(pos_label, n_outputs, outputs.several)
    places = [_positive_place(positive_labels[m], pair, outputs.title(m)) for m, pair in enumerate(pairs)]
    return outputs, pairs, places


def _names_a_label(thresholds: Any, classes: Any) -> bool:
    """Whether a mapping has a class of a single output for its only key."""
    if not isinstance(thresholds, dict) or len(thresholds) != 1:
        return False
    items = per_output(classes, 1) if classes is None or not _is_nested(classes) else [[]]
    labels = [0, 1] if items[0] is None else [python_label(label) for label in items[0]]
    return next(iter(thresholds)) in labels


def _is_nested(values: Any) -> bool:
    return isinstance(values, (list, tuple)) and any(
        hasattr(value, "__len__") and not isinstance(value, (str, bytes)) for value in values
    )


def _checked_threshold(threshold: float, title: str) -> float:
    if np.isinf(threshold):
        return _NEVER if threshold > 0 else _ALWAYS
    if not 0 <= threshold <= 1:  # NaN fails as well
        raise InvalidParameter(
            "thresholds",
            "lie in [0, 1], or be -inf to predict the positive class always or inf to predict it never",
            f"{shown(threshold)}{title}",
        )
    return float(threshold)


def _positive_labels(pos_label: Any, n_outputs: int, several: bool) -> list[Any]:
    """The positive label of each output, None where nobody has named it."""
    label = _plain(pos_label)
    if not isinstance(label, list):
        return [label] * n_outputs
    if not several or len(label) != n_outputs:
        raise InvalidParameter(
            "pos_label", f"be one label, or a list with one label for each of the {n_outputs} outputs", shown(label)
        )
    return label


def _positive_place(label: Any, pair: list[Any], title: str) -> int:
    if label is None:
        positive = known_positive(pair)
        if positive is not None:
            return pair.index(positive)
        raise InvalidParameter(
            "pos_label",
            problem=f"the positive class{title} is ambiguous: {pair[0]!r} or {pair[1]!r}",
            remedy=f"set {argument('pos_label', pair[0])} or {argument('pos_label', pair[1])}",
        )
    if label not in pair:
        raise InvalidParameter("pos_label", f"be one of the classes {pair}", f"{shown(label)}{title}")
    return pair.index(label)


# ------------------------------------------------------------------------------------------------------ class weights


@entry_point("WeightedRule.from_weights")
def by_weights(weights: Any, classes: Any, output_names: Any) -> Fields:
    """Return the fields of a rule that predicts the class of the largest weight * probability."""
    what = "a mapping of labels to weights or a list of weights in the order of the classes"
    outputs = _OutputValues.read(_plain(weights), _are_weights, output_names, "weights", what)
    labels = _labels(classes, len(outputs.each))
    read = [
        _checked_weights(output_weights, output_labels, outputs.title(m))
        for m, (output_weights, output_labels) in enumerate(zip(outputs.each, labels, strict=True))
    ]
    diagonal = np.zeros((len(read), max(len(values) for values, _ in read)))
    for row, (values, _) in zip(diagonal, read, strict=True):
        row[: len(values)] -= values
    loss = Loss(diagonal=diagonal, offset=np.zeros_like(diagonal))
    return outputs.fields(loss, checked_classes([names for _, names in read]))


def _are_weights(value: Any) -> bool:
    return _of_numbers(list(value.values()) if isinstance(value, dict) else value)


def _checked_weights(weights: Any, labels: list[Any] | None, title: str) -> tuple[FloatArray, list[Any]]:
    """Weights of one output in the order of its classes, and the classes."""
    if isinstance(weights, dict):
        labels = sorted_labels(list(weights)) if labels is None else labels
        if set(labels) != set(weights):
            raise InvalidParameter(
                "weights", f"have exactly the classes {shown(labels)} as keys", f"{shown(list(weights))}{title}"
            )
        weights = [weights[label] for label in labels]
    labels = list(range(len(weights))) if labels is None else labels
    if len(weights) != len(labels) or len(labels) < 2:
        said = f"one per class, {len(labels)}" if len(labels) > 1 else "for at least two classes"
        raise InvalidParameter("weights", f"be {said}", f"{len(weights)}{title}")
    array = np.array(weights, dtype=np.float64)
    if not (np.isfinite(array).all() and (array >= 0).all() and array.any()):
        raise InvalidParameter("weights", "be finite, non-negative and not all zero", f"{shown(list(weights))}{title}")
    return array, labels


# --------------------------------------------------------------------------------------------------------- cut points


@entry_point("WeightedRule.from_cut_points")
def by_cut_points(cut_points: Any, grades: Any, classes: Any, output_names: Any) -> Fields:
    """Return the fields of a rule that counts the cut points below the expected grade."""
    what = "a list of ascending numbers"
    outputs = _OutputValues.read(_plain(cut_points), _of_numbers, output_names, "cut_points", what)
    labels_each = _labels(classes, len(outputs.each))
    scales = _grades_each(grades, len(outputs.each), outputs.several)
    read = []
    for m, (cuts, output_labels, scale) in enumerate(zip(outputs.each, labels_each, scales, strict=True)):
        title, size = outputs.title(m), len(cuts) + 1
        output_labels = list(range(size)) if output_labels is None else output_labels
        if len(output_labels) != size:
            raise InvalidParameter(
                "cut_points",
                f"have one number fewer than there are classes, {len(output_labels) - 1} for {len(output_labels)}",
                f"{len(cuts)}{title}",
            )
        values = _checked_grades(scale, output_labels, title)
        # What lies beyond all grades is never crossed, however far it is.
        ends = np.clip(_checked_cuts(cuts, title), values[0] - 1.0, values[-1] + 1.0)
        read.append((_loss_of_cuts(ends, values), output_labels))
    width = max(len(loss) for loss, _ in read)
    tensor = np.stack([np.pad(loss, (0, width - len(loss))) for loss, _ in read])
    return outputs.fields(Loss.from_tensor(tensor), checked_classes([labels for _, labels in read]))


def _loss_of_cuts(cuts: FloatArray, grades: FloatArray) -> FloatArray:
    """Loss whose scores fall from class k - 1 to class k as long as the cut point between them is below the grade."""
    steps = cuts - grades[:, None]  # by true class, then cut point
    return np.concatenate([np.zeros((len(grades), 1)), np.cumsum(steps, axis=1)], axis=1)


def _grades_each(grades: Any, n_outputs: int, several: bool) -> list[Any]:
    values = _plain(grades)
    if values is None or _of_numbers(values):
        return [values] * n_outputs
    if (
        several
        and isinstance(values, list)
        and len(values) == n_outputs
        and all(p is None or _of_numbers(p) for p in values)
    ):
        return values
    each = f", or a list of one such list for each of the {n_outputs} outputs" if several else ""
    raise InvalidParameter("grades", f"be a list of numbers, one per class{each}", shown(grades))


def _checked_grades(scale: list[float] | None, labels: list[Any], title: str) -> FloatArray:
    places = list(range(len(labels)))
    grades: list[float] = list(places) if scale is None else scale
    if scale is None and labels != places and all(map(is_number, labels)):
        raise InvalidParameter(
            "grades",
            (
                "be given if classes are numbers other than 0, 1, 2, ...: cut points may refer to the "
                f"labels, grades={labels}, or to their positions, grades={places}{title}"
            ),
        )
    if len(grades) != len(labels):
        raise InvalidParameter("grades", f"have one number per class, {len(labels)}", f"{len(grades)}{title}")
    array = np.array(grades, dtype=np.float64)
    if not np.isfinite(array).all() or not all(a < b for a, b in pairwise(array)):
        raise InvalidParameter("grades", "be finite and ascend with the classes", f"{shown(grades)}{title}")
    return array


@entry_point("WeightedRule.from_cut_points")
def by_score_cuts(cut_points: Any, grades: Any, classes: Any, output_names: Any, row_input: str) -> Fields:
    """Return the fields of a rule of cut points that counts those below one score."""
    for name, value in (("grades", grades), ("output_names", output_names)):
        if value is not None:
            must = f"be left out if {argument('input', row_input)}, because one score of one output has its own unit"
            raise InvalidParameter(name, must, shown(value))
    cuts = _plain(cut_points)
    if not _of_numbers(cuts):
        raise InvalidType(
            "cut_points", "be a list of ascending numbers, for the one score of a single output", shown(cuts)
        )
    labels = _labels(classes, 1)[0]
    labels = list(range(len(cuts) + 1)) if labels is None else labels
    if len(labels) != len(cuts) + 1:
        must = f"have one number fewer than there are classes, {len(labels) - 1} for {len(labels)}"
        raise InvalidParameter("cut_points", must, len(cuts))
    outputs = _OutputValues([cuts], None, False)
    fields = outputs.shared_fields(checked_classes([labels]))
    if not all(map(is_number, labels)):
        fields["metadata"]["order"] = [labels]
    return {"cuts": _checked_cuts(cuts, "")[None], "input": row_input, **fields}


def _checked_cuts(cuts: Sequence[float], title: str) -> FloatArray:
    array = np.array(cuts, dtype=np.float64)
    if not all(a <= b for a, b in pairwise(array)) or np.isnan(array).any():
        raise InvalidParameter("cut_points", "ascend", f"{shown(list(cuts))}{title}", "sort them")
    return array
