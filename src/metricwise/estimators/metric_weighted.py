"""Training for a metric: the loss at the confusion reached, training on that loss, and again.

Owns the alternation. Rows are weighted and models trained as in :mod:`metricwise.estimators.cost_sensitive`.
"""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import Bunch, indexable
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.parallel import Parallel, delayed

from ..confusion import from_predictions, normalize
from ..inputs import python_labels, read_sample_weight, warn_of_order
from ..metrics.base import Metric
from ..metrics.for_outputs import resolve_for
from ..metrics.functions import check_whole_rows
from ._compat import (
    HasMethods,
    Interval,
    RealNotInt,
    count_rows,
    fit_context,
    params_of_rows,
    routing_enabled,
    take_rows,
)
from ._folds import check_groups, make_splits
from ._judging import score_labels
from ._targets import Target, read_target
from .cost_sensitive import TrainedClassifier, fit_weighted, need_single_output

__all__ = ["MetricWeightedClassifier"]

FloatArray = NDArray[np.float64]

_INWARD = 0.01  # how far towards guessing a confusion is moved where the metric has no slope at it
_SMALLEST = 0.25  # the shortest step towards the next loss that is tried


class MetricWeightedClassifier(TrainedClassifier):
    """Train any estimator that takes sample weights for a metric.

    Alternates two steps: the loss is minus the gradient of the metric at the confusion reached so far, and the
    estimator is trained on that loss as :class:`CostSensitiveClassifier` trains. Confusions are of rows that the model
    has not seen. Where the whole step to the next loss does not improve the metric, half and a quarter of it are tried;
    it ends when none does, and the estimator is fitted to all rows on the best loss. For linear metrics, balanced
    accuracy among them, that is one step; for ratios it is Dinkelbach's algorithm with a trained oracle.

    Prefer :class:`MetricOptimalClassifierCV`, which trains each fold once and not once per step, finds the optimum of
    its family instead of a point where a greedy walk stops, and says what it gained. This one can be better where the
    model is too small to get the probabilities right, such as a shallow tree: there it is trained for the decisions.

    Parameters
    ----------
    estimator : estimator
        A classifier whose fit takes `sample_weight`.
    metric : str, Metric or callable, default="balanced_accuracy"
        As in :func:`metricwise.optimize`.
    pos_label : object, optional
        The positive class of metrics of one class, as in :func:`metricwise.optimize`.
    cv : int, float, splitter or iterable, optional
        As in :class:`MetricOptimalClassifierCV`.
    max_iter : int, default=10
        Losses that are tried at most, the first of them the plain one.
    tol : float, default=1e-4
        The least improvement of the metric that is worth another step.
    n_jobs : int, optional
        Folds fitted at a time.
    random_state : int, RandomState instance or None, default=None
        Of the split where `cv` is a float.

    Attributes
    ----------
    estimator_ : estimator
    classes_ : ndarray of shape (n_classes,)
    loss_ : ndarray of shape (n_classes, n_classes)
        The loss that the estimator was trained on; its largest entry in each row is 0.
    best_score_ : float
        The metric with it on rows that the models had not seen.
    history_ : list of float
        The metric with each loss, the first of plain training.
    n_iter_ : int
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)

    References
    ----------
    S. P. Parambath, N. Usunier, Y. Grandvalet. Optimizing F-measures by cost-sensitive classification. NeurIPS 2014.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> import metricwise as mw
    >>> X, y = make_classification(1000, n_informative=4, n_classes=3, weights=[0.8, 0.15], random_state=0)
    >>> tree = DecisionTreeClassifier(max_depth=3, random_state=0)
    >>> model = mw.MetricWeightedClassifier(tree, metric="g_mean").fit(X, y)
    >>> round(model.history_[0], 2), round(model.best_score_, 2)
    (0.4, 0.64)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimator": [HasMethods(["fit", "predict"])],
        "metric": [str, HasMethods(["bind", "value"]), callable],
        "pos_label": "no_validation",
        "cv": ["cv_object", Interval(RealNotInt, 0.0, 1.0, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        estimator: Any,
        *,
        metric: Any = "balanced_accuracy",
        pos_label: Any = None,
        cv: Any = None,
        max_iter: int = 10,
        tol: float = 1e-4,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.metric = metric
        self.pos_label = pos_label
        self.cv = cv
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> MetricWeightedClassifier:
        """Alternate between loss and training.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
            For the metric and for the estimator.
        **params
            For the estimator's fit; `groups` for the splitter, which must be one that keeps groups together, such as
            :class:`~sklearn.model_selection.GroupKFold`. With metadata routing enabled, whoever asks for them.

        Returns
        -------
        self : object
        """
        who = type(self).__name__
        warn_of_order(who, 3, X=X, y=y, sample_weight=sample_weight)
        X, y = indexable(X, y)
        target = need_single_output(read_target(y, who), who)
        metric = resolve_for(
            self.metric,
            target.classes,
            several=False,
            declared=False,
            pos_label=self.pos_label,
            scales=target.scales,
            who=who,
        ).metric
        if metric.degenerate:
            warnings.warn(f"{who}: {metric.degenerate}", UserWarning, stacklevel=2)
        weight = read_sample_weight(sample_weight, count_rows(X), who)
        check_whole_rows(metric, who, sample_weight=weight)
        check_groups(self.cv, params.get("groups"), self.estimator, who)
        routed = self._route(params)
        splits = make_splits(self.cv, X, target, self.random_state, routed.splitter.split, who)
        params = routed.estimator.fit
        metric = metric.of_rows(sum(_mass(weight, tested) for _, tested in splits))
        self.loss_, self.best_score_, self.history_ = self._alternate(metric, X, target, splits, weight, params)
        self.n_iter_ = len(self.history_)
        self.classes_ = target.classes[0]
        self._scales = target.scales
        self.estimator_ = fit_weighted(clone(self.estimator), X, target, self.loss_, weight, params, who)
        self._copy_features()
        return self

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the chosen metric of the predictions.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        score : float
        """
        predicted = self.predict(X)
        if np.shape(y) == (len(predicted), 1):  # as `fit` takes it
            y = np.asarray(y)[:, 0]
        return score_labels(
            (self.classes_,),
            y,
            predicted,
            sample_weight,
            self.metric,
            scales=self._scales,
            pos_label=self.pos_label,
        )

    def _route(self, params: dict[str, Any]) -> Bunch:
        """Return what the estimator's fit and the splitter's split are given; weights are ours to multiply."""
        if routing_enabled():
            return process_routing(self, "fit", **params)
        groups = {name: params[name] for name in ("groups",) if params.get(name) is not None}
        others = {name: value for name, value in params.items() if name != "groups"}
        return Bunch(estimator=Bunch(fit=others), splitter=Bunch(split=groups))

    def get_metadata_routing(self) -> MetadataRouter:
        """Return who takes which metadata: `sample_weight` here, the rest the estimator and the splitter.

        Returns
        -------
        routing : MetadataRouter
        """
        return (
            super()
            .get_metadata_routing()
            .add(splitter=self.cv, method_mapping=MethodMapping().add(caller="fit", callee="split"))
        )

    def _alternate(
        self, metric: Metric, X: Any, target: Target, splits: Any, weight: FloatArray | None, params: dict[str, Any]
    ) -> tuple[FloatArray, float, list[float]]:
        """Return the best loss, its value on rows not seen, and the values along the way."""
        labels = python_labels(target.classes[0])
        best = -np.eye(len(labels))
        C = self._reached(X, target, best, splits, weight, params)
        top = float(metric.bind(C.sum(axis=1), labels).value(C))
        history = [top]
        goal, step = _next_loss(metric, C, labels), 1.0
        while len(history) < self.max_iter and step >= _SMALLEST and not np.allclose(goal, best, rtol=1e-6, atol=0):
            if not goal.any(axis=1).all():
                step = min(step, 0.5)  # a class without any weight would not be there to train on
            trial = (1 - step) * best + step * goal
            C = self._reached(X, target, trial, splits, weight, params)
            history.append(float(metric.bind(C.sum(axis=1), labels).value(C)))
            if history[-1] > top + self.tol:
                best, top, goal, step = trial, history[-1], _next_loss(metric, C, labels), 1.0
            else:
                step /= 2
        return best, top, history

    def _reached(
        self, X: Any, target: Target, loss: FloatArray, splits: Any, weight: FloatArray | None, params: dict[str, Any]
    ) -> FloatArray:
        """Return the confusion (K, K) of the rows that the folds leave out, with models trained on a loss."""
        who = type(self).__name__
        parts = Parallel(n_jobs=self.n_jobs)(
            delayed(_fold_confusion)(clone(self.estimator), X, target, loss, fit_rows, test_rows, weight, params, who)
            for fit_rows, test_rows in splits
        )
        return normalize(np.sum(parts, axis=0))[0][0]


