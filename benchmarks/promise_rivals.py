"""Alternatives to `optimize(..., subject_to=)`: random losses on the same labels, and mapie on new rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np

import metricwise as mw

from .promise_runs import CONFIDENCE, N_NEW, REPEATS, SIZES, attempted, by, clocked, in_processes, mean, median, percent
from .promise_worlds import Draw, binary, count, keeps, several, softmax, value
from .tables import significant, table

# ---------------------------------------------------------------------------------------------------------------------
# random: losses that nobody has optimised


@dataclass(frozen=True)
class Problem:
    n_classes: int
    aim: str
    text: str
    raw: bool  # what is given as it is; else recalibrated

    def __str__(self) -> str:
        return f"K={self.n_classes}: {self.aim}, {self.text}"

    @property
    def options(self) -> dict[str, Any]:
        return {"strategy": mw.Strategy(confusion="labels", recalibrate=not self.raw)}


N_LOSSES = 100_000
N_PROBLEM = 3_000
PROBLEMS = (
    Problem(2, "balanced_accuracy", "precision >= 0.75", True),
    Problem(2, "macro_f1", "recall >= 0.85", False),
    Problem(3, "accuracy", "recall[1] >= 0.7 and recall[2] >= 0.7", True),
    Problem(3, "macro_f1", "share[2] <= 0.15 and recall[1] >= 0.75", False),
    Problem(3, "micro_f1", "precision[1] >= 0.75 and recall[2] >= 0.7", True),
    Problem(4, "quadratic_kappa", "recall[3] >= 0.75 and share[1] <= 0.25", True),
    Problem(4, "g_mean", "accuracy >= 0.67", False),
    Problem(4, "balanced_accuracy", "precision[3] >= 0.65 and recall[0] >= 0.7", False),
    Problem(5, "macro_f1", "recall[4] >= 0.65 and precision[2] >= 0.65 and share[0] <= 0.4", True),
    Problem(5, "accuracy", "min_recall >= 0.58", False),
)


def behind(link: Any, proba: np.ndarray) -> np.ndarray:
    """Return the probabilities recalibrated by a rule's link."""
    if link is None:
        return proba
    return softmax(link.temperature[0] * np.log(np.maximum(proba, link.floor)) + link.bias[0, : proba.shape[1]])


