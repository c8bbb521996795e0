"""The best rule that keeps promises about sensitive groups, and how every group fares.

Owns the step from rows with a group to a problem in which the rows of every group are outputs of their own, and back:
the rule by group, or the one rule for all, the confusion of all rows, the values of every group. Solvers, margins and
resamples are those of every other promise. Must not know user input.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InvalidParameter
from ..core.losses import Loss
from ..core.notes import Note, NoteKind
from ..data import Groups, python_labels
from ..goals.constraint import Constraint
from ..goals.parity import DecisionRate
from ..goals.worst import opened
from ..inference import Recorded
from ..metrics.abstention import Abstaining
from ..metrics.base import Metric
from ..metrics.class_names import written
from ..metrics.one_vs_rest import OneVsRest
from ..oracles import Counts
from ..oracles.problem import Problem, Recipe, mixed
from ..rules import GroupedRule, MixtureRule, Rule, RuleMetadata, WeightedRule, of_schema
from ..solvers import Outcome
from ..solvers.constrained import InfeasibleError
from .constraints.fit import ConstrainedFit, fit_within
from .constraints.search import Search
from .secondary_metrics import record_rule
from .solving import FittedRule, Settings

__all__ = ["GroupFit", "GroupTask", "fit_by_group", "values_by_group"]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class GroupTask:
    """What is asked of sensitive groups.

    Parameters
    ----------
    groups : Groups
    aware : bool
        Whether the rule may see the group of a row.
    worst : bool
        Whether the worst group's value is what counts.
    unknown : {"refuse", "abstain", "blind"}
        What becomes of rows of other groups.
    """

    groups: Groups
    aware: bool = True
    worst: bool = False
    unknown: str = "refuse"

    @property
    def n_groups(self) -> int:
        """G."""
        return len(self.groups.names)

    def needed(self, constraints: Sequence[Constraint]) -> bool:
        """Say whether anything that is asked for is about single groups."""
        return self.worst or any(one.group is not None for one in constraints)


@dataclass(frozen=True, eq=False)
class GroupFit:
    """The best rule that keeps constraints about groups, and how every group fares.

    Parameters
    ----------
    fitted : FittedRule
        Its confusion is that of all groups together.
    rule : GroupedRule, WeightedRule or MixtureRule
        One rule for each group, or one for all.
    fit : ConstrainedFit
        Of the problem in which the rows of every group are outputs of their own.
    recorded : dict of str to Recorded
    by_group : dict of group to dict of str to Recorded
    """

    fitted: FittedRule
    rule: GroupedRule | WeightedRule | MixtureRule
    fit: ConstrainedFit
    recorded: dict[str, Recorded]
    by_group: dict[Any, dict[str, Recorded]]

    def with_other(self, other: WeightedRule | MixtureRule) -> Rule:
        """Return the rule by group that decides rows of unknown groups by another rule."""
        rule: Any = self.rule
        grouped: GroupedRule = replace(rule, other=other)
        return grouped


def fit_by_group(
    problem: Problem,
    task: GroupTask,
    recipes: Sequence[Recipe],
    settings: Settings,
    confidence: float | None,
    *,
    seed: int = 0,
    metadata: RuleMetadata | None = None,
    stage: Callable[[str], None] = lambda _: None,
) -> GroupFit:
    """Fit the best rule that keeps promises about groups; see :func:`metricwise.fitting.constraints.fit.fit_within`.

    Parameters
    ----------
    problem : Problem
        Whose rows have groups.
    task : GroupTask
    """
    own = problem.by_group(task.n_groups, aware=task.aware, worst=task.worst)
    _check_worst(own)

    def linked_by_group(recipe: Recipe) -> Recipe | None:
        return replace(recipe, link_by_group=True) if recipe.recalibrate and task.aware else None

    fit = fit_within(
        own, recipes, settings, confidence, seed=seed, metadata=metadata, stage=stage, challenger=linked_by_group
    )
    rule, fitted = fit.fitted.rule, fit.fitted
    recorded, by_group = record_rule(own, rule), values_by_group(problem, task.groups, rule)
    final = GroupedRule.of(rule, problem.schema, task.groups) if task.aware else of_schema(rule, problem.schema)
    fitted = replace(fitted, confusion=_pooled(own, fitted.confusion))
    if not task.aware:
        fitted = _beside_aware(problem, task, fit.recipe, settings, fitted)
    return GroupFit(fitted, final, fit, recorded, by_group)


def _check_worst(problem: Problem) -> None:
    """Refuse metrics whose least value over groups no programme maximises."""
    if not problem.aim.least:
        return
    objective = problem.objective(problem.oracle("labels" if problem.labelled else "expected"))
    if objective.ratio is None and not objective.concave:
        raise InvalidParameter(
            "metric",
            problem=(
                f"metric: {problem.aim.name} must be that of a linear metric, a ratio of linear metrics, or "
                f"a concave metric, got {problem.aim.metric.name}"
            ),
        )


def _pooled(problem: Problem, C: FloatArray) -> FloatArray:
    """The confusion (M, K, K) of all groups of each output, of tensors (G * M, K, K)."""
    weight = problem.oracle("labels" if problem.labelled else "expected").weight
    n_groups = problem.schema.n_groups
    by_group = (weight[:, None, None] * C).reshape(n_groups, -1, *C.shape[1:]).sum(axis=0)
    total = weight.reshape(n_groups, -1).sum(axis=0)
    return np.asarray(by_group / np.where(total > 0, total, 1.0)[:, None, None])


def _beside_aware(
    problem: Problem, task: GroupTask, recipe: Recipe, settings: Settings, fitted: FittedRule
) -> FittedRule:
    """Bound a rule that does not see groups by what one that does would reach: no rule that does not can do better."""
    by_group = problem.by_group(task.n_groups, aware=True, worst=task.worst)
    link = by_group.link(recipe.recalibrate)
    search = Search(by_group, recipe, link, problem.constraints, settings)
    try:
        aware = search.best(np.zeros((len(problem.constraints), 2)), single=False).result
    except InfeasibleError:
        return fitted
    proved, reached = aware.upper_bound is not None, fitted.certificate.optimized_value
    upper = max(aware.upper_bound if aware.upper_bound is not None else aware.value, reached)
    more = upper - reached
    text = (
        f"Local: found by a search over rules that do not use the group. A rule that uses it would reach "
        f"{upper:.4g}, {more:.2g} more{', which no rule exceeds' if proved else ''}."
    )
    certificate = replace(fitted.certificate, upper_bound=upper if proved else None, alternative=aware.value)
    notes = (Note(NoteKind.GROUPS, text), *fitted.notes)
    return replace(fitted, certificate=certificate, outcome=Outcome.LOCAL, notes=notes)


# ------------------------------------------------------------------------------------------------- how groups fare


def values_by_group(
    problem: Problem, groups: Groups, rule: WeightedRule | MixtureRule
) -> dict[Any, dict[str, Recorded]]:
    """Return what every group has of the metric, of what promises are about, and of recorded metrics.

    Parameters
    ----------
    problem : Problem
        Whose rows have groups.
    groups : Groups
    rule : WeightedRule or MixtureRule
        In the user's labels, behind its link: of all outputs, or of all outputs once for every group.

    Returns
    -------
    dict of group to dict of str to Recorded
    """
    n_groups, n_outputs = len(groups.names), problem.schema.n_outputs
    own = problem.by_group(n_groups, aware=True)
    rules, shares = rule.flatten()
    tile = np.tile(np.arange(n_outputs), n_groups)
    if rules[0].n_outputs == n_outputs and n_groups > 1:
        shares = shares if len(shares) == 1 else shares[tile]
        link = None if rules[0].link is None else rules[0].link.of_outputs(tile)
        losses = [one.loss.map(lambda a: a if len(a) == 1 else a[tile]) for one in rules]
    else:
        link, losses = rules[0].link, [one.loss for one in rules]
    oracle = own.oracle("labels" if problem.labelled else "expected", link)
    C = mixed(oracle.confusions(losses), shares)
    plain = oracle.confusions([Loss.argmax(problem.schema.width)], linked=False)[0]
    out: dict[Any, dict[str, Recorded]] = {}
    for g, name in enumerate(groups.names):
        part = slice(g * n_outputs, (g + 1) * n_outputs)
        out[name] = _values(problem, oracle, part, C[part], plain[part])
    return out


def _values(problem: Problem, oracle: Counts, part: slice, C: FloatArray, plain: FloatArray) -> dict[str, Recorded]:
    """The values of one group, whose outputs are a part of all."""
    priors, weight, n_classes = oracle.priors[part], oracle.weight[part], oracle.n_classes[part]
    schema, found = problem.schema, {}
    if weight.sum() == 0:
        return {}
    for name, aim in {opened(problem.aim.name)[0]: problem.aim, **problem.record}.items():
        average = "micro" if aim.average == "instance" else aim.average  # its surrogate
        objective = replace(aim, average=average).bind(priors, weight, n_classes, schema.classes)
        found[name] = Recorded(objective.value(C), objective.value(plain))
    for one in problem.constraints:
        outputs = np.arange(schema.n_outputs) if one.output is None else np.array([one.output])
        share = weight[outputs] / max(float(weight[outputs].sum()), np.finfo(float).tiny)
        labels = tuple(python_labels(np.asarray(schema.classes[outputs[0]])))
        k = int(schema.n_decisions[outputs[0]])
        both = [np.einsum("m,mij->ij", share, tensor[outputs, :k, :k]) for tensor in (C, plain)]
        bound = one.metric.bind(share @ priors[outputs, :k], labels)
        title = _title(one.metric, labels, None if one.output is None else schema, one.output)
        found.setdefault(title, Recorded(*(float(bound.value(own)) for own in both)))
    return found


def _title(metric: Metric, labels: tuple[Any, ...], schema: Any, output: int | None) -> str:
    """What a constraint is about, as it would be written."""
    metric = metric.base if isinstance(metric, Abstaining) else metric
    inside: list[Any] = []
    if output is not None:
        inside.append(output if schema.output_names is None else schema.output_names[output])
    if isinstance(metric, OneVsRest):
        inside.append(labels[metric.position(len(labels), labels)])
    elif isinstance(metric, DecisionRate):
        inside += [labels[metric.true], labels[metric.decided]]
    return f"{metric.name}[{', '.join(map(written, inside))}]" if inside else metric.name
