"""What differs between a recording and what comes of the same calls now, in words.

Decisions, structure and sentences must be equal everywhere. Floats must have the same bits where the recording was made
with the same processor features and versions, and agree to 1e-9 elsewhere. Knows columns, and nothing of the library.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

from tests.golden.columns import BITS, NUMBER

RELATIVE = 1e-9
ABSOLUTE = 1e-12  # of differences that are 0 but for rounding, such as a gap
MAX_SHOWN = 12  # differences of a column that are written out

SAID = ("decisions", "structure", "notes", "warnings", "error", "text")  # what must be equal everywhere

ABSENT = object()


@dataclass(frozen=True)
class Difference:
    """One entry of one column of one call that is not as it was recorded.

    path : where in the column, as ("constraints", 0, 2).
    stored, fresh : the entry then and now; ABSENT where there is none.
    """

    call: str
    column: str
    path: tuple[Any, ...]
    stored: Any
    fresh: Any

    @property
    def relative(self) -> float | None:
        """The relative difference of two numbers; None of anything else."""
        if not (_is_float(self.stored) and _is_float(self.fresh)):
            return None
        largest = max(abs(self.stored), abs(self.fresh))
        return abs(self.stored - self.fresh) / largest if largest else 0.0

    def __str__(self) -> str:
        where = ".".join([self.column, *map(str, self.path)])
        return f"{self.call}\n  {where}: {_words(self.stored, self.fresh, self.relative)}"


def _is_float(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _words(stored: Any, fresh: Any, relative: float | None) -> str:
    if stored is ABSENT:
        return f"was not there, is {_cut(fresh)}"
    if fresh is ABSENT:
        return f"was {_cut(stored)}, is not there"
    if relative is not None:
        return f"was {stored!r}, is {fresh!r} (relative difference {relative:.2g})"
    if isinstance(stored, str) and isinstance(fresh, str):
        return _text_words(stored, fresh)
    return f"was {_cut(stored)}, is {_cut(fresh)}"


def _cut(value: Any, most: int = 300) -> str:
    text = repr(value)
    return text if len(text) <= most else f"{text[:most]}..."


def _text_words(stored: str, fresh: str) -> str:
    """Texts as a diff of lines where they have several, as rows where they are codes of decisions, else whole."""
    if len(stored) == len(fresh) and len(stored) > 20 and " " not in stored + fresh:
        rows = [at for at, (then, now) in enumerate(zip(stored, fresh, strict=True)) if then != now]
        some = ", ".join(f"row {at}: {stored[at]} -> {fresh[at]}" for at in rows[:8])
        return f"{len(rows)} of {len(stored)} rows are decided otherwise: {some}{', ...' if len(rows) > 8 else ''}"
    if "\n" in stored or "\n" in fresh:
        lines = difflib.unified_diff(stored.splitlines(), fresh.splitlines(), "was", "is", lineterm="", n=0)
        return "\n    " + "\n    ".join(lines)
    return f"\n    was {stored!r}\n    is  {fresh!r}"


def differences(
    call: str, stored: Mapping[str, Any], fresh: Mapping[str, Any], *, exact: bool, columns: Iterable[str] | None = None
) -> list[Difference]:
    """Return what differs of a call, in all columns or some.

    exact : whether floats must have the same bits.
    """
    names = dict.fromkeys([*stored, *fresh]) if columns is None else columns
    return [
        Difference(call, name, path, then, now)
        for name in names
        for path, then, now in _unequal(stored.get(name, ABSENT), fresh.get(name, ABSENT), exact)
    ]


def _unequal(stored: Any, fresh: Any, exact: bool, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, Any, Any]]:
    if isinstance(stored, dict) and isinstance(fresh, dict):
        for key in dict.fromkeys([*stored, *fresh]):
            if key == BITS and not exact:
                continue
            yield from _unequal(stored.get(key, ABSENT), fresh.get(key, ABSENT), exact, (*path, key))
        if list(stored) != list(fresh) and stored.keys() == fresh.keys():
            yield (*path, "order of keys"), list(stored), list(fresh)
    elif isinstance(stored, list) and isinstance(fresh, list) and len(stored) == len(fresh):
        for at, (then, now) in enumerate(zip(stored, fresh, strict=True)):
            yield from _unequal(then, now, exact, (*path, at))
    elif not _same(stored, fresh, exact):
        yield path, stored, fresh


def _same(stored: Any, fresh: Any, exact: bool) -> bool:
    if isinstance(stored, float) and isinstance(fresh, float):
        if exact:
            return stored.hex() == fresh.hex()
        return math.isclose(stored, fresh, rel_tol=RELATIVE, abs_tol=ABSOLUTE)
    if isinstance(stored, str) and isinstance(fresh, str) and not exact:
        return _same_but_for_rounding(stored, fresh)
    return type(stored) is type(fresh) and stored == fresh


def _same_but_for_rounding(stored: str, fresh: str) -> bool:
    """Whether two texts are equal, numbers in them up to rounding: source code has all of their digits."""
    if NUMBER.sub("", stored) != NUMBER.sub("", fresh):
        return False
    pairs = zip(NUMBER.findall(stored), NUMBER.findall(fresh), strict=True)
    return all(_same(float(then), float(now), exact=False) for then, now in pairs)


def unsteady(stored: Mapping[str, Mapping[str, Any]], twin: Mapping[str, Mapping[str, Any]]) -> set[str]:
    """Return the calls that the two kernels answered differently: the last bits of sums decide them.

    Such a call is compared where floats must have the same bits, and nowhere else.
    """
    return {
        name
        for name, columns in stored.items()
        if name in twin and differences(name, columns, twin[name], exact=False, columns=SAID)
    }


def report(found: Iterable[Difference], n_calls: int) -> str:
    """Return what differs by column: how many calls and entries, by how much if they are numbers, and some of them."""
    by_column: dict[str, list[Difference]] = {}
    for one in found:
        by_column.setdefault(one.column, []).append(one)
    if not by_column:
        return f"{n_calls} calls: all as recorded."
    parts = []
    for column, entries in by_column.items():
        calls = len({one.call for one in entries})
        parts.append(f"{column}: {calls} of {n_calls} calls differ, in {len(entries)} entries{_sizes(entries)}")
        parts += [f"  {line}" for one in _largest_first(entries)[:MAX_SHOWN] for line in str(one).splitlines()]
        if len(entries) > MAX_SHOWN:
            parts.append(f"  ... and {len(entries) - MAX_SHOWN} more")
    return "\n".join(parts)


def _sizes(entries: list[Difference]) -> str:
    sizes = [one.relative for one in entries if one.relative is not None]
    if not sizes:
        return "."
    largest = max(entries, key=lambda one: one.relative or 0.0)
    where = ".".join(map(str, largest.path))
    size = f"median relative difference {median(sizes):.2g}, largest {max(sizes):.2g}"
    return f"; {len(sizes)} numbers: {size} ({largest.call}, {where})."


def _largest_first(entries: list[Difference]) -> list[Difference]:
    return sorted(entries, key=lambda one: -1.0 if one.relative is None else one.relative, reverse=True)
