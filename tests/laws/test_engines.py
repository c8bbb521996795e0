"""Engines: whoever counts rows cannot tell in what pieces they come."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import log_softmax, softmax

import metricwise as mw
import worlds
from engines import counts, served_by, source
from laws.engine_promises import check_agreement, check_samples, rows_in_layout
from metricwise import kernels
from metricwise.core.losses import Loss
from metricwise.core.rows import Rows
from metricwise.core.schema import Schema
from metricwise.data.sources.chunked import ChunkedSource
from metricwise.data.sources.memory import MemorySource
from metricwise.oracles.base import Line
from metricwise.oracles.counts import Counts
from profiles import examples, first

OTHERS = ["chunks of 3", "chunks of 1000", "one by one"]
seeds = st.integers(0, 2**32 - 1)


@pytest.mark.parametrize("engine", first(len(OTHERS) - 1, OTHERS))  # the last takes longer than the others together
@pytest.mark.parametrize("confusion", ["labels", "expected", "blended"])
@examples(30)
@given(
    seed=seeds,
    layout=st.sampled_from(["binary", "array", "list"]),
    options=st.tuples(*[st.booleans()] * 3),
    of_logits=st.booleans(),
)
def test_engines_agree(engine, confusion, seed, layout, options, of_logits):
    check_agreement(engine, confusion, seed, layout, options, of_logits=of_logits)


@pytest.mark.parametrize("engine", OTHERS)
def test_a_pass_is_a_pass_however_the_rows_are_cut(engine):
    rng = np.random.default_rng(0)
    proba, codes = rows_in_layout(rng, "array")
    one, other = (counts(proba, codes, confusion="expected", engine=name) for name in ("memory", engine))
    for oracle in (one, other):
        oracle.confusions([Loss.from_tensor(np.eye(3))])
        oracle.shares([Loss.argmax(3)])
    assert one.entries_read == other.entries_read == 3 * codes.size  # priors, and argmax with them, are the third


@pytest.mark.parametrize("engine", OTHERS)
@pytest.mark.parametrize("of_logits", [False, True])
def test_samples_are_the_same_rows(engine, of_logits):
    check_samples(engine, of_logits=of_logits)


@pytest.mark.parametrize("engine", OTHERS)
@pytest.mark.parametrize("metric", ["macro_f1", "quadratic_kappa", "min_recall", "g_mean", "cost"])
def test_default_calls_agree(engine, metric):
    eta, y = worlds.multiclass(150, [0.5, 1.0, 0.3], sharpen=2, seed=2)
    metric = mw.metrics.Cost([[0, 1, 3], [2, 0, 1], [5, 2, 0]]) if metric == "cost" else metric
    whole = mw.optimize(eta, y, metric, record=["accuracy"])
    with served_by(engine):
        pieces = mw.optimize(eta, y, metric, record=["accuracy"])
    np.testing.assert_array_equal(pieces.rule.predict(eta), whole.rule.predict(eta))
    assert pieces.value == pytest.approx(whole.value, abs=1e-12)
    assert pieces.baseline == pytest.approx(whole.baseline, abs=1e-12)
    assert pieces.gain.estimate == pytest.approx(whole.gain.estimate, abs=1e-12)
    assert pieces.n_passes == whole.n_passes
    assert pieces.recorded["accuracy"].value == pytest.approx(whole.recorded["accuracy"].value, abs=1e-12)


def test_the_instance_average_adds_up_over_chunks():
    rng = np.random.default_rng(3)
    p = rng.random((80, 5)).round(2)
    y = (rng.random((80, 5)) < p).astype(int)
    call = {"average": "instance", "strategy": mw.Strategy(confusion="expected", recalibrate=True)}
    whole = mw.optimize(p, y, "f1", **call)
    with served_by("chunks of 3"):
        pieces = mw.optimize(p, y, "f1", **call)
    assert pieces.value == pytest.approx(whole.value, abs=1e-12)
    assert pieces.value == pytest.approx(mw.metrics.FBeta().score(y, whole.rule.predict(p), average="instance"))


def test_a_mixture_draws_by_position_in_chunks_too():
    rng = np.random.default_rng(4)
    p = rng.random((200, 3)).round(1)
    y = (rng.random((200, 3)) < p).astype(int)
    call = {"average": "instance", "strategy": mw.Strategy(confusion="labels", recalibrate=False, randomized=True)}
    whole = mw.optimize(p, y, "min_recall", **call)
    with served_by("chunks of 3"):
        pieces = mw.optimize(p, y, "min_recall", **call)
    assert pieces.value == pytest.approx(whole.value, abs=1e-12)


# ------------------------------------------------------------------------------------------------ logits and scores


def draw_inputs(n_rows, n_classes, seed=0):
    """Return logits (N, K), and labels by name."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(n_rows, n_classes)) * 2 - 3
    return logits, np.array(["high", "low", "mid"])[worlds.draw_codes(softmax(logits, axis=1), rng)]


