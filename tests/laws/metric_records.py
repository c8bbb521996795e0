"""One record for each metric: how to make it, its value by somebody else's count, and what is claimed of it.

Every test that runs on all metrics takes them from here: values, laws, solvers against brute force, and the hunt. A
reference is told codes, positions among the classes, and is scikit-learn, called with every class in `labels` and an
explicit `zero_division`, or a formula written out on the labels; it uses nothing of metricwise.
"""

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
import sklearn
from scipy import stats
from sklearn import metrics as sk
from sklearn.exceptions import UndefinedMetricWarning

from metricwise import metrics
from metricwise.metrics.one_vs_rest import OneVsRest
from sklearn_versions import kappa_or_zero

# What scikit-learn says of classes that do not occur or are not predicted, which cases here have on purpose.
EXPECTED_WARNINGS = ("y_pred contains classes not in y_true", "A single label was found")


@dataclass(frozen=True)
class Decisions:
    """What a reference is told: codes y and p of true and predicted classes, weights w or None, of k classes.

    zero : the value at 0/0; c : the class, for metrics of one class.
    """

    y: np.ndarray
    p: np.ndarray
    w: np.ndarray | None
    k: int
    zero: float
    c: int

    @property
    def occurring(self):
        return np.unique(self.y if self.w is None else self.y[self.w > 0])

    def mean(self, table):
        """The mean over rows of an entry of a K x K table."""
        return np.average(np.asarray(table)[self.y, self.p], weights=self.w)


# Classes that cannot trade places with others without changing the value, of K classes and the metric's one.
NONE, ONE, FIRST, LAST, ALL = (
    lambda k, c: [],
    lambda k, c: [c],
    lambda k, c: [0],
    lambda k, c: [k - 1],
    lambda k, c: list(range(k)),
)


@dataclass(frozen=True)
class Record:
    """A metric, and what the tests hold it to; the defaults are what most metrics are.

    Parameters
    ----------
    reference : callable
        From `Decisions` to the value.
    form : {"linear", "ratio", "minimum", "concave", "any"}
        The narrowest form, of those that solvers ask for, that it has once the class priors are known.
    parameters : callable
        From K to what the name in the registry needs; a metric of one class is told which besides.
    build : callable, optional
        From K and the value at 0/0 to a metric that has no name in the registry.
    kept : callable
        From K and the class c to the classes that are not like the others: NONE, ONE, FIRST, LAST, ALL.
    increasing : bool
        Whether it is an increasing transform of something of that form.
    concave : bool, optional
        Whether it is concave at fixed priors; without, as its form says.
    monotonic : bool
        Whether to correct a decision never lowers it; with two classes all do that do not reward mistakes.
    degenerate : bool
        Whether the best rule is one that nobody wants, of which `optimize` warns.
    vanishing : bool
        Whether the denominator of a ratio is 0 where some class is never predicted: then no bound may be proved.
    sized : bool
        Whether it fits K classes alone, so that outputs of several sizes cannot share it.
    rewards_mistakes : bool
        Whether a perfect prediction need not be the best, nor one that corrects another be better.
    stated : bool
        Whether it has a value where there are no rows at all.
    name : str, optional
        What the metric calls itself, if not as the registry does.
    """

    reference: Callable
    form: str
    parameters: Callable = lambda k: {}
    build: Callable | None = None
    kept: Callable = NONE
    increasing: bool = False
    concave: bool | None = None
    monotonic: bool = True
    degenerate: bool = False
    vanishing: bool = False
    sized: bool = False
    rewards_mistakes: bool = False
    stated: bool = True
    name: str | None = None

    @property
    def is_concave(self):
        return self.form in ("linear", "minimum", "concave") if self.concave is None else self.concave

    def value(self, y, p, w=None, *, k, zero_division=0.0, c=None):
        """The reference at codes (N,), without the warnings that cases provoke and scikit-learn's slower checks."""
        decisions = Decisions(y, p, w, k, zero_division, k - 1 if c is None else c)
        with warnings.catch_warnings(), sklearn.config_context(assume_finite=True, skip_parameter_validation=True):
            warnings.simplefilter("ignore", UndefinedMetricWarning)
            for message in EXPECTED_WARNINGS:
                warnings.filterwarnings("ignore", message=message)
            return float(self.reference(decisions))

    def of_counts(self, counts, **options):
        """The reference at a K x K table of counts or weights, a row of data for each cell that has any."""
        counts = np.asarray(counts, dtype=float)
        y, p = np.nonzero(counts)
        return self.value(y, p, counts[y, p], k=len(counts), **options)


