"""Rules that may abstain: Chow's rule, selective rules beside linear programmes over all randomised rules, labels."""

import itertools
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as sk
from sklearn.linear_model import LogisticRegression

import metricwise as mw
import worlds
from metricwise.core.losses import Loss
from metricwise.data.probabilities import read_proba
from profiles import examples
from programmes import best_of_all

PLAIN = {"confusion": "expected", "recalibrate": False}


def drawn(seed, n=600, k=3, sharp=1.0, names=None):
    return worlds.multiclass(n, np.full(k, sharp), names=names, seed=seed)


def chow(P, cost, names, label):
    """Chow's rule, row by row: the most probable class, if a mistake about it is less likely than the cost."""
    return [names[int(np.argmax(row))] if 1 - row.max() <= cost else label for row in P]


# ---------------------------------------------------------------------------------------------------------- at a cost


@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("cost", [0.1, 0.25, 0.4])
def test_chows_rule_on_every_row(k, cost):
    names = ["a", "b", "c", "d", "e"][:k]
    P, y = drawn(k, k=k, names=names)
    solution = mw.optimize(P, y, "accuracy", abstain=cost, strategy=mw.Strategy(**PLAIN))
    predicted = solution.rule.predict(P)
    assert predicted.tolist() == chow(P, cost, names, "abstain")
    worth = np.where(predicted == "abstain", 1 - cost, predicted == y)
    assert solution.value == pytest.approx(worth.mean())
    assert solution.baseline == pytest.approx(np.mean(np.asarray(names)[P.argmax(axis=1)] == y))
    assert solution.confusion.shape == (1, k, k + 1)
    assert solution.confusion[0, :, k].sum() == pytest.approx(np.mean(predicted == "abstain"))


def test_chows_rule_behind_the_link_which_leaks_nothing_into_abstentions():
    P, y = drawn(0, 2000, names=["a", "b", "c"])
    sharp = P**2 / (P**2).sum(axis=1, keepdims=True)  # twice as sure as it should be
    for proba, names in ((sharp, ["a", "b", "c"]), (sharp[:, 0] / (sharp[:, 0] + sharp[:, 1]), ["b", "a"])):
        labels = y if len(names) == 3 else np.where(y == "a", "a", "b")
        solution = mw.optimize(
            proba,
            labels,
            "accuracy",
            abstain=0.2,
            classes=names,
            pos_label=None if proba.ndim == 2 else "a",
            strategy=mw.Strategy(confusion="expected", recalibrate=True),
        )
        link = solution.rule.link
        block = link.apply(read_proba(proba)).blocks[0][:, 0]
        eta = np.column_stack([1 - block, block]) if block.ndim == 1 else block
        assert solution.rule.predict(proba).tolist() == chow(eta, 0.2, names, "abstain")


def test_the_default_call_gates_and_estimates_the_gain():
    P, y = drawn(1, 3000, names=["a", "b", "c"])
    solution = mw.optimize(P, y, "accuracy", abstain=0.3, record=["abstained", "accuracy", "f1_macro"])
    assert solution.gain.low > 0
    assert solution.value == pytest.approx(solution.baseline + solution.gain.estimate, abs=0.02)
    predicted = solution.rule.predict(P)
    labels = ["a", "b", "c"]
    assert solution.recorded["abstained"].value == pytest.approx(np.mean(predicted == "abstain"))
    assert solution.recorded["accuracy"].value == pytest.approx(sk.accuracy_score(y, predicted))  # a miss
    expected = sk.f1_score(y, predicted, labels=labels, average="macro")
    assert solution.recorded["f1_macro"].value == pytest.approx(expected)
    assert solution.recorded["abstained"].baseline == 0.0
    dear = mw.optimize(P, y, "accuracy", abstain=1.0)  # as bad as an error
    assert "abstain" not in dear.rule.predict(P)
    assert dear.rule.abstain_label == "abstain"


