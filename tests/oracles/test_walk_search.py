"""The search through bins finds what sorting all changes finds: bounds leave out nothing that could be best."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import metricwise as mw
import worlds
from metricwise.oracles import walk as walking
from problems import with_strategy
from profiles import diagonal

pytestmark = pytest.mark.usefixtures("engine")

RATIOS = ("f1", "precision", "jaccard", "kappa")
MULTICLASS = ("micro_f1", "kappa", "quadratic_kappa", "linear_kappa")


def draw(rng, shape, decimals):
    """Probabilities and labels drawn from them, with ties if rounded."""
    if len(shape) < 3:
        proba, y = worlds.binary(shape, a=0.6, b=1.5, seed=rng)
        worlds.show_every_class(y, 2)
    else:
        proba, y = worlds.multiclass(shape[:2], rng.uniform(0.3, 2, size=shape[-1]), every_class=True, seed=rng)
    return proba if decimals is None else proba.round(decimals), y


def searched(bins, call):
    """Run a call with every walk searched through so few bins."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(walking, "_ALL_ROWS", 1)
        patch.setattr(walking, "_BINS", (bins, bins))
        patch.setattr(walking, "_SAMPLE", 32)
        patch.setattr(walking, "_SEGMENTS", 2 * bins)
        return call()


def compare(proba, y, metric, bins, **arguments):
    def call():
        return mw.optimize(proba, y, metric, **with_strategy(recalibrate=False, **arguments))

    sorted_, found = call(), searched(bins, call)
    assert found.value == pytest.approx(sorted_.value, abs=1e-12)
    assert found.baseline == sorted_.baseline
    return sorted_, found


@pytest.mark.parametrize(
    ("metric", "confusion", "bins"), diagonal(12, RATIOS, ["labels", "expected", "blended"], [1, 3, 50, 1000])
)
@pytest.mark.filterwarnings("ignore:.*alone:UserWarning")
def test_one_binary_output(metric, confusion, bins):
    rng = np.random.default_rng(len(metric))
    for decimals in (None, 2):
        proba, y = draw(rng, (400,), decimals)
        for solver in ("sweep", "path"):
            compare(proba, y, metric, bins, confusion=confusion, solver=solver)


@pytest.mark.parametrize("bins", [2, 40])
@pytest.mark.parametrize("average", ["micro", "macro"])
@pytest.mark.parametrize("metric", MULTICLASS)
def test_several_outputs(metric, average, bins):
    rng = np.random.default_rng(0)
    # Rounded rows may tie at every g under a full loss: rounding decides them, which neither way of walking knows.
    proba, y = draw(rng, (300, 5, 4), 2 if metric in ("micro_f1", "kappa") else None)
    weight = rng.integers(0, 3, size=300).astype(float)
    for sample_weight in (None, weight):
        for confusion in ("labels", "expected"):
            compare(proba, y, metric, bins, average=average, sample_weight=sample_weight, confusion=confusion)


@pytest.mark.parametrize("average", ["micro", "macro"])
def test_many_outputs_with_missing_labels_and_single_classes(average):
    """More outputs than are searched together; some keep argmax, some count less."""
    rng = np.random.default_rng(1)
    proba, y = draw(rng, (200, 40), None)
    y = y.astype(float)
    y[rng.random(y.shape) < 0.2] = np.nan
    y[:, 3], y[:, 7] = np.nan, 0
    compare(proba, y, "f1", 20, average=average, confusion="labels")
    listed = [np.stack([1 - p, p], axis=1) for p in proba.T]
    compare(listed, y, "f1", 20, average=average, confusion="labels")


@given(
    seed=st.integers(0, 2**32 - 1),
    metric=st.sampled_from(MULTICLASS),
    bins=st.integers(1, 30),
    decimals=st.sampled_from([None, 1, 2]),
)
@example(seed=30000, metric="kappa", bins=1, decimals=1)  # rounding decides rows where the sums look best
def test_search_is_sorting_on_random_problems(seed, metric, bins, decimals):
    rng = np.random.default_rng(seed)
    k = int(rng.integers(3, 6))
    proba, y = draw(rng, (int(rng.integers(20, 80)), 1, k), decimals)
    eta = proba[:, 0] / proba[:, 0].sum(axis=1, keepdims=True)
    compare(eta, y[:, 0], metric, bins, confusion="labels")


def test_a_zoom_looks_again_at_what_is_left():
    """Most changes in the bins around the best one: a pass over finer bins is worth it, and finds the same."""
    rng = np.random.default_rng(3)
    proba = np.where(rng.random(8000) < 0.6, 0.17 + 0.004 * rng.random(8000), 0.5 * rng.random(8000))
    y = (rng.random(8000) < proba).astype(int)
    sorted_, found = compare(proba, y, "f1", 40, confusion="labels")
    assert sorted_.n_passes == 2  # a list of all changes, and a count
    assert found.n_passes > 3  # bins, finer bins, a list of some, and a count


def test_the_walk_of_large_problems_lists_few_intervals():
    """Of 40,000 changes the search lists those near the best; sorted one by one they give the same."""
    rng = np.random.default_rng(4)
    proba = rng.beta(0.5, 3, size=40_000)
    y = (rng.random(40_000) < proba).astype(int)
    solution = mw.optimize(proba, y, "f1", strategy=mw.Strategy("labels", recalibrate=False))
    order = np.argsort(-proba)
    hits = np.cumsum(y[order])
    assert solution.value == pytest.approx((2 * hits / (y.sum() + np.arange(1, len(y) + 1))).max(), abs=1e-12)
