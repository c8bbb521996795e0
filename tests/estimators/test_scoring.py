"""make_scorer: the same numbers as scikit-learn's own scorers, wherever scikit-learn takes a scorer."""

import pickle
import subprocess
import sys
from contextlib import suppress

import numpy as np
import pytest
import sklearn
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_iris, load_wine, make_multilabel_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import cohen_kappa_score, f1_score, get_scorer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multioutput import MultiOutputClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import metricwise as mw
from metricwise.metrics import resolve, scorer_names


def resolved(kind):
    """scikit-learn's names that mean something on a kind of target, and what."""
    for name in scorer_names():
        with suppress(ValueError):
            yield name, resolve(name, kind)


BINARY, MULTICLASS = ([name for name, _ in resolved(kind)] for kind in ("binary", "multiclass"))
MULTILABEL = [name for name, meaning in resolved("multilabel") if meaning.fixed]


class Echo(ClassifierMixin, BaseEstimator):
    """Predicts its input, so that X is the prediction."""

    def fit(self, X, y):
        self.classes_ = np.arange(2)
        return self

    def predict(self, X):
        return X


def echo():
    return Echo().fit(None, None)


def same_as_sklearn(name, y, h, sample_weight=None):
    options = {} if sample_weight is None else {"sample_weight": sample_weight}
    ours = mw.make_scorer(name)(echo(), h, y, **options)
    assert ours == pytest.approx(get_scorer(name)(echo(), h, y, **options), abs=1e-12)


@pytest.mark.filterwarnings("ignore:.*ill-defined.*")
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", BINARY)
def test_equals_scikit_learns_scorer_on_binary(name, weighted):
    rng = np.random.default_rng(0)
    y, h = rng.integers(0, 2, (2, 200))
    same_as_sklearn(name, y, h, rng.uniform(size=200) if weighted else None)


@pytest.mark.filterwarnings("ignore:.*ill-defined.*")
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", MULTICLASS)
def test_equals_scikit_learns_scorer_on_multiclass(name, weighted):
    rng = np.random.default_rng(1)
    y, h = rng.choice(["c", "a", "b", "d"], size=(2, 200), p=[0.5, 0.3, 0.15, 0.05])
    same_as_sklearn(name, y, h, rng.uniform(size=200) if weighted else None)


@pytest.mark.filterwarnings("ignore:.*ill-defined.*")
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", MULTILABEL)
def test_equals_scikit_learns_scorer_on_multilabel(name, weighted):
    rng = np.random.default_rng(2)
    y, h = (rng.uniform(size=(2, 150, 4)) < [0.5, 0.3, 0.1, 0.02]).astype(int)
    same_as_sklearn(name, y, h, rng.uniform(size=150) if weighted else None)


def test_averages_and_weights_over_outputs_of_several_classes():
    rng = np.random.default_rng(3)
    y, h = rng.integers(0, 3, (2, 100, 2))
    each = [cohen_kappa_score(y[:, m], h[:, m], weights="quadratic") for m in range(2)]
    macro = mw.make_scorer("quadratic_kappa", average="macro")
    assert macro(echo(), h, y) == pytest.approx(np.mean(each), abs=1e-12)
    weighted = mw.make_scorer("quadratic_kappa", average="macro", output_weight=[1, 3])
    assert weighted(echo(), h, y) == pytest.approx((each[0] + 3 * each[1]) / 4, abs=1e-12)
    pooled = cohen_kappa_score(y.ravel(), h.ravel(), weights="quadratic")
    assert mw.make_scorer("quadratic_kappa")(echo(), h, y) == pytest.approx(pooled, abs=1e-12)


def test_given_classes_fix_order_and_number():
    y, h = ["low", "mid", "mid"], ["low", "mid", "low"]
    grades = ["low", "mid", "high"]
    assert mw.make_scorer("ordinal", order=grades)(echo(), h, y) == pytest.approx(1 - 0.5 / 3)
    assert mw.make_scorer("ordinal")(echo(), h, y) == pytest.approx(1 - 1 / 3)
    two = mw.make_scorer("ordinal", order=grades)(echo(), np.array([h, h]).T, np.array([y, y]).T)
    assert two == pytest.approx(1 - 0.5 / 3)


def test_missing_labels_add_nothing():
    y, h = np.array([0, 1, 1, -1]), np.array([0, 1, 0, 0])
    assert mw.make_scorer("accuracy")(echo(), h, np.ma.masked_equal(y, -1)) == pytest.approx(2 / 3)


def test_zero_division_is_the_users():
    y = h = np.zeros(4, dtype=int)
    assert mw.make_scorer("f1")(echo(), h, y) == 0.0
    assert mw.make_scorer(mw.metrics.FBeta(zero_division=1.0))(echo(), h, y) == 1.0


