"""Stage three: tables and the page, from the measurements alone.

Everything is first averaged over the splits of a set. Sets that are made of one table of data (car and car_good) are
averaged to one value before an interval is computed, as they are not independent.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..generalisation.report import renew
from ..generalisation.statistics import p_below_zero
from ..machine import NOT_INSTALLED, facts, installed
from ..tables import table, write_csv, write_text
from .choices import CELL, chosen, stopped
from .configurations import WEIGHTED
from .values import CRITERIA

__all__ = ["write", "write_times"]

Line = dict[str, Any]
SAME_TABLE = {
    "digits_eight": "digits",
    "car_good": "car",
    "nursery_rare": "nursery",
    "phishing_suspicious": "phishing",
}
RECIPE_SETS = (  # on which the recipe of the rules of halves was chosen, in their first split
    *("car", "cmc", "digits_eight", "job_training", "mortgage_denied", "phishing_suspicious"),
    *("student_grade", "tumour_relapse", "vote_1992", "wiki4he"),
)
LEVEL = 0.05
SMALL = 1_000  # training rows below which a set is a small one
RIVALS = ("log_loss", "argmax")
TITLES = {"log_loss": "log loss", "argmax": "at argmax", "best": "at best"}


def write(cache: Path, folder: Path, page: Path) -> None:
    """Write measurements and tables, and renew the tables of the page."""
    folder.mkdir(parents=True, exist_ok=True)
    configurations = pd.read_csv(cache / "rules.csv").merge(
        pd.read_csv(cache / "scores.csv"), on=[*CELL, "configuration"]
    )
    rounds = pd.read_csv(cache / "stopping.csv")
    _store(configurations, folder / "configurations.csv.gz")
    _store(rounds, folder / "stopping.csv.gz")
    tables = {name: table(lines) for name, lines in summaries(configurations, rounds).items()}
    times = folder / "times.md"
    body = "\n\n".join(f"## {name}\n\n{text}" for name, text in tables.items())
    write_text(folder / "tables.md", f"# Choosing and stopping by the metric\n\n{_setting()}\n\n{body}\n")
    if times.exists():
        tables |= _sections(times.read_text())
    if page.exists():
        write_text(page, renew(page.read_text(), {name: f"{text}\n" for name, text in tables.items()}))


def write_times(times: tuple[list[Line], list[Line]], folder: Path) -> None:
    """Write the times of evaluations and of trainings, and tables of them."""
    parts = []
    for name, lines in zip(("evaluation_times", "training_times"), times, strict=True):
        write_csv(folder / f"{name}.csv", [{key: _digits(v) for key, v in line.items()} for line in lines])
        parts.append(f"## {name}\n\n{table([{key: _shown_time(key, v) for key, v in line.items()} for line in lines])}")
    write_text(folder / "times.md", f"# Times\n\n{_setting()}\n\n" + "\n\n".join(parts) + "\n")


def summaries(configurations: pd.DataFrame, rounds: pd.DataFrame) -> dict[str, list[Line]]:
    """All tables by name."""
    weighted = np.array([WEIGHTED[m][c] for m, c in configurations[["model", "configuration"]].to_numpy()])
    search, unweighted = chosen(configurations), chosen(configurations[~weighted])
    stops = stopped(rounds)
    return {
        "sets": _sets(search, rounds),
        "search_brief": _brief(search, ["model", "metric"], ("oracle",)),
        "stopping_brief": _brief(stops, ["setting", "metric"], ("none",)),
        "quality_brief": _quality_brief(configurations),
        "search": _compared(search, ["model", "metric"], ("oracle",)),
        "unweighted": _compared(unweighted, ["model"], ("oracle",)),
        "stopping": _compared(stops, ["setting", "metric"], ("none",)),
        "rounds": _rounds(rounds),
        "by_size": _by_size(search, stops),
        "by_set": _by_set(search, stops),
        "quality": _quality(configurations),
        "quality_by_rows": _quality_by_rows(configurations),
    }


# ---------------------------------------------------------------------------------------------------- differences


def _compared(choices: pd.DataFrame, keys: list[str], beside: tuple[str, ...]) -> list[Line]:
    """Held-out value by each criterion, and paired differences, by `keys` and over all of the first of them."""
    lines = []
    for first, part in choices.groupby(keys[0], sort=False):
        groups = part.groupby(keys[1], sort=False) if len(keys) > 1 else ()
        for second, cells in groups:
            lines.append({keys[0]: first, keys[1]: second} | _comparison(cells, beside))
        lines.append({keys[0]: first, **dict.fromkeys(keys[1:], "all")} | _comparison(part, beside))
    return lines


def _brief(choices: pd.DataFrame, keys: list[str], beside: tuple[str, ...]) -> list[Line]:
    """All choices, those on tables that the recipe was not chosen on, of each model or setting, and of each metric."""
    parts = [(value, part) for key in keys for value, part in choices.groupby(key, sort=False)]
    looked_at = {_table_of(name) for name in RECIPE_SETS}
    fresh = choices[~choices["set"].map(_table_of).isin(looked_at)]
    if fresh["set"].nunique() > 1:
        parts.insert(0, ("fresh sets", fresh))
    return [{"choices": name} | _comparison(part, beside) for name, part in (("all", choices), *parts)]


def _table_of(name: str) -> str:
    return SAME_TABLE.get(name, name)


def _comparison(cells: pd.DataFrame, beside: tuple[str, ...]) -> Line:
    line: Line = {"sets": cells["set"].nunique()}
    line |= {TITLES.get(name, name): f"{_of_sets(cells, name).mean():.3f}" for name in (*CRITERIA, *beside)}
    for rival in RIVALS:
        cells = cells.assign(difference=cells["best"] - cells[rival])
        line[f"best - {TITLES[rival]}"] = _interval(_of_sets(cells, "difference"))
        line[f"better, worse than {TITLES[rival]}"] = _better_and_worse(cells)
    return line


def _of_sets(cells: pd.DataFrame, column: str) -> pd.Series:
    """Mean of each set: over splits, then over metrics, models and settings."""
    other = [name for name in ("metric", "model", "setting") if name in cells]
    by_cell = cells.groupby(["set", *other])[column].mean()
    return by_cell.groupby("set").mean()


def _interval(of_sets: pd.Series) -> str:
    """Mean with its 95 % interval by Student's t over the tables of data."""
    from scipy.stats import t

    x = of_sets.groupby(of_sets.index.map(_table_of)).mean().to_numpy()
    half = t.ppf(0.975, len(x) - 1) * x.std(ddof=1) / np.sqrt(len(x))
    return f"{x.mean():+.4f} [{x.mean() - half:+.4f}, {x.mean() + half:+.4f}]"


