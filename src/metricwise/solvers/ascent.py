"""Ascent in confusion space from several starts, for metrics of any form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..core.losses import Loss
from ..metrics.objective import Objective
from ..oracles.base import Oracle
from .base import BaseSolver, FloatArray, IntArray, Needs, run
from .hull import Hull, conclude, count_vertices, line_search, pick, starting_losses
from .result import Outcome, SolverResult

_GRID = np.linspace(-1.0, 1.0, 9)
_ZOOMS = 3
_SAMPLE_ROWS = 1 << 13  # rows among which starts are compared, if there are many more
_MIN_CLASS_ROWS = 400  # rows per class that a sample should have: half of it goes to all classes alike
_SAMPLE_GROWTH = 8  # times as many rows, before all of them
_NOISE_FRACTION = 0.02  # a gain this small, over the root of the number of rows, is noise
_VALUE_RESOLUTION = 1e-7  # values closer than this are equal: which of them is larger may be rounding


@dataclass(frozen=True, eq=False)
class _State:
    losses: tuple[tuple[Loss, ...], ...]  # T passes of S starts
    vertices: FloatArray  # (T, S, G, D): summaries
    weights: FloatArray  # (T, S, G)
    moved: bool
    history: tuple[float, ...]

    @property
    def points(self) -> FloatArray:
        return np.asarray(np.einsum("tsg,tsgd->sgd", self.weights, self.vertices))


@dataclass(frozen=True)
class Ascent(BaseSolver):
    """Maximise any metric by following its gradient from several starts.

    Each step linearises the metric at the confusions of all starts, asks the oracle for the vertices that are best for
    the tangents (all in one pass), and searches the segments to them. The starts are argmax, argmax weighted by inverse
    priors and by their roots, and random class weights. If a mixture of rules ends above every rule visited, rules
    between the two that it uses most are tried as well. With very many rows, the search runs on a sample first and
    continues on all rows from its result.

    Guarantee: no global one. The returned rule is the best one visited, and no small change of its loss improves it
    much. Use Frank-Wolfe for concave metrics, the path for ratios and the sweep for binary outputs: these are exact.

    Parameters
    ----------
    tol : float, default=1e-6
        Stop when no start gains more than this.
    max_iter : int, default=30
        Maximum number of steps.
    n_random : int, default=5
        Number of random starts; at most one is used for a metric given as a function of labels, which is costly to
        evaluate.
    randomized : bool, default=False
        Whether to return a mixture of rules if it beats the best single rule by more than `tol`.
    seed : int, default=0
        Seed for the random starts and the draws of a mixture.

    See Also
    --------
    FrankWolfe : Exact for concave metrics.
    Path : Exact for ratios.

    Examples
    --------
    >>> import metricwise as mw
    >>> proba = [[0.7, 0.2, 0.1], [0.5, 0.3, 0.2], [0.6, 0.1, 0.3], [0.4, 0.4, 0.2]]
    >>> solution = mw.optimize(proba, None, "macro_f1",
    ...     strategy=mw.Strategy(solver="ascent", confusion="expected", recalibrate=False))
    >>> solution.value > solution.baseline, solution.gap is None
    (True, True)
    """

    needs: ClassVar[Needs] = Needs(form="any")

    tol: float = 1e-6
    max_iter: int = 30
    n_random: int = 5
    randomized: bool = False
    seed: int = 0

    def init(self, oracle: Oracle, objective: Objective) -> _State:
        losses = (*starting_losses(objective), *self._random_losses(objective))
        vertices = count_vertices(oracle, objective, losses)[None]
        best = objective.total(objective.values_at(vertices[0]).max(axis=0))
        return _State((losses,), vertices, np.ones(vertices.shape[:3]), True, (best,))

    def _random_losses(self, objective: Objective) -> list[Loss]:
        rng = np.random.default_rng(self.seed)
        base = starting_losses(objective)[1].arrays[0]
        zero = np.zeros_like(base)
        # Powers of the inverse priors, each class off by a factor of about 2 in the first, of 8 in the last.
        spreads = np.linspace(0.7, 2.1, min(self.n_random, 1) if objective.slow else self.n_random)
        return [
            Loss(
                diagonal=-(np.maximum(-base, 1e-12) ** rng.uniform(0, 1)) * np.exp(rng.normal(0, spread, base.shape)),
                offset=zero,
            )
            for spread in spreads
        ]

    def step(self, oracle: Oracle, objective: Objective, state: _State) -> _State:
        points = state.points
        losses = tuple(objective.loss_of(slope) for slope in objective.slopes_at(points))
        vertices = count_vertices(oracle, objective, losses)
        move = vertices - points
        length = line_search(objective, points, move, np.ones(points.shape[:2]))
        before = objective.values_at(points)
        after = objective.values_at(points + length[..., None] * move)
        length = np.where(after > before, length, 0.0)
        weights = np.concatenate([state.weights * (1 - length), length[None]])
        best = np.maximum(after, before).max(axis=0)
        return _State(
            (*state.losses, losses),
            np.concatenate([state.vertices, vertices[None]]),
            weights,
            bool(np.any(after - before > self.tol)),
            (*state.history, objective.total(best)),
        )

    def done(self, state: _State) -> bool:
        return not state.moved or len(state.losses) > self.max_iter

    def search(self, oracle: Oracle, objective: Objective) -> SolverResult:
        """Return the best rule visited."""
        sample = oracle if self.randomized else oracle.sample(_enough_rows(objective, oracle.n_rows))
        state = run(self, sample, objective)
        hull = self._polish(sample, objective, self._best_hull(objective, state))
        hull = self._between(sample, objective, hull)
        history = state.history
        if sample is not oracle:
            # The hill is found; its top is looked for among ever more rows, to a small part of the sampling error.
            for rows in (oracle.sample(min(_SAMPLE_GROWTH * sample.n_rows, oracle.n_rows)), oracle):
                vertices = count_vertices(rows, objective, hull.losses[-1:])
                hull = Hull(hull.losses[-1:], vertices, np.ones(vertices.shape[:2]))
                tol = max(self.tol, _NOISE_FRACTION / rows.n_rows**0.5)
                hull = self._polish(rows, objective, hull, tol)
            history = (objective.total(objective.values_at(hull.vertices[-1])),)
        settled = "Converged" if not state.moved else f"Still improving after {self.max_iter} steps (raise max_iter)"
        return conclude(
            oracle,
            objective,
            hull,
            randomized=self.randomized,
            seed=self.seed,
            tol=self.tol,
            status=f"{settled} from {len(state.losses[0])} starts. There is no certificate: better rules may exist "
            "for this metric.",
            outcome=Outcome.NOT_CONVERGED if state.moved else Outcome.LOCAL,
            history=history,
            upper_bound=None,
        )

    def _best_hull(self, objective: Objective, state: _State) -> Hull:
        """For each group, the vertices of the start that rose highest, then the best single vertex of any start."""
        groups = np.arange(state.vertices.shape[2])
        start = _first_best(objective.values_at(state.points))
        n_steps = len(state.losses)
        losses = [pick(at, start) for at in state.losses]
        vertices = state.vertices[:, start, groups]
        weights = state.weights[:, start, groups]
        values = objective.values_at(state.vertices).reshape(-1, len(groups))
        which = _first_best(values)
        flat = state.vertices.reshape(-1, *state.vertices.shape[2:])
        best = pick([loss for at in state.losses for loss in at], which)
        assert len(losses) == n_steps
        return Hull(tuple(losses), vertices, weights).add(best, flat[which, groups])

    def _polish(self, oracle: Oracle, objective: Objective, hull: Hull, tol: float | None = None) -> Hull:
        """Replace the best vertex by the one its own tangent points to, while that is better."""
        tol = self.tol if tol is None else tol
        for _ in range(self.max_iter):
            vertex = hull.vertices[-1]
            loss = objective.loss_of(objective.slopes_at(vertex))
            following = count_vertices(oracle, objective, [loss])[0]
            better = objective.values_at(following) > objective.values_at(vertex) + tol
            if not better.any():
                break
            which = np.where(better, 1, 0)
            hull = hull.add(pick([hull.losses[-1], loss], which), np.where(better[:, None], following, vertex))
        return hull

    def _between(self, oracle: Oracle, objective: Objective, hull: Hull) -> Hull:
        """Where a mixture beats the best vertex, try the rules whose losses lie between the two it uses most."""
        if objective.total(objective.values_at(hull.point) - objective.values_at(hull.vertices[-1])) <= self.tol:
            return hull
        first, second = (
            _scaled(pick(hull.losses, which)) for which in np.argsort(-hull.weights, axis=0, kind="stable")[:2]
        )
        middle, width = np.full(first.n_outputs, 0.5), 0.5
        for _ in range(_ZOOMS):
            shares = np.clip(middle + width * _GRID[:, None], 0.0, 1.0)
            losses = [_between(first, second, share) for share in shares]
            vertices = count_vertices(oracle, objective, losses)
            values = objective.values_at(vertices)
            which, groups = _first_best(values), np.arange(len(middle))
            middle, width = shares[which, groups], width / 4
            better = values[which, groups] > objective.values_at(hull.vertices[-1]) + _VALUE_RESOLUTION
            loss = pick([hull.losses[-1], pick(losses, which)], np.where(better, 1, 0))
            hull = hull.add(loss, np.where(better[:, None], vertices[which, groups], hull.vertices[-1]))
        return hull


def _first_best(values: FloatArray) -> IntArray:
    """Return the first of S values, (S, G), that is as good as the best of each group: rounding does not choose."""
    return np.asarray(np.argmax(values >= values.max(axis=0) - _VALUE_RESOLUTION, axis=0))


def _enough_rows(objective: Objective, n_rows: int) -> int:
    """So many rows that a sample of them shows every class often; all, if that is not much fewer."""
    enough = max(_SAMPLE_ROWS, _MIN_CLASS_ROWS * int((objective.priors > 0).sum(axis=1).max()))
    return enough if 4 * enough <= n_rows else n_rows


def _scaled(loss: Loss) -> Loss:
    """The losses of all groups, each with 1 as the largest difference within a row."""
    size = np.ptp(loss.tensor(), axis=-1).max(axis=-1)
    return loss.map(lambda a: a / _like(np.where(size > 0, size, 1.0), a))


def _between(first: Loss, second: Loss, share: FloatArray) -> Loss:
    """The losses that lie so far (G,) on the way from the first to the second."""
    return first.map(lambda a, b: (1 - _like(share, a)) * a + _like(share, a) * b, second)


def _like(values: FloatArray, array: FloatArray) -> FloatArray:
    return values.reshape((-1,) + (1,) * (array.ndim - 1))
