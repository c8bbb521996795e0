"""What a database counts itself, as SQL: labels, rows that are no probabilities, decisions, and samples of rows.

Scores are those of the kernels: products, sums in the order of the classes, and comparisons, in double precision. Must
not know connections.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import shown
from ...core.losses import Loss
from ...kernels import LinkArrays

__all__ = [
    "CountStatement",
    "CountedColumns",
    "LabelStatement",
    "SampleStatement",
    "Statement",
    "distinct_statement",
    "has_literal",
    "head_statement",
    "positions_statement",
    "quoted",
]

FloatArray = NDArray[np.float64]

_MAX_CELLS = 1 << 12  # combinations of decisions that a statement may count
_MAX_CLASSES = 64  # of one statement; some databases accept at most a hundred arguments
_LARGEST_EXPONENT = 700.0  # exp(-700) is a normal number; smaller powers are an error in PostgreSQL
_SMALLEST = 1e-200  # of probabilities; a product that vanishes is an error in PostgreSQL
_NAME = "metricwise_"  # that names of what is computed begin with, so that they are not those of columns
_HALF = 1 << 63  # what makes a signed number of 64 bits an unsigned one


@dataclass(frozen=True)
class Statement:
    """A statement, and the names of what it selects: which are read as numbers."""

    text: str
    columns: Mapping[str, bool]


@dataclass(frozen=True)
class CountedColumns:
    """Columns of one output: probabilities in the order of the K classes or of the second of two, label and weight.

    `single`: whether probabilities are in single precision, products of which with other numbers do not vanish.
    """

    proba: Sequence[str]
    label: str | None
    weight: str | None
    single: bool = False

    @property
    def n_classes(self) -> int:
        """K."""
        return max(len(self.proba), 2)

    @property
    def observed(self) -> str:
        """The condition of rows that have a label."""
        return "" if self.label is None else f" WHERE {quoted(self.label)} IS NOT NULL"


def quoted(name: str) -> str:
    """Return the name of a column as SQL has it."""
    return '"' + name.replace('"', '""') + '"'


# --------------------------------------------------------------------------------------------------------------- rows


def head_statement(rows: str, columns: Mapping[str, bool], n_rows: int) -> Statement:
    """Return the statement that selects the first rows of a subquery."""
    return Statement(f"SELECT {_list(map(quoted, columns))} FROM {rows} LIMIT {n_rows}", columns)


def positions_statement(rows: str, columns: Mapping[str, bool], positions: Iterable[int]) -> Statement:
    """Return the statement that selects the rows at ascending positions, as far as the subquery orders its rows."""
    names, place = _list(map(quoted, columns)), f"{_NAME}place"
    text = (
        f"SELECT {names} FROM (SELECT {names}, ROW_NUMBER() OVER () - 1 AS {place} FROM {rows}) {_NAME}numbered "
        f"WHERE {place} IN (SELECT UNNEST(ARRAY[{_list(map(str, positions))}])) ORDER BY {place}"
    )
    return Statement(text, columns)


@dataclass(frozen=True)
class SampleStatement:
    """The statement that selects rows of low keys, PostgreSQL's hash of their number, with the numbers and keys."""

    statement: Statement

    place, key = f"{_NAME}place", f"{_NAME}key"

    @classmethod
    def of(
        cls,
        rows: str,
        columns: Mapping[str, bool],
        counted: CountedColumns,
        classes: Sequence[Any],
        below: NDArray[np.uint64],
        seed: int,
    ) -> SampleStatement:
        """Return the statement.

        Parameters
        ----------
        rows : str
            A subquery.
        columns : mapping of str to bool
            What is selected.
        counted : CountedColumns
        classes : sequence of K objects
            That have literals.
        below : ndarray of shape (K + 1,)
            The largest key of the rows of each class, those first that show none: without a label, or of weight 0.
            Without labels, all rows are of class 0.
        seed : int
        """
        keys = [str(int(key) - _HALF) for key in below]
        limit = f"CAST({keys[1]} AS BIGINT)"
        if counted.label is not None:
            literals = list(map(_literal, classes))
            label = quoted(counted.label)
            unshown = (
                f"{label} IS NULL" if counted.weight is None else f"{label} IS NULL OR {quoted(counted.weight)} <= 0"
            )
            cases = " ".join(f"WHEN {label} = {name} THEN {key}" for name, key in zip(literals, keys[1:], strict=True))
            limit = f"CASE WHEN {unshown} THEN {keys[0]} {cases} ELSE {keys[0]} END"
        names = _list(map(quoted, columns))
        text = (
            f"SELECT {names}, {cls.place}, {cls.key} "
            f"FROM (SELECT *, HASHINT8EXTENDED({cls.place}, {seed}) AS {cls.key} "
            f"FROM (SELECT {names}, ROW_NUMBER() OVER () - 1 AS {cls.place} FROM {rows}) {_NAME}numbered) {_NAME}keyed "
            f"WHERE {cls.key} <= {limit}"
        )
        return cls(Statement(text, {**columns, cls.place: False, cls.key: False}))

    def read(self, batch: Any) -> tuple[NDArray[np.intp], NDArray[np.uint64]]:
        """Return the numbers and keys of the rows of a batch."""
        keys = batch.column(self.key).to_numpy().astype(np.int64).view(np.uint64)
        return batch.column(self.place).to_numpy().astype(np.intp), keys ^ np.uint64(_HALF)


