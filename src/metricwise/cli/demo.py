"""Argmax against the optimal rule on scikit-learn's example data: ``metricwise demo``.

Nothing is downloaded, and all numbers are of rows that neither the model nor the rule was fitted to.
"""

from __future__ import annotations

import textwrap
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_diabetes, load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict, train_test_split
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import metricwise as mw

__all__ = ["Case", "Comparison", "cases", "compare", "main"]

WIDTH = 88


@dataclass(frozen=True, eq=False)
class Case:
    """A problem, a model, and the metrics that its decisions may be judged by.

    Parameters
    ----------
    title, about : str
    X : ndarray of shape (N, D)
    y : ndarray of shape (N,) or (N, M)
        Labels that sort in the order of the classes, which is the order of the model's columns.
    model : estimator
    metrics : dict of str to (Metric, average)
    explain : str
        The metric whose rule is put into words.
    """

    title: str
    about: str
    X: NDArray[Any]
    y: NDArray[Any]
    model: Any
    metrics: dict[str, tuple[mw.metrics.Metric, str]]
    explain: str

    @property
    def classes(self) -> Any:
        """Class labels, for each output if there are several."""
        labels = np.unique(self.y)
        return labels if self.y.ndim == 1 else [labels] * self.y.shape[1]


class Comparison(NamedTuple):
    """Scores on held-out rows, one for each split, and the rule of the first split."""

    argmax: NDArray[np.float64]
    optimal: NDArray[np.float64]
    rule: Any


def cases() -> Iterator[Case]:
    """Yield a multiclass, an ordinal and a multioutput problem."""
    yield _digits()
    yield _progression()
    yield _blood()


def _logistic() -> Any:
    return make_pipeline(StandardScaler(), LogisticRegression(solver="newton-cholesky"))


def _named(*names: str, average: str = "micro") -> dict[str, tuple[mw.metrics.Metric, str]]:
    return {name: (mw.metrics.get_metric(name), average) for name in names}


def _digits() -> Case:
    X, y = load_digits(return_X_y=True)
    kept = np.random.default_rng(0).uniform(size=len(y)) < 0.8**y
    X, y = X[kept][:, ::5], y[kept].astype(str)
    counts = np.unique(y, return_counts=True)[1]
    return Case(
        "Multiclass: handwritten digits, with higher digits rarer",
        f"{len(y)} images, {counts.max()} of the digit 0 down to {counts.min()} of the digit "
        f"{counts.argmin()}, with {X.shape[1]} of their 64 pixels. Accuracy easily sacrifices rare digits; "
        "metrics that count every class equally penalise that.",
        X,
        y,
        _logistic(),
        {
            **_named("accuracy", "kappa"),
            "micro_f1": (mw.metrics.MicroF1(negative_label="0"), "micro"),
            **_named("macro_f1", "balanced_accuracy", "g_mean", "min_recall"),
        },
        "g_mean",
    )


def _progression() -> Case:
    X, target = load_diabetes(return_X_y=True)
    return Case(
        "Ordinal: progression of diabetes in five grades",
        f"{len(X)} patients; 35, 25, 20, 12 and 8 % of them have grade 0 to 4. Near misses cost less than far "
        "ones, so a grade in the middle can be the better decision although another one is more probable.",
        X,
        np.digitize(target, np.quantile(target, [0.35, 0.6, 0.8, 0.92])),
        _logistic(),
        _named("accuracy", "balanced_accuracy", "ordinal", "squared_ordinal", "linear_kappa", "quadratic_kappa"),
        "quadratic_kappa",
    )


