"""What opens rows: the engine that serves arrays is a parameter, of the call or of the context."""

from functools import partial

import numpy as np
import pytest

from engines import source
from metricwise.data.open import read_source, serving_rows_by
from metricwise.data.sources import MemorySource

PROBA, Y = np.array([0.2, 0.6, 0.9, 0.1]), np.array([0, 0, 1, 0])
THREES, SINGLE_ROWS = (partial(source, engine=name) for name in ("chunks of 3", "one by one"))


def sizes_read(**options):
    """How many rows each read of a pass has."""
    return read_source(PROBA, Y, **options)[1].reduce(lambda rows: [rows.n_rows])


def test_arrays_are_served_from_memory_by_default():
    data, rows = read_source(PROBA, Y)
    assert type(rows) is MemorySource
    assert rows.rows is data.rows


def test_the_engine_of_a_call_goes_before_that_of_the_context():
    with serving_rows_by(THREES):
        assert sizes_read() == [3, 1]
        assert sizes_read(engine=SINGLE_ROWS) == [1, 1, 1, 1]
    assert sizes_read() == [4]


def test_contexts_can_be_nested():
    with serving_rows_by(THREES):
        with serving_rows_by(SINGLE_ROWS):
            assert sizes_read() == [1, 1, 1, 1]
        assert sizes_read() == [3, 1]


def test_after_an_error_memory_serves_again():
    with pytest.raises(ValueError, match="proba"), serving_rows_by(THREES):
        read_source([0.2, 1.7, 0.9, 0.1], Y)
    assert sizes_read() == [4]
