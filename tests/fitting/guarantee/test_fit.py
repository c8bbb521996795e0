"""Guaranteed constraints of `optimize`: the best certified rule, what is refused, and promises kept on known worlds."""

import json
import re

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score

import metricwise as mw
from metricwise.fitting.constraints.resolve import InfeasibleConstraintsError
from metricwise.fitting.guarantee.fit import NotGuaranteedError

EXACT = {"guarantee": "exact"}


def world(rng, n, slope=2.0, shift=-1.5):
    """Probabilities of class 1 and labels drawn by them."""
    p = 1 / (1 + np.exp(-(slope * rng.normal(size=n) + shift)))
    return p, (rng.random(n) < p).astype(int)


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    p, y = world(rng, 4000)
    return p, y, world(rng, 3000)[0]


def certified_by(p, y, threshold, floor, delta):
    above = p > threshold
    return binom.sf(y[above].sum() - 1, above.sum(), floor) <= delta


def test_the_rule_is_certified_by_the_rows_and_a_slightly_lower_threshold_is_not(rows):
    p, y, others = rows
    solution = mw.optimize(p, y, "recall", subject_to="precision >= 0.75", unlabelled=others, **EXACT)
    (result,) = solution.constraints
    threshold = solution.rule.threshold
    assert certified_by(p, y, threshold, 0.75, 0.05)
    assert (result.confidence, result.guarantee) == (0.95, "exact")
    assert result.value == pytest.approx(y[p > threshold].mean())
    lower = np.sort(others)[::-1]
    further = lower[min(np.searchsorted(-lower, -threshold) + 300, len(lower) - 1)]
    assert not certified_by(p, y, further, 0.75, 0.05)
    assert solution.value == pytest.approx(y[p > threshold].sum() / y.sum())


def test_without_other_rows_a_tenth_places_the_thresholds_and_does_not_test(rows):
    p, y, _ = rows
    solution = mw.optimize(p, y, "recall", subject_to="precision >= 0.75", **EXACT)
    assert "on the 3,600 rows that tested" in solution.status
    again = mw.optimize(p, y, "recall", subject_to="precision >= 0.75", **EXACT)
    other = mw.optimize(p, y, "recall", subject_to="precision >= 0.75", random_state=1, **EXACT)
    assert again.rule == solution.rule != other.rule


def test_logits_scores_and_probabilities_have_the_same_rule(rows):
    p, y, others = rows
    logit, other_logit = np.log(p / (1 - p)), np.log(others / (1 - others))
    expected = mw.optimize(p, y, "recall", subject_to="precision >= 0.75", unlabelled=others, **EXACT)
    for kind, factor in (("logits", 1.0), ("scores", 7.0)):
        solution = mw.optimize(
            factor * logit,
            y,
            "recall",
            subject_to="precision >= 0.75",
            unlabelled=factor * other_logit,
            input=kind,
            **EXACT,
        )
        assert (solution.predict(factor * logit) == expected.predict(p)).all()


def test_labels_of_text_and_both_columns(rows):
    p, y, others = rows
    texts = np.where(y == 1, "fraud", "fine")
    expected = mw.optimize(p, y, "recall", subject_to="precision >= 0.75", unlabelled=others, **EXACT)
    single = mw.optimize(
        p, texts, "recall", pos_label="fraud", subject_to="precision >= 0.75", unlabelled=others, **EXACT
    )
    # The columns are those of 'fine' and 'fraud'.
    both = mw.optimize(
        np.stack([1 - p, p], axis=1),
        texts,
        "recall[fraud]",
        subject_to="precision[fraud] >= 0.75",
        unlabelled=np.stack([1 - others, others], axis=1),
        **EXACT,
    )
    for solution, proba in ((single, p), (both, np.stack([1 - p, p], axis=1))):
        assert (solution.predict(proba) == np.where(expected.predict(p) == 1, "fraud", "fine")).all()


