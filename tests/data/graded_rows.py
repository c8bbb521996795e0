"""Rows of three classes, with labels that do not sort into their order, for tests of how they are read."""

import numpy as np

import metricwise as mw

LABELS = {"confusion": "labels", "recalibrate": False}
SCALE = ["low", "mid", "high"]  # sorted: high, low, mid
RNG = np.random.default_rng(0)
PROBA = RNG.dirichlet(np.full(3, 0.4), size=200)
CODES = np.array([RNG.choice(3, p=p) for p in PROBA])
CODES[:3] = range(3)


def solve(proba, y, metric="kappa", **options):
    return mw.optimize(proba, y, metric, strategy=mw.Strategy(**LABELS), **options)
