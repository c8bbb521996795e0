"""A fixed part of the stored calls against the recording of the kernels in use; ``make golden`` makes all of them."""

import pytest

from tests.golden import adapter, compose, recording
from tests.golden.__main__ import left_out, old_rules
from tests.golden.comparison import differences, report, unsteady

CALLS = {call["id"]: call for call in compose.read() if "quick" in call}
KERNEL = adapter.kernel_in_use()


@pytest.fixture(scope="module")
def recorded():
    if not recording.exists(KERNEL):
        pytest.skip(f"there is no recording of the {KERNEL} kernels yet: python -m tests.golden record")
    return recording.read(KERNEL)


@pytest.fixture(scope="module")
def skipped(recorded):
    return left_out(recorded)


@pytest.mark.parametrize("name", CALLS)
def test_as_recorded(name, recorded, skipped):
    if name in skipped:
        pytest.skip(
            "the last bits of sums decide this call, and another processor or other versions made the recording"
        )
    fresh = adapter.perform(CALLS[name])
    found = differences(name, recorded.calls.get(name, {}), fresh, exact=recorded.exact)
    assert not found, report(found, 1)


def test_rules_of_the_recording_decide_as_they_did(recorded):
    found = old_rules(recorded, list(CALLS.values()))
    assert not found, report(found, len(CALLS))


def test_both_kernels_are_recorded_for_the_same_calls(recorded):
    names = [call["id"] for call in compose.read()]
    for kernel in recording.KERNELS:
        assert list(recording.read(kernel).calls) == names


def test_hardly_a_call_hangs_on_the_last_bits_of_sums(recorded):
    # Kernels differ in them: give such a call another seed in compose.py, so that it can be compared anywhere.
    calls = [recording.read(kernel).calls for kernel in recording.KERNELS]
    assert len(unsteady(*calls)) <= len(calls[0]) // 50, sorted(unsteady(*calls))
