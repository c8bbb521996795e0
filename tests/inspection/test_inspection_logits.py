"""Details, displays, cards and reports of rules on logits and scores: in their unit, values as of probabilities."""

import re

import numpy as np
import pytest
from sklearn import metrics as sk

import metricwise as mw
import worlds
from metricwise.inspection.details import Details, calibration_bins
from metricwise.inspection.details.curve import at_step
from metricwise.inspection.displays.decision_regions import regions
from metricwise.inspection.rule_table import rule_table
from metricwise.inspection.summary import read_subject, summarize_for_card, summarize_subject
from metricwise.rules import TemperatureScaling

plt = pytest.importorskip("matplotlib.pyplot")

rng = np.random.default_rng(0)
P, Y = worlds.binary(500, seed=rng)
Z = np.log(P / (1 - P))
SCORES = 3 * Z + 20
ETA, CLASSES = worlds.multiclass(500, seed=rng)
LOGITS = np.log(ETA) + rng.normal(size=(500, 1))
GROUPS = np.where(rng.random(500) < 0.5, "a", "b")
EXPECTED = mw.Strategy(confusion="expected", recalibrate=False)


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


CASES = {
    "two classes": (P, Z, Y, "f1", {}),
    "without labels": (P, Z, None, "f1", {}),
    "shifted priors": (P, Z, Y, "f1", {"prior": [0.5, 0.5]}),
    "abstention": (P, Z, Y, "accuracy", {"abstain": 0.2}),
    "constraint": (P, Z, Y, "f1", {"subject_to": "precision >= 0.5", "confidence": None}),
    "groups": (
        P,
        Z,
        Y,
        "accuracy",
        {"subject_to": "demographic_parity <= 0.2", "sensitive_features": GROUPS, "confidence": None},
    ),
    "mixture": (P, Z, Y, "g_mean", {"strategy": mw.Strategy(randomized=True, confusion="expected", recalibrate=False)}),
    "three classes": (ETA, LOGITS, CLASSES, "macro_f1", {}),
    "three classes, full table": (ETA, LOGITS, CLASSES, "quadratic_kappa", {}),
    "outputs": (
        np.stack([P, P[::-1]], 1),
        np.stack([Z, Z[::-1]], 1),
        np.stack([Y, Y[::-1]], 1),
        "f1",
        {"average": "instance", "strategy": mw.Strategy(confusion="expected", recalibrate=True)},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_details_of_logits_are_those_of_their_probabilities(case):
    proba, logits, y, metric, options = CASES[case]
    other = mw.optimize(proba, y, metric, **options).details
    own = mw.optimize(logits, y, metric, input="logits", **options).details
    np.testing.assert_allclose(own.before, other.before, atol=1e-9)
    np.testing.assert_allclose(own.after, other.after, atol=1e-9)
    assert own.moves.moved == pytest.approx(other.moves.moved, abs=1e-9)
    assert own.curve.kind == other.curve.kind
    for name, along in other.curve.values.items():
        own_along = own.curve.values[name]
        assert own_along[own.curve.plain] == pytest.approx(along[other.curve.plain], abs=1e-9)
        assert own_along[own.curve.chosen] == pytest.approx(along[other.curve.chosen], abs=1e-9)
        if own.curve.kind == "step" and case != "outputs":  # whose thresholds move on straight lines in their own unit
            np.testing.assert_allclose(own_along, along, atol=0.02)  # ties of rounding move single rows
    if y is not None:
        np.testing.assert_allclose(own.gains.difference, other.gains.difference, atol=1e-9)
        assert own.reliability.before.error == pytest.approx(other.reliability.before.error, abs=1e-9)
        assert own.reliability.given == "from the logits"


# ------------------------------------------------------------------------------------------------------------ the curve


@pytest.mark.parametrize(("kind", "rows", "unit"), [("logits", Z, "logit"), ("scores", SCORES, "score")])
@pytest.mark.parametrize("weighted", [False, True])
def test_metrics_along_thresholds_are_those_of_scikit_learn(kind, rows, unit, weighted):
    weight = rng.integers(1, 4, 500).astype(float) if weighted else None
    solution = mw.optimize(rows, Y, "f1", record=["recall"], input=kind, sample_weight=weight)
    curve = solution.details.curve
    assert (curve.kind, curve.unit) == ("threshold", unit)
    for at in range(0, len(curve), 7):
        decided = (rows > curve.position[at]).astype(int)
        matrix = sk.confusion_matrix(Y, decided, sample_weight=weight, normalize="all")
        np.testing.assert_allclose(curve.confusion[at, 0], matrix, atol=1e-12)
        score = sk.f1_score(Y, decided, sample_weight=weight, zero_division=0.0)
        assert curve.values["f1"][at] == pytest.approx(score, abs=1e-12)
    assert curve.position[curve.chosen] == solution.rule.threshold
    assert curve.values["f1"][curve.plain] == pytest.approx(solution.baseline, abs=1e-12)
    assert curve.values["f1"][curve.chosen] == pytest.approx(solution.value, abs=1e-12)
    span = np.ptp(rows)
    assert rows.min() - 0.02 * span < curve.position[0] < rows.min() < rows.max() < curve.position[-1]
    assert curve.position[-1] < rows.max() + 0.02 * span
    assert kind == "scores" or curve.position[curve.plain] == 0


def test_expected_metrics_along_thresholds():
    curve = mw.optimize(Z, None, "f1", input="logits", strategy=EXPECTED).details.curve
    for at in range(0, len(curve), 9):
        above = curve.position[at] < Z
        hit, missed, false = (P * above).mean(), (P * ~above).mean(), ((1 - P) * above).mean()
        np.testing.assert_allclose(curve.confusion[at, 0, 1], [missed, hit], atol=1e-9)
        assert curve.confusion[at, 0, 0, 1] == pytest.approx(false, abs=1e-9)


def test_thresholds_that_probabilities_cannot_tell_apart():
    """Log-odds around 70, where every probability is 1 in float64."""
    far = 70 + Z
    curve = mw.optimize(far, Y, "f1", input="logits", strategy=mw.Strategy(confusion="labels")).details.curve
    assert 60 < curve.position[curve.chosen] < 80
    decided = (far > curve.position[curve.chosen]).astype(int)
    assert curve.values["f1"][curve.chosen] == pytest.approx(sk.f1_score(Y, decided))


def test_certain_rows_do_not_stretch_the_axis():
    certain = np.where(rng.random(500) < 0.1, np.where(Y == 1, np.inf, -np.inf), Z)
    curve = mw.optimize(certain, Y, "f1", input="logits", strategy=EXPECTED).details.curve
    assert np.abs(curve.position).max() < 60
    many = np.where(Y == 0, -np.inf, Z)
    curve = mw.optimize(many, Y, "f1", input="logits", strategy=EXPECTED).details.curve
    assert np.abs(curve.position).max() < 60


@pytest.mark.filterwarnings("ignore:.*Recall of the positive class alone")
def test_a_rule_that_always_predicts_one_class_is_at_the_end():
    solution = mw.optimize(Z, Y, "recall", input="logits", strategy=EXPECTED)
    curve = solution.details.curve
    assert solution.rule.threshold < -700  # at which probabilities are 0
    assert curve.chosen == 0
    assert curve.position[0] > Z.min() - 1
    assert curve.values["recall"][0] == 1 == solution.value


def test_steps_lead_from_the_map_of_argmax_to_that_of_the_rule():
    base = TemperatureScaling(np.array([2.0]), np.array([[0.0, 1.0, 0.0]]), 0.0)
    link = TemperatureScaling(np.array([8.0]), np.array([[0.0, 3.0, 2.0]]), 0.0)
    loss = mw.WeightedRule.from_weights([1.0, 4.0, 9.0]).loss
    rule = mw.WeightedRule(loss, (np.arange(3),), link, input="logits")
    assert at_step(rule, 0, base).link == base
    assert at_step(rule, 1, base) == rule
    half = at_step(rule, 0.5, base)
    assert half.link.temperature.tolist() == [4.0]
    assert half.link.bias.tolist() == [[0.0, 2.0, 1.0]]
    assert half.class_weight.tolist() == [1, 2, 3]


# -------------------------------------------------------------------------------------------- other rows than the fit's


def test_a_rule_on_other_rows_of_scores_has_the_baseline_of_evaluate():
    rule = mw.optimize(SCORES, Y, "f1", input="scores").rule
    details = Details.of_rows(rule, SCORES[:300], Y[:300])
    baseline = mw.evaluate(rule, SCORES[:300], Y[:300], "f1")["f1"].baseline.estimate
    assert details.curve.values["f1"][details.curve.plain] == pytest.approx(baseline)
    assert details.reliability.after is None  # the probabilities are those of the rule's own map
    expected = calibration_bins(rule.calibrated(SCORES[:300]), Y[:300])
    np.testing.assert_allclose(details.reliability.before.predicted, expected.predicted)


def test_scores_of_three_classes_have_probabilities_of_the_map_without_its_bias():
    rule = mw.optimize(5 * LOGITS, CLASSES, "macro_f1", input="scores").rule
    details = Details.of_rows(rule, 5 * LOGITS, CLASSES)
    likely = sk.confusion_matrix(CLASSES, (5 * LOGITS).argmax(1), normalize="all")
    np.testing.assert_allclose(details.before[0], likely, atol=1e-12)
    assert details.reliability.before.error < 0.1


def test_another_input_is_refused():
    rule = mw.optimize(Z, Y, "f1", input="logits").rule
    with pytest.raises(ValueError, match="the rule was fitted to logits, got input='scores'"):
        Details.of_rows(rule, Z, Y, input="scores")


# ------------------------------------------------------------------------------------------------- what is shown


def test_the_axis_and_the_points_of_a_curve_are_in_the_unit_of_the_rows():
    solution = mw.optimize(SCORES, Y, "f1", input="scores")
    display = mw.displays.MetricCurveDisplay.from_solution(solution)
    assert display.ax_.get_xlabel() == "threshold on the score of 1"
    low, high = display.ax_.get_xlim()
    assert low < SCORES.min() < SCORES.max() < high
    assert display.threshold_range == tuple(solution.threshold_range)
    texts = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert any(text.endswith(f"at {solution.rule.threshold:.3g}") for text in texts)


@pytest.mark.parametrize(("kind", "factor"), [("logits", 1.0), ("scores", 5.0)])
def test_regions_of_three_classes_are_those_of_their_probabilities(kind, factor):
    own = mw.optimize(factor * LOGITS, CLASSES, "macro_f1", input=kind, strategy=EXPECTED).rule
    grid, decided = regions(own, 30)
    scale = 1.0 if kind == "logits" else float(own.link.temperature[0])
    weighted = own.class_weight * np.exp(np.log(np.maximum(grid, 1e-300)))  # the base map gives the grid itself
    assert scale > 0
    assert (decided == (weighted + own.bonus).argmax(1)).mean() > 0.99
    display = mw.displays.DecisionRegionsDisplay.from_predictions(CLASSES, factor * LOGITS, own)
    np.testing.assert_allclose(display.rows, worlds.softmax(scale * factor * LOGITS), atol=1e-9)


def test_every_display_draws_rules_on_scores():
    solution = mw.optimize(5 * LOGITS, CLASSES, "macro_f1", input="scores")
    for kind in ("ConfusionChange", "Moves", "Gains", "Reliability", "MetricCurve", "FeasibleSet", "DecisionRegions"):
        assert getattr(mw.displays, f"{kind}Display").from_solution(solution).figure_ is not None
    display = mw.displays.FeasibleSetDisplay.from_predictions(5 * LOGITS, solution.rule)
    fitted = mw.displays.FeasibleSetDisplay.from_solution(solution)
    np.testing.assert_allclose(display.points["rule"], fitted.points["rule"], atol=1e-9)


class Fitted:
    """An estimator whose rule takes scores."""

    def __init__(self, rule):
        self.rule_ = rule

    def decision_input(self, X):
        return X


def test_an_estimator_says_what_its_rule_takes():
    rule = mw.optimize(SCORES, Y, "f1", input="scores").rule
    display = mw.displays.MetricCurveDisplay.from_estimator(Fitted(rule), SCORES, Y)
    assert display.curve.unit == "score"


def test_the_summary_has_the_slider_in_the_unit_of_the_rows():
    solution = mw.optimize(SCORES, Y, "f1", input="scores")
    summary = summarize_subject(read_subject(solution, None, None, None, {}))
    path = summary["path"]
    assert (path["unit"], path["digits"]) == ("score", 3 - int(np.floor(np.log10(np.ptp(path["position"])))))
    assert path["position"][path["chosen"]] == pytest.approx(solution.rule.threshold, rel=1e-9)
    assert path["position"][0] < SCORES.min()
    assert path["position"][-1] > SCORES.max()
    assert path["range"] == pytest.approx(solution.threshold_range.tolist())
    assert summary["reliability"]["given"] == "from the scores"
    assert ["Input", "scores"] in summary["facts"]


def test_scores_of_a_small_scale_keep_their_digits():
    path = summarize_for_card(mw.optimize(1e-7 * Z, Y, "f1", input="scores"))["path"]
    assert path["digits"] >= 9
    assert len(set(path["position"])) == len(path["position"]) > 50


def test_a_card_names_the_unit():
    card = mw.optimize(SCORES, Y, "f1", input="scores")._repr_html_()
    assert "threshold on the score" in card
    assert "if its score exceeds" in card
    ticks = re.findall(r'class="mw-tick"[^>]*>([−\d.]+)<', card)
    assert {"10", "20", "30"} & set(ticks)


def test_the_table_of_a_rule_names_the_unit():
    rule = mw.optimize(SCORES, Y, "f1", input="scores").rule
    table = rule_table(rule)
    assert table["head"] == ["predict", "if its score exceeds"]
    assert table["rows"] == [["1", f"{rule.threshold:.4g}"]]
    assert rule_table(mw.WeightedRule.from_thresholds(0.3))["head"] == ["predict", "if its probability exceeds"]
    weights = mw.optimize(LOGITS, CLASSES, "macro_f1", input="logits").rule
    assert rule_table(weights)["caption"].endswith("The logits are mapped to probabilities first.")


def test_the_report_of_scores(tmp_path):
    pytest.importorskip("jinja2")
    solution = mw.optimize(SCORES, Y, "f1", input="scores")
    solution.report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    low, high = (float(value) for value in re.search(r'id="slider" min="([^"]+)" max="([^"]+)"', page).groups())
    assert low < SCORES.min() < SCORES.max() < high
    assert "Class 1 is predicted if its score exceeds the threshold." in page
    assert "labels = rule.predict(scores)  # scores of the model, as passed to optimize" in page
    mw.report.write(tmp_path / "other.html", solution.rule, SCORES[:200], Y[:200])
    assert "its score exceeds" in (tmp_path / "other.html").read_text(encoding="utf-8")


def test_argmax_that_is_far_from_all_scores_does_not_stretch_the_axis():
    rare = (rng.random(500) < 0.02).astype(int)
    rare[:3] = 1
    weak = rng.normal(size=500) + 0.05 * rare
    solution = mw.optimize(
        weak, rare, "f1", input="scores", strategy=mw.Strategy(confusion="labels", recalibrate=False)
    )
    curve = solution.details.curve
    assert np.ptp(curve.position) < 15 * np.ptp(weak)
    assert curve.values["f1"][curve.plain] == pytest.approx(solution.baseline)
    assert curve.values["f1"][curve.chosen] == pytest.approx(solution.value)


@pytest.fixture(scope="module")
def graded():
    rng = np.random.default_rng(5)
    y = rng.integers(0, 3, 300)
    scores = y + rng.normal(scale=0.8, size=300)
    return scores, mw.optimize(scores, y, "macro_f1", input="scores", random_state=0)


def test_the_reachable_set_marks_cut_points_by_their_expected_recalls(graded):
    scores, solution = graded
    eta, decided = solution.rule.calibrated(scores), solution.predict(scores)
    recalls = [float(eta[decided == k, k].sum() / eta[:, k].sum()) for k in (0, 2)]
    from_rule = mw.displays.FeasibleSetDisplay.from_predictions(scores, solution.rule)
    np.testing.assert_allclose(from_rule.points["rule"], recalls, atol=1e-9)
    fitted = mw.displays.FeasibleSetDisplay.from_solution(solution)
    np.testing.assert_allclose(fitted.points["rule"], recalls, atol=1e-9)
    by_hand = mw.WeightedRule.from_cut_points([0.5, 1.5], input="scores")
    with pytest.raises(mw.InvalidParameter, match="rule must map scores to probabilities, which rules by hand do not"):
        mw.displays.FeasibleSetDisplay.from_predictions(scores, by_hand)


def test_one_score_has_no_regions_of_a_triangle(graded):
    with pytest.raises(mw.InvalidParameter, match="got one score for all of them, whose regions are intervals"):
        mw.displays.DecisionRegionsDisplay.from_rule(graded[1].rule)