# ------------------------------------------------------------------------------------------------------ references


def of_class(function, c=None, **fixed):
    """Of the metric's class, or of a given one."""
    return lambda d: function(
        d.y,
        d.p,
        labels=[d.c if c is None else c],
        average="macro",
        sample_weight=d.w,
        zero_division=d.zero,
        **fixed,
    )


def over_classes(function, average, classes=range):
    return lambda d: function(d.y, d.p, labels=classes(d.k), average=average, sample_weight=d.w, zero_division=d.zero)


def of_recalls(mean):
    """A mean of the recalls of the classes that have rows of positive weight."""
    return lambda d: mean(
        sk.recall_score(d.y, d.p, labels=d.occurring, average=None, sample_weight=d.w, zero_division=0)
    )


def specificity(d, c):
    return sk.recall_score(d.y != c, d.p != c, pos_label=True, sample_weight=d.w, zero_division=d.zero)


def false_positive_rate(d):
    others = d.y != d.c if d.w is None else (d.y != d.c) & (d.w > 0)
    if not others.any():
        return d.zero
    return np.average(d.p[others] == d.c, weights=None if d.w is None else d.w[others])


def kappa(weights):
    return lambda d: kappa_or_zero(d.y, d.p, labels=range(d.k), weights=weights, sample_weight=d.w)


def kappa_of_matrix(d):
    seen = d.mean(mistakes(d.k))
    true, predicted = (np.bincount(codes, weights=d.w, minlength=d.k) for codes in (d.y, d.p))
    chance = true @ mistakes(d.k) @ predicted / true.sum() ** 2
    return 1 - seen / chance if chance > 0 else 0.0


def mcc(d):
    # Where one class occurs, scikit-learn divides one rounding error by another.
    return sk.matthews_corrcoef(d.y, d.p, sample_weight=d.w) if len(d.occurring) > 1 else 0.0


def adjusted(d):
    # There it divides by zero.
    return sk.balanced_accuracy_score(d.y, d.p, sample_weight=d.w, adjusted=True) if len(d.occurring) > 1 else 0.0


def accuracy(d):
    return sk.accuracy_score(d.y, d.p, sample_weight=d.w)


def closeness(error, power):
    return lambda d: 1 - error(d.y, d.p, sample_weight=d.w) / (d.k - 1) ** power


def fowlkes_mallows(d, c=None):
    return np.sqrt(of_class(sk.precision_score, c)(d) * of_class(sk.recall_score, c)(d))


def f1_by_rank(d):
    """The mean of F1 over classes, class i weighing i times its rows."""
    weights = np.arange(d.k) * np.bincount(d.y, weights=d.w, minlength=d.k)
    each = sk.f1_score(d.y, d.p, labels=range(d.k), average=None, sample_weight=d.w, zero_division=d.zero)
    return np.average(each, weights=weights) if weights.any() else 0.0


def polynomial(gamma, most=1.0):
    return lambda d: max(0.0, most - 1 + accuracy(d)) ** gamma


# Tables of K classes, to make metrics of and to count with.


def costs(k):
    return (np.arange(k * k) % 5 - 1.0).reshape(k, k)


def mistakes(k):
    return np.triu(np.ones((k, k)), 1) + np.tril(np.full((k, k), 3.0), -1)


