"""The command that writes a page about a rule: report."""

from __future__ import annotations

import sys
from typing import Any

from .exits import note
from .fitting import read_abstain
from .options import ColumnOptions, JudgeOptions, LabelOptions, OutputOptions, Rule, Table, takes
from .targets import Output, saved

__all__ = ["report"]


@takes(LabelOptions, JudgeOptions, ColumnOptions, OutputOptions)
def report(
    labels: LabelOptions,
    judged: JudgeOptions,
    columns: ColumnOptions,
    written: OutputOptions,
    rule: Rule,
    table: Table,
    output: Output,
) -> None:
    """Write a page about a rule.

    What it is worth on rows with labels, what it decides, what changes for whom, and how to apply it: one HTML file
    that fetches nothing. Give rows that neither the model nor the rule has seen.
    """
    from .. import GroupedRule
    from ..report import render, summarize, write
    from .judging import metrics_for, own_average
    from .rule_rows import read_labels_for_rule, read_rule

    loaded = read_rule(rule)
    if isinstance(loaded, GroupedRule):
        raise ValueError(
            "a rule by group is reported on where it is fitted, by solution.report(path) in Python; evaluate says what "
            "it is worth here."
        )
    metrics = metrics_for(judged.metric, loaded)
    average = judged.average or (None if judged.metric else own_average(loaded))
    options: dict[str, Any] = {"average": average, "zero_division": judged.zero_division}
    if judged.abstain is not None:
        options["abstain"] = read_abstain(judged.abstain)
    with saved(output, written.force, False, "report", 2) as progress:
        progress.stage(f"reading {table}")
        rows = read_labels_for_rule(table, loaded, columns, labels, judged.ordered, progress.tick)
        progress.stage("writing")
        options |= rows.options
        if output == "-":
            sys.stdout.write(render(summarize(loaded, rows.proba, rows.y, metrics, **options)))
        else:
            write(output, loaded, rows.proba, rows.y, metrics, **options)
    if output != "-":
        note(f"the report is in {output}.")
