"""The page of the documentation about the command line says what happens."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from cli.shared import run
from pages import same_output

PAGE = Path(__file__).parents[2] / "docs" / "command_line.md"


def happened(line):
    """Run a line, and return what a terminal would show, with the exit code where that is not 0."""
    if line.startswith("metricwise ") and "|" not in line:
        result = run(*shlex.split(line)[1:])
        shown, code = result.output, result.code
    else:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        environment = {**os.environ, "PATH": path}
        done = subprocess.run(
            line, shell=True, capture_output=True, text=True, env=environment, timeout=60, check=False
        )
        shown, code = done.stdout, done.returncode
    return shown + (f"[exit code {code}]\n" if code else "")


def test_the_page(tmp_path, monkeypatch):
    if not PAGE.exists():
        pytest.skip("the documentation is not here")
    monkeypatch.chdir(tmp_path)
    text = PAGE.read_text(encoding="utf-8")
    (tables,) = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    subprocess.run([sys.executable, "-c", tables], check=True, timeout=120)
    blocks = "".join(re.findall(r"```console\n(.*?)```", text, flags=re.DOTALL))
    lines = re.findall(r"^\$ ((?:.*\\\n)*.*)\n((?:(?!\$ ).*\n)*)", blocks, flags=re.MULTILINE)
    assert len(lines) > 10
    for line, expected in lines:
        shown = happened(line.replace("\\\n", ""))
        assert same_output(shown, expected), f"{line}\n{shown}"
    assert not (tmp_path / "never.json").exists()
