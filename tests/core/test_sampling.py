"""Samples of rows: rare classes are there, and weights bring the whole back."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import metricwise as mw
from engines import source
from metricwise.core import sampling
from metricwise.core.probabilities import Probabilities
from metricwise.core.rows import Rows
from metricwise.core.sampling import draw_rows
from metricwise.core.schema import Schema
from metricwise.data.probabilities import read_proba
from metricwise.fitting.selection import select
from metricwise.rules import fit_link


def rare_world(n_rows, n_positive, seed):
    """Probabilities of a binary problem with so many positives, and labels drawn from them."""
    rng = np.random.default_rng(seed)
    logit = rng.normal(0, 2, n_rows)
    shift = 0.0
    for _ in range(100):  # Newton's iteration for the prevalence
        p = 1 / (1 + np.exp(-(logit + shift)))
        shift -= (p.sum() - n_positive) / (p * (1 - p)).sum()
    return p, (rng.random(n_rows) < p).astype(int)


@st.composite
def label_tables(draw):
    n, m, k = draw(st.integers(1, 300)), draw(st.integers(1, 4)), draw(st.integers(1, 5))
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    skew = rng.dirichlet(np.full(k + 1, draw(st.sampled_from([0.1, 1.0, 10.0]))), size=m)
    codes = np.stack([rng.choice(k + 1, size=n, p=p) - 1 for p in skew], axis=1).astype(np.int8)
    weight = rng.integers(0, 3, n).astype(float) if draw(st.booleans()) else None
    return codes, weight, draw(st.integers(1, 320))


@given(label_tables())
def test_sample_is_of_distinct_rows_that_stand_for_all(table):
    codes, weight, n_rows = table
    sample = draw_rows(codes, n_rows, len(codes), weight=weight)
    assert (np.diff(sample.rows) > 0).all()
    assert sample.rows.min() >= 0
    assert sample.rows.max() < len(codes)
    assert sample.frequency.sum() == pytest.approx(len(codes))
    assert (sample.frequency >= 1 - 1e-12).all()
    again = draw_rows(codes, n_rows, len(codes), weight=weight)
    assert (again.rows == sample.rows).all()
    # As many as asked for, but for rounding and the one row that every stratum has.
    strata = codes.shape[1] * (int(codes.max()) + 2)
    assert len(sample.rows) <= min(len(codes), n_rows + strata + 1)


@given(label_tables())
def test_classes_of_one_output_are_counted_exactly(table):
    codes, _, n_rows = table
    codes = codes[:, :1]
    sample = draw_rows(codes, n_rows, len(codes))
    whole = np.bincount(codes[:, 0] + 1, minlength=7)
    back = np.bincount(codes[sample.rows, 0] + 1, sample.frequency, minlength=7)
    np.testing.assert_allclose(back, whole)


def test_no_row_stands_for_more_than_twice_its_share():
    rng = np.random.default_rng(0)
    codes = rng.choice(4, size=(50_000, 1), p=[0.98, 0.0199, 0.00008, 0.00002])
    sample = draw_rows(codes, 1000, len(codes))
    assert sample.frequency.max() <= 2 * 50 * 1.05
    rare = (codes[:, 0] >= 2).sum()
    assert 0 < rare == (codes[sample.rows, 0] >= 2).sum()  # all of them


def test_rare_labels_of_many_outputs_are_sampled_and_weighted_back():
    rng = np.random.default_rng(0)
    codes = (rng.random((40_000, 30)) < np.geomspace(0.0005, 0.2, 30)).astype(np.int8)
    estimates = []
    for seed in range(40):
        sample = draw_rows(codes, 2000, len(codes), seed=seed)
        assert (codes[sample.rows].sum(axis=0) >= 15).all()  # at random the rarest would show once
        estimates.append(sample.frequency @ codes[sample.rows])
    error = np.std(estimates, axis=0, ddof=1) / np.sqrt(40)
    bias = np.mean(estimates, axis=0) - codes.sum(axis=0)
    assert (np.abs(bias) <= 4 * error + 1e-9).all()


@pytest.mark.parametrize(("half_life", "n_rows"), [(300, 4_000), (3_000, 4_000)])
def test_a_thinned_sample_has_the_rows_that_weigh_most(half_life, n_rows):
    """An even sample of the same size has 3 and 30 % of the effective rows that the thinned one has at least."""
    n_total = 100_000
    rng = np.random.default_rng(0)
    codes = (rng.random((n_total, 1)) < 0.3).astype(np.int8)
    weight = 0.5 ** (np.arange(n_total)[::-1] / half_life)
    weight[:1_000] = 0
    whole, shares = weight.sum() ** 2 / (weight**2).sum(), []
    for seed in range(30):
        sample = draw_rows(codes, n_rows, n_total, weight=weight, seed=seed, thin=True)
        scaled = weight[sample.rows] * sample.frequency
        assert (np.diff(sample.rows) > 0).all()
        assert len(sample.rows) <= n_rows + 3
        assert sample.rows.min() >= 1_000  # rows without weight are left out
        assert scaled.sum() ** 2 / (scaled**2).sum() >= min(0.95 * whole, 0.4 * n_rows)
        shares.append([scaled.sum(), scaled @ codes[sample.rows, 0]])
    error = np.std(shares, axis=0, ddof=1) / np.sqrt(30)
    bias = np.mean(shares, axis=0) - [weight.sum(), weight @ codes[:, 0]]
    assert (np.abs(bias) <= 4 * error).all()


def test_a_class_that_only_old_rows_show_is_not_thinned_away():
    n_total = 100_000
    codes = (np.arange(n_total) < 20_000).astype(np.int8)[:, None]
    sample = draw_rows(codes, 2_000, n_total, weight=0.5 ** (np.arange(n_total)[::-1] / 500.0), thin=True)
    assert (codes[sample.rows] == 1).sum() >= 500


def test_weights_that_hardly_differ_are_not_thinned():
    rng = np.random.default_rng(0)
    codes, weight = rng.integers(0, 3, (20_000, 1)).astype(np.int8), rng.uniform(0.5, 2, 20_000)
    thinned, even = (draw_rows(codes, 1_000, 20_000, weight=weight, thin=thin) for thin in (True, False))
    np.testing.assert_array_equal(thinned.rows, even.rows)
    np.testing.assert_array_equal(thinned.frequency, even.frequency)


def test_link_of_a_sample_is_that_of_all_rows():
    p, y = rare_world(200_000, 60, seed=0)
    proba = read_proba(np.clip(p * 30, 0, 0.999))  # as class weights would make them
    whole = fit_link(proba, y[:, None], max_rows=200_000)
    some = fit_link(proba, y[:, None])
    assert some.temperature[0] == pytest.approx(whole.temperature[0], abs=0.05)
    np.testing.assert_allclose(some.bias, whole.bias, atol=0.1)


def test_weights_and_frequencies_are_told_apart():
    """Rows that stand for ten are as good as ten rows, and weights of ten are no more than one."""
    rng = np.random.default_rng(1)
    p = rng.uniform(0.02, 0.98, 60)
    y = (rng.random(60) < p**2).astype(int)[:, None]
    ten = np.full(60, 10.0)
    repeated = fit_link(read_proba(np.repeat(p, 10)), np.repeat(y, 10, axis=0))
    stands_for_ten = fit_link(read_proba(p), y, ten, frequency=ten)
    np.testing.assert_allclose(stands_for_ten.bias, repeated.bias, atol=1e-6)
    weighs_ten = fit_link(read_proba(p), y, ten)
    np.testing.assert_allclose(weighs_ten.bias, fit_link(read_proba(p), y).bias, atol=1e-6)


@pytest.mark.parametrize("metric", ["balanced_accuracy", "g_mean"])
def test_forty_positives_among_many_rows_are_not_overlooked(metric):
    p, y = rare_world(300_000, 40, seed=3)
    new_p, new_y = rare_world(300_000, 40, seed=4)
    solution = mw.optimize(p, y, metric)
    score = mw.metrics.get_metric(metric).score
    fixed = mw.optimize(p, y, metric, strategy=mw.Strategy(confusion="expected", recalibrate=True))
    best = score(new_y, fixed.rule.predict(new_p))
    assert best > 0.75
    assert score(new_y, solution.rule.predict(new_p)) > best - 0.03


def test_choice_is_made_on_a_sample_with_the_rare_class():
    from metricwise.fitting.solving import Settings
    from metricwise.oracles.problem import FitStrategy
    from problems import read_problem

    p, y = rare_world(100_000, 30, seed=5)
    problem = read_problem(p, y, "balanced_accuracy")
    some = problem.sample(5_000, seed=0)
    assert some.source.class_rows[0, 1] == problem.source.class_rows[0, 1]
    np.testing.assert_allclose(some.oracle().priors, problem.oracle().priors)
    choice = select(problem, [FitStrategy("expected", recalibrate=True)], Settings())
    assert choice.gain.estimate > 0.2


@pytest.mark.parametrize("engine", ["memory", "pieces"])
def test_a_sample_of_weighted_rows_weighs_what_they_do(engine):
    """Rows of a class weigh alike, so that a sample by class has their weight exactly."""
    rng = np.random.default_rng(0)
    proba = rng.dirichlet([8, 1, 1], 3_000)
    codes = (proba.cumsum(axis=1) < rng.random((3_000, 1))).sum(axis=1).clip(0, 2)[:, None].astype(np.int8)
    weight = np.array([1.0, 5.0, 0.25])[codes[:, 0]]
    whole = source(Rows(read_proba(proba), codes, weight), Schema.of_codes([3]), engine)
    some = whole.sample(500, 0)
    assert some.n_rows < 600
    np.testing.assert_allclose(some.tally(), whole.class_weights)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("decimals", [None, 2])
def test_samples_do_not_depend_on_those_drawn_before(decimals, weighted):
    """Whatever has been listed for an earlier sample: of other sizes, in any order, of equal rows as well."""
    rng = np.random.default_rng(5)
    proba = rng.dirichlet([5.0, 2.0, 0.1], size=50_000)
    proba = proba if decimals is None else np.round(proba, decimals)
    codes = rng.integers(0, 3, size=(len(proba), 1)).astype(np.int8)
    weight = rng.uniform(0.5, 2.0, len(proba)) if weighted else None
    rows = Rows(read_proba(proba), codes, weight)

    def drawn(memory, n_rows):
        sample = memory.sample(n_rows)
        return sample.proba.blocks[0], sample.frequency

    alone = {n_rows: drawn(source(rows, Schema.of_codes([3])), n_rows) for n_rows in (200, 2_000, 9_000, 30_000)}
    for order in ((200, 9_000, 2_000, 30_000), (2_000, 200, 30_000, 9_000), (30_000, 9_000, 2_000, 200)):
        memory = source(rows, Schema.of_codes([3]))
        for n_rows in order:
            for got, expected in zip(drawn(memory, n_rows), alone[n_rows], strict=True):
                np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize(("n_outputs", "held"), [(2, True), (40, False)])
def test_a_large_sample_is_not_held_and_comes_again(n_outputs, held):
    rng = np.random.default_rng(7)
    codes = rng.integers(0, 2, (30_000, n_outputs)).astype(np.int8)
    rows = Rows(Probabilities((rng.random(codes.shape),), np.full(n_outputs, 2)), codes)
    memory = source(rows, Schema.of_codes([2] * n_outputs))
    first, again = memory.sample(20_000), memory.sample(20_000)
    assert (first is again) == held
    for name in ("codes", "weight", "frequency"):
        np.testing.assert_array_equal(getattr(first, name), getattr(again, name))
    np.testing.assert_array_equal(first.proba.blocks[0], again.proba.blocks[0])


def test_rows_in_order_of_stratum_and_key():
    rng = np.random.default_rng(6)
    for highest in (3, 1 << 40):  # with many equal keys, and with none
        keys, strata = rng.integers(0, highest, size=5_000).astype(np.uint64), rng.integers(0, 300, size=5_000)
        np.testing.assert_array_equal(sampling._order(keys, strata), np.lexsort((keys, strata)))
