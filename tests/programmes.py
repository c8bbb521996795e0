"""Shared vocabulary of the tests: answers found by SciPy's linear and convex programmes over all rules there are.

Nothing here imports what it is used to check. A randomised rule of finitely many rows is a table q (row, class) of
probabilities; its expected confusion is linear in q, and the tables whose entries are 0 or 1 are the deterministic
rules.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog, minimize


@dataclass
class Rows:
    """Rows that share one confusion matrix: a single output, or all outputs of a micro-average stacked.

    eta : array (R, K) of probabilities; weight : array (R,); allowed : bool array (R, K), the classes a row may be
    given.
    """

    eta: np.ndarray
    weight: np.ndarray
    allowed: np.ndarray

    @property
    def n_classes(self):
        return self.eta.shape[1]

    @property
    def mass(self):
        """Weight share of each row and true class, (R, K); of all there is, where rows do not sum to 1."""
        mass = self.eta * self.weight[:, None]
        return mass / mass.sum()

    @property
    def priors(self):
        return self.mass.sum(axis=0)

    def confusion(self, q):
        """Expected confusion (K, K) of the rule that gives row r the class j with probability q[r, j]."""
        return self.mass.T @ q

    def recalls(self, q):
        return np.diag(self.confusion(q))[self.priors > 0] / self.priors[self.priors > 0]

    def vertices(self):
        """Confusions (T, K, K) of every deterministic rule."""
        choices = [np.flatnonzero(row) for row in self.allowed]
        rules = np.array(list(itertools.product(*choices)))
        return np.einsum("ri,trj->tij", self.mass, np.eye(self.n_classes)[rules])


def single(eta, weight=None):
    eta = np.asarray(eta, dtype=float)
    weight = np.ones(len(eta)) if weight is None else np.asarray(weight, dtype=float)
    return Rows(eta, weight, np.ones(eta.shape, dtype=bool))


def stacked(etas, weight=None, output_weight=None):
    """The rows of a micro-average: every output's, its classes padded to the largest number."""
    n, width = len(etas[0]), max(eta.shape[1] for eta in etas)
    weight = np.ones(n) if weight is None else np.asarray(weight, dtype=float)
    alpha = np.ones(len(etas)) if output_weight is None else np.asarray(output_weight, dtype=float)
    padded = [np.pad(eta, ((0, 0), (0, width - eta.shape[1]))) for eta in etas]
    allowed = [np.tile(np.arange(width) < eta.shape[1], (n, 1)) for eta in etas]
    return Rows(np.vstack(padded), np.concatenate([a * weight for a in alpha]), np.vstack(allowed))


def best_minimum(rows, parts):
    """The largest ``min_p <parts[p], C>`` over all mixtures of all deterministic rules: a linear programme.

    parts : array (P, K, K).
    """
    values = np.einsum("pij,tij->tp", parts, rows.vertices())
    n, p = values.shape
    answer = linprog(
        np.append(np.zeros(n), -1.0),
        A_ub=np.hstack([-values.T, np.ones((p, 1))]),
        b_ub=np.zeros(p),
        A_eq=np.append(np.ones(n), 0.0)[None],
        b_eq=[1.0],
        bounds=[(0, None)] * n + [(None, None)],
        method="highs-ipm",
    )
    assert answer.status == 0
    return -answer.fun


def recall_parts(priors):
    """Recalls of the classes that occur as linear functions of C."""
    k = len(priors)
    return np.array([np.diag(np.eye(k)[i] / priors[i]) for i in range(k) if priors[i] > 0])