def above(k):
    return np.linspace(-1, 2, k * k).reshape(k, k)


def below(k):
    return np.linspace(1, 2, k * k).reshape(k, k)


def falling(gamma, first=1):
    return lambda d: d.mean(np.diag(np.exp(-gamma * np.arange(first, first + d.k))))


def averaged(base, *args, **options):
    return lambda k, zd: metrics.ClassAverage(base(zero_division=zd), *args, **options)


# --------------------------------------------------------------------------------------------------------- the table

RECORDS = {
    # linear
    "accuracy": Record(accuracy, "linear"),
    "hamming_accuracy": Record(lambda d: 1 - sk.hamming_loss(d.y, d.p, sample_weight=d.w), "linear", name="accuracy"),
    "weighted_accuracy": Record(
        lambda d: d.mean(np.diag(np.arange(1.0, d.k + 1))),
        "linear",
        parameters=lambda k: {"class_weight": np.arange(1.0, k + 1)},
        kept=ALL,
        sized=True,
    ),
    "weighted_exponential": Record(falling(0.5), "linear", kept=ALL),
    "ordinal": Record(closeness(sk.mean_absolute_error, 1), "linear", kept=ALL),
    "squared_ordinal": Record(closeness(sk.mean_squared_error, 2), "linear", kept=ALL),
    "cost": Record(
        lambda d: -d.mean(costs(d.k)),
        "linear",
        parameters=lambda k: {"cost": costs(k)},
        kept=ALL,
        sized=True,
        rewards_mistakes=True,
    ),
    "balanced_accuracy": Record(lambda d: sk.balanced_accuracy_score(d.y, d.p, sample_weight=d.w), "linear"),
    "recall": Record(of_class(sk.recall_score), "linear", kept=ONE, degenerate=True),
    "specificity": Record(lambda d: specificity(d, d.c), "linear", kept=ONE, degenerate=True),
    "false_positive_rate": Record(false_positive_rate, "linear", kept=ONE, degenerate=True, rewards_mistakes=True),
    "share": Record(
        lambda d: np.average(d.p == d.c, weights=d.w), "linear", kept=ONE, degenerate=True, rewards_mistakes=True
    ),
    "macro_recall": Record(over_classes(sk.recall_score, "macro"), "linear"),
    "macro_specificity": Record(lambda d: np.mean([specificity(d, c) for c in range(d.k)]), "linear"),
    # ratios
    "f1": Record(of_class(sk.f1_score), "ratio", kept=ONE),
    "fbeta": Record(
        of_class(sk.fbeta_score, beta=2.0), "ratio", parameters=lambda k: {"beta": 2.0}, kept=ONE, name="f2"
    ),
    "micro_f1": Record(over_classes(sk.f1_score, "micro", lambda k: range(1, k)), "ratio", kept=FIRST),
    "jaccard": Record(of_class(sk.jaccard_score), "ratio", kept=ONE),
    "precision": Record(of_class(sk.precision_score), "ratio", kept=ONE, degenerate=True, vanishing=True),
    "kappa": Record(kappa(None), "ratio", monotonic=False),
    "linear_kappa": Record(kappa("linear"), "ratio", kept=ALL, monotonic=False),
    "quadratic_kappa": Record(kappa("quadratic"), "ratio", kept=ALL, monotonic=False),
    # increasing transforms
    "polynomial": Record(polynomial(2), "linear", increasing=True, concave=False),
    "decathlon": Record(polynomial(2), "linear", increasing=True, concave=False),
    # concave
    "g_mean": Record(of_recalls(stats.gmean), "concave"),
    "h_mean": Record(of_recalls(stats.hmean), "concave"),
    "q_mean": Record(of_recalls(lambda r: 1 - np.sqrt(np.mean((1 - r) ** 2))), "concave"),
    "min_recall": Record(of_recalls(np.min), "minimum"),
    # others
    "macro_f1": Record(over_classes(sk.f1_score, "macro"), "any"),
    "weighted_f1": Record(over_classes(sk.f1_score, "weighted"), "any"),
    "macro_jaccard": Record(over_classes(sk.jaccard_score, "macro"), "any"),
    "weighted_jaccard": Record(over_classes(sk.jaccard_score, "weighted"), "any"),
    "macro_precision": Record(over_classes(sk.precision_score, "macro"), "any"),
    "weighted_precision": Record(over_classes(sk.precision_score, "weighted"), "any"),
    "mcc": Record(mcc, "any", monotonic=False),
    "fowlkes_mallows": Record(fowlkes_mallows, "any", kept=ONE),
    # beyond the registry: parameters, compositions and the user's own
    "FBeta(0.5)": Record(
        of_class(sk.fbeta_score, 0, beta=0.5),
        "ratio",
        build=lambda k, zd: metrics.FBeta(0.5, index=0, zero_division=zd),
        kept=FIRST,
    ),
    "FBeta(0)": Record(
        of_class(sk.fbeta_score, 0, beta=0.0),
        "ratio",
        build=lambda k, zd: metrics.FBeta(0.0, index=0, zero_division=zd),
        kept=FIRST,
        vanishing=True,
    ),
    "MicroF1(last)": Record(
        over_classes(sk.f1_score, "micro", lambda k: range(k - 1)),
        "ratio",
        build=lambda k, zd: metrics.MicroF1(negative_index=k - 1, zero_division=zd),
        kept=LAST,
        sized=True,
    ),
    "Kappa(matrix)": Record(
        kappa_of_matrix,
        "ratio",
        build=lambda k, zd: metrics.Kappa(mistakes(k)),
        kept=ALL,
        monotonic=False,
        sized=True,
    ),
    "BalancedAccuracy(adjusted)": Record(
        adjusted, "linear", build=lambda k, zd: metrics.BalancedAccuracy(adjusted=True)
    ),
    "WeightedExponential(-1)": Record(
        falling(-1.0), "linear", build=lambda k, zd: metrics.WeightedExponential(gamma=-1.0), kept=ALL
    ),
    "WeightedExponential(2, from 0)": Record(
        falling(2.0, 0), "linear", build=lambda k, zd: metrics.WeightedExponential(2.0, first_index=0), kept=ALL
    ),
    "Polynomial(root)": Record(
        polynomial(0.5), "linear", build=lambda k, zd: metrics.Polynomial(gamma=0.5), increasing=True
    ),
    "Polynomial(strict)": Record(
        polynomial(2, 0.8),
        "linear",
        build=lambda k, zd: metrics.Polynomial(gamma=2.0, max_error=0.8),
        increasing=True,
        concave=False,
    ),
    "Polynomial(shift)": Record(
        polynomial(3, 2.0),
        "linear",
        build=lambda k, zd: metrics.Polynomial(gamma=3.0, max_error=2.0),
        increasing=True,
        concave=False,
    ),
    "ClassAverage(jaccard micro)": Record(
        over_classes(sk.jaccard_score, "micro"), "ratio", build=averaged(metrics.Jaccard, "micro")
    ),
    "ClassAverage(f1 micro)": Record(
        over_classes(sk.f1_score, "micro"), "linear", build=averaged(metrics.FBeta, "micro")
    ),
    "ClassAverage(specificity micro)": Record(
        lambda d: 1 - (1 - accuracy(d)) / (d.k - 1), "linear", build=averaged(metrics.Specificity, "micro")
    ),
    "ClassAverage(recall weighted)": Record(
        over_classes(sk.recall_score, "weighted"), "linear", build=averaged(metrics.Recall, "weighted")
    ),
    "ClassAverage(fowlkes_mallows)": Record(
        lambda d: np.mean([fowlkes_mallows(d, c) for c in range(d.k)]), "any", build=averaged(metrics.FowlkesMallows)
    ),
    "ClassAverage(f1, weights)": Record(
        f1_by_rank,
        "any",
        build=lambda k, zd: averaged(metrics.FBeta, "weighted", class_weight=np.arange(k))(k, zd),
        kept=ALL,
        sized=True,
    ),
    "Minimum": Record(
        lambda d: min(accuracy(d), of_class(sk.recall_score, 0)(d), closeness(sk.mean_absolute_error, 1)(d)),
        "minimum",
        build=lambda k, zd: metrics.Minimum(
            [metrics.Accuracy(), metrics.Recall(index=0, zero_division=zd), metrics.Ordinal()]
        ),
        kept=ALL,
    ),
    "Linear": Record(
        lambda d: d.mean(above(d.k)),
        "linear",
        build=lambda k, zd: metrics.Linear(above(k)),
        kept=ALL,
        sized=True,
        rewards_mistakes=True,
    ),
    "FractionalLinear": Record(
        lambda d: d.mean(above(d.k)) / d.mean(below(d.k)),
        "ratio",
        build=lambda k, zd: metrics.FractionalLinear(above(k), below(k)),
        kept=ALL,
        concave=True,  # above = 3 below - 4, and below is positive
        sized=True,
        rewards_mistakes=True,
        stated=False,
    ),
}

