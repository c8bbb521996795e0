"""Oracles: everything that touches rows, behind one small interface.

Owns the answer to "give me a loss, I give you the confusion tensor of the rule that minimises it". An engine is one
more module here. Must not know metrics or solvers.
"""

from .base import Line, Oracle, Walk
from .blended import BlendedOracle
from .memory import MemoryOracle
from .passes import Passes, in_passes

__all__ = ["BlendedOracle", "Line", "MemoryOracle", "Oracle", "Passes", "Walk", "in_passes"]
