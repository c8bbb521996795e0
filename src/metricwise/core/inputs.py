"""What the numbers of rows are: probabilities, logits, log-probabilities or scores.

All but probabilities are *logits* to row passes: ``softmax(t * z + c)`` are the probabilities, and nothing is lost
where these would round to 0 or 1. Must not know rows, metrics or rules.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from .. import kernels
from .errors import InvalidParameter, shown
from .ordinal_map import OrdinalMap

__all__ = ["KINDS", "MAX_LOGIT", "PROBABILITIES", "Input", "InputKind"]

IntArray = NDArray[np.intp]
InputKind = Literal["probabilities", "logits", "log_proba", "scores"]

KINDS = ("probabilities", "logits", "log_proba", "scores")
MAX_LOGIT = {4: 1e38, 8: 1e200}  # by bytes of an entry: what stands for infinity, so that products of it are numbers


@dataclass(frozen=True, eq=False)
class Input:
    """What the numbers of rows are.

    Parameters
    ----------
    kind : {"probabilities", "logits", "log_proba", "scores"}
    base : LinkArrays, optional
        Of M outputs: the map from logits to the probabilities whose largest is the baseline decision. None for
        probabilities, and for scores until it is fitted.
    has_boundary : bool, default=False
        Whether scores are a classifier's `decision_function`: single columns are positive where class 1 is predicted.
    graded : bool, default=False
        Whether rows have one score for more than two ordered classes, from the lowest to the highest.
    ordinal : OrdinalMap, optional
        The map from that score to the probabilities of the classes, once it is fitted.
    """

    kind: InputKind = "probabilities"
    base: kernels.LinkArrays | None = None
    has_boundary: bool = False
    graded: bool = False
    ordinal: OrdinalMap | None = None

    @classmethod
    def of(cls, value: Any) -> Input:
        """Return what was given as `input`."""
        if isinstance(value, Input):
            return value
        if not isinstance(value, str) or value not in KINDS:
            raise InvalidParameter("input", f"be one of {', '.join(map(repr, KINDS))}", shown(value))
        return PROBABILITIES if value == "probabilities" else cls(value)  # type: ignore[arg-type]  # one of KINDS

    @property
    def is_logits(self) -> bool:
        """Whether row passes take the numbers for logits."""
        return self.kind != "probabilities"

    @property
    def is_scores(self) -> bool:
        """Whether the numbers have no scale: they become probabilities by a map that is fitted to labels."""
        return self.kind == "scores"

    @property
    def noun(self) -> str:
        """What one of the numbers is called."""
        nouns = {"logits": "logit", "log_proba": "log-odds", "scores": "score"}
        return nouns.get(self.kind, "probability")

    @property
    def plural(self) -> str:
        """What all of the numbers are called."""
        return "log-probabilities" if self.kind == "log_proba" else self.kind

    def of_outputs(self, outputs: IntArray, width: int) -> Input:
        """Return the same of some outputs, given by position."""
        return self if self.base is None else replace(self, base=self.base.part(outputs, width))

    def of_classes(self) -> Input:
        """Return the same of numbers for each class: of one score, the logits that were made of it."""
        return self if not self.graded else replace(self, graded=False, ordinal=None)


PROBABILITIES = Input()


def identity(n_outputs: int, width: int) -> kernels.LinkArrays:
    """Return the map of logits as they are."""
    return kernels.LinkArrays(np.ones(n_outputs), np.zeros((n_outputs, width)), 0.0)
