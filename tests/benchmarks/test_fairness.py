"""The benchmark of promises about groups: what judges, and what is made of a draw."""

import numpy as np
import pytest
from sklearn import metrics as sk


@pytest.fixture
def fairness(load):
    return load("benchmarks.fairness")


def test_judges_count_as_scikit_learn_does(fairness):
    rng = np.random.default_rng(0)
    y, decided, group = rng.integers(0, 2, (3, 400))
    assert fairness.aim_of("accuracy", decided, y) == pytest.approx(sk.accuracy_score(y, decided))
    assert fairness.aim_of("balanced_accuracy", decided, y) == pytest.approx(sk.balanced_accuracy_score(y, decided))
    parts = [group == g for g in (0, 1)]
    shares = [decided[own].mean() for own in parts]
    assert fairness.violation_of("demographic_parity", decided, y, group) == pytest.approx(abs(np.diff(shares)[0]))
    rates = np.array([[sk.recall_score(y[own], decided[own], pos_label=c) for c in (0, 1)] for own in parts])
    odds = np.abs(rates[0] - rates[1]).max()
    assert fairness.violation_of("equalized_odds", decided, y, group) == pytest.approx(odds)


def test_a_draw_and_its_report(fairness, monkeypatch):
    monkeypatch.setattr(fairness, "N_NEW", 2_000)
    monkeypatch.setattr(fairness, "CONTESTANTS", {"metricwise": fairness.by_metricwise})
    monkeypatch.setitem(fairness.PROBLEMS, "few", lambda: fairness.world(np.random.default_rng(1), 300))
    rows = fairness.peers(("few", 1)) + fairness.new_rows((0, 300, 0))
    assert all(row["violation"] <= 0.05 + 1e-6 for row in rows if row["part"] == "peers")
    assert {row["who"] for row in rows if row["part"] == "new"} == {
        "metricwise, confidence=0.95",
        "metricwise, confidence=None",
    }
    text = fairness.report(rows)
    assert "8 problems. Another library has a better metric without a larger violation: 0." in text
    assert "few: accuracy, demographic_parity <= 0.05" in text
