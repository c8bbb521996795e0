"""Display of changed decisions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from ...core.errors import entry_point
from ...core.labels import python_labels
from ..details import Details, Moves
from ..text import weight
from ..view import View
from ._base import RowsDisplay
from ._style import BETTER, INCHES_PER_LETTER, INK, WORSE, bare, font_for, legend, new_axes, short

__all__ = ["MovesDisplay"]

_MAX_BARS = 12
_LEGEND_WIDTHS = (6.0, 7.8)  # inches: of counted and of expected moves


@dataclass(eq=False)
class MovesDisplay(RowsDisplay):
    """Rows that the rule decides differently from argmax: from which class to which, and whether the decision is right.

    Parameters
    ----------
    moves : Moves
        The moves to draw, of all outputs.
    labels : tuple of M tuples of str
        Names of the decisions about each output: its classes, and the abstention if the rule may abstain.
    outputs : tuple of M str
        Names of the outputs.

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
    >>> from metricwise.displays import MovesDisplay
    >>> rng = np.random.default_rng(0)
    >>> P = rng.dirichlet([3, 2, 1], 1000)
    >>> y = (P.cumsum(axis=1) < rng.random((1000, 1))).sum(axis=1)
    >>> display = MovesDisplay.from_solution(mw.optimize(P, y, "macro_f1"))
    >>> display.flows[0].name
    '0 → 1'
    """

    moves: Moves
    labels: tuple[tuple[str, ...], ...]
    outputs: tuple[str, ...]

    @classmethod
    def from_details(cls, details: Details, solution: View | None = None) -> Self:
        """Return the display without drawing it."""
        rule = details.rule
        labels = tuple(tuple(map(str, python_labels(decisions))) for decisions in rule.schema.decisions)
        names = rule.schema.output_names or [f"output {m}" for m in range(rule.n_outputs)]
        return cls(details.moves, labels, tuple(map(str, names)))

    @dataclass(frozen=True)
    class Flow:
        """Rows that move from one class to another: those that become right, those that were, and others."""

        name: str
        gained: float
        lost: float
        neither: float

        @property
        def total(self) -> float:
            """All of them."""
            return self.gained + self.lost + self.neither

    @property
    def flows(self) -> list[Flow]:
        """Moves from the largest to the smallest."""
        flows = []
        parts = (self.moves.gained, self.moves.lost, self.moves.neither)
        total = sum(parts)
        for m, a, b in np.argwhere(total > 0):
            if a != b:
                title = f"{short(self.labels[m][a], 18)} → {short(self.labels[m][b], 18)}"
                if len(self.outputs) > 1:
                    title = f"{short(self.outputs[m], 18)}: {title}"
                flows.append(self.Flow(title, *(float(part[m, a, b]) for part in parts)))
        return sorted(flows, key=lambda flow: -flow.total)

    @entry_point("{class}")
    def plot(self, ax: Any = None, *, max_bars: int = _MAX_BARS) -> Self:
        """Draw bars, the largest first.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        max_bars : int, default=12
            Maximum number of bars; the other moves are summed up.

        Returns
        -------
        self
        """
        flows, rest = self.flows[:max_bars], self.flows[max_bars:]
        longest = max((len(flow.name) for flow in flows), default=0)
        size = (_LEGEND_WIDTHS[self.moves.expected] + INCHES_PER_LETTER * longest, 1.5 + 0.36 * max(len(flows), 2))
        self.figure_, self.ax_ = new_axes(ax, figsize=size)
        ax, place = self.ax_, np.arange(len(flows))
        left = np.zeros(len(flows))
        said = "expected " if self.moves.expected else ""
        kinds = (
            ("gained", f"{said}wrong before, right now", {"facecolor": BETTER, "edgecolor": "white"}),
            ("lost", f"{said}right before, not now", {"facecolor": WORSE, "edgecolor": "white", "hatch": "////"}),
            ("neither", f"{said}right neither before nor now", {"facecolor": "#d9d9d9", "edgecolor": "white"}),
        )
        for part, label, look in kinds:
            width = np.array([getattr(flow, part) for flow in flows], dtype=np.float64)
            ax.barh(place, width, left=left, label=label if width.any() else None, linewidth=0.6, height=0.72, **look)
            left = left + width
        for y, flow in zip(place, flows, strict=True):
            net = flow.gained - flow.lost
            text = f" {weight(flow.total)}, net {weight(net, signed=True)} right"
            ax.text(flow.total, y, text, va="center", fontsize="small", color=INK)
        names = [flow.name for flow in flows]
        ax.set_yticks(place, names, **font_for(names))
        ax.tick_params(axis="y", length=0)
        ax.set_ylim(max(len(flows), 2) - 0.5, -0.5)
        bare(ax)
        ax.set_xlim(0, max(left.max(initial=0) * 1.45, 1e-9))
        what = "rows" if len(self.outputs) == 1 else "decisions"
        ax.set_xlabel(what)
        title = f"argmax → rule: {self.moves.moved:.1%} of the decisions change"
        if rest:
            title += f", {len(rest):,} smaller moves not shown ({weight(sum(flow.total for flow in rest))} {what})"
        ax.set_title(title, fontsize="medium" if not rest else "small", loc="left", pad=22)
        legend(ax, loc="lower left", bbox_to_anchor=(0.0, 0.98), ncols=3, borderaxespad=0, columnspacing=1.2)
        return self