def as_input(logits, kind):
    """Return logits as one of the inputs of `optimize`."""
    return {"logits": logits, "log_proba": log_softmax(logits, axis=-1), "scores": 3 * logits + 7}[kind]


class OnDevice:
    """What a tensor of a device can do: rows at a time, no array of all."""

    def __init__(self, array):
        self.array, self.shape, self.dtype, self.ndim = array, array.shape, f"torch.{array.dtype}", array.ndim

    def __len__(self):
        return len(self.array)

    def __getitem__(self, rows):
        return OnDevice(self.array[rows])

    def detach(self):
        return self

    def resolve_neg(self):
        return self

    def cpu(self):
        return self

    def numpy(self):
        return self.array

    def __dlpack_device__(self):
        return (2, 0)

    def __dlpack__(self, **kwargs):
        raise BufferError("on a device")


def to_parquet(array, y, folder):
    """Return a table on disk, read some rows at a time, and the name of its column of labels."""
    columns = {f"z_{label}": column for label, column in zip(["high", "low", "mid"], array.T, strict=True)}
    pq.write_table(pa.table({**columns, "grade": y}), folder / "rows.parquet", row_group_size=50)
    return mw.Table(folder / "rows.parquet", proba_prefix="z_"), "grade"


def to_csv(array, y, folder):
    frame = pd.DataFrame(array, columns=["high", "low", "mid"]).assign(grade=y)
    frame.to_csv(folder / "rows.csv", index=False)
    return mw.Table(folder / "rows.csv"), "grade"


def to_npy(array, y, folder):
    np.save(folder / "rows.npy", array)
    return folder / "rows.npy", y


def to_frame(array, y, folder):
    return pd.DataFrame(array, columns=["high", "low", "mid"])[["mid", "high", "low"]], y


def to_polars(array, y, folder):
    return pl.DataFrame({"low": array[:, 1], "mid": array[:, 2], "high": array[:, 0]}), y


def to_dask(array, y, folder):
    return da.from_array(array, chunks=(70, 2)), da.from_array(y, chunks=70)


def to_dask_frame(array, y, folder):
    frame = dd.from_pandas(to_frame(array, y, folder)[0].assign(grade=y), npartitions=3)
    return frame[["mid", "high", "low"]], frame["grade"]


def to_device(array, y, folder):
    return OnDevice(array), y


READERS = [to_parquet, to_csv, to_npy, to_frame, to_polars, to_dask, to_dask_frame, to_device]


def solve(proba, y, kind):
    return mw.optimize(proba, y, "macro_f1", input=kind, strategy=mw.Strategy(confusion="labels", recalibrate=True))


@pytest.mark.parametrize("kind", ["logits", "log_proba", "scores"])
@pytest.mark.parametrize("reader", READERS)
def test_inputs_are_those_of_rows_in_memory(reader, kind, tmp_path, monkeypatch):
    """The map of scores is fitted to a sample of the rows, the same one wherever they are."""
    monkeypatch.setattr("metricwise.api.problems.LINK_ROWS", 100)
    logits, y = draw_inputs(210, 3)
    array = as_input(logits, kind)
    whole = solve(array, y, kind)
    proba, labels = reader(array, y, tmp_path)
    other = solve(proba, labels, kind)
    np.testing.assert_allclose(other.rule.link.temperature, whole.rule.link.temperature, rtol=1e-9)
    np.testing.assert_allclose(other.rule.link.bias, whole.rule.link.bias, rtol=1e-9, atol=1e-9)
    assert (other.value, other.baseline) == pytest.approx((whole.value, whole.baseline), abs=1e-12)
    assert other.rule.input == kind
    decided = whole.rule.predict(array)
    if reader in (to_parquet, to_csv):
        mw.predict_table(other.rule, proba, tmp_path / "decided.parquet")
        np.testing.assert_array_equal(pq.read_table(tmp_path / "decided.parquet").column(0).to_pylist(), decided)
        return
    rows = array if reader is to_npy else proba
    np.testing.assert_array_equal(np.asarray(other.rule.predict(rows)), decided)


