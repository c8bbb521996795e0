"""Part b: metrics of a rule on new rows without their labels.

A rule for F1 (of several classes: macro-F1) is fitted to the labelled rows. New rows are drawn under a shift, and F1,
accuracy and kappa are estimated without their labels. The true value is that of the whole pool, weighted by the shift.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

import metricwise as mw

from ..tables import table
from .cases import Task, open_case, tasks_of
from .peers import HAS, ConfidenceBased
from .shifts import RATIO, SHIFTS, Shift, make_shift
from .summaries import POINT, Row, Statistic, by, jackknife, part_page, with_error
from .values import count, value_of

SIZES = (2_000, 300)
SPLITS = 4
DRAWS = 1  # of each shift, in each split
FILES = ("expectation",)
NEEDS: tuple[str, ...] = ("nannyml",)
HULL, SHARES, ROWS, PEER = "metricwise", "if_shares_moved", "if_rows_moved", "NannyML"
ASKED = ("none", "mild", "strong", "covariate 1", "covariate 2")
METHODS = (HULL, SHARES, ROWS, PEER, "as it was")
TARGET_COVERAGE = {2_000: 0.93, 300: 0.91}
MAX_WIDTH = 1.3  # times the wider part


def tasks(only: str = "", draws: int = DRAWS) -> list[Task]:
    return tasks_of(only, SPLITS, draws)


def measure(task: Task) -> dict[str, list[Row]]:
    """Return the rows of the file of one set and model."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # notes on few rows of a class
        study = Study(task)
        rows = []
        for number, name in enumerate(SHIFTS):
            for draw in range(task.draws):
                rng = np.random.default_rng([*task.seed, 100 + number, draw])
                shift = make_shift(study.case, name, rng)
                for n_rows in SIZES:
                    rows += study.measure(shift, shift.draw(rng, n_rows), draw)
    return {"expectation": rows}


class Study:
    """A case, a rule, and what estimates its metrics."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.case = case = open_case(task)
        self.aim = "f1" if case.kind == "binary" else "macro_f1"
        self.metrics = (self.aim, "accuracy", "kappa")
        self.rule = mw.optimize(case.proba, case.y, self.aim).rule
        self.decided = np.asarray(self.rule.predict(case.pool))
        labelled = np.asarray(self.rule.predict(case.proba))
        self.before = count(case.y, labelled, None, case.n_classes)
        self.peer = ConfidenceBased(case.proba, case.y, labelled) if HAS["nannyml"] else None

    def measure(self, shift: Shift, drawn: Any, draw: int) -> list[Row]:
        """Return a row for each metric."""
        case = self.case
        expected = mw.expect(self.rule, case.pool[drawn], list(self.metrics), reference=(case.proba, case.y))
        by_peer = self.peer.estimate(case.pool[drawn], self.decided[drawn]) if self.peer else {}
        by_peer = {self.aim if name == "f1" else name: interval for name, interval in by_peer.items()}
        true = count(case.pool_y, self.decided, shift.weight, case.n_classes)
        drawn_true = count(case.pool_y[drawn], self.decided[drawn], None, case.n_classes)
        head = {
            "set": self.task.set,
            "model": self.task.model,
            "split": self.task.split,
            "shift": shift.name,
            "draw": draw,
            "rows": len(drawn),
        }
        rows = []
        for name in self.metrics:
            value = expected[name]
            intervals = {HULL: value, SHARES: value.if_shares_moved, ROWS: value.if_rows_moved, PEER: by_peer.get(name)}
            rows.append(
                head
                | {"metric": name, "true": round(value_of(name, true, case), 6)}
                | {"of these rows": round(value_of(name, drawn_true, case), 6)}
                | {"as it was": round(value_of(name, self.before, case), 6)}
                | flatten(intervals)
            )
        return rows


def flatten(intervals: dict[str, Any]) -> Row:
    """Return the numbers of intervals as columns; those of a method that is not there are empty."""
    return {
        column: None if interval is None else round(float(number), 6)
        for method, interval in intervals.items()
        for column, number in (
            (method, getattr(interval, "estimate", 0.0)),
            (f"{method} low", getattr(interval, "low", 0.0)),
            (f"{method} high", getattr(interval, "high", 0.0)),
        )
    }


# ---------------------------------------------------------------------------------------------------------------------
# the page


def covered(method: str, truth: str = "true") -> Statistic:
    return lambda rows: float(np.mean([row[f"{method} low"] <= row[truth] <= row[f"{method} high"] for row in rows]))


def width(method: str) -> Statistic:
    return lambda rows: float(np.mean([row[f"{method} high"] - row[f"{method} low"] for row in rows])) / POINT


def rmse(method: str) -> Statistic:
    return lambda rows: float(np.sqrt(np.mean([(row[method] - row["true"]) ** 2 for row in rows]))) / POINT


def wider_part(rows: list[Row]) -> float:
    """Return the mean width of the wider of both parts, in points."""
    return float(np.mean([max(width(SHARES)([row]), width(ROWS)([row])) for row in rows]))


def measured(rows: list[Row], method: str) -> list[Row]:
    return [row for row in rows if row.get(method) is not None]


def value_table(rows: list[Row]) -> str:
    """Return coverage, width and RMSE of each method, by number of rows and shift."""
    lines = []
    for (n_rows, shift), cells in by(rows, ("rows", "shift")).items():
        for method in METHODS:
            own = measured(cells, method)
            if own:
                lines.append({"rows": n_rows, "shift": shift, "method": method} | value_line(own, method))
    return table(lines, left=3)


def value_line(rows: list[Row], method: str) -> Row:
    has_interval = f"{method} low" in rows[0]
    return {
        "covered": f"{covered(method)(rows):.1%} ± {jackknife(covered(method), rows):.1%}" if has_interval else None,
        "these rows": f"{covered(method, 'of these rows')(rows):.1%}" if has_interval else None,
        "width": f"{width(method)(rows):.1f}" if has_interval else None,
        "RMSE": f"{rmse(method)(rows):.2f} ± {jackknife(rmse(method), rows):.2f}",
        "cells": len(rows),
    }


def part_for(shift: str) -> str:
    """Return the part of the answer whose assumption a shift keeps."""
    return SHARES if shift in RATIO and shift != "none" else ROWS


def excess(method: str) -> Statistic:
    """Return how much larger the error of a method is than NannyML's."""
    return lambda rows: rmse(method)(rows) - rmse(PEER)(rows)


