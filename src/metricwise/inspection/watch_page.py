"""The page of a watch: its summary as one HTML file that fetches nothing and runs nothing.

Must not compute anything of a watch.
"""

from __future__ import annotations

import os
from typing import Any

from ..core.files import write_text
from .charts import promise_chart, shares_chart
from .page import load_template, page_style

__all__ = ["render_watch", "write_watch_page"]

_TEMPLATE = "watch.html.jinja"
_MAX_LINES = 4  # shares in a chart, which differ in their dashes
_STYLE = """.mw-chart .mw-broken{fill:var(--warm);fill-opacity:.25}
.key .k-broken::before{background:rgba(var(--w),.35)}
.key .k-dot::before{width:9px;height:9px;border:2px solid var(--ink)}
.key .k-3::before{border-top-style:dashed;border-top-width:1px}
"""


def write_watch_page(path: str | os.PathLike[str], summary: dict[str, Any]) -> None:
    """Write the page of the summary of a watch, completely or not at all."""
    write_text(path, render_watch(summary))


def render_watch(summary: dict[str, Any]) -> str:
    """Return the HTML page of the summary of a watch."""
    history = summary["history"]
    batches = history["last"]
    return str(
        load_template(_TEMPLATE).render(
            s=summary,
            style=page_style() + _STYLE,
            policy="default-src 'none'; style-src 'unsafe-inline'; img-src data:",
            charts=[promise_chart(promise, batches) for promise in summary["promises"]],
            outputs=[_output(output, place, batches) for place, output in enumerate(history["outputs"])],
        )
    )


def _output(output: dict[str, Any], place: int, batches: list[int]) -> dict[str, Any]:
    """Return the title of an output, its most varied decisions and their chart."""
    lines = [[row[at] for row in output["shares"]] for at in range(len(output["decisions"]))]
    varied = sorted(range(len(lines)), key=lambda at: -_span(lines[at]))[:_MAX_LINES]
    kept = sorted(varied)
    return {
        "title": str(place) if output["name"] is None else output["name"],
        "decisions": [output["decisions"][at] for at in kept],
        "more": len(lines) - len(kept),
        "chart": shares_chart([lines[at] for at in kept], batches),
    }


def _span(values: list[float | None]) -> float:
    numbers = [value for value in values if value is not None]
    return max(numbers) - min(numbers) if numbers else 0.0
