"""Chains of thresholds: counts row by row, and the exact probability of a broken promise.

Worlds have a few scores, each with a probability and a rate of positive labels. The probability that a chain certifies
a threshold whose true precision is below the floor is computed by a Markov chain over rows and hits from threshold to
threshold, and by enumerating all counts of small samples with the chain itself.
"""

import itertools
from math import lgamma

import numpy as np
import pytest
from scipy.stats import binom

from metricwise.fitting.guarantee.chain import End, OtherRows, ScoreFamily, certify_thresholds, safest_end
from metricwise.goals.proportions import Proportion

HIT = np.array([[False, False], [False, True]])
POSITIVE = np.array([[False, False], [True, True]])
PREDICTED = np.array([[False, True], [False, True]])
ALL = np.ones((2, 2), dtype=bool)
ABOVE = np.array([False, True])


def floor_on_precision(bound):
    return Proportion(HIT, PREDICTED, bound, True)


def family_of(scores, labels, group=None):
    n = len(scores)
    return ScoreFamily(
        np.asarray(scores, dtype=float),
        np.asarray(labels, dtype=np.intp),
        np.ones(n, dtype=np.intp),
        np.zeros(n, dtype=np.intp),
        (2, 2),
        group,
    )


def certify(family, bounds, others, delta, success=None):
    ends = [safest_end(bound, ABOVE) for bound in bounds]
    rows = OtherRows(np.asarray(others, dtype=float), success)
    return certify_thresholds(family.count, len(family.score), bounds, ends, rows, delta)


def test_counts_are_those_of_rows_one_by_one():
    rng = np.random.default_rng(0)
    scores, labels = np.round(rng.random(200), 1), rng.integers(0, 2, 200)
    group = rng.integers(0, 3, 200)
    thresholds = np.array([-0.1, 0.0, 0.25, 0.3, 0.65, 1.0])
    family = family_of(scores, labels, group)
    for g in (None, 1):
        counted = family.count(thresholds, g)
        for t, cells in zip(thresholds, counted, strict=True):
            for i, j in itertools.product(range(2), range(2)):
                inside = (labels == i) & ((scores > t) == bool(j)) & (True if g is None else group == g)
                assert cells[i, j] == inside.sum()


def test_rows_of_several_classes_are_decided_or_left():
    rng = np.random.default_rng(0)
    scores, labels, classes = rng.random(100), rng.integers(0, 3, 100), rng.integers(0, 3, 100)
    family = ScoreFamily(scores, labels, classes, np.full(100, 3), (3, 4))
    (cells,) = family.count(np.array([0.4]))
    decided = np.where(scores > 0.4, classes, 3)
    expected = np.zeros((3, 4), dtype=int)
    np.add.at(expected, (labels, decided), 1)
    assert cells.tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("bound", "end"),
    [
        (Proportion(HIT, PREDICTED, 0.8, True), End.TOP),  # precision
        (Proportion(HIT, PREDICTED, 0.8, False), End.BOTTOM),
        (Proportion(HIT, POSITIVE, 0.8, True), End.BOTTOM),  # recall
        (Proportion(PREDICTED & ~POSITIVE, ~POSITIVE, 0.1, False), End.TOP),  # false positive rate
        (Proportion(PREDICTED, ALL, 0.1, False), End.TOP),  # share
        (Proportion(PREDICTED, ALL, 0.1, True), End.BOTTOM),
        (Proportion(~PREDICTED & ~POSITIVE, ~POSITIVE, 0.9, True), End.TOP),  # specificity
        (Proportion(~PREDICTED & ~POSITIVE, ~PREDICTED, 0.9, True), End.BOTTOM),  # precision of the other class
        (Proportion(np.eye(2, dtype=bool), ALL, 0.9, True), None),  # accuracy
    ],
)
def test_bounds_are_tested_from_where_they_are_safest(bound, end):
    assert safest_end(bound, ABOVE) is end


# ------------------------------------------------------------------------------------------------------- worlds


