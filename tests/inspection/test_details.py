"""What is counted of rows for whoever looks at a rule, beside scikit-learn and plain loops."""

import pickle

import numpy as np
import pytest
from sklearn import metrics as sk
from sklearn.calibration import calibration_curve

import metricwise as mw
import worlds
from engines import served_by
from metricwise.core.losses import Loss
from metricwise.inspection.details import Details, calibration_bins
from metricwise.inspection.details.curve import at_step
from metricwise.oracles.problem import Problem
from metricwise.rules import TemperatureScaling

FIXED = {"confusion": "labels", "recalibrate": False}


def binary(n=600, seed=0, power=1.0):
    rng = np.random.default_rng(seed)
    return *worlds.binary(n, decimals=3, power=power, seed=rng), rng.integers(1, 4, n).astype(float)


def several_classes(n=500, k=4):
    rng = np.random.default_rng(0)
    P, y = worlds.multiclass(n, np.linspace(3, 0.7, k), names=["a", "b", "c", "d"][:k], seed=rng)
    return P, y, rng.integers(1, 4, n).astype(float)


# ------------------------------------------------------------------------------------------------------------ the curve


@pytest.mark.parametrize("weighted", [False, True])
def test_metrics_along_thresholds_are_those_of_scikit_learn(weighted):
    p, y, weight = binary()
    weight = weight if weighted else None
    solution = mw.optimize(p, y, "f1", record=["precision", "recall", "accuracy"], sample_weight=weight)
    curve = solution.details.curve
    assert curve.kind == "threshold"
    known = {
        "f1": lambda d: sk.f1_score(y, d, sample_weight=weight, zero_division=0.0),
        "precision": lambda d: sk.precision_score(y, d, sample_weight=weight, zero_division=0.0),
        "recall": lambda d: sk.recall_score(y, d, sample_weight=weight, zero_division=0.0),
        "accuracy": lambda d: sk.accuracy_score(y, d, sample_weight=weight),
    }
    assert list(curve.values) == list(known)
    for at in range(0, len(curve), 7):
        decided = (p > curve.position[at]).astype(int)
        matrix = sk.confusion_matrix(y, decided, sample_weight=weight, normalize="all")
        np.testing.assert_allclose(curve.confusion[at, 0], matrix, atol=1e-12)
        for name, score in known.items():
            assert curve.values[name][at] == pytest.approx(score(decided), abs=1e-12)
    assert curve.position[curve.plain] == 0.5
    assert curve.position[curve.chosen] == solution.rule.threshold
    assert curve.values["f1"][curve.plain] == pytest.approx(solution.baseline, abs=1e-12)
    assert curve.values["f1"][curve.chosen] == pytest.approx(solution.value, abs=1e-12)
    assert curve.values["recall"][0] == 1
    assert curve.values["recall"][-1] == 0


def test_metrics_along_steps_of_class_weights():
    P, y, weight = several_classes()
    rule = mw.WeightedRule.from_weights({"a": 1.0, "b": 2.0, "c": 3.5, "d": 6.0})
    details = Details.of_rows(rule, P, y, ["f1_macro", "accuracy"], sample_weight=weight)
    curve = details.curve
    assert curve.kind == "step"
    for at in range(0, len(curve), 9):
        decided = np.array(list("abcd"))[np.argmax(P * np.array([1, 2, 3.5, 6]) ** curve.position[at], axis=1)]
        assert curve.values["f1_macro"][at] == pytest.approx(
            sk.f1_score(y, decided, average="macro", sample_weight=weight), abs=1e-12
        )
        assert curve.values["accuracy"][at] == pytest.approx(
            sk.accuracy_score(y, decided, sample_weight=weight), abs=1e-12
        )


