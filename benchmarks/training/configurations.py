"""What is searched: twenty configurations of logistic regression and of LightGBM, and two settings of long boosting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["CONFIGURATIONS", "MODELS", "ROUNDS", "SETTINGS", "WEIGHTED"]

Setting = dict[str, Any]
CLASS_WEIGHTS = (None, "balanced")
ROUNDS = tuple(range(10, 301, 10))  # of boosting, where validation and held-out rows are predicted


def _logistic_configurations() -> list[Setting]:
    """A full grid; with `kernel`, the columns are 100 features of an approximated Gaussian kernel."""
    strengths = (0.001, 0.01, 0.1, 1.0, 10.0)
    return [
        {"kernel": kernel, "class_weight": weight, "C": C}
        for kernel in (False, True)
        for weight in CLASS_WEIGHTS
        for C in strengths
    ]


def _boosting_configurations(n: int = 20) -> list[Setting]:
    """Random draws, the same for every set; every second one has balanced class weights."""
    rng = np.random.default_rng(0)
    return [
        {
            "num_leaves": int(rng.choice([3, 7, 15, 31])),
            "learning_rate": round(float(np.exp(rng.uniform(np.log(0.03), np.log(0.3)))), 4),
            "n_estimators": int(np.exp(rng.uniform(np.log(20), np.log(150)))),
            "min_child_samples": int(rng.choice([5, 10, 20, 40])),
            "colsample_bytree": round(float(rng.uniform(0.5, 1.0)), 2),
            "reg_lambda": round(float(np.exp(rng.uniform(np.log(0.01), np.log(10.0)))), 3),
            "class_weight": CLASS_WEIGHTS[number % 2],
        }
        for number in range(n)
    ]


CONFIGURATIONS = {"logistic": _logistic_configurations(), "lightgbm": _boosting_configurations()}
WEIGHTED = {
    model: [setting["class_weight"] is not None for setting in settings] for model, settings in CONFIGURATIONS.items()
}
SETTINGS: dict[str, Setting] = {
    "unweighted": {"num_leaves": 15, "learning_rate": 0.1},
    "balanced": {"num_leaves": 15, "learning_rate": 0.1, "class_weight": "balanced"},
}


def make_logistic(kernel: bool, **setting: Any) -> Any:
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    features = [Nystroem(n_components=100, random_state=0)] if kernel else []
    return make_pipeline(StandardScaler(), *features, LogisticRegression(max_iter=200, **setting))


def make_lightgbm(**setting: Any) -> Any:
    from lightgbm import LGBMClassifier

    return LGBMClassifier(random_state=0, num_threads=1, deterministic=True, verbose=-1, **setting)


MODELS: dict[str, Callable[..., Any]] = {"logistic": make_logistic, "lightgbm": make_lightgbm}
