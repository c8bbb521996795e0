"""How sums over rows vary from one sample of rows to another: independent rows, clusters, frequencies.

Must not know metrics, decisions or rules.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.quantiles import student_quantile
from ..data.sources.memory import MemorySource
from ..oracles.problem import InMemory, Problem

__all__ = ["Errors", "Spread", "clip_interval", "count_independent"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

_NORMAL_QUANTILE = 1.959963984540054  # of a 95 % interval


class Errors(NamedTuple):
    """Standard errors of the metric of two sets of decisions, and of the difference."""

    first: float
    second: float
    difference: float


@dataclass(frozen=True, eq=False)
class Spread:
    """Sampling variation of sums over rows.

    `cluster` (N,) holds the cluster of each row, None if rows are independent; `repeats` (N,) how many independent
    rows a row stands for.
    """

    cluster: IntArray | None
    repeats: FloatArray | None
    n_clusters: int

    @classmethod
    def of(cls, rows: InMemory | MemorySource) -> Spread:
        """Return the spread of sums over the rows of a problem or a source."""
        source = rows if isinstance(rows, MemorySource) else rows.source
        return cls._of_clusters(source.rows.cluster, source.rows.repeats, source.rows.n_rows)

    @classmethod
    def _of_clusters(cls, cluster: NDArray[Any] | None, repeats: FloatArray | None, n_rows: int) -> Spread:
        if cluster is None:
            return cls(None, repeats, n_rows)
        numbers = np.unique(cluster, return_inverse=True)[1].reshape(-1).astype(np.intp)
        return cls(numbers, None, int(numbers.max()) + 1)

    def take(self, rows: IntArray) -> Spread:
        """Return the spread of sums over some of the rows, given by position."""
        repeats = None if self.repeats is None else self.repeats[rows]
        return self._of_clusters(None if self.cluster is None else self.cluster[rows], repeats, len(rows))

    def error(self, influence: FloatArray, share: float = 1.0) -> float:
        """Return the standard error of a statistic from the influence (N,) of each row on it, which sums to 0.

        If the rows are a `share` of all rows, that of the statistic of all of them: the variation within clusters
        falls with the number of rows, what the rows of a cluster have in common does not.
        """
        squares = influence**2 if self.repeats is None else influence**2 / np.where(self.repeats > 0, self.repeats, 1.0)
        independent = float(np.sum(squares))
        if self.cluster is None:
            return float(np.sqrt(share * independent))
        sums = np.bincount(self.cluster, influence)
        clustered = float(np.sum(sums**2)) * self.n_clusters / max(self.n_clusters - 1, 1)
        return float(np.sqrt(share * clustered + (1 - share) * max(clustered - independent, 0.0)))

    def variances(self, rows: IntArray, influence: FloatArray) -> FloatArray:
        """Return what each of some rows, given by position, adds to the variance of a sum of their influences.

        In clusters, the variance as if rows were independent times the design effect of all of them.
        """
        squares = influence**2
        if self.cluster is not None:
            sums = np.bincount(self.cluster[rows], influence)
            return np.asarray(squares * (np.sum(sums**2) / max(np.sum(squares), np.finfo(float).tiny)))
        if self.repeats is not None:
            return np.asarray(squares / np.where(self.repeats[rows] > 0, self.repeats[rows], 1.0))
        return np.asarray(squares)

    def lots(self, n_lots: int, rng: np.random.Generator) -> Spread:
        """Return the spread with rows or clusters joined to random lots, of which there are fewer to draw."""
        if self.repeats is not None or self.n_clusters <= n_lots:
            return self
        lot = rng.permutation(self.n_clusters) % n_lots
        return Spread(lot if self.cluster is None else lot[self.cluster], None, n_lots)

    def draws(self, n_resamples: int, rng: np.random.Generator) -> FloatArray:
        """Return the weights of rows in Poisson resamples, (R, N), with mean 1."""
        if self.repeats is not None:
            counts = rng.poisson(self.repeats, (n_resamples, len(self.repeats)))
            return np.asarray(counts / np.maximum(self.repeats, 1e-300))
        drawn = rng.poisson(1.0, (n_resamples, self.n_clusters)).astype(np.float64)
        return drawn if self.cluster is None else drawn[:, self.cluster]

    @property
    def n_independent(self) -> float:
        """Number of independent rows: clusters, or the sum of frequencies."""
        return float(self.n_clusters if self.repeats is None else self.repeats.sum())

    @property
    def quantile(self) -> float:
        """The 97.5 % quantile of Student's distribution."""
        return student_quantile(_NORMAL_QUANTILE, self.n_independent - 1)

    def interval(self, value: float, error: float, least: float, most: float) -> tuple[float, float, float]:
        """Return a value and the ends of its 95 % interval, within a range.

        With few clusters the error varies with the value and is smaller towards the ends of the range. Wilson's
        interval accounts for that, with the number of independent rows that have this error.
        """
        half, width = self.quantile * error, most - least
        if self.cluster is None or half <= 0 or not np.isfinite(width) or not least < value < most:
            return clip_interval(value, half, least, most)
        share = (value - least) / width
        ratio = (half / width) ** 2 / (share * (1 - share))  # squared quantile over the number of rows
        middle = (share + ratio / 2) / (1 + ratio)
        wide = np.sqrt(ratio * share * (1 - share) + ratio**2 / 4) / (1 + ratio)
        return value, least + width * float(middle - wide), least + width * float(middle + wide)


def clip_interval(value: float, half: float, least: float, most: float) -> tuple[float, float, float]:
    """Return a value and the ends of its interval, clipped to a range that may not hold the value."""
    return value, max(value - half, min(value, least)), min(value + half, max(value, most))


def count_independent(problem: Problem) -> float:
    """Return the number of independent rows of a problem, in any source; see :attr:`Spread.n_independent`."""
    head = problem.source.glance(1)
    if head.cluster is None and head.repeats is None:
        return float(problem.n_rows)

    def ask(rows: Any) -> tuple[IntArray, float]:
        if rows.cluster is not None:
            return np.unique(rows.cluster), 0.0
        return np.empty(0, dtype=np.intp), float(rows.repeats.sum())

    def add(first: tuple[IntArray, float], second: tuple[IntArray, float]) -> tuple[IntArray, float]:
        return np.union1d(first[0], second[0]), first[1] + second[1]

    clusters, repeats = problem.source.reduce(ask, add)
    return len(clusters) + repeats
