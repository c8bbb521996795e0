"""Fits rules whose constraints are guaranteed: candidates that are fixed by some rows are tested on others.

One threshold on a score is tested along a chain of thresholds, all other rules along a ladder. Of the certified
candidates the best by the metric is returned; if there is none, an error says how many rows may be enough. Must not
know user input.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, log10
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import InvalidParameter, argument, mention
from ...core.losses import Loss
from ...core.notes import NoteKind, note_list
from ...goals.proportions import Proportion
from ...goals.resolve import complete_text
from ...inference.decisions import Decisions
from ...inference.exact_tests import rows_to_guarantee
from ...inference.judge import Judge
from ...inference.results import ConstraintResult, Gain
from ...metrics.objective import Objective
from ...oracles.problem import FitStrategy, InMemory, Problem, argmax_rule
from ...rules.base import RuleRows
from ...rules.calibration import TemperatureScaling
from ...rules.metadata import RuleMetadata
from ...solvers.abstention_cuts import cut_loss
from ...solvers.result import Outcome, SolverResult, count_rule
from ...solvers.sweep import threshold_loss
from ..by_group import rejoin_groups, split_by_group, values_by_group
from ..constraints.resolve import InfeasibleConstraintsError
from ..cut_points import count_cuts
from ..metadata import metadata_of
from ..samples import MAX_ROWS
from ..secondary_metrics import record_rule
from ..solving import FitTask, FittedRule, present, solve
from .chain import Chain, End, OtherRows, certify_thresholds, safest_end
from .ladder import climb
from .pieces import Piece, check_rows, split_pieces

__all__ = ["NotGuaranteedError", "fit_guaranteed"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

_PLACING_SHARE = 0.1  # of the rows, whose scores place thresholds where there are no rows without labels
_LADDER_SHARE = 0.3  # of the rows, which the rules of a ladder are fitted to
_EXPLAINED_POWER = 0.95  # of the tests with that number: the best of several candidates is flattered
_LEAST_PLACING_ROWS = 5  # without labels
_EXPLAINED_CANDIDATES = 12  # of which the number of rows that may be enough is estimated
_LEAST_TRIALS = 5  # of a proportion, from which the number of rows that may be enough is estimated


class NotGuaranteedError(InfeasibleConstraintsError):
    """Raised if no rule was certified to keep the constraints."""


@dataclass(frozen=True, eq=False)
class _Certified:
    """The rule of a piece: a loss behind a link or a threshold in the unit of the rows, and the evidence for it."""

    tested: Piece
    n_candidates: int
    loss: Loss
    link: TemperatureScaling | None = None
    threshold: float | None = None

    def count(self, group: int | None = None) -> NDArray[np.int64]:
        """Return the rows of each true class and decision (K, D) among those that tested it, of one group or all."""
        if self.threshold is not None:
            return np.asarray(self.tested.family.count(np.array([self.threshold]), group)[0])
        return np.asarray(self.tested.count_losses([self.loss], self.link, group)[0])


def fit_guaranteed(task: FitTask) -> FittedRule:
    """Fit the best certified rule of a task."""
    check_rows(task)
    task.stage("testing rules")
    problem = task.problem
    rows = _in_memory(problem)
    pieces = split_pieces(task, rows, task.unlabelled)
    assert task.goal.confidence is not None
    delta = (1.0 - task.goal.confidence) / len(pieces)
    rng = np.random.default_rng(task.seed)
    alone = problem.schema.n_outputs == 1 and not task.has_group_rules
    recalibrate = task.recipe_list[0].recalibrate and alone  # a rule has one link
    certified = [_certify(task, piece, recalibrate, delta, rng) for piece in pieces]
    fitted = _count(task, certified)
    if task.by_group and not task.group_aware and task.groups is not None:
        by_group = values_by_group(problem, task.groups, fitted.rule)
        fitted = replace(fitted, recorded=record_rule(problem, fitted.rule), by_group=by_group)
    return _with_results(task, fitted, certified)


def _in_memory(problem: Problem) -> InMemory:
    """Return all rows in memory; refuse more than fit there, and copies, which are not independent."""
    capacity = problem.source.capacity
    if capacity is not None and problem.n_rows * problem.schema.width > capacity:
        raise InvalidParameter(
            "guarantee",
            problem=f"{argument('guarantee', 'exact')} holds all rows in memory, but the memory limit allows about "
            f"{capacity // problem.schema.width:,} of {problem.n_rows:,}",
            remedy="raise the memory limit, or pass a random sample of the rows",
        )
    rows = problem.sample(problem.n_rows, 0)
    if problem.sample(MAX_ROWS, 0).source.rows.copies() is not None:
        raise InvalidParameter(
            "guarantee",
            problem=f"{argument('guarantee', 'exact')} needs independent rows, but some are exact copies of others",
            remedy="pass each row once",
        )
    return rows


# --------------------------------------------------------------------------------------------------------- candidates


def _certify(task: FitTask, piece: Piece, recalibrate: bool, delta: float, rng: Any) -> _Certified:
    """Return the best certified rule of a piece."""
    above = piece.above
    ends = [None if above is None else safest_end(p, above) for p in piece.proportions]
    safest = [end for end in ends if end is not None]
    if len(safest) < len(ends):
        return _certify_ladder(task, piece, recalibrate, delta, rng)
    tested, placing = piece, piece.unlabelled
    if placing is None:
        placing_rows, tested_rows = _split(piece.rows.n_rows, _PLACING_SHARE, rng)
        tested, placing = piece.take(tested_rows), piece.take(placing_rows).rows.source.rows.proba
    elif placing.n_rows < _LEAST_PLACING_ROWS:
        must = f"have at least {_LEAST_PLACING_ROWS} rows, which place the thresholds"
        raise InvalidParameter("unlabelled", must, f"{placing.n_rows}", "pass more of them, or leave it out")
    others = piece.place(placing)
    chain, position = _test_thresholds(tested, safest, others, delta)
    if position is None:
        raise _not_guaranteed(task, piece, tested.rows.n_rows, chain.cells, delta)
    threshold = float(chain.thresholds[position])
    in_unit = threshold if _has_cut_points(piece) else None
    return _Certified(tested, len(chain.thresholds), _threshold_loss(piece, threshold), threshold=in_unit)


def _has_cut_points(piece: Piece) -> bool:
    """Whether thresholds are compared in the unit of the rows."""
    return piece.rows.schema.input.is_logits and piece.rows.schema.n_extra == 0


def _test_thresholds(tested: Piece, ends: Sequence[End], others: OtherRows, delta: float) -> tuple[Chain, int | None]:
    """Return tested thresholds and the position of the best; rule by rule if rounding may decide a row otherwise."""
    family, in_unit = tested.family, _has_cut_points(tested)

    def count(thresholds: FloatArray, group: int | None = None) -> NDArray[np.int64]:
        if in_unit or family.is_clear_of(thresholds):
            return family.count(thresholds, group)
        losses = [_threshold_loss(tested, threshold) for threshold in thresholds.tolist()]
        return tested.count_losses(losses, None, group)

    chain = certify_thresholds(count, tested.rows.n_rows, tested.proportions, ends, others, delta)
    return chain, _best(tested.rows, chain.cells[None], chain.certified)


def _threshold_loss(piece: Piece, threshold: float) -> Loss:
    """Return the loss of the rule that decides rows above a threshold."""
    schema = piece.rows.schema
    if schema.n_extra == 0:
        return threshold_loss(np.array([threshold]))
    reached = np.nextafter(threshold, np.inf)  # a class wins a tie with an abstention
    return cut_loss(np.array([reached]), schema.width)


def _certify_ladder(task: FitTask, piece: Piece, recalibrate: bool, delta: float, rng: Any) -> _Certified:
    if piece.rows.schema.input.is_scores:
        raise InvalidParameter(
            "input",
            problem=f"{argument('guarantee', 'exact')} needs probabilities or logits for these constraints, because "
            "scores become probabilities by a map that is fitted to the same rows",
            remedy="pass probabilities or logits",
        )
    if any(proportion.group is not None for proportion in piece.proportions):
        raise InvalidParameter(
            "sensitive_features",
            problem=f"{argument('guarantee', 'exact')} needs a rule that may use the group for these constraints",
            remedy="pass Sensitive(..., group_aware=True), or bound all rows",
        )
    fitted_rows, tested_rows = _split(piece.rows.n_rows, _LADDER_SHARE, rng)
    fitted, tested = piece.take(fitted_rows), piece.take(tested_rows)
    ladder = climb(fitted, tested, recalibrate, task.settings, delta)
    if ladder is None:
        raise _not_guaranteed(task, piece, piece.rows.n_rows, None, delta)
    position = _best(tested.rows, ladder.cells[None], ladder.certified)
    if position is None:
        raise _not_guaranteed(task, piece, tested.rows.n_rows, ladder.cells, delta)
    return _Certified(tested, len(ladder.losses), ladder.losses[position], ladder.link)


def _split(n: int, share: float, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Return a random share of n rows, and the others, each in order."""
    chosen = np.zeros(n, dtype=bool)
    chosen[rng.permutation(n)[: max(1, round(share * n))]] = True
    return np.flatnonzero(chosen), np.flatnonzero(~chosen)


