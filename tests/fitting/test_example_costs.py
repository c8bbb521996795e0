"""Costs per row: every row by its own, beside plain loops; what it saves; files, refusals and estimators."""

import json

import numpy as np
import pytest
import sklearn
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtri
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import metricwise as mw
import worlds
from metricwise.data.probabilities import read_proba
from metricwise.fitting.example_costs import _left_out, with_costs
from metricwise.inference.costs import heaviest_share, mean_interval
from metricwise.inference.spread import Spread
from problems import read_problem
from profiles import examples


def drawn(seed, n=300, k=3):
    rng = np.random.default_rng(seed)
    P, y = worlds.multiclass(n, np.ones(k), seed=rng)
    return P, y, rng.lognormal(0, 1, (n, k)), rng.normal(1, 1, (n, k, k + 1))


def cheapest(eta, cost, k, price=None):
    """The decision of least expected cost about one row, by hand: the lowest of equals."""
    found = []
    for j in range(k):
        of_wrong = [0.0 if i == j else cost[i] for i in range(k)] if np.ndim(cost) == 1 else [row[j] for row in cost]
        found.append(sum(p * c for p, c in zip(eta, of_wrong, strict=True)))
    if price is not None:
        found.append(price)
    elif np.ndim(cost) == 2 and len(cost[0]) > k:
        found.append(sum(p * row[k] for p, row in zip(eta, cost, strict=True)))
    return min(range(len(found)), key=lambda j: (round(found[j], 12), j))


def paid(cost, y, d, price=None):
    k = cost.shape[1]
    out = []
    for n, (true, decided) in enumerate(zip(y, d, strict=True)):
        if price is not None and decided == k:
            out.append(price)
        elif cost.ndim == 2:
            out.append(0.0 if true == decided else cost[n, true])
        else:
            out.append(cost[n, true, decided])
    return np.array(out)


@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("kind", ["wrong", "table", "abstain", "price", "price of tables"])
@given(seed=st.integers(0, 10_000), weighted=st.booleans())
@examples(5)
def test_every_row_is_decided_and_valued_by_its_own_costs(k, kind, seed, weighted):
    P, y, wrong, wide = drawn(seed, 30, k)
    cost = {"wrong": wrong, "table": wide[:, :, :k], "abstain": wide, "price": wrong}.get(kind, wide[:, :, :k])
    price = 0.3 if kind.startswith("price") else None
    abstain = {"abstain": True}.get(kind, price)
    w = np.random.default_rng(seed).integers(1, 4, 30) / 2 if weighted else None
    solution = mw.optimize(
        P,
        y,
        "cost",
        cost=cost,
        abstain=abstain,
        sample_weight=w,
        classes=list(range(k)),
        strategy=mw.Strategy(recalibrate=False),
    )
    codes = [cheapest(eta, own, k, price) for eta, own in zip(P, cost.tolist(), strict=True)]
    labels = [*range(k), -1]
    assert solution.rule.predict(P, cost=cost).tolist() == [labels[j] for j in codes]
    value = -np.average(paid(cost, y, codes, price), weights=w)
    assert solution.value == pytest.approx(value)
    assert solution.baseline == pytest.approx(-np.average(paid(cost, y, P.argmax(axis=1), price), weights=w))
    assert solution.rule.value(P, y, cost, sample_weight=w) == pytest.approx(value)
    shares = solution.rule.distribution(P, cost=cost)
    assert shares.argmax(axis=1).tolist() == codes
    assert shares.shape[1] == k + (abstain is not None)
    again = mw.load_rule(solution.rule.to_json())
    assert again == solution.rule
    assert again.predict(P, cost=cost).tolist() == solution.rule.predict(P, cost=cost).tolist()


def test_behind_the_link_and_without_labels():
    P, y, cost, _ = drawn(1, 2000)
    sharp = P**3 / (P**3).sum(axis=1, keepdims=True)
    solution = mw.optimize(sharp, y, "cost", cost=cost)
    eta = solution.rule.link.apply(read_proba(sharp)).blocks[0][:, 0]
    assert solution.rule.predict(sharp, cost=cost).tolist() == (eta * cost).argmax(axis=1).tolist()
    assert solution.value > solution.baseline
    assert solution.gain.low > 0
    assert solution.value_on_new_rows.low < -solution.value * -1 < solution.value_on_new_rows.high
    raw = mw.optimize(sharp, y, "cost", cost=cost, strategy=mw.Strategy(recalibrate=False))
    assert solution.value > raw.value  # twice as sure as it should be, which the link mends
    free = mw.optimize(P, None, "cost", cost=cost)
    expected = np.mean(np.sum(P * cost, axis=1) - (P * cost).max(axis=1))
    assert free.value == pytest.approx(-expected)
    assert free.upper_bound == free.value
    assert free.counted == "expected"


