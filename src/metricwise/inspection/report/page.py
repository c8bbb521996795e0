"""A summary as one page of HTML."""

from __future__ import annotations

import base64
import hashlib
import os
from functools import cache
from importlib.resources import files
from typing import Any
from urllib.parse import quote

import numpy as np

from ...core.errors import MissingDependency
from ...core.files import write_text
from ..cards.numbers import number
from ..cards.svg import Mark, line_chart, scatter_lines
from .summary import summarize

__all__ = ["render", "write"]


def write(
    path: str | os.PathLike[str], found: Any, proba: Any = None, y: Any = None, metrics: Any = None, **options: Any
) -> None:
    """Write an HTML report about a solution or a rule.

    The report is one self-contained file, which is written completely or not at all.

    Parameters
    ----------
    path : path
        Where to write the file.
    found, proba, y, metrics, **options
        As in :func:`summarize`.

    See Also
    --------
    metricwise.Solution.report : Write the report of a solution.
    summarize : The content of the report as a dict.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import metricwise as mw
    >>> from metricwise import report
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = Path(folder.name) / "report.html"
    >>> rule = mw.WeightedRule.from_thresholds(0.3)
    >>> report.write(path, rule, [0.1, 0.2, 0.4, 0.6, 0.8], [0, 0, 1, 0, 1], "recall")
    >>> path.read_text(encoding="utf-8")[:15]
    '<!doctype html>'
    >>> folder.cleanup()
    """
    _template()  # what is missing is said before anything is counted
    write_text(path, render(summarize(found, proba, y, metrics, **options)))


def render(summary: dict[str, Any]) -> str:
    """Return the HTML page of a summary.

    Parameters
    ----------
    summary : dict
        Returned by :func:`summarize`.

    Returns
    -------
    str
        The page.

    See Also
    --------
    write : Write the page to a file.

    Examples
    --------
    >>> import metricwise as mw
    >>> solution = mw.optimize([0.1, 0.3, 0.4, 0.8], [0, 0, 1, 1], "f1")
    >>> mw.report.render(mw.report.summarize(solution))[:15]
    '<!doctype html>'
    """
    script = _text("report.js")
    digest = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
    return str(
        _template().render(
            s=summary,
            style=_charts_style() + _text("report.css"),
            script=script,
            # Nothing is fetched, and no script runs but this one, whatever labels may hold.
            policy=f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; img-src data:",
            path_chart=_path_chart(summary["path"]),
            reliability_chart=_reliability_chart(summary["reliability"]),
            gains_ends=_gains_ends(summary["gains"]),
            rule_file=None if summary["apply"]["json"] is None else quote(summary["apply"]["json"]),
        )
    )


def _template() -> Any:
    try:
        import jinja2
    except ImportError:
        raise MissingDependency("report needs Jinja2: pip install 'metricwise[report]'", owner=None) from None
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    environment.policies["json.dumps_kwargs"] = {"sort_keys": False}  # the first metric is the one that matters
    environment.filters |= {"number": number, "rows": _rows}
    return environment.from_string(_text("report.html.jinja"))


@cache
def _text(name: str) -> str:
    return (files(__package__) / name).read_text(encoding="utf-8")


def _charts_style() -> str:
    """The rules for charts, which cards have too."""
    text = (files("metricwise.inspection.cards") / "style.css").read_text(encoding="utf-8")
    return "".join([line for line in text.splitlines(keepends=True) if line.startswith(".mw-chart")])


def _rows(value: float, signed: bool = False) -> str:
    """Return a weight of rows: a whole number where it is one."""
    whole = abs(value - round(value)) < 1e-6 or abs(value) >= 100
    sign = "+" if signed and abs(value) > 1e-9 else ""
    return (f"{round(value):{sign},d}" if whole else f"{value:{sign},.1f}").replace("-", "−")


def _path_chart(path: dict[str, Any] | None) -> str | None:
    """The first metric, and what is bounded, along the path; the script moves its cursor."""
    if path is None:
        return None
    x = np.array(path["position"])
    name, along = next((name, np.array(values, dtype=float)) for name, values in path["values"].items())
    lines = {name: along, **{key: np.array(values, dtype=float) for key, values in path["bounded"].items()}}
    marks = [Mark(kind, x[at], along[at]) for kind, at in (("argmax", path["plain"]), ("rule", path["chosen"]))]
    if path["kind"] == "threshold":
        ticks, label = [(0.0, "0"), (0.25, "0.25"), (0.5, "0.5"), (0.75, "0.75"), (1.0, "1")], "threshold"
    else:
        ticks, label = [(0.0, "argmax"), (1.0, "rule"), (float(x[-1]), "twice as far")], None
    band = None if path["range"] is None else (path["range"][0], path["range"][1])
    title = (
        f"{name} along the path: {number(along[path['plain']])} at argmax, {number(along[path['chosen']])} at the rule"
    )
    options: dict[str, Any] = {
        "ticks": ticks,
        "title": title,
        "width": 720,
        "height": 240,
        "band": band,
        "label": label,
    }
    return str(line_chart(x, lines, marks, cursor=True, **options))


def _reliability_chart(found: dict[str, Any] | None) -> str | None:
    if found is None:
        return None
    both = {name: found[name] for name in ("before", "after")}
    lines = {name: (own["predicted"], own["observed"]) for name, own in both.items() if own is not None}
    title, labels = "Observed frequency against predicted probability", ("predicted probability", "observed frequency")
    return str(scatter_lines(lines, title=title, labels=labels))


def _gains_ends(gains: dict[str, Any] | None) -> list[float]:
    """Where the bars of gains begin and end."""
    if gains is None or not gains["parts"]:
        return [-1.0, 1.0]
    low = min(0.0, *(part["low"] for part in gains["parts"] if part["low"] is not None), 0.0)
    high = max(0.0, *(part["high"] for part in gains["parts"] if part["high"] is not None), 0.0)
    pad = 0.04 * (high - low) or 1e-3
    return [low - pad, high + pad]
