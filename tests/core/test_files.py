"""Where rules are written to: no half file, permissions and links kept, pipes and streams written into."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from metricwise.core.files import noting_writes
from metricwise.core.losses import Loss
from metricwise.rules import WeightedRule, load_rule


def rule_of(name):
    return WeightedRule(Loss.argmax(2), (np.array(["no", "yes"]),), metadata={"metric": name})


@pytest.mark.parametrize("failing", ["replace", "fsync"])
@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()])
def test_a_failed_write_leaves_the_old_file_and_nothing_else(failing, error, tmp_path, monkeypatch):
    path = tmp_path / "rule.json"
    rule_of("old").to_json(path)
    before = path.read_bytes()

    def fail(*arguments):
        raise error

    monkeypatch.setattr(*((Path, "replace") if failing == "replace" else (os, "fsync")), fail)
    with pytest.raises(type(error)):
        rule_of("new").to_json(path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["rule.json"]
    with pytest.raises(type(error)):
        rule_of("new").to_json(tmp_path / "other.json")
    assert [p.name for p in tmp_path.iterdir()] == ["rule.json"]


def test_a_rule_that_cannot_be_written_leaves_the_old_file(tmp_path):
    path = tmp_path / "rule.json"
    rule_of("old").to_json(path)
    before = path.read_bytes()
    with pytest.raises(TypeError, match="convert the labels"):
        WeightedRule(Loss.argmax(2), (np.array([b"a", b"b"]),)).to_json(path)
    assert path.read_bytes() == before


@pytest.mark.skipif(os.name != "posix", reason="permissions and links of POSIX")
def test_files_have_usual_permissions_and_links_stay_links(tmp_path):
    plain = tmp_path / "plain"
    plain.touch()
    rule_of("f1").to_json(tmp_path / "rule.json")
    assert stat.S_IMODE((tmp_path / "rule.json").stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)
    (tmp_path / "latest.json").symlink_to(tmp_path / "rule.json")
    rule_of("g_mean").to_json(tmp_path / "latest.json")
    assert (tmp_path / "latest.json").is_symlink()
    assert load_rule(tmp_path / "rule.json").metadata.to_dict() == {"metric": "g_mean"}


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o666, 0o444])
def test_a_file_keeps_its_permissions(mode, tmp_path):
    path, link = tmp_path / "rule.json", tmp_path / "latest.json"
    rule_of("f1").to_json(path)
    path.chmod(mode)
    link.symlink_to(path.name)
    for name, target in (("g_mean", path), ("kappa", link)):
        rule_of(name).to_json(target)
        assert stat.S_IMODE(path.stat().st_mode) == mode
        assert load_rule(path).metadata.to_dict() == {"metric": name}
    assert link.is_symlink()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["latest.json", "rule.json"]


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_a_private_file_is_private_while_it_is_written(tmp_path, monkeypatch):
    path = tmp_path / "rule.json"
    rule_of("f1").to_json(path)
    path.chmod(0o600)
    modes = []
    fsync = os.fsync
    monkeypatch.setattr(os, "fsync", lambda file: (modes.append(os.fstat(file).st_mode), fsync(file)))
    rule_of("g_mean").to_json(path)
    assert [stat.S_IMODE(mode) for mode in modes] == [0o600]


@pytest.mark.skipif(os.name != "posix", reason="special files of POSIX")
def test_special_files_are_written_into(tmp_path):
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    for path in (pipe, link):
        reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        try:
            text = rule_of("f1").to_json(path)
            assert os.read(reader, 1 << 16).decode() == text
        finally:
            os.close(reader)
        assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["link", "pipe"]


@pytest.mark.skipif(os.name != "posix", reason="streams of POSIX")
@pytest.mark.parametrize("stream", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
@pytest.mark.parametrize("kind", ["file", "pipe"])
def test_streams_are_written_in_turn(stream, kind, tmp_path):
    """What was printed before stays before, and what is printed after comes after, wherever the stream goes."""
    script = (
        "import numpy as np; from metricwise import WeightedRule; from metricwise.core.losses import Loss;"
        f"print('before'); WeightedRule(Loss.argmax(2), (np.arange(2),)).to_json({stream!r}); print('after')"
    )
    out = tmp_path / "out.txt"
    with out.open("wb") as file:
        done = subprocess.run(
            [sys.executable, "-c", script], stdout=file if kind == "file" else subprocess.PIPE, check=True
        )
    found = out.read_text() if kind == "file" else done.stdout.decode()
    assert found == f"before\n{WeightedRule(Loss.argmax(2), (np.arange(2),)).to_json()}after\n"
    assert [p.name for p in tmp_path.iterdir()] == ["out.txt"]


def test_a_directory_is_not_replaced(tmp_path):
    with pytest.raises((IsADirectoryError, PermissionError)):
        rule_of("f1").to_json(tmp_path)
    assert tmp_path.is_dir()


def test_a_name_may_be_as_long_as_names_are(tmp_path):
    path = tmp_path / ("r" * 250 + ".json")
    rule_of("f1").to_json(path)
    assert load_rule(path).metadata.to_dict() == {"metric": "f1"}


KILLED = """
import os, signal, sys
from pathlib import Path
from metricwise.core import files
with files.replacing(Path(sys.argv[1])) as file:
    file.write(b"half")
    file.flush()
    if sys.argv[2] == "wait":
        print("ready", flush=True)
        sys.stdin.readline()
    else:
        os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(os.name != "posix", reason="kills a process")
