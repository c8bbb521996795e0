"""The weighted rule: predict the class of least expected loss, after an optional recalibration.

Must not know metrics, solvers, or where the loss comes from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from .. import kernels
from ..core.cached import cached_property
from ..core.errors import InvalidParameter, entry_point
from ..core.inputs import Input
from ..core.labels import python_label
from ..core.losses import Loss
from ..core.ordinal_map import OrdinalMap
from ..core.probabilities import Probabilities
from ..core.schema import Schema
from ..data.probabilities import sum_tolerance
from . import by_hand
from .base import LossMixture, Rule, RuleRows, check_outputs, rule_input, same_classes, same_label
from .calibration import TemperatureScaling, link_or_base, recalibrated
from .class_shares import ShareShift
from .codec import LINK, LOSS
from .cut_points import CutPointRule
from .decisions import bisect_changes, decide_loss
from .describe import decision_lines
from .forms import CutPoints, regions_of, scale_of, weights_and_bonuses
from .metadata import NO_METADATA, RuleMetadata
from .reading import says_single
from .writer import RuleWriter

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class WeightedRule(Rule):
    """Rule that predicts, for each output, the class with the lowest expected loss ``argmin_j sum_i L[i, j] * eta_i``.

    Ties go to the lowest class. Two rules are equal if they decide alike; `metadata` is not compared.

    Parameters
    ----------
    loss : Loss
        The loss, of leading size 1 (shared by all outputs) or M.
    classes : tuple of M ndarrays
        Label of each class, in column order.
    link : TemperatureScaling, optional
        Recalibration that is applied to the probabilities first.
    multioutput : bool, default=False
        Whether predictions are 2-D, as for a 2-D y.
    normalize : bool, default=False
        Whether `predict` divides each row of probabilities by its sum, so that scores are accepted.
    metadata : RuleMetadata, or mapping
        What is known about the rule, such as its metric, average and version, and what users add.
    output_names : tuple of str, optional
        Names of the outputs, to which the columns of a multilabel data frame are matched.
    abstain_label : text, number or boolean, optional
        Label that is predicted if the rule abstains, which is not one of the classes and the same for all outputs;
        None: it never abstains. The loss then has an additional row and column: the last column, after the classes of
        each output, is the loss of abstaining, and the additional row is ignored.
    input : {"probabilities", "logits", "log_proba", "scores"}, default="probabilities"
        What the numbers of rows are. All but probabilities need a link, which maps them to probabilities.
    ordinal_map : OrdinalMap, optional
        The map from one score of each row to the probabilities of its ordered classes, whose logarithms are the logits
        of the link; None if rows have numbers for each class.

    See Also
    --------
    metricwise.optimize : Find the rule that maximises a metric.
    load_rule : Load a rule from JSON.
    MixtureRule : A randomised rule.
    GroupedRule : A rule for each sensitive group.

    Examples
    --------
    >>> import numpy as np
    >>> import metricwise as mw
    >>> from metricwise.core.losses import Loss
    >>> loss = Loss.from_tensor([[0.0, 1.0], [3.0, 0.0]])  # missing a 'yes' costs three times a false alarm
    >>> rule = mw.WeightedRule(loss, classes=(np.array(["no", "yes"]),))
    >>> rule.predict([0.2, 0.3])
    array(['no', 'yes'], dtype='<U3')
    >>> round(rule.threshold, 12)
    0.25
    >>> print(rule.describe())
    Predict 'yes' when its probability exceeds 0.25, else 'no'.
    >>> mw.WeightedRule.from_json(rule.to_json()) == rule
    True
    """

    loss: Loss
    classes: tuple[NDArray[Any], ...]
    link: TemperatureScaling | None = None
    multioutput: bool = False
    normalize: bool = False
    metadata: RuleMetadata = NO_METADATA
    output_names: tuple[str, ...] | None = None
    abstain_label: Any = None
    input: str = field(default="probabilities", repr=False)
    ordinal_map: OrdinalMap | None = field(default=None, repr=False)
    schema: Schema = field(init=False, repr=False)
    kind: ClassVar[str] = "weighted"
    summary: ClassVar[str] = "One rule."
    fields: ClassVar = (LOSS, LINK)

    @entry_point("{class}")
    def __post_init__(self) -> None:
        object.__setattr__(self, "abstain_label", python_label(self.abstain_label))
        schema = Schema(
            self.classes,
            self.multioutput,
            self.normalize,
            self.output_names,
            abstain_label=self.abstain_label,
            input=rule_input(self.input, self.ordinal_map, self.classes),
        )
        object.__setattr__(self, "schema", schema)
        object.__setattr__(self, "classes", schema.classes)
        object.__setattr__(self, "output_names", schema.output_names)
        object.__setattr__(self, "metadata", RuleMetadata.of(self.metadata))
        _check(self)

    # ------------------------------------------------------------------------------------------------- by hand

    @classmethod
    def from_thresholds(
        cls,
        thresholds: Any,
        *,
        classes: Any = None,
        pos_label: Any = None,
        output_names: Sequence[str] | None = None,
        input: str = "probabilities",
    ) -> WeightedRule | CutPointRule:
        """Return the rule that predicts the positive class of binary outputs above a threshold.

        The positive class is predicted if and only if its probability, in float64, strictly exceeds the threshold.
        scikit-learn's FixedThresholdClassifier also predicts it at the threshold: to decide as it does at t, use
        ``np.nextafter(t, -np.inf)`` here; `sklearn_threshold` converts in the other direction.

        Parameters
        ----------
        thresholds : float, mapping, or sequence of M floats
            Thresholds in [0, 1]; -inf always predicts the positive class, inf never. A number is for a single output. A
            mapping of output names to numbers, or a sequence, is for the outputs of a 2-D y, in the order of their
            columns, even if there is only one. A mapping whose only key is one of the `classes` is for a single output,
            with that class as the positive one.
        classes : array-like of 2 labels, or list of M such, optional
            Class labels in column order, for all outputs or for each; 0 and 1 by default.
        pos_label : object, or list of M objects, optional
            The positive class, for all outputs or for each. Required unless the labels are 0 and 1, -1 and 1, or False
            and True.
        output_names : sequence of M str, optional
            Names of the outputs in column order, if `thresholds` is a sequence, or a mapping in another order.
        input : {"probabilities", "logits", "log_proba", "scores"}, default="probabilities"
            What the numbers of rows are, and so the unit of the thresholds, which may then be any numbers: log-odds of
            the positive class, or a score.

        Returns
        -------
        WeightedRule, or CutPointRule if the numbers are no probabilities

        See Also
        --------
        from_weights : For any number of classes.
        metricwise.evaluate : Evaluate the rule against argmax or another rule.

        Examples
        --------
        >>> import metricwise as mw
        >>> rule = mw.WeightedRule.from_thresholds({"fraud": 0.2}, classes=["fine", "fraud"])
        >>> rule.predict([0.1, 0.2, 0.3])
        array(['fine', 'fine', 'fraud'], dtype='<U5')
        >>> rule = mw.WeightedRule.from_thresholds({"news": 0.3, "sport": 0.6})
        >>> rule.predict([[0.4, 0.4], [0.2, 0.7]])
        array([[1, 0],
               [0, 1]])
        >>> rule.thresholds
        array([0.3, 0.6])
        >>> mw.WeightedRule.from_thresholds(-1.37, input="scores").predict([-2.0, 0.5])
        array([0, 1])
        """
        if Input.of(input).is_logits:
            return CutPointRule(**by_hand.by_score_thresholds(thresholds, classes, pos_label, output_names, input))
        return cls(**by_hand.by_thresholds(thresholds, classes, pos_label, output_names))

    @classmethod
    def from_weights(
        cls, weights: Any, *, classes: Any = None, output_names: Sequence[str] | None = None
    ) -> WeightedRule:
        """Return the rule that predicts the class with the largest weighted probability, ``argmax_j w_j * eta_j``.

        Ties go to the lowest class.

        Parameters
        ----------
        weights : mapping or sequence
            For one output, a mapping of labels to non-negative weights, or K weights in the order of the classes. For
            several outputs, a mapping of their names to such weights, or a sequence with one entry per output, such as
            an array of shape (M, K), in the order of their columns.
        classes : array-like of K labels, or list of M such, optional
            Class labels in column order, for all outputs or for each. By default, the sorted labels of a mapping, as in
            scikit-learn, or 0 to K - 1 for a sequence.
        output_names : sequence of M str, optional
            Names of the outputs in column order, if `weights` is a sequence, or a mapping in another order.

        Returns
        -------
        WeightedRule

        See Also
        --------
        from_thresholds : For binary outputs.
        from_cut_points : For ordered classes.

        Examples
        --------
        >>> import metricwise as mw
        >>> rule = mw.WeightedRule.from_weights({"low": 1, "high": 3, "middle": 2}, classes=["low", "middle", "high"])
        >>> rule.predict([[0.45, 0.4, 0.15], [0.7, 0.2, 0.1]])
        array(['middle', 'low'], dtype='<U6')
        >>> rule.class_weight
        array([1., 2., 3.])
        """
        return cls(**by_hand.by_weights(weights, classes, output_names))

    @classmethod
    def from_cut_points(
        cls,
        cut_points: Any,
        *,
        grades: Any = None,
        classes: Any = None,
        output_names: Sequence[str] | None = None,
        input: str = "probabilities",
    ) -> WeightedRule | CutPointRule:
        """Return the rule that rounds the expected grade of ordered classes at cut points.

        With the expected grade ``E = sum_j g_j * eta_j`` (divided by the sum of the row, which is 1 up to rounding),
        class j is predicted if j cut points lie below E: ``np.digitize(E, cut_points, right=True)``. This is the
        weighted rule of the loss ``L[i, j] = sum_{k <= j} (c_k - g_i)``, and the kind of rule that is often tuned for
        quadratic kappa.

        Parameters
        ----------
        cut_points : sequence of K - 1 floats
            Cut points in ascending order. A class between equal cut points is never predicted, and -inf or inf exclude
            classes at the ends. For several outputs, a mapping of their names to such sequences, or a sequence with one
            entry per output, in the order of their columns.
        grades : sequence of K floats, or sequence of M such, optional
            Numerical grades of the classes, in ascending order; 0 to K - 1 by default. Required if `classes` are other
            numbers.
        classes : array-like of K labels, or list of M such, optional
            Class labels in column order, from the lowest to the highest, for all outputs or for each; 0 to K - 1 by
            default.
        output_names : sequence of M str, optional
            Names of the outputs in column order, if `cut_points` is a sequence, or a mapping in another order.
        input : {"probabilities", "scores"}, default="probabilities"
            What the numbers of rows are. "scores": the cut points are those of one score (N,) of a single output, such
            as the prediction of a regression, and `grades` are not used.

        Returns
        -------
        WeightedRule, or CutPointRule for scores

        See Also
        --------
        from_weights : For classes without an order.

        Examples
        --------
        >>> import metricwise as mw
        >>> rule = mw.WeightedRule.from_cut_points([1.4, 2.7], grades=[1, 2, 3], classes=[1, 2, 3])
        >>> rule.predict([[0.7, 0.2, 0.1], [0.6, 0.2, 0.2], [0.1, 0.1, 0.8]])  # expected grades 1.4, 1.6, 2.7
        array([1, 2, 2])
        >>> mw.WeightedRule.from_cut_points([1.5, 2.5], classes=[1, 2, 3], input="scores").predict([0.2, 2.1, 7.0])
        array([1, 2, 3])
        """
        if Input.of(input).is_logits:
            return CutPointRule(**by_hand.by_score_cuts(cut_points, grades, classes, output_names, input))
        return cls(**by_hand.by_cut_points(cut_points, grades, classes, output_names))

    # ---------------------------------------------------------------------------------------------- decisions

    def decide(self, rows: RuleRows) -> IntArray:
        """Return the codes of the decisions about rows, of shape (N, M)."""
        proba = rows.proba if self.link is None else self.link.view(rows.proba)
        return decide_loss(self.loss, proba, self.schema.n_decisions)

    @cached_property
    def _few_rows(self) -> kernels.RowDecider | None:
        """What decides few rows of one output; None for a rule of anything else than probabilities of its classes."""
        schema = self.schema
        if schema.multioutput or schema.normalize or schema.abstain_label is not None or schema.input.is_logits:
            return None
        link = None if self.link is None else self.link.arrays
        k = schema.width
        return kernels.RowDecider(self.loss.arrays, link, k, sum_tolerance(k))

    def _predict_few(self, proba: NDArray[Any]) -> NDArray[Any] | None:
        decider = self._few_rows
        if decider is None or self.metadata.column_order is not None:
            return None
        # Two numbers may be one row without its axis, and a single column may be of the first class.
        if proba.ndim == 1 and (len(proba) == 2 or not says_single(self.metadata, self.schema.classes)):
            return None
        codes = decider.decide(proba)
        return None if codes is None else self.schema.classes[0].take(codes)

    def calibrate(self, rows: RuleRows) -> Probabilities:
        """Return the probabilities behind the link."""
        return recalibrated(self.link, rows.proba)

    def with_outputs_of(self, other: Rule, outputs: NDArray[np.bool_]) -> Rule:
        """Return the rule that decides some outputs (M,) as another weighted rule does."""
        if not isinstance(other, WeightedRule) or not outputs.any():
            return self
        size = (self.n_outputs, self.width)
        links = [rule.link or TemperatureScaling.identity(*size) for rule in (self, other)]
        if links[0].floor != links[1].floor:
            return self
        tensors = [
            np.broadcast_to(rule.loss.tensor(), (self.n_outputs, *rule.loss.tensor().shape[1:]))
            for rule in (self, other)
        ]
        loss = Loss.from_tensor(np.where(outputs[:, None, None], tensors[1], tensors[0]))
        link = TemperatureScaling(
            np.where(outputs, links[1].temperature, links[0].temperature),
            np.where(outputs[:, None], links[1].bias, links[0].bias),
            links[0].floor,
        )
        return replace(self, loss=loss, link=link)

    def move(self, shift: ShareShift) -> Self:
        """Return the rule after a shift of class shares."""
        return replace(self, link=shift.move_link(self.link))

    @property
    def is_flat(self) -> bool:
        """Whether the rule decides all rows by the same losses."""
        return True

    @property
    def shared_link(self) -> TemperatureScaling | None:
        """The link."""
        return self.link

    def flatten(self) -> LossMixture:
        """Return the rule alone, which decides all rows."""
        return LossMixture((self,), np.ones((1, 1)))

    def map_rules(self, change: Callable[[WeightedRule], WeightedRule]) -> WeightedRule:
        """Return the rule, changed."""
        return change(self)

    def accept(self, writer: RuleWriter[T]) -> T:
        """Return what a writer writes of the rule."""
        return writer.weighted(self)

    def decision_lines(self, metadata: RuleMetadata) -> list[str]:
        """Say what the rule decides."""
        return decision_lines(self, metadata)

    # ------------------------------------------------------------------------------------- in other words

    @cached_property
    def changes(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Where binary outputs change their decision: three arrays of shape (M,), NaN for other outputs.

        The decision if class 1 has probability 0, the decision if it has probability 1, and the largest probability,
        log-odds or score that still gets the former. They are found with the kernel that predicts: for float64 numbers,
        the result is exact to the last bit if both diagonal entries are negative and there is no link, and otherwise
        within rounding.
        """
        result = (np.full(self.n_outputs, np.nan), np.full(self.n_outputs, np.nan), np.full(self.n_outputs, np.nan))
        binary = np.flatnonzero(self.schema.n_decisions == 2)
        if len(binary):
            link = None if self.link is None else self.link.arrays
            for array, values in zip(result, bisect_changes(self.loss, link, binary), strict=True):
                array[binary] = values
        return result

    @property
    def thresholds(self) -> FloatArray:
        """For each output, t such that class 1 is predicted iff its raw probability exceeds t; of shape (M,).

        Of logits, log-probabilities and scores it is in their unit: of log-odds, or of the score.

        -inf if class 1 is always predicted, inf if it never is, NaN if there is no such t: with more than two classes,
        if class 1 is predicted *below* some probability, or if the rule may abstain.
        """
        at_zero, at_one, last = self.changes
        constant = np.where(at_one == 1, -np.inf, np.where(at_one == 0, np.inf, np.nan))
        return np.where(at_zero == at_one, constant, np.where(at_zero == 0, last, np.nan))

    @property
    def threshold(self) -> float | FloatArray | None:
        """The threshold on the raw probability of class 1, which is predicted strictly above it.

        A float for a single binary output, an array of shape (M,) for several, with -inf, inf and NaN as in
        `thresholds`. None if no output has a threshold.
        """
        return self._public(self.thresholds)

    @property
    def sklearn_threshold(self) -> float | FloatArray | None:
        """The threshold for scikit-learn's FixedThresholdClassifier, which also predicts class 1 *at* its threshold."""
        return self._public(np.nextafter(self.thresholds, np.inf))

    def _public(self, thresholds: FloatArray) -> float | FloatArray | None:
        if np.isnan(thresholds).all():
            return None
        return thresholds if self.multioutput else float(thresholds[0])

    @property
    def class_weight(self) -> FloatArray | None:
        """Weights w such that the rule is ``argmax_j w_j * eta_j + bonus_j``, of shape (K,), or (M, K) for several.

        eta are the probabilities behind the link, ``rule.calibrated(proba)``. The smallest weight is 1 where all are
        positive, as `describe` prints them; padding has weight 0. None if the rule has no such form: if its loss is a
        full table.
        """
        return None if self._weights is None else self._of_outputs(self._weights[0])

    @property
    def bonus(self) -> FloatArray | None:
        """What is added to the weighted probability of each class, see `class_weight`, of shape (K,), or (M, K).

        The smallest is 0, and so are all where the rule is a matter of weights alone. A rule that may abstain has an
        additional last column: it abstains where no class reaches that. None if the loss is a full table.
        """
        return None if self._weights is None else self._of_outputs(self._weights[1])

    @cached_property
    def _weights(self) -> tuple[FloatArray, FloatArray] | None:
        return weights_and_bonuses(self)

    @property
    def cut_points(self) -> FloatArray | None:
        """Ascending cut points at which the expected grade is rounded, of shape (K - 1,), or (M, K - 1).

        The expected grade is ``rule.calibrated(proba) @ rule.grades``, and the class of the lowest grade is predicted
        up to the first cut point. NaN for outputs without cut points, and for padding; None if no output has any.
        """
        return self._of_scales(self._scales, lambda scale: scale.cut_points, self.width - 1)

    @property
    def grades(self) -> FloatArray | None:
        """Grade of each class for `cut_points`, of shape (K,), or (M, K); NaN and None as there."""
        return self._of_scales(self._scales, lambda scale: scale.grades, self.width)

    @cached_property
    def _scales(self) -> list[CutPoints | None]:
        return [scale_of(self, m) for m in range(self.n_outputs)]

    def _of_scales(
        self, scales: list[CutPoints | None], numbers: Callable[[CutPoints], FloatArray], width: int
    ) -> FloatArray | None:
        if not any(scales):
            return None
        result = np.full((self.n_outputs, width), np.nan)
        for row, scale in zip(result, scales, strict=True):
            if scale is not None:
                row[: len(numbers(scale))] = numbers(scale)
        return self._of_outputs(result)

    @property
    def regions(self) -> tuple[Any, ...] | None:
        """What two classes are predicted along the probability of class 1: tuples ``(label, low, high)`` in order.

        The label is predicted from the raw probability low to high, both included. For several outputs, such a tuple
        for each, None for outputs of more than two classes. None if no output has two classes.
        """
        if not (self.n_classes == 2).any():
            return None
        each = tuple(regions_of(self, m) if k == 2 else None for m, k in enumerate(self.n_classes.tolist()))
        return each if self.multioutput else each[0]

    def _of_outputs(self, values: FloatArray) -> FloatArray:
        return values.copy() if self.multioutput else values[0].copy()

    # ---------------------------------------------------------------------------------------- copies and files

    def named(
        self, schema: Schema, link: TemperatureScaling | None, metadata: RuleMetadata | Mapping[str, Any] | None = None
    ) -> WeightedRule:
        """Return a copy with the user's labels; solvers build rules whose labels are codes."""
        return rule_of_schema(self.loss, schema, link, metadata)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, WeightedRule):
            return NotImplemented
        return (
            self.loss == other.loss
            and self.link == other.link
            and self.multioutput == other.multioutput
            and self.normalize == other.normalize
            and self.input == other.input
            and self.ordinal_map == other.ordinal_map
            and self.output_names == other.output_names
            and same_label(self.abstain_label, other.abstain_label)
            and same_classes(self.classes, other.classes)
        )

    __hash__ = None  # type: ignore[assignment]  # holds arrays, compares by content


