"""Commands that find rules: fit and trade-off."""

from __future__ import annotations

import sys
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..core.errors import InvalidParameter
from .errors import note, with_options
from .options import AimOptions, ColumnOptions, Json, LabelOptions, OutputOptions, Table, takes
from .printing import interval, print_json, print_table, say, signed
from .targets import Output, saved

if TYPE_CHECKING:
    from .rows import Labelled

__all__ = ["fit", "read_abstain", "trade_off"]


@dataclass(frozen=True)
class FitOptions:
    """What is asked of a rule besides the metric and constraints."""

    confidence: Annotated[
        str,
        typer.Option(
            "--confidence",
            metavar="NUMBER",
            help="Confidence with which the constraints hold on new rows, from 0.5 up to 1; none: they hold on "
            "these rows only.",
        ),
    ] = "0.95"
    group_blind: Annotated[
        bool,
        typer.Option("--group-blind", help="Use one rule for all groups, which does not see the group of a row."),
    ] = False
    unknown_group: Annotated[
        str | None,
        typer.Option(
            "--unknown-group",
            metavar="KIND",
            help="What the rule does about rows of groups that are not in this table: refuse, abstain, or blind, to "
            "decide them by one rule that is fitted without groups. By default, refuse.",
        ),
    ] = None


@takes(LabelOptions, AimOptions, ColumnOptions, OutputOptions, FitOptions)
def fit(
    labels: LabelOptions,
    aim: AimOptions,
    columns: ColumnOptions,
    written: OutputOptions,
    fitting: FitOptions,
    table: Table,
    output: Output,
    json: Json = False,
) -> None:
    """Find the best rule for a metric.

    The table has probabilities and labels. Use probabilities of rows that the model was not trained on: held-out or
    out-of-fold rows.
    """
    from .. import optimize
    from .large import is_large, read_large
    from .rows import read_labelled

    with saved(output, written.force, json, "fit", 1) as progress:
        progress.stage(f"reading {table}")
        if is_large(table) and not columns.sensitive_features:
            rows = read_large(table, columns, labels, aim.classes, aim.order, _class_named(aim))
        else:
            rows = read_labelled(table, columns, labels, aim.classes, aim.order, progress.tick, _class_named(aim))
    arguments = _arguments(aim, rows, columns)
    arguments["sensitive_features"] = _sensitive(arguments.get("sensitive_features"), fitting)
    _say_positive(arguments["metric"], rows)
    solution = optimize(rows.proba, rows.y, confidence=_confidence(fitting.confidence), **arguments)
    solution = replace(solution, rule=solution.rule.with_metadata(**rows.metadata(solution.rule)))
    _write_rule(solution.rule, output, written.force)
    if json:
        print_json({**_document(solution), "output": output})
    elif output != "-":
        _print_solution(solution)
    note(f"the rule is in {output}." if output != "-" else "the rule is on the standard output.")


def _arguments(aim: AimOptions, rows: Labelled, columns: ColumnOptions, against: str | None = None) -> dict[str, Any]:
    """Return what options say, as `optimize` and `trade_off` take it."""
    from .. import Strategy
    from ..goals.spec import GoalSpec
    from .costs import read_costs

    costs = read_costs(aim.cost, rows.known, columns.separator)
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
        "strategy": Strategy(randomized=aim.randomized),
        "random_state": aim.seed,
        **rows.options,
    }


def _sensitive(values: Any, fitting: FitOptions) -> Any:
    """Return the sensitive groups, with whether a rule may use them and what becomes of rows of others."""
    from .. import Sensitive

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


def _abstention(aim: AimOptions, rows: Labelled) -> Any:
    """Return whether the rule may abstain, at which cost and by which label."""
    from .. import Abstention

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


def _class_named(aim: AimOptions) -> str | None:
    """Return the class that the only metric names."""
    from ..metrics.class_names import text_class

    return text_class(aim.metric[0]) if len(aim.metric) == 1 else None


def _metric(given: list[str], targets: tuple[str, ...]) -> Any:
    """Return one metric for all targets, or a metric for each."""
    named = [text.partition("=") for text in given]
    if len(targets) > 1 and all(name in targets and sign for name, sign, _ in named):
        lacking = [target for target in targets if target not in [name for name, _, _ in named]]
        if lacking:
            raise InvalidParameter(
                "metric",
                problem="--metric must be given for each target if it is given for one",
                remedy=f"there is none for {lacking[0]!r}",
            )
        return {name: metric for name, _, metric in named}
    if len(given) > 1:
        raise InvalidParameter(
            "metric",
            problem=f"--metric must be given once, got {len(given)}",
            remedy="use --record METRIC for further metrics to print, or TARGET=METRIC for each of several targets",
        )
    return given[0]


