"""What a rule knows of where it comes from: typed fields, and whatever else a file or a user says."""

import json
import pickle
from dataclasses import fields

import jsonschema
import numpy as np
import pytest

import metricwise as mw
from metricwise.rules.metadata import metadata_schema

RULE = mw.WeightedRule.from_thresholds(0.3)
FITTING = {
    "metric": "f1",
    "average": "macro",
    "rows": 3,
    "order": [["a", "b"], None],
    "single_column": False,
    "abstain": 0.25,
    "class_counts": [[1, 2]],
    "gain": {"estimate": 0.5, "low": None, "high": 0.75},
    "promises": [{"name": "recall >= 0.5", "low": 0.5, "high": None}],
    "columns": [["p"]],
    "losses": {"cost": "mean cost"},
}
CALIBRATION = {
    "temperature": [1.0],
    "bias": [[0.0, 0.5]],
    "floor": 1e-6,
    "shares": [[0.25, 0.75]],
    "rows": [100],
    "covariance": [[[1.0, 0.5], [0.5, 2.0]]],
}


@pytest.mark.parametrize("name", FITTING)
def test_what_fits_a_field_is_its_value(name):
    metadata = mw.RuleMetadata.of({name: FITTING[name]})
    assert getattr(metadata, name) == FITTING[name]
    assert metadata.extra == {}
    assert metadata.to_dict() == {name: FITTING[name]}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("metric", 3),
        ("rows", -1),
        ("rows", 2.5),
        ("rows", True),
        ("order", "low"),
        ("class_counts", [[1, "2"]]),
        ("single_column", 1),
        ("gain", {"estimate": 0.5}),
        ("gain", 0.5),
        ("promises", [{"low": 0.5}]),
        ("columns", ["p"]),
        ("losses", {"cost": 3}),
        ("contact", "ann@example.org"),
    ],
)
def test_what_fits_no_field_is_kept_as_it_is(name, value):
    metadata = mw.RuleMetadata.of({name: value})
    assert getattr(metadata, name, None) is None
    assert metadata.extra == metadata.to_dict() == {name: value}
    again = mw.load_rule(RULE.with_metadata(**{name: value}).to_json()).metadata
    assert again.extra == {name: value}


def test_a_field_and_the_schema_agree_on_what_fits():
    valid = jsonschema.Draft202012Validator({**metadata_schema(), "$defs": mw.export.rule_schema()["$defs"]}).is_valid
    values = [None, True, 0, -1, 0.5, "text", [], {}, ["a"], [["a"], None], [[1]], [True], *FITTING.values()]
    values += [
        ["a", 1, True],
        [0.5] * 9 + [True],
        [[0.5, 1], [0.5, "b"]],
        [["a", None]],
        [[True, 2]],
        [{}],
        {"cost": 1},
    ]
    values += [CALIBRATION | change for change in ({}, {"rows": [1, None]}, {"covariance": [None]}, {"floor": True})]
    values += [{name: value for name, value in CALIBRATION.items() if name != "rows"}]
    for name in (field.name for field in fields(mw.RuleMetadata) if field.metadata):
        for value in values[1:]:  # None is "nothing is known" of every field
            assert (name not in mw.RuleMetadata.of({name: value}).extra) == valid({name: value}), (name, value)


def test_entries_stay_in_the_order_of_the_file_with_its_nulls():
    entries = {"value": 0.5, "by": "ann", "average": None, "metric": "f1"}
    metadata = mw.RuleMetadata.of(entries)
    assert json.dumps(metadata.to_dict()) == json.dumps(entries)
    assert metadata.average is None
    assert list(metadata.updated(rows=3, value=0.75).to_dict().items()) == [
        *{**entries, "value": 0.75}.items(),
        ("rows", 3),
    ]


def test_none_takes_an_entry_away():
    rule = RULE.with_metadata(metric="f1", contact="ann")
    assert rule.with_metadata(metric=None, contact=None).metadata.to_dict() == RULE.metadata.to_dict()


def test_a_field_may_be_stated_after_something_else_stood_there():
    rule = RULE.with_metadata(rows="many").with_metadata(rows=5)
    assert (rule.metadata.rows, rule.metadata.extra) == (5, {})


def test_numbers_of_numpy_fit():
    metadata = mw.RuleMetadata.of({"rows": np.int64(3), "value": np.float64(0.5), "single_column": np.True_})
    assert (metadata.rows, metadata.value, metadata.single_column, metadata.extra) == (3, 0.5, True, {})


def test_metadata_is_shown_without_what_is_not_known():
    assert repr(mw.RuleMetadata(metric="f1", extra={"by": "ann"})) == "RuleMetadata(metric='f1', by='ann')"


def test_rules_of_earlier_versions_are_unpickled():
    rule = RULE.with_metadata(metric="f1")
    state = {name: value for name, value in vars(rule).items() if name != "metadata"}
    earlier = mw.WeightedRule.__new__(mw.WeightedRule)
    earlier.__setstate__({**state, "facts": {"metric": "f1"}})
    assert earlier.metadata.metric == "f1"
    assert pickle.loads(pickle.dumps(earlier)) == rule  # noqa: S301
