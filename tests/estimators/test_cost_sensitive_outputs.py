"""The training route for several outputs: each is trained as it would be alone, but for a loss that is shared."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
import sklearn.metrics as sk
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from joblib import parallel_config
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import make_multilabel_classification
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

import metricwise as mw
from metricwise.core.losses import Loss
from profiles import diagonal, examples, first

TREE = DecisionTreeClassifier(max_depth=3, random_state=0)
WORDS = (np.array(["high", "low", "mid"]), np.array([0, 1]), np.array([1, 2, 5, 7]))


def draw(n=300, sizes=(3, 2, 4), missing=0.3, seed=0):
    """Features and the codes (N, M) of labels that follow from them, some of which are not known: -1."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    scores = [X @ rng.normal(size=(4, k)) + rng.normal(size=(n, k)) + np.linspace(1.5, 0, k) for k in sizes]
    codes = np.stack([score.argmax(axis=1) for score in scores], axis=1)
    codes[rng.uniform(size=codes.shape) < missing] = -1
    return X, codes


def worded(codes):
    """Labels of three types, None where one is missing."""
    y = np.full(codes.shape, None, dtype=object)
    for m, names in enumerate(WORDS):
        seen = codes[:, m] >= 0
        y[seen, m] = names[codes[seen, m]]
    return y


def column(codes, m):
    """The rows of output m whose label is known, and their labels."""
    rows = np.flatnonzero(codes[:, m] >= 0)
    return rows, WORDS[m][codes[rows, m]]


def losses(seed=0):
    rng = np.random.default_rng(seed)
    return [rng.uniform(size=(len(names), len(names))) * (1 - np.eye(len(names))) for names in WORDS]


# ------------------------------------------------------------------------------------------------- a loss that is known


@pytest.mark.parametrize("estimator", [GaussianNB(), TREE, LogisticRegression(), RidgeClassifier()])
@pytest.mark.parametrize("weighted", [False, True])
def test_every_output_is_trained_as_if_alone_on_its_observed_rows(estimator, weighted):
    X, codes = draw()
    weight = np.random.default_rng(1).uniform(0.5, 2, len(X)) if weighted else None
    model = mw.CostSensitiveClassifier(estimator, losses()).fit(X, worded(codes), sample_weight=weight)
    predicted = model.predict(X)
    assert predicted.shape == codes.shape
    assert model.n_features_in_ == 4
    assert not hasattr(model, "predict_proba")
    for m, loss in enumerate(losses()):
        rows, y = column(codes, m)
        own = None if weight is None else weight[rows]
        alone = mw.CostSensitiveClassifier(estimator, loss).fit(X[rows], y, sample_weight=own)
        assert predicted[:, m].tolist() == alone.predict(X).tolist()
        assert model.classes_[m].tolist() == WORDS[m].tolist()
        np.testing.assert_array_equal(model.loss_[m], loss)
        inner = model.estimator_.estimators_[m]
        np.testing.assert_array_equal(inner.predict(X), alone.estimator_.predict(X))
    assert model.estimator_.predict(X).tolist() == predicted.tolist()
    right = [np.equal(predicted[codes[:, m] >= 0, m], column(codes, m)[1]) for m in range(3)]
    assert model.score(X, worded(codes)) == pytest.approx(np.mean(np.concatenate(right)), abs=1e-12)


@examples(60)
@given(
    cell=hnp.arrays(np.int64, 30, elements=st.integers(0, 3)),
    codes=hnp.arrays(np.int64, (30, 2), elements=st.integers(-1, 2)),
    loss=hnp.arrays(np.float64, (2, 3, 3), elements=st.integers(0, 9)),
    weight=st.none() | hnp.arrays(np.float64, 30, elements=st.integers(0, 3)),
)
def test_decisions_are_of_least_loss_in_every_cell(cell, codes, loss, weight):
    """A tree over one feature of few values is the empirical distribution, and its decisions can be counted."""
    mass = np.ones(30) if weight is None else weight
    own = [loss[m] if np.ptp(loss[m], axis=1).any() else 1 - np.eye(3) for m in range(2)]
    if not any(((codes[:, m] >= 0) * mass * (own[m].max() - own[m])[codes[:, m]].max(axis=1)).any() for m in range(2)):
        return  # nothing to train on, which is refused
    y = np.where(codes < 0, np.nan, codes)
    model = mw.CostSensitiveClassifier(DecisionTreeClassifier(random_state=0), own, classes=[0, 1, 2])
    predicted = model.fit(cell[:, None], y, sample_weight=weight).predict(np.arange(4)[:, None]).astype(int)
    for m in range(2):
        for value in range(4):
            seen = np.array([mass[(cell == value) & (codes[:, m] == k)].sum() for k in range(3)])
            # A class for which all decisions cost the most is not trained on: it makes no difference to the best one.
            trained = seen * ((own[m].max() - own[m]).max(axis=1) > 0)
            if trained.any():
                expected = trained @ own[m]
                assert expected[predicted[value, m]] == pytest.approx(expected.min(), abs=1e-9)


