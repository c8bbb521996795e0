"""Promises about sensitive groups against linear programmes over all randomised rules that see the group.

A randomised rule of n rows is n distributions over the classes, free in every row: whoever sees the row sees its group.
Expected confusions are linear in them. Nothing of metricwise is used to find the optimum.
"""

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

import metricwise as mw
import worlds
from golden.worlds import make
from metricwise.core.losses import Loss
from metricwise.data.sensitive import read_sensitive_features
from metricwise.data.sources.chunked import ChunkedSource
from metricwise.data.sources.memory import MemorySource
from metricwise.goals.constraint import Constraint, GroupGap, PooledConstraint
from metricwise.goals.constraint_text import read_constraints
from metricwise.inference.confidence_limits import SampledGap, SampledMetric, lower_limit, upper_limit
from metricwise.oracles.counts import Counts
from problems import asking, read_problem
from profiles import examples

FIXED = {"confidence": None, "strategy": mw.Strategy(confusion="expected", recalibrate=False, randomized=True)}


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
@examples(5)
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
        q = solution.rule.distribution(eta, sensitive_features=group).reshape(-1)
        assert goal @ q == pytest.approx(best, abs=1e-6)
        worst = max(a @ q for a, _ in parity_rows(rules, name, bound))
        assert worst <= bound + 1e-7
        (promise,) = solution.constraints
        assert promise.value == pytest.approx(worst, abs=1e-9)


@given(seed=st.integers(0, 10**6), k=st.integers(2, 3), floor=st.floats(0.3, 0.7))
@examples(10)
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
            with pytest.raises(ValueError, match="no rule satisfies"):
                solve(eta, group, "balanced_accuracy", text)
            continue
        solution = solve(eta, group, "balanced_accuracy", text)
        assert solution.value == pytest.approx(best, abs=1e-6)
        (promise,) = solution.constraints
        assert promise.value >= floor - 1e-7


@given(seed=st.integers(0, 10**6), bound=st.sampled_from([0.0, 0.1]))
@examples(10)
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
@examples(10)
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


@given(seed=st.integers(0, 10**6))
@examples(4)
def test_the_worst_group_of_a_ratio_is_as_good_as_it_can_be(seed):
    """F1 of every group is at least v: halving v, each half by a programme of its own."""
    eta, group = tiny(seed, 2, 2)
    rules = Rules(eta, group)
    parts = [(group == g) for g in rules.groups]
    low, high = 0.0, 1.0
    for _ in range(40):
        v = (low + high) / 2
        # 2 hit >= v (predicted + true)
        upper = [(v * rules.share(1, own) - 2 * rules.cell(1, 1, own), -v * eta[own, 1].mean()) for own in parts]
        low, high = (low, v) if rules.best(np.zeros(eta.size), upper) is None else (v, high)
    solution = solve(eta, group, "worst_group(f1)")
    assert solution.value == pytest.approx(low, abs=1e-6)


@given(seed=st.integers(0, 10**6), bound=st.sampled_from([0.02, 0.1]))
@examples(3)
def test_predictive_parity_is_near_the_best_of_all_levels(seed, bound):
    """A programme for each of 51 levels, which the search does not know."""
    eta, group = tiny(seed, 2, 2)
    rules = Rules(eta, group)
    goal = rules.accuracy(np.ones(len(eta), dtype=bool))
    best = -np.inf
    for level in np.linspace(0, 1, 51):
        upper = []
        for own in (group == g for g in rules.groups):
            hit, predicted = rules.cell(1, 1, own), rules.share(1, own)
            little = (-predicted, -1e-5)  # nothing predicted has no precision
            upper += [(level * predicted - hit, 0.0), (hit - (level + bound) * predicted, 0.0), little]
        best = max(best, rules.best(goal, upper) or -np.inf)
    solution = solve(eta, group, "accuracy", f"predictive_parity <= {bound}")
    (promise,) = solution.constraints
    assert promise.value <= bound + 1e-4
    assert solution.value >= best - 0.01


# --------------------------------------------------------------------------------------------- labels, thresholds


def curves(p, y, group):
    """By group: of every threshold on the probability, the decisions (T, rows) of the rows of the group."""
    cuts = np.append(-1.0, np.unique(p))
    return [(p[group == g] > cuts[:, None]).astype(float) for g in np.unique(group)], cuts


