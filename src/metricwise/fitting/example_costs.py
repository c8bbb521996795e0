"""Costs per row: the rule of least expected cost, and its savings.

Such costs are no function of a confusion matrix, and the best decision about every row has a closed form: only the link
is fitted. Must not know solvers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._version import __version__
from ..core.confusion import distributions
from ..core.errors import InvalidParameter, InvalidType, argument, shown
from ..core.notes import Note, NoteKind
from ..core.probabilities import Probabilities
from ..data.abstention import read_abstain_label
from ..data.row_costs import read_row_costs
from ..data.sources.memory import MemorySource
from ..inference.costs import CostJudge, heaviest_share
from ..inference.decisions import Decisions
from ..inference.dependence import notes_in_time
from ..inference.results import Estimate, Gain
from ..metrics.abstention import Abstention
from ..metrics.linear import Cost
from ..oracles.problem import InMemory, Problem, argmax_rule
from ..rules.base import RuleRows
from ..rules.calibration import link_or_base
from ..rules.example_cost import CostRule
from ..rules.metadata import RuleMetadata
from ..solvers.result import Certificate, Outcome
from .bagging import BaggedRule, draw, links_of
from .samples import judging_rows
from .solving import FitTask, FittedRule

__all__ = ["fit_example_costs", "refuse_beside_costs", "with_costs"]

FloatArray = NDArray[np.float64]

_ROUNDS = 2  # of resamples
_MOST_CARRIED = 0.5  # by ten rows, of the variance: beyond it is said
_MANY_ROWS = 100  # of which ten are few


def refuse_beside_costs(metric: Any, others: Mapping[str, Any]) -> None:
    """Refuse a metric other than "cost", and arguments of `optimize` that have no meaning beside costs per row."""
    if not (isinstance(metric, str) and metric == Cost.declared.name):
        raise InvalidParameter(
            "metric", f"be 'cost', minus the mean cost, if {argument('cost')} is given", shown(metric)
        )
    named = [name for name, value in others.items() if value is not None]
    if named:
        raise InvalidParameter(
            named[0],
            problem=(
                f"{named[0]} must be left out if {argument('cost')} gives costs per row, because each row "
                "has its own costs and no metric is optimised"
            ),
        )


def with_costs(problem: Problem, cost: Any, abstention: Abstention | None) -> tuple[Problem, CostRule]:
    """Return a problem whose rows have costs, as `optimize` takes them, and the cost rule, still without a link."""
    schema, source = problem.schema, problem.source
    if not isinstance(source, MemorySource):
        raise InvalidType(
            "cost",
            problem=f"{argument('cost')} gives costs per row, which need probabilities and labels in memory",
            remedy="pass a sample of the rows as arrays",
        )
    if schema.multioutput:
        raise InvalidParameter(
            "cost",
            problem=f"{argument('cost')} gives costs per row for a single output, but y is 2-D",
            remedy="optimise the outputs one by one",
        )
    price = None if abstention is None else abstention.terms.cost
    if abstention is not None:
        schema = replace(schema, abstain_label=read_abstain_label(abstention.label, schema.classes))
    costs = read_row_costs(cost, problem.n_rows, schema.width, abstain=abstention is not None, abstain_cost=price)
    source = MemorySource(replace(source.rows, cost=costs), schema, source.passes)
    link = link_or_base(None, schema)
    rule = CostRule(
        schema.classes,
        link,
        schema.normalize,
        schema.abstain_label,
        price,
        input=schema.input.kind,
        ordinal_map=schema.input.ordinal,
    )
    return replace(problem, source=source), rule


def fit_example_costs(task: FitTask) -> FittedRule:
    """Fit the link of a rule for costs per row; where several recipes come into question, rows left out judge it."""
    problem, rule, source = task.problem, task.cost_rule, task.problem.source
    assert rule is not None and isinstance(source, MemorySource)
    recalibrate, rows = task.recipe_list[0].recalibrate, source.rows
    task.stage("fitting all rows")
    read_before = source.passes.entries
    linked = replace(rule, link=link_or_base(problem.link(recalibrate), problem.schema))
    decided = linked.decide(RuleRows(rows.proba, cost=rows.cost))
    value, baseline = (-_mean(*_paid(linked, rows, codes)) for codes in (decided, _argmax(problem, rows.proba)))
    oracle = problem.oracle("labels" if problem.labelled else "expected", linked.link)
    metadata = RuleMetadata(
        metric=Cost.declared.name,
        rows=problem.n_rows,
        metricwise=__version__,
        value=value,
        losses={Cost.declared.name: str(Cost.declared.loss_name)},
        stated=("metric", "rows", "metricwise", "value"),
        **problem.schema.column_facts,
    )
    gain, new, heaviest = _judge(task, rule, recalibrate) if isinstance(task.recipes, list) else (None, None, 0.0)
    return FittedRule(
        rule=replace(linked, metadata=metadata),
        value=value,
        baseline=baseline,
        confusion=oracle.confusion_of(decided)[:, : problem.schema.width],
        counted="labels" if problem.labelled else "expected",
        certificate=Certificate(value, upper_bound=None if problem.labelled else value),
        outcome=Outcome.OPTIMAL,
        notes=tuple(_notes(problem, gain, heaviest)),
        history=(value,),
        n_passes=problem.passes_since(read_before),
        gain=gain,
        value_on_new_rows=new,
    )


def _notes(problem: Problem, gain: Gain | None, heaviest: float) -> Iterator[Note]:
    """What the user should know of the rule."""
    yield Note(NoteKind.OUTCOME, "Each row gets the decision with the lowest expected cost.")
    if gain is None:
        yield from notes_in_time(problem.source, has_intervals=False)
        return
    yield Note(
        NoteKind.SELECTION,
        f"Estimated saving over argmax on new data: {gain.estimate:.3g} per row (95 % interval {gain.low:.3g} to "
        f"{gain.high:.3g}).",
    )
    if gain.estimate <= 0:
        text = "The rule is not better than argmax on the given rows: check the costs and the probabilities."
        yield Note(NoteKind.WARNING, text)
    if heaviest > _MOST_CARRIED:
        yield Note(
            NoteKind.WARNING,
            f"Ten rows account for {100 * heaviest:.0f} % of the variance of the savings; the estimate does not "
            "account for amounts larger than those in the given rows.",
        )
    yield from notes_in_time(problem.source)


def _argmax(problem: Problem, proba: Probabilities) -> NDArray[np.intp]:
    return argmax_rule(problem).decide(RuleRows(proba))


def _paid(rule: CostRule, rows: Any, decided: NDArray[Any]) -> tuple[FloatArray, FloatArray]:
    """What decisions (N, 1) cost, (N,), and what rows count for: by labels, in expectation without."""
    weight = np.ones(rows.n_rows) if rows.weight is None else rows.weight
    if rows.codes is not None:
        true = rows.codes[:, 0]
        return rule.paid(rows.cost, true, decided[:, 0]), np.where(true >= 0, weight, 0.0)
    out = np.empty(rows.n_rows)
    for part in rows.proba.chunks():
        some = rows.take(part)
        by_class = rule.paid_by_class(some.cost, decided[part, 0])
        out[part] = np.sum(distributions(some.proba.output(0)[:, 0]) * by_class, axis=1)
    return out, weight


def _mean(values: FloatArray, weight: FloatArray) -> float:
    return float(values @ weight / weight.sum())


def _judge(task: FitTask, rule: CostRule, recalibrate: bool) -> tuple[Gain, Estimate, float]:
    """Return savings over argmax and minus the cost on rows that the link was not fitted to, and what ten rows add."""
    task.stage("evaluating rules on rows left out")
    judges, decided, eta = _left_out(judging_rows(task.problem)[0], rule, recalibrate, task.seed)
    rows = judges.source.rows
    assert rows.cost is not None
    judge = CostJudge(judges.source, rule, rows.cost, eta)
    both = [Decisions.of_codes(codes) for codes in (decided, _argmax(judges, rows.proba))]
    comparison, (first, second) = judge.compare(both), (judge.paid(decisions)[0] for decisions in both)
    many = rows.repeats is None and rows.n_rows >= _MANY_ROWS
    gain = comparison.difference
    heaviest = heaviest_share(second - first, judge.weight) if many else 0.0
    return Gain(gain.estimate, gain.low, gain.high), comparison.value, heaviest


def _left_out(
    judges: InMemory, rule: CostRule, recalibrate: bool, seed: int
) -> tuple[InMemory, NDArray[np.intp], FloatArray]:
    """The rows as resamples part them, decisions on each behind the mean link of the resamples that left it out, and
    probabilities (N, K) behind that link.
    """
    rows = judges.source.rows
    assert rows.cost is not None
    if not recalibrate:
        return judges, rule.decide(RuleRows(rows.proba, cost=rows.cost)), distributions(rows.proba.output(0)[:, 0])
    resamples = draw(judges, np.random.default_rng(seed), _ROUNDS)
    judges = resamples.problem
    rows = judges.source.rows
    assert rows.cost is not None
    bag = BaggedRule(resamples.n_resamples, (), (), links_of(judges, resamples, True))
    out, eta = np.empty((rows.n_rows, 1), dtype=np.intp), np.empty((rows.n_rows, judges.schema.width))
    for left_out, which in zip(resamples.rows, resamples.left_out.T, strict=True):
        link, proba = bag.mean_link(which), rows.proba.take(left_out)
        assert link is not None
        out[left_out] = replace(rule, link=link).decide(RuleRows(proba, cost=rows.cost[left_out]))
        eta[left_out] = distributions(link.view(proba).recalibrated().output(0)[:, 0])
    return judges, out, eta
