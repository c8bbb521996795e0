"""What was given instead of what was asked for, as a part of a sentence."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import numpy as np

__all__ = ["TAGS_REMEDY", "caller_level", "listed", "shown"]

TAGS_REMEDY = "if these are the tags of each row, pass sklearn.preprocessing.MultiLabelBinarizer().fit_transform(y)"
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
    >>> from metricwise.core.messages import shown
    >>> shown("yes"), shown(np.float64(0.5)), shown(np.eye(2))
    ("'yes'", '0.5', 'ndarray of shape (2, 2)')
    """
    if isinstance(value, (np.datetime64, np.timedelta64)):  # as Python's own these may be bare numbers
        return str(value)
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


def listed(labels: Iterable[Any]) -> str:
    """Return all of some labels for a message, as a list.

    Parameters
    ----------
    labels : iterable

    Returns
    -------
    str

    Examples
    --------
    >>> import numpy as np
    >>> from metricwise.core.messages import listed
    >>> listed(["yes", 2]), listed(np.array(["2020-01-01"], dtype="datetime64[D]"))
    ("['yes', 2]", '[2020-01-01]')
    """
    return f"[{', '.join(map(shown, labels))}]"


def caller_level() -> int:
    """How many frames above who asks the first one is that is neither this package's nor scikit-learn's."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] in ("metricwise", "sklearn"):
        frame, level = frame.f_back, level + 1
    return level
