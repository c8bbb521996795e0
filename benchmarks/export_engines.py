"""Run exports in Python, onnxruntime, PyTorch, DuckDB, SQLite and a temporary PostgreSQL server.

Loads rows and fetches decisions, as labels of shape (N,) or (N, M). Must not know what is compared.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import metricwise as mw
from metricwise.rules.mixture import uniforms

from .export_cases import Case

Array = np.ndarray
Run = Callable[[Case], Array]


def columns_of(case: Case) -> dict[str, Array]:
    """Return the columns of a case, and the random numbers of a mixture."""
    table = {"row": np.arange(len(case.proba)), **case.table()}
    if case.drawn:
        seed = next(one.seed for one in (case.rule, *case.rule.rules) if isinstance(one, mw.MixtureRule))
        table["draw"] = uniforms(seed, 0, len(case.proba), 1)[:, 0]
    return table


def query(case: Case, dialect: str, table: str = "t") -> str:
    """Return the statement that decides every row, in order."""
    draw, group = "draw" if case.drawn else None, None if case.groups is None else "group"
    text = mw.export.to_sql(case.rule, case.columns, dialect, draw=draw, group=group)
    return f'SELECT {text} FROM {table} ORDER BY "row"'


def labels(rows: list[Any], case: Case) -> Array:
    """Return fetched decisions as labels of the rule."""
    array = np.array(rows, dtype=object)
    return array if case.rule.multioutput else array[:, 0]


# --------------------------------------------------------------------------------------------------------------- memory


def in_python(case: Case) -> Array:
    names: dict[str, Any] = {}
    exec(compile(mw.export.to_python(case.rule), "rule.py", "exec"), names)  # noqa: S102  # what is compared
    rows = case.proba.tolist()
    if case.rule.multioutput and not case.positive:  # outputs have classes of their own, and no padding
        counts = case.rule.n_classes.tolist()
        rows = [[eta[:k] for eta, k in zip(row, counts, strict=True)] for row in rows]
    given = [] if case.groups is None else [case.groups.tolist()]
    return np.array(names["decide_all"](rows, *given), dtype=object)


def in_onnxruntime(case: Case) -> Array:
    import onnxruntime

    dtype = str(case.proba.dtype)
    model = mw.export.to_onnx(case.rule, dtype=dtype, positive=case.positive)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    proba = case.proba[:, None] if case.proba.ndim == 1 else case.proba
    feeds = {session.get_inputs()[0].name: np.ascontiguousarray(proba)}
    if isinstance(case.rule, mw.MixtureRule):
        feeds["keys"] = np.arange(len(proba))
    found = session.run(None, feeds)
    return found[0].astype(object) if len(found) == 1 else np.stack([one.astype(object) for one in found], axis=1)


def torch_is_installed() -> bool:
    return find_spec("torch") is not None


def in_torch(case: Case) -> Array:
    return decide_in_torch(case, lambda module, _: module)


def in_torchscript(case: Case) -> Array:
    import torch

    return decide_in_torch(case, lambda module, _: torch.jit.script(module))


def in_exported_torch(case: Case) -> Array:
    """Run the program that torch.export makes of three rows on all of them."""
    import torch

    def export(module: Any, arguments: list[Any]) -> Any:
        shapes = tuple({0: torch.export.Dim("rows")} for _ in arguments)
        few = tuple(argument[:3] for argument in arguments)
        return torch.export.export(module, few, dynamic_shapes=shapes).module()

    return decide_in_torch(case, export)


def decide_in_torch(case: Case, convert: Callable[[Any, list[Any]], Any]) -> Array:
    """Return the labels of the codes of a module, converted."""
    import torch

    module = mw.export.to_torch(case.rule, positive=case.positive)
    arguments = [torch.from_numpy(np.ascontiguousarray(case.proba))]
    if case.drawn:
        arguments.append(torch.arange(len(case.proba)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch's, of what it deprecates within itself
        codes = convert(module, arguments)(*arguments)
    return module.labels(codes).astype(object)


# ------------------------------------------------------------------------------------------------------------ databases


def in_duckdb(case: Case) -> Array:
    import duckdb
    import pyarrow as pa

    with duckdb.connect() as connection:
        connection.register("t", pa.table(columns_of(case)))
        return labels(connection.execute(query(case, "duckdb")).fetchall(), case)


def in_sqlite(case: Case) -> Array:
    table, kinds = columns_of(case), {"row": "INTEGER", "group": "TEXT"}
    with closing(sqlite3.connect(":memory:")) as connection:
        names = ", ".join(f'"{name}" {kinds.get(name, "REAL")}' for name in table)
        connection.execute(f"CREATE TABLE t ({names})")
        marks = ", ".join("?" for _ in table)
        rows = zip(*(column.tolist() for column in table.values()), strict=True)
        connection.executemany(f"INSERT INTO t VALUES ({marks})", rows)
        found = labels(connection.execute(query(case, "sqlite")).fetchall(), case)
    if case.rule.classes[0].dtype == bool:  # SQLite has no booleans
        return found == 1
    return found


class Postgres:
    """A PostgreSQL server in a temporary folder, reached through a socket there."""

    def __init__(self, programs: Path, folder: Path, user: list[str]) -> None:
        self.programs, self.folder, self.user = programs, folder, user

    def call(self, program: str, *arguments: str, **options: Any) -> str:
        done = subprocess.run(
            [*self.user, str(self.programs / program), *arguments],
            capture_output=True, text=True, timeout=600, check=False, cwd=self.folder, **options,
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"{program}: {done.stderr.strip()}")
        return done.stdout

    def sql(self, *statements: str) -> str:
        flags = [part for statement in statements for part in ("-c", statement)]
        return self.call("psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-h", str(self.folder), "-d", "postgres", *flags)

    def version(self) -> str:
        return self.call("psql", "--version").split()[2]

    def decide(self, case: Case) -> Array:
        import pyarrow as pa
        import pyarrow.csv as pa_csv

        table, kind = columns_of(case), "real" if case.proba.dtype == np.float32 else "double precision"
        kinds = {"row": "integer", "draw": "double precision", "group": "text"}
        names = ", ".join(f'"{name}" {kinds.get(name, kind)}' for name in table)
        rows, decisions = self.folder / "rows.csv", self.folder / "decisions.csv"
        pa_csv.write_csv(pa.table(table), rows)
        rows.chmod(0o644)
        select = self.folder / "select.sql"
        select.write_text(
            f"\\copy t FROM '{rows}' WITH (FORMAT csv, HEADER)\n"
            f"COPY ({query(case, 'postgres')}) TO '{decisions}' WITH (FORMAT csv);\n"
        )
        select.chmod(0o644)
        self.sql("DROP TABLE IF EXISTS t", f"CREATE TABLE t ({names})")
        self.call(
            "psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-h", str(self.folder), "-d", "postgres", "-f", str(select)
        )
        options = pa_csv.ConvertOptions(column_types={f"f{m}": pa.string() for m in range(case.rule.n_outputs)})
        found = pa_csv.read_csv(
            decisions, read_options=pa_csv.ReadOptions(autogenerate_column_names=True), convert_options=options
        )
        return np.stack([self.typed(column.to_pylist(), case) for column in found.columns], axis=1)[
            :, slice(None) if case.rule.multioutput else 0
        ]

    @staticmethod
    def typed(texts: list[str], case: Case) -> Array:
        """Return an entry of a CSV file as a label."""
        kind = case.rule.classes[0].dtype.kind
        read = {"U": str, "O": str, "i": int, "f": float, "b": lambda text: text == "t"}[kind]
        return np.array([None if text == "" else read(text) for text in texts], dtype=object)


def find_postgres() -> Path | None:
    """Return the folder of PostgreSQL's programs: Debian's newest, or that of initdb on the path."""
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
    if debian:
        return debian[-1]
    found = shutil.which("initdb")
    return None if found is None else Path(found).parent


@contextmanager
def postgres() -> Iterator[Postgres | None]:
    """Yield a running server; None without PostgreSQL (Debian: apt-get install postgresql)."""
    programs = find_postgres()
    root = hasattr(os, "geteuid") and os.geteuid() == 0
    if programs is None or (root and shutil.which("runuser") is None):
        yield None
        return
    user = ["runuser", "-u", "postgres", "--"] if root else []  # the server refuses to be run by root
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        if root:
            shutil.chown(folder, "postgres")
        server = Postgres(programs, folder, user)
        server.call("initdb", "-D", str(folder / "data"), "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C.UTF-8")
        options = f"-c listen_addresses='' -c unix_socket_directories='{folder}' -c fsync=off"
        control = ["-D", str(folder / "data"), "-w", "-l", str(folder / "log")]
        server.call("pg_ctl", *control, "-o", options, "start")
        try:
            yield server
        finally:
            server.call("pg_ctl", *control, "-m", "immediate", "stop")
