"""The results of `speed.py` as tables and a figure.

Computes the comparisons: who reaches a value, how many times faster, which targets are met.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tables import significant, table, write_csv, write_figure, write_text
from workloads import SPARSE, find

REACHES = 1e-4
EXACT = 1e-6
MEMORY_SHARE = 0.25
MEMORY_FROM = 10_000_000  # N * M * K
CACHED = 100_000  # bytes

BLUE, ORANGE, GREY, GREEN = "#0072B2", "#E69F00", "#8C8C8C", "#009E73"  # Okabe and Ito's, told apart by everyone


@dataclass(frozen=True)
class Run:
    """One run of the benchmark.

    Parameters
    ----------
    facts : dict
        The machine.
    scale : float
        Share of the rows.
    records : list of dict
        One for each contestant on each workload.
    minutes : float
    """

    facts: dict[str, str]
    scale: float
    records: list[dict[str, Any]]
    minutes: float

    def passes(self, record: dict[str, Any]) -> float | None:
        """Return the time in passes; None if the input fits into the caches."""
        if record["size"] < CACHED:
            return None
        return min(record["times"]) * record["bandwidth"] / record["size"]

    def groups(self) -> dict[str, list[dict[str, Any]]]:
        """Return the results of each workload, one fit of metricwise first."""
        found: dict[str, list[dict[str, Any]]] = {}
        for record in self.records:
            if not record["error"]:
                found.setdefault(record["workload"].key, []).append(record)
        return {key: group for key, group in found.items() if group[0]["role"] == "ours"}


def times_faster(ours: dict[str, Any], other: dict[str, Any]) -> float:
    """Return the ratio of the best times over the rounds of both."""
    rounds = min(len(ours["times"]), len(other["times"]))
    return min(other["times"][:rounds]) / min(ours["times"][:rounds])


def reaches(other: dict[str, Any], ours: dict[str, Any], tolerance: float = REACHES) -> bool:
    return other["fitted"] >= ours["fitted"] - tolerance


def fastest(records: list[dict[str, Any]]) -> dict[str, Any] | None:
    return min(records, key=lambda record: min(record["times"]), default=None)


def rivals(ours: dict[str, Any], group: list[dict[str, Any]]) -> list[dict[str, Any] | None]:
    """The fastest peer that reaches our value, the fastest that does so exactly, and the fastest of all peers."""
    peers = [record for record in group if record["role"] == "peer"]
    return [fastest([peer for peer in peers if reaches(peer, ours, off)]) for off in (REACHES, EXACT, float("inf"))]


# ---------------------------------------------------------------------------------------------------------------------
# tables


def verdict(found: float | None, aim: float | None, at_most: bool) -> str | None:
    if aim is None or found is None:
        return None
    met = found <= aim if at_most else found >= aim
    return f"{'≤' if at_most else '≥'} {aim:g}: {'yes' if met else '**no**'}"


def memory(record: dict[str, Any]) -> float | None:
    return None if record["peak"] is None else record["peak"] / record["size"]


def memory_verdict(record: dict[str, Any]) -> str | None:
    workload = record["workload"]
    large = workload.rows * workload.outputs * workload.classes >= MEMORY_FROM
    return verdict(memory(record), MEMORY_SHARE if large else None, at_most=True)


def in_short(record: dict[str, Any]) -> str:
    return f"{record['contestant']}: {significant(1e3 * min(record['times']))} ms, {record['fitted']:.4f}"


def aims_row(run: Run, ours: dict[str, Any], group: list[dict[str, Any]]) -> dict[str, Any]:
    workload, (rival, exact, quickest) = ours["workload"], rivals(ours, group)
    ratio = None if rival is None else times_faster(ours, rival)
    default = ours["contestant"] == "metricwise"
    return {
        "workload": f"{workload.key} {workload.title}",
        "solver": "default" if default else ours["contestant"].split()[-1],
        "ms": significant(1e3 * min(ours["times"])),
        "passes": significant(run.passes(ours)),
        "aim of passes": verdict(run.passes(ours), workload.passes, True)
        if ours["contestant"] == workload.aim_of
        else None,
        "value": f"{ours['fitted']:.4f}",
        "gap": None if ours.get("gap") is None else f"{ours['gap']:.0e}",
        "fastest peer that reaches it": "none" if rival is None else rival["contestant"],
        "its ms": None if rival is None else significant(1e3 * min(rival["times"])),
        "times faster": significant(ratio),
        "aim of ratio": verdict(ratio, workload.ratio, False) if default else None,
        "fastest peer that reaches it exactly": "none" if exact is None else in_short(exact),
        "times faster than that": None if exact is None else significant(times_faster(ours, exact)),
        "fastest peer of all": None if quickest is None else in_short(quickest),
        "peak memory": None if memory(ours) is None else f"{memory(ours):.2f}",
        "aim of memory": memory_verdict(ours),
    }


def default_row(group: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the default call compared with one fit, and with a comparable peer."""
    fixed = group[0]
    default, other = (next((one for one in group if one["role"] == role), None) for role in ("default", "safe"))
    assert default is not None
    workload = fixed["workload"]
    return {
        "workload": f"{workload.key} {workload.title}",
        "default, ms": significant(1e3 * min(default["times"])),
        "one fit, ms": significant(1e3 * min(fixed["times"])),
        "times as long": significant(1 / times_faster(default, fixed), 2),
        "fresh rows": f"{default['fresh']:.5f}",
        "one fit, fresh rows": f"{fixed['fresh']:.5f}",
        "peer with folds of its own": None if other is None else other["contestant"],
        "its ms": None if other is None else significant(1e3 * min(other["times"])),
        "its fresh rows": None if other is None else f"{other['fresh']:.5f}",
        "default is faster by": None if other is None else significant(times_faster(default, other)),
    }


