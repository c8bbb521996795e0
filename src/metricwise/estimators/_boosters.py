"""Native models of LightGBM, XGBoost and CatBoost as classifiers.

A native model has no `predict_proba`; what it predicts depends on its objective. An adapter per library reads the
objective and returns probabilities and raw margins. None of the libraries is imported: a model of one that is not
loaded does not exist. Must not know rules.
"""

from __future__ import annotations

import json
import sys
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax
from sklearn.base import BaseEstimator, ClassifierMixin

from ..core.errors import InvalidParameter
from ..data.frames import is_frame

__all__ = ["NativeBooster", "as_classifier", "gives_margins", "raw_margins", "takes_codes_only"]


class NativeBooster(ClassifierMixin, BaseEstimator):
    """A native model as a fitted classifier; it cannot be fitted, and need not know its labels.

    Parameters
    ----------
    booster : lightgbm.Booster, xgboost.Booster or catboost.CatBoost
    """

    title: ClassVar[str]  # of the class that is adapted
    instead: ClassVar[str]  # the class of the library that can be fitted here
    objectives: ClassVar[frozenset[str]]  # of which predictions are probabilities, or become these
    one_vs_rest: ClassVar[frozenset[str]]  # of which probabilities do not sum to 1

    def __init__(self, booster: Any) -> None:
        self.booster = booster

    @property
    def objective(self) -> str:
        """Name of the objective that the model was trained for, "" for a custom one."""
        raise NotImplementedError

    def probabilities(self, X: Any, objective: str) -> NDArray[Any]:
        """Return the probabilities of rows as the library has them: (N, K), or (N,) of the second of two classes."""
        raise NotImplementedError

    def margins(self, X: Any) -> NDArray[Any]:
        """Return the raw margins of rows, (N, K) or (N,)."""
        raise NotImplementedError

    def predict_proba(self, X: Any) -> NDArray[Any]:
        """Return probabilities (N, K); (N, M) of the second class for M binary outputs.

        Those of one class against the rest are divided by their sum.
        """
        objective = self.check_objective()
        proba = self.probabilities(X, objective)
        if proba.ndim == 1:
            return np.stack([1 - proba, proba], axis=1)
        return proba / proba.sum(axis=1, keepdims=True) if objective in self.one_vs_rest else proba

    def decision_function(self, X: Any) -> NDArray[Any]:
        """Return raw margins (N, K); (N,) of the second of two classes, or (N, M) of M binary outputs."""
        self.check_objective()
        return self.margins(X)

    def check_objective(self) -> str:
        """Return the objective; refuse one that does not give class probabilities."""
        objective = self.objective
        if objective in self.objectives:
            return objective
        raise InvalidParameter(
            "estimator",
            f"be a classifier: a {self.title} that was trained for one of {', '.join(sorted(self.objectives))}",
            repr(objective) if objective else "a custom objective",
            "for any other model, pass its probabilities to rule.predict",
        )

    def fit(self, X: Any, y: Any, **params: Any) -> NativeBooster:
        """Refuse to be fitted."""
        raise InvalidParameter(
            "estimator",
            problem=f"a native {self.title} cannot be fitted here",
            remedy=f"call predict without fit, or use {self.instead}",
            owner="FixedRuleClassifier",
        )

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.allow_nan = True
        return tags


class _LightGBM(NativeBooster):
    """Of LightGBM."""

    title = "lightgbm.Booster"
    instead = "lightgbm.LGBMClassifier"
    objectives = frozenset({"binary", "cross_entropy", "multiclass", "multiclassova"})
    one_vs_rest = frozenset({"multiclassova"})

    @property
    def objective(self) -> str:
        header = self.booster.dump_model(num_iteration=1, start_iteration=self.booster.current_iteration())
        text = header.get("objective", "")  # "binary sigmoid:1"
        return text.split()[0] if text else ""

    def probabilities(self, X: Any, objective: str) -> NDArray[Any]:
        return np.asarray(self.booster.predict(X))

    def margins(self, X: Any) -> NDArray[Any]:
        return np.asarray(self.booster.predict(X, raw_score=True))


