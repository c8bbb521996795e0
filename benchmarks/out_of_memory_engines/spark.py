"""A Spark data frame of the Parquet files, in local mode with two cores."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from pathlib import Path

from out_of_memory_engines import LABELS, measure_call, measure_passes


def missing() -> str | None:
    if importlib.util.find_spec("pyspark") is None:
        return "pyspark is not installed"
    java = shutil.which("java") or os.environ.get("JAVA_HOME")
    return None if java else "Java is not installed"


def measure(paths: list[str]) -> dict[str, float]:
    from pyspark.sql import SparkSession

    import metricwise as mw

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").config("spark.driver.memory", "2g")
    builder = builder.config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false")
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    try:
        rows = mw.Table(spark.read.parquet(*paths), proba_prefix="p_"), LABELS
        return {**measure_call(*rows), **measure_passes(*rows), "workers": peak_of_children()}
    finally:
        spark.stop()


def peak_of_children() -> float:
    """Return the sum of the peak memory of the JVM and of Python's workers, in bytes."""
    parents, peaks = {}, {}
    for path in Path("/proc").glob("[0-9]*/status"):
        try:
            fields = dict(line.split(":", 1) for line in path.read_text().splitlines())
        except OSError:  # it has ended
            continue
        parents[int(fields["Pid"])] = int(fields["PPid"])
        peaks[int(fields["Pid"])] = 1024 * float(fields.get("VmHWM", "0 kB").split()[0])
    family = {os.getpid()}
    while more := {child for child, parent in parents.items() if parent in family} - family:
        family |= more
    return sum(peaks[child] for child in family - {os.getpid()})
