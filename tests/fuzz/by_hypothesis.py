"""Draws of hypothesis from a random generator, and property tests as inputs: both through `fuzz_one_input`."""

from hypothesis import HealthCheck, given, settings

N_BYTES = 1 << 13  # that hypothesis makes its choices of; no draw here needs more


def drawer(strategy):
    """Return a function from a random generator to a value of a strategy."""
    drawn = []

    @settings(database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(strategy)
    def keep(value):
        drawn.append(value)

    def draw(rng):
        drawn.clear()
        while not drawn:
            keep.hypothesis.fuzz_one_input(rng.bytes(N_BYTES))
        return drawn[0]

    return draw


def run_property(test, content):
    """Run a property test on the choices that bytes make."""
    quiet = settings(test._hypothesis_internal_use_settings, database=None)
    test._hypothesis_internal_use_settings = quiet
    test.hypothesis.fuzz_one_input(content)
