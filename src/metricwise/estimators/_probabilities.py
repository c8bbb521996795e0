"""Out-of-fold probabilities, aligned with the classes of the target.

Estimators are calibrated or fitted output by output where the target needs it. Must not know metrics or rules.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.utils import get_tags
from sklearn.utils.parallel import Parallel, delayed

from ..core.errors import InvalidParameter, argument
from ..data.frames import column_names, is_frame, match_columns
from ..data.row_spec import take_rows
from ._compat import params_of_rows
from ._per_output import CalibrationFolds, PerOutputClassifier, calibration_groups, fit_labels
from ._targets import Target

__all__ = [
    "Pool",
    "aligned_proba",
    "fitted_classes",
    "known_classes",
    "make_trainable",
    "out_of_fold",
    "pack",
    "train",
]


# ------------------------------------------------------------------------------------------------------ models


def make_trainable(estimator: Any, target: Target, calibration: str | None = None, n_jobs: int | None = None) -> Any:
    """Return an unfitted estimator that can fit the target: as it is, calibrated, or one per output.

    Estimators that take all outputs at once do so where every label is observed; a calibrator and a missing label need
    one estimator per output.
    """
    if calibration is not None and target.several and isinstance(estimator, FrozenEstimator):
        raise InvalidParameter(
            "y",
            problem=f"calibration={calibration!r} needs a 1-D y if the estimator is prefitted",
            remedy=f"use calibration=None and {argument('recalibrate', True)} instead",
        )
    native = calibration is None and (not target.several or _takes_all(estimator, target))
    model = clone(estimator)
    if calibration is not None:
        model = CalibratedClassifierCV(model, method=calibration, cv=CalibrationFolds())
    return model if native or not target.several else PerOutputClassifier(model, n_jobs=n_jobs)


def _takes_all(estimator: Any, target: Target) -> bool:
    if isinstance(estimator, FrozenEstimator):
        return True
    tags = get_tags(estimator)
    every = tags.target_tags.multi_output
    labels = every or (tags.classifier_tags is not None and tags.classifier_tags.multi_label)
    return target.n_outputs > 1 and target.complete and target.alike() and (labels if target.indicator else every)


def train(
    model: Any, X: Any, target: Target, rows: NDArray[Any] | None, params: dict[str, Any], groups: Any = None
) -> Any:
    """Fit a model to some of the rows, all of them if None; those without weight are left out.

    A calibrator keeps rows of one group together in its own folds.
    """
    rows = _weighted_rows(rows, params)
    if rows is not None:
        X, target, params = take_rows(X, rows), target.take(rows), params_of_rows(X, params, indices=rows)
        groups = None if groups is None else take_rows(groups, rows)
    if isinstance(model, PerOutputClassifier):
        return model.fit_target(X, target, groups, **params)
    with calibration_groups(model, groups):
        return fit_labels(model, X, target.whole(), params)


def _weighted_rows(rows: NDArray[Any] | None, params: dict[str, Any]) -> NDArray[Any] | None:
    weight = params.get("sample_weight")
    if weight is None or np.all(weight):
        return rows
    some = np.flatnonzero(weight)
    return some if rows is None else np.asarray(rows)[np.isin(rows, some)]


def known_classes(model: Any, target: Target) -> tuple[NDArray[Any], ...]:
    """Return what the columns of a fitted model's probabilities stand for, as labels of the target where it can."""
    classes = getattr(model, "classes_", None)
    if classes is None:
        return target.classes
    if not target.several:
        return (_plain(classes),)
    nested = isinstance(classes, (list, tuple)) and len(classes) == target.n_outputs and np.ndim(classes[0]) == 1
    return tuple(map(_plain, classes)) if nested else tuple(np.array([0, 1]) for _ in range(target.n_outputs))


def fitted_classes(model: Any, X: Any = None) -> tuple[tuple[NDArray[Any], ...], bool]:
    """Return the classes of each output of a fitted model, and whether its labels are 2-D, without any labels given.

    Multilabel models often have ``classes_`` like those of a multiclass one, a list of the outputs; what they predict
    for a row is the one sign that all of them give. Without rows at hand, one of zeros is tried.
    """
    classes = model.classes_
    if isinstance(classes, (list, tuple)) and len(classes) and np.ndim(classes[0]) == 1:
        return tuple(map(_plain, classes)), True
    width = _predicted_width(model, X)
    return (tuple(np.array([0, 1]) for _ in range(width)), True) if width > 1 else ((_plain(classes),), False)


def _predicted_width(model: Any, X: Any) -> int:
    """Return the number of columns that a model predicts; 1 where it cannot be found out."""
    if X is not None:
        predicted = model.predict(take_rows(X, slice(0, 1)))
    else:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of columns that have no names
                predicted = model.predict(np.zeros((1, model.n_features_in_)))
        except Exception:  # columns that are no numbers, or go by name
            return 1
    shape = np.shape(predicted)
    return int(shape[1]) if len(shape) == 2 else 1


def _plain(labels: Any) -> NDArray[Any]:
    """Labels of one type as an array of that type: estimators often keep strings as objects."""
    array = np.asarray(labels)
    if array.dtype.kind != "O":
        return array
    return np.array(array.tolist()) if len(set(map(type, array.tolist()))) == 1 else array


