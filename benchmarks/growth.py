"""Scaling of the time with rows, classes, outputs, sensitive groups and constraints, for fitting and for predicting.

    python benchmarks/growth.py                     writes growth.csv, growth.md and growth.png beside it
    python benchmarks/growth.py --scale 0.01        a hundredth of the largest sizes; writes nothing
    python benchmarks/growth.py --output folder

Each point is the best of several calls in one process after a warm-up. A slope is that of log time over log size,
fitted to the larger half of the sizes: 1 is linear. Fitting counts labels and fits one recipe, without
cross-validation; series named "default" are of the default call, with its resamples, estimates and, under constraints,
promises for new rows.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from machine import facts
from tables import significant, table, write_csv, write_figure, write_text
from workloads import draw_classes, multilabel, softmax

import metricwise as mw

HERE = Path(__file__).parent
COLORS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7")  # Okabe and Ito's
MARKERS = ("o", "s", "D", "^")
LEAST_SECONDS, MOST_CALLS = 0.3, 20

Prepared = Callable[[], Any]

MAX_CLASSES_OF_FULL_SEARCH = 250  # beyond, a step with all classes is algebra on K x K matrices, and takes seconds


@dataclass(frozen=True)
class Series:
    """One line of a panel.

    Parameters
    ----------
    panel, name : str
    sizes : tuple of int
    prepare : callable
        Size to what is timed.
    aim : float, optional
        Largest slope that is as stated.
    """

    panel: str
    name: str
    sizes: tuple[int, ...]
    prepare: Callable[[int], Prepared]
    aim: float | None = None


# ---------------------------------------------------------------------------------------------------------------------
# what is timed


def some_classes(rows: int, classes: int, outputs: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Calibrated probabilities whose priors decrease by a factor of seven, for any number of classes."""
    rng = np.random.default_rng(0)
    shape = (rows, classes) if outputs is None else (rows, outputs, classes)
    proba = softmax(2.75 * rng.standard_normal(shape) - np.linspace(0, 2, classes))
    return proba, draw_classes(rng, proba)


def some_labels(rows: int, outputs: int) -> tuple[np.ndarray, np.ndarray]:
    return multilabel(np.random.default_rng(0), rows, outputs)


def optimize(
    proba: np.ndarray, y: np.ndarray, metric: Any, average: str | None = None, default: bool = False, **options: Any
) -> Any:
    """One fit by labels, or the default call."""
    if proba.ndim > y.ndim:  # few rows do not show all of many classes
        codes = np.arange(proba.shape[-1])
        options["classes"] = codes if y.ndim == 1 else [codes] * y.shape[1]
    if not default:
        options["strategy"] = mw.Strategy(confusion="labels", recalibrate=False)
    return mw.optimize(proba, y, metric, average=average, **options)


def fitting(
    metric: str,
    data: Callable[[int], tuple[np.ndarray, np.ndarray]],
    average: str | None = None,
    default: bool = False,
) -> Any:
    def prepare(size: int) -> Prepared:
        proba, y = data(size)
        return lambda: optimize(proba, y, metric, average, default)

    return prepare


def with_groups(constraint: str, rows: int) -> Any:
    """The default call for two classes with a constraint on sensitive groups of equal size."""

    def prepare(n_groups: int) -> Prepared:
        proba, y = binary(rows)
        groups = np.arange(rows) % n_groups
        options = {"subject_to": constraint, "sensitive_features": groups}
        return lambda: optimize(proba, y, "accuracy", default=True, **options)

    return prepare


def with_floors(rows: int, n_classes: int) -> Any:
    """Accuracy of many classes, by mixtures, with a floor of the recall of some, slightly above that of argmax."""

    def prepare(n_floors: int) -> Prepared:
        proba, y = some_classes(rows, n_classes)
        argmax = proba.argmax(axis=1)
        recalls = [np.mean(argmax[y == label] == label) for label in range(n_floors)]
        floors = [f"recall[{label}] >= {recall + 0.02:.4f}" for label, recall in enumerate(recalls)]
        options = {"subject_to": floors, "confidence": None, "strategy": mw.Strategy(randomized=True)}
        return lambda: optimize(proba, y, "accuracy", default=True, **options)

    return prepare


