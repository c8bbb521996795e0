"""Try an installed metricwise: ``python tests/installed.py {compiled,numpy}`` in an environment that has nothing else.

Runs the first example of the README and ``metricwise demo``, and sees that the kernels named serve. Needs neither
pytest nor the source tree, but for the README.
"""

import contextlib
import io
import re
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"
SOURCE = README.parent / "src"
MANY_ROWS = 50_000  # of two classes, for which the NumPy kernels are warned of


def check_place():
    """See that the installed package is imported, not the source tree, and that it is of the same version."""
    import metricwise
    from check_version import version

    place = Path(metricwise.__file__).resolve()
    assert not place.is_relative_to(SOURCE.resolve()), f"imported from the source tree: {place}"
    assert metricwise.__version__ == version()
    print(f"metricwise {metricwise.__version__}, Python {sys.version.split()[0]}, {place.parent}")


def check_kernels(expected):
    """See which kernels serve, and that the first call on many rows warns of NumPy, once."""
    import numpy as np

    import metricwise as mw
    from metricwise import kernels

    assert kernels.in_use() == expected, f"{kernels.in_use()} kernels serve: {kernels.why_not_compiled()}"
    proba = np.full((MANY_ROWS, 2), 0.5)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            mw.WeightedRule.from_weights([1, 2]).predict(proba)
    notices = [
        str(warning.message) for warning in caught if "compiled kernels are not installed" in str(warning.message)
    ]
    assert len(notices) == (expected == "numpy"), notices
    print(f"{expected} kernels, {kernels.max_threads()} threads", *notices, sep="\n")


def run_first_example():
    """Run the first Python block of the README and compare what it prints with the block that follows."""
    text = README.read_text(encoding="utf-8")
    code, printed = re.search(r"```python\n(.*?)```\n\n```text\n(.*?)```", text, flags=re.DOTALL).groups()
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(compile(code, "README.md", "exec"), {})  # noqa: S102  the README of this tree
    assert output.getvalue() == printed, output.getvalue()
    print(output.getvalue().strip())


def run_demo():
    """Run ``metricwise demo`` as the installed command."""
    command = shutil.which("metricwise", path=Path(sys.executable).parent)
    done = subprocess.run([command, "demo"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) > 10, done.stdout
    print(f"metricwise demo: {len(done.stdout.splitlines())} lines")


if __name__ == "__main__":
    (expected_kernels,) = sys.argv[1:]
    check_place()
    check_kernels(expected_kernels)
    run_first_example()
    run_demo()
