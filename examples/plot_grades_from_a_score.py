"""
Grades from a score
===================

A regression predicts one number for each row, and the task asks for a grade. The usual snippet searches the cut points
between grades by Nelder-Mead, from evenly spaced ones. The metric is constant almost everywhere as a function of the
cut points, so the search often stops near its start. The best cut points can be computed instead: sort the scores, and
choose where to cut.

This example grades the progression of diabetes by a ridge regression, with cut points by rounding, by Nelder-Mead and
by metricwise, and compares the quadratic kappa on new patients.
"""

# %%
# A regression of grades
# ----------------------
# The target of scikit-learn's diabetes data is divided into five grades of unequal size. The regression predicts them
# as numbers. Cut points are fitted on out-of-fold predictions of one half of the patients.

import time

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy.optimize import minimize
from sklearn.datasets import load_diabetes
from sklearn.linear_model import RidgeCV
from sklearn.metrics import cohen_kappa_score
from sklearn.model_selection import cross_val_predict, train_test_split

import metricwise as mw

X, progression = load_diabetes(return_X_y=True)
y = np.digitize(progression, np.quantile(progression, [0.35, 0.6, 0.8, 0.92]))
X_train, X_test, y_train, y_test = train_test_split(
    X, y, test_size=0.5, stratify=y, random_state=0
)

model = RidgeCV([0.01, 0.1, 1.0])
scores = cross_val_predict(model, X_train, y_train)

# %%
# The snippet
# -----------
# It minimises minus kappa over four cut points.


def quadratic_kappa(y_true, grades):
    return cohen_kappa_score(y_true, grades, weights="quadratic")


def cut_points_by_search(scores, y):
    """Return cut points by Nelder-Mead."""
    result = minimize(
        lambda cuts: -quadratic_kappa(y, np.digitize(scores, np.sort(cuts))),
        [0.5, 1.5, 2.5, 3.5],
        method="Nelder-Mead",
    )
    return np.sort(result.x)


# %%
# One line instead
# ----------------
# One score per row, `input="scores"`, and more than two ordered classes: the rule is one of cut points.

solution = mw.optimize(scores, y_train, "quadratic_kappa", input="scores")
print(solution.rule.describe())

# %%
# Its quadratic kappa on new patients, estimated on rows that resamples left out:

new = solution.value_on_new_rows
print(f"{new.estimate:.2f}, 95 % interval {new.low:.2f} to {new.high:.2f}")

# %%
# The default combines cut points of many resamples. With `confusion="labels"` and without recalibration, cut points
# are the best ones on the given rows, which no search can exceed:

exact = mw.Strategy(confusion="labels", recalibrate=False)
best = mw.optimize(scores, y_train, "quadratic_kappa", input="scores", strategy=exact)
print(best.status)

searched = cut_points_by_search(scores, y_train)
on_given_rows = pd.Series(
    {
        "rounded": quadratic_kappa(y_train, np.digitize(scores, [0.5, 1.5, 2.5, 3.5])),
        "Nelder-Mead": quadratic_kappa(y_train, np.digitize(scores, searched)),
        "metricwise, default": solution.value,
        "metricwise, best on these rows": best.value,
    }
)
print(on_given_rows.round(3).to_string())

# %%
# On new patients
# ---------------
# One split of so few patients is not conclusive, so we use ten.


def timed(function, *args, **kwargs):
    start = time.perf_counter()
    result = function(*args, **kwargs)
    return result, time.perf_counter() - start


