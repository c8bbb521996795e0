"""Rules that predict the most probable class, or abstain where its probability is below a cut: one walk over all cuts.

These are all that come into question where aim and constraints depend on how many rows are decided, and how many of
these rightly, only: a price of each makes the rule "decide where the largest probability exceeds some number".
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..core.losses import Loss
from ..core.matrices import EMPTY
from ..goals.constraint import ConstraintSystem, PooledConstraint
from ..metrics.base import FractionalLinear, Increasing, Linear
from ..metrics.objective import Objective
from ..oracles.base import Line, Oracle, Walk, interior
from .result import Outcome, SolverResult, build_result

__all__ = ["counts_no_hits", "cut_loss", "cut_shares", "cut_within"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

_ROUNDING = 1e-12  # of sums over rows, and by which a bound may be missed
_N_CANDIDATES = 16  # cuts that are counted where rounding lets the best one break a bound
_CHUNK_INTERVALS = 1 << 16


@dataclass(frozen=True, eq=False)
class _Share:
    """A linear functional of confusions that is ``hits * a + decided * b + c``, in shares of all rows."""

    hits: float
    decided: float
    constant: float

    @classmethod
    def of(cls, A: FloatArray) -> _Share | None:
        """Return the functional <A, C> of confusions (K + 1, K + 1), abstentions last; None where it is another one."""
        k = len(A) - 1
        right, wrong, gone = A.diagonal()[:k], A[:k, :k][~np.eye(k, dtype=bool)], A[:k, k]
        size = max(float(np.abs(A[:k]).max()), 1.0)
        if any(float(np.ptp(entries)) > _ROUNDING * size for entries in (right, wrong, gone)):
            return None
        return cls(float(right[0] - wrong[0]), float(wrong[0] - gone[0]), float(gone[0]))

    def at(self, shares: FloatArray) -> FloatArray:
        """Return its values (...) at shares (..., 2) of hits and decided rows."""
        return np.asarray(self.hits * shares[..., 0] + self.decided * shares[..., 1] + self.constant)

    def extremes(self, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return its least and its largest values in boxes between shares (..., 2)."""
        rises = np.array([self.hits, self.decided]) > 0
        return self.at(np.where(rises, low, high)), self.at(np.where(rises, high, low))


@dataclass(frozen=True, eq=False)
class _Quotient:
    """A metric that is the quotient of two such functionals."""

    top: _Share
    bottom: _Share

    @classmethod
    def of(cls, A: FloatArray, B: FloatArray) -> _Quotient | None:
        """Return <A, C> / <B, C>, None where it is another function; hits are in the numerator alone."""
        top, bottom = _Share.of(A), _Share.of(B)
        return None if top is None or bottom is None or bottom.hits != 0 else cls(top, bottom)

    @property
    def _empty(self) -> float:
        return EMPTY * max(abs(self.bottom.decided), abs(self.bottom.constant))

    def at(self, shares: FloatArray) -> FloatArray:
        """Return its values (...) at shares (..., 2), nan where it is 0/0."""
        bottom = self.bottom.at(shares)
        full = bottom > self._empty
        return np.where(full, self.top.at(shares) / np.where(full, bottom, 1.0), np.nan)

    def most(self, low: FloatArray, high: FloatArray) -> FloatArray:
        """Return upper bounds in boxes between shares (..., 2)."""
        top = self.top.extremes(low, high)[1]
        least, most = self.bottom.extremes(low, high)
        full = least > self._empty
        return np.where(full, top / np.where(full, np.where(top >= 0, least, most), 1.0), np.inf)


@dataclass(frozen=True, eq=False)
class _Bounded:
    """A quotient between two bounds."""

    quotient: _Quotient
    low: float
    high: float

    def keeps(self, shares: FloatArray) -> NDArray[np.bool_]:
        """Say which shares (..., 2) keep both; 0/0 keeps none."""
        value = self.quotient.at(shares)
        with np.errstate(invalid="ignore"):
            return np.asarray((value >= self.low - _ROUNDING) & (value <= self.high + _ROUNDING))

    def can_be_kept(self, low: FloatArray, high: FloatArray) -> NDArray[np.bool_]:
        """Say which boxes between shares (..., 2) may hold some that keep both."""
        top, bottom = self.quotient.top, self.quotient.bottom
        possible = np.ones(low.shape[:-1], dtype=bool)
        for bound, sign in ((self.low, 1.0), (self.high, -1.0)):
            if np.isfinite(bound):
                hits, decided, constant = (
                    sign * (getattr(top, name) - bound * getattr(bottom, name))
                    for name in ("hits", "decided", "constant")
                )
                possible &= _Share(hits, decided, constant).extremes(low, high)[1] >= -2 * _ROUNDING
        return possible


