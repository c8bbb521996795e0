"""Which class a metric is about: labels mean labels in every output, and what nobody has said is asked for."""

import copy
from dataclasses import replace
from datetime import date

import numpy as np
import pytest
import sklearn.metrics as sk
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

import metricwise as mw
from laws import metric_records as records
from metricwise.metrics.resolution import resolve
from worlds import fraud, named_outputs

FIXED = {"confusion": "labels", "recalibrate": False}
ONE_CLASS = {
    "f1": sk.f1_score,
    "jaccard": sk.jaccard_score,
    "precision": sk.precision_score,
    "recall": sk.recall_score,
}
SCALE = ["low", "mid", "high"]


# ------------------------------------------------------------------------------- a label means it in every output

UNEQUAL = [
    (["normal", "raised"], ["low", "normal", "raised"]),  # at other positions
    (["low", "normal", "raised"], ["low", "normal"]),  # at the same position
    (["low", "normal", "raised"], ["blue", "red"]),  # an output lacks it
]


@pytest.mark.parametrize("given", [True, False])
@pytest.mark.parametrize("classes", UNEQUAL)
def test_a_negative_class_by_label_is_that_class_in_every_output(classes, given):
    _, y, predicted = named_outputs(*classes)
    rest = sorted({label for labels in classes for label in labels} - {"normal"})
    options = {"classes": [np.array(labels) for labels in classes]} if given else {}

    def expected(true, found):
        return sk.f1_score(np.ravel(true), np.ravel(found), labels=rest, average="micro", zero_division=1)

    metric = mw.metrics.MicroF1(negative_label="normal", zero_division=1.0)
    assert metric.score(y, predicted, average="micro", **options) == pytest.approx(expected(y, predicted), abs=1e-12)
    by_row = np.mean([expected(*rows) for rows in zip(y, predicted, strict=True)])
    assert metric.score(y, predicted, average="instance", **options) == pytest.approx(by_row, abs=1e-12)
    assert metric.score(y, y, average="instance", **options) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("average", ["micro", "instance"])
@pytest.mark.parametrize("name", ONE_CLASS)
def test_a_positive_class_by_label_is_that_class_in_every_output(name, average):
    _, y, predicted = named_outputs(["normal", "raised"], ["low", "normal", "raised"])
    metric = mw.metrics.get_metric(name, pos_label="normal")
    options = {"labels": ["normal"], "average": "micro", "zero_division": 0}
    if average == "micro":
        expected = ONE_CLASS[name](y.ravel(), predicted.ravel(), **options)
    else:
        expected = np.mean([ONE_CLASS[name](t, p, **options) for t, p in zip(y, predicted, strict=True)])
    assert metric.score(y, predicted, average=average) == pytest.approx(expected, abs=1e-12)
    scorer = mw.make_scorer(name, pos_label="normal", average=average)
    assert scorer._score_func(y, predicted) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("average", ["micro", "instance"])
def test_one_loss_for_a_class_at_two_positions_is_refused(average):
    classes = [["normal", "raised"], ["low", "normal", "raised"]]
    proba, y, _ = named_outputs(*classes)
    metric = mw.metrics.MicroF1(negative_label="normal")
    with pytest.raises(ValueError, match=r"at 0 in output 0 and at 1 in output 1; use average='macro'"):
        mw.optimize(proba, y, metric, average=average, strategy=mw.Strategy(**FIXED))
    macro = mw.optimize(proba, y, metric, average="macro", strategy=mw.Strategy(**FIXED))
    each = [mw.optimize(p, y[:, m], metric, strategy=mw.Strategy(**FIXED)).value for m, p in enumerate(proba)]
    assert macro.value == pytest.approx(np.mean(each), abs=1e-12)


def test_an_output_without_the_class_is_refused_by_name():
    proba, y, _ = named_outputs(SCALE, ["blue", "red"])
    for average in ("micro", "macro"):
        with pytest.raises(ValueError, match=r"\['blue', 'red'\], got 'mid' \(output 1\)"):
            mw.optimize(proba, y, mw.metrics.FBeta(pos_label="mid"), average=average, strategy=mw.Strategy(**FIXED))


