"""What a name means for each kind of target, and what is refused."""

import re

import numpy as np
import pytest
from sklearn.metrics import fbeta_score, get_scorer_names

from laws.metric_records import NAMES, RECORDS
from metricwise import metrics
from metricwise.metrics import resolve, scorer_names

KINDS = ["binary", "multiclass", "multilabel", "multioutput"]
PRIORS = {"binary": [0.4, 0.6], "multiclass": [0.2, 0.3, 0.5], "multilabel": [0.4, 0.6], "multioutput": [0.2, 0.3, 0.5]}


@pytest.mark.parametrize("name", get_scorer_names())
def test_every_scorer_name_is_resolved_or_refused_with_a_reason(name):
    if name in scorer_names():
        found = False
        for kind in KINDS:
            try:
                resolved = resolve(name, kind)
            except ValueError as error:
                assert "use " in str(error)  # noqa: PT017 - some kinds resolve, and those that do not must help
                continue
            assert isinstance(resolved.metric, metrics.Metric)
            assert resolved.name == name
            found = True
        assert found
        return
    for kind in KINDS:
        with pytest.raises(ValueError, match=rf"'{name}' is not a function of the confusion matrix.*(use|choose|is) "):
            resolve(name, kind)


def test_no_scorer_name_is_invented():
    assert set(scorer_names()) <= set(get_scorer_names())


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", KINDS)
def test_our_names_resolve_or_say_what_to_use(name, kind):
    try:
        resolved = resolve(name, kind)
    except ValueError as error:
        assert "use " in str(error) or "pass the metric instead of its name" in str(error)  # noqa: PT017
    else:
        assert not RECORDS[name].parameters(2)
        assert resolved.metric == metrics.get_metric(name)
        assert resolved.average == "micro"


@pytest.mark.parametrize(
    ("name", "kind", "average", "support_weighted"),
    [
        ("f1_micro", "multilabel", "micro", False),
        ("f1_macro", "multilabel", "macro", False),
        ("jaccard_samples", "multilabel", "instance", False),
        ("precision_weighted", "multilabel", "macro", True),
        ("recall", "multilabel", "micro", False),
        ("balanced_accuracy", "multilabel", "micro", False),
        ("f1_macro", "multiclass", "micro", False),
        ("f1_weighted", "multioutput", "micro", False),
        ("matthews_corrcoef", "binary", "micro", False),
    ],
)
def test_names_fix_the_average(name, kind, average, support_weighted):
    resolved = resolve(name, kind)
    assert (resolved.average, resolved.support_weighted) == (average, support_weighted)


def test_on_multilabel_a_suffix_leaves_the_metric_of_the_positive_class():
    for suffix in ("micro", "macro", "weighted", "samples"):
        assert resolve(f"f1_{suffix}", "multilabel").metric == metrics.FBeta()


def test_elsewhere_a_suffix_is_the_average_over_classes():
    for kind in ("binary", "multiclass", "multioutput"):
        assert resolve("f1_macro", kind, "macro").metric == metrics.ClassAverage(metrics.FBeta(), "macro")
    assert resolve("f1_macro", "multioutput", "macro").average == "macro"


@pytest.mark.parametrize("name", ["f1_micro", "precision_micro", "recall_micro", "recall_weighted"])
def test_on_multiclass_these_are_accuracy(name):
    bound = resolve(name, "multiclass").metric.bind([0.2, 0.3, 0.5])
    assert isinstance(bound, metrics.Linear)
    np.testing.assert_allclose(bound.A, np.eye(3), atol=1e-15)


def test_the_papers_micro_f1_is_another_metric():
    assert resolve("micro_f1", "multiclass").metric == metrics.MicroF1()
    confusion = np.full((3, 3), 1 / 9)
    assert resolve("micro_f1", "multiclass").metric.value(confusion) != resolve("f1_micro", "multiclass").metric.value(
        confusion
    )


def test_the_positive_class_alone_on_multilabel_is_the_papers_micro_f1():
    confusion = np.array([[0.5, 0.1], [0.1, 0.3]])
    expected = resolve("f1", "multilabel").metric.value(confusion)
    assert resolve("micro_f1", "multilabel").metric.value(confusion) == pytest.approx(expected)


def test_metrics_and_callables_pass_through():
    metric = metrics.GMean()
    assert resolve(metric, "multiclass").metric is metric
    assert resolve(metric, "multiclass").name == "g_mean"
    assert resolve(metric, "multilabel", "macro").average == "macro"
    # An object says exactly what it is, where its name would be ambiguous.
    both = metrics.ClassAverage(metrics.FBeta())
    assert resolve(both, "multilabel").metric is both
    own = resolve(lambda C: float(np.trace(C)) ** 2, "multiclass")
    assert own.metric.value(np.eye(2) / 2) == 1
    assert own.name == "function"


def test_zero_division_reaches_metrics_given_by_name():
    assert resolve("f1", "binary", zero_division=1.0).metric.zero_division == 1
    assert resolve("f1_macro", "multiclass", zero_division=1.0).metric.base.zero_division == 1
    assert resolve("macro_f1", "multiclass", zero_division=1.0).metric.base.zero_division == 1
    assert resolve("accuracy", "multiclass", zero_division=1.0).metric == metrics.Accuracy()