def true_precision(chances, rates):
    """The precision at the thresholds below each score, from the highest score on."""
    return np.cumsum(chances * rates) / np.cumsum(chances)


WORLDS = {
    # from the highest score to the lowest: its probability, and the rate of positive labels
    "just below": (np.full(8, 0.125), np.full(8, 0.4999)),
    "just at, then below": (np.full(8, 0.125), np.array([0.5, 0.5, 0.5, 0.5, 0.49, 0.4, 0.3, 0.1])),
    "falls through": (np.full(8, 0.125), np.array([0.9, 0.8, 0.6, 0.4, 0.3, 0.2, 0.1, 0.0])),
    "bumpy": (np.full(8, 0.125), np.array([0.2, 0.95, 0.2, 0.8, 0.45, 0.2, 0.9, 0.1])),
    "rises": (np.full(8, 0.125), np.array([0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.3, 0.2])),
    "rare top": (np.array([0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.2, 0.12]), np.array([0.45, 0.6, 0.4] + [0.45] * 5)),
}


def added(mass, q, rate):
    """Return the masses (N + 1, N + 1) of rows and hits after a block: of the rest, a share q with a rate of hits."""
    n_rows = len(mass) - 1
    numbers = np.arange(n_rows + 1)
    hits = binom.pmf(numbers[None], numbers[:, None], rate)  # of a rows, b hits
    out = np.zeros_like(mass)
    for n in np.flatnonzero(mass.sum(axis=1)).tolist():
        rest = n_rows - n
        padded = np.concatenate([np.zeros(rest), mass[n]])
        shifted = np.stack([padded[rest - b : rest - b + n_rows + 1] for b in range(rest + 1)])
        rows = binom.pmf(numbers[: rest + 1], rest, q)
        out[n:] += rows[:, None] * (hits[: rest + 1, : rest + 1] @ shifted)
    return out


def chance_of_broken(chances, rates, floor, n_rows, shares):
    """The probability that a threshold whose precision is below the floor is certified, by a Markov chain.

    The state after each score is the number of rows above the threshold below it, the hits among them, and the level
    that was handed on.
    """
    numbers = np.arange(n_rows + 1)
    p = np.where(numbers[:, None] > 0, binom.sf(numbers[None] - 1, numbers[:, None], floor), 1.0)
    start = np.zeros((n_rows + 1, n_rows + 1))
    start[0, 0] = 1.0
    states, gone, broken = {0.0: start}, 0.0, 0.0
    for chance, rate, precision, share in zip(chances, rates, true_precision(chances, rates), shares, strict=True):
        following = {}
        q = min(chance / (1.0 - gone), 1.0)
        gone += chance
        for level, mass in states.items():
            here, mass = level + share, added(mass, q, rate)
            certified = (p <= here) & (here > 0)
            if precision < floor:
                broken += mass[certified].sum()
            else:
                following[here] = following.get(here, 0.0) + np.where(certified, mass, 0.0)
            following[0.0] = following.get(0.0, 0.0) + np.where(certified, 0.0, mass)
        states = following
    return broken


def shares_of_heads(n, heads, delta):
    shares = np.zeros(n)
    shares[list(heads)] = 0.25
    shares[heads[0]] = 1.0
    return delta * shares / shares.sum()


@pytest.mark.parametrize("world", WORLDS)
def test_a_promise_is_broken_with_at_most_its_probability(world):
    chances, rates = WORLDS[world]
    for n_rows, heads in ((12, [1]), (30, [0, 3]), (40, [1, 4])):
        broken = chance_of_broken(chances, rates, 0.5, n_rows, shares_of_heads(8, heads, 0.2))
        assert broken <= 0.2 + 1e-9


