"""Display of the frontier of two metrics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any, Self

import numpy as np

from ...core.errors import InvalidParameter, entry_point
from ..text import number
from ._style import ARGMAX, GREY, LINES, bare, legend, mark_argmax, mark_rule, new_axes, plain_text, short

__all__ = ["FrontierDisplay"]


@dataclass(eq=False)
class FrontierDisplay:
    """The best value of one metric at every bound on another, with argmax, for all rows or for each group of rows.

    Parameters
    ----------
    frontiers : dict of str to TradeOff
        The frontiers to draw, by name; a single one needs no name.
    bound : float, optional
        A bound on the second metric, which is drawn with the best point that satisfies it.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    See Also
    --------
    metricwise.trade_off : Compute a frontier.
    sklearn.metrics.PrecisionRecallDisplay : Precision and recall at all thresholds.

    Examples
    --------
    >>> import numpy as np
    >>> import metricwise as mw
    >>> from metricwise.displays import FrontierDisplay
    >>> rng = np.random.default_rng(0)
    >>> p = rng.beta(1, 3, 2000)
    >>> y = (rng.random(2000) < p).astype(int)
    >>> frontier = mw.trade_off(p, y, "recall", "precision", n_points=10)
    >>> display = FrontierDisplay.from_trade_off(frontier, bound=0.6)
    >>> display.ax_.get_xlabel(), display.ax_.get_ylabel()
    ('precision', 'recall')
    """

    frontiers: Mapping[str, Any]
    bound: float | None = None
    names: tuple[str, str] = field(init=False)

    def __post_init__(self) -> None:
        if not self.frontiers:
            raise InvalidParameter("frontiers", "hold at least one frontier", "none", owner=type(self).__name__)
        first = next(iter(self.frontiers.values()))
        if any(
            (frontier.metric, frontier.against) != (first.metric, first.against) for frontier in self.frontiers.values()
        ):
            raise InvalidParameter(
                "frontiers", "all be of the same two metrics", "different ones", owner=type(self).__name__
            )
        self.names = (first.against, first.metric)

    @classmethod
    def from_trade_off(cls, frontier: Any, *, bound: float | None = None, ax: Any = None, **kwargs: Any) -> Self:
        """Draw the result of :func:`metricwise.trade_off`.

        Parameters
        ----------
        frontier : TradeOff, or dict of str to TradeOff
            The frontier; a dict, for example with one frontier per group of rows, is drawn as several lines.
        bound : float, optional
            Bound on the second metric, which is drawn with the best point that satisfies it.
        ax : matplotlib Axes, optional
        **kwargs
            Passed to the lines.
        """
        return cls(frontier if isinstance(frontier, Mapping) else {"": frontier}, bound).plot(ax=ax, **kwargs)

    @entry_point("{class}")
    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        **kwargs
            Passed to the lines.

        Returns
        -------
        self
        """
        self.figure_, self.ax_ = new_axes(ax, figsize=(5.6, 4.6))
        ax, several = self.ax_, len(self.frontiers) > 1
        for (name, frontier), (color, dashes) in zip(self.frontiers.items(), cycle(LINES), strict=False):
            order = np.argsort(frontier.others, kind="stable")
            label = short(name) if name else f"best {short(frontier.metric)}"
            look = {"color": color, "linestyle": dashes, "linewidth": 2.0, "marker": ".", "markersize": 4}
            ax.plot(frontier.others[order], frontier.values[order], **({"label": label, **look} | kwargs))
            value, other = frontier.baseline
            said = None if several else f"argmax ({number(other)}, {number(value)})"
            mark_argmax(ax, other, value, said, color if several else ARGMAX)
        if self.bound is not None:
            self._draw_bound(self.bound)
        ax.set_xlabel(short(self.names[0], 40))
        ax.set_ylabel(short(self.names[1], 40))
        bare(ax)
        legend(ax, loc="best")
        return self

    def _draw_bound(self, bound: float) -> None:
        frontiers = list(self.frontiers.values())
        sign = "≤" if frontiers[0].ceiling else "≥"
        label = plain_text(f"{self.names[0]} {sign} {bound:g}")
        self.ax_.axvline(bound, color=GREY, linewidth=1.2, linestyle=(0, (2, 2)), label=label, zorder=1)
        for frontier, (color, _) in zip(frontiers, cycle(LINES), strict=False):
            try:
                point = frontier.choose(bound)
            except InvalidParameter:  # no point keeps it
                continue
            said = f"best within the bound ({number(point.against)}, {number(point.value)})"
            mark_rule(self.ax_, point.against, point.value, said if len(frontiers) == 1 else None, color)
