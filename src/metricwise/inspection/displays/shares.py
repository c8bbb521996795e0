"""Display of class shares before and now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from ...core.errors import InvalidParameter, entry_point
from ._style import ARGMAX, GREY, RULE, bare, font_for, legend, new_axes, short

__all__ = ["SharesDisplay"]

_MAX_CLASSES = 40  # that are drawn; of more, those whose shares differ most


@dataclass(eq=False)
class SharesDisplay:
    """Class shares of the rows of a fit, and of rows without labels with 95 % intervals.

    Parameters
    ----------
    outputs : list of dict
        For each output, ``output`` (its name or None), ``moved``, ``p_value`` and ``shares``: for each class ``class``,
        ``estimate``, ``low``, ``high`` and ``old``; as in ``ShareEstimate.to_dict()["outputs"]``.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    See Also
    --------
    metricwise.estimate_shares : Estimates class shares.

    Examples
    --------
    >>> from metricwise.displays import SharesDisplay
    >>> row = {"class": "yes", "old": 0.2, "estimate": 0.3, "low": 0.25, "high": 0.35}
    >>> display = SharesDisplay([{"output": None, "moved": True, "p_value": 0.001, "shares": [row]}]).plot()
    >>> display.ax_.get_xlabel()
    'share of the class'
    """

    outputs: Sequence[Mapping[str, Any]]

    @entry_point("{class}")
    def plot(self, ax: Any = None) -> Self:
        """Draw a line for each class.

        Parameters
        ----------
        ax : matplotlib Axes, optional

        Returns
        -------
        self
        """
        lines = [(output, row) for output in self.outputs for row in output["shares"]]
        if not lines:
            raise InvalidParameter("outputs", "hold the shares of at least one class", "none")
        n_classes = len(lines)
        if n_classes > _MAX_CLASSES:
            change = np.array([abs(row["estimate"] - row["old"]) for _, row in lines])
            lines = [lines[place] for place in np.sort(np.argsort(-change, kind="stable")[:_MAX_CLASSES])]
        self.figure_, self.ax_ = new_axes(ax, figsize=(6.6, 1.4 + 0.27 * len(lines)))
        ax, place = self.ax_, np.arange(len(lines))
        old, estimate, low, high = (
            np.array([row[name] for _, row in lines]) for name in ("old", "estimate", "low", "high")
        )
        moved = np.array([bool(output["moved"]) for output, _ in lines])
        for which, label, color in ((moved, "now: moved", RULE), (~moved, "now: not moved", GREY)):
            if which.any():
                ends = [(estimate - low)[which], (high - estimate)[which]]
                ax.errorbar(estimate[which], place[which], xerr=ends, fmt="o", color=color, label=label, zorder=3)
        ax.plot(old, place, "|", color=ARGMAX, ms=12, mew=2, label="rows of the fit", zorder=2)
        names = [short(_name(output, row)) for output, row in lines]
        ax.set_yticks(place, names, **font_for(names))
        ax.tick_params(axis="y", length=0)
        ax.set_ylim(len(lines) - 0.3, -0.7)
        ax.set_xlim(left=0)
        ax.set_xlabel("share of the class")
        if n_classes > len(lines):
            ax.set_title(f"the {len(lines)} of {n_classes:,} that change most", fontsize="small", color=GREY)
        bare(ax)
        legend(ax, loc="best")
        return self


def _name(output: Mapping[str, Any], row: Mapping[str, Any]) -> str:
    return str(row["class"]) if output["output"] is None else f"{output['output']}: {row['class']}"
