"""Reports: a summary with exports of the rule, rendered as one HTML page that fetches nothing.

Must not count rows.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from typing import Any
from urllib.parse import quote

from .._version import __version__
from ..core.errors import Refusal
from ..core.files import write_text
from ..export.python_source import to_python
from ..export.sql import to_sql
from ..rules.base import Rule
from ..rules.label_base import LabelRuleBase
from .charts import path_chart, reliability_chart
from .page import load_template, page_style, page_text
from .summary import read_subject, summarize_subject

__all__ = ["render", "summarize", "write"]

_MAX_SHOWN_LENGTH = 20_000  # characters of an export on a page
_MAX_FILE_LENGTH = 400_000  # characters of a rule file that a page contains

_PYTHON = """import metricwise as mw

rule = mw.load_rule("rule.json")
labels = rule.predict({rows})  # {what} of the model, as passed to optimize
"""
_LABELS = """import metricwise as mw

rule = mw.load_rule("rule.json")
labels = rule.predict({rows})  # {what} of the labels (N, M), sparse or dense, as passed to optimize
"""
_TOGETHER = "labels = rule.predict_together({rows})  # rows at hand as a batch, which decisions depend on\n"
_LABEL_COMMAND = "metricwise apply rule.json new.parquet --indices labels --values proba -o decisions.parquet\n"
_COMMAND = "metricwise apply rule.json new.csv -o decisions.csv\n"
_ONNX = """import metricwise as mw

rule = mw.load_rule("rule.json")
mw.export.to_onnx(rule, "rule.onnx")                       # {what} in, decisions out
mw.export.to_onnx(rule, "model.onnx", append_to=pipeline)  # after a classifier that skl2onnx converts
"""


def summarize(found: Any, proba: Any = None, y: Any = None, metrics: Any = None, **options: Any) -> dict[str, Any]:
    """Return the content of a report as a dict of JSON types.

    Parameters
    ----------
    found : View, WeightedRule, MixtureRule, path, str or dict
        A solution alone is reported on the rows that it was fitted to. A rule, or a solution with other rows, is
        evaluated on those rows.
    proba, y : array-like, optional
        Labelled rows, as in :func:`metricwise.evaluate`.
    metrics : str, Metric, callable, list or dict, optional
        The metric to judge the rule by, and others; None: the metric that it was optimised for.
    **options
        As in :func:`metricwise.evaluate`: `sample_weight`, `pos_label`, `average` and so on.

    Returns
    -------
    dict
        With these keys; sections that do not apply are None or empty, and `missing` says why.

        - `metricwise`: the version; `metric`: the name of the metric; `status`: the notes of the solution.
        - `advice`: `kind` ("yes", "maybe" or "no") and `sentence`.
        - `figures`: `value`, `baseline`, `gain` and `value_on_new_rows` (`estimate`, `low`, `high`).
        - `rule`: `kind`, `words` (lines) and `table`; `apply`: code that applies the rule, by language.
        - `promises`: constraints; `recorded`: other metrics; `groups`: values of sensitive groups; `baseline`: what
          the rule is compared with, "argmax" or "most probable labels".
        - `labels`: of rules for very many labels, values by frequency (`by_frequency`), and the `largest` and `worst`
          labels, those with the largest `gains` and `losses`, and those `never` predicted.
        - `path`: metrics and confusions along the rules from argmax to this one and beyond.
        - `moves`, `gains`, `reliability`: changed decisions, gains by class or output, calibration.
        - `facts`, `technical`: pairs of text.
        - `missing`: for each missing section, the `reason`, and whether it `failed` or does not apply.

    See Also
    --------
    write : Write the report.
    render : The report as HTML.

    Examples
    --------
    >>> import json
    >>> import numpy as np
    >>> import metricwise as mw
    >>> from metricwise.report import summarize
    >>> rng = np.random.default_rng(0)
    >>> p = rng.beta(1, 3, 2000)
    >>> y = (rng.random(2000) < p).astype(int)
    >>> summary = summarize(mw.optimize(p, y, "f1"))
    >>> summary["advice"]["kind"], summary["path"]["kind"], len(json.dumps(summary)) < 100_000
    ('yes', 'threshold', True)
    """
    subject = read_subject(found, proba, y, metrics, options)
    sections = summarize_subject(subject)
    return {"metricwise": __version__, **sections, "apply": ways_to_apply(subject.rule)}


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
    load_template("page.html.jinja")  # a missing Jinja is reported before anything is counted
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
    script = page_text("page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
    path, reliability, rule_file = summary["path"], summary["reliability"], summary["apply"]["json"]
    return str(
        load_template("page.html.jinja").render(
            s=summary,
            style=page_style(),
            script=script,
            # Nothing is fetched, and no other script runs, whatever labels may contain.
            policy=f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; img-src data:",
            path_chart=None if path is None else path_chart(path, width=720, height=240, interactive=True),
            reliability_chart=None if reliability is None else reliability_chart(reliability),
            gains_ends=_gains_ends(summary["gains"]),
            rule_file=None if rule_file is None else quote(rule_file),
        )
    )


def _gains_ends(gains: dict[str, Any] | None) -> list[float]:
    """Return the ends of the axis of gains."""
    if gains is None or not gains["parts"]:
        return [-1.0, 1.0]
    low = min([0.0, *(part["low"] for part in gains["parts"] if part["low"] is not None)])
    high = max([0.0, *(part["high"] for part in gains["parts"] if part["high"] is not None)])
    pad = 0.04 * (high - low) or 1e-3
    return [low - pad, high + pad]


def ways_to_apply(rule: Rule) -> dict[str, str | None]:
    """Return the rule as a file, and code that applies it; None where it has no such form, or one that is too long.

    Examples
    --------
    >>> import metricwise as mw
    >>> from metricwise.inspection.report import ways_to_apply
    >>> list(ways_to_apply(mw.WeightedRule.from_thresholds(0.3)))
    ['json', 'python', 'command', 'sql', 'source', 'onnx']
    """
    text = json.dumps(rule.to_dict(), ensure_ascii=True)
    needs_cost = "cost" in rule.needs
    arguments = "".join(f", {name}={name}" for name in sorted(rule.needs))
    row_input = rule.schema.input
    rows, what = (rule.input, row_input.plural) if row_input.is_logits else ("proba", "class probabilities")
    if isinstance(rule, LabelRuleBase):
        parts = {"rows": rows, "what": row_input.plural}
        together = _TOGETHER.format(**parts) if rule.decides_together else ""
        others = {"command": _LABEL_COMMAND, **dict.fromkeys(("sql", "source", "onnx"))}
        return {
            "json": text if len(text) <= _MAX_FILE_LENGTH else None,
            "python": _LABELS.format(**parts) + together,
            **others,
        }
    return {
        "json": text if len(text) <= _MAX_FILE_LENGTH else None,
        "python": _PYTHON.format(rows=rows + arguments, what=what),
        "command": None if needs_cost else _COMMAND,
        "sql": _exported(to_sql, rule),
        "source": _exported(to_python, rule),
        "onnx": None if needs_cost else _ONNX.format(what=row_input.plural),
    }


def _exported(export: Any, rule: Rule) -> str | None:
    try:
        text = str(export(rule))
    except Refusal:  # of such rules, or without an extra
        return None
    return text if len(text) <= _MAX_SHOWN_LENGTH else None
