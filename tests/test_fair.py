"""Promises about sensitive groups against linear programmes over all randomised rules that see the group.

A randomised rule of n rows is n distributions over the classes, free in every row: whoever sees the row sees its group.
Expected confusions are linear in them. Nothing of metricwise is used to find the optimum.
"""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import metricwise as mw

FIXED = {"confusion": "expected", "recalibrate": False, "randomized": True, "confidence": None}


class Rules:
    """All randomised rules of rows: variables q[row, class]; functionals of them are vectors."""

    def __init__(self, eta, group):
        self.eta, self.group = eta, group
        self.n, self.k = eta.shape
        self.groups = np.unique(group)

    def cell(self, i, j, rows):
        """The share of some rows that are of class i (expected) and decided as j."""
        out = np.zeros((self.n, self.k))
        out[rows, j] = self.eta[rows, i] / rows.sum()
        return out.reshape(-1)

    def share(self, j, rows):
        return sum(self.cell(i, j, rows) for i in range(self.k))

    def rate(self, i, j, rows):
        """P(decided j | true i) in some rows."""
        return self.cell(i, j, rows) / self.eta[rows, i].mean()

    def accuracy(self, rows):
        return sum(self.cell(i, i, rows) for i in range(self.k))

    def balanced(self, rows):
        return sum(self.rate(i, i, rows) for i in range(self.k)) / self.k

    def gaps(self, functional, bound):
        """Rows a, b of ``a @ q <= b`` for all pairs of groups."""
        own = [functional(self.group == g) for g in self.groups]
        return [(one - other, bound) for one, other in itertools.permutations(own, 2)]

    def best(self, goal, upper, extra=0):
        """The largest goal @ q subject to rows; `extra` free variables come last."""
        size = self.n * self.k
        equal = np.hstack([np.kron(np.eye(self.n), np.ones(self.k)), np.zeros((self.n, extra))])
        found = linprog(
            -np.asarray(goal),
            np.array([a for a, _ in upper]) if upper else None,
            np.array([b for _, b in upper]) if upper else None,
            equal,
            np.ones(self.n),
            bounds=[(0, 1)] * size + [(None, None)] * extra,
        )
        return -found.fun if found.status == 0 else None


def parity_rows(rules, name, bound):
    k = rules.k
    if name == "demographic_parity":
        return [row for j in range(k) for row in rules.gaps(lambda rows, j=j: rules.share(j, rows), bound)]
    if name == "equal_opportunity":
        classes = [1] if k == 2 else range(k)
        return [row for j in classes for row in rules.gaps(lambda rows, j=j: rules.rate(j, j, rows), bound)]
    cells = itertools.product(range(k), repeat=2)
    return [row for i, j in cells for row in rules.gaps(lambda rows, i=i, j=j: rules.rate(i, j, rows), bound)]


def tiny(seed, k, n_groups, n=14, rounded=False):
    rng = np.random.default_rng(seed)
    eta = rng.dirichlet(np.ones(k), n)
    if rounded:
        eta = np.round(eta * 8) / 8 + 1e-3
        eta /= eta.sum(axis=1, keepdims=True)
    group = np.concatenate([np.arange(n_groups).repeat(2), rng.integers(0, n_groups, n - 2 * n_groups)])
    return eta, group


def solve(eta, group, metric, subject_to=None, **options):
    classes = list(range(eta.shape[1]))
    return mw.optimize(
        eta, None, metric, subject_to=subject_to, sensitive_features=group, classes=classes, **FIXED | options
    )


# ------------------------------------------------------------------------------------------- all randomised rules


