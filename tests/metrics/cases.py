"""The metrics that every law runs on, and the confusion matrices it runs over."""

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from metricwise import metrics
from metricwise.metrics.one_vs_rest import OneVsRest

# Parameters for the names that need some, by number of classes.
NEEDED = {
    "weighted_accuracy": lambda k: {"class_weight": np.arange(1.0, k + 1)},
    "cost": lambda k: {"cost": (np.arange(k * k) % 5 - 1.0).reshape(k, k)},
    "fbeta": lambda k: {"beta": 2.0},
}

# Metrics beyond the registry: parameters, compositions and the user's own.
FURTHER = {
    "FBeta(0.5)": lambda k, zd: metrics.FBeta(0.5, index=0, zero_division=zd),
    "FBeta(0)": lambda k, zd: metrics.FBeta(0.0, index=0, zero_division=zd),
    "MicroF1(last)": lambda k, zd: metrics.MicroF1(negative_index=k - 1, zero_division=zd),
    "Kappa(matrix)": lambda k, zd: metrics.Kappa(np.triu(np.ones((k, k)), 1) + np.tril(np.full((k, k), 3.0), -1)),
    "BalancedAccuracy(adjusted)": lambda k, zd: metrics.BalancedAccuracy(adjusted=True),
    "WeightedExponential(-1)": lambda k, zd: metrics.WeightedExponential(gamma=-1.0),
    "Polynomial(root)": lambda k, zd: metrics.Polynomial(gamma=0.5),
    "Polynomial(strict)": lambda k, zd: metrics.Polynomial(gamma=2.0, max_error=0.8),
    "Polynomial(shift)": lambda k, zd: metrics.Polynomial(gamma=3.0, max_error=2.0),
    "ClassAverage(jaccard micro)": lambda k, zd: metrics.ClassAverage(metrics.Jaccard(zero_division=zd), "micro"),
    "ClassAverage(f1 micro)": lambda k, zd: metrics.ClassAverage(metrics.FBeta(zero_division=zd), "micro"),
    "ClassAverage(specificity micro)": lambda k, zd: metrics.ClassAverage(
        metrics.Specificity(zero_division=zd), "micro"
    ),
    "ClassAverage(recall weighted)": lambda k, zd: metrics.ClassAverage(metrics.Recall(zero_division=zd), "weighted"),
    "ClassAverage(fowlkes_mallows)": lambda k, zd: metrics.ClassAverage(metrics.FowlkesMallows(zero_division=zd)),
    "ClassAverage(f1, weights)": lambda k, zd: metrics.ClassAverage(
        metrics.FBeta(zero_division=zd), "weighted", class_weight=np.arange(k)
    ),
    "Minimum": lambda k, zd: metrics.Minimum(
        [metrics.Accuracy(), metrics.Recall(index=0, zero_division=zd), metrics.Ordinal()]
    ),
    "Linear": lambda k, zd: metrics.Linear(np.linspace(-1, 2, k * k).reshape(k, k)),
    "FractionalLinear": lambda k, zd: metrics.FractionalLinear(
        np.linspace(-1, 2, k * k).reshape(k, k), np.linspace(1, 2, k * k).reshape(k, k)
    ),
}

NAMES = metrics.metric_names()
ALL = [*NAMES, *FURTHER]


def make(name, n_classes, zero_division=0.0):
    """Build the metric of a name for K classes; a metric of one class takes the last."""
    if name in FURTHER:
        return FURTHER[name](n_classes, zero_division)
    parameters = NEEDED.get(name, lambda k: {})(n_classes)
    metric = metrics.get_metric(name, zero_division=zero_division, **parameters)
    if isinstance(metric, OneVsRest) and n_classes > 2:
        return metrics.get_metric(name, zero_division=zero_division, index=n_classes - 1, **parameters)
    return metric


def interior(rng, n_classes, *shape):
    """Confusion matrices with every cell well above 0."""
    cells = rng.dirichlet(np.ones(n_classes**2), size=shape or None) + 0.1 / n_classes
    cells = cells / cells.sum(axis=-1, keepdims=True)
    return cells.reshape(*shape, n_classes, n_classes)


def same_priors(rng, confusion):
    """Another matrix with the row sums of this one."""
    n_classes = confusion.shape[-1]
    return confusion.sum(axis=-1, keepdims=True) * rng.dirichlet(np.ones(n_classes), size=n_classes)


@st.composite
def degenerate_counts(draw, n_classes):
    """Small counts, most of them 0, not all: absent classes, classes never predicted, a single cell."""
    cell = st.sampled_from([0, 0, 0, 0, 1, 2, 7])
    counts = draw(hnp.arrays(np.int64, (n_classes, n_classes), elements=cell))
    if counts.sum() == 0:
        counts[draw(st.integers(0, n_classes - 1)), draw(st.integers(0, n_classes - 1))] = 1
    return counts
