"""Evaluation on logits, log-probabilities and scores: values are those of the probabilities that they stand for."""

import numpy as np
import pytest
from sklearn import metrics as sk

import metricwise as mw
import worlds
from metricwise.core.losses import Loss

rng = np.random.default_rng(0)
P, Y = worlds.binary(400, seed=rng)
Z = np.log(P / (1 - P))
ETA, CLASSES = worlds.multiclass(400, seed=rng)
LOGITS = np.log(ETA) + rng.normal(size=(400, 1))
EXPECTED = mw.Strategy(confusion="expected", recalibrate=False)
DEFAULT = mw.Strategy()


def numbers(evaluation):
    return np.array(
        [
            [part.estimate, part.low, part.high]
            for comparison in evaluation.values()
            for part in (comparison.value, comparison.baseline, comparison.difference)
        ]
    )


def rule_of(rows, y, metric, kind, strategy=EXPECTED, **options):
    return mw.optimize(rows, y, metric, input=kind, strategy=strategy, **options).rule


@pytest.mark.parametrize("strategy", [EXPECTED, DEFAULT], ids=["expected", "default"])
@pytest.mark.parametrize("kind", ["logits", "log_proba"])
def test_two_classes_have_the_numbers_of_their_probabilities(kind, strategy):
    rows = Z if kind == "logits" else np.log(np.stack([1 - P, P], 1))
    metrics = ["f1", "recall", "accuracy"]
    own = mw.evaluate(rule_of(rows, Y, "f1", kind, strategy), rows, Y, metrics)
    other = mw.evaluate(rule_of(P, Y, "f1", "probabilities", strategy), P, Y, metrics)
    np.testing.assert_allclose(numbers(own), numbers(other), atol=1e-12)
    assert own.notes == other.notes == ()


@pytest.mark.parametrize(("kind", "rows"), [("logits", LOGITS), ("log_proba", np.log(ETA))])
def test_several_classes_have_the_numbers_of_their_probabilities(kind, rows):
    own = mw.evaluate(rule_of(rows, CLASSES, "macro_f1", kind), rows, CLASSES, ["macro_f1", "min_recall"])
    other = mw.evaluate(rule_of(ETA, CLASSES, "macro_f1", "probabilities"), ETA, CLASSES, ["macro_f1", "min_recall"])
    np.testing.assert_allclose(numbers(own), numbers(other), atol=1e-12)


def test_several_outputs_have_the_numbers_of_their_probabilities():
    Q = np.stack([P, P[::-1]], 1)
    both = np.stack([Y, Y[::-1]], 1)
    L = np.log(Q / (1 - Q))
    own = mw.evaluate(rule_of(L, both, "f1", "logits", average="macro"), L, both, "f1", average="macro")
    other = mw.evaluate(rule_of(Q, both, "f1", "probabilities", average="macro"), Q, both, "f1", average="macro")
    np.testing.assert_allclose(numbers(own), numbers(other), atol=1e-12)


def test_argmax_of_logits_is_their_sign_and_of_several_their_largest():
    own = mw.evaluate(rule_of(Z, Y, "f1", "logits"), Z, Y, "f1")["f1"]
    assert own.baseline.estimate == pytest.approx(sk.f1_score(Y, Z > 0))
    scores = 7 * LOGITS
    rule = rule_of(scores, CLASSES, "macro_f1", "scores", DEFAULT)
    own = mw.evaluate(rule, scores, CLASSES, "accuracy")
    assert own["accuracy"].baseline.estimate == pytest.approx(sk.accuracy_score(CLASSES, scores.argmax(1)))
    assert own.notes == ()


@pytest.mark.parametrize("strategy", [EXPECTED, DEFAULT], ids=["expected", "default"])
def test_argmax_of_a_score_is_the_most_probable_class_by_the_map_of_the_rule(strategy):
    scores = 3 * Z + 20
    rule = rule_of(scores, Y, "f1", "scores", strategy)
    own = mw.evaluate(mw.load_rule(rule.to_json()), scores, Y, ["f1", "accuracy"])
    likely = rule.calibrated(scores) > 0.5
    assert 0 < likely.mean() < 1
    assert own["f1"].baseline.estimate == pytest.approx(sk.f1_score(Y, likely))
    assert own["f1"].value.estimate == pytest.approx(sk.f1_score(Y, scores > rule.threshold))
    assert own.notes == (
        "Scores have no argmax of their own: it is the most probable class by the rule's map to probabilities.",
    )
    assert mw.evaluate(rule, scores, Y, "f1", against=20.0).notes == ()


def test_argmax_of_a_score_with_a_map_for_each_group():
    group = np.where(rng.random(400) < 0.5, "a", "b")
    scores = 3 * Z + 20
    fitted = [rule_of(scores[group == name], Y[group == name], "f1", "scores", DEFAULT) for name in "ab"]
    parts = [mw.WeightedRule(Loss.argmax(2), part.classes, part.link, input="scores") for part in fitted]
    rule = mw.GroupedRule(tuple(parts), ("a", "b"))
    assert rule.shared_link is None
    own = mw.evaluate(rule, scores, Y, "accuracy", sensitive_features=group)
    likely = rule.calibrated(scores, sensitive_features=group) > 0.5
    assert own["accuracy"].baseline.estimate == pytest.approx(sk.accuracy_score(Y, likely))


@pytest.mark.parametrize(("kind", "threshold"), [("logits", -1.0), ("scores", 17.0), ("logits", np.inf)])
def test_a_threshold_is_one_on_the_numbers_given(kind, threshold):
    rows = Z if kind == "logits" else 3 * Z + 20
    own = mw.evaluate(threshold, rows, Y, "f1", input=kind, against=np.zeros(400, dtype=int))
    assert own["f1"].value.estimate == pytest.approx(sk.f1_score(Y, rows > threshold, zero_division=0.0))
    both = np.stack([np.zeros(400), rows], 1)
    two = mw.evaluate(threshold, both, Y, "f1", input=kind, against=np.zeros(400, dtype=int))
    np.testing.assert_array_equal(numbers(own), numbers(two))


