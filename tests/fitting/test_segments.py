"""Rules by segment: what they reach, when they go back to one rule, and what composes with them."""

import numpy as np
import pytest
from scipy.special import expit, softmax
from sklearn.metrics import f1_score, precision_score, recall_score

import metricwise as mw
from metricwise.core.notes import NoteKind
from metricwise.fitting import segments as fitting
from metricwise.rules import SegmentedRule

S = 12


def world(n_rows, base=1.0, slope=0.3, seed=0, n_segments=S, shift=0):
    """Probabilities, labels, segments and true probabilities of so many rows of each segment.

    `seed` is that of the segments, `shift` that of the rows.
    """
    rng = np.random.default_rng(seed)
    a, b = np.exp(rng.normal(0, slope, n_segments)), rng.normal(0, base, n_segments)
    rng = np.random.default_rng([seed, n_rows, shift])
    segment = np.repeat(np.arange(n_segments), n_rows)
    z = rng.normal(-2.0, 1.5, len(segment))
    truth = expit(a[segment] * (z + 2) - 2 + b[segment])
    return expit(z), (rng.random(len(z)) < truth).astype(int), segment, truth


def test_the_rule_approaches_that_of_the_true_probabilities():
    p, y, segment, _ = world(1500)
    new_p, new_y, new_segment, truth = world(5000, shift=1)
    rule = mw.optimize(p, y, "f1", segments=segment).rule
    assert isinstance(rule, SegmentedRule)
    value = f1_score(new_y, rule.predict(new_p, segments=new_segment))
    best = max(f1_score(new_y, truth > t) for t in np.linspace(0.1, 0.6, 101))
    one = f1_score(new_y, mw.optimize(p, y, "f1").rule.predict(new_p))
    assert best - 0.006 < value <= best
    assert value > one + 0.03


def test_three_classes_approach_the_best_rule_too():
    rng = np.random.default_rng(0)
    bias = rng.normal(0, 1, (S, 3))

    def rows(n, seed):
        rng = np.random.default_rng(seed)
        segment = np.repeat(np.arange(S), n)
        z = rng.normal(0, 1.5, (len(segment), 3)) + np.array([1, 0, -0.5])
        truth = softmax(z + bias[segment], axis=1)
        y = (rng.random((len(z), 1)) > truth.cumsum(axis=1)).sum(axis=1)
        return softmax(z, axis=1), np.minimum(y, 2), segment, truth

    p, y, segment, _ = rows(800, 1)
    new_p, new_y, new_segment, truth = rows(4000, 2)
    rule = mw.optimize(p, y, "macro_f1", segments=segment).rule
    value = f1_score(new_y, rule.predict(new_p, segments=new_segment), average="macro")
    best = f1_score(new_y, mw.optimize(truth, new_y, "macro_f1").rule.predict(truth), average="macro")
    assert best - 0.008 < value < best + 0.002


@pytest.mark.parametrize("metric", ["f1", "accuracy"])
def test_segments_that_say_nothing_have_the_rule_without_segments(metric):
    p, y, segment, _ = world(200, base=0.0, slope=0.0, seed=3)
    with_segments = mw.optimize(p, y, metric, segments=segment)
    without = mw.optimize(p, y, metric)
    assert with_segments.rule == without.rule
    assert (with_segments.value, with_segments.baseline) == (without.value, without.baseline)
    assert (with_segments.gain, with_segments.candidates) == (without.gain, without.candidates)
    assert with_segments.rule.predict(p, segments=segment).tolist() == without.rule.predict(p).tolist()
    (note,) = [note for note in with_segments.notes if note.kind is NoteKind.SEGMENTS]
    assert "All 12 segments have one rule" in note.text


@pytest.mark.slow
def test_segments_are_taken_for_different_by_chance_in_few_draws():
    taken = 0
    for seed in range(40):
        p, y, segment, _ = world(60, base=0.0, slope=0.0, seed=seed, n_segments=40)
        taken += isinstance(mw.optimize(p, y, "f1", segments=segment).rule, SegmentedRule)
    assert taken <= 8


def test_values_are_those_of_the_rule_on_the_given_rows():
    p, y, segment, _ = world(200)
    solution = mw.optimize(p, y, "f1", segments=segment, record=["recall", "accuracy"])
    decided = solution.predict(p, segments=segment)
    assert solution.value == pytest.approx(f1_score(y, decided), abs=1e-12)
    assert solution.baseline == pytest.approx(f1_score(y, p > 0.5), abs=1e-12)
    assert solution.recorded["recall"].value == pytest.approx(recall_score(y, decided), abs=1e-12)
    assert solution.recorded["recall"].baseline == pytest.approx(recall_score(y, p > 0.5), abs=1e-12)
    counts = np.array([[np.mean((y == i) & (decided == j)) for j in range(2)] for i in range(2)])
    np.testing.assert_allclose(solution.confusion[0] if solution.confusion.ndim == 3 else solution.confusion, counts)
    (note,) = [note for note in solution.notes if note.kind is NoteKind.SEGMENTS]
    assert "12 segments have rules of their own" in note.text


