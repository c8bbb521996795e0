"""The choice of a recipe and the estimate of its gain, against resampling, leaving out rows, and rows held out."""

import numpy as np
import pytest
from scipy.stats import truncnorm
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score

import metricwise as mw
import worlds
from laws.metric_records import RECORDS
from metricwise.fitting import selection
from metricwise.fitting.bagging import BaggedRule, Resamples
from metricwise.inference.decisions import Decisions
from metricwise.inference.judge import Judge
from metricwise.inference.spread import Spread
from problems import asking, read_problem

FIXED = {"confusion": "labels", "recalibrate": False}


# ----------------------------------------------------------------------------------------------- the delta method


def some_rows(kind, n=400):
    return worlds.of_kind(kind, n, missing={"multioutput": [0.6, 0.1, 0.3], "unequal": [0.4, 0.1]})


CASES = [
    ("binary", "f1", {}),
    ("binary", "mcc", {}),
    ("multiclass", "macro_f1", {}),
    ("multiclass", "g_mean", {}),
    ("multiclass", "quadratic_kappa", {}),
    ("multiclass", "balanced_accuracy", {}),
    ("multiclass", "macro_f1", {"prior": [0.2, 0.3, 0.5]}),
    ("multilabel", "f1", {"average": "micro"}),
    ("multilabel", "f1", {"average": "macro", "output_weight": [3, 1, 1, 1]}),
    ("multilabel", "f1", {"average": "instance"}),
    ("multioutput", "macro_f1", {"average": "micro"}),
    ("multioutput", "kappa", {"average": "macro"}),
    ("unequal", "micro_f1", {"average": "micro"}),
    ("unequal", "mcc", {"average": "macro"}),
]


def in_memory(proba, y, metric, **options):
    return read_problem(proba, y, metric, **options).sample(len(y), 0)


def two_sets_of_decisions(problem):
    """Those of argmax, and others that differ from them in a quarter of the entries."""
    plain = problem.source.rows.proba
    rng = np.random.default_rng(1)
    first = np.column_stack([_codes(plain.output(m)) for m in range(plain.n_outputs)])
    second = np.where(rng.random(first.shape) < 0.25, rng.integers(0, 2, first.shape), first)
    return first, second


def score(problem, codes):
    return Judge(problem).score(Decisions.of_codes(codes))


def bootstrap_error(problem, first, second, n):
    return Judge(problem).bootstrap([Decisions.of_codes(codes) for codes in (first, second)], n=n).difference


def _codes(block):
    return (block[:, 0] > 0.5).astype(int) if block.ndim == 2 else block[:, 0].argmax(axis=1)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("kind", "metric", "options"), CASES)
def test_influence_agrees_with_the_bootstrap(kind, metric, options, weighted):
    proba, y = some_rows(kind)
    weight = np.random.default_rng(2).integers(1, 5, len(y)) if weighted else None
    problem = in_memory(proba, y, metric, sample_weight=weight, **options)
    first, second = two_sets_of_decisions(problem)
    scores = [score(problem, codes) for codes in (first, second)]
    assert scores[0].influence.sum() == pytest.approx(0, abs=1e-10)
    assert scores[0].value == pytest.approx(problem.value_of(first), abs=1e-12)
    assert scores[1].value == pytest.approx(problem.value_of(second), abs=1e-12)
    error = np.sqrt(np.sum((scores[0].influence - scores[1].influence) ** 2))
    assert error == pytest.approx(bootstrap_error(problem, first, second, 250), rel=0.15)


@pytest.mark.parametrize(("kind", "metric", "options"), [case for case in CASES if "prior" not in case[2]])
def test_influence_is_what_leaving_out_a_row_does(kind, metric, options):
    proba, y = some_rows(kind, 200)
    problem = in_memory(proba, y, metric, **options)
    codes, _ = two_sets_of_decisions(problem)
    whole = score(problem, codes)
    some = np.arange(0, 200, 4)
    left = [problem.take(np.arange(200) != i).value_of(np.delete(codes, i, axis=0)) for i in some]
    influence = whole.influence
    np.testing.assert_allclose(whole.value - np.array(left), influence[some], atol=0.1 * np.abs(influence).max())


