"""The paper's experiments: repetitions that can be stopped and continued, and reports next to the paper's numbers."""

from .base import Experiment, Settings
from .catalogue import EXPERIMENTS, reproduce

__all__ = ["EXPERIMENTS", "Experiment", "Settings", "reproduce"]
