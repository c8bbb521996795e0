"""Labels, losses and link of each output of a rule, which every export writes. Must not know any format."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InvalidParameter, InvalidType, MissingDependency
from ..rules.base import Rule
from ..rules.codec import json_labels, label_array
from ..rules.decisions import bisect_score
from ..rules.forms import Region, Threshold, form_of
from ..rules.load import as_rule
from ..rules.partitioned import PartitionedRule
from ..rules.weighted import WeightedRule
from ..rules.writer import RuleWriter
from . import standalone

__all__ = [
    "DRAW_MIXERS",
    "DRAW_STEP",
    "IntervalTable",
    "Label",
    "LinkTable",
    "OutputTable",
    "TensorWriter",
    "check_text",
    "column_counts",
    "draw_origin",
    "group_labels",
    "input_name",
    "input_words",
    "interval_arrays",
    "interval_tables",
    "labels_of",
    "needs_extra",
    "of_one_type",
    "output_names",
    "read_rule",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Label = str | int | float | bool
T = TypeVar("T")

# SplitMix64, by which mixtures draw: the step of its state, and the shifts and factors of its mixer, which ends with a
# shift by 31; see rules/mixture.py.
DRAW_STEP = 0x9E3779B97F4A7C15
DRAW_MIXERS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))

_INPUTS = ("sensitive_features", "segments", "cost")  # writers use or refuse them
_INPUT_NAMES = {"log_proba": "log_probabilities"}  # of other kinds, the kind is the name


@dataclass(frozen=True)
class LinkTable:
    """``softmax(temperature * log(max(eta, floor)) + bias)`` of one output; of logits without log and floor."""

    temperature: float
    bias: tuple[float, ...]
    floor: float

    @property
    def of_logits(self) -> bool:
        """Whether it maps logits, log-probabilities or scores."""
        return self.floor == 0.0


@dataclass(frozen=True)
class OutputTable:
    """One output of a weighted rule: K classes, D decisions, D >= K.

    Parameters
    ----------
    labels : tuple of D labels
        Of the decisions; the first K are the classes.
    n_classes : int
        K.
    diagonal, offset : tuple of D floats, or None
        The score of decision j is ``diagonal_j * eta_j + offset_j * s``, s the sum of the row; 0 stands for ``eta_j``
        of a decision that is no class.
    full : tuple of K tuples of D floats, or None
        The score of decision j is ``sum_i full[i][j] * eta_i``, in order.
    link : LinkTable or None
    changes : tuple (at_zero, at_one, last), or None
        For two classes: the decisions at probability 0 and 1 of class 1, and the last probability that is decided as 0
        is; None where that is known within rounding only.
    """

    labels: tuple[Label, ...]
    n_classes: int
    diagonal: tuple[float, ...] | None
    offset: tuple[float, ...] | None
    full: tuple[tuple[float, ...], ...] | None
    link: LinkTable | None
    changes: tuple[int, int, float] | None

    @classmethod
    def of(cls, rule: WeightedRule, m: int) -> OutputTable:
        """Return the table of output m of a rule."""
        labels = labels_of(rule)[m]
        k, d = int(rule.n_classes[m]), len(labels)
        loss = rule.loss.output(m)
        arrays = [array[0][..., :d] if loss.is_diagonal else array[0][:k, :d] for array in loss.arrays]
        diagonal, offset = (_floats(array) for array in arrays) if loss.is_diagonal else (None, None)
        full = None if loss.is_diagonal else tuple(_floats(row) for row in arrays[0])
        link = None
        if rule.link is not None:
            link = LinkTable(float(rule.link.temperature[m]), _floats(rule.link.bias[m, :k]), rule.link.floor)
        return cls(labels, k, diagonal, offset, full, link, _changes(rule, m, diagonal, link))

    @property
    def n_decisions(self) -> int:
        """D."""
        return len(self.labels)


@dataclass(frozen=True)
class IntervalTable:
    """One output that is decided along one number: a score, the log-odds of the second of two classes, or a difference.

    Parameters
    ----------
    labels : tuple of D labels
        Of the decisions.
    cuts : tuple of C floats
        Finite, in ascending order.
    codes : tuple of C + 1 ints
        The decision if none of the cuts, one, ..., all of them lie strictly below the number.
    """

    labels: tuple[Label, ...]
    cuts: tuple[float, ...]
    codes: tuple[int, ...]

    @classmethod
    def of_cuts(cls, labels: tuple[Label, ...], cuts: Sequence[float], codes: Sequence[int]) -> IntervalTable:
        """Return the table of ascending cuts, without intervals that hold no number: infinite cuts, and equal ones."""
        last, *others = codes
        kept: list[tuple[float, int]] = []  # cuts, each with the decision below it
        for cut, code in zip(cuts, others, strict=True):
            if cut == np.inf:
                break
            if cut > -np.inf and not (kept and kept[-1][0] == cut):
                kept.append((cut, last))
            last = code
        return cls(labels, _floats([cut for cut, _ in kept]), (*(code for _, code in kept), last))

    @classmethod
    def of_cut_points(cls, rule: Any, m: int) -> IntervalTable:
        """Return the table of output m of a rule of cut points."""
        k = int(rule.schema.n_classes[m])
        return cls.of_cuts(labels_of(rule)[m], _floats(rule.cuts[m][: k - 1]), range(k))

    @classmethod
    def of_logits(cls, rule: WeightedRule, m: int) -> IntervalTable | None:
        """Return the table of output m of a weighted rule on logits, if one number decides it; else None.

        It does for two classes, and for ordered classes of one score.
        """
        if rule.ordinal_map is not None:
            changes, decided = bisect_score(lambda z: rule.decide(rule.read_rows(z))[:, 0], rule.ordinal_map)
            return cls(labels_of(rule)[m], _floats(changes), tuple(map(int, decided)))
        if not rule.schema.input.is_logits or rule.n_classes[m] != 2:
            return None
        form, labels = form_of(rule, m), labels_of(rule)[m]
        if isinstance(form, Threshold):
            if form.at_zero == form.at_one:
                return cls(labels, (), (form.at_one,))
            return cls(labels, (form.last,), (form.at_zero, form.at_one))
        regions: Sequence[Region] = form.regions  # type: ignore[union-attr]  # two classes have no other form
        codes = [labels.index(region.label) for region in regions]
        return cls(labels, _floats([region.high for region in regions[:-1]]), tuple(codes))

    @classmethod
    def of_probability(cls, rule: WeightedRule, m: int) -> IntervalTable | None:
        """Return the table of output m along the probability of the second of two classes; None if not known exactly.

        See `OutputTable.changes`.
        """
        table = OutputTable.of(rule, m)
        if table.changes is None:
            return None
        at_zero, at_one, last = table.changes
        if at_zero == at_one:
            return cls(table.labels, (), (at_one,))
        return cls(table.labels, (last,), (at_zero, at_one))


def interval_tables(rule: WeightedRule, positive: bool) -> list[IntervalTable] | None:
    """Return the tables of all outputs if each is decided along one number; else None.

    Parameters
    ----------
    positive : bool
        Whether rows have a single number for each output.
    """
    if rule.schema.input.graded or (rule.schema.input.is_logits and (rule.n_classes == 2).all()):
        read = IntervalTable.of_logits
    elif positive and (rule.schema.n_decisions == 2).all():
        read = IntervalTable.of_probability
    else:
        return None
    tables = [read(rule, m) for m in range(rule.n_outputs)]
    exact = [table for table in tables if table is not None]
    return exact if len(exact) == len(tables) else None


def interval_arrays(tables: Sequence[IntervalTable]) -> tuple[FloatArray, IntArray]:
    """Return the cuts (M, C) of tables, and their codes (M, C + 1); cuts that a table lacks are inf."""
    width = max(1, *(len(table.cuts) for table in tables))
    cuts = np.full((len(tables), width), np.inf)
    codes = np.zeros((len(tables), width + 1), dtype=np.int64)
    for m, table in enumerate(tables):
        n_cuts = len(table.cuts)
        cuts[m, :n_cuts], codes[m, : n_cuts + 1] = table.cuts, table.codes
    return cuts, codes


def draw_origin(seed: int) -> int:
    """Return the state from which the draws of a mixture start, an unsigned integer of 64 bits."""
    return int(standalone.mixed(seed + DRAW_STEP))  # type: ignore[no-untyped-call]  # for any Python


class TensorWriter(RuleWriter[T]):
    """Base of writers of programs on tensors of numbers."""

    def grouped(self, rule: PartitionedRule) -> T:
        """Refuse rules by group or segment: their names are labels, and no numbers."""
        noun = rule.known.noun
        return self.other(
            rule,
            f"{self.target} has no input for the {noun} of a row",
            f"export the rule of each {noun}, rule.by_{noun}[name], or use to_sql or to_python",
        )


def _floats(values: Any) -> tuple[float, ...]:
    return tuple(float(value) for value in values)


def _changes(
    rule: WeightedRule, m: int, diagonal: Sequence[float] | None, link: LinkTable | None
) -> tuple[int, int, float] | None:
    """Return where the decision on one probability changes, if the scores or the link determine it exactly."""
    if rule.schema.n_decisions[m] != 2:
        return None
    if link is None and (diagonal is None or max(diagonal) > 0):
        return None
    form = form_of(rule, m)
    return (form.at_zero, form.at_one, form.last) if isinstance(form, Threshold) else None


def read_rule(rule: Any) -> Rule:
    """Return the rule, loading it from a path, JSON text or dict if needed."""
    if hasattr(rule, "rule"):
        rule = rule.rule  # of a Solution, or of a point of a trade-off
    readable = isinstance(rule, (Rule, str, dict)) or hasattr(rule, "__fspath__")
    if isinstance(rule, type) or not readable:
        raise InvalidType(
            "rule", "be a WeightedRule, a MixtureRule or a GroupedRule, a Solution, or a rule file", type(rule).__name__
        )
    return as_rule(rule, inputs=_INPUTS)


class _ColumnCounts(RuleWriter[list[tuple[int, ...]]]):
    """How many numbers each output may be given by; see :func:`column_counts`."""

    def cut_points(self, rule: Any) -> list[tuple[int, ...]]:
        counts = rule.schema.n_classes.tolist()
        if rule.schema.input.kind == "log_proba":
            return [(2,) for _ in counts]
        return [(1, 2) if k == 2 else (1,) for k in counts]

    def grouped(self, rule: PartitionedRule) -> list[tuple[int, ...]]:
        return rule.parts[-1].accept(self)

    def other(self, rule: Rule, reason: str = "", remedy: str = "") -> list[tuple[int, ...]]:
        counts, schema = rule.n_classes.tolist(), rule.schema
        if schema.input.graded:
            return [(1,)]
        if schema.normalize or schema.input.kind == "log_proba":
            return [(k,) for k in counts]
        if rule.multioutput and set(counts) == {2}:
            return [(1, 2) for _ in counts]
        return [(2, 1) if k == 2 else (k,) for k in counts]


def column_counts(rule: Rule) -> list[tuple[int, ...]]:
    """Return how many columns of numbers each output may have, the default first: one per class, or a single one."""
    return rule.accept(_ColumnCounts())


def input_name(rule: Rule) -> str:
    """Return what the numbers of rows are called where a name has no spaces."""
    kind = rule.schema.input.kind
    return _INPUT_NAMES.get(kind, kind)


def input_words(rule: Rule) -> str:
    """Return what the numbers of rows are called in a sentence."""
    return input_name(rule).replace("_", "-")


def output_names(rule: Rule) -> list[str]:
    """Return a name for each output."""
    names = rule.schema.output_names
    return [f"output_{m}" for m in range(rule.n_outputs)] if names is None else list(names)


def labels_of(rule: Rule) -> list[tuple[Label, ...]]:
    """Return the labels of the decisions about each output."""
    by_array: dict[int, tuple[Label, ...]] = {}
    return [by_array.setdefault(id(labels), tuple(json_labels(labels))) for labels in rule.schema.decisions]


def of_one_type(labels: Sequence[Label]) -> tuple[Label, ...]:
    """Return labels for typed columns: False and True are 0 and 1 if the rule abstains with an integer."""
    if {type(label) for label in labels} == {bool, int}:
        return tuple(int(label) for label in labels)
    return tuple(labels)


def group_labels(rule: PartitionedRule) -> list[tuple[Label, ...]]:
    """Return the name of each group or segment: a label for each column that makes these."""
    names = [name if isinstance(name, tuple) else (name,) for name in rule.known.names]
    return [tuple(json_labels(label_array(list(name)), f"{rule.known.noun}s")) for name in names]


def check_text(labels: Sequence[Label]) -> None:
    """Refuse labels with unpaired surrogates, which only JSON and Python can hold."""
    for label in labels:
        if isinstance(label, str) and any("\ud800" <= character <= "\udfff" for character in label):
            raise InvalidParameter("labels", "be valid Unicode", repr(label))


def needs_extra(package: str, extra: str) -> ImportError:
    """Return the error that says how to install an extra."""
    return MissingDependency(f"needs {package}, which is not installed: pip install 'metricwise[{extra}]'")