def has_literal(label: Any) -> bool:
    """Whether a label can be written in SQL: text, a whole number, or a Boolean."""
    return isinstance(label, (bool, int)) or (isinstance(label, str) and "\\" not in label)


def _literal(label: Any) -> str:
    return "'" + label.replace("'", "''") + "'" if isinstance(label, str) else str(label).upper()


# ------------------------------------------------------------------------------------------------------------- labels


def distinct_statement(rows: str, name: str | None, at_most: int) -> Statement:
    """Return the statement that selects the distinct values of a column, with their numbers of rows; None: all rows."""
    count = f"{_NAME}n"
    if name is None:
        return Statement(f"SELECT COUNT(*) AS {count} FROM {rows}", {count: True})
    label = quoted(name)
    text = f"SELECT {label}, COUNT(*) AS {count} FROM {rows} GROUP BY {label} LIMIT {at_most}"
    return Statement(text, {name: False, count: True})


@dataclass(frozen=True)
class LabelStatement:
    """The statement that counts rows by label, weighs them, and counts those that are not probability distributions.

    Without a label, all rows are counted together.
    """

    statement: Statement
    label: str | None

    count, weight, present, wrong = (f"{_NAME}{name}" for name in ("n", "w", "present", "wrong"))

    @classmethod
    def of(cls, rows: str, columns: CountedColumns, tolerance: float) -> LabelStatement:
        """Return the statement for rows, a subquery, whose probabilities sum to 1 up to a tolerance."""
        eta = [_double(name) for name in columns.proba]
        right = [f"{share} >= 0 AND {share} <= 2" for share in eta]
        total = f"ABS({' + '.join(eta)} - 1) <= {tolerance!r}"
        right.append(f"{eta[0]} <= 1" if len(eta) == 1 else total)  # NaN is above all numbers
        keys = [] if columns.label is None else [quoted(columns.label)]
        sums = {cls.weight: "COUNT(*)", cls.present: "COUNT(*)"}
        if columns.weight is not None:
            weight = _double(columns.weight)
            right.append(f"{weight} >= 0 AND {weight} < CAST('Infinity' AS DOUBLE PRECISION)")
            sums = {cls.weight: f"SUM({weight})", cls.present: f"COUNT(*) FILTER (WHERE {weight} > 0)"}
        sums = {
            cls.count: "COUNT(*)", **sums, cls.wrong: f"COUNT(*) FILTER (WHERE ({' AND '.join(right)}) IS NOT TRUE)"
        }  # fmt: skip
        named = [f"{text} AS {name}" for name, text in sums.items()]
        text = f"SELECT {_list([*keys, *named])} FROM {rows}" + (f" GROUP BY {keys[0]}" if keys else "")
        label = {} if columns.label is None else {columns.label: False}
        return cls(Statement(text, {**label, **dict.fromkeys(sums, True)}), columns.label)

    def read(self, batches: Iterable[Any], classes: Sequence[Any]) -> tuple[FloatArray, FloatArray, int, int]:
        """Return weights and rows of positive weight by class, (1, K), all rows, and those that are wrong."""
        counts = np.zeros((2, 1, len(classes)))
        n_rows = n_wrong = 0
        for code, row in _by_class(batches, self.label, classes):
            n_rows, n_wrong = n_rows + int(row[self.count]), n_wrong + int(row[self.wrong])
            if code is not None:
                counts[:, 0, code] += [float(row[self.weight] or 0), float(row[self.present])]
        return counts[0], counts[1], n_rows, n_wrong


def _by_class(batches: Iterable[Any], label: str | None, classes: Sequence[Any]) -> Iterator[tuple[int | None, Any]]:
    """Yield the rows of batches with the codes of their labels, None of those that are missing."""
    place = {name: code for code, name in enumerate(classes)}
    for row in (row for batch in batches for row in batch.to_pylist()):
        name = None if label is None else row[label]
        if name is None or name != name:
            yield None, row
        elif name in place:
            yield place[name], row
        else:
            raise RuntimeError(f"the query: the labels must be the same in every pass, got the new one {shown(name)}.")


