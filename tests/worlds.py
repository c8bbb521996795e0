"""Shared vocabulary of the tests: random problems, and answers found by looking at everything.

Nothing here imports what it is used to check: metrics are functions of counts, rules are loops over rows.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from hypothesis import strategies as st

# --------------------------------------------------------------------------------------------------- problems


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
    eta = [rng.multinomial(steps, rng.dirichlet(np.ones(k)), size=n) / steps for k in sizes]
    y = np.column_stack([rng.integers(0, k, size=n) for k in sizes])
    if rng.random() < 0.5:
        y[rng.random(y.shape) < 0.2] = -1
    y[0], y[1] = 0, 1
    weight = rng.integers(0, 7, size=n) / 2 if rng.random() < 0.5 else None
    if weight is not None:
        weight[:2] += 0.5
    return Tiny(eta, y, weight)


# -------------------------------------------------------------------------------------------- counting, row by row


def confusion(y, predicted, weight, k):
    """K x K sums of weights of one output; a negative label counts nothing."""
    C = [[0.0] * k for _ in range(k)]
    for true, guess, w in zip(y, predicted, weight, strict=True):
        if true >= 0:
            C[int(true)][int(guess)] += float(w)
    return C


def expected(eta, y, predicted, weight, k):
    """The same with probabilities in place of labels, where a label is observed."""
    C = [[0.0] * k for _ in range(k)]
    for p, true, guess, w in zip(eta, y, predicted, weight, strict=True):
        if true >= 0:
            for i, share in enumerate(p):
                C[i][int(guess)] += float(w) * float(share)
    return C


def add(matrices, k):
    """The sum of matrices of several sizes, in one of k classes."""
    return sum(np.pad(C, (0, k - len(C))) for C in matrices)


def averaged(metric, matrices, sizes, average):
    """The metric, a function of counts, of M matrices of sums of weights, micro or macro."""
    if average == "micro":
        return metric(add(matrices, max(sizes)))
    return np.mean([metric(C) for C in matrices if C.sum() > 0])


# ------------------------------------------------------------------------------------- counting, many decisions at once


def tables(problem, decisions, count="labels"):
    """Sums of weights (R, K, K), pooled over outputs, of R ways to decide all rows: an array (R, N, M)."""
    k = max(problem.sizes)
    total = 0.0
    for m, eta in enumerate(problem.eta):
        y = problem.y[:, m]
        true = np.eye(k)[y] if count == "labels" else np.pad(eta, ((0, 0), (0, k - eta.shape[1])))
        mass = true * (problem.row_weight * (y >= 0))[:, None]
        total = total + np.einsum("ni,rnj->rij", mass, np.eye(k)[decisions[:, :, m]])
    return total


def every_rule(problem):
    """All ways to decide, (R, N, M); all outputs have one number of classes."""
    (k,) = set(problem.sizes)
    shape = (problem.n_rows, problem.n_outputs)
    return np.array(list(itertools.product(range(k), repeat=shape[0] * shape[1]))).reshape(-1, *shape)


def blocks(problem, average):
    """What has a loss of its own: the problem under micro, each of its outputs under macro."""
    if average == "micro":
        return [problem]
    return [Tiny([eta], problem.y[:, [m]], problem.weight) for m, eta in enumerate(problem.eta)]


def value(problem, predicted, metric, average="micro", *, count="labels"):
    """The metric, a function of counts, of decisions (N, M)."""
    decisions = np.asarray(predicted)[None]
    parts = [tables(one, decisions[..., [m]], count)[0] for m, one in enumerate(blocks(problem, "macro"))]
    return averaged(metric, parts, problem.sizes, average)


# --------------------------------------------------------------------------- the family g B - A, in exact arithmetic


def whole(eta):
    """Probabilities as integers, up to a common factor: they are multiples of 1 / 3200, so that ties are ties."""
    return [[round(float(v) * 3200) for v in row] for row in eta]


def lines(row, A, B):
    """Score of class j at g, constant_j + g * slope_j, up to a common factor; classes beyond the row are left out."""
    k = len(row)
    return [(-sum(A[i][j] * row[i] for i in range(k)), sum(B[i][j] * row[i] for i in range(k))) for j in range(k)]


def crossings(all_lines):
    points = set()
    for row in all_lines:
        for (a, s), (b, t) in itertools.combinations(row, 2):
            if s != t:
                points.add(Fraction(b - a, s - t))
    return sorted(points)


def between(points):
    """A point inside every interval that the points cut the line into, both ends included."""
    if not points:
        return [Fraction(0)]
    inner = [(a + b) / 2 for a, b in itertools.pairwise(points)]
    return [points[0] - 1, *inner, points[-1] + 1]


def decide(row, g):
    above, below = g.numerator, g.denominator
    scores = [constant * below + above * slope for constant, slope in row]
    return scores.index(min(scores))


def families(problem, ratio, average):
    """For each block, its rows' lines under ``g B - A``, and whether some row ties at every g; see `undecidable`.

    ratio : callable from counts (K, K) to A and B, exact numbers up to a common factor.
    """
    for block in blocks(problem, average):
        A, B = ratio(tables(block, np.zeros_like(block.y)[None])[0])
        columns = list(zip(zip(*A, strict=True), zip(*B, strict=True), strict=True))
        rows = [[lines(row, A, B) for row in whole(eta)] for eta in block.eta]
        ties = any(
            row[i] == row[j] and columns[i] != columns[j]
            for output in rows
            for row in output
            for i, j in itertools.combinations(range(len(row)), 2)
        )
        yield block, rows, ties


def undecidable(problem, ratio, average):
    """Whether two classes that the metric tells apart have one line in some row: a tie at every g.

    Rounding breaks it one way or the other: the exact family is then an idealisation of what floats can express.
    """
    return any(ties for _, _, ties in families(problem, ratio, average))


def best_of_family(problem, ratio, largest, average):
    """The largest value over all g of the rules of g B - A, a shared g for micro and one per output for macro.

    largest : callable from counts (R, K, K) to the largest value of the metric.
    """
    best = []
    for block, rows, _ in families(problem, ratio, average):
        levels = between(crossings([row for output in rows for row in output]))
        decisions = [[[decide(row, g) for row in output] for output in rows] for g in levels]
        best.append(largest(tables(block, np.swapaxes(decisions, 1, 2))))
    return np.mean(best)


def best_threshold(problem, largest, average, *, count="labels"):
    """The largest value over all thresholds on the probability of class 1, shared for micro, one each for macro."""
    best = []
    for block in blocks(problem, average):
        positive = np.stack([eta[:, 1] for eta in block.eta], axis=1)
        seen = np.unique(positive)
        thresholds = np.array([-1.0, *(seen[1:] + seen[:-1]) / 2, 2.0])
        best.append(largest(tables(block, (positive > thresholds[:, None, None]).astype(int), count)))
    return np.mean(best)