def defaults(run: Run) -> list[dict[str, Any]]:
    return [default_row(group) for group in run.groups().values() if any(one["role"] == "default" for one in group)]


def brief_row(run: Run, group: list[dict[str, Any]]) -> dict[str, Any]:
    """One fit of a workload, by the solver that its aim is about, and the fastest peer that reaches the value."""
    workload = group[0]["workload"]
    ours = next((one for one in group if one["contestant"] == workload.aim_of), group[0])
    rival, _, quickest = rivals(ours, group)
    peer = "none" if rival is None else f"{rival['contestant']}, {significant(1e3 * min(rival['times']))} ms"
    if rival is None and quickest is not None:
        peer = f"none; {quickest['contestant']} ends at {quickest['fitted']:.4f}, ours at {ours['fitted']:.4f}"
    return {
        "workload": f"{workload.key} {workload.title}",
        "ms": significant(1e3 * min(ours["times"])),
        "passes": significant(run.passes(ours)),
        "aim": None if workload.passes is None else f"{workload.passes:g}",
        "fastest peer that reaches the value": peer,
        "times faster": None if rival is None else significant(times_faster(ours, rival)),
        "aim ": None if workload.ratio is None else f"{workload.ratio:g}",
        "memory": None if memory(ours) is None else f"{memory(ours):.2f}",
    }


def brief(run: Run) -> list[dict[str, Any]]:
    return [brief_row(run, group) for group in run.groups().values()]


def sparse_row(like: dict[str, Any]) -> dict[str, Any]:
    return dict.fromkeys(like) | {"workload": f"{SPARSE[0]} {SPARSE[1]}", "solver": SPARSE[2]}


