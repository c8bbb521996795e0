"""The corpus itself: calls are data, worlds have the same bits everywhere, whatever is changed is found and named."""

import copy
import hashlib
import json
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from tests.golden import __main__ as command
from tests.golden import adapter, compose, recording, worlds
from tests.golden.columns import NAMES, decisions_of, plain_values, shortened
from tests.golden.comparison import differences, report, unsteady

HERE = Path(__file__).parent
CALL = {
    "id": "example",
    "kind": "example",
    "world": {"kind": "multiclass", "seed": 1, "rows": 120},
    "do": "optimize",
    "options": {"metric": "macro_f1", "record": ["accuracy"], "count": "labels", "recalibrate": False},
}


@pytest.fixture(scope="module")
def columns():
    return adapter.perform(CALL)


def changed(columns, column, edit):
    other = copy.deepcopy(columns)
    edit(other[column])
    return other


# --------------------------------------------------------------------------------------------------------- calls


def test_stored_calls_are_those_composed():
    assert compose.read() == compose.compose()


def test_calls_are_many_of_every_kind():
    calls = compose.read()
    assert len({call["id"] for call in calls}) == len(calls) >= 800
    kinds = Counter(call["kind"] for call in calls)
    assert set(kinds) == set(compose.KINDS)
    assert sum("quick" in call for call in calls) == compose.N_QUICK
    assert {call["kind"] for call in calls if "quick" in call} == set(kinds)
    assert {call["do"] for call in calls} == set(adapter.OPERATIONS)


def test_one_file_knows_the_library():
    importing = re.compile(r"^\s*(?:from|import) metricwise", re.MULTILINE)
    found = {path.name for path in HERE.glob("*.py") if importing.search(path.read_text(encoding="utf-8"))}
    assert found == {"adapter.py"}


def test_worlds_have_the_bits_that_they_had():
    # By arithmetic alone, so that neither a processor nor a library changes them.
    digest = hashlib.sha256()
    for kind in ("binary", "multiclass", "ordinal", "multilabel", "multioutput", "mixed"):
        for trust in ("calibrated", "overconfident", "tilted"):
            world = worlds.make({"kind": kind, "seed": 3, "rows": 90, "trust": trust, "missing": 0.1, "grid": 64})
            arrays = [*world.eta, world.codes, world.weight, world.wrong_costs, world.cost_tables, world.features]
            for array in arrays:
                digest.update(np.ascontiguousarray(array, dtype=float).tobytes())
    assert digest.hexdigest()[:16] == "9cf819b929ee4e93"


def test_worlds_are_worlds():
    for kind, labels in [("binary", "signs"), ("multiclass", "words"), ("ordinal", "words"), ("mixed", "ratings")]:
        world = worlds.make({"kind": kind, "seed": 2, "labels": labels, "rows": 400})
        for m, eta in enumerate(world.eta):
            np.testing.assert_allclose(eta.sum(axis=1), 1)
            assert (eta.argmax(axis=1) == world.codes[:, m]).mean() > 1 / eta.shape[1]  # labels go with probabilities
            assert set(world.labels("given")[m].tolist()) == set(world.classes[m])


# -------------------------------------------------------------------------------------------------------- columns


def test_floats_are_stored_bit_by_bit():
    numbers = [0.1, -0.0, 5e-324, 1 / 3, 1e308, np.float64(2 / 3), np.float32(0.1)]
    stored = json.loads(json.dumps(plain_values(numbers)))
    assert [value.hex() for value in stored] == [float(value).hex() for value in numbers]
    assert plain_values([np.nan, np.inf, -np.inf]) == ["nan", "inf", "-inf"]


def test_decisions_are_symbols():
    world = worlds.make({"kind": "multiclass", "labels": "words", "rows": 90})
    found = decisions_of(np.array(["ant", "cat", "ask", "wasp"], dtype=object), world, "ask")
    assert found["codes"] == ["02-?"]
    numbers = worlds.make({"kind": "binary", "rows": 90})
    assert decisions_of(np.array([0, 1, -1]), numbers, -1)["codes"] == ["01-"]
    assert decisions_of(np.array([0.0, 1.0]), numbers)["codes"] == ["01"]


def test_long_texts_keep_a_checksum():
    text = "a" * 5000
    assert shortened(text)["checksum"] != shortened(text + "b")["checksum"]
    assert shortened("short") == "short"


def test_a_call_gives_the_same_again(columns):
    assert adapter.perform(CALL) == columns
    assert set(columns) == {"decisions", "rule", "numbers", "structure", "work", "notes", "text"} <= set(NAMES)


