"""optimize for sparse probabilities and labels per row: engines, weights, promises and refusals."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import f1_score, precision_score, recall_score

import metricwise as mw
from tests.worlds.labels import label_world

EXPECTED = mw.Strategy(confusion="expected", recalibrate=False)
RECALIBRATED = mw.Strategy(confusion="expected", recalibrate=True)
BLENDED = mw.Strategy(confusion="blended", recalibrate=True)
LABELS = mw.Strategy(confusion="labels", recalibrate=False)

GOALS = [
    {"metric": "f1_macro"},
    {"metric": "f1_macro", "labels_per_row": 3},
    {"metric": "f1_micro", "labels_per_row": (1, 3)},
    {"metric": "f1", "average": "micro"},
    {"metric": "precision_macro", "labels_per_row": (2, 2)},
    {"metric": "recall@3", "average": "macro"},
    {"metric": "precision@3"},
    {"metric": "propensity_precision@2"},
    {"metric": "label_coverage", "labels_per_row": 1},
    {"metric": "mcc", "average": "macro", "labels_per_row": 2},
    {"metric": "hamming_accuracy", "labels_per_row": 2},
    {"metric": "f1_weighted", "labels_per_row": 2},
]


def goal_id(goal):
    return " ".join(f"{key}={value}" for key, value in goal.items())


@pytest.fixture(scope="module")
def world():
    return label_world(400, 30, seed=0, missed=0.2)


@pytest.mark.parametrize("goal", GOALS, ids=goal_id)
@pytest.mark.parametrize("strategy", [EXPECTED, RECALIBRATED, BLENDED, LABELS, None], ids=str)
def test_values_are_those_of_predictions(world, goal, strategy):
    proba, y = world
    solution = mw.optimize(proba, y, strategy=strategy, **goal)
    decided = solution.rule.predict(proba)
    assert sparse.issparse(decided)
    assert decided.shape == proba.shape
    assert solution.value == pytest.approx(value_by_scikit_learn(goal, y, decided), abs=1e-12)
    at_k = "@" in goal["metric"]
    if "labels_per_row" in goal or at_k:
        k = int(goal["metric"][-1]) if at_k else goal["labels_per_row"]
        low, high = k if isinstance(k, tuple) else (k if at_k else 0, k)
        sizes = np.asarray(decided.sum(axis=1)).ravel()
        assert low <= sizes.min()
        assert sizes.max() <= high


def value_by_scikit_learn(goal, y, decided):
    true, decided = y.toarray(), decided.toarray()
    name, average = goal["metric"], goal.get("average", "micro")
    n_rows = len(true)
    if name == "precision@3":
        return (true * decided).sum() / (3 * n_rows)
    if name.startswith("propensity"):
        value = 1 / mw_propensity(true)
        best = sum(np.sort(value[row > 0])[::-1][:2].sum() for row in true)
        return (true * decided * value).sum() / best
    if name == "label_coverage":
        return ((true * decided).sum(axis=0) > 0).mean()
    if name == "hamming_accuracy":
        return (true == decided).mean()
    if name == "mcc":
        from sklearn.metrics import matthews_corrcoef

        return np.mean([matthews_corrcoef(true[:, m], decided[:, m]) for m in range(true.shape[1])])
    base, _, suffix = name.replace("@3", "").partition("_")
    score = {"f1": f1_score, "precision": precision_score, "recall": recall_score}[base]
    return score(true, decided, average=suffix or average, zero_division=0)


def mw_propensity(true):
    """Jain's formula, written down once more."""
    n_rows, count = len(true), true.sum(axis=0)
    C = (np.log(n_rows) - 1) * 2.5**0.55
    return 1 / (1 + C * (count + 1.5) ** -0.55)


@pytest.mark.parametrize("goal", GOALS, ids=goal_id)
@pytest.mark.parametrize("strategy", [EXPECTED, BLENDED], ids=str)
def test_all_ways_to_hand_over_rows_give_one_rule(world, goal, strategy):
    proba, y = world
    rule = mw.optimize(proba, y, strategy=strategy, **goal).rule
    pieces = [proba[:150], proba[150:151], proba[151:]], [y[:150], y[150:151], y[151:]]
    wide = sparse.csr_array((proba.data, proba.indices.astype(np.int64), proba.indptr.astype(np.int64)), proba.shape)
    others = {
        "pieces": pieces,
        "matrix": (sparse.csr_matrix(proba), sparse.csr_matrix(y)),
        "columns": (proba.tocsc(), y.tocoo()),
        "wide": (wide, y.astype(bool)),
        "dense y": (proba, y.toarray()),
    }
    for name, (other, labels) in others.items():
        assert mw.optimize(other, labels, strategy=strategy, **goal).rule == rule, name


