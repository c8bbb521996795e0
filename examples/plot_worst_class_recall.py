"""
Smallest recall, and why a mixture of rules
===========================================

Patients with pneumonia are scored by five binary criteria, and severe cases are admitted. Most cases are mild, and a
rule that is correct for most patients can still miss most of the severe cases. The metric is therefore the smaller of
the two recalls, those of mild and of severe cases.

With a score from 0 to 5 there are few rules, and none of them has high recalls for both classes. A mixture, which draws
one of two rules at random, has.
"""

# %%
# Patients
# --------
# One patient in eight is severe. The criteria are simulated. A logistic regression, fitted on last year's patients,
# converts the score to a probability, and rules are fitted on this year's patients.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import recall_score

import metricwise as mw

rng = np.random.default_rng(0)


def draw_patients(n_patients):
    """Return scores from 0 to 5, and which patients are severe."""
    severe = rng.random(n_patients) < 0.125
    likely = np.where(
        severe[:, np.newaxis], [0.6, 0.6, 0.6, 0.5, 0.7], [0.25, 0.2, 0.25, 0.15, 0.35]
    )
    score = (rng.random((n_patients, 5)) < likely).sum(axis=1)
    return score[:, np.newaxis], severe.astype(int)


model = LogisticRegression().fit(*draw_patients(4_000))
X, y = draw_patients(4_000)
proba = model.predict_proba(X)
X_new, y_new = draw_patients(20_000)
new_proba = model.predict_proba(X_new)

# %%
# The best single rule, and the best mixture
# ------------------------------------------
# `randomized=False`, the default, returns the best deterministic rule.

single = mw.optimize(proba, y, metric="min_recall")
mixture = mw.optimize(
    proba, y, metric="min_recall", strategy=mw.Strategy(randomized=True)
)
print(mixture.rule.describe())

# %%
# On new patients
# ---------------
# One of the two rules is drawn for each patient. The draws are reproducible: they depend only on a seed and on the
# position of the row. Recalls are computed with scikit-learn:

decisions = {
    "most probable class": new_proba.argmax(axis=1),
    "best single rule": single.rule.predict(new_proba),
    "mixture": mixture.rule.predict(new_proba),
}
recalls = pd.DataFrame(
    {
        name: recall_score(y_new, decided, average=None)
        for name, decided in decisions.items()
    },
    index=["mild", "severe"],
).T
print(recalls.assign(worst=recalls.min(axis=1)).round(3))

# %%
# The draws add little noise. `distribution` returns the exact probability of each decision, so the expected recalls can
# be computed without draws:

distribution = mixture.rule.distribution(new_proba)
expected = [distribution[y_new == label, label].mean() for label in (0, 1)]
print(f"expected recalls: mild {expected[0]:.3f}, severe {expected[1]:.3f}")

# %%
# Why a mixture
# -------------
# Each minimum score for admission is a point in the plane of the two recalls. On the dotted diagonal the recalls are
# equal, and the smallest recall is maximal where the boundary of the feasible set crosses it. Single rules are isolated
# points, and none of them is there. Mixtures of two neighbouring rules form the line between them, which contains the
# optimum.

thresholds = np.array(
    [
        recall_score(y_new, X_new[:, 0] >= score, average=None, zero_division=0)
        for score in range(7)
    ]
)

figure, ax = plt.subplots(figsize=(5.4, 5), layout="constrained")
ax.plot([0.45, 1], [0.45, 1], color="grey", linestyle=":", zorder=1)
ax.fill(*thresholds.T, color="tab:blue", alpha=0.12, linewidth=0)
ax.plot(*thresholds.T, color="tab:blue", alpha=0.4, label="mixtures of neighbours")
ax.plot(
    *thresholds.T,
    "o",
    color="white",
    markeredgecolor="black",
    label="admit from a score on",
)
for (name, (mild, severe)), marker, color in zip(
    recalls.iterrows(), "soD", ["dimgrey", "tab:orange", "tab:blue"], strict=True
):
    ax.plot(
        mild, severe, marker, color=color, markersize=9, linestyle="none", label=name
    )
ax.set(
    xlabel="recall of mild cases",
    ylabel="recall of severe cases",
    title="What rules can reach",
    aspect="equal",
)
ax.legend(loc="lower left", frameon=False)
ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# A mixture should be used only if it is acceptable that two patients with the same score are treated differently.
# `solution.alternative` of the mixture is the value of the best single rule on the same rows:

print(f"mixture {mixture.value:.3f}, best single rule {mixture.alternative:.3f}")

# %%
# With continuous probabilities, from a model with many features, single rules are close to each other and the mixture
# adds little. It matters for trees, nearest neighbours and score cards. See :doc:`/geometry` for the theory.
