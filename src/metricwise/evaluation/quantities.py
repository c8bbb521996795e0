"""What rules are judged by: metrics, those of the worst group, gaps between groups, the mean of costs per row.

Owns which of these a metric that was given means. Must not know rows or rules.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..core.errors import InvalidParameter, mention
from ..data import Schema
from ..goals.constraint_text import GAP, ConstraintSpec, Gap, read_constraints
from ..goals.parity import PARITIES
from ..goals.resolve import resolve_constraints
from ..metrics.abstention import AbstentionCost
from ..metrics.aim import Aim

__all__ = ["COST", "GroupGap", "Quantity", "aims_of", "as_gap", "read_gap"]

COST = "cost"


@dataclass(frozen=True, eq=False)
class GroupGap:
    """The largest difference of any of some metrics between two sensitive groups."""

    aims: tuple[Aim, ...]


Quantity = Aim | GroupGap | str  # the text is COST


def aims_of(quantity: Quantity) -> tuple[Aim, ...]:
    """Return the metrics that a quantity is about, of all rows."""
    if isinstance(quantity, GroupGap):
        return quantity.aims
    return (replace(quantity, least=False),) if isinstance(quantity, Aim) else ()


def as_gap(metric: Any) -> ConstraintSpec | None:
    """Return the gap between groups that a metric is: "equalized_odds", "recall gap", mw.gap("recall"); else None."""
    if isinstance(metric, Gap):
        return _without_bound(ConstraintSpec(metric, high=0.0))
    if isinstance(metric, str):
        name = metric.strip()
        if name.partition("[")[0] in PARITIES or name.endswith(" gap"):
            (wanted,) = read_constraints(f"{name} <= 0")
            return _without_bound(wanted)
    return None


def _without_bound(wanted: ConstraintSpec) -> ConstraintSpec:
    return replace(wanted, high=np.inf, text=wanted.term)


def read_gap(
    wanted: ConstraintSpec,
    schema: Schema,
    *,
    pos_label: Any,
    allowed: AbstentionCost | None,
    groups: tuple[Any, ...] | None,
) -> GroupGap:
    """Find the metrics whose gaps are meant, each as an aim of the outputs that it is about, pooled."""
    assert wanted.over == GAP
    if groups is None:
        raise InvalidParameter(
            "metrics",
            problem=(
                f"metrics: {wanted.term} is about groups, so {mention('sensitive_features')} must give the "
                "group of every row, got None"
            ),
        )
    try:
        found = resolve_constraints([wanted], schema, pos_label=pos_label, groups=groups)
    except InvalidParameter as error:
        raise error.within("metrics: ", owner="evaluate") from None
    aims = []
    for one in found:
        if (one.group, one.minus) != (0, 1):  # the others are the same metrics of other groups
            continue
        weight = np.ones(schema.n_outputs) if one.output is None else np.eye(schema.n_outputs)[one.output]
        metric = one.metric if allowed is None else allowed.judge(one.metric, schema.classes)
        aims.append(Aim(metric, "micro", weight, name=wanted.term))
    return GroupGap(tuple(aims))