def in_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Insert the sparse workload, which nobody ran."""
    before = [row for row in rows if int(row["workload"].split()[0].split("-")[0][1:]) < 8]
    return [*before, sparse_row(rows[0]), *rows[len(before) :]] if rows else []


def aims(run: Run) -> list[dict[str, Any]]:
    rows = [
        aims_row(run, record, group) for group in run.groups().values() for record in group if record["role"] == "ours"
    ]
    return in_order(rows)


def entry(run: Run, record: dict[str, Any], first: dict[str, Any]) -> dict[str, Any]:
    """Return the numbers of one method; the ratio is to one fit of metricwise on the same rounds."""
    ours = record["role"] in ("ours", "default")
    return {
        "workload": record["workload"].key,
        "contestant": record["contestant"],
        "role": record["role"],
        "ms": 1e3 * min(record["times"]),
        "rounds": len(record["times"]),
        "passes": run.passes(record),
        "oracle passes": record.get("oracle_passes"),
        "fitted rows": record["fitted"],
        "fresh rows": record["fresh"],
        "gap": record.get("gap"),
        "reaches": None if ours else "yes" if reaches(record, first) else "no",
        "ours is faster by": None if ours else times_faster(first, record),
        "peak memory": memory(record),
    }


def entries(run: Run) -> list[dict[str, Any]]:
    return [entry(run, record, group[0]) for group in run.groups().values() for record in group]


def for_files(row: dict[str, Any]) -> dict[str, Any]:
    return {key: float(f"{cell:.6g}") if isinstance(cell, float) else cell for key, cell in row.items()}


def for_readers(row: dict[str, Any]) -> dict[str, Any]:
    values = {key: f"{row[key]:.5f}" for key in ("fitted rows", "fresh rows")}
    numbers = {key: significant(row[key]) for key in ("ms", "passes", "ours is faster by")}
    gap = None if row["gap"] is None else f"{row['gap']:.1e}"
    share = None if row["peak memory"] is None else f"{row['peak memory']:.2f}"
    return row | values | numbers | {"gap": gap, "peak memory": share}


def failures(run: Run) -> str:
    lines = [f"- {one['workload'].key}, {one['contestant']}: {one['error']}" for one in run.records if one["error"]]
    return "\n".join(["", "Did not run:", "", *lines, ""]) if lines else ""


def markdown(run: Run) -> str:
    machine = "\n".join(f"- {key}: {text}" for key, text in run.facts.items())
    speeds = [record["bandwidth"] / 1e9 for record in run.records]
    part = "" if run.scale == 1 else f"\n**Only {run.scale:g} of the rows: nothing below is a result.**\n"
    return f"""# W1 to W10 compared with other libraries

Made by `python benchmarks/speed.py` in {run.minutes:.0f} minutes.
{part}
{machine}
- memory read by all cores: {min(speeds):.1f} to {max(speeds):.1f} GB/s, measured before and after each workload

A pass is the time to read probabilities and labels once at that speed, the faster of the two. Peak memory is beyond the
inputs, as a share of them. A peer (another library) reaches a value if it is within {REACHES:g} of it on the fitted
rows, and exactly if it is within {EXACT:g}.

## The default call

The default call also estimates the gain on new rows. A peer is comparable if it does so too, with five folds, each
evaluated on the rows left out, and a sixth fit. The fastest peer with nearly the same value is shown.

{table(defaults(run), left=1)}

## One fit in brief

{table(brief(run), left=1)}

## One fit

{table(aims(run), left=2)}

## All libraries

Best of the rounds. "Ours is faster by" compares with one fit of metricwise over the rounds of both. A shortcut is code
for this metric only. On W7 fitted rows are counted with the probabilities instead of the labels, for all libraries;
elsewhere, and on fresh rows, with labels.

