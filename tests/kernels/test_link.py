"""The link inside the row passes: exp and log to the last place, and the same counts as of recalibrated arrays."""

import tracemalloc

import numpy as np
import pytest
from scipy.special import softmax

import metricwise as mw
import worlds
from engines import counts
from kernels.bare import Bare
from metricwise import kernels as twins
from metricwise.core.losses import Loss
from metricwise.core.probabilities import Probabilities
from metricwise.data.probabilities import read_proba
from metricwise.kernels import Block, LinkArrays, _link, _numpy
from metricwise.rules import RuleRows, TemperatureScaling, WeightedRule

try:
    from metricwise.kernels import _compiled
except ImportError:
    _compiled = None
needs_compiled = pytest.mark.skipif(_compiled is None, reason="the compiled kernels are not built")
wide = pytest.mark.skipif(np.finfo(np.longdouble).nmant < 60, reason="no wider float to compare with")

kernels = Bare(twins)


# --------------------------------------------------------------------------------------------------------- exp and log


def units(values, truth):
    """Errors in units of the last place of the truth."""
    return np.abs(values - truth) / np.spacing(np.abs(truth).astype(np.float64))


@wide
@pytest.mark.parametrize("low", [-744.0, -14.0, -1e-3])
def test_logarithms_are_within_one_unit_in_the_last_place(low):
    rng = np.random.default_rng(0)
    x = np.r_[np.exp(rng.uniform(low, 0.7, 100_000)), 5e-324, 1e-310, 2.0**-1022, 1e-6, 0.5**0.5, 1.0, 2.0]
    assert units(_link.log(x), np.log(x.astype(np.longdouble))).max() < 1
    assert _link.log(np.ones(1))[0] == 0


@wide
@pytest.mark.parametrize("low", [-1e-3, -1.0, -745.0])
def test_exponentials_are_within_one_unit_in_the_last_place(low):
    x = np.r_[np.random.default_rng(1).uniform(low, 0, 100_000), -0.0, -5e-324, -1e-17, low]
    assert units(_link.exp(x), np.exp(x.astype(np.longdouble))).max() < 1


def test_exponentials_end_in_0():
    at = np.array([0.0, -745.1, -745.2, -746.0, -1e4, -1e300, -np.inf])
    assert _link.exp(at).tolist() == [1.0, 5e-324, 0.0, 0.0, 0.0, 0.0, 0.0]


# -------------------------------------------------------------------------------------------------------------- passes


def rows(kind, shape, seed=0):
    """Rounded probabilities, padded where outputs have fewer classes, and codes."""
    rng = np.random.default_rng(seed)
    n, m, k = shape
    sizes = np.full(m, 2) if kind == "positive" else np.maximum(2, k - np.arange(m) % 3)
    eta = rng.random((n, m, k)) * (np.arange(k) < sizes[:, None])
    eta = (eta / eta.sum(axis=2, keepdims=True)).round(3)
    codes = np.stack([rng.integers(-1, size, n) for size in sizes], axis=1)
    return (eta[:, :, 1] if kind == "positive" else eta), sizes, codes, rng


