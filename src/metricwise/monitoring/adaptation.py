"""``Rule.adapted``: a rule fitted anew to rows without labels whose class shares have moved.

Must not know how rules are searched for.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ..core.errors import InvalidParameter, mention
from ..core.inputs import PROBABILITIES
from ..core.schema import Schema
from ..data.classes import kept_order
from ..data.sources.base import SourceBase
from ..evaluation.arguments import own_average, own_metric
from ..fitting.driver import route_of
from ..fitting.solving import FitTask, Settings
from ..goals.constraint_text import read_constraints
from ..goals.spec import GoalSpec
from ..oracles.problem import FitStrategy, Problem
from ..rules.base import Rule
from ..rules.calibration import TemperatureScaling, prior_shift
from ..rules.class_shares import EXACT, UNCHANGED, moved_metadata
from ..rules.cut_points import in_unit_of_rows
from ..rules.stored_calibration import StoredCalibration, require_calibration
from .shares import ShareEstimate, check_groups, check_level, read_unlabelled, shares_of_rows

__all__ = ["adapt"]

MIN_ROWS = 1_000  # whose expected counts say more than the rule moved by Bayes' rule: see docs/life.md


def adapt(rule: Rule, proba: Any, metric: Any, level: float, pos_label: Any) -> Rule:
    """Return a rule fitted to the expected counts of rows without labels; see :meth:`metricwise.Rule.adapted`."""
    check_groups(rule)
    check_level(level)
    if any(spec.over is not None for spec in read_constraints(list(rule.metadata.subject_to or ()))):
        raise InvalidParameter(
            "rule",
            "have no constraints about sensitive groups, which rows without labels and groups cannot satisfy",
            remedy="fit it again with recent labels",
        )
    calibration = require_calibration(rule.metadata.calibration, rule.schema, "adapted")
    rows = read_unlabelled(rule, proba, pos_label)
    if rows.n_rows < MIN_ROWS:
        raise InvalidParameter(
            "proba",
            f"have at least {MIN_ROWS:,} rows, because fewer say too little about the best rule",
            f"{rows.n_rows}",
            f"pass metricwise.estimate_shares(rule, proba) to {mention('rule.with_prior')}",
        )
    shares = shares_of_rows(rule, rows, calibration, level)
    was_moved = rule.metadata.prior is not None  # then the shares of the rows of the fit are news, too
    if rule.metadata.under_new_shares == UNCHANGED or not (shares.any_moved or was_moved):
        return rule
    if rule.metadata.under_new_shares == EXACT:
        return rule.with_prior(shares)
    return _refit(rule, rows, calibration, shares, metric)


def _refit(rule: Rule, rows: SourceBase, calibration: StoredCalibration, shares: ShareEstimate, metric: Any) -> Rule:
    """Fit the rule anew behind the shifted calibration."""
    table = np.atleast_2d(shares.estimate)
    link = prior_shift(calibration.link, calibration.shares, table)
    problem, goal = _problem(rule, rows.map(partial(_behind, link)), metric)
    task = FitTask(problem, goal, FitStrategy("expected"), Settings())
    fitted = route_of(task)(task)
    entries = moved_metadata(rule.metadata, table, rule.n_classes, "adapted")
    entries |= {"recipe": f"expected counts of {rows.n_rows} rows without labels, behind shifted calibration"}
    entries |= {"metric": goal.aim.name, "average": goal.aim.average}
    refitted = fitted.rule.named(rule.schema, link, rule.metadata.updated(**entries))
    adapted: Rule = in_unit_of_rows(refitted, rule.schema)
    keeps = goal.aim.average == "macro" and rule.metadata.prior is None and metric is None
    return adapted.with_outputs_of(rule, ~np.atleast_1d(shares.moved)) if keeps else adapted


def _behind(link: TemperatureScaling, rows: Any) -> Any:
    return replace(rows, proba=link.view(rows.proba).recalibrated())


def _problem(rule: Rule, source: SourceBase, metric: Any) -> tuple[Problem, Any]:
    """Return the problem of calibrated probabilities without labels, and the goal that the rule was fitted for."""
    metadata = rule.metadata
    order = kept_order(metadata, rule.classes)
    schema = Schema(rule.classes, rule.multioutput, output_names=rule.output_names, order=order, input=PROBABILITIES)
    spec = GoalSpec(
        own_metric(rule, "metric") if metric is None else metric,
        own_average(rule),
        metadata.pos_label,
        subject_to=None if metadata.subject_to is None else list(metadata.subject_to),
        confidence=None,
        abstain=None if rule.abstain_label is None else (metadata.abstain or True),
    )
    goal = spec.read(schema)
    return Problem(source.described(goal.schema), goal.aim, None, {}, goal.abstention, goal.constraints), goal