COSTED = {
    "accuracy": (mw.metrics.Accuracy(), lambda pi, c: np.column_stack([np.eye(len(pi)), np.full(len(pi), 1 - c)])),
    "balanced_accuracy": (
        mw.metrics.BalancedAccuracy(),
        lambda pi, c: np.column_stack([np.diag(1 / pi), (1 - c) / pi]) / len(pi),
    ),
    "ordinal": (
        mw.metrics.Ordinal(),
        lambda pi, c: np.column_stack(
            [
                1 - np.abs(np.subtract.outer(np.arange(len(pi)), np.arange(len(pi)))) / (len(pi) - 1),
                np.full(len(pi), 1 - c),
            ]
        ),
    ),
    "cost": (
        mw.metrics.Cost([[0.0, 1.0, 3.0], [2.0, 0.0, 1.0], [5.0, 1.0, 0.0]]),
        lambda pi, c: -np.array([[0.0, 1.0, 3.0, c], [2.0, 0.0, 1.0, c], [5.0, 1.0, 0.0, c]]),
    ),
}


@pytest.mark.parametrize("name", sorted(COSTED))
@given(seed=st.integers(0, 10_000), cost=st.sampled_from([0.1, 0.3, 0.6]))
@examples(8)
def test_no_rule_of_a_few_rows_does_better_at_a_cost(name, seed, cost):
    P, _ = drawn(seed, 5)
    metric, table = COSTED[name]
    solution = mw.optimize(P, None, metric, abstain=cost)
    A = table(P.mean(axis=0), cost)
    worth = P @ A / len(P)  # of each decision about each row
    best = max(sum(worth[n, j] for n, j in enumerate(rule)) for rule in itertools.product(range(4), repeat=5))
    assert solution.value == pytest.approx(best, abs=1e-9)
    assert solution.upper_bound == pytest.approx(best, abs=1e-9)


# ---------------------------------------------------------------------------------------------------------- selective


def programme(eta, A, B, keep):
    """The best <A, C> / <B, C> of one output over all randomised rules with <F, C> >= 0 for all F to keep."""
    return best_of_all(eta[:, None], A[None], [(F[None], 0.0) for F in keep], B[None])


def cells(k, *pairs):
    out = np.zeros((k, k + 1))
    for i, j in pairs:
        out[i, j] += 1.0
    return out


def decided(k):
    return np.column_stack([np.ones((k, k)), np.zeros(k)])


def aims(k, pi):
    """A and B of aims with an abstention in the last column, written out."""
    hits = np.column_stack([np.eye(k), np.zeros(k)])
    one, column = cells(k, (1, 1)), cells(k, *((i, 1) for i in range(k)))
    row = cells(k, *((1, j) for j in range(k)))
    agree = hits.copy()
    chance = np.tile(np.append(1 - pi, 1.0), (k, 1))  # of disagreement by column, an abstention with every class
    return {
        "accuracy": (hits, decided(k)),
        "precision[1]": (one, column),
        "recall[1]": (one, row),
        "f1[1]": (2 * one, row + column),
        "jaccard[1]": (one, row + column - one),
        "balanced_accuracy": (hits / pi[:, None] / k, np.ones((k, k + 1))),
        "kappa": (chance - (1 - agree), chance),
        "polynomial": (hits, decided(k)),
    }


@pytest.mark.filterwarnings("ignore:.*alone is highest")
@pytest.mark.parametrize("name", sorted(aims(2, np.full(2, 0.5))))
@given(
    seed=st.integers(0, 10_000),
    k=st.sampled_from([2, 3]),
    bound=st.sampled_from([0.1, 0.25, 0.5]),
    more=st.booleans(),
)
@examples(6)
def test_selective_rules_are_those_of_a_programme_over_all_randomised_rules(name, seed, k, bound, more):
    P, _ = drawn(seed, 7, k)
    A, B = aims(k, P.mean(axis=0))[name]
    keep = [cells(k, *itertools.product(range(k), range(k + 1))) * bound - cells(k, *((i, k) for i in range(k)))]
    wanted = [f"abstained <= {bound}"]
    if more:  # the recall of the accepted rows
        keep.append(cells(k, (0, 0)) - 0.3 * cells(k, *((0, j) for j in range(k))))
        wanted.append("recall[0] >= 0.3")
    best = programme(P, A, B, keep)
    options = {"abstain": True, "subject_to": wanted, "strategy": mw.Strategy(randomized=True)}
    assert best is not None
    solution = mw.optimize(P, None, name, **options)
    value = solution.value**0.5 if name == "polynomial" else solution.value
    assert value == pytest.approx(best, abs=1e-6)
    gone = solution.rule.distribution(P)[:, k].mean()
    assert gone <= bound + 1e-7


