"""Notes: sentences about a result, each with a kind. Programs read the kind, people the text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import cast

from .errors import Sentence


class NoteKind(Enum):
    """Topic of a note.

    See Also
    --------
    metricwise.Solution : Has notes.

    Examples
    --------
    >>> import metricwise as mw
    >>> solution = mw.optimize([0.1, 0.3, 0.4, 0.8], [0, 0, 1, 1], "f1")
    >>> [note.kind.value for note in solution.notes]
    ['selection']
    """

    OUTCOME = "outcome"
    """How the search for the rule ended."""
    ALTERNATIVE = "alternative"
    """What the other kind of rule, a mixture or a single rule, would reach."""
    SELECTION = "selection"
    """The chosen candidate and its estimated gain on new data."""
    CONSTRAINT = "constraint"
    """How the constraints are met."""
    GROUPS = "groups"
    """How sensitive groups are treated."""
    SEGMENTS = "segments"
    """How far the rules of segments differ from that of all rows."""
    METRIC = "metric"
    """How the metric was read or replaced."""
    DATA = "data"
    """What the rows say about the result: outputs without labels, dependence in time."""
    WARNING = "warning"
    """A reason to doubt the result, with a remedy."""


@dataclass(frozen=True)
class Note:
    """One or a few sentences about a result.

    Parameters
    ----------
    kind : NoteKind
        What the note is about.
    text : str
        The sentences, which may name parameters by :func:`metricwise.core.errors.argument`; it is kept as a
        :class:`metricwise.core.errors.Sentence`, so that the command line can name options instead.

    See Also
    --------
    metricwise.Solution : Has notes; its `status` joins their texts.

    Examples
    --------
    >>> from metricwise.core.notes import Note, NoteKind
    >>> Note(NoteKind.OUTCOME, "Optimal over all thresholds.").kind is NoteKind.OUTCOME
    True
    """

    kind: NoteKind
    text: str

    def __post_init__(self) -> None:
        if not isinstance(self.text, Sentence):
            object.__setattr__(self, "text", Sentence(self.text))

    @property
    def sentence(self) -> Sentence:
        """The text, which knows the parameters that it names."""
        return cast(Sentence, self.text)


def note_list(kind: NoteKind, *texts: str) -> tuple[Note, ...]:
    """Return a note of one kind for each text that is not empty."""
    return tuple(Note(kind, text) for text in texts if text)


def joined_text(notes: Iterable[Note]) -> Sentence:
    """Return the texts of notes as one paragraph, which names the parameters that they name."""
    return Sentence(" ".join(note.sentence.marked for note in notes))
