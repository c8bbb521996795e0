"""Charts of a summary as inline SVG, for cards and pages: lines in the colour of the text around them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .markup import Html, tag
from .text import number

__all__ = ["path_chart", "promise_chart", "reliability_chart", "shares_chart"]

Values = Sequence[float | None]

_LEFT, _RIGHT, _TOP, _BOTTOM = 40, 12, 10, 36


def path_chart(path: dict[str, Any], *, width: int, height: int, interactive: bool = False) -> Html:
    """Return the first metric along the path of a summary, with marks at argmax and the rule.

    An interactive chart also has the bounded metrics, and a cursor for the script of the page, which reads the ends of
    the axis from `data-left` and `data-right`.
    """
    x, (name, along) = path["position"], next(iter(path["values"].items()))
    lines = [along, *(path["bounded"].values() if interactive else ())]
    frame = _Frame(
        (x[0], x[-1]), _padded([value for line in lines for value in line if value is not None]), width, height
    )
    thresholds = path["kind"] == "threshold"
    axis = "thresholds" if thresholds else "the path from argmax to the rule and beyond"
    ends = {"argmax": path["plain"], "rule": path["chosen"]}
    values = [
        f"{number(along[index])} at {'argmax' if kind == 'argmax' else 'the rule'}" for kind, index in ends.items()
    ]
    title = f"{name} along {'the path' if interactive else axis}: {', '.join(values)}"
    parts: list[Html | None] = [tag("title", title if interactive else f"{title}.")]
    if path["range"] is not None:
        left, right = (frame.across(min(max(end, x[0]), x[-1])) for end in path["range"])
        parts.append(
            tag("rect", class_="mw-band", x=left, y=_TOP, width=max(right - left, 1), height=frame.inner_height)
        )
    if thresholds and path["digits"] is not None:
        ticks = [
            (value, f"{value:.6g}".replace("-", "−")) for value in _round_ticks(x[0], x[-1], 6 if interactive else 4)
        ]
    elif thresholds:
        ticks = [(k / 4, f"{k / 4:g}") for k in range(0, 5, 1 if interactive else 2)]
    else:
        ticks = [(0.0, "argmax"), (1.0, "rule"), (x[-1], "twice as far")]
    parts += frame.axes(ticks)
    if thresholds:
        parts.append(frame.label_below("threshold" if path["digits"] is None else f"threshold on the {path['unit']}"))
    for k, line in reversed(list(enumerate(lines))):
        parts.append(tag("path", class_=f"mw-line mw-line-{k}", d=frame.path(x, line)))
    attributes = {}
    if interactive:
        at = frame.across(x[path["chosen"]])
        parts.append(tag("line", class_="mw-cursor", x1=at, x2=at, y1=_TOP, y2=height - _BOTTOM))
        attributes = {"data_left": _LEFT, "data_right": width - _RIGHT}
    parts += [frame.mark(kind, x[index], along[index]) for kind, index in ends.items()]
    return tag("svg", *parts, class_="mw-chart", viewBox=f"0 0 {width} {height}", role="img", **attributes)


def reliability_chart(reliability: dict[str, Any], size: int = 300) -> Html:
    """Return observed frequencies against predicted probabilities of a summary, beside the diagonal."""
    bins = {name: reliability[name] for name in ("after", "before") if reliability[name] is not None}
    largest = max(
        (max(part[axis]) for part in bins.values() for axis in ("predicted", "observed") if part[axis]), default=1.0
    )
    end = min(1.0, 1.06 * largest)
    frame = _Frame((0.0, end), (0.0, end), size, size)
    parts: list[Html | None] = [tag("title", "Observed frequency against predicted probability")]
    parts += frame.axes([(value, _tick(value)) for value in _round_ticks(0.0, end)])
    parts.append(frame.label_below("predicted probability"))
    middle = _TOP + frame.inner_height / 2
    place = {"x": 10, "y": middle, "text_anchor": "middle", "transform": f"rotate(-90 10 {middle})"}
    parts.append(tag("text", "observed frequency", class_="mw-tick", **place))
    parts.append(tag("path", class_="mw-line", d=frame.path([0.0, end], [0.0, end])))
    for name, part in bins.items():  # hollow squares come last: they hide nothing
        kind, style = ("argmax", "mw-line") if name == "before" else ("rule", "mw-line mw-line-0")
        parts.append(tag("path", class_=f"{style} mw-{name}", d=frame.path(part["predicted"], part["observed"])))
        points = zip(part["predicted"], part["observed"], strict=True)
        parts += [frame.mark(kind, across, up, 3) for across, up in points]
    return tag("svg", *parts, class_="mw-chart mw-square", viewBox=f"0 0 {size} {size}", role="img")


def promise_chart(promise: dict[str, Any], batches: Sequence[int]) -> Html:
    """Return a promise of the summary of a watch over batches: values, the running value with its interval, bounds."""
    series = [promise[name] for name in ("values", "running", "running_low", "running_high")]
    bounds = [promise[name] for name in ("low", "high") if promise[name] is not None]
    numbers = [value for line in series for value in line if value is not None]
    frame = _over_batches(batches, [*numbers, *bounds], height=200)
    parts: list[Html | None] = [tag("title", promise["sentence"])]
    if promise["since"] is not None:
        left, right = (
            frame.across(min(max(end, frame.x[0]), frame.x[1])) for end in (promise["since"], promise["found"])
        )
        parts.append(_rectangle("mw-broken", left, right, frame))
    parts += frame.axes([(tick, f"{tick:g}") for tick in _batch_ticks(frame)])
    parts.append(frame.label_below("batch"))
    parts.append(tag("path", class_="mw-band", d=frame.area(batches, promise["running_low"], promise["running_high"])))
    parts += [tag("path", class_="mw-line mw-line-1", d=frame.path(frame.x, [bound, bound])) for bound in bounds]
    parts.append(tag("path", class_="mw-line mw-line-0", d=frame.path(batches, promise["running"])))
    parts += [frame.mark("argmax", x, value, 2.5) for x, value in zip(batches, promise["values"], strict=True)]
    return tag("svg", *parts, class_="mw-chart", viewBox=f"0 0 {frame.width} {frame.height}", role="img")


def shares_chart(shares: Sequence[Values], batches: Sequence[int]) -> Html:
    """Return shares of a few decisions over batches, each in a line of its own kind."""
    frame = _over_batches(
        batches, [0.0, *(value for line in shares for value in line if value is not None)], height=160
    )
    parts: list[Html | None] = [tag("title", "Shares of decisions in each batch")]
    parts += frame.axes([(tick, f"{tick:g}") for tick in _batch_ticks(frame)])
    parts.append(frame.label_below("batch"))
    parts += [
        tag("path", class_=f"mw-line mw-line-{place}", d=frame.path(batches, line)) for place, line in enumerate(shares)
    ]
    return tag("svg", *parts, class_="mw-chart", viewBox=f"0 0 {frame.width} {frame.height}", role="img")


def _over_batches(batches: Sequence[int], values: list[float], height: int) -> _Frame:
    first, last = (batches[0], batches[-1]) if batches else (0, 1)
    return _Frame((first - 0.5, last + 0.5), _padded(values), 720, height)


def _batch_ticks(frame: _Frame) -> list[float]:
    """Return numbers of batches for the axis: whole ones."""
    return [tick for tick in _round_ticks(*frame.x, 8) if tick == round(tick)]


def _rectangle(kind: str, left: float, right: float, frame: _Frame) -> Html:
    return tag("rect", class_=kind, x=left, y=_TOP, width=max(round(right - left, 1), 2), height=frame.inner_height)


@dataclass(frozen=True)
class _Frame:
    """Axes of a chart: from numbers to places on the picture."""

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

    def path(self, x: Sequence[float], y: Values) -> str:
        points = [f"{self.across(a)},{self.down(b)}" for a, b in zip(x, y, strict=True) if b is not None]
        return "M" + "L".join(points) if points else ""

    def area(self, x: Sequence[float], low: Values, high: Values) -> str:
        """Return the outline between two lines."""
        points = [(a, b, c) for a, b, c in zip(x, low, high, strict=True) if b is not None and c is not None]
        outline = [(a, c) for a, _, c in points] + [(a, b) for a, b, _ in reversed(points)]
        return f"{self.path([a for a, _ in outline], [b for _, b in outline])}Z" if outline else ""

    def label_below(self, text: str) -> Html:
        middle = (_LEFT + self.width - _RIGHT) / 2
        return tag("text", text, class_="mw-tick", x=middle, y=self.height - 3, text_anchor="middle")

    def axes(self, ticks: Sequence[tuple[float, str]]) -> list[Html]:
        bottom = self.height - _BOTTOM
        out = [tag("line", class_="mw-axis", x1=_LEFT, x2=self.width - _RIGHT, y1=bottom, y2=bottom)]
        for value in _round_ticks(*self.y):
            y = self.down(value)
            out.append(tag("line", class_="mw-grid", x1=_LEFT, x2=self.width - _RIGHT, y1=y, y2=y))
            out.append(tag("text", _tick(value), class_="mw-tick", x=_LEFT - 5, y=y + 3.5, text_anchor="end"))
        for value, label in ticks:
            x = self.across(value)
            side = "start" if x < _LEFT + 15 else "end" if x > self.width - _RIGHT - 15 else "middle"
            out.append(tag("line", class_="mw-axis", x1=x, x2=x, y1=bottom, y2=bottom + 4))
            out.append(tag("text", label, class_="mw-tick", x=x, y=bottom + 17, text_anchor=side))
        return out

    def mark(self, kind: str, x: float, y: float | None, size: float = 4.5) -> Html | None:
        """Return a hollow square for argmax, a filled circle for the rule."""
        if y is None:
            return None
        across, down = self.across(x), self.down(y)
        if kind == "rule":
            return tag("circle", class_="mw-rule", cx=across, cy=down, r=size + 0.5)
        place = {"x": round(across - size, 1), "y": round(down - size, 1)}
        return tag("rect", class_="mw-argmax", **place, width=2 * size, height=2 * size)


def _padded(values: list[float]) -> tuple[float, float]:
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    pad = 0.08 * (high - low) or 0.05
    return low - pad, high + pad


def _tick(value: float) -> str:
    text = number(value)
    return text.rstrip("0").rstrip(".") if "." in text else text


def _round_ticks(low: float, high: float, n: int = 3) -> list[float]:
    """Return about n round numbers between two ends."""
    step = (high - low) / n
    if not math.isfinite(step) or step <= 0:
        return [low]
    size = 10.0 ** math.floor(math.log10(step))
    step = next(size * factor for factor in (1, 2, 2.5, 5, 10) if size * factor >= step * 0.999)
    first = math.ceil(low / step) * step
    return [first + k * step + 0.0 for k in range(int((high + 1e-12 - first) / step) + 1)]