@pytest.mark.parametrize("bound", [0.1, 0.3, 0.75])
def test_selective_accuracy_is_sorting_by_confidence(bound):
    P, y = drawn(2, 1000)
    sure = np.sort(P.max(axis=1))[::-1][: round(1000 * (1 - bound))]
    mixture = mw.optimize(
        P, None, "accuracy", abstain=True, subject_to=f"abstained <= {bound}", strategy=mw.Strategy(randomized=True)
    )
    assert mixture.value == pytest.approx(sure.mean(), abs=1e-7)
    assert mixture.upper_bound == pytest.approx(sure.mean(), abs=1e-6)
    single = mw.optimize(P, None, "accuracy", abstain=True, subject_to=f"abstained <= {bound}")
    predicted = single.rule.predict(P)
    order = P.max(axis=1)
    kept = predicted != -1
    assert order[kept].min() >= order[~kept].max()
    assert (predicted[kept] == P.argmax(axis=1)[kept]).all()
    assert (~kept).mean() == pytest.approx(bound, abs=0.002)
    # With labels, at least as good as sorting by what the link makes of the probabilities.
    labelled = mw.optimize(
        P,
        y,
        "accuracy",
        abstain=True,
        subject_to=f"abstained <= {bound}",
        confidence=None,
        strategy=mw.Strategy(confusion="labels"),
    )
    eta = labelled.rule.link.apply(read_proba(P)).blocks[0][:, 0]
    first = np.argsort(-eta.max(axis=1))[: round(1000 * (1 - bound))]
    assert labelled.value >= np.mean(eta.argmax(axis=1)[first] == y[first]) - 1e-9


def test_the_bound_is_promised_of_new_rows():
    P, y = drawn(3, 500)
    solution = mw.optimize(
        P, y, "accuracy", abstain=True, subject_to="abstained <= 0.2", strategy=mw.Strategy(confusion="labels")
    )
    (promise,) = solution.constraints
    assert promise.confidence == 0.95
    assert promise.margin > 0
    new, _ = drawn(4, 200_000)
    assert np.mean(solution.rule.predict(new) == -1) <= 0.2
    assert promise.value < 0.2
    assert promise.on_new_rows.low < promise.value < promise.on_new_rows.high


def test_the_risk_coverage_curve():
    P, y = drawn(5, 800)
    curve = mw.trade_off(
        P, None, "accuracy", "abstained", abstain=True, n_points=9, strategy=mw.Strategy(randomized=True)
    )
    order = np.sort(P.max(axis=1))[::-1]
    sums = np.append(0.0, np.cumsum(order))
    assert curve.ceiling
    assert curve.others[-1] == pytest.approx(0.0, abs=1e-9)
    for value, gone in zip(curve.values, curve.others, strict=True):
        accepted = 800 * (1 - gone)
        area = np.interp(accepted, np.arange(801), sums)  # of the last row a part
        assert value == pytest.approx(area / accepted, abs=1e-6)
    counted = mw.trade_off(P, y, "accuracy", "abstained", abstain=True, n_points=5)
    for rule, value, gone in zip(counted.rules, counted.values, counted.others, strict=True):
        predicted = rule.predict(P)
        kept = predicted != -1
        assert value == pytest.approx(np.mean(predicted[kept] == y[kept]))
        assert gone == pytest.approx(np.mean(~kept))


@pytest.mark.parametrize("metric", ["g_mean", "min_recall", "balanced_accuracy"])
def test_what_counts_abstentions_as_misses_gains_nothing_by_them(metric):
    P, _ = drawn(6, 12)
    free = mw.optimize(P, None, metric, strategy=mw.Strategy(randomized=True))
    may = mw.optimize(
        P, None, metric, abstain=True, subject_to="abstained <= 0.5", strategy=mw.Strategy(randomized=True)
    )
    assert may.value == pytest.approx(free.value, abs=1e-6)


def test_macro_f1_gains_by_abstaining_and_is_what_scikit_learn_says():
    P, y = drawn(7, 1500, sharp=0.7)
    options = {"confidence": None, "strategy": mw.Strategy(confusion="labels", recalibrate=False)}
    solution = mw.optimize(P, y, "macro_f1", abstain=True, subject_to="abstained <= 0.3", **options)
    predicted = solution.rule.predict(P)
    assert solution.value == pytest.approx(sk.f1_score(y, predicted, labels=[0, 1, 2], average="macro"))
    assert solution.value >= solution.baseline


# -------------------------------------------------------------------------------------------------- several outputs


