"""WeightedRule against explicit loops in Python floats, in every shape that users hand in."""

from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metricwise.core.losses import Loss
from metricwise.core.probabilities import Probabilities
from metricwise.core.schema import Schema
from metricwise.data.probabilities import read_proba
from metricwise.rules import RuleRows, TemperatureScaling, WeightedRule, anonymous_rule

YES_NO = (np.array(["no", "yes"]),)


def random_loss(rng, n_outputs, k, diagonal):
    if diagonal:
        return Loss(diagonal=-rng.random((n_outputs, k)) - 0.1, offset=rng.normal(0, 0.1, (n_outputs, k)))
    return Loss(full=rng.random((n_outputs, k, k)))


def loop_decisions(rows, loss, link=None):
    """The definition, one row and output at a time. `rows`: (N, M, K_m) nested lists of Python floats."""
    result = []
    for row in rows:
        decisions = []
        for m, eta in enumerate(row):
            if link is not None:
                t, c = float(link.temperature[m]), link.bias[m].tolist()
                raised = [np.exp(t * np.log(max(p, link.floor)) + c[i]) for i, p in enumerate(eta)]
                eta = [float(r / sum(raised)) for r in raised]
            own = m if loss.n_outputs > 1 else 0
            best, best_score = 0, None
            for j in range(len(eta)):
                if loss.is_diagonal:
                    score = eta[j] * float(loss.diagonal[own, j]) + float(loss.offset[own, j])
                else:
                    score = eta[0] * float(loss.full[own, 0, j])
                    for i in range(1, len(eta)):
                        score += eta[i] * float(loss.full[own, i, j])
                if best_score is None or score < best_score:
                    best, best_score = j, score
            decisions.append(best)
        result.append(decisions)
    return np.array(result)


@pytest.mark.parametrize("diagonal", [True, False])
@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("decimals", [None, 1])
def test_decisions_are_the_definition(diagonal, shared, dtype, decimals):
    rng = np.random.default_rng(3)
    eta = rng.dirichlet(np.ones(4), (200, 3)).astype(dtype)
    if decimals is not None:  # ties in plenty
        eta = np.full_like(eta, 0.25) if shared else rng.multinomial(10, np.full(4, 0.25), (200, 3)).astype(dtype) / 10
    loss = random_loss(rng, 1 if shared else 3, 4, diagonal)
    rule = WeightedRule(loss, (np.arange(4),) * 3, multioutput=True)
    np.testing.assert_array_equal(rule.predict(eta), loop_decisions(eta.astype(float).tolist(), loss))


@pytest.mark.parametrize("diagonal", [True, False])
def test_unequal_numbers_of_classes_as_list_and_padded(diagonal):
    rng = np.random.default_rng(4)
    sizes = [2, 4, 3]
    loss = random_loss(rng, 3, 4, diagonal)
    link = TemperatureScaling(np.array([0.7, 1.0, 1.4]), rng.normal(0, 0.5, (3, 4)))
    parts = [rng.dirichlet(np.ones(k), 100) for k in sizes]
    padded = np.zeros((100, 3, 6))  # wider than the widest output
    for m, part in enumerate(parts):
        padded[:, m, : sizes[m]] = part
    classes = tuple(np.arange(k) for k in sizes)
    expected = loop_decisions([[p[n].tolist() for p in parts] for n in range(100)], loss, link)
    rule = WeightedRule(loss, classes, link, multioutput=True)
    np.testing.assert_array_equal(rule.predict(parts), expected)
    np.testing.assert_array_equal(rule.predict(padded), expected)
    assert rule.n_classes.tolist() == sizes
    assert (rule.n_outputs, rule.width) == (3, 4)
    distribution = rule.distribution(parts)
    assert distribution.shape == (100, 3, 4)
    np.testing.assert_array_equal(distribution.argmax(axis=2), expected)
    np.testing.assert_array_equal(distribution.sum(axis=2), 1)