def test_candidates_are_compared_with_argmax_of_the_given_probabilities():
    p, y, segment, _ = world(400)
    solution = mw.optimize(p, y, "f1", segments=segment)
    (candidate,) = solution.candidates
    assert candidate.value - candidate.gain == pytest.approx(f1_score(y, p > 0.5), abs=1e-12)


@pytest.mark.slow
def test_the_interval_of_the_gain_covers_the_gain_on_fresh_rows():
    inside = []
    for seed in range(25):
        p, y, segment, _ = world(150, seed=seed)
        new_p, new_y, new_segment, _ = world(4000, seed=seed, shift=1)
        solution = mw.optimize(p, y, "f1", segments=segment)
        decided = solution.rule.predict(new_p, segments=new_segment)
        gain = f1_score(new_y, decided) - f1_score(new_y, new_p > 0.5)
        inside.append(solution.gain.low <= gain <= solution.gain.high)
    assert np.mean(inside) >= 0.84


def test_missing_segments_count_for_the_common_rule():
    p, y, segment, _ = world(200)
    names = np.array([f"s{s}" for s in segment], dtype=object)
    names[::10] = None
    rule = mw.optimize(p, y, "f1", segments=names).rule
    assert len(rule.segments) == S
    assert rule.predict(p[:5], segments=[None] * 5).tolist() == rule.common.predict(p[:5]).tolist()