@pytest.mark.parametrize("kind", ["logits", "scores"])
@pytest.mark.parametrize("engine", ["chunks of 1000", "parquet", "dask"])
@pytest.mark.parametrize("shape", ["binary", "multilabel", "several outputs"])
def test_default_calls_on_inputs_agree(engine, kind, shape):
    logits, y = draw_inputs(240, 2, seed=3)
    odds, codes = as_input(logits[:, 1] - logits[:, 0], kind), (y == "low").astype(int)
    others, others_y = draw_inputs(240, 3, seed=4)
    several = [as_input(logits, kind), as_input(others, kind)]
    proba, labels, options = {
        "binary": (odds, codes, {}),
        "multilabel": (np.column_stack([odds, odds[::-1]]), np.column_stack([codes, codes[::-1]]), {}),
        "several outputs": (several, np.column_stack([y, others_y]), {"average": "macro"}),
    }[shape]
    metric = "balanced_accuracy" if shape == "several outputs" else "f1"
    whole = mw.optimize(proba, labels, metric, input=kind, **options)
    with served_by(engine):
        pieces = mw.optimize(proba, labels, metric, input=kind, **options)
    np.testing.assert_array_equal(pieces.rule.predict(proba), whole.rule.predict(proba))
    assert pieces.value == pytest.approx(whole.value, abs=1e-12)
    assert pieces.baseline == pytest.approx(whole.baseline, abs=1e-12)
    assert pieces.gain.estimate == pytest.approx(whole.gain.estimate, abs=1e-9)
    np.testing.assert_allclose(pieces.rule.link.bias, whole.rule.link.bias, rtol=1e-9, atol=1e-9)


def test_a_row_that_is_refused_is_named_by_its_place_among_all_rows():
    logits, y = draw_inputs(210, 3)
    logits[150, 1] = np.nan
    with pytest.raises(ValueError, match="scores must not be NaN, got NaN in row 150"):
        solve(da.from_array(logits, chunks=(70, 3)), da.from_array(y, chunks=70), "scores")


# ------------------------------------------------------------------------------------------------------------- rows


@given(seed=seeds, layout=st.sampled_from(["binary", "array"]), linked=st.booleans())
def test_resamples_in_one_pass_are_resamples_one_by_one(seed, layout, linked):
    rng = np.random.default_rng(seed)
    proba, codes = rows_in_layout(rng, layout)
    weights = rng.integers(0, 3, (4, len(codes))).astype(float)
    k = proba.width
    losses = [tuple(rng.normal(size=(2, 1, k))), (rng.normal(size=(1, k, k)),)]
    rows = Rows(proba, codes, weights)
    if linked:
        rows = rows.behind(kernels.LinkArrays(np.array([0.5, 2.0]), rng.normal(size=(2, k)), 1e-6))
    ((block, _),) = rows.blocks()
    for count in (kernels.count_labels, kernels.count_expected):
        together = count(block, losses)
        assert together.shape == (4, 2, 2, k, k)
        for one, weight in zip(together, weights, strict=True):
            np.testing.assert_allclose(one, count(block._replace(weight=weight), losses), rtol=1e-13)
    np.testing.assert_array_equal(rows.tally(), [Rows(proba, codes, weight).tally() for weight in weights])
    some = rows.take(slice(5, 20))
    assert some.weight.shape == (4, 15)
    assert some.start == 5


def test_chunks_need_a_size():
    proba, codes = rows_in_layout(np.random.default_rng(0), "array")
    whole = MemorySource(Rows(proba, codes), Schema.of_codes(proba.n_classes))
    with pytest.raises(ValueError, match=r"ChunkedSource.of: n_rows must be at least 1, got 0"):
        ChunkedSource.of(whole, 0)


