"""SQL dialects: names of functions and literals of doubles. sqlglot does the quoting."""

from __future__ import annotations

import math
from dataclasses import dataclass

__all__ = ["DIALECTS", "Dialect"]

_MAX_SAFE_DIGITS = 15  # decimals of as many digits are read as the nearest double everywhere


@dataclass(frozen=True)
class Dialect:
    """A dialect of SQL, by its name in sqlglot, and its functions for the largest and the least of several numbers.

    With `exponent`, 0.5 is a decimal and 5e-1 a double. Without `exact`, 17 digits may be misread by a bit, as SQLite
    before 3.47 does, and a quotient of integers is written instead. `infinity` is a literal of it; by default, the text
    'inf' is cast. With `strict`, a power that is as good as 0 is an error.
    """

    name: str
    greatest: str = "GREATEST"
    least: str = "LEAST"
    exponent: bool = False
    exact: bool = True
    infinity: str | None = None
    strict: bool = False

    def number(self, value: float) -> str:
        """Return the text of a non-negative finite double, which is read as exactly this double."""
        text = repr(value)
        digits = text.partition("e")[0].replace(".", "").strip("0")
        if not self.exact and len(digits) > _MAX_SAFE_DIGITS:
            return _quotient(value)
        if "e" in text or not self.exponent:
            return text
        return f"{text.removesuffix('.0')}e0"


def _quotient(value: float) -> str:
    """Return a double as an integer divided or multiplied by powers of two, which is exact."""
    mantissa, exponent = math.frexp(value)
    whole, exponent = int(mantissa * 2**53), exponent - 53
    while whole % 2 == 0:
        whole, exponent = whole // 2, exponent + 1
    sign, steps = ("/", -exponent) if exponent < 0 else ("*", exponent)
    powers = [2.0**52] * (steps // 52) + [2.0 ** (steps % 52)]
    return "(" + f" {sign} ".join([str(whole), *map(repr, powers)]) + ")"


DIALECTS = {
    "duckdb": Dialect("duckdb", exponent=True),
    "postgres": Dialect("postgres", strict=True),
    "sqlite": Dialect("sqlite", greatest="MAX", least="MIN", exact=False, infinity="9e999"),
    "bigquery": Dialect("bigquery"),
    "snowflake": Dialect("snowflake", exponent=True),
    "spark": Dialect("spark", exponent=True),
}
