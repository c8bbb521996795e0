"""Shared vocabulary of the tests: random problems, and answers found by brute force in plain Python.

Nothing here imports what it is used to check: metrics are functions of counts, rules are loops over rows.
"""

from __future__ import annotations

import itertools
import math
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


# ------------------------------------------------------------------------------- metrics, in terms of plain counts
# Each takes a K x K list of lists of non-negative numbers, counts or weights, and gives a number.


def _tp_fp_fn(C, k):
    return C[k][k], sum(C[i][k] for i in range(len(C))) - C[k][k], sum(C[k]) - C[k][k]


def _divide(a, b):
    return a / b if b > 1e-12 else 0.0


def f1(C, k=1):
    tp, fp, fn = _tp_fp_fn(C, k)
    return _divide(2 * tp, 2 * tp + fp + fn)


def f2(C):
    tp, fp, fn = _tp_fp_fn(C, 1)
    return _divide(5 * tp, 5 * tp + fp + 4 * fn)


def jaccard(C, k=1):
    tp, fp, fn = _tp_fp_fn(C, k)
    return _divide(tp, tp + fp + fn)


def precision(C, k=1):
    tp, fp, _ = _tp_fp_fn(C, k)
    return _divide(tp, tp + fp)


def micro_f1(C):
    parts = [_tp_fp_fn(C, k) for k in range(1, len(C))]
    tp, fp, fn = (sum(p[q] for p in parts) for q in range(3))
    return _divide(2 * tp, 2 * tp + fp + fn)


def _kappa(C, power):
    n = sum(map(sum, C))
    true, predicted = [sum(row) for row in C], [sum(column) for column in zip(*C, strict=True)]
    cells = [(i, j) for i in range(len(C)) for j in range(len(C)) if i != j]
    seen = sum(abs(i - j) ** power * C[i][j] for i, j in cells)
    chance = sum(abs(i - j) ** power * true[i] * predicted[j] for i, j in cells) / n
    return 1 - seen / chance if chance > 1e-12 else 0.0


def kappa(C):
    return _kappa(C, 0)


def linear_kappa(C):
    return _kappa(C, 1)


def quadratic_kappa(C):
    return _kappa(C, 2)


def accuracy(C):
    return _divide(sum(C[i][i] for i in range(len(C))), sum(map(sum, C)))


def balanced_accuracy(C):
    recalls = [C[i][i] / sum(C[i]) for i in range(len(C)) if sum(C[i]) > 1e-12]
    return sum(recalls) / len(recalls)


def ordinal(C):
    k = len(C)
    return sum(C[i][j] * (1 - abs(i - j) / (k - 1)) for i in range(k) for j in range(k)) / sum(map(sum, C))


def g_mean(C):
    recalls = [_divide(C[i][i], sum(C[i])) for i in range(len(C))]
    return math.prod(max(r, 0.0) for r in recalls) ** (1 / len(C))


def mcc(C):
    n = sum(map(sum, C))
    true, predicted = [sum(row) for row in C], [sum(column) for column in zip(*C, strict=True)]
    hits = sum(C[i][i] for i in range(len(C)))
    cover = hits * n - sum(t * p for t, p in zip(true, predicted, strict=True))
    spread = (n * n - sum(p * p for p in predicted)) * (n * n - sum(t * t for t in true))
    return cover / math.sqrt(spread) if spread > 1e-12 * n**4 else 0.0


RATIOS = {
    "f1": f1,
    "jaccard": jaccard,
    "micro_f1": micro_f1,
    "kappa": kappa,
    "linear_kappa": linear_kappa,
    "quadratic_kappa": quadratic_kappa,
}
BINARY_ONLY = {"f1", "jaccard"}


def ratio_matrices(name, C):
    """A and B as integers, up to a common factor, such that the metric is <A, C> / <B, C> at the row sums of C.

    From the textbook definitions; entries of C are multiples of 1 / 2.
    """
    k = len(C)
    pi = [round(2 * sum(row)) for row in C]
    total = sum(pi)

    def fill(function):
        return [[int(function(i, j)) for j in range(k)] for i in range(k)]

    if name in ("kappa", "linear_kappa", "quadratic_kappa"):
        power = {"kappa": 0, "linear_kappa": 1, "quadratic_kappa": 2}[name]

        def off(i, j):
            return 0 if i == j else abs(i - j) ** power

        chance = [sum(pi[i] * off(i, j) for i in range(k)) for j in range(k)]
        return fill(lambda i, j: chance[j] - total * off(i, j)), fill(lambda i, j: chance[j])
    if name == "jaccard":
        return fill(lambda i, j: i == j == 1), fill(lambda i, j: i == 1 or j == 1)
    positive = {1} if name == "f1" else set(range(1, k))
    return (
        fill(lambda i, j: 2 * (i == j and i in positive)),
        fill(lambda i, j: (i in positive) + (j in positive)),
    )


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
    return [[sum(C[i][j] for C in matrices if i < len(C) and j < len(C)) for j in range(k)] for i in range(k)]


