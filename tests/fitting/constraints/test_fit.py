"""``optimize(subject_to=, confidence=)`` against every threshold, every rule and linear programmes."""

import itertools
import warnings

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn import metrics as sk
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV

import metricwise as mw
import programmes
import worlds
from engines import served_by
from metricwise.fitting.constraints.resolve import bind_constraints
from metricwise.goals.constraint_text import read_constraints
from metricwise.goals.resolve import resolve_constraints
from problems import asking, read_problem
from profiles import diagonal, examples
from programmes import best_of_all, denominators_of, spaces_of

AS_GIVEN = {"confidence": None, "strategy": mw.Strategy(confusion="labels", recalibrate=False)}
few_labels = pytest.mark.filterwarnings("ignore:subject_to. Too few labels")


def attempt(*given, **options):
    """A solution, or the words of the refusal."""
    try:
        return mw.optimize(*given, **options)
    except ValueError as error:
        return str(error)


def specificity(y, d, w=None):
    return sk.recall_score(1 - y, 1 - d, sample_weight=w, zero_division=0)


def recall(y, d, w=None):
    return sk.recall_score(y, d, sample_weight=w, zero_division=0)


SCORES = {
    "recall": recall,
    "precision": lambda y, d, w=None: sk.precision_score(y, d, sample_weight=w, zero_division=0),
    "f1": lambda y, d, w=None: sk.f1_score(y, d, sample_weight=w, zero_division=0),
    "jaccard": lambda y, d, w=None: sk.jaccard_score(y, d, sample_weight=w, zero_division=0),
    "kappa": lambda y, d, w=None: sk.cohen_kappa_score(y, d, sample_weight=w),
    "accuracy": lambda y, d, w=None: sk.accuracy_score(y, d, sample_weight=w),
    "balanced_accuracy": lambda y, d, w=None: (recall(y, d, w) + specificity(y, d, w)) / 2,
    "min_recall": lambda y, d, w=None: min(recall(y, d, w), specificity(y, d, w)),
    "mcc": lambda y, d, w=None: sk.matthews_corrcoef(y, d, sample_weight=w),
    "decathlon": lambda y, d, w=None: sk.accuracy_score(y, d, sample_weight=w) ** mw.metrics.Decathlon().gamma,
    "specificity": specificity,
    "false_positive_rate": lambda y, d, w=None: 1 - specificity(y, d, w),
    "share": lambda y, d, w=None: np.average(d, weights=w),
}
AIMS = [name for name in SCORES if name not in ("specificity", "false_positive_rate", "share")]
BOUNDED = [name for name in SCORES if name not in ("mcc", "decathlon")]


@st.composite
def bounds(draw):
    """The name of a metric, and what it must lie between."""
    name = draw(st.sampled_from(BOUNDED))
    low, high = sorted(draw(st.integers(0, 20)) / 20 for _ in range(2))
    side = "floor" if name == "min_recall" else draw(st.sampled_from(["floor", "ceiling", "both"]))
    return name, low if side != "ceiling" else -np.inf, high if side != "floor" else np.inf


def written(name, low, high):
    if np.isinf(high):
        return f"{name} >= {low}"
    return f"{name} <= {high}" if np.isinf(low) else f"{low} <= {name} <= {high}"


def best_threshold(p, y, w, aim, wanted):
    """The best value of the aim over all thresholds that keep what is wanted; None where none does."""
    best = None
    for threshold in [-1.0, *np.unique(p)]:
        d = (p > threshold).astype(int)
        if any(name == "precision" and not d.any() for name, *_ in wanted):
            continue  # 0/0 keeps nothing
        if all(low - 1e-9 <= SCORES[name](y, d, w) <= high + 1e-9 for name, low, high in wanted):
            value = SCORES[aim](y, d, w)
            best = value if best is None else max(best, value)
    return best


# --------------------------------------------------------------------------------------------- binary, with labels


@examples(120)
@given(st.data())
def test_the_best_of_all_thresholds(data):
    n = data.draw(st.integers(4, 16))
    p = np.array(data.draw(st.lists(st.integers(0, 8), min_size=n, max_size=n))) / 8
    y = np.array(data.draw(st.lists(st.integers(0, 1), min_size=n, max_size=n)))
    w = data.draw(st.none() | st.lists(st.integers(1, 3), min_size=n, max_size=n))
    assume(0 < y.sum() < n)
    w = None if w is None else np.array(w, dtype=float)
    aim, wanted = data.draw(st.sampled_from(AIMS)), data.draw(st.lists(bounds(), min_size=1, max_size=2))
    best = best_threshold(p, y, w, aim, wanted)
    call = {"sample_weight": w, "subject_to": [written(*one) for one in wanted], **AS_GIVEN}
    if best is None:
        with pytest.raises(ValueError, match=r"subject_to: no (single )?rule"):
            mw.optimize(p, y, aim, **call)
        return
    solution = mw.optimize(p, y, aim, **call)
    d = solution.rule.predict(p)
    assert solution.value == pytest.approx(best, abs=1e-9)
    assert SCORES[aim](y, d, w) == pytest.approx(best, abs=1e-9)
    for promise, (name, low, high) in zip(solution.constraints, wanted, strict=True):
        assert promise.value == pytest.approx(SCORES[name](y, d, w), abs=1e-9)
        assert low - 1e-9 <= promise.value <= high + 1e-9
        assert (promise.low, promise.high, promise.margin) == (low, high, 0.0)


