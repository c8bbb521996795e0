"""Command lines, in this process: right ones give what Python gives, any others a sentence and its exit code."""

from __future__ import annotations

import contextlib
import io
import json
import shutil
from dataclasses import dataclass
from functools import cache

import numpy as np
import pandas as pd
import pytest
from typer.main import get_command
from typer.testing import CliRunner

import metricwise as mw
from cli.shared import AVERAGES, KINDS, METRICS, arguments, table, write
from fuzz.kinds.tables import folder
from fuzz.kinds.texts import draw_name, draw_written, mangle_text
from fuzz.verdicts import Verdict
from metricwise.cli.app import app
from metricwise.cli.errors import UNEXPECTED

N_ROWS = 40
SLOW = ("demo", "report")  # commands that take half a second and more, and are not drawn by themselves
# What installs something on this machine, and what reads the terminal.
FORBIDDEN = ("--install-completion", "--show-completion")
FILES = (
    "rows.csv",
    "rows.parquet",
    "rows.tsv",
    "rule.json",
    "other.json",
    "empty.csv",
    "nobody.csv",
    ".",
    "-",
    "out.csv",
)
VALUES = ("f1", "macro", "micro", "0", "1", "-1", "0.5", "yes", "x", "", " ", "low", "truth", "p_", "1,2", "a=b", "nan",
          "1e9", "ü", "--", "-o", "out.json", "weighted", "labels", "logits", "scores", "id", ",", ";")  # fmt: skip


# ---------------------------------------------------------------------------------------------- files that commands use


@cache
def workplace(kind):
    """A folder with tables of a kind of target and rules that were fitted to it, and the options that name columns."""
    place = folder() / f"commands-{KINDS.index(kind)}"
    place.mkdir(exist_ok=True)
    frame, options = table(kind, N_ROWS)
    for suffix in (".csv", ".tsv", ".parquet"):
        write(frame, place / f"rows{suffix}")
    (place / "empty.csv").write_text("")
    metric = ["--metric", METRICS[kind], *(["--average", AVERAGES[kind]] if kind in AVERAGES else [])]
    for name, seed in (("rule.json", "0"), ("other.json", "1")):
        _, code, errors = run(["fit", "rows.csv", *options, *metric, "--seed", seed, "-o", name], place)
        assert code == 0, errors
    shutil.copytree(place, pristine(kind), dirs_exist_ok=True)
    return place, options, metric


def pristine(kind):
    return folder() / f"pristine-{KINDS.index(kind)}"


def restore(kind):
    """Undo what commands have written."""
    place = workplace(kind)[0]
    kept = {path.name: path for path in pristine(kind).iterdir()}
    for path in place.iterdir():
        if path.name not in kept:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    for name, path in kept.items():
        target = place / name
        if not target.exists() or target.stat().st_mtime_ns != path.stat().st_mtime_ns:
            shutil.copy2(path, target)


def run(words, place):
    """Return output, exit code and errors of a command that is run in a folder."""
    with contextlib.chdir(place):
        result = CliRunner().invoke(app, words, input="", catch_exceptions=False)
    return result.stdout, result.exit_code, result.stderr


# ------------------------------------------------------------------------------------------------------------- cases


@dataclass
class CommandLine:
    """Words of a command, in the folder of a kind of target."""

    kind: str
    words: list
    refusable: bool = True

    def __str__(self):
        return f"{self.kind}: metricwise {json.dumps(self.words, ensure_ascii=False)}"

    def judge(self):
        place = workplace(self.kind)[0]
        restore(self.kind)
        out, code, errors = run(self.words, place)
        assert code != UNEXPECTED, f"exit code 1: {errors}"
        assert "Traceback" not in out + errors, errors
        if code == 0:
            return Verdict.RIGHT
        left = [path.name for path in place.iterdir() if path.name.endswith(".tmp")]
        assert not left, f"left behind: {left}"
        last = errors.strip().splitlines()[-1] if errors.strip() else ""
        assert last, f"exit code {code} and no sentence"
        assert "np." not in last, last
        return Verdict.REFUSED


@dataclass
class Fit(CommandLine):
    """A fit that is right, beside the Python call."""

    metric: str = ""
    average: str | None = None
    refusable: bool = False

    def judge(self):
        place = workplace(self.kind)[0]
        restore(self.kind)
        out, code, errors = run(self.words, place)
        assert code == 0, errors
        said = json.loads(out)
        proba, y = arguments(self.kind, pd.read_csv(place / "rows.csv", dtype={"id": str}))
        solution = mw.optimize(proba, y, self.metric, average=self.average)
        assert said["value"] == pytest.approx(solution.value, abs=1e-9)
        assert said["baseline"] == pytest.approx(solution.baseline, abs=1e-9)
        return Verdict.RIGHT


@dataclass
class Apply(CommandLine):
    """Decisions about a table, beside those of the rule in Python."""

    refusable: bool = False

    def judge(self):
        place = workplace(self.kind)[0]
        restore(self.kind)
        out, code, errors = run(self.words, place)
        assert code == 0, errors
        decided = pd.read_csv(io.StringIO(out))
        proba, _ = arguments(self.kind, pd.read_csv(place / "rows.csv", dtype={"id": str}))
        expected = mw.load_rule(str(place / "rule.json")).predict(proba)
        np.testing.assert_array_equal(decided.to_numpy().astype(str), expected.reshape(N_ROWS, -1).astype(str))
        return Verdict.RIGHT


# -------------------------------------------------------------------------------------------------------------- draws


