"""The weighted rule: predict the class of least expected loss.

Owns how a loss, optionally behind a link, becomes decisions in the user's labels, and what the rule is in other words:
a threshold, class weights. Must not know metrics, solvers, or where the loss comes from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InvalidParameter, entry_point
from ..core.losses import Loss
from ..data import Probabilities, Schema, check_abstain_label, check_rows, decode, is_lazy, python_labels, read_proba
from ..data.encoding import python_label
from . import by_hand, serialize
from .bare_columns import in_fitted_order, read_single
from .decisions import bisect_changes, decide_loss
from .description import describe_rule
from .forms import Scale, regions_of, scale_of, weights_and_bonuses
from .lazy import batches_of, predict_lazily
from .link import Link, recalibrated, shaped_like
from .stored import StoredRule

__all__ = ["WeightedRule", "anonymous_rule"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

_FIELDS = ("loss", "classes", "multioutput", "normalize", "link", "output_names", "facts")
_OPTIONAL = ("abstain_label",)  # of rules that may abstain, and only of those: files of all others are as they were


@dataclass(frozen=True, eq=False)
class WeightedRule(StoredRule):
    """Rule that predicts, for each output, the class of least expected loss ``argmin_j sum_i L[i, j] * eta_i``.

    Ties go to the lowest class. Two rules are equal if they decide alike; `facts` are not compared.

    Parameters
    ----------
    loss : Loss
        The loss, of leading size 1 (shared by all outputs) or M.
    classes : tuple of M ndarrays
        Label of each class, in column order.
    link : Link, optional
        Recalibration that is applied to the probabilities first.
    multioutput : bool, default=False
        Whether predictions are 2-D, as for a 2-D y.
    normalize : bool, default=False
        Whether `predict` divides each row of probabilities by its sum, so that scores are accepted.
    facts : mapping
        What is known about the rule, such as its metric, average, versions and time of creation, as JSON values.
    output_names : tuple of str, optional
        Names of the outputs, to which the columns of a multilabel data frame are matched.
    abstain_label : text, number or boolean, optional
        Label that is predicted if the rule abstains, which is not one of the classes and the same for all outputs;
        None: it never abstains. The loss then has an additional row and column: the last column, after the classes of
        each output, is the loss of abstaining, and the additional row is ignored.

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
    link: Link | None = None
    multioutput: bool = False
    normalize: bool = False
    facts: Mapping[str, Any] = field(default_factory=dict)
    output_names: tuple[str, ...] | None = None
    abstain_label: Any = None
    schema: Schema = field(init=False, repr=False)

    @entry_point("{class}")
    def __post_init__(self) -> None:
        object.__setattr__(self, "abstain_label", python_label(self.abstain_label))
        schema = Schema(
            self.classes, self.multioutput, self.normalize, self.output_names, abstain_label=self.abstain_label
        )
        object.__setattr__(self, "schema", schema)
        object.__setattr__(self, "classes", schema.classes)
        object.__setattr__(self, "output_names", schema.output_names)
        object.__setattr__(self, "facts", dict(self.facts))
        _check(self)

    # ------------------------------------------------------------------------------------------------- by hand

    @classmethod
    def from_thresholds(
        cls, thresholds: Any, *, classes: Any = None, pos_label: Any = None, output_names: Sequence[str] | None = None
    ) -> WeightedRule:
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

        Returns
        -------
        WeightedRule

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
        """
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
        cls, cut_points: Any, *, grades: Any = None, classes: Any = None, output_names: Sequence[str] | None = None
    ) -> WeightedRule:
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

        Returns
        -------
        WeightedRule

        See Also
        --------
        from_weights : For classes without an order.

        Examples
        --------
        >>> import metricwise as mw
        >>> rule = mw.WeightedRule.from_cut_points([1.4, 2.7], grades=[1, 2, 3], classes=[1, 2, 3])
        >>> rule.predict([[0.7, 0.2, 0.1], [0.6, 0.2, 0.2], [0.1, 0.1, 0.8]])  # expected grades 1.4, 1.6, 2.7
        array([1, 2, 2])
        """
        return cls(**by_hand.by_cut_points(cut_points, grades, classes, output_names))

    # ------------------------------------------------------------------------------------------------- shapes

    @property
    def n_classes(self) -> IntArray:
        """K_m of each output, of shape (M,)."""
        return self.schema.n_classes

    @property
    def n_outputs(self) -> int:
        """M."""
        return self.schema.n_outputs

    @property
    def width(self) -> int:
        """K, the largest K_m."""
        return self.schema.width

    # ---------------------------------------------------------------------------------------------- decisions

    @entry_point()
    def predict(self, proba: Any, *, pos_label: Any = None) -> NDArray[Any]:
        """Predict labels.

        Parameters
        ----------
        proba : array-like
            Class probabilities, in any shape that `optimize` takes: (N,) or (N, K) for one output; (N, M), (N, M, K) or
            a list of M arrays (N, K_m) for several. The columns of a data frame are matched by name. A single row must
            keep its axis: ``proba[:1]``, not ``proba[0]``. For a binary rule, a 1-D array always holds N probabilities
            of the second of its classes, unless `pos_label` names the other one; an array of two numbers that sum to 1
            raises a warning, because it may be meant as one row with both classes. For a Dask array or data frame,
            predictions are lazy.
        pos_label : object, or list of M objects, optional
            The class that a single column of probabilities is of, where it is not the second one. A rule that was
            fitted to two columns of text classes warns if a single one comes without it.

        Returns
        -------
        ndarray of shape (N,), or (N, M) if `multioutput`; a Dask collection if proba is one
        """
        if is_lazy(proba):
            predict = partial(self.predict, pos_label=pos_label)
            return predict_lazily(predict, self.schema, proba)  # type: ignore[no-any-return]
        parts = batches_of(proba)
        if parts is not None:
            return np.concatenate([self.predict(part, pos_label=pos_label) for _, part in parts])
        read = self.read(proba, pos_label=pos_label)
        labels = decode(self.decide(read), self.schema.decisions)
        return labels if self.multioutput else labels[:, 0]

    @entry_point()
    def distribution(self, proba: Any, *, pos_label: Any = None) -> FloatArray:
        """Return the probability with which each class is predicted: 1 for the decision, 0 for the others.

        A rule that may abstain has an additional last column for abstentions.

        Parameters
        ----------
        proba, pos_label
            As in `predict`.

        Returns
        -------
        ndarray of shape (N, K), or (N, M, K) if `multioutput`
        """
        result = self.distribution_of(self.read(proba, pos_label=pos_label))
        return result if self.multioutput else result[:, 0]

    def distribution_of(self, proba: Probabilities) -> FloatArray:
        """Return the same of shape (N, M, K) for probabilities that have been read already."""
        codes = last_column(self.decide(proba), self.schema)
        result = np.zeros((*codes.shape, self.schema.decision_width))
        np.put_along_axis(result, codes[:, :, None], 1.0, axis=2)
        return result

    @entry_point()
    def calibrated(self, proba: Any, *, pos_label: Any = None) -> NDArray[Any] | list[NDArray[Any]]:
        """Return the probabilities behind the recalibration of the rule, in the shape that they were given in.

        These are what the rule decides by. They are of use by themselves after training with class weights, with
        undersampling or with oversampling, which make probabilities too large or too small: here their mean is the
        share of each class among the rows that the rule was fitted to. Without recalibration (`rule.link` is None), a
        copy of what was given is returned.

        Parameters
        ----------
        proba, pos_label
            As in `predict`.

        Returns
        -------
        ndarray of the shape of proba, or list of M such
            The columns are in the order of the rule's classes and outputs; float32 stays float32.

        Examples
        --------
        >>> import numpy as np
        >>> import metricwise as mw
        >>> rng = np.random.default_rng(0)
        >>> p = rng.beta(1, 9, 5000)
        >>> y = (rng.random(5000) < p).astype(int)
        >>> shown = p / (p + (1 - p) / 9)  # as by a model that was trained with a ninth of the zeros
        >>> rule = mw.optimize(shown, y, "f1", strategy=mw.Strategy(confusion="labels", recalibrate=True)).rule
        >>> print(f"{shown.mean():.2f} {rule.calibrated(shown).mean():.2f} {y.mean():.2f}")
        0.41 0.10 0.10
        """
        read = self.read(proba, pos_label=pos_label)
        return shaped_like(proba, self.calibrated_of(read), self.multioutput)

    def calibrated_of(self, proba: Probabilities) -> Probabilities:
        """Return the same for probabilities that have been read already."""
        return recalibrated(self.link, proba)

    def read(self, proba: Any, facts: Mapping[str, Any] | None = None, pos_label: Any = None) -> Probabilities:
        """Read probabilities for this rule, and check that they are of its outputs and classes.

        Parameters
        ----------
        proba, pos_label
            As in `predict`.
        facts : mapping, optional
            Of the rule that this one is a part of.
        """
        facts = self.facts if facts is None else facts
        check_rows(proba, self.classes, self.multioutput)
        _check_outputs(proba, self)
        if facts.get("column_order") is not None:
            proba = in_fitted_order(proba, facts, self.classes)
        result = read_proba(
            proba,
            multioutput=self.multioutput,
            classes=self.classes if self.multioutput else self.classes[0],
            columns=self.output_names,
            normalize=self.normalize,
        )
        if result.n_classes.tobytes() != self.n_classes.tobytes():
            raise InvalidParameter(
                "proba", f"have {_counts(self.n_classes)}, as the rule has", _counts(result.n_classes)
            )
        return read_single(result, facts, self.classes, pos_label) if result.blocks[0].ndim == 2 else result

    def decide(self, proba: Probabilities) -> IntArray:
        """Predict codes of shape (N, M) for probabilities that have been read already."""
        proba = proba if self.link is None else self.link.view(proba)
        return decide_loss(self.loss, proba, self.schema.n_decisions)

    # ------------------------------------------------------------------------------------- in other words

    @cached_property
    def changes(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Where binary outputs change their decision: three arrays of shape (M,), NaN for other outputs.

        The decision if class 1 has probability 0, the decision if it has probability 1, and the largest probability
        that still gets the former. They are found with the kernel that predicts: for float64 probabilities of class 1,
        the result is exact to the last bit if both diagonal entries are negative and there is no link, and otherwise
        within rounding.
        """
        result = (np.full(self.n_outputs, np.nan), np.full(self.n_outputs, np.nan), np.full(self.n_outputs, np.nan))
        binary = np.flatnonzero(self.schema.n_decisions == 2)
        if len(binary):
            for array, values in zip(result, bisect_changes(self.loss, self.link, binary), strict=True):
                array[binary] = values
        return result

    @property
    def thresholds(self) -> FloatArray:
        """For each output, t such that class 1 is predicted iff its raw probability exceeds t; of shape (M,).

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
    def _scales(self) -> list[Scale | None]:
        return [scale_of(self, m) for m in range(self.n_outputs)]

    def _of_scales(
        self, scales: list[Scale | None], numbers: Callable[[Scale], FloatArray], width: int
    ) -> FloatArray | None:
        if not any(scales):
            return None
        result = np.full((self.n_outputs, width), np.nan)
        for own, scale in zip(result, scales, strict=True):
            if scale is not None:
                own[: len(numbers(scale))] = numbers(scale)
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

    def describe(self) -> str:
        """Describe the rule in a few lines of plain English."""
        return describe_rule(self)

    # ---------------------------------------------------------------------------------------- copies and files

    def named(self, schema: Schema, link: Link | None, facts: Mapping[str, Any]) -> WeightedRule:
        """Return a copy with the user's labels; solvers build rules whose labels are codes."""
        return WeightedRule(
            self.loss,
            schema.classes,
            link,
            schema.multioutput,
            schema.normalize,
            facts,
            schema.output_names,
            schema.abstain_label,
        )

    @entry_point()
    def to_dict(self) -> dict[str, Any]:
        """Return the rule as a dict of JSON types; `from_dict` restores it exactly."""
        return {
            "format": serialize.FORMAT,
            "version": serialize.VERSION,
            "kind": "weighted",
            **shared_to_dict(self),
            **decision_to_dict(self),
            "facts": serialize.plain(self.facts, "facts"),
        }

    @classmethod
    @entry_point()
    def from_dict(cls, document: Mapping[str, Any]) -> WeightedRule:
        """Return the rule from a dict written by `to_dict`; every field is checked."""
        read = serialize.read_object(document, "the rule")
        serialize.check_fields(read, "weighted", _FIELDS, _OPTIONAL)
        facts = serialize.read_facts(read["facts"])
        return rule_from_fields(shared_from_dict(read), read, facts)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, WeightedRule):
            return NotImplemented
        return (
            self.loss == other.loss
            and self.link == other.link
            and self.multioutput == other.multioutput
            and self.normalize == other.normalize
            and self.output_names == other.output_names
            and same_label(self.abstain_label, other.abstain_label)
            and same_classes(self.classes, other.classes)
        )

    __hash__ = None  # type: ignore[assignment]  # holds arrays, compares by content