def test_the_gain_is_what_new_rows_show_and_knows_groups():
    P, y, cost, _ = drawn(2, 1500)
    solution = mw.optimize(P, y, "cost", cost=cost)
    new, labels, costs, _ = drawn(3, 100_000)
    seen = solution.rule.value(new, labels, costs)
    plain = -np.mean(paid(costs, labels, new.argmax(axis=1)))
    assert solution.gain.low < seen - plain < solution.gain.high
    assert solution.value_on_new_rows.low < seen < solution.value_on_new_rows.high
    copies = [np.repeat(part, 4, axis=0) for part in (P, y, cost)]
    groups = np.repeat(np.arange(len(y)), 4)
    together = mw.optimize(copies[0], copies[1], "cost", cost=copies[2], groups=groups)
    width = solution.gain.high - solution.gain.low
    assert together.gain.high - together.gain.low == pytest.approx(width, rel=0.1)


def test_a_rule_that_decides_as_argmax_does_saves_nothing_for_sure():
    eta, y, *_ = drawn(0, k=2)
    solution = mw.optimize(eta, y, "cost", cost=np.ones((len(y), 2)), strategy=mw.Strategy(recalibrate=False))
    assert (solution.gain.estimate, solution.gain.low, solution.gain.high) == (0, 0, 0)
    assert solution.value_on_new_rows.low < solution.value_on_new_rows.high


def test_rows_are_judged_behind_links_that_have_not_seen_them():
    """Labels that nothing predicts: a link makes those that it was fitted to likelier than chance, and others less."""
    loss = []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        p, y = rng.random(40), rng.integers(0, 2, 40)
        problem, rule = with_costs(read_problem(p, y, "accuracy").sample(40, 0), np.ones((40, 2)), None)
        judges, _, eta = _left_out(problem, rule, True, seed)
        loss.append(-np.mean(np.log(eta[np.arange(40), judges.source.rows.codes[:, 0]])))
    assert np.mean(loss) > np.log(2)


def test_very_many_rows_are_judged_by_some_of_them():
    P, y, cost, _ = drawn(4, 30_000)
    solution = mw.optimize(P, y, "cost", cost=cost)
    assert solution.gain.low < solution.value - solution.baseline < solution.gain.high


def fraud(rng, n, amount):
    """One row in ten is a fraud; missing it costs its amount, checking costs 5."""
    p = worlds.sigmoid(2.2 * rng.normal(size=n) - 3.5)
    cost = np.zeros((n, 2, 2))
    cost[:, 1, 0], cost[:, :, 1] = amount, 5.0
    return p, worlds.draw_flags(p, rng), cost


def test_intervals_of_long_tails_cover():
    """Before, the largest losses were missing in the mean and in its error alike: 69 % of the gains, all too low."""
    rng = np.random.default_rng(2)
    places = (np.arange(400_000) + 0.5) / 400_000
    p, _, cost = fraud(rng, len(places), np.exp(2 + 2 * ndtri(rng.permutation(places))))
    expected = (1 - p)[:, None] * cost[:, 0] + p[:, None] * cost[:, 1]
    truth = expected[np.arange(len(p)), (p > 0.5).astype(int)].mean() - expected.min(axis=1).mean()
    gains = []
    for _ in range(60):
        p, y, cost = fraud(rng, 500, np.exp(2 + 2 * rng.normal(size=500)))
        gains.append(mw.optimize(p, y, "cost", cost=cost).gain)
    assert np.mean([one.low <= truth <= one.high for one in gains]) >= 0.9


def test_errors_of_long_tails_are_those_of_rows_and_labels_drawn_anew():
    rng = np.random.default_rng(0)
    eta = rng.dirichlet([1, 1, 1], 400)
    by_class = rng.lognormal(0, 1, (400, 3))
    mean, low, high = mean_interval(by_class.min(axis=1), np.ones(400), Spread(None, None, 400), by_class, eta)
    assert mean == pytest.approx(by_class.min(axis=1).mean())
    rows = rng.integers(0, 400, (4_000, 400))
    labels = worlds.draw_codes(eta[rows], rng)
    drawn_anew = by_class[rows, labels].mean(axis=1)
    assert high - mean == pytest.approx(1.96 * drawn_anew.std(), rel=0.04)
    assert mean - low == pytest.approx(high - mean)


def test_costs_that_are_never_negative_have_no_gains_in_their_interval():
    rng = np.random.default_rng(3)
    proba = rng.beta(1, 6, 120)
    y = (rng.random(120) < proba).astype(int)
    cost = np.zeros((120, 2, 2))
    cost[:, 1, 0], cost[:, 0, 1] = rng.lognormal(0.0, 2.5, 120), 1.0
    estimate = mw.optimize(proba, y, "cost", cost=cost).value_on_new_rows
    assert estimate.low < estimate.estimate < estimate.high <= 0