@pytest.mark.slow
@pytest.mark.parametrize(
    ("world", "floor", "sizes"),
    [(world, 0.8, (100,)) for world in WORLDS] + [("just below", 0.5, (100, 200)), ("bumpy", 0.5, (200,))],
)
def test_a_promise_about_many_rows_is_broken_with_at_most_its_probability(world, floor, sizes):
    chances, rates = WORLDS[world]
    rates = rates if floor == 0.5 else np.clip(rates + 0.3, 0, 1)
    most = 0.0
    for n_rows, delta in zip(sizes, (0.05, 0.2), strict=False):
        broken = chance_of_broken(chances, rates, floor, n_rows, shares_of_heads(8, [0, 2, 5], delta))
        assert broken <= delta + 1e-9
        most = max(most, broken / delta)
    if world == "just below" and floor == 0.5:
        assert most > 0.2  # the bound is not idle


def head_levels(others, floor, n_rows, delta, has_success):
    """The ranks at which tests may begin, with their parts of delta: a list of pairs."""
    n = len(others)
    first = round(n / n_rows * int(np.ceil(2 * np.log(delta) / np.log(floor))))
    if first == 0:
        return []
    first, kinds = min(first, n), []
    for factor in (4.0, 1.12):
        ranks, k = [], 0
        while not ranks or first * factor**k <= n / 2:
            ranks.append(int(first * factor**k))
            k += 1
        ranks = sorted(set(ranks))
        parts = [1.0] * len(ranks) if factor < 2 else [1.0] + [0.25] * (len(ranks) - 1)
        kinds.append((1.0, ranks, parts))
    if has_success:
        means = [(sum(others[:m]) / m - floor) * np.sqrt(m) for m in range(1, n + 1)]
        kinds.append((2.0, [int(np.argmax(means)) + 1], [1.0]))
    total = sum(weight for weight, _, _ in kinds)
    return [
        (rank, delta * weight / total * part / sum(parts))
        for weight, ranks, parts in kinds
        for rank, part in zip(ranks, parts, strict=True)
    ]


def reference(scores, labels, others, floor, delta, has_success):
    """The chain of a floor on precision in plain loops: ranks, heads, thresholds, tests."""
    ordered, values = sorted(others, reverse=True), sorted(set(others))
    ranks, rank = [], 1
    while rank <= len(others):
        ranks.append(rank)
        rank += int(np.sqrt(rank))
    heads = head_levels(ordered, floor, len(labels), delta, has_success)

    def below(value):
        """The threshold halfway to the next lower value."""
        k = values.index(value)
        return (values[k] + values[k - 1]) / 2 if k else np.nextafter(values[0], -np.inf)

    all_ranks = [*ranks, *(rank for rank, _ in heads)]
    thresholds = sorted({below(ordered[m - 1]) for m in all_ranks} | {below(values[0])}, reverse=True)
    begins = dict.fromkeys(thresholds, 0.0)
    for rank, part in heads:
        begins[below(ordered[rank - 1])] += part
    if not heads:
        begins[thresholds[0]] = delta
    certified, level = {}, 0.0
    for t in thresholds:
        level += begins[t]
        above = [y for s, y in zip(scores, labels, strict=True) if s > t]
        p = binom.sf(sum(above) - 1, len(above), floor) if above else 1.0
        certified[t] = level > 0 and p <= level
        level = level if certified[t] else 0.0
    return certified


@pytest.mark.parametrize("has_success", [True, False])
@pytest.mark.parametrize("decimals", [1, 2, 6])
def test_the_chain_is_that_of_plain_loops(decimals, has_success):
    rng = np.random.default_rng(decimals)
    n_certified = 0
    for _ in range(30):
        n, n_others = int(rng.integers(20, 400)), int(rng.integers(5, 300))
        scores = np.round(rng.beta(1, 2, n), decimals)
        labels = (rng.random(n) < np.clip(scores * 1.3, 0, 1)).astype(int)
        others = np.round(rng.beta(1, 2, n_others), decimals)
        success = others if has_success else None
        chain = certify(family_of(scores, labels), [floor_on_precision(0.6)], others, 0.2, success)
        expected = reference(scores, labels, others.tolist(), 0.6, 0.2, has_success)
        assert dict(zip(chain.thresholds.tolist(), chain.certified.tolist(), strict=True)) == expected
        n_certified += int(chain.certified.sum())
    assert n_certified > 30


