"""The cards themselves."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from ...data.sources.memory import MemorySource
from ...rules.mixture import MixtureRule
from ...rules.weighted import WeightedRule
from ..details import Curve, Missing, attempt
from ..view import View
from .markup import Html, join, table, tag
from .numbers import advice, as_read, interval, is_loss, losses_known, metric_name, number, promise_words
from .rule_table import rule_table
from .svg import Mark, line_chart

__all__ = ["estimator_card", "rule_card", "solution_card"]

_MANY = 12  # lines of words that are shown at once


def solution_card(solution: View) -> Html:
    """Return what a notebook shows of a solution.

    Parameters
    ----------
    solution : Solution

    Returns
    -------
    str
        Self-contained HTML without scripts.

    Examples
    --------
    >>> import metricwise as mw
    >>> from metricwise.inspection.cards import solution_card
    >>> solution = mw.optimize([0.1, 0.4, 0.6, 0.9] * 20, [0, 1, 0, 1] * 20, "f1")
    >>> "argmax" in solution_card(solution)
    True
    """
    kind, sentence = advice(solution)
    expected = "expected " if solution.counted == "expected" else ""
    name = metric_name(solution)
    sign = -1.0 if is_loss(solution) else 1.0
    value, baseline = (number(sign * one + 0.0) for one in (solution.value, solution.baseline))
    head = [_figure(f"{expected}{name}", value), _figure("argmax", baseline)]
    if solution.gain is not None:
        gained = "saved" if is_loss(solution) else "gain"
        head.append(_figure(f"{gained} on new rows", interval(solution.gain, signed=True)))
    left = [_chart(solution), _promises(solution), _groups(solution)]
    return _card(
        tag("div", *head, class_="mw-head"),
        tag("p", sentence, class_=f"mw-advice mw-{kind}"),
        tag("div", tag("div", *left), tag("div", *_rule(solution.rule)), class_="mw-body"),
        tag("details", tag("summary", "Status"), tag("p", solution.status)) if solution.status else None,
    )


def rule_card(rule: WeightedRule | MixtureRule) -> Html:
    """Return what a notebook shows of a rule.

    Parameters
    ----------
    rule : WeightedRule or MixtureRule

    Returns
    -------
    str

    Examples
    --------
    >>> import metricwise as mw
    >>> from metricwise.inspection.cards import rule_card
    >>> "0.3" in rule_card(mw.WeightedRule.from_thresholds(0.3))
    True
    """
    return _card(tag("div", tag("div", *_rule(rule)), class_="mw-body"))


def estimator_card(estimator: Any) -> Html | None:
    """Return the card of a fitted estimator's solution, or of its rule; None where it has none."""
    solution, rule = (getattr(estimator, name, None) for name in ("solution_", "rule_"))
    if isinstance(solution, View):
        return solution_card(solution)
    return None if rule is None else rule_card(rule)


def _chart(solution: View) -> Html | None:
    """The curve of a solution, or why it could not be made; None where it does not apply."""
    curve = known_curve(solution)
    if isinstance(curve, Missing):
        return tag("p", f"There is no curve: {curve.reason}", class_="mw-missing") if curve.failed else None
    return None if curve is None else curve_chart(curve, solution)


def known_curve(solution: View) -> Curve | Missing | None:
    """Return the curve of a solution, or why it is missing; None where its rows are not in memory.

    Who only looks at a notebook does not want a pass over a cluster.
    """
    held = vars(solution).get("details") is not None or isinstance(
        getattr(solution.problem, "source", None), MemorySource
    )
    if not held:
        return None
    return attempt(lambda: solution.details.curve)


def curve_chart(curve: Curve, solution: View | None = None, width: int = 410, height: int = 170) -> Html:
    """Return a curve as inline SVG."""
    name, along = as_read(*next(iter(curve.values.items())), curve.losses)
    x = np.maximum(curve.position, 0.0)
    marks = [Mark(kind, x[at], along[at]) for kind, at in (("argmax", curve.plain), ("rule", curve.chosen))]
    band = label = None
    if curve.kind == "threshold":
        ticks = [(0.0, "0"), (0.5, "0.5"), (1.0, "1")]
        label = "threshold"
        ends = None if solution is None else solution.threshold_range
        if ends is not None and np.isfinite(ends).all():
            band = (float(ends[0]), float(ends[1]))
    else:
        ticks = [(0.0, "argmax"), (1.0, "rule"), (float(x[-1]), "twice as far")]
    where = "thresholds" if curve.kind == "threshold" else "the path from argmax to the rule and beyond"
    title = f"{name} along {where}: {number(along[curve.plain])} at argmax, {number(along[curve.chosen])} at the rule."
    return line_chart(
        x, {name: along}, marks, ticks=ticks, title=title, band=band, label=label, width=width, height=height
    )


# --------------------------------------------------------------------------------------------------------------- parts


@cache
def _style() -> Html:
    text = (files(__package__) / "style.css").read_text(encoding="utf-8")
    return Html(f"<style>{text}</style>")


def _card(*parts: Any) -> Html:
    return tag("div", _style(), *parts, class_="mw-card")


def _figure(label: str, value: str) -> Html:
    return tag("span", tag("span", label, class_="mw-label"), tag("span", value, class_="mw-big"))


def _rule(rule: Any) -> list[Any]:
    """A rule as a small table, and in words."""
    parts: list[Any] = []
    found = rule_table(rule)
    if found is not None:
        parts += [tag("p", found.caption) if found.caption else None, table(found.head, found.rows)]
        if found.more:
            parts.append(tag("p", f"and {found.more:,} more"))
    lines = rule.describe().splitlines()
    if len(lines) > _MANY:
        lines = [*lines[:_MANY], "…"]
    words = tag("div", "\n".join(lines), class_="mw-words")
    parts.append(words if found is None else tag("details", tag("summary", "In words"), words))
    return parts


def _promises(solution: View) -> Html | None:
    if not solution.constraints:
        return None
    rows = []
    for one in solution.constraints:
        kept, said = promise_words(one)
        rows.append((one.name, number(one.value), "kept" if kept else "broken", said))
    return table(("constraint", "value", "here", "on new rows"), rows)


def _groups(solution: View) -> Html | None:
    """How every sensitive group fares."""
    names = [", ".join(map(str, name)) if isinstance(name, tuple) else str(name) for name in solution.by_group]
    losses = losses_known(solution.rule)
    rows = [
        (
            group,
            as_read(name, None, losses)[0],
            *(number(as_read(name, x, losses)[1]) for x in (one.baseline, one.value)),
        )
        for group, values in zip(names, solution.by_group.values(), strict=True)
        for name, one in values.items()
    ]
    if not rows:
        return None
    more = len(rows) - _MANY
    listed = table(("group", "metric", "argmax", "rule"), rows[:_MANY])
    return listed if more <= 0 else join([listed, tag("p", f"and {more:,} more")])
