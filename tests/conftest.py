"""Settings that every test shares."""

import os

import pytest
from hypothesis import HealthCheck, settings

from engines import served_by

# No deadline: the first example pays for imports and caches, and shared machines stall.
settings.register_profile("local", deadline=None)
# The same examples on every run: a red CI means that the change is wrong, not that the draw was new.
settings.register_profile("ci", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
# The second run of `make test` is about the twins: what has nothing to do with them has had its examples in the first.
settings.register_profile("twins", settings.get_profile("ci"), max_examples=50)
_SECOND = os.environ.get("METRICWISE_KERNELS") == "numpy"
settings.load_profile(("twins" if _SECOND else "ci") if os.environ.get("CI") else "local")

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
