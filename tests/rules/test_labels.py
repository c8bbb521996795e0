"""Rules for very many labels: sparse and dense rows are decided alike, by definition, and files are compact."""

import base64
import json
import time
import tracemalloc
import zlib

import jsonschema
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import metricwise as mw
from metricwise.core.errors import InvalidParameter, InvalidType
from metricwise.core.label_rows import MAX_LABELS
from metricwise.rules import LabelRule, LabelSetRule, load_rule
from profiles import examples

F1 = {"numerator": (2, 0, 0, 0), "denominator": (0, 1, 1, 0)}


def stored(seed, n_rows=25, n_labels=9, share=0.4, dtype=np.float64):
    """Rows in eighths, where many scores tie; some store nothing."""
    rng = np.random.default_rng(seed)
    dense = np.where(rng.random((n_rows, n_labels)) < share, rng.integers(0, 9, (n_rows, n_labels)) / 8, 0.0)
    dense[rng.random(n_rows) < 0.2] = 0.0
    return dense.astype(dtype)


def by_definition(dense, scale, offset, budget):
    """The decisions about rows (N, M), label by label."""
    out = np.zeros(dense.shape, dtype=int)
    for n, row in enumerate(dense.astype(float)):
        scores = [a * p + b for a, p, b in zip(scale, row, offset, strict=True)]
        order = sorted(range(len(row)), key=lambda m: (-scores[m], m))
        low, high = (0, len(row)) if budget is None else budget
        for rank, m in enumerate(order):
            out[n, m] = rank < low or (rank < high and scores[m] > 0)
    return out


budgets = st.none() | st.tuples(st.integers(0, 4), st.integers(1, 9)).map(lambda pair: (min(pair), max(pair)))


@st.composite
def rules(draw, n_labels=9, **fixed):
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    budget = draw(budgets)
    offset = rng.integers(-6, 1 if budget is None else 3, n_labels) / 8
    return LabelRule(rng.integers(-1, 5, n_labels) / 2, offset, budget, **fixed)


# ---------------------------------------------------------------------------------------------------------- decisions


@given(rules(), st.integers(0, 1000))
@examples(150)
def test_decisions_are_those_of_the_definition(rule, seed):
    dense = stored(seed)
    expected = by_definition(dense, rule.scale, rule.offset, rule.labels_per_row)
    np.testing.assert_array_equal(rule.predict(sparse.csr_array(dense)).toarray(), expected)
    np.testing.assert_array_equal(rule.predict(dense), expected)


@given(rules(temperature=0.7, bias=0.4), st.integers(0, 1000), st.sampled_from([np.float32, np.float64]))
@examples(60)
def test_recalibrated_rows_are_decided_alike_dense_and_sparse(rule, seed, dtype):
    dense = stored(seed, dtype=dtype)
    decided = rule.predict(sparse.csr_array(dense)).toarray()
    np.testing.assert_array_equal(rule.predict(dense), decided)
    calibrated = rule.calibrated(dense)
    assert calibrated.dtype == dtype
    np.testing.assert_array_equal(decided, by_definition(calibrated, rule.scale, rule.offset, rule.labels_per_row))


@pytest.mark.parametrize("make", [sparse.csr_array, sparse.csr_matrix])
@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil"])
def test_decisions_are_of_the_kind_of_the_rows(make, form):
    decided = LabelRule.top(2, 9).predict(make(stored(0)).asformat(form))
    assert type(decided) is make
    assert (decided.dtype, decided.shape) == (np.int8, (25, 9))
    assert set(decided.data) == {1}
    assert decided.has_canonical_format
    decided.check_format(full_check=True)


def test_rows_are_not_changed():
    csr = sparse.csr_array(stored(1))
    before = csr.copy()
    for rule in (LabelRule.top(2, 9), LabelRule(np.ones(9), np.zeros(9), 3, temperature=0.5, bias=1.0)):
        decided = rule.predict(csr)
        decided.data[:] = 0
        rule.calibrated(csr).data[:] = 0
        assert (csr != before).nnz == 0
        assert not np.shares_memory(decided.indices, csr.indices)