def test_labels_come_back_in_the_shape_and_type_of_y():
    binary = WeightedRule(Loss.argmax(2), YES_NO)
    assert binary.predict([0.4, 0.6]).tolist() == ["no", "yes"]
    assert binary.predict([[0.6, 0.4], [0.4, 0.6]]).tolist() == ["no", "yes"]
    column = WeightedRule(Loss.argmax(2), YES_NO, multioutput=True)
    assert column.predict([[0.4], [0.6]]).tolist() == [["no"], ["yes"]]
    mixed = WeightedRule(Loss.argmax(2), (np.array([False, True]), np.array(["a", "b"])), multioutput=True)
    assert mixed.predict([[0.9, 0.1]]).tolist() == [[True, "a"]]
    assert binary.distribution([0.4, 0.6]).tolist() == [[1, 0], [0, 1]]


def test_scores_are_normalised_as_stored():
    rule = WeightedRule(Loss.from_tensor([[0.0, 1.0], [3.0, 0.0]]), YES_NO, normalize=True)
    assert rule.predict([[8.0, 2.0], [7.0, 3.0]]).tolist() == ["no", "yes"]
    with pytest.raises(ValueError, match=r"WeightedRule.predict: proba must sum to 1"):
        rule.named(Schema(YES_NO), None, {}).predict([[8.0, 2.0]])


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_shuffled_columns_of_data_frames_find_their_class(frame):
    rng = np.random.default_rng(5)
    eta = rng.dirichlet(np.ones(3), 50)
    rule = WeightedRule(Loss.argmax(3), (np.array(["a", "b", "c"]),))
    shuffled = frame({"c": eta[:, 2], "a": eta[:, 0], "b": eta[:, 1]})
    np.testing.assert_array_equal(rule.predict(shuffled), rule.predict(eta))
    several = WeightedRule(Loss.argmax(3), (np.array(["a", "b", "c"]),) * 2, multioutput=True)
    np.testing.assert_array_equal(several.predict([shuffled, shuffled])[:, 1], rule.predict(eta))
    labelled = WeightedRule(Loss.argmax(2), (np.arange(2),) * 3, multioutput=True, output_names=("x", "y", "z"))
    multilabel = frame({"z": eta[:, 2], "x": eta[:, 0], "y": eta[:, 1]})
    np.testing.assert_array_equal(labelled.predict(multilabel), labelled.predict(eta))
    with pytest.raises(ValueError, match="columns of proba must be named like the classes"):
        rule.predict(frame({"c": eta[:, 2], "a": eta[:, 0], "d": eta[:, 1]}))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("layout", ["C", "F", "strided"])
@pytest.mark.parametrize("linked", [True, False])
def test_chunks_predict_what_the_whole_does(dtype, layout, linked):
    rng = np.random.default_rng(6)
    eta = (rng.multinomial(100, np.full(5, 0.2), (301, 3)) / 100).astype(dtype)
    if layout == "strided":
        wide = np.zeros((602, 3, 5), dtype)
        wide[::2] = eta
        eta = wide[::2]
    eta = np.asarray(eta, order="F") if layout == "F" else eta
    link = TemperatureScaling(np.array([0.7, 1.0, 1.4]), rng.normal(0, 0.5, (3, 5))) if linked else None
    rule = WeightedRule(random_loss(rng, 3, 5, False), (np.arange(5),) * 3, link, multioutput=True)
    whole = rule.predict(eta)
    for size in (1, 7, 100):
        parts = [rule.predict(eta[start : start + size]) for start in range(0, 301, size)]
        np.testing.assert_array_equal(np.concatenate(parts), whole)
    np.testing.assert_array_equal(rule.predict(np.ascontiguousarray(eta)), whole)


def test_decide_takes_no_rows():
    rule = anonymous_rule(Loss.argmax(2), np.array([2])).named(Schema(YES_NO), TemperatureScaling.identity(1, 2), {})
    assert rule.decide(RuleRows(Probabilities((np.empty((0, 1)),), np.array([2])))).shape == (0, 1)


# ------------------------------------------------------------------------------------------------- thresholds


finite = st.floats(-1, 1).map(lambda x: round(x, 3))


