"""
Escalate as little as possible: a language model as judge
=========================================================

A language model judges whether answers to questions are right, partly right or wrong. Of the judgements that are used
without a person, 90 % have to agree with what an expert would say. All others are escalated to an expert. How many
answers can the model judge alone?
"""

# %%
# An overconfident judge
# ----------------------
# The data are simulated. The model is too sure of itself, leans towards "right", and is less reliable for answers that
# are not in English. An expert has judged 6,000 answers; 20,000 more show what happens later.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.metrics import accuracy_score

import metricwise as mw

VERDICTS = np.array(["partly", "right", "wrong"])


def softmax(logits):
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


def judged_answers(n, seed):
    rng = np.random.default_rng(seed)
    language = rng.choice(["English", "other"], size=n, p=[0.7, 0.3])
    evidence = 3 * rng.normal(size=(n, 3)) + np.array([0.0, 1.0, 0.5])
    truth = (softmax(evidence).cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    noise = np.where(language == "English", 1.0, 2.0)[:, None]
    seen = evidence + noise * rng.normal(size=(n, 3))
    return softmax(1.5 * seen + np.array([0.0, 1.5, 0.0])), VERDICTS[truth], language


proba, expert, language = judged_answers(6000, seed=0)
new_proba, new_expert, new_language = judged_answers(20_000, seed=1)
judged = VERDICTS[new_proba.argmax(axis=1)]
print(f"agreement with the expert: {accuracy_score(new_expert, judged):.0%}")
print(f"mean largest probability: {new_proba.max(axis=1).mean():.0%}")

# %%
# The most decided answers
# ------------------------
# The metric is the coverage, the share of answers that the model judges alone. The accuracy of these is a constraint,
# which holds for new answers with a confidence of 95 %. The rule is the best of all cuts on the largest probability,
# after recalibration.

options = {"classes": VERDICTS.tolist(), "abstain": mw.Abstention(label="escalate")}
floor = mw.optimize(proba, expert, "coverage", subject_to="accuracy >= 0.9", **options)
print(floor.rule.describe())

# %%
# For comparison, all answers that the model is 90 % sure of. The numbers are those of the new answers, computed with
# NumPy and scikit-learn.

by_hand = np.where(new_proba.max(axis=1) >= 0.9, judged, "escalate")
decisions = {
    "judge all": judged,
    "90 % sure": by_hand,
    "accuracy >= 0.9": floor.rule.predict(new_proba),
}


def on_new_answers(decided, rows=slice(None)):
    decided, truth = decided[rows], new_expert[rows]
    accepted = decided != "escalate"
    return {
        "coverage": np.mean(accepted),
        "accuracy": accuracy_score(truth[accepted], decided[accepted]),
    }


# %%
# The same for every language
# ---------------------------
# On average 90 % of the judgements are right, but not of those about answers in other languages. With a bound in every
# group, each language has a cut of its own: fewer of these answers are judged by the model alone, and more of the
# English ones.

by_language = mw.optimize(
    proba,
    expert,
    "coverage",
    subject_to="accuracy >= 0.9 in every group",
    sensitive_features=language,
    **options,
)
decisions["in every group"] = by_language.rule.predict(
    new_proba, sensitive_features=new_language
)
results = pd.DataFrame(
    {
        (name, rows): on_new_answers(
            decided, slice(None) if rows == "all" else new_language == rows
        )
        for name, decided in decisions.items()
        for rows in ("all", "English", "other")
    }
).T.unstack()
results.round(3)

# %%
# Coverage against accuracy
# -------------------------
# :func:`metricwise.trade_off` computes the largest coverage for every accuracy. The rules of the curve are evaluated on
# new answers. On the right are the results by language. See also :doc:`/abstain`.

curve = mw.trade_off(proba, expert, "coverage", "accuracy", n_points=30, **options)
points = pd.DataFrame([on_new_answers(rule.predict(new_proba)) for rule in curve.rules])
points = points[points["coverage"] > 0.05]

figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 4.2), layout="constrained")
left.plot(
    points["accuracy"],
    points["coverage"],
    color="#333333",
    label="best cut for each accuracy",
)
left.axvline(0.9, color="#999999", linestyle=":", linewidth=1)
colors = dict(zip(decisions, ("#cc79a7", "#e69f00", "#0072b2", "#009e73"), strict=True))
for (name, decided), marker in zip(decisions.items(), "osD^", strict=True):
    row = on_new_answers(decided)
    left.plot(
        row["accuracy"],
        row["coverage"],
        marker,
        color=colors[name],
        markersize=9,
        label=name,
    )
left.set(
    xlabel="accuracy of the answers judged alone",
    ylabel="coverage: share judged alone",
    ylim=(0, 1.04),
)
left.legend(loc="lower left")

for group, filled in (("English", "full"), ("other", "none")):
    for (name, color), marker in zip(colors.items(), "osD^", strict=True):
        right.plot(
            results["accuracy"][group][name],
            results["coverage"][group][name],
            marker,
            color=color,
            markersize=9,
            fillstyle=filled,
            label=group if name == "judge all" else None,
        )
right.axvline(0.9, color="#999999", linestyle=":", linewidth=1)
right.set(xlabel="accuracy of the answers judged alone", ylim=(0, 1.04))
right.legend(title="language", loc="lower left")
plt.show()