CURVES = {
    "recall": lambda a, b, P, N: b / P,
    "precision": lambda a, b, P, N: np.divide(b, a + b, out=np.zeros_like(b), where=a + b > 0),
    "share": lambda a, b, P, N: (a + b) / (P + N),
    "false_positive_rate": lambda a, b, P, N: a / N,
    "f1": lambda a, b, P, N: 2 * b / (P + a + b),
    "accuracy": lambda a, b, P, N: (b + N - a) / (P + N),
    "min_recall": lambda a, b, P, N: np.minimum(b / P, 1 - a / N),
    "g_mean": lambda a, b, P, N: np.sqrt(b / P * (1 - a / N)),
    "kappa": lambda a, b, P, N: 2 * (b * (N - a) - (P - b) * a) / ((a + b) * N + (N - a + P - b) * P),
}


@pytest.mark.parametrize("seed", range(24))
def test_many_rows_in_bins_against_all_sorted(seed):
    """More rows than are sorted at once: bins and their bounds decide which thresholds are looked at."""
    rng = np.random.default_rng(seed)
    n = 9000 + 1000 * (seed % 5)
    p = rng.beta(1, rng.uniform(1, 8), n)
    p = np.round(p, 3) if seed % 3 == 0 else p
    y = (rng.random(n) < p ** rng.uniform(0.7, 1.4)).astype(int)
    w = rng.integers(1, 4, n).astype(float) if seed % 2 else np.ones(n)
    order = np.argsort(-p, kind="stable")
    a, b = (np.append(0.0, np.cumsum((w * (y == c))[order])) for c in (0, 1))
    kept = np.concatenate([[True], np.diff(p[order]) < 0, [True]])
    values = {name: curve(a, b, b[-1], a[-1]) for name, curve in CURVES.items()}
    texts = []
    for name in rng.choice(sorted(CURVES), 2, replace=False):
        low, high = np.round(np.quantile(values[name][kept], np.sort(rng.random(2))), 3)
        high = np.inf if name in ("min_recall", "g_mean") or rng.random() < 0.5 else high
        kept &= (values[name] >= low - 1e-12) & (values[name] <= high + 1e-12)
        texts.append(written(name, low, high))
        if name == "precision":
            kept[0] = False
    aim = rng.choice(["recall", "f1", "accuracy", "min_recall", "g_mean", "kappa", "precision"])
    weights = None if seed % 2 == 0 else w
    if not kept.any():
        with pytest.raises(ValueError, match=r"subject_to: no (single )?rule"):
            mw.optimize(p, y, aim, sample_weight=weights, subject_to=texts, **AS_GIVEN)
        return
    solution = mw.optimize(p, y, aim, sample_weight=weights, subject_to=texts, **AS_GIVEN)
    assert solution.value == pytest.approx(values[aim][kept].max(), abs=1e-9)


# -------------------------------------------------------------------------------------------- by probabilities alone


@st.composite
def texts(draw, k):
    def one():
        name = draw(st.sampled_from(["precision", "recall", "share", "false_positive_rate", "f1", "kappa"]))
        j, b = draw(st.integers(0, k - 1)), draw(st.integers(1, 9)) / 10
        if name == "share":
            return f"{max(b - 0.1, 0):.1f} <= share[{j}] <= {b + 0.1:.1f}"
        if name == "false_positive_rate":
            return f"false_positive_rate[{j}] <= {b}"
        return f"kappa >= {b / 2}" if name == "kappa" else f"{name}[{j}] >= {b}"

    return [one() for _ in range(draw(st.integers(1, 3)))]


@examples(60)
@given(st.data())
def test_mixtures_against_the_programme_over_all_rules_and_single_rules_against_every_one(data):
    k = data.draw(st.integers(2, 3))
    eta, wanted = data.draw(worlds.small_proba(k, max_rows=8 if k == 2 else 6))[:, 0], data.draw(texts(k))
    aim = data.draw(st.sampled_from(["accuracy", "balanced_accuracy", "f1[1]", "kappa", "micro_f1", "recall[0]"]))
    classes = list(range(k))
    problem = read_problem(eta, None, aim, classes=classes, constrained=True)
    oracle = problem.oracle("expected")
    objective = problem.objective(oracle)
    limits = bind_constraints(resolve_constraints(read_constraints(wanted), problem.schema), problem.schema, oracle)

    def programme(more):
        ratio = objective.ratio
        return best_of_all(eta[:, None], ratio.A, spaces_of(limits) + more, None if ratio.linear else ratio.B)

    call = {"classes": classes, "subject_to": wanted}
    best, little = programme([]), programme(denominators_of(limits))
    mixture = attempt(eta, None, aim, strategy=mw.Strategy(randomized=True), **call)
    if isinstance(mixture, str):
        assert little is None, mixture
        return
    assert little - 1e-6 <= mixture.value <= best + 1e-6
    assert mixture.upper_bound >= mixture.value - 1e-12
    assert mixture.upper_bound <= best + 1e-5
    if isinstance(mixture.rule, mw.MixtureRule):
        C = eta.T @ mixture.rule.distribution(eta).reshape(len(eta), k) / len(eta)
        assert [one.value for one in mixture.constraints] == pytest.approx(limits.values(C[None]), abs=1e-9)

    C = programmes.single(eta).vertices()
    kept = limits.kept(C[:, None]).all(axis=1)
    single = attempt(eta, None, aim, **call)
    if isinstance(single, str):
        assert "no single rule" in single
        return
    own = np.eye(k)[single.rule.predict(eta)]
    C_own = eta.T @ own / len(eta)
    assert limits.kept(C_own[None]).all()
    assert single.value == pytest.approx(objective.value(C_own[None]), abs=1e-12)
    assert single.value <= mixture.value + 1e-7
    # Every rule that decides equal rows alike can be found, others cannot.
    assert single.value <= objective.values_of(0, C[kept]).max() + 1e-9


