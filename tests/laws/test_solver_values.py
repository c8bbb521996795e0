"""Solutions: what is reported is what the rule does, and what the rule does holds beyond the rows it was fitted on."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as sk
from sklearn.linear_model import LogisticRegression

import metricwise as mw
import worlds
from laws.metric_records import having, make
from profiles import examples

pytestmark = pytest.mark.usefixtures("engine")

LABELS = {"confusion": "labels", "recalibrate": False}
EXPECTED = {"confusion": "expected", "recalibrate": False}


# --------------------------------------------------------------- the value reported is the value of the predictions


def rounded(rng, n, k):
    """Probabilities of two decimals, whose rows sum to 1 only almost, as rounding leaves them."""
    return rng.dirichlet(np.ones(k), size=n).round(2)


BINARY = {
    "f1": lambda y, p, w: sk.f1_score(y, p, sample_weight=w, zero_division=0),
    "jaccard": lambda y, p, w: sk.jaccard_score(y, p, sample_weight=w, zero_division=0),
    "kappa": lambda y, p, w: sk.cohen_kappa_score(y, p, sample_weight=w),
    "mcc": lambda y, p, w: sk.matthews_corrcoef(y, p, sample_weight=w),
    "balanced_accuracy": lambda y, p, w: sk.balanced_accuracy_score(y, p, sample_weight=w),
    "accuracy": lambda y, p, w: sk.accuracy_score(y, p, sample_weight=w),
    "g_mean": lambda y, p, w: float(np.sqrt(np.prod(sk.recall_score(y, p, average=None, sample_weight=w)))),
}
MULTICLASS = {
    "kappa": BINARY["kappa"],
    "quadratic_kappa": lambda y, p, w: sk.cohen_kappa_score(y, p, weights="quadratic", sample_weight=w),
    "linear_kappa": lambda y, p, w: sk.cohen_kappa_score(y, p, weights="linear", sample_weight=w),
    "micro_f1": lambda y, p, w: sk.f1_score(
        y, p, labels=range(1, 4), average="micro", sample_weight=w, zero_division=0
    ),
    "balanced_accuracy": BINARY["balanced_accuracy"],
}
RATIO_SOLVERS = ["auto", "path", "dinkelbach", "bisection"]


@examples(60)
@given(
    seed=st.integers(0, 2**32 - 1),
    name=st.sampled_from(sorted(BINARY)),
    dtype=st.sampled_from([np.float32, np.float64]),
    two_columns=st.booleans(),
    recalibrate=st.booleans(),
    solver=st.sampled_from(RATIO_SOLVERS),
)
def test_value_is_what_the_rule_gets_binary(seed, name, dtype, two_columns, recalibrate, solver):
    rng = np.random.default_rng(seed)
    proba = rounded(rng, 60, 2).astype(dtype)
    y = worlds.draw_codes(worlds.normalized(proba), rng)
    y[:2] = [0, 1]
    weight = rng.integers(1, 4, size=60) / 2
    given = proba if two_columns else proba[:, 1]
    solver = "sweep" if name in ("mcc", "g_mean") else solver
    solution = mw.optimize(
        given,
        y,
        name,
        sample_weight=weight,
        strategy=mw.Strategy(solver=solver, confusion="labels", recalibrate=recalibrate),
    )
    predicted = solution.rule.predict(given)
    assert solution.value == pytest.approx(BINARY[name](y, predicted, weight), abs=1e-10)
    assert solution.optimized_value == pytest.approx(solution.value, abs=1e-12)
    assert solution.baseline == pytest.approx(BINARY[name](y, plain_argmax(given), weight), abs=1e-10)


def plain_argmax(proba):
    return (1 - proba.astype(float) < proba).astype(int) if proba.ndim == 1 else proba.argmax(axis=1)


@examples(60)
@given(
    seed=st.integers(0, 2**32 - 1),
    name=st.sampled_from(sorted(MULTICLASS)),
    dtype=st.sampled_from([np.float32, np.float64]),
    recalibrate=st.booleans(),
    count=st.sampled_from(["labels", "expected"]),
    solver=st.sampled_from(RATIO_SOLVERS),
)
def test_value_is_what_the_rule_gets_multiclass(seed, name, dtype, recalibrate, count, solver):
    rng = np.random.default_rng(seed)
    proba = rounded(rng, 50, 4).astype(dtype)
    y = worlds.draw_codes(worlds.normalized(proba), rng)
    y[:4] = range(4)
    solution = mw.optimize(
        proba, y, name, strategy=mw.Strategy(solver=solver, confusion=count, recalibrate=recalibrate)
    )
    truth = MULTICLASS[name](y, solution.rule.predict(proba), None)
    assert solution.value == pytest.approx(truth, abs=1e-10)
    assert solution.baseline == pytest.approx(MULTICLASS[name](y, proba.argmax(axis=1), None), abs=1e-10)
    if count == "labels":
        assert solution.optimized_value == pytest.approx(truth, abs=1e-10)


@examples(30)
@given(
    seed=st.integers(0, 2**32 - 1),
    average=st.sampled_from(["micro", "macro", "samples", "weighted"]),
    dtype=st.sampled_from([np.float32, np.float64]),
    name=st.sampled_from(["f1", "jaccard"]),
)
def test_value_is_what_the_rule_gets_multilabel(seed, average, dtype, name):
    rng = np.random.default_rng(seed)
    proba = rng.random((40, 5)).round(2).astype(dtype)
    y = (rng.random((40, 5)) < proba).astype(int)
    y[:2] = [[0], [1]]
    solution = mw.optimize(proba, y, f"{name}_{average}", strategy=mw.Strategy(**LABELS))
    score = {"f1": sk.f1_score, "jaccard": sk.jaccard_score}[name]
    assert solution.value == pytest.approx(
        score(y, solution.rule.predict(proba), average=average, zero_division=0), abs=1e-10
    )


@examples(30)
@given(
    seed=st.integers(0, 2**32 - 1),
    average=st.sampled_from(["micro", "macro"]),
    solver=st.sampled_from(RATIO_SOLVERS),
    dtype=st.sampled_from([np.float32, np.float64]),
)
def test_value_is_what_the_rule_gets_multioutput(seed, average, solver, dtype):
    """Outputs of 2, 4 and 3 classes, quadratic kappa: scikit-learn's on each output, or on all of them as one."""
    rng = np.random.default_rng(seed)
    sizes = (2, 4, 3)
    proba = [rounded(rng, 40, k).astype(dtype) for k in sizes]
    y = np.column_stack([worlds.draw_codes(worlds.normalized(part), rng) for part in proba])
    y[:4] = np.minimum(np.arange(4)[:, None], np.array(sizes) - 1)
    solution = mw.optimize(proba, y, "quadratic_kappa", average=average, strategy=mw.Strategy(solver=solver, **LABELS))
    predicted = solution.rule.predict(proba)

    def kappa(a, b):
        return sk.cohen_kappa_score(a, b, weights="quadratic")

    truth = kappa(y.ravel(), predicted.ravel())
    if average == "macro":
        truth = np.mean([kappa(y[:, m], predicted[:, m]) for m in range(3)])
    assert solution.value == pytest.approx(truth, abs=1e-10)


