"""Rows that are not in memory, as ``evaluate`` judges them: counted by labels and decisions, in one pass.

A few kinds of rows stand for all of them afterwards. Must not know metrics or intervals.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InvalidParameter
from ..data.frames import is_lazy
from ..data.labels import read_pair
from ..data.row_spec import take_rows
from ..data.sensitive import Groups, SensitiveFeatures
from ..data.sources.base import SourceBase
from ..inference.decisions import Decisions
from ..kernels import code_type
from ..oracles.kinds import KindRows, count_kinds
from .arguments import is_in_table, open_side
from .contenders import Contender, Contest

__all__ = ["DecidedKinds", "decide_kinds"]

Baseline = Callable[[Any, SensitiveFeatures | None, Any], Decisions]


@dataclass(frozen=True, eq=False)
class DecidedKinds:
    """Kinds of rows, their sensitive groups, and what is decided about each by the rule and its baseline."""

    rows: KindRows
    sensitive: SensitiveFeatures | None
    both: list[Decisions]


def decide_kinds(
    contest: Contest, source: SourceBase, y: Any, groups: Groups | None, segments: Any, baseline: Baseline | None
) -> DecidedKinds:
    """Count the rows of a source by their labels and what is decided about them.

    Parameters
    ----------
    contest : Contest
    source : SourceBase
        Rows that know their sensitive group if `groups` are given.
    y : str or list of str, or a Dask collection
        As the user passed it.
    segments : array-like of shape (N,) or (N, F), Groups, or None
        Groups: rows know their segment.
    baseline : callable or None
        Decides where there is no second contender.
    """
    decider = _Decider.of(contest, source, y, groups, segments, baseline)
    shares = [decisions.shares for decisions in decider.decisions(source.glance(1))]
    n_outputs, n_groups = source.schema.n_outputs, 0 if groups is None else len(groups.names)
    n_columns = [n_outputs * _n_parts(side.shape[1]) for side in shares]
    width = source.schema.decision_width
    kinds = count_kinds(source, decider, [width] * sum(n_columns), n_groups)
    both = []
    for numbers, share in zip(np.split(kinds.numbers, np.cumsum(n_columns)[:-1], axis=1), shares, strict=True):
        parts = np.split(numbers.astype(code_type(width)), _n_parts(share.shape[1]), axis=1)
        tiled = [np.tile(part, max(n_groups, 1)) for part in parts]
        both.append(Decisions(tuple(tiled[: share.shape[1]]), share, tiled[-1]))
    group = kinds.source.rows.group
    sensitive = None if groups is None or group is None else SensitiveFeatures(group, groups)
    return DecidedKinds(kinds, sensitive, both)


def _n_parts(n_rules: int) -> int:
    """Return how many decisions describe that of a mixture of rules: one of each, and the one that is drawn."""
    return 1 if n_rules == 1 else n_rules + 1


@dataclass(frozen=True, eq=False)
class _Decider:
    """Says what is decided about some rows: numbers (n, E), the decisions of each side one after the other.

    `held` are the decisions about all rows of sides that do not decide by the numbers of these rows.
    """

    contest: Contest
    held: list[Decisions | None]
    groups: Groups | None
    segments: Any
    baseline: Baseline | None

    @classmethod
    def of(
        cls,
        contest: Contest,
        source: SourceBase,
        y: Any,
        groups: Groups | None,
        segments: Any,
        baseline: Baseline | None,
    ) -> _Decider:
        """Return the decider of a contest, without the tables that the contest names: it travels to the rows."""
        alone = replace(contest, proba=None, first=_without_proba(contest.first))
        alone = alone if contest.second is None else replace(alone, second=_without_proba(contest.second))
        decider = cls(alone, [None] * len(contest.contenders), groups, segments, baseline)
        held = [decider._held(side, contest, source, y) for side in contest.contenders]
        return replace(decider, held=held)

    def _held(self, side: Contender, contest: Contest, source: SourceBase, y: Any) -> Decisions | None:
        """Return decisions about all rows that are given as labels, or made by the numbers of another table."""
        reader, n_rows = contest.reader, source.n_rows
        if side.rule is None and side.threshold is None:
            return _given(side.labels, reader, n_rows)
        rule = reader if side.rule is None else side.rule
        if side.proba is contest.proba and rule.schema.normalize == reader.schema.normalize:
            return None
        if not (is_lazy(side.proba) or is_in_table(side.proba, y)):
            raise InvalidParameter(
                "rule", problem="both models must have their probabilities in tables, or both in memory"
            )
        others = open_side(rule, side.proba, reader, y)
        if others.n_rows != n_rows:
            raise InvalidParameter(
                "rule",
                problem=f"both models must have probabilities of the same {n_rows} rows, in the same order, got "
                f"{[n_rows, others.n_rows]}",
            )
        if self.groups is not None or isinstance(self.segments, Groups):
            raise InvalidParameter(
                "rule",
                problem="two models with tables of their own cannot be compared by group or segment",
                remedy="pass their probabilities in data frames in memory",
            )
        decided = others.reduce(_Alone(self, _without_proba(side)), lambda first, second: first + second)
        return _joined(decided)

    def decisions(self, rows: Any) -> list[Decisions]:
        """Return what each side decides about some rows."""
        sensitive = None if self.groups is None else SensitiveFeatures(rows.group, self.groups)
        places = np.arange(rows.start, rows.start + rows.n_rows)
        both = [
            self.decided(side, rows, sensitive) if held is None else held.take(places)
            for side, held in zip(self.contest.contenders, self.held, strict=True)
        ]
        if self.baseline is not None:
            both.append(self.baseline(rows, sensitive, self._segments(rows)))
        return both

    def decided(self, side: Contender, rows: Any, sensitive: SensitiveFeatures | None) -> Decisions:
        """Return what one side decides about some rows."""
        segments = self._segments(rows)
        return side.decisions(self.contest, None, rows.proba, sensitive, None, segments, start=rows.start)

    def _segments(self, rows: Any) -> Any:
        if isinstance(self.segments, Groups):
            return SensitiveFeatures(rows.group, self.segments)
        return None if self.segments is None else take_rows(self.segments, slice(rows.start, rows.start + rows.n_rows))

    def __call__(self, rows: Any) -> NDArray[Any]:
        """Return the decisions about some rows, for the group of each."""
        columns = []
        for decided in self.decisions(rows):
            n_rules = len(decided.codes)
            for codes in (*decided.codes, decided.drawn)[: _n_parts(n_rules)]:
                if self.groups is not None:
                    by_group = codes.reshape(rows.n_rows, len(self.groups.names), -1)
                    codes = by_group[np.arange(rows.n_rows), rows.group]
                columns.append(codes)
        return np.concatenate(columns, axis=1)


class _Alone:
    """What one side decides about some rows, as a list that can be added to others."""

    def __init__(self, decider: _Decider, side: Contender) -> None:
        self.decider, self.side = decider, side

    def __call__(self, rows: Any) -> list[Decisions]:
        return [self.decider.decided(self.side, rows, None)]


def _without_proba(side: Contender) -> Contender:
    return replace(side, proba=None, labels=None)


def _given(labels: Any, reader: Any, n_rows: int) -> Decisions:
    """Return decisions that are given as labels in memory."""
    if is_lazy(labels):
        raise InvalidParameter(
            "rule", "hold decisions in memory", "a Dask collection", "pass decisions.compute(), one label per row"
        )
    classes = list(reader.classes) if reader.multioutput else reader.classes[0]
    codes = read_pair(labels, labels, classes)[0]
    if len(codes) != n_rows or codes.shape[1] != reader.n_outputs:
        raise InvalidParameter("rule", f"hold a decision about each of the {n_rows} rows", codes.shape)
    if (codes < 0).any():
        raise InvalidParameter("rule", "hold a decision about every row", "missing ones")
    return Decisions.of_codes(codes.astype(code_type(reader.schema.decision_width)))


def _joined(parts: list[Decisions]) -> Decisions:
    """Put decisions about rows one after the other."""
    codes = tuple(np.concatenate(arrays) for arrays in zip(*(part.codes for part in parts), strict=True))
    return Decisions(codes, parts[0].shares, np.concatenate([part.drawn for part in parts]))
