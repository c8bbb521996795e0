"""Pictures of solutions, rules and frontiers, as in scikit-learn.

Every display is a class with ``from_solution``, ``from_estimator`` or ``from_predictions``, where these make sense,
each of which draws, and ``plot(ax=None)``, which draws again; `ax_` and `figure_` are what was drawn on. matplotlib is
imported when something is drawn (``pip install 'metricwise[plot]'``). What is drawn comes from
:mod:`metricwise.inspection.details` and is in the fields of the display. Must not count rows.
"""

from typing import Any

from ..details import details_of
from ..view import View
from ._base import RowsDisplay
from .confusion_change import ConfusionChangeDisplay
from .convergence import ConvergenceDisplay
from .decision_regions import DecisionRegionsDisplay
from .feasible_set import FeasibleSetDisplay
from .frontier import FrontierDisplay
from .gains import GainsDisplay
from .metric_curve import MetricCurveDisplay
from .moves import MovesDisplay
from .reliability import ReliabilityDisplay

__all__ = [
    "MetricCurveDisplay",
    "ConfusionChangeDisplay",
    "MovesDisplay",
    "DecisionRegionsDisplay",
    "FeasibleSetDisplay",
    "FrontierDisplay",
    "ConvergenceDisplay",
    "ReliabilityDisplay",
    "GainsDisplay",
    "RowsDisplay",
    "display_of",
]


def display_of(solution: View) -> Any:
    """Return the most informative display of a solution, without drawing it.

    This is the gain of every output if several outputs have their own confusions, otherwise the metrics along the path
    from argmax to the rule or, if there are too many classes for that, the gain of each class.

    Parameters
    ----------
    solution : Solution
        Returned by :func:`metricwise.optimize`.

    Returns
    -------
    display
        To be drawn with its `plot` method.

    See Also
    --------
    metricwise.Solution.plot : Draw this display.

    Examples
    --------
    >>> import metricwise as mw
    >>> solution = mw.optimize([0.1, 0.3, 0.4, 0.8], [0, 0, 1, 1], "f1")
    >>> type(mw.displays.display_of(solution)).__name__
    'MetricCurveDisplay'
    """
    details = details_of(solution)
    alone = details.rule.n_outputs == 1
    kinds: list[Any] = [MetricCurveDisplay] if details.curve is not None else []
    if details.labelled:
        kinds.insert(len(kinds) if alone else 0, GainsDisplay)
    if not kinds:
        kinds = [ConfusionChangeDisplay]
    return kinds[0].from_details(details, solution)
