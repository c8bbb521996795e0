"""Commands about rows without labels: shares and expect."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from ..core.errors import InvalidParameter
from .evaluate import metrics_for, with_own_positive
from .fitting import write_rule
from .options import (
    ColumnOptions,
    Json,
    JudgeOptions,
    LabelOptions,
    OutputOptions,
    Rule,
    Table,
    TargetOptions,
    read_abstain,
    saved,
    takes,
)
from .printing import interval, note, print_json, print_table, say

__all__ = ["expect", "shares"]


# -------------------------------------------------------------------------------------------------------------- shares


@dataclass(frozen=True)
class MoveOptions:
    """Whether and how a rule for the new shares is written."""

    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write the rule for the new shares to this file; - is the standard output.",
        ),
    ] = None
    adapt: Annotated[
        bool,
        typer.Option(
            "--adapt",
            help="With --output: fit the rule to the expected counts of these rows, at least 1,000, instead of moving "
            "it by Bayes' rule.",
        ),
    ] = False
    cost: Annotated[
        str | None,
        typer.Option(
            "--cost", metavar="FILE", help="With --adapt: the table of costs, if the rule was fitted for the cost."
        ),
    ] = None

    def check(self) -> None:
        """Refuse options about others that are not given."""
        if self.adapt and self.output is None:
            raise InvalidParameter(
                "adapt", problem="--adapt needs --output, which is not given", remedy="pass it, or leave out --adapt"
            )
        if self.cost is not None and not self.adapt:
            raise InvalidParameter(
                "cost", problem="--cost needs --adapt, which is not given", remedy="pass it, or leave out --cost"
            )


@takes(ColumnOptions, OutputOptions, MoveOptions)
def shares(
    columns: ColumnOptions,
    written: OutputOptions,
    move: MoveOptions,
    rule: Rule,
    table: Table,
    json: Json = False,
) -> None:
    """Estimate the class shares of rows without labels.

    Tests whether they have moved from those of the rows that the rule was fitted to. With --output, the rule for the
    new shares is written.
    """
    from ..data.tables.reading import open_file
    from ..monitoring.shares import estimate_shares
    from .rows import read_proba_for_rule

    move.check()
    with saved(move.output, written.force, json, "shares", 2) as progress:
        progress.stage(f"reading {table}")
        loaded = _read_rule(rule, columns, any_kind=True)
        _check_calibration(loaded, rule)
        proba = read_proba_for_rule(loaded, open_file(table, columns.separator, progress.tick), columns)
        progress.stage("estimating")
        estimate = estimate_shares(loaded, proba)
        moved = loaded if move.output is None else _move(loaded, proba, estimate, move, columns.separator)
    if move.output is not None:
        write_rule(moved, move.output, written.force)
    if json:
        print_json(_document(loaded, estimate, moved, move.output))
    elif move.output != "-":
        _print_shares(loaded, estimate)
        if moved is not loaded:
            say(f"\n{moved.describe()}")
    if move.output is not None:
        _report_move(loaded, moved, estimate, move)


def _move(rule: Any, proba: Any, estimate: Any, move: MoveOptions, separator: str | None) -> Any:
    """Return the rule for the estimated shares; the same rule if they have not moved."""
    if not move.adapt:
        was_moved = rule.metadata.prior is not None  # to other shares than those of its rows
        return rule.with_prior(estimate) if estimate.any_moved or was_moved else rule
    from ..monitoring.adaptation import MIN_ROWS

    if estimate.n_rows < MIN_ROWS:
        raise InvalidParameter(
            "adapt",
            problem=f"--adapt needs at least {MIN_ROWS:,} rows, because fewer say too little about the best rule, got "
            f"{estimate.n_rows:,}",
            remedy="leave it out to move the rule by Bayes' rule",
        )
    return rule.adapted(proba, metric=_metric_to_adapt(rule, move.cost, separator))


def _metric_to_adapt(rule: Any, cost: str | None, separator: str | None) -> Any:
    """Return the metric that a rule was fitted for; None if its name says all of it, or if it is not needed."""
    from ..core.labels import python_labels
    from ..metrics.registry import needed_parameter
    from ..rules.class_shares import APPROXIMATE
    from .costs import read_costs

    name, is_fitted_anew = rule.metadata.metric, rule.metadata.under_new_shares == APPROXIMATE
    of_cost = needed_parameter(name or "") == "cost"
    if cost is not None:
        if not of_cost:
            problem = f"--cost is only for rules fitted for the cost, not for {name}"
            raise InvalidParameter("cost", problem=problem, remedy="leave it out")
        return read_costs(cost, python_labels(rule.classes[0]), separator).metric(name)
    if is_fitted_anew and of_cost:
        raise InvalidParameter(
            "cost",
            problem=f"--adapt needs --cost FILE, because the rule was fitted for {name}: a table with a row for each "
            "true class and a column for each predicted class",
            remedy="pass it, or leave out --adapt",
        )
    if is_fitted_anew:
        _check_metric_name(rule, name)
    return None


def _check_metric_name(rule: Any, name: str) -> None:
    """Refuse to adapt rules for functions, and for metrics by output."""
    from ..metrics.resolution import metric_meant, target_kind

    try:
        metric_meant(name, target_kind(rule.schema.width, rule.multioutput), class_named=True)
    except (ValueError, TypeError):
        raise InvalidParameter(
            "adapt",
            problem=f"--adapt is only for rules whose metric has a name, and the rule was fitted for {name}",
            remedy="leave it out, or use rule.adapted in Python",
        ) from None


def _withdrawn(rule: Any, moved: Any) -> list[str]:
    """Return the constraints that were promised before a rule was moved, and are not after it."""
    kept = {promise["name"] for promise in _promised(moved)}
    return [promise["name"] for promise in _promised(rule) if promise["name"] not in kept]


def _promised(rule: Any) -> list[Any]:
    return [promise for promise in rule.metadata.promises or () if promise.get("confidence") is not None]


def _report_move(rule: Any, moved: Any, estimate: Any, move: MoveOptions) -> None:
    """Say which rule was written, and whether --adapt would give a better one."""
    from ..monitoring.adaptation import MIN_ROWS
    from ..rules.class_shares import APPROXIMATE

    place = "the standard output" if move.output == "-" else move.output
    if moved is rule:
        reason = "its metric does not depend on class shares" if estimate.any_moved else "no shares have moved"
        note(f"the rule is unchanged, because {reason}; written to {place}.")
        return
    note(f"{'adapted' if moved.metadata.moved == 'adapted' else 'moved'} rule written to {place}.")
    if not move.adapt and moved.metadata.under_new_shares == APPROXIMATE and estimate.n_rows >= MIN_ROWS:
        note("the rule was moved approximately; these rows are enough to fit it to them with --adapt.")


def _document(rule: Any, estimate: Any, moved: Any, output: str | None) -> dict[str, Any]:
    """Return shares for programs."""
    document = {**estimate.to_dict(), "outputs": _named_outputs(rule, estimate)}
    if output is None:
        return document
    changes = {"changed": moved is not rule, "no_longer_promised": _withdrawn(rule, moved), "words": moved.describe()}
    return {**document, **changes, "output": output}


def _named_outputs(rule: Any, estimate: Any) -> list[dict[str, Any]]:
    """Return the shares of each output, with its name."""
    from .rows import target_names

    outputs = estimate.to_dict()["outputs"]
    return [{**output, "output": name} for output, name in zip(outputs, target_names(rule), strict=True)]


def _print_shares(rule: Any, estimate: Any) -> None:
    say(f"{estimate.n_rows:,} rows without labels, with 95 % intervals:")
    for output in _named_outputs(rule, estimate):
        title = f"{output['output']}: " if rule.multioutput else ""
        result = "class shares have moved" if output["moved"] else "no sign that class shares have moved"
        say(f"{title}{result} (p = {output['p_value']:.3g})")
        print_table(["class", "rows of the fit", "these rows"], list(map(_share_line, output["shares"])))
    for sentence in estimate.notes:
        say(sentence)


def _share_line(share: Mapping[str, Any]) -> list[str]:
    now = f"{share['estimate']:.4f} [{share['low']:.4f}, {share['high']:.4f}]"
    return [str(share["class"]), f"{share['old']:.4f}", now]


# -------------------------------------------------------------------------------------------------------------- expect


@takes(TargetOptions, JudgeOptions, ColumnOptions)
def expect(
    labels: TargetOptions,
    judged: JudgeOptions,
    columns: ColumnOptions,
    rule: Rule,
    table: Table,
    reference: Annotated[
        str,
        typer.Option(
            "--reference",
            metavar="TABLE",
            help="The table of rows with labels from before; use rows that neither the model nor the rule was fitted "
            "to.",
        ),
    ],
    json: Json = False,
) -> None:
    """Estimate metrics of a rule on rows without labels.

    Values have 95 % intervals: if class shares have moved, if other rows are drawn, and for both. A changed relation of
    probabilities and labels cannot be seen. --target, --pos-label and --weight are about the rows of --reference.
    """
    from ..core.progress import Progress
    from ..data.tables.reading import open_file
    from ..monitoring.expectation import expect as estimate_values
    from .rows import read_labels_for_rule, read_proba_for_rule

    _check_apart(table, reference)
    with Progress("expect", 3) as progress:
        progress.stage(f"reading {reference}")
        loaded = _read_rule(rule, columns)
        metrics = metrics_for(judged.metric, judged.cost, loaded, columns.separator)
        opened = open_file(reference, _separator_of(reference, columns), progress.tick)
        rows = read_labels_for_rule(opened, loaded, columns, LabelOptions(**vars(labels)), judged.order)
        progress.stage(f"reading {table}")
        opened = open_file(table, _separator_of(table, columns), progress.tick)
        proba = read_proba_for_rule(loaded, opened, columns, labels.target or (), rows.options["pos_label"])
        progress.stage("estimating")
        options = _expect_options(loaded, judged, rows.options)
        by_name = judged.metric is None and judged.cost is None  # then constraints are estimated, too
        weight = rows.options.get("sample_weight")
        expectation = estimate_values(
            loaded,
            proba,
            None if by_name else metrics,
            reference=(rows.proba, rows.y) if weight is None else (rows.proba, rows.y, weight),
            **options,
        )
    if json:
        print_json(_expectation_document(loaded, expectation))
    else:
        _print_expectation(expectation)


def _separator_of(path: str, columns: ColumnOptions) -> str | None:
    """Return the separator, if a table has one: the two tables may be of different formats."""
    from ..data.tables.formats import Csv, file_format

    return columns.separator if isinstance(file_format(path), Csv) else None


def _expect_options(rule: Any, judged: JudgeOptions, row_options: Mapping[str, Any]) -> dict[str, Any]:
    """Return further arguments of `expect`; for the metric of the rule, as it was fitted."""
    from ..evaluation.arguments import own_average

    options = {
        "average": judged.average or (None if judged.metric else own_average(rule)),
        "abstain": read_abstain(judged.abstain),
        **{name: row_options[name] for name in ("order", "pos_label") if name in row_options},
    }
    return options if judged.metric else with_own_positive(options, rule)


def _check_apart(table: str, reference: str) -> None:
    """Refuse one table in both places."""
    if table == reference == "-":
        raise InvalidParameter(
            "reference",
            problem="the table and --reference cannot both be read from the standard input",
            remedy="pass a file to one of them",
        )
    if Path(table).exists() and Path(reference).exists() and Path(table).samefile(reference):
        raise InvalidParameter(
            "reference",
            problem=f"--reference must be another table than that of the rows without labels, got {reference} for both",
            remedy="if its rows have labels, use metricwise evaluate",
        )


def _expectation_document(rule: Any, expectation: Any) -> dict[str, Any]:
    """Return expected values for programs."""
    values = {name: value.to_dict() for name, value in expectation.items()}
    constraints = {name: value.to_dict() for name, value in expectation.constraints.items()}
    return {
        "rows": expectation.n_rows,
        "reference_rows": expectation.n_reference,
        "metrics": values,
        "constraints": constraints,
        "shares": _named_outputs(rule, expectation.shares),
        "notes": list(expectation.notes),
    }


def _print_expectation(expectation: Any) -> None:
    say(f"{expectation.n_rows:,} rows without labels, {expectation.n_reference:,} with, 95 % intervals:")
    print_table(
        ["metric", "expected", "if shares moved", "if rows moved"],
        [
            [name, interval(value), interval(value.if_shares_moved), interval(value.if_rows_moved)]
            for name, value in {**expectation, **expectation.constraints}.items()
        ],
    )
    for sentence in expectation.notes:
        say(sentence)


# --------------------------------------------------------------------------------------------------------------- rules


def _read_rule(path: str, columns: ColumnOptions, *, any_kind: bool = False) -> Any:
    """Read a rule that decides all sensitive groups alike; one that takes costs of rows only if `any_kind`."""
    from .rows import read_rule

    rule = read_rule(path, any_kind=any_kind)
    if rule.is_partitioned:
        noun = rule.known.noun
        by = "sensitive group" if "sensitive_features" in rule.needs else noun
        raise InvalidParameter(
            "",
            problem=f"the rule decides by {by}, and how the class shares of each {noun} move is not known",
            remedy=f"fit a rule without {noun}s, or one for each {noun}",
            owner=path,
        )
    if columns.sensitive_features:
        raise InvalidParameter(
            "sensitive_features",
            problem="--sensitive-features is only for rules by group, and this rule is not one",
            remedy="leave it out",
        )
    return rule


def _check_calibration(rule: Any, path: str) -> None:
    """Refuse rules that know nothing of the rows that they were fitted to."""
    from ..rules.label_base import LabelRuleBase

    if isinstance(rule, LabelRuleBase):
        raise InvalidParameter(
            "",
            problem="class shares are not estimated for rules of very many labels, of which each has its own",
            remedy="use metricwise evaluate with recent labels",
            owner=path,
        )
    if rule.metadata.calibration is None:
        raise InvalidParameter(
            "",
            problem="the rule keeps no calibration of the rows that it was fitted to; rules by hand and files of "
            "earlier versions have none",
            remedy="fit it again with metricwise fit",
            owner=path,
        )
