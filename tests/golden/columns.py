"""What came of a call as columns that JSON can hold, made comparable, and small.

Knows labels, arrays and texts, and nothing of the library.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from html.parser import HTMLParser
from typing import Any

import numpy as np

from tests.golden.worlds import World

NAMES = ("decisions", "rule", "numbers", "structure", "work", "notes", "warnings", "error", "text")
SYMBOLS = "0123456789abcdefghijklmnopqrstuvwxyz"
BITS = "bits"  # the key of a checksum of all digits, which is compared where floats are bit by bit
NUMBER = re.compile(r"-?\d+\.\d+(?:[eE][-+]?\d+)?")
MAX_TEXT = 1500  # characters of a text that are stored; the rest is a checksum


def plain_values(value: Any) -> Any:
    """Return the same of types that JSON has; a number that is not finite is the text "nan", "inf" or "-inf".

    Python writes the shortest decimals that read back as the same float, so that a stored number has the bits that it
    had, as its hexadecimal form would, and people can read it.
    """
    if isinstance(value, dict):
        return {str(key): plain_values(entry) for key, entry in value.items()}
    if isinstance(value, np.ndarray):
        return plain_values(value.tolist())
    if isinstance(value, (list, tuple)):
        return [plain_values(entry) for entry in value]
    if isinstance(value, np.generic):
        return plain_values(value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if value is None or isinstance(value, (bool, int, str)):
        return value
    return repr(value)


def decisions_of(decided: Any, world: World, abstain_label: Any = None) -> dict[str, Any]:
    """Return decisions as one symbol for each row, by output: the place of the class, "-" for an abstention.

    Parameters
    ----------
    decided : array of shape (N,) or (N, M)
        Labels.
    """
    decided = np.asarray(decided)
    rows = decided.reshape(len(decided), -1)
    codes = []
    for m, names in enumerate(world.classes):
        symbols = {_spelled(label): SYMBOLS[c] for c, label in enumerate(names)}
        if abstain_label is not None:
            symbols[_spelled(abstain_label)] = "-"
        codes.append("".join(symbols.get(_spelled(label), "?") for label in rows[:, m]))
    kind = "text" if decided.dtype.kind in "OUT" else decided.dtype.name
    return {"type": kind, "shape": list(decided.shape), "codes": codes}


def _spelled(label: Any) -> str:
    label = label.item() if isinstance(label, np.generic) else label
    return str(int(label)) if isinstance(label, (bool, float)) and float(label).is_integer() else str(label)


def shortened(value: Any) -> Any:
    """Return a text or decisions whole where they are short, else their beginning or counts with a checksum."""
    if isinstance(value, str):
        if len(value) <= MAX_TEXT:
            return value
        text = _rounded(value)
        return {"begins": text[:MAX_TEXT], "lines": text.count("\n"), "checksum": checksum(text), BITS: checksum(value)}
    if isinstance(value, dict) and "codes" in value:
        counts = [{symbol: text.count(symbol) for symbol in sorted(set(text))} for text in value["codes"]]
        return {"counts": counts, "checksum": checksum(value)}
    return {"entries": len(value), "begins": value[0][:4] if value and isinstance(value[0], list) else None} | {
        "checksum": checksum(value)
    }


def _rounded(text: str) -> str:
    """A text whose numbers have nine digits, of twelve decimals: further ones differ from processor to processor."""
    return NUMBER.sub(lambda found: f"{round(float(found[0]), 12) + 0.0:.9g}", text)


def checksum(value: Any) -> str:
    """Return sixteen digits that change with what is stored."""
    return hashlib.sha256(json.dumps(plain_values(value), sort_keys=True).encode()).hexdigest()[:16]


class _Visible(HTMLParser):
    """Collects what a page shows as text."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self.hidden = 0

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.hidden += tag in ("style", "script")

    def handle_endtag(self, tag: str) -> None:
        self.hidden -= tag in ("style", "script")

    def handle_data(self, data: str) -> None:
        if not self.hidden:
            self.parts.append(data)


def visible_text(page: str) -> str:
    """Return what a reader sees of HTML, without tags, styles and scripts."""
    parser = _Visible()
    parser.feed(page)
    return re.sub(r"\s+", " ", " ".join(parser.parts)).strip()