@pytest.mark.parametrize(
    ("metric", "text", "kept"),
    [
        ("precision", "recall >= 0.7", lambda y, d: d[y == 1].mean() >= 0.7),
        ("recall", "false_positive_rate <= 0.1", lambda y, d: d[y == 0].mean() <= 0.1),
        ("recall", "share <= 0.2", lambda y, d: d.mean() <= 0.2),
        ("f1", "0.1 <= share <= 0.3", lambda y, d: 0.1 <= d.mean() <= 0.3),
        ("recall", "specificity >= 0.9", lambda y, d: 1 - d[y == 0].mean() >= 0.9),
        ("recall", "accuracy >= 0.75", lambda y, d: (d == y).mean() >= 0.75),
        ("f1", "min_recall >= 0.6", lambda y, d: min(d[y == 1].mean(), 1 - d[y == 0].mean()) >= 0.6),
        ("f1", "precision >= 0.6 and recall >= 0.4", lambda y, d: y[d == 1].mean() >= 0.6 and d[y == 1].mean() >= 0.4),
    ],
)
def test_bounds_of_all_kinds_are_kept(rows, metric, text, kept):
    p, y, _ = rows
    solution = mw.optimize(p, y, metric, subject_to=text, **EXACT)
    assert kept(y, solution.predict(p))
    new_p, new_y = world(np.random.default_rng(9), 200_000)
    assert kept(new_y, solution.predict(new_p))


def test_of_all_certified_thresholds_the_best_by_the_metric_is_returned(rows):
    p, y, others = rows
    f1 = mw.optimize(p, y, "f1", subject_to="precision >= 0.55", unlabelled=others, **EXACT)
    recall = mw.optimize(p, y, "recall", subject_to="precision >= 0.55", unlabelled=others, **EXACT)
    value = {s: mw.evaluate(s.rule, p, y, ["f1", "recall"]) for s in (f1, recall)}
    assert value[f1]["f1"].value.estimate >= value[recall]["f1"].value.estimate
    assert value[recall]["recall"].value.estimate >= value[f1]["recall"].value.estimate


def three_classes(rng, n):
    z = 1.5 * rng.normal(size=(n, 3))
    P = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    return P, (rng.random((n, 1)) > P.cumsum(axis=1)).sum(axis=1)


def test_several_classes_are_tested_by_rows_that_the_rules_were_not_fitted_to():
    P, y = three_classes(np.random.default_rng(0), 4000)
    text = ["recall[1] >= 0.65", "recall[2] >= 0.65"]
    solution = mw.optimize(P, y, "accuracy", subject_to=text, **EXACT)
    assert "on the 2,800 rows that tested" in solution.status
    new_P, new_y = three_classes(np.random.default_rng(1), 100_000)
    decided = solution.predict(new_P)
    assert all((decided[new_y == k] == k).mean() >= 0.65 for k in (1, 2))
    assert (decided == new_y).mean() > 0.6


def test_abstentions_leave_the_least_certain_rows():
    P, y = three_classes(np.random.default_rng(0), 4000)
    solution = mw.optimize(P, y, "abstained", abstain=True, subject_to="accuracy >= 0.8", **EXACT)
    decided = solution.predict(P)
    accepted = decided != -1
    assert 0.2 < accepted.mean() < 0.9
    assert P.max(axis=1)[accepted].min() > P.max(axis=1)[~accepted].max()
    assert (decided[accepted] == P.argmax(axis=1)[accepted]).all()
    new_P, new_y = three_classes(np.random.default_rng(1), 100_000)
    decided = solution.predict(new_P)
    assert (decided == new_y)[decided != -1].mean() >= 0.8


@pytest.mark.parametrize("text", ["precision >= 0.7 in group a", "accuracy >= 0.7 in group a"])
def test_a_bound_in_one_group(text):
    rng = np.random.default_rng(0)
    p, y = world(rng, 8000)
    group = np.where(rng.random(8000) < 0.4, "a", "b")
    solution = mw.optimize(p, y, "recall", subject_to=text, sensitive_features=group, **EXACT)
    decided = solution.predict(p, sensitive_features=group)
    inside = group == "a"
    value = y[inside & (decided == 1)].mean() if "precision" in text else (decided == y)[inside].mean()
    assert value >= 0.7
    assert solution.value == pytest.approx(decided[y == 1].mean())


def test_a_bound_on_one_of_several_outputs():
    rng = np.random.default_rng(0)
    both = [world(rng, 5000, slope) for slope in (1.5, 2.0, 3.0)]
    P, Y = np.stack([p for p, _ in both], axis=1), np.stack([y for _, y in both], axis=1)
    for text in ("precision[2, 1] >= 0.6", "accuracy[1] >= 0.7"):
        solution = mw.optimize(P, Y, "f1", average="macro", subject_to=text, **EXACT)
        decided = solution.predict(P)
        expected = np.mean([f1_score(Y[:, m], decided[:, m]) for m in range(3)])
        assert solution.value == pytest.approx(expected)
        assert solution.value_on_new_rows is None
        assert "on the 4,500 rows" in solution.status or "on the 3,500 rows" in solution.status


