"""Rules by segment beside one rule for all rows and beside a rule fitted to the rows of each segment.

    python -m benchmarks.segments                  writes segments.csv and segments.md beside it
    python -m benchmarks.segments --seeds 2        a minute's worth, writes nothing
    python -m benchmarks.segments --only slopes    worlds by a part of their name; writes nothing
    python -m benchmarks.segments --tables         segments.md alone, from segments.csv

A model gives the same logits z in all segments. In segment s the truth is softmax(a_s (z - m) + c_s |z - m| + m + b_s),
m the mean of z: base rates (b_s), slopes (a_s) and bends (c_s) may differ, in all segments or in a few, or not at all
(exchangeable). No temperature and bias can undo a bend. Rules are fitted to the rows of all segments and valued on
fresh rows of the same segments, all together. Segments of less than two classes have argmax as their separate rule.

The third column of differences is to the better of the two others in the same cell. A cell counts as worse if its mean
difference is below -0.01 in a one-sided t-test over seeds, at 5 % after Holm's correction over all cells.
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import ttest_1samp
from sklearn.metrics import f1_score

import metricwise as mw

from .generalisation.statistics import holm
from .machine import facts
from .tables import table, write_csv, write_text

HERE = Path(__file__).parent
SEEDS = 20
SEGMENTS = {30: 30, 100: 15, 300: 8, 1_000: 5, 3_000: 4}  # by rows of a segment
NEW_ROWS = 40_000
MARGIN, LEVEL = 0.01, 0.05
BASE_SD, SLOPE_SD, BEND_SD, OUTLIER, OUTLIERS = 0.8, 0.4, 0.4, 2.0, 0.2
WORLDS = {  # standard deviations of base rates, slopes and bends, and the share of segments that differ
    "exchangeable": (0.0, 0.0, 0.0, 0.0),
    "base rates": (BASE_SD, 0.0, 0.0, 1.0),
    "slopes": (0.0, SLOPE_SD, 0.0, 1.0),
    "both": (BASE_SD, SLOPE_SD, 0.0, 1.0),
    "few differ": (OUTLIER, 0.0, 0.0, OUTLIERS),
    "bends": (0.0, 0.0, BEND_SD, 1.0),
}
METRICS = {"f1": "binary", "macro_f1": "macro"}  # with scikit-learn's average
MEANS = {"f1": np.array([0.0, -3.0]), "macro_f1": np.array([1.0, 0.0, -0.5])}
SPREAD = 1.5
OURS, ONE, SEPARATE = "by segment", "one rule", "separate rules"

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]


class Segments(NamedTuple):
    """How the truth of S segments differs from the model: slopes and bends (S,), and base rates (S, K)."""

    slope: FloatArray
    bend: FloatArray
    base: FloatArray


def draw_segments(world: str, n_segments: int, n_classes: int, rng: np.random.Generator) -> Segments:
    base_sd, slope_sd, bend_sd, share = WORLDS[world]
    differs = np.arange(n_segments) < np.ceil(share * n_segments)
    base = rng.normal(0, base_sd, (n_segments, n_classes)) * differs[:, None]
    slope = np.exp(rng.normal(0, slope_sd, n_segments) * differs)
    bend = rng.normal(0, bend_sd, n_segments) * differs if bend_sd else np.zeros(n_segments)
    return Segments(slope, bend, base - base.mean(axis=1, keepdims=True) if n_classes > 2 else base * [0, 1])


def draw_rows(
    segments: Segments, n_rows: int, mean: FloatArray, rng: np.random.Generator
) -> tuple[FloatArray, IntArray, IntArray]:
    """Return probabilities, labels and segments of so many rows of each segment."""
    segment = np.repeat(np.arange(len(segments.slope)), n_rows)
    noise = rng.normal(0, SPREAD, (len(segment), len(mean)))
    if len(mean) == 2:
        noise[:, 0] = 0.0
    moved = segments.slope[segment, None] * noise + segments.bend[segment, None] * np.abs(noise)
    truth = softmax(moved + mean + segments.base[segment])
    y = (rng.random((len(segment), 1)) > truth.cumsum(axis=1)).sum(axis=1)
    return softmax(noise + mean), np.minimum(y, len(mean) - 1), segment


def softmax(z: FloatArray) -> FloatArray:
    powers = np.exp(z - z.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def decide_separately(
    train: tuple[FloatArray, IntArray, IntArray], proba: FloatArray, segment: IntArray, metric: str
) -> IntArray:
    """Return the decisions of a rule fitted to the rows of each segment."""
    out = proba.argmax(axis=1)
    for s in np.unique(segment):
        p, y = (values[train[2] == s] for values in train[:2])
        if len(np.unique(y)) < 2:
            continue
        rule = mw.optimize(p, y, metric, classes=np.arange(p.shape[1])).rule
        out[segment == s] = rule.predict(proba[segment == s])
    return np.asarray(out)


def run(metric: str, world: str, n_rows: int, n_segments: int, seed: int) -> dict[str, Any]:
    """Return the values of the three ways in one draw of a world, and the time of ours."""
    mean = MEANS[metric]
    rng = np.random.default_rng([seed, n_rows, n_segments, list(WORLDS).index(world), len(mean)])
    segments = draw_segments(world, n_segments, len(mean), rng)
    p, y, segment = draw_rows(segments, n_rows, mean, rng)
    new_p, new_y, new_segment = draw_rows(segments, NEW_ROWS // n_segments, mean, rng)
    begun = time.process_time()
    solution = mw.optimize(p, y, metric, segments=segment, classes=np.arange(len(mean)))
    seconds = time.process_time() - begun
    one = mw.optimize(p, y, metric, classes=np.arange(len(mean))).rule
    decided = {
        OURS: solution.rule.predict(new_p, segments=new_segment),
        ONE: one.predict(new_p),
        SEPARATE: decide_separately((p, y, segment), new_p, new_segment, metric),
    }
    values = {who: f1_score(new_y, codes, average=METRICS[metric]) for who, codes in decided.items()}
    by_segment = isinstance(solution.rule, mw.SegmentedRule)
    return {
        "metric": metric,
        "world": world,
        "rows": n_rows,
        "segments": n_segments,
        "seed": seed,
        **{who: round(float(value), 5) for who, value in values.items()},
        "own": int(by_segment),
        "seconds": round(seconds, 3),
    }


def cells(only: str) -> list[tuple[str, str, int, int]]:
    every = [(metric, world, rows, n) for metric in METRICS for world in WORLDS for rows, n in SEGMENTS.items()]
    return [cell for cell in every if only in cell[1]]


# ---------------------------------------------------------------------------------------------------------------------
# tables


def summarise(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a row for each cell: means, differences and the adjusted p-value of being worse by the margin."""
    out, p_values = [], []
    keys = dict.fromkeys(tuple(row[key] for key in ("metric", "world", "rows", "segments")) for row in rows)
    for key in keys:
        some = [row for row in rows if tuple(row[name] for name in ("metric", "world", "rows", "segments")) == key]
        values = {who: np.array([float(row[who]) for row in some]) for who in (OURS, ONE, SEPARATE)}
        better = max((ONE, SEPARATE), key=lambda who: float(values[who].mean()))
        difference = values[OURS] - values[better]
        p_values.append(worse_by_margin(difference))
        out.append(
            {
                **dict(zip(("metric", "world", "rows a segment", "segments"), key, strict=True)),
                **{who: f"{values[who].mean():.4f}" for who in (OURS, ONE, SEPARATE)},
                "to the better": f"{difference.mean():+.4f}",
                "+-": f"{difference.std(ddof=1) / np.sqrt(len(some)) if len(some) > 1 else 0.0:.4f}",
                "own rules": f"{np.mean([int(row['own']) for row in some]):.0%}",
                "s": f"{np.mean([float(row['seconds']) for row in some]):.1f}",
            }
        )
    for row, p in zip(out, holm(p_values), strict=True):
        row["p (Holm)"] = f"{p:.2g}"
    return out


