"""Solutions as files: every kind comes back exactly, and bad files are refused in a sentence."""

import copy
import json
from dataclasses import fields, is_dataclass

import numpy as np
import pytest

import metricwise as mw
import worlds
from metricwise.api import solution_file
from metricwise.core.notes import Note, NoteKind
from metricwise.inference import Candidate, ConstraintResult, Estimate, Gain, Recorded
from metricwise.solvers import Certificate, Outcome
from worlds.labels import label_world

rng = np.random.default_rng(0)
P, Y = worlds.binary(150, b=2, seed=rng)
ETA = rng.dirichlet(np.ones(3), 150)
GROUPS = np.where(rng.random(150) < 0.5, "a", "b")
COSTS = rng.uniform(0, 5, (150, 2))
GRADES = worlds.draw_codes(ETA, rng)
FIXED = {"confusion": "labels", "recalibrate": False}
EXPECTED = {"confusion": "expected", "recalibrate": False}

CASES = {
    "default": lambda: mw.optimize(P, Y, "f1", record=["recall", "precision"]),
    "sweep": lambda: mw.optimize(P, Y, "f1", strategy=mw.Strategy(solver="sweep", **FIXED)),
    "path": lambda: mw.optimize(ETA, GRADES, "quadratic_kappa", strategy=mw.Strategy(solver="path", **FIXED)),
    "bisection": lambda: mw.optimize(ETA, GRADES, "micro_f1", strategy=mw.Strategy(solver="bisection", **FIXED)),
    "dinkelbach": lambda: mw.optimize(ETA, GRADES, "micro_f1", strategy=mw.Strategy(solver="dinkelbach", **EXPECTED)),
    "closed_form": lambda: mw.optimize(
        ETA, GRADES, "balanced_accuracy", strategy=mw.Strategy(solver="closed_form", **FIXED)
    ),
    "frank_wolfe": lambda: mw.optimize(
        ETA, GRADES, "g_mean", strategy=mw.Strategy(solver="frank_wolfe", randomized=True, **EXPECTED)
    ),
    "column_generation": lambda: mw.optimize(
        ETA, GRADES, "min_recall", strategy=mw.Strategy(randomized=True, **EXPECTED)
    ),
    "ascent": lambda: mw.optimize(ETA, GRADES, "macro_f1", strategy=mw.Strategy(solver="ascent", **FIXED)),
    "without labels": lambda: mw.optimize(ETA, None, "quadratic_kappa", classes=[0, 1, 2]),
    "constraints": lambda: mw.optimize(P, Y, "recall", subject_to=["precision >= 0.4", "share <= 0.6"], confidence=0.9),
    "a mixture that keeps constraints": lambda: mw.optimize(
        ETA,
        GRADES,
        "accuracy",
        subject_to="min_recall >= 0.3",
        confidence=None,
        strategy=mw.Strategy(randomized=True, **FIXED),
    ),
    "multilabel": lambda: mw.optimize(
        np.stack([P, 1 - P], 1), np.stack([Y, 1 - Y], 1), "f1", average="macro", record=["recall"]
    ),
    "a metric for each output": lambda: mw.optimize(
        [ETA, np.stack([1 - P, P], 1)],
        np.stack([GRADES, Y], 1),
        ["quadratic_kappa", "f1"],
        average="macro",
        strategy=mw.Strategy(**FIXED),
    ),
    "rules by group": lambda: mw.optimize(
        P,
        Y,
        "accuracy",
        subject_to="demographic_parity <= 0.05",
        sensitive_features=GROUPS,
        confidence=None,
        strategy=mw.Strategy(**FIXED),
    ),
    "groups of several columns": lambda: mw.optimize(
        P,
        Y,
        "accuracy",
        subject_to="demographic_parity <= 0.4",
        sensitive_features=np.stack([GROUPS == "a", Y * 0], axis=1).astype(object),
        confidence=None,
        strategy=mw.Strategy(**FIXED),
    ),
    "one rule, values by group": lambda: mw.optimize(
        P, Y, "f1", sensitive_features=GROUPS, strategy=mw.Strategy(**FIXED)
    ),
    "abstentions": lambda: mw.optimize(P, Y, "accuracy", abstain=0.2, strategy=mw.Strategy(**FIXED)),
    "costs per row": lambda: mw.optimize(P, Y, "cost", cost=COSTS),
    "labels per row": lambda: mw.optimize(*label_world(60, 30), "f1", average="macro", labels_per_row=2),
    "very many labels": lambda: mw.optimize(*label_world(60, 1500), "f1", average="macro", record=["recall"]),
    "sets of labels": lambda: mw.optimize(*label_world(60, 5000), "f1_samples"),
}


