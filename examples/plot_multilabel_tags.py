"""
Tags for articles: micro or macro
=================================

An article may have several tags or none, and a model predicts a probability for every tag. A threshold of 0.5 is rarely
a good choice, because the probabilities of rare tags hardly ever exceed it.

The optimal thresholds depend on how the scores of the tags are averaged. Micro-F1 pools all decisions, so that frequent
tags dominate, and needs one threshold. Macro-F1 is the mean over the tags, which all have the same weight, and needs
one threshold for each tag.
"""

# %%
# Articles
# --------
# Thirty simulated features represent an embedding of the text. A third of the articles have the most frequent tag and 2
# % the rarest, and some tags are easier to recognise than others.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.model_selection import cross_val_predict, train_test_split
from sklearn.multiclass import OneVsRestClassifier

import metricwise as mw

shares = {"politics": 0.35, "sport": 0.25, "economy": 0.20, "culture": 0.12}
shares |= {"science": 0.08, "travel": 0.05, "health": 0.04, "chess": 0.02}
tags = list(shares)

rng = np.random.default_rng(0)
topics = rng.normal(size=(12_000, 8))
X = topics @ rng.normal(scale=0.5, size=(8, 30)) + rng.normal(size=(12_000, 30))
clarity = np.array([2.0, 3.0, 1.2, 2.5, 1.0, 2.0, 1.2, 3.0])
relevance = pd.DataFrame(clarity * topics + rng.normal(size=topics.shape), columns=tags)
Y = (relevance.rank(pct=True) > 1 - pd.Series(shares)).astype(int)
X_train, X_test, Y_train, Y_test = train_test_split(
    X, Y, train_size=4_000, random_state=0
)

# %%
# One model, two sets of thresholds
# ---------------------------------
# The same out-of-fold probabilities are used for both averages. They are data frames, so that the rule knows the names
# of the tags.

model = OneVsRestClassifier(LogisticRegression(max_iter=1_000))
proba = pd.DataFrame(
    cross_val_predict(model, X_train, Y_train, method="predict_proba"), columns=tags
)
solutions = {
    average: mw.optimize(proba, Y_train, metric="f1", average=average)
    for average in ("micro", "macro")
}
for average, solution in solutions.items():
    gain = solution.gain
    interval = f"{gain.low:+.3f} to {gain.high:+.3f}"
    print(f"{average}-F1: gain {gain.estimate:+.3f}, 95 % interval {interval}")

# %%
# On new articles
# ---------------
# Scores are computed with scikit-learn. Each rule is best for the average that it was fitted for:

new_proba = pd.DataFrame(
    model.fit(X_train, Y_train).predict_proba(X_test), columns=tags
)
decisions = {"threshold 0.5": (new_proba > 0.5).astype(int)}
decisions |= {
    f"rule for {average}-F1": solution.rule.predict(new_proba)
    for average, solution in solutions.items()
}
scores = pd.DataFrame(
    {
        name: {
            f"{average}-F1": f1_score(Y_test, decided, average=average)
            for average in ("micro", "macro")
        }
        for name, decided in decisions.items()
    }
).T
print(scores.round(3))

# %%
# The thresholds
# --------------
# `rule.threshold` contains the thresholds on the probabilities of the model. Probabilities are recalibrated for each
# tag, so the single threshold of micro-F1 differs slightly between tags. For macro-F1, `threshold_range` is the
# interval of thresholds that are not significantly worse. It is wide for rare tags, which have few positive rows.

thresholds = pd.DataFrame(
    {average: solution.rule.threshold for average, solution in solutions.items()},
    index=tags,
)
low, high = solutions["macro"].threshold_range.T
print(thresholds.assign(low=low, high=high).round(2))

# %%
rows = np.arange(len(tags))
figure, ax = plt.subplots(figsize=(6.4, 4.4), layout="constrained")
ax.axvline(0.5, color="grey", linestyle=":")
ax.hlines(
    rows,
    low,
    high,
    color="tab:blue",
    alpha=0.25,
    linewidth=9,
    label="as good for macro-F1",
)
ax.plot(thresholds["micro"], rows, "o", color="tab:orange", label="rule for micro-F1")
ax.plot(thresholds["macro"], rows, "D", color="tab:blue", label="rule for macro-F1")
ax.set(
    title="A threshold for each tag",
    xlabel="threshold on the probability",
    xlim=(0, 0.6),
    yticks=rows,
    yticklabels=[f"{tag}, {share:.0%}" for tag, share in shares.items()],
)
ax.invert_yaxis()
ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=3, frameon=False)
ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# Tag by tag
# ----------
# The two rules differ on some of the rare tags. For frequent tags both are good.

f1 = pd.DataFrame(
    {
        name: f1_score(Y_test, decided, average=None)
        for name, decided in decisions.items()
    },
    index=tags,
)

figure, ax = plt.subplots(figsize=(6.4, 4.4), layout="constrained")
ax.hlines(rows, f1.min(axis=1), f1.max(axis=1), color="lightgrey", zorder=1)
for (name, values), marker, color in zip(
    f1.items(), "soD", ["grey", "tab:orange", "tab:blue"], strict=True
):
    ax.plot(values, rows, marker, color=color, label=name)
ax.set(xlabel="F1 on new articles", xlim=(0, 1), yticks=rows, yticklabels=tags)
ax.invert_yaxis()
ax.legend(loc="lower right", frameon=False)
ax.spines[["top", "right"]].set_visible(False)
plt.show()
