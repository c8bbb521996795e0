"""Fits rules that predict the best set of labels of each row, for averages over instances. Must not know user input."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .. import kernels
from ..core.label_sets import LabelSets
from ..metrics.label_aims import LabelCounts
from ..oracles.problem import FitStrategy
from ..rules.label_sets import LabelSetRule
from ..rules.metadata import RuleMetadata
from ..solvers.labels import LabelSearch, baseline_table
from ..solvers.result import Outcome
from .labels import EntryMap, LabelProblem, label_oracle

__all__ = ["SetFit", "fit_sets"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_STATUS = "The best set of labels of each row, if its labels are independent."


@dataclass(frozen=True, eq=False)
class SetFit:
    """What the best set of a row follows from: the metric, the map and the factors, and how many labels are missing.

    `missing` is the mean number of true labels of a row that are not stored.
    """

    beta2: float
    jaccard: bool
    zero_division: float
    link: EntryMap | None
    factor: FloatArray | None
    missing: float
    search: LabelSearch | None = None

    def decide(self, problem: LabelProblem, rows: IntArray | None = None) -> LabelSets:
        """Return the labels of all rows, or of some."""
        values, stored = problem.entries.values(self.link), problem.rows
        sizes = kernels.label_set_sizes(
            values,
            stored.indices,
            stored.indptr,
            rows,
            self.beta2,
            self.jaccard,
            self.zero_division,
            self.missing,
            problem.budget.low,
            problem.budget.high,
            self.factor,
        )
        chosen = kernels.label_set_choose(
            values, stored.indices, stored.indptr, stored.n_labels, rows, sizes, self.factor
        )
        return LabelSets(*chosen, stored.n_labels)

    def count(self, problem: LabelProblem) -> LabelCounts:
        """Return the counts of all rows, with labels if there are any, else as expected."""
        decisions, weight = self.decide(problem), problem.rows.weight
        if problem.targets is not None:
            return problem.count_decisions(decisions)
        oracle, _, _ = label_oracle(problem, FitStrategy("expected"), None)
        # Expected hits of given decisions: probabilities of the entries that they choose.
        values = np.abs(problem.entries.values(self.link))
        indices = problem.rows.indices
        if indices is None:
            indices = np.tile(np.arange(problem.rows.n_labels), problem.rows.n_rows)
        stored = LabelSets(problem.rows.indptr, indices, problem.rows.n_labels)
        keys = stored.rows * stored.n_labels + stored.indices
        chosen = decisions.rows * stored.n_labels + decisions.indices
        place = np.minimum(np.searchsorted(keys, chosen), max(len(keys) - 1, 0))
        eta = np.where(keys[place] == chosen, values[place], 0.0) if len(keys) else np.zeros(len(chosen))
        of_rows = eta if weight is None else eta * weight[decisions.rows]
        hits = np.bincount(decisions.indices, of_rows, minlength=stored.n_labels).astype(np.float64)
        return LabelCounts(hits, decisions.count(weight), oracle.true, oracle.total)

    def rule(self, problem: LabelProblem, metadata: RuleMetadata, *, is_bounded: bool) -> LabelSetRule:
        """Return the rule in the user's terms."""
        link = self.link
        return LabelSetRule(
            n_labels=problem.rows.n_labels,
            beta2=self.beta2,
            jaccard=self.jaccard,
            zero_division=self.zero_division,
            missing=self.missing,
            labels_per_row=problem.budget.said,
            temperature=None if link is None else link.temperature,
            bias=None if link is None else link.bias,
            factor=self.factor,
            input=problem.schema.input.kind,
            output_names=problem.schema.output_names,
            metadata=metadata,
        )


def fit_sets(
    problem: LabelProblem, metric: tuple[float, bool, float], recipe: FitStrategy, rows: IntArray | None
) -> SetFit:
    """Fit the calibration of a rule of sets to all rows, or to some."""
    oracle, link, _ = label_oracle(problem, recipe, rows)
    missing = 0.0
    if oracle.labels_true is not None:
        unstored = np.maximum(oracle.labels_true - oracle.sums[:, 1], 0.0)
        missing = float(unstored.sum()) / max(oracle.total, 1e-300)
    search = LabelSearch(baseline_table(), np.nan, Outcome.LOCAL, _STATUS)
    return SetFit(*metric, link, oracle.factor, missing, search)
