"""Stage three: tables, figures and the page, from the measurements alone."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from .data import FRESH
from .rules import METHODS
from .statistics import average_ranks, holm, p_below_zero

__all__ = ["read", "summary", "write"]

CELL = ["set", "model", "metric"]
LARGE = 10_000  # held-out rows from which the held-out gain stands for the truth
LEVEL = 0.05
HARM = -0.01  # a mean gain below it is a loss that a user would notice
LOSSES = ("mean below 0", f"mean below {HARM}")
EVERYWHERE = [method for method in METHODS if method != "xcolumns"]


def read(path: Path) -> pd.DataFrame:
    """Return the measurements, sorted, one row per set, model, split and metric."""
    return pd.read_csv(path).sort_values([*CELL, "split"], ignore_index=True)


def present(rows: pd.DataFrame, methods: Iterable[str] = EVERYWHERE) -> list[str]:
    return [method for method in methods if rows[method].notna().any()]


def fresh(rows: pd.DataFrame) -> pd.DataFrame:
    """Those of the sets that no constant of the automatic choice was set on."""
    return rows[rows["set"].isin(FRESH)]


def gains(rows: pd.DataFrame, methods: list[str]) -> pd.DataFrame:
    """Held-out value of each method less that of argmax."""
    return rows[methods].sub(rows["argmax"], axis=0)


# --------------------------------------------------------------------------------------------------------- tables


def cells(rows: pd.DataFrame, method: str) -> pd.DataFrame:
    """One row per cell: mean gain over the splits and one-sided p-values of a loss, corrected and not."""
    found = []
    for key, group in rows[rows[method].notna()].groupby(CELL, sort=True):
        difference = (group[method] - group["argmax"]).to_numpy()
        synthetic = str(key[0]).startswith("world")
        share = 0.0 if synthetic else float((group["n_test"] / group["n_train"]).iloc[0])
        p = [p_below_zero(difference, s) for s in (0.0, share)]
        found.append((*key, difference.mean(), *p))
    table = pd.DataFrame(found, columns=[*CELL, "gain", "p_plain", "p"])
    return table.assign(p_plain_holm=holm(table["p_plain"]), p_holm=holm(table["p"]))


def overall(rows: pd.DataFrame) -> pd.DataFrame:
    """Each method: mean gain, rank, cells below argmax, time."""
    methods = present(rows)
    gain = gains(rows, methods).mean()
    means = rows.groupby(CELL)[methods].mean()
    ranks = dict(zip(methods, average_ranks(means), strict=True))
    found = []
    for method in methods:
        each = cells(rows, method)
        below = [int((each[p] < LEVEL).sum()) for p in ("p_plain", "p_plain_holm", "p", "p_holm")]
        time = 1000 * rows[f"{method}_seconds"].median()
        found.append((method, gain[method], ranks[method], *_losses(each), *below, time))
    names = ["method", "mean gain", "average rank", *LOSSES, "t-test", "t-test, Holm", "corrected"]
    return pd.DataFrame(found, columns=[*names, "corrected, Holm", "median ms"])


def _losses(each: pd.DataFrame) -> tuple[int, int]:
    return int((each["gain"] < 0).sum()), int((each["gain"] < HARM).sum())


def by(rows: pd.DataFrame, column: str) -> pd.DataFrame:
    """Mean gain of each method by set, model or metric."""
    methods = [method for method in present(rows) if method != "argmax"]
    table = gains(rows, methods).groupby(rows[column]).mean()
    table.insert(0, "argmax value", rows.groupby(column)["argmax"].mean())
    return table.reset_index()


def against_xcolumns(rows: pd.DataFrame) -> pd.DataFrame:
    """Mean gain of the automatic choice and of xcolumns where the latter applies."""
    some = rows[rows["xcolumns"].notna()]
    gain = gains(some, ["auto", "xcolumns"])
    table = gain.groupby(some["metric"]).mean().reset_index()
    for method in ("auto", "xcolumns"):
        each = cells(some, method)
        low = each["gain"].lt(0).groupby(each["metric"]).sum()
        table[f"{method}: cells below 0"] = table["metric"].map(low)
    table.loc[len(table)] = ["all", *gain.mean(), *(int(table[c].sum()) for c in table.columns[3:])]
    return table


def coverage(rows: pd.DataFrame) -> pd.DataFrame:
    """How often the 95 % interval of the gain holds the held-out gain."""
    large = rows["n_test"] >= LARGE
    plain = rows["recipe"] == "argmax"
    parts = [
        ("a rule, large held-out part", large & ~plain),
        *((f"... {metric}", large & ~plain & (rows["metric"] == metric)) for metric in sorted(set(rows["metric"]))),
        *((f"... {model}", large & ~plain & (rows["model"] == model)) for model in sorted(set(rows["model"]))),
        ("a rule, small held-out part (interval widened by its error)", ~large & ~plain),
        ("argmax returned, large held-out part", large & plain),
        ("argmax returned, small held-out part", ~large & plain),
    ]
    found = [(name, *_covered(rows[mask], "small held-out part (" in name)) for name, mask in parts if mask.any()]
    return pd.DataFrame(found, columns=["repetitions", "n", "covered", "true gain below", "true gain above", "bias"])


def _covered(rows: pd.DataFrame, widen: bool) -> tuple[int, float, float, float, float]:
    truth = rows["auto"] - rows["argmax"]
    middle, half = (rows["gain_low"] + rows["gain_high"]) / 2, (rows["gain_high"] - rows["gain_low"]) / 2
    if widen:
        half = np.hypot(half, 1.96 * rows["gain_test_error"])
    below, above = (truth < middle - half - 1e-9).mean(), (truth > middle + half + 1e-9).mean()
    return len(rows), 1 - below - above, below, above, (rows["gain"] - truth).mean()


def recipes(rows: pd.DataFrame) -> pd.DataFrame:
    """How often each recipe was chosen, by metric."""
    table = pd.crosstab(rows["metric"], rows["recipe"], normalize="index", margins=True, margins_name="all")
    return (100 * table).round().astype(int).astype(str).add(" %").reset_index()


def tuned_and_fresh(rows: pd.DataFrame) -> pd.DataFrame:
    """The automatic choice on the sets that were looked at while its constants were set, and on the others."""
    found = []
    new = rows["set"].isin(FRESH)
    for name, part in (("looked at", rows[~new]), ("fresh", rows[new])):
        if part.empty:
            continue
        each = cells(part, "auto")
        below = [int((each[p] < LEVEL).sum()) for p in ("p_plain", "p", "p_holm")]
        _, covered, _, _, bias = _covered(part[(part["n_test"] >= LARGE) & (part["recipe"] != "argmax")], False)
        gain = (part["auto"] - part["argmax"]).mean()
        found.append((name, part["set"].nunique(), len(each), gain, *_losses(each), *below, covered, bias))
    names = ["sets", "number", "cells", "mean gain", *LOSSES, "t-test", "corrected", "corrected, Holm"]
    return pd.DataFrame(found, columns=[*names, "covered", "bias"])


def worst(rows: pd.DataFrame, n: int = 10) -> pd.DataFrame:
    """The cells where the automatic choice does worst."""
    names = {"gain": "mean gain", "p_plain": "p, t-test", "p": "p, corrected", "p_holm": "p, corrected, Holm"}
    return cells(rows, "auto").sort_values("gain", kind="stable").head(n)[[*CELL, *names]].rename(columns=names)


# ---------------------------------------------------------------------------------------------------------- words


def markdown(table: pd.DataFrame) -> str:
    """A table as Markdown; gains with sign, counts without."""
    lines = ["| " + " | ".join(map(str, table.columns)) + " |", "|" + "---|" * len(table.columns)]
    for row in table.itertuples(index=False):
        shown = [_cell(name, value) for name, value in zip(table.columns, row, strict=True)]
        lines.append("| " + " | ".join(shown) + " |")
    return "\n".join(lines) + "\n"


def _cell(name: str, value: Any) -> str:
    if not isinstance(value, float):
        return str(value)
    if np.isnan(value):
        return ""
    if name in ("average rank", "median ms"):
        return f"{value:.2f}" if name == "average rank" else f"{value:.3g}"
    plain = name.startswith(("p,", "covered", "true", "argmax value"))
    return f"{value:.3f}" if plain else f"{value:+.4f}"


def summary(rows: pd.DataFrame) -> str:
    """Everything at a glance, for the screen."""
    parts = [f"{len(rows)} repetitions of {rows.groupby(CELL).ngroups} cells, {rows['split'].nunique()} splits"]
    tables = [overall(rows), by(rows, "metric"), by(rows, "model"), coverage(rows), recipes(rows), worst(rows)]
    new = fresh(rows)
    if len(new):
        tables += [tuned_and_fresh(rows), overall(new), coverage(new)]
    parts += [table.to_string(index=False, float_format=lambda v: f"{v:.4f}") for table in tables]
    return "\n\n".join(parts) + "\n"


def setting(rows: pd.DataFrame) -> pd.DataFrame:
    """What was run, on what."""
    import scipy
    import sklearn

    import metricwise

    facts = {
        "repetitions": f"{len(rows):,}",
        "cells (set, model, metric)": rows.groupby(CELL).ngroups,
        "sets": ", ".join(sorted(set(rows["set"]))),
        "splits": f"{rows['split'].nunique()}, seeds 0 to {rows['split'].max()}",
        "versions": f"metricwise {metricwise.__version__}, NumPy {np.__version__}, SciPy {scipy.__version__}, "
        f"scikit-learn {sklearn.__version__}, Python {platform.python_version()}",
    }
    return pd.DataFrame(facts.items(), columns=["what", "in this run"])


def sets(rows: pd.DataFrame) -> pd.DataFrame:
    """Sizes of the sets, and what the methods gain on them."""
    sizes = rows.groupby("set")[["n_train", "n_test"]].first()
    return (
        by(rows, "set").merge(sizes.reset_index(), on="set").rename(columns={"n_train": "rows", "n_test": "held out"})
    )


def write(rows: pd.DataFrame, folder: Path, page: Path) -> None:
    """Write every repetition, the tables, the figures, and renew the tables of the page."""
    from . import figures

    folder.mkdir(parents=True, exist_ok=True)
    rows.round(6).to_csv(folder / "repetitions.csv.gz", index=False, compression={"method": "gzip", "mtime": 0})
    tables = {
        "setting": setting(rows),
        "overall": overall(rows),
        "metric": by(rows, "metric"),
        "model": by(rows, "model"),
        "set": sets(rows),
        "coverage": coverage(rows),
        "recipes": recipes(rows),
        "worst": worst(rows),
        "fresh": tuned_and_fresh(rows),
    }
    new = fresh(rows)
    if len(new):
        tables |= {"overall_fresh": overall(new), "coverage_fresh": coverage(new)}
    if rows["xcolumns"].notna().any():
        tables["xcolumns"] = against_xcolumns(rows)
    text = {name: markdown(table) for name, table in tables.items()}
    (folder / "tables.md").write_text("\n".join(f"## {name}\n\n{body}" for name, body in text.items()))
    figures.draw(rows, page.parent / "_static")
    if page.exists():
        page.write_text(renew(page.read_text(), text))


def renew(page: str, tables: dict[str, str]) -> str:
    """Replace what stands between `<!-- table: name -->` and `<!-- end -->`."""
    for name, body in tables.items():
        start = f"<!-- table: {name} -->"
        if start in page:
            before, rest = page.split(start, 1)
            after = rest.split("<!-- end -->", 1)[1]
            page = f"{before}{start}\n\n{body}\n<!-- end -->{after}"
    return page
