"""How a rule is applied elsewhere: what a report says about it."""

from __future__ import annotations

import json
from typing import Any

from ...core.errors import Refusal
from ...export import to_python, to_sql

__all__ = ["ways_to_apply"]

_LONGEST = 20_000  # characters of a text that is shown
_LONGEST_FILE = 400_000  # and of one that can be saved from the page

_PYTHON = """import metricwise as mw

rule = mw.load_rule("rule.json")
labels = rule.predict(proba)  # class probabilities of the model, as passed to optimize
"""
_COMMAND = "metricwise apply rule.json new.csv -o decisions.csv\n"
_ONNX = """import metricwise as mw

rule = mw.load_rule("rule.json")
mw.export.to_onnx(rule, "rule.onnx")                       # probabilities in, decisions out
mw.export.to_onnx(rule, "model.onnx", append_to=pipeline)  # after a classifier that skl2onnx converts
"""


def ways_to_apply(rule: Any) -> dict[str, str | None]:
    """Return the rule as a file, and how to apply it with Python, the command line, SQL and ONNX.

    Parameters
    ----------
    rule : WeightedRule or MixtureRule

    Returns
    -------
    dict of str to str or None
        None where the rule has no such form, or one that is too long for a page.

    Examples
    --------
    >>> import metricwise as mw
    >>> from metricwise.inspection.report.applying import ways_to_apply
    >>> list(ways_to_apply(mw.WeightedRule.from_thresholds(0.3)))
    ['json', 'python', 'command', 'sql', 'source', 'onnx']
    """
    text = json.dumps(rule.to_dict(), ensure_ascii=True)
    priced = "cost" in rule.needs
    needs = "".join(f", {name}={name}" for name in sorted(rule.needs))
    return {
        "json": text if len(text) <= _LONGEST_FILE else None,
        "python": _PYTHON.replace("(proba)", f"(proba{needs})"),
        "command": None if priced else _COMMAND,
        "sql": _made(to_sql, rule),
        "source": _made(to_python, rule),
        "onnx": None if priced else _ONNX,
    }


def _made(export: Any, rule: Any) -> str | None:
    """Return an export; None where the rule, or what is installed, does not allow for it, or it is too long."""
    try:
        text = str(export(rule))
    except Refusal:  # any other error is one of the programme
        return None
    return text if len(text) <= _LONGEST else None