def thresholds_programme(p, y, group, name, bound, shared):
    """The best accuracy of a mixture of thresholds, for each group or for all, that keeps a promise."""
    decided, cuts = curves(p, y, group)
    parts = [group == g for g in np.unique(group)]
    n = len(p)
    right = [(own @ (2 * y[rows] - 1.0) + (1 - y[rows]).sum()) / n for own, rows in zip(decided, parts, strict=True)]
    share = [own.mean(axis=1) for own in decided]
    rates = [[own[:, y[rows] == c].mean(axis=1) for own, rows in zip(decided, parts, strict=True)] for c in (0, 1)]
    wanted = {"demographic_parity": [share], "equal_opportunity": rates[1:], "equalized_odds": rates}[name]
    t, n_groups = len(cuts), len(parts)
    upper = []
    for values in wanted:
        for g, h in itertools.permutations(range(n_groups), 2):
            row = np.zeros((n_groups, t))
            row[g] += values[g]
            row[h] -= values[h]
            upper.append(row)
    goal = np.array(right)
    if shared:
        goal, upper = goal.sum(axis=0)[None], [row.sum(axis=0)[None] for row in upper]
    found = linprog(
        -goal.reshape(-1),
        [row.reshape(-1) for row in upper],
        np.full(len(upper), bound),
        np.kron(np.eye(len(goal)), np.ones(t)),
        np.ones(len(goal)),
    )
    return -found.fun


LABELS = {"confidence": None, "strategy": mw.Strategy(confusion="labels", recalibrate=False)}


@pytest.mark.parametrize("name", ["demographic_parity", "equal_opportunity", "equalized_odds"])
@given(seed=st.integers(0, 10**6), n_groups=st.integers(2, 3), bound=st.sampled_from([0.0, 0.03, 0.1]))
@examples(4)
def test_no_mixture_of_thresholds_is_better_by_labels(name, seed, n_groups, bound):
    p, y, group = worlds.shifted_groups(n_groups=n_groups, seed=seed)
    best = thresholds_programme(p, y, group, name, bound, shared=False)
    solution = mw.optimize(
        p, y, "accuracy", subject_to=f"{name} <= {bound}", sensitive_features=group, **asking(LABELS, randomized=True)
    )
    assert solution.value == pytest.approx(best, abs=1e-8)
    assert solution.constraints[0].value <= bound + 1e-8
    if name != "demographic_parity":
        return
    single = mw.optimize(p, y, "accuracy", subject_to=f"{name} <= {bound}", sensitive_features=group, **LABELS)
    decided = single.rule.predict(p, sensitive_features=group)
    assert np.mean(decided == y) == pytest.approx(single.value)
    assert single.value <= best + 1e-9
    assert single.alternative == pytest.approx(best, abs=1e-8)


@given(seed=st.integers(0, 10**6), bound=st.sampled_from([0.05, 0.2]))
@examples(3)
def test_a_rule_that_does_not_see_groups_is_the_best_of_shared_thresholds(seed, bound):
    p, y, group = worlds.shifted_groups(seed=seed)
    text = f"demographic_parity <= {bound}"
    best = thresholds_programme(p, y, group, "demographic_parity", bound, shared=True)
    ask = {"subject_to": text, "sensitive_features": mw.Sensitive(group, group_aware=False), **LABELS}
    mixture = mw.optimize(p, y, "accuracy", **asking(ask, randomized=True))
    assert mixture.value == pytest.approx(best, abs=1e-8)
    aware = thresholds_programme(p, y, group, "demographic_parity", bound, shared=False)
    assert mixture.alternative == pytest.approx(aware, abs=1e-8)
    assert mixture.outcome is mw.solvers.Outcome.LOCAL
    assert "do not use the group" in mixture.status
    single = mw.optimize(p, y, "accuracy", **ask)
    shares = [np.array([(p[group == g] > t).mean() for t in np.append(-1, np.unique(p))]) for g in (0, 1)]
    right = np.array([np.mean((p > t) == y) for t in np.append(-1, np.unique(p))])
    kept = np.abs(shares[0] - shares[1]) <= bound + 1e-12
    assert single.value == pytest.approx(right[kept].max())
    assert isinstance(single.rule, mw.WeightedRule)
    assert np.mean(single.rule.predict(p) == y) == pytest.approx(single.value)


