"""Cells of all draws, the checks that they must pass, and the page."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..tables import significant, table
from .problems import CONFIDENCE, PROBLEMS
from .ways import MAPIE, OURS

OFTEN_ENOUGH = 0.2  # a promise that is made less often is not checked
LEAST_DRAWS = 4  # of a setting of MAPIE that is compared
DELTA = 1 - CONFIDENCE
Line = dict[str, Any]


@dataclass(frozen=True)
class Cell:
    """What one way did in all draws of a problem, a constraint and a number of rows."""

    problem: str
    constraint: str
    rows: int
    way: str
    sums: dict[str, float]

    @property
    def draws(self) -> float:
        return self.sums["draws"]

    @property
    def given(self) -> float:
        return self.sums["given"] / self.draws

    @property
    def broken(self) -> float:
        return self.sums["broken"] / self.draws

    @property
    def aim(self) -> float:
        return self.sums["aim"] / self.draws

    @property
    def ms(self) -> float:
        return self.sums["ms"] / self.draws

    def ahead(self, kind: str) -> tuple[float, float]:
        """Return the mean by which a way of ours is ahead of this one on the same draws, and its standard error."""
        mean = self.sums[f"{kind} ahead"] / self.draws
        variance = max(self.sums[f"{kind} squared"] / self.draws - mean**2, 0.0)
        return mean, float(np.sqrt(variance / self.draws))

    @property
    def limit(self) -> float:
        return DELTA + 2 * float(np.sqrt(DELTA * CONFIDENCE / self.draws))

    @property
    def is_checked(self) -> bool:
        return self.way in OURS and self.given >= OFTEN_ENOUGH

    @property
    def promise(self) -> str:
        """Given, broken of all draws, and kept of the promised ones."""
        kept = f"{1 - self.broken / self.given:.1%}" if self.given else "none"
        return f"{self.given:.0%} / {self.broken:.1%} / {kept}"


def cells(lines: Iterable[Line]) -> list[Cell]:
    """Return the cells of stored blocks, in the order of the problems."""
    sums: dict[tuple[str, str, int, str], dict[str, float]] = {}
    for line in lines:
        total = sums.setdefault((line["problem"], line["constraint"], line["rows"], line["way"]), {})
        for key, number in line.items():
            if isinstance(number, (int, float)) and key not in ("rows", "first draw"):
                total[key] = total.get(key, 0) + number
    made = [Cell(*key, sums=total) for key, total in sums.items()]
    return sorted(made, key=lambda cell: (list(PROBLEMS).index(cell.problem), cell.constraint, cell.rows))


def broken_too_often(made: list[Cell]) -> list[Cell]:
    return [cell for cell in made if cell.is_checked and cell.broken > cell.limit]


def best_of_mapie(group: dict[str, Cell], kind: str = OURS[0]) -> Cell | None:
    """Return the setting that is the best beside a way of ours, on the draws of both.

    Without unlabelled rows, settings that use them are left out; so are settings with very few draws.
    """
    rivals = [
        cell
        for way, cell in group.items()
        if way in MAPIE and cell.draws >= LEAST_DRAWS and (kind == OURS[0] or "percentiles" not in MAPIE[way])
    ]
    return min(rivals, key=lambda cell: cell.ahead(kind)[0], default=None)


def groups(made: list[Cell]) -> list[dict[str, Cell]]:
    """Return the ways of each problem, constraint and number of rows."""
    grouped: dict[tuple[str, str, int], dict[str, Cell]] = {}
    for cell in made:
        grouped.setdefault((cell.problem, cell.constraint, cell.rows), {})[cell.way] = cell
    return list(grouped.values())


def behind(made: list[Cell]) -> list[tuple[str, Cell]]:
    """Return the best settings of MAPIE that are better than ours by more than two standard errors."""
    ahead = []
    for group in groups(made):
        for kind in OURS:
            rival = best_of_mapie(group, kind)
            if rival and rival.ahead(kind)[0] + 2 * rival.ahead(kind)[1] < 0:
                ahead.append((kind, rival))
    return ahead


# ---------------------------------------------------------------------------------------------------------------------
# the page


HEAD = """# Guaranteed constraints

