"""Data frames of Spark whose partitions are known, in a session of this machine; needs PySpark and Java."""

import os
import sys
from functools import reduce

import pyarrow as pa


def session(master="local[2,4]"):
    """The session of this process, which tries tasks four times."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    settings = {
        "spark.sql.execution.arrow.localRelationThreshold": "0",  # else the partitions of small tables are joined
        "spark.sql.unionOutputPartitioning": "false",  # else those of a union are joined
        "spark.driver.memory": "1g",
        "spark.sql.shuffle.partitions": "4",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    builder = SparkSession.builder.master(master)
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


def as_frame(pieces, change=None):
    """A data frame with the rows of each Arrow table in a partition of its own, changed on the workers.

    Parameters
    ----------
    pieces : list of pyarrow.Table
        All of the same columns.
    change : callable, optional
        From the number of a partition and its table to a table.
    """
    spark = session()
    if change is None:
        frames = (spark.createDataFrame(piece).coalesce(1) for piece in pieces if piece.num_rows)
        return reduce(lambda first, second: first.union(second), frames)
    types = spark.createDataFrame(pieces[0].schema.empty_table()).schema

    def rows(batches):
        for batch in batches:
            for place in batch.column(0).to_pylist():
                yield from change(place, pieces[place]).to_batches()

    return spark.range(0, len(pieces), 1, len(pieces)).mapInArrow(rows, types)


def cut(table, n_rows):
    """An Arrow table in pieces of so many rows."""
    return [table.slice(start, n_rows) for start in range(0, table.num_rows, n_rows)] or [pa.table({})]
