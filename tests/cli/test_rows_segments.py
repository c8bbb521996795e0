"""Segments on the command line: what Python finds."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

import metricwise as mw
from cli.shared import done, run


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    rng = np.random.default_rng(0)
    land = np.array(list("abcdef"))[rng.integers(0, 6, 1800)]
    z = rng.normal(-1.5, 1.5, 1800)
    truth = expit(z + 1.2 * (np.char.replace(land, "b", "a") == "a") - 1.0 * (land == "c"))
    frame = pd.DataFrame({"p_yes": expit(z).round(6), "y": np.where(rng.random(1800) < truth, "yes", "no")})
    frame["land"] = land
    folder = tmp_path_factory.mktemp("segments")
    frame.to_csv(folder / "rows.csv", index=False)
    return frame, folder


def test_fit_apply_evaluate_and_export(rows):
    frame, folder = rows
    words = ["--target", "y", "--proba", "p_yes", "--pos-label", "yes", "--metric", "f1", "--segments", "land"]
    done("fit", folder / "rows.csv", *words, "-o", folder / "rule.json")
    rule = mw.load_rule(folder / "rule.json")
    proba = frame["p_yes"].to_numpy()
    ours = mw.optimize(proba, frame["y"], "f1", segments=frame[["land"]], pos_label="yes").rule
    assert isinstance(rule, mw.SegmentedRule)
    assert rule == ours
    done("apply", folder / "rule.json", folder / "rows.csv", "-o", folder / "out.csv")
    decided = ours.predict(proba, segments=frame["land"])
    assert pd.read_csv(folder / "out.csv")["y"].tolist() == decided.tolist()
    assert "f1" in done("evaluate", folder / "rule.json", folder / "rows.csv").out
    assert "In segment" in done("explain", folder / "rule.json").out
    done("export", folder / "rule.json", "-o", folder / "rule.sql")
    assert '"land"' in (folder / "rule.sql").read_text()


def test_columns_of_another_name_and_unseen_segments(rows):
    frame, folder = rows
    if not (folder / "rule.json").exists():
        test_fit_apply_evaluate_and_export(rows)
    other = frame.rename(columns={"land": "country"})[:40]
    other["country"] = ["a", "zz", "c", None] * 10
    other.to_csv(folder / "other.csv", index=False)
    done("apply", folder / "rule.json", folder / "other.csv", "--segments", "country", "-o", folder / "out2.csv")
    rule = mw.load_rule(folder / "rule.json")
    decided = rule.predict(other["p_yes"].to_numpy(), segments=["a", None, "c", None] * 10)
    assert pd.read_csv(folder / "out2.csv")["y"].tolist() == decided.tolist()
    said = run("apply", folder / "rule.json", folder / "other.csv", "-o", folder / "out3.csv").err
    assert "the rule needs the segment of each row; name its column: --segments" in said
