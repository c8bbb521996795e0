"""Estimates the value of rules with constraints on new rows, from resamples and the rows that they leave out.

Must not know how margins are found.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.cached import cached_property
from ...goals.constraint import Constraint
from ...inference.decisions import Decisions
from ...inference.judge import Judge
from ...inference.results import Candidate, Estimate, Gain
from ...inference.spread import Spread, clip_interval
from ...kernels import code_type
from ...oracles.problem import FitStrategy, InMemory
from ...solvers.constrained import Effort, InfeasibleError
from ..bagging import draw
from ..solving import FittedRule, Settings
from .resampled_thresholds import ResampledThresholds
from .resolve import bind_constraints
from .search import ConstrainedRule, NoSingleRuleError, Search

__all__ = ["OutOfBagFits", "OutOfBagEstimate"]

FloatArray = NDArray[np.float64]

_ROUNDS = 2  # of resamples


@dataclass(frozen=True, eq=False)
class OutOfBagEstimate:
    """What resamples say of rows that they left out.

    Parameters
    ----------
    problem : InMemory
        The rows that were left out by some.
    decisions : ndarray of shape (N, M)
        On each of them, by a resample that left it out.
    value : float
        The aim of all such decisions.
    flattery : float
        By how much the aim seems larger on rows that a rule is fitted to, of as many as there are.
    optimism : ndarray of shape (Q,)
        The same of the constraints.
    """

    problem: InMemory
    decisions: NDArray[Any]
    value: float
    flattery: float
    optimism: FloatArray

    @cached_property
    def _influence(self) -> tuple[float, FloatArray, FloatArray]:
        """The value of argmax; how far a row moves the aim of these decisions, and its difference to that of argmax."""
        judge, argmax = Judge(self.problem), self.problem.decide_argmax()
        fitted, base = (judge.score(Decisions.of_codes(codes)) for codes in (self.decisions, argmax))
        return base.value, fitted.influence, fitted.influence - base.influence

    def candidate(self, recipe: FitStrategy) -> Candidate:
        """Return what a recipe was worth."""
        argmax_value, _, more = self._influence
        return Candidate(str(recipe), self.value, self.value - argmax_value, Spread.of(self.problem).error(more))

    def _share(self, spread: Spread, n_independent: float) -> float:
        """The share of these rows in all that they are a sample of, as many of which are independent."""
        rows = self.problem.source.rows
        if spread.cluster is None or rows.frequency is None:
            return min(spread.n_independent / n_independent, 1.0)
        drawn = rows.n_rows if rows.repeats is None else float(rows.repeats.sum())
        return min(drawn / float(rows.frequency.sum()), 1.0)

    def worth(self, fitted: FittedRule, n_independent: float) -> tuple[Gain, Estimate]:
        """Return what a rule fitted to so many independent rows adds to argmax on new ones, and what it is worth."""
        spread, (_, by_row, more) = Spread.of(self.problem), self._influence
        low, high = self.problem.aim.metric.range
        # What judges are a sample of more rows, they vary more than those do.
        share = self._share(spread, n_independent)
        value = fitted.value - self.flattery
        half = spread.quantile * spread.error(more, share)
        gain = clip_interval(value - fitted.baseline, half, low - high, high - low)
        return Gain(*gain), Estimate(*spread.interval(value, spread.error(by_row, share), low, high))


class OutOfBagFits:
    """Resamples of rows, to which recipes are fitted."""

    def __init__(
        self, rows: InMemory, n_independent: float, constraints: Sequence[Constraint], settings: Settings, seed: int
    ) -> None:
        self.constraints, self.settings = tuple(constraints), settings
        self.resamples = draw(rows, np.random.default_rng(seed), _ROUNDS)
        self.rows, self.kept = self.resamples.problem, self.resamples.kept
        self._searches: dict[tuple[FitStrategy, int], Search] = {}
        # Optimism falls with the number of independent rows, of which resamples have fewer.
        spread = Spread.of(self.rows)
        kept_rows = [spread.take(np.flatnonzero(kept)).n_independent for kept in self.kept]
        self.share = float(np.mean(kept_rows)) / n_independent

    @cached_property
    def parts(self) -> list[InMemory]:
        """The rows that each resample keeps, which keep links for all recipes."""
        return [self.rows.take(np.flatnonzero(kept)) for kept in self.kept]

    def _search(self, r: int, whole: Search) -> Search:
        """The search on a resample, from the multipliers of all rows; rules asked for serve other margins too."""
        recipe, part = whole.recipe, self.parts[r]
        if (recipe, r) not in self._searches:
            link = part.link(recipe.recalibrate, recipe.link_by_group)
            self._searches[recipe, r] = Search(part, recipe, link, self.constraints, self.settings)
            self._searches[recipe, r].start_from(whole)
        return self._searches[recipe, r]

    def unseen(self, whole: Search, margins: FloatArray) -> OutOfBagEstimate | None:
        """Fit to every resample with margins, and judge what it left out; None where too few keep the constraints.

        Thresholds of one pooled confusion are all compared, whatever the recipe: they are counted in all resamples at
        once, and no recipe is selected. The link of all rows serves, which orders the rows of one output as any other
        does; of several outputs resamples have links, and with known priors weights, of their own.
        """
        single = self.rows.schema.n_outputs == 1 or (whole.link is None and self.rows.prior is None)
        if whole.sweeps and whole.compares_known and single and whole.constraints:
            return self._swept(whole, margins)
        rows, per_round = self.rows, len(self.kept) // _ROUNDS
        decisions = np.full(
            (_ROUNDS, rows.n_rows, rows.schema.n_outputs), -1, dtype=code_type(rows.schema.decision_width)
        )
        fitted, flattered = [], []
        for r, (kept, part) in enumerate(zip(self.kept, self.parts, strict=True)):
            if not part.source.class_weights.any():  # all labels are among the rows that were left out
                continue
            search = self._search(r, whole)
            fit = self._fit(search, margins)
            if fit is None:
                continue
            rule, left = fit.result.rule, np.flatnonzero(~kept)
            fitted.append(search.limits.values(fit.judged))
            flattered.append(search.value_by_labels(fit))
            decisions[r // per_round, left] = rows.take(left).decide(rule, search.link)
        if len(fitted) * 2 < len(self.kept):
            return None
        rounds = [self._decided(codes) for codes in decisions if (codes[:, 0] >= 0).mean() >= 0.5]
        rounds = [(some, codes) for some, codes in rounds if some.source.class_weights.any()]
        if not rounds:
            return None
        judged = [self._judged(*decided) for decided in rounds]
        value = float(np.mean([round_value for round_value, _ in judged]))
        optimism = np.mean(fitted, axis=0) - np.mean([kept for _, kept in judged], axis=0)
        flattery = float(np.mean(flattered)) - value
        return OutOfBagEstimate(*rounds[0], value, flattery * self.share, optimism * self.share)

    def _swept(self, whole: Search, margins: FloatArray) -> OutOfBagEstimate | None:
        """The same for thresholds of one pooled confusion."""
        thresholds = ResampledThresholds(self.resamples, whole.link, whole.oracle, whole.objective, whole.limits)
        fits = thresholds.fit(margins)
        if len(fits.resamples) * 2 < len(self.kept):
            return None
        decisions = np.full((_ROUNDS, *thresholds.scores.shape), -1, dtype=code_type(2))
        for r, threshold in zip(fits.resamples.tolist(), fits.threshold.tolist(), strict=True):
            left = np.flatnonzero(~self.kept[r])
            decisions[r * _ROUNDS // len(self.kept), left] = thresholds.scores[left] > threshold
        rounds = [codes for codes in decisions if (codes[:, 0] >= 0).mean() >= 0.5]
        shown = [self._decided(codes) for codes in rounds]
        rounds = [codes for codes, (some, _) in zip(rounds, shown, strict=True) if some.source.class_weights.any()]
        if not rounds:
            return None
        values, constrained = thresholds.judged(np.stack(rounds))
        value, optimism = float(values.mean()), fits.constrained.mean(axis=0) - constrained.mean(axis=0)
        flattery = float(fits.aim.mean()) - value
        return OutOfBagEstimate(*self._decided(rounds[0]), value, flattery * self.share, optimism * self.share)

    def _decided(self, codes: NDArray[Any]) -> tuple[InMemory, NDArray[Any]]:
        """The rows that were decided in a round, and the decisions."""
        decided = np.flatnonzero(codes[:, 0] >= 0)
        return (self.rows, codes) if len(decided) == len(codes) else (self.rows.take(decided), codes[decided])

    def _judged(self, some: InMemory, codes: NDArray[Any]) -> tuple[float, FloatArray]:
        """The aim of decisions, and the values (Q,) of what is constrained."""
        judge = some.oracle()
        confusion = judge.confusion_of(codes)
        by_row = some.aim.average == "instance"
        value = some.value_of(codes) if by_row else some.objective(judge).value(confusion)
        return value, bind_constraints(self.constraints, some.schema, judge).values(confusion)

    def _fit(self, search: Search, margins: FloatArray) -> ConstrainedRule | None:
        """Fit with margins, or with less where these leave no room; None if that fails too."""
        for tried_margins in (margins, margins / 2, 0 * margins) if margins.any() else (margins,):
            try:
                return search.best(tried_margins, single=not self.settings.randomized, effort=Effort.ROUGH)
            except (InfeasibleError, NoSingleRuleError):
                continue
        return None
