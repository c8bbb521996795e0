"""Long runs that can be stopped and continued: tasks over processes, results on disk, progress."""

from .runner import run_experiment

__all__ = ["run_experiment"]
