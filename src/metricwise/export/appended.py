"""A rule behind an ONNX classifier.

Owns the search for the classifier's probabilities and the joint of the two graphs.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from ..core.errors import InvalidParameter, InvalidType, shown
from ..rules.base import Rule
from .graph import Builder
from .onnx_nodes import decide, key_input, read_positive
from .outputs import labels_of

__all__ = ["behind"]

_LEAST_OPSET, _LEAST_FOR_DRAWS = 13, 18
_LEAST_IR = 8  # of opset 18


def behind(onnx: Any, rule: Rule, classifier: Any, name: str | None, positive: bool | None) -> Any:
    """Return a copy of a classifier that decides by the rule.

    Parameters
    ----------
    classifier : onnx.ModelProto or path
    name : str or None
        Of the output that holds probabilities; found where it is None.
    positive : bool or None
        Whether these are of the second of two classes alone.
    """
    model = _of_opset(onnx, _copy(onnx, classifier), rule)
    output = _find_output(onnx, model, name)
    proba, labels = _without_zipmap(model, output)
    _check_classes(labels, rule)
    kind, shape = _tensor(onnx, model, proba, output)
    positive = _check_shape(shape, rule, positive, output)
    builder = Builder(onnx, prefix=_prefix(model))
    outputs = decide(builder, rule, proba, kind, positive)
    _check_names(model, [*outputs, *key_input(onnx, rule)])
    graph = model.graph
    graph.node.extend(builder.nodes)
    graph.initializer.extend(builder.constants.values())
    graph.input.extend(key_input(onnx, rule))
    del graph.output[:]
    dtype = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    graph.output.extend([*outputs, onnx.helper.make_tensor_value_info(proba, dtype, shape)])
    return model


def _copy(onnx: Any, classifier: Any) -> Any:
    if isinstance(classifier, (str, os.PathLike)):
        try:
            return onnx.load(os.fspath(classifier))
        except FileNotFoundError:
            raise
        except Exception as error:  # protobuf's own, which differ from version to version
            raise InvalidParameter("append_to", "be an ONNX file", f"{os.fspath(classifier)} ({error})") from None
    if not isinstance(classifier, onnx.ModelProto):
        raise InvalidType("append_to", "be an onnx.ModelProto or a path", type(classifier).__name__)
    model = onnx.ModelProto()
    model.CopyFrom(classifier)
    return model


def _of_opset(onnx: Any, model: Any, rule: Rule) -> Any:
    """Return the model in an opset that has the operators of the rule; converters often declare an older one."""
    least = _LEAST_FOR_DRAWS if rule.is_randomized else _LEAST_OPSET
    versions: dict[str, int] = {}
    for one in model.opset_import:  # some converters declare one twice
        domain = "" if one.domain == "ai.onnx" else one.domain
        versions[domain] = max(one.version, versions.get(domain, 0))
    found = versions.setdefault("", least)
    del model.opset_import[:]
    model.opset_import.extend(onnx.helper.make_opsetid(domain, version) for domain, version in versions.items())
    model.ir_version = max(model.ir_version, _LEAST_IR)
    if found >= least:
        return model
    try:
        return onnx.version_converter.convert_version(model, least)
    except RuntimeError as error:  # an operator that it has no adapter for
        raise InvalidParameter(
            "append_to",
            f"have opset {least} or later for a {type(rule).__name__}",
            f"{found}, which cannot be converted ({error})",
            f"convert the classifier with target_opset={least}",
        ) from None


def _find_output(onnx: Any, model: Any, name: str | None) -> Any:
    """Return the output that holds probabilities: the only one of floats, or the only one that says so."""
    outputs = {one.name: one for one in model.graph.output}
    if name is not None:
        if name not in outputs:
            raise InvalidParameter("probability_output", f"be one of {list(outputs)}", shown(name))
        return outputs[name]
    floats = [one for one in outputs.values() if _is_float(onnx, one) or _zipmap(model, one.name) is not None]
    telling = [one for one in floats if "prob" in one.name.lower()]
    for found in (floats, telling):
        if len(found) == 1:
            return found[0]
    raise InvalidParameter(
        "append_to",
        "have one output of probabilities",
        f"{[one.name for one in floats]} of {list(outputs)}",
        "name it with probability_output",
    )


def _is_float(onnx: Any, output: Any) -> bool:
    return output.type.tensor_type.elem_type in (onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE)


def _zipmap(model: Any, name: str) -> Any:
    """Return the node that turns rows of probabilities into dictionaries, if it makes this output."""
    for node in model.graph.node:
        if node.op_type == "ZipMap" and name in node.output:
            return node
    return None


def _without_zipmap(model: Any, output: Any) -> tuple[str, list[Any] | None]:
    """Return the tensor of probabilities, and the classes that the model knows them by."""
    node = _zipmap(model, output.name)
    if node is None:
        return output.name, _known_classes(model, output.name)
    labels = _attribute_labels(node, "classlabels_int64s", "classlabels_strings")
    name = str(node.input[0])
    model.graph.node.remove(node)
    return name, labels


def _attribute_labels(node: Any, *names: str) -> list[Any] | None:
    for attribute in node.attribute:
        if attribute.name in names and attribute.ints:
            return list(attribute.ints)
        if attribute.name in names and attribute.strings:
            return [text.decode("utf-8") for text in attribute.strings]
    return None


def _known_classes(model: Any, name: str) -> list[Any] | None:
    """Return the classes of the classifier that makes a tensor, if it is one and says so."""
    for node in model.graph.node:
        if name in node.output:
            return _attribute_labels(
                node, "classlabels_ints", "classlabels_int64s", "classlabels_strings", "cats_int64s", "cats_strings"
            )
    return None


def _check_classes(found: list[Any] | None, rule: Rule) -> None:
    if found is None or rule.multioutput:
        return
    labels = list(labels_of(rule)[0])[: int(rule.n_classes[0])]
    wanted = [int(label) if isinstance(label, bool) else label for label in labels]
    if len(found) != len(labels) or any(a != b for a, b in zip(found, wanted, strict=True)):
        # Codes stand for labels that ONNX has no type for, such as floats.
        if found == list(range(len(labels))) and not all(isinstance(label, (int, str)) for label in labels):
            return
        raise InvalidParameter(
            "append_to", f"have the classes of the rule, in the same order, {shown(labels)}", shown(found)
        )


def _tensor(onnx: Any, model: Any, name: str, output: Any) -> tuple[Any, list[Any]]:
    """Return dtype and shape of a tensor, inferred where the model does not say."""
    known = output if output.name == name else None
    if known is None or not known.type.tensor_type.HasField("shape"):
        graph = onnx.shape_inference.infer_shapes(model).graph
        known = next((one for one in (*graph.value_info, *graph.output) if one.name == name), None)
    if known is None:  # ZipMap takes nothing but this
        return np.float32, ["N", None]
    tensor = known.type.tensor_type
    if tensor.elem_type not in (onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE):
        raise InvalidParameter(
            "append_to",
            f"return probabilities as a tensor of floats, which output {output.name!r} is not",
            remedy=(
                "name another one with probability_output, or convert the classifier with options={'zipmap': False}"
            ),
        )
    dims = [dim.dim_value or dim.dim_param or None for dim in tensor.shape.dim] if tensor.HasField("shape") else []
    return (np.float32 if tensor.elem_type == onnx.TensorProto.FLOAT else np.float64), dims


def _check_shape(shape: list[Any], rule: Rule, positive: bool | None, output: Any) -> bool:
    """Return whether probabilities are of the second of two classes alone, and refuse other shapes."""
    if positive is None and not rule.multioutput and len(shape) == 2 and shape[1] == 1:
        positive = True
    if positive is None and rule.multioutput and len(shape) == 3:
        positive = False
    positive = read_positive(rule, positive)
    wanted: list[Any] = [rule.n_outputs] if rule.multioutput or positive else [rule.width]
    if rule.multioutput and not positive:
        wanted.append(rule.width)
    found = shape[1:]
    if len(found) != len(wanted) or any(isinstance(a, int) and a != b for a, b in zip(found, wanted, strict=True)):
        raise InvalidParameter(
            "append_to",
            f"return probabilities of shape {['N', *wanted]}, as the rule needs",
            f"{['N', *found]} from output {output.name!r}",
        )
    return positive


def _prefix(model: Any) -> str:
    names = {name for node in model.graph.node for name in (*node.output, node.name)}
    names |= {one.name for one in model.graph.initializer}
    prefix = "metricwise_"
    while any(name.startswith(prefix) for name in names):
        prefix += "again_"
    return prefix


def _check_names(model: Any, added: list[Any]) -> None:
    taken = {name for node in model.graph.node for name in node.output} | {one.name for one in model.graph.input}
    for one in added:
        if one.name in taken:
            raise InvalidParameter(
                "append_to", f"not have a tensor named {one.name!r}, which the rule uses", remedy="rename it"
            )
