"""PyTorch modules that decide as rules do. Imported by `to_torch` only, because it imports torch.

TorchScript compiles this source: methods that `forward` calls must be within its subset of Python. Numbers are buffers
of integers, the bits of float64: ``half()``, ``float()`` and ``to(dtype)`` convert buffers of floats, and would round
them. Sums are in the order of classes, because the order within matmul, sum and softmax is not defined.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ..core.inputs import MAX_LOGIT
from ..core.labels import decode

__all__ = [
    "DiagonalLosses",
    "Draws",
    "DrawnRuleModule",
    "FullLosses",
    "Intervals",
    "LeastLoss",
    "Link",
    "RowReader",
    "RuleModule",
]


def bits_of(numbers: Any) -> Tensor:
    """Return the bits of float64 numbers as integers."""
    return torch.from_numpy(np.array(numbers, dtype=np.float64, ndmin=1).view(np.int64))


def signed(value: int) -> int:
    """Return the signed integer of 64 bits that has the bits of an unsigned one; PyTorch computes with these."""
    return value - 2**64 if value >= 2**63 else value


# ------------------------------------------------------------------------------------------------------- arithmetic


def doubles(bits: Tensor) -> Tensor:
    """Return the float64 numbers of bits."""
    assert bits.dtype == torch.int64, "the numbers of a rule are kept as bits in int64, which type() must not convert"
    return torch.view_copy(bits, dtype=torch.float64)  # TorchScript has no view of another type


def ordered_sum(numbers: Tensor) -> Tensor:
    """Return the sum over the last axis, which stays, in order."""
    total = numbers[..., 0:1]
    for j in range(1, numbers.size(-1)):
        total = total + numbers[..., j : j + 1]
    return total


def with_first(p: Tensor) -> Tensor:
    """Return the probabilities of two classes, (N, M, 2), from that of the second one, (N, M, 1)."""
    return torch.cat([1.0 - p, p], dim=-1)


def shift_right(bits: Tensor, n: int) -> Tensor:
    """Shift integers of 64 bits as if they were unsigned."""
    return (bits >> n) & ((1 << (64 - n)) - 1)


# -------------------------------------------------------------------------------------------------------- decisions


class Intervals(nn.Module):
    """Codes (N, M) of outputs that are decided along one number each, (N, M, 1), or the difference of two, (N, M, 2).

    Parameters
    ----------
    cuts : array of shape (M, C)
        In ascending order.
    codes : array of int64 of shape (M, C + 1)
        The decision if none of the cuts, one, ..., all of them lie strictly below the number.
    """

    def __init__(self, cuts: NDArray[Any], codes: NDArray[Any]) -> None:
        super().__init__()
        starts = np.arange(len(codes)) * codes.shape[1]
        self.register_buffer("cuts", bits_of(cuts))
        self.register_buffer("codes", torch.from_numpy(codes.astype(np.int64).ravel()))
        self.register_buffer("starts", torch.from_numpy(starts.astype(np.int64)))

    def forward(self, numbers: Tensor) -> Tensor:
        z = numbers if numbers.size(2) == 1 else numbers[..., 1:2] - numbers[..., 0:1]
        count = (z > doubles(self.cuts)).sum(dim=-1)
        return self.codes[self.starts + count]


class Link(nn.Module):
    """``softmax(t * log(max(eta, floor)) + c)`` of numbers (N, M, K); of logits, which may be infinite, no log.

    Parameters
    ----------
    temperature : array of shape (M,)
    bias : array of shape (M, K)
        -inf beyond the classes of an output.
    floor : float
        0: of logits.
    positive : bool
        Whether the second of two probabilities was given, of which the first is the complement.
    """

    def __init__(self, temperature: NDArray[Any], bias: NDArray[Any], floor: float, positive: bool) -> None:
        super().__init__()
        self.floor, self.limit, self.positive = float(floor), float(MAX_LOGIT[8]), bool(positive)
        self.register_buffer("temperature", bits_of(temperature[:, None]))
        self.register_buffer("bias", bits_of(bias))

    def forward(self, eta: Tensor) -> Tensor:
        if self.floor == 0.0:
            raised = eta.clamp(-self.limit, self.limit)
        else:
            raised = eta.clamp(min=self.floor).log()
        logits = raised * doubles(self.temperature) + doubles(self.bias)
        powers = (logits - logits.amax(dim=-1, keepdim=True)).exp()
        scale = 1.0 / ordered_sum(powers)
        if self.positive:
            return with_first(powers[..., 1:2] * scale)
        return powers * scale


class FullLosses(nn.Module):
    """Scores (N, M, D) of probabilities (N, M, K) by losses (M, K, D), or (1, K, D) for all outputs."""

    def __init__(self, full: NDArray[Any]) -> None:
        super().__init__()
        self.register_buffer("full", bits_of(full))

    def forward(self, eta: Tensor) -> Tensor:
        full = doubles(self.full)
        scores = eta[..., 0:1] * full[:, 0]
        for i in range(1, eta.size(-1)):
            scores = scores + eta[..., i : i + 1] * full[:, i]
        return scores


class DiagonalLosses(nn.Module):
    """Scores ``diagonal_j * eta_j + offset_j * s``, (N, M, D), s the sum of the row, 1 if one probability was given."""

    def __init__(self, diagonal: NDArray[Any], offset: NDArray[Any], positive: bool) -> None:
        super().__init__()
        self.positive, self.has_offset = bool(positive), bool(offset.any())
        self.register_buffer("diagonal", bits_of(diagonal))
        self.register_buffer("offset", bits_of(offset))

    def forward(self, eta: Tensor) -> Tensor:
        diagonal, offset = doubles(self.diagonal), doubles(self.offset)
        # A decision that is no class has probability 0.
        scores = nn.functional.pad(eta, [0, diagonal.size(-1) - eta.size(-1)]) * diagonal
        if not self.has_offset:
            return scores
        return scores + (offset if self.positive else ordered_sum(eta) * offset)


class LeastLoss(nn.Module):
    """Codes (N, M) of the least expected loss, the lowest of several, from numbers (N, M, K) or (N, M, 1).

    Parameters
    ----------
    link, losses : nn.Module
        From numbers to probabilities, and from these to scores (N, M, D).
    padding : array of bool of shape (M, D)
        What is no decision of an output.
    positive : bool
        Whether numbers are the probability of the second of two classes.
    """

    def __init__(self, link: nn.Module, losses: nn.Module, padding: NDArray[np.bool_], positive: bool) -> None:
        super().__init__()
        self.link, self.losses, self.positive = link, losses, bool(positive)
        self.register_buffer("padding", torch.from_numpy(padding.copy()))

    def forward(self, numbers: Tensor) -> Tensor:
        eta = self.link(with_first(numbers) if self.positive else numbers)
        scores = self.losses(eta).masked_fill(self.padding, float("inf"))
        return scores.argmin(dim=-1)


class Draws(nn.Module):
    """Codes (N, M) of one of several modules, drawn for each row and output by the key of the row.

    Parameters
    ----------
    parts : sequence of R nn.Module
        From numbers to codes.
    edges : array of shape (M, R - 1)
        Where in [0, 1) the share of each part but the last ends.
    origin, step : int
        State of SplitMix64 before the first row, and its step.
    mixers : sequence of two (shift, factor)
    """

    def __init__(
        self,
        parts: Sequence[nn.Module],
        edges: NDArray[Any],
        origin: int,
        step: int,
        mixers: Sequence[tuple[int, int]],
    ) -> None:
        super().__init__()
        self.first, self.others = parts[0], nn.ModuleList(parts[1:])
        self.origin, self.step = signed(origin), signed(step)
        (self.first_shift, first_factor), (self.second_shift, second_factor) = mixers
        self.first_factor, self.second_factor = signed(first_factor), signed(second_factor)
        steps = np.arange(1, len(edges) + 1, dtype=np.uint64) * np.uint64(step)
        self.register_buffer("steps", torch.from_numpy(steps.view(np.int64)))
        self.register_buffer("edges", bits_of(edges.T))

    def forward(self, numbers: Tensor, keys: Tensor) -> Tensor:
        drawn, edges = self.uniforms(keys), doubles(self.edges)
        codes = self.first(numbers)
        for r, part in enumerate(self.others):
            codes = torch.where(drawn >= edges[r], part(numbers), codes)
        return codes

    def uniforms(self, keys: Tensor) -> Tensor:
        """Return the numbers in [0, 1) of rows and outputs, (N, M)."""
        rows = self.mixed(keys.to(torch.int64).unsqueeze(1) * self.step + self.origin)
        return shift_right(self.mixed(rows + self.steps), 11).to(torch.float64) * 2.0**-53

    def mixed(self, state: Tensor) -> Tensor:
        state = (state ^ shift_right(state, self.first_shift)) * self.first_factor
        state = (state ^ shift_right(state, self.second_shift)) * self.second_factor
        return state ^ shift_right(state, 31)


# ------------------------------------------------------------------------------------------------------------- rules


class RowReader(nn.Module):
    """Numbers of rows as float64, (N, M, K) or (N, M, 1), from the shapes and types that models return.

    Parameters
    ----------
    row_shape : list of int
        Shape of a row.
    axis : int
        Where an axis of size 1 is inserted: 1 for the only output, 2 for the only number; -1 for none.
    normalize : bool
        Whether rows are divided by their sum.
    """

    def __init__(self, row_shape: list[int], axis: int, normalize: bool) -> None:
        super().__init__()
        self.row_shape, self.axis, self.normalize = row_shape, axis, normalize

    def forward(self, numbers: Tensor) -> Tensor:
        if numbers.dim() == 1 and self.row_shape == [1]:
            numbers = numbers.unsqueeze(1)
        row_shape = list(numbers.shape[1:])
        if row_shape != self.row_shape:
            raise ValueError(f"rows must have shape {self.row_shape} each, as the rule needs, got {row_shape}.")
        eta = numbers.detach().to(torch.float64)
        if self.axis > 0:
            eta = eta.unsqueeze(self.axis)
        if self.normalize:
            # Rounded as rule.predict rounds: to the type of the numbers, or to float32 if NumPy does not have it.
            dtype = torch.float32 if numbers.dtype == torch.bfloat16 else numbers.dtype
            eta = (eta / ordered_sum(eta)).to(dtype).to(torch.float64)
        return eta


class DecisionModule(nn.Module):
    """Base of modules from numbers of rows to codes of decisions; see :func:`metricwise.export.to_torch`.

    Attributes
    ----------
    classes : tuple of M ndarrays
        Label of each decision about each output: its classes, followed by that of an abstention.
    multioutput : bool
        Whether decisions are 2-D.
    description : str
        What the rule decides, in words.
    """

    def __init__(
        self,
        reader: RowReader,
        decide: nn.Module,
        classes: tuple[NDArray[Any], ...],
        multioutput: bool,
        description: str,
    ) -> None:
        super().__init__()
        self.reader, self.decide = reader, decide
        self.classes, self.multioutput, self.description = classes, multioutput, description

    def shaped(self, codes: Tensor) -> Tensor:
        """Return codes (N, M) in the shape of y."""
        return codes if self.multioutput else codes[:, 0]

    def labels(self, codes: Tensor) -> NDArray[Any]:
        """Return the labels of codes, as ``rule.predict`` returns them: an array of shape (N,) or (N, M)."""
        positions = codes.detach().cpu().numpy()
        if self.multioutput:
            return decode(positions, self.classes)
        return decode(positions[:, None], self.classes)[:, 0]

    def extra_repr(self) -> str:
        return self.description


class RuleModule(DecisionModule):
    """The module of a rule that draws nothing."""

    def forward(self, numbers: Tensor) -> Tensor:
        """Return the codes of decisions, (N,) or (N, M)."""
        return self.shaped(self.decide(self.reader(numbers)))


class DrawnRuleModule(DecisionModule):
    """The module of a mixture, which also takes the keys of rows."""

    def forward(self, numbers: Tensor, keys: Tensor) -> Tensor:
        """Return the codes of decisions, (N,) or (N, M)."""
        return self.shaped(self.decide(self.reader(numbers), keys))
