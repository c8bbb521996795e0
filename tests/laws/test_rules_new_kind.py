"""What a kind of rule that the library does not know can do, besides obeying the laws of test_rules.py."""

import json

import jsonschema
import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from typer.testing import CliRunner

import metricwise as mw
from laws.new_kind import LABELS, RECORD, LeadRule, built
from laws.rule_records import EXPORTS, RECORDS, THREE
from metricwise.cli.app import app
from metricwise.core.errors import InvalidType
from metricwise.rules import RuleWriter
from metricwise.rules.load import KINDS


@pytest.fixture(autouse=True)
def _registered(monkeypatch):
    monkeypatch.setitem(KINDS, "lead", LeadRule)


@pytest.mark.parametrize("export", EXPORTS)
def test_exports_refuse_it(export):
    with pytest.raises(InvalidType, match=RECORD.refused[export]) as caught:
        EXPORTS[export](built())
    assert str(caught.value).startswith(f"to_{export}: ")


def test_a_kind_can_be_written_as_another():
    class PlainLead(LeadRule):
        def accept(self, writer):
            return writer.weighted(mw.WeightedRule.from_weights([1, 1, 1], classes=LABELS))

    rule, names = PlainLead((np.array(LABELS),), 0.0), {}
    exec(mw.export.to_python(rule), names)  # noqa: S102
    assert names["decide"]([0.2, 0.5, 0.3]) == "mid"
    assert mw.export.to_sql(rule) == mw.export.to_sql(mw.WeightedRule.from_weights([1, 1, 1], classes=LABELS))


def test_a_writer_may_have_something_for_every_kind():
    class Names(RuleWriter):
        def other(self, rule, reason="", remedy=""):
            return rule.kind

    assert [record.rule.accept(Names()) for record in RECORDS.values()] == [
        record.rule.kind for record in RECORDS.values()
    ]


def test_the_schema_has_it():
    schema = mw.export.rule_schema()
    jsonschema.Draft202012Validator(schema).validate(built().to_dict())
    assert schema["$defs"]["lead"]["properties"]["fallback"] == {"type": "integer", "minimum": 0}


# ------------------------------------------------------------------------------------------------------- the library

Y = np.array(LABELS)[[0, 1, 2, 2] * 10]


def test_it_is_evaluated():
    (eta,) = THREE.eta
    evaluation = mw.evaluate(built(), eta, Y)
    assert evaluation["accuracy"].value.estimate == pytest.approx(np.mean(built().predict(eta) == Y))
    against = mw.evaluate(
        mw.WeightedRule.from_weights([1, 1, 1], classes=LABELS), eta, Y, "recall[mid]", against=built()
    )
    assert against["recall[mid]"].baseline.estimate == pytest.approx(np.mean(built().predict(eta)[Y == "mid"] == "mid"))


def test_an_estimator_decides_by_it():
    (eta,) = THREE.eta

    class Given(ClassifierMixin, BaseEstimator):
        def fit(self, X, y):
            self.classes_ = np.unique(y)
            return self

        def predict_proba(self, X):
            return X[:, [LABELS.index(label) for label in self.classes_]]

    model = mw.FixedRuleClassifier(Given(), built()).fit(eta, Y)
    np.testing.assert_array_equal(model.predict(eta), built().predict(eta))


@pytest.fixture
def files(tmp_path):
    built().to_json(tmp_path / "rule.json")
    frame = pd.DataFrame(THREE.eta[0], columns=LABELS).assign(y=Y)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    return {name: str(tmp_path / name) for name in ("rule.json", "rows.csv", "out.csv", "out.html", "out.sql")}


def run(*arguments):
    return CliRunner().invoke(app, list(arguments))


def test_commands_apply_evaluate_and_explain_it(files):
    result = run("apply", files["rule.json"], files["rows.csv"], "-o", files["out.csv"])
    assert result.exit_code == 0, result.output
    assert pd.read_csv(files["out.csv"]).iloc[:, 0].tolist() == built().predict(THREE.eta[0]).tolist()
    result = run("evaluate", files["rule.json"], files["rows.csv"], "--target", "y", "--json")
    assert result.exit_code == 0, result.output
    assert "accuracy" in result.output
    result = run("explain", files["rule.json"])
    assert result.exit_code == 0
    assert "if it leads by 0.25" in result.output
    assert json.loads(run("explain", files["rule.json"], "--json").output)["facts"] == {"metric": "accuracy"}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ("export", "rule.json", "-o", "out.sql"),
            "rule must not be a LeadRule, because SQL does not support such rules",
        ),
        (("report", "rule.json", "rows.csv", "--target", "y", "-o", "out.html"), "must decide all rows by the same"),
    ],
)
def test_commands_refuse_what_it_cannot_do_in_a_sentence(files, arguments, sentence):
    result = run(*(files.get(argument, argument) for argument in arguments))
    assert result.exit_code == 2
    assert sentence in " ".join(result.output.split())
    assert "unexpected" not in result.output
