"""The benchmark of intervals: its worlds are what they say, its verdicts are those of binomial tests, and it runs."""

import numpy as np
import pytest
from scipy.stats import binomtest


@pytest.fixture
def intervals(load):
    return load("benchmarks.intervals")


@pytest.fixture
def worlds(load):
    return load("benchmarks.interval_worlds")


def test_samples_have_the_class_shares_of_their_population(intervals):
    rng = np.random.default_rng(0)
    for world in {cell.world.name: cell.world for cell in intervals.cells()}.values():
        sample, population = world.draw(rng, 60_000), world.population(rng)
        counts = sample.options.get("sample_weight")
        share = np.average(sample.y == 1, weights=None if counts is None else counts.weight)
        assert share == pytest.approx(population.truth[:, 1].mean(), abs=0.03)


def test_rows_in_time_depend_on_one_another_as_said(worlds):
    series = worlds.walk(np.random.default_rng(0), 200_000, 0.9)
    assert np.std(series) == pytest.approx(1, abs=0.03)
    assert np.corrcoef(series[:-1], series[1:])[0, 1] == pytest.approx(0.9, abs=0.005)


def test_a_frequency_table_has_as_many_rows_as_asked_for(worlds):
    sample = worlds.frequency_table().draw(np.random.default_rng(0), 1_000)
    assert sample.options["sample_weight"].weight.sum() == 1_000
    assert len(sample.y) < 250


@pytest.mark.parametrize(("hits", "counted"), [(0, 10), (900, 1000), (905, 1000), (950, 1000), (1000, 1000), (10, 10)])
def test_a_coverage_falls_by_its_binomial_limits(intervals, hits, counted):
    limits = binomtest(hits, counted).proportion_ci(0.99)
    assert intervals.binomial_limits(hits, counted) == pytest.approx((limits.low, limits.high))
    expected = limits.low <= 0.99 and limits.high >= 0.92
    assert intervals.coverage_holds({"hits": hits, "counted": counted}) == expected


@pytest.mark.parametrize(
    ("promised", "kept", "holds"), [(1000, 950, True), (1000, 920, False), (100, 60, True), (150, 60, False)]
)
def test_promises_fall_if_broken_too_often(intervals, promised, kept, holds):
    assert intervals.promise_holds({"draws": 1000, "counted": promised, "hits": kept}) == holds


def test_intervals_are_counted_by_side(intervals):
    results = [{"gain": (0.0, 1.0, truth), "promise": (1.0, 1.0, float(truth < 1))} for truth in (0.5, 2.0, -1.0)]
    gain, promise = intervals.summarize(intervals.cells()[0], [*results, None])
    assert [gain[key] for key in ("draws", "refused", "counted", "hits", "below", "above")] == [4, 1, 3, 1, 1, 1]
    assert [promise[key] for key in ("counted", "hits")] == [3, 2]


def test_every_kind_of_call_is_judged(intervals, tmp_path):
    calls = {}
    for number, cell in enumerate(intervals.cells()):
        if cell.n_rows <= 1_000:
            calls.setdefault(cell.call.__doc__, number)
    lines = []
    for number in calls.values():
        _, results = intervals.run_batch((number, 0, 1))
        lines += intervals.summarize(intervals.cells()[number], results)
    assert {line["quantity"] for line in lines} > {"f1", "gain", "value", "promise", "precision >= 0.8"}
    intervals.write_csv(tmp_path / "intervals.csv", lines)
    assert intervals.stored(tmp_path / "intervals.csv") == lines
    assert "## Promises" in intervals.report(lines)
