"""Rules by group: who decides a row, which groups are known, and what a file may hold."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import metricwise as mw
from metricwise.data.sensitive import read_sensitive_features
from metricwise.rules import GroupedRule, MixtureRule, TemperatureScaling, WeightedRule
from metricwise.rules.mixture import uniforms

STRICT, LENIENT = mw.WeightedRule.from_thresholds(0.6), mw.WeightedRule.from_thresholds(0.4)
MIXED = mw.MixtureRule((STRICT, LENIENT), np.array([0.25, 0.75]), seed=3)
P = np.array([0.55, 0.5, 0.75, 0.3, 0.55, 0.5])


def test_every_row_is_decided_by_the_rule_of_its_group():
    rule = mw.GroupedRule((STRICT, LENIENT, MIXED), ("a", "b", 3))
    group = np.array(["a", "b", "a", "b", 3, 3], dtype=object)
    draws = uniforms(3, 0, 6, 1)[:, 0]  # the draw of a row depends on where it is, not on its group
    expected = [0, 1, 1, 0, int(draws[4] >= 0.25), int(draws[5] >= 0.25)]
    assert rule.predict(P, sensitive_features=group).tolist() == expected
    assert rule.predict(P, sensitive_features=list(group)).tolist() == expected
    chunks = [rule.predict(P[i : i + 2], sensitive_features=group[i : i + 2], start=i) for i in range(0, 6, 2)]
    assert np.concatenate(chunks).tolist() == expected
    np.testing.assert_allclose(rule.distribution(P, sensitive_features=group)[:, 1], [0, 1, 1, 0, 0.75, 0.75])
    assert rule.by_group["b"] is LENIENT
    assert "In group 'b':" in rule.describe()
    assert mw.load_rule(rule.to_json()) == rule
    assert mw.GroupedRule.from_dict(json.loads(rule.to_json())) == rule


def test_several_outputs_and_several_features(tmp_path):
    one = mw.WeightedRule.from_thresholds({"x": 0.5, "y": 0.2})
    other = mw.WeightedRule.from_thresholds({"x": 0.1, "y": 0.9})
    rule = mw.GroupedRule((one, other), (("f", 1), ("m", 0)), features=("sex", "old"))
    P = np.array([[0.3, 0.3], [0.3, 0.3]])
    for frame in (
        pd.DataFrame({"old": [1, 0], "sex": ["f", "m"], "other": [0, 0]}),
        pl.DataFrame({"old": [1, 0], "sex": ["f", "m"]}),
    ):
        assert rule.predict(P, sensitive_features=frame).tolist() == [[0, 1], [1, 0]]
    assert rule.predict(P, sensitive_features=np.array([["f", 1], ["m", 0]], dtype=object)).tolist() == [
        [0, 1],
        [1, 0],
    ]
    rule.to_json(tmp_path / "rule.json")
    assert mw.load_rule(tmp_path / "rule.json") == rule
    with pytest.raises(ValueError, match=r"must have the columns \['sex', 'old'\], got \['sex'\]"):
        rule.predict(P, sensitive_features=pd.DataFrame({"sex": ["f", "m"]}))
    with pytest.raises(ValueError, match="must have 2 columns, as when the rule was fitted, got 1"):
        rule.predict(P, sensitive_features=["f", "m"])


def test_groups_that_are_not_known_are_refused_by_name():
    rule = mw.GroupedRule((STRICT, LENIENT), ("a", "b"), features=("colour",))
    with pytest.raises(ValueError, match=r"that the rule was fitted to, \['a', 'b'\], got 'c' in row 1"):
        rule.predict([0.5, 0.6], sensitive_features=["a", "c"])
    with pytest.raises(
        ValueError, match=r"the rule has a loss for each group, so it needs sensitive_features.*by 'colour'"
    ):
        rule.predict([0.5, 0.6])
    with pytest.raises(ValueError, match="must be known for every row, got a missing value in row 0"):
        rule.distribution([0.5], sensitive_features=[None])
    with pytest.raises(ValueError, match=r"one value for each of the 2 rows, .*got shape \(1,\)"):
        rule.predict([0.5, 0.6], sensitive_features=["a"])


@pytest.mark.parametrize(
    ("rules", "groups", "options", "words"),
    [
        ((), (), {}, "rules must hold a WeightedRule or a MixtureRule for every group"),
        ((STRICT, LENIENT), ("a",), {}, "groups must have a distinct name for each of the 2 rules"),
        ((STRICT, LENIENT), ("a", "a"), {}, "a distinct name"),
        ((STRICT, LENIENT), ("a", ("b", "c")), {}, "one label per feature"),
        ((STRICT, LENIENT), ("a", "b"), {"features": ("x", "y")}, "one label per feature"),
        ((STRICT, mw.WeightedRule.from_weights([1, 2, 3])), ("a", "b"), {}, "must share outputs and classes"),
        ((MIXED, mw.MixtureRule(MIXED.rules, MIXED.weights, seed=4)), ("a", "b"), {}, "must share their seed"),
    ],
)
def test_what_does_not_fit_together_is_refused(rules, groups, options, words):
    with pytest.raises(ValueError, match=words):
        mw.GroupedRule(rules, groups, **options)


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (("groups",), [], "groups must be a non-empty list"),
        (("groups", 0), "a", r"groups\[0\] must be a non-empty list"),
        (("features",), "x", "features must be a non-empty list"),
        (("rules", 0), {"rules": []}, r"rules\[0\] must have the field 'weights'"),
        (("rules", 0, "rules", 0, "loss"), {}, "loss must have the field"),
        (("rules", 2, "weights"), None, r"rules\[2\].weights must have the shares"),
        (("rules", 2, "weights"), [0.5, 0.6], "weights must sum to 1"),
        (("seed",), 1.5, "seed must be an integer"),
        (("kind",), "weighted", "must have"),
    ],
)
def test_a_file_is_checked(path, value, words):
    document = mw.GroupedRule((STRICT, LENIENT, MIXED), ("a", "b", 3)).to_dict()
    inside = document
    for key in path[:-1]:
        inside = inside[key]
    inside[path[-1]] = value
    with pytest.raises((ValueError, TypeError), match=words):
        mw.load_rule(json.dumps(document))


@given(st.lists(st.integers(0, 4), min_size=3, max_size=40))
def test_groups_of_any_kind_are_read_alike(names):
    names = [0, 1, *names]
    text = [f"group {name}" for name in names]
    for values in (text, np.array(text), pd.Series(text), pd.Series(text, dtype="category"), pl.Series(text)):
        read = read_sensitive_features(values, len(names))
        assert [read.groups.names[code] for code in read.codes] == text
        assert list(read.groups.names) == sorted(set(text))
    for values in (names, np.array(names, dtype=float), pd.Series(names, dtype="Int64"), pd.DataFrame({"g": names})):
        read = read_sensitive_features(values, len(names))
        assert [read.groups.names[code] for code in read.codes] == names
    pairs = pd.DataFrame({"g": text, "odd": [name % 2 for name in names]})
    read = read_sensitive_features(pairs, len(names))
    assert [read.groups.names[code] for code in read.codes] == [(t, n % 2) for t, n in zip(text, names, strict=True)]
    assert read.groups.features == ("g", "odd")


def test_calibrated_probabilities_are_those_of_the_group():
    p, group = np.random.default_rng(0).random(30), np.array(["a", "b", "b"] * 10)
    links = [TemperatureScaling(np.array([t]), np.array([[0.1, -0.2]])) for t in (0.6, 1.5)]
    rules = [replace(WeightedRule.from_thresholds(0.3), link=link) for link in links]
    rule = GroupedRule((rules[0], MixtureRule((rules[1],), np.ones(1))), ("a", "b"))
    expected = np.where(group == "a", *(own.calibrated(p) for own in rules))
    np.testing.assert_array_equal(rule.calibrated(p, sensitive_features=group), expected)
    both = np.column_stack([1 - p, p])
    np.testing.assert_allclose(rule.calibrated(both, sensitive_features=group)[:, 1], expected, atol=1e-12)
    blind = replace(rule, other=rules[1])
    np.testing.assert_array_equal(blind.calibrated(p, sensitive_features=["z"] * 30), rules[1].calibrated(p))
