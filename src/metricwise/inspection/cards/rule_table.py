"""A rule as a small table."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...core.labels import python_labels
from ...rules.base import Rule
from ...rules.example_cost import CostRule
from ...rules.forms import Weights, form_of
from ...rules.mixture import MixtureRule
from ...rules.weighted import WeightedRule
from ...rules.writer import RuleWriter

__all__ = ["RuleTable", "rule_table"]


@dataclass(frozen=True)
class RuleTable:
    """Rows and columns of text.

    Parameters
    ----------
    head : tuple of str
    rows : tuple of tuple of str
    more : int
        Rows that were left out.
    caption : str, optional
    """

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    more: int = 0
    caption: str | None = None


def rule_table(rule: Rule, most: int = 8) -> RuleTable | None:
    """Return thresholds of binary outputs or weights of classes; None for a rule that has neither.

    Parameters
    ----------
    rule : Rule
        Of classes behind a link, weights are those of the recalibrated probabilities.
    most : int, default=8
        Rows at most.

    Examples
    --------
    >>> import metricwise as mw
    >>> from metricwise.inspection.cards.rule_table import rule_table
    >>> table = rule_table(mw.WeightedRule.from_weights({"low": 1, "high": 4}))
    >>> table.head, table.rows
    (('predict', 'if its probability exceeds'), (('low', '0.8'),))
    >>> rule_table(mw.WeightedRule.from_weights([1, 2, 3])).rows
    (('0', '1'), ('1', '2'), ('2', '3'))
    """
    return rule.accept(_Tables(most))


@dataclass(frozen=True)
class _Tables(RuleWriter[RuleTable | None]):
    """The table of each kind of rule that has one; for all others the words of `describe` are all."""

    most: int

    def weighted(self, rule: WeightedRule) -> RuleTable | None:
        if rule.abstain_label is not None:
            return None
        if rule.width == 2:
            return _thresholds(rule, self.most)
        form = None if rule.multioutput else form_of(rule, 0)
        return _weights(rule, form, self.most) if isinstance(form, Weights) else None

    def mixture(self, rule: MixtureRule) -> RuleTable:
        return _shares(rule, self.most)

    def example_cost(self, rule: CostRule) -> None:
        return None

    def other(self, rule: Rule, reason: str = "", remedy: str = "") -> None:
        return None


def _weights(rule: WeightedRule, form: Weights, most: int) -> RuleTable | None:
    weight, bonus = form.weights, form.bonuses
    if not bonus.any() and (weight == weight[0]).all():
        return None
    labels = [str(label) for label in python_labels(rule.classes[0])]
    columns = [[f"{value:.4g}" for value in numbers] for numbers in ((weight, bonus) if bonus.any() else (weight,))]
    rows = tuple(zip(labels, *columns, strict=True))
    head = ("class", "weight", "bonus")[: 1 + len(columns)]
    caption = "The class with the largest weight × probability" + (" + bonus" if bonus.any() else "") + " is predicted."
    if rule.link is not None:
        caption += " Probabilities are recalibrated first."
    return RuleTable(head, rows[:most], max(0, len(rows) - most), caption)


def _thresholds(rule: WeightedRule, most: int) -> RuleTable:
    thresholds = rule.thresholds
    rows = []
    for m in range(min(rule.n_outputs, most)):
        positive = str(python_labels(rule.classes[m])[1])
        t = thresholds[m]
        said = f"{t:.4g}" if np.isfinite(t) else "never" if t == np.inf else "always" if t == -np.inf else "inverted"
        name = () if not rule.multioutput else (_name(rule, m),)
        rows.append((*name, positive, said))
    head = (*(("output",) if rule.multioutput else ()), "predict", "if its probability exceeds")
    return RuleTable(head, tuple(rows), max(0, rule.n_outputs - most))


def _shares(rule: MixtureRule, most: int) -> RuleTable:
    weights = np.atleast_2d(rule.weights).mean(axis=0)
    rows = []
    for share, one in list(zip(weights, rule.rules, strict=True))[:most]:
        *_, last = one.describe().splitlines() or [""]
        rows.append((f"{share:.1%}", last))
    return RuleTable(("share of the rows", "rule"), tuple(rows), max(0, len(rule.rules) - most))


def _name(rule: WeightedRule, m: int) -> str:
    return str(m) if rule.output_names is None else str(rule.output_names[m])
