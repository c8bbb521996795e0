"""Part a: the change of a metric, where rules are adapted to class shares that moved, and the shares themselves.

The stale rule is fitted to the labelled rows of a set. New rows are drawn under a shift, their class shares are
estimated, and rules for these shares are fitted or made; each is valued on the whole pool, weighted by the shift.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

import metricwise as mw

from ..tables import table
from .cases import Case, Task, open_case, tasks_of
from .peers import quantifiers
from .shifts import RATIO, Shift, make_shift
from .summaries import (
    Row,
    change_table,
    changes,
    jackknife,
    mean,
    mean_change,
    of_oracle,
    part_page,
    share_below,
    share_table,
)
from .values import BY_KIND, OF_RECALLS, count, metric_of, value_of

SIZES = (100, 1_000, 5_000)
SPLITS = 3
DRAWS = 1  # of each shift, in each split
MIN_ADAPTED_ROWS = 1_000
ROUNDING = 1e-9  # of true shares, which may be an end of an interval
RECALL_SPLIT = 0  # in which metrics of recalls are measured besides
FILES = ("adaptation", "shares")
NEEDS: tuple[str, ...] = ("quapy",)
OURS = "metricwise"
METHODS = ("true shares", OURS, "with_prior", "adapted", "QuaPy EMQ", "QuaPy PACC")


def tasks(only: str = "", draws: int = DRAWS) -> list[Task]:
    return tasks_of(only, SPLITS, draws)


def measure(task: Task) -> dict[str, list[Row]]:
    """Return the rows of both files of one set and model."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # notes on few rows of a class
        return Study(task).measure()


class Study:
    """A case, the stale rules of its metrics, and the estimators of class shares."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.case = open_case(task)
        self.metrics = (*BY_KIND[self.case.kind], *OF_RECALLS)
        self.stale = {name: self.fit(name).rule for name in self.metrics}
        self.unmoved: dict[str, Any] = {}
        self.quantifiers = quantifiers(self.case.proba, self.case.y)

    def fit(self, metric: str, prior: Any = None) -> Any:
        return mw.optimize(self.case.proba, self.case.y, metric_of(metric, self.case), prior=prior)

    def measure(self) -> dict[str, list[Row]]:
        files: dict[str, list[Row]] = {name: [] for name in FILES}
        for number, name in enumerate(RATIO):
            for draw in range(self.task.draws):
                rng = np.random.default_rng([*self.task.seed, number, draw])
                for file, rows in self.measure_shift(make_shift(self.case, name, rng), rng, draw).items():
                    files[file] += rows
        return files

    def measure_shift(self, shift: Shift, rng: np.random.Generator, draw: int) -> dict[str, list[Row]]:
        metrics = self.metrics if self.task.split == RECALL_SPLIT else BY_KIND[self.case.kind]
        head = {
            "set": self.task.set,
            "model": self.task.model,
            "split": self.task.split,
            "shift": shift.name,
            "draw": draw,
        }
        judge = Judge(self.case, shift)
        fixed = {
            name: {
                "stale": judge.value(name, self.stale[name]),
                "true shares": judge.value(name, self.fit(name, shift.shares).rule),
            }
            for name in metrics
        }
        files: dict[str, list[Row]] = {name: [] for name in FILES}
        for n_rows in SIZES:
            new = self.case.pool[shift.draw(rng, n_rows)]
            shares = mw.estimate_shares(self.stale[metrics[0]], new)
            others = {name: estimate(new) for name, estimate in self.quantifiers.items()}
            own = head | {"rows": n_rows, "moved": int(shares.moved)}
            files["shares"].append(own | compare_shares(shares, others, shift))
            files["adaptation"] += [
                own | {"metric": name} | fixed[name] | self.adapt(name, new, shares, others, judge) for name in metrics
            ]
        return files

    def adapt(self, metric: str, new: Any, shares: Any, others: dict[str, Any], judge: Judge) -> dict[str, float]:
        """Return the value of the rules of each method, as they are called, whether shares moved or not."""
        rule = self.stale[metric]
        made = {OURS: self.refit(metric, shares), "with_prior": rule.with_prior(shares)}
        if len(new) >= MIN_ADAPTED_ROWS:
            made["adapted"] = rule.adapted(new, metric=metric_of(metric, self.case))
        peers = {} if metric in OF_RECALLS else others
        made |= {name: self.fit(metric, q).rule for name, q in peers.items()}
        return {name: judge.value(metric, adapted) for name, adapted in made.items()}

    def refit(self, metric: str, shares: Any) -> Any:
        """Return the rule of `optimize(prior=shares)`; that of shares which did not move is always the same."""
        if shares.moved:
            return self.fit(metric, shares).rule
        if metric not in self.unmoved:
            self.unmoved[metric] = self.fit(metric, shares).rule
        return self.unmoved[metric]


class Judge:
    """The value of rules on the pool, weighted by a shift."""

    def __init__(self, case: Case, shift: Shift) -> None:
        self.case, self.shift = case, shift

    def value(self, metric: str, rule: Any) -> float:
        decided = np.asarray(rule.predict(self.case.pool))
        C = count(self.case.pool_y, decided, self.shift.weight, self.case.n_classes)
        return round(value_of(metric, C, self.case), 6)


def compare_shares(shares: Any, others: dict[str, Any], shift: Shift) -> dict[str, float]:
    """Return the coverage and width of intervals, in the mean over classes, and mean absolute errors."""
    true, low, high = shift.shares, np.asarray(shares.low) - ROUNDING, np.asarray(shares.high) + ROUNDING
    errors = {"metricwise": np.asarray(shares), "old": np.asarray(shares.old)} | others
    return {
        "p_value": round(float(shares.p_value), 6),
        "covered": round(float(np.mean((low <= true) & (true <= high))), 6),
        "width": round(float(np.mean(high - low)), 6),
    } | {f"error of {name}": round(float(np.abs(q - true).mean()), 6) for name, q in errors.items()}


# ---------------------------------------------------------------------------------------------------------------------
# the page


def report(files: dict[str, list[Row]], made_with: str) -> str:
    rows, shares = files["adaptation"], files["shares"]
    judged = [row for row in rows if row["metric"] not in OF_RECALLS]
    recalls = [row for row in rows if row["metric"] in OF_RECALLS]
    n_draws = len({(row["split"], row["draw"]) for row in rows})
    return part_page(
        "Rules adapted to class shares that moved",
        "a",
        made_with,
        f"""{len({row["set"] for row in rows})} real sets, two models, {n_draws} draws of each shift.

