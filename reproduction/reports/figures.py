"""Common parts of all figures: matplotlib imported late and without a display, PNG and SVG files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

__all__ = ["COLOURS", "new_figure", "save"]

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")  # safe for the colour-blind


def new_figure(width: float, height: float) -> Any:
    """Return an empty figure; without pyplot, so that no window and no global state is touched."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("figures need matplotlib: pip install --group reproduction.") from error
    return Figure(figsize=(width, height), layout="constrained")


def save(figure: Any, folder: Path, name: str) -> str:
    """Write ``<name>.png`` and ``<name>.svg`` and return the first's name."""
    from matplotlib import rc_context

    figure.savefig(folder / f"{name}.png", dpi=130)
    with rc_context({"svg.hashsalt": "metricwise"}):  # equal figures are equal files
        figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
    return f"{name}.png"
