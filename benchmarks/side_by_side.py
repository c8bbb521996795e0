"""Compare metricwise with other libraries on the task of each: value on new rows, and time.

    python -m benchmarks.side_by_side                writes side_by_side.csv and side_by_side.md beside it
    python -m benchmarks.side_by_side --draws 2      a minute's worth, writes nothing
    python -m benchmarks.side_by_side --only recall  one task, by a part of its name; the others are kept as stored
    python -m benchmarks.side_by_side --tables       side_by_side.md alone, from side_by_side.csv

Every method is the call shown in its documentation, with default parameters; the page "Comparison with other tools"
prints the functions below. Each returns a function from new rows to decisions. All methods get the same rows of a draw,
in rotating order. Values are computed on held-out rows by NumPy and scikit-learn. Times are processor times, the
minimum over all draws, after a warm-up. Libraries that are not installed are left out (`pip install --group bench`).
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict

import metricwise as mw

from . import fairness, promise_worlds
from .generalisation.data import split_of
from .generalisation.peers import nelder_mead
from .generalisation.probabilities import MODELS
from .machine import check_apis, facts, installed
from .promise_runs import by, clocked, mean, percent
from .tables import significant, table, write_csv, write_text
from .workloads import multilabel

HERE = Path(__file__).parent
DRAWS = 20
COLUMNS = ("task", "who", "draw", "value", "kept", "ms")
OURS = "metricwise"
LIBRARIES = ("scikit-learn", "optimal-classification-cutoffs", "xcolumns", "fairlearn", "mapie", "scipy")
Predict = Callable[..., np.ndarray] | None

logistic = MODELS["logistic"]

# ---------------------------------------------------------------------------------------------------------------------
# F1 of a binary classifier


def tuned_threshold(X, y):
    from sklearn.model_selection import TunedThresholdClassifierCV

    return TunedThresholdClassifierCV(logistic(), scoring="f1").fit(X, y).predict


def f1_by_metricwise(X, y):
    return mw.MetricOptimalClassifierCV(logistic(), metric="f1").fit(X, y).predict


# ---------------------------------------------------------------------------------------------------------------------
# F1 of probabilities, and macro-F1 of several classes


def cutoffs_f1(p, y):
    from optimal_cutoffs import get_optimal_threshold

    return get_optimal_threshold(y, p, metric="f1").predict


def f1_of_probabilities(p, y):
    return mw.optimize(p, y, "f1").rule.predict


def cutoffs_macro_f1(P, y):
    from optimal_cutoffs import get_optimal_threshold

    return get_optimal_threshold(y, P, metric="f1").predict


def cutoffs_coordinate_ascent(P, y):
    from optimal_cutoffs import get_optimal_threshold

    return get_optimal_threshold(y, P, metric="f1", method="coord_ascent").predict


def xcolumns_macro_f1(P, y):
    from xcolumns.frank_wolfe import find_classifier_using_fw
    from xcolumns.metrics import macro_f1_score_on_conf_matrix

    one_hot = np.eye(P.shape[1])[y]
    found = find_classifier_using_fw(one_hot, P, macro_f1_score_on_conf_matrix, k=1, seed=0)
    return lambda new: found.predict(new, seed=0).argmax(axis=1)


def nelder_mead_macro_f1(P, y):
    return nelder_mead(P, y, mw.metrics.get_metric("macro_f1"))


def macro_f1_by_metricwise(P, y):
    return mw.optimize(P, y, "macro_f1").rule.predict


# ---------------------------------------------------------------------------------------------------------------------
# macro-F1 of many labels


def xcolumns_multilabel(P, Y):
    from xcolumns.frank_wolfe import find_classifier_using_fw
    from xcolumns.metrics import macro_f1_score_on_conf_matrix

    found = find_classifier_using_fw(Y.astype(float), P, macro_f1_score_on_conf_matrix, k=0, seed=0)
    return lambda new: found.predict(new, seed=0)


def cutoffs_multilabel(P, Y):
    from optimal_cutoffs import get_optimal_threshold

    found = [get_optimal_threshold(y, p, metric="f1") for y, p in zip(Y.T, P.T, strict=True)]
    return lambda new: np.column_stack([one.predict(p) for one, p in zip(found, new.T, strict=True)])


def multilabel_by_metricwise(P, Y):
    return mw.optimize(P, Y, "f1", average="macro").rule.predict


# ---------------------------------------------------------------------------------------------------------------------
# accuracy with parity between groups


def fairlearn_parity(model, X, y, group):
    from fairlearn.postprocessing import ThresholdOptimizer

    fair = ThresholdOptimizer(
        estimator=model, constraints="demographic_parity", prefit=True, predict_method="predict_proba", tol=0.05
    )
    fair.fit(X, y, sensitive_features=group)
    return lambda X, group: fair.predict(X, sensitive_features=group, random_state=0)


def parity_by_metricwise(model, X, y, group):
    p = model.predict_proba(X)
    fair = mw.optimize(p, y, "accuracy", subject_to="demographic_parity <= 0.05", sensitive_features=group)
    return lambda X, group: fair.rule.predict(model.predict_proba(X), sensitive_features=group)


# ---------------------------------------------------------------------------------------------------------------------
# recall with a floor under precision


def mapie_floor(model, X, y):
    from mapie.risk_control import BinaryClassificationController

    controller = BinaryClassificationController(model.predict_proba, "precision", 0.8, confidence_level=0.95)
    controller.calibrate(X, y)
    return controller.predict if controller.best_predict_param is not None else None  # no threshold can be vouched for


def floor_by_metricwise(model, X, y):
    p = model.predict_proba(X)
    solution = mw.optimize(p, y, "recall", subject_to="precision >= 0.8", confidence=0.95)
    return lambda X: solution.rule.predict(model.predict_proba(X))


# ---------------------------------------------------------------------------------------------------------------------
# rows


@dataclass(frozen=True)
class Rows:
    """A draw: the rows for fitting, the rows to decide, and the function that scores decisions."""

    fit: tuple[Any, ...]
    new: tuple[Any, ...]
    argmax: np.ndarray
    value: Callable[[np.ndarray], float]
    kept: Callable[[np.ndarray], bool] | None = None


def insured(draw: int) -> Rows:
    """Features of 1,500 people, 16 % of them insured; 12,500 others."""
    split = split_of("insured_vietnam", draw, None)
    plain = logistic().fit(split.X, split.y).predict(split.X_test)
    return Rows((split.X, split.y), (split.X_test,), plain, partial(f1_score, split.y_test))


def of_model(name: str, model: str, draw: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return probabilities and labels: out-of-fold of training rows, and of held-out rows."""
    split, estimator = split_of(name, draw, None), MODELS[model]()
    folds = StratifiedKFold(5, shuffle=True, random_state=draw)
    P = cross_val_predict(estimator, split.X, split.y, cv=folds, method="predict_proba")
    return P, split.y, estimator.fit(split.X, split.y).predict_proba(split.X_test), split.y_test


