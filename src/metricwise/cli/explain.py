"""The command that describes a rule: explain."""

from __future__ import annotations

from typing import Any

from .options import Json, Rule
from .printing import print_json, say

__all__ = ["explain"]


def explain(rule: Rule, json: Json = False) -> None:
    """Describe a rule in plain English.

    Also prints what it was fitted to, if the file contains it.
    """
    from .fitting import classes_document
    from .rows import read_rule

    loaded = read_rule(rule, any_kind=True)
    if json:
        numbers = ("threshold", "class_weight", "bonus", "cut_points", "grades")
        print_json(
            {
                "words": loaded.describe(),
                "facts": loaded.metadata.to_dict(),
                **classes_document(loaded),
                "outputs": loaded.schema.output_names,
                "input": loaded.input,
                **{name: getattr(loaded, name, None) for name in numbers},
            }
        )
        return
    say(loaded.describe())
    for line in _metadata(loaded):
        say(line)


def _metadata(rule: Any) -> list[str]:
    """Say what the rule was fitted to, as far as it knows."""
    from .lists import stored_lists

    metadata, lines = rule.metadata, []
    if metadata.rows is not None:
        value = metadata.value
        worth = f", with a value of {value:.4f} on them" if isinstance(value, float) else ""
        lines.append(f"Fitted to {metadata.rows:,} rows{worth} ({metadata.recipe or 'no recipe'}).")
    lists = stored_lists(rule)
    if lists is not None:
        lines.append(f"Columns of lists: {lists[0]!r} of labels, {lists[1]!r} of their {rule.schema.input.plural}.")
    elif metadata.columns is not None:
        names = [
            f"{target}: {', '.join(map(repr, columns))}"
            for target, columns in zip(metadata.targets or (), metadata.columns, strict=False)
        ]
        lines.append(f"Columns of {rule.schema.input.plural} of {'; '.join(names)}.")
    if metadata.metricwise is not None:
        lines.append(f"Written by metricwise {metadata.metricwise}.")
    return lines