def test_whole_weights_are_repetitions():
    X, codes = draw(missing=0.2)
    weight = np.random.default_rng(0).integers(0, 4, len(X))
    repeated = np.repeat(np.arange(len(X)), weight)
    model = mw.CostSensitiveClassifier(GaussianNB(), losses())
    once = clone(model).fit(X, worded(codes), sample_weight=weight)
    often = clone(model).fit(X[repeated], worded(codes)[repeated])
    for m in range(3):
        np.testing.assert_allclose(once.estimator_.estimators_[m].theta_, often.estimator_.estimators_[m].theta_)
    assert once.predict(X).tolist() == often.predict(X).tolist()


def test_a_loss_comes_in_many_forms():
    X, codes = draw(sizes=(3, 3), missing=0)
    tensor = np.stack([losses(seed)[0] for seed in range(2)])
    plain = 1 - np.eye(3)
    names = [0, 1, 2]
    by_name = [pd.DataFrame(own, names, names).loc[[2, 0, 1], [1, 2, 0]] for own in tensor]

    def read(loss):
        return mw.CostSensitiveClassifier(GaussianNB(), loss).fit(X, codes).loss_

    for loss in (tensor, list(tensor), tensor.tolist(), tuple(tensor.tolist()), Loss(full=tensor), by_name):
        np.testing.assert_array_equal(read(loss), tensor)
    for loss in (tensor[0], tensor[0].tolist(), Loss(full=tensor[:1]), by_name[0]):
        np.testing.assert_array_equal(read(loss), tensor[[0, 0]])
    np.testing.assert_array_equal(read(None), [plain, plain])
    np.testing.assert_array_equal(read([None, tensor[1]]), [plain, tensor[1]])
    np.testing.assert_array_equal(read([by_name[0], tensor[1].tolist()]), tensor)


def test_the_padded_loss_of_a_rule_is_cut_to_each_output():
    X, codes = draw(missing=0)
    padded = np.ones((3, 4, 4))
    for m, own in enumerate(losses()):
        padded[m, : len(own), : len(own)] = own
    model = mw.CostSensitiveClassifier(GaussianNB(), Loss(full=padded)).fit(X, worded(codes))
    for found, own in zip(model.loss_, losses(), strict=True):
        np.testing.assert_array_equal(found, own)


@pytest.mark.parametrize(
    ("loss", "error", "words"),
    [
        (losses()[:2], ValueError, "one matrix for all outputs, or one for each of the 3 outputs of y, got 2 matrices"),
        (losses()[0], ValueError, r"loss must have shape \(2, 2\), .* got \(3, 3\) \(output 1\)"),
        ([losses()[0], None, None, None], ValueError, "got 4 matrices"),
        ([losses()[0], np.ones((2, 2)), None], ValueError, r"constant in every row.* \(output 1\)"),
        ([losses()[0], [["a", "b"]] * 2, None], TypeError, r"a matrix of numbers.* \(output 1\)"),
        (Loss.argmax(3), ValueError, "1 output or 3, .* 4 classes, got a Loss of 1 outputs and 3 classes"),
        (
            Loss.from_tensor(np.zeros((2, 4, 4))),
            ValueError,
            "1 output or 3, .* a Loss of 2 outputs and 4 classes",
        ),
    ],
)
def test_bad_losses_are_refused(loss, error, words):
    X, codes = draw()
    with pytest.raises(error, match=f"^CostSensitiveClassifier: .*{words}"):
        mw.CostSensitiveClassifier(GaussianNB(), loss).fit(X, worded(codes))


