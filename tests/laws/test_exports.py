"""Exports decide as the rule does: the benchmark on few rows, and rules at random."""

import importlib
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from hypothesis import given

import metricwise as mw
from laws.exported import decide_in_duckdb, decide_in_onnx, decide_in_python, decide_in_sqlite, scores_by_numpy
from metricwise.core.losses import Loss
from profiles import examples
from worlds.rules import rules_and_logits, rules_and_rows

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def benchmark():
    """The benchmark is no part of the package: it is found because it is run from the root."""
    sys.path.insert(0, str(ROOT))
    yield importlib.import_module("benchmarks.export_equality")
    sys.path.remove(str(ROOT))
    for name in [name for name in sys.modules if name == "benchmarks" or name.startswith("benchmarks.")]:
        del sys.modules[name]


def test_the_benchmark_finds_no_difference(benchmark):
    lines = benchmark.run_all(300, None)
    on_torch = set(benchmark.ON_TORCH) if find_spec("torch") else set()
    assert {line["where"] for line in lines} == {"Python", "onnxruntime", "DuckDB", "SQLite"} | on_torch
    assert {line["target"] for line in lines} >= {"binary, p", "multiclass", "multilabel", "multioutput"}
    assert not [line for line in lines if line["of these beyond 1e-9"]]
    assert not [line for line in lines if line["rows that differ"] and "link" not in line["rule"]]
    text = benchmark.markdown(lines, None)
    assert "PostgreSQL was not installed" in text
    assert ("PyTorch was not installed" in text) == (not on_torch)
    assert "beyond that:\n**0**" in text


def test_the_benchmark_sees_a_difference(benchmark):
    (case, *_) = benchmark.cases(200)
    line = benchmark.compare(case, "nowhere", lambda given: np.full(len(given.proba), "no", dtype=object))
    assert line["of these beyond 1e-9"] == line["rows that differ"] == (case.proba > 0.37).sum() > 0


def test_the_benchmark_tells_close_scores_from_others(benchmark):
    case = next(one for one in benchmark.cases(400) if one.linked and one.positive)
    turned = lambda given: 1 - given.rule.predict(given.proba).astype(object)  # noqa: E731
    line = benchmark.compare(case, "nowhere", turned)
    near = np.abs(case.proba - case.rule.threshold) < 1e-12
    assert line["rows that differ"] == 400
    assert line["of these beyond 1e-9"] == 400 - near.sum() < 400


def test_postgres(benchmark):
    engines = sys.modules["benchmarks.export_engines"]
    with engines.postgres() as server:
        if server is None:
            pytest.skip("PostgreSQL is not installed here: apt-get install postgresql")
        for case in benchmark.cases(300)[::2]:
            line = benchmark.compare(case, "PostgreSQL", server.decide)
            assert line["of these beyond 1e-9"] == 0, line


# --------------------------------------------------------------------------------------------------- rules at random


ALL = [decide_in_python, decide_in_onnx, decide_in_duckdb, decide_in_sqlite]


@pytest.mark.parametrize("threshold", [0.3, float(np.float32(0.3)), np.nextafter(float(np.float32(0.3)), 0), 0.5])
def test_a_single_column_in_single_precision(threshold):
    rule = mw.WeightedRule.from_thresholds(threshold)
    p = (np.arange(1001) / 1000).astype(np.float32)
    model = mw.export.to_onnx(rule, dtype="float32", positive=True)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    (found,) = session.run(None, {"probabilities": p[:, None]})
    assert (found == rule.predict(p)).all()
    assert (found == (p.astype(np.float64) > threshold)).all()


@pytest.mark.parametrize("decide", ALL, ids=lambda one: one.__name__)
@examples(25)
@given(rules_and_rows(links=False))
def test_every_row_without_a_link(decide, drawn):
    rule, proba = drawn
    assert (decide(rule, proba) == rule.predict(proba)).all()


@pytest.mark.parametrize("decide", ALL, ids=lambda one: one.__name__)
@pytest.mark.parametrize("offset", [1.0, -1.0])
def test_offsets_of_one_leave_the_sum_of_a_row_whole(decide, offset):
    rule = mw.WeightedRule(Loss(diagonal=np.array([[-2.0, -1.0]]), offset=np.array([[0.0, offset]])), ([0, 1],))
    p = np.arange(101) / 100
    proba = np.stack([1 - p, p], axis=1)
    assert (decide(rule, proba) == rule.predict(proba)).all()


@examples(25)
@given(rules_and_rows(links=False))
def test_single_precision(drawn):
    rule, proba = drawn
    single = proba.astype(np.float32)
    assert (decide_in_onnx(rule, single) == rule.predict(single)).all()
    if not rule.normalize:
        assert (decide_in_duckdb(rule, single) == rule.predict(single)).all()
        assert (decide_in_python(rule, single) == rule.predict(single)).all()


@pytest.mark.parametrize("decide", ALL, ids=lambda one: one.__name__)
@examples(20)
@given(rules_and_rows(several=False, abstain=False))
def test_behind_a_link_only_ties_may_differ(decide, drawn):
    rule, proba = drawn
    ours, theirs = rule.predict(proba), decide(rule, proba)
    eta = proba / proba.sum(axis=1, keepdims=True) if rule.normalize else proba
    if rule.link is not None:
        powers = np.maximum(eta, rule.link.floor) ** rule.link.temperature[0] * np.exp(rule.link.bias[0])
        eta = powers / powers.sum(axis=1, keepdims=True)
    scores = eta @ rule.loss.tensor()[0]
    place = {label: j for j, label in enumerate(rule.classes[0].tolist())}
    for row in np.flatnonzero(ours != theirs):
        assert rule.link is not None
        assert abs(scores[row, place[ours[row]]] - scores[row, place[theirs[row]]]) < 1e-9


@pytest.mark.parametrize("decide", ALL, ids=lambda one: one.__name__)
@examples(30)
@given(rules_and_logits())
def test_on_logits_only_ties_may_differ(decide, drawn):
    rule, z = drawn
    ours, theirs = (labels.reshape(len(z), -1) for labels in (rule.predict(z), decide(rule, z)))
    for m, labels in enumerate(rule.schema.decisions):
        place, scores = {label: j for j, label in enumerate(labels.tolist())}, scores_by_numpy(rule, z, m)
        for row in np.flatnonzero(ours[:, m] != theirs[:, m]):
            assert abs(scores[row, place[ours[row, m]]] - scores[row, place[theirs[row, m]]]) < 1e-9


@examples(30)
@given(rules_and_logits())
def test_logits_in_single_precision(drawn):
    rule, z = drawn
    single = z.astype(np.float32)
    for decide in (decide_in_python, decide_in_onnx, decide_in_duckdb):
        assert (decide(rule, single) == rule.predict(single)).all()