def anonymous_rule(loss: Loss, n_classes: NDArray[Any]) -> WeightedRule:
    """Return the rule of a loss with codes as labels, which is what solvers build.

    Parameters
    ----------
    loss : Loss
    n_classes : integer ndarray of shape (M,)

    Examples
    --------
    >>> import numpy as np
    >>> from metricwise.core.losses import Loss
    >>> from metricwise.rules import anonymous_rule
    >>> anonymous_rule(Loss.argmax(3), np.array([3])).predict([[0.2, 0.5, 0.3]])
    array([1])
    """
    schema = Schema.of_codes(n_classes)
    return WeightedRule(loss, schema.classes, multioutput=schema.multioutput)


# ------------------------------------------------------------------------------------------------------ checks


def _check(rule: WeightedRule) -> None:
    loss, link = rule.loss, rule.link
    distinct = {id(labels): labels for labels in rule.classes}.values()
    if not rule.classes or any(labels.ndim != 1 or len(labels) < 2 for labels in distinct):
        raise InvalidParameter("classes", "hold one array of at least 2 labels per output", "fewer")
    for labels in distinct:
        if len(set(labels.tolist())) < len(labels):
            raise InvalidParameter("classes", "be distinct within an output", labels.tolist())
    if not rule.multioutput and rule.n_outputs > 1:
        raise InvalidParameter("multioutput", "be True for several outputs", f"{rule.n_outputs} and False")
    if rule.abstain_label is not None:
        check_abstain_label(rule.abstain_label, rule.classes)
    width = rule.schema.decision_width
    if loss.n_outputs not in (1, rule.n_outputs) or loss.n_classes != width:
        wanted = f"{width} classes, as in classes" if rule.abstain_label is None else f"{width} decisions"
        raise InvalidParameter(
            "loss",
            f"have {rule.n_outputs} outputs (or 1, shared) and {wanted}",
            f"{loss.n_outputs} and {loss.n_classes}",
        )
    if link is not None and link.bias.shape != (rule.n_outputs, rule.width):
        raise InvalidParameter(
            "link",
            f"have {rule.n_outputs} outputs and {rule.width} classes, as in classes",
            f"{link.n_outputs} and {link.n_classes}",
        )
    if rule.output_names is not None and len(rule.output_names) != rule.n_outputs:
        raise InvalidParameter("output_names", f"have one name per output, {rule.n_outputs}", len(rule.output_names))


