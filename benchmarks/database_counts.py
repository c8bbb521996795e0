"""What a database counts in SQL beside rows that it sends: time of each kind of pass.

    python benchmarks/database_counts.py                    writes database_counts.csv and database_counts.md beside it
    python benchmarks/database_counts.py --rows 100000      fewer rows; writes nothing
    python benchmarks/database_counts.py --output folder

The rows are those of `out_of_memory.py`: ten classes, float32. They are read from Parquet files, from a DuckDB file and
from a PostgreSQL server on this machine, by ADBC through a socket. Both databases are asked to count, and to send rows
in every pass, whichever `Query` does; the rows that `Query` copies from PostgreSQL are read as well. Every pass is the
best of several, in turn, and all must count the same. Then the default call for two metrics. A database that is missing
is left out, and the table says so.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from machine import facts
from out_of_memory import files
from out_of_memory_engines import CLASSES, LABELS, duckdb, postgresql
from tables import significant, table, write_csv, write_text

HERE = Path(__file__).parent
N_ROWS = 1_000_000
N_TRIES = 3
N_SAMPLE = 20_000
METRICS = ("balanced_accuracy", "macro_f1")
TOLERANCE = 1e-9  # relative difference of sums of probabilities; counts of labels are equal
Pass = Callable[[Any], Any]


@dataclass(frozen=True)
class Contestant:
    """A way to read the rows.

    Parameters
    ----------
    name : str
    rows : callable
        Returns a new table of the rows.
    counts : bool or None
        Whether the database is made to count, or to send rows; None: as it is.
    draws : bool
        Whether samples can be drawn; without them there is no default call either.
    """

    name: str
    rows: Callable[[], Any]
    counts: bool | None = None
    draws: bool = True

    @contextmanager
    def asked(self) -> Iterator[None]:
        """Have queries counted or sent."""
        from metricwise import Query

        if self.counts is None:
            yield
        else:
            with mock.patch.object(Query, "counts", self.counts):
                yield


# -------------------------------------------------------------------------------------------------------------- passes


def passes() -> dict[str, Pass]:
    """Return what is done with a source of rows, by name; each returns numbers that are the same for all sources."""
    from metricwise.core.losses import Loss
    from metricwise.oracles.counts import Counts
    from metricwise.rules import TemperatureScaling

    argmax = Loss.argmax(CLASSES)
    link = TemperatureScaling(np.full(1, 0.7), np.linspace(0, 0.5, CLASSES)[None])
    weighted = [Loss.from_tensor(-np.diag(np.linspace(1, 1 + step, CLASSES))) for step in np.linspace(0.5, 4, 7)]
    full = [Loss.from_tensor(np.random.default_rng(seed).random((CLASSES, CLASSES))) for seed in range(2)]

    def counted(losses: list[Any], confusion: Any = "labels", link: Any = None) -> Pass:
        return lambda source: Counts(source, confusion=confusion, link=link).confusions(losses)

    return {
        "check of all rows, class counts": lambda source: source.class_weights,
        "one loss, labels": counted([argmax]),
        "one loss, labels, recalibrated": counted([argmax], link=link),
        "one loss, expected": counted([argmax], "expected"),
        "two losses, labels": counted([argmax, weighted[0]]),
        "eight losses, labels": counted([argmax, *weighted]),
        "eight losses, expected, recalibrated": counted([argmax, *weighted], "expected", link),
        "two full losses, labels": counted(full),
        f"sample of {N_SAMPLE:,} rows": lambda source: len(source.sample(N_SAMPLE, 0).codes) > 0,
    }


def open_rows(rows: Any) -> Any:
    """Return a source of the rows, whose labels have been listed."""
    from metricwise.data.open import open_rows
    from metricwise.data.row_spec import RowSpec

    return open_rows(RowSpec(rows, LABELS))[1]


def measure(contestants: list[Contestant]) -> tuple[dict[str, dict[str, float]], dict[str, dict[str, float]]]:
    """Return the seconds of each pass and of each default call, by contestant."""
    seconds: dict[str, dict[str, float]] = {}
    for name, action in passes().items():
        some = [contestant for contestant in contestants if contestant.draws or not name.startswith("sample")]
        best = dict.fromkeys((contestant.name for contestant in some), np.inf)
        for _ in range(N_TRIES):
            results = []
            for contestant in some:
                with contestant.asked():
                    source = open_rows(contestant.rows())
                    if not name.startswith("check"):  # which is the first pass over all rows
                        assert source.class_weights.sum() == source.n_rows
                    start = time.perf_counter()
                    results.append(action(source))
                    best[contestant.name] = min(best[contestant.name], time.perf_counter() - start)
            for result in results[1:]:
                np.testing.assert_allclose(result, results[0], rtol=TOLERANCE)
        seconds[name] = best
        print(name, {key: significant(value) for key, value in best.items()}, flush=True)
    return seconds, measure_calls(contestants)


def measure_calls(contestants: list[Contestant]) -> dict[str, dict[str, float]]:
    """Return the seconds of the default call for each metric."""
    import metricwise as mw

    seconds: dict[str, dict[str, float]] = {}
    for metric in METRICS:
        seconds[metric] = {}
        for contestant in (contestant for contestant in contestants if contestant.draws):
            with contestant.asked():
                rows = contestant.rows()
                start = time.perf_counter()
                mw.optimize(rows, LABELS, metric)
                seconds[metric][contestant.name] = time.perf_counter() - start
        print(metric, {key: significant(value) for key, value in seconds[metric].items()}, flush=True)
    return seconds


# ------------------------------------------------------------------------------------------------------------- engines


def open_contestants(paths: list[str], stack: ExitStack) -> tuple[list[Contestant], list[str]]:
    """Return ways to read the rows of Parquet files, and what was left out and why."""
    import metricwise as mw

    def of(source: Any) -> Any:
        return mw.Table(source, proba_prefix="p_")

    contestants, left_out = [Contestant("files", lambda: of(paths))], []
    problem = postgresql.missing()
    if problem is None:
        open_postgres(paths, stack, contestants, of)
    else:
        left_out.append(f"PostgreSQL: {problem}")
    if duckdb.missing() is None:
        open_duckdb(paths, stack, contestants, of)
    else:
        left_out.append("DuckDB: duckdb is not installed")
    return contestants, left_out


def open_postgres(paths: list[str], stack: ExitStack, contestants: list[Contestant], of: Callable[[Any], Any]) -> None:
    """Add a PostgreSQL server that counts, that sends rows, and whose rows are copied."""
    from adbc_driver_postgresql import dbapi

    import metricwise as mw
    from benchmarks.export_engines import postgres

    server = stack.enter_context(postgres())
    address = f"postgresql:///postgres?host={server.folder}&user=postgres"
    postgresql.load(address, paths)
    connection = stack.enter_context(dbapi.connect(address, autocommit=True))
    copied = mw.Query(connection, "SELECT * FROM oof")

    def query() -> Any:
        return mw.Query(connection, "SELECT * FROM oof", copy=False)

    contestants += [
        Contestant("PostgreSQL counts", lambda: of(query()), True),
        Contestant("PostgreSQL sends", lambda: of(query()), False),
        Contestant("PostgreSQL, copied", lambda: of(copied)),
    ]


def open_duckdb(paths: list[str], stack: ExitStack, contestants: list[Contestant], of: Callable[[Any], Any]) -> None:
    """Add a DuckDB file that counts, which has no hash to draw samples by, and whose rows are read in every pass."""
    import metricwise as mw

    database = importlib.import_module("duckdb")
    path = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "rows.duckdb"
    duckdb.load(path, paths)
    connection = stack.enter_context(database.connect(path))

    def query() -> Any:
        return of(mw.Query(connection, "SELECT * FROM oof"))

    contestants += [Contestant("DuckDB counts", query, True, draws=False), Contestant("DuckDB sends", query)]


# -------------------------------------------------------------------------------------------------------------- report


def rows_of(what: str, seconds: dict[str, dict[str, float]]) -> list[dict[str, Any]]:
    """Return rows of the table."""
    names = dict.fromkeys(name for best in seconds.values() for name in best)
    return [{what: name, **{key: significant(best.get(key), 2) for key in names}} for name, best in seconds.items()]


def markdown(seconds: dict[str, dict[str, float]], calls: dict[str, dict[str, float]], text: dict[str, Any]) -> str:
    """Return the page."""
    machine = facts()
    skipped = "".join(f"\n- Not measured: {line}." for line in text["left_out"])
    return f"""# Counts of databases