def mean_of_shifts(statistic: Statistic) -> Statistic:
    return lambda rows: float(np.mean([statistic(part) for part in by(rows, ("shift",)).values()]))


def claims(rows: list[Row]) -> str:
    """Return what is asked of the numbers, with the numbers."""
    lines: list[Row] = []
    for (n_rows,), cells in by(rows, ("rows",)).items():
        share, error = covered(HULL)(cells), jackknife(covered(HULL), cells)
        lines += [
            claim("coverage, all shifts", n_rows, f">= {TARGET_COVERAGE[n_rows]:.0%}", f"{share:.1%} ± {error:.1%}"),
            claim("width over wider part", n_rows, f"<= {MAX_WIDTH}", f"{width(HULL)(cells) / wider_part(cells):.2f}"),
        ]
        beside = measured(cells, PEER)
        for (shift,), part in by(beside, ("shift",)).items():
            name = f"RMSE of {part_for(shift)} minus NannyML's, {shift}"
            lines.append(claim(name, n_rows, "<= 2 standard errors", with_error(excess(part_for(shift)), part)))
        if beside:
            text = with_error(mean_of_shifts(excess(HULL)), beside)
            lines.append(claim("RMSE of the mid-point minus NannyML's, mean of shifts", n_rows, "<= 0", text))
    return table(lines, left=3)


def claim(name: str, n_rows: int, asked: str, measured: str) -> Row:
    return {"claim": name, "rows": n_rows, "asked": asked, "measured": measured}


def report(files: dict[str, list[Row]], made_with: str) -> str:
    rows = files["expectation"]
    draws = len({(row["set"], row["model"], row["split"], row["draw"]) for row in rows})
    beside = measured(rows, PEER)
    peer = "" if beside else "NannyML is not installed: its lines are left out.\n\n"
    return part_page(
        "Metrics of new rows without their labels",
        "b",
        made_with,
        f"""{len({row["set"] for row in rows})} real sets, two models, {draws} draws of each shift and number of rows;
F1 (macro-F1 of several classes), accuracy and kappa of a rule for F1. *Covered*: share of 95 % intervals that contain
the value of the shifted population; *these rows*: the value of the rows that were drawn. *Width* and *RMSE* in points
(0.01). Standard errors are those of leaving out one set at a time. "metricwise" is `expect`, with its two parts below
it; "as it was" the value on the labelled rows. NannyML's CBPE takes all new rows as one chunk, with 1.96 of its
standard errors.

{peer}{claims([row for row in rows if row["shift"] in ASKED])}

The same where rows move further, which is not among what is asked:

{claims([row for row in rows if row["shift"] not in ("covariate 1", "covariate 2")])}

## F1 and accuracy, as NannyML has them

{value_table(beside or rows)}

## All three metrics

{value_table(rows)}""",
    )
