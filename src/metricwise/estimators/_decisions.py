"""What every classifier with a rule shares: probabilities of the estimator, decisions of the rule.

Owns prediction. Must not know how the rule or the estimator came about.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.utils import estimator_html_repr, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ..core.errors import entry_point
from ..inspection.card import estimator_card
from ..rules import Rule
from ._compat import VisualBlock
from ._probabilities import aligned_proba, pack
from ._targets import Target

__all__ = ["RuleClassifier"]


def _gives_probabilities(self: Any) -> bool:
    estimator = getattr(self, "estimator_", self.estimator)
    if getattr(self, "calibration", None) is None:
        getattr(estimator, "predict_proba")  # noqa: B009  # its own AttributeError is the best message
    return True


class RuleClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """Base of classifiers that predict with ``rule_`` on the probabilities of ``estimator_``."""

    estimator: Any

    def _fitted(self, X: Any = None) -> tuple[Any, Rule]:
        """Return the fitted estimator and the rule, which may have to be read off what is predicted for X."""
        check_is_fitted(self, "estimator_")
        return self.estimator_, self.rule_

    @entry_point("{class}.predict")
    def _blocks(self, X: Any) -> tuple[list[NDArray[Any]], Target, Rule]:
        estimator, rule = self._fitted(X)
        schema = rule.schema
        target = Target(np.empty((0, schema.n_outputs), dtype=np.intp), schema.classes, schema.multioutput)
        if rule.metadata.column_order is not None:  # columns are aligned here, by the classes of the estimator
            rule = rule.with_metadata(column_order=None)
        return aligned_proba(estimator, X, target), target, rule

    def predict(self, X: Any, sensitive_features: Any = None) -> NDArray[Any]:
        """Predict labels by the rule.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_sensitive), optional
            The sensitive group of every row, where the rule has a loss for each; a rule that sees no group ignores it.

        Returns
        -------
        y : ndarray of shape (n_samples,), or (n_samples, n_outputs)
        """
        blocks, target, rule = self._blocks(X)
        proba = pack(blocks, target)
        return rule.predict(proba, sensitive_features=sensitive_features)

    @available_if(_gives_probabilities)
    def predict_proba(self, X: Any) -> Any:
        """Return the class probabilities of the estimator.

        Their argmax is not what `predict` returns: the rule is made for another metric than accuracy.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        proba : ndarray of shape (n_samples, n_classes), or list of n_outputs such arrays
            Columns in the order of ``classes_``.
        """
        blocks, target, _ = self._blocks(X)
        return blocks if target.several else blocks[0]

    def decision_distribution(self, X: Any, sensitive_features: Any = None) -> NDArray[np.float64]:
        """Return the probability with which `predict` gives each class: 0 or 1, unless the rule is randomised.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_sensitive), optional
            As in `predict`.

        Returns
        -------
        distribution : ndarray of shape (n_samples, n_classes), or (n_samples, n_outputs, n_classes)
        """
        blocks, target, rule = self._blocks(X)
        proba = pack(blocks, target)
        return rule.distribution(proba, sensitive_features=sensitive_features)

    # ---------------------------------------------------------------------------------------------------- in a notebook

    def _html_repr(self) -> str:
        """Return the diagram, and below it the card of what was found."""
        card = estimator_card(self)
        return estimator_html_repr(self) + ("" if card is None else str(card))

    def _sk_visual_block_(self) -> Any:
        """Return the diagram: the estimator, and behind it the rule once there is one."""
        model = self.estimator
        inner = VisualBlock(
            "parallel", [model], names=[f"estimator: {type(model).__name__}"], name_details=[str(model)]
        )
        rule = getattr(self, "rule_", None)
        if rule is None:
            return inner
        words = rule.describe()
        shown = VisualBlock("single", None, names=f"rule_: {type(rule).__name__}", name_details=words)
        return VisualBlock("serial", [inner, shown], dash_wrapped=False)

    def _copy_features(self) -> None:
        """Take over what the estimator knows of the columns of X."""
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
            elif hasattr(self, name):
                delattr(self, name)  # of an earlier fit

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.input_tags.allow_nan = inner.input_tags.allow_nan
        tags.input_tags.pairwise = inner.input_tags.pairwise
        tags.target_tags.multi_output = True
        tags.classifier_tags.multi_label = True
        return tags
