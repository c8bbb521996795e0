"""A rule as a small table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.labels import python_labels
from ..rules.base import Rule
from ..rules.describe import unit_of
from ..rules.example_cost import CostRule
from ..rules.forms import Weights, form_of
from ..rules.mixture import MixtureRule
from ..rules.weighted import WeightedRule
from ..rules.writer import RuleWriter

__all__ = ["rule_table"]

_MAX_TABLE_ROWS = 60


def rule_table(rule: Rule) -> dict[str, Any] | None:
    """Return thresholds of binary outputs, weights of classes or shares of rules; None if the rule has none of these.

    The keys are `head`, `rows`, `more` (the number of rows that are left out) and `caption`.

    Examples
    --------
    >>> import metricwise as mw
    >>> from metricwise.inspection.rule_table import rule_table
    >>> rule_table(mw.WeightedRule.from_weights({"low": 1, "high": 4}))["rows"]
    [['low', '0.8']]
    >>> rule_table(mw.WeightedRule.from_weights([1, 2, 3]))["rows"]
    [['0', '1'], ['1', '2'], ['2', '3']]
    """
    return rule.accept(_RuleTables())


@dataclass(frozen=True)
class _RuleTables(RuleWriter[dict[str, Any] | None]):
    """The table of each kind of rule that has one."""

    def weighted(self, rule: WeightedRule) -> dict[str, Any] | None:
        if rule.abstain_label is not None:
            return None
        if rule.width == 2:
            return _thresholds(rule)
        form = None if rule.multioutput else form_of(rule, 0)
        return _weights(rule, form) if isinstance(form, Weights) else None

    def mixture(self, rule: MixtureRule) -> dict[str, Any]:
        shares = np.atleast_2d(rule.weights).mean(axis=0)
        parts = list(zip(shares, rule.rules, strict=True))[:_MAX_TABLE_ROWS]
        rows = [[f"{share:.1%}", (part.describe().splitlines() or [""])[-1]] for share, part in parts]
        return _table(["share of the rows", "rule"], rows, len(rule.rules))

    def example_cost(self, rule: CostRule) -> None:
        return None

    def other(self, rule: Rule, reason: str = "", remedy: str = "") -> None:
        return None


def _table(head: list[str], rows: list[list[str]], n_rows: int, caption: str | None = None) -> dict[str, Any]:
    return {"head": head, "rows": rows, "more": n_rows - len(rows), "caption": caption}


def _weights(rule: WeightedRule, form: Weights) -> dict[str, Any] | None:
    weights, bonuses = form.weights, form.bonuses
    has_bonuses = bool(bonuses.any())
    if not has_bonuses and (weights == weights[0]).all():
        return None
    labels = [str(label) for label in python_labels(rule.classes[0])]
    columns = [[f"{value:.4g}" for value in numbers] for numbers in ((weights, bonuses) if has_bonuses else (weights,))]
    rows = [list(row) for row in zip(labels, *columns, strict=True)][:_MAX_TABLE_ROWS]
    caption = "The class with the largest weight × probability" + (" + bonus" if has_bonuses else "") + " is predicted."
    if rule.schema.input.is_logits:
        caption += f" The {rule.schema.input.plural} are mapped to probabilities first."
    elif rule.link is not None:
        caption += " Probabilities are recalibrated first."
    return _table(["class", "weight", "bonus"][: 1 + len(columns)], rows, len(labels), caption)


def _thresholds(rule: WeightedRule) -> dict[str, Any]:
    rows = []
    for m, threshold in enumerate(rule.thresholds[:_MAX_TABLE_ROWS].tolist()):
        limits = {np.inf: "never", -np.inf: "always"}
        text = unit_of(rule, m).number(threshold) if np.isfinite(threshold) else limits.get(threshold, "inverted")
        name = [str(m if rule.output_names is None else rule.output_names[m])] if rule.multioutput else []
        rows.append([*name, str(python_labels(rule.classes[m])[1]), text])
    head = [*(["output"] if rule.multioutput else []), "predict", f"if its {rule.schema.input.noun} exceeds"]
    return _table(head, rows, rule.n_outputs)
