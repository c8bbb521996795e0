"""HTML made of text: what is put into it is escaped, unless it was made here.

Owns the only way in which cards become HTML. Must not know what they show.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

__all__ = ["Html", "join", "table", "tag"]

_LONGEST = 60  # characters of a text in a cell


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


def tag(name: str, *inside: Any, **attributes: Any) -> Html:
    """Return an element; whatever is in it is escaped, but for what this module made.

    Names of attributes have an underscore for a hyphen, and one at the end where Python needs the word.

    Examples
    --------
    >>> from metricwise.inspection.cards.markup import tag
    >>> print(tag("b", "1 < 2", class_="big"))
    <b class="big">1 &lt; 2</b>
    """
    named = {key.rstrip("_").replace("_", "-"): value for key, value in attributes.items() if value is not None}
    head = "".join([f" {key}={quoted(value)}" for key, value in named.items()])
    return Html(f"<{name}{head}>{join(inside)}</{name}>")


def quoted(value: Any) -> str:
    """Return the value of an attribute."""
    return f'"{escape(str(value), quote=True)}"'


def join(parts: Iterable[Any]) -> Html:
    """Put parts one after the other."""
    return Html("".join([part if isinstance(part, Html) else escape(str(part)) for part in parts if part is not None]))


def shortened(text: Any) -> Html:
    """Return a text that may be long: its middle is left out, and all of it is said on hovering."""
    text = str(text)
    if len(text) <= _LONGEST:
        return join([text])
    half = _LONGEST // 2 - 1
    return tag("span", f"{text[:half]}…{text[-half:]}", title=text)


def table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> Html:
    """Return a table whose first column names the rows."""
    top = tag("tr", *(tag("th", cell, scope="col") for cell in head))
    body = [
        tag("tr", tag("th", shortened(first), scope="row"), *(tag("td", shortened(cell)) for cell in rest))
        for first, *rest in rows
    ]
    return tag("table", tag("thead", top), tag("tbody", *body))