def outcomes(n_rows, n_cells):
    """All ways to spread rows over cells."""
    for bars in itertools.combinations(range(n_rows + n_cells - 1), n_cells - 1):
        ends = (-1, *bars, n_rows + n_cells - 1)
        yield [ends[k + 1] - ends[k] - 1 for k in range(n_cells)]


def enumerated(n_rows, chances, rates, floor, delta, n_others):
    """The probability of a broken promise over all samples of few rows, tested by the chain of the package."""
    k = len(chances)
    scores = np.arange(k, 0, -1.0)
    cells = np.log(np.maximum(np.concatenate([chances * (1 - rates), chances * rates]), 1e-300))
    others = np.repeat(scores, n_others)
    precisions = dict(zip(scores, true_precision(chances, rates), strict=True))
    total, broken, given = 0.0, 0.0, 0.0
    for counts in outcomes(n_rows, 2 * k):
        chance = np.exp(lgamma(n_rows + 1) - sum(lgamma(c + 1) for c in counts) + float(np.dot(counts, cells)))
        family = family_of(np.repeat(np.tile(scores, 2), counts), np.repeat(np.repeat([0, 1], k), counts))
        chain = certify(family, [floor_on_precision(floor)], others, delta)
        lowest = [scores[scores > t].min() for t in chain.thresholds[chain.certified] if (scores > t).any()]
        total += chance
        given += chance * bool(lowest)
        broken += chance * any(precisions[score] < floor for score in lowest)
    assert total == pytest.approx(1.0)
    return given, broken


@pytest.mark.parametrize("rates", [(0.49, 0.49), (0.2, 0.75), (0.9, 0.05)])
def test_over_all_samples_a_promise_is_broken_with_at_most_its_probability(rates):
    given, broken = enumerated(9, np.array([0.5, 0.5]), np.array(rates), 0.5, 0.2, 4)
    assert broken <= 0.2
    assert given >= broken


@pytest.mark.slow
@pytest.mark.parametrize("rates", [(0.49, 0.49, 0.49), (0.3, 0.68, 0.2), (0.6, 0.35, 0.5)])
@pytest.mark.parametrize("n_rows", [12, 16])
def test_over_all_samples_of_three_scores_too(rates, n_rows):
    given, broken = enumerated(n_rows, np.array([0.3, 0.4, 0.3]), np.array(rates), 0.5, 0.2, 3)
    assert 0.0 < broken <= 0.2
    assert given >= broken


# ------------------------------------------------------------------------------------------------- several bounds


def test_bounds_of_both_ends_are_tested_with_half_of_the_level_each():
    rng = np.random.default_rng(3)
    scores = rng.beta(1, 2, 3000)
    labels = (rng.random(3000) < scores).astype(int)
    others = rng.beta(1, 2, 3000)
    precision, recall = floor_on_precision(0.55), Proportion(HIT, POSITIVE, 0.3, True)
    both = certify(family_of(scores, labels), [precision, recall], others, 0.1)
    alone = [certify(family_of(scores, labels), [bound], others, 0.05) for bound in (precision, recall)]
    common = [dict(zip(chain.thresholds.tolist(), chain.certified.tolist(), strict=True)) for chain in alone]
    for t, certified in zip(both.thresholds.tolist(), both.certified.tolist(), strict=True):
        if t in common[0] and t in common[1]:
            assert certified == (common[0][t] and common[1][t])
    assert both.certified.any()


def test_a_recall_is_certified_from_the_lowest_threshold_up():
    rng = np.random.default_rng(0)
    scores = rng.random(500)
    labels = (rng.random(500) < scores).astype(int)
    chain = certify(family_of(scores, labels), [Proportion(HIT, POSITIVE, 0.8, True)], rng.random(500), 0.05)
    n_certified = int(chain.certified.sum())
    assert n_certified > 5
    assert chain.certified[:n_certified].all()
    hits, n = (labels[scores > chain.thresholds[n_certified]].sum(), labels.sum())
    assert binom.sf(hits - 1, n, 0.8) > 0.05  # the next one is not proved
