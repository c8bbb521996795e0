"""Opens the source of rows that serves the arguments: arrays, a table, a frame of Dask or Spark, or a tensor.

Must not know metrics or rules.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ..core.errors import InvalidParameter
from ..core.probabilities import Probabilities
from ..core.rows import Rows
from ..core.schema import Schema
from .arrays import PieceReader, read_data
from .frames import host_array, is_lazy, is_spark, is_table, is_tensor, shared_array
from .row_spec import RowSpec
from .sources.base import SourceBase
from .sources.memory import MemorySource
from .weights import check_sum

__all__ = ["Engine", "open_rows", "open_unlabelled"]

Engine = Callable[[Rows, Schema], SourceBase]


def open_rows(spec: RowSpec, engine: Engine | None = None) -> tuple[Schema, SourceBase]:
    """Open the source of rows, and return it with what is known of all of them.

    Parameters
    ----------
    spec : RowSpec
    engine : callable, optional
        What serves arrays, from rows and schema to a source; by default, they stay in memory. Tables, Dask
        collections, data frames of Spark and tensors of a device have engines of their own.

    Returns
    -------
    Schema
    SourceBase

    Examples
    --------
    Rows in chunks of two, as if they did not fit into memory:

    >>> from metricwise.data.open import open_rows
    >>> from metricwise.data.row_spec import RowSpec
    >>> from metricwise.data.sources.chunked import ChunkedSource
    >>> from metricwise.data.sources.memory import MemorySource
    >>> def in_chunks(rows, schema):
    ...     return ChunkedSource.of(MemorySource(rows, schema), 2)
    >>> schema, source = open_rows(RowSpec([0.1, 0.3, 0.9], ["no", "no", "yes"], pos_label="yes"), engine=in_chunks)
    >>> schema.classes[0].tolist(), source.reduce(lambda rows: [rows.n_rows])
    (['no', 'yes'], [2, 1])
    """
    spec = _with(spec, _mapped(spec.proba), _mapped(spec.y))
    if is_lazy(spec.proba):
        from .sources.dask_reading import read_collection

        return _checked(read_collection(spec, PieceReader.of))
    if is_table(spec.proba, spec.y):
        from .sources.tables import read_table_source
        from .tables.reading import Table

        table = spec.proba if isinstance(spec.proba, Table) else Table(spec.proba)
        if is_spark(table):
            from .sources.spark_reading import read_spark

            return _checked(read_spark(table, spec, PieceReader.of))
        return _checked(read_table_source(table, spec, PieceReader.of))
    spec = _with(spec, _shared(spec.proba), host_array(spec.y) if is_tensor(spec.y) else spec.y)
    if is_tensor(spec.proba):
        from .sources.tensors import read_tensor

        return _checked(read_tensor(spec, PieceReader.of))
    data = read_data(spec)
    row_source = (engine or MemorySource)(data.rows, data.schema)
    if data.counts is not None:
        vars(row_source)["class_weights"] = data.counts  # counted already
    return data.schema, row_source


def _with(spec: RowSpec, proba: Any, y: Any) -> RowSpec:
    """Return the rows with other probabilities and labels; themselves where these are theirs."""
    return spec if proba is spec.proba and y is spec.y else replace(spec, proba=proba, y=y)


def open_unlabelled(proba: Any, schema: Schema, read: Callable[[Any], Probabilities]) -> SourceBase:
    """Open rows without labels, for a rule.

    Parameters
    ----------
    proba : array-like, Table, path or Dask collection
    schema : Schema
        Outputs and classes of the rule.
    read : callable
        Reads probabilities in memory as the rule takes them.

    Examples
    --------
    >>> import metricwise as mw
    >>> from metricwise.data.open import open_unlabelled
    >>> rule = mw.WeightedRule.from_thresholds(0.3)
    >>> open_unlabelled([0.2, 0.4], rule.schema, rule.read).n_rows
    2
    """
    proba = _mapped(proba)
    if is_lazy(proba):
        from .sources.dask_reading import read_unlabelled_collection

        return read_unlabelled_collection(proba, schema, read)
    if is_table(proba, None):
        from .sources.tables import read_unlabelled_table
        from .tables.reading import Table

        table = proba if isinstance(proba, Table) else Table(proba)
        if is_spark(table):
            from .sources.spark_reading import read_unlabelled_spark

            return read_unlabelled_spark(table, schema)
        return read_unlabelled_table(table, schema)
    return MemorySource.unlabelled(read(proba), schema)


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
        return [host_array(tensor) for tensor in proba]
    array = shared_array(proba) if is_tensor(proba) else None
    return proba if array is None else array


def _checked(source: SourceBase) -> tuple[Schema, SourceBase]:
    """Return a source and its schema; refuse weights with a sum that is too small or too large."""
    if source.weighted and source.labelled and source.class_weights.any():
        check_sum(float(source.class_weights.sum()), None)
    return source.schema, source
