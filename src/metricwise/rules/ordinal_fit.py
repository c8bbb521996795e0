"""Fit of proportional odds to one score and labels of K ordered grades, by penalised maximum likelihood.

One damped Newton method, batched over resamples of the rows, for the score in its own unit or in one in which it is
normally distributed. Must not know losses or metrics.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.cached import cached_property
from ..core.errors import InvalidParameter
from ..core.ordinal_map import OrdinalMap

__all__ = ["fit_ordinal_maps"]

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

_MAX_BINS = 1000  # more distinct scores are merged into so many of equal frequency: K numbers are fitted
_MAX_RESAMPLE_BINS = 512  # the same of resamples, which differ by far more than what is lost
# Knots of the unit in which scores are normally distributed. On eight real sets of grades, with two regressors and four
# metrics, the likelier of both units did as well as the score itself (bags of labels and expected counts: 0.6941 for
# both on new rows), and lost little if the score was spoilt by exp(1.5 z) (0.6932), where the score itself had 0.6838.
_MAX_KNOTS = 64
_MIN_GAIN = 3.0  # nats of likelihood for which the map is given these knots
_SMOOTHING = 1.0  # rows, spread over all scores and grades
_PRIOR_DEVIATION = 2.0  # of the logarithm of the slope per standard deviation of the score, around 0
_REVERSED = 3.0  # standard errors below 0 from which a slope is taken for one of scores the wrong way round
_INFINITE_SCORE = 1e30  # from which on a score stands for infinity
_MAX_STEPS = 60
_TOL = 1e-6  # nats of penalised likelihood that a last step would gain, of all rows together; it is taken unchecked
_RESAMPLE_TOL = 1e-3  # the same of a resample: what the last step leaves is far below what resamples differ by
_LOGISTIC_DEVIATION = np.pi / np.sqrt(3.0)  # of the standard logistic distribution
_MIN_STEP = 1e-8  # of a Newton step; what a shorter one would gain is rounding


def fit_ordinal_maps(
    scores: NDArray[Any],
    codes: NDArray[Any],
    n_classes: int,
    weight: FloatArray | None = None,
    masks: BoolArray | None = None,
    frequency: FloatArray | None = None,
    start: OrdinalMap | None = None,
) -> list[OrdinalMap]:
    """Fit probabilities of the grades to all rows, or to each of R resamples of them.

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
    start : OrdinalMap, optional
        A map of about the same rows, whose unit is taken and from which fits begin. Resamples begin from that of all
        rows by default.

    Returns
    -------
    list of OrdinalMap
        That of all rows, or one per resample if there are `masks`.

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
    used = (codes >= 0) & (np.abs(scores) < _INFINITE_SCORE)
    if weight is not None:
        used &= weight > 0
    if not used.any():
        raise InvalidParameter("y", "have a label for at least one row with a finite score")
    n_bins = _MAX_BINS if masks is None else _MAX_RESAMPLE_BINS
    rows = _Rows.of(np.asarray(scores[used], dtype=np.float64), codes[used], n_classes, n_bins)
    rows = replace(rows, weight=_taken(weight, used), frequency=_taken(frequency, used))
    if start is None:
        theta, unit = _fit_all(rows)
        if masks is None:
            return [unit.make_map(theta)]
    else:
        unit = rows.unit_of(start)
        theta = unit.parameters(start)
    counts = rows.counts(np.ones((1, len(rows.codes)), dtype=bool) if masks is None else masks[:, used])
    fits, _ = _newton(_Problem(unit.scores, counts), theta[None], _TOL if masks is None else _RESAMPLE_TOL)
    return [unit.make_map(row) for row in fits]


def _taken(values: FloatArray | None, rows: BoolArray) -> FloatArray | None:
    return None if values is None else values[rows]


