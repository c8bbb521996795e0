"""What a solver maximises: a metric, averaged over outputs, bound to the class priors of the data.

Owns the join of metric and average. An objective is a weighted sum over groups of ``psi_g(C_g)``, where ``C_g`` is the
pooled confusion of the outputs of a group; groups never interact, so a solver may treat each by itself. Only where it
is the least of them instead, they do: that is for solvers of constraints. Must not know data or solvers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.losses import Loss, diagonal_form
from ..data import python_labels
from ._common import on_diagonal
from .averages import Grouping
from .base import FractionalLinear, Increasing, Linear, Metric, inner, quotient
from .naming import pooled
from .recall_means import LeastPart
from .summary import OfShares

__all__ = ["Objective", "Ratio", "make_objective"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Ratio:
    """An objective in the form <A, C> / <B, C> for every group, padded to K classes.

    Parameters
    ----------
    A, B : ndarray of shape (G, K, K)
    low, high : ndarray of shape (G,)
        Range of each ratio.
    zero_division : float
        Value at 0/0.
    linear : bool
        Whether every denominator is 1.
    """

    A: FloatArray
    B: FloatArray
    low: FloatArray
    high: FloatArray
    zero_division: float
    linear: bool

    def value(self, numerator: FloatArray, denominator: FloatArray) -> FloatArray:
        """Return the ratios of shape (..., G)."""
        return quotient(numerator, denominator, self._scale, self.zero_division)

    @cached_property
    def _scale(self) -> float:
        return float(np.abs(self.B).max())

    def at(self, C: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return numerators and denominators (G,) of pooled confusions (G, K, K)."""
        return inner(self.A, C), inner(self.B, C)

    @cached_property
    def line(self) -> tuple[Loss, Loss]:
        """-A and B as losses of one structure, so that -A + g * B is the loss at g."""
        pair = np.array([-self.A, self.B])
        form = diagonal_form(pair)
        if form is None:
            return Loss(full=pair[0]), Loss(full=pair[1])
        diagonal, offset = form
        return Loss(diagonal=diagonal[0], offset=offset[0]), Loss(diagonal=diagonal[1], offset=offset[1])


