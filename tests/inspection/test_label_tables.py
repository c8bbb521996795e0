"""Reports, cards and plots of rules for very many labels: what they say is what was counted, or they refuse."""

import json
import pickle

import numpy as np
import pandas as pd
import pytest

import metricwise as mw
from metricwise import displays, report
from metricwise.inspection.label_tables import baseline_words
from worlds.labels import label_world

P, Y = label_world(400, 80, stored=12)
NASTY = [f"<b>{m}</b>" for m in range(80)]

CASES = {
    "budget": lambda: mw.optimize(P, Y, "f1", average="macro", labels_per_row=2, record=["recall"]),
    "thresholds": lambda: mw.optimize(P, Y, "f1", average="macro"),
    "sets": lambda: mw.optimize(P, Y, "f1_samples", labels_per_row=3),
    "exactly": lambda: mw.optimize(P, Y, "precision@3"),
    "coverage": lambda: mw.optimize(P, Y, "label_coverage", labels_per_row=1),
    "constraint": lambda: mw.optimize(P, Y, "recall", labels_per_row=3, subject_to="precision >= 0.5"),
    "without labels": lambda: mw.optimize(P, None, "f1", labels_per_row=2),
    "loss": lambda: mw.optimize(P, Y, "hamming_loss"),
    "dense, names": lambda: mw.optimize(
        pd.DataFrame(P.toarray(), columns=NASTY), Y.toarray(), "f1", average="macro", labels_per_row=2
    ),
}


@pytest.fixture(scope="module", params=CASES)
def solution(request):
    return CASES[request.param]()


def test_the_summary_is_json_and_says_what_was_counted(solution):
    found = json.loads(json.dumps(report.summarize(solution), allow_nan=False))
    labels, by_label = found["labels"], solution.by_label
    assert found["baseline"] == "most probable labels"
    assert labels["n_labels"] == 80
    assert labels["n_true"] == (by_label.true > 0).sum()
    assert sum(group["n_labels"] for group in labels["by_frequency"]) == 80
    true = [row["true"] for row in labels["largest"]]
    assert true == sorted(by_label.true, reverse=True)[: len(true)]
    common = by_label.true > labels["least_true"]
    assert [row["value"] for row in labels["worst"]] == pytest.approx(np.sort(by_label.value[common])[:10])
    gain = by_label.value - by_label.baseline
    ups, downs = np.sort(gain[common & (gain > 1e-12)])[::-1][:10], np.sort(gain[common & (gain < -1e-12)])[:10]
    assert [row["gain"] for row in labels["gains"]] == pytest.approx(ups)
    assert [row["gain"] for row in labels["losses"]] == pytest.approx(downs)
    assert labels["never"]["n_labels"] == len(by_label.never_predicted)
    facts = dict(found["facts"])
    assert facts["Labels"] == "80"
    assert facts["Rows"] == "400"
    assert facts["Baseline"] == baseline_words(solution.rule)
    assert found["path"] is None
    assert not any(missing["failed"] for missing in found["missing"].values())


