"""
A class that is rarer in production than in training
====================================================

Models of rare events are often trained on balanced data: all failures, and the same number of other rows drawn at
random. The probabilities of such a model, and a threshold tuned on the same rows, assume that half of all machines
fail. If the share of failures in production is known, `prior=` of :func:`metricwise.optimize` corrects the
probabilities and the rule.
"""

# %%
# Balanced training data, rare failures in production
# ---------------------------------------------------
# The sensor readings are simulated. In production, 3 % of the machines fail the next day.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import (
    f1_score,
    precision_recall_curve,
    precision_score,
    recall_score,
)
from sklearn.model_selection import cross_val_predict

import metricwise as mw

rng = np.random.default_rng(0)


def machines(n_running, n_failing):
    """Temperature, vibration and age: higher and more spread out before a failure."""
    running = rng.normal(0.0, 1.0, (n_running, 3))
    failing = rng.normal([1.2, 1.0, 0.8], 1.2, (n_failing, 3))
    return np.vstack([running, failing]), np.repeat([0, 1], [n_running, n_failing])


X_train, y_train = machines(1500, 1500)
X_new, y_new = machines(38_800, 1200)
print(
    f"failures: {y_train.mean():.0%} of the training rows, {y_new.mean():.0%} in production"
)

model = LogisticRegression()
proba = cross_val_predict(model, X_train, y_train, method="predict_proba")
new_proba = model.fit(X_train, y_train).predict_proba(X_new)

# %%
# Two rules for F1
# ----------------
# The first one assumes the class shares of the training data. The second one uses those in production, in the order of
# the columns of `proba`.

rules = {
    "argmax": mw.WeightedRule.from_thresholds(0.5),
    "tuned on balanced rows": mw.optimize(proba, y_train, metric="f1").rule,
    "tuned for the prior": mw.optimize(
        proba, y_train, metric="f1", prior=[0.97, 0.03]
    ).rule,
}
for name, rule in rules.items():
    print(f"{name}: alarm if the probability of a failure exceeds {rule.threshold:.2f}")

# %%
# In production
# -------------
# The three rules are scored with scikit-learn. The rule tuned on balanced data has far too many false alarms.

scores = pd.DataFrame(
    {
        name: {
            "alarms": rule.predict(new_proba).sum(),
            "precision": precision_score(y_new, rule.predict(new_proba)),
            "recall": recall_score(y_new, rule.predict(new_proba)),
            "F1": f1_score(y_new, rule.predict(new_proba)),
        }
        for name, rule in rules.items()
    }
).T
scores.round(2).astype({"alarms": int})

# %%
# The figure shows F1 for every threshold. At the maximum of the curve for the training data, F1 in production is far
# below its maximum. The rule for the prior is close to the maximum in production, although it was fitted without labels
# from there.


def f1_curve(y_true, proba):
    precision, recall, thresholds = precision_recall_curve(y_true, proba[:, 1])
    return thresholds, (2 * precision * recall / np.maximum(precision + recall, 1e-12))[
        :-1
    ]


figure, ax = plt.subplots(figsize=(7, 4.4), layout="constrained")
ax.plot(
    *f1_curve(y_train, proba),
    color="#9a9a9a",
    linestyle="--",
    label="balanced training rows",
)
ax.plot(*f1_curve(y_new, new_proba), color="#333333", label="production")
for (name, rule), color, marker in zip(
    rules.items(), ("#cc79a7", "#e69f00", "#0072b2"), "osD", strict=True
):
    f1 = scores.loc[name, "F1"]
    ax.plot(
        rule.threshold,
        f1,
        marker,
        color=color,
        markersize=9,
        label=f"{name}: F1 {f1:.2f}",
    )
    ax.vlines(rule.threshold, 0, f1, color=color, linewidth=1, linestyle=":")
ax.set(
    xlabel="threshold on the probability of failure",
    ylabel="F1",
    xlim=(0, 1),
    ylim=(0, 1),
)
ax.legend(loc="upper left", ncols=2, fontsize=9)
plt.show()

# %%
# How well must the prior be known?
# ---------------------------------
# An approximate value is sufficient: at half or twice the true share, F1 is close to the maximum, and much higher than
# with the balanced data. The method assumes that only the shares change, and that the distribution within each class is
# the same in production as in training.

for share in (0.01, 0.015, 0.03, 0.06, 0.12, 0.5):
    rule = mw.optimize(proba, y_train, metric="f1", prior=[1 - share, share]).rule
    print(
        f"prior {share:5.1%}: threshold {rule.threshold:.2f}, F1 {f1_score(y_new, rule.predict(new_proba)):.2f}"
    )
