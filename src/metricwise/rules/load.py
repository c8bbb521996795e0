"""Reading a rule of whichever kind from a file.

Owns the choice of the class; each class checks its own fields.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from ..core.errors import InvalidParameter, argument, entry_point
from . import serialize
from .cost_rule import CostRule
from .grouped import GroupedRule
from .mixture import MixtureRule
from .weighted import WeightedRule

__all__ = ["as_rule", "load_rule", "rule_from_dict", "rule_schema"]


@entry_point("load_rule")
def load_rule(path: str | os.PathLike[str]) -> WeightedRule | MixtureRule | GroupedRule | CostRule:
    """Load a rule that was written by `to_json`.

    Every field is checked, and no code from the file is executed.

    Parameters
    ----------
    path : path, or JSON text
        The file, or its content.

    Returns
    -------
    WeightedRule, MixtureRule, GroupedRule or CostRule
        The rule, of the kind that was saved.

    See Also
    --------
    WeightedRule.to_json : Save a rule.
    load_solution : Load a solution with all that is known about its rule.

    Examples
    --------
    >>> import numpy as np
    >>> import metricwise as mw
    >>> from metricwise.core.losses import Loss
    >>> text = mw.WeightedRule(Loss.argmax(2), (np.array(["no", "yes"]),)).to_json()
    >>> mw.load_rule(text).predict([0.6])
    array(['yes'], dtype='<U3')
    """
    document = serialize.read_object(serialize.parse(serialize.read_text(path)), "the rule")
    kind = document.get("kind")
    if document.get("format") == serialize.FORMAT and not (isinstance(kind, str) and kind in _KINDS):
        *most, last = map(repr, _KINDS)
        raise InvalidParameter("kind", f"be {', '.join(most)} or {last}", serialize.shown(kind))
    return rule_from_dict(document)


def rule_schema() -> dict[str, Any]:
    """Return the JSON Schema of rule files, draft 2020-12.

    What a schema cannot express, for example that a loss has as many classes as there are labels, is checked by
    :func:`load_rule` only.

    Returns
    -------
    dict

    See Also
    --------
    load_rule : Load a file, and check it completely.

    Examples
    --------
    >>> import metricwise as mw
    >>> mw.export.rule_schema()["title"]
    'A decision rule of metricwise'
    """
    from importlib.resources import files

    text = files(__package__).joinpath("rule.schema.json").read_text(encoding="utf-8")
    return dict(serialize.parse(text, "the schema"))


_KINDS: dict[str, type[WeightedRule] | type[MixtureRule] | type[GroupedRule] | type[CostRule]] = {
    "weighted": WeightedRule,
    "mixture": MixtureRule,
    "grouped": GroupedRule,
    "row_costs": CostRule,
}


def rule_from_dict(document: Mapping[str, Any]) -> WeightedRule | MixtureRule | GroupedRule | CostRule:
    """Return the rule of a document, of whichever kind."""
    kind = document.get("kind")
    return (_KINDS.get(kind, WeightedRule) if isinstance(kind, str) else WeightedRule).from_dict(document)


def as_rule(rule: Any) -> WeightedRule | MixtureRule | GroupedRule:
    """Return a rule, read from what stands for one.

    Parameters
    ----------
    rule : WeightedRule, MixtureRule, GroupedRule, path, JSON text, or a document from `to_dict`

    Returns
    -------
    WeightedRule, MixtureRule or GroupedRule

    Examples
    --------
    >>> import metricwise as mw
    >>> from metricwise.rules.load import as_rule
    >>> rule = mw.WeightedRule.from_thresholds(0.3)
    >>> as_rule(rule.to_dict()) == as_rule(rule.to_json()) == as_rule(rule)
    True
    """
    if isinstance(rule, (WeightedRule, MixtureRule, GroupedRule)):
        return rule
    if isinstance(rule, Mapping):
        read = rule_from_dict(rule)
    else:
        read = rule if isinstance(rule, CostRule) else load_rule(rule)
    if isinstance(read, CostRule):
        raise InvalidParameter(
            "",
            problem="must be a rule that decides by probabilities alone, got one for costs per row",
            remedy=(
                f"use its own methods, rule.predict(proba, {argument('cost')}) and rule.value(proba, y, "
                f"{argument('cost')})"
            ),
            owner="rule",
        )
    return read
