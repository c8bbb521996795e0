"""The benchmark of grades from one score: what judges, that both searches of Nelder-Mead agree, and one small run."""

from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def benchmark(load):
    return load("benchmarks.grades")


@pytest.fixture
def scored():
    rng = np.random.default_rng(0)
    scores = rng.normal(2, 1.2, 150)
    return scores, np.clip(np.rint(scores + rng.normal(size=150)), 0, 4).astype(np.intp)


@pytest.mark.parametrize("metric", ["quadratic_kappa", "linear_kappa", "ordinal", "macro_f1"])
def test_metrics_of_counts_are_those_that_are_pasted(benchmark, scored, metric):
    scores, y = scored
    for decided in (np.digitize(scores, [0.5, 1.5, 2.5, 3.5]), np.digitize(scores, [1, 2]), np.arange(150) % 5):
        expected = benchmark.pasted_metric(metric, 5)(y, decided)
        assert benchmark.value(y, decided, metric, 5) == pytest.approx(expected)


@pytest.mark.parametrize("metric", ["quadratic_kappa", "macro_f1"])
def test_both_searches_find_the_same_cut_points(benchmark, scored, metric):
    new = np.linspace(-2, 6, 400)
    pasted, fast = (fit(*scored, metric)(new) for fit in (benchmark.nelder_mead_as_pasted, benchmark.nelder_mead))
    np.testing.assert_array_equal(pasted, fast)


def test_rounding_stays_within_the_grades(benchmark, scored):
    decide = benchmark.nearest_grade(*scored, "ordinal")
    np.testing.assert_array_equal(decide(np.array([-3.0, 0.4, 2.6, 9.0])), [0, 0, 3, 4])


def test_ranks_and_wins_by_hand(benchmark):
    means = [(0.1, 0.2, 0.3), (0.1, 0.3, 0.2), (0.4, 0.2, 0.4)]
    cells = [{who: np.array([mean, mean]) for who, mean in zip(benchmark.RANKED, cell, strict=True)} for cell in means]
    assert benchmark.ranks_of(cells) == pytest.approx({"rounding": 7.5 / 3, "Nelder-Mead": 2.0, "metricwise": 1.5})
    assert benchmark.wins(cells, "rounding") == "2 of 3 cells, 83% of splits"
    assert benchmark.wins(cells, "Nelder-Mead") == "2 of 3 cells, 67% of splits"


def test_a_small_run_from_scores_to_tables(benchmark, monkeypatch, tmp_path):
    metrics = {name: benchmark.METRICS[name] for name in ("quadratic_kappa", "macro_f1")}
    monkeypatch.setattr(benchmark, "METRICS", metrics)
    monkeypatch.setattr(benchmark, "TIMED_SPLITS", 1)
    monkeypatch.setattr(benchmark, "TIMED_CALLS", 1)
    rows = [row for split in range(2) for row in benchmark.measure(("diabetes", "ridge", split))]
    assert [row["who"] for row in rows] == [*benchmark.METHODS] * 2 + benchmark.VALUED * 2
    pasted, fast = (
        next(row["value"] for row in rows if row["who"] == who) for who in (benchmark.SNIPPET, benchmark.PEER)
    )
    assert pasted == fast
    assert all(0.2 < row["value"] < 0.8 for row in rows)
    rows += benchmark.measure_size(("diabetes", 60))
    path = tmp_path / "grades.csv"
    benchmark.write_csv(path, [{key: row[key] for key in benchmark.COLUMNS} for row in rows])
    assert benchmark.report(benchmark.stored(path), "") == benchmark.report(rows, "")
    assert "Mean ranks over 2 cells" in benchmark.report(rows, "")


def test_the_page_says_what_the_splits_say(benchmark):
    path = ROOT / "benchmarks" / "grades.csv"
    if not path.exists():
        pytest.skip("the benchmark has not been run")
    rows, text = benchmark.stored(path), path.with_suffix(".md").read_text(encoding="utf-8")
    assert len({row["split"] for row in rows}) == benchmark.SPLITS
    for part in (benchmark.metric_table, benchmark.cell_table):
        assert part(benchmark.values_of(rows)) in text
