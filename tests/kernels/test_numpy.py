"""Row passes against plain loops: one definition of a score, whatever the layout, the blocks or the dtype."""

import functools
import operator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels.bare import Bare
from metricwise import kernels as twins
from metricwise.kernels import _numpy as numpy_twins

kernels, _numpy = Bare(twins), Bare(numpy_twins)


def scores_by_hand(row, loss, m):
    """Scores of one row of one output in Python floats, summed in the order that the definition fixes."""
    if len(loss) == 2:
        diagonal, offset = (a[m if len(a) > 1 else 0] for a in loss)
        total = functools.reduce(operator.add, map(float, row))  # 1 but for rounding
        return [float(p) * float(d) + total * float(v) for p, d, v in zip(row, diagonal, offset, strict=True)]
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


@given(case=passes())
def test_strides_change_nothing(case):
    eta, n_classes, loss = case
    whole = kernels.decide(eta, n_classes, loss)
    for strided in (np.asfortranarray(eta), np.repeat(eta, 2, axis=0)[::2], eta[::-1].copy()[::-1]):
        assert np.array_equal(kernels.decide(strided, n_classes, loss), whole)


@given(case=passes(), block=st.sampled_from([1, 7, 64]))
def test_blocks_of_the_numpy_twins_change_nothing(case, block):
    eta, n_classes, loss = case
    codes = np.random.default_rng(0).integers(-1, 2, size=eta.shape[:2])
    whole = _numpy.decide(eta, n_classes, loss), _numpy.count_labels(eta, codes, None, n_classes, [loss])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(numpy_twins, "_BLOCK", block)
        patch.setattr(numpy_twins, "_MIN_ROWS", 1)
        blocked = _numpy.decide(eta, n_classes, loss), _numpy.count_labels(eta, codes, None, n_classes, [loss])
    for first, second in zip(whole, blocked, strict=True):
        assert np.array_equal(first, second)


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


# ------------------------------------------------------------------------------------------------------------ by hand


def test_counting_by_hand():
    """Three rows of two outputs, one label missing, one row that weighs nothing."""
    eta = np.array([[0.25, 0.75], [0.5, 1.0], [0.75, 0.0]])
    codes = np.array([[0, 1], [-1, 0], [1, 1]], dtype=np.int8)
    n_classes, argmax = np.array([2, 2]), (-np.ones((1, 2)), np.zeros((1, 2)))
    counts = kernels.count_labels(eta, codes, None, n_classes, [argmax])
    assert counts.tolist() == [[[[1, 0], [0, 1]], [[0, 1], [1, 1]]]]
    weighted = kernels.count_labels(eta, codes, np.array([2.0, 0.5, 0.0]), n_classes, [argmax])
    assert weighted.tolist() == [[[[2, 0], [0, 0]], [[0, 0.5], [0, 2]]]]
    expected = kernels.count_expected(eta, codes >= 0, np.array([2.0, 1.0, 0.0]), n_classes, [argmax])
    assert expected.tolist() == [[[[1.5, 0], [0.5, 0]], [[0, 0.5], [0, 2.5]]]]
    masses = np.array([[1.0, 0.0], [0.25, 0.5], [2.0, 3.0]])
    shares = kernels.count_expected(eta, masses, None, n_classes, [argmax])
    assert shares.tolist() == [[[[0.875, 0.5], [0.375, 1.5]], [[3, 0], [0, 0.5]]]]


def test_no_losses_and_no_rows_count_nothing():
    n_classes = np.array([3, 3])
    argmax = (-np.ones((1, 3)), np.zeros((1, 3)))
    for n, losses in ((4, []), (0, [argmax])):
        eta, codes = np.full((n, 2, 3), 1 / 3), np.zeros((n, 2), dtype=np.int8)
        weight = np.ones(n)
        for counted in (
            kernels.count_labels(eta, codes, weight, n_classes, losses),
            kernels.count_labels(eta, codes, None, n_classes, losses),
            kernels.count_expected(eta, None, None, n_classes, losses),
            kernels.count_expected(eta, codes >= 0, weight, n_classes, losses),
        ):
            assert counted.shape == (len(losses), 2, 3, 3)
            assert not counted.any()
    assert kernels.decide(np.empty((0, 2, 3)), n_classes, argmax).shape == (0, 2)
    assert kernels.tally(np.empty((0, 2), dtype=np.int8), None, 3).tolist() == [[0, 0, 0], [0, 0, 0]]
    assert kernels.check_rows(np.empty((0, 2, 3)), n_classes, 1e-3)


