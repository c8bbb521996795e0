"""What users hand in about rows, unread: one field for each argument, whichever entry point takes it.

Owns what stands beside an array in the same argument: :class:`Frequencies`, :class:`InTime`, :class:`Sensitive`. Must
not know where rows lie, nor read them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .sensitive import Sensitive, SensitiveFeatures, read_sensitive_features
from .time_order import InTime
from .weights import Frequencies

__all__ = ["RowSpec"]


@dataclass(frozen=True, eq=False)
class RowSpec:
    """Rows as they were handed in; see :func:`metricwise.optimize`.

    Parameters
    ----------
    proba, y, sample_weight, groups, sensitive_features, cost, classes, order
        As in :func:`metricwise.optimize`.
    pos_label : object, or list of M objects, optional
        The class that a single column of probabilities is of.
    normalize : bool, default=False
        Whether rows are divided by their sums, as some stored rules do.
    """

    proba: Any
    y: Any = None
    sample_weight: Any = None
    groups: Any = None
    sensitive_features: Any = None
    cost: Any = None
    classes: Any = None
    order: Any = None
    pos_label: Any = None
    normalize: bool = False

    @property
    def weight(self) -> Any:
        """The weights of rows, whatever they mean."""
        return self.sample_weight.weight if self.counts_rows else self.sample_weight

    @property
    def counts_rows(self) -> bool:
        """Whether the weights say how many rows each row stands for."""
        return isinstance(self.sample_weight, Frequencies)

    @property
    def time(self) -> InTime | None:
        """When rows were observed."""
        return self.groups if isinstance(self.groups, InTime) else None

    @property
    def clusters(self) -> Any:
        """Names of what rows belong to."""
        return None if isinstance(self.groups, InTime) else self.groups

    @property
    def sensitive(self) -> Sensitive | None:
        """The sensitive groups, with what the rule may do with them."""
        return None if self.sensitive_features is None else Sensitive.of(self.sensitive_features)

    def read_sensitive(self, n_rows: int) -> SensitiveFeatures | None:
        """Read the sensitive group of every row."""
        return None if self.sensitive is None else read_sensitive_features(self.sensitive.values, n_rows)
