"""What `import metricwise` and `optimize` load: NumPy and SciPy, and nothing that is heavy or optional."""

import subprocess
import sys
import textwrap
from importlib import import_module
from importlib.util import find_spec

import pytest

HEAVY = ["sklearn", "pandas", "polars", "pyarrow", "matplotlib", "dask", "distributed", "typer", "rich", "pooch"]
HEAVY += ["onnx", "onnxruntime", "skl2onnx", "sqlglot", "duckdb", "narwhals", "torch"]


def run(code):
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=120, check=False
    )


USE = """
    import numpy as np
    import metricwise as mw
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(3), size=80)
    y = rng.integers(0, 3, size=80)
    for options in ({"confusion": "labels", "recalibrate": False}, {"confusion": "expected", "recalibrate": True}):
        solution = mw.optimize(proba, y, "quadratic_kappa", strategy=mw.Strategy(**options))
        mw.load_rule(solution.rule.to_json()).predict(proba)
        solution.rule.describe()
    mw.optimize(proba[:, 1], y == 1, "g_mean", strategy=mw.Strategy("labels", recalibrate=False))
    mw.metrics.get_metric("f1").score(y == 1, y == 2)
    mw.evaluate(mw.WeightedRule.from_weights([1, 2, 3]), proba, y, ["f1_macro", "min_recall"])
"""


def test_nothing_heavy_is_loaded():
    done = run(f"""
    import sys
    {USE}
    print(sorted(set({HEAVY}) & set(sys.modules)))
    """)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("blocked", [HEAVY])
def test_extras_are_not_needed(blocked):
    """With every optional package (and scikit-learn) made impossible to import, all of it still works."""
    done = run(f"""
    import sys
    for name in {blocked}:
        sys.modules[name] = None
    {USE}
    print("done")
    """)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "done"


def test_import_alone_is_light():
    done = run("""
    import sys
    import metricwise
    print("numpy" in sys.modules, metricwise.__version__ != "", "dataclasses" in sys.modules)
    print(sorted(name for name in sys.modules if name.startswith("metricwise")))
    """)
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert first.split() == ["False", "True", "False"]
    assert second == "['metricwise', 'metricwise._version']"


# What a rule fitted to arrays and never written to a file has no use for. NumPy loads its masked arrays when asked for
# them alone, also by `np.unique`, and they take longer than a small problem takes to solve.
UNUSED = ["scipy", "numpy.ma", "json", "pathlib", "difflib", "urllib"]


@pytest.mark.parametrize("metric", ["micro_f1", "quadratic_kappa", "accuracy"])
def test_the_first_call_loads_what_it_needs(metric):
    done = run(f"""
    import sys
    import numpy as np
    proba = np.linspace(0.1, 0.9, 60).reshape(20, 3)
    proba /= proba.sum(axis=1, keepdims=True)
    y = np.arange(20) % 3
    before = set(sys.modules)
    import metricwise as mw
    mw.optimize(proba, y, {metric!r}, strategy=mw.Strategy("labels", recalibrate=False)).rule.predict(proba)
    print(sorted(set({UNUSED}) & (set(sys.modules) - before)))
    """)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"


def test_masked_arrays_are_known_once_somebody_has_loaded_them():
    done = run("""
    import sys
    import metricwise as mw
    from metricwise.data.labels import observed_labels
    print(observed_labels([3, 4]).codes.tolist(), "numpy.ma" in sys.modules)
    import numpy.ma
    print(observed_labels(numpy.ma.masked_array([3, 4], [True, False])).codes.tolist())
    """)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["[[0], [1]] False", "[[-1], [0]]"]


def test_unknown_names_are_attribute_errors():
    import metricwise

    with pytest.raises(AttributeError, match="module 'metricwise' has no attribute 'optimise'"):
        _ = metricwise.optimise
    assert "optimize" in dir(metricwise)


def test_modules_that_have_moved_are_refused_by_a_sentence():
    with pytest.raises(ModuleNotFoundError, match=r"read that file with metricwise\.load_rule\(path\)\."):
        import_module("metricwise.losses")
    assert find_spec("metricwise.nowhere") is None