@pytest.mark.parametrize("kind", ["positive", "padded"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 127, 128, 129, 1000])
@pytest.mark.parametrize("bias", [1.0, 1e100])
def test_passes_see_what_recalibration_gives(kind, dtype, n, bias):
    eta, sizes, codes, rng = rows(kind, (n, 3, 2 if kind == "positive" else 5))
    eta, k = eta.astype(dtype), 2 if kind == "positive" else 5
    link = LinkArrays(np.array([0.5, 1.0, 3.0]), rng.normal(size=(3, k)) * bias, 1e-6)
    plain = kernels.recalibrate(eta, sizes, link)
    weight, seen = rng.random(n), rng.random((n, 3))
    losses = [(rng.normal(size=(1, k, k)),), tuple(rng.normal(size=(2, 3, k)))]
    for loss in losses:
        np.testing.assert_array_equal(kernels.decide(eta, sizes, loss, link), kernels.decide(plain, sizes, loss))
    for w in (None, weight):
        one = kernels.count_labels(eta, codes, w, sizes, losses, link)
        np.testing.assert_array_equal(one, kernels.count_labels(plain, codes, w, sizes, losses))
        one = kernels.count_expected(eta, seen, w, sizes, losses, link)
        np.testing.assert_array_equal(one, kernels.count_expected(plain, seen, w, sizes, losses))
    worth = np.zeros((3, k + 1, k, 2))
    worth[:, 1:] = rng.normal(size=(3, k, k, 2))
    walk = (sizes, np.zeros(3, dtype=np.intp), losses[0], (np.zeros((1, k)), rng.normal(size=(1, k))), worth)
    grid = np.array([[-1.0, 8.0]])
    wanted = np.ones((1, 18), dtype=bool)
    one, other = (
        kernels.changes(array, codes, None, None, *walk, grid, 16, wanted, True, applied)
        for array, applied in ((eta, link), (plain, None))
    )
    for first, second in zip(one, other, strict=True):
        np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("kind", ["positive", "padded"])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 129, 1000])
def test_passes_see_the_softmax_of_logits(kind, dtype, n):
    eta, sizes, codes, rng = rows(kind, (n, 3, 2 if kind == "positive" else 5))
    k = 2 if kind == "positive" else 5
    z = (rng.normal(size=eta.shape) * 50).round(1).astype(dtype)  # many within, some beyond what probabilities resolve
    if kind == "padded":
        z[:, np.arange(k) >= sizes[:, None]] = 7.0  # counts for nothing
    link = LinkArrays(np.array([0.5, 1.0, 3.0]), rng.normal(size=(3, k)), 0.0)
    plain = kernels.recalibrate(z, sizes, link)
    both = np.stack([np.zeros(z.shape), z.astype(float)], axis=2) if kind == "positive" else z.astype(float)
    logits = link.temperature[:, None] * both + link.bias
    logits = np.where(np.arange(k) < sizes[:, None], logits, -np.inf)
    expected = softmax(logits, axis=2)
    np.testing.assert_allclose(plain, expected[:, :, 1] if kind == "positive" else expected, rtol=1e-12, atol=1e-300)
    losses = [(rng.normal(size=(1, k, k)),), tuple(rng.normal(size=(2, 3, k)))]
    for loss in losses:
        np.testing.assert_array_equal(kernels.decide(z, sizes, loss, link), kernels.decide(plain, sizes, loss))
    weight = rng.random(n)
    for w in (None, weight):
        one = kernels.count_labels(z, codes, w, sizes, losses, link)
        np.testing.assert_array_equal(one, kernels.count_labels(plain, codes, w, sizes, losses))
        one = kernels.count_expected(z, None, w, sizes, losses, link)
        np.testing.assert_allclose(one, kernels.count_expected(plain, None, w, sizes, losses), rtol=1e-13)


@pytest.mark.parametrize("temperature", [1e-100, 0.3, 1.0, 20.0, 1e100])
@pytest.mark.parametrize("floor", [5e-324, 1e-300, 1e-6, 0.4])
def test_recalibration_is_its_formula_at_the_extremes(temperature, floor):
    rng = np.random.default_rng(2)
    eta = rng.dirichlet(np.full(4, 0.1), (200, 1))
    eta[0] = [1, 0, 0, 0]
    bias = rng.normal(size=(1, 4)) * min(temperature, 1e3)
    out = kernels.recalibrate(eta, np.array([4]), LinkArrays(np.array([temperature]), bias, floor))
    logits = np.log(np.maximum(eta, floor).astype(np.longdouble)) * temperature + bias
    # The last bit of a logit counts as often as the logit is large.
    sure = np.abs(logits).max(axis=2, keepdims=True) < 1e13
    np.testing.assert_allclose(out, softmax(logits, axis=2), atol=1e-14 if sure.all() else 1.0)
    np.testing.assert_allclose(out.sum(axis=2), 1.0, rtol=1e-15)
    assert (out >= 0).all()