def test_with_known_priors_rows_move_a_metric_within_their_class():
    """The shares of the classes do not vary, and neither does that one class is decided rightly and another is not."""
    rng, prior, recall = np.random.default_rng(3), np.array([0.2, 0.3, 0.5]), np.array([0.96, 0.9, 0.1])
    y = np.repeat(np.arange(3), [300, 200, 100])
    right = np.arange(600) % 50 < 50 * recall[y]
    problem = in_memory(rng.dirichlet([1, 1, 1], 600), y, "accuracy", prior=prior)
    scored = score(problem, np.where(right, y, (y + 1) % 3)[:, None])
    assert scored.value == pytest.approx(prior @ recall)
    error = np.sqrt(np.sum(prior**2 * recall * (1 - recall) / np.bincount(y)))
    assert Spread.of(problem).error(scored.influence) == pytest.approx(error, rel=0.01)


def test_the_bootstrap_resamples_rows():
    """The same by hand: rows drawn anew."""

    def by_hand(y, predicted):
        return 2 * np.sum(y * predicted) / (y.sum() + predicted.sum())

    proba, y = some_rows("binary")
    problem = in_memory(proba, y, "f1")
    first, second = two_sets_of_decisions(problem)
    rng = np.random.default_rng(5)
    differences = []
    for _ in range(250):
        at = rng.integers(0, len(y), len(y))
        differences.append(by_hand(y[at], first[at, 0]) - by_hand(y[at], second[at, 0]))
    assert bootstrap_error(problem, first, second, 400) == pytest.approx(np.std(differences), rel=0.15)


@pytest.mark.parametrize("average", ["micro", "macro"])
def test_resamples_may_miss_all_labels(average):
    """Of forty rows two have a label: most resamples miss one of them, and have nothing to learn from."""
    proba, y = np.linspace(0.05, 0.95, 40), np.full(40, np.nan)
    y[[5, 30]] = 0, 1
    solution = mw.optimize(proba, y, "f1", average=average)
    assert 0 <= solution.value <= 1
    assert solution.gain.low <= solution.gain.estimate <= solution.gain.high


# --------------------------------------------------------------------------------------------------- the choice


class Counting:
    """A solver that counts how often it is asked."""

    def __init__(self, solver):
        self.solver, self.calls = solver, 0

    def solve(self, oracle, objective):
        self.calls += 1
        return self.solver.solve(oracle, objective)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"strategy": mw.Strategy(confusion="labels")},
        {"strategy": mw.Strategy(confusion="blended")},
        {"strategy": mw.Strategy(recalibrate=True)},
        {"strategy": mw.Strategy(recalibrate=False)},
    ],
)
@pytest.mark.parametrize("n", [60, 2_500])
def test_resamples_are_fitted_at_once(options, n):
    """A recipe is fitted to all resamples in one call of the solver."""
    proba, y = some_rows("multiclass", n)
    solver = Counting(mw.solvers.Path())
    solution = mw.optimize(proba, y, "quadratic_kappa", **asking(options, solver=solver))
    settled = options.get("strategy", mw.Strategy()).confusion != "auto"
    assert solver.calls == (1 if settled else 2)
    assert len(solution.candidates) == 1
    assert solution.gain is not None


def test_equal_seeds_agree():
    proba, y = some_rows("multiclass", 150)
    one, two = (mw.optimize(proba, y, "macro_f1", random_state=4) for _ in range(2))
    assert one.rule == two.rule
    assert one.gain == two.gain
    assert one.status == two.status


def test_recipe_fixed_means_no_choice():
    proba, y = some_rows("multiclass", 150)
    for confusion in ("labels", "expected", "blended"):
        for recalibrate in (True, False):
            solution = mw.optimize(
                proba, y, "macro_f1", strategy=mw.Strategy(confusion=confusion, recalibrate=recalibrate)
            )
            assert solution.gain is None
            assert "resamples" not in solution.status
            assert solution.rule.metadata.recipe == "recalibrated + " * recalibrate + confusion


