"""Values against scikit-learn, intervals against the bootstrap by hand and what is true of a simulated world."""

from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from sklearn import metrics as sk

import metricwise as mw
import worlds
from metricwise import WeightedRule
from metricwise.rules import MixtureRule
from profiles import examples

three = partial(worlds.multiclass, concentration=[2, 1, 0.6])
RULE = WeightedRule.from_thresholds(0.3)
WEIGHTS = WeightedRule.from_weights([1, 1.5, 2.2])
THRESHOLDS = WeightedRule.from_thresholds([0.2, 0.3, 0.4, 0.6])


def numbers(evaluation):
    return {
        name: (one.value.estimate, one.baseline.estimate, one.difference.estimate) for name, one in evaluation.items()
    }


def check(evaluation, references, y, rule, plain, **options):
    """Every value, baseline and difference is what scikit-learn says of the predictions."""
    assert list(evaluation) == list(references)
    for name, function in references.items():
        expected = [function(y, predicted, **options) for predicted in (rule, plain)]
        assert numbers(evaluation)[name] == pytest.approx((*expected, expected[0] - expected[1]), abs=1e-12)


# ------------------------------------------------------------------------------------------------------------- values


def test_binary_values():
    proba, y = worlds.binary()
    weight = np.random.default_rng(1).random(400)
    references = {
        "f1": sk.f1_score,
        "recall": sk.recall_score,
        "matthews_corrcoef": sk.matthews_corrcoef,
        "balanced_accuracy": sk.balanced_accuracy_score,
        "fbeta_score": partial(sk.fbeta_score, beta=2),
        "kappa": sk.cohen_kappa_score,
    }
    given_as = [
        "f1",
        mw.metrics.Recall(),
        "matthews_corrcoef",
        "balanced_accuracy",
        sk.make_scorer(sk.fbeta_score, beta=2),
        "kappa",
    ]
    for options in ({}, {"sample_weight": weight}):
        found = mw.evaluate(RULE, proba, y, given_as, **options)
        check(found, references, y, (proba > 0.3).astype(int), (proba > 0.5).astype(int), **options)


def test_multiclass_values():
    proba, y = three()
    references = {
        "f1_macro": partial(sk.f1_score, average="macro"),
        "qwk": partial(sk.cohen_kappa_score, weights="quadratic"),
        "accuracy": sk.accuracy_score,
    }
    found = mw.evaluate(WEIGHTS, proba, y, list(references))
    check(found, references, y, (proba * [1, 1.5, 2.2]).argmax(axis=1), proba.argmax(axis=1))


def test_multilabel_values():
    proba, y = worlds.binary((400, 4), b=2)
    averages = ("micro", "macro", "samples")
    references = {f"f1_{average}": partial(sk.f1_score, average=average, zero_division=0.0) for average in averages}
    references["hamming"] = lambda y, h: 1 - sk.hamming_loss(y, h)
    given_as = {name: name for name in references} | {"hamming": "hamming_accuracy"}
    found = mw.evaluate(THRESHOLDS, proba, y, given_as)
    check(found, references, y, (proba > [0.2, 0.3, 0.4, 0.6]).astype(int), (proba > 0.5).astype(int))


def test_outputs_of_several_classes_with_missing_labels():
    (first, stars), (second, spam) = three(seed=1), worlds.binary(seed=2)
    y = np.column_stack([stars, spam]).astype(float)
    y[np.random.default_rng(3).random(y.shape) < 0.2] = np.nan
    blocks = [first, np.column_stack([1 - second, second])]
    rule = WeightedRule.from_weights([[1, 1.5, 2.2], [1, 2]])
    found = mw.evaluate(rule, blocks, y, [["qwk", "f1"], "balanced_accuracy"], average="macro")
    seen = ~np.isnan(y)
    for (name, one), functions in zip(
        found.items(),
        (
            (partial(sk.cohen_kappa_score, weights="quadratic"), sk.f1_score),
            (sk.balanced_accuracy_score, sk.balanced_accuracy_score),
        ),
        strict=True,
    ):
        decided = rule.predict(blocks)
        expected = np.mean([f(y[seen[:, m], m], decided[seen[:, m], m]) for m, f in enumerate(functions)])
        assert one.value.estimate == pytest.approx(expected, abs=1e-12), name


