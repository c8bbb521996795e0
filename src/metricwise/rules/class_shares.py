"""Rules moved to other class shares by Bayes' rule, without the rows that they were fitted to.

Under a shift of the class shares alone (the rows of each class look as before), the odds of class j change by the ratio
of its shares. Must not know metrics; what becomes of a rule was said by its fit, in its metadata.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InvalidParameter, argument
from ..core.labels import python_labels
from ..core.ordinal_map import OrdinalMap
from ..core.schema import Schema
from ..data.weights import read_prior
from .calibration import TemperatureScaling
from .decisions import bisect_grades
from .metadata import RuleMetadata
from .stored_calibration import StoredCalibration, require_calibration

__all__ = ["ShareShift", "read_shift", "moved_metadata"]

FloatArray = NDArray[np.float64]

UNCHANGED, EXACT, APPROXIMATE = "unchanged", "exact", "approximate"
_ROUNDING = 1e-12  # of the logarithm of a ratio of shares that are the same
_LEAST_SHARE = 1e-6  # what a share of 0 counts as: a class is never abolished, and infinite biases are no JSON


class ShareShift(NamedTuple):
    """A shift of class shares, for one rule.

    Parameters
    ----------
    log_ratio : ndarray of shape (M, K)
        Logarithm of new over old shares; 0 for padding and for classes without labelled rows.
    calibration : StoredCalibration
    exact : bool
        Whether the loss stays the best one, so that the rule only follows the probabilities.
    followed : float
        Share of the shift that decisions follow, unless it is exact.
    """

    log_ratio: FloatArray
    calibration: StoredCalibration
    exact: bool
    followed: float = 1.0

    def move_link(self, link: TemperatureScaling | None) -> TemperatureScaling:
        """Return the recalibration of a rule after the shift.

        The best loss for a metric that is no fixed table changes with the shares, so that decisions follow only a share
        of the shift. A rule that decides by other numbers than the calibrated ones (raw probabilities) is moved in
        their unit, by the ratio of the temperatures.
        """
        link = TemperatureScaling.identity(*self.log_ratio.shape) if link is None else link
        temperatures = (link.temperature / self.calibration.link.temperature)[:, None]
        unit = 1.0 if self.exact else self.followed * temperatures
        return TemperatureScaling(link.temperature, link.bias + unit * self.log_ratio, link.floor)

    def move_thresholds(self, thresholds: FloatArray, link: TemperatureScaling | None) -> FloatArray:
        """Return thresholds (M, 1) of scores of two classes after the shift."""
        behind = link if self.exact and link is not None else self.calibration.link
        log_odds = self._followed_ratio[:, 1] - self._followed_ratio[:, 0]
        return np.asarray(thresholds - (log_odds / behind.temperature)[:, None])

    @property
    def _followed_ratio(self) -> FloatArray:
        """What decisions follow of the shift, (M, K)."""
        return self.log_ratio if self.exact else self.followed * self.log_ratio

    def move_cut_points(self, cuts: FloatArray, ordinal: OrdinalMap) -> FloatArray:
        """Return cut points (K - 1,) of one score after the shift.

        Cut points are those of the largest weighted probability, for weights that say at which odds two neighbouring
        grades change; a grade between equal cut points has weight 0. The shift changes the weights.
        """
        predicted = np.diff(np.concatenate([[-np.inf], cuts, [np.inf]])) > 0
        grades = np.flatnonzero(predicted)
        log_weight = np.full(len(predicted), -np.inf)
        log_weight[grades[0]] = 0.0
        for low, high in pairwise(grades.tolist()):
            log_proba = ordinal.log_proba([cuts[low]])[0]
            log_weight[high] = log_weight[low] + log_proba[low] - log_proba[high]
        return bisect_grades(ordinal, log_weight + self._followed_ratio[0] / self.calibration.link.temperature[0])


def read_shift(prior: Any, schema: Schema, metadata: RuleMetadata) -> tuple[ShareShift, FloatArray]:
    """Read new class shares for a rule; return the shift, and the shares (M, K)."""
    calibration = require_calibration(metadata.calibration, schema, "with_prior")
    shares = read_prior(prior, schema.n_classes, schema.classes)
    old = assumed_shares(metadata, calibration, schema)
    unlabelled = (calibration.shares == 0) & (shares > 0)
    if unlabelled.any():
        m, k = np.argwhere(unlabelled)[0]
        raise InvalidParameter(
            "prior",
            "be 0 for classes that no labelled row of the fit had, because nothing is known of their probabilities",
            f"{shares[m, k]:g} for {python_labels(schema.classes[m])[k]!r}",
            f"pass {argument('prior')} with 0 there, or fit the rule again with labels of the class",
        )
    occurring = calibration.shares > 0
    ratio = np.log(np.maximum(shares, _LEAST_SHARE) / np.maximum(old, _LEAST_SHARE))
    log_ratio = np.where(occurring & (np.abs(ratio) > _ROUNDING), ratio, 0.0)
    n_occurring = np.maximum(occurring.sum(axis=1, keepdims=True), 1)
    log_ratio -= np.where(occurring, log_ratio.sum(axis=1, keepdims=True) / n_occurring, 0.0)  # readable numbers
    followed = 1.0 if metadata.followed_shift is None else float(metadata.followed_shift)
    return ShareShift(log_ratio, calibration, metadata.under_new_shares == EXACT, followed), shares


def assumed_shares(metadata: RuleMetadata, calibration: StoredCalibration, schema: Schema) -> FloatArray:
    """Return the class shares (M, K) that the decisions of a rule are for: of its rows, unless it was moved."""
    if metadata.prior is None:
        return calibration.shares
    return read_prior([list(shares) for shares in metadata.prior], schema.n_classes)


def moved_metadata(
    metadata: RuleMetadata, shares: FloatArray, n_classes: NDArray[np.intp], how: str = "shifted"
) -> dict[str, Any]:
    """Return the entries of a rule after a shift: its shares; without estimates and promises.

    All promises are withdrawn: those about recalls as well, for other decisions have other recalls.
    """
    entries: dict[str, Any] = {
        "prior": [row[:k].tolist() for row, k in zip(shares, n_classes.tolist(), strict=True)],
        "moved": how,
        **dict.fromkeys(("value", "baseline", "gain", "value_on_new_rows")),
    }
    if metadata.promises is not None:
        entries["promises"] = [{**promise, "confidence": None, "value": None} for promise in metadata.promises]
        entries |= {"confidence": None, "guarantee": None}
    return entries
