"""Tables in files: every format, type, encoding and mark of a missing label against arrays; damaged and wrong ones."""

from __future__ import annotations

import atexit
import datetime as dt
import decimal
import itertools
import shutil
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import metricwise as mw
import worlds
from fuzz.cases import LABELS
from fuzz.verdicts import Verdict
from laws.metric_records import RECORDS

TARGET = "truth"
# In the order in which a table that says nothing of order has them.
CLASSES = {
    "text": ["high", "low", "mid", "top"],
    "odd text": ['a "b"', "c,d", "it's", "ü\n"],
    "integers": [1, 3, 4, 7],
    "numbers": [-2.0, 0.5, 1.5, 10.25],
    "booleans": [False, True],
    "dates": [dt.date(2020, 1, day) for day in (1, 2, 3, 4)],
}
METRICS = ("accuracy", "macro_f1", "balanced_accuracy", "kappa", "min_recall")
TYPES = (
    pa.float64(),
    pa.float32(),
    pa.float16(),
    pa.decimal128(12, 6),
    pa.string(),
    pa.dictionary(pa.int8(), pa.float64()),
)
NUMBERS = itertools.count()  # of files: a reader may hold one for longer than its case
FORMATS = (".csv", ".tsv", ".parquet", ".feather", ".arrow")
ENCODINGS = ("utf-8", "utf-8-sig", "latin-1", "utf-16", "utf-32")


@cache
def folder():
    """A folder that is removed at the end."""
    path = Path(tempfile.mkdtemp(prefix="metricwise-fuzz-"))
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


# ---------------------------------------------------------------------------------------------------------- columns


def number_column(values, kind):
    """Numbers, which have few decimals, as a column of a type."""
    if pa.types.is_decimal(kind):
        return pa.array([decimal.Decimal(f"{value:.6f}") for value in values], kind)
    if pa.types.is_string(kind):
        return pa.array([repr(float(value)) for value in values], kind)
    if pa.types.is_dictionary(kind):
        return pa.array(values.astype(float)).dictionary_encode()
    return pa.array(values.astype(kind.to_pandas_dtype()), kind)


def label_column(codes, names, encoded):
    column = pa.array([None if code < 0 else names[code] for code in codes])
    return column.dictionary_encode() if encoded else column


@dataclass
class TableFile:
    """A file of probabilities in sixteenths and labels, what was changed in it, and what it said before."""

    path: Path
    names: list
    eta: np.ndarray
    codes: np.ndarray
    weight: np.ndarray | None
    metric: str
    about: str
    changes: list
    separator: str | None
    refusable: bool
    text: str = ""

    def __str__(self):
        return f"{self.about}, {self.metric}, weighted {self.weight is not None}, changed: {self.changes}, {self.text}"

    def judge(self):
        self.text = repr(self.path.read_bytes()) if self.path.suffix in (".csv", ".tsv") else ""
        try:
            return self.judge_file()
        finally:
            self.path.unlink()

    def judge_file(self):
        table = mw.Table(str(self.path), proba_prefix="p_", separator=self.separator)
        weight = None if self.weight is None else "weight"
        solution = mw.optimize(table, TARGET, self.metric, sample_weight=weight, strategy=mw.Strategy(**LABELS))
        assert np.isfinite([solution.value, solution.baseline]).all()
        decisions = folder() / "decisions.parquet"
        n_rows = mw.predict_table(solution.rule, table, decisions, column="decision", force=True)
        decided = pq.read_table(decisions)["decision"].to_pylist()
        assert len(decided) == n_rows
        if not self.changes:
            self.check(solution, decided)
        return Verdict.RIGHT

    def check(self, solution, decided):
        """Of a table that was not changed, values are those of its decisions, and of arrays."""
        place = {str(name): code for code, name in enumerate(self.names)}
        predicted = np.array([place[str(label)] for label in decided])
        k, seen = len(self.names), self.codes >= 0
        weight = None if self.weight is None else self.weight[seen]
        expected = RECORDS[self.metric].value(self.codes[seen], predicted[seen], weight, k=k)
        assert solution.value == pytest.approx(expected, abs=1e-12), f"{solution.value!r}, by scikit-learn {expected!r}"
        arrays = self.of_arrays()
        assert solution.value == pytest.approx(arrays.value, abs=1e-12), (
            f"{solution.value!r}, of arrays {arrays.value!r}"
        )
        assert solution.baseline == pytest.approx(arrays.baseline, abs=1e-12)

    def of_arrays(self):
        labels = np.where(self.codes < 0, np.nan, self.codes)
        options = {"classes": list(range(len(self.names))), "strategy": mw.Strategy(**LABELS)}
        return mw.optimize(self.eta, labels, self.metric, sample_weight=self.weight, **options)


