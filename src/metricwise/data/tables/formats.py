"""Which format a file has by the ending of its name, and the library that reads it."""

from __future__ import annotations

from typing import Any

from ...core.errors import InvalidParameter, MissingDependency

__all__ = ["STANDARD_STREAM", "arrow", "format_of"]

STANDARD_STREAM = "-"

_ENDINGS = {
    ".csv": "csv",
    ".csv.gz": "csv",
    ".tsv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".feather": "feather",
    ".arrow": "feather",
    ".npy": "npy",
    ".npz": "npz",
}


def format_of(path: str, *, written: bool = False) -> str:
    """Return "csv", "parquet", "feather", "npy" or "npz" by the ending of a path; the standard stream is CSV.

    Examples
    --------
    >>> from metricwise.data.tables.formats import format_of
    >>> format_of("rows.TSV"), format_of("-")
    ('csv', 'csv')
    """
    if path == STANDARD_STREAM:
        return "csv"
    known = [ending for ending in _ENDINGS if not (written and ending == ".csv.gz")]
    for ending in known:
        if path.lower().endswith(ending):
            return _ENDINGS[ending]
    raise InvalidParameter(
        "",
        problem=(
            f"the name of a table must end in {', '.join(known[:-1])} or {known[-1]}, or be - for CSV on "
            f"the standard {'output' if written else 'input'}"
        ),
        owner=path,
    )


def arrow() -> Any:
    """Return pyarrow, or say how to get it."""
    try:
        import pyarrow as pa
    except ImportError:
        raise MissingDependency("tables need pyarrow: pip install 'metricwise[tables]'", owner=None) from None
    return pa
