"""
A rule in production: JSON, SQL and ONNX
========================================

A rule that was fitted in a notebook has to decide elsewhere: in a service, in a database every night, in a runtime
without Python. If only the model is exported, the rule is lost, and the most probable class decides again. This example
takes one rule to three systems and compares their decisions.
"""

# %%
# The notebook
# ------------
# Made-up loans in three grades of risk, judged by quadratic kappa: mistaking a high risk for a low one is worse than
# mistaking it for a medium one.

import json
import sqlite3
from contextlib import closing

import matplotlib.pyplot as plt
import numpy as np
import onnxruntime
import pandas as pd
import skl2onnx
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import cohen_kappa_score
from sklearn.model_selection import train_test_split

import metricwise as mw
from metricwise.displays import DecisionRegionsDisplay

order = ["low", "medium", "high"]
rng = np.random.default_rng(0)
X = rng.normal(size=(8000, 4))
score = X @ [1.0, 0.7, -0.5, 0.3] + rng.normal(scale=1.2, size=len(X))
y = np.select([score > 1.8, score > 0.8], ["high", "medium"], "low")
X_train, X_test, y_train, y_test = train_test_split(
    X, y, test_size=0.5, stratify=y, random_state=0
)

metric = mw.metrics.Kappa("quadratic", order=order)
model = mw.MetricOptimalClassifierCV(LogisticRegression(), metric=metric).fit(
    X_train, y_train
)
proba = model.predict_proba(X_test)
print(model.rule_.describe())

# %%
# JSON: the rule as a file
# ------------------------
# The file holds a few numbers, and what a reader should know a year from now: the metric, the rows of each class, the
# value, the gain. No row of the data is in it. :func:`metricwise.load_rule` checks the file and never runs any of it.

text = model.rule_.to_json()
print(f"{len(text):,} characters, with the parts {', '.join(json.loads(text))}")
decisions = {
    "predict": model.predict(X_test),
    "JSON": mw.load_rule(text).predict(proba),
}

# %%
# SQL: where the probabilities are
# --------------------------------
# :func:`metricwise.export.to_sql` writes one expression over the columns of the probabilities. SQLite, which comes with
# Python, stands in for the warehouse. The expression begins with a check: rows without proper probabilities are NULL.

expression = mw.export.to_sql(model.rule_, dialect="sqlite")
print("\n".join(expression.splitlines()[:6]), "...")

with closing(sqlite3.connect(":memory:")) as database:
    pd.DataFrame(proba, columns=model.classes_).to_sql("loans", database, index=False)
    decisions["SQL"] = pd.read_sql(
        f"SELECT {expression} AS decision FROM loans", database
    )["decision"].to_numpy()

# %%
# ONNX: model and rule in one graph
# ---------------------------------
# After :func:`metricwise.export.register_converters`, skl2onnx converts the estimator as a whole, from features
# to decisions.

mw.export.register_converters()
graph = skl2onnx.to_onnx(model, X_test[:1], options={"zipmap": False})
session = onnxruntime.InferenceSession(
    graph.SerializeToString(), providers=["CPUExecutionProvider"]
)
(decisions["ONNX"],) = session.run(["label"], {"X": X_test})

# %%
# They decide alike
# -----------------
# The quadratic kappa of each system on new loans, by scikit-learn, and how many loans it decides otherwise than the
# notebook. The last one is what is left if the model is exported without its rule.

decisions["model alone"] = model.estimator_.predict(X_test)
for name, decided in decisions.items():
    kappa = cohen_kappa_score(y_test, decided, labels=order, weights="quadratic")
    print(
        f"{name}: kappa {kappa:.3f}, {np.sum(decided != decisions['predict'])} decisions differ"
    )

# %%
# On the left, each dot is a loan, placed by the probabilities of the three grades: the nearer to a corner, the likelier
# that grade. On the right is the share of loans that two systems decide alike.

agreement = pd.DataFrame(
    {
        a: {b: np.mean(decisions[a] == decisions[b]) for b in decisions}
        for a in decisions
    }
)
figure, (left, right) = plt.subplots(1, 2, figsize=(9.8, 4.6), layout="constrained")
DecisionRegionsDisplay.from_predictions(y_test, proba, model.rule_, ax=left)
left.set_title("decisions of the rule", fontsize=11)
right.imshow(agreement, cmap="Blues", vmin=0.5, vmax=1.3)
for i, j in np.ndindex(agreement.shape):
    right.text(
        j, i, f"{agreement.iloc[i, j]:.1%}", ha="center", va="center", fontsize=9
    )
right.set_xticks(range(len(decisions)), decisions, rotation=25)
right.set_yticks(range(len(decisions)), decisions)
right.set_title("decided alike", fontsize=11)
plt.show()

# %%
# See :doc:`/deploy` for plain Python, other dialects of SQL, and servers.