def test_steps_behind_a_link_and_of_a_full_loss():
    P, y, _ = several_classes(k=3)
    loss = np.array([[0.0, 1.0, 4.0], [2.0, 0.0, 1.0], [6.0, 2.0, 0.0]])
    link = TemperatureScaling(np.array([0.7]), np.array([[0.3, 0.0, -0.5]]))
    rule = mw.WeightedRule(Loss.from_tensor(loss), (np.array(list("abc")),), link)
    curve = Details.of_rows(rule, P, y, "accuracy").curve
    centred = loss - loss.mean(axis=1, keepdims=True)
    plain = 1 / 3 - np.eye(3)
    for at in (1, 20, 50, 77, 100):
        s = curve.position[at]
        eta = P ** (0.7**s) * np.exp(s * link.bias[0])
        size = np.linalg.norm(centred) / np.linalg.norm(plain)
        scores = eta @ ((1 - s) * size * plain + s * centred)
        decided = np.array(list("abc"))[np.argmin(scores, axis=1)]
        assert curve.values["accuracy"][at] == pytest.approx(np.mean(decided == y), abs=1e-12)
    assert curve.values["accuracy"][0] == np.mean(np.array(list("abc"))[P.argmax(axis=1)] == y)
    assert curve.values["accuracy"][curve.chosen] == pytest.approx(np.mean(rule.predict(P) == y), abs=1e-12)


@pytest.mark.parametrize("average", ["micro", "macro", "instance"])
def test_the_curve_of_several_outputs_goes_through_both_values(average):
    P, Y = worlds.binary((400, 3), a=0.6, b=2)
    fixed = mw.Strategy(confusion="expected", recalibrate=True) if average == "instance" else None  # or sets
    solution = mw.optimize(P, Y, "f1", average=average, record=["hamming_accuracy"], strategy=fixed)
    curve = solution.details.curve
    assert curve.kind == "step"
    assert curve.confusion.shape == (len(curve), 3, 2, 2)
    assert curve.values["f1"][curve.plain] == pytest.approx(solution.baseline, abs=1e-12)
    assert curve.values["f1"][curve.chosen] == pytest.approx(solution.value, abs=1e-12)
    middle = at_step(solution.rule, float(curve.position[20])).predict(P)
    name = {"instance": "samples"}.get(average, average)
    assert curve.values["f1"][20] == pytest.approx(sk.f1_score(Y, middle, average=name, zero_division=0.0), abs=1e-12)


def test_the_curve_of_a_mixture_mixes():
    P, y, _ = several_classes(k=3)
    parts = [mw.WeightedRule.from_weights(dict(zip("abc", own, strict=True))) for own in ([1, 2, 3], [3, 1, 2])]
    rule = mw.MixtureRule(tuple(parts), np.array([0.25, 0.75]))
    curve = Details.of_rows(rule, P, y, "accuracy").curve
    each = [np.mean(one.predict(P) == y) for one in parts]
    assert curve.values["accuracy"][curve.chosen] == pytest.approx(0.25 * each[0] + 0.75 * each[1], abs=1e-12)


def test_constraints_along_the_curve():
    p, y, _ = binary(2000)
    solution = mw.optimize(p, y, "recall", subject_to="precision >= 0.6")
    curve = solution.details.curve
    along = curve.bounded["precision >= 0.6"]
    for at in range(0, len(curve), 11):
        decided = (p > curve.position[at]).astype(int)
        assert along[at] == pytest.approx(sk.precision_score(y, decided, zero_division=0.0), abs=1e-12)
    assert along[curve.chosen] == pytest.approx(solution.constraints[0].value, abs=1e-12)


@pytest.mark.parametrize("prior", [None, [0.5, 0.5]])
def test_without_labels_expectations_are_counted(prior):
    p, _, _ = binary(200)
    solution = mw.optimize(p, None, "accuracy", prior=prior)
    details = solution.details
    curve = details.curve
    believed = p if prior is None else solution.rule.link.apply(solution.rule.read(p)).blocks[0][:, 0]
    for at in (0, 30, len(curve) - 1):
        hit = np.where(p > curve.position[at], believed, 1 - believed)
        assert curve.values["accuracy"][at] == pytest.approx(hit.mean(), abs=1e-9)
    assert not details.labelled
    assert details.gains is None
    assert details.reliability is None
    moved = (p > 0.5) != (p > solution.rule.threshold)
    assert details.moves.moved == pytest.approx(moved.mean(), abs=1e-12)


def test_steps_without_labels_behind_a_shift_of_the_prior():
    P, _, _ = several_classes(k=3)
    solution = mw.optimize(P, None, "macro_f1", prior=[0.2, 0.3, 0.5])
    curve = solution.details.curve
    assert curve.values["macro_f1"][curve.plain] == pytest.approx(solution.baseline, abs=1e-9)
    assert curve.values["macro_f1"][curve.chosen] == pytest.approx(solution.value, abs=1e-9)


