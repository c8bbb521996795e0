"""The base of :class:`metricwise.Solution` that inspection shows: a rule, its numbers and the problem it was fitted to.

Must not know how anything is shown, nor fit rules.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..core.notes import Note, joined_text
from ..inference.label_summary import LabelSummary
from ..inference.results import Candidate, ConstraintResult, Estimate, Gain, Recorded
from ..oracles.problem import Problem
from ..rules.example_cost import CostRule
from ..rules.label_base import LabelRuleBase
from ..rules.mixture import MixtureRule
from ..rules.partitioned import PartitionedRule
from ..rules.weighted import WeightedRule
from ..solvers.result import Certificate, Outcome

__all__ = ["Rule", "View"]

FloatArray = NDArray[np.float64]
Rule = WeightedRule | MixtureRule | PartitionedRule | CostRule | LabelRuleBase


@dataclass(frozen=True, eq=False)
class View:
    """A rule with its numbers and its problem; the fields are described in :class:`metricwise.Solution`."""

    rule: Rule
    value: float
    baseline: float
    confusion: FloatArray
    certificate: Certificate
    outcome: Outcome
    notes: tuple[Note, ...] = ()
    counted: Literal["labels", "expected"] = "labels"
    n_passes: int = 0
    history: tuple[float, ...] = ()
    gain: Gain | None = None
    value_on_new_rows: Estimate | None = None
    threshold_range: FloatArray | None = None
    candidates: tuple[Candidate, ...] = ()
    recorded: dict[str, Recorded] = field(default_factory=dict)
    constraints: tuple[ConstraintResult, ...] = ()
    by_group: dict[Any, dict[str, Recorded]] = field(default_factory=dict)
    by_label: LabelSummary | None = field(default=None, repr=False)
    problem: Problem | None = field(default=None, repr=False)

    @property
    def status(self) -> str:
        """The notes as one paragraph: what happened, in plain sentences, with a remedy if there is one."""
        return joined_text(self.notes)

    @property
    def threshold(self) -> float | FloatArray | None:
        """The threshold on the raw probability, log-odds or score of class 1, which is predicted strictly above it.

        A float for a single binary output, an array of shape (M,) for several, NaN for those without one; None if the
        rule has none, as a mixture, a rule by group, a rule by costs per row, and one with `labels_per_row`.
        """
        return getattr(self.rule, "threshold", None)

    @property
    def optimized_value(self) -> float:
        """What the solver maximised, as it counted it; see :class:`metricwise.solvers.Certificate`."""
        return self.certificate.optimized_value

    @property
    def upper_bound(self) -> float | None:
        """Upper bound on `optimized_value`; None if nothing is proved."""
        return self.certificate.upper_bound

    @property
    def gap(self) -> float | None:
        """Bound on the distance between the optimised value and the optimum; None if no bound is known."""
        return self.certificate.gap

    @property
    def alternative(self) -> float | None:
        """The optimised value of the other kind of rule, a mixture or a single rule; None if it was not computed."""
        return self.certificate.alternative

    @property
    def level(self) -> FloatArray | None:
        """For ratios, the g of the loss ``g B - A`` of each block of outputs that share a confusion."""
        return self.certificate.level

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "problem": None}
