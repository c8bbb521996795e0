"""Arrays of other libraries: PyTorch, JAX, TensorFlow, CuPy.

Owns how they become arrays of NumPy's: shared where they lie in memory in a type that NumPy has, else copied. Libraries
are recognised by what their objects can do, never imported.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["host_array", "is_tensor", "shared_array"]


def is_tensor(values: Any) -> bool:
    """Whether `values` is an array of another library than NumPy."""
    if isinstance(values, np.ndarray) or hasattr(values, "to_numpy") or not hasattr(values, "shape"):
        return False
    return hasattr(values, "__dlpack__") or type(values).__module__.split(".")[0] == "tensorflow"


def shared_array(values: Any) -> NDArray[Any] | None:
    """Return an array that shares the memory of a tensor; None for one on a device, or of a type that NumPy lacks."""
    try:
        return np.from_dlpack(_detached(values))
    except (AttributeError, BufferError, RuntimeError, TypeError, ValueError):
        return None


def host_array(values: Any) -> NDArray[Any]:
    """Return a tensor as an array, a copy where there is no other way; what NumPy has no type for as float32.

    Parameters
    ----------
    values : tensor
        That requires a gradient or not, on any device, of any floating type.
    """
    array = shared_array(values)
    if array is not None:
        return array
    if hasattr(values, "detach"):  # PyTorch's
        values = _detached(values).cpu()
        values = values.float() if "bfloat16" in str(values.dtype) else values  # of which it has no array
    for name in ("get", "numpy"):  # CuPy's, and PyTorch's and TensorFlow's
        if hasattr(values, name) and not isinstance(values, np.ndarray):
            values = getattr(values, name)()
    array = np.asarray(values)
    return array.astype(np.float32) if "bfloat16" in str(array.dtype) else array


def _detached(values: Any) -> Any:
    """Return a tensor without its gradient, and with the signs that it stands for.

    PyTorch's may be marked as negated, as the imaginary part of a conjugate is: its memory then holds the numbers with
    the opposite sign.
    """
    values = values.detach() if hasattr(values, "detach") else values
    return values.resolve_neg() if hasattr(values, "resolve_neg") else values
