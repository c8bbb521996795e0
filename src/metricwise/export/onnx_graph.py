"""Rules as ONNX models, alone or behind a classifier.

Owns what goes in and comes out; the arithmetic is in `graph`.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from .._version import __version__
from ..core.errors import InvalidParameter, entry_point, shown
from ..core.files import write_bytes
from ..rules.base import Rule
from .appended import behind
from .graph import Builder
from .onnx_nodes import decide, import_onnx, key_input, read_positive
from .outputs import read_rule

__all__ = ["to_onnx"]

_OPSET = 18
_IR_VERSION = 9  # goes with opset 18: onnxruntime 1.14 and later
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
    runtimes differ in the last bit of exp and log. The model does not check its input: probabilities that
    ``rule.predict`` rejects, such as NaN, must not be passed to it.

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
        Type of the input probabilities; with `append_to`, that of the classifier is used.
    positive : bool, optional
        Whether the input has only the probability of the second of two classes. The default is True for several outputs
        with two classes each.
    probability_output : str, optional
        Name of the classifier's output that holds probabilities, if it is ambiguous.

    Returns
    -------
    onnx.ModelProto
        The input is "probabilities": (N, K) for one output, or (N, 1) if `positive`; for several outputs (N, M, K),
        with 0 beyond the classes of an output, or (N, M) if `positive`. A mixture has a second input, "keys", integers
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
        model = behind(onnx, rule, append_to, probability_output, positive)
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
    inputs = [onnx.helper.make_tensor_value_info("probabilities", kind, shape)]
    builder = Builder(onnx)
    outputs = decide(builder, rule, "probabilities", _DTYPES[dtype], positive)
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
