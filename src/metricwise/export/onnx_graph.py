"""Rules as ONNX models, alone or appended to a classifier.

The arithmetic is in `graph`.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from .._version import __version__
from ..core.errors import InvalidParameter, InvalidType, entry_point, shown
from ..core.files import write_bytes
from ..rules.base import Rule
from .graph import Builder, decide, import_onnx, key_input, read_positive
from .outputs import input_name, input_words, labels_of, read_rule

__all__ = ["to_onnx"]

_OPSET = 18
_IR_VERSION = 9  # goes with opset 18: onnxruntime 1.14 and later
_MIN_OPSET, _MIN_OPSET_OF_DRAWS = 13, 18
_MIN_IR_VERSION = 8  # of opset 18
_DTYPES = {"float64": np.float64, "float32": np.float32}


@entry_point("to_onnx")
def to_onnx(
    rule: Any,
    path: str | os.PathLike[str] | None = None,
    append_to: Any = None,
    *,
    dtype: str = "float64",
    positive: bool | None = None,
    probability_output: str | None = None,
) -> Any:
    """Export a rule as an ONNX model.

    Scores are computed in double precision and in the same order as in ``rule.predict``, so that decisions are the
    same, even at ties; after recalibration they may differ if two scores are within 1e-9 of each other, because
    runtimes differ in the last bit of exp and log. Two classes on logits or scores are compared with the threshold of
    the rule, and have no probabilities in between. The model does not check its input: numbers that ``rule.predict``
    rejects, such as NaN, must not be passed to it.

    Parameters
    ----------
    rule : WeightedRule, MixtureRule, Solution, path, JSON text, or dict
        The rule, or a Solution, file, JSON text or dict that contains it.
    path : path, optional
        If given, the model is also written to this file, completely or not at all.
    append_to : onnx.ModelProto or path, optional
        A classifier to which the rule is appended. Its classes must be those of the rule, in the same order; this is
        checked if the model names them, as those from scikit-learn do. A ZipMap at its end is removed.
    dtype : {"float64", "float32"}, default="float64"
        Type of the input; with `append_to`, that of the classifier is used.
    positive : bool, optional
        Whether the input has only the probability, log-odds or score of the second of two classes. The default is True
        for several outputs with two classes each. A rule of cut points always has one score per output.
    probability_output : str, optional
        Name of the classifier's output that holds probabilities, or what else the rule takes, if it is ambiguous. For a
        rule on logits or scores, an output that is named like probabilities must be named here.

    Returns
    -------
    onnx.ModelProto
        The input is "probabilities", "logits", "log_probabilities" or "scores", as `rule.input` says: (N, K) for one
        output, or (N, 1) if `positive`; for several outputs (N, M, K), with 0 beyond the classes of an output, or
        (N, M) if `positive`. A mixture has a second input, "keys", integers
        of shape (N,): with row positions as keys, decisions are those of ``rule.predict``. The first output is
        "decisions", labels of shape (N,) or (N, M); classes False and True are 0 and 1 if the rule abstains with an
        integer. If the labels of outputs have different types, each output has a tensor named like it. With
        `append_to`, the inputs are those of the classifier, and its probabilities are also returned.

    See Also
    --------
    register_converters : Register converters for metricwise's estimators with skl2onnx.
    to_sql : Export a rule as an SQL expression.

    Examples
    --------
    >>> import metricwise as mw
    >>> model = mw.export.to_onnx(mw.WeightedRule.from_weights([1, 2, 3]))
    >>> [one.name for one in model.graph.input], [one.name for one in model.graph.output]
    (['probabilities'], ['decisions'])
    """
    onnx = import_onnx()
    rule = read_rule(rule)
    if append_to is None:
        model = _alone(onnx, rule, dtype, positive)
    else:
        model = _appended(onnx, rule, append_to, probability_output, positive)
    onnx.checker.check_model(model, full_check=True)
    if path is not None:
        write_bytes(path, model.SerializeToString())
    return model


def _alone(onnx: Any, rule: Rule, dtype: str, positive: bool | None) -> Any:
    if dtype not in _DTYPES:
        raise InvalidParameter("dtype", "be 'float64' or 'float32'", shown(dtype))
    positive = read_positive(rule, positive)
    kind = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(_DTYPES[dtype]))
    shape: list[Any] = ["N", rule.n_outputs] if rule.multioutput or positive else ["N", rule.width]
    if rule.multioutput and not positive:
        shape.append(rule.width)
    name = input_name(rule)
    inputs = [onnx.helper.make_tensor_value_info(name, kind, shape)]
    builder = Builder(onnx)
    outputs = decide(builder, rule, name, _DTYPES[dtype], positive)
    inputs += key_input(onnx, rule)
    graph = onnx.helper.make_graph(builder.nodes, "metricwise_rule", inputs, outputs, list(builder.constants.values()))
    graph.doc_string = rule.describe()
    return onnx.helper.make_model(
        graph,
        opset_imports=[onnx.helper.make_opsetid("", _OPSET)],
        ir_version=_IR_VERSION,
        producer_name="metricwise",
        producer_version=__version__,
    )


def _appended(onnx: Any, rule: Rule, classifier: Any, name: str | None, positive: bool | None) -> Any:
    """Return a copy of a classifier, an onnx.ModelProto or its path, that decides by the rule."""
    model = _of_opset(onnx, _copy(onnx, classifier), rule)
    output = _find_output(onnx, model, name, rule)
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
    least = _MIN_OPSET_OF_DRAWS if rule.is_randomized else _MIN_OPSET
    versions: dict[str, int] = {}
    for opset in model.opset_import:  # some converters declare one twice
        domain = "" if opset.domain == "ai.onnx" else opset.domain
        versions[domain] = max(opset.version, versions.get(domain, 0))
    declared = versions.setdefault("", least)
    del model.opset_import[:]
    model.opset_import.extend(onnx.helper.make_opsetid(domain, version) for domain, version in versions.items())
    model.ir_version = max(model.ir_version, _MIN_IR_VERSION)
    if declared >= least:
        return model
    try:
        return onnx.version_converter.convert_version(model, least)
    except RuntimeError as error:  # an operator that it has no adapter for
        raise InvalidParameter(
            "append_to",
            f"have opset {least} or later for a {type(rule).__name__}",
            f"{declared}, which cannot be converted ({error})",
            f"convert the classifier with target_opset={least}",
        ) from None


def _find_output(onnx: Any, model: Any, name: str | None, rule: Rule) -> Any:
    """Return the output that holds what the rule takes: the only one of floats, or the only one that says so."""
    outputs = {output.name: output for output in model.graph.output}
    if name is not None:
        if name not in outputs:
            raise InvalidParameter("probability_output", f"be one of {list(outputs)}", shown(name))
        return outputs[name]
    floats = [
        output for output in outputs.values() if _is_float(onnx, output) or _zipmap(model, output.name) is not None
    ]
    named = [output for output in floats if "prob" in output.name.lower()]
    others = [output for output in floats if output not in named]
    # What is called probabilities is hardly what a rule on logits takes.
    for candidates in (others,) if rule.schema.input.is_logits else (floats, named):
        if len(candidates) == 1:
            return candidates[0]
    raise InvalidParameter(
        "append_to",
        f"have one output of {input_words(rule)}",
        f"{[output.name for output in floats]} of {list(outputs)}",
        f"set probability_output to the one that holds {input_words(rule)}; probabilities are none"
        if rule.schema.input.is_logits
        else "name it with probability_output",
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


def _check_classes(classes: list[Any] | None, rule: Rule) -> None:
    if classes is None or rule.multioutput:
        return
    labels = list(labels_of(rule)[0])[: int(rule.n_classes[0])]
    expected = [int(label) if isinstance(label, bool) else label for label in labels]
    if len(classes) != len(labels) or any(a != b for a, b in zip(classes, expected, strict=True)):
        # Codes stand for labels that ONNX has no type for, such as floats.
        if classes == list(range(len(labels))) and not all(isinstance(label, (int, str)) for label in labels):
            return
        raise InvalidParameter(
            "append_to", f"have the classes of the rule, in the same order, {shown(labels)}", shown(classes)
        )


def _tensor(onnx: Any, model: Any, name: str, output: Any) -> tuple[Any, list[Any]]:
    """Return dtype and shape of a tensor, inferred where the model does not say."""
    value_info = output if output.name == name else None
    if value_info is None or not value_info.type.tensor_type.HasField("shape"):
        graph = onnx.shape_inference.infer_shapes(model).graph
        value_info = next(
            (candidate for candidate in (*graph.value_info, *graph.output) if candidate.name == name), None
        )
    if value_info is None:  # ZipMap takes nothing but this
        return np.float32, ["N", None]
    tensor = value_info.type.tensor_type
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
    expected: list[Any] = [rule.n_outputs] if rule.multioutput or positive else [rule.width]
    if rule.multioutput and not positive:
        expected.append(rule.width)
    actual = shape[1:]
    if len(actual) != len(expected) or any(
        isinstance(a, int) and a != b for a, b in zip(actual, expected, strict=True)
    ):
        raise InvalidParameter(
            "append_to",
            f"return {input_words(rule)} of shape {['N', *expected]}, as the rule needs",
            f"{['N', *actual]} from output {output.name!r}",
        )
    return positive


def _prefix(model: Any) -> str:
    names = {name for node in model.graph.node for name in (*node.output, node.name)}
    names |= {tensor.name for tensor in model.graph.initializer}
    prefix = "metricwise_"
    while any(name.startswith(prefix) for name in names):
        prefix += "again_"
    return prefix


def _check_names(model: Any, added: list[Any]) -> None:
    taken = {name for node in model.graph.node for name in node.output} | {tensor.name for tensor in model.graph.input}
    for tensor in added:
        if tensor.name in taken:
            raise InvalidParameter(
                "append_to", f"not have a tensor named {tensor.name!r}, which the rule uses", remedy="rename it"
            )
