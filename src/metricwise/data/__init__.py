"""What users hand in, read once at the boundary: probabilities, labels, weights.

Owns shapes, class labels, missing labels and every check of them; everything above works on :class:`Probabilities`
and integer codes. Must not know metrics, rules or solvers, nor import pandas, polars, pyarrow or scikit-learn: their
objects are recognised by what they can do.
"""

from ..core.errors import listed, shown
from ..core.rows import Dependence, Probabilities
from .abstention import check_abstain_label, read_abstain_label, split_abstained
from .arrays import Data, output_names, read_data
from .assignment import warn_of_assignment
from .categories import Scales, scales_of
from .classes import classes_from_columns, name_classes
from .columns import NoColumnsError, ProbabilityColumns, few, labels_of_texts, match_label, probability_columns
from .encoding import decode, python_labels, shared
from .frames import column_names, has_names, is_frame, is_lazy, is_table, match_columns, position_named, warn_of_order
from .label_tables import check_one_column, is_two_dimensional
from .labels import Labels, make_rows, observed_labels, read_labels, read_pair
from .order import kept_order, read_order
from .pieces import Piece, PieceReader, distinct_values
from .probabilities import is_list_of_outputs, read_proba
from .row_costs import read_row_costs, table_of
from .row_spec import RowSpec
from .schema import Schema
from .sensitive import Groups, Sensitive, SensitiveFeatures, read_sensitive_features
from .single_column import (
    column_places,
    is_single,
    known_positive,
    positive_labels,
    second_is_positive,
    with_both_columns,
)
from .single_row import check_rows
from .tensors import host_array, is_tensor, shared_array
from .time_order import InTime, read_time, stretches
from .weights import (
    Frequencies,
    check_frequencies,
    check_sum,
    read_groups,
    read_output_weight,
    read_prior,
    read_sample_weight,
)

__all__ = [
    "Data",
    "Dependence",
    "Frequencies",
    "Groups",
    "InTime",
    "Labels",
    "NoColumnsError",
    "Piece",
    "PieceReader",
    "Probabilities",
    "ProbabilityColumns",
    "RowSpec",
    "Scales",
    "Schema",
    "Sensitive",
    "SensitiveFeatures",
    "check_abstain_label",
    "check_frequencies",
    "check_one_column",
    "check_rows",
    "check_sum",
    "classes_from_columns",
    "column_places",
    "column_names",
    "decode",
    "distinct_values",
    "few",
    "has_names",
    "host_array",
    "is_frame",
    "is_lazy",
    "is_list_of_outputs",
    "is_single",
    "is_table",
    "is_tensor",
    "is_two_dimensional",
    "kept_order",
    "known_positive",
    "labels_of_texts",
    "listed",
    "make_rows",
    "match_columns",
    "match_label",
    "name_classes",
    "observed_labels",
    "output_names",
    "positive_labels",
    "position_named",
    "probability_columns",
    "python_labels",
    "read_abstain_label",
    "read_data",
    "read_groups",
    "read_labels",
    "read_order",
    "read_output_weight",
    "read_pair",
    "read_prior",
    "read_proba",
    "read_row_costs",
    "read_sample_weight",
    "read_sensitive_features",
    "read_time",
    "scales_of",
    "second_is_positive",
    "shared",
    "shared_array",
    "shown",
    "split_abstained",
    "stretches",
    "table_of",
    "warn_of_assignment",
    "warn_of_order",
    "with_both_columns",
]