def compare(seed):
    """Return kappa on the test set of one split and the seconds of a fit, by method."""
    X_train, X_test, y_train, y_test = train_test_split(
        X, y, test_size=0.5, stratify=y, random_state=seed
    )
    scores = cross_val_predict(model, X_train, y_train)
    new = model.fit(X_train, y_train).predict(X_test)
    ask = {"metric": "quadratic_kappa", "input": "scores"}
    searched, search_time = timed(cut_points_by_search, scores, y_train)
    default, default_time = timed(mw.optimize, scores, y_train, **ask)
    best, best_time = timed(mw.optimize, scores, y_train, **ask, strategy=exact)
    return {
        "rounded": (np.digitize(new, [0.5, 1.5, 2.5, 3.5]), 0.0),
        "Nelder-Mead": (np.digitize(new, searched), search_time),
        "metricwise,\nbest on labels": (best.predict(new), best_time),
        "metricwise,\ndefault": (default.predict(new), default_time),
    }, y_test


splits = [compare(seed) for seed in range(10)]
kappas = pd.DataFrame(
    [
        {name: quadratic_kappa(y_new, grades) for name, (grades, _) in methods.items()}
        for methods, y_new in splits
    ]
)
seconds = pd.DataFrame(
    [{name: spent for name, (_, spent) in methods.items()} for methods, _ in splits]
)
summary = pd.DataFrame({"kappa": kappas.mean(), "seconds": seconds.median()})
print(summary.rename(index=lambda name: name.replace("\n", " ")).round(3))

# %%
# Cut points along the score
# --------------------------
# A regression shrinks towards the mean: hardly any score is above 3.5, and rounding hardly ever predicts the highest
# grade. Nelder-Mead moves little from its start. The cut points of metricwise are where the grades change.

rules = {
    "rounded": np.array([0.5, 1.5, 2.5, 3.5]),
    "Nelder-Mead": searched,
    "metricwise": solution.rule.cut_points,
}
grade_colors = plt.get_cmap("viridis")(np.linspace(0.05, 0.95, 5))
method_colors = ["tab:green", "tab:orange", "lightsteelblue", "tab:blue"]

figure, axes = plt.subplot_mosaic(
    [["scores", "kappa"], ["cuts", "kappa"]],
    figsize=(10.5, 4.6),
    width_ratios=[1.5, 1],
    height_ratios=[2, 1],
    layout="constrained",
)
rows, bars, kappa = axes["scores"], axes["cuts"], axes["kappa"]
rng = np.random.default_rng(0)
ends = scores.min() - 0.1, max(scores.max(), 4.0) + 0.1
rows.scatter(
    scores,
    y_train + rng.uniform(-0.3, 0.3, len(scores)),
    s=12,
    color=grade_colors[y_train],
)
rows.set(title="Cut points of the first split", ylabel="true grade", xticks=[])
for place, cuts in enumerate(rules.values()):
    edges = np.concatenate([[ends[0]], cuts, [ends[1]]])
    bars.barh(place, np.diff(edges), left=edges[:-1], color=grade_colors, height=0.8)
    for grade, middle in enumerate((edges[1:] + edges[:-1]) / 2):
        bars.annotate(
            grade,
            (middle, place),
            ha="center",
            va="center",
            color="black" if grade > 2 else "white",
        )
bars.set(xlabel="score: the prediction of the regression")
bars.set_yticks(range(3), rules)
bars.invert_yaxis()
for ax in (rows, bars):
    ax.set(xlim=ends)

kappa.plot(kappas.to_numpy().T, color="lightgrey", linewidth=1, zorder=1)
for place, (name, color) in enumerate(zip(kappas, method_colors, strict=True)):
    mean = kappas[name].mean()
    kappa.scatter(np.full(len(kappas), place), kappas[name], color=color, s=18)
    kappa.hlines(mean, place - 0.25, place + 0.25, color=color, linewidth=3)
    kappa.annotate(f"{mean:.3f}", (place + 0.28, mean), va="center")
kappa.set(
    title="Ten splits and their mean",
    ylabel="quadratic kappa on new patients",
    xlim=(-0.5, 3.8),
)
kappa.set_xticks(range(4), kappas.columns, fontsize=8)
for ax in axes.values():
    ax.spines[["top", "right"]].set_visible(False)
plt.show()
