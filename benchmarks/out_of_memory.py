"""Data larger than memory: time and memory for a Parquet data set of 50 million rows and ten classes.

    python benchmarks/out_of_memory.py                      writes out_of_memory.csv and out_of_memory.md beside it
    python benchmarks/out_of_memory.py --output folder --data folder
    python benchmarks/out_of_memory.py --quick              a million rows; writes nothing

The data set is written first, with a fixed seed, in files of five million rows, unless it exists. Every figure is
measured in a new process: the time of pyarrow to read the columns in batches; the time of one pass, which counts two
rules on all rows; the time of the default call, and the peak memory of its process, including Python and libraries.
Times of a pass are the best of several. The files are in the system's cache if there is room. Dask has a cluster of two
processes on this machine, each with one thread. Needs Linux.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from machine import facts, resident
from tables import significant, table, write_csv, write_text

HERE = Path(__file__).parent
CLASSES = 10
FILE_ROWS = 5_000_000
GROUP_ROWS = 250_000
METRIC = "macro_f1"
PASS_AIM, MEMORY_AIM = 1.5, 1e9
TRIES = 3


# ---------------------------------------------------------------------------------------------------------------- rows


def make(folder: Path, n_rows: int) -> None:
    """Write the data set: overconfident probabilities in float32, and labels."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir(parents=True, exist_ok=True)
    names = [f"p_{k}" for k in range(CLASSES)]
    schema = pa.schema([*[(name, pa.float32()) for name in names], ("grade", pa.int32())])
    for number, start in enumerate(range(0, n_rows, FILE_ROWS)):
        path, rows = folder / f"part{number:03}.parquet", min(FILE_ROWS, n_rows - start)
        if path.exists() and pq.read_metadata(path).num_rows == rows:
            continue
        rng, draft = np.random.default_rng([7, number]), folder / f".part{number:03}.draft"
        with pq.ParquetWriter(draft, schema, use_dictionary=False) as writer:
            for begin in range(0, rows, GROUP_ROWS):
                proba, y = draw(rng, min(GROUP_ROWS, rows - begin))
                writer.write_table(pa.table([*proba.T, y], schema=schema))
        draft.replace(path)


