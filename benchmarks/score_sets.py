"""Real sets for benchmarks of scores: two classes, and ordered grades.

Some come with scikit-learn, the others are files in the folder given by METRICWISE_DATA. Large sets are cut to the same
3,000 rows in every run. Nothing is downloaded or stored.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from .generalisation.data import Rows, _features, _table, load

MAX_ROWS = 3_000
GRADES_OF_POINTS = [10, 12, 14, 16]  # of 20: fail, sufficient, satisfactory, good, excellent
DAMPING = 5.0  # ratings that a mean of MovieLens is shrunk by


def data_folder() -> Path | None:
    folder = os.environ.get("METRICWISE_DATA")
    return Path(folder) if folder else None


def cut_rows(rows: Rows) -> Rows:
    """Return at most `MAX_ROWS` rows, drawn at random with a fixed seed."""
    if len(rows.y) <= MAX_ROWS:
        return rows
    kept = np.sort(np.random.default_rng(0).choice(len(rows.y), MAX_ROWS, replace=False))
    return Rows(rows.X[kept], rows.y[kept])


# ---------------------------------------------------------------------------------------------------------------------
# grades


def diabetes() -> Rows:
    """Progression of diabetes a year later, in fifths."""
    from sklearn.datasets import load_diabetes

    X, progression = load_diabetes(return_X_y=True)
    return Rows(X, np.digitize(progression, np.quantile(progression, [0.2, 0.4, 0.6, 0.8])))


def students(subject: str) -> Rows:
    """Final grades at school in the five levels of the country; the two earlier grades are left out."""
    table = _table(data_folder(), f"student/student-{subject}.csv", sep=";")
    grades = np.digitize(np.asarray(table["G3"], dtype=float), GRADES_OF_POINTS)
    return Rows(_features(table.drop(columns=["G1", "G2", "G3"])), grades)


def movielens() -> Rows:
    """Ratings of 3,000 pairs of user and movie.

    Features are damped means and numbers of the *other* 97,000 ratings, age and gender of the user, and the genres.
    """
    folder = data_folder()
    ratings = _table(folder, "ml-100k/u.data", sep="\t", header=None, names=["user", "item", "rating", "time"])
    users = _table(folder, "ml-100k/u.user", sep="|", header=None, index_col=0)
    items = _table(folder, "ml-100k/u.item", sep="|", header=None, index_col=0, encoding="latin-1")
    kept = np.zeros(len(ratings), dtype=bool)
    kept[np.random.default_rng(0).choice(len(ratings), MAX_ROWS, replace=False)] = True
    rows, others = ratings[kept], ratings[~kept]
    person, genres = users.loc[rows["user"]], items.loc[rows["item"]].iloc[:, -19:]
    columns = [*_habits(rows, others, "user"), *_habits(rows, others, "item"), person[1], person[2] == "F"]
    X = np.column_stack([*(np.asarray(column, dtype=float) for column in columns), genres.to_numpy(dtype=float)])
    return Rows(X, rows["rating"].to_numpy(dtype=np.intp) - 1)


def _habits(rows: Any, others: Any, key: str) -> tuple[Any, Any]:
    """Return the damped mean and the logarithm of the number of other ratings, by user or by item."""
    centre = others["rating"].mean()
    groups = others.groupby(key)["rating"]
    number = groups.count()
    means = (groups.sum() + DAMPING * centre) / (number + DAMPING)
    return rows[key].map(means).fillna(centre), np.log1p(rows[key].map(number).fillna(0))


ORDINAL: dict[str, Callable[[], Rows]] = {
    "diabetes": diabetes,
    "students, Portuguese": lambda: students("por"),
    "students, mathematics": lambda: students("mat"),
    "MovieLens": movielens,
    "wiki4he": lambda: load("wiki4he", data_folder()),
    "car": lambda: load("car", data_folder()),
}


@cache
def ordinal_set(name: str) -> Rows:
    return cut_rows(ORDINAL[name]())


# ---------------------------------------------------------------------------------------------------------------------
# two classes


def one_vs_rest(read: Callable[[], Rows], *positive: int) -> Callable[[], Rows]:
    """Return a reader of the set in which some classes are 1 and the others 0."""

    def read_binary() -> Rows:
        rows = read()
        return Rows(rows.X, np.isin(rows.y, positive).astype(np.intp))

    return read_binary


def shared(name: str) -> Callable[[], Rows]:
    """Return a reader of a set of the study of generalisation."""
    return lambda: load(name, data_folder())


BINARY: dict[str, Callable[[], Rows]] = {
    "digits, an 8": one_vs_rest(shared("digits"), 8),
    "digits, a 3": one_vs_rest(shared("digits"), 3),
    "digits, a 1": one_vs_rest(shared("digits"), 1),
    "breast cancer, malignant": one_vs_rest(shared("breast_cancer"), 0),
    "wine, second cultivar": one_vs_rest(shared("wine"), 1),
    "phishing, suspicious": one_vs_rest(shared("phishing"), 1),
    "students fail, Portuguese": one_vs_rest(ORDINAL["students, Portuguese"], 0),
    "students fail, mathematics": one_vs_rest(ORDINAL["students, mathematics"], 0),
    "car, good or better": one_vs_rest(shared("car"), 2, 3),
    "nursery, very recommended": one_vs_rest(shared("nursery"), 1),
    "contraception, long-term": one_vs_rest(shared("cmc"), 1),
}


@cache
def binary_set(name: str) -> Rows:
    return cut_rows(BINARY[name]())
