"""Draws the pictures of the page on displays: `python docs/_ext/displays_figures.py`.

The card and the report are pictures of a browser's, made where Chromium and Playwright are installed.
"""

import shutil
import tempfile
from pathlib import Path

import matplotlib as mpl
import numpy as np

import metricwise as mw

mpl.use("Agg")

from matplotlib import pyplot as plt
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict

from metricwise import displays

STATIC = Path(__file__).parents[1] / "_static"
NAMES = np.array(["low", "mid", "urgent"])


def save(display, name):
    display.figure_.savefig(STATIC / f"display-{name}.png", dpi=100, metadata={"Software": None})
    plt.close(display.figure_)


def problems():
    """Out-of-fold probabilities and labels, of three classes and of two."""
    options = {"n_informative": 5, "n_redundant": 0, "class_sep": 0.8, "flip_y": 0.08, "random_state": 0}
    X, y = make_classification(4000, n_classes=3, weights=[0.7, 0.22], **options)
    three = cross_val_predict(LogisticRegression(), X, y, method="predict_proba"), NAMES[y]
    X, y = make_classification(4000, weights=[0.88], **options)
    model = LogisticRegression(class_weight="balanced")  # whose probabilities are not right
    two = cross_val_predict(model, X, y, method="predict_proba"), np.where(y == 1, "fraud", "fine")
    return three, two


def labels():
    """Probabilities and labels of 150 outputs."""
    rng = np.random.default_rng(0)
    P = rng.beta(rng.uniform(0.3, 0.6, 150), rng.uniform(2, 12, 150), (1500, 150))
    return P, (rng.random(P.shape) < P ** rng.uniform(0.7, 1.4, 150)).astype(int)


def draw(three, two):
    binary = mw.optimize(*two, "f1", pos_label="fraud")
    save(displays.MetricCurveDisplay.from_solution(binary, metrics=["precision", "recall"]), "curve")
    floor = mw.optimize(*two, "recall", pos_label="fraud", subject_to="precision >= 0.6")
    save(displays.MetricCurveDisplay.from_solution(floor), "constraint")
    save(displays.ReliabilityDisplay.from_solution(binary), "reliability")
    save(displays.FeasibleSetDisplay.from_solution(binary), "feasible")
    macro = mw.optimize(*three, "macro_f1")
    save(displays.ConfusionChangeDisplay.from_solution(macro), "confusion")
    save(displays.MovesDisplay.from_solution(macro), "moves")
    save(displays.DecisionRegionsDisplay.from_predictions(three[1], three[0], macro.rule), "regions")
    frontier = mw.trade_off(*two, "recall", "precision", pos_label="fraud")
    save(displays.FrontierDisplay.from_trade_off(frontier, bound=0.6), "frontier")
    mixture = mw.optimize(three[0], None, "g_mean", strategy=mw.Strategy(randomized=True))
    save(displays.ConvergenceDisplay.from_solution(mixture), "convergence")
    save(displays.GainsDisplay.from_solution(mw.optimize(*labels(), "f1", average="macro")), "gains")
    return binary, macro


def photograph(binary, macro):
    """Take pictures of a card and of a report, in light and dark."""
    chromium = shutil.which("chromium")
    if chromium is None:
        return
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        card, report = Path(folder) / "card.html", Path(folder) / "report.html"
        card.write_text(f"<!doctype html><meta charset=utf-8><body>{macro._repr_html_()}", encoding="utf-8")
        binary.report(report)
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 900, "height": 300})
        page.goto(card.as_uri())
        page.locator(".mw-card").screenshot(path=STATIC / "card.png")
        for scheme in ("light", "dark"):
            page = browser.new_page(viewport={"width": 940, "height": 1180}, color_scheme=scheme)
            page.goto(report.as_uri())
            page.screenshot(path=STATIC / f"report-{scheme}.png")
        browser.close()


if __name__ == "__main__":
    photograph(*draw(*problems()))
