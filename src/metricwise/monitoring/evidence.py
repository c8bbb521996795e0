"""What rows say of a promise: its value, an interval, and the evidence that it is broken, batch after batch.

Owns the state of a promise. Must not know ids, files or where rows come from.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .e_process import EProcess, Tally, bet_unit, value_limit
from .forms import PairedRatio, RatiosMean
from .promises import Promise, Side

__all__ = ["LabelledRows", "PromiseState", "Restart", "advance", "estimate"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]


class LabelledRows(NamedTuple):
    """Rows that a promise may be about.

    Parameters
    ----------
    codes : integer ndarray of shape (n, M)
        True classes, -1 where the label is missing.
    decisions : integer ndarray of shape (n, M)
    batch : integer ndarray of shape (n,)
        The batch in which each was decided.
    groups : integer ndarray of shape (n,), optional
        Sensitive groups.
    """

    codes: IntArray
    decisions: IntArray
    batch: IntArray
    groups: IntArray | None = None


class Restart(NamedTuple):
    """Observations since a batch, for each part of a promise."""

    mark: int
    tallies: tuple[Tally, ...]


class LeftOver(NamedTuple):
    """A row that waits for another to be paired with."""

    code: int
    decision: int
    batch: int


@dataclass(frozen=True, eq=False)
class PromiseState:
    """What is known of a promise.

    Parameters
    ----------
    processes : tuple of EProcess
        Of each side of a promise about a ratio; empty for a mean of ratios.
    restarts : tuple of Restart
        Observations since the first batch and, for a mean of ratios, since the second, the fourth, the eighth...
    n_batches, n_rows : int
        Batches with observations, and rows that these are of.
    left_over : LeftOver, optional
        A row without a pair.
    found, since : int, optional
        The batch in which the promise was found to be broken, and since which it seems to be.
    """

    processes: tuple[EProcess, ...]
    restarts: tuple[Restart, ...] = ()
    n_batches: int = 0
    n_rows: int = 0
    left_over: LeftOver | None = None
    found: int | None = None
    since: int | None = None

    @classmethod
    def begin(cls, promise: Promise) -> PromiseState:
        """Return the state before any row."""
        is_mean = isinstance(promise.form, RatiosMean)
        return cls(() if is_mean else tuple(EProcess.begin() for _ in promise.sides))

    @property
    def log_evidence(self) -> float | None:
        """Logarithm of the larger e-value of all sides; None for a mean of ratios."""
        return max((float(process.log_evidence) for process in self.processes), default=None)


class Observations(NamedTuple):
    """Numerators and denominators (n, P) of a batch, the batch in which each was decided, and a row left over."""

    a: FloatArray
    b: FloatArray
    batch: IntArray
    left_over: LeftOver | None = None


def advance(
    promise: Promise, state: PromiseState, rows: LabelledRows, batch: int, alpha: float
) -> tuple[PromiseState, Observations]:
    """Return the state after further rows, and what was observed; `alpha` is the error of one side of the promise."""
    observations = _observe(promise, state, rows, batch)
    tallies = tuple(Tally.of(a, b) for a, b in zip(observations.a.T, observations.b.T, strict=True))
    state = replace(state, left_over=observations.left_over)
    if all(tally.n_rows == 0 for tally in tallies):
        return state, observations
    matters = ((observations.a != 0) | (observations.b != 0)).any(axis=1)
    mark = int(observations.batch[matters].min())
    grown = replace(
        state,
        processes=_bet(promise, state, tallies[0], mark),
        restarts=_grow(promise, state, tallies, mark),
        n_batches=state.n_batches + 1,
        n_rows=state.n_rows + (2 if isinstance(promise.form, PairedRatio) else 1) * int(matters.sum()),
    )
    return _check(promise, grown, batch, alpha), observations


def _observe(promise: Promise, state: PromiseState, rows: LabelledRows, batch: int) -> Observations:
    places = promise.rows(rows.codes, rows.groups)
    codes, decisions = (promise.of_output(table)[places] for table in (rows.codes, rows.decisions))
    if isinstance(promise.form, PairedRatio):
        return _observe_pairs(promise.form, state.left_over, codes[:, 0], decisions[:, 0], rows.batch[places], batch)
    a, b = zip(*(part.observe(codes, decisions) for part in promise.form.parts), strict=True)
    return Observations(np.stack(a, axis=1), np.stack(b, axis=1), rows.batch[places])


def _observe_pairs(
    form: PairedRatio, left_over: LeftOver | None, codes: IntArray, decisions: IntArray, decided: IntArray, batch: int
) -> Observations:
    """Observe pairs of rows: in a random order, because files are often sorted, and neighbours then alike."""
    order = np.random.default_rng(batch).permutation(len(codes))
    columns = [np.asarray(column[order]) for column in (codes, decisions, decided)]
    if left_over is not None:
        columns = [np.append(value, column) for value, column in zip(left_over, columns, strict=True)]
    n_pairs = len(columns[0]) // 2
    paired = [column[: 2 * n_pairs].reshape(-1, 2) for column in columns]
    last = LeftOver(*(int(column[-1]) for column in columns)) if len(columns[0]) % 2 else None
    a, b = form.observe(paired[0], paired[1])
    return Observations(a[:, None], b[:, None], paired[2].max(axis=1, initial=0), last)


def _bet(promise: Promise, state: PromiseState, tally: Tally, mark: int) -> tuple[EProcess, ...]:
    """Return the evidence against each side after a batch."""
    if isinstance(promise.form, RatiosMean):
        return ()
    processes = []
    for process, side in zip(state.processes, promise.sides, strict=True):
        smallest, largest = promise.form.slack_range(np.array([side.bound]), side.sign)
        factor = tally.log_factor(side.bound, side.sign, float(bet_unit(largest, smallest)[0]))
        processes.append(process.advance(factor, mark))
    return tuple(processes)


def _grow(promise: Promise, state: PromiseState, tallies: tuple[Tally, ...], mark: int) -> tuple[Restart, ...]:
    """Return all observations with those of a batch, at which those of a mean of ratios may be counted anew."""
    grown = tuple(
        Restart(restart.mark, tuple(old.merged(new) for old, new in zip(restart.tallies, tallies, strict=True)))
        for restart in state.restarts
    )
    number = state.n_batches + 1
    anew = number == 1 or (isinstance(promise.form, RatiosMean) and number & (number - 1) == 0)
    return (*grown, Restart(mark, tallies)) if anew else grown


# ------------------------------------------------------------------------------------------------------------- verdicts


def _check(promise: Promise, state: PromiseState, batch: int, alpha: float) -> PromiseState:
    """Return the state with the batch in which the promise was found to be broken, the first time that it is."""
    if state.found is not None:
        return state
    if isinstance(promise.form, RatiosMean):
        broken = _refuting_start(promise, promise.form, state, alpha)
        return state if broken is None else replace(state, found=batch, since=broken)
    refuted = [process for process in state.processes if process.log_evidence >= -np.log(alpha)]
    return replace(state, found=batch, since=int(refuted[0].change)) if refuted else state


def _refuting_start(promise: Promise, form: RatiosMean, state: PromiseState, alpha: float) -> int | None:
    """Return the restart whose rows refute the promise; the error of the k-th is 1 / (k (k + 1)) of all."""
    for k, restart in enumerate(state.restarts, start=1):
        for side in promise.sides:
            if _is_refuted(form, restart.tallies, side, alpha / (k * (k + 1))):
                return restart.mark
    return None


def _is_refuted(form: RatiosMean, tallies: tuple[Tally, ...], side: Side, alpha: float) -> bool:
    value = form.value(np.stack([tally.sums for tally in tallies], axis=1))
    if value is None or side.sign * (value - side.bound) >= 0:  # the limits are no closer to the bound
        return False
    limits = _part_limits(form, tallies, side.sign, alpha)
    return side.sign * (form.combine(limits) - side.bound) < 0


def _part_limits(form: RatiosMean, tallies: tuple[Tally, ...], sign: float, alpha: float) -> list[float]:
    level = alpha / len(tallies)
    return [value_limit(tally, part, sign, level) for tally, part in zip(tallies, form.parts, strict=True)]


def estimate(promise: Promise, state: PromiseState, alpha: float) -> tuple[float, float, float] | None:
    """Return the value on all rows so far, and an interval with confidence ``1 - alpha``; None if it is not known."""
    if not state.restarts:
        return None
    form, tallies = promise.form, state.restarts[0].tallies
    value = form.value(np.stack([tally.sums for tally in tallies], axis=1))
    if value is None:
        return None
    if isinstance(form, RatiosMean):
        low, high = (form.combine(_part_limits(form, tallies, sign, alpha / 2)) for sign in (-1.0, 1.0))
    else:
        low, high = (value_limit(tallies[0], form, sign, alpha / 2) for sign in (-1.0, 1.0))
    return value, min(low, value), max(high, value)
