"""Losses and costs: minimised, and shown as what they are, whatever they are called."""

import functools

import numpy as np
import pytest
import sklearn.metrics as sk

import metricwise as mw
import worlds
from metricwise.inspection.card import solution_card
from metricwise.inspection.summary import advice
from metricwise.metrics import from_function, resolve
from metricwise.metrics.resolution import to_maximise
from metricwise.report import render, summarize

FIXED = {"confusion": "labels", "recalibrate": False}
KNOWN = [sk.zero_one_loss, sk.hamming_loss]


def my_loss(y_true, y_pred, sample_weight=None):
    """What no metric of ours is: the root of the share of errors."""
    return float(np.sqrt(np.average(np.asarray(y_true) != np.asarray(y_pred), weights=sample_weight)))


def draw(n=1_500):
    """Rows of three classes whose probabilities say too much of the second one."""
    truth, y = worlds.multiclass(n, [2.0, 1.0, 1.0])
    return worlds.normalized(truth * [1.0, 3.0, 1.0]), y


@pytest.mark.parametrize(
    "loss",
    [
        *KNOWN,
        functools.partial(sk.zero_one_loss),
        "zero_one_loss",
        "neg_hamming_loss",
        sk.make_scorer(sk.zero_one_loss, greater_is_better=False),
        lambda y, p: -sk.zero_one_loss(y, p),
        from_function(lambda y, p: sk.zero_one_loss(y, p), greater_is_better=False),
    ],
)
def test_a_loss_is_minimised_and_its_value_is_minus_the_loss(loss):
    P, y = draw()
    found, best = (
        mw.optimize(P, y, loss, strategy=mw.Strategy(**FIXED)),
        mw.optimize(P, y, "accuracy", strategy=mw.Strategy(**FIXED)),
    )
    assert (found.rule.predict(P) == best.rule.predict(P)).all()
    assert found.value == pytest.approx(-sk.zero_one_loss(y, found.rule.predict(P)), abs=1e-12)
    assert found.baseline == pytest.approx(-sk.zero_one_loss(y, P.argmax(axis=1)), abs=1e-12)
    assert found.value >= found.baseline


@pytest.mark.parametrize("loss", KNOWN)
def test_a_loss_that_is_measured_has_its_own_value(loss):
    P, y = draw()
    found = mw.optimize(P, y, "macro_f1", record=[loss], strategy=mw.Strategy(**FIXED))
    decided = found.rule.predict(P)
    assert found.recorded[loss.__name__].value == pytest.approx(loss(y, decided), abs=1e-12)
    judged = mw.evaluate(found.rule, P, y, loss)[loss.__name__]
    assert judged.value.estimate == pytest.approx(loss(y, decided), abs=1e-12)
    kept = mw.optimize(
        P, y, "recall[1]", subject_to=mw.at_most(loss, 0.41), confidence=None, strategy=mw.Strategy(**FIXED)
    )
    assert loss(y, kept.rule.predict(P)) <= 0.41 + 1e-12


def test_scores_of_losses_are_the_larger_the_better():
    P, y = draw()
    h = P.argmax(axis=1)
    assert mw.make_scorer(sk.zero_one_loss)._score_func(y, h) == pytest.approx(-sk.zero_one_loss(y, h), abs=1e-12)
    assert to_maximise(resolve(sk.zero_one_loss, "multiclass")).name == "neg_zero_one_loss"
    assert (
        mw.theory.check_monotonic(sk.zero_one_loss, 3).monotonic == mw.theory.check_monotonic("accuracy", 3).monotonic
    )


def test_several_outputs_may_have_a_loss_each():
    rng = np.random.default_rng(1)
    P = rng.random((400, 2))
    Y = (rng.random((400, 2)) < P).astype(int)
    found = mw.optimize(P, Y, [sk.zero_one_loss, "f1"], strategy=mw.Strategy(**FIXED))
    h = found.rule.predict(P)
    expected = (-sk.zero_one_loss(Y[:, 0], h[:, 0]) + sk.f1_score(Y[:, 1], h[:, 1])) / 2
    assert found.value == pytest.approx(expected, abs=1e-12)
    assert "neg_zero_one_loss" in found.rule.metadata.metric


def test_an_unknown_loss_is_asked_about():
    P, y = draw(300)
    for given in (my_loss, functools.partial(my_loss), sk.make_scorer(my_loss)):
        with pytest.raises(
            ValueError, match=r"my_loss looks like a loss.*from_function\(.*my_loss.*greater_is_better=False"
        ):
            mw.optimize(P, y, given)
    with pytest.raises(ValueError, match="mean_absolute_error looks like a loss"):
        mw.optimize(P, y, sk.mean_absolute_error)
    with pytest.raises(ValueError, match="my_loss looks like a loss"):
        mw.make_scorer(my_loss)
    with pytest.raises(ValueError, match=r"scorer of zero_one_loss says that a greater loss is better.*False"):
        mw.optimize(P, y, sk.make_scorer(sk.zero_one_loss))
    with pytest.raises(TypeError, match="greater_is_better must be True or False, got 1"):
        from_function(my_loss, greater_is_better=1)
    with pytest.raises(ValueError, match="gradient, concave and range are only for a function f"):
        from_function(my_loss, concave=True, greater_is_better=False)


