"""The real sets, and what two models say of their rows.

A set is split at random, stratified by class: half of its rows, at most 2,000, are labelled; the others are the pool
that new rows are drawn from. The labelled rows have out-of-fold probabilities (five folds), the pool those of the model
fitted to all labelled rows. Must not know shifts, metrics or methods.
"""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.model_selection import StratifiedKFold, cross_val_predict, train_test_split
from sklearn.preprocessing import StandardScaler

from ..generalisation.data import Rows, load
from ..generalisation.probabilities import MODELS as ALL_MODELS
from ..score_sets import data_folder

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

FOLDS = 5
MAX_LABELLED_ROWS = 2_000
N_CLUSTERS = 5
BINARY = ("digits_eight", "mortgage_denied", "job_training", "tumour_relapse", "insured_vietnam", "nursery_rare")
MULTICLASS = ("cmc", "phishing", "chile_vote", "crackers", "digits")
ORDINAL = ("car", "nursery", "diamond_cut", "health_rating", "happiness")
SETS = (*BINARY, *MULTICLASS, *ORDINAL)
MODELS = ("logistic", "boosting")
CACHE = Path(".cache/life")


@dataclass(frozen=True)
class Task:
    """A set, a model and a split, and how many draws are measured."""

    set: str
    model: str
    split: int = 0
    draws: int = 1

    @property
    def seed(self) -> list[int]:
        """What random numbers start from: the same for a set in every run, whichever sets are asked for."""
        return [SETS.index(self.set) if self.set in SETS else len(SETS), MODELS.index(self.model), self.split]

    @property
    def path(self) -> Path:
        return CACHE / self.set / f"{self.model}-{self.split}.npz"


@dataclass(frozen=True, eq=False)
class Case:
    """Labelled rows with out-of-fold probabilities, and the pool of new rows.

    `direction` is the first principal component of the standardised features of a pool row, `cluster` the nearest of
    five centres (k-means).
    """

    proba: FloatArray
    y: IntArray
    pool: FloatArray
    pool_y: IntArray
    direction: FloatArray
    cluster: IntArray
    kind: str

    @property
    def n_classes(self) -> int:
        return self.proba.shape[1]

    @property
    def shares(self) -> FloatArray:
        """Class shares of the labelled rows."""
        return np.bincount(self.y, minlength=self.n_classes) / len(self.y)


def tasks_of(only: str, splits: int, draws: int) -> list[Task]:
    """Return the tasks of sets whose names contain a text."""
    return [
        Task(name, model, split, draws) for name in SETS if only in name for model in MODELS for split in range(splits)
    ]


def kind_of(name: str) -> str:
    return "ordinal" if name in ORDINAL else "multiclass" if name in MULTICLASS else "binary"


def split_set(rows: Rows, split: int) -> tuple[IntArray, IntArray]:
    """Return the positions of labelled rows and of the pool."""
    n_labelled = min(len(rows.y) // 2, MAX_LABELLED_ROWS)
    labelled, pool = train_test_split(
        np.arange(len(rows.y)), train_size=n_labelled, stratify=rows.y, random_state=split
    )
    return labelled, pool


def fit_case(rows: Rows, model: Any, kind: str, split: int) -> Case:
    """Fit a model to the folds of the labelled rows and to all of them."""
    labelled, pool = split_set(rows, split)
    X, y = rows.X[labelled], rows.y[labelled]
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=split)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # logistic regressions that have not converged
        proba = cross_val_predict(model, X, y, cv=folds, method="predict_proba")
        pool_proba = model.fit(X, y).predict_proba(rows.X[pool])
    features = StandardScaler().fit(X).transform(rows.X[pool])
    direction = PCA(1, random_state=0).fit(features).transform(features)[:, 0]
    cluster = KMeans(N_CLUSTERS, n_init=3, random_state=0).fit(features).labels_
    return Case(proba, y, pool_proba, rows.y[pool], direction, cluster, kind)


def open_case(task: Task) -> Case:
    """Return a case, fitted or from the cache."""
    if not task.path.exists():
        store_case(
            fit_case(load(task.set, data_folder()), ALL_MODELS[task.model](), kind_of(task.set), task.split), task
        )
    with np.load(task.path) as stored:
        arrays = {name: stored[name] for name in stored.files}
    return Case(**arrays, kind=kind_of(task.set))


def store_case(case: Case, task: Task) -> None:
    task.path.parent.mkdir(parents=True, exist_ok=True)
    (CACHE / ".gitignore").write_text("*\n")
    draft = task.path.with_name(f"{task.path.stem}.{os.getpid()}.part.npz")  # several processes may fill one cache
    np.savez(draft, **{name: value for name, value in vars(case).items() if name != "kind"})
    draft.rename(task.path)
