"""Settings that every test shares."""

import os
from pathlib import Path

import pytest

from engines import served_by
from profiles import load_profile

load_profile()
_SECOND = os.environ.get("METRICWISE_KERNELS") == "numpy"

# Where rows lie has nothing to do with which twins count them: once is enough.
PIECES = [] if _SECOND else ["pieces"]


# Engines that take a while to start a pass serve a part of the modules, whose tests are many and small.
SLOW = [] if _SECOND else ["dask", "parquet"]
ON_ALL = ("test_frank_wolfe",)


def pytest_generate_tests(metafunc):
    """Run the tests of a module that uses `engine` once on each."""
    own = [mark.args[0] for mark in metafunc.definition.iter_markers("parametrize")]
    if "engine" in metafunc.fixturenames and "engine" not in own:
        slow = SLOW if metafunc.module.__name__.split(".")[-1] in ON_ALL else []
        metafunc.parametrize("engine", ["memory", *PIECES, *slow], indirect=True, scope="module")


@pytest.fixture(scope="module")
def engine(request):
    """What serves the rows of every `optimize` of a module: all of its tests hold on every engine."""
    with served_by(request.param):
        yield request.param


# Files that `make test` leaves to `make test-docs` and `make test-slow`; single tests are marked where they stand.
TESTS = Path(__file__).parent
PARTS = {
    "docs": ["docs"],
    "slow": ["data/sources/test_dask_cluster.py", "inspection/test_report_in_browser.py", "reproduction"],
}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark the tests of each part, before any are chosen by their marks."""
    places = [(TESTS / place, part) for part, names in PARTS.items() for place in names]
    for item in items:
        for place, part in places:
            if item.path == place or place in item.path.parents:
                item.add_marker(part)
