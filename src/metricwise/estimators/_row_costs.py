"""Decisions by costs of each row, for classifiers whose rule may go by them.

Owns `cost=` of `predict`, and the score by it. Must not know how the rule came about.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from ..core.errors import InvalidParameter, entry_point, mention
from ..data import read_row_costs
from ..metrics.abstention import read_abstain
from ._decisions import RuleClassifier
from ._probabilities import pack
from ._targets import Target

__all__ = ["RowCostClassifier"]


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
        found: Any = self._fitted()[1]
        if "cost" in found.needs:
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
        """Return costs per row; what is wrong with them must not cost any fits."""
        abstention = read_abstain(abstain)
        price = None if abstention is None else abstention.terms.cost
        n_rows, k = target.codes.shape[0], max(map(len, target.classes))
        return read_row_costs(cost, n_rows, k, abstain=abstention is not None, abstain_cost=price)
