"""
Recall with a lower bound on precision
======================================

A bank blocks card payments that look like fraud. Every blocked payment leads to a call from a customer, so at least
nine in ten blocked payments must be fraud. The task is to maximise recall subject to a precision of at least 0.9.

The default threshold of 0.5 ignores the constraint. The usual remedy, the lowest threshold with a precision of 0.9 on a
validation set, satisfies it on the validation set only: on new payments it is violated about half of the time. This
example compares both with a rule that has the necessary margin.
"""

# %%
# Payments
# --------
# The payments are simulated, so that rules can be evaluated on many new payments. The model is fitted on past payments.
# Thresholds are chosen on 10,000 later payments, which were not used for the model.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import precision_recall_curve, precision_score, recall_score

import metricwise as mw
from metricwise.displays import FrontierDisplay

rng = np.random.default_rng(0)


def draw_payments(n_payments):
    """Return features of payments, and which of them are fraud."""
    amount = rng.normal(size=n_payments)
    distance = rng.exponential(size=n_payments)
    recent = rng.poisson(0.5, size=n_payments)
    new_merchant = rng.random(n_payments) < 0.3
    logit = -16 + 3.5 * amount + 3 * distance + 2.5 * recent + 3 * new_merchant
    fraud = rng.random(n_payments) < 1 / (1 + np.exp(-logit))
    return np.column_stack([amount, distance, recent, new_merchant]), fraud.astype(int)


model = LogisticRegression().fit(*draw_payments(20_000))
X, y = draw_payments(10_000)
proba = model.predict_proba(X)[:, 1]
X_new, y_new = draw_payments(100_000)
new_proba = model.predict_proba(X_new)[:, 1]
print(f"{y.sum()} of {len(y)} payments are fraud, {y.mean():.1%}")

# %%
# Three thresholds
# ----------------
# `subject_to` gives the constraint. With `confidence=0.95`, the default, :func:`metricwise.optimize` tightens the bound
# until it holds in the population, not only on the given payments, with that probability.

precision, recall, thresholds = precision_recall_curve(y, proba)
lowest = thresholds[precision[:-1] >= 0.9].min()
solution = mw.optimize(
    proba, y, metric="recall", subject_to="precision >= 0.9", confidence=0.95
)
print(solution.rule.describe())

# %%
# The result has the precision on the given rows and an estimate for new data:

(floor,) = solution.constraints
new = floor.on_new_rows
print(f"{floor.name}: {floor.value:.3f} on the given rows, {new.estimate:.3f} expected")
print(f"on new ones, with a 95 % interval from {new.low:.3f} to {new.high:.3f}")

# %%
# On new payments
# ---------------
# The thresholds are scored with scikit-learn on 100,000 new payments.

decisions = {
    "threshold 0.5": new_proba > 0.5,
    "precision 0.9 on validation": new_proba >= lowest,
    "metricwise, 95 % confidence": solution.rule.predict(new_proba),
}
scores = pd.DataFrame(
    {
        name: {
            "precision": precision_score(y_new, decided),
            "recall": recall_score(y_new, decided),
        }
        for name, decided in decisions.items()
    }
).T
print(scores.round(3))

# %%
# Repetitions
# -----------
# One validation set is not conclusive. We draw 40 of them, choose both thresholds on each, and compute the precision on
# the same 100,000 new payments.

repetitions = []
for _ in range(40):
    X_again, y_again = draw_payments(10_000)
    again = model.predict_proba(X_again)[:, 1]
    precision, recall, thresholds = precision_recall_curve(y_again, again)
    lowest = thresholds[precision[:-1] >= 0.9].min()
    repeated = mw.optimize(
        again, y_again, metric="recall", subject_to="precision >= 0.9"
    )
    repetitions.append(
        {
            "precision 0.9 on validation": precision_score(y_new, new_proba >= lowest),
            "metricwise, 95 % confidence": precision_score(
                y_new, repeated.rule.predict(new_proba)
            ),
        }
    )
repetitions = pd.DataFrame(repetitions)

print("Repetitions in which new payments keep the floor:")
print((repetitions >= 0.9).mean().map("{:.0%}".format).to_string())

# %%
figure, ax = plt.subplots(figsize=(6, 4.2), layout="constrained")
jitter = np.random.default_rng(0).uniform(-0.15, 0.15, len(repetitions))
for position, (name, color) in enumerate(
    zip(repetitions, ["tab:orange", "tab:blue"], strict=True)
):
    ax.scatter(position + jitter, repetitions[name], color=color, alpha=0.7)
ax.axhline(0.9, color="grey", linestyle="--")
ax.annotate("floor", (1.58, 0.9), ha="right", va="bottom", color="grey")
ax.set(
    title="Thresholds of 40 validation sets",
    xticks=[0, 1],
    xticklabels=["precision 0.9\non validation", "metricwise,\n95 % confidence"],
    xlim=(-0.6, 1.6),
    ylabel="precision on 100,000 new payments",
)
ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# The effect of the constraint on recall
# --------------------------------------
# The constraint reduces recall, and its margin reduces it a little more. With fewer frauds the margin is larger.
# :func:`metricwise.trade_off` computes the best recall for every bound on precision, which helps to choose the bound.

frontier = mw.trade_off(proba, y, "recall", "precision", n_points=60)
display = FrontierDisplay.from_trade_off(frontier, bound=0.9)
display.ax_.plot(
    floor.value, solution.value, "D", color="tab:red", label="the rule, with its margin"
)
display.ax_.legend(loc="lower left", frameon=False)
plt.show()

# %%
# See :doc:`/floors` for other constraints.
