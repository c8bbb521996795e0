"""Strategies: what is refused when they are made, and that scikit-learn can clone them and set their fields."""

import pickle

import pytest
from sklearn.base import clone

import metricwise as mw
from metricwise.fitting.solving import Settings
from metricwise.metrics import Accuracy
from metricwise.oracles.problem import FitStrategy

REFUSED = [
    ({"solver": "newton"}, "solver must be 'auto' or one of .*, got 'newton'"),
    ({"solver": None}, r"solver must be a name or a solver such as solvers.Path\(\), got NoneType"),
    ({"solver": mw.solvers.Path}, r"solver must be a name or a solver such as solvers.Path\(\), got the class Path"),
    ({"solver": "bisection", "tol": -1}, "tol must be a positive number, got -1"),
    ({"tol": "a"}, "tol must be a positive number, got 'a'"),
    ({"confusion": "both"}, "confusion must be 'auto', 'labels', 'expected' or 'blended', got 'both'"),
    ({"recalibrate": "yes"}, "recalibrate must be 'auto', True or False, got 'yes'"),
    ({"randomized": 1}, "randomized must be True or False, got 1"),
    ({"solver": "path", "tol": 0.5}, "solver='path' takes no tol, got tol=0.5"),
    ({"solver": mw.solvers.FrankWolfe(), "tol": 0.5}, "tol must be left out if solver is an object"),
    ({"solver": mw.solvers.FrankWolfe(), "randomized": True}, "randomized must be left out if solver is an object"),
]


@pytest.mark.parametrize(("fields", "words"), REFUSED)
def test_what_no_call_could_use_is_refused_when_it_is_made(fields, words):
    with pytest.raises((ValueError, TypeError), match=f"^Strategy: {words}"):
        mw.Strategy(**fields)


@pytest.mark.parametrize(
    "strategy", [mw.Strategy(), mw.Strategy("labels", recalibrate=False), mw.Strategy(solver=mw.solvers.Bisection(0.1))]
)
def test_clones_and_pickles_are_equal(strategy):
    assert clone(strategy) == strategy
    assert clone(strategy) is not strategy
    assert pickle.loads(pickle.dumps(strategy)) == strategy  # noqa: S301


def test_fields_are_set_in_place_and_checked_as_when_it_is_made():
    strategy = mw.Strategy(recalibrate=False)
    assert strategy.set_params(confusion="labels") is strategy
    assert strategy == mw.Strategy("labels", recalibrate=False)
    with pytest.raises(ValueError, match="confusion must be"):
        strategy.set_params(confusion="both")
    with pytest.raises(ValueError, match="folds must be a parameter of Strategy: one of confusion, recalibrate, "):
        strategy.set_params(folds=3)
    assert strategy == mw.Strategy("labels", recalibrate=False)


def test_what_is_left_open_is_a_list_of_candidates():
    metric = Accuracy()
    assert mw.Strategy("labels", recalibrate=False).recipes(True, metric) == FitStrategy("labels", recalibrate=False)
    assert mw.Strategy("labels").recipes(True, metric) == [FitStrategy("labels", recalibrate=True)]
    assert [one.confusion for one in mw.Strategy().recipes(True, metric)] == ["expected", "labels"]
    assert mw.Strategy().recipes(False, metric) == FitStrategy("expected")
    assert mw.Strategy().single_recipe(True) == FitStrategy("labels", recalibrate=True)
    assert mw.Strategy().single_recipe(False) == FitStrategy("expected", recalibrate=False)


def test_the_seed_is_that_of_the_call():
    assert mw.Strategy(tol=0.1).make_solver(7) == Settings(False, 7, 0.1)
    assert mw.Strategy(solver="frank_wolfe").make_solver(7).seed == 7
