"""Fits rules for very many labels, and chooses between them on rows that they were not fitted to.

A recipe says what is counted and whether probabilities are calibrated first: by one map of all entries, and a factor
of each label. Recipes are compared by two folds, whose decisions are valued together. Must not know user input.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from .. import kernels
from ..core.budget import Budget
from ..core.cached import cached_property
from ..core.label_rows import CALIBRATION_FLOOR, LabelRows
from ..core.label_sets import LabelSets
from ..core.schema import Schema
from ..inference.labels import LabelJudge, deal_blocks, standard_error
from ..inference.results import Candidate, Estimate, Gain
from ..metrics.label_aims import LabelAim, LabelCounts, LabelTable
from ..oracles.labels import PSEUDO_POSITIVES, LabelOracle, labels_to_fill
from ..oracles.problem import FitStrategy
from ..rules.label_batch import BatchForm
from ..rules.labels import LabelRule
from ..rules.metadata import RuleMetadata
from ..solvers.labels import LabelSearch, baseline_table, label_form, maximise_labels, shrunk_thresholds

__all__ = [
    "EntryMap",
    "LabelFit",
    "LabelProblem",
    "LabelSelection",
    "MarkedEntries",
    "baseline_fit",
    "fit_entry_map",
    "fit_labels",
    "label_oracle",
    "select_labels",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_MAP_ENTRIES = 50_000  # stored entries that fix the two numbers of a map
_MAP_STEPS = 30
_PRIOR_ENTRIES = 5.0  # by which a map is shrunk towards the probabilities as they are
_LEAST_TEMPERATURE = 0.05


class EntryMap(NamedTuple):
    """Calibration of stored entries: ``sigmoid(temperature * logit + bias)``."""

    temperature: float = 1.0
    bias: float = 0.0


@dataclass(frozen=True, eq=False)
class LabelProblem:
    """Rows of very many labels, and what a rule for them is judged by.

    Parameters
    ----------
    rows : LabelRows
    schema : Schema
    targets : LabelSets or None
        The true labels; None without labels.
    aim : LabelAim
    budget : Budget
    record : mapping of str to LabelAim
    clusters : ndarray of shape (N,), optional
        Codes of rows that belong together.
    """

    rows: LabelRows
    schema: Schema
    targets: LabelSets | None
    aim: LabelAim
    budget: Budget
    record: Mapping[str, LabelAim] = field(default_factory=dict)
    clusters: IntArray | None = None

    @property
    def labelled(self) -> bool:
        """Whether there are true labels."""
        return self.targets is not None

    @property
    def of_logits(self) -> bool:
        """Whether stored entries are logits or scores."""
        return self.schema.input.is_logits

    @cached_property
    def base_map(self) -> EntryMap | None:
        """The map of entries that no recipe has calibrated: a fitted one for scores, whose scale says nothing."""
        return fit_entry_map(self) if self.schema.input.is_scores and self.labelled else None

    @cached_property
    def entries(self) -> MarkedEntries:
        """The stored entries, one calibrated copy at a time."""
        return MarkedEntries(self.rows, self.targets, self.of_logits)

    def judge(self, seed: int) -> LabelJudge:
        """Return what values decisions by the true labels, with blocks of rows that a seed deals."""
        assert self.targets is not None
        return LabelJudge(self.targets, self.rows.weight, deal_blocks(self.rows.n_rows, self.clusters, seed))

    def count_decisions(self, decisions: LabelSets) -> LabelCounts:
        """Return the counts of decisions about all rows, by the true labels."""
        assert self.targets is not None
        weight = self.rows.weight
        total = float(self.rows.n_rows if weight is None else weight.sum())
        hits = decisions.common(self.targets).count(weight)
        return LabelCounts(hits, decisions.count(weight), self.targets.count(weight), total)

    @cached_property
    def n_unstored(self) -> float:
        """Weight of the true labels that are not stored, as far as labels are known."""
        if self.targets is None:
            return 0.0
        block = self.rows.block(self.entries.values(self.entries.held_map))
        return float(self.targets.count(self.rows.weight).sum() - kernels.label_sums(block)[:, 1].sum())

    def labels_true(self, rows: IntArray | None = None) -> FloatArray | None:
        """Return the true rows of each label, (M,), of all rows or of some."""
        if self.targets is None:
            return None
        weight = self.rows.weight
        if rows is None:
            return self.targets.count(weight)
        return self.targets.take(rows).count(None if weight is None else weight[rows])


class MarkedEntries:
    """A copy of the stored entries behind one map, with true labels marked by the sign: the last that was asked for.

    Only one copy is held, which is half of what CSR takes.
    """

    def __init__(self, rows: LabelRows, targets: LabelSets | None, of_logits: bool) -> None:
        self.rows, self.targets, self.of_logits = rows, targets, of_logits
        self._held: tuple[EntryMap | None, NDArray[Any]] | None = None

    @property
    def held_map(self) -> EntryMap | None:
        """The map of the copy that is held."""
        return None if self._held is None else self._held[0]

    def values(self, link: EntryMap | None) -> NDArray[Any]:
        """Return the entries behind a map; None: as they are, logits as the probabilities that they stand for."""
        if self._held is not None and self._held[0] == link:
            return self._held[1]
        self._held = None
        if link is None and not self.of_logits:
            values: NDArray[Any] = np.abs(self.rows.values)
        else:
            temperature, bias = EntryMap() if link is None else link
            values = kernels.label_calibrate(self.rows.values, temperature, bias, CALIBRATION_FLOOR, self.of_logits)
        if self.targets is not None:
            rows, targets = self.rows, self.targets
            kernels.label_mark(values, rows.indptr, rows.indices, rows.n_labels, targets.indptr, targets.indices)
        self._held = (link, values)
        return values


# ------------------------------------------------------------------------------------------------------- calibration


def fit_entry_map(problem: LabelProblem, rows: IntArray | None = None) -> EntryMap:
    """Fit the map of all entries to the true labels of some rows, by maximum likelihood."""
    entries, weight, numbers = _sample_entries(problem.rows, rows)
    raw = problem.rows.values[entries].astype(np.float64)
    if problem.of_logits:
        logits = raw
    else:
        clipped = np.clip(raw, CALIBRATION_FLOOR, 1.0 - CALIBRATION_FLOOR)
        logits = np.log(clipped / (1.0 - clipped))
    true = np.signbit(problem.entries.values(None)[entries]).astype(np.float64)
    of_entry = np.ones(len(entries)) if weight is None else weight[numbers]
    if not problem.of_logits:  # a stored probability of 0 stays 0
        logits, true, of_entry = (part[raw > 0] for part in (logits, true, of_entry))
    if not len(logits) or not 0 < float(of_entry @ true) < float(of_entry.sum()):
        return EntryMap()
    prior = 0.0 if problem.schema.input.is_scores else _PRIOR_ENTRIES
    return _logistic_map(logits, true, of_entry, prior)


def _sample_entries(rows: LabelRows, subset: IntArray | None) -> tuple[IntArray, FloatArray | None, IntArray]:
    """Return the positions of about so many entries as fix a map, the weights of rows, and the row of each entry."""
    numbers = np.arange(rows.n_rows) if subset is None else subset
    lengths = np.diff(rows.indptr)[numbers]
    step = max(1, int(lengths.sum()) // _MAP_ENTRIES)
    numbers, lengths = numbers[::step], lengths[::step]
    ends = np.cumsum(lengths)
    entries = np.repeat(rows.indptr[numbers] - (ends - lengths), lengths) + np.arange(int(lengths.sum()))
    return entries, rows.weight, np.repeat(numbers, lengths)


def _logistic_map(logits: FloatArray, true: FloatArray, weight: FloatArray, prior: float) -> EntryMap:
    """Return the map of maximum likelihood by damped Newton steps, shrunk towards (1, 0)."""
    middle, spread = float(np.average(logits, weights=weight)), float(logits.std()) or 1.0
    standard = (logits - middle) / spread
    # In the unit of standard logits the map is slope * s + level.
    slope, level = spread, middle
    share = np.clip(float(np.average(true, weights=weight)), 1e-6, 1 - 1e-6)
    if prior == 0.0:
        slope, level = 1.0, float(np.log(share / (1 - share)))

    def loss(slope: float, level: float) -> float:
        z = slope * standard + level
        fit = float(weight @ (np.logaddexp(0.0, z) - true * z))
        return fit + 0.5 * prior * ((slope / spread - 1.0) ** 2 + (level - slope / spread * middle) ** 2)

    current = loss(slope, level)
    for _ in range(_MAP_STEPS):
        z = slope * standard + level
        p = 1.0 / (1.0 + np.exp(-np.clip(z, -500, 500)))
        residual, curvature = weight * (p - true), weight * p * (1.0 - p)
        by_temperature, by_bias = slope / spread - 1.0, level - slope / spread * middle
        ratio = middle / spread
        gradient = np.array(
            [
                residual @ standard + prior * (by_temperature / spread - by_bias * ratio),
                residual.sum() + prior * by_bias,
            ]
        )
        hessian = np.array(
            [
                [
                    curvature @ standard**2 + prior * (1 / spread**2 + ratio**2) + 1e-9,
                    curvature @ standard - prior * ratio,
                ],
                [curvature @ standard - prior * ratio, curvature.sum() + prior + 1e-9],
            ]
        )
        step = np.linalg.solve(hessian, gradient)
        share_of_step = 1.0
        while share_of_step > 1e-4:
            trial = (slope - share_of_step * step[0], level - share_of_step * step[1])
            value = loss(*trial)
            if value <= current:
                break
            share_of_step /= 2
        else:
            break
        done = current - value <= 1e-9 * abs(current)
        slope, level, current = float(trial[0]), float(trial[1]), value
        if done:
            break
    temperature = max(slope / spread, _LEAST_TEMPERATURE)
    return EntryMap(temperature, level - temperature * middle)


def _factors(oracle: LabelOracle) -> FloatArray | None:
    """Return by how much each label is more frequent than its probabilities say, shrunk towards 1."""
    if oracle.labels_true is None:
        return None
    expected, hits = oracle.sums.T
    return np.asarray((hits + PSEUDO_POSITIVES) / (expected + PSEUDO_POSITIVES))


# --------------------------------------------------------------------------------------------------------------- fits


@dataclass(frozen=True, eq=False)
class LabelFit:
    """A table of scores with the map and the factors that probabilities go through first.

    `table` is of stored values behind the map; factors are part of its scale.
    """

    table: LabelTable
    link: EntryMap | None
    factor: FloatArray | None
    search: LabelSearch | None = None

    def decide(self, problem: LabelProblem, rows: IntArray | None = None) -> LabelSets:
        """Return the labels of all rows, or of some."""
        block = problem.rows.block(problem.entries.values(self.link), rows)
        budget, n_labels = problem.budget, problem.rows.n_labels
        scale, offset = self.table
        fill = labels_to_fill(offset, n_labels, budget, problem.rows.longest)
        return LabelSets(*kernels.label_decide(block, scale, offset, budget.low, budget.high, fill), n_labels)

    def rule(self, problem: LabelProblem, metadata: RuleMetadata, *, is_bounded: bool) -> LabelRule:
        """Return the rule in the user's terms; one that keeps a bound does not decide rows together."""
        aim, n_labels = problem.aim, problem.rows.n_labels
        form = None
        if not (aim.is_linear or is_bounded) and (aim.ratio is not None or aim.is_coverage):
            # Of rows that are at hand it is known how often a label is predicted, but not how often it is true.
            damped = not aim.is_pooled and aim.ratio is not None and aim.ratio.denominator.true != 0
            numerator, denominator, damped, coverage = label_form(aim.ratio, damped=damped)
            form = BatchForm(numerator, denominator, damped, coverage, aim.is_pooled and not aim.is_coverage)
        scale, offset = (np.broadcast_to(part, (n_labels,)) for part in self.table)
        if not problem.budget.is_limited:  # a label that is not stored is never predicted
            offset = np.minimum(offset, 0.0)
        return LabelRule(
            scale,
            offset,
            problem.budget.said,
            temperature=None if self.link is None else self.link.temperature,
            bias=None if self.link is None else self.link.bias,
            factor=self.factor,
            input=problem.schema.input.kind,
            classes=problem.schema.classes,
            output_names=problem.schema.output_names,
            form=form,
            linear=aim.is_linear and not is_bounded,
            label_weight=aim.weight,
            metadata=metadata,
        )

    def count(self, problem: LabelProblem) -> LabelCounts:
        """Return the counts of all rows, with labels if there are any, else as expected."""
        budget = problem.budget
        if problem.targets is not None and budget.is_limited and (budget.low > 0 or self.table.offset.max() > 0):
            # A label that is predicted though it is not stored is a hit if it is true.
            return problem.count_decisions(self.decide(problem))
        if self.search is not None and self.search.counts is not None:
            return self.search.counts
        block = problem.rows.block(problem.entries.values(self.link))
        kind: Literal["labels", "expected"] = "labels" if problem.labelled else "expected"
        return LabelOracle(block, problem.budget, kind, problem.labels_true(), self.factor).count([self.table])[0]


