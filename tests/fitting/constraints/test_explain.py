"""What is said where no rule was found that keeps bounds which are not convex: a bound of that is kept."""

import re

import numpy as np
import pytest

import metricwise as mw
import worlds
from metricwise.fitting.constraints.explain import _rounded_down

GROUP = np.arange(400) % 2


@pytest.mark.filterwarnings("ignore:.*Too few labels", "ignore:.*alone is highest")
@pytest.mark.parametrize(
    ("kind", "aim", "text", "options"),
    [
        ("multiclass", "recall[2]", "macro_f1 >= 0.95", {"labelled": False}),
        ("multiclass", "accuracy", "recall[2] >= 0.9 and mcc >= 0.35", {"labelled": False}),
        ("binary", "recall", "mcc >= 0.95", {}),
        ("binary", "recall", "mcc >= 0.95", {"labelled": False}),
        ("binary", "recall", "recall >= 0.9 and mcc >= 0.3", {}),
        ("multilabel", "f1", "mcc >= 0.95", {"average": "micro"}),
        ("multilabel", "f1", "mcc[1] >= 0.95", {"average": "macro"}),
        pytest.param("multiclass", "recall[2]", "macro_f1 >= 0.95", {}, marks=pytest.mark.slow),
        pytest.param("multiclass", "recall[2]", "macro_f1 >= 0.95", {"confidence": None}, marks=pytest.mark.slow),
        pytest.param(
            "multiclass", "accuracy", "recall[2] >= 0.9 and mcc >= 0.4", {"confidence": None}, marks=pytest.mark.slow
        ),
        pytest.param(
            "multiclass",
            "recall[2]",
            "macro_f1 >= 0.95 in every group",
            {"sensitive_features": GROUP},
            marks=pytest.mark.slow,
        ),
    ],
)
def test_what_is_said_to_be_found_can_be_asked_for(kind, aim, text, options):
    proba, y = worlds.of_kind(kind, 400)
    options = dict(options)
    y = y if options.pop("labelled", True) else None
    with pytest.raises(ValueError, match=r"^subject_to: no rule was found that satisfies ") as error:
        mw.optimize(proba, y, aim, subject_to=text, **options)
    said = re.search(r"the best found has (\S+) (-?[\d.]+); loosen", str(error.value))
    term, reached = said.groups()
    again = re.sub(rf"{re.escape(term)} >= [\d.]+", f"{term} >= {reached}", text)
    found = mw.optimize(proba, y, aim, subject_to=again, **options).constraints[-1]
    assert found.value >= float(reached) - 1e-9


@pytest.mark.slow
def test_what_no_rule_satisfies_is_said_of_convex_bounds():
    with pytest.raises(ValueError, match=r"no rule satisfies 'accuracy >= 0\.999' on the given rows"):
        mw.optimize(*worlds.multiclass(), "macro_f1", subject_to="accuracy >= 0.999 and mcc >= 0.1", confidence=None)


@pytest.mark.parametrize(
    ("value", "said"), [(0.71289, 0.712), (0.0, 0.0), (-0.1231, -0.124), (12.349, 12.3), (0.5, 0.5)]
)
def test_values_are_rounded_down(value, said):
    assert _rounded_down(value) == pytest.approx(said, abs=1e-12)