def insured_probabilities(draw: int) -> Rows:
    P, y, P_new, y_new = of_model("insured_vietnam", "logistic", draw)
    return Rows((P[:, 1].copy(), y), (P_new[:, 1].copy(),), P_new.argmax(axis=1), partial(f1_score, y_new))


def diamonds(draw: int) -> Rows:
    """The cut of 2,000 diamonds in five grades by boosting; 12,000 others."""
    P, y, P_new, y_new = of_model("diamond_cut", "boosting", draw)
    return Rows((P, y), (P_new,), P_new.argmax(axis=1), partial(f1_score, y_new, average="macro"))


def labels(draw: int) -> Rows:
    """Calibrated probabilities of 50 labels, from common to rare, of 5,000 rows; 20,000 others."""
    rng = np.random.default_rng([5, draw])
    (P, Y), (P_new, Y_new) = (multilabel(rng, n, 50) for n in (5_000, 20_000))
    return Rows((P, Y), (P_new,), P_new > 0.5, partial(f1_score, Y_new, average="macro", zero_division=0.0))


def log_odds(p: np.ndarray) -> np.ndarray:
    return np.log(p / (1 - p))[:, None]


def two_groups(draw: int) -> Rows:
    """A model fitted to 4,000 rows, 8,000 to find thresholds, and 40,000 others with their true probabilities."""
    rng = np.random.default_rng([6, draw])
    train, fit, new = (fairness.world(rng, n) for n in (4_000, 8_000, 40_000))
    model = LogisticRegression().fit(log_odds(train.p), train.y)

    def kept(decided: np.ndarray) -> bool:
        return fairness.violation_of("demographic_parity", decided, new.truth, new.group) <= 0.05

    return Rows(
        (model, log_odds(fit.p), fit.y, fit.group),
        (log_odds(new.p), new.group),
        model.predict(log_odds(new.p)),
        lambda decided: fairness.aim_of("accuracy", decided, new.truth),
        kept,
    )