def random_cost(classes: int) -> Any:
    """A metric whose loss has no structure to exploit."""
    return mw.metrics.Linear(-np.random.default_rng(1).random((classes, classes)))


def predicting(full: bool, data: Callable[[int], tuple[np.ndarray, np.ndarray]]) -> Any:
    """Prediction with a full loss, or with a diagonal-plus-offset loss."""

    def prepare(size: int) -> Prepared:
        proba, y = data(size)
        metric = random_cost(proba.shape[-1]) if full else "micro_f1"
        few = slice(0, 200)  # the rule is not the point
        rule = optimize(proba[few], y[few], metric, "micro" if proba.ndim == 3 else None).rule
        return lambda: rule.predict(proba)

    return prepare


def binary(rows: int) -> tuple[np.ndarray, np.ndarray]:
    proba, y = some_labels(rows, 1)
    return proba[:, 0], y[:, 0]


def sizes_up_to(most: int, first: int, per_decade: int = 2) -> tuple[int, ...]:
    number = round(np.log10(most / first) * per_decade) + 1
    return tuple(dict.fromkeys(int(size) for size in np.geomspace(first, most, max(number, 3)).round()))


def all_series(scale: float) -> list[Series]:
    rows = sizes_up_to(max(100_000, int(10_000_000 * scale)), 1_000)
    classes = sizes_up_to(max(20, int(1_000 * min(1.0, 10 * scale))), 2, 3)
    outputs = sizes_up_to(max(100, int(10_000 * min(1.0, 10 * scale))), 1)
    groups = sizes_up_to(max(4, int(40 * min(1.0, 10 * scale))), 2, 4)
    floors = sizes_up_to(max(2, int(16 * min(1.0, 10 * scale))), 1, 4)
    return fits(rows, classes, outputs) + promises(groups, floors) + predictions(classes, outputs)


def fits(rows: tuple[int, ...], classes: tuple[int, ...], outputs: tuple[int, ...]) -> list[Series]:
    fewer = tuple(k for k in classes if k <= MAX_CLASSES_OF_FULL_SEARCH)
    return [
        Series("rows N", "micro-F1, K=4", rows, fitting("micro_f1", lambda n: some_classes(n, 4)), 1.1),
        Series("rows N", "macro-F1, K=4", rows, fitting("macro_f1", lambda n: some_classes(n, 4)), 1.1),
        Series("rows N", "binary F1", rows, fitting("f1", binary), 1.1),
        Series(
            "rows N", "macro-F1, K=4, default", rows, fitting("macro_f1", lambda n: some_classes(n, 4), None, True), 1.1
        ),
        Series("classes K", "micro-F1, N=10,000", classes, fitting("micro_f1", lambda k: some_classes(10_000, k))),
        Series("classes K", "macro-F1, N=10,000", fewer, fitting("macro_f1", lambda k: some_classes(10_000, k))),
        Series(
            "classes K",
            "macro-F1, N=10,000, default",
            classes,
            fitting("macro_f1", lambda k: some_classes(10_000, k), None, True),
        ),
        Series("outputs M", "F1 micro, N=2,000", outputs, fitting("f1", lambda m: some_labels(2_000, m), "micro"), 1.1),
        Series("outputs M", "F1 macro, N=2,000", outputs, fitting("f1", lambda m: some_labels(2_000, m), "macro"), 1.1),
    ]


def promises(groups: tuple[int, ...], floors: tuple[int, ...]) -> list[Series]:
    parity, recalls = "demographic_parity <= 0.1", "recall >= 0.5 in every group"
    return [
        Series("groups G", "demographic parity, N=20,000, default", groups, with_groups(parity, 20_000)),
        Series("groups G", "recall in every group, N=20,000, default", groups, with_groups(recalls, 20_000)),
        Series("constraints", "floors of recall, K=20, N=20,000, default", floors, with_floors(20_000, 20)),
    ]


def predictions(classes: tuple[int, ...], outputs: tuple[int, ...]) -> list[Series]:
    return [
        Series(
            "predict, classes K",
            "full loss, N=2,000",
            classes,
            predicting(True, lambda k: some_classes(2_000, k)),
            2.1,
        ),
        Series(
            "predict, classes K",
            "diagonal plus offset, N=2,000",
            classes,
            predicting(False, lambda k: some_classes(2_000, k)),
            1.1,
        ),
        Series(
            "predict, outputs M",
            "full loss, N=200, K=10",
            outputs,
            predicting(True, lambda m: some_classes(200, 10, m)),
            1.1,
        ),
        Series(
            "predict, outputs M",
            "diagonal plus offset, N=200, K=10",
            outputs,
            predicting(False, lambda m: some_classes(200, 10, m)),
            1.1,
        ),
    ]


