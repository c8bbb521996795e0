"""What pyproject.toml declares is what the code imports: nothing more, nothing less."""

import ast
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
LIBRARY = PROJECT["project"]["dependencies"]
EXTRAS = PROJECT["project"].get("optional-dependencies", {})
REPRODUCTION = PROJECT["dependency-groups"]["reproduction"]

IMPORTED_AS = {"scikit-learn": "sklearn"}
BELONGS_TO = {"mpl_toolkits": "matplotlib"}
WITHOUT_EXTRA = {"catboost", "torch"}  # models of users, and what they choose a build of for their machine


def declared(requirements):
    names = (requirement.split(">=")[0].split("[")[0] for requirement in requirements)
    return {IMPORTED_AS.get(name, name) for name in names}


def imported(folder):
    """Return the packages that the code of a folder imports, also inside functions, but for Python's own."""
    names = set()
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                names.add(node.module.split(".")[0])
    found = names - sys.stdlib_module_names - {"metricwise"}
    return {BELONGS_TO.get(name, name) for name in found}


def test_the_library_declares_what_it_imports():
    extras = [name for extra, names in EXTRAS.items() if extra != "all" for name in names]
    assert imported(ROOT / "src") == declared(LIBRARY) | declared(extras) | WITHOUT_EXTRA


def test_the_reproduction_declares_what_it_imports_beyond_the_library():
    assert imported(ROOT / "reproduction") - declared(LIBRARY) == declared(REPRODUCTION)


def test_only_the_library_is_installed():
    (where,) = PROJECT["tool"]["setuptools"]["packages"]["find"]["where"]
    assert [path.parent.name for path in (ROOT / where).glob("*/__init__.py")] == ["metricwise"]


def test_no_test_module_imports_another():
    """What tests share is in modules that hold no tests, so that each file can be run, moved and read alone."""
    names = set()
    for path in (ROOT / "tests").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom | ast.Import):
                full = [f"{getattr(node, 'module', '')}.{alias.name}" for alias in node.names]
                names |= {
                    (path.name, name) for name in full if any(part.startswith("test_") for part in name.split("."))
                }
    assert names == set()
