"""Promises and intervals over many draws from a world whose true probabilities are known."""

import warnings

import numpy as np
import pytest
from scipy.stats import beta

import metricwise as mw
from engines import served_by
from metricwise.fitting import samples
from metricwise.fitting.constraints.validate import OutOfBagFits
from worlds import draw_flags, sigmoid

SCORE = -1.5 + 2.2 * np.sqrt(2) * np.linspace(-4, 4, 8_001)  # of a normal distribution, whose density is below
DENSITY = np.exp(-(np.linspace(-4, 4, 8_001) ** 2))


def given_for(score, decimals=None):
    """What a timid model, trained on too many positives, says of the rows."""
    proba = sigmoid(0.6 * score + 0.8)
    return proba if decimals is None else np.round(proba, decimals)


def some_rows(n, seed, decimals=None):
    rng = np.random.default_rng(seed)
    score = -1.5 + 2.2 * rng.normal(size=n)
    return given_for(score, decimals), draw_flags(sigmoid(score), rng)


def truth(predicted, metric):
    """A metric of decisions about the whole world."""
    mass = DENSITY / DENSITY.sum()
    positive, hit = mass @ sigmoid(SCORE), (mass * predicted) @ sigmoid(SCORE)
    share = mass @ predicted
    return {"recall": hit / positive, "precision": hit / share, "accuracy": 1 - positive - share + 2 * hit}[metric]


class Record:
    """How often intervals cover, and promises are made and kept."""

    def __init__(self, metric, constraint):
        self.metric, self.constraint = metric, constraint
        self.covered = {"constraint": [], "gain": [], "value": []}
        self.kept = []  # of what was promised

    def draw(self, p, y, decimals=None, **options):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that labels are too few
            solution = mw.optimize(p, y, self.metric, subject_to=self.constraint, **options)
        proba = given_for(SCORE, decimals)
        name, _, bound = self.constraint.split()
        predicted = solution.rule.predict(proba)
        value, bounded = truth(predicted, self.metric), truth(predicted, name)
        (promise,) = solution.constraints
        for key, estimate, true in (
            ("constraint", promise.on_new_rows, bounded),
            ("gain", solution.gain, value - truth(proba > 0.5, self.metric)),
            ("value", solution.value_on_new_rows, value),
        ):
            self.covered[key].append(estimate.low <= true <= estimate.high)
        if promise.confidence == 0.95:
            self.kept.append(bounded >= float(bound))

    def coverage(self):
        return {key: np.mean(own) for key, own in self.covered.items()}


def test_copies_are_noticed_where_a_sample_judges(monkeypatch):
    """Ten copies of 400 rows, of which a sample judges, make no margin smaller, and no interval narrower."""
    monkeypatch.setattr(samples, "MAX_ROWS", 2_000)
    record = Record("accuracy", "recall >= 0.8")
    for seed in range(40):
        p, y = some_rows(400, seed)
        order = np.random.default_rng(seed).permutation(np.repeat(np.arange(400), 10))
        record.draw(p[order], y[order])
    assert len(record.kept) >= 36
    assert np.mean(record.kept) >= 0.9  # two of three, of what is noticed in the sample only
    assert min(record.coverage().values()) >= 0.85, record.coverage()


@pytest.mark.parametrize(
    ("metric", "constraint"),
    [("accuracy", "recall >= 0.8"), ("recall", "precision >= 0.8")],
    ids=["recall", "precision"],
)
def test_a_table_of_counts_promises_as_its_rows_do(metric, constraint):
    record = Record(metric, constraint)
    for seed in range(50):
        p, y = some_rows(1_500, seed, decimals=2)
        cells, counts = np.unique(np.stack([p, y], axis=1), axis=0, return_counts=True)
        table = {"sample_weight": mw.Frequencies(counts)}
        record.draw(cells[:, 0], cells[:, 1].astype(int), decimals=2, **table)
    assert np.mean(record.kept) >= 0.9
    assert min(record.coverage().values()) >= 0.85, record.coverage()  # half to three quarters, of whole cells


@pytest.mark.filterwarnings("ignore:subject_to. Too few labels")
@pytest.mark.parametrize(
    ("metric", "constraint", "n_rows"),
    [("accuracy", "recall >= 0.9", 100), ("recall", "precision >= 0.9", 300)],
    ids=["recall", "precision"],
)
def test_with_too_few_labels_the_rule_that_is_handed_out_is_judged(metric, constraint, n_rows, monkeypatch):
    """Resamples are fitted with the margins of the rule that is returned, at the confidence that labels allow."""
    fitted = []
    unseen = OutOfBagFits.unseen

    def listen(refits, recipe, margins):
        fitted.append(margins[0, 0])
        return unseen(refits, recipe, margins)

    monkeypatch.setattr(OutOfBagFits, "unseen", listen)
    allowed = []
    for seed in range(5):
        (promise,) = mw.optimize(*some_rows(n_rows, seed), metric, subject_to=constraint).constraints
        assert fitted[-1] == promise.margin  # the last that was judged is what is told of
        allowed.append(promise.confidence)
    assert 0.95 not in allowed
    assert any(confidence is not None for confidence in allowed)  # and there the margin is not 0


