"""The oracle: the same integers whatever the layout, nothing copied, and a walk that counts as counting does."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import worlds
from engines import counts
from metricwise.core.losses import Loss
from metricwise.core.probabilities import Probabilities
from metricwise.core.rows import Rows
from metricwise.core.schema import Schema
from metricwise.data.probabilities import read_proba
from metricwise.data.sources.memory import MemorySource
from metricwise.kernels import _numpy
from metricwise.oracles.base import Line
from metricwise.oracles.counts import Counts
from profiles import examples


def layouts(proba):
    """The same probabilities (N, M, K) in every layout that is accepted."""
    n, m, k = proba.shape
    wide = np.zeros((n, 2 * m, k), dtype=proba.dtype)
    wide[:, ::2] = proba
    yield proba
    yield np.asfortranarray(proba)
    yield wide[:, ::2]
    yield proba[::-1][::-1]
    yield [proba[:, j] for j in range(m)]
    yield [np.asfortranarray(proba[:, j]) for j in range(m)]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("expected", [False, True])
def test_layouts_agree(dtype, expected):
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(4), size=(500, 3)).round(2).astype(dtype)
    codes = rng.integers(-1, 4, size=(500, 3))
    losses = [Loss(full=rng.normal(size=(3, 4, 4)).round(1)), Loss.argmax(4)]
    first = None
    for layout in layouts(proba):
        read = read_proba(layout, multioutput=True)
        got = counts(read, codes, confusion="expected" if expected else "labels").confusions(losses)
        first = got if first is None else first
        np.testing.assert_allclose(got, first, rtol=0, atol=1e-12 if expected else 0)


def test_padding_is_no_class():
    """Outputs of 2, 4 and 3 classes as a list and as a padded array: same decisions, same counts."""
    rng = np.random.default_rng(1)
    parts = [rng.dirichlet(np.ones(k), size=200) for k in (2, 4, 3)]
    padded = np.zeros((200, 3, 4))
    for m, part in enumerate(parts):
        padded[:, m, : part.shape[1]] = part
    names = [np.arange(k) for k in (2, 4, 3)]
    codes = np.column_stack([rng.integers(0, k, size=200) for k in (2, 4, 3)])
    # A loss that would love to predict the padding.
    losses = [Loss(diagonal=np.zeros((1, 4)), offset=-np.arange(4.0)[None]), Loss(full=rng.normal(size=(3, 4, 4)))]
    listed = counts(read_proba(parts, multioutput=True), codes).confusions(losses)
    whole = counts(read_proba(padded, multioutput=True, classes=names), codes).confusions(losses)
    assert np.array_equal(listed, whole)
    assert not listed[:, 0, :, 2:].any()
    assert not listed[:, 2, :, 3:].any()


def test_binary_layouts_agree():
    rng = np.random.default_rng(2)
    p = rng.random((300, 2))
    codes = rng.integers(0, 2, size=(300, 2))
    losses = [Loss(diagonal=np.array([[0.0, -1.0]]), offset=np.array([[0.0, t]])) for t in (0.2, 0.5, 0.8)]
    short = counts(read_proba(p, multioutput=True), codes).confusions(losses)
    full = counts(read_proba(np.stack([1 - p, p], axis=2), multioutput=True), codes).confusions(losses)
    assert np.array_equal(short, full)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(50,), (50, 3), (50, 2, 3)])
def test_the_big_array_is_not_copied(dtype, shape):
    rng = np.random.default_rng(0)
    proba = rng.random(shape).astype(dtype)
    if len(shape) > 1:
        proba /= proba.sum(axis=-1, keepdims=True)
    read = read_proba(proba, multioutput=True if len(shape) == 3 else None)
    assert all(np.shares_memory(block, proba) for block in read.blocks)
    assert read.blocks[0].dtype == dtype
    listed = [proba, proba]
    if len(shape) == 2:
        assert all(np.shares_memory(block, proba) for block in read_proba(listed, multioutput=True).blocks)


@given(seed=st.integers(0, 10_000), block=st.sampled_from([1, 5, 100, 1 << 16]))
def test_chunks_give_the_same_integers(seed, block):
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(np.ones(3), size=(60, 2)).round(2)
    codes = rng.integers(-1, 3, size=(60, 2))
    codes[:3] = np.arange(3)[:, None]
    losses = [Loss(full=rng.normal(size=(1, 3, 3)).round(1)) for _ in range(3)]
    oracle = counts(read_proba(proba, multioutput=True), codes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_numpy, "_BLOCK", block)
        patch.setattr(_numpy, "_MIN_ROWS", 1)
        got = oracle.confusions(losses)
    whole = oracle.confusions(losses)
    assert np.array_equal(got, whole)
    numbers = whole * (codes >= 0).sum(axis=0)[:, None, None]
    np.testing.assert_allclose(numbers, numbers.round(), atol=1e-9)
    for r, loss in enumerate(losses):
        assert np.array_equal(whole[r], oracle.confusions([loss])[0])


# ------------------------------------------------------------------------------------------------------- the walk


def check_walk(problem, seed, expected):
    """On every interval, the functionals are those of a fresh count at a point inside it."""
    rng = np.random.default_rng(seed)
    k = max(problem.sizes)
    read = read_proba(problem.eta, multioutput=True)
    oracle = counts(read, problem.y, problem.weight, "expected" if expected else "labels")
    shape = (1, k, k)
    line = tuple(Loss(full=rng.integers(-2, 3, size=shape).astype(float)) for _ in range(2))
    functionals = rng.integers(-3, 4, size=(2, k, k)).astype(float)
    share = rng.random(problem.n_outputs)
    outputs = np.zeros(problem.n_outputs, dtype=np.intp)
    walk = oracle.walk(Line(outputs, share, *line, functionals[None]), 1e-12)
    assert np.isinf([walk.lower.min(), walk.upper.max()]).all()
    assert (walk.lower < walk.upper).all()
    checked = 0
    for index, g in enumerate(walk.interior(np.arange(len(walk.lower)))):
        assert walk.lower[index] < g < walk.upper[index]
        loss = line[0].full[0] + g * line[1].full[0]
        totals = np.zeros(2)
        clear = True
        for m, size in enumerate(problem.sizes):
            scores = problem.eta[m] @ loss[:size, :size]
            ordered = np.sort(scores, axis=1)
            # Rows whose two best classes have one line are tied at every g: rounding decides, not g.
            clear &= bool((ordered[:, 1] - ordered[:, 0] > 1e-9).all())
            codes = scores.argmin(axis=1)
            count = worlds.expected if expected else lambda _, *rest: worlds.confusion(*rest)
            C = np.array(count(problem.eta[m], problem.y[:, m], codes, problem.row_weight, size))
            C /= C.sum()
            totals += share[m] * np.sum(functionals[:, :size, :size] * C, axis=(1, 2))
        if clear:
            np.testing.assert_allclose(walk.values[index], totals, atol=1e-9)
            checked += 1
    return checked, len(walk.lower)


@examples(60)
@given(problem=worlds.tiny(), seed=st.integers(0, 10_000), expected=st.booleans())
def test_walk_counts_as_counting_does(problem, seed, expected):
    check_walk(problem, seed, expected)


@pytest.mark.parametrize("expected", [False, True])
@pytest.mark.parametrize("decimals", [None, 2])
def test_walk_counts_as_counting_does_on_random_rows(decimals, expected):
    rng = np.random.default_rng(8)
    checked = intervals = 0
    for seed in range(20):
        problem = worlds.random_tiny(rng, max_rows=30)
        if decimals is None:
            problem.eta = [rng.dirichlet(np.ones(k), size=problem.n_rows) for k in problem.sizes]
        done, found = check_walk(problem, seed, expected)
        checked, intervals = checked + done, intervals + found
    assert checked > 0.5 * intervals


def test_interior_points_lie_inside_even_between_neighbouring_floats():
    p = np.array([0.3, np.nextafter(0.3, 1)])
    constant = Loss(diagonal=np.array([[0.0, -1.0]]), offset=np.zeros((1, 2)))
    slope = Loss(diagonal=np.zeros((1, 2)), offset=np.array([[0.0, 1.0]]))
    oracle = counts(read_proba(p), np.array([[0], [1]]))
    hits = np.array([[[[0.0, 1.0], [0.0, 1.0]], [[0.0, 0.0], [0.0, 0.0]]]])
    walk = oracle.walk(Line(np.array([0]), np.ones(1), constant, slope, hits), 0.0)
    thresholds = np.sort(walk.interior(np.arange(3)))
    assert [int((p > t).sum()) for t in thresholds] == [2, 1, 0]


def test_priors_and_weights_of_the_oracle():
    proba = read_proba(np.full((4, 2, 2), 0.5), multioutput=True)
    codes = np.array([[0, 0], [0, 1], [1, -1], [1, -1]])
    oracle = counts(proba, codes, np.array([1.0, 2.0, 3.0, 4.0]))
    assert oracle.weight.tolist() == [10.0, 3.0]
    np.testing.assert_allclose(oracle.priors, [[0.3, 0.7], [1 / 3, 2 / 3]])
    shifted = counts(proba, codes, prior=np.array([[0.9, 0.1], [0.5, 0.5]]))
    np.testing.assert_allclose(shifted.priors, [[0.9, 0.1], [0.5, 0.5]])
    np.testing.assert_allclose(shifted.confusions([Loss.argmax(2)])[0, 0], [[0.9, 0.0], [0.1, 0.0]])


@pytest.mark.parametrize("kind", ["labels", "expected", "blended"])
@pytest.mark.parametrize("shape", ["binary", "columns", "list", "padded"])
def test_shares_are_the_diagonals_and_column_sums_of_confusions(kind, shape):
    rng = np.random.default_rng([5, *kind.encode(), *shape.encode()])
    sizes = {"binary": [2, 2], "columns": [4], "list": [2, 5, 3], "padded": [3, 5]}[shape]
    n, width = 90, max(sizes)
    etas = [rng.dirichlet(np.ones(k), size=n).round(2) for k in sizes]
    padded = np.stack([np.pad(eta, ((0, 0), (0, width - eta.shape[1]))) for eta in etas], axis=1)
    blocks = {"binary": (padded[:, :, 1],), "list": tuple(eta[:, None] for eta in etas)}.get(shape, (padded,))
    proba = Probabilities(blocks, np.array(sizes))
    codes = np.stack([rng.integers(-1, k, n) for k in sizes], axis=1)
    weight = rng.integers(0, 4, n).astype(float)
    prior = rng.dirichlet(np.ones(width), size=len(sizes)) * (np.arange(width) < np.array(sizes)[:, None])
    prior /= prior.sum(axis=1, keepdims=True)
    losses = [Loss.argmax(width), Loss(full=rng.normal(size=(len(sizes), width, width)))]
    losses.append(Loss(diagonal=-rng.random((1, width)), offset=rng.normal(size=(1, width)) / 4))
    for weights, target in itertools.product((None, weight), (None, prior)):
        oracle = counts(proba, codes, weights, kind, target)
        C = oracle.confusions(losses)
        hits, columns = np.moveaxis(oracle.shares(losses), 2, 0)
        np.testing.assert_allclose(hits, np.diagonal(C, axis1=2, axis2=3), atol=1e-14)
        np.testing.assert_allclose(columns, C.sum(axis=2), atol=1e-14)


@pytest.mark.parametrize("confusion", ["expected", "blended"])
def test_with_known_priors_rows_without_a_label_count_nowhere(confusion):
    """Labels are missing where the probabilities are large: to count those rows would be noticed."""
    rng = np.random.default_rng(2)
    proba = rng.beta(1, 2, (400, 1))
    codes = np.where((proba > 0.5) & (rng.random((400, 1)) < 0.8), -1, rng.random((400, 1)) < proba)
    losses, known = [Loss.argmax(2), Loss(full=np.array([[[0.0, 1.0], [3.0, 0.0]]]))], codes[:, 0] >= 0
    found = [
        counts(read_proba(proba[rows], multioutput=True), codes[rows], confusion=confusion, prior=[[0.4, 0.6]])
        for rows in (slice(None), known)
    ]
    np.testing.assert_allclose(*(oracle.confusions(losses) for oracle in found), rtol=0, atol=1e-12)
    np.testing.assert_allclose(*(oracle.priors for oracle in found), rtol=0, atol=1e-12)


@pytest.mark.parametrize("confusion", ["labels", "blended"])
def test_rules_of_many_rows_are_counted_once(confusion):
    """The last rules, and argmax with the first of them, are as a fresh oracle counts them, without another pass."""
    rng = np.random.default_rng(3)
    n, k = 1 << 18, 3
    proba, codes = rng.dirichlet(np.ones(k), size=n).astype("f4"), rng.integers(0, k, size=n)
    rows = Rows(read_proba(proba), codes[:, None].astype(np.int8))
    losses = [Loss(diagonal=-rng.uniform(0.5, 2.0, (1, k)), offset=np.zeros((1, k))) for _ in range(6)]

    def fresh():
        return Counts(MemorySource(rows, Schema.of_codes([k])), confusion)

    plain, oracle, argmax = [fresh().confusions([loss])[0] for loss in losses], fresh(), Loss.argmax(k)
    expected_argmax = np.zeros((k, k))
    np.add.at(expected_argmax, (codes, proba.argmax(axis=1)), 1 / n)
    np.testing.assert_array_equal(oracle.confusions(losses[:1])[0], plain[0])
    np.testing.assert_array_equal(oracle.confusions([losses[1]])[0], plain[1])
    read = oracle.entries_read
    for asked in ([0, 1], [1], [0]):
        again = oracle.confusions([*(losses[r] for r in asked), argmax])
        for r, counted in zip(asked, again, strict=False):
            np.testing.assert_array_equal(counted, plain[r])
        if confusion == "labels":
            np.testing.assert_allclose(again[-1][0], expected_argmax, atol=1e-12)
    assert oracle.entries_read == read
    several = oracle.confusions([losses[2], losses[0], losses[2], *losses[3:]])
    for counted, r in zip(several, [2, 0, 2, 3, 4, 5], strict=True):
        np.testing.assert_array_equal(counted, plain[r])
    assert oracle.entries_read == read + n
    np.testing.assert_array_equal(oracle.confusions([losses[1]])[0], plain[1])  # of long ago: counted again
    assert oracle.entries_read == read + 2 * n
