"""How often the rows have been read: counted where they are, so that nobody else has to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["Passes", "in_passes"]


@dataclass(eq=False)
class Passes:
    """Counter of entries, one per row and output, that have been read so far.

    Rows times outputs entries make one pass, so that a pass over a sample or over some of the outputs counts as a
    fraction.

    Parameters
    ----------
    whole : Passes, optional
        A counter to which all entries are also added, for example that of the fit that an oracle serves.
    entries : int
        Number of entries so far.
    listener : callable, optional
        Function that is called at every read.

    See Also
    --------
    SourceBase : Counts its passes.

    Examples
    --------
    >>> from metricwise.data.sources import Passes, in_passes
    >>> fit = Passes()
    >>> Passes(fit).add(300)
    >>> Passes(fit).add(110)
    >>> fit.entries, in_passes(fit.entries, n_rows=100, n_outputs=2)
    (410, 2)
    """

    whole: Passes | None = None
    entries: int = 0
    listener: Callable[[], None] | None = None

    def add(self, entries: int) -> None:
        """Count entries that are being read."""
        self.entries += entries
        if self.listener is not None:
            self.listener()
        if self.whole is not None:
            self.whole.add(entries)


def in_passes(entries: int, n_rows: int, n_outputs: int) -> int:
    """Return how many passes over all rows and outputs so many entries are, to the nearest whole one."""
    return round(entries / max(n_rows * n_outputs, 1))
