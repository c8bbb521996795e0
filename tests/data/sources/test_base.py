"""Passes over the rows: what a solution reports is what an independent count of the row passes finds."""

import numpy as np
import pytest

import metricwise as mw
import worlds
from engines import counts
from metricwise import kernels
from metricwise.core.losses import Loss
from metricwise.data.probabilities import read_proba
from metricwise.oracles import counts as counting
from problems import read_problem


@pytest.fixture
def entries(monkeypatch):
    """A list that grows by the entries, rows times outputs, of every row pass of an oracle.

    Rows that are counted by label and then by probability, before anything else is, are read once.
    """
    seen, last = [], [None]

    def watch(module, name, look):
        plain = getattr(module, name)

        def watched(*args, **options):
            rows, shape, labels = look(*args)
            if labels or last[0] != rows:
                seen.append(shape[0] * shape[1])
            last[0] = rows if labels else None
            return plain(*args, **options)

        monkeypatch.setattr(module, name, watched)

    def address(block):
        return block.eta.__array_interface__["data"], block.eta.shape

    watch(kernels, "count_labels", lambda block, *_: (address(block), block.eta.shape, True))
    watch(kernels, "count_expected", lambda block, *_: (address(block), block.eta.shape, False))
    watch(kernels, "changes", lambda block, *_: (address(block), block.eta.shape, block.codes is not None))
    watch(counting, "from_predictions", lambda true, decided, *_: (id(decided), decided.shape, True))
    watch(counting, "expected_confusion", lambda proba, decided, *_: (id(decided), decided.shape, False))
    return seen


def draw(n, m, k):
    return worlds.multiclass((n, m), np.linspace(0.4, 1.5, k), every_class=True)


CASES = [
    ("closed_form", "accuracy", 3),
    ("path", "quadratic_kappa", 3),
    ("dinkelbach", "quadratic_kappa", 3),
    ("bisection", "quadratic_kappa", 3),
    ("frank_wolfe", "g_mean", 3),
    ("column_generation", "min_recall", 3),
    ("ascent", "macro_f1", 3),
    ("sweep", "f1", 2),
    ("sweep", "mcc", 2),
]


def test_every_solver_is_counted():
    assert {solver for solver, *_ in CASES} == set(mw.solvers.SOLVERS)


@pytest.mark.parametrize("recalibrate", [False, True])
@pytest.mark.parametrize("confusion", ["labels", "expected", "blended"])
@pytest.mark.parametrize("average", ["micro", "macro"])
@pytest.mark.parametrize(("solver", "metric", "k"), CASES)
def test_passes_reported_are_passes_made(entries, solver, metric, k, average, confusion, recalibrate):
    proba, y = draw(120, 2, k)
    solution = mw.optimize(
        proba,
        y,
        metric,
        average=average,
        strategy=mw.Strategy(solver=solver, confusion=confusion, recalibrate=recalibrate),
    )
    assert solution.n_passes == round(sum(entries) / y.size)
    assert solution.n_passes >= 1


def test_passes_without_labels_include_that_of_the_priors(entries):
    """Priors and argmax, a list of changes, and the rule beside what proves it."""
    proba, _ = draw(200, 1, 3)
    solution = mw.optimize(proba[:, 0], None, "quadratic_kappa")
    assert solution.n_passes == len(entries) == 3


def test_a_sample_counts_by_its_share_of_the_rows(entries):
    proba, y = draw(40_000, 1, 3)
    solution = mw.optimize(
        proba[:, 0], y[:, 0], "macro_f1", strategy=mw.Strategy(confusion="labels", recalibrate=False)
    )
    whole = [number for number in entries if number == 40_000]
    assert len(whole) < len(entries)  # the starts are compared on a sample
    assert solution.n_passes == round(sum(entries) / 40_000) > len(whole)


def test_outputs_that_are_walked_along_in_turns_make_one_pass(entries):
    """One output at a time, each reads its own column only."""
    proba, y = draw(400, 30, 2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("metricwise.oracles.walk._BATCH", 1)
        solution = mw.optimize(
            proba, y, "f1", average="macro", strategy=mw.Strategy(solver="path", confusion="labels", recalibrate=False)
        )
    assert len(entries) > 30
    assert solution.n_passes == 2  # the walk, and a count


def test_plain_argmax_is_counted(entries):
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(3), size=100)
    y = proba.argmax(axis=1)
    y[:20] = rng.integers(0, 3, 20)  # nothing to gain
    solution = mw.optimize(proba, y, "accuracy")
    assert solution.outcome is mw.solvers.Outcome.ARGMAX
    assert 1 <= solution.n_passes <= len(entries)


def test_an_oracle_counts_what_it_reads_once():
    proba, y = draw(50, 2, 3)
    read = read_proba(proba, multioutput=True)
    labels, expected, blended = (counts(read, y, confusion=how) for how in ("labels", "expected", "blended"))
    assert labels.priors.shape == (2, 3)  # known from the labels alone
    assert labels.entries_read == 0
    assert expected.priors.shape == (2, 3)
    assert expected.priors is expected.priors
    assert expected.entries_read == 100
    blended.confusions([Loss.argmax(3), Loss.argmax(3)])
    assert blended.entries_read == 100  # priors come with argmax
    other = Loss.from_tensor(np.eye(3))
    blended.confusions([other, Loss.argmax(3), other])
    assert blended.entries_read == 200
    plain = labels.confusions([Loss.argmax(3)])
    assert labels.entries_read == 100
    mixed = labels.confusions([other, Loss.argmax(3)])
    assert labels.entries_read == 200
    afresh = counts(read, y).confusions([other, Loss.from_tensor(-np.eye(3))])  # another loss of the same rule
    np.testing.assert_array_equal(mixed, afresh)
    np.testing.assert_array_equal(labels.confusions([Loss.argmax(3)]), plain)
    assert labels.entries_read == 200  # known by now
    labels.sample(20).confusions([Loss.argmax(3)])
    assert 200 < labels.entries_read < 300
    before = expected.entries_read
    expected.shares([Loss.argmax(3), Loss.argmax(3)])
    assert expected.entries_read == before + 100


def test_a_solver_by_itself_counts_its_own_passes():
    proba, y = draw(80, 1, 3)
    problem = read_problem(proba[:, 0], y[:, 0], "accuracy")
    oracle = problem.oracle("labels")
    objective = problem.objective(oracle)
    oracle.confusions([Loss.argmax(3)])
    assert mw.solvers.ClosedForm().solve(oracle, objective).n_passes == 1
