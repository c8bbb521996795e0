"""Disks that are full and limits of files: one sentence, the old file as it was, and nothing else."""

import errno
import os
import shutil
import subprocess
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest

import metricwise as mw
from endurance.commands import COMMANDS
from endurance.scale import IS_FULL, record, repeats

SHORT_COMMANDS = ("apply in batches", "watch")
CHOSEN = [command for command in COMMANDS if IS_FULL or command.name in SHORT_COMMANDS]
REFUSED = 2
SAID = (os.strerror(errno.EFBIG).lower(), os.strerror(errno.ENOSPC).lower())


def check_refused(workshop, command, answer):
    """Check that a command said in a sentence that there is no room, and left everything as it was."""
    assert answer["code"] == REFUSED, answer
    said = answer["error"].splitlines()[-1]
    assert said.startswith("metricwise: "), said
    assert any(text in said.lower() for text in SAID), said
    assert "Traceback" not in answer["error"]
    assert workshop.unfinished() == []
    assert all(workshop.read(target) == workshop.old(target) for target in command.targets)


@pytest.mark.parametrize("command", CHOSEN, ids=str)
def test_a_limit_on_the_size_of_files(workshop, command):
    """Files are cut at sizes from nothing to one byte less than they need; of two files, than the smaller needs."""
    _, written = workshop.finish(command)
    least = min(map(len, written.values()))
    sizes = sorted({0, 1, *np.linspace(2, least - 1, repeats(10, 2), dtype=int).tolist()})
    for size in sizes:
        workshop.reset(command)
        answer = workshop.run(command, file_size=size)
        check_refused(workshop, command, answer)
        workshop.check(command, written)
    record("limit on the size of files", command.name, tried=len(sizes), refused=len(sizes), broken=0)


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 64 kB; where none can be mounted, tests are left out."""
    if shutil.which("mount") is None or os.geteuid() != 0:
        pytest.skip("mounting needs root")
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder], capture_output=True)
    if mounted.returncode:
        pytest.skip("no file system can be mounted here")
    yield folder
    subprocess.run(["umount", folder], check=True)


def fill(path):
    """Write to a file until the disk is full."""
    with suppress(OSError), path.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(512))


@pytest.mark.parametrize("command", CHOSEN, ids=str)
def test_a_full_disk(workshop, small_disk, command):
    """The targets are links to a disk that holds old files and has no room for new ones."""
    workshop.finish(command)
    for target in command.targets:
        (small_disk / target).write_bytes(workshop.old(target))
    fill(small_disk / "filler")
    before = {path.name: path.read_bytes() for path in small_disk.iterdir()}
    moved = dict(zip(command.targets, (str(small_disk / target) for target in command.targets), strict=True))
    moved_command = replace(command, words=tuple(moved.get(word, word) for word in command.words))
    answer = workshop.run(moved_command)
    assert answer["code"] == REFUSED, answer
    said = answer["error"].splitlines()[-1]
    assert "no space left on device" in said.lower() or "cannot be written to" in said, said
    assert {path.name: path.read_bytes() for path in small_disk.iterdir()} == before
    record("full disk", command.name, tried=1, refused=1, broken=0)


def test_a_rule_written_from_python(small_disk):
    rule = mw.WeightedRule.from_weights(dict.fromkeys(map(str, range(8000)), 1.0))
    (small_disk / "rule.json").write_bytes(b"old\n")
    with pytest.raises(OSError, match="No space left on device"):
        rule.to_json(small_disk / "rule.json")
    assert {path.name: path.read_bytes() for path in small_disk.iterdir()} == {"rule.json": b"old\n"}
