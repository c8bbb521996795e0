"""Constraints of `optimize(..., subject_to=, confidence=)`: do they hold on new rows, and at what cost?

    python -m benchmarks.promises                           writes promises.csv and promises.md beside it
    python -m benchmarks.promises random mapie              some parts anew, the others as promises.csv has them
    python -m benchmarks.promises --tables                  promises.md alone, from promises.csv
    python -m benchmarks.promises --repeats 3               a minute's worth, writes nothing

`kept`: draws of synthetic problems with known class probabilities. The given probabilities are tempered and shifted,
like those of a model with class weights. The rule is fitted to 1,000 or 4,000 rows and evaluated on 40,000 others: with
their labels, and with their true class probabilities, which have less noise. `limits`: exact limits of proportions
compared with normal ones. `random`: on problems of 3,000 rows, none of 10^5 random losses that satisfy the constraints
should be better than the solution, evaluated with NumPy. `mapie`: a lower bound on precision compared with mapie's
BinaryClassificationController, with the same probabilities.

Times are processor time, on one thread.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import metricwise as mw
from metricwise.inference.confidence_limits import SampledMetric

from .machine import cores, facts
from .promise_rivals import beside_mapie, beside_random, mapie_text, random_text
from .promise_runs import CONFIDENCE, N_NEW, REPEATS, SIZES, attempted, by, clocked, in_processes, mean, median, percent
from .promise_worlds import Draw, binary, count, keeps, three, value
from .tables import significant, table, write_csv, write_text

HERE = Path(__file__).parent
RANGE = (0.93, 0.99)  # of how often floors should be kept
COLUMNS = (
    "part",
    "case",
    "rows",
    "repetition",
    "who",
    "promised",
    "kept",
    "truly kept",
    "covered",
    "aim",
    "n",
    "ms",
    "error",
)
HEAD = """# Constraints on new rows

Made by `python -m benchmarks.promises`; all repetitions are in `promises.csv`. {processor}, {cores}
cores, Python {Python}, NumPy {numpy}, mapie {mapie}; metricwise {metricwise}.
"""

# ---------------------------------------------------------------------------------------------------------------------
# kept: what new rows say of rules with and without confidence


@dataclass(frozen=True)
class Case:
    world: Callable[[np.random.Generator, int], Draw]
    aim: str
    text: str
    every: int = 1  # such draw; slow cases have fewer

    def __str__(self) -> str:
        return f"{self.world.__name__}: {self.aim}, {self.text}"


CASES = (
    Case(binary, "recall", "precision >= 0.8"),
    Case(binary, "precision", "recall >= 0.8"),
    Case(binary, "recall", "share <= 0.2"),
    Case(binary, "precision", "f1 >= 0.6"),
    Case(three, "accuracy", "recall[1] >= 0.65 and recall[2] >= 0.65"),  # neither is kept unless asked for
    Case(three, "accuracy", "min_recall >= 0.6", 6),  # where two recalls meet
    Case(three, "recall[2]", "kappa >= 0.4", 6),
)


def repetition(task: tuple[tuple[Case, ...], int, int]) -> list[dict[str, Any]]:
    """Return one draw of a problem: all of its cases, with and without confidence."""
    cases, n, number = task
    world = cases[0].world
    rng = np.random.default_rng([["binary", "three"].index(world.__name__), n, number])
    fit, new = world(rng, n), world(rng, N_NEW)
    rows = []
    for case in (case for case in cases if number % case.every == 0):
        for confidence in (CONFIDENCE, None):
            ask = partial(mw.optimize, fit.given, fit.y, case.aim, subject_to=case.text, confidence=confidence)
            own = {"part": "kept", "case": str(case), "rows": n, "repetition": number, "who": str(confidence)}
            solution, note = attempted(ask)
            rows.append(own | ({"promised": 0} if solution is None else judged(solution, case, new)) | note)
    return rows


def judged(solution: mw.Solution, case: Case, new: Draw) -> dict[str, Any]:
    """Return the results of a rule on new rows."""
    decided = solution.rule.predict(new.given)
    seen, truly = count(np.eye(new.truth.shape[1])[new.y], decided), count(new.truth, decided)
    within = [
        one.on_new_rows.low <= value(one.name.split()[0], truly) <= one.on_new_rows.high
        for one in solution.constraints
        if one.on_new_rows is not None
    ]
    return {
        "promised": int(solution.constraints[0].confidence == CONFIDENCE),
        "kept": int(keeps(case.text, seen)),
        "truly kept": int(keeps(case.text, truly)),
        "covered": round(float(np.mean(within)), 3) if within else None,
        "aim": round(float(value(case.aim, seen)), 5),
    }


def kept(repeats: int, jobs: int) -> Iterator[list[dict[str, Any]]]:
    worlds = [tuple(case for case in CASES if case.world is world) for world in (binary, three)]
    tasks = [(cases, n, number) for number in range(repeats) for cases in worlds for n in SIZES]
    return in_processes(repetition, tasks, jobs)


def kept_text(rows: list[dict[str, Any]]) -> str:
    cells = [
        kept_cell(case, n, own)
        for case in CASES
        for n in SIZES
        if (own := [row for row in rows if row["case"] == str(case) and row["rows"] == n])
    ]
    outside = sum(cell["within"] != "yes" for cell in cells)
    repeats = len({row["repetition"] for row in rows})
    return f"""## How often they are kept

