"""Thresholds of all resamples at once against a search on the rows of each."""

import numpy as np
import pytest

import metricwise as mw
from metricwise.fitting.bagging import draw
from metricwise.fitting.constraints import resampled_thresholds
from metricwise.fitting.constraints.resampled_thresholds import ResampledThresholds
from metricwise.fitting.constraints.search import NoSingleRuleError, Search
from metricwise.fitting.samples import judging_rows
from metricwise.fitting.solving import Settings
from metricwise.goals.constraint_text import read_constraints
from metricwise.goals.resolve import resolve_constraints
from metricwise.oracles.problem import FitStrategy
from metricwise.solvers.constrained import InfeasibleError
from problems import read_problem
from profiles import diagonal
from worlds import draw_flags, sigmoid

LABELS = FitStrategy("labels", recalibrate=False)
AIMS = ["recall", "precision", "f1", "accuracy", "kappa", "mcc", "g_mean", "balanced_accuracy", "min_recall"]
TEXTS = [
    "precision >= 0.5",
    "recall >= 0.6 and share <= 0.5",
    "kappa >= 0.2",
    "share within 0.05 of prior",
    "min_recall >= 0.5",
]


def rows(seed, shape=(300,), decimals=None):
    rng = np.random.default_rng(seed)
    score = -0.5 + 2.0 * rng.normal(size=shape)
    proba = sigmoid(0.7 * score + 0.5)
    return proba if decimals is None else np.round(proba, decimals), draw_flags(sigmoid(score), rng)


def both(p, y, aim, text, **options):
    """The resamples at once, and a search on the rows of each."""
    problem = judging_rows(read_problem(p, y, aim, constrained=True, **options))[0]
    constraints = resolve_constraints(read_constraints(text), problem.schema)
    resamples = draw(problem, np.random.default_rng(0), 2)
    whole = Search(problem, LABELS, problem.link(False), constraints, Settings())
    at_once = ResampledThresholds(resamples, whole.link, whole.oracle, whole.objective, whole.limits)

    def each(kept):
        part = resamples.problem.take(np.flatnonzero(kept))
        return Search(part, LABELS, part.link(False), constraints, Settings())

    return at_once, [each(kept) for kept in resamples.kept], resamples


def same(p, y, aim, text, margin=0.0, **options):
    at_once, searches, resamples = both(p, y, aim, text, **options)
    margins = np.full((len(searches[0].constraints), 2), margin)
    fits = at_once.fit(margins)
    fitted = dict(zip(fits.resamples.tolist(), range(len(fits.resamples)), strict=True))
    for r, search in enumerate(searches):
        for less in (margins, margins / 2, 0 * margins):
            try:
                rule = search.best(less, single=True)
                break
            except (InfeasibleError, NoSingleRuleError):
                rule = None
        assert (rule is None) == (r not in fitted)
        if rule is None:
            continue
        f = fitted[r]
        assert fits.aim[f] == pytest.approx(search.value_by_labels(rule), abs=1e-9)
        kept = at_once.scores[resamples.kept[r]] > fits.threshold[f]
        values = search.limits.values(search.judge.confusion_of(kept.astype(np.intp)))
        np.testing.assert_allclose(fits.constrained[f], values, atol=1e-9)  # of the rule that was fitted
    return len(fits.resamples)


@pytest.mark.parametrize(("aim", "text", "decimals"), diagonal(14, AIMS, TEXTS, [None, 1]))
def test_every_resample_has_the_best_threshold_of_its_rows(aim, text, decimals):
    assert sum(same(*rows(seed, decimals=decimals), aim, text, margin=0.05 * seed) for seed in range(3)) > 0


@pytest.mark.parametrize(
    "options",
    [
        {"sample_weight": np.random.default_rng(0).uniform(0.5, 2, 300)},
        {"sample_weight": mw.Frequencies(np.random.default_rng(0).integers(1, 5, 300))},
        {"groups": np.arange(300) // 3},
        {"prior": [0.7, 0.3]},
    ],
    ids=["weights", "frequencies", "groups", "prior"],
)
def test_rows_of_any_weight(options):
    assert same(*rows(1), "f1", "precision >= 0.5 and recall >= 0.4", margin=0.02, **options) > 0


def test_outputs_that_are_pooled():
    p, y = rows(2, (200, 3))
    missing = np.where(np.random.default_rng(0).random(y.shape) < 0.2, np.nan, y)
    for labels in (y, missing):
        assert same(p, labels, "f1", "precision >= 0.5", average="micro") > 0


def test_bins_of_many_rows_hardly_matter(monkeypatch):
    p, y = rows(3, (2_000,))
    fine = both(p, y, "recall", "precision >= 0.6")[0].fit(np.zeros((1, 2)))
    monkeypatch.setattr(resampled_thresholds, "_MAX_BINS", 200)
    coarse = both(p, y, "recall", "precision >= 0.6")[0].fit(np.zeros((1, 2)))
    np.testing.assert_allclose(fine.aim, coarse.aim, atol=0.02)
    np.testing.assert_allclose(fine.constrained, coarse.constrained, atol=0.01)
    assert (coarse.constrained >= 0.6 - 1e-9).all()


def test_decisions_are_judged_as_they_are_counted():
    at_once, _, resamples = both(*rows(4), "f1", "precision >= 0.5")
    decided = (at_once.scores > 0.6).astype(np.int8)
    some = decided.copy()
    some[::3] = -1
    aim, constrained = at_once.judged(np.stack([decided, some]))
    y = resamples.problem.source.rows.codes[:, 0]
    for s, codes in enumerate((decided[:, 0], some[:, 0])):
        shown = codes >= 0
        assert aim[s] == pytest.approx(mw.metrics.FBeta(beta=1.0, index=1).score(y[shown], codes[shown]))
        assert constrained[s, 0] == pytest.approx(mw.metrics.Precision(index=1).score(y[shown], codes[shown]))
