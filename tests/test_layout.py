"""Tests are found by what they test: tests/<folder>/test_<module>.py beside src/metricwise/<folder>/<module>.py."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
SOURCE = TESTS.parent / "src" / "metricwise"
AT_THE_TOP = {"test_dependencies.py", "test_documentation.py", "test_imports.py", "test_layout.py"}  # of the whole tree
# Of no folder of the library.
EXTRA = {"benchmarks", "docs", "endurance", "faults", "fuzz", "golden", "laws", "reproduction"}


def modules(folder):
    """Return the names of the modules and packages of a folder of the library, and its own."""
    files = {path.stem for path in folder.iterdir() if path.suffix in (".py", ".pyx")}
    packages = {path.name for path in folder.iterdir() if (path / "__init__.py").is_file()}
    return {name.lstrip("_") for name in files | packages} - {"init__", "main__"} | {folder.name}


def is_of(name, module):
    """Say whether a file is named after a module, or after a topic of it."""
    return name == f"test_{module}.py" or name.startswith(f"test_{module}_")


def misplaced(files):
    """Return the test files that no module of their folder accounts for."""
    wrong = []
    for file in files:
        folder = file.parent.as_posix()
        if folder == ".":
            right = file.name in AT_THE_TOP
        elif file.parts[0] in EXTRA:
            right = True
        else:
            beside = SOURCE / folder
            right = (beside / "__init__.py").is_file() and any(is_of(file.name, one) for one in modules(beside))
        if not right:
            wrong.append(file.as_posix())
    return sorted(wrong)


def test_every_test_file_stands_beside_the_module_that_it_tests():
    assert misplaced(path.relative_to(TESTS) for path in TESTS.rglob("test_*.py")) == []


@pytest.mark.parametrize(
    ("path", "right"),
    [
        ("solvers/test_sweep.py", True),
        ("solvers/test_sweep_monotone.py", True),
        ("kernels/test_link.py", True),  # of kernels/_link.py
        ("kernels/test_compiled.py", True),  # of kernels/_compiled.pyx
        ("theory/test_theory.py", True),
        ("data/sources/test_dask.py", True),
        ("fuzz/test_anything.py", True),
        ("solvers/test_sweeps.py", False),
        ("solvers/test_link.py", False),
        ("sources/test_dask.py", False),
        ("test_sweep.py", False),
    ],
)
def test_a_file_out_of_place_is_noticed(path, right):
    assert misplaced([Path(path)]) == ([] if right else [path])


@pytest.mark.skipif(shutil.which("make") is None or not (TESTS.parent / "Makefile").exists(), reason="no make")
def test_the_files_that_make_names_are_there():
    command = ["make", "--dry-run", "test", "test-quick", "test-slow"]
    printed = subprocess.run(command, cwd=TESTS.parent, capture_output=True, text=True, check=True).stdout
    named = set(re.findall(r"tests/[\w/.]+", printed))
    assert len(named) > 20
    assert sorted(name for name in named if not (TESTS.parent / name).exists()) == []
