"""The rule of cut points: one score of each row is compared with thresholds in the unit of the score.

Serves two classes of any number of outputs, and ordered classes of one output. Must not know metrics or solvers.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InvalidParameter, argument, entry_point
from ..core.inputs import Input
from ..core.labels import python_labels
from ..core.losses import Loss
from ..core.ordinal_map import OrdinalMap
from ..core.probabilities import Probabilities
from ..core.schema import Schema
from .base import Rule, RuleRows, check_outputs, same_classes
from .calibration import TemperatureScaling, link_or_base, recalibrated
from .class_shares import ShareShift
from .codec import (
    CLASSES,
    INPUT,
    LINK,
    MULTIOUTPUT,
    ORDINAL_MAP,
    OUTPUT_NAMES,
    JsonField,
    array_of,
    json_value,
    read_numbers,
)
from .decisions import bisect_grades
from .describe import cut_point_lines
from .forms import Region
from .metadata import NO_METADATA, RuleMetadata
from .writer import RuleWriter

__all__ = ["CutPointRule"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
T = TypeVar("T")

_FARTHEST = float(np.finfo(np.float64).max)  # what stands for infinity in files, which hold finite numbers


def _write_cuts(cuts: FloatArray, name: str) -> Any:
    return json_value(np.clip(cuts, -_FARTHEST, _FARTHEST), name)


def _read_cuts(value: Any, name: str) -> FloatArray:
    cuts = read_numbers(value, name, 2)
    return np.where(cuts >= _FARTHEST, np.inf, np.where(cuts <= -_FARTHEST, -np.inf, cuts))


_CUTS = JsonField(
    "cuts",
    {
        "description": "Ascending cut points of each output, one fewer than its classes, in the unit of its score. The "
        "class at position j is predicted if j of them are below the score; of two columns, that is the second less "
        "the first. The largest number of double precision stands for infinity.",
        **array_of(array_of({"type": "number"})),
    },
    _read_cuts,
    _write_cuts,
)


@dataclass(frozen=True, eq=False)
class CutPointRule(Rule):
    """Rule that compares one score of each row with cut points: class j is predicted if j of them are below the score.

    The comparison is exact, in the unit of the score. Two rules are equal if they decide alike; `metadata` and maps to
    probabilities are not compared.

    Parameters
    ----------
    cuts : array-like of shape (M, K - 1)
        Ascending cut points of each output. A class between equal ones is never predicted, and -inf or inf exclude
        classes at the ends.
    classes : tuple of M ndarrays
        Label of each class, from the lowest to the highest. More than two classes only for a single output.
    input : {"scores", "logits", "log_proba"}, default="scores"
        What the numbers of rows are: a score (N,) or (N, M), log-odds of the second class, or (N, 2) and (N, M, 2)
        logits and log-probabilities of both, whose difference is the score.
    multioutput : bool, default=False
        Whether predictions are 2-D, as for a 2-D y.
    output_names : tuple of str, optional
        Names of the outputs, to which the columns of a multilabel data frame are matched.
    link : TemperatureScaling, optional
        Map from the scores of two classes to probabilities, for `calibrated`; decisions do not use it.
    ordinal_map : OrdinalMap, optional
        The same for more than two classes.
    metadata : RuleMetadata, or mapping
        As in WeightedRule.

    See Also
    --------
    WeightedRule.from_thresholds, WeightedRule.from_cut_points : Rules by hand.
    metricwise.optimize : Finds cut points for ``input="scores"``.

    Examples
    --------
    >>> import numpy as np
    >>> import metricwise as mw
    >>> rule = mw.CutPointRule([[-0.5, 1.2]], (np.array(["low", "mid", "high"]),))
    >>> rule.predict([-3.0, -0.5, 0.0, 1.3])
    array(['low', 'low', 'mid', 'high'], dtype='<U4')
    >>> print(rule.describe())
    By the score: 'low' up to -0.5, 'mid' up to 1.2, 'high' above.
    """

    cuts: FloatArray
    classes: tuple[NDArray[Any], ...]
    input: str = "scores"
    multioutput: bool = False
    output_names: tuple[str, ...] | None = None
    link: TemperatureScaling | None = None
    ordinal_map: OrdinalMap | None = None
    metadata: RuleMetadata = NO_METADATA
    normalize: bool = field(init=False, repr=False, default=False)
    abstain_label: Any = field(init=False, repr=False, default=None)
    schema: Schema = field(init=False, repr=False)
    kind: ClassVar[str] = "cut_points"
    summary: ClassVar[str] = "Compare one score of each row with cut points."
    shared_fields: ClassVar = (CLASSES, MULTIOUTPUT, OUTPUT_NAMES, replace(INPUT, optional=False), ORDINAL_MAP)
    fields: ClassVar = (_CUTS, LINK)

    @entry_point("{class}")
    def __post_init__(self) -> None:
        object.__setattr__(self, "cuts", np.array(self.cuts, dtype=np.float64, ndmin=2))
        object.__setattr__(self, "metadata", RuleMetadata.of(self.metadata))
        graded = len(self.classes) > 0 and len(self.classes[0]) > 2
        row_input = Input.of(self.input)
        row_input = Input(row_input.kind, graded=graded, ordinal=self.ordinal_map)
        schema = Schema(self.classes, self.multioutput, False, self.output_names, input=row_input)
        object.__setattr__(self, "schema", schema)
        object.__setattr__(self, "classes", schema.classes)
        object.__setattr__(self, "output_names", schema.output_names)
        _check(self)

    # ---------------------------------------------------------------------------------------------- decisions

    def decide(self, rows: RuleRows) -> IntArray:
        """Return the codes of the decisions about rows, of shape (N, M)."""
        scores = self.scores(rows.proba)
        codes = np.zeros(scores.shape, dtype=np.intp)
        for cuts in self.cuts.T:
            codes += scores > cuts
        return codes

    def scores(self, proba: Probabilities) -> FloatArray:
        """Return the score of each row and output, (N, M)."""
        if proba.scores is not None:
            return proba.scores[:, None].astype(np.float64, copy=False)
        return np.stack([proba.positive_column(m) for m in range(self.n_outputs)], axis=1)

    def calibrate(self, rows: RuleRows) -> Probabilities:
        """Return the probabilities that scores stand for, by the map of the rule."""
        if not self.has_map:
            raise InvalidParameter(
                "rule",
                "have a map from scores to probabilities, which rules by hand do not have",
                remedy="use a rule from optimize",
            )
        return recalibrated(self.link, rows.proba)

    def with_outputs_of(self, other: Rule, outputs: NDArray[np.bool_]) -> Rule:
        """Return the rule that decides some outputs (M,) as another rule of cut points does."""
        if not isinstance(other, CutPointRule):
            return self
        return replace(self, cuts=np.where(outputs[:, None], other.cuts, self.cuts))

    def move(self, shift: ShareShift) -> CutPointRule:
        """Return the rule after a shift of class shares; the map of two classes to probabilities follows it too."""
        if self.ordinal_map is None:
            cuts = shift.move_thresholds(self.cuts, self.link)
            return replace(self, cuts=cuts, link=None if self.link is None else shift.move_link(self.link))
        return replace(self, cuts=shift.move_cut_points(self.cuts[0], self.ordinal_map)[None])

    # ------------------------------------------------------------------------------------- in other words

    @property
    def has_path(self) -> bool:
        """Whether there are rules between argmax and the rule."""
        return True

    @property
    def has_map(self) -> bool:
        """Whether scores have a map to probabilities."""
        return self.link is not None or self.ordinal_map is not None

    @property
    def shared_link(self) -> TemperatureScaling | None:
        """The map from scores to probabilities, if the rule has one for each class."""
        return self.link

    def score_cuts(self, output: int) -> FloatArray | None:
        """Return the cut points (K - 1,) of an output of more than two classes; None for two."""
        return self.cuts[output] if self.n_classes[output] > 2 else None

    @property
    def cut_points(self) -> FloatArray:
        """Ascending cut points of the score, of shape (K - 1,), or (M, K - 1) for several outputs."""
        return self.cuts.copy() if self.multioutput else self.cuts[0].copy()

    @property
    def changes(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Where binary outputs change their decision; see :attr:`WeightedRule.changes`. NaN for other outputs."""
        binary = self.n_classes == 2
        cut = self.cuts[:, 0]
        below, above = np.where(cut == -np.inf, 1.0, 0.0), np.where(cut == np.inf, 0.0, 1.0)
        last = np.where(np.isfinite(cut), cut, np.nan)
        return tuple(np.where(binary, values, np.nan) for values in (below, above, last))  # type: ignore[return-value]

    @property
    def thresholds(self) -> FloatArray:
        """For each output of two classes, the score above which the second is predicted, (M,); NaN for others."""
        return np.where(self.n_classes == 2, self.cuts[:, 0], np.nan)

    @property
    def threshold(self) -> float | FloatArray | None:
        """The threshold on the score, for a single output of two classes, or (M,) for several; None if none has one."""
        thresholds = self.thresholds
        if np.isnan(thresholds).all():
            return None
        return thresholds if self.multioutput else float(thresholds[0])

    @property
    def regions(self) -> tuple[Any, ...]:
        """What is predicted along the score: tuples ``(label, low, high)`` in order, both ends included.

        For several outputs, such a tuple for each.
        """
        each = tuple(self._regions(m) for m in range(self.n_outputs))
        return each if self.multioutput else each[0]

    def _regions(self, m: int) -> tuple[Region, ...]:
        ends = [-np.inf, *self.cuts[m].tolist(), np.inf]
        labels = python_labels(self.classes[m])
        return tuple(
            Region(label, low if low == -np.inf else float(np.nextafter(low, np.inf)), high)
            for label, (low, high) in zip(labels, pairwise(ends), strict=True)
            if low < high
        )

    @property
    def class_weight(self) -> None:
        """None: the rule has no class weights."""
        return

    @property
    def bonus(self) -> None:
        """None: the rule has no bonuses."""
        return

    def decision_lines(self, metadata: RuleMetadata) -> list[str]:
        """Say what the rule decides."""
        return cut_point_lines(self, metadata)

    def accept(self, writer: RuleWriter[T]) -> T:
        """Return what a writer writes of the rule."""
        return writer.cut_points(self)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CutPointRule):
            return NotImplemented
        return (
            np.array_equal(self.cuts, other.cuts)
            and (self.input, self.multioutput, self.output_names)
            == (other.input, other.multioutput, other.output_names)
            and same_classes(self.classes, other.classes)
        )

    __hash__ = None  # type: ignore[assignment]  # holds arrays, compares by content


