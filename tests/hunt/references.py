"""Each metric as scikit-learn computes it: of one output, and averaged over several.

Everything here is told codes, positions among the classes, and calls scikit-learn with every class in `labels` and an
explicit `zero_division`. Nothing of metricwise is used to find an answer.
"""

import functools
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import sklearn
from scipy import stats
from sklearn import metrics as sk
from sklearn.exceptions import UndefinedMetricWarning

from metricwise import metrics

# What scikit-learn says of classes that do not occur or are not predicted, which cases here have on purpose.
EXPECTED_WARNINGS = ("y_pred contains classes not in y_true", "A single label was found")


@dataclass(frozen=True)
class Reference:
    """A metric of ours, made from K and the value at 0/0, beside scikit-learn's function of one output.

    `value` takes codes y and p, weights w, K and the value at 0/0. A metric with `sized` parameters fits outputs of K
    classes alone.
    """

    make: Callable
    value: Callable
    sized: bool = False


def of_class(function, **fixed):
    """Of class 1."""
    return lambda y, p, w, k, zd: function(
        y, p, labels=[1], average="macro", sample_weight=w, zero_division=zd, **fixed
    )


def over_classes(function, average, first=0):
    return lambda y, p, w, k, zd: function(
        y, p, labels=range(first, k), average=average, sample_weight=w, zero_division=zd
    )


def of_recalls(mean):
    """A mean of the recalls of the classes that have rows of positive weight."""

    def value(y, p, w, k, zd):
        occur = np.unique(y if w is None else y[w > 0])
        return mean(sk.recall_score(y, p, labels=occur, average=None, sample_weight=w, zero_division=0))

    return value


def specificity(y, p, w, c, zd):
    return sk.recall_score(y != c, p != c, pos_label=True, sample_weight=w, zero_division=zd)


def kappa(weights):
    return lambda y, p, w, k, zd: sk.cohen_kappa_score(
        y, p, labels=range(k), weights=weights, sample_weight=w, replace_undefined_by=0.0
    )


def mcc(y, p, w, k, zd):
    # Where one class occurs, scikit-learn divides one rounding error by another.
    occur = np.unique(y if w is None else y[w > 0])
    return sk.matthews_corrcoef(y, p, sample_weight=w) if len(occur) > 1 else 0.0


def accuracy(y, p, w, k, zd):
    return sk.accuracy_score(y, p, sample_weight=w)


def mean_of_cells(cells):
    """The mean over rows of an entry of a K x K table."""
    return lambda y, p, w, k, zd: np.average(cells(k)[y, p], weights=w)


def fowlkes_mallows(y, p, w, k, zd):
    return np.sqrt(of_class(sk.precision_score)(y, p, w, k, zd) * of_class(sk.recall_score)(y, p, w, k, zd))


def costs(k):
    return (np.arange(k * k) % 5 - 1.0).reshape(k, k)


