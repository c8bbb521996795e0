"""A single column of probabilities for two classes: the class that it is of.

It is `pos_label`, or class 1 of {0, 1}, {-1, 1} and {False, True}; for other labels the error asks for it. This
class becomes the second of its output. Must not know metrics or rules.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InvalidParameter, argument, mention, shown
from ..core.labels import known_positive, python_label, python_labels, shared
from ..core.probabilities import Probabilities

__all__ = ["column_places", "is_single", "positive_labels", "positive_last", "with_both_columns"]


def is_single(proba: Probabilities) -> bool:
    """Whether outputs have one column of probabilities each."""
    return any(block.ndim == 2 for block in proba.blocks)


def positive_labels(pos_label: Any, n_outputs: int, hint: str = "") -> list[Any]:
    """Return the positive class of each output as it is given, for all or for each; None for those without.

    `hint` follows "outputs" in the message that refuses others.
    """
    column = getattr(pos_label, "ndim", 0) == 1
    label_or_list = python_labels(np.asarray(pos_label)) if column else python_label(pos_label)
    labels = list(label_or_list) if isinstance(label_or_list, (list, tuple)) else [label_or_list] * n_outputs
    if len(labels) != n_outputs or not all(isinstance(label, Hashable) for label in labels):
        raise InvalidParameter(
            "pos_label",
            f"be one label, or a list with one for each of the {n_outputs} outputs{hint}",
            shown(label_or_list),
        )
    return labels


def column_places(classes: Sequence[NDArray[Any]], pos_label: Any) -> list[int]:
    """Return the position of the class that the single column of each output is of; ask where nothing says it.

    Parameters
    ----------
    classes : sequence of M ndarrays
        Two labels of each output.
    pos_label : object, list of M objects, or None
    """
    made: dict[tuple[int, Any], int] = {}
    places = []
    for m, (labels, said) in enumerate(zip(classes, positive_labels(pos_label, len(classes)), strict=True)):
        key = (id(labels), said)
        if key not in made:
            made[key] = _place(python_labels(labels), said, f" of output {m}" if len(classes) > 1 else "")
        places.append(made[key])
    return places


def _place(labels: list[Any], said: Any, where: str) -> int:
    positive = said if said is not None and said in labels else known_positive(labels)
    if positive is None:
        first, second = labels
        if said is not None:
            raise InvalidParameter(
                "pos_label",
                problem=(
                    f"{mention('pos_label')}{where} must be {shown(first)} or {shown(second)}, the class "
                    f"that the single column of probabilities is of, got {shown(said)}"
                ),
            )
        raise InvalidParameter(
            "pos_label",
            problem=(
                f"the class of the single column of probabilities{where} is ambiguous: {shown(first)} or "
                f"{shown(second)}"
            ),
            remedy=f"pass {argument('pos_label', first)} or {argument('pos_label', second)}, or both columns",
        )
    return labels.index(positive)


def positive_last(
    classes: tuple[NDArray[Any], ...], codes: NDArray[Any] | None, pos_label: Any
) -> tuple[tuple[NDArray[Any], ...], NDArray[Any] | None, list[int]]:
    """Return classes whose second is the one that a single column is of, the codes of labels that go with them, and
    the outputs whose classes have changed places.
    """
    turned = [m for m, place in enumerate(column_places(classes, pos_label)) if place == 0]
    if not turned:
        return classes, codes, []
    changed = set(turned)
    made = shared(labels[::-1] if m in changed else labels for m, labels in enumerate(classes))
    if codes is not None:
        codes = codes.copy()
        codes[:, turned] = np.where(codes[:, turned] < 0, codes[:, turned], 1 - codes[:, turned])
    return made, codes, turned


def with_both_columns(proba: Probabilities, places: Sequence[int]) -> Probabilities:
    """Return single columns that are of the first of two classes as two columns; itself where all are of the second.

    Parameters
    ----------
    proba : Probabilities
        Of single columns.
    places : sequence of M int
        Position of the class that each is of.
    """
    if all(place == 1 for place in places):
        return proba
    (block,) = proba.blocks
    other = np.zeros_like(block) if proba.of_logits else 1 - block
    first = np.array(places) == 0
    both = np.stack([np.where(first, block, other), np.where(first, other, block)], axis=2)
    return replace(proba, blocks=(both,))
