"""Options that commands share, and parameters of the library as options in messages.

A record of options is a dataclass whose fields are options; a command takes records (:func:`takes`), and Typer sees
their fields.
"""

from __future__ import annotations

import ast
import inspect
import shlex
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from ..core.errors import InvalidParameter, Refusal, Sentence

if TYPE_CHECKING:
    from ..core.progress import Progress

__all__ = [
    "AimOptions",
    "ColumnOptions",
    "JudgeOptions",
    "LabelOptions",
    "ListOptions",
    "Output",
    "OutputOptions",
    "Rule",
    "Table",
    "TargetOptions",
    "Json",
    "read_abstain",
    "read_labels_per_row",
    "saved",
    "takes",
    "in_options",
    "with_options",
]

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
Output = Annotated[
    str, typer.Option("--output", "-o", metavar="FILE", help="The file to write; - is the standard output.")
]
Rule = Annotated[str, typer.Argument(metavar="RULE", help="A rule: a JSON file written by fit or from Python.")]
Table = Annotated[
    str,
    typer.Argument(
        metavar="TABLE",
        help="A table: .csv, .tsv, .parquet, .feather, .arrow, .npy, .npz, or - for CSV from the standard input.",
    ),
]


def _metric_names(incomplete: str) -> list[str]:
    """Names of metrics that begin like what has been typed."""
    from ..metrics.registry import metric_names
    from ..metrics.resolution import scorer_names

    return [name for name in sorted({*metric_names(), *scorer_names()}) if name.startswith(incomplete)]


@dataclass(frozen=True)
class ColumnOptions:
    """Which columns are probabilities, or logits or scores, and which of these they are."""

    proba: Annotated[
        list[str] | None,
        typer.Option(
            "--proba",
            metavar="COLUMN",
            help="The column with the probability of the positive class of a binary target; once for each target. With "
            "--input, the column with its log-odds or score.",
        ),
    ] = None
    proba_prefix: Annotated[
        str | None,
        typer.Option(
            "--proba-prefix",
            metavar="TEXT",
            help="Prefix of the names of the columns of probabilities, before the class.",
        ),
    ] = None
    sensitive_features: Annotated[
        list[str] | None,
        typer.Option(
            "--sensitive-features",
            metavar="COLUMN",
            help="The column with the sensitive group of each row. If repeated, groups are the combinations.",
        ),
    ] = None
    segments: Annotated[
        list[str] | None,
        typer.Option(
            "--segments",
            metavar="COLUMN",
            help="The column with the segment of each row, such as its country. If repeated, segments are the "
            "combinations.",
        ),
    ] = None
    input: Annotated[
        str | None,
        typer.Option(
            "--input",
            metavar="KIND",
            help="What the numbers are: probabilities (the default), logits, log_proba (logarithms of probabilities) "
            "or scores (larger means more of the class). A rule knows what it was fitted to.",
        ),
    ] = None
    separator: Annotated[
        str | None, typer.Option("--separator", metavar="CHARACTER", help="Separator of CSV, if it is not a comma.")
    ] = None


@dataclass(frozen=True)
class ListOptions:
    """Which columns are lists of labels and of their probabilities, of tables with very many labels."""

    indices: Annotated[
        str | None,
        typer.Option(
            "--indices",
            metavar="COLUMN",
            help="For very many labels: the column with the list of the labels that a row stores, as numbers from 0. "
            "--target is then the list of its true labels.",
        ),
    ] = None
    values: Annotated[
        str | None,
        typer.Option(
            "--values",
            metavar="COLUMN",
            help="The column with the list of the probabilities of these labels. With --input, of their log-odds or "
            "scores.",
        ),
    ] = None
    n_labels: Annotated[
        int | None,
        typer.Option("--n-labels", metavar="NUMBER", min=1, help="The number of labels, with --indices."),
    ] = None

    def names(self) -> tuple[str, str] | None:
        """Return the columns of labels and of their probabilities; refuse one without the other."""
        if self.indices is not None and self.values is not None:
            return self.indices, self.values
        given = [
            (option, needed)
            for option, needed, value in (
                ("--indices", "--values", self.indices),
                ("--values", "--indices", self.values),
                ("--n-labels", "--indices", self.n_labels),
            )
            if value is not None
        ]
        if given:
            option, needed = given[0]
            raise InvalidParameter(
                "indices",
                problem=f"{option} needs {needed}, which is not given",
                remedy="name the column of labels and that of their probabilities",
            )
        return None


