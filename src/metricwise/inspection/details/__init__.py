"""What rows say of a rule beside plain argmax: what displays, cards and reports show.

Owns what is counted of the rows for whoever looks at a rule: confusions before and after, the way from argmax to the
rule, which rows move, whether probabilities are kept, and gains by output or class. Must not know how any of it is
drawn, nor fit anything.
"""

from .curve import Curve
from .facts import Details
from .gains import Gains
from .missing import Missing, NotApplicable, attempt
from .moves import Moves
from .reliability import Bins, Reliability, calibration_bins

__all__ = [
    "Bins",
    "Curve",
    "Details",
    "Gains",
    "Missing",
    "Moves",
    "NotApplicable",
    "Reliability",
    "attempt",
    "calibration_bins",
]
