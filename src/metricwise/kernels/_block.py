"""What row passes take: rows of one array of outputs, and the line of losses that they are followed along."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
LossArrays = tuple[FloatArray, ...]


class LinkArrays(NamedTuple):
    """What row passes apply to probabilities first: ``softmax(temperature * log(max(eta, floor)) + bias)``.

    With floor 0 the arrays hold logarithms of probabilities, up to a constant of the row, and not probabilities:
    ``softmax(temperature * eta + bias)``. Of (N, M) arrays these are log-odds of class 1.
    """

    temperature: FloatArray  # (M,)
    bias: FloatArray  # (M, K)
    floor: float

    @property
    def of_logits(self) -> bool:
        """Whether the arrays hold logarithms."""
        return self.floor == 0.0

    @property
    def boundary(self) -> FloatArray:
        """Log-odds (M,) at which the first two classes are equally probable, for a link of logits."""
        return np.asarray((self.bias[:, 0] - self.bias[:, 1]) / self.temperature)

    def part(self, outputs: Any, width: int) -> LinkArrays:
        """Return the link of some outputs, cut to the first classes, or padded where a block has more."""
        if len(self.temperature) == 1 and self.bias.shape[1] == width and isinstance(outputs, slice):
            return self  # all of it: one row is served in few microseconds, and cutting takes two of them
        bias = self.bias[outputs, :width]
        if bias.shape[1] < width:  # of padding: its probability is 0 whatever the bias
            bias = np.pad(bias, ((0, 0), (0, width - bias.shape[1])))
        return LinkArrays(self.temperature[outputs], bias, self.floor)


class Block(NamedTuple):
    """Rows of one array of outputs; see the conventions of :mod:`metricwise.kernels`."""

    eta: NDArray[Any]  # (N, M, K), or (N, M) with the probability of class 1; logarithms if the link is of these
    n_classes: IntArray  # (M,)
    codes: NDArray[Any] | None = None  # (N, M)
    weight: FloatArray | None = None  # (N,), or (R, N) where rows are counted R times over
    mass: NDArray[Any] | None = None  # (N, M), bool or float: what an entry counts for where probabilities are counted
    link: LinkArrays | None = None
    n_decisions: IntArray | None = None  # (M,), at least n_classes; None for as many

    @property
    def decisions(self) -> IntArray:
        """Decisions that may be taken about each output, (M,): its classes, and whatever comes behind them."""
        return self.n_classes if self.n_decisions is None else self.n_decisions

    @property
    def stored(self) -> int:
        """Classes that the array has numbers for."""
        return 2 if self.eta.ndim == 2 else int(self.eta.shape[2])

    @property
    def width(self) -> int:
        """K: the size of losses and counts. A decision that is no class is one of probability 0."""
        return self.stored if self.n_decisions is None else max(self.stored, int(self.n_decisions.max(initial=0)))

    def part(self, outputs: slice, width: int) -> Block:
        """Return some of the outputs, cut to the first classes."""
        return Block(
            self.eta[:, outputs] if self.eta.ndim == 2 else self.eta[:, outputs, :width],
            self.n_classes[outputs],
            None if self.codes is None else self.codes[:, outputs],
            self.weight,
            None if self.mass is None else self.mass[:, outputs],
            None if self.link is None else self.link.part(outputs, width),
            None if self.n_decisions is None else self.n_decisions[outputs],
        )


class LineArrays(NamedTuple):
    """Losses ``constant + g * slope`` of G groups of outputs, and what is followed along them.

    What an entry of true class i, decided as j, adds to both functionals is ``worth[m, i + 1, j]``; 0 at i = -1.
    """

    group: IntArray  # (M,): which line an output follows, and whose sums it adds to; -1 leaves it out
    constant: LossArrays  # with leading size G
    slope: LossArrays
    worth: FloatArray  # (M, K + 1, K, 2)


class LabelBlock(NamedTuple):
    """Rows that store few of very many labels, or all of them; see the conventions of :mod:`metricwise.kernels`."""

    values: NDArray[Any]  # (E,) float32 or float64: probabilities, negative (-0.0 included) where the label is true
    indices: NDArray[Any] | None  # (E,) int32 or int64: labels, ascending within a row; None: all labels are stored
    indptr: NDArray[np.int64]  # (N + 1,)
    n_labels: int  # M
    weight: FloatArray | None = None  # (N,)
    rows: NDArray[np.int64] | None = None  # (n,): rows that are read, in this order; None for all

    @property
    def n_read(self) -> int:
        """Rows that are read."""
        return len(self.indptr) - 1 if self.rows is None else len(self.rows)


class LabelForm(NamedTuple):
    """What a label is worth by its hits, its true, its predicted and all rows: a ratio of two linear functions.

    With `damped`, the numerator holds hits alone, and ``tp / x`` becomes ``tp * (1 - exp(-x)) / x``, what is expected
    of it where x is few rows. With `coverage`, a label is worth the probability that it is hit at least once.
    """

    numerator: tuple[float, float, float, float]  # of hits, true, predicted and total
    denominator: tuple[float, float, float, float]
    damped: bool = False
    coverage: bool = False
