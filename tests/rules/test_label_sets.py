"""Rules of label sets: the best set of each row by enumeration, sparse and dense rows alike."""

import itertools
import json
import math

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import metricwise as mw
from metricwise.core.errors import InvalidParameter
from metricwise.rules import LabelSetRule, load_rule

N_LABELS = 5


def rows_of(seed, n_rows=12):
    rng = np.random.default_rng(seed)
    return np.where(rng.random((n_rows, N_LABELS)) < 0.7, rng.random((n_rows, N_LABELS)), 0.0)


def value_of(rule, hits, true, predicted):
    if true + predicted == 0:
        return rule.zero_division
    if rule.jaccard:
        return hits / (true + predicted - hits)
    return (1 + rule.beta2) * hits / (rule.beta2 * true + predicted) if rule.beta2 * true + predicted else 0.0


def expected_by_enumeration(rule, chances, chosen):
    total = 0.0
    for true in itertools.product((0, 1), repeat=len(chances)):
        chance = math.prod(p if t else 1 - p for p, t in zip(chances, true, strict=True))
        hits = sum(t for t, c in zip(true, chosen, strict=True) if c)
        for missing in range(25 if rule.missing else 1):
            extra = math.exp(-rule.missing) * rule.missing**missing / math.factorial(missing)
            total += chance * extra * value_of(rule, hits, sum(true) + missing, sum(chosen))
    return total


RULES = {
    "f1": LabelSetRule(N_LABELS),
    "f1, empty sets agree": LabelSetRule(N_LABELS, zero_division=1.0),
    "f2": LabelSetRule(N_LABELS, beta2=4.0, zero_division=0.5),
    "jaccard": LabelSetRule(N_LABELS, jaccard=True),
    "missing labels": LabelSetRule(N_LABELS, missing=1.5),
    "one to two": LabelSetRule(N_LABELS, labels_per_row=(1, 2), zero_division=1.0),
    "exactly three": LabelSetRule(N_LABELS, labels_per_row=(3, 3)),
    "factors": LabelSetRule(N_LABELS, factor=[0.5, 1.0, 2.0, 1.0, 0.25]),
    "recalibrated": LabelSetRule(N_LABELS, temperature=0.6, bias=-0.5),
}


@pytest.mark.parametrize("name", RULES)
def test_no_set_of_labels_is_better(name):
    rule, dense = RULES[name], rows_of(3)
    decided = rule.predict(sparse.csr_array(dense)).toarray()
    np.testing.assert_array_equal(rule.predict(dense), decided)
    low, high = rule.labels_per_row or (0, N_LABELS)
    for chances, chosen in zip(rule.calibrated(dense), decided, strict=True):
        assert low <= chosen.sum() <= high
        sets = (s for s in itertools.product((0, 1), repeat=N_LABELS) if low <= sum(s) <= high)
        best = max(expected_by_enumeration(rule, chances, each) for each in sets)
        assert expected_by_enumeration(rule, chances, chosen) == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize("make", [sparse.csr_array, sparse.csr_matrix])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_rows_give_sparse_decisions(make, dtype):
    dense = rows_of(1).astype(dtype)
    decided = RULES["recalibrated"].predict(make(dense))
    assert type(decided) is make
    assert decided.dtype == np.int8
    decided.check_format(full_check=True)
    np.testing.assert_array_equal(RULES["recalibrated"].predict(dense), decided.toarray())


def test_many_rows_are_decided_in_parts(monkeypatch):
    dense = rows_of(2, n_rows=200)
    whole = RULES["recalibrated"].predict(sparse.csr_array(dense)).toarray()
    monkeypatch.setattr("metricwise.core.label_rows.LabelRows.chunks.__defaults__", (17,))
    np.testing.assert_array_equal(RULES["recalibrated"].predict(sparse.csr_array(dense)).toarray(), whole)


