"""Labels that are words, with probabilities to match."""

import numpy as np


def draw(*classes, n=300, seed=0):
    """Probabilities, labels and noisy predictions of outputs with these classes."""
    rng = np.random.default_rng(seed)
    proba, true, noisy = [], [], []
    for labels in classes:
        labels = np.asarray(labels)
        eta = rng.dirichlet(np.full(len(labels), 0.7), n)
        codes = (rng.random((n, 1)) > eta.cumsum(axis=1)[:, :-1]).sum(axis=1)
        proba.append(eta)
        true.append(labels[codes])
        noisy.append(np.where(rng.random(n) < 0.4, labels[rng.integers(0, len(labels), n)], labels[codes]))
    return proba, np.stack(true, axis=1), np.stack(noisy, axis=1)


def words(p, seed=0):
    """Labels "fraud" with these probabilities, and both columns as scikit-learn has them."""
    y = np.where(np.random.default_rng(seed).random(len(p)) < p, "fraud", "ok")
    return np.stack([p, 1 - p], axis=1), y
