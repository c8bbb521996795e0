"""Predictions for Dask collections, lazily, and for tensors, batch by batch. Imports neither library."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InvalidParameter, InvalidType
from ..core.labels import decode
from ..core.schema import Schema
from ..data.frames import host_array, is_tensor, shared_array

_BATCH_ENTRIES = 1 << 21  # of a batch

Predict = Callable[..., NDArray[Any]]


def predict_lazily(predict: Predict, schema: Schema, proba: Any, *, draws: bool = False) -> Any:
    """Return the labels of a Dask collection as one, with its chunks; nothing is computed."""
    empty = decode(np.zeros((0, schema.n_outputs), dtype=np.intp), schema.decisions)
    empty = empty if schema.multioutput else empty[:, 0]
    first = proba[0] if isinstance(proba, (list, tuple)) else proba
    if hasattr(first, "chunks"):
        return _of_arrays(predict, schema, proba, empty, draws)
    if first is not proba:
        raise InvalidType(
            "proba", problem="proba given as a list of Dask collections must hold Dask arrays, got data frames"
        )
    if draws:
        raise InvalidType(
            "",
            problem=(
                "the rule draws by row position, but the partitions of a Dask data frame do not know their "
                "number of rows"
            ),
            remedy="pass proba.to_dask_array(lengths=True)",
        )
    names: tuple[Any, ...] = schema.output_names or tuple(map(int, range(schema.n_outputs)))
    return proba.map_partitions(
        partial(_partition, predict, empty, names), meta=_labelled(empty, proba._meta, names), enforce_metadata=False
    )


def _of_arrays(predict: Predict, schema: Schema, proba: Any, empty: NDArray[Any], draws: bool) -> Any:
    widths = None
    if isinstance(proba, (list, tuple)):
        widths = np.cumsum([array.shape[1] for array in proba])[:-1]
        proba = np.concatenate(proba, axis=1)  # a Dask array, by NumPy's own protocol
    proba = proba.rechunk(dict.fromkeys(range(1, proba.ndim), -1))
    if draws and np.isnan(proba.chunks[0]).any():
        raise InvalidParameter(
            "",
            problem="the rule draws by row position, but the chunks of proba do not know their number of rows",
            remedy="call proba.compute_chunk_sizes() first",
        )
    shape: dict[str, Any] = {"drop_axis": proba.ndim - 1}
    if empty.ndim == proba.ndim:
        shape = {"chunks": (proba.chunks[0], *[(schema.n_outputs,)] * (empty.ndim - 1))}
    block = partial(_block, predict, empty, widths, draws)
    return proba.map_blocks(block, dtype=empty.dtype, meta=empty, **shape)


def _block(
    predict: Predict, empty: NDArray[Any], widths: NDArray[Any] | None, draws: bool, part: Any, block_info: Any = None
) -> NDArray[Any]:
    """Labels of a chunk of an array."""
    if len(part) == 0:
        return empty
    start = {"start": int(block_info[0]["array-location"][0][0])} if draws else {}
    return predict(part if widths is None else np.split(part, widths, axis=1), **start)


def _partition(predict: Predict, empty: NDArray[Any], names: tuple[Any, ...], part: Any) -> Any:
    """Labels of a partition of a data frame."""
    return _labelled(empty if len(part) == 0 else predict(part), part, names)


def _labelled(labels: NDArray[Any], part: Any, names: tuple[Any, ...]) -> Any:
    """Labels as a series or a data frame of the library that the probabilities are of, with their index."""
    if labels.ndim == 1:
        series = type(part) if part.ndim == 1 else type(part.iloc[:, 0])
        return series(labels, index=part.index, name="prediction")
    return type(part)(labels, index=part.index, columns=list(names))


def batches_of(proba: Any) -> Iterator[tuple[int, NDArray[Any]]] | None:
    """Return the batches of a tensor that NumPy cannot share, as arrays, each with its position; None for others."""
    if not is_tensor(proba) or not len(proba.shape) or shared_array(proba) is not None:
        return None
    step = max(1, _BATCH_ENTRIES // int(np.prod(proba.shape[1:])))
    return ((at, host_array(proba[at : at + step])) for at in range(0, max(int(proba.shape[0]), 1), step))