def test_single_rules_by_probabilities_are_close_to_the_best_of_every_one():
    """Without ties all deterministic optima between two vertices can be had: few of many small problems miss one."""
    rng = np.random.default_rng(0)
    gaps = []
    for _ in range(40):
        eta = rng.dirichlet(np.ones(3), 6)
        b = round(rng.uniform(0.3, 0.7), 2)
        wanted = [f"recall[0] >= {b}", f"share[1] <= {round(rng.uniform(0.2, 0.5), 2)}"]
        problem = read_problem(eta, None, "accuracy", constrained=True)
        oracle = problem.oracle("expected")
        limits = resolve_constraints(read_constraints(wanted), problem.schema)
        limits = bind_constraints(limits, problem.schema, oracle)
        C = programmes.single(eta).vertices()
        kept = limits.kept(C[:, None]).all(axis=1)
        found = attempt(eta, None, "accuracy", subject_to=wanted)
        if isinstance(found, str):
            assert "no single rule" in found or not kept.any()
            continue
        gaps.append(np.trace(C[kept], axis1=1, axis2=2).max() - found.value)
    assert len(gaps) > 20
    assert np.mean(np.array(gaps) > 1e-9) < 0.1
    assert max(gaps) < 0.1


# ----------------------------------------------------------------------------------------------- several outputs


@pytest.fixture(scope="module")
def labels():
    """Three labels; the second copy lacks some of them, and all of the last."""
    rng = np.random.default_rng(0)
    p, y = worlds.binary((300, 3), b=2, seed=rng)
    some = worlds.hide(y, 0.3, rng)
    some[:, 2] = np.nan
    return p, y.astype(float), some


@pytest.fixture(scope="module")
def mixed():
    """Two outputs of their own classes."""
    return worlds.outputs(300, [[2, 1], [2, 1, 1]], names=[["no", "yes"], ["a", "b", "c"]], seed=1)


def test_macro_with_a_constraint_per_output_is_each_output_alone(labels):
    p, y, _ = labels
    floors = {0: 0.6, 1: 0.5}
    solution = mw.optimize(
        p, y, "f1", average="macro", subject_to=[f"precision[{m}, 1] >= {b}" for m, b in floors.items()], **AS_GIVEN
    )
    alone = [mw.optimize(p[:, m], y[:, m], "f1", subject_to=f"precision >= {b}", **AS_GIVEN) for m, b in floors.items()]
    alone.append(mw.optimize(p[:, 2], y[:, 2], "f1", strategy=mw.Strategy(confusion="labels", recalibrate=False)))
    assert solution.value == pytest.approx(np.mean([one.value for one in alone]))
    d = solution.rule.predict(p)
    assert np.array_equal(d, np.column_stack([one.rule.predict(p[:, m]) for m, one in enumerate(alone)]))
    assert [one.value for one in solution.constraints] == pytest.approx(
        [sk.precision_score(y[:, m], d[:, m]) for m in floors]
    )


@pytest.mark.parametrize("average", ["macro", "micro"])
def test_a_constraint_without_an_output_pools_all(labels, average):
    p, y, some = labels
    for true in (y, some):
        solution = mw.optimize(
            p, true, "f1", average=average, subject_to="precision >= 0.7 and share <= 0.25", **AS_GIVEN
        )
        seen = ~np.isnan(true)
        d = np.asarray(solution.rule.predict(p), dtype=float)
        assert isinstance(solution.rule, mw.WeightedRule)
        assert [one.value for one in solution.constraints] == pytest.approx(
            [sk.precision_score(true[seen], d[seen]), d[seen].mean()]
        )
        shown = [m for m in range(3) if seen[:, m].any()]
        if average == "micro":
            value = sk.f1_score(true[seen], d[seen])
        else:
            value = np.mean([sk.f1_score(true[seen[:, m], m], d[seen[:, m], m]) for m in shown])
            assert np.array_equal(d[:, 2], p[:, 2] > 0.5) or 2 in shown  # what no label tells anything of
        assert solution.value == pytest.approx(value)
        assert solution.alternative >= solution.value - 1e-9


def test_coupled_outputs_against_all_pairs_of_thresholds():
    """Macro-recall of two labels with one share for both: a threshold for each."""
    rng = np.random.default_rng(3)
    p = rng.beta(1, 2, (60, 2))
    y = (rng.random((60, 2)) < p).astype(int)
    solution = mw.optimize(p, y, "recall", average="macro", subject_to="share <= 0.3", **AS_GIVEN)
    best = 0.0
    for pair in itertools.product(*(np.append(-1.0, np.unique(p[:, m])) for m in (0, 1))):
        d = p > np.array(pair)
        if d.mean() <= 0.3 + 1e-12:
            best = max(best, np.mean([(d & (y == 1))[:, m].sum() / y[:, m].sum() for m in (0, 1)]))
    assert solution.value <= best + 1e-9
    assert solution.value >= best - 0.05  # the best by probabilities, of which labels may think otherwise


