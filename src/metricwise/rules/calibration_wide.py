"""Likelihood of temperature scaling of one output with very many classes, over the few that matter in each row.

Of a thousand classes most have next to no probability in a row. They are taken to be alike, as many as they are and of
their mean at about the temperature that is looked for, so that a step costs the entries that are kept and not rows
times classes. Probabilities below the floor all count as the floor, so that nothing is lost where all others are kept.
Where other classes have more than a small share of the rows together, all classes have to be looked at instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .calibration_penalty import Penalty

__all__ = ["WIDE", "KeptEntries", "WideLikelihood", "keep_entries", "minimise_wide"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
BoolArray = NDArray[np.bool_]
Factor = tuple[FloatArray, bool]  # of a Hessian, by Cholesky

WIDE = 100  # classes, from which on a Hessian over all of them costs more than finding the entries that matter
# Where classes that are not kept have more of the probability on average, and are not all at the floor, biases are off
# by a third of a standard error or more. In 8 synthetic worlds of 101 to 1,000 classes they were off by 0.1 standard
# errors with a hundredth, by 0.5 to 1.5 with a tenth, and by 16 with nearly all.
_MAX_OTHERS = 0.01
_MAX_ENTRIES = 32  # that are kept per row, on average
_LEAST_PROBABILITY = 1e-6  # of an entry that is kept: less of a thousand classes is a thousandth of a row
_RAISE = 4.0  # factor of that, while too many entries are kept
_MAX_RAISES = 9  # up to a quarter of a row
_CHUNK = 1 << 20  # numbers that are read at once
_TINY = np.finfo(float).tiny
_MAX_STEPS = 100
_MAX_REMAINING = 0.25  # of what there is to gain after a step: with more, the Hessian is another by now
_LEAST_SIZE = 1e-6  # of a step


@dataclass(frozen=True, eq=False)
class KeptEntries:
    """Logits of the classes that are kept of N rows of one output of K classes, row by row; each row keeps some.

    Parameters
    ----------
    first : ndarray of shape (N,), int
        Position of the first entry of each row.
    row, column : ndarray of shape (E,), int
        Row and class of each entry.
    logit : ndarray of shape (E,)
        Up to a constant of the row.
    rest, level : ndarray of shape (N,)
        Every other class of a row has the odds ``exp(t * rest + level)``.
    true_logit : ndarray of shape (N,)
        Logit of the true class, which is always kept; 0 where the label is missing.
    n_classes : int
    """

    first: IntArray
    row: IntArray
    column: IntArray
    logit: FloatArray
    rest: FloatArray
    level: FloatArray
    true_logit: FloatArray
    n_classes: int

    @property
    def exact(self) -> bool:
        """Whether nothing is lost, at whatever temperature."""
        return not self.level.any()

    def sums(self, values: FloatArray) -> FloatArray:
        """Return the sum of values (E,) over the entries of each row, (N,)."""
        return np.asarray(np.add.reduceat(values, self.first))

    def probabilities(self, t: float, odds: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return probabilities (E,), those of another class per unit of its odds (N,), and sums over classes (N,).

        These are the odds of all other classes, and the total of a row, which all is divided by.
        """
        p = np.exp(t * self.logit) * odds[self.column]
        rest = np.exp(t * self.rest + self.level)
        others = np.maximum(odds.sum() - self.sums(odds[self.column]), 0.0)
        total = np.maximum(self.sums(p) + rest * others, _TINY)
        return p / total[self.row], rest / total, others, total

    def by_class(self, values: FloatArray) -> FloatArray:
        """Return the sum of values (E,) over the entries of each class, (K,)."""
        return np.asarray(np.bincount(self.column, values, minlength=self.n_classes), dtype=np.float64)


