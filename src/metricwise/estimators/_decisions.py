"""Base classes of classifiers with a rule: the response of the estimator, decisions of the rule.

Must not know how the rule or the estimator was fitted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import estimator_html_repr, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from ..core.errors import InvalidParameter, entry_point, mention, warn
from ..core.labels import python_labels
from ..data.label_rows import is_sparse
from ..data.row_costs import read_row_costs
from ..inspection.card import estimator_card
from ..metrics.abstention import read_abstain
from ..rules.base import Rule
from ..rules.label_base import LabelRuleBase
from ._boosters import as_classifier
from ._compat import HtmlRepr, MetaClassifier, VisualBlock
from ._labels import as_given, label_matrix
from ._responses import PROBA, Blocks, response_for
from ._targets import Target

__all__ = ["RowCostClassifier", "RuleClassifier", "weight_for_fit"]


def _gives_probabilities(self: Any) -> bool:
    estimator = getattr(self, "estimator_", self.estimator)
    if getattr(self, "calibration", None) is None:
        getattr(as_classifier(estimator), "predict_proba")  # noqa: B009  # its own AttributeError is the best message
    return True


class RuleClassifier(HtmlRepr, MetaClassifier):
    """Base of classifiers that predict with ``rule_`` on the response of ``estimator_`` that it takes."""

    estimator: Any

    def _fitted(self, X: Any = None) -> tuple[Any, Rule]:
        """Return the fitted estimator and the rule, which may have to be read off what is predicted for X."""
        check_is_fitted(self, "estimator_")
        return self.estimator_, self.rule_

    @entry_point("{class}.predict")
    def _read(self, X: Any, in_fitted_order: bool = False) -> tuple[Any, Rule]:
        """Return what the rule takes, and the rule, whose columns are aligned by the classes of the estimator.

        With `in_fitted_order`, columns are in the order that the rule was fitted to, and the rule is as it is.
        """
        estimator, rule = self._fitted(X)
        response, target = response_for(rule.schema.input.kind, estimator), _target_of(rule)
        if isinstance(rule, LabelRuleBase):
            return label_matrix(response, response.ask(estimator, X), estimator, target), rule
        blocks = response.blocks(estimator, X, target)
        if rule.metadata.column_order is not None:
            if in_fitted_order:
                blocks = _ordered(blocks, rule.metadata.column_order, target)
            else:
                rule = rule.with_metadata(column_order=None)
        return response.pack(blocks, target, both=rule.metadata.single_column is False), rule

    def decision_input(self, X: Any) -> Any:
        """Return what the rule takes: probabilities, log-probabilities, logits or scores of the estimator.

        ``rule_.predict(decision_input(X))`` is what `predict` returns; ``rule_.input`` says which of them it is.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        values : ndarray, or list of n_outputs ndarrays of shape (n_samples, n_classes)
            (n_samples, n_classes), or (n_samples,) for scores of two classes; of several outputs
            (n_samples, n_outputs, n_classes), or (n_samples, n_outputs) for scores of two classes each, and a list if
            they have different numbers of classes. For a rule of very many labels (n_samples, n_outputs), the value of
            each label, sparse if the estimator returns it so.
        """
        return self._read(X, in_fitted_order=True)[0]

    def predict(self, X: Any, sensitive_features: Any = None, *, segments: Any = None) -> Any:
        """Predict labels by the rule.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_sensitive), optional
            The sensitive group of every row, where the rule has a loss for each; a rule that sees no group ignores it.
        segments : array-like of shape (n_samples,) or (n_samples, n_columns), optional
            The segment of every row, where the rule has a calibration for each; other rules ignore it.

        Returns
        -------
        y : ndarray of shape (n_samples,), or (n_samples, n_outputs)
            Of a rule for very many labels, a sparse indicator matrix if y was sparse in `fit`.
        """
        values, rule = self._read(X)
        predicted = rule.predict(values, sensitive_features=sensitive_features, segments=segments)
        form = getattr(self, "_form_of_y", None)
        return as_given(predicted, form) if isinstance(rule, LabelRuleBase) and form is not None else predicted

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
            Columns in the order of ``classes_``. Of an estimator with sparse probabilities, a sparse array of shape
            (n_samples, n_outputs).
        """
        blocks = self._probabilities(X)
        if not isinstance(blocks, list):
            return blocks
        return blocks if self._fitted(X)[1].multioutput else blocks[0]

    @entry_point("{class}.predict")
    def _probabilities(self, X: Any) -> Any:
        estimator, rule = self._fitted(X)
        raw = PROBA.ask(estimator, X)
        if isinstance(rule, LabelRuleBase) and is_sparse(raw):
            return raw
        return PROBA.blocks_of(raw, estimator, _target_of(rule))

    def decision_distribution(
        self, X: Any, sensitive_features: Any = None, *, segments: Any = None
    ) -> NDArray[np.float64]:
        """Return the probability with which `predict` gives each class: 0 or 1, unless the rule is randomised.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        sensitive_features, segments : array-like, optional
            As in `predict`.

        Returns
        -------
        distribution : ndarray of shape (n_samples, n_classes), or (n_samples, n_outputs, n_classes)
        """
        values, rule = self._read(X)
        return rule.distribution(values, sensitive_features=sensitive_features, segments=segments)

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
        tags.input_tags.pairwise = get_tags(as_classifier(self.estimator)).input_tags.pairwise
        return tags


