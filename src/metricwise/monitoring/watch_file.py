"""A watch as JSON: the rule, the promises and all that is known, so that another process goes on as if nothing was.

Owns how each field is written and read. Nothing that is read is ever run. Must not know how evidence is computed.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np

from ..rules import codec
from ..rules.base import Rule
from ..rules.load import rule_from_dict
from .batches import Batch, Id, Waiting, WaitingRow
from .e_process import BETS, EProcess, Tally
from .evidence import LeftOver, PromiseState, Restart
from .forms import LABELLED, MEANS, PairedRatio, RatiosMean, RowRatio, StreamForm
from .promises import Promise
from .state import WatchSettings, WatchState
from .stored_values import (
    Shape,
    read_array,
    read_bound,
    read_count,
    read_counts,
    read_each,
    read_limits,
    read_number,
    read_optional,
    read_stored_ids,
    refuse,
    write_number,
)

__all__ = ["read_watch", "to_document"]

FORMAT = "metricwise-watch"
VERSION = 1
_WHAT = "the watch"


def read_watch(path: str | os.PathLike[str]) -> tuple[WatchSettings, WatchState]:
    """Return settings and state of the watch in a file, or in JSON text, every field of which is checked."""
    document = codec.read_object(codec.parse(codec.read_text(path, _WHAT), _WHAT), _WHAT)
    codec.check_envelope(document, FORMAT, VERSION, _WHAT)
    codec.check_keys(document, ("format", "version", *_SETTINGS, *_STATE), _WHAT)
    settings = _read_settings(document)
    return settings, _read_state(document, settings)


def to_document(settings: WatchSettings, state: WatchState) -> dict[str, Any]:
    """Return settings and state as JSON types; :func:`read_watch` gives them back exactly."""
    pairs = zip(settings.promises, state.promises, strict=True)
    return {
        "format": FORMAT,
        "version": VERSION,
        "rule": settings.rule.to_dict(),
        "alpha": settings.alpha,
        "labelled": settings.labelled,
        "forget_after": settings.forget_after,
        "promises": [{**_write_promise(promise), "state": _write_known(known)} for promise, known in pairs],
        "n_batches": state.n_batches,
        "n_rows": state.n_rows,
        "n_labelled": state.n_labelled,
        "waiting": _write_waiting(state.waiting.rows),
        "labelled_ids": list(state.waiting.labelled),
        "n_forgotten": state.waiting.n_forgotten,
        "batches": [_write_batch(batch) for batch in state.batches],
    }


_SETTINGS = ("rule", "alpha", "labelled", "forget_after", "promises")
_STATE = ("n_batches", "n_rows", "n_labelled", "waiting", "labelled_ids", "n_forgotten", "batches")


# ------------------------------------------------------------------------------------------------------------- settings


def _read_settings(document: dict[str, Any]) -> WatchSettings:
    rule = rule_from_dict(codec.read_object(document["rule"], "rule"))
    alpha = read_number(document["alpha"], "alpha")
    if not 0 < alpha < 1:
        refuse("alpha", "a number between 0 and 1", alpha)
    if document["labelled"] not in LABELLED:
        refuse("labelled", f"one of {list(LABELLED)}", document["labelled"])
    after = read_optional(document["forget_after"], "forget_after", lambda value, name: read_count(value, name, 1))
    promises = read_each(document["promises"], "promises", lambda entry, name: _read_promise(entry, name, rule))
    if not promises:
        refuse("promises", "a non-empty list", document["promises"])
    return WatchSettings(rule, promises, alpha, document["labelled"], after)


def _write_promise(promise: Promise) -> dict[str, Any]:
    return {
        "name": promise.name,
        "low": write_number(promise.low),
        "high": write_number(promise.high),
        "output": promise.output,
        "group": promise.group,
        "form": _write_form(promise.form),
    }


def _read_promise(value: Any, name: str, rule: Rule) -> Promise:
    document = codec.read_object(value, name)
    codec.check_keys(document, ("name", "low", "high", "output", "group", "form", "state"), name)
    if not isinstance(document["name"], str):
        refuse(f"{name}.name", "text", document["name"])
    low = read_bound(document["low"], f"{name}.low", -math.inf)
    high = read_bound(document["high"], f"{name}.high", math.inf)
    if math.isinf(low) and math.isinf(high):
        refuse(name, "bounded from below or from above", value)
    output = _read_place(document["output"], f"{name}.output", rule.n_outputs)
    groups: Sequence[Any] = getattr(rule, "groups", ())
    group = _read_place(document["group"], f"{name}.group", len(groups))
    labels = rule.schema.classes[output or 0]
    shape = (len(labels), len(labels) + rule.schema.n_extra)
    form = _read_form(document["form"], f"{name}.form", shape, rule.n_outputs if output is None else 1)
    return Promise(document["name"], low, high, form, output, group)


def _read_place(value: Any, name: str, n_places: int) -> int | None:
    if value is not None and read_count(value, name) >= n_places:
        refuse(name, f"null or an integer below {n_places}", value)
    return None if value is None else int(value)


def _write_form(form: StreamForm) -> dict[str, Any]:
    if isinstance(form, RatiosMean):
        parts = [_write_form(part) for part in form.parts]
        return {"kind": "mean", "mean": form.kind, "parts": parts, "weight": form.weight.tolist()}
    limits = [write_number(limit) for limit in form.limits]
    if isinstance(form, PairedRatio):
        return {"kind": "pairs", "own": _write_form(form.own), "crossed": _write_form(form.crossed), "limits": limits}
    tables = {"A": form.A.tolist(), "B": form.B.tolist()}
    return {"kind": "rows", **tables, "limits": limits, "n_outputs": form.n_outputs, "at_zero": form.at_zero}


def _read_form(value: Any, name: str, shape: tuple[int, int], n_outputs: int) -> StreamForm:
    document = codec.read_object(value, name)
    kind = document.get("kind")
    if kind == "rows":
        return _read_rows(document, name, shape, n_outputs)
    if kind == "pairs":
        codec.check_keys(document, ("kind", "own", "crossed", "limits"), name)
        own, crossed = (_read_part(document[part], f"{name}.{part}", shape) for part in ("own", "crossed"))
        return PairedRatio(own, crossed, read_limits(document["limits"], f"{name}.limits"))
    if kind != "mean":
        refuse(f"{name}.kind", "'rows', 'pairs' or 'mean'", kind)
    codec.check_keys(document, ("kind", "mean", "parts", "weight"), name)
    if document["mean"] not in MEANS:
        refuse(f"{name}.mean", f"one of {list(MEANS)}", document["mean"])
    parts = read_each(document["parts"], f"{name}.parts", lambda entry, where: _read_part(entry, where, shape))
    return RatiosMean(document["mean"], parts, read_array(document["weight"], f"{name}.weight", (len(parts),)))


def _read_part(value: Any, name: str, shape: tuple[int, int]) -> RowRatio:
    return _read_rows(codec.read_object(value, name), name, shape, 1)


def _read_rows(document: dict[str, Any], name: str, shape: tuple[int, int], n_outputs: int) -> RowRatio:
    codec.check_keys(document, ("kind", "A", "B", "limits", "n_outputs", "at_zero"), name)
    if document["kind"] != "rows":
        refuse(f"{name}.kind", "'rows'", document["kind"])
    if document["n_outputs"] != n_outputs:
        refuse(f"{name}.n_outputs", str(n_outputs), document["n_outputs"])
    A, B = (read_array(document[table], f"{name}.{table}", shape) for table in "AB")
    at_zero = read_optional(document["at_zero"], f"{name}.at_zero", read_number)
    return RowRatio(A, B, read_limits(document["limits"], f"{name}.limits"), n_outputs, at_zero)


# ---------------------------------------------------------------------------------------------------------------- state


def _read_state(document: dict[str, Any], settings: WatchSettings) -> WatchState:
    n_batches, n_rows, n_labelled, n_forgotten = (
        read_count(document[name], name) for name in ("n_batches", "n_rows", "n_labelled", "n_forgotten")
    )
    known = tuple(
        _read_known(entry["state"], f"promises[{place}].state", promise, n_batches)
        for place, (entry, promise) in enumerate(zip(document["promises"], settings.promises, strict=True))
    )
    waiting = _read_waiting(document["waiting"], settings.rule, n_batches)
    labelled = read_stored_ids(document["labelled_ids"], "labelled_ids")
    if waiting.keys() & set(labelled):
        refuse("labelled_ids", "ids that do not wait for labels", document["labelled_ids"])
    batches = read_each(document["batches"], "batches", lambda entry, name: _read_batch(entry, name, settings))
    _check_numbers(batches, n_batches)
    return WatchState(
        known, batches, Waiting(waiting, dict.fromkeys(labelled), n_forgotten), n_batches, n_rows, n_labelled
    )


def _check_numbers(batches: Sequence[Batch], n_batches: int) -> None:
    """Check that records are of all batches, one after another."""
    ends = [0, *(batch.last for batch in batches)]
    good = all(batch.first == end + 1 and batch.last > end for batch, end in zip(batches, ends, strict=False))
    if not good or ends[-1] != n_batches:
        refuse("batches", f"records of the batches 1 to {n_batches}, in order", ends[1:])


def _write_known(known: PromiseState) -> dict[str, Any]:
    return {
        "processes": [_write_process(process) for process in known.processes],
        "restarts": [
            {"mark": restart.mark, "tallies": [_write_tally(tally) for tally in restart.tallies]}
            for restart in known.restarts
        ],
        "n_batches": known.n_batches,
        "n_rows": known.n_rows,
        "left_over": None if known.left_over is None else list(known.left_over),
        "found": known.found,
        "since": known.since,
    }


def _read_known(value: Any, name: str, promise: Promise, n_batches: int) -> PromiseState:
    document = codec.read_object(value, name)
    codec.check_keys(document, ("processes", "restarts", "n_batches", "n_rows", "left_over", "found", "since"), name)
    number = read_count(document["n_batches"], f"{name}.n_batches")
    is_mean = isinstance(promise.form, RatiosMean)
    processes = read_each(
        document["processes"],
        f"{name}.processes",
        lambda entry, where: _read_process(entry, where, number),
        0 if is_mean else len(promise.sides),
    )
    n_restarts = number.bit_length() if is_mean else min(number, 1)
    restarts = read_each(
        document["restarts"], f"{name}.restarts", lambda e, w: _read_restart(e, w, len(promise.form.parts)), n_restarts
    )
    left_over = read_optional(document["left_over"], f"{name}.left_over", lambda e, w: _read_left_over(e, w, promise))
    found, since = (
        read_optional(document[field], f"{name}.{field}", lambda e, w: read_count(e, w, 1))
        for field in ("found", "since")
    )
    if (found is None) != (since is None) or max(found or 0, since or 0, number) > n_batches:
        refuse(name, f"about batches up to {n_batches}, with both or neither of found and since", value)
    n_rows = read_count(document["n_rows"], f"{name}.n_rows")
    return PromiseState(processes, restarts, number, n_rows, left_over, found, since)


def _read_left_over(value: Any, name: str, promise: Promise) -> LeftOver:
    code, decision, batch = read_each(value, name, read_count, 3)
    if not isinstance(promise.form, PairedRatio) or max(code, decision) >= len(promise.form.own.A):
        refuse(name, "the class, the decision and the batch of a row", value)
    return LeftOver(code, decision, batch)


def _write_process(process: EProcess) -> dict[str, Any]:
    if process.n_starts == 0:  # whose logarithms are infinite
        return {"log_wealth": [], "log_peak": [], "peak": []}
    return {name: getattr(process, name).tolist() for name in ("log_wealth", "log_peak", "peak")}


def _read_process(value: Any, name: str, n_starts: int) -> EProcess:
    document = codec.read_object(value, name)
    codec.check_keys(document, ("log_wealth", "log_peak", "peak"), name)
    shape: Shape = (len(BETS) if n_starts else None,)
    log_wealth, log_peak = (
        read_array(document[field], f"{name}.{field}", shape) for field in ("log_wealth", "log_peak")
    )
    peak = read_counts(document["peak"], f"{name}.peak", shape, np.int64)
    if n_starts:
        return EProcess(log_wealth, log_peak, peak, n_starts)
    if len(log_wealth) or len(log_peak) or len(peak):
        refuse(name, "empty before the first batch", value)
    return EProcess.begin()


def _write_tally(tally: Tally) -> dict[str, Any]:
    pairs = None if tally.pairs is None else tally.pairs.tolist()
    return {"pairs": pairs, "counts": tally.counts.tolist(), "sums": tally.sums.tolist(), "n_rows": tally.n_rows}


def _read_tally(value: Any, name: str) -> Tally:
    document = codec.read_object(value, name)
    codec.check_keys(document, ("pairs", "counts", "sums", "n_rows"), name)
    pairs = read_optional(document["pairs"], f"{name}.pairs", lambda entry, where: read_array(entry, where, (None, 2)))
    counts = read_counts(document["counts"], f"{name}.counts", (None,), np.int64)
    sums, n_rows = (
        read_array(document["sums"], f"{name}.sums", (2,)),
        read_count(document["n_rows"], f"{name}.n_rows"),
    )
    if len(counts) != (0 if pairs is None else len(pairs)) or (pairs is not None and counts.sum() != n_rows):
        refuse(f"{name}.counts", "a count for each pair, n_rows in all", document["counts"])
    if pairs is not None and not np.array_equal(np.unique(pairs, axis=0), pairs):
        refuse(f"{name}.pairs", "distinct and sorted", document["pairs"])
    return Tally(pairs, counts, sums, n_rows)


def _read_restart(value: Any, name: str, n_parts: int) -> Restart:
    document = codec.read_object(value, name)
    codec.check_keys(document, ("mark", "tallies"), name)
    tallies = read_each(document["tallies"], f"{name}.tallies", _read_tally, n_parts)
    return Restart(read_count(document["mark"], f"{name}.mark"), tallies)


# ----------------------------------------------------------------------------------------------------- rows and batches


def _write_waiting(rows: Mapping[Id, WaitingRow]) -> list[dict[str, Any]]:
    """Return rows that wait, those of a batch together."""
    written = []
    for batch, members in groupby(rows.items(), key=lambda entry: entry[1].batch):
        named = list(members)
        groups = [row.group for _, row in named]
        written.append(
            {
                "batch": batch,
                "ids": [name for name, _ in named],
                "decisions": [list(row.decisions) for _, row in named],
                "groups": None if None in groups else groups,
            }
        )
    return written


def _read_waiting(value: Any, rule: Rule, n_batches: int) -> dict[Id, WaitingRow]:
    waiting: dict[Id, WaitingRow] = {}
    for part in read_each(value, "waiting", lambda entry, name: _read_waiting_batch(entry, name, rule, n_batches)):
        if waiting.keys() & part.keys():
            refuse("waiting", "distinct ids", sorted(map(str, waiting.keys() & part.keys())))
        waiting.update(part)
    return waiting


def _read_waiting_batch(value: Any, name: str, rule: Rule, n_batches: int) -> dict[Id, WaitingRow]:
    document = codec.read_object(value, name)
    codec.check_keys(document, ("batch", "ids", "decisions", "groups"), name)
    batch = read_count(document["batch"], f"{name}.batch", 1)
    ids = read_stored_ids(document["ids"], f"{name}.ids")
    decisions = read_counts(document["decisions"], f"{name}.decisions", (len(ids), rule.n_outputs))
    groups = read_optional(
        document["groups"], f"{name}.groups", lambda entry, where: read_counts(entry, where, (len(ids),)).tolist()
    )
    if batch > n_batches or (decisions >= rule.schema.n_decisions).any():
        refuse(name, f"of a batch up to {n_batches}, with decisions of the rule", value)
    if (groups is not None) != ("sensitive_features" in rule.needs):
        refuse(f"{name}.groups", "the groups of rows if the rule decides by them, else null", document["groups"])
    return {
        row_id: WaitingRow(batch, tuple(codes), None if groups is None else groups[place])
        for place, (row_id, codes) in enumerate(zip(ids, decisions.tolist(), strict=True))
    }


def _write_batch(batch: Batch) -> dict[str, Any]:
    return {
        "first": batch.first,
        "last": batch.last,
        "decided": batch.decided.tolist(),
        "labelled": batch.labelled.tolist(),
        "sums": [sums.tolist() for sums in batch.sums],
        "evidence": list(batch.evidence),
        "estimates": [None if entry is None else [write_number(end) for end in entry] for entry in batch.estimates],
    }


def _read_batch(value: Any, name: str, settings: WatchSettings) -> Batch:
    document = codec.read_object(value, name)
    codec.check_keys(document, ("first", "last", "decided", "labelled", "sums", "evidence", "estimates"), name)
    schema, promises = settings.rule.schema, settings.promises
    shape = (schema.n_outputs, schema.decision_width)
    decided, labelled = (read_counts(document[field], f"{name}.{field}", shape) for field in ("decided", "labelled"))
    if (labelled > decided).any():
        refuse(f"{name}.labelled", "at most the rows decided", document["labelled"])
    sums = read_each(document["sums"], f"{name}.sums", lambda entry, _: entry, len(promises))
    return Batch(
        read_count(document["first"], f"{name}.first", 1),
        read_count(document["last"], f"{name}.last", 1),
        decided,
        labelled,
        tuple(
            read_array(entry, f"{name}.sums[{place}]", (2, len(promises[place].form.parts)))
            for place, entry in enumerate(sums)
        ),
        read_each(
            document["evidence"], f"{name}.evidence", lambda e, w: read_optional(e, w, read_number), len(promises)
        ),
        read_each(
            document["estimates"], f"{name}.estimates", lambda e, w: read_optional(e, w, _read_estimate), len(promises)
        ),
    )


def _read_estimate(value: Any, name: str) -> tuple[float, float, float]:
    estimate, low, high = read_each(value, name, lambda entry, _: entry, 3)
    return (
        read_number(estimate, f"{name}[0]"),
        read_bound(low, f"{name}[1]", -math.inf),
        read_bound(high, f"{name}[2]", math.inf),
    )
