"""`evaluate` beyond one rule and one metric: groups, costs per row, thresholds, decisions, tables, two models.

Values against NumPy and scikit-learn, intervals against the bootstrap by hand and what is true of a simulated world.
"""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t
from sklearn import metrics as sk

import metricwise as mw
import worlds
from metricwise import WeightedRule

N = 600


def drawn(seed=0, n=N):
    """Two models of one truth, groups that fare differently, and costs."""
    rng = np.random.default_rng(seed)
    truth, y = worlds.binary(n, b=2, seed=rng)
    group = rng.choice(["a", "b", "c"], n, p=[0.5, 0.3, 0.2])
    noise = rng.normal(0, 1, n) * (1 + (group == "c"))
    models = [worlds.sigmoid(np.log(truth / (1 - truth)) + scale * noise) for scale in (0.3, 1.0)]
    return models, y, group, rng.lognormal(0, 1, (n, 2))


(P, Q), Y, GROUP, COST = drawn()
RULE, OTHER = WeightedRule.from_thresholds(0.3), WeightedRule.from_thresholds(0.6)


# ----------------------------------------------------------------------------------------------- what stands for a rule


def test_a_threshold_and_decisions_stand_for_a_rule():
    whole = mw.evaluate(RULE, P, Y, ["f1", "recall"], against=OTHER)
    for rule in (
        0.3,
        np.float32(0.30000001192092896),
        RULE.predict(P),
        RULE.predict(P).tolist(),
        pd.Series(RULE.predict(P)),
    ):
        for against in (0.6, OTHER.predict(P)):
            found = mw.evaluate(rule, P, Y, ["f1", "recall"], against=against)
            assert found.to_dict() == whole.to_dict()
    alone = mw.evaluate(RULE.predict(P), P, Y, "f1")
    assert alone.against == "argmax"
    assert alone["f1"] == mw.evaluate(RULE, P, Y, "f1")["f1"]


def test_decisions_need_no_probabilities():
    first, second = RULE.predict(P), OTHER.predict(P)
    found = mw.evaluate(first, None, Y, ["f1", "accuracy"], against=second)
    assert found["f1"].value.estimate == pytest.approx(sk.f1_score(Y, first))
    assert found["accuracy"].baseline.estimate == pytest.approx(sk.accuracy_score(Y, second))
    assert found["f1"].difference == mw.evaluate(RULE, P, Y, "f1", against=OTHER)["f1"].difference
    words = np.array(["no", "yes"])
    named = mw.evaluate(words[first], None, words[Y], "f1", against=words[second], pos_label="yes")
    assert named["f1"] == found["f1"]
    pairs = np.column_stack([first, second])
    both = mw.evaluate(pairs, None, np.column_stack([Y, Y]), "f1_macro", against=pairs[:, ::-1])["f1_macro"]
    assert both.value.estimate == pytest.approx(sk.f1_score(np.column_stack([Y, Y]), pairs, average="macro"))


def test_a_threshold_of_words_is_of_the_positive_class():
    words = np.array(["fine", "fraud"])
    found = mw.evaluate(0.3, np.column_stack([1 - P, P]), words[Y], ["f1", "accuracy"], pos_label="fraud")
    assert found["f1"] == mw.evaluate(RULE, P, Y, "f1")["f1"]
    with pytest.raises(ValueError, match="pos_label"):
        mw.evaluate(0.3, np.column_stack([1 - P, P]), words[Y], "accuracy")
    several = mw.evaluate(0.3, np.column_stack([P, Q]), np.column_stack([Y, Y]), "f1_macro")
    expected = np.mean([sk.f1_score(Y, own > 0.3) for own in (P, Q)])
    assert several["f1_macro"].value.estimate == pytest.approx(expected)