def averaged(metric, matrices, sizes, average):
    """The metric of M matrices of sums of weights, micro or macro."""
    if average == "micro":
        return metric(add(matrices, max(sizes)))
    counted = [C for C in matrices if sum(map(sum, C)) > 0]
    return sum(metric(C) for C in counted) / len(counted)


def value(problem, predicted, metric, average="micro", *, count="labels"):
    """The metric of decisions (N, M) by counting."""
    matrices = []
    for m, k in enumerate(problem.sizes):
        column = [row[m] for row in predicted]
        if count == "labels":
            matrices.append(confusion(problem.y[:, m], column, problem.row_weight, k))
        else:
            matrices.append(expected(problem.eta[m], problem.y[:, m], column, problem.row_weight, k))
    return averaged(metric, matrices, problem.sizes, average)


def every_rule(problem):
    """All ways to decide one output's rows: K^N tuples."""
    (k,) = set(problem.sizes)
    return itertools.product(range(k), repeat=problem.n_rows)


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


def undecidable(problem, name, average):
    """Whether two classes that the metric tells apart have one line in some row: a tie at every g.

    Rounding breaks it one way or the other: the exact family is then an idealisation of what floats can express.
    """
    for A, B, output in families(problem, name, average):
        columns = list(zip(zip(*A, strict=True), zip(*B, strict=True), strict=True))
        for row in whole(problem.eta[output]):
            found = lines(row, A, B)
            for i, j in itertools.combinations(range(len(found)), 2):
                if found[i] == found[j] and columns[i] != columns[j]:
                    return True
    return False


def families(problem, name, average):
    """A, B and the output they are for."""
    counts = [
        confusion(problem.y[:, m], [0] * problem.n_rows, problem.row_weight, k) for m, k in enumerate(problem.sizes)
    ]
    shared = add(counts, max(problem.sizes))
    for m, own in enumerate(counts):
        yield (*ratio_matrices(name, shared if average == "micro" else own), m)


def best_of_family(problem, name, average):
    """The largest value over all g of the rules of g B - A, a shared g for micro and one per output for macro."""
    metric = RATIOS[name]
    rows = [[lines(row, A, B) for row in whole(problem.eta[m])] for A, B, m in families(problem, name, average)]
    if average == "micro":
        best = -math.inf
        for g in between(crossings([row for output in rows for row in output])):
            predicted = list(zip(*[[decide(row, g) for row in output] for output in rows], strict=True))
            best = max(best, value(problem, predicted, metric))
        return best
    parts = []
    for m, k in enumerate(problem.sizes):
        parts.append(
            max(
                metric(confusion(problem.y[:, m], [decide(row, g) for row in rows[m]], problem.row_weight, k))
                for g in between(crossings(rows[m]))
            )
        )
    return sum(parts) / len(parts)


def best_threshold(problem, metric, average, *, count="labels"):
    """The largest value over all thresholds on the probability of class 1, shared for micro, one each for macro."""

    def candidates(outputs):
        seen = sorted({float(v) for m in outputs for v in problem.eta[m][:, 1]})
        return [-1.0, *((a + b) / 2 for a, b in itertools.pairwise(seen)), 2.0]

    everything = range(problem.n_outputs)
    if average == "micro":
        return max(
            value(problem, np.column_stack([eta[:, 1] > t for eta in problem.eta]).astype(int), metric, count=count)
            for t in candidates(everything)
        )
    parts = []
    for m in everything:
        alone = Tiny([problem.eta[m]], problem.y[:, [m]], problem.weight)
        parts.append(
            max(value(alone, (alone.eta[0][:, [1]] > t).astype(int), metric, count=count) for t in candidates([m]))
        )
    return sum(parts) / len(parts)
