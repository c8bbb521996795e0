"""``python -m reproduction`` on the command line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from reproduction import cli

ROOT = Path(__file__).parents[2]


def code(*words):
    with pytest.raises(SystemExit) as ended:
        cli.main(words)
    return ended.value.code


def test_help_names_the_experiments(capsys):
    assert code("--help") == 0
    out = capsys.readouterr().out
    for word in (
        "uci-paper",
        "uci",
        "synthetic",
        "movielens",
        "consistency",
        "all",
        "--quick",
        "--jobs",
        "--seed",
        "--output",
    ):
        assert word in out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["mnist"], "argument experiment: invalid choice: 'mnist'"),
        (["uci", "--jobs", "0"], "argument -j/--jobs: must be an integer of at least 1, got '0'"),
        (["uci", "--seed", "-1"], "argument --seed: must be an integer of at least 0, got '-1'"),
        (["uci", "--repetitions", "many"], "argument --repetitions: must be an integer of at least 1, got 'many'"),
    ],
)
def test_what_is_wrong_is_said(capsys, words, sentence):
    assert code(*words) == 2
    assert sentence in capsys.readouterr().err


def test_bad_data_folder_is_one_sentence(monkeypatch, tmp_path):
    monkeypatch.setenv("METRICWISE_DATA", str(tmp_path / "nowhere"))
    assert code("uci", "--quick", "-o", str(tmp_path)).startswith("reproduction: METRICWISE_DATA must name a folder")


def test_interrupt_is_what_shells_call_one(monkeypatch):
    def stop(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "reproduce", stop)
    assert code("uci") == 130


def test_words_become_settings(monkeypatch):
    asked = []
    monkeypatch.setattr(cli, "reproduce", lambda names, output, **options: asked.append((names, output, options)))
    cli.main(["synthetic", "-o", "some where", "--seed", "3", "--repetitions", "4", "-j", "2"])
    cli.main(["all", "--quick"])
    (one, output, options), (every, default, _) = asked
    assert (one, output) == (["synthetic"], Path("some where"))
    assert options["command"] == "python -m reproduction synthetic -o 'some where' --seed 3 --repetitions 4 -j 2"
    assert (options["seed"], options["quick"], options["repetitions"], options["jobs"]) == (3, False, 4, 2)
    assert every == ["uci-paper", "uci", "synthetic", "movielens", "consistency"]
    assert default == Path("reproduction/results")


def test_module_is_the_command(tmp_path, monkeypatch):
    """From the root of the repository, as `make reproduce` runs it."""
    words = ["movielens", "--quick", "--output", str(tmp_path)]
    monkeypatch.delenv("METRICWISE_DATA", raising=False)
    done = subprocess.run(
        [sys.executable, "-m", "reproduction", *words], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout == ""
    assert done.stderr.startswith("data: small made-up files, for METRICWISE_DATA is not set\n")
    record = json.loads((tmp_path / "movielens.json").read_text())
    assert record["command"] == f"python -m reproduction movielens --quick --output {tmp_path}"
