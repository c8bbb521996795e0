"""Display of the steps of a solver."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ...core.errors import InvalidType, entry_point
from ..text import number
from ..view import View
from ._style import BAND, GREY, RULE, bare, legend, new_axes, plain_text

__all__ = ["ConvergenceDisplay"]


@dataclass(eq=False)
class ConvergenceDisplay:
    """The optimised value after each step of a solver, with that of argmax and the upper bound.

    Parameters
    ----------
    history : ndarray of shape (S,)
        The optimised value after each step.
    baseline : float or None
        Value of argmax, if it is counted in the same way.
    upper_bound : float or None
        Upper bound on the optimised value.
    gap : float or None
        Difference between the upper bound and the final value.
    status : str
        Status of the solution.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    See Also
    --------
    metricwise.Solution : Has the history, the bound and the status.

    Examples
    --------
    >>> import numpy as np
    >>> import metricwise as mw
    >>> from metricwise.displays import ConvergenceDisplay
    >>> P = np.random.default_rng(0).dirichlet([3, 2, 1], 1000)
    >>> solution = mw.optimize(P, None, "g_mean", strategy=mw.Strategy(randomized=True))
    >>> display = ConvergenceDisplay.from_solution(solution)
    >>> bool(display.history[-1] <= display.upper_bound)
    True
    """

    history: NDArray[np.float64]
    baseline: float | None = None
    upper_bound: float | None = None
    gap: float | None = None
    status: str = ""

    @classmethod
    @entry_point()
    def from_solution(cls, solution: View, *, ax: Any = None, **kwargs: Any) -> Self:
        """Draw the history of a solution.

        Parameters
        ----------
        solution : Solution
            A solution with a history. By default, a rule is the average of many small fits and has none: fix
            `confusion` and `recalibrate` in :func:`metricwise.optimize`, or call it without labels.
        ax : matplotlib Axes, optional
        **kwargs
            Passed to the line.
        """
        if not isinstance(solution, View):
            raise InvalidType("solution", "be a Solution returned by optimize", type(solution).__name__)
        alike = abs(solution.optimized_value - solution.value) < 1e-9
        baseline = solution.baseline if alike else None
        display = cls(np.array(solution.history), baseline, solution.upper_bound, solution.gap, solution.status)
        return display.plot(ax=ax, **kwargs)

    @entry_point("{class}")
    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        **kwargs
            Passed to the line.

        Returns
        -------
        self
        """
        self.figure_, self.ax_ = new_axes(ax, figsize=(6.2, 4.0))
        ax, steps = self.ax_, np.arange(1, len(self.history) + 1)
        best = np.maximum.accumulate(self.history) if len(self.history) else self.history
        last = float(self.history[-1]) if len(self.history) else np.nan
        line = {"color": GREY, "linewidth": 1.3}
        if self.upper_bound is not None:
            label = f"upper bound {number(self.upper_bound)}"
            ax.axhline(self.upper_bound, linestyle=(0, (5, 3)), label=label, **line)
            said = None if self.gap is None else f"gap {self.gap:.1e}"
            ends = (0.5, len(steps) + 0.5)
            ax.fill_between(ends, last, self.upper_bound, color=BAND, linewidth=0, zorder=0, label=said)
        if self.baseline is not None:
            ax.axhline(self.baseline, linestyle=(0, (1, 1.5)), label=f"argmax {number(self.baseline)}", **line)
        look = {"color": RULE, "marker": "o", "markersize": 4.5, "linewidth": 1.6, "label": f"value {number(last)}"}
        ax.plot(steps, self.history, **(look | kwargs))
        if (best > self.history + 1e-12).any():
            ax.plot(steps, best, color=RULE, linewidth=1.0, linestyle=(0, (1, 1.2)), label="best so far")
        ax.set_xlabel("step")
        ax.set_ylabel("optimised value")
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.set_xlim(0.5, len(steps) + 0.5)
        if self.status:
            ax.set_title(plain_text(_wrapped(self.status)), fontsize="small", color=GREY, loc="left")
        bare(ax)
        legend(ax, loc="best")
        return self


def _wrapped(text: str, width: int = 78, most: int = 3) -> str:
    import textwrap

    lines = textwrap.wrap(text, width)
    return "\n".join(lines[:most] if len(lines) <= most else [*lines[: most - 1], lines[most - 1] + " …"])
