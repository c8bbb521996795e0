"""What pages are made of: templates, a style sheet and a script. Jinja is imported when a page is made."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

from ..core.errors import MissingDependency
from .text import number, weight

__all__ = ["load_template", "page_style", "page_text"]


def page_style() -> str:
    """Return the style sheet of pages, with the rules of charts."""
    chart_rules = [line for line in page_text("card.css").splitlines(keepends=True) if line.startswith(".mw-chart")]
    return "".join(chart_rules) + page_text("page.css")


def load_template(name: str) -> Any:
    """Return a template of pages."""
    try:
        import jinja2
    except ImportError:
        raise MissingDependency("report needs Jinja2: pip install 'metricwise[report]'", owner=None) from None
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    environment.policies["json.dumps_kwargs"] = {"sort_keys": False}  # the first metric is the maximised one
    environment.filters |= {"number": number, "rows": weight}
    return environment.from_string(page_text(name))


@cache
def page_text(name: str) -> str:
    """Return the text of a file that pages are made of."""
    return (files(__package__) / "templates" / name).read_text(encoding="utf-8")
