"""Convex combinations of the vertices that a solver has counted.

A vertex is the confusion of one weighted rule, a combination that of a mixture of rules. Only the summary that the
objective needs is kept of both: about K numbers for most metrics. Must not know rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from .. import kernels
from ..core.errors import argument
from ..core.losses import Loss
from ..core.notes import Note, NoteKind
from ..metrics.objective import Objective
from ..oracles.base import Oracle
from .result import Outcome, SolverResult, finish

FloatArray = NDArray[np.float64]

_GRID = np.linspace(0.0, 1.0, 17)
_N_ZOOMS = 5  # each narrows the step eightfold
_COARSE_GRID = np.linspace(0.0, 1.0, 5)  # where every value is a call of the user's function
_N_COARSE_ZOOMS = 2
_NEGLIGIBLE = 1e-12
_MAX_CELLS = 1 << 21  # of confusion matrices that are asked for together
_MAX_FULL_CLASSES = 64  # classes, beyond which whole matrices are not asked for without need


@dataclass(frozen=True, eq=False)
class Hull:
    """Vertices of every group, and one point among them.

    Parameters
    ----------
    losses : tuple of T Loss
        Each with the losses of all G groups.
    vertices : ndarray of shape (T, G, D)
        Summaries of the pooled confusions of their rules.
    weights : ndarray of shape (T, G)
        The point as a combination of the vertices; sums to 1 over T.
    """

    losses: tuple[Loss, ...]
    vertices: FloatArray
    weights: FloatArray

    @classmethod
    def start(cls, oracle: Oracle, objective: Objective, losses: Sequence[Loss]) -> Hull:
        """Ask for the first vertices in one pass; the point is the best of them."""
        vertices = count_vertices(oracle, objective, losses)
        best = np.argmax(objective.values_at(vertices), axis=0)
        weights = (np.arange(len(losses))[:, None] == best).astype(np.float64)
        return cls(tuple(losses), vertices, weights)

    @property
    def point(self) -> FloatArray:
        """The summaries (G, D) of the point."""
        return np.asarray(np.einsum("tg,tgd->gd", self.weights, self.vertices))

    def add(self, loss: Loss, vertex: FloatArray) -> Hull:
        """Return the hull with one more vertex per group, of weight 0."""
        return Hull(
            (*self.losses, loss),
            np.concatenate([self.vertices, vertex[None]]),
            np.concatenate([self.weights, np.zeros((1, self.weights.shape[1]))]),
        )

    def best(self, objective: Objective) -> tuple[Loss, FloatArray]:
        """Return the losses of the best single vertex of every group, and their values."""
        values = objective.values_at(self.vertices)
        which = np.argmax(values, axis=0)
        return pick(self.losses, which), values.max(axis=0)


def count_vertices(oracle: Oracle, objective: Objective, losses: Sequence[Loss]) -> FloatArray:
    """Return the summaries (R, G, D) of the confusions of losses of groups, in one pass.

    With very many classes in several, for the confusions of all losses need not fit into memory together; or without
    any, where the objective can do without.
    """
    if objective.width > _MAX_FULL_CLASSES and objective.of_shares:
        shares = oracle.shares([objective.spread(loss) for loss in losses])
        return np.stack(
            [objective.summarise_shares(objective.grouping.pool(output_shares)) for output_shares in shares]
        )
    together = max(1, _MAX_CELLS // (len(objective.n_classes) * objective.width**2))
    summaries = []
    for start in range(0, len(losses), together):
        tensors = oracle.confusions([objective.spread(loss) for loss in losses[start : start + together]])
        summaries.append(objective.summarise(objective.grouping.pool_each(tensors)))
    return summaries[0] if len(summaries) == 1 else np.concatenate(summaries)


def pick(losses: Sequence[Loss], which: np.ndarray) -> Loss:
    """Take, for each group g, its loss from ``losses[which[g]]``."""
    if not all(loss.is_diagonal for loss in losses):
        losses = [loss if not loss.is_diagonal else Loss(full=loss.tensor()) for loss in losses]
    groups = np.arange(len(which))

    def take(*arrays: FloatArray) -> FloatArray:
        whole = (len(which), *arrays[0].shape[1:])
        stack = np.stack([a if a.shape == whole else np.broadcast_to(a, whole) for a in arrays])
        return np.asarray(stack[which, groups])

    return losses[0].map(take, *losses[1:])


def starting_losses(objective: Objective) -> list[Loss]:
    """Return argmax, and argmax weighted by inverse priors and by their roots."""
    priors = objective.priors
    weights = [np.where(priors > 0, np.maximum(priors, 1e-300) ** power, 0.0) for power in (0.0, -1.0, -0.5)]
    zero = np.zeros_like(priors)
    return [Loss(diagonal=-w / np.maximum(w.max(axis=1, keepdims=True), 1e-300), offset=zero) for w in weights]


def line_search(objective: Objective, start: FloatArray, step: FloatArray, longest: FloatArray) -> FloatArray:
    """Maximise the objective of every group along a segment.

    Parameters
    ----------
    start, step : ndarray of shape (..., G, D)
        Summaries.
    longest : ndarray of shape (..., G)

    Returns
    -------
    ndarray of shape (..., G)
        Lengths in [0, longest]; exact to a few parts in 10^5 of it where the objective has one maximum there, to an
        eighth of it where values are costly.
    """
    steps, rounds = (_COARSE_GRID, _N_COARSE_ZOOMS) if objective.slow else (_GRID, _N_ZOOMS)
    if objective.ratio_means is not None:
        return kernels.search_ratio_means(objective.ratio_means, start, step, longest, steps, rounds)
    return kernels.search_segments(objective.values_at, start, step, longest, steps, rounds)


def correct(
    objective: Objective, hull: Hull, tol: float, max_iter: int = 200, allowed: NDArray[np.bool_] | None = None
) -> Hull:
    """Maximise a concave objective over the hull of the vertices, by pairwise steps with line search.

    Parameters
    ----------
    tol : float
        Stop where no exchange of weight between two vertices promises more than this.
    allowed : ndarray of shape (T, G), optional
        Vertices that may be given weight; at least those that have some.
    """
    weights, point = hull.weights.copy(), hull.point
    groups = np.arange(weights.shape[1])
    center = None
    for _ in range(max_iter):
        slope = objective.slopes_at(point)
        promise = np.einsum("gd,tgd->tg", slope, hull.vertices)
        to = (promise if allowed is None else np.where(allowed, promise, -np.inf)).argmax(axis=0)
        source = np.where(weights > 0, promise, np.inf).argmin(axis=0)
        promising = promise[to, groups] - promise[source, groups] > tol
        if not promising.any():
            break
        step = hull.vertices[to, groups] - hull.vertices[source, groups]
        length = line_search(objective, point, step, weights[source, groups])
        before = objective.values_at(point)
        length = np.where(objective.values_at(point + length[:, None] * step) > before, length, 0.0)
        point = point + length[:, None] * step
        weights[source, groups] -= length
        weights[to, groups] += length
        if center is None and np.any(promising & (length == 0)):
            # A product of recalls is flat, at 0, between vertices that miss different classes; amid all it may rise.
            center = _center(hull, allowed)
            stuck = promising & (length == 0) & (objective.values_at(center.point) >= before)
            weights = np.where(stuck, center.weights, weights)
            point = np.where(stuck[:, None], center.point, point)
        elif not length.any():
            break
    weights[weights < _NEGLIGIBLE] = 0.0
    return replace(hull, weights=weights / weights.sum(axis=0))


def _center(hull: Hull, allowed: NDArray[np.bool_] | None) -> Hull:
    """Return the hull with its point amid all (allowed) vertices."""
    weights = np.ones_like(hull.weights) if allowed is None else allowed.astype(np.float64)
    return replace(hull, weights=weights / weights.sum(axis=0))


# ------------------------------------------------------------------------------------------------- conclusions


def conclude(
    oracle: Oracle,
    objective: Objective,
    hull: Hull,
    *,
    randomized: bool,
    seed: int,
    tol: float,
    status: str,
    outcome: Outcome,
    history: Sequence[float],
    upper_bound: float | None,
) -> SolverResult:
    """Return the best single rule, or the mixture that the point is; either way say what the other would give."""
    loss, single = hull.best(objective)
    mixed = objective.total(objective.values_at(hull.point))
    result = finish(oracle, objective, loss, status=status, outcome=outcome, history=history, upper_bound=upper_bound)
    if objective.metric.traits.needs_integer_counts:  # a mixture is none
        return result
    advantage = mixed - objective.total(single)
    if advantage <= tol:
        text = "No mixture of rules was found that is better than a single rule."
        notes = (*result.notes, Note(NoteKind.ALTERNATIVE, text))
        return replace(result, notes=notes, alternative=max(mixed, result.value))
    if not randomized:
        text = (
            f"The best single rule found; a mixture of rules would improve it by {advantage:.3g} (set "
            f"{argument('randomized', True)})."
        )
        return replace(
            result,
            notes=(
                Note(NoteKind.ALTERNATIVE, text),
                Note(NoteKind.OUTCOME, f"The mixture: {status[0].lower()}{status[1:]}"),
            ),
            outcome=Outcome.LOCAL if outcome is Outcome.OPTIMAL else outcome,  # what is proved is the mixture
            alternative=mixed,
        )
    # Fewer rules may cost what the tolerance has left, no more: the gap stays what the status says.
    slack = tol if upper_bound is None else min(max(tol - (upper_bound - mixed), 0.0), tol)
    return _mixture(oracle, objective, thin(objective, hull, slack), result, seed)


def thin(objective: Objective, hull: Hull, tol: float) -> Hull:
    """Express the point by as few vertices as keep its value within `tol`, group by group: greedily, lightest first."""
    target = objective.values_at(hull.point)
    weights = hull.weights.copy()
    while True:
        count = (weights > 0).sum(axis=0)
        trial = weights.copy()
        lightest = np.where(weights > 0, weights, np.inf).argmin(axis=0)
        trial[lightest, np.arange(len(lightest))] = 0.0
        trial[:, count <= 1] = weights[:, count <= 1]
        trial = trial / trial.sum(axis=0)
        fewer = correct(objective, replace(hull, weights=trial), max(tol / 10, 1e-12), allowed=trial > 0)
        kept = objective.values_at(fewer.point) >= target - tol
        shrunk = kept & ((fewer.weights > 0).sum(axis=0) < count)
        if not shrunk.any():
            return replace(hull, weights=weights)
        weights[:, shrunk] = fewer.weights[:, shrunk]


def mixed_confusion(oracle: Oracle, losses: Sequence[Loss], shares: FloatArray) -> FloatArray:
    """Return the confusion tensor (M, K, K) of a mixture of rules, with shares (M, R); few of them at a time."""
    k = losses[0].n_classes
    together = max(1, _MAX_CELLS // (len(shares) * k * k))
    out = np.zeros((len(shares), k, k))
    for start in range(0, len(losses), together):
        some = slice(start, start + together)
        out += np.einsum("mr,rmij->mij", shares[:, some], oracle.confusions(losses[some]))
    return out


def _mixture(oracle: Oracle, objective: Objective, hull: Hull, single: SolverResult, seed: int) -> SolverResult:
    """Pack the point as a mixture; the r-th rule of every output is the r-th that its group uses."""
    order = np.argsort(-hull.weights, axis=0, kind="stable")
    n_rules = int((hull.weights > 0).sum(axis=0).max())
    weights = np.take_along_axis(hull.weights, order, axis=0)[:n_rules]
    losses = [objective.spread(pick(hull.losses, order[r])) for r in range(n_rules)]
    shares = np.stack([objective.grouping.spread(w, fill=float(r == 0)) for r, w in enumerate(weights)], axis=1)
    shares = shares / shares.sum(axis=1, keepdims=True)
    C = mixed_confusion(oracle, losses, shares)
    value = objective.value(C)
    same = bool((shares == shares[0]).all())
    text = f"A mixture of {n_rules} rules; the best single rule found has a value of {single.value:.6g}."
    return replace(
        single,
        losses=tuple(losses),
        shares=shares[0] if same else shares,
        seed=seed,
        value=value,
        confusion=C,
        notes=(*single.notes, Note(NoteKind.ALTERNATIVE, text)),
        upper_bound=None if single.upper_bound is None else max(single.upper_bound, value),
        alternative=single.value,
    )