def _mass(weight: FloatArray | None, rows: Any) -> float:
    return float(len(rows)) if weight is None else float(weight[rows].sum())


def _fold_confusion(
    estimator: Any,
    X: Any,
    target: Target,
    loss: FloatArray,
    fit_rows: Any,
    test_rows: Any,
    weight: FloatArray | None,
    params: dict[str, Any],
    who: str,
) -> FloatArray:
    """Train on some rows, predict others, and count; of shape (1, K, K)."""
    own = None if weight is None else weight[fit_rows]
    given = params_of_rows(X, params, indices=np.asarray(fit_rows))
    model = fit_weighted(estimator, take_rows(X, fit_rows), target.take(fit_rows), loss, own, given, who)
    place = {label: code for code, label in enumerate(target.named(0).tolist())}
    predicted = np.array([place[label] for label in np.asarray(model.predict(take_rows(X, test_rows))).tolist()])
    tested = None if weight is None else weight[test_rows]
    return from_predictions(target.codes[test_rows], predicted[:, None], len(place), tested)


def _next_loss(metric: Metric, C: FloatArray, labels: list[Any]) -> FloatArray:
    """Return minus the gradient at C, each row shifted to a largest entry of 0, at a mean weight of 1 per row."""
    priors = C.sum(axis=1)
    slope = metric.bind(priors, labels).gradient(C)
    if not np.isfinite(slope).all() or np.ptp(slope, axis=1).max() == 0:
        guess = np.broadcast_to(priors[:, None] / len(C), C.shape)
        slope = metric.bind(priors, labels).gradient((1 - _INWARD) * C + _INWARD * guess)
    gain = slope - slope.min(axis=1, keepdims=True)
    scale = float(priors @ gain.sum(axis=1))
    return -gain / scale if scale > 0 else -np.eye(len(C))
