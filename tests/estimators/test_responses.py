"""The response of classifiers that a rule is fitted to: probabilities, log-probabilities or a decision function."""

import numpy as np
import pytest
from scipy.special import expit, log_expit, log_softmax, softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_breast_cancer, load_digits, make_classification, make_multilabel_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, RidgeClassifier, SGDClassifier
from sklearn.metrics import f1_score, precision_recall_curve
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    RepeatedStratifiedKFold,
    StratifiedKFold,
    cross_val_predict,
    train_test_split,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import ClassifierChain
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.utils.metaestimators import available_if

import metricwise as mw
from metricwise.estimators._responses import DECISION, LOG_PROBA, PROBA, response_for
from metricwise.estimators._targets import read_target

LABELS = mw.Strategy(confusion="labels", recalibrate=False)
SCORED = {
    "svc": LinearSVC(),
    "hinge": SGDClassifier(loss="hinge", random_state=0),
    "ridge": RidgeClassifier(),
    "pipeline": make_pipeline(StandardScaler(), LinearSVC()),
    "search": GridSearchCV(LinearSVC(), {"C": [0.1, 1.0]}, cv=2),
}


class Replay(ClassifierMixin, BaseEstimator):
    """A model whose log-odds are its only feature; `bound` limits those that predict_proba sees."""

    def __init__(self, bound=np.inf):
        self.bound = bound

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        p = expit(np.clip(X[:, 0], -self.bound, self.bound))
        return np.stack([1 - p, p], axis=1)

    def predict(self, X):
        return self.classes_[(X[:, 0] > 0).astype(int)]


class ReplayWithLogs(Replay):
    def predict_log_proba(self, X):
        return np.stack([log_expit(-X[:, 0]), log_expit(X[:, 0])], axis=1)


class ReplayWithDecisions(Replay):
    def decision_function(self, X):
        return 3 * X[:, 0]


class ReplayWithLogsOfProbabilities(ReplayWithDecisions):
    """As most of scikit-learn's models: 1 - p is 0 where p rounds to 1."""

    def predict_log_proba(self, X):
        return np.log(self.predict_proba(X))


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X / 16, y


@pytest.fixture(scope="module")
def binary():
    return make_classification(400, n_informative=4, weights=[0.7], flip_y=0.1, random_state=0)


