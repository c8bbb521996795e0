"""E-processes against what they stand for: every start and bet, all outcomes of tiny streams, streams at random."""

from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest

from metricwise.monitoring.e_process import BETS, EProcess, Tally, bet_unit, log_factors, value_limit


def brute_force(batches, unit):
    """The e-value of batches of slacks: each start, each bet, each row."""
    total = 1 / (len(batches) + 1)  # starts still to come
    for bet in BETS:
        for start in range(len(batches)):
            wealth = 1 / ((start + 1) * (start + 2))
            for slacks in batches[start:]:
                for slack in slacks:
                    wealth *= 1 - bet * slack / unit
            total += wealth / len(BETS)
    return total


def run(batches, unit):
    process = EProcess.begin()
    for mark, slacks in enumerate(batches, start=1):
        process = process.advance(log_factors(np.array(slacks), unit).sum(axis=0), mark)
    return process


@pytest.mark.parametrize("seed", range(8))
def test_the_recursion_is_the_sum_over_starts_and_bets(seed):
    rng = np.random.default_rng(seed)
    batches = [rng.uniform(-2, 0.5, rng.integers(0, 6)) for _ in range(rng.integers(1, 9))]
    assert np.exp(run(batches, 0.5).log_evidence) == pytest.approx(brute_force(batches, 0.5), rel=1e-12)


def test_nothing_is_evidence_of_nothing():
    assert EProcess.begin().log_evidence == 0.0
    assert run([[], []], 1.0).log_evidence == pytest.approx(0.0, abs=1e-15)


@pytest.mark.parametrize("seed", range(4))
def test_the_change_is_the_start_that_has_gained_most(seed):
    rng = np.random.default_rng(seed)
    batches = [rng.uniform(-1, 1, 5) for _ in range(4)] + [rng.uniform(-1, 0.2, 5) for _ in range(4)]
    wealth = [
        [
            -np.log((start + 1) * (start + 2)) + sum(np.log1p(-bet * np.concatenate(batches[start:])))
            for start in range(8)
        ]
        for bet in BETS
    ]
    assert run(batches, 1.0).change == np.unravel_index(np.argmax(wealth), (len(BETS), 8))[1] + 1


@pytest.mark.parametrize(("sizes", "p"), [((1, 1, 1, 1), 0.5), ((2, 1, 2), 0.8), ((3, 3), 0.9), ((1, 2), 0.02)])
def test_on_the_promise_the_evidence_is_one_on_average(sizes, p):
    """All outcomes of a stream of hits whose probability is the bound: exactly a martingale at every batch."""
    bound, n_rows = p, sum(sizes)
    for n_batches in range(1, len(sizes) + 1):
        mean = 0.0
        for outcome in product([1, 0], repeat=sum(sizes[:n_batches])):
            slack = np.array(outcome) - bound
            parts = np.split(slack, np.cumsum(sizes[: n_batches - 1]))
            chance = np.prod([p if hit else 1 - p for hit in outcome])
            mean += chance * np.exp(run(parts, 1 - bound).log_evidence)
        assert mean == pytest.approx(1.0, rel=1e-12)
    assert n_rows < 8


def test_a_promise_that_is_kept_by_a_past_that_decides_is_no_evidence():
    """The probability of a hit depends on what came before, and is never below the bound: a supermartingale."""
    bound = 0.6

    def chance(past):
        return bound if sum(past) % 2 else 0.6 + 0.4 * (len(past) % 3) / 2

    means = []
    for n in range(1, 7):
        mean = 0.0
        for outcome in product([1, 0], repeat=n):
            odds = [chance(outcome[:at]) for at in range(n)]
            weight = np.prod([p if hit else 1 - p for p, hit in zip(odds, outcome, strict=True)])
            mean += weight * np.exp(run([[hit - bound] for hit in outcome], 1 - bound).log_evidence)
        means.append(mean)
    assert all(later <= earlier + 1e-12 for earlier, later in zip([1.0, *means], means, strict=False))


def test_streams_side_by_side_are_streams():
    rng = np.random.default_rng(0)
    slacks = rng.uniform(-1, 1, (3, 5, 4))  # streams, batches, rows
    together = EProcess.begin((3,))
    for batch in range(5):
        together = together.advance(log_factors(slacks[:, batch], 1.0).sum(axis=1), batch + 1)
    alone = [run(list(stream), 1.0) for stream in slacks]
    np.testing.assert_allclose(together.log_evidence, [process.log_evidence for process in alone], rtol=1e-12)
    assert together.change.tolist() == [process.change for process in alone]


def test_a_promise_without_room_is_broken_by_one_row():
    assert run([[-0.0, -1.0]], float(bet_unit(0.0, -1.0))).log_evidence > np.log(1e6)
    assert run([[0.0, 0.0]], float(bet_unit(0.0, 0.0))).log_evidence == pytest.approx(0.0, abs=1e-15)


def accuracy_streams(bound, accuracy, n_streams, seed, size=100):
    """Evidence (batches, streams) of batches with these accuracies."""
    hits = np.random.default_rng(seed).binomial(size, np.asarray(accuracy)[:, None], (len(accuracy), n_streams))
    hit, miss = log_factors(np.array([1 - bound, -bound]), float(bet_unit(1 - bound, -bound)))
    process, evidence = EProcess.begin((n_streams,)), []
    for batch, counts in enumerate(hits, start=1):
        process = process.advance(counts[:, None] * hit + (size - counts)[:, None] * miss, batch)
        evidence.append(process.log_evidence)
    return np.array(evidence)


