"""Any classifier with the rule that maximises a metric, fitted to what it says of rows out of fold."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import fields, replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.utils import Bunch, check_random_state, indexable
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from ..api.label_rules import refuse_rows
from ..api.optimization import find_rule
from ..api.problems import read_seed
from ..core.errors import InvalidParameter, check_removed, entry_point, refuses_removed
from ..core.progress import Progress
from ..data.frames import warn_of_order
from ..data.label_rows import is_sparse
from ..data.row_spec import Frequencies, RowSpec, take_rows
from ..data.sensitive import Groups, SensitiveFeatures, read_segments, read_sensitive
from ..data.weights import check_frequencies, read_groups, read_row_weight, read_sample_weight, read_time
from ..export.converters import convertible
from ..fitting.example_costs import refuse_beside_costs
from ..fitting.strategy import Strategy
from ..goals.labels import is_of_labels, read_label_goal
from ..goals.spec import Goal, GoalSpec
from ..goals.worst import WorstGroup, opened
from ..inference.results import Candidate
from ..metrics.abstention import Abstention, read_abstain
from ..metrics.label_metrics import LabelMetric
from ..rules.label_base import LabelRuleBase
from ._compat import (
    HasMethods,
    Interval,
    RealNotInt,
    StrOptions,
    count_rows,
    fit_context,
    own_requests,
    routing_enabled,
)
from ._decisions import RowCostClassifier, weight_for_fit
from ._folds import check_groups, make_splits
from ._labels import LabelTarget, form_of, is_too_large, read_label_target
from ._probabilities import Pool, make_trainable, out_of_fold, train
from ._responses import LOG_PROBA, METHODS, PROBA, RESPONSES, Response, known_classes
from ._targets import Target, read_target
from ._ties import choose_response
from .scoring import LabelScore, score_label_sets, score_labels

__all__ = ["MetricOptimalClassifierCV"]


@convertible
class MetricOptimalClassifierCV(RowCostClassifier):
    """Classifier whose decisions maximise a metric, based on any classifier with probabilities or scores.

    The estimator is fitted with cross-validation, the rule is optimised on the out-of-fold probabilities, or on
    log-probabilities or scores (:func:`metricwise.optimize`), and the estimator is refitted on all rows. If no rule is
    expected to improve the metric on new rows, argmax is kept.

    Parameters
    ----------
    estimator : estimator
        A classifier with `predict_proba`, `predict_log_proba` or `decision_function`. If the estimator does not
        support a 2-D y, as its tags say, one clone per output is fitted on the rows whose label is observed. For
        indicator matrices, it may return sparse probabilities of shape (n_samples, n_outputs); a label that is not
        stored has probability 0.
    metric : str, Metric, callable, dict or list, default="balanced_accuracy"
        The metric to maximise, as in :func:`metricwise.optimize`: a metricwise or scikit-learn scorer name, a metric
        object, a function such as `f1_score`, a scorer, or a function f(C) of a (K, K) confusion matrix; for a 2-D y
        also one of these for each output, as a dict keyed by the columns of y or as a list; for an indicator matrix
        also a metric of the labels of a row, such as "precision@3".
    average : {"micro", "macro", "instance"}, optional
        Average over outputs. None means "micro" unless the name of the metric fixes the average; `average` is required
        if the outputs have different classes.
    classes : array-like, or list of n_outputs array-likes, optional
        All labels that may occur; they become `classes_`. None uses the sorted labels of y. The estimator's columns are
        matched by its `classes_`, whatever their order.
    order : array-like, or list of n_outputs array-likes, optional
        Classes from the lowest to the highest, for ordinal metrics on text labels, as in :func:`metricwise.optimize`.
    pos_label : object, or list of n_outputs objects, optional
        The positive class of metrics of one class, as in :func:`metricwise.optimize`.
    output_weight : array-like of shape (n_outputs,), optional
        Weights of the outputs in the average.
    cv : int, float, splitter, iterable or "prefit", optional
        How the probabilities that the rule is fitted on are obtained.

        - None: 5 folds, stratified by the classes of one output or the combinations of several where these repeat.
        - int: the number of folds, stratified in the same way.
        - float in (0, 1): one random split, with this share of the rows (rounded down) for the rule and the others for
          the model; 0.5 gives the two halves of the paper's Algorithm 1.
        - a splitter or an iterable of (train, test) indices. Rows that are never in a test set are not used for the
          rule; rows that are tested several times count once, with the mean of their probabilities or scores.
        - "prefit": the estimator is already fitted, on other rows than those passed to `fit`. A
          :class:`~sklearn.frozen.FrozenEstimator` means the same, whatever `cv` is.
    refit : bool, default=True
        Whether to refit the estimator on all rows at the end. False keeps the model of the split and requires a single
        one, such as a float `cv`. A prefitted estimator is never refitted.
    calibration : {"sigmoid", "isotonic", "temperature"}, optional
        If given, the estimator is wrapped in :class:`~sklearn.calibration.CalibratedClassifierCV` with this method
        inside each fold. "temperature" requires scikit-learn 1.8.
    response : {"auto", "predict_proba", "predict_log_proba", "decision_function"}, default="auto"
        The method of the estimator whose values the rule decides by. "auto" is `predict_proba`, unless the estimator
        lacks it, or it ties more than 1 % of the out-of-fold rows that log-probabilities or the decision function tell
        apart: rows that have a class with a probability within 1e-6 of 1, as naive Bayes often gives. Then it is
        `predict_log_proba` or, if the estimator lacks that or it ties such rows too, `decision_function`; of an
        estimator without `predict_proba`, it is `decision_function` if there is one. A decision function must have one
        column per class, or a single one for two classes. With `calibration`, it is always `predict_proba`. Rules for
        very many labels take `predict_proba`, or `decision_function` if the estimator lacks it.
    record : list or dict, optional
        Further metrics to compute for the rule, each in any form that `metric` takes; a dict gives them names.
    subject_to : str, constraint, or list of these, optional
        Constraints that the rule must satisfy, such as ``"precision >= 0.9"``, as in :func:`metricwise.optimize`. They
        are counted on the out-of-fold rows.
    confidence : float or None, default=0.95
        Approximate confidence with which the constraints hold in the population that the rows are drawn from; None:
        they hold on the out-of-fold rows only.
    guarantee : {"exact"}, optional
        "exact": the constraints hold with at least the probability `confidence` for any distribution of independent
        rows, as in :func:`metricwise.optimize`. It needs a model that has not seen the rows that test the rule and is
        not fitted again: ``cv="prefit"``, or a float such as ``cv=0.5`` with ``refit=False``, which splits rows at
        random, without strata. The scores of the other rows then place the thresholds that are tested. Steps that learn
        from labels, such as a selection of features, belong into `estimator`.
    abstain : bool, float or Abstention, optional
        Whether the rule may abstain: at the given cost or, with True, as often as `subject_to` allows, as in
        :func:`metricwise.optimize`. A :class:`metricwise.Abstention` has the label that `predict` returns for an
        abstention besides.
    labels_per_row : int or (int, int), optional
        The largest number of labels that are predicted for a row of an indicator matrix, or the least and the largest,
        as in :func:`metricwise.optimize`.
    strategy : Strategy, optional
        How the rule is looked for, as in :func:`metricwise.optimize`. By default, rules are fitted to resamples of the
        out-of-fold rows, their average is judged on the rows that the resamples leave out, and `gain_` estimates what
        it adds on new rows. Its fields can be searched over: ``strategy__recalibrate``.
    n_jobs : int, optional
        Number of folds, or of outputs if there is only one fold, that are fitted in parallel.
    random_state : int, RandomState instance or None, default=None
        Seed for the split if `cv` is a float, and for the search for the rule, which is always reproducible.
    verbose : int, default=0
        Verbosity of the fits. Above 0, `fit` also reports progress if it takes more than a second; at 0, it does so on
        a terminal and in a notebook only.

    Attributes
    ----------
    estimator_ : estimator
        The fitted estimator.
    rule_ : WeightedRule, MixtureRule, GroupedRule, LabelRule or LabelSetRule
        The rule that turns `decision_input` into predictions; ``rule_.describe()`` explains it in plain English.
    solution_ : Solution
        The result of :func:`metricwise.optimize`, with a status in plain sentences. ``solution_.value_on_new_rows`` is
        the expected value of the metric on new rows, with a 95 % interval, and ``solution_.threshold_range`` has the
        range of thresholds of binary outputs that do about as well; both are None if `strategy` fixes `confusion` and
        `recalibrate`. ``solution_.constraints`` says how the constraints in `subject_to` are met.
    response_method_ : str
        The method of `estimator_` whose values the rule takes: "predict_proba", "predict_log_proba" or
        "decision_function".
    input_ : {"probabilities", "log_proba", "scores"}
        What these values are, as `input` of :func:`metricwise.optimize`.
    classes_ : ndarray of shape (n_classes,), or list of n_outputs such arrays
        The class labels.
    best_score_ : float
        The metric of the rule on the out-of-fold rows that it was fitted to.
    gain_ : Gain or None
        The estimated gain over argmax on new rows, with a 95 % interval; None if `strategy` fixes `confusion` and
        `recalibrate`.
    cv_results_ : dict or None
        The candidates that were compared: "recipe", its "score" on the rows that resamples left out, its "gain" over
        argmax there, the "std_error" of the gain, and the value of every recorded metric on the same rows, under its
        name. None if `strategy` fixes `confusion` and `recalibrate`; ``solution_.recorded`` always has the recorded
        metrics of the rule.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features seen during `fit`, if they are all strings.

    See Also
    --------
    FixedRuleClassifier : Apply a known rule.
    CostSensitiveClassifier : Train an estimator on a loss matrix instead.
    sklearn.model_selection.TunedThresholdClassifierCV : Tune the threshold of a binary classifier.

    Notes
    -----
    Rows that belong together (`groups`) are kept together by a splitter that supports groups, by `calibration` within
    its folds, and when the rule is judged: candidates are compared on groups that they were not fitted to, and the
    interval of `gain_` treats groups as units. Any other `cv` raises an error if `groups` are passed, unless the
    estimator is prefitted. With a :class:`metricwise.InTime`, rules are judged on periods that they were not fitted to;
    a model that must not look ahead also needs a `cv` such as :class:`~sklearn.model_selection.TimeSeriesSplit`.

    With `labels_per_row`, a metric of the labels of a row, or an estimator whose probabilities are sparse, the rule is
    one for very many labels, :class:`metricwise.LabelRule` or :class:`metricwise.LabelSetRule`: y is an indicator
    matrix without missing labels, and `predict` returns a sparse one if y was sparse. A sparse y is handed on to
    :class:`~sklearn.multiclass.OneVsRestClassifier` and to estimators of other libraries, and made dense for other
    estimators of scikit-learn. `classes`, `order`, `abstain`, `sensitive_features`, `cost`,
    :class:`metricwise.Frequencies` and :class:`metricwise.InTime` are refused there.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import train_test_split
    >>> import metricwise as mw
    >>> X, y = make_classification(2000, n_informative=4, n_classes=3, weights=[0.8, 0.15], random_state=0)
    >>> X, X_new, y, y_new = train_test_split(X, y, random_state=0)
    >>> model = mw.MetricOptimalClassifierCV(LogisticRegression(), metric="g_mean").fit(X, y)
    >>> plain = mw.metrics.GMean().score(y_new, LogisticRegression().fit(X, y).predict(X_new))
    >>> print(f"{plain:.2f}, with the rule {model.score(X_new, y_new):.2f}")
    0.59, with the rule 0.7...

    A support vector machine has no probabilities; the rule is one on its scores:

    >>> from sklearn.svm import LinearSVC
    >>> machine = mw.MetricOptimalClassifierCV(LinearSVC(), metric="g_mean").fit(X, y)
    >>> machine.input_, machine.decision_input(X_new).shape
    ('scores', (500, 3))
    >>> bool((machine.rule_.predict(machine.decision_input(X_new)) == machine.predict(X_new)).all())
    True

    At most two labels of each row:

    >>> from scipy.sparse import csr_array
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from sklearn.multiclass import OneVsRestClassifier
    >>> X, y = make_multilabel_classification(500, n_classes=8, random_state=0)
    >>> labels = mw.MetricOptimalClassifierCV(
    ...     OneVsRestClassifier(LogisticRegression()), metric="f1_macro", labels_per_row=2).fit(X, csr_array(y))
    >>> int(labels.predict(X).sum(axis=1).max())
    2
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimator": [HasMethods(["fit", method]) for method in METHODS],
        "metric": [str, HasMethods(["bind", "value"]), WorstGroup, LabelMetric, callable, dict, list, tuple],
        "average": [StrOptions({"micro", "macro", "instance"}), None],
        "classes": ["array-like", None],
        "order": ["array-like", None],
        "pos_label": "no_validation",
        "output_weight": ["array-like", None],
        "cv": ["cv_object", StrOptions({"prefit"}), Interval(RealNotInt, 0.0, 1.0, closed="neither")],
        "refit": ["boolean"],
        "calibration": [StrOptions({"sigmoid", "isotonic", "temperature"}), None],
        "response": [StrOptions({"auto", *METHODS})],
        "record": [list, tuple, dict, None],
        "subject_to": "no_validation",
        "confidence": [Interval(Real, 0.5, 1.0, closed="left"), None],
        "guarantee": [StrOptions({"exact"}), None],
        "abstain": ["boolean", Interval(Real, 0.0, None, closed="left"), Abstention, None],
        "labels_per_row": [Interval(Integral, 1, None, closed="left"), tuple, list, None],
        "strategy": [Strategy, None],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    @refuses_removed("MetricOptimalClassifierCV")
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
        refit: bool = True,
        calibration: str | None = None,
        response: str = "auto",
        record: Any = None,
        subject_to: Any = None,
        confidence: float | None = 0.95,
        guarantee: str | None = None,
        abstain: bool | float | Abstention | None = None,
        labels_per_row: int | tuple[int, int] | None = None,
        strategy: Strategy | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.metric = metric
        self.average = average
        self.classes = classes
        self.order = order
        self.pos_label = pos_label
        self.output_weight = output_weight
        self.cv = cv
        self.refit = refit
        self.calibration = calibration
        self.response = response
        self.record = record
        self.subject_to = subject_to
        self.confidence = confidence
        self.guarantee = guarantee
        self.abstain = abstain
        self.labels_per_row = labels_per_row
        self.strategy = strategy
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def set_params(self, **params: Any) -> MetricOptimalClassifierCV:
        """Set parameters, also those of `strategy` and `abstain`: ``set_params(strategy__recalibrate=False)``.

        Parameters
        ----------
        **params
            Parameters by name.

        Returns
        -------
        self : object
        """
        check_removed(type(self).__name__, params, ())
        nested = {name.partition("__")[0] for name in params if "__" in name} - params.keys()
        if "strategy" in nested:  # a copy: scikit-learn sets its fields in place, and it may be another estimator's too
            self.strategy = replace(Strategy.of(self.strategy))
        if "abstain" in nested:
            self.abstain = replace(read_abstain(self.abstain) or Abstention())
        super().set_params(**params)
        return self

    @fit_context(prefer_skip_nested_validation=False)
    @entry_point("{class}")
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        groups: Any = None,
        sensitive_features: Any = None,
        cost: Any = None,
        segments: Any = None,
        **params: Any,
    ) -> MetricOptimalClassifierCV:
        """Fit the estimator and the rule.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), or sparse indicator matrix
            Labels of a 2-D y may be missing: NaN, None or NA.
        sample_weight : array-like of shape (n_samples,), or Frequencies, optional
            Sample weights for the metric, and for the estimator if it takes them. As :class:`metricwise.Frequencies`,
            they say how many rows a row stands for: the rule is the same, the interval of `gain_` differs.
        groups : array-like of shape (n_samples,), or InTime, optional
            Marks rows that belong together: used by the splitter, which must keep them together as
            :class:`~sklearn.model_selection.GroupKFold` does, and for judging the rule; a prefitted estimator needs no
            such splitter. A :class:`metricwise.InTime` says when each row was observed: the rule is judged on periods
            that it was not fitted to, and the splitter is not given it. Its half-life weights rows for the rule; the
            estimator is given `sample_weight` as it is.
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_sensitive), optional
            The sensitive group of every row, for constraints about groups, or a :class:`metricwise.Sensitive`. If the
            rule uses it, `predict` and `score` require it too. With metadata routing enabled, it is also passed to the
            estimator if that requests it.
        cost : array-like of shape (n_samples, n_classes) or (n_samples, n_classes, n_classes), optional
            Costs per row, for ``metric="cost"``, as in :func:`metricwise.optimize`; `predict` and `score` then take the
            costs of their rows. They are used for the rule only and not passed to the estimator.
        segments : array-like of shape (n_samples,) or (n_samples, n_columns), optional
            The segment of every row, for a rule by segment, as in :func:`metricwise.optimize`; `predict` and `score`
            then require it too. With metadata routing enabled, it is also passed to the estimator if that requests it.
        **params
            Parameters for the estimator's `fit`. With metadata routing enabled, they are passed to whichever object
            requests them.

        Returns
        -------
        self : object
        """
        self._check_params(params)
        warn_of_order(X=X, y=y, sample_weight=sample_weight)
        X, y = indexable(X, y)
        rows = RowSpec(None, None, sample_weight, groups, sensitive_features, cost, segments=segments)
        target = self._read_target(y, rows)
        rows = self._read_rows(rows, target)
        features = read_sensitive(rows, count_rows(X))
        routed = self._route(rows, params)
        self._check_prefit()
        self._check_guarantee()
        responses = self._usable_responses(target)
        if self._applies_only:
            target, pool = self._apply_frozen(X, target)
            target = target.in_order(self.order, y)
            goal = self._read_goal(target, features, rows)
        else:
            target = target.in_order(self.order, y)
            goal = self._read_goal(target, features, rows)  # a goal that is refused must not cost any fits
            pool = self._cross_fit(X, target, routed, responses[0])
        response = self._choose_response(responses, pool)
        if is_sparse(pool.ask(response)) and not target.compete:  # only known once models are fitted
            goal = self._read_label_goal(rows, target)
        if self.guarantee is not None and not self._applies_only:
            rows = replace(rows, unlabelled=_untested(pool, target, response))
        rows = _of_pool(rows, pool, target, response, self.order)
        del pool  # models of folds, which may be large
        self.solution_ = find_rule(
            rows,
            goal,
            Strategy.of(self.strategy),
            self._seed(),
            True if self.verbose else None,
        )
        self.rule_ = self.solution_.rule
        self.response_method_, self.input_ = response.method, response.kind
        self.classes_ = target.public_classes
        self._scales = target.scales
        self._outputs = target.output_names
        self._form_of_y = form_of(y)
        self.best_score_ = self.solution_.value
        self.gain_ = self.solution_.gain
        self.cv_results_ = _table(self.solution_.candidates)
        self._copy_features()
        return self

    @entry_point()
    def score(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        sensitive_features: Any = None,
        *,
        cost: Any = None,
        segments: Any = None,
    ) -> float:
        """Return the chosen metric of the predictions.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        sample_weight : array-like of shape (n_samples,), optional
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_sensitive), optional
            As in `predict`; required if the metric is that of the worst group.
        cost : array-like of shape (n_samples, n_classes) or (n_samples, n_classes, n_classes), optional
            Costs of the rows, if the rule was fitted to costs per row: the score is then minus the mean cost.
        segments : array-like of shape (n_samples,) or (n_samples, n_columns), optional
            As in `predict`.

        Returns
        -------
        score : float
        """
        if self._by_costs(cost):
            return self._minus_cost(X, y, cost, sample_weight)
        spec = self._goal()
        if isinstance(self._fitted()[1], LabelRuleBase):
            return score_label_sets(spec, y, self.predict(X), sample_weight)
        metric, worst = opened(spec.metric)
        abstention = read_abstain(self.abstain)
        if abstention is not None:
            abstention = replace(abstention, label=self.rule_.abstain_label)
        spec = replace(spec, metric=metric, abstain=abstention, record=None, order=None)
        predicted = self.predict(X, sensitive_features, segments=segments)

        def score(y: Any, predicted: Any, sample_weight: Any) -> float:
            scorer = LabelScore(spec, None, self._scales, self._outputs)
            declared = self.classes is not None
            return score_labels(scorer, self.rule_.schema.classes, y, predicted, sample_weight, declared)

        if not worst:
            return score(y, predicted, sample_weight)
        n_rows = count_rows(X)
        codes = Groups(tuple(self.solution_.by_group)).codes(sensitive_features, n_rows)
        weight = read_sample_weight(sample_weight, n_rows)
        parts = [np.flatnonzero(codes == g) for g in np.unique(codes)]
        return min(
            score(take_rows(y, rows), predicted[rows], None if weight is None else weight[rows]) for rows in parts
        )

    # ------------------------------------------------------------------------------------------------- fitting

    def _goal(self) -> GoalSpec:
        """Return the goal as written."""
        params = self.get_params(deep=False)
        return GoalSpec(**{field.name: params[field.name] for field in fields(GoalSpec) if field.name in params})

    def _read_target(self, y: Any, rows: RowSpec) -> Target:
        """Read y: labels of any kind, or an indicator matrix whose labels compete or are very many."""
        if not (is_of_labels(rows, self._goal()) or is_too_large(y)):
            return read_target(y, self.classes)
        refuse_rows(replace(rows, classes=self.classes, order=self.order))
        return read_label_target(y)

    def _read_label_goal(self, rows: RowSpec, target: Target) -> GoalSpec:
        """Return the goal for very many labels, as written, once it is clear that it can be read."""
        spec = self._goal()
        refuse_rows(replace(rows, classes=self.classes, order=self.order))
        sets = target.sets if isinstance(target, LabelTarget) else None
        if sets is not None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # given when the rule is looked for
                read_label_goal(spec, target.schema, sets, rows.weight)
        return spec

    def _read_goal(self, target: Target, features: SensitiveFeatures | None, rows: RowSpec) -> GoalSpec | Goal:
        """Read the goal for the classes of the target; with costs per row there is nothing to read."""
        spec = self._goal()
        if target.compete:
            return self._read_label_goal(rows, target)
        if rows.cost is not None:
            refuse_beside_costs(self.metric, {"record": self.record, "subject_to": self.subject_to})
            return spec
        names = None if features is None else features.groups.names
        goal = spec.read(target.schema, names, target.class_rows)
        if rows.sensitive is not None:
            rows.sensitive.check(may_abstain=goal.abstention is not None)
        return goal

    def _read_rows(self, rows: RowSpec, target: Target) -> RowSpec:
        """Return the row inputs as arrays, checked before any model is fitted."""
        n_rows = target.n_rows
        weight = read_sample_weight(rows.weight, n_rows)
        if weight is not None:
            if rows.counts_rows:
                check_frequencies(weight)
            rows = replace(rows, sample_weight=Frequencies(weight) if rows.counts_rows else weight)
        if rows.segments is not None:
            read_segments(rows.segments, n_rows)
        if rows.time is not None:
            read_time(rows.time, n_rows)
            read_row_weight(rows, n_rows)
            rows = replace(rows, groups=replace(rows.time, time=np.asarray(rows.time.time)))
        elif rows.groups is not None:
            read_groups(rows.groups, n_rows)
        if rows.cost is not None:
            rows = replace(rows, cost=self._read_cost(rows.cost, target, self.abstain))
        return rows

    def _check_params(self, params: dict[str, Any]) -> None:
        """Refuse settings of the rule among the parameters of the estimator's `fit`, unless that takes them."""
        if not routing_enabled():
            taken = [name for name in params if has_fit_parameter(self.estimator, name)]
            check_removed(f"{type(self).__name__}.fit", params, taken)

    @property
    def _is_prefit(self) -> bool:
        return isinstance(self.cv, str) or isinstance(self.estimator, FrozenEstimator)

    @property
    def _applies_only(self) -> bool:
        """Whether no model is fitted at all, so that no rows are split."""
        return self._is_prefit and self.calibration is None

    def _check_prefit(self) -> None:
        if not self._is_prefit:
            return
        try:
            check_is_fitted(self.estimator)
        except NotFittedError as error:
            raise NotFittedError(
                f"{type(self).__name__}: cv='prefit' and FrozenEstimator need a fitted estimator; fit it first."
            ) from error

    @entry_point("{class}")
    def _check_guarantee(self) -> None:
        """Refuse a guarantee for a model that is fitted again, or fitted to the rows that test its rule."""
        if (
            self.guarantee is None
            or self._applies_only
            or (isinstance(self.cv, Real) and self.cv < 1 and not self.refit)
        ):
            return
        raise InvalidParameter(
            "guarantee",
            problem="guarantee='exact' needs a model that is fixed before the rows that test its rule are seen, but "
            "cross-fitting and refitting make other models than the one that predicts",
            remedy="use cv='prefit', or a float such as cv=0.5 with refit=False",
        )

    @entry_point("{class}")
    def _apply_frozen(self, X: Any, target: Target) -> tuple[Target, Pool]:
        """Return the target in terms of the classes of the fitted estimator, and that to be asked about all rows."""
        self.estimator_ = self.estimator
        if self.classes is None and not target.compete:
            target = target.of_classes(known_classes(self.estimator, target))
        return target, Pool(X, target, [self.estimator], [None])

    def _cross_fit(self, X: Any, target: Target, routed: Bunch, response: Response) -> Pool:
        """Fit on folds and, with `refit`, on all rows; return the fold models, with a response out of fold."""
        params = routed.estimator.fit
        estimator = FrozenEstimator(self.estimator) if isinstance(self.cv, str) else self.estimator
        cv = None if isinstance(self.cv, str) else self.cv
        # Strata would tell a model how many rows of each class test its rule.
        stratify = self.guarantee is None
        splits = make_splits(cv, X, target, self.random_state, routed.splitter.split, stratify=stratify)
        if not self.refit and len(splits) > 1 and not self._is_prefit:
            raise InvalidParameter(
                "",
                problem=f"refit=False needs a single split, got {len(splits)}",
                remedy="use a float such as cv=0.5, or refit=True",
            )
        keep = not self.refit and len(splits) == 1
        outer, inner = (self.n_jobs, None) if len(splits) > 1 else (None, self.n_jobs)
        model = make_trainable(estimator, target, self.calibration, inner)
        groups = routed.splitter.split.get("groups")
        with Progress(type(self).__name__, 2, True if self.verbose else None) as progress:
            progress.stage(f"fitting {len(splits)} fold{'s' * (len(splits) > 1)}")
            pool = out_of_fold(
                model, X, target, splits, params, response=response, groups=groups, n_jobs=outer, verbose=self.verbose
            )
            if keep:
                self.estimator_ = pool.models[0]
            else:
                progress.stage("fitting all rows")
                whole = make_trainable(estimator, target, self.calibration, self.n_jobs)
                self.estimator_ = train(whole, X, target, None, params, groups)
        return pool

    @entry_point("{class}")
    def _usable_responses(self, target: Target) -> tuple[Response, ...]:
        """Return the responses that the rule may take, from the first choice to the last.

        Some estimators have `predict_log_proba` without the probabilities behind it, as chains of support vector
        machines do: without `predict_proba`, the decision function goes first.
        """
        if target.compete and self.response == LOG_PROBA.method:
            raise InvalidParameter(
                "response",
                "be 'auto', 'predict_proba' or 'decision_function' for very many labels",
                repr(self.response),
            )
        if self.calibration is not None:
            if self.response not in ("auto", PROBA.method):
                raise InvalidParameter(
                    "response",
                    "be 'auto' or 'predict_proba' with calibration, because calibrated models have probabilities only",
                    repr(self.response),
                )
            return (PROBA,)
        allowed = [response for response in RESPONSES if self.response in ("auto", response.method)]
        usable = tuple(response for response in allowed if response.is_given_by(self.estimator))
        if not usable:
            raise InvalidParameter(
                "response",
                f"be a method of the estimator, but {type(self.estimator).__name__} has no {self.response}",
                remedy="use response='auto', or calibration='sigmoid' for probabilities",
            )
        usable = usable if usable[0] is PROBA else usable[-1:]
        return usable[:1] if target.compete else usable

    @entry_point("{class}")
    def _choose_response(self, responses: Sequence[Response], pool: Pool) -> Response:
        """Return the response that the rule is fitted to; the final estimator must have it too."""
        first = pool.ask(responses[0])
        response = choose_response([*responses], pool.ask) if isinstance(first, list) else responses[0]
        if not response.is_given_by(self.estimator_):
            raise InvalidParameter(
                "response",
                f"be a method of every fitted estimator, but the final one has no {response.method}",
                remedy="fit the same kind of model to every fold",
            )
        return response

    def _seed(self) -> int:
        """Return a seed for the search of the rule."""
        if self.random_state is None or isinstance(self.random_state, Integral):
            return read_seed(self.random_state)  # None is 0: the rule does not change from fit to fit
        return int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))

    # ------------------------------------------------------------------------------------------------- routing

    @entry_point("{class}")
    def _route(self, rows: RowSpec, params: dict[str, Any]) -> Bunch:
        """Return the parameters of the estimator's fit and of the splitter's split."""
        weight, groups = rows.weight, rows.clusters
        if not self._applies_only:
            check_groups(self.cv, groups, self.estimator)
        if routing_enabled():
            values = None if rows.sensitive is None else rows.sensitive.values
            rows_given = {"sensitive_features": values, "segments": rows.segments}
            return process_routing(self, "fit", sample_weight=weight, groups=groups, **rows_given, **params)
        fit_params = dict(params)
        if not self._applies_only:
            fit_params |= weight_for_fit(self.estimator, weight, self.calibration is not None)
        return Bunch(
            estimator=Bunch(fit=fit_params), splitter=Bunch(split={} if groups is None else {"groups": groups})
        )

    def get_metadata_routing(self) -> MetadataRouter:
        """Return the metadata routing: the rule takes what its methods name, the estimator and the splitter the rest.

        `groups` is requested by the rule, unless ``set_fit_request(groups=False)`` says otherwise, and by splitters
        that support groups.

        Returns
        -------
        routing : MetadataRouter
        """
        requests = own_requests(self)
        if requests.fit.requests.get("groups") is None:
            requests.fit.add_request(param="groups", alias=True)
        return (
            MetadataRouter(owner=self)
            .add_self_request(requests)
            .add(estimator=self.estimator, method_mapping=MethodMapping().add(caller="fit", callee="fit"))
            .add(splitter=self.cv, method_mapping=MethodMapping().add(caller="fit", callee="split"))
        )


