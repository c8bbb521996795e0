"""Rules as Python source without dependencies: tables of the rule, and the functions of `standalone`."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from .._version import __version__
from ..core.errors import entry_point
from ..core.files import write_text
from ..rules.base import Rule
from ..rules.mixture import MixtureRule
from ..rules.partitioned import PartitionedRule
from ..rules.weighted import WeightedRule
from ..rules.writer import RuleWriter
from . import standalone, standalone_logits
from .outputs import (
    IntervalTable,
    OutputTable,
    column_counts,
    group_labels,
    input_name,
    input_words,
    labels_of,
    output_names,
    read_rule,
)

__all__ = ["to_python"]

_FUNCTIONS = (standalone.total_of, standalone.read, standalone.recalibrated, standalone.scores, standalone.decision)
_RULE = "RULE = [  # of each output"
_BY_CUTS = (standalone_logits.read_numbers, standalone_logits.decision_by_cuts)
_BY_SOFTMAX = (
    standalone.total_of,
    *_BY_CUTS,
    standalone_logits.softmax,
    standalone.scores,
    standalone_logits.decision_by_softmax,
)
_DRAWING = (standalone.mixed, standalone.drawn)


@entry_point("to_python")
def to_python(rule: Any, path: str | os.PathLike[str] | None = None) -> str:
    """Export a rule as Python source code without dependencies.

    The code defines ``decide(probabilities)`` for one row and ``decide_all(rows)`` for many; of rules on logits,
    log-probabilities or scores the argument is called so. Decisions are those of ``rule.predict``, even at ties; after
    recalibration they may differ if two scores are within 1e-9 of each other, because libraries differ in the last bit
    of exp and log. Two classes on logits or scores are compared with the threshold of the rule.

    Parameters
    ----------
    rule : WeightedRule, MixtureRule, GroupedRule, SegmentedRule, Solution, path, JSON text, or dict
        The rule, or a Solution, file, JSON text or dict that contains it. A mixture also takes a key,
        ``decide(probabilities, key)``, a non-negative integer: with row positions as keys, decisions are those of
        ``rule.predict``. A rule by group also takes the group of the row, ``decide(probabilities, group)`` and
        ``decide_all(rows, groups)``, and raises an error for an unknown group.
    path : path, optional
        If given, the code is also written to this file, completely or not at all.

    Returns
    -------
    str
        The source code.

    See Also
    --------
    to_sql : Export a rule as an SQL expression.
    to_onnx : Export a rule as an ONNX model.

    Examples
    --------
    >>> import metricwise as mw
    >>> source = mw.export.to_python(mw.WeightedRule.from_thresholds(0.3, classes=["no", "yes"], pos_label="yes"))
    >>> names = {}
    >>> exec(source, names)
    >>> names["decide"](0.4), names["decide_all"]([0.2, [0.5, 0.5]])
    ('yes', ['no', 'yes'])
    """
    rule = read_rule(rule)
    tables = rule.accept(_Tables())
    text = (
        "\n\n\n".join([_opening(rule, tables), *map(_source, _functions(rule, tables)), _closing(rule, tables)]) + "\n"
    )
    if path is not None:
        write_text(path, text)
    return text


@dataclass(frozen=True)
class _RuleTables:
    """Lines of the tables of a rule, and how the decision about an output finds its own.

    `lookup` is the expression of the table of output m; `group` that of the tables of a group or segment, if there are
    any, and `noun` what these are called.
    """

    lines: list[str]
    lookup: str
    group: str = ""
    noun: str = "group"
    functions: tuple[Callable[..., Any], ...] = ()


class _Tables(RuleWriter[_RuleTables]):
    """The tables of each kind of rule."""

    target = "Python source"

    def weighted(self, rule: WeightedRule) -> _RuleTables:
        return _RuleTables([*_rule_lines(_RULE, rule), "]"], "RULE[m]")

    def cut_points(self, rule: Any) -> _RuleTables:
        tables = [IntervalTable.of_cut_points(rule, m) for m in range(rule.n_outputs)]
        return _RuleTables([*_table_lines(_RULE, tables), "]"], "RULE[m]")

    def mixture(self, rule: MixtureRule) -> _RuleTables:
        lines = [*_mixture_lines("RULES = [", "EDGES = [", rule), "]", f"SEED = {rule.seed}"]
        return _RuleTables(lines, _drawn_from("RULES", "EDGES"))

    def grouped(self, rule: PartitionedRule) -> _RuleTables:
        noun = rule.known.noun
        names = f"{noun.upper()}S"
        lines = [f"{names} = {{"]
        for name, (_, part) in zip(group_labels(rule), rule.by_part, strict=True):
            lines += [f"    {name!r}: {{", *(f"        {line}" for line in _group_lines(part)), "    },"]
        lines.append("}")
        group, functions = f"{names}[known_group({noun}, {names})]", (standalone.known_group,)
        if rule.other is not None:
            lines += ["OTHER = {", *(f"    {line}" for line in _group_lines(rule.other)), "}"]
            group = f"{names}.get(group_or_other({noun}, {names}), OTHER)"
            functions = (standalone.group_or_other,)
        lookup = _drawn_from('own["rules"]', 'own["edges"]') if rule.is_randomized else 'own["rules"][0][m]'
        seed = [f"SEED = {rule.seed}"] if rule.is_randomized else []
        return _RuleTables([*lines, *seed], lookup, group, noun, functions)


def _drawn_from(rules: str, edges: str) -> str:
    return f"{rules}[drawn(SEED, key, m, {edges}[m])][m]"


def _functions(rule: Rule, tables: _RuleTables) -> Sequence[Callable[..., Any]]:
    return (*_deciding(rule), *(_DRAWING if rule.is_randomized else ()), *tables.functions)


def _deciding(rule: Rule) -> Sequence[Callable[..., Any]]:
    """The functions that decide about an output; the last one is called."""
    if not rule.schema.input.is_logits:
        return _FUNCTIONS
    return _BY_CUTS if all(min(counts) <= 2 for counts in column_counts(rule)) else _BY_SOFTMAX


def _source(function: Callable[..., Any]) -> str:
    return inspect.getsource(function).rstrip()


def _opening(rule: Rule, tables: _RuleTables) -> str:
    """Docstring and tables."""
    text = "".join(map(_escaped, rule.describe()))
    numbers = "class probabilities" if not rule.schema.input.is_logits else _words(rule)
    imports = "import math\nfrom bisect import bisect_left\n" if rule.schema.input.is_logits else "import math\n"
    head = f'"""Decisions by {numbers}, written by metricwise {__version__}.\n\n{text}\n"""\n\n{imports}'
    return "\n".join([head, *_class_lines(rule), *tables.lines])


def _words(rule: Rule) -> str:
    """What the numbers of rows are called in a sentence."""
    return "scores" if rule.schema.normalize else input_words(rule)


def _escaped(character: str) -> str:
    """A character as it stands in a docstring."""
    if character in '\\"':
        return "\\" + character
    return character if character.isprintable() or character == "\n" else repr(character)[1:-1]


def _class_lines(rule: Rule) -> list[str]:
    """The labels of classes and decisions."""
    labels, names = labels_of(rule), output_names(rule)
    comments = [f"  # {name!r}" for name in names] if rule.multioutput else [""] * len(names)
    classes = [list(decisions[:k]) for decisions, k in zip(labels, rule.n_classes.tolist(), strict=True)]
    lines = [
        "CLASSES = [",
        *(f"    {decisions!r},{note}" for decisions, note in zip(classes, comments, strict=True)),
        "]",
    ]
    if rule.abstain_label is not None:
        lines += [
            "DECISIONS = [  # the last is to abstain",
            *(f"    {list(decisions)!r}," for decisions in labels),
            "]",
        ]
    if rule.schema.input.is_logits:
        return [*lines, f"INPUT = {rule.schema.input.kind!r}"]
    return [*lines, f"NORMALIZE = {rule.schema.normalize!r}"]


def _mixture_lines(head: str, edges: str, rule: MixtureRule, end: str = "]") -> list[str]:
    """The tables of the rules that one is drawn of, and where draws change, without the bracket that closes these."""
    lines = [head]
    for part in rule.rules:
        lines += [f"    {line}" for line in _rule_lines("[  # of each output", part)] + ["    ],"]
    return [*lines, end, edges, *(f"    {row.tolist()!r}," for row in rule.edges)]


def _group_lines(rule: WeightedRule | MixtureRule) -> list[str]:
    """The tables of the rule of a group: a rule alone is drawn with certainty."""
    rules, shares = rule.flatten()
    mixture = MixtureRule(rules, shares[0] if len(shares) == 1 else shares)
    return [*_mixture_lines('"rules": [', '"edges": [', mixture, "],"), "],"]


def _rule_lines(head: str, rule: WeightedRule) -> list[str]:
    """The tables of a weighted rule, without the bracket that closes the list."""
    outputs = range(rule.n_outputs)
    return _table_lines(head, [IntervalTable.of_logits(rule, m) or OutputTable.of(rule, m) for m in outputs])


def _table_lines(head: str, tables: Sequence[OutputTable | IntervalTable]) -> list[str]:
    """One dictionary per output, without the bracket that closes the list."""
    lines = [head]
    for table in tables:
        lines += ["    {", *(f"        {line}" for line in _fields(table)), "    },"]
    return lines


def _fields(table: OutputTable | IntervalTable) -> list[str]:
    if isinstance(table, IntervalTable):
        return [f'"cuts": {list(table.cuts)!r},', f'"codes": {list(table.codes)!r},  # of none, one, ... cuts below']
    lines = []
    if table.full is not None:
        lines += ['"full": [', *(f"    {list(row)!r}," for row in table.full), "],"]
    else:
        lines += [f'"diagonal": {list(table.diagonal or ())!r},', f'"offset": {list(table.offset or ())!r},']
    if table.link is not None:
        lines += [f'"temperature": {table.link.temperature!r},', f'"bias": {list(table.link.bias)!r},']
        lines += [] if table.link.of_logits else [f'"floor": {table.link.floor!r},']
    return lines


def _numbers(rule: Rule) -> str:
    """What a row of one output is given by."""
    counts = column_counts(rule)
    if all(count == (1,) for count in counts):
        return f"the {rule.schema.input.noun}, a number"
    alone = "the log-odds" if rule.schema.input.kind == "logits" else "that"
    both = f", or {alone} of the second alone" if any(1 in count for count in counts) else ""
    return f"{_words(rule)} of the classes, in the order of CLASSES{both}"


def _closing(rule: Rule, tables: _RuleTables) -> str:
    """The functions that people call."""
    drawn, grouped, row, noun = rule.is_randomized, bool(tables.group), input_name(rule), tables.noun
    numbers = _numbers(rule)
    labels = "CLASSES" if rule.abstain_label is None else "DECISIONS"
    option = "INPUT" if rule.schema.input.is_logits else "NORMALIZE"
    code = f"{labels}[m][{_deciding(rule)[-1].__name__}({tables.lookup}, {{}}, CLASSES[m], {option})]"
    argument = f", {noun}" * grouped + ", key" * drawn
    shape = f"for each output, {numbers}" if rule.multioutput else numbers
    lines = [f"def decide({row}{argument}):", '    """Return the decision about one row.', ""]
    lines += [f"    {row}: {shape}."]
    if grouped:
        lines += [f"    {noun}: the name of the {noun} of the row; a tuple of names if {noun.upper()}S has several."]
    if drawn:
        lines += ["    key: a non-negative integer by which a rule is drawn, such as the position of the row."]
    item = "z" if rule.schema.input.is_logits else "eta"
    lines += ['    """', *([f"    own = {tables.group}"] if grouped else [])]
    if rule.multioutput:
        lines += [
            f"    if not hasattr({row}, '__len__') or len({row}) != len(CLASSES):",
            f'        raise ValueError(f"there must be {{len(CLASSES)}} outputs, got {{{row}!r}}.")',
            f"    return [{code.format(item)} for m, {item} in enumerate({row})]",
        ]
    else:
        lines += ["    m = 0", f"    return {code.format(row)}"]
    each, item = (f"zip(rows, {noun}s)", f"row, {noun}") if grouped else ("rows", "row")
    counted = f"key, {f'({item})' if grouped else item} in enumerate({each}, start)" if drawn else f"{item} in {each}"
    lines += ["", "", f"def decide_all(rows{f', {noun}s' * grouped}{', start=0' * drawn}):"]
    lines += ['    """Return the decisions about several rows as a list."""']
    if grouped:
        counts = f"{{len({noun}s)}} of {{len(rows)}}"
        lines += [f"    if len(rows) != len({noun}s):"]
        lines += [f'        raise ValueError(f"there must be a {noun} for each row, got {counts}.")']
    return "\n".join([*lines, f"    return [decide(row{argument}) for {counted}]"])
