"""Settings that every test shares."""

import os
from pathlib import Path

import pytest

from engines import served_by
from profiles import PROFILE, load_profile

load_profile()
# Where rows lie has nothing to do with which twins count them: once is enough.
_IN_MEMORY = PROFILE == "quick" or os.environ.get("METRICWISE_KERNELS") == "numpy"

OTHERS = [] if _IN_MEMORY else ["pieces"]
# Engines that take a while to start a pass serve one module.
DISTANT = [] if _IN_MEMORY else ["dask", "parquet"]
ON_ALL = ("test_frank_wolfe",)
# For most solvers rows in memory are enough for `make test`: engines agree on every count (laws/test_engines.py).
IN_PIECES = ("test_aim", "test_frank_wolfe", "test_walk_search")


def pytest_generate_tests(metafunc):
    """Run the tests of a module that uses `engine` once on each."""
    named = [mark.args[0] for mark in metafunc.definition.iter_markers("parametrize")]
    if "engine" in metafunc.fixturenames and "engine" not in named:
        module = metafunc.module.__name__.split(".")[-1]
        others = [*OTHERS, *(DISTANT if module in ON_ALL else [])]
        marked = [
            pytest.param(name, marks=[] if name == "pieces" and module in IN_PIECES else pytest.mark.slow)
            for name in others
        ]
        metafunc.parametrize("engine", ["memory", *marked], indirect=True, scope="module")


@pytest.fixture(scope="module")
def engine(request):
    """What serves the rows of every `optimize` of a module: all of its tests hold on every engine."""
    with served_by(request.param):
        yield request.param


# Files that `make test` leaves to `make test-docs` and `make test-slow`; single tests are marked where they stand.
TESTS = Path(__file__).parent
PARTS = {
    "docs": ["docs"],
    "endurance": ["endurance"],
    "slow": [
        "benchmarks",
        "data/sources/test_dask_cluster.py",
        "data/tables/test_queries_postgresql.py",
        "endurance",
        "inspection/test_report_in_browser.py",
        "reproduction",
    ],
}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark the tests of each part, before any are chosen by their marks."""
    places = [(TESTS / place, part) for part, names in PARTS.items() for place in names]
    for item in items:
        for place, part in places:
            if item.path == place or place in item.path.parents:
                item.add_marker(part)