def rule_of_schema(
    loss: Loss,
    schema: Schema,
    link: TemperatureScaling | None = None,
    metadata: RuleMetadata | Mapping[str, Any] | None = None,
) -> WeightedRule:
    """Return the rule of a loss for the outputs and classes of a schema; logits have a link of their own at least."""
    shared = {name: getattr(schema, name) for name in ("multioutput", "normalize", "output_names", "abstain_label")}
    shared |= {"input": schema.input.kind, "ordinal_map": schema.input.ordinal}
    return WeightedRule(
        loss, schema.classes, link_or_base(link, schema), metadata=RuleMetadata.of(metadata or {}), **shared
    )


def anonymous_rule(loss: Loss, n_classes: NDArray[Any]) -> WeightedRule:
    """Return the rule of a loss with codes as labels, which is what solvers build."""
    return rule_of_schema(loss, Schema.of_codes(n_classes))


# ------------------------------------------------------------------------------------------------------ checks


def _check(rule: WeightedRule) -> None:
    loss = rule.loss
    check_outputs(rule.schema, rule.link)
    width = rule.schema.decision_width
    if loss.n_outputs not in (1, rule.n_outputs) or loss.n_classes != width:
        size = f"{width} classes, as in classes" if rule.abstain_label is None else f"{width} decisions"
        raise InvalidParameter(
            "loss",
            f"have {rule.n_outputs} outputs (or 1, shared) and {size}",
            f"{loss.n_outputs} and {loss.n_classes}",
        )
