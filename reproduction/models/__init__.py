"""Models that the experiments need and scikit-learn does not have."""

from .ordrec import OrdRec

__all__ = ["OrdRec"]
