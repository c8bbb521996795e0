"""Rows of groups that a rule was not fitted to: refused, abstained from, or decided by a rule that sees no group."""

import json
import sqlite3
from contextlib import closing

import duckdb
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV

import metricwise as mw

RNG = np.random.default_rng(3)
N = 300
GROUP = np.where(RNG.random(N) < 0.4, "blue", "green")
P = 1 / (1 + np.exp(-1.4 * RNG.normal(np.where(GROUP == "blue", -0.9, 0.2), 1.2)))
Y = (RNG.random(N) < P).astype(int)
FAST = {"confusion": "labels", "recalibrate": False}
PARITY = {"subject_to": "demographic_parity <= 0.1", "confidence": None, "strategy": mw.Strategy(**FAST)}
NEW = np.linspace(0.01, 0.99, 99)


def fitted(unknown, groups=GROUP, **options):
    sensitive = mw.Sensitive(groups, unknown=unknown)
    return mw.optimize(P, Y, "accuracy", sensitive_features=sensitive, **{**PARITY, **options})


@pytest.fixture(scope="module")
def blind():
    return fitted("blind").rule


@pytest.fixture(scope="module")
def abstaining():
    return fitted("abstain", abstain=0.3).rule


def test_refusing_is_the_default():
    plain = mw.optimize(P, Y, "accuracy", sensitive_features=GROUP, **PARITY).rule
    rule = fitted("refuse").rule
    assert plain == rule == mw.optimize(P, Y, "accuracy", sensitive_features=mw.Sensitive(GROUP), **PARITY).rule
    assert (rule.unknown, rule.other) == ("refuse", None)
    assert "other" not in rule.to_dict()
    with pytest.raises(ValueError, match=r"fitted to, \['blue', 'green'\], got 'red' in row 1; .* unknown='blind'"):
        rule.predict([0.4, 0.4], sensitive_features=["blue", "red"])


def test_by_default_the_blind_rule_is_judged_as_any_other():
    groups = mw.Sensitive(GROUP, "blind")
    rule = mw.optimize(
        P, Y, "f1", subject_to="f1 >= 0.5 in every group", confidence=None, sensitive_features=groups
    ).rule
    assert (rule.predict(NEW, sensitive_features=["red"] * 99) == mw.optimize(P, Y, "f1").rule.predict(NEW)).all()


def test_the_blind_rule_is_the_one_fitted_without_groups(blind):
    expected = mw.optimize(P, Y, "accuracy", strategy=mw.Strategy(**FAST)).rule
    assert blind.unknown == "blind"
    assert (blind.predict(NEW, sensitive_features=["red"] * 99) == expected.predict(NEW)).all()
    assert (blind.predict(NEW, sensitive_features=[None] * 99) == expected.predict(NEW)).all()
    assert (blind.predict(NEW, sensitive_features=[np.nan] * 99) == expected.predict(NEW)).all()
    assert np.array_equal(blind.distribution(NEW, sensitive_features=["red"] * 99), expected.distribution(NEW))
    plain = fitted("refuse").rule
    for name in ("blue", "green"):
        assert (
            blind.predict(NEW, sensitive_features=[name] * 99) == plain.predict(NEW, sensitive_features=[name] * 99)
        ).all()
    mixed = np.resize(["blue", "red", "green"], 99)
    each = {"red": expected, "blue": plain.by_group["blue"], "green": plain.by_group["green"]}
    assert blind.predict(NEW, sensitive_features=mixed).tolist() == [
        each[g].predict([p])[0] for g, p in zip(mixed, NEW, strict=True)
    ]


def test_the_blind_rule_keeps_constraints_that_are_not_about_groups():
    rule = fitted("blind", subject_to=["demographic_parity <= 0.1", "recall >= 0.9"]).rule
    expected = mw.optimize(
        P, Y, "accuracy", subject_to="recall >= 0.9", confidence=None, strategy=mw.Strategy(**FAST)
    ).rule
    assert (rule.predict(NEW, sensitive_features=["red"] * 99) == expected.predict(NEW)).all()


def test_the_blind_rule_of_the_worst_group_is_for_the_metric_itself():
    sensitive = mw.Sensitive(GROUP, unknown="blind")
    rule = mw.optimize(
        P, Y, mw.worst_group("balanced_accuracy"), sensitive_features=sensitive, strategy=mw.Strategy(**FAST)
    ).rule
    assert (
        rule.predict(NEW, sensitive_features=["red"] * 99)
        == mw.optimize(P, Y, "balanced_accuracy", strategy=mw.Strategy(**FAST)).rule.predict(NEW)
    ).all()


