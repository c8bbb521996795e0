"""The set of all confusion tensors that rules can reach; see :mod:`metricwise.theory.geometry`."""

from .theory.geometry import *  # noqa: F403
from .theory.geometry import __all__ as __all__