@dataclass(frozen=True, eq=False)
class Objective:
    """A weighted sum over groups of a metric of the pooled confusion; build with :func:`make_objective`.

    Parameters
    ----------
    metric : Metric
        Not bound.
    metrics : tuple of G Metric
        That of each group, not bound: the same, unless outputs were given one each.
    grouping : Grouping
    priors : ndarray of shape (G, K)
        Pooled class priors, with the padding.
    labels : tuple of G label tuples or None
        What a class given by label refers to.
    bound : tuple of (ndarray of int, Metric)
        Groups with the same classes, and the metric bound to their priors as one stack.
    n_classes : ndarray of shape (M,)
    frozen : ndarray of shape (M,), bool
        Outputs that keep argmax: they have no label or one class, and a group of their own.
    padding : ndarray of shape (G, K, K), optional
        A confusion that every rule has beside its own, in units of the whole: what is known before any row is seen. The
        metric is that of both together.
    """

    metric: Metric
    metrics: tuple[Metric, ...]
    grouping: Grouping
    priors: FloatArray
    labels: tuple[tuple[Any, ...] | None, ...]
    bound: tuple[tuple[IntArray, Metric], ...]
    n_classes: IntArray
    frozen: NDArray[np.bool_]
    padding: FloatArray | None = None

    @cached_property
    def width(self) -> int:
        """K."""
        return int(self.n_classes.max())

    @cached_property
    def _batches(self) -> tuple[tuple[IntArray | slice, int, Metric], ...]:
        """Groups with the same classes, how many those are, and the metric; a single part needs no index."""
        alone = len(self.bound) == 1
        return tuple(
            (slice(None) if alone else groups, int(self.grouping.n_classes[groups[0]]), metric)
            for groups, metric in self.bound
        )

    @cached_property
    def frozen_groups(self) -> NDArray[np.bool_]:
        """Groups whose output keeps argmax, of shape (G,)."""
        out = np.zeros(self.grouping.n_groups, dtype=bool)
        out[self.grouping.group[self.frozen & (self.grouping.group >= 0)]] = True
        return out

    def values(self, C: FloatArray) -> FloatArray:
        """Return psi_g of pooled confusions of shape (..., G, K, K), as (..., G)."""
        out = np.empty(C.shape[:-2])
        C = self._padded(C)
        for groups, k, metric in self._batches:
            out[..., groups] = metric.value(C[..., groups, :k, :k])
        return out

    def value(self, C: FloatArray) -> float:
        """Return the objective of a confusion tensor (M, K, K)."""
        return self.total(self.values(self.grouping.pool(C)))

    def total(self, values: FloatArray) -> float:
        """Return the weighted sum of the values (G,) of the groups, or the least of them."""
        return float(self.totals(values))

    def totals(self, values: FloatArray) -> FloatArray:
        """Return the weighted sums, or the least, of values (..., G) of the groups."""
        return np.asarray(values.min(axis=-1) if self.grouping.least else values @ self.grouping.weight)

    def weight_at(self, values: FloatArray) -> FloatArray:
        """Return by how much the value of each group counts, (G,), where they are such: of the least one, 1."""
        if not self.grouping.least:
            return self.grouping.weight
        return np.asarray(np.arange(len(values)) == values.argmin(), dtype=np.float64)

    def gradient(self, C: FloatArray) -> FloatArray:
        """Return d psi_g / d C_g at pooled confusions (..., G, K, K), in that shape."""
        out = np.zeros(C.shape)
        C = self._padded(C)
        for groups, k, metric in self._batches:
            out[..., groups, :k, :k] = metric.gradient(C[..., groups, :k, :k])
        return out if self.padding is None else out / self._size

    @cached_property
    def _size(self) -> FloatArray:
        """What a confusion and its padding sum to, (G, 1, 1)."""
        assert self.padding is not None
        return np.asarray(1.0 + self.padding.sum(axis=(1, 2), keepdims=True))

    def _padded(self, C: FloatArray) -> FloatArray:
        return C if self.padding is None else (C + self.padding) / self._size

    def _unpadded(self, functional: FloatArray) -> FloatArray:
        """Return A' of shape (G, K, K) with <A', C> = <A, padded C> for every C that sums to 1."""
        if self.padding is None:
            return functional
        return np.asarray((functional + inner(functional, self.padding)[:, None, None]) / self._size)

    def values_of(self, group: int, C: FloatArray) -> FloatArray:
        """Return psi_g of many pooled confusions (T, K, K) of one group."""
        k = int(self.grouping.n_classes[group])
        if self.padding is not None:
            C = (C + self.padding[group]) / self._size[group]
        metric = (
            self.metrics[group].of_rows(self.grouping.total[group]).bind(self.priors[group, :k], self.labels[group])
        )
        return metric.value(C[:, :k, :k])

    def values_at_own_priors(self, C: FloatArray) -> FloatArray:
        """Return psi_g of pooled confusions (S, G, K, K) as (S, G), each bound to its own class priors."""
        out = np.empty(C.shape[:2])
        for groups, _ in self.bound:
            k, first = int(self.grouping.n_classes[groups[0]]), int(groups[0])
            stack = C[:, groups, :k, :k].reshape(-1, k, k)
            metric = self.metrics[first].of_rows(np.tile(self.grouping.total[groups], len(C)))
            out[:, groups] = metric.bind(stack.sum(axis=2), self.labels[first]).value(stack).reshape(len(C), -1)
        return out

    @cached_property
    def row_priors(self) -> FloatArray:
        """Class priors (G, K) of the rows alone, without the padding."""
        return self.priors if self.padding is None else self.priors * self._size[:, 0] - self.padding.sum(axis=2)

    def full_gradient(self, C: FloatArray) -> FloatArray:
        """Return d psi_g / d C_g with the class priors free to move; pooled C of shape (G, K, K)."""
        out = np.zeros_like(C)
        for g in range(len(C)):
            k = int(self.grouping.n_classes[g])
            metric = self.metrics[g].of_rows(self.grouping.total[g])
            out[g, :k, :k] = metric.free_gradient(C[g, :k, :k], self.labels[g])
        return out

    @cached_property
    def _sizes(self) -> list[int]:
        """Numbers in the summaries of each batch of groups."""
        return [metric.summary(np.zeros((k, k))).shape[-1] for _, k, metric in self._batches]

    def summarise(self, C: FloatArray) -> FloatArray:
        """Return all that matters of pooled confusions (..., G, K, K): D numbers of each, (..., G, D), affine in C."""
        out = np.zeros((*C.shape[:-2], max(self._sizes)))
        C = self._padded(C)
        for (groups, k, metric), size in zip(self._batches, self._sizes, strict=True):
            out[..., groups, :size] = metric.summary(C[..., groups, :k, :k])
        return out

    @property
    def of_shares(self) -> bool:
        """Whether all that matters of a confusion are its hits and its predicted shares."""
        return all(isinstance(metric, OfShares) for _, metric in self.bound)

    def summarise_shares(self, shares: FloatArray) -> FloatArray:
        """Return the summaries (..., G, D) of pooled hits and predicted shares (..., G, 2, K)."""
        if self.padding is not None:
            padding = np.stack([np.diagonal(self.padding, axis1=1, axis2=2), self.padding.sum(axis=1)], axis=1)
            shares = (shares + padding) / self._size
        out = np.zeros((*shares.shape[:-2], max(self._sizes)))
        for (groups, k, metric), size in zip(self._batches, self._sizes, strict=True):
            assert isinstance(metric, OfShares)
            own = shares[..., groups, :, :k]
            out[..., groups, :size] = metric.summary_of(own[..., 0, :], own[..., 1, :])
        return out

    def values_at(self, summaries: FloatArray) -> FloatArray:
        """Return psi_g of summaries of shape (..., G, D), as (..., G)."""
        out = np.empty(summaries.shape[:-1])
        for (groups, _, metric), size in zip(self._batches, self._sizes, strict=True):
            out[..., groups] = metric.value_at(summaries[..., groups, :size])
        return out

    def slopes_at(self, summaries: FloatArray) -> FloatArray:
        """Return d psi_g / d summary_g at summaries (..., G, D), in that shape."""
        out = np.zeros(summaries.shape)
        for (groups, _, metric), size in zip(self._batches, self._sizes, strict=True):
            out[..., groups, :size] = metric.slope_at(summaries[..., groups, :size])
        return out

    def loss_of(self, slopes: FloatArray) -> Loss:
        """Return the loss whose rule rises most along slopes of the summaries, (G, D)."""
        forms = [
            (groups, k, metric.form_of(slopes[groups, :size]))
            for (groups, k, metric), size in zip(self._batches, self._sizes, strict=True)
        ]
        shape = (self.grouping.n_groups, self.width)
        # Two classes need no offset (Loss.from_tensor), so that equal columns tie exactly.
        if self.width > 2 and all(len(form) == 2 for _, _, form in forms):
            diagonal, offset = np.zeros(shape), np.zeros(shape)
            for groups, k, form in forms:
                diagonal[groups, :k], offset[groups, :k] = -form[0], -form[1]
            return Loss(diagonal=diagonal, offset=offset)
        matrix = np.zeros((*shape, self.width))
        for groups, k, form in forms:
            matrix[groups, :k, :k] = form[0] if len(form) == 1 else _matrix_of(*form)
        return Loss.from_tensor(-matrix)

    @property
    def concave(self) -> bool:
        """Whether every group's metric is concave."""
        return all(metric.concave for _, metric in self.bound)

    @property
    def rising(self) -> bool:
        """Whether all classes are two, and no group's metric falls where a right decision replaces a wrong one."""
        return self.width == 2 and all(metric.rising for _, metric in self.bound)

    @property
    def costly(self) -> bool:
        """Whether a value takes a call of the user's function."""
        return self.metric.costly

    @property
    def family(self) -> str:
        """The family of the bound metric, in words."""
        return self.bound[0][1].family

    @cached_property
    def ratio(self) -> Ratio | None:
        """The objective as ratios, or None if it is none; increasing transforms are looked through."""
        shape = (self.grouping.n_groups, self.width, self.width)
        A, B = np.zeros(shape), np.zeros(shape)
        low, high = np.empty(shape[0]), np.empty(shape[0])
        zero, linear = 0.0, True
        for groups, k, metric in self._batches:
            form = metric.base if isinstance(metric, Increasing) else metric
            if not isinstance(form, (Linear, FractionalLinear)):
                return None
            linear = linear and isinstance(form, Linear)
            ratio = form.as_ratio()
            A[groups, :k, :k], B[groups, :k, :k] = ratio.A, ratio.B
            low[groups], high[groups] = ratio.range
            zero = ratio.zero_division or 0.0
        return Ratio(self._unpadded(A), self._unpadded(B), low, high, zero, linear)

    @property
    def is_minimum(self) -> bool:
        """Whether every group's metric is the smallest of some linear parts, which its summary then holds."""
        return all(isinstance(metric, LeastPart) for _, metric in self.bound)

    @cached_property
    def n_parts(self) -> IntArray:
        """Linear parts of the minimum of each group, (G,); summaries hold zeros beyond."""
        out = np.empty(self.grouping.n_groups, dtype=np.intp)
        for (groups, _, _), size in zip(self._batches, self._sizes, strict=True):
            out[groups] = size
        return out

    def from_ratios(self, ratios: FloatArray) -> float:
        """Return the objective whose ratios are these, of shape (G,)."""
        out = ratios.copy()
        for groups, metric in self.bound:
            if isinstance(metric, Increasing):
                out[groups] = metric.transform(ratios[groups])
        return self.total(out)

    @cached_property
    def _keeps_argmax(self) -> NDArray[np.bool_]:
        return np.asarray(self.frozen | (self.grouping.group < 0))

    def spread(self, loss: Loss) -> Loss:
        """Turn losses of groups into losses of outputs; outputs that keep argmax get its loss."""
        grouping = self.grouping
        keep = self._keeps_argmax
        if grouping.n_groups == 1 and not keep.any():
            return loss
        plain = Loss.argmax(self.width)
        plain = plain if loss.is_diagonal else Loss(full=plain.tensor())

        def expand(ours: FloatArray, argmax: FloatArray) -> FloatArray:
            out = ours[np.maximum(grouping.group, 0)]
            out[keep] = argmax[0]
            return out

        return loss.map(expand, plain)


