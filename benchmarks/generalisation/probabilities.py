"""Stage one: base models, their out-of-fold probabilities on the training rows and those on held-out rows.

This is what a user has: the rule is fitted to out-of-fold probabilities, and applied to those of a model refitted on
all training rows.
"""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .data import split_of

__all__ = ["MODELS", "Task", "compute", "read"]

FOLDS = 5


@dataclass(frozen=True, order=True)
class Task:
    """One set, one base model, one split."""

    split: int
    set: str
    model: str

    def path(self, cache: Path) -> Path:
        return cache / "probabilities" / self.set / f"{self.model}-{self.split}.npz"


def _logistic(**options: Any) -> Any:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=300, **options))


def _boosting() -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(max_iter=40, max_leaf_nodes=8, learning_rate=0.15, random_state=0)


MODELS = {
    "logistic": _logistic,
    "boosting": _boosting,
    "balanced": lambda: _logistic(class_weight="balanced"),  # miscalibrated on purpose
}


def compute(task: Task, cache: Path, folder: Path | None) -> None:
    """Fit one model to one split and store its probabilities."""
    path = task.path(cache)
    if path.exists():
        return
    from sklearn.model_selection import StratifiedKFold, cross_val_predict

    split = split_of(task.set, task.split, folder)
    model = MODELS[task.model]()
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=task.split)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        oof = cross_val_predict(model, split.X, split.y, cv=folds, method="predict_proba")
        test = model.fit(split.X, split.y).predict_proba(split.X_test)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.stem}.{os.getpid()}.part.npz")  # several commands may fill one cache
    np.savez(
        part, oof=oof, y=split.y.astype(np.int8), test=test.astype(np.float32), y_test=split.y_test.astype(np.int8)
    )
    part.rename(path)


def read(task: Task, cache: Path) -> dict[str, NDArray[Any]]:
    """Return what :func:`compute` stored."""
    with np.load(task.path(cache)) as stored:
        found = {name: stored[name] for name in stored.files}
    test = found["test"].astype(np.float64)
    return {
        "oof": found["oof"],
        "y": found["y"].astype(np.intp),
        "test": test / test.sum(axis=1, keepdims=True),
        "y_test": found["y_test"].astype(np.intp),
    }
