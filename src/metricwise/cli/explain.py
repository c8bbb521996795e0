"""Commands that look at what there is: explain and metrics."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from .options import Json, Rule
from .printing import print_json, print_table, say

__all__ = ["explain", "metrics"]


def explain(rule: Rule, json: Json = False) -> None:
    """Describe a rule in plain English.

    And what it was fitted to, as far as its file says.
    """
    from .rule_rows import read_rule

    loaded = read_rule(rule, any_kind=True)
    if json:
        numbers = ("threshold", "class_weight", "bonus", "cut_points", "grades")
        print_json(
            {
                "words": loaded.describe(),
                "facts": loaded.metadata.to_dict(),
                "classes": list(loaded.schema.classes),
                "outputs": loaded.schema.output_names,
                **{name: getattr(loaded, name, None) for name in numbers},
            }
        )
        return
    say(loaded.describe())
    for line in _metadata(loaded):
        say(line)


def _metadata(rule: Any) -> list[str]:
    """Say what the rule was fitted to, as far as it knows."""
    metadata, lines = rule.metadata, []
    if metadata.rows is not None:
        value = metadata.value
        worth = f", with a value of {value:.4f} on them" if isinstance(value, float) else ""
        lines.append(f"Fitted to {metadata.rows:,} rows{worth} ({metadata.recipe or 'no recipe'}).")
    if metadata.columns is not None:
        names = [
            f"{target}: {', '.join(map(repr, columns))}"
            for target, columns in zip(metadata.targets or (), metadata.columns, strict=False)
        ]
        lines.append(f"Columns of probabilities of {'; '.join(names)}.")
    if metadata.metricwise is not None:
        lines.append(f"Made with metricwise {metadata.metricwise}.")
    return lines


def metrics(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="One metric, in detail.")] = None,
    json: Json = False,
) -> None:
    """List the metrics there are.

    What each of them is, and how its best rule is found.
    """
    from .catalogue import catalogue, entry

    found = catalogue() if name is None else [entry(name)]
    if json:
        print_json({"metrics": [vars(one) for one in found]})
    elif name is None:
        print_table(
            ["metric", "what it is", "how it is maximised"], [[one.name, one.about, one.optimum] for one in found]
        )
        say(
            "The default makes rules for new rows: with two classes it is near the best threshold of the rows given, "
            "not always at it. In addition to these names, f2, f0.5 and so on are F-measures, scikit-learn's scorer "
            "names have the same meaning as there, and a metric of one class may name the class: recall[urgent]."
        )
    else:
        say(f"{found[0].name}: {found[0].about}\n{found[0].details}\nIts best rule: {found[0].optimum}.")
