"""Fitting the link: temperature and bias of each output by penalised maximum likelihood.

Owns one damped Newton method, batched over outputs of equally many classes. Must not know losses or metrics.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..inputs import Probabilities
from ..sampling import draw_rows
from .link import Link

__all__ = ["LINK_ROWS", "fit_link"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

# One row's worth. In 13 synthetic worlds (2, 4 and 10 classes; calibrated, class-balanced, over- and underconfident,
# noisy; 30 to 2,000 rows) strengths from 0.03 to 10, for t and c apart, were compared by the excess held-out log-loss.
# 1 for both was within 3 % of the best mean at every size. A tenth of it for c overfits rare classes (60 % more excess
# at 30 rows, 30 % at 100), three times as much holds back the undoing of class weights.
SHRINKAGE = 1.0
# From this many outputs on they are shrunk towards the link that fits all of them together, five times as strongly.
# With 100 labels of 0.3 to 10 % positives and 500 or 2,000 rows, the macro-F1 of the rules was then as good as or
# better than with the output's own shrinkage, whether the probabilities were calibrated, overconfident or
# class-balanced (by at most 0.003, at 500 rows).
_SHARING = 5
_SHARED_STRENGTH = 5.0
LINK_ROWS = 20_000  # fix K + 1 numbers, if the rarest class has enough of them
_POOL = 100_000  # entries that the common link is fitted to, before those are sampled by class
_MIN_TEMPERATURE = 0.05
_BATCH = 1 << 17  # numbers per batch of outputs: what one Newton step reads stays in cache
_ROOM = 1 << 21  # numbers of one batch that are held beside the logits: with very many classes, few rows at a time
_WIDE = 128
_MAX_STEPS = 50
_TOL = 1e-9  # nats of penalised likelihood left to gain, of all rows together


def fit_link(
    proba: Probabilities,
    codes: NDArray[Any],
    sample_weight: FloatArray | None = None,
    *,
    frequency: FloatArray | None = None,
    shrinkage: float = SHRINKAGE,
    max_rows: int = LINK_ROWS,
) -> Link:
    """Fit a temperature and biases that make probabilities agree with labels.

    For each output the minimum over t and c of

        sum_n w_n * (log sum_k exp(t z_nk + c_k) - t z_ny - c_y)  +  shrinkage / 2 * ((t - 1)^2 + sum_k c_k^2)

    with z = log(max(eta, floor)) and k over the classes that some label shows (of the others the labels say nothing,
    and they keep their odds): convex, and shrunk towards leaving the probabilities as they are. The shrinkage is in
    units of rows: it holds back outputs of few rows and classes that hardly occur, and vanishes with many. Five or more
    outputs with equally many classes are shrunk towards the link that fits all of them together instead, so that rare
    ones borrow strength. Weights are scaled to sum to their effective number of rows, ``(sum w)^2 / sum w^2``.

    Parameters
    ----------
    proba : Probabilities
    codes : integer ndarray of shape (N, M)
        -1 where the label is missing.
    sample_weight : ndarray of shape (N,), optional
    frequency : ndarray of shape (N,), optional
        How many rows a row stands for, where the rows are a sample; their weights count it already. Such rows are as
        good as so many, where other weights make for fewer effective rows.
    shrinkage : float, default=1.0
        Strength of the penalty, positive.
    max_rows : int, default=20_000
        Of more rows a sample is used, stratified by class and always the same (:func:`metricwise.sampling.draw_rows`):
        the few parameters are long since exact.

    Returns
    -------
    Link
        With biases of mean 0 over the classes of each output. An output without labels, or with one class only,
        keeps its probabilities.

    Examples
    --------
    >>> import numpy as np
    >>> from metricwise.inputs import read_proba
    >>> from metricwise.rules import fit_link
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.random(20_000)
    >>> labels = (rng.random(20_000) < truth).astype(int)
    >>> overconfident = truth**2 / (truth**2 + (1 - truth) ** 2)  # doubles the log-odds
    >>> fit_link(read_proba(overconfident), labels[:, None]).temperature.round(1)
    array([0.5])
    """
    if not (np.isfinite(shrinkage) and shrinkage > 0):
        raise ValueError(f"fit_link: shrinkage must be positive, got {shrinkage!r}.")
    if max_rows < 1:
        raise ValueError(f"fit_link: max_rows must be at least 1, got {max_rows!r}.")
    if codes.shape != (proba.n_rows, proba.n_outputs):
        raise ValueError(
            f"fit_link: codes must have shape ({proba.n_rows}, {proba.n_outputs}), as proba has, got {codes.shape}."
        )
    rows = _Rows(proba, codes, sample_weight, frequency).sample(max_rows)
    rows = replace(rows, proba=rows.proba.recalibrated())
    proba, codes = rows.proba, rows.codes
    link = Link.identity(proba.n_outputs, proba.width)
    penalties = {k: _penalty(rows, k, shrinkage) for k in sorted(set(proba.n_classes.tolist()))}
    for block, span in proba.spans():
        counts = proba.n_classes[span]
        for k in sorted(set(counts.tolist())):
            for chosen in _batches(np.flatnonzero(counts == k), len(block), k):
                weights = (rows.weight, rows.frequency)
                problem = _Problem.read(block, codes[:, span], *weights, chosen, link.floor, penalties[k])
                temperature, bias = _newton(problem)
                link.temperature[span.start + chosen] = temperature
                link.bias[span.start + chosen, :k] = bias
    return link


@dataclass(frozen=True, eq=False)
class _Rows:
    """What a link is fitted to; `weight` counts `frequency` already."""

    proba: Probabilities
    codes: NDArray[Any]
    weight: FloatArray | None
    frequency: FloatArray | None

    def sample(self, n_rows: int) -> _Rows:
        if self.proba.n_rows <= n_rows:
            return self
        drawn = draw_rows(self.codes, n_rows, self.proba.n_rows, weight=self.weight)

        def scaled(values: FloatArray | None) -> FloatArray:
            return drawn.frequency if values is None else values[drawn.rows] * drawn.frequency

        frequency = scaled(self.frequency)
        return _Rows(self.proba.take(drawn.rows), self.codes[drawn.rows], scaled(self.weight), frequency)

    def pooled(self, outputs: IntArray, k: int) -> _Rows:
        """Return the entries of outputs of k classes as the rows of one output."""
        outputs = outputs[:_POOL]
        of_these = Probabilities(tuple(self.proba.output(m) for m in outputs), self.proba.n_classes[outputs])
        rows = _Rows(of_these, self.codes[:, outputs], self.weight, self.frequency)
        rows = rows.sample(max(1, _POOL // len(outputs)))
        parts = [part if part.ndim == 2 else part[:, :, :k] for part in rows.proba.blocks]
        together = Probabilities((np.concatenate(parts),), np.array([k], dtype=np.intp))
        weights = (None if values is None else np.tile(values, len(parts)) for values in (rows.weight, rows.frequency))
        return _Rows(together, rows.codes.T.reshape(-1, 1), *weights)


@dataclass(frozen=True, eq=False)
class _Penalty:
    """What the parameters theta = (t, b_1, ..., b_{k-1}), b_j = c_j - c_0, are shrunk towards, and how strongly."""

    center: FloatArray
    strength: float

    def matrix(self) -> FloatArray:
        """(t - t_0)^2 and sum_k of the squared centred biases, as a quadratic form in theta - center."""
        k = len(self.center)
        form = np.eye(k) - 1.0 / k
        form[0] = form[:, 0] = 0.0
        form[0, 0] = 1.0
        return self.strength * form


def _penalty(rows: _Rows, k: int, shrinkage: float) -> _Penalty:
    """Shrink towards no change; where many outputs have k classes, towards the link that fits them all together."""
    outputs = np.flatnonzero(rows.proba.n_classes == k)
    if len(outputs) < _SHARING:
        return _Penalty(np.eye(1, k)[0], shrinkage)
    pool = rows.pooled(outputs, k)
    link = fit_link(pool.proba, pool.codes, pool.weight, frequency=pool.frequency, shrinkage=shrinkage)
    bias = link.bias[0, 1:k] - link.bias[0, 0]
    return _Penalty(np.append(link.temperature, bias), shrinkage * _SHARED_STRENGTH)


def _batches(outputs: IntArray, n_rows: int, k: int) -> list[IntArray]:
    size = max(1, _BATCH // (n_rows * (k - 1)))
    return [outputs[start : start + size] for start in range(0, len(outputs), size)]


@dataclass(frozen=True, eq=False)
class _Problem:
    """The penalised likelihood of B outputs of k classes, with logits relative to class 0.

    logits : (B, k - 1, N); weight : (B, N); counts : (B, k - 1), weight of each class but class 0; slope : (B,), the
    weighted sum of the logits of the true classes; fixed : (B,), outputs with nothing to learn from; shown : (B, k),
    classes that some label has. The likelihood is that of the labels among those: a class that no label shows says
    nothing of its bias, and keeps what the penalty gives it.
    """

    logits: FloatArray
    weight: FloatArray
    counts: FloatArray
    slope: FloatArray
    fixed: NDArray[np.bool_]
    shown: NDArray[np.bool_]
    penalty: _Penalty

    @classmethod
    def read(
        cls,
        block: NDArray[Any],
        codes: NDArray[Any],
        sample_weight: FloatArray | None,
        frequency: FloatArray | None,
        outputs: IntArray,
        floor: float,
        penalty: _Penalty,
    ) -> _Problem:
        k = len(penalty.center)
        logits = _relative_logits(block, outputs, k, floor)
        true = codes[:, outputs].T
        weight = (true >= 0).astype(np.float64)
        if sample_weight is not None:
            weight *= sample_weight
            # In effective rows; an output whose observed rows all weigh nothing has none.
            per_row = weight if frequency is None else weight / frequency
            total, squares = weight.sum(axis=1), (weight * per_row).sum(axis=1)
            weight *= np.divide(total, squares, out=np.zeros_like(total), where=squares > 0)[:, None]
        place = np.maximum(true, 0) + k * np.arange(len(true))[:, None]
        sums: FloatArray = np.bincount(place.ravel(), weight.ravel(), minlength=k * len(true)).astype(np.float64)
        counts = sums.reshape(-1, k)
        own = np.take_along_axis(logits, np.maximum(true, 1)[:, None] - 1, axis=1)[:, 0]
        slope = (weight * np.where(true > 0, own, 0.0)).sum(axis=1)
        shown = counts > 0
        fixed = shown.sum(axis=1) < 2
        return cls(logits, weight, counts[:, 1:], slope, fixed, shown | fixed[:, None], penalty)

    def evaluate(self, theta: FloatArray, curved: bool = True) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return value (B,), gradient (B, k) and Hessian (B, k, k) at theta = (t, b_1, ..., b_{k-1}).

        Without `curved` the Hessian, which costs most, is the penalty's alone.
        """
        size = theta.shape[1]
        gradient = np.concatenate([-self.slope[:, None], -self.counts], axis=1)
        value = (theta * gradient).sum(axis=1)
        hessian = np.zeros((len(theta), size, size))
        step = max(1, _ROOM // (len(theta) * (size - 1)))
        for start in range(0, self.logits.shape[2], step):
            value += self._add(theta, slice(start, start + step), gradient, hessian if curved else None)
        penalty = self.penalty.matrix()
        away = theta - self.penalty.center
        value += 0.5 * np.einsum("bi,ij,bj->b", away, penalty, away)
        gradient += away @ penalty
        hessian += penalty
        return value, gradient, hessian

    def _add(self, theta: FloatArray, rows: slice, gradient: FloatArray, hessian: FloatArray | None) -> FloatArray:
        """Add what some of the rows add to gradient and Hessian; return what they add to the value."""
        t, bias, logits, weight = theta[:, 0], theta[:, 1:], self.logits[:, :, rows], self.weight[:, rows]
        p = logits * t[:, None, None]
        p += bias[:, :, None]
        if not self.shown.all():
            p[~self.shown[:, 1:]] = -np.inf
        first = np.where(self.shown[:, :1], 0.0, -np.inf)
        top = np.maximum(p.max(axis=1), first)
        p -= top[:, None]
        np.exp(p, out=p)
        total = p.sum(axis=1) + np.exp(first - top)
        p /= total[:, None]
        mean = (p * logits).sum(axis=1)
        weighted = p * weight[:, None]
        mass = weighted.sum(axis=2)
        gradient[:, 0] += (weight * mean).sum(axis=1)
        gradient[:, 1:] += mass
        if hessian is not None:
            others = np.arange(1, theta.shape[1])
            # Of very many classes in single precision: the step is corrected by the next gradient, which is exact.
            single = len(others) > _WIDE
            left, right = (weighted.astype(np.float32), p.astype(np.float32)) if single else (weighted, p)
            hessian[:, 1:, 1:] -= left @ right.transpose(0, 2, 1)
            hessian[:, others, others] += mass
            weighted *= logits - mean[:, None]
            cross = weighted.sum(axis=2)
            hessian[:, 0, 0] += (weighted * logits).sum(axis=(1, 2))
            hessian[:, 0, 1:] += cross
            hessian[:, 1:, 0] += cross
        return np.asarray((weight * (top + np.log(total))).sum(axis=1))


def _relative_logits(block: NDArray[Any], outputs: IntArray, k: int, floor: float) -> FloatArray:
    """log(eta_j / eta_0) for j = 1..k-1, of shape (B, k - 1, N)."""
    if block.ndim == 2:
        positive = block[:, outputs].T.astype(np.float64)[:, None]
        return np.log(np.maximum(positive, floor)) - np.log(np.maximum(1.0 - positive, floor))
    eta = np.ascontiguousarray(np.moveaxis(block[:, outputs, :k], 0, 2), dtype=np.float64)
    np.log(np.maximum(eta, floor, out=eta), out=eta)
    eta[:, 1:] -= eta[:, :1]
    return eta[:, 1:]


def _newton(problem: _Problem) -> tuple[FloatArray, FloatArray]:
    """Minimise by damped Newton steps; return temperature (B,) and centred bias (B, k)."""
    n_outputs, n_others = problem.counts.shape
    theta = np.zeros((n_outputs, n_others + 1))
    theta[:, 0] = 1.0  # where outputs with nothing to learn from stay
    theta[~problem.fixed] = problem.penalty.center
    value, gradient, hessian = problem.evaluate(theta)
    done = problem.fixed.copy()
    for _ in range(_MAX_STEPS):
        step = _step(theta, gradient, hessian)
        gain = -(gradient * step).sum(axis=1)
        size = np.where(done, 0.0, 1.0)
        done |= gain <= 2 * _TOL
        while True:
            # Flattened by at most one bound, the path from theta to the trial point stays one of descent.
            trial = theta + size[:, None] * step
            np.maximum(trial[:, 0], _MIN_TEMPERATURE, out=trial[:, 0])
            new = problem.evaluate(trial, curved=not done.all())
            worse = new[0] > value - 1e-4 * size * gain + 1e-12 * np.abs(value)
            worse &= (size > 1e-6) & ~done
            if not worse.any():
                break
            size[worse] /= 2
        theta, (value, gradient, hessian) = trial, new
        if done.all():
            break
    bias = np.concatenate([np.zeros((n_outputs, 1)), theta[:, 1:]], axis=1)
    return theta[:, 0], bias - bias.mean(axis=1, keepdims=True)


def _step(theta: FloatArray, gradient: FloatArray, hessian: FloatArray) -> FloatArray:
    """Newton's step; a temperature at its bound that would go below stays there while the biases move on."""
    held = (theta[:, 0] <= _MIN_TEMPERATURE) & (gradient[:, 0] > 0)
    if held.any():
        gradient, hessian = gradient.copy(), hessian.copy()
        gradient[held, 0] = 0.0
        hessian[held, 0, :] = hessian[held, :, 0] = 0.0
        hessian[held, 0, 0] = 1.0
    return np.asarray(-np.linalg.solve(hessian, gradient[..., None])[..., 0], dtype=np.float64)
