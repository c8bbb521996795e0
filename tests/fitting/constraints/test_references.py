"""Reference rules of bounds that are not convex: as good as the ordinary solver, placed where they belong."""

import numpy as np
import pytest

import metricwise as mw
import worlds
from metricwise.core.losses import Loss
from metricwise.fitting.constraints.references import Reference, find_references, spread_references
from metricwise.fitting.constraints.resolve import bind_constraints
from metricwise.fitting.solving import Settings
from metricwise.goals.constraint_text import read_constraints
from metricwise.goals.resolve import resolve_constraints
from metricwise.oracles.problem import FitStrategy
from problems import read_problem


def references_of(problem, text, recipe):
    constraints = resolve_constraints(read_constraints(text), problem.schema)
    limits = bind_constraints(constraints, problem.schema, problem.oracle())
    return find_references(problem, recipe, Settings(), None, limits)


def test_the_reference_is_what_the_ordinary_solver_finds():
    proba, y = worlds.multiclass(500)
    recipe = FitStrategy("labels")
    problem = read_problem(proba, y, "accuracy")
    (reference,) = references_of(problem, "macro_f1 >= 0.4 and accuracy >= 0.5 and mcc <= 0.9", recipe)
    plain = mw.optimize(proba, y, "macro_f1", strategy=mw.Strategy(confusion="labels", recalibrate=False))
    assert reference.loss.tensor() == pytest.approx(plain.rule.loss.tensor())


def test_labels_are_counted_beside_another_recipe():
    problem = read_problem(*worlds.multiclass(300), "accuracy")
    assert len(references_of(problem, "macro_f1 >= 0.4", FitStrategy("expected"))) == 2


def test_references_of_outputs_stand_in_their_blocks():
    first, second = (
        Reference(Loss(full=np.full((1, 2, 2), value)), np.array([m])) for m, value in enumerate((1.0, 2.0))
    )
    alone, other, together = spread_references([first, second], np.array([0, 1, 2]), 2)
    assert (alone.tensor() == 1.0).all()
    assert (other.tensor() == 2.0).all()
    assert together.tensor()[:2, 0, 0].tolist() == [1.0, 2.0]
    assert together.tensor()[2].tolist() == Loss.argmax(2).tensor()[0].tolist()
    assert spread_references([], np.array([0, 1]), 2) == []
