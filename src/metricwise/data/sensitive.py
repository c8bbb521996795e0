"""The sensitive group or the segment of every row, by a column of names or numbers or the combinations of several.

Must not know constraints.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InvalidParameter, argument, mention, shown
from ..core.labels import is_masked, label_array, python_label, python_labels, sorted_labels, split_missing
from .frames import column_names, columns_of, is_frame, position_named, select_columns
from .row_spec import RowSpec, Sensitive

__all__ = [
    "Groups",
    "Partition",
    "SensitiveFeatures",
    "distinct_groups",
    "partition_of",
    "read_segments",
    "read_sensitive_features",
]

IntArray = NDArray[np.intp]

_NOUNS = {"sensitive_features": "group", "segments": "segment"}  # what the values of a parameter are called


@dataclass(frozen=True)
class Groups:
    """Sensitive groups or segments, by name.

    Parameters
    ----------
    names : tuple of G objects
        A label each; a tuple of labels where there are several features.
    features : tuple of str, optional
        Names of the columns, where they have any.
    parameter : {"sensitive_features", "segments"}
        What they are given by.
    """

    names: tuple[Any, ...]
    features: tuple[str, ...] | None = None
    parameter: str = "sensitive_features"

    @property
    def noun(self) -> str:
        """What one of them is called."""
        return _NOUNS[self.parameter]

    @property
    def n_features(self) -> int:
        """Columns that make a group."""
        return len(self.names[0]) if isinstance(self.names[0], tuple) else 1

    def codes(self, values: Any, n_rows: int, *, others: bool = False) -> IntArray:
        """Return the position (N,) of every row's group among these.

        Parameters
        ----------
        others : bool, default=False
            Whether rows may be in none of them, or have no group: their position is G.

        Raises
        ------
        ValueError
            If a row is in none of them, unless `others`.
        """
        if values is None:
            raise self._missing()
        values = _in_order(Sensitive.of(values).values, self.features, self.parameter)
        columns = _columns(values, n_rows, self.parameter, missing=others)
        if len(columns) != self.n_features:
            raise InvalidParameter(
                self.parameter,
                f"have {self.n_features} column{'s' * (self.n_features > 1)}, as when the rule was fitted",
                len(columns),
            )
        distinct, of_row = _combined(columns, self.parameter)
        place = {name: g for g, name in enumerate(self.names)}
        codes = np.array([place.get(name, -1) for name in distinct], dtype=np.intp)[of_row]
        if others:
            self._check_types([name for name in distinct if name not in place])
            return np.where(codes < 0, len(self.names), codes)
        if (codes < 0).any():
            row = int(np.argmax(codes < 0))
            raise InvalidParameter(
                self.parameter,
                f"contain only groups that the rule was fitted to, {shown(list(self.names))}",
                f"{distinct[of_row[row]]!r} in row {row}",
                (
                    "to decide about other groups, fit the rule to rows that include them, or with "
                    f"{argument('Sensitive.unknown', 'blind')}"
                ),
            )
        return codes

    def _missing(self) -> InvalidParameter:
        """Return the error for rows that come without the values."""
        by = "" if self.features is None else f", by {' and '.join(map(repr, self.features))}"
        name, noun = self.parameter, _NOUNS[self.parameter]
        part, unknown = ("loss", "") if noun == "group" else ("calibration", "; None where it is not known")
        return InvalidParameter(
            name,
            problem=f"the rule has a {part} for each {noun}, so it needs {mention(name)}, the {noun} of every "
            f"row{by}{unknown}",
        )

    def _check_types(self, others: list[Any]) -> None:
        """Refuse names that differ from those of known groups in their type alone, such as '1' and 1."""
        texts = {str(name): name for name in self.names}
        for name in others:
            if name is not None and str(name) in texts:
                raise InvalidParameter(
                    self.parameter,
                    "have the types that the rule was fitted to",
                    f"{name!r}, although the rule was fitted to the {_NOUNS[self.parameter]} {texts[str(name)]!r}",
                )


@dataclass(frozen=True, eq=False)
class Partition:
    """The groups of rows that are read in pieces.

    Parameters
    ----------
    groups : Groups
    others : bool, default=False
        Whether rows may be in none of them, or have no group.
    has_others : bool, default=False
        Whether some rows are.
    """

    groups: Groups
    others: bool = False
    has_others: bool = False

    @property
    def of_segments(self) -> bool:
        """Whether they are segments, not sensitive groups."""
        return self.groups.parameter == "segments"

    def codes(self, values: Any, n_rows: int) -> IntArray:
        """Return the position (n,) of the group of each row of a piece."""
        return self.groups.codes(values, n_rows, others=self.others)

    def places(self, names: Sequence[Any]) -> IntArray:
        """Return the positions of groups by name, that of all others behind the last."""
        place = {name: g for g, name in enumerate(self.groups.names)}
        return np.array([place.get(name, len(place)) for name in names], dtype=np.intp)


def partition_of(names: Sequence[Any], features: tuple[str, ...] | None, known: Partition | None = None) -> Partition:
    """Return the sensitive groups of rows by the names that occur, or those that a rule knows.

    Parameters
    ----------
    names : sequence
        Distinct; None where rows have no group.
    features : tuple of str or None
        Names of the columns.
    known : Partition, optional
    """
    lacking = [name for name in names if _lacks_value(name)]
    if known is None:
        if lacking:
            raise InvalidParameter(
                "sensitive_features",
                "be known for every row",
                "missing values",
                "drop such rows, or make them a separate group",
            )
        ordered = sorted_labels(list(names))
        if len(ordered) < 2:
            raise InvalidParameter("sensitive_features", "contain at least two groups", f"only {shown(ordered)}")
        return Partition(Groups(tuple(ordered), features))
    groups = known.groups
    unknown = [name for name in names if name not in groups.names]
    if unknown and not known.others:
        raise InvalidParameter(
            groups.parameter,
            f"contain only groups that the rule was fitted to, {shown(list(groups.names))}",
            shown(unknown[0]),
            f"to decide about other groups, fit the rule with {argument('Sensitive.unknown', 'blind')}",
        )
    groups._check_types(unknown)
    return Partition(groups, known.others, bool(unknown))


def distinct_groups(values: Any, n_rows: int) -> tuple[list[Any], tuple[str, ...] | None]:
    """Return the sensitive groups that occur among some rows, None where it is missing, and the names of the columns.

    Examples
    --------
    >>> from metricwise.data.sensitive import distinct_groups
    >>> distinct_groups(["b", "a", None], 3)
    (['b', 'a', None], None)
    """
    columns = _columns(values, n_rows, "sensitive_features", missing=True)
    return _combined(columns, "sensitive_features")[0], _names(values)


@dataclass(frozen=True, eq=False)
class SensitiveFeatures:
    """The groups of rows as they were read.

    Parameters
    ----------
    codes : ndarray of shape (N,), int
    groups : Groups
    """

    codes: IntArray
    groups: Groups


def read_sensitive(spec: RowSpec, n_rows: int) -> SensitiveFeatures | None:
    """Read the sensitive group of every row, None if there are no sensitive features."""
    return None if spec.sensitive is None else read_sensitive_features(spec.sensitive.values, n_rows)


def read_sensitive_features(values: Any, n_rows: int) -> SensitiveFeatures:
    """Read the sensitive group of every row.

    Parameters
    ----------
    values : array-like of shape (N,) or (N, F)
        A column, or a data frame or an array of several, whose combinations that occur are the groups.
    n_rows : int

    Returns
    -------
    SensitiveFeatures
        Groups in the order of their names.

    Examples
    --------
    >>> from metricwise.data.sensitive import read_sensitive_features
    >>> found = read_sensitive_features(["b", "a", "b"], 3)
    >>> found.codes.tolist(), found.groups.names
    ([1, 0, 1], ('a', 'b'))
    """
    return _read_groups(Sensitive.of(values).values, n_rows, "sensitive_features")


def read_segments(values: Any, n_rows: int) -> SensitiveFeatures:
    """Read the segment of every row, (N,) or (N, F); rows that lack a value have the code S, behind all segments.

    Examples
    --------
    >>> from metricwise.data.sensitive import read_segments
    >>> segments = read_segments(["b", "a", None], 3)
    >>> segments.codes.tolist(), segments.groups.names
    ([1, 0, 2], ('a', 'b'))
    """
    return _read_groups(values, n_rows, "segments")


def _read_groups(values: Any, n_rows: int, parameter: str) -> SensitiveFeatures:
    """Read the groups of rows in the order of their names; rows without one are refused unless it is a segment."""
    columns = _columns(values, n_rows, parameter, missing=parameter == "segments")
    distinct, of_row = _combined(columns, parameter)
    names = sorted_labels([name for name in distinct if not _lacks_value(name)])
    if len(names) < 2:
        raise InvalidParameter(parameter, f"contain at least two {_NOUNS[parameter]}s", f"only {shown(names)}")
    place = {name: g for g, name in enumerate(names)}
    codes = np.array([place.get(name, len(names)) for name in distinct], dtype=np.intp)[of_row]
    return SensitiveFeatures(codes, Groups(tuple(names), _names(values), parameter))


def _lacks_value(name: Any) -> bool:
    """Whether a label, or one of several, is missing."""
    return name is None or (isinstance(name, tuple) and None in name)


def _names(values: Any) -> tuple[str, ...] | None:
    """Names of the columns, None where they have none."""
    if is_frame(values):
        names = column_names(values)
        return None if position_named(names) else tuple(map(str, names))
    name = getattr(values, "name", None)
    return (name,) if isinstance(name, str) and name else None


def _in_order(values: Any, features: tuple[str, ...] | None, parameter: str) -> Any:
    """Return a frame with its columns as a rule knows them, by name."""
    if features is None or not is_frame(values):
        return values
    names = {str(name): name for name in column_names(values)}
    missing = [name for name in features if name not in names]
    if missing:
        raise InvalidParameter(
            parameter,
            f"have the columns {shown(list(features))}",
            shown(list(names)),
            f"pass {parameter}.to_numpy() to match them by position",
        )
    return select_columns(values, [names[name] for name in features])


def _columns(values: Any, n_rows: int, parameter: str, *, missing: bool = False) -> list[Any]:
    """Return the columns, one value per row each; missing ones are refused, or all are None if `missing`."""
    if isinstance(values, str):
        raise InvalidParameter(
            parameter,
            f"hold one value for each of the {n_rows} rows, unless all that is read is in a table",
            shown(values),
            "pass the column itself",
        )
    if is_frame(values):
        columns = list(columns_of(values))
    elif isinstance(values, (list, tuple)):
        columns = _listed(values)
    else:
        array = values if is_masked(values) else np.asarray(values)
        columns = (
            [array] if array.ndim == 1 else [array[:, f] for f in range(array.shape[1])] if array.ndim == 2 else []
        )
    arrays = [column if is_masked(column) else np.asarray(column) for column in columns]
    if not arrays or any(column.shape != (n_rows,) for column in arrays):
        shape = (
            (len(arrays[0]), len(arrays))
            if len(arrays) > 1
            else np.shape(arrays[0])
            if arrays
            else "that is not a table"
        )
        raise InvalidParameter(
            parameter, f"have one value for each of the {n_rows} rows, or one per row and feature", f"shape {shape}"
        )
    for at, column in enumerate(arrays):
        gone = split_missing(column)[1]
        if gone.any() and missing:
            arrays[at] = np.asarray(column).astype(object)
            arrays[at][gone] = None
        elif gone.any():
            raise InvalidParameter(
                parameter,
                "be known for every row",
                f"a missing value in row {int(np.argmax(gone))}",
                "drop such rows, or make them a separate group",
            )
    return arrays


def _listed(values: Sequence[Any]) -> list[Any]:
    """Return the columns of lists, in which labels of several types stay apart."""
    if not values or not isinstance(values[0], (list, tuple)):
        return [label_array(list(values))]
    if not all(isinstance(row, (list, tuple)) and len(row) == len(values[0]) for row in values):
        return []
    return [label_array(list(column)) for column in zip(*values, strict=True)]


def _combined(columns: list[Any], parameter: str) -> tuple[list[Any], IntArray]:
    """Return the distinct groups that occur, and which of them (N,) every row is in."""
    labels, codes = zip(*(_coded(column, parameter) for column in columns), strict=True)
    if len(columns) == 1:
        return labels[0], codes[0]
    pairs, of_row = np.unique(np.stack(codes, axis=1), axis=0, return_inverse=True)
    names = [
        tuple(column_labels[place] for column_labels, place in zip(labels, pair, strict=True))
        for pair in pairs.tolist()
    ]
    return names, of_row.reshape(-1).astype(np.intp)


def _coded(column: Any, parameter: str) -> tuple[list[Any], IntArray]:
    """Return the distinct values of a column, and which of them every row has."""
    values = np.asarray(column)
    if values.dtype.kind != "O":
        distinct, codes = np.unique(values, return_inverse=True)
        return python_labels(distinct), codes.reshape(-1).astype(np.intp)
    numbers: dict[Any, int] = {}
    try:
        row_codes = [numbers.setdefault(python_label(value), len(numbers)) for value in values]
    except TypeError:
        odd = next(value for value in values if getattr(value, "__hash__", None) is None)
        raise InvalidParameter(parameter, "hold names or numbers", shown(odd)) from None
    return list(numbers), np.array(row_codes, dtype=np.intp)
