"""The small simplex method finds what HiGHS does."""

import numpy as np
import pytest

from metricwise.solvers.programme import Programme


def drawn(seed, n_rows, n_weights):
    rng = np.random.default_rng(seed)
    keep = rng.normal(size=(n_rows, n_weights)) * rng.choice([1.0, 1e-3], (n_rows, 1))
    level = keep.max(axis=1, initial=0.0) * rng.uniform(-0.5, 0.6, n_rows)
    one = np.zeros(1, dtype=np.intp)
    return Programme(keep, level, rng.normal(size=(1, n_weights)), np.zeros(1), one, np.ones(1), 1, 1e-9)


@pytest.mark.parametrize("n_rows", [0, 1, 2, 4])
@pytest.mark.parametrize("n_weights", [2, 7, 60])
@pytest.mark.parametrize("seed", range(5))
def test_the_simplex_method_agrees_with_highs(monkeypatch, seed, n_rows, n_weights):
    programme = drawn(seed, n_rows, n_weights)
    nearest, best = programme.nearest(), None
    if nearest.value > -1e-10:
        best = programme.best()
    monkeypatch.setattr(Programme, "_simplex", lambda *_, **__: None)
    if n_rows:
        assert nearest.value == pytest.approx(programme.nearest().value, abs=1e-8)
    if best is None:
        return
    expected = programme.best()
    assert best.value == pytest.approx(expected.value, abs=1e-8)
    np.testing.assert_allclose(best.prices, expected.prices, atol=1e-6)
    assert best.weights.sum() == pytest.approx(1.0)
    assert (programme.keep @ best.weights >= programme.level - 1e-9).all()


def test_a_basis_of_fewer_columns_is_where_it_begins():
    programme = drawn(1, 2, 60)
    fewer = Programme(programme.keep[:, :50], programme.level, programme.lift[:, :50], *vars_of(programme))
    basis = fewer.best().basis
    assert basis is not None
    again = Programme(programme.keep, programme.level, programme.lift, *vars_of(programme), basis)
    assert again.best().value == pytest.approx(programme.best().value, abs=1e-12)


def vars_of(programme):
    return programme.cut_level, programme.group, programme.weight, programme.n_blocks, programme.tol