def test_a_class_at_one_position_among_different_classes_is_pooled():
    proba, y, _ = named_outputs(["no", "sick"], ["no", "sick", "unknown"])
    solution = mw.optimize(proba, y, "f1", pos_label="sick", average="micro", strategy=mw.Strategy(**FIXED))
    predicted = solution.rule.predict(proba)
    assert solution.value == pytest.approx(sk.f1_score(y.ravel(), predicted.ravel(), labels=["sick"], average="micro"))


def test_labels_that_an_output_lacks_leave_the_others_where_they_are():
    """Seen labels are pooled by label: positions would move with what happens to occur."""
    _, y, predicted = named_outputs([0, 1, 2, 3], [0, 2, 3])
    for weights in (None, "quadratic"):
        expected = sk.cohen_kappa_score(y.ravel(), predicted.ravel(), weights=weights)
        assert mw.metrics.Kappa(weights).score(y, predicted, average="micro") == pytest.approx(expected, abs=1e-12)


# --------------------------------------------------------------------------------------------- the positive class


@pytest.mark.parametrize("name", ONE_CLASS)
@pytest.mark.parametrize("positive", ["fraud", "ok"])
@pytest.mark.filterwarnings("ignore:optimize. (Recall|Precision) of:UserWarning")
def test_the_positive_class_is_the_one_that_is_named(name, positive):
    proba, y = fraud(np.random.default_rng(1).beta(1, 4, 100))
    solution = mw.optimize(proba, y, name, pos_label=positive, strategy=mw.Strategy(**FIXED))
    predicted = solution.rule.predict(proba)
    assert solution.value == pytest.approx(ONE_CLASS[name](y, predicted, pos_label=positive), abs=1e-12)
    best = max(
        ONE_CLASS[name](y, np.where(proba[:, 0] > t, "fraud", "ok"), pos_label=positive, zero_division=0)
        for t in [-1.0, *proba[:, 0]]
    )
    assert solution.value == pytest.approx(best, abs=1e-12)
    same = mw.optimize(proba, y, mw.metrics.get_metric(name, pos_label=positive), strategy=mw.Strategy(**FIXED))
    assert same.rule == solution.rule


@pytest.mark.parametrize("name", [name for name in records.ONE_CLASS if not records.RECORDS[name].parameters(2)])
@pytest.mark.parametrize("labels", [["fraud", "ok"], [1, 2], [0.0, 2.0], ["0", "1"]])
def test_nobody_guesses_the_positive_class(name, labels):
    (proba,), y, _ = named_outputs(labels)
    y = y[:, 0]
    question = rf"the positive class is ambiguous: {labels[0]!r} or {labels[1]!r}; set pos_label="
    model = LogisticRegression()
    for ask in (
        lambda: mw.optimize(proba, y, name),
        lambda: mw.optimize(proba, y, name, classes=labels),
        lambda: mw.metrics.get_metric(name).score(y, y),
        lambda: mw.make_scorer(name)._score_func(y, y),
        lambda: mw.MetricOptimalClassifierCV(model, metric=name).fit(proba, y),
        lambda: mw.MetricWeightedClassifier(model, metric=name).fit(proba, y),
        lambda: mw.metrics.get_metric(name).bind([0.5, 0.5], labels),
    ):
        with pytest.raises(ValueError, match=question):
            ask()
    if name in ONE_CLASS and 1 not in labels:
        with pytest.raises(ValueError, match=r"pos_label|binary"):  # nor does scikit-learn
            ONE_CLASS[name](y, y)


@pytest.mark.parametrize("labels", [[0, 1], [-1, 1], [False, True], [0.0, 1.0], [-1.0, 1.0]])
def test_one_and_true_are_positive_wherever_they_stand(labels):
    (proba,), y, predicted = named_outputs(labels)
    y, predicted = y[:, 0], predicted[:, 0]
    expected = sk.f1_score(y, predicted)
    assert mw.metrics.FBeta().score(y, predicted) == pytest.approx(expected, abs=1e-12)
    assert mw.metrics.FBeta().score(y, predicted, classes=labels[::-1]) == pytest.approx(expected, abs=1e-12)
    solution = mw.optimize(proba, y, "f1", strategy=mw.Strategy(**FIXED))
    turned = mw.optimize(proba[:, ::-1], y, "f1", classes=labels[::-1], strategy=mw.Strategy(**FIXED))
    assert solution.value == pytest.approx(sk.f1_score(y, solution.rule.predict(proba)), abs=1e-12)
    assert turned.value == pytest.approx(solution.value, abs=1e-12)


