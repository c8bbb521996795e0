"""What tests need of scikit-learn that the oldest version allowed by pyproject.toml lacks: marks, and a stand-in."""

import numpy as np
import pytest
import sklearn
from sklearn import metrics

_VERSION = tuple(int(part) for part in sklearn.__version__.split(".")[:2])

needs_temperature = pytest.mark.skipif(_VERSION < (1, 8), reason="scikit-learn calibrates by a temperature since 1.8")
needs_routed_scores = pytest.mark.skipif(
    _VERSION < (1, 8), reason="searches pass metadata to a pipeline's score since 1.8"
)
needs_value_of_undefined_kappa = pytest.mark.skipif(
    _VERSION < (1, 9), reason="cohen_kappa_score takes replace_undefined_by since 1.9"
)


def kappa_or_zero(y, p, **options):
    """Return Cohen's kappa by scikit-learn, and 0 where it is 0/0."""
    if _VERSION >= (1, 9):
        return metrics.cohen_kappa_score(y, p, replace_undefined_by=0.0, **options)
    with np.errstate(invalid="ignore"):
        value = metrics.cohen_kappa_score(y, p, **options)
    return 0.0 if np.isnan(value) else value
