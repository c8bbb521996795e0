"""metricwise: decisions that maximise the metric you are judged by.

The public names are loaded on first use, so that ``import metricwise`` costs little.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ._version import __version__

_HOME = {
    "optimize": "optimization",
    "Table": "table_files",
    "predict_table": "table_prediction",
    "evaluate": "evaluation",
    "trade_off": "frontier",
    "InTime": "inputs",
    "at_least": "metrics.constraint_text",
    "at_most": "metrics.constraint_text",
    "between": "metrics.constraint_text",
    "near_prior": "metrics.constraint_text",
    "gap": "metrics.constraint_text",
    "in_every_group": "metrics.constraint_text",
    "in_group": "metrics.constraint_text",
    "worst_group": "metrics.worst",
    "metrics": None,
    "displays": None,
    "report": None,
    "solvers": None,
    "theory": None,
    "geometry": None,
    "export": None,
    "Solution": "solvers",
    "WeightedRule": "rules",
    "MixtureRule": "rules",
    "CostRule": "rules",
    "GroupedRule": "rules",
    "Sensitive": "inputs",
    "load_rule": "rules",
    "load_solution": "solvers.solution_file",
    "make_scorer": "estimators",
    "MetricOptimalClassifierCV": "estimators",
    "FixedRuleClassifier": "estimators",
    "CostSensitiveClassifier": "estimators",
    "MetricWeightedClassifier": "estimators",
    "show_versions": "versions",
}

__all__ = ["__version__", *_HOME]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'metricwise' has no attribute {name!r}")
    home = _HOME[name]
    value = import_module(f".{name}", __name__) if home is None else getattr(import_module(f".{home}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
