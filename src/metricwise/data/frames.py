"""Data frames, tensors and sparse matrices of any library: names and values of columns, categories, order of rows.

Must not know classes or probabilities.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import TAGS_REMEDY, InvalidParameter, InvalidType, listed, shown, warn
from ..core.labels import Categories, Scales, are_labels, in_scale_order, is_masked, python_label, python_labels

__all__ = [
    "as_array",
    "as_labels",
    "categories_of",
    "check_one_column",
    "column_names",
    "columns_of",
    "frame_index_names",
    "has_lists",
    "has_names",
    "host_array",
    "is_frame",
    "is_lazy",
    "is_list_of_outputs",
    "is_spark",
    "is_table",
    "is_tensor",
    "is_two_dimensional",
    "match_columns",
    "position_named",
    "read_table",
    "refuse_lazy",
    "repeat_first_row",
    "scales_of",
    "select_columns",
    "shape_of",
    "shared_array",
    "surplus_columns",
    "table_array",
    "table_columns",
    "table_shape",
    "warn_of_order",
]


_MAX_SHOWN_COLUMNS = 5  # columns that a message names


_PLURALS = {"class": "classes", "output": "outputs", "label of y": "labels of y"}


def is_frame(values: Any) -> bool:
    """Whether `values` is a pandas or polars data frame, or an Arrow table."""
    return (hasattr(values, "columns") and hasattr(values, "to_numpy")) or _is_arrow(values)


def is_lazy(values: Any) -> bool:
    """Whether `values` is a Dask collection, or a list of them: not in memory."""
    if isinstance(values, (list, tuple)) and len(values):
        values = values[0]
    return hasattr(values, "__dask_graph__") and not isinstance(values, type)


def is_spark(values: Any) -> bool:
    """Whether `values` is a data frame of Spark, classic or Connect, or a table of one."""
    values = values.data if hasattr(values, "memory_limit") else values
    return hasattr(values, "mapInArrow") and not isinstance(values, type)


def is_table(values: Any, y: Any) -> bool:
    """Whether probabilities and labels are columns of a table that is read in batches.

    Parameters
    ----------
    values : object
        A :class:`metricwise.Table`, a path or a list of paths, a dataset of pyarrow's, a query of polars, a data frame
        of Spark, or a :class:`metricwise.data.tables.reading.TableReader`. Other data frames are read so only if y is
        the name of a column.
    y : object
    """
    first = values[0] if isinstance(values, (list, tuple)) and len(values) else values
    if isinstance(first, str) or hasattr(first, "__fspath__"):
        return True
    if any(hasattr(values, name) for name in ("memory_limit", "collect_batches", "scanner", "scan", "mapInArrow")):
        return True
    return isinstance(y, str) and hasattr(values, "__arrow_c_stream__")


def has_lists(values: Any) -> bool:
    """Whether probabilities are those of a :class:`metricwise.Table` whose rows hold lists of labels."""
    return hasattr(values, "memory_limit") and getattr(values, "indices", None) is not None


def refuse_lazy(values: Any, parameter: str) -> None:
    """Refuse a Dask collection, or a data frame of Spark, where rows must be in memory."""
    if is_spark(values):
        raise InvalidType(
            parameter,
            "be in memory",
            "a Spark data frame",
            "to predict its rows, use mw.export.to_sql(rule, dialect='spark') as a column of it; pass "
            f"{parameter}.toPandas() if it fits",
        )
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


def _in_narwhals(frame: Any) -> Any:
    """Return a data frame of any library with the interface of narwhals, which is imported here alone."""
    import narwhals as nw

    return nw.from_native(frame, eager_only=True)


def columns_of(frame: Any) -> Iterator[Any]:
    """Yield the columns, in order, as the library of the frame has them."""
    return (column.to_native() for column in _in_narwhals(frame).iter_columns())


def select_columns(frame: Any, names: Sequence[Any]) -> Any:
    """Return the frame of some columns, in the order of `names`."""
    places = column_names(frame)
    return _in_narwhals(frame)[:, [places.index(name) for name in names]].to_native()


def repeat_first_row(frame: Any, n_rows: int) -> Any:
    """Return a frame of `n_rows` copies of the first row."""
    return _in_narwhals(frame)[[0] * n_rows].to_native()


def table_array(frame: Any) -> Any:
    """Return the values as an array (N, columns)."""
    # Where a library has the method itself, narwhals would take 0.1 ms longer: as long as a rule takes for a row.
    return frame.to_numpy() if hasattr(frame, "to_numpy") else _in_narwhals(frame).to_numpy()


def position_named(names: list[Any]) -> bool:
    """Whether the columns have the default names 0, 1, 2, ..."""
    return names == list(range(len(names)))


def has_names(values: Any) -> bool:
    """Whether `values` is a data frame whose columns have other names than positions."""
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
    labels = [python_label(name) for name in names]
    if not are_labels(labels):
        raise InvalidParameter("classes", "be text, numbers or other plain labels", shown(labels))
    if position_named(columns):
        if columns != labels and set(columns) == set(labels):
            raise InvalidParameter(
                what,
                problem=(
                    f"the columns of {what} are named {columns}, which may be positions, or the classes "
                    f"{labels} in another order"
                ),
                remedy=f"pass {what}.to_numpy() to match them by position, or {what}[{labels}] by name",
            )
        return frame
    if len(set(map(str, columns))) < len(columns):
        raise InvalidParameter(what, problem=f"the columns of {what} must have distinct names, got {listed(columns)}")
    for have, want in ((columns, labels), (list(map(str, columns)), list(map(str, labels)))):
        if len(set(have)) == len(have) and set(have) == set(want):
            place = {name: at for at, name in enumerate(have)}
            order = [place[name] for name in want]
            return frame if order == list(range(len(order))) else table_array(frame)[:, order]
    raise _misnamed(frame, columns, labels, what, kind)


def _misnamed(frame: Any, columns: list[Any], labels: list[Any], what: str, kind: str) -> ValueError:
    """Return the error where columns are named otherwise than classes or outputs: too many, too few, or others."""
    texts = set(map(str, labels))
    further = [name for name in columns if str(name) not in texts]
    if len(columns) - len(further) == len(labels):
        return surplus_columns(frame, further, labels, what, kind)
    remedy = f"; pass {what}.to_numpy() to match the columns by position" if len(columns) == len(labels) else ""
    return InvalidParameter(
        what,
        problem=(
            f"the columns of {what} must be named like the {_PLURALS[kind]} {listed(labels)}, got "
            f"{listed(columns)}{remedy}"
        ),
    )


def surplus_columns(
    frame: Any, further: list[Any], labels: list[Any], what: str = "proba", kind: str = "class"
) -> ValueError:
    """Return the error where a frame has the columns that are wanted, and others besides."""
    kept = [name for name in column_names(frame) if str(name) in set(map(str, labels))]
    selected = f"{what}.select({listed(kept)})" if _is_arrow(frame) else f"{what}[{listed(kept)}]"
    names = ", ".join(map(shown, further[:_MAX_SHOWN_COLUMNS])) + (", ..." if len(further) > _MAX_SHOWN_COLUMNS else "")
    if len(further) == 1:
        return InvalidParameter(what, problem=f"the column {names} of {what} is no {kind}", remedy=f"pass {selected}")
    return InvalidParameter(
        what, problem=f"the columns {names} of {what} are no {_PLURALS[kind]}", remedy=f"pass {selected}"
    )


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


# ------------------------------------------------------------------------------------------------- tensors


def is_tensor(values: Any) -> bool:
    """Whether `values` is an array of another library than NumPy."""
    if isinstance(values, np.ndarray) or hasattr(values, "to_numpy") or not hasattr(values, "shape"):
        return False
    return hasattr(values, "__dlpack__") or type(values).__module__.split(".")[0] == "tensorflow"


def shared_array(values: Any) -> NDArray[Any] | None:
    """Return an array that shares the memory of a tensor; None for one on a device, or of a type that NumPy lacks."""
    try:
        return np.from_dlpack(_detached(values))
    except (AttributeError, BufferError, RuntimeError, TypeError, ValueError):
        return None


def host_array(values: Any) -> NDArray[Any]:
    """Return a tensor as an array, a copy if NumPy cannot share it; types that NumPy lacks become float32.

    Parameters
    ----------
    values : tensor
        That requires a gradient or not, on any device, of any floating type.
    """
    array = shared_array(values)
    if array is not None:
        return array
    if hasattr(values, "detach"):  # PyTorch's
        values = _detached(values).cpu()
        values = values.float() if "bfloat16" in str(values.dtype) else values  # of which it has no array
    for name in ("get", "numpy"):  # CuPy's, and PyTorch's and TensorFlow's
        if hasattr(values, name) and not isinstance(values, np.ndarray):
            values = getattr(values, name)()
    array = np.asarray(values)
    return array.astype(np.float32) if "bfloat16" in str(array.dtype) else array


def _detached(values: Any) -> Any:
    """Return a tensor without its gradient, and with the signs that it stands for.

    PyTorch's may be marked as negated, as the imaginary part of a conjugate is: its memory then holds the numbers with
    the opposite sign.
    """
    values = values.detach() if hasattr(values, "detach") else values
    return values.resolve_neg() if hasattr(values, "resolve_neg") else values


# ------------------------------------------------------------------------------------------- columns of labels


def as_labels(y: Any) -> Any:
    """Return labels as an array that keeps each label what it was; missing ones are None, NaN, NaT or masked."""
    if type(y) is np.ndarray or is_masked(y):
        return y
    if _is_pandas_categorical(y):
        return _categorical_labels(y)
    # A nullable column of integers must not turn into floats for the sake of its nulls.
    if _has_nulls(y):
        return _object_array(y.to_list() if hasattr(y, "to_list") else y.to_pylist())
    if hasattr(y, "isna") and not isinstance(y.dtype, np.dtype) and y.isna().any():
        return y.to_numpy(dtype=object)
    array = np.asarray(y)
    if array.dtype.kind in "US" and not hasattr(y, "dtype"):
        mixed = np.asarray(y, dtype=object)
        if not all(isinstance(label, (str, bytes)) for label in mixed.flat):
            return mixed
    return array


def _has_nulls(y: Any) -> bool:
    """Whether a polars Series (a method says) or an Arrow array (a number does) has nulls."""
    count = getattr(y, "null_count", 0)
    return bool(count() if callable(count) else count)


def _object_array(values: list[Any]) -> NDArray[Any]:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _is_pandas_categorical(y: Any) -> bool:
    return type(getattr(y, "dtype", None)).__name__ == "CategoricalDtype"


def _categorical_labels(y: Any) -> NDArray[Any]:
    labels, codes = as_labels(y.dtype.categories), np.asarray(getattr(y, "cat", y).codes)
    gone = codes < 0
    if not gone.any():
        return np.asarray(labels[codes])
    if labels.dtype.kind in "mM":
        labels = np.append(labels, np.array("NaT", dtype=labels.dtype))
        return np.asarray(labels[codes])
    array = np.empty(len(codes), dtype=object)
    array[~gone] = labels[codes[~gone]].tolist()
    return array


def categories_of(y: Any) -> list[Categories | None] | None:
    """Return the categories of each column of y, None for one that is not categorical; None where no column is."""
    if type(y) is np.ndarray or isinstance(y, (list, tuple)):
        return None
    categories = [_declared(column) for column in columns_of(y)] if is_frame(y) else [_declared(y)]
    return categories if any(declared is not None for declared in categories) else None


def _declared(column: Any) -> Categories | None:
    dtype: Any = getattr(column, "dtype", None)
    if _is_pandas_categorical(column):
        return Categories(as_labels(dtype.categories), bool(dtype.ordered))
    if type(dtype).__name__ == "Enum" and hasattr(dtype, "categories"):  # polars sorts an Enum by its categories
        return Categories(as_labels(dtype.categories), True)
    kind: Any = getattr(column, "type", None)
    if hasattr(kind, "ordered") and hasattr(kind, "value_type"):  # Arrow's dictionary
        whole = column.combine_chunks() if hasattr(column, "combine_chunks") else column
        return Categories(as_labels(whole.dictionary), bool(kind.ordered)) if hasattr(whole, "dictionary") else None
    return None


def scales_of(y: Any, classes: Sequence[NDArray[Any]]) -> Scales | None:
    """Return the classes of each output in the order that an ordered y gives them.

    Parameters
    ----------
    y : array-like of shape (N,) or (N, M)
    classes : sequence of M ndarrays

    Returns
    -------
    tuple of M tuples or None
        None for an output whose labels have no order of their own, and None altogether if no output has one.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from metricwise.data.frames import scales_of
    >>> y = pd.Categorical(["low", "high"], categories=["low", "mid", "high"], ordered=True)
    >>> scales_of(y, [np.array(["high", "low", "mid"])])
    (('low', 'mid', 'high'),)
    """
    categories = categories_of(y)
    if categories is None or len(categories) != len(classes):
        return None
    orders = [
        in_scale_order(python_labels(labels), output_categories)
        for labels, output_categories in zip(classes, categories, strict=True)
    ]
    return tuple(None if order is None else tuple(order) for order in orders) if any(orders) else None


def is_two_dimensional(y: Any) -> bool:
    """Whether labels are given for several outputs."""
    refuse_lazy(y, "y")
    return is_frame(y) or read_table(y)[1]


def read_table(y: Any) -> tuple[Any, bool]:
    """Return labels as an array (N, M), those of a data frame as the list of its columns, and whether y is 2-D."""
    refuse_lazy(y, "y")
    if hasattr(y, "tocsr"):
        y = y.toarray()
    if is_frame(y):
        names = column_names(y)
        if len(set(names)) < len(names):
            raise InvalidParameter("y", problem=f"the columns of y must have distinct names, got {listed(names)}")
        columns = [as_labels(column) for column in columns_of(y)]
        alike = len({(type(column), column.dtype) for column in columns}) == 1
        return (np.stack(columns, axis=1) if alike and columns[0].dtype.kind in "iufb" else columns), True
    try:
        array = as_labels(y)
    except ValueError:
        raise InvalidParameter("y", "have shape (N,) or (N, M)", "rows of unequal length", f"{TAGS_REMEDY}") from None
    if array.ndim == 1:
        return array[:, None], False
    if array.ndim == 2:
        return array, True
    raise InvalidParameter("y", "have shape (N,) or (N, M)", array.shape)


def table_shape(table: Any) -> tuple[int, int]:
    """Return (N, M) of what `read_table` returns."""
    if isinstance(table, list):
        return (len(table[0]) if table else 0, len(table))
    n_rows, n_outputs = table.shape
    return n_rows, n_outputs


def table_columns(table: Any) -> Iterator[Any]:
    """Yield the columns of what `read_table` returns."""
    return iter(table) if isinstance(table, list) else (table[:, m] for m in range(table.shape[1]))


def check_one_column(y: Any, proba: Any) -> None:
    """Refuse a 2-D y of one column where proba is that of one output."""
    if isinstance(proba, (list, tuple)) or hasattr(y, "tocsr"):
        return
    width = len(column_names(y)) if is_frame(y) else (*shape_of(y), 0, 0)[1]
    shape = shape_of(proba)
    if width != 1 or len(shape) in (0, 3) or shape[1:] == (1,):
        return
    if is_frame(y):
        what, remedy = f"a data frame of one column, {column_names(y)[0]!r}", f"y[{column_names(y)[0]!r}]"
    else:
        what, remedy = f"of shape {shape_of(y)}", "y.ravel()"
    raise InvalidParameter(
        "y", f"be 1-D for a single output, as in proba of shape {shape}", f"y {what}", f"pass {remedy}"
    )


def is_list_of_outputs(proba: Any) -> bool:
    """Whether `proba` is a list of one table per output; a list of lists of numbers is one array."""
    if not isinstance(proba, (list, tuple)) or len(proba) == 0:
        return False
    return is_frame(proba[0]) or (hasattr(proba[0], "shape") and np.ndim(proba[0]) == 2)