def test_outputs_of_different_classes_abstain_each_by_itself():
    first, second = drawn(8, 400, 2)[0], drawn(9, 400, 4)[0]
    y = np.column_stack([drawn(8, 400, 2)[1], drawn(9, 400, 4)[1]])
    solution = mw.optimize([first, second], y, "accuracy", average="macro", abstain=0.3, strategy=mw.Strategy(**PLAIN))
    predicted = solution.rule.predict([first, second])
    assert predicted[:, 0].tolist() == chow(first, 0.3, [0, 1], -1)
    assert predicted[:, 1].tolist() == chow(second, 0.3, [0, 1, 2, 3], -1)
    share = solution.rule.distribution([first, second])
    np.testing.assert_array_equal(share[:, :, 4], predicted == -1)
    worth = np.where(predicted == -1, 0.7, predicted == y)
    assert solution.value == pytest.approx(worth.mean())
    with pytest.raises(ValueError, match="abstain needs average='macro' if outputs have different numbers"):
        mw.optimize([first, second], y, "accuracy", average="micro", abstain=0.3)


def test_multilabel_outputs_share_a_rule_or_have_one_each():
    rng = np.random.default_rng(10)
    P = rng.random((500, 3))
    Y = (rng.random(P.shape) < P).astype(int)
    for average in ("micro", "macro", "instance"):
        solution = mw.optimize(P, Y, "hamming_accuracy", average=average, abstain=0.2, strategy=mw.Strategy(**PLAIN))
        predicted = solution.rule.predict(P)
        expected = np.where(np.maximum(P, 1 - P) >= 0.8, P > 0.5, -1)
        np.testing.assert_array_equal(predicted, expected)
        worth = np.where(predicted == -1, 0.8, predicted == Y)
        assert solution.value == pytest.approx(worth.mean())
    mixed = mw.optimize(P, Y, ["accuracy", "balanced_accuracy", "ordinal"], abstain=0.2, strategy=mw.Strategy(**PLAIN))
    assert mixed.rule.predict(P)[:, 0].tolist() == expected[:, 0].tolist()


# ------------------------------------------------------------------------------------------------- labels and files


@pytest.mark.parametrize(
    ("classes", "label", "kind"),
    [
        (["no", "yes"], "abstain", "U"),
        ([0, 1], -1, "i"),
        ([1.5, 2.5], -1.0, "f"),
        ([False, True], -1, "O"),
        (np.array([3, 7], dtype=np.uint8), -1, "i"),
    ],
)
def test_the_label_by_default_is_that_of_its_kind(classes, label, kind):
    P, y = drawn(11, 200, 2, names=np.asarray(classes))
    rule = mw.optimize(P, y, "accuracy", abstain=0.2, strategy=mw.Strategy(**PLAIN)).rule
    predicted = rule.predict(P)
    assert rule.abstain_label == label
    assert type(rule.abstain_label) is type(label)
    assert predicted.dtype.kind == kind
    assert predicted.tolist() == chow(P, 0.2, np.asarray(classes).tolist(), label)
    again = mw.load_rule(rule.to_json())
    assert again == rule
    assert again.predict(P).tolist() == predicted.tolist()


@pytest.mark.parametrize(
    ("classes", "given", "message"),
    [
        ([-1, 1], None, r"label=\.\.\.\) must be given, because the default -1 is one of the classes"),
        (
            ["abstain", "act"],
            None,
            r"label=\.\.\.\) must be given, because the default 'abstain' is one of the classes",
        ),
        ([0, 1], 1, r"label=\.\.\.\) must not be one of the classes, \[0, 1\], got 1"),
        (["a", "b"], np.nan, r"label=\.\.\.\) must be text, a finite number or a boolean, got nan"),
        (["a", "b"], ["x"], r"label=\.\.\.\) must be text, a finite number or a boolean, got \['x'\]"),
        (np.array(["2024-01-01", "2024-01-02"], dtype="M8[D]"), None, "there is no default for classes"),
    ],
)
def test_a_label_that_would_be_mistaken_is_refused(classes, given, message):
    P, y = drawn(12, 60, 2, names=np.asarray(classes))
    with pytest.raises(ValueError, match=message):
        mw.optimize(P, y, "accuracy", abstain=mw.Abstention(0.2, label=given))


