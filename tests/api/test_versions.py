"""Which kernels serve, what forces them, and what `show_versions` says of it."""

import os
import subprocess
import sys
import textwrap
import tomllib
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import pytest

import metricwise as mw
from metricwise import kernels
from metricwise.api import versions

BUILT = find_spec("metricwise.kernels._compiled") is not None
needs_compiled = pytest.mark.skipif(not BUILT, reason="the compiled kernels are not built")

NOT_BUILT = """
    import sys
    sys.modules["metricwise.kernels._compiled"] = None
"""
USE = """
    import numpy as np
    import metricwise as mw
    from metricwise import kernels
    proba = np.random.default_rng(0).dirichlet(np.ones(3), size=60)
    fixed = mw.Strategy(confusion="labels", recalibrate=False)
    solution = mw.optimize(proba, np.arange(60) % 3, "quadratic_kappa", strategy=fixed)
    print(kernels.in_use(), kernels.max_threads() >= 1, len(solution.rule.predict(proba)))
"""


def run(*parts, kernels=None):
    """Run a script with the environment variable set, or without it."""
    environment = {name: value for name, value in os.environ.items() if name != "METRICWISE_KERNELS"}
    if kernels is not None:
        environment["METRICWISE_KERNELS"] = kernels
    code = "\n".join(textwrap.dedent(part) for part in parts)
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False, env=environment
    )


def output(*parts, **options):
    done = run(*parts, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout


# ---------------------------------------------------------------------------------------------------- who serves


@pytest.mark.parametrize("wanted", ["numpy", *(["compiled"] if BUILT else [])])
def test_the_variable_forces_either(wanted):
    assert output(USE, kernels=wanted).split() == [wanted, "True", "60"]


@pytest.mark.parametrize("wanted", [None, "", "auto"])
def test_the_compiled_ones_serve_where_they_are(wanted):
    assert output(USE, kernels=wanted).split() == ["compiled" if BUILT else "numpy", "True", "60"]


@pytest.mark.parametrize("wanted", [None, "auto"])
def test_numpy_serves_where_nothing_is_compiled(wanted):
    assert output(NOT_BUILT, USE, kernels=wanted).split() == ["numpy", "True", "60"]


def test_what_is_forced_and_not_there_says_the_remedy():
    done = run(NOT_BUILT, USE, kernels="compiled")
    assert done.returncode != 0
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith(
        "ImportError: metricwise: METRICWISE_KERNELS is 'compiled', but the compiled kernels are not"
    )
    assert "reinstall metricwise with a C compiler, or leave the variable unset." in last


@pytest.mark.parametrize("wanted", ["cython", "Numpy", "1"])
def test_nonsense_is_refused(wanted):
    done = run(USE, kernels=wanted)
    assert done.returncode != 0
    assert done.stderr.strip().endswith(
        f"ValueError: metricwise: METRICWISE_KERNELS must be 'auto', 'compiled' or 'numpy', got {wanted!r}."
    )


def test_the_suite_runs_on_what_it_is_told_to():
    """So that a run for each of the twins is one."""
    wanted = os.environ.get("METRICWISE_KERNELS") or "auto"
    assert kernels.in_use() == (wanted if wanted != "auto" else "compiled" if BUILT else "numpy")


# -------------------------------------------------------------------------------------------------- show_versions


def facts(text):
    lines = [line.split(":", 1) for line in text.splitlines() if line.startswith(" ")]
    return {name.strip(): value.strip() for name, value in lines}


def test_versions_are_those_installed(capsys):
    assert mw.show_versions() is None
    shown = facts(capsys.readouterr().out)
    assert shown["version"] == mw.__version__
    assert shown["python"].startswith(sys.version.split()[0])
    assert shown["executable"] == sys.executable
    for name in ("numpy", "scipy", "scikit-learn"):
        assert shown[name] == version(name)
    assert shown["kernels"].split()[0] == kernels.in_use()
    assert shown["threads"] == str(kernels.max_threads())


def test_every_dependency_is_shown():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    optional = project.get("optional-dependencies", {})
    extras = [name for extra, names in optional.items() if extra != "all" for name in names]
    declared = {name.split(">=")[0].split("[")[0] for name in project["dependencies"] + extras}
    assert declared <= {*versions._NEEDED, *versions._OPTIONAL}


def test_what_is_not_installed_is_said_to_be_so(capsys, monkeypatch):
    monkeypatch.setattr(versions, "_OPTIONAL", ("no-such-package",))
    mw.show_versions()
    assert facts(capsys.readouterr().out)["no-such-package"] == "not installed"


SHOW = """
    import metricwise as mw
    mw.show_versions()
"""


@needs_compiled
def test_why_the_kernels_serve():
    built = facts(output(SHOW))
    assert built["kernels"] == "compiled (built with a C compiler)"
    assert built["METRICWISE_KERNELS"] == "not set"
    forced = facts(output(SHOW, kernels="compiled"))
    assert forced["kernels"] == "compiled (set by METRICWISE_KERNELS)"
    assert forced["OpenMP"] in ("yes", "no")
    numpy = facts(output(SHOW, kernels="numpy"))
    assert numpy["kernels"] == "numpy (set by METRICWISE_KERNELS)"
    assert numpy["threads"] == "1"
    late = facts(output("import os", SHOW, "del os.environ['METRICWISE_KERNELS']", SHOW, kernels="numpy"))
    assert late["kernels"] == "numpy (set by METRICWISE_KERNELS when metricwise was imported)"


def test_why_the_compiled_kernels_do_not():
    shown = facts(output(NOT_BUILT, SHOW))
    assert shown["kernels"].startswith("numpy (the compiled kernels are not available: ")
    assert (shown["OpenMP"], shown["threads"]) == ("no", "1")


def test_nothing_is_loaded_for_its_version():
    heavy = ["sklearn", "scipy", "pandas", "pyarrow", "matplotlib", "dask", "distributed", "typer", "rich", "pooch"]
    last = output("import sys", SHOW, f"print(sorted(set({heavy}) & set(sys.modules)))").splitlines()[-1]
    assert last == "[]"