def _best(rows: InMemory, cells: NDArray[np.int64], certified: NDArray[np.bool_]) -> int | None:
    """Return the certified candidate of the largest metric, by counted cells (T, K, D); None if none is certified."""
    positions = np.flatnonzero(certified)
    if len(positions) == 0:
        return None
    objective = rows.objective(rows.oracle())
    return int(positions[np.argmax(_values(objective, cells[positions]))])


def _values(objective: Objective, cells: NDArray[np.int64]) -> FloatArray:
    """Return the metric (T,) of counted cells (T, K, D) of one output."""
    width = objective.width
    C = np.zeros((len(cells), 1, width, width))
    C[:, 0, : cells.shape[1], : cells.shape[2]] = cells
    C /= np.maximum(C.sum(axis=(1, 2, 3), keepdims=True), 1.0)
    return objective.totals(objective.values(objective.grouping.pool_each(C)))


# -------------------------------------------------------------------------------------------------------- no rule


def _not_guaranteed(
    task: FitTask, piece: Piece, n_tested: int, cells: Mapping[int | None, NDArray[np.int64]] | None, delta: float
) -> NotGuaranteedError:
    """Return the error that no rule is certified, with the number of rows that may be enough."""
    names = " and ".join(f"'{name}'" for name in dict.fromkeys(c.name for c in piece.constraints))
    where = f" {piece.title}" if piece.title else ""
    said = f"no rule could be guaranteed to satisfy {names}{where} at confidence {task.goal.confidence:g} with "
    said += f"{piece.rows.n_rows:,} rows"
    unprovable = [p for p in piece.proportions if not 0 < p.bound < 1 and (p.bound == 1) == p.is_floor]
    enough = None if cells is None or unprovable else _rows_enough(piece.proportions, cells, n_tested, delta)
    if unprovable:
        said += f", because no number of rows proves a bound of {unprovable[0].bound:g}"
    elif enough is None:
        said += ", because none of the candidate rules satisfies all bounds by enough on the rows that tested them"
    else:
        said += f"; by these rows, some {_rounded(max(enough, 2 * piece.rows.n_rows)):,} may be enough"
    remedy = f"loosen a bound, pass more labelled rows, or leave {mention('guarantee')} out for about this confidence"
    return NotGuaranteedError(f"{said}; {remedy}.")


