"""What a watch tells: the status of each promise, and a summary for displays and pages.

Must not change a state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._version import __version__
from ..core.labels import python_labels
from ..inference.results import Estimate
from ..inspection.text import number
from ..rules.base import Rule
from .batches import Batch
from .evidence import PromiseState
from .promises import Promise
from .state import WatchSettings, WatchState

__all__ = ["PromiseStatus", "notes_of", "plural", "statuses_of", "summarize"]

N_RECENT_BATCHES, N_RECENT_ROWS = 5, 100
_MAX_LOG_EVIDENCE = 700.0  # of which the exponential is a number


@dataclass(frozen=True)
class PromiseStatus:
    """What rows and labels so far say of a promise.

    Parameters
    ----------
    name : str
        The promise, as it was written.
    low, high : float
        Bounds; infinite where there is none.
    estimate : Estimate or None
        Value on all rows so far that the promise is about and whose labels are known, with an interval that holds at
        all times with confidence 1 - alpha, if the value has not changed; None if there are no such rows.
    recent : float or None
        Value on the rows of the last batches that have any: five of them, or as many as 100 rows take.
    n_rows : int
        Rows that the promise is about and whose labels are known; for kappa, those of pairs that say something.
    evidence : float or None
        The e-value against the promise: at most 1 on average while it is kept. None for means of class ratios, whose
        intervals decide.
    limit : float
        The evidence from which on the promise is called broken: the number of bounds that are watched, divided by
        alpha.
    broken : bool
        Whether the promise was found to be broken, at any time.
    found, since : int or None
        The batch in which it was found to be broken, and the batch since which it seems to be.

    See Also
    --------
    metricwise.watch : Watches promises.

    Examples
    --------
    >>> import metricwise as mw
    >>> watch = mw.watch(mw.WeightedRule.from_thresholds(0.5), "precision >= 0.5")
    >>> (status,) = watch.update([0.2, 0.7, 0.8, 0.9], y=[0, 0, 1, 1]).promises
    >>> status.estimate.estimate, status.n_rows, status.broken
    (0.6666666666666666, 3, False)
    """

    name: str
    low: float
    high: float
    estimate: Estimate | None
    recent: float | None
    n_rows: int
    evidence: float | None
    limit: float
    broken: bool
    found: int | None
    since: int | None

    @property
    def sentence(self) -> str:
        """The status in a sentence or two."""
        if self.estimate is None:
            return f"Not known yet: {self.name}. No row that it is about has a label."
        value = self.estimate
        numbers = (
            f"{number(value.estimate)} [{number(value.low)}, {number(value.high)}] on {plural(self.n_rows, 'row')}"
        )
        recent = "" if self.recent is None else f", {number(self.recent)} in the last batches"
        if not self.broken:
            return f"No sign that it is broken: {self.name} ({numbers}{recent})."
        return (
            f"Broken: {self.name} ({numbers}{recent}), since about batch {self.since}, found in batch {self.found}. "
            "Refit the rule with recent labels."
        )


def plural(count: int, noun: str) -> str:
    """Return a number of things."""
    return f"{count:,} {noun}{'' if count == 1 else 'es' if noun.endswith('ch') else 's'}"


def statuses_of(settings: WatchSettings, state: WatchState) -> tuple[PromiseStatus, ...]:
    """Return what is known of each promise."""
    pairs = zip(settings.promises, state.promises, strict=True)
    limit = 1.0 / settings.side_alpha
    return tuple(_status(promise, known, place, state.batches, limit) for place, (promise, known) in enumerate(pairs))


def _status(promise: Promise, known: PromiseState, place: int, batches: Sequence[Batch], limit: float) -> PromiseStatus:
    latest = batches[-1].estimates[place] if batches else None
    log_evidence = known.log_evidence
    return PromiseStatus(
        promise.name,
        promise.low,
        promise.high,
        None if latest is None else Estimate(*latest),
        _recent_value(promise, place, batches),
        known.n_rows,
        None if log_evidence is None else float(np.exp(min(log_evidence, _MAX_LOG_EVIDENCE))),
        limit,
        known.found is not None,
        known.found,
        known.since,
    )


def notes_of(state: WatchState) -> tuple[str, ...]:
    """Return what should be known besides, as sentences."""
    n_forgotten = state.waiting.n_forgotten
    if not n_forgotten:
        return ()
    were = "was" if n_forgotten == 1 else "were"
    return (f"{plural(n_forgotten, 'row')} {were} waited for in vain: no label came in time.",)


def summarize(settings: WatchSettings, state: WatchState) -> dict[str, Any]:
    """Return everything that a display or a page shows, as JSON types; see :meth:`metricwise.Watch.summary`."""
    statuses = statuses_of(settings, state)
    return {
        "metricwise": __version__,
        "rule": settings.rule.describe(),
        "alpha": settings.alpha,
        "labelled": settings.labelled,
        "batches": state.n_batches,
        "rows": state.n_rows,
        "labelled_rows": state.n_labelled,
        "waiting": len(state.waiting.rows),
        "broken": any(status.broken for status in statuses),
        "sentences": [status.sentence for status in statuses],
        "notes": list(notes_of(state)),
        "promises": [
            {**_as_json(status), **_over_time(promise, place, state.batches)}
            for place, (status, promise) in enumerate(zip(statuses, settings.promises, strict=True))
        ],
        "history": _history(settings.rule, state.batches),
    }


def _recent_value(promise: Promise, place: int, batches: Sequence[Batch]) -> float | None:
    """Return the value on the rows of the last batches that have any: five of them, and 100 rows if there are."""
    sums, n_rows = [], 0
    for batch in reversed(batches):
        if batch.sums[place].any():
            sums.append(batch.sums[place])
            counts = batch.labelled if promise.form.needs_labels else batch.decided
            n_rows += int(promise.of_output(counts.T).sum(axis=0).max())
        if len(sums) >= N_RECENT_BATCHES and n_rows >= N_RECENT_ROWS:
            break
    return promise.form.value(np.sum(sums, axis=0)) if sums else None


def _as_json(status: PromiseStatus) -> dict[str, Any]:
    entries = {**vars(status), "estimate": None if status.estimate is None else vars(status.estimate)}
    for name in ("low", "high"):
        entries[name] = entries[name] if np.isfinite(entries[name]) else None
    return {**entries, "sentence": status.sentence}


def _over_time(promise: Promise, place: int, batches: Sequence[Batch]) -> dict[str, list[float | None]]:
    """Return what was known of a promise after each batch."""
    estimates = [batch.estimates[place] for batch in batches]
    running, low, high = ([None if entry is None else _finite(entry[at]) for entry in estimates] for at in range(3))
    return {
        "values": [promise.form.value(b.sums[place]) if b.sums[place].any() else None for b in batches],
        "running": running,
        "running_low": low,
        "running_high": high,
        "log_evidence": [batch.evidence[place] for batch in batches],
    }


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


def _history(rule: Rule, batches: Sequence[Batch]) -> dict[str, Any]:
    schema = rule.schema
    outputs = []
    for m, labels in enumerate(schema.decisions):
        places = [*range(len(schema.classes[m])), *([schema.width] if schema.abstain_label is not None else [])]
        counts = np.array([batch.decided[m][places] for batch in batches]).reshape(-1, len(places))
        total = counts.sum(axis=1, keepdims=True)
        shares = [
            [None] * len(places) if not n else (row / n).tolist() for row, n in zip(counts, total[:, 0], strict=True)
        ]
        name = None if schema.output_names is None else schema.output_names[m]
        outputs.append({"name": name, "decisions": [str(label) for label in python_labels(labels)], "shares": shares})
    return {
        "first": [batch.first for batch in batches],
        "last": [batch.last for batch in batches],
        "rows": [int(batch.decided[0].sum()) for batch in batches],
        "outputs": outputs,
    }
