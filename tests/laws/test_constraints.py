"""Laws that every constraint obeys: each kind of `constraint_records.py`, counted by loops over rows."""

import itertools
import re
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy.optimize import linprog

import metricwise as mw
from laws.constraint_records import RECORDS, SCIKIT_LEARN, WORLDS, accuracy, drawn, f1, having, precision, recall
from metricwise.fitting.constraints.resolve import InfeasibleConstraintsError
from problems import asking

AS_GIVEN = {"confidence": None, "strategy": mw.Strategy(confusion="labels", recalibrate=False)}
every_constraint = pytest.mark.parametrize("name", RECORDS)
IN_GROUPS = having(world="groups")
SEVERAL_GROUPS = [*IN_GROUPS, *having(world="three groups")]


def named(names):
    return pytest.mark.parametrize("name", names)


# ------------------------------------------------------------------------------------------------------------ counting


def tables_of(y, distribution, place, n_groups, k):
    """Counts (G, K, D) of true codes and of decisions, which count by their probability, a row at a time."""
    counts = np.zeros((n_groups, k, distribution.shape[1]))
    for true, shares, g in zip(y, distribution, place, strict=True):
        for decided, share in enumerate(shares):
            counts[g, true, decided] += share
    return counts


def counted(record, rule):
    """The tables of a rule's decisions about its world, of the output that the record is about."""
    world, m = WORLDS[record.world], record.output
    needs = {"sensitive_features": world.group} if isinstance(rule, mw.GroupedRule) else {}
    shares = rule.distribution(world.proba, **needs)
    shares = shares[:, m] if rule.multioutput else shares
    k = len(world.classes[m])
    place = [0] * len(shares) if world.group is None else [world.groups.index(name) for name in world.group]
    return tables_of(world.codes[:, m], shares[:, : k + (rule.abstain_label is not None)], place, len(world.groups), k)


def asked(name, bounds, form="text"):
    if bounds is None:
        return None
    record = RECORDS[name]
    return record.text.format(*bounds) if form == "text" else record.written(*bounds)


@cache
def solved(name, bounds, form="text", *, randomized=False):
    """What `optimize` finds for a record, under bounds or none."""
    record = RECORDS[name]
    world = WORLDS[record.world]
    options = {**world.options, **record.options, **asking(AS_GIVEN, randomized=randomized)}
    metric = options.pop("metric", "accuracy")
    return mw.optimize(world.proba, world.y, metric, subject_to=asked(name, bounds, form), **options)


@named(SCIKIT_LEARN)
def test_what_is_bounded_is_what_scikit_learn_counts(name):
    formula, score = SCIKIT_LEARN[name]
    rng = np.random.default_rng(0)
    y, d, w = np.append([0, 1, 2], rng.integers(0, 3, 40)), rng.integers(0, 3, 43), rng.integers(1, 4, 43).astype(float)
    counts = tables_of(y, np.eye(3)[d] * w[:, None], [0] * 43, 1, 3)[0]
    numerator, denominator = formula(counts)
    assert numerator / denominator == pytest.approx(score(y, d, w), abs=1e-12)


# ---------------------------------------------------------------------------------------------------- what is promised


def assert_kept(name, solution, bounds, tol):
    """The rule keeps the bounds by its distribution alone, and the solution reports what was counted."""
    record = RECORDS[name]
    counts = counted(record, solution.rule)
    assert record.keeps(counts, bounds, tol)
    promise = solution.constraints[0]
    assert (promise.low, promise.high) == pytest.approx(record.ends(bounds))
    assert promise.value == pytest.approx(record.worst(counts), abs=1e-9)
    assert promise.margin == 0
    assert promise.name == asked(name, bounds).split(" and ")[0]
    assert solution.rule.metadata.subject_to[0] == promise.name


@every_constraint
def test_one_rule_keeps_what_it_promises(name):
    assert_kept(name, solved(name, RECORDS[name].tight), RECORDS[name].tight, 1e-9)


