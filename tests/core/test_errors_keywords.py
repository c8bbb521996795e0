"""Settings that are fields of objects: as keywords they are refused by a sentence that says what to pass instead."""

import inspect

import pytest
from sklearn.linear_model import LogisticRegression

import metricwise as mw
from metricwise.core.errors import HOMES, Sentence, argument, mention, refuses_removed

INSTEAD = {
    "confusion": "strategy=mw.Strategy(confusion=...)",
    "recalibrate": "strategy=mw.Strategy(recalibrate=...)",
    "solver": "strategy=mw.Strategy(solver=...)",
    "tol": "strategy=mw.Strategy(tol=...)",
    "randomized": "strategy=mw.Strategy(randomized=...)",
    "weight_kind": "sample_weight=mw.Frequencies(weight)",
    "time": "groups=mw.InTime(time)",
    "half_life": "groups=mw.InTime(time, half_life=...)",
    "group_aware": "sensitive_features=mw.Sensitive(values, group_aware=...)",
    "abstain_label": "abstain=mw.Abstention(cost, label=...)",
    "zero_division": "mw.metrics.FBeta(zero_division=...)",
    "missing": "np.ma.masked_equal(y, code)",
    "normalize": "proba / proba.sum(axis=-1, keepdims=True)",
}
P, Y = [0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1]
RULE = mw.WeightedRule.from_thresholds(0.5)
CALLS = {
    "optimize": lambda **options: mw.optimize(P, Y, "f1", **options),
    "trade_off": lambda **options: mw.trade_off(P, Y, "recall", "precision", **options),
    "evaluate": lambda **options: mw.evaluate(RULE, P, Y, "f1", **options),
    "make_scorer": lambda **options: mw.make_scorer("f1", **options),
    "MetricOptimalClassifierCV": lambda **options: mw.MetricOptimalClassifierCV(LogisticRegression(), **options),
}
PARAMETERS = """proba y metric average output_weight pos_label order classes input sample_weight groups
sensitive_features segments cost subject_to confidence guarantee unlabelled abstain prior labels_per_row record strategy
random_state verbose"""


@pytest.mark.parametrize("name", INSTEAD)
@pytest.mark.parametrize("owner", CALLS)
def test_a_keyword_that_is_gone_is_refused_by_its_successor(owner, name):
    with pytest.raises(TypeError) as caught:
        CALLS[owner](**{name: None})
    said = str(caught.value)
    assert said.startswith(f"{owner}: {name}= is not a parameter; ")
    assert INSTEAD[name] in said
    assert said.endswith(".")


def test_other_keywords_are_refused_by_python():
    with pytest.raises(TypeError, match="unexpected keyword argument 'colour'"):
        mw.optimize(P, Y, "f1", colour="red")


def test_a_parameter_of_that_name_is_taken():
    assert mw.MetricWeightedClassifier(LogisticRegression(), tol=0.1).tol == 0.1
    assert refuses_removed("f")(lambda *, time: time)(time=3) == 3


def test_the_parameters_of_optimize_and_of_the_estimator():
    assert list(inspect.signature(mw.optimize).parameters) == PARAMETERS.split()
    assert len(mw.MetricOptimalClassifierCV(LogisticRegression()).get_params(deep=False)) == 21


@pytest.mark.parametrize("name", HOMES)
def test_advice_names_the_object_that_has_the_setting(name):
    said = str(Sentence(f"use {argument(name, True)}"))
    assert said == f"use {INSTEAD[name].replace('...', 'True')}"


def test_a_setting_without_a_value_is_named_alone():
    assert str(Sentence(f"{mention('randomized')} and {mention('Abstention.label')}")) == (
        "randomized and mw.Abstention(cost, label=...)"
    )
