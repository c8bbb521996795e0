"""Training on a loss matrix, by rows that are repeated over the classes and weighted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning
from sklearn.utils import indexable
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from ..core.errors import InvalidParameter, entry_point, mention, warn
from ..core.labels import decode
from ..core.losses import Loss
from ..data.frames import warn_of_order
from ..data.weights import read_sample_weight
from ..goals.spec import GoalSpec
from ..metrics.linear import Accuracy
from ._compat import HasMethods, MetaClassifier, count_rows, fit_context, routing_enabled
from ._losses import read_losses
from ._per_output import PerOutputClassifier, Sample, fit_sample, predict_codes
from ._targets import Target, read_target
from .scoring import LabelScore, score_labels

__all__ = ["CostSensitiveClassifier", "TrainedClassifier", "decide", "expand_rows", "fit_weighted", "read_outputs"]

FloatArray = NDArray[np.float64]


class TrainedClassifier(MetaClassifier):
    """Base of classifiers whose estimator was trained to decide by itself: no rule, no probabilities of the labels."""

    estimator: Any
    loss_: Any

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict labels with the estimator, which was trained to decide by itself.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        y : ndarray of shape (n_samples,), or (n_samples, n_outputs)
        """
        check_is_fitted(self, "estimator_")
        target = self._empty_target()
        codes = decide(self.estimator_, X, target, self.loss_ if target.several else [self.loss_])
        return decode(codes if target.several else codes[:, 0], target.classes)

    def _empty_target(self) -> Target:
        """Return the target that the estimator was fitted to, without its rows."""
        several = isinstance(self.classes_, list)
        classes = tuple(self.classes_) if several else (self.classes_,)
        return Target(np.empty((0, len(classes)), dtype=np.intp), classes, several)

    @entry_point("{class}")
    def _train(
        self,
        X: Any,
        target: Target,
        losses: Sequence[FloatArray],
        weight: FloatArray | None,
        params: dict[str, Any],
        n_jobs: int | None,
    ) -> None:
        """Fit the estimator to all rows, and set what is public of it, of the target and of the losses."""
        self.estimator_ = fit_weighted(clone(self.estimator), X, target, losses, weight, params, n_jobs)
        if target.several and all(model is None for model in self.estimator_.estimators_):
            raise _no_rows()
        self.classes_ = target.public_classes
        self.loss_ = list(losses) if target.several else losses[0]
        self._copy_features()

    def get_metadata_routing(self) -> MetadataRouter:
        """Return the metadata routing: `sample_weight` is used here, the rest is passed to the estimator.

        Returns
        -------
        routing : MetadataRouter
        """
        return (
            MetadataRouter(owner=self)
            .add_self_request(self)
            .add(estimator=self.estimator, method_mapping=MethodMapping().add(caller="fit", callee="fit"))
        )


class CostSensitiveClassifier(TrainedClassifier):
    """Train any estimator that takes sample weights to minimise a loss matrix.

    Each row is repeated for every class j with the weight ``max(L) - L[y, j]``, as if its label were j. The class that
    is most probable under the weighted rows is the one with the least expected loss, so that the estimator's decisions
    minimise it. The estimator's `predict_proba` then no longer estimates the probabilities of the labels, and is not
    available.

    With a 2-D y, each output has a loss matrix, and the risk is the sum over outputs: one clone of the estimator is
    fitted per output, on the rows whose label is observed. An output with only one class is predicted as a constant; an
    output without labels gets the class with the least loss under equally likely classes.

    Prefer a rule based on probabilities (:class:`MetricOptimalClassifierCV`) if the estimator's probabilities are
    reasonably good: it trains once for all losses, on N rows instead of up to N K, and the loss can be changed later.
    Prefer this classifier if the model is too small to estimate all probabilities well, so that its capacity is best
    spent on the decisions that cost most.

    Parameters
    ----------
    estimator : estimator
        A classifier whose fit takes `sample_weight`.
    loss : array-like of shape (n_classes, n_classes), list of n_outputs such matrices, Loss or None
        Loss of predicting the class of the column if the class of the row is true, with classes in the order of
        ``classes_`` or, in a data frame, by the names of rows and columns. None is a loss of 1 for every wrong
        decision, which is plain training. The scale of the loss is that of the weights. A constant added to a row does
        not change the best decisions, but it changes the weights: rows whose largest entry is 0 need the fewest
        repetitions. For a 2-D y, a single matrix applies to all outputs; a list, which may contain None, or an array of
        shape (n_outputs, n_classes, n_classes) has one matrix per output.
    classes : array-like, or list of n_outputs array-likes, optional
        All labels that may occur, in order; they become `classes_`. None uses the sorted labels of y.
    n_jobs : int, optional
        Number of outputs that are fitted in parallel.

    Attributes
    ----------
    estimator_ : estimator
        The fitted estimator. For a 2-D y, a container with a fitted clone for each output in ``estimators_``, None for
        an output without labels.
    classes_ : ndarray of shape (n_classes,), or list of n_outputs such arrays
        The class labels.
    loss_ : ndarray of shape (n_classes, n_classes), or list of n_outputs such arrays
        The loss that the estimator was trained on.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features seen during `fit`, if they are all strings.

    See Also
    --------
    MetricWeightedClassifier : Find the loss for a metric.
    MetricOptimalClassifierCV : A rule on top of probabilities.
    sklearn.multioutput.MultiOutputClassifier : One estimator per output, without a loss.

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

    Two outputs, with missing labels in the second:

    >>> import numpy as np
    >>> large = np.where(np.arange(len(y)) % 3 == 0, np.nan, X[:, 0] > 15)
    >>> model = mw.CostSensitiveClassifier(tree, [[[-10, 0], [0, -1]], None]).fit(X, np.column_stack([y, large]))
    >>> confusion_matrix(y, model.predict(X)[:, 0]).tolist()
    [[209, 3], [55, 302]]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimator": [HasMethods(["fit", "predict"])],
        "loss": ["array-like", Loss, None],
        "classes": ["array-like", None],
        "n_jobs": [Integral, None],
    }

    def __init__(self, estimator: Any, loss: Any, *, classes: Any = None, n_jobs: int | None = None) -> None:
        self.estimator = estimator
        self.loss = loss
        self.classes = classes
        self.n_jobs = n_jobs

    @fit_context(prefer_skip_nested_validation=False)
    @entry_point("{class}")
    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> CostSensitiveClassifier:
        """Fit the estimator to the rows, repeated and weighted by the loss.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), or sparse indicator matrix
            Labels of a 2-D y may be missing: NaN, None, NA or masked.
        sample_weight : array-like of shape (n_samples,), optional
            Sample weights, which multiply those of the loss.
        **params
            Parameters for the estimator's `fit`; those with one entry per row are repeated with the rows.

        Returns
        -------
        self : object
        """
        warn_of_order(X=X, y=y, sample_weight=sample_weight)
        X, y = indexable(X, y)
        target = read_outputs(y, self.classes)
        losses = read_losses(self.loss, target.classes, several=target.several)
        weight = read_sample_weight(sample_weight, count_rows(X))
        if routing_enabled():
            params = process_routing(self, "fit", **params).estimator.fit
        self._train(X, target, losses, weight, params, self.n_jobs)
        return self

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of right decisions among all observed labels.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        score : float
        """
        check_is_fitted(self, "estimator_")
        if not isinstance(self.classes_, list):
            return float(super().score(X, y, sample_weight))
        scorer = LabelScore(GoalSpec(Accuracy(), "micro"))
        return score_labels(scorer, tuple(self.classes_), y, self.predict(X), sample_weight)


