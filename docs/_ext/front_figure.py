"""Draws the picture of the front page and the README: `python docs/_ext/front_figure.py`.

One model, two ways to decide. The picture is drawn for light pages and for dark ones, wide and, for phones, narrow.
"""

from pathlib import Path

import matplotlib as mpl
import numpy as np

import metricwise as mw

mpl.use("Agg")

from matplotlib import pyplot as plt
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, recall_score
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

STATIC = Path(__file__).parents[1] / "_static"
CLASSES = ("common", "less common", "rare")
HUES = ("#4477aa", "#ccaa44", "#cc5566")
MARKERS = ("o", "s", "^")
THEMES = {
    "": {"ink": "#1f2933", "muted": "#6b7785", "page": "white"},
    "-dark": {"ink": "#e6e9ee", "muted": "#a3adb8", "page": "none"},
}
SIZES = {"front": (10.4, 3.5), "front-narrow": (4.6, 4.6)}
EDGE = 3.6
SHOWN = 450


def rows(n, seed):
    """Three overlapping clouds: four fifths of the rows are of one class, one in twenty of another."""
    rng = np.random.default_rng(seed)
    y = rng.choice(3, size=n, p=[0.8, 0.15, 0.05])
    centres = np.array([[0.0, -0.2], [1.5, 0.9], [-1.1, 1.4]])
    spread = np.array([1.0, 0.8, 0.65])
    return centres[y] + spread[y, None] * rng.normal(size=(n, 2)), y


def decisions():
    """Return new rows and, for argmax and the rule, what is decided of them and of every point of the plane."""
    X, y = rows(6000, 0)
    X_new, y_new = rows(20_000, 1)
    model = make_pipeline(PolynomialFeatures(2), LogisticRegression(max_iter=500))
    rule = mw.optimize(cross_val_predict(model, X, y, method="predict_proba"), y, "macro_f1").rule
    model.fit(X, y)
    axis = np.linspace(-EDGE, EDGE, 300)
    plane = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    ways = {"argmax": lambda points: model.predict(points)}
    ways["metricwise"] = lambda points: rule.predict(model.predict_proba(points))
    found = {name: (decide(X_new), decide(plane).reshape(len(axis), -1)) for name, decide in ways.items()}
    return X_new, y_new, found


def regions(ax, X, y, plane, title, ink, muted):
    extent = (-EDGE, EDGE, -EDGE, EDGE)
    for k, hue in enumerate(HUES):
        ax.contourf(plane == k, levels=[0.5, 1.5], extent=extent, colors=[hue], alpha=0.28)
        ax.contour(plane == k, levels=[0.5], extent=extent, colors=ink, linewidths=1.0)
    for k, (hue, marker) in enumerate(zip(HUES, MARKERS, strict=True)):
        own = X[:SHOWN][y[:SHOWN] == k]
        ax.scatter(*own.T, s=11, color=hue, marker=marker, linewidths=0, alpha=0.85)
    ax.set(xlim=(-EDGE, EDGE), ylim=(-EDGE, EDGE), xticks=[], yticks=[])
    ax.set_title(title, color=ink, fontsize=11)
    ax.spines[:].set_color(muted)


def recalls(ax, y, found, ink, muted):
    for shift, (name, (decided, _)), alpha in zip((0.2, -0.2), found.items(), (0.4, 1.0), strict=True):
        values = recall_score(y, decided, average=None)
        places = np.arange(3)[::-1] + shift
        ax.barh(places, values, 0.36, color=HUES, alpha=alpha)
        for place, value in zip(places, values, strict=True):
            ax.annotate(
                f"{value:.2f}  {name}", (value, place), (4, 0), textcoords="offset points", va="center", color=ink
            )
    ax.set(xlim=(0, 1.45), xticks=[], yticks=np.arange(3)[::-1], yticklabels=CLASSES)
    ax.set_title("recall of each class", color=ink, fontsize=11)
    ax.tick_params(colors=ink, length=0)
    ax.spines[["top", "right", "bottom"]].set_visible(False)
    ax.spines["left"].set_color(muted)


def panels(figure):
    """Return the axes of argmax, of the rule and of the recalls: in a row, or in a narrow figure the last one below."""
    width, height = figure.get_size_inches()
    if width > 2 * height:
        return figure.subplots(1, 3, width_ratios=[1, 1, 1.15])
    top, bottom = figure.subfigures(2, 1)
    return [*top.subplots(1, 2), bottom.subplots()]


def draw(X, y, found, size, *, ink, muted, page):
    figure = plt.figure(figsize=size, layout="constrained", facecolor=page)
    axes = panels(figure)
    for ax, (name, (decided, plane)) in zip(axes, found.items(), strict=False):
        regions(ax, X, y, plane, f"{name}: macro F1 {f1_score(y, decided, average='macro'):.2f}", ink, muted)
    recalls(axes[2], y, found, ink, muted)
    for ax in axes:
        ax.set_facecolor("none")
    return figure


def main():
    plt.rcParams.update({"font.size": 9, "svg.hashsalt": "metricwise"})
    X, y, found = decisions()
    for shape, size in SIZES.items():
        for suffix, theme in THEMES.items():
            figure = draw(X, y, found, size, **theme)
            figure.savefig(STATIC / f"{shape}{suffix}.svg", metadata={"Date": None})
            plt.close(figure)


if __name__ == "__main__":
    main()