def test_a_rule_knows_its_own_metric():
    solution = mw.optimize(P, Y, "f2")
    assert list(mw.evaluate(solution, P, Y)) == ["f2"]
    assert mw.evaluate(solution.rule, P, Y).to_dict() == mw.evaluate(solution, P, Y, "f2").to_dict()
    words = np.array(["fine", "fraud"])
    named = mw.optimize(np.column_stack([1 - P, P]), words[Y], "f1", pos_label="fraud").rule
    expected = sk.f1_score(words[Y], named.predict(np.column_stack([1 - P, P])), pos_label="fraud")
    assert mw.evaluate(named, np.column_stack([1 - P, P]), words[Y])["f1"].value.estimate == pytest.approx(expected)
    tags, labels = np.column_stack([P, Q]), np.column_stack([Y, 1 - Y])
    macro = mw.optimize(tags, labels, "f1", average="macro").rule
    found = mw.evaluate(macro, tags, labels)["f1"].value.estimate
    assert found == pytest.approx(sk.f1_score(labels, macro.predict(tags), average="macro"))
    by_row = mw.optimize(P, Y, "cost", cost=COST)
    assert list(mw.evaluate(by_row, P, Y, cost=COST)) == ["cost"]


# ------------------------------------------------------------------------------------------------------------- groups


def rates(decided, group=GROUP, y=Y):
    """Shares, true and false positive rates, precisions and accuracies of each group, as fairlearn has them."""
    out = {}
    for name in np.unique(group):
        own, true = decided[group == name], y[group == name]
        out[name] = {
            "share": own.mean(),
            "recall": own[true == 1].mean(),
            "false": own[true == 0].mean(),
            "precision": true[own == 1].mean(),
            "accuracy": (own == true).mean(),
        }
    return pd.DataFrame(out).T


def test_gaps_between_groups_are_those_of_fairlearn():
    found = mw.evaluate(
        RULE,
        P,
        Y,
        [
            "demographic_parity",
            "equalized_odds",
            "equal_opportunity",
            "predictive_parity",
            "accuracy gap",
            mw.gap("recall", 0),
        ],
        against=OTHER,
        sensitive_features=GROUP,
    )
    for side, rule in (("value", RULE), ("baseline", OTHER)):
        gaps = np.ptp(rates(rule.predict(P)).to_numpy(), axis=0)
        share, recall, false, precision, accuracy = gaps
        expected = [share, max(recall, false), recall, precision, accuracy, false]
        values = [getattr(one, side).estimate for one in found.values()]
        assert values == pytest.approx(expected, abs=1e-12)
    assert list(found)[-2:] == ["accuracy gap", "recall[0] gap"]
    for one in found.values():
        assert 0 <= one.value.low <= one.value.estimate <= one.value.high <= 1
        assert one.difference.low <= one.difference.estimate <= one.difference.high


def test_the_worst_group_is_the_least_of_all():
    found = mw.evaluate(
        RULE, P, Y, ["worst_group(accuracy)", mw.worst_group("f1"), "accuracy"], sensitive_features=GROUP
    )
    plain = (P > 0.5).astype(int)
    assert list(found) == ["worst_group(accuracy)", "worst_group(f1)", "accuracy"]
    assert found["worst_group(accuracy)"].value.estimate == pytest.approx(rates(RULE.predict(P))["accuracy"].min())
    assert found["worst_group(accuracy)"].baseline.estimate == pytest.approx(rates(plain)["accuracy"].min())
    expected = min(sk.f1_score(Y[g == GROUP], RULE.predict(P)[g == GROUP]) for g in "abc")
    assert found["worst_group(f1)"].value.estimate == pytest.approx(expected)
    assert list(found.by_group["a"]) == ["accuracy", "f1"]


def test_rules_by_group_are_judged_by_gaps_and_costs():
    rule = mw.GroupedRule(tuple(WeightedRule.from_thresholds(t) for t in (0.3, 0.4, 0.5)), ("a", "b", "c"))
    decided = rule.predict(P, sensitive_features=GROUP)
    found = mw.evaluate(
        rule, P, Y, ["equalized_odds", "worst_group(recall)", "cost"], sensitive_features=GROUP, cost=COST
    )
    own = rates(decided)
    assert found["equalized_odds"].value.estimate == pytest.approx(
        np.ptp(own[["recall", "false"]].to_numpy(), axis=0).max()
    )
    assert found["worst_group(recall)"].value.estimate == pytest.approx(own["recall"].min())
    paid = np.where(decided == Y, 0.0, COST[np.arange(N), Y])
    assert found["cost"].value.estimate == pytest.approx(-paid.mean())
    assert found.by_group["b"]["cost"].value.estimate == pytest.approx(-paid[GROUP == "b"].mean())


