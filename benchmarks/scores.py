"""Rules on scores, logits and probabilities compared with TunedThresholdClassifierCV, on real sets with two classes.

    python -m benchmarks.scores                    writes scores.csv and scores.md beside it
    python -m benchmarks.scores --splits 2         a minute's worth, writes nothing
    python -m benchmarks.scores --only digits      sets by a part of their name; writes nothing
    python -m benchmarks.scores --tables           scores.md alone, from scores.csv

A set is split at random into halves, stratified. The first half gives out-of-fold responses of a model (five folds), to
which rules are fitted; the model is then fitted to the whole half, and decisions are evaluated on the other half. All
methods get the same responses. "metricwise" takes the input that ``response="auto"`` of the estimators chooses:
probabilities, unless there are none or these tie more than 1 % of the rows, which log-probabilities or logits tell
apart. TunedThresholdClassifierCV takes what its ``response_method="auto"`` chooses. The exact sweep is the best
threshold of the log-odds or scores on the out-of-fold rows.

Standard errors are those of the mean over splits as if these were independent. Splits of one set share rows: the errors
tell how much the split matters, not how much other rows from the same source would.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import make_scorer
from sklearn.model_selection import StratifiedKFold, TunedThresholdClassifierCV, train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import metricwise as mw

from .generalisation.data import Rows
from .generalisation.statistics import holm, p_below_zero
from .machine import cores, facts
from .promise_runs import by, in_processes, mean
from .score_sets import BINARY, binary_set
from .tables import table, write_csv, write_text

HERE = Path(__file__).parent
SPLITS = 15
FOLDS = 5
BEYOND_NOISE = 2.0  # standard errors
LEVEL = float(norm.sf(BEYOND_NOISE))  # of one-sided tests
CERTAIN, MAX_TIED = 1e-6, 0.01  # of probabilities that tie rows, as in the estimators
INPUTS = ("probabilities", "logits", "scores")
COLUMNS = ("set", "model", "split", "metric", "input", "argmax", "tuned", "sweep", *INPUTS)
GOAL_CELL = ("digits, an 8", "naive Bayes", "f1")
GOAL = 0.58

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
Answers = dict[str, NDArray[Any]]


# ---------------------------------------------------------------------------------------------------------------------
# metrics of counts, of one decision per row or of all thresholds at once


def ratio(numerator: Any, denominator: Any) -> Any:
    """Return quotients, and 0 for 0/0."""
    return np.divide(numerator, denominator, out=np.zeros(np.shape(numerator)), where=np.asarray(denominator) > 0)


def f1(tp: Any, fp: Any, fn: Any, _tn: Any) -> Any:
    return ratio(2 * tp, 2 * tp + fp + fn)


def mcc(tp: Any, fp: Any, fn: Any, tn: Any) -> Any:
    return ratio(tp * tn - fp * fn, np.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)))


def kappa(tp: Any, fp: Any, fn: Any, tn: Any) -> Any:
    return ratio(2 * (tp * tn - fp * fn), (tp + fp) * (fp + tn) + (tp + fn) * (fn + tn))


def balanced_accuracy(tp: Any, fp: Any, fn: Any, tn: Any) -> Any:
    return (ratio(tp, tp + fn) + ratio(tn, tn + fp)) / 2


METRICS: dict[str, Callable[..., Any]] = {f.__name__: f for f in (f1, mcc, kappa, balanced_accuracy)}


def value(y: IntArray, decided: NDArray[Any], *, metric: str) -> float:
    counts = np.bincount(2 * y + np.asarray(decided, dtype=np.intp), minlength=4).astype(float)
    tn, fp, fn, tp = counts
    return float(METRICS[metric](tp, fp, fn, tn))


# ---------------------------------------------------------------------------------------------------------------------
# models


@dataclass(frozen=True)
class Model:
    """A classifier, what its scores are ("logits", "log_proba" or "scores"), and a function that returns them."""

    estimator: Any
    kind: str
    respond: Callable[[Any, FloatArray], FloatArray]

    def answers(self, fitted: Any, X: FloatArray) -> Answers:
        """Return the decisions of a fitted model, its scores of class 1, and the inputs that it can give."""
        response = self.respond(fitted, X)
        scores = response[:, 1] - response[:, 0] if response.ndim == 2 else response
        answers = {"decided": fitted.predict(X), "scores": scores}
        if hasattr(fitted, "predict_proba"):
            answers |= {"probabilities": fitted.predict_proba(X), "logits": response}
        return answers


def decision_function(fitted: Any, X: FloatArray) -> FloatArray:
    return np.asarray(fitted.decision_function(X))


def log_proba(fitted: Any, X: FloatArray) -> FloatArray:
    return np.asarray(fitted.predict_log_proba(X))


def network_logits(fitted: Any, X: FloatArray) -> FloatArray:
    """Return the output of a network before its sigmoid."""
    network, hidden = fitted[-1], fitted[:-1].transform(X)
    *layers, last = zip(network.coefs_, network.intercepts_, strict=True)
    for weights, bias in layers:
        hidden = np.maximum(hidden @ weights + bias, 0)
    return np.asarray(hidden @ last[0] + last[1])[:, 0]


def scaled(estimator: Any) -> Any:
    return make_pipeline(StandardScaler(), estimator)


MODELS = {
    "naive Bayes": Model(GaussianNB(), "log_proba", log_proba),
    "linear SVM": Model(scaled(LinearSVC(random_state=0)), "scores", decision_function),
    "logistic regression": Model(scaled(LogisticRegression(max_iter=300)), "logits", decision_function),
    "boosting": Model(
        HistGradientBoostingClassifier(max_iter=40, max_leaf_nodes=8, learning_rate=0.15, random_state=0),
        "logits",
        decision_function,
    ),
    "small network": Model(
        scaled(MLPClassifier((16,), activation="relu", max_iter=150, learning_rate_init=0.01, random_state=0)),
        "logits",
        network_logits,
    ),
}


# ---------------------------------------------------------------------------------------------------------------------
# one split


@dataclass(frozen=True, eq=False)
class Split:
    """What a model says of all rows: out-of-fold in the first half, and fitted to it in the second."""

    kind: str
    y: IntArray
    answers: Answers
    fit: IntArray
    new: IntArray
    folds: list[tuple[IntArray, IntArray]]


def split_rows(model: Model, rows: Rows, seed: int) -> Split:
    """Split the rows into halves, fit the model to the folds of the first half and to all of it."""
    fit, new = train_test_split(np.arange(len(rows.y)), test_size=0.5, stratify=rows.y, random_state=seed)
    folds = list(StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(fit, rows.y[fit]))
    parts = [(fit[train], fit[left_out]) for train, left_out in folds] + [(fit, new)]
    asked = [(where, ask(model, rows, train, where)) for train, where in parts]
    answers = {name: np.empty((len(rows.y), *part.shape[1:])) for name, part in asked[0][1].items()}
    for where, found in asked:
        for name, part in found.items():
            answers[name][where] = part
    return Split(model.kind, rows.y, answers, fit, new, folds)


def ask(model: Model, rows: Rows, train: IntArray, where: IntArray) -> Answers:
    return model.answers(clone(model.estimator).fit(rows.X[train], rows.y[train]), rows.X[where])


class ReplayedScores(ClassifierMixin, BaseEstimator):
    """A model whose feature is the row number, and whose decision function is known."""

    def __init__(self, known: Any) -> None:
        self.known = known

    def fit(self, X: Any, y: Any) -> Any:
        self.classes_ = np.unique(y)
        return self

    def decision_function(self, X: Any) -> FloatArray:
        return np.asarray(self.known[X[:, 0]])


class ReplayedProbabilities(ReplayedScores):
    """A model whose feature is the row number, and whose probabilities are known."""

    def predict_proba(self, X: Any) -> FloatArray:
        return np.asarray(self.known[X[:, 0]])


def decide_tuned(split: Split, metric: str) -> NDArray[Any]:
    """Decide the new rows by TunedThresholdClassifierCV: the mean of the metric over folds is maximised."""
    answers = split.answers
    if "probabilities" in answers:
        model = ReplayedProbabilities(answers["probabilities"])
    else:
        model = ReplayedScores(answers["scores"])
    scorer = make_scorer(value, metric=metric)
    tuned = TunedThresholdClassifierCV(model, scoring=scorer, cv=split.folds).fit(
        split.fit[:, None], split.y[split.fit]
    )
    return np.asarray(tuned.predict(split.new[:, None]))


def best_threshold(scores: FloatArray, y: IntArray, metric: str) -> float:
    """Return the best threshold of scores: class 1 above it; halfway between two scores."""
    order = np.argsort(-scores, kind="stable")
    scores, hits = scores[order], y[order]
    ends = np.append(np.flatnonzero(np.diff(scores)), len(scores) - 1)
    tp = np.append(0, np.cumsum(hits)[ends]).astype(float)
    fp = np.append(0, ends + 1) - tp
    best = int(np.argmax(METRICS[metric](tp, fp, hits.sum() - tp, (1 - hits).sum() - fp)))
    bounds = np.concatenate([[np.inf], scores[ends], [-np.inf]])
    return float(bounds[best] + bounds[best + 1]) / 2


def decide_sweep(split: Split, metric: str) -> NDArray[Any]:
    scores = split.answers["scores"]
    return np.asarray(scores[split.new] > best_threshold(scores[split.fit], split.y[split.fit], metric))


def decide_ours(split: Split, metric: str, name: str) -> NDArray[Any]:
    """Decide the new rows by `metricwise.optimize` with its defaults, on one of the inputs."""
    rows = split.answers[name]
    kind = split.kind if name == "logits" else name
    rule = mw.optimize(rows[split.fit], split.y[split.fit], metric, input=kind).rule
    return np.asarray(rule.predict(rows[split.new]))


def chosen_input(split: Split) -> str:
    """Return the input that the estimators choose: the first one that does not tie rows which the next tells apart."""
    if "probabilities" not in split.answers:
        return "scores"
    p, scores = split.answers["probabilities"][split.fit], split.answers["scores"][split.fit]
    certain = p.max(axis=1) >= 1 - CERTAIN
    sides = (certain & (p.argmax(axis=1) == side) for side in (0, 1))
    tied = sum(int(side.sum()) for side in sides if len(np.unique(scores[side])) > 1)
    return "logits" if tied > MAX_TIED * len(p) else "probabilities"


def measure(task: tuple[str, str, int]) -> list[dict[str, Any]]:
    """Return the rows of the CSV file of one set, model and split, one for each metric."""
    name, model, seed = task
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # networks that have not converged, rules of few positives
        split = split_rows(MODELS[model], binary_set(name), seed)
        head = {"set": name, "model": model, "split": seed, "input": chosen_input(split)}
        return [head | {"metric": metric} | values(split, metric) for metric in METRICS]


def values(split: Split, metric: str) -> dict[str, float]:
    """Return the metric of each method on the new rows."""
    decisions = {
        "argmax": split.answers["decided"][split.new],
        "tuned": decide_tuned(split, metric),
        "sweep": decide_sweep(split, metric),
    }
    decisions |= {name: decide_ours(split, metric, name) for name in INPUTS if name in split.answers}
    judge = partial(value, split.y[split.new], metric=metric)
    return {who: round(judge(decided), 6) for who, decided in decisions.items()}


# ---------------------------------------------------------------------------------------------------------------------
# what is made of them


@dataclass(frozen=True, eq=False)
class Cell:
    """A set, a model and a metric: metricwise minus TunedThresholdClassifierCV, over splits."""

    key: tuple[str, str, str]
    rows: list[dict[str, Any]]

    @property
    def differences(self) -> FloatArray:
        return ours(self.rows) - column(self.rows, "tuned")

    @property
    def mean(self) -> float:
        return float(self.differences.mean())

    @property
    def error(self) -> float:
        return standard_error(self.differences)

    def p_below(self, test_share: float = 0.0) -> float:
        return p_below_zero(self.differences, test_share)

    def p_above(self) -> float:
        return p_below_zero(-self.differences, 0.0)


def column(rows: Iterable[dict[str, Any]], who: str) -> FloatArray:
    return np.array([row[who] for row in rows])


def ours(rows: Iterable[dict[str, Any]]) -> FloatArray:
    """Return the values of metricwise on the input that the estimators choose."""
    return np.array([row[row["input"]] for row in rows])


def standard_error(differences: FloatArray) -> float:
    return float(differences.std(ddof=1) / np.sqrt(len(differences)))


def cells_of(rows: list[dict[str, Any]]) -> list[Cell]:
    groups: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["set"], row["model"], row["metric"]), []).append(row)
    return [Cell(key, group) for key, group in groups.items()]


def verdict(cells: list[Cell]) -> str:
    """Return how many cells are below or above, with and without Holm's correction."""
    below, above = [cell.p_below() for cell in cells], [cell.p_above() for cell in cells]
    n_resampled = count_below(holm([cell.p_below(test_share=1.0) for cell in cells]))
    lowest = min(cells, key=lambda cell: cell.p_below())
    lost = [cell for cell, p in zip(cells, holm(below), strict=True) if p < LEVEL]
    lines = [
        f"metricwise minus TunedThresholdClassifierCV, {len(cells)} cells of set, model and metric: mean",
        f"**{mean(cell.mean for cell in cells):+.4f}**. After Holm's correction, below by more than {BEYOND_NOISE:g}",
        f"standard errors: **{len(lost)}** cells; above: **{count_below(holm(above))}**. Without the correction",
        f"{count_below(below)} and {count_below(above)}, by chance {LEVEL * len(cells):.1f} each. With the variance of",
        f"splits that share rows (Nadeau and Bengio 2003) and Holm's correction, below: {n_resampled}.",
        f"The lowest cell is {', '.join(lowest.key)}: {lowest.mean:+.4f}, standard error {lowest.error:.4f}.",
    ]
    return "\n".join(lines + [f"\n- below: {', '.join(cell.key)}: {cell.mean:+.4f}" for cell in lost])