Made by `python benchmarks/database_counts.py`: seconds of a pass over {text["rows"]:,} rows of {CLASSES} classes in
float32, the best of {N_TRIES}, in turn. {machine["processor"]}, {machine["cores"]} cores, Python {machine["Python"]};
metricwise {machine["metricwise"]}. The load from other processes was {text["load"]:.1f} before. All count the same.
{skipped}
{table(rows_of("pass", seconds))}

The default call, in seconds:

{table(rows_of("metric", calls))}
"""


def main() -> None:
    """Measure all passes of all contestants."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=N_ROWS)
    parser.add_argument("--output", type=Path, help="folder; without it only a full run writes, beside this file")
    parser.add_argument("--data", type=Path, default=Path(tempfile.gettempdir()) / "metricwise_out_of_memory")
    given = parser.parse_args()
    load = os.getloadavg()[0]
    with ExitStack() as stack:
        contestants, left_out = open_contestants(files(given.data, given.rows), stack)
        seconds, calls = measure(contestants)
    text = markdown(seconds, calls, {"left_out": left_out, "rows": given.rows, "load": load})
    print(text)
    output = given.output or (HERE if given.rows == N_ROWS else None)
    if output is not None:
        every = [*rows_of("what", seconds), *rows_of("what", calls)]
        write_csv(output / "database_counts.csv", every)
        write_text(output / "database_counts.md", text)


if __name__ == "__main__":
    main()
