"""What is there to be pasted runs when it is pasted: the README, the front page and the quick start."""

import ast
import re
import shlex
import tomllib

import pytest

from cli.shared import done
from pages import DOCS, ROOT, Console, blocks, pasted, same_output

README = ROOT / "README.md"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PAGES = [README, DOCS / "index.md", DOCS / "start.md"]
SUPPLIED = {"metricwise", "numpy", "scipy", "sklearn"}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    yield tmp_path
    import matplotlib.pyplot as plt

    plt.close("all")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_it_runs_when_pasted(page, folder, capsys):
    text, console = page.read_text(encoding="utf-8"), Console()
    for lines, expected in pasted(text):
        console.paste(lines)
        shown = capsys.readouterr().out
        assert same_output(shown, expected or ""), shown
    if page == README:
        for line in "".join(blocks(text, "")).splitlines():
            if line.startswith("metricwise "):
                done(*shlex.split(line)[1:])
        assert len((folder / "decisions.csv").read_text().splitlines()) == 1 + len(console.locals["labels"])
        assert all((folder / name).stat().st_size > 1000 for name in ("rule.png", "report.html", "grades.py"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_it_needs_what_is_installed_with_it(page):
    text = page.read_text(encoding="utf-8")
    imported = set()
    for lines, _ in pasted(text):
        for node in ast.walk(ast.parse(lines)):
            if isinstance(node, ast.Import):
                imported |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                imported.add(node.module.split(".")[0])
    assert imported <= SUPPLIED
    named = {extra for listed in re.findall(r"metricwise\[([\w,]+)\]", text) for extra in listed.split(",")}
    assert named <= set(PROJECT["optional-dependencies"])
    assert "plot" in named or "solution.plot" not in text


def test_commands_of_make_are_there():
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE)
    named = re.findall(r"`?make ([a-z]+)", README.read_text(encoding="utf-8"))
    assert {"demo", "test"} <= set(named) <= set(targets)