@given(problem=worlds.tiny(max_outputs=1, max_classes=2), name=st.sampled_from(["f1", "kappa", "g_mean", "mcc"]))
def test_sweep_is_never_below_argmax(problem, name):
    solution = mw.optimize(
        problem.proba, problem.labels, name, strategy=mw.Strategy(solver="sweep", **LABELS), **problem.arguments()
    )
    assert solution.value >= solution.baseline - 1e-15  # rounding: 0 is 0 in more than one way
    assert "argmax does better" not in solution.status


def test_threshold_decides_alike():
    rng = np.random.default_rng(0)
    proba = rng.random(500).round(2)
    y = (rng.random(500) < proba).astype(int)
    for metric in ("f1", "mcc", "g_mean"):
        rule = mw.optimize(proba, y, metric, strategy=mw.Strategy(**LABELS)).rule
        assert np.array_equal(rule.predict(proba), proba > rule.threshold)


# ------------------------------------------------------------------------------------------- what solvers refuse


@pytest.mark.parametrize(
    ("solver", "metric", "words"),
    [
        ("path", "g_mean", "Path needs a linear or fractional-linear metric. GMean is concave"),
        ("dinkelbach", "mcc", "Dinkelbach needs a linear or fractional-linear metric. MCC is"),
        ("bisection", "g_mean", "Bisection needs a linear or fractional-linear metric"),
        ("closed_form", "f1", "ClosedForm needs a linear metric. FBeta is fractional-linear"),
    ],
)
def test_solvers_say_what_they_need(solver, metric, words):
    with pytest.raises(ValueError, match=words):
        mw.optimize([0.2, 0.7, 0.6], [0, 1, 0], metric, strategy=mw.Strategy(solver=solver, **LABELS))


