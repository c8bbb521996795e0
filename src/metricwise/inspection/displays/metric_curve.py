"""Display of metrics along the path from argmax to the rule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from ...core.errors import InvalidParameter, entry_point
from ...core.labels import python_labels
from ...inference.results import Estimate
from ..details import Curve, Details
from ..text import number
from ..view import View
from ._base import RowsDisplay
from ._style import (
    BAND,
    GREY,
    LINES,
    RULE,
    bare,
    legend,
    legend_beside,
    mark_argmax,
    mark_rule,
    new_axes,
    plain_text,
    short,
)

__all__ = ["MetricCurveDisplay"]


@dataclass(eq=False)
class MetricCurveDisplay(RowsDisplay):
    """Metrics as a function of the threshold, or along the path of rules from argmax to the chosen one and beyond.

    Parameters
    ----------
    curve : Curve
        The curve to draw.
    positive : str, optional
        The class to whose probability, logit or score thresholds apply.
    on_new_rows : Estimate, optional
        Estimate of the first metric on new rows, with its interval.
    threshold_range : tuple of float, optional
        Thresholds that are not clearly worse on these rows.
    bounds : dict of str to tuple of float
        Lower and upper bounds of constraints, by their names.
    n_rows : int, optional
        Number of all rows, if the curve was counted on a sample.
    expected : bool, default=False
        Whether probabilities were counted in place of labels.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    lines_ : list of matplotlib Line2D
        One per metric.

    See Also
    --------
    ConfusionChangeDisplay : The confusion matrices before and after.
    sklearn.metrics.PrecisionRecallDisplay : Two metrics against each other.

    Examples
    --------
    >>> import numpy as np
    >>> import metricwise as mw
    >>> from metricwise.displays import MetricCurveDisplay
    >>> rng = np.random.default_rng(0)
    >>> p = rng.beta(1, 3, 2000)
    >>> y = (rng.random(2000) < p).astype(int)
    >>> solution = mw.optimize(p, y, "f1")
    >>> display = MetricCurveDisplay.from_solution(solution, metrics=["precision", "recall"])
    >>> display.ax_.get_xlabel()
    'threshold on the probability of 1'
    """

    curve: Curve
    positive: str = "1"
    on_new_rows: Estimate | None = None
    threshold_range: tuple[float, float] | None = None
    bounds: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    n_rows: int | None = None
    expected: bool = False

    @classmethod
    def from_details(cls, details: Details, solution: View | None = None) -> Self:
        """Return the display without drawing it; a solution adds estimates for new rows."""
        curve = details.curve
        if curve is None:
            raise InvalidParameter(
                "",
                problem="there are too many classes for a curve",
                remedy="use GainsDisplay instead",
                owner=cls.__name__,
            )
        fields: dict[str, Any] = {}
        if solution is not None:
            fields["threshold_range"] = curve.within(solution.threshold_range)
            fields["on_new_rows"] = solution.value_on_new_rows
            fields["bounds"] = {
                constraint.name: (constraint.low, constraint.high) for constraint in solution.constraints
            }
        label = str(python_labels(details.rule.classes[0])[1])
        rows = details.problem
        total = None if rows is None or rows.n_rows == curve.n_rows else rows.n_rows
        return cls(curve, label, n_rows=total, expected=not details.labelled, **fields)

    @entry_point("{class}")
    def plot(self, ax: Any = None, *, show_interval: bool = True, **kwargs: Any) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        show_interval : bool, default=True
            Whether to show the estimate for new rows, and the range of thresholds that are as good.
        **kwargs
            Passed to the line of the first metric.

        Returns
        -------
        self
        """
        several = len(self.curve.values) + len(self.curve.bounded) > 1
        self.figure_, self.ax_ = new_axes(ax, figsize=(8.4 if several else 6.4, 4.2))
        curve, x = self.curve, self.curve.shown_position
        self._draw_ranges(x, show_interval)
        names = [*curve.values, *curve.bounded]
        values = [*curve.values.values(), *curve.bounded.values()]
        self.lines_ = []
        for k, (name, along) in enumerate(zip(names, values, strict=True)):
            color, dashes = LINES[k % len(LINES)]
            options = {"color": color, "linestyle": dashes, "linewidth": 2.2 if k == 0 else 1.5, "zorder": 3 - (k > 0)}
            self.lines_ += self.ax_.plot(x, along, label=short(name, 40), **(options | kwargs if k == 0 else options))
        self._draw_points(x, show_interval)
        self._name_axes()
        bare(self.ax_)
        if several:
            legend_beside(self.ax_)
        else:
            legend(self.ax_)
        return self

    def _draw_ranges(self, x: Any, show_interval: bool) -> None:
        """Shade where constraints are broken, and the thresholds that are as good."""
        ax, curve = self.ax_, self.curve
        kept = np.ones(len(x), dtype=bool)
        for name, along in curve.bounded.items():
            low, high = self.bounds.get(name, (-np.inf, np.inf))
            kept &= (along >= low - 1e-12) & (along <= high + 1e-12)
            for bound in (low, high):
                if np.isfinite(bound):
                    ax.axhline(bound, color=GREY, linewidth=0.9, linestyle=(0, (2, 2)), zorder=1)
        if not kept.all():
            options = {"facecolor": BAND, "edgecolor": "#bdbdbd", "hatch": "////", "linewidth": 0, "zorder": 0}
            between = ax.get_xaxis_transform()
            ax.fill_between(x, 0, 1, where=~kept, transform=between, label="a constraint is violated", **options)
        if self.threshold_range is not None and show_interval and kept.all():
            ax.axvspan(
                *self.threshold_range, color=BAND, linewidth=0, zorder=0, label="not clearly worse on these rows"
            )

    def _draw_points(self, x: Any, show_interval: bool) -> None:
        """Mark argmax and the rule on the line of the first metric, and what new rows are promised."""
        ax, curve = self.ax_, self.curve
        along = next(iter(curve.values.values()))
        argmax, chosen = curve.plain, curve.chosen
        estimate = self.on_new_rows
        if estimate is not None and show_interval:
            ends = [[max(estimate.estimate - estimate.low, 0.0)], [max(estimate.high - estimate.estimate, 0.0)]]
            said = f"on new data {number(estimate.estimate)} [{number(estimate.low)}, {number(estimate.high)}]"
            at = ([x[chosen]], [estimate.estimate])
            ax.errorbar(
                *at, yerr=ends, fmt="D", color=RULE, markersize=4, mfc="white", capsize=4, lw=1.2, zorder=4, label=said
            )
        mark_argmax(ax, x[argmax], along[argmax], self._point("argmax", argmax))
        mark_rule(ax, x[chosen], along[chosen], self._point("rule", chosen))

    def _point(self, name: str, index: int) -> str:
        along = next(iter(self.curve.values.values()))
        where = f" at {self.curve.shown_position[index]:.3g}" if self.curve.kind == "threshold" else ""
        return f"{name} {number(float(along[index]))}{where}"

    def _name_axes(self) -> None:
        ax, curve = self.ax_, self.curve
        (name, _), *others = curve.values.items()
        several = bool(others or curve.bounded)
        label = "metric" if several else short(name)
        ax.set_ylabel(f"expected {label}" if self.expected else label)
        if curve.kind == "threshold":
            ax.set_xlabel(f"threshold on the {curve.unit} of {short(self.positive)}")
        else:
            ax.set_xlabel("from argmax to the rule, and the same distance beyond")
            ax.set_xticks([0, 1, 2], ["argmax", "rule", "twice as far"])
        if self.n_rows is not None:
            ax.set_title(plain_text(f"{curve.n_rows:,} of {self.n_rows:,} rows"), fontsize="small", color=GREY)
