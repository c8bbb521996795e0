"""Monotonicity: does correcting an error ever lower the metric?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..core.errors import entry_point
from ..metrics.resolution import resolve, target_kind
from ._checks import FloatArray, MetricLike, check_number, check_whole

__all__ = ["Counterexample", "Monotonicity", "check_monotonic"]


@dataclass(frozen=True, eq=False)
class Counterexample:
    """A corrected error that lowers a metric.

    Parameters
    ----------
    confusion : ndarray of shape (K, K)
        The confusion matrix before the correction.
    true, predicted : int
        Rows of class `true` that were predicted as `predicted` are predicted correctly instead.
    amount : float
        Share of these rows.
    before, after : float
        The metric before and after.

    See Also
    --------
    check_monotonic : Searches for counterexamples.

    Examples
    --------
    >>> from metricwise.theory import check_monotonic
    >>> found = check_monotonic("kappa", 3).counterexample
    >>> found.after < found.before
    True
    """

    confusion: FloatArray
    true: int
    predicted: int
    amount: float
    before: float
    after: float


@dataclass(frozen=True, eq=False)
class Monotonicity:
    """Result of :func:`check_monotonic`, which is true if no counterexample was found.

    Parameters
    ----------
    monotonic : bool
        False is a proof; True means that none of the `n_moves` corrections lowered the metric.
    n_moves : int
        Number of corrections tried.
    counterexample : Counterexample or None
        The correction that lowers the metric most.

    See Also
    --------
    check_monotonic : Runs the check.

    Examples
    --------
    >>> from metricwise.theory import check_monotonic
    >>> bool(check_monotonic("accuracy", 3, n_matrices=20))
    True
    """

    monotonic: bool
    n_moves: int
    counterexample: Counterexample | None = None

    def __bool__(self) -> bool:
        return self.monotonic


@entry_point("check_monotonic")
def check_monotonic(
    metric: MetricLike,
    n_classes: int,
    *,
    n_matrices: int = 500,
    tol: float = 1e-9,
    random_state: int | np.random.Generator | None = 0,
) -> Monotonicity:
    """Check with random confusion matrices whether correcting errors never lowers a metric.

    A metric is *monotonic* if moving mass within row i of C from any j != i to i never lowers it. Rules can move mass
    within rows only, since the row sums are the class priors. The micro- and the macro-average of a monotonic metric
    are monotonic, so that one matrix is enough.

    The paper asks for more: that the metric not decrease in any diagonal entry and not increase in any other, each by
    itself. That would exclude the ordinal metric, which gives credit to near misses. It also says that all metrics in
    common use are monotonic. With three classes or more, kappa and the Matthews coefficient are not, because a
    correction also changes the agreement expected by chance. Optimal rules are weighted rules nevertheless.

    Parameters
    ----------
    metric : str, Metric or callable
        The metric, as in :func:`metricwise.optimize`.
    n_classes : int
        Number K of classes.
    n_matrices : int, default=500
        Number of random confusion matrices; half of them are those of few rows, with many zeros.
    tol : float, default=1e-9
        Tolerance: a smaller decrease, relative to the larger of 1 and the value, counts as rounding.
    random_state : int, Generator or None, default=0
        Seed of the random matrices.

    Returns
    -------
    Monotonicity

    See Also
    --------
    loss_from_gradient : The loss of an optimal rule.

    Examples
    --------
    >>> import metricwise as mw
    >>> bool(mw.theory.check_monotonic("ordinal", 4))
    True
    >>> result = mw.theory.check_monotonic("quadratic_kappa", 4)
    >>> result.monotonic
    False
    >>> result.counterexample.after < result.counterexample.before
    True
    """
    check_whole(n_classes, 2, "n_classes")
    check_whole(n_matrices, 1, "n_matrices")
    check_number(tol, "tol", low=0.0)
    resolved = resolve(metric, target_kind(n_classes, False)).metric._maximised()
    n_moves, worst, drop = 0, None, 0.0
    for C in _random_confusions(n_classes, n_matrices, np.random.default_rng(random_state)):
        moved, true, predicted, amount = _repairs(C)
        if not len(moved):
            continue
        n_moves += len(moved)
        before, after = float(resolved.value(C)), resolved.value(moved)
        r = int(np.argmin(after))
        fall = before - float(after[r])
        if fall > max(drop, tol * max(1.0, abs(before))):
            drop = fall
            worst = Counterexample(C, int(true[r]), int(predicted[r]), float(amount[r]), before, float(after[r]))
    return Monotonicity(worst is None, n_moves, worst)


def _random_confusions(k: int, n: int, rng: np.random.Generator) -> Iterator[FloatArray]:
    """Yield matrices from even to extreme, every other one as of few rows."""
    for t in range(n):
        spread = (0.2, 1.0)[t // 2 % 2]
        C = rng.dirichlet(np.full(k, spread))[:, None] * rng.dirichlet(np.full(k, spread), size=k)
        if t % 2:
            n_rows = int(rng.integers(3, 60))
            C = rng.multinomial(n_rows, (C / C.sum()).ravel()).reshape(k, k) / n_rows
        C = np.where(C > 1e-9, C, 0.0)  # below, a sum of shares cannot be told from an empty one
        yield C / C.sum()


def _repairs(C: FloatArray) -> tuple[FloatArray, NDArray[np.intp], NDArray[np.intp], FloatArray]:
    """Return what C becomes if all, half or a little of one entry off the diagonal moves to the diagonal."""
    cells = np.argwhere((C > 0) & ~np.eye(len(C), dtype=bool))
    true, predicted = np.tile(cells, (3, 1)).T
    amount = C[true, predicted] * np.repeat([1.0, 0.5, 0.01], len(cells))
    moved = np.repeat(C[None], len(true), axis=0)
    row = np.arange(len(true))
    moved[row, true, predicted] -= amount
    moved[row, true, true] += amount
    return moved, true, predicted, amount
