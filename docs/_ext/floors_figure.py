"""Draws the picture of the page on floors and ceilings: `python docs/_ext/floors_figure.py`."""

from pathlib import Path

import matplotlib as mpl
import numpy as np

import metricwise as mw

mpl.use("Agg")

from matplotlib import pyplot as plt
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

INK, MUTED, BLUE, GREEN, RED = "#1f2933", "#6b7785", "#2f6db5", "#1b7f5c", "#b5462f"
FLOOR = 0.8


def data():
    """Out-of-fold probabilities of the rows that rules are fitted on, and probabilities of new rows."""
    X, digit = load_digits(return_X_y=True)
    y = np.where(digit == 1, "one", "other")
    X, X_new, y, y_new = train_test_split(X[:, ::3], y, test_size=0.4, stratify=y, random_state=0)
    logistic = make_pipeline(StandardScaler(), LogisticRegression(max_iter=500))
    proba = cross_val_predict(logistic, X, y, method="predict_proba")
    return proba, y, logistic.fit(X, y).predict_proba(X_new), y_new


def on(rule, proba, y):
    found = mw.evaluate(rule, proba, y, ["precision", "recall"], pos_label="one")
    return found["precision"].value.estimate, found["recall"].value.estimate


def left_panel(ax, proba, y, new_proba, y_new):
    frontier = mw.trade_off(proba, y, "recall", "precision", pos_label="one", n_points=60)
    ax.plot(frontier.others, frontier.values, color=BLUE, linewidth=1.8, label="best recall, rows given")
    new = np.array([on(rule, new_proba, y_new) for rule in frontier.rules])
    new = new[new[:, 1] > 0]  # a rule that finds no new row has no precision
    ax.plot(*new.T, color=MUTED, linewidth=1.0, label="the same rules, new rows")
    ax.plot(frontier.baseline[1], frontier.baseline[0], "o", color=INK, markersize=6, label="argmax")
    ax.axvline(FLOOR, color=RED, linewidth=1.0, linestyle=(0, (4, 3)))
    ax.annotate("floor", (FLOOR, 0.02), (4, 0), textcoords="offset points", color=RED)
    for confidence, color, name in ((None, RED, "confidence=None"), (0.95, GREEN, "confidence=0.95")):
        rule = mw.optimize(
            proba, y, "recall", pos_label="one", subject_to=f"precision >= {FLOOR}", confidence=confidence
        ).rule
        ax.plot(*on(rule, proba, y), "D", color=color, markersize=7, label=name)
        ax.plot(*on(rule, new_proba, y_new), "D", color=color, markersize=7, markerfacecolor="white")
    ax.set(xlabel="precision", ylabel="recall", xlim=(0.35, 1.02), ylim=(0, 1.02))
    ax.set_title("Digit one or not: filled on the given rows, hollow on new ones", fontsize=10)
    ax.legend(frameon=False, loc="lower left")


def right_panel(ax, repeats=200, n=2000):
    """Precision of all rows, over repetitions, with and without confidence."""
    rng = np.random.default_rng(0)
    values = {None: [], 0.95: []}
    for _ in range(repeats):
        p = rng.beta(1, 3, n)
        y = (rng.random(n) < p).astype(int)
        for confidence, own in values.items():
            solution = mw.optimize(p, y, "recall", subject_to="precision >= 0.6", confidence=confidence)
            # The precision of "p > t" under Beta(1, 3), exactly: the mean of p above the threshold.
            t = solution.rule.threshold
            own.append((1 + 3 * t) / 4)
    bins = np.linspace(0.52, 0.78, 53)
    for (confidence, own), color in zip(values.items(), (RED, GREEN), strict=True):
        kept = np.mean(np.array(own) >= 0.6)
        label = f"confidence={confidence}: kept {kept:.0%}"
        ax.hist(own, bins, color=color, alpha=0.55, label=label)
    ax.axvline(0.6, color=RED, linewidth=1.0, linestyle=(0, (4, 3)))
    ax.set(xlabel="precision of all rows, at a floor of 0.6", ylabel="repetitions", xlim=(0.52, 0.78))
    ax.set_title(f"{repeats} samples of {n:,} rows: what becomes of the floor", fontsize=10)
    ax.legend(frameon=False)


def main():
    plt.rcParams.update({"font.size": 9, "text.color": INK, "axes.labelcolor": INK, "svg.hashsalt": "metricwise"})
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 4.2), layout="constrained")
    left_panel(left, *data())
    right_panel(right)
    for ax in (left, right):
        ax.spines[["top", "right"]].set_visible(False)
    path = Path(__file__).parents[1] / "_static" / "floors.svg"
    figure.savefig(path, metadata={"Date": None})
    return figure


if __name__ == "__main__":
    main()
