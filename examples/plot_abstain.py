"""
Abstain from the hard ones: reading digits
==========================================

A machine reads handwritten digits, and may hand some of them to a person, who takes time but makes no mistakes. Which
ones? Those of which the model is least sure. But many models are surer than they should be, and a limit that looks
cautious may hand over hardly anything.
"""

# %%
# An overconfident reader
# -----------------------
# Naive Bayes is quick, fairly accurate, and far too sure of itself.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_digits
from sklearn.metrics import accuracy_score
from sklearn.model_selection import cross_val_predict, train_test_split
from sklearn.naive_bayes import GaussianNB

import metricwise as mw

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(
    X, y, test_size=0.5, stratify=y, random_state=0
)

model = GaussianNB(var_smoothing=0.01)
proba = cross_val_predict(model, X_train, y_train, method="predict_proba")
new_proba = model.fit(X_train, y_train).predict_proba(X_test)
print(f"right: {accuracy_score(y_test, new_proba.argmax(axis=1)):.0%}")
print(f"sure, by its own account: {new_proba.max(axis=1).mean():.0%}")

# %%
# At a price
# ----------
# An error costs 1, a person's time 0.2 per digit. It then pays to abstain if the digit read is wrong with a probability
# of more than 0.2. That is the rule of `abstain=0.2`. It needs probabilities that can be believed, so they are
# recalibrated first.

solution = mw.optimize(proba, y_train, "accuracy", abstain=0.2)
print(solution.rule.describe())

# %%
# For comparison, the same limit of 0.8 is applied to the probabilities as they are. -1 stands for an abstention.

ABSTAINED = -1
by_hand = np.where(new_proba.max(axis=1) >= 0.8, new_proba.argmax(axis=1), ABSTAINED)
decisions = {
    "read all": new_proba.argmax(axis=1),
    "0.8 by hand": by_hand,
    "abstain=0.2": solution.rule.predict(new_proba),
}


def on_new_digits(decided):
    accepted = decided != ABSTAINED
    return {
        "abstained": np.mean(~accepted),
        "accuracy of the others": accuracy_score(y_test[accepted], decided[accepted]),
        "cost per 100 digits": 100
        * np.mean(np.where(accepted, decided != y_test, 0.2)),
    }


# %%
# A share instead of a price
# --------------------------
# If the price is not known, but there are people for one digit in ten, bound the share instead. The metric is then the
# accuracy of the digits that are read. The bound is kept with a margin, so that it holds for new digits too: see
# `confidence` of :func:`metricwise.optimize`. All results on new digits are counted with NumPy and scikit-learn.

bounded = mw.optimize(
    proba, y_train, "accuracy", abstain=True, subject_to="abstained <= 0.1"
)
decisions["abstained <= 0.1"] = bounded.rule.predict(new_proba)
results = pd.DataFrame(
    {name: on_new_digits(decided) for name, decided in decisions.items()}
).T
results.round(3)

# %%
# Risk against abstention
# -----------------------
# :func:`metricwise.trade_off` finds the best rule for each share of abstentions, the risk-coverage curve. All rules are
# shown on new digits. On the right are some of the digits that `abstain=0.2` hands over. See also :doc:`/abstain`.

curve = mw.trade_off(
    proba,
    y_train,
    "accuracy",
    "abstained",
    abstain=True,
    n_points=16,
    strategy=mw.Strategy(confusion="expected"),
)
points = pd.DataFrame(
    [on_new_digits(rule.predict(new_proba)) for rule in curve.rules]
).query("abstained < 0.5")

figure = plt.figure(figsize=(9.6, 4.4), layout="constrained")
left, right = figure.subfigures(1, 2, width_ratios=[3, 2])
ax = left.subplots()
ax.plot(
    points["abstained"],
    1 - points["accuracy of the others"],
    color="#333333",
    label="best rule for each share",
)
for (name, row), color, marker in zip(
    results.iterrows(),
    ("#cc79a7", "#e69f00", "#0072b2", "#009e73"),
    "osD^",
    strict=True,
):
    label = f"{name}: cost {row['cost per 100 digits']:.1f}"
    ax.plot(
        row["abstained"],
        1 - row["accuracy of the others"],
        marker,
        color=color,
        markersize=9,
        label=label,
    )
ax.set(
    xlabel="share of digits handed over",
    ylabel="share of errors in the others",
    ylim=(0, None),
)
ax.legend()

handed_over = np.flatnonzero(decisions["abstain=0.2"] == ABSTAINED)[:9]
right.suptitle("handed over: likeliest readings", fontsize=10)
for axis, row in zip(right.subplots(3, 3).flat, handed_over, strict=True):
    axis.imshow(X_test[row].reshape(8, 8), cmap="gray_r")
    first, second = np.argsort(new_proba[row])[::-1][:2]
    axis.set_title(f"{first} or {second}?", fontsize=9)
    axis.set_axis_off()
plt.show()
