"""What users hand in, read once at the boundary: probabilities, labels, weights.

Owns shapes, class labels, missing labels and every check of them; everything above works on :class:`Probabilities`
and integer codes. Must not know metrics, rules or solvers, nor import pandas, polars or scikit-learn: data frames are
recognised by their ``columns``.
"""

from .encoding import decode, shared
from .labels import (
    Labels,
    classes_from_columns,
    is_two_dimensional,
    name_classes,
    observed_labels,
    read_labels,
    read_pair,
)
from .probabilities import Probabilities, is_frame, read_proba
from .weights import read_output_weight, read_prior, read_sample_weight

__all__ = [
    "Labels",
    "Probabilities",
    "classes_from_columns",
    "decode",
    "is_frame",
    "is_two_dimensional",
    "name_classes",
    "observed_labels",
    "read_labels",
    "read_output_weight",
    "read_pair",
    "read_prior",
    "read_proba",
    "read_sample_weight",
    "shared",
]
