"""Cut points of one score, beside all cut points that there are."""

import itertools

import numpy as np
import pytest
from scipy.optimize import linprog

import metricwise as mw
from laws.metric_records import EVERY, RECORDS, make
from laws.solver_promises import objective_of
from metricwise.metrics.aim import make_objective
from metricwise.metrics.averages import group_outputs
from metricwise.solvers import cut_points
from metricwise.solvers.cut_points import (
    ScoreProfile,
    SortedScores,
    average_thresholds,
    best_of_linear,
    search_cuts,
    search_shown_cuts,
    search_stack,
)

# Metrics without a programme, which are climbed.
CLIMBED = ("mcc", "min_recall", "Minimum")
PROGRAMMED = [name for name in EVERY if name not in CLIMBED]
# Sums over grades; not precision, whose best grades are of a row or two, so that merging loses them.
SUMS = ("macro_f1", "weighted_f1", "macro_jaccard", "weighted_jaccard", "fowlkes_mallows", "g_mean", "h_mean", "q_mean")


def draw_rows(rng, k, most=12):
    """Scores with ties, codes of which some are missing, and weights of which some are 0, or None."""
    n = rng.integers(1, most + 1)
    scores = rng.integers(0, rng.choice([2, 5, 40]), n).astype(float)
    codes = rng.integers(-1, k, n)
    codes[0] = max(codes[0], 0)
    weight = None if rng.random() < 0.5 else rng.integers(0, 4, n).astype(float)
    if weight is not None:
        weight[0] = 1.0
    return scores, codes, weight


def grades_of(scores, thresholds):
    return np.sum(scores[:, None] > thresholds, axis=1)


def every_grading(scores, k):
    """All ways, (R, N), to give grades that do not fall along the scores, and are one at equal scores."""
    distinct = np.unique(scores)
    ends = np.concatenate([[-np.inf], distinct])  # a row is above a threshold if its score is larger
    return np.array([grades_of(scores, cuts) for cuts in itertools.combinations_with_replacement(ends, k - 1)])


def confusion(codes, grades, weight, k):
    C = np.zeros((k, k))
    for i, j, w in zip(codes, grades, np.ones(len(codes)) if weight is None else weight, strict=True):
        if i >= 0:
            C[i, j] += w
    return C / C.sum()


def best_of_all(metric, scores, codes, weight, k):
    tables = np.array([confusion(codes, grades, weight, k) for grades in every_grading(scores, k)])
    return float(metric.bind(tables[0].sum(axis=1)).value(tables).max())


def searched(metric, scores, codes, weight, k, **options):
    """The search, and the value of its thresholds counted row by row."""
    profile = SortedScores.read(scores).by_labels(codes, k, weight)
    result = search_cuts(profile, objective_of(metric, profile.priors), **options)
    grades = grades_of(scores, profile.thresholds(result.cuts))
    C = confusion(codes, grades, weight, k)
    assert metric.bind(C.sum(axis=1)).value(C) == pytest.approx(result.value, abs=1e-12)
    return result


@pytest.mark.parametrize("name", PROGRAMMED)
def test_no_cut_points_are_better(name):
    """2,600 cases over all metrics."""
    rng = np.random.default_rng(sum(map(ord, name)))
    for _ in range(50):
        k = 3 if RECORDS[name].build is not None else int(rng.integers(2, 5))
        metric = make(name, k, float(rng.choice([0.0, 0.5, 1.0])))
        rows = draw_rows(rng, k, 12 if k < 4 else 9)
        result = searched(metric, *rows, k)
        assert result.value == pytest.approx(best_of_all(metric, *rows, k), abs=1e-12)
        assert result.exact
        assert result.upper_bound == result.value


@pytest.mark.parametrize("name", CLIMBED)
def test_climbs_reach_the_best_of_few_rows(name, monkeypatch):
    monkeypatch.setattr(cut_points, "_MAX_ENUMERATED", 0)
    rng = np.random.default_rng(1)
    short = []
    for _ in range(40):
        k = int(rng.integers(3, 5)) if RECORDS[name].build is None else 3
        rows = draw_rows(rng, k)
        metric = make(name, k)
        result = searched(metric, *rows, k)
        assert not result.exact
        assert result.upper_bound is None
        short.append(best_of_all(metric, *rows, k) - result.value)
    assert min(short) > -1e-12
    assert np.mean(np.array(short) < 1e-12) >= 0.95