class RowCostClassifier(RuleClassifier):
    """Base of classifiers whose rule may be one for costs per row."""

    def predict(self, X: Any, sensitive_features: Any = None, *, cost: Any = None, segments: Any = None) -> Any:
        """Predict labels by the rule.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_sensitive), optional
            The sensitive group of every row, where the rule has a loss for each; a rule that sees no group ignores it.
        cost : array-like of shape (n_samples, n_classes) or (n_samples, n_classes, n_classes), optional
            Costs of these rows, if the rule was fitted to costs per row.
        segments : array-like of shape (n_samples,) or (n_samples, n_columns), optional
            The segment of every row, where the rule has a calibration for each; other rules ignore it.

        Returns
        -------
        y : ndarray of shape (n_samples,), or (n_samples, n_outputs)
            Of a rule for very many labels, a sparse indicator matrix if y was sparse in `fit`.
        """
        if not self._by_costs(cost):
            return super().predict(X, sensitive_features, segments=segments)
        values, rule = self._read(X)
        return rule.predict(values, cost=cost)

    def decision_distribution(
        self, X: Any, sensitive_features: Any = None, *, cost: Any = None, segments: Any = None
    ) -> NDArray[Any]:
        """Return the probability with which `predict` gives each class: 0 or 1, unless the rule is randomised.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        sensitive_features, cost, segments : array-like, optional
            As in `predict`.

        Returns
        -------
        distribution : ndarray of shape (n_samples, n_classes), or (n_samples, n_outputs, n_classes)
            With one more column, the last one, if the rule may abstain.
        """
        if not self._by_costs(cost):
            return super().decision_distribution(X, sensitive_features, segments=segments)
        values, rule = self._read(X)
        return rule.distribution(values, cost=cost)

    def _minus_cost(self, X: Any, y: Any, cost: Any, sample_weight: Any) -> float:
        """Return minus the mean cost of the predictions."""
        values, rule = self._read(X)
        return rule.value(values, y, cost, sample_weight)  # type: ignore[attr-defined]  # a CostRule

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
        n_rows, k = target.n_rows, max(map(len, target.classes))
        return read_row_costs(cost, n_rows, k, abstain=abstention is not None, abstain_cost=price)


def _target_of(rule: Rule) -> Target:
    """Return a target without rows that has the outputs and classes of a rule."""
    schema = rule.schema
    codes = np.empty((0, schema.n_outputs), dtype=np.intp)
    return Target(codes, schema.classes, schema.multioutput, column_order=rule.metadata.column_order)


def _ordered(blocks: Blocks, orders: Sequence[Sequence[Any] | None], target: Target) -> Blocks:
    """Return blocks whose columns are in the orders that a rule was fitted to; single columns stay as they are."""
    return [
        block
        if order is None or block.shape[1] != len(order)
        else block[:, [python_labels(labels).index(label) for label in order]]
        for block, order, labels in zip(blocks, orders, target.classes, strict=True)
    ]


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