@pytest.mark.parametrize("k", [2, 3])
def test_what_sees_groups_bounds_what_does_not(k):
    """By probabilities, where the bound is proved; of three classes the search is over losses."""
    eta, group = tiny(5, k, 2, n=40)
    rules = Rules(eta, group)
    goal = rules.accuracy(np.ones(len(eta), dtype=bool))
    best = rules.best(goal, parity_rows(rules, "equalized_odds", 0.1))
    blind = mw.Sensitive(group, group_aware=False)
    solution = solve(eta, blind, "accuracy", "equalized_odds <= 0.1", **asking(FIXED, randomized=False))
    assert solution.upper_bound == pytest.approx(best, abs=1e-6)
    assert solution.value <= best + 1e-9
    assert solution.outcome is mw.solvers.Outcome.LOCAL
    q = solution.rule.distribution(eta).reshape(-1)
    assert goal @ q == pytest.approx(solution.value, abs=1e-9)
    assert max(a @ q for a, _ in parity_rows(rules, "equalized_odds", 0.1)) <= 0.1 + 1e-9


def test_margins_and_groups_that_have_few_rows():
    p, y, group = worlds.shifted_groups(2000, decimals=6)
    ask = {"confusion": "labels", "recalibrate": False, "randomized": True}
    promised = mw.optimize(
        p, y, "accuracy", subject_to="demographic_parity <= 0.15", sensitive_features=group, strategy=mw.Strategy(**ask)
    )
    (promise,) = promised.constraints
    assert promise.confidence == 0.95
    assert promise.margin > 0
    assert promise.value + promise.margin <= 0.15 + 1e-9
    assert promise.on_new_rows.low < promise.value < promise.on_new_rows.high
    assert promised.gain is not None
    group = np.where(np.arange(2000) < 12, 2, group)
    with pytest.warns(UserWarning, match="Too few labels to guarantee"):
        few = mw.optimize(
            p,
            y,
            "accuracy",
            subject_to="demographic_parity <= 0.02",
            sensitive_features=group,
            strategy=mw.Strategy(**ask),
        )
    assert few.constraints[0].confidence != 0.95
    assert few.constraints[0].value <= 0.02 + 1e-8


def test_limits_of_a_difference_are_kept_as_often_as_they_say():
    """Of shares of two groups, few rows of one: drawn again and again from a known difference."""
    rng = np.random.default_rng(0)
    sizes, truth = (40, 300), (0.15, 0.3)
    metric = mw.metrics.PredictedShare(index=1)
    free = Constraint(metric).bind([0.5, 0.5])
    one, other = (PooledConstraint(free, share) for share in np.eye(2))
    covered = {"upper": [], "lower": []}
    for hits in rng.binomial(sizes, truth, (600, 2)):
        C = [np.array([[n - h, h], [n - h, h]]) / (2 * n) for n, h in zip(sizes, hits, strict=True)]
        counted = [SampledMetric(free, own, n, (0, 1)) for own, n in zip(C, sizes, strict=True)]
        apart = SampledGap(GroupGap(Constraint(metric, high=0.1), one, other), *counted)
        covered["upper"].append(upper_limit(apart, 0.95) >= truth[0] - truth[1])
        covered["lower"].append(lower_limit(apart, 0.95) <= truth[0] - truth[1])
    for own in covered.values():
        assert 0.94 <= np.mean(own) <= 0.995


# ---------------------------------------------------------------------------------------- outputs, weights, engines


def test_outputs_are_pooled_group_by_group_first():
    """Macro-averages of two outputs, one of which keeps a promise: every number from decisions alone."""
    rng = np.random.default_rng(1)
    P = rng.beta(1, 1.5, (400, 2))
    Y = (rng.random((400, 2)) < P).astype(int)
    named = pd.DataFrame(Y, columns=["left", "right"])
    group = np.where(rng.random(400) < 0.3 + 0.4 * P[:, 0], "x", "y")
    weight = rng.uniform(0.5, 2, 400)
    for average in ("macro", "micro"):
        solution = mw.optimize(
            P,
            named,
            "balanced_accuracy",
            average=average,
            sample_weight=weight,
            sensitive_features=group,
            subject_to="demographic_parity[left] <= 0.05",
            **LABELS,
        )
        D = solution.rule.predict(P, sensitive_features=group)
        shares = [np.average(D[group == g, 0], weights=weight[group == g]) for g in ("x", "y")]
        assert solution.constraints[0].value == pytest.approx(abs(shares[0] - shares[1]))
        assert abs(shares[0] - shares[1]) <= 0.05 + 1e-12
        columns = [0, 1] if average == "macro" else [slice(None)]
        values = []
        for m in columns:
            y, d = Y[:, m].reshape(-1), D[:, m].reshape(-1)
            w = weight if average == "macro" else np.repeat(weight, 2)
            values.append(np.mean([np.average(d[y == c] == c, weights=w[y == c]) for c in (0, 1)]))
        assert solution.value == pytest.approx(np.mean(values))
        assert solution.confusion.shape == (2, 2, 2)


