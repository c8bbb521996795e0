"""Rows that wait for labels by id, records of batches, and labels that are not missing at random."""

import numpy as np
import pytest

from metricwise.monitoring import batches as module
from metricwise.monitoring.batches import Batch, Waiting, WaitingRow, neglected_decision, thinned


def waiting(*ids, batch=1):
    return Waiting().added({name: WaitingRow(batch, (0,)) for name in ids})


def test_rows_wait_until_their_label_comes():
    rows, left = waiting("a", "b", "c").taken(["c", "a"])
    assert [row.batch for row in rows] == [1, 1]
    assert list(left.rows) == ["b"]
    with pytest.raises(ValueError, match="got 'a', which has its label already"):
        left.taken(["a"])
    with pytest.raises(ValueError, match="got 'z', which was never decided with this id, or is no longer waited for"):
        left.taken(["b", "z"])
    with pytest.raises(ValueError, match="got 'b', which was decided in batch 1 and waits for its label"):
        left.check_new(["x", "b"])
    with pytest.raises(ValueError, match="got 'c', which was decided before and has its label"):
        left.check_new(["c"])


def test_old_rows_are_forgotten_and_counted():
    both = waiting("a", "b").added({"c": WaitingRow(4, (1,))})
    left = both.without_older(2)
    assert (list(left.rows), left.n_forgotten) == (["c"], 2)
    assert left.added({}).without_older(9).n_forgotten == 3


def test_too_many_rows_cannot_wait(monkeypatch):
    monkeypatch.setattr(module, "MAX_WAITING_ROWS", 2)
    with pytest.raises(
        ValueError, match="3 rows would wait for their labels, more than 2; pass labels, set forget_after="
    ):
        waiting("a", "b", "c")


def test_only_the_last_labelled_ids_are_remembered(monkeypatch):
    monkeypatch.setattr(module, "MAX_REMEMBERED_IDS", 2)
    assert list(Waiting().added({}, ["a", "b", "c"]).labelled) == ["b", "c"]


def record(first, last=None, n=1, decided=((4, 6),), labelled=((1, 2),)):
    sums = (np.array([[1.0 * first], [2.0]]),)
    return Batch(first, last or first, n * np.array(decided), n * np.array(labelled), sums, (0.1 * first,), (None,))


def test_records_of_a_long_stream_are_joined(monkeypatch):
    monkeypatch.setattr(module, "MAX_BATCHES", 4)
    records = tuple(map(record, range(1, 6)))
    assert thinned(records[:4]) == records[:4]
    joined = thinned(records)
    assert [(batch.first, batch.last) for batch in joined] == [(1, 2), (3, 4), (5, 5)]
    assert joined[1].decided.tolist() == [[8, 12]]
    assert joined[1].sums[0].tolist() == [[7.0], [4.0]]
    assert joined[1].evidence == (0.4,)


# ------------------------------------------------------------------------------------------- labels that are not random


def stream(shares, n_batches=10, n_rows=200, seed=0):
    """Batches of two decisions, labelled with these probabilities."""
    rng = np.random.default_rng(seed)
    out = []
    for number in range(1, n_batches + 1):
        decided = np.bincount(rng.integers(0, 2, n_rows), minlength=2)
        out.append(record(number, decided=[decided.tolist()], labelled=[rng.binomial(decided, shares).tolist()]))
    return out


@pytest.mark.parametrize("shares", [(0.0, 1.0), (0.0, 0.2), (0.05, 0.9)])
def test_decisions_that_get_no_labels_are_noticed(shares):
    assert neglected_decision(stream(shares)) == (0, 0)


@pytest.mark.parametrize("shares", [(1.0, 1.0), (0.5, 0.5), (0.02, 0.02), (0.0, 0.0), (0.6, 0.9)])
def test_others_are_not(shares):
    assert neglected_decision(stream(shares)) is None


def test_labels_that_come_by_batch_are_no_reason():
    """Old batches are labelled and new ones are not, while the shares of decisions move."""
    old = [record(number, decided=[[90, 10]], labelled=[[90, 10]]) for number in range(1, 20)]
    new = [record(number, decided=[[10, 90]], labelled=[[0, 0]]) for number in range(20, 40)]
    assert neglected_decision([*old, *new]) is None


def test_random_labels_are_never_refused():
    """100 streams of 20 batches at random, looked at after each batch."""
    rng = np.random.default_rng(1)
    for seed in range(100):
        share = rng.choice([0.02, 0.1, 0.5, 0.95])
        records = stream((share, share), 20, rng.integers(5, 400), seed)
        assert all(neglected_decision(records[:n]) is None for n in range(1, 21))
