"""Say once that the NumPy kernels serve because the compiled ones are not installed.

pip hides what a build prints, so that a package without compiled kernels would be slow without anybody knowing why.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from .. import kernels
from ..core.errors import warn

__all__ = ["warn_of_slow_kernels"]

_MIN_NUMBERS = 100_000  # in a call; a default one on as many took 1.2 s with compiled kernels, and 2.8 s with NumPy

# Without --no-cache-dir, pip would install the wheel again that it built without a compiler.
_REINSTALL = "pip install --force-reinstall --no-deps --no-cache-dir --no-binary metricwise metricwise"

_is_due = bool(kernels.why_not_compiled())


def warn_of_slow_kernels(blocks: Sequence[NDArray[Any]]) -> None:
    """Warn in the first call on many numbers, unless METRICWISE_KERNELS asked for the NumPy kernels."""
    global _is_due
    if not _is_due or sum(block.size for block in blocks) < _MIN_NUMBERS:
        return
    _is_due = False
    warn(
        "the compiled kernels are not installed, so that the slower NumPy kernels are used, with the same results "
        f"({kernels.why_not_compiled()}). Install a wheel for this platform, or install a C compiler and run "
        f"{_REINSTALL}; {kernels.VARIABLE}=numpy silences this warning."
    )