def _check_outputs(proba: Any, rule: WeightedRule) -> None:
    """Refuse another number of outputs before anything is matched to the classes of an output that is not there."""
    if not rule.multioutput:
        return
    if isinstance(proba, (list, tuple)):
        arrays = len(proba) > 0 and len(getattr(proba[0], "shape", ())) == 2
        found = len(proba) if arrays else rule.n_outputs
    else:
        shape = getattr(proba, "shape", ())
        found = shape[1] if isinstance(shape, tuple) and len(shape) > 1 else rule.n_outputs
    if found != rule.n_outputs:
        raise InvalidParameter("proba", f"have {rule.n_outputs} outputs, as the rule has", found)


def _counts(n_classes: IntArray) -> str:
    if len(n_classes) == 1:
        return f"{n_classes[0]} classes"
    shown = n_classes.tolist() if len(n_classes) <= 10 else [*n_classes[:10].tolist(), "..."]
    return f"{len(n_classes)} outputs of {shown} classes"


def last_column(codes: IntArray, schema: Schema) -> IntArray:
    """Return codes in which abstentions are the last of D decisions, however few classes their output has."""
    if schema.abstain_label is None:
        return codes
    return np.where(codes >= schema.n_classes, schema.width, codes)


def same_label(one: Any, other: Any) -> bool:
    """Whether two labels agree in value and type."""
    return type(one) is type(other) and bool(one == other)


