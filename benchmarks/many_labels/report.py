"""The page: tables of the lines that the parts have measured, and what is claimed of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..life.summaries import by
from ..tables import significant, table
from .cases import Row
from .data import SYNTHETIC
from .values import GOALS, Goal, jackknife

FloatArray = NDArray[np.float64]
Files = dict[str, list[Row]]
Cell = tuple[str, Goal]

FIXED, RECALIBRATED, DEFAULT, TOGETHER = "fixed recipe", "fixed recipe, recalibrated", "default", "together"


INTRODUCTION = """Made by `python -m benchmarks.many_labels all`. The sets are described in `data.py`, how xcolumns is
called in `peers.py`. *Rule*: fitted to some rows, and used for fresh ones. *Together*: the fresh rows are decided as a
batch. Every row gets exactly k labels, or any number without a budget. Values are those of the labels of fresh rows:
macro averages are taken over all labels, 0/0 is 0, positives that are not stored are misses.
"""


def page(files: Files) -> str:
    parts = [
        "# Very many labels, beside xcolumns\n",
        INTRODUCTION,
        *(f"- {row['part']}: {row['made with']}" for row in files["versions"]),
        "",
    ]
    if files["speed"] and files["value"]:
        parts += ["## What is asked for\n", claim_table(files), ""]
    if files["value"]:
        parts += [VALUE_TEXT, *value_sections(files["value"])]
    if files["speed"]:
        parts += [SPEED_TEXT, *speed_sections(files["speed"])]
    if files["memory"]:
        parts += [MEMORY_TEXT, memory_table(files["memory"]), ""]
    if files["growth"]:
        parts += [GROWTH_TEXT, growth_table(files["growth"]), ""]
    return "\n".join(parts)


def cell_of(row: Row) -> Cell:
    return row["set"], Goal(row["metric"], row["average"], None if row["k"] == "none" else row["k"])


# ---------------------------------------------------------------------------------------------------------------------
# values


VALUE_TEXT = """## Values on fresh rows

Means, with standard errors: synthetic, of leaving out one of 20 blocks of rows at a time; real sets, of random halves.
*Ours minus theirs*: the named contestant against the best of xcolumns' of the same kind, with the error of the
difference, and the same in percent.
"""


class Values:
    """The values of contestants in one cell: of splits, or of rows without a block."""

    def __init__(self, rows: list[Row]) -> None:
        self.library = {row["contestant"]: row["library"] for row in rows}
        self.kind = {row["contestant"]: row["kind"] for row in rows}
        self.means = {
            name: float(np.mean([row["value"] for row in own])) for (name,), own in by(rows, ("contestant",)).items()
        }
        self.parts = {name: parts_of(own) for (name,), own in by(rows, ("contestant",)).items()}
        self.blocks = rows[0]["set"] == SYNTHETIC

    def error(self, parts: FloatArray) -> float:
        if self.blocks:
            return jackknife(parts)
        return float(np.std(parts, ddof=1) / np.sqrt(len(parts))) if len(parts) > 1 else float("nan")

    def shown(self, name: str) -> str:
        return f"{self.means[name]:.4f} ± {self.error(self.parts[name]):.4f}"

    def best_peer(self, kind: str) -> str | None:
        """Return the best of xcolumns' contestants of a kind."""
        theirs = [name for name in self.means if self.library[name] == "xcolumns" and self.kind[name] == kind]
        return max(theirs, key=lambda name: self.means[name], default=None)

    def difference(self, name: str, peer: str) -> tuple[float, float]:
        """Return ours minus theirs, and its standard error."""
        n = min(len(self.parts[name]), len(self.parts[peer]))
        return self.means[name] - self.means[peer], self.error(self.parts[name][:n] - self.parts[peer][:n])

    def gain(self, name: str, peer: str) -> float:
        return self.means[name] / self.means[peer] - 1 if self.means[peer] else float("nan")


def parts_of(rows: list[Row]) -> FloatArray:
    ordered = sorted(rows, key=lambda row: row["split"])
    if ordered[0]["left_out"]:
        return np.array([float(value) for value in ordered[0]["left_out"].split()])
    return np.array([row["value"] for row in ordered])


def value_cells(rows: list[Row]) -> dict[Cell, Values]:
    cells: dict[Cell, list[Row]] = {}
    for row in rows:
        cells.setdefault(cell_of(row), []).append(row)
    return {cell: Values(own) for cell, own in cells.items()}


def value_sections(rows: list[Row]) -> list[str]:
    cells = value_cells(rows)
    parts = []
    for name in dict.fromkeys(row["set"] for row in rows):
        lines = [line for goal in GOALS if (name, goal) in cells for line in value_lines(goal, cells[name, goal])]
        parts += [f"### {name}\n", table(lines, left=3), ""]
    return parts