# ---------------------------------------------------------------------------------------------- changes of the content


def change_cell(columns, rng):
    name = str(rng.choice([name for name in columns if name.startswith("p_")]))
    values = columns[name].to_pylist()
    values[rng.integers(len(values))] = [None, float("nan"), float("inf"), -0.5, 1.5, 1e300][rng.integers(6)]
    columns[name] = pa.array([None if value is None else float(value) for value in values])


def change_text(columns, rng):
    name = str(rng.choice(list(columns)))
    values = [str(value) for value in columns[name].to_pylist()]
    values[rng.integers(len(values))] = str(rng.choice(["x", "", " ", "0,5", "NaN", "null", "-", "1e400", "١"]))
    columns[name] = pa.array(values)


def drop_column(columns, rng):
    del columns[str(rng.choice(list(columns)))]


def rename_column(columns, rng):
    name = str(rng.choice(list(columns)))
    columns[str(rng.choice(["", "p_", "P_low", "truth ", "p_nobody", "a\nb"]))] = columns.pop(name)


def empty_rows(columns, rng):
    for name in columns:
        columns[name] = columns[name].slice(0, rng.integers(0, 2))


def null_column(columns, rng):
    name = str(rng.choice(list(columns)))
    columns[name] = pa.nulls(len(columns[name]))


def retype_column(columns, rng):
    """Lists, structures, times and bytes where numbers or labels are."""
    name = str(rng.choice(list(columns)))
    n = len(columns[name])
    columns[name] = (
        pa.array([[0.5]] * n),
        pa.array([{"a": 1}] * n),
        pa.array([dt.datetime(2020, 1, 1)] * n),
        pa.array([b"x"] * n),
        pa.array([dt.timedelta(1)] * n),
        pa.array([True] * n),
    )[rng.integers(6)]


OF_COLUMNS = (change_cell, change_text, drop_column, rename_column, empty_rows, null_column, retype_column)

# ------------------------------------------------------------------------------------------------- changes of the file


def truncate(content, rng):
    return content[: rng.integers(len(content))]


def flip_bytes(content, rng):
    changed = bytearray(content)
    for _ in range(rng.integers(1, 6)):
        changed[rng.integers(len(changed))] = rng.integers(256)
    return bytes(changed)


def append_junk(content, rng):
    return content + bytes(
        rng.choice([b"\n,,,\n", b"\x00\x00", b'"open', b"\r\n\r\n", b"PAR1", b"1,2,3,4,5,6,7,8,9\n"])
    )


def drop_middle(content, rng):
    start = rng.integers(len(content))
    return content[:start] + content[start + rng.integers(1, 30) :]


OF_BYTES = (truncate, truncate, flip_bytes, append_junk, drop_middle)


# -------------------------------------------------------------------------------------------------------------- draws