# ---------------------------------------------------------------------------------------------------------- decisions


@dataclass(frozen=True)
class CountStatement:
    """A statement that counts losses.

    Rows are grouped by label and by the decisions of all losses, which are the digits of one number in base K. Sums are
    the number or weight of rows, and expected numbers of all classes.
    """

    statement: Statement
    label: str | None
    n_classes: int
    n_losses: int
    expected: bool

    code, count = f"{_NAME}code", f"{_NAME}n"

    @classmethod
    def of(
        cls,
        rows: str,
        columns: CountedColumns,
        losses: Sequence[Loss],
        *,
        expected: bool,
        link: LinkArrays | None = None,
        linked: bool = True,
    ) -> list[CountStatement] | None:
        """Return statements for rows, a subquery, that together count all losses; None where there are none.

        Parameters
        ----------
        rows : str
        columns : CountedColumns
        losses : sequence of R Loss
        expected : bool
            Whether probabilities are counted, beside labels if there are any.
        link : LinkArrays, optional
            Of probabilities, which are counted behind it.
        linked : bool, default=True
            Whether they are decided behind it as well.
        """
        k = columns.n_classes
        if k > _MAX_CLASSES or (link is not None and not _Layers.can_link(link, k)):
            return None
        size = max(1, int(math.log(_MAX_CELLS, k) + 1e-9))
        layers = _Layers.of(rows, columns, link, linked)
        return [
            cls._of(layers, columns, losses[start : start + size], expected) for start in range(0, len(losses), size)
        ]

    @classmethod
    def _of(cls, layers: _Layers, columns: CountedColumns, losses: Sequence[Loss], expected: bool) -> CountStatement:
        k, worths = columns.n_classes, [layers.worths(loss) for loss in losses]
        source, code = layers.text, ""
        simple = all(loss.is_diagonal and not np.any(loss.arrays[1]) for loss in losses)
        if not simple:  # long sums are computed once
            named = {f"{_NAME}v{r}_{j}": text for r, each in enumerate(worths) for j, text in enumerate(each)}
            source = layers.with_columns(named)
            worths = [[f"{_NAME}v{r}_{j}" for j in range(k)] for r in range(len(losses))]
        for each in worths:
            decision = _first_greatest(each)
            code = f"({code}) * {k} + {decision}" if code else decision
        sums = {cls.count: "COUNT(*)" if columns.weight is None else f"SUM({layers.weight})"}
        if expected:
            factor = "" if columns.weight is None else f"{layers.weight} * "
            sums |= {f"{_NAME}n{i}": f"SUM({factor}{share})" for i, share in enumerate(layers.eta)}
        keys = [] if columns.label is None else [quoted(columns.label)]
        named_sums = _list(f"{text} AS {name}" for name, text in sums.items())
        groups = _list([*keys, cls.code])
        decided = _list([*layers.kept, f"{code} AS {cls.code}"])
        text = (
            f"SELECT {groups}, {named_sums} FROM (SELECT {decided} FROM {source} OFFSET 0) {_NAME}decided "
            f"GROUP BY {groups}"
        )
        label = {} if columns.label is None else {columns.label: False}
        statement = Statement(text, {**label, cls.code: False, **dict.fromkeys(sums, True)})
        return cls(statement, columns.label, k, len(losses), expected)

    def read(self, batches: Iterable[Any], classes: Sequence[Any]) -> tuple[FloatArray, FloatArray]:
        """Return sums (R, K, K) by class and by expected class, and decision."""
        k, r = self.n_classes, self.n_losses
        labels, expected = np.zeros((r, k, k)), np.zeros((r, k, k))
        each = np.arange(r)
        for true, row in _by_class(batches, self.label, classes):
            if true is None and self.label is not None:  # NaN, which is a missing label
                continue
            decided = int(row[self.code]) // k ** each[::-1] % k
            if true is not None:
                labels[each, true, decided] += float(row[self.count])
            if self.expected:
                expected[each, :, decided] += [float(row[f"{_NAME}n{i}"]) for i in range(k)]
        return labels, expected


