"""Fits the best rule that satisfies constraints, on the given rows and in the population.

Bounds are tightened until the confidence limits of the constrained metrics satisfy them; notes say where labels are too
few. Constraints are counted with labels wherever there are any. Must not know solvers or user input.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core.cached import cached_property
from ...core.errors import argument, warn
from ...core.notes import Note, NoteKind, note_list
from ...goals.constraint import GroupGap, PooledConstraint, can_be_empty
from ...goals.resolve import complete_text
from ...inference.confidence_limits import SampledGap, SampledMetric, lower_limit, upper_limit
from ...inference.results import Candidate, ConstraintResult, Estimate
from ...inference.spread import count_independent
from ...oracles.problem import FitStrategy, InMemory, Problem
from ...rules.metadata import RuleMetadata
from ...solvers.constrained import Effort, InfeasibleError
from .. import samples
from ..bagging import check_labelled
from ..solving import FittedRule, Settings, present
from .explain import explain_infeasible
from .group_thresholds import CountedThresholds, ThresholdPromise
from .resolve import InfeasibleConstraintsError
from .search import ConstrainedRule, NoSingleRuleError, Search, searches_of
from .validate import OutOfBagEstimate, OutOfBagFits

__all__ = ["fit_within"]

FloatArray = NDArray[np.float64]

_TOL = 1e-9
_STEPS = 32  # in which margins are found
_HURRY = 6  # steps after which margins grow faster than they must
_HASTE = 1.05
_RUNGS = 9  # margins among which the confidence is found that labels allow
_HALVINGS = 7  # of that confidence
_CONFIDENCE_HALVINGS = 5  # where margins are found anew for each
_QUANTILE = 0.975  # of an interval's ends
# By how much of the optimism, itself an estimate, the end of an interval moves that it moves inwards. On the worlds of
# benchmarks/intervals.py intervals cover 95 to 99 % so; 96 to 100 % with none of it, 78 % at 300 rows with all of it.
_TRUSTED_OPTIMISM = 0.5


def fit_within(
    problem: Problem,
    recipes: Sequence[FitStrategy],
    settings: Settings,
    confidence: float | None,
    *,
    seed: int = 0,
    metadata: RuleMetadata | None = None,
    stage: Callable[[str], None] = lambda _: None,
    challenger: Callable[[FitStrategy], FitStrategy | None] = lambda _: None,
) -> tuple[FittedRule, FitStrategy]:
    """Fit the best rule that keeps constraints; return it with the strategy by which it was fitted."""
    read_before = problem.source.passes.entries
    stage("keeping constraints")
    if problem.labelled and (confidence is not None or len(recipes) > 1):
        problem = samples.with_copies_clustered(problem)

    def search_by(recipe: FitStrategy) -> Search:
        link = problem.link(recipe.recalibrate, recipe.link_by_group)
        return Search(problem, recipe, link, problem.constraints, settings)

    searches = searches_of(recipes, search_by)
    task = _Task(problem, confidence, settings, seed, stage)
    try:
        if not problem.labelled:
            estimate = None
            promise = _Promised(searches[0], searches[0].best(task.none, single=not settings.randomized), task.none)
        else:
            promise, estimate = task.choose(searches, lambda recipe: _if_any(challenger(recipe), search_by))
    except InfeasibleError as error:
        said = explain_infeasible(searches[0], error.point)
        raise InfeasibleConstraintsError(said) from None
    except NoSingleRuleError as error:
        raise InfeasibleConstraintsError(
            "no single rule was found that satisfies all constraints, but a mixture of rules "
            f"does, with a value of {error.point.value:.4g}; set {argument('randomized', True)}, or loosen a bound."
        ) from None
    return task.presented(promise, estimate, metadata, read_before)


class _Promised(NamedTuple):
    """A rule, the margins (Q, 2) that its bounds were tightened by, and the confidence that they allow."""

    search: Search
    rule: ConstrainedRule
    margins: FloatArray
    confidence: float | None = None


class _Task:
    """One fit: what is common to its steps."""

    def __init__(
        self,
        problem: Problem,
        confidence: float | None,
        settings: Settings,
        seed: int,
        stage: Callable[[str], None],
    ) -> None:
        self.problem, self.confidence, self.settings, self.seed, self.stage = problem, confidence, settings, seed, stage
        self.constraints = problem.constraints
        self.none = np.zeros((len(self.constraints), 2))
        self.tried: tuple[Candidate, ...] = ()

    @cached_property
    def n_independent(self) -> float:
        """How many independent rows there are."""
        return count_independent(self.problem)

    @cached_property
    def judging_rows(self) -> InMemory:
        """Rows that rules are judged on; copies are clustered in the problem already."""
        return self.problem.sample(samples.MAX_ROWS, 0)

    @cached_property
    def out_of_bag(self) -> OutOfBagFits:
        """Fits to resamples of the rows that judge."""
        return OutOfBagFits(self.judging_rows, self.n_independent, self.constraints, self.settings, self.seed)

    # ------------------------------------------------------------------------------------------------- the margins

    def level(self, confidence: float, tried: float = 1.0) -> float:
        """Return the confidence of each bound by which all hold with this confidence (Bonferroni).

        Of `tried` unrelated rules the best was taken.
        """
        return 1 - (1 - confidence) / (max(self._n_bounds, 1) * tried)

    @cached_property
    def _n_bounds(self) -> int:
        """How many bounds are to hold together."""
        # Of a constraint on several groups one of them, or one pair, is the worst of all rows: the limit of that holds.
        return len({(c.promise, end) for c in self.constraints for end in range(2) if np.isfinite(c.ends[end])})

    def promise(self, search: Search) -> _Promised:
        """Return the best rule that labels promise to keep the constraints.

        Where labels are too few for the confidence that was asked for, the most that they allow: that is found among
        the rules asked for so far, and searched once more in the end.
        """
        confidence, single = self.confidence, not self.settings.randomized
        if confidence is not None and search.by_group is not None:
            return self._by_group(search, confidence)
        if confidence is None:
            return _Promised(search, search.best(self.none, single=single, effort=Effort.THOROUGH), self.none)
        tightened, furthest = self._tighten(search, confidence, Effort.CAUTIOUS)
        if tightened is not None:
            return tightened
        if not self._has_rule(search):
            search.best(self.none, single=single)  # fails where nothing keeps them at all
        if any(constraint.minus is not None for constraint in self.constraints):
            best = self._by_halves(search)
        else:
            search.explore(furthest)
            best = self._most_confident(search, furthest)
        if best is None or best.confidence is None:
            return _Promised(search, search.best(self.none, single=single), self.none)
        return best

    def _by_group(self, search: Search, confidence: float) -> _Promised:
        """Return the best thresholds of sensitive groups whose limits keep the constraints."""
        assert search.by_group is not None
        free = search.best(self.none, single=True)
        counted = CountedThresholds(free.result, free.judged, search.counted(free))

        def levels(sampled: Sequence[SampledMetric | SampledGap], confidence: float, begin: FloatArray) -> Any:
            tried, begin = self._tried(sampled, begin)
            return [self.level(confidence, n) for n in (self._group_ways * tried).tolist()], begin

        promises = ThresholdPromise(search.by_group, counted, search.at_thresholds, levels, self._short)
        promise = promises.at(confidence, float(self._group_ways.max(initial=1.0)))
        rule = ConstrainedRule(promise.rule.result, promise.rule.judged, None)
        return _Promised(search, rule, promise.margins, promise.confidence)

    def _settled(self, promise: _Promised) -> _Promised:
        """Return the promise of a rule that is searched once more, where only rules asked for had been compared."""
        by_halves = any(constraint.minus is not None for constraint in self.constraints)  # then it was searched for
        if by_halves or promise.search.by_group is not None or promise.confidence in (None, self.confidence):
            return promise
        return self._tighten(promise.search, promise.confidence, Effort.CAUTIOUS)[0] or promise

    def _by_halves(self, search: Search) -> _Promised | None:
        """Return the promise of most confidence whose margins are found from none on; None below 0.5.

        Rules that decide all rows alike have no gap between groups, at any confidence, and are not what is asked for.
        """
        assert self.confidence is not None
        low, high, best = 0.5, self.confidence, None
        for _ in range(_CONFIDENCE_HALVINGS):
            middle = (low + high) / 2
            tightened, _ = self._tighten(search, middle, Effort.CAUTIOUS)
            low, high, best = (low, middle, best) if tightened is None else (middle, high, tightened)
        return best

    def _most_confident(self, search: Search, furthest: FloatArray) -> _Promised | None:
        """Return the rule of most confidence on the way to margins that leave no room; None below 0.5."""
        assert self.confidence is not None
        best: _Promised | None = None
        begin, low = np.zeros(len(self.none)), 0.5
        for share in np.linspace(0.0, 1.0, _RUNGS):
            try:
                candidate = search.best(share * furthest, single=not self.settings.randomized, effort=Effort.KNOWN)
            except (InfeasibleError, NoSingleRuleError):
                break
            sampled = search.counted(candidate)
            tried, begin = self._tried(sampled, begin)
            high = self.confidence
            for _ in range(_HALVINGS):
                middle = (low + high) / 2
                short, _ = self._short(sampled, [self.level(middle, n) for n in tried.tolist()])
                if short.any():
                    high = middle
                else:
                    low, best = middle, _Promised(search, candidate, share * furthest, middle)
        if best is None or not search.sweeps:
            return best
        return best._replace(rule=search.best(best.margins, single=True, effort=Effort.CAUTIOUS))  # which is counted

    def _tried(self, sampled: Sequence[SampledMetric | SampledGap], begin: FloatArray) -> tuple[FloatArray, FloatArray]:
        """How many unrelated rules were tried for these, by variances (Q,) to begin with, which are returned too.

        The further the search has gone from where it began, the more rules had their chance: those that differ in
        little are hardly more than one. Of proportions variances tell how many rows two rules have in common, and what
        a Brownian motion passes at some time grows with the logarithm of the time. Two decisions have one way to go,
        which counts as one and a half, for the best of neighbouring thresholds is taken; each time that there are twice
        as many, half of one is added.
        """
        ways = 1.5 + np.log2(self.problem.schema.decision_width - 1) / 2
        variances = np.array([metric.variance for metric in sampled])
        begin = np.where(begin > 0, begin, variances)
        later = np.divide(variances, begin, out=np.ones_like(begin), where=begin > 0)
        return ways * (1.0 + np.log(np.maximum(later, 1.0))), begin

    @cached_property
    def _group_ways(self) -> FloatArray:
        """How many constraints of a promise about sensitive groups count as unrelated, for each constraint (Q,).

        Rules are fitted until all groups are as near to the bound as limits allow. Of gaps those with one of the two
        groups at the ends count; of bounds in every group, half of them. A promise of 95 % about gaps was kept in 95 %
        of 40 draws of ten groups and 97.5 % of four, in 73 and 93 % without that; of 30 further draws of ten groups
        all were kept, about gaps and about bounds in every group.
        """
        groups: dict[int, set[int | None]] = {}
        for constraint in self.constraints:
            groups.setdefault(constraint.promise, set()).update({constraint.group, constraint.minus} - {None})
        sizes = [len(groups[constraint.promise]) for constraint in self.constraints]
        gaps = [constraint.minus is not None for constraint in self.constraints]
        return np.array([max(2.0 * n - 3 if gap else n / 2, 1.0) for n, gap in zip(sizes, gaps, strict=True)])

    def _has_rule(self, search: Search) -> bool:
        """Whether a rule that was asked for keeps the constraints on the given rows."""
        try:
            search.best(self.none, single=not self.settings.randomized, effort=Effort.KNOWN)
        except (InfeasibleError, NoSingleRuleError):
            return False
        return True

    def _tighten(self, search: Search, confidence: float, effort: Effort) -> tuple[_Promised | None, FloatArray]:
        """Tighten bounds until the limits of what is counted keep them; a mixture goes ahead of a single rule.

        Margins are found among the rules asked for so far. Then others are asked for, and margins are checked again.
        Returns None where no rule is left, and the last margins.

        The first rule that passes is taken. No loss around the best one is tried, as where nothing is promised: what
        that adds is luck on the given rows.
        """
        single = not self.settings.randomized
        margins, begin = self.none, np.zeros(len(self.none))  # and the variances to begin with
        cheapest = Effort.KNOWN if search.compares_known else effort
        for stage_single in (False, True) if single and not search.sweeps else (single,):
            asked = cheapest
            for step in range(_STEPS):
                try:
                    candidate = search.best(margins, single=stage_single, effort=asked)
                except (InfeasibleError, NoSingleRuleError):
                    if asked == effort:
                        return None, margins
                    asked = effort
                    continue
                sampled = search.counted(candidate)
                tried, begin = self._tried(sampled, begin)
                short, needed = self._short(sampled, [self.level(confidence, n) for n in tried.tolist()])
                if not short.any():
                    if asked == effort:
                        break
                    asked = effort
                    if search.outlined:  # the best threshold is nearer to its bound than that between bins
                        margins = np.where(margins > 0, np.maximum(needed, margins), margins)
                    continue
                asked = cheapest
                needed = needed * (_HASTE if step >= _HURRY else 1.0)
                margins = np.where(short, np.maximum(needed, margins), margins)
            else:
                return None, margins
        return _Promised(search, candidate, margins, confidence), margins

    def _short(
        self, counted: Sequence[SampledMetric | SampledGap], levels: Sequence[float]
    ) -> tuple[NDArray[np.bool_], FloatArray]:
        """Which bounds are not kept at levels of confidence, (Q, 2), and the margins that this asks for."""
        short, needed = np.zeros(self.none.shape, dtype=bool), np.zeros(self.none.shape)
        for q, (sample, level) in enumerate(zip(counted, levels, strict=True)):
            low, high = sample.bound.constraint.low, sample.bound.constraint.high
            if np.isfinite(low):
                limit = max(lower_limit(sample, level), sample.bound.extent[0])
                short[q, 0], needed[q, 0] = limit < low - _TOL, sample.value - limit
            if np.isfinite(high):
                limit = min(upper_limit(sample, level), sample.bound.extent[1])
                short[q, 1], needed[q, 1] = limit > high + _TOL, limit - sample.value
        return short, needed

    # ----------------------------------------------------------------------------------------------- unseen rows

    def choose(
        self, searches: Sequence[Search], challenger: Callable[[FitStrategy], Search | None]
    ) -> tuple[_Promised, OutOfBagEstimate | None]:
        """Return the promise of most confidence, and what resamples say of it on rows that they left out.

        Of several, the one whose rules do best there. Where neither new rows nor several recipes are asked about, no
        resample is drawn. One recipe is what was asked for, and has no challenger.
        """
        confident = self.confidence is not None
        if not confident and len(searches) == 1:
            return self.promise(searches[0]), None
        check_labelled(self.judging_rows)
        promises: dict[Search, _Promised | None] = dict.fromkeys(searches)
        if confident:
            promises = self._promises(searches)
        self.stage("evaluating rules on rows left out")
        judged = {search: self._judged(search, promise) for search, promise in promises.items()}
        best = max(judged, key=lambda search: _value(judged[search]))
        # Thresholds of groups that labels count are the same behind any calibration.
        monotone = best.by_group is not None and best.recipe.confusion == "labels"
        other = challenger(best.recipe) if len(searches) > 1 and not monotone else None
        if other is not None:
            other_promise = self._promise_if_any(other) if confident else None
            if not confident or (other_promise is not None and _level(other_promise) >= _level(promises[best])):
                promises[other], judged[other] = other_promise, self._judged(other, other_promise)
                best = max(judged, key=lambda search: _value(judged[search]))
        self.tried = tuple(
            estimate.candidate(search.recipe) for search, estimate in judged.items() if estimate is not None
        )
        return promises[best] or self.promise(best), judged[best]

    def _judged(self, search: Search, promise: _Promised | None) -> OutOfBagEstimate | None:
        """What resamples say of a rule with the margins of a promise."""
        return self.out_of_bag.unseen(search, self.none if promise is None else promise.margins)

    def _promises(self, searches: Sequence[Search]) -> dict[Search, _Promised | None]:
        """What labels promise by each of several searches; without those that find no rule, unless none does."""
        promises = {search: self._promise_if_any(search) for search in searches}
        promised = {search: promise for search, promise in promises.items() if promise is not None}
        if not promised:
            self.promise(searches[0])  # which fails
        most = max(map(_level, promised.values()), default=0.0)
        return {search: self._settled(promise) for search, promise in promised.items() if _level(promise) >= most}

    def _promise_if_any(self, search: Search) -> _Promised | None:
        try:
            return self.promise(search)
        except (InfeasibleError, NoSingleRuleError):
            return None

    # ------------------------------------------------------------------------------------------------- the result

    def presented(
        self, promise: _Promised, estimate: OutOfBagEstimate | None, metadata: RuleMetadata | None, read_before: int
    ) -> tuple[FittedRule, FitStrategy]:
        """Return what was found, what it keeps, and what it is worth on new rows."""
        search, fitted_rule, margins, promised = promise
        fitted_rule = search.beside_mixture(fitted_rule, margins)
        problem = self.problem
        metadata = metadata or RuleMetadata()
        first = {constraint.promise: constraint for constraint in reversed(self.constraints)}
        names = [complete_text(first[promise], problem.schema, metadata.pos_label) for promise in sorted(first)]
        metadata = metadata.updated(recipe=str(search.recipe), subject_to=names or None, confidence=promised)
        result = fitted_rule.result
        alternative, notes = result.alternative, [*result.notes]
        if search.sweeps:
            alternative = search.mixture_value(margins)
            more = 0.0 if alternative is None else alternative - result.value
            alternative = None if alternative is None else max(alternative, result.value)
            if more > _TOL:
                setting = argument("randomized", True)
                text = f"A mixture of rules would improve the metric by {more:.2g} (set {setting})."
                notes.append(Note(NoteKind.ALTERNATIVE, text))
        elif len(result.losses) > 1 and problem.schema.n_groups == 1:
            # Of rules by group the search for the best single ones takes longer than all the rest: who wants it asks.
            alternative = self._single_value(search, margins)
        constraints = self._constraint_results(search, fitted_rule, margins, promised, estimate)
        tightening = [] if promised is None else _tightening(constraints)
        texts = [*self._texts(constraints, promised), *tightening, *_idle(search)]
        notes += note_list(NoteKind.CONSTRAINT, *texts)
        result = replace(result, alternative=alternative, notes=tuple(notes))
        fitted = present(problem, search.recipe, search.oracle, search.objective, result, metadata, read_before)
        gain, value = (None, None) if estimate is None else estimate.worth(fitted, self.n_independent)
        fitted = replace(fitted, constraints=constraints, candidates=self.tried, gain=gain, value_on_new_rows=value)
        return fitted, search.recipe

    def _single_value(self, search: Search, margins: FloatArray) -> float | None:
        try:
            return search.best(margins, single=True).result.value
        except (InfeasibleError, NoSingleRuleError):
            return None

    def _constraint_results(
        self,
        search: Search,
        fitted_rule: ConstrainedRule,
        margins: FloatArray,
        promised: float | None,
        estimate: OutOfBagEstimate | None,
    ) -> tuple[ConstraintResult, ...]:
        limits = search.limits.constraints
        counted = search.counted(fitted_rule) if self.problem.labelled else [None] * len(limits)
        kept = [
            self._keeping(
                bound, fitted_rule, margins[q], counted[q], None if estimate is None else float(estimate.optimism[q])
            )
            for q, bound in enumerate(limits)
        ]
        out = []
        for promise in dict.fromkeys(bound.constraint.promise for bound in limits):
            which = [q for q, bound in enumerate(limits) if bound.constraint.promise == promise]
            price = None if fitted_rule.prices is None else float(fitted_rule.prices[which].sum())
            out.append(
                replace(
                    _worst([kept[q] for q in which]),
                    confidence=promised,
                    price=None if price is None or np.isnan(price) else price,
                )
            )
        return tuple(out)

    def _keeping(
        self,
        bound: PooledConstraint | GroupGap,
        fitted_rule: ConstrainedRule,
        margins: FloatArray,
        sample: SampledMetric | SampledGap | None,
        shift: float | None,
    ) -> ConstraintResult:
        """How a rule keeps one constraint, whose bounds were tightened by margins (2,), and will on new rows."""
        value, constraint, estimate = float(bound.value(fitted_rule.judged)), bound.constraint, None
        if sample is not None and shift is not None:
            least, most = bound.range
            low = lower_limit(sample, _QUANTILE) - shift * (1.0 if shift > 0 else _TRUSTED_OPTIMISM)
            high = upper_limit(sample, _QUANTILE) - shift * (1.0 if shift < 0 else _TRUSTED_OPTIMISM)
            estimate = Estimate(value - shift, max(low, least), min(high, most))
        margin = float(
            margins[0 if value - constraint.low < constraint.high - value else 1]
        )  # of the bound that is nearer
        return ConstraintResult(constraint.name, constraint.low, constraint.high, value, margin, on_new_rows=estimate)

    def _texts(self, promises: Sequence[ConstraintResult], promised: float | None) -> list[str]:
        confidence = self.confidence
        if not promises:
            return []
        kept = "; ".join(f"{result.name}: {result.value:.4g}" for result in promises)
        if not self.problem.labelled:
            return [f"Constraints satisfied in expectation, under the given probabilities: {kept}."]
        if confidence is None:
            return [f"Constraints satisfied on the given rows, and on new data in about half of all cases: {kept}."]
        if promised == confidence:
            return [
                f"Constraints satisfied on the given rows: {kept}; and in the population with a confidence of "
                f"{confidence:g}."
            ]
        achievable = "none is achievable" if promised is None else f"the achievable confidence is {promised:.2g}"
        text = (
            f"Too few labels to guarantee the constraints at confidence {confidence:g}; {achievable}. Loosen a bound, "
            "provide more rows, or lower the confidence."
        )
        warn(text, owner="subject_to")
        return [f"Constraints satisfied on the given rows: {kept}.", text]


def _value(estimate: OutOfBagEstimate | None) -> float:
    return -np.inf if estimate is None else estimate.value


def _level(promise: _Promised | None) -> float:
    """The confidence of a promise, 0 where there is none."""
    return 0.0 if promise is None or promise.confidence is None else promise.confidence


def _if_any(recipe: FitStrategy | None, search_by: Callable[[FitStrategy], Search]) -> Search | None:
    return None if recipe is None else search_by(recipe)


def _tightening(promises: Sequence[ConstraintResult]) -> list[str]:
    """Say by how much bounds were tightened, where a rule may do better that keeps them on the given rows only."""
    narrower = [f"{result.name} by {result.margin:.2g}" for result in promises if result.margin > 0]
    if not narrower:
        return []
    return [
        f"To reach this confidence, bounds were tightened on the given rows: {'; '.join(narrower)}; with "
        f"{argument('confidence', None)}, they are not tightened and hold on the given rows only."
    ]


def _idle(search: Search) -> list[str]:
    """Say which constraints no rule can violate."""
    priors, sentences = search.judge.priors, []
    for promise in dict.fromkeys(constraint.promise for constraint in search.constraints):
        limits = [limit for limit in search.limits.constraints if limit.constraint.promise == promise]
        if all(limit.unbreakable(priors) for limit in limits):
            name, empty = limits[0].constraint.name, any(can_be_empty(limit, priors) for limit in limits)
            effect = " except if its metric is 0/0" if empty else ", so it has no effect"
            sentences.append(f"No rule can violate {name!r}{effect}.")
    return sentences


def _worst(kept: Sequence[ConstraintResult]) -> ConstraintResult:
    """What several constraints of one promise come to: the value nearest to its bound, and the limits of the worst."""
    worst = min(kept, key=lambda result: min(result.value - result.low, result.high - result.value))
    estimates = [result.on_new_rows for result in kept if result.on_new_rows is not None]
    if not estimates:
        return worst
    floor = worst.value - worst.low < worst.high - worst.value
    pick = min if floor else max
    return replace(
        worst,
        on_new_rows=Estimate(
            *(pick(getattr(result, name) for result in estimates) for name in ("estimate", "low", "high"))
        ),
    )