def losses(rng: np.random.Generator, own: np.ndarray, n: int) -> Iterator[np.ndarray]:
    """Yield batches of (B, K, K): half full, half class weights; then half as many near the solution."""
    k = len(own)
    yield rng.normal(size=(n // 2, k, k))
    yield -np.eye(k) * rng.lognormal(sigma=1.0, size=(n - n // 2, 1, k))
    step = 10 ** rng.uniform(-4, 0, size=(n // 2, 1, 1)) * np.abs(own - own.mean()).max()
    yield own + step * rng.normal(size=(n // 2, k, k))


def count_losses(proba: np.ndarray, y: np.ndarray, some: np.ndarray, lot: int = 64) -> np.ndarray:
    """The confusion matrices of many losses (B, K, K); the lowest score decides, ties go to the lowest class."""
    k = proba.shape[1]
    truth = np.eye(k, dtype=np.float32)[y].T.copy()
    out = np.empty((len(some), k, k))
    for start in range(0, len(some), lot):
        few = some[start : start + lot]
        best = proba @ few[:, :, 0].T
        decided = np.zeros(best.shape, dtype=np.int8)
        for j in range(1, k):
            score = proba @ few[:, :, j].T
            decided[score < best] = j
            np.minimum(score, best, out=best)
        for j in range(k):
            out[start : start + lot, :, j] = (truth @ (decided == j).astype(np.float32)).T
    return out


def against_random(task: tuple[int, int]) -> list[dict[str, Any]]:
    """Compare the rule of one problem with random losses, on raw and recalibrated probabilities."""
    number, n_losses = task
    problem = PROBLEMS[number]
    rng = np.random.default_rng([99, number])
    rows = several(rng, N_PROBLEM, problem.n_classes)
    ask = partial(mw.optimize, rows.given, rows.y, problem.aim, subject_to=problem.text, confidence=None)
    solution, ms = clocked(partial(ask, **problem.options))
    proba = rows.given if rows.given.ndim == 2 else np.stack([1 - rows.given, rows.given], axis=1)
    C = count(np.eye(problem.n_classes)[rows.y], solution.rule.predict(rows.given))
    best, feasible = [-np.inf] * 3, [0] * 3
    own = np.asarray(solution.rule.loss.tensor())[0]
    for which, some in enumerate(losses(rng, own, n_losses)):
        linked = solution.rule.link is not None and which != 1  # weights on what is given as well
        counted = count_losses(behind(solution.rule.link, proba) if linked else proba, rows.y, some)
        kept = keeps(problem.text, counted)
        feasible[which] = int(kept.sum())
        best[which] = float(value(problem.aim, counted[kept]).max(initial=-np.inf))
    row = {"part": "random", "case": str(problem), "rows": N_PROBLEM, "repetition": 0}
    recipe = "raw" if problem.raw else "recalibrated"
    ours = {"who": recipe, "kept": int(keeps(problem.text, C)), "aim": round(float(value(problem.aim, C)), 6)}
    rivals = {"random losses": (max(best[:2]), sum(feasible[:2])), "losses near ours": (best[2], feasible[2])}
    theirs = [row | {"who": who, "aim": round(most, 6), "n": n} for who, (most, n) in rivals.items()]
    return [row | ours | {"ms": round(ms, 1)}, *theirs]


def beside_random(repeats: int, jobs: int) -> Iterator[list[dict[str, Any]]]:
    n_losses = N_LOSSES if repeats >= REPEATS else max(400, N_LOSSES * repeats // REPEATS)
    tasks = [(number, n_losses) for number in range(len(PROBLEMS))]
    return in_processes(against_random, tasks, jobs)


def random_text(rows: list[dict[str, Any]]) -> str:
    cells = []
    for ours, theirs, near in zip(rows[::3], rows[1::3], rows[2::3], strict=True):
        kept = bool(ours["kept"])
        cells.append(
            {
                "problem": ours["case"],
                "probabilities": ours["who"],
                "kept": "yes" if kept else "**no**",
                "ours": f"{ours['aim']:.5f}",
                "best random loss": f"{theirs['aim']:.5f}",
                "of so many that keep them": f"{theirs['n']:,}",
                "ours at least as good": "yes" if kept and ours["aim"] >= theirs["aim"] - 1e-6 else "**no**",
                "more near ours": f"{max(near['aim'] - ours['aim'], 0.0):.5f}",
                "ms": significant(ours["ms"]),
            }
        )
    behind_random = sum(cell["ours at least as good"] != "yes" for cell in cells)
    return f"""## Beside random losses

{N_PROBLEM:,} rows, `confidence=None, confusion="labels"`, {N_LOSSES:,} random losses for each problem, half of them
full and Gaussian, half class weights, evaluated on the same labels. Problems in which one of them is better:
{behind_random} of {len(cells)}. *More near ours*: the improvement on these labels by {N_LOSSES // 2:,} further losses,
the solution with noise of all sizes. The solution is found by local search, without a proof of optimality.

{table(cells, left=2)}
"""


# ---------------------------------------------------------------------------------------------------------------------
# mapie: a precision floor


FLOORS = (0.8, 0.9)
MORE = {20_000: 10, 100_000: 25}  # rows, where time is what is asked about, and of how many draws one is made
OURS = "metricwise"


def as_columns(p: np.ndarray) -> np.ndarray:
    """A model for mapie whose features are the probabilities."""
    return np.stack([1 - p, p], axis=1)


def mapie_settings() -> dict[str, dict[str, Any]]:
    """Return the default, a finer grid, and a sequence of tests from above, from ten starts."""
    from mapie.risk_control.fwer_control import FWERFixedSequenceTesting

    sequence = {"list_predict_params": np.linspace(0.99, 0, 100), "fwer_method": FWERFixedSequenceTesting(n_starts=10)}
    return {
        "mapie": {},
        "mapie, 1,000 thresholds": {"list_predict_params": np.linspace(0, 0.999, 1000)},
        "mapie, fixed sequence": sequence,
    }


def by_mapie(p: np.ndarray, y: np.ndarray, floor: float, setting: dict[str, Any]) -> float | None:
    """Return the threshold of mapie, or None."""
    from mapie.risk_control import BinaryClassificationController

    controller = BinaryClassificationController(as_columns, "precision", floor, CONFIDENCE, **setting)
    return controller.calibrate(p, y).best_predict_param


def against_mapie(task: tuple[bool, float, int, int]) -> list[dict[str, Any]]:
    """Return one draw: the rule of metricwise and the thresholds of mapie."""
    calibrated, floor, n, number = task
    rng = np.random.default_rng([7, n, number])
    fit, new = (binary(rng, size, calibrated) for size in (n, N_NEW))
    text = f"precision >= {floor:g}"
    world = "calibrated" if calibrated else "tempered and shifted"
    ask = partial(mw.optimize, fit.given, fit.y, "recall", subject_to=text, confidence=CONFIDENCE)
    solution, note = attempted(ask)
    promised = solution is not None and solution.constraints[0].confidence == CONFIDENCE
    decided = {OURS: (solution.rule.predict(new.given) if promised else None, note)}
    for who, setting in mapie_settings().items():
        threshold, note = attempted(partial(by_mapie, fit.given, fit.y, floor, setting))
        decided[who] = (None if threshold is None else (new.given >= threshold).astype(int), note)
    own = {"part": "mapie", "case": f"{text}, {world}", "rows": n, "repetition": number}
    return [own | {"who": who} | of_floor(codes, text, new) | note for who, (codes, note) in decided.items()]


def of_floor(decided: np.ndarray | None, text: str, new: Draw) -> dict[str, Any]:
    """Return the results on new rows; without a guarantee nothing is predicted positive."""
    if decided is None:
        return {"promised": 0, "aim": 0.0}
    seen, truly = count(np.eye(2)[new.y], decided), count(new.truth, decided)
    return {
        "promised": 1,
        "kept": int(keeps(text, seen)),
        "truly kept": int(keeps(text, truly)),
        "aim": round(float(value("recall", seen)), 5),
    }


def beside_mapie(repeats: int, jobs: int) -> Iterator[list[dict[str, Any]]]:
    if find_spec("mapie") is None:
        print("mapie is not installed (pip install --group bench): left out")
        return iter(())
    often = {**dict.fromkeys(SIZES, repeats), **{n: max(1, repeats // part) for n, part in MORE.items()}}
    tasks = [
        (calibrated, floor, n, number)
        for number in range(repeats)
        for calibrated in (True, False)
        for floor in FLOORS
        for n in often
        if number < often[n]
    ]
    return in_processes(against_mapie, tasks, jobs)


def mapie_text(rows: list[dict[str, Any]]) -> str:
    cells, worlds = [], sorted({(row["case"], row["rows"]) for row in rows})
    for case, n in worlds:
        own = [row for row in rows if (row["case"], row["rows"]) == (case, n)]
        cells += [mapie_cell(case, n, who, [row for row in own if row["who"] == who]) for who in by(own, "who")]
    return f"""## A precision floor beside mapie

`BinaryClassificationController` with a confidence of {CONFIDENCE:g}: with its default grid of 100 thresholds, with
1,000, and with tests in a fixed sequence from above, from ten starts. {len(by(rows, "repetition"))} draws, fewer with
{min(MORE):,} rows and more. *Given*: share of draws with a rule at that confidence. *Kept*: share of these in which the
constraint holds by the labels of {N_NEW:,} new rows; *truly*: the same by their true class probabilities. *Broken*:
share of all draws with a guarantee that does not hold, which should be {1 - CONFIDENCE:.0%} at most. *Recall*: on new
rows, 0 without a rule.

{table(cells, left=1)}
"""


def mapie_cell(case: str, n: int, who: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    given = [row for row in rows if row["promised"]]
    return {
        "case": case,
        "rows": f"{n:,}",
        "who": who,
        "errors": sum(bool(row.get("error")) for row in rows),
        "given": percent(mean(row["promised"] for row in rows)),
        "kept": percent(mean(row["kept"] for row in given)),
        "truly": percent(mean(row["truly kept"] for row in given)),
        "broken": percent(mean(bool(row["promised"]) and not row["kept"] for row in rows)),
        "recall": f"{mean(row['aim'] for row in rows):.4f}",
        "recall where given": f"{mean(row['aim'] for row in given):.4f}" if given else "",
        "ms": significant(median(row["ms"] for row in rows if row.get("ms") is not None)),
    }