def test_many_rows_are_decided_in_parts(monkeypatch):
    dense = stored(3, n_rows=200)
    rule = LabelRule(np.ones(9), np.full(9, -0.5), (1, 3), temperature=0.8, bias=0.1)
    whole = rule.predict(sparse.csr_array(dense)).toarray()
    monkeypatch.setattr("metricwise.core.label_rows.LabelRows.chunks.__defaults__", (17,))
    np.testing.assert_array_equal(rule.predict(sparse.csr_array(dense)).toarray(), whole)


def test_rows_that_store_too_few_are_filled_up_by_the_largest_offsets():
    rule = LabelRule(np.ones(6), [-0.5, -0.25, -0.25, -0.5, -0.125, -0.5], (3, 4))
    proba = sparse.csr_array((np.array([0.9, 0.2]), np.array([4, 5]), np.array([0, 1, 1, 2])), shape=(3, 6))
    assert [row.nonzero()[0].tolist() for row in rule.predict(proba).toarray()] == [[1, 2, 4], [1, 2, 4], [1, 2, 4]]


def test_a_label_with_a_positive_offset_needs_no_entry():
    rule = LabelRule([1.0, 1.0, 1.0], [-0.5, 0.25, 0.125], 1)
    assert rule.predict(sparse.csr_array((1, 3))).toarray().tolist() == [[0, 1, 0]]


@pytest.mark.parametrize(
    "classes", [(0, 1), [0, 1], np.array([0, 1], dtype=np.uint8), (False, True), (np.arange(2),) * 3]
)
def test_classes_are_an_indicator(classes):
    rule = LabelRule.from_thresholds([0.5] * 3, classes=classes)
    pair = np.asarray(classes if np.ndim(classes) == 1 else classes[0])
    assert rule.classes[0].dtype == pair.dtype
    assert all(labels is rule.classes[0] for labels in rule.classes)
    assert rule.predict([[0.2, 0.7, 0.9]]).tolist() == [pair[[0, 1, 1]].tolist()]
    assert rule.predict(sparse.csr_array([[0.2, 0.7, 0.9]])).dtype == np.int8
    assert load_rule(rule.to_json()) == rule


