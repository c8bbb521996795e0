"""Best label sets of rows: against all label vectors and all sets, sums over missing labels, and twin beside twin."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import poisson
from threadpoolctl import threadpool_limits

from metricwise.kernels import _label_sets, _numpy
from profiles import examples

try:
    from metricwise.kernels import _compiled
except ImportError:
    _compiled = None
needs_compiled = pytest.mark.skipif(_compiled is None, reason="the compiled kernels are not built")

METRICS = {"F0.5": (0.25, False), "F1": (1.0, False), "F2": (4.0, False), "Jaccard": (1.0, True)}
seeds = st.integers(0, 2**32 - 1)


@pytest.fixture(scope="module", params=["numpy", pytest.param("compiled", marks=needs_compiled)])
def twin(request):
    return _numpy if request.param == "numpy" else _compiled


@pytest.fixture(scope="module", params=sorted(METRICS))
def metric(request):
    """The square of beta, and whether it is Jaccard."""
    return METRICS[request.param]


def set_value(tp, n_true, n_predicted, metric, zero_division):
    """The definition, of arrays that are broadcast."""
    beta2, jaccard = metric
    numerator = tp if jaccard else (1.0 + beta2) * tp
    denominator = n_true + n_predicted - tp if jaccard else beta2 * n_true + n_predicted
    empty = np.broadcast_to(denominator == 0.0, np.broadcast_shapes(np.shape(numerator), np.shape(denominator)))
    return np.where(empty, zero_division, numerator / np.where(denominator == 0.0, 1.0, denominator))


def all_sets(p, metric, zero_division, missing=0.0):
    """Return the expected value of every set of labels and its size, summed over all label vectors."""
    sets = np.arange(1 << len(p))[:, None] >> np.arange(len(p)) & 1
    chance = np.where(sets, p, 1.0 - p).prod(axis=1)
    size = sets.sum(axis=1)
    tp = sets.astype(float) @ sets.T
    values = np.zeros(len(sets))
    unseen = np.arange(int(missing + 12 * missing**0.5) + 30 if missing else 1)
    for extra, share in zip(unseen, poisson.pmf(unseen, missing), strict=True):
        values += share * (set_value(tp, size + extra, size[:, None], metric, zero_division) @ chance)
    return values, size


def top_values(p, metric, zero_division):
    """Return the expected values of the top 0, 1, ... by convolutions of the whole distributions, O(n^3)."""
    ranked = np.sort(np.asarray(p, dtype=float))[::-1]

    def count(some):
        mass = np.ones(1)
        for one in some:
            mass = np.convolve(mass, [1.0 - one, one])
        return mass

    values = []
    for size in range(len(ranked) + 1):
        hits, rest = count(ranked[:size]), count(ranked[size:])
        tp, others = np.arange(len(hits))[:, None], np.arange(len(rest))
        values.append(hits @ set_value(tp, tp + others, size, metric, zero_division) @ rest)
    return np.array(values)


def one_row(p, dtype=np.float64):
    return np.asarray(p, dtype=dtype), None, np.array([0, len(p)]), None


def best_size(twin, p, metric, zero_division=0.0, missing=0.0, low=0, high=-1):
    (size,) = twin.label_set_sizes(*one_row(p), *metric, zero_division, missing, low, high, None)
    return size


def value_at(twin, p, size, metric, zero_division=0.0, missing=0.0):
    sizes = np.array([size])
    (value,) = twin.label_set_values(*one_row(p), sizes, *metric, zero_division, missing, None)
    return value


def draw_row(rng, m):
    """Probabilities of several kinds: spread out, mostly small, rounded (ties, zeros and ones), all but certain."""
    kind = rng.integers(5)
    if kind == 0:
        return rng.random(m)
    if kind == 1:
        return rng.random(m) ** 4
    if kind == 2:
        return np.round(rng.random(m) * 4) / 4
    if kind == 3:
        return np.where(rng.random(m) < 0.5, 1e-9, 1 - 1e-9) + rng.normal(size=m) * 1e-10
    return rng.random(m) * 10.0 ** -rng.integers(1, 20)


def draw_rows(seed, n=40, longest=30, n_labels=60, dtype=np.float64, index=np.int64, dense=False):
    """Return values (some with their sign set), indices and indptr of rows, empty ones among them."""
    rng = np.random.default_rng(seed)
    length = np.full(n, n_labels) if dense else rng.integers(0, longest + 1, size=n) * (rng.random(n) < 0.9)
    labels = [np.sort(rng.choice(n_labels, size=size, replace=False)) for size in length]
    values = np.concatenate([draw_row(rng, size) for size in length] or [np.zeros(0)]).astype(dtype)
    values[rng.random(len(values)) < 0.3] *= -1
    indptr = np.concatenate([[0], np.cumsum(length)]).astype(np.int64)
    return values, None if dense else np.concatenate(labels).astype(index), indptr


# ----------------------------------------------------------------------------------------------- sizes and their values


@examples(60)
@given(seed=seeds)
@pytest.mark.parametrize("zero_division", [0.0, 1.0])
def test_no_set_of_labels_is_better(twin, metric, zero_division, seed):
    rng = np.random.default_rng(seed)
    p = draw_row(rng, rng.integers(1, 9))
    values, size = all_sets(p, metric, zero_division)
    low = int(rng.integers(0, len(p) + 1))
    high = int(rng.integers(low, len(p) + 1))
    n_positive = (p > 0).sum()
    for least, most in ((0, -1), (0, high), (low, -1), (low, high)):
        found = best_size(twin, p, metric, zero_division, low=least, high=most)
        within = (size >= least) & (size <= (len(p) if most < 0 else most))
        top = values[within].max()
        assert least <= found <= max(least, n_positive)
        assert most < 0 or found <= most
        np.testing.assert_allclose(value_at(twin, p, found, metric, zero_division), top, rtol=2e-12, atol=1e-300)
        smaller = within & (size < found)
        assert not smaller.any() or values[smaller].max() < top  # or the smaller size would have been taken


@pytest.mark.parametrize("zero_division", [0.0, 1.0])
@pytest.mark.parametrize("m", [10, pytest.param(12, marks=pytest.mark.slow)])
def test_no_set_of_many_labels_is_better(twin, metric, zero_division, m):
    rng = np.random.default_rng(m)
    for power in (1, 3):
        p = rng.random(m) ** power
        values, size = all_sets(p, metric, zero_division)
        for low, high in ((0, -1), (2, 4), (m, m)):
            found = best_size(twin, p, metric, zero_division, low=low, high=high)
            within = (size >= low) & (size <= (high if high >= 0 else m))
            assert value_at(twin, p, found, metric, zero_division) == pytest.approx(values[within].max(), rel=1e-13)


@pytest.mark.parametrize("missing", [1e-6, 0.3, 4.0, 60.0, 900.0])
@pytest.mark.parametrize("zero_division", [0.0, 1.0])
def test_missing_labels_are_misses(twin, metric, zero_division, missing):
    rng = np.random.default_rng(7)
    for m in (1, 3, 6):
        p = rng.random(m) ** 2
        values, size = all_sets(p, metric, zero_division, missing)
        found = best_size(twin, p, metric, zero_division, missing)
        assert value_at(twin, p, found, metric, zero_division, missing) == pytest.approx(values.max(), rel=1e-12)
        for j in range(m + 1):
            top = values[size == j].max()
            assert value_at(twin, p, j, metric, zero_division, missing) == pytest.approx(top, rel=1e-12, abs=1e-16)


@pytest.mark.parametrize("n", [50, 150])
@pytest.mark.parametrize("power", [0.05, 1, 8, 40])
def test_long_rows_have_the_values_of_whole_convolutions(twin, metric, n, power):
    p = np.random.default_rng(n).random(n) ** power
    values = top_values(p, metric, 0.5)
    for size in {0, 1, 2, 7, n // 2, n - 1, n}:
        assert value_at(twin, p, size, metric, 0.5) == pytest.approx(values[size], rel=2e-12, abs=1e-15)
    found = best_size(twin, p, metric, 0.5)
    assert values[found] >= values.max() * (1 - 3e-12)


@pytest.mark.parametrize("near", [0.0, 1e-16, -1e-16, 1e-9, -1e-9])
def test_labels_as_likely_as_not_are_taken_out_without_loss(twin, near):
    p = np.full(60, 0.5 + near)
    values = top_values(p, METRICS["F1"], 0.0)
    for size in (1, 20, 60):
        assert value_at(twin, p, size, METRICS["F1"]) == pytest.approx(values[size], rel=1e-13)


def test_the_smaller_of_equally_good_sizes_is_taken(twin):
    f1, jaccard = METRICS["F1"], METRICS["Jaccard"]
    assert best_size(twin, [0.5, 1.0], f1) == 1  # 5/6 both
    assert best_size(twin, [1.0, 0.5], jaccard) == 1  # 3/4 both
    assert best_size(twin, [0.5], jaccard, zero_division=1.0) == 0  # 1/2 both
    assert best_size(twin, [0.5], f1, zero_division=1.0) == 0
    assert best_size(twin, [0.5], f1, zero_division=0.999) == 1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_without_probabilities(twin, metric, dtype):
    values, indptr = np.array([0.0, -0.0, 0.7], dtype=dtype), np.array([0, 0, 2, 3])
    indices = np.array([1, 4, 2], dtype=np.int32)

    def sizes(low, high):
        return twin.label_set_sizes(values, indices, indptr, None, *metric, 0.0, 0.0, low, high, None).tolist()

    assert sizes(0, -1) == [0, 0, 1]
    assert sizes(0, 0) == [0, 0, 0]
    assert sizes(1, -1) == [1, 1, 1]
    assert sizes(2, 5) == [2, 2, 2]
    found = twin.label_set_values(values, indices, indptr, None, np.array([0, 2, 2]), *metric, 0.25, 0.0, None)
    expected = set_value(1.0, 1.0, 2.0, metric, 0.0) * float(values[2])
    np.testing.assert_allclose(found, [0.25, 0.0, expected], rtol=1e-14)
    none = twin.label_set_values(values, indices, indptr, None, np.zeros(3, dtype=np.int64), *metric, 0.25, 0.5, None)
    np.testing.assert_allclose(none, 0.25 * np.exp(-0.5) * np.array([1, 1, 1 - float(values[2])]), rtol=1e-14)


def test_no_rows_at_all(twin, metric):
    for values, indptr, rows in (
        (np.zeros(0), np.zeros(1, dtype=np.int64), None),
        (np.ones(2), np.array([0, 2]), np.zeros(0, dtype=np.int64)),
    ):
        nothing = np.zeros(0, dtype=np.int64)
        assert twin.label_set_sizes(values, None, indptr, rows, *metric, 0.0, 0.0, 0, -1, None).shape == (0,)
        assert twin.label_set_values(values, None, indptr, rows, nothing, *metric, 0.0, 0.0, None).shape == (0,)
        begin, labels = twin.label_set_choose(values, None, indptr, 2, rows, nothing, None)
        assert begin.tolist() == [0]
        assert labels.shape == (0,)


def test_certain_labels_are_all_predicted(twin, metric):
    p = [1.0, 0.0, 1.0, 1.0, 1e-3]
    assert best_size(twin, p, metric) == 3
    assert value_at(twin, p, 3, metric) == pytest.approx(all_sets(np.array(p), metric, 0.0)[0].max(), rel=1e-14)
    assert value_at(twin, [1.0, 1.0], 2, metric) == pytest.approx(1.0, rel=1e-15)


def test_precision_is_the_case_of_beta_0(twin):
    p, precision = [0.3, 0.8, 0.8], (0.0, False)
    assert best_size(twin, p, precision) == 1
    assert best_size(twin, p, precision, zero_division=0.9) == 0  # a row that predicts nothing has this precision
    assert best_size(twin, p, precision, zero_division=0.9, missing=2.0) == 0
    assert value_at(twin, p, 0, precision, zero_division=0.9) == 0.9
    assert value_at(twin, p, 3, precision, missing=2.0) == pytest.approx(1.9 / 3, rel=1e-14)


def test_improbable_labels_are_predicted_if_nothing_else_is_to_gain(twin, metric):
    assert best_size(twin, [1e-30, 3e-30], metric) >= 1
    assert value_at(twin, [1e-30, 3e-30], 1, metric) == pytest.approx(3e-30, rel=1e-12)
    assert best_size(twin, [1e-30, 3e-30], metric, zero_division=1.0) == 0


@examples(30)
@given(seed=seeds)
def test_factors_signs_types_and_rows(twin, metric, seed):
    rng = np.random.default_rng(seed)
    values, indices, indptr = draw_rows(seed, n=12, longest=8, dtype=rng.choice([np.float32, np.float64]))
    rows, rate = rng.integers(0, 12, size=15), rng.random(12) * (rng.random(12) < 0.7)
    factor = rng.random(60) * 2.5
    sizes = twin.label_set_sizes(values, indices, indptr, rows, *metric, 0.5, rate, 1, 4, factor)
    found = twin.label_set_values(values, indices, indptr, rows, sizes, *metric, 0.5, rate, factor)
    for row, size, value in zip(rows, sizes, found, strict=True):
        entries = slice(indptr[row], indptr[row + 1])
        p = np.minimum(np.abs(values[entries]).astype(float) * factor[indices[entries]], 1.0)
        assert size == best_size(twin, p, metric, 0.5, rate[row], 1, 4)
        assert value == value_at(twin, p, size, metric, 0.5, rate[row])


def test_numbers_that_cannot_be_are_refused(twin, metric):
    row = one_row([0.2, 0.4])
    for rate in (-1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="finite and at least 0"):
            twin.label_set_sizes(*row, *metric, 0.0, rate, 0, -1, None)
    with pytest.raises(ValueError, match="one for each row"):
        twin.label_set_sizes(*row, *metric, 0.0, np.zeros(2), 0, -1, None)
    for sizes in (np.array([-1]), np.array([1, 1])):
        with pytest.raises(ValueError, match="one for each row that is read"):
            twin.label_set_values(*row, sizes, *metric, 0.0, 0.0, None)
        with pytest.raises(ValueError, match="one for each row that is read"):
            twin.label_set_choose(*row[:3], 2, None, sizes, None)


# ----------------------------------------------------------------------------------------------------------- the labels


def ranked_labels(values, indices, begin, end, n_labels, factor):
    """Rank all labels of a row, unstored ones included."""
    p = np.zeros(n_labels)
    labels = np.arange(end - begin) if indices is None else indices[begin:end]
    p[labels] = np.abs(values[begin:end]).astype(float)
    if factor is not None:
        p = np.minimum(p * factor, 1.0)
    return np.lexsort([np.arange(n_labels), -p])


@examples(60)
@given(seed=seeds, dense=st.booleans())
def test_labels_are_the_first_of_all(twin, seed, dense):
    rng = np.random.default_rng(seed)
    types = {"dtype": rng.choice([np.float32, np.float64]), "index": rng.choice([np.int32, np.int64])}
    values, indices, indptr = draw_rows(seed, n=10, longest=12, n_labels=20, dense=dense, **types)
    rows = None if rng.random() < 0.5 else rng.integers(0, 10, size=13)
    read = np.arange(10) if rows is None else rows
    factor = None if rng.random() < 0.5 else np.round(rng.random(20) * 3)
    sizes = rng.integers(0, 26, size=len(read)) // rng.integers(1, 6)
    begin, labels = twin.label_set_choose(values, indices, indptr, 20, rows, sizes, factor)
    assert begin.dtype == np.int64
    assert labels.dtype == (np.int64 if dense else types["index"])
    assert np.diff(begin).tolist() == np.minimum(sizes, 20).tolist()
    for number, row in enumerate(read):
        ranked = ranked_labels(values, indices, indptr[row], indptr[row + 1], 20, factor)
        assert labels[begin[number] : begin[number + 1]].tolist() == sorted(ranked[: sizes[number]])


def test_equally_probable_labels_and_unstored_ones_come_by_number(twin):
    values, indptr = np.array([0.5, 0.25, 0.5, 0.25, 0.5, 0.0]), np.array([0, 6])
    indices = np.array([1, 3, 4, 6, 7, 9], dtype=np.int32)

    def labels(size):
        return twin.label_set_choose(values, indices, indptr, 12, None, np.array([size]), None)[1].tolist()

    assert labels(0) == []
    assert labels(2) == [1, 4]
    assert labels(4) == [1, 3, 4, 7]
    assert labels(5) == [1, 3, 4, 6, 7]
    assert labels(7) == [0, 1, 2, 3, 4, 6, 7]  # a stored 0 is worth as little as an unstored one
    assert labels(99) == list(range(12))


# ----------------------------------------------------------------------------------------------------- twin beside twin


@needs_compiled
@examples(40)
@given(seed=seeds, dense=st.booleans())
def test_twins_agree(metric, seed, dense):
    rng = np.random.default_rng(seed)
    types = {"dtype": rng.choice([np.float32, np.float64]), "index": rng.choice([np.int32, np.int64])}
    arrays = draw_rows(seed, n=60, dense=dense, **types)
    rows = None if rng.random() < 0.5 else rng.integers(0, 60, size=150)
    factor = None if rng.random() < 0.5 else rng.random(60) * 2
    missing = [0.0, float(rng.random() * 5), rng.random(60) * rng.choice([1e-3, 1.0, 50.0])][rng.integers(3)]
    low = int(rng.integers(0, 4))
    high = -1 if rng.random() < 0.5 else low + int(rng.integers(0, 5))
    asked = (*metric, float(rng.random()), missing)
    sizes, others = (one.label_set_sizes(*arrays, rows, *asked, low, high, factor) for one in (_numpy, _compiled))
    np.testing.assert_array_equal(sizes, others)
    assert sizes.dtype == others.dtype == np.int64
    for some in (sizes, rng.integers(0, 70, size=len(sizes))):
        one, other = (twin.label_set_values(*arrays, rows, some, *asked, factor) for twin in (_numpy, _compiled))
        np.testing.assert_array_equal(one, other)
        chosen, same = (twin.label_set_choose(*arrays, 60, rows, some, factor) for twin in (_numpy, _compiled))
        np.testing.assert_array_equal(chosen[0], same[0])
        np.testing.assert_array_equal(chosen[1], same[1])
        assert chosen[1].dtype == same[1].dtype


@needs_compiled
def test_twins_agree_on_many_rows(metric):
    arrays = draw_rows(3, n=3000, longest=60, n_labels=80)
    rate = np.random.default_rng(3).random(3000)
    sizes, others = (one.label_set_sizes(*arrays, None, *metric, 1.0, rate, 0, -1, None) for one in (_numpy, _compiled))
    np.testing.assert_array_equal(sizes, others)
    one, other = (twin.label_set_values(*arrays, None, sizes, *metric, 1.0, rate, None) for twin in (_numpy, _compiled))
    np.testing.assert_array_equal(one, other)
    one, other = (twin.label_set_choose(*arrays, 80, None, sizes, None) for twin in (_numpy, _compiled))
    np.testing.assert_array_equal(one[1], other[1])


@needs_compiled
def test_any_number_of_threads_gives_the_same(metric):
    values, indices, indptr = draw_rows(4, n=4000, longest=60, n_labels=80, dtype=np.float32, index=np.int32)

    def results():
        sizes = _compiled.label_set_sizes(values, indices, indptr, None, *metric, 0.0, 0.2, 1, -1, None)
        worth = _compiled.label_set_values(values, indices, indptr, None, sizes, *metric, 0.0, 0.2, None)
        return sizes, worth, *_compiled.label_set_choose(values, indices, indptr, 80, None, sizes, None)

    many = results()
    with threadpool_limits(1, user_api="openmp"):
        alone = results()
    for one, other in zip(many, alone, strict=True):
        np.testing.assert_array_equal(one, other)


@needs_compiled
def test_arrays_of_other_types_and_layouts(metric):
    values, indices, indptr = draw_rows(5, n=30)
    sizes = _numpy.label_set_sizes(values, indices, indptr, None, *metric, 0.0, 0.1, 0, -1, None)
    spread = np.repeat(values, 2)[::2]
    swapped = values.astype(values.dtype.newbyteorder())
    for same in (spread, swapped):
        for labels in (indices.astype(np.uint16), np.repeat(indices, 2)[::2], indices.astype(">i4")):
            found = _compiled.label_set_sizes(
                same, labels, indptr.astype(np.int32), None, *metric, 0.0, 0.1, 0, -1, None
            )
            np.testing.assert_array_equal(found, sizes)
            one, other = (
                twin.label_set_choose(same, labels, indptr, 60, None, sizes, None) for twin in (_numpy, _compiled)
            )
            np.testing.assert_array_equal(one[1], other[1])
            assert one[1].dtype == other[1].dtype


@examples(20)
@given(seed=seeds)
def test_a_row_is_decided_alike_whatever_stands_beside_it(metric, seed):
    values, indices, indptr = draw_rows(seed, n=20)
    every = _label_sets.label_set_sizes(values, indices, indptr, None, *metric, 0.3, 0.2, 0, -1, None)
    worth = _label_sets.label_set_values(values, indices, indptr, None, every, *metric, 0.3, 0.2, None)
    for row in range(20):
        one = np.array([row])
        alone = _label_sets.label_set_sizes(values, indices, indptr, one, *metric, 0.3, 0.2, 0, -1, None)
        assert alone == every[row]
        assert _label_sets.label_set_values(values, indices, indptr, one, alone, *metric, 0.3, 0.2, None) == worth[row]
