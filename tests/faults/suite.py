"""The suite as ``make`` runs it, on a copy of the tree.

Owns the commands (read off ``make -n``, so that the Makefile stays their owner), the copy, and how pytest is run there
with some of the tests. Must not know faults.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.faults import selecting

TARGET = "test"
SLOW_TARGETS = ("test-docs", "test-slow")  # which face what the first has left alive
KERNELS = "METRICWISE_KERNELS"  # the variable that says which of them serve
# Recordings say that something has changed, not that it is wrong; this catalogue does not apply to a tree with a fault.
RECORDINGS, OWN = "tests/golden/", "tests/faults/"
_LEFT_OUT = (".git", ".venv", ".faults", "_build", ".*_cache", ".hypothesis", "build", "*.egg-info", "generated")


@dataclass(frozen=True)
class Command:
    """One call of pytest.

    Parameters
    ----------
    target : str
        Of the Makefile.
    arguments : tuple of str
        Of pytest, but for the number of processes.
    variables : dict
        Of the environment.
    """

    target: str
    arguments: tuple[str, ...]
    variables: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Words for it, which make a file name."""
        kernels = self.variables.get(KERNELS, "compiled")
        return f"{self.target}-{kernels}"


@dataclass(frozen=True)
class Note:
    """What became of a test."""

    test: str
    seconds: float
    failed: bool


def commands(root: Path, targets: Sequence[str] = (TARGET,)) -> list[Command]:
    """Return the calls of pytest that targets make, of those that the Makefile has."""
    found = []
    for target in targets:
        said = subprocess.run(["make", "-n", target], cwd=root, capture_output=True, text=True, check=False)
        if said.returncode:
            continue
        for line in said.stdout.replace("\\\n", " ").splitlines():
            words = shlex.split(line)
            if "pytest" not in words:
                continue
            variables = dict(re.findall(r"^(\w+)=(.*)$", word)[0] for word in words if re.match(r"\w+=", word))
            found.append(Command(target, _in_one_process(words[words.index("pytest") + 1 :]), variables))
    names = [command.name for command in found]
    if len(set(names)) < len(names):
        raise ValueError(f"make -n: each target must run pytest at most once for each kernel, got {names}.")
    return found


def _in_one_process(words: Sequence[str]) -> tuple[str, ...]:
    """Leave out how many processes run tests, and how these are dealt to them."""
    options = [at for at, word in enumerate(words) if word in ("-n", "--dist")]
    return tuple(word for at, word in enumerate(words) if at not in options and at - 1 not in options)


@contextmanager
def copied(root: Path) -> Iterator[Path]:
    """Copy the tree, with its compiled kernels, to a temporary folder."""
    with TemporaryDirectory(prefix="faults-") as folder:
        copy = Path(folder, "tree")
        shutil.copytree(root, copy, ignore=shutil.ignore_patterns(*_LEFT_OUT))
        yield copy


def environment(copy: Path, variables: dict[str, str]) -> dict[str, str]:
    """Return the environment of a process that imports the copy: the same examples on every run, one thread."""
    fixed = {"PYTHONPATH": str(copy / "src"), "CI": "true", "OMP_NUM_THREADS": "1"}
    return {**os.environ, **fixed, **variables}


def build_kernels(copy: Path) -> None:
    """Compile the kernels of a copy again."""
    done = subprocess.run(
        [sys.executable, "setup.py", "build_ext", "--inplace", "--force"],
        cwd=copy,
        env=environment(copy, {}),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode or "the kernels are not compiled" in done.stderr:
        raise RuntimeError(f"the kernels of a copy could not be built:\n{done.stderr[-2000:]}")


def run(
    copy: Path,
    command: Command,
    arguments: Sequence[str] = (),
    *,
    tests: Sequence[str] | None = None,
    recordings: bool = False,
    limit: float | None = None,
) -> tuple[list[Note], str]:
    """Run pytest in a copy, and return what became of the tests and the last words.

    Parameters
    ----------
    arguments : sequence of str
        Beside those of the command.
    tests : sequence of str, optional
        Names of tests, which are run in this order; all by default.
    recordings : bool, default=False
        Whether the tests of recordings are among all.
    limit : float, optional
        Seconds after which it is stopped; then the last note is that of a test called "time limit", which failed.
    """
    notes, order = copy / "faults-notes.jsonl", copy / "faults-order.txt"
    notes.write_text("", encoding="utf-8")
    variables = {**command.variables, selecting.NOTES: str(notes)}
    words = [sys.executable, "-m", "pytest", "-q", "-p", selecting.__name__, "-p", "no:cacheprovider", *arguments]
    words += ["--assert=plain"]  # to say how two long lists differ may take minutes
    if tests is None:
        words += [*(word for word in command.arguments if not word.startswith(RECORDINGS.rstrip("/")) or recordings)]
        words += [f"--ignore={path}" for path in ([OWN] if recordings else [OWN, RECORDINGS])]
    else:
        order.write_text("\n".join(tests) + "\n", encoding="utf-8")
        variables[selecting.ORDER] = str(order)
        words += list(dict.fromkeys(test.partition("::")[0] for test in tests))
    process = subprocess.Popen(
        words,
        cwd=copy,
        env=environment(copy, variables),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        said, _ = process.communicate(timeout=limit)
        stopped = False
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # this process and those that it has started
        said, _ = process.communicate()
        stopped = True
    found = [Note(**json.loads(line)) for line in notes.read_text(encoding="utf-8").splitlines()]
    if stopped:
        found.append(Note("time limit", float(limit or 0.0), True))
    elif process.returncode not in (0, 1, 5) and not any(note.failed for note in found):  # 5: nothing was collected
        found.append(Note(f"pytest ended with {process.returncode}", 0.0, True))
    return found, said[-3000:]
