"""What databases disagree on: the names of functions, and which literals are doubles.

Owns the dialects of SQL that are known, and numbers as text. sqlglot owns quoting.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

__all__ = ["DIALECTS", "Dialect"]

_SURE_DIGITS = 15  # every decimal of as many digits is read as the double that is nearest to it, by whoever reads it


@dataclass(frozen=True)
class Dialect:
    """A dialect of SQL.

    Parameters
    ----------
    name : str
        As sqlglot has it.
    greatest : str
        The function that returns the largest of its arguments.
    exponent : bool
        Whether 0.5 is a decimal, which would drag floats along to decimals or to single precision, and 5e-1 a double.
    exact : bool
        Whether 17 digits are read as the double that they stand for. SQLite before 3.47 misses it by a bit, once in
        some ten thousand: there a quotient of integers says the same.
    """

    name: str
    greatest: str = "GREATEST"
    exponent: bool = False
    exact: bool = True

    def number(self, value: float) -> str:
        """Return the text of a non-negative finite double, which is read as exactly this double."""
        text = repr(value)
        digits = text.partition("e")[0].replace(".", "").strip("0")
        if not self.exact and len(digits) > _SURE_DIGITS:
            return _quotient(value)
        if "e" in text or not self.exponent:
            return text
        return f"{text.removesuffix('.0')}e0"


def _quotient(value: float) -> str:
    """Return a double as an integer over, or times, powers of two: exact, for every number has few enough digits."""
    mantissa, exponent = math.frexp(value)
    whole, exponent = int(mantissa * 2**53), exponent - 53
    while whole % 2 == 0:
        whole, exponent = whole // 2, exponent + 1
    sign, steps = ("/", -exponent) if exponent < 0 else ("*", exponent)
    powers = [2.0**52] * (steps // 52) + [2.0 ** (steps % 52)]
    return "(" + f" {sign} ".join([str(whole), *map(repr, powers)]) + ")"


DIALECTS = {
    "duckdb": Dialect("duckdb", exponent=True),
    "postgres": Dialect("postgres"),
    "sqlite": Dialect("sqlite", greatest="MAX", exact=False),
    "bigquery": Dialect("bigquery"),
    "snowflake": Dialect("snowflake", exponent=True),
    "spark": Dialect("spark", exponent=True),
}
