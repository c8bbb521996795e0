"""The benchmark behind the page "Comparison with other tools": what judges, and that page, table and draws agree."""

import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import precision_score, recall_score

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "beside_other_tools.md"


@pytest.fixture
def benchmark(load):
    return load("benchmarks.side_by_side")


def test_a_floor_is_judged_as_scikit_learn_would(benchmark, monkeypatch):
    draws = []
    monkeypatch.setattr(benchmark.promise_worlds, "binary", draw_and_keep(benchmark.promise_worlds.binary, draws))
    rows = benchmark.one_floor(0)
    predict = benchmark.floor_by_metricwise(*rows.fit)
    decisions = predict(*rows.new)
    truth = draws[-1].truth
    rows_twice = {"sample_weight": truth.ravel("F")}  # every row once as 0 and once as 1, by its true probabilities
    both, labels = np.tile(decisions, 2), np.repeat([0, 1], len(truth))
    found = benchmark.valued(rows, decisions)
    assert found["value"] == pytest.approx(recall_score(labels, both, **rows_twice), abs=1e-6)
    assert found["kept"] == (precision_score(labels, both, **rows_twice) >= 0.8)
    assert benchmark.valued(rows, None) == {"value": 0.0, "kept": ""}


def draw_and_keep(draw, kept):
    def drawn(*arguments):
        kept.append(draw(*arguments))
        return kept[-1]

    return drawn


def test_contestants_take_turns_on_the_same_rows(benchmark, monkeypatch):
    turns = []
    rows = benchmark.Rows((), (), np.zeros(4), lambda decisions: float(decisions.mean()))
    crew = {name: lambda name=name: turns.append(name) or (lambda: np.ones(4)) for name in ("one", benchmark.OURS)}
    monkeypatch.setitem(benchmark.TASKS, "tiny", benchmark.Task(lambda _: rows, crew))
    found = list(benchmark.run("tiny", 2))
    assert turns[2:] == ["one", benchmark.OURS, benchmark.OURS, "one"]  # after a warm-up of both
    assert [(row["who"], row["draw"], row["value"]) for row in found if row["who"] == "argmax"] == [
        ("argmax", 0, 0.0),
        ("argmax", 1, 0.0),
    ]
    shown = {row["who"]: row for row in benchmark.cells(found)}
    assert shown["argmax"]["beside metricwise"] == "-1.0000 ± 0.0000"
    assert list(shown) == ["argmax", "one", "**metricwise**"]


def test_the_table_says_what_the_draws_say(benchmark):
    rows = benchmark.stored(ROOT / "benchmarks" / "side_by_side.csv")
    text = (ROOT / "benchmarks" / "side_by_side.md").read_text(encoding="utf-8")
    for task in benchmark.TASKS:
        own = [row for row in rows if row["task"] == task]
        assert f"## {task}\n\n{benchmark.shown(own)}\n" in text
        ours = [row["value"] for row in own if row["who"] == benchmark.OURS]
        assert len(ours) == benchmark.DRAWS
        assert f"| **metricwise** | {np.mean(ours):.4f} |" in text


def test_the_page_prints_the_code_that_is_run(benchmark):
    if not PAGE.exists():
        pytest.skip("the documentation is not here")
    printed = set(re.findall(r":pyobject: (\w+)", PAGE.read_text(encoding="utf-8")))
    run = {fit.__name__ for task in benchmark.TASKS.values() for fit in task.contestants.values()}
    assert run - printed == {"nelder_mead_macro_f1"}  # described in words
    assert printed <= run


@pytest.mark.parametrize("found", ["2.0.0", "3.0.0"])
def test_a_library_with_another_api_is_refused(benchmark, monkeypatch, found):
    monkeypatch.setitem(benchmark.check_apis.__globals__, "installed", lambda package: found)
    with pytest.raises(SystemExit, match=rf"optimal-classification-cutoffs {re.escape(found)} has another API"):
        benchmark.check_apis()


@pytest.mark.parametrize("found", ["0.6.0", "not installed"])
def test_a_library_with_the_known_api_is_not_refused(benchmark, monkeypatch, found):
    monkeypatch.setitem(benchmark.check_apis.__globals__, "installed", lambda package: found)
    benchmark.check_apis()
