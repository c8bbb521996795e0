"""What opens rows: the engine that serves arrays is a parameter."""

from functools import partial

import numpy as np
import pytest

from engines import rows_served_by, source
from metricwise.data.open import open_rows
from metricwise.data.row_spec import RowSpec
from metricwise.data.sources.memory import MemorySource

PROBA, Y = np.array([0.2, 0.6, 0.9, 0.1]), np.array([0, 0, 1, 0])
THREES, SINGLE_ROWS = (partial(source, engine=name) for name in ("chunks of 3", "one by one"))


def sizes_read(**options):
    """How many rows each read of a pass has."""
    return open_rows(RowSpec(PROBA, Y), **options)[1].reduce(lambda rows: [rows.n_rows])


def test_arrays_are_served_from_memory_by_default():
    schema, rows = open_rows(RowSpec(PROBA, Y))
    assert type(rows) is MemorySource
    assert rows.schema is schema


def test_the_engine_of_a_call_goes_before_that_of_tests():
    with rows_served_by(THREES):
        assert sizes_read() == [3, 1]
        assert sizes_read(engine=SINGLE_ROWS) == [1, 1, 1, 1]
    assert sizes_read() == [4]


def test_after_an_error_memory_serves_again():
    with pytest.raises(ValueError, match="proba"), rows_served_by(THREES):
        open_rows(RowSpec([0.2, 1.7, 0.9, 0.1], Y))
    assert sizes_read() == [4]
