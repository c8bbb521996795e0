"""Rules by segment: decisions, composition of links, unseen segments, and files."""

import json

import numpy as np
import pytest

import metricwise as mw
from metricwise.core.losses import Loss
from metricwise.data.sensitive import Groups
from metricwise.rules import MixtureRule, SegmentedRule, TemperatureScaling, WeightedRule
from metricwise.rules.segment_fit import SegmentLinks

CLASSES = (np.array(["low", "mid", "high"]),)
LINK = TemperatureScaling(np.array([0.9]), np.array([[0.1, 0.0, -0.1]]))
T = np.array([[0.7], [1.2]])
C = np.array([[[0.5, 0.0, -0.5]], [[-1.0, 0.2, 0.8]]])
rng = np.random.default_rng(0)
FULL = rng.uniform(0, 1, (1, 3, 3)) * (1 - np.eye(3))
COMMON = WeightedRule(Loss(full=FULL), CLASSES, LINK)
P = rng.dirichlet(np.ones(3), 60)


def rule_of(common=COMMON, segments=("DE", "FR"), **options):
    return SegmentedRule(common, segments, T, C, **options)


def test_each_segment_is_decided_by_the_loss_behind_its_link():
    rule = rule_of()
    segments = np.array(["DE", "FR", "XX"])[np.arange(60) % 3]
    expected = np.empty(60, dtype=object)
    for place, name in enumerate(("DE", "FR", "XX")):
        link = LINK if name == "XX" else TemperatureScaling(T[place], C[place])
        rows = segments == name
        expected[rows] = WeightedRule(Loss(full=FULL), CLASSES, link).predict(P[rows])
    assert rule.predict(P, segments=segments).tolist() == expected.tolist()
    assert rule.by_segment["FR"].link == TemperatureScaling(T[1], C[1])


def test_missing_and_unseen_segments_have_the_common_rule():
    rule = rule_of()
    common = COMMON.predict(P).tolist()
    assert rule.predict(P, segments=[None] * 60).tolist() == common
    assert rule.predict(P, segments=["nowhere"] * 60).tolist() == common
    assert rule.predict(P, segments=np.full(60, np.nan)).tolist() == common


def test_segments_must_be_passed():
    with pytest.raises(
        ValueError, match=r"SegmentedRule.predict: .*needs segments, the segment of every row; None where"
    ):
        rule_of().predict(P)
    with pytest.raises(ValueError, match="by 'land'; None where it is not known"):
        rule_of(features=("land",)).predict(P)
    with pytest.raises(ValueError, match="segments must have one value for each of the 60 rows"):
        rule_of().predict(P, segments=["DE"])
    with pytest.raises(ValueError, match=r"segments must have the types .* got '1', .* fitted to the segment 1"):
        rule_of(segments=(1, 2)).predict(P, segments=["1"] * 60)


def test_other_rules_decide_without_segments():
    assert COMMON.predict(P, segments=["DE"] * 60).tolist() == COMMON.predict(P).tolist()


def test_columns_of_frames_are_selected_by_name():
    pd = pytest.importorskip("pandas")
    rule = SegmentedRule(COMMON, (("DE", 1), ("FR", 2)), T, C, ("land", "kind"))
    frame = pd.DataFrame({"kind": [1, 2] * 30, "other": 0, "land": ["DE", "FR"] * 30})
    by_position = rule.predict(P, segments=[("DE", 1), ("FR", 2)] * 30)
    assert rule.predict(P, segments=frame).tolist() == by_position.tolist()


@pytest.mark.parametrize("of_logits", [False, True])
def test_a_link_behind_that_of_a_segment_is_one_link(of_logits):
    """softmax(T log softmax(t log p + c) + C) is softmax(T t log p + T c + C)."""
    floor = 0.0 if of_logits else 1e-6
    links = SegmentLinks(TemperatureScaling(np.array([0.8]), np.array([[0.3, 0.0, -0.3]]), floor), T, C)
    second = TemperatureScaling(np.array([1.4]), np.array([[0.0, 0.4, -0.4]]), floor)
    base = TemperatureScaling(np.array([2.0]), np.array([[0.2, 0.0, -0.2]]), 0.0).arrays if of_logits else None
    kind = "logits" if of_logits else "probabilities"
    rule = WeightedRule(Loss(full=FULL), CLASSES, second, input=kind)
    composed = SegmentedRule.of(rule, links, Groups(("DE", "FR"), None, "segments"), base)
    numbers = np.log(P) if of_logits else P
    for segment, t, c in (("DE", T[0], C[0]), ("FR", T[1], C[1]), (None, [0.8], links.common.bias)):
        first = np.asarray(t)[0] * np.log(P) + np.asarray(c)[0]
        if of_logits:
            changed = (first - base.bias[0]) / base.temperature[0]
        else:
            changed = np.exp(first) / np.exp(first).sum(axis=1, keepdims=True)
        assert composed.predict(numbers, segments=[segment] * 60).tolist() == rule.predict(changed).tolist()


def test_mixtures_are_drawn_as_without_segments():
    other = WeightedRule(Loss(full=FULL.transpose(0, 2, 1)), CLASSES, LINK)
    rule = rule_of(MixtureRule((COMMON, other), np.array([0.3, 0.7]), seed=3))
    segments = np.array(["DE", "FR"])[np.arange(60) % 2]
    assert rule.is_randomized
    drawn = rule.predict(P, segments=segments)
    for place, name in enumerate(("DE", "FR")):
        rows = segments == name
        part = rule.parts[place]
        assert drawn[rows].tolist() == part.predict(P)[rows].tolist()
        np.testing.assert_array_equal(rule.distribution(P, segments=segments)[rows], part.distribution(P)[rows])
    assert mw.load_rule(rule.to_json()) == rule


