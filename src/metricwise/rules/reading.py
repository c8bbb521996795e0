"""Reading of probabilities for a rule: columns with and without names, and single columns.

Must not know how a rule decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InvalidParameter, argument, listed, shown, warn
from ..core.labels import python_labels, sorted_labels
from ..core.probabilities import Probabilities
from ..core.schema import Schema, second_is_positive
from ..data.frames import as_array, has_names, is_list_of_outputs
from ..data.logits import OTHER_RULE
from ..data.probabilities import read_proba
from ..data.single_column import column_places, with_both_columns
from ..data.single_row import check_rows
from .metadata import RuleMetadata

_MAX_LISTED = 3  # orders of outputs in a message


def read_probabilities(proba: Any, schema: Schema, metadata: RuleMetadata, pos_label: Any = None) -> Probabilities:
    """Read probabilities for a rule, and check that they are of its outputs and classes."""
    check_rows(proba, schema.classes, schema.multioutput, sums_to_one=not schema.input.is_logits)
    _check_outputs(proba, schema)
    if metadata.column_order is not None:
        proba = _in_fitted_order(proba, metadata, schema.classes)
    result = read_proba(
        proba,
        multioutput=schema.multioutput,
        classes=schema.classes if schema.multioutput else schema.classes[0],
        columns=schema.output_names,
        normalize=schema.normalize,
        row_input=schema.input,
        remedies=OTHER_RULE,
    )
    if result.n_classes.tobytes() != schema.n_classes.tobytes():
        raise InvalidParameter("proba", f"have {_counts(schema.n_classes)}, as the rule has", _counts(result.n_classes))
    return _read_single(result, metadata, schema.classes, pos_label) if result.blocks[0].ndim == 2 else result


def _check_outputs(proba: Any, schema: Schema) -> None:
    """Check the number of outputs, before columns are matched to classes."""
    if not schema.multioutput:
        return
    if isinstance(proba, (list, tuple)):
        arrays = len(proba) > 0 and len(getattr(proba[0], "shape", ())) == 2
        n_outputs = len(proba) if arrays else schema.n_outputs
    else:
        shape = getattr(proba, "shape", ())
        n_outputs = shape[1] if isinstance(shape, tuple) and len(shape) > 1 else schema.n_outputs
    if n_outputs != schema.n_outputs:
        raise InvalidParameter("proba", f"have {schema.n_outputs} outputs, as the rule has", n_outputs)


def _counts(n_classes: NDArray[np.intp]) -> str:
    if len(n_classes) == 1:
        return f"{n_classes[0]} classes"
    shown = n_classes.tolist() if len(n_classes) <= 10 else [*n_classes[:10].tolist(), "..."]
    return f"{len(n_classes)} outputs of {shown} classes"


def _in_fitted_order(proba: Any, metadata: RuleMetadata, classes: Sequence[NDArray[Any]]) -> Any:
    """Return columns without names, which stand in the order of the fit, in the order of the rule's classes.

    Other columns are returned unchanged. If the columns of the fit were not sorted, a warning names their order.
    """
    class_labels = [python_labels(labels) for labels in classes]
    orders = _column_orders(metadata.column_order, class_labels)
    if orders is None:
        return proba
    places = [[order.index(label) for label in labels] for order, labels in zip(orders, class_labels, strict=True)]
    if is_list_of_outputs(proba):
        bare = [m for m, part in enumerate(proba) if not has_names(part)]
        turned: Any = [
            np.take(as_array(part), places[m], axis=1) if m in bare and m < len(places) else part
            for m, part in enumerate(proba)
        ]
    else:
        array = None if has_names(proba) else as_array(proba)
        width = max(map(len, class_labels))
        if array is None or array.ndim < 2 or array.shape[-1] != width or (array.ndim == 2) != (len(class_labels) == 1):
            return proba  # with names, single columns, or what is refused
        bare = list(range(len(class_labels)))
        padded = np.array([[*order_positions, *range(len(order_positions), width)] for order_positions in places])
        index = padded[None] if array.ndim == 3 else padded
        turned = np.take_along_axis(array, index, axis=-1)
    unsorted = [orders[m] for m in bare if m < len(orders) and orders[m] != sorted_labels(orders[m])]
    if unsorted:
        said = list(dict.fromkeys(map(listed, unsorted)))
        warn(
            "the rule was fitted to named columns, but proba has no column names: columns are assumed to be in the "
            f"same order, {', '.join(said[:_MAX_LISTED])}; pass a data frame with column names."
        )
    return turned


def _column_orders(stored: Any, classes: list[list[Any]]) -> list[list[Any]] | None:
    """Return the order of the columns of each output, by default that of its classes; None if it is invalid."""
    if not isinstance(stored, (list, tuple)) or len(stored) != len(classes):
        return None
    orders = [labels if order is None else order for order, labels in zip(stored, classes, strict=True)]
    good = (
        isinstance(order, (list, tuple)) and len(order) == len(labels) and all(label in order for label in labels)
        for order, labels in zip(orders, classes, strict=True)
    )
    return [list(order) for order in orders] if all(good) else None


def says_single(metadata: RuleMetadata, classes: Sequence[NDArray[Any]]) -> bool:
    """Whether a single column is known to be that of the second class."""
    return metadata.single_column is not False or second_is_positive(classes)


def _read_single(
    proba: Probabilities, metadata: RuleMetadata, classes: Sequence[NDArray[Any]], pos_label: Any
) -> Probabilities:
    """Return single columns as the probabilities of the second classes or of `pos_label`; warn if that is ambiguous."""
    if pos_label is not None:
        return with_both_columns(proba, column_places(classes, pos_label))
    if not says_single(metadata, classes):
        m = next(m for m, labels in enumerate(classes) if not second_is_positive([labels]))
        first, second = python_labels(classes[m])
        where = f" of output {m}" if len(classes) > 1 else ""
        warn(
            f"the single column of probabilities{where} is assumed to be that of {shown(second)}, the second "
            f"class of the rule, but the rule was fitted to two columns; pass {argument('pos_label', first)} "
            f"or {argument('pos_label', second)}, or both columns."
        )
    return proba