def test_a_constraint_on_one_output_under_micro_gives_it_a_threshold_of_its_own(labels):
    p, y, _ = labels
    solution = mw.optimize(p, y, "f1", average="micro", subject_to="precision[2, 1] >= 0.8", **AS_GIVEN)
    d = solution.rule.predict(p)
    assert isinstance(solution.rule, mw.WeightedRule)
    assert solution.value == pytest.approx(sk.f1_score(y, d, average="micro"))
    assert sk.precision_score(y[:, 2], d[:, 2]) == pytest.approx(solution.constraints[0].value)
    assert solution.constraints[0].value >= 0.8
    assert solution.rule.thresholds[2] > solution.rule.thresholds[:2].max()
    together = mw.optimize(p, y, "f1", average="micro", subject_to="precision >= 0.8", **AS_GIVEN)
    assert np.ptp(together.rule.thresholds) == 0.0


def test_outputs_of_different_classes_and_metrics(mixed):
    proba, y = mixed
    text = ["recall[0, yes] >= 0.7", "share[1, a] <= 0.4"]
    true = y.astype(str)
    for metric, options in ((["f1[yes]", "kappa"], {}), ("accuracy", {"average": "macro"})):
        solution = mw.optimize(proba, y, metric, subject_to=text, **options, **AS_GIVEN)
        d = solution.rule.predict(proba).astype(str)
        assert [one.value for one in solution.constraints] == pytest.approx(
            [sk.recall_score(true[:, 0], d[:, 0], pos_label="yes"), np.mean(d[:, 1] == "a")]
        )
        values = [sk.accuracy_score(true[:, m], d[:, m]) for m in (0, 1)]
        if metric != "accuracy":
            values = [sk.f1_score(true[:, 0], d[:, 0], pos_label="yes"), sk.cohen_kappa_score(true[:, 1], d[:, 1])]
        assert solution.value == pytest.approx(np.mean(values))


def test_output_weights_weigh_the_aim_and_not_what_is_promised(labels):
    p, y, _ = labels
    weight = [1, 2, 3]
    solution = mw.optimize(p, y, "f1", average="macro", output_weight=weight, subject_to="share <= 0.2", **AS_GIVEN)
    d = solution.rule.predict(p)
    assert solution.value == pytest.approx(np.average(sk.f1_score(y, d, average=None), weights=weight))
    assert solution.constraints[0].value == pytest.approx(d.mean())
    assert d.mean() <= 0.2 + 1e-9
    of_none = mw.optimize(
        p, y, "f1", average="macro", output_weight=[1, 1, 0], subject_to="share[2, 1] <= 0.1", **AS_GIVEN
    )
    assert of_none.rule.predict(p)[:, 2].mean() <= 0.1


def test_the_instance_average(labels):
    p, y, _ = labels
    solution = mw.optimize(p, y, "f1", average="instance", subject_to="precision >= 0.7", **AS_GIVEN)
    d = solution.rule.predict(p)
    assert solution.value == pytest.approx(sk.f1_score(y, d, average="samples", zero_division=0))
    assert solution.constraints[0].value == pytest.approx(sk.precision_score(y, d, average="micro"))


# ------------------------------------------------------------------------------------------------ what is counted


@pytest.fixture(scope="module")
def three():
    return worlds.multiclass(500, [3, 1, 1], names=["low", "mid", "urgent"], seed=5)


@pytest.mark.parametrize(
    ("confusion", "recalibrate", "metric"),
    diagonal(12, ["labels", "expected", "blended"], [False, True], ["accuracy", "macro_f1", "g_mean", "min_recall"]),
)
def test_labels_count_constraints_whatever_counts_the_aim(three, confusion, recalibrate, metric):
    proba, y = three
    solution = mw.optimize(
        proba,
        y,
        metric,
        subject_to="recall[urgent] >= 0.75 and share[low] <= 0.5",
        confidence=None,
        strategy=mw.Strategy(confusion=confusion, recalibrate=recalibrate),
    )
    d = solution.rule.predict(proba)
    first, second = solution.constraints
    assert first.value == pytest.approx(sk.recall_score(y, d, labels=["urgent"], average="macro"))
    assert second.value == pytest.approx(np.mean(d == "low"))
    assert first.value >= 0.75 - 1e-9
    assert second.value <= 0.5 + 1e-9


@pytest.mark.parametrize("confusion", ["labels", "expected"])
def test_mixtures_keep_constraints_by_their_exact_distribution(three, confusion):
    proba, y = three
    solution = mw.optimize(
        proba,
        y,
        "accuracy",
        subject_to="recall[urgent] >= 0.75 and share[low] <= 0.5",
        confidence=None,
        strategy=mw.Strategy(confusion=confusion, recalibrate=False, randomized=True),
    )
    assert isinstance(solution.rule, mw.MixtureRule)
    table = solution.rule.distribution(proba).reshape(len(y), 3)
    assert [one.value for one in solution.constraints] == pytest.approx(
        [table[y == "urgent", 2].mean(), table[:, 0].mean()], abs=1e-9
    )
    assert solution.constraints[0].value >= 0.75 - 1e-7
    assert solution.constraints[1].value <= 0.5 + 1e-7
    single = mw.optimize(
        proba,
        y,
        "accuracy",
        subject_to="recall[urgent] >= 0.75 and share[low] <= 0.5",
        confidence=None,
        strategy=mw.Strategy(confusion=confusion, recalibrate=False),
    )
    assert solution.optimized_value >= single.optimized_value - 1e-9