def keep_entries(values: NDArray[Any], true: NDArray[Any], floor: float, temperature: float = 1.0) -> KeptEntries:
    """Return the entries of rows (N, K) that are not next to nothing, and those of the true classes.

    Parameters
    ----------
    values : ndarray of shape (N, K)
        Probabilities, or with floor 0 logits.
    true : ndarray of shape (N,), int
        -1 where the label is missing.
    floor : float
        Smaller probabilities count as this.
    temperature : float, default=1.0
        At which the other classes of a row have the odds that they are given.
    """
    n_rows, k = values.shape
    step = max(1, _CHUNK // k)
    least = max(_LEAST_PROBABILITY, floor)
    some = _odds(values[:: max(1, n_rows // step)][:step], floor, temperature)
    for _ in range(_MAX_RAISES):
        if np.count_nonzero(some > least) <= _MAX_ENTRIES * len(some):
            break
        least *= _RAISE
    parts = [
        _kept(values[start : start + step], true[start : start + step], floor, least, temperature)
        for start in range(0, max(n_rows, 1), step)
    ]
    counts, *arrays = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    column, logit, rest, level, true_logit = arrays
    row = np.repeat(np.arange(n_rows), counts)
    return KeptEntries(np.cumsum(counts) - counts, row, column, logit, rest, level, true_logit, k)


def _odds(values: NDArray[Any], floor: float, temperature: float) -> NDArray[Any]:
    """Return probabilities as they are, and those of logits, whose scale is any, behind the temperature.

    The latter are relative to the largest of the row.
    """
    return values if floor > 0.0 else np.asarray(np.exp(temperature * _below_top(values)))


def _below_top(values: NDArray[Any]) -> FloatArray:
    return np.asarray(values - values.max(axis=1, keepdims=True).astype(np.float64))


def _kept(
    values: NDArray[Any], true: NDArray[Any], floor: float, least: float, temperature: float
) -> tuple[NDArray[Any], ...]:
    """Return the number of kept entries of each row, their classes and logits, and what is known of rows."""
    n_rows, k = values.shape
    odds, index, shown = _odds(values, floor, temperature), np.arange(n_rows), np.flatnonzero(true >= 0)
    kept = odds > least
    kept[index, odds.argmax(axis=1)] = True
    kept[shown, true[shown]] = True
    row, column = np.divmod(np.flatnonzero(kept), k)
    counts = np.bincount(row, minlength=n_rows)
    if floor > 0.0:
        logit = np.log(np.maximum(odds[row, column].astype(np.float64), floor))
    else:
        logit = values[row, column].astype(np.float64) - values.max(axis=1)[row]
    lowest = np.log(floor) if floor > 0.0 else np.log(_TINY) / temperature
    rest, level = np.full(n_rows, lowest), np.zeros(n_rows)
    if least > floor:
        others = np.log(np.maximum(odds, floor, dtype=np.float64)) if floor > 0.0 else _below_top(values)
        share = np.exp(temperature * others)
        np.copyto(share, 0.0, where=kept)
        total, n_others = share.sum(axis=1), k - counts
        some = total > k * _TINY  # so that what is divided is no zero
        np.divide((share * others).sum(axis=1), total, out=rest, where=some)
        level[some] = np.log(total[some] / n_others[some]) - temperature * rest[some]
    true_logit = np.zeros(n_rows)
    is_true = column == true[row]
    true_logit[row[is_true]] = logit[is_true]
    return counts, column, logit, rest, level, true_logit


@dataclass(frozen=True, eq=False)
class WideLikelihood:
    """The penalised likelihood of R fits of one output; see `_Problem` of `calibration_fit`.

    Parameters
    ----------
    entries : KeptEntries
    weight : ndarray of shape (R, N)
        Of the rows of each fit, 0 where the label is missing, scaled to effective rows.
    counts : ndarray of shape (R, K)
        Weight of each true class.
    penalty : Penalty
    least : ndarray of shape (R,)
        Smallest temperature.
    """

    entries: KeptEntries
    weight: FloatArray
    counts: FloatArray
    penalty: Penalty
    least: FloatArray

    @classmethod
    def of(
        cls,
        entries: KeptEntries,
        codes: NDArray[Any],
        weight: FloatArray,
        effective_share: FloatArray | None,
        penalty: Penalty,
        least: FloatArray,
    ) -> WideLikelihood:
        """Return the likelihood of fits that weigh rows by weight (R, N), scaled to effective rows."""
        if effective_share is not None:
            squares = (weight * effective_share).sum(axis=1)
            scale = np.divide(weight.sum(axis=1), squares, out=np.zeros_like(squares), where=squares > 0)
            weight = weight * scale[:, None]
        shown = np.flatnonzero(codes >= 0)
        counts = [np.bincount(codes[shown], of_fit[shown], minlength=entries.n_classes) for of_fit in weight]
        return cls(entries, weight, np.stack(counts), penalty, np.repeat(least, len(weight)))

    @property
    def fixed(self) -> BoolArray:
        """Fits with nothing to learn from, (R,)."""
        return np.asarray((self.counts > 0).sum(axis=1) < 2)

    def evaluate(self, theta: FloatArray, fits: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return value (F,), gradient (F, K) and Hessian (F, K, K) of some fits at theta = (t, b_1, ..., b_{K-1})."""
        parts = [self._sums(parameters, fit, True) for parameters, fit in zip(theta, fits.tolist(), strict=True)]
        value, gradient, hessian = (np.stack(arrays) for arrays in zip(*parts, strict=True))
        self.penalty.add(theta, value, gradient, hessian)
        return value, gradient, hessian

    def slope(self, theta: FloatArray, fit: int) -> tuple[float, FloatArray]:
        """Return value and gradient (K,) of one fit."""
        value, gradient, _ = self._sums(theta, fit, False)
        away = theta - self.penalty.center
        pull = self.penalty.matrix @ away
        return float(value + 0.5 * pull @ away), gradient + pull

    def loses(self, theta: FloatArray, limit: float = _MAX_OTHERS) -> bool:
        """Whether classes that are not kept have more than so much of the probability of the rows of the first fit."""
        if self.entries.exact:
            return False
        odds, _ = _odds_of(np.append(0.0, theta[1:]), self.counts[0])
        _, rest, others, _ = self.entries.probabilities(theta[0], odds)
        return bool(self.weight[0] @ (rest * others) > limit * self.weight[0].sum())

    def _sums(self, theta: FloatArray, fit: int, curved: bool) -> tuple[Any, FloatArray, FloatArray]:
        """Return value, gradient (K,) and, if it is asked for, Hessian (K, K) of one fit, without the penalty."""
        entries, w, counts = self.entries, self.weight[fit], self.counts[fit]
        t, bias = theta[0], np.append(0.0, theta[1:])
        odds, top = _odds_of(bias, counts)
        p, rest, others, total = entries.probabilities(t, odds)
        mean = entries.sums(p * entries.logit) + rest * others * entries.rest
        value = w @ (np.log(total) + top) - t * (w @ entries.true_logit) - bias @ counts

        # Probabilities are those of all classes by their odds, and at the kept entries what these have besides.
        beside = p - rest[entries.row] * odds[entries.column]
        w_rest = w * rest
        mass = entries.by_class(w[entries.row] * beside) + odds * w_rest.sum()
        gradient = np.append(w @ mean - w @ entries.true_logit, (mass - counts)[1:])
        if not curved:
            return value, gradient, gradient[:0]
        away = w_rest * (entries.rest - mean)
        of_entries = w[entries.row] * p * (entries.logit - mean[entries.row])
        cross = entries.by_class(of_entries - odds[entries.column] * away[entries.row]) + odds * away.sum()
        squares = entries.sums(p * entries.logit**2) + rest * others * entries.rest**2
        hessian = -self._products(beside, w, w_rest, rest, odds)
        hessian[np.diag_indices(len(mass))] += mass
        hessian[0, 1:] = hessian[1:, 0] = cross[1:]
        hessian[0, 0] = w @ (squares - mean**2)
        return value, gradient, hessian

    def _products(
        self, beside: FloatArray, w: FloatArray, w_rest: FloatArray, rest: FloatArray, odds: FloatArray
    ) -> FloatArray:
        """Return the sum over rows of w * P P', (K, K)."""
        from scipy.sparse import csr_array  # a tenth of a second to import: only very many classes pay

        entries, k = self.entries, self.entries.n_classes
        ends = np.append(entries.first, len(entries.row))
        left = csr_array((w[entries.row] * beside, entries.column, ends), shape=(len(w), k))
        right = csr_array((beside, entries.column, ends), shape=(len(w), k))
        out = (left.T @ right).toarray()
        with_rest = np.outer(entries.by_class(w_rest[entries.row] * beside), odds)
        out += with_rest
        out += with_rest.T
        out += (w_rest @ rest) * np.outer(odds, odds)
        return np.asarray(out)


def _odds_of(bias: FloatArray, counts: FloatArray) -> tuple[FloatArray, float]:
    """Return the odds (K,) of biases relative to the largest, and this; classes that no label shows have none."""
    top = float(bias.max())
    return np.where(counts > 0, np.exp(bias - top), 0.0), top


def minimise_wide(whole: WideLikelihood, parts: WideLikelihood | None, start: FloatArray, tol: float) -> FloatArray:
    """Minimise the likelihood of all rows, and from there those of parts of them; return parameters (1 + R, K)."""
    theta, factor = _descend(whole, 0, start, None, tol)
    out = [theta]
    for fit in range(0 if parts is None else len(parts.weight)):
        assert parts is not None
        near = theta.copy()
        hidden = (parts.counts[fit] == 0) & (np.arange(len(theta)) > 0)
        near[hidden] = theta[1:].sum() / len(theta)  # of such a class the labels say nothing
        share = parts.weight[fit].sum() / max(whole.weight[0].sum(), _TINY)
        out.append(_descend(parts, fit, near, None if factor is None else (factor[0] * share**0.5, factor[1]), tol)[0])
    return np.stack(out)


def _descend(
    likelihood: WideLikelihood, fit: int, theta: FloatArray, factor: Factor | None, tol: float
) -> tuple[FloatArray, Factor | None]:
    """Minimise from theta (K,) by Newton's steps; return the parameters and the last factor of a Hessian.

    A Hessian is factored again only where steps by the last one no longer bring the end much nearer.
    """
    from scipy.linalg import cho_factor, cho_solve

    if likelihood.fixed[fit]:
        return np.eye(1, len(theta))[0], None
    least, size, last, theta = likelihood.least[fit], 1.0, np.inf, theta.copy()
    value, gradient = likelihood.slope(theta, fit)
    for _ in range(_MAX_STEPS):
        if factor is None:
            factor = cho_factor(likelihood.evaluate(theta[None], np.array([fit]))[2][0], overwrite_a=True)
            last = np.inf
        step = -cho_solve(factor, gradient)
        if theta[0] <= least and gradient[0] > 0:  # the temperature stays at its bound while the biases move on
            along = cho_solve(factor, np.eye(1, len(theta))[0])
            step -= step[0] / along[0] * along
        gain = -float(gradient @ step)
        if gain <= 2 * tol:
            break
        if gain > _MAX_REMAINING * last:
            factor = None
            continue
        trial = theta + size * step
        trial[0] = max(trial[0], least)
        new_value, new_gradient = likelihood.slope(trial, fit)
        if new_value > value and size > _LEAST_SIZE:
            size /= 2
            continue
        theta, value, gradient, last, size = trial, new_value, new_gradient, gain, 1.0
    return theta, factor