def test_argmax_where_there_is_nothing_to_gain():
    """Calibrated probabilities and accuracy: argmax is the optimum, and it says so."""
    kept = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        proba = rng.dirichlet([2, 1, 1], 500)
        solution = mw.optimize(proba, worlds.draw_codes(proba, rng), "accuracy")
        new = rng.dirichlet([2, 1, 1], 4_000)
        right = new[np.arange(4_000), solution.rule.predict(new)]  # in expectation, and argmax has the most
        assert right.mean() > new.max(axis=1).mean() - 0.01
        if solution.rule.metadata.recipe != "argmax":
            continue
        kept += 1
        np.testing.assert_array_equal(solution.rule.predict(proba), proba.argmax(axis=1))
        assert solution.value == solution.baseline
        assert "Argmax is kept: no candidate is expected to improve" in solution.status
    assert kept >= 3


def test_no_harm_where_argmax_is_nearly_best():
    """Matthews correlation of calibrated probabilities: whatever is chosen loses next to nothing on new rows."""
    for seed in range(2):
        rng = np.random.default_rng(seed)
        proba, new = rng.dirichlet([2, 1, 1], 500), rng.dirichlet([2, 1, 1], 20_000)
        rule = mw.optimize(proba, worlds.draw_codes(proba, rng), "mcc").rule
        mcc = mw.metrics.MCC()
        y = worlds.draw_codes(new, rng)
        assert mcc.score(y, rule.predict(new)) > mcc.score(y, new.argmax(axis=1)) - 0.01