@pytest.mark.parametrize("kind", [np.int8, np.int16, np.int32, np.int64])
@pytest.mark.parametrize("n_outputs", [1, 9])
def test_tallies_by_hand(kind, n_outputs):
    """Code -1 counts nowhere; nine outputs of two classes are counted all at once."""
    column = np.array([0, -1, 1, 1, 0, 1], dtype=kind)
    codes = np.repeat(column[:, None], n_outputs, axis=1)
    assert kernels.tally(codes, None, 2).tolist() == [[2, 3]] * n_outputs
    assert kernels.tally(codes, None, 4).tolist() == [[2, 3, 0, 0]] * n_outputs
    weight = np.array([1.0, 8.0, 0.5, 0.0, 2.0, 0.25])
    assert kernels.tally(codes, weight, 2).tolist() == [[3, 0.75]] * n_outputs
    assert kernels.tally(codes[::-1], weight[::-1], 3).tolist() == [[3, 0.75, 0]] * n_outputs


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int16, np.int32, np.int64, np.uint64])
def test_labels_that_are_codes_are_taken_as_they_are(kind):
    labels = np.array([[0, 1], [2, 0], [1, 1]], dtype=kind)
    small = kernels.encode(labels, np.array([3, 3]), 3)
    assert small.dtype == np.int8
    assert small.tolist() == labels.tolist()
    assert (small is labels) == (kind == np.int8)
    wide = kernels.encode(labels, np.array([3, 200]), 200)
    assert wide.dtype == np.int32
    assert wide.tolist() == labels.tolist()
    assert kernels.encode(labels, np.array([200, 200]), 200).tolist() == labels.tolist()
    assert kernels.encode(labels, np.array([3, 2]), 3).tolist() == labels.tolist()
    for too_few in ([2, 2], [2, 3], [3, 1]):
        assert kernels.encode(labels, np.array(too_few), 3) is None
    assert kernels.encode(labels[:0], np.array([3, 3]), 3) is None


@pytest.mark.parametrize("wrong", [-1, 3, 100, 127, -128, 256, 2**32, -(2**32), 2**63 - 1])
@pytest.mark.parametrize("row", [0, 1, 4096, 4999])
def test_one_label_outside_is_found(wrong, row):
    """Also one that would be a code if only its last bytes were looked at."""
    labels = np.zeros((5000, 1), dtype=np.int64)
    assert kernels.encode(labels, np.array([3]), 3) is not None
    labels[row] = wrong
    assert kernels.encode(labels, np.array([3]), 3) is None
    assert kernels.encode(labels[::-1], np.array([3]), 3) is None


def test_rows_of_probabilities_are_told_from_others():
    eta = np.tile([0.25, 0.5, 0.25], (300, 2, 1))
    n_classes = np.array([3, 3])

    def fine(value, row=299, m=1, j=2, n_classes=n_classes):
        changed = eta.copy()
        changed[row, m, j] = value
        return kernels.check_rows(changed, n_classes, 1e-3), kernels.check_rows(changed.astype("f"), n_classes, 1e-3)

    assert kernels.check_rows(eta, n_classes, 0.0)
    assert fine(0.2509) == fine(0.2491) == (True, True)
    for value in (0.2511, 0.2489, -0.25, 0.0, np.nan, np.inf, -np.inf, 1e300, -1e-9):
        with np.errstate(over="ignore"):
            assert fine(value) == fine(value, 0, 0, 0) == (False, False)
    opposite = np.array([[[1.5, -0.5, 0.0]]])  # sums to 1
    assert not kernels.check_rows(opposite, np.array([3]), 1e-3)


def test_padding_must_be_zero():
    eta = np.array([[[0.25, 0.75, 0.0], [0.25, 0.5, 0.25]]] * 2)
    assert kernels.check_rows(eta, np.array([2, 3]), 1e-3)
    assert not kernels.check_rows(eta, np.array([3, 2]), 1e-3)
    eta[1, 0] = [0.25, 0.5, 0.25]
    assert not kernels.check_rows(eta, np.array([2, 3]), 1e-3)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_of_class_1_alone_the_range_is_checked(kind):
    eta = np.array([[0.0, 1.0], [0.5, 0.25], [1.0, 0.0]], dtype=kind)
    assert kernels.check_rows(eta, np.array([2, 2]), 1e-3)
    for value in (np.nextafter(kind(1), kind(2)), -1e-6, np.nan, np.inf):
        wrong = eta.copy()
        wrong[2, 1] = value
        assert not kernels.check_rows(wrong, np.array([2, 2]), 1e-3)


def test_recalibration_by_hand():
    eta = np.array([[[0.2, 0.3, 0.5]], [[0.0, 1.0, 0.0]]])
    t, c = np.array([0.5]), np.array([[0.1, -0.3, 0.2]])
    out = kernels.recalibrate(eta, np.array([3]), kernels.LinkArrays(t, c, 1e-6))
    z = np.exp(0.5 * np.log(np.maximum(eta[:, 0], 1e-6)) + c)
    np.testing.assert_allclose(out[:, 0], z / z.sum(axis=1, keepdims=True), rtol=1e-14)
    two = kernels.LinkArrays(t, np.array([[0.0, 0.4]]), 1e-6)
    binary = kernels.recalibrate(eta[:, 0, 1:2].copy(), np.array([2]), two)
    odds = np.sqrt(0.3 / 0.7) * np.exp(0.4)
    assert binary[0, 0] == pytest.approx(odds / (1 + odds))
