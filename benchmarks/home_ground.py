"""Compare MetricOptimalClassifierCV with scikit-learn's TunedThresholdClassifierCV on binary targets.

    python benchmarks/home_ground.py              writes home_ground.csv, home_ground.md and a table in the docs
    python benchmarks/home_ground.py --seeds 2    a minute's worth, writes nothing

Targets are binary and metrics are those of scikit-learn. Both classifiers have their defaults, the same model and the
same folds. Each seed draws 3,000 rows, about 7 % of them positive, and 20,000 new ones: draws are independent, so the
standard error over seeds is that of the mean.

The predictions of the folds and the refitted model are computed once for each model and seed; both classifiers are then
fitted to a model that replays them. Their time is that of tuning, without the measured overhead of the folds. It is
processor time, on one thread.
"""

from __future__ import annotations

import argparse
import os
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from generalisation.report import renew
from machine import cores, facts
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import cohen_kappa_score, get_scorer, make_scorer
from sklearn.model_selection import StratifiedKFold, TunedThresholdClassifierCV, cross_val_predict
from tables import table, write_csv, write_text
from tuning_speed import Replay, replay, seconds

import metricwise as mw

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "generalisation.md"
SEEDS = 20
N_FIT, N_NEW = 3_000, 20_000
METRICS = ("f1", "matthews_corrcoef", "cohen_kappa", "balanced_accuracy")
HEAD = """# Comparison with TunedThresholdClassifierCV on binary targets

Made by `python benchmarks/home_ground.py`.

{machine}

"""
BEYOND_NOISE = 2.0  # standard errors


