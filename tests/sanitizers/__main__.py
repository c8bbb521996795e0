"""``python -m tests.sanitizers``: tests of kernels under the sanitizers of addresses and undefined behaviour.

The package is copied to ``build/sanitized`` and its kernels are compiled there, by gcc and with
``METRICWISE_BUILD=sanitized`` (see setup.py); the ordinary ones stay as they are. The first wrong access, overflow,
misaligned read or shift ends the process, and the report of the sanitizer is printed. Leaks are not looked for: Python
itself does not free everything at its end.

Exit code 1: a sanitizer or a test has found something. The counts are written to
results.csv and results.md beside this file, which the page "How it is tested" shows.
"""

from __future__ import annotations

import argparse
import csv
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "build" / "sanitized"
RESULTS = Path(__file__).with_name("results.csv")
COPIED = ("src", "setup.py", "pyproject.toml", "README.md", "LICENSE")
# What is run: everything that calls kernels on arrays of all kinds, and a part of the fuzz.
PARTS = {
    "tests of the kernels": ["tests/kernels"],
    "counts and walks of oracles": ["tests/oracles"],
    "fuzz": ["tests/fuzz"],
}
# The fuzz of arrays, as `make fuzz` draws them, where it is there.
FUZZ = ROOT / "tests" / "fuzz" / "__main__.py"
FUZZ_SECONDS = 60
# A report of a sanitizer ends the process with this code.
REPORTED = 99


def main(words: Sequence[str] | None = None) -> int:
    """Build, run and count; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.sanitizers")
    parser.add_argument("--only", choices=sorted(PARTS), action="append", help="a part of it; repeat for several")
    parser.add_argument("--no-build", action="store_true", help="take the kernels that are there")
    options = parser.parse_args(words)
    if not options.no_build:
        _build()
    environment = _environment()
    _check_kernels(environment)
    rows = [_run(part, paths, environment) for part, paths in PARTS.items() if not options.only or part in options.only]
    if FUZZ.is_file() and not options.only:
        rows.append(_fuzz(environment))
    if not options.only:
        _write(rows)
    return int(any(row["exit code"] for row in rows))


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _build() -> None:
    """Copy the package, and compile its kernels where the copy is."""
    BUILD.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(BUILD / "src", ignore_errors=True)
    for name in COPIED:
        source, copy = ROOT / name, BUILD / name
        if source.is_dir():
            shutil.copytree(source, copy, ignore=shutil.ignore_patterns("*.so", "*.c", "__pycache__", "*.egg-info"))
        else:
            shutil.copy2(source, copy)
    command = [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"]
    begin = time.monotonic()
    environment = {**os.environ, "METRICWISE_BUILD": "sanitized", "CC": os.environ.get("CC", "gcc")}
    with (BUILD / "build.log").open("w") as log:
        compiled = subprocess.run(command, cwd=BUILD, env=environment, stdout=log, stderr=log, check=False)
    if compiled.returncode or not list((BUILD / "src" / "metricwise" / "kernels").glob("_compiled*.so")):
        raise SystemExit(f"The kernels were not compiled; see {BUILD / 'build.log'}.")
    _say(f"Kernels compiled in {time.monotonic() - begin:.0f} seconds.")


def _environment() -> dict[str, str]:
    """Return the environment in which sanitized kernels are imported."""
    compiler = os.environ.get("CC", "gcc")
    libraries = [
        subprocess.run(
            [compiler, f"-print-file-name={name}"], capture_output=True, text=True, check=True
        ).stdout.strip()
        for name in ("libasan.so", "libubsan.so")
    ]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(BUILD / "src"), str(ROOT)]),
        "LD_PRELOAD": " ".join(libraries),
        "ASAN_OPTIONS": f"detect_leaks=0:exitcode={REPORTED}:abort_on_error=0",
        "UBSAN_OPTIONS": f"print_stacktrace=1:halt_on_error=1:exitcode={REPORTED}",
        "PYTHONMALLOC": "malloc",  # so that arrays of Python lie in memory that is watched
        "METRICWISE_KERNELS": "compiled",
        "METRICWISE_TESTS": os.environ.get("METRICWISE_TESTS", "quick"),
        "OMP_NUM_THREADS": "2",
    }


# A label that is no class: its count lies outside of the table of counts.
OUTSIDE = """
import numpy as np
from metricwise import kernels
block = kernels.Block(np.zeros((8, 1, 3)), np.array([3]), np.full((8, 1), {code}, dtype=np.int32))
kernels.count_labels(block, [(np.zeros((1, 3)), np.zeros((1, 3)))])
print(kernels._twins.__file__)
"""


def _check_kernels(environment: dict[str, str]) -> None:
    """Make sure that the sanitized kernels are those that are imported, and that a wrong access is reported."""
    right, wrong = (
        subprocess.run(
            [sys.executable, "-c", OUTSIDE.format(code=code)],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        for code in (2, 3)
    )
    if not right.stdout.startswith(str(BUILD)):
        raise SystemExit(f"The sanitized kernels are not in use: {right.stdout}{right.stderr}")
    if wrong.returncode != REPORTED or "AddressSanitizer" not in wrong.stderr:
        raise SystemExit(f"A wrong access is not reported: {wrong.stdout}{wrong.stderr}")


def _run(part: str, paths: Sequence[str], environment: dict[str, str]) -> dict[str, object]:
    """Run some tests; returns a row of counts."""
    begin = time.monotonic()
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not docs and not slow", *paths]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        _say(done.stdout[-20_000:] + done.stderr[-20_000:])
    passed = re.search(r"(\d+) passed", done.stdout)
    return _row(part, int(passed[1]) if passed else 0, done, time.monotonic() - begin)


def _fuzz(environment: dict[str, str]) -> dict[str, object]:
    """Try inputs of ``make fuzz`` that reach the kernels, for a while; returns a row of counts."""
    begin = time.monotonic()
    kinds = ["--kind", "arrays", "--kind", "engines"]
    command = [sys.executable, "-m", "tests.fuzz", "--fresh", "--seconds", str(FUZZ_SECONDS), *kinds]
    command += ["--output", str(BUILD / "fuzz")]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        _say(done.stdout[-20_000:] + done.stderr[-20_000:])
    tried = re.search(r"([\d,]+) inputs in this run", done.stdout)
    n_inputs = int(tried[1].replace(",", "")) if tried else 0
    return _row(f"inputs of make fuzz, {FUZZ_SECONDS} seconds", n_inputs, done, time.monotonic() - begin)


def _row(part: str, passed: int, done: subprocess.CompletedProcess[str], seconds: float) -> dict[str, object]:
    said = done.stdout + done.stderr
    reports = len(re.findall(r"ERROR: AddressSanitizer|runtime error:", said))
    _say(
        f"{part}: {passed} passed, {reports} reports of sanitizers, exit code {done.returncode}, {seconds:.0f} seconds."
    )
    return {
        "part": part,
        "passed": passed,
        "reports of sanitizers": reports,
        "exit code": done.returncode,
        "seconds": round(seconds),
    }


def _write(rows: Sequence[dict[str, object]]) -> None:
    """Write the counts as CSV, and as a table in Markdown."""
    names = list(rows[0])
    with RESULTS.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows(rows)
    lines = [f"| {' | '.join(str(row[name]) for name in names)} |" for row in rows]
    head = [f"| {' | '.join(names)} |", f"|---|{'--:|' * (len(names) - 1)}"]
    RESULTS.with_suffix(".md").write_text("\n".join([*head, *lines]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
