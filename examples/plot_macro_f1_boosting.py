"""
Macro-F1 of gradient boosting
=============================

Support tickets are assigned to four teams, most of them to one. The metric is macro-F1, in which all teams have the
same weight, but the model is trained on the log loss and predicts the most probable team, which favours the large one.
This example keeps the model and changes the decision: the rule for macro-F1 is fitted on out-of-fold probabilities.
"""

# %%
# Tickets
# -------
# Twenty simulated features represent an embedding of the text. The smallest team receives one ticket in 17.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from lightgbm import LGBMClassifier
from sklearn.datasets import make_classification
from sklearn.metrics import f1_score
from sklearn.model_selection import cross_val_predict, train_test_split

import metricwise as mw

teams = ["billing", "account", "technical", "legal"]
X, team = make_classification(
    n_samples=20_000,
    n_features=20,
    n_informative=8,
    n_classes=4,
    weights=[0.70, 0.15, 0.09, 0.06],
    class_sep=0.7,
    flip_y=0,
    random_state=1,
)
y = np.array(teams)[team]
X_train, X_test, y_train, y_test = train_test_split(
    X, y, train_size=5_000, stratify=y, random_state=0
)

# %%
# Fit the rule on out-of-fold probabilities
# -----------------------------------------
# A rule must be fitted on probabilities like those of *new* rows. On its training rows a boosted model is very
# overconfident, so we use scikit-learn's `cross_val_predict`.

model = LGBMClassifier(
    n_estimators=40,
    num_leaves=15,
    learning_rate=0.15,
    n_jobs=1,
    deterministic=True,
    random_state=0,
    verbose=-1,
)
proba = cross_val_predict(model, X_train, y_train, method="predict_proba")
solution = mw.optimize(proba, y_train, metric="macro_f1")
print(solution.rule.describe())

# %%
# The estimated gain over the most probable team on new data:

gain = solution.gain
print(f"{gain.estimate:+.3f}, 95 % interval {gain.low:+.3f} to {gain.high:+.3f}")

# %%
# On new tickets
# --------------
# The rule is compared with training with `class_weight="balanced"`, which is often tried first. It targets balanced
# accuracy regardless of the metric, and increases the recall of the small teams at the cost of too much precision.

new_proba = model.fit(X_train, y_train).predict_proba(X_test)
balanced = LGBMClassifier(**model.get_params() | {"class_weight": "balanced"}).fit(
    X_train, y_train
)

decisions = {
    "most probable team": model.predict(X_test),
    "class_weight='balanced'": balanced.predict(X_test),
    "rule for macro-F1": solution.rule.predict(new_proba),
}
scores = pd.Series(
    {
        name: f1_score(y_test, decided, average="macro")
        for name, decided in decisions.items()
    }
)
print(scores.round(3).to_string())

# %%
# In one step
# -----------
# :class:`metricwise.MetricOptimalClassifierCV` does all of this in `fit`: the cross-validation, the rule, and the model
# on all rows. It makes the same decisions as the rule above.

classifier = mw.MetricOptimalClassifierCV(model, metric="f1_macro").fit(
    X_train, y_train
)
same = np.mean(classifier.predict(X_test) == decisions["rule for macro-F1"])
print(f"macro-F1 {classifier.score(X_test, y_test):.3f}, {same:.0%} of decisions equal")

# %%
# Team by team
# ------------
# The rule improves the F1 of the small teams without reducing that of the large one.

f1 = pd.DataFrame(
    {
        name: f1_score(y_test, decisions[name], average=None, labels=teams)
        for name in decisions
    },
    index=[f"{name}\n{np.mean(y == name):.0%}" for name in teams],
)
ax = f1.plot.bar(
    figsize=(7.5, 4), rot=0, width=0.8, color=["lightgrey", "tab:orange", "tab:blue"]
)
ax.set(title="F1 of each team, by its share of the tickets", ylabel="F1 on new tickets")
ax.legend([f"{name}: mean {scores[name]:.2f}" for name in f1.columns], frameon=False)
ax.spines[["top", "right"]].set_visible(False)
ax.figure.tight_layout()
plt.show()
