"""
Fairness by group: a scholarship
================================

Three entrance tests predict who will succeed with a scholarship. A third of the applicants take them in their second
language, and their results are less informative about their ability. A single threshold then rejects capable applicants
of that group much more often. This example bounds the difference, and shows the effect on accuracy.
"""

# %%
# Applicants in two groups
# ------------------------
# The data are simulated. Ability has the same distribution in both groups; only the noise of the tests differs.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, recall_score
from sklearn.model_selection import cross_val_predict, train_test_split

import metricwise as mw

rng = np.random.default_rng(0)
n_applicants = 8000
group = np.where(rng.random(n_applicants) < 0.35, "second language", "first language")
ability = rng.normal(size=n_applicants)
noise = np.where(group == "second language", 1.3, 0.6)
tests = ability[:, None] + noise[:, None] * rng.normal(size=(n_applicants, 3))
y = (ability + 0.4 * rng.normal(size=n_applicants) > 0.6).astype(int)
second = (group == "second language")[:, None]
X = np.hstack(
    [tests, second, tests * second]
)  # the model may weight the tests differently
X_train, X_test, y_train, y_test, group_train, group_test = train_test_split(
    X, y, group, test_size=0.5, stratify=y, random_state=0
)

model = LogisticRegression()
proba = cross_val_predict(model, X_train, y_train, method="predict_proba")
new_proba = model.fit(X_train, y_train).predict_proba(X_test)

# %%
# Equal opportunity
# -----------------
# Equal opportunity is about the recall: the share of accepted applicants among those who would succeed. Here it may
# differ by at most 0.1 between the groups, and :func:`metricwise.optimize` maximises the accuracy subject to this
# bound.

solution = mw.optimize(
    proba,
    y_train,
    "accuracy",
    subject_to="equal_opportunity <= 0.1",
    sensitive_features=group_train,
)
for name, rule in solution.rule.by_group.items():
    print(
        f"{name}: accepted if the probability of success exceeds {rule.threshold:.2f}"
    )

# %%
# The bound has a margin, because it should hold for next year's applicants too.

(bound,) = solution.constraints
print(
    f"{bound.name}: {bound.value:.3f} on the given rows, with a margin of {bound.margin:.3f}"
)

# %%
# Next year's applicants
# ----------------------
# Recall by group and accuracy on the test half are computed with scikit-learn. The rule is a
# :class:`metricwise.GroupedRule`, whose `predict` takes the group of each applicant.

decisions = {
    "one threshold": new_proba.argmax(axis=1),
    "equal opportunity": solution.rule.predict(
        new_proba, sensitive_features=group_test
    ),
}
groups = ["first language", "second language"]
recalls = pd.DataFrame(
    {
        name: {
            g: recall_score(y_test[group_test == g], decided[group_test == g])
            for g in groups
        }
        for name, decided in decisions.items()
    }
).T
results = recalls.assign(
    gap=abs(recalls[groups[0]] - recalls[groups[1]]),
    accuracy={
        name: accuracy_score(y_test, decided) for name, decided in decisions.items()
    },
)
results.round(3)

# %%
# The rule lowers the threshold for the group with less informative tests, and raises it slightly for the other one. The
# accuracy hardly changes, because the predictions near the threshold are uncertain anyway.

figure, (left, right) = plt.subplots(
    1, 2, figsize=(9.6, 4), layout="constrained", width_ratios=[3, 4]
)
colors = {"first language": "#0072b2", "second language": "#e69f00"}
for place, row in enumerate(results.to_dict("records")):
    for side, g in zip((-0.19, 0.19), groups, strict=True):
        bar = left.bar(
            place + side,
            row[g],
            width=0.36,
            color=colors[g],
            label=g if place == 0 else None,
        )
        left.bar_label(bar, fmt="{:.0%}", padding=2)
left.set_xticks(
    [0, 1], [f"{name}\naccuracy {row.accuracy:.1%}" for name, row in results.iterrows()]
)
left.set(ylabel="accepted, of those who would succeed", ylim=(0, 1))
left.legend(loc="upper right")

for g in groups:
    would = (group_test == g) & (y_test == 1)
    right.hist(
        new_proba[would, 1],
        np.linspace(0, 1, 26),
        density=True,
        color=colors[g],
        alpha=0.45,
    )
    right.axvline(solution.rule.by_group[g].threshold, color=colors[g], linewidth=2)
right.axvline(0.5, color="#333333", linestyle="--")
right.set(
    xlabel="probability of success by the model",
    ylabel="density of those who would succeed",
)
right.set_title("thresholds: dashed before, solid after", fontsize=10)
plt.show()

# %%
# A threshold for each group treats two applicants with the same probability differently. Whether this is right, or
# legal, must be decided case by case. :doc:`/fair` describes other notions of fairness, rules that do not use the
# group, and when not to use this method.
