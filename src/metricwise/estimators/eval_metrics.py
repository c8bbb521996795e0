"""Evaluation metrics for the training of LightGBM, XGBoost and CatBoost: what the best rule makes of the predictions.

The libraries are not imported: metrics are objects of the forms that they call.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..api.best_value import find_best_value
from ..core.errors import InvalidParameter, MissingDependency, entry_point, shown
from ..core.inputs import Input
from ..core.labels import label_array
from ..data.labels import Labels
from ..data.row_spec import RowSpec
from ..goals.for_outputs import MetricSpec
from ..goals.spec import GoalSpec
from .scoring import LabelScore, refuse_early

__all__ = ["eval_metric"]

FloatArray = NDArray[np.float64]


@entry_point("eval_metric")
def eval_metric(
    metric: MetricSpec,
    library: str,
    *,
    average: str | None = None,
    pos_label: Any = None,
    order: Any = None,
    classes: Any = None,
    output_weight: ArrayLike | None = None,
    subject_to: Any = None,
    input: str | None = None,
    multilabel: bool = False,
) -> Any:
    """Make an evaluation metric for gradient boosting: the value of a metric at the best rule for the predictions.

    For early stopping by the metric that counts, if :func:`optimize` finds the decision rule afterwards: the value is
    that of :func:`value_at_best`, on every set that the library evaluates.

    Parameters
    ----------
    metric : str, Metric, callable, dict or list
        As in :func:`optimize`.
    library : {"lightgbm", "xgboost", "catboost"}
        The library that calls the metric.
    average, pos_label, order, output_weight
        As in :func:`optimize`.
    classes : array-like, or list of M array-likes, optional
        Names of the classes that the library knows as 0, 1, ..., K - 1: the sorted labels, for scikit-learn interfaces
        that encode labels. They are needed if `metric`, `pos_label`, `order` or `subject_to` names a class by its
        label. None: the classes are these numbers.
    subject_to : str, constraint, or list of these, optional
        Constraints on the rule, as in :func:`value_at_best`.
    input : {"probabilities", "logits", "log_proba", "scores"}, optional
        What the library passes as predictions. None: "probabilities" for LightGBM and XGBoost, "logits" for CatBoost,
        which is what they pass for their own objectives of classification; LightGBM and XGBoost pass "logits" for
        an objective that is a function of yours, and LightGBM's objective "multiclassova" has "scores".
    multilabel : bool, default=False
        Whether y has several columns: for CatBoost's "MultiLogloss", whose metrics are of another kind. XGBoost's
        labels of several columns are recognised, and LightGBM has none.

    Returns
    -------
    eval_metric : callable or object
        For LightGBM, a function for `feval` of ``lightgbm.train`` and `eval_metric` of ``LGBMClassifier.fit``. For
        XGBoost, a function for `custom_metric` of ``xgboost.train`` and `eval_metric` of ``XGBClassifier``; its values
        are *minus* those of the metric, because XGBoost minimises functions of its users. For CatBoost, an object for
        `eval_metric` of ``CatBoostClassifier``.

    See Also
    --------
    value_at_best : The value as a function of arrays.
    make_scorer : The same as a scikit-learn scorer, with ``at="best"``.

    Notes
    -----
    Sample weights of an evaluation set are used. The halves into which a set is split are the same in every iteration.

    Examples
    --------
    >>> import lightgbm
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.model_selection import train_test_split
    >>> import metricwise as mw
    >>> X, X_valid, y, y_valid = train_test_split(*load_breast_cancer(return_X_y=True), random_state=0)
    >>> train, valid = lightgbm.Dataset(X, y), lightgbm.Dataset(X_valid, y_valid)
    >>> params = {"objective": "binary", "metric": "None", "verbose": -1}
    >>> stop = lightgbm.early_stopping(20, verbose=False)
    >>> by_metric = mw.eval_metric("mcc", "lightgbm")
    >>> model = lightgbm.train(params, train, 200, valid_sets=[valid], feval=by_metric, callbacks=[stop])
    >>> 0 < model.best_iteration < 200, list(model.best_score["valid_0"])
    (True, ['best_mcc'])
    """
    if library not in tuple(_FORMS):
        raise InvalidParameter("library", f"be one of {', '.join(map(repr, _FORMS))}", shown(library))
    refuse_early(metric, average, pos_label)
    goal = GoalSpec(metric, average, pos_label, output_weight, subject_to=subject_to, confidence=None, order=order)
    form = _FORMS[library]
    row_input = form.passes if input is None else input
    Input.of(row_input)  # refuses what is none
    return form.make(goal, classes, row_input, multilabel)


@dataclass(frozen=True, eq=False)
class _EvalMetric:
    """The value of a metric at the best rule for the predictions of a library.

    Parameters
    ----------
    goal : GoalSpec
    classes : array-like, or list of array-likes, optional
        Names of the classes 0, ..., K - 1.
    row_input : str
        What predictions are.
    """

    goal: GoalSpec
    classes: Any
    row_input: str
    passes: ClassVar[str] = "probabilities"  # what the library passes for its own objectives

    @classmethod
    def make(cls, goal: GoalSpec, classes: Any, row_input: str, multilabel: bool) -> Any:
        """Return the metric in the form of the library."""
        return cls(goal, classes, row_input)

    @property
    def __name__(self) -> str:
        """Name in the library's tables, without characters that separate their entries."""
        return "best_" + re.sub(r"[\s:\-]+", "_", LabelScore(self.goal).__name__)

    @entry_point("eval_metric")
    def value(self, predictions: Any, labels: Any, weight: Any) -> float:
        """Return the value of predictions (N,), (N, K) or (N, M) for labels (N,), or (N, M) in any shape."""
        predictions, labels = np.asarray(predictions), np.asarray(labels)
        several = labels.size > len(predictions)
        codes = labels.reshape(len(predictions), -1)
        n_columns = 1 if predictions.ndim == 1 else predictions.shape[1]
        if several and n_columns != codes.shape[1]:
            raise InvalidParameter(
                "y", f"have as many columns as there are predictions of a row, {n_columns}", codes.shape[1]
            )
        n_classes = max(n_columns, 2) if not several else 2
        names = self._names(codes.shape[1] if several else 1, n_classes)
        if not several and n_columns == 1:
            predictions = predictions.reshape(-1)
        rows = RowSpec(
            predictions,
            Labels(_read_codes(codes, n_classes), names, several),
            None if weight is None or np.size(weight) == 0 else np.asarray(weight),
            order=self.goal.order,
            input=self.row_input,
        )
        return find_best_value(rows, self.goal)

    def _names(self, n_outputs: int, n_classes: int) -> tuple[NDArray[Any], ...]:
        """Return the labels of the classes 0, ..., K - 1 of each output."""
        if self.classes is None:
            return (np.arange(n_classes),) * n_outputs
        nested = n_outputs > 1 and np.ndim(self.classes[0]) == 1
        names = [label_array(labels) for labels in (self.classes if nested else [self.classes] * n_outputs)]
        if len(names) != n_outputs or any(len(labels) != n_classes for labels in names):
            raise InvalidParameter(
                "classes",
                f"be the labels of {n_classes} classes" + (f", or one list for each of {n_outputs} outputs" * nested),
                shown(self.classes),
            )
        return tuple(names)


