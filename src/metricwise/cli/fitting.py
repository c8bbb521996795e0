"""Commands that find rules: fit and trade-off."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..core.errors import InvalidParameter
from .options import (
    AimOptions,
    ColumnOptions,
    Json,
    LabelOptions,
    ListOptions,
    Output,
    OutputOptions,
    Table,
    read_abstain,
    read_labels_per_row,
    saved,
    takes,
    with_options,
)
from .printing import interval, note, print_json, print_table, say, signed

if TYPE_CHECKING:
    from .rows import LabelledRows

__all__ = ["classes_document", "fit", "trade_off", "write_rule"]


@dataclass(frozen=True)
class FitOptions:
    """What is asked of a rule besides the metric and constraints."""

    confidence: Annotated[
        str,
        typer.Option(
            "--confidence",
            metavar="NUMBER",
            help="Confidence with which the constraints hold on new data, at least 0.5 and below 1; none: on the given "
            "rows only.",
        ),
    ] = "0.95"
    guarantee: Annotated[
        str | None,
        typer.Option(
            "--guarantee",
            metavar="KIND",
            help="exact: the confidence holds for any distribution of independent rows that the model has not seen.",
        ),
    ] = None
    unlabelled: Annotated[
        str | None,
        typer.Option(
            "--unlabelled",
            metavar="TABLE",
            help="With --guarantee: a table of other rows with the same columns; labels are not needed.",
        ),
    ] = None
    group_blind: Annotated[
        bool,
        typer.Option("--group-blind", help="Use one rule for all groups, which does not use the group of a row."),
    ] = False
    unknown_group: Annotated[
        str | None,
        typer.Option(
            "--unknown-group",
            metavar="KIND",
            help="How to decide rows of groups that are not in this table: refuse (the default), abstain, or blind, "
            "for a rule fitted without groups.",
        ),
    ] = None


@takes(LabelOptions, AimOptions, ColumnOptions, ListOptions, OutputOptions, FitOptions)
def fit(
    labels: LabelOptions,
    aim: AimOptions,
    columns: ColumnOptions,
    lists: ListOptions,
    written: OutputOptions,
    fitting: FitOptions,
    table: Table,
    output: Output,
    json: Json = False,
) -> None:
    """Find the best rule for a metric.

    The table has probabilities and labels, or logits or scores with --input. Use rows that the model was not trained
    on: held-out or out-of-fold rows.
    """
    from ..api.optimization import optimize
    from .rows import in_batches, part_columns, read_unlabelled

    with saved(output, written.force, json, "fit", 1) as progress:
        progress.stage(f"reading {table}")
        batches = in_batches(table) and not part_columns(columns)
        rows = _read_rows(table, columns, lists, labels, aim, progress.tick, batches=batches)
        unlabelled = None if fitting.unlabelled is None else read_unlabelled(fitting.unlabelled, rows, columns)
    arguments = _arguments(aim, rows, columns) | {"guarantee": fitting.guarantee, "unlabelled": unlabelled}
    arguments["sensitive_features"] = _sensitive(arguments.get("sensitive_features"), fitting)
    _say_positive(arguments["metric"], rows)
    solution = optimize(rows.proba, rows.y, confidence=_confidence(fitting.confidence), **arguments)
    solution = replace(solution, rule=solution.rule.with_metadata(**rows.metadata(solution.rule)))
    write_rule(solution.rule, output, written.force)
    if json:
        print_json({**_document(solution), "output": output})
    elif output != "-":
        _print_solution(solution)
    note(f"rule written to {output}." if output != "-" else "rule written to the standard output.")


def _read_rows(
    table: str,
    columns: ColumnOptions,
    lists: ListOptions,
    labels: LabelOptions,
    aim: AimOptions,
    tick: Any,
    *,
    batches: bool = False,
) -> LabelledRows:
    from ..metrics.class_names import text_class
    from .rows import read_labelled

    limited = read_labels_per_row(aim.labels_per_row) is not None
    if lists.names() is not None:
        return _read_lists(table, lists, columns, labels, aim)
    class_named = text_class(aim.metric[0]) if len(aim.metric) == 1 else None
    listed = {"classes": aim.classes, "order": aim.order}
    rows = read_labelled(table, columns, labels, listed, tick, class_named, batches=batches)
    if limited and len(rows.targets) == 1 and getattr(rows.y, "ndim", 1) != 2:
        raise InvalidParameter(
            "labels_per_row",
            problem="--labels-per-row needs several targets, or lists of labels named by --indices, got one target",
        )
    return rows


def _read_lists(
    table: str, lists: ListOptions, columns: ColumnOptions, labels: LabelOptions, aim: AimOptions
) -> LabelledRows:
    from .lists import read_lists_to_fit

    names = ("cost", "classes", "order", "abstain", "abstain_label")
    others = {f"--{name.replace('_', '-')}": getattr(aim, name) for name in names}
    return read_lists_to_fit(table, lists, columns, labels, others)


def _arguments(
    aim: AimOptions, rows: LabelledRows, columns: ColumnOptions, against: str | None = None
) -> dict[str, Any]:
    """Return what options say, as `optimize` and `trade_off` take it."""
    from ..fitting.strategy import Strategy
    from ..goals.spec import GoalSpec
    from .costs import read_costs

    costs = read_costs(aim.cost, rows.labels, columns.separator)
    bounded = {} if against is None else {"against": costs.metric(against)}
    metric, record = costs.metric(_metric(aim.metric, rows.targets)), costs.metrics(aim.record)
    costs.check_used()
    same = {field.name: getattr(aim, field.name) for field in fields(GoalSpec) if hasattr(aim, field.name)}
    return {
        **same,  # options that need no reading are passed on by their names
        "metric": metric,
        **bounded,
        "record": record,
        "abstain": _abstention(aim, rows),
        "labels_per_row": read_labels_per_row(aim.labels_per_row),
        "strategy": Strategy(randomized=aim.randomized),
        "random_state": aim.seed,
        **rows.options,
    }


def _sensitive(values: Any, fitting: FitOptions) -> Any:
    """Return the sensitive groups, with whether a rule may use them and what becomes of rows of others."""
    from ..data.row_spec import Sensitive

    unknown, group_blind = fitting.unknown_group, fitting.group_blind
    if values is None:
        if group_blind:
            raise InvalidParameter(
                "group_blind",
                problem="--group-blind needs --sensitive-features, which is not given",
                remedy="leave it out",
            )
        if unknown is not None:
            raise InvalidParameter(
                "unknown_group",
                problem="--unknown-group needs --sensitive-features, which is not given",
                remedy="leave it out",
            )
        return None
    if group_blind and unknown is not None:
        raise InvalidParameter(
            "unknown_group",
            problem="--unknown-group must be left out with --group-blind, which decides rows of any group",
        )
    if unknown not in (None, "refuse", "abstain", "blind"):
        raise InvalidParameter(
            "unknown_group", problem=f"--unknown-group must be refuse, abstain or blind, got {unknown!r}"
        )
    return Sensitive(values, unknown or "refuse", not group_blind)


def _abstention(aim: AimOptions, rows: LabelledRows) -> Any:
    """Return whether the rule may abstain, at which cost and by which label."""
    from ..metrics.abstention import Abstention

    cost = read_abstain(aim.abstain)
    if aim.abstain_label is None:
        return cost
    if cost is None:
        raise InvalidParameter(
            "abstain_label",
            problem="--abstain-label is only for rules that may abstain",
            remedy="pass --abstain yes or the cost of an abstention as well",
        )
    return Abstention(cost, rows.label(aim.abstain_label))


def _metric(texts: list[str], targets: tuple[str, ...]) -> Any:
    """Return one metric for all targets, or a metric for each."""
    named = [text.partition("=") for text in texts]
    if len(targets) > 1 and all(name in targets and sign for name, sign, _ in named):
        lacking = [target for target in targets if target not in [name for name, _, _ in named]]
        if lacking:
            raise InvalidParameter(
                "metric",
                problem="--metric must be given for each target if it is given for one",
                remedy=f"there is none for {lacking[0]!r}",
            )
        return {name: metric for name, _, metric in named}
    if len(texts) > 1:
        raise InvalidParameter(
            "metric",
            problem=f"--metric must be given once, got {len(texts)}",
            remedy="use --record METRIC for further metrics to print, or TARGET=METRIC for each of several targets",
        )
    return texts[0]


def _say_positive(metric: Any, rows: LabelledRows) -> None:
    """Report the positive class of a metric of one class, if it was not given."""
    from ..core.errors import shown
    from ..metrics.resolution import metric_meant, target_kind

    if rows.options.get("pos_label") is not None or not isinstance(metric, str):
        return
    try:
        wants = metric_meant(
            metric, target_kind(2, len(rows.targets) > 1), class_named=True
        ).metric.traits.needs_positive
    except (ValueError, TypeError):  # which optimize will say
        return
    for name, columns in zip(rows.targets, rows.columns, strict=False):
        if wants and not columns.single and set(columns.classes) in ({0, 1}, {-1, 1}):
            note(f"positive class of {shown(name)}: {shown(max(columns.classes))}.")


def _confidence(text: str) -> float | None:
    if text.lower() == "none":
        return None
    try:
        return float(text)
    except ValueError:
        raise InvalidParameter(
            "confidence", problem=f"--confidence must be a number from 0.5 up to 1, or none, got {text!r}"
        ) from None


def write_rule(rule: Any, output: str, force: bool) -> None:
    """Write a rule to a file, completely or not at all, or to the standard output."""
    from ..data.tables.writing import check_target

    if output == "-":
        sys.stdout.write(rule.to_json())
        return
    check_target(output, force=force)
    rule.to_json(output)


def _document(solution: Any) -> dict[str, Any]:
    """Return a solution for programs."""
    metadata = solution.rule.metadata

    def numbers(estimate: Any) -> dict[str, float] | None:
        return None if estimate is None else {key: getattr(estimate, key) for key in ("estimate", "low", "high")}

    return {
        "metric": metadata.metric,
        "average": metadata.average,
        "rows": metadata.rows,
        "value": solution.value,
        "baseline": solution.baseline,
        "gain": numbers(solution.gain),
        "value_on_new_rows": numbers(solution.value_on_new_rows),
        "recorded": {name: vars(result) for name, result in solution.recorded.items()},
        "constraints": [
            {**vars(result), "on_new_rows": numbers(result.on_new_rows)} for result in solution.constraints
        ],
        "threshold": getattr(solution.rule, "threshold", None),
        **classes_document(solution.rule),
        "input": solution.rule.input,
        "targets": metadata.targets,
        "columns": metadata.columns,
        "outcome": solution.outcome,
        "status": solution.status,
        "words": solution.rule.describe(),
    }


def classes_document(rule: Any) -> dict[str, Any]:
    """Return the classes of each output for programs; of very many labels the pair that all have, and their number."""
    from ..rules.label_base import LabelRuleBase

    if not isinstance(rule, LabelRuleBase):
        return {"classes": list(rule.schema.classes)}
    return {"classes": [rule.classes[0]], "n_labels": rule.n_labels, "labels_per_row": rule.labels_per_row}


def _print_solution(solution: Any) -> None:
    from ..inspection.summary import summarize_result
    from ..inspection.text import negated

    summary = summarize_result(solution)
    figures = summary["figures"]
    metrics = [{"name": summary["metric"], **figures}, *summary["recorded"]]
    print_table(
        [f"on the given {solution.rule.metadata.rows:,} rows", "rule", "argmax", "difference"],
        [
            [metric["name"], f"{value:.4f}", f"{baseline:.4f}", signed(value - baseline)]
            for metric in metrics
            for value, baseline in [[math.nan if metric[key] is None else metric[key] for key in ("value", "baseline")]]
        ],
    )
    if solution.value_on_new_rows is not None:
        new, title = solution.value_on_new_rows, "gain over argmax"
        if figures["lower_is_better"]:
            new, title = negated(new), "saving over argmax"
        gain = "" if solution.gain is None else f", {title} {interval(solution.gain, difference=True)}"
        say(f"Estimated on new data (95 % intervals): {interval(new)}{gain}.")
    for result in solution.constraints:
        verb = "satisfied" if result.guarantee is None else "guaranteed"
        sure = "" if result.confidence is None else f", {verb} on new data with confidence {result.confidence:.3g}"
        where = "on the given rows" if result.guarantee is None else "on the rows that tested it"
        say(f"{result.name}: {result.value:.4f} {where}{sure}.")
    say(f"\n{solution.rule.describe()}")
    if solution.status:
        say(with_options(solution.status))


@takes(LabelOptions, AimOptions, ColumnOptions, ListOptions)
def trade_off(
    labels: LabelOptions,
    aim: AimOptions,
    columns: ColumnOptions,
    lists: ListOptions,
    table: Table,
    against: Annotated[str, typer.Option("--against", metavar="METRIC", help="The metric that is bounded.")],
    ceiling: Annotated[bool, typer.Option("--ceiling", help="Bound it from above.")] = False,
    points: Annotated[int, typer.Option("--points", metavar="NUMBER", help="Number of bounds to try.")] = 10,
    json: Json = False,
) -> None:
    """Compute the trade-off between two metrics.

    Prints the best value of --metric at each of several bounds on --against.
    """
    from ..api.frontier import trade_off as trace
    from ..core.progress import Progress

    if columns.sensitive_features:
        raise InvalidParameter(
            "sensitive_features", problem="--sensitive-features does not affect a trade-off", remedy="leave it out"
        )
    if columns.segments:
        raise InvalidParameter("segments", problem="trade-off does not support --segments", remedy="leave it out")
    with Progress("trade-off", 2) as progress:
        progress.stage(f"reading {table}")
        rows = _read_rows(table, columns, lists, labels, aim, progress.tick)
        arguments = _arguments(aim, rows, columns, against)
        for name in ("groups", "time"):
            if getattr(labels, name) is not None:
                raise InvalidParameter("", problem=f"--{name} does not affect a trade-off", remedy="leave it out")
        if labels.weight_kind != "importance":
            raise InvalidParameter(
                "weight_kind", problem="--weight-kind does not affect a trade-off", remedy="leave it out"
            )
        arguments.pop("groups", None)
        progress.stage("tracing")
        frontier = trace(rows.proba, rows.y, ceiling=ceiling, n_points=points, **arguments)
    if json:
        baseline = {
            frontier.metric: frontier.baseline[0],
            frontier.against: frontier.baseline[1],
            **frontier.recorded_baseline,
        }
        print_json({"points": frontier.to_dict(), "argmax": baseline})
        return
    traced = frontier.to_dict()
    lines = zip(*(values.tolist() for values in traced.values()), strict=True)
    print_table(list(traced), [[f"{value:.4f}" for value in line] for line in lines])
