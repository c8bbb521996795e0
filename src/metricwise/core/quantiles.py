"""Quantiles of Student's distribution, without SciPy."""

from __future__ import annotations

__all__ = ["student_quantile"]


def student_quantile(z: float, degrees_of_freedom: float) -> float:
    """Return the quantile of Student's distribution at the level where the normal quantile is z (Cornish-Fisher)."""
    free = max(degrees_of_freedom, 1.0)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
    )
    return z + sum(term / free**power for power, term in enumerate(terms, start=1))