def count_below(p_values: Iterable[float]) -> int:
    return int(np.sum(np.asarray(p_values) < LEVEL))


def goal_line(rows: list[dict[str, Any]]) -> str:
    """Return the values of the set on which probabilities lose most, beside the exact sweep of log-odds."""
    rows = [row for row in rows if (row["set"], row["model"], row["metric"]) == GOAL_CELL]
    if not rows:
        return ""
    apart = ours(rows) - column(rows, "sweep")
    shown = ", ".join(f"{who} {column(rows, who).mean():.3f}" for who in ("argmax", "tuned", "sweep", *INPUTS))
    lines = [
        f"{', '.join(GOAL_CELL)}: {shown}.",
        f"metricwise on {'/'.join(by(rows, 'input'))} **{ours(rows).mean():.3f}** (goal {GOAL}), minus the exact sweep",
        f"{apart.mean():+.4f}, standard error {standard_error(apart):.4f}.",
    ]
    return "\n".join(lines)


def means_by_model(rows: list[dict[str, Any]]) -> str:
    """Return a table of the means over sets and splits of each model and metric."""
    pairs = [(model, metric) for model in by(rows, "model") for metric in METRICS]
    return table(
        [
            mean_row(model, metric, [row for row in rows if (row["model"], row["metric"]) == (model, metric)])
            for model, metric in pairs
        ],
        left=2,
    )


