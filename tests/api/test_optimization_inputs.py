"""Logits, log-probabilities and scores in `optimize`: the same rules as of the probabilities that they stand for."""

import warnings

import numpy as np
import pandas as pd
import pytest

import metricwise as mw

LABELS = mw.Strategy(confusion="labels", recalibrate=False)
EXPECTED = mw.Strategy(confusion="expected", recalibrate=False)
RECALIBRATED = mw.Strategy(confusion="labels", recalibrate=True)

rng = np.random.default_rng(0)
Z = rng.normal(-1, 2, 800)
P = 1 / (1 + np.exp(-Z))
Y = (rng.random(800) < P).astype(int)
Z3 = rng.normal(size=(700, 3)) * 1.5
P3 = np.exp(Z3) / np.exp(Z3).sum(axis=1, keepdims=True)
Y3 = (P3.cumsum(axis=1) < rng.random((700, 1))).sum(axis=1)


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


@pytest.mark.parametrize(
    "strategy", [None, LABELS, EXPECTED, RECALIBRATED], ids=["default", "labels", "expected", "map"]
)
@pytest.mark.parametrize("metric", ["f1", "mcc", "balanced_accuracy", "kappa"])
def test_logits_of_two_classes_decide_as_their_probabilities(metric, strategy):
    by_proba = mw.optimize(P, Y, metric, strategy=strategy)
    by_logits = mw.optimize(Z, Y, metric, input="logits", strategy=strategy)
    both = np.stack([np.log1p(-P), np.log(P)], axis=1)
    by_logs = mw.optimize(both, Y, metric, input="log_proba", strategy=strategy)
    assert (by_proba.predict(P) == by_logits.predict(Z)).all()
    assert (by_proba.predict(P) == by_logs.predict(both)).all()
    assert by_logits.value == pytest.approx(by_proba.value, abs=1e-12)
    assert by_logits.baseline == pytest.approx(by_proba.baseline, abs=1e-12)
    if strategy is EXPECTED:
        assert sigmoid(by_logits.rule.threshold) == pytest.approx(by_proba.rule.threshold, abs=1e-9)


@pytest.mark.parametrize("metric", ["macro_f1", "quadratic_kappa", "g_mean", "min_recall", "mcc"])
@pytest.mark.parametrize("strategy", [None, LABELS, EXPECTED], ids=["default", "labels", "expected"])
def test_logits_of_three_classes_decide_as_their_probabilities(metric, strategy):
    by_proba = mw.optimize(P3, Y3, metric, strategy=strategy)
    shifted = Z3 + rng.normal(size=(len(Z3), 1)) * 50  # a constant of the row changes nothing
    by_logits = mw.optimize(shifted, Y3, metric, input="logits", strategy=strategy)
    by_logs = mw.optimize(np.log(P3), Y3, metric, input="log_proba", strategy=strategy)
    assert np.mean(by_proba.predict(P3) == by_logits.predict(shifted)) >= 0.998  # rows on a border of decisions
    assert (by_proba.predict(P3) == by_logs.predict(np.log(P3))).all()


def test_gains_of_logits_are_those_of_probabilities():
    by_proba, by_logits = mw.optimize(P, Y, "f1"), mw.optimize(Z, Y, "f1", input="logits")
    assert by_logits.gain.estimate == pytest.approx(by_proba.gain.estimate, abs=1e-9)
    assert by_logits.gain.low == pytest.approx(by_proba.gain.low, abs=1e-9)
    np.testing.assert_allclose(sigmoid(by_logits.threshold_range), by_proba.threshold_range, atol=1e-9)


@pytest.mark.parametrize("average", ["micro", "macro"])
def test_multilabel_logits_decide_as_their_probabilities(average):
    logits = rng.normal(-1, 2, (500, 4))
    proba = sigmoid(logits)
    y = (rng.random(proba.shape) < proba).astype(int)
    by_proba = mw.optimize(proba, y, "f1", average=average)
    by_logits = mw.optimize(logits, y, "f1", average=average, input="logits")
    assert (by_proba.predict(proba) == by_logits.predict(logits)).all()
    logs = np.stack([np.log1p(-proba), np.log(proba)], axis=2)
    by_logs = mw.optimize(logs, y, "f1", average=average, input="log_proba")
    assert (by_proba.predict(proba) == by_logs.predict(logs)).all()