@pytest.mark.parametrize("name", ONE_CLASS)
@pytest.mark.filterwarnings("ignore:optimize. (Recall|Precision) of:UserWarning")
def test_with_more_classes_it_is_one_against_the_rest(name):
    (proba,), y, predicted = named_outputs(["a", "b", "c"])
    y, predicted = y[:, 0], predicted[:, 0]
    expected = ONE_CLASS[name](y, predicted, labels=["b"], average="micro")
    assert mw.make_scorer(name, pos_label="b")._score_func(y, predicted) == pytest.approx(expected, abs=1e-12)
    solution = mw.optimize(proba, y, name, pos_label="b", strategy=mw.Strategy(**FIXED))
    assert (
        solution.value
        == mw.optimize(proba, y, mw.metrics.get_metric(name, pos_label="b"), strategy=mw.Strategy(**FIXED)).value
    )
    with pytest.raises(ValueError, match="name the class: pos_label="):
        mw.optimize(proba, y, name, strategy=mw.Strategy(**FIXED))


@pytest.mark.parametrize(
    ("metric", "sentence"),
    [
        ("accuracy", "Accuracy: 'accuracy' has no positive class; leave pos_label out"),
        ("kappa", "has no positive class"),
        ("macro_f1", "has no positive class"),
        ("f1_macro", "has no positive class"),
        ("micro_f1", "has no positive class"),
        (lambda C: C[0, 0], "has no positive class"),
        (mw.metrics.FBeta(pos_label="ok"), "FBeta: the metric already names class 'ok'; leave pos_label='fraud' out"),
        (mw.metrics.Recall(index=0), "Recall: the metric already names class 0"),
        (mw.metrics.Minimum([mw.metrics.Accuracy()]), "Minimum: none of the metrics needs a positive class"),
    ],
)
def test_a_positive_class_where_there_is_none_to_name_is_refused(metric, sentence):
    proba, y = fraud(np.linspace(0.05, 0.95, 40))
    with pytest.raises(ValueError, match=sentence):
        mw.optimize(proba, y, metric, pos_label="fraud")


def test_a_positive_class_is_one_of_the_classes_and_one_label():
    proba, y = fraud(np.linspace(0.05, 0.95, 40))
    with pytest.raises(ValueError, match=r"pos_label must be one of the classes \['fraud', 'ok'\], got 'Fraud'"):
        mw.optimize(proba, y, "f1", pos_label="Fraud")
    for bad in (["fraud"], [], {"fraud": 1}, [["fraud"]], np.nan, np.array([["fraud"]]), {"fraud"}):
        with pytest.raises(ValueError, match=r"pos_label must be one label or, for a 2-D y, a list"):
            mw.optimize(proba, y, "f1", pos_label=bad)
    assert mw.optimize(proba, y, "f1", pos_label=np.str_("fraud"), strategy=mw.Strategy(**FIXED)).rule == (
        mw.optimize(proba, y, "f1", pos_label="fraud", strategy=mw.Strategy(**FIXED)).rule
    )


def test_labels_are_shown_as_they_are_written():
    days = np.array(["2020-01-01", "2021-01-01"], dtype="datetime64[D]")
    with pytest.raises(mw.InvalidParameter, match=r"got \[2020-01-01, 2021-01-01\]\.$"):
        resolve("f1", "binary", pos_label=days)


def test_a_smallest_metric_hands_the_class_on():
    proba, y = fraud(np.linspace(0.05, 0.95, 60))
    open_end = mw.metrics.Minimum([mw.metrics.Accuracy(), mw.metrics.Recall()])
    named = mw.metrics.Minimum([mw.metrics.Accuracy(), mw.metrics.Recall(pos_label="fraud")])
    assert (
        mw.optimize(proba, y, open_end, pos_label="fraud", strategy=mw.Strategy(**FIXED)).value
        == mw.optimize(proba, y, named, strategy=mw.Strategy(**FIXED)).value
    )
    with pytest.raises(ValueError, match="the positive class is ambiguous: 'fraud' or 'ok'"):
        mw.optimize(proba, y, open_end, strategy=mw.Strategy(**FIXED))


