"""What a bug report should say: versions, and which kernels serve.

Asks the installed packages for their versions without loading them. Must not know probabilities, metrics or rules.
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from types import ModuleType

from .. import kernels
from .._version import __version__

__all__ = ["show_versions"]

_NEEDED = ("numpy", "scipy", "scikit-learn", "narwhals", "joblib", "threadpoolctl")
# Data frames, which are read without loading these, and what extras bring.
_FRAMES = ("pandas", "polars", "pyarrow")
_OPTIONAL = (
    *_FRAMES,
    "dask",
    "distributed",
    "jinja2",
    "matplotlib",
    "onnx",
    "pyspark",
    "rich",
    "skl2onnx",
    "sqlglot",
    "typer",
)
_BUILDING = ("pip", "setuptools", "cython")
_THREADS = "OMP_NUM_THREADS"


def show_versions() -> None:
    """Print information for bug reports: system, package versions, and the kernels in use.

    See Also
    --------
    sklearn.show_versions : The equivalent for scikit-learn.

    Examples
    --------
    >>> import metricwise as mw
    >>> mw.show_versions()
    System:
                  python: 3...
              executable: ...
                 machine: ...
    metricwise:
                 version: ...
                 kernels: ...
                  OpenMP: ...
                 threads: ...
      METRICWISE_KERNELS: ...
         OMP_NUM_THREADS: ...
    Needed:
                   numpy: ...
    Optional:
                  pandas: ...
    Building:
                     pip: ...
    """
    sections = {
        "System": _system(),
        "metricwise": _own(),
        "Needed": _packages(_NEEDED),
        "Optional": _packages(_OPTIONAL),
        "Building": _packages(_BUILDING),
    }
    for number, (title, facts) in enumerate(sections.items()):
        print(("\n" if number else "") + f"{title}:")
        for name, fact in facts.items():
            print(f"{name:>20}: {fact}")


def _system() -> Mapping[str, str]:
    return {
        "python": sys.version.replace("\n", " "),
        "executable": sys.executable,
        "machine": platform.platform(),
    }


def _own() -> Mapping[str, str]:
    compiled, why_not = _compiled()
    return {
        "version": __version__,
        "kernels": f"{kernels.in_use()} ({_why(why_not)})",
        "OpenMP": "no" if compiled is None or not compiled.has_openmp() else "yes",
        "threads": str(kernels.max_threads()),
        **{name: os.environ.get(name) or "not set" for name in (kernels.VARIABLE, _THREADS)},
    }


def _compiled() -> tuple[ModuleType | None, str]:
    """Return the compiled kernels, whether they serve or not, or why they are not there."""
    try:
        from ..kernels import _compiled  # type: ignore[attr-defined]  # an extension module
    except ImportError as error:
        return None, str(error)
    return _compiled, ""


def _why(why_not: str) -> str:
    requirement = os.environ.get(kernels.VARIABLE) or "auto"
    if requirement == kernels.in_use():
        return f"set by {kernels.VARIABLE}"
    if kernels.in_use() == "compiled":
        return "built with a C compiler"
    if why_not:
        return f"the compiled kernels are not available: {why_not}"
    return f"set by {kernels.VARIABLE} when metricwise was imported"


def _packages(names: tuple[str, ...]) -> Mapping[str, str]:
    return {name: _version(name) for name in names}


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