@examples(30)
@given(worlds.tiny())
def test_any_problem_is_counted_row_by_row(problem):
    classes = problem.classes
    weights = [[1.0 + j for j in range(k)] for k in problem.sizes]
    rule = WeightedRule.from_weights(weights if problem.n_outputs > 1 else weights[0], classes=classes)
    options = {"sample_weight": problem.weight, "average": "macro"}
    if problem.n_outputs == 1:
        del options["average"]
    found = mw.evaluate(rule, problem.proba, problem.labels, mw.metrics.Accuracy(), **options)["accuracy"]
    products = [eta * np.array(own) for eta, own in zip(problem.eta, weights, strict=True)]
    decided = np.column_stack([own.argmax(axis=1) for own in products])
    expected = worlds.value(problem, decided, lambda C: np.trace(C) / np.sum(C), "macro")
    assert found.value.estimate == pytest.approx(expected, abs=1e-9)
    for one in (found.value, found.baseline, found.difference):
        assert one.low <= one.estimate <= one.high


def test_rows_without_a_label_count_nowhere():
    proba, y = worlds.binary()
    seen = np.random.default_rng(4).random(400) < 0.7
    names = ["f1", "min_recall", "mcc"]
    gaps = mw.evaluate(RULE, proba, np.where(seen, y, np.nan), names).to_dict()
    without = mw.evaluate(RULE, proba[seen], y[seen], names).to_dict()
    for name in ("f1", "mcc"):
        assert gaps[name] == pytest.approx(without[name], abs=1e-3)  # Student's quantile counts rows
    assert gaps["min_recall"]["value"] == without["min_recall"]["value"]


# ---------------------------------------------------------------------------------------------------------- intervals


def half(estimate):
    return (estimate.high - estimate.low) / 2


def by_hand(score, y, rule, plain, unit=None, n_resamples=2000):
    """Standard deviations in resamples of rows, or of groups of them, of both scores and of their difference."""
    rng = np.random.default_rng(5)
    unit = np.arange(len(y)) if unit is None else unit
    members = [np.flatnonzero(unit == u) for u in np.unique(unit)]
    values = []
    for _ in range(n_resamples):
        rows = np.concatenate([members[u] for u in rng.integers(0, len(members), len(members))])
        values.append([score(y[rows], decided[rows]) for decided in (rule, plain)])
    a, b = np.array(values).T
    return np.array([a.std(), b.std(), (a - b).std()])


def f1(y, h):
    return 2 * np.sum(y * h) / (np.sum(y) + np.sum(h))


def least_recall(y, h):
    return min(np.mean(h[y == 1] == 1), np.mean(h[y == 0] == 0))


@pytest.mark.parametrize(("name", "score"), [("f1", f1), ("min_recall", least_recall)])
def test_intervals_are_those_of_the_bootstrap(name, score):
    proba, y = worlds.binary(800)
    found = mw.evaluate(RULE, proba, y, name)[name]
    halves = np.array([half(found.value), half(found.baseline), half(found.difference)])
    expected = by_hand(score, y, (proba > 0.3).astype(int), (proba > 0.5).astype(int))
    np.testing.assert_allclose(halves, 1.96 * expected, rtol=0.12)


def test_the_error_of_very_many_rows_is_that_of_the_textbook():
    """The least recall is that of one class by far, hence a share of its rows."""
    proba, y = worlds.binary(20_000)
    for groups in (None, np.repeat(np.arange(10_000), 2)):
        found = mw.evaluate(WeightedRule.from_thresholds(0.6), proba, y, "min_recall", groups=groups)[
            "min_recall"
        ].value
        share, n = found.estimate, y.sum()
        assert half(found) == pytest.approx(1.96 * np.sqrt(share * (1 - share) / n), rel=0.12)


