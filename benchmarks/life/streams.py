"""Part c: streams whose labels come late, and rules whose old rows count less.

A stream has 14 batches of 200 or 1,000 rows, drawn with replacement from the pool of a set. Before batches 5, 8, 11 and
14 rules are fitted to all batches before them, with and without a half-life, and valued on the population that the
batch is drawn from. Class shares stay, or drift from those of the labelled rows to those of a strong shift, in equal
steps of their logarithms.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import metricwise as mw

from ..tables import table
from .cases import Case, Task, open_case, tasks_of
from .shifts import RATIO, Shift
from .summaries import POINT, Row, Statistic, by, jackknife, part_page
from .values import count, metric_of, value_of

FloatArray = NDArray[np.float64]

N_BATCHES = 14
JUDGED = (5, 8, 11, 14)
BATCH_SIZES = (200, 1_000)
DRIFTS = ("none", "shares")
DRAWS = 1
FILES = ("streams",)
NEEDS: tuple[str, ...] = ()
ALL_ROWS, STALE = "all rows", "stale"
MAX_LOSS = -0.5  # points, of a half-life where nothing drifts


def tasks(only: str = "", draws: int = DRAWS) -> list[Task]:
    return tasks_of(only, 1, draws)


def half_lives(batch_size: int) -> dict[str, float]:
    """Return half-lives in rows."""
    return {"400 rows": 400, "1,000 rows": 1_000, "1 batch": batch_size, "2 batches": 2 * batch_size}


METHODS = (STALE, ALL_ROWS, *(f"half-life {name}" for name in half_lives(1)))


def measure(task: Task) -> dict[str, list[Row]]:
    """Return the rows of the file of one set and model."""
    rows: list[Row] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # notes on few effective rows
        case = open_case(task)
        metrics = ("f1" if case.kind == "binary" else "macro_f1", "kappa")
        stale = {name: mw.optimize(case.proba, case.y, metric_of(name, case)).rule for name in metrics}
        for number, drift in enumerate(DRIFTS):
            for size in BATCH_SIZES:
                for draw in range(task.draws):
                    rng = np.random.default_rng([*task.seed, 200 + number, size, draw])
                    head = {"set": task.set, "model": task.model, "drift": drift, "batch": size, "draw": draw}
                    rows += [head | row for row in follow(draw_stream(case, drift, size, rng), stale)]
    return {"streams": rows}


@dataclass(frozen=True, eq=False)
class Stream:
    """Batches of positions in the pool, and the population of each."""

    case: Case
    shifts: list[Shift]
    batches: list[NDArray[np.intp]]


def draw_stream(case: Case, drift: str, size: int, rng: np.random.Generator) -> Stream:
    """Draw a stream of a kind."""
    steps = rng.permutation(np.linspace(-0.5, 0.5, case.n_classes))
    shifts = []
    for t in range(N_BATCHES):
        extent = 0.0 if drift == "none" else t / (N_BATCHES - 1)
        shifts.append(shift_to(case, case.shares * RATIO["strong"] ** (extent * steps)))
    return Stream(case, shifts, [shift.draw(rng, size) for shift in shifts])


def shift_to(case: Case, target: FloatArray) -> Shift:
    shares = target / target.sum()
    weight = (shares / np.bincount(case.pool_y, minlength=case.n_classes))[case.pool_y]
    return Shift("shares", weight, shares)


def follow(stream: Stream, stale: dict[str, Any]) -> Iterator[Row]:
    """Yield the values of all methods, for each batch that is judged and each metric."""
    case, size = stream.case, len(stream.batches[0])
    for t in JUDGED:
        past, shift = np.concatenate(stream.batches[: t - 1]), stream.shifts[t - 1]
        proba, y, time = case.pool[past], case.pool_y[past], np.arange(len(past))
        for metric, rule in stale.items():
            rules = {STALE: rule}
            for name, half_life in {ALL_ROWS: None, **half_lives(size)}.items():
                in_time = mw.InTime(time, half_life=half_life)
                label = name if half_life is None else f"half-life {name}"
                rules[label] = mw.optimize(proba, y, metric_of(metric, case), groups=in_time).rule
            yield {"at": t, "metric": metric} | {name: judge(case, shift, metric, rule) for name, rule in rules.items()}


def judge(case: Case, shift: Shift, metric: str, rule: Any) -> float:
    C = count(case.pool_y, np.asarray(rule.predict(case.pool)), shift.weight, case.n_classes)
    return round(value_of(metric, C, case), 6)


# ---------------------------------------------------------------------------------------------------------------------
# the page


def mean_gain(method: str, reference: str) -> Statistic:
    """Return the mean difference of two methods, in points."""
    return lambda rows: float(np.mean([row[method] - row[reference] for row in rows])) / POINT


def stream_table(rows: list[Row]) -> str:
    lines: list[Row] = []
    for (drift, size), cells in by(rows, ("drift", "batch")).items():
        head = {"drift": drift, "rows a batch": size}
        lines += [head | {"method": method} | stream_line(cells, method) for method in METHODS[1:]]
    return table(lines, left=3)


def stream_line(rows: list[Row], method: str) -> Row:
    against_stale, against_all = mean_gain(method, STALE), mean_gain(method, ALL_ROWS)
    by_set = {name: against_all(part) for (name,), part in by(rows, ("set",)).items()}
    worst = min(by_set, key=lambda name: by_set[name])
    return {
        "against stale": f"{against_stale(rows):+.2f} ± {jackknife(against_stale, rows):.2f}",
        "against all rows": f"{against_all(rows):+.2f} ± {jackknife(against_all, rows):.2f}",
        "worst set against all rows": None if method == ALL_ROWS else f"{worst} {by_set[worst]:+.2f}",
    }


def report(files: dict[str, list[Row]], made_with: str) -> str:
    rows = files["streams"]
    still = [row for row in rows if row["drift"] == "none"]
    losses = {
        (size, name): mean_gain(f"half-life {name}", ALL_ROWS)(part)
        for (size,), part in by(still, ("batch",)).items()
        for name in ("400 rows", "1,000 rows")
    }
    (size, name), least = min(losses.items(), key=lambda item: item[1])
    return part_page(
        "Streams whose labels come late",
        "c",
        made_with,
        f"""{len({row["set"] for row in rows})} real sets, two models; {N_BATCHES} batches, rules fitted before batches
{", ".join(map(str, JUDGED))} to all rows before them, for F1 (macro-F1 of several classes) and kappa. *Against stale*:
mean difference to the rule of the labelled rows, in points (0.01); *against all rows*: to a rule of all rows so far
without a half-life. Standard errors are those of leaving out one set at a time.

Where nothing drifts, half-lives of 400 and 1,000 rows change the metric by {least:+.2f} points at worst ({name},
batches of {size:,}) in the mean over sets; asked for: at least {MAX_LOSS}. Single sets, of few streams, are in the last
column.

{stream_table(rows)}""",
    )
