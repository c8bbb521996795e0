"""The state of a watch, and what becomes of it as rows and labels come in: a new state, or an error and the old one.

Must not know files, or how rows are given.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from ..rules.base import Rule, last_column
from .batches import Batch, Id, Waiting, WaitingRow, neglect_error, neglected_decision, thinned
from .evidence import LabelledRows, Observations, PromiseState, advance, estimate
from .forms import BY_DECISION, RANDOM, Labelled
from .promises import Promise

__all__ = ["WatchSettings", "WatchState", "add_labels", "add_rows"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class WatchSettings:
    """What is watched, and how.

    Parameters
    ----------
    rule : Rule
    promises : tuple of Promise
    alpha : float
        Probability of calling any promise broken that is kept.
    labelled : {"random", "by_decision", "by_class"}
        What decides whether the label of a row becomes known.
    forget_after : int, optional
        Batches after which a row is no longer waited for.
    """

    rule: Rule
    promises: tuple[Promise, ...]
    alpha: float
    labelled: Labelled
    forget_after: int | None = None

    @property
    def side_alpha(self) -> float:
        """The share of `alpha` of each bound of each promise."""
        return self.alpha / sum(len(promise.sides) for promise in self.promises)


@dataclass(frozen=True, eq=False)
class WatchState:
    """What a watch knows.

    Parameters
    ----------
    promises : tuple of PromiseState
    batches : tuple of Batch
        Records; neighbours may be joined.
    waiting : Waiting
        Rows that wait for their labels.
    n_batches, n_rows, n_labelled : int
        Batches, rows decided, and rows with a label.
    """

    promises: tuple[PromiseState, ...]
    batches: tuple[Batch, ...] = ()
    waiting: Waiting = field(default_factory=Waiting)
    n_batches: int = 0
    n_rows: int = 0
    n_labelled: int = 0

    @classmethod
    def begin(cls, settings: WatchSettings) -> WatchState:
        """Return the state before any row."""
        return cls(tuple(map(PromiseState.begin, settings.promises)))


def add_rows(
    settings: WatchSettings,
    state: WatchState,
    decisions: IntArray,
    codes: IntArray,
    groups: IntArray | None,
    ids: Sequence[Id] | None,
) -> WatchState:
    """Return the state after a batch of rows with decisions (n, M) and true classes (n, M), -1 where one is missing."""
    number = state.n_batches + 1
    rows = LabelledRows(codes, decisions, np.full(len(codes), number), groups)
    has_label = _has_label(codes)
    waiting = state.waiting
    if ids is not None:
        waiting.check_new(ids)
        new = {
            name: WaitingRow(number, tuple(decisions[n].tolist()), None if groups is None else int(groups[n]))
            for n, name in enumerate(ids)
            if not has_label[n]
        }
        waiting = waiting.added(new, [name for n, name in enumerate(ids) if has_label[n]])
    grown = replace(state, waiting=waiting, n_rows=state.n_rows + len(codes))
    return _after_batch(settings, grown, rows, _tally(settings.rule, decisions, np.ones(decisions.shape, dtype=bool)))


def add_labels(settings: WatchSettings, state: WatchState, ids: Sequence[Id], codes: IntArray) -> WatchState:
    """Return the state after labels of rows that wait for them; rows without any label go on waiting."""
    has_label = _has_label(codes)
    named = [name for n, name in enumerate(ids) if has_label[n]]
    known, waiting = state.waiting.taken(named)
    state.waiting.taken([name for n, name in enumerate(ids) if not has_label[n]])  # are checked alike
    n_outputs = settings.rule.n_outputs
    rows = LabelledRows(
        codes[has_label],
        np.array([row.decisions for row in known], dtype=np.intp).reshape(-1, n_outputs),
        np.array([row.batch for row in known], dtype=np.intp),
        np.array([-1 if row.group is None else row.group for row in known], dtype=np.intp),
    )
    nothing = np.zeros((n_outputs, settings.rule.schema.decision_width), dtype=np.intp)
    return _after_batch(settings, replace(state, waiting=waiting), rows, nothing)


def _has_label(codes: IntArray) -> NDArray[np.bool_]:
    """Say of each row whether a label of any output is known."""
    return np.asarray((codes >= 0).any(axis=1))


def _after_batch(settings: WatchSettings, state: WatchState, rows: LabelledRows, decided: IntArray) -> WatchState:
    """Return the state after a batch: `rows` are those that are decided or get a label, `decided` counts the former."""
    number = state.n_batches + 1
    is_new = decided.any()
    promises, observed = [], []
    for promise, known in zip(settings.promises, state.promises, strict=True):
        about = rows if promise.form.needs_labels or is_new else LabelledRows(*(table[:0] for table in rows[:3]))
        new, observations = advance(promise, known, about, number, settings.side_alpha)
        promises.append(new)
        observed.append(observations)
    state = replace(
        state,
        promises=tuple(promises),
        n_batches=number,
        n_labelled=state.n_labelled + int(_has_label(rows.codes).sum()),
    )
    state = replace(state, batches=thinned(_recorded(settings, state, rows, decided, observed)))
    if settings.forget_after is not None:
        state = replace(state, waiting=state.waiting.without_older(number - settings.forget_after))
    _check_neglect(settings, state)
    return state


def _recorded(
    settings: WatchSettings, state: WatchState, rows: LabelledRows, decided: IntArray, observed: list[Observations]
) -> list[Batch]:
    """Return the records with a new one; labels are added to the batches in which their rows were decided."""
    evidence = tuple(promise.log_evidence for promise in state.promises)
    estimates = tuple(
        estimate(promise, known, settings.alpha)
        for promise, known in zip(settings.promises, state.promises, strict=True)
    )
    empty = tuple(np.zeros((2, len(promise.form.parts))) for promise in settings.promises)
    new = Batch(state.n_batches, state.n_batches, decided, np.zeros_like(decided), empty, evidence, estimates)
    records = [*state.batches, new]
    firsts = np.array([record.first for record in records])
    place_of_row = np.searchsorted(firsts, rows.batch, side="right") - 1
    places_observed = [np.searchsorted(firsts, part.batch, side="right") - 1 for part in observed]
    for place in np.unique(np.concatenate([place_of_row, *places_observed])).tolist():
        here = place_of_row == place
        sums = [
            np.stack([part.a[at == place].sum(axis=0), part.b[at == place].sum(axis=0)])
            for part, at in zip(observed, places_observed, strict=True)
        ]
        records[place] = replace(
            records[place],
            labelled=records[place].labelled + _tally(settings.rule, rows.decisions, here[:, None] & (rows.codes >= 0)),
            sums=tuple(old + more for old, more in zip(records[place].sums, sums, strict=True)),
        )
    return records


def _tally(rule: Rule, decisions: IntArray, counted: NDArray[np.bool_]) -> IntArray:
    """Count the rows of each decision about each output, (M, D), where decisions (n, M) are counted (n, M)."""
    codes, width = last_column(decisions, rule.schema), rule.schema.decision_width
    return np.stack([np.bincount(codes[counted[:, m], m], minlength=width) for m in range(codes.shape[1])])


def _check_neglect(settings: WatchSettings, state: WatchState) -> None:
    """Refuse labels that are clearly not missing at random, if that is what a promise needs."""
    if settings.labelled != RANDOM or all(p.form.is_known(BY_DECISION) for p in settings.promises):
        return
    place = neglected_decision(state.batches)
    if place is None:
        return
    output, decision = place
    schema = settings.rule.schema
    label = schema.abstain_label if decision >= len(schema.classes[output]) else schema.classes[output][decision]
    labelled, decided = (int(sum(getattr(b, name)[place] for b in state.batches)) for name in ("labelled", "decided"))
    where = "" if schema.n_outputs == 1 else f" about output {output}"
    raise neglect_error(where, label, (labelled, decided))
