"""Compare MetricOptimalClassifierCV with scikit-learn's TunedThresholdClassifierCV: time and value on new rows.

    python benchmarks/tuning_speed.py            both; writes tuning_speed.csv, tuning_value.csv and tuning_speed.md
    python benchmarks/tuning_speed.py --quick    a minute's worth, writes nothing

The time is that of tuning alone: the model is already fitted, and the time of its predict_proba is subtracted. It is
processor time on one core, so that other processes have little influence.

Values are computed on test rows, both classifiers with their defaults, over random splits. Splits share rows, so the
variance over splits is increased by n_test / n_train (Nadeau and Bengio 2003).
"""

from __future__ import annotations

import argparse
import csv
import time
from pathlib import Path

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_breast_cancer, load_digits, make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import get_scorer
from sklearn.model_selection import (
    StratifiedKFold,
    TunedThresholdClassifierCV,
    cross_val_predict,
    train_test_split,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import metricwise as mw

HERE = Path(__file__).parent
METRICS = ("f1", "balanced_accuracy", "matthews_corrcoef")


class Known(ClassifierMixin, BaseEstimator):
    """A fitted model whose single feature is the probability."""

    classes_ = np.array([0, 1])

    def __sklearn_is_fitted__(self):
        return True

    def fit(self, X, y):
        return self

    def predict_proba(self, X):
        return np.column_stack([1 - X[:, 0], X[:, 0]])


def seconds(repeats, action, *arguments):
    times = []
    for _ in range(repeats):
        start = time.process_time()
        action(*arguments)
        times.append(time.process_time() - start)
    return min(times)


def speed(sizes, repeats=3):
    rng = np.random.default_rng(0)
    rows = []
    for n in sizes:
        p = rng.beta(0.5, 3, n)
        X, y = p[:, None], (rng.random(n) < p).astype(int)
        model = Known()
        idle = seconds(repeats, model.predict_proba, X)
        settings = {"cv": "prefit", "refit": False}
        for metric in METRICS:
            theirs = TunedThresholdClassifierCV(model, scoring=metric, **settings)
            fixed = mw.MetricOptimalClassifierCV(
                model, metric=metric, strategy=mw.Strategy(confusion="labels", recalibrate=False), **settings
            )
            default = mw.MetricOptimalClassifierCV(model, metric=metric, **settings)
            took = [seconds(repeats, one.fit, X, y) - idle for one in (theirs, fixed, default)]
            rows.append(
                {
                    "rows": n,
                    "metric": metric,
                    "TunedThresholdClassifierCV_ms": round(1e3 * took[0], 1),
                    "labels_ms": round(1e3 * took[1], 1),
                    "labels_times_faster": round(took[0] / took[1], 1),
                    "default_ms": round(1e3 * took[2], 1),
                    "default_times_faster": round(took[0] / took[2], 1),
                }
            )
            print(rows[-1], flush=True)
    return rows


def data():
    cancer, digits = load_breast_cancer(), load_digits()
    yield "cancer (4 features)", cancer.data[:, :4], cancer.target
    yield "digits: is it 8?", digits.data, (digits.target == 8).astype(int)
    yield "made up, 10 %", *make_classification(1500, weights=[0.9], flip_y=0.05, class_sep=0.7, random_state=0)
    yield "made up, 3 %", *make_classification(3000, weights=[0.97], flip_y=0.02, class_sep=0.8, random_state=1)
    yield "made up, even", *make_classification(800, flip_y=0.2, random_state=2)


MODELS = {
    "logistic regression": make_pipeline(StandardScaler(), LogisticRegression(max_iter=500)),
    "naive Bayes": GaussianNB(),
    "boosting": HistGradientBoostingClassifier(max_iter=30, random_state=0),
}


class Replay(ClassifierMixin, BaseEstimator):
    """Replays the predictions of the folds and the final model by row number, computed once for all metrics."""

    def __init__(self, proba):
        self.proba = proba

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        return self.proba[X[:, 0]]

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


def replay(model, X, y, fit_rows, new_rows, folds):
    """Return a model of row numbers, and the splits of the rows that it is fitted to."""
    splits = list(folds.split(X[fit_rows], y[fit_rows]))
    proba = np.empty((len(y), 2))
    proba[fit_rows] = cross_val_predict(model, X[fit_rows], y[fit_rows], cv=splits, method="predict_proba")
    proba[new_rows] = clone(model).fit(X[fit_rows], y[fit_rows]).predict_proba(X[new_rows])
    return Replay(proba), splits


def value(n_splits, test_share=0.5):
    rows = []
    for name, X, y in data():
        number = np.arange(len(y))[:, None]
        for model_name, model in MODELS.items():
            scores = {metric: [] for metric in METRICS}
            for seed in range(n_splits):
                fit, new = train_test_split(number, test_size=test_share, stratify=y, random_state=seed)
                known, splits = replay(model, X, y, fit[:, 0], new[:, 0], StratifiedKFold(5))
                y_fit, y_new = y[fit[:, 0]], y[new[:, 0]]
                for metric in METRICS:
                    scorer = get_scorer(metric)
                    theirs = TunedThresholdClassifierCV(known, scoring=metric, cv=splits).fit(fit, y_fit)
                    ours = mw.MetricOptimalClassifierCV(known, metric=metric, cv=splits).fit(fit, y_fit)
                    scores[metric].append([scorer(one, new, y_new) for one in (ours.estimator_, theirs, ours)])
            for metric in METRICS:
                rows.append(cell(name, model_name, metric, np.array(scores[metric]), test_share / (1 - test_share)))
                print(rows[-1], flush=True)
    return rows


def cell(name, model_name, metric, scores, ratio):
    low, high = interval(scores[:, 2] - scores[:, 1], ratio)
    plain, theirs, ours = scores.mean(axis=0).tolist()
    return {
        "data": name,
        "model": model_name,
        "metric": metric,
        "argmax": round(plain, 4),
        "TunedThresholdClassifierCV": round(theirs, 4),
        "MetricOptimalClassifierCV": round(ours, 4),
        "difference": round(ours - theirs, 4),
        "low": round(low, 4),
        "high": round(high, 4),
    }


def interval(differences, ratio):
    """95 % interval of a mean over random splits."""
    n = len(differences)
    half = 1.96 * np.sqrt(differences.var(ddof=1) * (1 / n + ratio)) if n > 1 else np.inf
    return float(differences.mean() - half), float(differences.mean() + half)


def overall(rows):
    """The mean over all cells, and an interval over the data sets, whose cells are not independent."""
    by_data = {}
    for row in rows:
        by_data.setdefault(row["data"], []).append(row["difference"])
    means = np.array([np.mean(values) for values in by_data.values()])
    half = 2.776 * means.std(ddof=1) / np.sqrt(len(means))  # Student's t with 4 degrees of freedom
    return means.mean(), means.mean() - half, means.mean() + half


def table(rows):
    head = list(rows[0])
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(str(row[key]) for key in head) + " |" for row in rows])


