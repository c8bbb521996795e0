"""Other libraries, called as their documentation says, on the rows that metricwise gets.

QuaPy: class shares by EMQ with bias-corrected temperature scaling (`EMQ.EMQ_BCTS`) and by PACC. NannyML: metrics
without labels by CBPE. MAPIE: `RiskMonitoring`. What is not installed has no entry.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm
from sklearn.base import BaseEstimator, ClassifierMixin

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
Estimator = Callable[[FloatArray], FloatArray]

HAS = {name: find_spec(name) is not None for name in ("quapy", "nannyml", "mapie")}
STANDARD_ERRORS = float(norm.ppf(0.975))
MIN_SHARE = 1e-4  # shares of QuaPy that are smaller are raised to this, so that no class is abolished


# ---------------------------------------------------------------------------------------------------------------------
# QuaPy


class Replayed(ClassifierMixin, BaseEstimator):
    """A fitted model whose features are its probabilities."""

    def __init__(self, n_classes: int = 2) -> None:
        self.n_classes = n_classes
        self.classes_ = np.arange(n_classes)

    def fit(self, X: Any, y: Any) -> Any:
        return self

    def predict_proba(self, X: Any) -> FloatArray:
        return np.asarray(X)


def quantifiers(proba: FloatArray, y: IntArray) -> dict[str, Estimator]:
    """Return functions of the probabilities of new rows that estimate their class shares, fitted to labelled rows."""
    if not HAS["quapy"]:
        return {}
    from quapy.method.aggregative import EMQ, PACC

    model = Replayed(proba.shape[1])
    made = {
        "QuaPy EMQ": EMQ.EMQ_BCTS(model, fit_classifier=False, val_split=(proba, y), on_calib_error="backup"),
        "QuaPy PACC": PACC(model, fit_classifier=False, val_split=(proba, y)),
    }
    return {name: Quantifier(method.fit(proba, y)) for name, method in made.items()}


@dataclass(frozen=True, eq=False)
class Quantifier:
    """Class shares by a method of QuaPy; it says on its own if EM has not converged after 1,000 steps."""

    method: Any

    def __call__(self, proba: FloatArray) -> FloatArray:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            shares = np.maximum(self.method.predict(proba), MIN_SHARE)
        return np.asarray(shares / shares.sum())


def em_shares(proba: FloatArray, old: FloatArray, tolerance: float) -> FloatArray:
    """Return the shares of QuaPy's EM on probabilities as they are; at most 1,000 steps by default, here 100,000."""
    from quapy.method.aggregative import EMQ

    steps, EMQ.MAX_ITER = EMQ.MAX_ITER, 100_000
    try:
        return np.asarray(EMQ.EM(old, proba, tolerance)[0])
    finally:
        EMQ.MAX_ITER = steps


# ---------------------------------------------------------------------------------------------------------------------
# NannyML


@dataclass(frozen=True)
class Interval:
    """A value with its 95 % interval."""

    estimate: float
    low: float
    high: float


class ConfidenceBased:
    """CBPE of decisions, fitted to labelled rows; F1 of several classes is macro-F1, as in NannyML."""

    def __init__(self, proba: FloatArray, y: IntArray, decided: IntArray) -> None:
        os.environ["NML_DISABLE_USAGE_LOGGING"] = "1"  # else NannyML reports its use over the network
        from nannyml import CBPE

        self.n_classes = proba.shape[1]
        names = {k: f"p{k}" for k in range(self.n_classes)}
        binary = self.n_classes == 2
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.method = CBPE(
                y_pred_proba="p1" if binary else names,
                y_pred="decided",
                y_true="y",
                metrics=["f1", "accuracy"],
                chunk_number=1,
                problem_type="classification_binary" if binary else "classification_multiclass",
            ).fit(self.frame(proba, decided).assign(y=y))

    def frame(self, proba: FloatArray, decided: IntArray) -> Any:
        import pandas as pd

        return pd.DataFrame({f"p{k}": proba[:, k] for k in range(self.n_classes)} | {"decided": decided})

    def estimate(self, proba: FloatArray, decided: IntArray) -> dict[str, Interval]:
        """Return F1 and accuracy of new rows, taken as one chunk."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = self.method.estimate(self.frame(proba, decided)).filter(period="analysis").to_df()
        return {name: self.interval(result[name]) for name in ("f1", "accuracy")}

    @staticmethod
    def interval(columns: Any) -> Interval:
        value, error = float(columns["value"].iloc[0]), float(columns["sampling_error"].iloc[0])
        return Interval(value, value - STANDARD_ERRORS * error, value + STANDARD_ERRORS * error)
