"""The command fit with constraints that are guaranteed: as in Python."""

import numpy as np
import pandas as pd
import pytest

import metricwise as mw
from cli.shared import document, done, run


def frame(seed, n=3000):
    rng = np.random.default_rng(seed)
    p = 1 / (1 + np.exp(-(2.0 * rng.normal(size=n) - 1.0)))
    return pd.DataFrame({"p_fraud": p, "label": np.where(rng.random(n) < p, "fraud", "fine")})


@pytest.fixture
def tables(tmp_path):
    rows, others = frame(0), frame(1).drop(columns="label")
    rows.to_csv(tmp_path / "rows.csv", index=False)
    others.to_csv(tmp_path / "others.csv", index=False)
    return tmp_path, rows, others


ASK = ("--target", "label", "--proba", "p_fraud", "--pos-label", "fraud", "-m", "recall", "--guarantee", "exact")


def test_a_guarantee_is_that_of_python(tables):
    folder, rows, others = tables
    out = folder / "rule.json"
    result = document(
        "fit",
        folder / "rows.csv",
        *ASK,
        "--subject-to",
        "precision >= 0.75",
        "--unlabelled",
        folder / "others.csv",
        "-o",
        out,
    )
    expected = mw.optimize(
        rows["p_fraud"].to_numpy(),
        rows["label"].to_numpy(),
        "recall",
        pos_label="fraud",
        subject_to="precision >= 0.75",
        guarantee="exact",
        unlabelled=others["p_fraud"].to_numpy(),
    )
    rule = mw.load_rule(out)
    assert rule.threshold == pytest.approx(expected.rule.threshold)
    assert result["constraints"][0]["guarantee"] == rule.metadata.guarantee == "exact"


def test_it_is_printed(tables):
    folder, _, _ = tables
    result = done("fit", folder / "rows.csv", *ASK, "--subject-to", "precision >= 0.75", "-o", folder / "rule.json")
    assert "guaranteed on new data with confidence 0.95" in result.out


def test_what_cannot_be_guaranteed_says_so_in_options(tables):
    folder, _, _ = tables
    out = folder / "rule.json"
    failed = run("fit", folder / "rows.csv", *ASK, "--subject-to", "precision >= 0.99", "-o", out)
    assert failed.code == 3
    assert "or leave --guarantee out" in failed.err
    refused = run("fit", folder / "rows.csv", *ASK, "--subject-to", "f1 >= 0.2", "-o", out)
    assert refused.code == 2
    assert "--guarantee exact is for proportions of rows" in refused.err
    assert not out.exists()