@given(loss=st.lists(finite, min_size=4, max_size=4), t=st.floats(0.2, 3), c=st.floats(-3, 3), linked=st.booleans())
def test_threshold_is_where_a_scan_changes(loss, t, c, linked):
    link = TemperatureScaling(np.array([t]), np.array([[-c / 2, c / 2]])) if linked else None
    rule = WeightedRule(Loss(full=np.reshape(loss, (1, 2, 2))), YES_NO, link)
    grid = np.r_[np.linspace(0, 1, 501), 1e-9, 1e-5, 1 - 1e-5, 1 - 1e-9]
    positive = rule.predict(grid) == "yes"
    threshold = rule.threshold
    if threshold is None:
        assert positive[0]
        assert not positive[500]
        assert "inverted" in rule.describe()
        return
    clear = np.abs(grid - threshold) > 1e-10  # a full loss, or a link, is monotone in p up to rounding only
    np.testing.assert_array_equal(positive[clear], grid[clear] > threshold)
    np.testing.assert_array_equal(positive[clear], grid[clear] >= rule.sklearn_threshold)
    assert ("Always" in rule.describe()) == bool(np.isinf(threshold))


@given(
    weight=st.tuples(st.floats(0.01, 1), st.floats(0.01, 1)),
    offset=st.tuples(st.floats(-0.3, 0.3), st.floats(-0.3, 0.3)),
)
def test_threshold_is_exact_to_the_last_bit(weight, offset):
    rule = WeightedRule(Loss(diagonal=-np.array([weight]), offset=np.array([offset])), YES_NO)
    t = rule.threshold
    if not np.isfinite(t):
        return
    near = [t]
    for _ in range(50):
        near = [max(np.nextafter(near[0], -1), 0.0), *near, min(np.nextafter(near[-1], 2), 1.0)]
    near = np.array(near)
    np.testing.assert_array_equal(rule.predict(near) == "yes", near > t)
    np.testing.assert_array_equal(rule.predict(near) == "yes", near >= rule.sklearn_threshold)


def test_threshold_through_the_link_is_on_the_raw_probability():
    link = TemperatureScaling(np.array([0.5]), np.array([[0.0, -1.0]]))
    rule = WeightedRule(Loss.from_tensor([[0.0, 1.0], [4.0, 0.0]]), YES_NO, link)
    logit = (np.log(0.2 / 0.8) + 1.0) / 0.5
    assert rule.threshold == pytest.approx(1 / (1 + np.exp(-logit)), rel=1e-12)


