"""What `import metricwise` and `optimize` load: NumPy and SciPy, and nothing that is heavy or optional."""

import subprocess
import sys
import textwrap

import pytest

HEAVY = ["sklearn", "pandas", "polars", "pyarrow", "matplotlib", "dask", "distributed", "typer", "rich", "pooch"]


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
        solution = mw.optimize(proba, y, "quadratic_kappa", **options)
        mw.load_rule(solution.rule.to_json()).predict(proba)
        solution.rule.describe()
    mw.optimize(proba[:, 1], y == 1, "g_mean", confusion="labels", recalibrate=False)
    mw.metrics.get_metric("f1").score(y == 1, y == 2)
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
    print("numpy" in sys.modules, metricwise.__version__ != "")
    """)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["False", "True"]


def test_unknown_names_are_attribute_errors():
    import metricwise

    with pytest.raises(AttributeError, match="module 'metricwise' has no attribute 'optimise'"):
        _ = metricwise.optimise
    assert "optimize" in dir(metricwise)
