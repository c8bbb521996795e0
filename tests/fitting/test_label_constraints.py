"""Bounds on pooled metrics of very many labels are kept on the given rows, and mostly on new ones."""

import numpy as np
import pytest
from scipy import sparse

import metricwise as mw
from metricwise.fitting.constraints.resolve import InfeasibleConstraintsError

CASES = [
    ("f1_macro", 3, "precision"),
    ("f1_macro", (1, 3), "precision"),
    ("f1_macro", None, "precision"),
    ("precision_macro", 3, "recall"),
    ("f1_micro", 3, "precision"),
    ("f1_weighted", 3, "precision"),
    ("recall_micro", None, "precision"),
]


def _world(seed, n_rows=400, n_labels=20):
    rng = np.random.default_rng(seed)
    proba = np.where(rng.random((n_rows, n_labels)) < 0.8, rng.beta(0.7, 1.5, (n_rows, n_labels)), 0.0)
    return sparse.csr_array(proba), sparse.csr_array((rng.random((n_rows, n_labels)) < proba).astype(int))


@pytest.mark.filterwarnings("ignore:.*recall")
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("metric", "labels_per_row", "bounded"), CASES)
def test_bounds_are_kept_on_the_given_rows(seed, metric, labels_per_row, bounded):
    proba, y = _world(seed)
    ends = mw.trade_off(proba, y, metric, bounded, n_points=2, labels_per_row=labels_per_row).bounds
    for bound in (ends[0] + share * (ends[1] - ends[0]) for share in (0.2, 0.5, 0.8)):
        solution = mw.optimize(
            proba, y, metric, subject_to=f"{bounded} >= {bound}", confidence=None, labels_per_row=labels_per_row
        )
        (result,) = solution.constraints
        assert result.value >= bound - 1e-12
        evaluation = mw.evaluate(solution, proba, y, [metric, f"{bounded}_micro"])
        assert evaluation[f"{bounded}_micro"].value.estimate == pytest.approx(result.value, abs=1e-12)
        assert evaluation[metric].value.estimate == pytest.approx(solution.value, abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(("metric", "labels_per_row"), [("f1_macro", 3), ("f1_macro", None), ("f1_micro", 3)])
def test_bounds_with_confidence_hold_on_new_rows(metric, labels_per_row):
    n_kept = 0
    for seed in range(10):
        proba, y = _world(seed)
        solution = mw.optimize(proba, y, metric, subject_to="precision >= 0.75", labels_per_row=labels_per_row)
        (result,) = solution.constraints
        assert result.value >= 0.75 - 1e-12
        assert result.margin > 0
        new, true = _world(1000 + seed, 3000)
        n_kept += mw.evaluate(solution, new, true, "precision_micro")["precision_micro"].value.estimate >= 0.75
    assert n_kept >= 8


def test_a_bound_that_does_not_bind_has_no_price():
    proba, y = _world(0)
    solution = mw.optimize(proba, y, "f1_macro", subject_to="precision >= 0.1", confidence=None, labels_per_row=3)
    assert solution.constraints[0].price == 0
    free = mw.optimize(proba, y, "f1_macro", labels_per_row=3, strategy=mw.Strategy("expected", True))
    assert solution.value == pytest.approx(free.value, abs=0.01)


def test_bounds_that_no_rule_keeps_are_refused():
    proba, y = _world(0)
    for confidence in (None, 0.95):
        with pytest.raises(InfeasibleConstraintsError, match=r"No rule was found that keeps 'recall >= 0\.9'"):
            mw.optimize(proba, y, "f1_macro", subject_to="recall >= 0.9", confidence=confidence, labels_per_row=2)
