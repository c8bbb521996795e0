"""The benchmark of segments: its worlds, its test of being worse, and one small run."""

import numpy as np
import pytest


@pytest.fixture
def benchmark(load):
    return load("benchmarks.segments")


def test_labels_follow_the_truth_of_their_segment(benchmark):
    segments = benchmark.Segments(np.array([1.0, 0.5]), np.zeros(2), np.array([[0.0, 0.0], [0.0, 2.0]]))
    p, y, segment = benchmark.draw_rows(segments, 100_000, np.array([0.0, -1.0]), np.random.default_rng(0))
    assert abs((y - p[:, 1])[segment == 0].mean()) < 0.005
    z = np.log(p[:, 1] / p[:, 0])[segment == 1]
    truth = 1 / (1 + np.exp(-(0.5 * (z + 1) - 1 + 2.0)))
    assert abs((y[segment == 1] - truth).mean()) < 0.005


def test_exchangeable_segments_do_not_differ(benchmark):
    segments = benchmark.draw_segments("exchangeable", 5, 3, np.random.default_rng(0))
    np.testing.assert_array_equal(segments.slope, 1.0)
    np.testing.assert_array_equal(segments.base, 0.0)
    few = benchmark.draw_segments("few differ", 10, 2, np.random.default_rng(0))
    assert np.count_nonzero(few.base) == 2


@pytest.mark.parametrize(("mean", "is_worse"), [(-0.03, True), (-0.009, False), (0.0, False)])
def test_worse_is_below_the_margin_by_more_than_noise(benchmark, mean, is_worse):
    difference = mean + np.random.default_rng(0).normal(0, 0.005, 20)
    assert (benchmark.worse_by_margin(difference) < 0.01) == is_worse
    assert benchmark.worse_by_margin(np.full(5, mean)) in (0.0, 1.0)


@pytest.mark.slow
def test_a_small_run(benchmark, monkeypatch):
    monkeypatch.setattr(benchmark, "NEW_ROWS", 2_000)
    rows = [benchmark.run("f1", "base rates", 60, 4, seed) for seed in range(2)]
    (cell,) = benchmark.summarise(rows)
    assert cell["segments"] == 4
    assert 0 < float(cell["by segment"]) < 1