def test_an_unknown_loss_is_minimised_once_it_is_called_one():
    P, y = draw(600)
    for given in (from_function(my_loss, greater_is_better=False), sk.make_scorer(my_loss, greater_is_better=False)):
        found = mw.optimize(P, y, given, strategy=mw.Strategy(confusion="labels", recalibrate=True))
        assert found.value == pytest.approx(-my_loss(y, found.rule.predict(P)), abs=1e-12)
        assert found.value > found.baseline
    greater = mw.optimize(P, y, from_function(my_loss, greater_is_better=True), strategy=mw.Strategy(**FIXED))
    assert greater.value == pytest.approx(my_loss(y, greater.rule.predict(P)), abs=1e-12)
    assert mw.evaluate(greater.rule, P, y, my_loss)["my_loss"].value.estimate == pytest.approx(greater.value)

    def of_matrix_loss(C):
        return 1 - np.trace(C) ** 2

    with pytest.raises(ValueError, match="of_matrix_loss looks like a loss"):
        mw.optimize(P, y, of_matrix_loss)
    least = mw.optimize(P, y, from_function(of_matrix_loss, greater_is_better=False), strategy=mw.Strategy(**FIXED))
    assert least.value == pytest.approx(np.trace(least.confusion[0]) ** 2 - 1, abs=1e-12)
    assert least.value >= least.baseline


@pytest.mark.parametrize("metric", [sk.log_loss, sk.brier_score_loss, sk.hinge_loss, "neg_log_loss", "brier"])
def test_what_no_decision_changes_is_refused_with_the_reason(metric):
    with pytest.raises(ValueError, match=r"evaluates the (probabilities themselves|order of the scores)"):
        mw.optimize(*draw(50), metric)


# ------------------------------------------------------------------------------------------------------- as it is shown


def test_what_is_shown_is_the_loss_and_that_it_falls(tmp_path):
    P, y = draw()
    found = mw.optimize(P, y, sk.zero_one_loss)
    assert found.gain.estimate > 0
    assert "it lowers the zero_one_loss from about 0.4" in advice(found)[1]
    assert "Rule for the lowest zero_one_loss." in found.rule.describe()
    summary = summarize(found)
    assert summary["figures"]["value"] == pytest.approx(sk.zero_one_loss(y, found.rule.predict(P)), abs=1e-12)
    assert summary["figures"]["lower_is_better"]
    along = summary["path"]["values"]["zero_one_loss"]
    assert along[summary["path"]["plain"]] == pytest.approx(sk.zero_one_loss(y, P.argmax(axis=1)), abs=1e-8)
    judged = summarize(found.rule, P, y, sk.zero_one_loss)
    assert judged["advice"]["kind"] == "yes"
    assert judged["figures"]["value"] == pytest.approx(summary["figures"]["value"], abs=1e-12)
    assert "saved on new data" in solution_card(found)
    path = tmp_path / "solution.json"
    found.save(path)
    assert summarize(mw.load_solution(path))["figures"] == summary["figures"]


def test_only_a_cost_is_shown_as_a_cost_whatever_it_is_called():
    P, y = draw()
    cost = mw.metrics.Cost([[0, 1, 2], [3, 0, 1], [1, 1, 0]])
    found = mw.optimize(P, y, "macro_f1", record={"cost": "recall_macro", "price": cost})
    shown = {one["name"]: one["value"] for one in summarize(found)["recorded"]}
    assert shown["cost"] == pytest.approx(found.recorded["cost"].value)
    assert shown["cost"] > 0
    assert shown["price (mean cost)"] == pytest.approx(-found.recorded["price"].value)
    render(summarize(found))
    named = mw.optimize(P, y, cost, record={"cost": cost})
    assert summarize(named)["metric"] == "mean cost"
    assert summarize(named)["recorded"][0]["value"] > 0


def test_from_function_asks_for_the_direction_of_a_loss():
    def my_loss(y_true, y_pred):
        return np.mean(y_true != y_pred)

    metric = mw.metrics.from_function(my_loss)
    with pytest.raises(ValueError, match=r"from_function\(my_loss, greater_is_better=False\)"):
        mw.optimize([0.1, 0.3, 0.4, 0.8], [0, 0, 1, 1], metric)
    greater = mw.metrics.from_function(my_loss, greater_is_better=True)
    assert (
        mw.optimize(
            [0.1, 0.3, 0.4, 0.8], [0, 0, 1, 1], greater, strategy=mw.Strategy(confusion="labels", recalibrate=False)
        ).value
        > 0
    )