def read_outputs(y: Any, classes: Any = None) -> Target:
    """Read y; a single column is taken as 1-D, and warned of, as scikit-learn does."""
    target = read_target(y, classes)
    if target.several and target.n_outputs == 1:
        warn("A column-vector y was passed when a 1d array was expected.", DataConversionWarning)
        return replace(target, several=False, output_names=None)
    return target


def expand_rows(
    codes: NDArray[Any], loss: NDArray[np.float64], sample_weight: NDArray[np.float64] | None
) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.float64]]:
    """Repeat rows over the classes j with weight ``max(L) - L[y, j]``; return rows, codes and weights."""
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
    losses: Sequence[FloatArray],
    sample_weight: FloatArray | None,
    params: dict[str, Any],
    n_jobs: int | None = None,
) -> Any:
    """Fit an estimator to rows that are repeated and weighted by a loss, one per output where y is 2-D.

    Of several outputs, some may have no label among the rows of a fold.
    """
    if not (has_fit_parameter(estimator, "sample_weight") or (routing_enabled() and hasattr(estimator, "steps"))):
        raise InvalidParameter(
            "estimator",
            f"take {mention('sample_weight')} in fit, and {type(estimator).__name__} does not",
            remedy="put this classifier inside the Pipeline rather than around it, or enable metadata routing",
        )
    samples = [_weighted_sample(target, m, loss, sample_weight) for m, loss in enumerate(losses)]
    if target.several:
        return PerOutputClassifier(estimator, n_jobs=n_jobs).fit_samples(X, samples, params)
    if len(samples[0].rows) == 0:
        raise _no_rows()
    return fit_sample(estimator, X, samples[0], params)


def _no_rows() -> ValueError:
    return InvalidParameter(
        "sample_weight",
        problem=f"loss and {mention('sample_weight')} must leave at least one row with a positive weight, got none",
    )


def _weighted_sample(target: Target, m: int, loss: FloatArray, sample_weight: FloatArray | None) -> Sample:
    """Return the rows of output m that are observed, repeated and weighted by its loss."""
    observed = np.flatnonzero(target.codes[:, m] >= 0)
    observed_weight = None if sample_weight is None else sample_weight[observed]
    rows, labels, weight = expand_rows(target.codes[observed, m], loss, observed_weight)
    unweighted = sample_weight is None and np.array_equal(weight, np.ones(len(weight)))
    return Sample(observed[rows], target.named(m)[labels], None if unweighted else weight)


def decide(model: Any, X: Any, target: Target, losses: Sequence[FloatArray]) -> NDArray[np.intp]:
    """Return what a model from :func:`fit_weighted` decides, as codes (N, M).

    An output without any label gets the class of least loss if all were as likely.
    """
    models = model.estimators_ if target.several else [model]
    columns = [
        np.full(count_rows(X), loss.sum(axis=0).argmin()) if part is None else predict_codes(part, X, target.named(m))
        for m, (part, loss) in enumerate(zip(models, losses, strict=True))
    ]
    return np.stack(columns, axis=1)
