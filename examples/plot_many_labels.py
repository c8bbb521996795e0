"""
Three tags of thousands
=======================

A model scores a few of thousands of tags for every article, and at most three tags are shown. The three most probable
tags have the most hits, but most tags are rare, and many of them are then never shown where they belong.

The rule for macro-F1 at three tags per row lets the tags of a row compete by a score of their own. All probabilities
stay in a sparse array.
"""

# %%
# Articles
# --------
# The data are simulated: 3,000 tags, of which some are a thousand times as frequent as others. The model has scores for
# 25 tags of each article, and is too sure of itself: the true probabilities are less extreme.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy.sparse import csr_array
from scipy.special import expit, logit

import metricwise as mw

n_tags, n_scored = 3_000, 25
frequency = 1 / np.arange(1, n_tags + 1) ** 0.9


def draw_articles(n_rows, seed):
    rng = np.random.default_rng(seed)
    tags = rng.choice(n_tags, (n_rows, n_scored), p=frequency / frequency.sum())
    rows = np.repeat(np.arange(n_rows), n_scored)
    cells = np.unique(rows * n_tags + tags.ravel())  # a tag once for each article
    rows, tags = np.divmod(cells, n_tags)
    proba = rng.beta(0.4, 2.2, len(cells)).clip(0.001, 0.999)
    true = rng.random(len(cells)) < expit(0.8 * logit(proba) - 0.3)
    P = csr_array((proba.astype(np.float32), (rows, tags)), shape=(n_rows, n_tags))
    Y = csr_array((true[true].astype(int), (rows[true], tags[true])), shape=P.shape)
    return P, Y


P, Y = draw_articles(6_000, seed=0)
P_new, Y_new = draw_articles(6_000, seed=1)
true_rows = Y.sum(axis=0)
print(f"{P.nnz:,} stored probabilities, {P.nnz / np.prod(P.shape):.1%} of all")
print(f"{np.mean(true_rows <= 5):.0%} of the tags have at most 5 articles")

# %%
# The rule
# --------
# It is fitted to sparse probabilities and labels. The gain is estimated on rows left out.

solution = mw.optimize(P, Y, "f1", average="macro", labels_per_row=3)
gain = solution.gain
print(f"gain {gain.estimate:+.3f}, 95 % interval {gain.low:+.3f} to {gain.high:+.3f}")
print(solution.rule.describe())

# %%
# On new articles
# ---------------
# `predict` decides every article alone. `predict_together` decides all new articles at once, which is worth more, but
# then the tags of an article depend on the other articles. Both are compared with the three most probable tags.

top = mw.LabelRule.top(3, n_labels=n_tags)
decisions = {
    "three most probable": top.predict(P_new),
    "rule": solution.predict(P_new),
    "rule, together": solution.rule.predict_together(P_new),
}
metrics = ["f1_macro", "f1_micro", "label_coverage"]
scores = pd.DataFrame(
    {
        name: {
            metric: result.value.estimate
            for metric, result in mw.evaluate(decided, P_new, Y_new, metrics).items()
        }
        for name, decided in decisions.items()
    }
).T
print(scores.round(3))

# %%
# What is gained where
# --------------------
# The mean F1 of tags on new articles, by how many of these have the tag. Rare tags gain, and common tags lose some of
# the slots that they had.


def f1_by_tag(decided):
    hits = (decided * Y_new).sum(axis=0)
    return 2 * hits / np.maximum(decided.sum(axis=0) + Y_new.sum(axis=0), 1)


groups = pd.cut(
    Y_new.sum(axis=0),
    [0, 5, 20, 100, np.inf],
    labels=["1 to 5", "6 to 20", "21 to 100", "more than 100"],
)
f1 = pd.DataFrame({name: f1_by_tag(decided) for name, decided in decisions.items()})
means = f1.groupby(groups, observed=True).mean()
print(means.round(2))

figure, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
places = np.arange(len(means))
for (name, values), marker, color in zip(
    means.items(), "soD", ["grey", "tab:blue", "tab:orange"], strict=True
):
    ax.plot(values, places, marker, color=color, label=name)
ax.set(
    xlabel="mean F1 of tags on new articles",
    ylabel="articles of a tag",
    yticks=places,
    yticklabels=means.index,
)
ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=3, frameon=False)
ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# The display of the solution shows the same for the rows of the fit, where rare tags look better than on new rows. The
# squares are the labels with a probability above 1/2, at most three of an article.

solution.plot()
plt.show()

# %%
# ``solution.report("report.html")`` lists the largest tags, the worst ones, and those that gain or lose most. See
# :doc:`/many_labels`.