@pytest.mark.parametrize("aware", [True, False])
def test_bounds_in_every_group(aware):
    rng = np.random.default_rng(0)
    p, y = world(rng, 8000)
    group = np.where(rng.random(8000) < 0.4, "a", "b")
    sensitive = mw.Sensitive(group, group_aware=aware)
    solution = mw.optimize(
        p, y, "recall", subject_to="precision >= 0.7 in every group", sensitive_features=sensitive, **EXACT
    )
    assert ("sensitive_features" in solution.rule.needs) is aware
    decided = solution.predict(p, sensitive_features=group if aware else None)
    for name in ("a", "b"):
        inside = (group == name) & (decided == 1)
        assert y[inside].mean() >= 0.7
        level = 0.025 if aware else 0.05
        assert binom.sf(y[inside].sum() - 1, inside.sum(), 0.7) <= 5 * level  # the placing rows count here, too
    assert solution.by_group["a"]["precision[1]"].value == pytest.approx(y[(group == "a") & (decided == 1)].mean())


def test_each_of_several_outputs_has_its_part_of_the_risk():
    rng = np.random.default_rng(0)
    p, y = world(rng, 6000)
    q, z = world(rng, 6000)
    both, labels = np.stack([p, q], axis=1), np.stack([y, z], axis=1)
    text = ["precision[0, 1] >= 0.7", "precision[1, 1] >= 0.75"]
    solution = mw.optimize(both, labels, "recall", average="macro", subject_to=text, confidence=0.9, **EXACT)
    decided = solution.predict(both)
    assert y[decided[:, 0] == 1].mean() >= 0.7
    assert z[decided[:, 1] == 1].mean() >= 0.75
    alone = mw.optimize(p, y, "recall", subject_to="precision >= 0.7", confidence=0.95, **EXACT)
    assert np.mean(alone.predict(p) != decided[:, 0]) < 0.02  # but for the random tenth
    free = mw.optimize(both, labels, "f1", average="macro", subject_to=text[0], **EXACT)
    assert free.predict(both)[:, 1].mean() > decided[:, 1].mean()  # of the output without a bound


# ------------------------------------------------------------------------------------------------------- promises


def test_a_rule_keeps_what_is_guaranteed_in_its_file(rows, tmp_path):
    p, y, others = rows
    solution = mw.optimize(p, y, "recall", subject_to="precision >= 0.75", unlabelled=others, **EXACT)
    solution.rule.to_json(tmp_path / "rule.json")
    rule = mw.load_rule(tmp_path / "rule.json")
    assert (rule.metadata.guarantee, rule.metadata.confidence) == ("exact", 0.95)
    assert "guaranteed with a confidence of 0.95" in rule.describe()
    assert rule.with_prior([0.5, 0.5]).metadata.guarantee is None
    solution.save(tmp_path / "solution.json")
    assert mw.load_solution(tmp_path / "solution.json").constraints == solution.constraints
    document = json.loads((tmp_path / "solution.json").read_text())
    for constraint in document["constraints"]:
        del constraint["guarantee"]  # as files of earlier versions
    assert mw.load_solution(json.dumps(document)).constraints[0].guarantee is None


@pytest.mark.slow
@pytest.mark.parametrize("unlabelled", [True, False])
@pytest.mark.parametrize("bumpy", [True, False])
def test_promises_are_broken_in_at_most_five_of_a_hundred_draws(unlabelled, bumpy):
    """Draws of a world whose precision by threshold is known; the floor is crossed several times if it is bumpy."""
    x = (np.arange(200_000) + 0.5) / 200_000
    bumps = np.array([0.1, 0.9, 0.4, 0.95, 0.5])[np.searchsorted([0.55, 0.7, 0.8, 0.9], x)]
    truth = bumps if bumpy else np.clip(1.1 * x, 0, 1)
    below = np.cumsum(truth[::-1])[::-1]  # positives above each score
    given, broken, n_draws = 0, 0, 400
    for draw in range(n_draws):
        rng = np.random.default_rng(draw)
        score, others = rng.random(1000), rng.random(1000) if unlabelled else None
        y = (rng.random(1000) < truth[(score * 200_000).astype(int)]).astype(int)
        floor = 0.63 if bumpy else 0.8
        try:
            rule = mw.optimize(score, y, "recall", subject_to=f"precision >= {floor}", unlabelled=others, **EXACT).rule
        except NotGuaranteedError:
            continue
        place = int(np.searchsorted(x, rule.threshold))
        given += 1
        broken += below[place] / (200_000 - place) < floor
    assert given > 0.15 * n_draws
    assert broken <= 0.05 * n_draws + 2 * np.sqrt(0.05 * 0.95 * n_draws)