def test_labels_in_y_are_classes():
    P, y = drawn(13, 100, 3, names=["a", "b", "c"])
    y = y.astype(object)
    y[0] = "abstain"
    with pytest.raises(ValueError, match="abstain"):
        mw.optimize(P, y, "accuracy", abstain=0.2, classes=["a", "b", "c"])
    with pytest.raises(ValueError, match="y_true must hold only classes, got the label of abstentions 'abstain'"):
        mw.metrics.Accuracy().score(y, y, abstain=mw.Abstention(label="abstain"))


def test_files_are_checked_and_old_ones_still_load():
    P, y = drawn(14, 300)
    rule = mw.optimize(P, y, "accuracy", abstain=0.2).rule
    document = json.loads(rule.to_json())
    plain = json.loads(mw.optimize(P, y, "accuracy").rule.to_json())
    assert "abstain_label" not in plain  # files of rules that never abstain are as they were
    assert mw.load_rule(json.dumps(plain)).abstain_label is None
    for change, message in (
        ({"abstain_label": 1}, "abstain_label must not be one of the classes"),
        ({"abstain_label": [1]}, "abstain_label must be made of text, finite numbers or booleans"),
        ({"abstain_label": None}, "abstain_label must be made of"),
    ):
        with pytest.raises(ValueError, match=message):
            mw.load_rule(json.dumps({**document, **change}))
    missing = {key: value for key, value in document.items() if key != "abstain_label"}
    with pytest.raises(ValueError, match="loss must have 1 outputs"):
        mw.load_rule(json.dumps(missing))


def test_mixtures_know_abstentions():
    P, _ = drawn(15, 200)
    rule = mw.optimize(
        P, None, "accuracy", abstain=True, subject_to="abstained <= 0.333", strategy=mw.Strategy(randomized=True)
    ).rule
    assert isinstance(rule, mw.MixtureRule)
    assert rule.abstain_label == -1
    assert rule.distribution(P)[:, 3].mean() == pytest.approx(0.333, abs=1e-6)
    np.testing.assert_allclose(rule.distribution(P).sum(axis=1), 1.0)
    again = mw.load_rule(rule.to_json())
    assert again == rule
    assert again.predict(P).tolist() == rule.predict(P).tolist()
    assert "abstain: -1" in rule.describe()
    plain = mw.WeightedRule(Loss.argmax(3), (np.arange(3),))
    with pytest.raises(ValueError, match="rules must share abstain_label"):
        mw.MixtureRule((rule.rules[0], mw.WeightedRule(Loss.argmax(4), (np.arange(3),), abstain_label=-2)), [0.5, 0.5])
    with pytest.raises(ValueError, match="rules must share"):
        mw.MixtureRule((rule.rules[0], plain), [0.5, 0.5])


def test_rules_describe_where_they_abstain():
    def rule(table, classes, label="?", **options):
        square = np.vstack([table, np.zeros(len(table[0]))])
        return mw.WeightedRule(Loss(full=square[None]), (np.array(classes),), abstain_label=label, **options)

    P, y = drawn(16, 300)
    said = mw.optimize(P, y, "accuracy", abstain=0.2, strategy=mw.Strategy(**PLAIN)).rule.describe()
    assert "abstentions at a cost of 0.2" in said
    assert "Predict the most probable class if its probability is at least 0.8, else abstain: -1." in said
    binary = rule([[0, 1, 0.2], [1, 0, 0.3]], ["no", "yes"])
    assert binary.describe() == (
        "By the probability of 'yes': up to 0.2222 predict 'no'; from 0.7273 predict 'yes'; in between abstain: '?'."
    )
    p = np.linspace(0, 1, 1001)
    decided = binary.predict(p)
    assert set(decided[p <= 0.222]) == {"no"}
    assert set(decided[(p > 0.2223) & (p < 0.7272)]) == {"?"}
    assert set(decided[p > 0.7274]) == {"yes"}
    never = rule([[0, 1, 0.9], [1, 0, 0.9]], [0, 1], -1)
    assert never.describe() == "By the probability of 1: up to 0.5 predict 0; above predict 1."
    assert rule([[1, 1, 0], [1, 1, 0]], [0, 1], -1).describe() == "Always abstain: -1."
    table = rule([[0, 1, 2, 0.5], [1, 0, 1, 0.5], [4, 1, 0, 0.7]], ["a", "b", "c"])
    assert "or abstain: '?'" in table.describe()
    assert table.threshold is None
    assert binary.regions == (("no", 0.0, pytest.approx(0.2222, abs=1e-4)), *binary.regions[1:])
    weighted = mw.optimize(
        P, y, mw.metrics.WeightedAccuracy([1, 2, 3]), abstain=0.5, strategy=mw.Strategy(**PLAIN)
    ).rule
    assert weighted.describe().count("\n") >= 1


