"""The training route: rows weighted by a loss, and the loss that follows from a metric."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.datasets import make_classification
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import metricwise as mw
from metricwise.core.losses import Loss
from metricwise.estimators.cost_sensitive import expand_rows


@pytest.fixture(scope="module")
def data():
    return make_classification(600, n_informative=4, n_classes=3, weights=[0.75, 0.2], random_state=0)


LOSS = np.array([[0.0, 1.0, 2.0], [3.0, 0.0, 1.0], [9.0, 4.0, 0.0]])


def test_rows_are_repeated_over_classes_with_the_weight_that_the_loss_leaves():
    codes, weight = np.array([2, 0, 1]), np.array([1.0, 2.0, 0.0])
    rows, labels, found = expand_rows(codes, LOSS, weight)
    table = np.zeros((3, 3))
    table[rows, labels] = found
    np.testing.assert_array_equal(table, (LOSS.max() - LOSS)[codes] * weight[:, None])
    assert (found > 0).all()


def test_the_weighted_problem_is_the_expected_loss():
    """With one feature that takes few values, a tree is the empirical distribution, and its decisions are exact."""
    rng = np.random.default_rng(0)
    x = rng.integers(0, 12, 3000)
    y = np.array([rng.choice(3, p=p) for p in rng.dirichlet([2, 1, 1], 12)[x]])
    for loss in (LOSS, LOSS - LOSS.max(axis=1, keepdims=True), Loss.from_tensor(LOSS)):
        model = mw.CostSensitiveClassifier(DecisionTreeClassifier(), loss).fit(x[:, None], y)
        counts = np.array([[np.sum((x == v) & (y == k)) for k in range(3)] for v in range(12)])
        best = (counts @ LOSS).argmin(axis=1)
        np.testing.assert_array_equal(model.predict(np.arange(12)[:, None]), best)


def test_without_a_loss_it_is_the_estimator_itself(data):
    X, y = data
    names = np.array(["a", "b", "c"])
    for estimator in (GaussianNB(), KNeighborsClassifier()):
        if isinstance(estimator, KNeighborsClassifier):
            with pytest.raises(ValueError, match="KNeighborsClassifier does not"):
                mw.CostSensitiveClassifier(estimator, None).fit(X, y)
            continue
        model = mw.CostSensitiveClassifier(estimator, None).fit(X, names[y])
        np.testing.assert_array_equal(model.predict(X), estimator.fit(X, names[y]).predict(X))
        np.testing.assert_array_equal(model.loss_, 1 - np.eye(3))


def test_a_loss_moves_decisions_where_it_should(data):
    X, y = data
    dear = np.array([[0, 1, 1], [1, 0, 1], [20, 20, 0]])
    plain = GaussianNB().fit(X, y).predict(X)
    model = mw.CostSensitiveClassifier(GaussianNB(), dear).fit(X, y)
    assert np.sum(model.predict(X) == 2) > np.sum(plain == 2)
    assert not hasattr(model, "predict_proba")


@pytest.mark.parametrize(
    ("loss", "error", "words"),
    [
        (np.eye(2), ValueError, r"loss must have shape \(3, 3\), .* each of the classes \[0, 1, 2\], got \(2, 2\)"),
        ([[0, 1, 2]], ValueError, r"loss must have shape \(3, 3\), .* got \(1, 3\)"),
        ([0, 1, 2], ValueError, r"loss must have shape \(3, 3\), .* got \(3,\)"),
        ([], ValueError, r"loss must have shape \(3, 3\), .* got \(0,\)"),
        (LOSS[None], ValueError, r"loss must have shape \(3, 3\), .* got \(1, 3, 3\)"),
        (Loss.argmax(2), ValueError, r"loss must have shape \(3, 3\), .* got \(2, 2\)"),
        (
            Loss.from_tensor(np.stack([LOSS, 2 * LOSS])),
            ValueError,
            "loss must have one output, .* a Loss of 2 outputs",
        ),
        (
            [[0, 1, 2], [1, 0], [2, 1, 0]],
            ValueError,
            r"loss must have rows of equal length, 3, got .* lengths \[2, 3\]",
        ),
        ([["a"] * 3] * 3, TypeError, r"loss must be a matrix of numbers, got text such as 'a' \(list\)"),
        ([["0", "1", "2"]] * 3, TypeError, r"loss must be a matrix of numbers, got text such as '0' \(list\)"),
        ([[0, 1, None]] * 3, TypeError, "loss must be a matrix of numbers, got None in row 0, column 2"),
        (np.array([[0, 1, "2"]] * 3, dtype=object), TypeError, "got '2' in row 0, column 2"),
        ({"a": 1}, TypeError, r"loss must be a matrix of numbers, got \{'a': 1\}"),
        (LOSS * 1j, TypeError, r"loss must be a matrix of numbers, got complex128 such as 0j \(ndarray\)"),
        (np.where(LOSS == 9, np.nan, LOSS), ValueError, "loss must be finite, got nan in row 2, column 0"),
        (np.where(LOSS == 3, np.inf, LOSS), ValueError, "loss must be finite, got inf in row 1, column 0"),
        (
            np.where(LOSS == 9, 1e308, LOSS - 1e308),
            ValueError,
            r"finite differences between its entries, got .* 1e\+308",
        ),
        (np.ones((3, 3)), ValueError, "loss must not be constant in every row"),
        (np.repeat([[1], [2], [3]], 3, axis=1), ValueError, "loss must not be constant in every row"),
        (
            pd.DataFrame(LOSS, list("abc"), list("abc")),
            ValueError,
            r"named like the classes \[0, 1, 2\], got rows .*'a'",
        ),
        (pd.DataFrame(LOSS, columns=[2, 1, 3]), ValueError, r"named like the classes .* columns \[2, 1, 3\]"),
        (pl.DataFrame(LOSS, schema=["2", "1", "0"], orient="row"), ValueError, None),
    ],
)
def test_bad_losses_are_refused(data, loss, error, words):
    X, y = data
    if words is None:  # rows without names, columns in another order than the classes
        names = np.array(["high", "low", "mid"])
        loss = pl.DataFrame(LOSS, schema=["low", "mid", "high"], orient="row")
        y, words = names[y], "must have rows and columns named like the classes"
    with pytest.raises(error, match=f"^CostSensitiveClassifier: .*{words}"):
        mw.CostSensitiveClassifier(GaussianNB(), loss).fit(X, y)


def test_a_loss_in_a_frame_is_read_by_name(data):
    X, y = data
    labels = np.array(["high", "low", "mid"])  # sorted, as scikit-learn has them
    order = ["low", "mid", "high"]
    wanted = LOSS[np.ix_([2, 0, 1], [2, 0, 1])]
    named = pd.DataFrame(LOSS, index=order, columns=order)
    for loss in (named, named[["high", "mid", "low"]], named.loc[["high", "low", "mid"]], named.astype(object)):
        model = mw.CostSensitiveClassifier(GaussianNB(), loss).fit(X, labels[y])
        np.testing.assert_array_equal(model.loss_, wanted)
    for loss in (
        pd.DataFrame(wanted),
        pl.DataFrame(wanted, schema=labels.tolist(), orient="row"),
        pl.DataFrame(wanted),
    ):
        np.testing.assert_array_equal(mw.CostSensitiveClassifier(GaussianNB(), loss).fit(X, labels[y]).loss_, wanted)
    numbers = pd.DataFrame(LOSS[::-1, ::-1], index=[2, 1, 0], columns=["2", "1", "0"])
    np.testing.assert_array_equal(mw.CostSensitiveClassifier(GaussianNB(), numbers).fit(X, y).loss_, LOSS)


def test_a_pipeline_takes_weights_through_routing(data):
    X, y = data
    with pytest.raises(ValueError, match="put this classifier inside the Pipeline"):
        mw.CostSensitiveClassifier(make_pipeline(StandardScaler(), GaussianNB()), LOSS).fit(X, y)
    with sklearn.config_context(enable_metadata_routing=True):
        steps = StandardScaler().set_fit_request(sample_weight=False), GaussianNB().set_fit_request(sample_weight=True)
        model = mw.CostSensitiveClassifier(make_pipeline(*steps), LOSS).fit(X, y)
    assert len(np.unique(model.predict(X))) > 1


# ------------------------------------------------------------------------------------------------ for a metric


@pytest.mark.parametrize("metric", ["balanced_accuracy", "g_mean", "f1_macro", "min_recall", "quadratic_kappa"])
@pytest.mark.parametrize("estimator", [GaussianNB(), DecisionTreeClassifier(max_depth=3, random_state=0)])
def test_it_ends_no_worse_than_plain_training(data, metric, estimator):
    X, y = data
    model = mw.MetricWeightedClassifier(estimator, metric=metric, cv=2).fit(X, y)
    assert model.best_score_ == max(model.history_) >= model.history_[0]
    assert model.n_iter_ == len(model.history_) <= 10
    assert model.loss_.max(axis=1) == pytest.approx(0)
    if metric in ("balanced_accuracy", "g_mean", "min_recall"):
        assert model.best_score_ > model.history_[0]


def test_a_linear_metric_takes_one_step_to_class_weights(data):
    X, y = data
    names = np.array(["a", "b", "c"])
    model = mw.MetricWeightedClassifier(LogisticRegression(), metric="balanced_accuracy").fit(X, names[y])
    assert model.n_iter_ == 2
    weights = -np.diag(model.loss_)
    np.testing.assert_allclose(weights * np.bincount(y), len(y) / 3)
    balanced = LogisticRegression(class_weight="balanced").fit(X, names[y])
    assert np.mean(model.predict(X) == balanced.predict(X)) > 0.99
    assert model.score(X, names[y]) == pytest.approx(mw.metrics.BalancedAccuracy().score(names[y], model.predict(X)))


def test_among_the_tools_of_scikit_learn(data):
    X, y = data
    tree = DecisionTreeClassifier(random_state=0)
    model = mw.MetricWeightedClassifier(tree, metric="g_mean", cv=2, max_iter=2)
    search = GridSearchCV(model, {"estimator__max_depth": [1, 3]}, cv=2).fit(X, y)
    assert search.best_params_ == {"estimator__max_depth": 3}
    groups = np.arange(len(y)) % 5
    grouped = mw.MetricWeightedClassifier(tree, metric="g_mean", cv=GroupKFold(2), max_iter=2)
    assert np.isfinite(grouped.fit(X, y, sample_weight=1.0 + y, groups=groups).best_score_)


def test_a_degenerate_aim_warns(data):
    with pytest.warns(UserWarning, match="MetricWeightedClassifier: "):
        mw.MetricWeightedClassifier(GaussianNB(), metric=mw.metrics.Recall(index=1), cv=2).fit(*data)


@pytest.mark.parametrize(
    "column", [lambda y: y[:, None], lambda y: pd.DataFrame({"y": y}), lambda y: pl.DataFrame({"y": y})]
)
def test_a_single_column_is_scored_as_it_is_fitted(data, column):
    X, y = data
    y = np.array(["a", "b", "c"])[y]
    model = mw.MetricWeightedClassifier(GaussianNB(), cv=2, max_iter=2)
    with pytest.warns(DataConversionWarning, match="A column-vector y was passed"):
        model.fit(X, column(y))
    assert model.score(X, column(y)) == model.score(X, y)


def test_what_is_not_fitted_cannot_be_scored(data):
    for model in (mw.MetricWeightedClassifier(GaussianNB()), mw.CostSensitiveClassifier(GaussianNB(), None)):
        with pytest.raises(NotFittedError, match="is not fitted yet"):
            model.score(*data)