def test_a_threshold_of_another_class_counts_from_its_side():
    both = np.stack([np.zeros(400), Z], 1)
    own = mw.evaluate(0.5, both, Y, "recall", input="logits", pos_label=0)["recall"]
    assert own.value.estimate == pytest.approx(sk.recall_score(Y, np.where(-Z > 0.5, 0, 1), pos_label=0))


def test_a_threshold_beside_a_rule_is_in_the_unit_of_the_rule():
    rule = rule_of(Z, Y, "f1", "logits")
    own = mw.evaluate(rule, Z, Y, "f1", against=rule.threshold)["f1"]
    assert own.difference.estimate == 0


def test_models_may_bring_logits_and_probabilities():
    pair = {"own": (rule_of(Z, Y, "f1", "logits"), Z), "other": (rule_of(P, Y, "f1", "probabilities"), P)}
    own = mw.evaluate(pair, Y, "f1")["f1"]
    assert own.difference.estimate == 0 == own.difference.high


def test_costs_and_abstentions():
    cost = rng.uniform(0, 4, (400, 2))
    plain = mw.Strategy(recalibrate=False)
    own = mw.optimize(Z, Y, "cost", cost=cost, input="logits", strategy=plain)
    other = mw.optimize(P, Y, "cost", cost=cost, strategy=plain)
    evaluations = mw.evaluate(own, Z, Y, cost=cost), mw.evaluate(other, P, Y, cost=cost)
    np.testing.assert_allclose(*map(numbers, evaluations), atol=1e-12)
    own = mw.optimize(Z, Y, "accuracy", abstain=0.2, input="logits", strategy=EXPECTED)
    other = mw.optimize(P, Y, "accuracy", abstain=0.2, strategy=EXPECTED)
    evaluations = mw.evaluate(own, Z, Y, "accuracy"), mw.evaluate(other, P, Y, "accuracy")
    np.testing.assert_allclose(*map(numbers, evaluations), atol=1e-12)


@pytest.mark.filterwarnings("error")
def test_scores_whose_sign_says_nothing_do_not_look_like_other_classes():
    scores = 3 * Z + 1000
    mw.evaluate(rule_of(scores, Y, "f1", "scores"), scores, Y, "f1")
    mw.evaluate(999.0, scores, Y, "f1", input="scores", against=1000.0)


def test_rows_of_a_table():
    pa = pytest.importorskip("pyarrow")
    rows = pa.table({"y": Y, "proba_0": np.zeros(400), "proba_1": Z})
    table = mw.Table(rows)
    rule = rule_of(np.stack([np.zeros(400), Z], 1), Y, "f1", "logits")
    own, other = mw.evaluate(rule, table, "y", "f1"), mw.evaluate(rule, Z, Y, "f1")
    np.testing.assert_allclose(numbers(own), numbers(other), atol=1e-12)


def test_logits_between_0_and_1_raise_a_warning():
    rule = rule_of(Z, Y, "f1", "logits")
    with pytest.warns(UserWarning, match=r"the rule takes them for log-odds; .* pass np\.log\(p / \(1 - p\)\)"):
        mw.evaluate(rule, P, Y, "f1")
    with pytest.warns(UserWarning, match=r"input='logits' takes them for log-odds; .* leave input='logits' out"):
        mw.evaluate(0.3, P, Y, "f1", input="logits")


REFUSED = {
    "another input": (
        lambda: mw.evaluate(rule_of(Z, Y, "f1", "logits"), Z, Y, "f1", input="probabilities"),
        r"evaluate: the rule was fitted to logits, got input='probabilities'; leave input out, and pass logits\.",
    ),
    "no input": (
        lambda: mw.evaluate(0.3, P, Y, "f1", input="odds"),
        "evaluate: input must be one of 'probabilities', 'logits', 'log_proba', 'scores', got 'odds'",
    ),
    "two inputs": (
        lambda: mw.evaluate(rule_of(Z, Y, "f1", "logits"), Z, Y, "f1", against=rule_of(P, Y, "f1", "probabilities")),
        "rule and against must be fitted to the same numbers, got logits and probabilities; to compare them, pass",
    ),
    "scores without a map": (
        lambda: mw.evaluate(17.0, 3 * Z + 20, Y, "f1", input="scores"),
        "against must be given if no rule maps scores to probabilities, because a single column of scores has",
    ),
    "threshold above 1": (
        lambda: mw.evaluate(1.5, P, Y, "f1"),
        r"rule as a threshold must be a number in \[0, 1\], got 1\.5; pass input='logits' or input='scores'",
    ),
    "probabilities for a rule on logits": (
        lambda: mw.evaluate(rule_of(LOGITS, CLASSES, "macro_f1", "logits"), ETA, CLASSES, "macro_f1"),
        r"must be logits because the rule takes logits, got .* which are probabilities; pass np\.log\(proba\)\.",
    ),
    "logits for a rule on probabilities": (
        lambda: mw.evaluate(rule_of(P, Y, "f1", "probabilities"), Z, Y, "f1"),
        "must be non-negative, .* use a rule that was fitted to logits or scores",
    ),
    "NaN": (lambda: mw.evaluate(0.0, np.where(Y == 1, np.nan, Z), Y, "f1", input="logits"), "must not be NaN"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals(case):
    call, message = REFUSED[case]
    with pytest.raises(ValueError, match=message):
        call()
