"""Tables and figure of the UCI experiment in the paper's coding, compared with its values by z-scores."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..protocol import Row
from .figures import COLOURS, new_figure, save
from .intervals import holds_zero, interval_text, paired_interval
from .pages import markdown_table, picture
from .paper_numbers import SETS, paper_deviation, paper_ratio, paper_value
from .uci import AVERAGES, METRICS, MODELS, TEST_OVER_TRAIN, Results

__all__ = ["Comparison", "comparisons", "report"]

# The paper's algorithms, and where their values are: model and variant.
_ALGORITHMS = {
    "LogReg": ("LogReg", "base"),
    "KNN": ("KNN", "base"),
    "RF": ("RF", "base"),
    "DT": ("DT", "base"),
    "C-LogReg": ("LogReg", "half"),
    "C-DT": ("DT", "half"),
}
_FAR = 3.0  # of the paper's standard deviations
_CONSISTENT = ("LogReg", "DT")  # models that the paper has consistent classifiers of


@dataclass(frozen=True)
class Comparison:
    """One value of the paper's appendix and ours."""

    metric: str
    average: str
    name: str
    algorithm: str
    mean: float
    deviation: float
    paper_mean: float
    paper_deviation: float

    @property
    def z(self) -> float:
        """Ours minus the paper's, in the paper's standard deviations over splits."""
        return (self.mean - self.paper_mean) / self.paper_deviation


def comparisons(results: Results) -> list[Comparison]:
    """Return all 180 values of the paper's appendix beside ours."""
    out = []
    for metric in METRICS:
        for average in AVERAGES:
            for name in SETS:
                for algorithm, (model, variant) in _ALGORITHMS.items():
                    mean = paper_value(metric, average, name, algorithm)
                    deviation = paper_deviation(metric, average, name, algorithm)
                    assert mean is not None
                    assert deviation is not None
                    ours = results.get(name, model, metric, average, variant)
                    found = float(ours.mean()), float(ours.std())
                    out.append(Comparison(metric, average, name, algorithm, *found, mean, deviation))
    return out


def report(rows: Sequence[Row], readings: Sequence[tuple[float, int]], folder: Path) -> dict[str, str]:
    """Return tables by title, and draw the figure.

    Parameters
    ----------
    rows : sequence of rows of results
    readings : sequence of (float, int)
        Rates and first indices of Weighted that were tried.
    folder : pathlib.Path
        Of the figure.
    """
    results = Results.of(rows)
    compared = comparisons(results)
    out = {
        "What this is": _WORDS,
        "In short": _summary(results, compared),
        "All values at a glance": picture(_figure(compared, folder), "Our values against the paper's, by metric"),
    }
    for metric, title in METRICS.items():
        for average in AVERAGES:
            out[f"{title}, {average}-average, beside the paper"] = _values(compared, metric, average)
    out["Which Weighted 1/2 is the paper's"] = _readings(results, readings)
    out["Performance ratios (the paper's Table 3)"] = _ratios(results)
    out["Like for like: metricwise's default against the paper's algorithm"] = _like_for_like(results)
    return out


_WORDS = """\
The paper's UCI table, in the coding that reproduces it: features as integers in natural order, neither scaled nor
one-hot; scikit-learn's models with defaults, all labels at once except for logistic regression; Weighted 1/2 as
e^(-2 i) from i = 0; health of Nursery from not_recom to recommended; base classifiers on all training rows,
consistent ones by the half split and bisection on labels. The authors' code is not public: this is an inference from
the numbers that they print. z is our mean minus theirs, in their standard deviations over splits."""


def _summary(results: Results, compared: Sequence[Comparison]) -> str:
    counts = {name: len(results.get(name, "LogReg", "ordinal", "micro", "base")) for name in SETS}
    near = sum(abs(one.z) <= _FAR for one in compared)
    each = ", ".join(
        f"{title} {_root_mean_square([one for one in compared if one.metric == metric]):.2f}"
        for metric, title in METRICS.items()
    )
    lines = [
        "- Splits: " + ", ".join(f"{name} {count}" for name, count in counts.items()) + ".",
        f"- {near} of the {len(compared)} values of the paper's appendix are within {_FAR:g} of its standard "
        f"deviations, {sum(abs(one.z) <= 1 for one in compared)} within 1. Root mean square z "
        f"{_root_mean_square(compared):.2f}: {each}.",
        "- Farthest: " + "; ".join(_far(one) for one in sorted(compared, key=lambda one: -abs(one.z))[:3]) + ".",
    ]
    cells = list(_cells(_CONSISTENT))
    for variant, base, words in (
        ("half", "base", "The paper's algorithm against argmax of a model of all training rows"),
        ("half", "half_base", "The same against argmax of the same half's model"),
        ("default", "base", "Our default against argmax"),
    ):
        ratios = [results.ratio(*cell, variant, base=base) for cell in cells]
        zero = sum(holds_zero(_interval(results, cell, variant, base)) for cell in cells)
        lines.append(
            f"- {words}: {sum(ratio >= 1 for ratio in ratios)} of the paper's {len(cells)} ratios are at least 1 "
            f"(least {min(ratios):.4f}); the corrected interval of the difference contains 0 in {zero}."
        )
    return "\n".join([*lines, *_model_by_model(results)])


