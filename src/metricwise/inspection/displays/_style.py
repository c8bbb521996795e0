"""Axes, colours, marks and text of all displays. matplotlib is imported here, inside functions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...core.errors import MissingDependency

__all__ = [
    "ARGMAX",
    "BAND",
    "BETTER",
    "GREY",
    "INCHES_PER_LETTER",
    "INK",
    "LINES",
    "RULE",
    "WORSE",
    "bare",
    "font_for",
    "legend",
    "legend_beside",
    "mark_argmax",
    "mark_rule",
    "new_axes",
    "plain_text",
    "pyplot",
    "short",
]

# Okabe and Ito's palette, which the colour-blind can tell apart. What is shown in two colours differs in lightness,
# line or marker as well, for print in grey.
INK, GREY, BAND = "#333333", "#767676", "#e6e6e6"
RULE, ARGMAX = "#0072b2", "#333333"
BETTER, WORSE = "#0072b2", "#e69f00"
LINES = (
    ("#0072b2", "-"),
    ("#d55e00", (0, (6, 2))),
    ("#009e73", (0, (1, 1.4))),
    ("#cc79a7", (0, (6, 2, 1, 2))),
    ("#56b4e9", (0, (3, 1.5))),
    ("#e69f00", (0, (8, 2, 1, 2, 1, 2))),
)
_MAX_LABEL_LENGTH = 28
INCHES_PER_LETTER = 0.08  # of names beside axes, in matplotlib's usual size

# Fonts with other scripts, tried after the one that is set.
_FALLBACK_FONTS = (
    "Noto Sans CJK JP",
    "Noto Sans CJK SC",
    "Noto Sans JP",
    "Source Han Sans",
    "IPAexGothic",
    "WenQuanYi Zen Hei",
    "Droid Sans Fallback",
    "Microsoft YaHei",
    "Yu Gothic",
    "Malgun Gothic",
    "PingFang HK",
    "Hiragino Sans",
    "Arial Unicode MS",
    "Unifont",
)


def pyplot() -> Any:
    """Return matplotlib.pyplot, or say how to get it."""
    try:
        from matplotlib import pyplot as plt
    except ImportError:
        raise MissingDependency("matplotlib is not installed: pip install 'metricwise[plot]'") from None
    return plt


def new_axes(ax: Any, **options: Any) -> tuple[Any, Any]:
    """Return the figure and the axes to draw on."""
    plt = pyplot()
    if ax is not None:
        return ax.figure, ax
    return plt.subplots(layout="constrained", **options)


def bare(ax: Any) -> None:
    """Leave only the spines that carry an axis."""
    ax.spines[["top", "right"]].set_visible(False)


def legend(ax: Any, **options: Any) -> Any:
    """Add a legend where something has a label."""
    if ax.get_legend_handles_labels()[0]:
        return ax.legend(**{"frameon": False, "fontsize": "small", **options})
    return None


def mark_argmax(ax: Any, x: float, y: float, label: str | None, color: str = ARGMAX) -> None:
    """Mark argmax: a hollow square."""
    ax.plot(x, y, "s", ms=7, mfc="white", mec=color, mew=1.5, linestyle="none", zorder=5, label=label)


def mark_rule(ax: Any, x: float, y: float, label: str | None, color: str = RULE) -> None:
    """Mark the rule: a filled circle."""
    ax.plot(x, y, "o", ms=8, mfc=color, mec="white", mew=1.2, linestyle="none", zorder=6, label=label)


def legend_beside(ax: Any) -> Any:
    """Add a legend to the right of the axes, where no line can run through it."""
    return legend(ax, loc="upper left", bbox_to_anchor=(1.0, 1.0))


def short(label: Any, longest: int = _MAX_LABEL_LENGTH) -> str:
    """Return a label as one line of plain text, with dots in the middle of a long one."""
    text = " ".join(str(label).split())
    if len(text) > longest:
        half = (longest - 1) // 2
        text = f"{text[: longest - 1 - half]}…{text[-half:]}"
    return plain_text(text)


def plain_text(text: str) -> str:
    """Return text in which matplotlib finds no formula."""
    return text.replace("$", r"\$")


def font_for(labels: Iterable[str]) -> dict[str, Any]:
    """Return text options for labels in scripts that the usual font lacks: installed fonts that have them."""
    letters = {ord(letter) for label in labels for letter in label if ord(letter) > 0x52F}
    if not letters:
        return {}
    import matplotlib as mpl
    from matplotlib import font_manager

    installed = {font.name for font in font_manager.fontManager.ttflist}
    families = mpl.rcParams["font.family"]
    return {"fontfamily": [*families, *(name for name in _FALLBACK_FONTS if name in installed)]}
