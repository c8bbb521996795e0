"""What `optimize` does unasked: the same in any order of rows, on any number of threads, and by either twins."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import metricwise as mw
import worlds
from metricwise import kernels


def cases():
    """A few calls without a recipe, each by its name."""
    rng = np.random.default_rng(0)
    binary, y = worlds.binary(600, power=1.5, seed=rng)
    several, labels = worlds.multiclass(400, [3, 1, 1], seed=rng)
    outputs, shown = worlds.of_kind("multilabel", 300, missing={"multilabel": 0.2}, seed=rng)
    weight = rng.integers(1, 5, 600)
    repeated = np.repeat(np.arange(150), 4)
    return {
        "binary": (binary, y, "f1", {}),
        "weighted": (binary, y, "mcc", {"sample_weight": weight}),
        "counted": (binary, y, "f1", {"sample_weight": mw.Frequencies(weight)}),
        "grouped": (binary, y, "f1", {"groups": np.arange(600) % 50}),
        "in time": (binary, y, "f1", {"groups": mw.InTime(np.arange(600)[::-1])}),
        "copied": (binary[repeated], y[repeated], "f1", {}),
        "ordinal": (several, labels, "quadratic_kappa", {}),
        "concave": (several, labels, "g_mean", {}),
        "minimum": (several, labels, "min_recall", {}),
        "no form": (several, labels, "macro_f1", {}),
        "micro": (outputs, shown, "f1", {"average": "micro"}),
        "macro": (outputs, shown, "f1", {"average": "macro"}),
    }


def outcome(proba, y, metric, options):
    """The recipe, the decisions and what is promised, as JSON has it."""
    solution = mw.optimize(proba, y, metric, **options)
    gain, value = solution.gain, solution.value_on_new_rows
    ranges = solution.threshold_range
    return {
        "recipe": solution.rule.metadata.recipe,
        "decisions": np.asarray(solution.rule.predict(proba)).tolist(),
        "promises": [gain.estimate, gain.low, gain.high, value.estimate, value.low, value.high],
        "thresholds": [] if ranges is None else ranges.ravel().tolist(),
    }


@pytest.mark.skipif(kernels.in_use() != "compiled", reason="there is one twin here, and nothing to hold it against")
def test_twins_agree():
    there = subprocess.run(
        [sys.executable, __file__],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, "METRICWISE_KERNELS": "numpy", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    assert there.returncode == 0, there.stderr
    told = json.loads(there.stdout)
    assert told.pop("kernels") == "numpy"
    for name, case in cases().items():
        here = outcome(*case)
        assert here["recipe"] == told[name]["recipe"], name
        assert here["decisions"] == told[name]["decisions"], name
        for numbers in ("promises", "thresholds"):
            np.testing.assert_allclose(here[numbers], told[name][numbers], rtol=1e-6, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("name", cases())
def test_the_order_of_rows_changes_nothing(name):
    proba, y, metric, options = cases()[name]
    one = mw.optimize(proba, y, metric, **options)
    at = np.random.default_rng(2).permutation(len(y))
    moved = {key: value[at] if hasattr(value, "shape") else value for key, value in options.items()}
    other = mw.optimize(proba[at], y[at], metric, **moved)
    assert one.rule.metadata.recipe == other.rule.metadata.recipe
    np.testing.assert_array_equal(one.rule.predict(proba), other.rule.predict(proba))
    for promised, again in ((one.gain, other.gain), (one.value_on_new_rows, other.value_on_new_rows)):
        assert promised.estimate == pytest.approx(again.estimate, abs=1e-12)
        assert promised.low == pytest.approx(again.low, abs=1e-12)


def numbers_of(rule):
    """Every number of a rule: losses and link."""

    def walk(part):
        if isinstance(part, dict):
            return [number for key, inner in sorted(part.items()) if key != "metadata" for number in walk(inner)]
        if isinstance(part, list | tuple):
            return [number for inner in part for number in walk(inner)]
        return [part] if isinstance(part, float) else []

    # What a rule keeps of its rows decides nothing, and is fitted to 1e-9 of a likelihood, not of its numbers.
    return np.array(walk(rule.with_metadata(calibration=None).to_dict()))


def change_of(rule, other):
    """The largest difference between numbers of two rules."""
    first, second = numbers_of(rule), numbers_of(other)
    return float(np.abs(first - second).max()) if first.shape == second.shape else np.inf


def sized(i):
    """A problem with 200 to 5,000 rows of one of four kinds, by number: probabilities, labels, metric, options."""
    rng = np.random.default_rng(1_000 + i)
    n, turn = int(rng.choice([200, 500, 1_000, 2_000, 5_000])), i // 4
    if i % 4 == 0:
        proba = rng.beta(0.7, 2.5, n)
        metric = ["f1", "mcc", "g_mean", "balanced_accuracy", "kappa", "min_recall"][turn % 6]
        return proba, (rng.random(n) < proba**1.4).astype(int), metric, {}
    if i % 4 == 3:
        proba = rng.beta(0.7, 2.5, (n, 6))
        return proba, (rng.random(proba.shape) < proba**1.3).astype(int), "f1", {"average": "macro"}
    proba = rng.dirichlet(np.linspace(0.4, 1.6, 3 if i % 4 == 1 else 5), n)
    metric = ["macro_f1", "quadratic_kappa", "mcc", "g_mean", "min_recall", "balanced_accuracy"][turn % 6]
    return proba, worlds.draw_codes(worlds.normalized(proba**1.4), rng), metric, {}


def check_noise(numbers, allowed):
    """Noise of 1e-9 and another order of the rows change hardly any rule beyond 1e-6."""
    changed = []
    for i in numbers:
        proba, y, metric, options = sized(i)
        rng = np.random.default_rng(i)
        moved = np.clip(proba + rng.uniform(-1e-9, 1e-9, proba.shape), 0, 1)
        moved = worlds.normalized(moved) if i % 4 in (1, 2) else moved
        order = rng.permutation(len(y))
        rule, with_noise, reordered = (
            mw.optimize(*rows, metric, **options).rule for rows in ((proba, y), (moved, y), (proba[order], y[order]))
        )
        changed += [i] * (change_of(rule, with_noise) > 1e-6) + [-i] * (change_of(rule, reordered) > 1e-6)
    assert len(changed) <= allowed, changed


def test_noise_changes_no_rule():
    check_noise((0, 2, 3, 5, 9, 14, 20, 21), allowed=0)


@pytest.mark.slow
def test_noise_changes_hardly_any_of_a_hundred_rules():
    check_noise(range(100), allowed=1)


@pytest.mark.parametrize("n", [600, 25_000])
def test_the_shape_of_the_input_changes_nothing(n):
    """One column, two columns or a table; also of more rows than are sampled."""
    pd = pytest.importorskip("pandas")
    proba, y = worlds.binary(n, power=1.5, seed=4)
    two = np.column_stack([1 - proba, proba])
    rule = mw.optimize(proba, y, "f1").rule
    for same in (two, pd.DataFrame(two, columns=[0, 1]), two.tolist(), np.asfortranarray(two)):
        assert change_of(rule, mw.optimize(same, y, "f1").rule) < 1e-6


@pytest.mark.skipif(kernels.max_threads() < 2, reason="there is one thread here")
@pytest.mark.parametrize(("metric", "classes"), [("quadratic_kappa", 3), ("macro_f1", 3), ("f1", 2)])
def test_results_do_not_depend_on_the_number_of_threads(metric, classes):
    """Rows enough that resamples of them are passed over by several threads."""
    rng = np.random.default_rng(1)
    proba = rng.dirichlet(np.linspace(3, 1, classes), 15_000)
    y = worlds.draw_codes(proba, rng)
    results = []
    for n_threads in (1, 2, 3):
        with threadpool_limits(limits=n_threads, user_api="openmp"):
            solution = mw.optimize(proba, y, metric)
        results.append((solution.rule.to_json(), solution.gain, solution.value_on_new_rows, solution.status))
    assert results[0] == results[1] == results[2]


if __name__ == "__main__":
    json.dump({"kernels": kernels.in_use(), **{name: outcome(*case) for name, case in cases().items()}}, sys.stdout)


def test_thresholds_have_no_range_where_some_outputs_judge_for_all(monkeypatch):
    """Of very many outputs: there is none to be told of the others."""
    monkeypatch.setattr("metricwise.fitting.selection._MAX_FITTED", 1 << 14)
    rng = np.random.default_rng(0)
    proba = rng.beta(1, 3, (400, 30))
    y = (rng.random(proba.shape) < proba).astype(int)
    solution = mw.optimize(proba, y, "f1", average="macro")
    assert solution.threshold_range is None
    assert solution.gain is not None
    assert solution.rule.predict(proba).shape == y.shape


def test_priors_that_are_those_of_the_labels_change_nothing():
    P, y = worlds.rows.multiclass(400)
    shares = np.bincount(y) / len(y)
    for metric in ("macro_f1", "kappa", "accuracy"):
        assert mw.optimize(P, y, metric, prior=shares).rule == mw.optimize(P, y, metric).rule


def test_functions_of_recalls_are_left_alone_by_priors_and_a_note_says_so():
    P, y = worlds.rows.multiclass(400)
    for metric in ("g_mean", "balanced_accuracy", "min_recall"):
        moved = mw.optimize(P, y, metric, prior=[0.8, 0.1, 0.1])
        assert moved.rule == mw.optimize(P, y, metric).rule
        assert "does not change with class shares: prior is not used." in moved.status
    bounded = mw.optimize(
        P, y, "balanced_accuracy", subject_to="share[2] <= 0.3", prior=[0.8, 0.1, 0.1], confidence=None
    )
    assert "prior is not used" not in bounded.status
    recorded = mw.optimize(P, y, "balanced_accuracy", record=["accuracy"], prior=[0.8, 0.1, 0.1])
    assert (
        recorded.recorded["accuracy"].value
        != mw.optimize(P, y, "balanced_accuracy", record=["accuracy"]).recorded["accuracy"].value
    )
