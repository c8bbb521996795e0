"""Rows as they were passed, unread: the arguments about rows, and the wrappers that say what they mean.

`optimize`, `evaluate`, the estimators and the command line fill a `RowSpec`; `open.py` reads it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar, cast

import numpy as np

from ..core.errors import InvalidParameter, InvalidType, argument, entry_point, mention, shown
from ..core.rows import Rows
from ..core.schema import Schema
from .half_life import HalfLife

__all__ = ["Frequencies", "InTime", "Piece", "RowSpec", "RowValues", "Sensitive", "take_rows"]


T = TypeVar("T", bound="RowValues")


def take_rows(values: Any, rows: Any) -> Any:
    """Return the values of some rows, given by a mask, a slice or indices."""
    if hasattr(values, "iloc"):
        return values.iloc[rows]
    if isinstance(values, (list, tuple)):
        return [values[row] for row in np.arange(len(values))[rows].tolist()]
    return values.take(rows) if hasattr(values, "to_pydict") else values[rows]


class RowValues:
    """Base of dataclasses with a field of values by row, named by `by_row`, and fields about all of them."""

    by_row: ClassVar[str]

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the values: scikit-learn splits what has one by rows."""
        values = getattr(self, self.by_row)
        return tuple(values.shape) if hasattr(values, "shape") else (len(values),)

    def __getitem__(self: T, rows: Any) -> T:
        """Return the same of some rows."""
        rows = rows[0] if isinstance(rows, tuple) else rows
        return cast(T, replace(cast(Any, self), **{self.by_row: take_rows(getattr(self, self.by_row), rows)}))


@dataclass(frozen=True, eq=False)
class Frequencies(RowValues):
    """Sample weights that count rows: how many rows each row stands for.

    Can be passed as `sample_weight`. The rule is the one that the same weights give without it, which say how much a
    row matters; the standard errors of estimates for new rows differ.

    Parameters
    ----------
    weight : array-like of shape (N,)
        Whole numbers; for a :class:`metricwise.Table`, the name of a column.

    See Also
    --------
    metricwise.optimize : Find a rule.
    metricwise.evaluate : Evaluate a rule, with intervals that allow for the number of rows.

    Examples
    --------
    >>> import metricwise as mw
    >>> proba, y, counts = [0.2, 0.4, 0.7, 0.8], [0, 0, 1, 1], [30, 10, 10, 40]
    >>> rule = mw.WeightedRule.from_thresholds(0.75)
    >>> as_rows = mw.evaluate(rule, proba, y, "accuracy", sample_weight=mw.Frequencies(counts))["accuracy"]
    >>> as_weights = mw.evaluate(rule, proba, y, "accuracy", sample_weight=counts)["accuracy"]
    >>> as_rows.value.estimate == as_weights.value.estimate, as_rows.value.low > as_weights.value.low
    (True, True)
    """

    weight: Any

    by_row: ClassVar[str] = "weight"

    @entry_point("{class}")
    def __post_init__(self) -> None:
        if isinstance(self.weight, Frequencies):
            raise InvalidType("weight", "be the weights of rows", "a Frequencies")


