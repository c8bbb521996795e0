"""Quantities that rules are judged by: metrics, those of the worst group, gaps between groups, costs per row.

Must not know rows or rules.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..core.errors import InvalidParameter, mention
from ..core.schema import Schema
from ..goals.constraint_text import GAP, ConstraintSpec, Gap, read_constraints
from ..goals.parity import PARITIES
from ..goals.resolve import resolve_constraints
from ..metrics.abstention import AbstentionCost
from ..metrics.aim import AveragedMetric

__all__ = ["COST", "GroupGap", "Quantity", "aims_of", "as_gap", "read_gap"]

COST = "cost"


@dataclass(frozen=True, eq=False)
class GroupGap:
    """The largest difference of any of some metrics between two sensitive groups."""

    aims: tuple[AveragedMetric, ...]


Quantity = AveragedMetric | GroupGap | str  # the text is COST


def aims_of(quantity: Quantity) -> tuple[AveragedMetric, ...]:
    """Return the metrics that a quantity is about, of all rows."""
    if isinstance(quantity, GroupGap):
        return quantity.aims
    return (replace(quantity, least=False),) if isinstance(quantity, AveragedMetric) else ()


def as_gap(metric: Any) -> ConstraintSpec | None:
    """Return the gap between groups that a metric is: "equalized_odds", "recall gap", mw.gap("recall"); else None."""
    if isinstance(metric, Gap):
        return _without_bound(ConstraintSpec(metric, high=0.0))
    if isinstance(metric, str):
        name = metric.strip()
        if name.partition("[")[0] in PARITIES or name.endswith(" gap"):
            (gap,) = read_constraints(f"{name} <= 0")
            return _without_bound(gap)
    return None


def _without_bound(gap: ConstraintSpec) -> ConstraintSpec:
    return replace(gap, high=np.inf, text=gap.term)


def read_gap(
    gap: ConstraintSpec,
    schema: Schema,
    *,
    pos_label: Any,
    allowed: AbstentionCost | None,
    groups: tuple[Any, ...] | None,
) -> GroupGap:
    """Find the metrics whose gaps are meant, each as an aim of the outputs that it is about, pooled."""
    assert gap.over == GAP
    if groups is None:
        raise InvalidParameter(
            "metrics",
            problem=(
                f"metrics: {gap.term} is about groups, so {mention('sensitive_features')} must give the "
                "group of every row, got None"
            ),
        )
    try:
        constraints = resolve_constraints([gap], schema, pos_label=pos_label, groups=groups)
    except InvalidParameter as error:
        raise error.within("metrics: ", owner="evaluate") from None
    aims = []
    for constraint in constraints:
        if (constraint.group, constraint.minus) != (0, 1):  # the others are the same metrics of other groups
            continue
        weight = np.ones(schema.n_outputs) if constraint.output is None else np.eye(schema.n_outputs)[constraint.output]
        metric = constraint.metric if allowed is None else allowed.judge(constraint.metric, schema.classes)
        aims.append(AveragedMetric(metric, "micro", weight, name=gap.term))
    return GroupGap(tuple(aims))