@pytest.mark.parametrize(
    ("aim", "bounded"),
    diagonal(
        5,
        ["accuracy", "f1[urgent]", "kappa", "decathlon", "min_recall"],
        ["recall[urgent] >= {}", "precision[mid] >= {}", "decathlon >= {}", "h_mean >= {}"],
    ),
)
def test_prices_are_what_a_looser_bound_is_worth(three, aim, bounded):
    proba, _ = three

    def best(by):
        return mw.optimize(
            proba,
            None,
            aim,
            classes=["low", "mid", "urgent"],
            subject_to=[bounded.format(floors[bounded] - by), f"share[low] <= {0.4503 + by}", "recall[mid] >= 0.001"],
            strategy=mw.Strategy(randomized=True, tol=1e-10),
        )

    floors = {"recall[urgent] >= {}": 0.8, "precision[mid] >= {}": 0.5, "decathlon >= {}": 0.31, "h_mean >= {}": 0.47}
    solution, step = best(0.0), 1e-5
    prices = [one.price for one in solution.constraints]
    assert sum(prices[:2]) == pytest.approx((best(step).value - best(-step).value) / step / 2, rel=0.02, abs=1e-4)
    assert prices[2] == pytest.approx(0.0, abs=1e-9)


# ------------------------------------------------------------------------------------------------- on new rows


@pytest.mark.parametrize("text", ["precision >= 0.5", "share <= 0.2", "f1 >= 0.45"])
def test_more_confidence_takes_a_larger_margin(text):
    p, y = worlds.binary(1500)
    found = [mw.optimize(p, y, "recall", subject_to=text, confidence=c) for c in (None, 0.5, 0.8, 0.9, 0.95)]
    margins = [one.constraints[0].margin for one in found]
    assert margins[0] == 0.0
    assert margins == sorted(margins)
    assert margins[-1] > margins[1]
    assert [one.constraints[0].confidence for one in found] == [None, 0.5, 0.8, 0.9, 0.95]
    for one in found:
        d = one.rule.predict(p)
        (promise,) = one.constraints
        assert promise.value == pytest.approx(SCORES[text.split()[0]](y, d))
        slack = promise.value - promise.low if np.isfinite(promise.low) else promise.high - promise.value
        assert slack >= promise.margin - 1e-9
    values = [one.value for one in found]
    assert values[0] >= values[-1]


@pytest.mark.parametrize("metric", ["recall", "f1"])
def test_what_is_said_of_new_rows(metric):
    p, y = worlds.binary(3000)
    solution = mw.optimize(p, y, metric, subject_to="precision >= 0.5")
    (promise,) = solution.constraints
    estimate = promise.on_new_rows
    assert estimate.low <= estimate.estimate <= estimate.high
    assert estimate.low <= promise.value <= estimate.high
    fresh, true = worlds.binary(200_000, seed=1)
    d = solution.rule.predict(fresh)
    assert estimate.low - 0.01 <= sk.precision_score(true, d) <= estimate.high + 0.01
    assert sk.precision_score(true, d) >= 0.5
    new = solution.value_on_new_rows
    assert new.low - 0.02 <= SCORES[metric](true, d) <= new.high + 0.02
    assert solution.gain.low <= solution.gain.estimate <= solution.gain.high
    assert solution.gain.estimate == pytest.approx(new.estimate - solution.baseline)
    assert "and in the population with a confidence of 0.95" in solution.status
    assert solution.candidates


@few_labels
def test_floors_are_kept_by_new_rows():
    """Twenty worlds of 800 rows: all rows keep the floor in nearly all of them, and without confidence in half."""
    fresh, true = worlds.binary(100_000, seed=99)
    kept = {None: 0, 0.95: 0}
    for seed in range(20):
        p, y = worlds.binary(800, seed=seed)
        for confidence in kept:
            rule = mw.optimize(p, y, "recall", subject_to="precision >= 0.5", confidence=confidence).rule
            kept[confidence] += sk.precision_score(true, rule.predict(fresh)) >= 0.5
    assert kept[0.95] >= 18
    assert kept[None] <= 16


@few_labels
def test_exact_copies_add_nothing():
    p, y = worlds.binary(400, seed=1)
    once = mw.optimize(p, y, "recall", subject_to="precision >= 0.4").constraints[0]
    often = mw.optimize(np.tile(p, 10), np.tile(y, 10), "recall", subject_to="precision >= 0.4").constraints[0]
    many = mw.optimize(*worlds.binary(4000), "recall", subject_to="precision >= 0.4").constraints[0]
    assert often.margin == pytest.approx(once.margin, rel=0.35)
    assert many.margin < 0.6 * often.margin