def test_classes_are_the_order_of_the_loss():
    X, codes = draw(missing=0.2)
    y, loss = worded(codes), losses()
    order = ["low", "mid", "high"]
    places = [order.index(name) for name in WORDS[0]]
    turned = loss[0][np.ix_(np.argsort(places), np.argsort(places))]
    model = mw.CostSensitiveClassifier(TREE, [turned, *loss[1:]], classes=[order, *WORDS[1:]]).fit(X, y)
    plain = mw.CostSensitiveClassifier(TREE, loss).fit(X, y)
    assert model.classes_[0].tolist() == order
    assert model.predict(X).tolist() == plain.predict(X).tolist()
    alone = mw.CostSensitiveClassifier(TREE, turned, classes=order).fit(*_observed(X, codes))
    assert alone.predict(X).tolist() == plain.predict(X)[:, 0].tolist()


def _observed(X, codes):
    rows, y = column(codes, 0)
    return X[rows], y


def test_outputs_that_labels_say_nothing_about():
    X, _ = draw(60)
    rng = np.random.default_rng(0)
    y = np.column_stack([rng.integers(0, 2, 60), np.full(60, np.nan), np.ones(60)])
    dear = np.array([[0.0, 1.0], [9.0, 0.0]])  # where nothing is known, class 1 is the safe one
    for loss, unknown in ((None, 0), (dear, 1)):
        model = mw.CostSensitiveClassifier(GaussianNB(), loss).fit(X, y)
        assert model.estimator_.estimators_[1] is None
        assert set(model.predict(X)[:, 1]) == {unknown}
        assert set(model.predict(X)[:, 2]) == {1}
    # One class alone may still be dear to be right about.
    bold = np.array([[0.0, 1.0], [-1.0, 0.0]])
    assert set(mw.CostSensitiveClassifier(TREE, bold).fit(X, y).predict(X)[:, 2]) == {0}
    y[0] = np.nan
    with pytest.raises(ValueError, match="must leave at least one row with a positive weight"):
        mw.CostSensitiveClassifier(TREE, None).fit(X, y, sample_weight=np.arange(60) == 0)


@pytest.mark.parametrize(
    "guise",
    [
        lambda y: np.ma.masked_invalid(y),
        lambda y: pd.DataFrame(y, columns=["a", "b"]).astype("Int64"),
        lambda y: pd.DataFrame(y, columns=["a", "b"]),
        lambda y: np.where(np.isnan(y), None, y),
        lambda y: y.tolist(),
    ],
)
@pytest.mark.parametrize("make", [lambda: mw.CostSensitiveClassifier(TREE, None), lambda: weighted_for("f1")])
def test_labels_are_missing_in_any_guise(guise, make):
    X, codes = draw(sizes=(2, 2))
    y = np.where(codes < 0, np.nan, codes)
    expected = make().fit(X, y)
    model = make().fit(X, guise(y))
    np.testing.assert_array_equal(model.predict(X).astype(float), expected.predict(X))
    assert model.score(X, guise(y)) == pytest.approx(expected.score(X, y), abs=1e-12)


def test_a_column_with_gaps_is_one_output_of_the_rows_observed():
    X, codes = draw(sizes=(3,))
    seen = codes[:, 0] >= 0
    with pytest.warns(sklearn.exceptions.DataConversionWarning, match="A column-vector y was passed"):
        model = mw.CostSensitiveClassifier(TREE, losses()[0]).fit(X, np.where(codes < 0, np.nan, codes))
    alone = mw.CostSensitiveClassifier(TREE, losses()[0]).fit(X[seen], codes[seen, 0])
    np.testing.assert_array_equal(model.predict(X), alone.predict(X))


# ---------------------------------------------------------------------------------------------------- for a metric


def weighted_for(metric, estimator=TREE, **options):
    return mw.MetricWeightedClassifier(estimator, metric=metric, **{"cv": 3, **options})


def splits_of(rows, n, folds=3):
    """Folds of all rows, and the same folds of some of them, by their numbers among those."""
    whole = list(KFold(folds).split(np.zeros(n)))
    place = np.full(n, -1)
    place[rows] = np.arange(len(rows))
    return whole, [tuple(place[part][place[part] >= 0] for part in split) for split in whole]


