"""The most decided: all cuts on the largest probability by enumeration, programmes over all rules, fresh rows."""

import itertools
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as sk

import metricwise as mw
import worlds
from metricwise.data.probabilities import read_proba
from profiles import examples
from programmes import best_of_all

AS_GIVEN = {"confidence": None, "strategy": mw.Strategy(confusion="labels", recalibrate=False)}


def drawn(seed, n, k, sharp=1.0):
    return worlds.multiclass(n, np.full(k, sharp), seed=seed)


def hits_and_decided(P, y, weight=None):
    """Hits and decided rows, in shares, of every cut on the largest probability that decides something."""
    weight = np.ones(len(y)) if weight is None else weight
    largest, right = P.max(axis=1), P.argmax(axis=1) == y
    for cut in np.unique(largest):
        decided = largest >= cut
        yield np.sum(weight * (decided & right)) / weight.sum(), np.sum(weight * decided) / weight.sum()


def best_of_cuts(P, y, value, keeps, weight=None):
    kept = [value(*pair) for pair in hits_and_decided(P, y, weight) if keeps(*pair)]
    return max(kept) if kept else None


# ------------------------------------------------------------------------------------------------------ enumeration

ASKED = {
    "coverage": ("accuracy >= 0.6", lambda h, d: d, lambda h, d: h >= 0.6 * d - 1e-12),
    "accuracy": ("coverage >= 0.4", lambda h, d: h / d, lambda h, d: d >= 0.4 - 1e-12),
    "abstained": ("accuracy >= 0.7", lambda h, d: d - 1, lambda h, d: h >= 0.7 * d - 1e-12),
    "hamming_accuracy": ("abstained <= 0.3", lambda h, d: h / d, lambda h, d: d >= 0.7 - 1e-12),
}


@pytest.mark.parametrize("name", sorted(ASKED))
@given(seed=st.integers(0, 10_000), k=st.sampled_from([2, 3, 6]), tied=st.booleans(), weighted=st.booleans())
@examples(12)
def test_no_cut_does_better(name, seed, k, tied, weighted):
    P, y = drawn(seed, 60, k)
    if tied:
        P = np.random.default_rng(seed).multinomial(16, P) / 16  # exact in binary
    weight = np.random.default_rng(seed).integers(1, 5, 60).astype(float) if weighted else None
    text, value, keeps = ASKED[name]
    best = best_of_cuts(P, y, value, keeps, weight)
    options = {"abstain": True, "subject_to": text, "sample_weight": weight, **AS_GIVEN}
    if best is None:
        with pytest.raises(ValueError, match="no rule satisfies"):
            mw.optimize(P, y, name, **options)
        return
    solution = mw.optimize(P, y, name, **options)
    assert solution.value == pytest.approx(best, abs=1e-9)
    predicted = solution.rule.predict(P)
    decided = predicted != -1
    assert (predicted[decided] == P.argmax(axis=1)[decided]).all()
    assert P.max(axis=1)[decided].min() >= P.max(axis=1)[~decided].max(initial=0.0)
    assert "Optimal over all cuts" in solution.status


def test_many_rows_are_searched_through_bins_and_no_cut_does_better():
    P, y = drawn(1, 40_000, 4)
    for floor in (0.6, 0.8):
        best = best_of_sorted(P, y, floor)
        solution = mw.optimize(P, y, "coverage", abstain=True, subject_to=f"accuracy >= {floor}", **AS_GIVEN)
        assert solution.value == pytest.approx(best, abs=1e-12)


def best_of_sorted(P, y, floor):
    """The same as an enumeration, for rows without ties."""
    order = np.argsort(-P.max(axis=1))
    hits = np.cumsum(P.argmax(axis=1)[order] == y[order])
    decided = np.arange(1, len(y) + 1)
    return decided[hits >= floor * decided - 1e-9].max() / len(y)


