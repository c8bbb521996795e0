"""The benchmark of scores beside TunedThresholdClassifierCV: what judges, what is replayed, and one small run."""

from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import norm
from sklearn import metrics as sk
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import TunedThresholdClassifierCV

ROOT = Path(__file__).parents[2]
BY_SCIKIT_LEARN = {
    "f1": sk.f1_score,
    "mcc": sk.matthews_corrcoef,
    "kappa": sk.cohen_kappa_score,
    "balanced_accuracy": sk.balanced_accuracy_score,
}


@pytest.fixture
def benchmark(load):
    return load("benchmarks.scores")


@pytest.fixture
def cancer(benchmark):
    X, y = load_breast_cancer(return_X_y=True)
    return benchmark.Rows(X[:, :4], y.astype(np.intp))


@pytest.mark.parametrize("metric", BY_SCIKIT_LEARN)
def test_metrics_are_those_of_scikit_learn(benchmark, metric):
    rng = np.random.default_rng(0)
    for share in (0.0, 0.2, 0.7):
        y, decided = np.append(rng.integers(0, 2, 60), [0, 1]), (rng.random(62) < share).astype(int)
        assert benchmark.value(y, decided, metric=metric) == pytest.approx(BY_SCIKIT_LEARN[metric](y, decided))


@pytest.mark.parametrize("metric", BY_SCIKIT_LEARN)
def test_the_sweep_is_the_best_of_all_thresholds(benchmark, metric):
    rng = np.random.default_rng(1)
    for _ in range(5):
        scores, y = np.round(rng.normal(size=15), 1), np.append(rng.integers(0, 2, 13), [0, 1])
        threshold = benchmark.best_threshold(scores, y, metric)
        tried = [BY_SCIKIT_LEARN[metric](y, scores > t) for t in [-np.inf, *scores]]
        assert BY_SCIKIT_LEARN[metric](y, scores > threshold) == pytest.approx(max(tried))


def test_the_logits_of_the_network_are_before_its_sigmoid(benchmark, cancer):
    model = benchmark.MODELS["small network"]
    with pytest.warns(UserWarning, match="converged"):
        fitted = benchmark.clone(model.estimator).set_params(mlpclassifier__max_iter=20).fit(cancer.X, cancer.y)
    answers = model.answers(fitted, cancer.X)
    np.testing.assert_allclose(expit(answers["logits"]), fitted.predict_proba(cancer.X)[:, 1], rtol=1e-9)


def test_log_odds_of_naive_bayes_are_those_of_its_probabilities(benchmark, cancer):
    model = benchmark.MODELS["naive Bayes"]
    answers = model.answers(benchmark.clone(model.estimator).fit(cancer.X, cancer.y), cancer.X)
    np.testing.assert_allclose(expit(answers["scores"]), answers["probabilities"][:, 1], rtol=1e-6)


@pytest.mark.parametrize("name", ["logistic regression", "linear SVM"])
def test_replayed_models_are_tuned_as_the_models_are(benchmark, cancer, name):
    model = benchmark.MODELS[name]
    split = benchmark.split_rows(model, cancer, 0)
    tuned = TunedThresholdClassifierCV(model.estimator, scoring="f1", cv=split.folds)
    tuned.fit(cancer.X[split.fit], cancer.y[split.fit])
    np.testing.assert_array_equal(benchmark.decide_tuned(split, "f1"), tuned.predict(cancer.X[split.new]))


def test_the_input_depends_on_ties_of_probabilities(benchmark):
    def chosen(scores, with_probabilities=True):
        p = expit(scores)
        answers = {"scores": scores} | ({"probabilities": np.column_stack([1 - p, p])} if with_probabilities else {})
        rows = np.arange(len(scores))
        return benchmark.chosen_input(benchmark.Split("logits", rows, answers, rows, rows, []))

    scores = np.linspace(-5, 5, 200)
    assert chosen(scores) == "probabilities"
    assert chosen(10 * scores) == "logits"
    assert chosen(np.where(np.abs(scores) > 4, 20 * np.sign(scores), scores)) == "probabilities"  # tied by both
    assert chosen(scores, with_probabilities=False) == "scores"


def rows_of(differences):
    """The rows of cells whose differences are given by metric."""
    return [
        {"set": "a", "model": "b", "split": split, "metric": metric, "input": "scores", "argmax": 0.4, "tuned": 0.5}
        | {"sweep": 0.5, "scores": 0.5 + difference}
        for metric, values in differences.items()
        for split, difference in enumerate(values)
    ]


def test_cells_are_judged_after_holms_correction(benchmark):
    rng = np.random.default_rng(2)
    noise = rng.normal(size=15)
    noise = (noise - noise.mean()) / noise.std(ddof=1) * np.sqrt(15) * 0.01  # a standard error of 0.01
    rows = rows_of({"f1": noise - 0.024, "mcc": noise - 0.06, "kappa": noise, "balanced_accuracy": noise + 0.06})
    cells = benchmark.cells_of(rows)
    assert [cell.error for cell in cells] == pytest.approx([0.01] * 4)
    assert pytest.approx(1 - norm.cdf(2)) == benchmark.LEVEL
    text = benchmark.verdict(cells)
    assert "standard errors: **1** cells; above: **1**. Without the correction\n2 and 1" in text
    assert "- below: a, b, mcc: -0.0600" in text
    assert "The lowest cell is a, b, mcc: -0.0600, standard error 0.0100." in text
    assert "| a | b | scores | -0.0240 ± 0.0100 |" in benchmark.differences_by_cell(cells)


def test_a_small_run_from_models_to_tables(benchmark, monkeypatch, tmp_path, cancer):
    monkeypatch.setattr(benchmark, "binary_set", lambda _: cancer)
    model = benchmark.Model(LogisticRegression(max_iter=1_000), "logits", benchmark.decision_function)
    monkeypatch.setattr(benchmark, "MODELS", {"quick": model, "linear SVM": benchmark.MODELS["linear SVM"]})
    monkeypatch.setattr(benchmark, "METRICS", {name: benchmark.METRICS[name] for name in ("f1", "kappa")})
    tasks = [("cancer", name, split) for name in ("quick", "linear SVM") for split in range(2)]
    rows = [row for task in tasks for row in benchmark.measure(task)]
    assert all(0.6 < row[row["input"]] < 1 for row in rows)
    assert {row["input"] for row in rows} == {"probabilities", "scores"}
    path = tmp_path / "scores.csv"
    benchmark.write_csv(path, [{key: row.get(key, "") for key in benchmark.COLUMNS} for row in rows])
    assert benchmark.report(benchmark.stored(path), "") == benchmark.report(rows, "")
    assert "4 cells of set, model and metric" in benchmark.report(rows, "")


def test_the_page_says_what_the_splits_say(benchmark):
    path = ROOT / "benchmarks" / "scores.csv"
    if not path.exists():
        pytest.skip("the benchmark has not been run")
    rows, text = benchmark.stored(path), path.with_suffix(".md").read_text(encoding="utf-8")
    assert len({row["split"] for row in rows}) == benchmark.SPLITS
    for part in (
        benchmark.verdict(benchmark.cells_of(rows)),
        benchmark.goal_line(rows),
        benchmark.means_by_model(rows),
    ):
        assert part in text
