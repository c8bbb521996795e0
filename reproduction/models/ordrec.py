"""OrdRec: class probabilities of ordinal ratings from factors and thresholds of each user's own.

Owns the estimator: ids, starting values, early stopping, cold users and items.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.optimize import minimize
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from .ordinal_likelihood import Design, Penalty, Shapes, class_probabilities, objective, scores, thresholds

__all__ = ["OrdRec"]

FloatArray = NDArray[np.float64]


class OrdRec(ClassifierMixin, BaseEstimator):
    """Ordinal factor model of ratings.

    User u gives item i at most r stars with probability ``s(t[u, r] - y[u, i])``, where s is the logistic function,
    the thresholds t of each user are ordered, and the score is the item's bias and the match of factors,
    ``y[u, i] = b[i] + q[i] . (p[u] + sum_j x[j] / sqrt(n[u]))`` with j over the n[u] items that u rated in training.
    The thresholds take the place of a bias of the user. What a user or an item adds to what is common is shrunk
    towards nothing, so that a cold user has the common thresholds, and a cold item the mean score of rare items (a
    slope on the logarithm of the number of ratings is fitted too). Regularised maximum likelihood by L-BFGS, stopped
    early by the likelihood of a validation part and then fitted again to all rows with as many steps.

    Parameters
    ----------
    n_factors : int, default=20
        0 leaves biases and thresholds.
    threshold_penalty, bias_penalty, factor_penalty : float
        Weights of the squares of what users add to the thresholds, of item biases and of factors.
    max_iter : int, default=400
        Steps of L-BFGS.
    validation_fraction : float, default=0.1
        Share of the rows that decides when to stop; 0 takes all of `max_iter` steps.
    patience : int, default=25
        Steps without a better validation likelihood after which to stop.
    random_state : int, default=0
        Seed of the validation part and of the starting factors.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        Ratings, in order.
    n_iter_ : int
        Steps taken.
    validation_ : ndarray or None
        Rows of the validation part.
    validation_proba_ : ndarray of shape (n_validation, K), or None
        Their probabilities by the model that has not seen them.

    References
    ----------
    .. [1] Koren, Sill (2011), "OrdRec: An Ordinal Model for Predicting Personalized Item Rating Distributions",
           RecSys.

    Examples
    --------
    >>> import numpy as np
    >>> from reproduction.models import OrdRec
    >>> rng = np.random.default_rng(0)
    >>> pairs = rng.integers(0, 20, (400, 2))
    >>> stars = np.clip(np.round(3 + (pairs[:, 1] - 10) / 5 + rng.normal(size=400)), 1, 5).astype(int)
    >>> model = OrdRec(n_factors=2).fit(pairs, stars)
    >>> good, bad = model.predict_proba([[0, 19], [0, 0]]) @ model.classes_
    >>> bool(good > bad)
    True
    """

    def __init__(
        self,
        n_factors: int = 20,
        *,
        threshold_penalty: float = 6.0,
        bias_penalty: float = 1.0,
        factor_penalty: float = 10.0,
        max_iter: int = 400,
        validation_fraction: float = 0.1,
        patience: int = 25,
        random_state: int = 0,
    ) -> None:
        self.n_factors = n_factors
        self.threshold_penalty = threshold_penalty
        self.bias_penalty = bias_penalty
        self.factor_penalty = factor_penalty
        self.max_iter = max_iter
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike) -> OrdRec:
        """Fit the model.

        Parameters
        ----------
        X : array-like of shape (n, 2)
            User and item of each rating; any ids.
        y : array-like of shape (n,)
            Ratings, of two or more sorted classes.

        Returns
        -------
        self
        """
        pairs, labels = _read_pairs(X), np.asarray(y)
        self._check(pairs, labels)
        self.users_, user = np.unique(pairs[:, 0], return_inverse=True)
        self.items_, item = np.unique(pairs[:, 1], return_inverse=True)
        self.classes_, rating = np.unique(labels, return_inverse=True)
        self._shapes = Shapes(len(self.users_), len(self.items_), len(self.classes_), self.n_factors)
        rng = np.random.default_rng(self.random_state)
        start = self._start(rating, rng)
        steps = self._choose_steps(user, item, rating, start, rng)
        self._design = Design.of(user, item, rating, self._shapes)
        self.coef_, self.n_iter_ = self._minimize(self._design, start, steps)
        self.n_features_in_ = 2
        return self

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Return class probabilities.

        Parameters
        ----------
        X : array-like of shape (n, 2)
            Users and items; cold ones are welcome.

        Returns
        -------
        ndarray of shape (n, K)
        """
        check_is_fitted(self)
        pairs = _read_pairs(X)
        return self._proba(self.coef_, self._design, _code(pairs[:, 0], self.users_), _code(pairs[:, 1], self.items_))

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the most probable rating of each pair."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def _check(self, pairs: NDArray[Any], labels: NDArray[Any]) -> None:
        if labels.shape != (len(pairs),):
            raise ValueError(f"OrdRec.fit: y must have shape ({len(pairs)},), got {labels.shape}.")
        if len(np.unique(labels)) < 2:
            raise ValueError("OrdRec.fit: y must have at least two classes, got one.")
        if not 0 <= self.validation_fraction < 1:
            raise ValueError(f"OrdRec: validation_fraction must be in [0, 1), got {self.validation_fraction!r}.")
        if self.n_factors != int(self.n_factors) or self.n_factors < 0:
            raise ValueError(f"OrdRec: n_factors must be an integer of at least 0, got {self.n_factors!r}.")

    @property
    def _penalty(self) -> Penalty:
        return Penalty(self.threshold_penalty, self.bias_penalty, self.factor_penalty)

    def _start(self, rating: NDArray[np.intp], rng: np.random.Generator) -> FloatArray:
        """Return common thresholds that give the class shares, and small random factors."""
        vector = np.zeros(self._shapes.size)
        blocks = self._shapes.split(vector)
        below = np.cumsum(np.bincount(rating, minlength=self._shapes.n_classes))[:-1] / len(rating)
        cuts = np.log(below / (1 - below))
        blocks["common"][:] = np.concatenate([cuts[:1], np.log(np.diff(cuts))])
        for name in ("user", "item", "implicit"):
            blocks[name][:] = 0.1 * rng.normal(size=blocks[name].shape)
        return vector

    def _choose_steps(self, user: Any, item: Any, rating: Any, start: FloatArray, rng: np.random.Generator) -> int:
        n = len(rating)
        held_out = np.sort(rng.permutation(n)[: round(self.validation_fraction * n)])
        self.validation_: Any = held_out if len(held_out) else None
        self.validation_proba_: FloatArray | None = None
        if not len(held_out):
            return self.max_iter
        rest = np.setdiff1d(np.arange(n), held_out)
        design = Design.of(user[rest], item[rest], rating[rest], self._shapes)
        watch = _Watch(self, design, user[held_out], item[held_out], rating[held_out])
        self._minimize(design, start, self.max_iter, watch)
        self.validation_proba_ = watch.best_proba
        return max(watch.best_step, 1)

    def _minimize(self, design: Design, start: FloatArray, steps: int, callback: Any = None) -> tuple[FloatArray, int]:
        found = minimize(
            objective,
            start,
            args=(design, self._shapes, self._penalty),
            jac=True,
            method="L-BFGS-B",
            callback=callback,
            options={"maxiter": steps, "maxcor": 10},
        )
        return found.x, int(found.nit)

    def _proba(self, vector: FloatArray, design: Design, user: Any, item: Any) -> FloatArray:
        """Return probabilities of codes, of which -1 is cold."""
        blocks = {name: _with_cold(name, block) for name, block in self._shapes.split(vector).items()}
        cold = _with_cold_item(design)
        score = scores(blocks, cold, user, item)
        ordered, _ = thresholds(blocks, user)
        return class_probabilities(score, ordered)