@pytest.mark.parametrize("kind", ["logits", "scores"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_logits_that_are_not_stored_have_probability_0(kind, dtype):
    options = {"temperature": 2.0, "bias": -0.5} if kind == "scores" else {}
    rule = LabelRule(np.ones(3), np.full(3, -0.4), input=kind, **options)
    csr = sparse.csr_array((np.array([1.0, -9.0, np.inf, 0.0], dtype=dtype), [0, 1, 2, 0], [0, 3, 4]), shape=(2, 3))
    assert rule.predict(csr).toarray().tolist() == [[1, 0, 1], [kind == "logits", 0, 0]]
    assert rule.calibrated(csr).toarray()[1, 1:].tolist() == [0.0, 0.0]
    with np.errstate(divide="ignore"):
        np.testing.assert_array_equal(rule.predict(np.array([[1.0, -9.0, np.inf]], dtype=dtype)), [[1, 0, 1]])


def test_columns_of_frames_are_matched_by_name():
    rule = LabelRule.from_thresholds([0.1, 0.5, 0.9], output_names=["a", "b", "c"])
    assert rule.predict(pd.DataFrame({"c": [0.4], "a": [0.4], "b": [0.4]})).tolist() == [[1, 0, 0]]


def test_both_columns_and_the_other_class():
    rule, dense = LabelRule.from_thresholds([0.25, 0.5, 0.75], labels_per_row=2), stored(5, n_labels=3)
    expected = rule.predict(dense)
    both = np.stack([1 - dense, dense], axis=2)
    np.testing.assert_array_equal(rule.predict(both), expected)
    np.testing.assert_array_equal(rule.predict([both[:, m] for m in range(3)]), expected)
    np.testing.assert_array_equal(rule.predict(1 - dense, pos_label=0), expected)
    assert rule.predict(sparse.csr_array(dense), pos_label=1).toarray().tolist() == expected.tolist()


def test_factors_are_part_of_calibrated_probabilities():
    rule = LabelRule([1, 1], [0, 0], factor=[0.5, 4.0])
    assert rule.calibrated(np.array([[0.5, 0.125], [0.25, 0.5]])).tolist() == [[0.25, 0.5], [0.125, 1.0]]
    assert rule.calibrated(sparse.csr_array([[0.0, 0.125]])).toarray().tolist() == [[0.0, 0.5]]
    both = rule.calibrated(np.array([[[0.5, 0.5], [0.875, 0.125]]]))
    assert both.tolist() == [[[0.75, 0.25], [0.5, 0.5]]]


# ---------------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ([1, 1], [0.25, 0]),
            "offset must not be positive without labels_per_row=, because .*, got 0.25 for label 0; pass",
        ),
        (([1, 1], [0]), r"offset must have one number for each label, shape \(2,\), got shape \(1,\)"),
        (([[1, 1]], [0, 0]), r"scale must have one number for each label, shape \(M,\), got \[\[1, 1\]\]"),
        (([], []), "n_labels must be from 1 to 16,777,216, got 0"),
        (([1, np.nan], [0, 0]), "scale must be finite and at most 1e.100, got NaN, infinity or a larger number"),
        (([1, "a"], [0, 0]), "scale must be an array of numbers, got"),
        (([1, 1], [0, 0], 3), "labels_per_row must be at most the number of labels, 2, got 3"),
        (([1, 1], [0, 0], "2"), "labels_per_row must be the largest number of labels of a row"),
        (
            ([1, 1], [0, 0], None, 0.5),
            "bias must be a number, or left out together with the other of the two, got None",
        ),
        (([1, 1], [0, 0], None, -0.5, 0.0), "temperature must be positive, got -0.5"),
        (([1, 1], [0, 0], None, np.inf, 0.0), "temperature must be finite and at most 1e.100, got inf"),
        (([1, 1], [0, 0], None, True, 0.0), "temperature must be a number, or left out .*, got True"),
        (([1, 1], [0, 0], None, None, None, [1, -1]), "factor must be at least 0, got -1"),
        (
            ([1, 1], [0, 0], None, None, None, None, "log_proba"),
            "input must be one of .*, got 'log_proba'; pass log-odds",
        ),
        (
            ([1, 1], [0, 0], None, None, None, None, "scores"),
            "temperature must be given with bias if input='scores', .*, got None",
        ),
    ],
)
def test_what_is_no_rule_is_refused(arguments, sentence):
    with pytest.raises(InvalidParameter, match=f"^LabelRule: {sentence}"):
        LabelRule(*arguments)


