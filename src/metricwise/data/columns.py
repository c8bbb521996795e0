"""Columns of a table that hold probabilities, found by their names.

A column is named like its class, by a prefix and its class, or ``<output>=<class>`` if there are several outputs; the
single column of a binary output may be named by the prefix and the output. Must not know files or values.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ..core.errors import InvalidParameter, argument, listed, shown
from ..core.labels import known_positive

__all__ = [
    "NoColumnsError",
    "OutputLabels",
    "ProbabilityColumns",
    "all_classes",
    "check_singles",
    "few",
    "labels_of_texts",
    "match_label",
    "probability_columns",
    "tables_of_columns",
]

_PAIRS = ([0, 1], [-1, 1])  # which one label of may stand for both
_MAX_LISTED_NAMES = 12


@dataclass(frozen=True)
class ProbabilityColumns:
    """The columns that hold the probabilities of one output.

    Parameters
    ----------
    columns : tuple of str
        One per class, or the one of the second of two classes.
    classes : tuple
        Labels; in the order of the columns if these are as many.
    guessed_prefix : str, optional
        What the names of the columns begin with, where nobody has said so.

    Examples
    --------
    >>> from metricwise.data.columns import ProbabilityColumns
    >>> ProbabilityColumns(("p_fraud",), ("fine", "fraud")).single
    True
    """

    columns: tuple[str, ...]
    classes: tuple[Any, ...]
    guessed_prefix: str | None = None

    @property
    def single(self) -> bool:
        """Whether there is one column, of the second of two classes."""
        return len(self.columns) == 1


# --------------------------------------------------------------------------------------------------- labels in text


def _texts(label: Any) -> tuple[str, ...]:
    """Every way in which tables write a label: whole numbers may have a point, truth values may be numbers."""
    if isinstance(label, bool):
        return (str(label), str(label).lower(), str(label).upper(), str(int(label)))
    if isinstance(label, int):
        return (str(label), f"{label}.0")
    if isinstance(label, float) and label.is_integer():
        return (str(label), str(int(label)))
    return (str(label),)


def match_label(text: str, labels: Iterable[Any]) -> Any:
    """Return the label that a text means beside others.

    Parameters
    ----------
    text : str
    labels : iterable
        Labels that are known. Of these it is the one that it is the text of; else it is a number where all of them are.

    Returns
    -------
    object

    Examples
    --------
    >>> from metricwise.data.columns import match_label
    >>> match_label("2", [1, 2]), match_label("3", [1, 2]), match_label("3", ["a", "b"]), match_label("1", [True])
    (2, 3, '3', True)
    """
    candidates = list(labels)
    for label in candidates:
        if text in _texts(label):
            return label
    numbers = [label for label in candidates if isinstance(label, (int, float)) and not isinstance(label, bool)]
    if candidates and len(numbers) == len(candidates):
        value = _number(text)
        if value is not None:
            return float(value) if any(isinstance(label, float) for label in numbers) else value
    return text


def _number(text: str) -> int | float | None:
    """Return the number that a text is the usual way to write, whole ones as integers; None for any other text."""
    try:
        value = float(text)
    except ValueError:
        return None
    if value.is_integer() and text in (str(int(value)), f"{int(value)}.0"):
        return int(value)
    return value if str(value) == text and value - value == 0 else None  # neither NaN nor infinite


def labels_of_texts(texts: Collection[str]) -> list[Any]:
    """Return what the distinct labels of a column of text are: whole numbers, numbers, truth values, or text.

    Only texts that their numbers would be written as are numbers: of codes such as "01", all are text.

    Parameters
    ----------
    texts : collection of str

    Returns
    -------
    list

    Examples
    --------
    >>> from metricwise.data.columns import labels_of_texts
    >>> labels_of_texts(["1", "2.0"]), labels_of_texts(["01", "2"]), labels_of_texts(["true", "false"])
    ([1, 2], ['01', '2'], [True, False])
    """
    truths = {text.lower() for text in texts}
    if texts and truths <= {"true", "false"} and len(truths) == len(texts):
        return [text.lower() == "true" for text in texts]
    numbers = [_number(text) for text in texts]
    if None in numbers or len(set(numbers)) < len(numbers):
        return list(texts)
    if any(isinstance(value, float) for value in numbers):
        return [float(value) for value in numbers if value is not None]
    return numbers


# ---------------------------------------------------------------------------------------------------------- columns


@dataclass(frozen=True, eq=False)
class OutputLabels:
    """An output whose columns are looked for.

    Parameters
    ----------
    name : str or None
        That of its column of labels.
    labels : sequence
        Distinct labels that occur.
    classes : sequence, optional
        All classes, if they are known; by default those that occur and those that a prefix shows.
    positive : object, optional
        The class that a single column is of.
    may_be_graded : bool, default=False
        Whether a single column may be one score for more than two classes.
    """

    name: str | None
    labels: Sequence[Any]
    classes: Sequence[Any] | None = None
    positive: Any = None
    may_be_graded: bool = False


def probability_columns(
    names: Sequence[str],
    outputs: Sequence[OutputLabels],
    *,
    prefix: str | None = None,
    singles: Sequence[str | None] | None = None,
    of_rule: bool = False,
) -> list[ProbabilityColumns]:
    """Return the columns that hold the probabilities of each output.

    Parameters
    ----------
    names : sequence of str
        Columns that may hold probabilities, in the order of the table.
    outputs : sequence of OutputLabels
        If there are several, names of columns must say which output they are of.
    prefix : str, optional
        Prefix of the names of the columns. By default, a single output may have columns named like its classes, or any
        one prefix that all of its classes are found with.
    singles : sequence of str or None, optional
        The column with the probability of the positive class of each binary output.
    of_rule : bool, default=False
        Whether the labels are the classes of a rule.

    Examples
    --------
    >>> from metricwise.data.columns import OutputLabels, probability_columns
    >>> probability_columns(["id", "a", "b"], [OutputLabels(None, ["a", "b"])])[0].columns
    ('a', 'b')
    >>> (stars,) = probability_columns(["id", "p_1", "p_2", "p_3"], [OutputLabels("stars", [1, 3])])
    >>> stars.columns, stars.classes, stars.guessed_prefix
    (('p_1', 'p_2', 'p_3'), (1, 2, 3), 'p_')
    """
    columns = []
    for output, single in zip(outputs, singles or [None] * len(outputs), strict=True):
        search = _Search(
            names,
            list(output.classes or output.labels),
            output.classes is not None,
            output.name,
            output.positive,
            of_rule,
            output.may_be_graded,
        )
        columns.append(search.by_names(prefix, len(outputs) > 1) if single is None else search.one_column(single))
    return columns


class NoColumnsError(InvalidParameter):
    """No columns are named like the classes, or not for all of them."""


@dataclass(frozen=True)
class _Search:
    """What is looked for: the columns of an output among some names."""

    names: Sequence[str]
    labels: list[Any]
    complete: bool
    output: str | None
    pos_label: Any
    of_rule: bool
    may_be_graded: bool = False

    @property
    def title(self) -> str:
        return "" if self.output is None else f" of {shown(self.output)}"

    def one_column(self, column: str) -> ProbabilityColumns:
        """Return the column that was named, of the positive class."""
        if column not in self.names:
            raise InvalidParameter(
                "proba", problem=f"there is no column {shown(column)}", remedy=f"the columns are {few(self.names)}"
            )
        return ProbabilityColumns((column,), self._classes_of_single())

    def by_names(self, prefix: str | None, several: bool) -> ProbabilityColumns:
        """Return the first columns that are there for all classes, else for one of two."""
        base_prefix = prefix or ""
        bases = [] if self.output is None else [f"{base_prefix}{self.output}="]
        if not several:
            bases = [*bases, base_prefix] if prefix is not None else ["", *bases]
        attempts = [self._found(base) for base in bases]
        for columns in attempts:
            if len(columns) > 1 and not self._lacking(columns):
                return ProbabilityColumns(tuple(columns.values()), tuple(columns))
        if prefix is None and not several and len(self.labels) > 1:
            guess = self._guessed_prefix()
            if guess is not None:
                columns = self._found(guess)
                return ProbabilityColumns(tuple(columns.values()), tuple(columns), guess)
        for columns in attempts:
            if len(columns) == 1 and len(self.labels) == 2 and next(iter(columns)) == self._positive(self.labels):
                ((label, name),) = columns.items()
                return ProbabilityColumns((name,), (*self._lacking(columns), label))
        alone = f"{base_prefix}{self.output}"
        if prefix and alone in self.names:
            return ProbabilityColumns((alone,), self._classes_of_single())
        raise self._incomplete(attempts, base_prefix, several)

    def _found(self, base: str) -> dict[Any, str]:
        """Columns that begin with `base` by the label that follows: one that is known, or may be one that is not."""
        columns: dict[Any, str] = {}
        for name in self.names:
            if not name.startswith(base):
                continue
            label = match_label(name.removeprefix(base), self.labels)
            if label not in self.labels and (self.complete or base == "" or not self._may_be_class(label)):
                continue
            if label in columns:
                raise InvalidParameter(
                    "proba",
                    problem=(
                        f"the columns {shown(columns[label])} and {shown(name)} may both be the probability "
                        f"of {shown(label)}{self.title}"
                    ),
                    remedy="leave one out",
                )
            columns[label] = name
        return columns

    def _may_be_class(self, label: Any) -> bool:
        """Whether what follows a prefix can be a label beside the others: text beside text, a number beside numbers."""
        return label != "" and (not self.labels or not isinstance(label, str) or isinstance(self.labels[0], str))

    def _guessed_prefix(self) -> str | None:
        """The one prefix that all classes are found with."""
        ends = [
            {name.removesuffix(text) for text in _texts(label) for name in self.names if name.endswith(text)}
            for label in self.labels
        ]
        prefixes = sorted(set.intersection(*ends))
        if len(prefixes) > 1:
            raise InvalidParameter(
                "proba",
                problem=(
                    f"the probabilities{self.title} may be in the columns that begin with "
                    f"{' or '.join(map(shown, prefixes[:5]))}"
                ),
                remedy=f"choose one with {argument('Table.proba_prefix')}",
            )
        return prefixes[0] if prefixes else None

    def _lacking(self, columns: dict[Any, str]) -> list[Any]:
        return [label for label in self.labels if label not in columns]

    def _classes_of_single(self) -> tuple[Any, ...]:
        """The classes of a single column: two, or all that one score is for."""
        return tuple(self.labels) if self.may_be_graded and len(self.labels) > 2 else self._pair()

    def _pair(self) -> tuple[Any, Any]:
        """The two classes of a binary output, the positive one last."""
        labels = self.labels
        if len(labels) < 2:  # one of several outputs, of which little is known
            pairs = [[False, True]] if any(isinstance(label, bool) for label in labels) else _PAIRS
            labels = next((pair for pair in pairs if set(labels) <= set(pair)), labels)
        if len(labels) != 2:
            raise InvalidParameter(
                "proba",
                problem=(
                    f"a single column of probabilities is for two classes{self.title}, but there are "
                    f"{len(labels)}, {few(labels)}"
                ),
                remedy="provide a column for each class",
            )
        positive = self._positive(labels)
        if positive is None:
            raise InvalidParameter(
                "proba",
                problem=(
                    f"the class of the single column of probabilities{self.title} is ambiguous: {shown(labels[0])} or "
                    f"{shown(labels[1])}"
                ),
                remedy=f"set {argument('pos_label')}",
            )
        if positive not in labels:
            raise InvalidParameter("pos_label", f"be one of {listed(labels)}", shown(positive))
        first, second = sorted(labels, key=lambda label: bool(label == positive))
        return first, second

    def _positive(self, labels: Sequence[Any]) -> Any:
        """The positive class of two, None where it is not known."""
        return known_positive(labels) if self.pos_label is None else self.pos_label

    def _incomplete(self, attempts: list[dict[Any, str]], prefix: str, several: bool) -> NoColumnsError:
        """Return the error where classes have no columns: some of them, or all."""
        columns = max(attempts, key=len)
        available = f"the columns are {few(self.names)}"
        if columns and self._lacking(columns):
            alone = (
                f", or set {argument('pos_label')} if the other class is the positive one"
                if len(self.labels) == 2
                else ""
            )
            doubt = f" If it is not a class but marks missing labels, leave those empty{alone}."
            return NoColumnsError(
                "proba",
                problem=f"there is no column for the class {shown(self._lacking(columns)[0])}{self.title}, although "
                f"there is {few(list(columns.values()))}; {available}.{'' if self.of_rule else doubt}",
            )
        example = str(self.labels[-1]) if self.labels else "class"
        classes = f", {few(self.labels)}" if self.labels else ""
        if several:
            remedy = f"they must be named like {shown(f'{prefix}{self.output}={example}')}"
        elif prefix:
            remedy = f"they must be named like {shown(prefix + example)}"
        else:
            remedy = (
                f"they must be named like the classes{classes}, or with a prefix before the class, given by "
                f"{argument('Table.proba_prefix')}"
            )
            if len(self.labels) <= 2:
                remedy += f"; a single column for two classes may have any name, given by {argument('Table.proba')}"
        return NoColumnsError("proba", problem=f"no columns hold the probabilities{self.title}: {remedy}; {available}")


# -------------------------------------------------------------------------------------------- as probabilities are read


def all_classes(declared: list[Any] | None, columns: ProbabilityColumns, labels: Sequence[Any]) -> list[Any] | None:
    """Return the classes that must be said: those given, and numbers that columns show and labels do not."""
    unseen = [label for label in columns.classes if label not in labels]
    if declared is not None or not unseen or any(isinstance(label, str) for label in unseen):
        return declared
    return sorted(columns.classes)


def check_singles(columns: Sequence[ProbabilityColumns], outputs: Sequence[str]) -> None:
    """Refuse single columns of some of several outputs."""
    single = [output.single for output in columns]
    if any(single) and not all(single):
        lacking = outputs[single.index(True)]
        raise InvalidParameter(
            "proba",
            problem="either all targets or none may have a single column of probabilities",
            remedy=f"provide a column for each class of {shown(lacking)}",
        )


def tables_of_columns(
    numbers: Any, columns: Sequence[ProbabilityColumns], outputs: Sequence[str], declared: Sequence[list[Any] | None]
) -> tuple[Any, Any]:
    """Return the columns of an Arrow table as probabilities are taken, and the classes that must be said with them.

    Parameters
    ----------
    numbers : pyarrow.Table
    columns : sequence of ProbabilityColumns
        Of each output.
    outputs : sequence of str
        Names of the outputs.
    declared : sequence of lists or None
        Classes of each output, where they are said; see :func:`all_classes`.
    """
    if all(output.single for output in columns):
        parts = numbers.select([output.columns[0] for output in columns])
        pairs = [list(output.classes) for output in columns]
        return (parts, pairs[0]) if len(columns) == 1 else (parts.rename_columns(list(outputs)), pairs)
    frames = [numbers.select(list(output.columns)).rename_columns(list(map(str, output.classes))) for output in columns]
    return (frames[0], declared[0]) if len(columns) == 1 else (frames, list(declared))


def few(names: Sequence[Any]) -> str:
    """Return names for a message, the first of very many."""
    if not names:
        return "none"
    rest = len(names) - _MAX_LISTED_NAMES
    return ", ".join(map(shown, names[:_MAX_LISTED_NAMES])) + (f" and {rest} more" if rest > 0 else "")
