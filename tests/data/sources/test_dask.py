"""Dask collections: the answer of arrays in memory, with nothing large brought to the client."""

import functools
import gc
import pickle

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

import metricwise as mw
import worlds
from laws.engine_promises import check_agreement, check_samples
from metricwise.data.sources import dask as on_dask

RECIPE = {"confusion": "labels", "recalibrate": False}


@pytest.fixture(autouse=True)
def threads():
    """Two threads, whatever else is set up."""
    with dask.config.set(scheduler="threads", num_workers=2):
        yield


def draw(n=400, k=3, seed=0, power=2):
    return worlds.multiclass(n, np.linspace(0.4, 1, k), sharpen=power, seed=seed)


def same(one, other, tol=1e-12):
    assert one.value == pytest.approx(other.value, abs=tol)
    assert one.baseline == pytest.approx(other.baseline, abs=tol)
    assert one.n_passes == other.n_passes


@pytest.mark.parametrize("metric", ["macro_f1", "quadratic_kappa", "min_recall"])
def test_default_calls_agree_with_memory(metric):
    eta, y = draw()
    whole = mw.optimize(eta, y, metric)
    found = mw.optimize(da.from_array(eta, chunks=(90, 2)), da.from_array(y, chunks=130), metric)
    same(found, whole)
    assert found.gain.estimate == pytest.approx(whole.gain.estimate, abs=1e-12)
    np.testing.assert_array_equal(found.rule.predict(eta), whole.rule.predict(eta))


@pytest.mark.parametrize("confusion", ["labels", "expected", "blended"])
def test_counts_walks_and_samples_agree_with_memory(confusion):
    # The law of all engines, on fewer examples: a pass takes some milliseconds to start.
    for seed, layout in enumerate(["binary", "array", "list"]):
        options = (seed % 2 == 0, seed % 2 == 1, seed == 2)
        for of_logits in (False, True):
            check_agreement("dask", confusion, seed, layout, options, of_logits=of_logits)


def test_samples_are_the_same_rows():
    for of_logits in (False, True):
        check_samples("dask", of_logits=of_logits)


def test_weights_groups_and_missing_labels():
    eta, y = draw(seed=1)
    rng = np.random.default_rng(1)
    weight, groups = rng.integers(0, 4, len(y)).astype(float), rng.integers(0, 40, len(y)).astype(str)
    y = np.where(rng.random(len(y)) < 0.2, np.nan, y)
    options = {"sample_weight": weight, "groups": groups}
    whole = mw.optimize(eta, y, "macro_f1", **options)
    chunks = {name: da.from_array(values, chunks=77) for name, values in options.items()}
    found = mw.optimize(da.from_array(eta, chunks=(77, 3)), da.from_array(y, chunks=77), "macro_f1", **chunks)
    same(found, whole)
    in_memory = mw.optimize(da.from_array(eta, chunks=(77, 3)), y, "macro_f1", **options)  # cut like proba
    same(in_memory, whole)


def test_weights_that_count_rows():
    eta, y = draw(200)
    weight = np.random.default_rng(0).integers(0, 3, 200)
    counts = mw.Frequencies(weight)
    whole = mw.optimize(eta, y, "accuracy", sample_weight=counts)
    lazy = da.from_array(eta, chunks=60), da.from_array(y, chunks=60)
    same(mw.optimize(*lazy, "accuracy", sample_weight=counts), whole)
    with pytest.raises(ValueError, match=r"sample_weight must hold whole numbers"):
        mw.optimize(*lazy, "accuracy", sample_weight=mw.Frequencies(weight / 2))


@pytest.mark.parametrize("form", ["multilabel", "array", "list"])
def test_several_outputs(form):
    rng = np.random.default_rng(2)
    p = rng.random((150, 3))
    y = (rng.random((150, 3)) < p).astype(int)
    eta = {"multilabel": p, "array": np.stack([1 - p, p], axis=2), "list": [np.stack([1 - c, c], axis=1) for c in p.T]}
    whole = mw.optimize(eta[form], y, "f1", average="macro", strategy=mw.Strategy(**RECIPE))
    chunks = (
        [da.from_array(one, chunks=(40, 1)) for one in eta[form]] if form == "list" else da.from_array(eta[form], 40)
    )
    found = mw.optimize(chunks, da.from_array(y, chunks=(40, 2)), "f1", average="macro", strategy=mw.Strategy(**RECIPE))
    same(found, whole)
    predicted = found.rule.predict(chunks)
    assert isinstance(predicted, da.Array)
    assert predicted.shape == y.shape
    np.testing.assert_array_equal(predicted.compute(), whole.rule.predict(eta[form]))


