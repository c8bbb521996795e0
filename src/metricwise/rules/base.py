"""The base class of all kinds of rules.

A kind is a frozen dataclass that derives from :class:`Rule` and is listed in ``load.py``. Callers ask a rule what it
can do, never which kind it is. Must not know metrics, oracles or solvers.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InvalidParameter, InvalidType, argument, entry_point
from ..core.inputs import Input
from ..core.labels import are_one, decode, distinct_objects, python_labels
from ..core.losses import Loss
from ..core.ordinal_map import OrdinalMap
from ..core.probabilities import Probabilities
from ..core.schema import Schema
from ..data.abstention import check_abstain_label
from ..data.frames import is_lazy
from . import codec
from .calibration import TemperatureScaling, recalibrated, shaped_like
from .class_shares import UNCHANGED, ShareShift, moved_metadata, read_shift
from .codec import SHARED_FIELDS, JsonField
from .lazy import batches_of, predict_lazily
from .metadata import RuleMetadata, headline
from .reading import read_probabilities
from .spark import SparkThresholds
from .writer import RuleWriter

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
T = TypeVar("T")
R = TypeVar("R", bound="Rule")
PARTITIONS = ("sensitive_features", "segments")  # row inputs by which rules differ


class RuleRows(NamedTuple):
    """Rows to decide, read and checked.

    Parameters
    ----------
    proba : Probabilities
        Of N rows and M outputs.
    start : int or ndarray of shape (N,)
        Position of the first row, or of each, on which draws depend.
    groups : ndarray of shape (N,), optional
        Code of the sensitive group or the segment of each row, for rules that need it.
    cost : ndarray of shape (N, K) or (N, K, D), optional
        Costs of the decisions about each row, for rules that need them.
    """

    proba: Probabilities
    start: int | IntArray = 0
    groups: IntArray | None = None
    cost: FloatArray | None = None

    def positions(self, rows: slice) -> IntArray:
        """Return the positions of some rows."""
        if isinstance(self.start, np.ndarray):
            return self.start[rows]
        return np.arange(*rows.indices(self.proba.n_rows)) + self.start

    def take(self, rows: IntArray) -> RuleRows:
        """Return some of the rows, each with its position."""
        start = self.start[rows] if isinstance(self.start, np.ndarray) else self.start + rows
        groups = None if self.groups is None else self.groups[rows]
        cost = None if self.cost is None else self.cost[rows]
        return RuleRows(self.proba.take(rows), start, groups, cost)


class LossMixture(NamedTuple):
    """A rule as oracles count it: weighted rules, and the share of the rows that each decides, (M, R) or (1, R)."""

    rules: tuple[Any, ...]
    shares: FloatArray

    @property
    def losses(self) -> list[Loss]:
        """The loss of each rule."""
        return [rule.loss for rule in self.rules]

    @property
    def link(self) -> TemperatureScaling | None:
        """The recalibration of the first rule, which all share unless a rule was put together by hand."""
        link: TemperatureScaling | None = self.rules[0].link
        return link


class Rule(ABC):
    """A decision rule: from class probabilities, and what else it needs to know of a row, to labels.

    What is here holds for every kind of rule.

    See Also
    --------
    WeightedRule, MixtureRule, GroupedRule, SegmentedRule, CostRule, CutPointRule : Kinds of rules.
    LabelRule, LabelSetRule : Kinds for very many labels.
    metricwise.load_rule : Load a rule of any kind.

    Examples
    --------
    >>> import metricwise as mw
    >>> rule = mw.load_rule(mw.WeightedRule.from_thresholds(0.3).to_json())
    >>> isinstance(rule, mw.Rule), rule.needs, rule.is_randomized
    (True, frozenset(), False)
    """

    kind: ClassVar[str]
    """Name of the kind in files."""
    summary: ClassVar[str]
    """What rules of the kind do, for the JSON Schema."""
    needs: ClassVar[frozenset[str]] = frozenset()
    """What `predict` must be given besides probabilities: "sensitive_features", "segments", "cost"."""
    fields: ClassVar[tuple[JsonField, ...]] = ()
    """Fields of documents besides those of outputs and classes."""
    shared_fields: ClassVar[tuple[JsonField, ...]] = SHARED_FIELDS
    html_card: ClassVar[Callable[[Any], str] | None] = None  # set by metricwise.inspection, which lies above
    adapter: ClassVar[Callable[..., Any] | None] = None  # set by metricwise.monitoring, which lies above

    metadata: RuleMetadata
    schema: Schema
    classes: tuple[NDArray[Any], ...]
    multioutput: bool
    normalize: bool
    output_names: tuple[str, ...] | None
    abstain_label: Any

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

    @property
    def input(self) -> str:
        """What the numbers of rows are: "probabilities", "logits", "log_proba" or "scores"."""
        return self.schema.input.kind

    @property
    def ordinal_map(self) -> OrdinalMap | None:
        """The map from one score to the probabilities of ordered classes; None if rows have no such score."""
        return self.schema.input.ordinal

    @property
    def is_randomized(self) -> bool:
        """Whether some decisions are drawn."""
        return False

    # ---------------------------------------------------------------------------------------------- decisions

    @entry_point()
    def predict(
        self,
        proba: Any,
        *,
        sensitive_features: Any = None,
        cost: Any = None,
        start: int = 0,
        pos_label: Any = None,
        segments: Any = None,
    ) -> NDArray[Any]:
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
        sensitive_features : array-like of shape (N,) or (N, F), optional
            The group of every row, for a rule by group; all other rules decide without it. Columns of a data frame are
            selected by name.
        cost : array-like of shape (N, K), (N, K, K) or (N, K, K + 1), optional
            Costs of the decisions about each row, for a rule by costs per row; refused by all others.
        start : int, default=0
            Position of the first row, on which draws depend: rows predicted in chunks get the same draws as in one
            call.
        pos_label : object, or list of M objects, optional
            The class that a single column of probabilities is of, where it is not the second one. A rule that was
            fitted to two columns of text classes warns if a single one comes without it.
        segments : array-like of shape (N,) or (N, F), optional
            The segment of every row, for a rule by segment; all other rules decide without it. Rows whose segment is
            missing, or was not among those of the fit, are decided by the rule of all rows.

        Returns
        -------
        ndarray of shape (N,), or (N, M) if `multioutput`; a Dask collection if proba is one
        """
        alone = sensitive_features is segments is cost is pos_label is None and type(start) is int and start == 0
        labels = self._predict_few(proba) if alone and type(proba) is np.ndarray and not self.needs else None
        if labels is not None:
            return labels
        in_memory = isinstance(proba, np.ndarray) or self.needs  # what a rule needs besides is an array of all rows
        if not in_memory and (is_lazy(proba) or batches_of(proba) is not None):
            self.read_cost(cost, 0)
            return self._predict_in_parts(proba, _checked_start(start), pos_label)
        row_inputs = {"sensitive_features": sensitive_features, "segments": segments, "cost": cost}
        rows = self.read_rows(proba, start=start, pos_label=pos_label, **row_inputs)
        labels = decode(self.decide(rows), self.schema.decisions)
        return labels if self.multioutput else labels[:, 0]

    def _predict_few(self, proba: NDArray[Any]) -> NDArray[Any] | None:
        """Predict few rows of plain numbers in as little time as possible; None where `predict` has more to look at."""
        return None

    def _predict_in_parts(self, proba: Any, start: int, pos_label: Any) -> NDArray[Any]:
        """Predict what is not an array in memory: a Dask collection lazily, a tensor a batch at a time."""
        if is_lazy(proba):
            predict = partial(_predict_chunk, self, start, pos_label)
            return predict_lazily(predict, self.schema, proba, draws=self.is_randomized)  # type: ignore[no-any-return]
        batches = batches_of(proba) or ()
        return np.concatenate([_predict_chunk(self, start, pos_label, part, at) for at, part in batches])

    @entry_point()
    def distribution(
        self,
        proba: Any,
        *,
        sensitive_features: Any = None,
        cost: Any = None,
        pos_label: Any = None,
        segments: Any = None,
    ) -> FloatArray:
        """Return the exact probability with which each class is predicted; nothing is drawn.

        These are 0 and 1 unless the rule is randomised. A rule that may abstain has an additional last column for
        abstentions.

        Parameters
        ----------
        proba, sensitive_features, cost, pos_label, segments
            As in `predict`.

        Returns
        -------
        ndarray of shape (N, K), or (N, M, K) if `multioutput`
        """
        row_inputs = {"sensitive_features": sensitive_features, "segments": segments, "cost": cost}
        rows = self.read_rows(proba, pos_label=pos_label, **row_inputs)
        result = self.distribute(rows)
        return result if self.multioutput else result[:, 0]

    @entry_point()
    def calibrated(
        self, proba: Any, *, sensitive_features: Any = None, pos_label: Any = None, segments: Any = None
    ) -> NDArray[Any] | list[NDArray[Any]]:
        """Return the probabilities behind the recalibration of the rule, in the shape that they were given in.

        These are what the rule decides by. They are of use by themselves after training with class weights, with
        undersampling or with oversampling, which make probabilities too large or too small: here their mean is the
        share of each class among the rows that the rule was fitted to. Without recalibration (`rule.link` is None), a
        copy of what was given is returned.

        Parameters
        ----------
        proba, sensitive_features, pos_label, segments
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
        read = self.read(proba, pos_label)
        groups = self.read_groups(read.n_rows, sensitive_features=sensitive_features, segments=segments)
        rows = RuleRows(read, groups=groups)
        return shaped_like(proba, self.calibrate(rows), self.multioutput)

    @abstractmethod
    def decide(self, rows: RuleRows) -> IntArray:
        """Return the codes of the decisions about rows, of shape (N, M)."""

    def distribute(self, rows: RuleRows) -> FloatArray:
        """Return the probability of each decision, (N, M, D); the codes of a rule that draws nothing have 1."""
        codes = last_column(self.decide(rows), self.schema)
        result = np.zeros((*codes.shape, self.schema.decision_width))
        np.put_along_axis(result, codes[:, :, None], 1.0, axis=2)
        return result

    def calibrate(self, rows: RuleRows) -> Probabilities:
        """Return the probabilities that the rule decides by."""
        return recalibrated(None, rows.proba)

    def decide_each(self, rows: RuleRows, n_groups: int = 1) -> tuple[list[IntArray], FloatArray]:
        """Return the decisions of each rule that is drawn from, and their shares.

        Returns
        -------
        codes : list of R ndarrays of shape (N, n_groups * M)
        shares : ndarray of shape (n_groups * M, R) or (1, R)
        """
        return [np.tile(self.decide(rows), n_groups)], np.ones((1, 1))

    def flatten(self) -> LossMixture:
        """Return the losses that the rule decides by, and their shares; refused by rules that are no such mixture."""
        raise InvalidType(
            "rule",
            f"decide all rows by the same losses, which a {type(self).__name__} does not",
            remedy="use metricwise.evaluate for its values on rows",
        )

    @property
    def is_flat(self) -> bool:
        """Whether the rule decides all rows by the same losses, see `flatten`."""
        return False

    @property
    def has_path(self) -> bool:
        """Whether there are rules between argmax and the rule: by its losses, or by the cut points of a score."""
        return self.is_flat

    @property
    def has_map(self) -> bool:
        """Whether scores have a map to probabilities; those of rules by hand need not."""
        return True

    @property
    def shared_link(self) -> TemperatureScaling | None:
        """The recalibration of all rows alike; None if there is none, or if it differs by row."""
        return None

    # ----------------------------------------------------------------------------------------------- reading of rows

    def read_rows(
        self,
        proba: Any,
        *,
        sensitive_features: Any = None,
        cost: Any = None,
        start: int = 0,
        pos_label: Any = None,
        segments: Any = None,
    ) -> RuleRows:
        """Read and check what `predict` is given."""
        read = self.read(proba, pos_label)
        if cost is None and start == 0 and not (self.needs or isinstance(start, bool)):  # most calls
            return RuleRows(read)
        return RuleRows(
            read,
            _checked_start(start),
            self.read_groups(read.n_rows, sensitive_features=sensitive_features, segments=segments),
            self.read_cost(cost, read.n_rows),
        )

    def read(self, proba: Any, pos_label: Any = None) -> Probabilities:
        """Read probabilities for this rule, and check that they are of its outputs and classes."""
        if is_lazy(proba):
            needs = f", and the rule also needs {', '.join(sorted(self.needs))}" if self.needs else ""
            raise InvalidType("proba", "be in memory", f"a Dask collection{needs}", "compute it first")
        return read_probabilities(proba, self.schema, self.metadata, pos_label)

    def read_groups(self, n_rows: int, **row_inputs: Any) -> IntArray | None:
        """Read the sensitive group or the segment of each row; None for a rule that decides without it."""
        return None

    @property
    def is_partitioned(self) -> bool:
        """Whether rows are decided by rules that differ by sensitive group or by segment."""
        return not self.needs.isdisjoint(PARTITIONS)

    def read_cost(self, cost: Any, n_rows: int) -> FloatArray | None:
        """Read the costs of the decisions about each row; refused by a rule that decides without them."""
        if cost is None:
            return None
        raise InvalidParameter(
            "cost",
            "be left out, because this rule has one loss for all rows",
            remedy=f"optimise with {argument('cost')} to decide each row by its own costs",
        )

    # ------------------------------------------------------------------------------------------ in words and elsewhere

    def describe(self) -> str:
        """Describe the rule in a few lines of plain English."""
        return "\n".join([*headline(self.metadata, self.n_outputs > 1), *self.decision_lines(self.metadata)])

    @abstractmethod
    def decision_lines(self, metadata: RuleMetadata) -> list[str]:
        """Say what the rule decides; `metadata` is that of the whole rule that this one is, or is a part of."""

    def score_cuts(self, output: int) -> FloatArray | None:
        """Return the cut points (K - 1,) of the score of an output, if the rule compares one; None otherwise."""
        return None

    def accept(self, writer: RuleWriter[T]) -> T:
        """Return what a writer writes of the rule, by the method of its kind; refused where there is none."""
        return writer.other(self)

    @entry_point()
    def as_spark_thresholds(self) -> list[float]:
        """Return the rule as the parameter `thresholds` of a classifier of Spark ML, which predicts argmax p_j / t_j.

        Rules that weights of the classes describe have thresholds: all of two classes with a threshold, and of more
        classes those without offsets, also with a calibration. Others are refused with the reason.

        With two classes, Spark decides as the rule does wherever its probabilities are ``1 - p`` and ``p`` in float64,
        ties included; LogisticRegression compares log-odds with the threshold and is equal up to rounding. With more
        classes, rows where two weighted probabilities agree up to rounding may be decided otherwise, and other ties go
        to the lowest class in both.

        Returns
        -------
        list of K floats
            In the order of `classes`, which must be that of Spark's indices: with a StringIndexer, the order of its
            ``labels``. The smallest is 1 with more than two classes; 0 stands for a class that is predicted wherever it
            has any probability, infinity for one that is never predicted.

        See Also
        --------
        metricwise.export.to_sql : Any rule, on columns of probabilities.

        Examples
        --------
        >>> import metricwise as mw
        >>> mw.WeightedRule.from_thresholds(0.25).as_spark_thresholds()
        [0.75, 0.25]
        >>> mw.WeightedRule.from_weights([1, 2, 4]).as_spark_thresholds()
        [4.0, 2.0, 1.0]
        """
        return self.accept(SparkThresholds())

    # ---------------------------------------------------------------------------------------- copies and files

    def with_metadata(self, **entries: Any) -> Self:
        """Return a copy with additional metadata, such as ``date="2026-11-17"`` or a contact.

        Parameters
        ----------
        **entries
            Any JSON values; they are added to the existing metadata, or replace those of the same name. Names that are
            no field of the metadata are in ``metadata.extra``.

        Returns
        -------
        rule
        """
        return described(self, self.metadata.updated(**entries))

    @entry_point()
    def with_prior(self, prior: Any) -> Self:
        """Return the rule for rows with other class shares, without the rows that it was fitted to.

        By Bayes' rule: if the rows of each class look as before and only the shares of the classes move, the odds of a
        class change by the ratio of its shares. What that is worth depends on the metric that the rule was fitted for,
        and is in ``metadata.under_new_shares``:

        - "exact": the loss is the table of a metric that does not depend on shares (accuracy, weighted accuracy, costs,
          closeness on a scale). The result is the rule that `optimize` with `prior` gives for the same strategy.
        - "unchanged": functions of recalls (balanced accuracy, G-mean, the smallest recall) do not change with shares;
          the rule itself is returned.
        - "approximate": decisions follow the shift of log-odds, all of it (thresholds for costs that labels have
          chosen, bounds on precision) or a third of it (F1, kappa and other metrics that are no fixed table: see
          ``metadata.followed_shift``), which is not quite the best rule for the new shares. Use `adapted` with 1,000
          new rows or more, or `optimize` with `prior` and the old rows.

        Constraints are no longer promised: they are returned without their confidence. That of recalls as well, because
        other decisions have other recalls. A rule that is returned as it is keeps those of recalls and false positive
        rates, which do not change with shares.

        Parameters
        ----------
        prior : array-like of shape (K,) or (M, K), list of M arrays, dict, float or ShareEstimate
            Class shares of the rows that the rule will be applied to: in the order of `classes`, or a dict by class; a
            number is the share of the second of two classes. See :func:`metricwise.estimate_shares`.

        Returns
        -------
        rule

        See Also
        --------
        adapted : Fit the rule anew to rows without labels.
        metricwise.estimate_shares : Estimate the class shares of rows without labels.

        Examples
        --------
        >>> import numpy as np
        >>> import metricwise as mw
        >>> rng = np.random.default_rng(0)
        >>> p = rng.beta(1, 3, 2000)
        >>> y = (rng.random(2000) < p).astype(int)
        >>> cost = mw.metrics.Cost([[0, 1], [4, 0]])
        >>> rule = mw.optimize(p, y, cost, strategy=mw.Strategy(confusion="expected")).rule
        >>> rule.metadata.under_new_shares
        'exact'
        >>> round(rule.threshold, 2), round(rule.with_prior([0.9, 0.1]).threshold, 2)
        (0.2, 0.41)
        """
        self.refuse_new_shares()
        if self.is_partitioned:
            parts, part = ("segments", "segment") if "segments" in self.needs else ("sensitive groups", "group")
            raise InvalidType(
                "rule",
                f"decide all {parts} alike, because it is not known how the class shares of each {part} move",
                remedy="fit the rule again with recent labels",
            )
        if self.metadata.under_new_shares == UNCHANGED:
            return self
        shift, shares = read_shift(prior, self.schema, self.metadata)
        if not shift.log_ratio.any():
            return self
        entries = moved_metadata(self.metadata, shares, self.n_classes)
        return self.move(shift).with_metadata(**entries)

    @entry_point()
    def adapted(self, proba: Any, *, metric: Any = None, level: float = 0.01, pos_label: Any = None) -> Rule:
        """Return the rule fitted anew to rows without labels, if their class shares have moved.

        The shares are estimated and tested as by :func:`metricwise.estimate_shares`. If they have not moved, or if the
        metric does not change with shares, the rule itself is returned. Otherwise the metric is maximised on the
        expected confusion of these rows, computed from probabilities that are calibrated for the new shares. If
        `with_prior` is exact for the rule, its result is returned.

        The rows of each class are assumed to look as before; see the warning in :func:`metricwise.estimate_shares`.

        Parameters
        ----------
        proba : array-like
            Class probabilities, logits or scores of at least 1,000 rows, as `predict` takes them.
        metric : str, Metric or callable, optional
            The metric, if its name in the metadata does not say all of it: functions, tables, metrics by output.
        level : float, default=0.01
            Level of the test that shares have not moved.
        pos_label : object, or list of M objects, optional
            As in `predict`.

        Returns
        -------
        rule
            Constraints that depend on shares are satisfied in expectation, and no longer promised.

        See Also
        --------
        with_prior : Move the rule to known shares.
        metricwise.estimate_shares : Estimate class shares.

        Examples
        --------
        >>> import numpy as np
        >>> import metricwise as mw
        >>> rng = np.random.default_rng(0)
        >>> p = rng.beta(1, 3, 6000)
        >>> y = (rng.random(6000) < p).astype(int)
        >>> rule = mw.optimize(p[:3000], y[:3000], "f1").rule
        >>> rule.adapted(p[3000:]) is rule  # nothing has moved
        True
        >>> more = np.r_[np.flatnonzero(y == 1), np.flatnonzero(y == 0)[:1000]]
        >>> rule.adapted(p[more]).threshold < rule.threshold
        True
        """
        self.refuse_new_shares()
        if Rule.adapter is None:  # as of a rule from a pickle, before any name of metricwise was used
            raise InvalidType("", problem="rules adapt once metricwise.monitoring is loaded", remedy="import it first")
        adapted: Rule = Rule.adapter(self, proba, metric, level, pos_label)
        return adapted

    def refuse_new_shares(self) -> None:
        """Refuse to move to other class shares, in a kind that cannot follow them at all."""
        return

    def with_outputs_of(self, other: Rule, outputs: NDArray[np.bool_]) -> Rule:
        """Return the rule that decides some outputs (M,) as another rule does; itself if the two cannot be joined."""
        return self

    def move(self, shift: ShareShift) -> Self:
        """Return the rule after a shift of class shares; refused by kinds that cannot say what it does to them."""
        raise InvalidType(
            "rule",
            f"decide by calibrated probabilities or by a score with a map to these, which a {type(self).__name__} "
            "does not",
            remedy=f"fit it again with metricwise.optimize and {argument('prior')}",
        )

    @entry_point()
    def to_dict(self) -> dict[str, Any]:
        """Return the rule as a dict of JSON types; `from_dict` restores it exactly."""
        values = self._stored_values()
        written = {
            field.name: field.write(values[field.name], field.name)
            for field in (*self.shared_fields, *self.fields)
            if not (field.optional and values[field.name] is None)
        }
        return {
            "format": codec.FORMAT,
            "version": codec.VERSION,
            "kind": self.kind,
            **written,
            "facts": codec.json_value(self.metadata.to_dict(), "facts"),
        }

    @classmethod
    @entry_point()
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Return the rule from a dict written by `to_dict`; every field is checked."""
        fields = (*cls.shared_fields, *cls.fields)
        read = codec.read_object(document, "the rule")
        required = [field.name for field in fields if not field.optional]
        optional = [field.name for field in fields if field.optional]
        optional = [name for name in optional if name in read or name not in codec.DEFAULTED_FIELDS]
        codec.check_fields(read, cls.kind, (*required, "facts"), optional)
        values = {field.name: field.read(read[field.name], field.name) for field in fields if field.name in read}
        metadata = RuleMetadata.of(codec.json_value(codec.read_object(read["facts"], "facts"), "facts"))
        return cls._from_values({**dict.fromkeys(optional), **values}, metadata)

    def _stored_values(self) -> dict[str, Any]:
        """Return the values of all fields of the document by name."""
        return {**self._shared_values(), **{field.name: getattr(self, field.name) for field in self.fields}}

    def _shared_values(self) -> dict[str, Any]:
        """Return the values of the fields that all kinds share; what is left out has the value None."""
        values = {field.name: getattr(self, field.name) for field in self.shared_fields}
        return values if self.schema.input.is_logits else {**values, "input": None}

    @classmethod
    def _from_values(cls, values: dict[str, Any], metadata: RuleMetadata) -> Self:
        """Return the rule of the values of all fields."""
        make: Any = cls  # every kind is a dataclass of its fields
        rule: Self = make(**values, metadata=metadata)
        return rule

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the rule as JSON text; if `path` is given, also write it to that file, completely or not at all.

        An existing file keeps its permissions, a symbolic link is followed, and a pipe or /dev/stdout is written to.
        """
        return codec.dump(self.to_dict(), path)

    @classmethod
    @entry_point()
    def from_json(cls, path_or_text: str | os.PathLike[str]) -> Self:
        """Load a rule from a JSON file, or from JSON text. No code in it is executed."""
        document = codec.parse(codec.read_text(path_or_text))
        return cls.from_dict(codec.read_object(document, "the rule"))

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_few_rows"}  # no value, but a shortcut

    def __setstate__(self, state: dict[str, Any]) -> None:
        if "facts" in state:  # of a pickle that was made before 0.2
            state = {**state, "metadata": RuleMetadata.of(state["facts"])}
            del state["facts"]
        vars(self).update(state)

    def _repr_html_(self) -> str | None:
        card = Rule.html_card
        return None if card is None else card(self)  # without a card, notebooks show the text


class RuleOfParts(Rule):
    """A rule that is made of others, which have the same outputs and classes."""

    @property
    def classes(self) -> tuple[NDArray[Any], ...]:  # type: ignore[override]  # of the parts
        """Label of each class of each output."""
        return self.schema.classes

    @property
    def multioutput(self) -> bool:  # type: ignore[override]
        """Whether predictions are 2-D."""
        return self.schema.multioutput

    @property
    def normalize(self) -> bool:  # type: ignore[override]
        """Whether `predict` divides each row of probabilities by its sum."""
        return self.schema.normalize

    @property
    def output_names(self) -> tuple[str, ...] | None:  # type: ignore[override]
        """Names of the outputs."""
        return self.schema.output_names

    @property
    def abstain_label(self) -> Any:
        """Label that is predicted if the rule abstains; None: it never does."""
        return self.schema.abstain_label


def _predict_chunk(rule: Rule, first: int, pos_label: Any, proba: Any, start: int = 0) -> NDArray[Any]:
    """Predict rows at a position behind the first one."""
    return rule.predict(proba, start=first + start, pos_label=pos_label)


def described(rule: R, metadata: RuleMetadata) -> R:
    """Return a copy of a rule with other metadata; what it decides by has been checked before."""
    out = copy(rule)
    vars(out)["metadata"] = metadata
    return out


def rule_input(kind: Any, ordinal_map: OrdinalMap | None, classes: tuple[NDArray[Any], ...]) -> Input:
    """Return what the numbers of rows are that a rule takes: its `input`, with the map of one score if it has one."""
    row_input = Input.of(kind)
    if ordinal_map is None:
        return row_input
    if not row_input.is_scores or [len(labels) for labels in classes] != [ordinal_map.n_classes]:
        raise InvalidParameter(
            "ordinal_map",
            f"be given for {argument('input', 'scores')} and one output only, and have its classes",
            f"{ordinal_map.n_classes} classes and {argument('input', row_input.kind)}",
        )
    return replace(row_input, graded=True, ordinal=ordinal_map)


def last_column(codes: IntArray, schema: Schema) -> IntArray:
    """Return codes in which abstentions are the last of D decisions, however few classes their output has."""
    if schema.abstain_label is None:
        return codes
    return np.where(codes >= schema.n_classes, schema.width, codes)


def same_label(label: Any, other: Any) -> bool:
    """Whether two labels agree in value and type."""
    return type(label) is type(other) and bool(label == other)


def same_classes(these: tuple[NDArray[Any], ...], others: tuple[NDArray[Any], ...]) -> bool:
    """Whether the labels of all outputs agree in value and type (1, 1.0 and True are three labels)."""
    if len(these) != len(others):
        return False
    if are_one(these) and are_one(others):
        these, others = these[:1], others[:1]
    for these_labels, other_labels in zip(these, others, strict=True):
        if these_labels is other_labels:
            continue
        a, b = python_labels(these_labels), python_labels(other_labels)
        if a != b or any(type(x) is not type(y) for x, y in zip(a, b, strict=True)):
            return False
    return True


def check_outputs(schema: Schema, link: TemperatureScaling | None, *, needs_link: bool = True) -> None:
    """Check what rules of every kind have in common: outputs, classes, names, and a link of as many."""
    distinct = distinct_objects(schema.classes)
    if not distinct or any(labels.ndim != 1 or len(labels) < 2 for labels in distinct):
        raise InvalidParameter("classes", "hold one array of at least 2 labels per output", "fewer")
    for labels in distinct:
        if len(set(labels.tolist())) < len(labels):
            raise InvalidParameter("classes", "be distinct within an output", labels.tolist())
    if not schema.multioutput and schema.n_outputs > 1:
        raise InvalidParameter("multioutput", "be True for several outputs", f"{schema.n_outputs} and False")
    if schema.abstain_label is not None:
        check_abstain_label(schema.abstain_label, schema.classes)
    if link is not None and link.bias.shape != (schema.n_outputs, schema.width):
        raise InvalidParameter(
            "link",
            f"have {schema.n_outputs} outputs and {schema.width} classes, as in classes",
            f"{link.n_outputs} and {link.n_classes}",
        )
    if schema.input.is_logits and (needs_link if link is None else not link.of_logits):
        raise InvalidParameter(
            "link",
            f"be a map of logits (floor=0) if {argument('input', schema.input.kind)}",
            "None" if link is None else f"a floor of {link.floor:g}",
        )
    if not schema.input.is_logits and link is not None and link.of_logits:
        raise InvalidParameter(
            "input", "be 'logits', 'log_proba' or 'scores' if link is a map of logits (floor=0)", "'probabilities'"
        )
    if schema.output_names is not None and len(schema.output_names) != schema.n_outputs:
        raise InvalidParameter(
            "output_names", f"have one name per output, {schema.n_outputs}", len(schema.output_names)
        )


def _checked_start(start: Any) -> int:
    if isinstance(start, bool) or not isinstance(start, (int, np.integer)) or start < 0:
        raise InvalidParameter("start", "be a row position from 0", repr(start))
    return int(start)