# -------------------------------------------------------------------------------------------------- scores elsewhere


def test_scores_know_the_label():
    P, y = drawn(17, 500, names=["a", "b", "c"])
    predicted = mw.optimize(P, y, "accuracy", abstain=0.3, strategy=mw.Strategy(**PLAIN)).rule.predict(P)
    kept = predicted != "abstain"
    accuracy, f1 = mw.metrics.Accuracy(), mw.metrics.get_metric("macro_f1")
    assert accuracy.score(y, predicted, abstain=mw.Abstention(label="abstain")) == pytest.approx(
        np.mean(predicted[kept] == y[kept])
    )
    worth = np.where(kept, predicted == y, 0.7)
    assert accuracy.score(y, predicted, abstain=mw.Abstention(0.3, label="abstain")) == pytest.approx(worth.mean())
    expected = sk.f1_score(y, predicted, labels=["a", "b", "c"], average="macro")
    assert f1.score(y, predicted, abstain=mw.Abstention(label="abstain")) == pytest.approx(expected)
    with pytest.raises(ValueError, match="y_pred must have the shape of y_true"):
        accuracy.score(y, predicted[:-1], abstain=mw.Abstention(label="abstain"))


def test_evaluate_counts_abstentions_as_the_rule_was_fitted():
    P, y = drawn(18, 1500, names=["a", "b", "c"])
    solution = mw.optimize(P, y, "accuracy", abstain=0.3, strategy=mw.Strategy(**PLAIN))
    predicted = solution.rule.predict(P)
    kept = predicted != "abstain"
    found = mw.evaluate(solution, P, y, ["accuracy", "f1_macro", "abstained"])
    assert found["accuracy"].value.estimate == pytest.approx(solution.value)
    assert found["accuracy"].baseline.estimate == pytest.approx(solution.baseline)
    expected = sk.f1_score(y, predicted, labels=["a", "b", "c"], average="macro")
    assert found["f1_macro"].value.estimate == pytest.approx(expected)
    assert found["abstained"].value.estimate == pytest.approx(np.mean(~kept))
    # The interval of a share is that of a proportion.
    share, half = np.mean(~kept), found["abstained"].value.high - found["abstained"].value.estimate
    assert half == pytest.approx(1.96 * np.sqrt(share * (1 - share) / len(y)), rel=0.01)
    selective = mw.evaluate(solution, P, y, "accuracy", abstain=True)["accuracy"].value
    assert selective.estimate == pytest.approx(np.mean(predicted[kept] == y[kept]))
    right = np.mean(predicted[kept] == y[kept])
    assert selective.high - selective.estimate == pytest.approx(
        1.96 * np.sqrt(right * (1 - right) / kept.sum()), rel=0.01
    )
    plain = mw.optimize(P, y, "accuracy", strategy=mw.Strategy(**PLAIN))
    other = mw.evaluate(plain, P, y, "accuracy", against=solution)["accuracy"]
    assert other.difference.estimate == pytest.approx(solution.baseline - solution.value)
    with pytest.raises(ValueError, match="abstain is only for rules that may abstain, and this rule never does"):
        mw.evaluate(plain, P, y, "accuracy", abstain=True)