def test_a_single_column_is_not_turned_silently():
    """One column is of pos_label, whatever sorts last."""
    both, y = fraud(np.linspace(0.05, 0.95, 40))
    expected = mw.optimize(both, y, "f1", pos_label="fraud", strategy=mw.Strategy(**FIXED)).value
    for classes in (None, ["ok", "fraud"], ["fraud", "ok"]):
        assert (
            mw.optimize(both[:, 0], y, "f1", pos_label="fraud", classes=classes, strategy=mw.Strategy(**FIXED)).value
            == expected
        )
        assert mw.optimize(both[:, 0], y, "f1[fraud]", classes=classes, strategy=mw.Strategy(**FIXED)).value == expected


def test_a_fold_that_shows_one_class_scores_as_in_scikit_learn():
    one = np.array(["ok"] * 5)
    ours = mw.make_scorer(mw.metrics.FBeta(zero_division=1.0), pos_label="fraud")._score_func(one, one)
    assert ours == sk.f1_score(one, one, pos_label="fraud", zero_division=1) == 1.0


# ---------------------------------------------------------------------------------------- one for all, or one each

PAIRS = (["bad", "good"], ["dirty", "neat"])


@pytest.mark.parametrize("positive", [["bad", "neat"], ["good", "neat"], np.array(["bad", "dirty"])])
def test_each_output_may_have_a_positive_class_of_its_own(positive):
    proba, y, predicted = named_outputs(*PAIRS)
    solution = mw.optimize(proba, y, "f1", pos_label=positive, average="macro", strategy=mw.Strategy(**FIXED))
    found = solution.rule.predict(proba)
    each = [
        mw.optimize(p, y[:, m], "f1", pos_label=positive[m], strategy=mw.Strategy(**FIXED)).value
        for m, p in enumerate(proba)
    ]
    assert solution.value == pytest.approx(np.mean(each), abs=1e-12)
    assert solution.value == pytest.approx(
        np.mean([sk.f1_score(y[:, m], found[:, m], pos_label=positive[m]) for m in range(2)]), abs=1e-12
    )
    for scored in (
        mw.metrics.FBeta().score(y, predicted, pos_label=positive, average="macro"),
        mw.make_scorer("f1_macro", pos_label=positive)._score_func(y, predicted),
    ):
        each = [sk.f1_score(y[:, m], predicted[:, m], pos_label=positive[m]) for m in range(2)]
        assert scored == pytest.approx(np.mean(each), abs=1e-12)


def test_one_each_at_one_position_is_pooled_and_else_refused():
    proba, y, predicted = named_outputs(*PAIRS)
    indicator = y == ["good", "neat"]
    expected = sk.f1_score(indicator, predicted == ["good", "neat"], average="micro")
    for average in ("micro", "instance"):
        with pytest.raises(ValueError, match="must have the same position in all outputs"):
            mw.optimize(proba, y, "f1", pos_label=["bad", "neat"], average=average, strategy=mw.Strategy(**FIXED))
        with pytest.raises(ValueError, match="must have the same position in all outputs"):
            mw.metrics.FBeta().score(y, predicted, pos_label=["bad", "neat"], average=average)
    assert mw.metrics.FBeta().score(y, predicted, pos_label=["good", "neat"], average="micro") == pytest.approx(
        expected
    )
    solution = mw.optimize(proba, y, "f1", pos_label=["good", "neat"], average="micro", strategy=mw.Strategy(**FIXED))
    plain = mw.optimize(
        np.stack([p[:, 1] for p in proba], axis=1), indicator.astype(int), "f1", strategy=mw.Strategy(**FIXED)
    )
    assert solution.value == plain.value


@pytest.mark.parametrize("name", ["f1_micro", "f1_macro", "f1_weighted", "f1_samples"])
@pytest.mark.parametrize("positive", ["no", "yes"])
def test_multilabel_names_count_the_class_that_is_named(name, positive):
    proba, y, predicted = named_outputs(["no", "yes"], ["no", "yes"], ["no", "yes"])
    average = name.partition("_")[2]
    expected = sk.f1_score(y == positive, predicted == positive, average=average, zero_division=0)
    scored = mw.make_scorer(name, pos_label=positive)._score_func(y, predicted)
    assert scored == pytest.approx(expected, abs=1e-12)
    solution = mw.optimize(proba, y, name, pos_label=positive, strategy=mw.Strategy(**FIXED))
    found = solution.rule.predict(proba)
    assert solution.value == pytest.approx(
        sk.f1_score(y == positive, found == positive, average=average, zero_division=0), abs=1e-12
    )


