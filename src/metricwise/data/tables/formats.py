"""File formats of tables: how the names of columns are read, how rows are scanned and written.

To add a format, write a subclass of `FileFormat` and add its endings to `FORMATS`. Must not know which column is what.
"""

from __future__ import annotations

import csv
import io
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

from ...core.errors import InvalidParameter, MissingDependency, argument, shown

__all__ = [
    "ARRAYS",
    "FORMATS",
    "STANDARD_STREAM",
    "Csv",
    "Feather",
    "FileFormat",
    "Parquet",
    "arrow",
    "file_format",
    "scan_dataset",
]

STANDARD_STREAM = "-"
_HEAD_BYTES = 1 << 16
_SEPARATORS = {",": "','", ";": "';'", "\t": "'\\t' (a tab)", "|": "'|'"}
_DECIMAL_COMMA = re.compile(r"\s*[+-]?\d*,\d+(?:[eE][+-]?\d+)?\s*")
_MARKS = {b"\xff\xfe\x00\x00": "UTF-32", b"\x00\x00\xfe\xff": "UTF-32", b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}


def arrow() -> Any:
    """Return pyarrow, or say how to install it."""
    try:
        import pyarrow as pa
    except ImportError:
        raise MissingDependency("tables need pyarrow: pip install 'metricwise[tables]'", owner=None) from None
    return pa


class FileFormat(ABC):
    """A format of tables in files.

    Attributes
    ----------
    title : str
        Name in messages.
    has_texts : bool
        Whether all columns are text until they are read as numbers or labels.

    See Also
    --------
    metricwise.data.tables.reading.TableReader : Reads the columns of files.
    """

    title: str
    has_texts: bool = False

    @abstractmethod
    def schema(self, path: str) -> Any:
        """Return the Arrow schema of a file."""

    @abstractmethod
    def dataset_format(self, schema: Any) -> Any:
        """Return what `pyarrow.dataset.dataset` takes as `format` to read the columns of a schema."""

    def scan(self, path: str, schema: Any, n_rows: int) -> Iterator[Any]:
        """Return the record batches of a file, with the columns and types of a schema and at most `n_rows` rows."""
        from pyarrow import dataset

        source = dataset.dataset(path, schema=schema, format=self.dataset_format(schema))
        return scan_dataset(source, schema.names, n_rows)

    @abstractmethod
    def writer(self, file: Any, schema: Any) -> Any:
        """Return an object with `write_table` and `close` that writes to an open file."""

    def refusal(self, error: Exception, path: str) -> ValueError:
        """Return the error for a file that cannot be read."""
        return InvalidParameter(
            "", problem=f"this is not a complete {self.title} file: {_first_line(error)}", owner=path
        )


class Parquet(FileFormat):
    """Parquet files."""

    title = "Parquet"

    def schema(self, path: str) -> Any:
        from pyarrow import parquet

        return parquet.read_schema(path)

    def dataset_format(self, schema: Any) -> Any:
        return "parquet"

    def writer(self, file: Any, schema: Any) -> Any:
        from pyarrow import parquet

        return parquet.ParquetWriter(file, schema)


class Feather(FileFormat):
    """Feather files, which are Arrow's own."""

    title = "Feather"

    def schema(self, path: str) -> Any:
        pa = arrow()
        with pa.memory_map(path) as file:
            return pa.ipc.open_file(file).schema

    def dataset_format(self, schema: Any) -> Any:
        return "feather"

    def scan(self, path: str, schema: Any, n_rows: int) -> Iterator[Any]:
        """Return the batches of a file in this thread, each checked before its columns are used.

        pyarrow's own scan of a dataset reads ahead in other threads. These use memory that is no longer theirs if a
        damaged file ends the scan, and the process ends with them.
        """
        pa = arrow()
        with pa.memory_map(path) as file:
            reader = pa.ipc.open_file(file)
            fields = [reader.schema.get_field_index(name) for name in schema.names]
            options = pa.ipc.IpcReadOptions(included_fields=fields, use_threads=False)
            reader = pa.ipc.open_file(file, options=options)
            for number in range(reader.num_record_batches):
                batch = reader.get_batch(number)
                batch.validate(full=True)
                batch = batch.select(schema.names).cast(schema)
                for start in range(0, batch.num_rows, n_rows):
                    yield batch.slice(start, n_rows)

    def writer(self, file: Any, schema: Any) -> Any:
        pa = arrow()
        compression = "lz4" if pa.Codec.is_available("lz4") else None
        return pa.ipc.new_file(file, schema, options=pa.ipc.IpcWriteOptions(compression=compression))


