"""Reports: what they say is what was counted, in types that JSON has, on a page that fetches nothing."""

import json
import pickle
import re
import subprocess
import sys
from html.parser import HTMLParser

import numpy as np
import pytest
from sklearn import metrics as sk

import metricwise as mw
import worlds
from metricwise import report
from metricwise.inspection import summary

pytest.importorskip("jinja2")

NASTY = ["<script>boom()</script>", "'\"><img src=x onerror=boom()>", "</script><b>&amp; long " + "x" * 90]


def binary(n=1000, seed=0):
    return worlds.binary(n, power=1.2, names=["fine", "fraud"], seed=seed)


def three(names=("low", "mid", "high")):
    return worlds.multiclass(names=names)


@pytest.fixture(scope="module")
def solution():
    return mw.optimize(*binary(), "f1", pos_label="fraud", record=["mcc"])


class Page(HTMLParser):
    """Elements with their attributes, and the text of each cell."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.texts, self.stack = [], [], []
        self.feed(text)

    def handle_starttag(self, name, attrs):
        self.elements.append((name, dict(attrs)))
        self.stack.append(name)

    def handle_endtag(self, name):
        while self.stack and self.stack.pop() != name:
            pass

    def handle_data(self, data):
        if not (self.stack and self.stack[-1] in ("script", "style")):
            self.texts.append(data)


def test_a_summary_is_json_and_says_what_was_found(solution):
    found = report.summarize(solution)
    again = json.loads(json.dumps(found, allow_nan=False))
    assert again == found
    assert found["figures"]["value"] == solution.value
    assert found["figures"]["gain"]["low"] == solution.gain.low
    assert found["advice"]["kind"] == "yes"
    assert found["rule"]["words"] == solution.rule.describe().splitlines()
    assert mw.load_rule(found["apply"]["json"]) == solution.rule
    assert dict(found["facts"])["Rows"] == "1,000"
    assert found["recorded"] == [
        {"name": "mcc", "value": solution.recorded["mcc"].value, "baseline": solution.recorded["mcc"].baseline}
    ]


def test_what_the_slider_moves_along_is_what_scikit_learn_says(solution):
    p, y = binary()
    path = report.summarize(solution)["path"]
    assert list(path["values"])[:2] == ["f1", "mcc"]
    known = {
        "f1": lambda d: sk.f1_score(y, d, pos_label="fraud"),
        "precision": lambda d: sk.precision_score(y, d, pos_label="fraud"),
        "recall": lambda d: sk.recall_score(y, d, pos_label="fraud"),
        "accuracy": lambda d: sk.accuracy_score(y, d),
        "balanced_accuracy": lambda d: sk.balanced_accuracy_score(y, d),
        "mcc": lambda d: sk.matthews_corrcoef(y, d),
    }
    assert set(path["values"]) == set(known)
    for at in (path["chosen"], path["plain"]):
        threshold = solution.rule.threshold if at == path["chosen"] else 0.5
        decided = np.where(p > threshold, "fraud", "fine")
        for name, score in known.items():
            assert path["values"][name][at] == pytest.approx(score(decided), abs=1e-5)
        cells = np.reshape(path["confusion"]["cells"][at], (2, 2))
        np.testing.assert_array_equal(cells, sk.confusion_matrix(y, decided))


@pytest.mark.parametrize(
    "kind", ["multilabel", "outputs", "abstain", "unlabelled", "mixture", "constraints", "many", "costs", "groups"]
)
def test_every_kind_of_target_has_a_report(kind, tmp_path):
    rng = np.random.default_rng(0)
    P, y = three()
    if kind == "multilabel":
        Q = rng.beta(0.5, 3, (300, 20))
        found = mw.optimize(Q, (rng.random(Q.shape) < Q).astype(int), "f1", average="macro")
    elif kind == "outputs":
        Y = np.stack([y.astype(object), np.where(P[:, 0] > 0.4, "no", "yes").astype(object)], axis=1)
        pair = np.stack([P[:, 0], 1 - P[:, 0]], axis=1)
        found = mw.optimize([P, pair], Y, "accuracy", average="macro", classes=[["low", "mid", "high"], ["no", "yes"]])
    elif kind == "abstain":
        found = mw.optimize(P, y, "accuracy", abstain=0.3, classes=["low", "mid", "high"])
    elif kind == "unlabelled":
        found = mw.optimize(P, None, "macro_f1")
    elif kind == "mixture":
        found = mw.optimize(P, None, "min_recall", strategy=mw.Strategy(randomized=True))
    elif kind == "constraints":
        found = mw.optimize(*binary(2000), "recall", pos_label="fraud", subject_to="precision >= 0.6")
    elif kind == "groups":
        p, labels = binary()
        found = mw.optimize(
            p,
            labels,
            "accuracy",
            pos_label="fraud",
            subject_to="demographic_parity <= 0.1",
            sensitive_features=np.arange(len(p)) % 2,
        )
        assert [one["group"] for one in report.summarize(found)["groups"][::2]] == ["0", "1"]
        assert "mw-card" in found._repr_html_()
    elif kind == "costs":
        found = mw.optimize(P, y, "cost", cost=rng.random((400, 3)))
        with pytest.raises(ValueError, match="not available for a CostRule"):
            found.plot()
    else:
        wide = rng.dirichlet(np.ones(60), 300)
        codes = rng.integers(0, 60, 300)
        found = mw.optimize(
            wide, codes, "accuracy", classes=range(60), strategy=mw.Strategy(confusion="labels", recalibrate=False)
        )
    json.dumps(report.summarize(found), allow_nan=False)
    path = tmp_path / "report.html"
    found.report(path)
    text = path.read_text(encoding="utf-8")
    assert text.rstrip().endswith("</html>")
    assert len(text) < 3_000_000


def test_costs_are_shown_as_costs():
    """Positive, and falling: the mean cost of scikit-learn's confusion matrices."""
    P, y = three()
    names, table = ["high", "low", "mid"], np.array([[0, 20, 5], [1, 0, 1], [1, 5, 0]])
    order = [2, 0, 1]
    found = mw.optimize(P[:, order], y, mw.metrics.Cost(table), classes=names)
    ours, plain = (
        float((sk.confusion_matrix(y, decided, labels=names) * table).sum() / len(y))
        for decided in (found.rule.predict(P[:, order]), np.array(names)[P[:, order].argmax(axis=1)])
    )
    assert ours < plain
    said = report.summarize(found)
    assert said["metric"] == "mean cost"
    assert said["figures"]["value"] == pytest.approx(ours)
    assert said["figures"]["baseline"] == pytest.approx(plain)
    low, high = (said["figures"]["value_on_new_rows"][end] for end in ("low", "high"))
    assert 0 < low < high
    along = said["path"]["values"]["mean cost"]
    assert along[said["path"]["chosen"]] == pytest.approx(ours, abs=1e-5)
    after = -found.value_on_new_rows.estimate
    assert f"from about {after + found.gain.estimate:.3f} to about {after:.3f}" in said["advice"]["sentence"]
    text = "".join(Page(report.render(said)).texts) + found._repr_html_()
    assert "minus the mean cost" not in text
    other = report.summarize(found.rule, P[:, order], y, mw.metrics.Cost(table))
    assert "it lowers the mean cost from" in other["advice"]["sentence"]
    assert other["figures"]["value"] == pytest.approx(ours)


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        ((3, 2, 1), "2 of 3 gain, 1 loses"),
        ((3, 1, 2), "1 of 3 gains, 2 lose"),
        ((4, 2, 1), "2 of 4 gain, 1 loses, 1 shows no clear difference"),
        ((9, 0, 0), "9 of 9 show no clear difference"),
        ((2, 0, 1), "1 of 2 loses, 1 shows no clear difference"),
    ],
)
def test_parts_are_counted_in_words(counts, words):
    assert summary._gains_text(*counts) == words


