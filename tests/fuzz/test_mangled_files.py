"""Rule files that were edited, cut or damaged give one sentence, or a rule that predicts."""

import numpy as np
import pytest

import metricwise as mw
from fuzz.mangled_text import damaged, edited
from fuzz.mangling import assert_sentence
from metricwise.core.losses import Loss
from metricwise.rules import TemperatureScaling

CHUNK, CHUNKS = 150, 3
PROBA = {
    "binary": np.array([0.2, 0.7]),
    "one": np.array([[0.2, 0.5, 0.3], [0.6, 0.1, 0.3]]),
    "several": [np.eye(3)[:2], np.full((2, 2), 0.5)],
}


def rules():
    rng = np.random.default_rng(0)
    one = (np.array(["a", "b", "c"]),)
    several = (np.arange(3), np.array([False, True]))
    full = [Loss.from_tensor(rng.normal(size=(1, 3, 3))) for _ in range(2)]
    link = TemperatureScaling(np.array([1.5]), rng.normal(size=(1, 3)))
    plain = [mw.WeightedRule(loss, one) for loss in full]
    shift = TemperatureScaling(np.array([1.0]), np.array([[0.0, 2.0]]))
    return {
        "binary": [mw.WeightedRule(Loss.argmax(2), (np.array([0, 1]),), shift)],
        "one": [
            mw.WeightedRule(Loss.argmax(3), one, link, metadata={"metric": "f1"}),
            plain[0],
            mw.MixtureRule(plain, np.array([[0.25, 0.75]])),
            mw.WeightedRule(Loss.argmax(4), one, link, metadata={"metric": "f1", "abstain": 0.2}, abstain_label="?"),
            mw.CostRule(one, link, abstain_label=-1, abstain_cost=0.5, metadata={"metric": "cost"}),
        ],
        "several": [mw.WeightedRule(Loss.argmax(3), several, multioutput=True, output_names=("x", "y"))],
    }


DOCUMENTS = [(kind, rule.to_json()) for kind, of_kind in rules().items() for rule in of_kind]


@pytest.mark.parametrize("chunk", range(CHUNKS))
@pytest.mark.parametrize("mangle", [edited, damaged])
def test_a_mangled_file_is_refused_or_a_rule(mangle, chunk):
    for seed in range(chunk * CHUNK, (chunk + 1) * CHUNK):
        rng = np.random.default_rng(seed)
        kind, text = DOCUMENTS[rng.integers(len(DOCUMENTS))]
        mangled = mangle(text, rng)
        try:
            check(mangled, PROBA[kind])
        except Exception as error:
            error.add_note(f"with seed {seed}: {mangled}")
            raise


def check(text, proba):
    try:
        rule = mw.load_rule(text)
        assert mw.load_rule(rule.to_json()) == rule
        assert isinstance(rule.describe(), str)
        if isinstance(rule, mw.WeightedRule):
            assert rule.class_weight is None or np.isfinite(rule.class_weight).all()
        more = {"cost": np.ones((2, len(rule.classes)))} if isinstance(rule, mw.CostRule) else {}
        assert len(rule.predict(proba, **more)) == 2
    except AssertionError:
        raise
    except Exception as error:
        assert_sentence(error)