@pytest.mark.parametrize(
    ("option", "sentence"),
    [
        (
            {"classes": (1, 0)},
            r"classes must be \(0, 1\) or \(False, True\), the same for all labels, got \(1, 0\); pass y as",
        ),
        ({"classes": ("no", "yes")}, "classes must be .*, got "),
        ({"classes": (0.0, 1.0)}, "classes must be .*, got "),
        ({"classes": (0, 1, 2)}, "classes must be .*, got "),
        ({"classes": 7}, "classes must be .*, got 7"),
        ({"classes": (np.arange(2), np.array([False, True]))}, "classes must be .*, got "),
        ({"classes": (np.arange(2),) * 3}, "classes must be one pair, or one for each of 2 labels, got 3 pairs"),
        ({"output_names": ["a"]}, "output_names must have one name per output, 2, got 1"),
        ({"linear": 1}, "linear must be True or False, got 1"),
        ({"label_weight": [1, -1]}, "label_weight must be at least 0, got -1"),
        ({"form": 3}, "form must be a mapping with numerator and denominator, got 3"),
        ({"form": {**F1, "x": 1}}, "form must have the fields .*, got "),
        ({"form": {**F1, "numerator": (1, 0, 0)}}, "form.numerator must have 4 numbers, of hits, .*, got"),
        ({"form": {**F1, "numerator": (0, 0, 0, 0)}}, "form.numerator must not be 0, got"),
        ({"form": {**F1, "denominator": (0, 0, 0, 0)}}, "form.denominator must not be 0, got"),
        ({"form": {**F1, "damped": 1}}, "form.damped must be True or False, got 1"),
        (
            {"form": {**F1, "damped": True, "pooled": True}},
            "form must have hits alone in its numerator, and not be pooled",
        ),
        ({"form": {**F1, "coverage": True, "pooled": True}}, "form must not be damped or pooled if it is coverage"),
    ],
)
def test_options_are_checked(option, sentence):
    with pytest.raises(InvalidParameter, match=f"^LabelRule: {sentence}"):
        LabelRule([1, 1], [0, 0], **option)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (
            lambda: LabelRule.from_thresholds(0.5),
            "LabelRule.from_thresholds: n_labels must be a number of labels from 1, got None",
        ),
        (
            lambda: LabelRule.from_thresholds([0.5, 1.5]),
            r"thresholds must be a number in \[0, 1\], or one for each label, got",
        ),
        (lambda: LabelRule.from_thresholds([]), "thresholds must be a number in"),
        (lambda: LabelRule.from_thresholds(["a"]), "thresholds must be a number in"),
        (lambda: LabelRule.from_thresholds([0.5, [1]]), "thresholds must be a number in"),
        (lambda: LabelRule.from_thresholds([0.5], 2), "n_labels must be the number of thresholds, 1, got 2"),
        (lambda: LabelRule.top(3, 2), "LabelRule.top: k must be at most the number of labels, 2, got 3"),
        (lambda: LabelRule.top(0, 2), "k must be a number of labels from 1, got 0"),
        (lambda: LabelRule.top(1, MAX_LABELS + 1), "n_labels must be from 1 to 16,777,216, got 16,777,217"),
    ],
)
def test_rules_by_hand_are_checked(make, sentence):
    with pytest.raises(InvalidParameter, match=sentence):
        make()


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda rule, p: rule.predict(p, cost=[[1]]), "cost must be left out"),
        (
            lambda rule, p: rule.predict(p, pos_label=0),
            "pos_label must be 1 or left out for sparse rows, .*, got 0; pass an",
        ),
        (lambda rule, p: rule.predict(p[:, :2]), r"proba must have 3 columns, one for each label, got shape \(1, 2\)"),
        (
            lambda rule, p: rule.predict(-p),
            "proba must be non-negative, got .*; use a rule that was fitted to logits or",
        ),
        (lambda rule, p: rule.distribution(p), "proba must be a dense array, got a sparse matrix"),
        (lambda rule, p: rule.with_prior([0.5, 0.5]), "rule must be for few outputs to follow class shares, which a"),
        (lambda rule, p: rule.adapted(p), "rule must be for few outputs to follow class shares, which a"),
        (lambda rule, p: rule.flatten(), "rule must decide all rows by the same losses"),
    ],
)
@pytest.mark.parametrize("rule", [LabelRule.top(1, 3), LabelSetRule(3)], ids=["labels", "sets"])
def test_what_a_rule_cannot_do_is_refused(rule, call, sentence):
    with pytest.raises(InvalidParameter, match=sentence):
        call(rule, sparse.csr_array([[0.5, 0.0, 0.25]]))


@pytest.mark.parametrize("export", [mw.export.to_sql, mw.export.to_onnx, mw.export.to_python])
def test_exports_name_what_they_cannot_write(export):
    with pytest.raises(
        InvalidType, match=r"rule must not be a LabelRule, because .* does not support labels_per_row, by which"
    ):
        export(LabelRule.top(1, 3))
    with pytest.raises(
        InvalidType, match="rule must not be a LabelRule, because exports do not support rules for very"
    ):
        export(LabelRule.from_thresholds([0.5, 0.2]))


# -------------------------------------------------------------------------------------------------------------- files


def packed_rule(n_labels=1500):
    rng = np.random.default_rng(0)
    scale, offset, factor, label_weight = rng.random((4, n_labels))
    options = {"form": {**F1, "damped": True}, "label_weight": label_weight, "metadata": {"metric": "f1"}}
    return LabelRule(scale, offset - 0.5, (1, 5), 0.5, -1e-17, factor, **options)


