"""
Ordinal grades with quadratic kappa
===================================

Grades are ordered, and quadratic kappa penalises an error by the square of its distance. The most probable grade is
then often not the best decision: if 1 and 5 are both likely, 3 has the smaller expected penalty.

This example predicts the progression of diabetes in five grades, with one logistic regression and four decision rules:
the most probable grade, the rounded expected grade, the expected grade with cut points by Nelder-Mead, which is common
practice, and the rule that maximises quadratic kappa.
"""

# %%
# The data and a model
# --------------------
# The target of scikit-learn's diabetes data is divided into five grades of unequal size. Rules are fitted on
# out-of-fold probabilities.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy.optimize import minimize
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import ConfusionMatrixDisplay, cohen_kappa_score
from sklearn.model_selection import cross_val_predict, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import metricwise as mw

X, progression = load_diabetes(return_X_y=True)
y = np.digitize(progression, [75, 125, 200, 280])
X_train, X_test, y_train, y_test = train_test_split(
    X, y, test_size=0.5, stratify=y, random_state=0
)

model = make_pipeline(StandardScaler(), LogisticRegression())
proba = cross_val_predict(model, X_train, y_train, method="predict_proba")

# %%
# The rule
# --------
# Given the shares of the grades, quadratic kappa is a ratio of two linear functions of the confusion matrix, so its
# maximum is computed exactly, without a starting point. The rule also rounds the expected grade, of recalibrated
# probabilities. Its cut points are equally spaced: two parameters instead of four.

solution = mw.optimize(proba, y_train, metric="quadratic_kappa")
print(solution.rule.describe())

# %%
# `solution.gain` estimates the improvement over the most probable grade on new data.

gain = solution.gain
print(f"{gain.estimate:+.2f}, 95 % interval {gain.low:+.2f} to {gain.high:+.2f}")

# %%
# On new patients
# ---------------
# One split of so few patients is not conclusive, so we use ten. All decisions use the same probabilities, and are
# scored with scikit-learn on the other half of the patients.


def quadratic_kappa(y_true, grades):
    return cohen_kappa_score(y_true, grades, weights="quadratic")


def cut_points_by_search(proba, y):
    """Return cut points of the expected grade by Nelder-Mead."""
    expected = proba @ np.arange(5)
    start = [0.5, 1.5, 2.5, 3.5]
    result = minimize(
        lambda cuts: -quadratic_kappa(y, np.digitize(expected, np.sort(cuts))),
        start,
        method="Nelder-Mead",
    )
    return np.sort(result.x)


def decide(seed):
    """Return the grades of the test set of one split, and all decisions about it."""
    X_train, X_test, y_train, y_test = train_test_split(
        X, y, test_size=0.5, stratify=y, random_state=seed
    )
    proba = cross_val_predict(model, X_train, y_train, method="predict_proba")
    new_proba = model.fit(X_train, y_train).predict_proba(X_test)
    expected = new_proba @ np.arange(5)
    return y_test, {
        "most probable grade": new_proba.argmax(axis=1),
        "expected grade, rounded": np.rint(expected).astype(int),
        "cut points by Nelder-Mead": np.digitize(
            expected, cut_points_by_search(proba, y_train)
        ),
        "metricwise": mw.optimize(
            proba, y_train, metric="quadratic_kappa"
        ).rule.predict(new_proba),
    }


splits = [decide(seed) for seed in range(10)]
kappas = pd.DataFrame(
    [
        {name: quadratic_kappa(y_test, grades) for name, grades in decisions.items()}
        for y_test, decisions in splits
    ]
)
print(kappas.agg(["mean", "min", "max"]).T.round(3))

# %%
# Four free cut points, fitted to 221 labels, are better than rounding and worse than the rule.

figure, ax = plt.subplots(figsize=(7, 3.8), layout="constrained")
ax.plot(kappas.to_numpy().T, color="lightgrey", linewidth=1, zorder=1)
for position, (name, color) in enumerate(
    zip(kappas, ["grey", "tab:green", "tab:orange", "tab:blue"], strict=True)
):
    ax.scatter(np.full(len(kappas), position), kappas[name], color=color, alpha=0.5)
    ax.hlines(
        kappas[name].mean(), position - 0.2, position + 0.2, color=color, linewidth=3
    )
    ax.annotate(
        f"{kappas[name].mean():.2f}",
        (position + 0.22, kappas[name].mean()),
        va="center",
    )
ax.set(
    title="Ten splits and their mean",
    ylabel="quadratic kappa on new patients",
    xticks=range(4),
    xticklabels=[
        "most probable\ngrade",
        "expected grade,\nrounded",
        "cut points by\nNelder-Mead",
        "metricwise",
    ],
    xlim=(-0.5, 3.5),
)
ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# The confusion matrices on the first split:

y_test, decisions = splits[0]
figure, axes = plt.subplots(1, 2, figsize=(8, 3.6), sharey=True, layout="constrained")
for ax, name in zip(axes, ["most probable grade", "metricwise"], strict=True):
    ConfusionMatrixDisplay.from_predictions(
        y_test, decisions[name], ax=ax, cmap="Blues", colorbar=False
    )
    ax.set(
        title=f"{name}: kappa {kappas.loc[0, name]:.2f}",
        xlabel="decided grade",
        ylabel="grade",
    )
plt.show()
