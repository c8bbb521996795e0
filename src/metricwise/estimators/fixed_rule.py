"""Any classifier with a given rule."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import Bunch, indexable
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import check_is_fitted

from ..core.errors import InvalidParameter, entry_point
from ..core.inputs import identity
from ..core.losses import Loss
from ..data.frames import warn_of_order
from ..data.weights import read_sample_weight
from ..export.converters import convertible
from ..goals.spec import GoalSpec
from ..metrics.abstention import Abstention
from ..metrics.linear import Accuracy
from ..rules.base import Rule
from ..rules.calibration import TemperatureScaling
from ..rules.label_base import LabelRuleBase
from ..rules.load import as_rule
from ..rules.weighted import WeightedRule
from ._boosters import NativeBooster, as_classifier
from ._compat import HasMethods, count_rows, fit_context, routing_enabled
from ._decisions import RuleClassifier, weight_for_fit
from ._labels import form_of, read_label_target
from ._probabilities import make_trainable, train
from ._responses import METHODS, RESPONSES, fitted_classes, response_for
from ._targets import Target, read_target
from .scoring import LabelScore, score_label_sets, score_labels

__all__ = ["FixedRuleClassifier"]


@convertible
class FixedRuleClassifier(RuleClassifier):
    """Classifier that applies a given rule to the probabilities, log-probabilities or scores of an estimator.

    The rule's `input` says which method of the estimator it is applied to: probabilities are `predict_proba`,
    log-probabilities `predict_log_proba`, scores `decision_function`. Logits are `predict_log_proba`, because
    log-probabilities are logits of any model, and `decision_function` for estimators that lack it.

    `fit` fits the estimator only. With a fitted estimator, `predict` works without calling `fit`. An estimator that
    takes codes 0 to K - 1 only, such as XGBClassifier, is fitted to the codes of the labels in y.

    Parameters
    ----------
    estimator : estimator, lightgbm.Booster, xgboost.Booster or catboost.CatBoost
        A classifier with the method that the rule needs. A native model must have been trained for a classification
        objective, and cannot be fitted here. A rule on probabilities takes its probabilities, where those of one class
        against the rest are divided by their sum; a rule on logits or scores takes its raw margins. X is what the
        library predicts from, and for an xgboost.Booster also arrays and data frames. Native models of LightGBM and
        XGBoost, and a fitted XGBClassifier, know codes 0 to K - 1 only: code j is the label of column j of the
        probabilities that the rule was fitted to, which is the j-th of its classes unless these are the codes
        themselves.
    rule : WeightedRule, MixtureRule, GroupedRule, LabelRule, LabelSetRule, path, str, dict or None
        A rule, a JSON file or text written by `to_json`, or a dict from `to_dict`; None means argmax, of the
        `decision_function` if the estimator has no `predict_proba`. Its classes must be those of the estimator, in any
        order. With a rule for very many labels, y is an indicator matrix, and the estimator may return sparse values.

    Attributes
    ----------
    estimator_ : estimator
        The fitted estimator.
    rule_ : WeightedRule, MixtureRule, GroupedRule, LabelRule or LabelSetRule
        The rule.
    classes_ : ndarray of shape (n_classes,), or list of n_outputs such arrays
        The class labels, in the order of the rule.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features seen during `fit`, if they are all strings.

    See Also
    --------
    MetricOptimalClassifierCV : Optimise the rule for a metric.
    sklearn.model_selection.FixedThresholdClassifier : Apply a threshold to a binary classifier.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> import metricwise as mw
    >>> X, y = load_iris(return_X_y=True)
    >>> rule = mw.MetricOptimalClassifierCV(LogisticRegression(max_iter=1000), metric="g_mean").fit(X, y).rule_
    >>> saved = rule.to_json()
    >>> model = mw.FixedRuleClassifier(LogisticRegression(max_iter=1000), saved).fit(X, y)
    >>> bool(model.rule_ == rule)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimator": [HasMethods(["fit", method]) for method in METHODS],
        "rule": [Rule, str, os.PathLike, Mapping, None],
    }

    def __init__(self, estimator: Any, rule: Any) -> None:
        self.estimator = estimator
        self.rule = rule

    @fit_context(prefer_skip_nested_validation=False)
    @entry_point("{class}")
    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> FixedRuleClassifier:
        """Fit the estimator.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), or sparse indicator matrix
        sample_weight : array-like of shape (n_samples,), optional
        **params
            Parameters for the estimator's `fit`.

        Returns
        -------
        self : object
        """
        warn_of_order(X=X, y=y, sample_weight=sample_weight)
        X, y = indexable(X, y)
        fitted_rule = None if self.rule is None else self._read_rule()
        target = read_label_target(y) if isinstance(fitted_rule, LabelRuleBase) else read_target(y)
        sample_weight = read_sample_weight(sample_weight, count_rows(X))
        rule = _argmax_rule(target, self.estimator) if fitted_rule is None else fitted_rule
        response_for(
            rule.schema.input.kind, self.estimator
        )  # an estimator that lacks it is refused before it is fitted
        if rule.multioutput != target.several or rule.n_outputs != target.n_outputs:
            raise InvalidParameter(
                "y",
                f"have {rule.n_outputs} outputs{', in a 2-D array' if rule.multioutput else ''}, as the rule has",
                f"shape {np.shape(y)}",
            )
        target = target.of_classes(rule.classes)
        if routing_enabled():
            routed = process_routing(self, "fit", sample_weight=sample_weight, **params)
        else:
            routed = Bunch(estimator=Bunch(fit={**params, **weight_for_fit(self.estimator, sample_weight)}))
        model = make_trainable(self.estimator, target)
        self.estimator_ = train(model, X, target, None, routed.estimator.fit)
        self.rule_ = rule
        self._form_of_y = form_of(y)
        self._copy_features()
        return self

    @property
    def classes_(self) -> Any:
        """Class labels in the order of the rule."""
        rule = self._fitted()[1]
        return list(rule.classes) if rule.multioutput else rule.classes[0]

    def score(
        self, X: Any, y: Any, sample_weight: Any = None, sensitive_features: Any = None, *, segments: Any = None
    ) -> float:
        """Return the share of right decisions among the observed labels of all outputs.

        If the rule may abstain, only the labels that it decided about are counted.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        sample_weight : array-like of shape (n_samples,), optional
        sensitive_features, segments : array-like, optional
            As in `predict`.

        Returns
        -------
        score : float
        """
        predicted, rule = self.predict(X, sensitive_features, segments=segments), self._fitted(X)[1]
        abstain = None if rule.abstain_label is None else Abstention(label=rule.abstain_label)
        goal = GoalSpec(Accuracy(), "micro" if rule.multioutput else None, abstain=abstain)
        if isinstance(rule, LabelRuleBase):
            return score_label_sets(goal, y, predicted, sample_weight)
        return score_labels(LabelScore(goal), rule.classes, y, predicted, sample_weight)

    def _fitted(self, X: Any = None) -> tuple[Any, Rule]:
        if hasattr(self, "estimator_"):
            return self.estimator_, self.rule_
        estimator = as_classifier(self.estimator)
        check_is_fitted(estimator)
        return estimator, _argmax_of(estimator, X) if self.rule is None else self._read_rule()

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "estimator_") or _is_fitted(self.estimator)

    def _validate_params(self) -> None:
        """Refuse to fit a native model in a sentence of its own."""
        estimator = as_classifier(self.estimator)
        if isinstance(estimator, NativeBooster):
            estimator.fit(None, None)
        super()._validate_params()

    def _read_rule(self) -> Rule:
        return as_rule(self.rule)

    def get_metadata_routing(self) -> MetadataRouter:
        """Return the metadata routing: all metadata is passed to the estimator.

        Returns
        -------
        routing : MetadataRouter
        """
        return MetadataRouter(owner=self).add(
            estimator=self.estimator, method_mapping=MethodMapping().add(caller="fit", callee="fit")
        )


def _is_fitted(estimator: Any) -> bool:
    try:
        check_is_fitted(as_classifier(estimator))
    except Exception:  # scikit-learn's NotFittedError, or a TypeError for what is no estimator
        return False
    return True


def _argmax_rule(target: Target, estimator: Any) -> WeightedRule:
    """Return the rule that predicts the largest value of the first response that the estimator has."""
    width = max(len(labels) for labels in target.classes)
    kind = next(response.kind for response in RESPONSES if response.is_given_by(estimator))
    link = None if kind == "probabilities" else TemperatureScaling.of_arrays(identity(target.n_outputs, width))
    return WeightedRule(Loss.argmax(width), target.classes, link=link, multioutput=target.several, input=kind)


def _argmax_of(estimator: Any, X: Any) -> WeightedRule:
    if isinstance(estimator, NativeBooster):
        raise InvalidParameter(
            "rule", f"be given for a native {estimator.title}, because its classes are those of the rule", "None"
        )
    classes, several = fitted_classes(estimator, X)
    return _argmax_rule(Target(np.empty((0, len(classes)), dtype=np.intp), classes, several), estimator)
