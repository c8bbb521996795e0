"""OrdRec: its gradient, its probabilities, and users and items it has not seen."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from reproduction.models import OrdRec
from reproduction.models.ordinal_likelihood import Design, Penalty, Shapes, objective


def ratings(n=1500, n_users=40, n_items=30, seed=0):
    rng = np.random.default_rng(seed)
    pairs = np.column_stack([rng.integers(0, n_users, n), rng.integers(0, n_items, n)])
    quality, mood = rng.normal(size=n_items), rng.normal(size=n_users)
    score = quality[pairs[:, 1]] + 0.5 * mood[pairs[:, 0]] + 0.7 * rng.normal(size=n)
    return pairs, np.clip(np.round(3 + score), 1, 5).astype(int)


@pytest.mark.parametrize("n_factors", [0, 3])
def test_gradient_is_that_of_finite_differences(n_factors):
    rng = np.random.default_rng(1)
    shapes = Shapes(6, 5, 4, n_factors)
    user, item, rating = rng.integers(0, 6, 60), rng.integers(0, 5, 60), rng.integers(0, 4, 60)
    design = Design.of(user, item, rating, shapes)
    penalty = Penalty(0.3, 0.2, 0.1)
    vector = 0.5 * rng.normal(size=shapes.size)
    _, gradient = objective(vector, design, shapes, penalty)
    step = 1e-6
    for i in range(shapes.size):
        up, down = vector.copy(), vector.copy()
        up[i] += step
        down[i] -= step
        rise = objective(up, design, shapes, penalty)[0] - objective(down, design, shapes, penalty)[0]
        assert gradient[i] == pytest.approx(rise / (2 * step), abs=1e-7)


def test_probabilities():
    pairs, stars = ratings()
    model = OrdRec(n_factors=2).fit(pairs[:1000], stars[:1000])
    proba = model.predict_proba(pairs[1000:])
    assert proba.shape == (500, 5)
    assert (proba >= 0).all()
    assert np.allclose(proba.sum(axis=1), 1)
    assert np.array_equal(model.predict(pairs[1000:]), model.classes_[proba.argmax(axis=1)])
    shares = np.bincount(stars[:1000], minlength=6)[1:] / 1000
    rows = np.arange(500)
    loss = -np.log(proba[rows, stars[1000:] - 1]).mean()
    assert loss < -np.log(shares[stars[1000:] - 1]).mean() - 0.1


def test_cold_users_and_items():
    pairs, stars = ratings()
    model = OrdRec(n_factors=2).fit(pairs, stars)
    cold = model.predict_proba([[999, 0], [0, 999], [999, 999]])
    assert np.isfinite(cold).all()
    assert np.allclose(cold.sum(axis=1), 1)
    assert not np.allclose(cold[0], cold[2])  # a known item still counts
    assert not np.allclose(cold[1], cold[2])  # so does a known user


def test_ids_may_be_anything():
    pairs, stars = ratings(600)
    names = np.array([[f"user{u}", f"film{i}"] for u, i in pairs])
    by_name = OrdRec(n_factors=0).fit(names, stars)
    assert by_name.predict_proba([["user3", "film4"], ["nobody", "film4"]]).shape == (2, 5)


def test_same_seed_same_model():
    pairs, stars = ratings(600)
    model = OrdRec(n_factors=2, random_state=3)
    first = model.fit(pairs, stars).predict_proba(pairs)
    assert np.array_equal(first, clone(model).fit(pairs, stars).predict_proba(pairs))
    assert not np.array_equal(first, OrdRec(n_factors=2, random_state=4).fit(pairs, stars).predict_proba(pairs))


def test_validation_part():
    pairs, stars = ratings(600)
    model = OrdRec(n_factors=2, validation_fraction=0.2, max_iter=40).fit(pairs, stars)
    assert len(model.validation_) == 120
    assert model.validation_proba_.shape == (120, 5)
    assert 1 <= model.n_iter_ <= 40
    without = OrdRec(n_factors=2, validation_fraction=0, max_iter=5).fit(pairs, stars)
    assert without.validation_ is None
    assert without.n_iter_ == 5


def test_bad_input_is_refused():
    pairs, stars = ratings(100)
    with pytest.raises(ValueError, match=r"X must have shape \(n, 2\)"):
        OrdRec().fit(pairs[:, :1], stars)
    with pytest.raises(ValueError, match=r"y must have shape \(100,\), got \(99,\)"):
        OrdRec().fit(pairs, stars[1:])
    with pytest.raises(ValueError, match="at least two classes, got one"):
        OrdRec().fit(pairs, np.ones(100))
    with pytest.raises(ValueError, match=r"validation_fraction must be in \[0, 1\), got 1"):
        OrdRec(validation_fraction=1).fit(pairs, stars)
    with pytest.raises(ValueError, match="n_factors must be an integer of at least 0, got -1"):
        OrdRec(n_factors=-1).fit(pairs, stars)
