"""Folds: groups that are kept together or refused, and splits of every kind."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import make_classification, make_multilabel_classification
from sklearn.model_selection import (
    GroupKFold,
    GroupShuffleSplit,
    KFold,
    LeaveOneGroupOut,
    LeaveOneOut,
    LeavePGroupsOut,
    PredefinedSplit,
    RepeatedKFold,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedGroupKFold,
    StratifiedKFold,
    StratifiedShuffleSplit,
    TimeSeriesSplit,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

import metricwise as mw
from metricwise.estimators._folds import make_splits
from metricwise.estimators._targets import read_target

LABELS = {"confusion": "labels", "recalibrate": False}
BOTH = [mw.MetricOptimalClassifierCV, mw.MetricWeightedClassifier]


@pytest.fixture(scope="module")
def data():
    return make_classification(240, n_informative=4, n_classes=3, weights=[0.6, 0.3], random_state=0)


@pytest.fixture(scope="module")
def groups():
    return np.random.default_rng(0).integers(0, 12, 240)


# ------------------------------------------------------------------------------------------------------- groups


class TakesGroups:
    """A splitter of somebody else, that takes groups."""

    def split(self, X, y=None, groups=None):
        return GroupKFold(3).split(X, y, groups)

    def get_n_splits(self, X=None, y=None, groups=None):
        return 3


class TakesAnything(TakesGroups):
    def split(self, X, y=None, **params):
        return GroupKFold(3).split(X, y, **params)


class TakesNone(TakesGroups):
    def split(self, X, y=None):
        return KFold(3).split(X)


class Renamed(KFold):
    """A splitter that is scikit-learn's in all but its name."""


class Overridden(KFold):
    """A splitter that builds upon scikit-learn's, and keeps groups together."""

    def split(self, X, y=None, groups=None):
        return GroupKFold(self.n_splits).split(X, y, groups)


HALVES = [(np.arange(120), np.arange(120, 240))]
IGNORANT = [
    (None, "cv=None"),
    (3, "cv=3"),
    (np.int64(3), "cv=.*3"),
    (0.5, "cv=0.5"),
    (HALVES, "splits that are made already"),
    (iter(HALVES), "splits that are made already"),
    *(
        (splitter, f"{type(splitter).__name__}, which does not")
        for splitter in (
            KFold(3),
            StratifiedKFold(3),
            RepeatedKFold(n_splits=2),
            RepeatedStratifiedKFold(n_splits=2),
            ShuffleSplit(2),
            StratifiedShuffleSplit(2),
            TimeSeriesSplit(2),
            LeaveOneOut(),
            PredefinedSplit(np.arange(240) % 3),
            TakesNone(),
            Renamed(3),
        )
    ),
]


@pytest.mark.parametrize("cls", BOTH)
@pytest.mark.parametrize("routing", [False, True])
@pytest.mark.parametrize(("cv", "found"), IGNORANT, ids=lambda value: type(value).__name__)
def test_groups_that_would_be_ignored_are_refused(data, groups, cls, routing, cv, found):
    X, y = data
    words = rf"^{cls.__name__}: groups needs a cv .* GroupKFold, StratifiedGroupKFold or LeaveOneGroupOut, got {found}"
    for given in (groups, groups.tolist(), pd.Series(groups)):
        with (
            sklearn.config_context(enable_metadata_routing=routing),
            pytest.raises(ValueError, match=words),
        ):
            cls(GaussianNB(), cv=cv).fit(X, y, groups=given)


@pytest.mark.parametrize("cls", BOTH)
@pytest.mark.parametrize(
    "cv",
    [
        GroupKFold(3),
        StratifiedGroupKFold(3),
        GroupShuffleSplit(2, random_state=0),
        LeaveOneGroupOut(),
        LeavePGroupsOut(1),
        TakesGroups(),
        TakesAnything(),
        Overridden(3),
    ],
    ids=lambda cv: type(cv).__name__,
)
def test_groups_reach_splitters_that_know_them(data, groups, cls, cv):
    X, y = data
    fixed = (
        {"strategy": mw.Strategy(**LABELS)} if cls is mw.MetricOptimalClassifierCV else {}
    )  # else groups decide more than folds
    model = cls(GaussianNB(), cv=cv, **fixed).fit(X, y, groups=groups)
    ready = cls(GaussianNB(), cv=list(cv.split(X, y, groups=groups)), **fixed).fit(X, y)
    assert model.best_score_ == ready.best_score_
    with sklearn.config_context(enable_metadata_routing=True):
        if not isinstance(cv, (TakesGroups, Overridden)):  # which request nothing
            routed = cls(GaussianNB(), cv=cv, **fixed).fit(X, y, groups=groups)
            assert routed.best_score_ == ready.best_score_


@pytest.mark.parametrize("cls", BOTH)
def test_no_groups_are_no_groups(data, cls):
    X, y = data
    assert cls(GaussianNB(), cv=2).fit(X, y, groups=None).best_score_ == cls(GaussianNB(), cv=2).fit(X, y).best_score_