def mean_row(model: str, metric: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    head = {"model": model, "metric": metric}
    names = {"argmax": "argmax", "tuned": "TunedThreshold", "sweep": "exact sweep"} | {name: name for name in INPUTS}
    shown = {names[who]: f"{column(rows, who).mean():.4f}" if who in rows[0] else None for who in names}
    return head | shown | {"**metricwise**": f"{ours(rows).mean():.4f}"}


def differences_by_cell(cells: list[Cell]) -> str:
    """Return a table of the differences with their standard errors; a column for each metric."""
    by_pair: dict[tuple[str, str], dict[str, str]] = {}
    for cell in cells:
        name, model, metric = cell.key
        chosen = "/".join(by(cell.rows, "input"))
        by_pair.setdefault((name, model), {"input": chosen})[metric] = f"{cell.mean:+.4f} ± {cell.error:.4f}"
    return table([{"set": name, "model": model} | row for (name, model), row in by_pair.items()], left=3)


def report(rows: list[dict[str, Any]], made_with: str) -> str:
    cells = cells_of(rows)
    n_splits = len(by(rows, "split"))
    return f"""# Scores, logits and probabilities beside TunedThresholdClassifierCV

Made by `python -m benchmarks.scores`; all splits are in `scores.csv`. Real sets: {len(by(rows, "set"))}; random
halves: {n_splits}. {made_with}
Standard errors are those of the mean over splits of the same rows, as if splits were independent.

{verdict(cells)}

{goal_line(rows)}

## Mean over sets

"metricwise" is the column of the input that `response="auto"` chooses for each split.

{means_by_model(rows)}

## metricwise minus TunedThresholdClassifierCV

{differences_by_cell(cells)}
"""


def versions() -> str:
    machine = facts()
    listed = ", ".join(f"{name} {machine[name]}" for name in ("numpy", "scikit-learn"))
    return f"Python {machine['Python']}, metricwise {mw.__version__}, {listed}."


def run(names: list[str], splits: int, jobs: int) -> list[dict[str, Any]]:
    """Return the rows of the CSV file, and print each set's progress."""
    for name in names:
        binary_set(name)  # a file that is missing is reported before anything runs
    tasks = [(name, model, split) for name in names for model in MODELS for split in range(splits)]
    rows: list[dict[str, Any]] = []
    for task, found in zip(tasks, in_processes(measure, tasks, jobs), strict=True):
        rows += found
        if task[2] == splits - 1:
            print(task[0], task[1], f"{len(rows)} of {len(tasks) * len(METRICS)}", sep=", ", flush=True)
    return rows


def stored(path: Path) -> list[dict[str, Any]]:
    """Return the rows of the CSV file; inputs that a model does not give are left out."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    words = ("set", "model", "metric", "input")
    return [{key: cell if key in words else float(cell) for key, cell in row.items() if cell} for row in rows]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--splits", type=int, default=SPLITS, help="other than the default, nothing is written")
    parser.add_argument("--only", default="", help="sets by a part of their name; nothing is written")
    parser.add_argument("--jobs", type=int, default=cores(), help="processes")
    parser.add_argument("--tables", action="store_true", help="scores.md alone, from scores.csv")
    options = parser.parse_args()
    path = HERE / "scores.csv"
    names = [name for name in BINARY if options.only in name]
    rows = stored(path) if options.tables else run(names, options.splits, options.jobs)
    text = report(rows, versions())
    print(text)
    if options.tables or (options.splits == SPLITS and not options.only):
        write_csv(path, [{key: row.get(key, "") for key in COLUMNS} for row in rows])
        write_text(HERE / "scores.md", text)


if __name__ == "__main__":
    main()