@every_constraint
def test_a_mixture_keeps_what_it_promises(name):
    record = RECORDS[name]
    assert_kept(name, solved(name, record.tight, randomized=True), record.tight, 1e-7 if record.linear else 1e-4)


@every_constraint
def test_a_mixture_is_worth_no_less_than_one_rule(name):
    tight = RECORDS[name].tight
    assert solved(name, tight, randomized=True).value >= solved(name, tight).value - 1e-9


@every_constraint
def test_a_looser_bound_is_worth_no_less(name):
    record = RECORDS[name]
    loose = solved(name, record.loose, randomized=True)
    assert_kept(name, loose, record.loose, 1e-7)
    assert not record.keeps(counted(record, loose.rule), record.tight)  # else the other laws would hold by luck
    assert loose.value >= solved(name, record.tight, randomized=True).value - 1e-9


def unquoted(text):
    """A constraint as it is written without quotes."""
    return re.sub(r"'(\w+)'", r"\1", text)


@every_constraint
def test_text_and_objects_mean_the_same(name):
    record = RECORDS[name]
    bounds = record.tight if record.linear else record.loose  # where others take seconds to be kept
    text, made = solved(name, bounds, randomized=True), solved(name, bounds, "object", randomized=True)
    assert made.rule == text.rule
    assert made.value == text.value
    for promise, written in zip(made.constraints, text.constraints, strict=True):
        assert replace(promise, name="") == replace(written, name="")
        assert unquoted(promise.name) == written.name


@named([name for name in RECORDS if "abstain" not in RECORDS[name].options])
@pytest.mark.filterwarnings("ignore:optimize. .* alone:UserWarning")
def test_a_bound_that_the_best_rule_keeps_costs_nothing(name):
    """It may add to the value: by labels more rules are tried beside a constraint, and rules by group."""
    record = RECORDS[name]
    free = solved(name, None)
    if record.keeps(counted(record, free.rule), record.loose):
        assert solved(name, record.loose, randomized=True).value >= free.value - 1e-9
    else:
        assert record.near_prior or free.value >= solved(name, record.tight).value


# ------------------------------------------------------------------------------------------------ what cannot be kept


ADVICE = re.compile(r"reaches at most (about )?(0\.\d+)")
UNREACHABLE = [name for name, record in RECORDS.items() if record.unreachable]


def refusal_of(name):
    record = RECORDS[name]
    with pytest.raises(
        InfeasibleConstraintsError, match=r"^subject_to: no rule satisfies '.*' on the given rows"
    ) as error:
        solved(name, record.unreachable)
    assert f"'{asked(name, record.unreachable)}'" in str(error.value)
    return ADVICE.search(str(error.value))


@named(UNREACHABLE)
def test_what_a_refusal_says_is_reached_can_be_kept(name):
    said = refusal_of(name)
    assert (said[1] is None) == (RECORDS[name].advised == "proved")
    reached = (float(said[2]) - 6e-4,)  # of three digits
    assert RECORDS[name].keeps(counted(RECORDS[name], solved(name, reached).rule), reached)


@named(UNREACHABLE)
def test_more_than_a_refusal_says_is_not_reached(name):
    more = float(refusal_of(name)[2]) + 0.02
    with pytest.raises(
        InfeasibleConstraintsError, match=r"^subject_to: no (rule|single rule was found that) satisfies"
    ):
        solved(name, (more,))


# Parts of a constraint, what is written in their place, and what is said of that.
PARTS = {
    "metric": (
        r"[a-z_0-9]+(?=\[| >=| <=| gap| within)",
        "sharp",
        "('sharp' is not known|is only for a share, got 'sharp)",
    ),
    "class": (r"\w+(?=\])", "nowhere", "names the (class|output) 'nowhere', which must be one of"),
    "group": (r"(?<=group )a", "nobody", "names the group 'nobody', which must be one of"),
    "bound": (r"\{\}(?!.*\{)", "7777", "(can never be|is always) satisfied"),
    "number": (r"\{\}(?!.*\{)", "high", "must have a number"),
}