@pytest.mark.parametrize("name", CLIMBED)
def test_few_cut_vectors_are_all_tried(name):
    rng = np.random.default_rng(2)
    for _ in range(20):
        rows = draw_rows(rng, 3)
        metric = make(name, 3)
        result = searched(metric, *rows, 3)
        assert result.exact
        assert result.value == pytest.approx(best_of_all(metric, *rows, 3), abs=1e-12)


def test_climbs_are_no_worse_than_cuts_by_the_true_shares_or_one_grade():
    rng = np.random.default_rng(3)
    latent = rng.normal(size=400)
    scores, codes = latent + rng.normal(size=400), np.digitize(latent, [-1.0, 0.0, 0.8])
    by_shares = np.quantile(scores, np.cumsum(np.bincount(codes) / 400)[:-1])
    for name in CLIMBED:
        metric = make(name, 4)
        result = searched(metric, scores, codes, None, 4)
        assert result.value >= metric.value(confusion(codes, grades_of(scores, by_shares), None, 4))
        assert result.value >= max(metric.value(confusion(codes, np.full(400, j), None, 4)) for j in range(4))


@pytest.mark.parametrize("name", ["macro_f1", "g_mean", "quadratic_kappa"])
def test_user_functions_are_climbed_near_to_the_programme(name):
    """A function of the confusion, of which nothing is known, beside the exact answer of the same metric."""
    rng = np.random.default_rng(4)
    latent = rng.normal(size=150)
    scores, codes = latent + rng.normal(size=150), np.digitize(latent, [-0.7, 0.5])
    metric = make(name, 3)
    exact = searched(metric, scores, codes, None, 3).value
    result = searched(mw.metrics.from_function(lambda C: metric.value(C)), scores, codes, None, 3)
    assert exact - 0.01 <= result.value <= exact + 1e-12


@pytest.mark.parametrize("k", [2, 3, 5])
def test_linear_gains_match_a_linear_programme(k):
    """Cut vectors are the vertices of: shares above each cut, which rise along the score and fall along the cuts."""
    rng = np.random.default_rng(k)
    for _ in range(5):
        mass = rng.random((7, k))
        gain = rng.normal(size=(k, k))
        cumulative = np.vstack([np.zeros(k), np.cumsum(mass, axis=0)])
        (cuts,) = best_of_linear(cumulative.T[None], gain[None])
        rows = mass @ gain  # (7, k): what a score gains by each grade
        # x[u, j] = 1 if score u is above cut j: gains rows[u, 0] + sum_j x[u, j] * (rows[u, j + 1] - rows[u, j])
        index = np.arange(7 * (k - 1)).reshape(7, k - 1)
        pairs = [*zip(index[:-1].ravel(), index[1:].ravel(), strict=True)]
        pairs += [*zip(index[:, 1:].ravel(), index[:, :-1].ravel(), strict=True)]
        less = np.zeros((len(pairs), index.size))
        for row, (low, high) in zip(less, pairs, strict=True):
            row[[low, high]] = 1.0, -1.0
        programme = linprog(-np.diff(rows, axis=1).ravel(), less, np.zeros(len(pairs)), bounds=(0, 1))
        grades = np.sum(np.arange(7)[:, None] >= cuts, axis=1)
        assert rows[np.arange(7), grades].sum() == pytest.approx(rows[:, 0].sum() - programme.fun, abs=1e-9)


@pytest.mark.parametrize("name", ["quadratic_kappa", "ordinal", "macro_f1", "mcc", "min_recall"])
def test_increasing_maps_of_the_score_and_rows_of_weight_0_change_nothing(name):
    rng = np.random.default_rng(5)
    scores = np.round(rng.normal(size=80), 1)
    codes = np.clip(np.round(scores + rng.normal(size=80)) + 1, 0, 2).astype(int)
    metric = make(name, 3)
    result = searched(metric, scores, codes, None, 3)
    mapped = searched(metric, np.exp(3 * scores) - 5, codes, None, 3)
    more = np.append(scores, rng.normal(size=20))
    others = searched(metric, more, np.append(codes, rng.integers(0, 3, 20)), (np.arange(100) < 80) * 1.0, 3)
    for other in (mapped, others):
        np.testing.assert_array_equal(other.cuts, result.cuts)
        assert other.value == result.value


