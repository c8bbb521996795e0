"""
Decide by a table of costs
==========================

A model predicts from sensors whether a pump is fine, worn or about to fail. The possible decisions are to leave it
alone, to service it, or to replace it. A pump that fails in operation costs far more than an unnecessary visit, so the
most probable state is a poor decision. If errors have costs, the cost is the metric.
"""

# %%
# Pumps and their sensors
# -----------------------
# Four sensors measure the same vibration and two measure heat. The readings are simulated.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import confusion_matrix
from sklearn.model_selection import cross_val_predict, train_test_split
from sklearn.naive_bayes import GaussianNB

import metricwise as mw
from metricwise.displays import DecisionRegionsDisplay

rng = np.random.default_rng(0)
n_pumps = 8_000
wear = rng.gamma(2.0, size=n_pumps)
states = ["fine", "worn", "failing"]
y = np.take(states, np.digitize(wear, [2.5, 5]))
vibration = wear + rng.normal(scale=2.5, size=n_pumps)
heat = wear + rng.normal(scale=3.0, size=n_pumps)
X = np.column_stack([vibration] * 4 + [heat] * 2)
X += rng.normal(scale=0.3, size=X.shape)
X_train, X_test, y_train, y_test = train_test_split(
    X, y, test_size=0.5, stratify=y, random_state=0
)
print(pd.Series(y_train).value_counts(normalize=True).map("{:.1%}".format).to_string())

# %%
# The table of costs
# ------------------
# The table has one row for each true state and one column for each decision, in euros. Predicting "worn" means to
# service the pump, predicting "failing" means to replace it.

cost = pd.DataFrame(
    [[0, 300, 2_500], [600, 300, 2_500], [20_000, 9_000, 2_500]],
    index=states,
    columns=["leave", "service", "replace"],
)
print(cost)

# %%
# Three decision rules
# --------------------
# The textbook rule is the decision with the lowest expected cost, one line of NumPy. It is optimal if the probabilities
# are calibrated. Those of naive Bayes are not, because it treats four sensors of the same vibration as independent.
#
# :func:`metricwise.optimize` recalibrates the probabilities first, based on the labels.
# :class:`metricwise.metrics.Cost` is minus the mean cost, so that larger is better, as for all metrics. `classes` gives
# the order of the classes in the table; scikit-learn sorts them alphabetically.

cost_table = cost.to_numpy()


def mean_cost(decided):
    """Return the mean cost on the test set, by scikit-learn's confusion matrix."""
    shares = confusion_matrix(y_test, decided, labels=states, normalize="all")
    return (shares * cost_table).sum()


models = {"naive Bayes": GaussianNB(), "logistic regression": LogisticRegression()}
solutions, costs = {}, {}
for name, model in models.items():
    proba = cross_val_predict(model, X_train, y_train, method="predict_proba")
    new_proba = model.fit(X_train, y_train).predict_proba(X_test)
    order = np.searchsorted(model.classes_, states)
    proba, new_proba = proba[:, order], new_proba[:, order]

    solution = mw.optimize(
        proba, y_train, metric=mw.metrics.Cost(cost_table), classes=states
    )
    most_probable = np.take(states, new_proba.argmax(axis=1))
    by_hand = np.take(states, (new_proba @ cost_table).argmin(axis=1))
    costs[name] = {
        "most probable state": mean_cost(most_probable),
        "least expected cost, by hand": mean_cost(by_hand),
        "metricwise": mean_cost(solution.rule.predict(new_proba)),
    }
    solutions[name] = solution

# %%
# Euros per pump
# --------------
# Costs are computed on the test set. With naive Bayes, the textbook rule costs more than the most probable state,
# because the probabilities are wrong. Logistic regression is well calibrated here, and the fitted rule and the textbook
# rule agree.

table = pd.DataFrame(costs)
print(table.round().astype(int))

# %%
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
table.T.plot.bar(
    ax=ax, color=["lightgrey", "tab:orange", "tab:blue"], width=0.75, rot=0
)
for bars in ax.containers:
    ax.bar_label(bars, fmt="%.0f")
ax.set(ylabel="mean cost of new pumps (euros)", ylim=(0, 1.45 * table.to_numpy().max()))
ax.legend(loc="upper center", frameon=False)
ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# `solution.gain` is estimated from the training set, on rows that the rule was not fitted to:

for name, solution in solutions.items():
    gain = solution.gain
    interval = f"{gain.low:.0f} to {gain.high:.0f}"
    print(f"{name}: {gain.estimate:.0f} euros per pump, 95 % interval {interval}")

# %%
# Decision regions
# ----------------
# Every point of the triangle is a distribution of the three states. The dashed lines separate the regions of the most
# probable state. Pumps are serviced or replaced at much lower probabilities of wear or failure.

display = DecisionRegionsDisplay.from_rule(solutions["logistic regression"].rule)
display.ax_.set(title="Decisions by probability")
plt.show()

# %%
# For costs that differ by row, such as the amount of a loan, use `cost=`: see :ref:`costs per row <costs-per-row>`.
