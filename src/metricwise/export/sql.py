"""Rules as SQL expressions.

An output is a comparison with thresholds if there are any, otherwise a CASE over minus the losses of the decisions.
Expressions are trees of sqlglot, which quotes for each dialect.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..core.errors import InvalidParameter, InvalidType, entry_point, shown
from ..core.files import write_text
from ..core.inputs import MAX_LOGIT
from ..data.probabilities import sum_tolerance
from ..rules.base import Rule
from ..rules.mixture import MixtureRule
from ..rules.partitioned import PartitionedRule
from ..rules.weighted import WeightedRule
from ..rules.writer import RuleWriter
from .dialects import DIALECTS, Dialect
from .outputs import (
    IntervalTable,
    Label,
    LinkTable,
    OutputTable,
    check_text,
    column_counts,
    group_labels,
    labels_of,
    needs_extra,
    of_one_type,
    output_names,
    read_rule,
)

__all__ = ["to_sql"]

Expression = Any  # a node of sqlglot, which is an extra

_MAX_ARGUMENTS = 64  # of one function; some databases accept at most a hundred
_SMALLEST_POWER = 600.0  # exp(-600) is a normal number, and so are sums and products of such with losses
_LARGEST_EXPONENT = 700.0  # exp(700) is a number, and so are sums of as many as there are classes
_LARGEST_TOTAL = 1e300
_LARGEST_INTEGER = 2**63 - 1


@entry_point("to_sql")
def to_sql(
    rule: Any,
    columns: Sequence[Any] | None = None,
    dialect: str = "duckdb",
    path: str | os.PathLike[str] | None = None,
    *,
    draw: str | Sequence[str] | None = None,
    group: str | Sequence[str] | None = None,
) -> str:
    """Export a rule as an SQL expression over columns of probabilities, logits, log-probabilities or scores.

    Decisions are those of ``rule.predict`` on the same doubles (single-precision columns are widened first), even at
    ties. After recalibration they may differ if two scores are within 1e-9 of each other, because databases differ in
    the last bit of powers. Rows that ``rule.predict`` rejects have no decision: the expression is NULL if a probability
    is missing, NaN or negative, if those of a row do not sum to 1, or if the group of the row is unknown and the rule
    has none for other groups. A column has one type: classes False and True are 0 and 1 if the rule abstains with an
    integer.

    A rule on logits, log-probabilities or scores (`rule.input`) compares two classes with its threshold, in the unit of
    the columns, and more classes in log space; only offsets and full losses need powers, and for these the text grows
    with the square and the cube of the number of classes. The logarithm of 0 is ``-Infinity`` in the table; NULL is a
    missing number. The expression is NULL if a number is missing or NaN, if all of a row are ``-Infinity``, or if one
    of more than two is ``Infinity``. Sums of log-probabilities are not checked.

    Parameters
    ----------
    rule : WeightedRule, MixtureRule, GroupedRule, SegmentedRule, Solution, path, JSON text, or dict
        The rule, or a Solution, file, JSON text or dict that contains it.
    columns : sequence, optional
        Names of the columns, in the order of the classes. For one output, one name per class or, for two classes, only
        that of the second class (log-odds, if the rule is on logits). For several outputs, one such list per output, or
        a single name if only the number of the second of two classes is given. A rule of cut points has one column per
        output. By default, columns are named like the classes; for several outputs, like the outputs if all have two
        classes, otherwise ``<output>=<class>``. Names are quoted, so that case matters.
    dialect : {"duckdb", "postgres", "sqlite", "bigquery", "snowflake", "spark"}, default="duckdb"
        SQL dialect. SQLite needs its mathematical functions (``SQLITE_ENABLE_MATH_FUNCTIONS``, which most builds have)
        for links with a temperature, unless only the probability of the second of two classes is given, and for
        offsets and full losses on logits.
    path : path, optional
        If given, the expression is also written to this file, completely or not at all.
    draw : str, or sequence of M str, optional
        Only for a mixture, alone or within a rule by group: the column with the number in [0, 1) by which one of its
        rules is drawn, one per output. A hash of the row's key, divided by its range, is suitable; the numbers that
        ``rule.predict`` uses are those of ``metricwise.rules.mixture.uniforms``.
    group : str, or sequence of str, optional
        Only for a rule by group or by segment: the columns that define the groups or segments, by default those of
        `rule.features`.

    Returns
    -------
    str
        An expression for one output. For several outputs, ``expression AS "name"`` for each, separated by commas, for
        use in a SELECT.

    See Also
    --------
    to_python : Export a rule as Python source.
    to_onnx : Export a rule as an ONNX model.

    Examples
    --------
    >>> import metricwise as mw
    >>> rule = mw.WeightedRule.from_thresholds(0.3, classes=["fine", "fraud"], pos_label="fraud")
    >>> print(mw.export.to_sql(rule, ["p"], dialect="postgres"))
    CASE WHEN "p" >= 0 AND "p" <= 0.3 THEN 'fine' WHEN "p" > 0.3 AND "p" <= 1 THEN 'fraud' END
    >>> rule = mw.WeightedRule.from_weights({"a": 1.0, "b": 2.0, "c": 2.5})
    >>> print(mw.export.to_sql(rule, dialect="postgres"))
    CASE
      WHEN "a" >= 0
      AND "b" >= 0
      AND "c" >= 0
      AND ABS(CAST("a" AS DOUBLE PRECISION) + "b" + "c" - 1) <= 0.015001
      THEN CASE GREATEST("a", 2.0 * "b", 2.5 * "c")
        WHEN "a"
        THEN 'a'
        WHEN 2.0 * "b"
        THEN 'b'
        ELSE 'c'
      END
    END
    """
    rule, writer = read_rule(rule), _Writer.of(dialect)
    if rule.multioutput and not all(output_names(rule)):
        raise InvalidParameter(
            "",
            problem=f"the outputs of the rule must have names in SQL, got {shown(output_names(rule))}",
            remedy="fit it to labels whose columns have names",
        )
    names = _read_columns(columns, rule)
    draws, groups = _read_draws(draw, rule), _read_groups(group, rule)
    for labels in labels_of(rule):
        _check_labels(of_one_type(labels))
    expressions = [writer.output(rule, m, names[m], draws[m], groups) for m in range(rule.n_outputs)]
    texts = [expression.sql(dialect=writer.dialect.name, pretty=True) for expression in expressions]
    if rule.multioutput:
        titles = [writer.column(name).sql(dialect=writer.dialect.name) for name in output_names(rule)]
        texts = [f"{text} AS {title}" for text, title in zip(texts, titles, strict=True)]
    text = ",\n".join(texts)
    if path is not None:
        write_text(path, text + "\n")
    return text


# ----------------------------------------------------------------------------------------------------- arguments


def _read_columns(columns: Sequence[Any] | None, rule: Rule) -> list[list[str]]:
    """Return the names of the columns of each output: of every class, or of the second of two alone."""
    if columns is None:
        return _default_columns(rule)
    if isinstance(columns, (str, bytes)) or not isinstance(columns, Sequence):
        raise InvalidType("columns", "be a list of names", shown(columns))
    each = list(columns) if rule.multioutput else [list(columns)]
    if len(each) != rule.n_outputs:
        raise InvalidParameter("columns", f"be given for each of the {rule.n_outputs} outputs", len(each))
    counts = column_counts(rule)
    result = []
    for m, names in enumerate(each):
        names = [names] if isinstance(names, str) else list(names)
        if not _are_names(names) or len(set(names)) < len(names):
            raise InvalidParameter("columns", "be distinct names", shown(names))
        if len(names) not in counts[m]:
            raise InvalidParameter("columns", f"have {_counts(counts[m])} for output {m}", len(names))
        result.append(names)
    return result


def _counts(counts: tuple[int, ...]) -> str:
    """Numbers of names in a sentence."""
    if 1 not in counts:
        return f"{counts[0]} names"
    return "1 name" if len(counts) == 1 else f"{max(counts)} names or 1, that of the second class,"


def _are_names(names: Sequence[Any]) -> bool:
    return all(isinstance(name, str) and name for name in names)


def _default_columns(rule: Rule) -> list[list[str]]:
    classes = [[str(label) for label in labels] for labels in labels_of(rule)]
    alone = all(counts[0] == 1 for counts in column_counts(rule))
    if not rule.multioutput:
        columns = [rule.schema.input.noun] if alone else classes[0][: int(rule.n_classes[0])]
        if not all(columns):
            raise InvalidParameter("columns", "be given, because no column can be named like the class ''")
        return [columns]
    names = output_names(rule)
    if alone:
        return [[name] for name in names]
    return [
        [f"{name}={label}" for label in labels[: int(k)]]
        for name, labels, k in zip(names, classes, rule.n_classes, strict=True)
    ]


def _read_draws(draw: str | Sequence[str] | None, rule: Rule) -> list[str | None]:
    if not rule.is_randomized:
        if draw is not None:
            raise InvalidParameter(
                "", problem=f"draw is only for a MixtureRule, got {shown(draw)} with a {type(rule).__name__}"
            )
        return [None] * rule.n_outputs
    names = [draw] if isinstance(draw, str) else list(draw or ())
    if len(names) != rule.n_outputs or not _are_names(names):
        raise InvalidParameter(
            "draw",
            (
                "name the column of numbers in [0, 1) by which a MixtureRule is drawn, one for each of "
                f"{rule.n_outputs} outputs"
            ),
            shown(draw),
            "a hash of the row's key, divided by its range, is suitable",
        )
    return list(names)


def _read_groups(group: str | Sequence[str] | None, rule: Rule) -> list[str]:
    """Return the columns that make groups."""
    if not rule.is_partitioned:
        if group is not None:
            raise InvalidParameter(
                "", problem=f"group is only for a GroupedRule, got {shown(group)} with a {type(rule).__name__}"
            )
        return []
    return rule.accept(_GroupColumns(group))


@dataclass(frozen=True)
class _GroupColumns(RuleWriter[list[str]]):
    """The columns that make the groups of a rule: those passed, or those that it was fitted to."""

    group: str | Sequence[str] | None
    target = "SQL"

    def grouped(self, rule: PartitionedRule) -> list[str]:
        groups = rule.known
        names = [self.group] if isinstance(self.group, str) else list(self.group or groups.features or ())
        n_columns = groups.n_features
        if len(names) != n_columns or not _are_names(names):
            raise InvalidParameter(
                "group",
                f"name the {n_columns} column{'s' * (n_columns > 1)} that define the {groups.noun}s of a "
                f"{type(rule).__name__}, such as {shown(groups.names[0])}",
                shown(self.group),
            )
        for labels in zip(*group_labels(rule), strict=True):
            _check_labels(labels, f"a column of {groups.noun}s")
        return names


def _log_weights(table: OutputTable) -> list[float] | None:
    """Return the logarithms of the weights of all classes, if the rule has positive weights and nothing else."""
    if table.diagonal is None or any(table.offset or ()) or table.n_decisions > table.n_classes:
        return None
    return [math.log(-d) for d in table.diagonal] if max(table.diagonal) < 0 else None


def _check_labels(labels: Sequence[Label], where: str = "an output") -> None:
    check_text(labels)
    kinds = {type(label) for label in labels}
    if len(kinds) > 1:
        raise InvalidParameter(
            "", problem=f"the labels of {where} must have a single type in SQL, got {shown(list(labels))}"
        )
    for label in labels:
        if isinstance(label, str) and "\0" in label:
            raise InvalidParameter("labels", "not hold the character NUL, which databases do not accept", repr(label))
        if isinstance(label, int) and abs(label) > _LARGEST_INTEGER:
            raise InvalidParameter("labels", "be integers of 64 bits", shown(label))


# ------------------------------------------------------------------------------------------------------- writing


@dataclass(frozen=True)
class _Row:
    """The probabilities of one output as expressions, their sum, and when they are probabilities at all."""

    eta: list[Expression]
    total: Expression | None
    valid: Expression


@dataclass(frozen=True)
class _Writer:
    """Builds expressions of one dialect."""

    dialect: Dialect
    exp: Any  # the module sqlglot.expressions, which is imported where it is needed

    @classmethod
    def of(cls, dialect: str) -> _Writer:
        if dialect not in DIALECTS:
            raise InvalidParameter("dialect", f"be one of {list(DIALECTS)}", shown(dialect))
        try:
            from sqlglot import expressions
        except ImportError:
            raise needs_extra("sqlglot", "sql") from None
        return cls(DIALECTS[dialect], expressions)

    def output(self, rule: Rule, m: int, names: list[str], draw: str | None, groups: Sequence[str] = ()) -> Expression:
        """The decision of a rule about output m."""
        return rule.accept(_Output(self, m, names, draw, groups))

    def drawn(self, parts: list[Expression], edges: list[float], draw: Expression) -> Expression:
        """One of several decisions, by a number in [0, 1): NULL where that is NULL, NaN or no such number."""
        case = self.exp.Case()
        for part, edge in zip(parts, [*edges, 1.0], strict=True):
            inside = self.all(
                [self.at_least(draw, self.number(0.0)), self.exp.LT(this=draw, expression=self.number(edge))]
            )
            case = case.when(inside, part, copy=False)
        return case

    # ------------------------------------------------------------------------------------------------ decisions

    def decision(self, table: OutputTable, names: list[str], normalize: bool) -> Expression:
        """The decision of a weighted rule about one output."""
        if table.link is not None and table.link.of_logits:
            return self.by_logits(table, table.link, [self.column(name) for name in names])
        if len(names) == 1 and table.n_decisions == 2 and table.changes is not None:
            return self.by_threshold(self.column(names[0]), table.labels, *table.changes)
        row = self.row(names, normalize)
        if table.link is not None:
            row = self.recalibrated(row, table.link, alone=len(names) == 1)
        labels = [self.label(label) for label in of_one_type(table.labels)]
        return self.exp.Case().when(row.valid, self.best(self.worths(table, row), labels), copy=False)

    def by_threshold(
        self, p: Expression, labels: Sequence[Label], at_zero: int, at_one: int, last: float
    ) -> Expression:
        """Comparisons of the probability of the second of two classes with the last one that is decided as 0 is."""
        case, zero, upper = self.exp.Case(), self.exp.Literal.number(0), self.exp.Literal.number(1)
        if at_zero == at_one:
            return case.when(self.all([self.at_least(p, zero), self.at_most(p, upper)]), self.label(labels[at_one]))
        change = self.number(last)
        case = case.when(self.all([self.at_least(p, zero), self.at_most(p, change)]), self.label(labels[at_zero]))
        return case.when(self.all([self.more(p, change), self.at_most(p, upper)]), self.label(labels[at_one]))

    def along(self, table: IntervalTable, names: list[str]) -> Expression:
        """Comparisons of one number, or of the difference of two, with cuts; NULL and NaN have no decision."""
        z, *second = (self.column(name) for name in names)
        if second:
            z = self.exp.Sub(this=self.exp.cast(second[0], "double"), expression=z)
        labels = [self.label(label) for label in of_one_type(table.labels)]
        case = self.exp.Case()
        for cut, code in zip(table.cuts, table.codes[:-1], strict=True):
            case = case.when(self.at_most(z, self.number(cut)), labels[code], copy=False)
        above = [self.more(z, self.number(cut)) for cut in table.cuts[-1:]]
        return case.when(self.all([*above, self.at_most(z, self.infinity())]), labels[table.codes[-1]], copy=False)

    def by_logits(self, table: OutputTable, link: LinkTable, columns: list[Expression]) -> Expression:
        """The decision about one output of more than two classes.

        Weights alone are compared in log space, where nothing overflows: the largest ``z_j + (c_j + log w_j) / t``.
        Offsets are compared with shares, whose text is short; a share that vanishes stays above 0, which an
        offset hides. Other losses are compared with powers, which are 0 where those of the rule are.
        """
        largest = self.number(MAX_LOGIT[8])
        bounded = [self.at_most(column, largest) for column in columns]
        valid = self.all([*bounded, self.at_least(self.greatest(columns), self.number(-MAX_LOGIT[8]))])
        logs = _log_weights(table)
        if logs is not None:
            worths = self.moved(columns, [(c + log) / link.temperature for c, log in zip(link.bias, logs, strict=True)])
        elif any(table.offset or ()):
            worths = self.worths(table, _Row(self.shares(columns, link), None, valid))
        else:
            worths = self.worths(table, _Row(self.powers(columns, link), None, valid))
        labels = [self.label(label) for label in of_one_type(table.labels)]
        return self.exp.Case().when(valid, self.best(worths, labels), copy=False)

    def moved(self, columns: list[Expression], shifts: list[float]) -> list[Expression]:
        """Columns plus a number each, of which the smallest is 0: only differences matter."""
        least = min(shifts)
        return [self.sum_of([(1.0, z), (shift - least, None)]) for z, shift in zip(columns, shifts, strict=True)]

    def shares(self, columns: list[Expression], link: LinkTable) -> list[Expression]:
        """``softmax(t * z + c)`` of each class: of 1, ``sum_i exp(t * (z_i - z_j) + c_i - c_j)``, within bounds."""
        finite = [self.greatest([self.exp.cast(column, "double"), self.number(-MAX_LOGIT[8])]) for column in columns]
        shares = []
        for j, (z, c) in enumerate(zip(finite, link.bias, strict=True)):
            powers = [
                self.number(1.0) if i == j else self.bounded_power(other, z, link.temperature, bias - c)
                for i, (other, bias) in enumerate(zip(finite, link.bias, strict=True))
            ]
            shares.append(self.exp.Div(this=self.number(1.0), expression=self.exp.Paren(this=self.total(powers))))
        return shares

    def bounded_power(self, z: Expression, less: Expression, temperature: float, shift: float) -> Expression:
        """``exp(temperature * (z - less) + shift)``, no larger than a number is, and in strict dialects not 0."""
        difference = self.exp.Sub(this=z, expression=less)
        factor = self.exp.Paren(this=difference) if temperature != 1.0 else difference
        exponent = self.least([self.sum_of([(temperature, factor), (shift, None)]), self.number(_LARGEST_EXPONENT)])
        if self.dialect.strict:
            exponent = self.greatest([exponent, self.number(-_LARGEST_EXPONENT)])
        return self.exp.Exp(this=exponent)

    def powers(self, columns: list[Expression], link: LinkTable) -> list[Expression]:
        """``exp(t * z + c)`` of each class but for a factor that makes the largest 1."""
        shifts = [c / link.temperature for c in link.bias]
        highest = self.greatest(self.moved(columns, shifts))
        wide = self.moved([self.exp.cast(column, "double") for column in columns], shifts)
        return [self.power(self.exp.Sub(this=z, expression=highest), link.temperature) for z in wide]

    def power(self, difference: Expression, temperature: float) -> Expression:
        """``exp(temperature * difference)`` of a difference that is not positive."""
        exponent = difference
        if temperature != 1.0:
            exponent = self.exp.Mul(this=self.number(temperature), expression=self.exp.Paren(this=difference))
        power = self.exp.Exp(this=exponent)
        if not self.dialect.strict:
            return power
        vanishes = self.exp.LT(this=exponent, expression=self.number(-_SMALLEST_POWER))
        return self.exp.Case().when(vanishes, self.number(0.0), copy=False).else_(power, copy=False)

    def best(self, worths: list[Expression], labels: list[Expression]) -> Expression:
        """The label of the largest worth, the first where several are."""
        if len(worths) == 2:
            return self.exp.Case().when(self.more(worths[1], worths[0]), labels[1]).else_(labels[0])
        case = self.exp.Case(this=self.greatest(worths))
        for worth, label in zip(worths[:-1], labels[:-1], strict=True):
            case = case.when(worth, label, copy=False)
        return case.else_(labels[-1], copy=False)

    def worths(self, table: OutputTable, row: _Row) -> list[Expression]:
        """The loss of each decision with its sign turned, which is exact, so that the largest is best."""
        if table.full is not None:
            return [
                self.sum_of([(-a[j], p) for a, p in zip(table.full, row.eta, strict=True)])
                for j in range(table.n_decisions)
            ]
        assert table.diagonal is not None and table.offset is not None
        worths = []
        for j, (d, v) in enumerate(zip(table.diagonal, table.offset, strict=True)):
            terms: list[tuple[float, Expression | None]] = [(-v, row.total)]
            worths.append(self.sum_of([(-d, row.eta[j]), *terms] if j < table.n_classes else terms))
        return worths

    # ----------------------------------------------------------------------------------------------------- rows

    def row(self, names: list[str], normalize: bool) -> _Row:
        columns = [self.column(name) for name in names]
        zero, upper = self.exp.Literal.number(0), self.exp.Literal.number(1)
        if len(names) == 1:
            p = columns[0]
            rest = self.exp.Paren(this=self.exp.Sub(this=upper, expression=p))
            return _Row([rest, p], None, self.all([self.at_least(p, zero), self.at_most(p, upper)]))
        positive = [self.at_least(column, zero) for column in columns]
        total = self.total(columns)
        if normalize:
            bounds = [self.more(total, zero), self.at_most(total, self.number(_LARGEST_TOTAL))]
            shares = [self.exp.Div(this=column, expression=self.exp.Paren(this=total)) for column in columns]
            return _Row(shares, self.total(shares), self.all([*positive, *bounds]))
        off = self.exp.Abs(this=self.exp.Sub(this=total, expression=upper))
        return _Row(
            columns, total, self.all([*positive, self.at_most(off, self.number(round(sum_tolerance(len(names)), 9)))])
        )

    def total(self, parts: list[Expression]) -> Expression:
        """Sum in order, in double precision whatever the columns are."""
        total = self.exp.cast(parts[0], "double")
        for part in parts[1:]:
            total = self.exp.Add(this=total, expression=part)
        return total

    def recalibrated(self, row: _Row, link: LinkTable, alone: bool) -> _Row:
        """``softmax(t * log(max(eta, floor)) + c)`` but for a factor that all classes of a row share."""
        top = max(link.bias)
        if -link.temperature * math.log(link.floor) + top - min(link.bias) > _SMALLEST_POWER:
            raise InvalidParameter(
                "",
                problem=(
                    "the link of the rule must not be so steep that its powers vanish, got a temperature "
                    f"of {link.temperature:.6g} and biases from {min(link.bias):.6g} to {top:.6g}"
                ),
                remedy="use to_python or to_onnx",
            )
        powers = []
        for p, c in zip(row.eta, link.bias, strict=True):
            power = self.greatest([p, self.number(link.floor)])
            if link.temperature != 1.0:
                power = self.exp.Pow(this=power, expression=self.number(link.temperature))
            powers.append(self.sum_of([(math.exp(c - top), power)]))
        return _Row(powers, self.total(powers), row.valid)

    # ------------------------------------------------------------------------------------------------- small parts

    def column(self, name: str) -> Expression:
        return self.exp.column(name, quoted=True)

    def number(self, value: float) -> Expression:
        literal = self.exp.Literal(this=self.dialect.number(abs(value)), is_string=False)
        return self.exp.Neg(this=literal) if value < 0 else literal

    def infinity(self) -> Expression:
        if self.dialect.infinity is None:
            return self.exp.cast(self.exp.Literal.string("inf"), "double")
        return self.exp.Literal.number(self.dialect.infinity)

    def label(self, label: Label) -> Expression:
        if isinstance(label, bool):
            return self.exp.Boolean(this=label)
        if isinstance(label, str):
            return self.exp.Literal.string(label)
        return self.number(label) if isinstance(label, float) else self.exp.Literal.number(label)

    def sum_of(self, terms: Sequence[tuple[float, Expression | None]]) -> Expression:
        """Sum of factors times expressions, in order; None stands for 1, and what is 0 is left out, which is exact."""
        result: Expression | None = None
        for factor, part in terms:
            if factor == 0:
                continue
            if result is None:
                result = self.product(factor, part)
            else:
                combine = self.exp.Sub if factor < 0 else self.exp.Add
                result = combine(this=result, expression=self.product(abs(factor), part))
        return self.number(0.0) if result is None else result

    def product(self, factor: float, part: Expression | None) -> Expression:
        if part is None:
            return self.number(factor)
        if factor == 1:  # a sum stays one, whatever it is added to or taken from
            return self.exp.Paren(this=part) if isinstance(part, self.exp.Add) else part
        wrapped = self.exp.Paren(this=part) if isinstance(part, (self.exp.Add, self.exp.Div, self.exp.Mul)) else part
        return self.exp.Mul(this=self.number(factor), expression=wrapped)

    def greatest(self, parts: list[Expression]) -> Expression:
        while len(parts) > _MAX_ARGUMENTS:
            parts = [
                self.greatest(parts[start : start + _MAX_ARGUMENTS]) for start in range(0, len(parts), _MAX_ARGUMENTS)
            ]
        return self.exp.Anonymous(this=self.dialect.greatest, expressions=parts)

    def least(self, parts: list[Expression]) -> Expression:
        return self.exp.Anonymous(this=self.dialect.least, expressions=parts)

    def all(self, conditions: list[Expression]) -> Expression:
        return self.exp.and_(*conditions, wrap=False)

    def equal(self, left: Expression, right: Expression) -> Expression:
        return self.exp.EQ(this=left, expression=right)

    def at_least(self, left: Expression, right: Expression) -> Expression:
        return self.exp.GTE(this=left, expression=right)

    def at_most(self, left: Expression, right: Expression) -> Expression:
        return self.exp.LTE(this=left, expression=right)

    def more(self, left: Expression, right: Expression) -> Expression:
        return self.exp.GT(this=left, expression=right)


@dataclass(frozen=True)
class _Output(RuleWriter["Expression"]):
    """The decision of each kind of rule about output m; see :meth:`_Writer.output`."""

    writer: _Writer
    m: int
    names: list[str]
    draw: str | None
    groups: Sequence[str]
    target = "SQL"

    def weighted(self, rule: WeightedRule) -> Expression:
        intervals = IntervalTable.of_logits(rule, self.m)
        if intervals is not None:
            return self.writer.along(intervals, self.names)
        return self.writer.decision(OutputTable.of(rule, self.m), self.names, rule.normalize)

    def mixture(self, rule: MixtureRule) -> Expression:
        parts = [self.weighted(part) for part in rule.rules]
        return self.writer.drawn(parts, rule.edges[self.m].tolist(), self.writer.column(str(self.draw)))

    def cut_points(self, rule: Any) -> Expression:
        return self.writer.along(IntervalTable.of_cut_points(rule, self.m), self.names)

    def grouped(self, rule: PartitionedRule) -> Expression:
        writer, case = self.writer, self.writer.exp.Case()
        for name, (_, part) in zip(group_labels(rule), rule.by_part, strict=True):
            conditions = [
                writer.equal(writer.column(column), writer.label(label))
                for column, label in zip(self.groups, name, strict=True)
            ]
            case = case.when(writer.all(conditions), part.accept(self), copy=False)
        return case if rule.other is None else case.else_(rule.other.accept(self), copy=False)
