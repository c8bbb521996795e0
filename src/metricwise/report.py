"""Reports: everything that is known of a rule on one page; see :mod:`metricwise.inspection.report`."""

from .inspection.report import *  # noqa: F403
from .inspection.report import __all__ as __all__
