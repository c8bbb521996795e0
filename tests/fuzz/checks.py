"""What holds of every seeded case: values are the references', and a rule decides by the numbers it is shown alone."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

import metricwise as mw
from fuzz.cases import optimize
from fuzz.guises import LAYOUTS, dress_labels, encode, proba_layouts
from fuzz.references import expected_value


def some_predictions(case):
    """Right more often than not."""
    rng = np.random.default_rng(case.seed)
    guesses = np.column_stack([rng.integers(0, k, size=len(case.codes)) for k in case.sizes])
    return np.where((rng.random(guesses.shape) < 0.4) & (case.codes >= 0), case.codes, guesses)


def check_score(case):
    """`Metric.score` is scikit-learn's value."""
    predicted = some_predictions(case)
    layout = LAYOUTS[case.seed % len(LAYOUTS)]
    y_pred = dress_labels(predicted, case.names, case.kind, "none", layout, case.one_output)
    value = case.named_metric.score(case.y, y_pred, **case.options(infer=False))
    assert value == pytest.approx(expected_value(case, predicted), abs=1e-12)


def same_labels(labels, others):
    assert labels.dtype == others.dtype
    assert labels.shape == others.shape
    assert (labels == others).all()


def check_solution(case):
    """What `optimize` reports is what its rule gets, and the rule decides alike whatever holds the numbers."""
    dressed = case.dressed(case.proba_layout)
    solution = optimize(case, dressed)
    labels = solution.rule.predict(dressed)
    if solution.rule.metadata.column_order:  # arrays are then taken as the frame was: test_reading.py
        solution = replace(solution, rule=solution.rule.with_metadata(column_order=None))
    assert labels.shape == (case.codes[:, 0] if case.one_output else case.codes).shape
    predicted = encode(labels, case.names)
    assert solution.value == pytest.approx(expected_value(case, predicted), abs=1e-12)
    assert solution.baseline == pytest.approx(expected_value(case, case.plain_argmax), abs=1e-12)
    check_predictions(case, solution.rule, labels)


def check_predictions(case, rule, labels):
    """The same labels from every layout, from float64, from chunks of rows, and after a trip through JSON."""
    for layout in proba_layouts(case.proba):
        same_labels(rule.predict(case.dressed(layout)), labels)
    wide = (
        [part.astype(np.float64) for part in case.proba] if isinstance(case.proba, list) else case.proba.astype(float)
    )
    same_labels(rule.predict(wide), labels)
    cuts = [0, 1, len(labels) // 2, len(labels)]
    chunks = [rule.predict(case.dressed("C", slice(a, b))) for a, b in itertools.pairwise(cuts)]
    same_labels(np.concatenate(chunks), labels)
    copy = mw.load_rule(rule.to_json())
    assert copy == rule
    same_labels(copy.predict(case.proba), labels)