def value_lines(goal: Goal, values: Values) -> list[Row]:
    lines = []
    for name in values.means:
        line = {"goal": goal.title, "library": values.library[name], "contestant": name, "value": values.shown(name)}
        peer = values.best_peer(values.kind[name])
        compared = peer is not None and values.library[name] != "xcolumns"
        lines.append(
            line | (difference_cells(values, name, str(peer)) if compared else {"ours minus theirs": None, "%": None})
        )
    return lines


def difference_cells(values: Values, name: str, peer: str) -> Row:
    difference, error = values.difference(name, peer)
    return {"ours minus theirs": f"{difference:+.4f} ± {error:.4f}", "%": f"{100 * values.gain(name, peer):+.1f}"}


# ---------------------------------------------------------------------------------------------------------------------
# times


SPEED_TEXT = """## Times

Processor seconds of one thread, the best of several calls: a fit, and the decisions about the fresh rows. *Times*: by
how much our contestant is faster than xcolumns' of the same kind: rules by their fits, against Frank-Wolfe on expected
counts of 15 iterations and of 100 (its default; it stops earlier where it finds no step); together by decisions.
"""


def duration(row: Row) -> float:
    """Return the seconds by which contestants are compared: to fit a rule if there is a fit, or else to decide."""
    return float(row["decide"] if row["kind"] == "together" or row["fit"] < NO_FIT else row["fit"])


NO_FIT = 1e-4


def speed_cells(rows: list[Row]) -> dict[Cell, dict[str, Row]]:
    cells: dict[Cell, dict[str, Row]] = {}
    for row in rows:
        cells.setdefault(cell_of(row), {})[f"{row['library']} {row['contestant']}"] = row
    return cells


def speed_ratio(cell: dict[str, Row], name: str, peer: str) -> float | None:
    """Return how many times faster ours is than one of xcolumns'; None where one of them is not there."""
    ours, theirs = cell.get(f"metricwise {name}"), cell.get(f"xcolumns {peer}")
    return duration(theirs) / duration(ours) if theirs and ours else None


def speed_sections(rows: list[Row]) -> list[str]:
    cells = speed_cells(rows)
    parts = []
    for name in dict.fromkeys(row["set"] for row in rows):
        lines = [line for goal in GOALS if (name, goal) in cells for line in speed_lines(goal, cells[name, goal])]
        parts += [f"### {name}\n", table(lines, left=3), ""]
    return parts


def speed_lines(goal: Goal, cell: dict[str, Row]) -> list[Row]:
    return [
        {
            "goal": goal.title,
            "library": row["library"],
            "contestant": row["contestant"],
            "fit, s": significant(row["fit"]),
            "decide, s": significant(row["decide"]),
        }
        | {heading: ratio_cell(cell, row, peer) for heading, peer in PEERS_OF[row["kind"]].items()}
        for row in cell.values()
    ]


PEERS_OF: dict[str, dict[str, str | None]] = {
    "rule": {"times": "Frank-Wolfe 15, expected", "times, 100 iterations": "Frank-Wolfe 100, expected"},
    "together": {"times": "block coordinates", "times, 100 iterations": None},
}


def ratio_cell(cell: dict[str, Row], row: Row, peer: str | None) -> str | None:
    if row["library"] == "xcolumns" or peer is None:
        return None
    return significant(speed_ratio(cell, row["contestant"], peer))


# ---------------------------------------------------------------------------------------------------------------------
# memory and growth


MEMORY_TEXT = """## Peak memory

Beyond the rows, of a fit and of decisions, in a new process; *share*: of the probabilities as they are stored.
"""


def memory_table(rows: list[Row]) -> str:
    return table(
        [
            {
                "set": row["set"],
                "goal": cell_of(row)[1].title,
                "library": row["library"],
                "contestant": row["contestant"],
                "input, MB": significant(row["input"] / 1e6),
                "fit, MB": significant(row["fit"] / 1e6),
                "share": f"{row['fit'] / row['input']:.2f}",
                "decide, MB": significant(row["decide"] / 1e6),
            }
            for row in rows
        ],
        left=4,
    )


GROWTH_TEXT = """## Times by stored entries

Processor milliseconds, the best of several calls; in brackets nanoseconds an entry. *Top k*: the pass that
counts the three best labels of every row, also as a multiple of reading values and indices once, to sum them up or to
find their maxima.
"""


READINGS = ("sums", "maxima")


def growth_table(rows: list[Row]) -> str:
    lines = []
    for row in sorted(rows, key=lambda row: row["entries"]):
        calls = [name for name in row if name not in ("entries", "rows") and row[name] is not None]
        line: Row = {"entries": f"{row['entries']:,}"}
        line |= {name: f"{significant(1e3 * row[name])} ({1e9 * row[name] / row['entries']:.1f})" for name in calls}
        lines.append(line | {f"top k / {name}": significant(row["top k"] / row[name]) for name in READINGS})
    return table(lines)


