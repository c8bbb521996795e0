"""Rows of many labels, of which each stores few: sparse probabilities, and labels drawn from them."""

from __future__ import annotations

from itertools import chain, combinations, product
from typing import Any

import numpy as np
from scipy import sparse

__all__ = ["all_label_sets", "dense_counts", "label_world", "tiny_labels"]


def label_world(
    n_rows: int, n_labels: int, *, stored: int = 8, seed: int = 0, missed: float = 0.0, dtype: Any = np.float32
) -> tuple[sparse.csr_array, sparse.csr_array]:
    """Return probabilities (CSR) of labels of very different frequency, and labels drawn from them.

    `missed` is the mean number of true labels of a row that are not stored.
    """
    rng = np.random.default_rng(seed)
    frequency = 1.0 / np.arange(1, n_labels + 1) ** 0.7
    indptr, indices, values = [0], [], []
    for _ in range(n_rows):
        labels = np.sort(rng.choice(n_labels, min(stored, n_labels), replace=False, p=frequency / frequency.sum()))
        indices.append(labels)
        values.append(rng.beta(0.5, 2.0, len(labels)))
        indptr.append(indptr[-1] + len(labels))
    p = np.concatenate(values).astype(dtype)
    proba = sparse.csr_array((p, np.concatenate(indices).astype(np.int32), np.array(indptr)), shape=(n_rows, n_labels))
    true = proba.copy()
    true.data = (rng.random(proba.nnz) < p).astype(np.int8)
    true.eliminate_zeros()
    if missed:
        dense = true.toarray()
        for i in range(n_rows):
            others = np.setdiff1d(np.arange(n_labels), proba.indices[proba.indptr[i] : proba.indptr[i + 1]])
            n_missed = min(rng.poisson(missed), len(others))
            dense[i, rng.choice(others, n_missed, replace=False)] = 1
        true = sparse.csr_array(dense)
    return proba, true


def tiny_labels(rng: np.random.Generator, n_rows: int, n_labels: int) -> np.ndarray:
    """Return probabilities (N, M) of few rows, some of them 0."""
    return np.where(rng.random((n_rows, n_labels)) < 0.25, 0.0, rng.beta(0.7, 1.2, (n_rows, n_labels)))


def all_label_sets(n_labels: int, low: int, high: int) -> list[np.ndarray]:
    """Return the indicator of every set of `low` to `high` of M labels."""
    sizes = range(low, min(high, n_labels) + 1)
    chosen = chain.from_iterable(combinations(range(n_labels), size) for size in sizes)
    return [np.isin(np.arange(n_labels), labels).astype(float) for labels in chosen]


def all_decisions(n_rows: int, n_labels: int, low: int, high: int) -> Any:
    """Yield every matrix (N, M) of decisions within a budget."""
    for rows in product(all_label_sets(n_labels, low, high), repeat=n_rows):
        yield np.stack(rows)


def dense_counts(true: np.ndarray, decided: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return hits, predictions and true rows of each label; `true` may be probabilities."""
    return (true * decided).sum(axis=0), decided.sum(axis=0), true.sum(axis=0)
