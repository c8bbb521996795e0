"""Decisions of a rule about rows, as codes; of a mixture, those of each of its rules with their shares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import kernels
from ..rules.base import Rule, RuleRows

__all__ = ["Decisions"]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Decisions:
    """Codes (N, M) of each rule of a mixture, their shares (M or 1, R), and the codes (N, M) that are drawn."""

    codes: tuple[NDArray[Any], ...]
    shares: FloatArray
    drawn: NDArray[Any]

    @classmethod
    def of(cls, rule: Rule, rows: RuleRows, n_groups: int = 1) -> Decisions:
        """Return the decisions about all outputs, once for every sensitive group if there are any."""
        dtype = kernels.code_type(rule.schema.decision_width)
        codes_of_rules, shares = rule.decide_each(rows, n_groups)
        codes = tuple(decided.astype(dtype, copy=False) for decided in codes_of_rules)
        if len(codes) == 1 and rows.groups is None:
            return cls(codes, shares, codes[0])
        return cls(codes, shares, np.tile(rule.decide(rows).astype(dtype), n_groups))

    @classmethod
    def of_codes(cls, codes: NDArray[Any], n_groups: int = 1) -> Decisions:
        """Return decisions from their codes (N, M), once for every sensitive group."""
        codes = np.tile(codes, n_groups) if n_groups > 1 else codes
        return cls((codes,), np.ones((1, 1)), codes)

    @property
    def as_drawn(self) -> Decisions:
        """The drawn decisions, without the shares."""
        return self.of_codes(self.drawn)

    def take(self, rows: NDArray[np.intp]) -> Decisions:
        """Return the decisions about some of the rows."""
        return Decisions(tuple(codes[rows] for codes in self.codes), self.shares, self.drawn[rows])

    def of_outputs(self, outputs: slice) -> Decisions:
        """Return the decisions about some of the outputs."""
        shares = self.shares if len(self.shares) == 1 else self.shares[outputs]
        return Decisions(tuple(codes[:, outputs] for codes in self.codes), shares, self.drawn[:, outputs])

    def of_class(self, j: int) -> Decisions:
        """Return whether each decision is class j."""
        codes = tuple((decided == j).astype(decided.dtype) for decided in self.codes)
        return Decisions(codes, self.shares, (self.drawn == j).astype(self.drawn.dtype))

    def of_row_group(self, groups: NDArray[np.intp]) -> Decisions:
        """Return the decisions about a single output for the group of each row; as drawn if the shares differ."""
        rows = np.arange(len(groups))
        *codes, drawn = (decided[rows, groups][:, None] for decided in (*self.codes, self.drawn))
        if len(self.shares) == 1 or (self.shares == self.shares[0]).all():
            return Decisions(tuple(codes), self.shares[:1], drawn)
        return Decisions.of_codes(drawn)

    def mix(self, tensors: list[FloatArray]) -> FloatArray:
        """Return the mean by shares of arrays (S, M, ...), one for each rule."""
        if len(tensors) == 1:
            return tensors[0]
        shares = np.broadcast_to(self.shares, (tensors[0].shape[1], len(tensors)))
        return np.asarray(np.einsum("mr,rsm...->sm...", shares, np.stack(tensors)))