def with_a_wrong_part():
    """Names of records, parts that they have, and their text with something else there."""
    for name, record in RECORDS.items():
        for part, (pattern, wrong, _) in PARTS.items():
            text = re.sub(pattern, wrong, record.text, count=1)
            if text == record.text or "abstain" in record.options:
                continue
            yield name, part, text


@pytest.mark.parametrize(("name", "part", "text"), list(with_a_wrong_part()))
def test_what_means_nothing_is_refused_by_a_sentence(name, part, text):
    record = RECORDS[name]
    world, metric = WORLDS[record.world], record.options.get("metric", "accuracy")
    with pytest.raises(ValueError, match=f"^subject_to: (?s:.*){PARTS[part][2]}"):
        mw.optimize(world.proba, world.y, metric, subject_to=text.format(*record.tight), **world.options, **AS_GIVEN)


def test_groups_are_needed_by_what_is_about_them():
    for name in SEVERAL_GROUPS:
        record = RECORDS[name]
        world = WORLDS[record.world]
        text = asked(name, record.tight)
        with pytest.raises(ValueError, match=f"'{re.escape(text)}' is about groups, so sensitive_features must give"):
            mw.optimize(world.proba, world.y, "accuracy", subject_to=text, **AS_GIVEN)


# --------------------------------------------------------------------------------------------- the same in other words

SAME = [
    ("binary", "recall >= 0.8", "recall[1] >= 80 %"),
    ("binary", "specificity >= 0.9", "false_positive_rate <= 0.1"),
    ("binary", "specificity >= 0.9", "recall[0] >= 0.9"),
    ("binary", "share <= 0.2", "share[0] >= 0.8"),
    ("binary", "0.15 <= share <= 0.35", "share >= 0.15 and share <= 0.35"),
    ("binary", "share within 0.15 of prior", "{low} <= share <= {high}"),
    ("three", "share[low] <= 0.3", "0.3 >= share[low]"),
    ("groups", "demographic_parity <= 0.05", "share gap <= 0.05"),
    ("groups", "demographic_parity <= 0.05", "share[0] gap <= 0.05"),
    ("groups", "equal_opportunity <= 0.05", "recall gap <= 0.05"),
    ("groups", "predictive_parity <= 0.1", "precision gap <= 0.1"),
    ("groups", "equalized_odds <= 0.1", "equalised_odds <= 0.1"),
    ("groups", "equalized_odds <= 0.1", "recall[0] gap <= 0.1 and recall[1] gap <= 0.1"),
    ("groups", "recall >= 0.7 in every group", "recall >= 0.7 in group a and recall >= 0.7 in group b"),
    ("three groups", "demographic_parity[top] <= 0.05", "share[top] gap <= 0.05"),
]


@pytest.mark.parametrize(("world", "first", "second"), SAME)
def test_the_same_in_other_words_is_the_same_rule(world, first, second):
    """Floors are ceilings of what is left, two bounds are one after the other, names are gaps of metrics."""
    rows = WORLDS[world]
    prior = np.mean(rows.codes[:, 0] == len(rows.classes[0]) - 1)
    options = {**rows.options, **asking(AS_GIVEN, randomized=True)}
    solutions = [
        mw.optimize(
            rows.proba, rows.y, "accuracy", subject_to=text.format(low=prior - 0.15, high=prior + 0.15), **options
        )
        for text in (first, second)
    ]
    assert solutions[0].value == pytest.approx(solutions[1].value, abs=1e-9)
    needs = {} if rows.group is None else {"sensitive_features": rows.group}
    left, right = (solution.rule.distribution(rows.proba, **needs) for solution in solutions)
    np.testing.assert_allclose(left, right, atol=1e-6)


# ---------------------------------------------------------------------------------------------------------- optimality

AIMS = {"accuracy": accuracy, "recall": recall(1), "precision": precision(1), "f1": f1(1)}


