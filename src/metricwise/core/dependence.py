"""Dependence of rows in time. Must not know how it is estimated."""

from __future__ import annotations

from dataclasses import dataclass

# Below these numbers, 95 % intervals of autoregressive series covered less than 92 % (benchmarks/intervals.md).
_MIN_STRETCHES, _MIN_EFFECTIVE_ROWS = 6, 30


@dataclass(frozen=True)
class Dependence:
    """How far rows in time depend on one another.

    Parameters
    ----------
    length : int
        Rows of a stretch of time; stretches are taken to be independent of one another.
    n_stretches : int
    inflation : float
        How much more sums of labels vary between stretches than those of independent rows would.
    n_rows : int
    user_length : bool
        Whether the user gave the length.
    """

    length: int
    n_stretches: int
    inflation: float
    n_rows: int
    user_length: bool

    @property
    def trusted(self) -> bool:
        """Whether there is enough of time to say how far values vary."""
        return self.n_stretches >= _MIN_STRETCHES and self.n_rows / self.inflation >= _MIN_EFFECTIVE_ROWS

    def describe(self) -> str:
        """Say what intervals rest on, and whether they can be trusted."""
        source = "as given" if self.user_length else "estimated"
        text = (
            f"Rows are assumed to depend on each other over at most {self.length} rows ({source}): intervals are based "
            f"on {self.n_stretches} periods."
        )
        if self.trusted:
            return text
        return (
            f"{text} The rows correspond to about {max(self.n_rows / self.inflation, 1):.0f} independent rows, too "
            "few for reliable intervals. Provide rows from a longer time span."
        )
