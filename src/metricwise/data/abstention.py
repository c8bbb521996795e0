"""The label of an abstention: its default, and its check against the classes. Must not know rules."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InvalidParameter, shown
from ..core.labels import python_label, python_labels

__all__ = ["check_abstain_label", "read_abstain_label", "split_abstained"]

_DEFAULTS = {"U": "abstain", "i": -1, "u": -1, "b": -1, "f": -1.0}


_OF_USERS = "Abstention.label"  # what users set; a stored rule has a field of its own


def read_abstain_label(label: Any, classes: Sequence[NDArray[Any]]) -> Any:
    """Return the label of an abstention: the one given, else "abstain" beside text and -1 beside numbers.

    Parameters
    ----------
    label : object or None
    classes : sequence of M ndarrays
        Of all outputs, which have it in common.

    Examples
    --------
    >>> import numpy as np
    >>> from metricwise.data.abstention import read_abstain_label
    >>> read_abstain_label(None, [np.array(["no", "yes"])])
    'abstain'
    """
    if label is not None:
        label = python_label(label)
        check_abstain_label(label, classes, _OF_USERS)
        return label
    kinds = {_kind(output_classes) for output_classes in classes}
    defaults = {_DEFAULTS.get(kind) for kind in kinds}
    if len(defaults) == 1 and None not in defaults:
        (label,) = defaults
        if not any(label in python_labels(output_classes) for output_classes in classes):
            return label
        raise InvalidParameter(_OF_USERS, f"be given, because the default {label!r} is one of the classes")
    labels = shown(python_labels(classes[0]))
    raise InvalidParameter(_OF_USERS, f"be given, because there is no default for classes such as {labels}")


def check_abstain_label(label: Any, classes: Sequence[NDArray[Any]], name: str = "abstain_label") -> None:
    """Refuse a label that is a class, or none at all."""
    is_plain = isinstance(label, (str, int, float, np.generic)) and label == label
    if not is_plain or not isinstance(label, Hashable):
        raise InvalidParameter(name, "be text, a finite number or a boolean", shown(label))
    for m, output_classes in enumerate({id(labels): labels for labels in classes}.values()):
        class_labels = python_labels(output_classes)
        if label in class_labels:
            where = f" of output {m}" if len(classes) > 1 else ""
            raise InvalidParameter(name, f"not be one of the classes{where}, {shown(class_labels)}", shown(label))


def split_abstained(y_true: Any, y_pred: Any, label: Any) -> tuple[Any, NDArray[np.bool_]]:
    """Return predictions with the true label in the place of abstentions, and where those are, (N, M).

    What they are to be counted as is another matter; the classes are those of the other rows.
    """
    true, predicted = np.asarray(y_true), np.asarray(y_pred)
    if true.shape != predicted.shape:
        raise InvalidParameter("y_pred", f"have the shape of y_true, {true.shape}", predicted.shape)
    check_abstain_label(label, (), _OF_USERS)
    if _is_label(true, label).any():
        raise InvalidParameter("y_true", "hold only classes", f"the label of abstentions {shown(label)}")
    gone = _is_label(predicted, label)
    filled = predicted.astype(object)
    filled[gone] = true.astype(object)[gone]
    return filled, gone.reshape(len(gone), -1)


def _is_label(values: NDArray[Any], label: Any) -> NDArray[np.bool_]:
    """Say which values are a label; True and 1 are two."""
    flat = [type(value) is not bool and value == label for value in python_labels(values.reshape(-1))]
    if isinstance(label, bool):
        flat = [value is label for value in python_labels(values.reshape(-1))]
    return np.array(flat, dtype=bool).reshape(values.shape)


def _kind(classes: NDArray[Any]) -> str:
    if classes.dtype.kind != "O":
        return classes.dtype.kind
    kinds = {type(label) for label in python_labels(classes)}
    return {str: "U", int: "i", float: "f", bool: "b"}.get(kinds.pop(), "O") if len(kinds) == 1 else "O"