def test_grades_that_are_rounded_have_no_weights():
    P, y = three()
    metric = mw.metrics.Kappa("quadratic", order=["low", "mid", "high"])
    rule = report.summarize(mw.optimize(P, y, metric, classes=["low", "mid", "high"]))["rule"]
    assert any("rounded at the cut points" in line for line in rule["words"])
    assert rule["table"] is None


def test_each_metric_is_shown_once():
    p, y = binary()
    found = mw.optimize(p, y, "f1[fraud]", record=["recall[fraud]"])
    names = set(report.summarize(found)["path"]["values"])
    assert names == {"f1[fraud]", "recall[fraud]", "precision", "accuracy", "balanced_accuracy"}


def test_what_only_programmers_understand_is_folded(solution):
    text = report.render(report.summarize(solution))
    head, folded = text.split("<summary>Technical details</summary>")
    for words in ("Outcome", "Passes over the rows", "Recipe"):
        assert f"<dt>{words}</dt>" in folded
        assert f"<dt>{words}</dt>" not in head
    assert "<dt>Rows</dt>" in head


def test_the_axes_of_the_calibration_are_named(solution):
    shown = Page(report.render(report.summarize(solution))).texts
    assert {"predicted probability", "observed frequency"} <= set(shown)


def test_the_confidence_of_a_bound_is_explained():
    found = mw.optimize(*binary(2000), "recall", pos_label="fraud", subject_to="precision >= 0.6")
    shown = "".join(Page(report.render(report.summarize(found))).texts)
    assert "holds on new data with 95 % confidence" in shown
    assert "The confidence is one-sided" in shown
    assert "95%" not in shown