@dataclass(frozen=True)
class TargetOptions:
    """Which columns are labels and their weights."""

    target: Annotated[
        list[str] | None,
        typer.Option(
            "--target",
            "-t",
            metavar="COLUMN",
            help="The column of labels, or an .npy file of them. Repeat for several outputs.",
        ),
    ] = None
    pos_label: Annotated[
        list[str] | None,
        typer.Option(
            "--pos-label",
            metavar="CLASS",
            help="The positive class of metrics of one class. Repeat for several targets, in their order.",
        ),
    ] = None
    weight: Annotated[str | None, typer.Option("--weight", metavar="COLUMN", help="The column of row weights.")] = None
    weight_kind: Annotated[
        str,
        typer.Option("--weight-kind", metavar="KIND", help="What the weights mean: importance, or frequency."),
    ] = "importance"


@dataclass(frozen=True)
class LabelOptions(TargetOptions):
    """Which columns are labels, and what else is known of rows."""

    groups: Annotated[
        str | None,
        typer.Option("--groups", metavar="COLUMN", help="The column with the groups of dependent rows."),
    ] = None
    time: Annotated[
        str | None,
        typer.Option(
            "--time", metavar="COLUMN", help="The column with the time at which rows were observed: numbers or dates."
        ),
    ] = None
    dependence: Annotated[
        int | None,
        typer.Option(
            "--dependence",
            metavar="ROWS",
            min=1,
            help="Maximum number of rows over which rows sorted by --time are dependent. Default: estimated.",
        ),
    ] = None
    half_life: Annotated[
        str | None,
        typer.Option(
            "--half-life",
            metavar="LENGTH",
            help="Age by --time at which a row has half of the weight of the latest one: a number in the unit of "
            "numeric times, or 30d, 12h, 2w for dates. Default: age does not matter.",
        ),
    ] = None

    def check(self) -> None:
        """Refuse options about others that are not given, or that exclude one another."""
        for name in ("dependence", "half_life"):
            if getattr(self, name) is not None and self.time is None:
                option = f"--{name.replace('_', '-')}"
                raise InvalidParameter(
                    name, problem=f"{option} needs --time, which is not given", remedy="leave it out"
                )
        if self.weight_kind not in ("importance", "frequency"):
            raise InvalidParameter(
                "weight_kind", problem=f"--weight-kind must be importance or frequency, got {self.weight_kind!r}"
            )
        if self.weight_kind != "importance" and self.weight is None:
            raise InvalidParameter(
                "weight_kind", problem="--weight-kind needs --weight, which is not given", remedy="leave it out"
            )
        if self.groups is not None and self.time is not None:
            raise InvalidParameter(
                "groups",
                problem=("--groups and --time cannot both be given"),
                remedy="leave out --time if groups are independent of each other, otherwise leave out --groups",
            )

    def weights(self, values: Any) -> Any:
        """Return weights, or the name of their column, as the library takes them."""
        from ..data.row_spec import Frequencies

        return Frequencies(values) if self.weight_kind == "frequency" else values

    def in_time(self, moments: Any) -> Any:
        """Return times, or the name of their column, as the library takes them."""
        from ..data.row_spec import InTime

        return InTime(moments, self.dependence, None if self.half_life is None else _number_or_text(self.half_life))

    @property
    def columns(self) -> list[str]:
        """Columns that are not probabilities."""
        return [name for name in (*(self.target or ()), self.weight, self.groups, self.time) if name is not None]


