"""Reads labels and ids of rows, as users pass them, for a rule. Must not know batches or promises."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InvalidParameter, InvalidType, shown
from ..core.labels import python_labels, split_missing
from ..data.encoding import encode_column
from ..data.frames import is_two_dimensional, read_table, table_columns, table_shape
from ..evaluation.arguments import in_output_order
from ..rules.base import Rule

__all__ = ["read_codes", "read_ids"]

IntArray = NDArray[np.intp]
Id = str | int


def read_codes(rule: Rule, y: Any, proba: Any, n_rows: int | None) -> IntArray:
    """Read labels as codes (N, M) of the rule's classes, -1 where one is missing."""
    schema = rule.schema
    if is_two_dimensional(y) != schema.multioutput:
        said = f"2-D, with a column for each of its {schema.n_outputs} outputs" if schema.multioutput else "1-D"
        raise InvalidParameter("y", f"be {said}, as the rule has them", f"shape {np.shape(y)}")
    table, _ = read_table(in_output_order(y, proba, schema.output_names) if schema.multioutput else y)
    length, n_outputs = table_shape(table)
    if n_outputs != schema.n_outputs:
        raise InvalidParameter("y", f"have one column for each of the {schema.n_outputs} outputs", n_outputs)
    if n_rows is not None and length != n_rows:
        raise InvalidParameter("y", f"have as many rows as proba, {n_rows}", length)
    codes = np.empty((length, n_outputs), dtype=np.intp)
    for m, column in enumerate(table_columns(table)):
        name = f"output {m} of y" if schema.multioutput else "y"
        codes[:, m], _ = encode_column(column, schema.classes[m], np.asarray, name)
    return codes


def read_ids(ids: Any, n_rows: int) -> list[Id]:
    """Read an id for each row: distinct texts or integers."""
    table, several = read_table(ids)
    columns = list(table_columns(table))
    if several and len(columns) != 1:
        raise InvalidParameter("ids", "be 1-D, with an id for each row", f"{len(columns)} columns")
    values, missing = split_missing(columns[0])
    if len(values) != n_rows:
        raise InvalidParameter("ids", f"have one id for each of the {n_rows} rows", len(values))
    if missing.any():
        raise InvalidParameter("ids", "not be missing", f"{int(missing.sum())} missing ones")
    names = python_labels(values)
    wrong = next((name for name in names if isinstance(name, bool) or not isinstance(name, (str, int))), None)
    if wrong is not None:
        raise InvalidType("ids", "be texts or integers", shown(wrong), "convert them, for instance with str()")
    if len(set(names)) < len(names):
        twice = Counter(names).most_common(1)[0][0]
        raise InvalidParameter("ids", "be distinct", f"{shown(twice)} twice")
    return names
