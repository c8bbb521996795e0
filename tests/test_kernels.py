"""Row passes against plain loops: one definition of a score, whatever the layout, the blocks or the dtype."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metricwise import kernels
from metricwise.kernels import _numpy


def scores_by_hand(row, loss, m):
    """Scores of one row of one output in Python floats, summed in the order that the definition fixes."""
    if len(loss) == 2:
        diagonal, offset = (a[m if len(a) > 1 else 0] for a in loss)
        return [float(p) * float(d) + float(v) for p, d, v in zip(row, diagonal, offset, strict=True)]
    full = loss[0][m if len(loss[0]) > 1 else 0]
    scores = []
    for j in range(len(row)):
        total = float(row[0]) * float(full[0, j])
        for i in range(1, len(row)):
            total += float(row[i]) * float(full[i, j])
        scores.append(total)
    return scores


def decide_by_hand(eta, n_classes, loss):
    out = []
    for row in eta:
        codes = []
        for m, part in enumerate(row):
            part = [1.0 - float(part), float(part)] if np.ndim(part) == 0 else [float(v) for v in part]
            scores = scores_by_hand(part, loss, m)[: n_classes[m]]
            codes.append(scores.index(min(scores)))
        out.append(codes)
    return np.array(out)


@st.composite
def passes(draw):
    """eta (N, M, K) or (N, M), n_classes, a loss: with few distinct numbers, so that ties abound."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, m = int(rng.integers(1, 40)), int(rng.integers(1, 4))
    positive_only = draw(st.booleans())
    k = 2 if positive_only else int(rng.integers(2, 6))
    sizes = np.full(m, 2) if positive_only else rng.integers(2, k + 1, size=m)
    sizes[0] = k
    if positive_only:
        eta = rng.random((n, m))
    else:
        eta = rng.random((n, m, k)) * (np.arange(k) < sizes[:, None])
        eta /= eta.sum(axis=2, keepdims=True)
    if draw(st.booleans()):
        eta = eta.round(draw(st.sampled_from([1, 2])))
    eta = eta.astype(draw(st.sampled_from([np.float64, np.float32])))
    shared = draw(st.booleans())
    form = (1 if shared else m, k)
    numbers = rng.normal(size=(1 if shared else m, k, k)).round(1)
    loss = (numbers,) if draw(st.booleans()) else (rng.normal(size=form).round(1), rng.normal(size=form).round(1))
    return eta, sizes.astype(np.intp), loss


@given(case=passes())
def test_decisions_follow_the_definition_to_the_last_bit(case):
    eta, n_classes, loss = case
    assert np.array_equal(kernels.decide(eta, n_classes, loss), decide_by_hand(eta, n_classes, loss))


@given(case=passes(), block=st.sampled_from([1, 7, 64]))
def test_blocks_and_strides_change_nothing(case, block):
    eta, n_classes, loss = case
    whole = kernels.decide(eta, n_classes, loss)
    codes = np.random.default_rng(0).integers(-1, 2, size=whole.shape)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_numpy, "_BLOCK", block)
        patch.setattr(_numpy, "_MIN_ROWS", 1)
        strided = np.asfortranarray(eta)
        assert np.array_equal(kernels.decide(strided, n_classes, loss), whole)
        assert np.array_equal(kernels.decide(np.repeat(eta, 2, axis=0)[::2], n_classes, loss), whole)
        blocked = kernels.count_labels(eta, codes, None, n_classes, [loss])
    assert np.array_equal(blocked, kernels.count_labels(eta, codes, None, n_classes, [loss]))


@given(case=passes(), data=st.data())
def test_counts_with_labels_are_sums_over_rows(case, data):
    eta, n_classes, loss = case
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    codes = np.column_stack([rng.integers(-1, k, size=len(eta)) for k in n_classes]).astype(np.int8)
    weight = rng.integers(0, 4, size=len(eta)) / 2 if data.draw(st.booleans()) else None
    k = 2 if eta.ndim == 2 else eta.shape[2]
    by_hand = np.zeros((len(n_classes), k, k))
    for n, row in enumerate(decide_by_hand(eta, n_classes, loss)):
        for m, guess in enumerate(row):
            if codes[n, m] >= 0:
                by_hand[m, codes[n, m], guess] += 1.0 if weight is None else weight[n]
    counted = kernels.count_labels(eta, codes, weight, n_classes, [loss])
    assert np.array_equal(counted, by_hand[None])


