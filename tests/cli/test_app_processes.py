"""The command as a process: two commands from a table to decisions, signals, pipes, terminals."""

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pandas as pd
import pytest

import metricwise as mw
from cli.shared import MULTICLASS, arguments, table, write

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
COMMAND = [sys.executable, "-m", "metricwise"]


def start(*words, cwd, command=COMMAND, **options):
    streams = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    return subprocess.Popen([*command, *words], cwd=cwd, **{**streams, **options})


def finish(process):
    out, err = process.communicate(timeout=60)
    return process.returncode, out.decode(), err.decode()


@pytest.fixture
def folder(tmp_path):
    frame, _ = table(MULTICLASS, 60)
    write(frame, tmp_path / "rows.csv")
    mw.WeightedRule.from_weights({"low": 1, "mid": 2, "urgent": 3}).to_json(tmp_path / "rule.json")
    return tmp_path


def test_from_a_table_to_decisions_in_two_commands(tmp_path):
    frame, _ = table(MULTICLASS)
    new, _ = table(MULTICLASS, seed=1)
    write(frame, tmp_path / "oof.csv")
    write(new, tmp_path / "new.csv")
    fit = finish(start("fit", "oof.csv", "--target", "truth", "--metric", "macro_f1", "-o", "rule.json", cwd=tmp_path))
    assert fit[0] == 0, fit[2]
    apply = finish(start("apply", "rule.json", "new.csv", "--keep", "id", "-o", "decisions.csv", cwd=tmp_path))
    assert apply[0] == 0, apply[2]
    rule = mw.optimize(*arguments(MULTICLASS, frame), "macro_f1").rule
    decided = pd.read_csv(tmp_path / "decisions.csv", dtype=str)
    assert decided["truth"].tolist() == rule.predict(arguments(MULTICLASS, new)[0]).tolist()
    assert decided["id"].tolist() == new["id"].tolist()


def waiting(folder, path):
    """Wait until a process has made a file in a folder."""
    for _ in range(600):
        if list(folder.glob(path)):
            return
        time.sleep(0.05)
    raise AssertionError(f"{path} has not appeared")


# A process that stops when everything is written but the name: just before a temporary file is renamed.
SLOW = """
import os, sys, time
from pathlib import Path
from metricwise.cli import main
os.fsync = lambda number: (Path("written").touch(), time.sleep(60))
main(sys.argv[1:])
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_killed_apply_leaves_nothing(folder, number):
    before = sorted(path.name for path in folder.iterdir())
    words = ("apply", "rule.json", "rows.csv", "-o", "decisions.csv")
    process = start(*words, cwd=folder, command=[sys.executable, "-c", SLOW])
    waiting(folder, "written")
    process.send_signal(number)
    code, out, err = finish(process)
    assert (code, out) == (2, "")
    assert err.splitlines()[-1] == "metricwise: interrupted; nothing was written."
    assert sorted(path.name for path in folder.iterdir()) == sorted([*before, "written"])


# A process that is interrupted when the file has its name, and before it has said so.
LATE = """
import os, signal, sys
from pathlib import Path
from metricwise.cli import main
replace = Path.replace
Path.replace = lambda self, target: (replace(self, target), os.kill(os.getpid(), signal.SIGINT))[0]
main(sys.argv[1:])
"""


def test_an_interrupt_after_the_file_is_complete_says_that_it_is(folder):
    words = ("apply", "rule.json", "rows.csv", "-o", "decisions.csv")
    code, out, err = finish(start(*words, cwd=folder, command=[sys.executable, "-c", LATE]))
    assert (code, out) == (2, "")
    assert err.splitlines()[-1] == "metricwise: interrupted after decisions.csv had been written."
    assert len((folder / "decisions.csv").read_text().splitlines()) == 61


def test_a_process_that_is_killed_without_a_word_leaves_the_old_file(folder):
    (folder / "decisions.csv").write_text("old\n")
    words = ("apply", "rule.json", "rows.csv", "-o", "decisions.csv", "--force")
    process = start(*words, cwd=folder, command=[sys.executable, "-c", SLOW])
    waiting(folder, "written")
    process.kill()
    assert finish(process)[0] == -signal.SIGKILL
    assert (folder / "decisions.csv").read_text() == "old\n"


def test_killed_while_it_reads(folder):
    process = start("apply", "rule.json", "-", "-o", "decisions.csv", cwd=folder)
    process.stdin.write(b"id,low,mid,urgent\n")
    process.stdin.flush()
    time.sleep(0.2)
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and not _catches(process.pid):
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=30) == 2
    assert not (folder / "decisions.csv").exists()
    for stream in (process.stdin, process.stdout, process.stderr):
        stream.close()


def _catches(pid):
    """Whether a process has a handler for SIGTERM."""
    status = Path(f"/proc/{pid}/status")
    if not status.exists():
        return True
    (line,) = [line for line in status.read_text().splitlines() if line.startswith("SigCgt")]
    return bool(int(line.split()[1], 16) >> (signal.SIGTERM - 1) & 1)


def test_a_reader_that_has_seen_enough_is_no_error(folder):
    rows = pd.concat([table(MULTICLASS, 60)[0]] * 500)
    write(rows, folder / "many.csv")
    process = start("apply", "rule.json", "many.csv", cwd=folder)
    process.stdout.read(10)
    process.stdout.close()
    process.wait(timeout=60)
    assert b"Traceback" not in process.stderr.read()
    for stream in (process.stdin, process.stderr):
        stream.close()


def test_a_full_device(folder):
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    with Path("/dev/full").open("wb") as full:
        process = start("apply", "rule.json", "rows.csv", cwd=folder, stdout=full)
        err = process.communicate(timeout=60)[1].decode()
    assert process.returncode == 2
    assert "metricwise: no space left on device." in err


def on_a_terminal(words, folder, **environment):
    """Return what a command prints on a terminal of 40 columns."""
    pty = pytest.importorskip("pty")
    main, other = pty.openpty()
    settings = {**os.environ, "COLUMNS": "40", "TERM": "xterm", **environment}
    process = subprocess.Popen([*COMMAND, *words], cwd=folder, stdout=other, stderr=subprocess.DEVNULL, env=settings)
    os.close(other)
    seen = b""
    with suppress(OSError):  # which is how a terminal ends
        while part := os.read(main, 4096):
            seen += part
    process.wait(timeout=60)
    os.close(main)
    return seen.decode()


def test_a_narrow_terminal_and_no_color(folder):
    words = ["evaluate", "rule.json", "rows.csv", "-t", "truth", "-m", "accuracy"]
    for environment in ({}, {"NO_COLOR": "1"}):
        text = on_a_terminal(words, folder, **environment)
        assert "accuracy" in text
        assert ("\x1b[3" in text) <= (not environment)
        assert max(len(re.sub(r"\x1b\[[0-9;]*m", "", line)) for line in text.splitlines()) <= 40
