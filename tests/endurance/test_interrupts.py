"""Ctrl-C at random moments and before every operation on files: files are old or new, and nothing else is left."""

import signal

import numpy as np
import pytest

from endurance.commands import COMMANDS
from endurance.scale import IS_FULL, record, repeats

NOTHING = "metricwise: interrupted; nothing was written."
OUTSIDE = "metricwise: interrupted."  # before the command has begun, or after its end
STOPPED = 2
SHORT_COMMANDS = ("apply in batches", "watch")
CHOSEN = [command for command in COMMANDS if IS_FULL or command.name in SHORT_COMMANDS]


def check(workshop, command, written, answer):
    """Check what an interrupted command has left; returns whether it was interrupted."""
    workshop.check(command, written)
    assert workshop.unfinished() == []
    assert answer["threads"] == 0
    assert "Traceback" not in answer["error"]
    assert answer["code"] in (0, STOPPED), answer
    stopped = answer["code"] == STOPPED
    if stopped:
        new = [target for target in command.targets if workshop.read(target) != workshop.old(target)]
        last = answer["error"].splitlines()[-1]
        if last != OUTSIDE:
            assert (last == NOTHING) == (not new), last
            assert all(f"{target} " in last for target in new), last
    else:
        assert all(workshop.read(target) == content for target, content in written.items())
    return stopped


@pytest.mark.parametrize("command", CHOSEN, ids=str)
def test_interrupted_at_random_moments(workshop, command):
    answer, written = workshop.finish(command)
    rng, n_stopped = np.random.default_rng(1), 0
    for i in range(repeats(20, 4)):
        workshop.reset(command)
        moment = answer["seconds"] * (rng.uniform(0.05, 1) if i % 2 else rng.uniform(0.65, 1.0))
        n_stopped += check(workshop, command, written, workshop.run(command, after=moment, signal=signal.SIGINT))
    record("interrupted at random moments", command.name, tried=repeats(20, 4), interrupted=n_stopped, broken=0)


@pytest.mark.parametrize("command", CHOSEN, ids=str)
def test_interrupted_before_every_operation_on_files(workshop, command):
    answer, written = workshop.finish(command)
    first = 2 if IS_FULL else max(answer["events"] - 9, 2)
    events, n_stopped = range(first, answer["events"] + 1), 0
    for event in events:
        workshop.reset(command)
        n_stopped += check(workshop, command, written, workshop.run(command, event=event, signal=signal.SIGINT))
    record("interrupted before an operation on files", command.name, tried=len(events), interrupted=n_stopped, broken=0)
