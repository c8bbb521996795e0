"""Displays: what is drawn is what was counted, on whatever axes, with whatever labels."""

import io
import subprocess
import sys
import warnings

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import metricwise as mw
import worlds
from metricwise import displays
from metricwise.inspection.displays.decision_regions import regions
from profiles import first

plt = pytest.importorskip("matplotlib.pyplot")

NASTY = ["<script>alert(1)</script>", "$\\frac{1", "a very long label that goes on and on and on and never ends"]


@pytest.fixture(autouse=True)
def _closed():
    plt.switch_backend("Agg")
    yield
    plt.close("all")


def binary(n=600):
    return worlds.binary(n, names=["no", "yes"])


def three(names=("low", "mid", "high")):
    return worlds.multiclass(500, names=names)


@pytest.fixture(scope="module")
def solution():
    return mw.optimize(*binary(), "f1", pos_label="yes")


@pytest.fixture(scope="module")
def of_three():
    return mw.optimize(*three(), "macro_f1", classes=["low", "mid", "high"])


def drawn(display):
    """Render, so that what is drawn late fails here."""
    display.figure_.savefig(io.BytesIO(), dpi=40)
    return display


# ------------------------------------------------------------------------------------------------------------- curves


def test_lines_are_the_curve(solution):
    display = drawn(displays.MetricCurveDisplay.from_solution(solution, metrics=["precision", "recall"]))
    curve = display.curve
    assert list(curve.values) == ["f1", "precision", "recall"]
    for line, values in zip(display.lines_, curve.values.values(), strict=True):
        np.testing.assert_array_equal(line.get_ydata(), values)
    texts = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert f"rule {solution.value:.3f} at {solution.rule.threshold:.3g}" in texts
    assert f"argmax {solution.baseline:.3f} at 0.5" in texts
    assert any(text.startswith("on new data") for text in texts)
    assert display.ax_.get_xlabel() == "threshold on the probability of yes"


def test_broken_constraints_are_shaded():
    solution = mw.optimize(*binary(2000), "recall", pos_label="yes", subject_to="precision >= 0.6")
    display = drawn(displays.MetricCurveDisplay.from_solution(solution))
    texts = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert "a constraint is violated" in texts
    (shade,) = [own for own in display.ax_.collections if own.get_hatch()]
    broken = display.curve.bounded["precision >= 0.6"] < 0.6
    x = np.maximum(display.curve.position, 0)
    low, high = (np.concatenate([path.vertices[:, 0] for path in shade.get_paths()]) for _ in range(2))
    assert x[broken].min() == pytest.approx(low.min())
    assert not ((high > x[~broken].min()) & (high < x[~broken].max())).any()


def test_given_axes_are_drawn_on(solution, of_three):
    figure, axes = plt.subplots(2, 3)
    display = solution.plot(ax=axes[0, 0])
    assert display.ax_ is axes[0, 0]
    assert display.figure_ is figure
    change = displays.ConfusionChangeDisplay.from_solution(of_three, ax=axes[1])
    assert list(change.ax_) == list(axes[1])
    with pytest.raises(ValueError, match="ax must be 3 axes, got 2"):
        change.plot(ax=axes[0, :2])


def test_plot_picks_what_says_most(solution, of_three):
    assert isinstance(solution.plot(), displays.MetricCurveDisplay)
    assert isinstance(of_three.plot(), displays.MetricCurveDisplay)
    rng = np.random.default_rng(0)
    P = rng.beta(0.5, 2, (300, 4))
    Y = (rng.random(P.shape) < P).astype(int)
    assert isinstance(mw.optimize(P, Y, "f1", average="macro").plot(), displays.GainsDisplay)
    pairs = [np.stack([1 - P[:, m], P[:, m]], axis=1) for m in range(4)]
    assert isinstance(mw.optimize(pairs, None, "f1", average="macro").plot(), displays.MetricCurveDisplay)


def test_from_estimator_and_from_predictions_agree():
    X, y = worlds.features(400, names=["no", "yes"])
    model = mw.MetricOptimalClassifierCV(LogisticRegression(), metric="f1", pos_label="yes").fit(X[:300], y[:300])
    new, truth = X[300:], y[300:]
    one = displays.MetricCurveDisplay.from_estimator(model, new, truth)
    proba = model.predict_proba(new)
    other = displays.MetricCurveDisplay.from_predictions(truth, proba, model.rule_, metrics="f1", pos_label="yes")
    np.testing.assert_array_equal(one.curve.values["f1"], other.curve.values["f1"])
    assert one.curve.values["f1"][one.curve.chosen] == pytest.approx(model.score(new, truth))
    fixed = mw.FixedRuleClassifier(LogisticRegression(), model.rule_).fit(X[:300], y[:300])
    drawn(displays.ConfusionChangeDisplay.from_estimator(fixed, new, truth, metrics="accuracy"))
    with pytest.raises(TypeError, match="estimator must be a fitted estimator with a rule"):
        displays.MovesDisplay.from_estimator(LogisticRegression().fit(X, y), new, truth)
    with pytest.raises(TypeError, match="solution must be a Solution"):
        displays.MovesDisplay.from_solution(model.rule_)