def test_intervals_of_groups_are_those_of_the_bootstrap_of_groups():
    rng = np.random.default_rng(6)
    group = np.repeat(np.arange(80), 10)
    proba = np.clip(rng.beta(1, 3, 80)[group] + rng.normal(0, 0.02, 800), 0.001, 0.999)
    y = (rng.random(80)[group] < proba).astype(int)  # rows of a group have one label, or nearly so
    decided = (proba > 0.3).astype(int), (proba > 0.5).astype(int)
    apart, together = (mw.evaluate(RULE, proba, y, "f1", groups=groups)["f1"] for groups in (None, group))
    expected = by_hand(f1, y, *decided, unit=group)
    halves = np.array([half(one) for one in (together.value, together.baseline, together.difference)])
    np.testing.assert_allclose(halves, 1.96 * expected, rtol=0.2)
    assert half(together.value) > 2 * half(apart.value)
    assert together.value.estimate == apart.value.estimate


def test_copies_of_rows_make_nothing_surer():
    proba, y = worlds.binary()
    order = np.random.default_rng(7).permutation(np.repeat(np.arange(400), 10))
    once, often = mw.evaluate(RULE, proba, y, "f1")["f1"], mw.evaluate(RULE, proba[order], y[order], "f1")["f1"]
    assert often.value.low == pytest.approx(once.value.low, abs=1e-3)
    assert often.difference.high == pytest.approx(once.difference.high, abs=1e-3)


@pytest.mark.parametrize("name", ["f1", "min_recall"])
def test_frequencies_are_rows(name):
    proba, y = worlds.binary()
    proba = np.round(proba * 20) / 20
    rows, count = np.unique(np.column_stack([proba, y]), axis=0, return_counts=True)
    plain = mw.evaluate(RULE, proba, y, name)[name]
    counted = mw.evaluate(RULE, rows[:, 0], rows[:, 1], name, sample_weight=mw.Frequencies(count))[name]
    assert counted.value.estimate == pytest.approx(plain.value.estimate)
    assert half(counted.value) == pytest.approx(half(plain.value), rel=0.2)  # the quantile is of fewer rows
    assert half(counted.difference) == pytest.approx(half(plain.difference), rel=0.2)


def test_a_paired_difference_is_surer_than_an_unpaired_one():
    proba, y = worlds.binary()
    close = WeightedRule.from_thresholds(0.32)
    found = mw.evaluate(RULE, proba, y, ["f1", "accuracy", "mcc"], against=close)
    for one in found.values():
        assert half(one.difference) < 0.5 * np.hypot(half(one.value), half(one.baseline))


def truth(rows, rule):
    """Confusions of the rule and of argmax in the world that `three` draws from, by its probabilities."""
    proba = np.random.default_rng(99).dirichlet([2, 1, 0.6], rows)
    out = []
    for decided in (rule.predict(proba), proba.argmax(axis=1)):
        C = np.stack([proba[decided == j].sum(axis=0) for j in range(3)], axis=1)
        out.append(C / C.sum())
    return out


def macro_f1(C):
    return np.mean(2 * np.diag(C) / (C.sum(axis=0) + C.sum(axis=1)))


WORLD = {"accuracy": np.trace, "macro_f1": macro_f1, "balanced_accuracy": lambda C: np.mean(np.diag(C) / C.sum(axis=1))}


def test_intervals_hold_what_is_true():
    """Of a rule that was not chosen on these rows: 95 % of the time, up to what 200 draws can tell."""
    one, other = truth(400_000, WEIGHTS)
    held = np.zeros((len(WORLD), 3))
    for seed in range(200):
        found = mw.evaluate(WEIGHTS, *three(300, seed=seed), list(WORLD))
        for row, (name, score) in zip(held, WORLD.items(), strict=True):
            true = score(one), score(other), score(one) - score(other)
            ends = found[name].value, found[name].baseline, found[name].difference
            row += [end.low <= value <= end.high for end, value in zip(ends, true, strict=True)]
    assert (held / 200 >= 0.91).all(), held / 200
    assert (held / 200 <= 0.99).all(), held / 200


def test_intervals_of_what_is_nearly_perfect_hold_what_is_true():
    """A recall of 0.97 on some 40 rows: in many samples it is 1, and no row says that it could be less."""
    values, sure = [], 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        y = np.repeat([0, 1], [160, 40])
        proba = np.where(rng.random(200) < 0.03, 1 - y, y) * 0.8 + 0.1
        found = mw.evaluate(RULE, proba, y, "recall")["recall"].value
        values.append(found.low <= 0.97 <= found.high)
        sure += found.low == found.high
    assert sure == 0
    assert 0.9 <= np.mean(values) <= 1