def test_behind_the_link_and_counted_by_scikit_learn():
    P, y = drawn(2, 900, 3)
    P = P**2 / (P**2).sum(axis=1, keepdims=True)
    solution = mw.optimize(P, y, "coverage", abstain=True, subject_to="accuracy >= 0.75", confidence=None)
    eta = solution.rule.link.apply(read_proba(P)).blocks[0][:, 0]
    assert solution.value == pytest.approx(best_of_sorted(eta, y, 0.75), abs=1e-12)
    predicted = solution.rule.predict(P)
    decided = predicted != -1
    assert solution.value == pytest.approx(decided.mean())
    (floor,) = solution.constraints
    assert floor.value == pytest.approx(sk.accuracy_score(y[decided], predicted[decided]))
    assert solution.baseline == 1.0
    assert re.search(
        r"most probable class if its probability is at least 0\.\d+, else abstain", solution.rule.describe()
    )


def test_several_outputs_share_a_cut_or_have_one_each():
    rng = np.random.default_rng(3)
    P = rng.random((400, 2))
    Y = (rng.random(P.shape) < P).astype(int)
    pairs = [(np.column_stack([1 - p, p]), y) for p, y in zip(P.T, Y.T, strict=True)]
    pooled = mw.optimize(
        P, Y, "coverage", average="micro", abstain=True, subject_to="hamming_accuracy >= 0.85", **AS_GIVEN
    )
    together = np.concatenate([p for p, _ in pairs]), np.concatenate([y for _, y in pairs])
    assert pooled.value == pytest.approx(best_of_sorted(*together, 0.85))
    texts = ["accuracy[0] >= 0.8", "accuracy[1] >= 0.9"]
    apart = mw.optimize(P, Y, "coverage", average="macro", abstain=True, subject_to=texts, **AS_GIVEN)
    assert apart.value == pytest.approx(np.mean([best_of_sorted(*pairs[0], 0.8), best_of_sorted(*pairs[1], 0.9)]))


# ------------------------------------------------------------------------------------------------ all randomised rules


@given(seed=st.integers(0, 10_000), k=st.sampled_from([2, 3]), which=st.sampled_from(["accuracy", "precision", "both"]))
@examples(15)
def test_with_probabilities_the_programme_over_all_randomised_rules(seed, k, which):
    P, _ = drawn(seed, 7, k, sharp=0.7)
    decided = np.column_stack([np.ones((k, k)), np.zeros(k)])
    hits = np.column_stack([np.eye(k), np.zeros(k)])
    hit = np.zeros((k, k + 1))
    hit[1, 1] = 1.0
    predicted, true = np.zeros((k, k + 1)), np.zeros((k, k + 1))
    predicted[:, 1] = true[1, :k] = 1.0
    floors = {
        "accuracy": [("accuracy >= 0.75", hits - 0.75 * decided)],
        "precision": [("precision[1] >= 0.7", hit - 0.7 * predicted)],
        "both": [("recall[1] >= 0.6", hit - 0.6 * true), ("precision[1] >= 0.6", hit - 0.6 * predicted)],
    }[which]
    little = [(predicted[None], 1e-5), (true[None], 1e-5)] if which != "accuracy" else [(decided[None], 1e-5)]
    best = best_of_all(P[:, None], decided[None], [(A[None], 0.0) for _, A in floors] + little[: len(floors)])
    texts = [text for text, _ in floors]
    options = {"abstain": True, "subject_to": texts}
    if best is None:
        with pytest.raises(ValueError, match="no rule satisfies"):
            mw.optimize(P, None, "coverage", **options)
        return
    mixture = mw.optimize(P, None, "coverage", strategy=mw.Strategy(randomized=True), **options)
    assert mixture.value == pytest.approx(best, abs=2e-5)
    if which == "accuracy":
        assert mixture.upper_bound == pytest.approx(best, abs=1e-6)
        largest = np.sort(P.max(axis=1))[::-1]
        single = mw.optimize(P, None, "coverage", **options)
        cuts = [n for n in range(1, 8) if largest[:n].mean() >= 0.75 - 1e-12]
        assert single.value >= max(cuts) / 7 - 1e-9


