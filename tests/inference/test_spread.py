"""Intervals against what is true of new rows, standard errors and ranges of thresholds against the bootstrap."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import f1_score, matthews_corrcoef

import metricwise as mw
import worlds
from metricwise.core.rows import Rows
from metricwise.fitting import selection
from metricwise.fitting.bagging import draw
from metricwise.fitting.threshold_range import threshold_range
from metricwise.inference.decisions import Decisions
from metricwise.inference.judge import Judge
from metricwise.inference.spread import Spread
from problems import read_problem
from profiles import examples

FIXED = {"confusion": "labels", "recalibrate": False}


# --------------------------------------------------------------------------------------------------------- coverage

POPULATION = np.random.default_rng(99).beta(1, 3, 50_000)  # calibrated: the probabilities say what F1 will be


def rounded(proba):
    return np.clip(np.round(proba * 50) / 50, 0.005, 0.995)


def independent(rng, n=400):
    return *worlds.binary(n, seed=rng), {}


def ten_times(rng):
    proba, y = worlds.binary(300, seed=rng)
    order = worlds.copies(300, 10, seed=rng)
    return proba[order], y[order], {}


def in_groups(rng, n_groups=40):
    proba, y, group = worlds.in_groups(n_groups, seed=rng)
    return proba, y, {"groups": group}


def unmarked(rng):
    return *in_groups(rng)[:2], {}


def counted(rng):
    """Independent rows of few probabilities, written down once with a count."""
    proba = rounded(worlds.binary(400, seed=rng)[0])
    y = worlds.draw_flags(proba, rng)
    rows, n_rows = np.unique(np.column_stack([proba, y]), axis=0, return_counts=True)
    return rows[:, 0], rows[:, 1].astype(int), {"sample_weight": mw.Frequencies(n_rows)}


def coverage(make, population=POPULATION, n_seeds=60):
    """How often the intervals of the gain of a rule, and of the value, hold what is true."""

    def f1(decided):
        return 2 * np.sum(population * decided) / (population.sum() + decided.sum())

    gains, values = [], []
    for seed in range(n_seeds):
        proba, y, options = make(np.random.default_rng(seed))
        solution = mw.optimize(proba, y, "f1", **options)
        true, plain = f1(solution.rule.predict(population)), f1(population > 0.5)
        values.append(solution.value_on_new_rows.low <= true <= solution.value_on_new_rows.high)
        if solution.rule.metadata.recipe != "argmax":
            gains.append(solution.gain.low <= true - plain <= solution.gain.high)
    assert len(gains) > n_seeds / 2
    return np.mean(gains), np.mean(values)


@pytest.mark.parametrize(
    ("make", "population"),
    [(independent, POPULATION), (ten_times, POPULATION), (in_groups, POPULATION), (counted, rounded(POPULATION))],
)
def test_intervals_hold_what_is_true(make, population):
    gain, value = coverage(make, population)
    assert gain >= 0.85
    assert value >= 0.85


def test_intervals_of_groups_that_are_not_marked_do_not(monkeypatch):
    """The same rows taken as independent: the test above can fail."""
    gains, values = coverage(unmarked)
    assert gains < 0.85
    assert values < 0.7
    monkeypatch.setattr(Rows, "copies", lambda rows: None)
    assert max(coverage(ten_times, n_seeds=30)) < 0.85


def test_argmax_gains_nothing_for_sure():
    rng = np.random.default_rng(0)
    proba, y = worlds.multiclass(300, [5, 1, 1], seed=rng)
    solution = mw.optimize(proba, y, "accuracy")
    assert solution.rule.metadata.recipe == "argmax"
    assert solution.gain == mw.inference.Gain(0.0, 0.0, 0.0)
    value = solution.value_on_new_rows
    assert value.estimate == pytest.approx(np.mean(proba.argmax(axis=1) == y))
    # A share: the textbook has its standard error, which is widened here.
    textbook = np.sqrt(value.estimate * (1 - value.estimate) / 300)
    assert 1.9 * textbook < value.high - value.estimate < 2.6 * textbook
    assert value.high - value.estimate == pytest.approx(value.estimate - value.low)


# ------------------------------------------------------------------------------------------------- standard errors


def score(problem, codes):
    return Judge(problem).score(Decisions.of_codes(codes))


def f1_of(y, decided):
    return 2 * np.sum(y * decided) / max(y.sum() + decided.sum(), 1)


def test_clusters_vary_as_one():
    """Against resampling of whole clusters, by hand."""
    rng = np.random.default_rng(0)
    proba, y, options = in_groups(rng, n_groups=60)
    problem = read_problem(proba, y, "f1", **options).sample(600, 0)
    decided = (proba > 0.3).astype(int)
    spread = Spread.of(problem)
    rows = score(problem, decided[:, None]).influence
    members = np.arange(600).reshape(60, 10)
    values = []
    for _ in range(600):
        drawn = members[rng.integers(0, 60, 60)].reshape(-1)
        values.append(f1_of(y[drawn], decided[drawn]))
    assert spread.n_clusters == 60
    assert spread.error(rows) == pytest.approx(np.std(values), rel=0.15)
    apart = Spread.of(read_problem(proba, y, "f1").sample(600, 0))
    assert apart.error(rows) < 0.6 * spread.error(rows)
    other = (proba > 0.5).astype(int)
    both = [f1_of(y[drawn], decided[drawn]) - f1_of(y[drawn], other[drawn]) for drawn in _resampled(rng, members, 400)]
    pair = [Decisions.of_codes(codes[:, None]) for codes in (decided, other)]
    error = Judge(problem).bootstrap(pair, n=400).difference
    assert error == pytest.approx(np.std(both), rel=0.2)


def _resampled(rng, members, times):
    return [members[rng.integers(0, len(members), len(members))].reshape(-1) for _ in range(times)]


@pytest.mark.parametrize("metric", ["mcc", "g_mean"])
def test_intervals_of_a_class_that_argmax_hardly_predicts_are_those_of_new_rows(metric):
    """There these metrics have next to no slope, or one without bound: rows drawn again say how far they vary."""
    reference = {"mcc": matthews_corrcoef, "g_mean": lambda y, d: np.sqrt(d[y == 1].mean() * (1 - d[y == 0]).mean())}

    def world(rng, n):
        proba = rng.beta(0.4, 12, n)
        return proba, (rng.random(n) < proba).astype(int)

    new, truth = world(np.random.default_rng(99), 200_000)
    plain = reference[metric](truth, (new > 0.5).astype(int))
    inside = []
    for seed in range(40):
        proba, y = world(np.random.default_rng(seed), 1500)
        solution = mw.optimize(proba, y, metric)
        if solution.rule.metadata.recipe == "argmax":
            continue
        value = reference[metric](truth, np.asarray(solution.rule.predict(new)))
        gain, on_new = solution.gain, solution.value_on_new_rows
        assert gain.high - gain.low < 1
        assert 0 <= on_new.low < on_new.high <= 1
        inside.append((gain.low <= value - plain <= gain.high, on_new.low <= value <= on_new.high))
    assert len(inside) > 30
    assert (np.mean(inside, axis=0) >= 0.85).all()


def score_blocks(problem, resamples, decided):
    judge = selection._BlockJudge(problem, resamples.rows)
    influence = judge.score(Decisions.of_codes(decided)).influence
    return influence, judge.spread.error(influence)


def test_the_spread_of_blocks_of_two_groups_is_the_textbooks():
    """Accuracy is a mean: of two halves its standard error is half of what they differ by.

    Both halves have the same labels, for the shares of classes are those of all rows whichever rows are counted.
    """
    rng = np.random.default_rng(0)
    group, y = np.arange(40) % 2, np.repeat(rng.permutation(np.arange(20) % 2), 2)[:, None].repeat(65, axis=1)
    wrong = rng.random((40, 65)) < np.where(group == 0, 0.4, 0.2)[:, None]
    proba = np.where(wrong, 1 - y, y) * 0.8 + 0.1
    problem = read_problem(proba, y, "hamming_accuracy", groups=group).sample(40, 0)
    resamples = draw(problem, rng)
    right = (proba > 0.5) == y
    dealt = resamples.problem.source.rows.proba.blocks[0]  # the rows in another order
    _, error = score_blocks(resamples.problem, resamples, (dealt > 0.5).astype(np.intp))
    expected = abs(right[group == 0].mean() - right[group == 1].mean()) / 2
    assert error == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("average", ["macro", "micro"])
def test_blocks_of_rows_say_how_far_very_many_outputs_vary(average):
    """Beyond 64 outputs the spread is that between twelve blocks: a rougher estimate of the same error.

    Labels of a row depend on one another, so that the shares of the classes vary from sample to sample.
    """
    ratios = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        proba = 1 / (1 + np.exp(1.5 - rng.normal(size=(240, 65)) - rng.normal(size=(240, 1))))
        y = (rng.random(proba.shape) < proba).astype(int)
        problem = read_problem(proba, y, "f1", average=average).sample(240, 0)
        resamples = draw(problem, rng)
        problem = resamples.problem
        decided = (problem.source.rows.proba.blocks[0] > 0.3).astype(np.intp)
        blocks, error = score_blocks(problem, resamples, decided)
        assert blocks.shape == (12,)
        assert blocks.sum() == pytest.approx(0, abs=1e-12)
        ratios.append(error / Spread.of(problem).error(score(problem, decided).influence))
    assert 0.75 < np.mean(ratios) < 1.25
    assert max(ratios) < 2


@given(st.integers(0, 1_000))
@examples(20)
def test_rows_that_count_several_vary_as_several(seed):
    """A row that counts three is three independent rows, here written out."""
    rng = np.random.default_rng(seed)
    proba, y = rng.random(40), rng.integers(0, 2, 40)
    y[:2] = 0, 1
    repeats = rng.integers(1, 6, 40)
    order = np.repeat(np.arange(40), repeats)
    few = read_problem(proba, y, "f1", sample_weight=mw.Frequencies(repeats)).sample(40, 0)
    many = read_problem(proba[order], y[order], "f1", groups=np.arange(len(order))).sample(len(order), 0)
    decided = rng.integers(0, 2, (40, 1))
    decided[1] = 1
    few_score, many_score = score(few, decided), score(many, decided[order])
    assert few_score.value == pytest.approx(many_score.value)
    assert few_score.n_effective == many_score.n_effective == len(order)
    n = len(order)
    spread = Spread.of(few).error(few_score.influence)
    assert spread == pytest.approx(Spread.of(many).error(many_score.influence) * np.sqrt((n - 1) / n))
    rule = mw.optimize(proba, y, "f1", strategy=mw.Strategy(**FIXED)).rule
    ranges = [threshold_range(problem, rule) for problem in (few, many)]
    np.testing.assert_allclose(ranges[0], ranges[1], atol=1e-12)


@pytest.mark.parametrize("n", [5, 10, 40, 1_000])
def test_few_clusters_widen(n):
    quantile = Spread(None, None, n).quantile
    assert quantile == pytest.approx(stats.t.ppf(0.975, n - 1), rel=0.02)


@pytest.mark.parametrize("groups", [None, "groups", "repeats"])
def test_draws_are_of_the_mean_and_spread_of_the_rows(groups):
    repeats = np.array([1.0, 4.0, 9.0])
    cluster = np.array([0, 0, 1])
    spread = {
        None: Spread(None, None, 3),
        "groups": Spread(cluster, None, 2),
        "repeats": Spread(None, repeats, 3),
    }[groups]
    draws = spread.draws(20_000, np.random.default_rng(0))
    np.testing.assert_allclose(draws.mean(axis=0), 1, atol=0.03)
    np.testing.assert_allclose(draws.var(axis=0), 1 / repeats if groups == "repeats" else 1, rtol=0.05)
    if groups == "groups":
        np.testing.assert_array_equal(draws[:, 0], draws[:, 1])


# --------------------------------------------------------------------------------------------- ranges of thresholds


def drops(y, proba, at, thresholds, members=None, n_resamples=300):
    """By how much F1 at thresholds is below that at a threshold, in paired standard errors by the bootstrap."""
    rng = np.random.default_rng(1)
    members = np.arange(len(y))[:, None] if members is None else members
    resamples = _resampled(rng, members, n_resamples)
    out = []
    for threshold in thresholds:
        one, other = (proba > at).astype(int), (proba > threshold).astype(int)
        drop = f1_of(y, one) - f1_of(y, other)
        error = np.std([f1_of(y[own], one[own]) - f1_of(y[own], other[own]) for own in resamples])
        out.append(drop / max(error, 1e-12) if abs(drop) > 1e-12 else 0.0)
    return np.array(out)


def check_range(y, proba, threshold, low, high, members=None):
    """Just inside the ends is as good, and everything outside is worse.

    Up to some 30 %: slopes of the metric at the rule stand for those at thresholds far away.
    """
    assert low <= threshold <= high
    seen = np.sort(proba)
    inside = [low, seen[np.searchsorted(seen, high) - 1]] if high < 1 else [low]
    assert (drops(y, proba, threshold, inside, members) < 1.96 * 1.4).all()
    outside = [*seen[seen < low - 1e-9][::9][:6], *seen[seen > high + 1e-9][::9][:6]]
    assert len(outside) >= 4
    assert (drops(y, proba, threshold, outside, members) > 1.96 * 0.7).all()


@pytest.mark.parametrize("seed", range(3))
def test_thresholds_within_the_range_are_as_good(seed):
    rng = np.random.default_rng(seed)
    proba, y, _ = independent(rng, 500)
    solution = mw.optimize(proba, y, "f1")
    assert solution.threshold_range.shape == (2,)
    check_range(y, proba, float(solution.rule.thresholds[0]), *solution.threshold_range)
    # It is what one could have chosen: the optimum of other rows lies within.
    others = [
        mw.optimize(*independent(np.random.default_rng(100 + s), 500)[:2], "f1", strategy=mw.Strategy(**FIXED))
        for s in range(20)
    ]
    inside = [solution.threshold_range[0] <= one.rule.thresholds[0] <= solution.threshold_range[1] for one in others]
    assert np.mean(inside) > 0.7


def test_the_error_between_thresholds_comes_from_the_rows_between_them():
    """Labels that a threshold tells apart: k rows off it lose k/N, with an error of sqrt(k)/N; 3 are as good."""
    proba = (np.arange(1_000) + 0.5) / 1_000
    problem = read_problem(proba, (proba > 0.5).astype(int), "accuracy").sample(1_000, 0)
    low, high = threshold_range(problem, mw.WeightedRule.from_thresholds(0.5))[0]
    assert np.sum((proba > low) & (proba <= 0.5)) in (3, 4)
    assert np.sum((proba > 0.5) & (proba < high)) in (3, 4)


def test_thresholds_of_several_outputs():
    rng = np.random.default_rng(2)
    proba = rng.beta([1, 2], [3, 4], (500, 2))
    y = (rng.random(proba.shape) < proba).astype(int)
    solution = mw.optimize(proba, y, "f1", average="macro")
    assert solution.threshold_range.shape == (2, 2)
    for m in range(2):
        check_range(y[:, m], proba[:, m], float(solution.rule.thresholds[m]), *solution.threshold_range[m])


def test_thresholds_of_groups_have_a_wider_range():
    proba, y, options = in_groups(np.random.default_rng(4), n_groups=60)
    rule = mw.optimize(proba, y, "f1", strategy=mw.Strategy(**FIXED)).rule
    together, apart = (
        threshold_range(read_problem(proba, y, "f1", **own).sample(600, 0), rule)[0] for own in (options, {})
    )
    assert together[0] <= apart[0] <= apart[1] <= together[1]
    assert np.ptp(together) > np.ptp(apart)


def test_a_threshold_that_nobody_has_has_no_range():
    rng = np.random.default_rng(0)
    proba = rng.beta(1, 3, (300, 3))
    y = (rng.random(proba.shape) < proba).astype(float)
    ranges = mw.optimize(proba, y, "f1", average="macro", output_weight=[1, 0, 2]).threshold_range
    np.testing.assert_array_equal(np.isnan(ranges), [[False, False], [True, True], [False, False]])


@pytest.mark.parametrize(
    "options",
    [{"average": "micro"}, {"average": "instance"}, {"average": "macro", "strategy": mw.Strategy(**FIXED)}],
    ids=str,
)
def test_no_range_where_thresholds_are_shared_or_the_recipe_was_given(options):
    rng = np.random.default_rng(0)
    proba = rng.beta(1, 3, (200, 2))
    y = (rng.random(proba.shape) < proba).astype(int)
    assert mw.optimize(proba, y, "f1", **options).threshold_range is None


def test_no_range_for_classes_or_too_many_outputs():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet([1, 1, 1], 100)
    assert mw.optimize(proba, np.arange(100) % 3, "macro_f1").threshold_range is None
    proba = rng.beta(1, 3, (80, 65))
    y = (rng.random(proba.shape) < proba).astype(int)
    for n_outputs, known in ((64, True), (65, False)):
        solution = mw.optimize(proba[:, :n_outputs], y[:, :n_outputs], "f1", average="macro")
        assert (solution.threshold_range is not None) == known
    assert mw.optimize(proba[:, 0], None, "f1").threshold_range is None


def test_value_on_new_rows_is_not_that_of_rows_that_were_fitted():
    """Few rows: counted on themselves rules look better than they are, on rows left out they do not."""
    seen, promised, true = [], [], []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        proba, y, _ = independent(rng, 120)
        fitted = mw.optimize(proba, y, "f1", strategy=mw.Strategy(**FIXED))
        solution = mw.optimize(proba, y, "f1", strategy=mw.Strategy(confusion="labels"))
        seen.append(fitted.value)
        promised.append(solution.value_on_new_rows.estimate)
        new, labels, _ = independent(rng, 4_000)
        true.append(f1_score(labels, solution.rule.predict(new)))
    assert np.mean(seen) > np.mean(true) + 0.03
    assert abs(np.mean(promised) - np.mean(true)) < 0.02


# --------------------------------------------------------------------------------------------------------- mixtures


@pytest.mark.parametrize(
    ("metric", "confusion"), [("min_recall", "auto"), ("min_recall", "labels"), ("g_mean", "labels")]
)
def test_a_mixture_is_fitted_once_to_all_rows(metric, confusion):
    """Mixtures are not averaged: the rule is that of the recipe that was chosen, fixed."""
    rng = np.random.default_rng(0)
    proba, y = worlds.multiclass(300, [4, 1, 1], seed=rng)
    solution = mw.optimize(proba, y, metric, strategy=mw.Strategy(randomized=True, confusion=confusion))
    recipe = solution.rule.metadata.recipe
    assert recipe != "argmax"
    fixed = mw.optimize(
        proba,
        y,
        metric,
        strategy=mw.Strategy(
            randomized=True,
            confusion=recipe.removeprefix("recalibrated + "),
            recalibrate=recipe.startswith("recalibrated"),
        ),
    )
    assert isinstance(solution.rule, mw.MixtureRule)
    assert solution.rule == fixed.rule
    assert solution.gain.estimate > 0
    assert solution.threshold_range is None
    assert solution.value == fixed.value
