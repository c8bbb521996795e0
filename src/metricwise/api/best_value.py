"""`value_at_best`: what the best rule makes of probabilities, to compare models, epochs and settings."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from ..core.errors import InvalidParameter, InvalidType, entry_point
from ..data.row_spec import RowSpec
from ..data.sources.memory import MemorySource
from ..fitting.halves import value_by_halves
from ..goals.for_outputs import MetricSpec
from ..goals.labels import is_of_labels
from ..goals.spec import GoalSpec
from ..metrics.abstention import Abstention
from ..oracles.problem import InMemory
from .problems import open_problem

__all__ = ["find_best_value", "value_at_best"]


@entry_point("value_at_best")
def value_at_best(
    proba: Any,
    y: Any,
    metric: MetricSpec,
    *,
    average: str | None = None,
    output_weight: ArrayLike | None = None,
    pos_label: Any = None,
    order: Any = None,
    classes: Any = None,
    input: str = "probabilities",
    sample_weight: Any = None,
    groups: Any = None,
    subject_to: Any = None,
    abstain: bool | float | Abstention | None = None,
) -> float:
    """Estimate the metric that the best decision rule for given probabilities has on new rows.

    The rows are split into two halves. Each half is decided by the rule that is fitted to the other half, without any
    selection; the decisions about both halves are pooled, and the metric is counted once. This is a value for comparing
    models, settings or training epochs: unlike the metric of the most probable classes, it does not punish a model for
    a decision rule that will be replaced, and unlike the log loss, it is about the metric. It is fast: see
    :doc:`/training`. For the rule itself, and an interval of its gain, use :func:`optimize`.

    Parameters
    ----------
    proba, y
        Probabilities, logits or scores and labels of rows that the model was not trained on, as in :func:`optimize`;
        arrays and data frames.
    metric : str, Metric, callable, dict or list
        As in :func:`optimize`.
    average, output_weight, pos_label, order, classes, input, sample_weight
        As in :func:`optimize`.
    groups : array-like of shape (N,), or InTime, optional
        Rows of a group come into the same half; for rows in time, the halves are an earlier and a later one.
    subject_to : str, constraint, or list of these, optional
        Constraints, as in :func:`optimize`: the rule of each half satisfies them on the rows that it is fitted to. A
        half without such a rule leaves the other one undecided, which then has the smallest value of the metric.
    abstain : bool, float or Abstention, optional
        As in :func:`optimize`.

    Returns
    -------
    value : float
        Greater is better.

    See Also
    --------
    make_scorer : The same as a scikit-learn scorer, with ``at="best"``.
    eval_metric : The same for early stopping in LightGBM, XGBoost and CatBoost.
    optimize : Find the rule.

    Notes
    -----
    The halves depend on the number of rows, their labels and groups, and not on the probabilities: values of several
    models are compared on the same halves. The value is that of a rule fitted to half of the rows, so it is slightly
    too low for the rule of all rows.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.metrics import f1_score
    >>> import metricwise as mw
    >>> rng = np.random.default_rng(0)
    >>> eta = rng.beta(1, 9, 2000)
    >>> y = (rng.random(2000) < eta).astype(int)
    >>> too_low = eta**2 / (eta**2 + (1 - eta) ** 2)  # ranks as well, never exceeds 0.5
    >>> float(f1_score(y, too_low > 0.5)) < 0.05
    True
    >>> abs(mw.value_at_best(too_low, y, "f1") - mw.value_at_best(eta, y, "f1")) < 0.01
    True
    """
    rows = RowSpec(proba, y, sample_weight, groups, classes=classes, order=order, pos_label=pos_label, input=input)
    goal = GoalSpec(
        metric,
        average,
        pos_label,
        output_weight,
        subject_to=subject_to,
        confidence=None,
        abstain=abstain,
        order=order,
    )
    return find_best_value(rows, goal)


def find_best_value(rows: RowSpec, goal: GoalSpec) -> float:
    """Return the metric of decisions about each half of rows by the rule of the other half."""
    if rows.y is None:
        raise InvalidParameter("y", "be the labels of the rows, because the value is counted with them", "None")
    if is_of_labels(rows, goal):
        raise InvalidParameter(
            "metric",
            problem="the value at the best rule is for outputs of which each is decided by itself, not for very many "
            "labels or for metrics of the labels of a row",
            remedy="compare models by evaluate with the rule of optimize",
        )
    problem, _, read_goal = open_problem(rows, goal)
    if not isinstance(problem.source, MemorySource):
        raise InvalidType("proba", "be arrays or data frames in memory", type(rows.proba).__name__)
    return float(
        value_by_halves(
            InMemory(problem.source, problem.aim, allowed=problem.allowed, constraints=read_goal.constraints)
        )
    )
