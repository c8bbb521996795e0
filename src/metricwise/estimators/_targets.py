"""The target y of estimators: codes and classes of each output. Must not know models or rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets

from ..core.errors import InvalidParameter
from ..core.labels import Scales, label_array, python_labels
from ..core.schema import Schema
from ..data.classes import read_order
from ..data.frames import column_names, is_frame, scales_of
from ..data.labels import Labels, observed_labels

__all__ = ["Target", "declared_classes", "read_target"]


@dataclass(frozen=True, eq=False)
class Target:
    """Labels of M outputs.

    Parameters
    ----------
    codes : integer ndarray of shape (N, M)
        -1 where the label is missing.
    classes : tuple of M ndarrays
    several : bool
        Whether y is 2-D.
    scales : tuple of M tuples or None, optional
        The classes of each output in the order of y's categories, where these have one; see
        :class:`metricwise.data.Labels`. `classes` stay sorted, as scikit-learn has them.
    output_names : tuple, optional
        Columns of y, where that is a data frame.
    column_order : tuple of M tuples or None, optional
        Classes of each output in the order of the columns that a rule was fitted to, where it is another.
    """

    codes: NDArray[Any]
    classes: tuple[NDArray[Any], ...]
    several: bool
    scales: Scales | None = None
    output_names: tuple[Any, ...] | None = None
    column_order: Sequence[Sequence[Any] | None] | None = None

    @property
    def n_outputs(self) -> int:
        """M."""
        return len(self.classes)

    @property
    def n_rows(self) -> int:
        """N."""
        return len(self.codes)

    @property
    def compete(self) -> bool:
        """Whether the labels of a row compete, or are very many: see :class:`LabelTarget`."""
        return False

    @property
    def complete(self) -> bool:
        """Whether every label is observed, and every output has two classes or more among its labels."""
        return bool((self.codes >= 0).all()) and all(len(np.unique(column)) > 1 for column in self.codes.T)

    @property
    def indicator(self) -> bool:
        """Whether y is a multilabel indicator: several outputs of the classes 0 and 1."""
        return self.several and all(labels.tolist() == [0, 1] for labels in self.classes)

    @property
    def kind(self) -> str:
        """What names of metrics are read for: "binary", "multiclass", "multilabel" or "multioutput"."""
        two = max(len(labels) for labels in self.classes) == 2
        return ("multilabel" if two else "multioutput") if self.several else ("binary" if two else "multiclass")

    @property
    def schema(self) -> Schema:
        """Outputs and classes, as a goal is read for them."""
        names = None if self.output_names is None else tuple(map(str, self.output_names))
        return Schema(self.classes, multioutput=self.several, output_names=names, order=self.scales)

    def class_rows(self) -> NDArray[np.float64]:
        """Return the number of rows (M, K) of each class."""
        width = max(map(len, self.classes))
        return np.stack([np.bincount(codes[codes >= 0], minlength=width) for codes in self.codes.T]).astype(float)

    def strata(self) -> NDArray[np.intp]:
        """Return the code of each row's class, or combination of classes, (N,)."""
        codes = self.codes[:, 0] if self.n_outputs == 1 else self.codes
        return np.unique(codes, axis=0, return_inverse=True)[1].reshape(-1)

    @property
    def public_classes(self) -> Any:
        """Classes as scikit-learn has them: an array for a 1-D y, a list of arrays for a 2-D one."""
        return list(self.classes) if self.several else self.classes[0]

    def labels(self, rows: NDArray[Any]) -> Labels:
        """Return the labels of some rows for fitting a rule."""
        return Labels(self.codes[rows], self.classes, self.several, scales=self.scales, output_names=self.output_names)

    def given(self, rows: NDArray[Any]) -> Any:
        """Return the labels of some rows as an indicator matrix; refuse those that are none."""
        if not self.indicator or (self.codes < 0).any():
            raise InvalidParameter(
                "y",
                "be an indicator matrix of 0 and 1 without missing labels, because the estimator's probabilities are "
                "sparse",
                "other labels",
            )
        return self.codes[rows]

    def take(self, rows: Any) -> Target:
        """Return the target of some of the rows."""
        return replace(self, codes=self.codes[rows])

    def in_order(self, order: Any, y: Any) -> Target:
        """Return the target whose classes have the order that the user gives, or that of an ordered categorical y."""
        return replace(self, scales=read_order(order, self.classes, scales_of(y, self.classes)))

    def of_outputs(self, outputs: NDArray[np.intp]) -> Target:
        """Return the target of some of the outputs, given by position."""

        def some(values: Any) -> Any:
            return None if values is None else tuple(values[m] for m in outputs.tolist())

        return replace(
            self,
            codes=self.codes[:, outputs],
            classes=some(self.classes),
            scales=some(self.scales),
            output_names=some(self.output_names),
        )

    def column(self, m: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the rows of output m that are observed, and what an estimator is given for them."""
        rows = np.flatnonzero(self.codes[:, m] >= 0)
        return rows, self.named(m)[self.codes[rows, m]]

    def named(self, m: int) -> NDArray[Any]:
        """Return what an estimator calls the classes of output m: labels, or codes for labels of mixed types."""
        labels = self.classes[m]
        return np.arange(len(labels)) if labels.dtype.kind == "O" else labels

    def columns(self, m: int) -> NDArray[Any]:
        """Return what an estimator calls the classes of output m, in the order of the columns of a fit."""
        order = None if self.column_order is None else self.column_order[m]
        labels = python_labels(self.classes[m])
        return self.named(m) if order is None else self.named(m)[[labels.index(label) for label in order]]

    def whole(self, *, dense: bool = False) -> Any:
        """Return all of y as an estimator is given it, for a target that is complete; here always dense."""
        columns = [self.named(m)[self.codes[:, m]] for m in range(self.n_outputs)]
        if not self.several:
            return columns[0]
        return np.stack(columns, axis=1)

    def alike(self) -> bool:
        """Whether the labels of all outputs fit into one array of a plain type."""
        return len({self.named(m).dtype.kind for m in range(self.n_outputs)}) == 1

    def of_classes(self, classes: tuple[NDArray[Any], ...]) -> Target:
        """Return the target in terms of other classes, which must hold all that occur."""
        for m, (labels, allowed) in enumerate(zip(self.classes, classes, strict=True)):
            observed = labels[np.unique(self.codes[self.codes[:, m] >= 0, m])]
            unknown = sorted(set(observed.tolist()) - set(allowed.tolist()), key=str)
            if unknown:
                where = f"output {m} of y" if self.several else "y"
                raise InvalidParameter(
                    "classes", problem=f"{where} must hold only known classes, {allowed.tolist()}, got {unknown}"
                )
        return self.in_terms_of(classes)

    def in_terms_of(self, classes: tuple[NDArray[Any], ...]) -> Target:
        """Return the target in terms of other classes; labels that are not among them become missing."""
        return replace(self, codes=_recoded(self.codes, self.classes, classes), classes=classes)


def read_target(y: Any, classes: Any = None) -> Target:
    """Read y of shape (N,) or (N, M), dense or a sparse indicator; labels of a 2-D y may be missing."""
    if y is None:
        raise InvalidParameter("y", problem="the estimator requires y to be passed, but the target y is None")
    labels = observed_labels(y)
    if not (labels.codes >= 0).any():
        raise InvalidParameter("y", "have at least one observed label", f"{labels.codes.size} missing ones (NaN, None)")
    if not labels.multioutput and (labels.codes < 0).any():
        raise InvalidParameter(
            "y",
            "not have missing labels (NaN, None) if there is only one output",
            int((labels.codes < 0).sum()),
            "drop those rows",
        )
    target = Target(labels.codes, labels.classes, labels.multioutput)
    if classes is None:
        target = target.in_terms_of(_shared(_completed(labels.classes)))
    else:
        target = target.of_classes(_shared(declared_classes(labels, classes)))
    names = tuple(column_names(y)) if target.several and is_frame(y) else None
    target = replace(target, output_names=names).in_order(None, y)
    for m in range(target.n_outputs):
        # Of the labels once each, repeated so that they do not look like numbers that hardly ever repeat.
        check_classification_targets(np.repeat(target.named(m), 3))
    return target


def declared_classes(labels: Labels, classes: Any) -> tuple[NDArray[Any], ...]:
    """Return the declared classes of each output."""
    n_outputs = len(labels.classes)
    nested = labels.multioutput and len(classes) > 0 and np.ndim(classes[0]) == 1
    arrays = [label_array(labels_of_output) for labels_of_output in (classes if nested else [classes] * n_outputs)]
    if len(arrays) != n_outputs:
        raise InvalidParameter("classes", f"be one list of labels, or one for each of {n_outputs} outputs", len(arrays))
    for labels_of_output in arrays:
        if (
            labels_of_output.ndim != 1
            or len(labels_of_output) < 2
            or len(set(labels_of_output.tolist())) < len(labels_of_output)
        ):
            raise InvalidParameter("classes", "be at least two distinct labels", labels_of_output.tolist())
    return tuple(arrays)


def _completed(classes: tuple[NDArray[Any], ...]) -> tuple[NDArray[Any], ...]:
    """Return classes in which an output of fewer than two has those of another output that contain it, or of all."""
    if len(classes) == 1 and len(classes[0]) < 2:
        raise InvalidParameter("y", "have at least two classes", f"one class: {classes[0].tolist()}")
    if all(set(labels.tolist()) <= {0, 1} for labels in classes):
        kind = next(labels.dtype for labels in classes if len(labels))
        return tuple(np.array([0, 1]).astype(labels.dtype if len(labels) else kind) for labels in classes)
    every = observed_labels([label for labels in classes for label in labels.tolist()]).classes[0]
    if len(every) < 2:
        raise InvalidParameter("y", "have at least two classes", f"one class: {every.tolist()}")
    proper = [labels for labels in classes if len(labels) > 1]

    def complete(labels: NDArray[Any]) -> NDArray[Any]:
        if len(labels) > 1:
            return labels
        observed = set(labels.tolist())
        return next((other for other in proper if observed <= set(other.tolist())), every)

    return tuple(map(complete, classes))


def _shared(classes: tuple[NDArray[Any], ...]) -> tuple[NDArray[Any], ...]:
    """Let outputs of equal classes hold one array."""
    by_labels: dict[Any, NDArray[Any]] = {}
    return tuple(by_labels.setdefault((labels.dtype.str, tuple(labels.tolist())), labels) for labels in classes)


def _recoded(codes: NDArray[Any], old: tuple[NDArray[Any], ...], new: tuple[NDArray[Any], ...]) -> NDArray[Any]:
    """Return codes in terms of other classes; labels that are not among them become -1, missing."""
    out = codes.copy()
    for m, (before, after) in enumerate(zip(old, new, strict=True)):
        if before is not after:
            place = {label: code for code, label in enumerate(after.tolist())}
            moved = np.array([place.get(label, -1) for label in before.tolist()] + [-1], dtype=np.intp)
            out[:, m] = moved[codes[:, m]]  # the code -1 is the last entry
    return out
