"""The choice of the most informative display of a solution."""

from __future__ import annotations

from typing import Any

from ..details import details_of
from ..view import View
from .confusion_change import ConfusionChangeDisplay
from .gains import GainsDisplay
from .label_gains import LabelGainsDisplay
from .metric_curve import MetricCurveDisplay


def display_of(solution: View) -> Any:
    """Return the most informative display of a solution, without drawing it.

    This is the gain of every output if several outputs have their own confusions, otherwise the metrics along the path
    from argmax to the rule or, if there are too many classes for that, the gain of each class. For very many labels, it
    is their values by frequency.

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
    by_label = getattr(solution, "by_label", None)  # anything may be passed, and is refused below
    if by_label is not None:
        return LabelGainsDisplay.of_summary(by_label, solution.rule)
    details = details_of(solution)
    alone = details.rule.n_outputs == 1
    kinds: list[Any] = [MetricCurveDisplay] if details.curve is not None else []
    if details.labelled:
        kinds.insert(len(kinds) if alone else 0, GainsDisplay)
    if not kinds:
        kinds = [ConfusionChangeDisplay]
    return kinds[0].from_details(details, solution)
