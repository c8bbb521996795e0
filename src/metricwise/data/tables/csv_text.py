"""What is wrong with the text of a CSV file, in the words of whoever wrote it.

Owns the look at the first bytes, before a library reads the rest, and the sentence for a cell that is no number.
"""

from __future__ import annotations

import re
from typing import Any

from ...core.errors import InvalidParameter, argument, shown
from .formats import arrow

__all__ = ["HEAD_BYTES", "check_head", "no_number", "read_head"]

HEAD_BYTES = 1 << 16
_SEPARATORS = {",": "','", ";": "';'", "\t": "'\\t' (a tab)", "|": "'|'"}
_DECIMAL_COMMA = re.compile(r"\s*[+-]?\d*,\d+(?:[eE][+-]?\d+)?\s*")
_MARKS = {b"\xff\xfe\x00\x00": "UTF-32", b"\x00\x00\xfe\xff": "UTF-32", b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}


def read_head(path: str) -> bytes:
    """Return the first bytes of a file, those of its content if it is compressed."""
    with arrow().input_stream(path) as file:
        return bytes(file.read(HEAD_BYTES))


def check_head(head: bytes, separator: str, title: str) -> None:
    """Refuse text of another encoding, and columns that another character separates.

    Parameters
    ----------
    head : bytes
        The first of a file.
    separator : str
    title : str
        Of the file, for messages.
    """
    encoding = next((name for mark, name in _MARKS.items() if head.startswith(mark)), None)
    if encoding is None and b"\x00" in head:
        encoding = "UTF-16, or a file that is no text"
    if encoding is not None:
        raise InvalidParameter(
            "text",
            "be in UTF-8",
            encoding,
            "save the file as UTF-8 (in Excel: CSV UTF-8), or with iconv -f utf-16 -t utf-8",
            owner=title,
        )
    first = head.decode("utf-8-sig", errors="replace").split("\n")[0].strip("\r")
    names = [said for sign, said in _SEPARATORS.items() if sign != separator and sign in first]
    if names and separator not in first:
        raise InvalidParameter(
            "",
            problem=f"there is only one column, {shown(first)}",
            remedy=f"if columns are separated by {names[0]}, set {argument('Table.separator')}",
            owner=title,
        )


def no_number(title: str, name: str, text: Any, row: int) -> ValueError:
    """Return the error for a cell that is no number."""
    remedy = ""
    if isinstance(text, str) and _DECIMAL_COMMA.fullmatch(text):
        remedy = f"; write decimals with a point, {text.strip().replace(',', '.')}"
    return InvalidParameter(
        "", problem=f"the column {shown(name)} must hold numbers, got {shown(text)} in row {row}{remedy}", owner=title
    )