@dataclass(frozen=True, eq=False)
class InTime(RowValues):
    """Observation times of rows and the length of their dependence, for the parameter `groups`.

    Parameters
    ----------
    time : array-like of shape (N,)
        When each row was observed, as numbers or dates.
    length : int, optional
        Rows further apart in time than this number of rows are taken to be independent of one another: stretches of so
        many neighbours are kept together in resamples and standard errors. It should be several times as long as
        dependence lasts. None: measured on the rows.
    half_life : float, timedelta or str, optional
        The age at which a row has half of the weight of the latest row, so that old rows count less: `sample_weight`
        is multiplied by ``0.5 ** ((latest - time) / half_life)``. A number in the unit of numeric times; for dates a
        timedelta of Python, NumPy or pandas, or text such as "30d", "12h" or "2w" (units: s, min, h, d, w). None: age
        does not matter. It cannot be combined with :class:`metricwise.Frequencies`.

    See Also
    --------
    metricwise.optimize : Find a rule, evaluated on time periods that it was not fitted to.
    metricwise.evaluate : Evaluate a rule, with intervals that allow for dependence.

    Notes
    -----
    With a half-life, the notes of the result give the effective number of rows, ``(sum w)^2 / sum w^2`` of the combined
    weights w of rows with labels: about three times the number of rows that are observed in a half-life. Below 300 they
    warn. The weights are for the rule and its evaluation. An estimator that is fitted as well is not given them,
    because models need more rows than rules: to weight these too, pass such weights as `sample_weight` instead.

    The length is measured by the spectrum of the influences of rows on the metric, and of the differences of labels
    and probabilities: the slow part is fitted by an autoregression of order 1 with noise, by Whittle's likelihood. It
    is at least the cube root of N and a 24th of N, because weak dependence that lasts cannot be told from none,
    and at most a fifth of N. Intervals have the quantiles of Student's distribution for the number of stretches.

    Examples
    --------
    >>> import numpy as np
    >>> import metricwise as mw
    >>> rng = np.random.default_rng(0)
    >>> proba = rng.beta(1, 3, 1000)
    >>> y = (rng.random(1000) < proba).astype(int)
    >>> rule = mw.WeightedRule.from_thresholds(0.35)
    >>> evaluation = mw.evaluate(rule, proba, y, "f1", groups=mw.InTime(np.arange(1000), length=20))
    >>> evaluation.notes[0]
    'Rows are assumed to depend on each other over at most 20 rows (as given): intervals are based on 50 periods.'

    Old rows count less:

    >>> days = np.datetime64("2024-01-01") + np.arange(1000) // 10
    >>> solution = mw.optimize(proba, y, "f1", groups=mw.InTime(days, half_life="30d"))
    >>> print(solution.notes[1].text)
    Weights of rows halve every 30 days: the effective number of rows is 709 of 1000.
    """

    time: Any
    length: int | None = None
    half_life: Any = None

    by_row: ClassVar[str] = "time"

    @entry_point("{class}")
    def __post_init__(self) -> None:
        length: Any = self.length
        is_whole = isinstance(length, (int, np.integer)) and not isinstance(length, bool)
        if length is not None and not (is_whole and length >= 1):
            raise InvalidParameter("length", "be a whole number of rows, at least 1", shown(length))
        if self.half_life is not None:
            HalfLife.of(self.half_life)


_UNKNOWN = ("refuse", "abstain", "blind")


@dataclass(frozen=True, eq=False)
class Sensitive(RowValues):
    """Sensitive groups of rows, whether a rule may use them, and how it decides rows of other groups.

    Can be passed as `sensitive_features` wherever a rule is fitted. What rows are predicted needs their groups only.

    Parameters
    ----------
    values : array-like of shape (N,) or (N, F)
        The group of every row, by name or number; several columns are combined. For a :class:`metricwise.Table`, the
        name of a column or a list of names.
    unknown : {"refuse", "abstain", "blind"}, default="refuse"
        What a rule by group does about rows whose group is missing, or was not among the rows that it was fitted to:
        raise an error; abstain, if the rule may; or decide by one rule for all such rows. That rule is fitted to the
        same rows without their groups, for the same metric and for the constraints that are not about groups. No
        constraint is promised for such rows.
    group_aware : bool, default=True
        Whether the rule may use the group of a row. If True, the rule has one loss per group: it is a
        :class:`metricwise.GroupedRule`, whose `predict` takes `sensitive_features`. If False, one rule serves all
        groups; it is found by a local search.

    See Also
    --------
    metricwise.optimize : Takes it as `sensitive_features`.
    metricwise.GroupedRule : The rule, with the rule for other groups in `other`.

    Examples
    --------
    >>> import numpy as np
    >>> import metricwise as mw
    >>> rng = np.random.default_rng(0)
    >>> group, p = np.repeat(["a", "b"], 200), rng.random(400)
    >>> y = (rng.random(400) < p).astype(int)
    >>> known = mw.Sensitive(group, unknown="blind")
    >>> rule = mw.optimize(p, y, "f1", subject_to="demographic_parity <= 0.3", sensitive_features=known).rule
    >>> rule.unknown, rule.predict([0.9, 0.1], sensitive_features=["c", None]).tolist()
    ('blind', [1, 0])
    """

    values: Any
    unknown: str = "refuse"
    group_aware: bool = True

    by_row: ClassVar[str] = "values"

    @entry_point("{class}")
    def __post_init__(self) -> None:
        if isinstance(self.values, Sensitive):
            raise InvalidType("values", "be the groups of rows", "a Sensitive")
        unknown: Any = self.unknown
        if not isinstance(unknown, str) or unknown not in _UNKNOWN:
            raise InvalidParameter("unknown", "be 'refuse', 'abstain' or 'blind'", shown(self.unknown))
        if not isinstance(self.group_aware, (bool, np.bool_)):
            raise InvalidParameter("group_aware", "be True or False", shown(self.group_aware))
        if unknown != "refuse" and not self.group_aware:
            raise InvalidParameter(
                "unknown",
                problem=(
                    f"{argument('unknown', unknown)} is only for rules that use the group, but "
                    f"{mention('group_aware')} is False, so the rule decides rows of any group"
                ),
                remedy="leave unknown out",
            )

    @classmethod
    def of(cls, values: Any) -> Sensitive:
        """Return `sensitive_features` as a Sensitive, with the defaults if it is an array."""
        return values if isinstance(values, Sensitive) else cls(values)

    def check(self, *, may_abstain: bool) -> None:
        """Refuse what cannot become of rows of unknown groups."""
        if self.unknown == "abstain" and not may_abstain:
            raise InvalidParameter(
                "unknown",
                problem=f"{argument('Sensitive.unknown', 'abstain')} needs a rule that may abstain",
                remedy=(
                    f"pass {argument('abstain', True)} or the cost of an abstention as well, or use "
                    f"{argument('Sensitive.unknown', 'blind')}"
                ),
            )


