"""Saved figures: nothing that is written on a figure lies beyond its edges."""

import io

import numpy as np
import pandas as pd
import pytest

import metricwise as mw
import worlds
from metricwise import displays

plt = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(autouse=True)
def _closed():
    plt.switch_backend("Agg")
    yield
    plt.close("all")


LONG_NAMES = ["inconclusively", "professionally", "unsatisfactory"]
SHARE = {"class": LONG_NAMES[0], "old": 0.2, "estimate": 0.3, "low": 0.25, "high": 0.35}
DRAWN = {
    "curve": lambda of: displays.MetricCurveDisplay.from_solution(
        of["two"], metrics=["precision", f"recall[{LONG_NAMES[1]}]"]
    ),
    "path": lambda of: displays.MetricCurveDisplay.from_solution(of["three"], metrics=[f"precision[{LONG_NAMES[1]}]"]),
    "confusion of two": lambda of: displays.ConfusionChangeDisplay.from_solution(of["two"]),
    "confusion of three": lambda of: displays.ConfusionChangeDisplay.from_solution(of["three"]),
    "moves": lambda of: displays.MovesDisplay.from_solution(of["three"]),
    "expected moves": lambda of: displays.MovesDisplay.from_solution(of["unlabelled"]),
    "moves of outputs": lambda of: displays.MovesDisplay.from_solution(of["outputs"]),
    "gains of classes": lambda of: displays.GainsDisplay.from_solution(of["three"]),
    "gains of outputs": lambda of: displays.GainsDisplay.from_solution(of["outputs"]),
    "regions": lambda of: displays.DecisionRegionsDisplay.from_solution(of["three"]),
    "feasible": lambda of: displays.FeasibleSetDisplay.from_solution(of["two"]),
    "reliability": lambda of: displays.ReliabilityDisplay.from_solution(of["two"]),
    "shares": lambda of: displays.SharesDisplay(
        [{"output": None, "moved": True, "p_value": 0.001, "shares": [SHARE]}]
    ).plot(),
}


@pytest.fixture(scope="module")
def solutions():
    """Return solutions for classes and outputs whose names have 14 letters."""
    rng = np.random.default_rng(0)
    P, y = worlds.multiclass(300, names=LONG_NAMES)
    of_labels = pd.DataFrame(rng.beta(0.5, 2, (200, 3)), columns=LONG_NAMES)
    labels = (rng.random(of_labels.shape) < of_labels).astype(int)
    return {
        "two": mw.optimize(*worlds.binary(300, names=LONG_NAMES[:2]), "f1", pos_label=LONG_NAMES[1]),
        "three": mw.optimize(P, y, "macro_f1", classes=LONG_NAMES),
        "unlabelled": mw.optimize(P, None, "macro_f1", classes=LONG_NAMES),
        "outputs": mw.optimize(of_labels, labels, "f1", average="macro"),
    }


def texts_of(ax):
    """Return what is written on, around and beside axes, but for ticks beyond their ends, which are not drawn."""
    parts = [ax.title, ax._left_title, *ax.texts]
    if ax.axison:
        parts += [ax.xaxis.label, ax.yaxis.label]
        for axis, (low, high) in ((ax.xaxis, sorted(ax.get_xlim())), (ax.yaxis, sorted(ax.get_ylim()))):
            parts += [tick.label1 for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
    shown = [part for part in parts if part.get_visible() and part.get_text()]
    return shown + ([ax.get_legend()] if ax.get_legend() else [])


@pytest.mark.parametrize("name", DRAWN)
def test_nothing_is_cut(name, solutions):
    figure = DRAWN[name](solutions).figure_
    figure.savefig(io.BytesIO(), dpi=figure.dpi)  # the first time, as a user does
    inside = figure.bbox.padded(2.0)
    boxes = [part.get_window_extent() for ax in figure.axes for part in texts_of(ax)]
    assert [box.extents for box in boxes if not all(inside.contains(*corner) for corner in box.corners())] == []