def test_it_is_said_when_few_rows_carry_the_whole():
    rng = np.random.default_rng(0)
    p, y, cost = fraud(rng, 3_000, rng.lognormal(4, 0.2, 3_000))
    assert "rows carry" not in mw.optimize(p, y, "cost", cost=cost).status
    at = int(np.flatnonzero(y * (p < 0.5))[0])
    cost[at, 1, 0] = 1e5
    assert "Ten rows account for 100 % of the variance of the savings" in mw.optimize(p, y, "cost", cost=cost).status
    values = np.arange(100.0)
    squares = np.sort((values - values.mean()) ** 2)
    assert heaviest_share(values, np.ones(100)) == pytest.approx(squares[-10:].sum() / squares.sum())


def test_rows_in_time_are_said_to_depend():
    P, y, cost, _ = drawn(3)
    said = mw.optimize(P, y, "cost", cost=cost, groups=mw.InTime(np.arange(300), 30)).status
    assert "depend on each other over at most 30 rows (as given)" in said


def test_missing_labels_cost_nothing():
    P, y, cost, _ = drawn(5)
    labels = y.astype(float)
    labels[::3] = np.nan
    seen = np.flatnonzero(~np.isnan(labels))
    solution = mw.optimize(P, labels, "cost", cost=cost, classes=[0, 1, 2], strategy=mw.Strategy(recalibrate=False))
    d = (P * cost).argmax(axis=1)
    assert solution.value == pytest.approx(-np.mean(paid(cost[seen], y[seen], d[seen])))


@pytest.mark.parametrize(
    ("cost", "options", "message"),
    [
        (lambda c, w: c[:5], {}, r"cost must have shape \(300, 3\) or \(300, 3, 3\), for each row and true class, got"),
        (lambda c, w: np.ones((3, 3)), {}, r"for one table for all rows, use metric=metrics.Cost\(cost\)"),
        (lambda c, w: w, {}, r"got \(300, 3, 4\)"),
        (lambda c, w: c, {"abstain": True}, r"the last column is the cost of abstaining, or set abstain= to the cost"),
        (lambda c, w: w, {"abstain": 0.2}, r"got \(300, 3, 4\)"),
        (lambda c, w: np.where(c > 5, np.nan, c), {}, "cost must be finite, got NaN or infinity in row"),
        (lambda c, w: "dear", {}, "cost must be an array of numbers, got str"),
        (
            lambda c, w: c,
            {"metric": "accuracy"},
            "metric must be 'cost', minus the mean cost, if cost= is given, got 'accuracy'",
        ),
        (lambda c, w: c, {"subject_to": "recall[1] >= 0.1"}, "subject_to must be left out if cost= gives costs"),
        (lambda c, w: c, {"strategy": mw.Strategy(randomized=True)}, "randomized must be left out"),
        (lambda c, w: c, {"strategy": mw.Strategy(solver="path")}, "solver must be left out"),
        (lambda c, w: c, {"strategy": mw.Strategy(confusion="labels")}, "confusion must be left out"),
        (lambda c, w: c, {"prior": [0.2, 0.3, 0.5]}, "prior must be left out"),
    ],
)
def test_what_is_refused(cost, options, message):
    P, y, wrong, wide = drawn(6)
    metric = options.get("metric", "cost")
    options = {key: value for key, value in options.items() if key != "metric"}
    with pytest.raises(ValueError, match=message):
        mw.optimize(P, y, metric, cost=cost(wrong, wide), **options)


def test_one_output_only():
    P = np.random.default_rng(0).random((20, 2))
    with pytest.raises(ValueError, match="cost= gives costs per row for a single output, but y is 2-D"):
        mw.optimize(P, (P > 0.5).astype(int), "cost", cost=np.ones((20, 2)))


def test_predict_refuses_costs_that_are_missing_or_of_another_shape():
    P, y, wrong, wide = drawn(7)
    rule = mw.optimize(P, y, "cost", cost=wrong).rule
    with pytest.raises(
        ValueError, match=r"CostRule.predict: cost must give the costs of decisions about each of the 300"
    ):
        rule.predict(P)
    with pytest.raises(ValueError, match=r"CostRule.predict: cost must have shape \(300, 3\)"):
        rule.predict(P, cost=wrong[:-1])
    assert rule.predict(P, cost=wide[:, :, :3]).shape == (300,)  # either shape, whatever it was fitted to
    with pytest.raises(ValueError, match="evaluate: cost must give the costs of the decisions about each row"):
        mw.evaluate(rule, P, y, "accuracy")
    with pytest.raises(ValueError, match="must be a rule that decides by probabilities alone"):
        mw.FixedRuleClassifier(LogisticRegression(), rule.to_dict()).fit(P, y)
    with pytest.raises(ValueError, match=r"y must hold only the classes \[0, 1, 2\], got 5"):
        rule.value(P, np.full(300, 5), wrong)
    with pytest.raises(ValueError, match="y must have one label for each of the 300 rows"):
        rule.value(P, y[:-1], wrong)