def log_odds(n, n_tied, distinct=True):
    """Return log-odds (n, 1), some of them beyond what probabilities tell apart, and labels."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=n)
    z[:n_tied] = 40 + (np.arange(n_tied) if distinct else 0)
    return z[:, None], (rng.random(n) < expit(z)).astype(int)


def fitted(model, X, y, **options):
    return mw.MetricOptimalClassifierCV(model, **{"metric": "f1", "strategy": LABELS, **options}).fit(X, y)


def check_by_hand(model, X):
    """The rule gives by hand what the classifier predicts."""
    by_hand = model.rule_.predict(model.decision_input(X))
    np.testing.assert_array_equal(by_hand, model.predict(X))
    assert model.rule_.input == model.input_


# ------------------------------------------------------------------------------------------------ what is gained


def test_log_probabilities_of_naive_bayes_beat_its_probabilities(digits):
    X, y = digits[0], (digits[1] == 8).astype(int)
    scores = []
    for seed in range(4):
        X_fit, X_new, y_fit, y_new = train_test_split(X, y, stratify=y, random_state=seed)
        ours = mw.MetricOptimalClassifierCV(GaussianNB(), metric="f1").fit(X_fit, y_fit)
        route = mw.MetricOptimalClassifierCV(GaussianNB(), metric="f1", response="predict_proba").fit(X_fit, y_fit)
        assert (ours.response_method_, ours.input_) == ("predict_log_proba", "log_proba")
        assert (route.response_method_, route.input_) == ("predict_proba", "probabilities")
        scores.append((ours.score(X_new, y_new), route.score(X_new, y_new)))
        check_by_hand(ours, X_new)
    better, worse = np.mean(scores, axis=0)
    assert better > worse + 0.15
    assert better > 0.5


def test_the_rule_is_the_best_threshold_on_the_log_odds(digits):
    X, y = digits[0], (digits[1] == 8).astype(int)
    model = fitted(GaussianNB(), X, y, strategy=mw.Strategy(confusion="labels", recalibrate=True))
    logs = cross_val_predict(GaussianNB(), X, y, cv=StratifiedKFold(5), method="predict_log_proba")
    precision, recall, _ = precision_recall_curve(y, logs[:, 1] - logs[:, 0])
    best = np.nanmax(2 * precision * recall / np.maximum(precision + recall, 1e-300))
    assert model.best_score_ == pytest.approx(best, abs=1e-12)


# ----------------------------------------------------------------------------------- models without probabilities


@pytest.mark.parametrize("name", SCORED)
@pytest.mark.parametrize("classes", [2, 10])
def test_decision_functions_need_no_options(digits, name, classes):
    X, y = digits[0], digits[1] if classes == 10 else np.where(digits[1] == 8, "yes", "no")
    model = mw.MetricOptimalClassifierCV(SCORED[name], metric="f1_macro", cv=3).fit(X, y)
    assert (model.response_method_, model.input_) == ("decision_function", "scores")
    assert model.decision_input(X).shape == ((len(X),) if classes == 2 else (len(X), 10))
    np.testing.assert_array_equal(model.decision_input(X), model.estimator_.decision_function(X))
    assert not hasattr(model, "predict_proba")
    assert model.score(X, y) == pytest.approx(f1_score(y, model.predict(X), average="macro"))
    check_by_hand(model, X)


@pytest.mark.parametrize("name", ["svc", "pipeline"])
@pytest.mark.parametrize("classes", [2, 10])
def test_the_baseline_is_what_the_estimator_predicts(digits, name, classes):
    X, y = digits[0], digits[1] if classes == 10 else (digits[1] == 8).astype(int)
    model = mw.MetricOptimalClassifierCV(SCORED[name], metric="accuracy", cv=3).fit(X, y)
    predicted = cross_val_predict(SCORED[name], X, y, cv=StratifiedKFold(3))
    assert model.solution_.baseline == pytest.approx(np.mean(predicted == y), abs=1e-12)


def test_the_threshold_on_a_decision_function_is_in_its_unit(binary):
    X, y = binary
    model = fitted(LinearSVC(), X, y)
    z = cross_val_predict(LinearSVC(), X, y, cv=StratifiedKFold(5), method="decision_function")
    best = max(f1_score(y, z > cut) for cut in np.append(z, -np.inf))
    assert model.best_score_ == pytest.approx(best, abs=1e-12)
    assert f1_score(y, z > model.rule_.threshold) == pytest.approx(best, abs=1e-12)
    np.testing.assert_array_equal(model.predict(X), model.estimator_.decision_function(X) > model.rule_.threshold)


def test_the_order_of_classes_is_that_declared(binary):
    X, y = binary
    model = fitted(LinearSVC(), X, y, classes=[1, 0], pos_label=1)
    assert model.classes_.tolist() == [1, 0]
    np.testing.assert_array_equal(model.decision_input(X), -model.estimator_.decision_function(X))
    np.testing.assert_array_equal(model.predict(X), fitted(LinearSVC(), X, y).predict(X))


def test_log_probabilities_alone(binary):
    class LogsOnly(ClassifierMixin, BaseEstimator):
        def fit(self, X, y):
            self.model_ = GaussianNB().fit(X, y)
            self.classes_ = self.model_.classes_
            return self

        def predict_log_proba(self, X):
            return self.model_.predict_log_proba(X)

    X, y = binary
    model = fitted(LogsOnly(), X, y)
    assert model.response_method_ == "predict_log_proba"
    np.testing.assert_array_equal(model.predict(X), fitted(GaussianNB(), X, y, response="predict_log_proba").predict(X))


# ---------------------------------------------------------------------------------------------------------- auto


@pytest.mark.parametrize("kind", [ReplayWithLogs, ReplayWithDecisions, ReplayWithLogsOfProbabilities])
@pytest.mark.parametrize(("n_tied", "tied"), [(0, False), (10, False), (11, True), (300, True)])
def test_auto_by_the_share_of_tied_rows(kind, n_tied, tied):
    model = fitted(kind(), *log_odds(1000, n_tied))
    other = "predict_log_proba" if kind is ReplayWithLogs else "decision_function"
    assert model.response_method_ == (other if tied else "predict_proba")


def test_rows_within_a_millionth_are_certain():
    for at, method in [(np.log(1e6) - 0.01, "predict_proba"), (np.log(1e6) + 0.01, "predict_log_proba")]:
        X, y = log_odds(1000, 0)
        X[:20, 0] = at + np.linspace(0, 0.005, 20)
        assert fitted(ReplayWithLogs(), X, y).response_method_ == method


def test_rows_that_nothing_tells_apart_are_not_tied():
    X, y = log_odds(1000, 500, distinct=False)
    assert fitted(ReplayWithLogs(), X, y).response_method_ == "predict_proba"
    X[:3, 0] = [50, 60, 70]  # other rows have another value now
    assert fitted(ReplayWithLogs(), X, y).response_method_ == "predict_log_proba"


def test_probabilities_that_are_certain_are_kept_where_logarithms_are_theirs(binary):
    X, y = binary
    forest = RandomForestClassifier(5, random_state=0)
    assert (cross_val_predict(forest, X, y, method="predict_proba").max(axis=1) == 1).mean() > 0.1
    assert fitted(forest, X, y).response_method_ == "predict_proba"
    assert fitted(KNeighborsClassifier(1), X, y).response_method_ == "predict_proba"


def test_logarithms_that_cannot_be_read_are_passed_over():
    class NotLogs(ReplayWithLogs):
        def predict_log_proba(self, X):
            return super().predict_log_proba(X) + 1

    class Missing(ReplayWithDecisions):
        def decision_function(self, X):
            return np.where(X[:, 0] > 45, np.nan, X[:, 0])

    X, y = log_odds(1000, 300)
    assert fitted(NotLogs(), X, y).response_method_ == "predict_proba"
    assert fitted(Missing(), X, y).response_method_ == "predict_proba"


def test_tied_rows_of_several_classes():
    class Softmax(Replay):
        def predict_proba(self, X):
            return softmax(X, axis=1)

        def predict_log_proba(self, X):
            return log_softmax(X, axis=1)

    rng = np.random.default_rng(0)
    y = rng.integers(3, size=900)
    X = np.eye(3)[y] + rng.normal(size=(900, 3))
    assert fitted(Softmax(), X, y, metric="macro_f1").response_method_ == "predict_proba"
    X[:9] *= 100
    assert fitted(Softmax(), X, y, metric="macro_f1").response_method_ == "predict_proba"
    X[9:40] *= 100
    model = fitted(Softmax(), X, y, metric="macro_f1")
    assert model.response_method_ == "predict_log_proba"
    check_by_hand(model, X)


def test_fold_models_are_fitted_once_and_asked_for_both(binary):
    fits = []

    class Counted(ReplayWithLogs):
        def fit(self, X, y):
            fits.append(len(X))
            return super().fit(X, y)

    X, y = log_odds(1000, 300)
    assert fitted(Counted(), X, y, cv=4).response_method_ == "predict_log_proba"
    assert fits == [750] * 4 + [1000]


@pytest.mark.parametrize("model", [LogisticRegression(), GaussianNB(), RandomForestClassifier(20, random_state=0)])
def test_models_without_ties_decide_as_by_their_probabilities(binary, model):
    X, y = binary
    auto = mw.MetricOptimalClassifierCV(model, metric="f1").fit(X, y)
    explicit = mw.MetricOptimalClassifierCV(model, metric="f1", response="predict_proba").fit(X, y)
    proba = cross_val_predict(model, X, y, cv=StratifiedKFold(5), method="predict_proba")
    by_hand = mw.optimize(proba, y, "f1")
    assert auto.rule_ == explicit.rule_ == by_hand.rule
    assert auto.response_method_ == "predict_proba"
    np.testing.assert_array_equal(auto.decision_input(X), auto.predict_proba(X))


# ------------------------------------------------------------------------------------------------- explicit choices


@pytest.mark.parametrize("response", ["predict_proba", "predict_log_proba", "decision_function"])
def test_each_response_can_be_asked_for(binary, response):
    X, y = binary
    model = fitted(LogisticRegression(), X, y, response=response)
    assert model.response_method_ == response
    check_by_hand(model, X)
    # One threshold on an increasing function of the same numbers.
    assert model.best_score_ == pytest.approx(fitted(LogisticRegression(), X, y).best_score_, abs=1e-12)
    np.testing.assert_array_equal(model.predict_proba(X), model.estimator_.predict_proba(X))


@pytest.mark.parametrize("model", [LinearSVC(), GaussianNB()], ids=["scores", "log_proba"])
def test_fitted_estimators(binary, model):
    X, y = binary
    response = "auto" if isinstance(model, LinearSVC) else "predict_log_proba"
    prefit = model.fit(X[:200], y[:200])
    rules = [
        fitted(prefit, X[200:], y[200:], cv="prefit", response=response).rule_,
        fitted(FrozenEstimator(prefit), X[200:], y[200:], response=response).rule_,
    ]
    kind = "scores" if isinstance(model, LinearSVC) else "log_proba"
    values = prefit.decision_function(X[200:]) if kind == "scores" else prefit.predict_log_proba(X[200:])
    assert rules[0] == rules[1]
    assert rules[0].input == kind
    assert mw.optimize(values, y[200:], "f1", input=kind, strategy=LABELS).value == pytest.approx(
        f1_score(y[200:], rules[0].predict(values))
    )


@pytest.mark.parametrize(
    ("model", "response"), [(LinearSVC(), "auto"), (GaussianNB(), "predict_log_proba")], ids=["scores", "log_proba"]
)
def test_costs_groups_and_abstentions(binary, model, response):
    X, y = binary
    rng = np.random.default_rng(0)
    cost, group = rng.random((len(y), 2)), rng.integers(2, size=len(y))
    by_cost = mw.MetricOptimalClassifierCV(model, metric="cost", response=response).fit(X, y, cost=cost)
    decided = by_cost.predict(X, cost=cost)
    np.testing.assert_array_equal(by_cost.rule_.predict(by_cost.decision_input(X), cost=cost), decided)
    missed = cost[np.arange(len(y)), y] * (decided != y)
    assert -by_cost.score(X, y, cost=cost) == pytest.approx(missed.mean())
    fair = mw.MetricOptimalClassifierCV(
        model, metric="f1", subject_to="demographic_parity <= 0.2", confidence=None, response=response
    ).fit(X, y, sensitive_features=group)
    shares = [fair.predict(X, sensitive_features=group)[group == g].mean() for g in (0, 1)]
    assert abs(shares[0] - shares[1]) < 0.3
    unsure = mw.MetricOptimalClassifierCV(model, metric="accuracy", abstain=0.2, response=response).fit(X, y)
    check_by_hand(unsure, X)


def test_calibrated_models_have_probabilities(binary):
    X, y = binary
    model = fitted(LinearSVC(), X, y, calibration="sigmoid")
    assert (model.response_method_, model.input_) == ("predict_proba", "probabilities")
    with pytest.raises(ValueError, match="response must be 'auto' or 'predict_proba' with calibration"):
        fitted(LinearSVC(), X, y, calibration="sigmoid", response="decision_function")


# ------------------------------------------------------------------------------------------------------------ folds


def test_rows_tested_several_times_have_the_mean_of_probabilities_in_log_space(binary):
    X, y = binary
    cv = RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0)
    splits = list(cv.split(X, y))
    halves = [cross_val_predict(GaussianNB(), X, y, cv=splits[i : i + 3], method="predict_log_proba") for i in (0, 3)]
    expected = mw.optimize(np.log(np.exp(halves).mean(axis=0)), y, "f1", input="log_proba", strategy=LABELS)
    model = fitted(GaussianNB(), X, y, cv=cv, response="predict_log_proba")
    assert model.best_score_ == pytest.approx(expected.value)
    assert model.rule_.threshold == pytest.approx(expected.rule.threshold)


@pytest.mark.parametrize("model", [LinearSVC(), SVC(), GaussianNB()], ids=["linear", "svc", "bayes"])
def test_classes_that_a_fold_lacks(model):
    X, y = make_classification(300, n_informative=5, n_classes=3, random_state=0)
    y[:2] = 3
    response = "predict_log_proba" if isinstance(model, GaussianNB) else "auto"
    ours = mw.MetricOptimalClassifierCV(model, metric="macro_f1", cv=KFold(5), response=response).fit(X, y)
    assert ours.decision_input(X).shape == (300, 4)
    check_by_hand(ours, X)


def test_columns_of_absent_classes():
    target = read_target([0, 1, 2, 3])
    X = np.random.default_rng(0).normal(size=(90, 2))
    y = (X[:, 0] > 0).astype(int) * 2 + (X[:, 1] > 0.5) * (X[:, 0] < 0)
    model = LinearSVC().fit(X, y)  # classes 0, 1, 2
    (block,) = DECISION.blocks(model, X, target)
    np.testing.assert_array_equal(block[:, :3], model.decision_function(X))
    assert (block[:, 3] < block[:, :3].min(axis=1)).all()
    two = LinearSVC().fit(X[y < 2], y[y < 2] * 3)  # classes 0 and 3
    (block,) = DECISION.blocks(two, X, target)
    np.testing.assert_array_equal(block[:, 3], two.decision_function(X))
    np.testing.assert_array_equal(np.array([0, 3])[block[:, [0, 3]].argmax(axis=1)], two.predict(X))
    assert (block[:, 1:3].max(axis=1) < block[:, [0, 3]].min(axis=1)).all()
    (block,) = LOG_PROBA.blocks(GaussianNB().fit(X, y), X, target)
    assert (block[:, 3] == -np.inf).all()
    np.testing.assert_array_equal(block[:, :3], GaussianNB().fit(X, y).predict_log_proba(X))


# ---------------------------------------------------------------------------------------------------------- outputs


@pytest.fixture(scope="module")
def multilabel():
    return make_multilabel_classification(300, n_classes=4, n_labels=1, random_state=0)


@pytest.mark.parametrize(
    ("model", "shape", "method"),
    [
        (LinearSVC(), (300, 4), "decision_function"),
        (RidgeClassifier(), (300, 4), "decision_function"),
        (OneVsRestClassifier(LinearSVC()), (300, 4), "decision_function"),
        (ClassifierChain(LinearSVC()), (300, 4), "decision_function"),
        (GaussianNB(), (300, 4, 2), "predict_log_proba"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_multilabel(multilabel, model, shape, method):
    X, Y = multilabel
    response = "predict_log_proba" if method == "predict_log_proba" else "auto"
    ours = mw.MetricOptimalClassifierCV(model, metric="f1_macro", response=response).fit(X, Y)
    assert ours.response_method_ == method
    assert ours.decision_input(X).shape == shape
    assert ours.score(X, Y) > 0.6
    assert hasattr(ours, "predict_proba") == (method == "predict_log_proba")
    check_by_hand(ours, X)


def test_missing_labels_and_outputs_of_one_class(multilabel):
    X, Y = multilabel
    Y = Y.astype(float)
    Y[::7, 1] = np.nan
    Y[:, 2] = 1
    Y[0, 2] = 0  # in one fold, all others are 1
    for model, response in [(LinearSVC(), "auto"), (GaussianNB(), "predict_log_proba")]:
        ours = mw.MetricOptimalClassifierCV(model, metric="f1_macro", response=response, cv=KFold(3)).fit(X, Y)
        assert ours.predict(X).shape == (300, 4)
        check_by_hand(ours, X)


def test_outputs_of_different_classes(multilabel):
    X, Y = multilabel
    grades = np.stack([Y[:, 0] + Y[:, 1], Y[:, 2], Y[:, 3]], axis=1)
    machine = mw.MetricOptimalClassifierCV(LinearSVC(), metric="macro_f1", average="macro").fit(X, grades)
    values = machine.decision_input(X)
    assert [block.shape[1] for block in values] == [3, 2, 2]
    for m, part in enumerate(machine.estimator_.estimators_):
        np.testing.assert_array_equal(part.classes_[values[m].argmax(axis=1)], part.predict(X))
    z = machine.estimator_.estimators_[1].decision_function(X)
    np.testing.assert_allclose(values[1][:, 1] - values[1][:, 0], z)
    check_by_hand(machine, X)
    bayes = mw.MetricOptimalClassifierCV(
        GaussianNB(), metric="macro_f1", average="macro", response="predict_log_proba"
    ).fit(X, grades)
    assert [block.shape[1] for block in bayes.decision_input(X)] == [3, 2, 2]
    check_by_hand(bayes, X)


# ----------------------------------------------------------------------------------------------------------- errors


def test_one_vs_one_is_refused():
    X, y = make_classification(300, n_informative=5, n_classes=4, random_state=0)
    pairs = SVC(decision_function_shape="ovo")
    with pytest.raises(ValueError, match=r"not pairs of classes: it has 6 columns for 4 classes; .*shape='ovr'"):
        fitted(pairs, X, y, metric="macro_f1")
    with pytest.raises(ValueError, match=r"not pairs of classes: the largest value of a row .*'ovr'"):
        fitted(pairs, X, np.minimum(y, 2), metric="macro_f1")
    ours = fitted(SVC(decision_function_shape="ovr"), X, np.minimum(y, 2), metric="macro_f1")
    assert ours.decision_input(X).shape == (300, 3)


def test_responses_that_the_estimator_lacks(binary):
    X, y = binary
    with pytest.raises(ValueError, match="GaussianNB has no decision_function; use response='auto'"):
        fitted(GaussianNB(), X, y, response="decision_function")
    with pytest.raises(ValueError, match="The 'response' parameter of MetricOptimalClassifierCV must be a str among"):
        fitted(GaussianNB(), X, y, response="scores")


def test_shapes_that_cannot_be_read(binary):
    class Wide(ReplayWithDecisions):
        def decision_function(self, X):
            return np.zeros((len(X), 5))

    X, y = binary
    with pytest.raises(
        ValueError, match=r"one column per class, 2, or .* got shape \(80, 5\); use response='predict_p"
    ):
        fitted(Wide(), X, y, response="decision_function")
    assert fitted(Wide(), *log_odds(1000, 300)).response_method_ == "predict_proba"


def test_final_models_of_another_kind_than_those_of_the_folds(binary):
    class Changing(ReplayWithDecisions):
        """Has a decision function unless it was fitted to all rows, as a search over models may."""

        @available_if(lambda model: getattr(model, "n_rows_", 0) < 400)
        def decision_function(self, X):
            return X[:, 0]

        def fit(self, X, y):
            self.n_rows_ = len(X)
            return super().fit(X, y)

    with pytest.raises(ValueError, match="but the final one has no decision_function; fit the same kind of model"):
        fitted(Changing(), *binary, response="decision_function")


# ------------------------------------------------------------------------------------------------------- fixed rules


@pytest.mark.parametrize("name", ["svc", "pipeline"])
def test_fixed_rules_on_scores(digits, name):
    X, y = digits[0], np.where(digits[1] == 8, "yes", "no")
    tuned = mw.MetricOptimalClassifierCV(SCORED[name], metric="f1", pos_label="yes").fit(X, y)
    model = mw.FixedRuleClassifier(SCORED[name], tuned.rule_.to_json()).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), tuned.predict(X))
    np.testing.assert_array_equal(model.rule_.predict(model.decision_input(X)), model.predict(X))
    assert not hasattr(model, "predict_proba")
    with pytest.raises(
        ValueError, match="estimator must have decision_function, because the rule takes scores, got Ga"
    ):
        mw.FixedRuleClassifier(GaussianNB(), tuned.rule_).fit(X, y)


def test_fixed_rules_on_logits(binary):
    X, y = binary
    model = LogisticRegression().fit(X, y)
    z = model.decision_function(X)
    rule = mw.optimize(z, y, "f1", input="logits").rule
    np.testing.assert_array_equal(mw.FixedRuleClassifier(model, rule).predict(X), rule.predict(z))
    machine = LinearSVC().fit(X, y)
    by_machine = mw.FixedRuleClassifier(machine, rule).predict(X)
    np.testing.assert_array_equal(by_machine, rule.predict(machine.decision_function(X)))
    assert response_for("logits", model).method == "predict_log_proba"
    assert response_for("logits", machine).method == "decision_function"
    with pytest.raises(ValueError, match=r"must have predict_log_proba or decision_function, .* which lacks both"):
        mw.FixedRuleClassifier(KNeighborsClassifier().fit(X, y), rule).predict(X)


def test_rules_that_were_fitted_to_two_columns_get_two(binary):
    X, y = binary[0], np.array(["no", "yes"])[binary[1]]
    for model, response in [(LogisticRegression(), "predict_log_proba"), (LinearSVC(), "decision_function")]:
        z = model.fit(X, y).decision_function(X)
        kind = "scores" if response == "decision_function" else "logits"
        rule = mw.optimize(
            np.stack([-z / 2, z / 2], axis=1), y, "f1", input=kind, classes=["no", "yes"], pos_label="yes"
        ).rule
        by_rule = mw.FixedRuleClassifier(model, rule)
        values = by_rule.decision_input(X)
        np.testing.assert_allclose(values[:, 1] - values[:, 0], z)
        np.testing.assert_array_equal(by_rule.predict(X), rule.predict(values))


def test_fixed_rules_on_log_probabilities(digits):
    X, y = digits
    tuned = mw.MetricOptimalClassifierCV(GaussianNB(), metric="macro_f1", response="predict_log_proba").fit(X, y)
    model = mw.FixedRuleClassifier(tuned.estimator_, tuned.rule_)
    np.testing.assert_array_equal(model.predict(X), tuned.predict(X))
    np.testing.assert_array_equal(model.predict_proba(X), tuned.estimator_.predict_proba(X))


@pytest.mark.parametrize("classes", [2, 10])
def test_no_rule_is_the_estimators_own_decision(digits, classes):
    X, y = digits[0], digits[1] if classes == 10 else (digits[1] == 8).astype(int)
    for model in (LinearSVC(), GaussianNB()):
        np.testing.assert_array_equal(
            mw.FixedRuleClassifier(model, None).fit(X, y).predict(X), model.fit(X, y).predict(X)
        )
        np.testing.assert_array_equal(mw.FixedRuleClassifier(model, None).predict(X), model.predict(X))


def test_columns_in_the_order_that_a_rule_was_fitted_to(digits):
    import pandas as pd

    X, y = digits[0][digits[1] < 3], digits[1][digits[1] < 3]
    model = GaussianNB().fit(X, y)
    logs = pd.DataFrame(model.predict_log_proba(X), columns=["0", "1", "2"])[["2", "0", "1"]]
    rule = mw.optimize(logs, y, "macro_f1", input="log_proba", strategy=LABELS).rule
    by_rule = mw.FixedRuleClassifier(model, rule)
    np.testing.assert_array_equal(by_rule.predict(X), rule.predict(logs))
    np.testing.assert_array_equal(by_rule.decision_input(X), logs.to_numpy())


# --------------------------------------------------------------------------------------------------------- elsewhere


def test_displays_take_what_the_rule_takes(binary):
    pytest.importorskip("matplotlib").use("Agg")
    X, y = binary
    model = fitted(LinearSVC(), X, y)
    display = mw.displays.ConfusionChangeDisplay.from_estimator(model, X, y)
    assert display is not None


def test_converters_refuse_rules_on_scores(binary):
    skl2onnx = pytest.importorskip("skl2onnx")
    mw.export.register_converters()
    X, y = binary
    with pytest.raises(ValueError, match=r"that decides by scores cannot be converted.*response='predict_proba'"):
        skl2onnx.to_onnx(fitted(LinearSVC(), X, y), X[:1])


def test_probabilities_are_read_as_before():
    X, y = load_breast_cancer(return_X_y=True)
    model = GaussianNB().fit(X, y)
    (block,) = PROBA.blocks(model, X, read_target(y))
    assert block is not None
    np.testing.assert_array_equal(block, model.predict_proba(X))