def thresholds_of(world):
    """Tables (T, G, 2, 2) of all ways to decide by a threshold for each group."""
    p, y = world.eta[0][:, 1], world.codes[:, 0]
    each = []
    for name in world.groups:
        rows = np.ones(len(p), dtype=bool) if name is None else world.group == name
        decided = (p[rows] > np.append(-1.0, np.unique(p))[:, None]).astype(int)
        each.append(np.einsum("ni,tnj->tij", np.eye(2)[y[rows]], np.eye(2)[decided]))
    return np.array([np.stack(tables) for tables in itertools.product(*each)])


def best_threshold(record, aim, bounds):
    """The largest value of the aim over thresholds that keep the bounds."""
    tables = thresholds_of(WORLDS[record.world])
    numerator, denominator = AIMS[aim](tables[record.keeps(tables, bounds)].sum(axis=1))
    return np.max(numerator / np.where(denominator > 0, denominator, np.inf))


@named(having(world="binary"))
@pytest.mark.parametrize("which", ["tight", "loose"])
def test_no_threshold_that_keeps_it_is_better(name, which):
    record = RECORDS[name]
    bounds = getattr(record, which)
    best = best_threshold(record, record.options.get("metric", "accuracy"), bounds)
    assert solved(name, bounds).value == pytest.approx(best, abs=1e-12)


@named(IN_GROUPS)
def test_no_thresholds_by_group_that_keep_it_are_better_than_a_mixture(name):
    record = RECORDS[name]
    best = best_threshold(record, "accuracy", record.tight)
    assert solved(name, record.tight).value <= best + 1e-12
    assert solved(name, record.tight, randomized=True).value >= best - (1e-9 if record.linear else 1e-2)


@pytest.mark.parametrize("seed", [4, 7])
def test_one_rule_is_found_where_thresholds_by_group_keep_it(seed):
    world = drawn(seed, [0, 1], groups=["a", "b"], n=40)
    assert RECORDS["predictive parity"].keeps(thresholds_of(world), (0.1,)).sum() > 60
    mw.optimize(world.proba, world.y, "accuracy", subject_to="predictive_parity <= 0.1", **world.options, **AS_GIVEN)


def vertices(eta, place, n_groups, n_decisions):
    """Expected tables (T, G, K, D) of every way to decide a few rows."""
    rows = np.array(list(itertools.product(range(n_decisions), repeat=len(eta))))
    mass = np.eye(n_groups)[place][:, :, None] * eta[:, None, :]
    return np.einsum("ngi,tnj->tgij", mass, np.eye(n_decisions)[rows])


def programme(record, tables, bounds):
    """The largest accuracy of a mixture of deterministic rules that keeps bounds, by a linear programme."""
    low, high = record.ends(bounds)
    kept = []
    for score in record.scores:
        pooled = [tables.sum(axis=1)] if record.over is None else [tables[:, g] for g in range(tables.shape[1])]
        parts = [score(table) for table in pooled]
        if record.over == "gap":  # of shares of rows that no rule changes
            each = [numerator / denominator for numerator, denominator in parts]
            kept += [left - right - high for left, right in itertools.permutations(each, 2)]
            continue
        chosen = parts if record.over in (None, "every") else [parts[["a", "b"].index(record.over)]]
        for numerator, denominator in chosen:
            kept += [low * denominator - numerator] if np.isfinite(low) else []
            kept += [numerator - high * denominator] if np.isfinite(high) else []
    hits, total = accuracy(tables.sum(axis=1))
    optimum = linprog(-hits / total, kept, np.zeros(len(kept)), np.ones((1, len(hits))), [1.0])
    return -optimum.fun if optimum.status == 0 else None


LINEAR = [
    name
    for name, record in RECORDS.items()
    if record.linear and not record.near_prior and not record.options.get("abstain") and record.world != "outputs"
]


