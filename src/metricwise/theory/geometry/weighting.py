"""Does weighting suffice? The paper's condition as a tool.

A confusion tensor is reached by one weighted rule, or it lies on a face whose rows tie, or inside: each answer comes
with its evidence. "Boundary" is the relative boundary, and losses are equal modulo row constants.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, cast, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core.errors import InvalidParameter, entry_point
from ...core.losses import Loss
from ...fitting.solving import Settings
from ...metrics.base import Metric
from ...solvers.result import SolverResult
from .feasible import FeasibleSet, MetricLike, join
from .results import Decomposition, Part
from .search import Frame, Pool, Search, decompose, fewest, shoot, start_pool

__all__ = ["Weighting", "does_weighting_suffice"]

FloatArray = NDArray[np.float64]
Verdict = Literal["weighted", "face", "interior"]

_STARTS = 4  # vertices from which two rules are looked for


@runtime_checkable
class HasConfusion(Protocol):
    """A rule with its confusion tensor, such as a Solution."""

    @property
    def rule(self) -> Any: ...

    @property
    def confusion(self) -> FloatArray: ...


@dataclass(frozen=True, eq=False)
class Weighting:
    """Whether one weighted rule suffices to reach a confusion tensor, with evidence.

    Parameters
    ----------
    verdict : {"weighted", "face", "interior"}
        "weighted": the rule of `loss` reaches the tensor. "face": the tensor is on the relative boundary, where `loss`
        supports the set, but rows tie under that loss, so that a mixture of rules that are all optimal for it is
        needed. "interior": no loss, unless constant within rows, supports the set at the tensor, so that a mixture is
        needed.
    loss : Loss
        The loss; all 0 if "interior", and for outputs whose verdict is "interior".
    decomposition : Decomposition
        The rule or the mixture that reaches the tensor.
    outputs : tuple of M str
        The verdict for each output. Several outputs are "weighted" if all are, "interior" if all are, and otherwise
        "face".
    slack : float
        ``<loss, C>`` minus its smallest value over all rules, for a loss of norm 1: the distance to the boundary, at
        most the tolerance.
    room : float
        Lower bound of how far the set extends beyond C, as seen from the confusion of uniform random guessing (for that
        point itself, towards the nearest vertex found); 0 unless "interior".
    error : float
        Distance between the confusion of the decomposition and the tensor.
    solution : SolverResult or None
        The optimum that was found, if a metric was given.

    See Also
    --------
    does_weighting_suffice : Answers the question.

    Examples
    --------
    >>> from metricwise.geometry import FeasibleSet, does_weighting_suffice
    >>> feasible = FeasibleSet.from_proba([[0.9, 0.1], [0.4, 0.6]])
    >>> answer = does_weighting_suffice("accuracy", feasible)
    >>> answer.verdict, bool(answer)
    ('weighted', True)
    """

    verdict: Verdict
    loss: Loss
    decomposition: Decomposition
    outputs: tuple[Verdict, ...]
    slack: float
    room: float
    error: float
    solution: SolverResult | None = None

    def __bool__(self) -> bool:
        return self.verdict == "weighted"

    def __str__(self) -> str:
        n = self.decomposition.n_rules
        text = {
            "weighted": "One weighted rule reaches the tensor.",
            "face": f"The tensor is on a face of the boundary where rows tie: a mixture of {n} rules of that face "
            "reaches it.",
            "interior": f"The tensor is inside, at least {self.room:.3g} from the boundary as seen from random "
            f"guessing: a mixture of {n} weighted rules reaches it.",
        }[self.verdict]
        if self.solution is not None and self.solution.gap is None:
            text += " It is the best tensor found, without a proof that no other is better."
        return text

    def __repr__(self) -> str:
        return f"Weighting({self.verdict!r}, n_rules={self.decomposition.n_rules})"


def does_weighting_suffice(
    target: MetricLike | HasConfusion | ArrayLike,
    feasible: FeasibleSet,
    *,
    losses: Sequence[Loss | ArrayLike] = (),
    average: str | None = None,
    output_weight: ArrayLike | None = None,
    zero_division: float = 0.0,
    tol: float = 1e-5,
    max_passes: int = 2000,
) -> Weighting:
    """Decide whether one weighted rule reaches a confusion tensor, or the optimum of a metric.

    Parameters
    ----------
    target : array-like of shape (K, K) or (M, K, K), Solution, or metric
        A tensor of the set; a Solution that counted expected confusion with the same probabilities; or a metric, which
        is then maximised over the set, including randomised rules.
    feasible : FeasibleSet
        The set of reachable tensors.
    losses : sequence of Loss or array-like, optional
        Losses to try first, if some are known to be close.
    average, output_weight, zero_division
        For a metric, as in :func:`metricwise.optimize`.
    tol : float, default=1e-5
        Distance from a vertex, the boundary or the tensor that counts as zero. Solvers find an optimum up to about
        1e-6.
    max_passes : int, default=2000
        Maximum number of passes over the rows, for each ray.

    Returns
    -------
    Weighting

    See Also
    --------
    FeasibleSet.contains : Whether any rule reaches a tensor.

    Examples
    --------
    Three rows with equal probabilities: only random guessing can balance the recalls.

    >>> import metricwise as mw
    >>> feasible = mw.geometry.FeasibleSet.from_proba([[0.5, 0.3, 0.2]] * 3)
    >>> mw.geometry.does_weighting_suffice("accuracy", feasible)
    Weighting('weighted', n_rules=1)
    >>> answer = mw.geometry.does_weighting_suffice("min_recall", feasible)
    >>> answer
    Weighting('interior', n_rules=3)
    >>> answer.decomposition.weights.round(6).tolist()
    [[0.333333, 0.333333, 0.333333]]
    """
    C, hints, solution = _read_target(target, feasible, (average, output_weight, zero_division))
    hints = [*hints, *(loss if isinstance(loss, Loss) else Loss.from_tensor(loss) for loss in losses)]
    tensors = [np.broadcast_to(loss.tensor(), feasible.shape) for loss in hints]
    searches = [
        (m, _classify(frame, feasible.cut(C, m), [feasible.cut(L, m) for L in tensors], tol, max_passes))
        for m, frame in enumerate(feasible.frames)
    ]
    return _answer(feasible, C, feasible.run(searches), solution)


def _answer(feasible: FeasibleSet, C: FloatArray, result: Sequence[_Found], solution: SolverResult | None) -> Weighting:
    """Put the outputs together: the minimal face of a product is the product of minimal faces."""
    verdicts = tuple(part.verdict for part in result)
    counted = {part.verdict for part, n in zip(result, feasible.dimensions, strict=True) if n} or {verdicts[0]}
    L = feasible.pad([part.part.loss for part in result])
    loss = Loss(full=L)
    decomposition = join(feasible, [part.part for part in result])
    verdict: Verdict = counted.pop() if len(counted) == 1 else "face"
    return Weighting(
        verdict=verdict,
        loss=loss,
        decomposition=decomposition,
        outputs=verdicts,
        slack=float(np.sum(L * (C - feasible.vertex(loss)))) / max(float(np.linalg.norm(L)), 1e-300),
        room=min(part.room for part in result if part.verdict == "interior") if verdict == "interior" else 0.0,
        error=float(np.linalg.norm(decomposition.confusion - C)),
        solution=solution,
    )


@entry_point("contains")
def _read_target(
    target: Any, feasible: FeasibleSet, options: tuple[Any, ...]
) -> tuple[FloatArray, list[Loss], SolverResult | None]:
    """Return the tensor, losses that may support the set there, and the optimum if there was one to find."""
    if isinstance(target, HasConfusion):
        return feasible.read(target.confusion, "the Solution's confusion"), target.rule.flatten().losses, None
    if not (isinstance(target, (str, Metric)) or callable(target)):
        return feasible.read(target, "C"), [], None
    objective = feasible.objective(target, *options)
    solution = Settings(randomized=True).make(feasible.oracle, objective).solve(feasible.oracle, objective)
    slope = objective.gradient(objective.grouping.pool(solution.confusion))
    downhill = [objective.spread(Loss(full=-slope))] if np.isfinite(slope).all() else []
    return solution.confusion, [*solution.losses, *downhill], solution


# ------------------------------------------------------------------------------------------------------ one output


@dataclass(frozen=True, eq=False)
class _Found:
    verdict: Verdict
    part: Part
    room: float = 0.0


def _classify(frame: Frame, C: FloatArray, hints: Sequence[FloatArray], tol: float, max_passes: int) -> Search[_Found]:
    """Give the verdict for one output."""
    beside = float(np.linalg.norm(frame.beside(C)))
    if beside > tol:
        raise _outside(beside)
    pool = yield from start_pool(frame, hints)
    target = frame.coordinates(C)
    vertex = _vertex(pool, target, tol)
    if vertex is not None:
        return vertex
    length = float(np.linalg.norm(target))
    if length <= tol:
        room = float(np.linalg.norm(pool.matrix, axis=1).min())
        return (yield from _inside(frame, pool, target, room, tol, max_passes))
    support = _supporting(frame, pool, hints, target, tol)
    near = tol / length
    marks = (1.0 - near,) if support is not None else (1.0 - near, 1.0 + near)
    ray = yield from shoot(frame, pool, 0.0 * target, target, marks=marks, max_passes=max_passes)
    if ray.upper < 1.0 - near:
        raise _outside((1.0 - ray.upper) * length)
    if support is None and ray.lower >= 1.0 + near:
        return (yield from _inside(frame, pool, target, (ray.lower - 1.0) * length, tol, max_passes))
    loss = support if support is not None else cast(FloatArray, ray.loss)
    return (yield from _on_face(frame, pool, target, loss, tol))


def _outside(distance: float) -> ValueError:
    return InvalidParameter(
        "target",
        "be a confusion tensor that rules can reach",
        (
            f"one {distance:.3g} outside the feasible set. A Solution must have counted expected confusion "
            "with the probabilities that the set was built from, after the link if it has one"
        ),
        owner="does_weighting_suffice",
    )


def _vertex(pool: Pool, target: FloatArray, tol: float) -> _Found | None:
    """The verdict "weighted", if a vertex of the pool is the target."""
    distance = np.linalg.norm(pool.matrix - target, axis=1)
    t = int(distance.argmin())
    if distance[t] > tol:
        return None
    return _Found("weighted", Part(pool.losses[t], (pool.losses[t],), (1.0,)))


def _supporting(
    frame: Frame, pool: Pool, hints: Sequence[FloatArray], target: FloatArray, tol: float
) -> FloatArray | None:
    """The hint that supports the set at the target best, if one does to `tol`."""
    best, least = None, tol
    for hint in hints:
        aim = frame.along(hint)
        size = float(np.linalg.norm(aim))
        if size <= 1e-12 * max(1.0, float(np.abs(hint).max(initial=0.0))):
            continue  # constant within rows: it supports the set everywhere, and says nothing
        slack = float(aim @ target - (pool.matrix @ aim).min()) / size
        if slack <= least:
            best, least = hint, slack
    return best


def _on_face(frame: Frame, pool: Pool, target: FloatArray, loss: FloatArray, tol: float) -> Search[_Found]:
    """Look once more for a single rule, under the supporting loss and amid those of the mixture; else a mixture."""
    which, weights, _ = decompose(pool.matrix, target)
    sizes = [float(np.linalg.norm(frame.along(pool.losses[t]))) for t in which]
    middle = sum(w / s * pool.losses[t] for w, s, t in zip(weights, sizes, which, strict=True) if s > 0)
    for query in (loss, np.asarray(middle)):
        pool.add(query, frame.coordinates((yield query)))
    vertex = _vertex(pool, target, tol)
    if vertex is not None:
        return vertex
    which, weights, _ = fewest(pool.matrix, target, tol)
    return _Found("face", Part(loss, tuple(pool.losses[t] for t in which), tuple(weights.tolist())))


def _inside(frame: Frame, pool: Pool, target: FloatArray, room: float, tol: float, max_passes: int) -> Search[_Found]:
    """Look for two rules: from vertices of the mixture through the target, to where the set ends behind it."""
    which, weights, _ = fewest(pool.matrix, target, tol)
    for start in pool.matrix[which[:_STARTS]]:
        if len(which) <= 2:
            break
        step = target - start
        yield from shoot(frame, pool, start, step, gap=0.1 * tol / float(np.linalg.norm(step)), max_passes=max_passes)
        inside = fewest(pool.matrix, target, tol)
        if len(inside[0]) < len(which):
            which, weights, _ = inside
    part = Part(np.zeros((len(frame.priors),) * 2), tuple(pool.losses[t] for t in which), tuple(weights.tolist()))
    return _Found("interior", part, room)
