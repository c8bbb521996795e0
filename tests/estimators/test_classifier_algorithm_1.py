"""The paper's Algorithm 1, line by line in plain NumPy, against the estimator with the settings that make it that."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification, make_multilabel_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import ShuffleSplit, StratifiedShuffleSplit
from sklearn.naive_bayes import GaussianNB

import metricwise as mw
from profiles import first

N_ITERATIONS = 60  # kappa N, as printed, is never needed: a double has fewer bits


def split(Y, seed):
    """Line 1: S1 and S2 of sizes ceil(N/2) and floor(N/2)."""
    n, classes = len(Y), np.unique(Y, axis=0, return_inverse=True)[1].reshape(-1)
    stratified = np.bincount(classes).min() >= 2 and n // 2 >= classes.max() + 1
    splitter = StratifiedShuffleSplit if stratified else ShuffleSplit
    return next(splitter(1, test_size=n // 2, random_state=seed).split(np.zeros(n), classes))


def probabilities(estimator, X, Y, first, new):
    """Line 1: eta estimated on S1, for each output; (rows, M, K)."""
    models = [clone(estimator).fit(X[first], Y[first, m]) for m in range(Y.shape[1])]
    return np.stack([model.predict_proba(new) for model in models], axis=1)


def decide(L, eta):
    """Line 6: g_m(x) = argmin_k L_k^T eta^m(x), ties to the lowest k."""
    return np.argmin(np.einsum("nmi,ik->nmk", eta, L), axis=2)


def micro(A, B, true, predicted):
    """The micro-averaged utility on the sample: one confusion matrix of all outputs."""
    C = np.zeros(A.shape)
    np.add.at(C, (true, predicted), 1)
    C /= true.size
    return np.sum(A * C) / np.sum(B * C)


def algorithm_1(A, B, eta, true):
    alpha, beta = 0.0, 1.0  # line 2
    h = 0.0 * B - A  # line 2: any h^0; the loss of gamma = 0
    for _ in range(N_ITERATIONS):  # line 3
        gamma = (alpha + beta) / 2  # line 4
        L = gamma * B - A  # line 5; scaling and shifting change no argmin
        g = decide(L, eta)  # line 6
        if micro(A, B, true, g) >= gamma:  # line 7
            alpha, h = gamma, L  # line 8
        else:
            beta = gamma  # line 9
    return h  # the output: the last rule accepted


def micro_f1(k):
    """The paper's micro-F1, the first class the negative one: 2 sum_{i>0} C_ii / (2 - sum_j C_0j - sum_i C_i0)."""
    A, B = np.diag([0.0] + [2.0] * (k - 1)), np.full((k, k), 2.0)
    B[0, :] -= 1
    B[:, 0] -= 1
    return A, B


def ordinal(k):
    i, j = np.indices((k, k))
    return 1 - np.abs(i - j) / (k - 1), np.ones((k, k))


def binary(seed):
    X, y = make_classification(301, weights=[0.8], flip_y=0.1, random_state=seed)
    return X, y


def multiclass(seed):
    return make_classification(301, n_informative=4, n_classes=4, weights=[0.5, 0.3, 0.15], random_state=seed)


def multilabel(seed):
    return make_multilabel_classification(301, n_classes=4, n_labels=1, random_state=seed)


def multioutput(seed):
    X, Y = make_multilabel_classification(301, n_classes=6, random_state=seed)
    return X, Y[:, :3] + Y[:, 3:]


@pytest.mark.parametrize("seed", first(1, range(2)))
@pytest.mark.parametrize("estimator", [LogisticRegression(max_iter=300), GaussianNB()])
@pytest.mark.parametrize(("name", "matrices"), [("micro_f1", micro_f1), ("ordinal", ordinal)])
@pytest.mark.parametrize("data", [binary, multiclass, multilabel, multioutput])
def test_it_is_the_papers_algorithm(data, name, matrices, estimator, seed):
    X, y = data(seed)
    Y = y.reshape(len(y), -1)
    K = Y.max() + 1
    first, second = split(Y, seed)
    assert (len(first), len(second)) == (151, 150)
    eta = probabilities(estimator, X, Y, first, X)
    h = algorithm_1(*matrices(K), eta[second], Y[second])

    model = mw.MetricOptimalClassifierCV(
        estimator,
        metric=name,
        cv=0.5,
        refit=False,
        random_state=seed,
        strategy=mw.Strategy(confusion="labels", recalibrate=False, solver="bisection"),
    ).fit(X, y)

    np.testing.assert_allclose(np.stack(as_list(model.predict_proba(X)), axis=1), eta)
    np.testing.assert_array_equal(model.predict(X).reshape(len(X), -1), decide(h, eta))
    np.testing.assert_allclose(model.best_score_, micro(*matrices(K), Y[second], decide(h, eta[second])))


def as_list(proba):
    return proba if isinstance(proba, list) else [proba]