def test_refusals_and_warnings_are_columns():
    refused = adapter.perform({**CALL, "options": {"metric": "nonsense"}})
    assert set(refused) == {"error"}
    assert refused["error"].startswith("ValueError: metric: 'nonsense' is not known")
    warned = adapter.perform({**CALL, "world": {"kind": "binary"}, "options": {"metric": "recall", **CALL["options"]}})
    assert "warnings" not in warned or all(": " in text for text in warned["warnings"])


# ------------------------------------------------------------------------------------------- what changed is found


def test_nothing_changed(columns):
    assert differences("example", columns, columns, exact=True) == []
    assert report([], 7) == "7 calls: all as recorded."


def test_a_number_in_its_last_bit(columns):
    def edit(numbers):
        numbers["value"] = float(np.nextafter(numbers["value"], 1))

    other = changed(columns, "numbers", edit)
    (found,) = differences("example", columns, other, exact=True)
    assert (found.column, found.path) == ("numbers", ("value",))
    assert differences("example", columns, other, exact=False) == []
    text = report([found], 1)
    assert "numbers: 1 of 1 calls differ, in 1 entries; 1 numbers: median relative difference" in text
    assert f"numbers.value: was {columns['numbers']['value']!r}, is " in text


def test_a_number_beyond_rounding(columns):
    def edit(numbers):
        numbers["confusion"][0][1][2] *= 1 + 1e-8
        numbers["value"] *= 1 + 1e-6

    found = differences("example", columns, changed(columns, "numbers", edit), exact=False)
    assert {one.path for one in found} == {("confusion", 0, 1, 2), ("value",)}
    assert "largest 1e-06 (example, value)." in report(found, 1)


def test_a_rule(columns):
    def edit(rule):
        next(entry for entry in rule.values() if isinstance(entry, dict) and entry)["added"] = 1

    (found,) = differences("example", columns, changed(columns, "rule", edit), exact=False)
    assert "added: was not there, is 1" in str(found)


def test_a_sentence(columns):
    def edit(notes):
        notes[0] = notes[0] + " Or not."

    (found,) = differences("example", columns, changed(columns, "notes", edit), exact=False)
    assert "Or not." in str(found)
    assert "notes.0" in str(found)
    several = changed(columns, "text", lambda text: text.update(rule=text["rule"].replace("Rule for", "A rule for")))
    (found,) = differences("example", columns, several, exact=True)
    assert "+A rule for macro_f1." in str(found)


def test_a_decision(columns):
    def edit(decisions):
        codes = decisions["new"]["codes"]
        codes[0] = ("1" if codes[0][0] != "1" else "2") + codes[0][1:]

    (found,) = differences("example", columns, changed(columns, "decisions", edit), exact=False)
    assert "1 of 60 rows are decided otherwise: row 0:" in str(found)


def test_numbers_in_texts_up_to_rounding():
    # Source code has all digits of its numbers, of which the last ones differ from processor to processor.
    one, other = "p > 0.30000000000000004 in 3 rows", "p > 0.30000000000000016 in 3 rows"
    assert differences("e", {"text": one}, {"text": other}, exact=True)
    assert not differences("e", {"text": one}, {"text": other}, exact=False)
    for wrong in ("p > 0.30000001000000004 in 3 rows", "p > 0.30000000000000004 in 4 rows", "p > 0.3 in all rows"):
        assert differences("e", {"text": one}, {"text": wrong}, exact=False)
    long, as_long = ({"text": shortened(text * 200)} for text in (one, other))
    assert not differences("e", long, as_long, exact=False)
    assert [found.path for found in differences("e", long, as_long, exact=True)] == [("bits",)]


def test_calls_that_the_last_bits_decide(columns):
    def edit(decisions):
        decisions["new"]["codes"][0] = "2" * 60

    numbers = changed(columns, "numbers", lambda values: values.update(value=values["value"] * (1 + 1e-15)))
    assert unsteady({"example": columns}, {"example": numbers}) == set()
    assert unsteady({"example": columns}, {"example": changed(columns, "decisions", edit)}) == {"example"}


def test_a_column_that_comes_or_goes(columns):
    other = {**columns, "warnings": ["UserWarning: look out"]}
    assert "was not there, is ['UserWarning: look out']" in report(differences("e", columns, other, exact=True), 1)
    assert "is not there" in report(differences("e", other, columns, exact=True), 1)


