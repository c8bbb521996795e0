"""The benchmark against TunedThresholdClassifierCV: one small draw, and what is made of several."""

import numpy as np
import pytest
from scipy.stats import ttest_1samp
from sklearn.dummy import DummyClassifier


@pytest.fixture
def benchmark(load):
    return load("home_ground")


@pytest.mark.parametrize("world", ["linear", "bent"])
def test_worlds_have_few_positives(benchmark, world):
    X, y = getattr(benchmark, world)(np.random.default_rng(0), 50_000)
    assert X.shape == (50_000, 6)
    assert 0.06 < y.mean() < 0.08


def test_the_same_draw_gives_the_same_values(benchmark, monkeypatch):
    monkeypatch.setattr(benchmark, "METRICS", ("balanced_accuracy",))
    (row,), (again,) = (benchmark.repetition("logistic regression, misspecified", 3, 600, 2_000) for _ in range(2))
    assert row["values"] == again["values"]
    argmax, theirs, ours = row["values"]
    assert min(theirs, ours) > argmax + 0.1


def test_kappa_is_scored_though_scikit_learn_has_no_name_for_it(benchmark):
    model = DummyClassifier(strategy="constant", constant=1).fit([[0], [0]], [0, 1])
    assert benchmark.scorer_of("cohen_kappa")(model, [[0], [0], [0]], [0, 1, 1]) == 0.0


def test_differences_are_judged_by_their_spread(benchmark):
    differences = {
        "f1": [-0.01, -0.02, -0.015],
        "matthews_corrcoef": [0.03, -0.02, 0.01],
        "cohen_kappa": [0.02, 0.03, 0.04],
    }
    differences["balanced_accuracy"] = [0.0, 0.0, 0.0]
    found = [
        {"family": "a", "seed": seed, "metric": metric, "values": [0.4, 0.5, 0.5 + each], "seconds": [0.3, 0.1]}
        for metric, values in differences.items()
        for seed, each in enumerate(values)
    ]
    rows = {row["metric"]: row for row in benchmark.cells(found)}
    assert [row["beyond noise"] for row in rows.values()] == ["below", "", "above", ""]
    for metric in ("f1", "matthews_corrcoef", "cohen_kappa"):
        assert float(rows[metric]["t"]) == pytest.approx(ttest_1samp(differences[metric], 0).statistic, abs=0.051)
    mean, error = benchmark.overall(found)
    assert mean == pytest.approx(np.mean(list(differences.values())))
    assert error == pytest.approx(np.std(np.mean(list(differences.values()), axis=0), ddof=1) / np.sqrt(3))
    text = benchmark.summary(found)
    assert "Mean over 3 draws" in text
    assert "took 3.0 times as long" in text
