"""Tables in files: CSV, Parquet, Feather, and arrays of NumPy's.

Owns formats: what a file holds by its ending, the names of its columns, their values as numbers, as labels or as they
are, and how a table is written. Which column is what is said by :mod:`metricwise.inputs.columns`. Must not know
metrics, rules or commands. pyarrow is imported where a table is read or written.
"""

from .reading import Arrays, Columns, open_table
from .writing import check_target, write_table

__all__ = ["Arrays", "Columns", "check_target", "open_table", "write_table"]