# --------------------------------------------------------------------------------------------------- other displays


@pytest.mark.parametrize("normalize", ["true", "all", "counts"])
def test_cells_say_what_was_counted(of_three, normalize):
    display = drawn(displays.ConfusionChangeDisplay.from_solution(of_three, normalize=normalize))
    P, y = three()
    names = np.array(["low", "mid", "high"])
    counts = [
        np.array([[np.sum((y == i) & (decided == j)) for j in names] for i in names])
        for decided in (names[P.argmax(axis=1)], of_three.rule.predict(P))
    ]
    scale = {"true": counts[0].sum(axis=1, keepdims=True), "all": 500, "counts": 1}[normalize]
    for matrix, own in zip(display.matrices, [*counts, counts[1] - counts[0]], strict=True):
        np.testing.assert_allclose(matrix, own / scale, atol=1e-9)
    text = display.ax_[1].texts[0].get_text()
    first = (counts[1] / scale)[0, 0]
    assert text == (f"{first:.0f}" if normalize == "counts" else f"{100 * first:.1f}")
    with pytest.raises(ValueError, match="normalize must be 'true', 'all' or 'counts'"):
        display.plot(normalize="pred")


def test_moves_are_bars(of_three):
    display = drawn(displays.MovesDisplay.from_solution(of_three))
    P, y = three()
    names = np.array(["low", "mid", "high"])
    before, after = names[P.argmax(axis=1)], of_three.rule.predict(P)
    for flow in display.flows:
        a, b = flow.name.split(" → ")
        own = (before == a) & (after == b)
        assert (flow.total, flow.gained, flow.lost) == (own.sum(), np.sum(own & (y == b)), np.sum(own & (y == a)))
    assert sum(flow.total for flow in display.flows) == np.sum(before != after)
    drawn(display.plot(max_bars=1))
    assert "smaller moves not shown" in display.ax_.get_title(loc="left")


def test_moves_of_argmax_itself_are_none():
    p, y = binary()
    rule = mw.WeightedRule.from_thresholds(0.5, classes=["no", "yes"], pos_label="yes")
    display = drawn(displays.MovesDisplay.from_predictions(y, p, rule, metrics="accuracy"))
    assert display.flows == []


def test_regions_are_those_of_the_weights():
    weights = np.array([1.0, 2.0, 0.5])
    proba, decided = regions(mw.WeightedRule.from_weights(weights), n=30)
    scores = proba * weights
    best = np.sort(scores, axis=1)
    clear = best[:, 2] - best[:, 1] > 1e-9
    np.testing.assert_array_equal(decided[clear], scores.argmax(axis=1)[clear])
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    assert len(proba) == 31 * 32 // 2


def test_regions_need_three_classes(solution, of_three):
    drawn(displays.DecisionRegionsDisplay.from_solution(of_three))
    P, y = three()
    display = drawn(displays.DecisionRegionsDisplay.from_predictions(y, P, of_three.rule))
    assert display.right.mean() == pytest.approx(np.mean(of_three.rule.predict(P) == y))
    never = mw.WeightedRule.from_weights([1, 1, 0])
    display = drawn(displays.DecisionRegionsDisplay.from_rule(never))
    assert "2 (never)" in [text.get_text() for text in display.ax_.texts]
    mixture = mw.MixtureRule((never, mw.WeightedRule.from_weights([1, 2, 3])), np.array([0.3, 0.7]))
    drawn(displays.DecisionRegionsDisplay.from_rule(mixture))
    with pytest.raises(ValueError, match="rule must have one output with three classes, got 1 with up to 2"):
        displays.DecisionRegionsDisplay.from_solution(solution)


@pytest.mark.parametrize("classes", [2, 3])
def test_no_rule_is_beyond_the_supporting_line(classes, solution, of_three):
    display = drawn(displays.FeasibleSetDisplay.from_solution(solution if classes == 2 else of_three))
    point = np.array(display.points["rule"])
    beyond = (display.outline - point) @ display.normal
    assert beyond.max() <= 1e-9 * np.abs(display.normal).max()
    # Random rules are inside: no direction of the outline has less than they have.
    rng, P = np.random.default_rng(0), three()[0]
    if classes == 3:
        own = of_three.rule
        eta = own.link.apply(own.read(P)).blocks[0][:, 0] if own.link is not None else P
        loss = own.loss.tensor()[0]
        loss = (loss - loss.min(axis=1, keepdims=True)) / (loss - loss.min(axis=1, keepdims=True)).max()
        for _ in range(20):
            decided = rng.integers(0, 3, len(P))
            x = eta[np.arange(len(P)), decided].mean()
            y = -np.mean(np.einsum("ni,in->n", eta, loss[:, decided]))
            for angle in np.linspace(0, 2 * np.pi, 24):
                way = np.array([np.cos(angle), np.sin(angle)])
                assert way @ [x, y] <= (display.outline @ way).max() + 1e-3


