"""Costs per row: the rule of least expected cost, and what it is worth.

Such costs are no function of a confusion matrix. The best rule is known in closed form, for every row by itself, so
that nothing is searched for: what is fitted is the link, and what is estimated is what the rule saves on new rows. Must
not know solvers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._version import __version__
from .bags import Bag, draw, links_of
from .confusion import distributions
from .inputs import Probabilities, read_abstain_label, read_row_costs, shown, table_of
from .metrics.abstention import read_abstain
from .problem import InMemory, Problem, argmax_rule
from .rules import CostRule
from .selection import judging_rows
from .solvers import Estimate, Gain, Outcome, Solution
from .sources import MemorySource
from .uncertainty import Spread

__all__ = ["CostSolution", "fit_row_costs", "refuse_beside_costs", "with_costs"]

FloatArray = NDArray[np.float64]

_WHO = "optimize"
_ROUNDS = 2  # of resamples


@dataclass(frozen=True, eq=False, repr=False)
class CostSolution(Solution):
    """A Solution whose rule takes the costs of the rows to decide: ``rule.predict(proba, cost=...)``.

    `value` and `baseline` are minus the mean cost.

    See Also
    --------
    metricwise.CostRule : The rule.
    metricwise.optimize : Returns it, with ``cost=``.

    Examples
    --------
    >>> import numpy as np
    >>> import metricwise as mw
    >>> cost = np.array([[1.0, 10.0], [5.0, 1.0]])
    >>> solution = mw.optimize([0.3, 0.3], [0, 1], "cost", cost=cost, recalibrate=False)
    >>> solution.rule.predict([0.3, 0.3], cost=cost).tolist()
    [1, 0]
    """

    rule: CostRule  # instead of a rule of one loss for all rows


def refuse_beside_costs(metric: Any, others: Mapping[str, Any]) -> None:
    """Refuse what means nothing where every row has costs of its own: these are no function of a confusion matrix.

    Parameters
    ----------
    metric : object
        Must be "cost".
    others : mapping of names to values
        Arguments of :func:`metricwise.optimize`, each of which must be None.
    """
    if not (isinstance(metric, str) and metric == "cost"):
        raise ValueError(f"{_WHO}: metric must be 'cost', minus the mean cost, if cost= is given, got {shown(metric)}.")
    given = [name for name, value in others.items() if value is not None]
    if given:
        raise ValueError(
            f"{_WHO}: {given[0]} must be left out if cost= gives costs per row, because each row is decided by "
            "its own costs and nothing is optimised."
        )


def with_costs(problem: Problem, cost: Any, abstain: Any, abstain_label: Any) -> tuple[Problem, CostRule]:
    """Return a problem whose rows have costs, and the rule that goes by them, still without a link.

    Parameters
    ----------
    problem : Problem
        Of one output, in memory.
    cost, abstain, abstain_label
        As :func:`metricwise.optimize` takes them.
    """
    schema, source, allowed = problem.schema, problem.source, read_abstain(abstain, _WHO)
    if not isinstance(source, MemorySource):
        raise TypeError(
            f"{_WHO}: cost= gives costs per row, which need probabilities and labels in memory; pass a sample of "
            "the rows as arrays."
        )
    if schema.multioutput:
        raise ValueError(
            f"{_WHO}: cost= gives costs per row for a single output, but y is 2-D; optimise the outputs one by one."
        )
    if allowed is None and abstain_label is not None:
        raise ValueError(f"{_WHO}: abstain_label is only for rules that may abstain; pass abstain=True as well.")
    price = None if allowed is None else allowed.cost
    if allowed is not None:
        schema = replace(schema, abstain_label=read_abstain_label(abstain_label, schema.classes, _WHO))
    costs = read_row_costs(cost, problem.n_rows, schema.width, _WHO, abstain=allowed is not None, abstain_cost=price)
    source = MemorySource(replace(source.rows, cost=costs), schema, source.passes)
    rule = CostRule(schema.classes[0], None, schema.normalize, schema.abstain_label, price)
    return replace(problem, source=source), rule


def fit_row_costs(
    problem: Problem,
    rule: CostRule,
    recalibrate: bool,
    *,
    judged: bool,
    seed: int = 0,
    stage: Callable[[str], None] = lambda _: None,
) -> CostSolution:
    """Fit the link of a rule for costs per row, and say what it saves.

    Parameters
    ----------
    problem : Problem
        Of one output, in memory; its rows have the costs.
    rule : CostRule
        Without a link.
    recalibrate : bool
        Whether a link is fitted to the labels.
    judged : bool
        Whether rows that resamples leave out say what is saved on new ones.
    seed : int
        Of the resamples.
    stage : callable, optional
        Told what is being done.

    Returns
    -------
    CostSolution
    """
    source = problem.source
    assert isinstance(source, MemorySource) and source.rows.cost is not None
    stage("fitting all rows")
    read_before = source.passes.entries
    linked = replace(rule, link=problem.link(recalibrate))
    decided, plain = linked.decide(source.rows.proba, source.rows.cost), _argmax(problem, source.rows.proba)
    value, baseline = (-_mean(*_paid(linked, source.rows, codes)) for codes in (decided, plain))
    oracle = problem.oracle("labels" if problem.labelled else "expected", linked.link)
    facts = {"metric": "cost", "rows": problem.n_rows, "metricwise": __version__, "value": value}
    gain, new = _judge(problem, rule, recalibrate, seed, stage) if judged else (None, None)
    return CostSolution(
        rule=replace(linked, facts=facts),
        value=value,
        baseline=baseline,
        confusion=oracle.confusion_of(decided)[:, : problem.schema.width],
        optimized_value=value,
        status=_words(gain),
        n_passes=problem.passes_since(read_before),
        outcome=Outcome.OPTIMAL,
        counted="labels" if problem.labelled else "expected",
        history=(value,),
        upper_bound=value if not problem.labelled else None,
        gain=gain,
        value_on_new_rows=new,
    )


def _words(gain: Gain | None) -> str:
    words = "Every row gets the decision with the least expected cost, by its own costs."
    if gain is None:
        return words
    said = f"{words} On rows that resamples left out, it saves {gain.estimate:.3g} per row compared with argmax"
    said += f" (95 % interval {gain.low:.3g} to {gain.high:.3g})."
    return (
        said
        if gain.estimate > 0
        else f"{said} Argmax did no worse on these rows: check the costs and the probabilities."
    )


def _argmax(problem: Problem, proba: Probabilities) -> NDArray[np.intp]:
    return argmax_rule(problem).decide(proba)


def _paid(rule: CostRule, rows: Any, decided: NDArray[Any]) -> tuple[FloatArray, FloatArray]:
    """What decisions (N, 1) cost, (N,), and what rows count for: by labels, in expectation without."""
    weight = np.ones(rows.n_rows) if rows.weight is None else rows.weight
    if rows.codes is not None:
        true = rows.codes[:, 0]
        return rule.paid(rows.cost, true, decided[:, 0]), np.where(true >= 0, weight, 0.0)
    out = np.empty(rows.n_rows)
    for part in rows.proba.chunks():
        eta = distributions(rows.proba.take(part).output(0)[:, 0])
        table = table_of(rows.cost[part], rule.abstain_cost)
        own = np.take_along_axis(table, decided[part][:, :, None], axis=2)[:, :, 0]
        out[part] = np.sum(eta * own, axis=1)
    return out, weight


def _mean(values: FloatArray, weight: FloatArray) -> float:
    return float(values @ weight / weight.sum())


def _judge(
    problem: Problem, rule: CostRule, recalibrate: bool, seed: int, stage: Callable[[str], None]
) -> tuple[Gain, Estimate]:
    """What the rule saves beside argmax, and what it costs, on rows that its link has not seen."""
    stage("judging rows that were left out")
    judges, _ = judging_rows(problem)
    judges, decided = _left_out(judges, rule, recalibrate, seed)
    rows = judges.source.rows
    (own, weight), (plain, _) = (_paid(rule, rows, codes) for codes in (decided, _argmax(judges, rows.proba)))
    spread, share = Spread.of(judges), weight / weight.sum()

    def estimated(values: FloatArray) -> tuple[float, float, float]:
        mean = float(values @ share)
        half = spread.quantile * spread.error((values - mean) * share)
        return mean, mean - half, mean + half

    return Gain(*estimated(plain - own)), Estimate(*estimated(-own))


def _left_out(judges: InMemory, rule: CostRule, recalibrate: bool, seed: int) -> tuple[InMemory, NDArray[np.intp]]:
    """The rows as resamples part them, and decisions on each behind the mean link of the resamples that left it out."""
    rows = judges.source.rows
    assert rows.cost is not None
    if not recalibrate:
        return judges, rule.decide(rows.proba, rows.cost)
    resamples = draw(judges, np.random.default_rng(seed), _ROUNDS)
    judges = resamples.problem
    rows = judges.source.rows
    assert rows.cost is not None
    bag = Bag(resamples.n_resamples, (), (), links_of(judges, resamples, True))
    out = np.empty((rows.n_rows, 1), dtype=np.intp)
    for own, which in zip(resamples.rows, resamples.left_out.T, strict=True):
        linked = replace(rule, link=bag.mean_link(which))
        out[own] = linked.decide(rows.proba.take(own), rows.cost[own])
    return judges, out
