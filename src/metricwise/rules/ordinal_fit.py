"""Fit of proportional odds to one score and labels of K ordered grades, by penalised maximum likelihood.

One damped Newton method, batched over resamples of the rows, for the score in its own unit or in one in which it is
normally distributed. Must not know losses or metrics.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InvalidParameter
from ..core.ordinal_map import OrdinalMap

__all__ = ["fit_ordinal_maps"]

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

_MAX_BINS = 1000  # more distinct scores are merged into so many of equal frequency: K numbers are fitted
# Knots of the unit in which scores are normally distributed. On eight real sets of grades, with two regressors and four
# metrics, the likelier of both units did as well as the score itself (bags of labels and expected counts: 0.6941 for
# both on new rows), and lost little if the score was spoilt by exp(1.5 z) (0.6932), where the score itself had 0.6838.
_MAX_KNOTS = 64
_MIN_GAIN = 3.0  # nats of likelihood for which the map is given these knots
_SMOOTHING = 1.0  # rows, spread over all scores and grades
_PRIOR_DEVIATION = 2.0  # of the logarithm of the slope per standard deviation of the score, around 0
_REVERSED = 3.0  # standard errors below 0 from which a slope is taken for one of scores the wrong way round
_MAX_STEPS = 60
_TOL = 1e-9  # nats of penalised likelihood left to gain, of all rows together
_MIN_STEP = 1e-8  # of a Newton step; what a shorter one would gain is rounding


def fit_ordinal_maps(
    scores: NDArray[Any],
    codes: NDArray[Any],
    n_classes: int,
    weight: FloatArray | None = None,
    masks: BoolArray | None = None,
    frequency: FloatArray | None = None,
) -> list[OrdinalMap]:
    """Fit probabilities of the grades to all rows, and to each of R resamples of them.

    The minimum over the slope s and intercepts of

        - sum_n w_n log P(y_n | x_n)  -  1 / (N K) sum_n sum_k log P(k | x_n)  +  (log s)^2 / (2 * 2^2)

    with standardised scores x: the second term is worth one row, and leaves grades without labels a small interval.
    The same is fitted to normal scores (the normal quantiles of the ranks, as a function with up to 64 knots), for
    scores in a unit that odds do not rise evenly in, and taken if it is clearly likelier. Weights are scaled to sum to
    their effective number of rows, ``(sum w)^2 / sum w^2``. Rows whose score is infinite are certain, and left out.

    Parameters
    ----------
    scores : ndarray of shape (N,)
    codes : integer ndarray of shape (N,)
        Grades in ascending order, -1 where the label is missing.
    n_classes : int
        K.
    weight : ndarray of shape (N,), optional
    masks : bool ndarray of shape (R, N), optional
        Rows of each resample.
    frequency : ndarray of shape (N,), optional
        How many rows a row stands for, where the rows are a sample; their weights count it already.

    Returns
    -------
    list of OrdinalMap
        That of all rows, then one per resample, whose fits start from it.

    Raises
    ------
    InvalidParameter
        If the scores of all rows fall as the grades rise, clearly beyond noise.

    Examples
    --------
    >>> import numpy as np
    >>> from metricwise.rules.ordinal_fit import fit_ordinal_maps
    >>> rng = np.random.default_rng(0)
    >>> score = rng.normal(size=5000)
    >>> grade = np.digitize(2 * score + rng.logistic(size=5000), [-1.0, 1.0])
    >>> (fitted,) = fit_ordinal_maps(score, grade, 3)
    >>> round(fitted.slope, 1), fitted.intercepts.round(1)
    (2.0, array([-1.,  1.]))
    """
    used = (codes >= 0) & np.isfinite(scores)
    if weight is not None:
        used &= weight > 0
    if not used.any():
        raise InvalidParameter("y", "have a label for at least one row with a finite score")
    rows = _Rows.of(np.asarray(scores[used], dtype=np.float64), codes[used], n_classes)
    rows = replace(rows, weight=_taken(weight, used), frequency=_taken(frequency, used))
    theta, unit = _fit_all(rows)
    if masks is not None and len(masks):
        counts = np.concatenate([rows.counts(kept) for kept in masks[:, used]])
        theta = np.concatenate([theta, _newton(_Problem(unit.scores, counts), np.repeat(theta, len(masks), axis=0))])
    return [unit.make_map(float(np.exp(row[0])), row[1:]) for row in theta]


def _taken(values: FloatArray | None, rows: BoolArray) -> FloatArray | None:
    return None if values is None else values[rows]


@dataclass(frozen=True, eq=False)
class _Unit:
    """Scores (B,) in a unit that is fitted, and the map in the user's unit from slope and intercepts in this one."""

    scores: FloatArray
    make_map: Callable[[float, FloatArray], OrdinalMap]


