"""What optimize finds is the best there is, by looking at everything: all thresholds, all decisions of a few rows.

Values of confusion matrices are ours here, many at once; that they are scikit-learn's is what test_values.py checks.
"""

import pytest

from fuzz.cases import draw, named
from fuzz.optima import check_few_rows, check_thresholds
from fuzz.references import HUNTED
from profiles import first

CHUNK, CHUNKS = len(HUNTED), 3  # every metric three times
SEEDS = 6


@pytest.mark.parametrize("chunk", first(1, range(CHUNKS)))
@pytest.mark.parametrize("target", ["binary", "multilabel"])
def test_no_threshold_beats_the_solution(target, chunk):
    for seed in range(chunk * CHUNK, (chunk + 1) * CHUNK):
        case = draw(target, seed)
        if case.average != "instance":  # optimised through micro
            with named(case):
                check_thresholds(case)


# ------------------------------------------------------------------------------------ all decisions of a few rows


@pytest.mark.parametrize("name", HUNTED)
def test_no_decisions_of_a_few_rows_beat_the_certificate(name):
    for seed in range(SEEDS):
        check_few_rows(name, seed)
