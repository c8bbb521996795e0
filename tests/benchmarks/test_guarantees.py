"""The benchmark of guaranteed constraints: the truth of its worlds, its sums and checks, and a few draws."""

import numpy as np
import pytest


@pytest.fixture
def part(load):
    """A function that imports a module of the benchmark."""
    return lambda name: load(f"benchmarks.guarantees.{name}")


def line(way, draws, given, broken, aim, ahead=0.0, squared=0.0):
    sums = {"draws": draws, "given": given, "broken": broken, "aim": aim, "ms": draws}
    kinds = {
        f"{kind} {key}": number
        for kind in ("exact, unlabelled rows", "exact")
        for key, number in {"ahead": ahead, "squared": squared}.items()
    }
    where = {"problem": "monotone", "constraint": "precision >= 0.8", "rows": 500, "first draw": 0, "way": way}
    return where | sums | kinds


@pytest.mark.parametrize("name", ["monotone", "bumpy", "tied", "tempered"])
def test_truth_of_thresholds_is_that_of_very_many_rows(part, name):
    world = part("worlds").WORLDS[name]
    rows = world.draw(np.random.default_rng(0), 400_000)
    for threshold in (0.3, 0.71, 0.9):
        truth = world.truth(lambda scores, threshold=threshold: scores > threshold)
        decided = rows.proba > threshold
        assert truth["precision"] == pytest.approx(rows.y[decided].mean(), abs=0.01)
        assert truth["recall"] == pytest.approx(decided[rows.y == 1].mean(), abs=0.01)


def test_truth_of_classes_is_that_of_very_many_rows(part):
    world = part("worlds").WORLDS["classes"]
    rows = world.draw(np.random.default_rng(0), 400_000)
    truth, decided = world.truth(lambda proba: proba.argmax(axis=1)), rows.proba.argmax(axis=1)
    assert truth["accuracy"] == pytest.approx((decided == rows.y).mean(), abs=0.005)
    assert truth["recall[2]"] == pytest.approx((decided == 2)[rows.y == 2].mean(), abs=0.01)
    assert truth["coverage"] == 1.0


def test_nothing_predicted_keeps_no_precision(part):
    truth = part("worlds").WORLDS["monotone"].truth(lambda scores: np.zeros(len(scores), dtype=bool))
    assert truth["recall"] == 0.0
    assert not part("problems").keeps("precision >= 0.8", truth)


def test_precision_of_the_bumpy_world_crosses_every_floor_more_than_once(part):
    worlds = part("worlds")
    world = worlds.WORLDS["bumpy"]
    precision = world.hits[:-1] / (1 - np.arange(worlds.POINTS) / worlds.POINTS)
    for floor in part("problems").FLOORS:
        assert np.count_nonzero(np.diff(precision >= floor)) >= 2


def test_checks_see_what_is_broken_and_what_is_behind(part):
    report = part("report")
    good = report.cells([line("exact, unlabelled rows", 1_000, 500, 60, 200.0), line("exact", 1_000, 100, 99, 1.0)])
    assert report.broken_too_often(good) == []  # 6 %, and a way that gives too few rules
    bad = report.cells([line("exact, unlabelled rows", 1_000, 500, 70, 200.0)])
    assert [cell.way for cell in report.broken_too_often(bad)] == ["exact, unlabelled rows"]
    rival = line("mapie", 100, 90, 0, 30.0, ahead=-1.0, squared=0.02)
    made = report.cells([line("exact, unlabelled rows", 100, 90, 0, 29.0), line("exact", 100, 90, 0, 29.0), rival])
    assert [cell.way for _, cell in report.behind(made)] == ["mapie", "mapie"]
    assert "1.0%" not in report.checks(made)
    assert "mapie" in report.checks(made)


def test_blocks_that_are_stored_are_not_measured_again(part):
    tasks = part("draws").blocks(["monotone"], None)
    stored = [{"problem": "monotone", "rows": 500, "first draw": 0}]
    assert len(part("command").pending(tasks, stored)) == len(tasks) - 1


def test_few_draws(part, monkeypatch, tmp_path):
    pytest.importorskip("mapie")
    command, draws = part("command"), part("draws")
    monkeypatch.setattr(command, "in_processes", lambda work, tasks, jobs: map(work, tasks))
    monkeypatch.setattr(draws, "DRAWS", {1_000: 2})
    command.main(["monotone", "joint", "--repeats", "2", "--output", str(tmp_path)])
    lines = command.stored(tmp_path / "guarantees.csv")
    assert {line["problem"] for line in lines} == {"monotone", "joint"}
    assert {"exact, unlabelled rows", "exact", "about", "mapie"} <= {line["way"] for line in lines}
    assert all(line["broken"] <= line["given"] <= line["draws"] for line in lines)
    assert "## World: joint" in (tmp_path / "guarantees.md").read_text()
