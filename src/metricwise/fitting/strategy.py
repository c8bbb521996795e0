"""The public settings of a fit: what is counted, recalibration, the solver and its settings."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..core.errors import InvalidParameter, InvalidType, argument, entry_point, mention, shown
from ..core.params import Parameters
from ..metrics.base import Metric
from ..oracles.problem import FitStrategy
from ..solvers import SOLVERS, make_solver
from ..solvers.base import Solver
from .solving import Settings

__all__ = ["Strategy"]

_CONFUSIONS = ("auto", "labels", "expected", "blended")


def default_strategies() -> list[FitStrategy]:
    """Return what is fitted by default.

    Labels are right where probabilities are wrong, probabilities have less noise where labels are few. On the sets of
    the study (docs/generalisation.md) and with misspecified models the mean of both rules did better on new rows than
    either, than labels and probabilities counted half and half, and than a choice between them.
    """
    return [FitStrategy("expected", recalibrate=True), FitStrategy("labels", recalibrate=True)]


@dataclass(frozen=True)
class Strategy(Parameters):
    """Settings of the search for a rule; by default, all are chosen automatically.

    Can be passed as `strategy`. In an estimator its fields can be searched over, as in ``strategy__recalibrate``.

    Parameters
    ----------
    confusion : {"auto", "labels", "expected", "blended"}, default="auto"
        How confusion matrices are counted: with the labels, with the probabilities in place of labels, or with half of
        each.
    recalibrate : {"auto", True, False}, default="auto"
        Whether to first recalibrate the probabilities with a temperature and a bias per class, fitted to the labels;
        "auto" does. If this or `confusion` is "auto", rules are fitted to resamples of the rows (with labels and with
        probabilities, unless `confusion` fixes which), and their average is judged on the rows that the resamples leave
        out: argmax is returned if it is no worse, and `Solution.gain` estimates the gain on new data.
        With more than 20,000 rows, a sample is used to judge the rule, which is fitted to all rows. Fixing both
        parameters switches this off.
    solver : str or Solver, default="auto"
        "closed_form", "sweep", "path", "dinkelbach", "bisection", "frank_wolfe", "column_generation", "ascent", or a
        solver object; "auto" picks one by the form of the metric. A solver raises an error for a metric whose form it
        cannot handle. A solver given by name raises an error if `tol` or `randomized` is given and it has no such
        setting; a solver object carries its own settings.
    tol : float, optional
        Tolerance of an iterative solver. With ``solver="auto"`` it may be set for any metric: an exact solver meets any
        tolerance.
    randomized : bool, default=False
        Whether to allow a mixture of rules where that beats any single rule; if False, the best single rule is
        returned. With ``solver="auto"`` it may be set for any metric: if a single rule is optimal, it is returned.

    See Also
    --------
    metricwise.optimize : Find a rule.
    metricwise.MetricOptimalClassifierCV : The same as a scikit-learn estimator.

    Examples
    --------
    >>> import metricwise as mw
    >>> proba = [[0.7, 0.2, 0.1], [0.5, 0.3, 0.2], [0.4, 0.3, 0.3], [0.5, 0.1, 0.4]]
    >>> fixed = mw.Strategy(confusion="labels", recalibrate=False)
    >>> mw.optimize(proba, [1, 2, 2, 3], "quadratic_kappa", strategy=fixed).rule.predict(proba).tolist()
    [1, 2, 2, 2]
    """

    confusion: str = "auto"
    recalibrate: bool | str = "auto"
    solver: str | Solver = "auto"
    tol: float | None = None
    randomized: bool = False

    @entry_point("{class}")
    def __post_init__(self) -> None:
        confusion: Any = self.confusion
        tol: Any = self.tol
        if not isinstance(confusion, str) or confusion not in _CONFUSIONS:
            raise self._invalid("confusion", "be 'auto', 'labels', 'expected' or 'blended'")
        if not _is_bool(self.recalibrate) and not (isinstance(self.recalibrate, str) and self.recalibrate == "auto"):
            raise self._invalid("recalibrate", "be 'auto', True or False")
        if not _is_bool(self.randomized):
            raise self._invalid("randomized", "be True or False")
        if tol is not None and not (isinstance(tol, (int, float, np.number)) and 0 < tol < np.inf):
            raise self._invalid("tol", "be a positive number")
        self._check_solver()

    @classmethod
    def of(cls, strategy: Any) -> Strategy:
        """Return what was given as `strategy`; None is the default."""
        if strategy is None:
            return cls()
        if not isinstance(strategy, cls):
            must = "be a Strategy, such as mw.Strategy(recalibrate=False), or None"
            raise InvalidType("strategy", must, shown(strategy))
        return strategy

    @property
    def fixed(self) -> bool:
        """Whether nothing is left to be chosen by rows that were left out."""
        return self.confusion != "auto" and not isinstance(self.recalibrate, str)

    def recipes(self, labelled: bool, metric: Metric) -> FitStrategy | list[FitStrategy]:
        """Return the recipe that is fixed, or the candidates that are left, the default first.

        Parameters
        ----------
        labelled : bool
        metric : Metric
            What is maximised: one of whole rows is counted with labels.
        """
        self._check_labels(labelled)
        confusion: Any = self._for_whole_rows(metric) if metric.traits.needs_integer_counts else self.confusion
        if not labelled:
            return FitStrategy("expected")
        if confusion == "auto":
            return [replace(recipe, recalibrate=bool(self.recalibrate)) for recipe in default_strategies()]
        if isinstance(self.recalibrate, str):
            return [FitStrategy(confusion, recalibrate=True)]
        return FitStrategy(confusion, bool(self.recalibrate))

    def single_recipe(self, labelled: bool) -> FitStrategy:
        """Return one recipe, for who compares none: with labels, recalibrated, where there are any."""
        self._check_labels(labelled)
        chosen: Any = ("labels" if labelled else "expected") if self.confusion == "auto" else self.confusion
        return FitStrategy(chosen, labelled if isinstance(self.recalibrate, str) else bool(self.recalibrate))

    def make_solver(self, seed: int) -> Solver | Settings:
        """Return the solver that was asked for, or the settings for one that is chosen by the form of the metric."""
        if not isinstance(self.solver, str):
            return self.solver
        if self.solver == "auto":
            return Settings(bool(self.randomized), seed, self.tol)
        # False and the seed, which is also that of folds and resamples, ask for nothing that a solver might lack.
        settings = {"tol": self.tol, "randomized": self.randomized or None}
        seeded = {"seed": seed} if "seed" in SOLVERS[self.solver].settings() else {}
        return make_solver(self.solver, **settings, **seeded)

    def _check_labels(self, labelled: bool) -> None:
        if labelled:
            return
        if self.confusion in ("labels", "blended"):
            problem = f"{argument('confusion', self.confusion)} needs y"
            raise InvalidParameter("confusion", problem=problem, remedy="without labels use 'expected' or 'auto'")
        if self.recalibrate is True:
            problem = f"{argument('recalibrate', True)} needs y"
            raise InvalidParameter("recalibrate", problem=problem, remedy="without labels use False or 'auto'")

    def _for_whole_rows(self, metric: Metric) -> str:
        """Return how to count for a metric of whole rows."""
        metric = next(part for part in metric._distinct if part.traits.needs_integer_counts)
        weight = mention("sample_weight")
        problem = f"{metric.name} takes no {weight}, so it can only be evaluated on whole rows with labels, but "
        remedy = f"add a parameter {weight} to the function, or "
        if self.confusion not in ("auto", "labels"):
            raise InvalidParameter(
                "confusion",
                problem=f"{problem}{argument('confusion', self.confusion)} counts fractions of rows",
                remedy=f"{remedy}use {argument('confusion', 'labels')}",
            )
        if self.randomized:
            raise InvalidParameter(
                "randomized",
                problem=f"{problem}a mixture of rules counts fractions of rows",
                remedy=f"{remedy}use {argument('randomized', False)}",
            )
        return "labels"

    def _check_solver(self) -> None:
        solver: Any = self.solver
        if isinstance(solver, str):
            if solver != "auto" and solver not in SOLVERS:
                raise self._invalid("solver", f"be 'auto' or one of {sorted(SOLVERS)}")
            if solver != "auto":
                self._check_settings(solver)
            return
        if isinstance(solver, type) or not hasattr(solver, "solve"):
            got = f"the class {solver.__name__}" if isinstance(solver, type) else type(solver).__name__
            raise InvalidType("solver", "be a name or a solver such as solvers.Path()", got)
        for name, value in (("tol", self.tol), ("randomized", self.randomized or None)):
            if value is not None:
                raise InvalidParameter(
                    name,
                    "be left out if solver is an object, which carries its own settings",
                    f"{name}={value!r} and a {type(solver).__name__}",
                    "pass it to the solver instead, if the solver takes it",
                )

    def _check_settings(self, solver: str) -> None:
        try:
            make_solver(solver, tol=self.tol, randomized=self.randomized or None)
        except InvalidParameter as error:
            raise error.within(after=". Leave it out, or use solver='auto'") from None

    def _invalid(self, name: str, must: str) -> InvalidParameter:
        return InvalidParameter(name, must, shown(getattr(self, name)))


def _is_bool(value: Any) -> bool:
    return isinstance(value, (bool, np.bool_))