def test_a_rule_on_other_rows(tmp_path):
    p, y = binary()
    rule = mw.optimize(p, y, "f1", pos_label="fraud").rule
    new, truth = binary(seed=3)
    found = report.summarize(rule, new, truth, ["f1", "accuracy"], pos_label="fraud")
    judged = mw.evaluate(rule, new, truth, "f1", pos_label="fraud")["f1"]
    assert found["figures"]["gain"]["estimate"] == judged.difference.estimate
    assert found["figures"]["given"] == "these rows"
    assert "on these rows it adds" in found["advice"]["sentence"]
    worse = mw.WeightedRule.from_thresholds(0.999, classes=["fine", "fraud"], pos_label="fraud")
    said = report.summarize(worse, new, truth, "f1", pos_label="fraud")["advice"]
    assert said["kind"] == "no"
    report.write(tmp_path / "r.html", worse, new, truth, "f1", pos_label="fraud")
    with pytest.raises(ValueError, match="proba and y must be given for a rule"):
        report.summarize(rule)


def test_without_its_rows_a_solution_says_the_rest(solution, tmp_path):
    fresh = mw.optimize(*binary(), "f1", pos_label="fraud")
    again = pickle.loads(pickle.dumps(fresh))  # noqa: S301
    found = report.summarize(again)
    assert found["path"] is None
    assert found["moves"] is None
    assert found["figures"]["value"] == fresh.value
    again.report(tmp_path / "r.html")


def test_labels_are_inert():
    P, y = three(names=NASTY)
    text = report.render(report.summarize(mw.optimize(P, y, "macro_f1", classes=NASTY)))
    page = Page(text)
    assert sum(name == "script" for name, _ in page.elements) == 2  # the data and our own
    assert not any(name in ("img", "iframe", "object", "link") for name, _ in page.elements)
    assert not any(key.startswith("on") for _, attrs in page.elements for key in attrs)
    shown = "".join(page.texts)
    for label in NASTY:
        assert label in shown


def test_nothing_is_fetched(solution):
    page = Page(report.render(report.summarize(solution)))
    links = [attrs[key] for _, attrs in page.elements for key in ("src", "href", "action") if key in attrs]
    assert all(link.startswith("data:") for link in links)
    policy = next(attrs["content"] for _, attrs in page.elements if attrs.get("http-equiv"))
    assert policy.startswith("default-src 'none'")
    assert not re.search(r"url\(|@import|https?://", report.render(report.summarize(solution)).split("<main>")[0])


def test_nothing_is_left_where_writing_fails(solution, tmp_path):
    with pytest.raises(OSError, match="missing"):
        solution.report(tmp_path / "missing" / "report.html")
    path = tmp_path / "report.html"
    path.write_text("old")
    with pytest.raises(ValueError, match="proba and y must be given"):
        report.write(path, solution.rule)
    assert path.read_text() == "old"
    assert [one.name for one in tmp_path.iterdir()] == ["report.html"]


