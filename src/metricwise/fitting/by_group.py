"""Rules with constraints about sensitive groups, and the values of every group.

The rows of every group become outputs, and the fit is that of any constraints. Must not know user input.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InvalidParameter
from ..core.labels import python_labels
from ..core.losses import Loss
from ..core.notes import Note, NoteKind
from ..data.sensitive import Groups
from ..goals.parity import DecisionRate
from ..goals.worst import opened
from ..inference.results import Recorded
from ..metrics.abstention import Abstaining
from ..metrics.base import Metric
from ..metrics.one_vs_rest import OneVsRest
from ..metrics.parameters import written
from ..oracles.counts import Counts
from ..oracles.problem import FitStrategy, Problem, mixed
from ..rules.base import Rule, RuleRows
from ..rules.grouped import GroupedRule, of_schema
from ..solvers.constrained import InfeasibleError
from ..solvers.result import Outcome
from .constraints.search import Search
from .secondary_metrics import record_rule
from .solving import FitTask, FittedRule

__all__ = ["rejoin_groups", "split_by_group", "values_by_group"]

FloatArray = NDArray[np.float64]


def split_by_group(task: FitTask) -> Problem:
    """Return the problem of a task with outputs of their own for every group."""
    assert task.groups is not None
    split = task.problem.by_group(len(task.groups.names), aware=task.group_aware, worst=task.goal.worst_group)
    _check_worst(split)
    return split


def rejoin_groups(task: FitTask, split: Problem, fitted: FittedRule, recipe: FitStrategy) -> FittedRule:
    """Return the fit of a split problem as one of the task: one rule for each group, or one for all."""
    problem, groups, rule = task.problem, task.groups, fitted.rule
    assert groups is not None
    fitted = replace(
        fitted,
        confusion=_pooled(split, fitted.confusion),
        recorded=record_rule(split, rule),
        by_group=values_by_group(problem, groups, rule),
    )
    if not task.group_aware:
        return replace(_beside_aware(task, recipe, fitted), rule=of_schema(rule, problem.schema))
    return replace(fitted, rule=GroupedRule.of(rule, problem.schema, groups))


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


def _beside_aware(task: FitTask, recipe: FitStrategy, fitted: FittedRule) -> FittedRule:
    """Bound a rule that does not use groups by one that does: no rule that does not can do better."""
    goal, n_groups = task.goal, 0 if task.groups is None else len(task.groups.names)
    by_group = task.problem.by_group(n_groups, aware=True, worst=goal.worst_group)
    link = by_group.link(recipe.recalibrate)
    search = Search(by_group, recipe, link, task.problem.constraints, task.settings)
    try:
        aware = search.best(np.zeros((len(task.problem.constraints), 2)), single=False).result
    except InfeasibleError:
        return fitted
    proved, reached = aware.upper_bound is not None, fitted.certificate.optimized_value
    upper = max(aware.upper_bound if aware.upper_bound is not None else aware.value, reached)
    more = upper - reached
    text = (
        "Local optimum among rules that do not use the group. A rule that uses the group would reach "
        f"{upper:.4g}, an improvement by {more:.2g}{', the maximum over all rules' if proved else ''}."
    )
    certificate = replace(fitted.certificate, upper_bound=upper if proved else None, alternative=aware.value)
    notes = (Note(NoteKind.GROUPS, text), *fitted.notes)
    return replace(fitted, certificate=certificate, outcome=Outcome.LOCAL, notes=notes)


# ------------------------------------------------------------------------------------------------- how groups fare


def values_by_group(problem: Problem, groups: Groups, rule: Rule) -> dict[Any, dict[str, Recorded]]:
    """Return the metric, the constrained metrics and the recorded ones for every group.

    The rule is in the user's labels, behind its link: of all outputs, or of all outputs once for every group.
    """
    n_groups, n_outputs = len(groups.names), problem.schema.n_outputs
    split = problem.by_group(n_groups, aware=True)
    shared = rule.n_outputs == n_outputs and n_groups > 1
    oracle, C = _count_by_group(split, rule, n_groups if shared else 1)
    argmax = oracle.confusions([Loss.argmax(problem.schema.width)], linked=False)[0]
    out: dict[Any, dict[str, Recorded]] = {}
    for g, name in enumerate(groups.names):
        part = slice(g * n_outputs, (g + 1) * n_outputs)
        out[name] = _values(problem, oracle, part, C[part], argmax[part])
    return out


def _count_by_group(split: Problem, rule: Rule, times: int) -> tuple[Counts, FloatArray]:
    """Return the oracle of outputs once for every group, and the confusion of a rule whose outputs are repeated."""
    counted: Any = "labels" if split.labelled else "expected"
    tile = np.tile(np.arange(rule.n_outputs), times)
    if not rule.is_flat:
        oracle = split.oracle(counted)
        return oracle, oracle.confusion_by(lambda rows: rule.decide(RuleRows(rows.proba, rows.start))[:, tile])
    rules, shares = rule.flatten()
    link = rules[0].link
    oracle = split.oracle(counted, link if link is None or times == 1 else link.of_outputs(tile))
    losses = [part.loss.map(lambda a: a if len(a) == 1 else a[tile]) for part in rules]
    return oracle, mixed(oracle.confusions(losses), shares if len(shares) == 1 else shares[tile])


def _values(problem: Problem, oracle: Counts, part: slice, C: FloatArray, argmax: FloatArray) -> dict[str, Recorded]:
    """The values of one group, whose outputs are a part of all."""
    priors, weight, n_classes = oracle.priors[part], oracle.weight[part], oracle.n_classes[part]
    schema, values = problem.schema, {}
    if weight.sum() == 0:
        return {}
    for name, aim in {opened(problem.aim.name)[0]: problem.aim, **problem.record}.items():
        average = "micro" if aim.average == "instance" else aim.average  # its surrogate
        objective = replace(aim, average=average).bind(priors, weight, n_classes, schema.classes)
        values[name] = Recorded(objective.value(C), objective.value(argmax))
    distinct = {(id(constraint.metric), constraint.output): constraint for constraint in problem.constraints}
    for constraint in distinct.values():
        outputs = np.arange(schema.n_outputs) if constraint.output is None else np.array([constraint.output])
        share = weight[outputs] / max(float(weight[outputs].sum()), np.finfo(float).tiny)
        labels = tuple(python_labels(np.asarray(schema.classes[outputs[0]])))
        k = int(schema.n_decisions[outputs[0]])
        both = [np.einsum("m,mij->ij", share, tensor[outputs, :k, :k]) for tensor in (C, argmax)]
        bound = constraint.metric.bind(share @ priors[outputs, :k], labels)
        title = _title(constraint.metric, labels, None if constraint.output is None else schema, constraint.output)
        values.setdefault(title, Recorded(*(float(bound.value(pooled)) for pooled in both)))
    return values


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
