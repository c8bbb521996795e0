"""One problem, read and checked: probabilities, labels, weights, and the metric to maximise.

Owns the step from what was read to what a solver takes: the link, the oracle and the objective of some rows under a
recipe. Must not know solvers, how recipes are chosen, nor read user input.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..core.cached import cached_property
from ..core.dependence import Dependence
from ..core.losses import Loss
from ..core.rows import Rows
from ..core.schema import Schema
from ..data.sources.base import Source, in_passes
from ..data.sources.memory import MemorySource
from ..goals.constraint import Constraint
from ..metrics.abstention import AbstentionCost
from ..metrics.aim import AveragedMetric
from ..metrics.averages import Grouping
from ..metrics.instance import RowMean, RowValues, row_values
from ..metrics.naming import PerOutput
from ..metrics.objective import Objective
from ..rules.base import Rule, RuleRows
from ..rules.calibration import TemperatureScaling, link_or_base, prior_shift
from ..rules.calibration_fit import fit_link, fit_links, link_rows
from ..rules.calibration_influence import stored_calibration
from ..rules.stored_calibration import StoredCalibration
from ..rules.weighted import WeightedRule, anonymous_rule
from .base import Oracle
from .counts import Counts
from .smoothing import pad

__all__ = [
    "InMemory",
    "Problem",
    "FitStrategy",
    "argmax_rule",
    "mixed",
]

FloatArray = NDArray[np.float64]

_MAX_SHIFTS = 100
_SHIFT_TOL = 1e-9
# A calibration that no rule decides behind is fitted to one in so many of the rows that others are fitted to: with all
# of them, one fit of a million rows of two or ten classes by labels takes nearly twice as long. Its standard errors are
# twice as large, as its covariance says.
_STORED_SHARE = 4


def _link_of(rows: Rows) -> TemperatureScaling:
    """Return the link of a sample of rows, fitted to all of them."""
    assert rows.codes is not None
    return fit_link(rows.proba, rows.codes, rows.weight, frequency=rows.frequency, max_rows=rows.n_rows)


@dataclass(frozen=True)
class FitStrategy:
    """How a rule is fitted to rows.

    Parameters
    ----------
    confusion : {"labels", "expected", "blended"}
        What is counted: labels, probabilities in their place, or half of each.
    recalibrate : bool
        Whether a link is fitted to the labels first.
    link_by_group : bool
        Whether every sensitive group has a link of its own.
    """

    confusion: Literal["labels", "expected", "blended"] = "labels"
    recalibrate: bool = False
    link_by_group: bool = False

    def __str__(self) -> str:
        linked = "recalibrated by group + " if self.link_by_group else "recalibrated + "
        return (linked if self.recalibrate else "") + self.confusion


@dataclass(frozen=True, eq=False)
class Problem:
    """Everything a rule is fitted to: rows, wherever they lie, and what it is judged by.

    Parameters
    ----------
    source : Source
    aim : AveragedMetric
        What is maximised.
    prior : ndarray of shape (M, K), or None
        Class priors of the rows that the rule is for.
    record : mapping of str to AveragedMetric
        What is recorded beside it.
    allowed : AbstentionCost, optional
        What an abstention counts for, where the rule may abstain; the aims know already.
    constraints : tuple of Constraint
        What the rule is to keep besides, for whoever looks at it afterwards.
    """

    source: Source
    aim: AveragedMetric
    prior: FloatArray | None = None
    record: Mapping[str, AveragedMetric] = field(default_factory=dict)
    allowed: AbstentionCost | None = None
    constraints: tuple[Constraint, ...] = ()

    @property
    def schema(self) -> Schema:
        """Outputs and classes."""
        return self.source.schema

    @property
    def n_rows(self) -> int:
        """N."""
        return self.source.n_rows

    @property
    def labelled(self) -> bool:
        """Whether rows have labels."""
        return self.source.labelled

    @property
    def dependence(self) -> Dependence | None:
        """How far rows depend on one another if they are in time, where clusters are stretches of it; else None."""
        return self.source.rows.dependence if isinstance(self.source, MemorySource) else None

    def sample(self, n_rows: int, seed: int) -> InMemory:
        """Return the problem of about so many rows in memory, stratified by class and weighted back."""
        source = MemorySource(self.source.sample(n_rows, seed), self.schema, self.source.passes)
        return InMemory(source, self.aim, self.prior, self.record, self.allowed)

    def of_outputs(self, outputs: NDArray[np.intp]) -> Problem:
        """Return the problem of some of the outputs, which are averaged by macro; nothing is recorded for it."""
        source = self.source.of_outputs(outputs)
        prior = None if self.prior is None else self.prior[outputs, : source.schema.width]
        return Problem(source, self.aim.of_outputs(outputs), prior, allowed=self.allowed)

    def by_group(self, n_groups: int, *, aware: bool, worst: bool = False) -> Problem:
        """Return the problem in which the rows of every sensitive group are outputs of their own.

        Parameters
        ----------
        n_groups : int
        aware : bool
            Whether they may have losses of their own.
        worst : bool, default=False
            Whether the worst group is what counts.
        """
        assert self.prior is None
        record = {name: aim.by_group(n_groups, aware=aware, worst=False) for name, aim in self.record.items()}
        aim = self.aim.by_group(n_groups, aware=aware, worst=worst)
        return replace(self, source=self.source.by_group(n_groups), aim=aim, record=record)

    @property
    def parts(self) -> list[NDArray[np.intp]]:
        """Outputs that one solver serves: all, unless they were given metrics of their own.

        Then those of one metric, and binary ones apart from others: each gets the solver that it would get alone.
        """
        kinds = self.aim.metric.kinds if isinstance(self.aim.metric, PerOutput) else None
        if kinds is None:
            return [np.arange(self.schema.n_outputs)]
        outputs_of: dict[tuple[int, bool], list[int]] = {}
        for m, (kind, n_classes) in enumerate(zip(kinds, self.schema.n_classes.tolist(), strict=True)):
            outputs_of.setdefault((kind, n_classes == 2), []).append(m)
        return [np.array(outputs, dtype=np.intp) for outputs in outputs_of.values()]

    def link(self, recalibrate: bool, by_group: bool = False) -> TemperatureScaling | None:
        """Fit the link, one for all sensitive groups or one for each, and shift it to the known class priors."""
        link = None
        if recalibrate:
            link = self._calibration_by_group if by_group else self._calibration
        if self.prior is None:
            return link
        link = link_or_base(link, self.schema)
        if self.labelled:
            return prior_shift(link, Counts(self.source).priors[:, : self.schema.width], self.prior)
        # Without labels the rows themselves have the new priors, and those of training are not known: the shift is
        # right where the mean of the shifted probabilities is the prior (Sinkhorn's iteration, which converges fast).
        for _ in range(_MAX_SHIFTS):
            mean_proba = Counts(self.source, "expected", link).priors[:, : self.schema.width]
            if link is not None and np.abs(mean_proba - self.prior).max() < _SHIFT_TOL:
                break
            link = prior_shift(link, mean_proba, self.prior)
        return link

    @cached_property
    def _calibration(self) -> TemperatureScaling:
        """The link as the labels have it: of these rows several recipes may want it."""
        rows, n_groups = self.source.sample(link_rows(self.schema.width)), self.schema.n_groups
        rows = rows if n_groups == 1 else rows.whole(n_groups)
        link = _link_of(rows)
        return link if n_groups == 1 else link.of_outputs(np.tile(np.arange(link.n_outputs), n_groups))

    def link_without(self, rows: Rows, left_out: NDArray[np.intp]) -> TemperatureScaling:
        """Return the link of all rows of a single output but some; that of all of them, which it is near, is kept.

        `rows` are those that links of the problem are fitted to.
        """
        assert rows.codes is not None
        masks = np.ones((2, rows.n_rows), dtype=bool)
        masks[1, left_out] = False
        every, others = fit_links(
            rows.proba, rows.codes, rows.weight, masks=masks, frequency=rows.frequency, max_rows=rows.n_rows
        )
        vars(self)["_calibration"] = every
        return others

    @cached_property
    def calibration(self) -> StoredCalibration:
        """The calibration of labelled rows with its sampling error and the class shares, which rules keep."""
        assert self.labelled and self.schema.n_groups == 1
        weights = self.source.class_weights[:, : self.schema.width]
        n_rows = link_rows(self.schema.width)
        if "_calibration" in vars(self):
            rows, link = self.source.sample(n_rows), self._calibration
        else:  # no rule decides behind it
            rows = self.source.sample(n_rows // _STORED_SHARE)
            link = _link_of(rows)
        return stored_calibration(rows, link, weights)

    @cached_property
    def _calibration_by_group(self) -> TemperatureScaling:
        """The same of every sensitive group by itself."""
        return _link_of(self.source.sample(link_rows(self.schema.width)))

    def oracle(self, confusion: str = "labels", link: TemperatureScaling | None = None) -> Counts:
        """Return the oracle of these rows."""
        return Counts(self.source, confusion, link, self.prior)  # type: ignore[arg-type]  # one of three words

    def passes_since(self, entries: int) -> int:
        """Return the passes over all rows since so many entries had been read."""
        return in_passes(self.source.passes.entries - entries, self.n_rows, self.schema.n_outputs)

    def objective(self, oracle: Oracle, recipe: FitStrategy | None = None) -> Objective:
        """Bind the metric to the class priors that an oracle counts.

        Parameters
        ----------
        oracle : Oracle
        recipe : FitStrategy, optional
            What a rule is fitted by, rather than judged: where there are labels and the metric counts every class
            alike, classes that no label shows are padded (:func:`metricwise.oracles.smoothing.pad`).
        """
        padded = None
        if recipe is not None and self.labelled and self.aim.metric.traits.by_class:
            rare = recipe.recalibrate and recipe.confusion != "labels"

            def padded(grouping: Grouping) -> FloatArray | None:
                metrics = [self.aim.metric._of_output(m) for m in grouping.first]
                smooth = np.array([metric.traits.smooth for metric in metrics])
                by_class = np.array([metric.traits.by_class for metric in metrics])
                return pad(oracle, grouping, self.source.class_rows, rare=rare, smooth=smooth, by_class=by_class)

        return self.aim.bind(
            oracle.priors,
            oracle.weight,
            oracle.n_classes,
            self.schema.classes,
            frozen=self.keeps_argmax,
            pad=padded,
        )

    @cached_property
    def rows_alike(self) -> bool:
        """Whether all rows weigh the same and are independent, as far as is known."""
        glance = self.source.glance(1)
        return glance.weight is None and glance.cluster is None and glance.repeats is None

    @cached_property
    def keeps_argmax(self) -> NDArray[np.bool_]:
        """Outputs that no label can tell a rule for: without any, or of one class, each by itself (macro)."""
        if not self.labelled or self.aim.average != "macro" or self.schema.n_outputs == 1:
            return np.zeros(self.schema.n_outputs, dtype=bool)
        shown, parts = self.source.class_weights > 0, self.aim.parts
        if parts is not None:
            joint = np.zeros((parts.max() + 1, shown.shape[1]), dtype=bool)
            np.logical_or.at(joint, parts, shown)
            shown = joint[parts]
        return np.asarray(shown.sum(axis=1) < 2)

    def confusion_of_rule(self, rule: Rule, oracle: Counts) -> FloatArray:
        """Return the confusion tensor of a rule that knows no link, as an oracle counts it; of a mixture the mean."""
        if "segments" in rule.needs:
            return self._confusion_by_part(rule, oracle)
        if not rule.is_flat:
            return oracle.confusion_by(lambda rows: rule.decide(RuleRows(rows.proba, rows.start)))
        parts = rule.flatten()
        return mixed(oracle.confusions(parts.losses), parts.shares)

    def _confusion_by_part(self, rule: Rule, oracle: Counts) -> FloatArray:
        """Return the confusion of a rule that knows the group of rows, behind its links; of a mixture the mean."""

        def confusion(r: int) -> FloatArray:
            return oracle.confusion_by(
                lambda rows: rule.decide_each(RuleRows(rows.proba, rows.start, rows.group))[0][r]
            )

        empty = self.source.glance(1).take(slice(0, 0))
        shares = rule.decide_each(RuleRows(empty.proba, 0, empty.group))[1]
        return mixed(np.stack([confusion(r) for r in range(shares.shape[1])]), shares)

    def argmax_confusion(self, oracle: Counts) -> FloatArray:
        """Return the confusion tensor of argmax on the numbers that the user gave, as an oracle counts it."""
        baseline = self.source.rows.baseline if isinstance(self.source, MemorySource) else None
        if baseline is not None:
            return oracle.confusion_of(baseline)
        return np.asarray(oracle.confusions([Loss.argmax(self.schema.decision_width)], linked=False)[0])

    def value_of_rule(self, rule: Rule) -> float:
        """Return the metric of a rule in the user's labels, behind its link, counted with labels; drawn if it mixes."""
        assert self.labelled
        if self.aim.average == "instance":
            return self.source.reduce(lambda rows: self._by_row(rows, rule)).value
        oracle = self.oracle("labels", rule.shared_link)
        return self.objective(oracle).value(self.confusion_of_rule(rule, oracle))

    def _by_row(self, rows: Any, rule: Rule) -> RowMean:
        """The mean over some rows of the metric of each row's own confusion."""
        return self._values_of(rows, rule.decide(RuleRows(rows.proba, rows.start, rows.group))).mean

    def _values_of(self, rows: Any, decided: NDArray[Any]) -> RowValues:
        aim, schema = self.aim, self.schema
        options = (aim.output_weight, rows.weight, schema.classes)
        return row_values(aim.metric, rows.codes, decided, schema.decision_width, *options)