def _matrix_of(by_hit: FloatArray, by_column: FloatArray) -> FloatArray:
    return on_diagonal(by_hit) + by_column[..., None, :]


def make_objective(
    metric: Metric,
    grouping: Grouping,
    priors: FloatArray,
    n_classes: IntArray,
    *,
    classes: Sequence[Sequence[Any] | NDArray[Any]] | None = None,
    frozen: NDArray[np.bool_] | None = None,
    padding: FloatArray | None = None,
) -> Objective:
    """Bind a metric to the pooled priors of each group.

    Parameters
    ----------
    metric : Metric
    grouping : Grouping
    priors : ndarray of shape (M, K)
        Class priors of each output.
    n_classes : ndarray of shape (M,)
    classes : sequence of M label sequences, optional
        What a class given by label refers to.
    frozen : ndarray of shape (M,), bool, optional
    padding : ndarray of shape (G, K, K), optional

    Returns
    -------
    Objective
    """
    shares = grouping.pool(priors)
    if padding is not None:
        shares = (shares + padding.sum(axis=2)) / (1.0 + padding.sum(axis=(1, 2))[:, None])
    metrics, labels = _by_group(metric, grouping, classes)
    batches: dict[tuple[Any, ...], list[int]] = {}
    for g, key in enumerate(zip(grouping.n_classes.tolist(), labels, map(id, metrics), strict=True)):
        batches.setdefault(key, []).append(g)
    bound = []
    for (k, names, _), members in batches.items():
        groups = np.array(members, dtype=np.intp)
        # A single group is bound without the axis of a stack, so that a metric may reject what it can name.
        stack = shares[groups, :k] if len(groups) > 1 else shares[groups[0], :k]
        rows = grouping.total[groups] if len(groups) > 1 else grouping.total[groups[0]]
        bound.append((groups, metrics[members[0]].of_rows(rows).bind(stack, names)))
    frozen = np.zeros(len(n_classes), dtype=bool) if frozen is None else frozen
    return Objective(metric, metrics, grouping, shares, labels, tuple(bound), n_classes, frozen, padding)


