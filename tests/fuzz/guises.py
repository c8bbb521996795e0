"""The same labels and the same probabilities in whatever a user may keep them in.

Owns dtypes, marks of missing labels and layouts in memory: what is handed over looks different, what it says does not.
"""

import numpy as np
import pandas as pd
import polars as pl

DTYPES = {"int8": np.int8, "int64": np.int64, "float": np.float64, "bool": np.bool_, "str": np.str_, "object": object}
ARRAYS = ("C", "Fortran", "strided", "reversed")
FRAMES = ("pandas", "polars")
LAYOUTS = (*ARRAYS, "list", *FRAMES)
MARKS = (
    "none",
    "empty",
    "masked",
    "code",
)  # of missing labels: NaN or None or NA, a mask, one over -1 or "?"

_NULLABLE = {"int8": "Int8", "int64": "Int64", "bool": "boolean", "str": "string"}


def lay_out(array, layout):
    """The array with other strides."""
    if layout == "Fortran":
        return np.asfortranarray(array)
    if layout == "strided":
        wide = np.repeat(array, 2, axis=-1)
        return np.repeat(wide, 3, axis=0)[::3, ..., ::2] if array.ndim > 1 else wide[::2]
    if layout == "reversed":
        return array[::-1].copy()[::-1]
    return np.ascontiguousarray(array)


# ------------------------------------------------------------------------------------------------------- labels


def decode(codes, names):
    """Labels (N, M) as objects, None for the code -1."""
    table = np.empty(codes.shape, dtype=object)
    for m, labels in enumerate(names):
        known = np.empty(len(labels) + 1, dtype=object)
        known[:-1] = labels  # the code -1 finds the None behind them
        table[:, m] = known[codes[:, m]]
    return table


def encode(labels, names):
    """Codes (N, M) of labels (N, M) or (N,), none of them missing."""
    table = np.asarray(labels).reshape(len(labels), -1)
    found = [{label: code for code, label in enumerate(known)} for known in names]
    return np.array([[found[m][label] for m, label in enumerate(row)] for row in table.tolist()])


def missing_code(kind, mark):
    """The code that is masked in these labels."""
    if mark != "code" or kind == "bool":
        return None
    return "?" if kind in ("str", "object") else -1


def dress_labels(codes, names, kind, mark, layout, one_output):
    """Labels as a user may have them; a guise that cannot hold them gives way to one that can."""
    table, gaps = decode(codes, names), codes < 0
    code = missing_code(kind, mark)
    if code is not None:
        table[gaps] = code
    elif mark == "masked":
        table[gaps] = np.broadcast_to([labels[0] for labels in names], table.shape)[gaps]
    elif layout in FRAMES:
        return _frame_of_labels(table, kind, layout, one_output)
    array = table.astype(DTYPES[kind]) if kind == "float" or not _holds_none(table) else table
    array = array[:, 0] if one_output else array
    if mark == "masked" or code is not None:
        layout = layout if layout in ARRAYS else "C"
        mask = gaps[:, 0] if one_output else gaps
        return np.ma.array(lay_out(array, layout), mask=lay_out(mask, layout))
    if layout in FRAMES:
        return _frame_of_labels(array.reshape(table.shape).astype(object), kind, layout, one_output)
    return array.tolist() if layout == "list" else lay_out(array, layout)


def _holds_none(table):
    return any(label is None for label in table.flat)


def _frame_of_labels(table, kind, layout, one_output):
    columns = [_column(list(column), kind, layout) for column in table.T]
    if one_output:
        return columns[0]
    named = {f"out{m}": column for m, column in enumerate(columns)}
    is_polars = all(isinstance(column, pl.Series) for column in columns)
    return pl.DataFrame(named) if is_polars else pd.DataFrame(named)


def _column(values, kind, layout):
    gaps = any(value is None for value in values)
    if kind == "object":
        return pd.Series(values, dtype=object)  # polars has no column of mixed types
    if layout == "polars":
        types = {"int8": pl.Int8, "int64": pl.Int64, "float": pl.Float64, "bool": pl.Boolean, "str": pl.String}
        return pl.Series(values, dtype=types[kind])
    if kind == "str" and not gaps:
        return pd.Series(values, dtype="category")
    return pd.Series(values, dtype=_NULLABLE[kind] if gaps and kind in _NULLABLE else DTYPES[kind])


# ------------------------------------------------------------------------------------------------ probabilities


def proba_layouts(proba):
    """Layouts that probabilities of this shape can have."""
    if isinstance(proba, list):
        return (*ARRAYS, *FRAMES)
    return LAYOUTS if proba.ndim < 3 else (*ARRAYS, "list")


def dress_proba(proba, layout, columns=None, order=None):
    """Probabilities as a user may have them.

    `columns` are the names of the columns of a frame, a list of them for a list of arrays; `order` is the order that
    the columns of one frame come in.
    """
    if isinstance(proba, list):
        names = columns or [None] * len(proba)
        return [dress_proba(part, layout, labels) for part, labels in zip(proba, names, strict=True)]
    if layout == "list":
        return proba.tolist()
    if layout in ARRAYS:
        return lay_out(proba, layout)
    if proba.ndim == 1:
        return pd.Series(proba) if layout == "pandas" else pl.Series(proba)
    names = list(range(proba.shape[1])) if columns is None else list(columns)
    places = np.arange(len(names)) if order is None else order
    if layout == "pandas":
        return pd.DataFrame({names[k]: proba[:, k] for k in places}, columns=[names[k] for k in places])
    return pl.DataFrame({str(names[k]): proba[:, k] for k in places})
