"""Writes a set of rule files with the metricwise that is imported, for later versions to read; see the README.

Each case is a rule, `NAME.json`, as `to_json` has it, and `NAME.decisions.json`: some probabilities, and what the rule
predicted for them in the process that wrote it.
"""

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

import metricwise as mw
from metricwise.core.losses import Loss

FIXED = {"confusion": "labels", "recalibrate": False}
LINKED = {"confusion": "expected", "recalibrate": True}


def rounded(rng, n, k, parts):
    """Probabilities that are whole numbers of parts: with few of these, many ties."""
    return rng.multinomial(parts, rng.dirichlet(np.ones(k), n)) / parts


def fine(rng, n, k):
    """Probabilities of three digits, as they come out of a table."""
    eta = rng.dirichlet(np.ones(k), n).round(3)
    eta[:, 0] += 1 - eta.sum(axis=1)
    return eta.round(3).clip(0, 1)


def few(rng, k):
    """Rows to decide: tied ones, rounded ones, and all on one class."""
    return np.concatenate([rounded(rng, 8, k, 4), rounded(rng, 8, k, 10), fine(rng, 8, k), np.eye(k)])


def fitted(rng, k, n=300, odds=1.0):
    """Rows to fit, and labels (codes): less sure than the probabilities, and `odds` times rarer from class to class."""
    eta = fine(rng, n, k)
    true = eta**0.7 * float(odds) ** -np.arange(k)
    drawn = (rng.random((n, 1)) > (true / true.sum(axis=1, keepdims=True)).cumsum(axis=1)).sum(axis=1)
    return eta, np.append(np.arange(k), np.minimum(drawn, k - 1)[k:])


def named(codes, labels):
    return np.array(labels)[codes]


# ---------------------------------------------------------------------------------------------------- one output


def binary_text(rng):
    eta, codes = fitted(rng, 2, odds=4)
    solution = mw.optimize(eta[:, 1], named(codes, ["no", "yes"]), "f1", pos_label="yes", strategy=mw.Strategy(**FIXED))
    return solution.rule, few(rng, 2)[:, 1]


def binary_bool(rng):
    eta, codes = fitted(rng, 2)
    return mw.optimize(eta, codes == 1, "mcc", strategy=mw.Strategy(**FIXED)).rule, few(rng, 2)


def binary_at_the_threshold(rng):
    """Probabilities that are the threshold, a quarter."""
    rule = mw.WeightedRule(Loss.from_tensor([[0.0, 1.0], [3.0, 0.0]]), (np.array([-1, 1]),))
    return rule, np.array([0.0, 0.24, 0.25, np.nextafter(0.25, 1), 0.26, 1.0])


def multiclass_diagonal(rng):
    eta, codes = fitted(rng, 3)
    return mw.optimize(eta, named(codes, [1, 2, 5]), "macro_f1", strategy=mw.Strategy(**FIXED)).rule, few(rng, 3)


def multiclass_full(rng):
    eta, codes = fitted(rng, 4)
    return mw.optimize(eta, codes, "quadratic_kappa", strategy=mw.Strategy(**FIXED)).rule, few(rng, 4)


def multiclass_linked(rng):
    eta, codes = fitted(rng, 3)
    return mw.optimize(eta, named(codes, [0.5, 1.0, 2.5]), "g_mean", strategy=mw.Strategy(**LINKED)).rule, few(rng, 3)


def full_linked(rng):
    eta, codes = fitted(rng, 3)
    return mw.optimize(eta, codes, "quadratic_kappa", strategy=mw.Strategy(**LINKED)).rule, few(rng, 3)


def default_call(rng):
    eta, codes = fitted(rng, 3, odds=4)
    return mw.optimize(eta, named(codes, ["blau", "grün", "rot"]), "f1_macro").rule, few(rng, 3)


def shifted_prior(rng):
    eta, codes = fitted(rng, 3)
    return mw.optimize(
        eta, codes, "balanced_accuracy", prior=[0.2, 0.3, 0.5], strategy=mw.Strategy(**LINKED)
    ).rule, few(rng, 3)


def promised(rng):
    """A rule that knows all that a rule may know of itself."""
    eta, codes = fitted(rng, 2, n=600)
    y = named(codes, ["no", "yes"])
    options = {"pos_label": "yes", "subject_to": ["precision >= 0.5", "share <= 0.7"], "confidence": 0.9}
    return mw.optimize(eta[:, 1], y, "recall", **options).rule.with_metadata(date="2026-11-17"), few(rng, 2)[:, 1]


