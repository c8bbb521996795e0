"""Frontiers, tables and files of rules on logits and scores."""

import numpy as np
import pytest

import metricwise as mw
import worlds
from metricwise.displays import FrontierDisplay

rng = np.random.default_rng(0)
P, Y = worlds.binary(400, seed=rng)
Z = np.log(P / (1 - P))
ETA, CLASSES = worlds.multiclass(400, seed=rng)


@pytest.mark.parametrize("strategy", [None, mw.Strategy(confusion="expected", recalibrate=False)])
def test_the_frontier_of_logits_is_that_of_their_probabilities(strategy):
    own = mw.trade_off(Z, Y, "recall", "precision", n_points=6, input="logits", strategy=strategy)
    other = mw.trade_off(P, Y, "recall", "precision", n_points=6, strategy=strategy)
    np.testing.assert_allclose(own.values, other.values, atol=1e-9)
    np.testing.assert_allclose(own.others, other.others, atol=1e-9)
    np.testing.assert_allclose(own.baseline, other.baseline, atol=1e-9)
    assert {rule.input for rule in own.rules} == {"logits"}


def test_the_frontier_of_scores_is_that_of_any_increasing_map_of_them():
    other = mw.trade_off(P, Y, "recall", "precision", n_points=6)
    own = mw.trade_off(3 * Z + 20, Y, "recall", "precision", n_points=6, input="scores")
    np.testing.assert_allclose(own.values, other.values, atol=1e-9)
    point = own.choose(0.5)
    assert (3 * Z[Y == 1] + 20 > point.rule.threshold).mean() == pytest.approx(point.value)
    plt = pytest.importorskip("matplotlib.pyplot")
    assert FrontierDisplay.from_trade_off(own, bound=0.5).ax_.get_xlabel() == "precision"
    plt.close("all")


def test_the_frontier_of_several_classes():
    options = {"n_points": 4, "classes": [0, 1, 2]}
    own = mw.trade_off(np.log(ETA), CLASSES, "accuracy", "recall[2]", input="log_proba", **options)
    other = mw.trade_off(ETA, CLASSES, "accuracy", "recall[2]", **options)
    np.testing.assert_allclose(own.values, other.values, atol=0.01)
    np.testing.assert_allclose(own.baseline, other.baseline, atol=1e-9)


def test_a_frontier_of_another_input_is_refused():
    with pytest.raises(ValueError, match="trade_off: input must be one of 'probabilities', 'logits'"):
        mw.trade_off(Z, Y, "recall", "precision", input="odds")
    with pytest.raises(ValueError, match=r"trade_off: proba must be non-negative, .*; pass input='logits' for numbers"):
        mw.trade_off(Z, Y, "recall", "precision")


@pytest.mark.parametrize(("kind", "rows"), [("logits", Z), ("scores", 3 * Z + 20)])
def test_a_solution_comes_back_from_a_file(kind, rows, tmp_path):
    solution = mw.optimize(rows, Y, "f1", input=kind)
    solution.save(tmp_path / "solution.json")
    loaded = mw.load_solution(tmp_path / "solution.json")
    assert loaded.rule == solution.rule
    assert loaded.rule.input == kind
    assert loaded.threshold == solution.threshold
    np.testing.assert_array_equal(loaded.threshold_range, solution.threshold_range)
    np.testing.assert_array_equal(loaded.predict(rows), solution.predict(rows))


@pytest.mark.parametrize(("kind", "factor"), [("logits", 1.0), ("log_proba", 1.0), ("scores", 5.0)])
def test_a_table_of_logits_is_decided_as_an_array_is(kind, factor, tmp_path):
    pa = pytest.importorskip("pyarrow")
    rows = factor * np.log(ETA)
    rule = mw.optimize(rows, CLASSES, "macro_f1", input=kind, classes=[0, 1, 2]).rule
    table = pa.table({f"proba_{k}": rows[:, k] for k in range(3)})
    mw.predict_table(rule, mw.Table(table), tmp_path / "decisions.csv")
    decided = np.loadtxt(tmp_path / "decisions.csv", skiprows=1, dtype=int)
    np.testing.assert_array_equal(decided, rule.predict(rows))


def test_a_table_of_logits_is_refused_by_a_rule_on_probabilities(tmp_path):
    pa = pytest.importorskip("pyarrow")
    rule = mw.WeightedRule.from_weights([1.0, 2.0, 3.0])
    table = mw.Table(pa.table({f"proba_{k}": np.log(ETA[:, k]) for k in range(3)}))
    with pytest.raises(ValueError, match=r"must be non-negative, .*; use a rule that was fitted to logits"):
        mw.predict_table(rule, table, tmp_path / "decisions.csv")


REMEDY = (
    "pass input='logits' for numbers before a softmax or sigmoid, input='log_proba' for log-probabilities, "
    "input='scores' for scores of any other scale"
)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (Z, f"proba must be non-negative, got .* in row .*; {REMEDY}"),
        (np.exp(Z) + 1, f"proba must be at most 1, got .*; {REMEDY}"),
        (np.stack([P, P], 1) + 0.5, f"proba must sum to 1 .* in row 0; divide scores by their sum, or {REMEDY}"),
    ],
)
def test_the_remedy_for_numbers_that_are_no_probabilities_names_the_input(rows, message):
    with pytest.raises(ValueError, match=message):
        mw.optimize(rows, Y, "f1")


def test_the_remedy_of_a_rule_is_another_rule():
    rule = mw.WeightedRule.from_thresholds(0.3)
    with pytest.raises(ValueError, match="use a rule that was fitted to logits or scores, because"):
        rule.predict(Z)


def test_the_remedies_of_rules_on_other_numbers_name_no_parameter():
    rule = mw.optimize(np.log(ETA), CLASSES, "macro_f1", input="log_proba", classes=[0, 1, 2]).rule
    with pytest.raises(ValueError, match=r"sum to 1 .* because the rule takes log-probabilities, .*; subtract"):
        rule.predict(np.log(ETA) + 1)
    binary = mw.optimize(np.log(np.stack([1 - P, P], 1)), Y, "f1", input="log_proba").rule
    with pytest.raises(ValueError, match=r"all classes, .* because the rule takes log-probabilities, got a single"):
        binary.predict(Z)
