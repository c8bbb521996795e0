"""Metrics that are recorded beside the one that is maximised: what the user's words for them mean."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from ..core.errors import InvalidParameter
from ..metrics.resolution import Resolved, resolve

__all__ = ["RecordSpec", "resolve_record"]

RecordSpec = Iterable[Any] | Mapping[str, Any] | None

# Columns of the table of candidates, beside which a recorded metric has one of its own name.
_TAKEN = ("recipe", "score", "gain", "std_error")


def resolve_record(record: RecordSpec, kind: str, main: Resolved, pos_label: Any = None) -> dict[str, Resolved]:
    """Find the metrics to record, each under its name.

    Parameters
    ----------
    record : list, dict or None
        Metrics, each as :func:`metricwise.metrics.resolve` takes it; a dict gives them names.
    kind : str
        Of the target.
    main : Resolved
        What is maximised: the recorded metrics are averaged over outputs as it is, unless their names say how.
    pos_label : object, or list of M objects, optional
        The positive class of those that want for one.

    Returns
    -------
    dict of str to Resolved

    Examples
    --------
    >>> from metricwise.metrics import resolve
    >>> from metricwise.goals.recording import resolve_record
    >>> found = resolve_record(["precision", "recall_macro"], "multilabel", resolve("f1", "multilabel"))
    >>> {name: one.average for name, one in found.items()}
    {'precision': 'micro', 'recall_macro': 'macro'}
    """
    if record is None:
        return {}
    if isinstance(record, str) or not isinstance(record, (list, tuple, Mapping)):
        raise InvalidParameter(
            "record",
            "be a list of metrics, such as ['precision', 'recall'], or a dict of names to metrics",
            repr(record),
        )
    named = record.items() if isinstance(record, Mapping) else ((None, metric) for metric in record)
    resolved_metrics: dict[str, Resolved] = {}
    for name, metric in named:
        resolved = resolve(metric, kind, pos_label=pos_label, wanted_only=True)
        if not resolved.fixed:
            resolved = replace(resolved, average=main.average, support_weighted=main.support_weighted)
        _add(resolved_metrics, resolved.name if name is None else name, resolved)
    return resolved_metrics


def _add(resolved_metrics: dict[str, Resolved], name: Any, resolved: Resolved) -> None:
    if not isinstance(name, str):
        raise InvalidParameter("record", "name metrics by strings", repr(name))
    if name in resolved_metrics or name in _TAKEN:
        said = "is the name of two metrics" if name in resolved_metrics else "is a column of the table of candidates"
        raise InvalidParameter(
            "record", problem=f"record: {name!r} {said}", remedy="pass a dict of distinct names to metrics"
        )
    resolved_metrics[name] = resolved