def test_abstaining(abstaining):
    assert abstaining.unknown == "abstain"
    assert set(abstaining.predict(NEW, sensitive_features=["red"] * 99)) == {-1}
    assert abstaining.predict([0.99, 0.99, 0.01], sensitive_features=["red", "green", "blue"]).tolist() == [-1, 1, 0]
    with pytest.raises(ValueError, match=r"unknown='abstain'\)? needs a rule that may abstain; pass abstain=True or"):
        fitted("abstain")


def test_abstaining_with_several_outputs():
    y = pd.DataFrame({"a": Y, "b": 1 - Y})
    rule = mw.optimize(
        np.column_stack([P, 1 - P]),
        y,
        "hamming_accuracy",
        abstain=0.3,
        sensitive_features=mw.Sensitive(GROUP, "abstain"),
        **PARITY,
    ).rule
    assert (rule.predict(np.column_stack([NEW, NEW]), sensitive_features=["red"] * 99) == -1).all()
    assert mw.load_rule(rule.to_json()) == rule


def test_it_is_described(blind, abstaining):
    *_, title, words = abstaining.describe().splitlines()
    assert (title, words) == ("In any other group:", "  Abstain: -1.")
    text = blind.describe()
    assert "In any other group:\n  Predict 1 when its probability exceeds" in text
    assert "other group" not in fitted("refuse").rule.describe()


@pytest.mark.parametrize("kind", ["blind", "abstaining"])
def test_files(kind, request, tmp_path):
    jsonschema = pytest.importorskip("jsonschema")
    rule = request.getfixturevalue(kind)
    rule.to_json(tmp_path / "rule.json")
    loaded = mw.load_rule(tmp_path / "rule.json")
    assert loaded == rule
    assert loaded.unknown == rule.unknown
    document = json.loads((tmp_path / "rule.json").read_text())
    jsonschema.validate(document, mw.export.rule_schema())
    without = mw.load_rule(json.dumps({name: part for name, part in document.items() if name != "other"}))
    assert without.unknown == "refuse"
    assert without != rule
    jsonschema.validate(without.to_dict(), mw.export.rule_schema())
    with pytest.raises(ValueError, match="other"):
        mw.load_rule(json.dumps({**document, "other": {"rules": []}}))


@pytest.mark.parametrize("kind", ["blind", "abstaining"])
def test_exports_have_a_branch_for_other_groups(kind, request):
    rule = request.getfixturevalue(kind)
    groups = np.resize(np.array(["blue", "red", "green", None], dtype=object), 99)
    expected = rule.predict(NEW, sensitive_features=groups).tolist()
    names = {}
    exec(mw.export.to_python(rule), names)  # noqa: S102
    assert names["decide_all"](NEW.tolist(), groups.tolist()) == expected
    frame = pd.DataFrame({"p": NEW, "g": groups})
    text = mw.export.to_sql(rule, ["p"], group="g")
    assert [row[0] for row in duckdb.sql(f"SELECT {text} FROM frame").fetchall()] == expected
    with closing(sqlite3.connect(":memory:")) as database:
        frame.to_sql("rows", database)
        text = mw.export.to_sql(rule, ["p"], "sqlite", group="g")
        assert [row[0] for row in database.execute(f"SELECT {text} FROM rows")] == expected


def test_a_known_group_of_another_type_is_not_taken_for_an_unknown_one():
    rule = fitted("blind", np.where(GROUP == "blue", 1, 2)).rule
    assert len(rule.predict(NEW, sensitive_features=np.resize([1.0, 2.0, 3.0], 99))) == 99
    with pytest.raises(
        ValueError, match=r"must have the types that the rule was fitted to, got '1', although .* group 1"
    ):
        rule.predict(NEW, sensitive_features=np.resize(["1", "2", "x"], 99))
    names = {}
    exec(mw.export.to_python(rule), names)  # noqa: S102
    with pytest.raises(ValueError, match="group must have the type that the tables have"):
        names["decide"](0.4, "1")
    assert names["decide"](0.4, 7) in (0, 1)


def test_several_features(blind):
    frame = pd.DataFrame({"colour": GROUP, "old": np.resize([True, False], N)})
    rule = mw.optimize(P, Y, "accuracy", sensitive_features=mw.Sensitive(frame, "blind"), **PARITY).rule
    new = pd.DataFrame({"old": [True, None, False], "colour": ["red", "blue", None]})
    assert (
        rule.predict([0.2, 0.6, 0.9], sensitive_features=new)
        == mw.optimize(P, Y, "accuracy", strategy=mw.Strategy(**FAST)).rule.predict([0.2, 0.6, 0.9])
    ).all()