def _fit_all(rows: _Rows) -> tuple[FloatArray, _Unit]:
    """Return the parameters (K,) of the fit to all rows, and its unit; all units are fitted as one batch."""
    units = rows.units
    counts = rows.counts(np.ones((1, len(rows.codes)), dtype=bool))
    problem = _Problem(np.stack([unit.scores for unit in units]), np.repeat(counts, len(units), axis=0))
    if problem.is_reversed:
        raise InvalidParameter(
            "proba",
            problem="larger must mean more of the class, but these scores fall as the grades rise",
            remedy="pass -scores",
        )
    theta, values = _newton(problem, problem.start())
    likelier = -1 if values[-1] < values[0] - _MIN_GAIN else 0
    return theta[likelier], units[likelier]


@dataclass(frozen=True, eq=False)
class _Unit:
    """Scores (B,) in a unit that is fitted, ``(u(z) - center) / scale``, with the change of unit u by knots."""

    scores: FloatArray
    center: float = 0.0
    scale: float = 1.0
    knots: FloatArray | None = None
    heights: FloatArray | None = None

    def make_map(self, theta: FloatArray) -> OrdinalMap:
        """Return the map of the user's scores from log slope and intercepts (K,) in this unit."""
        slope = float(np.exp(theta[0])) / self.scale
        return OrdinalMap(slope, np.maximum.accumulate(theta[1:] + slope * self.center), self.knots, self.heights)

    def parameters(self, fitted: OrdinalMap) -> FloatArray:
        """Return log slope and intercepts (K,) in this unit from a map of the user's scores."""
        return np.append(np.log(fitted.slope * self.scale), fitted.intercepts - fitted.slope * self.center)


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
    def of(cls, scores: FloatArray, codes: NDArray[Any], n_classes: int, n_bins: int) -> _Rows:
        distinct, place = np.unique(scores, return_inverse=True)
        place = place.reshape(-1)
        if len(distinct) <= n_bins:
            return cls(distinct, place, codes, n_classes)
        rows = np.bincount(place)
        quantile = (np.cumsum(rows) - rows / 2) * n_bins // len(scores)
        _, part = np.unique(quantile, return_inverse=True)
        place = part.reshape(-1)[place]
        return cls(np.bincount(place, scores) / np.bincount(place), place, codes, n_classes)

    def counts(self, kept: BoolArray) -> FloatArray:
        """Return the effective rows of each grade at each score, smoothed, of the rows kept: (R, B, K) from (R, N)."""
        n_fits, n_cells = len(kept), len(self.centers) * self.n_classes
        fit, row = np.nonzero(kept)
        cells = (self.place * self.n_classes + self.codes)[row] + n_cells * fit
        weight = None if self.weight is None else self.weight[row]
        counts = np.bincount(cells, weight, n_fits * n_cells).astype(np.float64)
        counts = counts.reshape(n_fits, len(self.centers), self.n_classes)
        mass = counts.sum(axis=2, keepdims=True)
        total = mass.sum(axis=1, keepdims=True)
        shares = np.where(total > 0, mass / np.where(total > 0, total, 1.0), 1 / len(self.centers))
        if self.weight is not None:
            squares = kept @ (self.weight**2 if self.frequency is None else self.weight**2 / self.frequency)
            counts *= total / np.where(squares > 0, squares, 1.0)[:, None, None]
        return np.asarray(counts + _SMOOTHING / self.n_classes * shares)

    @cached_property
    def _share(self) -> FloatArray:
        """The share (B,) of all rows at each score."""
        mass = np.bincount(self.place, self.weight, len(self.centers)).astype(np.float64)
        return np.asarray(mass / mass.sum())

    @property
    def units(self) -> list[_Unit]:
        """The unit of the score, standardised, and that of normal scores, if there are enough to tell."""
        knots, heights = self._normal_knots
        if len(knots) > 2 and (np.diff(knots) > 0).all():
            return [self._standardised, self.unit_of(OrdinalMap(1.0, np.zeros(1), knots, heights))]
        return [self._standardised]

    def unit_of(self, fitted: OrdinalMap) -> _Unit:
        """Return the unit of a map: its change of unit, or the standardised score if it has none."""
        if fitted.knots is None:
            return self._standardised
        return _Unit(fitted.change_unit(self.centers), knots=fitted.knots, heights=fitted.heights)

    @property
    def _standardised(self) -> _Unit:
        center, scale = self._location
        return _Unit((self.centers - center) / scale, center, scale)

    @property
    def _normal_knots(self) -> tuple[FloatArray, FloatArray]:
        """Scores at the ends and at evenly spaced shares of the rows, and the normal quantiles of these shares."""
        levels = np.cumsum(self._share) - self._share / 2
        n_knots = min(_MAX_KNOTS, len(levels))
        shares = (np.arange(n_knots) + 0.5) / n_knots
        shares = shares[(shares > levels[0]) & (shares < levels[-1])]
        shares = np.concatenate([levels[:1], shares, levels[-1:]])
        from statistics import NormalDist  # for scores of grades only: it loads fractions, decimals and random numbers

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
    scores : ndarray of shape (B,) or (R, B)
    counts : ndarray of shape (R, B, K)
    """

    scores: FloatArray
    counts: FloatArray

    @cached_property
    def _powers(self) -> FloatArray:
        """1, x and x^2 of the scores x, (1 or R, B, 3)."""
        scores = np.atleast_2d(self.scores)
        return np.stack([np.ones_like(scores), scores, scores**2], axis=-1)

    @cached_property
    def _by_grade(self) -> FloatArray:
        """The counts with scores last in memory, (R, K, B)."""
        return np.ascontiguousarray(np.swapaxes(self.counts, 1, 2))

    @cached_property
    def _neighbours(self) -> FloatArray:
        """The rows of each grade and the next one, (R, K - 1, B)."""
        return np.asarray(self._by_grade[:, :-1] + self._by_grade[:, 1:])

    @cached_property
    def _moments(self) -> FloatArray:
        """The sums of 1, x and x^2 over the rows of each grade, (R, K, 3)."""
        return np.asarray(self._by_grade @ self._powers)

    @cached_property
    def _shares_below(self) -> FloatArray:
        """The shares of rows up to each grade but the last, (R, K - 1)."""
        sums = np.cumsum(self._moments[:, :, 0], axis=1)
        return np.asarray(sums[:, :-1] / sums[:, -1:])

    def start(self) -> FloatArray:
        """Return parameters (R, K) by moments: the covariance of score and grade shows the slope.

        If x explains a share r^2 of the variance of a latent score with grades at its quantiles F_k, the covariance is
        about ``r * sum_k f_k`` with the density f_k there, ``F_k (1 - F_k)`` times the deviation if it is logistic.
        """
        rows, first, second = np.moveaxis(self._moments, -1, 0)
        n_rows, grades = rows.sum(axis=1), np.arange(rows.shape[1])
        mean = first.sum(axis=1) / n_rows
        deviation = np.sqrt(np.maximum(second.sum(axis=1) / n_rows - mean**2, 1e-12))
        covariance = (first - rows * mean[:, None]) @ grades / n_rows
        density = _LOGISTIC_DEVIATION * (self._shares_below * (1 - self._shares_below)).sum(axis=1)
        r = np.clip(covariance / (deviation * density), 0.1, 0.95)
        stretch = 1 / np.sqrt(1 - r**2)
        slope = _LOGISTIC_DEVIATION * r * stretch / deviation
        intercepts = self._flat_intercepts * stretch[:, None] + (slope * mean)[:, None]
        return np.concatenate([np.log(slope)[:, None], intercepts], axis=1)

    @property
    def _flat_intercepts(self) -> FloatArray:
        """The log-odds (R, K - 1) of the shares of the grades: the intercepts of a slope of 0."""
        return np.log(self._shares_below / (1 - self._shares_below))

    @property
    def is_reversed(self) -> bool:
        """Whether the likelihoods of all fits clearly rise from a slope of 0 to negative ones."""
        neighbours = self._moments[:, :-1, 1] + self._moments[:, 1:, 1]
        by_slope = np.sum(neighbours * (1 - self._shares_below) - self._moments[:, 1:, 1], axis=1)
        if (by_slope <= 0).any():
            return False
        n_fits = len(self.counts)
        _, gradient, hessian = self.in_slope(np.zeros(n_fits), self._flat_intercepts, np.arange(n_fits))
        by_intercepts = np.linalg.solve(hessian[:, 1:, 1:], hessian[:, 1:, :1])
        information = hessian[:, 0, 0] - (hessian[:, :1, 1:] @ by_intercepts)[:, 0, 0]
        clearly = gradient[:, 0] > _REVERSED * np.sqrt(np.maximum(information, 0.0))
        return bool(((information > 0) & clearly).all())

    def evaluate(self, theta: FloatArray, fits: NDArray[np.intp]) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return value (F,), gradient (F, K) and a positive definite Hessian (F, K, K) of some fits.

        Parameters of shape (1, K) are those of all of them.
        """
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
        k, whole = intercepts.shape[1] + 1, len(fits) == len(self.counts)
        neighbours = self._neighbours if whole else self._neighbours[fits]
        powers = self._powers if whole or len(self._powers) == 1 else self._powers[fits]
        moments = self._moments[fits]
        odds = slope[:, None, None] * powers[:, None, :, 1] - intercepts[:, :, None]
        share = np.tanh(0.5 * odds)  # of which the sigmoid is a linear function; faster than by exp
        share *= 0.5
        share += 0.5
        rest = 1 - share
        above = moments[:, 1:, 1].sum(axis=1) * slope - np.sum(moments[:, 1:, 0] * intercepts, axis=1)
        softplus = np.maximum(odds, 0.0, out=odds)
        softplus -= np.log(np.maximum(share, rest))
        value = np.einsum("rkb,rkb->r", neighbours, np.broadcast_to(softplus, neighbours.shape)) - above
        residual = (neighbours * share) @ powers[..., :2] - moments[:, 1:, :2]
        curvature = (neighbours * (share * rest)) @ powers
        gradient, hessian = np.empty((len(fits), k)), np.zeros((len(fits), k, k))
        gradient[:, 0] = residual[:, :, 1].sum(axis=1)
        gradient[:, 1:] = -residual[:, :, 0]
        hessian[:, 0, 0] = curvature[:, :, 2].sum(axis=1)
        hessian[:, 0, 1:] = hessian[:, 1:, 0] = -curvature[:, :, 1]
        inner = np.arange(1, k)
        hessian[:, inner, inner] = curvature[:, :, 0]
        return self._add_widths(intercepts, moments[:, 1:-1, 0], value, gradient, hessian)

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


def _newton(problem: _Problem, start: FloatArray, tol: float = _TOL) -> tuple[FloatArray, FloatArray]:
    """Minimise by damped Newton steps from `start`, (R, K) or (1, K); return the parameters (R, K) and values (R,)."""
    left = np.arange(len(problem.counts))
    value, gradient, hessian = problem.evaluate(start, left)
    theta, values = np.broadcast_to(start, gradient.shape).copy(), value.copy()
    for _ in range(_MAX_STEPS):
        step = -np.linalg.solve(hessian, gradient[..., None])[..., 0]
        gain = -(gradient * step).sum(axis=1)
        done = gain <= 2 * tol
        values[left] = value
        theta[left[done]] += step[done]  # so short a step needs no check
        left, value, step, gain = left[~done], value[~done], step[~done], gain[~done]
        if len(left) == 0:
            break
        theta[left], value, gradient, hessian = _descend(problem, left, theta[left], value, step, gain)
    return theta, values


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
