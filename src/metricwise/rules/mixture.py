"""Randomised rules: for each row and output, one of several weighted rules is drawn.

Owns the draw, which depends on the seed, the row's position and the output only, and the exact class distribution.
Must not know why a mixture is wanted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InvalidParameter, entry_point
from ..data import Probabilities, Schema, decode, is_lazy
from . import serialize
from .description import describe_mixture
from .lazy import batches_of, predict_lazily
from .link import Link, recalibrated, shaped_like
from .stored import StoredRule
from .weighted import (
    WeightedRule,
    decision_to_dict,
    last_column,
    rule_from_fields,
    same_classes,
    same_label,
    shared_from_dict,
    shared_to_dict,
)

__all__ = ["MixtureRule", "uniforms"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

_FIELDS = ("classes", "multioutput", "normalize", "output_names", "rules", "weights", "seed", "facts")
_OPTIONAL = ("abstain_label",)
_SUM_TOL = 1e-9

# SplitMix64 (Steele, Lea, Flood 2014): an odd step of full period, and a mixer that passes BigCrush.
_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)


def _mixed(state: NDArray[np.uint64]) -> NDArray[np.uint64]:
    state = (state ^ (state >> np.uint64(30))) * _FIRST
    state = (state ^ (state >> np.uint64(27))) * _SECOND
    return state ^ (state >> np.uint64(31))


def uniforms(seed: int, start: int, n_rows: int, n_outputs: int) -> FloatArray:
    """Return a number in [0, 1) for each row and output, a function of (seed, start + row, output) alone.

    Returns
    -------
    ndarray of shape (n_rows, n_outputs)

    Examples
    --------
    >>> import numpy as np
    >>> from metricwise.rules.mixture import uniforms
    >>> np.array_equal(uniforms(7, 2, 3, 2), uniforms(7, 0, 5, 2)[2:])
    True
    """
    return uniforms_at(seed, np.arange(start, start + n_rows, dtype=np.uint64), n_outputs)


def uniforms_at(seed: int, positions: NDArray[Any], n_outputs: int) -> FloatArray:
    """Return the same for rows at positions (N,), of shape (N, n_outputs)."""
    # The state of the generator is a hash of the seed, moved on by the row, hashed, moved on by the output, hashed.
    # Array arithmetic on uint64 wraps silently, which is what is meant.
    origin = _mixed(np.array([seed], dtype=np.uint64) + _STEP)
    rows = _mixed(origin + positions.astype(np.uint64) * _STEP)
    bits = _mixed(rows[:, None] + np.arange(1, n_outputs + 1, dtype=np.uint64) * _STEP)
    return (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53


@dataclass(frozen=True, eq=False)
class MixtureRule(StoredRule):
    """Randomised rule that draws one of several weighted rules for each row and output.

    Two rules are equal if they decide alike; `facts` are not compared.

    Parameters
    ----------
    rules : tuple of R WeightedRule
        The rules to draw from, with the same outputs and classes.
    weights : ndarray of shape (R,) or (M, R)
        Probability of each rule, for all outputs or for each.
    seed : int, default=0
        Seed from 0 to 2**64 - 1. A draw depends only on the seed, the position of the row and the output.
    facts : mapping
        As in WeightedRule.

    See Also
    --------
    metricwise.optimize : Find a mixture, with ``randomized=True``.
    WeightedRule : A deterministic rule.

    Examples
    --------
    >>> import numpy as np
    >>> import metricwise as mw
    >>> from metricwise.core.losses import Loss
    >>> from metricwise.rules import anonymous_rule
    >>> never, always = [[0, 1], [0, 1]], [[1, 0], [1, 0]]
    >>> never, always = (anonymous_rule(Loss.from_tensor(loss), np.array([2])) for loss in (never, always))
    >>> rule = mw.MixtureRule((never, always), np.array([0.75, 0.25]))
    >>> rule.distribution([0.3, 0.9])
    array([[0.75, 0.25],
           [0.75, 0.25]])
    >>> rule.predict([0.3, 0.9, 0.5, 0.1, 0.2])
    array([0, 0, 0, 0, 1])
    """

    rules: tuple[WeightedRule, ...]
    weights: FloatArray
    seed: int = 0
    facts: Mapping[str, Any] = field(default_factory=dict)

    @entry_point("{class}")
    def __post_init__(self) -> None:
        object.__setattr__(self, "rules", tuple(self.rules))
        object.__setattr__(self, "weights", np.asarray(self.weights, dtype=np.float64))
        object.__setattr__(self, "facts", dict(self.facts))
        _check_rules(self.rules)
        _check_weights(self.weights, self.rules[0].n_outputs, len(self.rules))
        if not _is_whole(self.seed) or not 0 <= self.seed < 2**64:
            raise InvalidParameter("seed", "be an integer from 0 to 2**64 - 1", repr(self.seed))
        object.__setattr__(self, "seed", int(self.seed))

    # ------------------------------------------------------------------------------------------------- shapes

    @property
    def schema(self) -> Schema:
        """Outputs and classes, which all rules share."""
        return self.rules[0].schema

    @property
    def classes(self) -> tuple[NDArray[Any], ...]:
        """Label of each class of each output."""
        return self.schema.classes

    @property
    def abstain_label(self) -> Any:
        """Label that is predicted if the rule abstains; None: it never does."""
        return self.schema.abstain_label

    @property
    def multioutput(self) -> bool:
        """Whether predictions are 2-D."""
        return self.schema.multioutput

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

    @cached_property
    def edges(self) -> FloatArray:
        """Where in [0, 1) the share of each rule but the last ends, of shape (M, R - 1).

        A row whose number, see :func:`uniforms`, is at least r of them is decided by rule r.
        """
        weights = np.atleast_2d(self.weights)
        edges = np.cumsum(weights, axis=1)
        # Rounding must not leave a sliver at the end to rules of weight zero.
        left = np.cumsum(weights[:, ::-1], axis=1)[:, ::-1]
        edges[:, :-1][left[:, 1:] == 0] = 1.0
        return np.broadcast_to(edges[:, :-1], (self.n_outputs, len(self.rules) - 1))

    # ---------------------------------------------------------------------------------------------- decisions

    @entry_point()
    def predict(self, proba: Any, start: int = 0, *, pos_label: Any = None) -> NDArray[Any]:
        """Draw and predict labels.

        Parameters
        ----------
        proba : array-like
            As in WeightedRule.predict.
        start : int, default=0
            Position of the first row, so that rows predicted in chunks get the same draws as in one call.
        pos_label : object, or list of M objects, optional
            As in WeightedRule.predict.

        Returns
        -------
        ndarray of shape (N,), or (N, M) if `multioutput`; a Dask collection if proba is one
        """
        if is_lazy(proba):
            draw = partial(self._draw_from, int(start), pos_label)
            return predict_lazily(draw, self.schema, proba, draws=True)  # type: ignore[no-any-return]
        parts = batches_of(proba)
        if parts is not None:
            return np.concatenate([self.predict(part, start + at, pos_label=pos_label) for at, part in parts])
        read = self.rules[0].read(proba, self.facts, pos_label)
        labels = decode(self.decide(read, start), self.schema.decisions)
        return labels if self.multioutput else labels[:, 0]

    def _draw_from(self, first: int, pos_label: Any, proba: Any, start: int) -> NDArray[Any]:
        """Predict rows at a position behind the first one."""
        return self.predict(proba, first + start, pos_label=pos_label)

    @entry_point()
    def distribution(self, proba: Any, *, pos_label: Any = None) -> FloatArray:
        """Return the exact probability with which each class is predicted; nothing is drawn.

        A rule that may abstain has an additional last column for abstentions.

        Parameters
        ----------
        proba, pos_label
            As in `predict`.

        Returns
        -------
        ndarray of shape (N, K), or (N, M, K) if `multioutput`
        """
        result = self.distribution_of(self.rules[0].read(proba, self.facts, pos_label))
        return result if self.multioutput else result[:, 0]

    def distribution_of(self, proba: Probabilities) -> FloatArray:
        """Return the same of shape (N, M, K) for probabilities that have been read already."""
        result = np.zeros((proba.n_rows, self.n_outputs, self.schema.decision_width))
        weights = np.atleast_2d(self.weights)
        for rows in proba.chunks():
            part = result[rows]
            row, output = np.ogrid[: len(part), : self.n_outputs]
            for r, codes in enumerate(self._component_codes(proba.take(rows))):
                part[row, output, last_column(codes, self.schema)] += weights[:, r]
        return result

    @entry_point()
    def calibrated(self, proba: Any, *, pos_label: Any = None) -> NDArray[Any] | list[NDArray[Any]]:
        """Return the probabilities behind the recalibration of the rule, as :meth:`WeightedRule.calibrated` does.

        Parameters
        ----------
        proba, pos_label
            As in `predict`.

        Returns
        -------
        ndarray of the shape of proba, or list of M such
        """
        read = self.rules[0].read(proba, self.facts, pos_label)
        return shaped_like(proba, self.calibrated_of(read), self.multioutput)

    @entry_point("{class}.calibrated")
    def calibrated_of(self, proba: Probabilities) -> Probabilities:
        """Return the same for probabilities that have been read already."""
        link = self.rules[0].link
        if any(rule.link != link for rule in self.rules):
            raise InvalidParameter(
                "rules",
                problem="the rules of this mixture recalibrate differently",
                remedy="use rule.rules[r].calibrated(proba) of one of them",
            )
        return recalibrated(link, proba)

    @entry_point("{class}.predict")
    def decide(self, proba: Probabilities, start: int | IntArray = 0) -> IntArray:
        """Draw and predict codes of shape (N, M) for probabilities that have been read already.

        Parameters
        ----------
        start : int or ndarray of shape (N,)
            Position of the first row, or of each.
        """
        if not isinstance(start, np.ndarray) and (not _is_whole(start) or start < 0):
            raise InvalidParameter("start", "be a row position from 0", repr(start))
        result = np.empty((proba.n_rows, self.n_outputs), dtype=np.intp)
        for rows in proba.chunks():
            part = result[rows]
            if isinstance(start, np.ndarray):
                choice = self._choices(start[rows])
            else:
                choice = self._choices(np.arange(len(part)) + (int(start) + rows.start))
            for r, codes in enumerate(self._component_codes(proba.take(rows))):
                np.copyto(part, codes, where=choice == r)
        return result

    def _component_codes(self, proba: Probabilities) -> Iterator[IntArray]:
        """Decisions of each rule."""
        for rule in self.rules:
            yield rule.decide(proba)

    def _choices(self, positions: IntArray) -> NDArray[Any]:
        """Index of the rule drawn for each row, by its position, and output."""
        drawn = uniforms_at(self.seed, positions, self.n_outputs)
        choice = np.zeros(drawn.shape, dtype=np.min_scalar_type(len(self.rules)))
        for edges in self.edges.T:
            choice += drawn >= edges
        return choice

    def describe(self) -> str:
        """Describe the rule in a few lines of plain English."""
        return describe_mixture(self.rules, self.weights, self.facts)

    # ---------------------------------------------------------------------------------------- copies and files

    def named(self, schema: Schema, link: Link | None, facts: Mapping[str, Any]) -> MixtureRule:
        """Return a copy in the user's labels: solvers build rules whose labels are codes."""
        return MixtureRule(tuple(rule.named(schema, link, {}) for rule in self.rules), self.weights, self.seed, facts)

    @entry_point()
    def to_dict(self) -> dict[str, Any]:
        """Return the rule as a dict of JSON types; `from_dict` restores it exactly."""
        return {
            "format": serialize.FORMAT,
            "version": serialize.VERSION,
            "kind": "mixture",
            **shared_to_dict(self.rules[0]),
            "rules": [decision_to_dict(rule) for rule in self.rules],
            "weights": serialize.plain(self.weights, "weights"),
            "seed": self.seed,
            "facts": serialize.plain(self.facts, "facts"),
        }

    @classmethod
    @entry_point()
    def from_dict(cls, document: Mapping[str, Any]) -> MixtureRule:
        """Return the rule from a dict written by `to_dict`; every field is checked."""
        read = serialize.read_object(document, "the rule")
        serialize.check_fields(read, "mixture", _FIELDS, _OPTIONAL)
        shared = shared_from_dict(read)
        parts = serialize.read_list(read["rules"], "rules")
        for r, part in enumerate(parts):
            serialize.check_keys(serialize.read_object(part, f"rules[{r}]"), ("loss", "link"), f"rules[{r}]")
        rules = tuple(rule_from_fields(shared, part, {}) for part in parts)
        value = serialize.read_list(read["weights"], "weights")
        weights = serialize.read_numbers(value, "weights", 2 if isinstance(value[0], list) else 1)
        seed = serialize.read_int(read["seed"], "seed")
        return cls(rules, weights, seed, serialize.read_facts(read["facts"]))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MixtureRule):
            return NotImplemented
        return self.seed == other.seed and np.array_equal(self.weights, other.weights) and self.rules == other.rules

    __hash__ = None  # type: ignore[assignment]  # holds arrays, compares by content


