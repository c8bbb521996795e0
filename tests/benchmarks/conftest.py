"""Benchmarks are no part of the package: tests import them for a while, and leave nothing of them behind."""

import importlib
import sys

import pytest

from pages import ROOT

BENCHMARKS = ROOT / "benchmarks"


@pytest.fixture
def load(monkeypatch):
    """A function that imports a benchmark: ``benchmarks.name`` from the root, or a script from its own folder."""

    def import_benchmark(name):
        monkeypatch.syspath_prepend(str(ROOT if name.startswith("benchmarks.") else BENCHMARKS))
        return importlib.import_module(name)

    yield import_benchmark
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None) or ""
        if name.split(".")[0] == "benchmarks" or file.startswith(str(BENCHMARKS)):
            del sys.modules[name]
