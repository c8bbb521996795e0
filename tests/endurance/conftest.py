"""What tests of endurance share."""

import os

import pytest

from endurance.commands import Workshop


def pytest_collection_modifyitems(items):
    """Leave out what needs forks and signals of POSIX."""
    if os.name != "posix":
        for item in items:
            item.add_marker(pytest.mark.skip(reason="forks and signals of POSIX"))


@pytest.fixture(scope="module")
def shared_workshop(tmp_path_factory):
    """A folder in which commands are run, and ended."""
    workshop = Workshop(tmp_path_factory.mktemp("workshop"))
    yield workshop
    workshop.close()


@pytest.fixture
def workshop(shared_workshop):
    """The same, as it was at first."""
    yield shared_workshop
    shared_workshop.clear()
