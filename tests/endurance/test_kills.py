"""Commands that write, killed at random moments and before every operation on files: nothing is half written."""

import signal

import numpy as np
import pytest

from endurance.commands import COMMANDS
from endurance.scale import IS_FULL, record, repeats

KILLED = -signal.SIGKILL
SHORT_COMMANDS = ("apply in batches", "watch")
CHOSEN = [command for command in COMMANDS if IS_FULL or command.name in SHORT_COMMANDS]


@pytest.mark.parametrize("command", CHOSEN, ids=str)
def test_killed_at_random_moments(workshop, command):
    """Half of the kills fall into the last third, where files are written."""
    answer, written = workshop.finish(command)
    rng, n_killed, n_unfinished = np.random.default_rng(0), 0, 0
    for i in range(repeats(40, 6)):
        workshop.reset(command)
        moment = answer["seconds"] * (rng.random() if i % 2 else rng.uniform(0.65, 1.0))
        killed = workshop.run(command, after=moment)["code"] == KILLED
        n_killed += killed
        workshop.check(command, written)
        n_unfinished = max(n_unfinished, len(workshop.unfinished()))
    assert n_unfinished <= len(command.targets)
    assert workshop.finish(command)[1] == written
    assert workshop.unfinished() == []
    record("killed at random moments", command.name, tried=repeats(40, 6), killed=n_killed, broken=0)


@pytest.mark.parametrize("command", CHOSEN, ids=str)
def test_killed_before_every_operation_on_files(workshop, command):
    answer, written = workshop.finish(command)
    events = range(1, answer["events"] + 1) if IS_FULL else range(max(answer["events"] - 9, 1), answer["events"] + 1)
    n_left = 0
    for event in events:
        workshop.reset(command)
        assert workshop.run(command, event=event)["code"] == KILLED
        workshop.check(command, written)
        n_left += bool(workshop.unfinished())
    assert n_left  # else no kill fell into the writing
    assert workshop.finish(command)[1] == written
    assert workshop.unfinished() == []
    record("killed before an operation on files", command.name, tried=len(events), killed=len(events), broken=0)
