"""The source distribution is complete, versions agree, and workflows call what the Makefile has."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest

import check_version
import metricwise as mw

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
EXTRAS = PROJECT["project"]["optional-dependencies"]
APART = {"spark"}  # extras that are too large for `all`, and are tested in environments of their own
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
in_repository = pytest.mark.skipif(not (ROOT / ".git").exists() or shutil.which("git") is None, reason="no repository")

# Settings of the repository, and results of benchmarks that no test reads.
LEFT_OUT = (".*", "benchmarks/*.csv", "benchmarks/*.csv.gz", "benchmarks/*.png", "benchmarks/*.txt")
# setuptools adds these on its own.
ADDED = ("LICENSE", "MANIFEST.in", "README.md", "pyproject.toml", "setup.py", "src/*.py", "src/*/templates/*")
ADDED += ("src/*/py.typed", "src/*/rule.schema.json")


def tracked():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return set(listed.splitlines())


def distributed(files):
    """Return the files that MANIFEST.in and setuptools take, by the commands of MANIFEST.in in their order."""
    taken = {file for file in files if any(fnmatch(file, pattern) for pattern in ADDED)}
    for line in (ROOT / "MANIFEST.in").read_text(encoding="utf-8").splitlines():
        command, *arguments = line.split() or ["#"]
        if command == "include":
            taken |= {file for file in files if any(Path(file) == Path(path) for path in arguments)}
            taken |= {file for file in files for path in arguments if "*" in path and fnmatch(file, path)}
        elif command == "graft":
            taken |= {file for file in files if file.startswith(f"{arguments[0]}/")}
        elif command == "recursive-include":
            folder, *patterns = arguments
            taken |= {file for file in files for pattern in patterns if fnmatch(file, f"{folder}/*{pattern[1:]}")}
        elif command == "prune":
            taken -= {file for file in files if file.startswith(f"{arguments[0]}/")}
    return taken


@in_repository
def test_the_source_distribution_has_what_the_repository_has():
    files = tracked()
    missing = {file for file in files - distributed(files) if not any(fnmatch(file, kind) for kind in LEFT_OUT)}
    assert missing == set()
    assert {"tests/conftest.py", "tests/engines.py", "tests/golden/recordings/numpy.jsonl"} <= distributed(files)


@in_repository
def test_results_that_tests_read_are_in_the_source_distribution():
    text = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests" / "benchmarks").glob("*.py"))
    read = {f"benchmarks/{name}" for name in re.findall(r'"benchmarks" / "([\w.]+)"', text)}
    assert len(read) >= 3
    assert read <= distributed(tracked())


def test_the_files_that_manifest_names_are_there():
    text = (ROOT / "MANIFEST.in").read_text(encoding="utf-8")
    named = [name for line in text.splitlines() if line.startswith("include ") for name in line.split()[1:]]
    assert [name for name in named if not list(ROOT.glob(name))] == []


# --------------------------------------------------------------------------------------------------------------- setup


def run_setup(build, *arguments):
    pytest.importorskip("setuptools")
    environment = os.environ | {"METRICWISE_BUILD": build}
    command = [sys.executable, "setup.py", "--quiet", *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("build", ["pure", "sanitized"])
def test_builds_of_special_kinds_are_accepted(build):
    done = run_setup(build, "--version")
    assert (done.returncode, done.stdout.split()[-1]) == (0, mw.__version__)


def test_a_build_of_another_kind_is_refused():
    done = run_setup("fast", "--version")
    assert done.returncode == 1
    assert "METRICWISE_BUILD must be one of auto, compiled, pure, sanitized, got 'fast'." in done.stderr


# ------------------------------------------------------------------------------------------------------------ versions


def test_the_version_is_the_same_everywhere():
    assert mw.__version__ == check_version.version()
    assert check_version.problems(f"v{mw.__version__}") == []


@pytest.mark.parametrize("tag", ["", mw.__version__, "v0.0.1", f"v{mw.__version__}rc1"])
def test_a_tag_of_another_version_is_refused(tag):
    command = [sys.executable, str(ROOT / "tests" / "check_version.py"), tag]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == f"the tag is {tag!r}, and the version of the package {mw.__version__}.\n"


def test_all_has_every_extra():
    (names,) = EXTRAS["all"]
    assert names == f"metricwise[{','.join(sorted(EXTRAS.keys() - {'all', *APART}))}]"


def minima(requirements):
    """Return the oldest version that each requirement allows, by the name of its package."""
    found = {}
    for requirement in requirements:
        if isinstance(requirement, str) and not requirement.startswith("metricwise["):
            name, oldest = re.match(r"([\w-]+)(?:\[\w+\])?>=([\d.]+)", requirement).groups()
            found.setdefault(name, set()).add(oldest)
    return found


def test_the_oldest_versions_are_those_declared():
    pins = dict(line.split("==") for line in (ROOT / "constraints-oldest.txt").read_text().splitlines() if "==" in line)
    extras = [
        requirement for extra, requirements in EXTRAS.items() if extra not in APART for requirement in requirements
    ]
    declared = minima([*PROJECT["project"]["dependencies"], *extras, *PROJECT["dependency-groups"]["test"]])
    for name, versions in declared.items():
        (oldest,) = versions  # the same bound wherever the package is named
        assert f"{pins[name]}.".startswith(f"{oldest}."), name


# ----------------------------------------------------------------------------------------------------------- workflows


@pytest.mark.skipif(not WORKFLOWS, reason="the source distribution has no workflows")
def test_workflows_run_targets_of_the_makefile_alone():
    targets = set(re.findall(r"^([\w-]+)[\w -]*:(?!=)", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    for path in WORKFLOWS:
        text = path.read_text(encoding="utf-8")
        commands = re.findall(r"^\s*- run: (.*)$", text, flags=re.MULTILINE)
        nightly = re.findall(r'"?([\w-]+)[^",\]]*"?[,\]]', "".join(re.findall(r"target: \[(.*\])", text)))
        called = {word for command in commands for word in command.removeprefix("make ").split() if "$" not in word}
        called = {word for word in called if re.fullmatch(r"[\w-]+", word)}
        assert all(command.startswith("make ") for command in commands), path.name
        assert called | set(nightly) <= targets, path.name
