"""
Ordinal grades with quadratic kappa
===================================

Grades have an order, and quadratic kappa punishes an error by the square of its distance. The most probable grade is
then often the wrong answer: between a likely 1 and a likely 5, a 3 costs less on average.

This example grades the progression of diabetes in five steps, with one logistic regression and four ways to decide: the
most probable grade, the expected grade rounded, the expected grade with cut points by Nelder-Mead, which is common
practice, and the rule that maximises quadratic kappa.
"""

# %%
# The data and a model
# --------------------
# The target of scikit-learn's diabetes data is cut into five grades of unequal size. Rules are fitted on
# probabilities of rows that the model has not seen: out-of-fold predictions serve.

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
# maximum is found exactly and needs no starting point. The rule goes by the expected grade as well, of recalibrated
# probabilities. Its cut points are equally spaced: two numbers to fit instead of four.

solution = mw.optimize(proba, y_train, metric="quadratic_kappa")
print(solution.rule.describe())

# %%
# `solution.gain` estimates, on rows that the rule has not seen, what it adds to the most probable grade.

gain = solution.gain
print(f"{gain.estimate:+.2f}, 95 % interval {gain.low:+.2f} to {gain.high:+.2f}")

# %%
# On new patients
# ---------------
# One split of so few patients proves little, so we take ten. All decisions use the same probabilities, and
# scikit-learn's own function says what they are worth on the other half of the patients.


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
# Four free cut points, fitted to 221 labels, do better than rounding and worse than the rule.

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
# Where the decisions moved, on the first split:

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
