"""Bags: fits to resamples against fits to the rows that those keep, and who may judge which row."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import worlds
from metricwise import Frequencies, InTime
from metricwise.core.losses import Loss
from metricwise.fitting import bagging as bags
from metricwise.fitting.solving import Settings, solve
from metricwise.oracles.problem import FitStrategy
from metricwise.rules import fit_link
from metricwise.solvers import make_solver
from problems import read_problem
from profiles import examples

RECIPES = [FitStrategy(confusion, link) for confusion in ("labels", "expected", "blended") for link in (False, True)]
AUTO = Settings()


MISSING = {"multilabel": 0.2, "multioutput": [0.5, 0.1, 0.3], "unequal": [0.4, 0.1]}


def some_rows(kind, n=150, seed=0):
    return worlds.of_kind(kind, n, power=1.3, missing=MISSING, seed=seed)


def in_memory(kind, metric, n=150, seed=0, **options):
    proba, y = some_rows(kind, n, seed)
    if options.pop("weighted", False):
        options["sample_weight"] = np.random.default_rng(1).integers(1, 5, n)
    return read_problem(proba, y, metric, **options).sample(n, 0)


def two_rounds(problem, seed=0):
    return bags.draw(problem, np.random.default_rng(seed), n_rounds=2)


def fitted(problem, resamples, recipe, solver=AUTO):
    link = bags.links_of(problem, resamples, recipe.recalibrate)
    (bag,) = bags.fit_bags(problem, resamples, [recipe], solver, link)
    return bag


def only(bag, r):
    return np.arange(bag.n_resamples) == r


# ----------------------------------------------------------------------- a fit to a resample is the fit of its rows

EXACT = [
    ("binary", "f1", {}),
    ("binary", "mcc", {}),
    ("binary", "accuracy", {"weighted": True}),
    ("multiclass", "quadratic_kappa", {"weighted": True}),
    ("multiclass", "balanced_accuracy", {}),
    ("multiclass", "quadratic_kappa", {"prior": [0.2, 0.3, 0.5]}),
    ("multilabel", "f1", {"average": "micro", "weighted": True}),
    ("multilabel", "f1", {"average": "macro", "output_weight": [3, 1, 1, 0]}),
    ("multilabel", "f1", {"average": "instance"}),
    ("multioutput", "kappa", {"average": "micro"}),
    ("multioutput", "kappa", {"average": "macro", "weighted": True}),
    ("unequal", "kappa", {"average": "macro", "prior": [[0.2, 0.3, 0.5], [0.4, 0.6]]}),
    ("unequal", "micro_f1", {"average": "micro"}),
    ("unequal", ["quadratic_kappa", "f1"], {}),
]


def check_fits(problem, recipe, solver):
    """Each rule of a bag decides every row as the rule does that is fitted to the rows of its resample alone."""
    resamples = two_rounds(problem)
    bag = fitted(problem, resamples, recipe, solver)
    assert bag.n_resamples == len(resamples.kept) == 6
    for r, kept in enumerate(resamples.kept):
        part = problem.take(kept)
        link = part.link(recipe.recalibrate)
        rule = solve(part, recipe, solver, link).rule
        np.testing.assert_array_equal(bag.decide(problem, only(bag, r)), problem.decide(rule, link))


@pytest.mark.parametrize("recipe", RECIPES, ids=str)
@pytest.mark.parametrize(("kind", "metric", "options"), EXACT)
def test_a_fit_to_a_resample_is_that_of_its_rows(kind, metric, options, recipe):
    check_fits(in_memory(kind, metric, **options), recipe, AUTO)


@pytest.mark.parametrize(
    ("solver", "kind", "metric", "options"),
    [
        ("closed_form", "multioutput", "accuracy", {"average": "macro"}),
        ("closed_form", "binary", "balanced_accuracy", {}),
        ("path", "binary", "f1", {}),
        ("path", "unequal", "kappa", {"average": "macro"}),
        ("sweep", "multilabel", "mcc", {"average": "macro"}),
        ("sweep", "multilabel", "f1", {"average": "micro"}),
        ("dinkelbach", "multiclass", "kappa", {}),
        ("dinkelbach", "multilabel", "f1", {"average": "macro"}),
    ],
)
@pytest.mark.parametrize("recipe", [RECIPES[1], RECIPES[2]], ids=str)
def test_every_exact_solver_serves_resamples(solver, kind, metric, options, recipe):
    check_fits(in_memory(kind, metric, **options), recipe, make_solver(solver))


@pytest.mark.parametrize(
    ("solver", "kind", "metric", "options", "recipe", "tolerance"),
    [
        ("ascent", "multiclass", "macro_f1", {}, RECIPES[3], 0.005),
        ("ascent", "multiclass", "macro_f1", {"weighted": True}, RECIPES[1], 0.05),
        ("ascent", "multioutput", "macro_f1", {"average": "macro"}, RECIPES[4], 0.05),
        ("frank_wolfe", "unequal", "g_mean", {"average": "macro"}, RECIPES[2], 0.01),
        ("frank_wolfe", "multiclass", "g_mean", {"weighted": True}, RECIPES[3], 0.01),
        ("column_generation", "multiclass", "min_recall", {}, RECIPES[3], 0.02),
        ("column_generation", "unequal", "min_recall", {"average": "macro", "weighted": True}, RECIPES[2], 0.02),
    ],
)
def test_iterative_solvers_serve_resamples_about_as_well(solver, kind, metric, options, recipe, tolerance):
    """Several optima, or steps that all resamples share: the rules may differ, what they are worth must not."""
    problem = in_memory(kind, metric, **options)
    resamples, solver = two_rounds(problem), make_solver(solver)
    bag = fitted(problem, resamples, recipe, solver)
    better = []
    for r, kept in enumerate(resamples.kept):
        part = problem.take(kept)
        link = part.link(recipe.recalibrate)
        solution = solve(part, recipe, solver, link)
        oracle = part.oracle(recipe.confusion, link)
        value = part.objective(oracle, recipe).value(oracle.confusion_of(bag.decide(part, only(bag, r))))
        better.append(value - solution.value)
    assert min(better) > -tolerance
    assert np.mean(better) > -tolerance / 3


@pytest.mark.parametrize(
    ("kind", "metric", "options"),
    [
        ("multiclass", "quadratic_kappa", {}),
        ("multilabel", "f1", {"average": "micro"}),
        ("unequal", "kappa", {"average": "macro", "prior": [[0.2, 0.3, 0.5], [0.4, 0.6]]}),
        ("unequal", ["quadratic_kappa", "f1"], {}),
    ],
)
def test_tiles_make_the_same_bag(kind, metric, options, monkeypatch):
    problem = in_memory(kind, metric, **options)
    resamples = two_rounds(problem)
    for recipe in (RECIPES[0], RECIPES[3]):
        whole = fitted(problem, resamples, recipe)
        for numbers in (1, 3 * problem.source.rows.proba.size):
            with monkeypatch.context() as patch:
                patch.setattr(bags, "_TILE", numbers)
                tiles = list(bags._tiles(problem, resamples, whole.link))
                in_tiles = fitted(problem, resamples, recipe)
            assert len(tiles) == (6 if numbers == 1 else 2)
            for one, other in zip(whole.losses, in_tiles.losses, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


def test_rules_of_a_mixture_come_from_its_resample():
    """Mixtures are not averaged: that of the first resample that may judge does."""
    problem = in_memory("unequal", "g_mean", average="macro")
    resamples, solver = two_rounds(problem), Settings(randomized=True)
    bag = fitted(problem, resamples, RECIPES[3], solver)
    assert len(bag.mixtures) == 6
    assert bag.rule(problem.schema.n_classes) is None
    which = np.array([False, False, True, False, True, False])
    np.testing.assert_array_equal(bag.decide(problem, which), bag.decide(problem, only(bag, 2)))
    shares = [problem.take(kept).link(True) for kept in resamples.kept]
    np.testing.assert_allclose(bag.mean_link(only(bag, 2)).bias, shares[2].bias, atol=1e-9)


# ------------------------------------------------------------------------------------------------ one rule of several


@pytest.mark.parametrize(
    ("kind", "metric", "options"),
    [("multiclass", "quadratic_kappa", {}), ("multilabel", "f1", {"average": "macro"}), ("binary", "f1", {})],
)
def test_one_rule_is_the_mean_of_losses_and_links(kind, metric, options):
    problem = in_memory(kind, metric, **options)
    resamples = two_rounds(problem)
    bag = fitted(problem, resamples, RECIPES[1])
    rows = problem.source.rows
    links, tensors = [], []
    for kept in resamples.kept:
        part = problem.take(kept)
        links.append(fit_link(rows.proba.take(kept), rows.codes[kept], max_rows=problem.n_rows))
        L = solve(part, RECIPES[1], AUTO, links[-1]).rule.loss.tensor()
        # Entries of a row differ by 1 at most, on average over rows: losses are the same up to a factor.
        tensors.append(L / (L.max(axis=2) - L.min(axis=2)).mean(axis=1)[:, None, None])
    for which in (np.ones(6, dtype=bool), np.arange(6) % 2 == 0):
        link, loss = bag.mean_link(which), bag.loss(which)
        some = np.flatnonzero(which)
        np.testing.assert_allclose(link.temperature, np.mean([links[r].temperature for r in some], axis=0), atol=1e-9)
        np.testing.assert_allclose(link.bias, np.mean([links[r].bias for r in some], axis=0), atol=1e-9)
        np.testing.assert_allclose(loss.tensor(), np.mean([tensors[r] for r in some], axis=0), atol=1e-9)
    rule, link = bag.rule(problem.schema.n_classes)
    np.testing.assert_array_equal(problem.decide(rule, link), bag.decide(problem, np.ones(6, dtype=bool)))


@pytest.mark.parametrize(
    ("kind", "metric", "options"),
    [
        ("binary", "f1", {}),  # a diagonal by probabilities, and one by labels
        ("multiclass", "quadratic_kappa", {}),
        ("unequal", ["quadratic_kappa", "f1"], {}),
        ("multilabel", "f1", {"average": "micro"}),
    ],
)
def test_rules_of_several_recipes_are_their_mean(kind, metric, options):
    problem = in_memory(kind, metric, **options)
    resamples = two_rounds(problem)
    link = bags.links_of(problem, resamples, recalibrate=True)
    both = bags.fit_bags(problem, resamples, [RECIPES[3], RECIPES[1]], AUTO, link)
    for own, recipe in zip(both, (RECIPES[3], RECIPES[1]), strict=True):
        alone = fitted(problem, resamples, recipe)
        np.testing.assert_allclose(own.tensors, alone.tensors, atol=1e-12)
        for r in range(6):
            np.testing.assert_allclose(own.tensors[r], own.loss(only(own, r)).tensor(), atol=1e-12)
    merged = bags.BaggedRule.merged(both)
    np.testing.assert_allclose(merged.tensors, (both[0].tensors + both[1].tensors) / 2, atol=1e-12)
    assert merged.link is link
    which = np.arange(6) >= 2
    np.testing.assert_allclose(
        merged.loss(which).tensor(), np.mean([one.tensors[which].mean(axis=0) for one in both], axis=0), atol=1e-12
    )


def test_a_full_loss_and_a_diagonal_one_have_a_mean():
    rng = np.random.default_rng(0)
    full = bags.BaggedRule(2, (rng.normal(size=(2, 1, 3, 3)),), (), None)
    diagonal = bags.BaggedRule(2, (rng.normal(size=(2, 1, 3)), rng.normal(size=(2, 1, 3))), (), None)
    expected = [
        [full.losses[0][r, 0, i, j] + (i == j) * diagonal.losses[0][r, 0, j] + diagonal.losses[1][r, 0, j]]
        for r, i, j in itertools.product(range(2), range(3), range(3))
    ]
    merged = bags.BaggedRule.merged([full, diagonal])
    np.testing.assert_allclose(merged.tensors.ravel(), np.ravel(expected) / 2)
    assert bags.BaggedRule.merged([full]) is full


finite = st.floats(-1e3, 1e3, allow_subnormal=False)


@given(st.data())
def test_the_size_of_a_loss_is_that_of_its_tensor(data):
    n, k = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 6))
    few = st.sampled_from([-1.0, 0.0, 0.5, 2.0])  # many ties
    elements = data.draw(st.sampled_from([finite, few]))
    diagonal, offset = (data.draw(arrays.arrays(float, (n, k), elements=elements)) for _ in range(2))
    tensor = diagonal[:, None, :] * np.eye(k) + offset[:, None, :]
    np.testing.assert_array_equal(Loss(diagonal=diagonal, offset=offset).tensor(), tensor)
    expected = (tensor.max(axis=2) - tensor.min(axis=2)).mean(axis=1)
    np.testing.assert_allclose(bags._spread(diagonal, offset), expected, rtol=1e-12, atol=1e-12)


# ---------------------------------------------------------------------------------------------------------- honesty

JUDGED = [
    ("binary", "f1", {}),
    ("multiclass", "quadratic_kappa", {"weighted": True}),
    ("multilabel", "f1", {"average": "micro"}),
    ("multilabel", "mcc", {"average": "macro"}),
    ("multiclass", "balanced_accuracy", {"prior": [0.2, 0.3, 0.5]}),
]


@pytest.mark.parametrize(("kind", "metric", "options"), JUDGED)
@given(data=st.data())
@examples(8)
def test_a_label_never_changes_the_decision_that_it_judges(kind, metric, options, data):
    """Nor do those of rows that are left out together with it.

    Of exact solvers: steps of the others end when no resample gains any more, which labels elsewhere may put off.
    """
    seed = data.draw(st.integers(0, 1_000))
    recipe = data.draw(st.sampled_from(RECIPES))
    proba, y = some_rows(kind, 60, seed)
    options = dict(options)
    weight = np.random.default_rng(seed).integers(1, 5, 60) if options.pop("weighted", False) else None
    classes = [0, 1, 2] if kind == "multiclass" else None

    def judged(labels, resamples=None):
        problem = read_problem(proba, labels, metric, sample_weight=weight, classes=classes, **options).sample(60, 0)
        resamples = two_rounds(problem, seed) if resamples is None else resamples
        return bags.decide_left_out(problem, resamples, fitted(problem, resamples, recipe)), resamples

    before, resamples = judged(y)
    block = data.draw(st.integers(0, resamples.left_out.shape[1] - 1))
    rows = np.flatnonzero(resamples.block == block)
    other = y.copy()
    other[rows] = data.draw(st.sampled_from([0, 1])) if data.draw(st.booleans()) else 1 - np.minimum(y[rows], 1)
    after, _ = judged(other, resamples)
    np.testing.assert_array_equal(before[rows], after[rows])


def test_labels_that_were_seen_do_change_decisions():
    """The same with the labels of all other blocks: what the test above holds on to is no constant."""
    proba, y = some_rows("binary", 60)
    resamples = two_rounds(in_memory("binary", "f1", n=60))
    own = resamples.block == 0

    def judged(labels):
        problem = read_problem(proba, labels, "f1").sample(60, 0)
        return bags.decide_left_out(problem, resamples, fitted(problem, resamples, RECIPES[0]))

    assert (judged(y)[own] != judged(np.where(own, y, 1 - y))[own]).any()


# ----------------------------------------------------------------------------------------------- which rows, and when


def clustered(cluster):
    proba, y = worlds.binary(len(cluster))
    y[:2] = 0, 1
    return read_problem(proba, y, "f1", groups=cluster).sample(len(y), 0)


def check_left_out(resamples, n):
    """Every row is left out by some resamples and kept by others, and as often as any other."""
    assert resamples.kept.shape == (resamples.n_resamples, n)
    times = (~resamples.kept).sum(axis=0)
    assert times.min() >= 1
    assert resamples.kept.any(axis=0).all()
    assert resamples.kept.any(axis=1).all()
    assert len(set(times.tolist())) == 1
    assert sorted(np.concatenate(resamples.rows).tolist()) == list(range(n))
    for b, rows in enumerate(resamples.rows):
        assert (resamples.block[rows] == b).all()
        np.testing.assert_array_equal(
            ~resamples.kept[:, rows], np.repeat(resamples.left_out[:, [b]], len(rows), axis=1)
        )


@given(st.integers(2, 90), st.integers(0, 100), st.sampled_from(["binary", "multiclass", "multilabel"]))
@examples(40)
def test_every_row_is_left_out(n, seed, kind):
    proba, y = some_rows(kind, n, seed)
    y[0], y[1] = 0, 1
    options = {"classes": [0, 1, 2]} if kind == "multiclass" else {}
    metric = "hamming_accuracy" if kind == "multilabel" else "accuracy"
    problem = read_problem(proba, y, metric, **options).sample(n, 0)
    resamples = bags.draw(problem, np.random.default_rng(seed))
    check_left_out(resamples, n)
    assert resamples.n_resamples == min(3, n) * bags.ROUNDS
    sizes = np.bincount(resamples.block)
    assert len(sizes) == min(12, n)
    assert np.ptp(sizes) <= 1
    if kind == "multilabel":
        return
    for c in range(3):
        own = resamples.problem.source.rows.codes[:, 0] == c
        assert np.ptp(np.bincount(resamples.block[own], minlength=len(sizes))) <= 2


@given(st.lists(st.integers(0, 30), min_size=12, max_size=80), st.integers(0, 100))
def test_clusters_are_never_parted(cluster, seed):
    cluster = np.array([-1, -2, *cluster])
    resamples = bags.draw(clustered(cluster), np.random.default_rng(seed))
    check_left_out(resamples, len(cluster))
    dealt = resamples.problem.source.rows.cluster
    for code in np.unique(dealt):
        assert len(set(resamples.block[dealt == code].tolist())) == 1


@pytest.mark.parametrize("n_clusters", [2, 3, 5])
def test_few_clusters(n_clusters):
    resamples = bags.draw(clustered(np.arange(90) % n_clusters), np.random.default_rng(0))
    check_left_out(resamples, 90)
    assert resamples.left_out.shape == (min(3, n_clusters) * bags.ROUNDS, n_clusters)
    # Never all but one class of rows: what is left is at least half of the clusters.
    assert resamples.kept.sum(axis=1).min() >= 90 // 2 - 90 // n_clusters


def test_blocks_of_clusters_are_of_about_one_size():
    rng = np.random.default_rng(0)
    size = rng.integers(1, 12, 200)
    cluster = rng.permutation(np.repeat(np.arange(200), size))
    sizes = np.bincount(bags.draw(clustered(cluster), rng).block)
    assert len(sizes) == 12
    assert np.ptp(sizes) < 0.3 * sizes.mean()


@given(st.integers(6, 300), st.integers(0, 50), st.sampled_from(["all at two times", "repeated", "distinct"]))
@examples(60)
def test_blocks_in_time_are_stretches(n, seed, kind):
    rng = np.random.default_rng(seed)
    time = rng.integers(0, 2 if kind == "all at two times" else max(n // 3, 2), n)
    time = rng.permutation(n) if kind == "distinct" else time
    if kind != "distinct":
        time[:2] = 0, 1
    proba = rng.beta(1, 3, n)
    y = (rng.random(n) < proba).astype(int)
    y[:2] = 0, 1
    problem = read_problem(proba, y, "f1", groups=InTime(time)).sample(n, 0)
    resamples = bags.draw(problem, rng)
    check_left_out(resamples, n)
    block = resamples.block[np.argsort(time, kind="stable")]
    assert (np.diff(block) >= 0).all()
    for moment in np.unique(time):
        assert len(set(resamples.block[time == moment].tolist())) == 1
    if kind == "distinct" and n >= 150:
        sizes = np.bincount(block)
        assert len(sizes) >= 10
        assert np.ptp(sizes) <= 2 * problem.dependence.length + 1


def test_resamples_are_those_of_the_seed():
    problem = in_memory("multiclass", "accuracy")
    one, two, other = (bags.draw(problem, np.random.default_rng(seed)) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.block, two.block)
    np.testing.assert_array_equal(one.left_out, two.left_out)
    assert (one.block != other.block).any()


def counted(repeats, seed=0):
    """A table whose cells stand for several rows each."""
    rng = np.random.default_rng(seed)
    proba, y = rng.random(len(repeats)), rng.integers(0, 2, len(repeats))
    y[:2] = 0, 1
    return read_problem(proba, y, "f1", sample_weight=Frequencies(repeats)).sample(len(y), 0)


@given(st.lists(st.integers(0, 40), min_size=10, max_size=40), st.integers(0, 5))
def test_rows_of_several_are_dealt_as_if_written_out(repeats, seed):
    """Whole rows, none lost, evenly within classes; a resample may keep some of those that a row stands for."""
    repeats = np.array([2, 3, *repeats])
    problem = counted(repeats)
    resamples = bags.draw(problem, np.random.default_rng(seed))
    rows, whole = resamples.problem.source.rows, problem.source.rows
    cell = np.argmax(rows.proba.output(0)[:, 0, None] == whole.proba.output(0)[:, 0], axis=1)
    assert len(set(zip(cell.tolist(), resamples.block.tolist(), strict=True))) == rows.n_rows
    for values in (rows.weight, rows.repeats, rows.frequency):
        np.testing.assert_allclose(values, np.rint(values))
        np.testing.assert_allclose(np.bincount(cell, values, len(repeats)), repeats)
    n_blocks = resamples.left_out.shape[1]
    assert n_blocks == min(12, repeats.sum())
    for label in (0, 1):
        own = rows.codes[:, 0] == label
        assert np.ptp(np.bincount(resamples.block[own], rows.repeats[own], n_blocks)) <= 1.5


def test_what_is_left_out_of_a_count_varies_as_rows_do():
    """Of 300 rows of one class, 30 of them alike, a third is left out, without replacement."""
    repeats = np.array([30, 300, *[30] * 9])
    problem = counted(repeats)
    problem.source.rows.codes[:] = 0
    problem.source.rows.codes[1] = 1
    left = []
    for seed in range(400):
        resamples = bags.draw(problem, np.random.default_rng(seed), n_rounds=1)
        rows = resamples.problem.source.rows
        first = rows.proba.output(0)[:, 0] == problem.source.rows.proba.output(0)[0, 0]
        left.append(rows.repeats[first & ~resamples.kept[0]].sum())
    assert np.mean(left) == pytest.approx(10, abs=0.4)
    assert np.std(left) == pytest.approx(np.sqrt(30 * (1 / 3) * (2 / 3) * 270 / 299), rel=0.15)


def test_very_many_rows_are_dealt():
    problem = counted(np.array([10**10, 3 * 10**10, 5, 0]))
    rows = bags.draw(problem, np.random.default_rng(0)).problem.source.rows
    assert rows.repeats.sum() == 4 * 10**10 + 5
    assert np.ptp(rows.repeats[rows.repeats > 5]) > 1


def described(resamples):
    """Labels, probabilities and block of all rows, sorted by what they say; probabilities as users could write them."""
    rows = resamples.problem.source.rows
    proba = np.concatenate(
        [block.reshape(rows.n_rows, -1) if block.ndim == 2 else block[:, :, 1:].reshape(rows.n_rows, -1)
         for block in rows.proba.blocks], axis=1,
    )  # fmt: skip
    table = np.column_stack([rows.codes, np.round(proba, 5), resamples.block])
    return table[np.lexsort(table.T[::-1])]


def noisy(proba, size, seed=0):
    moved = np.clip(proba + np.random.default_rng(seed).uniform(-size, size, proba.shape), 0, 1)
    return moved if moved.ndim == 1 else moved / moved.sum(axis=1, keepdims=True)


SAME_ROWS = {
    "noise": lambda proba, order: (noisy(proba, 1e-9), slice(None)),
    "order": lambda proba, order: (proba[order], order),
    "two columns": lambda proba, order: (
        np.column_stack([1 - proba, proba]) if proba.ndim == 1 else proba,
        slice(None),
    ),
}


@pytest.mark.parametrize("change", SAME_ROWS)
@pytest.mark.parametrize("options", [(), ("sample_weight",), ("groups",), ("frequencies",), ("stepped",)], ids=str)
@pytest.mark.parametrize("kind", ["binary", "multiclass"])
def test_rows_are_dealt_by_what_they_say(kind, options, change):
    """Neither noise nor the order of rows nor the shape of the input decides which block a row comes to."""
    n = 500
    rng = np.random.default_rng(1)
    proba, y = worlds.of_kind(kind, n, power=1.3, seed=2)
    if "stepped" in options:  # many rows have the same probabilities, as those of a tree's leaf
        proba = np.round(proba * 8) / 8 if kind == "binary" else (np.round(proba * 8) + 1) / 11
        proba = proba if kind == "binary" else proba / proba.sum(axis=1, keepdims=True)
    columns = {
        "sample_weight": rng.integers(1, 5, n).astype(float) if "sample_weight" in options else None,
        "groups": rng.integers(0, 100, n) if "groups" in options else None,
    }
    if "frequencies" in options:
        columns["sample_weight"] = rng.integers(1, 5, n)
    changed, rows = SAME_ROWS[change](proba, rng.permutation(n))

    def dealt(proba, y, columns):
        if "frequencies" in options:
            columns = columns | {"sample_weight": Frequencies(columns["sample_weight"])}
        problem = read_problem(proba, y, "accuracy", classes=list(range(3 if kind == "multiclass" else 2)), **columns)
        return described(bags.draw(problem.sample(n, 0), np.random.default_rng(3)))

    again = dealt(changed, y[rows], {name: None if c is None else c[rows] for name, c in columns.items()})
    np.testing.assert_array_equal(dealt(proba, y, columns), again)


def test_clusters_are_told_apart_by_which_label_belongs_to_which_probability():
    """Both have the same probabilities and the same labels, in other pairs."""
    proba, y, cluster = np.tile([0.1, 0.2], 60), np.array([0, 1, 1, 0] * 30), np.repeat(np.arange(60), 2)
    turned = np.concatenate([np.flatnonzero(cluster % 2 == 1), np.flatnonzero(cluster % 2 == 0)])
    one, other = (
        bags.draw(read_problem(proba[o], y[o], "f1", groups=cluster[o]).sample(120, 0), np.random.default_rng(0))
        for o in (np.arange(120), turned)
    )
    np.testing.assert_array_equal(described(one), described(other))


def test_the_order_of_counts_changes_nothing():
    repeats = np.random.default_rng(0).integers(1, 40, 60)
    problem = counted(repeats)
    turned = problem.take(np.arange(60)[::-1])
    one, other = (bags.draw(own, np.random.default_rng(1)) for own in (problem, turned))
    sums = [np.lexsort((own.block, own.problem.source.rows.proba.output(0)[:, 0])) for own in (one, other)]
    np.testing.assert_array_equal(one.block[sums[0]], other.block[sums[1]])
    np.testing.assert_array_equal(one.problem.source.rows.repeats[sums[0]], other.problem.source.rows.repeats[sums[1]])
