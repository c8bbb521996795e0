"""The experiments run from end to end, and measure what they say."""

from __future__ import annotations

import numpy as np
import pytest

from metricwise.metrics import Ordinal
from reproduction.catalogue import EXPERIMENTS, reproduce
from reproduction.datasets import write_made_up
from reproduction.experiments.consistency import METRICS, _best, _form, _population
from reproduction.experiments.movielens import _mean_of_means, _values
from reproduction.experiments.synthetic import true_probabilities
from reproduction.experiments.uci import UciExperiment
from reproduction.experiments.uci_models import MODELS, split_probabilities
from reproduction.protocol import RunSettings
from reproduction.reports.consistency import slope
from reproduction.reports.intervals import paired_interval
from reproduction.reports.movielens import to_paper_scale
from reproduction.reports.paper_numbers import SETS, UCI, paper_best, paper_ratio, paper_value


@pytest.mark.slow
@pytest.mark.skipif(not __import__("importlib.util").util.find_spec("matplotlib"), reason="figures need matplotlib")
def test_all_quick(tmp_path):
    said = []
    paths = reproduce(list(EXPERIMENTS), tmp_path, quick=True, jobs=2, say=said.append)
    assert said[0].startswith("data: ")
    assert [path.name for path in paths] == [f"{name}.md" for name in EXPERIMENTS]
    for name in EXPERIMENTS:
        for ending in ("csv", "md", "html", "json"):
            assert (tmp_path / f"{name}.{ending}").stat().st_size > 0
    for figure in ("uci", "synthetic_surface", "synthetic_heat", "movielens", "consistency"):
        assert (tmp_path / f"{figure}.png").stat().st_size > 5_000
        assert "<svg" in (tmp_path / f"{figure}.svg").read_text()
    text = (tmp_path / "uci.md").read_text()
    assert "of the 60 cells of the paper's table" in text
    assert "nan" not in text


def test_quick_without_data_says_so(tmp_path, monkeypatch):
    monkeypatch.delenv("METRICWISE_DATA", raising=False)
    said = []
    (path,) = reproduce(["movielens"], tmp_path, quick=True, say=said.append)
    assert said[0] == "data: small made-up files, for METRICWISE_DATA is not set"
    assert "**Made-up data**" in path.read_text()


def test_unknown_name(tmp_path):
    with pytest.raises(ValueError, match=r"names must be among .* got \['mnist'\]"):
        reproduce(["mnist"], tmp_path)


@pytest.fixture(scope="module")
def made_up(tmp_path_factory):
    return RunSettings(quick=True, data=write_made_up(tmp_path_factory.mktemp("data")), made_up=True)


def test_uci_task_is_the_same_each_time(made_up):
    experiment = UciExperiment()
    first = experiment.run(("wiki4he", 0, "DT"), made_up)
    assert first == experiment.run(("wiki4he", 0, "DT"), made_up)
    assert first != experiment.run(("wiki4he", 1, "DT"), made_up)
    assert len(first) == 3 * 2 * 5
    assert all(0 <= value <= 1 for value in first.values())


@pytest.mark.parametrize("model", MODELS)
def test_split_probabilities(model):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    y = np.column_stack([(X[:, 0] > 0).astype(int), rng.integers(0, 3, 120)])
    y[:5, 1] = -1
    train, test = np.arange(100), np.arange(100, 120)
    proba = split_probabilities(model, X, y, train, test, 3, seed=0)
    assert proba.test.shape == proba.half_test.shape == (20, 2, 3)
    assert proba.out_of_fold.shape == (100, 2, 3)
    assert proba.half.shape == (50, 2, 3)
    for part in (proba.test, proba.half_test, proba.out_of_fold, proba.half):
        assert np.allclose(part.sum(axis=-1), 1)
        assert (part[:, 0, 2] == 0).all()  # a class that an output does not have
    again = split_probabilities(model, X, y, train, test, 3, seed=0)
    assert np.array_equal(proba.out_of_fold, again.out_of_fold)


def test_unknown_model():
    with pytest.raises(ValueError, match="model must be one of"):
        split_probabilities("SVM", np.zeros((9, 1)), np.zeros((9, 1), int), np.arange(6), np.arange(6, 9), 2, 0)


def test_paper_numbers_agree_with_one_another():
    """The printed ratios are those of the printed means, but for the ones that the paper got wrong."""
    wrong = []
    for (metric, average), rows in UCI.items():
        assert set(rows) == set(SETS)
        for name in SETS:
            for model in ("LogReg", "DT"):
                base = paper_value(metric, average, name, model)
                ratio = paper_value(metric, average, name, f"C-{model}") / base
                if abs(ratio - paper_ratio(metric, average, name, model)) > 0.011:
                    wrong.append((metric, average, name, model))
    assert len(wrong) <= 6
    assert paper_best("ordinal", "macro", "nursery") == 0.7679
    assert paper_best("ordinal", "macro", "wiki4he") is None


def test_paired_interval_is_wider_than_that_of_independent_splits():
    difference = np.random.default_rng(0).normal(0.1, 0.02, 100)
    mean, low, high = paired_interval(difference, test_over_train=0.25)
    naive = 1.984 * difference.std(ddof=1) / 10
    assert low < mean - naive < mean + naive < high


def test_movielens_values_are_those_of_the_metric():
    rng = np.random.default_rng(0)
    y = rng.integers(1, 6, (30, 8)).astype(float)
    y[rng.random(y.shape) < 0.5] = np.nan
    predicted = rng.integers(1, 6, y.shape)
    found = _values("m", {"r": predicted}, y)
    classes = [np.arange(1, 6)] * 8
    for average in ("micro", "macro"):
        assert found[f"m_r_{average}"] == pytest.approx(Ordinal().score(y, predicted, average=average, classes=classes))
    assert _mean_of_means(np.array([]), np.array([], dtype=int)) == 0.0
    assert float(to_paper_scale(np.array(1.0))) == 1.0


def test_synthetic_probabilities_follow_the_formula():
    x = np.random.default_rng(0).normal(size=(1, 10))
    weights = [[0.3 * abs(k - d) for d in range(10)] for k in range(10)]
    raw = np.exp([-np.dot(w, x[0]) for w in weights])
    assert np.allclose(true_probabilities(x, 0.3)[0], raw / raw.sum())


def test_bound_and_bayes_rule():
    _, eta = _population(2_000)
    for name, metric in METRICS.items():
        A, B, least = _form(metric, eta.mean(axis=(0, 1)))
        assert (A >= 0).all()
        assert (B >= 0).all()
        assert least > 0
        assert 0 < _best(name, "macro", 2_000) < 1
    assert slope(np.array([1.0, 10.0, 100.0]), np.array([1.0, 0.0, 0.01])) == pytest.approx(-1.0)
