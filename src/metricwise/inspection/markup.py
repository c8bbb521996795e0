"""HTML and SVG elements whose content is escaped, for cards and charts, which need no template engine."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

__all__ = ["Html", "join", "table", "tag"]

_MAX_CELL_LENGTH = 60


class Html(str):
    """Text that is HTML and is not escaped again."""

    __slots__ = ()


def tag(name: str, *children: Any, **attributes: Any) -> Html:
    """Return an element; underscores in names of attributes are hyphens, and one at the end is left out.

    Examples
    --------
    >>> from metricwise.inspection.markup import tag
    >>> print(tag("b", "1 < 2", class_="big"))
    <b class="big">1 &lt; 2</b>
    """
    head = "".join(f' {key.rstrip("_").replace("_", "-")}="{escape(str(value))}"' for key, value in attributes.items())
    return Html(f"<{name}{head}>{join(children)}</{name}>")


def join(parts: Iterable[Any]) -> Html:
    """Concatenate parts, without those that are None."""
    return Html("".join([part if isinstance(part, Html) else escape(str(part)) for part in parts if part is not None]))


def _shortened(text: str) -> Html:
    """Return a cell; long text loses its middle and is shown in full on hovering."""
    if len(text) <= _MAX_CELL_LENGTH:
        return join([text])
    half = _MAX_CELL_LENGTH // 2 - 1
    return tag("span", f"{text[:half]}…{text[-half:]}", title=text)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Html:
    """Return a table whose first column names the rows."""
    top = tag("tr", *(tag("th", cell, scope="col") for cell in head))
    body = [
        tag("tr", tag("th", _shortened(first), scope="row"), *(tag("td", _shortened(cell)) for cell in rest))
        for first, *rest in rows
    ]
    return tag("table", tag("thead", top), tag("tbody", *body))