@given(case=passes(), data=st.data())
def test_expected_counts_are_sums_of_probabilities(case, data):
    eta, n_classes, loss = case
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    observed = rng.random((len(eta), len(n_classes))) < 0.7 if data.draw(st.booleans()) else None
    weight = rng.random(len(eta)) if data.draw(st.booleans()) else None
    k = 2 if eta.ndim == 2 else eta.shape[2]
    by_hand = np.zeros((len(n_classes), k, k))
    for n, row in enumerate(decide_by_hand(eta, n_classes, loss)):
        for m, guess in enumerate(row):
            part = np.array([1.0 - float(eta[n, m]), eta[n, m]]) if eta.ndim == 2 else eta[n, m]
            seen = 1.0 if observed is None else float(observed[n, m])
            by_hand[m, :, guess] += part * seen * (1.0 if weight is None else weight[n])
    counted = kernels.count_expected(eta, observed, weight, n_classes, [loss])
    np.testing.assert_allclose(counted[0], by_hand, atol=1e-12)


@given(first=passes(), second=st.integers(0, 1000))
def test_several_losses_in_one_pass_are_one_by_one(first, second):
    eta, n_classes, loss = first
    rng = np.random.default_rng(second)
    losses = [loss, *(tuple(rng.normal(size=a.shape).round(1) for a in loss) for _ in range(3))]
    codes = np.column_stack([rng.integers(-1, k, size=len(eta)) for k in n_classes])
    together = kernels.count_labels(eta, codes, None, n_classes, losses)
    assert np.array_equal(
        together, np.concatenate([kernels.count_labels(eta, codes, None, n_classes, [x]) for x in losses])
    )
    together = kernels.count_expected(eta, None, None, n_classes, losses)
    assert np.array_equal(
        together, np.concatenate([kernels.count_expected(eta, None, None, n_classes, [x]) for x in losses])
    )


# ----------------------------------------------------------------------------------------------------- envelopes


@settings(max_examples=200)
@given(
    seed=st.integers(0, 2**32 - 1),
    k=st.integers(2, 6),
    decimals=st.sampled_from([None, 2, 1]),
    diagonal=st.booleans(),
)
def test_envelope_is_what_deciding_at_each_g_gives(seed, k, decimals, diagonal):
    """Between the changes of a row, its class is the one of least score, by plain evaluation of all K lines."""
    rng = np.random.default_rng(seed)
    eta = rng.dirichlet(np.ones(k), size=6)[:, None]
    eta = eta if decimals is None else eta.round(decimals)
    shapes = [(1, k), (1, k)] if diagonal else [(1, k, k)]
    constant, slope = (tuple(rng.integers(-3, 4, size=shape).astype(float) for shape in shapes) for _ in range(2))
    n_classes = np.array([k])
    first, row, g, old, new = kernels.envelope(eta, n_classes, constant, slope)
    for n in range(len(eta)):
        mine = np.flatnonzero(row == n)
        points, classes = g[mine], [first[n], *new[mine]]
        assert list(old[mine]) == classes[:-1]
        assert (np.diff(points) >= 0).all()
        assert len(mine) <= k - 1
        edges = [-1e3, *points, 1e3]
        heights = scores_by_hand(eta[n, 0], constant, 0)
        slopes = scores_by_hand(eta[n, 0], slope, 0)
        for low, high, chosen in zip(edges[:-1], edges[1:], classes, strict=True):
            if high - low < 1e-6:
                continue
            at = (low + high) / 2
            scores = np.array(heights) + at * np.array(slopes)
            assert scores[chosen] <= scores.min() + 1e-9 * (1 + abs(at))


def test_recalibration_by_hand():
    eta = np.array([[[0.2, 0.3, 0.5]], [[0.0, 1.0, 0.0]]])
    t, c = np.array([0.5]), np.array([[0.1, -0.3, 0.2]])
    out = kernels.recalibrate(eta, np.array([3]), t, c, 1e-6)
    z = np.exp(0.5 * np.log(np.maximum(eta[:, 0], 1e-6)) + c)
    np.testing.assert_allclose(out[:, 0], z / z.sum(axis=1, keepdims=True), rtol=1e-14)
    binary = kernels.recalibrate(eta[:, 0, 1:2].copy(), np.array([2]), t, np.array([[0.0, 0.4]]), 1e-6)
    odds = np.sqrt(0.3 / 0.7) * np.exp(0.4)
    assert binary[0, 0] == pytest.approx(odds / (1 + odds))