@needs_compiled
@pytest.mark.parametrize("temperature", [0.05, 1.3, 1e6])
@pytest.mark.parametrize("floor", [0.0, 1e-300, 1e-6])
@pytest.mark.parametrize("columns", [1, 2])
def test_twins_recalibrate_two_classes_to_the_bit(columns, floor, temperature):
    rng = np.random.default_rng(columns)
    z = rng.normal(size=(1000, 3, columns)) * 10 ** rng.uniform(-3, 2, (1000, 1, 1))
    z[::7], z[1::7], z[2::7] = -600, 600, 0  # the last are ties
    if floor:
        z = 1 / (1 + np.exp(-z))
        z[..., -1] = 1 - z[..., 0] if columns == 2 else z[..., 0]
    bias = np.array([[0.0, 0.0], [0.2, -0.2], [-30.0, 30.0]])
    block = Block(
        z if columns == 2 else z[..., 0], np.full(3, 2), link=LinkArrays(np.full(3, temperature), bias, floor)
    )
    np.testing.assert_array_equal(_numpy.recalibrate(block), _compiled.recalibrate(block))


def test_a_link_of_other_outputs_is_refused_before_memory_is_read():
    eta, link = np.full((5, 1, 3), 1 / 3), LinkArrays(np.ones(1), np.zeros((1, 2)), 1e-6)
    with pytest.raises(ValueError, match=r"link must have the outputs and classes|broadcast"):
        kernels.decide(eta, np.array([3]), (np.zeros((1, 3, 3)),), link)


# --------------------------------------------------------------------------------------------------------------- views


def test_a_view_is_no_copy_and_means_the_recalibrated_numbers():
    eta, sizes, _, rng = rows("padded", (300, 3, 4), 3)
    proba = Probabilities((eta,), sizes)
    link = TemperatureScaling(np.array([0.5, 1.0, 2.0]), rng.normal(size=(3, 4)))
    view = link.view(proba)
    assert view.blocks[0] is eta
    (applied,) = link.apply(proba).blocks
    np.testing.assert_array_equal(view.recalibrated().blocks[0], applied)
    for m in range(3):
        np.testing.assert_array_equal(view.output(m)[:, 0], applied[:, m])
    np.testing.assert_array_equal(view.take(slice(7, 20)).recalibrated().blocks[0], applied[7:20])
    twice = link.view(view).recalibrated().blocks[0]
    np.testing.assert_array_equal(twice, link.apply(link.apply(proba)).blocks[0])


@pytest.mark.parametrize("listed", [True, False])
@pytest.mark.parametrize("expected", ["labels", "expected", "blended"])
@pytest.mark.parametrize("prior", [True, False])
def test_oracles_of_views_count_what_oracles_of_copies_count(listed, expected, prior, monkeypatch):
    eta, sizes, codes, rng = rows("padded", (700, 3, 4), 4)
    proba = Probabilities((eta,), sizes)
    if listed:
        parts = [eta[:, m, :size] for m, size in enumerate(sizes)]
        proba = read_proba([part / part.sum(axis=1, keepdims=True) for part in parts], multioutput=True)
    link = TemperatureScaling(np.array([0.5, 1.0, 2.0]), rng.normal(size=(3, 4)))
    target = np.where(np.arange(4) < sizes[:, None], 1.0 / sizes[:, None], 0.0) if prior else None

    def oracle(seen, **link):
        return counts(seen, codes, rng_weight, expected, target, **link)

    rng_weight = rng.random(700)
    monkeypatch.setattr("metricwise.core.probabilities._CHUNK_ENTRIES", 999)
    monkeypatch.setattr("metricwise.core.probabilities._MAX_COPIED_ENTRIES", 999)
    one, other = oracle(link.view(proba)), oracle(link.apply(proba))
    losses = [Loss.argmax(4), Loss(full=rng.normal(size=(1, 4, 4)))]
    np.testing.assert_allclose(one.confusions(losses), other.confusions(losses), rtol=1e-13)
    np.testing.assert_allclose(one.shares(losses), other.shares(losses), rtol=1e-12)
    np.testing.assert_allclose(one.priors, other.priors, rtol=1e-13)
    decided = rng.integers(0, 2, (700, 3))
    np.testing.assert_allclose(one.confusion_of(decided), other.confusion_of(decided), rtol=1e-12)
    np.testing.assert_array_equal(one.sample(100).n_rows, other.sample(100).n_rows)
    behind = oracle(proba, link=link)
    np.testing.assert_array_equal(behind.confusions(losses), one.confusions(losses))
    plain = WeightedRule(losses[0], tuple(map(np.arange, sizes)), multioutput=True).decide(RuleRows(proba))
    np.testing.assert_allclose(behind.confusions(losses[:1], linked=False)[0], one.confusion_of(plain), rtol=1e-13)