@dataclass(frozen=True, eq=False)
class RowSpec:
    """Arguments about rows, unread; see :func:`metricwise.optimize`.

    Parameters
    ----------
    proba, y, sample_weight, groups, sensitive_features, cost, classes, order
        As in :func:`metricwise.optimize`.
    pos_label : object, or list of M objects, optional
        The class that a single column of probabilities is of.
    normalize : bool, default=False
        Whether rows are divided by their sums, as some stored rules do.
    input : str or Input, default="probabilities"
        What the numbers of rows are.
    unlabelled : array-like, optional
        Numbers of rows without labels, in the form of `proba`.
    segments : array-like of shape (N,) or (N, F), optional
        The segment of every row.
    known_groups : Partition, optional
        The sensitive groups that a rule knows, among which those of the rows are looked up.
    """

    proba: Any
    y: Any = None
    sample_weight: Any = None
    groups: Any = None
    sensitive_features: Any = None
    cost: Any = None
    classes: Any = None
    order: Any = None
    pos_label: Any = None
    normalize: bool = False
    input: Any = "probabilities"
    unlabelled: Any = None
    segments: Any = None
    known_groups: Any = None

    @property
    def weight(self) -> Any:
        """The weights of rows, whatever they mean."""
        return self.sample_weight.weight if self.counts_rows else self.sample_weight

    @property
    def counts_rows(self) -> bool:
        """Whether the weights say how many rows each row stands for."""
        return isinstance(self.sample_weight, Frequencies)

    @property
    def time(self) -> InTime | None:
        """When rows were observed."""
        return self.groups if isinstance(self.groups, InTime) else None

    @property
    def clusters(self) -> Any:
        """Names of what rows belong to."""
        return None if isinstance(self.groups, InTime) else self.groups

    @property
    def sensitive(self) -> Sensitive | None:
        """The sensitive groups, with what the rule may do with them."""
        return None if self.sensitive_features is None else Sensitive.of(self.sensitive_features)

    def with_class(self, pos_label: Any) -> RowSpec:
        """Return the rows with the class of a single column, unless it is known."""
        return self if self.pos_label is not None or pos_label is None else replace(self, pos_label=pos_label)


class Piece(NamedTuple):
    """Some rows in memory, as `optimize` takes them; labels may have been read."""

    proba: Any
    y: Any = None
    weight: Any = None
    groups: Any = None
    partition: Any = None


class RowReader(Protocol):
    """Reads pieces of one whole, each as rows of the same outputs and classes."""

    @property
    def schema(self) -> Schema: ...

    @property
    def multioutput(self) -> bool | None: ...

    @property
    def partition(self) -> Any: ...

    @property
    def counts_rows(self) -> bool: ...

    def rows(self, piece: Piece, start: int = 0, *, check: bool = True) -> Rows:
        """Read a piece that begins at row `start`; `check` is False if its numbers have been checked before."""
        ...


ReadHead = Callable[
    [RowSpec], RowReader
]  # from a row of probabilities and the labels that occur to a reader of all rows
