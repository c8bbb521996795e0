"""The classifiers of the UCI experiments, and their probabilities for one split.

Base models, tuned on small grids (ours) or with defaults (the paper's), and three kinds of probabilities: of the model
of all training rows, out-of-fold, and of a model of one half for the other half. Must not know metrics or rules.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["MODELS", "SplitProbabilities", "halves", "plain_probabilities", "split_probabilities"]

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
    """The probabilities of one model for one split.

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
    """

    test: FloatArray
    out_of_fold: FloatArray
    half_rows: IntArray
    half: FloatArray
    half_test: FloatArray


def split_probabilities(
    model: str, X: FloatArray, y: IntArray, train: IntArray, test: IntArray, n_classes: int, seed: int
) -> SplitProbabilities:
    """Fit one model in all ways that a split needs, with hyper-parameters chosen on the training rows.

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
    _check_model(model, "split_probabilities")
    rng = np.random.default_rng(seed)
    settings = _tune(model, X[train], y[train], n_classes, rng)

    def fit(X: FloatArray, y: IntArray, targets: list[FloatArray]) -> list[FloatArray]:
        return _fit_predict(model, settings, X, y, targets, n_classes)

    return _all_ways(fit, X[train], y[train], X[test], n_classes, rng)


def plain_probabilities(
    model: str, X: FloatArray, y: IntArray, train: IntArray, test: IntArray, n_classes: int, seed: int
) -> SplitProbabilities:
    """Fit one model in all ways that a split needs, as scikit-learn has it: features not scaled, nothing tuned.

    Logistic regression (one for each label, by Newton's method: features that are not scaled need thousands of steps
    otherwise), 5 nearest neighbours, forests of 10 trees of depth 3, and trees of depth 3.

    Parameters
    ----------
    model, X, y, train, test, n_classes, seed
        As in :func:`split_probabilities`; y has no missing labels.

    Returns
    -------
    SplitProbabilities
    """
    _check_model(model, "plain_probabilities")

    def fit(X: FloatArray, y: IntArray, targets: list[FloatArray]) -> list[FloatArray]:
        return _class_probabilities(lambda: _plain(model, seed), X, y, targets, n_classes, model != "LogReg")

    return _all_ways(fit, X[train], y[train], X[test], n_classes, np.random.default_rng(seed))


def halves(n_rows: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Split rows at random into S1 for the model and S2 for the rule; an odd row goes to S1, as in the paper.

    Examples
    --------
    >>> import numpy as np
    >>> from reproduction.experiments.uci_models import halves
    >>> [len(half) for half in halves(7, np.random.default_rng(0))]
    [4, 3]
    """
    order = rng.permutation(n_rows)
    middle = (n_rows + 1) // 2
    return order[:middle], order[middle:]


def _check_model(model: str, who: str) -> None:
    if model not in MODELS:
        raise ValueError(f"{who}: model must be one of {list(MODELS)}, got {model!r}.")


def _all_ways(
    fit: Callable[[FloatArray, IntArray, list[FloatArray]], list[FloatArray]],
    X: FloatArray,
    y: IntArray,
    X_test: FloatArray,
    n_classes: int,
    rng: np.random.Generator,
) -> SplitProbabilities:
    out_of_fold = np.empty((*y.shape, n_classes))
    for rows, held_out in _folds(len(X), _N_FOLDS, rng):
        (out_of_fold[held_out],) = fit(X[rows], y[rows], [X[held_out]])
    first, second = halves(len(X), rng)
    half, half_test = fit(X[first], y[first], [X[second], X_test])
    (full,) = fit(X, y, [X_test])
    return SplitProbabilities(full, out_of_fold, second, half, half_test)


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
    """Fit a tuned model on some rows and return the probabilities (n, M, K) of each target."""
    scaled, *targets = _scale(X, targets) if model in ("LogReg", "KNN") else [X, *targets]
    together = model != "LogReg" and bool((y >= 0).all())
    return _class_probabilities(lambda: _make(model, settings), scaled, y, targets, n_classes, together)


def _class_probabilities(
    make: Callable[[], Any],
    X: FloatArray,
    y: IntArray,
    targets: list[FloatArray],
    n_classes: int,
    together: bool,
) -> list[FloatArray]:
    """Fit one model of all labels together, or one for each, and return the probabilities (n, M, K) of each target."""
    if together:
        fitted = make().fit(X, y)
        found = [fitted.predict_proba(target) for target in targets]
        each = [(fitted.classes_[m], [proba[m] for proba in found]) for m in range(y.shape[1])]
    else:
        each = [_one_output(make(), X, y[:, m], targets) for m in range(y.shape[1])]
    out = [np.zeros((len(target), y.shape[1], n_classes)) for target in targets]
    for m, (classes, blocks) in enumerate(each):
        for full, block in zip(out, blocks, strict=True):
            full[:, m, classes] = block
    return out


def _one_output(model: Any, X: FloatArray, y: IntArray, targets: list[FloatArray]) -> tuple[IntArray, list[FloatArray]]:
    seen = y >= 0
    fitted = model.fit(X[seen], y[seen])
    return fitted.classes_, [fitted.predict_proba(target) for target in targets]


def _scale(X: FloatArray, targets: list[FloatArray]) -> list[FloatArray]:
    mean, scale = X.mean(axis=0), X.std(axis=0)
    scale[scale == 0] = 1.0
    return [(part - mean) / scale for part in (X, *targets)]


def _make(model: str, settings: dict[str, Any]) -> Any:
    """Return an unfitted estimator with our settings."""
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


def _plain(model: str, seed: int) -> Any:
    """Return an unfitted estimator with scikit-learn's defaults, except for the paper's settings."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.tree import DecisionTreeClassifier

    if model == "LogReg":
        return LogisticRegression(solver="newton-cholesky")
    if model == "KNN":
        return KNeighborsClassifier(n_neighbors=5)
    if model == "RF":
        return RandomForestClassifier(n_estimators=10, max_depth=3, random_state=seed)
    return DecisionTreeClassifier(max_depth=3, random_state=seed)