@cache
def vocabulary():
    """Names of commands, and of the options of each."""
    commands = get_command(app).commands
    named = {name: [option for parameter in command.params for option in parameter.opts if option[:1] == "-"]
             for name, command in commands.items()}  # fmt: skip
    return {name: [option for option in options if option not in FORBIDDEN] for name, options in named.items()}


def templates(kind):
    """Commands that are right, for a kind of target."""
    _, options, metric = workplace(kind)
    columns = [word for at in range(0, len(options), 2) if options[at] != "--target" for word in options[at : at + 2]]
    return [
        ["fit", "rows.csv", *options, *metric, "-o", "new.json"],
        ["fit", "rows.parquet", *options, *metric, "-o", "new.json", "--json"],
        ["apply", "rule.json", "rows.csv", *columns],
        ["apply", "rule.json", "rows.parquet", "-o", "out.parquet", "--keep", "id", *columns],
        ["evaluate", "rule.json", "rows.csv", *options, "--json"],
        ["evaluate", "rule.json", "rows.tsv", *options, "--metric", "accuracy"],
        ["compare", "rule.json", "rows.csv", *options, "--against", "other.json"],
        ["shares", "rule.json", "rows.csv", *columns],
        ["expect", "rule.json", "rows.csv", *columns],
        ["explain", "rule.json"],
        ["export", "rule.json", "-o", "out.py"],
        ["export", "rule.json", "-o", "-", "--to", "sql", "--dialect", "sqlite"],
        ["export", "rule.json", "-o", "out.onnx"],
        ["watch", "rule.json", "rows.csv", *options, "--state", "state.json"],
        ["trade-off", "rows.csv", *options, *metric, "--against", "accuracy", "--points", "2"],
        ["metrics"],
        ["metrics", "f1", "--json"],
        ["versions"],
    ]


def draw_word(rng, command):
    """A word that may stand anywhere."""
    shape = rng.integers(6)
    if shape == 0:
        return str(rng.choice(vocabulary().get(command) or ["--help"]))
    if shape == 1:
        return str(rng.choice(FILES))
    if shape == 2:
        return draw_name(rng)
    if shape == 3:
        return draw_written(rng).text
    if shape == 4:
        return str(rng.choice([option for options in vocabulary().values() for option in options]))
    return VALUES[rng.integers(len(VALUES))]


def mangle_words(words, rng):
    """Words of which some were dropped, doubled, replaced, added, swapped or damaged."""
    words = list(words)
    for _ in range(rng.integers(1, 4)):
        at, shape = int(rng.integers(len(words) + 1)), rng.integers(6)
        if shape == 0 or at == len(words):
            words.insert(at, draw_word(rng, words[0] if words else ""))
        elif shape == 1:
            del words[at]
        elif shape == 2:
            words.insert(at, words[at])
        elif shape == 3:
            words[at] = draw_word(rng, words[0])
        elif shape == 4:
            words[at] = mangle_text(words[at], rng).replace("\x00", "")
        else:
            other = int(rng.integers(len(words)))
            words[at], words[other] = words[other], words[at]
        words = words or ["--help"]
    return [word for word in words if word not in (*FORBIDDEN, *SLOW)]


# Options that take a bound, a metric or a number, so that many lines get past the parser.
PAIRED = {
    "--subject-to": lambda rng: draw_written(rng).text,
    "--metric": draw_name,
    "--record": draw_name,
    "--average": lambda rng: str(rng.choice(["micro", "macro", "instance", "x"])),
    "--seed": lambda rng: str(rng.choice(["0", "7", "-1", "1e3", "99999999999999999999"])),
    "--abstain": lambda rng: str(rng.choice(["0.1", "yes", "-1", "nan", "x"])),
    "--labels-per-row": lambda rng: str(rng.choice(["1", "1,2", "2,1", "0", "x", "1,1"])),
    "--input": lambda rng: str(rng.choice(["probabilities", "logits", "log_proba", "scores", "x"])),
    "--pos-label": lambda rng: str(rng.choice(["0", "1", "low", "yes", "x"])),
    "--classes": lambda rng: str(rng.choice(["0,1", "low,mid,urgent", "urgent,mid,low", ",", "a"])),
    "--order": lambda rng: str(rng.choice(["low,mid,urgent", "0,1", "a,b"])),
    "--weight": lambda rng: str(rng.choice(["id", "score", "low", "nobody"])),
    "--groups": lambda rng: str(rng.choice(["id", "truth", "nobody"])),
    "--time": lambda rng: str(rng.choice(["id", "score", "truth"])),
    "--sensitive-features": lambda rng: str(rng.choice(["id", "truth", "low"])),
}


def draw(rng):
    """Draw a command line."""
    kind = KINDS[rng.integers(len(KINDS))]
    _, options, metric = workplace(kind)
    shape = rng.random()
    if shape < 0.04:
        return Fit(
            kind,
            ["fit", "rows.csv", *options, *metric, "-o", "new.json", "--json"],
            metric=METRICS[kind],
            average=AVERAGES.get(kind),
        )
    if shape < 0.1:
        suffix = str(rng.choice([".csv", ".tsv", ".parquet"]))
        return Apply(kind, ["apply", "rule.json", f"rows{suffix}"])
    known = templates(kind)
    words = known[rng.integers(len(known))]
    if shape < 0.4:
        option = str(rng.choice(list(PAIRED)))
        return CommandLine(kind, [*words, option, PAIRED[option](rng)])
    return CommandLine(kind, mangle_words(words, rng))
