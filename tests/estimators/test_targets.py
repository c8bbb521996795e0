"""y is read once: what the estimator has read is what the rule is fitted to."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression

import metricwise as mw
from metricwise.data import labels


@pytest.fixture
def readings(monkeypatch):
    """A list that grows with every table of labels that is read, by its shape."""
    seen, plain = [], labels.read_table

    def watched(y, *args):
        seen.append(np.shape(y))
        return plain(y, *args)

    for name in ("labels", "arrays", "column_classes"):
        monkeypatch.setattr(f"metricwise.data.{name}.read_table", watched)
    return seen


class Indicator(sp.csr_matrix):
    """Counts how often it is made dense."""

    dense = 0

    def toarray(self, *args, **options):
        type(self).dense += 1
        return super().toarray(*args, **options)

    def todense(self, *args, **options):
        type(self).dense += 1
        return super().todense(*args, **options)


def draw(n=120):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 4))
    Y = (X[:, :3] + rng.normal(size=(n, 3)) > 0.8).astype(int)
    return X, Y


def whole(readings, n=120):
    return [shape for shape in readings if shape and shape[0] == n]


def test_of_one_output(readings):
    X, Y = draw()
    mw.MetricOptimalClassifierCV(LogisticRegression(), metric="f1").fit(X, Y[:, 0])
    assert len(whole(readings)) == 1


def test_of_several_outputs_with_names(readings):
    X, Y = draw()
    y = pd.DataFrame(Y, columns=["a", "b", "c"])
    model = mw.MetricOptimalClassifierCV(LogisticRegression(), metric="f1", average="macro").fit(X, y)
    assert len(whole(readings)) == 1
    assert model.rule_.output_names == ("a", "b", "c")


def test_sparse_indicators_are_made_dense_once():
    X, Y = draw()
    sparse, Indicator.dense = Indicator(Y), 0
    model = mw.MetricOptimalClassifierCV(LogisticRegression(), metric="f1", average="micro").fit(X, sparse)
    assert Indicator.dense <= 1
    dense = mw.MetricOptimalClassifierCV(LogisticRegression(), metric="f1", average="micro").fit(X, Y)
    assert model.rule_ == dense.rule_
    assert model.best_score_ == dense.best_score_