def one_floor(draw: int) -> Rows:
    """A model fitted to 4,000 rows, 4,000 to find a threshold, and 40,000 others with their true probabilities."""
    rng = np.random.default_rng([7, draw])
    train, fit, new = (promise_worlds.binary(rng, n) for n in (4_000, 4_000, 40_000))
    model = LogisticRegression().fit(log_odds(train.given), train.y)
    return Rows(
        (model, log_odds(fit.given), fit.y),
        (log_odds(new.given),),
        model.predict(log_odds(new.given)),
        lambda decided: float(promise_worlds.value("recall", promise_worlds.count(new.truth, decided))),
        lambda decided: bool(promise_worlds.keeps("precision >= 0.8", promise_worlds.count(new.truth, decided))),
    )


# ---------------------------------------------------------------------------------------------------------------------
# tasks


@dataclass(frozen=True)
class Task:
    """A task, with its methods by name and the library that each needs."""

    draw: Callable[[int], Rows]
    contestants: dict[str, Callable[..., Predict]]


TASKS = {
    "binary F1, scikit-learn estimators": Task(
        insured, {"TunedThresholdClassifierCV": tuned_threshold, OURS: f1_by_metricwise}
    ),
    "binary F1, from probabilities": Task(
        insured_probabilities, {"optimal-classification-cutoffs": cutoffs_f1, OURS: f1_of_probabilities}
    ),
    "macro-F1 of five classes": Task(
        diamonds,
        {
            "xcolumns": xcolumns_macro_f1,
            "optimal-classification-cutoffs": cutoffs_macro_f1,
            "optimal-classification-cutoffs, coord_ascent": cutoffs_coordinate_ascent,
            "Nelder-Mead": nelder_mead_macro_f1,
            OURS: macro_f1_by_metricwise,
        },
    ),
    "macro-F1 of 50 labels": Task(
        labels,
        {
            "xcolumns": xcolumns_multilabel,
            "optimal-classification-cutoffs": cutoffs_multilabel,
            OURS: multilabel_by_metricwise,
        },
    ),
    "accuracy, demographic parity within 0.05": Task(
        two_groups, {"fairlearn": fairlearn_parity, OURS: parity_by_metricwise}
    ),
    "recall, precision at least 0.8": Task(one_floor, {"MAPIE": mapie_floor, OURS: floor_by_metricwise}),
}
MODULES = {"optimal-classification-cutoffs": "optimal_cutoffs", "xcolumns": "xcolumns", "fairlearn": "fairlearn"}
MODULES["MAPIE"] = "mapie"


def present(who: str) -> bool:
    return find_spec(MODULES.get(who.split(",")[0], "numpy")) is not None


def run(name: str, draws: int) -> Iterator[dict[str, Any]]:
    """Yield the rows of the CSV file, one for each method and draw, and one for argmax."""
    task = TASKS[name]
    crew = [who for who in task.contestants if present(who)]
    for who in crew:
        task.contestants[who](*task.draw(draws).fit)  # whatever is loaded or compiled on first use
    for number in range(draws):
        rows = task.draw(number)
        yield valued(rows, rows.argmax) | {"task": name, "who": "argmax", "draw": number}
        turn = number % len(crew)
        for who in crew[turn:] + crew[:turn]:
            predict, ms = clocked(partial(task.contestants[who], *rows.fit))
            decisions = None if predict is None else np.asarray(predict(*rows.new))
            yield valued(rows, decisions) | {"task": name, "who": who, "draw": number, "ms": round(ms, 2)}