def worse_by_margin(difference: FloatArray) -> float:
    """Return the p-value of the test that a mean difference is not below minus the margin."""
    if len(difference) < 2 or np.ptp(difference) == 0:
        return 0.0 if difference.mean() < -MARGIN else 1.0
    return float(ttest_1samp(difference, -MARGIN, alternative="less").pvalue)


def write_page(rows: list[dict[str, Any]]) -> None:
    parts, machine = summarise(rows), facts()
    worse = [row for row in parts if float(row["p (Holm)"]) < LEVEL]
    lines = []
    for metric in METRICS:
        some = [row for row in rows if row["metric"] == metric]
        for other in (ONE, SEPARATE):
            differences = np.array([float(row[OURS]) - float(row[other]) for row in some])
            lines.append(f"- {metric}, mean difference to {other}: {differences.mean():+.4f}")
    n_draws = 1 + max(int(row["seed"]) for row in rows)
    lines.append(
        f"- cells more than {MARGIN:g} below the better of the two (Holm, {LEVEL:.0%}): {len(worse)} of {len(parts)}"
    )
    about = f"Values on {NEW_ROWS:,} fresh rows, means over {n_draws} draws; see `segments.py`."
    computer = f"{machine['processor']}, {machine['cores']} cores."
    text = "\n\n".join(["# Rules by segment", about, "\n".join(lines), table(parts, left=2), computer]) + "\n"
    write_text(HERE / "segments.md", text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--only", default="")
    parser.add_argument("--tables", action="store_true")
    arguments = parser.parse_args()
    if arguments.tables:
        with (HERE / "segments.csv").open() as file:
            write_page(list(csv.DictReader(file)))
        return
    warnings.simplefilter("ignore")
    rows = []
    for cell in cells(arguments.only):
        rows += [run(*cell, seed) for seed in range(arguments.seeds)]
        print(summarise(rows)[-1], flush=True)
    if arguments.seeds == SEEDS and not arguments.only:
        write_csv(HERE / "segments.csv", rows)
        write_page(rows)


if __name__ == "__main__":
    main()
