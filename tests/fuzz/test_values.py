"""Metric.score is scikit-learn's value, whatever the target, the weights, what is missing, dtypes and layouts."""

import numpy as np
import pytest

from fuzz.cases import TARGETS, WEIGHTS, draw, named
from fuzz.guises import DTYPES, LAYOUTS, MARKS, dress_labels
from fuzz.references import HUNTED, expected_value
from laws.metric_records import RECORDS
from profiles import first

CHUNK, CHUNKS = len(HUNTED), 4  # every metric four times


def some_predictions(case):
    """Right more often than not."""
    rng = np.random.default_rng(case.seed)
    guesses = np.column_stack([rng.integers(0, k, size=len(case.codes)) for k in case.sizes])
    return np.where((rng.random(guesses.shape) < 0.4) & (case.codes >= 0), case.codes, guesses)


@pytest.mark.parametrize("chunk", first(1, range(CHUNKS)))
@pytest.mark.parametrize("target", TARGETS)
def test_a_score_is_scikit_learns(target, chunk):
    for seed in range(chunk * CHUNK, (chunk + 1) * CHUNK):
        case = draw(target, seed)
        predicted = some_predictions(case)
        layout = LAYOUTS[seed % len(LAYOUTS)]
        y_pred = dress_labels(predicted, case.names, case.kind, "none", layout, case.one_output)
        with named(case):
            value = case.named_metric.score(case.y, y_pred, **case.options(infer=False))
            assert value == pytest.approx(expected_value(case, predicted), abs=1e-12)


def test_the_draws_pair_every_metric_with_everything():
    """Each metric meets each kind of target, weight, missing label and number, and most labels and layouts."""
    drawn = [draw(target, seed) for target in TARGETS for seed in range(CHUNK * CHUNKS)]
    for name in HUNTED:
        own = [case for case in drawn if case.metric == name]
        assert {case.target for case in own} == set(TARGETS) - ({"multioutput"} if RECORDS[name].sized else set())
        assert {case.weights for case in own} == set(WEIGHTS)
        assert {case.mark for case in own} == set(MARKS)
        assert {case.dtype for case in own} == {"float32", "float64"}
        assert len({case.kind for case in own}) >= len(DTYPES) - 2
        assert len({case.label_layout for case in own}) >= len(LAYOUTS) - 2
