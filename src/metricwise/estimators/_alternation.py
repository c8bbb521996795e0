"""The alternation between a loss and training on it, counted on the rows that folds leave out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.parallel import Parallel, delayed

from ..core.confusion import from_predictions, merge, normalize
from ..core.errors import InvalidParameter, mention
from ..data.row_spec import take_rows
from ..metrics.aim import AveragedMetric
from ..metrics.averages import Grouping
from ..metrics.instance import row_values
from ..metrics.objective import Objective
from ._compat import params_of_rows
from ._targets import Target
from .cost_sensitive import decide, fit_weighted

__all__ = ["Alternation", "Folds", "alternate"]

FloatArray = NDArray[np.float64]

_INWARD_SHARE = 0.01  # a confusion without a gradient is moved this far towards random guessing
_MIN_STEP = 0.25  # towards the next loss


@dataclass(frozen=True, eq=False)
class Alternation:
    """The loss of each output, the metric with them on rows left out, and the metric with every loss tried."""

    losses: list[FloatArray]
    value: float
    history: list[float]


def alternate(folds: Folds, aim: AveragedMetric, target: Target, max_iter: int, tol: float) -> Alternation:
    """Find the loss of each output, from at most `max_iter` losses for outputs that share a confusion."""
    grouping, told = folds.group(aim, target)
    losses = [-np.eye(len(labels)) for labels in target.classes]
    walks = []
    for group in range(grouping.n_groups):
        outputs = np.flatnonzero(grouping.group == group)
        part = target.of_outputs(outputs)
        # An output that is judged by itself and shows one class has nothing to be weighed against it.
        settled = target.several and aim.average == "macro" and not told[outputs].all()
        walk = _walk(folds, aim.of_outputs(outputs), part, 1 if settled else max_iter, tol)
        for m, loss in zip(outputs.tolist(), _of_outputs(walk.loss, part), strict=True):
            losses[m] = loss
        walks.append(walk)
    longest = max(len(walk.values) for walk in walks)
    along = [[*walk.values, *[walk.best] * (longest - len(walk.values))] for walk in walks]
    history = [float(grouping.weight @ values) for values in np.transpose(along)]
    return Alternation(losses, float(grouping.weight @ [walk.best for walk in walks]), history)


@dataclass(frozen=True, eq=False)
class _Walk:
    """The best loss (K, K) found for outputs that share one, its value, and the values of all that were tried."""

    loss: FloatArray
    best: float
    values: list[float]


def _walk(folds: Folds, aim: AveragedMetric, target: Target, max_iter: int, tol: float) -> _Walk:
    """Alternate between the loss at the confusion reached and training on it, for outputs that share a loss."""
    best = -np.eye(max(map(len, target.classes)))
    C, objective, top = folds.reach(aim, target, best)
    values = [top]
    goal, step = _next_loss(objective, C), 1.0
    while len(values) < max_iter and step >= _MIN_STEP and not np.allclose(goal, best, rtol=1e-6, atol=0):
        if not goal.any(axis=1).all():
            step = min(step, 0.5)  # a class without any weight would not be there to train on
        trial = (1 - step) * best + step * goal
        C, objective, value = folds.reach(aim, target, trial)
        values.append(value)
        if value > top + tol:
            best, top, goal, step = trial, value, _next_loss(objective, C), 1.0
        else:
            step /= 2
    return _Walk(best, top, values)


def _next_loss(objective: Objective, C: FloatArray) -> FloatArray:
    """Return minus the gradient at the pooled C, each row shifted to a largest entry of 0, at a mean weight of 1."""
    priors = C.sum(axis=1)
    slope = objective.gradient(C[None])[0]
    if not np.isfinite(slope).all() or np.ptp(slope, axis=1).max() == 0:
        guess = np.broadcast_to(priors[:, None] / len(C), C.shape)
        slope = objective.gradient(((1 - _INWARD_SHARE) * C + _INWARD_SHARE * guess)[None])[0]
    gain = slope - slope.min(axis=1, keepdims=True)
    scale = float(priors @ gain.sum(axis=1))
    return -gain / scale if scale > 0 else -np.eye(len(C))


def _of_outputs(loss: FloatArray, target: Target) -> list[FloatArray]:
    """Cut a loss (K, K) that outputs share to the classes of each, with nothing lost on the classes left out."""

    def cut(k: int) -> FloatArray:
        part = loss[:k, :k]
        return loss if k == len(loss) else part - part.max(axis=1, keepdims=True)

    return [cut(len(labels)) for labels in target.classes]


@dataclass(frozen=True, eq=False)
class Folds:
    """Trains on the rows of each fold, and counts the decisions on the rows that it leaves out."""

    estimator: Any
    X: Any
    splits: Sequence[tuple[NDArray[np.intp], NDArray[np.intp]]]
    weight: FloatArray | None
    params: dict[str, Any]
    n_jobs: int | None

    def group(self, aim: AveragedMetric, target: Target) -> tuple[Grouping, NDArray[np.bool_]]:
        """Return which outputs share a loss, and which of them (M,) show several classes among the rows tested."""
        decided = [target.codes[rows] for _, rows in self.splits]
        C, mass = normalize(self._count(target, decided))
        if not (mass * aim.output_weight > 0).any():
            raise InvalidParameter(
                "sample_weight",
                problem="no observed label among the rows that cv tests has a positive weight",
                remedy=f"check cv, {mention('sample_weight')} and {mention('output_weight')}",
            )
        priors = C.sum(axis=-1)
        return aim.grouping(priors, mass, _n_classes(target), target.classes), (priors > 0).sum(axis=1) > 1

    def reach(self, aim: AveragedMetric, target: Target, loss: FloatArray) -> tuple[FloatArray, Objective, float]:
        """Train on a shared loss; return the pooled confusion (K, K) on rows left out, objective and metric."""
        decided = self._decide(target, _of_outputs(loss, target))
        C, mass = normalize(self._count(target, decided))
        objective = aim.bind(C.sum(axis=-1), mass, _n_classes(target), target.classes)
        value = self._by_row(aim, target, decided) if aim.average == "instance" else objective.value(C)
        return objective.grouping.pool(C)[0], objective, value

    def _decide(self, target: Target, losses: list[FloatArray]) -> list[NDArray[np.intp]]:
        """Return the decisions on the rows that each fold leaves out, as codes."""
        decided: list[NDArray[np.intp]] = Parallel(n_jobs=self.n_jobs)(
            delayed(_fit_and_decide)(clone(self.estimator), self.X, target, losses, *split, self.weight, self.params)
            for split in self.splits
        )
        return decided

    def _count(self, target: Target, decided: list[NDArray[np.intp]]) -> FloatArray:
        """Return the confusion (M, K, K) of decisions on the rows left out, as sums of weights."""
        width = int(_n_classes(target).max())
        return merge(
            *[
                from_predictions(target.codes[rows], codes, width, self._weight_of(rows))
                for (_, rows), codes in zip(self.splits, decided, strict=True)
            ]
        )

    def _by_row(self, aim: AveragedMetric, target: Target, decided: list[NDArray[np.intp]]) -> float:
        width = int(_n_classes(target).max())
        total, *others = [
            row_values(
                aim.metric,
                target.codes[rows],
                codes,
                width,
                aim.output_weight,
                self._weight_of(rows),
                target.classes,
            ).mean
            for (_, rows), codes in zip(self.splits, decided, strict=True)
        ]
        for other in others:
            total = total + other
        return total.value

    def _weight_of(self, rows: NDArray[np.intp]) -> FloatArray | None:
        return None if self.weight is None else self.weight[rows]


def _n_classes(target: Target) -> NDArray[np.intp]:
    return np.array([len(labels) for labels in target.classes], dtype=np.intp)


def _fit_and_decide(
    estimator: Any,
    X: Any,
    target: Target,
    losses: list[FloatArray],
    fit_rows: NDArray[np.intp],
    test_rows: NDArray[np.intp],
    weight: FloatArray | None,
    params: dict[str, Any],
) -> NDArray[np.intp]:
    """Train on some rows, and decide others."""
    fit_weight = None if weight is None else weight[fit_rows]
    fit_params = params_of_rows(X, params, indices=fit_rows)
    model = fit_weighted(estimator, take_rows(X, fit_rows), target.take(fit_rows), losses, fit_weight, fit_params)
    return decide(model, take_rows(X, test_rows), target, losses)