def aligned_proba(model: Any, X: Any, target: Target) -> list[NDArray[Any]]:
    """Return a model's probabilities as one array (N, K_m) per output, columns in the order of the target's classes."""
    proba = model.predict_proba(X)
    blocks: list[Any]
    if not target.several:
        blocks = [proba]
    elif isinstance(proba, (list, tuple)):
        blocks = list(proba)
    else:
        blocks = list(_unstacked(np.asarray(proba), target))
    if len(blocks) != target.n_outputs:
        raise InvalidParameter(
            "estimator", problem=f"the estimator must have {target.n_outputs} outputs, as y has, got {len(blocks)}"
        )
    classes = known_classes(model, target)
    return [_aligned(_by_name(block, classes[m]), classes[m], target, m) for m, block in enumerate(blocks)]


def _by_name(block: Any, classes: NDArray[Any]) -> NDArray[Any]:
    """Return an array in the order of the classes, for a data frame whose columns are named by them."""
    named = is_frame(block) and set(map(str, column_names(block))) == set(map(str, classes.tolist()))
    return np.asarray(match_columns(block, classes) if named else block)


def _unstacked(proba: NDArray[Any], target: Target) -> list[NDArray[Any]]:
    """Read (N, M) probabilities of class 1, or (N, M, K)."""
    if proba.ndim == 3:
        return [proba[:, m, : len(labels)] for m, labels in enumerate(target.classes)]
    if any(len(labels) != 2 for labels in target.classes):
        raise InvalidParameter(
            "estimator",
            problem=(
                "the estimator's predict_proba must return a list with one array per output if outputs "
                f"have more than two classes, got an array of shape {proba.shape}"
            ),
        )
    return [np.stack([1 - column, column], axis=1) for column in proba.T]


def _aligned(block: NDArray[Any], classes: NDArray[Any], target: Target, m: int) -> NDArray[Any]:
    """Put the columns of one output in order; classes that a fold lacks get 0, rows without any probability 1/K."""
    names = target.named(m)
    if block.ndim != 2 or block.shape[1] != len(classes):
        raise InvalidParameter(
            "estimator",
            problem=(
                f"the estimator's predict_proba must have one column per class, {len(classes)}, got shape {block.shape}"
            ),
        )
    if len(classes) == len(names) and np.array_equal(classes, names):
        return block
    place = {label: k for k, label in enumerate(names.tolist())}
    unknown = [label for label in classes.tolist() if label not in place]
    if unknown:
        raise InvalidParameter(
            "estimator", problem=f"the estimator's classes must be among {list(place)}, got also {unknown}"
        )
    out = np.zeros((len(block), len(names)), dtype=block.dtype if block.dtype.kind == "f" else np.float64)
    out[:, [place[label] for label in classes.tolist()]] = block
    out[~out.any(axis=1)] = 1.0 / len(names)
    return out


# -------------------------------------------------------------------------------------------------- out of fold


@dataclass(frozen=True, eq=False)
class Pool:
    """Out-of-fold probabilities of the tested rows, in a shape that `optimize` takes, and models if kept."""

    rows: NDArray[Any]
    proba: Any
    models: list[Any]


def out_of_fold(
    model: Any,
    X: Any,
    target: Target,
    splits: Sequence[tuple[Any, Any]],
    params: dict[str, Any],
    *,
    groups: Any = None,
    keep: bool = False,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> Pool:
    """Fit clones of a model on the folds, in parallel, and return the mean probabilities of the rows left out."""
    results = Parallel(n_jobs=n_jobs, verbose=verbose)(
        delayed(_fit_and_predict)(clone(model), X, target, fit_rows, test_rows, params, groups)
        for fit_rows, test_rows in splits
    )
    n, first = len(target.codes), results[0][1]
    sums = [np.zeros((n, block.shape[1]), dtype=block.dtype) for block in first]
    counts = np.zeros(n, dtype=np.intp)
    for (_, test_rows), (_, blocks) in zip(splits, results, strict=True):
        counts[test_rows] += 1
        for total, block in zip(sums, blocks, strict=True):
            total[test_rows] += block
    rows = np.flatnonzero(counts)
    if len(rows) < n or counts.max() > 1:
        sums = [total[rows] / counts[rows, None].astype(total.dtype) for total in sums]
    return Pool(rows, pack(sums, target), [model for model, _ in results] if keep else [])


def _fit_and_predict(
    model: Any, X: Any, target: Target, fit_rows: Any, test_rows: Any, params: dict[str, Any], groups: Any
) -> tuple[Any, list[NDArray[Any]]]:
    model = train(model, X, target, fit_rows, params, groups)
    return model, aligned_proba(model, take_rows(X, test_rows), target)


def pack(blocks: list[NDArray[Any]], target: Target) -> Any:
    """Return the arrays of the outputs in a shape that `optimize` and rules take, one array where widths agree."""
    if not target.several:
        return blocks[0]
    if len({block.shape[1] for block in blocks}) == 1:
        return np.stack(blocks, axis=1)
    return blocks