def test_of_very_many_rows_a_sample_is_counted(monkeypatch):
    monkeypatch.setattr("metricwise.inspection.details.curve._MAX_DECIDED_ENTRIES", 500_000)
    p, y, _ = binary(20_000)
    solution = mw.optimize(p, y, "f1", strategy=mw.Strategy(**FIXED))
    curve = solution.details.curve
    assert curve.n_rows < 20_000
    assert abs(curve.values["f1"][curve.chosen] - solution.value) < 0.05
    np.testing.assert_allclose(solution.details.after, solution.confusion, atol=1e-12)


def test_very_many_classes_have_no_curve():
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(250), 300)
    solution = mw.optimize(P, rng.integers(0, 250, 300), "accuracy", classes=range(250), strategy=mw.Strategy(**FIXED))
    assert solution.details.curve is None
    assert len(solution.details.gains) <= 250


def test_a_function_of_whole_rows_is_asked_about_few_points():
    p, y, _ = binary(150)
    calls = []

    def share_right(y_true, y_pred):
        calls.append(len(y_true))
        return float(np.mean(y_true == y_pred)) ** 3  # no metric of ours

    solution = mw.optimize(p, y, share_right, strategy=mw.Strategy(**FIXED))
    before = len(calls)
    curve = solution.details.curve
    assert len(calls) - before <= 40
    assert set(calls) == {150}
    assert curve.values["share_right"][curve.plain] == pytest.approx(np.mean((p > 0.5) == y) ** 3)


def test_rules_by_group_are_rules_of_outputs():
    rng = np.random.default_rng(0)
    group = np.where(rng.random(900) < 0.4, "women", "men")
    p = np.minimum(rng.beta(1, 3, 900) * np.where(group == "men", 1.3, 1.0), 1.0)
    y = (rng.random(900) < p).astype(int)
    by = {"sensitive_features": group, "confidence": None}
    solution = mw.optimize(p, y, "accuracy", subject_to="demographic_parity <= 0.05", **by)
    details = solution.details
    curve, decided = details.curve, solution.rule.predict(p, sensitive_features=group)
    assert curve.values["accuracy"][curve.chosen] == pytest.approx(np.mean(decided == y), abs=1e-12)
    assert curve.values["accuracy"][curve.plain] == pytest.approx(np.mean((p > 0.5) == y), abs=1e-12)
    shares = [np.mean(decided[group == name]) for name in ("men", "women")]
    parity = curve.bounded["demographic_parity <= 0.05"]
    assert abs(parity[curve.chosen]) == pytest.approx(abs(shares[0] - shares[1]), abs=1e-12)
    assert details.gains.by == "group"
    for g, name in enumerate(("men", "women")):
        assert details.gains.names[g] == name
        rows = group == name
        assert details.gains.value[g, 0] == pytest.approx(np.mean(decided[rows] == y[rows]), abs=1e-12)
        np.testing.assert_allclose(
            details.after[g], sk.confusion_matrix(y[rows], decided[rows], normalize="all"), atol=1e-12
        )
    assert details.moves.moved == pytest.approx(np.mean(decided != (p > 0.5)), abs=1e-12)


# --------------------------------------------------------------------------------------- confusions, moves, reliability


def test_a_rule_that_does_not_see_groups_is_drawn_without_their_gaps():
    proba, y, _ = binary(400)
    groups = np.arange(400) % 2
    solution = mw.optimize(
        proba,
        y,
        "accuracy",
        subject_to="demographic_parity <= 0.3",
        sensitive_features=mw.Sensitive(groups, group_aware=False),
    )
    assert solution.details.curve.bounded == {}
    assert "demographic_parity" in solution._repr_html_()


def test_confusions_before_and_after():
    P, y, weight = several_classes()
    solution = mw.optimize(P, y, "macro_f1", sample_weight=weight)
    details = solution.details
    names = np.array(list("abcd"))
    for own, decided in ((details.before, names[P.argmax(axis=1)]), (details.after, solution.rule.predict(P))):
        np.testing.assert_allclose(own[0], sk.confusion_matrix(y, decided, sample_weight=weight, normalize="all"))
    assert details.weight == pytest.approx([weight.sum()])


