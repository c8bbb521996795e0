"""The sample that judges rules of very many classes: when there is one, and that its rows do not fit the link."""

import numpy as np
import pytest

import metricwise as mw
from metricwise.fitting import judging_sample, selection
from metricwise.rules import fit_link

K, N = 110, 2_200


def draw_data(seed=0):
    rng = np.random.default_rng(seed)
    logits = rng.normal(0, 2.0, (N, K))
    truth = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    y = (truth.cumsum(axis=1) > rng.random((N, 1))).argmax(axis=1)
    given = np.exp(1.8 * logits + rng.normal(0, 1.0, K))
    return given / given.sum(axis=1, keepdims=True), y


@pytest.fixture
def few_entries(monkeypatch):
    monkeypatch.setattr(judging_sample, "_ENTRIES", 4 * K * K)


def test_a_rule_is_found_that_a_sample_alone_does_not_show(few_entries):
    proba, y = draw_data()
    solution = mw.optimize(proba, y, "balanced_accuracy", classes=np.arange(K))
    assert solution.gain.estimate > 0
    new, labels = draw_data()
    assert np.mean(solution.rule.predict(new) == labels) > np.mean(new.argmax(axis=1) == labels)


def test_the_link_is_that_of_the_rows_that_do_not_judge(few_entries, monkeypatch):
    recorded = []

    def draw(problem, seed):
        recorded.append((problem.source.rows, judging_sample.draw_judging_sample(problem, seed)))
        return recorded[-1][1]

    monkeypatch.setattr(selection, "draw_judging_sample", draw)
    proba, y = draw_data()
    mw.optimize(proba, y, "balanced_accuracy", classes=np.arange(K))
    ((rows, (sample, link)),) = recorded
    assert sample.n_rows == pytest.approx(4 * K, rel=0.2)
    judges = set(sample.source.rows.proba.blocks[0][:, 0, 0].tolist())
    others = np.array([number not in judges for number in rows.proba.blocks[0][:, 0, 0].tolist()])
    assert others.sum() == N - sample.n_rows
    expected = fit_link(rows.proba.take(others), rows.codes[others])
    np.testing.assert_allclose(link.temperature, expected.temperature, atol=5e-3)
    np.testing.assert_allclose(link.bias, expected.bias, atol=0.05)


@pytest.mark.parametrize("change", ["few rows", "copies", "groups"])
def test_there_is_none_where_others_would_know_it(few_entries, monkeypatch, change):
    recorded = []

    def draw(problem, seed):
        recorded.append(judging_sample.draw_judging_sample(problem, seed))
        return recorded[-1]

    monkeypatch.setattr(selection, "draw_judging_sample", draw)
    proba, y = draw_data()
    options = {"groups": np.arange(N) // 2} if change == "groups" else {}
    if change == "few rows":
        proba, y = proba[:1_000], y[:1_000]
    elif change == "copies":
        proba, y = np.repeat(proba[:1_100], 2, axis=0), np.repeat(y[:1_100], 2)
    mw.optimize(proba, y, "balanced_accuracy", classes=np.arange(K), **options)
    assert recorded == [None]


def test_the_note_says_why_argmax_is_kept_for_the_smallest_recall():
    proba, y = draw_data()
    solution = mw.optimize(proba[:600], y[:600], "min_recall", classes=np.arange(K))
    assert solution.outcome.value == "argmax"
    assert "differs between samples by more than rules differ" in solution.status
