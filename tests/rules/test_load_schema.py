"""The JSON Schema of rule files says yes to what is written, and no to what is refused."""

import copy
import json
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import metricwise as mw
from metricwise.core.losses import Loss
from metricwise.rules import CostRule, GroupedRule, MixtureRule, TemperatureScaling, WeightedRule
from profiles import examples

FILES = sorted(path for path in (Path(__file__).parent / "files").glob("v*/*.json") if ".decisions." not in path.name)
WRITE_SCHEMA = (
    "python -c 'import json, metricwise as mw; print(json.dumps(mw.export.rule_schema(), indent=2))' "
    "> src/metricwise/rules/rule.schema.json"
)
DOCS = Path(__file__).parents[2] / "docs"

rng = np.random.default_rng(0)
P = rng.beta(1, 2, 300)
Y = (rng.random(300) < P).astype(int)


@pytest.fixture(scope="module")
def valid():
    schema = mw.export.rule_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema).is_valid


def test_the_committed_file_is_what_the_kinds_declare():
    path = Path(mw.__file__).parent / "rules" / "rule.schema.json"
    assert json.loads(path.read_text(encoding="utf-8")) == mw.export.rule_schema(), f"write it anew: {WRITE_SCHEMA}"


@pytest.mark.parametrize("path", FILES, ids=[f"{path.parent.name}-{path.stem}" for path in FILES])
def test_files_of_every_version(valid, path):
    assert valid(json.loads(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"strategy": mw.Strategy(confusion="labels", recalibrate=False)},
        {"subject_to": "precision >= 0.4", "confidence": 0.9},
        {"subject_to": "demographic_parity <= 0.1", "sensitive_features": Y % 2, "confidence": None},
        {"metric": "accuracy", "abstain": 0.2},
    ],
)
def test_rules_that_are_fitted(valid, options):
    options = {"metric": "recall" if "subject_to" in options else "f1", **options}
    rule = mw.optimize(P, Y, **options).rule
    document = json.loads(rule.with_metadata(date="2026-11-17").to_json())
    assert valid(document)
    facts = document["facts"]
    assert facts["rows"] == 300
    assert facts["class_counts"] == [np.bincount(Y).tolist()]
    assert facts["metricwise"] == mw.__version__
    assert facts["date"] == "2026-11-17"


def test_a_rule_for_costs_that_is_fitted(valid):
    rule = mw.optimize(P, Y, "cost", cost=P[:, None] * [1.0, 5.0]).rule
    document = json.loads(rule.with_metadata(date="2026-11-17").to_json())
    assert valid(document)
    assert (document["facts"]["rows"], document["facts"]["date"]) == (300, "2026-11-17")


def test_what_a_rule_knows_of_itself():
    solution = mw.optimize(P, Y, "recall", subject_to="precision >= 0.4", confidence=0.9)
    facts, (promise,) = solution.rule.metadata.to_dict(), solution.constraints
    gain = solution.gain
    assert facts["gain"] == {"estimate": gain.estimate, "low": gain.low, "high": gain.high}
    assert (facts["value"], facts["baseline"]) == (solution.value, solution.baseline)
    numbers = {"low": 0.4, "high": None, "value": promise.value, "confidence": promise.confidence}
    assert facts["promises"] == [{"name": "precision >= 0.4", **numbers, "of_shares": True}]
    plain = mw.optimize(P, None, "f1", classes=[0, 1])
    assert plain.rule.metadata.class_counts is None


def test_counts_are_by_output_and_leave_missing_labels_out():
    y = np.stack([Y.astype(float), 1.0 - Y], axis=1)
    y[:50, 1] = np.nan
    rule = mw.optimize(
        np.stack([P, 1 - P], axis=1),
        y,
        "f1",
        average="macro",
        strategy=mw.Strategy(confusion="labels", recalibrate=False),
    ).rule
    second = np.bincount(1 - Y[50:]).tolist()
    assert rule.metadata.class_counts == [np.bincount(Y).tolist(), second]


LOSS = Loss(full=rng.random((1, 3, 3)))
LINK = TemperatureScaling(np.array([0.5]), np.zeros((1, 3)))
WEIGHTED = WeightedRule(LOSS, (np.array(["a", "b", "c"]),), LINK, metadata={"metric": "f1"}).to_dict()
MIXTURE = MixtureRule(
    (WeightedRule(Loss.argmax(3), (np.arange(3),)), WeightedRule(LOSS, (np.arange(3),))), np.array([0.5, 0.5])
).to_dict()


_ABSTAINING = WeightedRule(Loss.argmax(3), (np.array([0, 1]),), abstain_label=-1)
_CHOSEN = WeightedRule(LOSS, (np.arange(3),)), MixtureRule.from_json(json.dumps(MIXTURE))
GROUPED = GroupedRule(_CHOSEN, (("a", 1), ("b", 2)), ("sex", "age")).to_dict()
DOCUMENTS = {
    "weighted": WEIGHTED,
    "mixture": MIXTURE,
    "grouped": GROUPED,
    "row_costs": CostRule((np.array(["a", "b", "c"]),), LINK).to_dict(),
    "weighted, abstaining": _ABSTAINING.to_dict(),
    "mixture, abstaining": MixtureRule((_ABSTAINING, _ABSTAINING), np.array([0.5, 0.5])).to_dict(),
    "grouped, abstaining": GroupedRule((_ABSTAINING, _ABSTAINING), (True, False)).to_dict(),
    "row_costs, abstaining": CostRule((np.array([0, 1]),), abstain_label="ask", abstain_cost=0.3).to_dict(),
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_field_is_needed_and_none_besides(valid, name):
    document = DOCUMENTS[name]
    assert valid(document)
    assert mw.load_rule(json.dumps(document)).to_dict() == document
    for name in set(document) - {"abstain_label"}:
        assert not valid({key: value for key, value in document.items() if key != name}), name
    assert not valid({**document, "code": "print()"})


VALUES = [None, True, -1, 0.5, "text", [], {}, [[]], [1, 2], [["a"]], [[[1]]], {"full": [[["x"]]]}]


@examples(200)
@given(st.sampled_from(list(DOCUMENTS.values())), st.data())
def test_the_schema_is_never_stricter_than_the_reader(valid, document, data):
    """Whatever `load_rule` takes, the schema takes: one field changed at a time."""
    changed = copy.deepcopy(document)
    place, key = changed, data.draw(st.sampled_from(sorted(changed)))
    while isinstance(place[key], dict) and place[key] and key != "facts" and data.draw(st.booleans()):
        place = place[key]
        key = data.draw(st.sampled_from(sorted(place)))
    place[key] = data.draw(st.sampled_from(VALUES))
    try:
        mw.load_rule(json.dumps(changed))
    except (ValueError, TypeError):
        return
    assert valid(changed)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("format", "rule"),
        ("version", 2),
        ("kind", "tree"),
        ("classes", []),
        ("classes", [["a"]]),
        ("classes", [["a", None]]),
        ("multioutput", 1),
        ("normalize", "no"),
        ("output_names", ["a", "a"]),
        ("loss", {"full": [[1]]}),
        ("loss", {"diagonal": [[1, 2, 3]]}),
        ("link", {"temperature": [0], "bias": [[0, 0, 0]], "floor": 1e-6}),
        ("link", {"temperature": [1], "bias": [[0, 0, 0]], "floor": 0.7}),
        ("facts", []),
    ],
)
def test_what_neither_takes(valid, field, value):
    broken = {**WEIGHTED, field: value}
    assert not valid(broken)
    with pytest.raises(ValueError, match="must"):
        mw.load_rule(json.dumps(broken))
