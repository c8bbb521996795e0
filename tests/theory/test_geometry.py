"""The feasible set against the hull of all deterministic rules, found by enumeration, and linear programmes over it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

import metricwise as mw
import programmes
from engines import counts
from metricwise.data.probabilities import read_proba
from metricwise.geometry import FeasibleSet, does_weighting_suffice
from profiles import examples
from worlds import simplex

# ------------------------------------------------------------------------------------------------- the reference


def hull_reach(corners, start, step):
    """The largest t for which start + t * step is in the hull of the corners; None if no t is."""
    flat = corners.reshape(len(corners), -1)
    equal = np.vstack([np.column_stack([flat.T, -step.ravel()]), np.append(np.ones(len(flat)), 0.0)])
    right = np.append(start.ravel(), 1.0)
    bounds = [(0, None)] * len(flat) + [(None, None)]
    result = linprog(np.append(np.zeros(len(flat)), -1.0), A_eq=equal, b_eq=right, bounds=bounds)
    return result.x[-1] if result.status == 0 else None


def in_hull(corners, C):
    return linprog(np.zeros(len(corners)), A_eq=_system(corners), b_eq=np.append(C.ravel(), 1.0)).status == 0


def _system(corners):
    return np.vstack([corners.reshape(len(corners), -1).T, np.ones(len(corners))])


def reference_verdict(corners, C):
    """A vertex is in no hull of the others; a point of the relative interior has positive weight on every corner."""
    others = corners[np.abs(corners - C).max(axis=(1, 2)) > 1e-9]
    if len(others) < len(corners) and not in_hull(others, C):
        return "weighted"
    n = len(corners)
    system = _system(corners)
    result = linprog(  # w = s + extra, the largest s
        np.append(np.zeros(n), -1.0),
        A_eq=np.column_stack([system, system.sum(axis=1)]),
        b_eq=np.append(C.ravel(), 1.0),
    )
    assert result.status == 0
    return "interior" if result.x[-1] > 1e-7 else "face"


def reached(eta, rule):
    """The expected confusion of a rule of one output, by its exact distribution."""
    chosen = rule.distribution(eta) if isinstance(rule, mw.MixtureRule) else np.eye(eta.shape[1])[rule.predict(eta)]
    return np.einsum("ni,nj->ij", eta, chosen) / eta.sum()


@st.composite
def atoms(draw, max_rows=5, max_classes=3):
    """Few rows of few distinct probabilities, with weights."""
    k = draw(st.integers(2, max_classes))
    n = draw(st.integers(1, max_rows))
    eta = simplex(draw, n, k, 10)
    weight = np.array(draw(st.lists(st.integers(1, 3), min_size=n, max_size=n)), dtype=float)
    return eta, weight


@st.composite
def points(draw, corners):
    """A mixture of few corners, of all, or a point that may be outside."""
    kind = draw(st.sampled_from(["one", "two", "three", "all", "beyond"]))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    if kind in ("all", "beyond"):
        C = np.tensordot(rng.dirichlet(np.ones(len(corners))), corners, axes=1)
        corner = corners[rng.integers(len(corners))]
        return C if kind == "all" else C + rng.uniform(0.9, 1.5) * (corner - C)
    n = {"one": 1, "two": 2, "three": 3}[kind]
    return np.tensordot(rng.dirichlet(np.full(n, 5.0)), corners[rng.integers(len(corners), size=n)], axes=1)


# ---------------------------------------------------------------------------------------- oracle, support, hull


@examples(40)
@given(atoms(), st.integers(0, 10**6))
def test_support_and_vertex_are_those_of_the_enumeration(problem, seed):
    eta, weight = problem
    feasible = FeasibleSet.from_proba(eta, sample_weight=weight)
    corners = programmes.single(eta, weight).vertices()
    D = np.random.default_rng(seed).normal(size=corners.shape[1:])
    assert feasible.support(D) == pytest.approx(np.sum(D * corners, axis=(1, 2)).max(), abs=1e-12)
    vertex = feasible.vertex(-D)[0]
    assert np.abs(corners - vertex).max(axis=(1, 2)).min() < 1e-12


@examples(40)
@given(atoms())
def test_dimension_is_the_rank_of_all_confusions(problem):
    eta, weight = problem
    corners = programmes.single(eta, weight).vertices().reshape(-1, eta.shape[1] ** 2)
    assert FeasibleSet.from_proba(eta, sample_weight=weight).dimensions == (
        np.linalg.matrix_rank(corners - corners[0], tol=1e-9),
    )


def test_dimension_of_degenerate_sets():
    assert FeasibleSet.from_proba([[0.2, 0.3, 0.5]] * 4).dimensions == (2,)  # a constant prediction
    assert FeasibleSet.from_proba([[0.2, 0.8, 0.0], [0.5, 0.5, 0.0]]).dimensions == (4,)  # a class of prior 0
    proba = [np.array([[0.2, 0.8], [0.6, 0.4]]), np.array([[0.2, 0.3, 0.5], [0.6, 0.2, 0.2]])]
    assert FeasibleSet.from_proba(proba).dimensions == (2, 4)  # two rows span two dimensions
    half = counts(read_proba(proba), np.array([[0, -1], [1, -1]], dtype=np.int8), confusion="expected")
    assert FeasibleSet(half).dimensions == (2, 0)  # nothing of the second output is observed


# --------------------------------------------------------------------------------------------------- membership


@examples(80)
@given(st.data())
def test_membership_and_its_proofs(data):
    eta, weight = data.draw(atoms())
    corners = programmes.single(eta, weight).vertices()
    C = data.draw(points(corners))
    found = FeasibleSet.from_proba(eta, sample_weight=weight).contains(C)
    assert bool(found) == in_hull(corners, C)
    if found:
        mixture = found.decomposition
        np.testing.assert_allclose(mixture.confusion[0], C, atol=1e-8)
        assert mixture.weights.min() > 0
        assert mixture.weights.sum() == pytest.approx(1.0)
        assert mixture.n_rules <= np.linalg.matrix_rank((corners - C).reshape(len(corners), -1), tol=1e-9) + 1
    else:
        L = found.loss.tensor()[0]
        least = np.sum(L * corners, axis=(1, 2)).min()
        assert np.sum(L * C) < least
        assert found.margin == pytest.approx(least - np.sum(L * C), abs=1e-12)
        assert np.linalg.norm(L) == pytest.approx(1.0)


def test_the_decomposition_is_a_rule_that_reaches_the_tensor():
    rng = np.random.default_rng(0)
    eta = rng.dirichlet(np.ones(3), size=200)
    feasible = FeasibleSet.from_proba(eta)
    C = 0.7 * feasible.vertex(-np.eye(3)) + 0.3 * feasible.vertex(rng.normal(size=(3, 3)))
    found = feasible.contains(C)
    assert found.decomposition.n_rules <= 7
    np.testing.assert_allclose(reached(eta, found.decomposition.rule()), C[0], atol=1e-8)


@pytest.mark.parametrize(
    "C",
    [
        [[0.5, 0.2], [0.1, 0.2]],  # row sums that are not the priors
        [[0.6, -0.1], [0.1, 0.4]],
        [[0.5, 0.0], [0.0, 0.5]],
    ],
)
def test_tensors_that_no_rule_can_reach(C):
    eta = np.array([[0.8, 0.2], [0.4, 0.6], [0.3, 0.7]])
    found = FeasibleSet.from_proba(eta).contains(C)
    corners = programmes.single(eta).vertices()
    L = found.loss.tensor()[0]
    assert not found
    assert np.sum(L * C) + found.margin == pytest.approx(np.sum(L * corners, axis=(1, 2)).min())
    assert found.margin > 0.01


@examples(30)
@given(st.data())
def test_two_outputs_are_a_product(data):
    parts = [data.draw(atoms(max_rows=3)) for _ in range(2)]
    n = min(len(eta) for eta, _ in parts)
    proba, weight = [eta[:n] for eta, _ in parts], parts[0][1][:n]
    corners = [programmes.single(eta, weight).vertices() for eta in proba]
    chosen = [data.draw(points(own)) for own in corners]
    feasible = FeasibleSet.from_proba(proba, sample_weight=weight)
    C = np.zeros(feasible.shape)
    for m, own in enumerate(chosen):
        C[m, : len(own), : len(own)] = own
    found = feasible.contains(C)
    assert bool(found) == all(in_hull(own, point) for own, point in zip(corners, chosen, strict=True))
    if found:
        np.testing.assert_allclose(found.decomposition.confusion, C, atol=1e-8)
    else:
        L = found.loss.tensor()
        least = sum(np.sum(L[m, : c.shape[1], : c.shape[1]] * c, axis=(1, 2)).min() for m, c in enumerate(corners))
        assert np.sum(L * C) + found.margin == pytest.approx(least, abs=1e-12)
        assert found.margin > 0


# ------------------------------------------------------------------------------------------------ rays, pictures


@examples(40)
@given(st.data())
def test_a_ray_ends_where_the_hull_does(data):
    eta, weight = data.draw(atoms())
    corners = programmes.single(eta, weight).vertices()
    rng = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    start = np.tensordot(rng.dirichlet(np.ones(len(corners))), corners, axes=1)
    step = corners[-1] - start
    found = FeasibleSet.from_proba(eta, sample_weight=weight).exit(start, step)
    assert found.length == pytest.approx(hull_reach(corners, start, step), abs=1e-7)
    np.testing.assert_allclose(found.confusion[0], start + found.length * step, atol=1e-9)
    L = found.loss.tensor()[0]
    values = np.sum(L * corners, axis=(1, 2))
    assert np.sum(L * found.confusion[0]) == pytest.approx(values.min(), abs=1e-7)
    assert np.ptp(values) > 1e-9  # not constant: it does support the set there


def test_the_projection_touches_every_supporting_line():
    eta = np.random.default_rng(0).dirichlet(np.ones(3), size=6)
    feasible = FeasibleSet.from_proba(eta)
    corners = programmes.single(eta).vertices()
    x, y = (feasible.functional(mw.metrics.Recall(index=i))[0] for i in (0, 1))
    np.testing.assert_allclose(x, np.diag([1 / eta[:, 0].mean(), 0, 0]))
    cloud = np.column_stack([np.sum(corners * axis, axis=(1, 2)) for axis in (x, y)])
    found = feasible.boundary_2d(mw.metrics.Recall(index=0), mw.metrics.Recall(index=1), n=24)
    for angle, point in zip(2 * np.pi * np.arange(24) / 24, found, strict=True):
        unit = np.array([np.cos(angle), np.sin(angle)])
        assert unit @ point == pytest.approx((cloud @ unit).max(), abs=1e-9)


def test_the_slice_is_the_edge_of_the_plane():
    eta = np.random.default_rng(1).dirichlet(np.ones(3), size=5)
    feasible = FeasibleSet.from_proba(eta)
    corners = programmes.single(eta).vertices()
    coin = corners.mean(axis=0)
    x, y = corners[7] - coin, corners[100] - coin
    for s, t in feasible.slice_2d(coin, x, y, n=8):
        assert hull_reach(corners, coin, s * x + t * y) == pytest.approx(1.0, abs=1e-6)


def test_a_product_stops_a_ray_at_its_first_output():
    feasible = FeasibleSet.from_proba(np.array([[0.2, 0.7], [0.6, 0.9]]), multioutput=True)
    coin = np.repeat(feasible.priors[:, :, None] / 2, 2, axis=2)
    end = feasible.exit(coin, (feasible.vertex(-np.eye(2)) - coin) * np.array([1.0, 0.25])[:, None, None])
    assert end.length == pytest.approx(1.0)
    assert end.loss.tensor()[0].any()
    assert not end.loss.tensor()[1].any()


# ----------------------------------------------------------------------------------------- does weighting suffice


@examples(80)
@given(st.data())
def test_verdicts_are_those_of_the_enumeration(data):
    eta, weight = data.draw(atoms())
    corners = programmes.single(eta, weight).vertices()
    C = data.draw(points(corners).filter(lambda C: in_hull(corners, C)))
    answer = does_weighting_suffice(C, FeasibleSet.from_proba(eta, sample_weight=weight), tol=1e-8)
    assert answer.verdict == reference_verdict(corners, C)
    assert answer.outputs == (answer.verdict,)
    np.testing.assert_allclose(answer.decomposition.confusion[0], C, atol=1e-7)
    L = answer.loss.tensor()[0]
    values = np.sum(L * corners, axis=(1, 2))
    if answer.verdict == "interior":
        assert answer.room > 0
        assert not L.any()
    else:
        assert np.ptp(values) > 1e-9  # not constant within rows
        assert np.sum(L * C) == pytest.approx(values.min(), abs=1e-7)
    assert (answer.decomposition.n_rules == 1) == (answer.verdict == "weighted")


def test_a_vertex_of_many_rows_is_found_without_a_hint():
    rng = np.random.default_rng(3)
    feasible = FeasibleSet.from_proba(rng.dirichlet(np.ones(3), size=1000))
    C = feasible.vertex(rng.normal(size=(3, 3)))
    answer = does_weighting_suffice(C, feasible, tol=1e-9)
    assert answer
    np.testing.assert_allclose(feasible.vertex(answer.loss), C, atol=1e-9)
    assert str(answer) == "One weighted rule reaches the tensor."


def test_columns_that_coincide_make_a_face():
    eta = np.random.default_rng(4).dirichlet(np.ones(3), size=500)
    feasible = FeasibleSet.from_proba(eta)
    L = np.array([[0.0, 0.0, 1.0], [0.0, 0.0, 1.0], [1.0, 1.0, 0.0]])  # classes 0 and 1 cost the same
    pair = [L + 1e-9 * np.outer(np.random.default_rng(s).normal(size=3), [1, -1, 0]) for s in (0, 1)]
    C = 0.4 * feasible.vertex(pair[0]) + 0.6 * feasible.vertex(pair[1])
    answer = does_weighting_suffice(C, feasible, losses=[L])
    assert answer.verdict == "face"
    assert answer.slack < 1e-9
    np.testing.assert_allclose(reached(eta, answer.decomposition.rule()), C[0], atol=1e-5)
    known = does_weighting_suffice(C, feasible, losses=pair)
    assert known.decomposition.n_rules == 2
    np.testing.assert_allclose(np.sort(known.decomposition.weights[0]), [0.4, 0.6], atol=1e-9)
    for loss in known.decomposition.losses:  # every rule of the mixture is optimal for the loss of the face
        face = known.loss.tensor()
        assert np.sum(face * feasible.vertex(loss)) == pytest.approx(-feasible.support(-face[0]), abs=1e-6)


def test_two_outputs_one_inside_are_on_a_face():
    rng = np.random.default_rng(5)
    feasible = FeasibleSet.from_proba(rng.uniform(size=(20, 2)), multioutput=True)
    C = feasible.vertex(-np.eye(2))
    C[1] = np.repeat(feasible.priors[1][:, None] / 2, 2, axis=1)
    answer = does_weighting_suffice(C, feasible)
    assert (answer.verdict, answer.outputs) == ("face", ("weighted", "interior"))
    assert not answer.loss.tensor()[1].any()
    np.testing.assert_allclose(answer.decomposition.confusion, C, atol=1e-5)
    rule = answer.decomposition.rule()
    assert isinstance(rule, mw.MixtureRule)
    assert rule.weights.shape == (2, answer.decomposition.n_rules)
    both = does_weighting_suffice(feasible.vertex(rng.normal(size=(2, 2, 2))), feasible)
    assert (both.verdict, both.outputs) == ("weighted", ("weighted", "weighted"))


def test_the_optimum_of_a_metric():
    eta = np.random.default_rng(6).dirichlet([2.0, 1.0, 0.5], size=400)
    feasible = FeasibleSet.from_proba(eta)
    for name in ("accuracy", "quadratic_kappa", "micro_f1"):
        answer = does_weighting_suffice(name, feasible)
        assert answer
        assert answer.solution.value == pytest.approx(
            float(mw.metrics.get_metric(name).value(feasible.vertex(answer.loss)[0]))
        )
    inside = 0.5 * feasible.vertex(-np.eye(3))[0] + 0.5 * feasible.priors[0][:, None] / 3
    near = mw.metrics.from_function(lambda C: -float(np.sum((C - inside) ** 2)), concave=True)
    answer = does_weighting_suffice(near, feasible, tol=1e-2)
    assert answer.verdict == "interior"


def test_few_distinct_probabilities_take_a_mixture_for_the_smallest_recall():
    eta = np.array([[0.6, 0.3, 0.1], [0.3, 0.4, 0.3], [0.5, 0.1, 0.4]])
    feasible = FeasibleSet.from_proba(eta, sample_weight=[5, 3, 2])
    answer = does_weighting_suffice("min_recall", feasible)
    assert answer.verdict == "face"
    assert answer.decomposition.n_rules == 3
    recalls = np.diagonal(programmes.single(eta, [5, 3, 2]).vertices(), axis1=1, axis2=2) / feasible.priors[0]
    n = len(recalls)
    best = linprog(  # the largest smallest recall of a mixture of all 27 rules
        np.append(np.zeros(n), -1.0),
        A_ub=np.column_stack([-recalls.T, np.ones(3)]),
        b_ub=np.zeros(3),
        A_eq=[np.append(np.ones(n), 0.0)],
        b_eq=[1.0],
    )
    assert answer.solution.value == pytest.approx(-best.fun, abs=1e-6)
    assert -best.fun > recalls.min(axis=1).max() + 0.09
    solution = mw.optimize(
        eta,
        None,
        "min_recall",
        sample_weight=[5, 3, 2],
        strategy=mw.Strategy(confusion="expected", recalibrate=False, randomized=True),
    )
    assert does_weighting_suffice(solution, feasible).verdict == "face"


def test_two_rules_where_two_suffice():
    feasible = FeasibleSet.from_proba(np.random.default_rng(7).uniform(size=300))
    C = 0.5 * feasible.vertex([[0, 1], [1, 0]]) + 0.5 * feasible.vertex([[0, 1], [4, 0]])
    answer = does_weighting_suffice(C, feasible, tol=1e-2)
    assert answer.verdict in ("interior", "face")
    assert answer.decomposition.n_rules == 2
    assert answer.error < 1e-2


# ---------------------------------------------------------------------------------------------------- bad input


def test_bad_input_is_refused():
    eta = [[0.8, 0.2], [0.4, 0.6]]
    feasible = FeasibleSet.from_proba(eta)
    with pytest.raises(ValueError, match="FeasibleSet: oracle must count probabilities"):
        FeasibleSet(counts(read_proba(eta), np.array([[0], [1]], dtype=np.int8)))
    with pytest.raises(ValueError, match=r"FeasibleSet.contains: C must have shape \(M, K, K\) = \(1, 2, 2\)"):
        feasible.contains(np.eye(3))
    with pytest.raises(ValueError, match="C must be finite"):
        feasible.contains([[np.nan, 0.5], [0.2, 0.3]])
    with pytest.raises(ValueError, match="start must be in the set"):
        feasible.exit([[0.6, 0.0], [0.0, 0.4]], [[1, -1], [0, 0]])
    with pytest.raises(ValueError, match="direction must have a component within"):
        feasible.exit(feasible.vertex(-np.eye(2)), [[1, 1], [0, 0]])
    with pytest.raises(ValueError, match="x and y must be linear"):
        feasible.boundary_2d("f1", "accuracy")
    with pytest.raises(ValueError, match=r"outside the feasible set. A Solution must have counted expected"):
        does_weighting_suffice([[0.6, 0.0], [0.0, 0.4]], feasible)
    many = FeasibleSet.from_proba(np.random.default_rng(0).dirichlet(np.ones(3), size=300))
    with pytest.raises(RuntimeError, match="raise max_passes or tol"):
        many.contains(many.vertex(-np.eye(3)), max_passes=3)
