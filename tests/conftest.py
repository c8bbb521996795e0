"""Settings that every test shares."""

import os

from hypothesis import HealthCheck, settings

# No deadline: the first example pays for imports and caches, and shared machines stall.
settings.register_profile("local", deadline=None)
# The same examples on every run: a red CI means that the change is wrong, not that the draw was new.
settings.register_profile("ci", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("ci" if os.environ.get("CI") else "local")