@few_labels
def test_rows_that_belong_together_vary_more():
    rng = np.random.default_rng(4)
    level = np.repeat(rng.normal(size=100), 10)
    p = 1 / (1 + np.exp(-(1.5 * level + 0.3 * rng.normal(size=1000) - 1)))
    y = (np.repeat(rng.random(100), 10) < p).astype(int)
    call = {"subject_to": "precision >= 0.4", "confidence": 0.8}
    alone = mw.optimize(p, y, "recall", **call).constraints[0]
    together = mw.optimize(p, y, "recall", groups=np.repeat(np.arange(100), 10), **call).constraints[0]
    assert together.margin > 1.5 * alone.margin
    in_time = mw.optimize(p, y, "recall", groups=mw.InTime(np.arange(1000)), **call).constraints[0]
    assert in_time.value >= 0.4


def test_equal_calls_agree():
    p, y = worlds.binary(700)
    first, second, other = (
        mw.optimize(p, y, "f1", subject_to="precision >= 0.45", random_state=seed) for seed in (3, 3, 4)
    )
    assert first.rule.loss == second.rule.loss
    assert first.constraints == second.constraints
    assert first.gain == second.gain
    assert other.constraints[0].value >= 0.45


def test_too_few_labels_are_said_to_be():
    p, y = worlds.binary(80)
    with pytest.warns(UserWarning, match="Too few labels to guarantee .* confidence 0.95; .* achievable") as caught:
        solution = mw.optimize(p, y, "recall", subject_to="precision >= 0.5")
    assert caught[0].filename == __file__
    (promise,) = solution.constraints
    assert promise.value == pytest.approx(SCORES["precision"](y, solution.rule.predict(p)))
    assert promise.value >= 0.5
    assert promise.confidence is None or promise.confidence < 0.95
    said = (
        "none is achievable" if promise.confidence is None else f"the achievable confidence is {promise.confidence:.2g}"
    )
    assert said in solution.status


@pytest.mark.parametrize("confidence", [1.0, 0.49, -1, "0.9", True, float("nan")])
def test_bad_confidence(confidence):
    p, y = worlds.binary(50)
    with pytest.raises(ValueError, match=r"optimize: confidence must be a number in \[0.5, 1\) or None, got"):
        mw.optimize(p, y, "recall", subject_to="precision >= 0.5", confidence=confidence)


def test_what_a_rule_knows_of_its_promises(tmp_path):
    p, y = worlds.binary(1000)
    solution = mw.optimize(p, y, "recall", subject_to="precision >= 0.45 and share <= 0.3", confidence=0.9)
    solution.rule.to_json(tmp_path / "rule.json")
    rule = mw.load_rule(tmp_path / "rule.json")
    assert rule.metadata.subject_to == ["precision >= 0.45", "share <= 0.3"]
    assert rule.metadata.confidence == 0.9
    assert "precision >= 0.45" in rule.describe()
    assert np.array_equal(rule.predict(p), solution.rule.predict(p))


# ------------------------------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("aim", "text", "message"),
    [
        (
            "recall",
            "accuracy >= 0.99",
            r"no rule satisfies 'accuracy >= 0.99' on the given rows: accuracy reaches at most 0\.\d+",
        ),
        (
            "recall",
            "precision >= 0.6 and recall >= 0.95",
            r"no rule satisfies 'precision >= 0.6' and 'recall >= 0.95' together on the given rows: with "
            r"'precision >= 0.6', recall reaches at most 0\.\d+; loosen a bound",
        ),
        (
            "accuracy",
            "share <= 0 and precision >= 0.1",
            "with 'share <= 0', precision is 0/0, which satisfies no bound",
        ),
        ("accuracy", "share >= 0.6 and share <= 0.4", "'share >= 0.6' and 'share <= 0.4' together"),
        (
            "accuracy",
            "precision >= 90",
            "'precision >= 90' can never be satisfied: precision is at most 1; write 90 % if you mean a percentage",
        ),
        ("accuracy", "0.6 <= precision <= 0.4", "the lower bound must not exceed the upper one"),
        ("accuracy", "roc_auc >= 0.5", "'roc_auc' is not a function of the confusion matrix"),
        ("accuracy", "recal >= 0.5", r"'recal' is not known; did you mean 'recall'.*\n    recal >= 0.5\n    \^"),
        (
            "accuracy",
            "recall[7] >= 0.5",
            r"names the class 7, which must be one of \[0, 1\].\n    recall\[7\] >= 0.5\n {11}\^",
        ),
        ("accuracy", "recall[a, 1] >= 0.5", "names an output, but there is only one; leave 'a' out"),
        ("accuracy", "recall > 0.5", r"must have '>=' or '<=' at character 8, got '>'"),
        (
            "accuracy",
            mw.at_least(lambda y_true, y_pred: 0.5, 0.4),
            "'<lambda> >= 0.4' bounds function, which takes no sample_weight and can only be evaluated on whole rows",
        ),
    ],
)
def test_refusals_of_one_output(aim, text, message):
    with pytest.raises(ValueError, match=f"^subject_to: .*{message}"):
        mw.optimize(*worlds.binary(400), aim, subject_to=text, **AS_GIVEN)


@pytest.mark.parametrize("given", [3, ["precision >= 0.5", 3], {"precision": 0.5}])
def test_other_types_are_refused(given):
    with pytest.raises(TypeError, match=r"subject_to: must be text such as 'precision >= 0.9', at_least"):
        mw.optimize(*worlds.binary(50), "recall", subject_to=given)


