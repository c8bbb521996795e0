"""Laws that every metric obeys: the whole registry, and compositions beyond it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laws.metric_cases import degenerate_counts, interior, same_priors
from laws.metric_records import EVERY, NAMES, RECORDS, having, make
from laws.solver_promises import objective_of
from metricwise import metrics
from metricwise.solvers.base import has_form
from profiles import examples

SEEDS = st.integers(0, 2**32 - 1)
every_metric = pytest.mark.parametrize("name", EVERY)
few_classes = pytest.mark.parametrize("k", [2, 3, 5])


def explicit_sum(weights, confusion):
    total = 0.0
    for i in range(len(confusion)):
        for j in range(len(confusion)):
            total += weights[i, j] * confusion[i, j]
    return total


@every_metric
@few_classes
@given(seed=SEEDS)
@examples(5)
def test_gradient_is_the_slope_along_moves_within_rows(name, k, seed):
    rng = np.random.default_rng(seed)
    confusion = interior(rng, k)
    metric = make(name, k)
    bound = metric.bind(confusion.sum(axis=1))
    move = rng.normal(size=(k, k))
    move -= move.mean(axis=1, keepdims=True)
    step = 1e-6
    slope = (bound.value(confusion + step * move) - bound.value(confusion - step * move)) / (2 * step)
    assert np.sum(bound.gradient(confusion) * move) == pytest.approx(slope, rel=2e-6, abs=2e-6)
    assert np.sum(metric.gradient(confusion) * move) == pytest.approx(slope, rel=2e-6, abs=2e-6)


def ratio_of(metric, priors):
    """The metric inside any transforms, and its (A, B) form; None if it has none."""
    bound = metric.bind(priors)
    while isinstance(bound, metrics.Increasing):
        metric, bound = bound.base, bound.base
    return (metric, bound.as_ratio()) if hasattr(bound, "as_ratio") else None


FORMS = ("linear", "ratio", "minimum", "concave", "any")  # the narrowest first


@every_metric
@few_classes
def test_the_form_is_that_of_the_record(name, k):
    """What solvers are told of it, and whether it is behind a transform."""
    priors = np.random.default_rng(k).dirichlet(np.ones(k))
    metric = make(name, k)
    objective = objective_of(metric, priors)
    assert next(form for form in FORMS if has_form(objective, form)) == RECORDS[name].form
    assert isinstance(metric.bind(priors), metrics.Increasing) == RECORDS[name].increasing
    assert (ratio_of(metric, priors) is not None) == (RECORDS[name].form in ("linear", "ratio"))


@pytest.mark.parametrize("name", [*having(form="linear"), *having(form="ratio")])
@given(seed=SEEDS)
@examples(5)
def test_linear_metrics_rise_evenly_and_ratios_as_ratios_do(name, seed):
    """Along a line of confusions, by values alone: differences are equal, and cross-ratios are those of the steps."""
    rng = np.random.default_rng(seed)
    first = interior(rng, 3)
    second = same_priors(rng, first)
    metric, _ = ratio_of(make(name, 3), first.sum(axis=1))
    f = [float(metric.value(first + t / 3 * (second - first))) for t in range(4)]
    if RECORDS[name].form == "linear":
        np.testing.assert_allclose(np.diff(f), (f[3] - f[0]) / 3, atol=1e-12)
    else:
        # (f2 - f0)(f3 - f1) / ((f3 - f0)(f2 - f1)) is 2 * 2 / (3 * 1) for places 0, 1, 2, 3, whatever the ratio.
        assert 3 * (f[2] - f[0]) * (f[3] - f[1]) == pytest.approx(4 * (f[3] - f[0]) * (f[2] - f[1]), abs=1e-12)


@pytest.mark.parametrize("name", [*having(form="linear"), *having(form="ratio")])
@few_classes
def test_bound_form_is_the_ratio_of_its_matrices(name, k):
    confusion = interior(np.random.default_rng(k), k)
    metric, ratio = ratio_of(make(name, k), confusion.sum(axis=1))
    expected = explicit_sum(ratio.A, confusion) / explicit_sum(ratio.B, confusion)
    assert metric.value(confusion) == pytest.approx(expected, abs=1e-13)
    assert ratio.value(confusion) == pytest.approx(expected, abs=1e-13)
    least = (confusion.sum(axis=1) @ ratio.B).min()  # one class is always predicted
    assert (least < 1e-12) == RECORDS[name].vanishing


@every_metric
@few_classes
@given(data=st.data(), zero_division=st.sampled_from([0.0, 1.0]))
@examples(15)
def test_values_are_finite_and_within_range(name, k, data, zero_division):
    counts = data.draw(degenerate_counts(k))
    confusion = counts / counts.sum()
    metric = make(name, k, zero_division)
    bound = metric.bind(confusion.sum(axis=1))
    value = bound.value(confusion)
    assert value == pytest.approx(metric.value(confusion), abs=1e-14)
    for low, high in (metric.range, bound.range):
        assert low - 1e-12 <= value <= high + 1e-12
    assert np.isfinite(bound.gradient(confusion)).all()


@pytest.mark.parametrize("name", having(stated=True))
def test_no_rows_at_all_is_a_number(name):
    empty = np.zeros((3, 3))
    assert np.isfinite(make(name, 3).value(empty))
    assert np.isfinite(make(name, 3).gradient(empty)).all()


@pytest.mark.parametrize("name", having(is_concave=True))
@given(seed=SEEDS)
@examples(20)
def test_concave_metrics_lie_above_their_chords(name, seed):
    rng = np.random.default_rng(seed)
    first = interior(rng, 4)
    bound = make(name, 4).bind(first.sum(axis=1))
    second = same_priors(rng, first)
    share = rng.uniform()
    between = bound.value(share * first + (1 - share) * second)
    assert between >= share * bound.value(first) + (1 - share) * bound.value(second) - 1e-12
    # The gradient is a supergradient: no point lies above the plane at another.
    plane = bound.value(first) + np.sum(bound.gradient(first) * (second - first))
    assert bound.value(second) <= plane + 1e-12


@pytest.mark.parametrize("name", having(is_concave=False))
def test_metrics_that_are_not_concave_have_a_chord_above_them_and_do_not_declare_it(name):
    rng = np.random.default_rng(0)
    first = interior(rng, 3, 500)
    second = np.stack([same_priors(rng, matrix) for matrix in first])
    bound = make(name, 3).bind(first.sum(axis=-1))
    bends = bound.value((first + second) / 2) - (bound.value(first) + bound.value(second)) / 2
    assert not make(name, 3).traits.concave
    assert not bound.traits.concave
    assert bends.min() < -1e-6


@pytest.mark.parametrize("name", having(increasing=True))
def test_increasing_transforms_never_fall(name):
    rng = np.random.default_rng(1)
    stack = interior(rng, 3, 200)
    bound = make(name, 3).bind(stack[0].sum(axis=1))
    assert isinstance(bound, metrics.Increasing)
    order = np.argsort(bound.base.value(stack))
    assert (np.diff(bound.value(stack)[order]) >= 0).all()
    slopes = bound.derivative(np.linspace(0, 1, 50))
    assert np.isfinite(slopes).all()
    assert (slopes >= 0).all()


@every_metric
@few_classes
def test_stacks_are_loops(name, k):
    rng = np.random.default_rng(k)
    metric = make(name, k)
    stack = interior(rng, k, 4, 3)  # 4 matrices of each of 3 groups
    stack[:, 1] = stack[:1, 1]
    priors = stack[0].sum(axis=-1)
    moved = np.stack([np.stack([same_priors(rng, matrix) for matrix in stack[0]]) for _ in range(4)])
    bound = metric.bind(priors)
    one_by_one = [[metric.bind(priors[g]) for g in range(3)] for _ in range(4)]
    values = [[one.value(c) for one, c in zip(row, cs, strict=True)] for row, cs in zip(one_by_one, moved, strict=True)]
    slopes = [
        [one.gradient(c) for one, c in zip(row, cs, strict=True)] for row, cs in zip(one_by_one, moved, strict=True)
    ]
    assert bound.value(moved).shape == (4, 3)
    np.testing.assert_allclose(bound.value(moved), values, atol=1e-13)
    np.testing.assert_allclose(bound.gradient(moved), slopes, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(metric.value(moved), values, atol=1e-13)
    # One group's priors serve a stack of its matrices, and a single matrix gives a scalar.
    single = metric.bind(priors[0])
    np.testing.assert_allclose(single.value(moved[:, 0]), np.array(values)[:, 0], atol=1e-13)
    assert single.gradient(moved[:, 0]).shape == (4, k, k)
    assert np.shape(single.value(moved[0, 0])) == ()


@given(data=st.data())
@examples(25)
def test_stacks_with_absent_classes_are_loops(data):
    counts = np.stack([data.draw(degenerate_counts(3)) for _ in range(3)])
    stack = counts / counts.sum(axis=(1, 2), keepdims=True)
    for name in EVERY:
        metric = make(name, 3)
        bound = metric.bind(stack.sum(axis=-1))
        np.testing.assert_allclose(bound.value(stack), [metric.value(c) for c in stack], atol=1e-13)
        np.testing.assert_allclose(
            bound.gradient(stack), [metric.gradient(c) for c in stack], rtol=1e-11, atol=1e-12, err_msg=name
        )


@pytest.mark.parametrize("name", having(rewards_mistakes=False))
@few_classes
def test_a_perfect_prediction_is_the_best(name, k):
    rng = np.random.default_rng(k)
    priors = rng.dirichlet(np.ones(k))
    bound = make(name, k).bind(priors)
    others = [bound.value(same_priors(rng, np.diag(priors))) for _ in range(50)]
    assert bound.value(np.diag(priors)) >= max(others) - 1e-12


@every_metric
def test_classes_may_trade_places_unless_the_record_keeps_them(name):
    rng = np.random.default_rng(list(name.encode()))
    k, metric = 4, make(name, 4)
    kept = RECORDS[name].kept(k, k - 1)
    others = [i for i in range(k) if i not in kept]
    changes = []
    for _ in range(20):
        confusion = interior(rng, k)
        moved = np.arange(k)
        moved[others] = rng.permutation(others)
        assert metric.value(confusion[np.ix_(moved, moved)]) == pytest.approx(metric.value(confusion), abs=1e-12)
        anyhow = rng.permutation(k)
        changes.append(abs(metric.value(confusion[np.ix_(anyhow, anyhow)]) - metric.value(confusion)))
    assert (max(changes) > 1e-3) == bool(kept)


@every_metric
def test_traits_before_binding_hold_after(name):
    metric = make(name, 3)
    bound = metric.bind([0.2, 0.3, 0.5])
    if metric.traits.family != "other":
        assert bound.traits.family == metric.traits.family
    assert bound.traits.smooth == metric.traits.smooth
    assert bound.traits.concave or not metric.traits.concave


@pytest.mark.parametrize("name", NAMES)
def test_a_metric_knows_its_name_and_equals_its_twin(name):
    metric = make(name, 2)
    assert metric.name == (RECORDS[name].name or name)
    assert metric == make(name, 2)
    assert metric != make("h_mean" if name == "g_mean" else "g_mean", 2)
    assert metric.bind([0.4, 0.6]) == make(name, 2).bind([0.4, 0.6])


@pytest.mark.parametrize("name", NAMES)
def test_every_metric_documents_itself(name):
    doc = type(make(name, 2)).__doc__
    assert "ange [" in doc or "Range:" in doc or "Range and" in doc
    assert ">>> import metricwise as mw" in doc


def test_only_aims_at_one_side_of_an_error_are_degenerate():
    assert [name for name in EVERY if make(name, 2).traits.degenerate] == having(degenerate=True)
    assert "class 'cat' alone" in metrics.Recall(pos_label="cat").traits.degenerate
    assert "the positive class alone" in metrics.Precision().traits.degenerate
    assert "class 3 alone" in metrics.Specificity(index=3).traits.degenerate


@few_classes
def test_the_degenerate_rules_are_indeed_optimal(k):
    priors = np.random.default_rng(0).dirichlet(np.ones(k))
    always, never = np.zeros((k, k)), np.zeros((k, k))
    always[:, 0], never[:, 1] = priors, priors
    assert metrics.Recall(index=0).value(always) == pytest.approx(1)
    assert metrics.Specificity(index=0).value(never) == pytest.approx(1)


# Metrics that are no ratios, but increase with a sum over classes of a function of hits and predicted share.
SUMS_OVER_CLASSES = {
    *("macro_f1", "weighted_f1", "macro_jaccard", "weighted_jaccard", "macro_precision", "weighted_precision"),
    *("fowlkes_mallows", "g_mean", "h_mean", "q_mean"),
    *("ClassAverage(fowlkes_mallows)", "ClassAverage(f1, weights)"),
}


@every_metric
@few_classes
@given(seed=SEEDS)
@examples(5)
def test_values_rise_with_the_sum_of_the_terms_of_classes(name, k, seed):
    rng = np.random.default_rng(seed)
    first = interior(rng, k)
    tables = np.stack([first, *(same_priors(rng, first) for _ in range(9))])
    tables[1:4] = np.round(tables[1:4] / first.sum(axis=1)[:, None], 0) * first.sum(axis=1)[:, None]  # empty cells
    tables[1:4, :, -1] += first.sum(axis=1) - tables[1:4].sum(axis=2)
    for metric in (make(name, k), metrics.base.Affine(make(name, k), -2.0, 1.0)):
        bound = metric.bind(first.sum(axis=1))
        terms = bound.class_terms(np.diagonal(tables, axis1=1, axis2=2), tables.sum(axis=1))
        assert (terms is not None) == (name in SUMS_OVER_CLASSES)
        if terms is None:
            return
        sums = np.clip(terms.sum(axis=1), -1e9, 1e9)  # of infinite ones too
        order = np.argsort(sums, kind="stable")
        steps = np.diff(bound.value(tables)[order])
        assert (steps >= -1e-12).all()
        assert (np.abs(steps[np.diff(sums[order]) < 1e-13]) < 1e-9).all()
        hits = np.diagonal(tables[0]).copy()
        hits[0] *= 0.5  # a term depends on its own class alone
        np.testing.assert_array_equal(bound.class_terms(hits, tables[0].sum(axis=0))[1:], terms[0, 1:])
