"""Decisions about a batch of rows: exact where that is claimed, and elsewhere better than rows decided one by one."""

import itertools

import numpy as np
import pytest
from scipy import sparse

from metricwise.core.errors import InvalidParameter
from metricwise.rules import LabelRule, LabelSetRule
from metricwise.rules.label_batch import BatchForm

PRECISION = {"numerator": (1, 0, 0, 0), "denominator": (0, 0, 1, 0)}
RECALL = {"numerator": (1, 0, 0, 0), "denominator": (0, 1, 0, 0)}
F1 = {"numerator": (2, 0, 0, 0), "denominator": (0, 1, 1, 0)}
JACCARD = {"numerator": (1, 0, 0, 0), "denominator": (-1, 1, 1, 0)}
FORMS = {"precision": PRECISION, "recall": RECALL, "f1": F1, "jaccard": JACCARD}
SEEDS = range(8)


def batch(seed, n_rows=3, n_labels=3):
    rng = np.random.default_rng(seed)
    return np.where(rng.random((n_rows, n_labels)) < 0.8, rng.random((n_rows, n_labels)), 0.0)


def expected_value(form, eta, decided, weight=None):
    """What decisions about rows are worth, label by label: means of Poisson numbers, or of certain ones."""
    form = BatchForm.of(form)
    tp, true, predicted, total = (eta * decided).sum(0), eta.sum(0), decided.sum(0).astype(float), len(eta)
    weight = np.ones(eta.shape[1]) if weight is None else np.asarray(weight)
    if form.coverage:
        return weight @ (1 - np.prod(np.where(decided, 1 - np.minimum(eta, 1), 1.0), axis=0))
    counts = np.array([tp, true, predicted, np.full_like(tp, total)])
    numerator, denominator = np.dot(form.numerator, counts), np.dot(form.denominator, counts)
    if form.pooled:
        return (weight @ numerator) / (weight @ denominator) if weight @ denominator > 0 else 0.0
    if form.damped:
        x = denominator / form.numerator[0]
        return weight @ np.array([t * (-np.expm1(-z) / z if z > 0 else 1.0) for t, z in zip(tp, x, strict=True)])
    return weight @ np.array([a / b if b > 0 else 0.0 for a, b in zip(numerator, denominator, strict=True)])


def all_decisions(eta, budget):
    """Every decision about the rows that the budget allows."""
    low, high = (0, eta.shape[1]) if budget is None else budget
    rows = [row for row in itertools.product((0, 1), repeat=eta.shape[1]) if low <= sum(row) <= high]
    return (np.array(choice) for choice in itertools.product(rows, repeat=len(eta)))


def best_of_all(form, eta, budget, weight=None):
    return max(expected_value(form, eta, decided, weight) for decided in all_decisions(eta, budget))


def rule_of(form, n_labels, budget=None, **options):
    return LabelRule(np.ones(n_labels), np.zeros(n_labels), budget, form=form, **options)


