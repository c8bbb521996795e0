"""``metricwise reproduce`` on the command line."""

from __future__ import annotations

import subprocess
import sys

import pytest

from metricwise.cli import main

pytest.importorskip("typer")


def run(monkeypatch, *words):
    monkeypatch.setattr(sys, "argv", ["metricwise", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code


def test_help_names_the_experiments(monkeypatch, capsys):
    assert run(monkeypatch, "reproduce", "--help") in (0, None)
    out = capsys.readouterr().out
    for word in ("uci", "synthetic", "movielens", "--quick", "--jobs", "--seed"):
        assert word in out


def test_unknown_experiment(monkeypatch, capsys):
    assert run(monkeypatch, "reproduce", "mnist") == 2
    assert "mnist" in capsys.readouterr().err


def test_bad_data_folder_is_one_sentence(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("METRICWISE_DATA", str(tmp_path / "nowhere"))
    assert run(monkeypatch, "reproduce", "uci", "--quick", "-o", str(tmp_path)) == 1
    assert capsys.readouterr().err.startswith("metricwise: METRICWISE_DATA must name a folder")


def test_without_typer(monkeypatch):
    monkeypatch.setitem(sys.modules, "typer", None)
    with pytest.raises(SystemExit, match=r"pip install 'metricwise\[cli\]'"):
        main()


def test_module_is_the_command():
    done = subprocess.run([sys.executable, "-m", "metricwise", "--help"], capture_output=True, text=True, check=True)
    assert "reproduce" in done.stdout