@pytest.mark.parametrize("n_labels", [2, 1000, 1001, 5000])
def test_files_hold_every_bit(n_labels):
    rule = packed_rule(max(n_labels, 5))
    document = json.loads(rule.to_json())
    assert isinstance(document["scale"], dict) == (rule.n_labels > 1000)
    again = load_rule(rule.to_json())
    assert again == rule
    assert (again.scale.tobytes(), again.offset.tobytes()) == (rule.scale.tobytes(), rule.offset.tobytes())
    assert again.form == rule.form
    assert again.metadata == rule.metadata
    jsonschema.Draft202012Validator(mw.export.rule_schema()).validate(document)


def test_arrays_are_little_endian_doubles():
    rule = packed_rule()
    packed = rule.to_dict()["scale"]
    assert (packed["dtype"], packed["n"]) == ("float64", 1500)
    numbers = np.frombuffer(zlib.decompress(base64.b64decode(packed["zlib_base64"])), dtype="<f8")
    np.testing.assert_array_equal(numbers, rule.scale)


def test_fields_that_are_left_out_have_their_defaults():
    document = LabelRule.from_thresholds([0.5, 0.25]).to_dict()
    absent = {"labels_per_row", "temperature", "bias", "factor", "form", "label_weight", "input"}
    assert not absent & set(document)
    assert document["classes"] == [0, 1]
    rule = load_rule(json.dumps(document))
    assert [getattr(rule, name) for name in sorted(absent - {"input"})] == [None] * 6
    assert rule.input == "probabilities"


def text_of(data):
    return base64.b64encode(data).decode()


GOOD, MORE = np.ones(1500).tobytes(), text_of(zlib.compress(np.ones(2000).tobytes()))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"dtype": "float32"}, "scale.dtype must be 'float64', got 'float32'"),
        ({"n": 1499}, "scale.zlib_base64 must hold 1499 numbers, compressed by zlib and .*, got more bytes"),
        ({"n": 1501}, "scale.zlib_base64 must hold 1501 numbers, .*, got fewer bytes"),
        ({"n": True}, "scale.n must be an integer, got True"),
        ({"n": 0}, "scale.n must be an integer from 1 to 16777216, got 0"),
        ({"n": 10**12}, "scale.n must be an integer from 1 to 16777216, got 1000000000000"),
        (
            {"n": 2000, "zlib_base64": MORE},
            "scale must have n_labels = 1500 numbers, got 2000",
        ),
        ({"zlib_base64": 7}, "scale.zlib_base64 must hold 1500 numbers, .*, got 7"),
        ({"zlib_base64": "ab c"}, "scale.zlib_base64 must hold .*, got a text that is neither, 'ab c'"),
        ({"zlib_base64": text_of(b"no zlib")}, "scale.zlib_base64 must hold .*, got a text that is neither"),
        ({"zlib_base64": text_of(zlib.compress(GOOD)[:-4])}, "scale.zlib_base64 must hold .*, got fewer bytes"),
        ({"zlib_base64": text_of(zlib.compress(GOOD) + b"x")}, "scale.zlib_base64 must hold .*, got more bytes"),
        ({"zlib_base64": "A" * 100_000}, "scale.zlib_base64 must hold .*, got a text of 100000 characters"),
        ({"zlib_base64": text_of(zlib.compress(np.full(1500, np.nan).tobytes()))}, "scale must be finite, got NaN"),
        ({"zlib_base64": text_of(zlib.compress(np.full(1500, np.inf).tobytes()))}, "scale must be finite, got NaN"),
        ({"surplus": 1}, "scale must have only the fields .*, got also 'surplus'"),
    ],
)
def test_packed_arrays_are_checked(change, sentence):
    document = packed_rule().to_dict()
    document["scale"] |= change
    with pytest.raises(InvalidParameter, match=sentence):
        load_rule(json.dumps(document))


