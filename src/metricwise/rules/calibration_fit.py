"""Fit of temperature scaling by penalised maximum likelihood.

Batched over outputs with equally many classes and over resamples of their rows; kernels take the steps. Must not know
losses or metrics.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import kernels
from ..core.errors import InvalidParameter, entry_point
from ..core.probabilities import Probabilities
from ..core.sampling import draw_rows
from .calibration import TemperatureScaling
from .calibration_penalty import Penalty
from .calibration_wide import WIDE, WideLikelihood, keep_entries, minimise_wide

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
BoolArray = NDArray[np.bool_]

# One row's worth. In 13 synthetic worlds (2, 4 and 10 classes; calibrated, class-balanced, over- and underconfident,
# noisy; 30 to 2,000 rows) strengths from 0.03 to 10, for t and c apart, were compared by the excess held-out log-loss.
# 1 for both was within 3 % of the best mean at every size. A tenth of it for c overfits rare classes (60 % more excess
# at 30 rows, 30 % at 100), three times as much holds back the undoing of class weights.
SHRINKAGE = 1.0
# From this many outputs on they are shrunk towards the link that fits all of them together, five times as strongly.
# With 100 labels of 0.3 to 10 % positives and 500 or 2,000 rows, the macro-F1 of the rules was then as good as or
# better than with the output's own shrinkage, whether the probabilities were calibrated, overconfident or
# class-balanced (by at most 0.003, at 500 rows).
_MIN_POOLED_OUTPUTS = 5
_SHARED_STRENGTH = 5.0
LINK_ROWS = 20_000  # fix K + 1 numbers, if the rarest class has enough of them
_CLASS_ROWS = 50  # so many per class on average are enough for that
_MAX_POOLED_ENTRIES = 100_000  # entries that the common link is fitted to, before those are sampled by class
MIN_TEMPERATURE = 0.05  # less for logits that are further out than the floor of probabilities, in proportion
_START_SPREAD = 3.0  # standard deviation of logits behind the temperature that a fit starts from: steeper, all saturate
_INFINITE_LOGIT = 1e30  # from which on a logit stands for infinity
_FENCE = 1.5  # interquartile ranges from the quartiles to the bounds of logits that are far out, as in a box plot
_MAX_BATCH_LOGITS = 1 << 20  # logits of outputs that are fitted together
_MAX_HESSIAN_ENTRIES = 1 << 21  # numbers of Hessians that are held at once
_WIDE_ROUNDS = 2  # in which classes that are not kept are valued at the temperature reached, where there are any
_MAX_OTHERS_AT_START = 0.5  # probability of classes that are not kept, before biases and temperature are known
_WIDE_TOL = 1e-4  # nats left to gain, of very many classes, whose sampling error is half a nat each


def link_rows(n_classes: int) -> int:
    """Return how many rows a link of so many classes is fitted to, at most."""
    return max(LINK_ROWS, _CLASS_ROWS * n_classes)


@entry_point("fit_link")
def fit_link(
    proba: Probabilities,
    codes: NDArray[Any],
    sample_weight: FloatArray | None = None,
    *,
    frequency: FloatArray | None = None,
    shrinkage: float = SHRINKAGE,
    max_rows: int = LINK_ROWS,
) -> TemperatureScaling:
    """Fit a temperature and biases that make probabilities agree with labels.

    For each output the minimum over t and c of

        sum_n w_n * (log sum_k exp(t z_nk + c_k) - t z_ny - c_y)  +  shrinkage / 2 * ((t - 1)^2 + sum_k c_k^2)

    with z = log(max(eta, floor)), or the logits behind their own map, and k over the classes that some label shows (of
    the others the labels say nothing, and they keep their odds): convex, and shrunk towards leaving the probabilities
    as they are. Logits have no floor; those far out count as their bounds (`bound_logits`). The shrinkage is in
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
        Of more rows a sample is used, stratified by class and always the same
        (:func:`metricwise.core.sampling.draw_rows`): the few parameters are long since exact.

    Returns
    -------
    TemperatureScaling
        With biases of mean 0 over the classes of each output. An output without labels, or with one class only,
        keeps its probabilities.

    Examples
    --------
    >>> import numpy as np
    >>> from metricwise.data.probabilities import read_proba
    >>> from metricwise.rules import fit_link
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.random(20_000)
    >>> labels = (rng.random(20_000) < truth).astype(int)
    >>> overconfident = truth**2 / (truth**2 + (1 - truth) ** 2)  # doubles the log-odds
    >>> fit_link(read_proba(overconfident), labels[:, None]).temperature.round(1)
    array([0.5])
    """
    (link,) = _fit(_Rows(proba, codes, sample_weight, frequency), shrinkage, max_rows)
    return link


@entry_point("fit_links")
def fit_links(
    proba: Probabilities,
    codes: NDArray[Any],
    sample_weight: FloatArray | None = None,
    *,
    masks: BoolArray,
    frequency: FloatArray | None = None,
    shrinkage: float = SHRINKAGE,
    max_rows: int = LINK_ROWS,
) -> list[TemperatureScaling]:
    """Fit a link to each of R resamples of the rows, as :func:`fit_link` does to the rows of one.

    What all of them share is made once: the logits, the sample of rows where there are more than `max_rows`, and with
    five or more outputs the link that they are shrunk towards, which is that of all rows. Each fit starts from that of
    all rows, from where two or three steps are enough.

    Returns
    -------
    list of TemperatureScaling
        One per resample. A class that no label of a resample shows keeps its odds there, and an output of which it
        shows less than two classes its probabilities.
    """
    masks = np.asarray(masks)
    if masks.dtype != np.bool_ or masks.ndim != 2 or masks.shape[1] != proba.n_rows:
        raise InvalidParameter(
            "masks",
            f"be a bool array of shape (R, {proba.n_rows}), a row for each resample",
            f"{masks.dtype} of shape {masks.shape}",
        )
    return _fit(_Rows(proba, codes, sample_weight, frequency, masks), shrinkage, max_rows)


def fit_scale(
    z: FloatArray,
    codes: NDArray[Any],
    sample_weight: FloatArray | None,
    frequency: FloatArray | None,
    center: FloatArray,
    shrinkage: float,
) -> tuple[float, FloatArray]:
    """Return t and c of ``softmax(t * z + c)`` for standardised scores of one output, with a prior on log t.

    Parameters
    ----------
    z : ndarray of shape (N,) or (N, K)
        Of one class or of all.
    codes : integer ndarray of shape (N,)
    sample_weight, frequency : ndarray of shape (N,), optional
    center : ndarray of shape (K,)
        What c - c_0 is shrunk towards.
    shrinkage : float
    """
    k = len(center)
    block = z[:, None] if z.ndim == 1 else z[:, None, :]
    link = kernels.LinkArrays(np.ones(1), np.zeros((1, k)), 0.0)
    proba = Probabilities((block,), np.array([k], dtype=np.intp), link)
    rows = _Rows(proba, codes[:, None], sample_weight, frequency)
    shared = _Shared.read(rows, proba.blocks[0], 0, np.zeros(1, dtype=np.intp), k, 0.0)
    penalty = Penalty(np.append(1.0, center[1:]), shrinkage, of_scale=True)
    ((theta,),) = _resampled(shared, None, penalty)
    return float(theta[0, 0]), np.append(0.0, theta[0, 1:])


def _fit(rows: _Rows, shrinkage: float, max_rows: int) -> list[TemperatureScaling]:
    """Return the link of each resample, or that of all rows where there are none."""
    if not (np.isfinite(shrinkage) and shrinkage > 0):
        raise InvalidParameter("shrinkage", "be positive", repr(shrinkage))
    if max_rows < 1:
        raise InvalidParameter("max_rows", "be at least 1", repr(max_rows))
    proba, codes = rows.proba, rows.codes
    if codes.shape != (proba.n_rows, proba.n_outputs):
        raise InvalidParameter("codes", f"have shape ({proba.n_rows}, {proba.n_outputs}), as proba has", codes.shape)
    if rows.masks is not None and len(rows.masks) == 0:
        return []
    rows = rows.sample(max_rows)
    of_logits = proba.of_logits
    rows = replace(rows, proba=bound_rows(rows.proba, rows.codes) if of_logits else rows.proba.recalibrated())
    floor = 0.0 if of_logits else TemperatureScaling.floor
    n_links = 1 if rows.masks is None else len(rows.masks)
    temperature = np.ones((n_links, proba.n_outputs))
    biases = np.zeros((n_links, proba.n_outputs, proba.width))
    for k in sorted(set(proba.n_classes.tolist())):
        penalty = _penalty(rows, k, shrinkage)
        for block, span in rows.proba.spans():
            if k > WIDE:
                for at in np.flatnonzero(proba.n_classes[span] == k).tolist():
                    theta = _wide(rows, block[:, at, :k], span.start + at, penalty, floor)
                    if theta is None:
                        theta = _batch(rows, block, span.start, np.array([at]), penalty, floor)[:, 0]
                    _put(temperature, biases, np.array([span.start + at]), theta[:, None])
                continue
            for chosen in _batches(np.flatnonzero(proba.n_classes[span] == k), len(block), k):
                theta = _batch(rows, block, span.start, chosen, penalty, floor)
                _put(temperature, biases, span.start + chosen, theta)
    links = [TemperatureScaling(t, bias, floor) for t, bias in zip(temperature, biases, strict=True)]
    return [_behind(link, proba) for link in links] if of_logits else links


def _put(temperature: FloatArray, biases: FloatArray, outputs: IntArray, theta: FloatArray) -> None:
    """Write the parameters (R, B, k) of some outputs into those of R links, with biases of mean 0."""
    bias = np.concatenate([np.zeros((*theta.shape[:2], 1)), theta[:, :, 1:]], axis=2)
    temperature[:, outputs] = theta[:, :, 0]
    biases[:, outputs, : theta.shape[2]] = bias - bias.mean(axis=2, keepdims=True)


def _batch(
    rows: _Rows, block: NDArray[Any], first: int, chosen: IntArray, penalty: Penalty, floor: float
) -> FloatArray:
    """Return the parameters (R, B, k) of each resample for some outputs of a block that begins with output `first`.

    What they share is dropped before that of the next outputs is read.
    """
    shared = _Shared.read(rows, block, first, chosen, len(penalty.center), floor)
    return np.concatenate(list(_resampled(shared, rows.masks, penalty)))


def _wide(rows: _Rows, values: NDArray[Any], m: int, penalty: Penalty, floor: float) -> FloatArray | None:
    """Return the parameters (R, k) of each resample for output m of very many classes, whose numbers are (N, k).

    None where few classes of a row do not say enough.
    """
    codes = rows.codes[:, m]
    weight = (codes >= 0).astype(np.float64)
    weight = weight if rows.weight is None else weight * rows.weight
    least, start = np.array([MIN_TEMPERATURE]), penalty.center.copy()
    if rows.proba.of_logits:
        farthest, spread = _extent(values)
        least *= min(-np.log(TemperatureScaling.floor) / max(farthest, 1e-300), 1.0)
        start[0] = min(start[0], _START_SPREAD / max(spread, 1e-300))
    entries = keep_entries(values, codes, floor, start[0])
    likelihood = WideLikelihood.of(entries, codes, weight[None], rows.effective_share, penalty, least)
    if likelihood.loses(start, _MAX_OTHERS_AT_START):
        return None
    for _ in range(0 if entries.exact else _WIDE_ROUNDS):
        start = minimise_wide(likelihood, None, start, _WIDE_TOL)[0]
        if likelihood.loses(start):
            return None
        entries = keep_entries(values, codes, floor, start[0])
        likelihood = replace(likelihood, entries=entries)
    if rows.masks is None:
        return minimise_wide(likelihood, None, start, _WIDE_TOL)
    parts = WideLikelihood.of(entries, codes, weight * rows.masks, rows.effective_share, penalty, least)
    return minimise_wide(likelihood, parts, start, _WIDE_TOL)[1:]


def _extent(values: NDArray[Any]) -> tuple[float, float]:
    """Return the largest and the standard deviation of logits (N, k) relative to the first class, by parts of rows."""
    step, farthest, total, squares = max(1, _MAX_BATCH_LOGITS // values.shape[1]), 0.0, 0.0, 0.0
    for start in range(0, len(values), step):
        z = values[start : start + step, 1:] - values[start : start + step, :1].astype(np.float64)
        farthest = max(farthest, float(np.abs(z).max(initial=0.0)))
        total, squares = total + float(z.sum()), squares + float((z**2).sum())
    size = len(values) * (values.shape[1] - 1)
    return farthest, float(np.sqrt(max(squares / size - (total / size) ** 2, 0.0)))


def bound_rows(proba: Probabilities, codes: NDArray[Any]) -> Probabilities:
    """Return rows of logits behind their own map, those far out moved to bounds; see `bound_logits`."""
    proba = proba.mapped_logits()
    blocks = []
    for block, span in proba.spans():
        bounded = np.zeros_like(block)
        for at, k in enumerate(proba.n_classes[span].tolist()):
            classes = (slice(None), at) if block.ndim == 2 else (slice(None), at, slice(k))  # without padding
            bounded[classes] = bound_logits(block[classes], codes[:, span.start + at])
        blocks.append(bounded)
    return replace(proba, blocks=tuple(blocks))


def bound_logits(
    z: NDArray[Any], codes: NDArray[Any], least: float = float(-np.log(TemperatureScaling.floor))
) -> FloatArray:
    """Return the logits of one output, those far out moved to bounds.

    A few rows far out, such as a true class of probability 0, would otherwise decide a fit alone, and where one class
    is by itself its numbers say nothing. So the bounds are those of box plots of all classes, where these overlap;
    numbers that stand for infinity are left out of these.
    Logits within `least` of the largest, by default as far as the floor of probabilities is, are taken as they are.

    Parameters
    ----------
    z : ndarray of shape (N,) or (N, K)
        Log-odds, or logits of all classes, of which the distance to the largest of the row is bounded.
    codes : integer ndarray of shape (N,)
    """
    z = z.astype(np.float64)
    if z.shape[1:] == (2,):  # as log-odds, which they are the same as
        odds = bound_logits(z[:, 1] - z[:, 0], codes, least)
        return np.stack([np.zeros_like(odds), odds], axis=1)
    top = z.max(axis=1, keepdims=True) if z.ndim == 2 else np.zeros(1)
    away = z - top
    if np.abs(away).max(initial=0.0) <= least:
        return z
    finite = np.abs(away) < _INFINITE_LOGIT
    groups = [away[codes == k][finite[codes == k]] for k in np.unique(codes[codes >= 0])]
    lows, highs = zip(*([_fences(group) for group in groups if len(group)] or [(0.0, 0.0)]), strict=True)
    for low, high in (sorted((max(lows), min(highs))), (min(lows), max(highs))):
        bounded = np.clip(away, low, high)
        if np.ptp(bounded) > 0:
            return bounded + top
    return np.clip(away, -_INFINITE_LOGIT, _INFINITE_LOGIT) + top


def _fences(values: FloatArray) -> tuple[float, float]:
    """Return the bounds beyond which values are far out in a box plot."""
    first, third = np.quantile(values, (0.25, 0.75))
    return first - _FENCE * (third - first), third + _FENCE * (third - first)


def _behind(link: TemperatureScaling, proba: Probabilities) -> TemperatureScaling:
    """Return the map of logits that is a link behind their own map."""
    assert proba.link is not None
    base = proba.link.part(slice(None), link.n_classes)
    bias = link.temperature[:, None] * base.bias + link.bias
    return TemperatureScaling(link.temperature * base.temperature, bias, 0.0)


@dataclass(frozen=True, eq=False)
class _Rows:
    """What a link is fitted to; `weight` counts `frequency` already, and `masks` (R, N) are resamples."""

    proba: Probabilities
    codes: NDArray[Any]
    weight: FloatArray | None
    frequency: FloatArray | None
    masks: BoolArray | None = None

    def sample(self, n_rows: int) -> _Rows:
        if self.proba.n_rows <= n_rows:
            return self
        drawn = draw_rows(self.codes, n_rows, self.proba.n_rows, weight=self.weight)

        def scaled(values: FloatArray | None) -> FloatArray:
            return drawn.frequency if values is None else values[drawn.rows] * drawn.frequency

        frequency = scaled(self.frequency)
        masks = None if self.masks is None else self.masks[:, drawn.rows]
        return _Rows(self.proba.take(drawn.rows), self.codes[drawn.rows], scaled(self.weight), frequency, masks)

    @property
    def effective_share(self) -> FloatArray | None:
        """What the weight of a row is multiplied by where effective rows are counted; None where all count as one."""
        if self.weight is None:
            return None
        return self.weight if self.frequency is None else self.weight / self.frequency

    def pooled(self, outputs: IntArray, k: int) -> _Rows:
        """Return the entries of outputs of k classes as the rows of one output."""
        outputs = outputs[:_MAX_POOLED_ENTRIES]
        parts = [self.proba.of_outputs(outputs[at : at + 1]).blocks[0] for at in range(len(outputs))]
        link = None if self.proba.link is None else self.proba.link.part(outputs, self.proba.width)
        of_these = Probabilities(tuple(parts), self.proba.n_classes[outputs], link)
        rows = _Rows(of_these, self.codes[:, outputs], self.weight, self.frequency)
        rows = rows.sample(max(1, _MAX_POOLED_ENTRIES // len(outputs)))
        parts = [part if part.ndim == 2 else part[:, :, :k] for part in rows.proba.blocks]
        first_link = None if link is None else link.part(np.arange(1), k)
        together = Probabilities((np.concatenate(parts),), np.array([k], dtype=np.intp), first_link)

        def tiled(values: FloatArray | None) -> FloatArray | None:
            return None if values is None else np.tile(values, len(parts))

        return _Rows(together, rows.codes.T.reshape(-1, 1), tiled(rows.weight), tiled(rows.frequency))


def _penalty(rows: _Rows, k: int, shrinkage: float) -> Penalty:
    """Shrink towards no change; where many outputs have k classes, towards the link that fits them all together."""
    outputs = np.flatnonzero(rows.proba.n_classes == k)
    if len(outputs) < _MIN_POOLED_OUTPUTS:
        return Penalty(np.eye(1, k)[0], shrinkage)
    pool = rows.pooled(outputs, k)
    link = fit_link(pool.proba, pool.codes, pool.weight, frequency=pool.frequency, shrinkage=shrinkage)
    bias = link.bias[0, 1:k] - link.bias[0, 0]
    return Penalty(np.append(link.temperature, bias), shrinkage * _SHARED_STRENGTH)


def _batches(outputs: IntArray, n_rows: int, k: int) -> list[IntArray]:
    size = max(1, min(_MAX_BATCH_LOGITS // (n_rows * (k - 1)), _MAX_HESSIAN_ENTRIES // (k * k)))
    return [outputs[start : start + size] for start in range(0, len(outputs), size)]


@dataclass(frozen=True, eq=False)
class _Shared:
    """What the resamples of B outputs of k classes share.

    logits : (B, k - 1, N), relative to class 0; codes : (N, B); true_logit : (B, N), of the true class, 0 where the
    label is missing; weight : (B, N), 0 there too; row_weight and frequency : (N,) or None; least and start : (B,), the
    smallest temperature and the largest that a fit starts from.
    """

    logits: FloatArray
    codes: NDArray[Any]
    true_logit: FloatArray
    weight: FloatArray
    row_weight: FloatArray | None
    frequency: FloatArray | None
    least: FloatArray
    start: FloatArray

    @classmethod
    def read(cls, rows: _Rows, block: NDArray[Any], first: int, outputs: IntArray, k: int, floor: float) -> _Shared:
        logits = kernels.relative_logits(block, outputs, k, floor)
        codes = rows.codes[:, first + outputs]
        true = np.ascontiguousarray(codes.T)
        true_logit = logits[:, 0] if k == 2 else _true_logits(logits, true)
        true_logit = true_logit * (true > 0)
        weight = (true >= 0).astype(np.float64)
        if rows.weight is not None:
            weight *= rows.weight
        least, start = np.full(len(logits), MIN_TEMPERATURE), np.full(len(logits), np.inf)
        if rows.proba.of_logits:
            farthest = np.abs(logits).max(axis=(1, 2), initial=0.0)
            least *= np.minimum(-np.log(TemperatureScaling.floor) / np.maximum(farthest, 1e-300), 1.0)
            start = _START_SPREAD / np.maximum(logits.std(axis=(1, 2)), 1e-300)
        return cls(logits, codes, true_logit, weight, rows.weight, rows.frequency, least, start)


def _true_logits(logits: FloatArray, true: NDArray[Any]) -> FloatArray:
    """Return the logits (B, N) of the true classes (B, N); any number where there is none."""
    n_outputs, n_others, n_rows = logits.shape
    place = true.astype(np.intp)
    place += (n_others * np.arange(n_outputs) - 1)[:, None]
    place *= n_rows
    place += np.arange(n_rows)
    return np.asarray(logits.reshape(-1).take(place, mode="clip"))


def _resampled(shared: _Shared, masks: BoolArray | None, penalty: Penalty) -> Iterator[FloatArray]:
    """Yield the parameters (R, B, k) of some resamples, or of all rows where there are none and R is 1."""
    n_outputs, k = len(shared.logits), len(penalty.center)
    center = np.tile(penalty.center, (n_outputs, 1))
    center[:, 0] = np.minimum(center[:, 0], shared.start)
    everywhere = kernels.fit_links(_likelihood(shared, None, penalty), center)
    if masks is None:
        yield everywhere[None]
        return
    step = max(1, _MAX_HESSIAN_ENTRIES // (n_outputs * k * k))
    for start in range(0, len(masks), step):
        some = np.ascontiguousarray(masks[start : start + step])
        theta = kernels.fit_links(_likelihood(shared, some, penalty), np.tile(everywhere, (len(some), 1)))
        yield theta.reshape(len(some), n_outputs, k)


def _likelihood(shared: _Shared, taken: BoolArray | None, penalty: Penalty) -> kernels.LinkFits:
    """Return the penalised likelihood of J = R * B fits, of B outputs of k classes in each of R resamples (R, N).

    It is that of the labels among the classes that some label shows: a class that none does says nothing of its bias,
    and keeps what the penalty gives it. None for resamples means all rows, once.
    """
    k = len(penalty.center)
    weight, frequency = shared.row_weight, shared.frequency
    # (R, N): what the rows of each resample weigh.
    each = np.ones((1, len(shared.codes))) if taken is None else taken.astype(np.float64)
    if weight is not None:
        each *= weight
    counts = kernels.tally(shared.codes, each, k).reshape(-1, k)
    # Not by BLAS, whose sums depend on the number of threads.
    slope = np.einsum("rn,bn->rb", each, shared.true_logit).reshape(-1)
    scale = np.ones(len(counts))
    if weight is not None:
        # In effective rows; an output whose observed rows all weigh nothing has none.
        each *= weight if frequency is None else weight / frequency
        total, squares = counts.sum(axis=1), kernels.tally(shared.codes, each, k).reshape(-1, k).sum(axis=1)
        scale = np.divide(total, squares, out=np.zeros_like(total), where=squares > 0)
    labels = counts * scale[:, None]
    shown = labels > 0
    labels[:, 0] = slope * scale
    jobs = np.stack(np.divmod(np.arange(len(scale)), len(shared.logits)), axis=1)
    least = np.tile(shared.least, len(scale) // len(shared.least))
    return kernels.LinkFits(
        shared.logits,
        shared.weight,
        taken,
        jobs,
        shown,
        scale,
        labels,
        penalty.center,
        penalty.matrix,
        penalty.strength_of_scale,
        least,
    )