def decide(rule, eta):
    decided = rule.predict_together(sparse.csr_array(eta)).toarray()
    np.testing.assert_array_equal(rule.predict_together(eta), decided)
    return decided


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("budget", [None, (0, 1), (1, 2), (2, 2)])
@pytest.mark.parametrize("name", FORMS)
def test_pooled_ratios_are_maximised(name, budget, seed):
    form, eta = {**FORMS[name], "pooled": True}, batch(seed)
    value = expected_value(form, eta, decide(rule_of(form, 3, budget), eta))
    assert value == pytest.approx(best_of_all(form, eta, budget), rel=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_pooled_ratios_with_factors_and_weights(seed):
    form, eta, factor, weight = {**F1, "pooled": True}, batch(seed), np.array([0.5, 1.0, 0.25]), [1.0, 3.0, 0.5]
    decided = decide(rule_of(form, 3, (0, 1), factor=factor, label_weight=weight), eta)
    best = best_of_all(form, eta * factor, (0, 1), weight)
    assert expected_value(form, eta * factor, decided, weight) == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", ["f1", "jaccard", "recall"])
def test_without_a_budget_every_label_has_its_best_threshold(name, seed):
    form, eta = FORMS[name], batch(seed, n_rows=6, n_labels=2)
    decided = decide(rule_of(form, 2), eta)
    assert expected_value(form, eta, decided) == pytest.approx(best_of_all(form, eta, None), rel=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", ["f1", "precision"])
def test_damped_thresholds_are_good(name, seed):
    form, eta = {**FORMS[name], "damped": True}, batch(seed, n_rows=6, n_labels=2)
    value = expected_value(form, eta, decide(rule_of(form, 2), eta))
    assert value >= 0.97 * best_of_all(form, eta, None)


@pytest.mark.parametrize("damped", [False, True])
@pytest.mark.parametrize("budget", [(0, 1), (1, 2), (2, 2)])
@pytest.mark.parametrize("name", FORMS)
def test_rows_in_turn_reach_nearly_the_best(name, budget, damped):
    form = {**FORMS[name], "damped": damped and name != "jaccard"}
    reached = [(expected_value(form, eta, decide(rule_of(form, 3, budget), eta)), best_of_all(form, eta, budget))
               for eta in map(batch, SEEDS)]  # fmt: skip
    values, best = np.array(reached).T
    assert (values <= best + 1e-9).all()
    assert values.sum() >= (0.85 if name == "jaccard" else 0.95) * best.sum()  # by slopes, or by exact differences


@pytest.mark.parametrize("budget", [(0, 1), (1, 2)])
def test_coverage_in_turn_reaches_nearly_the_best(budget):
    form = {**RECALL, "coverage": True}
    values = [expected_value(form, eta, decide(rule_of(form, 3, budget), eta)) for eta in map(batch, SEEDS)]
    assert sum(values) >= 0.95 * sum(best_of_all(form, eta, budget) for eta in map(batch, SEEDS))


def test_coverage_without_a_budget_predicts_every_chance():
    eta = batch(0)
    assert (decide(rule_of({**RECALL, "coverage": True}, 3), eta) == (eta > 0)).all()


def test_weights_of_labels_decide_between_them():
    form, eta = {**RECALL, "coverage": True}, np.full((1, 3), 0.5)
    assert decide(rule_of(form, 3, 1, label_weight=[1.0, 1.0, 2.0]), eta).tolist() == [[0, 0, 1]]
    assert decide(rule_of(form, 3, 1, factor=[0.5, 1.0, 1.0]), eta).tolist() == [[0, 1, 0]]


@pytest.mark.parametrize("budget", [None, 1, (1, 2)])
def test_many_rows_are_worth_more_together(budget):
    rng = np.random.default_rng(1)
    eta = np.where(rng.random((400, 30)) < 0.2, rng.beta(1, 3, (400, 30)), 0.0)
    for form, least_gain in (({**F1, "damped": True}, 1.002), ({**PRECISION, "damped": True}, 1.2)):
        rule = LabelRule(np.ones(30), np.full(30, -0.25), budget, form=form)
        decided = decide(rule, eta)
        assert expected_value(form, eta, decided) > least_gain * expected_value(form, eta, rule.predict(eta))
        assert decided.sum(axis=1).max() <= (30 if budget is None else rule.labels_per_row[1])


def test_rows_that_store_too_few_are_filled_up():
    rule = rule_of({**F1, "damped": True}, 5, (2, 3))
    decided = rule.predict_together(sparse.csr_array(np.eye(5)[:3] * 0.5))
    assert decided.sum(axis=1).min() == 2
    decided.check_format(full_check=True)


def test_rows_without_entries():
    empty = sparse.csr_array((3, 4))
    assert rule_of(F1, 4, 2).predict_together(empty).nnz == 0
    assert rule_of(F1, 4).predict_together(empty).nnz == 0
    assert rule_of({**F1, "pooled": True}, 4, (1, 2)).predict_together(empty).toarray().tolist() == [[1, 0, 0, 0]] * 3


def test_linear_metrics_are_decided_row_by_row():
    eta = batch(3, n_rows=20)
    for budget in (None, 1, (1, 2)):
        rule = LabelRule([1.0, 2.0, 0.5], [-0.5, -0.25, 0.0], budget, 0.8, 0.1, linear=True)
        np.testing.assert_array_equal(rule.predict_together(eta), rule.predict(eta))
    sets = LabelSetRule(3)
    np.testing.assert_array_equal(sets.predict_together(eta), sets.predict(eta))


def test_recalibrated_rows_are_decided_together():
    eta = batch(4, n_rows=30)
    rule = rule_of({**F1, "damped": True}, 3, 1, temperature=0.5, bias=0.5)
    plain = rule_of({**F1, "damped": True}, 3, 1)
    np.testing.assert_array_equal(decide(rule, eta), plain.predict_together(rule.calibrated(eta)))


def test_classes_and_kinds_of_matrices():
    rule = rule_of(F1, 3, 1, classes=(False, True))
    assert rule.predict_together(batch(0)).dtype == bool
    assert isinstance(rule.predict_together(sparse.csc_matrix(batch(0))), sparse.csr_matrix)


@pytest.mark.parametrize(
    "entries", [{"subject_to": ["precision >= 0.5"]}, {"promises": [{"name": "precision >= 0.5"}]}]
)
def test_rules_under_constraints_are_refused(entries):
    with pytest.raises(
        InvalidParameter,
        match=r"rule must be fitted without constraints .*, got a rule subject to precision >= 0.5; use",
    ):
        rule_of(F1, 3, 1, metadata=entries).predict_together(batch(0))


def test_rules_without_a_form_are_refused():
    with pytest.raises(
        InvalidParameter, match=r"rule must know what decisions about a batch are worth.*; use rule.predict"
    ):
        LabelRule.top(1, 3).predict_together(batch(0))