def test_data_frames_by_the_names_of_their_columns():
    eta, codes = draw(300, seed=3)
    classes = np.array(["high", "low", "mid"])
    frame = pd.DataFrame(eta, columns=classes)[["mid", "high", "low"]]
    frame["grade"] = classes[codes]
    lazy = dd.from_pandas(frame, npartitions=4)
    probabilities = ["mid", "high", "low"]
    whole = mw.optimize(frame[probabilities], frame["grade"], "macro_f1")
    found = mw.optimize(lazy[probabilities], lazy["grade"], "macro_f1")
    same(found, whole)
    predicted = found.rule.predict(lazy[probabilities])
    assert predicted.divisions == lazy.divisions
    pd.testing.assert_index_equal(predicted.compute().index, frame.index)
    np.testing.assert_array_equal(predicted.compute(), whole.rule.predict(frame[probabilities]))


def test_an_ordered_categorical_keeps_its_order():
    eta, codes = draw(200, seed=4)
    scale = ["low", "mid", "high"]
    y = pd.Series(pd.Categorical.from_codes(codes, scale, ordered=True))
    frame = pd.DataFrame(eta, columns=scale)
    whole = mw.optimize(frame, y, "quadratic_kappa", strategy=mw.Strategy(**RECIPE))
    found = mw.optimize(
        dd.from_pandas(frame, 3), dd.from_pandas(y, 3), "quadratic_kappa", strategy=mw.Strategy(**RECIPE)
    )
    same(found, whole)


def test_several_outputs_of_a_data_frame():
    rng = np.random.default_rng(5)
    p = pd.DataFrame(rng.random((120, 2)), columns=["news", "sport"])
    y = (pd.DataFrame(rng.random((120, 2)), columns=p.columns) < p).astype(int)
    whole = mw.optimize(p, y, "f1", average="macro", strategy=mw.Strategy(**RECIPE))
    found = mw.optimize(
        dd.from_pandas(p, 3), dd.from_pandas(y, 3), "f1", average="macro", strategy=mw.Strategy(**RECIPE)
    )
    same(found, whole)
    predicted = found.rule.predict(dd.from_pandas(p, 3)).compute()
    assert list(predicted.columns) == ["news", "sport"]
    np.testing.assert_array_equal(predicted, whole.rule.predict(p))


def test_without_labels():
    eta, _ = draw(100)
    whole = mw.optimize(eta, None, "macro_f1")
    same(mw.optimize(da.from_array(eta, chunks=30), None, "macro_f1"), whole, 1e-9)


def test_empty_chunks_and_a_class_that_appears_late():
    eta, y = draw(120, seed=6)
    order = np.argsort(y, kind="stable")  # the last class is in the last chunk alone
    eta, y = eta[order], y[order]
    frame = pd.DataFrame(eta, columns=["0", "1", "2"]).assign(y=y)
    lazy = dd.concat([dd.from_pandas(frame, npartitions=4), dd.from_pandas(frame, npartitions=4)[lambda f: f["y"] > 5]])
    assert (lazy.map_partitions(len).compute() == 0).sum() == 4
    whole = mw.optimize(frame[["0", "1", "2"]], frame["y"], "macro_f1", strategy=mw.Strategy(**RECIPE))
    found = mw.optimize(lazy[["0", "1", "2"]], lazy["y"], "macro_f1", strategy=mw.Strategy(**RECIPE))
    same(found, whole)
    assert len(found.rule.predict(lazy[["0", "1", "2"]]).compute()) == 120
    # The same as arrays, whose chunks do not tell their size.
    array, labels = lazy[["0", "1", "2"]].to_dask_array(), lazy["y"].to_dask_array()
    same(mw.optimize(array, labels, "macro_f1", strategy=mw.Strategy(**RECIPE)), whole)
    assert len(found.rule.predict(array).compute()) == 120