def test_rows_that_agree_do_not_make_sure():
    """Twenty rows, all right: Wilson's interval begins at 0.84."""
    proba, y = np.array([0.1, 0.2, 0.7, 0.9] * 5), np.array([0, 0, 1, 1] * 5)
    found = mw.evaluate(RULE, proba, y, ["accuracy", "mcc", "f1"])
    assert 0.75 < found["accuracy"].value.low < 0.9
    for one in found.values():
        assert one.value.estimate == one.value.high == 1
        assert one.value.low < 0.95
        assert (one.difference.low, one.difference.high) == (0, 0)  # both decide alike
    never = mw.evaluate(WeightedRule.from_thresholds(np.inf), proba, y, ["precision", "recall"])
    assert (never["precision"].value.low, never["precision"].value.high) == (0, 1)  # 0/0: nothing is known
    assert 0.1 < never["recall"].value.high < 0.5


def test_clusters_that_agree_do_not_make_sure():
    """Twenty clusters of ten rows, all right: they say no more than twenty rows do."""
    proba, y = np.array([0.1, 0.2, 0.7, 0.9] * 5), np.array([0, 0, 1, 1] * 5)
    cluster = np.repeat(np.arange(20), 10)
    rows = mw.evaluate(RULE, proba, y, "accuracy")["accuracy"].value
    clusters = mw.evaluate(RULE, proba[cluster], y[cluster], "accuracy", groups=cluster)["accuracy"].value
    assert clusters.low == pytest.approx(rows.low, abs=0.02)


def test_the_least_of_equal_recalls_is_less_in_resamples_as_it_is_in_samples():
    """Eight classes of equal recall: what is true lies above the least, by as much as the least of resamples below."""
    rng, y = np.random.default_rng(0), np.repeat(np.arange(8), 50)
    decided = np.where(np.arange(400) % 50 < 35, y, (y + rng.integers(1, 8, 400)) % 8)
    found = mw.evaluate(decided, None, y, "min_recall", against=y)["min_recall"].value
    least = rng.binomial(50, 0.7, (20_000, 8)).min(axis=1) / 50
    error = np.sqrt(np.mean((least - 0.7) ** 2))
    assert error > 2 * np.std(least)
    assert half(found) == pytest.approx(1.96 * error, rel=0.1)


def test_intervals_end_where_the_metric_does():
    proba, y = worlds.binary(30)
    for one in mw.evaluate(RULE, proba, y, ["f1", "mcc", "accuracy", "min_recall"]).values():
        for estimate, ends in ((one.value, (-1, 1)), (one.difference, (-2, 2))):
            assert ends[0] <= estimate.low <= estimate.estimate <= estimate.high <= ends[1]


def test_a_function_of_whole_rows():
    proba, y = worlds.binary(200)

    def share_of_right(y_true, y_pred):
        return float(np.mean(y_true == y_pred))

    own = mw.evaluate(RULE, proba, y, share_of_right)["share_of_right"]
    ours = mw.evaluate(RULE, proba, y, "accuracy")["accuracy"]
    assert own.value.estimate == pytest.approx(ours.value.estimate)
    assert half(own.value) == pytest.approx(half(ours.value), rel=0.15)
    with pytest.raises(ValueError, match=r"^evaluate: share_of_right takes no sample_weight.*has fractions"):
        mw.evaluate(RULE, proba, y, share_of_right, sample_weight=np.full(200, 0.5))


# -------------------------------------------------------------------------------------------------------------- rules