{table([for_readers(row) for row in entries(run)], left=3)}
{failures(run)}"""


# ---------------------------------------------------------------------------------------------------------------------
# picture


def style(record: dict[str, Any], first: dict[str, Any]) -> dict[str, Any]:
    if record is first:
        return {"marker": "o", "color": BLUE, "s": 75, "zorder": 5}
    if record["role"] == "ours":
        return {"marker": "o", "facecolors": "white", "edgecolors": BLUE, "s": 45, "zorder": 4}
    if record["role"] == "default":
        return {"marker": "*", "color": BLUE, "s": 110, "zorder": 5}
    if record["role"] == "safe":
        return {"marker": "^", "color": ORANGE, "s": 50, "zorder": 3}
    if record["role"] == "shortcut":
        return {"marker": "D", "facecolors": "none", "edgecolors": GREEN, "s": 40, "zorder": 3}
    if reaches(record, first):
        return {"marker": "s", "color": ORANGE, "s": 50, "zorder": 3}
    return {"marker": "s", "facecolors": "none", "edgecolors": GREY, "s": 40, "zorder": 2}


def draw_group(axes: Any, height: int, group: list[dict[str, Any]]) -> None:
    first = group[0]
    if first["size"] >= CACHED:
        read = 1e3 * first["size"] / first["bandwidth"]
        axes.plot([read, read], [height - 0.3, height + 0.3], color="black", linewidth=1.5, zorder=1)
    for record in group:
        axes.scatter(1e3 * min(record["times"]), height, **style(record, first))
    rival = rivals(first, group)[0]
    if rival is not None:
        mine, theirs = 1e3 * min(first["times"]), 1e3 * min(rival["times"])
        axes.plot([mine, theirs], [height, height], color=ORANGE, linewidth=1, zorder=1)
        words = f"{significant(times_faster(first, rival), 2)}×"
        axes.annotate(words, ((mine * theirs) ** 0.5, height), (0, 5), textcoords="offset points", ha="center")


def legend(figure: Any, axes: Any) -> None:
    handles = [
        axes.scatter([], [], marker="*", color=BLUE, s=110, label="metricwise, default call"),
        axes.scatter([], [], marker="o", color=BLUE, s=75, label="metricwise, one fit"),
        axes.scatter([], [], marker="o", facecolors="white", edgecolors=BLUE, s=45, label="its other solvers"),
        axes.scatter([], [], marker="s", color=ORANGE, s=50, label="peer that reaches the value"),
        axes.scatter([], [], marker="s", facecolors="none", edgecolors=GREY, s=40, label="peer that does not"),
        axes.scatter([], [], marker="^", color=ORANGE, s=50, label="peer with folds of its own"),
        axes.scatter([], [], marker="D", facecolors="none", edgecolors=GREEN, s=40, label="shortcut by hand"),
        axes.plot([], [], color="black", linewidth=1.5, label="reading the data once")[0],
    ]
    figure.legend(handles=handles, loc="outside lower center", ncol=3, frameon=False)


def picture(run: Run) -> Any:
    from matplotlib.figure import Figure

    groups = run.groups()
    figure = Figure(figsize=(10, 1.6 + 0.55 * len(groups)), layout="constrained")
    axes = figure.subplots()
    for height, group in enumerate(groups.values()):
        draw_group(axes, height, group)
    names = [f"{key}  {group[0]['workload'].title}" for key, group in groups.items()]
    axes.set_yticks(range(len(groups)), names)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xlabel("milliseconds, best of the rounds")
    axes.grid(axis="x", color="#DDDDDD", zorder=0)
    axes.set_axisbelow(True)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.tick_params(axis="y", length=0)
    legend(figure, axes)
    return figure


def write(run: Run, folder: Path) -> None:
    write_csv(folder / "speed.csv", [for_files(row) for row in entries(run)])
    write_text(folder / "speed.md", markdown(run))
    write_figure(folder / "speed.png", picture(run))


def redraw(folder: Path) -> None:
    """Draw the figure from the table of an earlier run."""
    records = []
    with (folder / "speed.csv").open() as file:
        for row in csv.DictReader(file):
            seconds, passes = float(row["ms"]) / 1e3, float(row["passes"] or 0)
            measured = {"size": 1e9 if passes else 0, "bandwidth": 1e9 * passes / seconds, "times": [seconds]}
            known = {"workload": find(row["workload"]), "fitted": float(row["fitted rows"]), "error": None}
            records.append({"contestant": row["contestant"], "role": row["role"], **measured, **known})
    write_figure(folder / "speed.png", picture(Run({}, 1.0, records, 0.0)))


if __name__ == "__main__":
    redraw(Path(__file__).parent)
