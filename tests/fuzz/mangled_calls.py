"""Calls whose arguments were right before they were mangled, and what must hold where they are taken all the same."""

import warnings

import numpy as np

import metricwise as mw
from fuzz.mangling import assert_sentence, mangle
from metricwise.core.errors import Refusal


def problem(rng):
    """Arguments of optimize that are right."""
    n, m, k = 12, 2, 3
    eta = rng.dirichlet(np.ones(k), size=(n, m))
    kind = rng.integers(4)
    y = np.arange(n * m).reshape(n, m) % k
    proba, y = (
        (eta[:, 0, 0], y[:, 0] % 2),
        (eta[:, 0], y[:, 0]),
        (eta[:, :, 0], y % 2),
        ([eta[:, 0], np.column_stack([1 - eta[:, 1, 1], eta[:, 1, 1]])], y % np.array([3, 2])),
    )[kind]
    outputs = 1 if kind < 2 else m
    return {
        "proba": proba,
        "y": y,
        "metric": ("accuracy", "kappa", mw.metrics.FBeta(index=1), "g_mean")[rng.integers(4)],
        "average": None if kind < 2 else "macro",
        "sample_weight": rng.integers(1, 4, size=n),
        "output_weight": np.ones(outputs),
        "classes": ([0, 1], [0, 1, 2], [[0, 1], [0, 1]], [[0, 1, 2], [0, 1]])[kind],
        "pos_label": None,
        "prior": None,
        "random_state": 0,
        "solver": "auto",
        "confusion": "labels",
        "recalibrate": False,
        "randomized": False,
        "tol": None,
    }


def attempt(function, *args, **options):
    """What a call returns, or None where it refuses in a sentence."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="optimize: .* alone is highest", category=UserWarning)
        try:
            return function(*args, **options)
        except Refusal as error:
            assert_sentence(error)
            return None


def mangle_some(arguments, rng):
    """A copy of arguments, some of which are mangled, and the names of those; a rule stays as it is."""
    mangled, names = mangle({name: value for name, value in arguments.items() if name != "rule"}, rng)
    return {**arguments, **mangled}, names


SETTINGS = ("solver", "confusion", "recalibrate", "randomized", "tol")


def check_optimize(arguments):
    """Whether `optimize` takes the arguments; a rule that it fits predicts in the shape of y."""
    options = dict(arguments)
    strategy = attempt(mw.Strategy, **{name: options.pop(name) for name in SETTINGS})
    solution = None if strategy is None else attempt(mw.optimize, strategy=strategy, **options)
    if solution is None:
        return False
    assert np.isfinite([solution.value, solution.baseline]).all()
    predicted = solution.rule.predict(arguments["proba"])
    if arguments["y"] is not None:
        assert predicted.shape == np.shape(arguments["y"])
    return True


def scored(rng):
    """Arguments of score that are right."""
    arguments = problem(rng)
    kept = ("y", "average", "sample_weight", "output_weight", "classes", "pos_label")
    return {**{name: arguments[name] for name in kept}, "y_pred": rng.permutation(arguments["y"])}


def check_score(arguments):
    """Whether `score` takes the arguments; its value is finite."""
    options = dict(arguments)
    y, y_pred = options.pop("y"), options.pop("y_pred")
    value = attempt(mw.metrics.BalancedAccuracy().score, y, y_pred, **options)
    assert value is None or np.isfinite(value)
    return value is not None


def shown_to_a_rule(rng):
    """A rule, and probabilities that are right for it."""
    arguments = problem(rng)
    options = {"classes": arguments["classes"], "strategy": mw.Strategy("labels", recalibrate=False)}
    rule = mw.optimize(arguments["proba"], arguments["y"], mw.metrics.Accuracy(), average="macro", **options).rule
    return {"proba": arguments["proba"], "rule": rule}


def check_predict(arguments):
    """Whether a rule takes probabilities, to decide rows and for their distribution."""
    rule, proba = arguments["rule"], arguments["proba"]
    answers = [attempt(method, proba) for method in (rule.predict, rule.distribution)]
    return all(answer is not None for answer in answers)
