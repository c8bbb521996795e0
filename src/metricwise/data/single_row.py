"""Check for a single row without its axis, p[0] instead of p[:1]. Must not know rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InvalidParameter, listed, shown, warn
from .frames import frame_index_names, is_frame, is_list_of_outputs, shape_of

__all__ = ["check_rows"]

_TOLERANCE = 1e-6  # what float32 leaves of a sum of 1


def check_rows(proba: Any, classes: Sequence[NDArray[Any]], multioutput: bool, *, sums_to_one: bool = True) -> None:
    """Refuse a single row without its axis, and warn where it cannot be told from several.

    Parameters
    ----------
    proba : array-like
        What a rule is to decide on.
    classes : sequence of M ndarrays
        Of the rule.
    multioutput : bool
        Whether the rule is for a 2-D y.
    sums_to_one : bool, default=True
        Whether a row with both classes would sum to 1, as probabilities do.
    """
    if is_frame(proba) or is_list_of_outputs(proba) or hasattr(proba, "tocsr"):
        return
    shape, m, k = shape_of(proba), len(classes), max(map(len, classes))
    if isinstance(proba, (list, tuple)):
        _check_list(proba, classes, multioutput)
    if multioutput:
        lacking = len(shape) == 1 or (len(shape) == 2 and (k > 2 or shape == (m, 2) != (2, 2)))
        shapes, row = (f"(N, {m}) or (N, {m}, 2)", (m,)) if k == 2 else (f"(N, {m}, {k})", (m, k))
    else:
        lacking, shapes, row = len(shape) == 1 and k > 2, f"(N, {k})", (k,)
    if lacking:
        raise InvalidParameter(
            "proba",
            f"have shape {shapes}, as the rule needs",
            f"shape {shape}",
            f"a single row must have shape {(1, *row)}: pass row.reshape({', '.join(map(str, (1, *row)))})",
        )
    if not sums_to_one:
        return
    if not multioutput and shape == (2,):
        _check_pair(proba, classes[0])
    elif multioutput and shape == (2, 2):
        _warn_of_two(proba, "two rows of two outputs")


def _check_list(proba: Sequence[Any], classes: Sequence[NDArray[Any]], multioutput: bool) -> None:
    """Refuse one row of each output of several, which is what comes of ``[p[0] for p in proba]``."""
    sizes = [getattr(item, "shape", None) for item in proba]
    if multioutput and len(set(sizes)) > 1 and sizes == [(len(labels),) for labels in classes]:
        raise InvalidParameter(
            "proba",
            "be a list of arrays of shape (N, K_m)",
            f"shapes {sizes[:3]}, which look like a single row",
            "for one row, pass arrays of shape (1, K_m): [p[None] for p in proba]",
        )


def _check_pair(proba: Any, labels: NDArray[Any]) -> None:
    """Two numbers are two rows for a binary rule; as a row of a frame they have the classes for names."""
    names, positive = frame_index_names(proba), shown(labels[1])
    if names is not None and names != [0, 1] and set(map(str, names)) == set(map(str, labels.tolist())):
        raise InvalidParameter(
            "proba",
            f"have one entry per row, the probability of {positive}, or shape (N, 2)",
            f"one row of a data frame, with the classes {listed(names)} as its index",
            "pass it as a data frame, frame.loc[[row]]",
        )
    _warn_of_two(proba, f"two rows, each the probability of {positive}")


def _warn_of_two(proba: Any, reading: str) -> None:
    """Warn if each pair of an array sums to 1; a list is written down by hand, and no row of an array."""
    if isinstance(proba, (list, tuple)):
        return
    pairs = np.atleast_2d(np.asarray(proba))
    if pairs.dtype.kind == "f" and (np.abs(pairs.sum(axis=1) - 1) <= _TOLERANCE).all():
        remedy = "proba.reshape(1, -1)" if np.ndim(proba) == 1 else "proba[None]"
        warn(
            f"proba is read as {reading}, but sums to 1 like one row with both classes; if it is one row, "
            f"pass {remedy}."
        )
