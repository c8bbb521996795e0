"""The display of a watch: what is drawn is what the summary says."""

import io

import numpy as np
import pytest

import metricwise as mw
from metricwise import displays

plt = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(autouse=True)
def _closed():
    plt.switch_backend("Agg")
    yield
    plt.close("all")


def watch_of(promises, rule=None, n_batches=12, drift=6):
    watch = mw.watch(rule or mw.WeightedRule.from_thresholds(0.5), promises)
    for batch in range(n_batches):
        rng = np.random.default_rng(batch)
        proba = rng.beta(1, 2, 100)
        watch.update(proba, (rng.random(100) < proba * (1.0 if batch < drift else 0.4)).astype(int))
    return watch


def test_lines_are_the_summary():
    watch = watch_of(["precision >= 0.6", "0.05 <= share <= 0.6"])
    display = watch.plot()
    display.figure_.savefig(io.BytesIO(), dpi=40)
    summary = watch.summary()
    assert [axes.get_title(loc="left") for axes in display.ax_] == [
        "precision >= 0.6: broken",
        "0.05 <= share <= 0.6: no sign that it is broken",
        "shares of decisions",
    ]
    lines = {line.get_label(): line.get_ydata() for line in display.ax_[0].lines}
    np.testing.assert_array_equal(lines["all so far"], summary["promises"][0]["running"])
    np.testing.assert_array_equal(lines["each batch"], summary["promises"][0]["values"])
    assert set(lines["bound 0.600"]) == {0.6}
    shares = {line.get_label(): line.get_ydata() for line in display.ax_[-1].lines}
    np.testing.assert_array_equal(shares["1"], [row[1] for row in summary["history"]["outputs"][0]["shares"]])
    labels = [text.get_text() for text in display.ax_[0].get_legend().get_texts()]
    status = watch.promises[0]
    assert f"broken since about {status.since}, found in {status.found}" in labels


def test_given_axes():
    watch = watch_of("precision >= 0.1", n_batches=2)
    figure, axes = plt.subplots(2)
    display = displays.WatchDisplay.from_watch(watch, ax=axes, color="red")
    assert display.figure_ is figure
    assert list(display.ax_) == list(axes)
    with pytest.raises(ValueError, match="ax must be 2 axes, one for each promise and one for the shares, got 1"):
        display.plot(ax=axes[:1])
    with pytest.raises(TypeError, match="watch must be a Watch"):
        displays.WatchDisplay.from_watch(3)


def test_many_outputs_and_labels_that_look_like_formulas():
    names = {f"${name}$": 0.5 for name in "abcdefgh"}
    watch = mw.watch(mw.WeightedRule.from_thresholds(names), "precision >= 0.1")
    rng = np.random.default_rng(0)
    proba = rng.random((50, 8))
    watch.update(proba, (rng.random((50, 8)) < proba).astype(int)).update(proba, ids=range(50))
    display = watch.plot()
    display.figure_.savefig(io.BytesIO(), dpi=40)
    assert display.ax_[-1].get_title(loc="left") == "shares of decisions (6 of 16, which vary most)"
    assert len(display.ax_[-1].lines) == 6


def test_before_any_batch():
    display = mw.watch(mw.WeightedRule.from_thresholds(0.5), "precision >= 0.1").plot()
    display.figure_.savefig(io.BytesIO(), dpi=40)
    assert len(display.batches) == 0