class _Watch:
    """Follow the likelihood of the validation part, keep the best step, stop after `patience` worse ones."""

    def __init__(self, model: OrdRec, design: Design, user: Any, item: Any, rating: Any) -> None:
        self.model, self.design, self.user, self.item, self.rating = model, design, user, item, rating
        self.step = self.best_step = 0
        self.best = np.inf
        self.best_proba: FloatArray | None = None

    def __call__(self, intermediate_result: Any) -> None:
        self.step += 1
        proba = self.model._proba(intermediate_result.x, self.design, self.user, self.item)
        loss = -float(np.mean(np.log(np.maximum(proba[np.arange(len(proba)), self.rating], 1e-12))))
        if loss < self.best:
            self.best, self.best_step, self.best_proba = loss, self.step, proba
        elif self.step - self.best_step >= self.model.patience:
            raise StopIteration


def _with_cold(name: str, block: FloatArray) -> FloatArray:
    """Add the row of a cold user or item at the end, where code -1 finds it: it adds nothing."""
    if name in ("common", "popularity"):
        return block
    return np.concatenate([block, np.zeros_like(block[:1])])


def _with_cold_item(design: Design) -> Design:
    """Give a cold item the popularity of no rating, and a cold user no rated item."""
    shift = np.log1p(design.by_item[[0]].sum()) - design.popularity[0]
    rated = sparse.block_diag([design.rated, sparse.csr_array((1, 1))], format="csr")
    return replace(design, popularity=np.append(design.popularity, -shift), rated=rated)


def _code(values: NDArray[Any], known: NDArray[Any]) -> NDArray[np.intp]:
    """Return positions in a sorted array, -1 for what is not in it."""
    place = np.minimum(np.searchsorted(known, values), len(known) - 1)
    return np.where(known[place] == values, place, -1)


def _read_pairs(X: ArrayLike) -> NDArray[Any]:
    pairs = np.asarray(X)
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        raise ValueError(f"OrdRec: X must have shape (n, 2), user and item of each rating, got {pairs.shape}.")
    return pairs
