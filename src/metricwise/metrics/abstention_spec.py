"""Whether a rule may abstain, as users say it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.errors import InvalidParameter, entry_point, shown
from ..core.params import Parameters
from .abstention import AbstentionCost

__all__ = ["Abstention", "read_abstain"]

_COST = "a finite number of at least 0"


@dataclass(frozen=True)
class Abstention(Parameters):
    """That a rule may abstain from deciding about a row, at which cost, and by which label.

    Can be passed as `abstain`, where a number or True stand for an abstention of that cost with the default label.

    Parameters
    ----------
    cost : float or True, optional
        Cost of an abstention, for linear metrics, as in :func:`metricwise.optimize`. None or True: the metric is
        computed on the accepted rows, and `subject_to` must bound the share of the others.
    label : text, number or boolean, optional
        Label that is predicted for an abstention, which must not be one of the classes; by default "abstain" for text
        classes and -1 for numeric ones.

    See Also
    --------
    metricwise.optimize : Find a rule that may abstain.
    metricwise.make_scorer : Score predictions, some of which are abstentions.

    Examples
    --------
    >>> import metricwise as mw
    >>> proba, y = [0.1, 0.4, 0.45, 0.9], ["no", "no", "yes", "yes"]
    >>> undecided = mw.Abstention(0.2, label="ask a person")
    >>> fixed = mw.Strategy(confusion="expected", recalibrate=False)
    >>> solution = mw.optimize(proba, y, "accuracy", pos_label="yes", abstain=undecided, strategy=fixed)
    >>> solution.rule.predict(proba).tolist()
    ['no', 'ask a person', 'ask a person', 'yes']
    """

    cost: float | bool | None = None
    label: Any = None

    @entry_point("{class}")
    def __post_init__(self) -> None:
        if not (self.cost is None or self.cost is True or _is_cost(self.cost)):
            raise InvalidParameter("cost", f"be None, True, or {_COST}", shown(self.cost))

    @property
    def terms(self) -> AbstentionCost:
        """What an abstention counts for in metrics."""
        return AbstentionCost(None if self.cost is None or self.cost is True else float(self.cost))


def read_abstain(abstain: Any) -> Abstention | None:
    """Read True, a cost, an Abstention, or None or False for rules that never abstain.

    Examples
    --------
    >>> from metricwise.metrics.abstention_spec import read_abstain
    >>> read_abstain(True), read_abstain(0.2), read_abstain(None)
    (Abstention(cost=None, label=None), Abstention(cost=0.2, label=None), None)
    """
    if abstain is None or isinstance(abstain, (bool, np.bool_)):
        return Abstention() if abstain else None
    if isinstance(abstain, Abstention):
        return abstain
    if not _is_cost(abstain):
        must = f"be True, None, or the cost of an abstention, {_COST}"
        raise InvalidParameter("abstain", must, shown(abstain))
    return Abstention(float(abstain))


def _is_cost(value: Any) -> bool:
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool) and bool(0 <= value < np.inf)
