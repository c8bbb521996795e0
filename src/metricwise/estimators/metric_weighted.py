"""Training for a metric, alternating between the loss at the current confusion and training on it."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch, indexable
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing

from ..core.errors import entry_point, refuses_removed
from ..data.frames import warn_of_order
from ..data.weights import read_sample_weight
from ..goals.spec import GoalSpec
from ..metrics.aim import AveragedMetric
from ._alternation import Folds, alternate
from ._compat import HasMethods, Interval, RealNotInt, StrOptions, count_rows, fit_context, routing_enabled
from ._folds import check_groups, make_splits
from ._targets import Target
from .cost_sensitive import TrainedClassifier, read_outputs
from .scoring import LabelScore, score_labels

__all__ = ["MetricWeightedClassifier"]

FloatArray = NDArray[np.float64]


class MetricWeightedClassifier(TrainedClassifier):
    """Train any estimator that takes sample weights to maximise a metric.

    The fit alternates between two steps: the loss is set to minus the gradient of the metric at the current confusion,
    and the estimator is trained on that loss as in :class:`CostSensitiveClassifier`. Confusions are counted on rows
    that the model was not fitted to. If the full step to the next loss does not improve the metric, half and a quarter
    of it are tried; the fit ends when none of them does, and the estimator is fitted to all rows with the best loss.
    For linear metrics, including balanced accuracy, that is one step; for ratios it is Dinkelbach's algorithm with a
    trained oracle.

    With a 2-D y, one clone of the estimator is fitted per output, on the rows whose label is observed. With the
    micro-average, all outputs share one loss, computed at their pooled confusion; with the macro-average, each output
    has its own loss. With the instance-average, the loss is that of the micro-average, which has the same population
    value, and losses are compared by the metric row by row. With the macro-average, outputs without labels or with only
    one class keep plain training.

    Prefer :class:`MetricOptimalClassifierCV`, which trains each fold once instead of once per step, finds the optimum
    of its family instead of the end point of a greedy search, and estimates the gain. This classifier can be better if
    the model is too small to estimate the probabilities well, such as a shallow tree, because it is trained for the
    decisions.

    Parameters
    ----------
    estimator : estimator
        A classifier whose fit takes `sample_weight`.
    metric : str, Metric, callable, dict or list, default="balanced_accuracy"
        The metric to maximise, as in :func:`metricwise.optimize`; for a 2-D y also one for each output, as a dict keyed
        by the columns of y or as a list.
    average : {"micro", "macro", "instance"}, optional
        Average over outputs. None means "micro" unless the name of the metric fixes the average; `average` is required
        if the outputs have different classes.
    classes : array-like, or list of n_outputs array-likes, optional
        All labels that may occur; they become `classes_`. None uses the sorted labels of y.
    order : array-like, or list of n_outputs array-likes, optional
        Classes from the lowest to the highest, for ordinal metrics on text labels, as in :func:`metricwise.optimize`.
    pos_label : object, or list of n_outputs objects, optional
        The positive class of metrics of one class, as in :func:`metricwise.optimize`.
    output_weight : array-like of shape (n_outputs,), optional
        Weights of the outputs in the average.
    cv : int, float, splitter or iterable, optional
        As in :class:`MetricOptimalClassifierCV`.
    max_iter : int, default=10
        Maximum number of losses that are tried, including that of plain training.
    tol : float, default=1e-4
        Minimum improvement of the metric for another step.
    n_jobs : int, optional
        Number of folds, and of outputs in the final fit, that are fitted in parallel.
    random_state : int, RandomState instance or None, default=None
        Seed for the split if `cv` is a float.

    Attributes
    ----------
    estimator_ : estimator
        The fitted estimator. For a 2-D y, a container with a fitted clone for each output in ``estimators_``, None for
        an output without labels.
    classes_ : ndarray of shape (n_classes,), or list of n_outputs such arrays
        The class labels.
    loss_ : ndarray of shape (n_classes, n_classes), or list of n_outputs such arrays
        The loss that the estimator was trained on, as :class:`CostSensitiveClassifier` takes it.
    best_score_ : float
        The metric with this loss on rows that the models were not fitted to.
    history_ : list of float
        The metric with each loss, starting with plain training. With the macro-average, outputs whose loss is final
        count with their best value.
    n_iter_ : int
        Number of losses that were tried.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features seen during `fit`, if they are all strings.

    See Also
    --------
    CostSensitiveClassifier : Train on a known loss.
    MetricOptimalClassifierCV : A rule on top of probabilities.

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

    A multilabel problem, with F1 averaged over the labels:

    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, Y = make_multilabel_classification(500, n_classes=4, random_state=0)
    >>> model = mw.MetricWeightedClassifier(tree, metric="f1", average="macro").fit(X, Y)
    >>> model.best_score_ > model.history_[0], len(model.loss_)
    (True, 4)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimator": [HasMethods(["fit", "predict"])],
        "metric": [str, HasMethods(["bind", "value"]), callable, dict, list, tuple],
        "average": [StrOptions({"micro", "macro", "instance"}), None],
        "classes": ["array-like", None],
        "order": ["array-like", None],
        "pos_label": "no_validation",
        "output_weight": ["array-like", None],
        "cv": ["cv_object", Interval(RealNotInt, 0.0, 1.0, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
    }

    @refuses_removed("MetricWeightedClassifier")
    def __init__(
        self,
        estimator: Any,
        *,
        metric: Any = "balanced_accuracy",
        average: str | None = None,
        classes: Any = None,
        order: Any = None,
        pos_label: Any = None,
        output_weight: Any = None,
        cv: Any = None,
        max_iter: int = 10,
        tol: float = 1e-4,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.metric = metric
        self.average = average
        self.classes = classes
        self.order = order
        self.pos_label = pos_label
        self.output_weight = output_weight
        self.cv = cv
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=False)
    @entry_point("{class}")
    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> MetricWeightedClassifier:
        """Fit the estimator, alternating between loss and training.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), or sparse indicator matrix
            Labels of a 2-D y may be missing: NaN, None, NA or masked.
        sample_weight : array-like of shape (n_samples,), optional
            Sample weights, for the metric and for the estimator.
        **params
            Parameters for the estimator's `fit`; `groups` is passed to the splitter, which must keep groups together as
            :class:`~sklearn.model_selection.GroupKFold` does. With metadata routing enabled, they are passed to
            whichever object requests them.

        Returns
        -------
        self : object
        """
        warn_of_order(X=X, y=y, sample_weight=sample_weight)
        X, y = indexable(X, y)
        target = read_outputs(y, self.classes).in_order(self.order, y)
        weight = read_sample_weight(sample_weight, count_rows(X))
        aim = self._read_aim(target, weight)
        check_groups(self.cv, params.get("groups"), self.estimator)
        routed = self._route(params)
        splits = make_splits(self.cv, X, target, self.random_state, routed.splitter.split)
        params = routed.estimator.fit
        folds = Folds(self.estimator, X, splits, weight, params, self.n_jobs)
        end = alternate(folds, aim, target, self.max_iter, self.tol)
        self.best_score_, self.history_, self.n_iter_ = end.value, end.history, len(end.history)
        self._scales = target.scales
        self._outputs = target.output_names
        self._train(X, target, end.losses, weight, params, self.n_jobs)
        return self

    def _goal(self) -> GoalSpec:
        """Return the goal as written."""
        return GoalSpec(self.metric, self.average, self.pos_label, self.output_weight, order=self.order)

    def _read_aim(self, target: Target, weight: FloatArray | None) -> AveragedMetric:
        goal = self._goal().read(target.schema)
        goal.check_rows(weight, labelled=True)
        return goal.aim

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the chosen metric of the predictions.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        score : float
        """
        predicted = self.predict(X)
        if predicted.ndim == 1 and np.shape(y) == (len(predicted), 1):  # as `fit` takes it
            y = np.asarray(y)[:, 0]
        scorer = LabelScore(replace(self._goal(), order=None), None, self._scales, self._outputs)
        classes, declared = self._empty_target().classes, self.classes is not None
        return score_labels(scorer, classes, y, predicted, sample_weight, declared)

    def _route(self, params: dict[str, Any]) -> Bunch:
        """Return the parameters of the estimator's fit and of the splitter's split, without weights."""
        if routing_enabled():
            return process_routing(self, "fit", **params)
        groups = {name: params[name] for name in ("groups",) if params.get(name) is not None}
        others = {name: value for name, value in params.items() if name != "groups"}
        return Bunch(estimator=Bunch(fit=others), splitter=Bunch(split=groups))

    def get_metadata_routing(self) -> MetadataRouter:
        """Return the metadata routing: `sample_weight` is used here, the rest is passed to the estimator and the
        splitter.

        Returns
        -------
        routing : MetadataRouter
        """
        return (
            super()
            .get_metadata_routing()
            .add(splitter=self.cv, method_mapping=MethodMapping().add(caller="fit", callee="split"))
        )
