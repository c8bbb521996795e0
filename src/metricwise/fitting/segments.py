"""Rules by segment: how far segments are calibrated apart is chosen by rows left out, and the rest is any other fit.

Rows are recalibrated by the links of their segments, fitted without the fold of a row, as the probabilities of a model
are made out of fold. A rule is fitted to these rows, and composed with the links of all rows. Must not know user input.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.notes import Note, NoteKind
from ..data.sensitive import Groups
from ..data.sources.memory import MemorySource
from ..inference.results import ConstraintResult
from ..inference.spread import Spread
from ..kernels import scattered
from ..oracles.problem import InMemory, Problem, argmax_rule
from ..rules.base import Rule
from ..rules.segment_fit import SegmentFit, SegmentLinks, Shrinkage, log_likelihood, recalibrate_rows
from ..rules.segmented import SegmentedRule
from ..solvers.result import Certificate, Outcome
from .constraints.resolve import bind_constraints
from .samples import with_copies_clustered
from .solving import FitTask, FittedRule

__all__ = ["fit_segments"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

_FOLDS = 5
# Standard deviations over segments that are compared: of biases, and of the logarithm of the temperature.
_BIASES = (0.1, 0.2, 0.4, 0.8, 1.6)
_SCALES = (0.0, 0.1, 0.25, 0.6)
# Standard errors by which the log-likelihood of rows left out must improve. On exchangeable worlds of four sizes 3 to
# 27 % of draws were told apart with 1.0; on those of benchmarks/segments.py 1 % with 1.5.
_MIN_ERRORS = 1.5
_MAX_NUMBERS = 200_000  # rows times squared classes that choose; more are sampled, by segment
_MIN_SAMPLED_SEGMENTS = 20  # of which all rows are taken; of fewer, some rows of every segment


Route = Callable[[FitTask], FittedRule]


def fit_segments(ordinary: Route, of_losses: Route, task: FitTask) -> FittedRule:
    """Fit a rule by segment: by a route to a rule of losses, or without segments by the ordinary route.

    The two fit one task; the ordinary one may find other kinds of rules.
    """
    assert task.segments is not None
    problem, whole_task = task.problem, without_segments(task)
    task.stage("comparing segments")
    rows = _Rows.read(with_copies_clustered(_in_memory(whole_task.problem)), _codes(problem), task.segments, task.seed)
    choice = choose_shrinkage(rows)
    if choice.shrinkage is None:
        fitted = ordinary(whole_task)
        return replace(fitted, notes=(*fitted.notes, Note(NoteKind.SEGMENTS, choice.describe())))
    links = rows.fit(np.arange(rows.n_rows)).links(choice.shrinkage)
    task.stage("recalibrating by segment")
    fitted = of_losses(replace(whole_task, problem=rows.out_of_fold(choice.shrinkage)))
    if fitted.outcome is not Outcome.ARGMAX and task.goal.constraints and task.goal.confidence is None:
        # What is to hold on the given rows is counted behind the links of all rows, which the rule has.
        again = of_losses(replace(whole_task, problem=rows.recalibrated(links)))
        fitted = replace(again, gain=fitted.gain, value_on_new_rows=fitted.value_on_new_rows)
    return _composed(task, fitted, links, choice)


def without_segments(task: FitTask) -> FitTask:
    """Return the task of rows without their segments."""
    source = task.problem.source
    assert isinstance(source, MemorySource)
    problem = replace(task.problem, source=source.map(lambda rows: replace(rows, group=None)))
    return replace(task, problem=problem, segments=None)


def _codes(problem: Problem) -> IntArray:
    assert isinstance(problem.source, MemorySource)
    codes = problem.source.rows.group
    assert codes is not None
    return codes


def _in_memory(problem: Problem) -> InMemory:
    assert isinstance(problem.source, MemorySource)
    return InMemory(problem.source, problem.aim, problem.prior, problem.record, problem.allowed, problem.constraints)


# --------------------------------------------------------------------------------------------------------- the choice


@dataclass(frozen=True)
class SegmentChoice:
    """How far segments are calibrated apart, and what that is worth on rows left out.

    Parameters
    ----------
    shrinkage : Shrinkage or None
        None: all segments have one rule.
    gain, error : float
        Improvement of the mean log-likelihood per row over one rule, of the best candidate, and its standard error.
    n_segments : int
    """

    shrinkage: Shrinkage | None
    gain: float
    error: float
    n_segments: int

    def describe(self) -> str:
        """Return a sentence about what was chosen and why."""
        gain = f"{self.gain:+.2g} +- {self.error:.1g}"
        if self.shrinkage is None:
            return (
                f"All {self.n_segments} segments have one rule: calibrating them apart does not improve the mean "
                f"log-likelihood of rows left out by more than noise ({gain})."
            )
        slopes = (
            f"and that of the logarithm of slopes {self.shrinkage.scale:g}"
            if self.shrinkage.scale > 0
            else "and slopes to be equal"
        )
        return (
            f"{self.n_segments} segments have rules of their own, shrunk towards that of all rows: the standard "
            f"deviation over segments of the biases of classes is taken to be {self.shrinkage.bias:g}, {slopes}. The "
            f"mean log-likelihood of rows left out improves by {gain}."
        )


def choose_shrinkage(rows: _Rows) -> SegmentChoice:
    """Choose how far segments are calibrated apart by the likelihood of rows left out.

    The standard deviation of biases is chosen first, then that of slopes, then that of biases again.
    """
    some = rows.sample(_MAX_NUMBERS // rows.problem.schema.width**2)
    scores = _OutOfFoldScores(some)
    bias = max(_BIASES, key=lambda sd: scores.gain(Shrinkage(sd)))
    scale = max(_SCALES, key=lambda sd: scores.gain(Shrinkage(bias, sd)))
    bias = max(_BIASES, key=lambda sd: scores.gain(Shrinkage(sd, scale)))
    best = Shrinkage(bias, scale)
    gain, error = scores.gain(best), scores.error(best)
    better = gain > 0 and gain > _MIN_ERRORS * error
    return SegmentChoice(best if better else None, gain, error, len(rows.segments.names))


class _OutOfFoldScores:
    """Log-likelihoods of rows, each under links fitted without its fold, of any shrinkage."""

    def __init__(self, rows: _Rows) -> None:
        self.rows = rows
        self._fits = [(left_out, rows.fit(np.flatnonzero(rows.fold != f))) for f, left_out in rows.folds()]
        self._gains: dict[Shrinkage, FloatArray] = {}
        weight = rows.problem.source.rows.observed_weight
        self._weight = weight / max(float(weight.sum()), np.finfo(float).tiny)
        self._common = self._of(None)

    def _of(self, shrinkage: Shrinkage | None) -> FloatArray:
        """The log-likelihood of each row, of the common link if `shrinkage` is None."""
        rows = self.rows.problem.source.rows
        assert rows.codes is not None
        out = np.empty(rows.n_rows)
        for left_out, fit in self._fits:
            proba, codes = rows.proba.take(left_out), rows.codes[left_out]
            if shrinkage is None:
                linked = fit.common.view(proba)
                out[left_out] = log_likelihood(linked, codes).sum(axis=1)
            else:
                recalibrated = fit.links(shrinkage).apply(proba, self.rows.codes[left_out])
                out[left_out] = log_likelihood(recalibrated, codes).sum(axis=1)
        return out

    def _gain_of_rows(self, shrinkage: Shrinkage) -> FloatArray:
        if shrinkage not in self._gains:
            self._gains[shrinkage] = self._of(shrinkage) - self._common
        return self._gains[shrinkage]

    def gain(self, shrinkage: Shrinkage) -> float:
        """Return the improvement of the mean log-likelihood."""
        return float(self._weight @ self._gain_of_rows(shrinkage))

    def error(self, shrinkage: Shrinkage) -> float:
        """Return its standard error."""
        gains = self._gain_of_rows(shrinkage)
        return Spread.of(self.rows.problem).error(self._weight * (gains - self.gain(shrinkage)))


@dataclass(frozen=True, eq=False)
class _Rows:
    """Labelled rows in memory with their segments, (N,), S where there is none, and their folds, (N,)."""

    problem: InMemory
    codes: IntArray
    fold: IntArray
    segments: Groups

    @classmethod
    def read(cls, problem: InMemory, codes: IntArray, segments: Groups, seed: int) -> _Rows:
        return cls(problem, codes, _deal_folds(problem, codes, seed), segments)

    @property
    def n_rows(self) -> int:
        return self.problem.n_rows

    def folds(self) -> list[tuple[int, IntArray]]:
        """Return the rows of each fold that has any."""
        return [(f, np.flatnonzero(self.fold == f)) for f in np.unique(self.fold).tolist()]

    def sample(self, n_rows: int) -> _Rows:
        """Return the rows of as many segments, at random, as have about so many rows; some rows of few segments."""
        if self.n_rows <= n_rows:
            return self
        rng, n_segments = np.random.default_rng(0), len(self.segments.names) + 1
        order = rng.permutation(n_segments)
        sizes = np.bincount(self.codes, minlength=n_segments)[order]
        chosen = order[: int(np.searchsorted(np.cumsum(sizes), n_rows))]
        if len(chosen) < min(_MIN_SAMPLED_SEGMENTS, n_segments):
            kept = np.sort(rng.choice(self.n_rows, n_rows, replace=False))
        else:
            kept = np.flatnonzero(np.isin(self.codes, chosen))
        return replace(self, problem=self.problem.take(kept), codes=self.codes[kept], fold=self.fold[kept])

    def fit(self, kept: IntArray) -> SegmentFit:
        """Return the fit of some rows; those without a segment count for the common link only."""
        rows = self.problem.source.rows
        some, codes = rows.take(kept), self.codes[kept]
        assert some.codes is not None
        n_segments = len(self.segments.names)
        return SegmentFit(some.proba, some.codes, some.weight, some.frequency, codes, n_segments)

    def out_of_fold(self, shrinkage: Shrinkage) -> InMemory:
        """Return the problem whose rows are recalibrated by links that were fitted without their fold."""
        schema = self.problem.schema
        temperature = np.empty((self.n_rows, schema.n_outputs))
        bias = np.empty((self.n_rows, schema.n_outputs, schema.width))
        for f, left_out in self.folds():
            links = self.fit(np.flatnonzero(self.fold != f)).links(shrinkage)
            temperature[left_out], bias[left_out] = links.of_rows(self.codes[left_out])
        return self._with(temperature, bias, links.common.floor)

    def recalibrated(self, links: SegmentLinks) -> InMemory:
        """Return the problem whose rows are recalibrated by given links."""
        return self._with(*links.of_rows(self.codes), links.common.floor)

    def _with(self, temperature: FloatArray, bias: FloatArray, floor: float) -> InMemory:
        problem = self.problem
        rows = problem.source.rows
        changed = recalibrate_rows(rows.proba, temperature, bias, floor)
        rows = replace(rows, proba=changed, baseline=problem.decide_argmax())
        return replace(problem, source=MemorySource(rows, problem.schema, problem.source.passes))


def _deal_folds(problem: InMemory, codes: IntArray, seed: int) -> IntArray:
    """Deal rows to folds, evenly within each segment; rows of one cluster together.

    By their content, so that the order of rows does not matter. Not evenly within classes: a fold would have the class
    shares of the others, and segments would seem to differ where only their samples do.
    """
    rows = problem.source.rows
    keys = scattered(rows.hashes(), seed)
    if rows.cluster is not None:
        cluster = np.unique(rows.cluster, return_inverse=True)[1].reshape(-1)
        first = np.full(int(cluster.max()) + 1, np.iinfo(np.uint64).max, dtype=np.uint64)
        np.minimum.at(first, cluster, keys)
        dealt = np.empty(len(first), dtype=np.intp)
        dealt[np.argsort(first, kind="stable")] = np.arange(len(first)) % _FOLDS
        return np.asarray(dealt[cluster])
    fold = np.empty(rows.n_rows, dtype=np.intp)
    fold[np.lexsort((keys, codes))] = np.arange(rows.n_rows) % _FOLDS
    return fold


# --------------------------------------------------------------------------------------------------------- the result


def _composed(task: FitTask, fitted: FittedRule, links: SegmentLinks, choice: SegmentChoice) -> FittedRule:
    """Return the fit of recalibrated rows as one of the rows as they are, counted with the labels."""
    problem, segments = task.problem, task.segments
    assert segments is not None
    metadata, text = fitted.rule.metadata, choice.describe()
    rule: Rule
    if fitted.outcome is Outcome.ARGMAX:
        rule = replace(argmax_rule(problem), metadata=metadata)
        text = "Argmax is kept for all segments, although their calibrations differ."
    else:
        rule = SegmentedRule.of(fitted.rule, links, segments, problem.schema.input.base)
        rule = rule.with_metadata(recipe=f"{metadata.recipe}, by segment")
    oracle = problem.oracle()
    confusion = problem.confusion_of_rule(rule, oracle)
    if problem.aim.average == "instance":
        value, baseline = problem.value_of_rule(rule), problem.value_of_rule(argmax_rule(problem))
    else:
        argmax = problem.confusion_of_rule(argmax_rule(problem), oracle)
        value, baseline = map(problem.objective(oracle).value, (confusion, argmax))
    return replace(
        fitted,
        rule=rule.with_metadata(value=value, baseline=baseline),
        value=value,
        baseline=baseline,
        confusion=confusion[:, : problem.schema.width],
        certificate=Certificate(fitted.certificate.optimized_value),
        notes=(Note(NoteKind.SEGMENTS, text), *fitted.notes),
        threshold_range=None,
        constraints=_recounted(problem, oracle, confusion, fitted.constraints),
    )


def _recounted(
    problem: Problem, oracle: Any, confusion: FloatArray, results: tuple[ConstraintResult, ...]
) -> tuple[ConstraintResult, ...]:
    """Return the results of constraints with the values of the rule on the given rows."""
    if not results:
        return results
    limits = bind_constraints(problem.constraints, problem.schema, oracle).constraints
    promises = list(dict.fromkeys(limit.constraint.promise for limit in limits))
    out = []
    for promise, result in zip(promises, results, strict=True):
        values = [float(limit.value(confusion)) for limit in limits if limit.constraint.promise == promise]
        out.append(replace(result, value=min(values, key=lambda v: min(v - result.low, result.high - v))))
    return tuple(out)
