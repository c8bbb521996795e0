"""Long work that can be stopped and continued: tasks over processes, results on disk, a bar. Knows no experiment."""

from .runner import run_experiment

__all__ = ["run_experiment"]
