"""Synthetic problems for the benchmark of intervals: dependent rows, and their population.

A problem draws samples (the arguments of `optimize` and `evaluate`) and has one large population of independent rows
with known class probabilities. Evaluation must be independent: nothing of metricwise is imported.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from metricwise import Frequencies, InTime

from .promise_worlds import Draw, binary, drawn, softmax, three

POPULATION_ROWS = 200_000
CHECK_COST = 5.0


@dataclass(frozen=True)
class Sample:
    """The arguments of metricwise: probabilities, labels, and options such as groups or weights."""

    proba: np.ndarray
    y: np.ndarray
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Population:
    """Independent rows: the probabilities of the model, the true ones (N, K), and costs per row (N, K, K) or None."""

    proba: np.ndarray
    truth: np.ndarray
    cost: np.ndarray | None = None


@dataclass(frozen=True)
class World:
    """A synthetic problem: draws samples of any size, and has the population that they are drawn from."""

    name: str
    draw: Callable[[np.random.Generator, int], Sample]
    population: Callable[[np.random.Generator], Population]


def independent(world: Callable[[np.random.Generator, int], Draw]) -> World:
    """Independent rows."""

    def draw(rng: np.random.Generator, n_rows: int) -> Sample:
        rows = world(rng, n_rows)
        return Sample(rows.given, rows.y)

    return World(f"independent, {world.__name__}", draw, population_of(world))


def population_of(world: Callable[[np.random.Generator, int], Draw]) -> Callable[[np.random.Generator], Population]:
    def population(rng: np.random.Generator) -> Population:
        rows = world(rng, POPULATION_ROWS)
        return Population(rows.given, rows.truth)

    return population


def copied(n_copies: int) -> World:
    """Independent rows, each of them repeated."""

    def draw(rng: np.random.Generator, n_rows: int) -> Sample:
        rows = binary(rng, n_rows // n_copies)
        return Sample(np.tile(rows.given, n_copies), np.tile(rows.y, n_copies))

    return World(f"every row {n_copies} times", draw, population_of(binary))


def rounded(rng: np.random.Generator, n_rows: int) -> Draw:
    """Independent rows whose probabilities have two decimals."""
    rows = binary(rng, n_rows)
    return Draw(rows.given.round(2), rows.y, rows.truth)


def frequency_table() -> World:
    """Independent rows with probabilities of two decimals, counted in a table of probability and label."""

    def draw(rng: np.random.Generator, n_rows: int) -> Sample:
        rows = rounded(rng, n_rows)
        cells, counts = np.unique(np.stack([rows.given, rows.y], axis=1), axis=0, return_counts=True)
        return Sample(cells[:, 0], cells[:, 1].astype(int), {"sample_weight": Frequencies(counts)})

    return World("frequency table", draw, population_of(rounded))


def mixed(rng: np.random.Generator, visible: np.ndarray, hidden: np.ndarray) -> Draw:
    """Rows of one visible and one hidden standard normal cause: the model uses only the first."""
    score, rest = np.zeros((len(visible), 2)), np.zeros((len(visible), 2))
    score[:, 1] = -1.5 + 2.2 * visible
    rest[:, 1] = hidden
    rows = drawn(rng, score + rest, 1.0, 0.0)
    return Draw(softmax(0.6 * score + np.array([0.0, 0.8]))[:, 1], rows.y, rows.truth)


def unrelated(rng: np.random.Generator, n_rows: int) -> Draw:
    """The population of the problems with dependent rows."""
    return mixed(rng, *rng.normal(size=(2, n_rows)))


def grouped(size: int) -> World:
    """Groups of rows that share half of the visible cause, and the hidden one."""

    def draw(rng: np.random.Generator, n_rows: int) -> Sample:
        groups = np.repeat(np.arange(n_rows // size), size)
        shared, hidden = rng.normal(size=(2, n_rows // size))[:, groups]
        rows = mixed(rng, np.sqrt(0.5) * (shared + rng.normal(size=n_rows)), hidden)
        return Sample(rows.given, rows.y, {"groups": groups})

    return World(f"groups of {size} rows", draw, population_of(unrelated))


def autoregressive(rho: float) -> World:
    """Time series: both causes are autoregressive."""

    def draw(rng: np.random.Generator, n_rows: int) -> Sample:
        rows = mixed(rng, walk(rng, n_rows, rho), walk(rng, n_rows, rho))
        return Sample(rows.given, rows.y, {"groups": InTime(np.arange(n_rows))})

    return World(f"in time, AR(1) of {rho}", draw, population_of(unrelated))


def walk(rng: np.random.Generator, n_rows: int, rho: float) -> np.ndarray:
    """A stationary autoregressive series of unit variance."""
    from scipy.signal import lfilter

    noise = rng.normal(size=n_rows) * np.sqrt(1 - rho**2)
    noise[0] = rng.normal()
    return np.asarray(lfilter([1.0], [1.0, -rho], noise))


def fraud(rng: np.random.Generator, n_rows: int, amounts: np.ndarray) -> tuple[Draw, np.ndarray]:
    """One row in ten is a fraud; missing it costs its amount, checking has a constant cost."""
    score = np.zeros((n_rows, 2))
    score[:, 1] = -3.5 + 2.2 * rng.normal(size=n_rows)
    cost = np.zeros((n_rows, 2, 2))
    cost[:, 1, 0], cost[:, :, 1] = amounts, CHECK_COST
    return drawn(rng, score, 0.6, [0.0, 0.8]), cost


def lognormal_costs(sigma: float) -> World:
    """Costs per row whose amounts have a long tail."""

    def draw(rng: np.random.Generator, n_rows: int) -> Sample:
        rows, cost = fraud(rng, n_rows, np.exp(2.0 + sigma * rng.normal(size=n_rows)))
        return Sample(rows.given, rows.y, {"cost": cost})

    def population(rng: np.random.Generator) -> Population:
        from scipy.special import ndtri

        # One amount from every of as many strata: their mean hardly varies, whatever the tail.
        places = (np.arange(POPULATION_ROWS) + rng.random(POPULATION_ROWS)) / POPULATION_ROWS
        rows, cost = fraud(rng, POPULATION_ROWS, np.exp(2.0 + sigma * ndtri(rng.permutation(places))))
        return Population(rows.given, rows.truth, cost)

    return World(f"costs per row, lognormal, sigma {sigma:g}", draw, population)


BINARY, THREE = independent(binary), independent(three)
