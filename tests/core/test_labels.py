"""Labels and masks of them."""

import sys
from types import ModuleType

import numpy as np
import pytest

from metricwise.core.labels import has_masked, is_masked


def test_masked_arrays_while_another_thread_imports_numpy_ma(monkeypatch):
    monkeypatch.setitem(sys.modules, "numpy.ma", ModuleType("numpy.ma"))  # as it is before it has been executed
    assert not is_masked(np.zeros(3))


@pytest.mark.parametrize("mask", [False, True])
def test_masked_arrays(mask):
    values = np.ma.array([1, 2], mask=[mask, False])
    assert is_masked(values)
    assert has_masked(values) == mask
