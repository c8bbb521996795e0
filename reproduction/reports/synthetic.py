"""Tables and figures of the synthetic experiment."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..protocol import Row
from .figures import new_figure, save
from .pages import markdown_table, picture

__all__ = ["report", "surfaces"]

FloatArray = NDArray[np.float64]


def surfaces(rows: Sequence[Row], c1: Sequence[float], c2: Sequence[float]) -> dict[str, FloatArray]:
    """Return means over repetitions on the grid.

    Returns
    -------
    dict of str to ndarray of shape (len(c1), len(c2))
        "ratio" (C-LogReg over LogReg, the mean of the ratios), "deviation" (its standard deviation), "of_means" (the
        ratio of the means), "bayes" and "bayes_of_means" (the same two of the true rules), "differ" (share of rows on
        which argmax and rule differ).
    """
    names = ("ratio", "deviation", "of_means", "bayes", "bayes_of_means", "differ")
    out = {name: np.full((len(c1), len(c2)), np.nan) for name in names}
    for i, one in enumerate(c1):
        mine = [row for row in rows if float(row["C1"]) == one]
        if not mine:
            continue
        for j, two in enumerate(c2):
            column = {
                key: np.array([float(row[f"{key}_{two}"]) for row in mine])
                for key in ("base", "ours", "bayes_base", "bayes", "differ")
            }
            ratio = column["ours"] / column["base"]
            out["ratio"][i, j], out["deviation"][i, j] = ratio.mean(), ratio.std()
            out["of_means"][i, j] = column["ours"].mean() / column["base"].mean()
            out["bayes"][i, j] = np.mean(column["bayes"] / column["bayes_base"])
            out["bayes_of_means"][i, j] = column["bayes"].mean() / column["bayes_base"].mean()
            out["differ"][i, j] = column["differ"].mean()
    return out


def report(rows: Sequence[Row], c1: Sequence[float], c2: Sequence[float], folder: Path) -> dict[str, str]:
    """Return tables by title, and draw the figures."""
    found = surfaces(rows, c1, c2)
    return {
        "In short": _summary(found, c1, c2, len(rows) // len(c1)),
        "The paper's figure": picture(
            _surface(found["ratio"], c1, c2, folder), "Surface of the performance ratio over C1 and C2"
        ),
        "Heat maps": picture(
            _heat_maps(found, c1, c2, folder), "Estimated ratio, true ratio, and share of rows that differ"
        ),
        "C-LogReg over LogReg: mean of the ratios ± standard deviation": _table(
            found["ratio"], c1, c2, found["deviation"]
        ),
        "C-LogReg over LogReg: ratio of the means": _table(found["of_means"], c1, c2),
        "The true Bayes rules: mean of the ratios": _table(found["bayes"], c1, c2),
        "The true Bayes rules: ratio of the means": _table(found["bayes_of_means"], c1, c2),
        "Share of rows on which argmax and rule differ": _table(found["differ"], c1, c2),
    }


def _summary(found: dict[str, FloatArray], c1: Sequence[float], c2: Sequence[float], repetitions: int) -> str:
    ratio, bayes = found["ratio"], found["bayes"]
    falls = int(np.sum(np.diff(ratio[:, 1:], axis=0) < 0)), ratio[1:, 1:].size
    rises = int(np.sum(np.diff(ratio, axis=1) > 0)), ratio[:, 1:].size
    return "\n".join(
        [
            f"- {repetitions} repetitions on a grid of {len(c1)} values of C1 and {len(c2)} of C2.",
            f"- At C2 = 0 the ratio is {ratio[:, 0].min():.4f} to {ratio[:, 0].max():.4f}: both classifiers are equal.",
            f"- It falls from one C1 to the next in {falls[0]} of {falls[1]} steps, and rises from one C2 to the next "
            f"in {rises[0]} of {rises[1]}.",
            f"- In the corner C1 = {c1[0]}, C2 = {c2[-1]} the mean of the ratios is {ratio[0, -1]:.3f} and the ratio "
            f"of the means {found['of_means'][0, -1]:.3f}; for the true Bayes rules {bayes[0, -1]:.3f} and "
            f"{found['bayes_of_means'][0, -1]:.3f}. Elsewhere the two differ by at most "
            f"{_largest_elsewhere(np.abs(ratio - found['of_means'])):.3f} (C1 of at least {c1[1]}).",
            f"- The largest distance between estimated and true ratio is {np.max(np.abs(ratio - bayes)):.3f} for "
            f"C1 = {c1[0]}, and {np.max(np.abs(ratio - bayes)[3:]):.3f} for C1 of at least {c1[3]}.",
        ]
    )


def _largest_elsewhere(values: FloatArray) -> float:
    return float(np.max(values[1:]))


def _table(values: FloatArray, c1: Sequence[float], c2: Sequence[float], spread: FloatArray | None = None) -> str:
    rows = []
    for i, one in enumerate(c1):
        cells = [f"{value:.3f}" for value in values[i]]
        if spread is not None:
            cells = [f"{cell} ± {s:.3f}" for cell, s in zip(cells, spread[i], strict=True)]
        rows.append([f"C1 = {one}", *cells])
    return markdown_table(["", *(f"C2 = {two}" for two in c2)], rows)


def _surface(ratio: FloatArray, c1: Sequence[float], c2: Sequence[float], folder: Path) -> str:
    import mpl_toolkits.mplot3d  # noqa: F401  # gives figures the 3-D projection

    figure = new_figure(7.5, 6)
    ax = figure.add_subplot(projection="3d")
    x, y = np.meshgrid(np.arange(len(c1)), c2, indexing="ij")
    ax.plot_surface(x, y, ratio, cmap="coolwarm", edgecolor="0.3", linewidth=0.3, antialiased=True)
    ax.set_xticks(np.arange(len(c1)), [str(one) for one in c1], fontsize=8)
    ax.set_xlabel("C1 (skew of the data)")
    ax.set_ylabel("C2 (skew of the metric)")
    ax.set_zlabel("C-LogReg over LogReg")
    ax.view_init(elev=24, azim=40)
    ax.set_box_aspect(None, zoom=0.85)
    return save(figure, folder, "synthetic_surface")


def _heat_maps(found: dict[str, FloatArray], c1: Sequence[float], c2: Sequence[float], folder: Path) -> str:
    figure = new_figure(14, 4.6)
    axes = figure.subplots(1, 3, sharey=True)
    top = max(np.nanmax(found["ratio"]), np.nanmax(found["bayes"]))
    _heat_map(figure, axes[0], found["ratio"], c1, c2, "C-LogReg over LogReg", (1.0, top))
    _heat_map(figure, axes[1], found["bayes"], c1, c2, "true Bayes rules: weighted over argmax", (1.0, top))
    _heat_map(figure, axes[2], found["differ"], c1, c2, "share of rows that differ", (0.0, 1.0))
    axes[0].set_ylabel("C2")
    return save(figure, folder, "synthetic_heat")


def _heat_map(
    figure: Any,
    ax: Any,
    values: FloatArray,
    c1: Sequence[float],
    c2: Sequence[float],
    title: str,
    limits: tuple[float, float],
) -> None:
    image = ax.imshow(values.T, origin="lower", aspect="auto", cmap="viridis", vmin=limits[0], vmax=limits[1])
    middle = sum(limits) / 2
    for (i, j), value in np.ndenumerate(values):
        colour = "black" if value > middle else "white"
        ax.text(i, j, f"{value:.2f}", ha="center", va="center", fontsize=7.5, color=colour)
    ax.set_xticks(range(len(c1)), [str(one) for one in c1])
    ax.set_yticks(range(len(c2)), [str(two) for two in c2])
    ax.set_xlabel("C1")
    ax.set_title(title, fontsize=10)
    figure.colorbar(image, ax=ax)
