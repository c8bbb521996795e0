"""Notes are sentences with a kind; their texts make the paragraph that people read."""

from metricwise.core.notes import Note, NoteKind, joined_text, note_list


def test_empty_texts_make_no_note():
    notes = note_list(NoteKind.DATA, "One.", "", "Two.")
    assert notes == (Note(NoteKind.DATA, "One."), Note(NoteKind.DATA, "Two."))
    assert joined_text(notes) == "One. Two."
    assert joined_text(()) == ""


def test_kinds_have_names_that_files_keep():
    names = {"outcome", "alternative", "selection", "constraint", "groups", "metric", "data", "warning"}
    assert {kind.value for kind in NoteKind} == names