def test_one_each_must_be_as_many_as_outputs():
    proba, y, _ = named_outputs(*PAIRS)
    with pytest.raises(ValueError, match="one for each of the 2 outputs, got 3"):
        mw.optimize(proba, y, "f1", pos_label=["bad", "neat", "good"], average="macro")


# ------------------------------------------------------------------------------------------ what it used to be called


def test_the_former_name_of_a_positive_class_still_works():
    with pytest.warns(FutureWarning, match="FBeta: label= is deprecated; use pos_label=") as caught:
        old = mw.metrics.FBeta(beta=2.0, label="b")
    assert caught[0].filename == __file__
    new = mw.metrics.FBeta(beta=2.0, pos_label="b")
    assert old == new == copy.deepcopy(old)
    assert repr(old) == repr(new) == "FBeta(index=None, pos_label='b', zero_division=0.0, beta=2.0)"
    assert replace(new, pos_label="c").pos_label == "c"
    with pytest.raises(ValueError, match="label= is the former name of pos_label=; use only"):
        mw.metrics.FBeta(label="b", pos_label="b")


# -------------------------------------------------------------------------------------------------- order of classes


@pytest.mark.parametrize("name", records.ORDERED)
def test_words_have_no_order_until_someone_gives_it(name):
    metric = records.make(name, 3)
    (proba,), y, predicted = named_outputs(sorted(SCALE))
    y, predicted = y[:, 0], predicted[:, 0]
    question = r"pass order=\[lowest, \.\.\., highest\], .* The classes are 'high', 'low', 'mid'; classes= names"
    for ask in (
        lambda: mw.optimize(proba, y, name, strategy=mw.Strategy(**FIXED)),
        lambda: mw.optimize(proba, y, name, classes=sorted(SCALE), strategy=mw.Strategy(**FIXED)),
        lambda: metric.score(y, predicted),
        lambda: metric.score(y, predicted, classes=sorted(SCALE)),
        lambda: mw.make_scorer(name, classes=sorted(SCALE))._score_func(y, predicted),
        lambda: mw.make_scorer(name)._score_func(y, predicted),
        lambda: mw.MetricOptimalClassifierCV(LogisticRegression(), metric=name).fit(proba, y),
        lambda: mw.MetricOptimalClassifierCV(LogisticRegression().fit(proba, y), metric=name, cv="prefit").fit(
            proba, y
        ),
        lambda: mw.MetricWeightedClassifier(LogisticRegression(), metric=name).fit(proba, y),
    ):
        with pytest.raises(ValueError, match=question):
            ask()
    places = np.array([SCALE.index(label) for label in y])
    guesses = np.array([SCALE.index(label) for label in predicted])
    expected = metric.score(places, guesses)
    assert replace(metric, order=SCALE).score(y, predicted) == pytest.approx(expected, abs=1e-12)
    assert mw.make_scorer(name, order=SCALE)._score_func(y, predicted) == pytest.approx(expected, abs=1e-12)
    columns = [sorted(SCALE).index(label) for label in SCALE]
    by_place = mw.optimize(proba[:, columns], places, name, strategy=mw.Strategy(**FIXED))
    by_word = mw.optimize(proba[:, columns], y, name, classes=SCALE, order=SCALE, strategy=mw.Strategy(**FIXED))
    assert by_word.value == by_place.value
    for classes in (None, sorted(SCALE)):
        sorted_columns = mw.optimize(proba, y, name, classes=classes, order=SCALE, strategy=mw.Strategy(**FIXED))
        assert sorted_columns.value == pytest.approx(by_place.value, abs=1e-12)


@pytest.mark.parametrize("name", records.ORDERED)
@pytest.mark.parametrize(
    "labels",
    [[1, 2, 5], [0.5, 1.0, 3.0], np.array([date(2020, 1, 1), date(2021, 1, 1), date(2022, 1, 1)], dtype=object)],
)
def test_numbers_and_dates_have_an_order_of_their_own(name, labels):
    (proba,), y, _ = named_outputs(labels)
    codes = np.searchsorted(labels, y[:, 0])
    assert (
        mw.optimize(proba, y[:, 0], name, strategy=mw.Strategy(**FIXED)).value
        == mw.optimize(proba, codes, name, strategy=mw.Strategy(**FIXED)).value
    )


