"""Public names, pickles and files as they were frozen, and times that there is something to compare with."""

import difflib
import json
import pickle
import warnings

import pytest

from tests.golden import adapter, frozen, signatures

pytestmark = pytest.mark.skipif(
    not frozen.TIMES.exists(), reason="nothing is frozen yet: python -m tests.golden freeze"
)


def then():
    return json.loads(frozen.DECISIONS.read_text(encoding="utf-8"))


def unpickled(name):
    """Return what was pickled, or None where it is refused by a sentence that says what to do."""
    content = (frozen.FOLDER / f"{name}.pkl").read_bytes()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Trying to unpickle estimator")  # scikit-learn's, of another version
        try:
            return pickle.loads(content)  # noqa: S301
        except ModuleNotFoundError as refusal:
            if "read that file with metricwise.load_rule(path)." not in str(refusal):
                raise
            return None


def test_public_names_and_signatures():
    before = frozen.SIGNATURES.read_text(encoding="utf-8").splitlines()
    changes = list(
        difflib.unified_diff(before, signatures.public_names().splitlines(), "frozen", "now", lineterm="", n=2)
    )
    assert not changes, "public names or signatures changed (python -m tests.golden freeze):\n" + "\n".join(changes)


@pytest.mark.parametrize("name", frozen.RULES)
def test_pickled_rules_decide_as_they_did(name):
    rule = unpickled(name)
    if rule is not None:
        assert frozen.decided_by_rule(rule, frozen.RULES[name]) == then()[name]


@pytest.mark.parametrize("name", frozen.RULES)
def test_rule_files_decide_as_they_did(name):
    rule = adapter.load_rule(frozen.FOLDER / f"{name}.json")
    assert frozen.decided_by_rule(rule, frozen.RULES[name]) == then()[name]


def test_a_pickled_estimator_decides_as_it_did():
    estimator = unpickled("estimator")
    if estimator is not None:
        assert frozen.decided_by_estimator(estimator) == then()["estimator"]


def test_a_solution_file_has_its_rule():
    solution = adapter.load_solution(frozen.FOLDER / "solution.json")
    document = json.loads((frozen.FOLDER / "solution.json").read_text(encoding="utf-8"))
    assert solution.value == document["value"]
    assert frozen.decided_by_solution(solution) == then()["solution"]


def test_times_are_those_of_the_benchmarks():
    times = json.loads(frozen.TIMES.read_text(encoding="utf-8"))
    assert {name: len(rows) for name, rows in times.items()} == {"default": 30, "latency": 16}
    assert frozen.slower(times, times) == []
    longer = json.loads(frozen.TIMES.read_text(encoding="utf-8"))
    longer["latency"][0]["best"] = str(float(longer["latency"][0]["best"]) * 1.2)
    (line,) = frozen.slower(times, longer)
    assert line.startswith("latency: import numpy ms: ")
    assert "(+20%)" in line
