"""Two pictures: what each method gains by metric, and what was promised against what came true."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from .report import LARGE, gains, present

__all__ = ["draw"]

_EMPHASIS = {"auto": ("#c0392b", "D"), "nelder_mead": ("#7f8c8d", "s"), "coordinate": ("#95a5a6", "^")}
_COVERAGE = {"the interval covers the measured gain": "#1f77b4", "it does not": "#c0392b"}
_RECIPES = ("#1f77b4", "#5b9bd5", "#2e8b57", "#7cc08f", "#8e6bbf", "#bfa3dd")


def draw(rows: pd.DataFrame, folder: Path) -> None:
    """Write both figures."""
    folder.mkdir(parents=True, exist_ok=True)
    _gain_by_metric(rows).savefig(folder / "generalisation-gain.png", dpi=110, metadata={"Software": None})
    _promise(rows).savefig(folder / "generalisation-promise.png", dpi=110, metadata={"Software": None})


def _gain_by_metric(rows: pd.DataFrame) -> Any:
    from matplotlib.figure import Figure

    methods = [method for method in present(rows) if method != "argmax"]
    table = gains(rows, methods).groupby(rows["metric"]).mean()
    table = table.loc[table["auto"].sort_values().index]
    figure = Figure(figsize=(8.5, 5.2), layout="constrained")
    axes = figure.subplots()
    colours = iter(_RECIPES)
    for method in methods:
        colour, marker = _EMPHASIS.get(method) or (next(colours), "o")
        size, order = (70, 3) if method == "auto" else (34, 2)
        axes.scatter(table[method], np.arange(len(table)), s=size, c=colour, marker=marker, label=method, zorder=order)
    axes.axvline(0, color="black", linewidth=0.8)
    axes.set_yticks(np.arange(len(table)), table.index)
    axes.set_xlabel("mean gain over argmax on held-out rows")
    axes.grid(axis="x", color="0.9")
    axes.legend(loc="lower right", fontsize=9, frameon=False)
    return figure


def _promise(rows: pd.DataFrame) -> Any:
    from matplotlib.figure import Figure

    some = rows[(rows["n_test"] >= LARGE) & (rows["recipe"] != "argmax")]
    metrics = sorted(set(some["metric"]))
    figure = Figure(figsize=(10, 5.4), layout="constrained")
    panels = figure.subplots(2, -(-len(metrics) // 2), squeeze=False)
    for axes, metric in zip(panels.flat, metrics, strict=False):
        part = some[some["metric"] == metric]
        truth = part["auto"] - part["argmax"]
        half = (part["gain_high"] - part["gain_low"]) / 2
        inside = (truth >= part["gain_low"] - 1e-9) & (truth <= part["gain_high"] + 1e-9)
        for mask, (label, colour) in zip((inside, ~inside), _COVERAGE.items(), strict=True):
            axes.errorbar(
                truth[mask],
                part["gain"][mask],
                half[mask],
                fmt="o",
                ms=2.5,
                lw=0.4,
                color=colour,
                alpha=0.6,
                label=label,
            )
        ends = [min(truth.min(), part["gain"].min()), max(truth.max(), part["gain"].max())]
        axes.plot(ends, ends, color="black", linewidth=0.8, label="promised as measured")
        axes.set_title(f"{metric}: {100 * inside.mean():.0f} % of {len(part)}", fontsize=9)
        axes.tick_params(labelsize=8)
    for axes in panels.flat[len(metrics) :]:
        axes.set_axis_off()
    figure.legend(*panels.flat[0].get_legend_handles_labels(), loc="outside upper center", ncols=3, frameon=False)
    figure.supxlabel("gain on the large held-out part", fontsize=10)
    figure.supylabel("Solution.gain with its 95 % interval", fontsize=10)
    return figure