def same(one, other):
    """Whether two values are equal, types, bits and NaN included."""
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray):
        return one.shape == other.shape and one.dtype == other.dtype and one.tobytes() == other.tobytes()
    if isinstance(one, float):
        return one == other or (one != one and other != other)
    if isinstance(one, (tuple, list)):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if is_dataclass(one) and not hasattr(one, "predict"):
        return all(same(getattr(one, field.name), getattr(other, field.name)) for field in fields(one))
    return one == other


@pytest.mark.parametrize("name", CASES)
def test_every_kind_comes_back_exactly(name, tmp_path):
    solution = CASES[name]()
    path = tmp_path / "solution.json"
    solution.save(path)
    again = mw.load_solution(path)
    assert type(again) is type(solution)
    assert again.problem is None
    for field in fields(mw.Solution):
        if field.name == "problem":  # holds the rows
            continue
        assert same(getattr(solution, field.name), getattr(again, field.name)), field.name
    assert again.rule.to_json() == solution.rule.to_json()
    assert repr(again) == repr(solution)
    assert again.gap == solution.gap
    again.save(tmp_path / "twice.json")
    assert (tmp_path / "twice.json").read_bytes() == path.read_bytes()
    json.loads(path.read_text(), parse_constant=pytest.fail)  # no NaN, no infinity


def test_all_of_it_is_written():
    """A field that is added to a record is a field that its file must have."""
    written = {*solution_file._FIELDS, "certificate", "problem"}
    assert written == {field.name for field in fields(mw.Solution)}
    assert list(solution_file._CERTIFICATE) == [field.name for field in fields(Certificate)]
    number = 1.0
    made = {
        Candidate: Candidate("r", number, number, number, {"f1": number}),
        ConstraintResult: ConstraintResult("p", *[number] * 5, Estimate(number, number, number), number),
        Recorded: Recorded(number, number),
        Gain: Gain(number, number, number),
    }
    kinds = {Candidate: solution_file._CANDIDATE, ConstraintResult: solution_file._CONSTRAINT}
    for kind, codec in kinds.items():
        assert list(codec.write(made[kind])) == [field.name for field in fields(kind)]
    assert list(solution_file._ESTIMATE.write(made[Gain])) == [field.name for field in fields(Gain)]


@pytest.fixture(scope="module")
def document():
    return solution_file.to_document(CASES["constraints"]())


BROKEN = [
    ([], "the solution", r"load_solution: the solution must be an object, got \[\]"),
    ("format", "rule", "load_solution: format must be 'metricwise-solution', got 'rule'"),
    (
        "version",
        3,
        "version must be at most 2, got 3; the solution was written by a newer version of metricwise; upgrade",
    ),
    ("version", True, "version must be an integer from 1 to 2, got True"),
    ("value", "high", "value must be a number, 'NaN', 'Infinity' or '-Infinity', got 'high'"),
    ("value", True, "value must be a number"),
    ("value", None, "value must be a number"),
    ("confusion", 3, "confusion must be an array, got 3"),
    ("confusion", [[1], [2, 3]], "confusion must be a regular array"),
    ("confusion", [[["x"]]], "confusion must be a number"),
    ("confusion", [[[[[1]]]]], "confusion must be an array of at most 4 dimensions"),
    ("value", 10**400, "value must be a number, .*, got 1000"),
    ("history", [10**400], r"history\[0\] must be a number, .*, got 1000"),
    ("confusion", [[[10**400]]], "confusion must be a number, .*, got 1000"),
    ("gain", {"estimate": -(10**400), "low": 1, "high": 2}, "gain.estimate must be a number, .*, got -1000"),
    ("notes", "fine", "notes must be a list, got 'fine'"),
    ("notes", [{"kind": "gossip", "text": "a"}], r"notes\[0\].kind must be one of \['outcome', .*got 'gossip'"),
    ("notes", [{"kind": "outcome", "text": 3}], r"notes\[0\].text must be text, got 3"),
    ("outcome", "great", r"outcome must be one of \['optimal', .*got 'great'"),
    ("outcome", [], "outcome must be one of"),
    ("counted", "fingers", "counted must be 'labels' or 'expected', got 'fingers'"),
    ("n_passes", 1.5, "n_passes must be an integer, got 1.5"),
    ("history", 3, "history must be a list, got 3"),
    ("history", ["x"], r"history\[0\] must be a number"),
    ("gain", 3, "gain must be an object, got 3"),
    ("gain", {"low": 1, "high": 2}, "gain must have the field 'estimate'"),
    ("recorded", [], "recorded must be an object"),
    ("candidates", [{}], r"candidates\[0\] must have the field 'recipe'"),
    ("constraints", [3], r"constraints\[0\] must be an object, got 3"),
    ("by_group", {}, "by_group must be a list, got {}"),
    ("by_group", [{"group": "a", "values": {}}], r"by_group\[0\].group must be a non-empty list, got 'a'"),
    ("by_group", [{"group": [1], "values": {}}] * 2, r"by_group must be about each group once, got \[1, 1\]"),
    ("rule", {}, "format must be 'metricwise-rule', got None"),
    ("rule", None, "rule must be an object, got None"),
]


