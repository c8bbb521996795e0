"""The study of training: its choices and statistics by hand, and one small run from models to the page."""

import numpy as np
import pytest

import metricwise as mw


@pytest.fixture
def study(load):
    return lambda name: load(f"benchmarks.training.{name}")


def test_configurations_are_twenty_and_half_of_them_weighted(study):
    configurations = study("configurations")
    for model, settings in configurations.CONFIGURATIONS.items():
        assert len(settings) == 20
        assert sum(configurations.WEIGHTED[model]) == 10


def test_log_loss_is_that_of_scikit_learn(study):
    from sklearn.metrics import log_loss

    proba, y = np.random.default_rng(0).dirichlet(np.ones(3), 50), np.arange(50) % 3
    assert study("criteria").log_loss(proba, y) == pytest.approx(log_loss(y, proba))


def test_value_at_argmax_is_that_of_scikit_learn(study):
    from sklearn.metrics import f1_score

    proba, y = np.random.default_rng(0).dirichlet(np.ones(3), 50), np.arange(50) % 3
    value = study("criteria").value_at_argmax(proba, y, "macro_f1")
    assert value == pytest.approx(f1_score(y, proba.argmax(axis=1), average="macro"))


def test_value_at_the_best_rule_is_that_of_the_scorer(study):
    from sklearn.frozen import FrozenEstimator
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 3)), rng.integers(3, size=300)
    model = FrozenEstimator(LogisticRegression().fit(X, y))
    value = study("criteria").best_value(model.predict_proba(X), y, "macro_f1")
    assert value == pytest.approx(mw.make_scorer("macro_f1", at="best")(model, X, y))


@pytest.mark.parametrize(
    ("values", "best"),
    [([1, 3, 2, 3, 1], 1), ([1, 2, 0, 0, 0, 0, 0, 5], 1), ([1, 2, 0, 0, 0, 0, 5, 0], 6), ([0, 0, 0], 0)],
)
def test_stopping_waits_five_rounds_and_takes_the_first_of_equals(study, values, best):
    assert study("values").stopped_at(np.array(values, dtype=float), float) == best


def test_boosting_by_rounds_adds_up_to_the_model(study, monkeypatch):
    predictions = study("predictions")
    monkeypatch.setattr(predictions, "ROUNDS", (2, 3, 6))
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    for n_classes in (2, 3):
        y = np.argmax(X[:, :n_classes], axis=1)
        model = study("configurations").make_lightgbm(n_estimators=6).fit(X, y)
        for proba, n_rounds in zip(predictions._by_round(model.booster_, X), (2, 3, 6), strict=True):
            np.testing.assert_allclose(proba, model.predict_proba(X, num_iteration=n_rounds), atol=1e-6)


@pytest.fixture
def two_sets():
    """Two configurations: log loss chooses the first, the best rule the second; argmax ties, and takes the first."""
    import pandas as pd

    truths = {"car": (0.5, 0.6), "car_good": (0.5, 0.7), "cmc": (0.5, 0.3)}
    return pd.DataFrame(
        {"set": name, "model": "logistic", "split": split, "metric": "mcc", "configuration": number}
        | {"log_loss": -number, "argmax": 0.4, "best": 0.1 * number, "truth": truth + 0.01 * split}
        | {"n_train": 100, "n_held_out": 50, "n_classes": 3}
        for name, pair in truths.items()
        for split in range(2)
        for number, truth in enumerate(pair)
    )


def test_choices_by_hand(study, two_sets):
    choices = study("choices").chosen(two_sets).set_index(["set", "split"])
    row = choices.loc[("car_good", 1)]
    assert row[["log_loss", "argmax", "best", "oracle", "mean"]].tolist() == pytest.approx(
        [0.51, 0.51, 0.71, 0.71, 0.61]
    )
    assert choices.loc[("cmc", 0), "best"] == pytest.approx(0.3)


def test_sets_of_one_table_count_once(study, two_sets):
    choices = study("choices").chosen(two_sets)
    line = study("report")._comparison(choices, ("oracle",))
    assert line["best - log loss"].startswith("-0.0250 ")  # the mean of (0.1 + 0.2) / 2 and -0.2
    assert line["better, worse than log loss"] == "2 (2), 1 (1)"  # the same in both splits: beyond chance


@pytest.mark.slow
def test_from_models_to_the_page(study, monkeypatch, tmp_path):
    predictions, command = study("predictions"), study("command")
    configurations = study("configurations")
    some = {model: settings[:2] for model, settings in configurations.CONFIGURATIONS.items()}
    monkeypatch.setattr(predictions, "CONFIGURATIONS", some)
    monkeypatch.setattr(study("values"), "metrics_of", lambda name, n_classes: ("balanced_accuracy",))
    monkeypatch.setattr(command, "in_processes", lambda work, tasks, jobs: map(work, tasks))
    monkeypatch.setattr(command, "NAMES", ("wine", "digits_eight"))
    for name in ("predictions", "values"):
        monkeypatch.setattr(study(name), "ROUNDS", (2, 4))
    for name, number in {"TRIES": 1, "TRAINING_TRIES": 1, "N_ROUNDS": 3}.items():
        monkeypatch.setattr(study("times"), name, number)
    page = tmp_path / "page.md"
    page.write_text("<!-- table: search -->\n<!-- end -->\n<!-- table: evaluation_times -->\n<!-- end -->\n")
    options = ["--cache", str(tmp_path), "--results", str(tmp_path), "--page", str(page), "--splits", "2", "--quick"]
    command.main(["run", *options])
    text = page.read_text()
    assert "| logistic | balanced_accuracy | 2 |" in text
    assert "log_loss" in text
    stored = (tmp_path / "stopping.csv").read_text()
    command.main(["stopping", *options])
    assert (tmp_path / "stopping.csv").read_text() == stored  # nothing is measured twice