def same_classes(these: tuple[NDArray[Any], ...], others: tuple[NDArray[Any], ...]) -> bool:
    """Whether the labels of all outputs agree in value and type (1, 1.0 and True are three labels)."""
    if len(these) != len(others):
        return False
    for these_labels, other_labels in zip(these, others, strict=True):
        if these_labels is other_labels:
            continue
        a, b = python_labels(these_labels), python_labels(other_labels)
        if a != b or any(type(x) is not type(y) for x, y in zip(a, b, strict=True)):
            return False
    return True


# -------------------------------------------------------------------------------------- fields of a document


def shared_to_dict(rule: WeightedRule) -> dict[str, Any]:
    """Fields that the components of a mixture share."""
    return {
        "classes": [serialize.plain_labels(labels) for labels in rule.classes],
        "multioutput": rule.multioutput,
        "normalize": rule.normalize,
        "output_names": None if rule.output_names is None else serialize.plain(rule.output_names, "output_names"),
        **({} if rule.abstain_label is None else {"abstain_label": rule.abstain_label}),
    }


def decision_to_dict(rule: WeightedRule) -> dict[str, Any]:
    """Fields that make the decision: loss and link."""
    names = ("diagonal", "offset") if rule.loss.is_diagonal else ("full",)
    arrays = zip(names, rule.loss.arrays, strict=True)
    link = rule.link
    return {
        "loss": {name: serialize.plain(array, f"loss.{name}") for name, array in arrays},
        "link": None if link is None else link.to_dict(),
    }


