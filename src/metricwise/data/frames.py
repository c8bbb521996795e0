"""Tables whose columns have names, of whichever library, and rows that have names of their own.

Owns what is asked of a data frame: the names of its columns, their values, the order of its rows. Libraries are
recognised by what their objects can do, never imported.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InvalidParameter, InvalidType, listed, shown, warn
from .encoding import are_labels, python_label
from .tensors import host_array, is_tensor

__all__ = [
    "column_names",
    "has_names",
    "columns_of",
    "is_frame",
    "is_lazy",
    "is_table",
    "match_columns",
    "position_named",
    "refuse_lazy",
    "surplus_columns",
    "table_array",
    "warn_of_order",
]

_MOST_SHOWN = 5  # columns that a message names
_PLURALS = {"class": "classes", "output": "outputs", "label of y": "labels of y"}


def is_frame(values: Any) -> bool:
    """Whether `values` is a pandas or polars data frame, or an Arrow table."""
    return (hasattr(values, "columns") and hasattr(values, "to_numpy")) or _is_arrow(values)


def is_lazy(values: Any) -> bool:
    """Whether `values` is a Dask collection, or a list of them: not in memory, and not to be pulled into it unasked."""
    if isinstance(values, (list, tuple)) and len(values):
        values = values[0]
    return hasattr(values, "__dask_graph__") and not isinstance(values, type)


def is_table(values: Any, y: Any) -> bool:
    """Whether probabilities and labels are columns of a table that is read in batches.

    Parameters
    ----------
    values : object
        A :class:`metricwise.Table`, a path or a list of paths, a dataset of pyarrow's, a query of polars. Data frames
        are read so only if y is the name of a column.
    y : object
    """
    first = values[0] if isinstance(values, (list, tuple)) and len(values) else values
    if isinstance(first, str) or hasattr(first, "__fspath__"):
        return True
    if any(hasattr(values, name) for name in ("memory_limit", "collect_batches", "scanner")):
        return True
    return isinstance(y, str) and hasattr(values, "__arrow_c_stream__")


def refuse_lazy(values: Any, parameter: str) -> None:
    """Refuse a Dask collection where rows must be in memory."""
    if is_lazy(values):
        raise InvalidType(
            parameter, "be in memory", f"a Dask {type(values).__name__}", f"pass {parameter}.compute() if it fits"
        )


def _is_arrow(values: Any) -> bool:
    return hasattr(values, "column_names") and hasattr(values, "to_pydict")


def column_names(frame: Any) -> list[Any]:
    """Return the names of the columns."""
    if _is_arrow(frame):
        return list(frame.column_names)
    dates = getattr(getattr(frame.columns, "dtype", None), "kind", "") in ("m", "M")
    return list(np.asarray(frame.columns) if dates else frame.columns)


def columns_of(frame: Any) -> Iterator[Any]:
    """Yield the columns, in order."""
    if _is_arrow(frame):
        return iter(frame.columns)
    return (frame[name] for name in frame.columns)


def table_array(frame: Any) -> Any:
    """Return the values as an array (N, columns)."""
    if _is_arrow(frame):
        return np.column_stack([np.asarray(column) for column in frame.columns])
    return frame.to_numpy()


def position_named(names: list[Any]) -> bool:
    """Whether the columns have the names that a frame gives where there are none: 0, 1, 2, ..."""
    return names == list(range(len(names)))


def has_names(values: Any) -> bool:
    """Whether `values` is a data frame whose columns have names of their own."""
    return is_frame(values) and not position_named(column_names(values))


def match_columns(frame: Any, names: Any, what: str = "proba", kind: str = "class") -> Any:
    """Put the columns of a data frame in the order of `names`; what is no frame, or has no names, stays as it is.

    `kind` says what the names are of, for messages: a class, or an output.
    """
    if not is_frame(frame):
        return frame
    columns = column_names(frame)
    if names is None or len(columns) == 1:
        return frame
    wanted = [python_label(name) for name in names]
    if not are_labels(wanted):
        raise InvalidParameter("classes", "be text, numbers or other plain labels", shown(wanted))
    if position_named(columns):
        if columns != wanted and set(columns) == set(wanted):
            raise InvalidParameter(
                what,
                problem=(
                    f"the columns of {what} are named {columns}, which may be positions, or the classes "
                    f"{wanted} in another order"
                ),
                remedy=f"pass {what}.to_numpy() to match them by position, or {what}[{wanted}] by name",
            )
        return frame
    if len(set(map(str, columns))) < len(columns):
        raise InvalidParameter(what, problem=f"the columns of {what} must have distinct names, got {listed(columns)}")
    for have, want in ((columns, wanted), (list(map(str, columns)), list(map(str, wanted)))):
        if len(set(have)) == len(have) and set(have) == set(want):
            order = [have.index(name) for name in want]
            return frame if order == list(range(len(order))) else table_array(frame)[:, order]
    raise _misnamed(frame, columns, wanted, what, kind)


def _misnamed(frame: Any, columns: list[Any], wanted: list[Any], what: str, kind: str) -> ValueError:
    """Return the error where columns are named otherwise than classes or outputs: too many, too few, or others."""
    known = set(map(str, wanted))
    further = [name for name in columns if str(name) not in known]
    if len(columns) - len(further) == len(wanted):
        return surplus_columns(frame, further, wanted, what, kind)
    remedy = f"; pass {what}.to_numpy() to match the columns by position" if len(columns) == len(wanted) else ""
    return InvalidParameter(
        what,
        problem=(
            f"the columns of {what} must be named like the {_PLURALS[kind]} {listed(wanted)}, got "
            f"{listed(columns)}{remedy}"
        ),
    )


def surplus_columns(
    frame: Any, further: list[Any], wanted: list[Any], what: str = "proba", kind: str = "class"
) -> ValueError:
    """Return the error where a frame has the columns that are wanted, and others besides."""
    kept = [name for name in column_names(frame) if str(name) in set(map(str, wanted))]
    selected = f"{what}.select({listed(kept)})" if _is_arrow(frame) else f"{what}[{listed(kept)}]"
    names = ", ".join(map(shown, further[:_MOST_SHOWN])) + (", ..." if len(further) > _MOST_SHOWN else "")
    if len(further) == 1:
        return InvalidParameter(what, problem=f"the column {names} of {what} is no {kind}", remedy=f"pass {selected}")
    return InvalidParameter(
        what, problem=f"the columns {names} of {what} are no {_PLURALS[kind]}", remedy=f"pass {selected}"
    )


# ------------------------------------------------------------------------------------------------- order of rows


def warn_of_order(**values: Any) -> None:
    """Warn where pandas objects hold the same rows in another order: they are read by position.

    Parameters
    ----------
    **values
        What was given, by the name of its parameter; of a list, its first item speaks.
    """
    indexes = [(name, index) for name, value in values.items() if (index := _index(value)) is not None]
    for at, (name, index) in enumerate(indexes):
        for other, rows in indexes[:at]:
            if _is_reordered(index, rows):
                warn(
                    f"the index of {name} has the rows of {other} in another order, but rows are matched by "
                    f"position. To align them, pass {name}.loc[{other}.index]; if they are already in the "
                    f"same order, pass {name}.to_numpy()."
                )
                return


def _index(value: Any) -> Any:
    """Return the index of a pandas object; lists and strings have a method of that name."""
    if is_lazy(value):
        return None
    if isinstance(value, (list, tuple)) and len(value) and is_frame(value[0]):
        value = value[0]
    index = getattr(value, "index", None)
    return index if hasattr(index, "equals") and hasattr(index, "isin") else None


def _is_reordered(index: Any, other: Any) -> bool:
    if len(index) != len(other) or index is other or index.equals(other):
        return False
    return bool(index.isin(other).all() and other.isin(index).all())


def frame_index_names(value: Any) -> list[Any] | None:
    """Return the names in the index of a pandas Series, which a row of a frame has from its columns."""
    index = _index(value)
    return None if index is None or is_frame(value) else [python_label(name) for name in index]


def as_array(values: Any) -> NDArray[Any]:
    """Return whatever holds numbers as an array."""
    if is_tensor(values):
        return host_array(values)
    return np.asarray(table_array(values) if is_frame(values) else values)


def shape_of(values: Any) -> tuple[int, ...]:
    """Return the shape of what may be an array, () for what has none."""
    try:
        shape = np.shape(values)
    except ValueError:  # rows of unequal length
        return ()
    return shape if isinstance(shape, tuple) else ()  # the types of NumPy have an attribute of that name
