"""Parquet files that are read directly, batch by batch."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
from machine import resident

from out_of_memory_engines import CLASSES, LABELS, METRIC, best_of, measure_call, measure_passes


def missing() -> str | None:
    return None


def measure(paths: list[str]) -> dict[str, float]:
    import metricwise as mw

    rows = mw.Table(paths, proba_prefix="p_"), LABELS
    judged = measure_evaluate(*rows)
    return {**judged, **measure_call(*rows), **measure_passes(*rows), "reading": best_of(lambda: read(paths))}


def measure_evaluate(table: Any, labels: str) -> dict[str, float]:
    """Evaluate a rule by two metrics, with intervals; the peak of memory begins anew afterwards."""
    import metricwise as mw

    rule = mw.WeightedRule.from_weights(np.linspace(1, 2, CLASSES).tolist(), classes=list(range(CLASSES)))
    start = time.perf_counter()
    mw.evaluate(rule, table, labels, [METRIC, "accuracy"])
    figures = {"evaluate": time.perf_counter() - start, "evaluate_peak": resident("VmHWM")}
    Path("/proc/self/clear_refs").write_text("5")
    return figures


def read(paths: list[str]) -> None:
    """Read all columns with pyarrow."""
    import pyarrow.dataset as ds

    for batch in ds.dataset(paths).to_batches():
        assert batch.num_rows >= 0