def scores(rng):
    eta, codes = fitted(rng, 3)
    rule = mw.optimize(eta, codes, "macro_f1", strategy=mw.Strategy(**FIXED)).rule
    return replace(rule, normalize=True), 3 * few(rng, 3)


def ties_argmax(rng):
    """Labels of all types, and rows that only the order of the classes decides."""
    labels = np.empty(4, dtype=object)
    labels[:] = ["one", 2, 3.5, False]
    return mw.WeightedRule(Loss.argmax(4), (labels,)), np.concatenate([rounded(rng, 24, 4, 4), np.full((1, 4), 0.25)])


def ties_full(rng):
    """Rows that are tied on paper, where rounding in the one order of summation decides."""
    grades = np.arange(5)
    distance = np.abs(grades[:, None] - grades) / 10
    return mw.WeightedRule(Loss(full=distance[None]), (grades,)), rounded(rng, 40, 5, 10)


def ties_diagonal(rng):
    loss = Loss(diagonal=np.array([[-1.0, -1.0, -1.0]]), offset=np.array([[0.0, 0.1, 0.2]]))
    return mw.WeightedRule(loss, (np.array(["a", "b", "c"]),)), rounded(rng, 40, 3, 10)


def ties_linked(rng):
    link = mw.rules.TemperatureScaling(np.array([0.8]), np.array([[0.0, 0.1, 0.0]]))
    return mw.WeightedRule(Loss.argmax(3), (np.array([3, 1, 2]),), link), rounded(rng, 40, 3, 10)


# ------------------------------------------------------------------------------------------------ several outputs


def multilabel(rng):
    eta = np.stack([fitted(rng, 2)[0][:, 1] for _ in range(3)], axis=1)
    y = (rng.random(eta.shape) < eta).astype(int)
    names = ["news", "sport", "arts"]
    rule = mw.optimize(
        pd.DataFrame(eta, columns=names), pd.DataFrame(y, columns=names), "f1_macro", strategy=mw.Strategy(**FIXED)
    ).rule
    return rule, np.stack([few(rng, 2)[:, 1] for _ in range(3)], axis=1)


def multioutput_unequal(rng):
    parts = [fitted(rng, k) for k in (2, 4, 3)]
    labels = [["no", "yes"], [1, 2, 3, 4], [0.5, 1.5, 2.5]]
    names = ["sent", "grade", "dose"]
    y = pd.DataFrame({n: named(codes, own) for n, (_, codes), own in zip(names, parts, labels, strict=True)})
    rule = mw.optimize([eta for eta, _ in parts], y, "kappa", average="macro", strategy=mw.Strategy(**FIXED)).rule
    return rule, [few(rng, k)[:26] for k in (2, 4, 3)]


def multioutput_linked(rng):
    parts = [fitted(rng, k) for k in (3, 2)]
    y = np.column_stack([codes for _, codes in parts])
    rule = mw.optimize(
        [eta for eta, _ in parts], y, "quadratic_kappa", average="macro", strategy=mw.Strategy(**LINKED)
    ).rule
    return rule, [few(rng, k)[:26] for k in (3, 2)]


def multioutput_shared_loss(rng):
    parts = [fitted(rng, 3) for _ in range(2)]
    y = named(np.column_stack([codes for _, codes in parts]), ["low", "mid", "high"])
    proba = np.stack([eta for eta, _ in parts], axis=1)
    rule = mw.optimize(
        proba, y, "micro_f1", average="micro", classes=[["low", "mid", "high"]] * 2, strategy=mw.Strategy(**FIXED)
    ).rule
    return rule, np.stack([few(rng, 3) for _ in range(2)], axis=1)


# ------------------------------------------------------------------------------------------------------- mixtures


def mixture(rng):
    eta, codes = fitted(rng, 3)
    y = named(codes, ["a", "b", "c"])
    return mw.optimize(eta, y, "min_recall", random_state=5, strategy=mw.Strategy(randomized=True, **LINKED)).rule, few(
        rng, 3
    )


def mixture_of_scores(rng):
    """Two rules in even shares."""
    full, diagonal = Loss(full=rng.random((1, 3, 3)).round(1)), Loss.argmax(3)
    rules = tuple(mw.WeightedRule(loss, (np.array([0, 1, 2]),), normalize=True) for loss in (full, diagonal))
    return mw.MixtureRule(rules, np.array([0.5, 0.5]), seed=2**64 - 1), 9 * rounded(rng, 30, 3, 10)


