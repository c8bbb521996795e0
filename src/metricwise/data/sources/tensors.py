"""Tensors that NumPy cannot share, copied a batch at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from ...core.errors import InvalidParameter
from ...core.rows import Rows
from ..encoding import distinct_values
from ..frames import host_array
from ..row_spec import Piece, ReadHead, RowReader, RowSpec
from .chunked import ChunkedSource, Read

__all__ = ["read_tensor"]

_BATCH_ENTRIES = 1 << 21  # of a batch


def read_tensor(spec: RowSpec, read_head: ReadHead) -> ChunkedSource:
    """Open a tensor; see :func:`metricwise.optimize`.

    Parameters
    ----------
    spec : RowSpec
        Its probabilities are a tensor of shape (N,), (N, K), (N, M) or (N, M, K), on any device.

    read_head : callable
        Returns the reader of all rows by a row of probabilities and the labels that occur.
    """
    if spec.time is not None:
        raise InvalidParameter(
            "groups",
            problem="InTime needs probabilities that NumPy can share",
            remedy="pass proba as a float32 array",
        )
    proba = spec.proba
    n_rows = int(proba.shape[0])
    if n_rows == 0:
        raise InvalidParameter("proba", "have at least one row", f"shape {tuple(proba.shape)}")
    others = {"y": spec.y, "sample_weight": spec.weight, "groups": spec.groups}
    arrays = {name: None if values is None else np.asarray(values) for name, values in others.items()}
    for name, values in arrays.items():
        if values is not None and len(values) != n_rows:
            raise InvalidParameter(name, f"have as many rows as proba, {n_rows}", len(values))
    head = replace(spec, proba=host_array(proba[:1]), y=_distinct(arrays["y"]))
    reader = read_head(head)
    chunks = _Batches(proba, arrays["y"], arrays["sample_weight"], arrays["groups"], reader)
    return ChunkedSource(chunks, reader.schema)


def _distinct(y: Any) -> Any:
    """Labels that occur, as a y that has them all."""
    if y is None or y.ndim == 1:
        return None if y is None else distinct_values([y])
    columns = [distinct_values([y[:, m]]) for m in range(y.shape[1])]
    most = max(map(len, columns))
    return np.stack([column[np.minimum(np.arange(most), len(column) - 1)] for column in columns], axis=1)


@dataclass(frozen=True, eq=False)
class _Batches:
    """Rows of a tensor, converted some at a time."""

    proba: Any
    y: Any
    weight: Any
    groups: Any
    reader: RowReader

    @property
    def n_rows(self) -> int:
        return int(self.proba.shape[0])

    @property
    def labelled(self) -> bool:
        return self.y is not None

    @property
    def weighted(self) -> bool:
        return self.weight is not None

    def reads(self) -> Iterator[Read]:
        """Yield what makes rows of each batch."""
        step = max(1, _BATCH_ENTRIES // int(np.prod(self.proba.shape[1:])))
        return (partial(self._rows, start, min(start + step, self.n_rows)) for start in range(0, self.n_rows, step))

    def _rows(self, start: int, stop: int) -> Rows:
        some = slice(start, stop)
        others = (None if values is None else values[some] for values in (self.y, self.weight, self.groups))
        return self.reader.rows(Piece(host_array(self.proba[some]), *others), start)
