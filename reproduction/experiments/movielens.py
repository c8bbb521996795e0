"""The MovieLens experiment: OrdRec against consistent OrdRec on held-out ratings.

943 users are samples, 1682 films are outputs of 5 classes, and unrated films are missing labels. Films without a
training label or with one class are included. Values are of the observed entries of the test half.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from metricwise import Strategy, optimize

from ..datasets import Ratings, load_movielens
from ..models import OrdRec
from ..protocol import Row, RunSettings, Task, task_rng
from ..reports.movielens import report

__all__ = ["MovieLensExperiment"]

FloatArray = NDArray[np.float64]

AVERAGES = ("micro", "macro")
TEN, MANY = 10, 20  # least test ratings of a film in two of the macro-averages
N_FACTORS = 20

# Factors, and the weight of their penalty; "strong" was chosen so that argmax has the paper's micro-average.
MODELS = {"bias": (0, 10.0), "ordrec": (N_FACTORS, 10.0), "strong": (N_FACTORS, 14.0)}


class MovieLensExperiment:
    """See the module."""

    name: ClassVar[str] = "movielens"
    keys: ClassVar[tuple[str, ...]] = ("repetition",)

    def tasks(self, settings: RunSettings) -> Sequence[Task]:
        return [(repetition,) for repetition in range(settings.repetitions or (1 if settings.quick else 30))]

    def order(self, tasks: Sequence[Task]) -> Sequence[Task]:
        return tasks

    def run(self, task: Task, settings: RunSettings) -> dict[str, float]:
        ratings = _load(settings)
        rng = task_rng("movielens", settings, *task)
        order = rng.permutation(len(ratings))
        train, test = np.sort(order[: len(order) // 2]), np.sort(order[len(order) // 2 :])
        seed = int(rng.integers(2**31))
        steps = 25 if settings.quick else 400
        out: dict[str, float] = {}
        for name, (n_factors, penalty) in MODELS.items():
            model = OrdRec(n_factors, factor_penalty=penalty, max_iter=steps, random_state=seed)
            out |= _evaluate(name, model, ratings, train, test)
        return out

    def report(self, rows: Sequence[Row], settings: RunSettings, folder: Path) -> dict[str, str]:
        return report(rows, folder)


@lru_cache(maxsize=1)
def _load(settings: RunSettings) -> Ratings:
    return load_movielens(settings.data, verify=not settings.made_up)


def _evaluate(
    name: str, model: OrdRec, ratings: Ratings, train: NDArray[np.intp], test: NDArray[np.intp]
) -> dict[str, float]:
    """Fit one model and return the values of argmax and of the consistent rules."""
    pairs = np.column_stack([ratings.user, ratings.item])
    model.fit(pairs[train], ratings.rating[train])
    proba = _cube(model.predict_proba(_all_pairs(ratings)), model.classes_, ratings)
    y_train, y_test = _matrix(ratings, train), _matrix(ratings, test)
    classes = [np.arange(1, ratings.n_stars + 1)] * ratings.n_items
    decisions = {"argmax": proba.argmax(axis=-1) + 1}
    for average in AVERAGES:
        decisions[average] = optimize(
            proba,
            y_train,
            "ordinal",
            average=average,
            classes=classes,
            strategy=Strategy(confusion="expected", recalibrate=False),
        ).rule.predict(proba)
    held_out = train[model.validation_]
    link = optimize(
        model.validation_proba_,
        ratings.rating[held_out],
        "ordinal",
        classes=model.classes_,
        strategy=Strategy(confusion="expected", recalibrate=True),
    )
    flat = proba[:, :, model.classes_ - 1].reshape(-1, len(model.classes_))
    decisions["link"] = link.rule.predict(flat).reshape(y_train.shape)
    return _values(name, decisions, y_test) | {f"{name}_loss": _log_loss(proba, y_test), f"{name}_steps": model.n_iter_}


def _all_pairs(ratings: Ratings) -> NDArray[np.intp]:
    grid = np.indices((ratings.n_users, ratings.n_items))
    return grid.reshape(2, -1).T


def _cube(proba: FloatArray, classes: NDArray[Any], ratings: Ratings) -> FloatArray:
    """Return probabilities of shape (users, items, stars)."""
    cube = np.zeros((ratings.n_users * ratings.n_items, ratings.n_stars))
    cube[:, classes - 1] = proba
    return cube.reshape(ratings.n_users, ratings.n_items, ratings.n_stars)


def _matrix(ratings: Ratings, rows: NDArray[np.intp]) -> FloatArray:
    """Return the ratings of some rows as a matrix of users and items; the others are missing."""
    matrix = np.full((ratings.n_users, ratings.n_items), np.nan)
    matrix[ratings.user[rows], ratings.item[rows]] = ratings.rating[rows]
    return matrix


def _values(name: str, decisions: dict[str, NDArray[Any]], y_test: FloatArray) -> dict[str, float]:
    """Return the values of each rule, with both averages and with others that "macro" may mean."""
    user, item = np.nonzero(~np.isnan(y_test))
    counts = np.bincount(item, minlength=y_test.shape[1])
    ten, many = counts[item] >= TEN, counts[item] >= MANY
    rated = np.mean(counts > 0)
    out: dict[str, float] = {}
    for rule, predicted in decisions.items():
        closeness = 1 - np.abs(predicted[user, item] - y_test[user, item]) / 4
        macro = _mean_of_means(closeness, item)
        out[f"{name}_{rule}_micro"] = float(closeness.mean())
        out[f"{name}_{rule}_macro"] = macro
        out[f"{name}_{rule}_ten"] = _mean_of_means(closeness[ten], item[ten])
        out[f"{name}_{rule}_many"] = _mean_of_means(closeness[many], item[many])
        out[f"{name}_{rule}_filled"] = float(rated * macro + (1 - rated))
        out[f"{name}_{rule}_sqrt"] = float(np.average(closeness, weights=counts[item] ** -0.5))
        out[f"{name}_{rule}_users"] = _mean_of_means(closeness, user)
    return out


def _mean_of_means(values: FloatArray, group: NDArray[np.intp]) -> float:
    """Return the macro-average of Ordinal, which is linear: the mean over groups of their means."""
    counts = np.bincount(group)
    seen = counts > 0
    return float(np.mean(np.bincount(group, values)[seen] / counts[seen])) if seen.any() else 0.0


def _log_loss(proba: FloatArray, y_test: FloatArray) -> float:
    user, item = np.nonzero(~np.isnan(y_test))
    chosen = proba[user, item, y_test[user, item].astype(np.intp) - 1]
    return float(-np.mean(np.log(np.maximum(chosen, 1e-12))))