def test_a_mixture_draws_by_position():
    eta, y = draw(300, seed=7)
    rule = mw.optimize(
        eta, y, "min_recall", strategy=mw.Strategy(confusion="expected", recalibrate=False, randomized=True)
    ).rule
    assert isinstance(rule, mw.MixtureRule)
    lazy = da.from_array(eta, chunks=70)
    np.testing.assert_array_equal(rule.predict(lazy).compute(), rule.predict(eta))
    np.testing.assert_array_equal(rule.predict(lazy, start=5).compute(), rule.predict(eta, start=5))
    frame = dd.from_pandas(pd.DataFrame(eta), 2)
    with pytest.raises(TypeError, match=r"draws by row position.*to_dask_array\(lengths=True\)"):
        rule.predict(frame)
    with pytest.raises(ValueError, match=r"draws by row position.*compute_chunk_sizes"):
        rule.predict(frame.to_dask_array())


def test_draws_of_a_collection_begin_where_they_are_told():
    always = [mw.WeightedRule.from_thresholds(threshold) for threshold in (-np.inf, np.inf)]
    rule = mw.MixtureRule(tuple(always), np.array([0.5, 0.5]))
    p = np.linspace(0.1, 0.9, 50)
    lazy = da.from_array(p, chunks=20)
    assert not np.array_equal(rule.predict(p, start=5), rule.predict(p))
    np.testing.assert_array_equal(rule.predict(lazy, start=5).compute(), rule.predict(p, start=5))


def test_predicting_computes_nothing_and_keeps_chunks():
    asked = []

    def block(x):
        asked.append(len(x))
        return x

    eta, y = draw(100)
    rule = mw.optimize(eta, y, "macro_f1", strategy=mw.Strategy(**RECIPE)).rule
    lazy = da.from_array(eta, chunks=(30, 3)).map_blocks(block, meta=eta[:0])
    predicted = rule.predict(lazy)
    assert asked == []
    assert predicted.chunks == ((30, 30, 30, 10),)
    assert predicted.dtype == rule.predict(eta).dtype
    np.testing.assert_array_equal(predicted.compute(), rule.predict(eta))


def test_a_pass_brings_little_to_the_client_and_sends_little(monkeypatch):
    """Of 60,000 rows a default call brings samples, and no chunk; what is asked carries no rows along."""
    eta, y = draw(60_000, 4)
    asked, brought = [], []
    own = on_dask.compute, on_dask._Question

    def compute(task):
        value = own[0](task)
        brought.append(len(pickle.dumps(value)))
        return value

    def question(changes, ask, add):
        import cloudpickle

        made = own[1](changes, ask, add)
        asked.append(len(cloudpickle.dumps(made)))
        return made

    monkeypatch.setattr(on_dask, "compute", compute)
    monkeypatch.setattr(on_dask, "_Question", question)
    mw.optimize(da.from_array(eta, chunks=10_000), da.from_array(y, chunks=10_000), "macro_f1")
    sample = 20_000 * (4 * 8 + 8 + 8 + 1)  # probabilities, weights, frequencies, codes
    assert max(brought) < 1.5 * sample < eta.nbytes
    large = [size for size in brought if size > 50_000]

    assert len(large) <= 4
    assert max(asked) < 200_000


@pytest.mark.parametrize(
    "options",
    [
        {"metric": "macro_f1"},
        {"metric": "macro_f1", "sample_weight": da.full(400, 2.0, chunks=100)},
        {"metric": "recall[0]", "subject_to": "recall[1] >= 0.4"},
        {"metric": "macro_f1", "subject_to": "demographic_parity <= 0.6", "sensitive_features": da.arange(400) % 2},
    ],
)
def test_no_lock_is_held_while_a_pass_is_waited_for(monkeypatch, options):
    """Properties of Python 3.11 have a lock that all instances share: another call, in a task of Dask, may wait for it
    and take the place of a worker that the pass needs."""
    eta, y = draw()
    rows = da.from_array(eta, chunks=100), da.from_array(y, chunks=100)
    mw.optimize(*rows, **options)  # imports what it needs
    properties = [value for value in gc.get_objects() if isinstance(value, functools.cached_property)]
    compute, held = on_dask.compute, set()

    def watched(task):
        held.update(each.func.__qualname__ for each in properties if hasattr(each, "lock") and each.lock._is_owned())
        return compute(task)

    monkeypatch.setattr(on_dask, "compute", watched)
    mw.optimize(*rows, **options)
    assert len(properties) > 50
    assert not held