def test_what_a_killed_writer_left_is_removed_by_the_next(tmp_path):
    path, other = tmp_path / "rule.json", tmp_path / "other.json"
    for target in (path, path, other):
        subprocess.run([sys.executable, "-c", KILLED, target, "die"], check=False)
    assert len(list(tmp_path.iterdir())) == 2  # the second writer has removed what the first one left
    rule_of("f1").to_json(path)
    names = sorted(p.name for p in tmp_path.iterdir())
    assert names[1:] == ["rule.json"]
    assert names[0].startswith(".other.json.")
    rule_of("f1").to_json(other)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["other.json", "rule.json"]


@pytest.mark.skipif(os.name != "posix", reason="locks of files")
def test_a_writer_that_is_still_writing_is_left_alone(tmp_path):
    path = tmp_path / "rule.json"
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, path, "wait"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdout.readline() == "ready\n"
        rule_of("f1").to_json(path)
        assert load_rule(path).metadata.to_dict() == {"metric": "f1"}
        assert len(list(tmp_path.iterdir())) == 2
        writer.communicate("go\n")
    assert path.read_bytes() == b"half"  # the last to finish
    assert [p.name for p in tmp_path.iterdir()] == ["rule.json"]


def test_a_folder_may_be_written_to_that_cannot_be_listed(tmp_path, monkeypatch):
    def refuse(*arguments):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "listdir", refuse)
    monkeypatch.setattr(os, "scandir", refuse)
    rule_of("new").to_json(tmp_path / "rule.json")
    assert load_rule(tmp_path / "rule.json").metadata.metric == "new"


@pytest.mark.skipif(os.name != "posix", reason="locks of files")
def test_an_interrupt_at_once_after_the_file_was_made_leaves_nothing(tmp_path, monkeypatch):
    def interrupt(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("fcntl.flock", interrupt)
    with pytest.raises(KeyboardInterrupt):
        rule_of("new").to_json(tmp_path / "rule.json")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("when", ["before", "after"])
def test_what_was_written_is_noted_whenever_an_interrupt_comes(when, tmp_path, monkeypatch):
    replace = Path.replace

    def interrupted(self, target):
        if when == "after":
            replace(self, target)
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", interrupted)
    with noting_writes() as writes, pytest.raises(KeyboardInterrupt):
        rule_of("new").to_json(tmp_path / "rule.json")
    assert writes.done() == ([tmp_path.resolve() / "rule.json"] if when == "after" else [])
    assert [path.name for path in tmp_path.iterdir()] == (["rule.json"] if when == "after" else [])