@pytest.mark.parametrize("name", SUMS)
def test_many_scores_are_merged_first_and_end_close_to_the_best(name):
    rng = np.random.default_rng(6)
    latent = rng.normal(size=400)
    scores, codes = latent + 0.7 * rng.normal(size=400), np.digitize(latent, [-1.0, 0.2, 1.0])
    metric = make(name, 4)
    exact = searched(metric, scores, codes, None, 4)
    merged = searched(metric, scores, codes, None, 4, max_paired_scores=60)
    assert exact.exact
    assert not merged.exact
    assert exact.value - 0.005 <= merged.value <= exact.value + 1e-12


def test_padding_counts_as_the_objective_says():
    """Rows that every rule is taken to have decided are part of the value, in every kind of search."""
    rng = np.random.default_rng(7)
    for name in ("ordinal", "quadratic_kappa", "macro_f1", "mcc"):
        for _ in range(20):
            scores, codes, weight = draw_rows(rng, 3)
            profile = SortedScores.read(scores).by_labels(codes, 3, weight)
            padding = rng.dirichlet(np.ones(9)).reshape(1, 3, 3) / 3
            sizes = np.array([3])
            grouping = group_outputs("micro", np.ones(1), sizes, np.ones(1))
            objective = make_objective(make(name, 3), grouping, profile.priors[None], sizes, padding=padding)
            tables = np.array([confusion(codes, grades, weight, 3) for grades in every_grading(scores, 3)])
            padded = (tables + padding) / (1 + padding.sum())
            best = make(name, 3).bind(padded[0].sum(axis=1)).value(padded).max()
            assert search_cuts(profile, objective).value == pytest.approx(best, abs=1e-12)


def test_ratios_that_are_undefined_at_a_positive_numerator_are_not_called_exact():
    """<A, C> > 0 where <B, C> = 0: no ratio, and Dinkelbach's iteration cannot leave it."""
    metric = mw.metrics.FractionalLinear([[1, 0], [1, 0]], [[0, 1], [0, 1]], zero_division=0.0, limits=(0.0, 1.0))
    result = searched(metric, np.arange(6.0), np.array([0, 0, 1, 0, 1, 1]), None, 2)
    assert result.value == pytest.approx(best_of_all(metric, np.arange(6.0), np.array([0, 0, 1, 0, 1, 1]), None, 2))


def test_profiles_count_labels_probabilities_and_half_of_each():
    scores = np.array([2.0, 1.0, 2.0, 3.0])
    codes = np.array([0, 1, 1, -1])
    proba = np.array([[[0.25, 0.75], [0.75, 0.25], [0.0, 1.0]]])
    weight = np.array([1.0, 2.0, 1.0, 1.0])
    rows = SortedScores.read(scores)
    labels = rows.by_labels(codes, 2, weight)
    expected = rows.stack_of_probabilities(proba, weight[None]).profile(0)
    np.testing.assert_array_equal(labels.scores, [1.0, 2.0])
    np.testing.assert_array_equal(labels.mass, np.array([[0, 2], [1, 1]]) / 4)
    np.testing.assert_array_equal(expected.mass, np.array([[0.5, 1.5], [1.5, 0.5], [0, 1]]) / 5)
    both = rows.stack_of_both(codes, proba, weight[None]).profile(0)
    np.testing.assert_array_equal(both.mass, np.array([[0.25, 1.75], [1.25, 0.75]]) / 4)


def test_merged_scores_are_parts_of_about_as_many_rows_at_their_mean():
    rng = np.random.default_rng(0)
    scores = np.append(rng.normal(size=997), [0.5, 0.5, 0.5])
    merged = SortedScores.read(scores).merged(50)
    assert (np.diff(merged.scores) > 0).all()
    assert set(np.bincount(merged.place)) <= {17, 18, 19, 20, 21, 22, 23}
    np.testing.assert_allclose(merged.scores, [scores[merged.place == part].mean() for part in range(50)])
    assert SortedScores.read(scores).merged(1000).scores.tolist() == np.unique(scores).tolist()


