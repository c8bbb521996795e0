"""
A custom metric: the return on a retention campaign
===================================================

Most customers are loyal, some are wavering, a few are leaving. Marketing can call a customer, send a voucher, or do
nothing. The metric is the return, euros kept per euro spent. Such a metric can be defined by two tables or by a Python
function.
"""

# %%
# Customers and a model
# ---------------------
# The customers are simulated. The probabilities are out-of-fold.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict, train_test_split

import metricwise as mw
from metricwise.displays import DecisionRegionsDisplay

classes, actions = (
    np.array(["leaving", "loyal", "wavering"]),
    ["call", "nothing", "voucher"],
)
X, codes = make_classification(
    6000,
    n_features=8,
    n_informative=5,
    n_classes=3,
    weights=[0.12, 0.68, 0.2],
    class_sep=1.0,
    random_state=3,
)
X_train, X_test, y_train, y_test = train_test_split(
    X, classes[codes], test_size=0.5, stratify=codes, random_state=0
)

model = LogisticRegression()
proba = cross_val_predict(model, X_train, y_train, method="predict_proba")
new_proba = model.fit(X_train, y_train).predict_proba(X_test)

# %%
# A ratio of two tables
# ---------------------
# The tables contain the euros kept and spent by each action (column) for each kind of customer (row). A column
# corresponds to the class at the same position: predicting "leaving" means a call. The campaign costs half a euro per
# customer even if nothing is done.

kept = pd.DataFrame(
    [[90, 0, 6], [0, 0, 0], [35, 0, 30]], index=classes, columns=actions
)
spent = pd.DataFrame(
    [[20, 0.5, 5], [20, 0.5, 5], [20, 0.5, 5]], index=classes, columns=actions
)
kept

# %%
# The return is the sum of the first table over all customers divided by that of the second one. This is a
# :class:`metricwise.metrics.FractionalLinear`, whose optimal rule is computed exactly.

by_tables = mw.optimize(proba, y_train, mw.metrics.FractionalLinear(kept, spent))
print(
    f"{by_tables.value:.2f} euros kept per euro spent, {by_tables.baseline:.2f} by the most probable class"
)

# %%
# A function of labels
# --------------------
# The same metric in scikit-learn's form, a function of true and predicted labels. With a parameter `sample_weight` it
# is called with pairs of classes and their frequencies, so the time does not depend on the number of rows. The
# structure of such a function is unknown, so the search is numerical.

A, B = kept.to_numpy(), spent.to_numpy()


def return_on_spending(y_true, y_pred, sample_weight=None):
    i, j = np.searchsorted(classes, y_true), np.searchsorted(classes, y_pred)
    return np.average(A[i, j], weights=sample_weight) / np.average(
        B[i, j], weights=sample_weight
    )


by_labels = mw.optimize(proba, y_train, return_on_spending)
print(
    f"{by_labels.value:.2f} euros kept per euro spent, {by_labels.baseline:.2f} by the most probable class"
)

# %%
# A function of the confusion matrix
# ----------------------------------
# Next year the metric will be the profit, where calls to more than 5 % of the customers count as overtime. This is not
# a ratio of two tables, but it is a function of the confusion matrix: shares of all rows, true classes by row. Setting
# `confusion` and `recalibrate` saves time here: the default also fits rules to resamples of the rows, and calls the
# function several hundred thousand times.


def profit(C):
    overtime = max(C[:, 0].sum() - 0.05, 0.0)
    return np.sum((A - B) * C) - 300 * overtime**2


by_confusion = mw.optimize(
    proba, y_train, profit, strategy=mw.Strategy(confusion="expected", recalibrate=True)
)
print(
    f"{by_confusion.value:.2f} euros profit per customer, {by_confusion.baseline:.2f} by the most probable class"
)

# %%
# On new customers
# ----------------
# Both metrics on the test half, computed with NumPy, and the share of customers for each action:

decisions = {
    "most probable class": model.predict(X_test),
    "return, two tables": by_tables.rule.predict(new_proba),
    "return, function of labels": by_labels.rule.predict(new_proba),
    "profit, function of C": by_confusion.rule.predict(new_proba),
}
results = {}
for name, decided in decisions.items():
    i, j = np.searchsorted(classes, y_test), np.searchsorted(classes, decided)
    overtime = max(np.mean(decided == "leaving") - 0.05, 0.0)
    results[name] = {
        "calls": np.mean(decided == "leaving"),
        "vouchers": np.mean(decided == "wavering"),
        "return": A[i, j].sum() / B[i, j].sum(),
        "profit": np.mean(A[i, j] - B[i, j]) - 300 * overtime**2,
    }
pd.DataFrame(results).T.round(2)

# %%
# Decision regions
# ----------------
# Each dot is a customer; its position shows the probabilities of the model, with one class at each corner. The dashed
# lines are the boundaries of the most probable class, which sends too few vouchers for either metric.

figure, axes = plt.subplots(1, 2, figsize=(9.6, 4.6), layout="constrained")
for ax, title, solution in zip(
    axes, ("return", "profit"), (by_tables, by_confusion), strict=True
):
    DecisionRegionsDisplay.from_predictions(None, new_proba, solution.rule, ax=ax)
    ax.set_title(f"the best rule for the {title}")
plt.show()