def _say_positive(metric: Any, rows: Labelled) -> None:
    """Say which class a metric of one class is of, where nobody has."""
    from ..data import shown
    from ..metrics.resolution import metric_meant, target_kind

    if rows.options.get("pos_label") is not None or not isinstance(metric, str):
        return
    try:
        wants = metric_meant(
            metric, target_kind(2, len(rows.targets) > 1), class_named=True
        ).metric.traits.needs_positive
    except (ValueError, TypeError):  # which optimize will say
        return
    for name, one in zip(rows.targets, rows.columns, strict=False):
        if wants and not one.single and set(one.classes) in ({0, 1}, {-1, 1}):
            note(f"positive class of {shown(name)}: {shown(max(one.classes))}.")


def read_abstain(text: str | None) -> float | bool | None:
    """Return the cost of an abstention, True for none, None where nothing is said of it."""
    if text is None or text.lower() in ("yes", "true"):
        return None if text is None else True
    try:
        return float(text)
    except ValueError:
        raise InvalidParameter("abstain", problem=f"--abstain must be a cost, or yes, got {text!r}") from None


def _confidence(text: str) -> float | None:
    if text.lower() == "none":
        return None
    try:
        return float(text)
    except ValueError:
        raise InvalidParameter(
            "confidence", problem=f"--confidence must be a number from 0.5 up to 1, or none, got {text!r}"
        ) from None


def _write_rule(rule: Any, output: str, force: bool) -> None:
    from ..data.tables import check_target

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
        "recorded": {name: vars(one) for name, one in solution.recorded.items()},
        "constraints": [{**vars(one), "on_new_rows": numbers(one.on_new_rows)} for one in solution.constraints],
        "threshold": getattr(solution.rule, "threshold", None),
        "classes": list(solution.rule.classes),
        "targets": metadata.targets,
        "columns": metadata.columns,
        "outcome": solution.outcome,
        "status": solution.status,
        "words": solution.rule.describe(),
    }


def _print_solution(solution: Any) -> None:
    from ..inspection.cards.numbers import as_read, losses_known

    metadata = solution.rule.metadata
    losses = losses_known(solution.rule)
    measured = {
        as_read(name, None, losses)[0]: [as_read(name, x, losses)[1] for x in (one.value, one.baseline)]
        for name, one in {metadata.metric: solution, **solution.recorded}.items()
    }
    print_table(
        [f"on these {metadata.rows:,} rows", "rule", "argmax", "difference"],
        [
            [name, f"{value:.4f}", f"{baseline:.4f}", signed(value - baseline)]
            for name, (value, baseline) in measured.items()
        ],
    )
    if solution.value_on_new_rows is not None:
        new = as_read(metadata.metric, solution.value_on_new_rows, losses)[1]
        verb = "saved" if metadata.metric in losses else "over argmax"
        over = "" if solution.gain is None else f", {interval(solution.gain, difference=True)} {verb}"
        say(f"On new rows, with 95 % intervals: {interval(new)}{over}.")
    for one in solution.constraints:
        sure = "" if one.confidence is None else f", satisfied on new rows with a confidence of {one.confidence:.3g}"
        say(f"{one.name}: {one.value:.4f} on these rows{sure}.")
    say(f"\n{solution.rule.describe()}")
    if solution.status:
        say(with_options(solution.status))


@takes(LabelOptions, AimOptions, ColumnOptions)
def trade_off(
    labels: LabelOptions,
    aim: AimOptions,
    columns: ColumnOptions,
    table: Table,
    against: Annotated[str, typer.Option("--against", metavar="METRIC", help="The metric that is bounded.")],
    ceiling: Annotated[bool, typer.Option("--ceiling", help="Bound it from above.")] = False,
    points: Annotated[int, typer.Option("--points", metavar="NUMBER", help="Number of bounds to try.")] = 10,
    json: Json = False,
) -> None:
    """Trace the best of one metric against another.

    Prints the best value of --metric at every bound on --against: how much of one must be given up for the other.
    """
    from .. import trade_off as trace
    from ..core.progress import Progress
    from .rows import read_labelled

    if columns.sensitive_features:
        raise InvalidParameter(
            "sensitive_features", problem="--sensitive-features does not affect a trade-off", remedy="leave it out"
        )
    with Progress("trade-off", 2) as progress:
        progress.stage(f"reading {table}")
        rows = read_labelled(table, columns, labels, aim.classes, aim.order, progress.tick, _class_named(aim))
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
        found = trace(rows.proba, rows.y, ceiling=ceiling, n_points=points, **arguments)
    if json:
        baseline = {found.metric: found.baseline[0], found.against: found.baseline[1], **found.recorded_baseline}
        print_json({"points": found.to_dict(), "argmax": baseline})
        return
    traced = found.to_dict()
    lines = zip(*(values.tolist() for values in traced.values()), strict=True)
    print_table(list(traced), [[f"{value:.4f}" for value in line] for line in lines])
