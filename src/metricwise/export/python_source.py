"""Rules as Python source text without dependencies.

Owns the text: the tables of a rule, and the functions of `standalone` that decide by them.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Sequence
from typing import Any

from .._version import __version__
from ..rules import MixtureRule, WeightedRule
from ..rules.files import write_text
from . import standalone
from .outputs import OutputTable, Rule, labels_of, output_names, read_rule, unknown_kind

__all__ = ["to_python"]

_FUNCTIONS = (standalone.total_of, standalone.read, standalone.recalibrated, standalone.scores, standalone.decision)
_DRAWING = (standalone.mixed, standalone.drawn)


def to_python(rule: Any, path: str | os.PathLike[str] | None = None) -> str:
    """Write a rule as Python source text that needs nothing but Python.

    The text defines ``decide(probabilities)`` for one row and ``decide_all(rows)`` for many. Decisions are those of
    ``rule.predict``, to the last tie; behind a link they may differ where two scores are within 1e-9 of one another,
    for libraries differ in the last bit of exp and log.

    Parameters
    ----------
    rule : WeightedRule, MixtureRule, Solution, path, JSON text, or document
        A mixture decides by a key besides, ``decide(probabilities, key)``: an integer from 0. Rows whose keys are their
        positions get what ``rule.predict`` gives them.
    path : path, optional
        Where to write the text too, whole or not at all.

    Returns
    -------
    str

    See Also
    --------
    to_sql : The same as an SQL expression.
    to_onnx : The same as an ONNX graph.

    Examples
    --------
    >>> import metricwise as mw
    >>> source = mw.export.to_python(mw.WeightedRule.from_thresholds(0.3, classes=["no", "yes"], pos_label="yes"))
    >>> names = {}
    >>> exec(source, names)
    >>> names["decide"](0.4), names["decide_all"]([0.2, [0.5, 0.5]])
    ('yes', ['no', 'yes'])
    """
    rule = read_rule(rule, "to_python")
    text = "\n\n\n".join([_opening(rule), *map(_source, _functions(rule)), _closing(rule)]) + "\n"
    if path is not None:
        write_text(path, text)
    return text


def _functions(rule: Rule) -> Sequence[Callable[..., Any]]:
    return (*_FUNCTIONS, *_DRAWING) if isinstance(rule, MixtureRule) else _FUNCTIONS


def _source(function: Callable[..., Any]) -> str:
    return inspect.getsource(function).rstrip()


def _opening(rule: Rule) -> str:
    """Docstring and tables."""
    words = "".join(map(_escaped, rule.describe()))
    head = f'"""Decisions by class probabilities, written by metricwise {__version__}.\n\n{words}\n"""\n\nimport math\n'
    return "\n".join([head, *_tables(rule)])


def _escaped(character: str) -> str:
    """A character as it stands in a docstring."""
    if character in '\\"':
        return "\\" + character
    return character if character.isprintable() or character == "\n" else repr(character)[1:-1]


def _tables(rule: Rule) -> list[str]:
    who = "to_python"
    labels, names = labels_of(rule, who), output_names(rule)
    comments = [f"  # {name!r}" for name in names] if rule.multioutput else [""] * len(names)
    lines = ["CLASSES = [", *(f"    {list(each)!r},{note}" for each, note in zip(labels, comments, strict=True)), "]"]
    lines.append(f"NORMALIZE = {rule.schema.normalize!r}")
    match rule:
        case WeightedRule():
            return [*lines, *_rule_lines("RULE = [  # of each output", rule, who), "]"]
        case MixtureRule():
            lines += ["RULES = ["]
            for part in rule.rules:
                lines += [f"    {line}" for line in _rule_lines("[  # of each output", part, who)] + ["    ],"]
            edges = ["    " + repr(row.tolist()) + "," for row in rule.edges]
            return [*lines, "]", "EDGES = [", *edges, "]", f"SEED = {rule.seed}"]
        case _:
            raise unknown_kind(rule, who)


def _rule_lines(head: str, rule: WeightedRule, who: str) -> list[str]:
    """The tables of a weighted rule, one dictionary per output, without the bracket that closes the list."""
    lines = [head]
    for m in range(rule.n_outputs):
        table = OutputTable.of(rule, m, who)
        lines += ["    {", *(f"        {line}" for line in _fields(table)), "    },"]
    return lines


def _fields(table: OutputTable) -> list[str]:
    lines = []
    if table.full is not None:
        lines += ['"full": [', *(f"    {list(row)!r}," for row in table.full), "],"]
    else:
        lines += [f'"diagonal": {list(table.diagonal or ())!r},', f'"offset": {list(table.offset or ())!r},']
    if table.link is not None:
        lines += [f'"temperature": {table.link.temperature!r},', f'"bias": {list(table.link.bias)!r},']
        lines += [f'"floor": {table.link.floor!r},']
    return lines


def _closing(rule: Rule) -> str:
    """The functions that people call."""
    mixture = isinstance(rule, MixtureRule)
    both = ", or that of the second alone" if (rule.n_classes == 2).any() and not rule.schema.normalize else ""
    what = "scores" if rule.schema.normalize else "probabilities"
    numbers = f"{what} of the classes, in the order of CLASSES{both}"
    table = "RULES[drawn(SEED, key, m, EDGES[m])][m]" if mixture else "RULE[m]"
    code = f"CLASSES[m][decision({table}, {{}}, CLASSES[m], NORMALIZE)]"
    argument = ", key" if mixture else ""
    shape = f"for each output, {numbers}" if rule.multioutput else numbers
    lines = [f"def decide(probabilities{argument}):", '    """Return the decision about one row.', ""]
    lines += [f"    probabilities: {shape}."]
    if mixture:
        lines += ["    key: an integer from 0 by which a rule is drawn, such as the position of the row."]
    lines += ['    """']
    if rule.multioutput:
        lines += [
            "    if not hasattr(probabilities, '__len__') or len(probabilities) != len(CLASSES):",
            '        raise ValueError(f"there must be {len(CLASSES)} outputs, got {probabilities!r}.")',
            f"    return [{code.format('eta')} for m, eta in enumerate(probabilities)]",
        ]
    else:
        lines += ["    m = 0", f"    return {code.format('probabilities')}"]
    keyed = "decide(row, key) for key, row in enumerate(rows, start)" if mixture else "decide(row) for row in rows"
    lines += ["", "", f"def decide_all(rows{', start=0' if mixture else ''}):"]
    lines += ['    """Return the decisions about rows, one after the other."""', f"    return [{keyed}]"]
    return "\n".join(lines)