def _number_or_text(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


_AVERAGE = typer.Option("--average", metavar="NAME", help="Average over several targets: micro, macro or instance.")
_COST = typer.Option(
    "--cost",
    metavar="FILE",
    help="A table of costs for the metric cost: a row for each true class, named in the first column, and a column for "
    "each predicted class.",
)
_ORDER = typer.Option(
    "--order",
    metavar="LOWEST,...,HIGHEST",
    help="All classes from the lowest to the highest, for ordinal metrics with text labels; for several targets, "
    "TARGET=A,B,...",
)


@dataclass(frozen=True)
class AimOptions:
    """What the best rule is the best of."""

    metric: Annotated[
        list[str],
        typer.Option(
            "--metric",
            "-m",
            metavar="METRIC",
            autocompletion=_metric_names,
            help="The metric: see metricwise metrics. With several targets, optionally one for each, TARGET=METRIC.",
        ),
    ]
    cost: Annotated[str | None, _COST] = None
    average: Annotated[str | None, _AVERAGE] = None
    classes: Annotated[
        list[str] | None,
        typer.Option(
            "--classes",
            metavar="A,B,...",
            help="All classes, if some do not occur; for arrays, in column order. For several targets, TARGET=A,B,...",
        ),
    ] = None
    order: Annotated[list[str] | None, _ORDER] = None
    record: Annotated[
        list[str] | None,
        typer.Option(
            "--record",
            metavar="METRIC",
            autocompletion=_metric_names,
            help="A further metric to print. May be repeated.",
        ),
    ] = None
    subject_to: Annotated[
        list[str] | None,
        typer.Option(
            "--subject-to",
            metavar="BOUND",
            help="A constraint, such as 'precision >= 0.9' or 'recall[urgent] >= 80 %'. May be repeated.",
        ),
    ] = None
    abstain: Annotated[
        str | None,
        typer.Option(
            "--abstain",
            metavar="COST",
            help="Let the rule abstain: the cost of an abstention, or yes for the metric of the decided rows, "
            "with a bound such as --subject-to 'abstained <= 0.05', or with -m coverage and a bound on another metric.",
        ),
    ] = None
    abstain_label: Annotated[
        str | None,
        typer.Option(
            "--abstain-label",
            metavar="LABEL",
            help="The label of an abstention; by default abstain, or -1 if classes are numbers.",
        ),
    ] = None
    labels_per_row: Annotated[
        str | None,
        typer.Option(
            "--labels-per-row",
            metavar="NUMBER",
            help="For several binary targets, or lists of labels: the number of labels that a row may have, 3 for at "
            "most 3, 1,3 for 1 to 3, 3,3 for exactly 3.",
        ),
    ] = None
    randomized: Annotated[bool, typer.Option("--randomized", help="Allow a mixture of rules if that is better.")] = (
        False
    )
    seed: Annotated[int, typer.Option("--seed", metavar="NUMBER", help="Seed of resamples and draws.")] = 0


@dataclass(frozen=True)
class JudgeOptions:
    """What a rule is judged by."""

    metric: Annotated[
        list[str] | None,
        typer.Option(
            "--metric",
            "-m",
            metavar="METRIC",
            autocompletion=_metric_names,
            help="A metric: see metricwise metrics. May be repeated; by default, that of the rule.",
        ),
    ] = None
    cost: Annotated[str | None, _COST] = None
    average: Annotated[str | None, _AVERAGE] = None
    abstain: Annotated[
        str | None,
        typer.Option(
            "--abstain",
            metavar="COST",
            help="The cost of an abstention, or yes for the metric of the decided rows; by default, as the rule "
            "was fitted.",
        ),
    ] = None
    order: Annotated[list[str] | None, _ORDER] = None


@dataclass(frozen=True)
class OutputOptions:
    """What becomes of the result."""

    force: Annotated[bool, typer.Option("--force", "-f", help="Overwrite an existing file.")] = False


def takes(*records: type) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Let a command take records of options: its first parameters are the records, the others are its own.

    Parameters
    ----------
    *records : dataclasses
        Whose fields are options of Typer's.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        hints = get_type_hints(command, include_extras=True)
        others = list(inspect.signature(command).parameters.values())[len(records) :]
        parameters = []
        for record in records:
            types = get_type_hints(record, include_extras=True)
            for field in fields(record):
                default = inspect.Parameter.empty if field.default is MISSING else field.default
                parameters.append(
                    inspect.Parameter(
                        field.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=types[field.name]
                    )
                )
        add_options(parameter.name for parameter in parameters)
        parameters += [other.replace(annotation=hints[other.name], kind=other.KEYWORD_ONLY) for other in others]

        def call(**options: Any) -> None:
            made = [record(**{field.name: options.pop(field.name) for field in fields(record)}) for record in records]
            command(*made, **options)

        vars(call)["__signature__"] = inspect.Signature(parameters)
        call.__name__, call.__doc__ = command.__name__, command.__doc__
        call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return call

    return decorate


@contextmanager
def saved(output: str | None, force: bool, json: bool, title: str, n_stages: int) -> Iterator[Progress]:
    """Check that the output, if there is one, can be written before any work is done, and show the progress."""
    from ..core.progress import Progress
    from ..data.tables.writing import check_target

    if json and output == "-":
        raise InvalidParameter(
            "json", problem="--json and --output - both write to the standard output", remedy="pass a file to --output"
        )
    if output is not None:
        check_target(output, force=force)
    with Progress(title, n_stages) as progress:
        yield progress


def read_abstain(text: str | None) -> float | bool | None:
    """Return the cost of an abstention, True if there is none, None if --abstain is not given."""
    if text is None or text.lower() in ("yes", "true"):
        return None if text is None else True
    try:
        return float(text)
    except ValueError:
        raise InvalidParameter("abstain", problem=f"--abstain must be a cost, or yes, got {text!r}") from None


def read_labels_per_row(text: str | None) -> int | tuple[int, int] | None:
    """Return how many labels a row may have, None if --labels-per-row is not given."""
    if text is None:
        return None
    parts = text.split(",")
    numbers = [int(part) for part in parts if part.strip().isdecimal()]
    if len(numbers) != len(parts) or len(parts) > 2 or numbers[-1] < 1 or numbers[0] > numbers[-1]:
        raise InvalidParameter(
            "labels_per_row",
            problem=f"--labels-per-row must be a number of labels, or the least and the largest, got {text!r}",
            remedy="pass 3 for at most 3, 1,3 for 1 to 3, or 3,3 for exactly 3",
        )
    return numbers[0] if len(numbers) == 1 else (numbers[0], numbers[1])


# ------------------------------------------------------------------------------- parameters of the library as options

# Parameters of the library that are named otherwise here. Options of commands add themselves by their names.
_OPTIONS = {
    "Abstention.label": "--abstain-label",
    "ids": "--id",
    "metrics.metric_names()": "metricwise metrics",
    "random_state": "--seed",
    "sample_weight": "--weight",
    "Sensitive.unknown": "--unknown-group",
    "Table.indices": "--indices",
    "Table.n_labels": "--n-labels",
    "Table.proba": "--proba",
    "Table.proba_prefix": "--proba-prefix",
    "Table.separator": "--separator",
    "Table.values": "--values",
}
_COLUMNS = {"y": "the column of labels", "proba": "the probabilities"}
_TRUE = {"abstain": " yes"}  # options that take a value for True
_PLACEHOLDERS = {"order": " LOWEST,...,HIGHEST", "pos_label": " CLASS"}  # for values that a sentence describes


def add_options(names: Iterable[str]) -> None:
    """Let sentences name options: those of the parameters that have the same names."""
    for name in names:
        _OPTIONS.setdefault(name, f"--{name.replace('_', '-')}")


def in_options(refusal: Refusal) -> str:
    """Return a refusal of the library with its parameters as options, on one line.

    Parameters
    ----------
    refusal : Refusal

    Returns
    -------
    str

    Examples
    --------
    >>> import metricwise.cli.app  # whose options add themselves
    >>> from metricwise.cli.options import in_options
    >>> from metricwise.core.errors import InvalidParameter, argument
    >>> in_options(InvalidParameter("classes", problem="a column has no label", remedy=f"pass {argument('classes')}"))
    'a column has no label; pass --classes.'
    """
    text = with_options(refusal.sentence)
    text = text if text.endswith((".", "?")) else f"{text.removesuffix(':')}."
    return f"{_OPTIONS.get(refusal.owner, refusal.owner)}: {text}" if refusal.owner else text


def with_options(sentence: str) -> str:
    """Return a sentence of the library with the parameters that it names as options.

    Parameters
    ----------
    sentence : str
        A :class:`metricwise.core.errors.Sentence`; other text is returned as it is.

    Returns
    -------
    str

    Examples
    --------
    >>> import metricwise.cli.app  # whose options add themselves
    >>> from metricwise.cli.options import with_options
    >>> from metricwise.core.errors import Sentence, argument
    >>> with_options(Sentence(f"A mixture would improve it by 0.01 (set {argument('randomized', True)})."))
    'A mixture would improve it by 0.01 (set --randomized).'
    """
    if not isinstance(sentence, Sentence):
        return sentence
    text = sentence.render(_as_option)
    return f"{_OPTIONS[sentence.owner]}: {text}" if sentence.owner in _OPTIONS else text


def _as_option(name: str, value: str | None) -> str:
    """Return how a parameter, with its value as Python writes it, is given on the command line."""
    if value is None and name in _COLUMNS:
        return _COLUMNS[name]
    option = _OPTIONS.get(name)
    if option is None:
        return name if value is None else f"{name}={value}"
    if not value:
        return option
    if value == "True":
        return option + _TRUE.get(name, "")
    if value.startswith("range("):
        return f"{option} {','.join(map(str, range(*ast.literal_eval(f'({value[6:-1]},)'))))}"
    if "..." in value:
        return option + _PLACEHOLDERS[name]
    said = ast.literal_eval(value)
    return f"{option} {','.join(map(str, said)) if isinstance(said, tuple) else shlex.quote(str(said))}"