def _better_and_worse(cells: pd.DataFrame) -> str:
    """Sets whose mean is above and below 0; in brackets those beyond chance by the corrected resampled t-test."""
    signs, beyond = np.zeros(2, int), np.zeros(2, int)
    for _, part in cells.groupby("set"):
        differences = part.groupby("split")["difference"].mean().to_numpy()
        share = float((part["n_held_out"] / part["n_train"]).iloc[0])
        for side, sign in enumerate((1, -1)):
            signs[side] += sign * differences.mean() > 1e-9
            beyond[side] += len(differences) > 1 and p_below_zero(-sign * differences, share) < LEVEL
    return f"{signs[0]} ({beyond[0]}), {signs[1]} ({beyond[1]})"


def _by_size(search: pd.DataFrame, stops: pd.DataFrame) -> list[Line]:
    sizes = search.groupby("set")["n_train"].first()
    small = set(sizes[sizes < SMALL].index)
    lines = []
    for name, choices in (("search", search), ("early stopping", stops)):
        is_small = choices["set"].isin(small)
        for size, part in (("below", choices[is_small]), ("from", choices[~is_small])):
            if part["set"].nunique() > 1:
                line = {"choice": name, "training rows": f"{size} {SMALL:,}"}
                lines.append(line | _comparison(part, ()))
    return lines


def _by_set(search: pd.DataFrame, stops: pd.DataFrame) -> list[Line]:
    lines = []
    for name in search["set"].unique():
        line: Line = {"set": name}
        for title, choices in (("search", search), ("stopping", stops)):
            part = choices[choices["set"] == name]
            for rival in RIVALS:
                line[f"{title}: best - {TITLES[rival]}"] = f"{(part['best'] - part[rival]).mean():+.4f}"
        lines.append(line)
    return lines


def _rounds(rounds: pd.DataFrame) -> list[Line]:
    names = {name: f"{name}_round" for name in CRITERIA}
    means = rounds.groupby(["setting", "metric"], sort=False)[list(names.values())].mean().round().astype(int)
    return [
        {"setting": setting, "metric": metric} | {TITLES[name]: row[column] for name, column in names.items()}
        for (setting, metric), row in means.iterrows()
    ]


