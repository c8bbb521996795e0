"""Draws the picture of the page on geometry: `python docs/_ext/geometry_figure.py`."""

from pathlib import Path

import matplotlib as mpl
import numpy as np

import metricwise as mw
from metricwise.geometry import FeasibleSet, does_weighting_suffice

mpl.use("Agg")

from matplotlib import pyplot as plt

INK, MUTED, FILL = "#1f2933", "#6b7785", "#c9dcf0"
RECALLS = (mw.metrics.Recall(index=0), mw.metrics.Recall(index=1))


def place(feasible, C):
    return [float(np.sum(feasible.functional(axis) * C)) for axis in RECALLS]


def panel(ax, feasible, title, offsets):
    outline = feasible.boundary_2d(*RECALLS, n=360)
    ax.fill(*outline.T, facecolor=FILL, edgecolor="#2f6db5", linewidth=1.5)
    ax.plot([0, 1], [0, 1], color=MUTED, linewidth=0.8, linestyle=(0, (4, 3)), zorder=1)
    answer = does_weighting_suffice("min_recall", feasible)
    coin = np.repeat(feasible.priors[:, :, None] / 3, 3, axis=2)
    marks = {
        "argmax": (feasible.vertex(-np.eye(3)), "o", "#b5462f"),
        "best smallest recall": (answer.decomposition.confusion, "D", "#1b7f5c"),
        "fair coin": (coin, "s", INK),
    }
    for name, (C, marker, color) in marks.items():
        x, y = place(feasible, C)
        ax.plot(x, y, marker, color=color, markersize=6, zorder=3)
        dx, dy, side = offsets[name]
        ax.annotate(name, (x, y), (dx, dy), textcoords="offset points", ha=side, color=color, fontsize=9)
    ax.set(title=title, xlabel="recall of class 0", ylabel="recall of class 1", aspect="equal")
    ax.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03), xticks=[0, 0.5, 1], yticks=[0, 0.5, 1])
    ax.title.set_fontsize(10)
    ax.spines[["top", "right"]].set_visible(False)


def main():
    plt.rcParams.update({"font.size": 9, "text.color": INK, "axes.labelcolor": INK, "svg.hashsalt": "metricwise"})
    many = np.random.default_rng(0).dirichlet([1.2, 1.0, 0.8], size=2000)
    leaves = [[0.6, 0.3, 0.1], [0.3, 0.4, 0.3], [0.5, 0.1, 0.4]]
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.4, 4.2), layout="constrained")
    labels = {"argmax": (0, -15, "center"), "best smallest recall": (-9, 1, "right"), "fair coin": (8, -4, "left")}
    panel(left, FeasibleSet.from_proba(many), "2,000 rows, all different", labels)
    labels |= {"argmax": (8, -3, "left")}
    panel(right, FeasibleSet.from_proba(leaves, sample_weight=[5, 3, 2]), "a tree with three leaves", labels)
    path = Path(__file__).parents[1] / "_static" / "geometry.svg"
    figure.savefig(path, metadata={"Date": None})
    return figure


if __name__ == "__main__":
    main()
