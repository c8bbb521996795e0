"""``Solution``: the result of ``optimize``.

Owns what users do with a result: predict, save, plot, report, and look at it in a notebook. The numbers are fields of
:class:`metricwise.inspection.view.View`. Must not fit rules.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from .. import monitoring  # noqa: F401  rules adapt to new rows
from ..core.errors import entry_point
from ..inspection.view import View
from ..rules.codec import dump

if TYPE_CHECKING:
    from ..inspection.details import Details

__all__ = ["Solution", "load_solution"]


@dataclass(frozen=True, eq=False, repr=False)
class Solution(View):
    """Result of an optimisation: the rule, its value, and estimates for new data.

    Parameters
    ----------
    rule : WeightedRule, MixtureRule, GroupedRule, SegmentedRule, CostRule, LabelRule or LabelSetRule
        The rule that was found; use its `predict`.
    value : float
        The metric of the rule, counted with the labels (reweighted to `prior` if given), or in expectation under the
        probabilities without labels. With costs per row, minus the mean cost.
    baseline : float
        The metric of argmax, counted in the same way.
    confusion : ndarray of shape (M, K, K), or (M, K, K + 1) of a rule that may abstain
        The confusion tensor of the rule, counted in the same way. Abstentions are the column after the classes of each
        output.
    certificate : Certificate
        What the solver maximised and proved: `optimized_value`, `upper_bound`, `gap`, `alternative` and `level`, which
        are attributes of the solution, too, and the threshold on the probabilities that the solver saw. With expected
        confusion, the upper bound holds for all rules, including randomised ones; with labels, it is available for the
        sweep and the path only, over their family of rules; otherwise it is None.
    outcome : Outcome
        What kind of solution it is: optimal by the guarantee of the solver, local, not converged, or argmax.
    notes : tuple of Note
        What happened and what should be known, as sentences with a kind each; `status` joins them.
    counted : {"labels", "expected"}
        How `value`, `baseline` and `confusion` were counted.
    n_passes : int
        Number of passes over all rows, from the class priors to the final count: a pass over part of the rows or
        outputs counts as that share, and one that counts both labels and probabilities counts twice. Recalibration and
        the choice of the recipe are not included.
    history : tuple of float
        The optimised value after each step.
    gain : Gain or None
        Estimated gain over argmax on new rows; None without labels, or if `confusion` and `recalibrate` are fixed.
    value_on_new_rows : Estimate or None
        Estimated metric on new rows, with an interval. By contrast, `value` is counted on the rows that the rule was
        fitted to.
    threshold_range : ndarray of shape (2,) or (M, 2), or None
        For binary outputs with a threshold each, the smallest and the largest threshold on the raw probability that are
        as good on these rows, up to 1.96 standard errors of the difference; NaN if an output has none. None if
        `confusion` and `recalibrate` are fixed, if outputs share a threshold, or if there are more than 64 outputs.
    candidates : tuple of Candidate
        The recipes that were compared; empty if `confusion` and `recalibrate` are fixed.
    recorded : dict of str to Recorded
        The recorded metrics, for the rule and for argmax.
    constraints : tuple of ConstraintResult
        The constraints of `subject_to`, in the order given, and how the rule satisfies them.
    by_group : dict of dict of str to Recorded
        With sensitive groups, for each group by name: the metric, the metrics that constraints about groups bound, and
        the recorded metrics, for the rule and for argmax, on the rows of the group.
    by_label : LabelSummary or None
        With sparse probabilities or `labels_per_row`: counts and values of each label, for the rule and for the
        baseline, which predicts the labels with a probability above 1/2, within the number of labels per row.
    problem : object or None
        The problem that was solved: the rows, without a copy, and the aim. It serves plots and reports, and is not
        pickled. None with sparse probabilities or `labels_per_row`, whose plots and reports show `by_label`.

    See Also
    --------
    metricwise.optimize : Returns a solution.
    metricwise.load_solution : Read a solution that was saved.
    metricwise.evaluate : Evaluate the rule on other rows.

    Examples
    --------
    >>> import metricwise as mw
    >>> solution = mw.optimize([0.1, 0.3, 0.4, 0.8], [0, 0, 1, 1], "f1",
    ...     strategy=mw.Strategy(confusion="labels", recalibrate=False))
    >>> solution.value, solution.baseline
    (1.0, 0.6666666666666666)
    >>> solution.status
    'Optimal over all thresholds.'
    >>> solution.rule.predict([0.35]).tolist()
    [0]
    """

    @entry_point()
    def predict(
        self,
        proba: Any,
        *,
        sensitive_features: Any = None,
        cost: Any = None,
        start: int = 0,
        pos_label: Any = None,
        segments: Any = None,
    ) -> NDArray[Any]:
        """Predict labels by the rule that was found.

        Parameters
        ----------
        proba : array-like
            Class probabilities, as ``solution.rule.predict`` takes them.
        sensitive_features : array-like of shape (N,) or (N, F), optional
            The group of every row, for a rule by group; all other rules decide without it.
        cost : array-like, optional
            The costs of the decisions about each row, for a rule by costs per row; refused by all others.
        start : int, default=0
            Position of the first row, on which the draws of a mixture depend.
        pos_label : object, or list of M objects, optional
            The class that a single column of probabilities is of, for a rule that was fitted to two columns.
        segments : array-like of shape (N,) or (N, F), optional
            The segment of every row, for a rule by segment; all other rules decide without it.

        Returns
        -------
        ndarray of shape (N,), or (N, M) for several outputs

        Examples
        --------
        >>> import metricwise as mw
        >>> solution = mw.optimize([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1], "f1",
        ...     strategy=mw.Strategy(confusion="labels", recalibrate=False))
        >>> solution.predict([0.2, 0.7])
        array([0, 1])
        """
        row_inputs = {"sensitive_features": sensitive_features, "cost": cost, "segments": segments}
        return self.rule.predict(proba, start=start, pos_label=pos_label, **row_inputs)

    @entry_point()
    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the solution, including its rule, as JSON; :func:`metricwise.load_solution` reads it.

        Parameters
        ----------
        path : path
            Where to write the file, which is written completely or not at all.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> import metricwise as mw
        >>> solution = mw.optimize([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1], "f1",
        ...     strategy=mw.Strategy(confusion="labels", recalibrate=False))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     solution.save(Path(folder) / "solution.json")
        ...     again = mw.load_solution(Path(folder) / "solution.json")
        >>> again.rule == solution.rule, again.value == solution.value
        (True, True)
        """
        from .solution_file import to_document  # only who saves or loads needs it

        dump(to_document(self), path)

    @property
    def details(self) -> Details:
        """Details of the rule on the given rows, computed on first access.

        They are a :class:`~metricwise.inspection.details.Details`.

        The rows must be unchanged: if an array was modified in place since, an error says so. A pickle contains the
        details only if they were computed before.
        """
        from ..inspection.details import details_of

        return details_of(self)

    def plot(self, ax: Any = None, **kwargs: Any) -> Any:
        """Plot the most informative display of the solution; requires matplotlib.

        This is the gain of every output if several outputs have their own confusions, otherwise the metric along the
        rules from argmax to this one or, if that is not known, the confusion; for very many labels, their values by
        frequency. See :mod:`metricwise.displays` for
        others.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; by default, new ones.
        **kwargs
            Passed to the `plot` method of the display.

        Returns
        -------
        display
            The display, with the attributes `ax_` and `figure_`.

        See Also
        --------
        metricwise.displays.MetricCurveDisplay, metricwise.displays.GainsDisplay,
        metricwise.displays.LabelGainsDisplay
        """
        from ..inspection.displays.choice import display_of

        return display_of(self).plot(ax=ax, **kwargs)

    def report(self, path: str | os.PathLike[str]) -> None:
        """Write an HTML report about the solution for readers who do not program; requires Jinja2.

        The report is one self-contained HTML file: whether the rule is worth using, what it decides, what changes for
        whom, the constraints, figures, a slider along the path from argmax to the rule, and how to apply it.

        Parameters
        ----------
        path : path
            Where to write the file, which is written completely or not at all.

        See Also
        --------
        metricwise.report.write : Write a report about any rule and any rows.
        metricwise.report.summarize : The content of the report as a dict.
        """
        from ..inspection.report import write

        write(path, self)

    def _repr_html_(self) -> str:
        from ..inspection.card import solution_card

        return str(solution_card(self))

    def __repr__(self) -> str:
        parts = [f"value={self.value:.6g}", f"baseline={self.baseline:.6g}"]
        if self.gap is not None:
            parts.append(f"gap={self.gap:.2g}")
        return f"Solution({', '.join(parts)}, n_passes={self.n_passes}, status={self.status!r})"


@entry_point("load_solution")
def load_solution(path: str | os.PathLike[str]) -> Solution:
    """Load a solution that was saved with :meth:`Solution.save`.

    Every field is checked, and no code from the file is executed.

    Parameters
    ----------
    path : path, or JSON text
        The file, or its content.

    Returns
    -------
    Solution
        Its `problem` is None, because the file does not contain the rows.

    See Also
    --------
    metricwise.load_rule : Load a rule.
    Solution.save : Save a solution.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import metricwise as mw
    >>> solution = mw.optimize([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1], "f1",
    ...     strategy=mw.Strategy(confusion="labels", recalibrate=False))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     solution.save(Path(folder) / "solution.json")
    ...     again = mw.load_solution(Path(folder) / "solution.json")
    >>> again.value == solution.value, again.status == solution.status
    (True, True)
    """
    from .solution_file import read_fields  # only who saves or loads needs it

    return Solution(**read_fields(path))
