"""Display of the decisions about three classes on the simplex."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ...core.errors import InvalidParameter, InvalidType, entry_point
from ...core.labels import decode, python_labels
from ...evaluation.arguments import baseline_map, read_rule
from ...rules.base import Rule
from ._base import rows_of_estimator
from ._style import INK, font_for, legend, new_axes, short

__all__ = ["DecisionRegionsDisplay", "regions"]

FloatArray = NDArray[np.float64]

_SIDE = 360  # steps along a side
_CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(3) / 2]])
_FILLS = ("#cfe2f3", "#f6dfb4", "#d5d5d5", "#ffffff")  # the last one of abstentions
_HATCHES = (None, "..", "//", "xx")


def regions(rule: Rule, n: int = _SIDE) -> tuple[FloatArray, NDArray[np.intp]]:
    """Decide a grid of probabilities of three classes; those of logits and scores are behind the map of argmax.

    Parameters
    ----------
    rule : WeightedRule or MixtureRule
        Of one output of three classes.
    n : int, default=360
        Steps along a side of the simplex.

    Returns
    -------
    proba : ndarray of shape (G, 3)
    decided : ndarray of shape (G,), int
        Code of the class, 3 for an abstention; of a mixture, the likeliest.

    Examples
    --------
    >>> import metricwise as mw
    >>> from metricwise.inspection.displays.decision_regions import regions
    >>> proba, decided = regions(mw.WeightedRule.from_weights([1, 1, 2]), n=3)
    >>> proba[decided == 2].round(2).tolist()
    [[0.0, 0.0, 1.0], [0.0, 0.33, 0.67], [0.33, 0.0, 0.67], [0.33, 0.33, 0.33]]
    """
    first, second = np.meshgrid(np.arange(n + 1), np.arange(n + 1), indexing="ij")
    inside = first + second <= n
    first, second = first[inside], second[inside]
    proba = np.stack([first, second, n - first - second], axis=1) / n
    # Whatever the rule was fitted to, columns are in the order of its classes.
    rows = rule.with_metadata(column_order=None).read_rows(_numbers_of(rule, proba))
    return proba, np.argmax(rule.distribute(rows)[:, 0], axis=1)


def _numbers_of(rule: Rule, proba: FloatArray) -> FloatArray:
    """Return the numbers that a rule takes for probabilities (G, 3): logits or scores that are mapped to these."""
    if not rule.schema.input.is_logits:
        return proba
    with np.errstate(divide="ignore"):  # probability 0 is a logit of -inf
        return np.asarray(np.log(proba) / _scale(rule))


def _scale(rule: Rule) -> float:
    """Return what logits or scores are multiplied by for argmax to have probabilities: only scores have no scale."""
    link = rule.shared_link
    return 1.0 if link is None or not rule.schema.input.is_scores else float(link.temperature[0])


def _mesh(at: FloatArray) -> Any:
    """Join the points of the grid, as :func:`regions` lists them, into triangles."""
    from matplotlib.tri import Triangulation

    n = round((np.sqrt(8 * len(at) + 1) - 3) / 2)
    first, second = np.meshgrid(np.arange(n + 1), np.arange(n + 1), indexing="ij")
    place = np.full((n + 2, n + 2), -1)
    inside = first + second <= n
    place[first[inside], second[inside]] = np.arange(len(at))
    low, right, up, far = place[:-1, :-1], place[1:, :-1], place[:-1, 1:], place[1:, 1:]
    triangles = np.concatenate(
        [np.stack(corners, axis=-1).reshape(-1, 3) for corners in ((low, right, up), (right, far, up))]
    )
    return Triangulation(at[:, 0], at[:, 1], triangles[(triangles >= 0).all(axis=1)])


@dataclass(eq=False)
class DecisionRegionsDisplay:
    """Decisions of a rule for every distribution of three classes, compared with argmax.

    Every point of the triangle is a distribution: near a corner, that class is likely. Dashed lines are the boundaries
    of argmax.

    Parameters
    ----------
    proba : ndarray of shape (G, 3)
        A grid of distributions.
    decided : ndarray of shape (G,), int
        Decision at each point of the grid.
    labels : sequence of 3 str
        Names of the classes.
    rows : ndarray of shape (N, 3), optional
        Probabilities of rows to show as dots.
    right : ndarray of shape (N,), bool, optional
        Whether the decision about each row is right.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    See Also
    --------
    sklearn.inspection.DecisionBoundaryDisplay : Decision regions in the space of features.

    Examples
    --------
    >>> import metricwise as mw
    >>> from metricwise.displays import DecisionRegionsDisplay
    >>> display = DecisionRegionsDisplay.from_rule(mw.WeightedRule.from_weights([1, 2, 4]))
    >>> display.labels
    ['0', '1', '2']
    """

    proba: FloatArray
    decided: NDArray[np.intp]
    labels: Sequence[str]
    rows: FloatArray | None = None
    right: NDArray[np.bool_] | None = None

    @classmethod
    @entry_point()
    def from_rule(cls, rule: Any, *, ax: Any = None, **kwargs: Any) -> Self:
        """Draw the regions of a rule.

        Parameters
        ----------
        rule : WeightedRule, MixtureRule, Solution, path, str or dict
            Of one output of three classes.
        ax : matplotlib Axes, optional
        **kwargs
            Passed to `plot`.
        """
        return cls._of(rule).plot(ax=ax, **kwargs)

    @classmethod
    @entry_point()
    def from_solution(cls, solution: Any, *, ax: Any = None, **kwargs: Any) -> Self:
        """Draw the regions of the rule of a solution; see :meth:`from_rule`."""
        return cls._of(solution).plot(ax=ax, **kwargs)

    @classmethod
    @entry_point()
    def from_estimator(cls, estimator: Any, X: Any, y: Any = None, *, ax: Any = None, **kwargs: Any) -> Self:
        """Draw the regions of a fitted estimator's rule, with rows as dots at their probabilities."""
        if not hasattr(estimator, "rule_"):
            raise InvalidType("estimator", "be a fitted estimator with a rule", type(estimator).__name__)
        return cls._of(estimator.rule_, rows_of_estimator(estimator, X), y).plot(ax=ax, **kwargs)

    @classmethod
    @entry_point()
    def from_predictions(cls, y_true: Any, proba: Any, rule: Any, *, ax: Any = None, **kwargs: Any) -> Self:
        """Draw the regions of a rule, and rows as dots.

        Parameters
        ----------
        y_true : array-like of shape (N,) or None
            True labels; rows with a wrong decision are shown as crosses.
        proba : array-like of shape (N, 3)
            Class probabilities, logits or scores, as ``rule.predict`` takes them.
        rule : WeightedRule, MixtureRule, Solution, path, str or dict
        ax : matplotlib Axes, optional
        **kwargs
            Passed to `plot`.
        """
        return cls._of(rule, proba, y_true).plot(ax=ax, **kwargs)

    @classmethod
    def _of(cls, rule: Any, proba: Any = None, y: Any = None) -> Self:
        rule = read_rule(rule)
        if rule.schema.input.graded:
            raise InvalidParameter(
                "rule",
                "take numbers for each of three classes, whose regions fill a triangle",
                "one score for all of them, whose regions are intervals",
                "use ConfusionChangeDisplay or MetricCurveDisplay instead",
            )
        if rule.n_outputs != 1 or rule.width != 3:
            raise InvalidParameter(
                "rule",
                "have one output with three classes",
                f"{rule.n_outputs} with up to {rule.width}",
                "use ConfusionChangeDisplay or MetricCurveDisplay instead",
            )
        labels = [str(label) for label in python_labels(rule.classes[0])]
        right = None
        if proba is not None:
            rows = rule.read_rows(proba)
            predicted = decode(rule.decide(rows), rule.schema.decisions)[:, 0]
            base = baseline_map(rule, rows.proba)
            shown = rows.proba if base is None else rows.proba.linked(base)
            proba = np.asarray(shown.output(0)[:, 0], dtype=np.float64)
            right = None if y is None else np.asarray(predicted == np.asarray(y))
        return cls(*regions(rule), labels, proba, right)

    @entry_point("{class}")
    def plot(self, ax: Any = None, *, max_rows: int = 500) -> Self:
        """Draw the triangle.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        max_rows : int, default=500
            Maximum number of rows that are drawn.

        Returns
        -------
        self
        """
        self.figure_, self.ax_ = new_axes(ax, figsize=(5.2, 4.8))
        ax, at = self.ax_, self.proba @ _CORNERS
        names = [short(label) for label in self.labels]
        mesh = _mesh(at)
        for k in np.unique(self.decided).tolist():
            inside = (self.decided == k).astype(np.float64)
            filled = ax.tricontourf(mesh, inside, levels=[0.5, 1.5], colors=[_FILLS[k]], hatches=[_HATCHES[k]])
            filled.set(edgecolor="#a8a8a8", linewidth=0)  # of the hatches
            if not inside.all():
                ax.tricontour(mesh, inside, levels=[0.5], colors=[INK], linewidths=1.6)
        middle = np.full(3, 1 / 3) @ _CORNERS
        for k in range(3):
            end = (_CORNERS[(k + 1) % 3] + _CORNERS[(k + 2) % 3]) / 2
            label = "argmax" if k == 0 else None
            ax.plot(*zip(middle, end, strict=True), color=INK, linewidth=1.0, linestyle=(0, (4, 3)), label=label)
        ax.plot([], [], color=INK, linewidth=1.6, label="rule")
        ax.plot(*np.vstack([_CORNERS, _CORNERS[:1]]).T, color=INK, linewidth=1.2)
        self._draw_rows(max_rows)
        self._name_corners(names)
        ax.set_aspect("equal")
        ax.set_axis_off()
        ax.set_xlim(-0.14, 1.14)
        ax.set_ylim(-0.14, 1.0)
        legend(ax, loc="upper right")
        return self

    def _draw_rows(self, max_rows: int) -> None:
        if self.rows is None:
            return
        step = max(1, len(self.rows) // max_rows)
        at = (self.rows / self.rows.sum(axis=1, keepdims=True))[::step] @ _CORNERS
        right = np.ones(len(at), dtype=bool) if self.right is None else np.asarray(self.right)[::step]
        name = None if self.right is None else "right"
        self.ax_.plot(*at[right].T, ".", color=INK, ms=2.5, alpha=0.6, label=name)
        if not right.all():
            self.ax_.plot(*at[~right].T, "x", color="#b23a00", ms=4, mew=0.8, alpha=0.8, label="wrong")

    def _name_corners(self, names: list[str]) -> None:
        font = font_for(names)
        places = (
            (0.0, -0.03, "center", "top"),
            (1.0, -0.03, "center", "top"),
            (0.5, _CORNERS[2, 1] + 0.02, "center", "bottom"),
        )
        shares = [float(np.mean(self.decided == k)) for k in range(3)]
        if (self.decided == 3).any():
            at = (self.proba[self.decided == 3] @ _CORNERS).mean(axis=0)
            box = {"facecolor": "white", "edgecolor": "none", "pad": 1.5}
            self.ax_.text(*at, "abstains", ha="center", va="center", fontsize="small", bbox=box)
        for (x, y, side, edge), name, share in zip(places, names, shares, strict=True):
            text = name if share > 0 else f"{name} (never)"
            self.ax_.text(x, y, text, ha=side, va=edge, fontweight="bold", **font)
