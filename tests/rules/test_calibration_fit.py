"""Links of resamples: each is the link of its rows alone, whatever is missing, weighed or never shown in them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import worlds
from metricwise.core.probabilities import Probabilities
from metricwise.data.probabilities import read_proba
from metricwise.rules import TemperatureScaling, fit_link, fit_links
from metricwise.rules import calibration_fit as module
from profiles import examples


class Case:
    """Outputs of unequal numbers of classes, missing labels, weights, and resamples that may miss a class."""

    def __init__(self, draw):
        rng = self.rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
        n = draw(st.sampled_from([3, 12, 60, 150, 400]))
        positive = draw(st.booleans())
        sizes = np.array(draw(st.lists(st.just(2) if positive else st.integers(2, 6), min_size=1, max_size=4)))
        eta = rng.random((n, len(sizes), sizes.max())) ** 2 * (np.arange(sizes.max()) < sizes[:, None]) + 1e-9
        eta *= np.arange(sizes.max()) < sizes[:, None]
        eta /= eta.sum(axis=2, keepdims=True)
        dtype = draw(st.sampled_from([np.float32, np.float64]))
        self.proba = Probabilities(((eta[:, :, 1] if positive else eta).astype(dtype),), sizes)
        flat = eta**0.6 * (eta > 0)
        flat /= flat.sum(axis=2, keepdims=True)
        codes = worlds.draw_codes(flat, rng)
        self.codes = np.minimum(codes, sizes - 1)
        if draw(st.booleans()):
            self.codes[rng.random(codes.shape) < 0.3] = -1
        self.weight = rng.random(n) * (rng.random(n) < 0.9) if draw(st.booleans()) else None
        self.frequency = (
            rng.integers(1, 5, n).astype(float) if self.weight is not None and draw(st.booleans()) else None
        )
        self.masks = rng.random((draw(st.integers(0, 4)), n)) < rng.random()
        if len(self.masks) and draw(st.booleans()):  # a resample without some class
            self.masks[0] &= self.codes[:, 0] != rng.integers(sizes[0])

    def fit_all(self):
        return fit_links(self.proba, self.codes, self.weight, masks=self.masks, frequency=self.frequency)

    def fit_rows(self, mask):
        def taken(values):
            return None if values is None else values[mask]

        return fit_link(self.proba.take(mask), self.codes[mask], taken(self.weight), frequency=taken(self.frequency))


@examples(150)
@given(st.data())
def test_each_link_is_that_of_its_rows_alone(data):
    case = Case(data.draw)
    links = case.fit_all()
    assert len(links) == len(case.masks)
    for link, mask in zip(links, case.masks, strict=True):
        if not mask.any():
            assert link == TemperatureScaling.identity(case.proba.n_outputs, case.proba.width)
            continue
        alone = case.fit_rows(mask)
        np.testing.assert_allclose(link.temperature, alone.temperature, rtol=1e-7, atol=1e-7)
        np.testing.assert_allclose(link.bias, alone.bias, rtol=1e-7, atol=1e-7)


def test_all_rows_give_the_link_of_all_rows():
    rng = np.random.default_rng(0)
    p = rng.random((500, 3))
    y = (rng.random(p.shape) < p**1.5).astype(int)
    whole = fit_link(read_proba(p, multioutput=True), y)
    (link,) = fit_links(read_proba(p, multioutput=True), y, masks=np.ones((1, 500), dtype=bool))
    np.testing.assert_allclose(link.temperature, whole.temperature, rtol=1e-9)
    np.testing.assert_allclose(link.bias, whole.bias, atol=1e-9)


def test_a_class_that_one_resample_lacks_keeps_its_odds_there_alone():
    rng = np.random.default_rng(1)
    eta = rng.dirichlet(np.ones(4), 2000)
    bent = eta * [1.0, 1.0, 1.0, 4.0]
    y = worlds.draw_codes(eta, rng)
    masks = np.stack([y != 3, np.ones(2000, dtype=bool)])
    without, whole = fit_links(read_proba(bent / bent.sum(axis=1, keepdims=True)), y[:, None], masks=masks)
    assert without.bias[0, 3] == pytest.approx(0, abs=1e-9)
    assert whole.bias[0, 3] < -0.8


def test_many_outputs_are_shrunk_towards_the_link_of_all_rows():
    """Where a resample has no label of an output to learn from but one row of each class, the centre decides."""
    rng = np.random.default_rng(2)
    truth = rng.random((4000, 6))
    y = (rng.random(truth.shape) < truth).astype(int)
    p = truth**3 / (truth**3 + (1 - truth) ** 3)  # a temperature of 1/3 undoes it
    two_rows = np.zeros((1, 4000), dtype=bool)
    two_rows[0, [y[:, 0].argmin(), y[:, 0].argmax()]] = True
    (link,) = fit_links(read_proba(p, multioutput=True), y, masks=two_rows)
    assert link.temperature[0] == pytest.approx(1 / 3, abs=0.1)
    alone = fit_link(read_proba(p[two_rows[0], 0]), y[two_rows[0], :1])
    assert alone.temperature[0] > 0.5


def test_the_rows_of_large_data_are_drawn_once():
    """With a sample of all rows, a resample has those of its rows that are in the sample."""
    rng = np.random.default_rng(3)
    truth = rng.random(30_000)
    y = (rng.random(30_000) < truth).astype(int)
    p = truth**2 / (truth**2 + (1 - truth) ** 2)
    masks = rng.random((3, 30_000)) < [[1.0], [0.5], [0.5]]
    some = fit_links(read_proba(p), y[:, None], masks=masks, max_rows=5_000)
    assert some[0].temperature[0] == pytest.approx(
        fit_link(read_proba(p), y[:, None], max_rows=5_000).temperature[0], rel=1e-9
    )
    for link in some:
        assert link.temperature[0] == pytest.approx(0.5, abs=0.05)
    assert some[1].temperature[0] != some[2].temperature[0]


def test_few_resamples_at_a_time_are_all_at_once(monkeypatch):
    """Hessians of very many classes are not held for all resamples together."""
    rng = np.random.default_rng(4)
    eta = rng.dirichlet(np.ones(5), (300, 2))
    y = rng.integers(0, 5, (300, 2))
    masks = rng.random((7, 300)) < 0.5
    together = fit_links(read_proba(eta, multioutput=True), y, masks=masks)
    monkeypatch.setattr(module, "_MAX_HESSIAN_ENTRIES", 100)
    for one, other in zip(together, fit_links(read_proba(eta, multioutput=True), y, masks=masks), strict=True):
        np.testing.assert_allclose(one.temperature, other.temperature, rtol=1e-12)
        np.testing.assert_allclose(one.bias, other.bias, atol=1e-12)


@pytest.mark.parametrize("masks", [np.ones((2, 5)), np.ones(5, dtype=bool), np.ones((2, 4), dtype=bool)])
def test_wrong_masks_are_refused(masks):
    with pytest.raises(ValueError, match=r"^fit_links: masks must be a bool array of shape \(R, 5\), a row for each"):
        fit_links(read_proba(np.full(5, 0.5)), np.zeros((5, 1), dtype=int), masks=masks)


def test_other_wrong_arguments_are_refused_by_name():
    proba, masks = read_proba(np.full(5, 0.5)), np.ones((1, 5), dtype=bool)
    with pytest.raises(ValueError, match=r"^fit_links: codes must have shape \(5, 1\), as proba has, got \(5,\)"):
        fit_links(proba, np.zeros(5, dtype=int), masks=masks)
    with pytest.raises(ValueError, match=r"^fit_links: shrinkage must be positive, got -1"):
        fit_links(proba, np.zeros((5, 1), dtype=int), masks=masks, shrinkage=-1)
