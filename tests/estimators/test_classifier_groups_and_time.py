"""Rows that belong together, by group or in time: what the estimator hands on to whatever judges its rule."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, TimeSeriesSplit, cross_val_predict, cross_validate
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import metricwise as mw
from metricwise.api.optimization import find_rule

OURS = mw.MetricOptimalClassifierCV


@pytest.fixture(scope="module")
def clustered():
    """Forty groups of ten rows that are alike in what X does not show."""
    rng = np.random.default_rng(3)
    groups = np.repeat(np.arange(40), 10)
    hidden = rng.normal(size=40)[groups]
    X = rng.normal(size=(400, 3))
    y = (X[:, 0] + 1.5 * hidden + 0.3 * rng.normal(size=400) > 1.2).astype(int)
    order = rng.permutation(400)
    return X[order], y[order], groups[order]


def same(solution, other):
    """Whether two solutions are the same, the promises of new rows among them."""
    assert solution.rule == other.rule
    assert solution.gain == other.gain
    assert solution.value_on_new_rows == other.value_on_new_rows
    np.testing.assert_array_equal(solution.threshold_range, other.threshold_range)


def out_of_fold(model, X, y, **options):
    return cross_val_predict(model, X, y, method="predict_proba", **options)


# ------------------------------------------------------------------------------------------------------- groups


@pytest.mark.parametrize("named", [False, True])
def test_groups_reach_whatever_judges_the_rule(clustered, named):
    X, y, groups = clustered
    given = pd.Series([f"patient {g:02}" for g in groups]) if named else groups
    model = OURS(GaussianNB(), metric="f1", cv=GroupKFold(4)).fit(X, y, groups=given)
    proba = out_of_fold(GaussianNB(), X, y, cv=GroupKFold(4), groups=groups)
    same(model.solution_, mw.optimize(proba, y, "f1", groups=groups))
    # They make a difference: rows of a group are alike, and as independent rows they promise too much.
    alone = mw.optimize(proba, y, "f1").value_on_new_rows
    judged = model.solution_.value_on_new_rows
    assert judged.high - judged.low > 1.3 * (alone.high - alone.low)


@pytest.mark.parametrize("routing", [False, True])
def test_a_fitted_estimator_needs_no_splitter_for_groups(clustered, routing):
    X, y, groups = clustered
    fitted = LogisticRegression().fit(X[:100], y[:100])
    X, y, groups = X[100:], y[100:], groups[100:]
    expected = mw.optimize(fitted.predict_proba(X), y, "f1", groups=groups)
    with sklearn.config_context(enable_metadata_routing=routing):
        for settings in (
            {"estimator": fitted, "cv": "prefit"},
            {"estimator": FrozenEstimator(fitted)},
            {"estimator": FrozenEstimator(fitted), "cv": 3},
            {"estimator": FrozenEstimator(fitted), "cv": GroupKFold(2)},
        ):
            same(OURS(metric="f1", **settings).fit(X, y, groups=groups).solution_, expected)
            with pytest.raises(ValueError, match=r"^MetricOptimalClassifierCV: groups must have shape \(300,\)"):
                OURS(**settings).fit(X, y, groups=groups[:-1])


def test_groups_of_rows_that_are_never_tested(clustered):
    """One split: the rule is fitted to the tested rows, with their groups."""
    X, y, groups = clustered
    held_out = groups >= 15
    split = [(np.flatnonzero(~held_out), np.flatnonzero(held_out))]

    class Ready:
        def split(self, X, y=None, groups=None):
            return iter(split)

        def get_n_splits(self, X=None, y=None, groups=None):
            return 1

    model = OURS(GaussianNB(), metric="f1", cv=Ready()).fit(X, y, groups=groups)
    proba = GaussianNB().fit(X[~held_out], y[~held_out]).predict_proba(X[held_out])
    same(model.solution_, mw.optimize(proba, y[held_out], "f1", groups=groups[held_out]))


def test_pipelines_route_groups_to_a_fitted_estimator(clustered):
    X, y, groups = clustered
    fitted = LogisticRegression().fit(StandardScaler().fit_transform(X), y)
    expected = mw.optimize(fitted.predict_proba(StandardScaler().fit_transform(X)), y, "f1", groups=groups)
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(StandardScaler(), OURS(FrozenEstimator(fitted), metric="f1"))
        same(pipeline.fit(X, y, groups=groups)[-1].solution_, expected)


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        (np.zeros(400), "groups must contain at least two groups"),
        ([None] * 400, "groups must be known for every row"),
        (np.arange(399), r"groups must have shape \(400,\), one per row, got \(399,\)"),
    ],
)
def test_groups_are_checked_before_anything_is_fitted(clustered, groups, words):
    X, y, _ = clustered
    with pytest.raises(ValueError, match=f"^MetricOptimalClassifierCV: {words}"):
        OURS(NeverFitted(), cv=GroupKFold(2)).fit(X, y, groups=groups)


class NeverFitted(ClassifierMixin, BaseEstimator):
    """An estimator whose fit fails the test."""

    def fit(self, X, y):
        raise AssertionError("fitted")

    def predict_proba(self, X):
        raise AssertionError("asked")


# --------------------------------------------------------------------------------------------------------- time


@pytest.fixture(scope="module")
def drifting():
    """Rows in time, neighbours of which share what X does not show; their order in the arrays is another."""
    rng = np.random.default_rng(1)
    hidden = np.zeros(400)
    for t in range(1, 400):
        hidden[t] = 0.9 * hidden[t - 1] + 0.44 * rng.normal()
    X = rng.normal(size=(400, 3))
    y = (X[:, 0] + 1.5 * hidden + 0.3 * rng.normal(size=400) > 1).astype(int)
    return X, y, np.arange(400)


@pytest.mark.parametrize("kind", ["numbers", "dates", "zoned"])
def test_time_reaches_whatever_judges_the_rule(drifting, kind):
    X, y, time = drifting
    at = np.random.default_rng(0).permutation(400)
    given = time[at]
    if kind != "numbers":
        given = pd.Series(pd.to_datetime("2024-01-01", utc=kind == "zoned" or None) + pd.to_timedelta(given, "h"))
    model = OURS(GaussianNB(), metric="f1").fit(X[at], y[at], groups=mw.InTime(given))
    proba = out_of_fold(GaussianNB(), X[at], y[at], cv=5)
    same(model.solution_, mw.optimize(proba, y[at], "f1", groups=mw.InTime(time[at])))
    assert model.solution_.value_on_new_rows != mw.optimize(proba, y[at], "f1").value_on_new_rows


def test_rows_that_a_time_series_split_never_tests_take_no_part(drifting):
    X, y, time = drifting
    cv = TimeSeriesSplit(4)
    model = OURS(GaussianNB(), metric="f1", cv=cv).fit(X, y, groups=mw.InTime(time))
    parts = [(test, GaussianNB().fit(X[train], y[train]).predict_proba(X[test])) for train, test in cv.split(X)]
    rows = np.concatenate([test for test, _ in parts])
    assert 0 < len(rows) < 400
    expected = mw.optimize(np.concatenate([proba for _, proba in parts]), y[rows], "f1", groups=mw.InTime(time[rows]))
    same(model.solution_, expected)


class RemembersWeights(GaussianNB):
    """An estimator that remembers the weights it was given."""

    def fit(self, X, y, sample_weight=None):
        self.weight_ = sample_weight
        return super().fit(X, y, sample_weight)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("cv", [None, TimeSeriesSplit(4), "prefit"])
def test_a_half_life_is_for_the_rule_alone(drifting, cv, weighted):
    X, y, time = drifting
    weight = 1.0 + time % 2 if weighted else None
    days = np.datetime64("2024-01-01") + time
    estimator = RemembersWeights().fit(X, y) if cv == "prefit" else RemembersWeights()
    options = {"metric": "f1", "cv": cv, "response": "predict_proba"}
    model = OURS(estimator, **options).fit(X, y, weight, groups=mw.InTime(days, half_life="150d"))
    plain = OURS(estimator, **options).fit(X, y, weight, groups=mw.InTime(days))
    if cv != "prefit":
        assert model.estimator_.weight_ is weight or np.array_equal(model.estimator_.weight_, weight)
    np.testing.assert_array_equal(model.predict_proba(X), plain.predict_proba(X))
    rows, proba = np.arange(400), estimator.predict_proba(X) if cv == "prefit" else None
    if cv is not None and cv != "prefit":
        parts = list(cv.split(X))
        rows = np.concatenate([test for _, test in parts])
        models = [GaussianNB().fit(X[i], y[i], None if weight is None else weight[i]) for i, _ in parts]
        proba = np.concatenate([m.predict_proba(X[test]) for m, (_, test) in zip(models, parts, strict=True)])
    elif cv is None:
        params = {} if weight is None else {"params": {"sample_weight": weight}}
        proba = cross_val_predict(GaussianNB(), X, y, cv=5, method="predict_proba", **params)
    decayed = 0.5 ** ((399 - time[rows]) / 150) * (1 if weight is None else weight[rows])
    expected = mw.optimize(proba, y[rows], "f1", sample_weight=decayed, groups=mw.InTime(time[rows]))
    assert model.solution_.value == pytest.approx(expected.value, abs=1e-12)
    assert model.rule_.thresholds == pytest.approx(expected.rule.thresholds, rel=1e-9)
    n_effective = decayed.sum() ** 2 / (decayed**2).sum()
    assert f"the effective number of rows is {n_effective:.0f} of {len(rows)}." in model.solution_.status


class WantsTime(GaussianNB):
    """An estimator whose fit takes time, and remembers how many rows had one."""

    def fit(self, X, y, sample_weight=None, time=None):
        self.seen_ = None if time is None else len(time)
        return super().fit(X, y, sample_weight)


def test_time_is_routed(drifting):
    X, y, time = drifting
    with sklearn.config_context(enable_metadata_routing=True):
        asks = WantsTime().set_fit_request(time=True)
        assert OURS(asks).fit(X, y, groups=mw.InTime(time), time=time).estimator_.seen_ == 400
        assert OURS(asks).fit(X, y, groups=mw.InTime(time)).estimator_.seen_ is None
        with pytest.raises(ValueError, match="are passed but are not explicitly set as requested"):
            OURS(WantsTime()).fit(X, y, time=time)
        # Whoever holds the estimator hands the times on: the rule asks for groups.
        model = OURS(GaussianNB(), metric="f1")
        found = cross_validate(
            model, X, y, cv=TimeSeriesSplit(2), params={"groups": mw.InTime(time)}, return_estimator=True
        )
        train = next(iter(TimeSeriesSplit(2).split(X)))[0]
        by_hand = OURS(GaussianNB(), metric="f1").fit(X[train], y[train], groups=mw.InTime(time[train]))
        same(found["estimator"][0].solution_, by_hand.solution_)


@pytest.mark.parametrize(
    ("time", "words"),
    [
        (["noon"] * 400, "time must hold numbers or dates, got 'noon'; convert text to dates"),
        (np.full(400, np.nan), "time must be known for every row, got a missing value in row 0"),
        (np.zeros(400), "time must hold at least two different times"),
        (np.arange(3), r"time must have shape \(400,\), one per row, got \(3,\)"),
    ],
)
def test_time_is_checked_before_anything_is_fitted(drifting, time, words):
    X, y, _ = drifting
    with pytest.raises(ValueError, match=f"^MetricOptimalClassifierCV: {words}"):
        OURS(NeverFitted()).fit(X, y, groups=mw.InTime(time))


@pytest.mark.parametrize(
    ("weight", "half_life", "words"),
    [
        (None, "30d", "half_life must be a number if times are numbers, got 30 days"),
        (mw.Frequencies(np.ones(400)), 30, "half_life gives fractions of rows, but Frequencies count whole ones"),
    ],
)
def test_a_half_life_is_checked_before_anything_is_fitted(drifting, weight, half_life, words):
    X, y, time = drifting
    with pytest.raises(ValueError, match=f"^MetricOptimalClassifierCV: {words}"):
        OURS(NeverFitted()).fit(X, y, weight, groups=mw.InTime(time, half_life=half_life))


def test_time_is_refused_unless_the_estimator_takes_it(drifting):
    X, y, time = drifting
    with pytest.raises(
        TypeError, match=r"^MetricOptimalClassifierCV.fit: time= is not a parameter; pass groups=mw.InT"
    ):
        OURS(NeverFitted()).fit(X, y, time=time)
    assert OURS(WantsTime()).fit(X, y, time=time).estimator_.seen_ == 400


# -------------------------------------------------------------------------------------------- weights and progress


def test_weights_that_count_rows(clustered):
    X, y, _ = clustered
    weight = np.random.default_rng(0).integers(1, 6, len(y))
    fitted = LogisticRegression().fit(X, y)
    frozen = FrozenEstimator(fitted)
    model = OURS(frozen, metric="f1").fit(X, y, sample_weight=mw.Frequencies(weight))
    same(
        model.solution_,
        mw.optimize(fitted.predict_proba(X), y, "f1", sample_weight=mw.Frequencies(weight)),
    )
    other = OURS(frozen, metric="f1").fit(X, y, sample_weight=weight).solution_.value_on_new_rows
    own = model.solution_.value_on_new_rows
    assert own.high - own.low < 0.8 * (other.high - other.low)
    with pytest.raises(ValueError, match=r"^MetricOptimalClassifierCV: sample_weight must hold whole numbers"):
        OURS(NeverFitted()).fit(X, y, sample_weight=mw.Frequencies(weight / 2))


@pytest.mark.parametrize(("verbose", "told"), [(0, None), (False, None), (1, True), (3, True)])
def test_verbose_is_handed_on(clustered, monkeypatch, verbose, told):
    X, y, _ = clustered
    heard = []

    def spy(*args):
        heard.append(args[-1])
        return find_rule(*args)

    monkeypatch.setattr("metricwise.estimators.classifier.find_rule", spy)
    OURS(FrozenEstimator(GaussianNB().fit(X, y)), verbose=verbose).fit(X, y)
    assert heard == [told]