def test_sweep_needs_binary_outputs():
    with pytest.raises(ValueError, match="Sweep needs binary outputs, got 3 classes"):
        mw.optimize(np.full((3, 3), 1 / 3), [0, 1, 2], "kappa", strategy=mw.Strategy(solver="sweep", **LABELS))


@pytest.mark.parametrize("solver", ["sweep", "path", "dinkelbach", "bisection"])
@pytest.mark.parametrize("count", ["labels", "expected"])
def test_precision_alone_works_and_warns(solver, count):
    """Its best rule predicts the surest rows only, right beside the 0/0 of predicting none."""
    proba, y = np.array([0.1, 0.35, 0.4, 0.8, 0.9]), [0, 1, 0, 1, 1]
    with pytest.warns(UserWarning, match="Precision of the positive class alone"):
        solution = mw.optimize(
            proba, y, "precision", strategy=mw.Strategy(solver=solver, confusion=count, recalibrate=False)
        )
    predicted = solution.rule.predict(proba)
    assert predicted[-1] == 1
    assert solution.value == 1.0
    assert solution.optimized_value == pytest.approx(1.0 if count == "labels" else 0.9)


# ------------------------------------------------------------------------------------------------- the Bayes check

K, N = 4, 1_000_000
FRACTIONAL = {
    **{name: make(name, K, c=1) for name in having(form="ratio", degenerate=False, build=None)},
    "ones_own": mw.metrics.FractionalLinear(np.eye(4) + 0.2, np.ones((4, 4)) + np.arange(4)),
}


def softmax_model(rng, n):
    """True eta of a softmax model in two features, classes of unequal size."""
    X = rng.normal(size=(n, 2)).astype(np.float32)
    logits = X @ np.array([[1.5, -0.5, 0.3, -1.2], [0.2, 1.0, -1.4, 0.4]], dtype=np.float32)
    logits += np.array([1.0, 0.0, -0.5, -1.5], dtype=np.float32)
    return worlds.normalized(np.exp(logits))


@pytest.fixture(scope="module")
def world():
    rng = np.random.default_rng(0)
    eta = softmax_model(rng, N)
    y = (eta.cumsum(axis=1)[:, :-1] < rng.random((N, 1), dtype=np.float32)).sum(axis=1)
    return eta, y, softmax_model(rng, 200_000)


def expected_value(rule, fresh, metric):
    """The metric of a rule on rows whose eta is known, in expectation, by plain sums."""
    codes = rule.predict(fresh)
    C = np.stack([fresh[codes == j].sum(axis=0, dtype=np.float64) for j in range(K)], axis=1)
    return float(metric.value(C / C.sum()))


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(FRACTIONAL))
def test_bayes_regret_vanishes(world, name):
    """True eta, 10^6 labelled rows: the fitted rule is within 1e-3 of the best achievable on fresh rows."""
    eta, y, fresh = world
    metric = FRACTIONAL[name]
    rule = mw.optimize(eta, y, metric, strategy=mw.Strategy(solver="path", **LABELS)).rule
    best = mw.optimize(fresh, None, metric, strategy=mw.Strategy(confusion="expected", recalibrate=False))
    assert best.gap < 1e-6  # a certificate: no rule is better on these rows in expectation
    assert best.value == pytest.approx(expected_value(best.rule, fresh, metric), abs=1e-6)
    assert best.value - expected_value(rule, fresh, metric) < 1e-3


