"""Estimators that take codes 0 to K - 1 only, such as XGBClassifier, fitted to labels. Must not know rules."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.preprocessing import LabelEncoder
from sklearn.utils import get_tags

__all__ = ["EncodedClassifier"]


class EncodedClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """An estimator fitted to the codes of labels; all but labels is that of the estimator.

    Parameters
    ----------
    estimator : estimator
        It is fitted itself, not a clone of it.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        Sorted labels, whose codes the estimator is fitted to.
    """

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    @property
    def converted_as(self) -> Any:
        """The estimator that converters of models know."""
        return self.estimator

    def fit(self, X: Any, y: Any, **params: Any) -> EncodedClassifier:
        """Fit to labels (N,); those of `eval_set`, by which boosting stops early, are encoded as well."""
        encoder = LabelEncoder()
        codes = encoder.fit_transform(y)
        if params.get("eval_set") is not None:
            params = {**params, "eval_set": [(rows, encoder.transform(labels)) for rows, labels in params["eval_set"]]}
        self.estimator.fit(X, codes, **params)
        self.classes_ = encoder.classes_
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the label of what the estimator predicts, (N,)."""
        return self.classes_[np.asarray(self.estimator.predict(X), dtype=np.intp).reshape(-1)]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "estimator":  # as of an object that is being unpickled
            raise AttributeError(name)
        return getattr(self.estimator, name)

    def __sklearn_tags__(self) -> Any:
        return get_tags(self.estimator)
