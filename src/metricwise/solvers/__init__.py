"""Solvers, one file per algorithm.

Each is a frozen dataclass of settings with ``solve(oracle, objective) -> SolverResult`` and declares what it needs. A
solver asks the objective for its form, never for its metric, and sees rows only through the oracle. Solvers do not
import one another.
"""

from typing import Any

from ..core.errors import InvalidParameter
from .ascent import Ascent
from .base import BaseSolver, Needs, Solver
from .bisection import Bisection
from .closed_form import ClosedForm
from .column_generation import ColumnGeneration
from .dinkelbach import Dinkelbach
from .frank_wolfe import FrankWolfe
from .path import Path
from .result import Certificate, Outcome, SolverResult
from .sweep import Sweep

__all__ = [
    "SOLVERS",
    "Ascent",
    "BaseSolver",
    "Bisection",
    "Certificate",
    "ClosedForm",
    "ColumnGeneration",
    "Dinkelbach",
    "FrankWolfe",
    "Needs",
    "Outcome",
    "Path",
    "Solver",
    "SolverResult",
    "Sweep",
    "make_solver",
]

SOLVERS: dict[str, type[BaseSolver]] = {
    "closed_form": ClosedForm,
    "sweep": Sweep,
    "bisection": Bisection,
    "dinkelbach": Dinkelbach,
    "path": Path,
    "frank_wolfe": FrankWolfe,
    "column_generation": ColumnGeneration,
    "ascent": Ascent,
}


def make_solver(name: str, **settings: Any) -> BaseSolver:
    """Return a solver by name.

    Parameters
    ----------
    name : str
        A key of `SOLVERS`.
    **settings
        Settings of the solver; one that is None keeps its default, and one that the solver does not have is an error.

    Returns
    -------
    BaseSolver

    See Also
    --------
    metricwise.optimize : Takes a solver, or its name.

    Examples
    --------
    >>> from metricwise.solvers import make_solver
    >>> make_solver("bisection", tol=1e-6, max_iter=None)
    Bisection(tol=1e-06, max_iter=60)
    """
    solver = SOLVERS[name]
    chosen = {key: value for key, value in settings.items() if value is not None}
    for key in sorted(chosen.keys() - solver.settings()):
        takers = sorted(other for other, cls in SOLVERS.items() if key in cls.settings())
        remedy = f"Solvers that take it: {', '.join(map(repr, takers))}." if takers else "No solver takes it."
        raise InvalidParameter("solver", problem=f"solver={name!r} takes no {key}, got {key}={chosen[key]!r}. {remedy}")
    return solver(**chosen)
