"""
Abstain from uncertain rows: reading digits
===========================================

A model reads handwritten digits and may leave some of them to a person, who takes time but makes no mistakes. It should
abstain from those that it is least certain about. However, many models are overconfident, and a threshold that looks
cautious may lead to hardly any abstentions.
"""

# %%
# An overconfident model
# -----------------------
# Naive Bayes is fast, fairly accurate, and very overconfident.

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
print(f"accuracy: {accuracy_score(y_test, new_proba.argmax(axis=1)):.0%}")
print(f"mean largest probability: {new_proba.max(axis=1).mean():.0%}")

# %%
# Abstain at a cost
# -----------------
# An error costs 1, and a person's time 0.2 per digit. It is then optimal to abstain if the decision is wrong with a
# probability of more than 0.2. This is the rule of `abstain=0.2`. It needs calibrated probabilities, so they are
# recalibrated first.

solution = mw.optimize(proba, y_train, "accuracy", abstain=0.2)
print(solution.rule.describe())

# %%
# For comparison, the same threshold of 0.8 is applied to the raw probabilities. -1 is an abstention.

ABSTAINED = -1
by_hand = np.where(new_proba.max(axis=1) >= 0.8, new_proba.argmax(axis=1), ABSTAINED)
decisions = {
    "decide all": new_proba.argmax(axis=1),
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
# A bound on the share of abstentions
# -----------------------------------
# If the cost is not known, but one digit in ten can be left to a person, bound the share of abstentions instead. The
# metric is then the accuracy of the decided digits. The bound has a margin, so that it holds for new digits too: see
# `confidence` of :func:`metricwise.optimize`. All results on new digits are computed with NumPy and scikit-learn.

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
# :func:`metricwise.trade_off` computes the best rule for each share of abstentions, the risk-coverage curve. All rules
# are evaluated on new digits. On the right are some of the digits from which `abstain=0.2` abstains. See also
# :doc:`/abstain`.

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
