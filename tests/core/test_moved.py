"""Pickles of another version are told what to do."""

import pytest

import metricwise.solvers.base


@pytest.mark.parametrize("name", ["Solution", "Gain", "Promise"])
def test_classes_that_have_moved_are_refused_by_a_sentence(name):
    with pytest.raises(ModuleNotFoundError, match=rf"No class named 'metricwise.solvers.base.{name}' .*load_rule"):
        getattr(metricwise.solvers.base, name)


def test_other_names_are_unknown():
    assert not hasattr(metricwise.solvers.base, "nothing_of_the_kind")


def test_modules_that_have_moved_are_refused_by_a_sentence():
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'metricwise.solvers.solution_file' .*load_rule"):
        __import__("metricwise.solvers.solution_file")
