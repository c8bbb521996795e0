"""Stage one: predictions of every configuration out of fold and held out, and of long boosting round by round."""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..generalisation.data import FRESH, SETS, Split, split_of
from .configurations import CONFIGURATIONS, MODELS, ROUNDS, SETTINGS, make_lightgbm

__all__ = ["FOLDS", "KINDS", "NAMES", "Task", "compute", "read"]

FOLDS = 3
VALIDATION_SHARE = 0.25
MAX_HELD_OUT = 4_000  # held-out rows that are used, to bound time and disk
TOO_SMALL = ("breast_cancer", "iris", "wine", "penguins")  # fewer than 400 training rows
NAMES = tuple(name for name in (*SETS, *FRESH) if name not in TOO_SMALL)
KINDS = ("logistic", "lightgbm", "stopping")
Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True, order=True)
class Task:
    """One split of one set, and what is fitted to it: a search of one model, or long boosting."""

    split: int
    set: str
    kind: str

    def path(self, cache: Path) -> Path:
        return cache / "predictions" / self.set / f"{self.kind}-{self.split}.npz"


def compute(task: Task, cache: Path, folder: Path | None) -> None:
    """Fit the models of a task and store what they predict."""
    path = task.path(cache)
    if path.exists():
        return
    split = _with_fewer_held_out(split_of(task.set, task.split, folder))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        arrays = _boost(split, task.split) if task.kind == "stopping" else _search(split, task.kind, task.split)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.stem}.{os.getpid()}.part.npz")  # several commands may fill one cache
    np.savez(part, **arrays)  # type: ignore[arg-type]
    part.rename(path)


def read(task: Task, cache: Path) -> Arrays:
    """Return what :func:`compute` stored, with probabilities of double precision that sum to 1."""
    with np.load(task.path(cache)) as stored:
        return {name: _as_stored(stored[name]) for name in stored.files}


def _as_stored(array: NDArray[Any]) -> NDArray[Any]:
    if array.dtype != np.float32:
        return array.astype(np.intp)
    proba = array.astype(np.float64)
    return np.asarray(proba / proba.sum(axis=-1, keepdims=True))


def _with_fewer_held_out(split: Split) -> Split:
    """The held-out rows are in random order, so that the first of them are a sample."""
    return Split(split.X, split.y, split.X_test[:MAX_HELD_OUT], split.y_test[:MAX_HELD_OUT])


def _search(split: Split, model: str, seed: int) -> Arrays:
    """Out-of-fold probabilities of each configuration, and held-out ones of its refit on all training rows."""
    from sklearn.model_selection import StratifiedKFold

    folds = list(StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(split.X, split.y))
    settings = CONFIGURATIONS[model]
    fold = np.empty(len(split.y), dtype=np.int8)
    oof = np.empty((len(settings), len(split.y), split.y.max() + 1), dtype=np.float32)
    held_out = np.empty((len(settings), len(split.y_test), oof.shape[2]), dtype=np.float32)
    for number, setting in enumerate(settings):
        for part, (train, left_out) in enumerate(folds):
            fold[left_out] = part
            fitted = MODELS[model](**setting).fit(split.X[train], split.y[train])
            oof[number, left_out] = fitted.predict_proba(split.X[left_out])
        held_out[number] = MODELS[model](**setting).fit(split.X, split.y).predict_proba(split.X_test)
    return {"oof": oof, "fold": fold, "y": split.y, "held_out": held_out, "y_held_out": split.y_test}


def _boost(split: Split, seed: int) -> Arrays:
    """Probabilities of validation and held-out rows at every one of `ROUNDS`, of each of `SETTINGS`."""
    from sklearn.model_selection import train_test_split

    X, X_validation, y, y_validation = train_test_split(
        split.X, split.y, test_size=VALIDATION_SHARE, stratify=split.y, random_state=seed
    )
    validation, held_out = [], []
    for setting in SETTINGS.values():
        booster = make_lightgbm(n_estimators=ROUNDS[-1], **setting).fit(X, y).booster_
        validation.append(_by_round(booster, X_validation))
        held_out.append(_by_round(booster, split.X_test))
    return {
        "validation": np.stack(validation),
        "y": y_validation,
        "held_out": np.stack(held_out),
        "y_held_out": split.y_test,
    }


def _by_round(booster: Any, X: NDArray[np.float64]) -> NDArray[np.float32]:
    """Probabilities of shape (rounds, rows, classes): the raw scores of the trees between two rounds are added up."""
    starts = (0, *ROUNDS[:-1])
    steps = [
        booster.predict(X, start_iteration=start, num_iteration=stop - start, raw_score=True)
        for start, stop in zip(starts, ROUNDS, strict=True)
    ]
    return _probabilities(np.cumsum(steps, axis=0)).astype(np.float32)


def _probabilities(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    from scipy.special import expit, softmax

    if scores.ndim == 2:  # two classes: one score a row
        positive = expit(scores)
        return np.stack([1 - positive, positive], axis=-1)
    return np.asarray(softmax(scores, axis=-1))