# ---------------------------------------------------------------------------------------------------------- groups


@pytest.mark.parametrize("k", [2, 4])
def test_a_cut_in_every_group(k):
    P, y = drawn(4, 600, k)
    group = np.random.default_rng(4).integers(0, 3, 600)
    P = np.where((group == 1)[:, None], P**3 / (P**3).sum(axis=1, keepdims=True), P)
    options = {"abstain": True, "sensitive_features": group}
    solution = mw.optimize(P, y, "coverage", subject_to="accuracy >= 0.7 in every group", **options, **AS_GIVEN)
    best = [best_of_sorted(P[group == g], y[group == g], 0.7) * np.mean(group == g) for g in range(3)]
    assert solution.value == pytest.approx(sum(best), abs=1e-9)
    predicted = solution.rule.predict(P, sensitive_features=group)
    for g in range(3):
        here = (group == g) & (predicted != -1)
        assert sk.accuracy_score(y[here], predicted[here]) >= 0.7


@pytest.mark.slow
def test_a_floor_of_all_rows_beside_those_of_groups():
    P, y = drawn(4, 600, 3)
    group = np.random.default_rng(4).integers(0, 3, 600)
    options = {"abstain": True, "sensitive_features": group, **AS_GIVEN}
    each = mw.optimize(P, y, "coverage", subject_to="accuracy >= 0.6 in every group", **options)
    both = ["accuracy >= 0.6 in every group", "accuracy >= 0.7"]
    more = mw.optimize(P, y, "coverage", subject_to=both, **options)
    predicted = more.rule.predict(P, sensitive_features=group)
    assert sk.accuracy_score(y[predicted != -1], predicted[predicted != -1]) >= 0.7
    assert 0.1 < more.value <= each.value + 1e-12


# ------------------------------------------------------------------------------------------------- what is reachable


@pytest.mark.parametrize("where", ["", " in every group"])
@pytest.mark.parametrize("confidence", [None, 0.95])
@pytest.mark.filterwarnings("ignore:.*Too few labels")
def test_what_a_refusal_says_can_be_asked_for(where, confidence):

    for seed in range(2):
        P, y = drawn(seed, 300, 3)
        rng = np.random.default_rng(seed)
        surest = P.max(axis=1) > np.quantile(P.max(axis=1), 0.9)
        y = np.where(surest & (rng.random(300) < 0.6), (P.argmax(axis=1) + 1) % 3, y)
        y = np.where(P.max(axis=1) == P.max(), (P.argmax(axis=1) + 1) % 3, y)
        options = {
            "abstain": True,
            "confidence": confidence,
            "sensitive_features": rng.integers(0, 2, 300) if where else None,
            "strategy": mw.Strategy(confusion="labels", recalibrate=False),
        }
        with pytest.raises(ValueError, match="accuracy of the decided rows reaches at most about 0") as error:
            mw.optimize(P, y, "coverage", subject_to=f"accuracy >= 0.99{where}", **options)
        said = re.search(r"at most about (0\.\d+).*, at a coverage of (\d\.?\d*)", str(error.value))
        solution = mw.optimize(P, y, "coverage", subject_to=f"accuracy >= {said[1]}{where}", **options)
        assert solution.constraints[0].value >= float(said[1])
        if not where:
            best = max(h / d for h, d in hits_and_decided(P, y))
            assert 0 <= best - float(said[1]) < 1e-3
            assert solution.value >= float(said[2]) - 0.01


