"""What works with scikit-learn; it is imported when a function here is called, not before."""

from .scoring import make_scorer

__all__ = ["make_scorer"]