@pytest.mark.parametrize(
    ("metric", "estimator", "weighted"),
    diagonal(
        10, ["balanced_accuracy", "g_mean", "macro_f1", "min_recall", "kappa"], [GaussianNB(), TREE], [False, True]
    ),
)
def test_under_macro_every_output_is_trained_as_if_alone_on_its_observed_rows(metric, estimator, weighted):
    X, codes = draw()
    weight = np.random.default_rng(1).integers(1, 4, len(X)) * 0.5 if weighted else None
    alpha = np.array([1.0, 2.0, 0.5])
    whole, _ = splits_of(np.arange(len(X)), len(X))
    model = weighted_for(metric, estimator, average="macro", output_weight=alpha, cv=whole)
    model.fit(X, worded(codes), sample_weight=weight)
    predicted, values, plain = model.predict(X), [], []
    for m in range(3):
        rows, y = column(codes, m)
        own = None if weight is None else weight[rows]
        alone = weighted_for(metric, estimator, cv=splits_of(rows, len(X))[1]).fit(X[rows], y, sample_weight=own)
        np.testing.assert_allclose(model.loss_[m], alone.loss_, rtol=1e-12, atol=1e-15)
        assert predicted[:, m].tolist() == alone.predict(X).tolist()
        values.append(alone.best_score_)
        plain.append(alone.history_[0])
    assert model.best_score_ == pytest.approx(alpha @ values / alpha.sum(), abs=1e-12)
    assert model.history_[0] == pytest.approx(alpha @ plain / alpha.sum(), abs=1e-12)
    assert model.best_score_ >= max(model.history_)
    assert model.n_iter_ == len(model.history_)


def test_a_metric_for_each_output():
    X, codes = draw()
    y = pd.DataFrame(worded(codes), columns=["word", "flag", "grade"])
    metrics = {"grade": "quadratic_kappa", "word": "g_mean", "flag": "f1"}
    whole, _ = splits_of(np.arange(len(X)), len(X))
    model = weighted_for(metrics, cv=whole).fit(X, y)
    for m, name in enumerate(y.columns):
        rows, own = column(codes, m)
        alone = weighted_for(metrics[name], cv=splits_of(rows, len(X))[1]).fit(X[rows], own)
        np.testing.assert_allclose(model.loss_[m], alone.loss_, rtol=1e-12, atol=1e-15)
    by_name, by_place = model.score(X, y), model.score(X, worded(codes))
    assert by_name == pytest.approx(by_place, abs=1e-12)


@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_under_micro_the_loss_is_that_of_the_pooled_confusion(missing):
    """The loss of F1 at a value F is F for a true negative and 2 - F for a true positive, up to its scale."""
    X, codes = draw(600, (2, 2, 2), missing)
    folds = KFold(3)
    whole = list(folds.split(X))
    out = np.empty_like(codes)
    for train, test in whole:  # plain training, output by output, on what is observed
        for m in range(3):
            rows = train[codes[train, m] >= 0]
            out[test, m] = clone(TREE).fit(X[rows], codes[rows, m]).predict(X[test])
    seen = codes >= 0
    f1 = sk.f1_score(codes[seen], out[seen])
    y = np.where(seen, codes, np.nan)
    first = weighted_for("f1", average="micro", cv=whole, max_iter=1).fit(X, y)
    assert first.history_ == [pytest.approx(f1, abs=1e-12)]
    second = weighted_for("f1", average="micro", cv=whole, max_iter=2).fit(X, y)
    assert second.best_score_ > f1
    positive = codes[seen].mean()
    scale = (1 - positive) * f1 + positive * (2 - f1)
    for loss in second.loss_:
        np.testing.assert_allclose(loss, np.diag([-f1, f1 - 2]) / scale, rtol=1e-9)


@pytest.mark.parametrize("metric", ["hamming_accuracy", "balanced_accuracy"])
def test_linear_metrics_end_at_their_class_weights(metric):
    """Balanced accuracy weighs a class by one over its share: of all outputs under micro, of its own under macro."""
    X, codes = draw(400, (2, 2), missing=0.3, seed=3)
    y = np.where(codes < 0, np.nan, codes)
    for average in ("micro", "macro"):
        model = weighted_for(metric, GaussianNB(), average=average).fit(X, y)
        for m in range(2):
            pool = codes[codes >= 0] if average == "micro" else codes[codes[:, m] >= 0, m]
            shares = np.bincount(pool) / len(pool)
            expected = -np.eye(2) if metric == "hamming_accuracy" else -np.diag(0.5 / shares)
            np.testing.assert_allclose(model.loss_[m], expected, rtol=1e-9)


