"""Commands that write files, and a folder in which they run as often as they are asked to."""

import json
import re
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from cli.shared import done
from worlds import draw_codes

SERVER = Path(__file__).with_name("server.py")
UNFINISHED = re.compile(r"\.(.+)\.[0-9a-f]{16}\.tmp")  # what a killed writer may leave


@dataclass(frozen=True)
class Command:
    """A command line, and the files that it writes with what they hold before."""

    name: str
    words: tuple[str, ...]
    targets: tuple[str, ...]
    in_batches: bool = False

    def __str__(self):
        return self.name


def _writing(name, words, target, **options):
    return Command(name, (*words.split(), "-o", target, "--force"), (target,), **options)


COMMANDS = [
    _writing("fit", "fit rows.csv --target fraud --proba score --metric f1", "new.json"),
    _writing("apply to CSV", "apply rule.json rows.csv --keep-all --column decision", "decided.csv"),
    _writing("apply to Parquet", "apply rule.json rows.csv --keep-all --column decision", "decided.parquet"),
    _writing("apply to NumPy", "apply rule.json rows.csv", "decided.npy"),
    _writing(
        "apply in batches", "apply rule.json rows.parquet --keep id --column decision", "decided.parquet",
        in_batches=True,
    ),
    _writing("export to ONNX", "export rule.json", "rule.onnx"),
    _writing("export to SQL", "export rule.json", "rule.sql"),
    _writing("export to Python", "export rule.json", "rule.py"),
    _writing("report", "report rule.json few.csv --target fraud --metric f1", "page.html"),
    _writing("shares", "shares rule.json rows.csv", "moved.json"),
    Command(
        "watch", ("watch", "rule.json", "few.csv", "--id", "id", "--state", "state.json", "--report", "watch.html"),
        ("state.json", "watch.html"),
    ),
]  # fmt: skip


def make_folder(folder):
    """Write the tables and rules that commands read, and a state of a watch."""
    rng = np.random.default_rng(0)
    score = rng.beta(1, 2, 20_000)
    frame = pd.DataFrame({"id": np.arange(len(score)), "score": score})
    frame["fraud"] = draw_codes(np.c_[1 - score, score], rng)
    frame.to_csv(folder / "rows.csv", index=False)
    frame.to_parquet(folder / "rows.parquet")
    frame[:400].assign(id=lambda few: few["id"] + 10**6).to_csv(folder / "few.csv", index=False)
    frame[:300].to_csv(folder / "before.csv", index=False)
    options = ["--target", "fraud", "--proba", "score", "--metric", "recall", "--subject-to", "precision >= 0.55"]
    done("fit", folder / "rows.csv", *options, "-o", folder / "rule.json")
    done("watch", folder / "rule.json", folder / "before.csv", "--id", "id", "--state", folder / "state.json")


class Workshop:
    """A folder, a process that runs commands in it, and what the files of the folder hold."""

    def __init__(self, folder):
        self.folder = folder
        make_folder(folder)
        self.inputs = {path.name: path.read_bytes() for path in folder.iterdir()}
        self.server = subprocess.Popen(
            [sys.executable, SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def close(self):
        """End the process."""
        self.server.communicate()

    def run(self, command, **request):
        """Run a command, with a signal `after` some seconds or before the `event`-th event; the answer as a dict."""
        asked = {"signal": signal.SIGKILL, "in_batches": command.in_batches, "folder": str(self.folder), **request}
        self.server.stdin.write(json.dumps({"words": command.words, **asked}) + "\n")
        self.server.stdin.flush()
        return json.loads(self.server.stdout.readline())

    def reset(self, command):
        """Put the old files in the place of the targets; unfinished files stay where they are."""
        for target in command.targets:
            (self.folder / target).write_bytes(self.old(target))

    def old(self, target):
        """Return what a target holds before the command."""
        return self.inputs.get(target, b"old\n")

    def read(self, target):
        """Return what a target holds now."""
        return (self.folder / target).read_bytes()

    def unfinished(self):
        """Return the names of unfinished files."""
        return sorted(path.name for path in self.folder.iterdir() if UNFINISHED.fullmatch(path.name))

    def check(self, command, written):
        """Check that targets are old or as `written`, the inputs as they were, and nothing else is there."""
        for target in command.targets:
            assert self.read(target) in (self.old(target), written[target]), target
        for name, content in self.inputs.items():
            assert name in command.targets or (self.folder / name).read_bytes() == content, name
        names = {path.name for path in self.folder.iterdir()} - set(self.inputs) - set(command.targets)
        assert names == set(self.unfinished()), names

    def finish(self, command):
        """Run a command to its end on old files; returns its answer and what it wrote."""
        self.reset(command)
        answer = self.run(command)
        assert answer["code"] == 0, answer["error"]
        written = {target: self.read(target) for target in command.targets}
        assert all(content != self.old(target) for target, content in written.items())
        return answer, written

    def clear(self):
        """Leave the inputs as they were, and nothing else."""
        for path in self.folder.iterdir():
            if path.name not in self.inputs:
                path.unlink()
        for name, content in self.inputs.items():
            (self.folder / name).write_bytes(content)