@pytest.mark.parametrize("copied", [0, 1 << 22])
@pytest.mark.parametrize("engine", ["memory", "chunks of 1000"])
def test_an_oracle_counts_something_else_of_the_rows_that_it_has_recalibrated(engine, copied, monkeypatch):
    eta, sizes, codes, rng = rows("padded", (2500, 3, 4), 7)
    proba, link = Probabilities((eta,), sizes), TemperatureScaling(np.array([0.5, 1.0, 2.0]), rng.normal(size=(3, 4)))
    losses = [Loss.argmax(4), Loss(full=rng.normal(size=(1, 4, 4)))]
    monkeypatch.setattr("metricwise.core.probabilities._MAX_COPIED_ENTRIES", copied)
    calls = []
    monkeypatch.setattr(twins, "recalibrate", lambda block: calls.append(block) or twins._twins.recalibrate(block))
    expected = counts(proba, codes, None, "expected", link=link, engine=engine)
    first = expected.confusions(losses)
    labels = expected.counting("labels")
    again = labels.confusions(losses)
    if engine == "memory":
        assert len(calls) == (copied > 0)  # once for all passes of both
    assert (expected.certified, labels.certified) == (True, False)
    np.testing.assert_array_equal(again, counts(link.apply(proba), codes).confusions(losses))
    np.testing.assert_allclose(first, counts(link.apply(proba), codes, None, "expected").confusions(losses), rtol=1e-13)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rules_behind_links_predict_what_numpy_recalibrates(dtype):
    """Against NumPy's own exp and log, but for scores that are as good as equal."""
    rng = np.random.default_rng(5)
    eta = rng.dirichlet(np.ones(6), 20_000).astype(dtype)
    link = TemperatureScaling(np.array([0.7]), rng.normal(size=(1, 6)))
    loss = Loss(full=rng.random((1, 6, 6)))
    rule = WeightedRule(loss, (np.arange(6),), link)
    logits = np.log(np.maximum(eta.astype(float), link.floor)) * 0.7 + link.bias
    scores = np.sort(softmax(logits, axis=1) @ loss.arrays[0][0], axis=1)
    clear = scores[:, 1] - scores[:, 0] > 1e-12
    best = (softmax(logits, axis=1) @ loss.arrays[0][0]).argmin(axis=1)
    assert clear.mean() > 0.999
    np.testing.assert_array_equal(rule.predict(eta)[clear], best[clear])


def test_no_recalibrated_copy_is_made():
    rng = np.random.default_rng(6)
    proba = rng.gamma(0.5, size=(500_000, 10))
    proba /= proba.sum(axis=1, keepdims=True)
    y = worlds.draw_codes(proba, rng)
    tracemalloc.start()
    try:
        mw.optimize(proba, y, "macro_f1", strategy=mw.Strategy(confusion="expected", recalibrate=True))
        used = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert used < 0.75 * proba.nbytes, f"{used / 1e6:.0f} MB"  # samples of the rows, and what they are drawn by
