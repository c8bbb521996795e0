"""What works with scikit-learn.

The estimators are loaded on first use, and scikit-learn with them: asking for a scorer does not.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from .scoring import make_scorer

_HOME = {
    "eval_metric": "eval_metrics",
    "MetricOptimalClassifierCV": "classifier",
    "FixedRuleClassifier": "fixed_rule",
    "CostSensitiveClassifier": "cost_sensitive",
    "MetricWeightedClassifier": "metric_weighted",
}

__all__ = ["make_scorer", *_HOME]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'metricwise.estimators' has no attribute {name!r}")
    value = getattr(import_module(f".{_HOME[name]}", __name__), name)
    globals()[name] = value
    return value