NAMES = [name for name in metrics.metric_names() if name in RECORDS]
EVERY = [*NAMES, *(name for name, record in RECORDS.items() if record.build is not None)]


def sized(*sizes):
    """Every name with each of these numbers of classes; what is beyond the registry with three alone, to save time."""
    return [(name, k) for name in EVERY for k in sizes if k == 3 or RECORDS[name].build is None]


def make(name, k, zero_division=0.0, c=None):
    """The metric of a record for K classes; a metric of one class is of class c, the last unless told."""
    record = RECORDS[name]
    if record.build is not None:
        return record.build(k, zero_division)
    parameters = record.parameters(k)
    metric = metrics.get_metric(name, zero_division=zero_division, **parameters)
    if not isinstance(metric, OneVsRest) or (k == 2 and c is None):
        return metric
    index = k - 1 if c is None else c
    return metrics.get_metric(name, zero_division=zero_division, index=index, **parameters)


def having(**traits):
    """Names of the records with these traits."""
    return [name for name in EVERY if all(getattr(RECORDS[name], trait) == value for trait, value in traits.items())]


# Metrics of one class, and those that go by an order of the classes which can be given.
ONE_CLASS = [name for name in NAMES if isinstance(make(name, 2), OneVsRest)]
ORDERED = [name for name in NAMES if RECORDS[name].kept is ALL and hasattr(make(name, 3), "order")]