def test_thresholds_of_several_outputs():
    never, always = [[0.0, 1.0], [0.0, 1.0]], [[1.0, 0.0], [1.0, 0.0]]
    inverted, plain = [[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]
    loss = Loss.from_tensor([never, always, inverted, plain])
    rule = WeightedRule(loss, YES_NO * 4, multioutput=True)
    np.testing.assert_array_equal(rule.threshold, [np.inf, -np.inf, np.nan, 0.5])
    assert rule.sklearn_threshold[3] == np.nextafter(0.5, 1)
    assert (np.array([0.0, 1.0]) >= rule.sklearn_threshold[1]).all()
    assert not (np.array([0.0, 1.0]) >= rule.sklearn_threshold[0]).any()
    mixed = WeightedRule(Loss.argmax(3), (np.arange(2), np.arange(3)), multioutput=True)
    np.testing.assert_array_equal(mixed.threshold, [0.5, np.nan])
    assert WeightedRule(Loss.argmax(3), (np.arange(3),)).threshold is None
    assert WeightedRule(Loss.argmax(2), YES_NO, multioutput=True).threshold.tolist() == [0.5]


# ---------------------------------------------------------------------------------------------- class weights


def test_class_weights_are_the_rule():
    rng = np.random.default_rng(7)
    eta = rng.dirichlet(np.ones(4), 500)
    for offset in (np.full((1, 4), 0.3), rng.random((1, 4)) / 3):
        loss = Loss(diagonal=-rng.random((1, 4)) - 0.1, offset=offset)
        for link in (None, TemperatureScaling(np.array([0.7]), rng.normal(0, 0.5, (1, 4)))):
            rule = WeightedRule(loss, (np.arange(4),), link)
            assert rule.class_weight.shape == rule.bonus.shape == (4,)
            assert rule.class_weight.min() == 1
            assert rule.bonus.min() == 0
            assert rule.bonus.any() == (offset != 0.3).any()
            worth = rule.calibrated(eta) * rule.class_weight + rule.bonus
            np.testing.assert_array_equal(worth.argmax(axis=1), rule.predict(eta))
    several = WeightedRule(Loss.argmax(4), (np.arange(4), np.arange(3)), multioutput=True)
    assert several.class_weight.tolist() == [[1, 1, 1, 1], [1, 1, 1, 0]]
    assert several.bonus.tolist() == [[0] * 4] * 2


def test_weights_of_a_rule_that_abstains():
    rng = np.random.default_rng(9)
    eta = rng.dirichlet(np.ones(3), 500)
    loss = Loss(diagonal=np.array([[-1.0, -2.0, -3.0, 0.0]]), offset=np.array([[0.1, 0.0, 0.3, -0.9]]))
    rule = WeightedRule(loss, (np.array(["a", "b", "c"]),), abstain_label="?")
    best = (eta * rule.class_weight + rule.bonus[:3]).max(axis=1)
    assert 0 < (best < rule.bonus[3]).mean() < 1
    np.testing.assert_array_equal(rule.predict(eta) == "?", best < rule.bonus[3])


def test_full_losses_have_no_class_weights():
    rule = WeightedRule(Loss(full=np.random.default_rng(8).random((1, 3, 3))), (np.arange(3),))
    assert rule.class_weight is None
    assert rule.bonus is None
    assert rule.cut_points is None
    assert rule.grades is None
    assert rule.regions is None


def test_weights_are_as_described():
    rule = WeightedRule(
        Loss(diagonal=-np.array([[0.2, 0.5, 0.4]]), offset=-np.array([[0.3, 0.1, 0.2]])),
        (np.array(["a", "b", "c"]),),
        TemperatureScaling(np.array([0.8]), np.zeros((1, 3))),
    )
    _, weights, bonuses, _ = rule.describe().splitlines()
    assert (
        weights
        == "Weights: " + ", ".join(f"{n!r}: {w:.4g}" for n, w in zip("abc", rule.class_weight, strict=True)) + "."
    )
    assert bonuses == "Bonuses: " + ", ".join(f"{n!r}: {b:.4g}" for n, b in zip("abc", rule.bonus, strict=True)) + "."


def test_cut_points_are_the_rule():
    rng = np.random.default_rng(3)
    eta = rng.dirichlet(np.ones(4), 500)
    cuts, grades = [0.7, 1.9, 2.2], [0, 1, 2, 3]
    link = TemperatureScaling(np.array([1.3]), rng.normal(0, 0.3, (1, 4)))
    rule = replace(WeightedRule.from_cut_points(cuts), link=link)
    np.testing.assert_allclose(rule.cut_points, cuts, rtol=1e-12)
    np.testing.assert_allclose(rule.grades, grades, rtol=1e-12)
    expected = rule.calibrated(eta) @ rule.grades
    np.testing.assert_array_equal(np.digitize(expected, rule.cut_points, right=True), rule.predict(eta))
    classes = [np.arange(4), np.arange(3), np.arange(2)]
    several = WeightedRule.from_cut_points([cuts, [0.5, 1.1], [0.4]], classes=classes)
    np.testing.assert_allclose(several.cut_points, [cuts, [0.5, 1.1, np.nan], [np.nan] * 3])
    np.testing.assert_allclose(several.grades, [grades, [0, 1, 2, np.nan], [np.nan] * 4])


def test_regions_are_the_rule():
    p = np.random.default_rng(4).random(300)
    link = TemperatureScaling(np.array([0.6]), np.array([[0.2, -0.1]]))
    three = Loss(full=np.array([[[0.0, 1.0, 0.2], [1.0, 0.0, 0.3], [0.0, 0.0, 0.0]]]))
    inverted = WeightedRule(Loss.from_tensor([[1.0, 0.0], [0.0, 1.0]]), YES_NO)
    abstaining = WeightedRule(three, YES_NO, link, abstain_label="?")
    for rule in (inverted, abstaining, replace(WeightedRule.from_thresholds(0.3), link=link)):
        edges = [(low, label) for label, low, _ in rule.regions] + [(high, label) for label, _, high in rule.regions]
        assert rule.predict([low for low, _ in edges]).tolist() == [label for _, label in edges]
        starts = np.array([low for _, low, _ in rule.regions])
        labels = [label for label, _, _ in rule.regions]
        found = [labels[place] for place in np.searchsorted(starts, p, side="right") - 1]
        assert rule.predict(p).tolist() == found
        assert rule.regions[0].low == 0
        assert rule.regions[-1].high == 1
    assert [region.label for region in abstaining.regions] == ["no", "?", "yes"]
    assert WeightedRule.from_thresholds(np.inf).regions == ((0, 0.0, 1.0),)
    mixed = WeightedRule(Loss.argmax(3), (np.arange(2), np.arange(3)), multioutput=True)
    assert mixed.regions == (((0, 0.0, 0.5), (1, np.nextafter(0.5, 1), 1.0)), None)


# -------------------------------------------------------------------------------------------- calibrated probabilities


def softmax_of(eta, link, m=0, k=None):
    k = eta.shape[-1] if k is None else k
    logit = link.temperature[m] * np.log(np.maximum(eta, link.floor)) + link.bias[m, :k]
    power = np.exp(logit - logit.max(axis=-1, keepdims=True))
    return power / power.sum(axis=-1, keepdims=True)


def test_calibrated_probabilities_have_the_shape_that_was_given():
    rng = np.random.default_rng(5)
    one = TemperatureScaling(np.array([0.6]), np.array([[0.2, -0.1]]))
    rule, p = replace(WeightedRule.from_thresholds(0.3), link=one), rng.random(40)
    both = np.column_stack([1 - p, p])
    for proba, expected in (
        (p, softmax_of(both, one)[:, 1]),
        (p[:, None], softmax_of(both, one)[:, 1:]),
        (both, softmax_of(both, one)),
        (pd.DataFrame(both[:, ::-1], columns=[1, 0]), softmax_of(both, one)),
    ):
        np.testing.assert_allclose(rule.calibrated(proba), expected, atol=1e-12)
    assert rule.calibrated(p.astype(np.float32)).dtype == np.float32
    two = TemperatureScaling(np.array([0.6, 1.2]), rng.normal(0, 0.3, (2, 3)))
    classes = (np.arange(3), np.arange(2))
    several = WeightedRule(Loss.argmax(3), classes, two, multioutput=True)
    arrays = [rng.dirichlet(np.ones(3), 40), both]
    found = several.calibrated(arrays)
    for m, (own, array) in enumerate(zip(found, arrays, strict=True)):
        np.testing.assert_allclose(own, softmax_of(array, two, m), atol=1e-12)
    padded = np.stack([arrays[0], np.column_stack([both, np.zeros(40)])], axis=1)
    stacked = several.calibrated(padded)
    assert stacked.shape == padded.shape
    np.testing.assert_allclose(stacked[:, 0], found[0], atol=1e-12)
    np.testing.assert_allclose(stacked[:, 1, :2], found[1], atol=1e-12)
    tags = replace(WeightedRule.from_thresholds([0.2, 0.3]), link=TemperatureScaling(two.temperature, two.bias[:, :2]))
    own = [np.column_stack([1 - q, q]) for q in (p, p[::-1])]
    found = tags.calibrated(np.column_stack([p, p[::-1]]))
    for m in range(2):
        np.testing.assert_allclose(found[:, m], softmax_of(own[m], tags.link, m)[:, 1], atol=1e-12)


def test_without_a_link_calibrated_probabilities_are_a_copy():
    p = np.random.default_rng(6).random(5)
    found = WeightedRule.from_thresholds(0.3).calibrated(p)
    np.testing.assert_array_equal(found, p)
    found[:] = 0
    assert p.all()


# ------------------------------------------------------------------------------------- equality, copies, errors


def test_equality_is_by_what_is_decided():
    rule = anonymous_rule(Loss.argmax(2), np.array([2, 2]))
    same = WeightedRule(Loss.argmax(2), (np.arange(2), np.array([0, 1], dtype=object)), multioutput=True)
    assert rule == same
    assert rule == WeightedRule(rule.loss, rule.classes, multioutput=True, metadata={"created": "today"})
    others = [
        anonymous_rule(Loss.from_tensor([[0.0, 1.0], [2.0, 0.0]]), np.array([2, 2])),
        anonymous_rule(Loss.argmax(2), np.array([2])),
        WeightedRule(Loss.argmax(2), (np.arange(2), np.array([False, True])), multioutput=True),
        WeightedRule(Loss.argmax(2), rule.classes, TemperatureScaling.identity(2, 2), multioutput=True),
        WeightedRule(Loss.argmax(2), rule.classes, multioutput=True, normalize=True),
        WeightedRule(Loss.argmax(2), rule.classes, multioutput=True, output_names=("a", "b")),
    ]
    assert all(rule != other for other in [*others, "a rule"])


def test_named_replaces_everything_but_the_loss():
    rule = anonymous_rule(Loss.argmax(2), np.array([2]))
    link = TemperatureScaling(np.array([2.0]), np.zeros((1, 2)))
    copy = rule.named(Schema(YES_NO, True, True, ("a",)), link, {"metric": "f1"})
    assert (copy.loss, copy.link, copy.multioutput, copy.normalize) == (rule.loss, link, True, True)
    assert (copy.metadata.to_dict(), copy.output_names) == ({"metric": "f1"}, ("a",))
    assert copy.classes[0].tolist() == ["no", "yes"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"classes": ()}, "classes must hold one array of at least 2 labels"),
        ({"classes": (np.arange(1),)}, "classes must hold one array of at least 2 labels"),
        ({"classes": (np.array([1, 1]),)}, r"classes must be distinct within an output, got \[1, 1\]"),
        ({"classes": (np.arange(2),) * 2}, "multioutput must be True for several outputs, got 2"),
        ({"classes": (np.arange(3),)}, r"loss must have 1 outputs \(or 1, shared\) and 3 classes, .* got 1 and 2"),
        ({"link": TemperatureScaling.identity(2, 2)}, "link must have 1 outputs and 2 classes, .* got 2 and 2"),
        ({"output_names": ("a", "b")}, "output_names must have one name per output, 1, got 2"),
    ],
)
def test_parts_that_do_not_fit_are_refused(arguments, message):
    with pytest.raises(ValueError, match=f"^WeightedRule: {message}"):
        WeightedRule(**{"loss": Loss.argmax(2), "classes": YES_NO, **arguments})


