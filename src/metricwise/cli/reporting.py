"""The command that writes a page about a rule: report."""

from __future__ import annotations

import sys
from typing import Any

from ..core.errors import InvalidParameter
from .errors import note
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
    """Write an HTML report about a rule.

    Its value on labelled rows, what it decides, what changes for whom, and how to apply it, in one self-contained file.
    Use rows that neither the model nor the rule was fitted to.
    """
    from ..evaluation import own_average
    from ..inspection.report import render, summarize, write
    from .evaluate import metrics_for, with_own_positive
    from .rule_rows import read_labels_for_rule, read_rule

    loaded = read_rule(rule)
    if "sensitive_features" in loaded.needs:
        raise InvalidParameter(
            "",
            problem="a rule by group can only be reported in Python, with solution.report(path) after fitting",
            remedy="use metricwise evaluate for its values on these rows",
        )
    metrics = metrics_for(judged, loaded, columns.separator)
    average = judged.average or (None if judged.metric else own_average(loaded))
    options: dict[str, Any] = {"average": average}
    if judged.abstain is not None:
        options["abstain"] = read_abstain(judged.abstain)
    with saved(output, written.force, False, "report", 2) as progress:
        progress.stage(f"reading {table}")
        rows = read_labels_for_rule(table, loaded, columns, labels, judged.order, progress.tick)
        progress.stage("writing")
        options |= rows.options
        options = options if judged.metric else with_own_positive(options, loaded)
        if output == "-":
            sys.stdout.write(render(summarize(loaded, rows.proba, rows.y, metrics, **options)))
        else:
            write(output, loaded, rows.proba, rows.y, metrics, **options)
    if output != "-":
        note(f"the report is in {output}.")
