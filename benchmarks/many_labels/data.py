"""The sets: stored probabilities (CSR, float32) and labels, split into rows to fit and rows to judge.

=========  =======  =======  ======  =========  ===========  ==========
set           rows   labels  stored  positives  labels with  positives
                              a row      a row    5 or less  not stored
=========  =======  =======  ======  =========  ===========  ==========
synthetic  200,000  100,000    53.1        5.7         70 %       5.3 %
depends     55,795   34,764    50.0        4.9         84 %      32.7 %
delicious   16,105      983   150.0       19.0          0 %      20.8 %
debtags     30,300      598    49.8        3.7         14 %       4.8 %
hypernyms   82,114   17,157    50.0        9.1         69 %       7.6 %
=========  =======  =======  ======  =========  ===========  ==========

"5 or less": labels with at most 5 positives in the whole set (synthetic: in the rows that are fitted).

``synthetic`` is drawn (`synthetic.py`). ``depends`` and ``delicious`` are files: what a Debian package depends on, from
its description, and tags of web pages; both were made by a logistic label tree. ``debtags`` and ``hypernyms`` are made
by ``python -m benchmarks.many_labels data`` (`sources.py`). All real probabilities are out-of-fold.

Files are ``NAME_P.npz`` and ``NAME_Y.npz`` in the folder ``many_labels`` of METRICWISE_DATA, or in
``.cache/many_labels``, which is where they are made.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, load_npz, save_npz

from ..score_sets import data_folder
from ..tables import write_atomically
from .synthetic import N_ROWS, World, draw_rows
from .values import as_ones, both, column_sums

SYNTHETIC = "synthetic"
GIVEN = ("depends", "delicious")
MADE = ("debtags", "hypernyms")
REAL = (*GIVEN, *MADE)
SETS = (SYNTHETIC, *REAL)
CACHE = Path(".cache/many_labels")


@dataclass(frozen=True, eq=False)
class Rows:
    """Stored probabilities and labels of some rows."""

    proba: csr_matrix
    y: csr_matrix

    def take(self, rows: Any) -> Rows:
        return Rows(self.proba[rows], self.y[rows])


@dataclass(frozen=True, eq=False)
class Split:
    """Rows to which rules are fitted, and fresh rows on which decisions are judged."""

    fit: Rows
    fresh: Rows


def paths_of(name: str, folder: Path) -> list[Path]:
    return [folder / f"{name}_{part}.npz" for part in "PY"]


def find(name: str) -> list[Path] | None:
    """Return the files of a set, or None."""
    given = data_folder()
    folders = [CACHE] if given is None else [given / "many_labels", CACHE]
    found = [paths_of(name, folder) for folder in folders]
    return next((paths for paths in found if all(path.exists() for path in paths)), None)


def open_split(name: str, split: int = 0, n_rows: int = N_ROWS) -> Split:
    """Return fresh rows of the same world for the synthetic set, and random halves of a real one."""
    if name == SYNTHETIC:
        world = World()
        fit, fresh = (Rows(*draw_rows(world, n_rows, fresh=2 * split + number)) for number in (0, 1))
        return Split(fit, fresh)
    return halve(read(name), split)


def halve(rows: Rows, split: int) -> Split:
    order = np.random.default_rng([split, 0]).permutation(rows.y.shape[0])
    middle = len(order) // 2
    return Split(rows.take(np.sort(order[:middle])), rows.take(np.sort(order[middle:])))


def read(name: str) -> Rows:
    paths = find(name)
    if paths is None:
        remedy = "set METRICWISE_DATA" if name in GIVEN else "python -m benchmarks.many_labels data"
        raise FileNotFoundError(f"There is no set {name!r}: {remedy}.")
    proba, y = (csr_matrix(load_npz(path)) for path in paths)
    return Rows(proba.astype(np.float32), y.astype(np.int8))


def write(name: str, rows: Rows, output: Path) -> None:
    for path, matrix in zip(paths_of(name, output), (rows.proba, rows.y), strict=True):
        write_atomically(path, partial(save, matrix=matrix))


def save(path: Path, matrix: csr_matrix) -> None:
    with path.open("wb") as file:
        save_npz(file, matrix)


def describe(rows: Rows) -> dict[str, float]:
    """Return the figures by which sets are compared."""
    n_rows, n_labels = rows.y.shape
    positives = column_sums(as_ones(rows.y))
    return {
        "rows": n_rows,
        "labels": n_labels,
        "stored a row": rows.proba.nnz / n_rows,
        "positives a row": rows.y.nnz / n_rows,
        "labels with at most 5 positives": float(np.mean(positives <= 5)),
        "positives not stored": 1 - both(rows.proba, rows.y).nnz / rows.y.nnz,
    }


def build(names: Iterable[str], output: Path | None) -> None:
    """Make sets, unless their files exist, and print what they are like."""
    from . import sources

    for name in names:
        if output is not None or find(name) is None:
            rows = Rows(*sources.build(name))
            write(name, rows, output or CACHE)
        else:
            rows = read(name)
        print(name, describe(rows), flush=True)