def test_estimators_predict_the_label_and_score_by_it():
    rng = np.random.default_rng(19)
    X = rng.normal(size=(600, 3))
    y = np.array(["a", "b", "c"])[(X + rng.gumbel(size=X.shape)).argmax(axis=1)]
    model = mw.MetricOptimalClassifierCV(LogisticRegression(), metric="accuracy", abstain=0.3).fit(X, y)
    predicted = model.predict(X)
    assert "abstain" in predicted
    assert model.classes_.tolist() == ["a", "b", "c"]
    worth = np.where(predicted == "abstain", 0.7, predicted == y)
    assert model.score(X, y) == pytest.approx(worth.mean())
    assert model.decision_distribution(X).shape == (600, 4)
    bounded = mw.MetricOptimalClassifierCV(
        LogisticRegression(),
        metric="accuracy",
        abstain=mw.Abstention(label="?"),
        subject_to="abstained <= 0.2",
        confidence=None,
        strategy=mw.Strategy(confusion="expected"),
    ).fit(X[:300], y[:300])
    predicted = bounded.predict(X)
    kept = predicted != "?"
    assert bounded.score(X, y) == pytest.approx(np.mean(predicted[kept] == y[kept]))
    fixed = mw.FixedRuleClassifier(bounded.estimator_, bounded.rule_.to_json())  # fitted already
    assert fixed.predict(X).tolist() == predicted.tolist()
    assert fixed.score(X, y) == pytest.approx(bounded.score(X, y))
    scorer = mw.make_scorer("f1_macro", abstain=mw.Abstention(label="?"), classes=["a", "b", "c"])
    expected = sk.f1_score(y, predicted, labels=["a", "b", "c"], average="macro")
    assert scorer(bounded, X, y) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"abstain": True}, r"needs a bound on how often the rule abstains, such as subject_to='abstained <= 0.05'"),
        ({"abstain": True, "subject_to": "abstained <= 1"}, "needs a bound on how often"),
        ({"abstain": True, "subject_to": "abstained >= 0.1"}, "needs a bound on how often"),
        ({"subject_to": "abstained <= 0.1"}, "only for rules that may abstain; set abstain=True"),
        ({"metric": "macro_f1", "abstain": 0.1}, "a cost of abstaining needs a linear metric"),
        (
            {"metric": "quadratic_kappa", "abstain": True, "subject_to": "abstained <= 0.1"},
            "is undefined for an abstention",
        ),
        (
            {"metric": lambda C: C[0, 0], "abstain": True, "subject_to": "abstained <= 0.1"},
            "does not define a value for undecided rows",
        ),
        ({"abstain": 0.1, "record": ["ordinal"]}, "does not define a value for undecided rows"),
        ({"abstain": 0.1, "strategy": mw.Strategy(solver="sweep")}, "binary"),
    ],
)
def test_what_means_nothing_is_refused(options, message):
    P, y = drawn(20, 60)
    metric = options.pop("metric", "accuracy")
    with pytest.raises(ValueError, match=message):
        mw.optimize(P, y, metric, **options)


def test_a_table_may_say_what_abstentions_cost():
    P, y = drawn(21, 300)
    table = np.array([[0, 1, 2, 0.3], [1, 0, 1, 0.2], [3, 1, 0, 0.4]])
    solution = mw.optimize(P, y, mw.metrics.Cost(table), abstain=True, strategy=mw.Strategy(**PLAIN))
    assert solution.rule.predict(P).tolist() == [[0, 1, 2, -1][j] for j in (P @ table).argmin(axis=1)]
    paid = table[y, solution.rule.predict(P)]
    assert solution.value == pytest.approx(-paid.mean())
    bounded = mw.optimize(
        P,
        None,
        mw.metrics.Cost(table),
        abstain=True,
        subject_to="abstained <= 0.1",
        strategy=mw.Strategy(randomized=True),
    )
    keep = [0.1 * np.ones((3, 4)) - cells(3, (0, 3), (1, 3), (2, 3))]
    assert bounded.value == pytest.approx(programme(P, -table, np.ones((3, 4)), keep), abs=1e-7)


def test_known_priors_shift_what_is_abstained():
    P, y = drawn(22, 1000)
    prior = [0.6, 0.3, 0.1]
    solution = mw.optimize(P, y, "accuracy", abstain=0.3, prior=prior, strategy=mw.Strategy(**PLAIN))
    ratio = np.array(prior) / np.bincount(y) * len(y)
    eta = P * ratio / (P * ratio).sum(axis=1, keepdims=True)
    assert np.mean(solution.rule.predict(P) == np.array(chow(eta, 0.3, [0, 1, 2], -1))) == 1.0


@pytest.mark.parametrize("label", [10**20, -(10**20), 2**63])
def test_an_integer_beyond_64_bits_may_stand_for_an_abstention(label):
    P, y = drawn(23, 200)
    plain = mw.optimize(P, y, "accuracy", abstain=0.3, strategy=mw.Strategy(**PLAIN)).rule
    rule = mw.optimize(P, y, "accuracy", abstain=mw.Abstention(0.3, label=label), strategy=mw.Strategy(**PLAIN)).rule
    expected = [label if code == -1 else code for code in plain.predict(P).tolist()]
    assert label in expected
    assert rule.predict(P).tolist() == mw.load_rule(rule.to_json()).predict(P).tolist() == expected