def test_solvers_and_functions_of_whole_rows_are_refused():
    p, y = worlds.binary(50)
    with pytest.raises(ValueError, match="solver must be 'auto' if subject_to is given"):
        mw.optimize(p, y, "recall", subject_to="precision >= 0.1", strategy=mw.Strategy(solver="sweep"))
    with pytest.raises(ValueError, match="can only be evaluated on whole rows; add a parameter sample_weight"):
        mw.optimize(p, y, lambda y_true, y_pred: 0.5, subject_to="precision >= 0.1")


def test_only_a_mixture_keeps_it():
    p, y = np.full(20, 0.5), np.repeat([0, 1], 10)
    with pytest.raises(
        ValueError, match=r"no single rule .* satisfies all constraints, but a mixture of rules does, .*randomized"
    ):
        mw.optimize(p, y, "accuracy", subject_to="0.4 <= share <= 0.6", **AS_GIVEN)
    rule = mw.optimize(p, y, "accuracy", subject_to="0.4 <= share <= 0.6", **asking(AS_GIVEN, randomized=True)).rule
    assert 0.4 - 1e-9 <= rule.distribution(p).reshape(20, 2)[:, 1].mean() <= 0.6 + 1e-9


def test_nothing_predicted_keeps_no_floor():
    """The likeliest rows are all wrong, so that only an empty prediction has no false one."""
    p, y = np.linspace(0.1, 0.9, 40), np.append(1, np.zeros(39, dtype=int))
    with pytest.raises(
        ValueError,
        match=r"'precision >= 0.5' on the given rows: precision reaches at most 0.025, at a predicted share of 1",
    ):
        mw.optimize(p, y, "accuracy", subject_to="precision >= 0.5", **AS_GIVEN)


def test_classes_and_outputs_without_labels(three, labels):
    proba, y = three
    y = np.where(y == "urgent", "low", y)
    for text in ("recall[urgent] >= 0.5", "recall[urgent] <= 0.5"):
        with pytest.raises(
            ValueError, match="is the same for all predictions, because no row has a class that the metric depends on"
        ):
            mw.optimize(proba, y, "accuracy", classes=["low", "mid", "urgent"], subject_to=text, **AS_GIVEN)
    with pytest.raises(ValueError, match=r"precision\[urgent\] reaches at most about 0"):
        mw.optimize(
            proba, y, "accuracy", classes=["low", "mid", "urgent"], subject_to="precision[urgent] >= 0.5", **AS_GIVEN
        )
    p, _, some = labels
    for average in ("macro", "micro"):
        with pytest.raises(ValueError, match=r"bounds the output 2, which has no labels; leave it out"):
            mw.optimize(p, some, "f1", average=average, subject_to="precision[2, 1] >= 0.5", **AS_GIVEN)


# -------------------------------------------------------------------------------------------------- the estimator


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(7)
    X = rng.normal(size=(900, 3))
    y = np.where(rng.random(900) < worlds.sigmoid(2 * X[:, 0] + X[:, 1] - 1), "fraud", "fine")
    return X, y


def model(**options):
    return mw.MetricOptimalClassifierCV(LogisticRegression(), metric="recall", pos_label="fraud", **options)


def test_the_estimator_keeps_constraints_out_of_fold(rows):
    X, y = rows
    fitted = model(subject_to="precision >= 0.7", random_state=np.random.RandomState(0)).fit(X, y)
    (promise,) = fitted.solution_.constraints
    assert promise.confidence == 0.95
    assert promise.value >= 0.7 + promise.margin - 1e-9
    assert sk.precision_score(y, fitted.predict(X), pos_label="fraud") == pytest.approx(promise.value, abs=0.05)
    again = clone(fitted)
    assert again.get_params()["subject_to"] == "precision >= 0.7"
    assert again.get_params()["confidence"] == 0.95
    loose = model(subject_to=[mw.at_least("precision", 0.7)], confidence=None).fit(X, y)
    assert loose.solution_.value >= fitted.solution_.value


def test_the_positive_class_may_be_that_of_a_constraint_alone(rows):
    """A metric without a positive class is maximised, and the constraint's class has its name in pos_label."""
    X, y = rows
    fitted = model(subject_to="recall >= 0.7", confidence=None).set_params(metric="mcc").fit(X, y)
    assert fitted.score(X, y) == pytest.approx(sk.matthews_corrcoef(y, fitted.predict(X)), abs=1e-12)
    p = fitted.predict_proba(X)
    named = mw.optimize(p, y, "mcc", subject_to="recall[fraud] >= 0.7", confidence=None)
    short = mw.optimize(p, y, "mcc", pos_label="fraud", subject_to="recall >= 0.7", confidence=None)
    assert short.rule == named.rule
    with pytest.raises(ValueError, match="'mcc' has no positive class; leave pos_label out"):
        mw.optimize(p, y, "mcc", pos_label="fraud")


def test_grid_search_over_constraints(rows):
    X, y = rows
    search = GridSearchCV(model(), {"subject_to": ["precision >= 0.6", "precision >= 0.75"]}, cv=3).fit(X, y)
    assert search.best_params_ == {"subject_to": "precision >= 0.6"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("precision > 0.5", "must have '>=' or '<='"),
        ("precsion >= 0.5", "'precsion' is not known"),
        ("precision[theft] >= 0.5", "names the class 'theft'"),
        ("mcc gap <= 0.5", "is about groups"),
    ],
)
def test_what_is_wrong_costs_no_fit(rows, text, message):
    class Never(LogisticRegression):
        def fit(self, X, y, sample_weight=None):
            raise AssertionError("fitted")

    with pytest.raises(ValueError, match=message):
        mw.MetricOptimalClassifierCV(Never(), metric="recall", pos_label="fraud", subject_to=text).fit(*rows)