@dataclass(frozen=True, eq=False)
class InMemory(Problem):
    """A problem whose rows are in memory: what a sample of the rows is, on which recipes are compared."""

    source: MemorySource

    def of_outputs(self, outputs: NDArray[np.intp]) -> InMemory:
        """Return the problem of some of the outputs, which are averaged by macro; nothing is recorded for it."""
        some = super().of_outputs(outputs)
        assert isinstance(some.source, MemorySource)
        return InMemory(some.source, some.aim, some.prior, allowed=self.allowed)

    def compact(self) -> InMemory:
        """Return the problem with the probabilities of all outputs in one array, where they have one shape."""
        rows = self.source.rows
        rows = replace(rows, proba=rows.proba.compact())
        return replace(self, source=MemorySource(rows, self.schema, self.source.passes))

    def take(self, rows: Any) -> InMemory:
        """Return the problem of some of the rows."""
        return replace(self, source=MemorySource(self.source.take(rows), self.schema, self.source.passes))

    def decide(self, rule: Rule, link: TemperatureScaling | None = None) -> NDArray[np.intp]:
        """Return the decisions (codes) of a rule that knows no link, behind one."""
        proba = self.source.rows.proba
        return rule.decide(RuleRows(proba if link is None else link.view(proba)))

    def decide_argmax(self) -> NDArray[Any]:
        """Return the decisions (codes) of argmax about the numbers that the user gave."""
        baseline = self.source.rows.baseline
        return self.decide(argmax_rule(self)) if baseline is None else baseline

    def by_row(self, decided: NDArray[Any]) -> RowValues:
        """Return the metric of each row's own confusion, of decisions (codes), and what rows weigh."""
        return self._values_of(self.source.rows, decided)

    def value_of(self, decided: NDArray[Any]) -> float:
        """Return the metric of decisions (codes) counted with labels; row by row for the instance-average."""
        if self.aim.average == "instance":
            return self.by_row(decided).mean.value
        oracle = self.oracle()
        return self.objective(oracle).value(oracle.confusion_of(decided))


def mixed(tensors: FloatArray, shares: FloatArray) -> FloatArray:
    """Return the mean (M, K, K) of confusion tensors (R, M, K, K) by shares (M, R) or (1, R)."""
    shares = np.broadcast_to(shares, (tensors.shape[1], len(tensors)))
    return np.asarray(np.einsum("mr,rmij->mij", shares, tensors))


def argmax_rule(problem: Problem) -> WeightedRule:
    """Return the rule of argmax, in the user's labels."""
    schema = problem.schema
    return anonymous_rule(Loss.argmax(schema.decision_width), schema.n_decisions).named(schema, None)