Up to {repeats} draws of each problem and size, with {N_NEW:,} new rows each. The metric after the colon is maximised.
*Refused*: share of draws with an error, for example because no single rule satisfies the constraints on the given rows.
*Promised*: share of draws with enough labels for a confidence of {CONFIDENCE:g}. *Kept*: share of the promised draws in
which all constraints hold by the labels of new rows; *truly*: the same by their true class probabilities. *Kept* should
be {RANGE[0]:.0%} to {RANGE[1]:.0%}; the standard error at {CONFIDENCE:.0%} is {error(repeats):.1%} with {repeats}
draws, {error(repeats / 3):.1%} with a third. *Covered*: 95 % intervals of the constrained metrics on new rows that
contain the true value. *Without*: `confidence=None`. *Price*: loss of the maximised metric on new rows due to the
confidence. Cells out of range: {outside} of {len(cells)}.

{table(cells, left=1)}

{bindings_text()}
"""


def error(repeats: float) -> float:
    """Return the standard error of the share of draws in which the constraints hold."""
    return float(np.sqrt(CONFIDENCE * (1 - CONFIDENCE) / repeats))


def kept_cell(case: Case, n: int, rows: list[dict[str, Any]]) -> dict[str, Any]:
    draws = len(by(rows, "repetition"))
    refused = mean(row.get("kept") is None for row in rows)
    rows = [row for row in rows if row.get("kept") is not None]
    sure, bare = ([row for row in rows if row["who"] == who] for who in (str(CONFIDENCE), "None"))
    given = [row for row in sure if row["promised"]]
    aim, bare_aim = (mean(row["aim"] for row in some) for some in (sure, bare))
    often = mean(row["kept"] for row in given)
    return {
        "case": str(case),
        "rows": f"{n:,}",
        "draws": draws,
        "refused": percent(refused),
        "promised": percent(mean(row["promised"] for row in sure)),
        "kept": percent(often),
        "truly": percent(mean(row["truly kept"] for row in given)),
        "within": "yes" if RANGE[0] <= often <= RANGE[1] else "**no**",
        "covered": percent(mean(row["covered"] for row in sure if row["covered"] is not None)),
        "kept without": percent(mean(row["kept"] for row in bare)),
        "truly without": percent(mean(row["truly kept"] for row in bare)),
        "aim": f"{aim:.4f}",
        "aim without": f"{bare_aim:.4f}",
        "price": f"{bare_aim - aim:.4f}",
        "ms": significant(median(row["ms"] for row in sure)),
        "ms without": significant(median(row["ms"] for row in bare)),
    }


def bindings_text() -> str:
    """Return a table that shows that the constraints are active: metrics without constraints, and prices."""
    cells = []
    for case in CASES:
        truth = case.world(np.random.default_rng(0), 100_000).truth
        names = [one.split()[0] for one in case.text.split(" and ")]
        free, _ = clocked(partial(mw.optimize, truth, None, case.aim))
        best, _ = clocked(
            partial(mw.optimize, truth, None, case.aim, subject_to=case.text, strategy=mw.Strategy(randomized=True))
        )
        C = count(truth, free.rule.predict(truth))
        cells.append(
            {
                "case": str(case),
                "where only the aim counts": ", ".join(f"{name} {value(name, C):.3f}" for name in names),
                "at the optimum": ", ".join(f"{one.value:.3f}" for one in best.constraints),
                "price per unit": ", ".join(f"{one.price:.3g}" for one in best.constraints),
            }
        )
    return "All constraints bind in the population (100,000 rows with their true probabilities):\n\n" + table(cells, 4)


# ---------------------------------------------------------------------------------------------------------------------
# limits: what exact ones are worth


LIMIT_SIZES = (500, 2_000)
LIMIT_CASES = tuple(case for case in CASES[:3])


def with_limits(task: tuple[int, int]) -> list[dict[str, Any]]:
    """Return one draw: rules with exact and with normal limits of proportions."""
    n, number = task
    rng = np.random.default_rng([2, n, number])
    fit, new = binary(rng, n), binary(rng, N_NEW)
    rows, exact = [], SampledMetric.__dict__["proportion"]
    for case in LIMIT_CASES:
        ask = partial(mw.optimize, fit.given, fit.y, case.aim, subject_to=case.text, confidence=CONFIDENCE)
        for who in ("exact", "normal"):
            SampledMetric.proportion = exact if who == "exact" else property(lambda _: None)  # type: ignore[assignment,method-assign]
            try:
                solution, note = attempted(ask)
            finally:
                SampledMetric.proportion = exact  # type: ignore[method-assign]
            own = {"part": "limits", "case": str(case), "rows": n, "repetition": number, "who": who}
            rows.append(own | ({"promised": 0} if solution is None else judged(solution, case, new)) | note)
    return rows


def limits(repeats: int, jobs: int) -> Iterator[list[dict[str, Any]]]:
    return in_processes(with_limits, [(n, number) for number in range(repeats) for n in LIMIT_SIZES], jobs)


def limits_text(rows: list[dict[str, Any]]) -> str:
    cells = []
    for case in LIMIT_CASES:
        for n in LIMIT_SIZES:
            cell: dict[str, Any] = {"case": str(case), "rows": f"{n:,}"}
            for who in ("exact", "normal"):
                own = [row for row in rows if (row["case"], row["rows"], row["who"]) == (str(case), n, who)]
                given = [row for row in own if row["promised"]]
                cell |= {
                    f"{who}: promised": percent(mean(row["promised"] for row in own)),
                    "kept" if who == "exact" else "kept ": percent(mean(row["kept"] for row in given)),
                    "aim" if who == "exact" else "aim ": f"{mean(row['aim'] for row in given):.4f}",
                }
            cells.append(cell)
    return f"""## Exact limits and normal ones

