"""Answers found by looking at everything: counts row by row, every rule, every threshold, every g in exact arithmetic.

Nothing here imports what it is used to check: metrics are functions of counts, rules are loops over rows.
"""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np

from worlds.problems import Tiny

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
