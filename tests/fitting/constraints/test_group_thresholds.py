"""Rules by group against all combinations of thresholds, and their promises against SciPy's binomial limits."""

import itertools
import warnings

import numpy as np
import pytest
from scipy.stats import beta

import metricwise as mw

LABELS = mw.Strategy(confusion="labels", recalibrate=False)


def rows(seed, n, n_groups):
    rng = np.random.default_rng(seed)
    group = rng.permutation(np.arange(n) % n_groups)
    score = rng.normal(0.8 * group - 0.8, 1.0 + 0.3 * group)
    y = (rng.random(n) < 1 / (1 + np.exp(-1.3 * score))).astype(int)
    y[:n_groups], y[n_groups : 2 * n_groups] = 0, 1  # each class is in each group, as far as groups allow
    return 1 / (1 + np.exp(-1.7 * score - 0.2)), y, group


RATES = {
    "demographic_parity": [lambda d, y: d.mean()],
    "equal_opportunity": [lambda d, y: d[y == 1].mean()],
    "equalized_odds": [lambda d, y: d[y == 1].mean(), lambda d, y: d[y == 0].mean()],
    "predictive_parity": [lambda d, y: y[d == 1].mean() if d.any() else np.nan],
}
AIMS = {
    "accuracy": lambda d, y: (d == y).mean(),
    "balanced_accuracy": lambda d, y: (d[y == 1].mean() + 1 - d[y == 0].mean()) / 2,
    "f1": lambda d, y: 2 * (d & y).sum() / max(d.sum() + y.sum(), 1),
}


def combinations(p, group):
    """Decisions of all combinations of a threshold for each group."""
    names = np.unique(group)
    cuts = [np.append(-1.0, np.unique(p[group == g])) for g in names]
    for chosen in itertools.product(*cuts):
        yield (p > np.array(chosen)[group]).astype(int)


def gap(parity, decided, y, group):
    values = [[rate(decided[group == g], y[group == g]) for g in np.unique(group)] for rate in RATES[parity]]
    return max(max(row) - min(row) if np.isfinite(row).all() else np.inf for row in values)


@pytest.mark.parametrize("aim", AIMS)
@pytest.mark.parametrize("parity", RATES)
@pytest.mark.parametrize(("seed", "n", "n_groups"), [(0, 40, 2), (1, 30, 3), (2, 36, 3)])
def test_no_combination_of_thresholds_is_better(seed, n, n_groups, parity, aim):
    p, y, group = rows(seed, n, n_groups)
    if not all(set(y[group == g]) == {0, 1} for g in range(n_groups)):
        pytest.skip("a group of one class has no such rate")
    kept = [d for d in combinations(p, group) if gap(parity, d, y, group) <= 0.2 + 1e-9]
    best = max(AIMS[aim](d, y) for d in kept)
    solution = mw.optimize(
        p, y, aim, sensitive_features=group, subject_to=f"{parity} <= 0.2", confidence=None, strategy=LABELS
    )
    decided = solution.rule.predict(p, sensitive_features=group)
    assert gap(parity, decided, y, group) <= 0.2 + 1e-9
    assert AIMS[aim](decided, y) == pytest.approx(best, abs=1e-12)
    assert solution.value == pytest.approx(best, abs=1e-12)
    assert solution.certificate.alternative >= best - 1e-9


@pytest.mark.parametrize("seed", range(3))
def test_floors_in_every_group_and_the_worst_group(seed):
    p, y, group = rows(seed, 40, 2)
    kept = [d for d in combinations(p, group) if all(d[(group == g) & (y == 1)].mean() >= 0.6 - 1e-9 for g in range(2))]
    options = {"sensitive_features": group, "confidence": None, "strategy": LABELS}
    solution = mw.optimize(p, y, "accuracy", subject_to="recall >= 0.6 in every group", **options)
    assert solution.value == pytest.approx(max((d == y).mean() for d in kept), abs=1e-12)
    worst = max(min((d == y)[group == g].mean() for g in range(2)) for d in kept)
    solution = mw.optimize(p, y, mw.worst_group("accuracy"), subject_to="recall >= 0.6 in every group", **options)
    assert solution.value == pytest.approx(worst, abs=1e-12)


def limits(hits, trials, level):
    """Clopper and Pearson's, both one-sided."""
    low = beta.ppf(1 - level, hits, trials - hits + 1) if hits else 0.0
    return low, beta.ppf(level, hits + 1, trials - hits) if hits < trials else 1.0


@pytest.mark.parametrize("n_groups", [2, 4])
@pytest.mark.parametrize("seed", range(3))
def test_limits_of_all_pairs_keep_the_bound_at_the_promised_confidence(seed, n_groups):
    p, y, group = rows(seed, 3_000, n_groups)
    solution = mw.optimize(p, y, "accuracy", sensitive_features=group, subject_to="equal_opportunity <= 0.15")
    decided = solution.rule.predict(p, sensitive_features=group)
    confidence = solution.constraints[0].confidence
    assert confidence is not None
    counts = [(decided[(group == g) & (y == 1)].sum(), ((group == g) & (y == 1)).sum()) for g in range(n_groups)]
    for (hits, trials), (others, other_trials) in itertools.permutations(counts, 2):
        first, second = hits / trials, others / other_trials
        _, high = limits(hits, trials, confidence)
        low, _ = limits(others, other_trials, confidence)
        assert first - second + np.hypot(high - first, second - low) <= 0.15 + 1e-9


def test_the_result_says_what_a_mixture_adds_and_what_a_bound_costs():
    p, y, group = rows(5, 2_000, 2)
    solution = mw.optimize(p, y, "accuracy", sensitive_features=group, subject_to="demographic_parity <= 0.1")
    (kept,) = solution.constraints
    assert solution.certificate.alternative >= solution.certificate.optimized_value - 1e-9
    assert kept.price > 0
    assert kept.margin > 0
    assert kept.value + kept.margin <= 0.1 + 1e-9
    assert solution.gain is not None
    assert kept.on_new_rows is not None
    assert any("a mixture of rules would improve it" in str(note) for note in solution.notes)


def test_too_few_labels_promise_less():
    p, y, group = rows(6, 200, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        solution = mw.optimize(p, y, "accuracy", sensitive_features=group, subject_to="equalized_odds <= 0.05")
    (kept,) = solution.constraints
    assert kept.confidence is None or kept.confidence < 0.95


def test_weights_and_clusters_are_counted():
    p, y, group = rows(7, 1_000, 2)
    options = {"sensitive_features": group, "subject_to": "demographic_parity <= 0.2"}
    alone = mw.optimize(p, y, "accuracy", **options)
    twice = [np.concatenate([a, a]) for a in (p, y, group)]
    options["sensitive_features"] = twice[2]
    copied = mw.optimize(*twice[:2], "accuracy", groups=np.tile(np.arange(len(p)), 2), **options)
    assert copied.constraints[0].value == pytest.approx(alone.constraints[0].value, abs=0.02)
    assert copied.constraints[0].margin == pytest.approx(alone.constraints[0].margin, rel=0.1)
