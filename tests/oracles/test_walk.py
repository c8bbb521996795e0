"""Changes along a line of losses, against brute force in exact arithmetic.

Probabilities are multiples of 1/16, losses and worths whole numbers, weights halves: every height, slope and sum is a
float without rounding, and a change point is a ratio that is rounded once. So everything must be equal, not close.
"""

from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import worlds
from kernels.bare import Bare
from metricwise import kernels as twins
from profiles import examples

kernels = Bare(twins)


@dataclass
class Line:
    """Arguments of `kernels.changes`."""

    eta: np.ndarray
    codes: np.ndarray | None
    observed: np.ndarray | None
    weight: np.ndarray | None
    n_classes: np.ndarray
    group: np.ndarray
    constant: tuple
    slope: tuple
    worth: np.ndarray
    grid: np.ndarray
    n_bins: int

    @property
    def arguments(self):
        return tuple(vars(self).values())

    @property
    def width(self):
        return 2 if self.eta.ndim == 2 else self.eta.shape[2]

    def row(self, n, m):
        """Probabilities of a row of an output, as fractions."""
        if self.eta.ndim == 2:
            return [1 - Fraction(float(self.eta[n, m])), Fraction(float(self.eta[n, m]))]
        return [Fraction(float(p)) for p in self.eta[n, m]]


def sixteenths(rng, n, sizes, k):
    """Probabilities (n, M, k), multiples of 1/16 and so rich in ties, 0 beyond the size of an output."""
    eta = np.zeros((n, len(sizes), k))
    for m, size in enumerate(sizes):
        eta[:, m, :size] = worlds.stepped(n, size, 16, rng)
    return eta


def random_loss(rng, n_lines, k, diagonal, low=-3, high=4):
    shapes = [(n_lines, k), (n_lines, k)] if diagonal else [(n_lines, k, k)]
    return tuple(rng.integers(low, high, size=shape).astype(float) for shape in shapes)


def random_slope(rng, n_lines, k, shape):
    """Slopes that differ from row to row ("full", "diagonal"), or lie equally far apart in every row."""
    slopes = rng.integers(-2, 3, size=(n_lines, k)).astype(float)
    if shape == "equal rows":
        return (np.repeat(slopes[:, None], k, axis=1),)
    if shape == "offset":
        return np.zeros((n_lines, k)), slopes
    if shape == "opposite":  # of two classes whose probabilities sum to 1
        return slopes[:, :1] * [1.0, -1.0], rng.integers(-2, 3, size=(n_lines, k)).astype(float)
    return random_loss(rng, n_lines, k, shape == "diagonal")


