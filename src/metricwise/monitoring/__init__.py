"""A rule in use: class shares and values of rows without labels, adapted rules, and constraints over time.

`Rule.adapted` works once this package has been imported. Must not read user input but through the layers below.
"""

from __future__ import annotations

from typing import Any

from ..rules.base import Rule


def _adapt(rule: Rule, proba: Any, metric: Any, level: float, pos_label: Any) -> Rule:
    """Adapt a rule; the module is loaded when the first rule is adapted."""
    from .adaptation import adapt

    return adapt(rule, proba, metric, level, pos_label)


Rule.adapter = staticmethod(_adapt)