def in_unit_of_rows(rule: Any, schema: Schema) -> Any:
    """Return a rule of two classes on logits or scores as the thresholds that it decides by; any other rule itself.

    The thresholds are those at which the kernel changes its decision, so that all rows are decided as before. Scores
    keep the map that says what their baseline is; `schema` is that of the rows.
    """
    binary = schema.input.is_logits and schema.width == 2 and schema.n_extra == 0
    if not binary or not rule.is_flat or rule.is_randomized:
        return rule
    link, loss = rule.link, rule.loss
    if loss == Loss.argmax(2):
        thresholds = link.arrays.boundary  # exactly, which rounding would move
    else:
        thresholds = rule.thresholds
    if schema.input.is_scores and not schema.input.has_boundary:
        link = link_or_base(None, schema)
    return rule if np.isnan(thresholds).any() else cut_point_rule(thresholds[:, None], schema, link, rule.metadata)


def argmax_cuts(schema: Schema) -> FloatArray:
    """Return the cut points (M, K - 1) of the most probable class, by the map that the scores of rows have."""
    if schema.input.ordinal is not None:
        return bisect_grades(schema.input.ordinal)[None]
    assert schema.input.base is not None
    return schema.input.base.boundary[:, None]


def cut_point_rule(
    cuts: FloatArray, schema: Schema, link: TemperatureScaling | None, metadata: RuleMetadata
) -> CutPointRule:
    """Return the rule of cut points for the outputs and classes of a schema."""
    return CutPointRule(
        cuts,
        schema.classes,
        schema.input.kind,
        schema.multioutput,
        schema.output_names,
        link,
        schema.input.ordinal,
        metadata,
    )


def _check(rule: CutPointRule) -> None:
    schema, cuts = rule.schema, rule.cuts
    if not schema.input.is_logits:
        raise InvalidParameter(
            "input",
            "be 'scores', 'logits' or 'log_proba', because cut points are in the unit of a score",
            repr(rule.input),
            "for probabilities use WeightedRule.from_thresholds or WeightedRule.from_cut_points",
        )
    check_outputs(schema, rule.link, needs_link=False)
    if schema.width > 2 and (schema.n_outputs > 1 or not schema.input.is_scores):
        raise InvalidParameter(
            "classes",
            f"be two for each of several outputs and without {argument('input', 'scores')}, because more than two need "
            "one score of a single output",
            f"{schema.n_classes.tolist()} classes and {argument('input', rule.input)}",
        )
    if cuts.shape != (schema.n_outputs, schema.width - 1):
        raise InvalidParameter("cuts", f"have shape ({schema.n_outputs}, {schema.width - 1})", cuts.shape)
    if np.isnan(cuts).any() or (cuts[:, 1:] < cuts[:, :-1]).any():
        raise InvalidParameter("cuts", "ascend within each output", cuts.tolist(), "sort them")
