"""metricwise: decisions that maximise your metric.

The public names are loaded on first use, so that ``import metricwise`` costs little.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

from ._version import __version__

_HOME = {
    "optimize": "api.optimization",
    "Table": "data.tables.reading",
    "Query": "data.tables.queries",
    "predict_table": "api.table_prediction",
    "evaluate": "evaluation",
    "estimate_shares": "monitoring.shares",
    "ShareEstimate": "monitoring.shares",
    "expect": "monitoring.expectation",
    "trade_off": "api.frontier",
    "value_at_best": "api.best_value",
    "watch": "monitoring.watching",
    "load_watch": "monitoring.watching",
    "Watch": "monitoring.watching",
    "Strategy": "fitting.strategy",
    "Abstention": "metrics.abstention",
    "Frequencies": "data.row_spec",
    "InTime": "data.row_spec",
    "at_least": "goals.constraint_text",
    "at_most": "goals.constraint_text",
    "between": "goals.constraint_text",
    "near_prior": "goals.constraint_text",
    "gap": "goals.constraint_text",
    "in_every_group": "goals.constraint_text",
    "in_group": "goals.constraint_text",
    "worst_group": "goals.worst",
    "metrics": None,
    "displays": None,
    "report": None,
    "solvers": None,
    "theory": None,
    "geometry": None,
    "inference": None,
    "export": None,
    "Solution": "api.results",
    "WeightedRule": "rules",
    "MixtureRule": "rules",
    "CostRule": "rules",
    "CutPointRule": "rules",
    "GroupedRule": "rules",
    "SegmentedRule": "rules",
    "LabelRule": "rules",
    "LabelSetRule": "rules",
    "Rule": "rules",
    "RuleMetadata": "rules",
    "Sensitive": "data.row_spec",
    "load_rule": "rules",
    "InvalidParameter": "core.errors",
    "load_solution": "api.results",
    "rows_to_guarantee": "inference.exact_tests",
    "make_scorer": "estimators",
    "eval_metric": "estimators",
    "MetricOptimalClassifierCV": "estimators",
    "FixedRuleClassifier": "estimators",
    "CostSensitiveClassifier": "estimators",
    "MetricWeightedClassifier": "estimators",
    "show_versions": "api.versions",
}

__all__ = ["__version__", *_HOME]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'metricwise' has no attribute {name!r}")
    home = _HOME[name]
    if home == "rules":
        from . import inspection, monitoring  # noqa: F401  notebooks show rules as cards; rules adapt to new rows
    value = import_module(f".{name}", __name__) if home is None else getattr(import_module(f".{home}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


# Modules of earlier versions, which pickles may ask for.
_MOVED = frozenset(
    f"metricwise.{name}"
    for name in (
        *("confusion", "details", "facts", "frontier", "inputs", "losses", "problem", "promises"),
        *("reading", "recorded", "row_costs", "rows", "selection", "sources", "table_files", "uncertainty"),
        *("metrics.constraint", "metrics.constraint_text", "metrics.for_outputs", "metrics.parity"),
        *(
            "metrics.worst",
            "rules.cost_rule",
            "rules.files",
            "rules.link",
            "rules.calibration_fit",
            "solvers.solution_file",
        ),
    )
)


class _MovedModules:
    """The last finder of modules: raises the error of a pickle that asks for a module that has moved."""

    @classmethod
    def find_spec(cls, name: str, path: Any = None, target: Any = None) -> None:
        if name in _MOVED:
            from .core.moved import moved_error

            raise moved_error(name)


sys.meta_path.append(_MovedModules)
