"""Python source: no dependencies, readable, checks what it is given."""

import ast
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import metricwise as mw
from metricwise.core.losses import Loss
from metricwise.export import standalone
from metricwise.rules import GroupedRule, MixtureRule, TemperatureScaling, WeightedRule


def load(rule):
    names = {}
    exec(compile(mw.export.to_python(rule), "rule.py", "exec"), names)  # noqa: S102
    return names


def test_it_runs_alone(tmp_path):
    """In a Python that finds no package at all."""
    rule = WeightedRule.from_thresholds(0.3, classes=["no", "yes"], pos_label="yes")
    mw.export.to_python(rule, tmp_path / "rule.py")
    code = "import rule; print(rule.decide(0.4), rule.decide([0.8, 0.2]), rule.decide_all([0.3, 0.31]))"
    done = subprocess.run(
        [sys.executable, "-S", "-E", "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "yes no ['no', 'yes']"


def test_it_imports_nothing_but_math():
    tree = ast.parse(mw.export.to_python(WeightedRule(Loss.argmax(3), (np.arange(3),))))
    imports = [node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom))]
    assert [[alias.name for alias in node.names] for node in imports] == [["math"]]


def test_it_says_what_it_does():
    rule = WeightedRule.from_thresholds(0.3, classes=["no", 'a "b\\"""'], pos_label='a "b\\"""')
    names = load(rule)
    assert rule.describe() in names["__doc__"]
    assert mw.__version__ in names["__doc__"]
    assert names["decide"].__doc__
    assert names["decide"](0.5) == 'a "b\\"""'


def test_labels_and_facts_of_any_characters():
    labels = np.empty(3, dtype=object)
    labels[:] = ["nul\0", "half \ud800", "line\r\n\u2028"]
    rule = WeightedRule(
        Loss.argmax(3), (labels,), metadata={"metric": 'odd "metric" \0 \\ """'}, output_names=("a\nb",)
    )
    names = load(rule)
    assert names["decide_all"](np.eye(3).tolist()) == labels.tolist()
    assert 'odd "metric" \0 \\ """' in names["__doc__"]


def test_lines_stay_within_a_screen():
    rule = WeightedRule.from_weights({"low": 1.0, "mid": 2.5, "high": 3.1}, classes=["low", "mid", "high"])
    assert max(map(len, mw.export.to_python(rule).splitlines())) <= 120


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (0.5, "there must be one number for each of the classes .*got 0.5"),
        ([0.5, 0.5], r"there must be one number for each of the classes \['a', 'b', 'c'\], got \[0.5, 0.5\]"),
        ([0.5, 0.5, 0.5], "must be non-negative and sum to 1"),
        ([1.5, -0.5, 0.0], "must be non-negative and sum to 1"),
        ([float("nan"), 0.5, 0.5], "must be non-negative and sum to 1"),
    ],
)
def test_rows_that_are_no_probabilities(row, message):
    decide = load(WeightedRule.from_weights([1, 2, 3], classes=["a", "b", "c"]))["decide"]
    with pytest.raises(ValueError, match=message):
        decide(row)


@pytest.mark.parametrize("p", [-0.1, 1.1, float("nan")])
def test_a_number_that_is_no_probability(p):
    decide = load(WeightedRule.from_thresholds(0.3))["decide"]
    with pytest.raises(ValueError, match="the probability of 1 must be between 0 and 1"):
        decide(p)


def test_scores():
    rule = WeightedRule(Loss.argmax(2), (np.array(["a", "b"]),), normalize=True)
    decide = load(rule)["decide"]
    assert decide([3, 4]) == "b"
    for row in ([0, 0], [-1, 2], [float("inf"), 1], [1]):
        with pytest.raises(ValueError, match=r"must be finite, non-negative and not all zero|there must be one number"):
            decide(row)
    with pytest.raises(ValueError, match="there must be one number for each of the classes"):
        decide(0.5)


def test_several_outputs():
    classes = (np.array(["no", "yes"]), np.array([1, 2, 3]))
    link = TemperatureScaling(np.array([0.7, 1.4]), np.array([[0.0, 0.3, 0.0], [0.1, -0.2, 0.4]]))
    rule = WeightedRule(Loss(full=np.random.default_rng(0).random((2, 3, 3))), classes, link, multioutput=True)
    names = load(rule)
    rng = np.random.default_rng(1)
    blocks = [rng.dirichlet(np.ones(2), 50), rng.dirichlet(np.ones(3), 50)]
    rows = [[a.tolist(), b.tolist()] for a, b in zip(*blocks, strict=True)]
    assert names["decide_all"](rows) == rule.predict(blocks).tolist()
    assert names["decide"]([0.3, [0.2, 0.3, 0.5]])[0] in ("no", "yes")
    with pytest.raises(ValueError, match="there must be 2 outputs"):
        names["decide"]([0.3])


def test_mixtures_decide_by_a_key():
    classes = (np.array(["a", "b"]), np.array(["x", "y"]))
    rules = tuple(
        WeightedRule.from_thresholds([t, 1 - t], classes=list(classes), pos_label=["b", "y"]) for t in (0.2, 0.5)
    )
    rule = MixtureRule(rules, np.array([[0.3, 0.7], [0.9, 0.1]]), seed=2**64 - 5)
    names = load(rule)
    p = np.random.default_rng(0).random((300, 2))
    assert names["decide_all"](p.tolist()) == rule.predict(p).tolist()
    assert names["decide_all"](p.tolist(), 1000) == rule.predict(p, start=1000).tolist()
    assert names["decide"](p[0].tolist(), 10**15) == rule.predict(p[:1], start=10**15).tolist()[0]
    for key in (-1, 1.5, True, "a"):
        with pytest.raises(ValueError, match="key must be an integer from 0, such as the position of the row"):
            names["decide"]([0.3, 0.3], key)


def test_what_is_copied_stands_alone():
    """Functions that are copied know nothing of the module that they come from but one another."""
    body = ast.parse(Path(standalone.__file__).read_text(encoding="utf-8")).body
    names = {node.name for node in body if isinstance(node, ast.FunctionDef)}
    mixture = MixtureRule((WeightedRule(Loss.argmax(2), (np.arange(2),)),), np.array([1.0]))
    copied = set(load(GroupedRule((mixture, mixture), ("a", "b"))))
    assert names <= copied | set(load(GroupedRule((mixture, mixture), ("a", "b"), other=mixture)))