def _read_codes(labels: NDArray[Any], n_classes: int) -> NDArray[np.intp]:
    """Return labels 0, ..., K - 1 as integers; refuse others."""
    codes = labels.astype(np.intp)
    if (codes != labels).any() or codes.min(initial=0) < 0 or codes.max(initial=0) >= n_classes:
        raise InvalidParameter(
            "y",
            f"be classes 0 to {n_classes - 1}, as many as there are predictions of a row",
            shown(labels[(codes != labels) | (codes < 0) | (codes >= n_classes)].tolist()),
            "use an objective that predicts all classes, such as 'multi:softprob', and encode labels as integers",
        )
    return codes


class _LightGBMMetric(_EvalMetric):
    """For `feval`, called with predictions and a Dataset, and for `eval_metric`, called with labels and predictions."""

    @classmethod
    def make(cls, goal: GoalSpec, classes: Any, row_input: str, multilabel: bool) -> Any:
        """Return the metric; refuse several outputs."""
        if multilabel:
            raise InvalidParameter("multilabel", "be False for LightGBM, which predicts a single output", shown(True))
        return super().make(goal, classes, row_input, multilabel)

    def __call__(self, first: Any, second: Any, weight: Any = None) -> tuple[str, float, bool]:
        """Return the name, the value, and that greater is better."""
        if hasattr(second, "get_label"):
            value = self.value(first, second.get_label(), second.get_weight())
        else:
            value = self.value(second, first, weight)
        return self.__name__, value, True


class _XGBoostMetric(_EvalMetric):
    """For `custom_metric`, called with predictions and a DMatrix, and `eval_metric`, with labels and predictions."""

    @property
    def __name__(self) -> str:
        """Name in tables, which says that values are negative."""
        return f"minus_{super().__name__}"

    def __call__(self, first: Any, second: Any, sample_weight: Any = None) -> Any:
        """Return minus the value, with the name for `custom_metric`."""
        if hasattr(second, "get_label"):
            return self.__name__, -self.value(first, second.get_label(), second.get_weight())
        return -self.value(second, first, sample_weight)


class _CatBoostMetric(_EvalMetric):
    """For `eval_metric`: CatBoost asks for a sum of values and of weights, and divides them."""

    passes: ClassVar[str] = "logits"
    multilabel: ClassVar[bool] = False

    @classmethod
    def make(cls, goal: GoalSpec, classes: Any, row_input: str, multilabel: bool) -> Any:
        """Return the metric, of a class by whose name CatBoost calls it, and of CatBoost's base for several outputs."""
        bases: tuple[type, ...] = (_CatBoostMetric,)
        if multilabel:
            bases = (*bases, _multi_target_base())
        name = _CatBoostMetric(goal, classes, row_input).__name__
        return type(name, bases, {"multilabel": multilabel})(goal, classes, row_input)

    def __reduce__(self) -> Any:
        return _CatBoostMetric.make, (self.goal, self.classes, self.row_input, self.multilabel)

    def is_max_optimal(self) -> bool:
        """Return that greater is better."""
        return True

    def evaluate(self, approxes: Sequence[Any], target: Any, weight: Any) -> tuple[float, float]:
        """Return the value and the weight 1; `target` has an array for each output if there are several."""
        labels = np.stack(target, axis=1) if self.multilabel else np.asarray(target)
        return self.value(np.stack(approxes, axis=1), labels, weight), 1.0

    def get_final_error(self, error: float, weight: float) -> float:
        """Return the value."""
        return error / weight


def _multi_target_base() -> type:
    """Return CatBoost's base of metrics of several outputs."""
    try:
        from catboost import MultiTargetCustomMetric
    except ImportError:
        raise MissingDependency("a multilabel metric for CatBoost needs it: pip install catboost") from None
    return cast(type, MultiTargetCustomMetric)


_FORMS: dict[str, type[_EvalMetric]] = {
    "lightgbm": _LightGBMMetric,
    "xgboost": _XGBoostMetric,
    "catboost": _CatBoostMetric,
}