def _fit_all(rows: _Rows) -> tuple[FloatArray, _Unit]:
    """Return the parameters (1, K) of the fit to all rows, and its unit."""
    units, counts = rows.units, rows.counts(None)
    problems = [_Problem(unit.scores, counts) for unit in units]
    if all(problem.is_reversed for problem in problems):
        raise InvalidParameter(
            "proba",
            problem="larger must mean more of the class, but these scores fall as the grades rise",
            remedy="pass -scores",
        )
    fits = [_newton(problem, problem.start()) for problem in problems]
    values = [problem.evaluate(theta, np.arange(1))[0][0] for problem, theta in zip(problems, fits, strict=True)]
    likelier = -1 if values[-1] < values[0] - _MIN_GAIN else 0
    return fits[likelier], units[likelier]


@dataclass(frozen=True, eq=False)
class _Rows:
    """Rows with a label and a finite score; `centers` (B,) are the scores, merged if many, `place` (N,) their rows'."""

    centers: FloatArray
    place: NDArray[np.intp]
    codes: NDArray[Any]
    n_classes: int
    weight: FloatArray | None = None
    frequency: FloatArray | None = None

    @classmethod
    def of(cls, scores: FloatArray, codes: NDArray[Any], n_classes: int) -> _Rows:
        distinct, place = np.unique(scores, return_inverse=True)
        place = place.reshape(-1)
        if len(distinct) <= _MAX_BINS:
            return cls(distinct, place, codes, n_classes)
        rows = np.bincount(place)
        quantile = (np.cumsum(rows) - rows / 2) * _MAX_BINS // len(scores)
        _, part = np.unique(quantile, return_inverse=True)
        place = part.reshape(-1)[place]
        return cls(np.bincount(place, scores) / np.bincount(place), place, codes, n_classes)

    def counts(self, kept: BoolArray | None) -> FloatArray:
        """Return the effective rows of each grade at each score, (1, B, K), smoothed, of the rows kept or of all."""
        place, codes, weight, frequency = self.place, self.codes, self.weight, self.frequency
        if kept is not None:
            place, codes, weight, frequency = place[kept], codes[kept], _taken(weight, kept), _taken(frequency, kept)
        shape = (1, len(self.centers), self.n_classes)
        cells = place * self.n_classes + codes
        counts = np.bincount(cells, weight, shape[1] * shape[2]).reshape(shape).astype(np.float64)
        if weight is not None and counts.any():
            counts *= counts.sum() / np.sum(weight**2 if frequency is None else weight**2 / frequency)
        shares = counts.sum(axis=2, keepdims=True) / counts.sum() if counts.any() else 1 / len(self.centers)
        return np.asarray(counts + _SMOOTHING / self.n_classes * shares)

    @cached_property
    def _share(self) -> FloatArray:
        """The share (B,) of all rows at each score."""
        mass = np.bincount(self.place, self.weight, len(self.centers)).astype(np.float64)
        return np.asarray(mass / mass.sum())

    @property
    def units(self) -> list[_Unit]:
        """The unit of the score, standardised, and that of normal scores, if there are enough to tell."""
        center, scale = self._location

        def of_score(slope: float, intercepts: FloatArray) -> OrdinalMap:
            return OrdinalMap(slope / scale, np.maximum.accumulate(intercepts + slope / scale * center))

        units = [_Unit((self.centers - center) / scale, of_score)]
        knots, heights = self._normal_knots
        if len(knots) > 2 and (np.diff(knots) > 0).all():
            unit_map = OrdinalMap(1.0, np.zeros(1), knots, heights)
            units.append(
                _Unit(
                    unit_map.change_unit(self.centers),
                    lambda slope, intercepts: OrdinalMap(slope, intercepts, knots, heights),
                )
            )
        return units

    @property
    def _normal_knots(self) -> tuple[FloatArray, FloatArray]:
        """Scores at the ends and at evenly spaced shares of the rows, and the normal quantiles of these shares."""
        levels = np.cumsum(self._share) - self._share / 2
        n_knots = min(_MAX_KNOTS, len(levels))
        shares = (np.arange(n_knots) + 0.5) / n_knots
        shares = shares[(shares > levels[0]) & (shares < levels[-1])]
        shares = np.concatenate([levels[:1], shares, levels[-1:]])
        heights = np.array([NormalDist().inv_cdf(share) for share in shares])
        return np.interp(shares, levels, self.centers), heights

    @property
    def _location(self) -> tuple[float, float]:
        """Mean and standard deviation of the scores; a deviation of 1 where there is none."""
        center = float(self._share @ self.centers)
        scale = float(np.sqrt(self._share @ (self.centers - center) ** 2))
        return center, scale if scale > 1e-12 * abs(center) else 1.0


