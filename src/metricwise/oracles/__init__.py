"""The oracle: everything that is counted of rows, behind one small interface.

Owns the answer to "give me a loss, I give you the confusion tensor of the rule that minimises it", over any source of
rows. Must not know metrics or solvers, nor where rows lie.
"""

from .base import Line, Oracle, TooManyChangesError, Walk
from .counts import Counts

__all__ = ["Counts", "Line", "Oracle", "TooManyChangesError", "Walk"]
