"""Metric.score is scikit-learn's value, whatever the target, the weights, what is missing, dtypes and layouts."""

import pytest

from fuzz.cases import TARGETS, WEIGHTS, draw, named
from fuzz.checks import check_score
from fuzz.guises import DTYPES, LAYOUTS, MARKS
from fuzz.references import HUNTED
from laws.metric_records import RECORDS
from profiles import first

CHUNK, CHUNKS = len(HUNTED), 4  # every metric four times


@pytest.mark.parametrize("chunk", first(1, range(CHUNKS)))
@pytest.mark.parametrize("target", TARGETS)
def test_a_score_is_scikit_learns(target, chunk):
    for seed in range(chunk * CHUNK, (chunk + 1) * CHUNK):
        case = draw(target, seed)
        with named(case):
            check_score(case)


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
