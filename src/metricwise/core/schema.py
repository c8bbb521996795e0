"""Outputs, classes and names: what a rule must know of the rows that it is for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .cached import cached_property
from .inputs import PROBABILITIES, Input
from .labels import Scales, are_one, distinct_objects, known_positive, python_label, python_labels, shared

__all__ = ["Schema", "second_is_positive", "with_label"]


IntArray = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Schema:
    """Outputs and classes of a problem, and of the rule that is fitted to it.

    Parameters
    ----------
    classes : sequence of M ndarrays
        Label of each class, in column order.
    multioutput : bool, default=False
        Whether predictions are 2-D, as for a 2-D y.
    normalize : bool, default=False
        Whether each row is divided by its sum, so that scores are accepted.
    output_names : tuple of str, optional
        Names of the outputs, to which the columns of a multilabel data frame are matched.
    n_extra : int, default=0
        Number of decisions that are not classes, such as abstaining; they come after the classes of each output.
    abstain_label : object, optional
        Label of an abstention, if the rule may abstain; the same for all outputs.
    n_groups : int, default=1
        Number of sensitive groups, if the rows of each are treated as separate outputs: all outputs then occur once per
        group.
    order : tuple of M tuples or None, optional
        Classes of each output from the lowest to the highest, where an order is known.
    single : bool, default=False
        Whether the probabilities were single columns, that of the second of two classes.
    column_order : tuple of M tuples or None, optional
        Classes of each output in the order in which its columns stood, where these were matched by name and not in
        the order of the classes, or not sorted.
    input : Input, optional
        What the numbers of rows are; by default, probabilities.

    See Also
    --------
    metricwise.WeightedRule : A rule for such outputs and classes.

    Examples
    --------
    >>> from metricwise.core.schema import Schema
    >>> schema = Schema([["no", "yes"], ["low", "mid", "high"]], multioutput=True)
    >>> schema.n_outputs, schema.width, schema.n_classes.tolist()
    (2, 3, [2, 3])
    """

    classes: tuple[NDArray[Any], ...]
    multioutput: bool = False
    normalize: bool = False
    output_names: tuple[str, ...] | None = None
    n_extra: int = 0
    abstain_label: Any = None
    n_groups: int = 1
    order: Scales | None = None
    single: bool = False
    column_order: Scales | None = None
    input: Input = PROBABILITIES

    def __post_init__(self) -> None:
        if self.abstain_label is not None:
            object.__setattr__(self, "n_extra", 1)
        object.__setattr__(self, "classes", shared(self.classes))
        if self.output_names is not None:
            object.__setattr__(self, "output_names", tuple(self.output_names))

    @classmethod
    def of_codes(cls, n_classes: Sequence[int] | IntArray) -> Schema:
        """Return the schema of outputs whose labels are codes, 0..K_m-1."""
        sizes = [int(k) for k in n_classes]
        labels = {k: np.arange(k) for k in set(sizes)}
        return cls(tuple(labels[k] for k in sizes), multioutput=len(sizes) > 1)

    def of_outputs(self, outputs: IntArray) -> Schema:
        """Return the schema of some of the outputs, given by position."""
        names = None if self.output_names is None else tuple([self.output_names[m] for m in outputs])
        order = None if self.order is None else tuple([self.order[m] for m in outputs])
        classes = tuple([self.classes[m] for m in outputs])
        row_input = self.input.of_outputs(outputs, max(map(len, classes)))
        return replace(self, classes=classes, output_names=names, order=order, input=row_input)

    def by_group(self, n_groups: int) -> Schema:
        """Return the schema of all outputs once for every sensitive group."""
        names = None if self.output_names is None else self.output_names * n_groups
        return replace(
            self,
            classes=self.classes * n_groups,
            output_names=names,
            multioutput=True,
            n_groups=self.n_groups * n_groups,
            order=None if self.order is None else self.order * n_groups,
            input=self.input.of_classes().of_outputs(np.tile(np.arange(self.n_outputs), n_groups), self.width),
        )

    @property
    def column_facts(self) -> dict[str, Any]:
        """What a rule that is fitted to such probabilities keeps of their columns, as JSON values."""
        facts: dict[str, Any] = {}
        if (self.n_classes == 2).all() and not second_is_positive(self.classes):
            facts["single_column"] = self.single
        if self.column_order is not None:
            facts["column_order"] = [None if order is None else list(order) for order in self.column_order]
        return facts

    @cached_property
    def n_classes(self) -> IntArray:
        """K_m of each output, of shape (M,)."""
        if are_one(self.classes):
            return np.full(len(self.classes), len(self.classes[0]), dtype=np.intp)
        return np.array(list(map(len, self.classes)), dtype=np.intp)

    @property
    def n_decisions(self) -> IntArray:
        """Decisions that a rule may take about each output, of shape (M,): its classes, and `n_extra` more."""
        return self.n_classes + self.n_extra

    @property
    def decisions(self) -> tuple[NDArray[Any], ...]:
        """Label of each decision about each output: its classes, followed by that of an abstention."""
        if self.abstain_label is None:
            return self.classes
        made = {id(labels): with_label(labels, self.abstain_label) for labels in self.classes}
        return tuple([made[id(labels)] for labels in self.classes])

    @property
    def n_outputs(self) -> int:
        """M."""
        return len(self.classes)

    @cached_property
    def width(self) -> int:
        """K, the largest K_m."""
        return int(self.n_classes.max())

    @property
    def decision_width(self) -> int:
        """D, the most decisions about an output: rows and columns of its confusion and its loss."""
        return self.width + self.n_extra


def with_label(classes: NDArray[Any], label: Any) -> NDArray[Any]:
    """Return the labels of all decisions, that of an abstention last; as objects where one type would change some."""
    kinds: dict[str, type] = {"U": str, "i": int, "u": int, "f": float}
    if type(label) is kinds.get(classes.dtype.kind):
        joined = np.concatenate([classes, np.array([label])])
        kept = joined.tolist() == [*classes.tolist(), label] and type(joined.tolist()[0]) is type(label)
        if kept and joined.dtype != object:  # as of an integer beyond 64 bits
            return joined
    out = np.empty(len(classes) + 1, dtype=object)
    out[:-1], out[-1] = python_labels(classes), label
    return out


def second_is_positive(classes: Sequence[NDArray[Any]]) -> bool:
    """Whether the second class of every output is known to be the positive one by its labels."""
    return all(
        len(labels) == 2 and known_positive(python_labels(labels)) == python_label(labels[1])
        for labels in distinct_objects(classes)
    )
