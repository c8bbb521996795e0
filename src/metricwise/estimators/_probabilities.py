"""Models that fit the target, and what they say of rows that they were not fitted to.

Estimators are calibrated or fitted output by output where the target needs it. Must not know metrics or rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.utils import get_tags
from sklearn.utils.parallel import Parallel, delayed

from ..core.errors import InvalidParameter, argument
from ..data.label_rows import is_sparse
from ..data.row_spec import take_rows
from ._compat import params_of_rows
from ._labels import LabelTarget, fit_indicator, join_folds, label_matrix
from ._per_output import CalibrationFolds, PerOutputClassifier, calibration_groups, fit_labels
from ._responses import Response
from ._targets import Target

__all__ = [
    "Pool",
    "make_trainable",
    "out_of_fold",
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
    if isinstance(target, LabelTarget):  # of which many may be rare
        return target.n_outputs > 1 and labels
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
    if isinstance(target, LabelTarget):
        return fit_indicator(model, X, target, params)
    with calibration_groups(model, groups):
        return fit_labels(model, X, target.whole(), params)


def _weighted_rows(rows: NDArray[Any] | None, params: dict[str, Any]) -> NDArray[Any] | None:
    weight = params.get("sample_weight")
    if weight is None or np.all(weight):
        return rows
    some = np.flatnonzero(weight)
    return some if rows is None else np.asarray(rows)[np.isin(rows, some)]


# -------------------------------------------------------------------------------------------------- out of fold


class Pool:
    """What fold models say of the rows that they were not fitted to; means for rows that are tested several times.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (N, n_features)
    target : Target
    models : list of fitted models
    tests : list of ndarrays or None
        The rows that each model is asked about; None for all.
    n_jobs : int, optional
        Models that are asked at a time.
    """

    def __init__(
        self, X: Any, target: Target, models: list[Any], tests: Sequence[Any], n_jobs: int | None = None
    ) -> None:
        self.X, self.target, self.models, self.tests, self.n_jobs = X, target, models, tests, n_jobs
        self.counts = np.zeros(target.n_rows, dtype=np.intp)
        for rows in tests:
            self.counts[slice(None) if rows is None else rows] += 1
        self.rows = np.flatnonzero(self.counts)
        self.means: dict[Response, Any] = {}

    def ask(self, response: Response) -> Any:
        """Return a response of all tested rows, an array (n, w) per output; models are asked once.

        Of very many labels, it is one array or sparse array (n, M).
        """
        if response not in self.means:
            answers = Parallel(n_jobs=self.n_jobs)(
                delayed(_ask)(response, model, self.X, self.target, rows)
                for model, rows in zip(self.models, self.tests, strict=True)
            )
            self.take(response, answers)
        return self.means[response]

    def take(self, response: Response, answers: Sequence[Any]) -> None:
        """Keep the means of what the models have said."""
        if not isinstance(answers[0], list):
            self.means[response] = join_folds(answers, self.tests, self.counts, self.rows)
            return
        n, counts = len(self.counts), self.counts
        sums = [np.full((n, block.shape[1]), response.absent, dtype=block.dtype) for block in answers[0]]
        for rows, blocks in zip(self.tests, answers, strict=True):
            for total, block in zip(sums, blocks, strict=True):
                response.add(total, slice(None) if rows is None else rows, block)
        if len(self.rows) < n or counts.max() > 1:
            sums = [response.divide(total[self.rows], counts[self.rows]) for total in sums]
        self.means[response] = sums

    def packed(self, response: Response) -> Any:
        """Return a response of all tested rows in a shape that `optimize` takes."""
        answer = self.ask(response)
        return response.pack(answer, self.target) if isinstance(answer, list) else answer


def out_of_fold(
    model: Any,
    X: Any,
    target: Target,
    splits: Sequence[tuple[Any, Any]],
    params: dict[str, Any],
    *,
    response: Response,
    groups: Any = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> Pool:
    """Fit clones of a model on the folds, in parallel, and ask each about the rows left out."""
    results = Parallel(n_jobs=n_jobs, verbose=verbose)(
        delayed(_fit_and_ask)(clone(model), X, target, split, params, groups, response) for split in splits
    )
    pool = Pool(X, target, [fitted for fitted, _ in results], [test_rows for _, test_rows in splits], n_jobs)
    pool.take(response, [blocks for _, blocks in results])
    return pool


def _fit_and_ask(
    model: Any,
    X: Any,
    target: Target,
    split: tuple[Any, Any],
    params: dict[str, Any],
    groups: Any,
    response: Response,
) -> tuple[Any, Any]:
    fit_rows, test_rows = split
    model = train(model, X, target, fit_rows, params, groups)
    return model, _ask(response, model, X, target, test_rows)


def _ask(response: Response, model: Any, X: Any, target: Target, rows: Any) -> Any:
    X = X if rows is None else take_rows(X, rows)
    if not response.is_given_by(model):
        raise InvalidParameter("estimator", f"have {response.method} once it is fitted", type(model).__name__)
    raw = response.ask(model, X)
    if target.compete or (target.several and is_sparse(raw)):
        return label_matrix(response, raw, model, target)
    blocks = response.blocks_of(raw, model, target)
    response.check(model, X, target, blocks)
    return blocks
