"""Proportional odds: the probabilities of K ordered grades as a function of one score, or of a change of its unit.

Must not know labels or how the map is fitted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .cached import cached_property
from .errors import InvalidParameter, entry_point

__all__ = ["OrdinalMap", "proba_of_maps"]

FloatArray = NDArray[np.float64]

_CERTAIN = 40.0  # log-odds beyond which a probability is 1 in double precision
_MAX_PARAMETER = 1e100  # far beyond anything that is fitted; products and differences below it are numbers


@dataclass(frozen=True, eq=False)
class OrdinalMap:
    """Probabilities of ordered grades by proportional odds, ``P(y > k | z) = sigmoid(slope * u(z) - intercepts[k])``.

    Parameters
    ----------
    slope : float
        Positive.
    intercepts : array-like of shape (K - 1,)
        Ascending. A grade between two equal ones has probability 0.
    knots, heights : array-like of shape (J,), optional
        An increasing change of unit u, by its heights at knots of the score, both rising: linear in between, and
        beyond the ends as next to them. Without it, ``u(z) = z``.

    See Also
    --------
    metricwise.rules.ordinal_fit.fit_ordinal_maps : Fits the map to labels.

    References
    ----------
    .. [1] McCullagh (1980), "Regression Models for Ordinal Data", JRSS B.

    Examples
    --------
    >>> import numpy as np
    >>> from metricwise.rules import OrdinalMap
    >>> np.exp(OrdinalMap(2.0, [-1.0, 1.0]).log_proba([0.0, 3.0])).round(3)
    array([[0.269, 0.462, 0.269],
           [0.001, 0.006, 0.993]])
    """

    slope: float
    intercepts: FloatArray
    knots: FloatArray | None = None
    heights: FloatArray | None = None

    @entry_point("{class}")
    def __post_init__(self) -> None:
        intercepts = np.array(self.intercepts, dtype=np.float64)
        slope = float(self.slope)
        if not 0 < slope <= _MAX_PARAMETER:
            raise InvalidParameter("slope", f"be positive and at most {_MAX_PARAMETER:g}", repr(slope))
        if intercepts.ndim != 1 or len(intercepts) == 0:
            raise InvalidParameter("intercepts", "have shape (K - 1,)", intercepts.shape)
        if not (np.abs(intercepts) <= _MAX_PARAMETER).all():
            raise InvalidParameter("intercepts", f"be finite, and at most {_MAX_PARAMETER:g} in absolute value")
        if (np.diff(intercepts) < 0).any():
            raise InvalidParameter("intercepts", "be ascending", intercepts.tolist())
        object.__setattr__(self, "slope", slope)
        object.__setattr__(self, "intercepts", intercepts)
        if self.knots is not None or self.heights is not None:
            for name in ("knots", "heights"):
                object.__setattr__(self, name, _rising(getattr(self, name), name))
            if len(cast(FloatArray, self.knots)) != len(cast(FloatArray, self.heights)):
                raise InvalidParameter("knots", problem="knots and heights must have one shape (J,)")

    @property
    def n_classes(self) -> int:
        """K."""
        return len(self.intercepts) + 1

    @cached_property
    def _log_widths(self) -> FloatArray:
        """What the distance of its two intercepts contributes to each grade's log-probability, 0 at the ends, (K,)."""
        with np.errstate(divide="ignore"):
            inner = np.log(-np.expm1(-np.diff(self.intercepts)))
        return np.concatenate([[0.0], inner, [0.0]])

    def change_unit(self, scores: FloatArray) -> FloatArray:
        """Return u(z) of scores (N,)."""
        if self.knots is None or self.heights is None:
            return scores
        changed = np.interp(scores, self.knots, self.heights)
        first, last = (np.diff(self.heights) / np.diff(self.knots))[[0, -1]]
        with np.errstate(over="ignore"):
            changed += first * np.minimum(scores - self.knots[0], 0.0)
            changed += last * np.maximum(scores - self.knots[-1], 0.0)
        return np.asarray(changed)

    def log_proba(self, scores: ArrayLike) -> FloatArray:
        """Return the logarithms of the probabilities of the grades.

        A difference of two sigmoids is a product, ``sigmoid(a) * sigmoid(-b) * (1 - exp(b - a))``, whose logarithm
        neither cancels nor underflows.

        Parameters
        ----------
        scores : array-like of shape (N,)
            Of minus or plus infinity, the lowest or the highest grade is certain.

        Returns
        -------
        ndarray of shape (N, K)
        """
        scores = np.asarray(scores, dtype=np.float64)
        with np.errstate(over="ignore"):
            odds = self.slope * self.change_unit(scores)[:, None] - self.intercepts
        smaller = np.log1p(np.exp(-np.abs(odds)))
        out = np.repeat(self._log_widths[None], len(scores), axis=0)
        out[:, 1:] -= smaller + np.maximum(-odds, 0.0)  # log(1 + exp(-odds)): above the intercept below
        out[:, :-1] -= smaller + np.maximum(odds, 0.0)  # log(1 + exp(odds)): below the intercept above
        return out

    def grid(self, n_points: int) -> FloatArray:
        """Return about so many ascending scores, across which all probabilities go from 0 to 1 as floats."""
        start = float(self.intercepts[0] - _CERTAIN) / self.slope
        end = float(self.intercepts[-1] + _CERTAIN) / self.slope
        if self.knots is None or self.heights is None:
            return np.linspace(start, end, n_points)
        first, last = (np.diff(self.knots) / np.diff(self.heights))[[0, -1]]  # score per unit beyond the ends
        low = self.knots[0] - max(self.heights[0] - start, 0.0) * first
        high = self.knots[-1] + max(end - self.heights[-1], 0.0) * last
        corners = np.unique(np.concatenate([[low], self.knots, [high]]))
        between = max(2, n_points // (len(corners) - 1))
        parts = [np.linspace(a, b, between, endpoint=False) for a, b in pairwise(corners)]
        return np.unique(np.concatenate([*parts, [high]]))

    def to_dict(self) -> dict[str, Any]:
        """Return the map as a dict of JSON types."""
        data = {"slope": self.slope, "intercepts": self.intercepts.tolist()}
        if self.knots is not None and self.heights is not None:
            data |= {"knots": self.knots.tolist(), "heights": self.heights.tolist()}
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> OrdinalMap:
        """Return the map that :meth:`to_dict` has described."""
        return cls(data["slope"], data["intercepts"], data.get("knots"), data.get("heights"))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OrdinalMap) and self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]  # holds arrays, compares by content


