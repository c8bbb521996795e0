"""The report command writes the page that Python writes."""

import numpy as np
import pytest

import metricwise as mw
from cli.shared import KINDS, MULTICLASS, done, run, table
from metricwise import report

pytest.importorskip("jinja2")


@pytest.mark.parametrize("kind", KINDS)
def test_the_page_is_that_of_python(kind, tmp_path):
    frame, options = table(kind)
    frame.to_csv(tmp_path / "oof.csv", index=False)
    rule, page = tmp_path / "rule.json", tmp_path / "report.html"
    aim = ["--metric", "accuracy" if kind != "multilabel" else "f1", "--average", "macro"]
    aim = aim if kind in ("several outputs", "multilabel") else aim[:2]
    done("fit", tmp_path / "oof.csv", *options, *aim, "-o", rule)
    result = done("report", rule, tmp_path / "oof.csv", *options, "-o", page)
    assert "report written to" in result.err
    text = page.read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>")
    assert mw.load_rule(rule).describe().splitlines()[0] in text
    if kind == MULTICLASS:
        proba, y = frame[["low", "mid", "urgent"]].to_numpy(), frame["truth"].to_numpy()
        loaded = mw.load_rule(rule)
        assert text == report.render(report.summarize(loaded, proba, y))
        printed = done("report", rule, tmp_path / "oof.csv", *options, "-o", "-").out
        assert printed == text


def test_what_is_there_is_kept(tmp_path):
    frame, options = table(MULTICLASS)
    frame.to_csv(tmp_path / "oof.csv", index=False)
    mw.WeightedRule.from_weights(np.ones(3), classes=["low", "mid", "urgent"]).to_json(tmp_path / "rule.json")
    page = tmp_path / "report.html"
    page.write_text("old")
    refused = run("report", tmp_path / "rule.json", tmp_path / "oof.csv", *options, "--metric", "accuracy", "-o", page)
    assert refused.code == 2
    assert page.read_text() == "old"
    done(
        "report", tmp_path / "rule.json", tmp_path / "oof.csv", *options, "--metric", "accuracy", "-o", page, "--force"
    )
    assert page.read_text().startswith("<!doctype html>")
    nameless = run("report", tmp_path / "rule.json", tmp_path / "oof.csv", *options, "-o", tmp_path / "other.html")
    assert nameless.code == 2
    assert "pass --metric" in nameless.err
    assert not (tmp_path / "other.html").exists()