Made by `python -m benchmarks.guarantees`; sums of blocks of draws are in `guarantees.csv`. {processor}, {cores}
cores, Python {Python}, NumPy {numpy}, mapie {mapie}; metricwise {metricwise}.
"""


def page(lines: list[Line], facts: dict[str, str]) -> str:
    made = cells(lines)
    return "\n".join(
        [HEAD.format(**facts), checks(made), *(problem_text(name, made) for name in PROBLEMS), settings(made)]
    )


def checks(made: list[Cell]) -> str:
    checked = [cell for cell in made if cell.is_checked]
    worst = max(checked, key=lambda cell: cell.broken, default=None)
    above, rivals = broken_too_often(made), behind(made)
    compared = sum(best_of_mapie(group) is not None for group in groups(made)) * len(OURS)
    return f"""## Checks

- Broken promises, of all draws, at most {DELTA:.0%} and two standard errors, wherever a rule is given in at least
  {OFTEN_ENOUGH:.0%} of the draws: {len(checked) - len(above)} of {len(checked)} cells{named(above)}. The highest share
  is {f"{worst.broken:.1%} of {worst.draws:,.0f} draws" if worst else "none"}.
- The metric that is maximised, in the mean over all draws (0 without a rule), is not below that of the best setting of
  MAPIE by more than two standard errors of the difference on the same draws: {compared - len(rivals)} of {compared}
  cells{named([cell for _, cell in rivals])}.
"""


def named(some: list[Cell]) -> str:
    cases = [f"{cell.problem}, {cell.constraint}, {cell.rows:,} rows, {cell.way}" for cell in some]
    return f" (not: {'; '.join(cases)})" if cases else ""


def problem_text(name: str, made: list[Cell]) -> str:
    chosen = groups([cell for cell in made if cell.problem == name])
    if not chosen:
        return ""
    promises = [promise_line(group) for group in chosen]
    aims = [aim_line(group) for group in chosen]
    return f"""## World: {name}

Given, of all draws / broken, of all draws / kept, of the draws in which a rule was given:

{table(promises, left=1)}

Mean {PROBLEMS[name].aim} (0 without a rule), and milliseconds:

{table(aims, left=1)}
"""


def promise_line(group: dict[str, Cell]) -> Line:
    first, rival, today = group[OURS[0]], best_of_mapie(group), group.get("about")
    return {
        "constraint": first.constraint,
        "rows": f"{first.rows:,}",
        "draws": f"{first.draws:,.0f}",
        **{kind: group[kind].promise for kind in OURS},
        "about": today and today.promise,
        "MAPIE, best": rival and rival.promise,
    }


def aim_line(group: dict[str, Cell]) -> Line:
    first, rival, today = group[OURS[0]], best_of_mapie(group), group.get("about")
    line: Line = {"constraint": first.constraint, "rows": f"{first.rows:,}"}
    line |= {kind: f"{group[kind].aim:.4f}" for kind in OURS}
    line |= {"about": today and f"{today.aim:.4f}", "MAPIE, best": rival and f"{rival.aim:.4f}"}
    line |= {"setting": rival and rival.way, "its draws": rival and f"{rival.draws:,.0f}"}
    line["ahead of it"] = rival and "{:+.4f} ± {:.4f}".format(*rival.ahead(OURS[0]))
    line |= {"ms": significant(group[OURS[0]].ms), "ms, MAPIE": significant(rival.ms) if rival else None}
    return line | {"ms, about": significant(today.ms) if today else None}


def settings(made: list[Cell]) -> str:
    """Return the table of all settings of MAPIE."""
    lines = [
        {"world": first.problem, "constraint": first.constraint, "rows": f"{first.rows:,}"}
        | {way: f"{group[way].given:.0%}, {group[way].aim:.3f}" if way in group else None for way in MAPIE}
        for group in groups(made)
        for first in [group[OURS[0]]]
        if best_of_mapie(group)
    ]
    return f"""## All settings of MAPIE

Given, of all draws, and the mean of the maximised metric:

{table(lines, left=2) if lines else ""}
"""
