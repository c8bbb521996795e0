"""Display of promises and decisions over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ...core.errors import InvalidParameter, InvalidType, entry_point
from ..text import number
from ._style import BAND, GREY, INK, LINES, RULE, WORSE, bare, legend_beside, plain_text, pyplot, short

__all__ = ["PromiseLines", "WatchDisplay"]

FloatArray = NDArray[np.float64]


@dataclass(eq=False)
class PromiseLines:
    """A promise over T batches, as :class:`WatchDisplay` draws it.

    Parameters
    ----------
    name : str
    low, high : float or None
        Bounds.
    values : ndarray of shape (T,)
        Value on the rows of each batch; NaN if it is not known.
    running, running_low, running_high : ndarray of shape (T,)
        Value on all rows up to then, with an interval.
    found, since : int or None
        The batch in which it was found to be broken, and since which it seems to be.
    """

    name: str
    low: float | None
    high: float | None
    values: FloatArray
    running: FloatArray
    running_low: FloatArray
    running_high: FloatArray
    found: int | None = None
    since: int | None = None

    @classmethod
    def of(cls, promise: Mapping[str, Any]) -> PromiseLines:
        """Return the lines of a promise of the summary of a watch."""
        series = ("values", "running", "running_low", "running_high")
        lines: dict[str, Any] = {name: np.array(promise[name], dtype=np.float64) for name in series}
        others: dict[str, Any] = {name: promise[name] for name in ("name", "low", "high", "found", "since")}
        return cls(**others, **lines)


@dataclass(eq=False)
class WatchDisplay:
    """Values and bounds of watched promises over time, and shares of decisions below.

    Parameters
    ----------
    batches : ndarray of shape (T,)
        Numbers of the batches.
    promises : sequence of PromiseLines
        What was known of each promise.
    shares : mapping of str to ndarray of shape (T,)
        Share of each decision in each batch; NaN for batches without rows.

    Attributes
    ----------
    ax_ : ndarray of matplotlib Axes
        One for each promise, and one for the shares.
    figure_ : matplotlib Figure

    See Also
    --------
    metricwise.watch : Watches a rule.
    metricwise.Watch.report : The same as a page.

    Examples
    --------
    >>> import numpy as np
    >>> import metricwise as mw
    >>> from metricwise.displays import WatchDisplay
    >>> rng = np.random.default_rng(0)
    >>> watch = mw.watch(mw.WeightedRule.from_thresholds(0.5), "accuracy >= 0.7")
    >>> for _ in range(3):
    ...     p = rng.random(50)
    ...     _ = watch.update(p, (rng.random(50) < p).astype(int))
    >>> display = WatchDisplay.from_watch(watch)
    >>> display.batches.tolist(), len(display.ax_)
    ([1, 2, 3], 2)
    """

    batches: NDArray[np.intp]
    promises: Sequence[PromiseLines]
    shares: Mapping[str, FloatArray]

    @classmethod
    @entry_point()
    def from_watch(cls, watch: Any, *, ax: Any = None, **kwargs: Any) -> Self:
        """Draw the display of a watch.

        Parameters
        ----------
        watch : Watch
            Made by :func:`metricwise.watch`.
        ax : array of matplotlib Axes, optional
        **kwargs
            Passed to the lines of values.

        Returns
        -------
        display
        """
        if not hasattr(watch, "summary"):
            raise InvalidType("watch", "be a Watch, made by metricwise.watch", type(watch).__name__)
        summary = watch.summary()
        history = summary["history"]
        lines = [PromiseLines.of(promise) for promise in summary["promises"]]
        return cls(np.array(history["last"], dtype=np.intp), lines, _shares(history["outputs"])).plot(ax=ax, **kwargs)

    @entry_point("{class}")
    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw.

        Parameters
        ----------
        ax : array of matplotlib Axes, optional
            One for each promise, and one for the shares; None creates a figure.
        **kwargs
            Passed to the lines of values.

        Returns
        -------
        self
        """
        self.figure_, self.ax_ = self._axes(ax)
        for axes, promise in zip(self.ax_, self.promises, strict=False):
            self._draw_promise(axes, promise, kwargs)
        self._draw_shares(self.ax_[-1])
        for axes in self.ax_:
            bare(axes)
            legend_beside(axes)
            axes.xaxis.get_major_locator().set_params(integer=True)
        return self

    def _axes(self, ax: Any) -> tuple[Any, Any]:
        n_axes = len(self.promises) + 1
        if ax is None:
            options = {"figsize": (8.0, 1.0 + 2.1 * n_axes), "layout": "constrained", "sharex": True, "squeeze": False}
            figure, axes = pyplot().subplots(n_axes, **options)
            return figure, axes[:, 0]
        axes = np.asarray(ax, dtype=object).reshape(-1)
        if len(axes) != n_axes:
            raise InvalidParameter("ax", f"be {n_axes} axes, one for each promise and one for the shares", len(axes))
        return axes[0].figure, axes

    def _draw_promise(self, ax: Any, promise: PromiseLines, options: Mapping[str, Any]) -> None:
        x = self.batches
        ax.fill_between(
            x, promise.running_low, promise.running_high, color=BAND, linewidth=0, label="interval of all so far"
        )
        ax.plot(x, promise.running, color=RULE, linewidth=1.8, label="all so far")
        look = {"color": INK, "marker": "o", "markersize": 3.5, "linestyle": "none", "label": "each batch"}
        ax.plot(x, promise.values, **(look | dict(options)))
        for bound in (promise.low, promise.high):
            if bound is not None:
                ax.axhline(bound, color=GREY, linewidth=1.2, linestyle=(0, (4, 2)), label=f"bound {number(bound)}")
        if promise.since is not None and promise.found is not None:
            label = f"broken since about {promise.since}, found in {promise.found}"
            ax.axvspan(promise.since - 0.5, promise.found + 0.5, color=WORSE, alpha=0.25, linewidth=0, label=label)
        verdict = "no sign that it is broken" if promise.found is None else "broken"
        ax.set_title(f"{plain_text(promise.name)}: {verdict}", loc="left", fontsize="medium")

    def _draw_shares(self, ax: Any) -> None:
        varied = sorted(self.shares, key=lambda name: -_span(self.shares[name]))[: len(LINES)]
        names = [name for name in self.shares if name in varied]
        for name, (color, dashes) in zip(names, LINES, strict=False):
            ax.plot(self.batches, self.shares[name], color=color, linestyle=dashes, linewidth=1.5, label=short(name))
        more = "" if len(names) == len(self.shares) else f" ({len(names)} of {len(self.shares)}, which vary most)"
        ax.set_title(f"shares of decisions{more}", loc="left", fontsize="medium")
        ax.set_ylim(bottom=0)
        ax.set_xlabel("batch")


def _shares(outputs: Sequence[Mapping[str, Any]]) -> dict[str, FloatArray]:
    """Return the share of each decision over time, of several outputs with the name of each."""
    shares: dict[str, FloatArray] = {}
    for m, output in enumerate(outputs):
        table = np.array(output["shares"], dtype=np.float64).reshape(-1, len(output["decisions"]))
        title = "" if len(outputs) == 1 else f"{m if output['name'] is None else output['name']}: "
        shares |= {f"{title}{label}": table[:, place] for place, label in enumerate(output["decisions"])}
    return shares


def _span(values: FloatArray) -> float:
    finite_values = values[~np.isnan(values)]
    return float(np.ptp(finite_values)) if len(finite_values) else 0.0
