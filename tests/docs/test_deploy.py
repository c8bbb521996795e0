"""The page on rules in production says what happens: in Python, in NumPy and in JavaScript."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import metricwise as mw
from metricwise.core.losses import Loss
from metricwise.rules import TemperatureScaling, WeightedRule
from pages import run_doctests

PAGE = Path(__file__).parents[2] / "docs" / "deploy.md"
rng = np.random.default_rng(0)
CLASSES = (np.array(["low", "mid", "high"]),)
LINK = TemperatureScaling(np.array([0.8]), np.array([[0.1, 0.0, -0.3]]))
RULES = {
    "full": WeightedRule(Loss(full=rng.random((1, 3, 3))), CLASSES),
    "diagonal": WeightedRule(Loss(diagonal=-rng.random((1, 3)), offset=rng.random((1, 3)) / 9), CLASSES),
    "full, linked": WeightedRule(Loss(full=rng.random((1, 3, 3))), CLASSES, LINK),
    "diagonal, linked": WeightedRule(Loss(diagonal=-rng.random((1, 3)), offset=rng.random((1, 3)) / 9), CLASSES, LINK),
}


@pytest.fixture
def page(tmp_path, monkeypatch):
    if not PAGE.exists():
        pytest.skip("the documentation is not here")
    monkeypatch.chdir(tmp_path)
    return PAGE.read_text(encoding="utf-8")


def block(page, language):
    return re.search(rf"```{language}\n(.*?)```", page, flags=re.DOTALL)[1]


def test_the_code_of_the_page(page):
    said = run_doctests(PAGE)
    assert not said, said


@pytest.mark.filterwarnings("ignore:unclosed file")  # ten lines
@pytest.mark.parametrize("name", RULES)
def test_ten_lines_of_numpy(page, name):
    code = block(page, "python").replace('json.load(open("rule.json"))', 'json.loads(open("rule.json").read())')
    lines = [line for line in block(page, "python").splitlines() if line and not line.startswith("import")]
    assert len(lines) <= 10
    RULES[name].to_json("rule.json")
    names = {"proba": rng.dirichlet(np.ones(3), 500)}
    exec(code, names)  # noqa: S102
    assert (names["decisions"] == RULES[name].predict(names["proba"])).all()


@pytest.mark.parametrize("name", RULES)
def test_javascript(page, name):
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    rule, proba = RULES[name], rng.multinomial(20, np.full(3, 1 / 3), 500) / 20
    rule.to_json("rule.json")
    Path("rows.json").write_text(json.dumps(proba.tolist()))
    run = 'console.log(JSON.stringify(JSON.parse(fs.readFileSync("rows.json", "utf8")).map(decide)));'
    Path("decide.js").write_text(block(page, "javascript") + run)
    done = subprocess.run([node, "decide.js"], capture_output=True, text=True, timeout=60, check=True)
    assert json.loads(done.stdout) == rule.predict(proba).tolist()


def test_the_schema_is_published(page):
    assert 'href="rule.schema.json"' in page
    (published,) = re.findall(r'html_extra_path = \["(.*)"\]', (PAGE.parent / "conf.py").read_text(encoding="utf-8"))
    assert json.loads((PAGE.parent / published).read_text(encoding="utf-8")) == mw.export.rule_schema()
