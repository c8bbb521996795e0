"""Where the compiled kernels are not installed, the first call on many numbers says so, once in a process."""

import os
import subprocess
import sys
import textwrap

import pytest

NOT_BUILT = 'import sys; sys.modules["metricwise.kernels._compiled"] = None'
BEGIN = f"""
    {NOT_BUILT}
    import numpy as np
    from scipy.sparse import csr_array
    import metricwise as mw
    rule = mw.WeightedRule.from_weights([1, 2])
    few, many = np.full((1000, 2), 0.5), np.full((50_000, 2), 0.5)
"""


def warned(call, kernels=None):
    """Return the lines of warnings of a script in a process of its own."""
    environment = {name: value for name, value in os.environ.items() if name != "METRICWISE_KERNELS"}
    environment |= {} if kernels is None else {"METRICWISE_KERNELS": kernels}
    code = textwrap.dedent(BEGIN) + call
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return [line for line in done.stderr.splitlines() if "Warning" in line]


@pytest.mark.parametrize(
    ("call", "owner"),
    [
        ("rule.predict(many)", "WeightedRule.predict"),
        ("rule.predict(many); rule.predict(many)", "WeightedRule.predict"),
        ("rule.predict(few); rule.predict(many)", "WeightedRule.predict"),
        ("mw.evaluate(rule, many, np.arange(50_000) % 2, ['f1'])", "evaluate"),
        (
            "mw.WeightedRule.from_thresholds(0.0, input='logits').predict(np.zeros(100_000))",
            "CutPointRule.predict",
        ),
    ],
)
def test_many_numbers_are_warned_of_once(call, owner):
    (line,) = warned(call)
    assert f"<string>:8: UserWarning: {owner}: the compiled kernels are not installed, so that the slower NumPy" in line
    assert "METRICWISE_KERNELS=numpy silences this warning." in line


def test_sparse_rows_are_warned_of():
    call = """
Y = csr_array((np.ones(100_000), np.arange(100_000) % 4, np.arange(100_001)), shape=(100_000, 4))
mw.optimize(csr_array(Y * 0.5), Y, "f1", average="macro")
"""
    (line,) = warned(call)
    assert "UserWarning: optimize: the compiled kernels are not installed" in line


@pytest.mark.parametrize("call", ["rule.predict(few)", "rule.predict(many[:49_999])"])
def test_few_numbers_are_not_warned_of(call):
    assert warned(call) == []


def test_what_was_asked_for_is_not_warned_of():
    assert warned("rule.predict(many)", kernels="numpy") == []
    assert len(warned("rule.predict(many)", kernels="auto")) == 1