def _model_by_model(results: Results) -> Iterator[str]:
    """For each model, in how many cells our default is above the paper's algorithm, on the same features."""
    for model in MODELS:
        cells = list(_cells((model,)))
        intervals = [_interval(results, cell, "default", "half") for cell in cells]
        above, below = sum(low > 0 for _, low, _ in intervals), sum(high < 0 for _, _, high in intervals)
        gain = float(np.mean([mean for mean, _, _ in intervals]))
        yield (
            f"- Like for like, {model}: our default minus the paper's algorithm is {gain:+.4f} in the mean of "
            f"{len(cells)} cells; its interval is above 0 in {above}, below in {below}, and contains it in "
            f"{len(cells) - above - below}."
        )


def _far(one: Comparison) -> str:
    return (
        f"{one.name} {METRICS[one.metric]} {one.average} {one.algorithm} {one.mean:.4f} (the paper "
        f"{one.paper_mean:.4f} ± {one.paper_deviation:.4f}, z {one.z:+.1f})"
    )


def _root_mean_square(compared: Sequence[Comparison]) -> float:
    return math.sqrt(sum(one.z**2 for one in compared) / len(compared))


def _cells(models: Sequence[str]) -> Iterator[tuple[str, str, str, str]]:
    for metric in METRICS:
        for average in AVERAGES:
            for model in models:
                for name in SETS:
                    yield name, model, metric, average


def _interval(results: Results, cell: tuple[str, str, str, str], variant: str, base: str) -> tuple[float, float, float]:
    difference = results.get(*cell, variant) - results.get(*cell, base)
    return paired_interval(difference, test_over_train=TEST_OVER_TRAIN)


def _values(compared: Sequence[Comparison], metric: str, average: str) -> str:
    rows = [
        [
            one.name,
            one.algorithm,
            f"{one.mean:.4f} ± {one.deviation:.4f}",
            f"{one.paper_mean:.4f} ± {one.paper_deviation:.4f}",
            f"{one.z:+.2f}",
        ]
        for one in compared
        if (one.metric, one.average) == (metric, average)
    ]
    return markdown_table(["set", "algorithm", "ours", "the paper's", "z"], rows)


def _readings(results: Results, readings: Sequence[tuple[float, int]]) -> str:
    """Root mean square z of argmax of all four models, by rate and first index of the weights."""
    rows = []
    for rate, first in readings:
        cells = []
        for name in (*SETS, None):
            squares = [
                ((results.get(one, model, f"weighted_{rate}_from_{first}", average, "base").mean() - mean) / deviation)
                ** 2
                for one in (SETS if name is None else (name,))
                for average in AVERAGES
                for model in MODELS
                for mean in [paper_value("weighted", average, one, model)]
                for deviation in [paper_deviation("weighted", average, one, model)]
                if mean is not None and deviation is not None
            ]
            cells.append(f"{math.sqrt(float(np.mean(squares))):.2f}")
        rows.append([f"e^(-{rate:g} i) from i = {first}", *cells])
    words = "Root mean square z of argmax of the four models under both averages, by what Weighted 1/2 may mean."
    return words + "\n\n" + markdown_table(["weights", *SETS, "all"], rows)


def _ratios(results: Results) -> str:
    rows = []
    for metric, title in METRICS.items():
        for average in AVERAGES:
            for model in _CONSISTENT:
                ours = [results.ratio_text(name, model, metric, average, "half") for name in SETS]
                rows.append([title, average, model, "ours", *ours])
                paper = (f"{paper_ratio(metric, average, name, model):.4f}" for name in SETS)
                rows.append([title, average, model, "**the paper**", *paper])
    words = "C over argmax: the ratio of the means over splits, and in brackets the mean of the ratios."
    return words + "\n\n" + markdown_table(["metric", "average", "model", "whose", *SETS], rows)


def _like_for_like(results: Results) -> str:
    words = (
        "The same features, model and splits. Ours: `optimize` without options on five-fold out-of-fold probabilities, "
        "the model of all training rows. The paper's: half split and bisection. Ours minus the paper's: mean over "
        "splits and 95 % interval, corrected for the rows that splits share (Nadeau and Bengio, 2003)."
    )
    rows = [
        [
            METRICS[metric],
            average,
            model,
            *(interval_text(_interval(results, cell, "default", "half")) for cell in line),
        ]
        for metric in METRICS
        for average in AVERAGES
        for model in MODELS
        for line in [[(name, model, metric, average) for name in SETS]]
    ]
    return words + "\n\n" + markdown_table(["metric", "average", "model", *SETS], rows)


def _figure(compared: Sequence[Comparison], folder: Path) -> str:
    figure = new_figure(12, 4.4)
    for ax, (metric, title) in zip(figure.subplots(1, len(METRICS)), METRICS.items(), strict=True):
        for k, name in enumerate(SETS):
            some = [one for one in compared if (one.metric, one.name) == (metric, name)]
            ax.errorbar(
                [one.paper_mean for one in some],
                [one.mean for one in some],
                xerr=[one.paper_deviation for one in some],
                fmt="o",
                ms=3.5,
                lw=0.8,
                color=COLOURS[k],
                label=name,
            )
        limits = [one.paper_mean for one in compared if one.metric == metric]
        ax.axline((min(limits), min(limits)), slope=1.0, color="0.6", lw=1)
        ax.set_title(title)
        ax.set_xlabel("the paper")
        ax.grid(alpha=0.3)
        if metric == "ordinal":
            ax.set_ylabel("ours")
            ax.legend(fontsize=8, frameon=False)
    return save(figure, folder, "uci_paper")
