"""scikit-learn's own checks of what an estimator is, over all estimators in several configurations."""

import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

import metricwise as mw

TREE = DecisionTreeClassifier(max_depth=3, random_state=0)

LABELS = {"confusion": "labels", "recalibrate": False}
EXPECTED = {"confusion": "expected", "recalibrate": False}

# What scikit-learn expects of TunedThresholdClassifierCV, and the sentence for each.
ARGMAX = "predict maximises the metric, so it need not be the argmax of predict_proba"
WEIGHTS = "folds, of the recipe or of a calibrator, differ between a row of weight two and one that is given twice"

RULE = {"check_classifiers_train": ARGMAX, "check_classifier_multioutput": ARGMAX}
ORDER = {"check_classifiers_classes": "words have no order until classes= gives it"}
FOLDS = {"check_sample_weight_equivalence_on_dense_data": WEIGHTS}

# Each configuration with the checks that need not hold in it; where the best rule happens to be argmax, they do.
CONFIGURATIONS = [
    (mw.MetricOptimalClassifierCV(GaussianNB()), RULE | FOLDS),
    (mw.MetricOptimalClassifierCV(LogisticRegression(), cv=2, strategy=mw.Strategy(**LABELS)), RULE),
    (
        mw.MetricOptimalClassifierCV(
            GaussianNB(), metric="kappa", cv=0.5, refit=False, strategy=mw.Strategy(solver="bisection", **LABELS)
        ),
        RULE | FOLDS,
    ),
    (
        mw.MetricOptimalClassifierCV(TREE, metric="g_mean", cv=2, strategy=mw.Strategy(randomized=True, **EXPECTED)),
        RULE,
    ),
    (
        mw.MetricOptimalClassifierCV(
            GaussianNB(), metric="weighted_exponential", cv=2, strategy=mw.Strategy(**EXPECTED)
        ),
        RULE | ORDER,
    ),
    (mw.MetricOptimalClassifierCV(GaussianNB(), metric="hamming_accuracy", cv=2, strategy=mw.Strategy(**EXPECTED)), {}),
    (mw.MetricOptimalClassifierCV(LinearSVC(), cv=2, strategy=mw.Strategy(**LABELS)), RULE),
    (
        mw.MetricOptimalClassifierCV(
            GaussianNB(), cv=2, response="predict_log_proba", strategy=mw.Strategy(confusion="labels", recalibrate=True)
        ),
        RULE | FOLDS,
    ),
    (mw.FixedRuleClassifier(GaussianNB(), None), {}),
    (mw.FixedRuleClassifier(LinearSVC(), None), {}),
    (mw.CostSensitiveClassifier(GaussianNB(), None), {}),
    (mw.MetricWeightedClassifier(TREE, cv=2, max_iter=3), {}),
    (mw.MetricWeightedClassifier(GaussianNB(), metric="g_mean", average="macro", cv=2, max_iter=3), {}),
]

# A calibrator is fitted in every fold, which takes longer than all of the above.
CALIBRATED = mw.MetricOptimalClassifierCV(
    GaussianNB(), metric="mcc", cv=3, calibration="sigmoid", strategy=mw.Strategy(**EXPECTED)
)
FAILURES = {repr(estimator): failures for estimator, failures in [*CONFIGURATIONS, (CALIBRATED, RULE | FOLDS)]}


def expected_failures(estimator):
    return FAILURES[repr(estimator)]


@parametrize_with_checks(
    [estimator for estimator, _ in CONFIGURATIONS], expected_failed_checks=expected_failures, xfail_strict=False
)
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks([CALIBRATED], expected_failed_checks=expected_failures, xfail_strict=False)
def test_scikit_learn_with_a_calibrator(estimator, check):
    check(estimator)