def test_two_columns_are_combined():
    pd = pytest.importorskip("pandas")
    p, y, segment, _ = world(300)
    frame = pd.DataFrame({"land": np.array(list("abcd"))[segment // 3], "device": segment % 3})
    rule = mw.optimize(p, y, "f1", segments=frame).rule
    assert rule.features == ("land", "device")
    assert rule.segments[0] == ("a", 0)
    one = mw.optimize(p, y, "f1", segments=segment).rule
    assert rule.predict(p, segments=frame).tolist() == one.predict(p, segments=segment).tolist()


def test_the_order_of_rows_does_not_matter():
    p, y, segment, _ = world(150)
    order = np.random.default_rng(5).permutation(len(y))
    one, other = (mw.optimize(p[rows], y[rows], "f1", segments=segment[rows]).rule for rows in (slice(None), order))
    np.testing.assert_allclose(one.bias, other.bias, atol=1e-6)


# --------------------------------------------------------------------------------------------- what composes with them


@pytest.mark.parametrize("confidence", [0.95, None])
def test_constraints_hold_over_all_rows_together(confidence):
    p, y, segment, _ = world(300)
    options = {"subject_to": "precision >= 0.5", "confidence": confidence}
    solution = mw.optimize(p, y, "recall", segments=segment, **options)
    assert isinstance(solution.rule, SegmentedRule)
    decided = solution.predict(p, segments=segment)
    (result,) = solution.constraints
    assert result.value == pytest.approx(precision_score(y, decided), abs=1e-12)
    assert result.value >= 0.5
    assert result.confidence == confidence
    one = mw.optimize(p, y, "recall", **options)
    assert solution.value > one.value
    new_p, new_y, new_segment, _ = world(5000, shift=1)
    precision = precision_score(new_y, solution.predict(new_p, segments=new_segment))
    assert precision >= (0.5 if confidence else 0.46)


def test_mixtures_are_counted_by_their_shares():
    p, y, segment, _ = world(200)
    strategy = mw.Strategy(randomized=True)
    options = {"subject_to": "precision >= 0.55", "confidence": None, "strategy": strategy}
    solution = mw.optimize(p, y, "recall", segments=segment, **options)
    shares = solution.rule.distribution(p, segments=segment)[:, 1]
    assert solution.rule.is_randomized
    assert solution.value == pytest.approx((shares * y).sum() / y.sum(), abs=1e-9)


def test_abstention():
    p, y, segment, _ = world(300)
    solution = mw.optimize(p, y, "accuracy", abstain=0.2, segments=segment)
    decided = solution.predict(p, segments=segment)
    right = np.array([d == t for d, t in zip(decided.tolist(), y.tolist(), strict=True)])
    abstained = np.array([d not in (0, 1) for d in decided.tolist()])
    assert 0 < abstained.mean() < 1
    assert solution.value == pytest.approx(right.mean() + 0.8 * abstained.mean(), abs=1e-9)


@pytest.mark.parametrize("kind", ["logits", "log_proba", "scores"])
def test_logits_and_scores(kind):
    p, y, segment, _ = world(300)
    z = np.log(p / (1 - p))
    numbers = {"logits": z, "log_proba": np.log(np.stack([1 - p, p], axis=1)), "scores": 7 * z + 3}[kind]
    solution = mw.optimize(numbers, y, "f1", input=kind, segments=segment)
    assert isinstance(solution.rule, SegmentedRule)
    of_proba = mw.optimize(p, y, "f1", segments=segment)
    decided = solution.predict(numbers, segments=segment)
    assert solution.value == pytest.approx(f1_score(y, decided), abs=1e-12)
    assert np.mean(decided == of_proba.predict(p, segments=segment)) > 0.97
    assert mw.load_rule(solution.rule.to_json()).predict(numbers, segments=segment).tolist() == decided.tolist()


def test_several_outputs_with_missing_labels():
    p, y, segment, _ = world(300)
    rng = np.random.default_rng(0)
    q = softmax(rng.normal(0, 1.5, (len(y), 3)), axis=1)
    third = (rng.random((len(y), 1)) > q.cumsum(axis=1)).sum(axis=1)
    labels = np.stack([y, third], axis=1).astype(float)
    labels[::7, 0] = np.nan
    proba = [np.stack([1 - p, p], axis=1), q]
    solution = mw.optimize(proba, labels, "macro_f1", average="macro", segments=segment)
    assert isinstance(solution.rule, SegmentedRule)
    assert solution.rule.temperature.shape == (S, 2)
    decided, known = solution.predict(proba, segments=segment), ~np.isnan(labels[:, 0])
    first = f1_score(y[known], decided[known, 0], average="macro")
    assert solution.value == pytest.approx((first + f1_score(third, decided[:, 1], average="macro")) / 2, abs=1e-12)


def test_multilabel_by_micro_average():
    p, y, segment, _ = world(200)
    q, other, _, _ = world(200, shift=7)
    solution = mw.optimize(np.stack([p, q], axis=1), np.stack([y, other], axis=1), "f1", segments=segment)
    decided = solution.predict(np.stack([p, q], axis=1), segments=segment)
    expected = f1_score(np.r_[y, other], decided.T.reshape(-1))
    assert solution.value == pytest.approx(expected, abs=1e-12)


def test_weights_prior_and_time():
    p, y, segment, _ = world(200)
    weight = np.random.default_rng(0).uniform(0.1, 2, len(y))
    solution = mw.optimize(p, y, "f1", sample_weight=weight, segments=segment)
    decided = solution.predict(p, segments=segment)
    assert solution.value == pytest.approx(f1_score(y, decided, sample_weight=weight), abs=1e-12)
    shifted = mw.optimize(p, y, "f1", prior=[0.5, 0.5], segments=segment).rule
    assert shifted.predict(p, segments=segment).mean() > decided.mean()
    time = mw.InTime(np.random.default_rng(1).permutation(len(y)), length=10)
    assert isinstance(mw.optimize(p, y, "f1", groups=time, segments=segment).rule, SegmentedRule)


def test_rows_that_belong_together_are_left_out_together():
    """Segments that are clusters are never seen in other folds: nothing can be learnt of them."""
    p, y, segment, _ = world(200)
    solution = mw.optimize(p, y, "f1", groups=segment, segments=segment)
    assert not isinstance(solution.rule, SegmentedRule)


def test_copies_of_rows_are_left_out_together():
    p, y, segment, _ = world(60, base=0.0, slope=0.0, seed=1)
    rows = np.tile(np.arange(len(y)), 4)
    solution = mw.optimize(p[rows], y[rows], "f1", segments=segment[rows])
    assert not isinstance(solution.rule, SegmentedRule)


def test_folds_are_even_within_segments_and_do_not_depend_on_labels():
    p, y, segment, _ = world(100)
    problem = mw.optimize(p, y, "f1", segments=segment).problem
    rows = fitting._in_memory(problem)
    fold = fitting._deal_folds(rows, segment, 0)
    assert all(np.ptp(np.bincount(fold[segment == s], minlength=5)) <= 1 for s in range(S))


def test_many_rows_are_sampled_by_segment(monkeypatch):
    p, y, segment, _ = world(100, n_segments=60)
    full = mw.optimize(p, y, "f1", segments=segment).rule
    monkeypatch.setattr(fitting, "_MAX_NUMBERS", 12_000)
    sampled = mw.optimize(p, y, "f1", segments=segment).rule
    assert isinstance(sampled, SegmentedRule)
    assert np.mean(full.predict(p, segments=segment) == sampled.predict(p, segments=segment)) > 0.9


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"sensitive_features": "segment"}, "segments and sensitive_features cannot both be given"),
        ({"metric": "cost", "cost": "cost"}, "segments and cost cannot both be given"),
        ({"strategy": mw.Strategy(recalibrate=False)}, "recalibrate=False.* cannot be combined with segments"),
        (
            {"metric": "recall", "subject_to": "precision >= 0.3", "guarantee": "exact"},
            "guarantee='exact' cannot be combined with segments",
        ),
        ({"y": None}, "y must be given if segments are"),
        ({"segments": "one"}, "segments must contain at least two segments, got only"),
        ({"segments": [1, 2]}, "segments must have one value for each of the"),
    ],
)
def test_what_segments_cannot_be_combined_with(options, error):
    p, y, segment, _ = world(20)
    arrays = {"segment": segment, "cost": np.ones((len(y), 2)), "one": np.zeros(len(y))}
    given = {"proba": p, "y": y, "metric": "f1", "segments": segment, **options}
    given = {name: arrays.get(value, value) if isinstance(value, str) else value for name, value in given.items()}
    with pytest.raises(ValueError, match=f"optimize: .*{error}"):
        mw.optimize(**given)