The margins of a precision, a recall or a share use Clopper and Pearson's limits. They are compared with normal limits
by the delta method, which are used for all other smooth metrics. {len(by(rows, "repetition"))} draws; *kept* and *aim*
in the promised draws.

{table(cells, left=1)}
"""


# ---------------------------------------------------------------------------------------------------------------------
# the command


Rows = list[dict[str, Any]]
PARTS: dict[str, tuple[Callable[[int, int], Iterator[Rows]], Callable[[Rows], str]]] = {
    "kept": (kept, kept_text),
    "limits": (limits, limits_text),
    "random": (beside_random, random_text),
    "mapie": (beside_mapie, mapie_text),
}


def save(path: Path, rows: list[dict[str, Any]]) -> None:
    write_csv(path, [{key: row.get(key) for key in COLUMNS} for row in rows])


def stored(path: Path) -> list[dict[str, Any]]:
    """Return the repetitions of a file, numbers as numbers; none without a file."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return [{key: number_of(key, text) for key, text in row.items()} for row in csv.DictReader(file)]


def number_of(column: str, text: str) -> Any:
    if column in ("part", "case", "who", "error"):
        return text
    if text == "":
        return None
    return float(text) if column in ("covered", "aim", "ms") else int(text)


def report(rows: list[dict[str, Any]]) -> str:
    texts = [PARTS[part][1]([row for row in rows if row["part"] == part]) for part in by(rows, "part")]
    return "\n".join((HEAD.format(**facts()), *texts))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="part", help=f"of {', '.join(PARTS)}; all unless named")
    parser.add_argument("--repeats", type=int, default=REPEATS, help="draws; with fewer, nothing is written")
    parser.add_argument("--jobs", type=int, default=cores(), help="processes")
    parser.add_argument("--output", type=Path, help="folder; without it only a full run writes, beside this file")
    parser.add_argument("--tables", action="store_true", help="run nothing, make the tables of promises.csv anew")
    options = parser.parse_args(arguments)
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"part must be one of {', '.join(PARTS)}, got {', '.join(sorted(unknown))}")
    parts = [] if options.tables else options.parts or list(PARTS)
    output = options.output or (HERE if options.repeats >= REPEATS else None)
    rows = [] if output is None else [row for row in stored(output / "promises.csv") if row["part"] not in parts]
    for part in parts:
        saved = time.monotonic()
        for some in PARTS[part][0](options.repeats, options.jobs):
            rows += some
            if output is not None and time.monotonic() > saved + 60:  # what a run that is cut short leaves
                save(output / "promises.partial.csv", rows)
                saved = time.monotonic()
    rows.sort(key=lambda row: list(PARTS).index(row["part"]))
    text = report(rows)
    print(text)
    if output is not None:
        if parts:
            save(output / "promises.csv", rows)
            (output / "promises.partial.csv").unlink(missing_ok=True)
        write_text(output / "promises.md", text)


if __name__ == "__main__":
    main()