REFERENCES = {
    # linear
    "accuracy": Reference(lambda k, zd: metrics.Accuracy(), accuracy),
    "balanced accuracy": Reference(
        lambda k, zd: metrics.BalancedAccuracy(),
        lambda y, p, w, k, zd: sk.balanced_accuracy_score(y, p, sample_weight=w),
    ),
    "ordinal": Reference(
        lambda k, zd: metrics.Ordinal(),
        lambda y, p, w, k, zd: 1 - sk.mean_absolute_error(y, p, sample_weight=w) / (k - 1),
    ),
    "squared ordinal": Reference(
        lambda k, zd: metrics.SquaredOrdinal(),
        lambda y, p, w, k, zd: 1 - sk.mean_squared_error(y, p, sample_weight=w) / (k - 1) ** 2,
    ),
    "exponential": Reference(
        lambda k, zd: metrics.WeightedExponential(gamma=0.5),
        mean_of_cells(lambda k: np.diag(np.exp(-0.5 * np.arange(1, k + 1)))),
    ),
    "weighted accuracy": Reference(
        lambda k, zd: metrics.WeightedAccuracy(class_weight=np.arange(1.0, k + 1)),
        mean_of_cells(lambda k: np.diag(np.arange(1.0, k + 1))),
        sized=True,
    ),
    "cost": Reference(lambda k, zd: metrics.Cost(cost=costs(k)), mean_of_cells(lambda k: -costs(k)), sized=True),
    "recall": Reference(lambda k, zd: metrics.Recall(index=1, zero_division=zd), of_class(sk.recall_score)),
    "specificity": Reference(
        lambda k, zd: metrics.Specificity(index=1, zero_division=zd),
        lambda y, p, w, k, zd: specificity(y, p, w, 1, zd),
    ),
    "macro recall": Reference(
        lambda k, zd: metrics.ClassAverage(metrics.Recall(zero_division=zd)), over_classes(sk.recall_score, "macro")
    ),
    "macro specificity": Reference(
        lambda k, zd: metrics.ClassAverage(metrics.Specificity(zero_division=zd)),
        lambda y, p, w, k, zd: np.mean([specificity(y, p, w, c, zd) for c in range(k)]),
    ),
    # ratios
    "f1": Reference(lambda k, zd: metrics.FBeta(index=1, zero_division=zd), of_class(sk.f1_score)),
    "f2": Reference(lambda k, zd: metrics.FBeta(2.0, index=1, zero_division=zd), of_class(sk.fbeta_score, beta=2.0)),
    "f0.5": Reference(lambda k, zd: metrics.FBeta(0.5, index=1, zero_division=zd), of_class(sk.fbeta_score, beta=0.5)),
    "precision": Reference(lambda k, zd: metrics.Precision(index=1, zero_division=zd), of_class(sk.precision_score)),
    "jaccard": Reference(lambda k, zd: metrics.Jaccard(index=1, zero_division=zd), of_class(sk.jaccard_score)),
    "pooled jaccard": Reference(
        lambda k, zd: metrics.ClassAverage(metrics.Jaccard(zero_division=zd), "micro"),
        over_classes(sk.jaccard_score, "micro"),
    ),
    "micro f1": Reference(
        lambda k, zd: metrics.MicroF1(negative_index=0, zero_division=zd), over_classes(sk.f1_score, "micro", first=1)
    ),
    "kappa": Reference(lambda k, zd: metrics.Kappa(), kappa(None)),
    "linear kappa": Reference(lambda k, zd: metrics.Kappa("linear"), kappa("linear")),
    "quadratic kappa": Reference(lambda k, zd: metrics.Kappa("quadratic"), kappa("quadratic")),
    # increasing transforms
    "polynomial": Reference(lambda k, zd: metrics.Polynomial(gamma=2.0), lambda *args: accuracy(*args) ** 2),
    # concave
    "g-mean": Reference(lambda k, zd: metrics.GMean(), of_recalls(stats.gmean)),
    "h-mean": Reference(lambda k, zd: metrics.HMean(), of_recalls(stats.hmean)),
    "q-mean": Reference(lambda k, zd: metrics.QMean(), of_recalls(lambda r: 1 - np.sqrt(np.mean((1 - r) ** 2)))),
    "least recall": Reference(lambda k, zd: metrics.MinRecall(), of_recalls(np.min)),
    # others
    "macro f1": Reference(
        lambda k, zd: metrics.ClassAverage(metrics.FBeta(zero_division=zd)), over_classes(sk.f1_score, "macro")
    ),
    "weighted f1": Reference(
        lambda k, zd: metrics.ClassAverage(metrics.FBeta(zero_division=zd), "weighted"),
        over_classes(sk.f1_score, "weighted"),
    ),
    "macro jaccard": Reference(
        lambda k, zd: metrics.ClassAverage(metrics.Jaccard(zero_division=zd)), over_classes(sk.jaccard_score, "macro")
    ),
    "macro precision": Reference(
        lambda k, zd: metrics.ClassAverage(metrics.Precision(zero_division=zd)),
        over_classes(sk.precision_score, "macro"),
    ),
    "weighted precision": Reference(
        lambda k, zd: metrics.ClassAverage(metrics.Precision(zero_division=zd), "weighted"),
        over_classes(sk.precision_score, "weighted"),
    ),
    "mcc": Reference(lambda k, zd: metrics.MCC(), mcc),
    "fowlkes-mallows": Reference(lambda k, zd: metrics.FowlkesMallows(index=1, zero_division=zd), fowlkes_mallows),
}


def quiet(function):
    """Run without the warnings that the cases provoke on purpose, and without scikit-learn's slower checks."""

    @functools.wraps(function)
    def wrapped(*args, **options):
        with warnings.catch_warnings(), sklearn.config_context(assume_finite=True, skip_parameter_validation=True):
            warnings.simplefilter("ignore", UndefinedMetricWarning)
            for message in EXPECTED_WARNINGS:
                warnings.filterwarnings("ignore", message=message)
            return function(*args, **options)

    return wrapped


# ------------------------------------------------------------------------------------------------- over outputs


@quiet
def expected_value(case, predicted):
    """The metric of a case at predicted codes (N, M), by the definition of its average over outputs."""
    return AVERAGES[case.average](case, predicted)


def _one(case, y, p, w, k):
    seen = y >= 0
    return REFERENCES[case.metric].value(y[seen], p[seen], None if w is None else w[seen], k, case.zero_division)


def _pooled(case, predicted):
    """All outputs one below the other, each row weighing what its output weighs."""
    weight = case.row_weight[:, None] * case.alpha
    flat = None if case.weight is None and case.output_weight is None else weight.T.ravel()
    return _one(case, case.codes.T.ravel(), predicted.T.ravel(), flat, max(case.sizes))


def _mean_of_outputs(case, predicted):
    counted = ((case.codes >= 0) * case.row_weight[:, None]).sum(axis=0) * case.alpha > 0
    values = [
        _one(case, case.codes[:, m], predicted[:, m], case.weight, case.sizes[m]) for m in np.flatnonzero(counted)
    ]
    return np.average(values, weights=case.alpha[counted])


def _mean_of_rows(case, predicted):
    """Row by row over the outputs; few outputs have few rows that differ."""
    observed = ((case.codes >= 0) * case.alpha).any(axis=1)
    width = max(case.sizes)

    @functools.cache
    def of_row(y, p):
        return _one(case, np.array(y), np.array(p), case.output_weight, width)

    rows = zip(case.codes[observed].tolist(), predicted[observed].tolist(), strict=True)
    values = [of_row(tuple(y), tuple(p)) for y, p in rows]
    return np.average(values, weights=case.row_weight[observed])


AVERAGES = {"micro": _pooled, "macro": _mean_of_outputs, "instance": _mean_of_rows}
