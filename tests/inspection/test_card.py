"""What a notebook shows: whatever the labels are, HTML that stands by itself and does nothing."""

import pickle
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import metricwise as mw
import worlds
from metricwise.inference import Gain
from metricwise.inspection.card import rule_card, solution_card
from metricwise.inspection.rule_table import rule_table
from metricwise.inspection.summary import advice
from metricwise.solvers import Outcome

NASTY = ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "a & b \N{RIGHT-TO-LEFT OVERRIDE} 'c'"]


class Reader(HTMLParser):
    """Elements, their attributes and all text."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.names, self.texts, self.open = set(), set(), [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, name, attrs):
        self.elements.add(name)
        self.names |= {key for key, _ in attrs}
        self.open.append(name)

    def handle_endtag(self, name):
        assert self.open.pop() == name

    def handle_data(self, data):
        if not self.open or self.open[-1] != "style":
            self.texts.append(data)

    @property
    def text(self):
        return "".join(self.texts)


def check(text):
    """Nothing runs, nothing is fetched, every element is closed, and charts are well-formed."""
    found = Reader(text)
    assert not found.open
    assert not found.elements & {"script", "img", "iframe", "link", "object"}
    assert not {name for name in found.names if name.startswith("on")} | (found.names & {"src", "href", "style"})
    for chart in text.split("<svg")[1:]:
        ET.fromstring("<svg" + chart.split("</svg>")[0] + "</svg>")
    return found.text


def test_labels_are_inert_and_whole():
    P, y = worlds.multiclass(names=NASTY)
    solution = mw.optimize(P, y, "macro_f1", classes=NASTY)
    for made in (solution._repr_html_(), solution.rule._repr_html_()):
        text = check(made)
        for label in NASTY:
            assert label in text


def test_the_card_says_what_was_found():
    solution = mw.optimize(*worlds.binary(800), "f1")
    text = check(solution._repr_html_())
    assert f"f1{solution.value:.3f}" in text
    assert f"argmax{solution.baseline:.3f}" in text
    assert f"{solution.rule.threshold:.4g}" in text
    assert advice(solution)[1] in text
    assert solution.status in text


def test_promises_are_shown():
    solution = mw.optimize(*worlds.binary(2000), "recall", subject_to="precision >= 0.6")
    text = check(solution._repr_html_())
    assert "precision >= 0.6" in text
    assert "95 % confidence" in text


@pytest.mark.parametrize(
    ("options", "kind", "words"),
    [
        ({"metric": "f1"}, "yes", "Use the rule"),
        (
            {"metric": "f1", "strategy": mw.Strategy(confusion="labels", recalibrate=False)},
            "maybe",
            "has not been estimated",
        ),
        ({"metric": "recall", "subject_to": "precision >= 0.6"}, "yes", "95 % confidence"),
        (
            {"metric": "recall", "subject_to": "precision >= 0.6", "confidence": None},
            "maybe",
            "not necessarily on new data",
        ),
    ],
)
def test_advice(options, kind, words):
    found, sentence = advice(mw.optimize(*worlds.binary(2000), **options))
    assert found == kind
    assert words in sentence


def test_advice_where_there_is_no_gain():
    solution = mw.optimize(*worlds.binary(800), "f1")
    kind, sentence = advice(replace(solution, outcome=Outcome.ARGMAX))
    assert kind == "no"
    assert sentence == "Use argmax: no candidate is expected to be better on new data."
    assert advice(replace(solution, gain=Gain(-0.01, -0.02, 0.01)))[0] == "no"
    assert advice(replace(solution, gain=Gain(0.01, -0.02, 0.03)))[0] == "maybe"


def test_advice_without_labels():
    kind, sentence = advice(mw.optimize(worlds.binary(800)[0], None, "f1"))
    assert kind == "maybe"
    assert "if the probabilities are calibrated" in sentence


def test_a_card_never_fails_for_want_of_rows():
    p, y = worlds.binary(800)
    solution = mw.optimize(p, y, "f1")
    again = pickle.loads(pickle.dumps(solution))  # noqa: S301
    assert "<svg" not in check_card(again)
    p[:] = p[::-1].copy()
    assert "<svg" not in check_card(solution)


def check_card(solution):
    made = solution_card(solution)
    check(made)
    return made


def test_rules_of_every_kind():
    P, y = worlds.multiclass(names=["low", "mid", "high"])
    rng = np.random.default_rng(0)
    rules = [
        mw.WeightedRule.from_thresholds(0.25),
        mw.WeightedRule.from_thresholds({f"label {m}": 0.1 + 0.01 * m for m in range(30)}),
        mw.WeightedRule.from_weights(rng.random((3, 4))),
        mw.WeightedRule.from_cut_points([0.5, 1.7]),
        mw.optimize(P, y, "quadratic_kappa", classes=["low", "mid", "high"], order=["low", "mid", "high"]).rule,
        mw.optimize(P, None, "min_recall", strategy=mw.Strategy(randomized=True)).rule,
        mw.optimize(P, y, "accuracy", abstain=0.3).rule,
        mw.WeightedRule.from_weights(rng.random(40)),
    ]
    for rule in rules:
        text = check(rule_card(rule))
        assert rule.describe().splitlines()[0][:40] in text or "more" in text


def test_tables_of_rules():
    many = rule_table(mw.WeightedRule.from_thresholds(np.linspace(0.1, 0.9, 80)))
    assert (len(many["rows"]), many["more"]) == (60, 20)
    assert many["rows"][0] == ["0", "1", "0.1"]
    assert "and 72 more" in check(rule_card(mw.WeightedRule.from_thresholds(np.linspace(0.1, 0.9, 80))))
    assert rule_table(mw.WeightedRule.from_thresholds(np.inf))["rows"] == [["1", "never"]]
    assert rule_table(mw.WeightedRule.from_weights([1, 1, 1])) is None
    assert rule_table(mw.WeightedRule.from_weights([2, 4, 6]))["rows"] == [["0", "1"], ["1", "2"], ["2", "3"]]


def test_diagrams_show_the_rule():
    X, y = worlds.features(300, 2)
    blank = mw.MetricOptimalClassifierCV(LogisticRegression(), metric="f1")
    assert "rule_" not in blank._repr_html_()
    model = blank.fit(X, y)
    made = model._repr_html_()
    assert "rule_: WeightedRule" in made
    assert "exceeds" in made
    assert "mw-card" in made
    assert model._repr_mimebundle_()["text/plain"] == repr(model)
    assert "mw-card" in model._repr_mimebundle_()["text/html"]
    inside = make_pipeline(mw.FixedRuleClassifier(LogisticRegression(), model.rule_)).fit(X, y)
    assert "rule_: WeightedRule" in inside._repr_html_()
    assert "mw-card" not in inside._repr_html_()


def test_cards_need_no_extras():
    code = (
        "import sys\n"
        "for name in ('matplotlib', 'jinja2', 'pandas', 'sklearn'): sys.modules[name] = None\n"
        "import metricwise as mw\n"
        "solution = mw.optimize([0.1, 0.4, 0.6, 0.9] * 20, [0, 0, 1, 1] * 20, 'f1')\n"
        "print(solution._repr_html_().count('<svg'), len(solution.rule._repr_html_()) > 100)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "1 True"
