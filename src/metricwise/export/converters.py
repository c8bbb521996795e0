"""Converters of skl2onnx for classifiers that decide by a rule.

skl2onnx converts the estimator inside, and the rule is appended to its probabilities. The classifiers add themselves
with `convertible`: this module does not know them.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InvalidParameter, argument, entry_point
from ..rules.base import Rule
from .graph import Builder, decide, import_onnx
from .outputs import input_words, labels_of, needs_extra, of_one_type

__all__ = ["convertible", "register_converters"]

_OPTIONS = {"zipmap": [True, False, "columns"], "nocl": [True, False], "output_class_labels": [False, True]}

C = TypeVar("C", bound=type)


_convertible: list[type] = []
_is_active = False  # whether `register_converters` was called


def convertible(classifier: C) -> C:
    """Class decorator: `register_converters` covers this classifier, whether it is called before or after."""
    _convertible.append(classifier)
    if _is_active:
        _register(classifier)
    return classifier


def _register(classifier: type) -> None:
    from skl2onnx import update_registered_converter

    name = f"Metricwise{classifier.__name__}"
    update_registered_converter(classifier, name, _set_shapes, _convert, parser=_parse, options=_OPTIONS)


@entry_point("register_converters")
def register_converters() -> None:
    """Register converters for metricwise's classifiers with skl2onnx.

    After this call, `skl2onnx.to_onnx` and `skl2onnx.convert_sklearn` accept MetricOptimalClassifierCV and
    FixedRuleClassifier, alone or at the end of a pipeline, like any other classifier: the label that is returned is the
    decision of the rule. Estimators with several outputs are converted if they are fitted output by output; their
    probabilities are returned as one tensor (N, M, K).

    See Also
    --------
    to_onnx : Convert a rule alone, or append it to a classifier that is already in ONNX.

    Examples
    --------
    >>> import numpy as np
    >>> import skl2onnx
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> import metricwise as mw
    >>> X, y = load_iris(return_X_y=True)
    >>> rule = mw.WeightedRule.from_weights([1, 2, 3])
    >>> model = mw.FixedRuleClassifier(LogisticRegression(max_iter=1000), rule).fit(X, y)
    >>> mw.export.register_converters()
    >>> onnx_model = skl2onnx.to_onnx(model, X[:1], options={"zipmap": False})
    >>> [one.name for one in onnx_model.graph.output]
    ['label', 'probabilities']
    """
    if find_spec("skl2onnx") is None:
        raise needs_extra("skl2onnx", "onnx")
    global _is_active
    _is_active = True
    for classifier in _convertible:
        _register(classifier)


def _parse(scope: Any, model: Any, inputs: Any, custom_parsers: Any = None) -> Any:
    """Declare what comes out: labels and probabilities, the latter as dictionaries only for one output."""
    from skl2onnx._parse import _parse_sklearn_classifier, _parse_sklearn_simple_model

    _, rule = _fitted(model)
    parse = _parse_sklearn_simple_model if rule.multioutput else _parse_sklearn_classifier
    return parse(scope, model, inputs, custom_parsers=custom_parsers)


def _set_shapes(operator: Any) -> None:
    from skl2onnx.common import data_types

    _, rule = _fitted(operator.raw_operator)
    kinds = {type(label) for labels in labels_of(rule) for label in of_one_type(labels)}
    if kinds not in ({str}, {int}, {bool}):
        names = sorted(kind.__name__ for kind in kinds)
        raise InvalidParameter(
            "labels", "all be text, integers or booleans in skl2onnx", names, "use to_onnx with append_to"
        )
    n_rows = operator.inputs[0].get_first_dimension()
    label = data_types.StringTensorType if kinds == {str} else data_types.Int64TensorType
    operator.outputs[0].type = label([n_rows, rule.n_outputs] if rule.multioutput else [n_rows])
    shape = [n_rows, rule.n_outputs, rule.width] if rule.multioutput else [n_rows, rule.width]
    operator.outputs[1].type = data_types.guess_tensor_type(operator.inputs[0].type).__class__(shape)


def _convert(scope: Any, operator: Any, container: Any) -> None:
    """Convert the estimators inside, and put the rule behind their probabilities."""
    estimator, rule = _fitted(operator.raw_operator)
    onnx = import_onnx()
    builder = Builder(onnx, prefix=f"{scope.get_unique_operator_name('metricwise')}_")
    parts = _estimators(estimator, rule)
    blocks = [
        _aligned(builder, _probabilities(scope, operator, part), part.classes_, labels)
        for part, labels in zip(parts, rule.classes, strict=True)
    ]
    dtype = np.float64 if "Double" in type(operator.outputs[1].type).__name__ else np.float32
    proba = _stacked(builder, blocks, rule, dtype) if rule.multioutput else blocks[0]
    builder.add("Identity", proba, output=operator.outputs[1].full_name)
    (labels,) = decide(builder, rule, proba, dtype, False, f"{builder.prefix}decisions")
    if type(of_one_type(labels_of(rule)[0])[0]) is bool:  # skl2onnx has integers for these
        builder.add("Cast", labels.name, output=operator.outputs[0].full_name, to=onnx.TensorProto.INT64)
    else:
        builder.add("Identity", labels.name, output=operator.outputs[0].full_name)
    _hand_over(onnx, builder, container)


def _fitted(model: Any) -> tuple[Any, Rule]:
    estimator, rule = model._fitted()
    if rule.schema.input.is_logits:
        raise InvalidParameter(
            "input",
            problem=(
                f"a {type(model).__name__} that decides by {input_words(rule)} cannot be converted, "
                "because skl2onnx appends rules to probabilities"
            ),
            remedy=f"fit it with {argument('response', 'predict_proba')}, or use to_onnx with append_to",
        )
    if rule.is_randomized:
        raise InvalidParameter(
            "rules",
            problem=(
                f"a {type(model).__name__} that draws rules cannot be converted, because skl2onnx has no row keys"
            ),
            remedy=f"use to_onnx with append_to, or fit with {argument('randomized', False)}",
        )
    return estimator, rule


def _estimators(estimator: Any, rule: Rule) -> list[Any]:
    """Return the estimator of each output."""
    from sklearn.frozen import FrozenEstimator

    while isinstance(estimator, FrozenEstimator):
        estimator = estimator.estimator
    if not rule.multioutput:
        return [estimator]
    parts = getattr(estimator, "estimators_", None)
    fitted_apart = type(estimator).__name__ in ("PerOutputClassifier", "MultiOutputClassifier")
    if not fitted_apart or parts is None or any(part is None for part in parts):
        raise InvalidParameter(
            "",
            problem=(
                "several outputs must be fitted one by one, as by MultiOutputClassifier, each with labels, "
                f"got {type(estimator).__name__}"
            ),
            remedy="convert the estimator and use to_onnx with append_to",
        )
    return list(parts)


def _probabilities(scope: Any, operator: Any, estimator: Any) -> str:
    """Let skl2onnx convert an estimator, and return the name of its probabilities."""
    from skl2onnx._supported_operators import sklearn_operator_name_map
    from skl2onnx.common.data_types import Int64TensorType

    estimator = getattr(estimator, "converted_as", estimator)  # of a wrapper that encodes labels
    if type(estimator) not in sklearn_operator_name_map:
        raise InvalidParameter(
            "", problem=f"skl2onnx has no converter for {type(estimator).__name__}", remedy="register one first"
        )
    inner = scope.declare_local_operator(sklearn_operator_name_map[type(estimator)], estimator)
    inner.inputs = operator.inputs
    label = scope.declare_local_variable("inner_label", Int64TensorType())
    proba = scope.declare_local_variable("inner_proba", operator.outputs[1].type.__class__())
    inner.outputs.append(label)
    inner.outputs.append(proba)
    return str(proba.onnx_name)


def _aligned(builder: Builder, proba: str, classes: Any, rule_classes: NDArray[Any]) -> str:
    """Return probabilities with columns in the order of the rule's classes."""
    estimator_labels, labels = np.asarray(classes).tolist(), rule_classes.tolist()
    if estimator_labels == labels:
        return proba
    if sorted(map(str, estimator_labels)) != sorted(map(str, labels)):
        raise InvalidParameter(
            "estimator", problem=f"the estimator must have the classes of the rule, {labels}, got {estimator_labels}"
        )
    order = np.array([estimator_labels.index(label) for label in labels])
    return builder.add("Gather", proba, builder.constant(order), axis=1)


def _stacked(builder: Builder, blocks: list[str], rule: Rule, dtype: Any) -> str:
    """Probabilities of all outputs, (N, M, K), with 0 beyond the classes of an output."""
    slices = []
    for block, k in zip(blocks, rule.n_classes, strict=True):
        if k < rule.width:
            pads = np.array([0, 0, 0, rule.width - int(k)])
            block = builder.add("Pad", block, builder.constant(pads), builder.constant(np.zeros((), dtype)))
        slices.append(builder.add("Unsqueeze", block, builder.constant(np.array([1]))))
    return builder.add("Concat", *slices, axis=1)


def _hand_over(onnx: Any, builder: Builder, container: Any) -> None:
    """Move nodes and constants into the container of skl2onnx."""
    for tensor in builder.constants.values():
        values = onnx.numpy_helper.to_array(tensor)
        container.add_initializer(tensor.name, tensor.data_type, list(tensor.dims), values.ravel().tolist())
    for node in builder.nodes:
        attributes = {attribute.name: onnx.helper.get_attribute_value(attribute) for attribute in node.attribute}
        container.add_node(
            node.op_type, list(node.input), list(node.output), name=node.name, op_version=13, **attributes
        )
