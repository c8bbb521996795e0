"""The ``metricwise`` command says what exists, and loads what is asked for."""

import subprocess
import sys
from textwrap import dedent

import pytest

import metricwise as mw
from metricwise import cli, demo


def ended(*words):
    with pytest.raises(SystemExit) as end:
        cli.main(words)
    return end.value.code


@pytest.mark.parametrize("words", [[], ["--help"]])
def test_help_says_what_exists(capsys, words):
    if words:
        assert ended(*words) == 0
    else:
        cli.main([])
    out = capsys.readouterr().out
    for word in ("demo", "versions", "--version"):
        assert word in out
    assert "reproduce" not in out


def test_version(capsys):
    assert ended("--version") == 0
    assert capsys.readouterr().out == f"metricwise {mw.__version__}\n"


def test_versions_are_those_of_the_library(capsys):
    cli.main(["versions"])
    printed = capsys.readouterr().out
    mw.show_versions()
    assert printed == capsys.readouterr().out


def test_demo_is_the_demo(monkeypatch):
    calls = []
    monkeypatch.setattr(demo, "main", lambda: calls.append("demo"))
    cli.main(["demo"])
    assert calls == ["demo"]


def test_unknown_command(capsys):
    assert ended("reproduce") == 2
    assert "invalid choice: 'reproduce' (choose from" in capsys.readouterr().err


def test_help_loads_nothing_heavy():
    code = """
    import sys
    from metricwise.cli import main
    main([])
    print(sorted({"numpy", "scipy", "sklearn"} & set(sys.modules)))
    """
    done = subprocess.run([sys.executable, "-c", dedent(code)], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_module_is_the_command():
    done = subprocess.run([sys.executable, "-m", "metricwise", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"metricwise {mw.__version__}\n"
