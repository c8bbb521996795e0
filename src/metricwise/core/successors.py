"""Settings that are fields of an object, and not parameters of a call: which object, and of which parameter.

Owns the one table of them. A sentence that advises such a setting names the object (:mod:`metricwise.core.errors`), and
a call that passes it as a keyword is refused by the same words. Must not know what the settings mean.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from typing import ParamSpec, TypeVar

__all__ = ["HOMES", "check_removed", "refuses_removed"]

P = ParamSpec("P")
T = TypeVar("T")

# The argument that has a setting, with braces in the place of its value.
HOMES = {
    "confusion": "strategy=mw.Strategy(confusion={})",
    "recalibrate": "strategy=mw.Strategy(recalibrate={})",
    "solver": "strategy=mw.Strategy(solver={})",
    "tol": "strategy=mw.Strategy(tol={})",
    "randomized": "strategy=mw.Strategy(randomized={})",
    "group_aware": "sensitive_features=mw.Sensitive(values, group_aware={})",
    "abstain_label": "abstain=mw.Abstention(cost, label={})",
}

# What to pass instead of keywords that no object has as a field of the same meaning.
_INSTEAD = {
    "weight_kind": "pass sample_weight=mw.Frequencies(weight) for weights that count rows",
    "time": "pass groups=mw.InTime(time)",
    "zero_division": "pass a metric object, such as mw.metrics.FBeta(zero_division=...)",
    "missing": "pass y with NaN or None for missing labels, or a masked array: np.ma.masked_equal(y, code)",
    "normalize": "divide the scores by their sums: proba / proba.sum(axis=-1, keepdims=True)",
}


def check_removed(owner: str, names: Iterable[str], taken: Iterable[str]) -> None:
    """Refuse keywords that a call does not take, by a sentence that says what to pass instead."""
    for name in names:
        if name in taken or name not in (*HOMES, *_INSTEAD):
            continue
        instead = _INSTEAD.get(name) or f"pass {HOMES[name].format('...')}"
        raise TypeError(f"{owner}: {name}= is not a parameter; {instead}.")


def refuses_removed(owner: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Decorate what users call: a setting that is a field of an object is refused as a keyword.

    The signature stays what it is, so that constructors of estimators may be decorated.
    """

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        taken = frozenset(inspect.signature(function).parameters)

        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> T:
            if not taken.issuperset(kwargs):
                check_removed(owner, kwargs, taken)
            return function(*args, **kwargs)

        return call

    return decorate