@st.composite
def whole_lines(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, n_outputs = draw(st.sampled_from([1, 3, 20])), draw(st.integers(1, 3))
    shortest = draw(st.booleans())  # what multilabel problems are: two classes, int8 labels that all count alike
    positive = shortest or draw(st.booleans())
    k = 2 if positive else draw(st.integers(2, 5))
    sizes = rng.integers(2, k + 1, size=n_outputs)
    eta = sixteenths(rng, n, sizes, k)
    own = draw(st.booleans())  # a line for each output, or one for all
    n_lines = n_outputs if own else 1
    group = np.arange(n_outputs) if own else np.zeros(n_outputs, dtype=np.intp)
    if draw(st.booleans()):
        group[rng.integers(n_outputs)] = -1
    worth = rng.integers(-2, 3, size=(n_outputs, k + 1, k, 2)).astype(float)
    worth[:, 0] = 0.0
    if shortest or draw(st.booleans()):  # few kinds of changes, the same in all outputs
        worth[:, 1:] = rng.integers(0, 2, size=(1, k, k, 1)) * [1.0, -1.0]
    labelled = shortest or draw(st.booleans())
    codes = np.column_stack([rng.integers(-1, size, size=n) for size in sizes])
    masses = [None, rng.random((n, n_outputs)) < 0.7, rng.integers(0, 5, size=(n, n_outputs)) / 4]
    slopes = ["equal rows", "offset", "opposite"][: 3 if k == 2 else 2] + ([] if shortest else ["full", "diagonal"])
    return Line(
        eta=(eta[:, :, 1] if positive else eta).astype(draw(st.sampled_from("fd"))),
        codes=codes.astype("i1" if shortest else draw(st.sampled_from(["i1", "i4", "i8"]))) if labelled else None,
        observed=None if labelled else masses[draw(st.integers(0, 2))],
        weight=None if shortest or draw(st.booleans()) else rng.integers(0, 4, size=n) / 2,
        n_classes=sizes.astype(np.intp),
        group=group.astype(np.intp),
        constant=random_loss(rng, n_lines, k, shortest or draw(st.booleans())),
        slope=random_slope(rng, n_lines, k, draw(st.sampled_from(slopes))),
        worth=worth,
        grid=np.column_stack([rng.integers(-4, 2, size=n_lines) / 2, rng.choice([0.5, 1.0, 4.0], size=n_lines)]),
        n_bins=draw(st.integers(0, 9)),
    )


# ------------------------------------------------------------------------------------------------ by looking everywhere


def scores(loss, line, row):
    """Score of each class, by the definition, as fractions."""
    if len(loss) == 2:
        diagonal, offset = (a[line if len(a) > 1 else 0] for a in loss)
        return [p * Fraction(d) + Fraction(v) for p, d, v in zip(row, diagonal, offset, strict=True)]
    full = loss[0][line if len(loss[0]) > 1 else 0]
    return [sum(p * Fraction(full[i, j]) for i, p in enumerate(row)) for j in range(len(row))]


def envelope(heights, slopes):
    """The class at g = -inf, and (g, old, new) of each change: decided anew between all crossings of two lines."""
    pairs = list(zip(heights, slopes, strict=True))
    points = sorted({(b - a) / (s - t) for (a, s), (b, t) in combinations(pairs, 2) if s != t})
    between = [points[0] - 1, *((a + b) / 2 for a, b in pairwise(points)), points[-1] + 1] if points else [Fraction(0)]
    decided = []
    for g in between:
        values = [height + g * slope for height, slope in pairs]
        decided.append(values.index(min(values)))
    changed = zip(points, pairwise(decided), strict=True)
    return decided[0], [(g, old, new) for g, (old, new) in changed if old != new]


def worth_of(line, n, m, j):
    """What row n of output m adds to both functionals, decided as j."""
    weight = Fraction(1) if line.weight is None else Fraction(line.weight[n])
    if line.codes is not None:
        return [weight * Fraction(v) for v in line.worth[m, int(line.codes[n, m]) + 1, j]]
    if line.observed is not None:
        weight *= Fraction(float(line.observed[n, m]))
    row = line.row(n, m)
    return [weight * sum(p * Fraction(line.worth[m, i + 1, j, f]) for i, p in enumerate(row)) for f in range(2)]


def bin_of(line, own, g):
    at = (float(g) - float(line.grid[own, 0])) * float(line.grid[own, 1])
    if at < 0:
        return 0
    return line.n_bins + 1 if at >= line.n_bins else int(at) + 1


def by_hand(line):
    """Functionals at g = -inf of each line, and every change: line, bin, g, both changes."""
    start = np.zeros((len(line.grid), 2))
    events = []
    for m, own in enumerate(line.group.tolist()):
        if own < 0:
            continue
        k = int(line.n_classes[m])
        for n in range(len(line.eta)):
            row = line.row(n, m)
            first, changed = envelope(scores(line.constant, own, row)[:k], scores(line.slope, own, row)[:k])
            start[own] += [float(v) for v in worth_of(line, n, m, first)]
            for g, old, new in changed:
                step = [float(b - a) for a, b in zip(worth_of(line, n, m, old), worth_of(line, n, m, new), strict=True)]
                if any(step):
                    events.append((own, bin_of(line, own, g), float(g), *step))
    return start, events


def as_list(segment, g, change):
    return sorted(zip(segment.tolist(), g.tolist(), *change.T.tolist(), strict=True))


@examples(150)
@given(line=whole_lines(), data=st.data())
def test_changes_are_those_of_deciding_between_all_crossings(line, data):
    begin, events = by_hand(line)
    shape = (len(line.grid), line.n_bins + 2)
    number, total = np.zeros(shape, dtype=int), np.zeros((*shape, 4))
    for own, where, _, first, second in events:
        number[own, where] += 1
        total[own, where] += [first, second, abs(first), abs(second)]
    wanted = np.reshape(data.draw(st.lists(st.booleans(), min_size=number.size, max_size=number.size)), shape)
    listed = sorted((own * shape[1] + b, g, *step) for own, b, g, *step in events if wanted[own, b])

    start, count, sums, *found = kernels.changes(*line.arguments, wanted)
    assert np.array_equal(start, begin)
    assert np.array_equal(count, number)
    assert np.array_equal(sums, total)
    assert as_list(*found) == listed

    start, count, sums, *found = kernels.changes(*line.arguments, wanted, False)
    assert not start.any()
    assert not count.any()
    assert not sums.any()
    assert as_list(*found) == listed


@given(line=whole_lines())
def test_nothing_is_listed_unless_it_is_wanted(line):
    asked = kernels.changes(*line.arguments, np.ones((len(line.grid), line.n_bins + 2), dtype=bool))
    silent = kernels.changes(*line.arguments)
    for first, second in zip(asked[:3], silent[:3], strict=True):
        assert np.array_equal(first, second)
    assert len(asked[3]) == asked[1].sum()
    assert [len(part) for part in silent[3:]] == [0, 0, 0]


# ------------------------------------------------------------------------------------------------------ between changes


@examples(60)
@given(seed=st.integers(0, 2**32 - 1), k=st.integers(2, 6), labelled=st.booleans(), flat=st.booleans())
def test_between_changes_the_sums_are_those_of_counting(seed, k, labelled, flat):
    """With numbers of any kind: what has changed up to g, added up, is what counting at the loss of g gives."""
    rng = np.random.default_rng(seed)
    n, n_outputs = 60, 2
    eta = rng.dirichlet(np.ones(k), size=(n, n_outputs))
    sizes, group = np.full(n_outputs, k), np.zeros(n_outputs, dtype=np.intp)
    codes, weight = rng.integers(-1, k, size=(n, n_outputs)), rng.random(n)
    (constant,) = (rng.normal(size=(1, k, k)),)
    slope = np.repeat(rng.normal(size=(1, 1, k)), k, axis=1) if flat else rng.normal(size=(1, k, k))
    worth = np.zeros((n_outputs, k + 1, k, 2))
    worth[:, 1:] = rng.normal(size=(n_outputs, k, k, 2))
    start, *_, segment, g, change = kernels.changes(
        eta,
        codes if labelled else None,
        None,
        weight,
        sizes,
        group,
        (constant,),
        (slope,),
        worth,
        np.array([[0.0, 1.0]]),
        1,
        np.ones((1, 3), dtype=bool),
    )
    assert np.array_equal(segment, np.where(g < 0, 0, np.where(g < 1, 1, 2)))
    points = np.sort(g)
    wide = np.flatnonzero(np.diff(points) > 1e-6)
    inside = [points[0] - 1, *((points[wide] + points[wide + 1]) / 2)[:: max(1, len(wide) // 8)], points[-1] + 1]
    for at in inside:
        losses = [(constant + at * slope,)]
        if labelled:
            counted = kernels.count_labels(eta, codes, weight, sizes, losses)[0]
        else:
            counted = kernels.count_expected(eta, None, weight, sizes, losses)[0]
        along = start[0] + change[g < at].sum(axis=0)
        np.testing.assert_allclose(along, np.einsum("mij,mijf->f", counted, worth[:, 1:]), atol=1e-10)


@examples(60)
@given(seed=st.integers(0, 2**32 - 1), labelled=st.booleans(), own=st.booleans())
def test_of_two_classes_rows_need_not_sum_to_1(seed, labelled, own):
    """Opposite slopes are as far apart as the row sums to, which is the same in no two rows."""
    rng = np.random.default_rng(seed)
    n, n_outputs, n_lines = 60, 2, 2 if own else 1
    eta = rng.dirichlet(np.ones(2), size=(n, n_outputs)) * rng.uniform(0.5, 1.5, (n, n_outputs, 1))
    sizes, group = np.full(n_outputs, 2), np.arange(n_outputs) % n_lines
    codes = rng.integers(-1, 2, size=(n, n_outputs))
    constant = rng.normal(size=(2, n_lines, 2))
    slope = np.stack([rng.choice([-2.0, 0.3, 1.0], size=(n_lines, 1)) * [1.0, -1.0], rng.normal(size=(n_lines, 2))])
    worth = np.zeros((n_outputs, 3, 2, 2))
    worth[:, 1:] = rng.normal(size=(n_outputs, 2, 2, 2))
    grid, wanted = np.tile([-1.0, 4.0], (n_lines, 1)), np.ones((n_lines, 10), dtype=bool)
    line = (sizes, group, tuple(constant), tuple(slope), worth, grid, 8, wanted)
    start, *_, segment, g, change = kernels.changes(eta, codes if labelled else None, None, None, *line)
    for at in rng.normal(size=8):
        arrays = tuple(np.repeat(constant + at * slope, 2 // n_lines, axis=1))
        if labelled:
            counted = kernels.count_labels(eta, codes, None, sizes, [arrays])[0]
        else:
            counted = kernels.count_expected(eta, None, None, sizes, [arrays])[0]
        added = np.einsum("mij,mijf->mf", counted, worth[:, 1:])
        for group_, total in enumerate(added if own else added.sum(axis=0, keepdims=True)):
            passed = (segment // 10 == group_) & (g < at)
            np.testing.assert_allclose(start[group_] + change[passed].sum(axis=0), total, atol=1e-10)


# -------------------------------------------------------------------------------------------------------------- by hand


def one_output(eta, codes, constant, slope, worth, grid=(0.0, 1.0), n_bins=2, **options):
    eta = np.array(eta, dtype=float)[:, None]
    k = eta.shape[2]
    arguments = {"observed": None, "weight": None, "wanted": np.ones((1, n_bins + 2), dtype=bool)} | options
    table = np.zeros((1, k + 1, k, 2))
    table[0, 1:] = np.array(worth, dtype=float)[..., None] * [1.0, 2.0]
    return kernels.changes(
        eta,
        None if codes is None else np.array(codes)[:, None],
        arguments["observed"],
        arguments["weight"],
        np.array([k]),
        np.array([0]),
        (np.array([constant], dtype=float),),
        (np.array([slope], dtype=float),),
        table,
        np.array([grid]),
        n_bins,
        arguments["wanted"],
    )


def test_a_threshold_by_hand():
    """Class 1 costs g, class 0 costs its miss: a row goes from 1 to 0 as g passes the probability of class 1."""
    start, count, sums, segment, g, change = one_output(
        [[0.75, 0.25], [0.25, 0.75], [0.5, 0.5]],
        [1, 0, -1],
        constant=[[0, 0], [1, 0]],
        slope=[[0, 1], [0, 1]],
        worth=[[0, 1], [0, 3]],
        grid=(0.0, 2.0),
    )
    assert start.tolist() == [[4, 8]]
    assert count.tolist() == [[0, 1, 1, 0]]  # the row without a label changes nothing
    assert sums[0].tolist() == [[0] * 4, [-3, -6, 3, 6], [-1, -2, 1, 2], [0] * 4]
    assert as_list(segment, g, change) == [(1, 0.25, -3, -6), (2, 0.75, -1, -2)]


def test_lines_that_meet_in_one_point_are_one_change():
    """Three lines through (1, 1): the one between the steepest is never alone at the bottom."""
    *_, g, change = one_output(
        [[0.25, 0.25, 0.5]], [0], constant=[[2, 1, 0]] * 3, slope=[[-1, 0, 1]] * 3, worth=[[5, 100, 1]] * 3
    )
    assert g.tolist() == [1.0]
    assert change.tolist() == [[4, 8]]


def test_bins_end_where_the_next_begins():
    """A change on a border belongs to the bin behind it; before the first and behind the last is a bin each."""
    points = [-0.5, 0.0, 0.5, 1.0, 1.5, 2.0]
    counts = []
    for at in points:
        _, count, *_ = one_output([[0.5, 0.5]], [0], [[at, 0]] * 2, [[0, 1]] * 2, [[0, 1], [0, 1]])
        counts.append(count[0].tolist().index(1))
    assert counts == [0, 1, 1, 2, 2, 3]


@pytest.mark.parametrize("slope", [[[0, 0], [0, 0]], [[1, 1], [1, 1]], [[2, 2], [-1, -1]]])
def test_parallel_lines_never_change(slope):
    start, count, *_, g, _ = one_output([[0.25, 0.75]], [1], [[0, 1], [1, 0]], slope, [[0, 0], [0, 7]])
    assert start.tolist() == [[7, 14]]
    assert not count.any()
    assert len(g) == 0


def test_masses_scale_what_a_change_adds():
    half = one_output(
        [[0.25, 0.75]], None, [[0, 0], [1, 0]], [[0, 1]] * 2, [[0, 1], [0, 4]], observed=np.array([[0.5]])
    )
    whole = one_output([[0.25, 0.75]], None, [[0, 0], [1, 0]], [[0, 1]] * 2, [[0, 1], [0, 4]])
    assert whole[0].tolist() == [[0.25 + 3, 6.5]]
    assert half[0].tolist() == [[1.625, 3.25]]
    assert half[5].tolist() == [[-1.625, -3.25]]


def test_no_rows_no_changes():
    start, count, sums, *listed = one_output(np.empty((0, 2)), [], [[0, 1], [1, 0]], [[0, 1]] * 2, [[0, 1], [0, 1]])
    assert not start.any()
    assert not count.any()
    assert not sums.any()
    assert [len(part) for part in listed] == [0, 0, 0]
