"""Display of gains by output or class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from ...core.errors import InvalidParameter, entry_point
from ..details import Details, Gains
from ..text import number
from ..view import View
from ._base import RowsDisplay
from ._style import GREY, INK, RULE, WORSE, bare, font_for, legend, new_axes, short

__all__ = ["GainsDisplay"]

_MAX_NAMED = 40  # parts; of more, only those at the ends are named
_N_NAMED_ENDS = 6


@dataclass(eq=False)
class GainsDisplay(RowsDisplay):
    """Gain of the rule over argmax in each output, or for each class of a single output, with 95 % intervals.

    Parameters
    ----------
    gains : Gains
        The gains to draw.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    See Also
    --------
    ConfusionChangeDisplay : The confusion before and after.

    Examples
    --------
    >>> import numpy as np
    >>> import metricwise as mw
    >>> from metricwise.displays import GainsDisplay
    >>> rng = np.random.default_rng(0)
    >>> P = rng.beta(0.5, 3, (1000, 5))
    >>> Y = (rng.random(P.shape) < P).astype(int)
    >>> display = GainsDisplay.from_solution(mw.optimize(P, Y, "f1", average="macro"))
    >>> len(display.gains)
    5
    """

    gains: Gains

    @classmethod
    def from_details(cls, details: Details, solution: View | None = None) -> Self:
        """Return the display without drawing it."""
        gains = details.gains
        if gains is None:
            raise InvalidParameter("rows", "have labels, which the evaluation needs", "none", owner=cls.__name__)
        return cls(gains)

    @entry_point("{class}")
    def plot(self, ax: Any = None, *, sort: bool = True) -> Self:
        """Draw a line for each part; with more than 40, only the ends are named.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        sort : bool, default=True
            Whether to sort by the difference, the largest first.

        Returns
        -------
        self
        """
        n = len(self.gains)
        order = np.argsort(-self.gains.difference[:, 0], kind="stable") if sort else np.arange(n)
        height = 1.4 + 0.27 * n if n <= _MAX_NAMED else 6.5
        self.figure_, self.ax_ = new_axes(ax, figsize=(6.6, height))
        ax, place = self.ax_, np.arange(n)
        middle, low, high = self.gains.difference[order].T
        ax.axvline(0, color=INK, linewidth=1.0, zorder=1)
        kinds = (
            (low > 0, "better", RULE, "o", RULE),
            ((low <= 0) & (high >= 0), "no clear difference", GREY, "o", "white"),
            (high < 0, "worse", WORSE, "X", WORSE),
        )
        many = n > _MAX_NAMED
        for which, name, color, marker, fill in kinds:
            if which.any():
                style = {
                    "color": color,
                    "fmt": marker,
                    "mfc": fill,
                    "ms": 2.5 if many else 6,
                    "elinewidth": 0.7 if many else 1.5,
                }
                ends = [middle[which] - low[which], high[which] - middle[which]]
                label = f"{name}: {int(which.sum()):,}"
                ax.errorbar(middle[which], place[which], xerr=ends, label=label, zorder=3, **style)
        names = [short(self.gains.names[k]) for k in order]
        self._name(names, middle)
        ax.invert_yaxis()
        ax.set_ylim(n - 0.3, -0.7)
        ax.set_xlabel(f"{short(self.gains.metric, 40)} of the rule minus that of argmax, with 95 % intervals")
        bare(ax)
        legend(ax, loc="lower right" if sort and n > 3 else "best", title="by the interval", title_fontsize="small")
        return self

    def _name(self, names: list[str], values: Any) -> None:
        ax, n, many = self.ax_, len(names), len(names) > _MAX_NAMED
        if self.gains.n_parts > n:
            ax.set_title(f"the {n:,} of {self.gains.n_parts:,} that change most", fontsize="small", color=GREY)
        if not many:
            ax.set_yticks(range(n), names, **font_for(names))
            ax.tick_params(axis="y", length=0)
            return
        ax.set_yticks([])
        ax.set_ylabel(f"{n:,} {'classes' if self.gains.by == 'class' else self.gains.by + 's'}")
        # Parts at the ends are named to the right of the axes, with readable distances.
        apart = n / 26
        for k in range(_N_NAMED_ENDS):
            for row, place in ((k, (k + 0.4) * apart), (n - 1 - k, n - 1 - (k + 0.4) * apart)):
                text = f"{names[row]}  {number(float(values[row]), signed=True)}"
                look = {"fontsize": "x-small", "va": "center", "annotation_clip": False, **font_for([text])}
                ax.annotate(text, (1.0, place), xycoords=("axes fraction", "data"), **look)
