"""Reliability diagram before and after recalibration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from ...core.errors import InvalidParameter, entry_point
from ...core.labels import python_labels
from ..details import Bins, Details, Reliability
from ..view import View
from ._base import RowsDisplay
from ._style import GREY, RULE, bare, legend, new_axes, short

__all__ = ["ReliabilityDisplay"]


@dataclass(eq=False)
class ReliabilityDisplay(RowsDisplay):
    """Reliability diagram: observed frequency against predicted probability, before and after recalibration.

    Parameters
    ----------
    reliability : Reliability
        The data to draw: bins with equal numbers of rows.
    of : str
        The class that the probability is of.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    See Also
    --------
    sklearn.calibration.CalibrationDisplay : Reliability diagram of one set of probabilities.

    Examples
    --------
    >>> import numpy as np
    >>> import metricwise as mw
    >>> from metricwise.displays import ReliabilityDisplay
    >>> rng = np.random.default_rng(0)
    >>> p = rng.beta(1, 3, 2000)
    >>> y = (rng.random(2000) < p**1.3).astype(int)  # the probabilities are too large
    >>> display = ReliabilityDisplay.from_solution(mw.optimize(p, y, "f1"))
    >>> bool(display.reliability.after.error < display.reliability.before.error)
    True
    """

    reliability: Reliability
    of: str = "any class"

    @classmethod
    def from_details(cls, details: Details, solution: View | None = None) -> Self:
        """Return the display without drawing it."""
        if details.reliability is None:
            raise InvalidParameter(
                "rows", "have labels, with which probabilities are compared", "none", owner=cls.__name__
            )
        rule = details.rule
        binary = rule.n_outputs == 1 and rule.width == 2
        return cls(details.reliability, str(python_labels(rule.classes[0])[1]) if binary else "a class")

    @entry_point("{class}")
    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        **kwargs
            Passed to both lines.

        Returns
        -------
        self
        """
        self.figure_, self.ax_ = new_axes(ax, figsize=(5.0, 4.8))
        ax, reliability = self.ax_, self.reliability
        ax.plot([0, 1], [0, 1], color=GREY, linewidth=1.0, linestyle=(0, (4, 3)), label="kept exactly", zorder=1)
        looks: list[tuple[Bins | None, str, dict[str, Any]]] = [
            (
                reliability.before,
                reliability.given,
                {"color": "#333333", "marker": "s", "mfc": "white", "linestyle": (0, (5, 2))},
            ),
            (reliability.after, "recalibrated", {"color": RULE, "marker": "o", "linestyle": "-"}),
        ]
        ends = [0.0]
        for bins, name, look in looks:
            if bins is not None:
                label = f"{name}: off by {100 * bins.error:.1f} points"
                ax.plot(bins.predicted, bins.observed, label=label, ms=5.5, lw=1.6, zorder=3, **(look | kwargs))
                ends += [float(bins.predicted.max()), float(bins.observed.max())]
        end = float(min(1.0, 1.08 * max(ends)))
        ax.set_xlim(-0.02 * end, end)
        ax.set_ylim(-0.02 * end, end)
        ax.set_aspect("equal")
        ax.set_xlabel(f"predicted probability of {short(self.of)}")
        ax.set_ylabel("observed frequency")
        bare(ax)
        legend(ax, loc="upper left")
        return self
