"""Few rows are predicted in one compiled call: as in a large array, and with the same refusals and warnings."""

import copy
import pickle

import numpy as np
import pytest

import metricwise as mw

LABELS = {2: ["no", "yes"], 3: ["low", "middle", "high"]}
MANY = 400  # rows that are read, checked and decided by passes


def rows(n_classes, n_rows=MANY):
    return np.random.default_rng(n_classes).dirichlet(np.ones(n_classes), size=n_rows)


def fitted(n_classes, recalibrate, metric="macro_f1", labels=True):
    proba = rows(n_classes) ** 1.5
    proba /= proba.sum(axis=1, keepdims=True)
    rng = np.random.default_rng(0)
    y = np.array([rng.choice(n_classes, p=p) for p in rows(n_classes)])
    y = np.array(LABELS[n_classes])[y] if labels else y
    return mw.optimize(proba, y, metric, strategy=mw.Strategy("labels", recalibrate=recalibrate)).rule


@pytest.mark.parametrize("kind", [np.float64, np.float32])
@pytest.mark.parametrize("metric", ["macro_f1", "quadratic_kappa"])
@pytest.mark.parametrize("recalibrate", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_rows_one_by_one_are_predicted_as_together(n_classes, recalibrate, metric, kind):
    rule = fitted(n_classes, recalibrate, metric, labels=metric == "macro_f1")
    proba = rows(n_classes).astype(kind)
    together = rule.predict(proba)
    one_by_one = np.concatenate([rule.predict(proba[at : at + 1]) for at in range(MANY)])
    assert one_by_one.dtype == together.dtype
    assert (one_by_one == together).all()
    assert (rule.predict(proba[::-7][:50]) == together[::-7][:50]).all()


def test_single_columns(recwarn):
    rule = fitted(2, True, labels=False)
    p = rows(2)[:, 1]
    together = rule.predict(p)
    assert (np.concatenate([rule.predict(p[at : at + 1]) for at in range(MANY)]) == together).all()
    assert (rule.predict(p[:1], pos_label=0) == rule.predict(1 - p[:1])).all()
    assert not recwarn.list


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([[0.2, np.nan, 0.8]], "must be finite, got NaN or infinity in row 0"),
        ([[0.2, -0.1, 0.9]], "must be non-negative, got -0.1 in row 0"),
        ([[0.2, 0.2, 0.2]], "must sum to 1"),
        ([[0.5, 0.5]], "have 3 classes|3 columns|classes"),
        ([0.2, 0.3, 0.5], "single row must have shape"),
    ],
)
def test_refusals_are_those_of_many_rows(given, message):
    rule = fitted(3, True)
    rule.predict(rows(3)[:1])
    with pytest.raises(ValueError, match=message):
        rule.predict(np.array(given))


def test_two_numbers_may_be_one_row():
    rule = fitted(2, False, labels=False)
    rule.predict(np.array([0.3]))
    with pytest.warns(UserWarning, match="sums to 1 like one row"):
        rule.predict(np.array([0.3, 0.7]))


def test_a_column_of_the_first_class_is_asked_about():
    rule = fitted(2, False)
    rule.predict(rows(2)[:1])
    with pytest.warns(UserWarning, match="is assumed to be that of 'yes'"):
        rule.predict(np.array([0.3]))


def test_further_arguments_are_still_read():
    rule = fitted(3, False)
    rule.predict(rows(3)[:1])
    with pytest.raises(ValueError, match="start"):
        rule.predict(rows(3)[:1], start=-1)
    with pytest.raises(ValueError, match="cost"):
        rule.predict(rows(3)[:1], cost=np.ones((1, 3)))


def test_rules_that_have_predicted_are_copied_and_pickled():
    rule = fitted(3, True)
    expected = rule.predict(rows(3)[:5])
    again = pickle.loads(pickle.dumps(rule))  # noqa: S301  our own
    for other in (again, copy.deepcopy(rule), rule.with_metadata(date="2026-11-17")):
        assert (other.predict(rows(3)[:5]) == expected).all()
    assert len(pickle.dumps(rule)) == len(pickle.dumps(fitted(3, True)))


def test_rules_that_may_abstain_or_take_logits_are_read_as_before():
    proba, y = rows(3), np.random.default_rng(0).integers(0, 3, MANY)
    rule = mw.optimize(proba, y, "accuracy", abstain=0.4, strategy=mw.Strategy("labels", recalibrate=False)).rule
    assert (rule.predict(proba[:20]) == rule.predict(proba)[:20]).all()
    fixed = mw.Strategy("labels", recalibrate=True)
    rule = mw.optimize(np.log(proba), y, "macro_f1", input="logits", strategy=fixed).rule
    assert (rule.predict(np.log(proba[:20])) == rule.predict(np.log(proba))[:20]).all()
