"""Nodes of an ONNX graph that decide as a rule does, from probabilities, logits or scores to labels.

Sums are written out in double precision, because the order within MatMul and ReduceSum is not defined. Operators are
those of opset 13; draws of mixtures need opset 18.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InvalidParameter, shown
from ..core.inputs import MAX_LOGIT
from ..rules.base import Rule
from ..rules.mixture import MixtureRule
from ..rules.partitioned import PartitionedRule
from ..rules.weighted import WeightedRule
from ..rules.writer import RuleWriter
from . import standalone
from .outputs import (
    IntervalTable,
    Label,
    check_text,
    column_counts,
    labels_of,
    needs_extra,
    of_one_type,
    output_names,
)

__all__ = ["Builder", "decide", "import_onnx", "key_input", "read_positive"]

_STEP = 0x9E3779B97F4A7C15
_MIXERS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))


@dataclass(frozen=True)
class Builder:
    """Nodes and constants, named with a prefix that nothing else in the graph has."""

    onnx: Any
    prefix: str = ""
    nodes: list[Any] = field(default_factory=list)
    constants: dict[str, Any] = field(default_factory=dict)

    # --------------------------------------------------------------------------------------------------- plumbing

    def add(self, operator: str, *inputs: str, output: str | None = None, **attributes: Any) -> str:
        """Add a node of one output, and return the name of that."""
        name = output or f"{self.prefix}{operator.lower()}_{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(operator, inputs, [name], name=f"{name}_node", **attributes))
        return name

    def constant(self, value: Any) -> str:
        """Add a constant, once for equal ones, and return its name."""
        array = np.asarray(value)
        key = repr((array.dtype.str, array.shape, array.tolist()))
        if key not in self.constants:
            name = f"{self.prefix}constant_{len(self.constants)}"
            self.constants[key] = self.onnx.numpy_helper.from_array(array, name)
        return str(self.constants[key].name)

    def cast(self, value: str, dtype: Any) -> str:
        kind = self.onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        return self.add("Cast", value, to=kind)

    def slices(self, value: str, n: int) -> list[str]:
        """The n slices of size 1 along the last axis, which stays."""
        return [self.add("Gather", value, self.constant(np.array([i])), axis=-1) for i in range(n)]

    def chain(self, operator: str, parts: Sequence[str]) -> str:
        """Combine in order."""
        result = parts[0]
        for part in parts[1:]:
            result = self.add(operator, result, part)
        return result

    # -------------------------------------------------------------------------------------------------- decisions

    def codes(self, rule: Rule, eta: str, positive: bool, key: str | None) -> str:
        """Add the decisions of a rule.

        Parameters
        ----------
        eta : str
            Name of the probabilities or logits, double: (N, M, K), or (N, M, 1) if `positive`: of the second of two
            classes, or of a score that decides alone.
        key : str or None
            Name of the keys of rows, int64 of shape (N,): for mixtures.

        Returns
        -------
        str
            Name of the codes, int64 of shape (N, M).
        """
        return rule.accept(_Codes(self, eta, positive, key))

    def weighted(self, rule: WeightedRule, eta: str, positive: bool) -> str:
        """The decisions of a weighted rule."""
        if rule.schema.input.graded or (rule.schema.input.is_logits and (rule.n_classes == 2).all()):
            tables = [IntervalTable.of_logits(rule, m) for m in range(rule.n_outputs)]
            return self.along([table for table in tables if table is not None], eta, positive)
        classes = [self.add("Sub", self.constant(1.0), eta), eta] if positive else self.slices(eta, rule.width)
        if rule.link is not None:
            classes = self.recalibrated(rule, classes, positive)
        scores = self.scores(rule, classes, positive)
        real = np.arange(rule.schema.decision_width) < rule.schema.n_decisions[:, None]
        if not real.all():  # padding is never predicted
            scores = self.add("Where", self.constant(real), scores, self.constant(np.inf))
        return self.add("ArgMin", scores, axis=-1, keepdims=0, select_last_index=0)

    def along(self, tables: Sequence[IntervalTable], numbers: str, positive: bool) -> str:
        """The decisions of outputs along one number each, or along the difference of two: cuts below it are counted."""
        z = numbers if positive else self.add("Sub", *reversed(self.slices(numbers, 2)))
        width = max(1, *(len(table.cuts) for table in tables))
        cuts = np.full((len(tables), width), np.inf)
        codes = np.zeros((len(tables), width + 1), dtype=np.int64)
        for m, table in enumerate(tables):
            n_cuts = len(table.cuts)
            cuts[m, :n_cuts], codes[m, : n_cuts + 1] = table.cuts, table.codes
        below = self.cast(self.add("Greater", z, self.constant(cuts)), np.int64)
        count = self.add("ReduceSum", below, self.constant(np.array([-1])), keepdims=0)
        if (codes == np.arange(width + 1)).all():
            return count
        place = self.add("Add", count, self.constant(np.arange(len(tables)) * (width + 1)))
        return self.add("Gather", self.constant(codes.ravel()), place, axis=0)

    def scores(self, rule: WeightedRule, classes: list[str], positive: bool) -> str:
        """The expected loss of each decision, (N, M, D)."""
        if not rule.loss.is_diagonal:
            (full,) = rule.loss.arrays
            terms = [self.add("Mul", eta, self.constant(full[:, i])) for i, eta in enumerate(classes)]
            return self.chain("Add", terms)
        diagonal, offset = rule.loss.arrays
        # A decision that is no class has probability 0.
        none = [self.add("Sub", classes[0], classes[0])] * (diagonal.shape[-1] - len(classes))
        scores = self.add("Mul", self.add("Concat", *classes, *none, axis=-1), self.constant(diagonal))
        if not offset.any():
            return scores
        total = self.constant(1.0) if positive else self.chain("Add", classes)
        return self.add("Add", scores, self.add("Mul", total, self.constant(offset)))

    def recalibrated(self, rule: WeightedRule, classes: list[str], positive: bool) -> list[str]:
        """``softmax(t * log(max(eta, floor)) + c)``, class by class; of logits, which may be infinite, no log."""
        assert rule.link is not None
        link, real = rule.link, np.arange(rule.width)[:, None] < rule.n_classes
        logits = []
        for j, eta in enumerate(classes):
            raised = self.finite(eta) if link.of_logits else self.log(eta, link.floor)
            scaled = self.add("Mul", raised, self.constant(link.temperature[:, None]))
            bias = np.where(real[j], link.bias[:, j], -np.inf)[:, None]
            logits.append(self.add("Add", scaled, self.constant(bias)))
        highest = self.chain("Max", logits)
        powers = [self.add("Exp", self.add("Sub", logit, highest)) for logit in logits]
        scale = self.add("Div", self.constant(1.0), self.chain("Add", powers))
        if positive:
            second = self.add("Mul", powers[1], scale)
            return [self.add("Sub", self.constant(1.0), second), second]
        return [self.add("Mul", power, scale) for power in powers]

    def log(self, eta: str, floor: float) -> str:
        return self.add("Log", self.add("Max", eta, self.constant(floor)))

    def finite(self, logits: str) -> str:
        limit = MAX_LOGIT[8]
        return self.add("Min", self.add("Max", logits, self.constant(-limit)), self.constant(limit))

    def normalized(self, eta: str, k: int, dtype: Any) -> str:
        """Scores divided by the sum of their row, in double precision, then rounded as the scores are."""
        shares = self.add("Div", eta, self.chain("Add", self.slices(eta, k)))
        return shares if np.dtype(dtype) == np.float64 else self.cast(self.cast(shares, dtype), np.float64)

    # ------------------------------------------------------------------------------------------------------ draws

    def uniforms(self, seed: int, key: str, n_outputs: int) -> str:
        """The numbers of rows and outputs that mixtures draw by, (N, M): SplitMix64 on unsigned integers."""
        column = self.add("Unsqueeze", self.cast(key, np.uint64), self.constant(np.array([1])))
        origin = int(standalone.mixed(seed + _STEP))  # type: ignore[no-untyped-call]  # for any Python
        moved = self.add("Add", self.add("Mul", column, self.bits(_STEP)), self.bits(origin))
        steps = np.arange(1, n_outputs + 1, dtype=np.uint64) * np.uint64(_STEP)
        bits = self.mixed(self.add("Add", self.mixed(moved), self.constant(steps)))
        high = self.add("BitShift", bits, self.bits(11), direction="RIGHT")
        return self.add("Mul", self.cast(high, np.float64), self.constant(2.0**-53))

    def mixed(self, state: str) -> str:
        for shift, factor in _MIXERS:
            folded = self.add("BitwiseXor", state, self.add("BitShift", state, self.bits(shift), direction="RIGHT"))
            state = self.add("Mul", folded, self.bits(factor))
        return self.add("BitwiseXor", state, self.add("BitShift", state, self.bits(31), direction="RIGHT"))

    def bits(self, value: int) -> str:
        return self.constant(np.array(value, dtype=np.uint64))

    # ----------------------------------------------------------------------------------------------------- labels

    def labels(self, codes: str, tables: Sequence[NDArray[Any]], output: str, several: bool) -> str:
        """Labels of codes (N, M): of shape (N, M), or (N,) of a single output."""
        if not several:
            column = self.add("Squeeze", codes, self.constant(np.array([1])))
            return self.add("Gather", self.constant(tables[0]), column, output=output, axis=0)
        starts = np.concatenate([[0], np.cumsum([len(table) for table in tables])[:-1]])
        position = self.add("Add", codes, self.constant(starts.astype(np.int64)))
        return self.add("Gather", self.constant(np.concatenate(list(tables))), position, output=output, axis=0)


@dataclass(frozen=True)
class _Codes(RuleWriter[str]):
    """The nodes that decide by each kind of rule; see :meth:`Builder.codes`."""

    builder: Builder
    eta: str
    positive: bool
    key: str | None
    target = "the graph"

    def weighted(self, rule: WeightedRule) -> str:
        return self.builder.weighted(rule, self.eta, self.positive)

    def mixture(self, rule: MixtureRule) -> str:
        assert self.key is not None
        builder = self.builder
        number = builder.uniforms(rule.seed, self.key, rule.n_outputs)
        result = self.weighted(rule.rules[0])
        for r, part in enumerate(rule.rules[1:]):
            beyond = builder.add("Not", builder.add("Less", number, builder.constant(rule.edges[:, r])))
            result = builder.add("Where", beyond, self.weighted(part), result)
        return result

    def cut_points(self, rule: Any) -> str:
        tables = [IntervalTable.of_cut_points(rule, m) for m in range(rule.n_outputs)]
        return self.builder.along(tables, self.eta, self.positive)

    def grouped(self, rule: PartitionedRule) -> str:
        noun = rule.known.noun
        return self.other(
            rule,
            f"the graph has no input for the {noun} of a row",
            f"export the rule of each {noun}, rule.by_{noun}[name], or use to_sql or to_python",
        )


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
    """Whether every output has one number: of the second of two classes, or a score that decides alone."""
    counts = column_counts(rule)
    if positive is None:
        return all(count[0] == 1 for count in counts)
    if positive and not all(1 in count for count in counts):
        reason = "an output has more than two classes or normalize is True"
        if rule.schema.input.kind == "log_proba":
            reason = "the input is log-probabilities, which are of all classes"
        raise InvalidParameter("positive", f"be False if {reason}", "True")
    if not positive and any(count == (1,) for count in counts):
        raise InvalidParameter("positive", "be True if one score decides among more than two classes", "False")
    return bool(positive)


def key_input(onnx: Any, rule: Rule) -> list[Any]:
    """Return the input by which rules are drawn, of a mixture."""
    if not rule.is_randomized:
        return []
    return [onnx.helper.make_tensor_value_info("keys", onnx.TensorProto.INT64, ["N"])]


def decide(
    builder: Builder, rule: Rule, proba: str, dtype: Any, positive: bool, output: str = "decisions"
) -> list[Any]:
    """Add the nodes from the numbers of rows, as they come in, to labels; return the descriptions of the outputs."""
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
