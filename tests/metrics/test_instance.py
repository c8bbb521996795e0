"""Metrics of each row over the outputs: rows without labels, wherever they are."""

import numpy as np

import metricwise as mw
from engines import served_by
from metricwise.metrics.instance import row_values


def test_rows_without_any_label_weigh_nothing():
    values = row_values(mw.metrics.FBeta(index=1), np.full((3, 2), -1), np.zeros((3, 2), dtype=int), 2, np.ones(2))
    assert values.mass.sum() == 0


def test_a_chunk_of_rows_without_labels_changes_nothing():
    rng = np.random.default_rng(0)
    proba = rng.random((20, 3)).round(2)
    y = (rng.random((20, 3)) < proba).astype(float)
    y[3:9] = np.nan
    strategy = mw.Strategy(confusion="labels", recalibrate=False)
    whole = mw.optimize(proba, y, "f1", average="instance", strategy=strategy)
    with served_by("chunks of 3"):
        chunked = mw.optimize(proba, y, "f1", average="instance", strategy=strategy)
    assert chunked.value == whole.value
    assert chunked.baseline == whole.baseline