@pytest.mark.parametrize(
    ("name", "kind", "average", "message"),
    [
        (
            "f1_macro",
            "multilabel",
            "micro",
            "for multilabel targets, 'f1_macro' fixes average='macro', got average='micro'",
        ),
        ("f1_samples", "multilabel", "macro", "fixes average='instance'"),
        ("f1_samples", "multiclass", None, "'f1_samples' is for multilabel targets.*'f1_macro'"),
        ("jaccard_samples", "multioutput", None, "is for multilabel targets"),
        ("f1", "multiclass", None, r"no positive one; use 'f1_macro', or name the class: pos_label="),
        ("specificity", "multiclass", None, r"ClassAverage\(metrics.Specificity\(\)\)"),
        ("accuracy", "multilabel", None, "whole rows.*use 'hamming_accuracy'"),
        ("macro_f1", "multilabel", None, "use 'f1_macro' for the average over labels"),
        ("weighted_f1", "multilabel", None, "use 'f1_weighted' for the average over labels"),
        ("roc_auc", "binary", None, "evaluates the order of the scores"),
        ("neg_log_loss", "binary", None, "evaluates the probabilities themselves"),
        ("top_k_accuracy", "multiclass", None, "k most probable classes"),
        ("rand_score", "multiclass", None, "compares clusterings"),
        ("r2", "multiclass", None, "for ordered classes use 'ordinal'"),
        ("positive_likelihood_ratio", "binary", None, "has no maximum"),
        ("f1_marco", "multiclass", None, "'f1_marco' is not known; did you mean 'f1_macro'"),
        ("QWK", "multiclass", None, "did you mean 'qwk'"),
        ("gmean", "multiclass", None, "did you mean 'g_mean'"),
        ("zzzzzz", "multiclass", None, r"see metrics.metric_names\(\)"),
        ("cost", "multiclass", None, r"'cost' needs cost; pass the metric instead of its name: metrics.Cost\("),
        ("weighted_accuracy", "multiclass", None, r"needs class_weight.*WeightedAccuracy\(class_weight="),
        ("fbeta", "binary", None, r"needs beta.*FBeta\(beta=2\)"),
        ("accuracy", "regression", None, "kind must be one of"),
        ("accuracy", "multiclass", "samples", "average must be 'micro', 'macro', 'instance' or None, got 'samples'"),
    ],
)
def test_refusals_say_why_and_what_instead(name, kind, average, message):
    with pytest.raises(ValueError, match=message):
        resolve(name, kind, average)


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        (metrics.GMean, r"got its class; use GMean\(...\)"),
        (3, "of labels or f.C. of the confusion matrix, got int"),
        (fbeta_score, r"fbeta_score needs beta; set it with functools.partial\(fbeta_score, beta=...\)"),
        (lambda estimator, X, y: 0.0, "needs estimator, X, y; a metric is f.C."),
    ],
)
def test_what_is_no_metric_is_refused(metric, message):
    with pytest.raises(TypeError, match=message):
        resolve(metric, "binary")


def test_get_metric_names_its_parameters():
    assert metrics.get_metric("fbeta", beta=0.5) == metrics.FBeta(0.5)
    assert metrics.get_metric("macro_f1", class_weight=[1, 2]).class_weight == [1, 2]
    with pytest.raises(TypeError, match=r"'g_mean' has the parameters \[\], got \['beta'\]"):
        metrics.get_metric("g_mean", beta=2)
    with pytest.raises(ValueError, match="'f1_macro' is not known; did you mean 'macro_f1'"):
        metrics.get_metric("f1_macro")


@pytest.mark.parametrize(
    ("name", "kind", "metric"),
    [
        ("qwk", "multiclass", metrics.Kappa("quadratic")),
        ("f2", "binary", metrics.FBeta(2)),
        ("f0.5", "multilabel", metrics.FBeta(0.5)),
        ("f3.25", "binary", metrics.FBeta(3.25)),
        ("f2_macro", "multiclass", metrics.ClassAverage(metrics.FBeta(2))),
        ("f0.5_weighted", "multiclass", metrics.ClassAverage(metrics.FBeta(0.5), "weighted")),
        ("macro_f2", "multiclass", metrics.ClassAverage(metrics.FBeta(2))),
        ("f2_macro", "multilabel", metrics.FBeta(2)),
    ],
)
def test_short_names(name, kind, metric):
    resolved = resolve(name, kind, zero_division=0.0)
    assert resolved.metric == metric
    assert resolved.name == name


def test_a_short_name_of_one_class_is_about_one_class():
    with pytest.raises(ValueError, match=r"'f2' is about one class.*use 'f2_macro'"):
        resolve("f2", "multiclass")
    assert resolve("f2_samples", "multilabel").average == "instance"


TYPED = [
    *("f1_scor", "F1", "f-1", "f1score", "accurracy", "balanced", "kapa", "recal", "precison", "jacard", "f1_score"),
    *("accuracy_score", "cohen_kappa_score", "iou", "dice", "f_2", "mcc_score", "gmean", "hamming"),
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("typed", TYPED)
def test_suggestions_never_repeat_themselves_and_can_be_followed(typed, kind):
    with pytest.raises(ValueError, match="is not known; did you mean ") as caught:
        resolve(typed, kind)
    suggested = re.findall("'([^']+)'", str(caught.value).split("did you mean")[1])
    assert len(suggested) == len(set(suggested)) > 0
    followed = []
    for name in suggested:
        try:
            followed.append(resolve(name, kind))
        except ValueError as error:
            assert "use " in str(error)  # noqa: PT017 - nothing nearer serves this kind of target
    assert len(followed) in (0, len(suggested))


@pytest.mark.parametrize(("typed", "meant"), [("AUC", "roc_auc"), ("log loss", "neg_log_loss"), ("ROC-AUC", "roc_auc")])
def test_other_words_for_what_is_refused_are_refused_with_the_reason(typed, meant):
    with pytest.raises(ValueError, match=f"'{typed}' is not known; '{meant}' is, and it evaluates"):
        resolve(typed, "binary")
