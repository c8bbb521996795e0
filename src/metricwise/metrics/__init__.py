"""Metrics: what to maximise.

A metric is registered by name in the module of its family, and is public by `__all__` there: `linear`, `ratio`,
`transforms`, `recall_means` (concave), `smooth`, `label_metrics`; averages over classes are in `one_vs_rest`.
"""

from . import label_metrics, linear, ratio, recall_means, smooth, transforms
from .abstention import Abstained, Abstaining, Coverage
from .base import FractionalLinear, Increasing, Linear, Metric
from .label_metrics import *  # noqa: F403
from .linear import *  # noqa: F403
from .of_labels import score as _score  # noqa: F401  sets Metric.score
from .one_vs_rest import ClassAverage
from .ratio import *  # noqa: F403
from .recall_means import *  # noqa: F403
from .registry import get_metric, metric_names
from .resolution import Resolved, resolve, scorer_names
from .smooth import *  # noqa: F403
from .transforms import *  # noqa: F403
from .user_functions import FromFunction, from_function

__all__ = [
    "Metric",
    "Linear",
    "FractionalLinear",
    "Increasing",
    "FromFunction",
    "from_function",
    "ClassAverage",
    "Abstaining",
    "Abstained",
    "Coverage",
    "Resolved",
    "get_metric",
    "metric_names",
    "resolve",
    "scorer_names",
]
for _family in (linear, ratio, transforms, recall_means, smooth, label_metrics):
    __all__ += _family.__all__
