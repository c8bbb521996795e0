"""Notes are sentences with a kind; their texts make the paragraph that people read."""

import pickle

from metricwise.core.errors import argument
from metricwise.core.notes import Note, NoteKind, joined_text, note_list


def test_empty_texts_make_no_note():
    notes = note_list(NoteKind.DATA, "One.", "", "Two.")
    assert notes == (Note(NoteKind.DATA, "One."), Note(NoteKind.DATA, "Two."))
    assert joined_text(notes) == "One. Two."
    assert joined_text(()) == ""


def test_kinds_have_names_that_files_keep():
    names = {"outcome", "alternative", "selection", "constraint", "groups", "segments", "metric", "data", "warning"}
    assert {kind.value for kind in NoteKind} == names


def test_notes_know_the_parameters_that_they_name():
    note = Note(NoteKind.ALTERNATIVE, f"Set {argument('randomized', True)} to get it.")
    assert note.text == "Set strategy=mw.Strategy(randomized=True) to get it."
    joined = joined_text((Note(NoteKind.OUTCOME, "Local."), pickle.loads(pickle.dumps(note))))  # noqa: S301
    assert joined == "Local. Set strategy=mw.Strategy(randomized=True) to get it."
    assert joined.render(lambda name, value: f"--{name} {value}") == "Local. Set --randomized True to get it."