- *Change*: of the metric against the stale rule, in points (0.01), mean over cells of set, model, metric and draw, with
  its standard error (that of leaving out one set at a time).
- *Below -1*: share of cells that lose more than a point.
- *Of true shares*: the sum of changes over that of rules fitted for the true shares, `optimize(prior=shares)`.
- "metricwise" is `optimize(prior=estimate_shares(rule, new))`, "with_prior" `rule.with_prior(shares)` and "adapted"
  `rule.adapted(new)`; QuaPy's shares go into the same `optimize(prior=)`.

{claims(judged, recalls, shares)}

## All metrics

{change_table(judged, METHODS, ("rows", "shift"))}

## By metric

1,000 new rows.

{change_table([row for row in judged if row["rows"] == 1_000], METHODS[:4], ("shift", "metric"))}

## Metrics of recalls

{change_table(recalls, METHODS[:4], ("shift", "metric"))}

## The shares

*Alarms*: share of draws in which the test says that shares moved. *Covered*: share of classes whose 95 % interval
contains the true share. *Errors*: mean absolute error of a share, in points; *old* is that of the shares of the
labelled rows.

{share_table(shares)}""",
    )


def claims(judged: list[Row], recalls: list[Row], shares: list[Row]) -> str:
    """Return what is asked of the numbers, with the numbers."""
    change, below, part = mean_change(OURS), share_below(OURS), of_oracle(OURS)
    lines = []
    for n_rows in SIZES:
        none, mild, strong = (
            [r for r in judged if (r["rows"], r["shift"]) == (n_rows, name)] for name in ("none", "mild", "strong")
        )
        lines.append(claim(f"none, {n_rows:,} rows: change", ">= -0.05", change(none), jackknife(change, none), "+.2f"))
        if n_rows >= MIN_ADAPTED_ROWS:
            lines += [
                claim(f"none, {n_rows:,} rows: below -1", "<= 1%", below(none), jackknife(below, none), ".1%"),
                claim(f"mild, {n_rows:,} rows: of true shares, %", ">= 50", part(mild), jackknife(part, mild), ".0f"),
                claim(
                    f"strong, {n_rows:,} rows: of true shares, %", ">= 85", part(strong), jackknife(part, strong), ".0f"
                ),
            ]
    moved = [row for row in shares if row["rows"] == 1_000 and row["shift"] in ("mild", "strong")]
    lines.append(
        claim(
            "intervals of shares, mild and strong, 1,000 rows: covered",
            ">= 90%",
            mean(moved, "covered"),
            jackknife(lambda rows: mean(rows, "covered"), moved),
            ".1%",
        )
    )
    largest = max(float(np.abs(changes(recalls, name)).max()) for name in ("metricwise", "with_prior"))
    lines.append({"claim": "metrics of recalls: largest change", "asked": "0", "measured": f"{largest:g}"})
    return table(lines, left=2)


def claim(name: str, asked: str, measured: float, error: float, form: str) -> Row:
    return {"claim": name, "asked": asked, "measured": f"{measured:{form}} ± {error:{form.lstrip('+')}}"}