# ------------------------------------------------------------------------------------------------------ what is refused


def test_a_row_that_is_no_distribution_is_named_by_its_place_in_the_whole():
    eta, y = draw(100)
    eta[73, 1] = np.nan
    with pytest.raises(ValueError, match=r"optimize: proba must be finite, got NaN or infinity in row 73"):
        mw.optimize(da.from_array(eta, chunks=30), da.from_array(y, chunks=30), "macro_f1")


@pytest.mark.parametrize(
    ("change", "error", "match"),
    [
        ({"y": da.zeros(90, chunks=30)}, ValueError, r"y must have as many rows as proba, 100, got 90"),
        ({"y": np.zeros(90)}, ValueError, r"y must have as many rows as proba, 100, got 90"),
        (
            {"y": dd.from_pandas(pd.Series(range(100)), 2)},
            ValueError,
            r"y must have the same chunks as proba, 4, got 2",
        ),
        (
            {"y": dd.from_pandas(pd.Series(range(80)), 4)},
            ValueError,
            r"y must have as many rows as proba in every chunk",
        ),
        ({"y": "grade"}, ValueError, r"y must be a Dask collection or an array, not the name .* pass proba\['grade'\]"),
        ({"y": [da.zeros(100, chunks=30)] * 2}, ValueError, r"y must be one Dask collection, got a list of 2"),
        (
            {"proba": [da.zeros((100, 3), chunks=30), np.zeros((100, 3))]},
            ValueError,
            r"proba must be Dask collections, all of them, got a list of 2",
        ),
        ({"sample_weight": da.full(100, -1.0)}, ValueError, r"sample_weight must be non-negative, got -1"),
        ({"sample_weight": da.zeros(100)}, ValueError, r"no observed label has a positive weight"),
        ({"sample_weight": da.full(100, 1e200)}, ValueError, r"sample_weight must have a sum between"),
        ({"groups": mw.InTime(np.arange(100))}, ValueError, r"InTime needs all rows in memory"),
        ({"y": da.zeros(100, chunks=30)}, ValueError, r"y must have at least two classes|distinct labels"),
        ({"proba": da.zeros((0, 3))}, ValueError, r"proba must have at least one row, got none"),
    ],
)
def test_refusals(change, error, match):
    eta, y = draw(100)
    call = {"proba": da.from_array(eta, chunks=30), "y": da.from_array(y, chunks=30), "metric": "macro_f1", **change}
    if getattr(call["proba"], "shape", (1,))[0] == 0:
        call["y"] = da.zeros(0)
    with pytest.raises(error, match=match):
        mw.optimize(**call)


def test_what_needs_rows_in_memory_refuses_a_collection():
    eta, y = draw(100)
    lazy, labels = da.from_array(eta, chunks=30), da.from_array(y, chunks=30)
    rule = mw.optimize(eta, y, "macro_f1", strategy=mw.Strategy(**RECIPE)).rule
    with pytest.raises(TypeError, match=r"optimize: y must be in memory, got a Dask Array; pass y.compute\(\)"):
        mw.optimize(eta, labels, "macro_f1")
    with pytest.raises(TypeError, match=r"evaluate: y must be in memory, got a Dask Array; pass y.compute\(\)"):
        mw.evaluate(rule, eta, labels, ["accuracy"])
    with pytest.raises(TypeError, match=r"Table: data must be a table .* got a Dask collection; .* use rule.predict"):
        mw.predict_table(rule, lazy, "decisions.parquet")
    with pytest.raises(TypeError, match=r"WeightedRule.distribution: proba must be in memory"):
        rule.distribution(lazy)