def test_a_small_file_cannot_ask_for_much_memory():
    bomb = zlib.compress(bytes(1 << 27))  # 128 MB in 130 kB
    document = packed_rule(50_000).to_dict()
    document["scale"] |= {"zlib_base64": text_of(bomb)}
    text = json.dumps(document)
    tracemalloc.start()
    with pytest.raises(InvalidParameter, match=r"scale.zlib_base64 must hold 50000 numbers, .*, got more bytes"):
        load_rule(text)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1 << 25


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"n_labels": 3}, "scale must have n_labels = 3 numbers, got 2"),
        ({"n_labels": 0}, "n_labels must be an integer from 1 to 16777216, got 0"),
        ({"classes": [1, 0]}, r"classes must be \[0, 1\] or \[false, true\], got \[1, 0\]"),
        ({"classes": [0, True]}, r"classes must be \[0, 1\] or \[false, true\], got \[0, True\]"),
        ({"labels_per_row": [1]}, "labels_per_row must be the largest number"),
        ({"labels_per_row": [1, 1.5]}, "labels_per_row must be an integer, got 1.5"),
        ({"labels_per_row": [2, 3]}, "labels_per_row must be at most the number of labels, 2, got"),
        ({"temperature": 0.5}, "bias must be a number, or left out"),
        ({"offset": [0.5, 0.0]}, "offset must not be positive without labels_per_row"),
        ({"offset": [0.0]}, "offset must have one number for each label"),
        ({"linear": 0}, "linear must be true or false, got 0"),
        ({"form": {"numerator": [1, 0, 0, 0]}}, "form must have the field 'denominator'"),
        ({"input": "log_proba"}, "input must be one of 'probabilities', 'logits', 'scores' for very many labels"),
    ],
)
def test_documents_are_checked(change, sentence):
    document = LabelRule.from_thresholds([0.5, 0.25]).to_dict() | change
    with pytest.raises(InvalidParameter, match=sentence):
        load_rule(json.dumps(document))


# -------------------------------------------------------------------------------------------------------------- words


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (LabelRule.from_thresholds(0.25, 2000), "2,000 labels: 1 if the probability exceeds 0.25, else 0."),
        (
            LabelRule.from_thresholds([0.2, 0.1, 0.4, 1.0], output_names=["a", "b", "c", "d"]),
            "4 labels: 1 if the probability exceeds the threshold of the label, else 0.\n"
            "Thresholds: 0.1 to 0.4, half of them from 0.15 to 0.3, median 0.2.\n"
            "For example, by label: 'b' 0.1, 'a' 0.2, 'c' 0.4.\n"
            "Never predicted: 1 label.",
        ),
        (LabelRule.from_thresholds(1.0, 2), "2 labels: always 0, 1 is never predicted."),
        (
            LabelRule.top(3, 50),
            "50 labels: 1 for exactly 3 labels of a row, else 0.\n"
            "The labels with the highest probability are taken, of equal ones the first label.",
        ),
        (
            LabelRule.from_thresholds(0.25, 50, labels_per_row=(1, 3), classes=(False, True)),
            "50 labels: True for 1 to 3 labels of a row, else False.\n"
            "The labels with the highest probability are taken, of equal ones the first label; beyond 1 only if the "
            "probability exceeds 0.25.",
        ),
        (
            LabelRule([1, 2], [-0.5, -0.5], 1, 0.5, np.log(2), [1.0, 2.0], metadata={"metric": "f1"}),
            "Rule for f1.\n"
            "2 labels: 1 for at most 1 label of a row, else 0.\n"
            "The labels with the highest scale * recalibrated probability + offset are taken, of equal ones the first "
            "label; only if it is positive.\n"
            "Scales: 1 to 2, half of them from 1.25 to 1.75, median 1.5. Offsets: -0.5.\n"
            "The score is positive above a recalibrated probability of: 0.25 to 0.5, half of them from 0.3125 to "
            "0.4375, median 0.375.\n"
            "For example, by label: 1 0.25, 0 0.5.\n"
            "Probabilities are recalibrated first (temperature 0.5, less extreme; odds times 2; kept from 1e-06 to 1 - "
            "1e-06).\n"
            "Factors of the probabilities of labels: 1 to 2, half of them from 1.25 to 1.75, median 1.5.",
        ),
        (
            LabelRule([1], [-0.5], temperature=2.0, bias=-1.0, input="scores"),
            "1 label: 1 if the score exceeds 0.5, else 0.\nProbabilities are sigmoid(2 * score - 1).",
        ),
    ],
)  # fmt: skip
def test_words(rule, words):
    assert rule.describe() == words