@dataclass(frozen=True)
class _Layers:
    """A subquery with label, weight and probabilities as they are counted, and with expressions of these.

    `OFFSET 0` keeps PostgreSQL from computing the columns of a subquery wherever they are used.
    """

    text: str
    kept: Sequence[str]
    eta: Sequence[str]
    decided: Sequence[str]

    weight = f"{_NAME}w"

    @staticmethod
    def can_link(link: LinkArrays, n_classes: int) -> bool:
        """Whether powers of a link are numbers everywhere."""
        bias = link.bias[0, :n_classes]
        steepest = -float(link.temperature[0]) * math.log(link.floor) if link.floor > 0 else math.inf
        return steepest + float(bias.max() - bias.min()) < _LARGEST_EXPONENT

    @classmethod
    def of(cls, rows: str, columns: CountedColumns, link: LinkArrays | None, linked: bool) -> _Layers:
        k = columns.n_classes
        eta = [f"{_NAME}p{j}" for j in range(k)]
        label = [] if columns.label is None else [quoted(columns.label)]
        others = [*label, *([] if columns.weight is None else [cls.weight])]
        named = {name: name for name in label}
        named |= {} if columns.weight is None else {cls.weight: _double(columns.weight)}
        doubles = [_double(name) for name in columns.proba]
        if not columns.single:
            doubles = [f"CASE WHEN {share} < {_number(_SMALLEST)} THEN 0 ELSE {share} END" for share in doubles]
        named |= dict(zip(eta, doubles if len(doubles) == k else [f"1 - {doubles[0]}", doubles[0]], strict=True))
        text = f"(SELECT {_named(named)} FROM {rows}{columns.observed} OFFSET 0) {_NAME}read"
        if link is None:
            return cls(text, [*others, *eta], eta, eta)
        powers = [f"{_NAME}x{j}" for j in range(k)]
        bias = link.bias[0, :k] - link.bias[0, :k].max()
        factor, floor = _number(float(link.temperature[0])), _number(link.floor)
        named = {
            power: f"EXP({factor} * LN(GREATEST({share}, {floor})) + {_number(float(c))})"
            for power, share, c in zip(powers, eta, bias, strict=True)
        }
        raw = [] if linked else eta
        text = f"(SELECT {_list([*others, *raw, _named(named)])} FROM {text} OFFSET 0) {_NAME}powers"
        shares = [f"{_NAME}q{j}" for j in range(k)]
        unit, total = f"{_NAME}unit", " + ".join(powers)
        text = f"(SELECT *, 1 / ({total}) AS {unit} FROM {text} OFFSET 0) {_NAME}totals"
        named = {share: f"{power} * {unit}" for share, power in zip(shares, powers, strict=True)}
        if len(doubles) < k:  # class 0 has the rest of class 1
            named[shares[0]] = f"1 - {powers[1]} * {unit}"
        text = f"(SELECT {_list([*others, *raw, _named(named)])} FROM {text} OFFSET 0) {_NAME}linked"
        return cls(text, [*others, *shares], shares, raw or shares)

    def with_columns(self, named: Mapping[str, str]) -> str:
        """Return the subquery with more columns."""
        return f"(SELECT *, {_named(named)} FROM {self.text} OFFSET 0) {_NAME}worths"

    def worths(self, loss: Loss) -> list[str]:
        """Return minus the score of each decision, which is exact, so that the largest is best."""
        k = len(self.decided)
        if loss.full is not None:
            return [
                " + ".join(
                    f"{_number(-float(a))} * {share}"
                    for a, share in zip(loss.full[0, :k, j], self.decided, strict=True)
                )
                for j in range(k)
            ]
        assert loss.diagonal is not None and loss.offset is not None
        diagonal, offset = loss.diagonal[0, :k], loss.offset[0, :k]  # losses may be padded
        worths = [
            share if d == -1 else f"{_number(-float(d))} * {share}"
            for d, share in zip(diagonal, self.decided, strict=True)
        ]
        if offset.any():
            total = " + ".join(self.decided)
            worths = [f"{worth} + {_number(-float(v))} * ({total})" for worth, v in zip(worths, offset, strict=True)]
        return worths


def _first_greatest(worths: Sequence[str]) -> str:
    """Return the place of the largest worth, the first of several."""
    if len(worths) == 2:
        return f"CASE WHEN {worths[1]} > {worths[0]} THEN 1 ELSE 0 END"
    cases = " ".join(f"WHEN {worth} THEN {j}" for j, worth in enumerate(worths[:-1]))
    return f"CASE GREATEST({_list(worths)}) {cases} ELSE {len(worths) - 1} END"


def _double(name: str) -> str:
    return f"CAST({quoted(name)} AS DOUBLE PRECISION)"


def _number(value: float) -> str:
    return f"CAST('{value!r}' AS DOUBLE PRECISION)"


def _named(texts: Mapping[str, str]) -> str:
    return _list(f"{text} AS {name}" for name, text in texts.items())


def _list(texts: Iterable[str]) -> str:
    return ", ".join(texts)
