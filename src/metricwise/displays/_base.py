"""The three ways into a display, as in scikit-learn: a solution, a fitted estimator with rows, or predictions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

from ..details import Details
from ..solvers import Solution

__all__ = ["RowsDisplay"]


class RowsDisplay(ABC):
    """A display of what rows say of a rule: the three ways into it, each of which draws.

    See Also
    --------
    metricwise.details.Details : What is drawn.
    """

    figure_: Any
    ax_: Any

    @classmethod
    @abstractmethod
    def from_details(cls, details: Details, solution: Solution | None = None) -> Self:
        """Return the display, not drawn yet; a solution adds what is known of new rows."""

    @abstractmethod
    def plot(self, ax: Any = None) -> Self:
        """Draw."""

    @classmethod
    def from_solution(cls, solution: Solution, *, metrics: Any = None, ax: Any = None, **kwargs: Any) -> Self:
        """Draw what is known of a solution, on the rows that it was fitted to.

        Parameters
        ----------
        solution : Solution
            What :func:`metricwise.optimize` returns, or ``estimator.solution_``.
        metrics : str, Metric, callable, list or dict, optional
            Others beside the one that was maximised, as :func:`metricwise.evaluate` takes them. None: those recorded.
        ax : matplotlib Axes, optional
            Where to draw; None makes a figure.
        **kwargs
            For `plot`.

        Returns
        -------
        display
        """
        details = details_of(solution, f"{cls.__name__}.from_solution")
        if metrics is not None:
            details = details.with_metrics(metrics)
        return cls.from_details(details, solution).plot(ax=ax, **kwargs)

    @classmethod
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
        """Draw what a fitted estimator's rule does on rows, which should be new to it.

        Parameters
        ----------
        estimator : estimator
            Fitted, with a rule: :class:`~metricwise.MetricOptimalClassifierCV`,
            :class:`~metricwise.FixedRuleClassifier`.
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        metrics : str, Metric, callable, list or dict, optional
            What the rule is judged by, and others, as :func:`metricwise.evaluate` takes them. None: what the estimator
            was fitted for.
        sample_weight : array-like of shape (n_samples,), optional
        ax : matplotlib Axes, optional
        **kwargs
            For `plot`.

        Returns
        -------
        display
        """
        who = f"{cls.__name__}.from_estimator"
        rule = getattr(estimator, "rule_", None)
        if rule is None:
            raise TypeError(
                f"{who}: estimator must be a fitted one with a rule, such as MetricOptimalClassifierCV, got "
                f"{type(estimator).__name__}."
            )
        options = {"sample_weight": sample_weight, "pos_label": getattr(estimator, "pos_label", None)}
        if metrics is None and hasattr(estimator, "metric"):
            metrics = [estimator.metric]
            options |= {name: getattr(estimator, name, None) for name in ("average", "output_weight")}
        details = Details.of_rows(rule, estimator.predict_proba(X), y, metrics, who=who, strict=False, **options)
        return cls.from_details(details).plot(ax=ax, **kwargs)

    @classmethod
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
        """Draw what a rule does on rows with labels.

        Parameters
        ----------
        y_true : array-like of shape (N,) or (N, M)
        proba : array-like
            Class probabilities, as ``rule.predict`` takes them.
        rule : WeightedRule, MixtureRule, Solution, path, str or dict
            As :func:`metricwise.evaluate` takes it.
        metrics : str, Metric, callable, list or dict, optional
            What the rule is judged by, and others, as :func:`metricwise.evaluate` takes them. None: the metric that the
            rule was made for, by its name.
        average : {"micro", "macro", "instance"}, optional
            Over outputs, for metrics whose names do not say.
        pos_label : object, or list of M objects, optional
            The positive class of metrics of one class.
        sample_weight : array-like of shape (N,), optional
        ax : matplotlib Axes, optional
        **kwargs
            For `plot`.

        Returns
        -------
        display
        """
        details = Details.of_rows(
            rule,
            proba,
            y_true,
            metrics,
            who=f"{cls.__name__}.from_predictions",
            average=average,
            pos_label=pos_label,
            sample_weight=sample_weight,
        )
        return cls.from_details(details).plot(ax=ax, **kwargs)


def details_of(solution: Any, who: str) -> Details:
    """Return the details of a solution, and nothing else."""
    if not isinstance(solution, Solution):
        raise TypeError(f"{who}: solution must be a Solution, as optimize returns it, got {type(solution).__name__}.")
    details: Details = solution.details
    return details
