"""Thresholds of several groups against all their combinations."""

import itertools

import numpy as np
import pytest

from metricwise.solvers.group_thresholds import Curve, best_thresholds, keep_gaps


def drawn(rng, n_groups, n_thresholds, n_metrics, distance):
    """Curves whose metrics rise along thresholds, as shares of decisions do."""
    out = []
    for _ in range(n_groups):
        worth = rng.normal(size=n_thresholds).cumsum() / 10
        values = np.sort(rng.random((n_metrics, n_thresholds)), axis=1)
        below, above = distance * rng.random((2, n_metrics, n_thresholds))
        out.append(Curve(worth, values, below, above))
    return out


def between_groups(bound, n_metrics, n_groups):
    return np.where(np.eye(n_groups, dtype=bool), np.inf, np.full((n_metrics, n_groups, n_groups), bound))


def best_of_all(curves, bounds, join):
    """The largest value of all combinations that keep the bounds, -inf where none does."""
    best = -np.inf
    for chosen in itertools.product(*(range(len(curve.worth)) for curve in curves)):
        pairs = itertools.permutations(range(len(curves)), 2)
        if all(
            first.values[p, s] - second.values[p, t] + np.hypot(first.above[p, s], second.below[p, t])
            <= bounds[p, g, h] + 1e-12
            for g, h in pairs
            for first, second, s, t in [(curves[g], curves[h], chosen[g], chosen[h])]
            for p in range(len(bounds))
        ):
            best = max(best, join([curve.worth[t] for curve, t in zip(curves, chosen, strict=True)]))
    return best


@pytest.mark.parametrize("least", [False, True])
@pytest.mark.parametrize("distance", [0.0, 0.1])
@pytest.mark.parametrize("seed", range(20))
def test_two_groups_have_the_best_of_all_pairs(seed, distance, least):
    rng = np.random.default_rng(seed)
    curves, bounds = drawn(rng, 2, 30, 1 + seed % 2, distance), between_groups(0.2, 1 + seed % 2, 2)
    chosen, best = best_thresholds(curves, bounds, least=least), best_of_all(curves, bounds, min if least else sum)
    if chosen is None:
        assert best == -np.inf
        return
    worth = [curve.worth[t] for curve, t in zip(curves, chosen, strict=True)]
    assert keep_gaps(curves, bounds, chosen[None])[0]
    assert (min if least else sum)(worth) == pytest.approx(best, abs=1e-12)


@pytest.mark.parametrize(("n_groups", "n_thresholds", "n_metrics"), [(3, 12, 1), (3, 10, 2), (4, 7, 2), (5, 5, 1)])
@pytest.mark.parametrize("seed", range(5))
def test_several_groups_have_the_best_of_all_combinations(seed, n_groups, n_thresholds, n_metrics):
    curves = drawn(np.random.default_rng(seed), n_groups, n_thresholds, n_metrics, 0.0)
    bounds = between_groups(0.25, n_metrics, n_groups)
    chosen, best = best_thresholds(curves, bounds), best_of_all(curves, bounds, sum)
    if chosen is None:
        assert best == -np.inf
        return
    assert sum(curve.worth[t] for curve, t in zip(curves, chosen, strict=True)) == pytest.approx(best, abs=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_limits_of_several_groups_are_kept(seed):
    curves = drawn(np.random.default_rng(seed), 4, 60, 2, 0.05)
    bounds = between_groups(0.3, 2, 4)
    chosen = best_thresholds(curves, bounds)
    assert chosen is not None
    values, below, above = (
        np.stack([getattr(curve, name)[:, t] for curve, t in zip(curves, chosen, strict=True)])
        for name in ("values", "below", "above")
    )
    for g, h in itertools.permutations(range(4), 2):
        assert (values[g] - values[h] + np.hypot(above[g], below[h]) <= 0.3 + 1e-12).all()


def test_many_thresholds_are_searched_around_the_best():
    t = np.linspace(0.0, 1.0, 5_001)
    curves = [Curve(-((t - best) ** 2), t[None], 0 * t[None], 0 * t[None]) for best in (0.2, 0.6)]
    chosen = best_thresholds(curves, between_groups(0.1, 1, 2))
    assert t[chosen].tolist() == pytest.approx([0.35, 0.45], abs=1e-3)


def test_a_threshold_that_is_not_allowed_is_not_chosen():
    worth, values = np.array([3.0, -np.inf, 1.0]), np.array([[0.0, 0.5, 1.0]])
    other = Curve(np.array([0.0, 2.0]), np.array([[0.5, 1.0]]), np.zeros((1, 2)), np.zeros((1, 2)))
    chosen = best_thresholds([Curve(worth, values, 0 * values, 0 * values), other], between_groups(0.1, 1, 2))
    assert chosen.tolist() == [2, 1]
    nothing = Curve(np.full(3, -np.inf), values, 0 * values, 0 * values)
    assert best_thresholds([nothing, other], between_groups(0.1, 1, 2)) is None