def mixture_multioutput(rng):
    parts = [fitted(rng, k) for k in (2, 3)]
    y = pd.DataFrame({"sent": parts[0][1] == 1, "grade": parts[1][1] + 1})
    options = {"average": "macro", "random_state": 3, "strategy": mw.Strategy(randomized=True, **LINKED)}
    return mw.optimize([eta for eta, _ in parts], y, "min_recall", **options).rule, [few(rng, k)[:26] for k in (2, 3)]


# ---------------------------------------------------------------- beside probabilities: groups, costs, no class at all


def abstaining(rng):
    eta, codes = fitted(rng, 3)
    return mw.optimize(
        eta, named(codes, ["a", "b", "c"]), "accuracy", abstain=0.3, strategy=mw.Strategy(**LINKED)
    ).rule, few(rng, 3)


def by_group(rng):
    eta, codes = fitted(rng, 2, n=600)
    group = np.where(rng.random(600) < 0.4, "x", "y")
    options = {
        "subject_to": "demographic_parity <= 0.1",
        "sensitive_features": group,
        "confidence": None,
        "strategy": mw.Strategy(**FIXED),
    }
    beside = {"sensitive_features": ["x", "y"] * 13}
    return mw.optimize(eta[:, 1], codes, "accuracy", **options).rule, few(rng, 2)[:26, 1], beside


def by_groups_drawn(rng):
    eta, codes = fitted(rng, 2, n=600)
    group = pd.DataFrame({"sex": np.where(rng.random(600) < 0.4, "f", "m"), "old": rng.random(600) < 0.5})
    options = {
        "subject_to": "equalized_odds <= 0.05",
        "sensitive_features": group,
        "strategy": mw.Strategy(randomized=True, **FIXED),
    }
    rule = mw.optimize(eta, codes, "accuracy", confidence=None, random_state=4, **options).rule
    return rule, few(rng, 2)[:24], {"sensitive_features": [["f", True], ["m", False], ["f", False], ["m", True]] * 6}


def row_costs(rng):
    eta, codes = fitted(rng, 3)
    costs = rng.exponential(size=(300, 3)).round(2)
    rule = mw.optimize(eta, named(codes, [1, 2, 5]), "cost", cost=costs, strategy=mw.Strategy(recalibrate=True)).rule
    return rule, few(rng, 3), {"cost": rng.exponential(size=(27, 3)).round(1).tolist()}


CASES = (
    binary_text,
    binary_bool,
    binary_at_the_threshold,
    multiclass_diagonal,
    multiclass_full,
    multiclass_linked,
    full_linked,
    default_call,
    shifted_prior,
    promised,
    scores,
    ties_argmax,
    ties_full,
    ties_diagonal,
    ties_linked,
    multilabel,
    multioutput_unequal,
    multioutput_linked,
    multioutput_shared_loss,
    mixture,
    mixture_of_scores,
    mixture_multioutput,
    abstaining,
    by_group,
    by_groups_drawn,
    row_costs,
)


def write_set(folder, cases=CASES):
    """Write cases into a folder that is not there yet."""
    folder.mkdir()
    for seed, case in enumerate(cases):
        rule, proba, *beside = case(np.random.default_rng(seed))
        rule.to_json(folder / f"{case.__name__}.json")
        starts = (0, 1000) if isinstance(rule, mw.MixtureRule) or case is by_groups_drawn else (None,)
        given = beside[0] if beside else {}
        decisions = [decide(rule, proba, start, given) for start in starts]
        arrays = [part.tolist() for part in proba] if isinstance(proba, list) else proba.tolist()
        text = json.dumps({"proba": arrays, **given, "decisions": decisions}, ensure_ascii=False)
        (folder / f"{case.__name__}.decisions.json").write_text(text.replace("], [", "],\n[") + "\n", encoding="utf-8")


def decide(rule, proba, start, given):
    """What a rule predicts, from some row on if it draws, with what it is given beside probabilities."""
    predicted = rule.predict(proba, **given, **({} if start is None else {"start": start}))
    return {"start": start, "kind": predicted.dtype.kind, "labels": predicted.tolist()}


if __name__ == "__main__":
    write_set(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / f"v{mw.__version__}")