def test_reports_say_what_they_need():
    code = (
        "import sys; sys.modules['jinja2'] = None\n"
        "import metricwise as mw\n"
        "solution = mw.optimize([0.1, 0.4, 0.6, 0.9] * 20, [0, 0, 1, 1] * 20, 'f1')\n"
        "try: solution.report('never.html')\n"
        "except ImportError as error: print(error)\n"
        "print('matplotlib' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.splitlines() == ["report needs Jinja2: pip install 'metricwise[report]'.", "False"]


# ------------------------------------------------------------------------------------------------- what words promise


def test_what_was_counted_on_a_sample_is_said_to_be():
    p, y = binary(30_000)
    found = mw.optimize(p, y, "f1", pos_label="fraud")
    summary = report.summarize(found)
    assert summary["gains"]["rows"] == summary["reliability"]["rows"] == "a sample of 20,000 of these rows"
    text = " ".join(Page(report.render(summary)).texts)
    assert "minus that of argmax on a sample of 20,000 of these rows" in text
    assert "had the class, in a sample of 20,000 of these rows" in text
    few = report.summarize(mw.optimize(*binary(500), "f1", pos_label="fraud"))
    assert few["gains"]["rows"] == "these rows"
    assert not few["path"]["sampled"]


def test_the_slider_says_that_it_moves_over_a_sample(monkeypatch):
    monkeypatch.setattr("metricwise.inspection.details.curve._MAX_DECIDED_ENTRIES", 1)
    summary = report.summarize(mw.optimize(*binary(3_000), "f1", pos_label="fraud"))
    assert summary["path"]["sampled"]
    text = " ".join(Page(report.render(summary)).texts)
    assert "on a sample of 2,000 rows" in text
    assert "estimated from the sample" in text


@pytest.mark.parametrize(
    ("metric", "name", "score"),
    [
        ("min_recall", "recall", sk.recall_score),
        ("balanced_accuracy", "recall", sk.recall_score),
        ("g_mean", "recall", sk.recall_score),
        ("accuracy", "recall", sk.recall_score),
        ("macro_precision", "precision", sk.precision_score),
        ("macro_f1", "f1", sk.f1_score),
        ("f1[high]", "f1", sk.f1_score),
        ("mcc", "f1", sk.f1_score),
        (sk.zero_one_loss, "recall", sk.recall_score),
    ],
)
def test_classes_are_shown_by_what_the_metric_is_made_of(metric, name, score):
    P, y = three()
    found = mw.optimize(P, y, metric, strategy=mw.Strategy(confusion="labels", recalibrate=True))
    gains = found.details.gains
    assert gains.metric == name
    h = found.rule.predict(P)
    for label, value in zip(gains.names, gains.value[:, 0], strict=True):
        assert value == pytest.approx(score(y == label, h == label), abs=1e-12)
    assert f"{name} of each class" in " ".join(Page(report.render(report.summarize(found))).texts)


def test_why_the_rule_is_not_at_the_top_of_its_curve_is_said():
    p, y = binary()
    by_default = mw.optimize(p, y, "f1", pos_label="fraud")
    assert "chosen for new data" in by_default.status
    said = report.summarize(by_default)["path"]["beside_top"]
    assert "because it is chosen for new data" in said
    best = mw.optimize(p, y, "f1", pos_label="fraud", strategy=mw.Strategy(confusion="labels", recalibrate=False))
    assert report.summarize(best)["path"]["beside_top"] is None
    kept = mw.optimize(p, y, "f1", pos_label="fraud", subject_to="recall >= 0.9")
    assert "must satisfy the constraints" in report.summarize(kept)["path"]["beside_top"]
    other = report.summarize(by_default.rule, *binary(seed=5), "f1", pos_label="fraud")
    assert "was not fitted to these rows" in other["path"]["beside_top"]


def test_the_margin_is_explained_as_what_it_is():
    found = mw.optimize(*binary(), "f1", pos_label="fraud", subject_to="recall >= 0.7")
    text = " ".join(Page(report.render(report.summarize(found))).texts)
    assert "The margin is the amount by which the bound was tightened" in text


def test_an_interval_with_zero_in_it_does_not_exclude_a_gain():
    rng = np.random.default_rng(3)
    for seed in range(40):
        rng = np.random.default_rng(seed)
        p = rng.beta(2, 2, 150)
        found = mw.optimize(p, (rng.random(150) < p).astype(int), "f1")
        if found.gain is not None and found.gain.low <= 0 < found.gain.estimate:
            said = report.summarize(found)["advice"]["sentence"]
            assert said.endswith("but the 95 % interval includes zero.")
            return
    raise AssertionError("no gain of which it is not clear")


def test_rules_without_a_threshold_do_not_speak_of_one():
    p, y = binary()
    cost = np.random.default_rng(0).uniform(1, 5, (len(p), 2))
    priced = mw.optimize(p, (y == "fraud").astype(int), "cost", cost=cost)
    assert "threshold" not in priced.rule.describe()
    assert "Probabilities are recalibrated first" in priced.rule.describe()
    rng = np.random.default_rng(0)
    P = rng.beta(1, 4, (1_000, 3))
    tags = mw.optimize(P, (rng.random(P.shape) < P).astype(int), "f1").rule.describe()
    assert "One threshold for all outputs, 0." in tags


def test_the_line_of_python_passes_what_the_rule_needs(tmp_path):
    rng = np.random.default_rng(0)
    p, group = rng.random(300), np.where(rng.random(300) < 0.5, "a", "b")
    y = (rng.random(300) < p).astype(int)
    solution = mw.optimize(p, y, "accuracy", subject_to="demographic_parity <= 0.2", sensitive_features=group)
    path = tmp_path / "report.html"
    solution.report(path)
    assert "rule.predict(proba, sensitive_features=sensitive_features)" in path.read_text(encoding="utf-8")
