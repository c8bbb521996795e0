"""Display of the values of two metrics that rules can reach."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core.errors import InvalidParameter, entry_point
from ...core.labels import python_labels
from ...core.losses import Loss
from ...core.schema import Schema
from ...data.labels import make_rows
from ...data.probabilities import read_proba
from ...data.sources.memory import MemorySource
from ...data.weights import read_sample_weight
from ...evaluation.arguments import baseline_map
from ...metrics.base import Metric
from ...metrics.linear import Recall
from ...oracles.counts import Counts
from ...oracles.problem import mixed
from ...rules.base import RuleRows
from ...rules.weighted import WeightedRule
from ...theory.geometry import FeasibleSet
from ..details import details_of
from ..text import number
from ..view import View
from ._style import INK, RULE, bare, legend, mark_argmax, mark_rule, new_axes, short

__all__ = ["FeasibleSetDisplay"]

FloatArray = NDArray[np.float64]

_SPAN_TOL = 1e-9


@dataclass(eq=False)
class FeasibleSetDisplay:
    """All pairs of values of two linear metrics that any rule can reach, with argmax, the rule and its supporting line.

    The set of reachable confusions is convex, and its projection onto two metrics is drawn. A rule of least expected
    loss lies where a line touches the set: the line on which that loss is constant, to the extent that it depends on
    these two metrics.

    Parameters
    ----------
    outline : ndarray of shape (n, 2)
        Corners of the set, counterclockwise.
    points : dict of str to tuple of float
        Points to mark: "argmax" and "rule".
    names : tuple of str
        Names of both metrics.
    normal : ndarray of shape (2,), optional
        Normal vector of the supporting line of the rule.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    See Also
    --------
    metricwise.geometry.FeasibleSet : The set itself.

    Examples
    --------
    >>> import numpy as np
    >>> import metricwise as mw
    >>> from metricwise.displays import FeasibleSetDisplay
    >>> rng = np.random.default_rng(0)
    >>> p = rng.beta(1, 3, 500)
    >>> solution = mw.optimize(p, None, "f1")
    >>> display = FeasibleSetDisplay.from_solution(solution)
    >>> display.outline.shape, display.names
    ((360, 2), ('recall of 0', 'recall of 1'))
    """

    outline: FloatArray
    points: dict[str, tuple[float, float]] = field(default_factory=dict)
    names: tuple[str, str] = ("x", "y")
    normal: FloatArray | None = None

    @classmethod
    @entry_point()
    def from_solution(
        cls, solution: View, *, x: Any = None, y: Any = None, n: int = 360, ax: Any = None, **kwargs: Any
    ) -> Self:
        """Draw the set for the rows that a solution was fitted to, under their recalibrated probabilities.

        Parameters
        ----------
        solution : Solution
            A solution with one output.
        x, y : metric or array-like of shape (K, K), optional
            Linear metrics, as in :meth:`metricwise.geometry.FeasibleSet.boundary_2d`. By default, the recalls of two
            classes; with more classes, accuracy, which argmax maximises, and the negative loss of the rule, which the
            rule maximises; cut points of a score have none.
        n : int, default=360
            Number of directions in which the outline is computed.
        ax : matplotlib Axes, optional
        **kwargs
            Passed to `plot`.
        """
        details = details_of(solution)
        if details.problem is None or details.rule.n_outputs != 1:
            raise InvalidParameter(
                "solution",
                "have one output and its rows, which a pickle does not contain",
                remedy="call optimize again, or use from_predictions",
            )
        link = details.link
        feasible = FeasibleSet(Counts(details.problem.source, "expected", link))
        return cls._of(feasible, solution.rule, x, y, n).plot(ax=ax, **kwargs)

    @classmethod
    @entry_point()
    def from_predictions(
        cls,
        proba: ArrayLike,
        rule: Any = None,
        *,
        x: Any = None,
        y: Any = None,
        n: int = 360,
        sample_weight: ArrayLike | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the set for given probabilities; labels are not needed.

        Parameters
        ----------
        proba : array-like of shape (N,), (N, 2) or (N, K)
            Class probabilities; of a rule on logits or scores, these.
        rule : WeightedRule, MixtureRule or CutPointRule, optional
            A rule to mark in addition to argmax.
        x, y, n, ax
            As in :meth:`from_solution`.
        sample_weight : array-like of shape (N,), optional
        **kwargs
            Passed to `plot`.
        """
        if rule is not None and not rule.has_map:
            raise InvalidParameter(
                "rule",
                "map scores to probabilities, which rules by hand do not",
                remedy="use a rule from optimize, or FeasibleSetDisplay.from_predictions with probabilities alone",
            )
        link = None if rule is None else rule.shared_link
        read = read_proba(proba) if rule is None else rule.read(proba)
        base = None if rule is None else baseline_map(rule, read)
        read = read if base is None else read.linked(base)
        weight = read_sample_weight(sample_weight, read.n_rows)
        schema = Schema.of_codes(read.n_classes) if rule is None else rule.schema
        if schema.n_outputs != 1:
            raise InvalidParameter("proba", "have one output", schema.n_outputs)
        source = MemorySource(make_rows(read, None, weight), schema)
        return cls._of(FeasibleSet(Counts(source, "expected", link)), rule, x, y, n).plot(ax=ax, **kwargs)

    @classmethod
    def _of(cls, feasible: FeasibleSet, rule: Any, x: Any, y: Any, n: int) -> Self:
        k = int(feasible.oracle.n_classes[0])
        labels = [str(j) for j in range(k)] if rule is None else [str(v) for v in python_labels(rule.classes[0])]
        axes: list[Any]
        named: tuple[str, str]
        if k > 2 and rule is not None and rule.is_flat and not rule.is_randomized and x is None and y is None:
            axes = ["accuracy", _score(rule)]
            named = ("accuracy", "negative loss of the rule, −⟨L, C⟩")
        else:
            axes = [Recall(index=index) if axis is None else axis for axis, index in ((x, 0), (y, k - 1))]
            named = (_name(axes[0], labels), _name(axes[1], labels))
        functionals = np.stack([feasible.functional(axis) for axis in axes])
        oracle = feasible.oracle
        assert isinstance(oracle, Counts)
        argmax_confusion = oracle.confusions([Loss.argmax(k)], linked=False)[0]
        points = {"argmax": _place(functionals, argmax_confusion)}
        normal = None
        if rule is not None:
            losses, C = _counted(rule, oracle)
            points["rule"] = _place(functionals, C)
            normal = _normal(functionals, losses[0].tensor()) if len(losses) == 1 else None
        return cls(feasible.boundary_2d(*axes, n=n), points, named, normal)

    @entry_point("{class}")
    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw the set.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        **kwargs
            Passed to the polygon.

        Returns
        -------
        self
        """
        self.figure_, self.ax_ = new_axes(ax, figsize=(5.2, 5.0))
        ax = self.ax_
        look = {"facecolor": "#e3edf6", "edgecolor": RULE, "linewidth": 1.4, "zorder": 1, "label": "reachable"}
        ax.fill(*self.outline.T, **(look | kwargs))
        for name, (x, y) in self.points.items():
            mark = mark_argmax if name == "argmax" else mark_rule
            mark(ax, x, y, f"{name} ({number(x)}, {number(y)})")
        low, high = self.outline.min(axis=0), self.outline.max(axis=0)
        pad = 0.06 * np.maximum(high - low, 1e-9)
        if self.normal is not None and "rule" in self.points:
            self._draw_line(self.points["rule"])
        ax.set_xlim(low[0] - pad[0], high[0] + pad[0])
        ax.set_ylim(low[1] - pad[1], high[1] + pad[1])
        ax.set_xlabel(short(self.names[0], 40))
        ax.set_ylabel(short(self.names[1], 40))
        bare(ax)
        legend(ax, loc="best")
        return self

    def _draw_line(self, through: tuple[float, float]) -> None:
        assert self.normal is not None
        if np.linalg.norm(self.normal) < 1e-12:
            return
        slope = (-self.normal[1], self.normal[0])
        other = (through[0] + slope[0], through[1] + slope[1])
        style = {"color": INK, "linewidth": 1.1, "linestyle": (0, (5, 3)), "zorder": 3, "label": "supporting line"}
        self.ax_.axline(through, other, **style)


def _name(axis: Any, labels: list[str]) -> str:
    """Return the label of an axis."""
    if isinstance(axis, str):
        return axis
    if isinstance(axis, Metric):
        index = getattr(axis, "index", None)
        return axis.name if index is None else f"{axis.name} of {labels[index]}"
    return "⟨A, C⟩"


def _counted(rule: Any, oracle: Counts) -> tuple[tuple[Loss, ...], FloatArray]:
    """Return the losses of a rule, none for cut points of a score, and its confusion tensor."""
    if rule.has_path and not rule.is_flat:
        return (), oracle.confusion_by(lambda rows: rule.decide(RuleRows(rows.proba, rows.start)))
    parts = rule.flatten()
    return tuple(parts.losses), mixed(oracle.confusions(parts.losses), parts.shares)


def _score(rule: WeightedRule) -> FloatArray:
    """Return the functional that the rule maximises, scaled to a largest loss of 1."""
    loss = rule.loss.tensor()[0]
    loss = loss - loss.min(axis=1, keepdims=True)
    return np.asarray(-loss / max(float(loss.max()), np.finfo(float).tiny))


def _place(functionals: FloatArray, C: FloatArray) -> tuple[float, float]:
    x, y = np.einsum("amij,mij->a", functionals, C)
    return float(x), float(y)


def _normal(functionals: FloatArray, loss: FloatArray) -> FloatArray | None:
    """What of two functionals a loss is, but for row constants, which no rule changes; None where it is not."""
    columns = [(functional - functional.mean(axis=-1, keepdims=True)).ravel() for functional in functionals]
    target = -(loss - loss.mean(axis=-1, keepdims=True)).ravel()
    coefficients, *_ = np.linalg.lstsq(np.stack(columns, axis=1), target, rcond=None)
    rest = np.stack(columns, axis=1) @ coefficients - target
    if np.linalg.norm(rest) > _SPAN_TOL * np.linalg.norm(target):
        return None
    return np.asarray(coefficients)