def test_columns_of_frames_and_classes():
    rule = LabelSetRule(2, classes=(False, True), output_names=["a", "b"])
    assert rule.predict(pd.DataFrame({"b": [0.9], "a": [0.1]})).tolist() == [[False, True]]


@pytest.mark.parametrize("name", RULES)
def test_files(name):
    rule = RULES[name]
    again = load_rule(rule.to_json())
    assert again == rule
    assert again.to_json() == rule.to_json()
    assert mw.LabelSetRule.from_dict(rule.to_dict()) == rule


def test_factors_of_many_labels_are_packed():
    rule = LabelSetRule(2000, factor=np.random.default_rng(0).random(2000))
    assert rule.to_dict()["factor"]["n"] == 2000
    assert load_rule(rule.to_json()) == rule


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"beta2": -1}, r"beta2 must be a number from 0 to 1e\+12, got -1"),
        ({"jaccard": 1}, "jaccard must be true or false, got 1"),
        ({"zero_division": 2}, "zero_division must be a number from 0 to 1, got 2"),
        ({"missing": -0.5}, "missing must be a number from 0 to 1e.06, got -0.5"),
        ({"missing": "a"}, "missing must be made of numbers, got 'a'"),
        ({"n_labels": 0}, "n_labels must be an integer from 1 to"),
        ({"factor": [1.0]}, r"factor must have one number for each label, shape \(5,\), got shape \(1,\)"),
        ({"labels_per_row": [0, 6]}, "labels_per_row must be at most the number of labels, 5"),
    ],
)
def test_documents_are_checked(change, sentence):
    with pytest.raises(InvalidParameter, match=sentence):
        load_rule(json.dumps(LabelSetRule(N_LABELS).to_dict() | change))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"n_labels": 2.0}, "LabelSetRule: n_labels must be a number of labels from 1, got 2.0"),
        ({"n_labels": 2, "beta2": np.nan}, "beta2 must be a number from 0 to"),
        ({"n_labels": 2, "beta2": True}, "beta2 must be a number from 0 to"),
        ({"n_labels": 2, "jaccard": 1}, "jaccard must be True or False, got 1"),
        ({"n_labels": 2, "input": "scores"}, "temperature must be given with bias if input='scores'"),
    ],
)
def test_what_is_no_rule_is_refused(arguments, sentence):
    with pytest.raises(InvalidParameter, match=sentence):
        LabelSetRule(**arguments)


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (
            LabelSetRule(2000),
            "2,000 labels: 1 for the most probable ones of a row, else 0; as many as have the highest expected F1 of "
            "the row.\nThe labels of a row are taken as independent.",
        ),
        (
            LabelSetRule(3, 4.0, False, 0.5, 1.5, (1, 2), 2.0, 0.0),
            "3 labels: 1 for the most probable ones of a row, else 0; as many, 1 to 2 labels, as have the highest "
            "expected F-beta (beta 2) of the row.\nThe labels of a row are taken as independent. A row without true "
            "and predicted labels counts 0.5. 1.5 true labels of a row are expected among those not stored.\n"
            "Probabilities are recalibrated first (temperature 2, more extreme; odds times 1; kept from 1e-06 to 1 - "
            "1e-06).",
        ),
        (
            LabelSetRule(3, jaccard=True, input="logits"),
            "3 labels: 1 for the most probable ones of a row, else 0; as many as have the highest expected Jaccard of "
            "the row.\nThe labels of a row are taken as independent.\nProbabilities are sigmoid(1 * logit).",
        ),
    ],
)
def test_words(rule, words):
    assert rule.describe() == words


def test_equal_rules():
    assert LabelSetRule(3) == LabelSetRule(3, 1.0)
    others = (
        {"beta2": 2.0},
        {"missing": 0.1},
        {"labels_per_row": 1},
        {"factor": [1, 1, 1]},
        {"classes": (False, True)},
    )
    assert all(LabelSetRule(3) != LabelSetRule(3, **other) for other in others)
    assert LabelSetRule(3) != LabelSetRule(4)
    assert LabelSetRule(3) != 3