@pytest.mark.parametrize(
    ("proba", "message"),
    [
        (np.full((5, 3, 2), 0.5), "must have 2 outputs, as the rule has, got 3"),
        ([np.full((5, 2), 0.5)] * 3, "must have 2 outputs, as the rule has, got 3"),
        ([np.full((5, 2), 0.5)], "must have 2 outputs, as the rule has, got 1"),
        (np.full((5, 3), 0.5), "must have 2 outputs, as the rule has, got 3"),
        ([[0.5, 0.5, 0.5]], r"must have 2 outputs of \[2, 2\] classes"),
        (np.full(5, 0.5), r"must have shape \(N, 2\) or \(N, 2, 2\), as the rule needs, got shape \(5,\)"),
        (np.full((5, 2), np.nan), "must be finite"),
    ],
)
def test_other_outputs_than_the_rules_are_refused(proba, message):
    rule = WeightedRule(Loss.argmax(2), YES_NO * 2, multioutput=True)
    for method in (rule.predict, rule.distribution):
        with pytest.raises(ValueError, match=rf"^WeightedRule\.(predict|distribution): proba {message}"):
            method(proba)


def test_other_classes_than_the_rules_are_refused():
    with pytest.raises(
        ValueError, match=r"proba must have shape \(N, 3\), .*got shape \(2,\); a single row must have shape \(1, 3\)"
    ):
        WeightedRule(Loss.argmax(3), (np.arange(3),)).predict([0.1, 0.2])


