"""Part e: EM beside QuaPy's on the same probabilities, and times.

The shares of maximum likelihood, without prior and test, are compared with those of QuaPy's EM on the probabilities
behind the same calibration. Times are the best of several calls, which alternate with those of the peers.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import metricwise as mw

from ..tables import table
from .cases import Task, open_case, tasks_of
from .peers import HAS, ConfidenceBased, em_shares, quantifiers
from .shifts import RATIO, make_shift
from .summaries import Row, by, part_page

FloatArray = NDArray[np.float64]

TOLERANCE = 1e-10  # of QuaPy's EM, by default 1e-4
MAX_DIFFERENCE = 1e-6
SHARE_ROWS, EXPECT_ROWS = 5_000, 2_000
MAX_MS = {"shares": 50.0, "expect": 500.0}
DRAWS = 5  # calls of which the fastest counts
FILES = ("equality", "times")
NEEDS: tuple[str, ...] = ("quapy", "nannyml")


def tasks(only: str = "", draws: int = DRAWS) -> list[Task]:
    return tasks_of(only, 1, draws)


def measure(task: Task) -> dict[str, list[Row]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {"equality": compare(task), "times": clock(task)}


def compare(task: Task) -> list[Row]:
    """Return the largest difference of a share, for each shift of class shares."""
    if not HAS["quapy"]:
        return []
    case = open_case(task)
    rule = mw.optimize(case.proba, case.y, "accuracy").rule
    rows = []
    for number, name in enumerate(RATIO):
        rng = np.random.default_rng([*task.seed, 300 + number])
        new = case.pool[make_shift(case, name, rng).draw(rng, EXPECT_ROWS)]
        shares = mw.estimate_shares(rule, new, level=1.0, prior_rows=0.0)
        theirs = em_shares(calibrate(rule, new), np.asarray(shares.old), TOLERANCE)
        difference = float(np.abs(np.asarray(shares) - theirs).max())
        rows.append({"set": task.set, "model": task.model, "shift": name, "difference": f"{difference:.3g}"})
    return rows


def calibrate(rule: Any, proba: FloatArray) -> FloatArray:
    """Return probabilities behind the calibration that a rule keeps."""
    link = rule.metadata.calibration
    temperature, bias = np.asarray(link["temperature"])[0], np.asarray(link["bias"])[0]
    logits = temperature * np.log(np.maximum(proba, link["floor"])) + bias
    scores = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(scores / scores.sum(axis=1, keepdims=True))


def clock(task: Task) -> list[Row]:
    """Return the fastest of several calls in milliseconds."""
    case = open_case(task)
    rng = np.random.default_rng([*task.seed, 400])
    new = case.pool[make_shift(case, "strong", rng).draw(rng, SHARE_ROWS)]
    few = new[:EXPECT_ROWS]
    aim = "f1" if case.kind == "binary" else "macro_f1"
    rule = mw.optimize(case.proba, case.y, aim).rule
    reference, metrics = (case.proba, case.y), [aim, "accuracy", "kappa"]
    calls: dict[tuple[str, str], Callable[[], Any]] = {
        ("shares", "metricwise"): lambda: mw.estimate_shares(rule, new),
        ("expect", "metricwise"): lambda: mw.expect(rule, few, metrics, reference=reference),
    }
    calls |= {("shares", name): lambda method=method: method(new) for name, method in quantifiers(*reference).items()}
    if HAS["nannyml"]:
        peer = ConfidenceBased(case.proba, case.y, np.asarray(rule.predict(case.proba)))
        calls["expect", "NannyML"] = lambda: peer.estimate(few, np.asarray(rule.predict(few)))
    times: dict[tuple[str, str], list[float]] = {key: [] for key in calls}
    for _ in range(task.draws):
        for key, call in calls.items():
            start = time.perf_counter()
            call()
            times[key].append(1e3 * (time.perf_counter() - start))
    head = {"set": task.set, "model": task.model, "classes": case.n_classes}
    return [head | {"what": what, "method": method, "ms": round(min(ms), 3)} for (what, method), ms in times.items()]


# ---------------------------------------------------------------------------------------------------------------------
# the page


def report(files: dict[str, list[Row]], made_with: str) -> str:
    return part_page(
        "EM beside QuaPy's, and times",
        "e",
        made_with,
        f"""{equality_text(files["equality"])}

Shares of {SHARE_ROWS:,} rows with their intervals (asked for: at most {MAX_MS["shares"]:g} ms), and three metrics of
{EXPECT_ROWS:,} rows without labels beside at most 2,000 labelled rows (at most {MAX_MS["expect"]:g} ms): the fastest of
{DRAWS} calls in milliseconds, median and maximum over sets and models. QuaPy's shares have no intervals; NannyML's F1
and accuracy, after its fit.

{time_table(files["times"])}""",
    )


def equality_text(rows: list[Row]) -> str:
    if not rows:
        return "QuaPy is not installed: its EM is left out."
    largest = max(float(row["difference"]) for row in rows)
    return f"""EM on the same probabilities, {EXPECT_ROWS:,} rows, QuaPy's tolerance {TOLERANCE:g}: the largest
difference of a share over {len(rows)} cases is {largest:.1e}; asked for: at most {MAX_DIFFERENCE:g}."""


def time_table(rows: list[Row]) -> str:
    lines = []
    for (what, method), cells in by(rows, ("what", "method")).items():
        ms = np.array([row["ms"] for row in cells])
        lines.append({"what": what, "method": method, "median": f"{np.median(ms):.1f}", "maximum": f"{ms.max():.1f}"})
    return table(lines, left=2)