def test_types_and_the_order_of_keys(columns):
    assert differences("e", {"numbers": {"a": 1}}, {"numbers": {"a": 1.0}}, exact=False)
    assert differences("e", {"numbers": {"a": True}}, {"numbers": {"a": 1}}, exact=False)
    (found,) = differences("e", {"rule": {"a": 1, "b": 2}}, {"rule": {"b": 2, "a": 1}}, exact=True)
    assert "order of keys" in str(found)


def test_a_rule_of_a_recording_that_decides_otherwise(columns):
    stored = recording.Recording(calls={"example": copy.deepcopy(columns)})
    assert command.old_rules(stored, [CALL]) == []
    stored.calls["example"]["decisions"]["new"]["codes"][0] = "2" * 60
    (found,) = command.old_rules(stored, [CALL])
    assert "rows are decided otherwise" in str(found)


# ------------------------------------------------------------------------------------------------------ recordings


@pytest.fixture
def few(tmp_path, monkeypatch):
    """Two calls, and a folder for what is recorded of them."""
    path = tmp_path / "calls.jsonl"
    other = {**CALL, "id": "another", "options": {**CALL["options"], "metric": "accuracy"}}
    compose.write([CALL, other], path)
    calls = compose.read(path)
    monkeypatch.setattr(compose, "read", lambda: calls)
    return tmp_path / "recordings"


def run(folder, *words):
    return command.main([*words, "--kernel", adapter.kernel_in_use(), "--folder", str(folder)])


def test_record_and_check(few, capsys):
    kernel = adapter.kernel_in_use()
    assert run(few, "check") == 1
    assert "There is no recording" in capsys.readouterr().out
    assert run(few, "record") == 0
    assert "Recorded 2 calls." in capsys.readouterr().out
    before = recording.path_of(kernel, few).read_bytes()
    assert run(few, "check", "--shuffle", "1") == 0
    assert "2 calls: all as recorded.\n2 calls: all decided as recorded by the rules" in capsys.readouterr().out
    assert run(few, "record") == 0
    assert recording.path_of(kernel, few).read_bytes() == before


def test_one_column_is_recorded_anew(few, capsys):
    kernel = adapter.kernel_in_use()
    run(few, "record")
    stored = recording.read(kernel, few)
    stored.calls["example"]["notes"] = ["As it was said."]
    stored.calls["example"]["numbers"]["value"] *= 1.5
    recording.write(stored, kernel, few)
    capsys.readouterr()
    assert run(few, "check") == 1
    assert "numbers: 1 of 2 calls differ" in capsys.readouterr().out
    assert run(few, "record", "--column", "notes") == 0
    text = capsys.readouterr().out
    assert "Recorded anew: notes; 0 calls are new." in text
    assert "notes: 1 of 2 calls differ, in 1 entries." in text
    assert "was 'As it was said.'" in text
    assert "Left as it was, and differs: numbers, of 1 calls." in text
    now = recording.read(kernel, few)
    assert now.calls["example"]["notes"] != ["As it was said."]
    assert now.calls["example"]["numbers"] == stored.calls["example"]["numbers"]


def test_calls_that_are_new_or_gone(few, capsys):
    kernel = adapter.kernel_in_use()
    run(few, "record")
    stored = recording.read(kernel, few)
    stored.calls["gone"] = stored.calls.pop("another")
    recording.write(stored, kernel, few)
    capsys.readouterr()
    assert run(few, "check") == 1
    text = capsys.readouterr().out
    assert "Recorded, and no longer called: ['gone']." in text
    assert "another" in text
    run(few, "record", "--column", "notes")
    assert list(recording.read(kernel, few).calls) == ["example", "another"]
    assert run(few, "check") == 0


def test_a_recording_of_another_machine(few):
    kernel = adapter.kernel_in_use()
    run(few, "record")
    stored = recording.read(kernel, few)
    stored.environment["versions"]["numpy"] = "1.0"
    stored.calls["example"]["numbers"]["value"] *= 1 + 1e-13
    recording.write(stored, kernel, few)
    assert run(few, "check") == 0  # not bit by bit
    assert run(few, "record", "--column", "notes") == 0
    with pytest.raises(SystemExit, match=r"made with another processor or other versions.*Record all columns"):
        run(few, "record", "--column", "numbers")
    with pytest.raises(SystemExit, match="Record all columns of all calls"):
        run(few, "record", "--calls", "example")
    assert run(few, "record") == 0
    assert recording.read(kernel, few).exact