def proba_of_maps(maps: Sequence[OrdinalMap], scores: FloatArray) -> FloatArray:
    """Return the probabilities (R, N, K) of the grades at scores (N,) by maps that differ in slope and intercepts only.

    Grades come before scores in memory.
    """
    slopes = np.array([fitted.slope for fitted in maps])[:, None, None]
    intercepts = np.stack([fitted.intercepts for fitted in maps])[:, :, None]
    with np.errstate(over="ignore"):
        odds = slopes * maps[0].change_unit(scores) - intercepts
    above = 0.5 + 0.5 * np.tanh(0.5 * odds)  # the sigmoid, which is faster so
    proba = np.empty((len(maps), maps[0].n_classes, len(scores)))
    proba[:, 0], proba[:, -1] = 1 - above[:, 0], above[:, -1]
    np.subtract(above[:, :-1], above[:, 1:], out=proba[:, 1:-1])
    return proba.swapaxes(1, 2)


def _rising(values: ArrayLike | None, name: str) -> FloatArray:
    array = np.array(() if values is None else values, dtype=np.float64)
    if array.ndim != 1 or len(array) < 2 or not (np.abs(array) <= _MAX_PARAMETER).all() or (np.diff(array) <= 0).any():
        raise InvalidParameter(name, "be two or more finite numbers that rise, or None with the other one None")
    return array
