"""The set of all confusion tensors that rules can reach, as an object, and what it says about a metric's optimum.

Owns the geometry of the paper's feasible set: its oracle, support function, membership with a certificate either way,
two-dimensional pictures, and whether one weighted rule suffices. Nothing that fits or applies a rule depends on it.
"""

from .feasible import FeasibleSet
from .results import Decomposition, Exit, Membership
from .weighting import Weighting, does_weighting_suffice

__all__ = ["Decomposition", "Exit", "FeasibleSet", "Membership", "Weighting", "does_weighting_suffice"]
