"""Rows of very many labels: each pass against its definition on dense rows, and the twins beside one another."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from threadpoolctl import threadpool_limits

from metricwise import kernels
from metricwise.kernels import LabelBlock, LabelForm, _labels, _numpy
from profiles import examples

try:
    from metricwise.kernels import _compiled
except ImportError:
    _compiled = None
needs_compiled = pytest.mark.skipif(_compiled is None, reason="the compiled kernels are not built")

FORMS = {
    "precision": LabelForm((1.0, 0.0, 0.0, 0.0), (0.0, 0.0, 1.0, 0.0)),
    "recall": LabelForm((1.0, 0.0, 0.0, 0.0), (0.0, 1.0, 0.0, 0.0)),
    "F1": LabelForm((2.0, 0.0, 0.0, 0.0), (0.0, 1.0, 1.0, 0.0)),
    "precision, damped": LabelForm((1.0, 0.0, 0.0, 0.0), (0.0, 0.0, 1.0, 0.0), damped=True),
    "F1, damped": LabelForm((2.0, 0.0, 0.0, 0.0), (0.0, 1.0, 1.0, 0.0), damped=True),
    "Jaccard": LabelForm((1.0, 0.0, 0.0, 0.0), (-1.0, 1.0, 1.0, 0.0)),
    "Jaccard, damped": LabelForm((1.0, 0.0, 0.0, 0.0), (-1.0, 1.0, 1.0, 0.0), damped=True),
    "accuracy": LabelForm((2.0, -1.0, -1.0, 1.0), (0.0, 0.0, 0.0, 1.0)),
    "coverage": LabelForm((1.0, 0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0), coverage=True),
}
EXACT = ["precision", "recall", "F1", "precision, damped", "F1, damped"]


@pytest.fixture(params=["numpy", pytest.param("compiled", marks=needs_compiled)])
def twin(request):
    return _numpy if request.param == "numpy" else _compiled


class Case:
    """Rows of which some are empty, some values tie and some are 0, with marks, weights and rows that come twice."""

    def __init__(self, seed, n=40, m=9, dense=False, levels=6, length=None):
        rng = np.random.default_rng(seed)
        self.n, self.m = n, m
        self.stored = rng.random((n, m)) < rng.choice([0.2, 0.6, 1.0]) if length is None else np.zeros((n, m), bool)
        if length is not None:
            for row in self.stored:
                row[rng.integers(0, m, length)] = True
        self.stored[rng.random(n) < 0.1] = False
        if dense:
            self.stored[:] = True
        eta = rng.random((n, m)) if levels is None else rng.integers(0, levels + 1, (n, m)) / levels
        self.true = rng.random((n, m)) < 0.4
        value_type, label_type = rng.choice([np.float32, np.float64]), rng.choice([np.int32, np.int64])
        self.eta = np.where(self.stored, eta, 0.0).astype(value_type).astype(float)
        self.weight = rng.integers(0, 4, n) / 2 if rng.random() < 0.5 else None
        self.rows = rng.integers(0, n, n // 2) if n and rng.random() < 0.4 else None
        self.read = np.arange(n) if self.rows is None else self.rows
        self.w = np.ones(n) if self.weight is None else self.weight
        row, label = np.nonzero(self.stored)
        self.indptr = np.concatenate([[0], np.cumsum(self.stored.sum(axis=1))]).astype(np.int64)
        values = np.where(self.true, -self.eta, self.eta)[row, label].astype(value_type)
        self.block = LabelBlock(
            values, None if dense else label.astype(label_type), self.indptr, m, self.weight, self.rows
        )
        step = 4 if levels is not None else 1e9
        self.scale, self.offset = (np.round(rng.normal(size=m) * step) / step for _ in range(2))
        self.offset -= rng.choice([0.0, 1.0, 3.0])
        self.high = int(rng.integers(0, min(m, 12) + 1))
        self.low = int(rng.integers(0, self.high + 1))
        self.rng = rng

    def fill(self, offset=None):
        offset = np.broadcast_to(self.offset if offset is None else offset, (self.m,))
        return np.lexsort((np.arange(self.m), -offset))

    def ranking(self, row, scale, offset):
        return np.lexsort((np.arange(self.m), -(scale * self.eta[row] + offset)))

    def predicted(self, scale, offset, low, high):
        """The definition: a bool for each row that is read and each label."""
        out = np.zeros((len(self.read), self.m), dtype=bool)
        for i, row in enumerate(self.read):
            score = scale * self.eta[row] + offset
            if high < 0:
                out[i] = (score > 0) & self.stored[row]
                continue
            rank = np.empty(self.m, dtype=int)
            rank[np.lexsort((np.arange(self.m), -score))] = np.arange(self.m)
            out[i] = (rank < low) | ((rank < high) & (score > 0))
        return out

    def counts(self, predicted):
        w = self.w[self.read, None] * predicted
        eta, true = self.eta[self.read], (self.true & self.stored)[self.read]
        return np.stack([(w * eta).sum(axis=0), (w * true).sum(axis=0), w.sum(axis=0)], axis=1)


CASES = [(seed, dense) for seed in range(12) for dense in (False, True)]


@pytest.mark.parametrize(("seed", "dense"), CASES)
def test_rows_are_decided_by_rank_and_sign(twin, seed, dense):
    case = Case(seed, dense=dense)
    for low, high, fill in ((case.low, case.high, case.fill()), (0, -1, None)):
        expected = case.predicted(case.scale, case.offset, low, high)
        indptr, indices = twin.label_decide(case.block, case.scale, case.offset, low, high, fill)
        assert indptr.dtype == np.int64
        assert indices.dtype == (np.int64 if dense else case.block.indices.dtype)
        np.testing.assert_array_equal(np.diff(indptr), expected.sum(axis=1))
        np.testing.assert_array_equal(indices, np.nonzero(expected)[1])


@pytest.mark.parametrize(("seed", "dense"), CASES)
def test_what_is_decided_is_counted(twin, seed, dense):
    case = Case(seed, dense=dense)
    tables = [(case.scale, case.offset), (case.scale[:1], case.offset[1:2]), (case.scale, case.offset[:1])]
    for low, high in ((case.low, case.high), (0, -1)):
        fill = None if high < 0 else [case.fill(offset) for _, offset in tables]
        result = twin.label_count(case.block, tables, low, high, fill)
        assert result.shape == (3, case.m, 3)
        for counts, (scale, offset) in zip(result, tables, strict=True):
            expected = case.counts(case.predicted(scale, offset, low, high))
            np.testing.assert_array_equal(counts[:, 1:], expected[:, 1:])
            np.testing.assert_allclose(counts[:, 0], expected[:, 0], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("high", [1, 2, 3, 4, 5, 6, 7, 8, 9, 20, 60])
@pytest.mark.parametrize("levels", [1, 3, None])
def test_long_rows(twin, high, levels):
    case = Case(high, n=60, m=200, length=50, levels=levels)
    for low in (0, 1, high):
        expected = case.predicted(case.scale, case.offset, low, high)
        _, indices = twin.label_decide(case.block, case.scale, case.offset, low, high, case.fill())
        np.testing.assert_array_equal(indices, np.nonzero(expected)[1])
    negative = -1 - np.abs(case.offset)  # labels that are not stored only fill up
    expected = case.predicted(case.scale, negative, high, high)
    _, indices = twin.label_decide(case.block, case.scale, negative, high, high, case.fill(negative)[: high + 50])
    np.testing.assert_array_equal(indices, np.nonzero(expected)[1])


def test_labels_that_are_not_stored_take_no_part_without_fill(twin):
    block = LabelBlock(np.array([0.5, 0.25]), np.array([1, 3]), np.array([0, 1, 1, 2]), 5)
    indptr, indices = twin.label_decide(block, np.ones(5), np.ones(5), 2, 2, None)
    np.testing.assert_array_equal(indptr, [0, 1, 1, 2])
    np.testing.assert_array_equal(indices, [1, 3])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_and_sums_are_rounded_one_by_one(twin, dtype):
    """A fused multiply-add has scores other than 0 here."""
    rng = np.random.default_rng(0)
    eta, scale = rng.random(400).astype(dtype), rng.random(400)
    block = LabelBlock(eta, np.arange(400), np.array([0, 400]), 400)
    indptr, _ = twin.label_decide(block, scale, -(scale * eta), 0, -1, None)
    assert indptr[1] == 0


def test_no_rows_no_entries_and_one_label(twin):
    for indptr in (np.zeros(1, dtype=np.int64), np.zeros(4, dtype=np.int64)):
        block = LabelBlock(np.empty(0), np.empty(0, dtype=np.int32), indptr, 1)
        rows = len(indptr) - 1
        assert twin.label_check(indptr, block.indices, block.values, 1, 0.0, 1.0) == (0, -1)
        assert len(twin.label_calibrate(block.values, 1.0, 0.0, 1e-6, False)) == 0
        np.testing.assert_array_equal(twin.label_sums(block), np.zeros((1, 2)))
        one = np.ones(1)
        filled = twin.label_decide(block, one, -one, 1, 1, np.zeros(1, dtype=np.int64))
        np.testing.assert_array_equal(filled[0], np.arange(rows + 1))
        np.testing.assert_array_equal(filled[1], np.zeros(rows))
        counts = twin.label_count(block, [(one, -one)], 1, 1, [np.zeros(1, dtype=np.int64)])
        np.testing.assert_array_equal(counts, [[[0.0, 0.0, rows]]])
        assert [len(part) for part in twin.label_sweep(block)] == [2, 0, 0, 0]
        tp, predicted, chosen = np.zeros(1), np.zeros(1), np.full((rows, 1), -1)
        scale, offset = twin.label_table(FORMS["F1"], one, one, one, tp, predicted, 1.0)
        state = (tp, predicted, scale, offset, chosen)
        twin.label_ascend(block, FORMS["F1"], one, one, one, *state, 0, 1, np.zeros(1, dtype=np.int64), 1.0)
        assert (chosen == -1).all()
        twin.label_mark(block.values, indptr, block.indices, 1, indptr, np.empty(0, dtype=np.int64))


# -------------------------------------------------------------------------------------------------- reading and marking


@pytest.mark.parametrize("indices_type", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_first_wrong_entry_is_found(twin, dtype, indices_type, monkeypatch):
    monkeypatch.setattr(_labels, "_FEW", 4)
    indptr = np.array([0, 3, 3, 7, 12])
    indices = np.array([0, 4, 8, 1, 2, 3, 9, 0, 1, 2, 3, 4], dtype=indices_type)
    values = np.linspace(0, 1, 12).astype(dtype)
    assert twin.label_check(indptr, indices, values, 10, 0.0, 1.0) == (0, -1)
    assert twin.label_check(indptr, None, values, 10, 0.0, 1.0) == (0, -1)
    for at in range(12):
        for wrong in (np.nan, np.inf, -np.inf, -0.25, 1.25):
            changed = values.copy()
            changed[at], changed[11] = wrong, np.nan
            assert twin.label_check(indptr, indices, changed, 10, 0.0, 1.0) == (3, at)
            assert twin.label_check(indptr, None, changed, 10, 0.0, 1.0) == (3, at)
        for wrong in (-1, 10):
            changed = indices.copy()
            changed[at] = wrong
            assert twin.label_check(indptr, changed, values, 10, 0.0, 1.0) == (1, at)
        if at not in (0, 3, 7):
            changed = indices.copy()
            changed[at] = changed[at - 1]
            assert twin.label_check(indptr, changed, values, 10, 0.0, 1.0) == (2, at)
    assert twin.label_check(indptr, indices, values * 50 - 20, 10, -math.inf, math.inf) == (0, -1)
    assert twin.label_check(indptr, indices, values + np.inf, 10, -math.inf, math.inf)[0] == 3


@pytest.mark.parametrize(("seed", "dense"), CASES[:8])
@pytest.mark.parametrize("labels_type", [np.int32, np.int64])
def test_true_labels_are_marked(twin, seed, dense, labels_type):
    case = Case(seed, dense=dense)
    values = np.abs(case.block.values)
    true = sparse.csr_array(case.true)
    y_indptr, y_indices = true.indptr.astype(np.int64), true.indices.astype(labels_type)
    twin.label_mark(values, case.indptr, case.block.indices, case.m, y_indptr, y_indices)
    np.testing.assert_array_equal(np.signbit(values), case.true[case.stored])
    np.testing.assert_array_equal(np.abs(values), np.abs(case.block.values))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values_are_calibrated_and_keep_their_signs(twin, dtype):
    rng = np.random.default_rng(0)
    p = np.concatenate([rng.random(1000), [0.0, 1.0, 1e-30, 0.5]]).astype(dtype)
    sign = np.where(rng.random(len(p)) < 0.5, -1.0, 1.0).astype(dtype)
    result = twin.label_calibrate(p * sign, 1.5, -0.25, 1e-6, False)
    assert result.dtype == dtype
    clipped = np.clip(p.astype(float), 1e-6, 1 - 1e-6)
    expected = 1 / (1 + np.exp(0.25 - 1.5 * np.log(clipped / (1 - clipped))))
    expected[p == 0] = 0
    np.testing.assert_allclose(np.abs(result), expected, rtol=1e-6 if dtype == np.float32 else 1e-10)
    np.testing.assert_array_equal(np.signbit(result), sign < 0)
    z = (rng.normal(size=300) * 300).astype(dtype)
    result = twin.label_calibrate(z, 0.5, 1.0, 1e-6, True)
    with np.errstate(over="ignore"):
        expected = 1 / (1 + np.exp(-(0.5 * z.astype(float) + 1)))
    np.testing.assert_allclose(result, expected, rtol=1e-6 if dtype == np.float32 else 1e-12, atol=1e-40)


@pytest.mark.parametrize(("seed", "dense"), CASES)
def test_sums(twin, seed, dense):
    case = Case(seed, dense=dense)
    w, true = case.w[case.read, None], (case.true & case.stored)[case.read]
    expected = np.stack([(w * case.eta[case.read]).sum(axis=0), (w * true).sum(axis=0)], axis=1)
    np.testing.assert_allclose(twin.label_sums(case.block), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("levels", [5, None])
@pytest.mark.parametrize(("seed", "dense"), CASES)
def test_thresholds_count_what_is_at_least_as_probable(twin, seed, dense, levels):
    case = Case(seed, n=80, dense=dense, levels=levels)
    label_ptr, value, hits, predicted = twin.label_sweep(case.block)
    stored, true = case.stored[case.read], (case.true & case.stored)[case.read]
    eta, w = case.eta[case.read], case.w[case.read]
    np.testing.assert_array_equal(np.diff(label_ptr), true.sum(axis=0))
    assert not np.signbit(value).any()
    for label in range(case.m):
        own = slice(label_ptr[label], label_ptr[label + 1])
        np.testing.assert_array_equal(value[own], np.sort(eta[true[:, label], label])[::-1])
        above = eta[:, label, None] >= value[own]
        np.testing.assert_allclose(hits[own], (w * true[:, label]) @ above, rtol=1e-12)
        np.testing.assert_allclose(predicted[own], (w * stored[:, label]) @ above, rtol=1e-12)


# ------------------------------------------------------------------------------------------------------- row after row


def damped(x):
    return np.where(x < 1e-12, 1.0, -np.expm1(-x) / np.maximum(x, 1e-12))


def value_of(form, true, tp, predicted, total):
    """What each label is worth, unweighted."""
    if form.coverage:
        return 1 - np.exp(tp)
    terms = np.stack(np.broadcast_arrays(tp, true, predicted, total))
    numerator, denominator = np.tensordot(form.numerator, terms, 1), np.tensordot(form.denominator, terms, 1)
    if form.damped:
        return tp * damped(denominator / form.numerator[0])
    return np.where(denominator > 0, numerator / np.where(denominator > 0, denominator, 1.0), 0.0)


class State:
    """Counts of labels in the middle of an ascent."""

    def __init__(self, seed, m):
        rng = np.random.default_rng(seed)
        self.factor, self.weight = 0.5 + rng.random(m), rng.random(m)
        self.true, self.total = rng.integers(0, 30, m) + rng.random(m), 400.0
        self.predicted = rng.integers(0, 40, m).astype(float)
        self.predicted[: m // 4] = 0.0
        self.true[: m // 8] = 0.0
        self.tp = np.minimum(self.predicted, self.true) * rng.random(m)

    def table(self, twin, form):
        return twin.label_table(form, self.factor, self.true, self.weight, self.tp, self.predicted, self.total)

    def value(self, form, tp, predicted):
        return self.weight * value_of(form, self.true, tp, predicted, self.total)


@pytest.mark.parametrize("name", EXACT)
def test_a_table_is_the_exact_gain_of_one_more_row(twin, name):
    state, form = State(0, 200), FORMS[name]
    scale, offset = state.table(twin, form)
    eta = np.random.default_rng(1).random(200)
    gain = state.value(form, state.tp + state.factor * eta, state.predicted + 1) - state.value(
        form, state.tp, state.predicted
    )
    if name == "recall":  # of no true row the value is 0 whatever is predicted
        assert (scale[:25] == 0).all()
    np.testing.assert_allclose(scale * eta + offset, gain, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("name", ["Jaccard", "Jaccard, damped", "accuracy"])
def test_other_tables_are_slopes(twin, name):
    state, form = State(0, 200), FORMS[name]
    scale, offset = state.table(twin, form)
    step = 1e-5
    tp, predicted = state.tp, state.predicted
    some = state.true + state.predicted - state.tp > 0.01
    by_hits = (state.value(form, tp + step, predicted) - state.value(form, tp - step, predicted)) / (2 * step)
    by_rows = (state.value(form, tp, predicted + step) - state.value(form, tp, predicted - step)) / (2 * step)
    np.testing.assert_allclose(scale[some], (state.factor * by_hits)[some], rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(offset[some], by_rows[some], rtol=1e-6, atol=1e-7)
    if name == "Jaccard":  # nothing true, nothing predicted: what the first hit is worth
        np.testing.assert_allclose(scale[:25], (state.factor * state.weight)[:25])
        assert (offset[:25] == 0).all()
    assert np.isfinite(scale).all()
    assert np.isfinite(offset).all()


def test_a_covered_label_is_worth_what_is_left(twin):
    state, form = State(0, 200), FORMS["coverage"]
    state.tp = -state.tp
    scale, offset = state.table(twin, form)
    eta = np.random.default_rng(1).random(200)
    hit = np.minimum(state.factor * eta, 1.0)
    covered = state.value(form, state.tp, 0) + state.weight * np.exp(state.tp) * hit
    one_more = state.value(form, state.tp + np.log1p(-hit.clip(max=1 - 1e-12)), 0)
    np.testing.assert_allclose(covered, one_more, rtol=1e-9)
    np.testing.assert_allclose(scale, state.weight * state.factor * np.exp(state.tp), rtol=1e-12)
    assert (offset == 0).all()


class Ascent:
    """Passes over the rows of a case."""

    def __init__(self, case, form, low, high):
        rng = np.random.default_rng(case.m)
        self.case, self.form, self.low, self.high = case, form, low, high
        self.factor, self.weight = 0.5 + rng.random(case.m) / 2, 0.5 + rng.random(case.m)
        self.true = (case.w[case.read, None] * case.eta[case.read]).sum(axis=0) + rng.random(case.m)
        self.total = float(case.w[case.read].sum())

    def run(self, twin, passes):
        m = self.case.m
        tp, predicted = np.zeros(m), np.zeros(m)
        scale, offset = twin.label_table(self.form, self.factor, self.true, self.weight, tp, predicted, self.total)
        chosen = np.full((len(self.case.read), self.high), -1)
        for _ in range(passes):
            fill = np.lexsort((np.arange(m), -offset))
            twin.label_ascend(
                self.case.block, self.form, self.factor, self.true, self.weight, tp, predicted, scale, offset, chosen,
                self.low, self.high, fill, self.total,
            )  # fmt: skip
        return tp, predicted, scale, offset, chosen

    def labels(self, chosen):
        """Of each row, the labels that are chosen, in the order of the columns."""
        case = self.case
        entries = np.nonzero(case.stored)[1]
        return [[-c - 2 if c < -1 else int(entries[c]) for c in row if c != -1] for row in chosen.tolist()]

    def state(self, labels):
        """Counts of what is chosen."""
        case, tp, predicted = self.case, np.zeros(self.case.m), np.zeros(self.case.m)
        for i, own in enumerate(labels):
            row = case.read[i]
            hit = self.factor[own] * case.eta[row, own]
            tp[own] += case.w[row] * (np.log(1 - np.minimum(hit, 1 - 1e-12)) if self.form.coverage else hit)
            predicted[own] += case.w[row]
        return tp, predicted

    def value(self, labels):
        tp, predicted = self.state(labels)
        return float((self.weight * value_of(self.form, self.true, tp, predicted, self.total)).sum())


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize(("seed", "dense"), CASES[:10])
@pytest.mark.parametrize("budget", [(0, 2), (2, 2), (1, 4)])
def test_the_state_is_that_of_what_is_chosen(twin, name, seed, dense, budget):
    ascent = Ascent(Case(seed, dense=dense, levels=None), FORMS[name], *budget)
    tp, predicted, scale, offset, chosen = ascent.run(twin, 3)
    labels = ascent.labels(chosen)
    for i, own in enumerate(labels):
        assert own == sorted(set(own))
        assert min(budget[0], ascent.case.m) <= len(own) <= budget[1]
        begin, end = ascent.case.indptr[ascent.case.read[i] :][:2]
        assert all(begin <= c < end for c in chosen[i] if c >= 0)
        unstored = {int(-c - 2) for c in chosen[i] if c < -1}
        assert not ascent.case.stored[ascent.case.read[i], list(unstored)].any()
    expected = ascent.state(labels)
    np.testing.assert_allclose(tp, expected[0], atol=1e-9)
    np.testing.assert_allclose(predicted, expected[1], atol=1e-9)
    table = _numpy.label_table(FORMS[name], ascent.factor, ascent.true, ascent.weight, tp, predicted, ascent.total)
    np.testing.assert_allclose(scale, table[0], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(offset, table[1], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", [*EXACT, "coverage"])
@pytest.mark.parametrize("seed", range(5))
def test_each_pass_is_worth_more_and_no_row_alone_can_gain(twin, name, seed):
    """With weights of 1 a row's own decision is the best there is, given those of the others."""
    case = Case(seed, n=30, m=6, dense=True, levels=None)
    case.block = case.block._replace(weight=None, rows=None)
    case.w, case.read = np.ones(case.n), np.arange(case.n)
    ascent = Ascent(case, FORMS[name], 2, 2)
    values = [ascent.value(ascent.labels(ascent.run(twin, passes)[4])) for passes in (1, 2, 3, 20)]
    assert all(after >= before - 1e-9 for before, after in itertools.pairwise(values))
    labels = ascent.labels(ascent.run(twin, 20)[4])
    for i in range(case.n):
        for one in range(case.m):
            for other in range(one):
                changed = [*labels[:i], [other, one], *labels[i + 1 :]]
                assert ascent.value(changed) <= values[-1] + 1e-9


