"""What people type: the ``metricwise`` command. Needs the extra ``cli``."""

from .app import main

__all__ = ["main"]
