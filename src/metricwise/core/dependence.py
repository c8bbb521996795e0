"""Rows in time: how far they depend on one another, and how their weights decay. Must not know how it is estimated."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .errors import mention
from .notes import Note, NoteKind

# Below these numbers, 95 % intervals of autoregressive series covered less than 92 % (benchmarks/intervals.md).
_MIN_STRETCHES, _MIN_EFFECTIVE_ROWS = 6, 30
# Effective rows that a half-life should leave. Half-lives of 400 to 1,000 rows, some 1,200 to 2,900 effective ones,
# lost nothing on streams without drift.
_MIN_DECAYED_ROWS = 300


@dataclass(frozen=True)
class Dependence:
    """How far rows in time depend on one another.

    Parameters
    ----------
    length : int
        Rows of a stretch of time; stretches are taken to be independent of one another.
    n_stretches : int
    inflation : float
        How much more sums of labels vary between stretches than those of independent rows of equal weight would.
    n_rows : int
        Rows that count.
    user_length : bool
        Whether the user gave the length.
    by_weight : bool, default=False
        Whether rows have different weights, so that stretches have about equal weight instead of as many rows.
    half_life : str, default=""
        The half-life of the weights, in words; "" if they do not decay.
    """

    length: int
    n_stretches: int
    inflation: float
    n_rows: int
    user_length: bool
    by_weight: bool = False
    half_life: str = ""

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

    def describe_decay(self, n_rows: int, n_effective: float) -> Iterator[Note]:
        """Yield notes about the weights of rows, if they decay: the effective number of rows."""
        if not self.half_life:
            return
        text = (
            f"Weights of rows halve every {self.half_life}: the effective number of rows is {n_effective:.0f} of "
            f"{n_rows}."
        )
        yield Note(NoteKind.DATA, text)
        if n_effective < _MIN_DECAYED_ROWS:
            text = (
                f"The half-life leaves fewer than {_MIN_DECAYED_ROWS} effective rows, so the result is noisy. Use a "
                f"longer {mention('half_life')}."
            )
            yield Note(NoteKind.WARNING, text)
