"""``evaluate`` of rows that are not in memory: what is held of them, and what is refused."""

import tracemalloc

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import metricwise as mw
from metricwise.data.sources.chunked import ChunkedSource
from metricwise.oracles import kinds

N_ROWS, N_CLASSES = 400_000, 16
RULE = mw.WeightedRule.from_weights(np.linspace(1, 2, N_CLASSES).tolist(), classes=list(range(N_CLASSES)))


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    rng = np.random.default_rng(0)
    eta = rng.dirichlet(np.ones(N_CLASSES), N_ROWS)
    columns = {f"p_{k}": eta[:, k] for k in range(N_CLASSES)}
    columns |= {"y": rng.integers(0, N_CLASSES, N_ROWS), "group": rng.choice(["a", "b"], N_ROWS)}
    path = tmp_path_factory.mktemp("rows") / "rows.parquet"
    pq.write_table(pa.table(columns), path, row_group_size=5_000)
    return path


@pytest.mark.slow
def test_a_few_batches_are_held(path, monkeypatch):
    monkeypatch.setattr(kinds, "_MAX_COMPARED_ROWS", 10_000)
    taken = []
    take = ChunkedSource.take
    monkeypatch.setattr(ChunkedSource, "take", lambda self, rows: taken.append(len(rows)) or take(self, rows))
    table = mw.Table(path, proba_prefix="p_", memory_limit=1 << 20)
    tracemalloc.start()
    evaluation = mw.evaluate(RULE, table, "y", ["macro_f1", "kappa"], sensitive_features="group")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert evaluation.n_rows == N_ROWS
    assert sum(taken) < 10_000
    assert peak < 8 * N_ROWS * N_CLASSES / 2


@pytest.mark.slow
def test_decisions_are_given_for_every_row(path):
    table = mw.Table(path, proba_prefix="p_")
    decisions = np.zeros(N_ROWS, dtype=int)
    found = mw.evaluate(decisions, table, "y", "accuracy")["accuracy"]
    assert found.value.estimate == pytest.approx(np.mean(pq.read_table(path)["y"].to_numpy() == 0), abs=1e-12)
    with pytest.raises(ValueError, match="evaluate: rule must hold a decision about each of the 400000 rows, got"):
        mw.evaluate(decisions[1:], table, "y", "accuracy")