def baseline_fit(problem: LabelProblem) -> LabelFit:
    """Return the fit of labels that are more probable than not, or the most probable ones."""
    return LabelFit(baseline_table(), problem.base_map, None)


def label_oracle(
    problem: LabelProblem, recipe: FitStrategy, rows: IntArray | None
) -> tuple[LabelOracle, EntryMap | None, LabelAim]:
    """Return what a recipe counts of all rows or of some, behind the map that it fits, and the aim for these rows."""
    link = fit_entry_map(problem, rows) if recipe.recalibrate and problem.labelled else problem.base_map
    block = problem.rows.block(problem.entries.values(link), rows)
    oracle = LabelOracle(block, problem.budget, recipe.confusion, problem.labels_true(rows))
    if recipe.recalibrate and problem.labelled:
        oracle = oracle.with_factor(_factors(oracle))
    aim = problem.aim if oracle.labels_true is None else problem.aim.bind(oracle.labels_true)
    return oracle, link, aim


def fit_labels(problem: LabelProblem, recipe: FitStrategy, rows: IntArray | None = None) -> LabelFit:
    """Fit a recipe to all rows, or to some."""
    oracle, link, aim = label_oracle(problem, recipe, rows)
    ratio = aim.ratio
    if recipe.confusion == "labels" and ratio is not None and not (aim.is_pooled or problem.budget.is_limited):
        search = shrunk_thresholds(oracle, aim, ratio)
    else:
        search = maximise_labels(oracle, aim)
    return LabelFit(search.table, link, oracle.factor, search)