def test_nothing_decided_keeps_no_floor():
    P, _ = drawn(5, 40, 3)
    y = np.append(P.argmax(axis=1)[0], (P.argmax(axis=1)[1:] + 1) % 3)  # one row is right
    with pytest.raises(
        ValueError, match=r"no rule satisfies 'accuracy >= 0.9' on the given rows: accuracy of the decided"
    ):
        mw.optimize(P, y, "coverage", abstain=True, subject_to="accuracy >= 0.9", **AS_GIVEN)
    with pytest.raises(ValueError, match=r"of the decided rows reaches at most 0\.\d+, at a coverage of"):
        mw.optimize(P * 0.5 + 1 / 6, None, "coverage", abstain=True, subject_to="accuracy >= 0.99")


# -------------------------------------------------------------------------------------------------------- new rows


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*Too few labels")
@pytest.mark.parametrize(("k", "sharp", "floor"), [(2, 1.0, 0.8), (3, 1.0, 0.7), (10, 0.15, 0.75)])
def test_the_floor_is_kept_by_the_population(k, sharp, floor):
    """Of 60 samples, at least 52 keep a floor of confidence 0.95: fewer have a probability of 0.5 %."""
    new, _ = drawn(999, 50_000, k, sharp)
    kept = 0
    for seed in range(60):
        P, y = drawn(seed, 600, k, sharp)
        squared = P**2 / (P**2).sum(axis=1, keepdims=True)  # twice as sure as it should be
        rule = mw.optimize(squared, y, "coverage", abstain=True, subject_to=f"accuracy >= {floor}").rule
        predicted = rule.predict(new**2 / (new**2).sum(axis=1, keepdims=True))
        decided = np.flatnonzero(predicted != -1)
        kept += new[decided, predicted[decided]].mean() >= floor
    assert kept >= 52


# ------------------------------------------------------------------------------------------------- both ways round


def test_the_frontier_of_coverage_and_accuracy():
    P, y = drawn(6, 500, 3)
    options = {"abstain": True, "n_points": 8, "strategy": AS_GIVEN["strategy"]}
    curve = mw.trade_off(P, y, "coverage", "accuracy", **options)
    assert not curve.ceiling
    assert curve.values[0] == pytest.approx(1.0)
    assert (np.diff(curve.values) <= 1e-12).all()
    for bound, value, rule in zip(curve.bounds, curve.values, curve.rules, strict=True):
        best = best_of_cuts(P, y, lambda h, d: d, lambda h, d, low=bound: h >= (low - 1e-12) * d)
        assert value == pytest.approx(best)
        assert np.mean(rule.predict(P) != -1) == pytest.approx(value)
    other = mw.trade_off(P, y, "accuracy", "coverage", **options)
    assert not other.ceiling
    for bound, value in zip(other.bounds, other.values, strict=True):
        assert value == pytest.approx(max(h / d for h, d in hits_and_decided(P, y) if d >= bound - 1e-9))
    both = zip(other.others, 1 - mw.trade_off(P, y, "accuracy", "abstained", **options).others, strict=True)
    assert all(one == pytest.approx(two) for one, two in both)


def test_what_is_not_symmetric_in_classes_is_left_to_other_searches():
    P, y = drawn(7, 300, 3)
    for text in ("precision[1] >= 0.6", "recall[0] >= 0.7", ["accuracy >= 0.6", "recall[2] >= 0.5"]):
        solution = mw.optimize(P, y, "coverage", abstain=True, subject_to=text, **AS_GIVEN)
        predicted = solution.rule.predict(P)
        decided = predicted != -1
        assert "cuts" not in solution.status
        scores = {
            "accuracy": sk.accuracy_score(y[decided], predicted[decided]),
            "precision[1]": sk.precision_score(
                y[decided], predicted[decided], labels=[1], average=None, zero_division=0
            )[0],
            **{
                f"recall[{c}]": sk.recall_score(
                    y[decided], predicted[decided], labels=[c], average=None, zero_division=0
                )[0]
                for c in (0, 2)
            },
        }
        for asked, result in itertools.zip_longest([text] if isinstance(text, str) else text, solution.constraints):
            name, bound = asked.split(" >= ")
            assert result.value == pytest.approx(scores[name])
            assert scores[name] >= float(bound) - 1e-12