def balanced_model(seed, n):
    """Probabilities of a model that was told to balance classes, as is common and miscalibrated, and labels."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n + 1_000, 4))
    y = (rng.random(len(X)) < 1 / (1 + np.exp(4 - 1.2 * X.sum(axis=1)))).astype(int)
    model = LogisticRegression(class_weight="balanced").fit(X[:1_000], y[:1_000])
    return model.predict_proba(X[1_000:])[:, 1], y[1_000:]


def test_corrects_what_is_miscalibrated():
    recalibrated, covered = 0, 0
    for seed in range(6):
        proba, y = balanced_model(seed, 22_000)
        solution = mw.optimize(proba[:2_000], y[:2_000], "f1")
        assert solution.rule.metadata.recipe not in ("argmax", "expected")  # neither looks at the labels
        recalibrated += solution.rule.metadata.recipe.startswith("recalibrated")
        held_out, labels = proba[2_000:], y[2_000:]
        reached, plain = (f1_score(labels, d) for d in (solution.rule.predict(held_out), held_out > 0.5))
        assert reached > plain + 0.05
        covered += solution.gain.low <= reached - plain <= solution.gain.high
        uncorrected = mw.optimize(proba[:2_000], None, "f1").rule  # believes the probabilities
        assert f1_score(labels, uncorrected.predict(held_out)) < plain
    assert recalibrated >= 4
    assert covered >= 4


def test_gain_is_about_new_rows():
    """A rule fitted to 60 rows does better on them than on others; the estimate does not believe the former."""
    promised, seen, true = [], [], []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        proba = rng.dirichlet([3, 1, 1], 60)
        y = worlds.draw_codes(proba, rng)
        solution = mw.optimize(proba, y, "macro_f1", strategy=mw.Strategy(confusion="labels"))
        fitted = mw.optimize(proba, y, "macro_f1", strategy=mw.Strategy(**FIXED))
        new = rng.dirichlet([3, 1, 1], 5_000)
        labels = worlds.draw_codes(new, rng)
        score = mw.metrics.ClassAverage(mw.metrics.FBeta()).score
        promised.append(solution.gain.estimate)
        seen.append(fitted.value - fitted.baseline)
        true.append(score(labels, solution.rule.predict(new)) - score(labels, new.argmax(axis=1)))
    assert np.mean(seen) > np.mean(true) + 0.03
    assert abs(np.mean(promised) - np.mean(true)) < 0.05


# ------------------------------------------------------------------------------------- the error of a gain, and luck


def calibrated_rows(seed, n=400):
    rng = np.random.default_rng(seed)
    proba = rng.beta(1, 2, n)
    return proba, (rng.random(n) < proba).astype(int)


def test_the_error_of_a_gain_is_its_spread_over_fresh_rows():
    """The rule and argmax decide most rows alike: their difference varies less than two values of other rows would."""
    candidates = [mw.optimize(*calibrated_rows(seed), "f1").candidates[0] for seed in range(40)]
    spread = np.std([one.gain for one in candidates], ddof=1)
    error = np.sqrt(np.mean([one.std_error**2 for one in candidates]))
    assert 0.7 < error / spread < 1.35  # the spread of 40 is known to a ninth


def test_rules_that_decide_nearly_all_rows_alike_differ_by_little():
    """One row of a thousand decided otherwise: the error of the difference in accuracy is a thousandth."""
    proba = np.full(1_000, 0.9)
    problem = in_memory(proba, np.r_[np.ones(900), np.zeros(100)].astype(int), "accuracy")
    plain = np.ones((1_000, 1), dtype=np.int8)
    other = plain.copy()
    other[0] = 0
    scores = tuple(score(problem, codes) for codes in (other, plain))
    table = selection._OutOfBagScores(Judge(problem), None, (), (other, plain), scores)
    assert table.errors[0] == pytest.approx(1e-3, rel=1e-3)
    assert Spread.of(problem).error(scores[0].influence) == pytest.approx(0.3 / np.sqrt(1_000), rel=1e-2)


def test_blocks_are_decided_by_what_the_other_blocks_choose():
    """Of four blocks the last alone is for the second candidate, and so much that it wins: the others decide for it."""
    block = np.repeat(np.arange(4), 25)
    y = np.tile([0, 1], 50)
    problem = in_memory(np.where(y == 1, 0.9, 0.1), y, "accuracy")
    first, second = y.copy(), y.copy()
    first[np.r_[0:3, 25:28, 50:53, 75:90]] ^= 1  # 3 errors in each block, 15 in the last
    second[np.r_[0:5, 25:30, 50:55]] ^= 1  # 5 errors in each block, none in the last
    codes = tuple(own[:, None].astype(np.int8) for own in (first, second, y))
    resamples = Resamples(None, block, np.eye(4, dtype=bool))
    judge, scores = Judge(problem), tuple(score(problem, own) for own in codes)
    table = selection._OutOfBagScores(judge, resamples, (None, None), codes, scores)
    assert table.best == 1
    nested, scored = table.nested()
    np.testing.assert_array_equal(nested, np.where(block[:, None] < 3, codes[1], codes[0]))
    assert scored.value == pytest.approx(problem.value_of(nested))


@pytest.mark.parametrize("true", [-0.5, 0.0, 0.7, 2.0])
def test_luck_is_what_estimates_above_the_gate_have_too_much(true):
    """The mean of normal estimates that are above 0, less what is estimated."""
    drawn = np.random.default_rng(0).normal(true, 1.0, 200_000)
    assert selection.selection_bias(3 * true, 3.0) == pytest.approx(3 * (drawn[drawn > 0].mean() - true), rel=0.03)


def test_a_rule_that_is_chosen_because_it_gained_is_corrected_for_luck():
    """An estimate is handed out if it is above 0: its mean is that of a normal distribution cut off there."""
    chosen = 0
    for seed in range(8):
        solution = mw.optimize(*noisy_problem(seed), "macro_f1", strategy=mw.Strategy(recalibrate=False))
        one = solution.candidates[0]
        if solution.rule.metadata.recipe == "argmax":
            continue
        chosen += 1
        gain = one.gain + max(0.0, 0.2 * (solution.value - one.value))  # of a rule that is fitted to all rows
        too_much = truncnorm.mean(-gain / one.std_error, np.inf, gain, one.std_error) - gain
        assert solution.gain.estimate == pytest.approx(gain**2 / (gain + too_much), rel=0.02)
    assert chosen >= 5


def test_rules_that_judge_are_behind_the_final_one_by_a_fifth_of_its_optimism():
    problem = read_problem(*noisy_problem(3), "macro_f1").sample(80, 0)
    always_two = np.zeros((2, 1, 3)), np.array([[[0.0, 0.0, -1.0]]] * 2)  # diagonal and offset of two resamples
    bag = BaggedRule(2, always_two, (), None)
    value = problem.value_of(np.full((80, 1), 2))
    judge = selection.Judge(problem)
    assert selection._full_fit_correction(judge, bag, value - 0.1) == pytest.approx(0.02)
    assert selection._full_fit_correction(judge, bag, value + 0.1) == 0  # no optimism, nothing to correct


@pytest.mark.slow
@pytest.mark.parametrize("average", ["micro", "macro"])
def test_intervals_beyond_64_outputs_hold(average):
    """There the spread is that between blocks of rows, which balanced blocks would understate."""

    def draw(rng, n):
        logit = rng.normal(size=(n, 1)) * 0.7 + rng.normal(size=(n, 72)) * 1.2 + np.linspace(-2.5, 0, 72)
        proba = 1 / (1 + np.exp(-logit))
        return proba, (rng.random(proba.shape) < proba**1.3).astype(int)

    def f1(y, decisions):
        hits, total = (y * decisions).sum(axis=0), y.sum(axis=0) + decisions.sum(axis=0)
        return 2 * hits.sum() / total.sum() if average == "micro" else np.mean(2 * hits / total)

    new, y_new = draw(np.random.default_rng(99), 20_000)
    baseline, covered = f1(y_new, new > 0.5), []
    for seed in range(60):
        solution = mw.optimize(*draw(np.random.default_rng(seed), 300), "f1", average=average, random_state=seed)
        gain = f1(y_new, solution.rule.predict(new)) - baseline
        covered.append(solution.gain.low <= gain <= solution.gain.high)
    assert np.mean(covered) >= 0.88  # of 60: 0.92 less two standard errors, as this is one draw of many


@pytest.mark.parametrize("metric", ["macro_f1", "mcc"])
def test_probabilities_that_contradict_the_labels_have_hardly_a_say(metric):
    """No link repairs these: where the model is surest it is wrong. Labels of 3,000 rows know better."""
    rng = np.random.default_rng(0)
    proba = rng.random(3_000)
    y = (rng.random(3_000) < np.select([proba > 0.8, proba > 0.3], [0.05, 0.75], 0.1)).astype(int)
    solution = mw.optimize(proba, y, metric)
    one = solution.candidates[0]
    assert abs(solution.gain.estimate - one.gain) < one.std_error


def test_what_rules_lose_of_a_minimum_by_varying_is_counted_on_all_rows():
    """Thresholds at either side of the one that makes both recalls equal: each loses, and all of them on average."""
    proba, y = calibrated_rows(0, 2_000)
    thresholds = np.array([0.2, 0.3, 0.4, 0.5])
    weights = -np.stack([thresholds, 1 - thresholds], axis=1)[:, None]
    bag = BaggedRule(4, (weights, np.zeros_like(weights)), (), None)

    def least_recall(threshold):
        return min((proba[y == 1] > threshold).mean(), (proba[y == 0] <= threshold).mean())

    lost = least_recall(0.35) - np.mean([least_recall(threshold) for threshold in thresholds])
    found = selection._variation(Judge(in_memory(proba, y, "min_recall")), bag)
    assert found == pytest.approx(np.sqrt(2) * lost)
    assert found > 0.1
    alike = BaggedRule(4, tuple(np.repeat(own[:1], 4, axis=0) for own in bag.losses), (), None)
    assert selection._variation(Judge(in_memory(proba, y, "min_recall")), alike) == 0


# ------------------------------------------------------------------------------------------------ awkward inputs


def check_finite(solution):
    numbers = [solution.value, solution.baseline, solution.optimized_value]
    if solution.gain is not None:
        assert solution.gain.low <= solution.gain.estimate <= solution.gain.high
        numbers += [solution.gain.low, solution.gain.high]
    assert np.isfinite(numbers).all()
    assert np.isfinite(solution.confusion).all()
    assert "nan" not in solution.status


METRICS = ["macro_f1", "min_recall", "g_mean", "mcc", "quadratic_kappa"]


@pytest.mark.parametrize("metric", METRICS)
class TestAwkward:
    def test_six_rows(self, metric):
        rng = np.random.default_rng(0)
        check_finite(mw.optimize(rng.beta(1, 2, 6), [0, 1, 0, 0, 1, 0], metric))
        check_finite(mw.optimize(rng.dirichlet(np.ones(3), 6), [0, 1, 2, 0, 1, 0], metric))

    def test_two_rows(self, metric):
        check_finite(mw.optimize([0.3, 0.6], [1, 0], metric))

    def test_one_row_per_class(self, metric):
        check_finite(mw.optimize(np.random.default_rng(0).dirichlet(np.ones(4), 4), np.arange(4), metric))

    def test_classes_absent_from_folds_and_from_y(self, metric):
        proba = np.random.default_rng(0).dirichlet(np.ones(5), 30)
        y = np.r_[np.zeros(26, dtype=int), 1, 2, 3, 3]
        check_finite(mw.optimize(proba, y, metric, classes=range(5)))

    def test_most_rows_without_weight(self, metric):
        proba, y = some_rows("multiclass", 40)
        check_finite(mw.optimize(proba, y, metric, sample_weight=np.arange(40) >= 32, classes=range(3)))

    @pytest.mark.parametrize("average", ["micro", "macro"])
    def test_missing_labels(self, metric, average):
        proba, y = some_rows("multioutput", 30)
        y[:, 0] = np.nan
        check_finite(mw.optimize(proba, y, metric, average=average, classes=[[0, 1, 2]] * 3))

    def test_probabilities_that_say_nothing(self, metric):
        y = np.arange(30) % 3
        check_finite(mw.optimize(np.full((30, 3), 1 / 3), y, metric))
        check_finite(mw.optimize(np.eye(3)[(y + 1) % 3], y, metric))

    @pytest.mark.parametrize("average", ["micro", "macro", "instance"])
    def test_rare_labels(self, metric, average):
        rng = np.random.default_rng(0)
        proba = rng.beta(1, 8, (30, 3))
        y = (rng.random(proba.shape) < proba).astype(int)
        y[:, 0] = 0
        check_finite(mw.optimize(proba, y, metric.replace("macro_f1", "f1"), average=average))


# ------------------------------------------------------------------------------------------------ labels blended


def blended_value(problem, predicted, metric, average):
    """The metric of the mean of the two confusions, each of sum 1, by loops."""
    matrices = []
    for m, k in enumerate(problem.sizes):
        column = [row[m] for row in predicted]
        labels = np.array(worlds.confusion(problem.y[:, m], column, problem.row_weight, k))
        probabilities = np.array(worlds.expected(problem.eta[m], problem.y[:, m], column, problem.row_weight, k))
        mass = problem.row_weight[problem.y[:, m] >= 0].sum()
        matrices.append((labels + probabilities / probabilities.sum() * mass) / 2)
    return worlds.averaged(metric, matrices, problem.sizes, average)


def smooth_problem(rng, k, m, n=25):
    """No ties: probabilities have a density."""
    eta = [rng.dirichlet(np.ones(k), n) for _ in range(m)]
    y = np.column_stack([rng.integers(0, k, n) for _ in range(m)])
    y[:k] = np.arange(k)[:, None]
    y[rng.random(y.shape) < 0.15] = -1
    y[:k] = np.arange(k)[:, None]
    return worlds.Tiny(eta, y, rng.integers(1, 4, n) / 2)


def test_blended_counts_are_the_mean():
    rng = np.random.default_rng(0)
    problem = smooth_problem(rng, 3, 2)
    read = read_problem(problem.proba, problem.labels, "macro_f1", **problem.arguments())
    oracle = read.oracle("blended")
    assert not oracle.certified
    predicted = rng.integers(0, 3, (problem.n_rows, 2))
    C = oracle.confusion_of(predicted)
    for m in range(2):
        labels = np.array(worlds.confusion(problem.y[:, m], predicted[:, m], problem.row_weight, 3))
        expected = np.array(worlds.expected(problem.eta[m], problem.y[:, m], predicted[:, m], problem.row_weight, 3))
        np.testing.assert_allclose(C[m], (labels / labels.sum() + expected / expected.sum()) / 2, atol=1e-12)
    np.testing.assert_allclose(oracle.priors, C.sum(axis=2), atol=1e-12)


@pytest.mark.parametrize("average", ["micro", "macro"])
@pytest.mark.parametrize("name", ["f1", "mcc", "g_mean"])
def test_sweep_on_blended_counts_is_exact(name, average):
    metric = RECORDS[name].of_counts
    for seed in range(5):
        problem = smooth_problem(np.random.default_rng(seed), 2, 1 if average == "micro" else 2)
        best = 0.0
        for m in range(problem.n_outputs):
            alone = worlds.Tiny([problem.eta[m]], problem.y[:, [m]], problem.weight)
            p = np.sort(alone.eta[0][:, 1])
            thresholds = [-1, *(p[1:] + p[:-1]) / 2, 2]
            decisions = [(alone.eta[0][:, [1]] > t).astype(int) for t in thresholds]
            best += max(blended_value(alone, d, metric, "micro") for d in decisions) / problem.n_outputs
        options = {
            **problem.arguments(),
            "strategy": mw.Strategy(confusion="blended", recalibrate=False, solver="sweep"),
        }
        solution = mw.optimize(problem.proba, problem.labels, name, average=average, **options)
        assert solution.optimized_value == pytest.approx(best, abs=1e-12)
        predicted = solution.rule.predict(problem.proba).reshape(problem.n_rows, -1).astype(int)
        assert blended_value(problem, predicted, metric, average) == pytest.approx(best, abs=1e-12)


def test_path_on_blended_counts_is_exact():
    """Against every interval of g between two crossings of scores, for micro-F1: A and B from its definition."""
    A, B = np.diag([0, 2, 2]), np.add.outer([0, 1, 1], [0, 1, 1])
    for seed in range(5):
        problem = smooth_problem(np.random.default_rng(seed), 3, 1)
        constant, slope = -problem.eta[0] @ A, problem.eta[0] @ B
        crossings = [0.0]
        for i, j in ((0, 1), (0, 2), (1, 2)):
            apart = slope[:, i] - slope[:, j]
            crossings += list((constant[:, j] - constant[:, i])[apart != 0] / apart[apart != 0])
        g = np.sort(crossings)
        tried = [g[0] - 1, *(g[1:] + g[:-1]) / 2, g[-1] + 1]
        decisions = [np.argmin(constant + value * slope, axis=1)[:, None] for value in tried]
        best = max(blended_value(problem, d, RECORDS["micro_f1"].of_counts, "micro") for d in decisions)
        options = {
            **problem.arguments(),
            "strategy": mw.Strategy(confusion="blended", recalibrate=False, solver="path"),
        }
        solution = mw.optimize(problem.proba, problem.labels, "micro_f1", **options)
        assert solution.optimized_value == pytest.approx(best, abs=1e-12)


# ------------------------------------------------------------------------------------------- promise and words


def noisy_problem(seed):
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet([4, 2, 1], 80)
    return proba, worlds.draw_codes(0.7 * proba + 0.3 / 3, rng)


def test_a_rule_that_is_chosen_promises_a_gain():
    chosen = 0
    for seed in range(20):
        proba, y = noisy_problem(seed)
        solution = mw.optimize(proba, y, ["mcc", "kappa", "macro_f1", "g_mean"][seed % 4])
        if solution.rule.metadata.recipe == "argmax":
            assert solution.gain.estimate == 0
            assert (solution.rule.predict(proba) == proba.argmax(axis=1)).all()
        else:
            chosen += 1
            assert solution.gain.estimate > 0
            assert f"{solution.gain.estimate:+.3g}" in solution.status
    assert 2 < chosen < 20


def test_gain_and_its_interval_do_not_depend_on_the_unit_of_weights():
    proba, y = noisy_problem(3)
    weight = np.random.default_rng(0).random(len(y)) + 0.5
    gains = [mw.optimize(proba, y, "g_mean", sample_weight=scale * weight).gain for scale in (1e-6, 1.0, 1e6)]
    for gain in gains[1:]:
        np.testing.assert_allclose(
            [gain.estimate, gain.low, gain.high], [gains[0].estimate, gains[0].low, gains[0].high]
        )
