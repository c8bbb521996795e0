"""
Worst-class recall, and why a mixture of rules
==============================================

A ward scores patients with pneumonia by five yes-or-no criteria, and admits those who need it. Most do not, and a rule
that is right about most patients can still miss most of the severe cases. The ward is therefore judged by its worst
class: the smaller of the two recalls, those of mild and of severe cases.

A score from 0 to 5 leaves few rules to choose from, and none of them serves both classes well. A mixture, which draws
between two of them, does.
"""

# %%
# Patients
# --------
# One patient in eight is severe. The criteria are simulated. A logistic regression, fitted on patients of last year,
# turns the score into a probability, and rules are fitted on patients of this year.

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
# `randomized=False`, the default, returns the best rule that decides equal rows alike.

single = mw.optimize(proba, y, metric="min_recall")
mixture = mw.optimize(
    proba, y, metric="min_recall", strategy=mw.Strategy(randomized=True)
)
print(mixture.rule.describe())

# %%
# On new patients
# ---------------
# Which of the two rules decides about a patient is drawn, and can be repeated: the draw depends on a seed and on the
# position of the row. Recalls by scikit-learn:

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
# The draw itself adds little noise. `distribution` has the exact probability of each decision, so that the expected
# recalls need no draw at all:

distribution = mixture.rule.distribution(new_proba)
expected = [distribution[y_new == label, label].mean() for label in (0, 1)]
print(f"expected recalls: mild {expected[0]:.3f}, severe {expected[1]:.3f}")

# %%
# Why a mixture
# -------------
# Admitting patients from some score on is a point in the plane of both recalls. On the dotted diagonal the recalls are
# equal, and the worst one is largest where the boundary of the reachable set crosses it. Single rules are isolated
# points, and none lies there. Mixtures of two neighbours fill the line between them, and one does.

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
# A mixture is the better rule only if it is acceptable that two patients with the same score are treated differently.
# Where it is not, `solution.alternative` of the mixture says what the best single rule is worth on the same rows:

print(f"mixture {mixture.value:.3f}, best single rule {mixture.alternative:.3f}")

# %%
# With continuous probabilities, from a model with many features, single rules are close to one another and the mixture
# adds little. Trees, nearest neighbours and score cards are where it matters. :doc:`/geometry` has the theory.