# ---------------------------------------------------------------------------------------------------- in words


def test_words_for_binary_rules():
    rule = WeightedRule(
        Loss.from_tensor([[0.0, 0.31], [0.69, 0.0]]), YES_NO, metadata={"metric": "f1", "average": "micro"}
    )
    assert rule.describe() == ("Rule for f1.\nPredict 'yes' when its probability exceeds 0.31, else 'no'.")
    linked = rule.named(Schema(YES_NO), TemperatureScaling(np.array([0.5]), np.array([[0.0, np.log(3)]])), {})
    assert "temperature 0.5, less extreme; odds of 'yes' times 3)" in linked.describe()
    inverted = WeightedRule(Loss.from_tensor([[1.0, 0.0], [0.0, 3.0]]), YES_NO)
    assert "Predict 'yes' when its probability is below 0.25 (inverted" in inverted.describe()


def test_words_for_weights_offsets_and_tables():
    classes = (np.array(["a", "b", "c"]),)
    assert WeightedRule(Loss.argmax(3), classes).describe() == "Predict the most probable class."
    weighted = WeightedRule(Loss(diagonal=-np.array([[2.0, 1.0, 5.0]]), offset=np.zeros((1, 3))), classes)
    assert weighted.describe().endswith("Weights: 'a': 2, 'b': 1, 'c': 5.")
    offset = WeightedRule(Loss(diagonal=-np.ones((1, 3)), offset=np.array([[0.0, 0.1, 0.2]])), classes)
    assert offset.describe().endswith("Bonuses: 'a': 0.2, 'b': 0.1, 'c': 0.")
    full = WeightedRule(Loss(full=np.array([[[0.0, 1.0, 3.0], [1.0, 0.0, 1.0], [4.0, 1.0, 0.0]]])), classes)
    assert full.describe().splitlines()[1:] == [
        "true  'a'  'b'  'c'",
        "'a'     0    1    3",
        "'b'     1    0    1",
        "'c'     4    1    0",
    ]
    many = WeightedRule(Loss(full=np.random.default_rng(0).random((1, 30, 30))), (np.arange(30),))
    assert "30 x 30 table of losses" in many.describe()
    linked = WeightedRule(Loss.argmax(3), classes, TemperatureScaling(np.array([2.0]), np.log([[1.0, 2.0, 4.0]])))
    assert "recalibrated first (temperature 2, more extreme; factors 'a': 0.5, 'b': 1, 'c': 2)" in linked.describe()


