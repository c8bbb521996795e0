"""Metrics of two classes that never fall where a right decision takes the place of a wrong one: bounds of a search."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import metricwise as mw
from metricwise.metrics import registry
from metricwise.oracles import walk as walking
from profiles import examples

LABELS = {"confusion": "labels", "recalibrate": False}
NAMED = sorted(set(registry.metric_names()) - {"cost", "weighted_accuracy", "fbeta"})  # which need parameters
MADE = {
    **{name: mw.metrics.get_metric(name) for name in NAMED},
    "precision, 1 at 0/0": mw.metrics.ClassAverage(mw.metrics.Precision(zero_division=1.0), "macro"),
    "F2, 1 at 0/0": mw.metrics.ClassAverage(mw.metrics.FBeta(2.0, zero_division=1.0), "macro"),
    "jaccard, weighted": mw.metrics.ClassAverage(mw.metrics.Jaccard(), "weighted"),
}
SEARCHED = ["macro_f1", "weighted_f1", "macro_jaccard", "macro_precision", "mcc", "g_mean", "h_mean", "q_mean",
            "min_recall", "fowlkes_mallows", "precision, 1 at 0/0", "F2, 1 at 0/0"]  # fmt: skip


def bound(name, priors):
    return MADE[name].bind(priors, (0, 1))


def rising(name):
    return bound(name, np.array([0.4, 0.6])).traits.monotone


def test_those_that_sort_otherwise_are_declared():
    assert all(rising(name) for name in SEARCHED)


@pytest.mark.parametrize("name", [name for name in MADE if rising(name)])
@given(
    prior=st.integers(0, 8),
    wrong=st.tuples(st.floats(0, 1), st.floats(0, 1)),
    less=st.tuples(st.sampled_from([0.0, 0.25, 0.999, 1.0]), st.sampled_from([0.0, 0.25, 0.999, 1.0])),
)
def test_declared_is_true(name, prior, wrong, less):
    """Fewer of either class are wrong, down to none: empty predictions and classes without rows are among them."""
    priors = np.array([8 - prior, prior]) / 8
    missed = priors * np.array(wrong)
    metric = bound(name, priors)

    def value(missed):
        return float(metric.value(np.array([[priors[0] - missed[0], missed[0]], [missed[1], priors[1] - missed[1]]])))

    assert value(missed * np.array(less)) >= value(missed) - 1e-9


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", SEARCHED)
@examples(15)
@given(seed=st.integers(0, 10**6), decimals=st.sampled_from([1, 2, 15]), bins=st.sampled_from([1, 7, 64]))
def test_search_is_sorting(name, weighted, seed, decimals, bins):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(20, 300))
    p = rng.beta(0.5, 1.5, n).round(decimals)
    y = (rng.random(n) < p).astype(int)
    y[:2] = 0, 1
    weight = rng.integers(0, 3, n) / 2 + (np.arange(n) < 2) if weighted else None
    call = lambda: mw.optimize(p, y, MADE[name], sample_weight=weight, strategy=mw.Strategy(solver="sweep", **LABELS))  # noqa: E731
    listed = call()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(walking, "_ALL_ROWS", 0)
        patch.setattr(walking, "_BINS", (bins, bins))
        patch.setattr(walking, "_SAMPLE", 128)
        searched = call()
    assert searched.value == pytest.approx(listed.value, abs=1e-9)


@pytest.mark.parametrize("average", ["micro", "macro"])
def test_several_outputs(average):
    rng = np.random.default_rng(0)
    p = rng.beta(0.5, 1.5, (4000, 3)).round(3)
    y = (rng.random(p.shape) < p).astype(int)
    for metric in ("mcc", "min_recall"):
        call = lambda metric=metric: mw.optimize(p, y, metric, average=average, strategy=mw.Strategy(**LABELS))  # noqa: E731
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("metricwise.solvers.sweep._MAX_SEPARATE_GROUPS", 0)
            listed = call()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(walking, "_ALL_ROWS", 0)
            searched = call()
        assert searched.value == pytest.approx(listed.value, abs=1e-9)
        np.testing.assert_array_equal(searched.rule.predict(p), listed.rule.predict(p))
