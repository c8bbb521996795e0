"""Tables in files: CSV, Parquet, Feather, and arrays of NumPy's.

Owns formats: what a file holds by its ending, the names of its columns, their values as numbers, as labels or as they
are, and how a table is written. Which column is what is said by :mod:`metricwise.data.columns`. Must not know
metrics, rules or commands. pyarrow is imported where a table is read or written.
"""

from .formats import STANDARD_STREAM, arrow, format_of
from .reading import Arrays, Columns, open_table
from .streams import MEMORY_LIMIT, Stream, Table, batch_rows, open_stream
from .writing import TableWriter, check_target, label_column, write_table

__all__ = [
    "MEMORY_LIMIT",
    "STANDARD_STREAM",
    "Arrays",
    "Columns",
    "Stream",
    "Table",
    "TableWriter",
    "arrow",
    "batch_rows",
    "check_target",
    "format_of",
    "label_column",
    "open_stream",
    "open_table",
    "write_table",
]