def test_words_for_several_outputs():
    shared = WeightedRule(Loss.argmax(2), YES_NO * 100, multioutput=True)
    assert shared.describe().startswith("The same for each of 100 outputs:\nPredict 'yes'")
    rng = np.random.default_rng(9)
    few = WeightedRule(random_loss(rng, 2, 3, False), (np.arange(3), np.arange(2)), multioutput=True)
    assert few.describe().count("Output ") == 2
    t = np.linspace(0.1, 0.9, 97)
    tensors = [[[0.0, x], [1 - x, 0.0]] for x in t]
    tensors += [[[0.0, 1.0], [0.0, 1.0]], [[1.0, 0.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]]
    link = TemperatureScaling(np.linspace(0.5, 1.5, 100), np.zeros((100, 2)))
    for rule in (
        WeightedRule(Loss.from_tensor(tensors), YES_NO * 100, multioutput=True),
        WeightedRule(Loss.from_tensor(tensors), YES_NO * 100, link, multioutput=True),
    ):
        text = rule.describe()
        assert len(text.splitlines()) <= 5
        assert "1 of 100 binary outputs never predict class 1." in text
        assert "1 of 100 binary outputs always predict class 1." in text
        assert "1 of 100 binary outputs predict class 1 when its probability is low." in text
    assert "temperatures 0.5 to 1.5, median 1" in text
    wide = WeightedRule(random_loss(rng, 10, 3, True), (np.arange(3),) * 10, multioutput=True)
    assert (
        "10 outputs with more than two classes: lowest expected loss, a set of class weights for each output."
        in wide.describe()
    )


def test_anonymous_rules_predict_codes():
    rng = np.random.default_rng(10)
    eta = rng.dirichlet(np.ones(3), (20, 2))
    rule = anonymous_rule(Loss.argmax(3), np.array([3, 3]))
    codes = rule.decide(RuleRows(read_proba(eta, multioutput=True)))
    np.testing.assert_array_equal(rule.predict(eta), codes)
    np.testing.assert_array_equal(codes, eta.argmax(axis=2))
    assert rule.metadata.to_dict() == {}
