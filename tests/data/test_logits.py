"""Logits, log-probabilities and scores as they are read: what is refused, what infinite numbers mean, and no copies."""

import re
import tracemalloc
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.special import log_softmax, softmax

import metricwise as mw
import worlds
from metricwise.core.inputs import Input
from metricwise.core.probabilities import Probabilities
from metricwise.core.rows import Rows
from metricwise.data.probabilities import read_proba
from metricwise.kernels import LinkArrays

INF, NAN = np.inf, np.nan
LOGITS, LOG_PROBA, SCORES = map(Input.of, ("logits", "log_proba", "scores"))


def draw_logits(n_rows=400, sizes=(3,), seed=0, scale=2.0):
    """Return logits (N, K_m) of each output, all below 0 so that padding of 0 would be the largest, and labels."""
    rng = np.random.default_rng(seed)
    logits = [rng.normal(size=(n_rows, k)) * scale - 10 for k in sizes]
    return logits, np.column_stack([worlds.draw_codes(softmax(z, axis=1), rng) for z in logits])


def padded(arrays, padding):
    """Return arrays (N, K_m) as one (N, M, K)."""
    out = np.full((len(arrays[0]), len(arrays), max(z.shape[1] for z in arrays)), padding)
    for m, z in enumerate(arrays):
        out[:, m, : z.shape[1]] = z
    return out


# ----------------------------------------------------------------------------------------------------------- refusals

