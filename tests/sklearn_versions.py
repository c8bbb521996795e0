"""Marks of tests that need more than the oldest scikit-learn that pyproject.toml allows."""

import pytest
import sklearn

_VERSION = tuple(int(part) for part in sklearn.__version__.split(".")[:2])

needs_temperature = pytest.mark.skipif(_VERSION < (1, 8), reason="scikit-learn calibrates by a temperature since 1.8")
needs_routed_scores = pytest.mark.skipif(
    _VERSION < (1, 8), reason="searches pass metadata to a pipeline's score since 1.8"
)
