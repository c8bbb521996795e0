"""Time of the default call, `optimize(proba, y, metric)`, of a single fit, and of Nelder-Mead with folds.

    python benchmarks/default.py                    writes default.csv and default.md beside it
    python benchmarks/default.py --quick            fewer rows and rounds; writes nothing
    python benchmarks/default.py --output folder

The default fits rules to resamples, evaluates them on the rows left out, and estimates the gain on new rows. The single
fit, `confusion="labels", recalibrate=False`, has no estimates. Nelder-Mead over class weights, with vectorised
objectives, is run with five folds for an estimate on held-out rows, and a sixth fit for the rule. All alternate, and
the best of the rounds counts. Labels are drawn from skewed probabilities, so that argmax neglects some classes.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from generalisation.peers import confusion, nelder_mead
from machine import facts
from tables import significant, table, write_csv, write_text

import metricwise as mw

HERE = Path(__file__).parent
FIXED = {"strategy": mw.Strategy(confusion="labels", recalibrate=False)}
METRICS = ("f1", "micro_f1", "macro_f1", "min_recall", "quadratic_kappa")
CLASSES = (2, 4, 10)
FEW, MANY = 1_000, 1_000_000
MOST_TIMES = {FEW: 25, MANY: 6}  # at most so many times as long as the fixed recipe
LABELS = ((1_000, 200, None), (20_000, 200, 1_500.0), (1_000, 5_000, 3_000.0))  # rows, labels, ms at most


def multiclass(n_rows: int, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(n_rows + n_classes)
    scores = 1.5 * rng.normal(size=(n_rows, n_classes)) + np.linspace(1.5, 0, n_classes)
    proba = np.exp(scores)
    proba /= proba.sum(axis=1, keepdims=True)
    passed = rng.random((n_rows, 1)) > np.cumsum(proba, axis=1)
    return proba, np.minimum(passed.sum(axis=1), n_classes - 1)


def multilabel(n_rows: int, n_labels: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(n_rows + n_labels)
    proba = rng.beta(rng.uniform(0.3, 0.6, n_labels), rng.uniform(2, 20, n_labels), (n_rows, n_labels))
    return proba, (rng.random(proba.shape) < proba).astype(int)


def safe_nelder_mead(proba: np.ndarray, y: np.ndarray, metric: Any) -> None:
    """Fit to five folds, each evaluated on the rows left out, and to all rows."""
    fold = np.random.default_rng(0).permutation(len(y)) % 5
    for f in range(5):
        predict = nelder_mead(proba[fold != f], y[fold != f], metric)
        metric.value(confusion(y[fold == f], predict(proba[fold == f]), proba.shape[1]))
    nelder_mead(proba, y, metric)


def best_of(calls: list[Callable[[], Any]], rounds: int) -> list[float]:
    """Return the seconds of each call, best of the rounds, in which the calls alternate."""
    best = [np.inf] * len(calls)
    for _ in range(rounds):
        for number, call in enumerate(calls):
            start = time.perf_counter()
            call()
            best[number] = min(best[number], time.perf_counter() - start)
    return best


def of_classes(n_rows: int, rounds: int) -> list[dict[str, Any]]:
    rows = []
    for n_classes in CLASSES:
        proba, y = multiclass(n_rows, n_classes)
        for name in METRICS:
            if (name == "f1") != (n_classes == 2) and name in ("f1", "micro_f1"):
                continue  # with two classes micro-F1 is F1
            metric = mw.metrics.get_metric(name)
            calls = [
                lambda p=proba, y=y, m=metric: mw.optimize(p, y, m),
                lambda p=proba, y=y, m=metric: mw.optimize(p, y, m, **FIXED),
            ]
            if n_rows <= FEW:
                calls.append(lambda p=proba, y=y, m=metric: safe_nelder_mead(p, y, m))
            rows.append(row(f"{name}, K={n_classes}", n_rows, best_of(calls, rounds), MOST_TIMES.get(n_rows)))
            print(rows[-1], flush=True)
    return rows


def of_labels(rounds: int, cut: int) -> list[dict[str, Any]]:
    rows = []
    for n_rows, n_labels, most in LABELS:
        proba, y = multilabel(n_rows // cut, n_labels)
        for average in ("micro", "macro"):
            calls = [
                lambda p=proba, y=y, a=average, o=options: mw.optimize(p, y, "f1", average=a, **o)
                for options in ({}, FIXED)
            ]
            title = f"multilabel f1, {average}, M={n_labels:,}"
            rows.append(row(title, n_rows // cut, best_of(calls, rounds), None, most))
            print(rows[-1], flush=True)
    return rows


def row(
    what: str, n_rows: int, seconds: list[float], most_times: float | None, most_ms: float | None = None
) -> dict[str, Any]:
    default, fixed = seconds[:2]
    aim = None
    if most_times is not None:
        aim = f"≤ {most_times} times: {'yes' if default <= most_times * fixed else '**no**'}"
    if most_ms is not None:
        aim = f"≤ {most_ms:,.0f} ms: {'yes' if 1e3 * default <= most_ms else '**no**'}"
    return {
        "what": what,
        "rows": f"{n_rows:,}",
        "default, ms": significant(1e3 * default),
        "fixed recipe, ms": significant(1e3 * fixed),
        "times as long": f"{default / fixed:.1f}",
        "aim": aim,
        "Nelder-Mead with five folds, ms": significant(1e3 * seconds[2]) if len(seconds) > 2 else None,
    }


def markdown(rows: list[dict[str, Any]]) -> str:
    machine = facts()
    return f"""# The default call

Made by `python benchmarks/default.py`. {machine["processor"]}, {machine["cores"]} cores, Python
{machine["Python"]}, NumPy {machine["numpy"]}; metricwise {machine["metricwise"]}. Best of several.

{table(rows)}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer rows and rounds")
    parser.add_argument("--output", type=Path, help="folder; without it only a full run writes, beside this file")
    given = parser.parse_args()
    mw.optimize(*multiclass(500, 3), "macro_f1")  # whatever is loaded on first use
    rounds, cut = (1, 100) if given.quick else (9, 1)
    rows = [*of_classes(FEW, rounds), *of_classes(MANY // cut, rounds), *of_labels(min(rounds, 5), min(cut, 10))]
    text = markdown(rows)
    print(text)
    output = given.output or (None if given.quick else HERE)
    if output is not None:
        write_csv(output / "default.csv", rows)
        write_text(output / "default.md", text)


if __name__ == "__main__":
    main()