def _is_whole(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


@entry_point("MixtureRule")
def _check_rules(rules: tuple[WeightedRule, ...]) -> None:
    if not rules or not all(isinstance(rule, WeightedRule) for rule in rules):
        raise InvalidParameter("rules", "hold at least one WeightedRule", [type(r).__name__ for r in rules])
    first = rules[0]
    for r, rule in enumerate(rules[1:], start=1):
        if not same_classes(rule.classes, first.classes):
            raise InvalidParameter(
                "rules", f"share their classes, but those of rules[{r}] differ from those of rules[0]"
            )
        for name in ("multioutput", "normalize", "output_names", "abstain_label"):
            one, other = getattr(rule, name), getattr(first, name)
            if one != other or (name == "abstain_label" and not same_label(one, other)):
                raise InvalidParameter(
                    "rules",
                    f"share {name}",
                    f"{getattr(first, name)!r} in rules[0] and {getattr(rule, name)!r} in rules[{r}]",
                )


@entry_point("MixtureRule")
def _check_weights(weights: FloatArray, n_outputs: int, n_rules: int) -> None:
    if weights.shape not in ((n_rules,), (n_outputs, n_rules)):
        raise InvalidParameter(
            "weights",
            f"have shape ({n_rules},) or ({n_outputs}, {n_rules}), one per rule or one per output and rule",
            weights.shape,
        )
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise InvalidParameter("weights", "be non-negative and finite", f"{weights.min():.6g}")
    total = weights.sum(axis=-1)
    if (np.abs(total - 1) > _SUM_TOL).any():
        worst = float(total.ravel()[np.abs(total - 1).argmax()])
        raise InvalidParameter("weights", "sum to 1", f"{worst:.10g}")
