"""A fitted model whose single feature is the probability, for TunedThresholdClassifierCV."""

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin


class Known(ClassifierMixin, BaseEstimator):
    classes_ = np.array([0, 1])

    def __sklearn_is_fitted__(self):
        return True

    def fit(self, X, y):
        return self

    def predict_proba(self, X):
        return np.column_stack([1 - X[:, 0], X[:, 0]])