@pytest.mark.parametrize("goal", [goal for goal in GOALS if "labels_per_row" in goal], ids=goal_id)
def test_dense_rows_decide_as_sparse_ones(world, goal):
    proba, y = world
    dense = mw.optimize(proba.toarray(), y.toarray(), strategy=EXPECTED, **goal)
    of_sparse = mw.optimize(proba, y, strategy=EXPECTED, **goal)
    assert dense.value == pytest.approx(of_sparse.value, abs=1e-12)
    np.testing.assert_array_equal(dense.rule.predict(proba.toarray()), of_sparse.rule.predict(proba).toarray())


@pytest.mark.parametrize("goal", GOALS[:6], ids=goal_id)
def test_whole_weights_are_repeated_rows(world, goal):
    proba, y = world
    rng = np.random.default_rng(0)
    weight = rng.integers(1, 4, 400)
    again = np.repeat(np.arange(400), weight)
    weighted = mw.optimize(proba, y, strategy=LABELS, sample_weight=weight.astype(float), **goal)
    repeated = mw.optimize(proba[again], y[again], strategy=LABELS, **goal)
    assert weighted.value == pytest.approx(repeated.value, abs=1e-9)
    assert (weighted.rule.predict(proba) != repeated.rule.predict(proba)).nnz == 0


@pytest.mark.parametrize("goal", [{"metric": "f1_macro"}, {"metric": "f1_macro", "labels_per_row": 2}], ids=goal_id)
def test_logits_decide_as_probabilities(world, goal):
    proba, y = world
    proba = proba.astype(np.float64)
    proba.data = np.clip(proba.data, 1e-4, 1 - 1e-4)
    logits = proba.copy()
    logits.data = np.log(proba.data / (1 - proba.data))
    for strategy in (EXPECTED, RECALIBRATED):
        rules = [
            mw.optimize(numbers, y, strategy=strategy, input=kind, **goal).rule
            for numbers, kind in ((proba, "probabilities"), (logits, "logits"))
        ]
        assert (rules[0].predict(proba) != rules[1].predict(logits)).nnz == 0


def test_scores_are_calibrated_by_labels(world):
    proba, y = world
    scores = proba.astype(np.float64)
    scores.data = 20 * np.log(np.clip(proba.data, 1e-4, 1 - 1e-4) / (1 - np.clip(proba.data, 1e-4, 1 - 1e-4))) + 7
    solution = mw.optimize(scores, y, "f1_macro", labels_per_row=3, input="scores")
    other = mw.optimize(proba, y, "f1_macro", labels_per_row=3)
    assert solution.value == pytest.approx(other.value, abs=0.03)
    with pytest.raises(ValueError, match="y must be given if input='scores'"):
        mw.optimize(scores, None, "f1_macro", labels_per_row=3, input="scores")


def test_without_labels_values_are_expected(world):
    proba, _ = world
    solution = mw.optimize(proba, None, "f1", average="micro", labels_per_row=2)
    decided = solution.rule.predict(proba).toarray()
    eta = proba.toarray().astype(np.float64)
    assert solution.counted == "expected"
    assert solution.gain is None
    assert solution.value == pytest.approx(2 * (eta * decided).sum() / (decided.sum() + eta.sum()), rel=1e-6)
    assert solution.gap == 0


def test_labels_that_are_not_stored_are_misses(world):
    proba, y = world
    solution = mw.optimize(proba, y, "recall@3")
    true = y.toarray()
    assert solution.value == pytest.approx((true * solution.rule.predict(proba).toarray()).sum() / true.sum())
    assert "of the true labels are not stored in proba, and count as misses" in solution.status


def test_output_weight_leaves_labels_out(world):
    proba, y = world
    weight = np.zeros(30)
    weight[:5] = 1.0
    solution = mw.optimize(proba, y, "f1_macro", output_weight=weight, strategy=EXPECTED)
    decided = solution.rule.predict(proba).toarray()
    assert solution.value == pytest.approx(f1_score(y.toarray()[:, :5], decided[:, :5], average="macro"))


