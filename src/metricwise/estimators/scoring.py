"""Metrics as scikit-learn scorers, and scores of estimators. Must not import scikit-learn when it is loaded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.errors import InvalidParameter, argument, entry_point, mention, refuses_removed, shown
from ..core.labels import Scales
from ..data.abstention import split_abstained
from ..data.classes import read_order
from ..data.frames import column_names, is_frame, is_two_dimensional
from ..data.labels import observed_labels, read_pair
from ..data.row_spec import RowSpec
from ..data.weights import read_sample_weight
from ..evaluation.labels import label_value, refuse_for_labels
from ..goals.for_outputs import MetricSpec, check_macro, resolve_outputs
from ..goals.spec import GoalSpec
from ..metrics.abstention import Abstention, read_abstain
from ..metrics.base import Metric
from ..metrics.functions import function_name
from ..metrics.label_metrics import LabelMetric, read_label_metric
from ..metrics.naming import positive_places
from ..metrics.of_labels import label_of_abstentions
from ..metrics.recognised import unwrap
from ..metrics.resolution import KINDS, resolve, to_maximise
from ..metrics.scales import check_order_agrees, in_order
from ._joined_classes import joined_classes

__all__ = ["LabelScore", "make_scorer", "refuse_early", "score_label_sets", "score_labels"]

_RESPONSES = ("auto", "predict_proba", "predict_log_proba", "decision_function")


@dataclass(frozen=True, eq=False)
class LabelScore:
    """A metric as a function of true and predicted labels, which can be pickled; see :func:`make_scorer`."""

    goal: GoalSpec
    classes: Any = None
    scales: Scales | None = None
    outputs: Sequence[Any] | None = None

    @property
    def __name__(self) -> str:
        """What the scorer prints."""
        metric = self.goal.metric
        if isinstance(metric, Mapping):
            return ", ".join(f"{_name(part)} ({output})" for output, part in metric.items())
        if isinstance(metric, (list, tuple)):
            return ", ".join(map(_name, metric))
        return _name(metric)

    def as_metric(self) -> tuple[Any, str | None, Any]:
        """Return the metric, the average and the positive class, for functions that take a metric."""
        return self.goal.metric, self.goal.average, self.goal.pos_label

    @entry_point("make_scorer")
    def __call__(self, y_true: Any, y_pred: Any, sample_weight: ArrayLike | None = None) -> float:
        """Return the score."""
        goal, abstain = self.goal, self.goal.abstain
        if _is_of_rows(goal.metric):
            return label_value(goal, y_true, y_pred, sample_weight)
        accepted = y_pred
        if abstain is not None:
            accepted, _ = split_abstained(y_true, y_pred, label_of_abstentions(abstain, y_true))
        true, _, names = read_pair(y_true, accepted, self.classes)
        resolved = to_maximise(
            resolve_outputs(
                goal.metric,
                names,
                several=is_two_dimensional(y_true),
                average=goal.average,
                pos_label=goal.pos_label,
                wanted_only=goal.constrained,
                outputs=column_names(y_true) if is_frame(y_true) else self.outputs,
            )
        )
        output_weight = goal.output_weight
        if resolved.support_weighted:
            positive = np.asarray(true == positive_places(resolved.metric, names))
            output_weight = _positives(positive, output_weight, read_sample_weight(sample_weight, len(true)))
        scales = read_order(goal.order, names, self.scales)
        if goal.order is not None:
            check_order_agrees(resolved.metric, scales, names)
        return in_order(resolved.metric, scales).score(
            y_true,
            y_pred,
            sample_weight=sample_weight,
            average=resolved.average if resolved.average_given else None,
            output_weight=output_weight,
            classes=self.classes,
            abstain=abstain,
        )


def _name(metric: Any) -> str:
    if isinstance(metric, str):
        return metric
    return metric.name if isinstance(metric, (Metric, LabelMetric)) else function_name(unwrap(metric).function)


@entry_point("make_scorer")
@refuses_removed("make_scorer")
def make_scorer(
    metric: MetricSpec,
    *,
    average: str | None = None,
    classes: Any = None,
    order: Any = None,
    output_weight: ArrayLike | None = None,
    pos_label: Any = None,
    abstain: bool | float | Abstention | None = None,
    at: str = "predict",
    subject_to: Any = None,
    response: str = "auto",
) -> Any:
    """Make a scikit-learn scorer from a metric, for ``scoring=`` in model selection.

    The scorer rates the predictions of an estimator, or with ``at="best"`` what the best decision rule makes of its
    probabilities: the latter is what to choose models by if :func:`optimize` comes after them.

    Parameters
    ----------
    metric : str, Metric, callable, dict or list
        A metricwise or scikit-learn scorer name, a metric object, a function f(C) of a (K, K) confusion matrix, or a
        function f(y_true, y_pred) of labels; for indicator matrices also a metric of the labels of a row, such as
        "precision@3" or "label_coverage". What a name means depends on the kind of target that is scored: see
        :func:`metricwise.metrics.resolve`. For several outputs, also a dict of metrics keyed by the columns of y (by
        position if they have no names), or a list with one metric per output.
    average : {"micro", "macro", "instance"}, optional
        Average over outputs; "micro" unless a scikit-learn name fixes it, "macro" if each output has its own metric.
        Required if the outputs have different classes.
    classes : array-like, or list of M array-likes, optional
        All class labels. None uses those in `order`, or else the labels that occur among those scored, true or
        predicted, as scikit-learn does. Pass them if the number of classes matters: a small fold may lack a class.
    order : array-like, or list of M array-likes, optional
        Classes from the lowest to the highest, for ordinal metrics on text labels, as in :func:`metricwise.optimize`.
    output_weight : array-like of shape (M,), optional
        Weights of the outputs in the average.
    pos_label : object, or list of M objects, optional
        Label of the positive class of a metric of one class: one for all outputs, or one for each. Required unless the
        labels are 0 and 1, -1 and 1, or False and True.
    abstain : True, float or Abstention, optional
        What an abstention counts for, as in :func:`metricwise.optimize`; a :class:`metricwise.Abstention` has the label
        that an estimator predicts if it abstains. None: every prediction is a class.
    at : {"predict", "best"}, default="predict"
        "predict": the metric of the estimator's predictions. "best": the metric of the best rule for what the estimator
        returns by `response`, as :func:`value_at_best` estimates it on the rows that are scored. Each half of them is
        decided by the rule of the other half; the halves are the same for all candidates.
    subject_to : str, constraint, or list of these, optional
        With ``at="best"``: constraints on the rule, as in :func:`value_at_best`.
    response : {"auto", "predict_proba", "predict_log_proba", "decision_function"}, default="auto"
        With ``at="best"``: the method of the estimator that rules are fitted to; "auto" is `predict_proba`, and
        `decision_function` for estimators without it.

    Returns
    -------
    scorer : callable
        ``scorer(estimator, X, y, sample_weight=None)``, with ``at="best"`` also `groups`; greater is better. Both are
        passed by scikit-learn's metadata routing if the scorer's `set_score_request` asks for them.

    See Also
    --------
    value_at_best : The value of ``at="best"`` as a function of arrays.
    eval_metric : The same for early stopping in LightGBM, XGBoost and CatBoost.
    MetricOptimalClassifierCV : Maximise the metric instead of only measuring it.
    metricwise.metrics.metric_names : All metricwise names.
    sklearn.metrics.make_scorer : Make a scorer from a function of labels.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.model_selection import GridSearchCV
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> import metricwise as mw
    >>> X, y = load_wine(return_X_y=True)
    >>> tree = DecisionTreeClassifier(random_state=0)
    >>> search = GridSearchCV(tree, {"max_depth": [1, 4]}, scoring=mw.make_scorer("g_mean")).fit(X, y)
    >>> search.best_params_
    {'max_depth': 4}

    By the best rule for their probabilities, which :func:`optimize` finds afterwards:

    >>> search.set_params(scoring=mw.make_scorer("g_mean", at="best")).fit(X, y).best_params_
    {'max_depth': 4}
    """
    # scikit-learn is loaded when it is asked for: `import metricwise` stays light.
    refuse_early(metric, average, pos_label)
    _check_at(at, subject_to, response)
    if classes is None and order is not None and not any(labels is None for labels in order):
        classes = order
    goal = GoalSpec(
        metric,
        average,
        pos_label,
        output_weight,
        subject_to=subject_to,
        confidence=None,
        abstain=read_abstain(abstain),
        order=order,
    )
    if at == "best":
        from .best_rule_scorer import BestRuleScorer

        return BestRuleScorer(goal, classes, response, LabelScore(goal).__name__)
    from sklearn.metrics import make_scorer as wrap

    if _is_of_rows(metric):
        refuse_for_labels(RowSpec(None, classes=classes, order=order), goal)
    score = LabelScore(goal, classes)
    return wrap(score, response_method="predict", greater_is_better=True)


@entry_point("score")
def score_labels(
    scorer: LabelScore,
    classes: tuple[NDArray[Any], ...],
    y: Any,
    predicted: NDArray[Any],
    sample_weight: Any,
    declared: bool = False,
) -> float:
    """Return a metric over the classes of a model and those that occur in y, unless the former were declared."""
    labels = observed_labels(y)
    if len(labels.classes) != len(classes) or labels.multioutput != (predicted.ndim == 2):
        raise InvalidParameter("y", f"have the shape of the predictions, {predicted.shape}", np.shape(y))
    all_classes = list(classes)
    if not declared:
        all_classes = joined_classes(classes, labels.classes, scorer.goal)
    names = all_classes if labels.multioutput else all_classes[0]
    return replace(scorer, classes=names)(y, predicted, sample_weight=sample_weight)


@entry_point("score")
def score_label_sets(goal: GoalSpec, y: Any, predicted: Any, sample_weight: Any) -> float:
    """Return a metric of indicator matrices, sparse or dense."""
    return label_value(goal, y, predicted, sample_weight)


def _is_of_rows(metric: Any) -> bool:
    """Whether a metric is about the labels of a row, such as "precision@3"."""
    return isinstance(metric, (str, LabelMetric)) and read_label_metric(metric) is not None


def _check_at(at: Any, subject_to: Any, response: Any) -> None:
    """Refuse settings of the best rule for scorers of predictions, and responses that are none."""
    if at not in ("predict", "best"):
        raise InvalidParameter("at", "be 'predict' or 'best'", shown(at))
    if response not in _RESPONSES:
        raise InvalidParameter("response", f"be one of {', '.join(map(repr, _RESPONSES))}", shown(response))
    for name, value, default in (("subject_to", subject_to, None), ("response", response, "auto")):
        if at == "predict" and value != default:
            raise InvalidParameter(
                name,
                problem=f"{mention(name)} is for the best rule, but the scorer rates the predictions of estimators",
                remedy=f"add {argument('at', 'best')}, or leave it out",
            )


def refuse_early(metric: Any, average: str | None, pos_label: Any) -> None:
    """Raise now what would be raised for every kind of target: model selection turns late errors into NaN."""
    if _is_of_rows(metric):
        of_rows = read_label_metric(metric)
        assert of_rows is not None
        of_rows.check_average(average)
        return
    if isinstance(metric, (Mapping, list, tuple)):
        check_macro(average)
        for part in metric.values() if isinstance(metric, Mapping) else metric:
            _refuse_for_all_kinds(part, None, None)
    else:
        _refuse_for_all_kinds(metric, average, pos_label)


def _refuse_for_all_kinds(metric: Any, average: str | None, pos_label: Any) -> None:
    errors = []
    for kind in KINDS:
        try:
            to_maximise(resolve(metric, kind, average, pos_label=pos_label))
        except InvalidParameter as error:
            errors.append(error)
    if len(errors) == len(KINDS):
        raise errors[0]


def _positives(
    positive: NDArray[np.bool_], output_weight: ArrayLike | None, sample_weight: NDArray[np.float64] | None
) -> ArrayLike | None:
    """Weigh each output by its rows of the positive class, unless there is none at all."""
    rows = np.ones(len(positive)) if sample_weight is None else sample_weight
    support = rows @ positive
    if output_weight is not None:
        support = support * np.asarray(output_weight, dtype=np.float64)
    return support if support.any() else output_weight
