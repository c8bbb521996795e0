"""The finite-sample regret bound of the paper's theorem."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.errors import InvalidParameter, entry_point
from ._checks import check_number, check_whole, read_tensor

__all__ = ["RegretBound", "regret_bound"]


@dataclass(frozen=True)
class RegretBound:
    """The terms of the regret bound.

    Parameters
    ----------
    tau : float
        ``(||A||_1 + ||B||_1) / b``, with the sum of absolute entries as norm.
    estimation : float
        From the error of the estimated probabilities, ``2 tau`` times its mean over outputs.
    sampling : float
        From counting confusions on finitely many rows.
    bisection : float
        From stopping after finitely many halvings.

    See Also
    --------
    regret_bound : Computes the bound.

    Examples
    --------
    >>> from metricwise.theory import RegretBound
    >>> bound = RegretBound(tau=12.0, estimation=0.5, sampling=0.75, bisection=0.0)
    >>> bound.total, bound.vacuous
    (1.25, True)
    """

    tau: float
    estimation: float
    sampling: float
    bisection: float

    @property
    def total(self) -> float:
        """The bound."""
        return self.estimation + self.sampling + self.bisection

    @property
    def vacuous(self) -> bool:
        """Whether the bound says nothing: the metric is between 0 and 1, so that no regret exceeds 1."""
        return self.total >= 1.0


@entry_point("regret_bound")
def regret_bound(
    A: ArrayLike,
    B: ArrayLike,
    b: float | ArrayLike,
    *,
    n_rows: int,
    n_outputs: int = 1,
    eta_error: float | ArrayLike,
    delta: float = 0.05,
    kappa: float = 1.0,
    constant: float = 1.0,
    independent_outputs: bool = True,
    average: str = "micro",
) -> RegretBound:
    r"""Bound the regret of the paper's bisection algorithm for a fractional-linear metric.

    The algorithm estimates eta on one half of N rows and bisects on the other half. For
    ``psi(C) = <A, C> / <B, C>``, micro-averaged over M outputs of K classes, its regret is with probability at least
    1 - delta (over the draw of the rows) at most

    .. math::

        \frac{2 \tau}{M} \sum_m \mathbb{E} \lVert \hat\eta_m(X) - \eta_m(X) \rVert_1
        + 2 \sqrt{2} \, c \, \tau \sqrt{\frac{K^2 \log K \, \log(MN) + \log(K^2 / \delta)}{MN}}
        + 2^{-\kappa N},
        \qquad \tau = \frac{\lVert A \rVert_1 + \lVert B \rVert_1}{b} .

    With the macro-average, each output has its own rule and its own bound, with M = 1, and the regret is at most their
    mean. All bounds must hold at once, so each is taken at :math:`\delta / M` (a union bound over the outputs).

    Parameters
    ----------
    A, B : array-like of shape (K, K), or (M, K, K) where macro-averaged outputs have their own
        Numerator and denominator of the metric, both non-negative; K is read off them. The theorem also needs psi to
        be at most 1 for every confusion that can be reached, which holds wherever A <= B.
    b : float, or array-like of shape (M,) where macro-averaged outputs have their own
        Positive lower bound of the denominator <B, C> over all reachable confusions.
    n_rows : int
        Number N of rows, in both halves together.
    n_outputs : int, default=1
        Number M of outputs.
    eta_error : float or array-like of shape (M,)
        Expected L1 distance between estimated and true class probabilities: the mean over outputs, or one per output.
    delta : float, default=0.05
        Probability that the bound fails, in (0, 1].
    kappa : float, default=1.0
        The algorithm halves its interval kappa N times.
    constant : float, default=1.0
        The constant c, whose existence, independent of the distribution, is all that the theorem states. Its value is
        unknown; it scales the sampling term.
    independent_outputs : bool, default=True
        Whether to count M N independent observations, as the paper does. The M outputs of a row share one x and may
        depend on each other arbitrarily, so that only N are independent: False uses N in place of M N in the sampling
        term. It does not affect the macro-average, whose bounds have N each.
    average : {"micro", "macro"}, default="micro"
        How psi is averaged over the outputs.

    Returns
    -------
    RegretBound
        Each term, and their ``total``; for the macro-average, means over the outputs.

    See Also
    --------
    regret : The regret of a rule, for known class probabilities.
    metricwise.solvers.Bisection : The algorithm.

    Notes
    -----
    The paper prints ``2 tau / m`` for ``2 tau / M``, and :math:`2^{-\kappa M N}` for the last term, although its
    algorithm halves kappa N times whatever M; see the errata. It states the micro-averaged bound only.
    The bound is for understanding rates: at common sizes it is far above 1.

    Examples
    --------
    >>> import metricwise as mw
    >>> bound = mw.theory.regret_bound(
    ...     [[0, 0], [0, 2]], [[0, 1], [1, 2]], 0.5, n_rows=10**9, eta_error=0.001, constant=0.1
    ... )
    >>> bound.tau
    12.0
    >>> round(bound.estimation, 6), round(bound.sampling, 6), bound.bisection
    (0.024, 0.000844, 0.0)
    >>> bound.vacuous
    False
    """
    if average == "macro":
        check_whole(n_outputs, 1, "n_outputs")
        check_number(delta, "delta", low=0.0, high=1.0)
        shared: dict[str, Any] = {"n_rows": n_rows, "kappa": kappa, "constant": constant, "delta": delta / n_outputs}
        return _mean_bound(A, B, b, eta_error, n_outputs, shared)
    if average != "micro":
        raise InvalidParameter("average", "be 'micro' or 'macro'", repr(average))
    top, bottom = (read_tensor(part, name) for part, name in ((A, "A"), (B, "B")))
    if top.ndim != 2 or top.shape != bottom.shape or len(top) < 2:
        raise InvalidParameter(
            "A", problem=f"A and B must have one shape (K, K) with K >= 2, got {np.shape(A)} and {np.shape(B)}"
        )
    for name, part in (("A", top), ("B", bottom)):
        if (part < 0).any():
            raise InvalidParameter(
                name,
                "be non-negative, as the theorem requires",
                f"{part.min():.6g}",
                "if <B, C> = 1 for all C, add a constant to A, which only shifts the metric",
            )
    least = _one_number(b, bottom)
    check_whole(n_rows, 1, "n_rows")
    check_whole(n_outputs, 1, "n_outputs")
    check_number(delta, "delta", low=0.0, high=1.0)
    check_number(kappa, "kappa", low=0.0)
    check_number(constant, "constant", low=0.0)
    tau = float(top.sum() + bottom.sum()) / least
    k, size = len(top), n_rows * (n_outputs if independent_outputs else 1)
    deviation = math.sqrt((k * k * math.log(k) * math.log(size) + math.log(k * k / delta)) / size)
    return RegretBound(
        tau=tau,
        estimation=2.0 * tau * _mean_error(eta_error, n_outputs),
        sampling=2.0 * math.sqrt(2.0) * constant * tau * deviation,
        bisection=2.0 ** (-kappa * n_rows),
    )


def _one_number(b: float | ArrayLike, bottom: NDArray[np.float64]) -> float:
    check_number(b, "b", low=0.0, high=float(bottom.max()))
    return float(np.asarray(b))


def _mean_bound(
    A: ArrayLike,
    B: ArrayLike,
    b: float | ArrayLike,
    eta_error: float | ArrayLike,
    n_outputs: int,
    shared: dict[str, Any],
) -> RegretBound:
    """Return the means of the terms of each output's own bound."""
    shapes = {"A": (A, 2), "B": (B, 2), "b": (b, 0), "eta_error": (eta_error, 0)}
    each = {name: _per_output(values, n_outputs, ndim, name) for name, (values, ndim) in shapes.items()}
    bounds = [
        regret_bound(top, bottom, float(least), eta_error=float(error), **shared)
        for top, bottom, least, error in zip(*each.values(), strict=True)
    ]
    terms = ("tau", "estimation", "sampling", "bisection")
    return RegretBound(**{term: float(np.mean([getattr(bound, term) for bound in bounds])) for term in terms})


def _per_output(values: ArrayLike, n_outputs: int, ndim: int, name: str) -> NDArray[np.float64]:
    """Return an array with one entry per output, from what is shared by all or each output's own."""
    array = read_tensor(values, name) if ndim else np.asarray(values, dtype=np.float64)
    if array.ndim == ndim:
        return np.broadcast_to(array, (n_outputs, *array.shape))
    if array.ndim != ndim + 1 or len(array) != n_outputs:
        raise InvalidParameter(name, f"be one for all outputs or one for each of {n_outputs}", f"shape {array.shape}")
    return array


def _mean_error(eta_error: float | ArrayLike, n_outputs: int) -> float:
    error = np.asarray(eta_error, dtype=np.float64)
    if error.ndim and error.shape != (n_outputs,):
        raise InvalidParameter(
            "eta_error", f"be one number or one for each of {n_outputs} outputs", f"shape {error.shape}"
        )
    if not ((error >= 0) & (error <= 2)).all():
        raise InvalidParameter("eta_error", "be between 0 and 2, as L1 distances of probabilities are", error)
    return float(error.mean())