def test_recorded_metrics_are_counted_beside(world):
    proba, y = world
    record = ["precision", "recall_micro", "precision@3", "label_coverage"]
    solution = mw.optimize(proba, y, "f1_macro", labels_per_row=3, record=record)
    decided, true = solution.rule.predict(proba).toarray(), y.toarray()
    assert solution.recorded["precision"].value == pytest.approx(
        precision_score(true, decided, average="macro", zero_division=0)
    )
    assert solution.recorded["recall_micro"].value == pytest.approx(recall_score(true, decided, average="micro"))
    assert solution.recorded["precision@3"].value == pytest.approx((true * decided).sum() / 1200)
    assert solution.recorded["label_coverage"].value == pytest.approx(((true * decided).sum(axis=0) > 0).mean())


# ---------------------------------------------------------------------------------------------------------- promises


def test_the_default_is_chosen_on_rows_left_out_and_gains_on_fresh_rows():
    gains, promised = [], []
    for seed in range(12):
        proba, y = label_world(600, 60, seed=seed, missed=0.2)
        fresh, y_fresh = label_world(600, 60, seed=1000 + seed, missed=0.2)
        solution = mw.optimize(proba, y, "f1_macro", labels_per_row=2)
        baseline = mw.LabelRule(np.ones(60), np.full(60, -0.5), 2)
        values = [
            f1_score(y_fresh.toarray(), rule.predict(fresh).toarray(), average="macro", zero_division=0)
            for rule in (solution.rule, baseline)
        ]
        gains.append(values[0] - values[1])
        promised.append(solution.gain)
    assert np.mean(gains) > 0.02
    assert np.mean([gain.estimate for gain in promised]) == pytest.approx(np.mean(gains), abs=0.02)


@pytest.mark.slow
def test_intervals_of_gains_cover_those_of_fresh_rows():
    covered = []
    for seed in range(150):
        proba, y = label_world(500, 40, seed=seed)
        solution = mw.optimize(proba, y, "f1_micro", labels_per_row=2)
        fresh, y_fresh = label_world(6000, 40, seed=10_000 + seed)
        baseline = mw.LabelRule(np.ones(40), np.full(40, -0.5), 2)
        true = y_fresh.toarray()
        value, other = (
            f1_score(true, rule.predict(fresh).toarray(), average="micro") for rule in (solution.rule, baseline)
        )
        covered.append(solution.gain.low - 1e-9 <= value - other <= solution.gain.high + 1e-9)
    assert np.mean(covered) > 0.88


@pytest.mark.slow
def test_a_precision_floor_holds_on_fresh_rows():
    kept, recalls = [], []
    for seed in range(100):
        proba, y = label_world(600, 40, seed=seed)
        rule = mw.optimize(proba, y, "recall_micro", subject_to="precision >= 0.6").rule
        fresh, y_fresh = label_world(8000, 40, seed=5000 + seed)
        decided, true = rule.predict(fresh).toarray(), y_fresh.toarray()
        kept.append((decided * true).sum() / decided.sum() >= 0.6)
        recalls.append((decided * true).sum() / true.sum())
    assert np.mean(kept) > 0.9
    assert np.mean(recalls) > 0.1


def test_a_precision_floor_on_given_rows_is_nearly_the_best_threshold(world):
    proba, y = world
    eta, true = proba.toarray(), y.toarray()
    options = {"strategy": mw.Strategy(confusion="labels", recalibrate=False), "confidence": None}
    solution = mw.optimize(proba, y, "recall_micro", subject_to="precision >= 0.6", **options)
    best = 0.0
    for cut in np.unique(eta):
        decided = eta > cut
        if decided.any() and (decided * true).sum() / decided.sum() >= 0.6:
            best = max(best, (decided * true).sum() / true.sum())
    (result,) = solution.constraints
    assert result.value >= 0.6
    assert solution.value >= 0.97 * best


def test_a_floor_in_every_label_holds_in_every_label(world):
    proba, y = world
    goal = {"metric": "recall_macro", "subject_to": "precision >= 0.6 in every label", "confidence": None}
    solution = mw.optimize(proba, y, **goal)
    decided, true = solution.rule.predict(proba).toarray(), y.toarray()
    hits, predicted = (decided * true).sum(axis=0), decided.sum(axis=0)
    assert ((hits >= 0.6 * predicted - 1e-9) | (predicted == 0)).all()
    eta = proba.toarray()
    for m in range(30):  # the largest recall of each label
        best = 0
        for cut in np.append(np.unique(eta[:, m]), 0.0):
            chosen = eta[:, m] > cut
            if chosen.any() and (chosen * true[:, m]).sum() >= 0.6 * chosen.sum():
                best = max(best, (chosen * true[:, m]).sum())
        assert hits[m] == best
    confident = mw.optimize(proba, y, **{**goal, "confidence": 0.95})
    assert confident.value <= solution.value


