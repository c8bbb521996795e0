"""Arrays: every dtype, layout and mark of missing labels, hard numbers, extreme weights, and wrong arguments."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pytest

import metricwise as mw
import worlds
from fuzz import cases, checks, mangled_calls, optima
from fuzz.cases import LABELS, TARGETS
from fuzz.references import HUNTED
from fuzz.verdicts import Verdict, taken
from kernels.layouts import LAYOUTS
from laws.metric_records import RECORDS, make

MAX_SEED = 1 << 40  # of cases that are drawn by a seed of their own


# ------------------------------------------------------------------------------------------------- cases by seeds


@dataclass
class Seeded:
    """A check of a case that has a seed of its own, which is right unless it fails."""

    check: Callable[..., None]
    arguments: tuple
    refusable: bool = False

    def __str__(self):
        return f"{self.check.__name__}{self.arguments}"

    def judge(self):
        self.check(*self.arguments)
        return Verdict.RIGHT


def check_drawn(check, targets):
    """Return a check of the case that a target and a seed make."""

    @functools.wraps(check)
    def run(target, seed):
        case = cases.draw(target, seed)
        if check is not optima.check_thresholds or case.average != "instance":
            check(case)

    return run, targets


BY_TARGET = (
    check_drawn(checks.check_score, TARGETS),
    check_drawn(checks.check_solution, TARGETS),
    check_drawn(optima.check_thresholds, ("binary", "multilabel")),
)


def draw_seeded(rng):
    seed = int(rng.integers(MAX_SEED))
    choice = rng.choice(4, p=[0.5, 0.15, 0.25, 0.1])
    if choice == 3:
        return Seeded(optima.check_few_rows, (str(rng.choice(HUNTED)), seed))
    check, targets = BY_TARGET[choice]
    return Seeded(check, (str(rng.choice(targets)), seed))


# -------------------------------------------------------------------------------------------------- wrong arguments


@dataclass
class Mangled:
    """A call with one or two wrong arguments."""

    check: Callable[[dict], bool]
    arguments: dict
    names: list
    refusable: bool = True

    def __str__(self):
        return f"{self.check.__name__}: " + ", ".join(f"{name}={self.arguments[name]!r}" for name in self.names)

    def judge(self):
        return taken(self.check(self.arguments))


CALLS = (
    (mangled_calls.problem, mangled_calls.check_optimize),
    (mangled_calls.scored, mangled_calls.check_score),
    (mangled_calls.shown_to_a_rule, mangled_calls.check_predict),
)


def draw_mangled(rng):
    arguments, check = CALLS[rng.integers(len(CALLS))]
    return Mangled(check, *mangled_calls.mangle_some(arguments(rng), rng))


# ----------------------------------------------------------------------------------------------------- hard numbers


def rounded(eta, rng):
    eta = eta.round(rng.integers(0, 6))
    return np.where(eta.sum(axis=1, keepdims=True) > 0, eta, 1.0)


def saturated(eta, rng):
    return np.where(rng.random((len(eta), 1)) < 0.5, np.eye(eta.shape[1])[eta.argmax(axis=1)], eta)


def neighbouring(eta, rng):
    """Numbers that differ in their last bit."""
    base = np.broadcast_to(eta[:1], eta.shape).copy()
    return np.where(rng.random(eta.shape) < 0.5, np.nextafter(base, 1), base)


def tiny_numbers(eta, rng):
    return np.where(rng.random(eta.shape) < 0.3, rng.choice([5e-324, 1e-310, 1e-40, 1e-17], eta.shape), eta)


NUMBERS = (lambda eta, rng: eta, rounded, saturated, neighbouring, tiny_numbers)
# Rows of two columns that are closer need not be told apart by a threshold: neither column is what the other leaves.
MIN_DISTANCE = {"f2": 1e-2, "f4": 1e-6, "f8": 1e-9, "g": 1e-9, "O": 1e-9}
MIN_SHARE = (
    1e-12  # of the weight of all rows: a class of less counts as one without rows (metricwise.core.matrices.EMPTY)
)
DTYPES = ("f8", "f4", "f2", "g", "O")
HUGE = {"alike": (0, 0), "far apart": (-300, 300), "large": (290, 307), "small": (-320, -290), "whole": (0, 18)}


def draw_weight(rng, n):
    """Weights of any size, and whether they must be taken; None for no weights."""
    kind = str(rng.choice(["none", "wrong", "zeros", *HUGE]))
    if kind == "none":
        return None, kind
    if kind == "wrong":
        weight = rng.uniform(0.5, 2, n)
        weight[rng.integers(n)] = rng.choice([np.nan, np.inf, -np.inf, -1.0, -5e-324])
        return weight, kind
    weight = 10.0 ** rng.uniform(*HUGE[kind if kind in HUGE else "alike"], n)
    if kind == "whole":
        return weight.astype(rng.choice([np.int64, np.uint64])), kind
    if kind == "zeros":
        weight = (rng.random(n) < 0.5) * rng.integers(1, 3, n)
        weight[:2] = 1
        return weight.astype(rng.choice(["b1", "i1", "f2", "f4", "O"])), kind
    return weight, kind


@dataclass
class Hard:
    """Probabilities, labels and weights that are hard to compute with, in any dtype and layout."""

    metric: str
    eta: np.ndarray = field(repr=False)
    y: np.ndarray = field(repr=False)
    weight: np.ndarray | None = field(repr=False)
    weights: str = "none"
    dtype: str = "f8"
    layout: str = "C"
    summed: bool = True
    single: bool = False

    @property
    def refusable(self):
        """Where numbers are not finite, or do not sum to 1, or weights overflow or vanish beside others."""
        return self.weights not in ("none", "alike", "zeros", "whole") or not self.summed or self.dtype == "f2"

    def __str__(self):
        arrays = (
            f"eta={self.eta.tolist()}, y={self.y.tolist()}, weight={None if self.weight is None else list(self.weight)}"
        )
        column = "single column, " if self.single else ""
        return f"{self.metric}, {column}{self.weights} weights, {self.dtype}, {self.layout}, {arrays}"

    def judge(self):
        k = self.eta.shape[1]
        eta = self.eta[:, 1] if self.single else self.eta
        proba = (
            eta if self.dtype == "O" or (self.single and self.layout == "outputs first") else LAYOUTS[self.layout](eta)
        )
        options = {"classes": list(range(k)), "strategy": mw.Strategy(**LABELS)}
        solution = mw.optimize(proba, self.y, make(self.metric, k, c=1), sample_weight=self.weight, **options)
        predicted = solution.rule.predict(proba)
        assert np.isfinite([solution.value, solution.baseline]).all()
        if self.min_share < MIN_SHARE:
            return Verdict.RIGHT
        self.check_value(solution.value, predicted)
        self.check_value(solution.baseline, self.plain_argmax)
        if self.single or (k == 2 and self.min_distance > MIN_DISTANCE[self.dtype]):
            self.check_optimum(solution.value)
        return Verdict.RIGHT

    @property
    def plain_argmax(self):
        eta = self.eta.astype(float)
        return (eta[:, 1] > 0.5).astype(int) if self.single else eta.argmax(axis=1)

    @property
    def min_share(self):
        """Of the weight of all rows, the smallest that a true or predicted class, or a row, has."""
        weight = np.ones(1) if self.weight is None else self.scaled_weight
        return weight[weight > 0].min() / weight.sum()

    @property
    def min_distance(self):
        """Between two probabilities of a class."""
        return min(np.diff(np.unique(column), append=np.inf).min() for column in self.eta.astype(float).T)

    @property
    def scaled_weight(self):
        if self.weight is None:
            return None
        weight = self.weight.astype(float)
        return weight / weight.max()

    @property
    def value_tolerance(self):
        """The weight of rows that are not of a class is a difference of rounded numbers."""
        return max(1e-9, 4 * np.finfo(float).eps / self.min_share)

    def check_value(self, value, predicted):
        expected = RECORDS[self.metric].value(self.y, predicted, self.scaled_weight, k=self.eta.shape[1], c=1)
        near = pytest.approx(expected, abs=self.value_tolerance)
        assert value == near, f"value {value!r}, by scikit-learn {expected!r}"

    def check_optimum(self, value):
        problem = worlds.Tiny([self.eta.astype(float)], self.y[:, None], self.scaled_weight)
        metric = make(self.metric, 2, c=1)
        positive = problem.eta[0][:, 1]
        thresholds = np.concatenate([[-1.0], np.unique(positive)])[:, None]
        counts = worlds.tables(problem, (positive > thresholds).astype(int)[..., None])
        best = metric.value(counts / counts[0].sum()).max()
        assert value == pytest.approx(best, abs=self.value_tolerance), f"value {value!r}, of all thresholds {best!r}"


def draw_hard(rng):
    n, k = int(rng.integers(2, 30)), int(rng.choice([2, 2, 3, 4]))
    eta = worlds.normalized(rng.dirichlet(np.full(k, rng.choice([0.1, 1.0, 5.0])), n) + 1e-300)
    eta = NUMBERS[rng.integers(len(NUMBERS))](eta, rng)
    summed = bool(rng.random() < 0.9)
    eta = worlds.normalized(eta) if summed else eta
    dtype = str(rng.choice(DTYPES, p=[0.35, 0.35, 0.1, 0.1, 0.1]))
    y = rng.integers(0, k, n)
    y[:2] = 0, 1
    weight, weights = draw_weight(rng, n)
    names = [name for name in HUNTED if not RECORDS[name].sized]
    layout, single = str(rng.choice(list(LAYOUTS))), k == 2 and summed and bool(rng.integers(2))
    return Hard(str(rng.choice(names)), eta.astype(dtype), y, weight, weights, dtype, layout, summed, single)


# ------------------------------------------------------------------------------------------------------------- all

DRAWS = (draw_seeded, draw_mangled, draw_hard)
SHARES = (0.35, 0.35, 0.3)


def draw(rng):
    """Draw an input of arrays."""
    return DRAWS[rng.choice(len(DRAWS), p=SHARES)](rng)