def test_whatever_stands_for_a_rule(tmp_path):
    proba, y = worlds.binary()
    rule = WeightedRule.from_thresholds(0.4)
    rule.to_json(tmp_path / "rule.json")
    solution = mw.optimize(proba, y, "f1", strategy=mw.Strategy(confusion="labels", recalibrate=False))
    expected = mw.evaluate(rule, proba, y, "f1").to_dict()
    for given_as in (tmp_path / "rule.json", str(tmp_path / "rule.json"), rule.to_json(), rule.to_dict()):
        assert mw.evaluate(given_as, proba, y, "f1").to_dict() == expected
    found = mw.evaluate(solution, proba, y, "f1", against=tmp_path / "rule.json")
    assert found["f1"].value.estimate == pytest.approx(solution.value, abs=1e-12)
    assert found["f1"].baseline.estimate == expected["f1"]["value"]
    back = mw.evaluate(rule, proba, y, "f1", against=solution)["f1"].difference
    forth = found["f1"].difference
    assert (back.estimate, back.low, back.high) == pytest.approx((-forth.estimate, -forth.high, -forth.low))
    assert found.against == "other rule"


def test_a_rule_behind_a_link_is_held_against_argmax_of_what_is_given():
    proba, y = three()
    solution = mw.optimize(proba**2 / (proba**2).sum(axis=1, keepdims=True), y, "macro_f1")
    found = mw.evaluate(solution, proba, y, "f1_macro")
    check(
        found,
        {"f1_macro": partial(sk.f1_score, average="macro")},
        y,
        solution.rule.predict(proba),
        proba.argmax(axis=1),
    )


def test_mixtures_count_by_their_shares():
    proba, y = worlds.binary()
    low, high = WeightedRule.from_thresholds(0.2), WeightedRule.from_thresholds(0.6)
    mixture = MixtureRule((low, high), np.array([0.25, 0.75]))
    found = mw.evaluate(mixture, proba, y, ["accuracy", "min_recall"])
    parts = [sk.accuracy_score(y, rule.predict(proba)) for rule in (low, high)]
    assert found["accuracy"].value.estimate == pytest.approx(np.dot([0.25, 0.75], parts))
    recalls = np.mean(
        [[np.mean(rule.predict(proba)[y == k] == k) for k in (0, 1)] for rule in (low, high, high, high)], 0
    )
    assert found["min_recall"].value.estimate == pytest.approx(recalls.min())
    # The variance of the share of right decisions by row, 0, 1/4, 3/4 or 1.
    right = np.mean([rule.predict(proba) == y for rule in (low, high, high, high)], axis=0)
    assert half(found["accuracy"].value) == pytest.approx(1.96 * right.std() / 20, rel=0.01)
    several, labels = worlds.binary((400, 4), b=2)
    mixture = MixtureRule((THRESHOLDS, WeightedRule.from_thresholds([0.5] * 4)), np.array([0.5, 0.5]))
    drawn = mw.evaluate(mixture, several, labels, "f1_samples")["f1_samples"].value.estimate
    expected = sk.f1_score(labels, mixture.predict(several), average="samples", zero_division=0)
    assert drawn == pytest.approx(expected)


# ------------------------------------------------------------------------------------------------------ names and order


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_outputs_are_matched_by_name(frame):
    proba, y = worlds.binary((400, 2), b=2)
    rule = WeightedRule.from_thresholds({"news": 0.3, "sport": 0.6})
    P = {"news": proba[:, 0], "sport": proba[:, 1]}
    Y = {"news": y[:, 0], "sport": y[:, 1]}
    expected = mw.evaluate(rule, proba, y, ["f1"], output_weight=[1, 3], average="macro").to_dict()
    turned = frame({"sport": Y["sport"], "news": Y["news"]})
    for own in (proba, frame(P), frame({"sport": P["sport"], "news": P["news"]})):
        found = mw.evaluate(rule, own, turned, ["f1"], output_weight=[1, 3], average="macro")
        assert found.to_dict() == expected
    with pytest.raises(
        ValueError,
        match=r"are not in the order \['news', 'sport'\], and they cannot be matched by name because y has no names",
    ):
        mw.evaluate(rule, frame({"sport": P["sport"], "news": P["news"]}), y, "f1_macro")
    nameless = WeightedRule.from_thresholds([0.3, 0.6])
    with pytest.raises(ValueError, match="the outputs of the rule have no names"):
        mw.evaluate(nameless, frame(P), turned, "f1_macro")
    with pytest.raises(ValueError, match="columns of y must be named like the outputs of the rule"):
        mw.evaluate(rule, proba, frame({"news": Y["news"], "arts": Y["sport"]}), "f1_macro")


