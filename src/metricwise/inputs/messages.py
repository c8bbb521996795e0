"""What was given instead of what was asked for, as a part of a sentence."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["shown"]

_LONGEST = 80


def shown(value: Any) -> str:
    """Return a value for a message: on one line, cut where it is long; of arrays and tables the kind and the shape.

    Parameters
    ----------
    value : object

    Returns
    -------
    str

    Examples
    --------
    >>> import numpy as np
    >>> from metricwise.inputs.messages import shown
    >>> shown("yes"), shown(np.float64(0.5)), shown(np.eye(2))
    ("'yes'", '0.5', 'ndarray of shape (2, 2)')
    """
    if isinstance(value, np.generic):
        value = value.item()
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple):
        return f"{type(value).__name__} of shape {shape}"
    try:
        text = " ".join(repr(value).split())
    except ValueError:  # Python writes no integers of thousands of digits
        text = type(value).__name__
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