@pytest.mark.parametrize("missing", [False, True])
def test_moves_are_those_that_loops_find(missing):
    rng = np.random.default_rng(1)
    P = rng.dirichlet([2, 1, 1], (300, 2))
    Y = np.stack([worlds.draw_codes(P[:, m], rng) for m in (0, 1)], axis=1)
    Y = Y.astype(float)
    if missing:
        Y[rng.random(Y.shape) < 0.2] = np.nan
    weight = rng.integers(1, 4, 300).astype(float)
    rule = mw.WeightedRule.from_weights([[1, 2, 3], [2, 1, 1]])
    details = Details.of_rows(rule, P, Y, "accuracy", average="micro", sample_weight=weight)
    moves, decided = details.moves, rule.predict(P)
    gained, lost, neither = np.zeros((3, 2, 3, 3))
    for n in range(300):
        for m in range(2):
            if np.isnan(Y[n, m]):
                continue
            a, b, true = int(P[n, m].argmax()), int(decided[n, m]), int(Y[n, m])
            gained[m, a, b] += weight[n] * (true == b)
            lost[m, a, b] += weight[n] * (true == a)
            neither[m, a, b] += weight[n] * (true not in (a, b))
    np.testing.assert_allclose(moves.gained, gained)
    np.testing.assert_allclose(moves.lost, lost)
    np.testing.assert_allclose(moves.neither, neither)
    np.testing.assert_allclose(moves.total.sum(axis=(1, 2)), (~np.isnan(Y) * weight[:, None]).sum(axis=0))
    kept = ~np.isnan(Y) * weight[:, None]
    assert moves.moved == pytest.approx((kept * (decided != P.argmax(axis=2))).sum() / kept.sum())


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
def test_bins_are_those_of_scikit_learn(strategy):
    p, y, _ = binary(power=2.0)
    observed, predicted = calibration_curve(y, p, n_bins=7, strategy=strategy)
    bins = calibration_bins(p, y, n_bins=7, strategy=strategy)
    np.testing.assert_allclose(bins.predicted, predicted)
    np.testing.assert_allclose(bins.observed, observed)


def test_reliability_pools_classes_against_the_rest():
    P, y, _ = several_classes(k=3)
    solution = mw.optimize(P, y, "macro_f1")
    found = solution.details.reliability
    happened = (y[:, None] == np.array(list("abc"))).astype(int)
    observed, predicted = calibration_curve(happened.T.ravel(), P.T.ravel(), n_bins=10, strategy="quantile")
    np.testing.assert_allclose(found.before.predicted, predicted)
    np.testing.assert_allclose(found.before.observed, observed)
    assert found.after is not None


# ---------------------------------------------------------------------------------------------------------------- gains


def test_gains_of_outputs_are_those_of_each_alone():
    P, Y = worlds.binary((400, 3), a=0.6, b=2)
    solution = mw.optimize(P, Y, "f1", average="macro")
    gains = solution.details.gains
    assert gains.by == "output"
    assert gains.n_parts == 3
    decided = solution.rule.predict(P)
    for m in range(3):
        value, plain = (sk.f1_score(Y[:, m], own, zero_division=0.0) for own in (decided[:, m], P[:, m] > 0.5))
        assert gains.value[m, 0] == pytest.approx(value, abs=1e-12)
        assert gains.baseline[m, 0] == pytest.approx(plain, abs=1e-12)
        assert gains.difference[m, 0] == pytest.approx(value - plain, abs=1e-12)
    # The spread over resamples of rows, by drawing them.
    true, both, rng = Y[:, 0], (decided[:, 0], P[:, 0] > 0.5), np.random.default_rng(0)
    draws = np.empty(2000)
    for r in range(len(draws)):
        rows = rng.integers(0, len(Y), len(Y))
        f1 = [2 * np.sum(true[rows] * one[rows]) / np.sum(true[rows] + one[rows]) for one in both]
        draws[r] = f1[0] - f1[1]
    width = (gains.difference[0, 2] - gains.difference[0, 1]) / (2 * 1.96)
    assert width == pytest.approx(np.std(draws), rel=0.15)


