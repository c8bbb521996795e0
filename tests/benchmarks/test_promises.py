"""The benchmark of floors and ceilings: what judges, a few repetitions of each part, and what is made of many."""

import numpy as np
import pytest
from sklearn import metrics as sk

import metricwise as mw
from metricwise.core.losses import Loss


@pytest.fixture
def promises(load):
    return load("benchmarks.promises")


@pytest.fixture
def rivals(load):
    return load("benchmarks.promise_rivals")


@pytest.fixture
def worlds(load):
    return load("benchmarks.promise_worlds")


REFERENCES = {
    "accuracy": sk.accuracy_score,
    "balanced_accuracy": sk.balanced_accuracy_score,
    "f1[2]": lambda y, p: sk.f1_score(y, p, labels=[2], average="macro"),
    "g_mean": lambda y, p: np.prod(sk.recall_score(y, p, average=None)) ** (1 / 3),
    "kappa": sk.cohen_kappa_score,
    "macro_f1": lambda y, p: sk.f1_score(y, p, average="macro"),
    "micro_f1": lambda y, p: sk.f1_score(y, p, labels=[1, 2], average="micro"),
    "min_recall": lambda y, p: sk.recall_score(y, p, average=None).min(),
    "precision": lambda y, p: sk.precision_score(y, p, labels=[1], average="macro"),
    "quadratic_kappa": lambda y, p: sk.cohen_kappa_score(y, p, weights="quadratic"),
    "recall[0]": lambda y, p: sk.recall_score(y, p, labels=[0], average="macro"),
    "share[2]": lambda y, p: np.mean(p == 2),
}


def test_who_judges_counts_as_scikit_learn_does(worlds):
    assert {name.partition("[")[0] for name in REFERENCES} == set(worlds.VALUES)
    rng = np.random.default_rng(0)
    y, decided = rng.integers(3, size=(2, 500))
    C = worlds.count(np.eye(3)[y], decided)
    np.testing.assert_array_equal(C, sk.confusion_matrix(y, decided))
    for name, reference in REFERENCES.items():
        assert worlds.value(name, C) == pytest.approx(reference(y, decided), abs=1e-12), name


def test_nothing_predicted_keeps_no_precision_floor(worlds):
    nothing, some = np.array([[6.0, 0.0], [4.0, 0.0]]), np.array([[6.0, 0.0], [2.0, 2.0]])
    assert worlds.keeps("precision >= 0.1", np.stack([nothing, some])).tolist() == [False, True]
    assert worlds.keeps("share <= 0.2 and recall >= 0.5", some)
    assert not worlds.keeps("share <= 0.1 and recall >= 0.5", some)


def test_labels_of_a_world_follow_its_true_probabilities(worlds):
    rng = np.random.default_rng(0)
    for draw in (worlds.binary(rng, 50_000), worlds.three(rng, 50_000), worlds.several(rng, 50_000, 5)):
        shares = np.bincount(draw.y) / len(draw.y)
        np.testing.assert_allclose(shares, draw.truth.mean(axis=0), atol=0.008)
        sure = draw.truth[:, 1] > 0.8
        assert np.mean(draw.y[sure] == 1) == pytest.approx(draw.truth[sure, 1].mean(), abs=0.02)


def test_a_draw_is_the_same_again_and_judged_as_evaluate_does(promises, worlds):
    case = promises.Case(worlds.binary, "recall", "precision >= 0.7")
    first, second = (promises.repetition(((case,), 1_000, 5)) for _ in range(2))
    assert [{**row, "ms": 0} for row in first] == [{**row, "ms": 0} for row in second]
    rng = np.random.default_rng([0, 1_000, 5])
    fit, new = worlds.binary(rng, 1_000), worlds.binary(rng, promises.N_NEW)
    rule = mw.optimize(fit.given, fit.y, "recall", subject_to=case.text).rule
    decided = rule.predict(new.given)
    (sure,) = (row for row in first if row["who"] == "0.95")
    assert sure["aim"] == pytest.approx(sk.recall_score(new.y, decided), abs=1e-5)
    assert sure["kept"] == (sk.precision_score(new.y, decided) >= 0.7)