@pytest.mark.parametrize("average", ["micro", "macro", "instance"])
@pytest.mark.parametrize("metric", ["f1", "hamming_accuracy"])
def test_the_value_is_that_of_rows_not_seen(average, metric):
    X, Y = make_multilabel_classification(240, n_classes=3, random_state=0)
    folds = KFold(4)
    out = np.column_stack([cross_val_predict(TREE, X, own, cv=folds) for own in Y.T])
    model = weighted_for(metric, average=average, cv=folds, max_iter=1).fit(X, Y)
    if metric == "hamming_accuracy":
        expected = np.mean(out == Y)
    else:
        expected = sk.f1_score(Y, out, average={"instance": "samples"}.get(average, average), zero_division=0)
    assert model.best_score_ == pytest.approx(expected, abs=1e-12)
    np.testing.assert_array_equal(model.loss_, [-np.eye(2)] * 3)
    longer = weighted_for(metric, average=average, cv=folds).fit(X, Y)
    assert longer.best_score_ >= expected - 1e-12
    predicted = longer.predict(X)
    if metric == "f1":
        value = sk.f1_score(Y, predicted, average={"instance": "samples"}.get(average, average), zero_division=0)
        assert longer.score(X, Y) == pytest.approx(value, abs=1e-12)
        assert len({loss.tobytes() for loss in longer.loss_}) == (3 if average == "macro" else 1)


def test_names_of_scikit_learn_fix_the_average():
    X, Y = make_multilabel_classification(240, n_classes=3, random_state=0)
    for name, average in (("f1_micro", "micro"), ("f1_macro", "macro"), ("f1_samples", "instance")):
        by_name, by_word = weighted_for(name).fit(X, Y), weighted_for("f1", average=average).fit(X, Y)
        assert by_name.history_ == by_word.history_
    weighted = weighted_for("f1_weighted", max_iter=1, cv=KFold(3)).fit(X, Y)
    out = np.column_stack([cross_val_predict(TREE, X, own, cv=KFold(3)) for own in Y.T])
    assert weighted.best_score_ == pytest.approx(sk.f1_score(Y, out, average="weighted"), abs=1e-12)


@pytest.mark.parametrize("average", ["micro", "macro", "instance"])
@pytest.mark.parametrize("metric", ["f1", "g_mean"])
def test_multilabel_is_multioutput_of_two_classes(average, metric):
    X, codes = draw(sizes=(2, 2, 2))
    names = np.array(["no", "yes"])
    words = np.where(codes < 0, None, names[codes])
    labels = weighted_for(metric, average=average).fit(X, np.where(codes < 0, np.nan, codes))
    named = weighted_for(metric, average=average, pos_label="yes" if metric == "f1" else None).fit(X, words)
    np.testing.assert_array_equal(named.loss_, labels.loss_)
    assert named.history_ == labels.history_
    np.testing.assert_array_equal(named.predict(X), names[labels.predict(X).astype(int)])
    assert named.score(X, words) == pytest.approx(labels.score(X, np.where(codes < 0, np.nan, codes)), abs=1e-12)
    if average == "macro":  # names may then differ from output to output
        turned = words.copy()
        turned[:, 1] = np.where(codes[:, 1] < 0, None, np.array(["cold", "warm"])[codes[:, 1]])
        positive = ["yes", "warm", "yes"] if metric == "f1" else None
        other = weighted_for(metric, average=average, pos_label=positive).fit(X, turned)
        np.testing.assert_array_equal(other.loss_, labels.loss_)


def test_outputs_of_different_classes_are_pooled_only_if_asked():
    X, codes = draw()
    with pytest.raises(ValueError, match="average must be given if outputs have different classes"):
        weighted_for("g_mean").fit(X, worded(codes))
    y = np.where(codes < 0, np.nan, codes)
    model = weighted_for("quadratic_kappa", average="micro").fit(X, y)
    assert model.best_score_ > model.history_[0]
    widest = model.loss_[2]
    for m, k in enumerate((3, 2, 4)):  # what decisions differ by is shared, and no weight is spent on what none changes
        np.testing.assert_allclose(np.diff(model.loss_[m]), np.diff(widest[:k, :k]), atol=1e-12)
        np.testing.assert_allclose(model.loss_[m].max(axis=1), 0, atol=1e-12)


