"""The page of a watch: all that the summary says, escaped, and nothing that runs or is fetched."""

import re
from html import unescape
from html.parser import HTMLParser

import numpy as np
import pytest

import metricwise as mw
from metricwise.inspection.charts import promise_chart, shares_chart

pytest.importorskip("jinja2")

NASTY = "<script>alert(1)</script>"


def page_of(watch, tmp_path):
    watch.report(tmp_path / "watch.html")
    return (tmp_path / "watch.html").read_text(encoding="utf-8")


def text_of(page):
    parts = []
    parser = HTMLParser()
    parser.handle_data = parts.append
    parser.feed(re.sub(r"<style>.*?</style>", "", page, flags=re.DOTALL))
    return " ".join(" ".join(parts).split())


def drifting(promises, n_batches=14):
    watch = mw.watch(mw.WeightedRule.from_thresholds(0.5), promises)
    for batch in range(n_batches):
        rng = np.random.default_rng(batch)
        proba = rng.beta(1, 2, 100)
        watch.update(proba, (rng.random(100) < proba * (1.0 if batch < 6 else 0.4)).astype(int), ids=None)
    return watch


def test_the_page_says_what_is_broken(tmp_path):
    watch = drifting(["precision >= 0.6", "share <= 0.6", "macro_f1 >= 0.2"])
    text = text_of(page_of(watch, tmp_path))
    status = watch.promises[0]
    assert "A promise is broken." in text
    assert f"broken since about batch {status.since}, found in batch {status.found}" in text
    assert "Refit the rule with recent labels. Nothing is changed by itself." in text
    assert "by the interval" in text
    assert "with a probability of 5 % at most" in text
    assert watch.rule.describe().splitlines()[0] in text


def test_the_page_of_a_watch_that_sees_nothing(tmp_path):
    watch = mw.watch(mw.WeightedRule.from_thresholds(0.5), "precision >= 0.1", forget_after=1)
    assert "No sign that a promise is broken." in text_of(page_of(watch, tmp_path))
    watch.update([0.9, 0.2], ids=["a", "b"]).update([0.3], ids=["c"])
    watch.update([0.3])
    text = text_of(page_of(watch, tmp_path))
    assert "not known yet" in text
    assert "2 rows were waited for in vain" in text
    assert "waiting for a label 1" in text


def test_nothing_runs_and_nothing_is_fetched(tmp_path):
    rule = mw.WeightedRule.from_weights({NASTY: 1, "b": 2, "c": 1, "d": 1, "e": 1})
    watch = mw.watch(rule, mw.at_least("recall", 0.1, NASTY))
    proba = np.random.default_rng(0).dirichlet(np.ones(5), 40)
    page = page_of(watch.update(proba, ["b", NASTY] * 20), tmp_path)
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert "default-src 'none'" in unescape(page)
    assert not re.findall(r'(?:src|href)="', page)
    assert "and 1 more, which vary less" in text_of(page)


def test_charts_place_values_between_their_axes():
    promise = {
        "sentence": "x",
        "low": 0.5,
        "high": None,
        "since": 2,
        "found": 3,
        "values": [0.4, None, 0.9],
        "running": [0.4, 0.4, 0.6],
        "running_low": [0.1, 0.1, 0.3],
        "running_high": [0.8, 0.8, 0.9],
    }
    for chart in (promise_chart(promise, [1, 2, 3]), shares_chart([[0.2, None, 0.4], [0.8, None, 0.6]], [1, 2, 3])):
        numbers = [
            tuple(map(float, pair))
            for path in re.findall(r' d="M([^"Z]*)', chart)
            for pair in re.findall(r"([\d.]+),([\d.]+)", path)
        ]
        assert numbers
        assert all(40 <= x <= 708 and 10 <= y <= 164 for x, y in numbers)
    assert chart.count("mw-line-") == 2
    assert promise_chart(
        {**promise, "since": None, "values": [], "running": [], "running_low": [], "running_high": []}, []
    )