def test_three_classes_with_labels_and_combinations_of_features():
    rng = np.random.default_rng(2)
    P, y = worlds.multiclass(900, [2, 1, 1], names=["low", "mid", "top"], seed=rng)
    features = pd.DataFrame({"sex": rng.choice(["f", "m"], 900), "old": rng.integers(0, 2, 900)})
    solution = mw.optimize(
        P,
        y,
        "macro_f1",
        subject_to=["demographic_parity[top] <= 0.05", "recall[mid] >= 0.2 in group f, 1"],
        sensitive_features=features,
        **LABELS,
    )
    assert solution.rule.groups == (("f", 0), ("f", 1), ("m", 0), ("m", 1))
    assert solution.rule.features == ("sex", "old")
    decided = solution.rule.predict(P, sensitive_features=features[["old", "sex"]])  # found by name
    shares = [np.mean(decided[(features.sex == s) & (features.old == o)] == "top") for s, o in solution.rule.groups]
    assert max(shares) - min(shares) == pytest.approx(solution.constraints[0].value)
    assert max(shares) - min(shares) <= 0.05 + 1e-12
    assert set(solution.by_group[("f", 1)]) == {"macro_f1", "share['top']", "recall['mid']"}
    again = mw.load_rule(solution.rule.to_json())
    assert again == solution.rule
    np.testing.assert_array_equal(again.predict(P, sensitive_features=features.to_numpy()), decided)


def test_chunks_count_alike():
    p, y, group = worlds.shifted_groups(seed=3)
    problem = read_problem(p, y, "f1")
    whole = MemorySource(replace(problem.source.rows, group=group.astype(np.intp)), problem.schema)
    losses = [Loss.argmax(2), Loss(full=np.random.default_rng(0).normal(size=(2, 2, 2)))]
    for confusion in ("labels", "expected"):
        one = Counts(whole.by_group(2), confusion).confusions(losses)
        other = Counts(ChunkedSource.of(whole, 37).by_group(2), confusion).confusions(losses)
        np.testing.assert_allclose(one, other, atol=1e-12)
        for g in (0, 1):
            part = read_problem(p[group == g], y[group == g], "f1").oracle(confusion)
            np.testing.assert_allclose(one[0][g], part.confusions(losses[:1])[0, 0], atol=1e-12)


def test_a_sample_stands_for_all_rows():
    """More rows than judge: the promise is counted on all of them."""
    p, y, group = worlds.shifted_groups(25_000, decimals=8, seed=5)
    solution = mw.optimize(
        p,
        y,
        "accuracy",
        subject_to="demographic_parity <= 0.05",
        sensitive_features=group,
        strategy=mw.Strategy(confusion="labels", recalibrate=False, randomized=True),
    )
    decided = solution.rule.distribution(p, sensitive_features=group)[:, 1]
    shares = [decided[group == g].mean() for g in (0, 1)]
    assert abs(shares[0] - shares[1]) == pytest.approx(solution.constraints[0].value)
    assert solution.constraints[0].confidence == 0.95


def test_no_promise_about_groups_is_one_rule_and_an_audit():
    p, y, group = worlds.shifted_groups(seed=7)
    plain = mw.optimize(p, y, "f1", **LABELS)
    audited = mw.optimize(p, y, "f1", sensitive_features=group, **LABELS)
    assert audited.rule == plain.rule
    for g in (0, 1):
        own = group == g
        hit = 2 * np.sum(y[own] * plain.rule.predict(p[own]))
        expected = hit / (y[own].sum() + plain.rule.predict(p[own]).sum())
        assert audited.by_group[g]["f1"].value == pytest.approx(expected)


# ------------------------------------------------------------------------------------------------ what is refused