def test_outputs_of_different_classes_may_be_logits():
    logits = [rng.normal(size=(500, 3)), rng.normal(size=(500, 4))]
    proba = [np.exp(z) / np.exp(z).sum(axis=1, keepdims=True) for z in logits]
    y = np.stack([(p.cumsum(axis=1) < rng.random((500, 1))).sum(axis=1) for p in proba], axis=1)
    by_proba = mw.optimize(proba, y, "macro_f1", average="macro")
    by_logits = mw.optimize(logits, y, "macro_f1", average="macro", input="logits")
    assert (by_proba.predict(proba) == by_logits.predict(logits)).all()


@pytest.mark.parametrize(
    "options",
    [
        {"subject_to": "precision >= 0.6"},
        {"subject_to": "precision >= 0.6", "confidence": None},
        {"prior": [0.5, 0.5]},
        {"sample_weight": np.linspace(0.5, 2, len(Y))},
        {"groups": np.arange(len(Y)) // 4},
    ],
    ids=["floor", "floor on these rows", "prior", "weights", "groups"],
)
def test_options_mean_for_logits_what_they_mean_for_probabilities(options):
    metric = "recall" if "subject_to" in options else "f1"
    by_proba = mw.optimize(P, Y, metric, **options)
    by_logits = mw.optimize(Z, Y, metric, input="logits", **options)
    assert (by_proba.predict(P) == by_logits.predict(Z)).all()


def test_abstentions_groups_and_costs_of_logits():
    kinds = {"abstain": 0.2}
    assert (
        mw.optimize(P, Y, "accuracy", **kinds).predict(P)
        == mw.optimize(Z, Y, "accuracy", input="logits", **kinds).predict(Z)
    ).all()
    group = np.arange(len(Y)) % 2
    fair = {"subject_to": "demographic_parity <= 0.1", "sensitive_features": group}
    by_proba, by_logits = mw.optimize(P, Y, "f1", **fair), mw.optimize(Z, Y, "f1", input="logits", **fair)
    decided = by_proba.rule.predict(P, sensitive_features=group), by_logits.rule.predict(Z, sensitive_features=group)
    assert (decided[0] == decided[1]).all()
    cost = rng.random((len(Y), 2))
    by_proba, by_logits = mw.optimize(P, Y, "cost", cost=cost), mw.optimize(Z, Y, "cost", cost=cost, input="logits")
    assert (by_proba.rule.predict(P, cost=cost) == by_logits.rule.predict(Z, cost=cost)).all()
    loaded = mw.load_rule(by_logits.rule.to_json())
    assert loaded == by_logits.rule
    assert loaded.input == "logits"


def test_logits_without_labels_are_counted_in_expectation():
    by_proba, by_logits = mw.optimize(P, None, "f1"), mw.optimize(Z, None, "f1", input="logits")
    assert by_logits.value == pytest.approx(by_proba.value, abs=1e-12)
    assert sigmoid(by_logits.rule.threshold) == pytest.approx(by_proba.rule.threshold, abs=1e-9)


# ----------------------------------------------------------------------------------------------------------- scores


@pytest.mark.parametrize("metric", ["f1", "mcc"])
def test_the_unit_of_scores_does_not_matter(metric):
    first = mw.optimize(Z, Y, metric, input="scores")
    for scale, location in ((1e-6, 0.0), (1e6, -3e7), (3.0, 100.0)):
        other = mw.optimize(scale * Z + location, Y, metric, input="scores")
        assert (first.predict(Z) == other.predict(scale * Z + location)).all()
        assert (other.rule.threshold - location) / scale == pytest.approx(first.rule.threshold, abs=1e-3)


def test_the_unit_of_scores_of_all_classes_does_not_matter():
    first = mw.optimize(Z3, Y3, "macro_f1", input="scores")
    second = mw.optimize(40 * Z3, Y3, "macro_f1", input="scores")
    assert np.mean(first.predict(Z3) == second.predict(40 * Z3)) >= 0.998
    assert first.baseline == np.mean(
        [
            2 * np.sum((k == Y3) & (Z3.argmax(axis=1) == k)) / (np.sum(k == Y3) + np.sum(Z3.argmax(axis=1) == k))
            for k in range(3)
        ]
    )


def all_thresholds(z, y, weight):
    """The largest F1 of all thresholds, by enumeration."""
    best = 0.0
    for threshold in [-np.inf, *np.unique(z)]:
        decided = z > threshold
        hits = weight[decided & (y == 1)].sum()
        size = weight[decided].sum() + weight[y == 1].sum()
        best = max(best, 2 * hits / size if size else 0.0)
    return best


@pytest.mark.parametrize("seed", range(20))
def test_thresholds_counted_with_labels_are_exact(seed):
    draw = np.random.default_rng(seed)
    z = draw.integers(-6, 6, 40) * draw.choice([1.0, 1e-9, 1e12])
    y = (draw.random(40) < 0.4).astype(int)
    weight = draw.integers(1, 4, 40).astype(float)
    z = z + 1e-300 if seed % 2 else z
    if np.corrcoef(z, y)[0, 1] < 0:
        z = -z
    solution = mw.optimize(z, y, "f1", input="scores", sample_weight=weight, strategy=LABELS)
    assert solution.value == pytest.approx(all_thresholds(z, y, weight), abs=1e-12)
    assert solution.certificate.upper_bound == solution.value


@pytest.mark.parametrize("change", [np.exp, lambda z: z**3, lambda z: np.sign(z) * np.log1p(np.abs(z) * 1e6)])
def test_thresholds_counted_with_labels_do_not_depend_on_increasing_maps(change):
    first = mw.optimize(Z, Y, "mcc", input="scores", strategy=LABELS)
    second = mw.optimize(change(Z), Y, "mcc", input="scores", strategy=LABELS)
    assert (first.predict(Z) == second.predict(change(Z))).all()


def test_rankings_that_probabilities_lose_are_used():
    draw = np.random.default_rng(3)
    odds = draw.normal(90, 15, 3000)  # every probability is 1.0, and the ranking is good
    y = (draw.random(3000) < sigmoid((odds - 105) / 3)).astype(int)
    solution = mw.optimize(odds, y, "f1", input="logits")
    assert (sigmoid(odds) > 1 - 1e-9).all()
    assert solution.baseline < 0.35 < 0.75 < solution.value
    assert solution.gain.low > 0.3
    assert 95 < solution.rule.threshold < 110
    swept = mw.optimize(odds, y, "f1", input="logits", strategy=LABELS)
    assert swept.value == pytest.approx(all_thresholds(odds, y, np.ones(3000)), abs=1e-12)


def test_a_few_scores_far_out_do_not_matter():
    z = Z.copy()
    z[Y == 0] -= np.where(np.arange((Y == 0).sum()) % 50 == 0, 1e9, 0.0)
    z[np.flatnonzero(Y == 1)[:3]] = -1e8
    plain, far = mw.optimize(Z, Y, "f1", input="scores"), mw.optimize(z, Y, "f1", input="scores")
    assert far.rule.threshold == pytest.approx(plain.rule.threshold, abs=0.6)


def test_the_baseline_of_single_scores_is_the_most_probable_class_of_their_map():
    solution = mw.optimize(10 * Z + 5, Y, "accuracy", input="scores")
    assert solution.baseline == pytest.approx(np.mean((P > 0.5) == Y), abs=0.02)


# ------------------------------------------------------------------------------------------------ infinite and refused


def test_infinite_logits_are_certain():
    z = Z.copy()
    z[:3] = [np.inf, -np.inf, 0.0]
    rule = mw.optimize(z, Y, "f1", input="logits").rule
    assert rule.predict([np.inf, -np.inf]).tolist() == [1, 0]
    assert rule.calibrated(np.array([np.inf, -np.inf])).tolist() == [1.0, 0.0]
    logits = Z3.copy()
    logits[0], logits[1] = [-np.inf, 1, 2], [np.inf, 0, 0]
    rule = mw.optimize(logits, Y3, "macro_f1", input="logits").rule
    calibrated = rule.calibrated(logits)
    assert calibrated[0, 0] == 0
    assert calibrated[0, 1:].sum() == pytest.approx(1)
    assert calibrated[1].tolist() == [1, 0, 0]


def put(array, row, values):
    changed = array.copy()
    changed[row] = values
    return changed


@pytest.mark.parametrize(
    ("numbers", "y", "row_input", "message"),
    [
        (put(Z, 5, np.nan), Y, "scores", "scores must not be NaN, got NaN in row 5; drop such rows"),
        (
            put(Z3, 4, [np.inf, np.inf, 0]),
            Y3,
            "logits",
            r"two or more of \+inf in row 4",
        ),
        (put(Z3, 4, -np.inf), Y3, "logits", "above -inf for some class, got -inf for every class in row 4"),
        (
            np.log(P),
            Y,
            "log_proba",
            "log-probabilities must be of all classes, .*; pass both columns",
        ),
        (Z3, Y3, "log_proba", "logarithms of probabilities that sum to 1 .* pass input='logits'"),
        (P3, Y3, "logits", "be logits if .* got rows from 0 to 1 that sum to 1, which are probabilities"),
        (-Z, Y, "scores", "larger must mean more of the class, .*; pass -scores"),
        (-Z3, Y3, "scores", "larger must mean more of the class, .*; pass -scores"),
        (Z, None, "scores", "y must be given if input='scores'"),
        (Z, Y, "margins", "input must be one of 'probabilities', 'logits', 'log_proba', 'scores', got 'margins'"),
        (Z, Y, 3, "input must be one of .* got 3"),
        (
            Z[: len(Y3)],
            np.array(list("abc"))[Y3],
            "scores",
            "order must give the classes from the lowest to the highest",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused(numbers, y, row_input, message):
    with pytest.raises(ValueError, match=f"^optimize: .*{message}"):
        mw.optimize(numbers, y, "accuracy", input=row_input)


def test_probabilities_declared_as_log_odds_are_doubted():
    with pytest.warns(UserWarning, match="all logits lie between 0 and 1, as probabilities do"):
        mw.optimize(P, Y, "f1", input="logits")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mw.optimize(P, Y, "f1", input="scores")  # a score of any scale


def test_a_rule_refuses_probabilities_for_logits():
    rule = mw.optimize(Z3, Y3, "macro_f1", input="logits").rule
    with pytest.raises(ValueError, match="which are probabilities"):
        rule.predict(P3)


def test_frames_of_logits_are_matched_by_name():
    names = ["a", "b", "c"]
    frame = pd.DataFrame(Z3, columns=names)
    y = np.array(names)[Y3]
    rule = mw.optimize(frame, y, "macro_f1", input="logits").rule
    assert (rule.predict(frame[["c", "a", "b"]]) == rule.predict(frame)).all()


# ------------------------------------------------------------------------------------------------------------- grades

SCORE = rng.normal(size=900)
GRADE = np.digitize(1.5 * SCORE + rng.logistic(size=900), [-2.0, -0.5, 1.0])
WORDS = np.array(["poor", "fair", "good", "fine"])


@pytest.mark.parametrize("metric", ["quadratic_kappa", "linear_kappa", "ordinal", "macro_f1", "accuracy", "mcc"])
def test_one_score_becomes_grades(metric):
    solution = mw.optimize(SCORE, GRADE, metric, input="scores")
    if solution.outcome is not mw.solvers.Outcome.ARGMAX:
        assert isinstance(solution.rule, mw.CutPointRule)
        cuts = solution.rule.cut_points
        assert (np.diff(cuts) >= 0).all()
        assert (solution.predict(SCORE) == (SCORE[:, None] > cuts).sum(axis=1)).all()
    assert solution.value >= solution.baseline - 0.02
    exact = mw.optimize(SCORE, GRADE, metric, input="scores", strategy=LABELS)
    assert exact.value >= solution.value - 1e-12


@pytest.mark.parametrize("change", [np.exp, lambda z: z**3])
def test_cut_points_counted_with_labels_do_not_depend_on_increasing_maps(change):
    first = mw.optimize(SCORE, GRADE, "quadratic_kappa", input="scores", strategy=LABELS)
    second = mw.optimize(change(SCORE), GRADE, "quadratic_kappa", input="scores", strategy=LABELS)
    assert (first.predict(SCORE) == second.predict(change(SCORE))).all()


def test_the_order_of_grades_comes_from_the_call_or_the_labels():
    by_number = mw.optimize(SCORE, GRADE, "quadratic_kappa", input="scores", strategy=LABELS).predict(SCORE)
    words = WORDS[GRADE]
    by_order = mw.optimize(SCORE, words, "quadratic_kappa", input="scores", order=WORDS.tolist(), strategy=LABELS)
    assert (by_order.predict(SCORE) == WORDS[by_number]).all()
    categorical = pd.Categorical(words, categories=WORDS, ordered=True)
    by_categories = mw.optimize(SCORE, categorical, "quadratic_kappa", input="scores", strategy=LABELS)
    assert (by_categories.predict(SCORE) == WORDS[by_number]).all()
    with pytest.raises(ValueError, match="order must hold all labels of y"):
        mw.optimize(SCORE, words, "accuracy", input="scores", order=["poor", "fair", "good"])


def test_grades_with_weights_and_missing_labels():
    weight = rng.integers(0, 3, len(GRADE)).astype(float)
    y = np.where(np.arange(len(GRADE)) % 10 == 0, np.nan, GRADE)
    solution = mw.optimize(SCORE, y, "quadratic_kappa", input="scores", sample_weight=weight, strategy=LABELS)
    kept = (weight > 0) & ~np.isnan(y)
    repeated = np.repeat(np.flatnonzero(kept), weight[kept].astype(int))
    written_out = mw.optimize(SCORE[repeated], GRADE[repeated], "quadratic_kappa", input="scores", strategy=LABELS)
    assert solution.value == pytest.approx(written_out.value, abs=1e-12)


def test_a_grade_without_labels_is_not_predicted_by_label_counts():
    kept = GRADE != 1
    options = {"input": "scores", "order": [0, 1, 2, 3]}
    solution = mw.optimize(SCORE[kept], GRADE[kept], "quadratic_kappa", strategy=LABELS, **options)
    assert len(solution.rule.classes[0]) == 4
    assert 1 not in solution.predict(SCORE)
    assert mw.optimize(SCORE[kept], GRADE[kept], "macro_f1", **options).rule.calibrated(SCORE).shape == (len(SCORE), 4)


def test_constraints_abstentions_and_costs_of_one_score_go_through_the_map():
    floor = mw.optimize(SCORE, GRADE, "recall[3]", subject_to="precision[3] >= 0.5", input="scores")
    assert floor.constraints[0].value >= 0.5
    assert (mw.load_rule(floor.rule.to_json()).predict(SCORE) == floor.predict(SCORE)).all()
    unsure = mw.optimize(SCORE, GRADE, "accuracy", abstain=0.3, input="scores")
    assert 0 < np.mean(unsure.predict(SCORE) == -1) < 1
    cost = rng.random((len(GRADE), 4))
    by_cost = mw.optimize(SCORE, GRADE, "cost", cost=cost, input="scores")
    assert by_cost.value >= by_cost.baseline
    assert (
        mw.load_rule(by_cost.rule.to_json()).predict(SCORE, cost=cost) == by_cost.rule.predict(SCORE, cost=cost)
    ).all()


def test_record_and_groups_of_one_score():
    solution = mw.optimize(SCORE, GRADE, "quadratic_kappa", input="scores", record=["accuracy"])
    assert solution.recorded["accuracy"].value == pytest.approx(np.mean(solution.predict(SCORE) == GRADE))


def test_argmax_of_one_score_is_a_rule_of_cut_points_too():
    noise = np.random.default_rng(1).normal(size=300)
    solution = mw.optimize(noise, np.random.default_rng(2).integers(0, 3, 300), "accuracy", input="scores")
    argmax = solution.rule.calibrated(noise).argmax(axis=1)
    assert isinstance(solution.rule, mw.CutPointRule)
    if solution.outcome is mw.solvers.Outcome.ARGMAX:
        assert (solution.predict(noise) == argmax).all()
        assert solution.value == solution.baseline


def test_infinite_scores_are_of_the_grades_at_the_ends():
    score = SCORE.copy()
    score[GRADE == 3] = np.where(np.arange((GRADE == 3).sum()) % 5 == 0, np.inf, score[GRADE == 3])
    score[np.flatnonzero(GRADE == 0)[:5]] = -np.inf
    for strategy in (None, LABELS):
        rule = mw.optimize(score, GRADE, "quadratic_kappa", input="scores", strategy=strategy).rule
        assert rule.predict([-np.inf, np.inf]).tolist() == [0, 3]
        np.testing.assert_array_equal(rule.calibrated(np.array([-np.inf, np.inf])), [[1, 0, 0, 0], [0, 0, 0, 1]])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"y": SCORE}, "y must hold grades, far fewer than its 900 rows, .*got 900 distinct labels"),
        ({"y": GRADE, "input": "probabilities"}, "For one score of ordered classes, .*pass input='scores'"),
    ],
)
def test_what_is_no_grade_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        mw.optimize(SCORE, metric="accuracy", **{"input": "scores", **options})


def test_a_rule_of_one_score_refuses_more_columns():
    rule = mw.WeightedRule.from_cut_points([0.5, 1.5], input="scores")
    with pytest.raises(ValueError, match=r"have shape \(N,\), one score of each row for all 3 classes, got \(4, 3\)"):
        rule.predict(np.zeros((4, 3)))


def test_rules_behind_the_map_of_one_score_are_described_along_it():
    rule = mw.optimize(SCORE, GRADE, "accuracy", abstain=0.4, input="scores").rule
    assert rule.describe().splitlines()[1].startswith("By the score: 0 up to -")
    assert "abstain: -1 up to" in rule.describe()
