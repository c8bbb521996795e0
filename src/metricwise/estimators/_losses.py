"""Reads loss matrices, one for all outputs or one for each. Must not know models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InvalidParameter, InvalidType
from ..core.losses import Loss
from ..data.frames import is_frame

__all__ = ["read_loss", "read_losses"]


def read_losses(loss: Any, classes: Sequence[NDArray[Any]], *, several: bool) -> tuple[NDArray[np.float64], ...]:
    """Return the loss matrix (K_m, K_m) of each of M outputs, from one matrix for all or one for each."""
    if not several:
        return (read_loss(loss, classes[0]),)
    each = _for_outputs(loss, classes)
    losses = []
    for m, (part, labels) in enumerate(zip(each, classes, strict=True)):
        try:
            losses.append(read_loss(part, labels))
        except InvalidParameter as error:
            raise error.within(after=f" (output {m})") from None
    return tuple(losses)


def _for_outputs(loss: Any, classes: Sequence[NDArray[Any]]) -> list[Any]:
    """Return what is given for each output, not read yet."""
    n_outputs = len(classes)
    if isinstance(loss, Loss):
        return _parts_of(loss, classes)
    if is_frame(loss) or not _is_stack(loss):
        return [loss] * n_outputs
    if len(loss) != n_outputs:
        raise InvalidParameter(
            "loss",
            f"be one matrix for all outputs, or one for each of the {n_outputs} outputs of y",
            f"{len(loss)} matrices",
        )
    return list(loss)


def _is_stack(loss: Any) -> bool:
    """Whether a loss is one for each output: a list of matrices, some of them perhaps None, or a 3-D array."""
    if hasattr(loss, "ndim"):
        return bool(loss.ndim == 3)

    def is_matrix(part: Any) -> bool:
        if part is None or is_frame(part) or isinstance(part, Loss) or hasattr(part, "ndim"):
            return part is None or getattr(part, "ndim", 2) == 2
        return isinstance(part, (list, tuple)) and len(part) > 0 and np.ndim(part[0]) == 1

    return isinstance(loss, (list, tuple)) and len(loss) > 0 and all(map(is_matrix, loss))


def _parts_of(loss: Loss, classes: Sequence[NDArray[Any]]) -> list[Any]:
    """Return the matrices of a Loss, which is padded to the widest output."""
    tensor, width = loss.tensor(), max(map(len, classes))
    if len(tensor) not in (1, len(classes)) or tensor.shape[-1] != width:
        raise InvalidParameter(
            "loss",
            f"have 1 output or {len(classes)}, as y has, and {width} classes",
            f"a Loss of {len(tensor)} outputs and {tensor.shape[-1]} classes",
        )
    stack = np.broadcast_to(tensor, (len(classes), width, width))
    return [matrix[: len(labels), : len(labels)] for matrix, labels in zip(stack, classes, strict=True)]


def read_loss(loss: Any, classes: NDArray[Any]) -> NDArray[np.float64]:
    """Return a loss as a matrix (K, K) in the order of the classes; None is 1 for every wrong decision."""
    n_classes = len(classes)
    if loss is None:
        return 1.0 - np.eye(n_classes)
    matrix = _matrix(loss, classes)
    if matrix.shape != (n_classes, n_classes):
        raise InvalidParameter(
            "loss",
            f"have shape ({n_classes}, {n_classes}), a row and a column for each of the classes {_shown(classes)}",
            matrix.shape,
        )
    if not np.isfinite(matrix).all():
        i, j = np.argwhere(~np.isfinite(matrix))[0].tolist()
        raise InvalidParameter("loss", "be finite", f"{matrix[i, j]} in row {i}, column {j}")
    if (matrix == matrix[:, :1]).all():
        raise InvalidParameter(
            "loss", "not be constant in every row, which makes no decision better than another", _shown(matrix)
        )
    low, high = float(matrix.min()), float(matrix.max())
    if not np.isfinite(high - low):
        raise InvalidParameter(
            "loss", "have finite differences between its entries", f"entries from {low:g} to {high:g}"
        )
    return matrix


def _matrix(loss: Any, classes: NDArray[Any]) -> NDArray[np.float64]:
    if isinstance(loss, Loss):
        tensor = loss.tensor()
        if len(tensor) != 1:
            raise InvalidParameter("loss", "have one output, as y has", f"a Loss of {len(tensor)} outputs")
        return np.asarray(tensor[0])
    values = _by_name(loss, classes) if is_frame(loss) else loss
    try:
        array = np.asarray(values)
    except ValueError:
        lengths = sorted({len(row) for row in values if hasattr(row, "__len__")})
        raise InvalidParameter(
            "loss", f"have rows of equal length, {len(classes)}", f"rows of lengths {lengths}"
        ) from None
    if array.dtype.kind == "O":
        array = _numbers(array)
    if array.dtype.kind not in "biuf":
        raise InvalidType("loss", "be a matrix of numbers", _kind(loss, array))
    return array.astype(np.float64)


def _numbers(array: NDArray[Any]) -> NDArray[np.float64]:
    """Read an array of objects, entry by entry."""
    out = np.empty(array.shape)
    for place, value in np.ndenumerate(array):
        if isinstance(value, (str, bytes)) or not hasattr(value, "__float__"):
            where = f"row {place[0]}, column {place[1]}" if len(place) == 2 else "it"
            raise InvalidType("loss", "be a matrix of numbers", f"{_shown(value)} in {where}")
        out[place] = float(value)
    return out


def _by_name(frame: Any, classes: NDArray[Any]) -> NDArray[Any]:
    """Return the values of a data frame in the order of the classes; by position if nothing has a name."""
    values = np.asarray(frame.to_numpy())
    positions = list(range(len(values)))
    columns = list(frame.columns)
    rows = list(frame.index) if hasattr(frame, "index") else positions  # polars has no names for rows
    across, down = _places(columns, classes), _places(rows, classes)
    nameless = columns in (list(range(len(columns))), [f"column_{k}" for k in range(len(columns))])
    if down is None and rows == positions and (nameless or across == positions):
        return values
    if across is None or down is None:
        raise InvalidParameter(
            "classes",
            problem=(
                f"loss as a data frame must have rows and columns named like the classes {_shown(classes)}, "
                f"got rows {_shown(rows)} and columns {_shown(columns)}"
            ),
            remedy="name them, or pass loss.to_numpy() to take them by position",
        )
    return np.asarray(values[np.ix_(down, across)])


def _places(names: list[Any], classes: NDArray[Any]) -> list[int] | None:
    """Return where the name of each class stands, or None if names and classes are not the same."""
    for have, want in ((names, classes.tolist()), (list(map(str, names)), list(map(str, classes.tolist())))):
        if len(set(have)) == len(have) and set(have) == set(want):
            return [have.index(name) for name in want]
    return None


def _kind(loss: Any, array: NDArray[Any]) -> str:
    first = f" such as {_shown(array.flat[0].item())}" if array.size else ""
    return f"{'text' if array.dtype.kind in 'US' else array.dtype}{first} ({type(loss).__name__})"


def _shown(value: Any) -> str:
    text = repr(value.tolist() if isinstance(value, np.ndarray) else value)
    return text if len(text) <= 80 else text[:77] + "..."