@pytest.mark.parametrize("weight", [0.1, 0.3, 1e5 + 0.1])
def test_what_rounding_leaves_of_a_label_is_nothing(twin, weight):
    """One row after the other leaves its label again: of precision, a rest of 1e-17 rows would be worth anything."""
    n, one = 7, np.ones(2)
    values = np.tile([0.3, 0.2], n)
    block = LabelBlock(values, np.tile([0, 1], n), np.arange(n + 1) * 2, 2, np.full(n, weight) * (1 + np.arange(n) / 3))
    tp, predicted = np.zeros(2), np.zeros(2)
    form = FORMS["precision"]
    scale, offset = twin.label_table(form, one, one, one, tp, predicted, 1.0)
    chosen = np.full((n, 1), -1)
    state = (tp, predicted, scale, offset, chosen)
    twin.label_ascend(block, form, one, one, one, *state, 1, 1, None, 1.0)
    scale[:], offset[:] = 0.0, [-1e9, 1.0]  # all leave label 0, whose table is brought up to date
    for _ in range(3):
        twin.label_ascend(block, form, one, one, one, *state, 1, 1, None, 1.0)
        total = sum(block.weight)
        np.testing.assert_allclose(predicted.sum(), total, rtol=1e-12)
        assert ((predicted == 0) | (predicted >= weight / 2)).all()
        assert (np.abs(offset) <= 1).all()