def test_files_are_checked():
    P, y, _, wide = drawn(8)
    rule = mw.optimize(P, y, "cost", cost=wide, abstain=True).rule
    document = json.loads(rule.to_json())
    assert mw.CostRule.from_json(rule.to_json()) == rule
    for change, message in (
        ({"classes": [[0, 1, 2], [0, 1]]}, "classes must be those of one output|multioutput must be"),
        ({"abstain_cost": "dear"}, "abstain_cost must be made of numbers"),
        ({"abstain_label": 2}, "abstain_label must not be one of the classes"),
        (
            {"kind": "costs"},
            "kind must be 'weighted', 'mixture', 'grouped', 'segmented', 'row_costs', .* or 'label_sets', got",
        ),
        ({"more": 1}, "must have only the fields"),
    ):
        with pytest.raises(ValueError, match=message):
            mw.load_rule(json.dumps({**document, **change}))
    with pytest.raises(ValueError, match="abstain_cost must be a finite number, given together with abstain_label"):
        mw.CostRule((np.arange(2),), abstain_cost=1.0)
    said = rule.describe()
    assert "given the costs of the row" in said
    assert "Abstain (-1) if every class costs more than an abstention: as given by the costs of the row." in said


def test_estimators_take_costs_to_fit_predict_and_score():
    rng = np.random.default_rng(9)
    X = rng.normal(size=(400, 3))
    y = (X + rng.gumbel(size=X.shape)).argmax(axis=1)
    cost = rng.lognormal(0, 1, (400, 3))
    model = mw.MetricOptimalClassifierCV(LogisticRegression(), metric="cost").fit(X, y, cost=cost)
    predicted = model.predict(X, cost=cost)
    assert model.score(X, y, cost=cost) == pytest.approx(-np.mean(paid(cost, y, predicted)))
    assert predicted.tolist() == model.rule_.predict(model.predict_proba(X), cost=cost).tolist()
    assert model.decision_distribution(X, cost=cost).argmax(axis=1).tolist() == predicted.tolist()
    with pytest.raises(ValueError, match="cost must give the costs"):
        model.predict(X)
    with pytest.raises(ValueError, match=r"MetricOptimalClassifierCV: cost must have shape \(400, 3\)"):
        mw.MetricOptimalClassifierCV(LogisticRegression(), metric="cost").fit(X, y, cost=cost[:-1])
    with pytest.raises(ValueError, match="metric must be 'cost'"):
        mw.MetricOptimalClassifierCV(LogisticRegression()).fit(X, y, cost=cost)
    plain = mw.MetricOptimalClassifierCV(
        LogisticRegression(), strategy=mw.Strategy(recalibrate=False, confusion="expected")
    ).fit(X, y)
    with pytest.raises(ValueError, match="cost is only for rules that were fitted to costs per row"):
        plain.predict(X, cost=cost)
    pipe = make_pipeline(StandardScaler(), mw.MetricOptimalClassifierCV(LogisticRegression(), metric="cost"))
    pipe.fit(X, y, metricoptimalclassifiercv__cost=cost)
    assert pipe.predict(X, cost=cost).shape == (400,)


def test_costs_are_routed():
    rng = np.random.default_rng(10)
    X = rng.normal(size=(300, 2))
    y = (X[:, 0] + rng.logistic(size=300) > 0).astype(int)
    cost = rng.lognormal(0, 1, (300, 2))
    with sklearn.config_context(enable_metadata_routing=True):
        model = mw.MetricOptimalClassifierCV(LogisticRegression(), metric="cost", cv=3)
        model = model.set_fit_request(cost=True).set_predict_request(cost=True).set_score_request(cost=True)
        scores = cross_validate(model, X, y, params={"cost": cost}, cv=2)["test_score"]
        assert (scores < 0).all()
        search = GridSearchCV(model, {"estimator__C": [0.01, 1.0]}, cv=2).fit(X, y, cost=cost)
        assert search.score(X, y, cost=cost) < 0
        pipe = make_pipeline(StandardScaler(), model).fit(X, y, cost=cost)
        assert pipe.predict(X, cost=cost).shape == (300,)