def _rows_enough(
    proportions: Sequence[Proportion], cells: Mapping[int | None, NDArray[np.int64]], n_rows: int, delta: float
) -> int | None:
    """Return the least number of rows by which one of the candidates would probably be certified; None if none is."""
    n = len(cells[None])
    some = np.unique(np.linspace(0, n - 1, _EXPLAINED_CANDIDATES).astype(np.intp)).tolist()
    needed = [_rows_for(proportions, {g: part[t] for g, part in cells.items()}, n_rows, delta) for t in some]
    return min((rows for rows in needed if rows is not None), default=None)


def _rows_for(
    proportions: Sequence[Proportion], counts: Mapping[int | None, NDArray[np.int64]], n_rows: int, delta: float
) -> int | None:
    rows = 0
    for proportion in proportions:
        if not 0 < proportion.bound < 1:
            continue
        successes, trials = (int(number) for number in proportion.count(counts[proportion.group]))
        if trials < _LEAST_TRIALS:
            return None
        value = min(max(successes / trials, 0.5 / trials), 1.0 - 0.5 / trials)  # few errors do not mean none
        if (value <= proportion.bound) if proportion.is_floor else (value >= proportion.bound):
            return None
        needed = rows_to_guarantee(
            proportion.bound, value, share=trials / n_rows, confidence=1.0 - delta, power=_EXPLAINED_POWER
        )
        rows = max(rows, needed)
    return rows


def _rounded(number: int) -> int:
    """Return a number with one significant digit, rounded up."""
    unit = int(10.0 ** int(log10(number)))
    return ceil(number / unit) * unit


# --------------------------------------------------------------------------------------------------------- the result


def _count(task: FitTask, certified: Sequence[_Certified]) -> FittedRule:
    """Count the rule of all pieces on all rows."""
    problem, metadata = task.problem, _metadata(task)
    thresholds = [part.threshold for part in certified]
    by_group = task.has_group_rules
    if all(threshold is not None for threshold in thresholds):
        if by_group or len(certified) < problem.schema.n_outputs:
            raise InvalidParameter(
                "input",
                problem=f"{argument('guarantee', 'exact')} needs probabilities for rules by group, and for several "
                f"outputs if some have no constraint, got {problem.schema.input.plural}",
                remedy="pass probabilities",
            )
        return count_cuts(problem, np.array(thresholds, dtype=np.float64)[:, None], metadata)
    shared = split_by_group(task) if by_group else problem
    n_outputs = shared.schema.n_outputs
    losses: list[Loss | None] = [None] * n_outputs
    for part in certified:
        losses[part.tested.output] = part.loss
    rest = np.array([m for m, loss in enumerate(losses) if loss is None], dtype=np.intp)
    if len(rest):
        for m, loss in zip(rest.tolist(), _unconstrained(task, shared, rest), strict=True):
            losses[m] = loss
    link = certified[0].link
    read_before = problem.source.passes.entries
    oracle = shared.oracle("labels", link)
    objective, recipe = shared.objective(oracle), FitStrategy("labels", link is not None)
    loss = _stack([part for part in losses if part is not None], shared.schema.decision_width)
    result: SolverResult = count_rule(oracle, objective, loss, status="", outcome=Outcome.LOCAL)
    fitted = present(shared, recipe, oracle, objective, result, metadata, read_before)
    return rejoin_groups(task, shared, fitted, recipe) if by_group else fitted