@dataclass(frozen=True, eq=False)
class _Within:
    """The aim among cuts that keep bounds, -inf of the others; what a walk is to find the largest value of."""

    aim: _Quotient
    bounds: tuple[_Bounded, ...]

    def value(self, at: FloatArray) -> FloatArray:
        """Return the values (...) of shares (..., 2) of hits and decided rows."""
        values = self.aim.at(at)
        kept = ~np.isnan(values)
        for bound in self.bounds:
            kept &= bound.keeps(at)
        return np.where(kept, values, -np.inf)

    def bound(self, low: FloatArray, high: FloatArray) -> FloatArray:
        """Return upper bounds of the values in boxes between shares (..., 2)."""
        most = self.aim.most(low, high)
        for bound in self.bounds:
            most = np.where(bound.can_be_kept(low, high), most, -np.inf)
        return most


def cut_shares(objective: Objective, limits: ConstraintSystem) -> tuple[FloatArray, ...] | None:
    """Return the shares (M,) of outputs in each confusion that a cut of its own is best for; None where cuts are not.

    All outputs have one cut where aim and constraints are about all of them pooled, and one each where the aim is a sum
    over outputs and every constraint is about one of them, as of sensitive groups. The last decision is to abstain.
    """
    grouping = objective.grouping
    if grouping.n_groups > 1 or grouping.loss is not None or grouping.least or objective.frozen.any():
        return None
    if _aim(objective) is None or any(bounded is None for bounded in map(_bounded, limits.constraints)):
        return None
    if limits.shared(grouping.share):
        return (grouping.share,)
    ratio = objective.ratio
    summed = ratio is not None and ratio.linear and bool((grouping.share > 0).all())
    alone = all(isinstance(limit, PooledConstraint) and (limit.share == 1.0).any() for limit in limits.constraints)
    return tuple(np.eye(len(grouping.share))) if summed and alone else None


def _aim(objective: Objective) -> _Quotient | None:
    """What is maximised as a quotient of shares that rises with hits, None if it is not."""
    ratio = objective.ratio
    aim = None if ratio is None else _Quotient.of(ratio.A[0], ratio.B[0])
    return aim if aim is not None and aim.top.hits >= 0 else None


def counts_no_hits(objective: Objective) -> bool:
    """Whether the aim depends on the number of decided rows only, as coverage does: no labels can flatter it."""
    aim = _aim(objective)
    return aim is not None and aim.top.hits == 0


def _bounded(limit: object) -> _Bounded | None:
    """Return a constraint as one on shares of hits and decided rows that asks for no fewer hits, None if it is not."""
    if not isinstance(limit, PooledConstraint):
        return None
    form = limit.bound.form
    if isinstance(form, Increasing) or not isinstance(form, (Linear, FractionalLinear)):
        return None
    ratio = form.as_ratio()
    quotient = _Quotient.of(np.asarray(ratio.A), np.asarray(ratio.B))
    low, high = limit.bound.limits
    if (
        quotient is None
        or (np.isfinite(high) and quotient.top.hits > 0)
        or (np.isfinite(low) and quotient.top.hits < 0)
    ):
        return None
    return _Bounded(quotient, low, high)


def cut_loss(cuts: FloatArray, n_classes: int) -> Loss:
    """Return the losses of "the most probable of K classes if its probability is at least the cut", of cuts (G,)."""
    constant, slope = _line_losses(n_classes)
    return constant.map(lambda a, b: a + cuts[:, None] * b, slope)


def _line_losses(n_classes: int) -> tuple[Loss, Loss]:
    """The losses at cut 0, and what a cut adds: the score of an abstention falls as the cut rises."""
    gone = np.append(np.zeros(n_classes), 1.0)[None]
    nothing = np.zeros_like(gone)
    return Loss(diagonal=gone - 1.0, offset=nothing), Loss(diagonal=nothing, offset=-gone)


