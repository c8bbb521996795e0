"""
A rule in production: JSON, SQL and ONNX
========================================

A rule that was fitted in a notebook is used elsewhere: in a service, in a database, or in a runtime without Python. If
only the model is exported, the rule is lost and the most probable class is predicted again. This example exports one
rule to three systems and compares their decisions.
"""

# %%
# Fit the rule
# ------------
# The data are simulated loans in three grades of risk. The metric is quadratic kappa: predicting a low risk for a high
# one is worse than predicting a medium one.

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
# The file contains a few numbers and metadata: the metric, the number of rows of each class, the value and the gain. It
# contains no data. :func:`metricwise.load_rule` validates the file and never executes code from it.

text = model.rule_.to_json()
print(f"{len(text):,} characters, with the parts {', '.join(json.loads(text))}")
decisions = {
    "predict": model.predict(X_test),
    "JSON": mw.load_rule(text).predict(proba),
}

# %%
# SQL: decisions in the database
# ------------------------------
# :func:`metricwise.export.to_sql` writes one expression over the columns of the probabilities. SQLite, which is part of
# Python, is used here instead of a data warehouse. The expression starts with a check: rows without valid probabilities
# are NULL.

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
# Equal decisions
# ---------------
# The quadratic kappa of each system on new loans, computed with scikit-learn, and the number of decisions that differ
# from those of the notebook. The last line is the model exported without its rule.

decisions["model alone"] = model.estimator_.predict(X_test)
for name, decided in decisions.items():
    kappa = cohen_kappa_score(y_test, decided, labels=order, weights="quadratic")
    print(
        f"{name}: kappa {kappa:.3f}, {np.sum(decided != decisions['predict'])} decisions differ"
    )

# %%
# On the left, each dot is a loan; its position shows the probabilities of the three grades, with one grade at each
# corner. On the right is the share of loans with equal decisions of two systems.

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