@pytest.mark.parametrize("average", ["micro", "macro", "instance"])
def test_whole_weights_are_repetitions_for_a_metric_too(average):
    X, codes = draw(200, (2, 2), missing=0.2)
    y = np.where(codes < 0, np.nan, codes)
    weight = np.random.default_rng(0).integers(0, 4, len(X))
    repeated = np.repeat(np.arange(len(X)), weight)
    whole = list(KFold(3).split(X))
    model = weighted_for("f1", GaussianNB(), average=average)
    once = clone(model).set_params(cv=whole).fit(X, y, sample_weight=weight)
    again = [tuple(np.flatnonzero(np.isin(repeated, part)) for part in split) for split in whole]
    often = clone(model).set_params(cv=again).fit(X[repeated], y[repeated])
    np.testing.assert_allclose(once.history_, often.history_, rtol=1e-9)
    np.testing.assert_allclose(once.loss_, often.loss_, rtol=1e-9)
    np.testing.assert_array_equal(once.predict(X), often.predict(X))
    plain = clone(model).set_params(cv=whole).fit(X, y)
    assert plain.history_[0] != once.history_[0]


def test_an_ordinal_metric_takes_an_order():
    X, codes = draw(400, (3, 3), missing=0.2)
    scale = ["low", "mid", "high"]
    words = np.where(codes < 0, None, np.array(scale)[codes])
    y = np.where(codes < 0, np.nan, codes)
    by_place = weighted_for("quadratic_kappa", GaussianNB(), average="macro").fit(X, y)
    by_word = weighted_for("quadratic_kappa", GaussianNB(), average="macro", classes=scale, order=scale).fit(X, words)
    assert [own.tolist() for own in by_word.classes_] == [scale, scale]
    np.testing.assert_allclose(by_word.loss_, by_place.loss_, atol=1e-12)
    with pytest.raises(ValueError, match="depends on the order of the classes"):
        weighted_for("quadratic_kappa", GaussianNB(), average="macro").fit(X, words)
    seen = codes[:, 0] >= 0
    alone = weighted_for("quadratic_kappa", GaussianNB(), classes=scale, order=scale).fit(X[seen], words[seen, 0])
    number = weighted_for("quadratic_kappa", GaussianNB()).fit(X[seen], codes[seen, 0])
    np.testing.assert_allclose(alone.loss_, number.loss_, atol=1e-12)
    kappa = sk.cohen_kappa_score(codes[seen, 0], number.predict(X[seen]), weights="quadratic")
    assert alone.score(X[seen], words[seen, 0]) == pytest.approx(kappa, abs=1e-12)
    ordered = pd.Series(pd.Categorical(words[seen, 0], scale, ordered=True))
    np.testing.assert_allclose(
        weighted_for("quadratic_kappa", GaussianNB()).fit(X[seen], ordered).best_score_, alone.best_score_
    )


def test_declared_classes_that_no_label_shows():
    X, codes = draw(200, (2, 2), missing=0)
    model = weighted_for("g_mean", average="macro", classes=[0, 1, 2]).fit(X, codes)
    assert [own.shape for own in model.loss_] == [(3, 3), (3, 3)]
    assert set(np.unique(model.predict(X))) <= {0, 1}
    with pytest.raises(ValueError, match="output 0 of y must hold only known classes"):
        weighted_for("g_mean", average="macro", classes=[1, 2]).fit(X, codes)


@pytest.mark.parametrize("average", ["micro", "macro", "instance"])
def test_outputs_that_labels_say_nothing_about_do_no_harm(average):
    X, codes = draw(300, (2, 2), missing=0.2)
    y = np.column_stack([np.where(codes < 0, np.nan, codes), np.full(300, np.nan), np.ones(300)])
    model = weighted_for("balanced_accuracy", average=average, cv=KFold(3)).fit(X, y)
    assert np.isfinite(model.best_score_)
    assert np.isin(model.predict(X), [0, 1]).all()
    assert set(model.predict(X)[:, 3]) == {1}
    if average == "macro":
        few = weighted_for("balanced_accuracy", average=average, cv=KFold(3)).fit(X, y[:, :2])
        np.testing.assert_array_equal(model.loss_[:2], few.loss_)
        np.testing.assert_array_equal(model.loss_[2:], [-np.eye(2)] * 2)
    with pytest.raises(ValueError, match="no observed label among the rows that cv tests has a positive weight"):
        weighted_for("f1", average=average, output_weight=[0, 0, 1, 0]).fit(X, y)