def valued(rows: Rows, decisions: np.ndarray | None) -> dict[str, Any]:
    """Return the metric on new rows, and whether the constraint holds there; without a rule, nothing is predicted."""
    if decisions is None:
        return {"value": 0.0, "kept": ""}
    kept = "" if rows.kept is None else int(rows.kept(decisions))
    return {"value": round(float(rows.value(decisions)), 6), "kept": kept}


# ---------------------------------------------------------------------------------------------------------------------
# words


def cells(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return one row of the table for each method of a task, metricwise last."""
    ours = {row["draw"]: row["value"] for row in rows if row["who"] == OURS}
    names = [who for who in by(rows, "who") if who != OURS]
    return [cell([row for row in rows if row["who"] == who], ours) for who in ["argmax", *sorted(names[1:]), OURS]]


def cell(rows: list[dict[str, Any]], ours: dict[int, float]) -> dict[str, Any]:
    apart = np.array([row["value"] - ours[row["draw"]] for row in rows])
    error = apart.std(ddof=1) / np.sqrt(len(apart)) if len(apart) > 1 else np.nan
    promised = [row["kept"] for row in rows if row["kept"] != ""]
    times = [row["ms"] for row in rows if row.get("ms", "") != ""]
    who = rows[0]["who"]
    return {
        "who": f"**{who}**" if who == OURS else who,
        "value on new rows": f"{mean(row['value'] for row in rows):.4f}",
        "beside metricwise": "" if who == OURS else f"{apart.mean():+.4f} ± {error:.4f}",
        "a rule": f"{len(promised)} of {len(rows)}" if promised else "",
        "constraint holds": percent(mean(promised)) if promised else "",
        "ms": significant(min(times)) if times else "",
    }


def report(rows: list[dict[str, Any]], versions: dict[str, str]) -> str:
    parts = [f"## {name}\n\n{shown([row for row in rows if row['task'] == name])}\n" for name in by(rows, "task")]
    listed = ", ".join(f"{name} {version}" for name, version in versions.items())
    return f"""# Side by side

Made by `python -m benchmarks.side_by_side`; all draws are in `side_by_side.csv`. {len(by(rows, "draw"))} draws.
{listed}.

{chr(10).join(parts)}"""


def shown(rows: list[dict[str, Any]]) -> str:
    """Return the table without empty columns."""
    found = cells(rows)
    used = [name for name in found[0] if any(row[name] for row in found)]
    return table([{name: row[name] for name in used} for row in found])


def versions() -> dict[str, str]:
    machine = facts()
    own = {"Python": machine["Python"], "metricwise": machine["metricwise"]}
    return (
        {machine["processor"]: f"with {machine['cores']} cores"} | own | {name: installed(name) for name in LIBRARIES}
    )


def stored(path: Path) -> list[dict[str, Any]]:
    numbers = {"draw": int, "value": float, "kept": int, "ms": float}
    with path.open(newline="") as file:
        return [
            {key: numbers.get(key, str)(text) if text else "" for key, text in row.items()}
            for row in csv.DictReader(file)
        ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=DRAWS, help="other than the default, nothing is written")
    parser.add_argument("--only", default="", help="tasks that have this in their names; the others are kept as stored")
    parser.add_argument("--tables", action="store_true", help="side_by_side.md alone, from side_by_side.csv")
    given = parser.parse_args()
    check_apis()
    again = [] if given.tables else [name for name in TASKS if given.only in name]
    kept = stored(HERE / "side_by_side.csv") if given.tables or given.only else []
    rows = []
    for name in TASKS:
        rows += run(name, given.draws) if name in again else [row for row in kept if row["task"] == name]
        print(name, shown([row for row in rows if row["task"] == name]), sep="\n", flush=True)
    if given.tables or given.draws == DRAWS:
        write_csv(HERE / "side_by_side.csv", [{key: row.get(key, "") for key in COLUMNS} for row in rows])
        write_text(HERE / "side_by_side.md", report(rows, versions()))


if __name__ == "__main__":
    main()
