"""Pictures of solutions, rules and frontiers; see :mod:`metricwise.inspection.displays`."""

from .inspection.displays import *  # noqa: F403
from .inspection.displays import __all__ as __all__
