"""Ways to a rule: metricwise with `guarantee="exact"`, with `confidence=` alone, and MAPIE in several settings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import metricwise as mw

from .problems import CONFIDENCE, SIZES, Problem, bounds
from .worlds import Rows

Decide = Callable[[np.ndarray], np.ndarray]
Fit = Callable[[Rows, Problem, str], Decide | None]
SHARE_TO_LEARN = 0.3  # of the rows, for MAPIE's order of tests
WEIGHTS = np.stack(np.meshgrid(np.geomspace(0.5, 4, 10), np.geomspace(0.5, 4, 10)), axis=-1).reshape(-1, 2)


@dataclass(frozen=True)
class Way:
    """A way to a rule, and in every how many draws it is measured, by the number of rows."""

    name: str
    fit: Fit
    every: dict[int, int]

    def is_due(self, number: int, n: int, problem: Problem) -> bool:
        """Whether it is measured in a draw; in slow problems others than ours are measured less often."""
        slowness = 1 if self.name in OURS else problem.slowness
        return number % (self.every[n] * slowness) == 0


# ---------------------------------------------------------------------------------------------------------------------
# metricwise


def exact(rows: Rows, problem: Problem, text: str, *, others: bool) -> Decide | None:
    """Return the guaranteed rule; None if nothing can be guaranteed."""
    unlabelled = rows.unlabelled if others else None
    goal: dict[str, Any] = {"subject_to": text, "guarantee": "exact", "confidence": CONFIDENCE} | problem.options
    try:
        solution = mw.optimize(rows.proba, rows.y, problem.aim, unlabelled=unlabelled, **goal)
    except mw.InvalidParameter as error:
        if error.parameter != "subject_to":
            raise
        return None
    return solution.rule.predict


def about(rows: Rows, problem: Problem, text: str) -> Decide | None:
    """Return the rule of `confidence=` without a guarantee; None if there are too few rows for the confidence."""
    try:
        solution = mw.optimize(
            rows.proba, rows.y, problem.aim, subject_to=text, confidence=CONFIDENCE, **problem.options
        )
    except ValueError:
        return None
    promised = all(constraint.confidence == CONFIDENCE for constraint in solution.constraints)
    return solution.rule.predict if promised else None


# ---------------------------------------------------------------------------------------------------------------------
# MAPIE


def by_mapie(
    rows: Rows, problem: Problem, text: str, *, method: str, starts: int = 1, percentiles: bool = False
) -> Any:
    """Return the rule of MAPIE; None if it finds no parameter."""
    tests = procedure(method, starts)
    if problem.abstains:
        controller = of_cuts(rows, text, tests, percentiles)
    elif rows.proba.ndim == 2:
        controller = of_classes(text, tests)
    else:
        controller = of_thresholds(rows, problem, text, tests, percentiles)
    y, proba = rows.y, rows.proba
    if method == "split_fixed_sequence":
        n = int(SHARE_TO_LEARN * len(y))
        controller.learn_fixed_sequence_order(proba[:n], y[:n], binary=True)
        y, proba = y[n:], proba[n:]
    controller.calibrate(proba, y)
    return None if controller.best_predict_param is None else controller.predict


def procedure(method: str, starts: int) -> Any:
    from mapie.risk_control.fwer_control import FWERFixedSequenceTesting

    return FWERFixedSequenceTesting(n_starts=starts) if starts > 1 else method


def as_columns(p: np.ndarray) -> np.ndarray:
    """A model whose features are the probabilities of class 1."""
    return np.stack([1 - p, p], axis=1)


def thresholds(scores: np.ndarray, others: np.ndarray | None) -> np.ndarray:
    """Return MAPIE's grid, or the percentiles of other scores; none that has no row above it.

    In version 1.6.0 a threshold without a row has the p-value NaN, and the default procedure then finds none at all.
    """
    grid = np.linspace(0, 0.99, 100) if others is None else np.unique(np.percentile(others, np.arange(100)))
    n = int(SHARE_TO_LEARN * len(scores))
    return grid[grid <= min(scores[:n].max(), scores[n:].max())]


def of_thresholds(rows: Rows, problem: Problem, text: str, fwer_method: Any, percentiles: bool) -> Any:
    """Return a controller of binary thresholds: 100 in equal distance, or percentiles of the unlabelled rows."""
    from mapie.risk_control import BinaryClassificationController

    risks, targets = zip(*bounds(text), strict=True)
    one = len(risks) == 1
    grid = thresholds(rows.proba, rows.unlabelled if percentiles else None)
    return BinaryClassificationController(
        as_columns,
        risks[0] if one else list(risks),
        targets[0] if one else list(targets),
        CONFIDENCE,
        best_predict_param_choice=problem.aim,
        list_predict_params=grid,
        fwer_method=fwer_method,
    )


def weighted(proba: np.ndarray, *weights: float) -> np.ndarray:
    """Decide with weights of all classes but the first."""
    return np.argmax(proba * np.array([1.0, *weights]), axis=1)


def of_classes(text: str, fwer_method: Any) -> Any:
    """Return a controller of the weights of classes, a grid of 100."""
    from mapie.risk_control import MultiClassificationLTTController
    from mapie.risk_control.risks import accuracy, build_recall_ovr

    labels = [int(name.split("[")[1][:-1]) for name, _ in bounds(text)]
    return MultiClassificationLTTController(
        weighted,
        build_recall_ovr(labels),
        [bound for _, bound in bounds(text)],
        CONFIDENCE,
        best_predict_param_choice=accuracy,
        list_predict_params=WEIGHTS,
        fwer_method=fwer_method,
    )


def of_cuts(rows: Rows, text: str, fwer_method: Any, percentiles: bool) -> Any:
    """Return a controller of the largest probability from which on a row is decided."""
    from mapie.risk_control import MultiClassificationLTTController
    from mapie.risk_control.risks import BinaryRisk, abstention_rate

    accuracy = BinaryRisk(lambda y, decided: decided == y, lambda _, decided: ~np.isnan(decided), True)
    largest, others = rows.proba.max(axis=1), rows.unlabelled.max(axis=1)
    return MultiClassificationLTTController(
        np.asarray,
        [accuracy],
        [bound for _, bound in bounds(text)],
        CONFIDENCE,
        best_predict_param_choice=abstention_rate,
        list_predict_params=thresholds(largest, others if percentiles else None),
        fwer_method=fwer_method,
    )


# ---------------------------------------------------------------------------------------------------------------------


OURS = ("exact, unlabelled rows", "exact")
# Every how many draws, by the number of rows: multiples of those of ours, so that all are compared on the same draws.
ALL = dict.fromkeys(SIZES, 1)
SECOND = dict.fromkeys(SIZES, 2)
SELDOM = {500: 4, 1_000: 4, 4_000: 4, 20_000: 20, 100_000: 20}
LEARNED = dict.fromkeys(SIZES, 100)  # learning the order takes a third of a second
TODAY = dict.fromkeys(SIZES, 20)
MAPIE: dict[str, dict[str, Any]] = {
    "mapie": {"method": "bonferroni_holm"},
    "mapie, fixed sequence": {"method": "fixed_sequence"},
    "mapie, ten starts": {"method": "fixed_sequence", "starts": 10},
    "mapie, learned sequence": {"method": "split_fixed_sequence"},
    "mapie, percentiles": {"method": "bonferroni_holm", "percentiles": True},
    "mapie, percentiles, ten starts": {"method": "fixed_sequence", "starts": 10, "percentiles": True},
}


def ways(problem: Problem, text: str) -> list[Way]:
    """Return the ways that can be tried: several constraints and weights of classes are not for fixed sequences."""
    ours = [Way(OURS[0], partial(exact, others=True), ALL), Way(OURS[1], partial(exact, others=False), SECOND)]
    single = len(bounds(text)) == 1
    settings = {name: setting for name, setting in MAPIE.items() if single or setting["method"] != "fixed_sequence"}
    if problem.world == "classes" and not problem.abstains:
        settings = {name: setting for name, setting in settings.items() if "percentiles" not in setting}
    theirs = [
        Way(name, partial(by_mapie, **setting), LEARNED if setting["method"].startswith("split") else SELDOM)
        for name, setting in settings.items()
    ]
    return [*ours, Way("about", about, TODAY), *theirs]
