"""One row at a time, from many threads, behind FastAPI and MLflow."""

import asyncio
import importlib.util
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import numpy as np
import pytest

import metricwise as mw
from metricwise.core.losses import Loss
from metricwise.rules import MixtureRule, TemperatureScaling, WeightedRule

EXAMPLES = Path(__file__).parents[2] / "examples" / "serving"
N_THREADS, N_ROWS = 8, 400
rng = np.random.default_rng(0)


def example(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # annotations are looked up there
    spec.loader.exec_module(module)
    return module


def rules():
    """New rules of every kind: what they work out on first use is worked out by whichever thread comes first."""
    classes = (np.array(["a", "b", "c"]),)
    full = WeightedRule(
        Loss(full=rng.random((1, 3, 3))), classes, TemperatureScaling(np.array([0.7]), rng.normal(size=(1, 3)))
    )
    argmax = WeightedRule(Loss.argmax(3), classes)
    eta = rng.dirichlet(np.ones(3), N_ROWS)
    two = (np.array([0, 1]), np.array([0, 1, 2]))
    several = WeightedRule(Loss(full=rng.random((2, 3, 3))), two, multioutput=True)
    blocks = np.zeros((N_ROWS, 2, 3))
    blocks[:, 0, :2], blocks[:, 1] = rng.dirichlet(np.ones(2), N_ROWS), eta
    return [
        (full, eta),
        (MixtureRule((full, argmax), np.array([0.4, 0.6]), seed=3), eta),
        (WeightedRule(Loss.from_tensor([[0.0, 1.0], [3.0, 0.0]]), (np.array([0, 1]),)), eta[:, 1]),
        (several, blocks),
    ]


@pytest.mark.parametrize("kind", range(4), ids=["linked", "mixture", "binary", "several outputs"])
def test_threads_share_a_rule(kind):
    rule, proba = rules()[kind]
    copy = mw.load_rule(rule.to_json())
    expected = copy.predict(proba)
    start = Barrier(N_THREADS)

    def serve(thread):
        start.wait(timeout=60)
        described = rule.describe()
        found = []
        for row in range(thread, N_ROWS, N_THREADS):
            at = {"start": row} if isinstance(rule, MixtureRule) else {}
            found.append((row, rule.predict(proba[row : row + 1], **at)[0]))
        return described, found, rule.predict(proba)

    with ThreadPoolExecutor(N_THREADS) as pool:
        answers = list(pool.map(serve, range(N_THREADS)))
    for described, found, whole in answers:
        assert described == copy.describe()
        assert all(np.array_equal(label, expected[row]) for row, label in found)
        assert (whole == expected).all()
    assert sum(len(found) for _, found, _ in answers) == N_ROWS


@pytest.fixture
def saved(tmp_path):
    rule = WeightedRule.from_weights({"a": 1.0, "b": 2.0, "c": 3.0})
    rule.with_metadata(metric="f1_macro").to_json(tmp_path / "rule.json")
    return rule, tmp_path / "rule.json"


def test_fastapi(saved, monkeypatch):
    pytest.importorskip("fastapi", reason="FastAPI is not installed")
    httpx = pytest.importorskip("httpx", reason="httpx is not installed")
    rule, path = saved
    module = example("fastapi_app")
    monkeypatch.setenv("METRICWISE_RULE", str(path))
    proba = rng.dirichlet(np.ones(3), 20)

    async def ask():
        transport = httpx.ASGITransport(app=module.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://rules") as client:
            return [
                await client.get("/rule"),
                await client.post("/decide", json={"probabilities": proba.tolist()}),
                await client.post("/decide", json={"probabilities": [[0.5, 0.6, 0.7]]}),
                await client.post("/decide", json={"rows": []}),
            ]

    described, decided, refused, wrong = asyncio.run(ask())
    assert described.json()["description"] == mw.load_rule(path).describe()
    assert described.json()["facts"]["metric"] == "f1_macro"
    assert decided.json() == {"decisions": rule.predict(proba).tolist()}
    assert (refused.status_code, wrong.status_code) == (422, 422)
    assert "proba must sum to 1" in refused.json()["detail"]


@pytest.mark.filterwarnings("ignore")
def test_mlflow(saved, tmp_path):
    mlflow = pytest.importorskip("mlflow", reason="MLflow is not installed")
    pandas = pytest.importorskip("pandas")
    rule, path = saved
    example("mlflow_model").save_model(path, tmp_path / "model")
    model = mlflow.pyfunc.load_model(str(tmp_path / "model"))
    proba = rng.dirichlet(np.ones(3), 20)
    frame = pandas.DataFrame(proba, columns=["a", "b", "c"])[["c", "a", "b"]]
    assert model.predict(frame).tolist() == rule.predict(proba).tolist()
