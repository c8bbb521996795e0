"""A kind of rule that the library does not know passes the laws of rules: it is one class, and an entry in the list."""

import inspect
import json
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import chain, product
from typing import Any, ClassVar

import jsonschema
import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from typer.testing import CliRunner

import metricwise as mw
from laws import test_rules as laws
from laws.rule_records import RECORDS, THREE, Record
from metricwise.cli.app import app
from metricwise.core.errors import InvalidType
from metricwise.data import Schema
from metricwise.rules import Rule, RuleMetadata, RuleWriter
from metricwise.rules.base import check_outputs
from metricwise.rules.codec import JsonField, write_value
from metricwise.rules.load import KINDS
from metricwise.rules.serialize import read_int, read_numbers

LABELS = ("<i>low</i>", "mid", "high")

# ------------------------------------------------------------------------------------------------------- the new kind


@dataclass(frozen=True)
class LeadRule(Rule):
    """Predict the most probable class if it leads by enough, else a class to fall back on."""

    classes: tuple[Any, ...]
    lead: float
    fallback: int = 0
    multioutput: bool = False
    normalize: bool = False
    output_names: tuple[str, ...] | None = None
    abstain_label: Any = None
    metadata: RuleMetadata = field(default_factory=RuleMetadata, compare=False)
    schema: Schema = field(init=False, repr=False, compare=False)
    kind: ClassVar[str] = "lead"
    summary: ClassVar[str] = "The most probable class if it leads by enough."
    fields: ClassVar = (
        JsonField("lead", {"type": "number"}, write_value, lambda value, name: float(read_numbers(value, name, 0))),
        JsonField("fallback", {"type": "integer", "minimum": 0}, write_value, read_int),
    )

    def __post_init__(self):
        schema = Schema(self.classes, self.multioutput, self.normalize, self.output_names)
        object.__setattr__(self, "schema", schema)
        object.__setattr__(self, "metadata", RuleMetadata.of(self.metadata))
        check_outputs(schema, None)

    def decide(self, rows):
        eta = rows.proba.output(0)[:, 0]
        ordered = np.sort(eta, axis=1)
        return np.where(ordered[:, -1] - ordered[:, -2] > self.lead, eta.argmax(axis=1), self.fallback)[:, None]

    def decision_lines(self, metadata):
        labels = [repr(label) for label in self.classes[0].tolist()]
        return [f"Predict one of {', '.join(labels)} if it leads by {self.lead:g}, else {labels[self.fallback]}."]

    def __eq__(self, other):
        return self.to_dict() | {"facts": {}} == other.to_dict() | {"facts": {}}

    __hash__ = None


def definition(eta, row):
    """The same in exact arithmetic."""
    *_, second, first = sorted(eta[0])
    return [{eta[0].index(first) if first - second > Fraction(1, 4) else 2: Fraction(1)}]


def refused_as(what):
    return f"rule must not be a LeadRule, because {what} has no form for rules of its kind; use rule.predict"


def built():
    return LeadRule((np.array(LABELS),), 0.25, fallback=2, metadata={"metric": "accuracy"})


RECORD = Record(
    built,
    THREE,
    definition,
    refused={
        "python": refused_as("Python source"),
        "sql": refused_as("SQL"),
        "onnx": refused_as("the graph"),
        "report": "rule must decide all rows by the same losses, which a LeadRule does not; use metricwise.evaluate",
    },
)


@pytest.fixture(autouse=True)
def _registered(monkeypatch):
    monkeypatch.setitem(KINDS, "lead", LeadRule)
    monkeypatch.setitem(RECORDS, "lead", RECORD)


# ----------------------------------------------------------------------------------------------------------- the laws


def cases():
    """Yield every law that applies to the record, with each combination of its other parameters."""
    for law in vars(laws).values():
        if not getattr(law, "applies_to", lambda record: False)(RECORD):
            continue
        marks = [mark.args for mark in law.pytestmark if mark.name == "parametrize" and mark.args[0] != "name"]
        names = [[names] if isinstance(names, str) else list(names) for names, _ in marks]
        for values in product(*(values for _, values in marks)):
            each = [[value] if len(own) == 1 else value for own, value in zip(names, values, strict=True)]
            yield law, dict(zip(chain(*names), chain(*each), strict=True))


def test_no_law_is_left_out():
    assert len({law for law, _ in cases()}) >= 19


@pytest.mark.parametrize(("law", "arguments"), list(cases()), ids=lambda value: getattr(value, "__name__", ""))
def test_a_new_kind_passes_the_laws_of_rules(law, arguments, request):
    fixtures = [name for name in inspect.signature(law).parameters if name not in {"name", *arguments}]
    law(name="lead", **arguments, **{name: request.getfixturevalue(name) for name in fixtures})


@pytest.mark.parametrize("export", laws.EXPORTS)
def test_exports_refuse_it(export):
    with pytest.raises(InvalidType, match=RECORD.refused[export]) as caught:
        laws.EXPORTS[export](built())
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
        (("export", "rule.json", "-o", "out.sql"), "rule must not be a LeadRule, because SQL has no form"),
        (("report", "rule.json", "rows.csv", "--target", "y", "-o", "out.html"), "must decide all rows by the same"),
    ],
)
def test_commands_refuse_what_it_cannot_do_in_a_sentence(files, arguments, sentence):
    result = run(*(files.get(argument, argument) for argument in arguments))
    assert result.exit_code == 2
    assert sentence in " ".join(result.output.split())
    assert "unexpected" not in result.output