def test_the_page_and_the_card_show_it(solution, tmp_path):
    pytest.importorskip("jinja2")
    solution.report(tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    for title in ("By frequency", "Largest labels", "Worst labels", "rule.predict("):
        assert title in text
    assert "<dt>argmax" not in text
    assert ">argmax</th>" not in text
    card = solution._repr_html_()
    assert "true rows" in card
    assert ">argmax<" not in card
    if solution.rule.output_names is not None:
        assert "&lt;b&gt;" in text
        assert "<b>1</b>" not in text + card
        assert "&lt;b&gt;" in report.render(report.summarize(solution))
    assert ("predict_together" in text) == solution.rule.decides_together


def test_a_loaded_solution_and_a_pickled_one_show_the_same(solution, tmp_path):
    solution.save(tmp_path / "solution.json")
    unpickled = pickle.loads(pickle.dumps(solution))  # noqa: S301
    for again in (mw.load_solution(tmp_path / "solution.json"), unpickled):
        assert report.summarize(again) == report.summarize(solution)
        assert again._repr_html_() == solution._repr_html_()


def test_details_are_refused_in_a_sentence(solution):
    with pytest.raises(ValueError, match=r"not available for a Label.*; use solution.by_label, solution.plot or"):
        _ = solution.details
    with pytest.raises(ValueError, match="not available for a Label"):
        displays.GainsDisplay.from_solution(solution)


def test_thresholds_are_those_of_the_rule():
    solution = CASES["thresholds"]()
    np.testing.assert_array_equal(solution.threshold, solution.rule.thresholds)
    assert solution.threshold.shape == (80,)
    for name in ("budget", "sets"):
        assert CASES[name]().threshold is None
    row = report.summarize(solution)["labels"]["largest"][0]
    assert row["threshold"] == f"{solution.threshold[int(row['name'].removeprefix('label '))]:.3f}"


def test_a_rule_is_shown_shortly():
    rule = mw.LabelRule(np.linspace(1, 2, 500), np.zeros(500), labels_per_row=2)
    assert len(repr(rule)) < 500
    assert repr(rule).startswith("LabelRule(scale=array([1.")
    assert "labels_per_row=(0, 2)" in repr(rule)


def test_the_display_draws_what_was_counted(solution):
    pytest.importorskip("matplotlib").use("agg")
    from matplotlib import pyplot as plt

    display = solution.plot()
    assert type(display) is displays.LabelGainsDisplay
    groups = solution.by_label.by_frequency()
    assert display.groups == groups
    drawn = [text.get_text() for text in display.ax_.get_yticklabels()]
    assert [text.split("\n")[0] for text in drawn] == [group.name for group in groups]
    assert solution.by_label.metric.removeprefix("neg_") in display.ax_.get_xlabel()
    _, ax = plt.subplots()
    assert displays.LabelGainsDisplay.from_solution(solution, ax=ax).ax_ is ax
    plt.close("all")


def test_the_display_is_of_many_labels():
    binary = mw.optimize([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1], "f1")
    with pytest.raises(ValueError, match=r"LabelGainsDisplay.*very many labels.*got one of a WeightedRule"):
        displays.LabelGainsDisplay.from_solution(binary)
    with pytest.raises(TypeError, match="must be a Solution"):
        displays.LabelGainsDisplay.from_solution(3)
    with pytest.raises(ValueError, match="at least one group"):
        displays.LabelGainsDisplay([], "f1").plot()


def test_a_report_on_other_rows_is_what_evaluate_says(solution, tmp_path):
    if solution.rule.output_names is not None:
        pytest.skip("sparse rows have no names")
    P_new, Y_new = label_world(300, 80, stored=12, seed=1, missed=0.1)
    found = json.loads(json.dumps(report.summarize(solution, P_new, Y_new), allow_nan=False))
    (comparison,) = mw.evaluate(solution.rule, P_new, Y_new).values()
    assert abs(found["figures"]["value"]) == pytest.approx(abs(comparison.value.estimate))
    assert found["figures"]["gain"]["low"] == pytest.approx(comparison.difference.low)
    assert found["figures"]["given"] == "these rows"
    assert dict(found["facts"])["Rows"] == "300"
    decided, true = solution.predict(P_new).toarray(), Y_new.toarray()
    row = found["labels"]["largest"][0]
    m = int(row["name"].removeprefix("label "))
    assert row["true"] == true[:, m].sum() == true.sum(axis=0).max()
    assert (row["predicted"], row["hits"]) == (decided[:, m].sum(), (decided * true)[:, m].sum())
    unstored = 100 * (true * (P_new.toarray() == 0)).sum() / true.sum()
    assert dict(found["facts"])["True labels that are not stored"] == f"{unstored:.2g} %"
    report.write(tmp_path / "report.html", solution.rule, P_new, Y_new, ["f1_micro", "hamming_loss"])
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Other metrics" in text
    assert "hamming_loss" in text


def test_losses_are_shown_as_losses():
    solution = CASES["loss"]()
    found = report.summarize(solution)
    assert found["metric"] == "hamming_loss"
    assert found["figures"]["value"] == -solution.value > 0
    assert found["labels"]["metric"] == "minus the hamming_loss"
    for metrics in (None, "hamming_loss"):
        on_rows = report.summarize(solution, P, Y, metrics)
        assert on_rows["metric"] == "hamming_loss"
        assert on_rows["figures"]["value"] == pytest.approx(found["figures"]["value"])
        assert on_rows["labels"]["metric"] == "minus the hamming_loss"
        assert on_rows["labels"]["by_frequency"] == found["labels"]["by_frequency"]


@pytest.mark.parametrize(
    ("budget", "words"),
    [
        (None, "labels with a probability above 1/2"),
        (3, "labels with a probability above 1/2, at most 3 labels of a row"),
        ((2, 2), "the most probable labels, exactly 2 labels of a row"),
    ],
)
def test_the_baseline_in_words(budget, words):
    assert baseline_words(mw.LabelRule([1, 1, 1], [0, 0, 0], budget)) == words
