"""Pictures of solutions, rules and frontiers, as in scikit-learn.

Every display is a class with ``from_solution``, ``from_estimator`` or ``from_predictions``, where these make sense,
each of which draws, and ``plot(ax=None)``, which draws again; `ax_` and `figure_` are what was drawn on. matplotlib is
imported when something is drawn (``pip install 'metricwise[plot]'``). What is drawn comes from
:mod:`metricwise.inspection.details` and is in the fields of the display. Must not count rows.
"""

from ._base import RowsDisplay
from .choice import display_of
from .confusion_change import ConfusionChangeDisplay
from .convergence import ConvergenceDisplay
from .decision_regions import DecisionRegionsDisplay
from .feasible_set import FeasibleSetDisplay
from .frontier import FrontierDisplay
from .gains import GainsDisplay
from .label_gains import LabelGainsDisplay
from .metric_curve import MetricCurveDisplay
from .moves import MovesDisplay
from .reliability import ReliabilityDisplay
from .shares import SharesDisplay
from .watch import WatchDisplay

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
    "LabelGainsDisplay",
    "SharesDisplay",
    "WatchDisplay",
    "RowsDisplay",
    "display_of",
]