def test_the_calibrator_of_a_fitted_estimator_needs_a_splitter_for_groups(data, groups):
    X, y = data
    fitted = GaussianNB().fit(X, y)
    with pytest.raises(ValueError, match=r"groups needs a cv .* got cv='prefit'"):
        mw.MetricOptimalClassifierCV(fitted, cv="prefit", calibration="sigmoid").fit(X, y, groups=groups)


class WantsGroups(ClassifierMixin, BaseEstimator):
    """An estimator whose fit takes groups, and remembers how many rows had one."""

    def fit(self, X, y, sample_weight=None, groups=None):
        self.seen_ = None if groups is None else len(groups)
        self.model_ = GaussianNB().fit(X, y, sample_weight)
        self.classes_ = self.model_.classes_
        return self

    def predict(self, X):
        return self.model_.predict(X)

    def predict_proba(self, X):
        return self.model_.predict_proba(X)


@pytest.mark.parametrize("cls", BOTH)
def test_routing_hands_groups_to_an_estimator_that_asks(data, groups, cls):
    X, y = data
    with sklearn.config_context(enable_metadata_routing=True):
        asks = WantsGroups().set_fit_request(groups=True)
        assert cls(asks, cv=2).fit(X, y, groups=groups).estimator_.seen_ >= len(y)  # or repeated
        refuses = WantsGroups().set_fit_request(groups=False)
        assert cls(refuses, cv=GroupKFold(2)).fit(X, y, groups=groups).estimator_.seen_ is None
        with pytest.raises(ValueError, match="groups needs a cv"):
            cls(refuses, cv=2).fit(X, y, groups=groups)


@pytest.mark.parametrize(
    "model",
    [mw.CostSensitiveClassifier(WantsGroups(), None), mw.MetricWeightedClassifier(WantsGroups(), cv=GroupKFold(2))],
    ids=lambda model: type(model).__name__,
)
def test_routing_is_kept_to_by_estimators_that_train(data, groups, model):
    X, y = data
    plain = clone(model).set_params(estimator=GaussianNB())
    weighted = clone(plain).fit(X, y, sample_weight=1.0 + y, **({"groups": groups} if hasattr(model, "cv") else {}))
    with sklearn.config_context(enable_metadata_routing=True):
        with pytest.raises(ValueError, match="are passed but are not explicitly set as requested"):
            clone(model).fit(X, y, groups=groups)
        with pytest.raises(TypeError, match="unexpected argument"):
            clone(plain).fit(X, y, nonsense=1)
        # Weights are the metric's and the loss's, whatever the estimator requests.
        routed = clone(plain).fit(X, y, sample_weight=1.0 + y, **({"groups": groups} if hasattr(model, "cv") else {}))
    np.testing.assert_array_equal(weighted.predict(X), routed.predict(X))


class Spy(ClassifierMixin, BaseEstimator):
    """A classifier that notes, for each fit, which rows it was given: the first column of X is their number."""

    fits: list = []  # noqa: RUF012  # clones share it

    def fit(self, X, y):
        self.fits.append(X[:, 0].astype(int))
        self.model_ = GaussianNB().fit(X[:, 1:], y)
        self.classes_ = self.model_.classes_
        return self

    def predict(self, X):
        return self.model_.predict(X[:, 1:])

    def predict_proba(self, X):
        return self.model_.predict_proba(X[:, 1:])


@pytest.mark.parametrize("several", [False, True])
def test_a_calibrator_keeps_groups_together(data, groups, several):
    """A calibrator calibrates on rows of groups that its model has not seen, so no model is fitted to all of them."""
    X, y = data
    numbered = np.column_stack([np.arange(len(y)), X])
    target = y
    if several:
        target = np.column_stack([y, y == 1]).astype(float)
        target[::7, 1] = np.nan
    Spy.fits.clear()
    model = mw.MetricOptimalClassifierCV(
        Spy(), average="macro", cv=GroupKFold(2), calibration="sigmoid", strategy=mw.Strategy(**LABELS)
    )
    model.fit(numbered, target, groups=groups)
    assert len(Spy.fits) > 9
    for rows in Spy.fits:
        together = np.isin(groups, groups[rows])
        assert len(rows) >= (0.75 if several else 1) * together.sum(), "some rows of a group are kept, others tested"
        assert not together.all()
    fitted = model.estimator_.estimators_ if several else [model.estimator_]
    assert all(one.cv.groups is None for one in fitted), "a fitted model holds no rows"


def test_a_calibrator_needs_two_groups(data):
    X, y = data
    model = mw.MetricOptimalClassifierCV(
        GaussianNB(), cv=GroupKFold(2), calibration="sigmoid", strategy=mw.Strategy(**LABELS)
    )
    with pytest.raises(ValueError, match="calibration needs training rows of at least two groups"):
        model.fit(X, y, groups=np.arange(len(y)) % 2)


# ------------------------------------------------------------------------------------------------------- splits


