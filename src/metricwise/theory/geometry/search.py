"""Where a point lies in the feasible set of one output: its affine hull, rays to its boundary, decompositions.

A search is a generator: it yields a loss of shape (K, K) and is sent the confusion (K, K) of its rule. So the searches
of many outputs and rays share passes over the rows (:func:`drive`), and each reads as if it were alone. Everything else
is algebra on K * K numbers. Must not know oracles, rules or metrics.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Frame",
    "Pool",
    "Ray",
    "Search",
    "constant_losses",
    "decompose",
    "drive",
    "fewest",
    "shoot",
    "span",
    "start_pool",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
Result = TypeVar("Result")
Search = Generator[FloatArray, FloatArray, Result]

_HULL_TOL = 1e-10  # confusions are shares: what leaves the affine hull by less than this is rounding
_LP_TOL = 1e-10  # the least that HiGHS takes
_DIGITS = 12  # losses are rounded, so that columns that coincide but for rounding tie exactly
_SAME = 1e-14
_NO_WEIGHT = 1e-12
_CANDIDATES = 16
_ROUNDING = 1e-7


def drive(
    searches: Sequence[tuple[int, Search[Result]]], ask: Callable[[list[tuple[int, FloatArray]]], list[FloatArray]]
) -> list[Result]:
    """Run searches side by side, and answer the queries of each round together.

    Parameters
    ----------
    searches : sequence of (output, search)
    ask : callable
        Takes a list of (output, loss) and returns the confusion of each.

    Returns
    -------
    list
        What each search found.
    """
    result: dict[int, Result] = {}
    answers: dict[int, FloatArray | None] = dict.fromkeys(range(len(searches)))
    while answers:
        queries: dict[int, FloatArray] = {}
        for s, answer in answers.items():
            search = searches[s][1]
            try:
                queries[s] = next(search) if answer is None else search.send(answer)
            except StopIteration as end:
                result[s] = end.value
        replies = ask([(searches[s][0], loss) for s, loss in queries.items()]) if queries else []
        answers = dict(zip(queries, replies, strict=True))
    return [result[s] for s in range(len(searches))]


# ------------------------------------------------------------------------------------------------- the affine hull


@dataclass(frozen=True, eq=False)
class Frame:
    """The affine hull of the feasible set of one output, and coordinates in it.

    The origin is the confusion of tossing a fair K-sided coin: it is in the relative interior whatever the data.

    Parameters
    ----------
    priors : ndarray of shape (K,)
    basis : ndarray of shape (d, K, K)
        Orthonormal; every row of every matrix sums to 0. d is the dimension of the set.
    """

    priors: FloatArray
    basis: FloatArray

    @property
    def dimension(self) -> int:
        """The dimension d of the set."""
        return len(self.basis)

    @property
    def origin(self) -> FloatArray:
        """The confusion (K, K) of the fair coin."""
        k = len(self.priors)
        return np.repeat(self.priors[:, None] / k, k, axis=1)

    def coordinates(self, C: FloatArray) -> FloatArray:
        """Return the d coordinates of a confusion (K, K)."""
        return self.along(C - self.origin)

    def along(self, tensor: FloatArray) -> FloatArray:
        """Return the d components of a loss or a difference of confusions (K, K)."""
        return np.asarray(np.tensordot(self.basis, tensor, axes=2))

    def tensor(self, coordinates: FloatArray) -> FloatArray:
        """Return the confusion at d coordinates."""
        return self.origin + np.tensordot(coordinates, self.basis, axes=1)

    def beside(self, C: FloatArray) -> FloatArray:
        """Return the part (K, K) of C - origin that leaves the hull: wrong row sums, or columns out of span."""
        return C - self.tensor(self.coordinates(C))

    def loss(self, direction: FloatArray) -> FloatArray:
        """Return the loss (K, K), largest entry 1, whose components are proportional to `direction`."""
        tensor = np.tensordot(direction, self.basis, axes=1)
        size = float(np.abs(tensor).max(initial=0.0))
        return np.asarray(np.round(tensor / (size if size > 0 else 1.0), _DIGITS)) + 0.0


def span(priors: FloatArray) -> Search[Frame]:
    """Find the affine hull: columns in the span of the rows' probabilities, row sums equal to the priors.

    For a unit vector u orthogonal to all columns seen, the rule that predicts 0 where ``u @ eta < 0`` either shows a
    new column or proves that u is orthogonal to every row: at most K queries.
    """
    k = len(priors)
    if not priors.any():
        return Frame(priors, np.empty((0, k, k)))
    columns = [priors / np.linalg.norm(priors)]
    barred: list[FloatArray] = []
    while len(columns) + len(barred) < k:
        unit = _orthogonal(np.array(columns + barred))[0]
        loss = np.zeros((k, k))
        loss[:, 0] = np.round(unit, _DIGITS)
        column = (yield loss)[:, 0]
        new = column - np.array(columns).T @ (np.array(columns) @ column)
        size = float(np.linalg.norm(new))
        if size > _HULL_TOL:
            columns.append(new / size)
        else:
            barred.append(unit)
    rows = np.linalg.qr(np.array(columns).T)[0].T
    within = _orthogonal(np.full((1, k), k**-0.5))
    return Frame(priors, np.einsum("ri,sj->rsij", rows, within).reshape(-1, k, k))


def _orthogonal(rows: FloatArray) -> FloatArray:
    """An orthonormal basis of what is orthogonal to n orthonormal rows (n, K), of shape (K - n, K)."""
    return np.asarray(np.linalg.qr(rows.T, mode="complete")[0].T[len(rows) :])


def start_pool(frame: Frame, losses: Sequence[FloatArray] = ()) -> Search[Pool]:
    """Ask for the vertices of constant rules, whose hull holds the origin, and of further losses."""
    pool = Pool()
    for loss in (*constant_losses(len(frame.priors)), *losses):
        pool.add(loss, frame.coordinates((yield loss)))
    return pool


def constant_losses(k: int) -> list[FloatArray]:
    """Return the losses whose rules always predict 0, 1, ..., k - 1."""
    return [-np.outer(np.ones(k), column) for column in np.eye(k)]


# ----------------------------------------------------------------------------------------------------------- rays


@dataclass(eq=False)
class Pool:
    """Vertices found so far, with the losses whose rules reach them; searches of one output share it."""

    losses: list[FloatArray] = field(default_factory=list)
    points: list[FloatArray] = field(default_factory=list)

    def add(self, loss: FloatArray, point: FloatArray) -> int:
        """Add a vertex unless it is there, and return its place."""
        if self.points:
            distance = np.abs(self.matrix - point).max(axis=1, initial=0.0)
            if distance.min() <= _SAME:
                return int(distance.argmin())
        self.losses.append(loss)
        self.points.append(point)
        return len(self.points) - 1

    @property
    def matrix(self) -> FloatArray:
        """The vertices, of shape (T, d)."""
        return np.array(self.points)


@dataclass(frozen=True, eq=False)
class Ray:
    """How far a ray ``start + t * step`` stays in the set.

    Parameters
    ----------
    lower, upper : float
        The largest t is between these.
    loss : ndarray of shape (K, K) or None
        The proof of `upper`: beyond it ``<loss, start + t * step>`` is less than all that rules reach.
    """

    lower: float
    upper: float
    loss: FloatArray | None


def shoot(
    frame: Frame,
    pool: Pool,
    start: FloatArray,
    step: FloatArray,
    *,
    marks: Sequence[float] = (),
    gap: float = 1e-10,
    max_passes: int = 2000,
) -> Search[Ray]:
    """Follow a ray to the relative boundary, by column generation.

    A linear programme over the vertices found gives the longest t among them, and its dual the loss of the next one.
    Queries halfway between the programme's dual and the best one so far keep it from zigzagging.

    Parameters
    ----------
    start, step : ndarray of shape (d,)
        `start` must be in the hull of the pool.
    marks : sequence of float
        Stop as soon as it is known on which side of each of these the end lies.
    gap : float
        Stop where the end is known to this.
    max_passes : int
    """
    upper, passes = np.inf, 0
    loss: FloatArray | None = None
    center: FloatArray | None = None
    while True:
        visited = pool.matrix
        lower, direction = _longest(visited, start, step)
        reached = bool(marks) and all(lower >= mark or upper < mark for mark in marks)
        if reached or upper - lower <= gap:
            break
        if passes >= max_passes:
            raise RuntimeError(
                f"after {passes} passes a ray is only known to end between {lower:.9g} and {upper:.9g} times "
                "its length, which is not precise enough; raise max_passes or tol."
            )
        pull = None if passes % 3 == 2 else center
        query = frame.loss(direction if pull is None else direction + pull)
        passes += 1
        point = frame.coordinates((yield query))
        aim = frame.along(query)
        fall = -float(aim @ step)
        reach = float(aim @ (start - point)) / fall if fall > 0 else np.inf
        if reach < upper:
            upper, loss, center = reach, query, aim / fall
        repeated = pool.add(query, point) < len(visited)
        if repeated and pull is None and upper - lower <= _ROUNDING * (1.0 + lower):
            break  # the programme knew the answer: rounding is all that is left between the bounds
    return Ray(lower, max(lower, upper), loss)


def _longest(points: FloatArray, start: FloatArray, step: FloatArray) -> tuple[float, FloatArray]:
    """Return the largest t with start + t * step in the hull of the points, and the dual, scaled to -1 along step."""
    from scipy.optimize import linprog  # a tenth of a second to import: only who needs it pays

    n, d = points.shape
    size = float(np.linalg.norm(step))  # a short step must not drown in the programme's tolerance
    equal = np.vstack([np.column_stack([points.T, -step / size]), np.append(np.ones(n), 0.0)])
    result = linprog(
        np.append(np.zeros(n), -1.0),
        A_eq=equal,
        b_eq=np.append(start, 1.0),
        bounds=(0, None),
        method="highs-ds",
        options={"primal_feasibility_tolerance": _LP_TOL, "dual_feasibility_tolerance": _LP_TOL},
    )
    if result.x is None:
        raise RuntimeError(f"the linear programme of a ray failed: {result.message}")
    return float(result.x[n]) / size, -result.eqlin.marginals[:d] / size


# ------------------------------------------------------------------------------------------------- decompositions


def decompose(points: FloatArray, target: FloatArray) -> tuple[IntArray, FloatArray, float]:
    """Write a point as a mixture of points: a basic solution, so at most d + 1 of them.

    Parameters
    ----------
    points : ndarray of shape (T, d)
    target : ndarray of shape (d,)

    Returns
    -------
    which : ndarray of shape (R,), int
        The heaviest first.
    weights : ndarray of shape (R,)
        Positive, of sum 1.
    error : float
        Distance of the mixture from the target: rounding, if the target is in the hull of the points.
    """
    from scipy.optimize import nnls

    apart = points - target
    system = np.vstack([apart.T / max(float(np.abs(apart).max(initial=0.0)), 1e-300), np.ones(len(points))])
    raw = nnls(system, np.append(np.zeros(points.shape[1]), 1.0))[0]
    which = np.flatnonzero(raw > _NO_WEIGHT * raw.max())
    which = which[np.argsort(-raw[which], kind="stable")]
    weights = raw[which] / raw[which].sum()
    return which, weights, float(np.linalg.norm(weights @ apart[which]))


def fewest(points: FloatArray, target: FloatArray, tol: float) -> tuple[IntArray, FloatArray, float]:
    """Write a point as a mixture of few points: two if they are among the points, else a thinned basic solution.

    Parameters
    ----------
    tol : float
        Error that fewer points may cost.
    """
    pair = _pair(points, target, tol)
    if pair is not None:
        return pair
    which, weights, error = decompose(points, target)
    while len(which) > 1:
        kept, fewer, worse = decompose(points[which[:-1]], target)
        if worse > tol:
            break
        which, weights, error = which[:-1][kept], fewer, worse
    return which, weights, error


def _pair(points: FloatArray, target: FloatArray, tol: float) -> tuple[IntArray, FloatArray, float] | None:
    """The two points whose segment passes the target nearest, if that is within `tol`."""
    apart = points - target
    inner = apart @ apart.T
    square = np.diagonal(inner)
    length = np.maximum(square[:, None] + square - 2 * inner, 1e-300)
    share = np.clip((square - inner) / length, 0.0, 1.0)  # of the first point of the pair
    rough = share**2 * square[:, None] + (1 - share) ** 2 * square + 2 * share * (1 - share) * inner
    for flat in np.argsort(rough, axis=None)[:_CANDIDATES]:  # squares lose half the digits: look again at the least
        which = np.array(np.unravel_index(flat, rough.shape))
        s = float(share[which[0], which[1]])
        weights = np.array([s, 1.0 - s])
        error = float(np.linalg.norm(weights @ apart[which]))
        if error <= tol:
            heaviest = np.argsort(-weights, kind="stable")
            return which[heaviest], weights[heaviest], error
    return None
