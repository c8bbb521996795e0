"""
Ordinal grades with quadratic kappa
===================================

Grades have an order, and quadratic kappa punishes an error by the square of its distance. The most probable grade is
then often the wrong answer: between a likely 1 and a likely 5, a 3 costs less on average. This example grades the
progression of diabetes in five steps, with one logistic regression and two ways to decide.
"""

# %%
# The data and a model
# --------------------
# The target of scikit-learn's diabetes data is cut into five grades of unequal size. Rules are fitted on
# probabilities of rows that the model has not seen: out-of-fold predictions serve.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import ConfusionMatrixDisplay, cohen_kappa_score
from sklearn.model_selection import cross_val_predict, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import metricwise as mw

X, progression = load_diabetes(return_X_y=True)
y = np.digitize(progression, [75, 125, 200, 280])
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)

model = make_pipeline(StandardScaler(), LogisticRegression())
proba = cross_val_predict(model, X_train, y_train, method="predict_proba")

# %%
# The rule
# --------
# `solution.gain` estimates, on rows that the rule has not seen, what it adds to the most probable grade.

solution = mw.optimize(proba, y_train, metric="quadratic_kappa")
solution.gain

# %%
print(solution.rule.describe())

# %%
# On new patients
# ---------------
# scikit-learn's own function says what both decisions are worth on the other half of the patients.

new_proba = model.fit(X_train, y_train).predict_proba(X_test)
decisions = {"most probable grade": new_proba.argmax(axis=1), "optimal rule": solution.rule.predict(new_proba)}
kappas = {name: cohen_kappa_score(y_test, grades, weights="quadratic") for name, grades in decisions.items()}
kappas

# %%
# Where the decisions moved:

figure, axes = plt.subplots(1, 2, figsize=(8, 3.6), sharey=True, layout="constrained")
for ax, (name, grades) in zip(axes, decisions.items(), strict=True):
    ConfusionMatrixDisplay.from_predictions(y_test, grades, ax=ax, cmap="Blues", colorbar=False)
    ax.set(title=f"{name}: kappa {kappas[name]:.2f}", xlabel="decided grade", ylabel="grade")
plt.show()
