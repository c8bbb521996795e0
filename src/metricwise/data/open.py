"""From what users hand over to a source of rows: arrays in memory, a table in batches, a Dask collection.

Owns which engine serves what was given. Must not know metrics or rules.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ..core.errors import InvalidParameter
from ..core.rows import Rows
from .arrays import read_data
from .frames import is_lazy, is_table
from .row_spec import RowSpec
from .schema import Schema
from .sources import MemorySource, SourceBase
from .tensors import host_array, is_tensor, shared_array
from .weights import check_sum

__all__ = ["Engine", "open_rows"]

Engine = Callable[[Rows, Schema], SourceBase]


def open_rows(spec: RowSpec, engine: Engine | None = None) -> tuple[Schema, SourceBase]:
    """Open the source of rows, and return it with what is known of all of them.

    Parameters
    ----------
    spec : RowSpec
    engine : callable, optional
        What serves arrays, from rows and schema to a source; by default, they stay in memory. Tables, Dask
        collections and tensors of a device have engines of their own.

    Returns
    -------
    Schema
    SourceBase

    Examples
    --------
    Rows in chunks of two, as if they did not fit into memory:

    >>> from metricwise.data.open import open_rows
    >>> from metricwise.data.row_spec import RowSpec
    >>> from metricwise.data.sources import ChunkedSource, MemorySource
    >>> def in_chunks(rows, schema):
    ...     return ChunkedSource.of(MemorySource(rows, schema), 2)
    >>> schema, source = open_rows(RowSpec([0.1, 0.3, 0.9], ["no", "no", "yes"], pos_label="yes"), engine=in_chunks)
    >>> schema.classes[0].tolist(), source.reduce(lambda rows: [rows.n_rows])
    (['no', 'yes'], [2, 1])
    """
    spec = replace(spec, proba=_mapped(spec.proba), y=_mapped(spec.y))
    if is_lazy(spec.proba):
        from .sources.dask_reading import read_collection

        data, source = read_collection(spec)
        return data.schema, _checked(source)
    if is_table(spec.proba, spec.y):
        from .sources.tables import read_table_source
        from .tables.reading import Table

        table = spec.proba if isinstance(spec.proba, Table) else Table(spec.proba)
        data, batches = read_table_source(table, spec)
        return data.schema, _checked(batches)
    spec = replace(spec, proba=_shared(spec.proba), y=host_array(spec.y) if is_tensor(spec.y) else spec.y)
    if is_tensor(spec.proba):
        from .sources.tensors import read_tensor

        data, batches = read_tensor(spec)
        return data.schema, _checked(batches)
    data = read_data(spec)
    row_source = (engine or MemorySource)(data.rows, data.schema)
    if data.counts is not None:
        vars(row_source)["class_weights"] = data.counts  # counted already
    return data.schema, row_source


def _mapped(values: Any) -> Any:
    """Return the array of an .npy file without reading it: its pages are, as they are needed."""
    if (isinstance(values, str) or hasattr(values, "__fspath__")) and str(values).lower().endswith(".npy"):
        try:
            return np.load(values, mmap_mode="r", allow_pickle=False)
        except (ValueError, EOFError) as error:
            raise InvalidParameter(
                "", problem=f"must be an array of numbers or text, and could not be read as one: {error}", owner=values
            ) from None
    return values


def _shared(proba: Any) -> Any:
    """Return tensors of other libraries as arrays of the same memory, where NumPy can share it."""
    if isinstance(proba, (list, tuple)) and len(proba) and is_tensor(proba[0]):
        return [host_array(one) for one in proba]
    array = shared_array(proba) if is_tensor(proba) else None
    return proba if array is None else array


def _checked(source: SourceBase) -> SourceBase:
    """Refuse weights of rows that were read in pieces by what they add up to; that none is positive is said later."""
    if source.weighted and source.labelled and source.class_weights.any():
        check_sum(float(source.class_weights.sum()), None)
    return source
