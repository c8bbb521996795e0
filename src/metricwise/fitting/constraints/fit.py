"""The best rule that keeps its promises, on the given rows and on new ones.

Owns what is promised: bounds are tightened until labels say that all rows like those given keep them too, and words say
where labels are too few. Constraints are counted with labels wherever there are any, whatever counts the aim. Must not
know solvers or user input.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ...core.errors import argument, warn
from ...core.notes import Note, NoteKind, note_list
from ...goals.constraint import Constraint, Difference, Limit, can_be_empty
from ...inference import Candidate, ConstraintResult, Estimate
from ...inference.confidence_limits import SampledGap, SampledMetric, lower_limit, upper_limit
from ...inference.spread import count_independent
from ...oracles.problem import FitStrategy, Problem
from ...rules.metadata import RuleMetadata
from ...solvers.constrained import InfeasibleError
from ..samples import judging_rows, with_copies_clustered
from ..solving import FittedRule, Settings, present
from .resolve import InfeasibleConstraintsError, explain_infeasible
from .search import Found, NoSingleRuleError, Search
from .validate import Refits, Unseen

__all__ = ["Pledge", "fit_within"]

FloatArray = NDArray[np.float64]

_TOL = 1e-9
_STEPS = 24  # in which margins are found
_HURRY = 6  # steps after which margins grow faster than they must
_HASTE = 1.05
_HALVINGS = 5  # in which the confidence is found that labels allow
_QUANTILE = 0.975  # of an interval's ends
# By how much of the optimism, itself an estimate, the end of an interval moves that it moves inwards. On the worlds of
# benchmarks/intervals.py intervals cover 95 to 99 % so; 96 to 100 % with none of it, 78 % at 300 rows with all of it.
_TRUSTED_OPTIMISM = 0.5


@dataclass(frozen=True)
class Pledge:
    """What a rule is to keep.

    Parameters
    ----------
    constraints : tuple of Q Constraint
    confidence : float or None
        With what probability all rows like those given are to keep all of them together; None: the given rows only.
    """

    constraints: tuple[Constraint, ...]
    confidence: float | None

    @property
    def without_groups(self) -> tuple[Constraint, ...]:
        """The constraints that are about no single group."""
        return tuple(one for one in self.constraints if one.group is None)

    def level(self, confidence: float, tried: float = 1.0) -> float:
        """The confidence of each bound by which all are kept with so much confidence (Bonferroni).

        Parameters
        ----------
        tried : float, default=1.0
            How many rules, that have nothing to do with one another, were tried for it.
        """
        # Of a promise about several groups one of them, or one pair, is the worst of all rows: the limit of that holds.
        n_bounds = len({(one.promise, at) for one in self.constraints for at in range(2) if np.isfinite(one.ends[at])})
        return 1 - (1 - confidence) / (max(n_bounds, 1) * tried)


def fit_within(
    problem: Problem,
    recipes: Sequence[FitStrategy],
    settings: Settings,
    pledge: Pledge,
    *,
    seed: int = 0,
    metadata: RuleMetadata | None = None,
    stage: Callable[[str], None] = lambda _: None,
    challenger: Callable[[FitStrategy], FitStrategy | None] = lambda _: None,
) -> tuple[FittedRule, FitStrategy]:
    """Fit the best rule that keeps constraints.

    Parameters
    ----------
    problem : Problem
    recipes : sequence of FitStrategy
        That all recalibrate, or all do not. Of several, the one whose rules do best on rows that resamples left out.
    settings : Settings
    pledge : Pledge
    seed : int
        Of the resamples.
    metadata : RuleMetadata, optional
        What the rule is to know of itself.
    stage : callable, optional
        Told what is being done.
    challenger : callable, optional
        From the recipe that does best to one that takes its place if it does better still.

    Returns
    -------
    FittedRule
    FitStrategy
        By which it was fitted.

    Raises
    ------
    InfeasibleConstraintsError
        If no rule keeps the constraints on the given rows.
    """
    read_before = problem.source.passes.entries
    stage("keeping constraints")
    if problem.labelled and (pledge.confidence is not None or len(recipes) > 1):
        problem = with_copies_clustered(problem)

    def search_by(recipe: FitStrategy) -> Search:
        link = problem.link(recipe.recalibrate, recipe.link_by_group)
        return Search(problem, recipe, link, pledge.constraints, settings)

    searches = [search_by(recipe) for recipe in recipes]
    thresholds = [search for search in searches if search.sweeps]
    searches = thresholds[:1] or searches  # which are exact
    task = _Task(problem, pledge, settings, seed, stage)
    try:
        if not problem.labelled:
            search, seen = searches[0], None
            found, margins, promised = search.best(task.none, single=not settings.randomized), task.none, None
        else:
            search, seen = task.choose(searches, lambda recipe: _if_any(challenger(recipe), search_by))
            found, margins, promised = task.promise(search)
            seen = task.rejudged(search, seen, margins)
    except InfeasibleError as error:
        said = explain_infeasible(problem, searches[0].judge, pledge.constraints, error.point)
        raise InfeasibleConstraintsError(said) from None
    except NoSingleRuleError as error:
        raise InfeasibleConstraintsError(
            "no single rule was found that satisfies all constraints, but a mixture of rules "
            f"does, with a value of {error.point.value:.4g}; set {argument('randomized', True)} to get it, or loosen a "
            "bound."
        ) from None
    return task.presented(search, found, margins, promised, seen, metadata, read_before)


class _Task:
    """One fit: what is common to its steps."""

    def __init__(
        self, problem: Problem, pledge: Pledge, settings: Settings, seed: int, stage: Callable[[str], None]
    ) -> None:
        self.problem, self.pledge, self.settings, self.seed, self.stage = problem, pledge, settings, seed, stage
        self.none = np.zeros((len(pledge.constraints), 2))
        self.tried: tuple[Candidate, ...] = ()
        self._known: dict[tuple[int, float], tuple[Found, FloatArray] | None] = {}

    @cached_property
    def n_independent(self) -> float:
        """How many independent rows there are."""
        return count_independent(self.problem)

    @cached_property
    def refits(self) -> Refits:
        """Resamples of the rows that judge."""
        rows, _ = judging_rows(self.problem)
        return Refits(rows, self.n_independent, self.pledge.constraints, self.settings, self.seed)

    # ------------------------------------------------------------------------------------------------- the margins

    def promise(self, search: Search) -> tuple[Found, FloatArray, float | None]:
        """Return the best rule that labels promise to keep the constraints, its margins, and with what confidence.

        Where labels are too few for the confidence that was asked for, the most that they allow.
        """
        single = not self.settings.randomized
        # It says whether anything keeps them at all.
        plain = search.best(self.none, single=single, thorough=self.pledge.confidence is None)
        best: tuple[Found, FloatArray, float | None] = plain, self.none, None
        if self.pledge.confidence is None:
            return best
        low, middle, high = 0.5, self.pledge.confidence, self.pledge.confidence
        for _ in range(_HALVINGS + 1):
            tightened = self._tightened(search, middle)
            if tightened is None:
                high = middle
            else:
                best, low = (*tightened, middle), middle
            if low == high:
                break
            middle = (low + high) / 2
        return best

    def _tightened(self, search: Search, confidence: float) -> tuple[Found, FloatArray] | None:
        """Return what :meth:`_tighten` does, None if that is nothing: asked for margins first, for the rule later."""
        key = id(search), confidence
        if key not in self._known:
            try:
                self._known[key] = self._tighten(search, confidence)
            except (InfeasibleError, NoSingleRuleError):
                self._known[key] = None
        return self._known[key]

    def _tighten(self, search: Search, confidence: float) -> tuple[Found, FloatArray]:
        """Tighten bounds until the limits of what is counted keep them; a mixture goes ahead of a single rule.

        The first rule that passes is taken. The further the search has gone from where it began, the more rules had
        their chance, and the more it takes to pass: those that differ in little are hardly more than one. Of
        proportions variances tell how many rows two rules have in common, and what a Brownian motion passes at some
        time grows with the logarithm of the time. Two decisions have one way to go, which counts as one and a half, for
        the best of neighbouring thresholds is taken; each time that there are twice as many, half of one is added.
        No loss around the best one is tried, as where nothing is promised: what that adds is luck on the given rows.
        """
        single = not self.settings.randomized
        margins, begin = self.none, np.zeros(len(self.none))  # and the variances to begin with
        ways = 1.5 + np.log2(self.problem.schema.decision_width - 1) / 2
        for one in (False, True) if single and not search.sweeps else (single,):
            for step in range(_STEPS):
                found = search.best(margins, single=one)
                counted = search.counted(found)
                variances = np.array([one.variance for one in counted])
                begin = np.where(begin > 0, begin, variances)
                later = np.divide(variances, begin, out=np.ones_like(begin), where=begin > 0)
                tried = ways * (1.0 + np.log(np.maximum(later, 1.0)))
                short, wanted = self._short(counted, [self.pledge.level(confidence, n) for n in tried.tolist()])
                if not short.any():
                    break
                wanted = wanted * (_HASTE if step >= _HURRY else 1.0)
                margins = np.where(short, np.maximum(wanted, margins), margins)
            else:
                raise InfeasibleError
        return found, margins

    def _short(
        self, counted: Sequence[SampledMetric | SampledGap], levels: Sequence[float]
    ) -> tuple[NDArray[np.bool_], FloatArray]:
        """Which bounds are not kept at levels of confidence, (Q, 2), and the margins that this asks for."""
        short, wanted = np.zeros(self.none.shape, dtype=bool), np.zeros(self.none.shape)
        for q, (one, level) in enumerate(zip(counted, levels, strict=True)):
            low, high = one.bound.constraint.low, one.bound.constraint.high
            if np.isfinite(low):
                limit = max(lower_limit(one, level), one.bound.extent[0])
                short[q, 0], wanted[q, 0] = limit < low - _TOL, one.value - limit
            if np.isfinite(high):
                limit = min(upper_limit(one, level), one.bound.extent[1])
                short[q, 1], wanted[q, 1] = limit > high + _TOL, limit - one.value
        return short, wanted

    # ----------------------------------------------------------------------------------------------- unseen rows

    def choose(
        self, searches: Sequence[Search], challenger: Callable[[FitStrategy], Search | None]
    ) -> tuple[Search, Unseen | None]:
        """Return the search whose rules do best on rows that resamples left out, and what they say of those.

        Where neither new rows nor several recipes are asked about, no resample is drawn. One recipe is what was asked
        for, and has no challenger.
        """
        if self.pledge.confidence is None and len(searches) == 1:
            return searches[0], None
        self.stage("judging rows that were left out")
        known: list[tuple[Search, Unseen]] = []

        def judge(search: Search) -> None:
            seen = self.refits.unseen(search.recipe, self._margins(search))
            if seen is not None:
                known.append((search, seen))

        def best() -> tuple[Search, Unseen | None]:
            return max(known, key=lambda one: one[1].value) if known else (searches[0], None)

        for search in searches:
            judge(search)
        other = challenger(best()[0].recipe) if len(searches) > 1 else None
        if other is not None:
            judge(other)
        self.tried = tuple(seen.candidate(search.recipe) for search, seen in known)
        return best()

    def rejudged(self, search: Search, seen: Unseen | None, margins: FloatArray) -> Unseen | None:
        """Return what resamples say of the rule that is handed out, where its margins are not those compared by."""
        if seen is None or np.array_equal(margins, self._margins(search)):
            return seen
        return self.refits.unseen(search.recipe, margins)

    def _margins(self, search: Search) -> FloatArray:
        """The margins that recipes are compared by: those that all rows ask for, none where they leave no room."""
        tightened = None if self.pledge.confidence is None else self._tightened(search, self.pledge.confidence)
        return self.none if tightened is None else tightened[1]

    # ------------------------------------------------------------------------------------------------- the result

    def presented(
        self,
        search: Search,
        found: Found,
        margins: FloatArray,
        promised: float | None,
        seen: Unseen | None,
        metadata: RuleMetadata | None,
        read_before: int,
    ) -> tuple[FittedRule, FitStrategy]:
        """Return what was found, what it keeps, and what it is worth on new rows."""
        problem, pledge = self.problem, self.pledge
        names = list({one.promise: one.name for one in pledge.constraints}.values())
        metadata = (metadata or RuleMetadata()).updated(
            recipe=str(search.recipe), subject_to=names or None, confidence=promised
        )
        result = found.result
        alternative, notes = result.alternative, [*result.notes]
        if search.sweeps:
            alternative = search.mixture_value(margins)
            if alternative is not None and alternative > result.value + _TOL:
                more = alternative - result.value
                text = f"A mixture of rules would add {more:.2g} (set {argument('randomized', True)} to get it)."
                notes.append(Note(NoteKind.ALTERNATIVE, text))
        elif len(result.losses) > 1 and problem.schema.n_groups == 1:
            # Of rules by group the search for the best single ones takes longer than all the rest: who wants it asks.
            alternative = self._single_value(search, margins)
        constraints = self._constraint_results(search, found, margins, promised, seen)
        texts = [*self._texts(constraints, promised), *_tightening(constraints), *_idle(search)]
        notes += note_list(NoteKind.CONSTRAINT, *texts)
        result = replace(result, alternative=alternative, notes=tuple(notes))
        fitted = present(problem, search.recipe, search.oracle, search.objective, result, metadata, read_before)
        gain, value = (None, None) if seen is None else seen.worth(fitted, self.n_independent)
        fitted = replace(fitted, constraints=constraints, candidates=self.tried, gain=gain, value_on_new_rows=value)
        return fitted, search.recipe

    def _single_value(self, search: Search, margins: FloatArray) -> float | None:
        try:
            return search.best(margins, single=True).result.value
        except (InfeasibleError, NoSingleRuleError):
            return None

    def _constraint_results(
        self, search: Search, found: Found, margins: FloatArray, promised: float | None, seen: Unseen | None
    ) -> tuple[ConstraintResult, ...]:
        limits = search.limits.constraints
        counted = search.counted(found) if self.problem.labelled else [None] * len(limits)
        kept = [
            self._keeping(one, found, margins[q], counted[q], None if seen is None else float(seen.optimism[q]))
            for q, one in enumerate(limits)
        ]
        out = []
        for promise in dict.fromkeys(one.constraint.promise for one in limits):
            which = [q for q, one in enumerate(limits) if one.constraint.promise == promise]
            price = None if found.prices is None else float(found.prices[which].sum())
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
        one: Limit | Difference,
        found: Found,
        margins: FloatArray,
        own: SampledMetric | SampledGap | None,
        shift: float | None,
    ) -> ConstraintResult:
        """How a rule keeps one constraint, whose bounds were tightened by margins (2,), and will on new rows."""
        value, given, estimate = float(one.value(found.judged)), one.constraint, None
        if own is not None and shift is not None:
            least, most = one.range
            low = lower_limit(own, _QUANTILE) - shift * (1.0 if shift > 0 else _TRUSTED_OPTIMISM)
            high = upper_limit(own, _QUANTILE) - shift * (1.0 if shift < 0 else _TRUSTED_OPTIMISM)
            estimate = Estimate(value - shift, max(low, least), min(high, most))
        margin = float(margins[0 if value - given.low < given.high - value else 1])  # of the bound that is nearer
        return ConstraintResult(given.name, given.low, given.high, value, margin, on_new_rows=estimate)

    def _texts(self, promises: Sequence[ConstraintResult], promised: float | None) -> list[str]:
        wanted = self.pledge.confidence
        if not promises:
            return []
        kept = "; ".join(f"{one.name}: {one.value:.4g}" for one in promises)
        if not self.problem.labelled:
            return [f"Constraints satisfied in expectation, under the given probabilities: {kept}."]
        if wanted is None:
            return [f"Constraints satisfied on the given rows, and on new rows about half of the time: {kept}."]
        if promised == wanted:
            return [
                f"Constraints satisfied on the given rows: {kept}; and in the population with a confidence of "
                f"{wanted:g}."
            ]
        said = "no promise" if promised is None else f"a confidence of {promised:.2g}"
        words = (
            "There are too few labels to promise the constraints for new rows with a confidence of "
            f"{wanted:g}: they allow {said}. Loosen a bound, provide more rows, or lower the confidence."
        )
        warn(words, owner="subject_to")
        return [f"Constraints satisfied on the given rows: {kept}.", words]


def _if_any(recipe: FitStrategy | None, search_by: Callable[[FitStrategy], Search]) -> Search | None:
    return None if recipe is None else search_by(recipe)


def _tightening(promises: Sequence[ConstraintResult]) -> list[str]:
    """Say by how much bounds were tightened, where a rule may do better that keeps them on the given rows only."""
    narrower = [f"{one.name} by {one.margin:.2g}" for one in promises if one.margin > 0]
    if not narrower:
        return []
    return [
        f"For that confidence, bounds were tightened on the given rows: {'; '.join(narrower)}; "
        f"{argument('confidence', None)} keeps them as they are, for the given rows only."
    ]


def _idle(search: Search) -> list[str]:
    """Say which constraints no rule can violate."""
    priors, sentences = search.judge.priors, []
    for promise in dict.fromkeys(one.promise for one in search.constraints):
        limits = [limit for limit in search.limits.constraints if limit.constraint.promise == promise]
        if all(limit.unbreakable(priors) for limit in limits):
            name, empty = limits[0].constraint.name, any(can_be_empty(limit, priors) for limit in limits)
            effect = "other than by a 0/0" if empty else "so it has no effect"
            sentences.append(f"No rule can violate {name!r}, {effect}.")
    return sentences


def _worst(kept: Sequence[ConstraintResult]) -> ConstraintResult:
    """What several constraints of one promise come to: the value nearest to its bound, and the limits of the worst."""
    worst = min(kept, key=lambda one: min(one.value - one.low, one.high - one.value))
    known = [one.on_new_rows for one in kept if one.on_new_rows is not None]
    if not known:
        return worst
    floor = worst.value - worst.low < worst.high - worst.value
    pick = min if floor else max
    return replace(
        worst,
        on_new_rows=Estimate(*(pick(getattr(one, name) for one in known) for name in ("estimate", "low", "high"))),
    )
