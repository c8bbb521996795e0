"""Margins, rules and mixtures of thresholds against loops over all thresholds with SciPy's limits, and programmes."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.stats import beta
from sklearn.metrics import confusion_matrix

import metricwise as mw
from metricwise.fitting.constraints.resolve import bind_constraints
from metricwise.fitting.constraints.thresholds import ThresholdCurve
from metricwise.goals.constraint_text import read_constraints
from metricwise.goals.resolve import resolve_constraints
from metricwise.oracles import walk as walking
from problems import read_problem
from profiles import diagonal
from worlds import draw_flags, sigmoid

AS_GIVEN = mw.Strategy(confusion="labels", recalibrate=False)  # the widest of equal intervals, in the same unit
few_labels = pytest.mark.filterwarnings("ignore:subject_to. Too few labels")

# Successes and trials of what is bounded, and what is maximised, of a confusion matrix of counts.
PROPORTIONS = {
    "precision": lambda C: (C[1, 1], C[:, 1].sum()),
    "recall": lambda C: (C[1, 1], C[1].sum()),
    "specificity": lambda C: (C[0, 0], C[0].sum()),
    "accuracy": lambda C: (np.trace(C), C.sum()),
}


def rows(n, seed, decimals=None):
    rng = np.random.default_rng(seed)
    score = -1.0 + 2.0 * rng.normal(size=n)
    proba = sigmoid(0.7 * score + 0.5)
    return proba if decimals is None else np.round(proba, decimals), draw_flags(sigmoid(score), rng)


def every_threshold(p, y):
    """The counts of every rule p > t, and how far t can move; from everybody to nobody."""
    places = np.concatenate([[-np.inf], np.unique(p), [np.inf]])
    for low, high in pairwise(places):
        width = high - low if np.isfinite(high - low) else 0.0
        yield np.bincount(2 * y + (p > low), minlength=4).reshape(2, 2).astype(float), low, width


def share(name, C):
    hits, trials = PROPORTIONS[name](C)
    return hits / trials if trials > 0 else 0.0


def variance(name, C):
    """Of a proportion, with one more row of each class, decided at random."""
    smooth = C + np.where(C.sum(axis=1, keepdims=True) > 0, 0.5, 0.0)
    p = share(name, smooth)
    return p * (1 - p) / PROPORTIONS[name](smooth)[1] * smooth.sum() / C.sum()


def searched_by_hand(p, y, aim, name, floor, confidence=0.95):
    """The threshold whose limit keeps a floor, and its margin: margins grow until the best one that keeps them does."""
    every = list(every_threshold(p, y))
    margin, begin = 0.0, None
    for step in range(32):
        kept = [
            rule
            for rule in every
            if PROPORTIONS[name](rule[0])[1] > 0 and share(name, rule[0]) >= floor + margin - 1e-12
        ]
        if not kept:
            return None
        best = max(share(aim, C) for C, _, _ in kept)
        C, threshold, _ = max((rule for rule in kept if share(aim, rule[0]) >= best - 1e-12), key=lambda rule: rule[2])
        begin = variance(name, C) if begin is None else begin
        tried = 1.5 * (1 + np.log(max(variance(name, C) / begin, 1.0)))
        hits, trials = PROPORTIONS[name](C)
        limit = beta.ppf((1 - confidence) / tried, hits, trials - hits + 1) if hits > 0 else 0.0
        if limit >= floor - 1e-9:
            return threshold, margin
        margin = max(margin, (share(name, C) - limit) * (1.05 if step >= 6 else 1.0))
    return None


@few_labels
@pytest.mark.parametrize(
    ("case", "n", "decimals"),
    diagonal(
        12,
        [
            ("recall", "precision", 0.7),
            ("precision", "recall", 0.6),
            ("accuracy", "recall", 0.7),
            ("recall", "specificity", 0.8),
        ],
        [200, 800],
        [None, 2],
    ),
)
def test_the_threshold_is_the_one_that_loops_with_scipys_limits_come_to(case, n, decimals):
    aim, name, floor = case
    given = 0
    for seed in range(4):
        p, y = rows(n, seed, decimals)
        by_hand = searched_by_hand(p, y, aim, name, floor)
        solution = mw.optimize(p, y, aim, subject_to=f"{name} >= {floor}", strategy=AS_GIVEN)
        (promise,) = solution.constraints
        if by_hand is None:
            assert promise.confidence != 0.95
            continue
        given += 1
        threshold, margin = by_hand
        np.testing.assert_array_equal(solution.rule.predict(p), p > threshold)
        assert promise.confidence == 0.95
        assert promise.margin == pytest.approx(margin, rel=1e-6, abs=1e-12)
    assert given > 0


@pytest.mark.parametrize("text", ["precision >= 0.6", "recall >= 0.5 and share <= 0.4", "min_recall >= 0.6"])
@pytest.mark.parametrize("weighted", [False, True])
def test_mixtures_against_a_linear_programme_over_all_thresholds(text, weighted):
    """Of accuracy, and recall: all constraints are rows of the programme."""
    for seed in range(8):
        p, y = rows(120, seed, 2 if seed % 2 else None)
        weight = np.random.default_rng(seed).uniform(0.5, 2, len(y)) if weighted else np.ones(len(y))
        tables = [
            confusion_matrix(y, p > t, labels=[0, 1], sample_weight=weight) / weight.sum()
            for t in np.append(-1.0, np.unique(p))
        ]
        C = np.array(tables)
        pi0, pi1 = C[0, 0].sum(), C[0, 1].sum()
        kept = {
            "precision >= 0.6": [C[:, 1, 1] - 0.6 * C[:, :, 1].sum(axis=1)],
            "recall >= 0.5 and share <= 0.4": [C[:, 1, 1] - 0.5 * pi1, 0.4 - C[:, :, 1].sum(axis=1)],
            "min_recall >= 0.6": [C[:, 1, 1] - 0.6 * pi1, C[:, 0, 0] - 0.6 * pi0],
        }[text]
        for aim, values in (("accuracy", C[:, 0, 0] + C[:, 1, 1]), ("recall", C[:, 1, 1] / pi1)):
            found = linprog(-values, -np.array(kept), np.zeros(len(kept)), np.ones((1, len(C))), [1.0])
            options = {"sample_weight": weight} if weighted else {}
            try:
                solution = mw.optimize(p, y, aim, subject_to=text, confidence=None, **options)
            except ValueError:
                continue
            assert solution.alternative == pytest.approx(-found.fun, abs=1e-7)


def curve_of(p, y, aim, text, **options):
    problem = read_problem(p, y, aim, constrained=True, **options)
    oracle = problem.oracle()
    constraints = resolve_constraints(read_constraints(text), problem.schema)
    limits = bind_constraints(constraints, problem.schema, oracle)
    return ThresholdCurve(oracle, problem.objective(oracle), limits)


@pytest.fixture
def few_places(monkeypatch):
    """Places of outlines are the edges of few bins."""
    monkeypatch.setattr(walking, "_OUTLINE", (64, 128))
    monkeypatch.setattr(walking, "_ALL_ROWS", 64)


@pytest.mark.usefixtures("few_places")
@pytest.mark.parametrize("decimals", [None, 2])
def test_the_edges_of_bins_are_thresholds_that_are_counted(decimals):
    p, y = rows(3_000, 0, decimals)
    weight = np.random.default_rng(0).uniform(0.5, 2, len(y))
    curve = curve_of(p, y, "recall", "precision >= 0.6", sample_weight=weight)
    assert curve.walk.bins is not None
    assert len(curve.walk.lower) == 131  # the edges, and both ends
    places = np.where(np.isfinite(curve.walk.lower), curve.walk.lower, -1.0)
    places[-1] = 2.0
    for place, C in zip(places, curve.confusions, strict=True):
        if np.abs(p - place).min() > 1e-9:  # an edge that rounding has moved across no row
            counted = confusion_matrix(y, p > place, labels=[0, 1], sample_weight=weight) / weight.sum()
            np.testing.assert_allclose(C, counted, atol=1e-12)
    assert not curve.confusions[-1, :, 1].any()


@few_labels
@pytest.mark.parametrize(("aim", "text"), [("recall", "precision >= 0.7"), ("f1", "recall >= 0.6 and kappa >= 0.3")])
def test_from_bins_the_rule_is_as_good_and_keeps_its_limits(aim, text, request):
    every = [mw.optimize(*rows(3_000, seed), aim, subject_to=text) for seed in range(5)]
    request.getfixturevalue("few_places")
    for seed, listed in enumerate(every):
        binned = mw.optimize(*rows(3_000, seed), aim, subject_to=text)
        assert binned.value == pytest.approx(listed.value, abs=0.01)
        for ours, theirs in zip(binned.constraints, listed.constraints, strict=True):
            assert ours.confidence == theirs.confidence
            assert ours.margin == pytest.approx(theirs.margin, abs=0.005)


def test_a_floor_on_one_of_several_outputs_is_kept():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    score = -0.5 + 2.0 * rng.normal(size=(600, 3))
    names = ["first", "second", "third"]
    p, y = (pd.DataFrame(values, columns=names) for values in (sigmoid(score), draw_flags(sigmoid(score), rng)))
    solution = mw.optimize(p, y, "f1", average="macro", subject_to="recall[second] >= 0.8")
    (promise,) = solution.constraints
    assert promise.confidence == 0.95
    predicted = np.asarray(solution.rule.predict(p))[:, 1]
    assert predicted[y["second"] == 1].mean() == pytest.approx(promise.value)
    assert promise.value > 0.8
    assert solution.gain is not None