# ---------------------------------------------------------------------------------------------------------- selection


class LabelFitter(Protocol):
    """A way to fit a rule, by its name."""

    @property
    def name(self) -> str: ...

    @property
    def fit(self) -> Callable[[LabelProblem, IntArray | None], Any]: ...


@dataclass(frozen=True, eq=False)
class LabelSelection:
    """The fitter that is chosen, None for the baseline, with what it is worth on rows left out."""

    chosen: int | None
    gain: Gain
    value: Estimate
    candidates: tuple[Candidate, ...]


def select_labels(
    problem: LabelProblem, fitters: Sequence[LabelFitter], seed: int, stage: Callable[[str], None]
) -> LabelSelection:
    """Fit every candidate to either half of the rows, and value its decisions about the other half, both together."""
    n_rows, judge = problem.rows.n_rows, problem.judge(seed)
    aim = problem.aim.bind(judge.true)
    stage("fitting rules to halves of the rows")
    baseline = baseline_fit(problem).decide(problem)
    halves = [np.flatnonzero(judge.block % 2 == half) for half in (0, 1)]
    decided: list[list[tuple[IntArray, LabelSets]]] = [[] for _ in fitters]
    for half in (0, 1):
        for parts, fitter in zip(decided, fitters, strict=True):
            fitted = fitter.fit(problem, halves[1 - half])
            parts.append((halves[half], fitted.decide(problem, halves[half])))
    stage("evaluating rules on rows left out")
    by_half = [judge.take(rows) for rows in halves]
    of_baseline = _HalfValues.of(by_half, aim, baseline, halves)
    value_of_baseline, without_baseline = judge.value(aim, baseline), judge.left_out(aim, baseline)
    candidates, estimates, gains = [], [], []
    for parts, fitter in zip(decided, fitters, strict=True):
        decisions = LabelSets.joined(parts, n_rows)
        of_halves = _HalfValues.of(by_half, aim, decisions, halves)
        low_gain, without_low = of_halves.mean - of_baseline.mean, of_halves.left_out - of_baseline.left_out
        high_gain = judge.value(aim, decisions) - value_of_baseline
        without_high = judge.left_out(aim, decisions) - without_baseline
        gains.append(_hull(judge.estimate(low_gain, without_low), judge.estimate(high_gain, without_high)))
        estimates.append(
            _hull(
                judge.estimate(value_of_baseline + low_gain, without_baseline + without_low),
                judge.estimate(value_of_baseline + high_gain, without_baseline + without_high),
            )
        )
        recorded = {name: judge.value(secondary, decisions) for name, secondary in problem.record.items()}
        error = standard_error(without_low)
        candidates.append(Candidate(fitter.name, value_of_baseline + low_gain, low_gain, error, recorded))
    best = int(np.argmax([candidate.value for candidate in candidates]))
    if candidates[best].gain <= 0:
        kept = judge.estimate(value_of_baseline, without_baseline)
        return LabelSelection(None, Gain(0.0, 0.0, 0.0), kept, tuple(candidates))
    gain = gains[best]
    return LabelSelection(best, Gain(gain.estimate, gain.low, gain.high), estimates[best], tuple(candidates))


def _hull(first: Estimate, second: Estimate) -> Estimate:
    """Return the mean of two estimates, and the interval that holds those of both.

    Rare labels need as many rows as there will be to show what a rule is worth to them: half of the rows show too
    little of it, and both halves together too much, because each has been decided by another rule.
    """
    return Estimate((first.estimate + second.estimate) / 2, min(first.low, second.low), max(first.high, second.high))


class _HalfValues(NamedTuple):
    """The mean of the values of two halves of the rows, and the same without each block."""

    mean: float
    left_out: FloatArray

    @classmethod
    def of(
        cls, judges: Sequence[LabelJudge], aim: LabelAim, decisions: LabelSets, halves: Sequence[IntArray]
    ) -> _HalfValues:
        """Value decisions about all rows."""
        parts = [decisions.take(rows) for rows in halves]
        values = [judge.value(aim, part) for judge, part in zip(judges, parts, strict=True)]
        without = [judge.left_out(aim, part) for judge, part in zip(judges, parts, strict=True)]
        left_out = np.concatenate([(without[0] + values[1]) / 2, (without[1] + values[0]) / 2])
        blocks = np.concatenate([judge.block_ids for judge in judges])
        return cls(float(np.mean(values)), left_out[np.argsort(blocks)])