@dataclass(frozen=True, eq=False)
class _Problem:
    """The penalised likelihood of R fits by theta = (log slope, intercepts), (R, K).

    It is that of K - 1 logistic regressions, of grade k + 1 against grade k, which share a slope, and a function of
    the distances of neighbouring intercepts: convex in slope and intercepts.

    Parameters
    ----------
    scores : ndarray of shape (B,)
    counts : ndarray of shape (R, B, K)
    """

    scores: FloatArray
    counts: FloatArray

    def start(self) -> FloatArray:
        """Return intercepts that suit the shares of the grades, with a slope of 1."""
        theta = self.flat()
        theta[:, 1:] *= np.sqrt(1 + 3 / np.pi**2)  # what a slope of 1 adds to the logistic distribution's variance
        return theta

    def flat(self) -> FloatArray:
        """Return the log-odds of the shares of the grades as intercepts, and a log slope of 0."""
        shares = np.cumsum(self.counts.sum(axis=1), axis=1)
        below, total = shares[:, :-1], shares[:, -1:]
        return np.concatenate([np.zeros((len(shares), 1)), np.log(below / (total - below))], axis=1)

    @property
    def is_reversed(self) -> bool:
        """Whether the likelihood of the first fit clearly rises from a slope of 0 to negative ones."""
        _, gradient, hessian = self.in_slope(np.zeros(1), self.flat()[:1, 1:], np.arange(1))
        by_intercepts = np.linalg.solve(hessian[0, 1:, 1:], hessian[0, 1:, 0])
        information = hessian[0, 0, 0] - hessian[0, 0, 1:] @ by_intercepts
        return bool(information > 0 and gradient[0, 0] > _REVERSED * np.sqrt(information))

    def evaluate(self, theta: FloatArray, fits: NDArray[np.intp]) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return value (F,), gradient (F, K) and a positive definite Hessian (F, K, K) of some fits."""
        slope = np.exp(theta[:, 0])
        value, gradient, hessian = self.in_slope(slope, theta[:, 1:], fits)
        by_slope = slope * gradient[:, 0]
        gradient[:, 0] = by_slope + theta[:, 0] / _PRIOR_DEVIATION**2
        hessian[:, 0, :] *= slope[:, None]
        hessian[:, :, 0] *= slope[:, None]
        # At the optimum the first summand is that of the prior; where it is negative, the Hessian may be indefinite.
        hessian[:, 0, 0] += np.maximum(by_slope, 0.0) + 1 / _PRIOR_DEVIATION**2
        return value + 0.5 * (theta[:, 0] / _PRIOR_DEVIATION) ** 2, gradient, hessian

    def in_slope(
        self, slope: FloatArray, intercepts: FloatArray, fits: NDArray[np.intp]
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the same of the likelihood alone, by the slope instead of its logarithm."""
        counts, k = self.counts[fits], intercepts.shape[1] + 1
        below, above = counts[:, :, :-1], counts[:, :, 1:]
        odds = slope[:, None, None] * self.scores[:, None] - intercepts[:, None, :]
        share = 1 / (1 + np.exp(np.clip(-odds, -700.0, 700.0)))
        value = np.sum(above * np.logaddexp(0.0, -odds) + below * np.logaddexp(0.0, odds), axis=(1, 2))
        residual = (below + above) * share - above
        curvature = (below + above) * share * (1 - share)
        gradient, hessian = np.empty((len(fits), k)), np.zeros((len(fits), k, k))
        gradient[:, 0] = np.einsum("b,rbk->r", self.scores, residual)
        gradient[:, 1:] = -residual.sum(axis=1)
        hessian[:, 0, 0] = np.einsum("b,rbk->r", self.scores**2, curvature)
        hessian[:, 0, 1:] = hessian[:, 1:, 0] = -np.einsum("b,rbk->rk", self.scores, curvature)
        inner = np.arange(1, k)
        hessian[:, inner, inner] = curvature.sum(axis=1)
        return self._add_widths(intercepts, counts.sum(axis=1)[:, 1:-1], value, gradient, hessian)

    @staticmethod
    def _add_widths(
        intercepts: FloatArray, counts: FloatArray, value: FloatArray, gradient: FloatArray, hessian: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Add what the distances of intercepts contribute: for a grade with n rows, ``-n log(1 - exp(-distance))``."""
        width = np.diff(intercepts, axis=1)
        crossed = (width <= 0).any(axis=1)
        width = np.where(width > 0, width, 1.0)
        value = value - np.sum(counts * np.log(-np.expm1(-width)), axis=1)
        slope = -counts / np.expm1(width)
        curvature = counts / (4 * np.sinh(np.minimum(width / 2, 300.0)) ** 2)
        gradient[:, 2:] += slope
        gradient[:, 1:-1] -= slope
        upper = np.arange(2, intercepts.shape[1] + 1)
        hessian[:, upper, upper] += curvature
        hessian[:, upper - 1, upper - 1] += curvature
        hessian[:, upper, upper - 1] -= curvature
        hessian[:, upper - 1, upper] -= curvature
        return np.where(crossed, np.inf, value), gradient, hessian


def _newton(problem: _Problem, start: FloatArray) -> FloatArray:
    """Minimise by damped Newton steps from `start` (R, K); return the parameters (R, K)."""
    theta = start.copy()
    left = np.arange(len(theta))
    value, gradient, hessian = problem.evaluate(theta, left)
    for _ in range(_MAX_STEPS):
        step = -np.linalg.solve(hessian, gradient[..., None])[..., 0]
        gain = -(gradient * step).sum(axis=1)
        done = gain <= 2 * _TOL
        theta[left[done]] += step[done]  # so short a step needs no check
        left, value, step, gain = left[~done], value[~done], step[~done], gain[~done]
        if len(left) == 0:
            break
        theta[left], value, gradient, hessian = _descend(problem, left, theta[left], value, step, gain)
    return theta


def _descend(
    problem: _Problem, fits: NDArray[np.intp], theta: FloatArray, value: FloatArray, step: FloatArray, gain: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Halve steps until they pay; return the parameters, and what `evaluate` returns there."""
    size = np.ones(len(fits))
    trial = theta + step
    new = problem.evaluate(trial, fits)
    while True:
        worse = (new[0] > value - 1e-4 * size * gain + 1e-12 * np.abs(value)) & (size > _MIN_STEP)
        if not worse.any():
            return trial, *new
        size[worse] /= 2
        trial[worse] = theta[worse] + size[worse, None] * step[worse]
        for values, again in zip(new, problem.evaluate(trial[worse], fits[worse]), strict=True):
            values[worse] = again
