"""Commands that judge rules on rows with labels: evaluate, compare and report."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from typing import Annotated, Any

import typer

from ..core.errors import InvalidParameter
from .options import (
    ColumnOptions,
    Json,
    JudgeOptions,
    LabelOptions,
    ListOptions,
    Output,
    OutputOptions,
    Rule,
    Table,
    read_abstain,
    saved,
    takes,
    with_options,
)
from .printing import interval, note, print_json, print_table, say

__all__ = ["compare", "evaluate", "metrics_for", "report", "with_own_positive"]


@takes(LabelOptions, JudgeOptions, ColumnOptions, ListOptions)
def evaluate(
    labels: LabelOptions,
    judged: JudgeOptions,
    columns: ColumnOptions,
    lists: ListOptions,
    rule: Rule,
    table: Table,
    json: Json = False,
) -> None:
    """Evaluate metrics of a rule and of argmax.

    Values have 95 % intervals. Use rows that neither the model nor the rule was fitted to.
    """
    from .rows import read_rule

    _judge((read_rule(rule), None), "argmax", table, columns, lists, labels, judged, json)


@dataclass(frozen=True)
class OtherOptions:
    """What a rule is compared with."""

    against: Annotated[str | None, typer.Option("--against", metavar="RULE", help="The other rule.")] = None
    threshold: Annotated[
        list[str] | None,
        typer.Option(
            "--threshold",
            metavar="NUMBER",
            help="Instead of another rule: a threshold on the probability of the positive class, or on its log-odds or "
            "score as the rule was fitted; for several outputs, OUTPUT=NUMBER for each.",
        ),
    ] = None
    class_weights: Annotated[
        str | None,
        typer.Option(
            "--class-weights",
            metavar="CLASS=NUMBER,...",
            help="Instead of another rule: weights by which the probabilities are multiplied.",
        ),
    ] = None


@takes(LabelOptions, JudgeOptions, ColumnOptions, ListOptions, OtherOptions)
def compare(
    labels: LabelOptions,
    judged: JudgeOptions,
    columns: ColumnOptions,
    lists: ListOptions,
    other: OtherOptions,
    rule: Rule,
    table: Table,
    json: Json = False,
) -> None:
    """Compare two rules on the same rows.

    The other rule may be given by a threshold or class weights, or belong to another model: each rule uses the columns
    that it was fitted to. The interval of the difference accounts for both rules being evaluated on the same rows.
    """
    from .rows import read_rule

    loaded = read_rule(rule)
    against, threshold, weights = other.against, other.threshold, other.class_weights
    others = [name for name in (against, threshold, weights) if name]
    if len(others) != 1:
        raise InvalidParameter(
            "against",
            problem="pass exactly one of --against RULE, --threshold or --class-weights",
        )
    if against is not None:
        rival, title = read_rule(against), against
    elif threshold:
        rival, title = _by_thresholds(loaded, threshold, labels.pos_label), f"threshold {', '.join(threshold)}"
    else:
        assert weights is not None
        rival, title = _by_weights(loaded, weights), f"weights {weights}"
    _judge((loaded, rival), title, table, columns, lists, labels, judged, json)


def _by_thresholds(rule: Any, texts: list[str], pos_label: list[str] | None) -> Any:
    """Return the rule of thresholds for the outputs and classes of another rule."""
    from ..core.labels import python_labels
    from ..data.columns import match_label
    from ..rules.label_base import LabelRuleBase
    from ..rules.weighted import WeightedRule
    from .rows import target_names

    if isinstance(rule, LabelRuleBase):
        if len(texts) > 1:
            raise InvalidParameter(
                "threshold", problem=f"--threshold must be given once for very many labels, got {len(texts)}"
            )
        return _number(texts[0], "--threshold")
    classes = [python_labels(labels) for labels in rule.classes]
    if max(map(len, classes)) > 2:
        raise InvalidParameter(
            "threshold",
            problem=f"--threshold is only for two classes, but the rule has {max(map(len, classes))}",
            remedy="use --class-weights or --against",
        )
    positive = (
        None
        if not pos_label
        else [match_label(text, output_labels) for text, output_labels in zip(pos_label, classes, strict=False)]
    )
    if not rule.multioutput:
        numbers: Any = _number(texts[0], "--threshold")
        if len(texts) > 1:
            raise InvalidParameter(
                "threshold", problem=f"--threshold must be given once for a single output, got {len(texts)}"
            )
        label = positive and positive[0]
        return WeightedRule.from_thresholds(numbers, classes=classes[0], pos_label=label, **_input_of(rule))
    names, pairs = target_names(rule), [text.partition("=") for text in texts]
    if sorted(name for name, _, _ in pairs) != sorted(names):
        raise InvalidParameter(
            "threshold",
            problem=f"--threshold must be given as OUTPUT=NUMBER for each of the outputs {', '.join(names)}",
        )
    thresholds = {name: _number(text, "--threshold") for name, _, text in pairs}
    return WeightedRule.from_thresholds(
        [thresholds[name] for name in names],
        classes=classes,
        pos_label=positive[0] if positive and len(positive) == 1 else positive,
        output_names=rule.schema.output_names,
        **_input_of(rule),
    )


def _input_of(rule: Any) -> dict[str, str]:
    """Return what the numbers of rows are, if they are no probabilities."""
    return {"input": rule.input} if rule.schema.input.is_logits else {}


def _by_weights(rule: Any, weight_list: str) -> Any:
    """Return the rule of class weights for the classes of another rule, and for what that was fitted to."""
    import numpy as np

    from ..core.labels import python_labels
    from ..data.columns import match_label
    from ..rules.calibration import TemperatureScaling
    from ..rules.weighted import WeightedRule

    if rule.multioutput:
        raise InvalidParameter(
            "class_weights", problem="--class-weights is only for rules with a single output", remedy="use --against"
        )
    if rule.schema.input.is_scores:
        raise InvalidParameter(
            "class_weights",
            problem="--class-weights multiplies probabilities, but the rule was fitted to scores",
            remedy="use --against",
        )
    classes = python_labels(rule.classes[0])
    pairs = [text.rpartition("=") for text in weight_list.split(",")]
    weights = {match_label(name, classes): _number(text, "--class-weights") for name, _, text in pairs}
    weighted = WeightedRule.from_weights(weights, classes=classes)
    if not rule.schema.input.is_logits:
        return weighted
    softmax = TemperatureScaling(np.ones(1), np.zeros((1, len(classes))), floor=0.0)
    return replace(weighted, link=softmax, input=rule.input)


def _number(text: str, option: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidParameter("", problem=f"{option} must hold numbers, got {text!r}") from None


def _judge(
    rules: tuple[Any, Any],
    title: str,
    table: str,
    columns: ColumnOptions,
    lists: ListOptions,
    labels: LabelOptions,
    judged: JudgeOptions,
    json: bool,
) -> None:
    from ..core.progress import Progress
    from ..data.tables.reading import open_file
    from ..evaluation import evaluate as judge
    from ..evaluation.arguments import own_average
    from ..rules.base import Rule as LoadedRule
    from ..rules.label_base import LabelRuleBase
    from .lists import read_lists_for_rule, read_other_lists, table_for_rule
    from .rows import read_labels_for_rule, read_other_columns

    with Progress("evaluate", 2) as progress:
        progress.stage(f"reading {table}")
        of_lists = table_for_rule(table, rules[0], lists, columns)
        if of_lists is not None:
            rows = read_lists_for_rule(of_lists, rules[0], labels, judged.order)
            other_proba = read_other_lists(of_lists, rules[1], lists)
        else:
            opened = open_file(table, columns.separator, progress.tick)
            rows = read_labels_for_rule(opened, rules[0], columns, labels, judged.order)
            other_proba = None
            if isinstance(rules[1], LoadedRule):
                other_proba = read_other_columns(opened, rules[1], rules[0], columns)
        progress.stage("judging")
        arguments = {
            "against": rules[1],
            "average": judged.average or (None if judged.metric else own_average(rules[0])),
            "abstain": read_abstain(judged.abstain),
            **rows.options,
        }
        metrics = metrics_for(judged.metric, judged.cost, rules[0], columns.separator)
        arguments = arguments if judged.metric else with_own_positive(arguments, rules[0])
        if other_proba is None:
            evaluation = judge(rules[0], rows.proba, rows.y, metrics, **arguments)
        else:
            models = {"rule": (rules[0], rows.proba), "other rule": (arguments.pop("against"), other_proba)}
            evaluation = judge(models, rows.y, metrics, **arguments)
    for text in evaluation.notes if labels.time is not None or isinstance(rules[0], LabelRuleBase) else ():
        note(with_options(text))
    if json:
        print_json({"rows": evaluation.n_rows, "against": title, "metrics": evaluation.to_dict()})
        return
    say(f"{evaluation.n_rows:,} rows, with 95 % intervals:")
    print_table(
        ["metric", "rule", title, "difference"],
        [
            [name, interval(result.value), interval(result.baseline), interval(result.difference, difference=True)]
            for name, result in evaluation.items()
        ],
    )


@takes(LabelOptions, JudgeOptions, ColumnOptions, ListOptions, OutputOptions)
def report(
    labels: LabelOptions,
    judged: JudgeOptions,
    columns: ColumnOptions,
    lists: ListOptions,
    written: OutputOptions,
    rule: Rule,
    table: Table,
    output: Output,
) -> None:
    """Write an HTML report about a rule.

    The report shows its value on labelled rows, the rule, the decisions that change, and how to apply it, in one
    self-contained file. Use rows that neither the model nor the rule was fitted to.
    """
    from ..data.tables.reading import open_file
    from ..evaluation.arguments import own_average
    from ..inspection.report import render, summarize, write
    from .lists import read_lists_for_rule, table_for_rule
    from .rows import read_labels_for_rule, read_rule

    loaded = read_rule(rule)
    if loaded.is_partitioned:
        raise InvalidParameter(
            "",
            problem=f"a rule by {loaded.known.noun} can only be reported in Python, with solution.report(path) after "
            "fitting",
            remedy="use metricwise evaluate for its values on these rows",
        )
    metrics = metrics_for(judged.metric, judged.cost, loaded, columns.separator)
    average = judged.average or (None if judged.metric else own_average(loaded))
    options: dict[str, Any] = {"average": average}
    if judged.abstain is not None:
        options["abstain"] = read_abstain(judged.abstain)
    with saved(output, written.force, False, "report", 2) as progress:
        progress.stage(f"reading {table}")
        of_lists = table_for_rule(table, loaded, lists, columns)
        if of_lists is not None:
            rows = read_lists_for_rule(of_lists, loaded, labels, judged.order)
        else:
            opened = open_file(table, columns.separator, progress.tick)
            rows = read_labels_for_rule(opened, loaded, columns, labels, judged.order)
        progress.stage("writing")
        options |= rows.options
        options = options if judged.metric else with_own_positive(options, loaded)
        if output == "-":
            sys.stdout.write(render(summarize(loaded, rows.proba, rows.y, metrics, **options)))
        else:
            write(output, loaded, rows.proba, rows.y, metrics, **options)
    if output != "-":
        note(f"report written to {output}.")


def metrics_for(names: list[str] | None, cost: str | None, rule: Any, separator: str | None = None) -> list[Any]:
    """Return metrics: those given, each for all outputs, or one for each of them; else the one that a rule is for."""
    from ..core.labels import python_labels
    from .costs import read_costs

    costs = read_costs(cost, python_labels(rule.classes[0]), separator)
    metrics = costs.metrics(_metric_names(names, rule))
    assert metrics is not None
    costs.check_used()
    return metrics


def _metric_names(texts: list[str] | None, rule: Any) -> list[Any]:
    """Return the names of metrics, a dict of those of each output among them."""
    from .rows import target_names

    if texts:
        named = [text.partition("=") for text in texts]
        if sorted(name for name, sign, _ in named if sign) == sorted(target_names(rule)):
            return [{name: metric for name, _, metric in named}]
        return list(texts)
    name = rule.metadata.metric
    if not isinstance(name, str):
        raise InvalidParameter(
            "metric", problem="the rule does not name the metric that it was fitted for", remedy="pass --metric"
        )
    if " (" in name:
        raise InvalidParameter(
            "metric", problem=f"the rule was fitted for {name}", remedy="pass --metric TARGET=METRIC for each output"
        )
    note(f"metric: {name}, which the rule was fitted for.")
    return [name]


def with_own_positive(options: dict[str, Any], rule: Any) -> dict[str, Any]:
    """Return options with the positive class that a rule was fitted for, unless they name one."""
    return options if options.get("pos_label") is not None else {**options, "pos_label": rule.metadata.pos_label}