def test_warnings_of_the_estimator_point_at_who_called_it(rows):
    X, y = rows
    with pytest.warns(UserWarning, match="Too few labels") as caught:
        model(subject_to="precision >= 0.8").fit(X[:90], y[:90])
    assert [one.filename for one in caught if "Too few" in str(one.message)] == [__file__]


# ---------------------------------------------------------------------------------------------------------- engines


@few_labels
@pytest.mark.slow
def test_every_engine_finds_the_same(three, labels):
    p, y, some = labels
    calls = [
        lambda: mw.optimize(*worlds.binary(300), "recall", subject_to="precision >= 0.4"),
        lambda: mw.optimize(*worlds.binary(300), "recall", subject_to="precision >= 0.4", groups=np.arange(300) // 3),
        # By labels: sums of probabilities differ in the last bit, and which rules a local search asks for goes by them.
        lambda: mw.optimize(
            *three,
            "kappa",
            subject_to="recall[urgent] >= 0.6",
            strategy=mw.Strategy(randomized=True, confusion="labels"),
        ),
        lambda: mw.optimize(p, some, "f1", average="macro", subject_to="precision >= 0.6", **AS_GIVEN),
        lambda: mw.optimize(p[:90], y[:90], "f1", average="micro", subject_to="precision[0, 1] >= 0.5", **AS_GIVEN),
    ]
    for call in calls:
        whole = call()
        with served_by("pieces"):
            cut = call()
        assert cut.value == pytest.approx(whole.value, abs=1e-12)
        for one, other in zip(cut.constraints, whole.constraints, strict=True):
            assert one.value == pytest.approx(other.value, abs=1e-12)
            assert one.margin == pytest.approx(other.margin, abs=1e-2)  # of steps on the way, which may tie
            assert one.confidence == other.confidence


def test_no_warning_is_left(three):
    """The aim alone would be degenerate, and is not with a constraint beside it."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mw.optimize(*worlds.binary(2000), "recall", subject_to="precision >= 0.5")
        mw.optimize(*three, "recall[urgent]", subject_to="share[urgent] <= 0.3", confidence=0.8)


def test_a_name_that_scikit_learn_means_of_whole_rows_is_refused():
    rng = np.random.default_rng(0)
    p = rng.random((200, 3))
    y = (rng.random((200, 3)) < p).astype(int)
    with pytest.raises(
        ValueError, match=r"'accuracy >= 0.5': for multilabel targets, scikit-learn's 'accuracy'.*hamming_accuracy"
    ):
        mw.optimize(p, y, "f1", subject_to="accuracy >= 0.5")
    kept = mw.optimize(p, y, "f1", subject_to="hamming_accuracy >= 0.7", confidence=None)
    assert np.mean(kept.rule.predict(p) == y) >= 0.7


def test_by_labels_rules_are_found_that_probabilities_do_not_show():
    """Probabilities that are tempered and shifted: weights of classes keep what the best rules by them do not."""
    rng = np.random.default_rng(0)
    Z, shift = 1.8 * rng.normal(size=(3000, 4)) + np.linspace(1.2, 0, 4), np.linspace(0, 0.6, 4)
    true, given = (worlds.softmax(z) for z in (Z, 0.6 * Z + shift))
    y = worlds.draw_codes(true, rng)
    by_weights = (given * np.exp(-shift)).argmax(axis=1)
    assert np.mean(by_weights == y) > 0.665
    options = {"confidence": None, "strategy": mw.Strategy(confusion="labels", recalibrate=False)}
    rule = mw.optimize(given, y, "g_mean", subject_to="accuracy >= 0.665", **options).rule
    assert np.mean(rule.predict(given) == y) >= 0.665


def test_what_can_be_kept_alone_is_not_said_to_be_impossible():
    """Of two bounds that exclude one another each is kept alone, by rules that probabilities do not show."""
    rng = np.random.default_rng(1)
    Z = 1.5 * rng.normal(size=(300, 3))
    true, given = (worlds.softmax(z) for z in (Z, 0.5 * Z + [0.0, 0.5, -0.3]))
    y = worlds.draw_codes(true, rng)
    for alone in ("recall[2] >= 0.9", "precision[2] >= 0.9"):
        assert mw.optimize(given, y, "accuracy", subject_to=alone, **AS_GIVEN).constraints[0].value >= 0.9
    with pytest.raises(
        ValueError, match=r"no rule satisfies 'recall\[2\] >= 0.9' and 'precision\[2\] >= 0.9' together"
    ):
        mw.optimize(given, y, "accuracy", subject_to="recall[2] >= 0.9 and precision[2] >= 0.9", **AS_GIVEN)


@pytest.mark.filterwarnings("ignore:.*Too few labels:UserWarning")
@pytest.mark.parametrize("floor", [0.4, 0.6])
def test_a_floor_of_one_class_takes_few_passes(floor):
    rng = np.random.default_rng(0)
    proba = rng.dirichlet([4, 1, 0.5], 600)
    y = np.array([rng.choice(3, p=p) for p in proba])
    solution = mw.optimize(proba, y, "recall[1]", subject_to=f"precision[1] >= {floor}")
    assert solution.n_passes <= 60
    assert solution.constraints[0].value >= floor
