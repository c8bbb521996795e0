"""Loading rules of all kinds, and the JSON Schema of rule files. Has the list of kinds."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from typing import Any

from ..core.errors import InvalidParameter, argument, entry_point
from . import codec
from .base import PARTITIONS, Rule
from .cut_points import CutPointRule
from .example_cost import CostRule
from .grouped import GroupedRule
from .label_sets import LabelSetRule
from .labels import LabelRule
from .metadata import INTERVAL_SCHEMA, metadata_schema
from .mixture import MixtureRule
from .segmented import SegmentedRule
from .weighted import WeightedRule

KINDS: dict[str, type[Rule]] = {
    kind.kind: kind
    for kind in (
        WeightedRule,
        MixtureRule,
        GroupedRule,
        SegmentedRule,
        CostRule,
        CutPointRule,
        LabelRule,
        LabelSetRule,
    )
}
"""All kinds of rules by their names in files."""


@entry_point("load_rule")
def load_rule(path: str | os.PathLike[str]) -> Rule:
    """Load a rule that was written by `to_json`.

    Every field is checked, and no code from the file is executed.

    Parameters
    ----------
    path : path, or JSON text
        The file, or its content.

    Returns
    -------
    WeightedRule, MixtureRule, GroupedRule, SegmentedRule, CostRule, CutPointRule, LabelRule or LabelSetRule
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
    document = codec.read_object(codec.parse(codec.read_text(path)), "the rule")
    kind = document.get("kind")
    if document.get("format") == codec.FORMAT and not (isinstance(kind, str) and kind in KINDS):
        *most, last = map(repr, KINDS)
        raise InvalidParameter("kind", f"be {', '.join(most)} or {last}", codec.shown(kind))
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
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:metricwise:rule:{codec.VERSION}",
        "title": "A decision rule of metricwise",
        "description": "For each output, predict the class with the lowest score; of ties, the first class.",
        "oneOf": [{"$ref": f"#/$defs/{name}"} for name in KINDS],
        "$defs": {
            **{name: _kind_schema(kind) for name, kind in KINDS.items()},
            "loss": codec.LOSS_SCHEMA,
            "link": codec.LINK_SCHEMA,
            "interval": INTERVAL_SCHEMA,
            "facts": metadata_schema(),
        },
    }


def _kind_schema(kind: type[Rule]) -> dict[str, Any]:
    fields = (*kind.shared_fields, *kind.fields)
    properties = {
        "format": {"const": codec.FORMAT},
        "version": {"const": codec.VERSION},
        "kind": {"const": kind.kind},
        **{field.name: field.schema for field in fields},
        "facts": {"$ref": "#/$defs/facts"},
    }
    return codec.object_of(properties, kind.summary, [field.name for field in fields if field.optional])


def rule_from_dict(document: Mapping[str, Any]) -> Rule:
    """Return the rule of a document, of whichever kind."""
    kind = document.get("kind")
    return (KINDS.get(kind, WeightedRule) if isinstance(kind, str) else WeightedRule).from_dict(document)


def as_rule(rule: Any, inputs: Collection[str] = PARTITIONS) -> Rule:
    """Return the rule, loading it from a path, JSON text or a dict if needed.

    Parameters
    ----------
    rule : Rule, path, JSON text, or a document from `to_dict`
    inputs : collection of str
        What the caller can give to the rule besides probabilities; rules that need more are refused.
    """
    if not isinstance(rule, Rule):
        rule = rule_from_dict(rule) if isinstance(rule, Mapping) else load_rule(rule)
    needs = sorted(rule.needs - set(inputs))
    if needs:
        raise InvalidParameter(
            "rule",
            "be a rule that decides by probabilities alone",
            f"a {type(rule).__name__}, which needs {needs[0]}",
            f"use rule.predict(proba, {argument(needs[0])})",
        )
    return rule  # type: ignore[no-any-return]