def draw(rng: np.random.Generator, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    logits = 1.2 * rng.standard_normal((n_rows, CLASSES), dtype=np.float32)
    logits -= np.linspace(0, 2.5, CLASSES, dtype=np.float32)  # classes get rarer
    eta = np.exp(logits)
    eta /= eta.sum(axis=1, keepdims=True)
    y = (eta.cumsum(axis=1) < rng.random((n_rows, 1), dtype=np.float32)).sum(axis=1).clip(0, CLASSES - 1)
    sure = eta**1.5
    return sure / sure.sum(axis=1, keepdims=True), y.astype(np.int32)


def files(folder: Path, n_rows: int) -> list[str]:
    return sorted(str(path) for path in folder.glob("part*.parquet"))[: -(-n_rows // FILE_ROWS)]


# ------------------------------------------------------------------------------------------------------------ measures


def best(action: Any) -> float:
    seconds = []
    for _ in range(TRIES):
        start = time.perf_counter()
        action()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def measure_reading(paths: list[str]) -> dict[str, float]:
    """Read all columns with pyarrow."""
    import pyarrow.dataset as ds

    def read() -> None:
        for batch in ds.dataset(paths).to_batches():
            assert batch.num_rows >= 0

    return {"seconds": best(read)}


def measure_pass(paths: list[str]) -> dict[str, float]:
    """Count two rules on all rows in one pass, without and with recalibration; rows have been validated before."""
    import metricwise as mw
    from metricwise.core.losses import Loss
    from metricwise.data.open import open_rows
    from metricwise.data.row_spec import RowSpec
    from metricwise.oracles.counts import Counts
    from metricwise.rules import TemperatureScaling

    _, source = open_rows(RowSpec(mw.Table(paths, proba_prefix="p_"), "grade"))
    weights = np.linspace(1, 3, CLASSES)
    losses = [Loss.argmax(CLASSES), Loss.from_tensor(-np.diag(weights))]
    assert source.class_weights.sum() == source.n_rows  # the first pass, which checks rows
    link = TemperatureScaling(np.full(1, 0.7), np.linspace(0, 0.5, CLASSES)[None])
    return {
        "seconds": best(lambda: Counts(source).confusions(losses)),
        "linked": best(lambda: Counts(source, link=link).confusions(losses)),
    }


def measure_call(paths: list[str]) -> dict[str, float]:
    """Make the default call."""
    import metricwise as mw

    start = time.perf_counter()
    solution = mw.optimize(mw.Table(paths, proba_prefix="p_"), "grade", METRIC)
    seconds = time.perf_counter() - start
    return {"seconds": seconds, "peak": resident("VmHWM"), "passes": solution.n_passes, "value": solution.value}


def measure_dask(paths: list[str]) -> dict[str, float]:
    """Make the default call on a cluster of two processes."""
    import dask.dataframe as dd
    from distributed import Client, LocalCluster

    import metricwise as mw

    names = [f"p_{k}" for k in range(CLASSES)]
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster, Client(cluster):
        frame = dd.read_parquet(paths, split_row_groups=True)
        proba = frame[names].rename(columns=dict(zip(names, range(CLASSES), strict=True)))
        start = time.perf_counter()
        solution = mw.optimize(proba, frame["grade"], METRIC)
        seconds = time.perf_counter() - start
    return {"seconds": seconds, "peak": resident("VmHWM"), "passes": solution.n_passes, "value": solution.value}


MEASURES = {
    "reading": measure_reading,
    "pass": measure_pass,
    "call": measure_call,
    "dask": measure_dask,
}


def in_process(measure: str, paths: list[str]) -> dict[str, float]:
    command = [sys.executable, __file__, "--measure", measure, json.dumps(paths)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


# -------------------------------------------------------------------------------------------------------------- report


def row(folder: Path, n_rows: int, with_dask: bool) -> dict[str, Any]:
    paths, busy = files(folder, n_rows), os.getloadavg()[0]
    reading, one, call = (in_process(name, paths) for name in ("reading", "pass", "call"))
    dask = in_process("dask", paths) if with_dask else None
    ratio = one["seconds"] / reading["seconds"]
    return {
        "rows": f"{n_rows:,}",
        "load before": f"{busy:.1f}",
        "pyarrow reads, s": significant(reading["seconds"]),
        "one pass, s": significant(one["seconds"]),
        "times": f"{ratio:.2f}",
        f"≤ {PASS_AIM:g}": "yes" if ratio <= PASS_AIM else "**no**",
        "behind a link, s": significant(one["linked"]),
        "ns per row": significant(1e9 * one["seconds"] / n_rows),
        "default call, s": significant(call["seconds"]),
        "µs per row": significant(1e6 * call["seconds"] / n_rows),
        "peak MB": significant(call["peak"] / 1e6),
        f"≤ {MEMORY_AIM / 1e6:g} MB": "yes" if call["peak"] <= MEMORY_AIM else "**no**",
        "Dask, 2 workers, s": "" if dask is None else significant(dask["seconds"]),
        "client peak MB": "" if dask is None else significant(dask["peak"] / 1e6),
        "passes": int(call["passes"]),
        "value": f"{call['value']:.6f}",
        "value, Dask": "" if dask is None else f"{dask['value']:.6f}",
    }


def markdown(rows: list[dict[str, Any]], size: int) -> str:
    machine = facts()
    return f"""# Out of memory

Made by `python benchmarks/out_of_memory.py`. {machine["processor"]}, {machine["cores"]} cores, Python
{machine["Python"]}, NumPy {machine["numpy"]}; metricwise {machine["metricwise"]}. {METRIC}, {CLASSES} classes, float32;
{size / 1e9:.1f} GB of Parquet in all. The load from other processes slows all calls, and is measured before each row.
*One pass* counts two rules; *behind a link* includes the recalibration of every probability, whose logarithms and
exponentials take longer than reading. *passes*: passes of the solver over all rows, without those that read labels and
draw the sample. *peak MB*: of the whole process.

{table(rows)}
"""


def main(arguments: argparse.Namespace) -> None:
    steps = [1_000_000] if arguments.quick else [5_000_000, 10_000_000, 20_000_000, 50_000_000]
    folder = Path(arguments.data)
    make(folder, steps[-1])
    rows = []
    for n_rows in steps:
        rows.append(row(folder, n_rows, with_dask=n_rows in (arguments.dask or (steps[0], steps[-1]))))
        print(rows[-1], flush=True)
    text = markdown(rows, sum(Path(path).stat().st_size for path in files(folder, steps[-1])))
    print(text)
    if not arguments.quick:
        write_csv(arguments.output / "out_of_memory.csv", rows)
        write_text(arguments.output / "out_of_memory.md", text)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=HERE)
    parser.add_argument("--data", default=str(Path(tempfile.gettempdir()) / "metricwise_out_of_memory"))
    parser.add_argument("--dask", type=int, nargs="*", help="numbers of rows that Dask is measured with, too")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        print(json.dumps(MEASURES[given.measure[0]](json.loads(given.measure[1]))))
    else:
        main(given)
