"""One estimator per output, each fitted on the rows where its label is observed.

Owns what :class:`sklearn.multioutput.MultiOutputClassifier` does, and beyond it missing labels, labels of different
types, and outputs of a single class. Must not know metrics or rules.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.dummy import DummyClassifier
from sklearn.utils import get_tags
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from ..inputs import decode
from ._compat import count_rows, params_of_rows, take_rows
from ._folds import calibration_groups
from ._targets import Target, read_target

__all__ = ["PerOutputClassifier"]


class PerOutputClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """Fit one clone of an estimator per output, on the rows where the label of that output is observed.

    Parameters
    ----------
    estimator : estimator
    n_jobs : int, optional
        Outputs fitted at a time.

    Attributes
    ----------
    estimators_ : list of M estimators
        A constant for an output whose labels are of one class; None for one without any.
    classes_ : list of M ndarrays
        Labels of the columns of `predict_proba`.
    """

    def __init__(self, estimator: Any, *, n_jobs: int | None = None) -> None:
        self.estimator = estimator
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, **params: Any) -> PerOutputClassifier:
        """Fit to labels of shape (N, M), which may be missing."""
        return self.fit_target(X, read_target(y, type(self).__name__), **params)

    def fit_target(self, X: Any, target: Target, groups: Any = None, **params: Any) -> PerOutputClassifier:
        """Fit to a target that has been read already; a calibrator keeps groups of rows together."""
        self.estimators_ = Parallel(n_jobs=self.n_jobs)(
            delayed(_fit_one)(self.estimator, X, *target.column(m), groups, params) for m in range(target.n_outputs)
        )
        self.classes_ = [np.array([]) if one is None else one.classes_ for one in self.estimators_]
        for name in ("n_features_in_", "feature_names_in_"):
            values = [getattr(one, name) for one in self.estimators_ if hasattr(one, name)]
            if values:
                setattr(self, name, values[0])
        return self

    def predict_proba(self, X: Any) -> list[NDArray[np.float64]]:
        """Return a list of M arrays of shape (N, classes of the output)."""
        check_is_fitted(self)
        n = count_rows(X)
        return [np.zeros((n, 0)) if one is None else one.predict_proba(X) for one in self.estimators_]

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable label of each output, of shape (N, M); None where an output had no label."""
        proba = self.predict_proba(X)
        classes = [labels if len(labels) else np.array([None]) for labels in self.classes_]
        best = [block.argmax(axis=1) if block.shape[1] else np.zeros(len(block), int) for block in proba]
        return decode(np.stack(best, axis=1), classes)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimator).input_tags
        tags.target_tags.single_output = False
        tags.target_tags.multi_output = True
        tags.classifier_tags.multi_label = True
        return tags


def _fit_one(
    estimator: Any, X: Any, rows: NDArray[Any], labels: NDArray[Any], groups: Any, params: dict[str, Any]
) -> Any:
    if len(rows) == 0:
        return None
    params = params_of_rows(X, params, indices=rows)
    X = X if len(rows) == count_rows(X) else take_rows(X, rows)
    if (labels == labels[0]).all():
        return DummyClassifier(strategy="prior").fit(X, labels)
    model = clone(estimator)
    with calibration_groups(model, None if groups is None else take_rows(groups, rows)):
        return model.fit(X, labels, **params)