def _of_pool(rows: RowSpec, pool: Pool, target: Target, response: Response, order: Any) -> RowSpec:
    """Return the rows that the rule is fitted to: those with an out-of-fold response."""

    def some(values: Any) -> Any:
        return None if values is None else take_rows(values, pool.rows)

    return replace(
        rows,
        proba=(proba := pool.packed(response)),
        y=target.given(pool.rows) if target.compete or is_sparse(proba) else target.labels(pool.rows),
        sample_weight=some(rows.sample_weight),
        groups=some(rows.groups),
        sensitive_features=some(rows.sensitive_features),
        segments=some(rows.segments),
        cost=some(rows.cost),
        order=order,
        input=response.input,
    )


def _untested(pool: Pool, target: Target, response: Response) -> Any:
    """Return what the model says of the rows that it was fitted to, which place thresholds and test none."""
    others = np.setdiff1d(np.arange(target.n_rows), pool.rows)
    return Pool(pool.X, target, pool.models, [others]).packed(response)


def _table(candidates: Sequence[Candidate]) -> dict[str, Any] | None:
    """Return candidates as columns, None if there are none."""
    if not candidates:
        return None
    table: dict[str, Any] = {
        "recipe": [candidate.recipe for candidate in candidates],
        "score": np.array([candidate.value for candidate in candidates]),
        "gain": np.array([candidate.gain for candidate in candidates]),
        "std_error": np.array([candidate.std_error for candidate in candidates]),
    }
    return {
        **table,
        **{name: np.array([candidate.recorded[name] for candidate in candidates]) for name in candidates[0].recorded},
    }