def test_classes_are_matched_by_name():
    proba, codes = three()
    labels = np.array(["low", "mid", "top"])
    rule = WeightedRule.from_weights({"low": 1, "mid": 1.5, "top": 2.2})
    frame = pd.DataFrame(proba, columns=labels)[["top", "low", "mid"]]
    plain = mw.evaluate(WEIGHTS, proba, codes, "f1_macro").to_dict()
    assert mw.evaluate(rule, frame, labels[codes], "f1_macro").to_dict() == plain
    ordered = pd.Categorical(labels[codes], categories=["low", "mid", "top"], ordered=True)
    kappa = mw.evaluate(rule, proba, ordered, "qwk")["qwk"].value.estimate
    assert kappa == pytest.approx(mw.evaluate(WEIGHTS, proba, codes, "qwk")["qwk"].value.estimate)
    with pytest.raises(ValueError, match="order"):
        mw.evaluate(rule, proba, labels[codes], "qwk")


def test_a_positive_class_is_for_metrics_that_want_one():
    proba, codes = worlds.binary()
    y = np.array(["fine", "fraud"])[codes]
    rule = WeightedRule.from_thresholds({"fraud": 0.3}, classes=["fine", "fraud"])
    found = mw.evaluate(rule, proba, y, ["f1", "accuracy"], pos_label="fraud")
    assert found.to_dict() == mw.evaluate(RULE, proba, codes, ["f1", "accuracy"]).to_dict()
    with pytest.raises(ValueError, match="the positive class is ambiguous: 'fine' or 'fraud'"):
        mw.evaluate(rule, proba, y, "f1")
    first = WeightedRule.from_thresholds({"fine": 0.6}, classes=["fine", "fraud"])
    recall = mw.evaluate(first, proba, y, "recall", pos_label="fine")["recall"].value.estimate
    assert recall == pytest.approx(sk.recall_score(y, np.where(1 - proba > 0.6, "fine", "fraud"), pos_label="fine"))


# ------------------------------------------------------------------------------------------------------ result, errors


def test_the_result_is_a_mapping_a_table_and_plain_numbers():
    proba, y = worlds.binary()
    found = mw.evaluate(RULE, proba, y, {"hits": "recall", "F": "f1"})
    assert list(found) == ["hits", "F"]
    assert len(found) == 2
    lines = repr(found).splitlines()
    assert lines[0] == "400 rows, with 95 % intervals:"
    assert lines[1].split() == ["metric", "rule", "argmax", "difference"]
    assert lines[3].startswith(f"F       {found['F'].value.estimate:.4f} [{found['F'].value.low:.4f}, ")
    assert f"{found['F'].difference.estimate:+.4f} [" in lines[3]
    table = pd.DataFrame.from_dict(found.to_dict(), orient="index")
    assert table.loc["hits", "baseline_low"] == found["hits"].baseline.low
    assert table.shape == (2, 9)
    with pytest.raises(AttributeError, match="cannot assign"):
        found.n_rows = 3


def test_calls_agree_whatever_else_is_asked_for():
    proba, y = three()
    alone = mw.evaluate(WEIGHTS, proba, y, "min_recall").to_dict()["min_recall"]
    assert mw.evaluate(WEIGHTS, proba, y, ["f1_macro", "min_recall", "qwk"]).to_dict()["min_recall"] == alone


@pytest.mark.parametrize("n", [25, 60])
def test_what_a_rule_is_worth_does_not_depend_on_what_it_is_held_against(n):
    proba, y = worlds.binary(n)
    names = ["f1", "accuracy", "recall", "min_recall"]
    others = [None, *(WeightedRule.from_thresholds(t) for t in (0.1, 0.4, 0.9))]
    first, *rest = (mw.evaluate(RULE, proba, y, names, against=other) for other in others)
    for found in rest:
        assert {name: one.value for name, one in found.items()} == {name: one.value for name, one in first.items()}


PROBA, Y = worlds.binary(50)
SEVERAL, LABELS = worlds.binary((50, 4), b=2)