def test_counts_and_rows_promise_alike():
    """What is said of a table is about what is said of its rows: the optimism of a cell is not that of one row."""
    p, y = some_rows(4_000, 0, decimals=1)
    cells, counts = np.unique(np.stack([p, y], axis=1), axis=0, return_counts=True)
    assert len(cells) < 30
    call = {"metric": "recall", "subject_to": "precision >= 0.7"}
    rows = mw.optimize(p, y, groups=np.arange(4_000), **call)
    table = mw.optimize(cells[:, 0], cells[:, 1].astype(int), sample_weight=mw.Frequencies(counts), **call)
    assert table.constraints[0].margin == pytest.approx(rows.constraints[0].margin, rel=0.05)
    for one, other in (
        (table.gain, rows.gain),
        (table.value_on_new_rows, rows.value_on_new_rows),
        (table.constraints[0].on_new_rows, rows.constraints[0].on_new_rows),
    ):
        assert one.high - one.low == pytest.approx(other.high - other.low, rel=0.1)
        assert one.estimate == pytest.approx(other.estimate, abs=0.1 * (other.high - other.low))


def test_rows_in_chunks_know_their_copies(monkeypatch):
    """Copies lie in different chunks, and are one row each all the same."""
    monkeypatch.setattr(samples, "MAX_ROWS", 1_000)
    p, y = some_rows(300, 0)
    p, y = np.tile(p, 10), np.tile(y, 10)
    call = {
        "metric": "accuracy",
        "subject_to": "recall >= 0.8",
        "strategy": mw.Strategy(recalibrate=False, confusion="labels"),
    }
    memory = mw.optimize(p, y, **call).constraints[0]
    with served_by("pieces"):
        chunked = mw.optimize(p, y, **call).constraints[0]
    assert chunked.margin == pytest.approx(memory.margin)
    once = mw.optimize(p[:300], y[:300], **call).constraints[0]
    assert memory.margin == pytest.approx(once.margin, rel=0.1)
    assert memory.on_new_rows.low == pytest.approx(once.on_new_rows.low, abs=0.02)


# --------------------------------------------------------------------------- what promises and intervals rest on


def precision_counts(solution, p, y):
    """True positives and positives among the decisions on the given rows."""
    decided = solution.rule.predict(p) == 1
    return np.sum(decided & (y == 1)), np.sum(decided)


@pytest.mark.parametrize("others", [(), ("recall >= 0.05",)])
def test_a_promise_is_paid_for_with_the_rules_tried_and_the_promises_made(others):
    """Clopper and Pearson's limit at a confidence of 0.95: neighbouring thresholds count as one rule and a half."""
    spare = []
    for seed in range(8):
        p, y = some_rows(500, seed)
        solution = mw.optimize(p, y, "recall", subject_to=["precision >= 0.7", *others])
        assert solution.constraints[0].confidence == 0.95
        hits, trials = precision_counts(solution, p, y)
        n_promises = 1 + len(others)
        spare.append(beta.ppf(0.05 / (1.5 * n_promises), hits, trials - hits + 1) - 0.7)
    assert min(spare) >= 0
    assert min(spare) < 0.01  # it does not cost more than that


def test_only_half_of_the_optimism_narrows_an_interval():
    """The interval of the labels is moved by the optimism: one end outwards by all of it, the other inwards by half."""
    for seed in range(4):
        p, y = some_rows(500, seed)
        solution = mw.optimize(p, y, "recall", subject_to="precision >= 0.7")
        (promise,) = solution.constraints
        hits, trials = precision_counts(solution, p, y)
        optimism = promise.value - promise.on_new_rows.estimate
        low = beta.ppf(0.025, hits, trials - hits + 1) - (optimism if optimism > 0 else optimism / 2)
        high = beta.ppf(0.975, hits + 1, trials - hits) - (optimism if optimism < 0 else optimism / 2)
        assert (promise.on_new_rows.low, promise.on_new_rows.high) == pytest.approx((low, high))


def test_a_gain_under_constraints_varies_as_the_rows_decided_otherwise():
    """Nearly all rows are decided as argmax does, so that the gain is surer than the value."""
    rng = np.random.default_rng(2)
    p = rng.beta(1, 1, 500)
    solution = mw.optimize(p, (rng.random(500) < p).astype(int), "accuracy", subject_to="recall >= 0.3")
    assert np.mean(solution.rule.predict(p) != (p > 0.5)) < 0.05
    gain, value = solution.gain, solution.value_on_new_rows
    assert gain.high - gain.low < 0.5 * (value.high - value.low)


def test_the_value_on_new_rows_is_not_that_of_the_rows_that_were_fitted():
    """Labels that nothing predicts: the best threshold of 80 rows seems right in more than half of them."""
    given, new = [], []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        p, y = rng.random(80), rng.integers(0, 2, 80)
        solution = mw.optimize(
            p,
            y,
            "accuracy",
            subject_to="share <= 0.9",
            confidence=0.6,
            strategy=mw.Strategy(confusion="labels", recalibrate=False),
        )
        given.append(solution.value)
        new.append(solution.value_on_new_rows.estimate)
    assert np.mean(given) > 0.55
    assert np.mean(new) == pytest.approx(0.5, abs=0.04)
