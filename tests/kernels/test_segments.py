"""Searches along segments: the twins against one another, and against every point of a fine grid."""

import numpy as np
import pytest

import metricwise as mw
from metricwise import kernels
from metricwise.kernels import RatioMeans, _segments, search_segments

GRID = np.linspace(0.0, 1.0, 17)
F1 = ((2.0, 0.0, 0.0, 0.0), (0.0, 1.0, 1.0, 0.0))
JACCARD = ((1.0, 0.0, 0.0, 0.0), (-1.0, 1.0, 1.0, 0.0))
SPECIFICITY = ((1.0, -1.0, -1.0, 1.0), (0.0, -1.0, 0.0, 1.0))


@pytest.fixture(params=["numpy", "compiled"])
def search(request):
    if request.param == "numpy":
        return _segments.search_ratio_means
    module = pytest.importorskip("metricwise.kernels._compiled", exc_type=ImportError)
    return module.search_ratio_means


def summaries(rng, shape, n_classes):
    """Hits and predicted shares; some classes are never predicted, some vertices are the same."""
    confusion = rng.dirichlet(np.full(n_classes**2, 0.3), size=shape).reshape(*shape, n_classes, n_classes)
    confusion[..., rng.random(n_classes) < 0.3] = 0.0
    return np.concatenate([np.diagonal(confusion, axis1=-2, axis2=-1), confusion.sum(axis=-2)], axis=-1)


def problem(seed, n_classes, terms, shape=(5, 4)):
    rng = np.random.default_rng(seed)
    priors = rng.dirichlet(np.ones(n_classes), size=shape[-1])
    priors[0, 0] = 0.0
    weights = np.full_like(priors, 1.0 / n_classes)
    means = RatioMeans(weights, priors, *terms, zero_division=float(seed % 2), empty=1e-14)
    start, end = summaries(rng, shape, n_classes), summaries(rng, shape, n_classes)
    end[1] = start[1]  # along a segment of no length all values are equal
    return means, start, end - start, np.where(rng.random(shape) < 0.3, 0.0, rng.random(shape))


@pytest.mark.parametrize("terms", [F1, JACCARD, SPECIFICITY])
@pytest.mark.parametrize("n_classes", [2, 3, 7, 8, 11])
def test_twins_return_the_same_bits(n_classes, terms):
    compiled = pytest.importorskip("metricwise.kernels._compiled", exc_type=ImportError)
    for seed in range(30):
        means, start, step, longest = problem(seed, n_classes, terms)
        expected = _segments.search_ratio_means(means, start, step, longest, GRID, 5)
        got = compiled.search_ratio_means(means, start, step, longest, GRID, 5)
        assert got.tobytes() == expected.tobytes()
        strided = np.asfortranarray(start)
        assert compiled.search_ratio_means(means, strided, step, longest, GRID, 5).tobytes() == expected.tobytes()


@pytest.mark.parametrize("terms", [F1, JACCARD])
def test_lengths_are_as_good_as_a_fine_grid(search, terms):
    """The first grid finds the best hill up to a sixteenth; from there on no point of a fine grid is better."""
    for seed in range(10):
        means, start, step, longest = problem(seed, 3, terms)
        length = search(means, start, step, longest, GRID, 5)
        assert (length >= 0).all()
        assert (length <= longest).all()
        value = means.values(start + length[..., None] * step)
        coarse = np.stack([means.values(start + (t * longest)[..., None] * step) for t in GRID])
        assert (value >= coarse.max(axis=0) - 1e-12).all()
        near = np.clip(length + np.linspace(-1, 1, 201)[:, None, None] / 17**2 * longest, 0.0, longest)
        assert (value >= means.values(start + near[..., None] * step).max(axis=0) - 1e-7).all()


def test_of_equal_values_the_longest_step_wins(search):
    means, start, step, longest = problem(0, 3, F1)
    assert np.array_equal(search(means, start, np.zeros_like(step), longest, GRID, 5), longest)


def test_nothing_to_search(search):
    means, start, step, longest = problem(0, 3, F1)
    assert search(means, start[:0], step[:0], longest[:0], GRID, 5).shape == (0, 4)


@pytest.mark.parametrize("name", ["macro_f1", "weighted_f1", "macro_jaccard", "macro_precision"])
@pytest.mark.parametrize("zero_division", [0.0, 1.0])
def test_forms_say_what_they_are_means_of(name, zero_division):
    """The arrays that a form gives to the kernels have the values of the form."""
    rng = np.random.default_rng(1)
    priors = rng.dirichlet(np.ones(4), size=3)
    form = mw.metrics.get_metric(name, zero_division=zero_division).bind(priors)
    points = summaries(rng, (6, 3), 4)
    assert kernels.RatioMeans is type(form._ratio_means)
    assert np.array_equal(form._ratio_means.values(points), form.value_at(points))


def test_search_of_any_function_finds_the_top_of_a_parabola():
    """Of ``-(x - top)^2``, up to the last step of the grid."""
    top = np.linspace(-0.5, 1.5, 9)[:, None]
    start, step = np.zeros((9, 1, 1)), np.ones((9, 1, 1))
    length = search_segments(lambda s: -((s[..., 0] - top) ** 2), start, step, np.ones((9, 1)), GRID, 5)
    assert np.abs(length - np.clip(top, 0.0, 1.0)).max() < 1e-4
