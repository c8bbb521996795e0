"""
Costs of each row by itself: card fraud
=======================================

A fraudulent payment that goes through costs its amount. Reviewing a payment costs a few euros, whatever the amount. So
the best decision depends on two numbers, the probability of fraud and the amount, and no single threshold on the
probability can be right: a payment of 2000 euros deserves a review at a risk at which one of 10 euros does not.
"""

# %%
# The payments
# ------------
# The data are made up: amounts with a long tail, a handful of features, and fraud in a few per cent of the payments.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict, train_test_split

import metricwise as mw

rng = np.random.default_rng(0)
n_payments = 40_000
amount = rng.lognormal(mean=3.8, sigma=1.0, size=n_payments).round(2)
distance = rng.exponential(1, n_payments)  # from where the card was used last
card_age = rng.exponential(1, n_payments)
n_recent = rng.poisson(1, n_payments)  # payments in the hour before
logit = -6.2 + 0.9 * distance + 0.8 * n_recent - 0.6 * card_age + 0.15 * np.log(amount)
y = np.where(rng.random(n_payments) < 1 / (1 + np.exp(-logit)), "fraud", "genuine")
X = np.column_stack([np.log(amount), distance, card_age, n_recent])
X_train, X_test, y_train, y_test, amount_train, amount_test = train_test_split(
    X, y, amount, test_size=0.5, stratify=y, random_state=0
)
print(
    f"{np.mean(y == 'fraud'):.1%} of the payments are fraud, with a median amount of {np.median(amount):.0f} euros"
)

model = LogisticRegression()
proba = cross_val_predict(model, X_train, y_train, method="predict_proba")
new_proba = model.fit(X_train, y_train).predict_proba(X_test)

# %%
# What each decision costs
# ------------------------
# ``cost[n, i, j]`` is the cost of deciding payment `n` as class `j` where class `i` is true. Classes are in the order
# of the columns of `proba`: "fraud", "genuine". Deciding "fraud" means a review, which always costs 4 euros; deciding
# "genuine" lets the payment through.

REVIEW = 4.0


def costs_of(amount):
    cost = np.zeros((len(amount), 2, 2))
    cost[:, :, 0] = REVIEW
    cost[:, 0, 1] = amount
    return cost


# %%
# Three rules
# -----------
# *Argmax*, what `predict` does, ignores the costs. A *table of mean costs* gives one threshold for all payments.
# With `cost=`, :func:`metricwise.optimize` returns a :class:`metricwise.CostRule`, which takes the decision of least
# expected cost for each payment by itself; its `predict` takes the costs of the new payments.

cost_train, cost_test = costs_of(amount_train), costs_of(amount_test)
mean_cost = costs_of(amount_train[y_train == "fraud"]).mean(axis=0)

one_table = mw.optimize(proba, y_train, mw.metrics.Cost(mean_cost))
by_row = mw.optimize(proba, y_train, "cost", cost=cost_train)
decisions = {
    "argmax": model.classes_[new_proba.argmax(axis=1)],
    "mean costs": one_table.rule.predict(new_proba),
    "costs by row": by_row.rule.predict(new_proba, cost=cost_test),
}

# %%
# In euros, on new payments
# -------------------------
# The bill of the test half takes nothing but NumPy: 4 euros for every review, and the amount of every fraud that was
# let through.


def euros(decided):
    missed = (decided == "genuine") & (y_test == "fraud")
    return REVIEW * np.sum(decided == "fraud") + amount_test[missed].sum()


rows = [
    [
        np.sum(decided == "fraud"),
        np.sum((decided == "fraud") & (y_test == "fraud")),
        round(euros(decided)),
    ]
    for decided in decisions.values()
]
bill = pd.DataFrame(rows, index=decisions, columns=["reviews", "frauds found", "euros"])
bill

# %%
# `solution.gain` estimated the saving per payment from the training half alone:

gain = by_row.gain
saved = (bill.loc["argmax", "euros"] - bill.loc["costs by row", "euros"]) / len(y_test)
print(
    f"estimated {gain.estimate:.2f} euros per payment (95 % interval {gain.low:.2f} to {gain.high:.2f})"
)
print(f"saved in the test half {saved:.2f}")

# %%
# Where the rules differ
# ----------------------
# The single threshold reviews small payments that are not worth it, and lets large ones through that are. By row, the
# limit falls as the amount grows: it is where risk times amount equals the price of a review. This finds fewer frauds
# than the mean costs do, but those that matter.

risk = new_proba[:, 0]
reviewed, fraud = decisions["costs by row"] == "fraud", y_test == "fraud"

figure, ax = plt.subplots(figsize=(7, 4.6), layout="constrained")
ax.scatter(
    amount_test[~reviewed], risk[~reviewed], s=4, color="#9bb8d3", label="let through"
)
ax.scatter(
    amount_test[reviewed], risk[reviewed], s=4, color="#e69f00", label="reviewed"
)
ax.scatter(
    amount_test[fraud],
    risk[fraud],
    s=22,
    facecolor="none",
    edgecolor="#333333",
    linewidth=0.8,
    label="fraud",
)
ax.axhline(0.5, color="#333333", linestyle=":", label="threshold of argmax")
ax.axhline(
    1 - one_table.rule.threshold,
    color="#0072b2",
    linestyle="--",
    label="threshold of the mean costs",
)
ax.set(
    xscale="log",
    yscale="log",
    ylim=(1e-4, 1.3),
    xlabel="amount in euros",
    ylabel="probability of fraud",
)
ax.xaxis.set_major_formatter("{x:g}")
ax.yaxis.set_major_formatter("{x:g}")
ax.set_title(
    "   ".join(f"{name}: {row.euros:,} euros" for name, row in bill.iterrows()),
    fontsize=10,
)
ax.legend(loc="lower left", fontsize=8, framealpha=1)
plt.show()

# %%
# As one estimator
# ----------------
# :class:`metricwise.MetricOptimalClassifierCV` does all of this in one `fit`. Where one table is enough for all rows,
# :class:`metricwise.CostSensitiveClassifier` trains the model itself on the costs. That helps models that are too
# simple to get all probabilities right; this one is not. See :ref:`costs per row <costs-per-row>` in the user guide.

rule_model = mw.MetricOptimalClassifierCV(model, metric="cost").fit(
    X_train, y_train, cost=cost_train
)
trained = mw.CostSensitiveClassifier(model, mean_cost).fit(X_train, y_train)
print(f"costs by row: {euros(rule_model.predict(X_test, cost=cost_test)):,.0f} euros")
print(f"trained on mean costs: {euros(trained.predict(X_test)):,.0f} euros")
