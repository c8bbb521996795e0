"""The feasible set as an object, seen through an oracle.

The outputs of a rule decide independently, so the set of M outputs is the product of the sets of each: searches run
output by output, and share passes over the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core.cached import cached_property
from ...core.errors import InvalidParameter, entry_point
from ...core.losses import Loss
from ...core.schema import Schema
from ...data.labels import make_rows
from ...data.probabilities import read_proba
from ...data.sources.memory import MemorySource
from ...data.weights import read_output_weight, read_sample_weight
from ...metrics.aim import AveragedMetric
from ...metrics.base import Metric
from ...metrics.naming import check_same_classes
from ...metrics.objective import Objective
from ...metrics.resolution import resolve, to_maximise
from ...oracles.base import Oracle
from ...oracles.counts import Counts
from .results import Decomposition, Exit, Membership, Part
from .search import Frame, Pool, Ray, Result, Search, decompose, drive, shoot, span, start_pool

__all__ = ["FeasibleSet", "join"]

FloatArray = NDArray[np.float64]
MetricLike = str | Metric | Callable[[FloatArray], float]


# -------------------------------------------------------------------------------------------------------- the set


@dataclass(frozen=True, eq=False)
class FeasibleSet:
    """The set of all confusion tensors that any rule can reach, including randomised rules.

    It is convex and compact; its vertices are the confusions of weighted rules. The class priors fix the row sums, so
    that for each output it has at most ``K * (K - 1)`` dimensions: fewer if a class has prior 0, or if the rows'
    probabilities span fewer than K dimensions (a constant prediction leaves K - 1).

    Parameters
    ----------
    oracle : Oracle
        An oracle that counts probabilities (``certified``): with labels, the rule that minimises ``<L, C>`` is not
        known.

    See Also
    --------
    does_weighting_suffice : Whether one weighted rule reaches a tensor.
    metricwise.displays.FeasibleSetDisplay : Draw the set.

    Examples
    --------
    >>> import numpy as np
    >>> from metricwise.geometry import FeasibleSet
    >>> feasible = FeasibleSet.from_proba([[0.8, 0.2], [0.6, 0.4], [0.1, 0.9]])
    >>> feasible.dimensions
    (2,)
    >>> feasible.vertex([[0, 1], [1, 0]]).round(3).tolist()  # argmax
    [[[0.467, 0.033], [0.2, 0.3]]]
    >>> round(feasible.support(np.eye(2)), 6)  # the best accuracy
    0.766667
    >>> feasible.contains([[0.25, 0.25], [0.25, 0.25]])
    Membership(inside=True, n_rules=2)
    >>> feasible.contains([[0.5, 0.0], [0.0, 0.5]])
    Membership(inside=False, margin=0.233333)
    """

    oracle: Oracle

    @entry_point("{class}")
    def __post_init__(self) -> None:
        if not self.oracle.certified:
            raise InvalidParameter(
                "oracle",
                "count probabilities (certified=True)",
                "one that counts labels",
                "use FeasibleSet.from_proba, or an oracle with expected=True",
            )

    @classmethod
    @entry_point()
    def from_proba(
        cls,
        proba: Any,
        *,
        sample_weight: ArrayLike | None = None,
        multioutput: bool | None = None,
        classes: Any = None,
        normalize: bool = False,
    ) -> FeasibleSet:
        """Build the set for given class probabilities.

        Parameters
        ----------
        proba : array-like
            (N,) binary, (N, K), (N, M, K), a list of M arrays (N, K_m), or (N, M) multilabel with `multioutput`.
        sample_weight : array-like of shape (N,), optional
        multioutput : bool, optional
            Whether a 2-D array is (N, M), with the probability of class 1 of each output.
        classes, normalize
            As in :func:`metricwise.optimize`.
        """
        read = read_proba(proba, multioutput=multioutput, classes=classes, normalize=normalize)
        weight = read_sample_weight(sample_weight, read.n_rows)
        source = MemorySource(make_rows(read, None, weight), Schema.of_codes(read.n_classes))
        return cls(Counts(source, "expected"))

    # ---------------------------------------------------------------------------------------------- what it is

    @property
    def priors(self) -> FloatArray:
        """Class priors, of shape (M, K): the row sums of every tensor of the set."""
        return self.oracle.priors

    @property
    def shape(self) -> tuple[int, int, int]:
        """(M, K, K)."""
        m, k = self.priors.shape
        return m, k, k

    @property
    def dimensions(self) -> tuple[int, ...]:
        """Dimension of the set of each output."""
        return tuple(frame.dimension for frame in self.frames)

    @cached_property
    def frames(self) -> tuple[Frame, ...]:
        """The affine hull of the set of each output."""
        searches = [(m, span(self.priors[m, :k])) for m, k in enumerate(self.oracle.n_classes)]
        return tuple(self.run(searches))

    # ------------------------------------------------------------------------------------- oracle and support

    @entry_point()
    def vertex(self, loss: Loss | ArrayLike) -> FloatArray:
        """Return the confusion tensor of the rule of a loss, which minimises ``<L, C>``.

        Parameters
        ----------
        loss : Loss, or array-like of shape (K, K) or (M, K, K)

        Returns
        -------
        ndarray of shape (M, K, K)
        """
        if not isinstance(loss, Loss):
            loss = Loss.from_tensor(self.read(loss, "loss", broadcast=True))
        return np.asarray(self.oracle.confusions([loss])[0])

    @entry_point()
    def support(self, direction: ArrayLike) -> float:
        """Return the support function, the largest ``<D, C>`` over the set.

        Parameters
        ----------
        direction : array-like of shape (K, K) or (M, K, K)
            One matrix serves all outputs, whose values add up.
        """
        D = self.read(direction, "direction", broadcast=True)
        return float(np.sum(D * self.vertex(-D)))

    @entry_point()
    def objective(
        self,
        metric: MetricLike,
        average: str | None = None,
        output_weight: ArrayLike | None = None,
        zero_division: float = 0.0,
    ) -> Objective:
        """Return a metric, averaged over outputs, bound to the class priors of the set."""
        n_classes = self.oracle.n_classes
        several, binary = len(n_classes) > 1, int(n_classes.max()) == 2
        kind = ("multilabel" if binary else "multioutput") if several else ("binary" if binary else "multiclass")
        resolved = to_maximise(resolve(metric, kind, average, zero_division))
        if not resolved.average_given:
            check_same_classes([range(k) for k in n_classes.tolist()])
        alpha = read_output_weight(output_weight, len(n_classes))
        aim = AveragedMetric(resolved.metric, resolved.average, alpha, resolved.support_weighted)
        return aim.bind(self.priors, self.oracle.weight, n_classes)

    # --------------------------------------------------------------------------------------------- membership

    @entry_point()
    def contains(self, C: ArrayLike, *, tol: float = 1e-8, max_passes: int = 2000) -> Membership:
        """Decide whether a confusion tensor can be reached, with a proof either way.

        The ray from the confusion of uniform random guessing, which is always inside, through C is followed.

        Parameters
        ----------
        C : array-like of shape (K, K) or (M, K, K)
        tol : float, default=1e-8
            A tensor that is outside by less than this along the ray counts as inside.
        max_passes : int, default=2000
            Maximum number of passes over the rows.

        Returns
        -------
        Membership
        """
        C = self.read(C, "C")
        searches = [(m, _member(frame, self.cut(C, m), tol, max_passes)) for m, frame in enumerate(self.frames)]
        result = self.run(searches)
        if all(part.losses for part in result):
            return Membership(True, join(self, result), None, 0.0)
        # Outputs weigh by how far they are out, those inside by 0: that separates by the root of the sum of squares.
        L = self.pad([np.zeros_like(part.loss) if part.losses else part.loss for part in result])
        out = np.sum(L * (self.oracle.confusions([Loss(full=L)])[0] - C), axis=(1, 2))
        L = L * np.maximum(out, 0.0)[:, None, None]
        L /= np.linalg.norm(L)
        loss = Loss(full=L)
        return Membership(False, None, loss, float(np.sum(L * (self.vertex(loss) - C))))

    @entry_point()
    def exit(self, start: ArrayLike, direction: ArrayLike, *, tol: float = 1e-10, max_passes: int = 2000) -> Exit:
        """Follow a ray from a point of the set to the relative boundary.

        Parameters
        ----------
        start : array-like of shape (K, K) or (M, K, K)
        direction : array-like of the same shape
            The direction; the component that leaves the affine hull of the set (a change of row sums) is ignored.
        tol : float, default=1e-10
            Tolerance of the length.
        max_passes : int, default=2000
            Maximum number of passes over the rows.

        Returns
        -------
        Exit
        """
        begin, step = self.read(start, "start"), self.read(direction, "direction")
        return self.exits(begin, step[None], tol, max_passes)[0]

    @entry_point("{class}.exit")
    def exits(self, start: FloatArray, directions: FloatArray, tol: float, max_passes: int) -> list[Exit]:
        """Follow rays from one point in several directions (R, M, K, K) side by side."""
        steps = [[f.along(self.cut(D, m)) for m, f in enumerate(self.frames)] for D in directions]
        if any(max((np.abs(s).max(initial=0.0) for s in step), default=0.0) <= tol for step in steps):
            raise InvalidParameter(
                "direction", "have a component within the affine hull of the set", "one that only changes row sums"
            )
        pools: list[Pool] = self.run([(m, start_pool(frame)) for m, frame in enumerate(self.frames)])
        origins = self.run(
            [(m, _placed(f, pools[m], self.cut(start, m), max_passes)) for m, f in enumerate(self.frames)]
        )
        searches = [
            (m, _end(f, pools[m], origins[m], step[m], tol, max_passes))
            for step in steps
            for m, f in enumerate(self.frames)
        ]
        rays = self.run(searches)
        n = len(self.frames)
        return [self._first(origins, step, rays[n * r : n * (r + 1)]) for r, step in enumerate(steps)]

    def _first(self, origins: list[FloatArray], step: list[FloatArray], rays: list[Ray]) -> Exit:
        """The ray ends where the first output stops it."""
        m = int(np.argmin([ray.lower for ray in rays]))
        length = rays[m].lower
        point = [f.tensor(o + length * s) for f, o, s in zip(self.frames, origins, step, strict=True)]
        losses = [np.zeros_like(p) for p in point]
        result = rays[m].loss
        losses[m] = losses[m] if result is None else result
        return Exit(length, self.pad(point), Loss(full=self.pad(losses)))

    # ----------------------------------------------------------------------------------------------- pictures

    def boundary_2d(self, x: MetricLike | ArrayLike, y: MetricLike | ArrayLike, *, n: int = 180) -> FloatArray:
        """Project the set onto two linear functionals, such as the recalls of two classes.

        This takes one pass over the rows, whatever n.

        Parameters
        ----------
        x, y : array-like of shape (K, K) or (M, K, K), or metric
            Functionals ``<x, C>`` and ``<y, C>``; a metric must be linear (``metrics.Recall(index=0)``, "accuracy").
        n : int, default=180
            Number of directions.

        Returns
        -------
        ndarray of shape (n, 2)
            Points of the boundary of the projection, counterclockwise: the corners of a polygon inside it.

        Examples
        --------
        >>> from metricwise.geometry import FeasibleSet
        >>> feasible = FeasibleSet.from_proba([0.2, 0.9])
        >>> feasible.boundary_2d([[1, 0], [0, 0]], [[0, 0], [0, 1]], n=6).round(3).tolist()
        [[0.45, 0.0], [0.4, 0.45], [0.0, 0.55], [0.0, 0.55], [0.05, 0.1], [0.45, 0.0]]
        """
        axes = np.stack([self.functional(axis) for axis in (x, y)])
        angles = 2 * np.pi * np.arange(n) / n
        losses = -np.einsum("ra,amij->rmij", np.column_stack([np.cos(angles), np.sin(angles)]), axes)
        tensors = self.oracle.confusions([Loss(full=loss) for loss in np.round(losses, 12) + 0.0])
        return np.asarray(np.einsum("amij,rmij->ra", axes, tensors))

    @entry_point()
    def slice_2d(
        self, center: ArrayLike, x: ArrayLike, y: ArrayLike, *, n: int = 72, tol: float = 1e-8, max_passes: int = 2000
    ) -> FloatArray:
        """Cut the set with the plane ``center + s * x + t * y``.

        The n rays are followed together, which takes tens of passes for three classes and hundreds for five.

        Parameters
        ----------
        center, x, y : array-like of shape (K, K) or (M, K, K)
            A point of the set, and two directions, whose components outside its affine hull are ignored.
        n : int, default=72
            Number of rays.
        tol : float, default=1e-8
        max_passes : int, default=2000

        Returns
        -------
        ndarray of shape (n, 2)
            Pairs (s, t) where the plane meets the relative boundary, counterclockwise.
        """
        point = self.read(center, "center")
        axes = np.stack([self.read(axis, name) for axis, name in ((x, "x"), (y, "y"))])
        angles = 2 * np.pi * np.arange(n) / n
        units = np.column_stack([np.cos(angles), np.sin(angles)])
        points = self.exits(point, np.einsum("ra,amij->rmij", units, axes), tol, max_passes)
        return np.asarray(np.array([end.length for end in points])[:, None] * units)

    @entry_point("boundary_2d")
    def functional(self, axis: MetricLike | ArrayLike) -> FloatArray:
        """Return a linear functional as a tensor (M, K, K)."""
        if not (isinstance(axis, (str, Metric)) or callable(axis)):
            return self.read(axis, "x and y", broadcast=True)
        objective = self.objective(axis)
        ratio, grouping = objective.ratio, objective.grouping
        if ratio is None or not ratio.linear:
            raise InvalidParameter(
                "y",
                problem=(
                    f"x and y must be linear metrics or arrays, got {objective.metric.name!r}, which is "
                    f"{objective.family}"
                ),
                owner="boundary_2d",
            )
        scale = grouping.share * grouping.spread(grouping.weight)
        return np.asarray(scale[:, None, None] * grouping.spread(ratio.A))

    # ----------------------------------------------------------------------------------------------- plumbing

    def run(self, searches: Sequence[tuple[int, Search[Result]]]) -> list[Result]:
        """Run searches of outputs side by side."""
        return drive(searches, self._ask)

    def _ask(self, queries: list[tuple[int, FloatArray]]) -> list[FloatArray]:
        """Answer queries in one pass: those of different outputs share a loss."""
        turn = [0] * self.shape[0]
        places = []
        for m, _ in queries:
            places.append((turn[m], m))
            turn[m] += 1
        packed = np.zeros((max(turn), *self.shape))
        for place, (_, loss) in zip(places, queries, strict=True):
            packed[place][: len(loss), : len(loss)] = loss
        tensors = self.oracle.confusions([Loss(full=loss) for loss in packed])
        return [tensors[place][: len(q), : len(q)] for place, (_, q) in zip(places, queries, strict=True)]

    def read(self, values: Any, name: str, *, broadcast: bool = False) -> FloatArray:
        """Read a tensor (M, K, K); (K, K) will do for one output, or for all with `broadcast`."""
        array = np.asarray(values, dtype=np.float64)
        array = array[None] if array.ndim == 2 else array
        if broadcast and array.shape == (1, *self.shape[1:]):
            array = np.repeat(array, self.shape[0], axis=0)
        if array.shape != self.shape:
            hint = " or (K, K)" if broadcast or self.shape[0] == 1 else ""
            raise InvalidParameter(
                name,
                problem=(f"{name} must have shape (M, K, K) = {self.shape}{hint}, got {np.shape(values)}"),
            )
        if not np.isfinite(array).all():
            raise InvalidParameter(name, problem=f"{name} must be finite, got NaN or infinity")
        return array

    def cut(self, tensor: FloatArray, m: int) -> FloatArray:
        """Return the part (K_m, K_m) of output m."""
        k = int(self.oracle.n_classes[m])
        return tensor[m, :k, :k]

    def pad(self, parts: Sequence[FloatArray]) -> FloatArray:
        """Put parts (K_m, K_m) together to (M, K, K)."""
        out = np.zeros(self.shape)
        for whole, part in zip(out, parts, strict=True):
            whole[: len(part), : len(part)] = part
        return out


def join(feasible: FeasibleSet, parts: Sequence[Part]) -> Decomposition:
    """Put the mixtures of outputs together: the r-th rule of every output makes the r-th rule of all."""
    n_rules = max(len(part.losses) for part in parts)
    weights = np.zeros((len(parts), n_rules))
    losses = []
    for r in range(n_rules):
        losses.append(Loss(full=feasible.pad([part.losses[min(r, len(part.losses) - 1)] for part in parts])))
        weights[:, r] = [part.weights[r] if r < len(part.weights) else 0.0 for part in parts]
    reached = np.einsum("mr,rmij->mij", weights, feasible.oracle.confusions(losses))
    return Decomposition(tuple(losses), weights, reached, feasible.oracle.n_classes)


# ------------------------------------------------------------------------------------------------------- searches


def _member(frame: Frame, C: FloatArray, tol: float, max_passes: int) -> Search[Part]:
    """Find a mixture that reaches C, or a separating loss: then without losses."""
    beside = frame.beside(C)
    size = float(np.linalg.norm(beside))
    if size > tol:
        return Part(-beside / size)
    pool = yield from start_pool(frame)
    target = frame.coordinates(C)
    length = float(np.linalg.norm(target))
    if length > tol:
        mark = 1.0 - tol / length
        ray = yield from shoot(frame, pool, 0.0 * target, target, marks=(mark,), max_passes=max_passes)
        if ray.upper < mark and ray.loss is not None:
            return Part(ray.loss / np.linalg.norm(ray.loss))
    which, weights, _ = decompose(pool.matrix, target)
    return Part(np.zeros_like(C), tuple(pool.losses[t] for t in which), tuple(weights.tolist()))


def _placed(frame: Frame, pool: Pool, C: FloatArray, max_passes: int) -> Search[FloatArray]:
    """Fill the pool until its hull holds C, and return the coordinates."""
    beside = float(np.linalg.norm(frame.beside(C)))
    target = frame.coordinates(C)
    length = float(np.linalg.norm(target))
    upper = 1.0
    if length > 1e-12 and beside <= 1e-6:
        ray = yield from shoot(frame, pool, 0.0 * target, target, marks=(1.0 - 1e-9,), max_passes=max_passes)
        upper = ray.upper
    which, weights, error = decompose(pool.matrix, target)
    if max(beside, error) > 1e-6 or upper < 1 - 1e-6:
        raise InvalidParameter(
            "start", "be in the set", f"a tensor that is {max(beside, error):.3g} outside", owner="FeasibleSet.exit"
        )
    return np.asarray(weights @ pool.matrix[which])


def _end(frame: Frame, pool: Pool, start: FloatArray, step: FloatArray, tol: float, max_passes: int) -> Search[Ray]:
    """Where one output stops the ray; never, where it does not move."""
    if not np.any(np.abs(step) > 0):
        return Ray(np.inf, np.inf, None)
    ray = yield from shoot(frame, pool, start, step, gap=tol, max_passes=max_passes)
    return ray