def cut_within(oracle: Oracle, objective: Objective, limits: ConstraintSystem) -> SolverResult | None:
    """Return the best of all cuts that keep constraints, None where none does; see :func:`cut_shares`."""
    shares, aim, n_classes = cut_shares(objective, limits), _aim(objective), objective.width - 1
    assert shares is not None and aim is not None
    scores = [_Within(aim, _bounds(limits, share)) for share in shares]
    best = [_best_cuts(oracle, score, share, n_classes) for score, share in zip(scores, shares, strict=True)]
    candidates = [cuts for cuts in best if cuts is not None]
    if len(candidates) < len(shares):
        return None
    cuts = np.stack(candidates, axis=1)  # (T, G), the best first
    loss = cut_loss(cuts[0], n_classes)
    counted = oracle.confusions([loss, Loss.argmax(objective.width)])
    if not limits.kept(counted[0]).all():  # rounding has decided rows otherwise than the running sums have it
        tensors = oracle.confusions([cut_loss(candidate, n_classes) for candidate in cuts])
        values = np.stack([_counted_values(tensors, *pair) for pair in zip(scores, shares, strict=True)], axis=1)
        if np.isneginf(values.max(axis=0)).any():
            return None
        loss = cut_loss(cuts[values.argmax(axis=0), np.arange(len(shares))], n_classes)
        counted[0] = oracle.confusions([loss])[0]
    status = f"Optimal over all cuts on the largest probability that satisfy {limits.called}."
    result = build_result(oracle, objective, loss, counted, status=status, outcome=Outcome.OPTIMAL)
    return replace(result, upper_bound=None if oracle.certified else result.value)


def _bounds(limits: ConstraintSystem, share: FloatArray) -> tuple[_Bounded, ...]:
    """The constraints on the confusion that outputs have these shares (M,) in."""
    bounds = [_bounded(limit) for limit in limits.constraints if _is_about(limit, share)]
    return tuple(bound for bound in bounds if bound is not None)


def _is_about(limit: object, share: FloatArray) -> bool:
    return isinstance(limit, PooledConstraint) and np.allclose(limit.share, share, atol=_ROUNDING)


def _best_cuts(oracle: Oracle, score: _Within, share: FloatArray, n_classes: int) -> FloatArray | None:
    """The best cuts (T,) of the outputs of a confusion, the best of all first, None where none keeps the bounds."""
    constant, slope = _line_losses(n_classes)
    decided = np.tile(np.append(np.ones(n_classes), 0.0), (n_classes + 1, 1))
    functionals = np.stack([np.diag(decided[0]), decided])[None]
    line = Line(np.where(share > 0, 0, -1), share, constant, slope, functionals, np.ones((1, 2), dtype=bool))
    walk = oracle.walk(line, 0.0, score)
    chunks = range(0, len(walk.group), _CHUNK_INTERVALS)
    values = np.concatenate([score.value(walk.values[start : start + _CHUNK_INTERVALS]) for start in chunks])
    if values.max(initial=-np.inf) == -np.inf:
        return None
    order = np.concatenate([walk.best(values), walk.runners_up(values, 0, _N_CANDIDATES - 1)])
    return _cuts(walk, order)


def _cuts(walk: Walk, intervals: IntArray) -> FloatArray:
    """Cuts inside intervals: 0 where all rows are decided, and not above 1 where that decides the same."""
    low, high = walk.lower[intervals], walk.upper[intervals]
    cuts = interior(low, np.where(np.isinf(high) & (low < 1), 1.0, high))
    return np.where(np.isinf(low) & (high > 0), 0.0, cuts)


def _counted_values(counted: FloatArray, score: _Within, share: FloatArray) -> FloatArray:
    """The values (T,) of the confusion that outputs have these shares (M,) in, of confusions (T, M, K + 1, K + 1)."""
    pooled = np.einsum("m,tmij->tij", share, counted)[:, :-1, :-1]
    hits, decided = np.trace(pooled, axis1=1, axis2=2), pooled.sum(axis=(1, 2))
    return score.value(np.stack([hits, decided], axis=-1))
