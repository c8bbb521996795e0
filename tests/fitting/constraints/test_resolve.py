"""Constraints by name: which class and which output they are about, and values counted by scikit-learn."""

import numpy as np
import pytest
from sklearn import metrics as sk

import worlds
from metricwise.core.losses import Loss
from metricwise.fitting.constraints.resolve import bind_constraints
from metricwise.goals.constraint_text import at_least, read_constraints
from metricwise.goals.resolve import resolve_constraints
from problems import read_problem

NAMES = np.array(["low", "on hold", "urgent"])


def problem_of(proba, y, metric="accuracy", **options):
    return read_problem(proba, y, metric, **options)


def values(problem, text, **options):
    """What constraints are of argmax, by name."""
    schema = problem.schema
    limits = bind_constraints(resolve_constraints(read_constraints(text), schema, **options), schema, problem.oracle())
    C = problem.oracle().confusions([Loss.argmax(schema.width)])[0]
    return limits.values(C), limits


@pytest.fixture(scope="module")
def one():
    return worlds.multiclass(500, [3, 1, 1], names=NAMES)


@pytest.fixture(scope="module")
def two():
    """Two outputs of their own classes, some labels missing."""
    proba, y = worlds.outputs(400, [[2, 1], [2, 1, 1]], names=[["no", "yes"], NAMES], seed=1)
    y[::9, 1] = None
    return proba, y


def test_one_output(one):
    proba, y = one
    decided = NAMES[proba.argmax(axis=1)]
    found, limits = values(
        problem_of(*one), "recall[urgent] >= 0.1 and precision['on hold'] >= 0.1 and share[low] <= 0.9 and kappa >= 0"
    )
    assert found == pytest.approx(
        [
            sk.recall_score(y, decided, labels=["urgent"], average="macro"),
            sk.precision_score(y, decided, labels=["on hold"], average="macro"),
            np.mean(decided == "low"),
            sk.cohen_kappa_score(y, decided),
        ]
    )
    assert next(one.constraint.name for one in limits.constraints) == "recall[urgent] >= 0.1"


def test_near_the_prior(one):
    _proba, y = one
    _, limits = values(problem_of(*one), "share[urgent] within 0.02 of prior")
    constraint = limits.constraints[0].constraint
    assert (constraint.low, constraint.high) == pytest.approx(
        (np.mean(y == "urgent") - 0.02, np.mean(y == "urgent") + 0.02)
    )


def test_outputs_by_position_and_all_together(two):
    proba, y = two
    problem = problem_of(proba, y, average="macro", classes=[["no", "yes"], NAMES])
    found, limits = values(problem, ["recall[1, urgent] >= 0.1", "f1[0, yes] >= 0.1", at_least("accuracy", 0.1, 1)])
    seen = np.array([label is not None for label in y[:, 1]])
    decided = [np.array(["no", "yes"])[proba[0].argmax(axis=1)], NAMES[proba[1].argmax(axis=1)]]
    true, own = y[seen, 1].astype(str), decided[1][seen]
    assert found == pytest.approx(
        [
            sk.recall_score(true, own, labels=["urgent"], average="macro"),
            sk.f1_score(y[:, 0].astype(str), decided[0], pos_label="yes"),
            sk.accuracy_score(true, own),
        ]
    )
    assert [one.bound.n_classes for one in limits.constraints] == [3, 2, 3]


def test_labels_of_several_outputs_are_pooled():
    rng = np.random.default_rng(2)
    proba = rng.beta(1, 2, (300, 3))
    y = (rng.random((300, 3)) < proba).astype(int)
    found, _ = values(problem_of(proba, y, "f1"), "precision >= 0.1 and recall[2, 1] >= 0.1")
    decided = proba > 0.5
    assert found == pytest.approx(
        [sk.precision_score(y, decided, average="micro"), sk.recall_score(y[:, 2], decided[:, 2])]
    )


def test_outputs_with_few_labels_weigh_little_where_outputs_are_pooled():
    rng = np.random.default_rng(3)
    proba = rng.beta(1, 2, (300, 3))
    y = (rng.random((300, 3)) < proba).astype(float)
    y[rng.random((300, 3)) < [0.0, 0.9, 0.5]] = np.nan
    found, _ = values(problem_of(proba, y, "f1"), "precision >= 0.1 and share <= 0.9")
    seen = ~np.isnan(y)
    true, decided = y[seen].astype(int), (proba > 0.5)[seen]
    assert found == pytest.approx([sk.precision_score(true, decided), decided.mean()])


def test_the_positive_class_is_taken_where_none_is_named(one):
    proba, y = one
    fraud = np.where(y == "urgent", "fraud", "fine")
    binary = np.column_stack([1 - proba[:, 2], proba[:, 2]])
    problem = problem_of(binary, fraud, classes=["fine", "fraud"])
    found, _ = values(problem, "recall >= 0.1", pos_label="fraud")
    assert found == pytest.approx(
        [sk.recall_score(fraud, np.where(binary[:, 1] > 0.5, "fraud", "fine"), pos_label="fraud")]
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("recall >= 0.1", "is about one class, but a multiclass target has no positive one"),
        ("recall[urgnt] >= 0.1", r"names the class 'urgnt', which must be one of \['low', 'on hold', 'urgent'\]"),
        ("recall[a, urgent] >= 0.1", "names an output, but there is only one; leave 'a' out"),
        ("roc_auc >= 0.9", "not a function of the confusion matrix"),
    ],
)
def test_what_cannot_be_meant_is_refused(one, text, message):
    with pytest.raises(ValueError, match=message):
        values(problem_of(*one), text)


def test_outputs_are_asked_for_where_they_differ(two):
    proba, y = two
    problem = problem_of(proba, y, average="macro", classes=[["no", "yes"], NAMES])
    with pytest.raises(ValueError, match=r"cannot be pooled; name one, as in 'accuracy\[0\] >= 0.5'"):
        values(problem, "accuracy >= 0.5")
    with pytest.raises(ValueError, match=r"names the output 7, which must be one of \[0, 1\]"):
        values(problem, "recall[7, urgent] >= 0.5")