def _blood() -> Case:
    X, target = load_diabetes(return_X_y=True)
    serum = X[:, 4:]
    grades = ["low", "normal", "raised"]
    labels = [np.array(grades)[np.digitize(column, np.quantile(column, [0.2, 0.8]))] for column in serum.T]
    return Case(
        "Multioutput: six blood values, each low, normal or raised",
        f"{len(X)} patients; age, sex, body mass, blood pressure and progression say a little about each "
        "value. Normal is nearly always the most probable class, so argmax misses most abnormal values. Here "
        "micro_f1 is the F1 of finding values that are not normal, pooled over the six; the other metrics are "
        "means over the six.",
        np.column_stack([X[:, :4], target]),
        np.column_stack(labels),
        MultiOutputClassifier(_logistic()),
        {
            "micro_f1": (mw.metrics.MicroF1(negative_label="normal"), "micro"),
            "ordinal": (mw.metrics.Ordinal(order=tuple(grades)), "macro"),
            **_named("macro_f1", "balanced_accuracy", "g_mean", average="macro"),
            "quadratic_kappa": (mw.metrics.Kappa(weights="quadratic", order=tuple(grades)), "macro"),
        },
        "micro_f1",
    )


def compare(case: Case, n_splits: int) -> dict[str, Comparison]:
    """Fit model and rules on one half of the rows and score them on the other, several times."""
    scores: dict[str, list[tuple[float, float]]] = {name: [] for name in case.metrics}
    rules: dict[str, Any] = {}
    for seed in range(n_splits):
        stratify = case.y if case.y.ndim == 1 else None
        X, X_new, y, y_new = train_test_split(case.X, case.y, test_size=0.5, random_state=seed, stratify=stratify)
        out_of_fold = cross_val_predict(case.model, X, y, cv=5, method="predict_proba")
        model = case.model.fit(X, y)
        most_probable, proba = model.predict(X_new), model.predict_proba(X_new)
        for name, (metric, average) in case.metrics.items():
            options = {"average": average, "classes": case.classes}
            solution = mw.optimize(out_of_fold, y, metric, **options)
            decided = solution.rule.predict(proba)
            scores[name].append(
                (metric.score(y_new, most_probable, **options), metric.score(y_new, decided, **options))
            )
            rules.setdefault(name, solution.rule)
    columns = {name: np.array(pairs).T for name, pairs in scores.items()}
    return {name: Comparison(argmax, optimal, rules[name]) for name, (argmax, optimal) in columns.items()}


def main(n_splits: int = 10) -> None:
    """Print the comparison."""
    start = time.perf_counter()
    print(f"metricwise {mw.__version__}: argmax against the rule that is optimal for the metric\n")
    _paragraph(
        f"Each problem is split in half at random, {n_splits} times. One half is used to fit a logistic "
        "regression and, on out-of-fold probabilities, one rule per metric with optimize(proba, y, metric), "
        "which keeps argmax if no gain is expected. The other half is held out. All scores are means over "
        "held-out halves. Accuracy is shown for comparison: argmax is already its rule."
    )
    for number, case in enumerate(cases(), start=1):
        print(f"\n{number}. {case.title}\n{'-' * (len(case.title) + 3)}")
        _paragraph(case.about)
        results = compare(case, n_splits)
        print("\n" + table(results) + "\n")
        print(f"The rule for {case.explain} from the first split:")
        _quote(results[case.explain].rule.describe())
    print(f"\nDone in {time.perf_counter() - start:.0f} seconds.")


def table(results: dict[str, Comparison]) -> str:
    """Lay out one line per metric."""
    lines = [f"    {'metric':<18}  {'argmax':>7}  {'optimal rule':>12}  {'change':>7}  better in"]
    for name, (argmax, optimal, _) in results.items():
        change = optimal.mean() - argmax.mean()
        better = f"{np.sum(optimal > argmax):>2} of {len(argmax)} splits"
        lines.append(f"    {name:<18}  {argmax.mean():7.3f}  {optimal.mean():12.3f}  {change:+7.3f}  {better}")
    return "\n".join(lines)


def _paragraph(text: str) -> None:
    print(textwrap.fill(text, WIDTH))


def _quote(text: str) -> None:
    """Print a rule in words; of several outputs the first is enough."""
    shown, _, more = text.partition("\nOutput 1:")
    for line in shown.splitlines():
        print(textwrap.fill(line, WIDTH, initial_indent="    | ", subsequent_indent="    |   "))
    if more:
        print("    | ... and similarly for the other outputs.")


if __name__ == "__main__":
    main()