def mean_by_hand(model, X, y, splits):
    """The mean probability of each row by the models that did not see it, in float64."""
    total, count = np.zeros((len(y), len(np.unique(y)))), np.zeros(len(y))
    for train, test in splits:
        fitted = clone(model).fit(X[train], y[train])
        for row in set(np.asarray(test).tolist()):
            total[row] += fitted.predict_proba(X[[row]])[0]
            count[row] += 1
    rows = np.flatnonzero(count)
    return rows, total[rows] / count[rows, None]


class Single(GaussianNB):
    """Probabilities in float32."""

    def predict_proba(self, X):
        return super().predict_proba(X).astype(np.float32)


class Rounded(GaussianNB):
    """Probabilities that sum to 1 only to some thousandths."""

    def predict_proba(self, X):
        return super().predict_proba(X).round(3)


def twice_in_a_split(X, y):
    return [(train, np.r_[test, test[::3], test[:5]]) for train, test in KFold(3).split(X)]


def overlapping(X, y):
    return [(np.arange(160), np.arange(160, 240)), (np.arange(100), np.r_[200:240, 150:200, 200:205])]


@pytest.mark.parametrize(
    "model", [GaussianNB(), Single(), Rounded(), DecisionTreeClassifier(max_depth=3, random_state=0)], ids=repr
)
@pytest.mark.parametrize(
    "splits",
    [
        twice_in_a_split,
        overlapping,
        RepeatedKFold(n_splits=3, n_repeats=4, random_state=0).split,
        RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0).split,
        ShuffleSplit(4, test_size=0.3, random_state=0).split,
        TimeSeriesSplit(3).split,
    ],
)
def test_rows_that_are_tested_several_times_count_once_with_their_mean(data, model, splits):
    X, y = data
    splits = list(splits(X, y))
    found = mw.MetricOptimalClassifierCV(model, metric="g_mean", cv=splits, strategy=mw.Strategy(**LABELS)).fit(X, y)
    rows, proba = mean_by_hand(model, X, y, splits)
    wanted = mw.optimize(proba, y[rows], "g_mean", classes=[0, 1, 2], strategy=mw.Strategy(**LABELS))
    assert found.best_score_ == pytest.approx(wanted.value, abs=1e-12 if type(model) is not Single else 0.02)


@pytest.mark.parametrize("estimator", [KNeighborsClassifier(), DecisionTreeClassifier(max_depth=3, random_state=0)])
def test_several_outputs_that_are_tested_several_times(estimator):
    X, Y = make_multilabel_classification(150, n_classes=3, random_state=0)
    repeated = [(train, np.r_[test, test]) for train, test in KFold(3).split(X)]
    settings = {"metric": "f1_macro", "strategy": mw.Strategy(**LABELS)}
    one = mw.MetricOptimalClassifierCV(estimator, cv=repeated, **settings).fit(X, Y)
    assert one.rule_ == mw.MetricOptimalClassifierCV(estimator, cv=KFold(3), **settings).fit(X, Y).rule_


@pytest.mark.parametrize("cls", BOTH)
def test_splits_may_be_masks_or_count_from_the_end(data, cls):
    X, y = data
    weight = np.where(np.arange(len(y)) % 5 == 0, 0.0, 1.0)
    late = np.arange(len(y)) >= 160
    wanted = cls(GaussianNB(), cv=[(np.flatnonzero(~late), np.flatnonzero(late))]).fit(X, y, sample_weight=weight)
    for split in ((~late, late), (np.arange(160) - 240, np.arange(-80, 0)), (list(range(160)), list(range(160, 240)))):
        found = cls(GaussianNB(), cv=[split]).fit(X, y, sample_weight=weight)
        assert found.best_score_ == wanted.best_score_


@pytest.mark.parametrize("cls", BOTH)
@pytest.mark.parametrize(
    ("splits", "words"),
    [
        ([], "cv must yield at least one split .* got none"),
        (
            [([0, 1, 2], [])],
            r"at least one row on each side .* a split that tests an array of float64 of shape \(0,\)",
        ),
        ([(np.zeros(240, bool), np.ones(240, bool))], r"a split that trains on an array of int64 of shape \(0,\)"),
        ([([0, 1, 2], [240])], "from 0 to 239, got a split that tests rows 240 to 240"),
        ([([0, -241], [1])], "from 0 to 239, got a split that trains on rows -241 to 0"),
        ([([0.0, 1.0], [2])], "a split that trains on an array of float64"),
        ([(np.ones(3, bool), [2])], "a split that trains on an array of bool"),
    ],
)
def test_splits_that_are_none_are_refused(data, cls, splits, words):
    with pytest.raises(ValueError, match=rf"^{cls.__name__}: cv must yield .*{words.removeprefix('cv must yield ')}"):
        cls(GaussianNB(), cv=splits).fit(*data)


def test_folds_are_partitions_where_cv_is_a_number(data):
    X, y = data
    for cv in (None, 2, 7):
        splits = make_splits(cv, X, read_target(y), None, {})
        assert np.sort(np.concatenate([test for _, test in splits])).tolist() == list(range(len(y)))
        for train, test in splits:
            assert sorted([*train, *test]) == list(range(len(y)))
    ((train, test),) = make_splits(0.25, X, read_target(y), 0, {})
    assert (len(train), len(test)) == (180, 60)
