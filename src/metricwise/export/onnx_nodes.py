"""What all ONNX models of rules are made of: inputs, decisions and labels as nodes of a graph.

Owns neither a whole model nor a file.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InvalidParameter, shown
from ..rules.base import Rule
from .graph import Builder
from .outputs import Label, check_text, labels_of, needs_extra, of_one_type, output_names

__all__ = ["decide", "import_onnx", "key_input", "read_positive"]


def import_onnx() -> Any:
    """Return the module, or say how to install it."""
    try:
        import onnx
        import onnx.checker
        import onnx.helper
        import onnx.numpy_helper
        import onnx.shape_inference
        import onnx.version_converter
    except ImportError:
        raise needs_extra("onnx", "onnx") from None
    return onnx


def read_positive(rule: Rule, positive: bool | None) -> bool:
    """Whether probabilities of the second of two classes are given alone."""
    possible = bool((rule.n_classes == 2).all()) and not rule.schema.normalize
    if positive is None:
        return possible and rule.multioutput
    if positive and not possible:
        raise InvalidParameter(
            "positive", "be False if an output has more than two classes or normalize is True", "True"
        )
    return bool(positive)


def key_input(onnx: Any, rule: Rule) -> list[Any]:
    """Return the input by which rules are drawn, of a mixture."""
    if not rule.is_randomized:
        return []
    return [onnx.helper.make_tensor_value_info("keys", onnx.TensorProto.INT64, ["N"])]


def decide(
    builder: Builder, rule: Rule, proba: str, dtype: Any, positive: bool, output: str = "decisions"
) -> list[Any]:
    """Add the nodes from probabilities, as they come in, to labels; return the descriptions of the outputs."""
    onnx = builder.onnx
    eta = proba if np.dtype(dtype) == np.float64 else builder.cast(proba, np.float64)
    if positive:
        eta = builder.add("Unsqueeze", eta, builder.constant(np.array([2])))
    elif not rule.multioutput:
        eta = builder.add("Unsqueeze", eta, builder.constant(np.array([1])))
    if rule.schema.normalize:
        eta = builder.normalized(eta, rule.width, dtype)
    codes = builder.codes(rule, eta, positive, "keys")
    tables = [_label_array(labels) for labels in labels_of(rule)]
    if len({table.dtype.kind for table in tables}) == 1:
        shape = ["N", rule.n_outputs] if rule.multioutput else ["N"]
        name = builder.labels(codes, tables, output, rule.multioutput)
        return [_tensor_value(onnx, name, tables[0], shape)]
    outputs = []
    for m, (name, table) in enumerate(zip(output_names(rule), tables, strict=True)):
        column = builder.add("Gather", codes, builder.constant(np.array([m])), axis=1)
        outputs.append(_tensor_value(onnx, builder.labels(column, [table], name, False), table, ["N"]))
    return outputs


def _label_array(labels: Sequence[Label]) -> NDArray[Any]:
    """Labels as a tensor of one type: text, int64, double or bool."""
    check_text(labels)
    labels = of_one_type(labels)
    kinds = {type(label) for label in labels}
    if len(kinds) > 1:
        raise InvalidParameter(
            "", problem=f"the labels of an output must have a single type in ONNX, got {shown(list(labels))}"
        )
    (kind,) = kinds
    if kind is int and max(map(abs, labels)) >= 2**63:  # type: ignore[arg-type]  # integers
        raise InvalidParameter("labels", "be integers of 64 bits", shown(list(labels)))
    if kind is str:
        array = np.empty(len(labels), dtype=object)
        array[:] = labels
        return array
    return np.array(labels, dtype={int: np.int64, float: np.float64, bool: np.bool_}[kind])


def _tensor_value(onnx: Any, name: str, table: NDArray[Any], shape: Sequence[Any]) -> Any:
    kind = onnx.TensorProto.STRING if table.dtype == object else onnx.helper.np_dtype_to_tensor_dtype(table.dtype)
    return onnx.helper.make_tensor_value_info(name, kind, shape)