def test_two_words_need_no_order_where_it_does_not_matter():
    _, y, predicted = named_outputs(["bad", "good"])
    y, predicted = y[:, 0], predicted[:, 0]
    for make in (mw.metrics.Ordinal, lambda: mw.metrics.Kappa("quadratic")):
        assert make().score(y, predicted) == pytest.approx(make().score(y == "good", predicted == "good"))
    with pytest.raises(ValueError, match="WeightedExponential: the metric depends on the order"):
        mw.metrics.WeightedExponential().score(y, predicted)


def test_the_negative_class_of_words_is_asked_for():
    (proba,), y, predicted = named_outputs(["b", "none", "z"])
    y, predicted = y[:, 0], predicted[:, 0]
    question = r"MicroF1: the negative class is ambiguous: one of \['b', 'none', 'z'\]; set it"
    with pytest.raises(ValueError, match=question):
        mw.optimize(proba, y, "micro_f1", strategy=mw.Strategy(**FIXED))
    with pytest.raises(ValueError, match=question):
        mw.metrics.MicroF1().score(y, predicted)
    expected = sk.f1_score(y, predicted, labels=["b", "z"], average="micro")
    assert mw.metrics.MicroF1(negative_label="none").score(y, predicted) == pytest.approx(expected)
    with pytest.raises(ValueError, match="MicroF1: the negative class is ambiguous"):
        mw.metrics.MicroF1().score(y, predicted, classes=["none", "b", "z"])
    numbers = np.searchsorted(["b", "none", "z"], y)
    assert mw.metrics.MicroF1().score(numbers, numbers) == 1.0
    guesses = np.searchsorted(["b", "none", "z"], predicted)
    lowest = sk.f1_score(numbers, guesses, labels=[1, 2], average="micro")
    for classes in (None, [2, 0, 1]):  # whatever the columns are
        assert mw.metrics.MicroF1().score(numbers, guesses, classes=classes) == pytest.approx(lowest)


# ------------------------------------------------------------------------------- outputs of different classes, pooled


def test_pooling_different_classes_must_be_asked_for():
    proba, y, predicted = named_outputs(["no", "yes"], ["blue", "green", "red"])
    question = (
        r"average must be given if outputs have different classes, such as output 0 with \['no', 'yes'\] and output 1"
    )
    tree = DecisionTreeClassifier(max_depth=3)
    X = np.hstack(proba)
    for ask in (
        lambda: mw.optimize(proba, y, "kappa"),
        lambda: mw.metrics.Kappa().score(y, predicted),
        lambda: mw.make_scorer("kappa")._score_func(y, predicted),
        lambda: mw.MetricOptimalClassifierCV(tree, metric="kappa").fit(X, y),
        lambda: mw.theory.regret(
            mw.optimize(proba, y, "kappa", average="macro", strategy=mw.Strategy(**FIXED)).rule, proba, proba, "kappa"
        ),
        lambda: mw.optimize(proba[::-1], None, "macro_f1", classes=[["a", "b", "c"], ["a", "b"]]),
    ):
        with pytest.raises(ValueError, match="average must be given if outputs have different classes"):
            ask()
    with pytest.raises(ValueError, match=question + r".*'macro', the mean over outputs, is intended"):
        mw.optimize(proba, y, "kappa")
    for average in ("micro", "macro", "instance"):
        mw.optimize(proba, y, "kappa", average=average, strategy=mw.Strategy(**FIXED))
    macro = mw.metrics.Kappa().score(y, predicted, average="macro")
    assert macro == pytest.approx(np.mean([sk.cohen_kappa_score(y[:, m], predicted[:, m]) for m in range(2)]))


def test_without_labels_different_sizes_are_different_classes():
    sizes = np.array([2, 3])
    C = np.zeros((2, 3, 3))
    C[0, :2, :2], C[1] = 0.25, 1 / 9
    with pytest.raises(ValueError, match="average must be given if outputs have different classes"):
        mw.theory.loss_from_gradient("kappa", C, n_classes=sizes)
    mw.theory.loss_from_gradient("kappa", C, n_classes=sizes, average="macro")