@pytest.mark.parametrize("name", ["demographic_parity", "equal_opportunity", "equalized_odds"])
@pytest.mark.parametrize("k", [2, 3])
@given(seed=st.integers(0, 10**6), n_groups=st.integers(2, 3), bound=st.sampled_from([0.0, 0.05, 0.2]), r=st.booleans())
@settings(max_examples=8)
def test_parities_are_optimal(name, k, seed, n_groups, bound, r):
    eta, group = tiny(seed, k, n_groups, rounded=r)
    rules = Rules(eta, group)
    everyone = np.ones(len(eta), dtype=bool)
    for metric, goal in (("accuracy", rules.accuracy(everyone)), ("balanced_accuracy", rules.balanced(everyone))):
        best = rules.best(goal, parity_rows(rules, name, bound))
        solution = solve(eta, group, metric, f"{name} <= {bound}")
        assert solution.value == pytest.approx(best, abs=1e-6)
        assert solution.upper_bound >= best - 1e-9
        assert solution.gap <= 1e-6
        # The rule itself, by its distribution and nothing else, keeps the promise and has the value.
        q = solution.rule.distribution(eta, group).reshape(-1)
        assert goal @ q == pytest.approx(best, abs=1e-6)
        worst = max(a @ q for a, _ in parity_rows(rules, name, bound))
        assert worst <= bound + 1e-7
        (promise,) = solution.constraints
        assert promise.value == pytest.approx(worst, abs=1e-9)


@given(seed=st.integers(0, 10**6), k=st.integers(2, 3), floor=st.floats(0.3, 0.7))
@settings(max_examples=10)
def test_a_floor_in_every_group_and_in_one(seed, k, floor):
    eta, group = tiny(seed, k, 3)
    rules = Rules(eta, group)
    goal = rules.balanced(np.ones(len(eta), dtype=bool))
    for text, groups in (
        (f"accuracy >= {floor} in every group", rules.groups),
        (f"accuracy >= {floor} in group 1", [1]),
    ):
        best = rules.best(goal, [(-rules.accuracy(group == g), -floor) for g in groups])
        if best is None:
            with pytest.raises(ValueError, match="no rule keeps"):
                solve(eta, group, "balanced_accuracy", text)
            continue
        solution = solve(eta, group, "balanced_accuracy", text)
        assert solution.value == pytest.approx(best, abs=1e-6)
        (promise,) = solution.constraints
        assert promise.value >= floor - 1e-7


@given(seed=st.integers(0, 10**6), bound=st.sampled_from([0.0, 0.1]))
@settings(max_examples=10)
def test_gaps_of_any_linear_metric_beside_a_ratio_as_the_aim(seed, bound):
    """F1 of all rows under a gap of accuracy: a ratio by Charnes and Cooper's substitution."""
    eta, group = tiny(seed, 2, 2)
    rules = Rules(eta, group)
    everyone = np.ones(len(eta), dtype=bool)
    size = eta.size
    hit = 2 * rules.cell(1, 1, everyone)
    predicted, true = rules.share(1, everyone), eta[:, 1].mean()
    gaps = rules.gaps(rules.accuracy, bound)
    # In units of the denominator: z = q * s, s its inverse, the last variable.
    equal = np.vstack(
        [
            np.hstack([np.kron(np.eye(len(eta)), np.ones(2)), -np.ones((len(eta), 1))]),
            np.append(predicted, true),
        ]
    )
    found = linprog(
        np.append(-hit, 0.0),
        [np.append(a, -b) for a, b in gaps],
        np.zeros(len(gaps)),
        equal,
        np.append(np.zeros(len(eta)), 1.0),
        bounds=[(0, None)] * (size + 1),
    )
    solution = solve(eta, group, "f1", f"accuracy gap <= {bound}")
    assert solution.value == pytest.approx(-found.fun, abs=1e-6)


@given(seed=st.integers(0, 10**6), k=st.integers(2, 3))
@settings(max_examples=10)
def test_the_worst_group_of_a_linear_metric_is_as_good_as_it_can_be(seed, k):
    eta, group = tiny(seed, k, 3)
    rules = Rules(eta, group)
    goal = np.append(np.zeros(eta.size), 1.0)
    for metric, functional in (("accuracy", rules.accuracy), ("balanced_accuracy", rules.balanced)):
        upper = [(np.append(-functional(group == g), 1.0), 0.0) for g in rules.groups]
        best = rules.best(goal, upper, extra=1)
        solution = solve(eta, group, mw.worst_group(metric))
        assert solution.value == pytest.approx(best, abs=1e-6)
        assert solution.gap <= 1e-6
        parts = [one[metric].value for one in solution.by_group.values()]
        assert min(parts) == pytest.approx(best, abs=1e-6)
