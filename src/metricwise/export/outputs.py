"""Labels, losses and link of each output of a rule, which every export writes. Must not know any format."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InvalidParameter, InvalidType, MissingDependency
from ..rules.base import Rule
from ..rules.codec import json_labels, label_array
from ..rules.forms import Threshold, form_of
from ..rules.grouped import GroupedRule
from ..rules.load import as_rule
from ..rules.weighted import WeightedRule

__all__ = [
    "Label",
    "LinkTable",
    "OutputTable",
    "check_text",
    "group_labels",
    "labels_of",
    "needs_extra",
    "of_one_type",
    "output_names",
    "read_rule",
]

FloatArray = NDArray[np.float64]
Label = str | int | float | bool

_INPUTS = ("sensitive_features", "cost")  # writers use or refuse them


@dataclass(frozen=True)
class LinkTable:
    """``softmax(temperature * log(max(eta, floor)) + bias)`` of one output."""

    temperature: float
    bias: tuple[float, ...]
    floor: float


@dataclass(frozen=True)
class OutputTable:
    """One output of a weighted rule: K classes, D decisions, D >= K.

    Parameters
    ----------
    labels : tuple of D labels
        Of the decisions; the first K are the classes.
    n_classes : int
        K.
    diagonal, offset : tuple of D floats, or None
        The score of decision j is ``diagonal_j * eta_j + offset_j * s``, s the sum of the row; 0 stands for ``eta_j``
        of a decision that is no class.
    full : tuple of K tuples of D floats, or None
        The score of decision j is ``sum_i full[i][j] * eta_i``, in order.
    link : LinkTable or None
    changes : tuple (at_zero, at_one, last), or None
        For two classes: the decisions at probability 0 and 1 of class 1, and the last probability that is decided as 0
        is; None where that is known within rounding only.
    """

    labels: tuple[Label, ...]
    n_classes: int
    diagonal: tuple[float, ...] | None
    offset: tuple[float, ...] | None
    full: tuple[tuple[float, ...], ...] | None
    link: LinkTable | None
    changes: tuple[int, int, float] | None

    @classmethod
    def of(cls, rule: WeightedRule, m: int) -> OutputTable:
        """Return the table of output m of a rule."""
        labels = labels_of(rule)[m]
        k, d = int(rule.n_classes[m]), len(labels)
        loss = rule.loss.output(m)
        arrays = [array[0][..., :d] if loss.is_diagonal else array[0][:k, :d] for array in loss.arrays]
        diagonal, offset = (_floats(array) for array in arrays) if loss.is_diagonal else (None, None)
        full = None if loss.is_diagonal else tuple(_floats(row) for row in arrays[0])
        link = None
        if rule.link is not None:
            link = LinkTable(float(rule.link.temperature[m]), _floats(rule.link.bias[m, :k]), rule.link.floor)
        return cls(labels, k, diagonal, offset, full, link, _changes(rule, m, diagonal, link))

    @property
    def n_decisions(self) -> int:
        """D."""
        return len(self.labels)


def _floats(values: Any) -> tuple[float, ...]:
    return tuple(float(value) for value in values)


def _changes(
    rule: WeightedRule, m: int, diagonal: Sequence[float] | None, link: LinkTable | None
) -> tuple[int, int, float] | None:
    """Return where the decision on one probability changes, if the scores or the link determine it exactly."""
    if rule.schema.n_decisions[m] != 2:
        return None
    if link is None and (diagonal is None or max(diagonal) > 0):
        return None
    form = form_of(rule, m)
    return (form.at_zero, form.at_one, form.last) if isinstance(form, Threshold) else None


def read_rule(rule: Any) -> Rule:
    """Return the rule, loading it from a path, JSON text or dict if needed."""
    if hasattr(rule, "rule"):
        rule = rule.rule  # of a Solution, or of a point of a trade-off
    readable = isinstance(rule, (Rule, str, dict)) or hasattr(rule, "__fspath__")
    if isinstance(rule, type) or not readable:
        raise InvalidType(
            "rule", "be a WeightedRule, a MixtureRule or a GroupedRule, a Solution, or a rule file", type(rule).__name__
        )
    return as_rule(rule, inputs=_INPUTS)


def output_names(rule: Rule) -> list[str]:
    """Return a name for each output."""
    names = rule.schema.output_names
    return [f"output_{m}" for m in range(rule.n_outputs)] if names is None else list(names)


def labels_of(rule: Rule) -> list[tuple[Label, ...]]:
    """Return the labels of the decisions about each output."""
    by_array: dict[int, tuple[Label, ...]] = {}
    return [by_array.setdefault(id(labels), tuple(json_labels(labels))) for labels in rule.schema.decisions]


def of_one_type(labels: Sequence[Label]) -> tuple[Label, ...]:
    """Return labels for typed columns: False and True are 0 and 1 if the rule abstains with an integer."""
    if {type(label) for label in labels} == {bool, int}:
        return tuple(int(label) for label in labels)
    return tuple(labels)


def group_labels(rule: GroupedRule) -> list[tuple[Label, ...]]:
    """Return the name of each group: a label for each column that makes groups."""
    names = [name if isinstance(name, tuple) else (name,) for name in rule.groups]
    return [tuple(json_labels(label_array(list(name)), "groups")) for name in names]


def check_text(labels: Sequence[Label]) -> None:
    """Refuse labels with unpaired surrogates, which only JSON and Python can hold."""
    for label in labels:
        if isinstance(label, str) and any("\ud800" <= character <= "\udfff" for character in label):
            raise InvalidParameter("labels", "be valid Unicode", repr(label))


def needs_extra(package: str, extra: str) -> ImportError:
    """Return the error that says how to install an extra."""
    return MissingDependency(f"needs {package}, which is not installed: pip install 'metricwise[{extra}]'")
