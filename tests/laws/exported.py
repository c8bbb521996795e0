"""What exports of a rule decide, each in the system that it is written for."""

import sqlite3
from functools import cache

import duckdb
import numpy as np
import onnxruntime
import pyarrow as pa
from scipy.special import softmax

import metricwise as mw
from worlds.rules import columns_of, table_of


def decide_in_python(rule, proba):
    names = {}
    exec(mw.export.to_python(rule), names)  # noqa: S102
    rows = proba.tolist()
    if rule.multioutput:
        rows = [[eta[:k] for eta, k in zip(row, rule.n_classes.tolist(), strict=True)] for row in rows]
    return np.array(names["decide_all"](rows), dtype=object)


def decide_in_onnx(rule, proba):
    model = mw.export.to_onnx(rule, dtype=str(proba.dtype), positive=False)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    found = session.run(None, {session.get_inputs()[0].name: proba})
    # Labels of several types come as one tensor for each output.
    return found[0] if len(found) == 1 else np.stack([one.astype(object) for one in found], axis=1)


@cache
def duck():
    return duckdb.connect()


def decide_in_duckdb(rule, proba):
    columns, connection = columns_of(rule), duck()
    connection.register("t", pa.table(table_of(rule, proba, columns)))
    found = np.array(connection.execute(f"SELECT {mw.export.to_sql(rule, columns)} FROM t").fetchall(), dtype=object)
    return found if rule.multioutput else found[:, 0]


def decide_in_sqlite(rule, proba):
    columns = columns_of(rule)
    table = table_of(rule, proba, columns)
    connection = sqlite3.connect(":memory:")
    connection.execute(f"CREATE TABLE t ({', '.join(f'{name} REAL' for name in table)})")
    rows = zip(*(column.tolist() for column in table.values()), strict=True)
    connection.executemany(f"INSERT INTO t VALUES ({', '.join('?' for _ in table)})", rows)
    found = np.array(
        connection.execute(f"SELECT {mw.export.to_sql(rule, columns, 'sqlite')} FROM t").fetchall(), object
    )
    connection.close()
    return found if rule.multioutput else found[:, 0]


def scores_by_numpy(rule, z, m):
    """The expected loss of each decision about output m, (N, D)."""
    k, d = int(rule.n_classes[m]), int(rule.schema.n_decisions[m])
    numbers = z[:, m, :k] if rule.multioutput else z
    logits = rule.link.temperature[m] * numbers + rule.link.bias[m, :k]
    return softmax(logits, axis=1) @ rule.loss.output(m).tensor()[0][:k, :d]
