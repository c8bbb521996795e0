"""Base of displays of a rule on rows, with the constructors of scikit-learn's displays."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

from ...core.errors import InvalidType, entry_point
from ..details import Details, details_of
from ..view import View

__all__ = ["RowsDisplay", "rows_of_estimator"]


def rows_of_estimator(estimator: Any, X: Any) -> Any:
    """Return what the rule of a fitted estimator decides by: probabilities, or what else it was fitted to."""
    read = getattr(estimator, "decision_input", None)
    return estimator.predict_proba(X) if read is None else read(X)


class RowsDisplay(ABC):
    """Base class of displays of a rule on rows, with three constructors, each of which draws.

    See Also
    --------
    metricwise.inspection.details.Details : The data that is drawn.

    Examples
    --------
    >>> import metricwise as mw
    >>> solution = mw.optimize([0.1, 0.3, 0.4, 0.8], [0, 0, 1, 1], "f1",
    ...     strategy=mw.Strategy(confusion="labels", recalibrate=False))
    >>> display = mw.displays.MetricCurveDisplay.from_solution(solution)
    >>> isinstance(display, mw.displays.RowsDisplay)
    True
    """

    figure_: Any
    ax_: Any

    @classmethod
    @abstractmethod
    def from_details(cls, details: Details, solution: View | None = None) -> Self:
        """Return the display without drawing it; a solution adds estimates for new rows."""

    @abstractmethod
    def plot(self, ax: Any = None) -> Self:
        """Draw."""

    @classmethod
    @entry_point()
    def from_solution(cls, solution: View, *, metrics: Any = None, ax: Any = None, **kwargs: Any) -> Self:
        """Draw the display of a solution, on the rows that it was fitted to.

        Parameters
        ----------
        solution : Solution
            Returned by :func:`metricwise.optimize`, or ``estimator.solution_``.
        metrics : str, Metric, callable, list or dict, optional
            Metrics in addition to the one that was maximised, as in :func:`metricwise.evaluate`. None: the recorded
            ones.
        ax : matplotlib Axes, optional
            Axes to draw on; None creates a figure.
        **kwargs
            Passed to `plot`.

        Returns
        -------
        display
        """
        details = details_of(solution)
        if metrics is not None:
            details = details.with_metrics(metrics)
        return cls.from_details(details, solution).plot(ax=ax, **kwargs)

    @classmethod
    @entry_point()
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        metrics: Any = None,
        sample_weight: Any = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the display of a fitted estimator's rule on rows, which should be new to it.

        Parameters
        ----------
        estimator : estimator
            A fitted estimator with a rule: :class:`~metricwise.MetricOptimalClassifierCV` or
            :class:`~metricwise.FixedRuleClassifier`.
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        metrics : str, Metric, callable, list or dict, optional
            The metric to judge the rule by, and others, as in :func:`metricwise.evaluate`. None: the metric of the
            estimator.
        sample_weight : array-like of shape (n_samples,), optional
        ax : matplotlib Axes, optional
        **kwargs
            Passed to `plot`.

        Returns
        -------
        display
        """
        rule = getattr(estimator, "rule_", None)
        if rule is None:
            raise InvalidType(
                "estimator",
                "be a fitted estimator with a rule, such as MetricOptimalClassifierCV",
                type(estimator).__name__,
            )
        options = {"sample_weight": sample_weight, "pos_label": getattr(estimator, "pos_label", None)}
        if metrics is None and hasattr(estimator, "metric"):
            metrics = [estimator.metric]
            options |= {name: getattr(estimator, name, None) for name in ("average", "output_weight")}
        details = Details.of_rows(rule, rows_of_estimator(estimator, X), y, metrics, strict=False, **options)
        return cls.from_details(details).plot(ax=ax, **kwargs)

    @classmethod
    @entry_point()
    def from_predictions(
        cls,
        y_true: Any,
        proba: Any,
        rule: Any,
        *,
        metrics: Any = None,
        average: str | None = None,
        pos_label: Any = None,
        sample_weight: Any = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the display of a rule on labelled rows.

        Parameters
        ----------
        y_true : array-like of shape (N,) or (N, M)
        proba : array-like
            Class probabilities, logits or scores, as ``rule.predict`` takes them.
        rule : WeightedRule, MixtureRule, Solution, path, str or dict
            As in :func:`metricwise.evaluate`.
        metrics : str, Metric, callable, list or dict, optional
            The metric to judge the rule by, and others, as in :func:`metricwise.evaluate`. None: the metric that the
            rule was optimised for, by its name.
        average : {"micro", "macro", "instance"}, optional
            Average over outputs, for metrics whose names do not fix it.
        pos_label : object, or list of M objects, optional
            The positive class of metrics of one class.
        sample_weight : array-like of shape (N,), optional
        ax : matplotlib Axes, optional
        **kwargs
            Passed to `plot`.

        Returns
        -------
        display
        """
        details = Details.of_rows(
            rule, proba, y_true, metrics, average=average, pos_label=pos_label, sample_weight=sample_weight
        )
        return cls.from_details(details).plot(ax=ax, **kwargs)