def _sets(search: pd.DataFrame, rounds: pd.DataFrame) -> list[Line]:
    facts_of = search.groupby("set", sort=False)[["n_classes", "n_train", "n_held_out"]].first()
    validation = rounds.groupby("set")["n_train"].first()
    return [
        {
            "set": name,
            "classes": row["n_classes"],
            "training rows": row["n_train"],
            "held out": row["n_held_out"],
            "validation rows of early stopping": validation.get(name),
        }
        for name, row in facts_of.iterrows()
    ]


# -------------------------------------------------------------------------------------- bias, deviation, rank


def _quality(configurations: pd.DataFrame) -> list[Line]:
    lines = []
    for model, part in configurations.groupby("model", sort=False):
        for metric, rows in part.groupby("metric", sort=False):
            lines.append({"model": model, "metric": metric} | _qualities(rows))
        lines.append({"model": model, "metric": "all"} | _qualities(part))
    return lines


def _quality_brief(configurations: pd.DataFrame) -> list[Line]:
    """All configurations, those of each model, and those of each size of folds."""
    models = [{"searches": name} | _qualities(rows) for name, rows in configurations.groupby("model", sort=False)]
    sizes = [
        {"searches": f"folds of {line.pop('rows of a fold')} rows"} | line for line in _quality_by_rows(configurations)
    ]
    return [{"searches": "all"} | _qualities(configurations), *models, *sizes]


def _quality_by_rows(configurations: pd.DataFrame) -> list[Line]:
    edges = [0, 600, 1_000, 2_000, np.inf]
    lines = []
    for low, high in pairwise(edges):
        rows = configurations[configurations["n_train"].between(low, high, inclusive="left")]
        if len(rows):
            fold = rows["n_train"].to_numpy() // 3
            lines.append({"rows of a fold": f"{fold.min():,} to {fold.max():,}"} | _qualities(rows))
    return lines


def _qualities(rows: pd.DataFrame) -> Line:
    """Errors of each criterion against what it estimates, and its rank correlation with the true value."""
    estimates = {
        "at best": rows["best"] - rows["truth"],
        "at best, all rows": rows["best_pooled"] - rows["truth"],
        "at argmax": rows["argmax"] - rows["argmax_held_out"],
    }
    line: Line = {}
    for name, errors in estimates.items():
        line[f"bias {name}"] = f"{errors.mean():+.4f}"
        line[f"sd {name}"] = f"{_deviation(rows, errors):.4f}"
    for name, title in (*TITLES.items(), ("best_pooled", "at best, all rows")):
        line[f"rank {title}"] = f"{_rank_correlation(rows, name):.2f}"
    return line


def _deviation(rows: pd.DataFrame, errors: pd.Series) -> float:
    """Standard deviation of the error of one configuration over the splits, root mean square over configurations."""
    variances = errors.groupby([rows[name] for name in ("set", "model", "metric", "configuration")]).var()
    return float(np.sqrt(variances.mean()))


def _rank_correlation(rows: pd.DataFrame, criterion: str) -> float:
    """Mean of Spearman's correlation over searches; a criterion that ties all configurations ranks none: 0."""
    ranks = rows.groupby(CELL)[[criterion, "truth"]].rank()
    grouped = ranks.groupby([rows[name] for name in CELL])
    correlations = grouped.apply(lambda part: part[criterion].corr(part["truth"]) if _varies(part) else np.nan)
    varies = grouped["truth"].nunique() > 1
    return float(correlations[varies].fillna(0.0).mean())


def _varies(part: pd.DataFrame) -> bool:
    return bool((part.nunique() > 1).all())


# ---------------------------------------------------------------------------------------------------------- words


def _setting() -> str:
    in_use = facts() | {"lightgbm": installed("lightgbm")}
    lines = [{"what": key, "in this run": value} for key, value in in_use.items() if value != NOT_INSTALLED]
    return table(lines)


def _store(rows: pd.DataFrame, path: Path) -> None:
    rows.round(5).to_csv(path, index=False, compression={"method": "gzip", "mtime": 0})


def _sections(text: str) -> dict[str, str]:
    """Return the tables of a page by their headings."""
    parts = [part.split("\n\n", 1) for part in text.split("\n## ")[1:]]
    return {name.strip(): body.strip() for name, body in parts}


def _digits(value: Any) -> Any:
    return float(f"{value:.4g}") if isinstance(value, float) else value


def _shown_time(key: str, value: Any) -> str:
    if not isinstance(value, float):
        return f"{value:,}"
    return f"{value:+.0%}" if key == "added" else f"{value:.3g}"
