"""Rule files that earlier versions wrote: read, decided as they were then, and written back as they are."""

import json
from pathlib import Path

import numpy as np
import pytest

import metricwise as mw

FILES = Path(__file__).parent / "files"
RULES = sorted(path for path in FILES.glob("v*/*.json") if not path.name.endswith(".decisions.json"))


def said_then(path):
    """Probabilities, what was predicted for them, and what was given beside them."""
    document = json.loads(path.with_suffix(".decisions.json").read_text(encoding="utf-8"))
    proba, decisions = document.pop("proba"), document.pop("decisions")
    try:
        return np.array(proba), decisions, document
    except ValueError:  # outputs with classes of their own are a list of arrays
        return [np.array(part) for part in proba], decisions, document


def types(labels):
    return [types(one) for one in labels] if isinstance(labels, list) else type(labels)


def test_no_version_is_missing():
    assert {path.parent.name for path in RULES} == {path.name for path in FILES.glob("v*")} >= {"v0.1.0"}


@pytest.mark.parametrize("path", RULES, ids=[f"{path.parent.name}-{path.stem}" for path in RULES])
def test_decides_as_it_did(path):
    rule = mw.load_rule(path)
    proba, decisions, given = said_then(path)
    if "cost" in given:
        given["cost"] = np.array(given["cost"])
    for then in decisions:
        now = rule.predict(proba, **given, **({} if then["start"] is None else {"start": then["start"]}))
        assert now.tolist() == then["labels"]
        assert types(now.tolist()) == types(then["labels"])
        assert now.dtype.kind == then["kind"]


@pytest.mark.parametrize("path", RULES, ids=[f"{path.parent.name}-{path.stem}" for path in RULES])
def test_is_written_as_it_was(path):
    assert mw.load_rule(path).to_json() == path.read_text(encoding="utf-8")
