"""Randomised rules: one of several weighted rules is drawn for each row and output.

A draw depends on the seed, the position of the row and the output only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..core.cached import cached_property
from ..core.errors import InvalidParameter, entry_point
from ..core.probabilities import Probabilities
from ..core.schema import Schema
from .base import (
    LossMixture,
    RuleOfParts,
    RuleRows,
    last_column,
    same_classes,
    same_label,
)
from .calibration import TemperatureScaling, recalibrated
from .class_shares import ShareShift
from .codec import SEED, WEIGHTS, decisions_field
from .describe import mixture_lines
from .metadata import NO_METADATA, RuleMetadata
from .weighted import WeightedRule
from .writer import RuleWriter

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
T = TypeVar("T")

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
    """Return a number in [0, 1) for each row and output, a function of (seed, start + row, output) alone."""
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
class MixtureRule(RuleOfParts):
    """Randomised rule that draws one of several weighted rules for each row and output.

    Two rules are equal if they decide alike; `metadata` is not compared.

    Parameters
    ----------
    rules : tuple of R WeightedRule
        The rules to draw from, with the same outputs and classes.
    weights : ndarray of shape (R,) or (M, R)
        Probability of each rule, for all outputs or for each.
    seed : int, default=0
        Seed from 0 to 2**64 - 1. A draw depends only on the seed, the position of the row and the output.
    metadata : RuleMetadata, or mapping
        As in WeightedRule.

    See Also
    --------
    metricwise.optimize : Find a mixture, with ``strategy=mw.Strategy(randomized=True)``.
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
    metadata: RuleMetadata = NO_METADATA
    kind: ClassVar[str] = "mixture"
    summary: ClassVar[str] = "A rule that draws one of several."
    fields: ClassVar = (decisions_field("rules", "One of these is drawn for each row and output."), WEIGHTS, SEED)

    @entry_point("{class}")
    def __post_init__(self) -> None:
        object.__setattr__(self, "rules", tuple(self.rules))
        object.__setattr__(self, "weights", np.asarray(self.weights, dtype=np.float64))
        object.__setattr__(self, "metadata", RuleMetadata.of(self.metadata))
        _check_rules(self.rules)
        _check_weights(self.weights, self.rules[0].n_outputs, len(self.rules))
        if not _is_whole(self.seed) or not 0 <= self.seed < 2**64:
            raise InvalidParameter("seed", "be an integer from 0 to 2**64 - 1", repr(self.seed))
        object.__setattr__(self, "seed", int(self.seed))

    # ------------------------------------------------------------------------------------------------- shapes

    @property
    def schema(self) -> Schema:  # type: ignore[override]
        """Outputs and classes, which all rules share."""
        return self.rules[0].schema

    @property
    def is_randomized(self) -> bool:
        """Whether some decisions are drawn."""
        return True

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

    def decide(self, rows: RuleRows) -> IntArray:
        """Draw and return the codes of the decisions about rows, of shape (N, M)."""
        result = np.empty((rows.proba.n_rows, self.n_outputs), dtype=np.intp)
        for chunk in rows.proba.chunks():
            part, choice = result[chunk], self._choices(rows.positions(chunk))
            for r, codes in enumerate(self._component_codes(rows.proba.take(chunk))):
                np.copyto(part, codes, where=choice == r)
        return result

    def distribute(self, rows: RuleRows) -> FloatArray:
        """Return the probability of each decision, (N, M, D): the shares of the rules that take it."""
        result = np.zeros((rows.proba.n_rows, self.n_outputs, self.schema.decision_width))
        weights = np.atleast_2d(self.weights)
        for chunk in rows.proba.chunks():
            part = result[chunk]
            row, output = np.ogrid[: len(part), : self.n_outputs]
            for r, codes in enumerate(self._component_codes(rows.proba.take(chunk))):
                part[row, output, last_column(codes, self.schema)] += weights[:, r]
        return result

    def calibrate(self, rows: RuleRows) -> Probabilities:
        """Return the probabilities behind the link that all rules share."""
        link = self.rules[0].link
        if any(rule.link != link for rule in self.rules):
            raise InvalidParameter(
                "",
                problem="the rules of this mixture recalibrate differently",
                remedy="use rule.rules[r].calibrated(proba) of one of them",
            )
        return recalibrated(link, rows.proba)

    def decide_each(self, rows: RuleRows, n_groups: int = 1) -> tuple[list[IntArray], FloatArray]:
        """Return the decisions of each rule, and their shares; see :meth:`.Rule.decide_each`."""
        shares = np.atleast_2d(self.weights)
        shares = shares if len(shares) == 1 else np.tile(shares, (n_groups, 1))
        return [np.tile(codes, n_groups) for codes in self._component_codes(rows.proba)], shares

    @property
    def is_flat(self) -> bool:
        """Whether the rule decides all rows by the same losses."""
        return True

    @property
    def shared_link(self) -> TemperatureScaling | None:
        """The link of all rules, if it is one."""
        link = self.rules[0].link
        return link if all(rule.link == link for rule in self.rules) else None

    def flatten(self) -> LossMixture:
        """Return the rules and their shares."""
        return LossMixture(self.rules, np.atleast_2d(self.weights))

    def map_rules(self, change: Callable[[WeightedRule], WeightedRule]) -> MixtureRule:
        """Return the mixture of the rules, each changed."""
        return replace(self, rules=tuple(map(change, self.rules)))

    def move(self, shift: ShareShift) -> MixtureRule:
        """Return the mixture after a shift of class shares."""
        return self.map_rules(lambda rule: rule.move(shift))

    def accept(self, writer: RuleWriter[T]) -> T:
        """Return what a writer writes of the rule."""
        return writer.mixture(self)

    def _component_codes(self, proba: Probabilities) -> Iterator[IntArray]:
        """Decisions of each rule."""
        for rule in self.rules:
            yield rule.decide(RuleRows(proba))

    def _choices(self, positions: IntArray) -> NDArray[Any]:
        """Index of the rule drawn for each row, by its position, and output."""
        drawn = uniforms_at(self.seed, positions, self.n_outputs)
        choice = np.zeros(drawn.shape, dtype=np.min_scalar_type(len(self.rules)))
        for edges in self.edges.T:
            choice += drawn >= edges
        return choice

    def decision_lines(self, metadata: RuleMetadata) -> list[str]:
        """Say what is drawn."""
        return mixture_lines(self.rules, self.weights, metadata)

    # ---------------------------------------------------------------------------------------- copies and files

    def named(
        self, schema: Schema, link: TemperatureScaling | None, metadata: RuleMetadata | Mapping[str, Any] | None = None
    ) -> MixtureRule:
        """Return a copy in the user's labels: solvers build rules whose labels are codes."""
        rules = tuple(rule.named(schema, link) for rule in self.rules)
        return MixtureRule(rules, self.weights, self.seed, RuleMetadata.of(metadata or {}))

    def _stored_values(self) -> dict[str, Any]:
        """Return the values of all fields of the document by name."""
        return {**super()._stored_values(), "rules": [(rule.loss, rule.link) for rule in self.rules]}

    @classmethod
    def _from_values(cls, values: dict[str, Any], metadata: RuleMetadata) -> MixtureRule:
        """Return the rule of the values of all fields."""
        decisions, weights, seed = (values.pop(name) for name in ("rules", "weights", "seed"))
        return cls(tuple(WeightedRule(loss, link=link, **values) for loss, link in decisions), weights, seed, metadata)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MixtureRule):
            return NotImplemented
        return self.seed == other.seed and np.array_equal(self.weights, other.weights) and self.rules == other.rules

    __hash__ = None  # type: ignore[assignment]  # holds arrays, compares by content


def _is_whole(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _check_rules(rules: tuple[WeightedRule, ...]) -> None:
    if not rules or not all(isinstance(rule, WeightedRule) for rule in rules):
        raise InvalidParameter("rules", "hold at least one WeightedRule", [type(r).__name__ for r in rules])
    first = rules[0]
    for r, rule in enumerate(rules[1:], start=1):
        if not same_classes(rule.classes, first.classes):
            raise InvalidParameter(
                "rules", f"share their classes, but those of rules[{r}] differ from those of rules[0]"
            )
        for name in ("multioutput", "normalize", "output_names", "abstain_label", "input", "ordinal_map"):
            value, other = getattr(rule, name), getattr(first, name)
            if value != other or (name == "abstain_label" and not same_label(value, other)):
                raise InvalidParameter(
                    "rules",
                    f"share {name}",
                    f"{getattr(first, name)!r} in rules[0] and {getattr(rule, name)!r} in rules[{r}]",
                )


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