def test_estimates_are_those_of_the_rows_that_tested(rows):
    p, y, others = rows
    solution = mw.optimize(p, y, "recall", subject_to="precision >= 0.75", unlabelled=others, **EXACT)
    assert solution.value_on_new_rows.estimate == pytest.approx(solution.value)
    assert solution.gain.estimate == pytest.approx(solution.value - solution.baseline)
    assert solution.value_on_new_rows.low < solution.value < solution.value_on_new_rows.high


# ------------------------------------------------------------------------------------------------------- refusals


def test_if_nothing_can_be_guaranteed_the_error_says_how_many_rows_may_do():
    p, y = world(np.random.default_rng(0), 300)
    with pytest.raises(
        NotGuaranteedError, match=r"at confidence 0.95 with 300 rows; by these rows, some [0-9,]+ may be"
    ):
        mw.optimize(p, y, "recall", subject_to="precision >= 0.8", **EXACT)
    with pytest.raises(InfeasibleConstraintsError, match="none of the candidate rules satisfies all bounds by enough"):
        mw.optimize(p, y, "recall", subject_to="precision >= 0.999", **EXACT)
    for text in ("recall >= 1", "share <= 0", "share <= 1 and precision >= 1"):
        with pytest.raises(NotGuaranteedError, match=r"because no number of rows proves a bound of [01]"):
            mw.optimize(p, y, "recall", subject_to=text, **EXACT)
    with pytest.raises(NotGuaranteedError, match="none of the candidate rules"):
        mw.optimize(p, y, "recall", subject_to="share <= 1 and precision >= 0.995", **EXACT)


def test_the_number_of_rows_that_may_do_mostly_does():
    enough = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        p, y = world(rng, 400)
        try:
            mw.optimize(p, y, "recall", subject_to="precision >= 0.8", **EXACT)
        except NotGuaranteedError as error:
            found = re.search(r"some ([0-9,]+) may be enough", str(error))
            if found is None:
                continue
            n_rows = int(found[1].replace(",", ""))
        else:
            continue
        p, y = world(rng, n_rows)
        try:
            enough += bool(mw.optimize(p, y, "recall", subject_to="precision >= 0.8", **EXACT))
        except NotGuaranteedError:
            enough -= 1
    assert enough >= 2


def test_the_group_that_is_too_small_is_named():
    p, y = world(np.random.default_rng(0), 2000)
    group = np.where(np.arange(2000) % 50 == 0, "few", "many")
    with pytest.raises(NotGuaranteedError, match=r"in group 'few' at confidence 0\.95 with 40 rows"):
        mw.optimize(p, y, "recall", subject_to="precision >= 0.7 in every group", sensitive_features=group, **EXACT)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"subject_to": "f1 >= 0.3"}, r"'f1 >= 0.3' bounds f1, which is none"),
        ({"subject_to": "kappa >= 0.3"}, r"bounds kappa, which is none"),
        ({"subject_to": "g_mean >= 0.3"}, r"bounds g_mean, which is none"),
        ({"subject_to": "share within 0.01 of prior"}, "bounds the distance to a class share"),
        ({"subject_to": None}, "guarantee='exact' is for constraints, but subject_to is None"),
        ({"confidence": None}, "guarantee='exact' needs a confidence, got None"),
        ({"guarantee": "sure"}, "guarantee must be 'exact' or None, got 'sure'"),
        ({"sample_weight": np.linspace(1, 2, 400)}, "needs rows of equal weight, got weights"),
        ({"sample_weight": mw.Frequencies(np.arange(400) % 3 + 1)}, "needs rows of equal weight, got frequencies"),
        ({"groups": np.arange(400) // 2}, "needs independent rows, but groups say"),
        ({"groups": mw.InTime(np.arange(400))}, "rows in time depend on one another"),
        ({"prior": [0.5, 0.5]}, "is about rows like those given, got other class priors"),
        ({"strategy": mw.Strategy(randomized=True)}, "is for single rules, got randomized=True"),
        ({"guarantee": None, "unlabelled": [0.1, 0.2]}, "unlabelled is for guarantee='exact', which is not given"),
        ({"unlabelled": [[0.1, 0.2, 0.7]]}, "unlabelled: "),
        ({"unlabelled": [0.1, 0.2]}, "unlabelled must have at least 5 rows, which place the thresholds, got 2"),
        (
            {"subject_to": "recall gap <= 0.1", "sensitive_features": np.arange(400) % 2},
            "bounds a gap between groups, which is none",
        ),
        (
            {
                "subject_to": ["precision >= 0.5 in every group", "recall >= 0.2"],
                "sensitive_features": np.arange(400) % 2,
            },
            "tests each group by itself",
        ),
    ],
)
def test_what_cannot_be_guaranteed_is_refused_by_name(options, text):
    p, y = world(np.random.default_rng(0), 400)
    with pytest.raises(ValueError, match=text):
        mw.optimize(p, y, "recall", **{"subject_to": "precision >= 0.6", **EXACT, **options})