def test_an_output_that_is_tested_on_one_class_keeps_plain_training():
    X, codes = draw(300, (2, 2), missing=0)
    split = [(np.arange(200), 200 + np.flatnonzero(codes[200:, 1] == 1))]
    model = weighted_for("f1", average="macro", cv=split).fit(X, codes)
    np.testing.assert_array_equal(model.loss_[1], -np.eye(2))
    alone = weighted_for("f1", average="macro", cv=split).fit(X, codes[:, 0])
    np.testing.assert_array_equal(model.loss_[0], alone.loss_)


@pytest.mark.parametrize("average", ["micro", "macro"])
def test_an_output_may_have_all_its_labels_in_one_fold(average):
    X, codes = draw(300, (2, 2), missing=0.2)
    y = np.where(codes < 0, np.nan, codes)
    y[100:, 1] = np.nan
    model = weighted_for("f1", GaussianNB(), average=average, cv=KFold(3), max_iter=1).fit(X, y)
    # Tested where it was not trained: all classes are as likely, and the first is taken.
    assert np.isfinite(model.best_score_)
    alone = GaussianNB().fit(X[~np.isnan(y[:, 1])], y[~np.isnan(y[:, 1]), 1])
    np.testing.assert_array_equal(model.predict(X)[:, 1], alone.predict(X))
    if average == "macro":
        first = weighted_for("f1", GaussianNB(), cv=splits_of(np.flatnonzero(codes[:, 0] >= 0), 300)[1], max_iter=1)
        first.fit(X[codes[:, 0] >= 0], codes[codes[:, 0] >= 0, 0])
        assert model.best_score_ == pytest.approx(first.best_score_ / 2, abs=1e-12)  # F1 of class 0 throughout is 0


# ------------------------------------------------------------------------------------------------------- consistency


def world(seed=0):
    """Twelve cells of equal mass, and the chance of each class there for three outputs of two classes."""
    return np.random.default_rng(seed).beta(0.7, 1.6, size=(12, 3))


def sample(chance, n, seed, missing=0.3):
    rng = np.random.default_rng(seed)
    cell = rng.integers(0, 12, n)
    y = (rng.uniform(size=(n, 3)) < chance[cell]).astype(float)
    y[rng.uniform(size=y.shape) < missing] = np.nan
    return cell[:, None], y


def population_f1(chance, decided):
    hit = (chance * decided).sum(axis=0)
    return hit, decided.sum(axis=0) + chance.sum(axis=0)


def best_f1(chance):
    """The best F1 over all thresholds, which the theory says no rule exceeds."""

    def best(own):
        thresholds = np.concatenate([[-1.0], np.unique(own)])
        values = [population_f1(own, own > t) for t in thresholds]
        return max(2 * np.sum(hit) / np.sum(total) for hit, total in values)

    return {"micro": best(chance), "macro": np.mean([best(own[:, None]) for own in chance.T])}


def test_the_regret_of_a_loss_falls_with_more_rows():
    """Expected losses are exact: chances are known, and the best decision of a cell with them."""
    chance = world()
    cost = np.array([[[0, 1], [4, 0]], [[0, 3], [1, 0]], [[0, 1], [1.5, 0]]], dtype=float)
    risks = np.stack([(1 - chance)[..., None] * cost[:, 0] + chance[..., None] * cost[:, 1]])[0]  # cell, output, class
    regrets = []
    for n in (60, 600, 6000, 60000):
        drawn = []
        for seed in range(5):
            model = mw.CostSensitiveClassifier(DecisionTreeClassifier(random_state=0), cost)
            decided = model.fit(*sample(chance, n, seed)).predict(np.arange(12)[:, None]).astype(int)
            taken = np.take_along_axis(risks, decided[..., None], axis=2)[..., 0]
            drawn.append(np.mean(taken - risks.min(axis=2)))
        regrets.append(np.mean(drawn))
    assert regrets[0] > regrets[1] > regrets[2] > regrets[3] >= 0
    assert regrets[3] < 0.02 * regrets[0]


