"""What a solver needs of an objective, as data, and the one place where it is checked.

Owns the forms that an objective may have and the sentences that say what is missing. Must not know any algorithm beyond
the name of one that serves a form.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ..core.errors import InvalidParameter, argument
from ..metrics.objective import Objective

Form = Literal["linear", "ratio", "concave", "minimum", "any"]


def _is_linear(objective: Objective) -> bool:
    return objective.ratio is not None and objective.ratio.linear


def _is_ratio(objective: Objective) -> bool:
    return objective.ratio is not None


def _is_concave(objective: Objective) -> bool:
    # The tangents of a minimum are those of one of its parts: they promise what a step does not keep.
    return objective.concave and not objective.is_minimum


_HAS: dict[Form, Callable[[Objective], bool]] = {
    "linear": _is_linear,
    "ratio": _is_ratio,
    "minimum": lambda objective: objective.is_minimum,
    "concave": _is_concave,
    "any": lambda _: True,
}
_WORDS: dict[Form, str] = {
    "linear": "a linear metric",
    "ratio": "a linear or fractional-linear metric",
    "minimum": "a minimum of linear metrics",
    "concave": "a concave metric that is smooth",
    "any": "any metric",
}
# A solver that takes any objective of a form; of several forms that an objective has, the first decides.
_SERVED_BY: dict[Form, str] = {
    "linear": "closed_form",
    "ratio": "path",
    "minimum": "column_generation",
    "concave": "frank_wolfe",
    "any": "ascent",
}


def has_form(objective: Objective, form: Form) -> bool:
    """Say whether an objective has a form; a linear one is also a ratio, and increasing transforms are looked through.

    Parameters
    ----------
    objective : Objective
    form : {"linear", "ratio", "concave", "minimum", "any"}
        "concave" means smooth as well, which a minimum is not.
    """
    return _HAS[form](objective)


@dataclass(frozen=True)
class Needs:
    """Requirements of a solver on its objective.

    Parameters
    ----------
    form : {"linear", "ratio", "concave", "minimum", "any"}
        Form that the metric must have.
    binary : bool, default=False
        Whether all outputs must have two classes.
    finite_range : bool, default=False
        Whether the ratios must have known bounds to start from.

    See Also
    --------
    BaseSolver : Declares its needs.

    Examples
    --------
    >>> from metricwise.solvers import SOLVERS
    >>> SOLVERS["dinkelbach"].needs.form, SOLVERS["sweep"].needs.binary
    ('ratio', True)
    """

    form: Form = "any"
    binary: bool = False
    finite_range: bool = False

    def missing(self, objective: Objective, title: str | None = None) -> str | None:
        """Return what an objective lacks and which solver to use instead; None if it lacks nothing.

        Parameters
        ----------
        objective : Objective
        title : str, optional
            Name of the metric, if it is one of several metrics of different outputs.
        """
        of = "" if title is None else f" for {title}"
        if not objective.grouping.apart:
            return (
                f"needs outputs that share a loss to be pooled in one confusion matrix{of}, because the best "
                f"loss of one block would change another; use {argument('solver', 'auto')}."
            )
        if not has_form(objective, self.form):
            name = type(objective.metrics[0]).__name__ if title is None else title
            kind = "a minimum" if objective.is_minimum else objective.family
            return f"needs {_WORDS[self.form]}. {name} is {kind}: {_remedy(objective, title)}."
        if self.binary and objective.width != 2:
            return f"needs binary outputs, got {objective.width} classes{of}: {_remedy(objective, title)}."
        if self.finite_range and not _has_finite_range(objective):
            return f"needs a metric with a finite range{of}: {_remedy(objective, title)}."
        return None

    def check(self, objective: Objective, solver: str, title: str | None = None) -> None:
        """Refuse an objective that lacks something; see :meth:`missing`."""
        missing = self.missing(objective, title)
        if missing is not None:
            raise InvalidParameter("solver", problem=f"{solver} {missing}", owner=None)


def _remedy(objective: Objective, title: str | None) -> str:
    """Say which solver serves an objective."""
    if title is not None:
        return f"use {argument('solver', 'auto')}, which picks a solver for each metric"
    served_by = next(_SERVED_BY[form] for form in _HAS if has_form(objective, form))
    return f"use {argument('solver', served_by)} or 'auto'"


def _has_finite_range(objective: Objective) -> bool:
    ratio = objective.ratio
    return ratio is not None and bool(np.isfinite(ratio.low).all() and np.isfinite(ratio.high).all())
