"""The benchmark of the default call: what it times, and what it says of its aims."""

import numpy as np
import pytest

import metricwise as mw


@pytest.fixture
def default(load):
    return load("default")


def test_everyone_is_timed_as_often(default):
    calls = []
    best = default.best_of([lambda: calls.append("one"), lambda: calls.append("other")], 3)
    assert calls == ["one", "other"] * 3
    assert len(best) == 2
    assert all(0 <= seconds < 1 for seconds in best)


@pytest.mark.parametrize(("seconds", "times", "ms", "verdict"), [
    ([0.1, 0.01], 25, None, "≤ 25 times: yes"),
    ([0.3, 0.01], 25, None, "≤ 25 times: **no**"),
    ([1.0, 0.01], None, 1_500.0, "≤ 1,500 ms: yes"),
    ([2.0, 0.01], None, 1_500.0, "≤ 1,500 ms: **no**"),
    ([2.0, 0.01], None, None, None),
])  # fmt: skip
def test_aims(default, seconds, times, ms, verdict):
    row = default.row("something", 1_000, seconds, times, ms)
    assert row["aim"] == verdict
    assert row["times as long"] == f"{seconds[0] / seconds[1]:.1f}"


def test_rows_of_a_small_run(default, monkeypatch):
    monkeypatch.setattr(default, "CLASSES", (2, 3))
    monkeypatch.setattr(default, "METRICS", ("f1", "micro_f1", "quadratic_kappa"))
    rows = default.of_classes(200, 1)
    names = [row["what"] for row in rows]
    assert names == ["f1, K=2", "quadratic_kappa, K=2", "micro_f1, K=3", "quadratic_kappa, K=3"]
    assert all(row["Nelder-Mead with five folds, ms"] is not None for row in rows)
    assert default.markdown(rows).count("quadratic_kappa") == 2


def test_the_peer_is_fitted_to_each_fold_and_to_all(default, monkeypatch):
    sizes = []

    def watched(proba, y, metric):
        sizes.append(len(y))
        return lambda new: np.argmax(new, axis=1)

    monkeypatch.setattr(default, "nelder_mead", watched)
    proba, y = default.multiclass(100, 3)
    default.safe_nelder_mead(proba, y, mw.metrics.get_metric("kappa"))
    assert sizes == [80] * 5 + [100]
