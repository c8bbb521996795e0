"""From what users hand over to a source of rows: arrays in memory, a table in batches, a Dask collection.

Owns which engine serves what was given. Must not know metrics or rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from ..core.errors import InvalidParameter
from ..core.rows import Rows
from .arrays import Data, read_data
from .frames import is_lazy, is_table
from .schema import Schema
from .sources import MemorySource, SourceBase
from .tensors import host_array, is_tensor, shared_array
from .weights import check_sum

__all__ = ["Engine", "read_source", "serving_rows_by"]

Engine = Callable[[Rows, Schema], SourceBase]
_ENGINE: ContextVar[Engine] = ContextVar("engine", default=MemorySource)


@contextmanager
def serving_rows_by(engine: Engine) -> Iterator[None]:
    """Let another engine serve the arrays that are read inside the `with` block, in this thread.

    Parameters
    ----------
    engine : callable
        From rows in memory and their schema to a source of the same rows.

    Examples
    --------
    Rows in chunks of 100, as if they did not fit into memory:

    >>> import numpy as np
    >>> import metricwise as mw
    >>> from metricwise.data.open import serving_rows_by
    >>> from metricwise.data.sources import ChunkedSource, MemorySource
    >>> def in_chunks(rows, schema):
    ...     return ChunkedSource.of(MemorySource(rows, schema), 100)
    >>> rng = np.random.default_rng(0)
    >>> proba = rng.beta(1, 3, 500)
    >>> y = rng.random(500) < proba
    >>> whole = mw.optimize(proba, y, "f1")
    >>> with serving_rows_by(in_chunks):
    ...     chunked = mw.optimize(proba, y, "f1")
    >>> type(chunked.problem.source).__name__, chunked.value == whole.value
    ('ChunkedSource', True)
    """
    token = _ENGINE.set(engine)
    try:
        yield
    finally:
        _ENGINE.reset(token)


def read_source(proba: Any, y: Any, *, engine: Engine | None = None, **options: Any) -> tuple[Data, SourceBase]:
    """Read what is known of all rows, and open the source of them.

    Parameters
    ----------
    proba, y
        As in :func:`metricwise.optimize`.
    engine : callable, optional
        What serves arrays, from rows and schema to a source. By default that of :func:`serving_rows_by`, or else
        :class:`~metricwise.data.sources.MemorySource`. Tables, Dask collections and tensors of a device have engines
        of their own.
    **options
        What else :func:`metricwise.data.read_data` takes.

    Returns
    -------
    Data
        Its rows are all of them in memory; else some that stand for all, and show what there is of each: labels,
        weights, how many classes.
    SourceBase
    """
    proba, y = _mapped(proba), _mapped(y)
    if is_lazy(proba):
        from .sources.dask_reading import read_collection

        data, source = read_collection(proba, y, **options)
        return data, _checked(source)
    if is_table(proba, y):
        from .sources.tables import read_table_source
        from .tables import Table

        table = proba if isinstance(proba, Table) else Table(proba)
        data, batches = read_table_source(table, y, **options)
        return data, _checked(batches)
    proba, y = _shared(proba), host_array(y) if is_tensor(y) else y
    if is_tensor(proba):
        from .sources.tensors import read_tensor

        data, batches = read_tensor(proba, y, **options)
        return data, _checked(batches)
    data = read_data(proba, y, **options)
    row_source = (engine or _ENGINE.get())(data.rows, data.schema)
    if data.counts is not None:
        vars(row_source)["class_weights"] = data.counts  # known already
    return data, row_source


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
