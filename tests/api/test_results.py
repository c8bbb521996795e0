"""The result of optimize: fields that always mean the same, whatever was asked for."""

import pickle
import subprocess
import sys

import numpy as np
import pytest

import metricwise as mw
import worlds
from metricwise.core.notes import NoteKind

rng = np.random.default_rng(3)
P, Y = worlds.binary(400, b=2, seed=rng)
ETA = rng.dirichlet([3, 1, 1], 400)
GRADES = worlds.draw_codes(ETA, rng)
COSTS = rng.uniform(0, 5, (400, 2))
GROUPS = np.where(rng.random(400) < 0.5, "a", "b")
FIXED = {"strategy": mw.Strategy(confusion="labels", recalibrate=False)}
RECALIBRATED = {"strategy": mw.Strategy(confusion="labels", recalibrate=True)}


def kinds(solution):
    return [note.kind for note in solution.notes]


# ------------------------------------------------------------------------------------------------------- the threshold


@pytest.mark.parametrize(
    "options",
    [
        {},
        FIXED,
        RECALIBRATED,
        {"subject_to": "precision >= 0.3"},
        {"subject_to": "precision >= 0.3", "confidence": None, **FIXED},
    ],
)
def test_the_threshold_is_one_number_on_the_raw_probability(options):
    solution = mw.optimize(P, Y, "f1", **options)
    assert isinstance(solution.threshold, float)
    assert solution.threshold == solution.rule.threshold
    np.testing.assert_array_equal(solution.predict(P), (solution.threshold < P).astype(int))


def test_several_outputs_have_a_threshold_each():
    solution = mw.optimize(np.stack([P, 1 - P], 1), np.stack([Y, 1 - Y], 1), "f1", average="macro")
    assert solution.threshold.shape == (2,)
    np.testing.assert_array_equal(solution.threshold, solution.rule.threshold)
    outputs = mw.optimize([ETA, np.stack([1 - P, P], 1)], np.stack([GRADES, Y], 1), ["macro_f1", "f1"], **FIXED)
    np.testing.assert_array_equal(np.isnan(outputs.threshold), [True, False])


@pytest.mark.parametrize(
    "solve",
    [
        lambda: mw.optimize(ETA, GRADES, "macro_f1"),
        lambda: mw.optimize(ETA, None, "min_recall", strategy=mw.Strategy(randomized=True)),
        lambda: mw.optimize(P, Y, "cost", cost=COSTS),
        lambda: mw.optimize(P, Y, "accuracy", subject_to="demographic_parity <= 0.1", sensitive_features=GROUPS),
    ],
    ids=["classes", "mixture", "costs", "groups"],
)
def test_rules_without_a_threshold_have_none(solve):
    assert solve().threshold is None


def test_the_threshold_of_the_solver_is_on_what_it_saw():
    solution = mw.optimize(P, Y, "f1", **RECALIBRATED)
    (seen,) = solution.certificate.threshold
    recalibrated = solution.rule.calibrated(np.array([solution.threshold, np.nextafter(solution.threshold, 1)]))
    low, high = np.asarray(recalibrated).reshape(2, -1)[:, -1]
    assert low <= seen + 1e-9
    assert high >= seen - 1e-9


# ----------------------------------------------------------------------------------------------------------- the notes


def test_notes_have_kinds_and_the_status_joins_them():
    chosen = mw.optimize(P, Y, "f1")
    assert kinds(chosen) == [NoteKind.SELECTION]
    kept = mw.optimize(P, Y, "recall", subject_to="precision >= 0.3", sensitive_features=GROUPS)
    assert kinds(kept)[0] is NoteKind.OUTCOME
    assert NoteKind.CONSTRAINT in kinds(kept)
    assert kinds(kept)[-1] is NoteKind.GROUPS
    assert kept.status == " ".join(note.text for note in kept.notes)
    seen = mw.optimize(np.where(Y == 1, 0.9, 0.1), Y, "f1", **FIXED)
    warning = next(note.text for note in seen.notes if note.kind is NoteKind.WARNING)
    assert warning.startswith("The most probable class")


def test_rules_that_do_not_see_groups_say_what_one_that_does_would_reach():
    sensitive = mw.Sensitive(GROUPS, group_aware=False)
    blind = mw.optimize(P, Y, "accuracy", subject_to="demographic_parity <= 0.1", sensitive_features=sensitive)
    assert kinds(blind)[0] is NoteKind.GROUPS
    assert f"would reach {max(blind.upper_bound or 0, blind.alternative):.4g}" in blind.notes[0].text


# ------------------------------------------------------------------------------------------------------- costs per row


def test_costs_per_row_have_all_that_others_have(tmp_path):
    solution = mw.optimize(P, Y, "cost", cost=COSTS)
    assert type(solution) is mw.Solution
    assert kinds(solution)[:2] == [NoteKind.OUTCOME, NoteKind.SELECTION]
    assert solution.gain.low <= solution.gain.estimate <= solution.gain.high
    assert solution.value >= solution.baseline
    assert solution.problem is not None
    assert "mean cost" in solution._repr_html_()
    solution.save(tmp_path / "solution.json")
    again = mw.load_solution(tmp_path / "solution.json")
    assert type(again) is mw.Solution
    assert again.notes == solution.notes
    np.testing.assert_array_equal(again.predict(P, cost=COSTS), solution.predict(P, cost=COSTS))
    copy = pickle.loads(pickle.dumps(solution))  # noqa: S301
    assert copy.problem is None
    assert copy.gain == solution.gain
    summary = mw.report.summarize(solution)
    assert summary["path"] is None
    assert not summary["missing"]["path"]["failed"]
    assert "CostRule" in summary["missing"]["path"]["reason"]


# ------------------------------------------------------------------------------------------------------- in a notebook


def loaded(code):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    ).stdout.split()


def test_rules_show_their_text_until_inspection_is_there():
    code = """
import sys
from metricwise.rules import WeightedRule
rule = WeightedRule.from_thresholds(0.3)
print(rule._repr_html_())
import metricwise as mw
print(mw.WeightedRule is WeightedRule, "mw-card" in rule._repr_html_(), "matplotlib" in sys.modules)
"""
    assert loaded(code) == ["None", "True", "True", "False"]


def test_optimize_makes_cards_without_matplotlib():
    code = """
import sys
from metricwise.api.optimization import optimize
solution = optimize([0.1, 0.3, 0.4, 0.8], [0, 0, 1, 1], "f1")
print("mw-card" in solution._repr_html_(), "mw-card" in solution.rule._repr_html_(), "matplotlib" in sys.modules)
print("jinja2" in sys.modules)
"""
    assert loaded(code) == ["True", "True", "False", "False"]
