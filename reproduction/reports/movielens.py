"""Table and figure of the MovieLens experiment, on both scales, compared with the paper's numbers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..protocol import Row
from .figures import COLOURS, new_figure, save
from .intervals import interval_text, paired_interval
from .pages import markdown_table, picture
from .paper_numbers import MOVIELENS

__all__ = ["report", "to_paper_scale"]

FloatArray = NDArray[np.float64]

_MODELS = {
    "bias": "biases and thresholds only",
    "ordrec": "OrdRec",
    "strong": "OrdRec, factors penalised 1.4 times as much",
}
_RULES = {
    "argmax": "argmax",
    "micro": "consistent",
    "macro": "consistent, films of one class keep argmax",
    "link": "consistent + link",
}
_AVERAGES = {
    "micro": "micro",
    "macro": "macro",
    "ten": "films with 10 or more test ratings",
    "many": "films with 20 or more",
    "filled": "films without a test rating count as 1",
    "sqrt": "films by the root of their ratings",
    "users": "users in place of films",
}


def to_paper_scale(values: FloatArray) -> FloatArray:
    """Turn 1 - |i - j| / (K - 1) into 1 - |i - j| / K for K = 5.

    Examples
    --------
    >>> import numpy as np
    >>> from reproduction.reports.movielens import to_paper_scale
    >>> float(to_paper_scale(np.array(0.5)))
    0.6
    """
    return 1 - (1 - values) * 0.8


def report(rows: Sequence[Row], folder: Path) -> dict[str, str]:
    """Return tables by title, and draw the figure."""
    columns = {key: np.array([float(row[key]) for row in rows]) for key in rows[0] if key != "repetition"}
    return {
        "In short": _summary(columns),
        "What macro may mean, on the paper's scale": _variants(columns),
        "Ordinal on the paper's scale, 1 - |i - j| / K": _table(columns, paper=True),
        "Ordinal on our scale, 1 - |i - j| / (K - 1)": _table(columns, paper=False),
        "Every repetition": picture(_figure(columns, folder), "OrdRec and consistent OrdRec in every repetition"),
    }


def _summary(columns: dict[str, FloatArray]) -> str:
    lines = [f"- {len(columns['ordrec_loss'])} repetitions of a 50/50 split of the ratings."]
    for average, (plain, consistent) in MOVIELENS.items():
        before = to_paper_scale(columns[f"ordrec_argmax_{average}"])
        after = to_paper_scale(columns[f"ordrec_micro_{average}"])
        gain = interval_text(paired_interval(after - before, test_over_train=1.0))
        lines.append(
            f"- {average}: OrdRec {before.mean():.4f} (the paper {plain[0]:.4f}), C-OrdRec {after.mean():.4f} (the "
            f"paper {consistent[0]:.4f}); gain {gain} (the paper "
            f"{consistent[0] - plain[0]:+.4f}). Repetitions with a gain: {int(np.sum(after > before))}."
        )
    lines.append(_nearest(columns))
    lines.append(
        "- Log loss of held-out ratings: "
        + ", ".join(f"{words} {columns[f'{model}_loss'].mean():.4f}" for model, words in _MODELS.items())
        + "."
    )
    return "\n".join(lines)


def _variants(columns: dict[str, FloatArray]) -> str:
    """Argmax and the consistent rule under every interpretation of the macro-average, with the paper's two numbers."""
    (plain, _), (consistent, _) = MOVIELENS["macro"]
    rows = []
    for model in ("ordrec", "strong"):
        for average in list(_AVERAGES)[1:]:
            before, after = (to_paper_scale(columns[f"{model}_{rule}_{average}"]) for rule in ("argmax", "micro"))
            gain = interval_text(paired_interval(after - before, test_over_train=1.0))
            cells = [f"{values.mean():.4f}" for values in (before, after)]
            away = [f"{values.mean() - value:+.4f}" for values, value in ((before, plain), (after, consistent))]
            rows.append([_MODELS[model], _AVERAGES[average], *cells, gain, *away])
    rows.append(
        ["**the paper's OrdRec**", "macro", f"{plain:.4f}", f"{consistent:.4f}", f"{consistent - plain:+.4f}", "", ""]
    )
    header = [
        "model",
        "macro-average",
        "argmax",
        "consistent",
        "gain",
        "argmax, from the paper's",
        "consistent, from it",
    ]
    return markdown_table(header, rows)


def _nearest(columns: dict[str, FloatArray]) -> str:
    """Return the interpretations of "macro" that are nearest to either number of the paper, and to both."""
    goals = [mean for mean, _ in MOVIELENS["macro"]]
    found = {
        f"{_MODELS[model]}, {_AVERAGES[average]}": [
            float(to_paper_scale(columns[f"{model}_{rule}_{average}"]).mean()) for rule in ("argmax", "micro")
        ]
        for model in ("ordrec", "strong")
        for average in list(_AVERAGES)[1:]
    }

    def away(words: str, *which: int) -> float:
        return max(abs(found[words][i] - goals[i]) for i in which)

    one, two, both = (min(found, key=lambda words: away(words, *which)) for which in ((0,), (1,), (0, 1)))
    values = {words: f"{before:.4f} to {after:.4f}" for words, (before, after) in found.items()}
    return (
        f"- The paper's macro-average goes from {goals[0]:.4f} to {goals[1]:.4f}. Of {len(found)} readings the nearest "
        f'to its argmax is "{one}" ({values[one]}), to its consistent rule "{two}" ({values[two]}), to both "{both}" '
        f"({values[both]}, off by up to {away(both, 0, 1):.4f}; the paper's standard deviations are "
        f"{MOVIELENS['macro'][0][1]:.4f} and {MOVIELENS['macro'][1][1]:.4f})."
    )


def _table(columns: dict[str, FloatArray], *, paper: bool) -> str:
    rows = []
    for model, words in _MODELS.items():
        for rule, name in _RULES.items():
            cells = []
            for average in _AVERAGES:
                values = columns[f"{model}_{rule}_{average}"]
                values = to_paper_scale(values) if paper else values
                cells.append(f"{values.mean():.4f} ± {values.std():.4f}")
            rows.append([words, name, *cells])
    if paper:
        for i, name in enumerate(("argmax", "consistent")):
            cells = [f"{MOVIELENS[a][i][0]:.4f} ± {MOVIELENS[a][i][1]:.4f}" for a in ("micro", "macro")]
            rows.append(["**the paper's OrdRec**", name, *cells, *["-"] * (len(_AVERAGES) - 2)])
    return markdown_table(["model", "rule", *_AVERAGES.values()], rows)


def _figure(columns: dict[str, FloatArray], folder: Path) -> str:
    figure = new_figure(9, 4)
    axes = figure.subplots(1, 2, sharey=True)
    for ax, average in zip(axes, ("micro", "macro"), strict=True):
        for k, rule in enumerate(("argmax", "micro")):
            values = to_paper_scale(columns[f"ordrec_{rule}_{average}"])
            words = ("OrdRec", "C-OrdRec")[k]
            ax.plot(np.arange(1, len(values) + 1), values, "o-", ms=3, lw=0.8, color=COLOURS[k], label=words)
            ax.axhline(MOVIELENS[average][k][0], color=COLOURS[k], ls="--", lw=1, label=f"{words}, the paper")
        ax.set_title(f"{average}-average")
        ax.set_xlabel("repetition")
        ax.locator_params(axis="x", integer=True)
        ax.grid(alpha=0.3)
    axes[0].set_ylabel("1 - |i - j| / K")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=8, frameon=False)
    return save(figure, folder, "movielens")
