"""Fuzzing itself: some inputs of each kind have no fault, faults are found, and a run goes on where it stopped."""

import os
import re
import time
from dataclasses import dataclass

import pytest

from fuzz import results as records
from fuzz import verdicts
from fuzz.kinds import KINDS, arrays, exports, texts
from fuzz.results import Results
from fuzz.running import run
from fuzz.verdicts import Kind, Outcome, Verdict, examine, generator
from metricwise.core.errors import InvalidParameter
from metricwise.metrics.base import Metric
from metricwise.metrics.class_names import Reader
from tests.fuzz.__main__ import main

N_CASES = 8
SEED = 20


@pytest.mark.parametrize("name", KINDS)
def test_some_inputs_of_each_kind_have_no_fault(name):
    outcomes = [examine(KINDS[name], SEED, number) for number in range(N_CASES)]
    assert [f"{one.number}: {one.problem} {one.case}" for one in outcomes if one.verdict == Verdict.FAULT] == []


def test_an_input_depends_on_seed_kind_and_number_alone():
    drawn = [str(texts.draw(generator(seed, "texts", 3))) for seed in (0, 0, 1)]
    assert drawn[0] == drawn[1] != drawn[2]


# ------------------------------------------------------------------------------------------------------ seeded faults


def faults(name, draw, n_cases):
    """What is wrong with the first cases of a draw."""
    outcomes = [examine(Kind(name, draw), SEED, number) for number in range(n_cases)]
    return [one.problem for one in outcomes if one.verdict == Verdict.FAULT]


def test_a_wrong_value_is_found(monkeypatch):
    right = Metric.score
    monkeypatch.setattr(Metric, "score", lambda self, *args, **options: right(self, *args, **options) + 1e-6)
    assert all("by scikit-learn" in problem for problem in faults("texts", texts.draw_named, 5))
    assert len(faults("texts", texts.draw_named, 5)) == 5


def test_a_text_that_is_read_wrongly_is_found(monkeypatch):
    right = Reader.label
    monkeypatch.setattr(Reader, "label", lambda self: str(right(self)))
    assert any("was written as" in problem for problem in faults("texts", texts.draw_written, 20))


def test_an_export_that_decides_otherwise_is_found(monkeypatch):
    decide = exports.SYSTEMS["python"]
    monkeypatch.setattr(exports, "SYSTEMS", {"python": lambda rule, rows: decide(rule, rows)[::-1]})
    monkeypatch.setattr(exports, "SINGLE", ())
    assert any("differ" in problem for problem in faults("exports", exports.draw, 10))


def test_an_error_that_is_not_ours_is_found(monkeypatch):
    def fail(*_, **__):
        raise KeyError("place")

    monkeypatch.setattr("metricwise.optimize", fail)
    assert any("KeyError: 'place'" in problem for problem in faults("arrays", arrays.draw_hard, 1))


# ----------------------------------------------------------------------------------------------------- verdicts, told


@dataclass
class Told:
    """A case that does what it is told."""

    action: str
    refusable: bool = True

    def judge(self):
        if self.action == "refuse":
            raise InvalidParameter("x", "be a number", "y")
        if self.action == "mumble":
            raise InvalidParameter("x", problem="np.float64(1.0) is bad")
        if self.action == "hang":
            end = time.process_time() + 5
            while time.process_time() < end:
                pass
        if self.action == "warn":
            import warnings

            warnings.warn("overflow", RuntimeWarning, stacklevel=1)
        return Verdict.RIGHT


@pytest.mark.parametrize(
    ("case", "verdict", "problem"),
    [
        (Told("go"), Verdict.RIGHT, ""),
        (Told("refuse"), Verdict.REFUSED, ""),
        (Told("refuse", refusable=False), Verdict.FAULT, "refuses what is right: x must be a number, got y."),
        (Told("mumble"), Verdict.FAULT, "NumPy's scalars in a sentence"),
        (Told("warn"), Verdict.FAULT, "RuntimeWarning: overflow"),
        (Told("hang"), Verdict.FAULT, "takes more than 0.2 seconds"),
    ],
    ids=str,
)
def test_verdicts(case, verdict, problem, monkeypatch):
    monkeypatch.setattr(verdicts, "MAX_CPU_SECONDS", 0.2)
    outcome = examine(Kind("told", lambda rng: case), 0, 0)
    assert outcome.verdict == verdict
    assert problem in outcome.problem
    assert (outcome.case == str(case)) == (verdict == Verdict.FAULT)


# -------------------------------------------------------------------------------------------------------------- runs


def test_results_are_read_as_they_were_written(tmp_path):
    results = records.read(tmp_path, 3, KINDS)
    results.add(Outcome("texts", 0, Verdict.RIGHT, 0.5))
    results.add(Outcome("texts", 1, Verdict.FAULT, 0.25, "KeyError: 'a,b'", "the input"))
    records.write(results, tmp_path, KINDS)
    again = records.read(tmp_path, 3, KINDS)
    assert again.counts["texts"] == records.Count("texts", 3, 2, 1, 0, 1, 0.8, 0.5)
    assert again.faults == results.faults
    assert "| all | | **2** | **1** | **0** | **1** |" in (tmp_path / records.SUMMARY).read_text()
    assert records.read(tmp_path, 4, KINDS).inputs == 0


def test_a_fault_that_is_mended_is_counted_by_its_new_verdict(tmp_path):
    results = records.read(tmp_path, 3, KINDS)
    for number in range(3):
        results.add(Outcome("texts", number, Verdict.FAULT, 0.25, "KeyError", "the input"))
    results.add(Outcome("texts", 1, Verdict.REFUSED, 0.25))
    results.add(Outcome("texts", 2, Verdict.FAULT, 0.25))
    count = results.counts["texts"]
    assert (count.inputs, count.refused, count.fault) == (3, 1, 2)
    assert [row.case for row in results.unmended] == [0, 2]
    assert "Of these inputs 1 were faults at first" in records.summary(results, KINDS)


def test_one_input_is_tried_again(capsys):
    assert main(["--kind", "texts", "--case", "5"]) == 0
    assert re.match(r"texts 5: (right|refused) in", capsys.readouterr().out)


@pytest.mark.slow
def test_a_run_goes_on_where_it_stopped(tmp_path, capsys):
    words = ["--kind", "texts", "--seconds", "2", "--output", str(tmp_path)]
    assert main(words) == 0
    tried = records.read(tmp_path, 0, KINDS).inputs
    assert tried > 0
    assert main(words) == 0
    assert f"from input {tried:,} on" in capsys.readouterr().out
    assert records.read(tmp_path, 0, KINDS).inputs > tried


@pytest.mark.slow
def test_a_process_that_dies_is_a_fault_of_its_input(tmp_path, monkeypatch):
    monkeypatch.setattr("fuzz.running.work", die_at_three)
    results = Results(0, {"texts": records.Count("texts", 0)})
    run({"texts": KINDS["texts"]}, results, 8, tmp_path, print)
    assert [(row.case, row.problem) for row in results.faults[:1]] == [(3, "kills the process: SIGABRT")]
    assert results.inputs > 4


def die_at_three(connection, seed, plan, again, place):
    """As `work`, on cases that take no time, one of which kills the process."""
    (number, _) = plan["texts"]
    while True:
        connection.send(("texts", number))
        if number == 3:
            os.abort()
        connection.send(Outcome("texts", number, Verdict.RIGHT, 0.01))
        number += 1
        time.sleep(0.05)
