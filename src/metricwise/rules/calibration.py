"""Recalibration of probabilities by temperature scaling, ``eta' = softmax(t * log(eta) + c)``, and of logits.

Has the map and its change under a shift of the class priors; ``calibration_fit`` fits t and c. Must not know losses,
metrics or labels.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import kernels
from ..core.cached import cached_property
from ..core.errors import InvalidParameter, entry_point
from ..core.probabilities import Probabilities
from ..core.schema import Schema
from ..data.frames import is_list_of_outputs

FloatArray = NDArray[np.float64]

_FLOOR = 1e-6
_MAX_PARAMETER = 1e100  # far beyond anything that is fitted; products and differences below it are numbers


@dataclass(frozen=True, eq=False)
class TemperatureScaling:
    """Recalibration of probabilities by a temperature and a bias per class.

    ``eta' = softmax(t * log(max(eta, floor)) + c)`` for each output; ``softmax(t * z + c)`` of logits z, where single
    columns are log-odds of the second class.

    Parameters
    ----------
    temperature : ndarray of shape (M,)
        The temperatures t, positive. Below 1 the probabilities become less extreme, above 1 more extreme.
    bias : ndarray of shape (M, K)
        The biases c; only differences between the classes of an output matter.
    floor : float, default=1e-6
        Smaller probabilities are raised to this value, because the logarithm of 0 would decide alone. 0: the map is
        of logits, log-probabilities or scores, and not of probabilities.

    See Also
    --------
    metricwise.optimize : Fits the link, unless ``recalibrate=False``.
    metricwise.displays.ReliabilityDisplay : Calibration before and after the link.

    Examples
    --------
    >>> import numpy as np
    >>> from metricwise.data.probabilities import read_proba
    >>> from metricwise.rules import TemperatureScaling
    >>> link = TemperatureScaling(temperature=np.array([1.0]), bias=np.array([[0.0, np.log(4.0)]]))
    >>> link.apply(read_proba(np.array([[0.5, 0.5]]))).blocks[0]
    array([[[0.2, 0.8]]])
    """

    temperature: FloatArray
    bias: FloatArray
    floor: float = _FLOOR

    @entry_point("{class}")
    def __post_init__(self) -> None:
        temperature = np.asarray(self.temperature, dtype=np.float64)
        bias = np.asarray(self.bias, dtype=np.float64)
        if temperature.ndim != 1 or bias.ndim != 2 or len(bias) != len(temperature):
            raise InvalidParameter(
                "temperature", "have shape (M,) and bias (M, K)", f"{temperature.shape} and {bias.shape}"
            )
        least, most = temperature.min(initial=1.0), temperature.max(initial=1.0)
        if not 0 < least <= most < np.inf:  # nor is it for NaN
            raise InvalidParameter("temperature", "be positive and finite", f"{temperature.min():.6g}")
        largest = np.abs(bias).max(initial=0.0)
        if not largest < np.inf:
            raise InvalidParameter("bias", "be finite", "NaN or infinity")
        for name, size in (("temperature", most), ("bias", largest)):
            if size > _MAX_PARAMETER:
                raise InvalidParameter(name, f"be at most {_MAX_PARAMETER:g}", f"{size:.6g}")
        if not 0 <= self.floor < 0.5:
            raise InvalidParameter("floor", "be at least 0 and below 0.5", repr(self.floor))
        object.__setattr__(self, "temperature", temperature)
        object.__setattr__(self, "bias", bias)
        object.__setattr__(self, "floor", float(self.floor))

    @classmethod
    def identity(cls, n_outputs: int, n_classes: int) -> TemperatureScaling:
        """Return the link that leaves probabilities unchanged, except for the floor."""
        return cls(np.ones(n_outputs), np.zeros((n_outputs, n_classes)))

    @classmethod
    def of_arrays(cls, arrays: kernels.LinkArrays) -> TemperatureScaling:
        """Return the map of bare arrays."""
        return cls(*arrays)

    @property
    def of_logits(self) -> bool:
        """Whether it maps logits, log-probabilities or scores."""
        return self.floor == 0.0

    @property
    def n_outputs(self) -> int:
        """M."""
        return len(self.temperature)

    @property
    def n_classes(self) -> int:
        """K."""
        return int(self.bias.shape[1])

    @cached_property
    def arrays(self) -> kernels.LinkArrays:
        """The bare arrays of the link, as kernels take them."""
        return kernels.LinkArrays(self.temperature, self.bias, self.floor)

    def to_dict(self) -> dict[str, Any]:
        """Return the link as a dict of JSON types."""
        return {"temperature": self.temperature.tolist(), "bias": self.bias.tolist(), "floor": self.floor}

    def of_outputs(self, outputs: NDArray[np.intp]) -> TemperatureScaling:
        """Return the link of some of the outputs, given by position."""
        return TemperatureScaling(self.temperature[outputs], self.bias[outputs], self.floor)

    @entry_point()
    def view(self, proba: Probabilities) -> Probabilities:
        """Return a view of the recalibrated probabilities: the link is applied in every pass, without a copy.

        Parameters
        ----------
        proba : Probabilities
            Of M outputs.

        Returns
        -------
        Probabilities
            The same blocks, and this link.
        """
        self._check(proba)
        return proba.linked(self.arrays)

    @entry_point()
    def apply(self, proba: Probabilities) -> Probabilities:
        """Return a recalibrated copy of the probabilities; :meth:`view` avoids the copy.

        Parameters
        ----------
        proba : Probabilities
            Of M outputs.

        Returns
        -------
        Probabilities
            New blocks of the same shapes and dtypes; a padding class keeps probability 0.
        """
        self._check(proba)
        result = proba.linked(self.arrays).recalibrated()
        kinds = [block.dtype for block in proba.blocks]
        blocks = tuple(block.astype(kind, copy=False) for block, kind in zip(result.blocks, kinds, strict=True))
        return replace(result, blocks=blocks)

    def _check(self, proba: Probabilities) -> None:
        if proba.n_outputs != self.n_outputs or proba.width > self.n_classes:
            raise InvalidParameter(
                "proba",
                problem=(
                    f"proba must have {self.n_outputs} outputs of at most {self.n_classes} "
                    f"classes, got {proba.n_outputs} of {proba.width}"
                ),
            )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TemperatureScaling):
            return NotImplemented
        return (
            self.floor == other.floor
            and np.array_equal(self.temperature, other.temperature)
            and np.array_equal(self.bias, other.bias)
        )

    __hash__ = None  # type: ignore[assignment]  # holds arrays, compares by content


def link_or_base(link: TemperatureScaling | None, schema: Schema) -> TemperatureScaling | None:
    """Return the link of a rule: logits without one have their own map."""
    base = schema.input.base
    return link if link is not None or base is None else TemperatureScaling.of_arrays(base)


def recalibrated(link: TemperatureScaling | None, proba: Probabilities) -> Probabilities:
    """Return probabilities behind a link, or a copy of them where there is none; of logits, what these stand for."""
    if link is not None:
        return link.apply(proba)
    if proba.of_logits:
        return proba.recalibrated()
    return replace(proba, blocks=tuple(block.copy() for block in proba.blocks))


def shaped_like(original: Any, proba: Probabilities, multioutput: bool) -> NDArray[Any] | list[NDArray[Any]]:
    """Return the blocks of probabilities in the shape that these were given in."""
    if multioutput and is_list_of_outputs(original):
        return [block[:, 0] for block in proba.blocks]
    (block,) = proba.blocks
    if multioutput or (block.ndim == 2 and np.ndim(original) == 2):
        return block
    return block[:, 0]


@entry_point("prior_shift")
def prior_shift(
    link: TemperatureScaling | None, source: ArrayLike, target: ArrayLike, *, floor: float = _FLOOR
) -> TemperatureScaling:
    """Move a link to rows whose class priors are known to differ from those it was fitted on.

    Under a shift of the priors alone (the rows of each class look as before), Bayes' rule multiplies the probability
    of class j by ``target_j / source_j``: the bias grows by the logarithm.

    Parameters
    ----------
    link : TemperatureScaling or None
        What to shift; None is the identity.
    source, target : array-like of shape (K,) or (M, K)
        Class priors of the rows behind the probabilities (or behind `link`), and of the rows to come; each output sums
        to 1, padding classes are 0.
    floor : float, default=1e-6
        A target prior of 0 counts as this, which is as good as never; infinite biases are no JSON. A class whose source
        prior is 0 keeps its bias: the data say nothing of how its probability was scaled.

    Returns
    -------
    TemperatureScaling

    Examples
    --------
    >>> from metricwise.rules import prior_shift
    >>> prior_shift(None, source=[0.5, 0.5], target=[0.9, 0.1]).bias.round(4)
    array([[ 1.0986, -1.0986]])
    """
    source, target = _priors(source, "source"), _priors(target, "target")
    if source.shape != target.shape:
        raise InvalidParameter("target", f"have the shape of source, {source.shape}", target.shape)
    if link is None:
        link = TemperatureScaling.identity(*source.shape)
    if link.bias.shape != source.shape:
        raise InvalidParameter("source", f"have the shape of the link, {link.bias.shape}", source.shape)
    occurring = source > 0
    shift = np.log(np.maximum(target, floor) / np.maximum(source, floor), where=occurring, out=np.zeros_like(source))
    # Only differences matter: centred over the classes that exist, the numbers stay readable.
    shift -= np.where(occurring, shift.sum(axis=1, keepdims=True) / occurring.sum(axis=1, keepdims=True), 0.0)
    return TemperatureScaling(link.temperature, link.bias + shift, link.floor)


def _priors(values: ArrayLike, name: str) -> FloatArray:
    array = np.array(values, dtype=np.float64, ndmin=2)
    if array.ndim != 2:
        raise InvalidParameter(name, "have shape (K,) or (M, K)", array.shape)
    if not (np.isfinite(array).all() and (array >= 0).all()):
        raise InvalidParameter(name, "be non-negative and finite", f"{array.min():.6g}")
    total = array.sum(axis=1)
    if (np.abs(total - 1) > 1e-6).any():
        worst = total[np.argmax(np.abs(total - 1))]
        raise InvalidParameter(name, "sum to 1 over the classes", f"{worst:.6g}")
    return array