@pytest.mark.parametrize("name", ["quadratic_kappa", "accuracy", "macro_f1", "g_mean", "mcc"])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_stack_has_the_thresholds_of_its_profiles(name, weighted):
    """Of resamples, in one of which a grade is missing; beside a search of the rows of each alone."""
    rng = np.random.default_rng(3)
    n, k = 50, 4
    scores = rng.normal(size=n).round(1 if weighted else 6)
    codes = np.digitize(scores + 0.7 * rng.normal(size=n), [-1.0, 0.0, 1.0])
    masks = rng.random((4, n)) < 0.6
    masks[1] &= codes != 2
    weights = masks * (rng.random(n) + 0.5) if weighted else masks

    def bind(stack):
        n_groups = len(stack.priors)
        total = np.ones(n_groups)
        grouping = group_outputs("macro", total, np.full(n_groups, k), total)
        return make_objective(make(name, k), grouping, stack.priors, np.full(n_groups, k))

    thresholds = search_stack(SortedScores.read(scores).stack_of_labels(codes, k, weights), bind)
    for mask, weight, ends in zip(masks, weights, thresholds, strict=True):
        stack = SortedScores.read(scores[mask]).stack_of_labels(codes[mask], k, weight[None, mask])
        alone = search_shown_cuts(stack.profile(0), bind(stack))
        np.testing.assert_array_equal(ends, stack.profile(0).thresholds(alone.cuts))


def test_a_sum_over_grades_of_many_scores_comes_close_to_that_of_all_pairs():
    rng = np.random.default_rng(4)
    scores = rng.normal(size=400)
    codes = np.digitize(2 * scores + rng.logistic(size=400), [-2.0, 0.0, 1.5])
    stack = SortedScores.read(scores).stack_of_labels(codes, 4, np.ones((1, 400)))
    objective = objective_of(make("macro_f1", 4), stack.priors[0])
    best = search_cuts(stack.profile(0), objective).value
    (near,) = search_stack(stack, lambda _: objective, max_paired_scores=32)
    cuts = np.searchsorted(stack.scores, near)
    (value,) = objective.values(stack.profile(0).confusions(cuts[None]))
    assert best - 0.005 <= value <= best + 1e-12


def test_thresholds_lie_between_scores_even_where_no_number_does():
    step = np.nextafter(1.0, 2.0)
    scores = np.array([-1.7e308, 1.0, step, np.nextafter(step, 2.0), 1.7e308])
    profile = ScoreProfile(scores, np.ones((5, 2)))
    for position, threshold in enumerate(profile.thresholds(np.arange(6))):
        np.testing.assert_array_equal(scores > threshold, np.arange(5) >= position)


def test_average_thresholds_are_those_of_average_shares_of_rows():
    profile = ScoreProfile(np.arange(10.0), np.ones((10, 2)))
    assert average_thresholds(profile, np.array([[2.5], [4.5]])) == pytest.approx([3.5])
    assert average_thresholds(profile, np.array([[1.5], [2.5], [4.5], [9.5]])) == pytest.approx([3.5])
    stretched = ScoreProfile(np.exp(np.arange(10.0)), np.ones((10, 2)))
    threshold = average_thresholds(stretched, np.exp(np.array([[2.5], [4.5]])))
    assert np.sum(stretched.scores <= threshold) == 4
    # A grade that no resample uses stays empty; one that half of them use lies beyond the rows only in part.
    assert average_thresholds(profile, np.array([[-np.inf, np.inf]] * 3)).tolist() == [-np.inf, np.inf]
    assert average_thresholds(profile, np.array([[-np.inf], [1.5]])) == pytest.approx([0.5])


def test_averages_stay_ascending_and_near_the_scores():
    rng = np.random.default_rng(8)
    for _ in range(50):
        scores = np.unique(rng.normal(size=rng.integers(1, 9)))
        profile = ScoreProfile(scores, rng.random((len(scores), 3)) + 0.01)
        cuts = np.sort(rng.integers(0, len(scores) + 1, (5, 2)), axis=1)
        averages = average_thresholds(profile, profile.thresholds(cuts))
        assert averages[0] <= averages[1]
        assert (averages[np.isfinite(averages)] >= scores[0] - 4).all()
