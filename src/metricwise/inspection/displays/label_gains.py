"""Display of the values of very many labels by their frequency."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from ...core.errors import InvalidParameter, InvalidType, entry_point
from ...inference.label_summary import LabelGroup, LabelSummary
from ..text import metric_losses, number, shown_metric
from ..view import Rule, View
from ._style import GREY, RULE, WORSE, bare, legend, mark_argmax, mark_rule, new_axes, short

__all__ = ["LabelGainsDisplay"]


@dataclass(eq=False)
class LabelGainsDisplay:
    """Mean value of labels for the rule and for the most probable labels, by the frequency of labels.

    Parameters
    ----------
    groups : list of LabelGroup
        Labels with so many true rows, as from ``solution.by_label.by_frequency()``.
    metric : str
        Name of the metric of a label.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    See Also
    --------
    GainsDisplay : The gain of each of few outputs.

    Examples
    --------
    >>> import metricwise as mw
    >>> from metricwise.displays import LabelGainsDisplay
    >>> from scipy.sparse import csr_array
    >>> proba = csr_array([[0.9, 0.2, 0.0], [0.4, 0.0, 0.6], [0.3, 0.4, 0.0]])
    >>> y = csr_array([[1, 0, 0], [1, 0, 1], [0, 1, 0]])
    >>> display = LabelGainsDisplay.from_solution(mw.optimize(proba, y, "f1", average="macro"))
    >>> [(group.name, group.n_labels) for group in display.groups]
    [('up to 5', 3)]
    """

    groups: Sequence[LabelGroup]
    metric: str

    @classmethod
    def of_summary(cls, labels: LabelSummary, rule: Rule) -> Self:
        """Return the display of counts of labels, without drawing it."""
        return cls(labels.by_frequency(), shown_metric(labels.metric, metric_losses(rule)))

    @classmethod
    @entry_point()
    def from_solution(cls, solution: View, *, ax: Any = None, **kwargs: Any) -> Self:
        """Draw the values of the labels of a solution, on the rows that it was fitted to.

        Parameters
        ----------
        solution : Solution
            With sparse probabilities or `labels_per_row`; also one that was loaded.
        ax : matplotlib Axes, optional
            Axes to draw on; None creates a figure.
        **kwargs
            Passed to `plot`.

        Returns
        -------
        display
        """
        if not isinstance(solution, View):
            raise InvalidType("solution", "be a Solution returned by optimize", type(solution).__name__)
        if solution.by_label is None:
            raise InvalidParameter(
                "solution",
                "be of a rule for very many labels, from sparse probabilities or with labels_per_row",
                f"one of a {type(solution.rule).__name__}",
                "use GainsDisplay",
            )
        return cls.of_summary(solution.by_label, solution.rule).plot(ax=ax, **kwargs)

    @entry_point("{class}")
    def plot(self, ax: Any = None) -> Self:
        """Draw a line for each group of labels.

        Parameters
        ----------
        ax : matplotlib Axes, optional

        Returns
        -------
        self
        """
        if not self.groups:
            raise InvalidParameter("groups", "hold at least one group of labels", "none")
        n = len(self.groups)
        self.figure_, self.ax_ = new_axes(ax, figsize=(6.6, 1.6 + 0.45 * n))
        ax = self.ax_
        for place, group in enumerate(self.groups):
            ends = (group.baseline, group.value)
            better = group.value >= group.baseline
            color, style = (RULE, "-") if better else (WORSE, (0, (2, 1)))
            ax.plot(ends, (place, place), color=color, linestyle=style, linewidth=2.2, zorder=2)
            first = place == 0
            mark_argmax(ax, group.baseline, place, "most probable labels" if first else None)
            mark_rule(ax, group.value, place, "the rule" if first else None)
            text = number(group.value - group.baseline, signed=True)
            ax.annotate(
                text,
                (1.01, place),
                xycoords=("axes fraction", "data"),
                va="center",
                fontsize="small",
                color=GREY,
                annotation_clip=False,
            )
        names = [f"{group.name}\n{group.n_labels:,} label{'' if group.n_labels == 1 else 's'}" for group in self.groups]
        ax.set_yticks(np.arange(n), names, fontsize="small")
        ax.tick_params(axis="y", length=0)
        ax.set_ylim(-0.6, n - 0.4)
        ax.set_ylabel("true rows of a label")
        ax.set_xlabel(f"mean {short(self.metric, 40)} of labels")
        ax.margins(x=0.06)
        bare(ax)
        legend(ax, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
        return self