# ----------------------------------------------------------------------------------------------------------- the twins


def both(name, *arguments):
    return getattr(_numpy, name)(*arguments), getattr(_compiled, name)(*arguments)


def assert_same(name, *arguments, rtol=0.0):
    one, other = both(name, *arguments)
    for a, b in zip(*((x if isinstance(x, tuple) else (x,)) for x in (one, other)), strict=True):
        assert np.asarray(a).dtype == np.asarray(b).dtype
        if rtol:
            np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-12)
        else:
            np.testing.assert_array_equal(a, b)


@needs_compiled
@examples(300)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([1, 2, 3, 8, 30]),
    st.integers(0, 40),
    st.booleans(),
    st.sampled_from([1, 2, 7, None]),
)
def test_twins_agree(seed, m, n, dense, levels):
    case = Case(seed, n, m, dense, levels)
    fill = case.fill()
    assert_same("label_decide", case.block, case.scale, case.offset, case.low, case.high, fill)
    assert_same("label_decide", case.block, case.scale, case.offset, 0, -1, None)
    tables = [(case.scale, case.offset), (case.scale[:1], case.offset[:1])]
    orders = [fill, np.arange(m)]
    for low, high, order in ((case.low, case.high, orders), (0, -1, None)):
        one, other = both("label_count", case.block, tables, low, high, order)
        np.testing.assert_array_equal(one[..., 1:], other[..., 1:])
        np.testing.assert_allclose(one[..., 0], other[..., 0], rtol=1e-12, atol=1e-12)
    assert_same("label_sums", case.block, rtol=1e-12)
    assert_same("label_sweep", case.block, rtol=1e-12)
    assert_same("label_check", case.indptr, case.block.indices, np.abs(case.block.values), m, 0.0, 0.75)
    for of_logits in (False, True):
        one, other = both("label_calibrate", case.block.values, 1.3, 0.2, 1e-5, of_logits)
        assert one.tobytes() == other.tobytes()


