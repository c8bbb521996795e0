"""Table and figure of the consistency experiment."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..protocol import Row
from .figures import COLOURS, new_figure, save
from .pages import markdown_table, picture

__all__ = ["least_ratio", "report", "slope"]

FloatArray = NDArray[np.float64]

_ENOUGH = 1_000  # rows from which on slopes are fitted: the rate is a statement about large N


def slope(sizes: FloatArray, values: FloatArray) -> float:
    """Return the slope of log(values) on log(sizes), by least squares.

    Examples
    --------
    >>> import numpy as np
    >>> from reproduction.reports.consistency import slope
    >>> round(slope(np.array([10.0, 100.0]), np.array([1.0, 0.1])), 6)
    -1.0
    """
    use = values > 0
    return float(np.polyfit(np.log(sizes[use]), np.log(values[use]), 1)[0])


def report(rows: Sequence[Row], metrics: Sequence[str], averages: Sequence[str], folder: Path) -> dict[str, str]:
    """Return tables by title, and draw the figure."""
    sizes = np.array(sorted({int(row["N"]) for row in rows}), dtype=np.float64)
    means = {
        column: np.array([np.mean([float(row[column]) for row in rows if int(row["N"]) == n]) for n in sizes])
        for column in list(rows[0])[2:]
    }
    counts = [sum(int(row["N"]) == n for row in rows) for n in sizes]
    return {
        "In short": _summary(rows, sizes, means, metrics, averages),
        "Regret of the paper's algorithm": _table(sizes, counts, means, metrics, averages, "regret"),
        "Regret of argmax of the same probabilities": _table(sizes, counts, means, metrics, averages, "argmax"),
        "The bound, with its unknown constant set to 1": _table(sizes, counts, means, metrics, averages, "bound"),
        "Regret and bound against N": picture(
            _figure(sizes, means, metrics, averages, folder), "Regret, argmax and bound on log axes"
        ),
    }


def _summary(
    rows: Sequence[Row],
    sizes: FloatArray,
    means: dict[str, FloatArray],
    metrics: Sequence[str],
    averages: Sequence[str],
) -> str:
    use = sizes >= _ENOUGH
    if use.sum() < 2:
        use = np.ones_like(use)
    which = f"N from {int(sizes[use][0]):,} to {int(sizes[use][-1]):,}"
    lines = [
        f"- Slopes are of the logarithm of the mean over repetitions on log N, by least squares over the "
        f"{use.sum()} sizes {which}.",
        f"- Slope of the error of the probabilities: {slope(sizes[use], means['eta_error'][use]):.2f}.",
    ]
    for average in averages:
        slopes = (f"{m} {slope(sizes[use], means[f'{m}_{average}_regret'][use]):.2f}" for m in metrics)
        bounds = (f"{m} {slope(sizes[use], means[f'{m}_{average}_bound'][use]):.2f}" for m in metrics)
        lines.append(f"- {average}: slopes of the regret {', '.join(slopes)}; of the bound {', '.join(bounds)}.")
    last = max(float(means[f"{m}_{a}_regret"][-1]) for m in metrics for a in averages)
    stays = min(float(means[f"{m}_{a}_argmax"][-1]) for m in metrics for a in averages)
    lines.append(
        f"- The largest mean regret at N = {int(sizes[-1]):,} is {last:.2g}; that of argmax is at least {stays:.2g} "
        "there."
    )
    keys = [f"{m}_{a}" for m in metrics for a in averages]
    loose = min(float(np.min(means[f"{key}_bound"] / means[f"{key}_regret"])) for key in keys)
    each = [least_ratio(row, key) for row in rows for key in keys]
    broken = sum(ratio < 1 for ratio in each)
    lines.append(
        f"- The bound, with its constant set to 1, is broken in {broken} of {len(each)} single values; bound over "
        f"regret is {min(each):.3g} at least in a single repetition, and {loose:.3g} at least for means of "
        "repetitions."
    )
    lines.append(_nonvacuous(sizes, means, keys))
    return "\n".join(lines)


def least_ratio(row: Row, key: str) -> float:
    """Return bound over regret in one repetition; infinite where the rule is as good as the true one, or luckier.

    Examples
    --------
    >>> from reproduction.reports.consistency import least_ratio
    >>> least_ratio({"f_micro_bound": "2.0", "f_micro_regret": "0.5"}, "f_micro")
    4.0
    """
    bound, regret = float(row[f"{key}_bound"]), float(row[f"{key}_regret"])
    return bound / regret if regret > 0 else float("inf")


def _nonvacuous(sizes: FloatArray, means: dict[str, FloatArray], keys: Sequence[str]) -> str:
    """Say from which N on the mean bound is below 1, of which regrets always are."""
    first = {
        key: next((int(n) for n, b in zip(sizes, means[f"{key}_bound"], strict=True) if b < 1), None) for key in keys
    }
    known = [f"{key.replace('_', ' ')} from N = {n:,} on" for key, n in first.items() if n is not None]
    return (
        f"- The bound says something (is below 1) for {', '.join(known) if known else 'none of the sizes and metrics'}."
    )


def _table(
    sizes: FloatArray,
    counts: Sequence[int],
    means: dict[str, FloatArray],
    metrics: Sequence[str],
    averages: Sequence[str],
    what: str,
) -> str:
    columns = [f"{metric}_{average}_{what}" for metric in metrics for average in averages]
    rows = [[f"{int(n):,}", counts[i], *(f"{means[column][i]:.2e}" for column in columns)] for i, n in enumerate(sizes)]
    header = ["N", "repetitions", *(f"{metric}, {average}" for metric in metrics for average in averages)]
    return markdown_table(header, rows)


def _figure(
    sizes: FloatArray, means: dict[str, FloatArray], metrics: Sequence[str], averages: Sequence[str], folder: Path
) -> str:
    figure = new_figure(13, 6)
    axes = figure.subplots(len(averages), len(metrics), sharex=True, sharey=True)
    lines = {"regret": "the paper's algorithm", "argmax": "argmax", "bound": "the bound"}
    for i, average in enumerate(averages):
        for j, metric in enumerate(metrics):
            ax = axes[i, j]
            for k, (what, words) in enumerate(lines.items()):
                values = means[f"{metric}_{average}_{what}"]
                ax.loglog(sizes, np.maximum(values, 1e-7), "o-", ms=3, color=COLOURS[k], label=words)
            regret = means[f"{metric}_{average}_regret"]
            for power, style in ((-1.0, ":"), (-0.5, "--")):
                label = f"N^{power:g}"
                ax.loglog(sizes, regret[0] * (sizes / sizes[0]) ** power, style, color="0.5", lw=1, label=label)
            ax.set_title(f"{metric}, {average}", fontsize=10)
            ax.grid(alpha=0.3)
    for ax in axes[-1]:
        ax.set_xlabel("N")
    for ax in axes[:, 0]:
        ax.set_ylabel("regret")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=5, frameon=False)
    return save(figure, folder, "consistency")