@pytest.mark.parametrize("bound", [0.8, 0.9, 0.99])
def test_false_alarms(bound):
    """5,000 rows on the promise, looked at after every 100: 5 % of streams and two standard errors."""
    alarms = (accuracy_streams(bound, [bound] * 50, 1000, seed=1) >= np.log(20)).any(axis=0).mean()
    assert alarms <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / 1000)


# MAPIE 1.6 (RiskMonitoring, threshold=1 - bound, in batches of 100) takes 1,050, 1,650, 1,400 and 2,650 in the median.
@pytest.mark.parametrize(("bound", "good", "most"), [(0.9, 0, 600), (0.9, 20, 900), (0.8, 0, 900), (0.8, 20, 1400)])
def test_delay(bound, good, most):
    accuracy = [bound] * good + [bound - 0.05] * 60
    broken = accuracy_streams(bound, accuracy, 400, seed=2) >= np.log(20)
    late = broken[:, ~broken[:good].any(axis=0)][good:]
    assert np.median(np.where(late.any(axis=0), late.argmax(axis=0) + 1, 10**6)) * 100 <= most


# -------------------------------------------------------------------------------------------------- tallies and limits


def ratio(pairs, limits=(0.0, 1.0)):
    """A ratio whose observations are some pairs."""
    a, b = np.array(pairs, dtype=float).T

    def slack_range(bounds, sign):
        slack = sign * (a - np.multiply.outer(bounds, b))
        return slack.min(axis=-1), slack.max(axis=-1)

    return SimpleNamespace(limits=limits, slack_range=slack_range)


def test_a_tally_does_not_depend_on_the_order():
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 3, 60) / 7, rng.integers(0, 2, 60).astype(float)
    whole = Tally.of(a, b)
    assert (whole.pairs != 0).any(axis=1).all()
    assert whole.n_rows == np.count_nonzero((a != 0) | (b != 0)) == whole.counts.sum()
    for cut in ([10], [5, 40], [30, 31, 59]):
        order = rng.permutation(60)
        merged = Tally.empty()
        for part in np.split(order, cut):
            merged = merged.merged(Tally.of(a[part], b[part]))
        for name in ("pairs", "counts", "sums", "n_rows"):
            np.testing.assert_array_equal(getattr(merged, name), getattr(whole, name))


def test_too_many_distinct_observations_leave_only_sums():
    rng = np.random.default_rng(0)
    a = rng.random(6000)
    tally = Tally.empty().merged(Tally.of(a, np.ones(6000)))
    assert tally.pairs is None
    assert tally.sums == pytest.approx([a.sum(), 6000])
    assert value_limit(tally, ratio([(0, 1), (1, 1)]), 1.0, 0.05) == 1.0
    assert tally.merged(Tally.of(a[:2], a[:2])).n_rows == 6002


@pytest.mark.parametrize(("hits", "misses"), [(90, 10), (0, 5), (5, 0), (400, 4)])
def test_limits_are_where_the_bets_refute(hits, misses):
    form = ratio([(1, 1), (0, 1)])
    tally = Tally.of(np.repeat([1.0, 0.0], [hits, misses]), np.ones(hits + misses))

    def evidence(bound, sign):
        unit = float(bet_unit(*reversed([float(end[0]) for end in form.slack_range(np.array([bound]), sign)])))
        slack = np.repeat([sign * (1 - bound), sign * -bound], [hits, misses])
        return np.mean([np.exp(min(np.log1p(-bet * slack / unit).sum(), 99)) for bet in BETS])

    high, low = value_limit(tally, form, 1.0, 0.025), value_limit(tally, form, -1.0, 0.025)
    assert low <= hits / (hits + misses) <= high
    for limit, sign, end in ((high, 1.0, 1.0), (low, -1.0, 0.0)):
        inside = limit - sign * 1e-6
        assert evidence(inside, sign) < 40
        if limit != end:
            assert all(evidence(point, sign) > 40 - 1e-3 for point in np.linspace(limit, end, 20)[:-1])


@pytest.mark.slow
@pytest.mark.parametrize("p", [0.5, 0.95])
def test_limits_hold_at_all_times(p):
    """300 streams of 1,000 rows, looked at after every 50: the interval leaves out the value in 5 % of them at most."""
    rng, form, n_missed = np.random.default_rng(3), ratio([(1, 1), (0, 1)]), 0
    for _ in range(300):
        hits = (rng.random(1000) < p).astype(float)
        tallies = [Tally.of(hits[:n], np.ones(n)) for n in range(50, 1001, 50)]
        n_missed += any(
            not value_limit(tally, form, -1.0, 0.025) <= p <= value_limit(tally, form, 1.0, 0.025) for tally in tallies
        )
    assert n_missed / 300 <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / 300)


def test_without_rows_or_limits_nothing_is_known():
    tally = Tally.of(np.ones(3), np.ones(3))
    assert value_limit(Tally.empty(), ratio([(1, 1), (0, 1)]), 1.0, 0.05) == 1.0
    assert value_limit(tally, ratio([(1, 1), (2, 0)], (-np.inf, np.inf)), -1.0, 0.05) == -np.inf