# ---------------------------------------------------------------------------------------------------------------------
# measuring


def best_seconds(call: Prepared) -> float:
    """Return the best of the calls that fit into a time limit, of at least two; a short first call is the warm-up."""
    times: list[float] = []
    while len(times) < 2 or (sum(times) < LEAST_SECONDS and len(times) < MOST_CALLS):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def slope(points: list[tuple[int, float]]) -> float:
    large = np.log(points[len(points) // 2 :])
    return float(np.polyfit(large[:, 0], large[:, 1], 1)[0])


def measure(series: Series) -> list[tuple[int, float]]:
    points = []
    for size in series.sizes:
        points.append((size, best_seconds(series.prepare(size))))
        print(f"{series.panel}, {series.name}: {size:,} in {1e3 * points[-1][1]:.3g} ms", flush=True)
    return points


# ---------------------------------------------------------------------------------------------------------------------
# reporting

Found = list[tuple[Series, list[tuple[int, float]]]]


def csv_rows(found: Found) -> Iterator[dict[str, Any]]:
    for series, points in found:
        for size, seconds in points:
            yield {"panel": series.panel, "series": series.name, "size": size, "ms": significant(1e3 * seconds, 4)}


def slope_row(series: Series, points: list[tuple[int, float]]) -> dict[str, Any]:
    found = slope(points)
    return {
        "grows": series.panel,
        "series": series.name,
        "sizes": f"{points[0][0]:,} to {points[-1][0]:,}",
        "smallest, ms": significant(1e3 * points[0][1]),
        "largest, ms": significant(1e3 * points[-1][1]),
        "slope": f"{found:.2f}",
        "aim": None if series.aim is None else f"≤ {series.aim:g}: {'yes' if found <= series.aim else '**no**'}",
    }


def markdown(found: Found, scale: float) -> str:
    machine = facts()
    part = "" if scale == 1 else f"\n**Only up to {scale:g} of the sizes: nothing below is a result.**\n"
    return f"""# Growth

Made by `python benchmarks/growth.py`. {machine["processor"]}, {machine["cores"]} cores; metricwise
{machine["metricwise"]}.
{part}
The slope is that of log time over log size in the larger half of the sizes: 1 is linear, 2 quadratic.

{table([slope_row(*one) for one in found], left=2)}
"""


def panel(axes: Any, title: str, lines: Found) -> None:
    for (series, points), color, marker in zip(lines, COLORS, MARKERS, strict=False):
        sizes, seconds = zip(*points, strict=True)
        label = f"{series.name}: slope {slope(points):.2f}"
        axes.loglog(sizes, [1e3 * one for one in seconds], marker=marker, color=color, markersize=4, label=label)
    axes.set_xlabel(title)
    axes.set_ylabel("milliseconds")
    axes.grid(color="#DDDDDD")
    axes.legend(frameon=False, fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)


def picture(found: Found) -> Any:
    from matplotlib.figure import Figure

    titles = list(dict.fromkeys(series.panel for series, _ in found))
    figure = Figure(figsize=(13, 11), layout="constrained")
    grid = figure.subplots(3, 3).ravel()
    for axes, title in zip(grid, titles, strict=False):
        panel(axes, title, [one for one in found if one[0].panel == title])
    for axes in grid[len(titles) :]:
        axes.set_visible(False)
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", type=float, default=1.0, help="share of the largest sizes")
    parser.add_argument("--output", type=Path, help="folder; without it only a full run writes, beside this file")
    given = parser.parse_args()
    found = [(series, measure(series)) for series in all_series(given.scale)]
    output = given.output or (HERE if given.scale == 1 else None)
    if output is None:
        print(markdown(found, given.scale))
        return
    write_csv(output / "growth.csv", list(csv_rows(found)))
    write_text(output / "growth.md", markdown(found, given.scale))
    write_figure(output / "growth.png", picture(found))


if __name__ == "__main__":
    main()