@needs_compiled
@examples(200)
@given(st.integers(0, 2**32 - 1), st.sampled_from([1, 2, 5, 30]), st.booleans(), st.sampled_from(sorted(FORMS)))
def test_twins_ascend_alike(seed, m, dense, name):
    case = Case(seed, 30, m, dense, levels=None)
    high = 1 + seed % m
    ascent = Ascent(case, FORMS[name], seed % (high + 1), high)
    one, other = ascent.run(_numpy, 2), ascent.run(_compiled, 2)
    np.testing.assert_array_equal(one[4], other[4])
    for a, b in zip(one[:4], other[:4], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


@needs_compiled
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_twins_calibrate_to_the_bit(dtype):
    rng = np.random.default_rng(0)
    values = np.concatenate([rng.random(20_000), rng.random(1000) ** 40, 1 - rng.random(1000) ** 20, [0.0, 1.0]])
    values = np.where(rng.random(len(values)) < 0.5, -values, values).astype(dtype)
    for temperature, bias, floor in ((1.0, 0.0, 1e-6), (2.5, -4.0, 1e-12), (0.01, 3.0, 0.01), (100.0, 50.0, 1e-9)):
        one, other = both("label_calibrate", values, temperature, bias, floor, False)
        assert one.tobytes() == other.tobytes()
    logits = (rng.normal(size=20_001) * 100).astype(dtype)
    one, other = both("label_calibrate", logits, 3.0, 1.0, 0.0, True)
    assert one.tobytes() == other.tobytes()


@pytest.mark.parametrize("few", [1, 7, 1000])
def test_few_rows_of_the_numpy_twins_at_a_time_are_all_of_them(monkeypatch, few):
    for seed in range(6):
        case = Case(seed)
        fill = case.fill()

        def results(case=case, fill=fill):
            counts = _numpy.label_count(case.block, [(case.scale, case.offset)], case.low, case.high, [fill])
            decided = _numpy.label_decide(case.block, case.scale, case.offset, case.low, case.high, fill)
            return [counts, *decided, _numpy.label_sums(case.block), *_numpy.label_sweep(case.block)]

        monkeypatch.undo()
        together = results()
        monkeypatch.setattr(_labels, "_FEW", few)
        for one, other in zip(together, results(), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


@needs_compiled
def test_entries_of_other_types_are_passed_on():
    case = Case(3, levels=None)
    values, indices = case.block.values.astype(np.float16), case.block.indices.astype(np.int16)
    block = case.block._replace(values=values, indices=indices, weight=None, rows=None)
    fill = case.fill()
    assert_same("label_check", case.indptr, indices, values, case.m, -1.0, 1.0)
    assert_same("label_calibrate", values, 1.0, 0.5, 1e-3, False)
    assert_same("label_sums", block)
    assert_same("label_sweep", block)
    assert_same("label_decide", block, case.scale, case.offset, 1, 3, fill)
    assert_same("label_count", block, [(case.scale, case.offset)], 1, 3, [fill])
    strided = np.repeat(values.astype(np.float32), 2)[::2]
    assert_same("label_sums", block._replace(values=strided))
    marked = [np.abs(values), np.abs(values)]
    true = sparse.csr_array(case.true)
    for twin, one in zip((_numpy, _compiled), marked, strict=True):
        twin.label_mark(one, case.indptr, indices, case.m, true.indptr.astype(np.int64), true.indices)
    np.testing.assert_array_equal(np.signbit(marked[0]), np.signbit(marked[1]))


def many_rows(n=30_000, m=500, length=40):
    """Rows enough for several parts: more than a million entries."""
    rng = np.random.default_rng(0)
    labels = np.sort(rng.integers(0, m, (n, length)), axis=1)
    kept = np.diff(labels, axis=1, prepend=-1) > 0
    indptr = np.concatenate([[0], np.cumsum(kept.sum(axis=1))])
    eta = rng.random(indptr[-1]).astype(np.float32)
    values = np.where(rng.random(len(eta)) < eta, -eta, eta)
    return LabelBlock(values, labels[kept].astype(np.int32), indptr, m, rng.random(n)), rng


@needs_compiled
@pytest.mark.skipif(_compiled is None or not _compiled.has_openmp(), reason="built without OpenMP")
def test_results_do_not_depend_on_the_number_of_threads():
    block, rng = many_rows()
    m = block.n_labels
    scale, offset = rng.random(m), -rng.random(m) / 2
    fill = np.lexsort((np.arange(m), -offset))
    places = (rng.integers(0, most, 300_000, dtype=np.int32) for most in (30_000, m))
    true = sparse.csr_array((np.ones(300_000), tuple(places)), shape=(30_000, m))
    true.sum_duplicates()

    def marked():
        values = np.abs(block.values)
        _compiled.label_mark(values, block.indptr, block.indices, m, true.indptr.astype(np.int64), true.indices)
        return values

    passes = {
        "check": lambda: _compiled.label_check(block.indptr, block.indices, np.abs(block.values), m, 0.0, 0.99999),
        "mark": marked,
        "calibrate": lambda: _compiled.label_calibrate(block.values, 1.2, 0.1, 1e-6, False),
        "sums": lambda: _compiled.label_sums(block),
        "count": lambda: _compiled.label_count(block, [(scale, offset)] * 2, 1, 3, [fill, fill]),
        "count, no budget": lambda: _compiled.label_count(block, [(scale, offset)], 0, -1, None),
        "decide": lambda: _compiled.label_decide(block, scale, offset, 1, 3, fill),
        "sweep": lambda: _compiled.label_sweep(block),
    }
    for name, run in passes.items():
        results = []
        for n_threads in (1, 2, 3, 8):
            with threadpool_limits(limits=n_threads, user_api="openmp"):
                result = run()
            result = result if isinstance(result, tuple) else (result,)
            results.append([np.asarray(part).tobytes() for part in result])
        assert all(result == results[0] for result in results[1:]), name


@needs_compiled
def test_parts_of_many_rows_are_put_together():
    block, rng = many_rows()
    m = block.n_labels
    scale, offset = rng.random(m), -rng.random(m) / 2
    fill = np.lexsort((np.arange(m), -offset))
    assert_same("label_decide", block, scale, offset, 1, 3, fill)
    assert_same("label_count", block, [(scale, offset)], 1, 3, [fill], rtol=1e-10)
    assert_same("label_sums", block, rtol=1e-10)
    assert_same("label_sweep", block, rtol=1e-10)
    values = np.abs(block.values)
    values[len(values) // 2] = np.nan
    values[-1] = np.nan
    assert_same("label_check", block.indptr, block.indices, values, m, 0.0, 1.0)


def test_both_twins_are_reached_by_name():
    for name in kernels.__all__:
        if name.startswith("label_"):
            assert getattr(kernels, name) is getattr(kernels._twins, name)
