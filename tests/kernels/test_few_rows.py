"""Few rows checked and decided in one call: as `check_rows` and `decide` do it, by both twins."""

import numpy as np
import pytest

from kernels.layouts import LAYOUTS
from metricwise.kernels import Block, LinkArrays, _few_rows, _numpy

TOLERANCE = 0.02


@pytest.fixture(params=["numpy", "compiled"])
def decider(request):
    if request.param == "numpy":
        return _few_rows.RowDecider
    return pytest.importorskip("metricwise.kernels._compiled", exc_type=ImportError).RowDecider


def rows(rng, n_rows, n_classes, decimals=None):
    proba = rng.dirichlet(np.ones(n_classes), size=n_rows)
    return proba if decimals is None else proba.round(decimals)


def parts(rng, n_classes, diagonal, linked):
    """A loss with ties, and a link."""
    loss = rng.integers(-2, 3, size=(1, n_classes, n_classes)).astype(float)
    link = LinkArrays(np.array([1.7]), rng.normal(size=(1, n_classes)), 1e-6) if linked else None
    return ((-np.abs(loss[:, 0]) - 1, loss[:, 1]) if diagonal else (loss,)), link


@pytest.mark.parametrize("linked", [False, True])
@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3, 9])
def test_codes_are_those_of_decide(decider, n_classes, diagonal, linked):
    rng = np.random.default_rng(n_classes)
    sizes = np.array([n_classes], dtype=np.intp)
    for n_rows in (1, 2, 127, 128):
        loss, link = parts(rng, n_classes, diagonal, linked)
        made = decider(loss, link, n_classes, TOLERANCE)
        for kind in (np.float32, np.float64):
            for layout in LAYOUTS.values():
                eta = layout(rows(rng, n_rows, n_classes, 2 if n_classes == 2 else None).astype(kind))
                expected = _numpy.decide(Block(eta[:, None], sizes, link=link), loss)[:, 0]
                got = made.decide(eta)
                if got is None:  # swapped bytes, unaligned or float16 numbers are left to others
                    assert eta.dtype != np.dtype(kind) or not eta.flags.aligned
                    continue
                assert got.dtype == np.intp
                assert np.array_equal(got, expected)
                if n_classes == 2:
                    single = made.decide(eta[:, 1])
                    expected = _numpy.decide(Block(eta[:, 1:], sizes, link=link), loss)[:, 0]
                    assert np.array_equal(single, expected)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -0.01, 1.5])
def test_what_is_no_probability_is_not_decided(decider, wrong):
    made = decider((np.zeros((1, 2, 2)),), None, 2, TOLERANCE)
    assert made.decide(np.array([0.3, 0.6])) is not None
    assert made.decide(np.array([0.3, wrong])) is None
    assert made.decide(np.array([[0.3, 0.7], [wrong, 1 - wrong]])) is None
    assert made.decide(np.array([[0.3, 0.7], [0.3, 0.6]])) is None  # off by 0.1


def test_what_is_of_another_kind_is_not_decided(decider):
    two, three = (decider((np.zeros((1, k, k)),), None, k, TOLERANCE) for k in (2, 3))
    fine = np.array([[0.25, 0.75]])
    assert two.decide(fine) is not None
    for other in (np.array(0.5), np.array([[1, 0]]), fine.astype(np.float16), fine[None], np.empty((0, 2))):
        assert two.decide(other) is None
    assert two.decide(np.full((129, 2), 0.5)) is None  # more than a tile
    assert three.decide(fine) is None
    assert three.decide(fine[0]) is None