def test_the_tested_rows_do_not_place_their_thresholds():
    p, y = world(np.random.default_rng(0), 400)
    with pytest.raises(ValueError, match="unlabelled must be other rows than those that are tested, got the same"):
        mw.optimize(p, y, "recall", subject_to="precision >= 0.6", unlabelled=p, **EXACT)


def test_labels_are_needed():
    with pytest.raises(ValueError, match="guarantee='exact' needs labels, got None"):
        mw.optimize(np.linspace(0, 1, 50), None, "recall", subject_to="precision >= 0.6", **EXACT)


def test_copies_of_rows_are_refused():
    p, y = world(np.random.default_rng(0), 500)
    with pytest.raises(ValueError, match="some are exact copies of others"):
        mw.optimize(np.tile(p, 2), np.tile(y, 2), "recall", subject_to="precision >= 0.6", **EXACT)


def test_pooled_outputs_are_refused():
    p, y = world(np.random.default_rng(0), 500)
    both, labels = np.stack([p, 1 - p], axis=1), np.stack([y, 1 - y], axis=1)
    with pytest.raises(ValueError, match="pools several, whose labels in a row depend on one another"):
        mw.optimize(both, labels, "recall", average="macro", subject_to="precision >= 0.6", **EXACT)
    with pytest.raises(ValueError, match="needs average='macro' for several outputs"):
        mw.optimize(both, labels, "recall", subject_to="precision[0, 1] >= 0.6", **EXACT)


def test_several_classes_of_scores_are_refused():
    P, y = three_classes(np.random.default_rng(0), 500)
    with pytest.raises(ValueError, match="scores become probabilities by a map that is fitted to the same rows"):
        mw.optimize(np.log(P), y, "accuracy", subject_to="recall[1] >= 0.5", input="scores", **EXACT)


# ------------------------------------------------------------------------------------------------------ estimators


@pytest.fixture(scope="module")
def table():
    from sklearn.datasets import make_classification

    return make_classification(4000, weights=[0.7], flip_y=0.05, class_sep=1.5, random_state=0)


def test_an_estimator_tests_rows_that_its_model_has_not_seen(table):
    X, y = table
    options = {"metric": "recall", "subject_to": "precision >= 0.85", **EXACT}
    held_out = mw.MetricOptimalClassifierCV(LogisticRegression(), cv=0.5, refit=False, random_state=0, **options)
    held_out.fit(X, y)
    assert "on the 2,000 rows that tested" in held_out.solution_.status  # the others place the thresholds
    fitted = LogisticRegression().fit(X[:2000], y[:2000])
    prefit = mw.MetricOptimalClassifierCV(fitted, cv="prefit", **options).fit(X[2000:], y[2000:])
    expected = mw.optimize(fitted.predict_proba(X[2000:]), y[2000:], "recall", subject_to="precision >= 0.85", **EXACT)
    assert prefit.rule_ == expected.rule
    assert prefit.rule_.metadata.guarantee == "exact"


def test_the_split_of_an_estimator_does_not_fix_the_classes_that_test(table):
    """Stratified, each would test as many rows of every class: the model would know something of the tested labels."""
    X, y = table
    counts = set()
    for seed in range(4):
        model = mw.MetricOptimalClassifierCV(
            LogisticRegression(),
            metric="recall",
            subject_to="precision >= 0.85",
            cv=0.5,
            refit=False,
            random_state=seed,
            **EXACT,
        )
        counts.add(tuple(model.fit(X, y).rule_.metadata.class_counts[0]))
    assert len(counts) > 1


@pytest.mark.parametrize("options", [{}, {"cv": 0.5}, {"cv": 5}, {"cv": 3, "refit": True}])
def test_cross_fitting_is_refused(table, options):
    X, y = table
    model = mw.MetricOptimalClassifierCV(
        LogisticRegression(), metric="recall", subject_to="precision >= 0.8", **options, **EXACT
    )
    with pytest.raises(ValueError, match="cross-fitting and refitting make other models than the one that predicts"):
        model.fit(X, y)
