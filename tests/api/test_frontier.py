"""The frontier of two metrics against exhaustive searches and linear programmes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as sk

import metricwise as mw
import worlds
from profiles import examples
from programmes import best_of_all


@examples(25)
@given(seed=st.integers(0, 10_000), digits=st.integers(1, 6), n=st.integers(20, 200), ceiling=st.booleans())
def test_every_point_is_the_best_of_all_thresholds(seed, digits, n, ceiling):
    p, y = worlds.binary(n, decimals=digits, seed=seed)
    if y.min() == y.max():
        return
    against = "share" if ceiling else "precision"
    frontier = mw.trade_off(p, y, "recall", against, ceiling=ceiling, n_points=6)
    decisions = [(p > t).astype(int) for t in np.append(-1.0, np.unique(p))]
    if not ceiling:
        decisions = [own for own in decisions if own.any()]  # nothing predicted has no precision
    recall = np.array([sk.recall_score(y, own) for own in decisions])
    other = np.array([own.mean() if ceiling else sk.precision_score(y, own) for own in decisions])
    for bound, value in zip(frontier.bounds, frontier.values, strict=True):
        kept = other <= bound + 1e-9 if ceiling else other >= bound - 1e-9
        assert value == pytest.approx(recall[kept].max(), abs=1e-9)
    if ceiling:
        assert frontier.bounds[-1] == pytest.approx(other.min())
    else:
        assert frontier.bounds[-1] == pytest.approx(other.max(), abs=1e-4)  # found by halving
    for index in range(len(frontier)):
        point = frontier[index]
        decided = point.rule.predict(p)
        assert point.value == pytest.approx(sk.recall_score(y, decided))
        assert point.against == pytest.approx(decided.mean() if ceiling else sk.precision_score(y, decided))


def test_mixtures_are_as_good_as_a_linear_programme_over_all_of_them():
    rng = np.random.default_rng(3)
    eta = rng.dirichlet([2, 1, 1], 12)
    frontier = mw.trade_off(
        eta, None, "accuracy", "recall[2]", classes=[0, 1, 2], n_points=6, strategy=mw.Strategy(randomized=True)
    )
    recall = np.diag([0.0, 0.0, 1 / eta[:, 2].mean()])
    for bound, value in zip(frontier.bounds, frontier.values, strict=True):
        best = best_of_all(eta[:, None], np.eye(3)[None], [(recall[None], bound - 1e-9)])
        assert value == pytest.approx(best, abs=1e-6)


def test_several_classes_go_down_from_the_best_rule_for_the_metric():
    proba, y = worlds.multiclass(300, [3, 1, 1], names=["low", "mid", "urgent"])
    frontier = mw.trade_off(proba, y, "accuracy", "recall[urgent]", n_points=6, record=["macro_f1", "kappa"])
    assert np.all(frontier.others >= frontier.bounds - 1e-9)
    assert frontier.others[0] < 0.6 < frontier.others[-1]
    for rule, value, other, f1, kappa in zip(
        frontier.rules,
        frontier.values,
        frontier.others,
        frontier.recorded["macro_f1"],
        frontier.recorded["kappa"],
        strict=True,
    ):
        decided = rule.predict(proba)
        assert value == pytest.approx(np.mean(decided == y))
        assert other == pytest.approx(sk.recall_score(y, decided, labels=["urgent"], average="macro"))
        assert f1 == pytest.approx(sk.f1_score(y, decided, average="macro"))
        assert kappa == pytest.approx(sk.cohen_kappa_score(y, decided))
    plain = np.array(["low", "mid", "urgent"])[proba.argmax(axis=1)]
    assert frontier.baseline == pytest.approx(
        (np.mean(plain == y), sk.recall_score(y, plain, labels=["urgent"], average="macro"))
    )
    assert frontier.recorded_baseline["kappa"] == pytest.approx(sk.cohen_kappa_score(y, plain))


def test_every_point_keeps_what_it_is_subject_to():
    proba, y = worlds.multiclass(300, [3, 1, 1], names=["low", "mid", "urgent"])
    frontier = mw.trade_off(proba, y, "accuracy", "recall[urgent]", n_points=5, subject_to="share[mid] <= 0.1")
    assert all(np.mean(rule.predict(proba) == "mid") <= 0.1 + 1e-9 for rule in frontier.rules)
    with pytest.raises(ValueError, match=r"'share\[mid\] <= -0.1' can never be satisfied"):
        mw.trade_off(proba, y, "accuracy", "recall[urgent]", subject_to="share[mid] <= -0.1")


@pytest.mark.parametrize("against", ["precision", "precision[sport, 1]"])
def test_several_outputs(against):
    import pandas as pd

    rng = np.random.default_rng(0)
    p = pd.DataFrame(rng.beta(1, 3, (500, 3)), columns=["news", "sport", "art"])
    y = (rng.random((500, 3)) < p).astype(int)
    frontier = mw.trade_off(p, y, "f1", against, average="macro", n_points=4)
    for rule, value, other in zip(frontier.rules, frontier.values, frontier.others, strict=True):
        decided = rule.predict(p)
        assert value == pytest.approx(sk.f1_score(y, decided, average="macro", zero_division=0))
        if against == "precision":
            assert other == pytest.approx(sk.precision_score(y.to_numpy().ravel(), np.asarray(decided).ravel()))
        else:
            assert other == pytest.approx(sk.precision_score(y["sport"], np.asarray(decided)[:, 1]))
    assert np.all(frontier.others >= frontier.bounds - 1e-6)


def test_the_chosen_point():
    p, y = worlds.binary(decimals=3)
    frontier = mw.trade_off(p, y, "recall", "precision", n_points=9)
    point = frontier.choose(0.55)
    assert point.against >= 0.55
    better = frontier.values > point.value
    assert np.all(frontier.others[better] < 0.55)
    down = mw.trade_off(p, y, "recall", "share", n_points=9, ceiling=True).choose(0.3)
    assert down.against <= 0.3
    with pytest.raises(ValueError, match="bound must be satisfied by at least one point, up to"):
        frontier.choose(1.5)


def test_a_table():
    p, y = worlds.binary(decimals=3)
    table = mw.trade_off(p, y, "recall", "precision", n_points=4, record=["f1"]).to_dict()
    assert list(table) == ["bound", "recall", "precision", "f1"]
    assert all(column.shape == (4,) for column in table.values())


def test_rules_say_what_they_keep():
    p, y = worlds.binary(decimals=3)
    rule = mw.trade_off(p, y, "recall", "precision", n_points=3).rules[1]
    (said,) = rule.metadata.subject_to
    assert said.startswith("precision >= 0.")
    assert mw.load_rule(rule.to_json()).metadata.subject_to == [said]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_points": 1}, "n_points must be a whole number of at least 2, got 1"),
        ({"n_points": 2.5}, "n_points must be a whole number"),
        ({"ceiling": "yes"}, "ceiling must be True or False"),
        ({"random_state": -1}, "random_state must be None or a non-negative integer"),
        ({"strategy": mw.Strategy(solver="path")}, "strategy must leave solver and tol at their defaults"),
        ({"strategy": mw.Strategy(tol=0.1)}, "strategy must leave solver and tol at their defaults"),
        ({"against": "precision >= 0.5"}, "against must be a metric without a bound, got 'precision >= 0.5'"),
        ({"against": mw.at_least("precision", 0.5)}, "against must be a metric without a bound"),
        ({"y": None, "strategy": mw.Strategy(confusion="labels")}, "needs y"),
    ],
)
def test_what_is_refused(options, message):
    p, y = worlds.binary(decimals=3)
    options = {"y": y, "against": "precision", **options}
    with pytest.raises(ValueError, match=message):
        mw.trade_off(p, metric="recall", **options)


def test_rules_describe_what_they_keep():
    p, y = worlds.binary(decimals=3)
    rule = mw.optimize(p, y, "recall", subject_to=["precision >= 0.3", "share <= 0.5"]).rule
    said = mw.load_rule(rule.to_json()).describe().splitlines()[0]
    assert said == "Rule for recall, subject to precision >= 0.3 and share <= 0.5, with a confidence of 0.95."
