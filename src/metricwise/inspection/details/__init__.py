"""What is counted of rows for displays, cards and reports: a rule compared with argmax.

Every part is counted when it is first asked for. Must not know how anything is shown, nor fit rules.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core.cached import cached_property
from ...core.errors import InvalidParameter, InvalidType, entry_point
from ...core.losses import Loss
from ...evaluation.arguments import allowed_for, own_average, own_metric, read_judged, read_rule, specs_of
from ...fitting.samples import judging_rows
from ...goals.judged import read_aims
from ...goals.spec import GoalSpec
from ...metrics.aim import AveragedMetric
from ...oracles.counts import Counts
from ...oracles.problem import InMemory, Problem
from ...rules.calibration import TemperatureScaling
from ...rules.label_base import LabelRuleBase
from ...rules.mixture import MixtureRule
from ...rules.weighted import WeightedRule
from ..view import View
from .curve import Curve, count_curve, judge_of
from .gains import Gains, count_class_gains, count_output_gains
from .groups import by_group, pool_groups
from .missing import Missing, NotApplicable, attempt
from .moves import Moves, count_moves
from .reliability import Bins, Reliability, calibration_bins, count_reliability

__all__ = [
    "Bins",
    "Curve",
    "Details",
    "Gains",
    "Missing",
    "Moves",
    "NotApplicable",
    "Reliability",
    "attempt",
    "calibration_bins",
    "details_of",
]

FloatArray = NDArray[np.float64]
T = TypeVar("T", Gains, Reliability)

_ROUNDING = 1e-9
_PASS_ROWS = "pass them to from_predictions of a display such as displays.MetricCurveDisplay, or call optimize again"


@dataclass(frozen=True, eq=False)
class Details:
    """Details of a rule on rows, compared with argmax; every part is computed on first access and cached.

    Parameters
    ----------
    rule : WeightedRule or MixtureRule
        The rule; for a rule by sensitive group, its outputs are groups.
    problem : Problem or None
        The rows and the aim. None in a pickle, which contains only the parts that were computed before.

    See Also
    --------
    metricwise.displays : Draw the parts.

    Examples
    --------
    >>> import numpy as np
    >>> import metricwise as mw
    >>> rng = np.random.default_rng(0)
    >>> p = rng.beta(1, 3, 2000)
    >>> y = (rng.random(2000) < p).astype(int)
    >>> details = mw.optimize(p, y, "f1").details
    >>> details.curve.kind, details.moves.moved
    ('threshold', 0.24)
    """

    rule: WeightedRule | MixtureRule
    problem: Problem | None

    @classmethod
    def of_rows(
        cls,
        rule: Any,
        proba: Any,
        y: ArrayLike,
        metrics: Any = None,
        **options: Any,
    ) -> Details:
        """Return the details of a rule on rows with labels.

        Parameters
        ----------
        rule : WeightedRule, MixtureRule, Solution, path, str or dict
            As in :func:`metricwise.evaluate`.
        proba, y
            As in :func:`metricwise.evaluate`.
        metrics : str, Metric, callable, list or dict, optional
            The metric to judge the rule by, and others. None: the metric that it was optimised for, by its name.
        **options
            As :func:`metricwise.evaluate` takes them: `sample_weight`, `pos_label`, `average` and so on.

        Returns
        -------
        Details
        """
        rule = read_rule(rule)
        if not rule.has_path:
            rule.flatten()  # refused where there are no rules between argmax and the rule
        if metrics is None:
            metrics = own_metric(rule)
            if options.get("pos_label") is None:
                options["pos_label"] = rule.metadata.pos_label
            if options.get("average") is None:
                options["average"] = own_average(rule)
        allowed = allowed_for(options.pop("abstain", None), rule)
        strict = options.pop("strict", True)
        specs = specs_of(proba, y, metrics, options)
        source, aims = read_judged(rule, *specs, strict=strict, allowed=allowed)
        first, *others = aims
        record = {name: aims[name] for name in others}
        return cls(rule, Problem(source, aims[first].maximised(), record=record, allowed=allowed))

    # ---------------------------------------------------------------------------------------------------- the parts

    @cached_property
    def before(self) -> FloatArray:
        """Confusion tensor of argmax, (M, K, K), or (M, K, K + 1) if the rule may abstain."""
        problem = self._rows
        argmax = [Loss.argmax(problem.schema.decision_width)]
        return np.asarray(self._judge.confusions(argmax, linked=False)[0, :, : problem.schema.width])

    @cached_property
    def after(self) -> FloatArray:
        """Confusion tensor of the rule, of the same shape."""
        problem = self._rows
        return problem.confusion_of_rule(self.rule, self._judge)[:, : problem.schema.width]

    @cached_property
    def weight(self) -> FloatArray:
        """Weight (M,) of the labels of each output, of which confusions are shares."""
        return self._judge.weight

    @cached_property
    def labelled(self) -> bool:
        """Whether labels were counted, rather than probabilities in their place."""
        return self._rows.labelled

    @cached_property
    def curve(self) -> Curve | None:
        """The path from argmax to the rule and beyond; None if the confusions along it are too large."""
        return count_curve(self._rows, self.rule)

    @cached_property
    def moves(self) -> Moves:
        """Rows that the rule decides differently from argmax."""
        return count_moves(self._rows, self.rule)

    @cached_property
    def reliability(self) -> Reliability | None:
        """Predicted probabilities against observed frequencies, before and after the link; None without labels."""
        return self._of_judges(lambda rows: count_reliability(rows, self.link))

    @cached_property
    def output_gains(self) -> Gains | None:
        """Gain of the rule in each output, by the metric that was maximised; None without labels."""
        return self._of_judges(lambda rows: count_output_gains(rows, self.rule))

    @cached_property
    def class_gains(self) -> Gains | None:
        """Gain of the rule for each class, by what the metric is made of; None without labels, or for several outputs.

        That is the recall, precision or F-measure of each class, and F1 if the metric is made of neither.
        """
        if self._rows.schema.n_outputs > 1:
            return None
        return self._of_judges(lambda rows: count_class_gains(rows, self.rule))

    @property
    def gains(self) -> Gains | None:
        """Gain of the rule in each output, or for each class of a single output."""
        return self.class_gains if self.rule.n_outputs == 1 else self.output_gains

    # ---------------------------------------------------------------------------------------------------- plumbing

    def with_metrics(self, metrics: Any, **options: Any) -> Details:
        """Return the details with these metrics in addition to the first one, along the curve.

        Parameters
        ----------
        metrics : str, Metric, callable, list or dict
            As in :func:`metricwise.evaluate`.
        **options
            `average` and `pos_label`, as in :func:`metricwise.evaluate`; by default those of the first metric.
        """
        problem = self._rows
        aim = problem.aim
        if problem.schema.multioutput:
            options.setdefault("average", aim.average)
        strict = "pos_label" in options
        options.setdefault("pos_label", getattr(aim.metric, "pos_label", None))
        goal = GoalSpec(metrics, **options)
        aims = read_aims(goal, problem.schema, aim.output_weight, strict=strict, allowed=problem.allowed)
        return self.recording({name: additional for name, additional in aims.items() if name != aim.name})

    def recording(self, aims: Mapping[str, AveragedMetric]) -> Details:
        """Return the details with exactly these aims in addition to the first one."""
        return replace(self, problem=replace(self._rows, record=dict(aims)))

    def _of_judges(self, count: Callable[[InMemory], T]) -> T | None:
        """Count a part on rows in memory, a sample of very many; None without labels."""
        if not self._rows.labelled:
            return None
        rows, whole = judging_rows(self._rows)
        part = count(rows)
        return part if whole else replace(part, sampled=rows.n_rows)

    @property
    def link(self) -> TemperatureScaling | None:
        """The link of the rule."""
        return self.rule.shared_link

    @property
    def _judge(self) -> Counts:
        return judge_of(self._rows, self.rule)

    @property
    @entry_point("{class}")
    def _rows(self) -> Problem:
        if self.problem is None:
            raise NotApplicable(
                "",
                problem="this part was not computed before the solution was saved, and files do not contain rows",
                remedy=_PASS_ROWS,
                owner="Details",
            )
        return self.problem

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "problem": None}


def details_of(view: View) -> Details:
    """Return the details of a view on the rows that its rule was fitted to; they are kept in the view."""
    if not isinstance(view, View):
        raise InvalidType("solution", "be a Solution returned by optimize", type(view).__name__)
    if "details" not in vars(view):
        vars(view)["details"] = _count_details(view)
    details: Details = vars(view)["details"]
    return details


def _count_details(view: View) -> Details:
    rule: Any = view.rule
    problem = view.problem
    if "cost" in rule.needs:
        raise NotApplicable(
            "",
            problem="details based on confusion matrices are not available for a "
            f"{type(rule).__name__}, which uses the costs of each row",
            remedy="use solution.report instead",
            owner="Solution",
        )
    if "segments" in rule.needs:
        raise NotApplicable(
            "",
            problem="details along the rules from argmax to this one are not available for a "
            f"{type(rule).__name__}, which calibrates each segment by itself",
            remedy="use solution.report, or metricwise.evaluate for values on rows",
            owner="Solution",
        )
    if isinstance(rule, LabelRuleBase):
        raise NotApplicable(
            "",
            problem="details along the rules from argmax to this one are not available for a "
            f"{type(rule).__name__}, which decides the labels of a row by their own scores",
            remedy="use solution.by_label, solution.plot or solution.report instead",
            owner="Solution",
        )
    if problem is None:
        raise NotApplicable(
            "",
            problem="its rows are not available, because files do not contain them",
            remedy=_PASS_ROWS,
            owner="Solution",
        )
    if "sensitive_features" in rule.needs:
        rule, problem = by_group(rule, problem)
    details = Details(rule, problem)
    confusion = details.after
    if len(confusion) > len(view.confusion):
        confusion = pool_groups(confusion, details.weight, len(confusion) // len(view.confusion))
    if not np.allclose(confusion, view.confusion, rtol=0, atol=_ROUNDING):
        raise InvalidParameter(
            "",
            problem="the rows have changed since optimize was called: the rule now predicts other decisions. Do "
            "not modify arrays in place before drawing the solution, or call optimize again",
            owner="Solution",
        )
    return details