def test_gains_of_classes_are_by_f1():
    P, y, _ = several_classes()
    solution = mw.optimize(P, y, "macro_f1")
    gains = solution.details.gains
    assert gains.by == "class"
    assert gains.names == ("a", "b", "c", "d")
    expected = sk.f1_score(y, solution.rule.predict(P), average=None)
    np.testing.assert_allclose(gains.value[:, 0], expected, atol=1e-12)
    assert (gains.difference[:, 1] <= gains.difference[:, 0]).all()


def test_of_very_many_outputs_those_are_valued_that_change_most(monkeypatch):
    monkeypatch.setattr("metricwise.inspection.details.gains._MAX_PARTS", 4)
    P, Y = worlds.binary((400, 8), a=0.6, b=2)
    rule = mw.WeightedRule.from_thresholds([0.5, 0.5, 0.2, 0.5, 0.3, 0.1, 0.5, 0.25])
    gains = Details.of_rows(rule, P, Y, "f1", average="macro").gains
    assert gains.n_parts == 8
    assert gains.names == ("output 2", "output 4", "output 5", "output 7")


# ------------------------------------------------------------------------------------------------------ where rows come


def test_rows_that_changed_are_noticed():
    p, y, _ = binary()
    solution = mw.optimize(p, y, "f1")
    p[:] = p[::-1].copy()
    with pytest.raises(ValueError, match="rows have changed since optimize"):
        _ = solution.details


def test_pickles_hold_what_was_counted_and_no_rows():
    p, y, _ = binary(50_000)
    solution = mw.optimize(p, y, "f1", strategy=mw.Strategy(**FIXED))
    blank = pickle.loads(pickle.dumps(solution))  # noqa: S301
    with pytest.raises(ValueError, match="rows are not available"):
        _ = blank.details
    curve = solution.details.curve
    text = pickle.dumps(solution)
    assert len(text) < 100_000
    again = pickle.loads(text)  # noqa: S301
    np.testing.assert_array_equal(again.details.curve.position, curve.position)
    with pytest.raises(ValueError, match="was not computed before the solution was saved"):
        _ = again.details.moves


def test_the_rows_are_no_copy():
    p, y, _ = binary()
    solution = mw.optimize(p, y, "f1")
    assert isinstance(solution.problem, Problem)
    assert np.shares_memory(solution.problem.source.rows.proba.blocks[0], p)


@pytest.mark.parametrize("engine_of_rows", ["chunks of 3", "pieces"])
def test_every_engine_says_the_same(engine_of_rows):
    P, y, _ = several_classes(n=200)
    here = mw.optimize(P, y, "macro_f1", strategy=mw.Strategy(**FIXED)).details
    with served_by(engine_of_rows):
        solution = mw.optimize(P, y, "macro_f1", strategy=mw.Strategy(**FIXED))
        assert "<svg" not in solution._repr_html_()  # no pass for a card where rows are not in memory
        there = solution.details
        np.testing.assert_allclose(there.curve.confusion, here.curve.confusion, atol=1e-12)
        np.testing.assert_allclose(there.moves.total, here.moves.total)
        np.testing.assert_allclose(there.gains.difference, here.gains.difference, atol=1e-12)


def test_details_of_other_rows():
    p, y, _ = binary()
    rule = mw.optimize(p, y, "f1").rule
    other, truth, _ = binary(seed=5)
    details = Details.of_rows(rule, other, truth)  # by the metric that it was made for
    assert list(details.curve.values) == ["f1"]
    value = sk.f1_score(truth, rule.predict(other))
    assert details.curve.values["f1"][details.curve.chosen] == pytest.approx(value)
    with pytest.raises(ValueError, match="metrics must be given"):
        Details.of_rows(mw.WeightedRule.from_thresholds(0.3), other, truth)


def test_other_metrics_take_the_positive_class_of_the_first():
    p, y, _ = binary()
    named = np.where(y == 1, "fraud", "fine")
    details = mw.optimize(p, named, "f1", pos_label="fraud").details
    more = details.with_metrics(["precision", "accuracy"])
    assert list(more.curve.values) == ["f1", "precision", "accuracy"]
    decided = details.rule.predict(p)
    value = sk.precision_score(named, decided, pos_label="fraud")
    assert more.curve.values["precision"][more.curve.chosen] == pytest.approx(value)
    assert list(details.with_metrics("accuracy").curve.values) == ["f1", "accuracy"]
