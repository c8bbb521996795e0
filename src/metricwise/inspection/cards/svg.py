"""Small charts as inline SVG, without matplotlib: lines that take the colour of the text around them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .markup import Html, tag
from .numbers import number

__all__ = ["Mark", "line_chart", "scatter_lines"]

FloatArray = NDArray[np.float64]

_LEFT, _RIGHT, _TOP, _BOTTOM = 40, 12, 10, 36


@dataclass(frozen=True)
class Mark:
    """A point to be marked: "argmax" is a hollow square, "rule" a filled circle."""

    kind: str
    x: float
    y: float


def line_chart(
    x: FloatArray,
    lines: Mapping[str, FloatArray],
    marks: Sequence[Mark],
    *,
    ticks: Sequence[tuple[float, str]],
    title: str,
    width: int = 300,
    height: int = 150,
    band: tuple[float, float] | None = None,
    label: str | None = None,
    cursor: bool = False,
) -> Html:
    """Return lines over an axis, with marks.

    Parameters
    ----------
    x : ndarray of shape (T,)
    lines : dict of str to ndarray of shape (T,)
        The first one is drawn heavily.
    marks : sequence of Mark
    ticks : sequence of (float, str)
        Of the horizontal axis.
    title : str
        For who does not see it.
    width, height : int
    band : tuple of float, optional
        A stretch of the horizontal axis to be shaded.
    label : str, optional
        Of the horizontal axis.
    cursor : bool, default=False
        Whether there is a line to be moved by a script; where the axis begins and ends is then said in the attributes
        `data-left` and `data-right`.

    Examples
    --------
    >>> import numpy as np
    >>> from metricwise.inspection.cards.svg import Mark, line_chart
    >>> chart = line_chart(np.array([0.0, 1.0]), {"f1": np.array([0.2, 0.4])}, [Mark("rule", 1, 0.4)],
    ...                    ticks=[(0, "argmax"), (1, "rule")], title="f1 along the way")
    >>> chart[:50]
    '<svg class="mw-chart" viewBox="0 0 300 150" role="'
    """
    stacked = np.concatenate([np.asarray(values) for values in lines.values()])
    stacked = stacked[np.isfinite(stacked)]
    low, high = (float(stacked.min()), float(stacked.max())) if len(stacked) else (0.0, 1.0)
    pad = 0.08 * (high - low) or 0.05
    frame = _Frame((float(x[0]), float(x[-1])), (low - pad, high + pad), width, height)
    parts = [tag("title", title)]
    if band is not None:
        left, right = frame.across(max(band[0], float(x[0]))), frame.across(min(band[1], float(x[-1])))
        parts.append(
            tag("rect", class_="mw-band", x=left, y=_TOP, width=max(right - left, 1), height=frame.inner_height)
        )
    parts += frame.axes(ticks)
    if label is not None:
        middle = (_LEFT + width - _RIGHT) / 2
        parts.append(tag("text", label, class_="mw-tick", x=middle, y=height - 3, text_anchor="middle"))
    for k, values in reversed(list(enumerate(lines.values()))):
        parts.append(tag("path", class_=f"mw-line mw-line-{k}", d=frame.path(x, np.asarray(values))))
    ends = {}
    if cursor:
        at = frame.across(marks[-1].x)
        parts.append(tag("line", class_="mw-cursor", x1=at, x2=at, y1=_TOP, y2=height - _BOTTOM))
        ends = {"data_left": _LEFT, "data_right": width - _RIGHT}
    parts += [frame.mark(mark) for mark in marks]
    return tag("svg", *parts, class_="mw-chart", viewBox=f"0 0 {width} {height}", role="img", **ends)


def scatter_lines(
    lines: Mapping[str, tuple[Sequence[float], Sequence[float]]],
    *,
    title: str,
    labels: tuple[str, str],
    size: int = 300,
) -> Html:
    """Return lines of points in a square, beside its diagonal.

    Parameters
    ----------
    lines : dict of str to pair of sequences
        "before" is drawn with hollow squares, any other with filled circles.
    title : str
        For who does not see it.
    labels : tuple of str
        Of the horizontal and the vertical axis.
    size : int, default=300
    """
    end = max((float(np.max(values)) for pair in lines.values() for values in pair if len(values)), default=1.0)
    end = min(1.0, 1.06 * end)
    frame = _Frame((0.0, end), (0.0, end), size, size)
    ticks = [(value, _trimmed(value)) for value in _round_ticks(0.0, end)]
    parts = [tag("title", title), *frame.axes(ticks)]
    middle = (_LEFT + size - _RIGHT) / 2
    parts.append(tag("text", labels[0], class_="mw-tick", x=middle, y=size - 3, text_anchor="middle"))
    up, turn = _TOP + frame.inner_height / 2, f"rotate(-90 10 {_TOP + frame.inner_height / 2})"
    parts.append(tag("text", labels[1], class_="mw-tick", x=10, y=up, text_anchor="middle", transform=turn))
    parts.append(tag("path", class_="mw-line", d=frame.path(np.array([0.0, end]), np.array([0.0, end]))))
    for name, (x, y) in sorted(lines.items(), key=lambda line: line[0] == "before"):  # hollow squares hide nothing
        style = "mw-line" if name == "before" else "mw-line mw-line-0"
        parts.append(tag("path", class_=f"{style} mw-{name}", d=frame.path(np.asarray(x), np.asarray(y))))
        kind = "argmax" if name == "before" else "rule"
        parts += [frame.mark(Mark(kind, a, b), 3) for a, b in zip(x, y, strict=True)]
    return tag("svg", *parts, class_="mw-chart mw-square", viewBox=f"0 0 {size} {size}", role="img")


def _trimmed(value: float) -> str:
    text = number(value)
    return text.rstrip("0").rstrip(".") if "." in text else text


@dataclass(frozen=True)
class _Frame:
    """Where numbers lie on the picture."""

    x: tuple[float, float]
    y: tuple[float, float]
    width: int
    height: int

    @property
    def inner_height(self) -> int:
        return self.height - _TOP - _BOTTOM

    def across(self, value: float) -> float:
        share = (value - self.x[0]) / ((self.x[1] - self.x[0]) or 1.0)
        return round(_LEFT + share * (self.width - _LEFT - _RIGHT), 1)

    def down(self, value: float) -> float:
        share = (value - self.y[0]) / ((self.y[1] - self.y[0]) or 1.0)
        return round(_TOP + (1 - share) * self.inner_height, 1)

    def path(self, x: FloatArray, y: FloatArray) -> str:
        seen = np.isfinite(y)
        points = [f"{self.across(a)},{self.down(b)}" for a, b in zip(x[seen].tolist(), y[seen].tolist(), strict=True)]
        return "M" + "L".join(points) if points else ""

    def axes(self, ticks: Sequence[tuple[float, str]]) -> list[Html]:
        bottom = self.height - _BOTTOM
        out = [tag("line", class_="mw-axis", x1=_LEFT, x2=self.width - _RIGHT, y1=bottom, y2=bottom)]
        for value in _round_ticks(*self.y):
            y = self.down(value)
            out.append(tag("line", class_="mw-grid", x1=_LEFT, x2=self.width - _RIGHT, y1=y, y2=y))
            out.append(tag("text", _trimmed(value), class_="mw-tick", x=_LEFT - 5, y=y + 3.5, text_anchor="end"))
        for value, label in ticks:
            x = self.across(value)
            side = "start" if x < _LEFT + 15 else "end" if x > self.width - _RIGHT - 15 else "middle"
            out.append(tag("line", class_="mw-axis", x1=x, x2=x, y1=bottom, y2=bottom + 4))
            out.append(tag("text", label, class_="mw-tick", x=x, y=bottom + 17, text_anchor=side))
        return out

    def mark(self, mark: Mark, size: float = 4.5) -> Html:
        x, y = self.across(mark.x), self.down(mark.y)
        if mark.kind == "argmax":
            return tag(
                "rect", class_="mw-argmax", x=round(x - size, 1), y=round(y - size, 1), width=2 * size, height=2 * size
            )
        return tag("circle", class_="mw-rule", cx=x, cy=y, r=size + 0.5)


def _round_ticks(low: float, high: float, n: int = 3) -> list[float]:
    """Return about n round numbers between two ends."""
    step = (high - low) / n
    if not np.isfinite(step) or step <= 0:
        return [low]
    size = 10.0 ** np.floor(np.log10(step))
    step = next(size * f for f in (1, 2, 2.5, 5, 10) if size * f >= step * 0.999)
    first = np.ceil(low / step) * step
    return [float(value) + 0.0 for value in np.arange(first, high + 1e-12, step)]
