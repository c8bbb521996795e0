"""The benchmark of many classes: its world, its counts of decisions, and one small run."""

import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score, cohen_kappa_score, confusion_matrix, f1_score, recall_score


@pytest.fixture
def benchmark(load):
    return load("benchmarks.many_classes")


def test_labels_follow_the_true_probabilities(benchmark):
    rng = np.random.default_rng(0)
    world = benchmark.World.draw("long-tailed", 20, rng)
    _, truth, y = world.rows(100_000, rng)
    np.testing.assert_allclose(truth.sum(axis=1), 1.0, rtol=1e-5)
    np.testing.assert_allclose(truth.mean(axis=0), np.bincount(y, minlength=20) / len(y), atol=0.005)
    confidence, right = truth.max(axis=1), truth.argmax(axis=1) == y
    for low in (0.2, 0.5, 0.8):
        within = (confidence >= low) & (confidence < low + 0.2)
        assert abs(confidence[within].mean() - right[within].mean()) < 0.015


def test_confusion_is_that_of_labels_up_to_noise(benchmark, monkeypatch):
    monkeypatch.setattr(benchmark, "CHUNK", 7_000)
    world = benchmark.World.draw("balanced", 12, np.random.default_rng(1))
    counted = world.confusion(lambda given: given.argmax(axis=1), 60_000, seed=2)
    given, _, y = world.rows(60_000, np.random.default_rng(3))
    np.testing.assert_allclose(counted, confusion_matrix(y, given.argmax(axis=1)) / len(y), atol=0.003)


def test_values_are_those_of_scikit_learn(benchmark):
    rng = np.random.default_rng(4)
    y, p = rng.integers(0, 5, 300), rng.integers(0, 5, 300)
    confusion = confusion_matrix(y, p) / len(y)
    expected = {
        "balanced_accuracy": balanced_accuracy_score(y, p),
        "kappa": cohen_kappa_score(y, p),
        "macro_f1": f1_score(y, p, average="macro"),
        "min_recall": recall_score(y, p, average=None).min(),
    }
    assert {metric: pytest.approx(benchmark.value(metric, confusion)) for metric in benchmark.METRICS} == expected


@pytest.mark.slow
def test_a_small_run(benchmark):
    rows = [benchmark.measure("balanced", "balanced_accuracy", 1_000, 30, seed, 1) for seed in range(2)]
    (cell,) = benchmark.summarise(rows)
    assert cell["metric"] == "balanced_accuracy"
    assert 0 < float(cell["argmax"]) < 1
    assert float(cell["gain"]) == pytest.approx(float(cell["default"]) - float(cell["argmax"]), abs=2e-4)