P4, Y4, G4 = [0.2, 0.6, 0.4, 0.8], [0, 1, 0, 1], ["a", "a", "b", "b"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"subject_to": "demographic_parity <= 0.1"}, "is about groups, so sensitive_features must give"),
        ({"subject_to": "accuracy >= 0.5 in every group"}, "is about groups, so sensitive_features must give"),
        ({"sensitive_features": ["a"] * 4}, r"must contain at least two groups, got only \['a'\]"),
        ({"sensitive_features": ["a", None, "b", "b"]}, "must be known for every row, got a missing value in row 1"),
        ({"sensitive_features": ["a", "b"]}, r"one value for each of the 4 rows, .*, got shape \(2,\)"),
        ({"sensitive_features": G4, "prior": [0.5, 0.5]}, "prior and sensitive_features cannot both be given"),
        (
            {"sensitive_features": G4, "subject_to": "recall >= 0.5 in group c"},
            r"names the group 'c', which must be one of \['a', 'b'\]",
        ),
        (
            {"sensitive_features": G4, "subject_to": "demographic_parity >= 0.1"},
            "must bound a gap from above, by a number of at least 0",
        ),
        ({"sensitive_features": G4, "subject_to": "g_mean gap <= 0.1"}, "neither linear nor a ratio"),
        (
            {"sensitive_features": G4, "subject_to": "mcc gap <= 0.1"},
            "bounds the gap of mcc, which is neither linear nor a ratio",
        ),
        ({"sensitive_features": G4, "subject_to": "demographic_parity[2] <= 0.1"}, "names the class 2"),
        (
            {"sensitive_features": G4, "subject_to": "demographic_parity <= 0.1 in every group"},
            "no group after a gap",
        ),
    ],
)
def test_what_is_wrong_is_said(options, words):
    with pytest.raises(ValueError, match=words):
        mw.optimize(P4, Y4, "accuracy", **options)


def test_a_group_without_a_class_has_no_recall():
    with pytest.raises(ValueError, match="no row of the group 'b' has a class that the metric depends on"):
        mw.optimize(P4, [0, 1, 0, 0], "accuracy", sensitive_features=G4, subject_to="equal_opportunity <= 0.1")


def test_a_worst_group_of_what_no_programme_takes_is_refused():
    with pytest.raises(ValueError, match=r"worst_group\(mcc\) must be that of a linear metric"):
        mw.optimize(P4, Y4, "worst_group(mcc)", sensitive_features=G4)
    with pytest.raises(ValueError, match="metric is that of the worst group, so sensitive_features must"):
        mw.optimize(P4, Y4, mw.worst_group("accuracy"))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("recall['yes'] gap <= 0.05", mw.at_most(mw.gap("recall", "yes"), 0.05)),
        ("accuracy >= 0.8 in every group", mw.in_every_group(mw.at_least("accuracy", 0.8))),
        ("0.1 <= share <= 0.2 in group 'a', 3", mw.in_group(mw.between("share", 0.1, 0.2), ("a", 3))),
        ("demographic_parity <= 0.05", mw.at_most("demographic_parity", 0.05)),
    ],
)
def test_text_and_objects_say_the_same(text, wanted):
    (read,) = read_constraints(text)
    assert str(wanted) == text
    for name in ("metric", "low", "high", "labels", "over", "group"):
        assert getattr(read, name) == getattr(wanted, name)


def gaps_by_hand(eta, group, name, n_decisions):
    """Differences between both groups of what a promise is about, as functionals (N, D) of a randomised rule."""
    n, k = eta.shape
    first, second = group == "a", group == "b"
    positive = range(k) if k > 2 else [1]
    cells = {
        "demographic_parity": [(None, j) for j in positive],
        "equal_opportunity": [(j, j) for j in positive],
        "equalized_odds": [(i, j) for i in range(k) for j in (range(k) if k > 2 else [i])],
    }[name]
    for i, j in cells:
        weight = np.ones(n) if i is None else eta[:, i]
        gap = np.zeros((n, n_decisions))
        gap[first, j] = weight[first] / weight[first].sum()
        gap[second, j] = -weight[second] / weight[second].sum()
        yield gap.ravel()