class Csv(FileFormat):
    """CSV in UTF-8 with a header line; all columns are text.

    Parameters
    ----------
    separator : str
    """

    title = "CSV"
    has_texts = True

    def __init__(self, separator: str = ",") -> None:
        self.separator = separator

    def schema(self, path: str) -> Any:
        return self.header(lambda: arrow().input_stream(path), path)

    def header(self, open_file: Callable[[], Any], title: str) -> Any:
        """Return the schema by the header line; refuse text of another encoding or with another separator."""
        pa = arrow()
        with open_file() as file:
            self._check_head(bytes(file.read(_HEAD_BYTES)), title)
        with open_file() as file, io.TextIOWrapper(file, "utf-8-sig", newline="") as text:
            names = next((row for row in csv.reader(text, delimiter=self.separator) if row), None)
        if names is None:
            raise InvalidParameter("", problem="the file is empty", owner=title)
        return pa.schema([(name, pa.string()) for name in names])

    def _check_head(self, head: bytes, title: str) -> None:
        encoding = next((name for mark, name in _MARKS.items() if head.startswith(mark)), None)
        if encoding is None and b"\x00" in head:
            encoding = "UTF-16, or a file that is no text"
        if encoding is not None:
            raise InvalidParameter(
                "text",
                "be in UTF-8",
                encoding,
                "save the file as UTF-8 (in Excel: CSV UTF-8), or with iconv -f utf-16 -t utf-8",
                owner=title,
            )
        first = head.decode("utf-8-sig", errors="replace").split("\n")[0].strip("\r")
        others = [name for sign, name in _SEPARATORS.items() if sign != self.separator and sign in first]
        if others and self.separator not in first:
            raise InvalidParameter(
                "",
                problem=f"there is only one column, {shown(first)}",
                remedy=f"if columns are separated by {others[0]}, set {argument('Table.separator')}",
                owner=title,
            )

    def options(self, schema: Any) -> dict[str, Any]:
        """Return how columns are parsed and converted, by the names of the parameters of `pyarrow.csv.open_csv`."""
        from pyarrow import csv as arrow_csv

        return {
            "parse_options": arrow_csv.ParseOptions(delimiter=self.separator, newlines_in_values=True),
            "convert_options": arrow_csv.ConvertOptions(
                column_types=schema, null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False
            ),
        }

    def dataset_format(self, schema: Any) -> Any:
        from pyarrow import dataset

        return dataset.CsvFileFormat(**self.options(schema))

    def writer(self, file: Any, schema: Any) -> Any:
        from pyarrow import csv as arrow_csv

        return arrow_csv.CSVWriter(file, schema, write_options=arrow_csv.WriteOptions(delimiter=self.separator))

    def refusal(self, error: Exception, path: str) -> ValueError:
        problem = _first_line(error)
        if "UTF8" in problem.upper().replace("-", ""):
            return InvalidParameter("text", "be in UTF-8", owner=path)
        return InvalidParameter(
            "", problem=f"this is not valid CSV: {problem.removeprefix('CSV parse error: ')}", owner=path
        )

    @staticmethod
    def no_number(title: str, name: str, text: Any, row: int) -> ValueError:
        """Return the error for a cell that is no number."""
        remedy = ""
        if isinstance(text, str) and _DECIMAL_COMMA.fullmatch(text):
            remedy = f"; write decimals with a point, {text.strip().replace(',', '.')}"
        return InvalidParameter(
            "",
            problem=f"the column {shown(name)} must hold numbers, got {shown(text)} in row {row}{remedy}",
            owner=title,
        )


def scan_dataset(source: Any, names: list[str], n_rows: int) -> Iterator[Any]:
    """Yield batches of a dataset; a few are decoded by other threads in advance."""
    from pyarrow import dataset

    options = None
    if isinstance(getattr(source, "format", None), dataset.ParquetFileFormat):
        # By default all columns of several groups of rows are held as they are in the file, decoded or not.
        options = dataset.ParquetFragmentScanOptions(pre_buffer=False, use_buffered_stream=True)
    scanner = source.scanner(
        columns=names, batch_size=n_rows, batch_readahead=2, fragment_readahead=1, fragment_scan_options=options
    )
    return iter(scanner.to_batches())


def _first_line(error: Exception) -> str:
    """Return the first line of an error of another library, as the end of a sentence."""
    lines = str(error).strip().splitlines()
    return (lines[0] if lines else type(error).__name__).rstrip(".")


FORMATS: dict[str, Callable[[], FileFormat]] = {
    ".csv": Csv,
    ".csv.gz": Csv,
    ".tsv": lambda: Csv("\t"),
    ".parquet": Parquet,
    ".pq": Parquet,
    ".feather": Feather,
    ".arrow": Feather,
}
ARRAYS = (".npy", ".npz")  # files of NumPy, which hold arrays and no columns


def file_format(path: str, separator: str | None = None, *, written: bool = False) -> FileFormat | None:
    """Return the format of a path by its ending, None for arrays; the standard stream is CSV.

    Examples
    --------
    >>> from metricwise.data.tables.formats import file_format
    >>> file_format("rows.PQ").title, file_format("-", ";").separator
    ('Parquet', ';')
    """
    name = ".csv" if path == STANDARD_STREAM else path.lower()
    endings = [ending for ending in (*FORMATS, *ARRAYS) if not (written and ending == ".csv.gz")]
    ending = next((ending for ending in endings if name.endswith(ending)), None)
    if ending is None:
        raise InvalidParameter(
            "",
            problem=(
                f"the name of a table must end in {', '.join(endings[:-1])} or {endings[-1]}, or be - for CSV on "
                f"the standard {'output' if written else 'input'}"
            ),
            owner=path,
        )
    kind = None if ending in ARRAYS else FORMATS[ending]()
    if separator is None:
        return kind
    if not isinstance(kind, Csv):
        raise InvalidParameter(
            "separator", problem=f"{argument('separator')} is only for CSV", remedy="leave it out", owner=path
        )
    if len(separator) != 1:
        raise InvalidParameter(
            "separator", problem=f"a separator must be one character, got {shown(separator)}", owner=path
        )
    return Csv(separator)
