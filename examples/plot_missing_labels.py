"""
Several outputs with missing labels
===================================

A dealer wants to predict the state of a used car before an inspection: a grade for the brakes, whether the tyres must
be replaced, and the amount of rust. These are three outputs, of four, two and three classes, and each has its own
metric. Inspections are expensive, so few cars have all three labels.

Few complete rows would remain if incomplete rows were dropped. Here every label is used.
"""

# %%
# Cars and inspections
# --------------------
# The cars are simulated. Half of them have a label for the brakes, fewer for the tyres, and fewer still for rust.
# Missing labels are NaN.

from functools import partial

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score, cohen_kappa_score, f1_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import metricwise as mw

rng = np.random.default_rng(0)
n_cars = 8_000
X = pd.DataFrame(
    {
        "age": rng.uniform(0, 15, n_cars),
        "mileage": rng.gamma(4, 2.5, n_cars),
        "by_the_sea": (rng.random(n_cars) < 0.3).astype(int),
        "price": rng.normal(size=n_cars),
    }
)
noise = rng.normal(size=(3, n_cars))
brakes = 0.25 * X["mileage"] + 0.1 * X["age"] - 0.5 * X["price"] + 1.2 * noise[0]
tyres = 0.3 * X["mileage"] - 0.4 * X["price"] + noise[1]
rust = 0.25 * X["age"] + 1.2 * X["by_the_sea"] - 0.3 * X["price"] + noise[2]
Y = pd.DataFrame(
    {
        "brakes": np.digitize(brakes, [3.5, 5.0, 6.5]),
        "tyres": np.where(tyres > 5, "replace", "fine"),
        "rust": np.array(["none", "some", "severe"])[np.digitize(rust, [3, 5])],
    }
).astype(object)
Y = Y.mask(rng.random(Y.shape) > [0.5, 0.35, 0.25])
X_train, X_test, Y_train, Y_test = train_test_split(
    X, Y, train_size=2_000, random_state=0
)

complete = Y_train.notna().all(axis=1)
print(f"{len(Y_train)} cars, {complete.sum()} of them with all three labels")
print(Y_train.head().fillna("-").to_string(index=False))

# %%
# Each column is a car. White cells were not inspected.

figure, ax = plt.subplots(figsize=(6.4, 2.8), layout="constrained")
codes = Y_train.head(50).apply(lambda column: pd.Categorical(column).codes)
ax.imshow(
    np.ma.masked_less(codes.T, 0), aspect="auto", cmap="viridis", interpolation="none"
)
ax.hlines([0.5, 1.5], -0.5, 49.5, color="black", linewidth=0.8)
ax.set(
    title="Labels of 50 cars",
    xlabel="cars",
    xticks=[],
    yticks=range(3),
    yticklabels=list(Y_train),
)
plt.show()

# %%
# One metric for each output
# --------------------------
# `metric` takes a dict by the columns of `Y`. The positive class of F1 is given in brackets. A logistic regression is
# fitted for each output on the rows with that label, and each output has its own rule.

metrics = {
    "brakes": "quadratic_kappa",
    "tyres": "f1[replace]",
    "rust": "balanced_accuracy",
}
logistic = make_pipeline(StandardScaler(), LogisticRegression())
model = mw.MetricOptimalClassifierCV(logistic, metric=metrics).fit(X_train, Y_train)
print(model.rule_.describe())

# %%
# On other cars
# -------------
# scikit-learn's functions do not support missing labels, so each output is scored on the cars that were inspected for
# it. Both using all labels and using the rule for the metric improve the scores.

on_complete = mw.MetricOptimalClassifierCV(logistic, metric=metrics).fit(
    X_train[complete], Y_train[complete]
)
decisions = {
    "complete rows, most probable class": on_complete.estimator_.predict(X_test),
    "all labels, most probable class": model.estimator_.predict(X_test),
    "all labels, rule for the metric": model.predict(X_test),
}
score_functions = {
    "brakes": partial(cohen_kappa_score, weights="quadratic"),
    "tyres": partial(f1_score, pos_label="replace"),
    "rust": balanced_accuracy_score,
}
scores = pd.DataFrame(index=list(metrics), columns=list(decisions), dtype=float)
for name, decided in decisions.items():
    for output, column in zip(metrics, np.asarray(decided).T, strict=True):
        inspected = Y_test[output].notna()
        y_true, y_pred = Y_test[output][inspected].tolist(), column[inspected].tolist()
        scores.loc[output, name] = score_functions[output](y_true, y_pred)
print(scores.T.round(3))

# %%
# `score` does the same: it ignores missing labels and returns the mean of the three metrics.

print(f"mean of the last line: {scores.iloc[:, -1].mean():.3f}")
print(f"model.score:           {model.score(X_test, Y_test):.3f}")

# %%
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
labels = ["brakes\n(quadratic kappa)", "tyres\n(F1)", "rust\n(balanced accuracy)"]
scores.set_axis(labels).plot.bar(
    ax=ax, rot=0, width=0.8, color=["lightgrey", "tab:orange", "tab:blue"]
)
for bars in ax.containers:
    ax.bar_label(bars, fmt="%.2f")
ax.set(ylabel="score on other cars", ylim=(0, 1), xlabel="")
ax.legend(frameon=False, loc="upper left")
ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# See :doc:`/guide` for several outputs that share a metric, pooled or averaged.
