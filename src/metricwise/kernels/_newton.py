"""Newton's method of the NumPy twins: fits of many links at once, and the damped method for any likelihood."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ._partition import log_partition

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
BoolArray = NDArray[np.bool_]
Derivatives = tuple[FloatArray, FloatArray, FloatArray]

MAX_STEPS = 50
TOL = 1e-9  # nats of penalised likelihood left to gain, of all rows together


class LinkFits(NamedTuple):
    """The penalised likelihoods of J links of k classes, theta = (t, b_1, ..., b_{k-1}); see :func:`log_partition`.

    Parameters
    ----------
    logits, weight, taken, jobs, shown
        What :func:`log_partition` sums.
    scale : ndarray of shape (J,)
        What weights are multiplied by.
    labels : ndarray of shape (J, k)
        Scaled sums of the logits of the true classes, and scaled weights of all classes but class 0.
    center : ndarray of shape (k,)
        What parameters are shrunk towards.
    penalty : ndarray of shape (k, k)
        Quadratic form of the shrinkage.
    scale_strength : float
        Strength of the shrinkage of log t, beside that of the form.
    least : ndarray of shape (J,)
        The smallest temperature.
    """

    logits: FloatArray
    weight: FloatArray
    taken: BoolArray | None
    jobs: IntArray
    shown: BoolArray
    scale: FloatArray
    labels: FloatArray
    center: FloatArray
    penalty: FloatArray
    scale_strength: float
    least: FloatArray

    @property
    def fixed(self) -> BoolArray:
        """Fits with nothing to learn from, (J,)."""
        return np.asarray(self.shown.sum(axis=1) < 2)

    def evaluate(self, sums: Callable[..., Derivatives], theta: FloatArray, fits: IntArray) -> Derivatives:
        """Return value (F,), gradient (F, k) and Hessian (F, k, k) of some fits; `sums` is `log_partition`."""
        value, gradient, hessian = sums(self.logits, self.weight, self.taken, self.jobs[fits], theta, self.shown[fits])
        scale, labels = self.scale[fits], self.labels[fits]
        value, gradient, hessian = value * scale, gradient * scale[:, None], hessian * scale[:, None, None]
        value -= (theta * labels).sum(axis=1)
        gradient -= labels
        add_penalty(theta, self.center, self.penalty, self.scale_strength, (value, gradient, hessian))
        return value, gradient, hessian


def add_penalty(
    theta: FloatArray, center: FloatArray, penalty: FloatArray, scale_strength: float, sums: Derivatives
) -> None:
    """Add the penalty of parameters (F, k) to value, gradient and Hessian: a quadratic form, and that of log t."""
    value, gradient, hessian = sums
    away = theta - center
    slope = away @ penalty
    value += 0.5 * (slope * away).sum(axis=1)
    gradient += slope
    hessian += penalty
    if scale_strength:
        t = theta[:, 0]
        ratio = np.log(t / center[0])
        value += 0.5 * scale_strength * ratio**2
        gradient[:, 0] += scale_strength * ratio / t
        hessian[:, 0, 0] += scale_strength / t**2  # of squares that are linearised: positive for every t


def fit_links(fits: LinkFits, start: FloatArray, sums: Callable[..., Derivatives] = log_partition) -> FloatArray:
    """Minimise the penalised likelihoods of J links.

    Parameters
    ----------
    fits : LinkFits
    start : ndarray of shape (J, k)
    sums : callable, optional
        The `log_partition` that sums over rows.

    Returns
    -------
    ndarray of shape (J, k)
        Fits with nothing to learn from stay at t = 1 without biases. The twins agree to rounding, not to the bit.
    """

    def evaluate(theta: FloatArray, some: IntArray) -> Derivatives:
        return fits.evaluate(sums, theta, some)

    return minimise(evaluate, start, fits.fixed, fits.least)


def minimise(
    evaluate: Callable[[FloatArray, IntArray], Derivatives], start: FloatArray, fixed: BoolArray, least: FloatArray
) -> FloatArray:
    """Minimise by damped Newton steps from `start` (J, k); return the parameters (J, k).

    Parameters
    ----------
    evaluate : callable
        From parameters (F, k) and which of the J fits they are of to value (F,), gradient (F, k) and Hessian (F, k, k).
    start : ndarray of shape (J, k)
        The first parameter is a temperature.
    fixed : bool ndarray of shape (J,)
        Fits with nothing to learn from.
    least : ndarray of shape (J,)
        The smallest temperature.
    """
    theta = start.copy()
    theta[fixed] = np.eye(1, theta.shape[1])  # where fits with nothing to learn from stay
    left = np.flatnonzero(~fixed)
    if len(left) == 0:
        return theta
    value, gradient, hessian = evaluate(theta[left], left)
    for _ in range(MAX_STEPS):
        step = _step(theta[left], gradient, hessian, least[left])
        gain = -(gradient * step).sum(axis=1)
        done = gain <= 2 * TOL
        theta[left[done]] = _bounded(theta[left[done]] + step[done], least[left[done]])  # so short, it needs no check
        left, value, step, gain = left[~done], value[~done], step[~done], gain[~done]
        if len(left) == 0:
            break
        theta[left], (value, gradient, hessian) = _descend(evaluate, left, theta[left], value, step, gain, least[left])
    return theta


def _descend(
    evaluate: Callable[[FloatArray, IntArray], Derivatives],
    fits: IntArray,
    theta: FloatArray,
    value: FloatArray,
    step: FloatArray,
    gain: FloatArray,
    least: FloatArray,
) -> tuple[FloatArray, Derivatives]:
    """Halve steps until they pay; return the parameters, and what `evaluate` returns there."""
    size = np.ones(len(fits))
    trial = _bounded(theta + step, least)
    new = evaluate(trial, fits)
    while True:
        worse = (new[0] > value - 1e-4 * size * gain + 1e-12 * np.abs(value)) & (size > 1e-6)
        if not worse.any():
            return trial, new
        size[worse] /= 2
        trial[worse] = _bounded(theta[worse] + size[worse, None] * step[worse], least[worse])
        again: Any
        for values, again in zip(new, evaluate(trial[worse], fits[worse]), strict=True):
            values[worse] = again


def _bounded(theta: FloatArray, least: FloatArray) -> FloatArray:
    """Hold the temperature to its bound: flattened by at most that, the path to a trial point stays one of descent."""
    np.maximum(theta[:, 0], least, out=theta[:, 0])
    return theta


def _step(theta: FloatArray, gradient: FloatArray, hessian: FloatArray, least: FloatArray) -> FloatArray:
    """Newton's step; a temperature at its bound that would go below stays there while the biases move on."""
    held = (theta[:, 0] <= least) & (gradient[:, 0] > 0)
    if held.any():
        gradient, hessian = gradient.copy(), hessian.copy()
        gradient[held, 0] = 0.0
        hessian[held, 0, :] = hessian[held, :, 0] = 0.0
        hessian[held, 0, 0] = 1.0
    return np.asarray(-np.linalg.solve(hessian, gradient[..., None])[..., 0], dtype=np.float64)
