"""Fits rules that predict the best set of labels of each row, for averages over instances.

Labels of a row are taken as independent, which they are not: the rule by weights, which is fitted to the
micro-average, stays a candidate. Must not know user input.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from .. import kernels
from ..core.budget import NO_BUDGET
from ..core.label_rows import LabelRows
from ..core.label_sets import LabelSets
from ..core.notes import NoteKind, note_list
from ..core.schema import second_is_positive
from ..data.sources.memory import MemorySource
from ..inference.label_summary import summarize_labels
from ..metrics.label_aims import LabelCounts, MetricAim, set_metric
from ..oracles.problem import FitStrategy, Problem
from ..rules.label_sets import LabelSetRule
from ..rules.metadata import RuleMetadata
from ..solvers.labels import LabelSearch, baseline_table
from ..solvers.result import Certificate, Outcome
from .labels import EntryMap, LabelProblem, baseline_fit, label_oracle, select_labels
from .metadata import metadata_of
from .selection import describe_choice
from .solving import FitTask, FittedRule

__all__ = ["SetFit", "better_sets", "fit_sets"]

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


# ------------------------------------------------------------------------------- beside rules of the ordinary route


@dataclass(frozen=True, eq=False)
class _SetFitter:
    """A way to fit sets, by its name."""

    name: str
    fit: Callable[[LabelProblem, IntArray | None], SetFit]


def better_sets(task: FitTask, fitted: FittedRule) -> FittedRule:
    """Return the rule of sets if it is expected to be better on new rows than what was fitted, else that.

    Both are valued on rows that they were not fitted to.
    """
    problem = label_problem_of(task.problem)
    metric = None if problem is None else set_metric(task.problem.aim.metric)
    if problem is None or metric is None or fitted.value_on_new_rows is None:
        return fitted
    fitters = [
        _SetFitter(f"{prefix}sets", partial(_fit_recipe, metric, FitStrategy("expected", recalibrate)))
        for prefix, recalibrate in (("recalibrated + ", True), ("", False))
    ]
    selection = select_labels(problem, fitters, task.seed, task.stage)
    candidates = (*fitted.candidates, *selection.candidates)
    if selection.chosen is None or selection.value.estimate <= fitted.value_on_new_rows.estimate:
        return replace(fitted, candidates=candidates)
    task.stage("fitting all rows")
    chosen = fitters[selection.chosen]
    fit = chosen.fit(problem, None)
    value = problem.judge(0).value(problem.aim, fit.decide(problem))
    metadata = metadata_of(task.problem).updated(recipe=chosen.name, value=value, baseline=fitted.baseline)
    text = describe_choice(chosen.name, selection.gain, candidates, "Argmax")
    counts, baseline = fit.count(problem), baseline_fit(problem).count(problem)
    by_label = summarize_labels(problem.aim, counts, baseline, problem.rows.n_entries, problem.n_unstored)
    return replace(
        fitted,
        rule=fit.rule(problem, metadata, is_bounded=False),
        value=value,
        confusion=counts.confusion(),
        certificate=Certificate(value),
        outcome=Outcome.LOCAL,
        notes=(*note_list(NoteKind.OUTCOME, _STATUS), *note_list(NoteKind.SELECTION, text)),
        history=(value,),
        gain=selection.gain,
        value_on_new_rows=selection.value,
        threshold_range=None,
        candidates=candidates,
        by_label=by_label,
    )


def _fit_recipe(
    metric: tuple[float, bool, float], recipe: FitStrategy, problem: LabelProblem, rows: IntArray | None
) -> SetFit:
    return fit_sets(problem, metric, recipe, rows)


def label_problem_of(problem: Problem) -> LabelProblem | None:
    """Return the same rows as labels of 0 and 1; None if they are anything else."""
    source, schema = problem.source, problem.schema
    if not isinstance(source, MemorySource) or schema.n_extra or schema.n_groups > 1 or schema.input.is_logits:
        return None
    rows = source.rows
    unweighted = rows.codes is not None and rows.frequency is None and rows.repeats is None and problem.prior is None
    if (
        not unweighted
        or rows.codes is None
        or not (schema.n_classes == 2).all()
        or not second_is_positive(schema.classes)
    ):
        return None
    if rows.codes.min(initial=0) < 0 or schema.normalize or problem.aim.output_weight.std() > 0:
        return None
    columns = np.stack([rows.proba.positive_column(m) for m in range(schema.n_outputs)], axis=1)
    ends = np.append(0, np.cumsum((rows.codes > 0).sum(axis=1)))
    targets = LabelSets(ends, np.nonzero(rows.codes)[1], schema.n_outputs)
    aim = MetricAim(problem.aim.metric, "instance", problem.aim.name)
    clusters = None if rows.cluster is None else np.unique(rows.cluster, return_inverse=True)[1].astype(np.int64)
    return LabelProblem(LabelRows.of_array(columns, rows.weight), schema, targets, aim, NO_BUDGET, {}, clusters)