# ----------------------------------------------------------------------------------------- for those who try everything


def largest(name, counts, c=1):
    """The largest value of a stack (R, K, K) of counts; a metric of one class is of class 1 unless told.

    Values are ours, many at once: that they are the reference's is a law, and where they are largest it is asked again.
    """
    values = make(name, counts.shape[-1], c=c).value(counts / counts[0].sum())
    best = np.argmax(values)
    assert values[best] == pytest.approx(RECORDS[name].of_counts(counts[best], c=c), abs=1e-9)
    return float(values[best])


def exact_ratio(name, counts, c=1):
    """Matrices A and B of a ratio at the row sums of counts (K, K): whole numbers, up to a common factor.

    What floats say of a ratio of small whole numbers tells which it is.
    """
    bound = make(name, len(counts), c=c).bind(counts.sum(axis=1) / counts.sum())
    entries = np.stack([bound.as_ratio().A, bound.as_ratio().B])
    exact = [Fraction(entry).limit_denominator(10**5) for entry in entries.ravel().tolist()]
    np.testing.assert_allclose([float(entry) for entry in exact], entries.ravel(), rtol=1e-12, atol=1e-12)
    factor = math.lcm(*(entry.denominator for entry in exact))
    return np.array([int(entry * factor) for entry in exact], dtype=object).reshape(entries.shape).tolist()
