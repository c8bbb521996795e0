"""Evidence about promises of every form: false alarms at the bound, breaks that are found, and in which batch."""

import numpy as np
import pytest

import metricwise as mw
from metricwise.monitoring.evidence import LabelledRows, PromiseState, advance, estimate
from metricwise.monitoring.forms import RANDOM
from metricwise.monitoring.promises import read_promises

K2 = mw.WeightedRule.from_thresholds(0.5)
K3 = mw.WeightedRule.from_weights([1, 1, 1], classes=[0, 1, 2])
GOOD = np.array([[0.45, 0.03, 0.02], [0.04, 0.22, 0.04], [0.02, 0.04, 0.14]])
BAD = 0.75 * GOOD + 0.25 * np.outer(GOOD.sum(axis=1), GOOD.sum(axis=0))


def promise_of(text, rule=K3):
    (promise,) = read_promises(rule, text, None, RANDOM)
    return promise


def draw(confusion, n, rng):
    """Rows whose classes and decisions follow a confusion matrix."""
    k = len(confusion)
    cells = rng.choice(k * k, n, p=confusion.reshape(-1))
    return cells // k, cells % k


def rows(codes, decisions, batch):
    return LabelledRows(np.reshape(codes, (-1, 1)), np.reshape(decisions, (-1, 1)), np.full(len(codes), batch))


def watch(promise, confusions, size, rng, alpha=0.05, change=lambda codes, decisions: (codes, decisions)):
    state = PromiseState.begin(promise)
    for batch, confusion in enumerate(confusions, start=1):
        state, _ = advance(promise, state, rows(*change(*draw(confusion, size, rng)), batch), batch, alpha)
        if state.found is not None:
            break
    return state


@pytest.mark.slow
@pytest.mark.parametrize("name", ["kappa", "quadratic_kappa", "macro_f1", "g_mean", "min_recall", "accuracy", "f1[1]"])
def test_false_alarms_at_the_bound(name):
    """Streams of 20 batches whose value is the bound, from below and from above."""
    bound = float(mw.metrics.resolve(name, "multiclass").metric.value(GOOD)) if "[" not in name else 2 * 0.22 / 0.59
    n_streams, n_alarms = 150, 0
    for seed in range(n_streams):
        promise = promise_of(f"{name} {'>=' if seed % 2 else '<='} {bound!r}")
        n_alarms += watch(promise, [GOOD] * 20, 100, np.random.default_rng(seed)).found is not None
    assert n_alarms / n_streams <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / n_streams)


@pytest.mark.parametrize("name", ["kappa", "quadratic_kappa", "macro_f1", "g_mean", "balanced_accuracy", "accuracy"])
@pytest.mark.parametrize("n_good", [0, 40])
def test_breaks_are_found(name, n_good):
    metric = mw.metrics.resolve(name, "multiclass").metric
    bound = float(metric.value(0.9 * GOOD + 0.1 * BAD))
    state = watch(promise_of(f"{name} >= {bound!r}"), [GOOD] * n_good + [BAD] * 120, 200, np.random.default_rng(1))
    assert state.found is not None
    assert n_good < state.found <= n_good + 60
    assert n_good / 2 < state.since <= state.found  # means of ratios start anew at powers of two
    if name in ("accuracy", "kappa", "quadratic_kappa"):
        assert abs(state.since - n_good) <= 8


def test_ceilings_are_broken_from_below():
    state = watch(promise_of("accuracy <= 0.7"), [GOOD] * 40, 100, np.random.default_rng(0))
    assert state.found is not None
    assert watch(promise_of("accuracy >= 0.7"), [GOOD] * 40, 100, np.random.default_rng(0)).found is None


def test_sorted_batches_are_no_evidence():
    """A file that is sorted by class has neighbours of the same class: they are not paired as they stand."""

    def ordered(codes, decisions):
        order = np.argsort(codes, kind="stable")
        return codes[order], decisions[order]

    bound = float(mw.metrics.Kappa().value(GOOD)) - 0.02
    promise = promise_of(f"kappa >= {bound!r}")
    state = watch(promise, [GOOD] * 50, 200, np.random.default_rng(0), change=ordered)
    value, low, high = estimate(promise, state, 0.05)
    assert state.found is None
    assert low < bound + 0.02 < high
    assert value == pytest.approx(bound + 0.02, abs=0.03)


def test_a_row_without_a_pair_waits_for_the_next():
    promise = promise_of("kappa >= 0.5")
    state = PromiseState.begin(promise)
    for batch, (code, decision) in enumerate([(0, 0), (1, 2), (2, 2)], start=1):
        state, seen = advance(promise, state, rows([code], [decision], batch), batch, 0.05)
        assert len(seen.a) == (batch == 2)
    assert state.left_over == (2, 2, 3)
    assert (state.n_batches, state.n_rows) == (1, 2)
    assert seen.a.shape == (0, 1)


def test_rows_that_a_promise_is_not_about_change_nothing():
    promise = promise_of("precision[1] >= 0.5")
    state, _ = advance(promise, PromiseState.begin(promise), rows([1, 0, 1], [1, 1, 0], 1), 1, 0.05)
    again, _ = advance(promise, state, rows([0, 2, 1], [0, 2, 2], 2), 2, 0.05)
    assert (again.n_batches, again.n_rows, again.log_evidence) == (1, 2, state.log_evidence)
    unlabelled, _ = advance(promise, state, rows([-1, -1], [1, 1], 3), 3, 0.05)
    assert unlabelled.log_evidence == state.log_evidence


def test_once_broken_is_broken():
    promise = promise_of("accuracy >= 0.9")
    state = PromiseState.begin(promise)
    for batch in range(1, 30):
        hit = batch > 1
        state, _ = advance(promise, state, rows([1] * 50, [1 if hit else 0] * 50, batch), batch, 0.05)
    assert (state.found, state.since) == (1, 1)
    assert state.log_evidence < 0


def test_means_of_ratios_are_counted_anew_at_powers_of_two():
    promise = promise_of("macro_f1 >= 0.1")
    state = watch(promise, [GOOD] * 9, 30, np.random.default_rng(0))
    assert [restart.mark for restart in state.restarts] == [1, 2, 4, 8]
    assert [restart.tallies[0].n_rows for restart in state.restarts] == sorted(
        (restart.tallies[0].n_rows for restart in state.restarts), reverse=True
    )
    assert state.log_evidence is None


@pytest.mark.parametrize("text", ["accuracy >= 0.5", "macro_f1 >= 0.5", "kappa >= 0.5", "recall[2] >= 0.5"])
def test_the_interval_surrounds_the_value_of_all_rows(text):
    promise = promise_of(text)
    assert estimate(promise, PromiseState.begin(promise), 0.05) is None
    rng = np.random.default_rng(0)
    widths = []
    for n_batches in (2, 8, 32):
        value, low, high = estimate(promise, watch(promise, [GOOD] * n_batches, 100, rng), 0.05)
        assert low < value < high
        widths.append(high - low)
    assert widths[0] > widths[1] > widths[2]
    truth = (
        float(mw.metrics.resolve(text.split(" ")[0].partition("[")[0], "multiclass").metric.value(GOOD))
        if "[" not in text
        else 0.7
    )
    assert low < truth < high
