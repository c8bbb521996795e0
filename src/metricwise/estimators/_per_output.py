"""One estimator per output, fitted on the rows where its label is observed, and the folds of calibrators.

Unlike :class:`sklearn.multioutput.MultiOutputClassifier`, it takes missing labels, labels of different types, outputs
of one class, and repeated rows. Must not know metrics, losses or rules.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.dummy import DummyClassifier
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from ..core.errors import InvalidParameter, entry_point
from ..core.labels import decode
from ..data.encoding import encode_column
from ..data.row_spec import take_rows
from ._compat import count_rows, params_of_rows
from ._encoded import EncodedClassifier
from ._targets import Target, read_target

__all__ = [
    "CalibrationFolds",
    "PerOutputClassifier",
    "Sample",
    "calibration_groups",
    "fit_labels",
    "fit_sample",
    "predict_codes",
]

_MAX_CALIBRATION_FOLDS = 5
_N_TRIED_ROWS = 20  # of each class, to see whether an estimator accepts codes; enough for inner folds


class Sample(NamedTuple):
    """Rows (n,) of X, possibly repeated, with labels (n,) and weights that replace any `sample_weight` of the fit."""

    rows: NDArray[Any]
    labels: NDArray[Any]
    weight: NDArray[np.float64] | None = None


class CalibrationFolds(BaseEstimator):
    """Stratified folds within a fold, 2 to 5 as its rarest class and its groups allow; groups stay together."""

    def __init__(self, groups: Any = None) -> None:
        self.groups = groups

    def split(self, X: Any, y: Any, groups: Any = None) -> Any:
        """Yield (train, test) rows."""
        folds = self.get_n_splits(X, y)
        splitter = StratifiedKFold(folds) if self.groups is None else StratifiedGroupKFold(folds)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="The least populated class in y", category=UserWarning)
            yield from splitter.split(X, y, self.groups)

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of folds."""
        rarest = _MAX_CALIBRATION_FOLDS if y is None else int(np.unique(y, return_counts=True)[1].min())
        kinds = _MAX_CALIBRATION_FOLDS if self.groups is None else len(np.unique(np.asarray(self.groups)))
        if kinds < 2:
            raise InvalidParameter(
                "groups",
                problem="calibration needs training rows of at least two groups in each fold, got one group",
                remedy="leave out calibration or groups",
            )
        return min(max(rarest, 2), kinds, _MAX_CALIBRATION_FOLDS)


@contextmanager
def calibration_groups(model: Any, groups: Any) -> Iterator[None]:
    """Let a calibrator that was made here keep groups together while it is fitted."""
    has_folds = isinstance(model, CalibratedClassifierCV) and isinstance(model.cv, CalibrationFolds)
    if groups is None or not has_folds:
        yield
        return
    folds = model.cv
    model.cv = CalibrationFolds(groups)
    try:
        yield
    finally:
        model.cv = folds  # a fitted model holds no rows


def _has(method: str) -> Callable[[Any], bool]:
    """Return a check of whether the estimator of a classifier has a method."""

    def check(classifier: Any) -> bool:
        return hasattr(classifier.estimator, method)

    return check


class PerOutputClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """Fit one clone of an estimator per output, on the rows where the label of that output is observed.

    Parameters
    ----------
    estimator : estimator
    n_jobs : int, optional
        Outputs fitted at a time.

    Attributes
    ----------
    estimators_ : list of M estimators
        A constant for an output whose labels are of one class; None for one without any.
    classes_ : list of M ndarrays
        Labels of the columns of `predict_proba`.
    """

    def __init__(self, estimator: Any, *, n_jobs: int | None = None) -> None:
        self.estimator = estimator
        self.n_jobs = n_jobs

    @entry_point("{class}")
    def fit(self, X: Any, y: Any, **params: Any) -> PerOutputClassifier:
        """Fit to labels of shape (N, M), which may be missing."""
        return self.fit_target(X, read_target(y), **params)

    def fit_target(self, X: Any, target: Target, groups: Any = None, **params: Any) -> PerOutputClassifier:
        """Fit to a target that has been read already; a calibrator keeps groups of rows together."""
        return self.fit_samples(X, [Sample(*target.column(m)) for m in range(target.n_outputs)], params, groups)

    def fit_samples(
        self, X: Any, samples: Sequence[Sample], params: dict[str, Any], groups: Any = None
    ) -> PerOutputClassifier:
        """Fit to one sample of the rows for each output."""
        self.estimators_ = Parallel(n_jobs=self.n_jobs)(
            delayed(_fit_one)(self.estimator, X, sample, groups, params) for sample in samples
        )
        self.classes_ = [np.array([]) if model is None else model.classes_ for model in self.estimators_]
        for name in ("n_features_in_", "feature_names_in_"):
            values = [getattr(model, name) for model in self.estimators_ if hasattr(model, name)]
            if values:
                setattr(self, name, values[0])
        return self

    @available_if(_has("predict_proba"))
    def predict_proba(self, X: Any) -> list[NDArray[np.float64]]:
        """Return a list of M arrays of shape (N, classes of the output)."""
        check_is_fitted(self)
        n = count_rows(X)
        return [np.zeros((n, 0)) if model is None else model.predict_proba(X) for model in self.estimators_]

    @available_if(_has("predict_log_proba"))
    def predict_log_proba(self, X: Any) -> list[NDArray[np.float64]]:
        """Return a list of M arrays of shape (N, classes of the output)."""
        check_is_fitted(self)
        n = count_rows(X)
        return [np.zeros((n, 0)) if model is None else model.predict_log_proba(X) for model in self.estimators_]

    @available_if(_has("decision_function"))
    def decision_function(self, X: Any) -> list[NDArray[np.float64]]:
        """Return a list of M arrays, as the estimators return them; (N, 1) for a constant, (N, 0) without labels."""
        check_is_fitted(self)
        n = count_rows(X)
        return [
            model.decision_function(X) if len(labels) > 1 else np.ones((n, len(labels)))
            for model, labels in zip(self.estimators_, self.classes_, strict=True)
        ]

    def predict(self, X: Any) -> NDArray[Any]:
        """Return what the estimator of each output predicts, of shape (N, M); None where an output had no label."""
        check_is_fitted(self)
        classes = [labels if len(labels) else np.array([None]) for labels in self.classes_]
        none = np.zeros(count_rows(X), dtype=np.intp)
        columns = [
            none if model is None else predict_codes(model, X, labels)
            for model, labels in zip(self.estimators_, classes, strict=True)
        ]
        return decode(np.stack(columns, axis=1), classes)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimator).input_tags
        tags.target_tags.single_output = False
        tags.target_tags.multi_output = True
        tags.classifier_tags.multi_label = True
        return tags


def _fit_one(estimator: Any, X: Any, sample: Sample, groups: Any, params: dict[str, Any]) -> Any:
    if len(sample.rows) == 0:
        return None
    if (sample.labels == sample.labels[0]).all():
        return fit_sample(DummyClassifier(strategy="prior"), X, sample, {})
    model = clone(estimator)
    with calibration_groups(model, None if groups is None else take_rows(groups, sample.rows)):
        return fit_sample(model, X, sample, params)


def fit_sample(estimator: Any, X: Any, sample: Sample, params: dict[str, Any]) -> Any:
    """Fit an estimator to a sample of the rows; parameters with an entry per row are cut to it."""
    rows = sample.rows
    if len(rows) != count_rows(X) or not np.array_equal(rows, np.arange(len(rows))):
        params, X = params_of_rows(X, params, indices=rows), take_rows(X, rows)
    weights = {} if sample.weight is None else {"sample_weight": sample.weight}
    return fit_labels(estimator, X, sample.labels, {**weights, **params})


def fit_labels(estimator: Any, X: Any, labels: NDArray[Any], params: dict[str, Any]) -> Any:
    """Fit an estimator to labels, or to their codes if it refuses labels and takes codes."""
    try:
        return estimator.fit(X, labels, **params)
    except (ValueError, TypeError):
        if not _takes_codes_only(estimator, X, labels, params):
            raise
    return EncodedClassifier(estimator).fit(X, labels, **params)


def _takes_codes_only(estimator: Any, X: Any, labels: NDArray[Any], params: dict[str, Any]) -> bool:
    """Whether an estimator that could not be fitted to labels refuses them and takes their codes, on a few rows."""
    if labels.ndim > 1:
        return False
    try:
        distinct, codes = np.unique(labels, return_inverse=True)
    except TypeError:  # labels that cannot be sorted have no codes
        return False
    if np.array_equal(distinct, np.arange(len(distinct))):
        return False
    order = np.argsort(codes, kind="stable")
    place = np.arange(len(codes)) - np.searchsorted(codes[order], codes[order])  # of each row in its class
    rows = np.sort(order[place < _N_TRIED_ROWS])

    def takes_labels(model: Any) -> bool:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model.fit(take_rows(X, rows), labels[rows], **params_of_rows(X, params, indices=rows))
        except Exception:  # the first error is the one to be told
            return False
        return True

    return takes_labels(EncodedClassifier(clone(estimator))) and not takes_labels(clone(estimator))


def predict_codes(model: Any, X: Any, classes: NDArray[Any]) -> NDArray[np.intp]:
    """Return what a fitted estimator predicts as codes of the classes, of shape (N,)."""
    labels = np.asarray(model.predict(X)).reshape(-1)  # a column, from some
    return encode_column(labels, classes, np.unique, "what it predicts")[0]