@pytest.mark.parametrize(("field", "value", "message"), BROKEN)
def test_bad_files_are_refused(document, field, value, message):
    broken = field if isinstance(field, list) else {**copy.deepcopy(document), field: value}
    with pytest.raises(ValueError, match=message):
        mw.load_solution(json.dumps(broken))


def test_fields_are_those_that_are_known(document):
    with pytest.raises(ValueError, match=r"the solution must have only the fields .*got also 'code'"):
        mw.load_solution(json.dumps({**document, "code": "print()"}))
    for name in document:
        less = {key: value for key, value in document.items() if key != name}
        with pytest.raises(ValueError, match=r"load_solution: .*(must have the field|must be)"):
            mw.load_solution(json.dumps(less))


def test_numbers_of_very_many_labels_are_packed():
    document = solution_file.to_document(CASES["very many labels"]())
    assert document["confusion"]["shape"] == [1500, 2, 2]
    assert isinstance(document["by_label"]["hits"], list)
    document = solution_file.to_document(CASES["sets of labels"]())
    assert document["by_label"]["hits"]["shape"] == [5000]
    assert len(json.dumps(document)) < 100_000
    assert "by_label" not in solution_file.to_document(CASES["sweep"]())


PACKED = [
    ("shape", [1500, 2, 3], "zlib_base64 must hold 9000 numbers.*got fewer bytes"),
    ("shape", [100, 2, 2], "zlib_base64 must hold 400 numbers.*got more bytes"),
    ("shape", [10**9, 10**9], "shape must be 1 to 4 numbers from 1, with a product of at most"),
    ("shape", [0], "shape must be 1 to 4 numbers from 1"),
    ("shape", [1] * 5, "shape must be 1 to 4 numbers from 1"),
    ("shape", [1.5], "shape must be an integer"),
    ("dtype", "object", "dtype must be 'float64', got 'object'"),
    ("zlib_base64", "!", "zlib_base64 must hold 6000 numbers"),
    ("zlib_base64", 3, "zlib_base64 must hold 6000 numbers"),
]


@pytest.mark.parametrize(("key", "value", "message"), PACKED)
def test_packed_numbers_that_are_wrong_are_refused(key, value, message):
    document = solution_file.to_document(CASES["very many labels"]())
    document["confusion"][key] = value
    with pytest.raises(ValueError, match=message):
        mw.load_solution(json.dumps(document))


def test_counts_of_labels_are_those_of_the_rule():
    document = solution_file.to_document(CASES["labels per row"]())
    for name in ("true", "predicted", "hits", "value", "baseline_predicted", "baseline_hits", "baseline"):
        short = copy.deepcopy(document)
        short["by_label"][name] = short["by_label"][name][:3]
        with pytest.raises(ValueError, match="must have one number for each of"):
            mw.load_solution(json.dumps(short))
        document["by_label"][name] += [0.0]
    with pytest.raises(ValueError, match="by_label must be about the 30 labels of the rule, got 31"):
        mw.load_solution(json.dumps(document))


def test_files_of_the_first_version_have_a_status(document):
    notes = document["notes"]
    first = {name: value for name, value in document.items() if name != "notes"} | {"version": 1, "status": "Fine."}
    assert len(notes) > 1
    solution = mw.load_solution(json.dumps(first))
    assert solution.notes == (Note(NoteKind.OUTCOME, "Fine."),)
    assert solution.value == document["value"]
    with pytest.raises(ValueError, match="status must be text, got 3"):
        mw.load_solution(json.dumps({**first, "status": 3}))
    with pytest.raises(ValueError, match="must have the field 'status'"):
        mw.load_solution(json.dumps({**document, "version": 1}))


@pytest.mark.parametrize("text", ["{", '{"a": NaN}', '{"a": 1, "a": 2}', "[" * 5000])
def test_text_that_is_no_document(text):
    with pytest.raises(ValueError, match="load_solution: "):
        mw.load_solution(text)


def test_files_that_are_not_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        mw.load_solution(tmp_path / "none.json")
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError, match=r"load_solution: .*bytes\.json must be a JSON file in UTF-8"):
        mw.load_solution(tmp_path / "bytes.json")
    with pytest.raises(TypeError, match="load_solution: the solution must be a path or JSON text, got int"):
        mw.load_solution(3)
    solution = CASES["sweep"]()
    with pytest.raises(FileNotFoundError):
        solution.save(tmp_path / "nowhere" / "solution.json")
    assert [path.name for path in tmp_path.iterdir()] == ["bytes.json"]


def test_outcomes_have_names():
    assert {one.value for one in Outcome} == {"optimal", "local", "not converged", "argmax"}
