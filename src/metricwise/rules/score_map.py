"""The map from scores to probabilities: scores have no scale, and labels tell it.

Must not know losses or metrics.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import kernels
from ..core.errors import InvalidParameter
from ..core.inputs import Input, identity
from ..core.probabilities import Probabilities
from ..data.probabilities import graded_logits
from .calibration_fit import SHRINKAGE, bound_logits, fit_scale
from .ordinal_fit import fit_ordinal_maps

__all__ = ["fit_input", "fit_score_map", "map_scores"]

FloatArray = NDArray[np.float64]

_REVERSED_ERRORS = 3.0  # standard errors by which scores must fall with their class to be refused as reversed
_SMOOTHING = 0.5  # rows of every class that are added to those that labels show


def fit_input(
    proba: Probabilities,
    codes: NDArray[Any],
    sample_weight: FloatArray | None,
    frequency: FloatArray | None,
    row_input: Input,
) -> Input:
    """Return the input of scores with their map to probabilities; parameters are those of :func:`fit_score_map`."""
    if not row_input.graded:
        return replace(row_input, base=fit_score_map(proba, codes, sample_weight, frequency, row_input))
    assert proba.scores is not None
    labelled = (proba.scores, codes[:, 0], proba.width, sample_weight)
    (ordinal,) = fit_ordinal_maps(*labelled, frequency=frequency)
    return replace(row_input, base=identity(1, proba.width), ordinal=ordinal)


def map_scores(proba: Probabilities, row_input: Input) -> Probabilities:
    """Return scores behind the map of an input from :func:`fit_input`."""
    assert row_input.base is not None
    return graded_logits(proba, row_input, proba.width) if row_input.graded else proba.linked(row_input.base)


def fit_score_map(
    proba: Probabilities,
    codes: NDArray[Any],
    sample_weight: FloatArray | None,
    frequency: FloatArray | None,
    row_input: Input,
) -> kernels.LinkArrays:
    """Return the map ``softmax(t * z + c)`` from scores z to probabilities that fits labels best.

    Scores far out are moved to the bounds of a box plot, and all are standardised: the columns of an output by one
    location and one scale, those of a row about their mean. Then t is fitted with a weak prior on log t, and c with one
    around the shares of the classes. Scores of all classes keep c = 0 in the result, and so do single columns with a
    boundary, because the map says what the baseline is: argmax, or the sign.

    Parameters
    ----------
    proba : Probabilities
        Scores, as logits.
    codes : integer ndarray of shape (N, M)
        -1 where the label is missing.
    sample_weight, frequency : ndarray of shape (N,), optional
    row_input : Input
    """
    base = identity(proba.n_outputs, proba.width)
    for block, span in proba.spans():
        for m in range(span.start, span.stop):
            k, column = int(proba.n_classes[m]), block[:, m - span.start]
            bounded = bound_logits(column if block.ndim == 2 else column[:, :k], codes[:, m], 0.0)
            standard, location, scale = _standardise(bounded)
            if not row_input.has_boundary:
                where = f" of output {m}" if proba.n_outputs > 1 else ""
                _refuse_reversed(standard, codes[:, m], sample_weight, where)
            center = _log_shares(codes[:, m], sample_weight, k)
            t, bias = fit_scale(standard, codes[:, m], sample_weight, frequency, center, SHRINKAGE)
            base.temperature[m] = t / scale
            if block.ndim == 2 and not row_input.has_boundary:
                base.bias[m, 1] = bias[1] - bias[0] - t * location / scale
    return base


def _standardise(z: FloatArray) -> tuple[FloatArray, float, float]:
    """Return scores (N,) or (N, K) of mean 0 and standard deviation 1, their location and their scale."""
    location = float(z.mean())
    if z.ndim == 2:
        z, location = z - z.mean(axis=1, keepdims=True), 0.0
    scale = float(np.sqrt(np.mean((z - location) ** 2)))
    scale = scale if scale > 0 else 1.0
    return (z - location) / scale, location, scale


def _refuse_reversed(standard: FloatArray, codes: NDArray[Any], weight: FloatArray | None, where: str) -> None:
    """Refuse scores that fall with their class: by the score test of t = 0 against the shares of the classes.

    `where` says in a message whose scores these are.
    """
    kept = codes >= 0
    z, true = standard[kept], codes[kept].astype(np.intp)
    w = np.ones(len(true)) if weight is None else weight[kept]
    if len(true) == 0 or w.sum() <= 0:
        return
    if z.ndim == 1:
        z = np.stack([np.zeros(len(z)), z], axis=1)
    shares = np.bincount(true, w, minlength=z.shape[1]) / w.sum()
    centred = z - (w @ z) / w.sum()
    slopes = w * (centred[np.arange(len(true)), true] - centred @ shares)
    error = float(np.sqrt((slopes**2).sum()))
    if slopes.sum() < -_REVERSED_ERRORS * error:
        raise InvalidParameter(
            "proba",
            problem=f"larger must mean more of the class, but the scores{where} are smaller for rows of the class",
            remedy="pass -scores",
        )


def _log_shares(codes: NDArray[Any], weight: FloatArray | None, k: int) -> FloatArray:
    """Return the logarithms of the smoothed shares of classes, (k,), relative to the first."""
    counts = kernels.tally(codes[:, None], weight, k)[0]
    if weight is not None and counts.sum() > 0:
        counts = counts * np.count_nonzero(codes >= 0) / counts.sum()
    logs = np.log(counts + _SMOOTHING)
    return np.asarray(logs - logs[0])