@pytest.mark.parametrize("average", first(1, ["micro", "macro"]))
def test_the_regret_of_a_metric_falls_with_more_rows(average):
    chance = world(1)
    regrets = []
    for n in (120, 1200, 24000):
        drawn = []
        for seed in range(4):
            model = weighted_for("f1", DecisionTreeClassifier(random_state=0), average=average, tol=0.0)
            decided = model.fit(*sample(chance, n, seed)).predict(np.arange(12)[:, None])
            hit, total = population_f1(chance, decided)
            value = 2 * hit.sum() / total.sum() if average == "micro" else np.mean(2 * hit / total)
            drawn.append(best_f1(chance)[average] - value)
        assert min(drawn) >= -1e-12
        regrets.append(np.mean(drawn))
    assert regrets[0] > regrets[1] > regrets[2]
    assert regrets[2] < 0.1 * regrets[0]


# ----------------------------------------------------------------------------------------------- among other tools


class TakesTags(ClassifierMixin, BaseEstimator):
    """Notes that an array with an entry per row was cut and repeated with the rows: the first column of X is it."""

    def fit(self, X, y, sample_weight=None, tags=None):
        np.testing.assert_array_equal(X[:, 0], tags)
        self.model_ = GaussianNB().fit(X, y, sample_weight)
        self.classes_ = self.model_.classes_
        return self

    def predict(self, X):
        return self.model_.predict(X)


@pytest.mark.parametrize("make", [lambda e: mw.CostSensitiveClassifier(e, losses()), None])
def test_what_has_an_entry_per_row_is_cut_for_each_output(make):
    X, codes = draw()
    make = make or (lambda e: weighted_for("g_mean", e, average="macro"))
    model = make(TakesTags()).fit(X, worded(codes), tags=X[:, 0])
    plain = make(GaussianNB()).fit(X, worded(codes))
    assert model.predict(X).tolist() == plain.predict(X).tolist()
    with sklearn.config_context(enable_metadata_routing=True):
        routed = make(TakesTags().set_fit_request(tags=True)).fit(X, worded(codes), tags=X[:, 0])
    assert routed.predict(X).tolist() == plain.predict(X).tolist()


def test_groups_stay_together():
    X, codes = draw(240, (2, 2))
    y, groups = np.where(codes < 0, np.nan, codes), np.arange(240) % 7
    model = weighted_for("f1", cv=GroupKFold(3)).fit(X, y, groups=groups)
    ready = weighted_for("f1", cv=list(GroupKFold(3).split(X, groups=groups))).fit(X, y)
    assert model.history_ == ready.history_
    with pytest.raises(ValueError, match="groups needs a cv that keeps the rows of a group together"):
        weighted_for("f1").fit(X, y, groups=groups)


def test_sparse_labels_searches_and_jobs():
    X, Y = make_multilabel_classification(240, n_classes=3, random_state=0)
    dense = weighted_for("f1", average="macro").fit(X, Y)
    for labels in (sp.csr_matrix(Y), Y.astype(bool), pd.DataFrame(Y)):
        np.testing.assert_array_equal(weighted_for("f1", average="macro").fit(X, labels).predict(X), dense.predict(X))
    with parallel_config("threading"):
        jobs = weighted_for("f1", average="macro", n_jobs=2).fit(X, Y)
    np.testing.assert_array_equal(jobs.loss_, dense.loss_)
    model = weighted_for("f1", average="macro", max_iter=2)
    search = GridSearchCV(model, {"estimator__max_depth": [1, 4]}, cv=KFold(2), error_score="raise").fit(X, Y)
    for depth, found in zip((1, 4), search.cv_results_["mean_test_score"], strict=True):
        trial = clone(model).set_params(estimator__max_depth=depth)
        values = [
            sk.f1_score(Y[test], clone(trial).fit(X[train], Y[train]).predict(X[test]), average="macro")
            for train, test in KFold(2).split(X)
        ]
        assert found == pytest.approx(np.mean(values), abs=1e-12)


def test_a_fit_leaves_nothing_of_the_one_before():
    X, codes = draw()
    model = mw.CostSensitiveClassifier(LinearSVC(), None)
    model.fit(pd.DataFrame(X, columns=list("abcd")), worded(codes))
    assert model.feature_names_in_.tolist() == list("abcd")
    seen = codes[:, 0] >= 0
    model.fit(X[seen], codes[seen, 0])
    assert not hasattr(model, "feature_names_in_")
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.predict(X).shape == (300,)