def draw_columns(rng):
    """Labels, probabilities and weights, the columns that hold them, and what is special about these."""
    kind = str(rng.choice(list(CLASSES)))
    names = CLASSES[kind][: int(rng.integers(2, len(CLASSES[kind]) + 1))]
    n, k = int(rng.integers(k_rows(names), 40)), len(names)
    eta = rng.multinomial(16, rng.dirichlet(np.ones(k), n)) / 16
    codes = worlds.draw_codes(eta, rng)
    codes[:k] = np.arange(k)
    if rng.random() < 0.3:
        codes[k:][rng.random(n - k) < 0.2] = -1
    weight = rng.integers(1, 5, n) if rng.random() < 0.3 else None
    number_type = TYPES[rng.choice(len(TYPES), p=[0.4, 0.25, 0.1, 0.1, 0.05, 0.1])]
    columns = {f"p_{name}": number_column(eta[:, c], number_type) for c, name in enumerate(names)}
    encoded = kind == "text" and bool(rng.random() < 0.3)
    columns[TARGET] = label_column(codes, names, encoded)
    if weight is not None:
        columns["weight"] = pa.array(weight)
    columns["id"] = pa.array(np.arange(n))
    columns = {name: columns[name] for name in rng.permutation(list(columns)).tolist()}
    usual = kind in ("text", "integers", "booleans") and pa.types.is_floating(number_type)
    return names, eta, codes, weight, columns, f"{kind} labels, {number_type}", usual


def k_rows(names):
    return len(names) + 2


def write(columns, path, rng, separator):
    """Write columns by the extension of a path."""
    table = pa.table(columns)
    if path.suffix in (".csv", ".tsv"):
        for at, column in enumerate(table.columns):
            if pa.types.is_dictionary(column.type) or pa.types.is_float16(column.type):
                values = pa.array(column.to_pylist())
                table = table.set_column(at, table.field(at).name, values)
        options = pa.csv.WriteOptions(delimiter=separator or ("\t" if path.suffix == ".tsv" else ","))
        pa.csv.write_csv(table, path, options)
    elif path.suffix == ".parquet":
        compression = str(rng.choice(["none", "snappy", "zstd", "gzip"]))
        pq.write_table(table, path, row_group_size=int(rng.integers(1, 50)), compression=compression)
    else:
        pa.feather.write_feather(table, str(path), compression=str(rng.choice(["uncompressed", "lz4", "zstd"])))


def draw(rng):
    """Draw a table in a file."""
    names, eta, codes, weight, columns, about, usual = draw_columns(rng)
    suffix = str(rng.choice(FORMATS))
    path, changes = folder() / f"rows{next(NUMBERS)}{suffix}", []
    separator = ";" if suffix == ".csv" and rng.random() < 0.2 else None
    if rng.random() < 0.3:
        change = OF_COLUMNS[rng.integers(len(OF_COLUMNS))]
        change(columns, rng)
        changes.append(change.__name__)
    try:
        write(columns, path, rng, separator)
    except (pa.ArrowException, NotImplementedError):  # no such type in the format
        path.write_bytes(b"")
        changes.append("not written")
    changes += change_file(path, rng)
    if suffix in (".csv", ".tsv") and rng.random() < 0.3:
        encoding = str(rng.choice(ENCODINGS))
        path.write_bytes(path.read_bytes().decode("utf-8", "replace").encode(encoding, "replace"))
        about, usual = f"{about}, {encoding}", usual and encoding.startswith("utf-8")
        changes += [] if encoding.startswith("utf-8") else [encoding]
    if rng.random() < 0.05:
        other = path.with_suffix(str(rng.choice([*FORMATS, ".txt", ".npz", ".npy", ""])))
        path, changes = path.replace(other), [*changes, f"named {other.name}"]
    metric = str(rng.choice(METRICS))
    return TableFile(
        path, names, eta, codes, weight, metric, f"{suffix}, {about}", changes, separator, bool(changes) or not usual
    )


def change_file(path, rng):
    """Change the bytes of a file now and then, and return how."""
    if rng.random() < 0.65 or not path.stat().st_size:
        return []
    change = OF_BYTES[rng.integers(len(OF_BYTES))]
    path.write_bytes(change(path.read_bytes(), rng))
    return [change.__name__]