@pytest.mark.parametrize(
    ("arguments", "options", "words"),
    [
        (
            (object(), PROBA, Y, "f1"),
            {},
            "^evaluate: rule must be a rule, a Solution, a JSON file or text.*got <object",
        ),
        ((RULE, PROBA, Y, "f1"), {"against": 3}, r"^evaluate: against as a threshold must be a number in \[0, 1\]"),
        ((True, PROBA, Y, "f1"), {}, "^evaluate: rule must be a rule, a Solution"),
        ((RULE, PROBA, Y), {}, "^evaluate: metrics must be given, because the rule does not name the metric"),
        ((RULE, None, Y, "f1"), {}, "^evaluate: proba must hold the probabilities of the rows, got None"),
        ((Y, None, Y, "f1"), {}, "^evaluate: proba must hold the probabilities of the rows, got None"),
        ((Y[1:], PROBA, Y, "f1"), {}, "^evaluate: y_pred must have the shape of y_true"),
        ((0.3, *three(50), "macro_f1"), {}, "^evaluate: a threshold is only for two classes, got 3"),
        ((RULE, PROBA, Y, "worst_group(f1)"), {}, "^evaluate: metrics: the worst group's value needs sensitive_feat"),
        ((RULE, PROBA, Y, "equalized_odds"), {}, "^evaluate: metrics: equalized_odds is about groups, so sensitive_f"),
        (
            (RULE, PROBA, Y, mw.gap("mcc")),
            {"sensitive_features": Y},
            "^evaluate: metrics: 'mcc gap' bounds the gap of mcc, which is neither linear nor a ratio",
        ),
        (
            (RULE, PROBA, Y, "equal_opportunity"),
            {"sensitive_features": Y},
            "^evaluate: metrics: equal_opportunity is the same for all predictions in the group 0, because none of",
        ),
        ((RULE, PROBA, Y, "f1"), {"cost": np.ones((50, 2))}, "^evaluate: cost= is for the metric 'cost'"),
        (
            (mw.CostRule((np.arange(2),)), PROBA, Y, "f1"),
            {},
            "^evaluate: cost must give the costs of the decisions about",
        ),
        ((THRESHOLDS, SEVERAL, LABELS, "cost"), {"cost": np.ones((50, 2))}, "^evaluate: cost= gives costs per row for"),
        (({"a": (RULE, PROBA)}, Y, "f1"), {}, "^evaluate: rule as a dict must hold two models, got 1"),
        (
            ({"a": (RULE, PROBA), "b": (RULE, PROBA)}, PROBA, Y, "f1"),
            {},
            "^evaluate: proba must be left out if rule is a dict of two models",
        ),
        (
            ({"a": (RULE, PROBA), "b": (RULE, PROBA[1:])}, Y, "f1"),
            {},
            "^evaluate: both models must have probabilities of the same 50 rows",
        ),
        (
            (RULE, PROBA, Y, "f1"),
            {"against": WEIGHTS},
            r"^evaluate: against must be.*in the same order, \[0, 1\], got \[0",
        ),
        ((RULE, PROBA, None, "f1"), {}, "^evaluate: y must hold the labels of the rows, got None"),
        ((RULE, PROBA, LABELS, "f1"), {}, "^evaluate: y must be 1-D, as the rule has them"),
        ((THRESHOLDS, SEVERAL, Y, "f1"), {}, "^evaluate: y must be 2-D, with a column for each of its 4 outputs"),
        ((THRESHOLDS, SEVERAL[:, :3], LABELS, "f1"), {}, "^evaluate: (proba|y) must have"),
        ((RULE, PROBA, Y + 1, "f1"), {}, "^evaluate: y .*2"),
        ((RULE, PROBA, Y, []), {}, "^evaluate: metrics must name at least one metric"),
        ((RULE, PROBA, Y, ["f1", sk.f1_score, "f1"]), {}, "'f1' is the name of two metrics; pass a dict"),
        ((RULE, PROBA, Y, {1: "f1"}), {}, "^evaluate: metrics as a dict must have text keys"),
        ((RULE, PROBA, Y, "roc_auc"), {}, "evaluates the order of the scores"),
        (
            (RULE, PROBA, Y, ["mcc"]),
            {"pos_label": 1},
            "^evaluate: pos_label is only for metrics of one class that do not name",
        ),
        ((RULE, PROBA, Y, "f1"), {"average": "mean"}, "^evaluate: average must be 'micro'"),
        ((RULE, PROBA, Y, "f1"), {"sample_weight": [1]}, r"^evaluate: sample_weight must have shape \(50,\)"),
        ((RULE, PROBA, Y, "f1"), {"groups": np.zeros(50)}, "^evaluate: groups must contain at least two groups"),
    ],
)
def test_what_is_refused(arguments, options, words):
    with pytest.raises((ValueError, TypeError), match=words):
        mw.evaluate(*arguments, **options)


