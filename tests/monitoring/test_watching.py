"""The watch as users call it: batches, labels that come late, errors that change nothing, all kinds of rules."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import accuracy_score, cohen_kappa_score, f1_score, precision_score, recall_score

import metricwise as mw
import worlds

THRESHOLD = mw.WeightedRule.from_thresholds(0.5)
WORDS = mw.WeightedRule.from_weights({"low": 1, "mid": 2, "urgent": 3})


def day(n, seed, good=1.0):
    rng = np.random.default_rng(seed)
    proba = rng.beta(1, 2, n)
    return proba, (rng.random(n) < good * proba).astype(int)


def state_of(watch):
    return watch.to_json()


# ---------------------------------------------------------------------------------------------------- values and breaks


def test_values_are_those_of_all_rows_so_far():
    watch = mw.watch(THRESHOLD, ["precision >= 0.1", "recall >= 0.1", "f1 >= 0.1", "accuracy >= 0.1", "share <= 0.9"])
    proba, y = day(600, 0)
    for part in np.array_split(np.arange(600), 5):
        watch.update(proba[part], y[part])
    decided = (proba > 0.5).astype(int)
    scores = [precision_score, recall_score, f1_score, accuracy_score]
    expected = [*(score(y, decided) for score in scores), decided.mean()]
    assert [status.estimate.estimate for status in watch.promises] == pytest.approx(expected)
    assert all(s.estimate.low < s.estimate.estimate < s.estimate.high for s in watch.promises)
    assert [status.n_rows for status in watch.promises][:2] == [decided.sum(), y.sum()]
    assert (watch.n_batches, watch.n_rows, watch.n_labelled, watch.n_waiting) == (5, 600, 600, 0)
    assert not watch.broken


def test_kappa_is_near_that_of_all_rows():
    proba, y = day(4000, 0)
    watch = mw.watch(THRESHOLD, "kappa >= 0.1").update(proba, y)
    assert watch.promises[0].estimate.estimate == pytest.approx(cohen_kappa_score(y, proba > 0.5), abs=0.03)


def test_a_break_is_found_and_named():
    rule = mw.optimize(*day(4000, 99), "recall", subject_to="precision >= 0.6").rule
    watch = mw.watch(rule)
    for batch in range(25):
        watch.update(*day(200, batch, good=1.0 if batch < 12 else 0.7))
    (status,) = watch.promises
    assert watch.broken
    assert status.broken
    assert 10 <= status.since <= 15 < status.found + 3
    assert status.evidence > status.limit == pytest.approx(20.0)
    assert status.recent < 0.6
    assert status.sentence.startswith("Broken: precision >= 0.6 (")
    assert f"since about batch {status.since}, found in batch {status.found}. Refit the rule" in repr(watch)


@pytest.mark.parametrize(("size", "n_recent"), [(1, 100), (10, 100), (50, 250)])
def test_recent_rows_are_five_batches_or_a_hundred_rows(size, n_recent):
    watch = mw.watch(THRESHOLD, ["accuracy >= 0.1", "share <= 0.9"])
    proba, y = day(400, 0)
    for start in range(0, 400, size):
        watch.update(proba[start : start + size], y[start : start + size])
    decided = proba[-n_recent:] > 0.5
    expected = [np.mean(decided == y[-n_recent:]), decided.mean()]
    assert [status.recent for status in watch.promises] == pytest.approx(expected)


def test_the_error_is_shared_by_all_bounds():
    watch = mw.watch(THRESHOLD, ["0.1 <= share <= 0.9", "precision >= 0.1"], alpha=0.1)
    assert [status.limit for status in watch.promises] == pytest.approx([30.0, 30.0])


def test_a_promise_without_rows_is_not_known():
    watch = mw.watch(THRESHOLD, ["precision >= 0.5", "share <= 0.5"]).update([0.2, 0.6])
    precision, share = watch.promises
    assert (precision.estimate, precision.recent, precision.evidence) == (None, None, 1.0)
    assert precision.sentence == "Not known yet: precision >= 0.5. No row that it is about has a label."
    assert share.estimate.estimate == 0.5
    assert repr(watch).startswith("Watch: 1 batch, 2 rows, 0 with a label.\nNot known yet")


def test_predicted_shares_need_no_labels_and_ignore_late_ones():
    watch = mw.watch(THRESHOLD, "share <= 0.5").update([0.2, 0.6, 0.7], ids=[1, 2, 3])
    before = watch.promises[0]
    after = watch.update_labels([3, 1], [0, 0]).promises[0]
    assert (after.evidence, after.estimate, after.n_rows) == (before.evidence, before.estimate, 3)


def test_null_streams_by_the_public_call():
    """60 streams of 1,000 rows on the promise, in batches of 100."""
    n_broken = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        watch = mw.watch(THRESHOLD, "accuracy >= 0.9")
        for _ in range(10):
            y = rng.integers(0, 2, 100)
            watch.update(np.where(rng.random(100) < 0.9, y, 1 - y).astype(float), y)
        n_broken += watch.broken
    assert n_broken / 60 <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / 60)


# ---------------------------------------------------------------------------------------------------------- late labels


def test_labels_that_come_late_in_one_call_are_labels_at_once():
    """In one batch, whatever the order: the same evidence, too. In several, the same values and intervals."""
    promises = ["precision >= 0.55", "macro_f1 >= 0.5", "accuracy >= 0.7", "share within 0.2 of prior"]
    proba, y = day(300, 1)
    ids = [f"r{n}" for n in range(300)]
    at_once = mw.watch(THRESHOLD, promises).update(proba, y, ids)
    order = np.random.default_rng(0).permutation(300)
    late = mw.watch(THRESHOLD, promises).update(proba, ids=ids)
    late.update_labels([ids[n] for n in order], y[order])
    in_parts = mw.watch(THRESHOLD, promises).update(proba, ids=ids)
    for part in np.array_split(order, 4):
        in_parts.update_labels([ids[n] for n in part], y[part])
    for a, b, c in zip(at_once.promises, late.promises, in_parts.promises, strict=True):
        assert (a.evidence, a.estimate, a.recent, a.n_rows) == (b.evidence, b.estimate, b.recent, b.n_rows)
        assert (a.estimate, a.n_rows) == (c.estimate, c.n_rows)
        assert c.recent == pytest.approx(a.recent)


def test_late_labels_are_counted_in_the_batch_of_their_decision():
    watch = mw.watch(THRESHOLD, "precision >= 0.2")
    watch.update([0.9, 0.8], ids=["a", "b"]).update([0.7, 0.6], y=[1, 1])
    summary = watch.update_labels(["b"], [0]).summary()
    assert summary["promises"][0]["values"] == [0.0, 1.0, None]
    assert summary["promises"][0]["running"] == [None, 1.0, pytest.approx(2 / 3)]
    assert summary["history"]["rows"] == [2, 2, 0]


def test_rows_wait_for_their_labels_and_are_forgotten():
    watch = mw.watch(THRESHOLD, "precision >= 0.5", forget_after=2)
    watch.update([0.9, 0.1, 0.8], y=[1, None, None], ids=["a", "b", "c"])
    assert (watch.n_waiting, watch.n_labelled) == (2, 1)
    watch.update_labels(["b", "c"], [None, 1])
    assert (watch.n_waiting, watch.n_labelled) == (1, 2)
    watch.update([0.9]).update([0.9])
    assert watch.n_waiting == 0
    assert watch.notes == ("1 row was waited for in vain: no label came in time.",)
    assert repr(watch).endswith(watch.notes[0])
    with pytest.raises(ValueError, match="got 'b', which was never decided with this id, or is no longer waited for"):
        watch.update_labels(["b"], [1])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda w: w.update([0.3, 0.4], y=[0, 1], ids=["x", "a"]), "update: ids must be of rows that were not decided"),
        (lambda w: w.update([0.3], ids=["b"]), "got 'b', which was decided before and has its label"),
        (lambda w: w.update([0.3, 0.4], ids=["x", "x"]), "ids must be distinct, got 'x' twice"),
        (lambda w: w.update([0.3, 0.4], y=[0, 7]), r"y must hold only the classes \[0, 1\], got 7"),
        (lambda w: w.update([0.3, 1.4], y=[0, 1]), "proba must"),
        (lambda w: w.update([0.3], y=[0, 1]), "y must have as many rows as proba, 1, got 2"),
        (lambda w: w.update_labels(["a", "b"], [1, 0]), "got 'b', which has its label already"),
        (lambda w: w.update_labels(["a", "b"], [1, None]), "got 'b', which has its label already"),
        (lambda w: w.update_labels(["a", "q"], [1, 0]), "update_labels: ids must be of rows that wait"),
        (lambda w: w.update_labels(["a"], [1, 0]), "ids must have one id for each of the 2 rows"),
        (lambda w: w.update([0.3], cost=[[1, 2]]), "cost must be left out"),
    ],
)
def test_an_error_changes_nothing(call, message):
    watch = mw.watch(THRESHOLD, ["precision >= 0.5", "kappa >= 0.1"]).update([0.6, 0.7], y=[None, 1], ids=["a", "b"])
    before = state_of(watch)
    with pytest.raises(ValueError, match=message):
        call(watch)
    assert state_of(watch) == before


# -------------------------------------------------------------------------------- labels that are not missing at random


def looked_at(n, seed):
    proba, y = day(n, seed)
    return proba, np.where(proba > 0.5, y, np.nan)


def test_labels_of_predicted_positives_alone_are_noticed():
    watch = mw.watch(THRESHOLD, "accuracy >= 0.5")
    with pytest.raises(
        ValueError, match=r"rows with the decision 0, 0 have labels, far fewer .* labelled='by_decision'"
    ):
        watch.update(*looked_at(400, 3))
    assert watch.n_rows == 0
    for batch in range(5):  # labels of all rows are fine
        watch.update(*day(100, batch))
    assert watch.n_rows == 500


def test_precision_is_known_anyway():
    plain, said = (
        mw.watch(THRESHOLD, "precision >= 0.5"),
        mw.watch(THRESHOLD, "precision >= 0.5", labelled="by_decision"),
    )
    for batch in range(10):
        plain.update(*looked_at(200, batch))
        said.update(*looked_at(200, batch))
    assert plain.promises == said.promises
    with pytest.raises(
        ValueError, match=r"'recall >= 0\.5' cannot be known if whether the label of a row becomes known"
    ):
        mw.watch(THRESHOLD, "recall >= 0.5", labelled="by_decision")


# ------------------------------------------------------------------------------------------------------- kinds of rules


def test_several_outputs():
    proba, y = worlds.outputs(500, [(2, 1), (3, 1)])
    proba = np.stack([part[:, 1] for part in proba], axis=1) if isinstance(proba, list) else proba[:, :, 1]
    y = np.asarray(y, dtype=float)
    y[::7, 0] = np.nan
    rule = mw.WeightedRule.from_thresholds([0.4, 0.3])
    watch = mw.watch(rule, ["f1 >= 0.1", "recall[1, 1] >= 0.1", "accuracy[0] >= 0.1"])
    watch.update(proba[:300], y[:300]).update(proba[300:], y[300:])
    decided = (proba > [0.4, 0.3]).astype(int)
    known = ~np.isnan(y)
    pooled = f1_score(y[known], decided[known])
    recall = recall_score(y[:, 1], decided[:, 1])
    accuracy = accuracy_score(y[known[:, 0], 0], decided[known[:, 0], 0])
    assert [s.estimate.estimate for s in watch.promises] == pytest.approx([pooled, recall, accuracy])
    late = mw.watch(rule, "f1 >= 0.1").update(proba, ids=np.arange(500)).update_labels(np.arange(500), y)
    assert late.promises[0].estimate == mw.watch(rule, "f1 >= 0.1").update(proba, y).promises[0].estimate
    assert late.n_waiting == 0


def test_a_row_is_one_observation_of_pooled_outputs():
    """Outputs of a row that fail together are one failure: products over outputs would be five."""
    rule = mw.WeightedRule.from_thresholds([0.5] * 5)
    n_broken = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        watch = mw.watch(rule, "hamming_accuracy >= 0.9")
        for _ in range(6):
            y = rng.integers(0, 2, (100, 5))
            hit = rng.random((100, 1)) < 0.9  # all outputs at once
            watch.update(np.where(hit, y, 1 - y).astype(float), y)
        n_broken += watch.broken
    assert n_broken / 40 <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / 40)


def test_rules_by_group():
    rule = mw.GroupedRule((THRESHOLD, mw.WeightedRule.from_thresholds(0.3)), ("a", "b"))
    proba, y = day(400, 0)
    groups = np.where(np.arange(400) % 3 == 0, "a", "b")
    watch = mw.watch(rule, ["recall >= 0.1 in every group", "accuracy >= 0.5"])
    watch.update(proba, y, sensitive_features=groups)
    decided = proba > np.where(groups == "a", 0.5, 0.3)
    expected = [recall_score(y[groups == g], decided[groups == g]) for g in "ab"] + [accuracy_score(y, decided)]
    assert [status.estimate.estimate for status in watch.promises] == pytest.approx(expected)
    late = mw.watch(rule, ["recall >= 0.1 in every group", "accuracy >= 0.5"])
    late.update(proba, ids=np.arange(400), sensitive_features=groups)
    late = mw.load_watch(late.to_json()).update_labels(np.arange(400), y)
    assert [s.estimate for s in late.promises] == [s.estimate for s in watch.promises]
    with pytest.raises(ValueError, match="it needs sensitive_features, the group of every row"):
        watch.update(proba, y)


def test_rules_by_costs_and_mixtures():
    costs = mw.optimize(*day(800, 0), "cost", cost=np.tile([1.0, 4.0], (800, 1))).rule
    proba, y = day(100, 1)
    table = np.tile([1.0, 4.0], (100, 1))
    watch = mw.watch(costs, "recall >= 0.1").update(proba, y, cost=table)
    decided = costs.predict(proba, cost=table)
    assert watch.promises[0].estimate.estimate == pytest.approx(recall_score(y, decided))
    mixture = mw.MixtureRule((THRESHOLD, mw.WeightedRule.from_thresholds(0.2)), [0.5, 0.5])
    for start in (0, 1000):
        watch = mw.watch(mixture, "recall >= 0.1").update(proba, y, start=start)
        decided = mixture.predict(proba, start=start)
        assert watch.promises[0].estimate.estimate == pytest.approx(recall_score(y, decided))


def test_abstentions():
    proba, y = worlds.binary(3000)
    rule = mw.optimize(proba, y, "accuracy", abstain=True, subject_to="abstained <= 0.3 and precision >= 0.5").rule
    watch = mw.watch(rule).update(proba, y)
    decided = rule.predict(proba)
    share, precision = (status.estimate.estimate for status in watch.promises)
    assert share == pytest.approx(np.mean(decided == -1))
    assert precision == pytest.approx(np.mean(y[decided == 1]))
    (output,) = watch.summary()["history"]["outputs"]
    assert output["decisions"] == ["0", "1", "-1"]
    assert sum(output["shares"][0]) == pytest.approx(1.0)


def test_frames_solutions_and_texts():
    proba = pd.DataFrame(np.random.default_rng(0).dirichlet([2, 1, 1], 50), columns=["urgent", "low", "mid"])
    y = pd.Series(["urgent", "low", "mid", None, "low"] * 10, index=range(100, 150))
    watch = mw.watch(WORDS.to_json(), "recall[urgent] >= 0.1").update(proba, y, ids=pd.Series(range(50)))
    decided = WORDS.predict(proba)
    expected = np.mean(decided[y.to_numpy() == "urgent"] == "urgent")
    assert watch.promises[0].estimate.estimate == pytest.approx(expected)
    assert watch.n_waiting == 10
    solution = mw.optimize(*day(1000, 0), "recall", subject_to="precision >= 0.4")
    assert mw.watch(solution).rule == solution.rule


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": 0}, "watch: alpha must be a number between 0 and 1, got 0"),
        ({"alpha": True}, "alpha must be a number between 0 and 1"),
        ({"labelled": "never"}, "labelled must be 'random', 'by_decision' or 'by_class', got 'never'"),
        ({"forget_after": 0}, "forget_after must be a number of batches from 1, or None, got 0"),
        ({"forget_after": 1.5}, "forget_after must be a number of batches"),
        ({"subject_to": "precision > 0.5"}, "subject_to"),
        ({"subject_to": None}, "watch: subject_to must name what is promised"),
    ],
)
def test_refused_settings(options, message):
    with pytest.raises(ValueError, match=message):
        mw.watch(THRESHOLD, **{"subject_to": "precision >= 0.5", **options})


def test_what_is_no_rule_is_refused():
    with pytest.raises(TypeError, match="watch: rule must be a rule, a Solution, a JSON file or text"):
        mw.watch(0.5, "precision >= 0.5")


def test_long_streams_keep_few_records(monkeypatch):
    from metricwise.monitoring import batches

    monkeypatch.setattr(batches, "MAX_BATCHES", 8)
    watch = mw.watch(THRESHOLD, "precision >= 0.2")
    proba, y = day(400, 0)
    for n in range(40):
        watch.update(proba[10 * n : 10 * n + 10], y[10 * n : 10 * n + 10], ids=np.arange(10 * n, 10 * n + 10))
    summary = watch.summary()
    assert len(summary["history"]["last"]) <= 8
    assert summary["history"]["last"][-1] == 40
    assert sum(summary["history"]["rows"]) == 400
    assert watch.promises[0].estimate.estimate == pytest.approx(precision_score(y, proba > 0.5))
    assert mw.load_watch(watch.to_json()).to_json() == watch.to_json()
