"""Rules that depend on the segment of a row: a common loss, and a calibration for each segment."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from .. import kernels
from ..core.cached import cached_property
from ..core.errors import InvalidParameter, entry_point
from ..core.schema import Schema
from ..data.sensitive import Groups
from .base import RuleRows
from .calibration import TemperatureScaling
from .codec import NAMES_SCHEMA, SEED, JsonField, array_of, nullable, read_names, read_numbers
from .metadata import NO_METADATA, RuleMetadata
from .mixture import MixtureRule
from .partitioned import (
    NAMES_OF_PARTS,
    PART_SCHEMA,
    FlatRule,
    PartitionedRule,
    decisions_of,
    flat_rule,
    part_lines,
    read_part,
    read_part_names,
    title_of,
    write_part,
    write_part_names,
)
from .segment_fit import SegmentLinks
from .weighted import WeightedRule
from .writer import RuleWriter

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
T = TypeVar("T")

_MAX_DESCRIBED = 5  # segments that are described, those furthest from the rule of all rows
_NUMBERS = array_of({"type": "number"})
_POSITIVE = array_of({"type": "number", "exclusiveMinimum": 0})

_FIELDS = (
    JsonField(
        "segments",
        {"description": "Name of each segment: a label for each column that defines segments.", **NAMES_OF_PARTS},
        read_part_names,
        write_part_names,
    ),
    JsonField(
        "features",
        {"description": "Names of the columns that define segments.", **NAMES_SCHEMA},
        nullable(read_names),
    ),
    JsonField(
        "common",
        {
            "description": "Rule of rows whose segment is none of these, or missing. Rows of a segment are decided by "
            "the same losses, behind a link with the temperature and the bias of the segment.",
            **PART_SCHEMA,
        },
        read_part,
        write_part,
    ),
    JsonField(
        "temperature",
        {"description": "Temperature of the link of each segment and output.", **array_of(_POSITIVE)},
        lambda value, name: read_numbers(value, name, 2),
    ),
    JsonField(
        "bias",
        {"description": "Bias of the link of each segment, output and class.", **array_of(array_of(_NUMBERS))},
        lambda value, name: read_numbers(value, name, 3),
    ),
    SEED,
)


@dataclass(frozen=True, eq=False)
class SegmentedRule(PartitionedRule):
    """Rule that recalibrates each row by its segment, and decides all by the same losses.

    Two rules are equal if they decide alike; `metadata` is not compared.

    Parameters
    ----------
    common : WeightedRule or MixtureRule
        The rule of rows whose segment is missing or is none of `segments`, with a link that the rules of a mixture
        share.
    segments : tuple of S objects
        Names of the segments, as in `segments` of :func:`metricwise.optimize`; tuples if that has several columns.
    temperature : ndarray of shape (S, M)
        Temperature of the link of each segment, which replaces that of `common`.
    bias : ndarray of shape (S, M, K)
        Biases of these links.
    features : tuple of str, optional
        Names of the columns, by which the columns of a data frame are selected.
    metadata : RuleMetadata, or mapping
        As in WeightedRule.

    See Also
    --------
    metricwise.optimize : Find a rule by segment, with `segments`.
    GroupedRule : Rules of sensitive groups, which satisfy constraints about these.

    Examples
    --------
    >>> import numpy as np
    >>> import metricwise as mw
    >>> from metricwise.core.losses import Loss
    >>> from metricwise.rules import TemperatureScaling
    >>> link = TemperatureScaling(np.ones(1), np.zeros((1, 2)))
    >>> common = mw.WeightedRule(Loss.argmax(2), (np.array([0, 1]),), link)
    >>> rule = mw.SegmentedRule(common, ("DE", "FR"), np.ones((2, 1)), np.array([[[0.0, 1.0]], [[1.0, 0.0]]]))
    >>> rule.predict([0.4, 0.4, 0.4], segments=["DE", "FR", None])
    array([1, 0, 0])
    >>> {name: round(float(part.threshold), 2) for name, part in rule.by_segment.items()}
    {'DE': 0.27, 'FR': 0.73}
    """

    common: FlatRule
    segments: tuple[Any, ...]
    temperature: FloatArray
    bias: FloatArray
    features: tuple[str, ...] | None = None
    metadata: RuleMetadata = NO_METADATA
    kind: ClassVar[str] = "segmented"
    summary: ClassVar[str] = "A rule for each segment of the rows: common losses, and a calibration of each segment."
    needs: ClassVar[frozenset[str]] = frozenset({"segments"})
    fields: ClassVar = _FIELDS

    @entry_point("{class}")
    def __post_init__(self) -> None:
        object.__setattr__(self, "segments", tuple(self.segments))
        object.__setattr__(self, "temperature", np.asarray(self.temperature, dtype=np.float64))
        object.__setattr__(self, "bias", np.asarray(self.bias, dtype=np.float64))
        object.__setattr__(self, "features", None if self.features is None else tuple(self.features))
        object.__setattr__(self, "metadata", RuleMetadata.of(self.metadata))
        _check(self)

    @classmethod
    def of(
        cls, rule: FlatRule, links: SegmentLinks, groups: Groups, base: kernels.LinkArrays | None = None
    ) -> SegmentedRule:
        """Return the rule of rows as they are, of one for rows that were recalibrated by segment.

        A link behind another is one link: ``T * (t * z + c) + C = (T * t) * z + (T * c + C)``. Logits lie behind their
        own map, `base`, which the second link includes.
        """
        link = rule.flatten().link
        scale, shift = np.ones(rule.n_outputs), np.zeros((rule.n_outputs, rule.width))
        if link is not None:
            scale, shift = link.temperature, link.bias
        if base is not None:
            scale = scale / base.temperature
            shift = shift - scale[:, None] * base.bias
        common = links.common
        composed = TemperatureScaling(scale * common.temperature, scale[:, None] * common.bias + shift, common.floor)
        bias = scale[:, None] * links.bias + shift
        rule = with_link(rule, composed)
        metadata = rule.metadata
        bare = replace(rule, metadata=NO_METADATA)
        return cls(bare, groups.names, scale * links.temperature, bias, groups.features, metadata)

    # ------------------------------------------------------------------------------------------------- shapes

    @property
    def schema(self) -> Schema:  # type: ignore[override]
        """Outputs and classes."""
        return self.common.schema

    @property
    def is_randomized(self) -> bool:
        """Whether decisions are drawn."""
        return self.common.is_randomized

    @property
    def seed(self) -> int:
        """Seed of a mixture; 0 without any."""
        return self.common.seed if isinstance(self.common, MixtureRule) else 0

    @property
    def known(self) -> Groups:
        """The segments of the rule."""
        return Groups(self.segments, self.features, "segments")

    @property
    def groups(self) -> tuple[Any, ...]:
        """Names of the segments."""
        return self.segments

    @property
    def other(self) -> FlatRule:
        """The rule of other segments."""
        return self.common

    @property
    def rules(self) -> tuple[FlatRule, ...]:
        """The rule of each segment."""
        return self.parts[:-1]

    @cached_property
    def parts(self) -> tuple[FlatRule, ...]:
        """The rule of each segment, and that of other segments behind them."""
        floor = self._link.floor
        links = [TemperatureScaling(t, c, floor) for t, c in zip(self.temperature, self.bias, strict=True)]
        return (*(with_link(self.common, link) for link in links), self.common)

    @property
    def by_segment(self) -> dict[Any, FlatRule]:
        """The rule of each segment by its name."""
        return dict(zip(self.segments, self.rules, strict=True))

    @property
    def _link(self) -> TemperatureScaling:
        link = self.common.flatten().link
        assert link is not None
        return link

    # ---------------------------------------------------------------------------------------------- decisions

    @property
    def shared_link(self) -> None:
        """None: links differ by segment."""
        return None

    def decide_each(self, rows: RuleRows, n_groups: int = 1) -> tuple[list[IntArray], FloatArray]:
        """Return the decisions of each rule that is drawn from, and their shares; see :meth:`.Rule.decide_each`."""
        mixture = self.common.flatten()
        codes = np.empty((len(mixture.rules), rows.proba.n_rows, self.n_outputs), dtype=np.intp)
        for rule, places in self._by_part(rows):
            some = rows.take(places)
            for r, component in enumerate(rule.flatten().rules):
                codes[r, places] = component.decide(some)
        shares = mixture.shares if len(mixture.shares) == 1 else np.tile(mixture.shares, (n_groups, 1))
        return [np.tile(decided, n_groups) for decided in codes], shares

    def accept(self, writer: RuleWriter[T]) -> T:
        """Return what a writer writes of the rule: as of a rule by group, with one for other groups."""
        return writer.grouped(self)

    def decision_lines(self, metadata: RuleMetadata) -> list[str]:
        """Say what the rules of the segments decide that differ most from the common one, and the common one."""
        n_segments = len(self.segments)
        lines = [
            f"A rule for each of {n_segments} segments, which share their losses and differ in their calibration"
            + (f"; the {_MAX_DESCRIBED} that differ most:" if n_segments > _MAX_DESCRIBED else ".")
        ]
        for place in self.most_different(_MAX_DESCRIBED):
            lines += [f"In segment {title_of(self.segments[place])}:", *part_lines(self.parts[place], metadata)]
        return [*lines, "In any other segment:", *part_lines(self.common, metadata)]

    def most_different(self, n_segments: int) -> list[int]:
        """Return the places of at most so many segments whose links differ most from the common one, in order."""
        link = self._link
        temperature_distance = np.abs(np.log(self.temperature) - np.log(link.temperature)).max(axis=1)
        distance = np.abs(self.bias - link.bias).max(axis=(1, 2)) + temperature_distance
        return sorted(np.argsort(-distance, kind="stable")[:n_segments].tolist())

    # ---------------------------------------------------------------------------------------- copies and files

    def _stored_values(self) -> dict[str, Any]:
        """Return the values of all fields of the document by name."""
        return {
            **self._shared_values(),
            "segments": self.segments,
            "features": self.features,
            "common": decisions_of(self.common),
            "temperature": self.temperature,
            "bias": self.bias,
            "seed": self.seed,
        }

    @classmethod
    def _from_values(cls, values: dict[str, Any], metadata: RuleMetadata) -> SegmentedRule:
        """Return the rule of the values of all fields."""
        segments, features, part, temperature, bias, seed = (values.pop(field.name) for field in _FIELDS)
        return cls(flat_rule(part, values, seed), segments, temperature, bias, features, metadata)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SegmentedRule):
            return NotImplemented
        same = (self.segments, self.features, self.common) == (other.segments, other.features, other.common)
        return same and np.array_equal(self.temperature, other.temperature) and np.array_equal(self.bias, other.bias)

    __hash__ = None  # type: ignore[assignment]  # holds arrays, compares by content


def with_link(rule: FlatRule, link: TemperatureScaling) -> FlatRule:
    """Return a rule behind another link."""
    return rule.map_rules(lambda part: replace(part, link=link))


def _check(rule: SegmentedRule) -> None:
    if not isinstance(rule.common, (WeightedRule, MixtureRule)):
        raise InvalidParameter("common", "be a WeightedRule or a MixtureRule", type(rule.common).__name__)
    links = [part.link for part in rule.common.flatten().rules]
    if links[0] is None or any(link != links[0] for link in links):
        raise InvalidParameter(
            "common", "have a link, which all rules of a mixture share", "none" if links[0] is None else "several"
        )
    names = rule.segments
    if not names or len(set(names)) < len(names):
        raise InvalidParameter("segments", "be distinct names", list(names[:10]))
    sizes = {len(name) if isinstance(name, tuple) else 1 for name in names}
    if len(sizes) > 1 or (rule.features is not None and len(rule.features) not in sizes):
        raise InvalidParameter("segments", "all have one label per feature", f"{names[:10]} and {rule.features!r}")
    shape = (len(names), rule.n_outputs)
    for name, values, expected in (("temperature", rule.temperature, shape), ("bias", rule.bias, (*shape, rule.width))):
        if values.shape != expected:
            raise InvalidParameter(name, f"have shape {expected}, by segment", values.shape)
    # The checks of a link hold for all segments at once.
    TemperatureScaling(rule.temperature.reshape(-1), rule.bias.reshape(-1, rule.width), rule._link.floor)