def test_support_weights_without_any_positive():
    y = h = np.zeros((5, 2), dtype=int)
    assert mw.make_scorer("f1_weighted")(echo(), h, y) == 0.0


def test_sparse_indicators_score_like_dense_ones():
    rng = np.random.default_rng(4)
    y, h = (rng.uniform(size=(2, 30, 3)) < 0.4).astype(int)
    scorer = mw.make_scorer("f1_macro")
    assert scorer(echo(), csr_array(h), csr_array(y)) == scorer(echo(), h, y)


@pytest.mark.parametrize("metric", [mw.metrics.FBeta(beta=2.0), mw.metrics.Linear([[1, 0], [-5, 1]]), np.trace])
def test_takes_metrics_and_functions_of_the_confusion_matrix(metric):
    y, h = np.array([0, 0, 1, 1, 1]), np.array([0, 1, 1, 1, 0])
    C = np.array([[0.2, 0.2], [0.2, 0.4]])
    expected = metric.value(C) if isinstance(metric, mw.metrics.Metric) else metric(C)
    assert mw.make_scorer(metric)(echo(), h, y) == pytest.approx(float(expected))


def test_selects_the_model_that_scikit_learns_scorer_selects():
    X, y = load_wine(return_X_y=True)
    grid = {"max_depth": [1, 2, 3], "min_samples_leaf": [1, 10]}
    searches = [
        GridSearchCV(DecisionTreeClassifier(random_state=0), grid, scoring=scoring, error_score="raise").fit(X, y)
        for scoring in ("recall_macro", mw.make_scorer("recall_macro"))
    ]
    scores = [search.cv_results_["mean_test_score"] for search in searches]
    np.testing.assert_allclose(*scores, atol=1e-12)
    assert searches[0].best_params_ == searches[1].best_params_


def test_scores_multioutput_models_in_cross_validation():
    X, Y = make_multilabel_classification(200, n_classes=3, random_state=0)
    model = MultiOutputClassifier(LogisticRegression())
    X = StandardScaler().fit_transform(X)
    ours, theirs = (cross_val_score(model, X, Y, scoring=s) for s in (mw.make_scorer("f1_macro"), "f1_macro"))
    np.testing.assert_allclose(ours, theirs, atol=1e-12)


def test_several_scorers_side_by_side():
    X, y = load_iris(return_X_y=True)
    scoring = {name: mw.make_scorer(name) for name in ("g_mean", "quadratic_kappa")}
    search = GridSearchCV(DecisionTreeClassifier(), {"max_depth": [1, 3]}, scoring=scoring, refit="g_mean").fit(X, y)
    assert search.best_params_ == {"max_depth": 3}
    assert np.isfinite(search.cv_results_["mean_test_quadratic_kappa"]).all()


def test_can_be_cloned_pickled_and_printed():
    scorer = mw.make_scorer(mw.metrics.Ordinal(), classes=[1, 2, 3])
    y, h = [1, 2, 3], [1, 1, 3]
    value = scorer(echo(), h, y)
    assert pickle.loads(pickle.dumps(scorer))(echo(), h, y) == value  # noqa: S301
    search = clone(GridSearchCV(LogisticRegression(), {}, scoring=scorer))
    assert search.scoring(echo(), h, y) == value
    assert "ordinal" in repr(scorer)
    assert "make_scorer(function" in repr(mw.make_scorer(lambda C: 0.0))
    assert "f1_score" in repr(mw.make_scorer(f1_score))


def test_sample_weights_are_routed():
    X, y = load_iris(return_X_y=True)
    weight = np.where(y == 0, 0.0, 1.0)
    with sklearn.config_context(enable_metadata_routing=True):
        scorer = mw.make_scorer("accuracy").set_score_request(sample_weight=True)
        model = DecisionTreeClassifier(max_depth=1).set_fit_request(sample_weight=False)
        scores = cross_val_score(model, X, y, scoring=scorer, params={"sample_weight": weight})
    # A stump tells class 0 from the rest, and calls the rest by one name.
    np.testing.assert_allclose(scores, 0.5)


@pytest.mark.parametrize(
    ("metric", "message"),
    [("roc_auc", "order of the scores"), ("f_two", "not known"), ("neg_log_loss", "probabilities themselves")],
)
def test_refuses_at_once_what_is_no_metric_of_decisions(metric, message):
    with pytest.raises(ValueError, match=message):
        mw.make_scorer(metric)


def test_refuses_an_unknown_average_at_once():
    with pytest.raises(ValueError, match="average must be"):
        mw.make_scorer("f1", average="samples")


def test_refuses_a_name_that_does_not_fit_the_target():
    with pytest.raises(ValueError, match="'f1' is about one class"):
        mw.make_scorer("f1")(echo(), [0, 1, 2], [0, 1, 2])


def test_scikit_learn_is_not_loaded_before_it_is_asked_for():
    code = "import sys, metricwise; metricwise.make_scorer; assert 'sklearn' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
