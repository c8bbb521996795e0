"""Draws the picture of the page on abstentions: `python docs/_ext/abstain_figure.py`."""

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


def data():
    """Out-of-fold probabilities of the rows that rules are fitted on, and probabilities of new rows."""
    X, y = load_digits(return_X_y=True)
    X, X_new, y, y_new = train_test_split(X[:, ::3], y, test_size=0.4, stratify=y, random_state=0)
    logistic = make_pipeline(StandardScaler(), LogisticRegression(max_iter=500))
    proba = cross_val_predict(logistic, X, y, method="predict_proba")
    return proba, y, logistic.fit(X, y).predict_proba(X_new), y_new


def on(rule, proba, y):
    """Share abstained, and accuracy of the others."""
    predicted = rule.predict(proba)
    decided = predicted != -1
    return np.mean(~decided), np.mean(predicted[decided] == y[decided])


def left_panel(ax, proba, y, new_proba, y_new):
    options = {"abstain": True, "strategy": mw.Strategy(confusion="expected")}
    curve = mw.trade_off(proba, y, "accuracy", "abstained", n_points=16, **options)
    ax.plot(curve.others, curve.values, color=BLUE, linewidth=1.8, label="best accuracy, rows given")
    new = np.array([on(rule, new_proba, y_new) for rule in curve.rules])
    ax.plot(*new.T, color=MUTED, linewidth=1.0, label="the same rules, new rows")
    ax.plot(0.0, curve.baseline[0], "o", color=INK, markersize=6, label="argmax", clip_on=False)
    costed = mw.optimize(proba, y, "accuracy", abstain=0.2).rule
    bounded = mw.optimize(proba, y, "accuracy", subject_to="abstained <= 0.1", **options).rule
    for rule, color, name in ((costed, GREEN, "abstain=0.2"), (bounded, RED, "abstained <= 0.1")):
        ax.plot(*on(rule, proba, y), "D", color=color, markersize=7, label=name)
        ax.plot(*on(rule, new_proba, y_new), "D", color=color, markersize=7, markerfacecolor="white")
    ax.axvline(0.1, color=RED, linewidth=1.0, linestyle=(0, (4, 3)))
    ax.set(xlabel="share abstained", ylabel="accuracy of the decided rows", xlim=(0, 0.6), ylim=(0.89, 1.003))
    ax.set_title("Ten digits: filled on the given rows, hollow on new ones", fontsize=10)
    ax.legend(frameon=False, loc="lower right")


def right_panel(ax, n=4000):
    """Loans: what is decided by the amount of each."""
    rng = np.random.default_rng(0)
    amount, risk = rng.lognormal(8, 0.9, n), rng.beta(1, 9, n)
    outcome = np.where(rng.random(n) < risk, "bad", "good")
    costs = np.column_stack([0.6 * amount, 400 + 0.02 * amount])
    proba = np.column_stack([risk, 1 - risk])
    rule = mw.optimize(proba, outcome, "cost", cost=costs).rule
    predicted = rule.predict(proba, cost=costs)
    mean = costs.mean(axis=0)
    table = mw.metrics.Cost([[0.0, mean[0]], [mean[1], 0.0]])
    one = mw.optimize(proba, outcome, table).rule
    some = slice(0, 700)
    for label, color in (("good", BLUE), ("bad", RED)):
        own = predicted[some] == label
        words = "pay" if label == "good" else "refuse"
        ax.scatter(amount[some][own], risk[some][own], s=7, color=color, alpha=0.5, label=words, linewidths=0)
    ax.axhline(1 - one.threshold, color=MUTED, linewidth=1.2, linestyle=(0, (4, 3)), label="one table of mean costs")
    paid = {name: _cost(costs, outcome, own) for name, own in (("row", predicted), ("table", one.predict(proba)))}
    plain = _cost(costs, outcome, np.where(risk > 0.5, "bad", "good"))
    ax.set(xscale="log", xlabel="amount", ylabel="probability that it is not paid back", ylim=(0, 0.5))
    title = f"Mean cost: argmax {plain:.0f}, one table {paid['table']:.0f}, costs per row {paid['row']:.0f}"
    ax.set_title(title, fontsize=10)
    ax.legend(frameon=True, loc="upper right", markerscale=2)


def _cost(costs, outcome, predicted):
    return np.mean(np.where(predicted == outcome, 0.0, np.where(outcome == "bad", costs[:, 0], costs[:, 1])))


def main():
    plt.rcParams.update({"font.size": 9, "text.color": INK, "axes.labelcolor": INK, "svg.hashsalt": "metricwise"})
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 4.2), layout="constrained")
    left_panel(left, *data())
    right_panel(right)
    for ax in (left, right):
        ax.spines[["top", "right"]].set_visible(False)
    path = Path(__file__).parents[1] / "_static" / "abstain.svg"
    figure.savefig(path, metadata={"Date": None})
    return figure


if __name__ == "__main__":
    main()