def write(name, rows):
    with (HERE / name).open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def report(speeds, values, n_splits):
    mean, low, high = overall(values)
    better = sum(row["low"] > 0 for row in values)
    worse = sum(row["high"] < 0 for row in values)
    least = min(row["labels_times_faster"] for row in speeds)
    return f"""# Comparison with TunedThresholdClassifierCV

Made by `python benchmarks/tuning_speed.py`. Processor time of one core.

## Time of the tuning part

"labels" is `confusion="labels", recalibrate=False`: the best of all thresholds, found by one sorted sweep, whereas
scikit-learn tries 100. It is at least {least:g} times faster. "default" fits rules to
resamples, recalibrates, and estimates the gain on new rows; TunedThresholdClassifierCV does none of that.

{table(speeds)}

## Value on new rows, both with their defaults

Mean over {n_splits} random splits in halves. Difference of MetricOptimalClassifierCV to TunedThresholdClassifierCV over
all {len(values)} cells: **{mean:+.4f}**, 95 % interval {low:+.4f} to {high:+.4f} (over data sets). In {better} cells
the interval lies above 0, in {worse} below.

{table(values)}
"""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    n_splits = 2 if quick else 5
    speeds = speed((10_000,) if quick else (10_000, 100_000, 1_000_000))
    values = value(n_splits)
    if not quick:
        write("tuning_speed.csv", speeds)
        write("tuning_value.csv", values)
        (HERE / "tuning_speed.md").write_text(report(speeds, values, n_splits))


if __name__ == "__main__":
    main()