def test_names_of_outputs_are_no_names_of_metrics():
    rule = WeightedRule.from_thresholds({"a": 0.3, "b": 0.3, "c": 0.3, "d": 0.3})
    y = pd.DataFrame(LABELS, columns=list("abcd"))
    aims = {"a": "f1", "b": "f1", "c": "recall", "d": "f1"}
    with pytest.raises(ValueError, match="to give a metric for each output, put the dict into a list"):
        mw.evaluate(rule, SEVERAL, y, aims)
    found = mw.evaluate(rule, SEVERAL, y, [aims])["f1 (a, b, d), recall (c)"].value.estimate
    decided = (SEVERAL > 0.3).astype(int)
    scores = [sk.f1_score(LABELS[:, m], decided[:, m]) for m in (0, 1, 3)]
    assert found == pytest.approx(np.mean([*scores, sk.recall_score(LABELS[:, 2], decided[:, 2])]))


def test_other_orders_of_outputs_are_refused():
    one = WeightedRule.from_thresholds({"a": 0.3, "b": 0.4})
    other = WeightedRule.from_thresholds({"b": 0.3, "a": 0.4})
    with pytest.raises(
        ValueError, match=r"^evaluate: against must be a rule for the same outputs as the rule, in the same order"
    ):
        mw.evaluate(one, SEVERAL[:, :2], LABELS[:, :2], "f1", against=other)


def test_rules_by_group_are_judged_by_their_decisions():
    rng = np.random.default_rng(4)
    p = rng.beta(1, 2, 500)
    y = (rng.random(500) < p).astype(int)
    group = rng.choice(["a", "b"], 500)
    strict, lenient = mw.WeightedRule.from_thresholds(0.6), mw.WeightedRule.from_thresholds(0.3)
    rule = mw.GroupedRule((strict, lenient), ("a", "b"))
    found = mw.evaluate(rule, p, y, ["f1", "accuracy"], sensitive_features=group, against=strict)
    decided = rule.predict(p, sensitive_features=group)
    assert found["f1"].value.estimate == pytest.approx(sk.f1_score(y, decided))
    assert found["f1"].baseline.estimate == pytest.approx(sk.f1_score(y, strict.predict(p)))
    for name, own in found.by_group.items():
        rows = group == name
        assert own.n_rows == rows.sum()
        assert own["accuracy"].value.estimate == pytest.approx(np.mean(decided[rows] == y[rows]))
    alone = mw.evaluate(lenient, p[group == "b"], y[group == "b"], "f1", against=strict)
    assert found.by_group["b"]["f1"].difference == alone["f1"].difference
    mixture = mw.MixtureRule((strict, lenient), np.array([0.3, 0.7]))
    drawn = mw.GroupedRule((mixture, lenient), ("a", "b"))
    shares = drawn.distribution(p, sensitive_features=group)[np.arange(500), y]
    assert mw.evaluate(drawn, p, y, "accuracy", sensitive_features=group)["accuracy"].value.estimate == pytest.approx(
        shares.mean()
    )
    with pytest.raises(ValueError, match="so it needs sensitive_features"):
        mw.evaluate(rule, p, y, "f1")
    with pytest.raises(ValueError, match="against must be a rule for the same groups as the rule"):
        mw.evaluate(rule, p, y, "f1", sensitive_features=group, against=mw.GroupedRule((strict, lenient), ("a", "c")))
