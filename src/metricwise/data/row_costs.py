"""Costs of decisions that differ from row to row, such as the amount of a loan."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InvalidParameter, InvalidType
from ..core.labels import has_masked

__all__ = ["read_row_costs", "table_of"]

FloatArray = NDArray[np.float64]


def read_row_costs(
    cost: Any, n_rows: int, n_classes: int, *, abstain: bool = False, abstain_cost: float | None = None
) -> FloatArray:
    """Read costs by row, and refuse other shapes than those that say what every decision costs.

    Parameters
    ----------
    cost : array-like of shape (N, K), (N, K, K) or (N, K, K + 1)
        What a wrong decision about a row costs where its class is k, a right one being free; or what each decision
        does, the true class first; with one more column for an abstention.
    n_rows, n_classes : int
    abstain : bool, default=False
        Whether rules may abstain.
    abstain_cost : float, optional
        What an abstention costs, whatever the row, where the costs do not say.

    Returns
    -------
    ndarray of one of these shapes

    Examples
    --------
    >>> from metricwise.data.row_costs import read_row_costs
    >>> read_row_costs([[1.0, 20.0], [1.0, 5.0]], 2, 2).shape
    (2, 2)
    """
    k = n_classes
    if cost is None:
        raise InvalidParameter("cost", f"give the costs of decisions about each of the {n_rows} rows", "None")
    if has_masked(cost):
        raise InvalidType("cost", "not have masked entries, because every decision needs a cost", remedy="fill them in")
    try:
        array = np.asarray(cost, dtype=np.float64)
    except OverflowError:
        raise InvalidParameter("cost", "hold numbers of up to 1.8e308", "a larger one") from None
    except (TypeError, ValueError):
        raise InvalidParameter("cost", "be an array of numbers", type(cost).__name__) from None
    with_abstention = (k, k + 1)
    allowed = [(n_rows, k), (n_rows, k, k)] if not abstain or abstain_cost is not None else []
    allowed += [(n_rows, *with_abstention)] if abstain and abstain_cost is None else []
    if array.shape not in allowed:
        table = array.shape in ((k, k), with_abstention)
        remedy = "; for one table for all rows, use metric=metrics.Cost(cost)" if table else ""
        if abstain and abstain_cost is None:
            remedy = f"; the last column is the cost of abstaining, or set abstain= to the cost{remedy}"
        shapes = " or ".join(map(str, allowed))
        raise InvalidParameter("cost", f"have shape {shapes}, for each row and true class", f"{array.shape}{remedy}")
    if not np.isfinite(array).all():
        row = int(np.argwhere(~np.isfinite(array))[0][0])
        raise InvalidParameter("cost", "be finite", f"NaN or infinity in row {row}")
    return array


def table_of(cost: FloatArray, abstain_cost: float | None = None) -> FloatArray:
    """Return what every decision about some rows costs, (n, K, D), the true class first.

    Examples
    --------
    >>> import numpy as np
    >>> from metricwise.data.row_costs import table_of
    >>> table_of(np.array([[1.0, 20.0]]), abstain_cost=2.0).tolist()
    [[[0.0, 1.0, 2.0], [20.0, 0.0, 2.0]]]
    """
    if cost.ndim == 2:
        cost = cost[:, :, None] * (1.0 - np.eye(cost.shape[1]))
    if abstain_cost is None:
        return cost
    return np.concatenate([cost, np.full((*cost.shape[:2], 1), abstain_cost)], axis=2)
