"""Problems that are small enough to be solved by looking at everything, as hypothesis or a generator draws them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from hypothesis import strategies as st

from worlds.rows import stepped


@dataclass
class Tiny:
    """A problem small enough to be solved by looking at everything.

    eta : list of M float arrays (N, K_m) whose rows sum to 1 exactly as decimals; y : int array (N, M), -1 for missing;
    weight : float array (N,) or None.
    """

    eta: list
    y: np.ndarray
    weight: np.ndarray | None = None
    output_weight: list | None = field(default=None)

    @property
    def n_rows(self):
        return len(self.y)

    @property
    def n_outputs(self):
        return self.y.shape[1]

    @property
    def sizes(self):
        return [part.shape[1] for part in self.eta]

    @property
    def row_weight(self):
        return np.ones(self.n_rows) if self.weight is None else self.weight

    @property
    def shows_every_class(self):
        seen = self.y[self.row_weight > 0]
        return all(set(range(k)) <= set(seen[:, m]) for m, k in enumerate(self.sizes))

    @property
    def proba(self):
        """What a user would pass."""
        return self.eta[0] if self.n_outputs == 1 else list(self.eta)

    @property
    def labels(self):
        y = self.y.astype(float)
        y[self.y < 0] = np.nan
        return y[:, 0] if self.n_outputs == 1 else y

    @property
    def classes(self):
        names = [list(range(k)) for k in self.sizes]
        return names[0] if self.n_outputs == 1 else names

    def arguments(self):
        return {"sample_weight": self.weight, "classes": self.classes, "output_weight": self.output_weight}


def simplex(draw, n, k, steps):
    """Rows of k multiples of 1 / steps that sum to 1: few steps make many ties."""
    rows = []
    for _ in range(n):
        cuts = sorted(draw(st.lists(st.integers(0, steps), min_size=k - 1, max_size=k - 1)))
        rows.append([b - a for a, b in zip([0, *cuts], [*cuts, steps], strict=True)])
    return np.array(rows, dtype=float) / steps


@st.composite
def tiny(draw, max_rows=12, max_classes=4, max_outputs=3, *, same_size=False, missing=True, weights=True, steps=None):
    """Problems of few rows with ties, weights and missing labels; every output has at least two classes in y."""
    n = draw(st.integers(3, max_rows))
    m = draw(st.integers(1, max_outputs))
    sizes = (
        [draw(st.integers(2, max_classes))] * m
        if same_size
        else draw(st.lists(st.integers(2, max_classes), min_size=m, max_size=m))
    )
    grain = steps or draw(st.sampled_from([4, 10, 100, 128]))
    eta = [simplex(draw, n, k, grain) for k in sizes]
    y = np.array([[draw(st.integers(0, k - 1)) for k in sizes] for _ in range(n)])
    if missing and draw(st.booleans()):
        for row in range(n):
            for output in range(m):
                if draw(st.integers(0, 4)) == 0:
                    y[row, output] = -1
    y[0], y[1] = 0, 1
    weight = None
    if weights and draw(st.booleans()):
        weight = np.array(draw(st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.0, 3.0]), min_size=n, max_size=n)))
        weight[:2] = np.maximum(weight[:2], 0.5)
    return Tiny(eta, y, weight)


def random_tiny(rng, *, max_rows=12, max_classes=4, max_outputs=3):
    """The same from a random generator: less simple than what hypothesis likes to draw."""
    n, m = int(rng.integers(3, max_rows + 1)), int(rng.integers(1, max_outputs + 1))
    sizes = rng.integers(2, max_classes + 1, size=m)
    steps = int(rng.choice([10, 100, 128]))
    eta = [stepped(n, k, steps, rng) for k in sizes]
    y = np.column_stack([rng.integers(0, k, size=n) for k in sizes])
    if rng.random() < 0.5:
        y[rng.random(y.shape) < 0.2] = -1
    y[0], y[1] = 0, 1
    weight = rng.integers(0, 7, size=n) / 2 if rng.random() < 0.5 else None
    if weight is not None:
        weight[:2] += 0.5
    return Tiny(eta, y, weight)


@st.composite
def small_proba(draw, n_classes=None, n_outputs=1, max_rows=10):
    """Probabilities (N, M, K) of at least three rows: sharp, even or flat, and in half of the examples with ties."""
    k = n_classes or draw(st.integers(2, 4))
    n = draw(st.integers(3, max_rows))
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    eta = rng.dirichlet(np.full(k, draw(st.sampled_from([0.3, 1.0, 3.0]))), (n, n_outputs))
    if draw(st.booleans()):  # ties
        eta = np.round(5 * eta) + 0.2
    return eta / eta.sum(axis=2, keepdims=True)
