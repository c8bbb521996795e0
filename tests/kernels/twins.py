"""Compiled kernels against their NumPy twins: every decision, count and change point equal, sums equal to rounding.

Rounded probabilities, whole losses and zero weights make ties; sizes lie around the borders of tiles (128 rows) and of
parts (some 130,000 numbers); arrays lie in memory in every way that NumPy has.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels.bare import Bare
from kernels.layouts import LAYOUTS
from metricwise.kernels import LinkArrays
from metricwise.kernels import _numpy as numpy_twins
from profiles import examples

compiled = pytest.importorskip(
    "metricwise.kernels._compiled", reason="the compiled kernels are not built", exc_type=ImportError
)
_numpy, compiled = Bare(numpy_twins), Bare(compiled)

ROWS = (1, 2, 7, 127, 128, 129, 200, 255, 256, 257, 385)
seeds = st.integers(0, 2**32 - 1)


layouts = st.sampled_from(sorted(LAYOUTS)).map(LAYOUTS.__getitem__)


# ---------------------------------------------------------------------------------------------------- what is passed on


class Draw:
    """Arguments of the kernels: structure drawn by hypothesis, numbers by a seed."""

    def __init__(self, draw):
        self.draw = draw
        self.rng = np.random.default_rng(draw(seeds))
        self.n, self.m = draw(st.sampled_from(ROWS)), draw(st.integers(1, 4))
        self.shortest = draw(st.booleans())  # what multilabel problems are: for these there are ways of their own
        self.positive = self.shortest or draw(st.booleans())
        self.k = 2 if self.positive else draw(st.integers(2, 9))
        padded = not self.positive and draw(st.booleans())
        sizes = self.rng.integers(2, self.k + 1, size=self.m) if padded else np.full(self.m, self.k)
        self.sizes = sizes.astype(np.intp)
        self.decimals = draw(st.sampled_from([None, 1, 2]))
        self.logits = draw(st.booleans())

    def eta(self):
        kind = self.draw(st.sampled_from(["f4", "f8", "f2"][: 2 if self.shortest else 3]))
        if self.logits:
            return self.draw(layouts)(self.draw_logits(kind))
        eta = self.rng.random((self.n, self.m, self.k)) * (np.arange(self.k) < self.sizes[:, None])
        eta /= eta.sum(axis=2, keepdims=True)
        eta = eta if self.decimals is None else eta.round(self.decimals)
        return self.draw(layouts)((eta[..., 1] if self.positive else eta).astype(kind))

    def draw_logits(self, kind):
        """Logits of any size, some of which stand for infinity; padding is 0."""
        scale = self.draw(st.sampled_from([1.0, 30.0, 2000.0]))
        logits = self.rng.normal(size=(self.n, self.m, self.k)) * scale
        logits = logits if self.decimals is None else logits.round(self.decimals)
        infinite = {"f2": 6e4, "f4": 1e38, "f8": 1e200}[kind]
        logits[self.rng.random(logits.shape) < 0.1] = -infinite
        logits = np.where(np.arange(self.k) < self.sizes[:, None], logits, 0.0)
        return (logits[..., 1] if self.positive else logits).astype(kind)

    def link(self):
        """None, ordinary ones, and ones that drive probabilities to 0 and 1; of logits with floor 0."""
        if self.logits:
            spread = self.draw(st.sampled_from([1.0, 300.0]))
            temperature = np.exp(self.rng.normal(size=self.m)) * self.draw(st.sampled_from([1e-3, 1.0, 1e3]))
            return LinkArrays(temperature, self.rng.normal(size=(self.m, self.k)).round(1) * spread, 0.0)
        kind = self.draw(st.sampled_from(["none", "mild", "wild", "extreme"]))
        if kind == "none":
            return None
        spread, floor = {"mild": (1.0, 1e-6), "wild": (300.0, 1e-300), "extreme": (1e100, 5e-324)}[kind]
        temperature = np.exp(self.rng.normal(size=self.m)) * spread**0.5
        bias = self.rng.normal(size=(self.m, self.k)).round(1) * spread
        return LinkArrays(temperature, bias, floor)

    def loss(self, leading=None):
        lead = self.draw(st.sampled_from([1, self.m])) if leading is None else leading
        diagonal = self.shortest or self.draw(st.booleans())
        shapes = [(lead, self.k), (lead, self.k)] if diagonal else [(lead, self.k, self.k)]
        decimals = self.draw(st.sampled_from([0, 1, 15]))
        return tuple(self.rng.normal(size=shape).round(decimals) for shape in shapes)

    def slope(self, lead):
        """Slopes that differ from row to row, or lie equally far apart in every row."""
        slopes = self.rng.integers(-2, 3, size=(lead, self.k)).astype(float)
        shape = self.draw(st.sampled_from(["offset", "equal rows", "opposite", "any"]))
        if shape == "equal rows":
            return (np.repeat(slopes[:, None], self.k, axis=1),)
        if shape == "opposite" and self.positive:
            return self.rng.normal(size=(lead, 1)) * [1.0, -1.0], slopes
        return self.loss(lead) if shape == "any" else (np.zeros((lead, self.k)), slopes)

    def codes(self, low=-1):
        codes = np.column_stack([self.rng.integers(low, size, size=self.n) for size in self.sizes])
        kind = "i1" if self.shortest else self.draw(st.sampled_from(["i1", "i2", "i4", "i8"]))
        return self.draw(layouts)(codes.astype(kind))

    def weight(self):
        which = self.draw(st.sampled_from(["none", "some zero", "strided"][: 1 if self.shortest else 3]))
        if which == "none":
            return None
        weight = self.rng.random(2 * self.n) * (self.rng.random(2 * self.n) < 0.8)
        return weight[::2] if which == "strided" else weight[: self.n].copy()

    def observed(self):
        which = self.draw(st.sampled_from(["none", "bool", "float", "float32"]))
        masses = self.rng.random((self.n, self.m)) * (self.rng.random((self.n, self.m)) < 0.8)
        if which == "none":
            return None
        return self.draw(layouts)(
            masses > 0 if which == "bool" else masses.astype("f4" if which == "float32" else "f8")
        )

    def worth(self):
        """All entries different; whole numbers; or few kinds of changes, the same in all outputs."""
        worth = np.zeros((self.m, self.k + 1, self.k, 2))
        which = "few" if self.shortest else self.draw(st.sampled_from(["any", "whole", "few"]))
        shape = (self.m, self.k, self.k, 2)
        if which == "few":
            worth[:, 1:] = self.rng.integers(0, 2, size=(1, self.k, self.k, 1)) * [0.7, -0.1]
        else:
            worth[:, 1:] = self.rng.normal(size=shape) if which == "any" else self.rng.integers(-2, 3, size=shape)
        return worth

    def line(self):
        """Arguments of `changes`, without `wanted`."""
        own = self.draw(st.booleans())
        group = np.arange(self.m) if own else np.zeros(self.m, dtype=np.intp)
        if self.draw(st.booleans()):
            group[self.rng.integers(self.m)] = -1
        n_lines = self.m if own else 1
        labelled = self.shortest or self.draw(st.booleans())
        grid = np.column_stack([self.rng.normal(size=n_lines), self.rng.random(n_lines) * 5])
        return (
            self.eta(),
            self.codes() if labelled else None,
            self.observed(),
            self.weight(),
            self.sizes,
            group,
            self.loss(n_lines),
            self.slope(n_lines),
            self.worth(),
            grid,
            self.draw(st.sampled_from([0, 1, 5, 64])),
        )


draws = st.composite(Draw)


def close(first, second):
    assert first.shape == second.shape
    assert first.dtype == second.dtype
    np.testing.assert_allclose(second, first, rtol=1e-12, atol=1e-12)


def same(first, second):
    assert first.dtype == second.dtype
    assert np.array_equal(first, second)


def in_order(segment, g, change):
    order = np.lexsort((change[:, 1], change[:, 0], g, segment))
    return segment[order], g[order], change[order]


def same_changes(arguments, *options):
    first, second = (twin.changes(*arguments, *options) for twin in (_numpy, compiled))
    close(first[0], second[0])
    same(first[1], second[1])
    close(first[2], second[2])
    listed = zip(in_order(*first[3:]), in_order(*second[3:]), strict=True)
    for one, other in listed:
        same(one, other)


# ------------------------------------------------------------------------------------------------------------ the twins


@examples(100)
@given(case=draws())
def test_decisions(case):
    eta, loss, link = case.eta(), case.loss(), case.link()
    same(_numpy.decide(eta, case.sizes, loss, link), compiled.decide(eta, case.sizes, loss, link))


@examples(100)
@given(case=draws())
def test_recalibration_to_the_last_bit(case):
    eta, link = case.eta(), case.link()
    if link is not None:
        same(*(twin.recalibrate(eta, case.sizes, link) for twin in (_numpy, compiled)))


@examples(100)
@given(case=draws(), n_losses=st.integers(0, 3))
def test_counts_of_labels(case, n_losses):
    eta, codes, weight = case.eta(), case.codes(), case.weight()
    losses, link = [case.loss() for _ in range(n_losses)], case.link()
    first, second = (twin.count_labels(eta, codes, weight, case.sizes, losses, link) for twin in (_numpy, compiled))
    (same if weight is None else close)(first, second)


@examples(100)
@given(case=draws(), n_losses=st.integers(0, 3))
def test_expected_counts(case, n_losses):
    eta, observed, weight = case.eta(), case.observed(), case.weight()
    losses, link = [case.loss() for _ in range(n_losses)], case.link()
    close(*(twin.count_expected(eta, observed, weight, case.sizes, losses, link) for twin in (_numpy, compiled)))


@examples(120)
@given(case=draws())
def test_changes(case):
    line, link = case.line(), case.link()
    shape = (len(line[9]), line[10] + 2)
    same_changes(line, None, True, link)
    wanted = case.rng.random(shape) < 0.5
    same_changes(line, wanted, True, link)
    same_changes(line, wanted, False, link)


@examples(60)
@given(case=draws(), tolerance=st.sampled_from([1e-6, 0.0512]))
def test_checks(case, tolerance):
    eta = case.eta().copy()
    assert _numpy.check_rows(eta, case.sizes, tolerance) == compiled.check_rows(eta, case.sizes, tolerance)
    spoiled = case.draw(st.sampled_from([np.nan, np.inf, -np.inf, -1e-3, 1.001, 2.001, 0.0]))
    eta[case.rng.integers(case.n), case.rng.integers(case.m)] = spoiled
    assert _numpy.check_rows(eta, case.sizes, tolerance) == compiled.check_rows(eta, case.sizes, tolerance)


@examples(60)
@given(case=draws(), low=st.sampled_from([-1, 0]), wide=st.booleans())
def test_codes(case, low, wide):
    codes, width = case.codes(low), 200 if wide else case.k
    first, second = (twin.encode(codes, case.sizes, width) for twin in (_numpy, compiled))
    assert (first is None) == (second is None)
    if first is not None:
        same(first, second)
        assert (first is codes) == (second is codes)


@examples(60)
@given(case=draws(), many=st.booleans(), wider=st.integers(0, 2))
def test_tallies(case, many, wider):
    codes, weight = case.codes(), case.weight()
    codes = np.concatenate([codes] * 5, axis=1) if many else codes
    first, second = (twin.tally(codes, weight, case.k + wider) for twin in (_numpy, compiled))
    (same if weight is None else close)(first, second)


@examples(60)
@given(case=draws(), labelled=st.booleans(), seed=st.integers(0, 1 << 31), share=st.floats(0, 1))
def test_rows_of_low_keys(case, labelled, seed, share):
    """The same rows are drawn by both, and as many as chance would have it."""
    eta, codes = case.eta().reshape(case.n, -1), case.codes()
    entries = [eta[:, 0], eta[:, -1]][: case.draw(st.integers(1, 2))]
    below = np.array([0, *[min(int(share * 2.0**64), 2**64 - 1)] * (case.k + 1)], dtype=np.uint64)
    asked = entries, codes[:, 0] if labelled else None, codes[:, 0], below, seed
    first, second = _numpy.low_rows(*asked), compiled.low_rows(*asked)
    same(first[0], second[0])
    same(first[1], second[1])
    assert (first[1] <= below[codes[first[0], 0] + 1]).all()
    if share == 1.0:
        assert set(np.flatnonzero(codes[:, 0] >= 0)) <= set(first[0])


# ------------------------------------------------------------------------------------------------------------ many rows


@pytest.mark.parametrize(
    ("n", "m", "k", "kind"),
    [
        (65_537, 2, 4, "f4"),  # a tile and a row more than parts of equal size
        (50_001, 1, 12, "f8"),
        (131_072, 3, None, "f4"),
        (9_000, 40, None, "f8"),  # outputs are shared out instead of rows where each has a line of its own
    ],
)
def test_many_parts(n, m, k, kind):
    """The number of classes is None where the probability of class 1 is given alone."""
    rng = np.random.default_rng(n)
    width = k or 2
    eta = rng.random((n, m)) if k is None else rng.dirichlet(np.ones(k), size=(n, m))
    eta = eta.round(2).astype(kind)
    sizes = np.full(m, width)
    codes = rng.integers(-1, width, size=(n, m)).astype(np.int8)
    weight, seen = rng.random(n), rng.random((n, m)) < 0.9
    full = (rng.normal(size=(1, width, width)).round(1),)
    diagonal = tuple(rng.normal(size=(m, width)).round(1) for _ in range(2))
    link = LinkArrays(rng.random(m) + 0.5, rng.normal(size=(m, width)), 1e-6)
    for loss in (full, diagonal):
        same(_numpy.decide(eta, sizes, loss), compiled.decide(eta, sizes, loss))
        same(_numpy.decide(eta, sizes, loss, link), compiled.decide(eta, sizes, loss, link))
    for weights in (None, weight):
        arguments = (eta, codes, weights, sizes, [full, diagonal])
        (same if weights is None else close)(_numpy.count_labels(*arguments), compiled.count_labels(*arguments))
        first, second = (twin.count_expected(eta, seen, weights, sizes, [full]) for twin in (_numpy, compiled))
        np.testing.assert_allclose(second, first, rtol=1e-12)
        np.testing.assert_allclose(compiled.tally(codes, weights, width), _numpy.tally(codes, weights, width), 1e-12)
    same(_numpy.encode(np.abs(codes), sizes, width), compiled.encode(np.abs(codes), sizes, width))
    same(*(twin.encode(np.abs(codes).astype(int), sizes, width) for twin in (_numpy, compiled)))
    for tolerance in (0.5, 1e-3):
        assert _numpy.check_rows(eta, sizes, tolerance) == compiled.check_rows(eta, sizes, tolerance)
    entries = [np.ascontiguousarray(column, dtype=np.float64) for column in rng.random((2, n))]
    for share in (0.0, 1e-3, 0.5, 1.0):  # none, few, and more than a part has room for at first
        below = np.full(width + 1, min(int(share * 2.0**64), 2**64 - 1), dtype=np.uint64)
        asked = entries, codes[:, 0], codes[:, 0], below, 1
        for first, second in zip(_numpy.low_rows(*asked), compiled.low_rows(*asked), strict=True):
            same(first, second)


@pytest.mark.parametrize("weights", [None, (), (3,)])
def test_tables_of_very_many_classes_beside_rows(weights):
    """Tables that are larger than what is known of all rows: counts are made of decisions, not of parts."""
    rng, n, k, sizes = np.random.default_rng(0), 5_000, 120, np.array([120])
    eta = rng.dirichlet(np.full(k, 0.1), (n, 1)).astype(np.float32)
    codes = rng.integers(-1, k, (n, 1)).astype(np.int32)
    weight = None if weights is None else rng.exponential(size=(*weights, n))
    losses = [(-rng.random((1, k)), np.zeros((1, k))), (-rng.random((1, k)), 0.1 * rng.random((1, k)))]
    first, second = (twin.count_labels(eta, codes, weight, sizes, losses) for twin in (_numpy, compiled))
    (same if weight is None else close)(first, second)
    shown = np.flatnonzero(codes[:, 0] >= 0)
    for r, loss in enumerate(losses):
        decided = _numpy.decide(eta, sizes, loss)[shown, 0]
        table = np.zeros((k, k))
        np.add.at(table, (codes[shown, 0], decided), 1.0 if weight is None else np.atleast_2d(weight)[0, shown])
        counted = second[r, 0] if weights != (3,) else second[0, r, 0]
        np.testing.assert_allclose(counted, table, rtol=1e-12)
    close(*(twin.count_expected(eta, codes >= 0, weight, sizes, losses) for twin in (_numpy, compiled)))


@pytest.mark.parametrize("kind", ["f4", "f8"])
@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize(("n", "m"), [(1, 8), (2_000, 8), (401, 20), (70, 130), (9_000, 40)])
def test_rows_read_along_their_outputs(n, m, own, kind):
    """Where outputs of two classes are neighbours in memory, also those of a larger array."""
    rng = np.random.default_rng(n + m)
    eta = rng.random((n, m + 3)).round(2).astype(kind)[:, 2 : m + 2]
    codes = rng.integers(-1, 2, size=(n, m + 1)).astype(np.int8)[:, 1:]
    sizes, group = np.full(m, 2), np.arange(m) if own else np.zeros(m, dtype=np.intp)
    n_lines = m if own else 1
    losses = [tuple(rng.normal(size=(leading, 2)).round(1) for _ in range(2)) for leading in (1, m)]
    same(*(twin.count_labels(eta, codes, None, sizes, losses) for twin in (_numpy, compiled)))
    worth = np.zeros((m, 3, 2, 2))
    worth[:, 1:] = [[[0.7, 0.0], [0.0, -0.1]], [[0.0, 0.5], [0.7, 0.7]]]
    steps = rng.choice([-2.0, -1.0, 1.0], size=(n_lines, 1))  # which class comes first differs
    slope = np.zeros((n_lines, 2)), steps * [0.0, 1.0]
    grid = np.column_stack([rng.normal(size=n_lines) - 1.0, rng.random(n_lines) * 30])
    loss = tuple(rng.normal(size=(n_lines, 2)) for _ in range(2))
    arguments = (eta, codes, None, None, sizes, group, loss, slope, worth, grid, 64)
    wanted = np.zeros((n_lines, 66), dtype=bool)
    wanted[:, [20, 23]] = True
    for options in ((None, True), (wanted, True), (wanted, False)):
        same_changes(arguments, *options)


@pytest.mark.parametrize(("labelled", "weighted"), [(True, False), (True, True), (False, True), (False, False)])
@pytest.mark.parametrize("flat", [True, False])
@pytest.mark.parametrize(("m", "own"), [(2, False), (2, True), (20, True)])
def test_changes_of_many_parts(labelled, weighted, flat, m, own):
    rng = np.random.default_rng(7)
    n, k = 70_000 // m + 1, 4
    eta = rng.dirichlet(np.ones(k), size=(n, m)).astype("f4")
    group = np.arange(m) if own else np.zeros(m, dtype=np.intp)
    n_lines = m if own else 1
    worth = np.zeros((m, k + 1, k, 2))
    worth[:, 1:] = rng.normal(size=(m, k, k, 2))
    slope = np.repeat(rng.normal(size=(n_lines, 1, k)), k, axis=1) if flat else rng.normal(size=(n_lines, k, k))
    arguments = (
        eta,
        rng.integers(-1, k, size=(n, m)).astype(np.int8) if labelled else None,
        None if labelled else rng.random((n, m)),
        rng.random(n) if weighted else None,
        np.full(m, k),
        group,
        (rng.normal(size=(n_lines, k, k)),),
        (slope,),
        worth,
        np.column_stack([np.full(n_lines, -1.0), np.full(n_lines, 16.0)]),
        32,
    )
    wanted = rng.random((n_lines, 34)) < 0.3
    first, second = (twin.changes(*arguments, wanted) for twin in (_numpy, compiled))
    np.testing.assert_allclose(second[0], first[0], rtol=1e-11, atol=1e-9)
    same(first[1], second[1])
    np.testing.assert_allclose(second[2], first[2], rtol=1e-11, atol=1e-9)
    for one, other in zip(in_order(*first[3:]), in_order(*second[3:]), strict=True):
        same(one, other)


@pytest.mark.parametrize("k", [70, 130])  # beyond tables of all changes, and beyond codes of one byte
def test_many_classes(k):
    rng = np.random.default_rng(k)
    n, sizes = 300, np.array([k, k - 3])
    eta = rng.random((n, 2, k)) * (np.arange(k) < sizes[:, None])
    eta = (eta / eta.sum(axis=2, keepdims=True)).round(3)
    codes = np.column_stack([rng.integers(-1, size, size=n) for size in sizes]).astype(np.int32)
    full, diagonal = (rng.normal(size=(1, k, k)),), tuple(rng.normal(size=(2, k)) for _ in range(2))
    same(*(twin.count_labels(eta, codes, None, sizes, [full, diagonal]) for twin in (_numpy, compiled)))
    close(*(twin.count_expected(eta, None, None, sizes, [full, diagonal]) for twin in (_numpy, compiled)))
    same(*(twin.encode(np.abs(codes), np.full(2, k), k) for twin in (_numpy, compiled)))
    worth = np.zeros((2, k + 1, k, 2))
    worth[:, 1:] = rng.normal(size=(2, k, k, 2))
    for slope in ((np.zeros((1, k)), rng.integers(0, 9, size=(1, k)) / 8), full):
        line = (
            eta,
            codes,
            None,
            None,
            sizes,
            np.zeros(2, dtype=np.intp),
            full,
            slope,
            worth,
            np.array([[-1.0, 8.0]]),
            16,
        )
        same_changes(line, np.ones((1, 18), dtype=bool))
