"""The classifiers of the UCI experiment, and the probabilities that they give for one split.

Owns base models, their small grids and the three ways in which probabilities are made: by the model of all training
rows, out of fold, and by a model of one half for the other half. Must not know metrics or rules.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["MODELS", "SplitProbabilities", "split_probabilities"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

MODELS = ("LogReg", "KNN", "RF", "DT")

_N_FOLDS = 5
_INNER_FOLDS = {"LogReg": 3, "KNN": 3, "RF": 2, "DT": 3}  # forests take most of the time
_GRIDS: dict[str, dict[str, list[Any]]] = {
    "LogReg": {"C": [0.03, 0.3, 3.0]},
    "KNN": {"weights": ["uniform", "distance"]},
    "RF": {"max_features": ["sqrt", 0.5]},
    "DT": {"min_samples_leaf": [1, 10]},
}


@dataclass(frozen=True, eq=False)
class SplitProbabilities:
    """What one model says about one split.

    Parameters
    ----------
    test : ndarray of shape (n_test, M, K)
        By the model of all training rows.
    out_of_fold : ndarray of shape (n_train, M, K)
        Each training row by a model that has not seen it.
    half_rows : integer ndarray
        The training rows that the rule of the half split is fitted on.
    half : ndarray of shape (len(half_rows), M, K)
        By the model of the other half.
    half_test : ndarray of shape (n_test, M, K)
        By the model of the other half.
    settings : dict
        The hyper-parameters chosen.
    """

    test: FloatArray
    out_of_fold: FloatArray
    half_rows: IntArray
    half: FloatArray
    half_test: FloatArray
    settings: dict[str, Any]


def split_probabilities(
    model: str, X: FloatArray, y: IntArray, train: IntArray, test: IntArray, n_classes: int, seed: int
) -> SplitProbabilities:
    """Fit one model in all ways that a split needs.

    Parameters
    ----------
    model : str
        One of `MODELS`.
    X : ndarray of shape (N, D)
    y : integer ndarray of shape (N, M)
        -1 is missing.
    train, test : integer ndarrays
        Rows.
    n_classes : int
    seed : int

    Returns
    -------
    SplitProbabilities
    """
    if model not in MODELS:
        raise ValueError(f"split_probabilities: model must be one of {list(MODELS)}, got {model!r}.")
    rng = np.random.default_rng(seed)
    X_train, y_train, X_test = X[train], y[train], X[test]
    settings = _tune(model, X_train, y_train, n_classes, rng)
    out_of_fold = np.empty((len(train), y.shape[1], n_classes))
    for rows, held_out in _folds(len(train), _N_FOLDS, rng):
        (out_of_fold[held_out],) = _fit_predict(
            model, settings, X_train[rows], y_train[rows], [X_train[held_out]], n_classes
        )
    order = rng.permutation(len(train))
    first, second = order[: len(order) // 2], np.sort(order[len(order) // 2 :])
    half, half_test = _fit_predict(
        model, settings, X_train[first], y_train[first], [X_train[second], X_test], n_classes
    )
    (full,) = _fit_predict(model, settings, X_train, y_train, [X_test], n_classes)
    return SplitProbabilities(full, out_of_fold, second, half, half_test, settings)


def _folds(n_rows: int, n_folds: int, rng: np.random.Generator) -> Iterator[tuple[IntArray, IntArray]]:
    fold = rng.permutation(np.arange(n_rows) % n_folds)
    for k in range(n_folds):
        yield np.flatnonzero(fold != k), np.flatnonzero(fold == k)


def _tune(model: str, X: FloatArray, y: IntArray, n_classes: int, rng: np.random.Generator) -> dict[str, Any]:
    """Choose hyper-parameters by the Brier score of an inner cross-validation: once, for all metrics and averages."""
    names, values = zip(*_GRIDS[model].items(), strict=True)
    grid = [dict(zip(names, each, strict=True)) for each in itertools.product(*values)]
    folds = list(_folds(len(X), _INNER_FOLDS[model], rng))
    scores = [
        np.mean(
            [
                _brier(_fit_predict(model, settings, X[rows], y[rows], [X[out]], n_classes)[0], y[out])
                for rows, out in folds
            ]
        )
        for settings in grid
    ]
    return grid[int(np.argmin(scores))]


def _brier(proba: FloatArray, y: IntArray) -> float:
    seen = y >= 0
    truth = np.eye(proba.shape[-1])[y[seen]]
    return float(np.mean((proba[seen] - truth) ** 2))


def _fit_predict(
    model: str, settings: dict[str, Any], X: FloatArray, y: IntArray, targets: list[FloatArray], n_classes: int
) -> list[FloatArray]:
    """Fit on some rows and return the probabilities (n, M, K) of each target."""
    scaled, *targets = _scale(X, targets) if model in ("LogReg", "KNN") else [X, *targets]
    together = model != "LogReg" and (y >= 0).all()
    if together:
        fitted = _make(model, settings).fit(scaled, y)
        found = [fitted.predict_proba(target) for target in targets]
        each = [(fitted.classes_[m], [proba[m] for proba in found]) for m in range(y.shape[1])]
    else:
        each = [_one_output(model, settings, scaled, y[:, m], targets) for m in range(y.shape[1])]
    out = [np.zeros((len(target), y.shape[1], n_classes)) for target in targets]
    for m, (classes, blocks) in enumerate(each):
        for full, block in zip(out, blocks, strict=True):
            full[:, m, classes] = block
    return out


def _one_output(
    model: str, settings: dict[str, Any], X: FloatArray, y: IntArray, targets: list[FloatArray]
) -> tuple[IntArray, list[FloatArray]]:
    seen = y >= 0
    fitted = _make(model, settings).fit(X[seen], y[seen])
    return fitted.classes_, [fitted.predict_proba(target) for target in targets]


def _scale(X: FloatArray, targets: list[FloatArray]) -> list[FloatArray]:
    mean, scale = X.mean(axis=0), X.std(axis=0)
    scale[scale == 0] = 1.0
    return [(part - mean) / scale for part in (X, *targets)]


def _make(model: str, settings: dict[str, Any]) -> Any:
    """Return an unfitted estimator."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.tree import DecisionTreeClassifier

    if model == "LogReg":
        return LogisticRegression(max_iter=500, tol=1e-3, **settings)
    if model == "KNN":
        return KNeighborsClassifier(n_neighbors=5, **settings)
    if model == "RF":
        return RandomForestClassifier(n_estimators=20, max_depth=3, random_state=0, **settings)
    return DecisionTreeClassifier(max_depth=3, random_state=0, **settings)
