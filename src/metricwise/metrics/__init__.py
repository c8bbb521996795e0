"""Metrics: what to maximise.

Families by file: :mod:`linear <metricwise.metrics.linear>`, :mod:`ratio <metricwise.metrics.ratio>`,
:mod:`transforms <metricwise.metrics.transforms>`, :mod:`recall_means <metricwise.metrics.recall_means>` (concave),
:mod:`smooth <metricwise.metrics.smooth>`; averages over classes in
:mod:`class_average <metricwise.metrics.class_average>`, over outputs in :mod:`averages <metricwise.metrics.averages>`;
rules that may abstain in :mod:`abstention <metricwise.metrics.abstention>`; names in
:mod:`registry <metricwise.metrics.registry>` and :mod:`resolution <metricwise.metrics.resolution>`.
"""

from .abstention import Abstained, Abstaining
from .base import FractionalLinear, Increasing, Linear, Metric
from .class_average import ClassAverage
from .linear import (
    Accuracy,
    BalancedAccuracy,
    Cost,
    FalsePositiveRate,
    Ordinal,
    PredictedShare,
    Recall,
    Specificity,
    SquaredOrdinal,
    WeightedAccuracy,
    WeightedExponential,
)
from .of_labels import score as _score  # noqa: F401  sets Metric.score
from .ratio import FBeta, Jaccard, Kappa, MicroF1, Precision
from .recall_means import GMean, HMean, Minimum, MinimumOfLinear, MinRecall, QMean
from .registry import get_metric, metric_names
from .resolution import Resolved, resolve, scorer_names
from .smooth import MCC, FowlkesMallows
from .transforms import Decathlon, Polynomial
from .user_functions import FromFunction, from_function

__all__ = [
    # the forms, for metrics of one's own
    "Metric",
    "Linear",
    "FractionalLinear",
    "Increasing",
    "MinimumOfLinear",
    "FromFunction",
    "from_function",
    # linear
    "Accuracy",
    "WeightedAccuracy",
    "WeightedExponential",
    "Ordinal",
    "SquaredOrdinal",
    "Cost",
    "BalancedAccuracy",
    "Recall",
    "Specificity",
    "FalsePositiveRate",
    "PredictedShare",
    # fractional-linear
    "FBeta",
    "MicroF1",
    "Jaccard",
    "Precision",
    "Kappa",
    # increasing transforms
    "Polynomial",
    "Decathlon",
    # concave
    "GMean",
    "HMean",
    "QMean",
    "MinRecall",
    "Minimum",
    # smooth
    "MCC",
    "FowlkesMallows",
    "ClassAverage",
    # rules that may abstain
    "Abstaining",
    "Abstained",
    # names
    "Resolved",
    "get_metric",
    "metric_names",
    "resolve",
    "scorer_names",
]