class _XGBoost(NativeBooster):
    """Of XGBoost, which saves a custom objective as that of a regression: it is refused as such."""

    title = "xgboost.Booster"
    instead = "xgboost.XGBClassifier"
    objectives = frozenset({"binary:logistic", "binary:logitraw", "multi:softmax", "multi:softprob", "reg:logistic"})
    one_vs_rest = frozenset()

    @property
    def objective(self) -> str:
        return str(json.loads(self.booster.save_config())["learner"]["objective"]["name"])

    def probabilities(self, X: Any, objective: str) -> NDArray[Any]:
        if objective == "binary:logitraw":  # predicts margins
            return np.asarray(expit(self.margins(X)))
        if objective == "multi:softmax":  # predicts classes
            return np.asarray(softmax(self.margins(X), axis=1))
        return np.asarray(self.booster.predict(self._matrix(X)))

    def margins(self, X: Any) -> NDArray[Any]:
        return np.asarray(self.booster.predict(self._matrix(X), output_margin=True))

    def _matrix(self, X: Any) -> Any:
        """Return a DMatrix; columns without names have those that the booster knows."""
        DMatrix = sys.modules["xgboost"].DMatrix
        if isinstance(X, DMatrix):
            return X
        names = None if is_frame(X) else self.booster.feature_names
        return DMatrix(X, feature_names=names, enable_categorical=True)


class _CatBoost(NativeBooster):
    """Of CatBoost, which keeps labels."""

    title = "catboost.CatBoost"
    instead = "catboost.CatBoostClassifier"
    objectives = frozenset(
        {"CrossEntropy", "Focal", "Logloss", "MultiClass", "MultiClassOneVsAll", "MultiCrossEntropy", "MultiLogloss"}
    )
    one_vs_rest = frozenset({"MultiClassOneVsAll"})

    @property
    def classes_(self) -> NDArray[Any]:
        """Labels, which CatBoost keeps."""
        return np.asarray(self.booster.classes_)

    @property
    def objective(self) -> str:
        loss = self.booster.get_all_params().get("loss_function", "")  # "Focal:focal_alpha=0.5;focal_gamma=1"
        return str(loss).partition(":")[0]

    def probabilities(self, X: Any, objective: str) -> NDArray[Any]:
        return np.asarray(self.booster.predict(X, prediction_type="Probability"))

    def margins(self, X: Any) -> NDArray[Any]:
        return np.asarray(self.booster.predict(X, prediction_type="RawFormulaVal"))

    def __sklearn_is_fitted__(self) -> bool:
        return bool(self.booster.is_fitted())


_ADAPTERS = {("lightgbm", "Booster"): _LightGBM, ("xgboost", "Booster"): _XGBoost, ("catboost", "CatBoost"): _CatBoost}


def _is_of(model: Any, library: str, name: str) -> bool:
    """Whether a model is of a class of a library, which is not imported."""
    return library in sys.modules and isinstance(model, getattr(sys.modules[library], name, ()))


def as_classifier(model: Any) -> Any:
    """Return a native model as a classifier, and any other model as it is."""
    if hasattr(model, "predict_proba"):
        return model
    for (library, name), adapter in _ADAPTERS.items():
        if _is_of(model, library, name):
            return adapter(model)
    return model


# ---------------------------------------------------------------------------------------------------- XGBClassifier


def takes_codes_only(model: Any) -> bool:
    """Whether the labels of a model can only have been codes 0 to K - 1."""
    return isinstance(model, (_LightGBM, _XGBoost)) or _is_of(model, "xgboost", "XGBClassifier")


def gives_margins(model: Any) -> bool:
    """Whether a classifier without `decision_function` predicts raw margins, as XGBClassifier does."""
    return _is_of(getattr(model, "converted_as", model), "xgboost", "XGBClassifier")


def raw_margins(model: Any, X: Any) -> NDArray[Any]:
    """Return the raw margins of rows, by a classifier that `gives_margins`."""
    return np.asarray(getattr(model, "converted_as", model).predict(X, output_margin=True))