def test_rows_of_other_groups_are_judged_apart(blind):
    groups = np.where(np.arange(N) < 100, "red", GROUP)
    found = mw.evaluate(blind, P, Y, "accuracy", sensitive_features=groups)
    decided = blind.predict(P, sensitive_features=groups)
    assert found["accuracy"].value.estimate == pytest.approx((decided == Y).mean())
    assert list(found.by_group) == ["blue", "green", "other groups"]
    other = found.by_group["other groups"]["accuracy"].value.estimate
    assert other == pytest.approx((decided[:100] == Y[:100]).mean())
    assert list(mw.evaluate(blind, P, Y, "accuracy", sensitive_features=GROUP).by_group) == ["blue", "green"]
    with pytest.raises(ValueError, match="must contain only groups that the rule was fitted to"):
        mw.evaluate(blind, P, Y, "accuracy", sensitive_features=groups, against=fitted("refuse").rule)


def test_where_there_is_nothing_to_choose():
    with pytest.raises(ValueError, match=r"^Sensitive: unknown must be 'refuse', 'abstain' or 'blind', got 'guess'"):
        mw.Sensitive(GROUP, unknown="guess")
    with pytest.raises(TypeError, match="values must be the groups of rows"):
        mw.Sensitive(mw.Sensitive(GROUP))
    with pytest.raises(ValueError, match="is only for rules that use the group, but group_aware is False"):
        mw.Sensitive(GROUP, "blind", group_aware=False)
    rule = mw.optimize(
        P, Y, "accuracy", sensitive_features=mw.Sensitive(GROUP, "blind"), strategy=mw.Strategy(**FAST)
    ).rule
    assert not isinstance(rule, mw.GroupedRule)  # no constraint is about groups: it decides any


def test_estimators():
    X = np.column_stack([np.log(P / (1 - P)), RNG.random(N)])
    model = mw.MetricOptimalClassifierCV(LogisticRegression(), metric="accuracy", cv=2, **PARITY)
    model.fit(X, Y, sensitive_features=mw.Sensitive(GROUP, unknown="blind"))
    assert model.rule_.unknown == "blind"
    proba = model.predict_proba(X)
    assert (model.predict(X, ["red"] * N) == model.rule_.other.predict(proba)).all()
    with pytest.raises(ValueError, match=r"MetricOptimalClassifierCV: .* unknown='abstain'\)? needs"):
        clone(model).fit(X, Y, sensitive_features=mw.Sensitive(GROUP, unknown="abstain"))


@pytest.mark.parametrize("kind", [list, lambda g: pd.DataFrame({"g": g})])
def test_rows_are_split_by_searches(kind):
    import sklearn

    X = np.column_stack([np.log(P / (1 - P)), RNG.random(N)])
    with sklearn.config_context(enable_metadata_routing=True):
        model = mw.MetricOptimalClassifierCV(LogisticRegression(), metric="accuracy", cv=2, **PARITY)
        model.set_fit_request(sensitive_features=True).set_score_request(sensitive_features=True)
        search = GridSearchCV(model, {"confidence": [None]}, cv=2)
        search.fit(X, Y, sensitive_features=mw.Sensitive(kind(list(GROUP)), "blind"))
    assert search.best_estimator_.rule_.unknown == "blind"


@pytest.mark.parametrize("kind", ["list", "array", "Series", "DataFrame", "polars", "arrow"])
def test_some_of_the_rows(kind):
    make = {
        "list": list,
        "array": np.asarray,
        "Series": pd.Series,
        "DataFrame": lambda g: pd.DataFrame({"g": g}),
        "polars": lambda g: pytest.importorskip("polars").DataFrame({"g": g}),
        "arrow": lambda g: pytest.importorskip("pyarrow").table({"g": g}),
    }[kind]
    sensitive = mw.Sensitive(make(["a", "b", "c", "d"]), "blind")
    assert sensitive.shape[0] == 4
    some = sensitive[np.array([2, 0])]
    assert some.unknown == "blind"
    assert np.asarray(some.values).ravel().tolist() == ["c", "a"]


def test_estimators_refuse_to_abstain_before_anything_is_fitted():
    class Unfit(LogisticRegression):
        def fit(self, X, y, sample_weight=None):
            raise AssertionError("fitted")

    model = mw.MetricOptimalClassifierCV(Unfit(), subject_to="demographic_parity <= 0.1", abstain=False)
    with pytest.raises(ValueError, match=r"unknown='abstain'\)? needs a rule that may abstain; pass abstain=True or"):
        model.fit(P[:, None], Y, sensitive_features=mw.Sensitive(GROUP, "abstain"))