def linear(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Log-odds that are linear in the features."""
    X = rng.normal(size=(n, 6))
    return X, labels(rng, 1.2 * X[:, 0] + 0.8 * X[:, 1] - 0.5 * X[:, 2] - 3.5)


def bent(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Log-odds with a product, a kink and a step besides the linear part."""
    X = rng.normal(size=(n, 6))
    bends = 1.2 * X[:, 0] * X[:, 1] + 1.2 * np.abs(X[:, 2]) + 1.5 * (X[:, 3] > 1)
    return X, labels(rng, 0.8 * X[:, 0] + 0.6 * X[:, 1] + bends - 5.1)


def labels(rng: np.random.Generator, log_odds: np.ndarray) -> np.ndarray:
    return (log_odds + rng.logistic(size=len(log_odds)) > 0).astype(int)


FAMILIES: dict[str, tuple[Any, Any]] = {
    "logistic regression, well specified": (linear, LogisticRegression()),
    "the same, class_weight='balanced'": (linear, LogisticRegression(class_weight="balanced")),
    "logistic regression, misspecified": (bent, LogisticRegression()),
    "HistGradientBoosting": (bent, HistGradientBoostingClassifier(random_state=0)),
}


def scorer_of(metric: str) -> Any:
    return make_scorer(cohen_kappa_score) if metric == "cohen_kappa" else get_scorer(metric)


def repetition(family: str, seed: int, n_fit: int = N_FIT, n_new: int = N_NEW) -> list[dict[str, Any]]:
    """Return one draw: for each metric, the values of argmax and both classifiers on new rows, and the tuning times."""
    draw, model = FAMILIES[family]
    X, y = draw(np.random.default_rng([list(FAMILIES).index(family), seed]), n_fit + n_new)
    number = np.arange(n_fit + n_new)[:, None]
    fit, new = number[:n_fit], number[n_fit:]
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    known, splits = replay(model, X, y, fit[:, 0], new[:, 0], folds)
    idle = seconds(1, go_through, known, fit, y[:n_fit], splits)
    found = []
    for metric in METRICS:
        scorer = scorer_of(metric)
        theirs = TunedThresholdClassifierCV(known, scoring=scorer, cv=splits)
        ours = mw.MetricOptimalClassifierCV(known, metric=scorer, cv=splits)
        times = [seconds(1, one.fit, fit, y[:n_fit]) - idle for one in (theirs, ours)]
        values = [scorer(one, new, y[n_fit:]) for one in (known.fit(fit, y[:n_fit]), theirs, ours)]
        found.append({"family": family, "seed": seed, "metric": metric, "values": values, "seconds": times})
    return found


def go_through(known: Replay, X: np.ndarray, y: np.ndarray, splits: list[Any]) -> None:
    """Do what both classifiers do besides tuning: fit and predict for each fold, then fit to all rows."""
    cross_val_predict(known, X, y, cv=splits, method="predict_proba")
    known.fit(X, y)


def repetitions(seeds: int, jobs: int) -> list[dict[str, Any]]:
    """Return all repetitions in order, for any number of processes."""
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[variable] = "1"  # the processes that follow read it when they load their libraries
    tasks = [(family, seed) for seed in range(seeds) for family in FAMILIES]
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        return [row for rows in pool.map(repetition, *zip(*tasks, strict=True)) for row in rows]


def cells(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One row per family and metric."""
    return [
        cell(family, metric, [row for row in found if (row["family"], row["metric"]) == (family, metric)])
        for family in dict.fromkeys(row["family"] for row in found)
        for metric in METRICS
    ]


def cell(family: str, metric: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    values = np.array([row["values"] for row in rows])
    argmax, theirs, ours = values.mean(axis=0).tolist()
    mean, error = mean_and_error(values[:, 2] - values[:, 1])
    their_seconds, our_seconds = np.median([row["seconds"] for row in rows], axis=0).tolist()
    return {
        "family": family,
        "metric": metric,
        "argmax": f"{argmax:.4f}",
        "TunedThresholdClassifierCV": f"{theirs:.4f}",
        "MetricOptimalClassifierCV": f"{ours:.4f}",
        "difference": f"{mean:+.4f}",
        "standard error": f"{error:.4f}",
        "t": f"{mean / error:+.1f}" if error else "",
        "beyond noise": verdict(mean, error),
        "ms, theirs": f"{1e3 * their_seconds:.0f}",
        "ms, ours": f"{1e3 * our_seconds:.0f}",
        "times faster": f"{their_seconds / our_seconds:.1f}",
    }


def verdict(mean: float, error: float) -> str:
    """Return whether the difference exceeds the noise, and its direction."""
    if abs(mean) <= BEYOND_NOISE * error:
        return ""
    return "above" if mean > 0 else "below"


def mean_and_error(differences: np.ndarray) -> tuple[float, float]:
    """The mean over independent draws and its standard error."""
    return float(differences.mean()), float(differences.std(ddof=1) / np.sqrt(len(differences)))


def overall(found: list[dict[str, Any]]) -> tuple[float, float]:
    """Mean difference over all cells, and its standard error over seeds: cells of one seed share their rows."""
    by_seed: dict[int, list[float]] = {}
    for row in found:
        by_seed.setdefault(row["seed"], []).append(row["values"][2] - row["values"][1])
    return mean_and_error(np.array([np.mean(each) for each in by_seed.values()]))


def summary(found: list[dict[str, Any]]) -> str:
    """Return the results as text and a table."""
    rows = cells(found)
    mean, error = overall(found)
    above, below = (sum(row["beyond noise"] == side for row in rows) for side in ("above", "below"))
    theirs, ours = np.sum([row["seconds"] for row in found], axis=0)
    return f"""Mean over {len({row["seed"] for row in found})} draws. Difference of MetricOptimalClassifierCV to
TunedThresholdClassifierCV over all {len(rows)} cells: **{mean:+.4f}**, standard error {error:.4f}.
Cells where it is above 0 by more than {BEYOND_NOISE:g} standard errors: {above}; below: {below}; by chance one in
thirty would be either. All tuning together took {theirs / ours:.1f} times as long with TunedThresholdClassifierCV.

{table(rows, left=2)}
"""


def machine() -> str:
    shown = ("processor", "cores", "system", "Python", "numpy", "scipy", "scikit-learn")
    return table([{"": name, "made with": facts()[name]} for name in shown], left=2)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=SEEDS, help="draws; other than the default, nothing is written")
    parser.add_argument("--jobs", type=int, default=cores(), help="processes")
    options = parser.parse_args()
    found = repetitions(options.seeds, options.jobs)
    text = summary(found)
    print(text)
    if options.seeds == SEEDS:
        write_csv(HERE / "home_ground.csv", cells(found))
        write_text(HERE / "home_ground.md", HEAD.format(machine=machine()) + text)
        write_text(PAGE, renew(PAGE.read_text(), {"home_ground": text}))


if __name__ == "__main__":
    main()