REFUSED = {
    "NaN logits": ([[0.5, 1.5], [NAN, 1.0]], LOGITS, "logits must not be NaN, got NaN in row 1; drop such rows"),
    "NaN score": ([0.5, 1.0, NAN], SCORES, "scores must not be NaN, got NaN in row 2"),
    "two certain": ([[3.0, 0, 1], [INF, 0, INF]], LOGITS, r"at most one class .* got two or more of \+inf in row 1"),
    "all impossible": ([[-INF, -INF]], SCORES, "scores must .* got -inf for every class in row 0"),
    "impossible probabilities": ([[-INF, -INF]], LOG_PROBA, "-inf for every class in row 0"),
    "sums": (
        [[-0.5, -0.5]],
        LOG_PROBA,
        r"sum to 1 \(within 0.01\) .* sum of 1.21306 in row 0",
    ),
    "a single column": ([-0.5, -0.7], LOG_PROBA, "of all classes, shape .* got a single column"),
    "probabilities": ([[0.2, 0.8], [0.5, 0.5]], LOGITS, "got rows .* which are probabilities"),
    "one class": ([[0.2], [0.3]], Input.of("log_proba"), "got a single column"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_such_numbers_is_refused(case):
    numbers, row_input, message = REFUSED[case]
    with pytest.raises(ValueError, match=message):
        read_proba(np.array(numbers), row_input=row_input)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_rows_are_counted_from_the_first_row_of_all(dtype):
    with pytest.raises(ValueError, match=r"got NaN in row 1002; drop"):
        read_proba(np.array([1, 2, NAN], dtype=dtype), row_input=LOGITS, first_row=1000)


@pytest.mark.parametrize("numbers", [[[0, 1, 0], [1, 0, 0]], [[0.0, 1.0]], [[0.0, 0.5]], [[0.2, 0.8], [0.3, 0.8]]])
def test_small_logits_that_need_not_be_probabilities_are_read(numbers):
    (block,) = read_proba(np.array(numbers), row_input=LOGITS).blocks
    np.testing.assert_array_equal(block[:, 0], numbers)


def test_probabilities_are_fine_scores():
    eta, y = worlds.multiclass(200, [1.0, 1.0, 1.0], seed=1)
    assert mw.optimize(eta, y, "accuracy", input="scores").baseline == pytest.approx((eta.argmax(axis=1) == y).mean())


@pytest.mark.parametrize("labelled", [True, False])
def test_single_columns_between_0_and_1_are_doubted(labelled):
    rng = np.random.default_rng(0)
    p = rng.random(200)
    y = (rng.random(200) < p).astype(int)
    options = {"y": y} if labelled else {"y": None, "classes": [0, 1]}
    with pytest.warns(UserWarning, match="all logits lie between 0 and 1, .* leave input='logits' out") as caught:
        mw.optimize(p, metric="f1", input="logits", **options)
    assert len(caught) == 1  # that argmax is often wrong follows from it
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mw.optimize(np.append(p, -0.1), metric="f1", input="logits", **{**options, "y": np.append(y, 0)})
        mw.optimize(p, y, "f1", input="scores")


@pytest.mark.parametrize("value", ["margins", None, 3, ["logits"]])
def test_other_inputs_are_refused(value):
    with pytest.raises(ValueError, match="optimize: input must be one of 'probabilities', 'logits', 'log_proba', 'sco"):
        mw.optimize([0.2, 0.8], [0, 1], "f1", input=value)


def test_scores_the_wrong_way_round_are_refused():
    (z,), y = draw_logits(sizes=(2,))
    with pytest.raises(ValueError, match=r"larger must mean more of the class, but the scores are .*; pass -scores"):
        mw.optimize(z[:, 0] - z[:, 1], y[:, 0], "f1", input="scores")
    several = np.column_stack([z[:, 1] - z[:, 0], z[:, 0] - z[:, 1]])
    with pytest.raises(ValueError, match="the scores of output 1 are smaller for rows of the class"):
        mw.optimize(several, np.repeat(y, 2, axis=1), "f1", input="scores")


def test_scores_need_labels():
    with pytest.raises(ValueError, match="y must be given if input='scores'"):
        mw.optimize([0.3, 2.0], None, "f1", input="scores", classes=[0, 1])


def test_labels_that_do_not_fit_go_before_wrong_numbers():
    with pytest.raises(ValueError, match="y"):
        mw.optimize(np.array([[NAN, 1.0], [0.5, 2.0]]), [0, 1, 1], "f1", input="logits")


def test_text_among_columns_of_logits_names_that_column_only():
    (z,), _ = draw_logits(20)
    frame = pd.DataFrame(z, columns=["a", "b", "c"]).assign(id="x")
    with pytest.raises(ValueError, match="'id'") as refused:
        mw.optimize(frame, None, "macro_f1", input="logits")
    assert not re.search("'[abc]' (is|are) no", str(refused.value))


# ---------------------------------------------------------------------------------------------------- infinite numbers


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("temperature", [1e-3, 1.0, 1e3])
def test_infinite_logits_are_certain_and_impossible_behind_any_link(dtype, temperature):
    z = np.array([[INF, 3, 9], [2, -INF, 1], [-INF, -INF, -9], [0, -INF, INF], [1, 2, 3]], dtype=dtype)
    proba = read_proba(z, row_input=LOGITS)
    bias = np.array([[-50.0, 60.0, 10.0]])
    (out,) = proba.linked(LinkArrays(np.array([temperature]), bias, 0.0)).recalibrated().blocks
    finite = np.where(z == INF, 0, np.where((z == INF).any(axis=1, keepdims=True), -INF, z)).astype(np.float64)
    np.testing.assert_allclose(out[:, 0], softmax(temperature * finite + bias, axis=1), rtol=1e-12, atol=0)
    assert (out[:, 0][finite == -INF] == 0).all()


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_infinite_log_odds(dtype):
    proba = read_proba(np.array([INF, -INF, 0], dtype=dtype), row_input=LOGITS)
    (out,) = proba.linked(LinkArrays(np.array([1e-3]), np.array([[30.0, -30.0]]), 0.0)).recalibrated().blocks
    np.testing.assert_allclose(out[:, 0], [1.0, 0.0, 1 / (1 + np.exp(60))], rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("kind", ["logits", "scores"])
def test_rows_with_infinite_numbers_are_fitted_and_decided(dtype, kind):
    (z,), y = draw_logits(300)
    z[::3, 2] = -INF
    z[1] = [INF, 0, 1]
    z = z.astype(dtype)
    solution = mw.optimize(z, y[:, 0], "macro_f1", input=kind, strategy=mw.Strategy(confusion="labels"))
    assert solution.rule.calibrated(z)[1].tolist() == [1, 0, 0]
    assert (solution.rule.calibrated(z)[::3, 2] == 0).all()
    assert np.isfinite([solution.value, solution.baseline]).all()


def test_the_most_negative_log_odds_are_told_apart_in_sums():
    """Rows with infinite numbers are as different as their other numbers are."""
    z = np.column_stack([np.full(50, -INF), np.linspace(0, 1, 50), np.linspace(5, 7, 50)])
    coordinates = Rows(read_proba(z, row_input=LOGITS)).coordinates()
    assert len(np.unique(coordinates[-1])) == 50


# -------------------------------------------------------------------------------------------- padding, shapes, dtypes


@pytest.mark.parametrize("padding", [0.0, -INF, NAN])
@pytest.mark.parametrize("kind", ["logits", "scores", "log_proba"])
def test_padding_of_outputs_with_fewer_classes_counts_for_nothing(padding, kind):
    logits, y = draw_logits(sizes=(3, 2, 4), scale=5.0)  # some beyond the floor of calibrations
    arrays = [log_softmax(z, axis=1) for z in logits] if kind == "log_proba" else logits
    options = {"input": kind, "average": "macro", "classes": [np.arange(k) for k in (3, 2, 4)]}
    listed = mw.optimize(arrays, y, "macro_f1", **options)
    array = mw.optimize(padded(arrays, padding), y, "macro_f1", **options)
    for first, second in zip(array.rule.loss.arrays, listed.rule.loss.arrays, strict=True):
        np.testing.assert_allclose(first, second, rtol=1e-9)  # sums of strided numbers differ in the last bits
    np.testing.assert_allclose(array.rule.link.bias, listed.rule.link.bias, rtol=1e-9, atol=1e-12)
    assert (array.value, array.baseline) == (listed.value, listed.baseline)
    assert array.gain.estimate == pytest.approx(listed.gain.estimate, abs=1e-9)
    np.testing.assert_array_equal(array.rule.predict(padded(arrays, padding)), listed.rule.predict(arrays))


def test_numbers_in_the_place_of_padding_are_refused():
    logits, y = draw_logits(50, sizes=(3, 2))
    with pytest.raises(ValueError, match="logits of output 1 must be 0 or -inf beyond its 2 classes"):
        mw.optimize(padded(logits, 3.0), y, "accuracy", input="logits", classes=[[0, 1, 2], [0, 1]])


@pytest.mark.parametrize("kind", ["single", "padded", "listed"])
def test_the_likeliest_class_is_that_of_the_mapped_logits(kind):
    rng = np.random.default_rng(3)
    sizes = np.array([2, 2]) if kind == "single" else np.array([3, 2])
    arrays = [rng.normal(size=(100, k)).round(1) - 4 for k in sizes]
    whole = {"single": padded(arrays, 0.0)[:, :, 1], "padded": padded(arrays, 0.0), "listed": arrays}[kind]
    proba = read_proba(whole, multioutput=True, classes=[np.arange(k) for k in sizes], row_input=LOGITS)
    link = LinkArrays(np.array([0.5, 2.0]), rng.normal(size=(2, sizes.max())), 0.0)
    mapped = proba.linked(link)
    for m, k in enumerate(sizes):
        z = np.column_stack([np.zeros(100), arrays[m][:, 1]]) if kind == "single" else arrays[m]
        expected = (link.temperature[m] * z + link.bias[m, :k]).argmax(axis=1)
        decided = np.concatenate([codes for codes, _ in mapped.likeliest()], axis=1)[:, m]
        np.testing.assert_array_equal(decided, expected)
        column = z[:, 1] - z[:, 0]
        if k == 2:
            np.testing.assert_allclose(mapped.positive_column(m), column, rtol=1e-15)
    for first, second in zip(mapped.recalibrated().blocks, mapped.mapped_logits().recalibrated().blocks, strict=True):
        np.testing.assert_allclose(first, second, rtol=1e-12)


def test_exceeding_a_distance_is_about_classes_and_not_about_padding():
    z = np.full((5, 2, 3), 100.0)
    z[:, 1, 2] = 0.0  # padding
    n_classes, link = np.array([3, 2]), LinkArrays(np.ones(2), np.zeros((2, 3)), 0.0)
    assert not Probabilities((z,), n_classes, link).exceeds(1.0)
    z[4, 1, 0] = 98.0
    assert Probabilities((z,), n_classes, link).exceeds(1.0)
    assert not Probabilities((z,), n_classes, link).exceeds(2.0)
    half = np.array([[6e4, -6e4]], dtype=np.float16)[:, None]
    assert Probabilities((half,), np.array([2]), LinkArrays(np.ones(1), np.zeros((1, 2)), 0.0)).exceeds(1e5)


@pytest.mark.parametrize("change", ["fortran", "reversed", "big endian", "strided", "read-only", "list"])
@pytest.mark.parametrize("kind", ["logits", "scores"])
def test_any_layout_gives_the_same_rule(change, kind, tmp_path):
    (z,), y = draw_logits(300)
    layouts = {
        "fortran": np.asfortranarray(z),
        "reversed": z[::-1].copy()[::-1],
        "big endian": z.astype(">f8"),
        "strided": np.repeat(z, 2, axis=1)[:, ::2],
        "list": z.tolist(),
    }
    if change == "read-only":
        np.save(tmp_path / "z.npy", z)
        layouts[change] = np.load(tmp_path / "z.npy", mmap_mode="r")
    whole = mw.optimize(z, y[:, 0], "macro_f1", input=kind)
    other = mw.optimize(layouts[change], y[:, 0], "macro_f1", input=kind)
    assert other.rule == whole.rule
    np.testing.assert_array_equal(other.rule.predict(layouts[change]), whole.rule.predict(z))


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.uint8, np.float16, np.float32])
@pytest.mark.parametrize("shape", ["single", "classes"])
def test_whole_numbers_are_logits_of_any_type(dtype, shape):
    (z,), y = draw_logits(300, sizes=(2,))
    z = (z + 25).round()
    z = z if shape == "classes" else z[:, 1]
    wide = mw.optimize(z, y[:, 0], "f1", input="logits")
    other = mw.optimize(z.astype(dtype), y[:, 0], "f1", input="logits")
    assert other.rule == wide.rule
    np.testing.assert_array_equal(other.predict(z.astype(dtype)), wide.predict(z))


# ------------------------------------------------------------------------------------------------------------- copies


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("shape", [(50,), (50, 3)])
def test_finite_logits_are_views_of_what_was_given(dtype, shape):
    z = np.random.default_rng(0).normal(size=shape).astype(dtype)
    z.flags.writeable = False
    for kind in (LOGITS, SCORES):
        (block,) = read_proba(z, row_input=kind).blocks
        assert np.shares_memory(block, z)
        assert block.dtype == dtype


def test_no_copy_of_many_logits_is_made():
    rng = np.random.default_rng(6)
    z = rng.normal(size=(450_000, 10)).astype(np.float32)  # more than are copied
    y = worlds.draw_codes(softmax(z, axis=1), rng)
    strategy = mw.Strategy(confusion="expected", recalibrate=True)
    tracemalloc.start()
    try:
        rule = mw.optimize(z, y, "macro_f1", input="logits", strategy=strategy).rule
        fitting = tracemalloc.get_traced_memory()[1]
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        rule.predict(z)
        predicting = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    assert fitting < 1.5 * z.nbytes, f"{fitting / 1e6:.0f} MB"  # float64 samples, and what they are drawn by
    assert predicting < z.nbytes, f"{predicting / 1e6:.0f} MB"  # codes and labels
