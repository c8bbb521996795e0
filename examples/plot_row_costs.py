"""
Costs that differ by row: card fraud
====================================

An undetected fraudulent payment costs its amount. Reviewing a payment costs a few euros, whatever the amount. The best
decision depends on the probability of fraud and on the amount, so no single threshold on the probability is optimal: a
payment of 2000 euros should be reviewed at a lower probability of fraud than one of 10 euros.
"""

# %%
# The payments
# ------------
# The data are simulated: amounts with a long tail, four features, and a few per cent of fraud.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict, train_test_split

import metricwise as mw

rng = np.random.default_rng(0)
n_payments = 40_000
amount = rng.lognormal(mean=3.8, sigma=1.0, size=n_payments).round(2)
distance = rng.exponential(1, n_payments)  # from the place of the last payment
card_age = rng.exponential(1, n_payments)
n_recent = rng.poisson(1, n_payments)  # payments in the last hour
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
# The cost of each decision
# -------------------------
# ``cost[n, i, j]`` is the cost of deciding payment `n` as class `j` if class `i` is true. Classes are in the order of
# the columns of `proba`: "fraud", "genuine". Predicting "fraud" means a review, which always costs 4 euros; predicting
# "genuine" accepts the payment.

REVIEW = 4.0


def costs_of(amount):
    cost = np.zeros((len(amount), 2, 2))
    cost[:, :, 0] = REVIEW
    cost[:, 0, 1] = amount
    return cost


# %%
# Three rules
# -----------
# *Argmax*, as in `predict`, ignores the costs. A *table of mean costs* results in one threshold for all payments. With
# `cost=`, :func:`metricwise.optimize` returns a :class:`metricwise.CostRule`, which takes the decision with the lowest
# expected cost for each payment; its `predict` needs the costs of the new payments.

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
# Costs of new payments
# ---------------------
# The total cost of the test half is computed with NumPy: 4 euros for every review, and the amount of every undetected
# fraud.


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
# `solution.gain` estimates the saving per payment from the training half alone:

gain = by_row.gain
saved = (bill.loc["argmax", "euros"] - bill.loc["costs by row", "euros"]) / len(y_test)
print(
    f"estimated {gain.estimate:.2f} euros per payment (95 % interval {gain.low:.2f} to {gain.high:.2f})"
)
print(f"saved in the test half {saved:.2f}")

# %%
# Where the rules differ
# ----------------------
# With a single threshold, too many small payments and too few large ones are reviewed. With costs by row, the threshold
# decreases with the amount: a payment is reviewed if the probability of fraud times the amount exceeds the cost of a
# review. This finds fewer frauds than mean costs, but those with large amounts.

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
# :class:`metricwise.MetricOptimalClassifierCV` does all of this in one `fit`. With one table for all rows,
# :class:`metricwise.CostSensitiveClassifier` trains the model on the costs. This helps models that are too simple to
# estimate all probabilities well, which is not the case here. See :ref:`costs per row <costs-per-row>` in the user
# guide.

rule_model = mw.MetricOptimalClassifierCV(model, metric="cost").fit(
    X_train, y_train, cost=cost_train
)
trained = mw.CostSensitiveClassifier(model, mean_cost).fit(X_train, y_train)
print(f"costs by row: {euros(rule_model.predict(X_test, cost=cost_test)):,.0f} euros")
print(f"trained on mean costs: {euros(trained.predict(X_test)):,.0f} euros")