def _unconstrained(task: FitTask, problem: Problem, outputs: IntArray) -> list[Loss]:
    """Return the losses of outputs that no constraint is about, fitted without recalibration."""
    recipe = FitStrategy("blended")
    result = solve(problem.of_outputs(outputs), recipe, task.settings, None)
    tensors = result.losses[0].tensor()
    tensors = np.repeat(tensors, len(outputs), axis=0) if len(tensors) < len(outputs) else tensors
    return [Loss.from_tensor(tensor[None]) for tensor in tensors]


def _stack(losses: Sequence[Loss], width: int) -> Loss:
    """Return the loss of outputs, of the loss of each; diagonal if all are."""
    if len(losses) == 1:
        return losses[0]
    if all(loss.is_diagonal and loss.n_classes == width for loss in losses):
        diagonals, offsets = zip(*((loss.diagonal, loss.offset) for loss in losses), strict=True)
        return Loss(diagonal=np.concatenate(diagonals), offset=np.concatenate(offsets))
    full = np.zeros((len(losses), width, width))
    for m, loss in enumerate(losses):
        k = loss.n_classes
        full[m, :k, :k] = loss.tensor()[0]
    return Loss(full=full)


def _metadata(task: FitTask) -> RuleMetadata:
    problem, metadata = task.problem, metadata_of(task.problem)
    first = {constraint.promise: constraint for constraint in reversed(problem.constraints)}
    names = [complete_text(first[promise], problem.schema, metadata.pos_label) for promise in sorted(first)]
    return metadata.updated(recipe="tested", subject_to=names, confidence=task.goal.confidence, guarantee="exact")


def _with_results(task: FitTask, fitted: FittedRule, certified: Sequence[_Certified]) -> FittedRule:
    """Return the fit with what is guaranteed and, of one piece, estimates from the rows that tested it."""
    results = _constraint_results(task, certified)
    kept = "; ".join(f"{result.name}: {result.value:.4g}" for result in results)
    sizes = [part.tested.rows.n_rows for part in certified]
    by_group = task.has_group_rules
    n_tested = sum(sizes) if by_group else max(sizes)  # outputs are of the same rows
    texts = [
        f"Guaranteed with a confidence of {task.goal.confidence:g}, for any distribution of independent rows that the "
        f"model has not seen: {kept} on the {n_tested:,} rows that tested "
        f"{sum(part.n_candidates for part in certified):,} candidate rules."
    ]
    fitted = replace(
        fitted, constraints=results, notes=(*fitted.notes, *note_list(NoteKind.CONSTRAINT, *texts)), gain=None
    )
    if by_group or task.problem.schema.n_outputs > 1 or task.problem.aim.average == "instance":
        return fitted
    tested = certified[0].tested.rows
    codes = fitted.rule.decide(RuleRows(tested.source.rows.proba))
    both = [Decisions.of_codes(codes), Decisions.of_codes(tested.decide(argmax_rule(tested)))]
    comparison = Judge(tested).compare(both)
    return replace(fitted, gain=Gain(**vars(comparison.difference)), value_on_new_rows=comparison.value)


def _constraint_results(task: FitTask, certified: Sequence[_Certified]) -> tuple[ConstraintResult, ...]:
    """Return each constraint as written, with the value nearest to its bound among its parts."""
    values: dict[int, list[tuple[float, float]]] = {}
    for part in certified:
        for proportion in part.tested.proportions:
            successes, trials = proportion.count(part.count(proportion.group))
            value = float(successes / trials)
            distance = value - proportion.bound if proportion.is_floor else proportion.bound - value
            values.setdefault(proportion.promise, []).append((distance, value))
    first = {constraint.promise: constraint for constraint in reversed(task.goal.constraints)}
    return tuple(
        ConstraintResult(
            first[promise].name,
            first[promise].low,
            first[promise].high,
            min(values[promise])[1],
            confidence=task.goal.confidence,
            guarantee="exact",
        )
        for promise in sorted(first)
    )
