"""Rows by kind: against counting rows one by one, and copies against a comparison of all pairs of rows."""

import itertools
from collections import defaultdict

import numpy as np
import pytest

from engines import source
from metricwise.core.rows import Rows
from metricwise.core.schema import Schema
from metricwise.data.probabilities import read_proba
from metricwise.oracles import kinds
from metricwise.oracles.kinds import count_kinds, has_copies

N_ROWS = 200


def draw_rows(seed, *, weighted=False, counted=False, clustered=False, n_groups=0, n_outputs=2):
    rng = np.random.default_rng(seed)
    weight = rng.integers(0, 3, N_ROWS) * 0.5 if weighted else None
    repeats = rng.integers(0, 4, N_ROWS).astype(float) if counted else None
    return Rows(
        read_proba(rng.random((N_ROWS, n_outputs)).round(1), multioutput=True),
        rng.integers(-1, 2, (N_ROWS, n_outputs)).astype(np.int8),
        repeats if counted else weight,
        frequency=None if repeats is None else np.maximum(repeats, 1.0),
        repeats=repeats,
        group=rng.integers(0, n_groups, N_ROWS) if n_groups else None,
        cluster=rng.integers(0, 40, N_ROWS) if clustered else None,
    )


def describe(rows):
    """Two numbers about each row, which depend on nothing but its probabilities."""
    eta = rows.proba.blocks[0]
    return np.stack([eta[:, 0] > 0.5, eta[:, 1] * 2], axis=1).astype(np.int8)


def count_one_by_one(rows):
    """The rows, the weight and the sum of squared weights per independent row of each kind."""
    sums = defaultdict(lambda: np.zeros(3))
    weight = np.ones(N_ROWS) if rows.weight is None else rows.weight
    repeats = np.ones(N_ROWS) if rows.repeats is None else np.maximum(rows.repeats, 1e-9)
    for n, numbers in enumerate(describe(rows).tolist()):
        group = 0 if rows.group is None else rows.group[n]
        cluster = None if rows.cluster is None else rows.cluster[n]
        kind = (*rows.codes[n].tolist(), *numbers, group, cluster, bool(weight[n] > 0))
        sums[kind] += [1, weight[n], weight[n] ** 2 / repeats[n]]
    return sums


@pytest.mark.parametrize("numbering", ["dense", "packed", "unpacked"])
@pytest.mark.parametrize("engine", ["memory", "chunks of 3", "pieces"])
@pytest.mark.parametrize(
    "options",
    [{}, {"weighted": True, "n_groups": 3}, {"counted": True}, {"clustered": True, "weighted": True}],
)
def test_sums_of_kinds(options, engine, numbering, monkeypatch):
    if numbering != "dense":
        monkeypatch.setattr(kinds, "_MAX_DENSE_KINDS", 0)
    if numbering == "unpacked":
        monkeypatch.setattr(kinds, "_MAX_PACKED_KINDS", 0)
    rows = draw_rows(0, **options)
    n_groups = options.get("n_groups", 0)
    found = count_kinds(source(rows, Schema.of_codes([2, 2]), engine), describe, [2, 3], n_groups)
    expected, counted = count_one_by_one(rows), found.source.rows
    kept = found.counts > 0
    assert kept.sum() == len(expected)
    for u in np.flatnonzero(kept):
        group = 0 if counted.group is None else counted.group[u]
        cluster = None if counted.cluster is None else counted.cluster[u]
        kind = (*counted.codes[u].tolist(), *found.numbers[u].tolist(), group, cluster, bool(counted.weight[u] > 0))
        n_rows, weight, squares = expected[kind]
        assert (found.counts[u], counted.weight[u]) == pytest.approx((n_rows, weight))
        if cluster is None and weight > 0:
            assert counted.weight[u] ** 2 / counted.repeats[u] == pytest.approx(squares)
    if rows.cluster is None:
        independent = N_ROWS if rows.repeats is None else rows.repeats.sum()
        assert counted.repeats.sum() == pytest.approx(independent)


@pytest.mark.parametrize("engine", ["memory", "chunks of 3", "pieces"])
@pytest.mark.parametrize("n_copies", [1, 2])
@pytest.mark.parametrize("labels", ["alike", "different"])
@pytest.mark.parametrize("n_compared", [10_000, 100])
def test_copies(n_compared, labels, n_copies, engine, monkeypatch):
    monkeypatch.setattr(kinds, "_MAX_COMPARED_ROWS", n_compared)
    rng = np.random.default_rng(0)
    eta = np.repeat(rng.random((N_ROWS, 1)), n_copies, axis=0)
    codes = (rng.random((len(eta), 1)) < 0.5).astype(np.int8)
    if labels == "alike":
        codes = np.repeat(codes[:N_ROWS], n_copies, axis=0)
    order = rng.permutation(len(eta))
    rows = Rows(read_proba(eta[order], multioutput=True), codes[order])
    pairs = itertools.combinations(range(len(eta)), 2)
    equal = [(a, b) for a, b in pairs if eta[order][a] == eta[order][b]]
    copies = bool(equal) and all(codes[order][a] == codes[order][b] for a, b in equal)
    assert has_copies(source(rows, Schema.of_codes([2]), engine)) == copies == (rows.copies() is not None)


def test_few_equal_rows_are_equal_by_chance():
    rng = np.random.default_rng(0)
    eta = np.append(rng.random(N_ROWS), [0.25] * 2)[:, None]
    rows = Rows(read_proba(eta, multioutput=True), np.zeros((N_ROWS + 2, 1), dtype=np.int8))
    assert not has_copies(source(rows, Schema.of_codes([2]), "chunks of 3"))
    assert rows.copies() is None