def test_one_score_of_ordered_classes_and_very_many_labels_are_refused():
    p, y, segment, _ = world(30)
    with pytest.raises(ValueError, match="segments need a number for each class"):
        mw.optimize(p, y + (p > 0.3), "quadratic_kappa", input="scores", segments=segment)
    with pytest.raises(ValueError, match="segments must be left out with sparse probabilities or labels_per_row"):
        mw.optimize(np.stack([p, p], 1), np.stack([y, y], 1), "f1", labels_per_row=1, segments=segment)


def test_tables_are_refused(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    p, y, segment, _ = world(30)
    pq.write_table(pa.table({"1": p, "0": 1 - p, "y": y}), tmp_path / "rows.parquet")
    with pytest.raises(ValueError, match="segments need rows in memory"):
        mw.optimize(mw.Table(tmp_path / "rows.parquet"), "y", "f1", segments=segment)


# ------------------------------------------------------------------------------------------------------- other callers


def test_evaluate_takes_segments():
    p, y, segment, _ = world(300)
    solution = mw.optimize(p, y, "f1", segments=segment)
    one = mw.optimize(p, y, "f1").rule
    both = mw.evaluate(solution, p, y, ["f1", "recall"], segments=segment, against=one)
    decided = solution.predict(p, segments=segment)
    assert both["f1"].value.estimate == pytest.approx(f1_score(y, decided), abs=1e-12)
    assert both["recall"].baseline.estimate == pytest.approx(recall_score(y, one.predict(p)), abs=1e-12)
    groups = mw.evaluate(solution, p, y, "f1", segments=segment, sensitive_features=segment % 2)
    inside = segment % 2 == 0
    assert groups.by_group[0]["f1"].value.estimate == pytest.approx(f1_score(y[inside], decided[inside]), abs=1e-12)
    with pytest.raises(ValueError, match="evaluate: the rule has a calibration for each segment"):
        mw.evaluate(solution, p, y, "f1")


def test_estimators_take_segments():
    linear_model = pytest.importorskip("sklearn.linear_model")
    p, y, segment, _ = world(300)
    X = np.log(p / (1 - p))[:, None]
    model = mw.MetricOptimalClassifierCV(linear_model.LogisticRegression(), metric="f1")
    model.fit(X, y, segments=segment)
    assert isinstance(model.rule_, SegmentedRule)
    decided = model.predict(X, segments=segment)
    assert decided.tolist() == model.rule_.predict(model.decision_input(X), segments=segment).tolist()
    assert model.score(X, y, segments=segment) == pytest.approx(f1_score(y, decided), abs=1e-12)
    fixed = mw.FixedRuleClassifier(model.estimator_, model.rule_)
    assert fixed.predict(X, segments=segment).tolist() == decided.tolist()
    assert fixed.score(X, y, segments=segment) == pytest.approx(np.mean(decided == y))
    with pytest.raises(ValueError, match="needs segments"):
        model.predict(X)


def test_reports_and_files(tmp_path):
    p, y, segment, _ = world(100, n_segments=200)
    solution = mw.optimize(p, y, "f1", segments=segment)
    solution.report(tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text()
    assert "A rule for each of 200 segments" in text
    solution.save(tmp_path / "solution.json")
    again = mw.load_solution(tmp_path / "solution.json")
    assert again.rule == solution.rule
    assert again.notes == solution.notes
    with pytest.raises(ValueError, match="calibrates each segment by itself"):
        solution.plot()