@pytest.mark.parametrize("groups", [2, 5])
def test_intervals_of_gaps_and_worst_groups_hold_what_is_true(groups):
    """All groups alike: the gap is 0, the worst group's recall that of all; and one group apart, by a known gap."""
    for apart in (0.0, 0.2):
        held = np.zeros((40, 4), dtype=bool)
        for seed in range(40):
            rng = np.random.default_rng(seed)
            group, y = rng.integers(0, groups, 600), rng.integers(0, 2, 600)
            first = np.where(rng.random(600) < 0.7 - apart * (group == 0), y, 1 - y)
            second = np.where(rng.random(600) < 0.7, y, 1 - y)
            found = mw.evaluate(
                first, None, y, ["accuracy gap", "worst_group(accuracy)"], against=second, sensitive_features=group
            )
            gap, worst = found.values()
            truths = [
                (gap.value, apart),
                (gap.difference, apart),
                (worst.value, 0.7 - apart),
                (worst.difference, -apart),
            ]
            held[seed] = [one.low - 1e-12 <= truth <= one.high + 1e-12 for one, truth in truths]
        assert (held.mean(axis=0) >= 0.85).all(), (apart, held.mean(axis=0))


def test_rows_that_belong_together_widen_gaps():
    once = mw.evaluate(RULE, P, Y, "accuracy gap", sensitive_features=GROUP)["accuracy gap"]
    index = np.repeat(np.arange(N), 4)
    copied = mw.evaluate(RULE, P[index], Y[index], "accuracy gap", sensitive_features=GROUP[index], groups=index)
    assert copied["accuracy gap"].value.high == pytest.approx(once.value.high, abs=0.02)
    counted = mw.evaluate(
        RULE, P, Y, "accuracy gap", sensitive_features=GROUP, sample_weight=mw.Frequencies(np.full(N, 4))
    )["accuracy gap"]
    assert counted.value.high < once.value.high


