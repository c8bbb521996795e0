"""Rows with very many labels, of which the true probabilities are known.

The popularity of a label follows a shifted Zipf law. A row draws candidates by popularity; the logit of a candidate's
probability decreases with its rank among them and with the rarity of the label, with noise. Labels are drawn from these
probabilities. What is stored is not quite what they were drawn from: logits are stretched, every label has a bias of
its own, and probabilities below a limit are left out. Some positives are no candidates at all, so that nobody stores
them.

The constants were set so that 200,000 rows of 100,000 labels have the figures of earlier measurements of xcolumns: 53
entries a row, 70 % of the labels with at most 5 positives, and what its Frank-Wolfe and its weights for recall reach at
three labels a row (macro-F1 0.40, recall 0.50; micro-F1 without a budget 0.60). No method of ours was looked at.

Rows are drawn in blocks with seeds of their own: fresh rows are those of other blocks of the same world. Must not know
metrics or methods.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from scipy.special import expit

N_ROWS, N_LABELS = 200_000, 100_000
BLOCK_ROWS = 20_000

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


class Tables(NamedTuple):
    """The cumulative popularity and the label of each rank; the bias and the fall of the logit of each label."""

    cumulative: FloatArray
    labels: IntArray
    bias: FloatArray
    fall: FloatArray


@dataclass(frozen=True)
class World:
    """What all rows share.

    `shift` and `exponent` are those of Zipf's law, `n_draws` the candidates that a row draws with repetition, `height`
    and `fall` the logit of the first one and how fast logits fall with the logarithm of the rank, `noise` their
    standard deviation, `rarity` how fast they fall with the logarithm of the label's place by popularity. Stored logits
    are ``stretch * logit + bias`` with biases of deviation `bias`; those of probabilities below `floor` are not stored.
    `surprises` are the positives a row that are no candidates.
    """

    n_labels: int = N_LABELS
    exponent: float = 0.63
    shift: float = 30.0
    n_draws: int = 66
    height: float = 4.9
    fall: float = 1.65
    noise: float = 1.7
    rarity: float = 0.7
    stretch: float = 1.15
    bias: float = 0.3
    floor: float = 0.0004
    surprises: float = 0.3
    seed: int = 0

    def tables(self) -> Tables:
        """Return what is known of every label."""
        labels = np.random.default_rng([self.seed, 0]).permutation(self.n_labels)
        fall = np.empty(self.n_labels)
        fall[labels] = self.rarity * np.log1p(np.arange(self.n_labels) / self.shift)
        bias = np.random.default_rng([self.seed, 1]).normal(0, self.bias, self.n_labels)
        return Tables(self.popularity(), labels, bias, fall)

    def popularity(self) -> FloatArray:
        """Return the cumulative distribution of a draw over ranks."""
        weight = (np.arange(self.n_labels) + self.shift) ** -self.exponent
        return np.cumsum(weight / weight.sum())


def draw_rows(world: World, n_rows: int = N_ROWS, *, fresh: int = 0) -> tuple[csr_matrix, csr_matrix]:
    """Return stored probabilities (float32) and labels (int8) of rows; `fresh` numbers sets of rows of one world."""
    tables = world.tables()
    parts = []
    for block, start in enumerate(range(0, n_rows, BLOCK_ROWS)):
        rng = np.random.default_rng([world.seed, 2, fresh, block])
        parts.append(draw_block(world, tables, rng, min(BLOCK_ROWS, n_rows - start)))
    shape = (n_rows, world.n_labels)
    proba = assemble([part[0] for part in parts], [part[1] for part in parts], [part[2] for part in parts], shape)
    y = assemble([part[3] for part in parts], [part[4] for part in parts], None, shape)
    return proba, y


def draw_block(world: World, tables: Tables, rng: np.random.Generator, n_rows: int) -> tuple[NDArray[Any], ...]:
    """Return entries a row, labels and probabilities of what is stored, and positives a row and their labels."""
    drawn = tables.labels[draw_ranks(rng, tables.cumulative, (n_rows, world.n_draws))]
    row, label, rank = first_draws(drawn)
    logit = world.height - world.fall * np.log1p(rank) - tables.fall[label] + rng.normal(0, world.noise, len(rank))
    positive = rng.random(len(logit)) < expit(logit)
    stored = expit(world.stretch * logit + tables.bias[label])
    kept = stored >= world.floor
    surprises = rng.poisson(world.surprises, n_rows)
    unexpected = tables.labels[draw_ranks(rng, tables.cumulative, surprises.sum())]
    true_row = np.concatenate([row[positive], np.repeat(np.arange(n_rows), surprises)])
    true_key = np.unique(true_row * world.n_labels + np.concatenate([label[positive], unexpected]))
    return (
        np.bincount(row[kept], minlength=n_rows),
        label[kept].astype(np.int32),
        stored[kept].astype(np.float32),
        np.bincount(true_key // world.n_labels, minlength=n_rows),
        (true_key % world.n_labels).astype(np.int32),
    )


def draw_ranks(rng: np.random.Generator, cumulative: FloatArray, shape: int | tuple[int, int]) -> IntArray:
    return np.minimum(np.searchsorted(cumulative, rng.random(shape)), len(cumulative) - 1)


def first_draws(drawn: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Return row, label and rank of what each row has drawn first, ordered by row and label."""
    order = np.argsort(drawn, axis=1, kind="stable")
    ordered = np.take_along_axis(drawn, order, axis=1)
    first = np.ones(drawn.shape, dtype=bool)
    first[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    row, column = np.nonzero(first)
    return row, ordered[row, column], order[row, column]


def assemble(
    sizes: list[NDArray[Any]], labels: list[NDArray[Any]], values: list[NDArray[Any]] | None, shape: tuple[int, int]
) -> csr_matrix:
    """Return a matrix of entries that are ordered by row and label; without values all of them are 1."""
    indptr = np.concatenate([[0], np.cumsum(np.concatenate(sizes))])
    indices = np.concatenate(labels)
    data = np.ones(len(indices), dtype=np.int8) if values is None else np.concatenate(values)
    dtype = np.int32 if indptr[-1] <= np.iinfo(np.int32).max else np.int64
    return csr_matrix((data, indices.astype(dtype), indptr.astype(dtype)), shape=shape)
