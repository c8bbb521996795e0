"""A Dask cluster of real processes: workers that die, come late, or are all lost."""

import logging
import os
import signal
import threading
import time

import dask.array as da
import numpy as np
import pytest
from distributed import Client, LocalCluster

import metricwise as mw
import worlds
from engines import served_by
from laws.engine_promises import check_agreement
from laws.solver_promises import check_path

RECIPE = {"confusion": "labels", "recalibrate": False}


def start(n_workers=2):
    return LocalCluster(
        n_workers=n_workers,
        threads_per_worker=1,
        processes=True,
        dashboard_address=":0",
        silence_logs=logging.CRITICAL,
    )


@pytest.fixture(scope="module")
def cluster():
    with start() as cluster, Client(cluster):
        yield cluster


def draw(n=600, seed=0):
    return worlds.multiclass(n, [0.4, 1.0, 0.6], sharpen=2, seed=seed)


def chunks(eta, y, block=None):
    lazy = da.from_array(eta, chunks=(100, 3))
    return (lazy if block is None else lazy.map_blocks(block, meta=eta[:0])), da.from_array(y, chunks=100)


def check(found, whole):
    assert found.value == pytest.approx(whole.value, abs=1e-12)
    assert found.n_passes == whole.n_passes


def test_a_default_call_and_lazy_predictions(cluster):
    eta, y = draw()
    whole = mw.optimize(eta, y, "macro_f1")
    lazy, labels = chunks(eta, y)
    lazy, labels = lazy.persist(), labels.persist()
    found = mw.optimize(lazy, labels, "macro_f1")
    check(found, whole)
    assert found.gain.estimate == pytest.approx(whole.gain.estimate, abs=1e-12)
    np.testing.assert_array_equal(found.rule.predict(lazy).compute(), whole.rule.predict(eta))


@pytest.mark.parametrize("metric", ["accuracy", "micro_f1", "g_mean"])
@pytest.mark.parametrize("confusion", ["labels", "expected"])
def test_solvers_of_every_form(cluster, metric, confusion):
    eta, y = draw(90, seed=1)
    call = {"metric": metric, "strategy": mw.Strategy(confusion=confusion, recalibrate=True)}
    whole = mw.optimize(eta, y, **call)
    with served_by("dask"):
        check(mw.optimize(eta, y, **call), whole)


@pytest.mark.parametrize("confusion", ["labels", "expected", "blended"])
@pytest.mark.parametrize("layout", ["binary", "array", "list"])
def test_the_laws_of_engines(cluster, confusion, layout):
    for options in ((False, False, False), (True, True, True)):
        check_agreement("dask", confusion, 3, layout, options)


@pytest.mark.parametrize("name", ["f1", "quadratic_kappa"])
@pytest.mark.parametrize("average", ["micro", "macro"])
def test_the_best_of_everything_there_is(cluster, name, average):
    rng = np.random.default_rng(5)
    with served_by("dask"):
        for _ in range(2):
            check_path(worlds.random_tiny(rng, max_outputs=2), name, average)


def test_a_worker_killed_in_the_middle_of_a_pass(cluster, tmp_path):
    eta, y = draw(seed=2)
    whole = mw.optimize(eta, y, "macro_f1", strategy=mw.Strategy(**RECIPE))
    left = tmp_path / "lives"
    left.write_text("2")

    def fatal(block):
        lives = int(left.read_text())
        if lives and block[0, 0] == eta[300, 0]:
            left.write_text(str(lives - 1))
            os.kill(os.getpid(), signal.SIGKILL)
        return block

    check(mw.optimize(*chunks(eta, y, fatal), "macro_f1", strategy=mw.Strategy(**RECIPE)), whole)
    assert left.read_text() == "0"


def test_a_worker_that_comes_late(cluster):
    eta, y = draw(seed=3)
    whole = mw.optimize(eta, y, "macro_f1", strategy=mw.Strategy(**RECIPE))

    def slow(block):
        time.sleep(0.02)
        return block

    before = len(cluster.scheduler_info["workers"])
    late = threading.Timer(0.3, cluster.scale, [before + 1])
    late.start()
    try:
        check(mw.optimize(*chunks(eta, y, slow), "macro_f1", strategy=mw.Strategy(**RECIPE)), whole)
    finally:
        late.join()
        cluster.scale(2)


def test_an_error_of_a_worker_names_the_row(cluster):
    eta, y = draw(seed=4)
    eta[412, 2] = np.nan
    with pytest.raises(ValueError, match=r"optimize: proba must be finite, got NaN or infinity in row 412"):
        mw.optimize(*chunks(eta, y), "macro_f1")


def test_a_cluster_that_is_lost():
    eta, y = draw(seed=5)

    def slow(block):
        time.sleep(0.5)
        return block

    with start(1) as lost, Client(lost) as client:
        closing = threading.Timer(1.0, client.shutdown)
        closing.start()
        with pytest.raises(
            RuntimeError, match=r"The connection to the Dask cluster was lost during a pass .*call again"
        ):
            mw.optimize(*chunks(eta, y, slow), "macro_f1")
        closing.join()