def _by_group(
    metric: Metric, grouping: Grouping, classes: Sequence[Sequence[Any] | NDArray[Any]] | None
) -> tuple[tuple[Metric, ...], tuple[tuple[Any, ...] | None, ...]]:
    """Return the metric of each group, and the labels that it is bound to."""
    groups, outputs = grouping.group, grouping.first
    if classes is None:
        return tuple([metric.of_output(m) for m in outputs]), (None,) * len(outputs)
    made: dict[Any, tuple[Metric, tuple[Any, ...]]] = {}
    if np.count_nonzero(groups >= 0) == len(outputs) and (len(outputs) > 1 or len(groups) == 1):  # one output each
        members = [[m] for m in outputs]
    else:
        members = [np.flatnonzero(groups == g).tolist() for g in range(grouping.n_groups)]
    found = []
    for own in members:
        key = (*(id(metric.of_output(m)) for m in own), *(id(classes[m]) for m in own))
        if key not in made:
            made[key] = _of_group(metric, own, classes)
        found.append(made[key])
    return tuple([one for one, _ in found]), tuple([names for _, names in found])


def _of_group(
    metric: Metric, outputs: list[int], classes: Sequence[Sequence[Any] | NDArray[Any]]
) -> tuple[Metric, tuple[Any, ...]]:
    """Return the metric of the outputs of one group, and the labels that it is bound to."""
    if len(outputs) == 1:
        return metric.of_output(outputs[0]), tuple(python_labels(np.asarray(classes[outputs[0]])))
    return pooled(metric.of_outputs(outputs), [classes[m] for m in outputs])
