"""The private parts of scikit-learn that are used here: the one file to look at when scikit-learn moves them."""

from __future__ import annotations

from typing import Any

from sklearn.base import _fit_context as fit_context
from sklearn.model_selection._split import GroupsConsumerMixin
from sklearn.utils import _safe_indexing as take_rows
from sklearn.utils._param_validation import HasMethods, Interval, RealNotInt, StrOptions
from sklearn.utils._repr_html.estimator import _VisualBlock as VisualBlock
from sklearn.utils.metadata_routing import _routing_enabled as routing_enabled
from sklearn.utils.validation import _check_method_params as params_of_rows
from sklearn.utils.validation import _num_samples as count_rows

__all__ = [
    "GroupsConsumerMixin",
    "HasMethods",
    "Interval",
    "RealNotInt",
    "StrOptions",
    "VisualBlock",
    "count_rows",
    "fit_context",
    "own_requests",
    "params_of_rows",
    "routing_enabled",
    "take_rows",
]


def own_requests(estimator: Any) -> Any:
    """Return a copy of what an estimator itself asks for, by its signatures and as its user has set it."""
    return estimator._get_metadata_request()
