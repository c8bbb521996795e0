"""Draws the picture of the page on fairness by group: `python docs/_ext/fair_figure.py`."""

from pathlib import Path

import matplotlib as mpl
import numpy as np

import metricwise as mw

mpl.use("Agg")

from matplotlib import pyplot as plt

INK, MUTED, BLUE, GREEN, RED = "#1f2933", "#6b7785", "#2f6db5", "#1b7f5c", "#b5462f"
BOUND = 0.1


def applicants(seed, n):
    """Two groups of different size and base rate: probabilities, labels, groups."""
    rng = np.random.default_rng(seed)
    group = np.where(rng.random(n) < 0.35, "blue", "green")
    score = rng.normal(np.where(group == "blue", -0.9, 0.2), 1.2)
    p = 1 / (1 + np.exp(-1.4 * score))
    return p, (rng.random(n) < p).astype(int), group


def gap(rule, p, group):
    """The largest difference of predicted shares between groups, in expectation over draws."""
    decided = rule.distribution(p, group)[:, 1]
    shares = [decided[group == g].mean() for g in np.unique(group)]
    return max(shares) - min(shares)


def left_panel(ax):
    """What a gap costs: rules that see the group, and rules that do not."""
    p, y, group = applicants(0, 4000)
    fixed = {"confidence": None, "strategy": mw.Strategy(confusion="labels", recalibrate=False, randomized=True)}
    for aware, color, name in ((True, BLUE, "a rule for each group"), (False, MUTED, "one rule for all")):
        points = []
        for bound in np.linspace(0.0, 0.36, 13):
            groups = mw.Sensitive(group, group_aware=aware)
            text = f"demographic_parity <= {bound:.4f}"
            solution = mw.optimize(p, y, "accuracy", subject_to=text, sensitive_features=groups, **fixed)
            points.append((solution.constraints[0].value, solution.value))
        ax.plot(*np.array(points).T, color=color, linewidth=1.8, label=name)
    plain = (p > 0.5).astype(int)
    shares = [plain[group == g].mean() for g in ("blue", "green")]
    ax.plot(abs(shares[0] - shares[1]), np.mean(plain == y), "o", color=INK, markersize=6, label="argmax")
    ax.set(xlabel="largest difference of predicted shares", ylabel="accuracy", xlim=(-0.01, 0.4))
    ax.set_title("What demographic parity costs, on the given rows", fontsize=10)
    ax.legend(frameon=False, loc="lower right")


def right_panel(ax, repeats=60, n=2000):
    """The gap of all rows, over repetitions, with and without confidence."""
    new_p, _, new_group = applicants(99, 60_000)
    values = {None: [], 0.95: []}
    for seed in range(repeats):
        p, y, group = applicants(seed, n)
        for confidence, own in values.items():
            solution = mw.optimize(
                p, y, "accuracy", subject_to=f"demographic_parity <= {BOUND}", sensitive_features=group,
                confidence=confidence,
            strategy=mw.Strategy(confusion="labels", recalibrate=False, randomized=True))
            own.append(gap(solution.rule, new_p, new_group))
    bins = np.linspace(0.0, 0.2, 31)
    for (confidence, own), color in zip(values.items(), (RED, GREEN), strict=True):
        kept = np.mean(np.array(own) <= BOUND)
        ax.hist(own, bins, color=color, alpha=0.55, label=f"confidence={confidence}: kept {kept:.0%}")
    tallest = ax.get_ylim()[1]
    ax.vlines(BOUND, 0, tallest, color=RED, linewidth=1.0, linestyle=(0, (4, 3)))
    ax.set(xlabel=f"difference of predicted shares of all rows, at a bound of {BOUND}", ylabel="repetitions")
    ax.set(xlim=(0.0, 0.2), ylim=(0.0, 1.25 * tallest))  # the legend is above the bars and the bound
    ax.set_title(f"{repeats} samples of {n:,} rows: what becomes of the bound", fontsize=10)
    ax.legend(frameon=False)


def main():
    plt.rcParams.update({"font.size": 9, "text.color": INK, "axes.labelcolor": INK, "svg.hashsalt": "metricwise"})
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 4.2), layout="constrained")
    left_panel(left)
    right_panel(right)
    for ax in (left, right):
        ax.spines[["top", "right"]].set_visible(False)
    path = Path(__file__).parents[1] / "_static" / "fair.svg"
    figure.savefig(path, metadata={"Date": None})
    return figure


if __name__ == "__main__":
    main()
