"""
A rule in its life: class shares that drift
===========================================

A rule that was tuned in January is used all year, and nobody labels new rows. Meanwhile the share of failing machines
rises and falls. :func:`metricwise.estimate_shares` estimates the share without labels, ``rule.adapted`` fits the rule
to it, and :func:`metricwise.expect` estimates F1. All of them assume that the rows of each class look as before. In one
month that is wrong, and all of them fail.
"""

# %%
# A year of machines
# ------------------
# The sensor readings are simulated. The share of failing machines changes from month to month, while running and
# failing machines look as before. Only in November, a software update adds an offset to every reading, so that the same
# reading means something else. It is corrected in December.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.model_selection import cross_val_predict

import metricwise as mw

rng = np.random.default_rng(0)
months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun"]
months += ["Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
failing = [0.1, 0.1, 0.11, 0.15, 0.22, 0.32, 0.4, 0.42, 0.35, 0.25, 0.12, 0.08]


def machines(n_rows, share, offset=0.0):
    """Temperature, vibration and age: higher before a failure."""
    y = (rng.random(n_rows) < share).astype(int)
    X = rng.normal(0.0, 1.0, (n_rows, 3)) + y[:, None] * [1.2, 1.0, 0.8]
    return X + offset, y


# %%
# The rule is fitted to machines whose state is known. Further ones are the reference of :func:`metricwise.expect`.

X_train, y_train = machines(5000, failing[0])
X_reference, y_reference = machines(5000, failing[0])
model = LogisticRegression()
proba = cross_val_predict(model, X_train, y_train, method="predict_proba")
rule = mw.optimize(proba, y_train, metric="f1").rule
model.fit(X_train, y_train)
reference = model.predict_proba(X_reference), y_reference
print(f"alarm if the probability of a failure exceeds {rule.threshold:.2f}")

# %%
# Every month
# -----------
# The labels of a month are used for true values only: the share of failures, and F1 of three rules. The rule with the
# true shares is there for comparison, because without labels nobody knows them.

records, rows = [], {}
for month, share in zip(months, failing, strict=True):
    X, y = machines(2000, share, offset=0.5 if month == "Nov" else 0.0)
    new = model.predict_proba(X)
    shares = mw.estimate_shares(rule, new)
    expected = mw.expect(rule, new, "f1", reference=reference)["f1"]
    rules = {
        "stale": rule,
        "adapted": rule.adapted(new),
        "with true shares": mw.optimize(
            proba, y_train, "f1", prior=[1 - y.mean(), y.mean()]
        ).rule,
    }
    record = {
        "share": y.mean(),
        "estimate": shares.estimate[1],
        "low": shares.low[1],
        "high": shares.high[1],
        "moved": shares.moved,
        "expected low": expected.low,
        "expected high": expected.high,
        "if shares moved": expected.if_shares_moved.estimate,
        "if rows moved": expected.if_rows_moved.estimate,
    }
    record |= {name: f1_score(y, used.predict(new)) for name, used in rules.items()}
    records.append(record)
    rows[month] = new, y
year = pd.DataFrame(records, index=months)
year[["share", "estimate", "moved", "stale", "adapted", "with true shares"]].round(2)

# %%
# Shares, and rules adapted to them
# ---------------------------------
# While only the shares move, the estimates follow them, and the adapted rule is about as good as the one with the true
# shares. Where the test does not say that shares have moved, the old share and the old rule are kept. In November the
# higher readings are taken for more failures: the adapted rule raises more alarms, and is far worse than the stale one.
# The true shares do not help either.


def shade_update(ax):
    """Mark the month of the software update."""
    at = months.index("Nov")
    ax.axvspan(at - 0.45, at + 0.45, color="#e8e8e8", zorder=0)


def draw_intervals(ax, low, high, **style):
    """Draw a bar from low to high in every month."""
    ax.vlines(np.arange(len(months)), low, high, linewidth=5, alpha=0.45, **style)


figure, (top, bottom) = plt.subplots(
    2, sharex=True, figsize=(7, 6.4), layout="constrained"
)
draw_intervals(
    top, year["low"], year["high"], color="#0072b2", label="95 % interval, no labels"
)
top.plot(year["estimate"], "o", color="#0072b2", markersize=5, label="estimated share")
top.plot(year["share"], "_", color="black", markersize=16, mew=2, label="true share")
top.set(ylabel="share of failures", ylim=(0, 0.8))
for name, style, color in (
    ("with true shares", "D:", "#333333"),
    ("adapted", "o-", "#0072b2"),
    ("stale", "s--", "#e69f00"),
):
    bottom.plot(year[name], style, color=color, markersize=5, label=name)
bottom.set(ylabel="F1 of the rule", ylim=(0.2, 1))
for ax in (top, bottom):
    shade_update(ax)
    ax.legend(loc="upper left", ncols=2, fontsize=9)
top.annotate("software update", (10, 0.02), ha="center", fontsize=9)
plt.show()

# %%
# F1 without labels
# -----------------
# For each month, :func:`metricwise.expect` gives an interval of F1 of the stale rule. It covers two explanations, that
# shares have moved and that other rows are drawn, because rows without labels do not say which one is right. The
# software update is neither of them: in November, F1 is far below the interval.

figure, ax = plt.subplots(figsize=(7, 3.8), layout="constrained")
draw_intervals(
    ax,
    year["expected low"],
    year["expected high"],
    color="#e69f00",
    label="95 % interval, no labels",
)
ax.plot(year["if shares moved"], "^", color="#0072b2", label="if shares moved")
ax.plot(year["if rows moved"], "v", color="#cc79a7", label="if rows moved")
ax.plot(year["stale"], "_", color="black", markersize=16, mew=2, label="true F1")
shade_update(ax)
ax.annotate("software update", (10, 0.41), ha="center", fontsize=9)
ax.set(ylabel="F1 of the stale rule", ylim=(0.4, 0.9))
ax.legend(loc="upper left", ncols=2, fontsize=9)
plt.show()

missed = (year["stale"] < year["expected low"]) | (
    year["stale"] > year["expected high"]
)
print("outside of its interval:", ", ".join(year.index[missed]))

# %%
# A few labels
# ------------
# Rows without labels do not show what happened in November. A hundred labels do: far fewer machines fail than the
# estimate says. Then fit again with new labels, instead of using the adapted rule.

new, y = rows["Nov"]
share = y[:100].mean()
error = 1.96 * np.sqrt(share * (1 - share) / 100)
print(
    f"failures without labels: {year.loc['Nov', 'low']:.0%} to "
    f"{year.loc['Nov', 'high']:.0%}; of 100 labels: {share - error:.0%} to {share + error:.0%}"
)
again = mw.optimize(new[:300], y[:300], metric="f1").rule
for name, used in {"stale": rule, "fitted to 300 labels": again}.items():
    print(f"{name}: F1 {f1_score(y[300:], used.predict(new[300:])):.2f}")