@pytest.mark.slow
def test_bayes_regret_vanishes_for_precision(world):
    """A degenerate aim: too few rows are predicted to count them again, but their eta bounds the precision.

    If class 0 is predicted only where eta_0 > t, its precision on new rows is above t, and no precision is above 1.
    """
    eta, y, _ = world
    with pytest.warns(UserWarning, match="Precision of class 0 alone"):
        rule = mw.optimize(eta, y, mw.metrics.Precision(index=0), strategy=mw.Strategy(solver="path", **LABELS)).rule
    chosen = rule.predict(eta) == 0
    assert chosen.any()
    assert eta[chosen, 0].min() > 0.999


# ------------------------------------------------------------------------------------------ the miscalibration check


def test_recalibration_repairs_what_class_weights_broke():
    """Class-balanced logistic regression, binary F1, 2,000 tuning rows; regret against the best threshold."""
    regrets = {"bisection": [], "recalibrated": []}
    for repeat in range(6):
        rng = np.random.default_rng(repeat)

        def sample(n, rng=rng):
            X = rng.normal(size=(n, 5))
            p = 1 / (1 + np.exp(-(X @ np.array([1.2, -1.0, 0.8, 0.5, 0.0]) - 2.5)))
            return X, (rng.random(n) < p).astype(int)

        X, y = sample(2_000)
        model = LogisticRegression(class_weight="balanced").fit(X, y)
        tune_X, tune_y = sample(2_000)
        test_X, test_y = sample(200_000)
        tune, test = model.predict_proba(tune_X)[:, 1], model.predict_proba(test_X)[:, 1]
        precision, recall, _ = sk.precision_recall_curve(test_y, test)
        best = np.max(2 * precision * recall / np.maximum(precision + recall, 1e-12))
        rules = {
            "bisection": mw.optimize(tune, tune_y, "f1", strategy=mw.Strategy(solver="bisection", **LABELS)).rule,
            "recalibrated": mw.optimize(
                tune, tune_y, "f1", strategy=mw.Strategy(confusion="expected", recalibrate=True)
            ).rule,
        }
        for name, rule in rules.items():
            regrets[name].append(best - sk.f1_score(test_y, rule.predict(test)))
    assert np.mean(regrets["bisection"]) > 0.02
    assert np.mean(regrets["recalibrated"]) <= np.mean(regrets["bisection"]) / 10


def test_dinkelbach_that_goes_to_and_fro_ends_at_the_larger_g_of_the_two():
    """Whatever else is solved beside it: where it stops must not hang on the other outputs."""
    eta = np.repeat([[0.0, 0.0, 1.0]], 8, axis=0)
    eta[[1, 6]], eta[4] = [0.0, 0.51, 0.49], [0.47, 0.27, 0.26]
    other = np.repeat([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3]], 4, axis=0)
    y = np.array([0, 1, 0, 0, 1, 0, 1, 0])
    alone = mw.optimize(eta, y, "micro_f1", classes=[0, 1, 2], strategy=mw.Strategy(solver="dinkelbach", **LABELS))
    assert alone.status.startswith("Oscillates between two rules")
    assert alone.n_passes < 10
    both = np.stack([eta, other], axis=1), np.column_stack([y, y])
    pair = mw.optimize(
        *both, "micro_f1", average="macro", classes=[0, 1, 2], strategy=mw.Strategy(solver="dinkelbach", **LABELS)
    )
    np.testing.assert_array_equal(pair.confusion[0], alone.confusion[0])
