"""Wrong arguments give one sentence, or what they can be read as gives the right shape: never another traceback."""

import warnings

import numpy as np
import pytest

import metricwise as mw
from fuzz.mangling import assert_sentence, mangle

CHUNK, CHUNKS = 100, 5


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
        except Exception as error:
            assert_sentence(error)
            return None


def hunt(chunk, arguments, check):
    """Call `check` with mangled arguments of each seed of a chunk, and say which they were where it fails."""
    for seed in range(chunk * CHUNK, (chunk + 1) * CHUNK):
        rng = np.random.default_rng(seed)
        mangled, names = mangle(arguments(rng), rng)
        try:
            check(mangled)
        except Exception as error:
            error.add_note(f"with seed {seed}, {', '.join(f'{name}={mangled[name]!r}' for name in names)}")
            raise


SETTINGS = ("solver", "confusion", "recalibrate", "randomized", "tol")


def check_optimize(arguments):
    options = dict(arguments)
    strategy = attempt(mw.Strategy, **{name: options.pop(name) for name in SETTINGS})
    solution = None if strategy is None else attempt(mw.optimize, strategy=strategy, **options)
    if solution is None:
        return
    assert np.isfinite([solution.value, solution.baseline]).all()
    predicted = solution.rule.predict(arguments["proba"])
    if arguments["y"] is not None:
        assert predicted.shape == np.shape(arguments["y"])


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_optimize_refuses_in_a_sentence(chunk):
    hunt(chunk, problem, check_optimize)


# --------------------------------------------------------------------------------------------------------- scores


def scored(rng):
    """Arguments of score that are right."""
    arguments = problem(rng)
    kept = ("y", "average", "sample_weight", "output_weight", "classes", "pos_label")
    return {**{name: arguments[name] for name in kept}, "y_pred": rng.permutation(arguments["y"])}


def check_score(arguments):
    options = dict(arguments)
    y, y_pred = options.pop("y"), options.pop("y_pred")
    value = attempt(mw.metrics.BalancedAccuracy().score, y, y_pred, **options)
    assert value is None or np.isfinite(value)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_score_refuses_in_a_sentence(chunk):
    hunt(chunk, scored, check_score)


# ---------------------------------------------------------------------------------------------------------- rules


def shown_to_a_rule(rng):
    arguments = problem(rng)
    options = {"classes": arguments["classes"], "strategy": mw.Strategy("labels", recalibrate=False)}
    rule = mw.optimize(arguments["proba"], arguments["y"], mw.metrics.Accuracy(), average="macro", **options).rule
    return {"proba": arguments["proba"], "rule": rule}


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_predict_refuses_in_a_sentence(chunk):
    for seed in range(chunk * CHUNK, (chunk + 1) * CHUNK):
        rng = np.random.default_rng(seed)
        arguments = shown_to_a_rule(rng)
        rule, (mangled, _) = arguments["rule"], mangle({"proba": arguments["proba"]}, rng)
        try:
            for method in (rule.predict, rule.distribution):
                attempt(method, **mangled)
        except Exception as error:
            error.add_note(f"with seed {seed}, {mangled['proba']!r} for {rule.n_classes} classes")
            raise