@named(LINEAR)
@pytest.mark.parametrize("seed", [0, 1])
def test_no_mixture_of_all_rules_of_a_few_rows_is_better(name, seed):
    """Without labels, in expectation, at a bound half-way between the most accurate rule and the furthest one."""
    record = RECORDS[name]
    k, grouped = len(WORLDS[record.world].classes[0]), record.over is not None
    rng, n = np.random.default_rng(seed), 8 if k == 2 else 6
    eta, place = rng.dirichlet(np.ones(k), n), np.arange(n) % (2 if grouped else 1)
    tables = vertices(eta, place, 2 if grouped else 1, k)
    best = tables[np.argmax(accuracy(tables.sum(axis=1))[0])]
    values = record.worst(tables)
    furthest = np.nanmax(values) if record.sense == "floor" else np.nanmin(values)
    middle = float(record.worst(best) + furthest) / 2
    middle = float(furthest) if np.isnan(middle) else middle
    bounds = (middle - 0.05, middle + 0.05) if record.sense == "both" else (middle,)
    expected = programme(record, tables, tuple(np.clip(bounds, 0, None)))
    needs = {"sensitive_features": np.array(["a", "b"])[place]} if grouped else {}
    solution = mw.optimize(
        eta,
        None,
        "accuracy",
        classes=WORLDS[record.world].classes[0],
        subject_to=record.written(*np.clip(bounds, 0, None).tolist()),
        strategy=mw.Strategy(randomized=True),
        **needs,
    )
    assert solution.value == pytest.approx(expected, abs=1e-5)
    assert solution.upper_bound >= expected - 1e-9


# --------------------------------------------------------------------------------------------------- the worst group

WORST = {"accuracy": accuracy, "recall": recall(1), "f1": f1(1)}


@cache
def worst_solved(metric, form, *, randomized):
    world = WORLDS["groups"]
    aim = f"worst_group({metric})" if form == "text" else mw.worst_group(metric)
    return mw.optimize(world.proba, world.y, aim, **world.options, **asking(AS_GIVEN, randomized=randomized))


def worst_value(tables, score):
    """The least value of groups of tables (..., G, K, D)."""
    numerator, denominator = score(tables)
    return np.min(numerator / np.where(denominator > 0, denominator, np.inf), axis=-1)


@pytest.mark.filterwarnings("ignore:optimize. .* alone:UserWarning")
@named(WORST)
def test_the_worst_group_is_as_it_is_counted_and_no_thresholds_by_group_do_better(name):
    score, best = WORST[name], worst_value(thresholds_of(WORLDS["groups"]), WORST[name]).max()
    single, mixture = (worst_solved(name, "text", randomized=allowed) for allowed in (False, True))
    record = RECORDS["in every group"]
    for solution in (single, mixture):
        assert solution.value == pytest.approx(worst_value(counted(record, solution.rule), score), abs=1e-9)
        each = [values[name].value for values in solution.by_group.values()]
        assert min(each) == pytest.approx(solution.value, abs=1e-9)
    assert single.value <= best + 1e-9
    assert mixture.value >= best - 1e-6


@pytest.mark.filterwarnings("ignore:optimize. .* alone:UserWarning")
@named(WORST)
def test_the_worst_group_by_text_and_by_object_and_as_a_floor_in_every_group(name):
    text, made = worst_solved(name, "text", randomized=True), worst_solved(name, "object", randomized=True)
    assert made.rule == text.rule
    world = WORLDS["groups"]
    ask = {**world.options, **asking(AS_GIVEN, randomized=True)}
    reached = f"{name} >= {text.value - 1e-3:.6f} in every group"
    assert (
        mw.optimize(world.proba, world.y, "accuracy", subject_to=reached, **ask).constraints[0].value
        >= text.value - 2e-3
    )
    if text.value < 0.98:
        with pytest.raises(InfeasibleConstraintsError, match="no rule satisfies"):
            mw.optimize(
                world.proba, world.y, "accuracy", subject_to=f"{name} >= {text.value + 0.02:.6f} in every group", **ask
            )
