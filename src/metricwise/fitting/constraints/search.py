"""Finds the best rule that satisfies constraints on the given rows.

Decides which outputs are solved together, and by what: a sweep over thresholds, a linear programme over mixtures, or
the search for a single rule beside it. Must not know new rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ...core.cached import cached_property
from ...core.errors import argument
from ...core.losses import Loss
from ...core.notes import Note, NoteKind
from ...goals.constraint import Constraint, ConstraintSystem, PooledConstraint
from ...inference.confidence_limits import SampledGap, SampledMetric, sample_constraints
from ...oracles.base import TooManyChangesError
from ...oracles.problem import FitStrategy, InMemory, Problem
from ...rules.calibration import TemperatureScaling
from ...solvers.abstention_cuts import counts_no_hits, cut_shares, cut_within
from ...solvers.constrained import Effort, Feasible, InfeasibleError, Point
from ...solvers.constrained_local import best_mixture, scattered_losses
from ...solvers.constrained_single import MAX_REPAIRS, best_by_labels, best_single
from ...solvers.joined import Part, join
from ...solvers.levels import Levels, best_levels
from ...solvers.result import Outcome, SolverResult
from ...solvers.sweep import hull_losses
from ..solving import Settings, solve
from .group_thresholds import CountedThresholds, GroupThresholds, separates_groups
from .references import Reference, find_references, spread_references
from .resolve import bind_constraints
from .thresholds import ThresholdCurve

__all__ = ["ConstrainedRule", "NoSingleRuleError", "Search", "searches_of"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

_TOL = 1e-9
_EXPLORED_MARGINS = 8
_LIGHT = 1e-9  # shares of rules in a mixture that are none


@dataclass(frozen=True, eq=False)
class ConstrainedRule:
    """A rule that keeps limits.

    Parameters
    ----------
    result : SolverResult
        As the aim is counted; its rule is over codes, without link.
    judged : ndarray of shape (M, K, K)
        Its confusion as constraints are counted.
    prices : ndarray of shape (Q,), or None
    """

    result: SolverResult
    judged: FloatArray
    prices: FloatArray | None


class NoSingleRuleError(Exception):
    """A mixture of rules satisfies all constraints, but no single rule that was found does."""

    def __init__(self, point: Point) -> None:
        super().__init__("no single rule satisfies all constraints")
        self.point = point


class _Piece:
    """Outputs that are solved together, with the constraints on them."""

    def __init__(
        self,
        problem: Problem,
        recipe: FitStrategy,
        link: TemperatureScaling | None,
        constraints: Sequence[Constraint],
        settings: Settings,
    ) -> None:
        self.problem, self.recipe, self.settings = problem, recipe, settings
        self.oracle = problem.oracle(recipe.confusion, link)
        by_labels = recipe.confusion == "labels" or not problem.labelled
        self.judge = self.oracle if by_labels else self.oracle.counting("labels")
        self.objective = problem.objective(self.oracle, recipe)
        self.limits = bind_constraints(constraints, problem.schema, self.judge)
        self.partial = False  # whether there are other outputs
        self.guess: FloatArray | None = None  # of the multipliers
        self.likely: list[Loss] | None = None  # of blocks, that are good on other rows, where bounds are not convex
        self.levels: Levels | None = None  # the last that were found, near which the next ones are

    @cached_property
    def feasible(self) -> Feasible:
        """The rules asked for so far."""
        tol = _TOL if self.settings.tol is None else self.settings.tol
        feasible = Feasible(self.oracle, self.judge, self.objective, self.limits, tol, self.guess)
        if self.has_hull:
            # By labels thresholds may do better than what is best by probabilities, which the programme asks for.
            blocks = feasible.blocks
            losses = hull_losses(self.oracle, blocks.block, shared=blocks.guess is not None)
            feasible.add(losses, *feasible.ask(losses))
        if not self.limits.convex:
            blocks, width = feasible.blocks, self.objective.width
            losses = spread_references(self.references, blocks.block, width)
            losses += scattered_losses(blocks.n_blocks, width) if self.likely is None else self.likely
            feasible.add(losses, *feasible.ask(losses))
        return feasible

    @cached_property
    def references(self) -> list[Reference]:
        """Rules that are best by metrics whose bounds are not convex, where such a search begins."""
        return find_references(self.problem, self.recipe, self.settings, self.oracle.link, self.limits)

    def start_from(self, other: _Piece) -> None:
        """Begin where the search for the same constraints on other rows has ended."""
        self.guess = other.feasible.prices
        if not self.limits.convex:
            best = other.feasible.best_known()
            self.references = other.references
            self.likely = [] if best is None else [best.losses[int(best.weights[:, 0].argmax())]]

    @property
    def has_hull(self) -> bool:
        """Whether all thresholds that mixtures are made of are asked for: of labels, for mixtures."""
        apart = not self.sweeps or self.settings.randomized
        return self.objective.width == 2 and self.problem.labelled and self.judge is self.oracle and apart

    @cached_property
    def sweeps(self) -> bool:
        """Whether all rules that come into question are thresholds or cuts, counted with labels."""
        labels = self.problem.labelled and self.judge is self.oracle
        return labels and (self.has_thresholds or self.has_cuts)

    @property
    def has_thresholds(self) -> bool:
        """Whether all rules that come into question are thresholds."""
        grouping = self.objective.grouping
        binary = self.objective.width == 2 and grouping.n_groups == 1 and grouping.loss is None
        return binary and self.limits.shared(grouping.share) and not self.objective.frozen.any()

    @cached_property
    def has_cuts(self) -> bool:
        """Whether they are cuts on the largest probability, below which a rule abstains."""
        may_abstain = self.problem.schema.abstain_label is not None
        return may_abstain and self.judge is self.oracle and cut_shares(self.objective, self.limits) is not None

    @property
    def settles(self) -> bool:
        """Whether the best on the given rows is what is asked for, so that rules by probabilities are not compared.

        By labels the best accuracy is somewhat flattered, and which cut has it is partly luck.
        """
        return self.sweeps and (self.has_thresholds or counts_no_hits(self.objective))

    def swept(self, limits: ConstraintSystem) -> SolverResult | None:
        """Return the best threshold or cut within limits; None where none keeps them."""
        return cut_within(self.oracle, self.objective, limits) if self.has_cuts else self.thresholds.best(limits)

    @cached_property
    def thresholds(self) -> ThresholdCurve:
        """The thresholds, where these are all rules that come into question."""
        return ThresholdCurve(self.oracle, self.objective, self.limits)

    @property
    def knows_thresholds(self) -> bool:
        """Whether thresholds can all be compared in no time."""
        slow = self.objective.slow or any(limit.bound.metric.traits.slow for limit in self.limits.pooled)
        return self.sweeps and self.has_thresholds and not slow and self.problem.aim.average != "instance"

    @cached_property
    def by_group(self) -> GroupThresholds | None:
        """All thresholds of every group, where a single rule is one of each."""
        schema = self.problem.schema
        if not self.problem.labelled or schema.n_groups != schema.n_outputs:
            return None
        separate = self.limits.convex and separates_groups(self.objective, self.limits, schema.n_outputs)
        if self.sweeps or not separate:
            return None
        try:
            return GroupThresholds(self.oracle, self.judge, self.objective, self.limits)
        except TooManyChangesError:
            return None

    def best(self, limits: ConstraintSystem, *, single: bool, effort: Effort) -> ConstrainedRule:
        """Return the best rule within limits: a mixture, or one rule."""
        if single and self.by_group is not None:
            return self._best_by_group(self.by_group, limits, effort)
        if self.sweeps and not self.settings.randomized:
            return self._swept_rule(limits, effort)
        if single and effort is Effort.KNOWN and self.feasible.blocks.n_blocks == 1:
            self.feasible.narrow(limits)
            known_rule = self.feasible.best_known()
            if known_rule is None:
                raise InfeasibleError
            return self._packed(known_rule, None, limits.called)
        mixture = self._mixture(limits, effort)
        exact = (self.feasible.certified or self.has_hull) and limits.convex
        if not single and (exact or not self.settings.randomized):
            return self._packed(mixture, None, limits.called)
        single_rule = self._best_single(limits, mixture)
        asked_beside = not single or effort is not Effort.ROUGH  # of resamples nobody asks what a mixture would add
        # Of what is not proved, the search for single rules may find better ones.
        if asked_beside and single_rule is not None and single_rule.value > mixture.value:
            # Gaps of ratios have no half-spaces but at levels, which are found anew.
            again = self._again(limits, Effort.KNOWN if single else effort)
            mixture = max(single_rule, again, key=lambda point: point.value)
        if not single:
            return self._packed(mixture, None, limits.called)
        if single_rule is None:
            raise NoSingleRuleError(mixture)
        return self._packed(single_rule, mixture, limits.called)

    def _swept_rule(self, limits: ConstraintSystem, effort: Effort) -> ConstrainedRule:
        """Return the best threshold or cut within limits; of thresholds known so far, as running sums count it."""
        if effort is Effort.KNOWN and self.knows_thresholds:
            threshold = self.thresholds.glance(limits)
            if threshold is None:
                raise InfeasibleError
        else:
            threshold = self.swept(limits)
            if threshold is None:
                raise InfeasibleError if limits.narrowed else NoSingleRuleError(self._mixture(limits, effort))
        return ConstrainedRule(threshold, threshold.confusion, None)

    def _best_by_group(self, groups: GroupThresholds, limits: ConstraintSystem, effort: Effort) -> ConstrainedRule:
        """The best thresholds of every group within limits, beside the mixture where this is a part of the outputs.

        Of all outputs, who asks in the end learns what a mixture adds.
        """
        chosen = groups.best(limits, hurried=effort is Effort.ROUGH)
        if chosen is None:
            if effort is Effort.ROUGH:
                raise InfeasibleError
            raise NoSingleRuleError(self._mixture(limits, effort))
        rule = ConstrainedRule(*groups.counted(chosen), None)
        return self.beside_mixture(rule, limits) if self.partial and effort is not Effort.ROUGH else rule

    def _best_single(self, limits: ConstraintSystem, mixture: Point) -> Point | None:
        """The best single rule within limits: of thresholds of groups, or found beside a mixture."""
        if self.by_group is None:
            return best_single(self.feasible, mixture)
        chosen = self.by_group.best(limits)
        if chosen is None:
            return None
        return replace(self._added(*self.by_group.counted(chosen)), prices=mixture.prices)

    def _added(self, result: SolverResult, judged: FloatArray) -> Point:
        """A single rule as one of those asked for."""
        loss = Loss(full=result.losses[0].tensor())
        self.feasible.add([loss], result.confusion[None], judged[None])
        weights = np.zeros((len(self.feasible.losses), self.feasible.blocks.n_blocks))
        weights[-1] = 1.0
        return self.feasible.point(weights, np.inf, np.zeros(len(self.limits.constraints)))

    def beside_mixture(self, rule: ConstrainedRule, limits: ConstraintSystem) -> ConstrainedRule:
        """Return a single rule within limits with what a mixture would add, and the prices of that."""
        point = self._added(rule.result, rule.judged)
        try:
            self.feasible.effort = Effort.CAUTIOUS
            # Of gaps of ratios, at the levels of the rule: another level would add little, and takes many programmes.
            levels = {key: low for key, (low, _) in limits.level_values(rule.judged).items()}
            mixture = self._mixture_at(limits.at(levels))
        except InfeasibleError:
            mixture = point
        if mixture.value <= point.value + _TOL:
            mixture = replace(point, prices=mixture.prices)
        packed = self._packed(point, mixture, limits.called)
        return replace(packed, result=replace(packed.result, losses=rule.result.losses))

    def _again(self, limits: ConstraintSystem, effort: Effort) -> Point:
        """Return the best mixture within limits once more rules have been asked for."""
        self.feasible.effort = effort
        return self._mixture(limits, effort) if limits.levels else best_mixture(self.feasible)

    def _mixture(self, limits: ConstraintSystem, effort: Effort) -> Point:
        """Return the best mixture within limits; of gaps of ratios, at the best of the levels that were tried."""
        self.feasible.effort = effort
        if not limits.levels:
            return self._mixture_at(limits)
        free = self._mixture_at(limits.without_levels())
        if limits.kept(free.judged).all():  # then the best of all keeps them
            self.feasible.narrow(limits)
            prices = np.zeros(len(limits.constraints))
            prices[[not bound.of_ratio or isinstance(bound, PooledConstraint) for bound in limits.constraints]] = (
                free.prices
            )
            return replace(free, prices=prices)

        def value(levels: Levels) -> float:
            try:
                return self._mixture_at(limits.at(levels)).value
            except InfeasibleError:
                return -np.inf

        self.levels = best_levels(value, limits.levels, limits.level_values(free.judged), self.levels)
        return replace(self._mixture_at(limits.at(self.levels)), bound=np.inf)

    def _mixture_at(self, limits: ConstraintSystem) -> Point:
        self.feasible.narrow(limits)
        if self.sweeps or self.has_cuts:
            # What the programme asks for is best by probabilities, a threshold may do better by labels; and of
            # deterministic rules the best cut is not always among those that it asks for.
            threshold = self.swept(limits)
            if threshold is not None:
                self.feasible.add(threshold.losses, threshold.confusion[None], threshold.confusion[None])
        lucky = not self.sweeps and (self.feasible.effort >= Effort.FULL or not limits.narrowed)
        n_repairs = 0 if not lucky else 1 if limits.levels or not limits.convex else MAX_REPAIRS  # levels are many
        point = best_by_labels(self.feasible, n_repairs)
        if not limits.kept(point.judged, _kept_to(limits)).all():
            raise InfeasibleError(point)
        return point

    def mixture_value(self, limits: ConstraintSystem) -> float | None:
        """Return the optimised value of the best mixture within limits; None where there is none."""
        if self.knows_thresholds and self.thresholds.mixes_exactly:
            return self.thresholds.mixture_value(limits)
        try:
            return self._mixture(limits, Effort.FULL).value
        except InfeasibleError:
            return None

    def _packed(self, point: Point, mixture: Point | None, constraints: str) -> ConstrainedRule:
        """Turn a point into a result: of one rule, beside the mixture; or of a mixture; with a name for limits."""
        losses, shares = self._mixed(point)
        certified = self.feasible.certified
        exact = (self.objective.ratio is not None or self.objective.concave) and self.limits.convex
        kind = "of all rules" if certified else "of the candidate rules"
        best = (
            f"The best {kind} that satisfy {constraints}"
            if exact
            else f"Local optimum among rules that satisfy {constraints}"
        )
        optimal = mixture is None and exact and certified
        bound = mixture.bound if mixture is not None else point.bound
        note = Note(NoteKind.OUTCOME, f"{best}.")
        if mixture is not None:
            more = mixture.value - point.value
            note = Note(
                NoteKind.ALTERNATIVE,
                f"{_single_found(self.limits)} that satisfies {constraints}; a mixture of rules would improve "
                f"it by {more:.2g} (set {argument('randomized', True)}).",
            )
        result = SolverResult(
            losses=losses,
            shares=shares,
            n_classes=self.oracle.n_classes,
            value=point.value,
            baseline=self.objective.value(self.feasible.aim[0]),
            confusion=point.aim,
            notes=(note,),
            outcome=Outcome.OPTIMAL if optimal else Outcome.LOCAL,
            history=(point.value,),
            upper_bound=max(bound, point.value) if certified and np.isfinite(bound) else None,
            alternative=None if mixture is None else mixture.value,
            seed=self.settings.seed,
        )
        return ConstrainedRule(result, point.judged, point.prices if mixture is None else mixture.prices)

    def _mixed(self, point: Point) -> tuple[tuple[Loss, ...], FloatArray]:
        """The losses of outputs that a point mixes, and their shares (R,) or (M, R)."""
        used = np.flatnonzero(point.weights.max(axis=1) > _LIGHT)
        losses, block = [self.feasible.spread(point.losses[t]) for t in used], self.feasible.blocks.block
        if len(losses) > 1 and (point.weights[used].max(axis=0) == 1.0).all():  # one rule each, not the same one
            tensors = np.stack([loss.tensor() for loss in losses])
            losses = [Loss(full=tensors[point.weights[used].argmax(axis=0)[block], np.arange(len(block))])]
        if len(losses) == 1:
            return tuple(losses), np.ones(1)
        shares = point.weights[used][:, block].T  # (M, R)
        shares = shares / shares.sum(axis=1, keepdims=True)
        same = bool((shares == shares[0]).all())
        return tuple(losses), shares[0] if same else shares


def _single_found(limits: ConstraintSystem) -> str:
    """What to call the best single rule within limits."""
    convex = "The best single rule found"
    return convex if limits.convex else "Local optimum: the best single rule found locally"


def _kept_to(limits: ConstraintSystem) -> float:
    """To what a mixture is said to keep limits: the programme is as exact as that."""
    return 1e-4 if any(bound.of_ratio for bound in limits.constraints) else 1e-7


class Search:
    """All outputs of a problem: those that nothing couples are solved apart."""

    def __init__(
        self,
        problem: Problem,
        recipe: FitStrategy,
        link: TemperatureScaling | None,
        constraints: Sequence[Constraint],
        settings: Settings,
    ) -> None:
        self.problem, self.recipe, self.link, self.settings = problem, recipe, link, settings
        self.constraints = tuple(constraints)
        whole = _Piece(problem, recipe, link, constraints, settings)
        self.oracle, self.judge, self.objective, self.limits = whole.oracle, whole.judge, whole.objective, whole.limits
        self.pieces: list[tuple[IntArray, tuple[int, ...], _Piece]] = []
        constrained_outputs = [constraint.output for constraint in constraints]
        outputs = sorted({output for output in constrained_outputs if output is not None})
        grouping, n_groups = self.objective.grouping, problem.schema.n_groups
        counts = bool((grouping.group[outputs] >= 0).all()) and not grouping.least
        several = problem.schema.n_outputs > n_groups
        if problem.aim.average == "macro" and several and None not in constrained_outputs and counts:
            parts = np.arange(problem.schema.n_outputs).reshape(n_groups, -1)
            for m in outputs:
                which = tuple(q for q, output in enumerate(constrained_outputs) if output == m)
                self._add(parts[:, m], which)
        else:
            self.pieces.append((np.arange(problem.schema.n_outputs), tuple(range(len(constraints))), whole))

    def _add(self, outputs: IntArray, which: tuple[int, ...]) -> None:
        constraints = [replace(self.constraints[q], output=0) for q in which]
        link = None if self.link is None else self.link.of_outputs(outputs)
        piece = _Piece(self.problem.of_outputs(outputs), self.recipe, link, constraints, self.settings)
        piece.partial = True
        self.pieces.append((outputs, which, piece))

    @cached_property
    def sweeps(self) -> bool:
        """Whether every piece is a sweep over thresholds."""
        return not self.settings.randomized and all(piece.sweeps for _, _, piece in self.pieces)

    @property
    def asked_for(self) -> FloatArray:
        """The confusions (R, M, K, K) of all rules asked for, as constraints are counted.

        Of several pieces, the first rule of the others stands beside each rule of one.
        """
        n_outputs, width = self.judge.priors.shape
        first = np.zeros((n_outputs, width, width))
        for outputs, _, piece in self.pieces:
            first[outputs] = piece.feasible.judged[0]
        parts = []
        for outputs, _, piece in self.pieces:
            judged = piece.feasible.judged
            part = np.repeat(first[None], len(judged), axis=0)
            part[:, outputs] = judged
            parts.append(part)
        return np.concatenate(parts)

    @property
    def settles(self) -> bool:
        """Whether no other recipe need be compared with this one."""
        return not self.settings.randomized and all(piece.settles for _, _, piece in self.pieces)

    @property
    def compares_known(self) -> bool:
        """Whether margins can be found among the rules that were asked for.

        Not of one loss per group, where few single rules are known, nor of thresholds of some outputs alone.
        """
        if self.sweeps:
            outputs, _, piece = self.pieces[0]
            return len(outputs) == self.problem.schema.n_outputs and piece.knows_thresholds
        return all(piece.feasible.blocks.n_blocks == 1 for _, _, piece in self.pieces)

    @property
    def outlined(self) -> bool:
        """Whether the thresholds that are known are those between bins, because there are so many."""
        return self.sweeps and self.compares_known and self.pieces[0][2].thresholds.walk.bins is not None

    @cached_property
    def _others(self) -> list[Part]:
        """The result of outputs that no constraint is about."""
        learns = ~self.problem.keeps_argmax & (self.objective.grouping.group >= 0)
        learns[np.concatenate([outputs for outputs, _, _ in self.pieces])] = False
        rest = np.flatnonzero(learns)
        if len(rest) == 0:
            return []
        link = None if self.link is None else self.link.of_outputs(rest)
        result = solve(self.problem.of_outputs(rest), self.recipe, self.settings, link)
        return [Part(rest, "other outputs", result)]

    def best(self, margins: FloatArray, *, single: bool, effort: Effort = Effort.FULL) -> ConstrainedRule:
        """Return the best rule within limits that are narrower by margins (Q, 2); see :meth:`_Piece.best`."""
        rules, prices = [], np.full(len(self.constraints), np.nan)
        for _, which, piece in self.pieces:
            rule = piece.best(piece.limits.tightened(margins[list(which)]), single=single, effort=effort)
            rules.append(rule)
            if rule.prices is not None:
                prices[list(which)] = rule.prices
        all_prices = None if np.isnan(prices).all() else prices
        if len(rules) == 1 and len(self.pieces[0][0]) == self.problem.schema.n_outputs:
            return replace(rules[0], prices=all_prices)
        names = self.problem.schema.output_names
        parts = [
            Part(outputs, f"output {names[outputs[0]] if names else outputs[0]}", rule.result)
            for (outputs, _, _), rule in zip(self.pieces, rules, strict=True)
        ]
        result = join(self.oracle, self.objective, [*parts, *self._others])
        judged = result.confusion
        if self.judge is not self.oracle:
            judged = self.problem.confusion_of_rule(result.rule, self.judge)
        return ConstrainedRule(result, judged, all_prices)

    def value_by_labels(self, rule: ConstrainedRule) -> float:
        """Return the aim of a rule that was found, as labels count it."""
        if self.problem.aim.average == "instance":
            assert isinstance(self.problem, InMemory)
            return self.problem.value_of(self.problem.decide(rule.result.rule, self.link))
        same = self.judge is self.oracle and self.objective.padding is None
        objective = self.objective if same else self.problem.objective(self.judge)
        return objective.value(rule.judged)

    @property
    def by_group(self) -> GroupThresholds | None:
        """All thresholds of every group, where a single rule is asked for that is one of each."""
        piece = self.pieces[0][2]
        return None if piece.partial or self.settings.randomized else piece.by_group

    def at_thresholds(self, chosen: IntArray) -> CountedThresholds:
        """Return the rule at thresholds of groups (G,), by position, with constraints as labels count them."""
        assert self.by_group is not None
        result, judged = self.by_group.counted(chosen)
        sampled = sample_constraints(self.problem, self.limits, judged, lambda: result.rule, self.link)
        return CountedThresholds(result, judged, sampled)

    def beside_mixture(self, rule: ConstrainedRule, margins: FloatArray) -> ConstrainedRule:
        """Return a rule with thresholds of groups with what a mixture within the same margins (Q, 2) would add."""
        if self.by_group is None or len(rule.result.losses) > 1:
            return rule
        piece = self.pieces[0][2]
        return piece.beside_mixture(rule, piece.limits.tightened(margins))

    def start_from(self, other: Search) -> None:
        """Begin the search at the multipliers of a search for the same constraints on other rows."""
        for (_, _, piece), (_, _, before) in zip(self.pieces, other.pieces, strict=True):
            if before.by_group is None or self.settings.randomized:  # thresholds of groups have no multipliers
                piece.start_from(before)

    def explore(self, margins: FloatArray) -> None:
        """Ask for rules that are best within limits that are narrower by parts of margins (Q, 2)."""
        for _, which, piece in self.pieces:
            limits = piece.limits
            if not limits.levels and not piece.sweeps:
                steps = np.linspace(0.0, 1.0, _EXPLORED_MARGINS + 1)[1:]
                piece.feasible.explore([limits.tightened(step * margins[list(which)]) for step in steps])

    def mixture_value(self, margins: FloatArray) -> float | None:
        """Return what the best mixture of a problem of one piece reaches; None where it is not known."""
        if len(self.pieces) > 1:
            return None
        _, which, piece = self.pieces[0]
        return piece.mixture_value(piece.limits.tightened(margins[list(which)]))

    def counted(self, rule: ConstrainedRule) -> list[SampledMetric | SampledGap]:
        """Return the constraints as labels count them for a rule."""
        return sample_constraints(self.problem, self.limits, rule.judged, lambda: rule.result.rule, self.link)


def searches_of(recipes: Sequence[FitStrategy], search_by: Callable[[FitStrategy], Search]) -> list[Search]:
    """Return the searches of recipes, or one alone: thresholds that labels count are all compared."""
    searches: dict[FitStrategy, Search] = {}
    for recipe in sorted(recipes, key=lambda recipe: recipe.confusion != "labels"):
        searches[recipe] = search_by(recipe)
        if searches[recipe].settles:
            return [searches[recipe]]
    return [searches[recipe] for recipe in recipes]