def test_clusters_in_both_groups_narrow_a_gap():
    """Pairs of rows, one in each group, which are mostly decided alike: the gap varies as the differences in pairs."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, (200, 2))
    right = np.repeat(rng.random((200, 1)) < 0.7, 2, axis=1) ^ (rng.random((200, 2)) < [0.0, 0.1])
    decided = np.where(right, y, 1 - y).ravel()
    group, pair = np.tile(["a", "b"], 200), np.repeat(np.arange(200), 2)
    rows = (decided, None, y.ravel(), "accuracy gap")
    options = {"against": y.ravel(), "sensitive_features": group}
    found = [mw.evaluate(*rows, **options, groups=own)["accuracy gap"].value for own in (pair, None)]
    apart = right[:, 0].astype(float) - right[:, 1]
    halves = [t.ppf(0.975, 199) * np.std(apart, ddof=1), 1.96 * np.sqrt(np.var(right, axis=0).sum())]
    for one, half in zip(found, halves, strict=True):
        assert one.high == pytest.approx(abs(apart.mean()) + half / np.sqrt(200), rel=0.02)


def test_where_the_worst_group_is_plain_rules_are_compared_on_its_rows():
    rng = np.random.default_rng(1)
    group, y = rng.integers(0, 3, 900), rng.integers(0, 2, 900)
    first = np.where(rng.random(900) < np.array([0.6, 0.95, 0.95])[group], y, 1 - y)
    second = np.where(rng.random(900) < 0.02, 1 - first, first)  # nearly the same decisions
    worst = mw.evaluate(first, None, y, "worst_group(accuracy)", against=second, sensitive_features=group)
    own = group == 0
    alone = mw.evaluate(first[own], None, y[own], "accuracy", against=second[own])["accuracy"].difference
    difference = worst["worst_group(accuracy)"].difference
    assert (difference.low, difference.high) == pytest.approx((alone.low, alone.high), abs=1e-3)


# -------------------------------------------------------------------------------------------------------------- costs


def test_costs_per_row():
    solution = mw.optimize(P, Y, "cost", cost=COST, strategy=mw.Strategy(recalibrate=False))
    decided, plain = solution.predict(P, cost=COST), (P > 0.5).astype(int)
    found = mw.evaluate(solution, P, Y, ["cost", "accuracy"], cost=COST)
    paid, other = (np.where(own == Y, 0.0, COST[np.arange(N), Y]) for own in (decided, plain))
    assert found["cost"].value.estimate == pytest.approx(-paid.mean()) == pytest.approx(solution.value)
    assert found["cost"].baseline.estimate == pytest.approx(-other.mean())
    assert found["cost"].difference.estimate == pytest.approx((other - paid).mean())
    assert found["accuracy"].value.estimate == pytest.approx((decided == Y).mean())
    rng = np.random.default_rng(0)
    means = [(other - paid)[rng.integers(0, N, N)].mean() for _ in range(2000)]
    half = (found["cost"].difference.high - found["cost"].difference.low) / 2
    assert half >= 0.9 * 1.96 * np.std(means)
    weight = rng.random(N)
    weighted = mw.evaluate(0.3, P, Y, cost=COST, sample_weight=weight)["cost"].value.estimate
    assert weighted == pytest.approx(-np.average(np.where((P > 0.3) == Y, 0.0, COST[np.arange(N), Y]), weights=weight))
    mixture = mw.MixtureRule((RULE, OTHER), np.array([0.25, 0.75]))
    each = [np.where(own.predict(P) == Y, 0.0, COST[np.arange(N), Y]).mean() for own in (RULE, OTHER)]
    assert mw.evaluate(mixture, P, Y, cost=COST)["cost"].value.estimate == pytest.approx(-np.dot([0.25, 0.75], each))


def test_no_mean_costs_less_than_the_cheapest_decision():
    rng = np.random.default_rng(0)
    proba, y, cost = rng.beta(1, 2, 12), np.eye(12, dtype=int)[0], rng.lognormal(0, 2, (12, 2))
    table = np.stack([np.diag(row[::-1]) + np.diag(row)[::-1] for row in cost]) + 1.0  # no decision is for nothing
    for costs, least in ((cost, 0.0), (table, table.min())):
        found = mw.evaluate(0.3, proba, y, cost=costs)["cost"]
        for one in (found.value, found.baseline):
            assert one.low < one.estimate < one.high <= -least


def test_what_decisions_would_cost_by_class():
    rule = mw.CostRule((np.array([0, 1]),), abstain_label="?", abstain_cost=0.5)
    decided = np.arange(N) % 3
    by_class = rule.paid_by_class(COST, decided)
    for k in range(2):
        assert (by_class[:, k] == rule.paid(COST, np.full(N, k), decided)).all()


# ------------------------------------------------------------------------------------------------- models and tables


def test_two_models_each_with_its_own_rule():
    found = mw.evaluate({"small": (RULE, P), "large": (OTHER, Q)}, Y, ["f1", "balanced_accuracy"])
    assert found.title == "small"
    assert found.against == "large"
    assert repr(found).splitlines()[1].split() == ["metric", "small", "large", "difference"]
    decided = [RULE.predict(P), OTHER.predict(Q)]
    for name, score in (("f1", sk.f1_score), ("balanced_accuracy", sk.balanced_accuracy_score)):
        one = found[name]
        values = [score(Y, own) for own in decided]
        assert [one.value.estimate, one.baseline.estimate] == pytest.approx(values)
        assert one.difference.estimate == pytest.approx(values[0] - values[1])
    rng = np.random.default_rng(1)
    paired = []
    for _ in range(1000):
        rows = rng.integers(0, N, N)
        hits = [np.sum(own[rows] & Y[rows]) for own in decided]
        sums = [np.sum(own[rows]) + np.sum(Y[rows]) for own in decided]
        paired.append(2 * hits[0] / sums[0] - 2 * hits[1] / sums[1])
    half = (found["f1"].difference.high - found["f1"].difference.low) / 2
    assert half == pytest.approx(1.96 * np.std(paired), rel=0.15)
    keyword = mw.evaluate({"small": (RULE, P), "large": (OTHER, Q)}, y=Y, metrics=["f1", "balanced_accuracy"])
    assert keyword.to_dict() == found.to_dict()


def test_two_models_may_be_solutions_thresholds_or_decisions():
    first, second = mw.optimize(P, Y, "f1"), mw.optimize(Q, Y, "f1")
    found = mw.evaluate({"a": (first, P), "b": (second, Q)}, Y)
    assert list(found) == ["f1"]
    assert found["f1"].baseline.estimate == pytest.approx(sk.f1_score(Y, second.predict(Q)))
    mixed = mw.evaluate({"a": (0.3, P), "b": (second.predict(Q), None)}, Y, "f1")
    assert mixed["f1"].value.estimate == pytest.approx(sk.f1_score(Y, P > 0.3))
    assert mixed["f1"].baseline == found["f1"].baseline
    by_group = mw.evaluate({"a": (0.3, P), "b": (0.3, Q)}, Y, ["f1", "equalized_odds"], sensitive_features=GROUP)
    assert by_group["equalized_odds"].baseline.estimate == pytest.approx(
        np.ptp(rates((Q > 0.3).astype(int))[["recall", "false"]].to_numpy(), axis=0).max()
    )
    document = mw.load_rule(RULE.to_json()).to_dict()  # a dict, but no pair of models
    assert mw.evaluate(document, P, Y, "f1")["f1"] == mw.evaluate(RULE, P, Y, "f1")["f1"]


def check_close(found, expected):
    """Comparisons are the same up to rounding: those of tables are sums over kinds of rows."""
    for side in ("value", "baseline", "difference"):
        for name in ("estimate", "low", "high"):
            one, other = (getattr(getattr(comparison, side), name) for comparison in (found, expected))
            assert one == pytest.approx(other, abs=1e-12)


def test_rows_of_a_table(tmp_path):
    frame = pd.DataFrame({"id": np.arange(N), "p_0": 1 - P, "p_1": P, "q": Q, "label": Y, "w": COST[:, 0]})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    frame.to_parquet(tmp_path / "rows.parquet")
    whole = mw.evaluate(RULE, P, Y, ["f1", "recall"], sample_weight=COST[:, 0])
    for name in ("rows.csv", "rows.parquet"):
        table = mw.Table(tmp_path / name, proba_prefix="p_")
        found = mw.evaluate(RULE, table, "label", ["f1", "recall"], sample_weight="w")
        assert found["f1"].value.estimate == pytest.approx(whole["f1"].value.estimate, abs=1e-12)
        assert found["recall"].difference.high == pytest.approx(whole["recall"].difference.high, abs=1e-9)
    single = mw.Table(tmp_path / "rows.parquet", proba="q")
    models = mw.evaluate({"p": (RULE, table), "q": (OTHER, single)}, "label", "f1")
    check_close(models["f1"], mw.evaluate({"p": (RULE, P), "q": (OTHER, Q)}, Y, "f1")["f1"])
    by_threshold = mw.evaluate(0.3, table, "label", "equalized_odds", sensitive_features=GROUP)
    whole = mw.evaluate(RULE, P, Y, "equalized_odds", sensitive_features=GROUP)
    check_close(by_threshold["equalized_odds"], whole["equalized_odds"])
    tags = pd.DataFrame({"a": P, "b": Q, "y_a": Y, "y_b": 1 - Y})
    rule = WeightedRule.from_thresholds([0.3, 0.6])
    found = mw.evaluate(rule, mw.Table(tags, proba=["a", "b"]), ["y_a", "y_b"], "f1_macro")["f1_macro"]
    check_close(found, mw.evaluate(rule, np.column_stack([P, Q]), np.column_stack([Y, 1 - Y]), "f1_macro")["f1_macro"])
    with pytest.raises(ValueError, match="evaluate: y must be one name, as the rule has outputs"):
        mw.evaluate(RULE, table, ["label", "id"], "f1")


# ------------------------------------------------------------------------------------------------- what is refused


def test_a_gap_needs_labelled_rows_of_two_groups():
    labels = np.where(GROUP == "a", Y, np.nan)
    with pytest.raises(ValueError, match="accuracy gap compares groups, but only 'a' has labelled rows; provide"):
        mw.evaluate(RULE, P, labels, "accuracy gap", sensitive_features=GROUP)


def test_labels_that_are_missing_are_so_in_both_tables():
    some = np.arange(N) % 7 != 0
    labels = pd.array(np.where(some, Y, -9), dtype="Int64")
    labels[~some] = pd.NA
    frame = pd.DataFrame({"p": P, "q": Q, "label": labels})
    tables = {"p": (RULE, mw.Table(frame, proba="p")), "q": (OTHER, mw.Table(frame, proba="q"))}
    found = mw.evaluate(tables, "label", "f1")["f1"]
    assert found == mw.evaluate({"p": (RULE, P), "q": (OTHER, Q)}, labels, "f1")["f1"]
    assert found.baseline.estimate == pytest.approx(sk.f1_score(Y[some], OTHER.predict(Q)[some]))


def test_models_must_have_the_same_rows_whatever_their_rules_are():
    said = r"both models must have probabilities of the same 600 rows, in the same order, got \[600, 500\]"
    grouped = mw.GroupedRule((RULE, OTHER, RULE), ("a", "b", "c"))
    by_row = mw.CostRule((np.array([0, 1]),))
    for rule, options in ((RULE, {}), (grouped, {"sensitive_features": GROUP}), (by_row, {"cost": COST})):
        with pytest.raises(ValueError, match=said):
            mw.evaluate({"a": (rule, P), "b": (rule, Q[:500])}, Y, "accuracy", **options)


@pytest.mark.parametrize("metrics", [None, "cost", "accuracy"])
def test_a_rule_by_costs_asks_for_them(metrics):
    rule = mw.optimize(P, Y, "cost", cost=COST).rule
    with pytest.raises(ValueError, match="evaluate: cost must give the costs of the decisions about each row"):
        mw.evaluate(rule, P, Y, metrics)


def test_a_rule_keeps_the_positive_class_of_outputs_that_do_not_show_it():
    proba = [np.column_stack([1 - P, P]), np.column_stack([1 - Q, Q])]
    labels = pd.DataFrame({"number": Y.astype(object), "word": np.array(["a", "b"], dtype=object)[Y]})
    rule = mw.optimize(proba, labels, "f1", average="macro", pos_label=[1, "b"]).rule
    found = mw.evaluate(rule, proba, labels, "recall", average="macro")["recall"]
    assert found == mw.evaluate(rule, proba, labels, "recall", average="macro", pos_label=[1, "b"])["recall"]
    decided = rule.predict(proba)
    recalls = [np.mean(decided[Y == 1, 0] == 1), np.mean(decided[Y == 1, 1] == "b")]
    assert found.value.estimate == pytest.approx(np.mean(recalls))


def test_messages_about_two_models_name_them():
    three = WeightedRule.from_weights([1.0, 1.0, 1.0])
    said = (
        r"the rules of 'small' and 'large' must have the same outputs and classes, in the same order, got \[0, 1\] and"
    )
    with pytest.raises(ValueError, match=said):
        mw.evaluate({"small": (RULE, P), "large": (three, np.full((N, 3), 1 / 3))}, Y, "accuracy")
    with pytest.raises(ValueError, match="against must be a rule for the same outputs and classes as the rule"):
        mw.evaluate(RULE, P, Y, "accuracy", against=three)
    first, second = (mw.GroupedRule((RULE, OTHER), names) for names in (("a", "b"), ("a", "c")))
    with pytest.raises(ValueError, match="the rules of 'small' and 'large' must have the same groups"):
        mw.evaluate({"small": (first, P), "large": (second, Q)}, Y, "accuracy", sensitive_features=GROUP)


def test_pairs_of_models_may_be_lists():
    found = mw.evaluate({"a": [RULE, P], "b": [OTHER, Q]}, Y, "f1")
    assert found.to_dict() == mw.evaluate({"a": (RULE, P), "b": (OTHER, Q)}, Y, "f1").to_dict()


@pytest.mark.parametrize("rule", [{0, 1}, b"01", range(N), np.bool_(True)])
def test_what_has_no_order_or_is_no_array_is_no_decisions(rule):
    with pytest.raises(TypeError, match="evaluate: rule must be a rule"):
        mw.evaluate(rule, P, Y, "f1")


def test_decisions_may_be_arrow_arrays():
    pa = pytest.importorskip("pyarrow")
    decided = RULE.predict(P)
    assert mw.evaluate(pa.array(decided), P, Y, "f1").to_dict() == mw.evaluate(decided, P, Y, "f1").to_dict()
