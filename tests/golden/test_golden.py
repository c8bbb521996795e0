"""A fixed part of the stored calls against the recording of the kernels in use; ``make golden`` makes all of them."""

import pytest

from tests.golden import adapter, compose, recording
from tests.golden.__main__ import old_rules
from tests.golden.comparison import differences, report

CALLS = {call["id"]: call for call in compose.read() if "quick" in call}
KERNEL = adapter.kernel_in_use()


@pytest.fixture(scope="module")
def recorded():
    if not recording.exists(KERNEL):
        pytest.skip(f"there is no recording of the {KERNEL} kernels yet: python -m tests.golden record")
    return recording.read(KERNEL)


@pytest.mark.parametrize("name", CALLS)
def test_as_recorded(name, recorded):
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


def test_kernels_decide_alike(recorded):
    # Sums differ in their last bits, so that numbers do: what is decided does not.
    compiled, twin = (recording.read(kernel) for kernel in recording.KERNELS)
    pairs = [(name, columns, twin.calls[name]) for name, columns in compiled.calls.items()]
    kept = [name for name, one, other in pairs if one.get("decisions") != other.get("decisions")]
    assert len(kept) <= len(pairs) // 100, kept