@pytest.mark.parametrize("name", ["demographic_parity", "equal_opportunity", "equalized_odds"])
@pytest.mark.parametrize("k", [2, 3])
def test_groups_and_abstentions_against_the_programme_over_all_rules(k, name):
    """At a cost of abstaining: an abstention is a decision about no class, and a miss in what is promised."""
    rng = np.random.default_rng(k)
    n, cost, bound = 30, 0.25, 0.05
    eta = rng.dirichlet(np.full(k, 0.7), size=n)
    group = np.where(rng.random(n) < 0.45, "a", "b")
    worth = np.column_stack([eta, np.full(n, 1 - cost)]).ravel() / n
    gaps = np.array(list(gaps_by_hand(eta, group, name, k + 1)))
    best = linprog(
        -worth,
        A_ub=np.concatenate([gaps, -gaps]),
        b_ub=np.full(2 * len(gaps), bound),
        A_eq=np.kron(np.eye(n), np.ones((1, k + 1))),
        b_eq=np.ones(n),
        bounds=(0, 1),
    )
    ask = {"subject_to": f"{name} <= {bound}", "sensitive_features": group, "abstain": cost}
    solution = mw.optimize(eta, None, "accuracy", strategy=mw.Strategy(randomized=True), **ask)
    assert solution.value == pytest.approx(-best.fun, abs=1e-6)
    assert solution.upper_bound == pytest.approx(-best.fun, abs=1e-6)
    decided = solution.rule.distribution(eta, sensitive_features=group).ravel()
    assert worth @ decided == pytest.approx(solution.value, abs=1e-9)
    assert np.abs(gaps @ decided).max() <= bound + 1e-6
    again = mw.GroupedRule.from_json(solution.rule.to_json())
    assert again == solution.rule
    assert set(np.unique(again.predict(eta, sensitive_features=group))) <= {*range(k), -1}


def test_gaps_of_ratios_are_searched_anew_where_a_single_rule_beats_the_programme():
    world = make({"kind": "binary", "rows": 260, "seed": 694})
    rows = world.part("given")
    proba, y, sex = world.eta[0][rows][:, 1], world.codes[rows, 0], world.sex[rows]
    solution = mw.optimize(
        proba, y, "accuracy", subject_to="predictive_parity <= 0.1", sensitive_features=sex, confidence=None
    )
    predicted = solution.rule.predict(proba, sensitive_features=sex)
    precisions = [np.mean(y[(sex == name) & (predicted == 1)]) for name in ("f", "m")]
    assert abs(precisions[0] - precisions[1]) <= 0.1
    assert np.mean(predicted == y) == pytest.approx(solution.value)


def test_groups_keep_their_names_whatever_holds_them():
    """Text in an array of objects, as data frames have it, and groups that come in another order than their names."""
    words = ["west", "east", "west", "north", "east"]
    for values in (words, np.array(words), np.array(words, dtype=object), pd.Series(words, dtype=object)):
        found = read_sensitive_features(values, 5)
        assert [found.groups.names[code] for code in found.codes] == words
        assert list(found.groups.names) == sorted(set(words))


@pytest.fixture(scope="module")
def graded_rows():
    rng = np.random.default_rng(3)
    y = rng.integers(0, 3, 400)
    return y + rng.normal(scale=0.8, size=400), y, np.array(["a", "b"])[rng.integers(0, 2, 400)]


def test_groups_of_one_score_have_the_values_of_its_cut_points(graded_rows):
    scores, y, group = graded_rows
    solution = mw.optimize(scores, y, "accuracy", input="scores", sensitive_features=group, random_state=0)
    assert isinstance(solution.rule, mw.CutPointRule)
    decided = solution.predict(scores)
    for name, values in solution.by_group.items():
        assert values["accuracy"].value == pytest.approx(np.mean((decided == y)[group == name]), abs=1e-12)


def test_constraints_about_groups_of_one_score(graded_rows):
    scores, y, group = graded_rows
    options = {"subject_to": "accuracy gap <= 0.1", "sensitive_features": group, "confidence": None}
    solution = mw.optimize(scores, y, "accuracy", input="scores", random_state=0, **options)
    decided = solution.rule.distribution(scores, sensitive_features=group)
    right = decided[np.arange(len(y)), y]
    gap = abs(right[group == "a"].mean() - right[group == "b"].mean())
    assert solution.value == pytest.approx(right.mean(), abs=1e-12)
    assert gap <= 0.1 + 1e-9
    restored = mw.GroupedRule.from_json(solution.rule.to_json())
    assert restored == solution.rule