def test_calibrated_probabilities_are_those_of_the_segment():
    rule = rule_of()
    segments = np.array(["DE", "FR"])[np.arange(60) % 2]
    values = rule.calibrated(P, segments=segments)
    for place in range(2):
        np.testing.assert_array_equal(values[place::2], rule.parts[place].calibrated(P[place::2]))


def test_files():
    rule = rule_of(features=("land",)).with_metadata(date="today")
    document = json.loads(rule.to_json())
    assert document["kind"] == "segmented"
    assert len(document["common"]["rules"]) == 1  # the loss is there once
    again = mw.load_rule(rule.to_json())
    assert again == rule
    assert again.features == ("land",)
    assert again.metadata.date == "today"


def test_temperatures_as_far_apart_as_doubles_can_be():
    common = WeightedRule(Loss(full=FULL), CLASSES, TemperatureScaling(np.array([1e-300]), np.zeros((1, 3))))
    rule = SegmentedRule(common, ("a", "b"), np.array([[1.0], [1e100]]), np.zeros((2, 1, 3)))
    assert "In segment 'a':" in rule.describe()


def test_thousands_of_segments():
    n = 3000
    rng = np.random.default_rng(1)
    t, c = rng.uniform(0.5, 2, (n, 1)), rng.normal(0, 1, (n, 1, 3))
    rule = SegmentedRule(COMMON, tuple(range(n)), t, c)
    again = mw.load_rule(rule.to_json())
    proba, segments = rng.dirichlet(np.ones(3), 9000), rng.integers(0, n + 5, 9000)
    decided = again.predict(proba, segments=segments)
    assert decided.tolist() == rule.predict(proba, segments=segments).tolist()
    for row in range(0, 9000, 1000):
        link = TemperatureScaling(t[segments[row]], c[segments[row]])
        one = WeightedRule(Loss(full=FULL), CLASSES, link).predict(proba[row : row + 1])
        assert decided[row] == one[0]
    assert len(rule.describe().splitlines()) < 60
    assert "A rule for each of 3000 segments" in rule.describe()
    assert len(rule._repr_html_()) < 20_000


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"segments": ("DE", "DE")}, "segments must be distinct names"),
        ({"segments": ("DE", ("FR", 1))}, "segments must all have one label per feature"),
        ({"features": ("a", "b")}, "segments must all have one label per feature"),
        ({"temperature": np.ones((3, 1))}, r"temperature must have shape \(2, 1\)"),
        ({"temperature": -T}, "temperature must be positive"),
        ({"bias": C[:, :, :2]}, r"bias must have shape \(2, 1, 3\)"),
        ({"bias": C * np.nan}, "bias must be finite"),
        ({"common": WeightedRule(Loss(full=FULL), CLASSES)}, "common must have a link"),
        ({"common": "rule"}, "common must be a WeightedRule or a MixtureRule"),
    ],
)
def test_invalid_rules_are_refused(options, match):
    valid = {"common": COMMON, "segments": ("DE", "FR"), "temperature": T, "bias": C}
    with pytest.raises(ValueError, match=match):
        SegmentedRule(**{**valid, **options})


def test_what_a_rule_by_segment_cannot_do():
    rule = rule_of()
    with pytest.raises(TypeError, match="decide all segments alike"):
        rule.with_prior([0.2, 0.3, 0.5])
    with pytest.raises(TypeError, match=r"to_onnx: .* input for the segment of a row; .*rule.by_segment"):
        mw.export.to_onnx(rule)
    with pytest.raises(ValueError, match="one rule for all segments"):
        rule.flatten()
    with pytest.raises(TypeError, match="decide all segments alike"):
        mw.estimate_shares(rule, P)
    with pytest.raises(TypeError, match="a SegmentedRule needs their segments"):
        mw.expect(rule, P, "accuracy")


def test_equality():
    assert rule_of() == rule_of()
    assert rule_of() != rule_of(segments=("DE", "IT"))
    assert rule_of() != COMMON
    assert SegmentedRule(COMMON, ("DE", "FR"), T, C + 1e-9) != rule_of()


def test_a_watch_takes_segments():
    rule = rule_of()
    y = np.array(["low", "mid", "high"])[np.arange(60) % 3]
    watch = mw.watch(rule, "accuracy >= 0.1").update(P, y, segments=["DE", "FR"] * 30)
    assert watch.n_rows == 60


def test_sql_and_python_decide_alike():
    duckdb = pytest.importorskip("duckdb")
    pytest.importorskip("sqlglot")
    pa = pytest.importorskip("pyarrow")
    rule = rule_of(segments=("it's", "b"))
    segments = np.array(["it's", "b", "none", None], dtype=object)[np.arange(60) % 4]
    expected = rule.predict(P, segments=segments).tolist()
    table = pa.table({"a": P[:, 0], "b": P[:, 1], "c": P[:, 2], "land": pa.array(segments.tolist())})
    text = mw.export.to_sql(rule, ["a", "b", "c"], group="land")
    with duckdb.connect() as connection:
        connection.register("arrow_table", table)
        rows = connection.execute(f"select {text} from arrow_table").fetchall()
    assert [row[0] for row in rows] == expected
    names = {}
    exec(mw.export.to_python(rule), names)  # noqa: S102
    assert names["decide_all"](P.tolist(), segments.tolist()) == expected
    with pytest.raises(ValueError, match="name the 1 column that define the segments of a SegmentedRule"):
        mw.export.to_sql(rule)
