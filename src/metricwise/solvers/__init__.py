"""Solvers: ways to walk the set of reachable confusions, one file per algorithm.

Each is a frozen dataclass of settings with ``solve(oracle, objective) -> Solution``. A solver asks the objective what
form it has, never which metric it is, and sees rows only through the oracle. Solvers do not import one another.
"""

import inspect
from collections.abc import Callable
from functools import cache
from typing import Any

from .ascent import Ascent
from .base import Gain, Recorded, Solution, Solver
from .bisection import Bisection
from .closed_form import ClosedForm
from .column_generation import ColumnGeneration
from .dinkelbach import Dinkelbach
from .frank_wolfe import FrankWolfe
from .path import Path
from .sweep import Sweep

__all__ = [
    "SOLVERS",
    "Ascent",
    "Bisection",
    "ClosedForm",
    "ColumnGeneration",
    "Dinkelbach",
    "FrankWolfe",
    "Gain",
    "Path",
    "Recorded",
    "Solution",
    "Solver",
    "Sweep",
    "make_solver",
]

SOLVERS: dict[str, Callable[..., Solver]] = {
    "closed_form": ClosedForm,
    "sweep": Sweep,
    "bisection": Bisection,
    "dinkelbach": Dinkelbach,
    "path": Path,
    "frank_wolfe": FrankWolfe,
    "column_generation": ColumnGeneration,
    "ascent": Ascent,
}


def make_solver(name: str, **settings: Any) -> Solver:
    """Return the solver of a name with those of the settings that it has; None is its default.

    Examples
    --------
    >>> from metricwise.solvers import make_solver
    >>> make_solver("bisection", tol=1e-6, seed=3)
    Bisection(tol=1e-06, max_iter=60)
    """
    known = _settings(name)
    return SOLVERS[name](**{key: value for key, value in settings.items() if key in known and value is not None})


@cache
def _settings(name: str) -> frozenset[str]:
    """What a solver can be told."""
    return frozenset(inspect.signature(SOLVERS[name]).parameters)
