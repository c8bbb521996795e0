"""Training on a loss matrix: weighted empirical risk, the second of the two ways to decide by a loss.

Owns the expansion of rows over classes. The first way, a rule on top of probabilities, is
:class:`metricwise.MetricOptimalClassifierCV`.
"""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.exceptions import DataConversionWarning
from sklearn.utils import get_tags, indexable
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from ..inputs import read_sample_weight, warn_of_order
from ..losses import Loss
from ._compat import HasMethods, count_rows, fit_context, params_of_rows, routing_enabled, take_rows
from ._losses import read_loss
from ._targets import Target, read_target

__all__ = ["CostSensitiveClassifier", "TrainedClassifier", "expand_rows", "fit_weighted", "need_single_output"]


class TrainedClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """Base of classifiers whose estimator was trained to decide by itself: no rule, no probabilities of the labels."""

    estimator: Any

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict labels by the estimator, which was trained for them.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        y : ndarray of shape (n_samples,)
        """
        check_is_fitted(self, "estimator_")
        predicted = np.asarray(self.estimator_.predict(X))
        return self.classes_[predicted] if self.classes_.dtype.kind == "O" else predicted

    def _copy_features(self) -> None:
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))

    def get_metadata_routing(self) -> MetadataRouter:
        """Return who takes which metadata: `sample_weight` here, the rest the estimator.

        Returns
        -------
        routing : MetadataRouter
        """
        return (
            MetadataRouter(owner=self)
            .add_self_request(self)
            .add(estimator=self.estimator, method_mapping=MethodMapping().add(caller="fit", callee="fit"))
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.input_tags.allow_nan = inner.input_tags.allow_nan
        return tags


class CostSensitiveClassifier(TrainedClassifier):
    """Train any estimator that takes sample weights to decide by a loss matrix.

    Each row is repeated for every class j with the weight ``max(L) - L[y, j]``, as if its label were j. The class that
    is most probable under the weighted rows is the one of least expected loss, so the estimator's own decisions
    minimise it. What `predict_proba` of the estimator then says is not the probability of the labels, and is not
    offered.

    Prefer a rule on top of probabilities (:class:`MetricOptimalClassifierCV`) where the estimator's probabilities are
    any good: it trains once for all losses, on N rows instead of up to N K, and the loss can be changed later. Prefer
    this one where the model is too small to get all probabilities right, and should spend what it has on the decisions
    that cost most.

    Parameters
    ----------
    estimator : estimator
        A classifier whose fit takes `sample_weight`.
    loss : array-like of shape (n_classes, n_classes), Loss or None
        Loss of predicting the class of the column where that of the row is true; classes in the order of ``classes_``,
        sorted, or by name in a data frame whose rows and columns are named like the classes. None is 1 for every wrong
        decision, which is the estimator itself. Its scale is that of the weights. A constant added to a row changes no
        best decision, but the weights: rows whose largest entry is 0 need the fewest repetitions.

    Attributes
    ----------
    estimator_ : estimator
    classes_ : ndarray of shape (n_classes,)
    loss_ : ndarray of shape (n_classes, n_classes)
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)

    References
    ----------
    N. Abe, B. Zadrozny, J. Langford. An iterative method for multi-class cost-sensitive learning. KDD 2004.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.metrics import confusion_matrix
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> import metricwise as mw
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> tree = DecisionTreeClassifier(max_depth=2, random_state=0)
    >>> confusion_matrix(y, tree.fit(X, y).predict(X)).tolist()
    [[199, 13], [20, 337]]
    >>> model = mw.CostSensitiveClassifier(tree, [[-10, 0], [0, -1]]).fit(X, y)  # class 0 must not be missed
    >>> confusion_matrix(y, model.predict(X)).tolist()
    [[209, 3], [55, 302]]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimator": [HasMethods(["fit", "predict"])],
        "loss": ["array-like", Loss, None],
    }

    def __init__(self, estimator: Any, loss: Any) -> None:
        self.estimator = estimator
        self.loss = loss

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> CostSensitiveClassifier:
        """Fit the estimator to the rows, repeated and weighted by the loss.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
            Multiplies the weights.
        **params
            For the estimator's fit; what has one entry per row is repeated with the rows.

        Returns
        -------
        self : object
        """
        who = type(self).__name__
        warn_of_order(who, 3, X=X, y=y, sample_weight=sample_weight)
        X, y = indexable(X, y)
        target = need_single_output(read_target(y, who), who)
        self.loss_ = read_loss(self.loss, target.classes[0], who)
        self.classes_ = target.classes[0]
        weight = read_sample_weight(sample_weight, count_rows(X), who)
        if routing_enabled():
            params = process_routing(self, "fit", **params).estimator.fit
        self.estimator_ = fit_weighted(clone(self.estimator), X, target, self.loss_, weight, params, who)
        self._copy_features()
        return self


def need_single_output(target: Target, who: str) -> Target:
    """Refuse several outputs; a single column is taken as 1-D."""
    if target.n_outputs > 1:
        raise ValueError(f"{who}: y must be 1-D, got {target.n_outputs} outputs; fit one classifier per output.")
    if target.several:
        words = f"A column-vector y was passed when a 1d array was expected by {who}."
        warnings.warn(words, DataConversionWarning, stacklevel=3)
    return Target(target.codes, target.classes, False)


def expand_rows(
    codes: NDArray[Any], loss: NDArray[np.float64], sample_weight: NDArray[np.float64] | None
) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.float64]]:
    """Repeat rows over the classes j with weight ``max(L) - L[y, j]``; what has no weight is left out.

    Parameters
    ----------
    codes : integer ndarray of shape (N,)
    loss : ndarray of shape (K, K)
    sample_weight : ndarray of shape (N,), optional

    Returns
    -------
    rows, labels : integer ndarray of shape (n,)
        Which row, and the code that it is given.
    weight : ndarray of shape (n,)
    """
    weight = (loss.max() - loss)[codes]
    if sample_weight is not None:
        weight = weight * sample_weight[:, None]
    # Class by class, so that with the 0-1 loss the rows keep their order within each class.
    labels, rows = np.nonzero(weight.T)
    order = np.argsort(rows, kind="stable")
    rows, labels = rows[order], labels[order]
    return rows, labels, weight[rows, labels]


def fit_weighted(
    estimator: Any,
    X: Any,
    target: Target,
    loss: NDArray[np.float64],
    sample_weight: NDArray[np.float64] | None,
    params: dict[str, Any],
    who: str,
) -> Any:
    """Fit an estimator to rows that are repeated and weighted by a loss."""
    if not (has_fit_parameter(estimator, "sample_weight") or (routing_enabled() and hasattr(estimator, "steps"))):
        raise ValueError(
            f"{who}: estimator must take sample_weight in fit, and {type(estimator).__name__} does not; put a Pipeline "
            "around this classifier, not inside it, or enable metadata routing."
        )
    rows, labels, weight = expand_rows(target.codes[:, 0], loss, sample_weight)
    if len(rows) == 0:
        raise ValueError(f"{who}: loss and sample_weight leave no row of positive weight.")
    same = len(rows) == len(target.codes) and np.array_equal(rows, np.arange(len(rows)))
    if not same:
        params, X = params_of_rows(X, params, indices=rows), take_rows(X, rows)
    unweighted = sample_weight is None and np.array_equal(weight, np.ones(len(weight)))
    given = {} if unweighted else {"sample_weight": weight}
    return estimator.fit(X, target.named(0)[labels], **given, **params)