def test_the_same_classes_are_pooled_unasked():
    proba, y, predicted = named_outputs([0, 1, 2], [0, 1, 2])
    assert (
        mw.optimize(proba, y, "kappa", strategy=mw.Strategy(**FIXED)).value
        == mw.optimize(proba, y, "kappa", average="micro", strategy=mw.Strategy(**FIXED)).value
    )
    assert mw.metrics.Kappa().score(y, predicted) == pytest.approx(sk.cohen_kappa_score(y.ravel(), predicted.ravel()))
    assert not resolve("kappa", "multioutput").average_given
    assert resolve("f1_macro", "multilabel").average_given


# ------------------------------------------------------------------------------------- functions, scorers, recorded


def test_functions_and_scorers_take_the_positive_class():
    proba, y = fraud(np.random.default_rng(1).beta(1, 4, 300))
    expected = mw.optimize(proba, y, "f1", pos_label="fraud", strategy=mw.Strategy(**FIXED)).rule
    for metric in (sk.f1_score, sk.make_scorer(sk.f1_score), mw.make_scorer("f1")):
        assert mw.optimize(proba, y, metric, pos_label="fraud", strategy=mw.Strategy(**FIXED)).rule == expected
        with pytest.raises(ValueError, match="the positive class is ambiguous: 'fraud' or 'ok'"):
            mw.optimize(proba, y, metric, strategy=mw.Strategy(**FIXED))
    for metric in (sk.make_scorer(sk.f1_score, pos_label="fraud"), mw.make_scorer("f1", pos_label="fraud")):
        assert mw.optimize(proba, y, metric, strategy=mw.Strategy(**FIXED)).rule == expected
        with pytest.raises(ValueError, match="already names class 'fraud'"):
            mw.optimize(proba, y, metric, pos_label="ok", strategy=mw.Strategy(**FIXED))
    loss = sk.make_scorer(sk.f1_score, greater_is_better=False)
    assert mw.optimize(proba, y, loss, pos_label="fraud", strategy=mw.Strategy(**FIXED)).value <= 0


def test_recorded_metrics_are_of_the_same_positive_class():
    proba, y = fraud(np.random.default_rng(1).beta(1, 4, 300))
    record = ["precision", "recall", "accuracy", mw.metrics.Recall(pos_label="ok")]
    named = dict(zip(["precision", "recall", "accuracy", "other"], record, strict=True))
    solution = mw.optimize(proba, y, "f1", pos_label="fraud", record=named, strategy=mw.Strategy(**FIXED))
    predicted = solution.rule.predict(proba)
    for name, expected in (
        ("precision", sk.precision_score(y, predicted, pos_label="fraud")),
        ("recall", sk.recall_score(y, predicted, pos_label="fraud")),
        ("accuracy", sk.accuracy_score(y, predicted)),
        ("other", sk.recall_score(y, predicted, pos_label="ok")),
    ):
        assert solution.recorded[name].value == pytest.approx(expected, abs=1e-12)
    with pytest.raises(ValueError, match="the positive class is ambiguous: 'fraud' or 'ok'"):
        mw.optimize(proba, y, "accuracy", record=["precision"], strategy=mw.Strategy(**FIXED))


@pytest.mark.parametrize("positive", ["no", "yes"])
def test_recorded_metrics_weigh_outputs_by_the_class_that_is_maximised(positive):
    proba, y, _ = named_outputs(["no", "yes"], ["no", "yes"])
    solution = mw.optimize(
        proba, y, "f1_weighted", pos_label=positive, record=["hamming_accuracy"], strategy=mw.Strategy(**FIXED)
    )
    right = (solution.rule.predict(proba) == y).mean(axis=0)
    expected = np.average(right, weights=(y == positive).sum(axis=0))
    assert solution.recorded["hamming_accuracy"].value == pytest.approx(expected, abs=1e-12)


def test_a_function_of_labels_is_not_pooled_over_different_ones():
    proba, y, predicted = named_outputs(["normal", "raised"], ["low", "normal", "raised"])

    def found(y_true, y_pred, sample_weight=None):
        return sk.f1_score(y_true, y_pred, labels=["normal"], average="micro", sample_weight=sample_weight)

    metric = resolve(found, "multioutput").metric
    with pytest.raises(ValueError, match="found is a function of labels, so outputs with different labels"):
        mw.optimize(proba, y, found, average="micro", strategy=mw.Strategy(**FIXED))
    expected = sk.f1_score(y.ravel(), predicted.ravel(), labels=["normal"], average="micro")
    assert metric.score(y, predicted, average="micro") == pytest.approx(expected, abs=1e-12)