@given(st.integers(0, 1000), st.sampled_from([(None, None), (0.6, 0.5), (1.7, -1.0)]), st.booleans())
@examples(50)
def test_thresholds_are_where_decisions_change(seed, link, of_logits):
    rng = np.random.default_rng(seed)
    temperature, bias = (1.0, 0.0) if of_logits and link[0] is None else link
    scale, offset = rng.random(20) * 2 + 0.1, -rng.random(20)
    rule = LabelRule(scale, offset, None, temperature, bias, input="logits" if of_logits else "probabilities")
    thresholds = rule.thresholds
    used = np.isfinite(thresholds)
    assert (rule.predict(np.where(used, thresholds, 0.5)[None] + 1e-9)[0] == used).all()
    assert not rule.predict(np.where(used, thresholds, 1.0)[None] - 1e-9).any()
    assert (~used == (offset + scale <= 0)).all()


def test_with_a_budget_there_are_no_thresholds():
    assert np.isnan(LabelRule.from_thresholds([0.5, 0.25], labels_per_row=1).thresholds).all()


def test_equal_rules():
    rule = LabelRule.from_thresholds([0.5, 0.25])
    assert rule == LabelRule([1, 1], [-0.5, -0.25])
    assert rule != LabelRule.from_thresholds([0.5, 0.25], labels_per_row=1)
    assert rule != LabelRule.from_thresholds([0.5, 0.25], classes=(False, True))
    assert rule != LabelRule.from_thresholds([0.5, 0.25], output_names=["a", "b"])
    assert rule != LabelRule([1, 1], [-0.5, -0.25], factor=[1, 1])
    assert rule != LabelRule([1, 1], [-0.5, -0.25], linear=True)
    assert rule != "a rule"


# --------------------------------------------------------------------------------------------------------- many labels


def test_a_million_labels_are_no_million_steps():
    """No step loops over labels in Python: each takes a fraction of a second, a loop would take more."""
    n_labels = 1_000_000
    rng = np.random.default_rng(0)
    rule = LabelRule(np.ones(n_labels), -rng.random(n_labels), (1, 3), temperature=0.9, bias=0.1)
    rows = sparse.csr_array(
        (rng.random(500, dtype=np.float32), np.sort(rng.permutation(n_labels)[:500]), np.arange(0, 501, 50)),
        shape=(10, n_labels),
    )
    rule.predict(rows)
    steps = {
        "one row": lambda: rule.predict(rows[:1]),
        "words": rule.describe,
        "card": rule._repr_html_,
        "copy": lambda: rule.with_metadata(date="today"),
        "equality": lambda: rule == rule.with_metadata(date="today"),
        "text": lambda: str(rule),
    }
    for name, step in steps.items():
        start = time.thread_time()
        step()
        assert time.thread_time() - start < 2.0, name
    assert len(str(rule)) < 2000


def test_no_more_than_a_part_of_the_rows_is_copied(monkeypatch):
    n_labels, n_rows = 1000, 2000
    n_entries = n_rows * n_labels
    rows = sparse.csr_array(
        (
            np.full(n_entries, 0.5, dtype=np.float32),
            np.tile(np.arange(n_labels), n_rows),
            np.arange(n_rows + 1) * n_labels,
        ),
        shape=(n_rows, n_labels),
    )
    rule = LabelRule(np.ones(n_labels), np.zeros(n_labels), 3, temperature=0.9, bias=0.1)
    monkeypatch.setattr("metricwise.core.label_rows.LabelRows.chunks.__defaults__", (n_entries // 200,))
    monkeypatch.setattr(LabelRule, "choose", lambda self, block: (np.zeros_like(block.indptr), np.empty(0, np.int32)))
    monkeypatch.setattr("metricwise.kernels.label_check", lambda *arrays: (0, -1))
    tracemalloc.start()
    rule.predict(rows)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < rows.data.nbytes
