"""What a fitted rule keeps of its rows: a calibration with its sampling error, and the class shares.

Kept by every fitted rule, whether its decisions use it or not, so that the rule can be judged on and moved to rows
without labels. Must not know losses or metrics.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InvalidParameter
from ..core.schema import Schema
from .calibration import TemperatureScaling

__all__ = ["StoredCalibration", "require_calibration"]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class StoredCalibration:
    """The calibration of the rows that a rule was fitted to.

    Parameters
    ----------
    link : TemperatureScaling
        Fitted by maximum likelihood to the labels.
    shares : ndarray of shape (M, K)
        Class shares of the labels, by weight; 0 for padding.
    n_rows : ndarray of shape (M,)
        Effective number of labelled rows of each output.
    covariance : tuple of M ndarrays of shape (K_m, K_m) or None
        Of ``(t, a_1, ..., a_{K-1})``, with ``a_j = (c_j - c_0) - log(share_j / share_0)``: the parameters of the
        density ratios of the classes. None for outputs with more than 30 classes, or with nothing to learn from.
    """

    link: TemperatureScaling
    shares: FloatArray
    n_rows: FloatArray
    covariance: tuple[FloatArray | None, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the calibration as a dict of JSON types."""
        return {
            **self.link.to_dict(),
            "shares": self.shares.tolist(),
            "rows": self.n_rows.tolist(),
            "covariance": [None if matrix is None else matrix.tolist() for matrix in self.covariance],
        }

    @classmethod
    def of(cls, document: Mapping[str, Any] | None, schema: Schema) -> StoredCalibration | None:
        """Return the calibration from the metadata of a rule; None if there is none, or none that fits the rule."""
        if document is None:
            return None
        try:
            link = TemperatureScaling(document["temperature"], document["bias"], document["floor"])
            shares = np.array(document["shares"], dtype=np.float64)
            n_rows = np.array(document["rows"], dtype=np.float64)
            matrices = [None if m is None else np.array(m, dtype=np.float64) for m in document["covariance"]]
        except (KeyError, TypeError, ValueError):
            return None
        size = (schema.n_outputs, schema.width)
        good = link.bias.shape == shares.shape == size and n_rows.shape == size[:1] and len(matrices) == size[0]
        good = good and link.of_logits == schema.input.is_logits and bool(np.isfinite(shares).all())
        good = good and bool((shares >= 0).all() and (n_rows >= 0).all())
        for matrix, k in zip(matrices, schema.n_classes.tolist(), strict=good):
            good = good and (matrix is None or (matrix.shape == (k, k) and bool(np.isfinite(matrix).all())))
        return cls(link, shares, n_rows, tuple(matrices)) if good else None


def require_calibration(document: Mapping[str, Any] | None, schema: Schema, purpose: str) -> StoredCalibration:
    """Return the calibration that a rule keeps; refused for rules by hand and files of earlier versions."""
    calibration = StoredCalibration.of(document, schema)
    if calibration is None:
        raise InvalidParameter(
            "rule",
            f"keep a calibration of the rows that it was fitted to, which {purpose} needs; rules by hand, rules "
            "fitted without labels and files of earlier versions keep none",
            remedy="fit the rule again with metricwise.optimize and labels",
        )
    return calibration
