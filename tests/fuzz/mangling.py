"""Arguments that are wrong in one way or another: what users hand over by mistake."""

import datetime as dt
import re

import numpy as np
import pandas as pd
import polars as pl
import scipy.sparse as sp

from metricwise import metrics, solvers
from metricwise.core.errors import Refusal


def assert_sentence(error):
    """One of our sentences: who, what, and an end; no NumPy scalars in it, no line breaks."""
    text = str(error)
    assert isinstance(error, Refusal), repr(error)
    assert isinstance(error, (ValueError, TypeError)), repr(error)
    assert re.match(r"^[A-Za-z_][A-Za-z_.]*(: | needs )\S", text), text
    assert "np." not in text, text
    assert "\n" not in text, text
    assert text.rstrip()[-1] in ".?", text


# Nothing that any argument can be; made anew each time, because generators are used up.
JUNK = (
    lambda rng: None,
    lambda rng: 3,
    lambda rng: -0.5,
    lambda rng: float("nan"),
    lambda rng: "abc",
    lambda rng: b"abc",
    lambda rng: {"a": 1},
    lambda rng: {1, 2},
    lambda rng: [],
    lambda rng: [[]],
    lambda rng: [[1], [1, 2]],
    lambda rng: [None, None],
    lambda rng: object(),
    lambda rng: (x for x in (0, 1)),
    lambda rng: np.array(1.0),
    lambda rng: np.zeros((2, 2, 2, 2)),
    lambda rng: np.array([True, False]),
    lambda rng: np.array([[1, 2], "a", None], dtype=object),
    lambda rng: np.array([1 + 2j, 3]),
    lambda rng: np.array(["2020-01-01", "2021-01-01"], dtype="datetime64[D]"),
    lambda rng: [dt.date(2020, 1, 1)] * 3,
    lambda rng: np.zeros(3, dtype=[("a", int), ("b", float)]),
    lambda rng: pd.DataFrame(),
    lambda rng: pd.DataFrame(np.eye(3), columns=["a", "a", "b"]),
    lambda rng: pl.DataFrame({"a": ["x", "y"]}),
    lambda rng: pd.Series([1, 2, None], dtype="Int64"),
    lambda rng: sp.csr_matrix(np.eye(3)),
    lambda rng: int,
    lambda rng: len,
    lambda rng: np.float32,
    lambda rng: 10**400,
)


def cell(value):
    """One entry is another."""

    def change(argument, rng):
        array = np.array(argument, dtype=object if isinstance(value, (str, list, type(None))) else float)
        place = np.zeros(array.shape, dtype=bool)
        place.flat[rng.integers(array.size)] = True
        array[place] = [value] if not isinstance(value, list) else _held(value)
        return array

    return change


def _held(value):
    """An array whose one entry is a list."""
    holder = np.empty(1, dtype=object)
    holder[0] = value
    return holder


# Changes to an array that was right.
CHANGES = (
    *(cell(value) for value in (np.nan, np.inf, -1.0, 2.0, 1e300, "x", None, [1, 2])),
    lambda a, rng: np.asarray(a)[:-1],
    lambda a, rng: np.concatenate([a, a]),
    lambda a, rng: np.asarray(a)[:0],
    lambda a, rng: np.asarray(a)[..., None],
    lambda a, rng: np.asarray(a)[None],
    lambda a, rng: np.asarray(a).T,
    lambda a, rng: np.asarray(a)[..., :1],
    lambda a, rng: np.asarray(a).ravel(),
    lambda a, rng: np.asarray(a).astype(str),
    lambda a, rng: np.asarray(a).astype(object),
    lambda a, rng: np.asarray(a).astype(complex),
    lambda a, rng: np.asarray(a).astype(bool),
    lambda a, rng: np.asarray(a) * 1e300,
    lambda a, rng: np.asarray(a) - 0.5,
    lambda a, rng: np.ma.masked_all(np.shape(a)),
    lambda a, rng: {"a": a},
    lambda a, rng: pd.DataFrame(np.atleast_2d(np.asarray(a).reshape(len(a), -1))).rename(columns=str),
    lambda a, rng: [a, a],
    lambda a, rng: [a, np.asarray(a)[:-1]],
)

# Words and objects that are something elsewhere.
WORDS = (
    "micro", "weighted", "f1", "roc_auc", "kapa", "", "auto", "path", "labels", "yes", True, 0, 1, -1, 0.5, 7, [],
    ["f1"], np.array([True, False]), metrics.FBeta, metrics.FBeta(pos_label="yes"), metrics.Linear(np.eye(5)),
    metrics.FBeta(index=7), metrics.Kappa("quadratic", order=["x", "y"]), lambda C: "a", lambda C: np.ones(2),
    lambda C: None, lambda: 1.0, lambda a, b: 1.0, solvers.Path, solvers.Path(), solvers.Sweep(),
)  # fmt: skip


def mangle(arguments, rng):
    """A copy of named arguments, one or two of which are wrong, and the names of those."""
    mangled, names = (
        dict(arguments),
        rng.choice(list(arguments), size=min(len(arguments), rng.integers(1, 3)), replace=False),
    )
    for name in names:
        mangled[name] = _mangled(mangled[name], rng)
    return mangled, list(names)


def _mangled(value, rng):
    kind = rng.random()
    if kind < 0.5 and isinstance(value, (np.ndarray, list)) and len(value):
        try:
            return CHANGES[rng.integers(len(CHANGES))](value, rng)
        except (ValueError, TypeError):  # a list of unequal arrays is no array
            return value[:-1]
    if kind < 0.75:
        return WORDS[rng.integers(len(WORDS))]
    return JUNK[rng.integers(len(JUNK))](rng)
