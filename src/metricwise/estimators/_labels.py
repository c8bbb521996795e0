"""Very many labels in estimators: the indicator matrix y, and what models say of each label, sparse or dense.

Must not know metrics or rules.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import Pipeline

from ..core.cached import cached_property
from ..core.errors import InvalidParameter
from ..core.label_sets import LabelSets
from ..data.frames import as_array, column_names, is_frame
from ..data.label_rows import as_csr, is_sparse, read_label_targets
from ..data.row_spec import take_rows
from ._per_output import PerOutputClassifier
from ._responses import Response
from ._targets import Target

__all__ = [
    "LabelMatrix",
    "LabelTarget",
    "as_given",
    "fit_indicator",
    "form_of",
    "is_too_large",
    "join_folds",
    "label_matrix",
    "read_label_target",
]

LabelMatrix = Any  # a CSR array or an ndarray, of shape (N, M)

_MAX_DENSE = 1 << 30  # cells of an indicator matrix beyond which it is never made dense


def is_too_large(y: Any) -> bool:
    """Whether y is sparse and too large for an array."""
    return is_sparse(y) and int(y.shape[0]) * int(y.shape[-1]) > _MAX_DENSE


class LabelTarget(Target):
    """An indicator matrix whose labels compete or are very many; codes are made only where they are asked for.

    Parameters
    ----------
    y : sparse array or matrix, or array-like, of shape (N, M)
        As it was given.
    sets : LabelSets
        The labels of each row.
    """

    def __init__(self, y: Any, sets: LabelSets) -> None:
        names = tuple(column_names(y)) if is_frame(y) else None
        values = {
            "y": y,
            "sets": sets,
            "classes": (np.array([0, 1]),) * sets.n_labels,
            "several": True,
            "scales": None,
            "output_names": names,
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    y: Any
    sets: LabelSets

    @cached_property
    def codes(self) -> NDArray[np.intp]:  # a field of other targets
        """Labels as codes, (N, M)."""
        codes = np.zeros((self.n_rows, self.n_outputs), dtype=np.intp)
        codes[self.sets.rows, self.sets.indices] = 1
        return codes

    @property
    def n_rows(self) -> int:
        """N."""
        return self.sets.n_rows

    @property
    def compete(self) -> bool:
        """Always."""
        return True

    @property
    def complete(self) -> bool:
        """Whether every label is true for some rows and false for others."""
        counts = self.sets.count()
        return bool(((counts > 0) & (counts < self.n_rows)).all())

    @property
    def indicator(self) -> bool:
        """Always."""
        return True

    def class_rows(self) -> NDArray[np.float64]:
        """Return the number of rows (M, 2) of each class."""
        counts = self.sets.count()
        return np.stack([self.n_rows - counts, counts], axis=1)

    def strata(self) -> NDArray[np.intp]:
        """Return a number for each combination of labels, (N,)."""
        bounds, indices = self.sets.indptr.tolist(), self.sets.indices
        numbers: dict[bytes, int] = {}
        keys = (indices[start:stop].tobytes() for start, stop in pairwise(bounds))
        return np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.intp)

    def take(self, rows: Any) -> LabelTarget:
        """Return the target of some of the rows."""
        numbers = np.arange(self.n_rows)[rows]
        return LabelTarget(take_rows(self.y, numbers), self.sets.take(numbers))

    def given(self, rows: Any) -> Any:
        """Return y of some rows, as it was given."""
        return take_rows(self.y, rows)

    def in_order(self, order: Any, y: Any) -> Target:
        """Return the target itself: labels have no order."""
        return self

    def of_classes(self, classes: tuple[NDArray[Any], ...]) -> Target:
        """Return the target itself, if the classes are those of an indicator."""
        if len(classes) != self.n_outputs:
            raise InvalidParameter("y", f"have {len(classes)} columns", self.n_outputs)
        return self

    def column(self, m: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return all rows, and whether label m is true for them."""
        order, bounds = self._by_label
        labels = np.zeros(self.n_rows, dtype=int)
        labels[self.sets.rows[order[bounds[m] : bounds[m + 1]]]] = 1
        return np.arange(self.n_rows), labels

    @cached_property
    def _by_label(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Entries by label, and where those of each label begin."""
        order = np.argsort(self.sets.indices, kind="stable")
        return order, np.searchsorted(self.sets.indices[order], np.arange(self.n_outputs + 1))

    def whole(self, *, dense: bool = False) -> Any:
        """Return all of y as an estimator is given it: sparse where it was, unless it is to be `dense`."""
        if not is_sparse(self.y):
            return as_array(self.y)
        return as_csr(self.y, "y").toarray() if dense else self.y


def read_label_target(y: Any) -> LabelTarget:
    """Read an indicator matrix, sparse or dense, whose labels must all be observed."""
    if y is None:
        raise InvalidParameter("y", problem="the estimator requires y to be passed, but the target y is None")
    y = as_csr(y, "y") if is_sparse(y) else y
    shape = y.shape if hasattr(y, "shape") else np.shape(y)
    if len(shape) != 2:
        raise InvalidParameter(
            "y",
            "be an indicator matrix of shape (n_samples, n_outputs) with labels per row, or metrics of them",
            f"shape {tuple(shape)}",
            "pass sklearn.preprocessing.MultiLabelBinarizer(sparse_output=True).fit_transform(y)",
        )
    read = read_label_targets(y, int(shape[0]), int(shape[1]))
    return LabelTarget(y, LabelSets(read.indptr, read.indices, int(shape[1])))


# ------------------------------------------------------------------------------------------------------------- models


def fit_indicator(model: Any, X: Any, target: LabelTarget, params: dict[str, Any]) -> Any:
    """Fit a model of all labels; labels that no row has, or all rows have, are constants.

    A sparse y is handed on as it is to one-vs-rest and to estimators of other libraries; others of scikit-learn take
    arrays only.
    """
    if isinstance(model, MultiOutputClassifier) and not target.complete:
        return PerOutputClassifier(model.estimator, n_jobs=model.n_jobs).fit_target(X, target, **params)
    dense = not _takes_sparse(model) and not is_too_large(target.y)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Label .* is present in all training examples", category=UserWarning)
        return model.fit(X, target.whole(dense=dense), **params)


def _takes_sparse(model: Any) -> bool:
    """Whether an estimator takes a sparse indicator matrix."""
    if isinstance(model, Pipeline):
        return _takes_sparse(model.steps[-1][1])
    return isinstance(model, OneVsRestClassifier) or type(model).__module__.partition(".")[0] != "sklearn"


def label_matrix(response: Response, raw: Any, model: Any, target: Target) -> LabelMatrix:
    """Return what a model has said of every label of rows: CSR if it is sparse, else an array (N, M)."""
    if is_sparse(raw):
        csr = as_csr(raw, "estimator")
        if csr.shape[1] != target.n_outputs:
            raise InvalidParameter(
                "estimator",
                problem=f"the estimator must have {target.n_outputs} outputs, as y has, got {csr.shape[1]}",
            )
        return csr
    if not isinstance(raw, (list, tuple)) and np.ndim(raw) == 2 and np.shape(raw)[1] == target.n_outputs > 1:
        return np.asarray(raw)
    blocks = response.blocks_of(raw, model, target)
    return np.stack([block[:, -1] for block in blocks], axis=1)


def join_folds(answers: Sequence[Any], tests: Sequence[Any], counts: NDArray[np.intp], rows: NDArray[np.intp]) -> Any:
    """Return what folds say of the rows tested, in their order; means for rows that are tested several times.

    Parameters
    ----------
    answers : list of CSR arrays, or of ndarrays, of shape (n, M)
    tests : list of ndarrays or None
        The rows of each; None for all.
    counts : ndarray of shape (N,)
        How often each row is tested.
    rows : ndarray of shape (n,)
        The rows that are tested at all.
    """
    from scipy import sparse

    parts = [np.arange(len(counts)) if part is None else np.asarray(part) for part in tests]
    numbers = np.concatenate(parts)
    once, order = len(numbers) == len(rows), np.argsort(numbers, kind="stable")
    if not any(is_sparse(answer) for answer in answers):
        if once:
            return np.concatenate(answers)[order]
        sums = np.zeros((len(counts), answers[0].shape[1]), dtype=answers[0].dtype)
        for part, answer in zip(parts, answers, strict=True):
            sums[part] += answer
        return sums[rows] / counts[rows, None].astype(sums.dtype)
    stacked = sparse.vstack([sparse.csr_array(answer) for answer in answers], format="csr")
    if once:
        return stacked[order]
    shares = (1.0 / counts[numbers]).astype(stacked.dtype)
    places = (np.searchsorted(rows, numbers), np.arange(len(numbers)))
    return (sparse.csr_array((shares, places), shape=(len(rows), len(numbers))) @ stacked).tocsr()


def form_of(y: Any) -> str:
    """Return what y is: "array", "csr_matrix" or "csr_array"."""
    from scipy import sparse

    if not is_sparse(y):
        return "array"
    return "csr_matrix" if isinstance(y, sparse.spmatrix) else "csr_array"


def as_given(decisions: Any, form: str) -> Any:
    """Return decisions in the form that labels had in `fit`."""
    from scipy import sparse

    if form == "array":
        return decisions.toarray().astype(int) if is_sparse(decisions) else decisions
    make = sparse.csr_matrix if form == "csr_matrix" else sparse.csr_array
    return make(decisions, dtype=np.int8)
