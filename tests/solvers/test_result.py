"""What solvers return: losses with shares, what was counted for them, and what is proved."""

import numpy as np
import pytest

from engines import counts
from metricwise.core.notes import NoteKind
from metricwise.data.probabilities import read_proba
from metricwise.metrics import get_metric
from metricwise.metrics.aim import make_objective
from metricwise.metrics.averages import group_outputs
from metricwise.rules import MixtureRule, WeightedRule
from metricwise.solvers import Outcome, SolverResult, make_solver

rng = np.random.default_rng(5)
ETA = rng.dirichlet([4, 2, 1], 300)
BINARY = rng.dirichlet([3, 1], 300)

CASES = [
    ("closed_form", "accuracy", ETA, {}),
    ("path", "micro_f1", ETA, {}),
    ("dinkelbach", "micro_f1", ETA, {}),
    ("bisection", "micro_f1", ETA, {}),
    ("sweep", "mcc", BINARY, {}),
    ("ascent", "macro_f1", ETA, {}),
    ("frank_wolfe", "g_mean", ETA, {"randomized": True}),
    ("column_generation", "min_recall", ETA, {"randomized": True}),
]


def problem_of(name, eta):
    oracle = counts(read_proba(eta), None, None, "expected")
    grouping = group_outputs("micro", oracle.weight, oracle.n_classes, np.ones(1))
    return oracle, make_objective(get_metric(name), grouping, oracle.priors, oracle.n_classes)


@pytest.mark.parametrize(("solver", "metric", "eta", "settings"), CASES, ids=[case[0] for case in CASES])
def test_every_solver_returns_what_its_losses_are_counted_as(solver, metric, eta, settings):
    oracle, objective = problem_of(metric, eta)
    result = make_solver(solver, **settings).solve(oracle, objective)
    assert isinstance(result, SolverResult)
    shares = np.broadcast_to(result.shares, (1, len(result.losses)))
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    mixed = np.einsum("mr,rmij->mij", shares, oracle.confusions(result.losses))
    np.testing.assert_allclose(result.confusion, mixed, atol=1e-12)
    assert result.value == pytest.approx(objective.value(mixed), abs=1e-12)
    assert result.history[-1] == pytest.approx(result.value, abs=0.1)
    assert result.n_passes >= 1
    assert result.notes[0].kind in (NoteKind.OUTCOME, NoteKind.ALTERNATIVE)
    assert result.status == " ".join(note.text for note in result.notes)
    certificate = result.certificate
    assert (certificate.optimized_value, certificate.upper_bound) == (result.value, result.upper_bound)
    if result.upper_bound is not None:
        assert result.gap == certificate.gap == max(0.0, result.upper_bound - result.value)
    assert (certificate.threshold is None) == (solver != "sweep")
    assert (certificate.level is None) == (solver not in ("path", "dinkelbach", "bisection"))


def test_several_losses_are_a_mixture_with_the_seed_of_the_solver():
    oracle, objective = problem_of("min_recall", ETA)
    result = make_solver("column_generation", randomized=True, seed=7).solve(oracle, objective)
    assert isinstance(result.rule, MixtureRule)
    assert result.rule.seed == result.seed == 7
    assert [part.loss for part in result.rule.rules] == list(result.losses)
    assert result.rule is result.rule  # made once
    single = make_solver("column_generation").solve(oracle, objective)
    assert isinstance(single.rule, WeightedRule)
    assert single.alternative == pytest.approx(result.value, abs=1e-6)
    assert NoteKind.ALTERNATIVE in {note.kind for note in single.notes}
    assert single.outcome is not Outcome.OPTIMAL or single.alternative == single.value
