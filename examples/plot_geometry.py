"""
The feasible set of confusion matrices
======================================

Given the probabilities of a model, every rule has a confusion matrix. The matrices of all rules, including randomised
rules, form a convex set, and the best rule for a metric is where its level lines touch the set. With two classes the
set can be drawn. It shows why one threshold is optimal for F1, and why the smallest recall of a small tree needs a
randomised rule.
"""

# %%
# Two models of the same data
# ---------------------------
# A logistic regression has a different probability for nearly every row. A tree with three leaves has only three
# probabilities.

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import linprog
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import recall_score
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeClassifier

import metricwise as mw
from metricwise.geometry import FeasibleSet, does_weighting_suffice

X, y = make_classification(
    9000, n_features=6, n_informative=4, weights=[0.7], class_sep=0.6, random_state=6
)
X_train, X_rest, y_train, y_rest = train_test_split(
    X, y, test_size=2 / 3, stratify=y, random_state=0
)
X_rule, X_test, _, y_test = train_test_split(
    X_rest, y_rest, test_size=0.5, stratify=y_rest, random_state=0
)
logistic = LogisticRegression().fit(X_train, y_train)
tree = DecisionTreeClassifier(max_leaf_nodes=3, random_state=0).fit(X_train, y_train)

# %%
# The feasible sets
# -----------------
# The rows of a confusion matrix sum to the class shares for every rule. With two classes this leaves two degrees of
# freedom, the two recalls. :class:`metricwise.geometry.FeasibleSet` computes the outline of the set. Its upper edge is
# the ROC curve expected from the probabilities, from right to left.

recalls = mw.metrics.Recall(index=0), mw.metrics.Recall(index=1)
models = {"logistic": logistic, "tree": tree}
sets = {
    name: FeasibleSet.from_proba(model.predict_proba(X_rule))
    for name, model in models.items()
}
outlines = {
    name: feasible.boundary_2d(*recalls, n=720) for name, feasible in sets.items()
}


def place(feasible, C):
    """The two recalls of a confusion matrix."""
    return [float(np.sum(feasible.functional(recall) * C)) for recall in recalls]


# %%
# F1: one threshold is optimal
# ----------------------------
# Each vertex of a set is attained by one threshold. The best F1 is at a vertex of the first set.

best_f1 = does_weighting_suffice("f1", sets["logistic"])
print(best_f1)
print(f"the threshold is {best_f1.decomposition.rule().threshold:.2f}")

# %%
# Smallest recall: a randomised rule is optimal
# ---------------------------------------------
# The level lines of the smaller recall have a corner on the diagonal. They touch the set of the tree in the middle of
# an edge. The rules at its ends favour one class each, and only a mixture of both has equal recalls.

best_worst = does_weighting_suffice("min_recall", sets["tree"])
print(best_worst)
mixture = best_worst.decomposition.rule()
for rule, weight in zip(mixture.rules, mixture.weights, strict=True):
    print(f"with probability {weight:.2f}: threshold {rule.threshold:.2f}")

# %%
# A linear programme confirms this. Its variables are the probability of predicting class 1 in each of the three leaves,
# and the smaller recall, which is maximised.

leaves, counts = np.unique(tree.predict_proba(X_rule)[:, 1], return_counts=True)
ones, zeros = (
    counts * leaves / np.sum(counts * leaves),
    counts * (1 - leaves) / np.sum(counts * (1 - leaves)),
)
programme = linprog(
    c=[0, 0, 0, -1],
    A_ub=[[*-ones, 1], [*zeros, 1]],
    b_ub=[0, 1],
    bounds=[(0, 1)] * 3 + [(None, None)],
)
print(
    f"best worst recall: {min(place(sets['tree'], best_worst.decomposition.confusion)):.4f}"
)
print(f"linear programme:  {-programme.fun:.4f}")

# %%
# Where the level lines touch the sets
# ------------------------------------
# F1 is a function of the two recalls and the share of class 1, so its level lines can be computed with NumPy. The
# orange line is the highest level line that touches the set. The hollow diamonds are the two rules of the mixture; one
# of them is argmax.

share = sets["logistic"].priors[0, 1]
recall_0, recall_1 = np.meshgrid(np.linspace(0, 1, 401), np.linspace(0, 1, 401))
values = {
    "logistic": 2
    * share
    * recall_1
    / (share * (1 + recall_1) + (1 - share) * (1 - recall_0)),
    "tree": np.minimum(recall_0, recall_1),
}
best = {"logistic": best_f1, "tree": best_worst}
titles = {
    "logistic": "logistic regression: F1",
    "tree": "tree with three leaves: worst recall",
}

figure, axes = plt.subplots(1, 2, figsize=(9.6, 5.2), layout="constrained", sharey=True)
for ax, (name, feasible) in zip(axes, sets.items(), strict=True):
    ax.fill(
        *outlines[name].T,
        facecolor="#dbe8f4",
        edgecolor="#0072b2",
        linewidth=1.6,
        label="reachable",
    )
    lines = ax.contour(
        recall_0,
        recall_1,
        values[name],
        np.arange(0.1, 1, 0.1),
        colors="#8a8a8a",
        linewidths=0.8,
    )
    ax.clabel(lines, fontsize=8)
    best_value = best[name].solution.value
    ax.contour(
        recall_0, recall_1, values[name], [best_value], colors="#d55e00", linewidths=1.6
    )
    ax.plot(
        *place(feasible, feasible.vertex(-np.eye(2))),
        "o",
        color="#333333",
        markersize=8,
        label="argmax",
        zorder=3,
    )
    label = f"best: {best_value:.2f}"
    ax.plot(
        *place(feasible, best[name].decomposition.confusion),
        "D",
        color="#d55e00",
        markersize=8,
        label=label,
    )
    ax.set(
        title=titles[name],
        xlabel="recall of class 0",
        aspect="equal",
        xlim=(-0.02, 1.02),
        ylim=(-0.02, 1.02),
    )
    ax.legend(loc="lower left")
for rule in mixture.rules:
    corner = place(sets["tree"], sets["tree"].vertex(rule.loss))
    axes[1].plot(*corner, "D", color="#d55e00", markerfacecolor="white", markersize=13)
axes[0].set_ylabel("recall of class 1")
plt.show()

# %%
# On new data
# -----------
# Recalls on the test rows are computed with scikit-learn. Each of the two rules favours one class. The mixture draws
# one of them for every row, and its smallest recall is higher than that of either rule. See also :doc:`/geometry`.

rules = {f"threshold {rule.threshold:.2f}": rule for rule in mixture.rules} | {
    "mixture": mixture
}
for name, rule in rules.items():
    both = recall_score(y_test, rule.predict(tree.predict_proba(X_test)), average=None)
    print(
        f"{name}: recalls {both[0]:.2f} and {both[1]:.2f}, the worst {both.min():.2f}"
    )
