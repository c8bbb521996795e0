"""Private names of scikit-learn that are used here, and the base class of meta-classifiers."""

from __future__ import annotations

from typing import Any

from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.base import _fit_context as fit_context
from sklearn.model_selection._split import GroupsConsumerMixin
from sklearn.utils import _safe_indexing as take_rows
from sklearn.utils import get_tags
from sklearn.utils._param_validation import HasMethods, Interval, RealNotInt, StrOptions
from sklearn.utils.metadata_routing import _routing_enabled as routing_enabled
from sklearn.utils.validation import _check_method_params as params_of_rows
from sklearn.utils.validation import _num_samples as count_rows

from ._boosters import as_classifier

try:
    from sklearn.utils._repr_html.estimator import _VisualBlock as VisualBlock
except ImportError:  # scikit-learn before 1.7
    from sklearn.utils._estimator_html_repr import _VisualBlock as VisualBlock

__all__ = [
    "GroupsConsumerMixin",
    "HasMethods",
    "HtmlRepr",
    "Interval",
    "MetaClassifier",
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


class HtmlRepr:
    """Shows in notebooks what `_html_repr` returns; scikit-learn before 1.7 shows its own diagram alone."""

    def _html_repr(self) -> str:
        raise NotImplementedError

    def _repr_html_inner(self) -> str:
        return self._html_repr()

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        shown = {"text/plain": repr(self)}
        if get_config()["display"] == "diagram":
            shown["text/html"] = self._html_repr()
        return shown


class MetaClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """Classifier of one or several outputs around ``estimator``, whose tags it has."""

    estimator: Any

    def _copy_features(self) -> None:
        """Copy what the fitted estimator knows of the columns of X."""
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
            elif hasattr(self, name):
                delattr(self, name)  # of an earlier fit

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(as_classifier(self.estimator)).input_tags
        tags.input_tags.sparse, tags.input_tags.allow_nan = inner.sparse, inner.allow_nan
        tags.target_tags.multi_output = True
        tags.classifier_tags.multi_label = True
        return tags