# ------------------------------------------------------------------------------------------ decisions that are no class


@pytest.mark.parametrize("engine", ["memory", "chunks of 3"])
@pytest.mark.parametrize("confusion", ["labels", "expected"])
@examples(50)
@given(seed=seeds, layout=st.sampled_from(["binary", "array", "list"]), weighted=st.booleans(), full=st.booleans())
def test_one_more_decision_is_counted_as_by_hand(engine, confusion, seed, layout, weighted, full):
    """Abstaining costs the same whatever the class: all of its scores are that cost times the sum of the row."""
    rng = np.random.default_rng(seed)
    proba, codes = rows_in_layout(rng, layout, 23)
    sizes, k = proba.n_classes, proba.width
    weight = rng.integers(1, 4, len(codes)) / 2 if weighted else None
    schema = Schema(Schema.of_codes(sizes).classes, multioutput=True, n_extra=1)
    oracle = Counts(source(Rows(proba, codes, weight), schema, engine), confusion)
    assert oracle.n_classes.tolist() == (sizes + 1).tolist()
    tensor = rng.random((len(sizes), k + 1, k + 1)).round(1)
    for m, size in enumerate(sizes):
        tensor[m, :, size] = 0.3
    loss = Loss(full=tensor) if full else Loss(diagonal=-tensor[:, 0], offset=np.full((len(sizes), k + 1), 0.1))
    by_hand = np.zeros((len(sizes), k + 1, k + 1))  # no row is of the decision that is no class
    for m, size in enumerate(sizes):
        eta = proba.output(m)[:, 0]
        eta = np.stack([1 - eta, eta], axis=1) if eta.ndim == 1 else eta[:, :size]
        if full:
            scores = np.zeros((len(eta), size + 1))
            for i in range(size):  # in order, as scores are defined
                scores += eta[:, i : i + 1] * tensor[m, i, : size + 1]
        else:
            total = np.zeros(len(eta))
            for i in range(size):
                total += eta[:, i]
            total = np.ones(len(eta)) if layout == "binary" else total
            padded = np.column_stack([eta, np.zeros(len(eta))])
            scores = padded * loss.diagonal[m, : size + 1] + total[:, None] * loss.offset[m, : size + 1]
        decided = scores.argmin(axis=1)
        mass = np.ones(len(eta)) if weight is None else weight
        seen = codes[:, m] >= 0
        for i in range(size):
            share = (codes[:, m] == i).astype(float) if confusion == "labels" else eta[:, i] * seen
            by_hand[m, i] = np.bincount(decided, mass * share, minlength=k + 1)
        by_hand[m] /= by_hand[m].sum()
    got = oracle.confusions([loss])[0]
    assert got.shape == by_hand.shape
    np.testing.assert_allclose(got, by_hand, atol=1e-12)
    np.testing.assert_allclose(got.sum(axis=2), oracle.priors, atol=1e-12)
    hits, shares = np.moveaxis(oracle.shares([loss])[0], 1, 0)
    np.testing.assert_allclose(shares, by_hand.sum(axis=1), atol=1e-12)
    np.testing.assert_allclose(hits, np.diagonal(by_hand, axis1=1, axis2=2), atol=1e-12)
    check_walk(oracle, rng, len(sizes), k)


def check_walk(oracle, rng, n_outputs, k):
    """Functionals along a line are those of the counts at points of it."""
    # Not rounded: where two lines are one but for the last bit, the walk and the count may each take the other.
    constant, slope = (Loss(full=rng.normal(size=(1, k + 1, k + 1))) for _ in range(2))
    functionals = rng.random((1, 2, k + 1, k + 1))
    line = Line(np.zeros(n_outputs, dtype=np.intp), np.ones(n_outputs), constant, slope, functionals)
    walk = oracle.walk(line, 1e-9)
    wide = np.flatnonzero(walk.upper - walk.lower > 1e-6)  # between closer changes rounding decides
    some = rng.permutation(wide)[:4]
    for g, values in zip(walk.interior(some), walk.values[some], strict=True):
        C = oracle.confusions([constant.map(lambda a, b, g=g: a + g * b, slope)])[0]
        np.testing.assert_allclose(values, np.einsum("fij,mij->f", functionals[0], C), atol=1e-9)
