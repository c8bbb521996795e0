"""Data larger than memory: time and memory of every engine for a Parquet data set of ten classes.

    python benchmarks/out_of_memory.py                      writes out_of_memory.csv and out_of_memory.md beside it
    python benchmarks/out_of_memory.py --rows 5000000 10000000 --engines files dask
    python benchmarks/out_of_memory.py --output folder --data folder
    python benchmarks/out_of_memory.py --quick              a million rows; writes nothing

The data set is written first, with a fixed seed, in files of five million rows, unless it exists. By default 10 million
rows are measured with all engines, and 50 million with files and Dask. Every engine (`out_of_memory_engines/`) is
measured in a new process: the time of the default call and the peak memory of its process, including Python and
libraries; then the time of one pass, which counts two rules on all rows. Of files also the time of pyarrow to read the
columns in batches. Times of a pass are the best of several. The files are in the system's cache if there is room. A
choice of rows or engines is written only if `--output` is given. Needs Linux.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import pkgutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import out_of_memory_engines
from machine import facts
from out_of_memory_engines import CLASSES, LABELS, METRIC, NAMES
from tables import significant, table, write_csv, write_text

HERE = Path(__file__).parent
FILE_ROWS = 5_000_000
GROUP_ROWS = 250_000
PASS_AIM, MEMORY_AIM = 1.5, 1e9
REFERENCE = "files"
MODULES = (name for _, name, _ in pkgutil.iter_modules(out_of_memory_engines.__path__))
ENGINES = [REFERENCE, *(name for name in MODULES if name != REFERENCE)]
PLAN = {10_000_000: ENGINES, 50_000_000: [REFERENCE, "dask"]}


# ---------------------------------------------------------------------------------------------------------------- rows


def make(folder: Path, n_rows: int) -> None:
    """Write the data set: overconfident probabilities in float32, and labels."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir(parents=True, exist_ok=True)
    schema = pa.schema([*[(name, pa.float32()) for name in NAMES], (LABELS, pa.int32())])
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
    """Return the files of so many rows, which are written if they do not exist."""
    folder = folder if n_rows % FILE_ROWS == 0 else folder / str(n_rows)  # larger data sets begin with the same files
    make(folder, n_rows)
    return sorted(str(path) for path in folder.glob("part*.parquet"))[: -(-n_rows // FILE_ROWS)]


# ------------------------------------------------------------------------------------------------------------- engines


def engine(name: str) -> Any:
    return importlib.import_module(f"out_of_memory_engines.{name}")


def measured(name: str, paths: list[str]) -> dict[str, float]:
    """Measure an engine in a new process; raise CalledProcessError if it fails."""
    command = [sys.executable, __file__, "--measure", name, json.dumps(paths)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def rows_of(folder: Path, n_rows: int, names: list[str]) -> tuple[list[dict[str, Any]], list[str]]:
    """Measure engines on so many rows: a row of the table for each, and who was left out and why."""
    paths, rows, left_out, reference = files(folder, n_rows), [], [], None
    for name in names:
        problem = engine(name).missing()
        if problem is None:
            load = os.getloadavg()[0]
            try:
                figures = measured(name, paths)
            except subprocess.CalledProcessError as error:
                problem = f"failed, exit code {error.returncode}"
            else:
                reference = figures if name == REFERENCE else reference
                rows.append(row(n_rows, name, load, figures, reference))
                print(rows[-1], flush=True)
        if problem is not None:
            left_out.append(f"{name}, {n_rows:,} rows: {problem}")
            print(left_out[-1], flush=True)
    return rows, left_out


# -------------------------------------------------------------------------------------------------------------- report


def row(
    n_rows: int, name: str, load: float, figures: dict[str, float], reference: dict[str, float] | None
) -> dict[str, Any]:
    """Return a row of the table: figures of an engine beside those of the reference, if that was measured."""
    reading, linked, workers, judged_peak = (
        figures.get(key) for key in ("reading", "linked", "workers", "evaluate_peak")
    )
    within = None if reading is None else figures["pass"] / reading
    ratio = None if reference is None else figures["seconds"] / reference["seconds"]
    pass_ratio = None if reference is None else figures["pass"] / reference["pass"]
    equal = None if reference is None else figures["counts"] == reference["counts"]
    return {
        "rows": f"{n_rows:,}",
        "engine": name,
        "load before": f"{load:.1f}",
        "pyarrow reads, s": significant(reading),
        "one pass, s": significant(figures["pass"]),
        f"≤ {PASS_AIM:g} reads": None if within is None else "yes" if within <= PASS_AIM else "**no**",
        "pass to files": None if pass_ratio is None else f"{pass_ratio:.2f}",
        "behind a link, s": significant(linked),
        "ns per row": significant(1e9 * figures["pass"] / n_rows),
        "default call, s": significant(figures["seconds"]),
        "call to files": None if ratio is None else f"{ratio:.2f}",
        "µs per row": significant(1e6 * figures["seconds"] / n_rows),
        "peak MB": significant(figures["peak"] / 1e6),
        f"≤ {MEMORY_AIM / 1e6:g} MB": "yes" if figures["peak"] <= MEMORY_AIM else "**no**",
        "workers' peak MB": None if workers is None else significant(workers / 1e6),
        "evaluate, s": significant(figures.get("evaluate")),
        "its peak MB": None if judged_peak is None else significant(judged_peak / 1e6),
        "passes": int(figures["n_passes"]),
        "value": f"{figures['value']:.6f}",
        "counts equal": None if equal is None else "yes" if equal else "**no**",
    }


def markdown(rows: list[dict[str, Any]], left_out: list[str], size: int) -> str:
    machine = facts()
    skipped = "".join(f"\n- Not measured: {line}." for line in left_out)
    return f"""# Out of memory

Made by `python benchmarks/out_of_memory.py`. {machine["processor"]}, {machine["cores"]} cores, Python
{machine["Python"]}, NumPy {machine["numpy"]}; metricwise {machine["metricwise"]}. {METRIC}, {CLASSES} classes, float32;
{size / 1e9:.1f} GB of Parquet in all. The load from other processes slows all calls, and is measured before each row.
*One pass* counts two rules; *behind a link* includes the recalibration of every probability, whose logarithms and
exponentials take longer than reading. *passes*: passes of the solver over all rows, without those that read labels and
draw the sample. *peak MB*: of the whole process that calls; *workers' peak MB*: of all other processes together.
*evaluate*: a rule and argmax by two metrics, with intervals.
*counts equal*: the confusion matrix of argmax is that of files, number by number.
{skipped}
{table(rows, left=2)}
"""


def main(arguments: argparse.Namespace) -> None:
    plan, folder = plan_of(arguments), Path(arguments.data)
    rows, left_out = [], []
    for n_rows, names in plan.items():
        some, problems = rows_of(folder, n_rows, names)
        rows, left_out = rows + some, left_out + problems
    text = markdown(rows, left_out, sum(Path(path).stat().st_size for path in files(folder, max(plan))))
    print(text)
    if arguments.output or plan == PLAN:
        output = arguments.output or HERE
        write_csv(output / "out_of_memory.csv", rows)
        write_text(output / "out_of_memory.md", text)


def plan_of(arguments: argparse.Namespace) -> dict[int, list[str]]:
    """Return which engines are measured on how many rows."""
    plan = PLAN
    if arguments.quick or arguments.rows:
        plan = dict.fromkeys(arguments.rows or [1_000_000], ENGINES)
    if arguments.engines:
        plan = {n_rows: [name for name in names if name in arguments.engines] for n_rows, names in plan.items()}
    return plan


def parsed(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--data", default=str(Path(tempfile.gettempdir()) / "metricwise_out_of_memory"))
    parser.add_argument("--rows", type=int, nargs="+", help="numbers of rows, each measured with all engines")
    parser.add_argument("--engines", nargs="+", choices=ENGINES, help="engines that are measured")
    parser.add_argument("--quick", action="store_true", help="a million rows")
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    given = parsed()
    if given.measure:
        print(json.dumps(engine(given.measure[0]).measure(json.loads(given.measure[1]))))
    else:
        main(given)