def test_the_set_without_a_rule():
    display = drawn(displays.FeasibleSetDisplay.from_predictions(three()[0], y=mw.metrics.Recall(index=1)))
    assert display.names == ("recall of 0", "recall of 1")
    assert list(display.points) == ["argmax"]
    assert display.normal is None


def test_frontiers_and_bounds():
    p, y = binary(1000)
    one = mw.trade_off(p, y, "recall", "precision", pos_label="yes", n_points=8)
    display = drawn(displays.FrontierDisplay.from_trade_off(one, bound=0.6))
    line = display.ax_.lines[0]
    np.testing.assert_allclose(np.sort(line.get_xdata()), np.sort(one.others))
    point = one.choose(0.6)
    texts = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert f"best within the bound ({point.against:.3f}, {point.value:.3f})" in texts
    shorter = drawn(one.plot(bound=0.6))
    np.testing.assert_array_equal(shorter.ax_.lines[0].get_xydata(), line.get_xydata())
    assert [text.get_text() for text in shorter.ax_.get_legend().get_texts()] == texts
    _, ax = plt.subplots()
    assert one.plot(ax).ax_ is ax
    drawn(displays.FrontierDisplay.from_trade_off({"old": one, "new": one}, bound=2.0))
    other = mw.trade_off(p, y, "f1", "precision", pos_label="yes", n_points=2)
    with pytest.raises(ValueError, match="frontiers must all be of the same two metrics"):
        displays.FrontierDisplay({"a": one, "b": other})
    with pytest.raises(ValueError, match="frontiers must hold at least one"):
        displays.FrontierDisplay({})


def test_convergence_shows_the_bound():
    found = mw.optimize(three()[0], None, "g_mean", strategy=mw.Strategy(randomized=True))
    display = drawn(displays.ConvergenceDisplay.from_solution(found))
    np.testing.assert_array_equal(display.history, found.history)
    texts = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert f"upper bound {found.upper_bound:.3f}" in texts
    assert f"gap {found.gap:.1e}" in texts
    with pytest.raises(TypeError, match="solution must be a Solution"):
        displays.ConvergenceDisplay.from_solution(found.rule)


def test_reliability_has_both_lines(solution):
    display = drawn(displays.ReliabilityDisplay.from_solution(solution))
    both = [display.reliability.before, display.reliability.after]
    for line, bins in zip(display.ax_.lines[1:], both, strict=True):
        np.testing.assert_array_equal(line.get_xdata(), bins.predicted)
        np.testing.assert_array_equal(line.get_ydata(), bins.observed)
    with pytest.raises(ValueError, match="rows must have labels"):
        displays.ReliabilityDisplay.from_solution(mw.optimize(binary()[0], None, "f1"))


def test_hundreds_of_outputs_can_be_read():
    rng = np.random.default_rng(0)
    P = rng.beta(0.5, 4, (400, 300))
    Y = (rng.random(P.shape) < P).astype(int)
    rule = mw.WeightedRule.from_thresholds(np.full(300, 0.3))
    display = drawn(displays.GainsDisplay.from_predictions(Y, P, rule, metrics="f1", average="macro"))
    assert len(display.gains) == 300
    assert len(display.ax_.texts) == 12  # names at both ends, and no others
    names = [text.get_text() for text in display.ax_.texts]
    best = display.gains.names[int(np.argmax(display.gains.difference[:, 0]))]
    assert names[0].startswith(best)


# ------------------------------------------------------------------------------------------------------------- labels


@pytest.mark.parametrize("names", first(1, [NASTY, ["größer", "меньше", "ίσο"], ["高い", "低い", "中"]]))
def test_labels_are_text_and_nothing_else(names):
    P, y = three(names=names)
    found = mw.optimize(P, y, "macro_f1", classes=names)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing", category=UserWarning)  # no such font here
        warnings.filterwarnings("ignore", message="Matplotlib currently does not support", category=UserWarning)
        for kind in (
            displays.MetricCurveDisplay,
            displays.ConfusionChangeDisplay,
            displays.MovesDisplay,
            displays.DecisionRegionsDisplay,
            displays.FeasibleSetDisplay,
            displays.ReliabilityDisplay,
            displays.GainsDisplay,
        ):
            drawn(kind.from_solution(found))


def test_drawing_says_what_it_needs():
    code = """
    import sys
    sys.modules["matplotlib"] = None
    import metricwise as mw
    solution = mw.optimize([0.1, 0.4, 0.6, 0.9] * 20, [0, 0, 1, 1] * 20, "f1")
    try:
        solution.plot()
    except ImportError as error:
        print(error)
    """
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(line[4:] for line in code.splitlines())],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.strip() == "MetricCurveDisplay: matplotlib is not installed: pip install 'metricwise[plot]'."
