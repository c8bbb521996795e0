"""From what users hand over to a source of rows: arrays in memory, or a collection that is read in pieces.

Owns which engine serves what was given. Must not know metrics or rules.
"""

from __future__ import annotations

from typing import Any

from . import inputs
from .sources import MemorySource, SourceBase

__all__ = ["read_source"]


def read_source(proba: Any, y: Any, *, who: str = "optimize", **options: Any) -> tuple[inputs.Data, SourceBase]:
    """Read what is known of all rows, and open the source of them.

    Parameters
    ----------
    proba, y
        As in :func:`metricwise.optimize`.
    who : str
        For messages.
    **options
        What else :func:`metricwise.inputs.read_data` takes.

    Returns
    -------
    Data
        Its rows are all of them in memory; else some that stand for all, and show what there is of each: labels,
        weights, how many classes.
    SourceBase
    """
    if inputs.is_lazy(proba):
        from .sources.dask_reading import read_collection

        data, source = read_collection(proba, y, who=who, **options)
        _check_weights(source, who)
        return data, source

    data = inputs.read_data(proba, y, who=who, **options)
    memory = MemorySource(data.rows, data.schema)
    if data.counts is not None:
        vars(memory)["class_weights"] = data.counts  # known already
    return data, memory


def _check_weights(source: SourceBase, who: str) -> None:
    """Refuse weights of rows that were read in pieces by what they add up to; that none is positive is said later."""
    if source.weighted and source.labelled and source.class_weights.any():
        inputs.check_sum(float(source.class_weights.sum()), None, who)
