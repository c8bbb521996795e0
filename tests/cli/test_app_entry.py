"""The ``metricwise`` command says what exists, loads what is asked for, and says how to get what is not there."""

import subprocess
import sys
from textwrap import dedent

import pytest

import metricwise as mw
from metricwise import cli
from metricwise.cli import demo

COMMANDS = ("fit", "apply", "evaluate", "compare", "shares", "expect", "trade-off", "explain", "export", "metrics")


def python(code, *, timeout=120):
    return subprocess.run(
        [sys.executable, "-c", dedent(code)], capture_output=True, text=True, timeout=timeout, check=False
    )


@pytest.mark.parametrize("words", [[], ["--help"]])
def test_help_says_what_exists(capsys, words):
    cli.main(words)
    out = capsys.readouterr().out
    for word in (*COMMANDS, "demo", "versions"):
        assert f"\n  {word} " in out
    assert "--version" in out
    assert "Exit codes" in out


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_as_wide_as_the_terminal(command, monkeypatch, capsys):
    for width in (50, 100):
        monkeypatch.setenv("COLUMNS", str(width))
        cli.main([command, "--help"])
        out = capsys.readouterr().out
        assert out.startswith(f"Usage: metricwise {command} ")
        assert max(map(len, out.splitlines())) <= width


def test_version(capsys):
    cli.main(["--version"])
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
    with pytest.raises(SystemExit) as end:
        cli.main(["evaluat"])
    assert end.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("metricwise: no such command 'evaluat'")
    assert "evaluate" in line


def test_help_loads_nothing_heavy():
    done = python("""
    import sys
    from metricwise.cli import main
    main(["fit", "--help"])
    print(sorted({"numpy", "scipy", "sklearn", "pyarrow"} & set(sys.modules)))
    """)
    assert done.stdout.splitlines()[-1] == "[]"


def test_module_is_the_command():
    done = subprocess.run([sys.executable, "-m", "metricwise", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"metricwise {mw.__version__}\n"


WITHOUT = """
import sys
sys.modules[{package!r}] = None
from metricwise.cli import main
main({words!r})
"""


def test_without_the_extra_a_sentence_says_how_to_get_it():
    package = "typer"
    done = python(WITHOUT.format(package=package, words=["fit", "oof.csv"]))
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert "pip install 'metricwise[cli]'" in line
    assert python(WITHOUT.format(package=package, words=["--version"])).stdout == f"metricwise {mw.__version__}\n"
    assert python(WITHOUT.format(package=package, words=["versions"])).stdout.startswith("System:")


def test_without_pyarrow_a_sentence_says_how_to_get_it(tmp_path):
    (tmp_path / "rows.csv").write_text("p,y\n0.1,0\n0.9,1\n")
    words = ["fit", str(tmp_path / "rows.csv"), "-t", "y", "-m", "f1", "-o", str(tmp_path / "rule.json")]
    done = python(WITHOUT.format(package="pyarrow", words=words))
    assert done.returncode == 2
    assert done.stderr == "metricwise: tables need pyarrow: pip install 'metricwise[tables]'.\n"


def test_completion_knows_commands_and_metrics():
    def completed(line):
        words = ["env", "_METRICWISE_COMPLETE=complete_bash", f"COMP_WORDS={line}", f"COMP_CWORD={len(line.split())}"]
        command = [*words, sys.executable, "-m", "metricwise"]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False).stdout.split()

    assert "compare" in completed("metricwise")
    assert "quadratic_kappa" in completed("metricwise fit rows.csv --metric")


def test_an_interrupt_before_the_command_has_begun(monkeypatch, capsys):
    def interrupt(options):
        raise KeyboardInterrupt

    monkeypatch.setattr("metricwise.cli.app.run", interrupt)
    with pytest.raises(SystemExit, match="2"):
        cli.main(["versions"])
    assert capsys.readouterr().err == "metricwise: interrupted.\n"


@pytest.mark.parametrize("package", ["typer", "none"])
@pytest.mark.parametrize("command", ["versions", "--version"])
def test_a_reader_of_the_output_that_has_ended_is_no_error(package, command):
    code = WITHOUT.format(package=package, words=[command])
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        said = process.stderr.read()
        process.wait(60)
    assert (process.returncode, said) == (1, b"")