def shared_from_dict(document: Mapping[str, Any]) -> dict[str, Any]:
    """Check and read what `shared_to_dict` writes."""
    classes = serialize.read_list(document["classes"], "classes")
    names = document["output_names"]
    return {
        "classes": tuple(serialize.read_labels(labels, f"classes[{m}]") for m, labels in enumerate(classes)),
        "multioutput": serialize.read_bool(document["multioutput"], "multioutput"),
        "normalize": serialize.read_bool(document["normalize"], "normalize"),
        "output_names": None if names is None else serialize.read_names(names, "output_names"),
        "abstain_label": serialize.read_label(document["abstain_label"]) if "abstain_label" in document else None,
    }


def rule_from_fields(shared: Mapping[str, Any], document: Mapping[str, Any], facts: Mapping[str, Any]) -> WeightedRule:
    """Build a rule from shared fields and the loss and link of `document`."""
    return WeightedRule(_read_loss(document["loss"]), link=read_link(document["link"]), facts=facts, **shared)


def _read_loss(value: Any) -> Loss:
    document = serialize.read_object(value, "loss")
    if "full" in document:
        serialize.check_keys(document, ("full",), "loss")
        full = serialize.read_numbers(document["full"], "loss.full", 3)
        if full.shape[1] != full.shape[2]:
            raise InvalidParameter("", problem=f"loss.full must have square matrices, got shape {full.shape}")
        return Loss(full=full)
    serialize.check_keys(document, ("diagonal", "offset"), "loss")
    diagonal = serialize.read_numbers(document["diagonal"], "loss.diagonal", 2)
    offset = serialize.read_numbers(document["offset"], "loss.offset", 2)
    if diagonal.shape != offset.shape:
        raise InvalidParameter(
            "", problem=f"loss.offset must have the shape of loss.diagonal, {diagonal.shape}, got {offset.shape}"
        )
    return Loss(diagonal=diagonal, offset=offset)


def read_link(value: Any) -> Link | None:
    """Check and read a link of a document."""
    if value is None:
        return None
    document = serialize.read_object(value, "link")
    serialize.check_keys(document, ("temperature", "bias", "floor"), "link")
    return Link(
        serialize.read_numbers(document["temperature"], "link.temperature", 1),
        serialize.read_numbers(document["bias"], "link.bias", 2),
        float(serialize.read_numbers(document["floor"], "link.floor", 0)),
    )
