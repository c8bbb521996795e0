"""Dinkelbach's iteration for ratios."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ..core.losses import Loss
from ..core.notes import NoteKind, note_list
from ..metrics.objective import Objective, Ratio
from ..oracles.base import Oracle
from .base import BaseSolver, FloatArray, Needs, run
from .ratios import certify, loss_at, ratio_of
from .result import Outcome, SolverResult, finish


@dataclass(frozen=True, eq=False)
class _State:
    """g : where the last rules were taken; reached : where to go next; sound : last g whose rule was not empty.

    before : where the rules before those were taken.
    """

    g: FloatArray
    reached: FloatArray
    sound: FloatArray
    before: FloatArray
    history: tuple[float, ...]


@dataclass(frozen=True)
class Dinkelbach(BaseSolver):
    """Maximise ``<A, C> / <B, C>`` by setting g to the ratio of the rule of the loss ``g B - A``, repeatedly.

    The iteration starts at the ratio of argmax and converges superlinearly, in a few passes. Every pass updates the g
    of every block of outputs, so that macro-averages over many outputs take no more passes than a single output.

    Guarantee: with expected confusion, the ratio never decreases and converges to the best over all rules. With labels,
    it ends at a fixed point up to `tol`, or oscillates; the last iterate is returned, not the best one seen, because it
    generalises better. If rules near the best g have an empty denominator (precision), g is halved back and ends within
    `tol` below it. Do not use it with badly calibrated probabilities, where it can do worse than argmax.

    Parameters
    ----------
    tol : float, default=1e-5
        Stop when no g changes by more than this; with expected confusion, the error is then of the order of its square.
    max_iter : int, default=50
        Maximum number of steps.

    See Also
    --------
    Path : Exact with labels.
    Bisection : The paper's algorithm.

    Examples
    --------
    >>> import metricwise as mw
    >>> solution = mw.optimize([0.1, 0.35, 0.4, 0.8], [0, 1, 0, 1], "f1",
    ...     strategy=mw.Strategy(solver="dinkelbach", confusion="expected", recalibrate=False))
    >>> solution.gap < 1e-9
    True
    """

    needs: ClassVar[Needs] = Needs(form="ratio")

    tol: float = 1e-5
    max_iter: int = 50

    def init(self, oracle: Oracle, objective: Objective) -> _State:
        ratio = ratio_of(objective)
        C = oracle.confusions([Loss.argmax(objective.width)])[0]
        g = ratio.value(*ratio.at(objective.grouping.pool(C)))
        sound = np.minimum(np.where(np.isfinite(ratio.low), ratio.low, g - 1.0), g)
        far = np.full_like(g, np.inf)
        return _State(g, far, sound, np.full_like(g, np.nan), (objective.value(C),))

    def step(self, oracle: Oracle, objective: Objective, state: _State) -> _State:
        ratio = ratio_of(objective)
        g = state.g if np.isinf(state.reached).all() else state.reached
        C = oracle.confusions([objective.spread(loss_at(ratio.line, g))])[0]
        pooled = objective.grouping.pool(C)
        # A 0/0 below g (precision without a prediction) is no value to go on from: halve the way back instead.
        empty = _is_empty(ratio, pooled, g)
        reached = np.where(empty, state.sound + (g - state.sound) / 2, ratio.value(*ratio.at(pooled)))
        sound = np.where(empty, state.sound, g)
        return _State(g, reached, sound, state.g, (*state.history, objective.value(C)))

    def done(self, state: _State) -> bool:
        return len(state.history) > self.max_iter or bool(np.all(self._near(state) | _to_and_fro(state)))

    def _near(self, state: _State) -> NDArray[np.bool_]:
        return np.asarray(np.abs(state.reached - state.g) <= self.tol)

    def _end(self, state: _State, certified: bool) -> tuple[Outcome, str]:
        """Say how the iteration ended."""
        near = self._near(state)
        if near.all():
            return Outcome.OPTIMAL if certified else Outcome.LOCAL, f"Converged after {len(state.history)} steps."
        if np.all(near | _to_and_fro(state)):
            apart = np.abs(state.reached - state.g).max()
            status = f"Oscillates between two rules, {apart:.2g} apart in g: use strategy=mw.Strategy(solver='path')."
            return Outcome.LOCAL, status
        status = (
            f"Did not converge to {self.tol:g} in {self.max_iter} steps: raise max_iter or tol, or use "
            "strategy=mw.Strategy(solver='path')."
        )
        return Outcome.NOT_CONVERGED, status

    def search(self, oracle: Oracle, objective: Objective) -> SolverResult:
        """Return the rule at the last g."""
        ratio = ratio_of(objective)
        state = run(self, oracle, objective)
        outcome, status = self._end(state, oracle.certified)
        n_steps = len(state.history)

        def finished(g: FloatArray) -> SolverResult:
            loss = loss_at(ratio.line, g)
            return finish(oracle, objective, loss, status=status, outcome=outcome, history=state.history, level=g)

        # With expected confusion the ratio only rises: its last value is the better g, unless it is one too far.
        # Of two rules that it goes to and fro between, the one of the larger g: not the one it happened to stop at.
        rising = oracle.certified | _to_and_fro(state)
        g = np.where(rising, np.maximum(state.reached, state.sound), state.sound)
        result = finished(g)
        empty = _is_empty(ratio, objective.grouping.pool(result.confusion), g)
        if empty.any():
            result = finished(np.where(empty, state.sound, g))
        result = certify(result, oracle, objective, ratio, g)
        if result.gap is not None and result.gap <= self.tol:  # to and fro between the best rule and an empty one
            notes = note_list(NoteKind.OUTCOME, f"Optimal within {self.tol:g} after {n_steps} steps.")
            return replace(result, outcome=Outcome.OPTIMAL, notes=notes)
        return result


def _to_and_fro(state: _State) -> NDArray[np.bool_]:
    """Groups that go back to where they came from: with labels the iteration may never settle."""
    return np.asarray(state.reached == state.before)


def _is_empty(ratio: Ratio, pooled: FloatArray, g: FloatArray) -> NDArray[np.bool_]:
    """Groups where the rule at g has an empty denominator, and with it a value below g."""
    numerator, denominator = ratio.at(pooled)
    empty = np.abs(denominator) <= 1e-14 * np.abs(ratio.B).max()
    return np.asarray(empty & (ratio.value(numerator, denominator) < g))
