"""The interface of the compared methods, and the methods of metricwise.

Defines what is timed (`fit`, from the given arrays) and what is not (`prepare`: labels in the form that a library
needs; `confusion`: the confusion of the rule).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from workloads import Workload, confusion, value

Decisions = Iterable[tuple[float, np.ndarray]]

DEFAULT = "metricwise, default call"
FOLDS = 5


@dataclass(frozen=True)
class Contestant:
    """A method that finds a rule.

    Parameters
    ----------
    name : str
    fit_one : callable
        (workload, proba, labels) of one problem to whatever describes the rule. Timed.
    decide : callable
        (rule, proba) to pairs of a share and codes: one pair, or several for a randomised rule. Not timed.
    prepare : callable
        (workload, labels of one problem) to what fit_one takes as labels. Not timed.
    whole : bool
        Whether it takes several outputs as they are. Else their micro-average is one problem with the rows of all
        outputs below one another, which it equals, and their macro-average one problem for each.
    role : {"ours", "default", "peer", "safe", "shortcut"}
        Ours is one fit; the default is the call without options. A safe one is a peer that says as well what its rule
        is worth on rows that it has not seen. A shortcut is code by hand that knows the form of the optimum for this
        one metric; it is shown, and is no peer.
    facts : callable
        Rule to a dict of what else is worth a column.
    """

    name: str
    fit_one: Callable[[Workload, np.ndarray, Any], Any]
    decide: Callable[[Any, np.ndarray], Decisions]
    prepare: Callable[[Workload, np.ndarray], Any] = lambda _, labels: labels
    whole: bool = False
    role: str = "peer"
    facts: Callable[[Any], dict[str, Any]] = lambda _: {}

    def problems(self, workload: Workload, rows: np.ndarray) -> list[np.ndarray]:
        """Split probabilities or labels of several outputs into problems of one output, as views."""
        if self.whole or not workload.several:
            return [rows]
        if workload.average == "macro":
            return [rows[:, m] for m in range(workload.outputs)]
        return [rows.reshape(len(rows) * workload.outputs, *rows.shape[2:])]

    def labels(self, workload: Workload, truth: np.ndarray) -> list[Any]:
        return [self.prepare(workload, part) for part in self.problems(workload, truth)]

    def fit(self, workload: Workload, proba: np.ndarray, labels: list[Any]) -> list[Any]:
        pairs = zip(self.problems(workload, proba), labels, strict=True)
        return [self.fit_one(workload, part, known) for part, known in pairs]

    def confusion(self, workload: Workload, rules: list[Any], proba: np.ndarray, truth: np.ndarray) -> np.ndarray:
        """Return the confusion tensor of the rules, in expectation over the draws of randomised rules."""
        pieces = []
        pairs = zip(rules, self.problems(workload, proba), self.problems(workload, truth), strict=True)
        for rule, part, known in pairs:
            shares = [share * confusion(codes, known, workload.classes) for share, codes in self.decide(rule, part)]
            pieces.append(sum(shares))
        return np.concatenate(pieces)


# ---------------------------------------------------------------------------------------------------------------------
# ours


def metricwise_fit(solver: str) -> Callable[[Workload, np.ndarray, np.ndarray], Any]:
    def fit(workload: Workload, proba: np.ndarray, y: np.ndarray) -> Any:
        import metricwise as mw

        average = workload.average if workload.several else None
        return mw.optimize(
            proba, y, workload.metric, average=average, strategy=mw.Strategy(solver=solver, **workload.options)
        )

    return fit


def metricwise_default(workload: Workload, proba: np.ndarray, y: np.ndarray) -> Any:
    import metricwise as mw

    return mw.optimize(proba, y, workload.metric, **({"average": workload.average} if workload.several else {}))


def metricwise_decide(solution: Any, proba: np.ndarray) -> Decisions:
    rule = solution.rule
    members = getattr(rule, "rules", (rule,))
    shares = rule.weights.ravel() if len(members) > 1 else [1.0]
    return ((share, member.predict(proba)) for share, member in zip(shares, members, strict=True))


def metricwise_facts(solution: Any) -> dict[str, Any]:
    return {
        "oracle_passes": solution.n_passes,
        "gap": solution.gap,
        "own_value": solution.value,
        "status": solution.status,
    }


def ours(workload: Workload) -> list[Contestant]:
    """Return one fit, the alternative solvers, and the default call, which needs labels."""
    others = {"W1": ("path", "dinkelbach"), "W2": ("dinkelbach",), "W9": ("dinkelbach",)}
    solvers = ("auto", *others.get(workload.key, ()))
    fits = [
        Contestant(
            name="metricwise" if solver == "auto" else f"metricwise {solver}",
            fit_one=metricwise_fit(solver),
            decide=metricwise_decide,
            whole=True,
            role="ours",
            facts=metricwise_facts,
        )
        for solver in solvers
    ]
    if workload.expected:
        return fits
    default = Contestant(
        name=DEFAULT,
        fit_one=metricwise_default,
        decide=metricwise_decide,
        whole=True,
        role="default",
        facts=metricwise_facts,
    )
    return [*fits, default]


# ---------------------------------------------------------------------------------------------------------------------
# as safe as the default


def safe(peer: Contestant) -> Contestant:
    """Return a peer with five folds, evaluated on the rows left out, and a sixth fit to all rows."""

    def prepare(workload: Workload, labels: np.ndarray) -> tuple[np.ndarray, Any]:
        return labels, peer.prepare(workload, labels)

    def fit(workload: Workload, proba: np.ndarray, known: tuple[np.ndarray, Any]) -> Any:
        truth, labels = known
        fold = np.random.default_rng(0).permutation(len(truth)) % FOLDS
        counted = []
        for f in range(FOLDS):
            here, others = np.flatnonzero(fold == f), np.flatnonzero(fold != f)
            rule = peer.fit_one(workload, proba[others], labels[others])
            for share, codes in peer.decide(rule, proba[here]):
                counted.append(share * confusion(codes, truth[here], workload.classes))
        value(workload, sum(counted) / FOLDS)
        return peer.fit_one(workload, proba, labels)

    return replace(peer, name=f"{peer.name}, {FOLDS} folds", fit_one=fit, prepare=prepare, role="safe")