def best_concave(rows, function, *, convex_loss=None):
    """The largest value of a concave f(C) over all randomised rules: sequential quadratic programming over tables q.

    The answer is checked by its own certificate: along the way to no deterministic rule does f rise.

    convex_loss : f(C) to minimise instead, where it has the same solution and is easier.
    """
    loss = convex_loss or (lambda C: -function(C))
    shape = rows.eta.shape
    free = np.flatnonzero(rows.allowed)

    def table(x):
        q = np.zeros(shape)
        q.flat[free] = x
        return q

    sums = np.zeros((shape[0], len(free)))
    sums[free // shape[1], np.arange(len(free))] = 1.0
    start = (rows.allowed / rows.allowed.sum(axis=1, keepdims=True)).flat[free]
    answer = minimize(
        lambda x: loss(rows.confusion(table(x))),
        start,
        method="SLSQP",
        bounds=[(0.0, 1.0)] * len(free),
        constraints={"type": "eq", "fun": lambda x: sums @ x - 1.0, "jac": lambda x: sums},
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    q = np.clip(table(answer.x), 0.0, 1.0)
    C = rows.confusion(q / q.sum(axis=1, keepdims=True))
    short = 1e-5
    rise = [(function(C + short * (V - C)) - function(C)) / short for V in rows.vertices()]
    assert max(rise) < 2e-5, f"the reference is not optimal: {max(rise):.2g}"
    return float(function(C))


# ------------------------------------------------------------------------------------- linear aims within half-spaces


def coefficients(eta, A):
    """<A, C> of M outputs, A of shape (M, K, D), as a row over the distributions h of shape (N, M, D)."""
    return np.einsum("nmi,mij->nmj", eta, A).reshape(-1) / len(eta)


def best_of_all(eta, A, spaces, B=None):
    """The largest <A, C>, or <A, C> / <B, C>, of all randomised rules that keep <R, C> >= level.

    eta : array (N, M, K); A, B : arrays (M, K, D) for D decisions, which are the K classes unless rules may abstain;
    spaces : pairs of R (M, K, D) and its level. None where no rule keeps them all.
    """
    n, m, _ = eta.shape
    sums = np.kron(np.eye(n * m), np.ones(A.shape[-1]))
    upper = np.array([np.append(-coefficients(eta, R), level) for R, level in spaces])
    goal = np.append(-coefficients(eta, A), 0.0)
    if B is None:
        answer = linprog(goal[:-1], upper[:, :-1], -upper[:, -1], sums, np.ones(n * m))
    else:  # Charnes and Cooper: in units of the denominator, the last variable is its inverse
        equal = np.vstack([np.hstack([sums, -np.ones((n * m, 1))]), np.append(coefficients(eta, B), 0.0)])
        answer = linprog(goal, upper, np.zeros(len(upper)), equal, np.append(np.zeros(n * m), 1.0))
    return -answer.fun if answer.status == 0 else None


def spaces_of(limits):
    """All half-spaces as tensors (M, K, K)."""
    return [
        (one.share[:, None, None] * space.A, space.level)
        for one in limits.constraints
        for space in one.bound.half_spaces
    ]


def denominators_of(limits):
    """At least a hundred-thousandth of every denominator: nothing predicted keeps nothing."""
    return [
        (one.share[:, None, None] * one.bound.denominator, 1e-5 * np.abs(one.bound.denominator).max())
        for one in limits.constraints
        if one.bound.denominator is not None
    ]


# ------------------------------------------------------------------------- concave metrics, from their definitions


def recalls(C):
    C = np.asarray(C)
    rows = C.sum(axis=1)
    return np.diag(C)[rows > 0] / rows[rows > 0]


def g_mean(C):
    return float(np.prod(np.maximum(recalls(C), 0.0)) ** (1 / len(recalls(C))))


def h_mean(C):
    r = recalls(C)
    return float(len(r) / np.sum(1 / r)) if np.all(r > 0) else 0.0


def q_mean(C):
    return float(1 - np.sqrt(np.mean((1 - recalls(C)) ** 2)))


# What SciPy finds easier to minimise.
EASIER = {
    g_mean: lambda C: -np.sum(np.log(np.maximum(recalls(C), 1e-9))),
    h_mean: lambda C: np.sum(1 / np.maximum(recalls(C), 1e-9)),
    q_mean: lambda C: np.sum((1 - recalls(C)) ** 2),
}