def test_random_losses_are_counted_as_rules_decide(rivals, worlds):
    rng = np.random.default_rng(1)
    rows = worlds.several(rng, 400, 4)
    some = np.concatenate(list(rivals.losses(rng, rng.normal(size=(4, 4)), 40)))
    assert some.shape == (60, 4, 4)
    counted = rivals.count_losses(rows.given, rows.y, some, lot=7)
    for C, loss in zip(counted, some, strict=True):
        rule = mw.WeightedRule(Loss.from_tensor(loss), classes=(np.arange(4),))
        np.testing.assert_array_equal(C, sk.confusion_matrix(rows.y, rule.predict(rows.given), labels=range(4)))


def test_a_link_is_applied_by_its_formula(rivals, worlds):
    rows = worlds.three(np.random.default_rng(2), 500)
    rule = mw.optimize(rows.given, rows.y, "accuracy", strategy=mw.Strategy(confusion="labels", recalibrate=True)).rule
    assert rule.link is not None
    counted = rivals.count_losses(rivals.behind(rule.link, rows.given), rows.y, rule.loss.tensor())
    np.testing.assert_array_equal(counted[0], sk.confusion_matrix(rows.y, rule.predict(rows.given)))


@pytest.mark.parametrize("number", [0, 1])
def test_of_two_classes_no_random_loss_is_worth_more(rivals, number):
    ours, theirs, near = rivals.against_random((number, 2_000))
    assert ours["aim"] >= near["aim"] - 1e-9
    assert ours["kept"] == 1
    assert theirs["n"] > 100
    assert ours["aim"] >= theirs["aim"] - 1e-6
    assert "one of them is better: 0 of 1" in " ".join(rivals.random_text([ours, theirs, near]).split())


def test_beside_mapie(rivals):
    pytest.importorskip("mapie")
    rows = rivals.against_mapie((True, 0.7, 2_000, 0))
    assert rivals.by(rows, "who") == ["metricwise", *rivals.mapie_settings()]
    assert rows[0]["promised"] == 1
    for row in rows:
        assert (row["aim"] > 0) == (row["promised"] == 1)
        assert ("kept" in row) == (row["promised"] == 1)
    assert "| metricwise | 0 | 100.0% | 100.0% | 100.0% | 0.0% |" in rivals.mapie_text(rows)


def test_shares_are_of_draws_where_something_was_promised(promises):
    case = promises.CASES[0]
    row = {"case": str(case), "rows": 1_000, "covered": 1.0, "ms": 2.0}
    rows = [
        row | {"repetition": r, "who": "0.95", "promised": p, "kept": k, "truly kept": 1, "aim": 0.5}
        for r, (p, k) in enumerate([(1, 1), (1, 1), (1, 0), (0, 0)])
    ]
    rows += [
        row | {"repetition": r, "who": "None", "promised": 0, "kept": r % 2, "truly kept": 0, "aim": 0.7}
        for r in range(3)
    ]
    rows.append(row | {"repetition": 3, "who": "None", "promised": 0})
    cell = promises.kept_cell(case, 1_000, rows)
    assert cell["promised"] == "75.0%"
    assert cell["kept"] == "66.7%"
    assert cell["kept without"] == "33.3%"
    assert cell["refused"] == "12.5%"
    assert cell["price"] == "0.2000"
    assert cell["within"] == "**no**"


def test_parts_that_are_not_run_are_kept_as_they_were(promises, tmp_path, monkeypatch, capsys):
    old = [{"part": part, "case": "a", "rows": 5, "repetition": 0, "who": "x", "aim": 0.25} for part in promises.PARTS]
    stub = {part: (lambda _, __, p=part: iter([[{**old[0], "part": p, "aim": 0.5}]]), str) for part in promises.PARTS}
    monkeypatch.setattr(promises, "PARTS", stub)
    columns = promises.COLUMNS
    promises.write_csv(tmp_path / "promises.csv", [{key: row.get(key) for key in columns} for row in old])
    promises.main(["random", "--output", str(tmp_path)])
    again = promises.stored(tmp_path / "promises.csv")
    aims = {row["part"]: row["aim"] for row in again}
    assert aims == {"kept": 0.25, "limits": 0.25, "random": 0.5, "mapie": 0.25}
    assert (tmp_path / "promises.md").read_text() in capsys.readouterr().out
    with pytest.raises(SystemExit):
        promises.main(["another"])
