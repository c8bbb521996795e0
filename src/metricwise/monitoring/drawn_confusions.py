"""Confusions of a rule on rows without labels, as they may be: drawn from what is not known of them.

Expected counts behind a calibration, corrected by what reference rows with labels say beyond their own expectation:
once as if class shares had moved, once as if rows had. Must not know metrics.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.probabilities import Probabilities
from ..data.sources.base import Source, SourceBase
from ..data.sources.memory import MemorySource
from ..inference.results import Estimate
from ..inference.spread import Spread, clip_interval
from ..rules.base import Rule, RuleRows
from ..rules.calibration_influence import calibration_influence, softmax_of
from ..rules.stored_calibration import StoredCalibration
from .mixing import Mixing, ShareInfluence
from .shares import logits_of

__all__ = ["DrawnConfusions", "draw_confusions"]

FloatArray = NDArray[np.float64]

N_DRAWS = 64
_FEW_DRAWS = 32  # of more than _MAX_OUTPUTS outputs, whose averages vary less
_MAX_OUTPUTS = 8
_MIN_ROWS, _MAX_ROWS = 500, 20_000  # of each kind that are drawn; of more, a sample
_MAX_ENTRIES = 1 << 20  # rows x outputs x classes that are drawn together, within these bounds
# Factor of the deviations of resampled reference rows: twice their variance, because new rows are of a model that was
# fitted to more rows than those of the folds. On 16 real sets of benchmarks/life, 95 % intervals held in 89 % without.
_REFERENCE_SPREAD = 2**0.5
_MIN_TEMPERATURE_RATIO = 0.05  # of a drawn temperature to the fitted one
_LEAST_SHARE = 1e-9
_QUANTILE = 1.959963984540054 * (1 + 1 / (4 * N_DRAWS))  # of a 95 % interval; the spread of draws is itself estimated


@dataclass(frozen=True, eq=False)
class DrawnConfusions:
    """Confusion tensors of a rule on rows without labels, under two explanations; the first is the estimate.

    Parameters
    ----------
    if_shares_moved, if_rows_moved : ndarray of shape (1 + S, M, D, D)
        Shares of rows by true class and decision; each matrix sums to 1.
    """

    if_shares_moved: FloatArray
    if_rows_moved: FloatArray

    def estimates(
        self, value: Callable[[FloatArray], FloatArray], limits: tuple[float, float]
    ) -> tuple[Estimate, Estimate]:
        """Return estimates of a function of confusion tensors (S, M, D, D) under both explanations."""
        return tuple(_estimate(value(tensors), limits) for tensors in (self.if_shares_moved, self.if_rows_moved))  # type: ignore[return-value]


def _estimate(values: FloatArray, limits: tuple[float, float]) -> Estimate:
    """Return the first value, with an interval by the spread of the others about it."""
    half = _QUANTILE * float(np.sqrt(np.mean((values[1:] - values[1:].mean()) ** 2)))
    return Estimate(*clip_interval(float(values[0]), half, *limits))


def draw_confusions(
    rule: Rule,
    unlabelled: SourceBase,
    source: Source,
    calibration: StoredCalibration,
    shares: FloatArray,
    seed: int,
) -> DrawnConfusions:
    """Draw confusions of a rule on rows without labels.

    Parameters
    ----------
    rule : Rule
    unlabelled : SourceBase
        The rows without labels.
    source : Source
        Reference rows with labels.
    calibration : StoredCalibration
        Of the reference rows.
    shares : ndarray of shape (M, K)
        Estimated class shares of the rows without labels.
    seed : int
    """
    rng = np.random.default_rng(seed)
    n_draws = N_DRAWS if rule.n_outputs <= _MAX_OUTPUTS else _FEW_DRAWS
    max_rows = int(np.clip(_MAX_ENTRIES // (rule.n_outputs * rule.width), _MIN_ROWS, _MAX_ROWS))
    new = _NewRows.read(rule, unlabelled, n_draws, max_rows, rng)
    reference = _Reference.read(rule, source, n_draws, max_rows, rng)
    width = rule.schema.decision_width
    result = np.zeros((2, 1 + n_draws, rule.n_outputs, width, width))
    for m, k in enumerate(rule.n_classes.tolist()):
        drawn = _draw_output(new, reference, calibration, shares[m, :k], m, rng)
        result[:, :, m, :k, : drawn.shape[-1]] = drawn
    return DrawnConfusions(*result)


@dataclass(frozen=True, eq=False)
class _NewRows:
    """Rows without labels: decisions (N, M, D), and how often each is drawn, (S, N)."""

    proba: Probabilities
    decisions: FloatArray
    draws: FloatArray
    sampled: bool

    @classmethod
    def read(cls, rule: Rule, source: SourceBase, n_draws: int, max_rows: int, rng: np.random.Generator) -> _NewRows:
        n_rows = source.n_rows
        sampled = n_rows > max_rows
        taken = np.sort(rng.choice(n_rows, max_rows, replace=False)) if sampled else np.arange(n_rows)
        proba = source.take(taken).proba
        draws = rng.poisson(1.0, (n_draws, proba.n_rows)).astype(np.float64)
        return cls(proba, rule.distribute(RuleRows(proba)), draws, sampled)


@dataclass(frozen=True, eq=False)
class _Reference:
    """Rows with labels: decisions (N, M, D), weights (N,), and the weights of resamples (S, N) in units of these."""

    rows: Any
    decisions: FloatArray
    weight: FloatArray
    draws: FloatArray

    @classmethod
    def read(cls, rule: Rule, source: Source, n_draws: int, max_rows: int, rng: np.random.Generator) -> _Reference:
        rows = source.sample(max_rows)
        spread = Spread.of(MemorySource(rows, source.schema, source.passes))
        weight = np.ones(rows.n_rows) if rows.weight is None else rows.weight
        draws = 1.0 + _REFERENCE_SPREAD * (spread.draws(n_draws, rng) - 1.0)
        return cls(rows, rule.distribute(RuleRows(rows.proba)), weight, draws)


def _draw_output(
    new: _NewRows,
    reference: _Reference,
    calibration: StoredCalibration,
    shares: FloatArray,
    m: int,
    rng: np.random.Generator,
) -> FloatArray:
    """Return the confusions (2, 1 + S, K, D) of one output under both explanations, the estimates first."""
    k, link = len(shares), calibration.link
    codes = reference.rows.codes[:, m]
    labelled = codes >= 0
    true = np.eye(k)[codes[labelled]]
    weight = reference.weight[labelled]
    decided, decided_new = (_of_output(d, m, k, link.n_classes) for d in (reference.decisions[labelled], new.decisions))
    old = calibration.shares[m, :k]
    shown = old > 0
    z_reference, z_new = (logits_of(proba, link, m) for proba in (reference.rows.proba, new.proba))
    fitted = np.append(link.temperature[m], link.bias[m, 1:k] - link.bias[m, 0])
    moves = _parameter_moves(reference, calibration, m)
    share_moves = _share_moves(new, z_new, calibration, shares, moves, m)
    result = []
    for s in range(-1, len(reference.draws)):
        point = s < 0
        drawn_weight = weight if point else weight * reference.draws[s, labelled]
        theta = fitted if point else fitted + moves.of_parameters[s]
        theta = np.append(max(theta[0], _MIN_TEMPERATURE_RATIO * fitted[0]), theta[1:])
        drawn_old = old if point else _shares_of(true, drawn_weight, old)
        drawn_shares = shares if point else _scaled(shares, share_moves[s])
        eta_reference = _probabilities(z_reference[labelled], theta, shown)
        eta_new = _probabilities(z_new, theta, shown)
        total = max(float(drawn_weight.sum()), np.finfo(float).tiny)
        excess = (true - eta_reference).T @ (drawn_weight[:, None] * decided) / total
        ratio = np.divide(drawn_shares, drawn_old, out=np.zeros(k), where=drawn_old > 0)
        eta_moved = eta_new * ratio
        eta_moved /= np.maximum(eta_moved.sum(axis=1, keepdims=True), np.finfo(float).tiny)
        counted = np.ones(len(eta_new)) if point or not new.sampled else new.draws[s]
        taken = counted @ decided_new / max(float(counted.sum()), 1.0)
        by_decision = _decision_ratio(taken, drawn_weight @ decided)
        result.append(
            [
                _corrected(_counts(eta, decided_new, counted, None if point else rng), correction, taken)
                for eta, correction in ((eta_moved, ratio[:, None] * excess), (eta_new, by_decision * excess))
            ]
        )
    return np.swapaxes(np.array(result), 0, 1)


def _of_output(decisions: FloatArray, m: int, n_classes: int, width: int) -> FloatArray:
    """Return the decisions (N, K_m + E) about an output: its classes, then what is no class, which follows padding."""
    return np.concatenate([decisions[:, m, :n_classes], decisions[:, m, width:]], axis=1)


@dataclass(frozen=True, eq=False)
class _Moves:
    """Changes of the calibration in each resample of the reference rows: of (t, b) and of (t, a), (S, K) each."""

    of_parameters: FloatArray
    of_ratios: FloatArray


def _parameter_moves(reference: _Reference, calibration: StoredCalibration, m: int) -> _Moves:
    """Return how the calibration of an output changes in each resample, to first order."""
    influence = calibration_influence(reference.rows, calibration.link, m)
    k = int(reference.rows.proba.n_classes[m])
    if influence is None:
        return _Moves(*np.zeros((2, len(reference.draws), k)))
    more = reference.draws - 1.0
    of_parameters = more @ influence.of_parameters
    of_ratios = of_parameters.copy()
    on_log_shares = more @ influence.of_log_shares
    of_ratios[:, 1:] -= on_log_shares[:, 1:] - on_log_shares[:, :1]
    return _Moves(of_parameters, of_ratios)


def _share_moves(
    new: _NewRows, z: FloatArray, calibration: StoredCalibration, shares: FloatArray, moves: _Moves, m: int
) -> FloatArray:
    """Return how the estimated shares change in each draw, (S, K), to first order."""
    k = len(shares)
    shown = (calibration.shares[m, :k] > 0) & (shares > 0)
    result = np.zeros((len(new.draws), k))
    if shown.sum() < 2:
        return result
    old = calibration.shares[m, :k][shown]
    fitted = np.append(calibration.link.temperature[m], calibration.link.bias[m, 1:k] - calibration.link.bias[m, 0])
    eta = np.maximum(_probabilities(z, fitted, calibration.shares[m, :k] > 0)[:, shown], np.finfo(float).tiny)
    influence = ShareInfluence.of(Mixing(eta / old, old), shares[shown], z[:, shown])
    of_ratios = np.delete(moves.of_ratios, 0, axis=1)  # of a_1, ..., a_{K-1}
    biases = np.column_stack([np.zeros(len(of_ratios)), of_ratios])[:, shown]
    parameters = np.column_stack([moves.of_ratios[:, 0], biases[:, 1:] - biases[:, :1]])
    result[:, shown] = (new.draws - 1.0) @ influence.of_rows + parameters @ influence.of_parameters.T
    return result


def _probabilities(z: FloatArray, theta: FloatArray, shown: NDArray[np.bool_]) -> FloatArray:
    """Return the probabilities (N, K) of logits behind parameters ``(t, b_1, ..., b_{K-1})``."""
    return softmax_of(theta[0] * z + np.append(0.0, theta[1:]), shown)


def _shares_of(true: FloatArray, weight: FloatArray, old: FloatArray) -> FloatArray:
    """Return the class shares (K,) of a resample; a class that it lost keeps its share."""
    drawn = weight @ true / max(float(weight.sum()), np.finfo(float).tiny)
    return np.where(drawn > 0, drawn, old)


def _scaled(shares: FloatArray, change: FloatArray) -> FloatArray:
    """Return changed shares, which stay positive: the change is taken on their logarithms."""
    changed = shares * np.exp(np.clip(change / np.maximum(shares, _LEAST_SHARE), -3.0, 3.0))
    return np.asarray(changed / changed.sum())


def _counts(eta: FloatArray, decided: FloatArray, counted: FloatArray, rng: np.random.Generator | None) -> FloatArray:
    """Return the confusion (K, D) by probabilities, or by labels that are drawn from these."""
    if rng is not None:
        drawn = (np.cumsum(eta, axis=1)[:, :-1] < rng.random(len(eta))[:, None]).sum(axis=1)
        eta = np.eye(eta.shape[1])[drawn]
    return np.asarray(eta.T @ (counted[:, None] * decided) / max(float(counted.sum()), 1.0))


def _decision_ratio(taken: FloatArray, weight: FloatArray) -> FloatArray:
    """Return how much more often each decision (D,) is taken about new rows than about weighted reference rows."""
    before = weight / max(float(weight.sum()), np.finfo(float).tiny)
    return np.divide(taken, before, out=np.zeros_like(taken), where=before > 0)


def _corrected(confusion: FloatArray, correction: FloatArray, taken: FloatArray) -> FloatArray:
    """Return a confusion plus a correction, without negative cells, in which decisions have the shares taken (D,)."""
    result = np.maximum(confusion + correction, 0.0)
    by_decision = result.sum(axis=0)
    result = np.where(by_decision > 0, result, confusion)
    by_decision = result.sum(axis=0)
    return np.asarray(result * np.divide(taken, by_decision, out=np.zeros_like(taken), where=by_decision > 0))
