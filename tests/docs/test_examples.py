"""Every example of the gallery runs as a script, without a warning, and draws something."""

import ast
import runpy
from pathlib import Path

import pytest

plt = pytest.importorskip("matplotlib.pyplot")

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("plot_*.py"))


def imported(module):
    """Return the packages that a module imports."""
    nodes = list(ast.walk(module))
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module for node in nodes if isinstance(node, ast.ImportFrom)}
    return {name.split(".")[0] for name in names}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_has_a_title_and_runs(path, monkeypatch, tmp_path):
    module = ast.parse(path.read_text(encoding="utf-8"))
    title, underline, blank, *text = ast.get_docstring(module).splitlines()
    assert title
    assert underline == "=" * len(title)
    assert not blank
    assert any(text)
    for package in sorted(imported(module)):
        pytest.importorskip(package)

    plt.switch_backend("Agg")
    monkeypatch.setattr(
        plt, "show", lambda *args, **kwargs: None
    )  # where there is a screen, Agg warns that it has none
    monkeypatch.chdir(tmp_path)  # for what it may write
    try:
        runpy.run_path(str(path), run_name="__main__")
        assert plt.get_fignums()
    finally:
        plt.close("all")