# ---------------------------------------------------------------------------------------------------------------------
# what is asked for


def claim_table(files: Files) -> str:
    speeds, values = speed_cells(files["speed"]), value_cells(files["value"])
    lines = [*speed_claims(speeds), *value_claims(values), *growth_claims(files["growth"])]
    words = {True: "yes", False: "**no**", None: None}
    return table([dict(zip(COLUMNS, (*line[:-1], words[line[-1]]), strict=True)) for line in lines], left=3)


Claim = tuple[str, str, str, str | None, bool | None]
COLUMNS = ("claim", "set", "asked", "measured", "kept")
BEYOND_NOISE = 2


def speed_claims(cells: dict[Cell, dict[str, Row]]) -> list[Claim]:
    """Return ratios of times on the synthetic set."""
    short, long = "Frank-Wolfe 15, expected", "Frank-Wolfe 100, expected"
    asked = [(Goal("f1", "macro", k), FIXED, short, 40.0) for k in (1, 3, 5)]
    asked += [
        (Goal("f1", "macro", None), FIXED, short, 20.0),
        (Goal("f1", "micro", None), FIXED, short, 6.0),
        (Goal("f1", "macro", 3), DEFAULT, long, 1.0),
        (Goal("f1", "macro", 3), TOGETHER, "block coordinates", 60.0),
    ]
    claims = []
    for goal, name, peer, least in asked:
        ratio = speed_ratio(cells.get((SYNTHETIC, goal), {}), name, peer)
        if ratio is not None:
            what = f"{goal.title}: {name}, times faster than {peer}"
            claims.append((what, SYNTHETIC, f">= {least:g}", significant(ratio), ratio >= least))
    return claims + fit_claims(cells.get((SYNTHETIC, Goal("f1", "macro", 3)), {}))


def fit_claims(cell: dict[str, Row]) -> list[Claim]:
    if not {f"metricwise {FIXED}", f"metricwise {DEFAULT}"} <= set(cell):
        return []
    fits = cell[f"metricwise {DEFAULT}"]["fit"] / cell[f"metricwise {FIXED}"]["fit"]
    return [("macro-F1@3: default, in fits of the fixed recipe", SYNTHETIC, "<= 8", significant(fits), fits <= 8)]


def value_claims(cells: dict[Cell, Values]) -> list[Claim]:
    """Return the difference of ours to the best of theirs, by set and goal."""
    claims: list[Claim] = []
    for (name, goal), values in cells.items():
        claims += value_claims_of(name, goal, values)
    return claims


def value_claims_of(name: str, goal: Goal, values: Values) -> list[Claim]:
    """Return our named contestants against the best of xcolumns' of their kind, chosen by these very values."""
    named = [("rule", FIXED), ("rule", DEFAULT), ("together", TOGETHER)]
    compared = [(kind, ours, values.best_peer(kind)) for kind, ours in named if ours in values.means]
    return [value_claim(name, goal, values, ours, peer) for _, ours, peer in compared if peer is not None]


def value_claim(name: str, goal: Goal, values: Values, ours: str, peer: str) -> Claim:
    difference, error = values.difference(ours, peer)
    percent = 100 * values.gain(ours, peer)
    least = least_percent(name, goal) if ours != TOGETHER else None
    noise = 0.0 if np.isnan(error) else BEYOND_NOISE * error  # of one split there is no error
    kept = percent >= least if least is not None else difference >= -noise
    bound = f">= +{least} %" if least is not None else f">= -{BEYOND_NOISE} standard errors"
    return (
        f"{goal.title}: {ours} minus {peer}",
        name,
        bound,
        f"{difference:+.4f} ± {error:.4f} ({percent:+.1f} %)",
        kept,
    )


def least_percent(name: str, goal: Goal) -> int | None:
    """Return the gain that is asked for, in percent; None where a value must not be lower than noise explains."""
    if (goal.metric, goal.average) != ("f1", "macro"):
        return None
    if name == SYNTHETIC:
        return 5 if goal.k is None else None
    return 2 if goal.k in (3, 5) else None


def growth_claims(rows: list[Row]) -> list[Claim]:
    if not rows:
        return []
    rates = [1e9 * row["top k"] / row["entries"] for row in rows]
    claims: list[Claim] = [("top-3 pass, ns an entry", "10^6 to 10^8", "linear", spread(rates), None)]
    for name in READINGS:
        ratios = [row["top k"] / row[name] for row in rows]
        what = f"top-3 pass, times reading once ({name})"
        claims.append((what, "10^6 to 10^8", "<= 7", spread(ratios), max(ratios) <= 7))
    return claims


def spread(numbers: list[float]) -> str:
    return f"{min(numbers):.1f} to {max(numbers):.1f}"
