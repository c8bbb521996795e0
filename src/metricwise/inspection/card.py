"""Cards: what a notebook shows of a solution, a rule or a fitted estimator, as HTML without scripts.

Owns how a summary becomes a card, without extras. Must not count rows.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

from ..rules.base import Rule
from .charts import path_chart
from .markup import Html, join, table, tag
from .summary import summarize_for_card, summarize_rule
from .text import number
from .view import View

__all__ = ["estimator_card", "rule_card", "solution_card"]

_MAX_LINES = 12  # of a description or a table of groups
_MAX_RULE_ROWS = 8


def solution_card(solution: View) -> Html:
    """Return the card of a solution.

    Examples
    --------
    >>> import metricwise as mw
    >>> from metricwise.inspection.card import solution_card
    >>> solution = mw.optimize([0.1, 0.4, 0.6, 0.9] * 20, [0, 1, 0, 1] * 20, "f1")
    >>> "argmax" in solution_card(solution)
    True
    """
    summary = summarize_for_card(solution)
    advice, status = summary["advice"], summary["status"]
    shown = (_path(summary), _constraints(summary["promises"]), _groups(summary["groups"]), _labels(summary))
    columns = tag("div", *shown)
    return _card(
        tag("div", *_figures(summary), class_="mw-head"),
        tag("p", advice["sentence"], class_=f"mw-advice mw-{advice['kind']}"),
        tag("div", columns, tag("div", *_rule(summary["rule"])), class_="mw-body"),
        tag("details", tag("summary", "Status"), tag("p", status)) if status else None,
    )


def rule_card(rule: Rule) -> Html:
    """Return the card of a rule.

    Examples
    --------
    >>> import metricwise as mw
    >>> from metricwise.inspection.card import rule_card
    >>> "0.3" in rule_card(mw.WeightedRule.from_thresholds(0.3))
    True
    """
    return _card(tag("div", tag("div", *_rule(summarize_rule(rule))), class_="mw-body"))


def estimator_card(estimator: Any) -> Html | None:
    """Return the card of the solution of a fitted estimator, or of its rule; None if it has neither."""
    solution, rule = (getattr(estimator, name, None) for name in ("solution_", "rule_"))
    if isinstance(solution, View):
        return solution_card(solution)
    return None if rule is None else rule_card(rule)


@cache
def _style() -> Html:
    return Html(f"<style>{(files(__package__) / 'templates' / 'card.css').read_text(encoding='utf-8')}</style>")


def _card(*parts: Any) -> Html:
    return tag("div", _style(), *parts, class_="mw-card")


def _figures(summary: dict[str, Any]) -> list[Html]:
    figures, gain = summary["figures"], summary["figures"]["gain"]
    pairs = [
        (("expected " if figures["expected"] else "") + summary["metric"], number(figures["value"])),
        (summary["baseline"], number(figures["baseline"])),
    ]
    if gain is not None:
        estimate, low, high = (number(gain[key], True) for key in ("estimate", "low", "high"))
        label = "saved on new data" if figures["lower_is_better"] else "gain on new data"
        pairs.append((label, f"{estimate} [{low}, {high}]"))
    return [
        tag("span", tag("span", label, class_="mw-label"), tag("span", value, class_="mw-big"))
        for label, value in pairs
    ]


def _path(summary: dict[str, Any]) -> Html | None:
    if summary["path"] is not None:
        return path_chart(summary["path"], width=410, height=170)
    missing = summary["missing"].get("path")
    if missing is None or not missing["failed"]:
        return None
    return tag("p", f"No curve: {missing['reason']}", class_="mw-missing")


def _constraints(constraints: list[dict[str, Any]]) -> Html | None:
    rows = [
        (
            constraint["name"],
            number(constraint["value"]),
            "satisfied" if constraint["kept"] else "violated",
            constraint["words"],
        )
        for constraint in constraints
    ]
    return table(("constraint", "value", "given rows", "new data"), rows) if rows else None


def _groups(groups: list[dict[str, Any]]) -> Html | None:
    rows = [(row["group"], row["metric"], number(row["baseline"]), number(row["value"])) for row in groups]
    if not rows:
        return None
    return join([table(("group", "metric", "argmax", "rule"), rows[:_MAX_LINES]), _more(len(rows) - _MAX_LINES)])


def _labels(summary: dict[str, Any]) -> Html | None:
    """Return the values of labels by their frequency."""
    if summary["labels"] is None:
        return None
    head = ("true rows", "labels", summary["baseline"], f"{summary['labels']['metric']} of the rule")
    rows = [
        (group["name"], f"{group['n_labels']:,}", number(group["baseline"]), number(group["value"]))
        for group in summary["labels"]["by_frequency"]
    ]
    return table(head, rows)


def _rule(summary: dict[str, Any]) -> list[Html | None]:
    lines, rule_table = summary["words"], summary["table"]
    if len(lines) > _MAX_LINES:
        lines = [*lines[:_MAX_LINES], "…"]
    description = tag("div", "\n".join(lines), class_="mw-words")
    if rule_table is None:
        return [description]
    rows = rule_table["rows"]
    return [
        tag("p", rule_table["caption"]) if rule_table["caption"] else None,
        table(rule_table["head"], rows[:_MAX_RULE_ROWS]),
        _more(len(rows) + rule_table["more"] - _MAX_RULE_ROWS),
        tag("details", tag("summary", "Description"), description),
    ]


def _more(n_rows: int) -> Html | None:
    return tag("p", f"and {n_rows:,} more") if n_rows > 0 else None
