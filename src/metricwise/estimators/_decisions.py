"""Base classes of classifiers with a rule: probabilities of the estimator, decisions of the rule.

Must not know how the rule or the estimator was fitted.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import estimator_html_repr, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from ..core.errors import InvalidParameter, entry_point, mention, warn
from ..data.row_costs import read_row_costs
from ..inspection.card import estimator_card
from ..metrics.abstention import read_abstain
from ..rules.base import Rule
from ._compat import MetaClassifier, VisualBlock
from ._probabilities import aligned_proba, pack
from ._targets import Target

__all__ = ["RowCostClassifier", "RuleClassifier", "weight_for_fit"]


def _gives_probabilities(self: Any) -> bool:
    estimator = getattr(self, "estimator_", self.estimator)
    if getattr(self, "calibration", None) is None:
        getattr(estimator, "predict_proba")  # noqa: B009  # its own AttributeError is the best message
    return True


class RuleClassifier(MetaClassifier):
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
        description = rule.describe()
        shown = VisualBlock("single", None, names=f"rule_: {type(rule).__name__}", name_details=description)
        return VisualBlock("serial", [inner, shown], dash_wrapped=False)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = get_tags(self.estimator).input_tags.pairwise
        return tags


class RowCostClassifier(RuleClassifier):
    """Base of classifiers whose rule may be one for costs per row."""

    def predict(self, X: Any, sensitive_features: Any = None, *, cost: Any = None) -> NDArray[Any]:
        """Predict labels by the rule.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_sensitive), optional
            The sensitive group of every row, where the rule has a loss for each; a rule that sees no group ignores it.
        cost : array-like of shape (n_samples, n_classes) or (n_samples, n_classes, n_classes), optional
            Costs of these rows, if the rule was fitted to costs per row.

        Returns
        -------
        y : ndarray of shape (n_samples,), or (n_samples, n_outputs)
        """
        if not self._by_costs(cost):
            return super().predict(X, sensitive_features)
        blocks, target, rule = self._blocks(X)
        return rule.predict(pack(blocks, target), cost=cost)

    def decision_distribution(self, X: Any, sensitive_features: Any = None, *, cost: Any = None) -> NDArray[Any]:
        """Return the probability with which `predict` gives each class: 0 or 1, unless the rule is randomised.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        sensitive_features, cost : array-like, optional
            As in `predict`.

        Returns
        -------
        distribution : ndarray of shape (n_samples, n_classes), or (n_samples, n_outputs, n_classes)
            With one more column, the last one, if the rule may abstain.
        """
        if not self._by_costs(cost):
            return super().decision_distribution(X, sensitive_features)
        blocks, target, rule = self._blocks(X)
        return rule.distribution(pack(blocks, target), cost=cost)

    def _minus_cost(self, X: Any, y: Any, cost: Any, sample_weight: Any) -> float:
        """Return minus the mean cost of the predictions."""
        blocks, target, rule = self._blocks(X)
        return rule.value(pack(blocks, target), y, cost, sample_weight)  # type: ignore[attr-defined]  # a CostRule

    def _by_costs(self, cost: Any) -> bool:
        """Whether the rule goes by costs per row; refuse those where it does not."""
        if "cost" in self._fitted()[1].needs:
            return True
        if cost is not None:
            raise InvalidParameter(
                "cost",
                problem=f"{mention('cost')} is only for rules that were fitted to costs per row",
                remedy="leave it out, or pass cost to fit with metric='cost'",
                owner=type(self).__name__,
            )
        return False

    @entry_point("{class}")
    def _read_cost(self, cost: Any, target: Target, abstain: Any) -> NDArray[Any]:
        """Return costs per row, checked before any model is fitted."""
        abstention = read_abstain(abstain)
        price = None if abstention is None else abstention.terms.cost
        n_rows, k = target.codes.shape[0], max(map(len, target.classes))
        return read_row_costs(cost, n_rows, k, abstain=abstention is not None, abstain_cost=price)


def weight_for_fit(estimator: Any, sample_weight: Any, calibrated: bool = False) -> dict[str, Any]:
    """Return the weights as parameters of an estimator's fit, or warn that it does not take them."""
    if sample_weight is None:
        return {}
    if calibrated or has_fit_parameter(estimator, "sample_weight"):
        return {"sample_weight": sample_weight}
    warn(
        f"{type(estimator).__name__} does not take {mention('sample_weight')}, so the weights apply to the "
        "metric only. A Pipeline takes them with metadata routing enabled."
    )
    return {}
