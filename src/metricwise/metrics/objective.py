"""What a solver maximises: a metric, averaged over outputs, bound to the class priors of the data.

An objective is a weighted sum over groups of outputs of ``psi_g(C_g)``, where ``C_g`` is the pooled confusion of a
group, or the smallest of these values. In a sum, a solver may treat each group by itself. Must not know rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.cached import cached_property
from ..core.losses import Loss, diagonal_form
from ..core.matrices import FloatArray, diagonal_plus_columns, inner, quotient
from ..kernels import RatioMeans
from .averages import Grouping
from .base import Form, FractionalLinear, Increasing, Linear, Metric, MinimumForm, ShareForm

__all__ = ["Objective", "Ratio"]

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
    """A weighted sum over groups of a metric of the pooled confusion.

    Build it with :func:`metricwise.metrics.aim.make_objective`.

    Parameters
    ----------
    metric : Metric
    metrics : tuple of G Metric
        That of each group: the same, unless outputs were given one each.
    grouping : Grouping
    priors : ndarray of shape (G, K)
        Pooled class priors, with the padding.
    labels : tuple of G label tuples or None
        What a class given by label refers to.
    bound : tuple of (ndarray of int, Form)
        Groups with the same classes, and the metric bound to their priors as one stack.
    n_classes : ndarray of shape (M,)
    frozen : ndarray of shape (M,), bool
        Outputs that keep argmax: they have no label or one class, and are a group each.
    padding : ndarray of shape (G, K, K), optional
        Smoothing: a confusion that is added to that of every rule, relative to the total weight 1.
    """

    metric: Metric
    metrics: tuple[Metric, ...]
    grouping: Grouping
    priors: FloatArray
    labels: tuple[tuple[Any, ...] | None, ...]
    bound: tuple[tuple[IntArray, Form], ...]
    n_classes: IntArray
    frozen: NDArray[np.bool_]
    padding: FloatArray | None = None

    @cached_property
    def width(self) -> int:
        """K."""
        return int(self.n_classes.max())

    @cached_property
    def _batches(self) -> tuple[tuple[IntArray | slice, int, Form], ...]:
        """Groups with the same classes, the number of these classes, and the form; a single batch needs no index."""
        single = len(self.bound) == 1
        return tuple(
            (slice(None) if single else groups, int(self.grouping.n_classes[groups[0]]), form)
            for groups, form in self.bound
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
        for groups, k, form in self._batches:
            out[..., groups] = form.value(C[..., groups, :k, :k])
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
        """Return the weight of the value of each group, (G,), at these values: with `least`, 1 for the smallest."""
        if not self.grouping.least:
            return self.grouping.weight
        return np.asarray(np.arange(len(values)) == values.argmin(), dtype=np.float64)

    def gradient(self, C: FloatArray) -> FloatArray:
        """Return d psi_g / d C_g at pooled confusions (..., G, K, K), in that shape."""
        out = np.zeros(C.shape)
        C = self._padded(C)
        for groups, k, form in self._batches:
            out[..., groups, :k, :k] = form.gradient(C[..., groups, :k, :k])
        return out if self.padding is None else out / self._size

    @cached_property
    def _size(self) -> FloatArray:
        """The sum of a confusion and its padding, (G, 1, 1)."""
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
        metric = self.metrics[group]._of_rows(self.grouping.total[group])
        return metric.bind(self.priors[group, :k], self.labels[group]).value(C[:, :k, :k])

    def values_at_own_priors(self, C: FloatArray) -> FloatArray:
        """Return psi_g of pooled confusions (S, G, K, K) as (S, G), each bound to its own class priors."""
        out = np.empty(C.shape[:2])
        for groups, _ in self.bound:
            k, first = int(self.grouping.n_classes[groups[0]]), int(groups[0])
            stack = C[:, groups, :k, :k].reshape(-1, k, k)
            metric = self.metrics[first]._of_rows(np.tile(self.grouping.total[groups], len(C)))
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
            metric = self.metrics[g]._of_rows(self.grouping.total[g])
            out[g, :k, :k] = metric._free_gradient(C[g, :k, :k], self.labels[g])
        return out

    @cached_property
    def _sizes(self) -> list[int]:
        """Numbers in the summaries of each batch of groups."""
        return [form.summary(np.zeros((k, k))).shape[-1] for _, k, form in self._batches]

    def summarise(self, C: FloatArray) -> FloatArray:
        """Return the summaries (..., G, D) of pooled confusions (..., G, K, K), which are affine in C."""
        out = np.zeros((*C.shape[:-2], max(self._sizes)))
        C = self._padded(C)
        for (groups, k, form), size in zip(self._batches, self._sizes, strict=True):
            out[..., groups, :size] = form.summary(C[..., groups, :k, :k])
        return out

    @property
    def of_shares(self) -> bool:
        """Whether the values depend on hits and predicted shares only."""
        return all(isinstance(form, ShareForm) for _, form in self.bound)

    def summarise_shares(self, shares: FloatArray) -> FloatArray:
        """Return the summaries (..., G, D) of pooled hits and predicted shares (..., G, 2, K)."""
        if self.padding is not None:
            padding = np.stack([np.diagonal(self.padding, axis1=1, axis2=2), self.padding.sum(axis=1)], axis=1)
            shares = (shares + padding) / self._size
        out = np.zeros((*shares.shape[:-2], max(self._sizes)))
        for (groups, k, form), size in zip(self._batches, self._sizes, strict=True):
            assert isinstance(form, ShareForm)
            hits, columns = np.moveaxis(shares[..., groups, :, :k], -2, 0)
            out[..., groups, :size] = form.summary_of(hits, columns)
        return out

    def class_terms(self, hits: FloatArray, predicted: FloatArray) -> FloatArray | None:
        """Return terms (..., K) of hits and predicted shares (..., K) whose sum the value increases with.

        For an objective of one group; None if its metric is not a sum over classes. Like the value, the terms count
        the padding. See :meth:`metricwise.metrics.base.Form.class_terms`.
        """
        ((_, _, form),) = self._batches
        if self.padding is not None:
            size = self._size[0, 0]
            hits = (hits + np.diagonal(self.padding[0])) / size
            predicted = (predicted + self.padding[0].sum(axis=0)) / size
        return form.class_terms(hits, predicted)

    def values_at(self, summaries: FloatArray) -> FloatArray:
        """Return psi_g of summaries of shape (..., G, D), as (..., G)."""
        out = np.empty(summaries.shape[:-1])
        for (groups, _, form), size in zip(self._batches, self._sizes, strict=True):
            out[..., groups] = form.value_at(summaries[..., groups, :size])
        return out

    @cached_property
    def ratio_means(self) -> RatioMeans | None:
        """The values of all groups as means of ratios of classes; None where they are not, or classes differ."""
        return self.bound[0][1]._ratio_means if len(self.bound) == 1 else None

    def slopes_at(self, summaries: FloatArray) -> FloatArray:
        """Return d psi_g / d summary_g at summaries (..., G, D), in that shape."""
        out = np.zeros(summaries.shape)
        for (groups, _, form), size in zip(self._batches, self._sizes, strict=True):
            out[..., groups, :size] = form.slope_at(summaries[..., groups, :size])
        return out

    def loss_of(self, slopes: FloatArray) -> Loss:
        """Return the loss whose rule rises most along slopes of the summaries, (G, D)."""
        gradients = [
            (groups, k, form.gradient_parts(slopes[groups, :size]))
            for (groups, k, form), size in zip(self._batches, self._sizes, strict=True)
        ]
        shape = (self.grouping.n_groups, self.width)
        # Two classes need no offset (Loss.from_tensor), so that equal columns tie exactly.
        if self.width > 2 and all(len(parts) == 2 for _, _, parts in gradients):
            diagonal, offset = np.zeros(shape), np.zeros(shape)
            for groups, k, parts in gradients:
                diagonal[groups, :k], offset[groups, :k] = -parts[0], -parts[1]
            return Loss(diagonal=diagonal, offset=offset)
        matrix = np.zeros((*shape, self.width))
        for groups, k, parts in gradients:
            matrix[groups, :k, :k] = parts[0] if len(parts) == 1 else diagonal_plus_columns(*parts)
        return Loss.from_tensor(-matrix)

    @property
    def concave(self) -> bool:
        """Whether every group's metric is concave."""
        return all(form.traits.concave for _, form in self.bound)

    @property
    def monotone(self) -> bool:
        """Whether there are two classes, and no metric decreases when a right decision replaces a wrong one."""
        return self.width == 2 and all(form.traits.monotone for _, form in self.bound)

    @property
    def slow(self) -> bool:
        """Whether a value requires a call of a user's function."""
        return self.metric.traits.slow

    @property
    def family(self) -> str:
        """The family of the bound metric."""
        return self.bound[0][1].traits.family

    @cached_property
    def ratio(self) -> Ratio | None:
        """The objective as ratios, or None if it is none; increasing transforms are looked through."""
        shape = (self.grouping.n_groups, self.width, self.width)
        alone = len(self._batches) == 1 and self._batches[0][1] == self.width  # then there is nothing to put together
        A, B = (np.empty(0), np.empty(0)) if alone else (np.zeros(shape), np.zeros(shape))
        low, high = np.empty(shape[0]), np.empty(shape[0])
        zero, linear = 0.0, True
        for groups, k, form in self._batches:
            inside = form.base if isinstance(form, Increasing) else form
            if not isinstance(inside, (Linear, FractionalLinear)):
                return None
            linear = linear and isinstance(inside, Linear)
            ratio = inside.as_ratio()
            if alone:
                A, B = (np.broadcast_to(part, shape) for part in (ratio.A, ratio.B))
            else:
                A[groups, :k, :k], B[groups, :k, :k] = ratio.A, ratio.B
            low[groups], high[groups] = ratio.range
            zero = ratio.zero_division or 0.0
        return Ratio(self._unpadded(A), self._unpadded(B), low, high, zero, linear)

    @property
    def is_minimum(self) -> bool:
        """Whether every group's metric is the smallest of some linear parts, which its summary then holds."""
        return all(isinstance(form, MinimumForm) for _, form in self.bound)

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
        for groups, form in self.bound:
            if isinstance(form, Increasing):
                out[groups] = form.transform(ratios[groups])
        return self.total(out)

    @cached_property
    def _keeps_argmax(self) -> NDArray[np.bool_]:
        return np.asarray(self.frozen | (self.grouping.group < 0))

    @cached_property
    def _one_each(self) -> bool:
        """Whether the losses of the groups are those of the outputs: there is one group, or one for each output."""
        group, n_groups = self.grouping.group, self.grouping.n_groups
        alone = n_groups == 1 or np.array_equal(group, np.arange(n_groups))
        return bool(alone and not self._keeps_argmax.any())

    def spread(self, loss: Loss) -> Loss:
        """Turn losses of groups into losses of outputs; outputs that keep argmax get its loss."""
        grouping = self.grouping
        keep = self._keeps_argmax
        if self._one_each:
            return loss
        argmax = Loss.argmax(self.width)
        argmax = argmax if loss.is_diagonal else Loss(full=argmax.tensor())

        def expand(by_group: FloatArray, of_argmax: FloatArray) -> FloatArray:
            out = by_group[np.maximum(grouping.group, 0)]
            out[keep] = of_argmax[0]
            return out

        return loss.map(expand, argmax)