def test_constraints_that_cannot_be_kept_say_what_can(world):
    proba, y = world
    with pytest.raises(ValueError, match=r"No rule was found that keeps 'precision >= 0.999'.*highest value found is"):
        mw.optimize(proba, y, "recall_micro", subject_to="precision >= 0.999", labels_per_row=(3, 3))


# ----------------------------------------------------------------------------------------------------------- refusals


def refused(world, match, **options):
    proba, y = world
    options = {"metric": "f1_macro", "labels_per_row": 3, **options}
    with pytest.raises((ValueError, TypeError), match=match):
        mw.optimize(options.pop("proba", proba), options.pop("y", y), **options)


@pytest.mark.parametrize(
    ("match", "options"),
    [
        ("abstain must be left out with sparse probabilities or labels_per_row", {"abstain": 0.2}),
        ("cost must be left out with sparse probabilities", {"cost": np.ones((400, 2))}),
        ("sensitive_features must be left out", {"sensitive_features": np.zeros(400)}),
        ("prior must be left out", {"prior": [0.5, 0.5]}),
        ("order must be left out", {"order": [0, 1]}),
        ("classes must be left out", {"classes": [0, 1]}),
        ("pos_label must be 1 or None", {"pos_label": 0}),
        ("labels_per_row must be the largest number of labels", {"labels_per_row": 0}),
        ("labels_per_row must be the largest number of labels", {"labels_per_row": (3, 2)}),
        ("labels_per_row must be the largest number of labels", {"labels_per_row": 1.5}),
        ("labels_per_row must be at most the number of labels, 30", {"labels_per_row": 31}),
        ("labels_per_row must allow at most 2 labels for 'precision@2'", {"metric": "precision@2"}),
        ("labels_per_row must be given for 'label_coverage'", {"metric": "label_coverage", "labels_per_row": None}),
        ("a name with @ is 'precision@k', 'recall@k' .*use 'f1' and labels_per_row=\\(3, 3\\)", {"metric": "f1@3"}),
        ("average must be 'micro' or 'instance' for 'precision@3'", {"metric": "precision@3", "average": "macro"}),
        ("metric must be one metric for all labels", {"metric": ["f1"] * 30}),
        ("strategy must leave solver at its default", {"strategy": mw.Strategy(solver="ascent")}),
        ("not be an InTime", {"groups": mw.InTime(np.arange(400))}),
        ("not be Frequencies", {"sample_weight": mw.Frequencies(np.ones(400))}),
        ("must bound a metric of all labels pooled", {"subject_to": "precision[3] >= 0.5"}),
        ("subject_to must be one constraint", {"subject_to": "precision >= 0.2 and recall >= 0.1"}),
        ("cannot be kept with labels_per_row", {"subject_to": "precision >= 0.2 in every label"}),
        ("y must have the shape of proba", {"y": np.zeros((400, 29))}),
        ("y must be 0 or 1", {"y": np.full((400, 30), 2)}),
        ("not have missing labels", {"y": np.full((400, 30), np.nan)}),
        ("needs y; without labels use 'expected'", {"y": None, "strategy": LABELS}),
    ],
)
def test_what_such_rules_do_not_take_is_refused_by_name(world, match, options):
    refused(world, match, **options)


def test_in_every_label_is_refused_for_few_outputs():
    with pytest.raises(ValueError, match="is for rules of very many labels, whose probabilities are a sparse array"):
        mw.optimize([0.2, 0.7], [0, 1], "recall", subject_to="precision >= 0.5 in every label")


def test_degenerate_aims_warn(world):
    proba, y = world
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="alone"):
            mw.optimize(proba, y, "precision_micro")
        mw.optimize(proba, y, "precision_micro", labels_per_row=(3, 3))


def test_the_scale_of_label_weights_does_not_matter(world):
    proba, y = world
    rng = np.random.default_rng(0)
    weight = rng.random(30)
    values = [mw.optimize(proba, y, "precision@3", output_weight=scale * weight).value for scale in (1.0, 7.0)]
    assert values[0] == pytest.approx(values[1])
    equal = mw.optimize(proba, y, "precision@3", output_weight=np.full(30, 5.0)).value
    assert equal == pytest.approx(mw.optimize(proba, y, "precision@3").value)


def test_a_bound_in_every_label_is_on_precision(world):
    refused(
        world,
        "a bound in every label must be a lower one on precision",
        labels_per_row=None,
        subject_to="recall >= 0.2 in every label",
    )
