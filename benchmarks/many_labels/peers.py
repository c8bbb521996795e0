"""xcolumns: Frank-Wolfe, weights of one over the prior, and block coordinates, at its defaults but for the start.

Its default start is random, which loses many iterations to labels that no row has; "top" is its own alternative.
It gets float32, its own type, and probabilities or labels as the truth that it counts with.

- Frank-Wolfe searches the length of a step over a thousand values, which takes most of its time. Its other search,
  "ternary", is not used: it narrows towards the minimum, so that the rule stays what it was at the start.
- Its rules are mixtures: a row draws one of the classifiers. `RandomizedWeightedClassifier.predict` draws row by row in
  Python and moves all later rows when a row without a budget is decided; `decide_mixture` makes the same draws, and
  decides the rows of one classifier at once.
- It has no rule for coverage: its function has no gradient. `smooth_coverage` is written for it as its guide says:
  the expected share of labels with a hit, if hits are independent and rare.
- Block coordinates without a budget move all later rows whenever a row changes its number of labels: time grows with
  the square of the rows, so that they are left out where rows are many.
- `find_classifier_optimizing_..._using_fw` fail, because their metrics take labels instead of counts; the function that
  they call is called instead.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix, vstack

from .data import Rows
from .values import Goal

HAS_XCOLUMNS = find_spec("xcolumns") is not None
SHORT, LONG = 15, 100  # iterations; 100 is the default
SEED = 0
MAX_SQUARED_ROWS = 50_000


class Contestant(NamedTuple):
    """A way to decide: `fit` takes rows and a goal, `decide` what it returned, probabilities and the goal."""

    name: str
    library: str
    kind: str  # "rule" for rows to come, "together" for these rows
    fit: Callable[[Rows, Goal], Any]
    decide: Callable[[Any, csr_matrix, Goal], csr_matrix]


def truth_of(rows: Rows, counted: str) -> csr_matrix:
    return rows.proba if counted == "expected" else rows.y.astype(np.float32)


# ---------------------------------------------------------------------------------------------------------------------
# Frank-Wolfe


def smooth_coverage(n_rows: int) -> Callable[..., Any]:
    import autograd.numpy as anp

    return lambda tp, _fp, _fn, _tn: anp.mean(1 - anp.exp(-n_rows * tp))


def metric_of(goal: Goal, n_rows: int) -> Callable[..., Any]:
    from xcolumns import metrics

    if goal.metric == "label_coverage":
        return smooth_coverage(n_rows)
    name = {"f1": "f1_score"}.get(goal.metric, goal.metric)
    metric: Callable[..., Any] = getattr(metrics, f"{goal.average}_{name}_on_conf_matrix")
    return metric


def frank_wolfe(rows: Rows, goal: Goal, *, counted: str, iterations: int, **options: Any) -> Any:
    from xcolumns.frank_wolfe import find_classifier_using_fw

    return find_classifier_using_fw(
        truth_of(rows, counted),
        rows.proba,
        metric_of(goal, rows.y.shape[0]),
        goal.k or 0,
        max_iters=iterations,
        init_classifier="top",
        skip_tn=True,
        seed=SEED,
        **options,
    )


def decide_mixture(rule: Any, proba: csr_matrix, _: Goal) -> csr_matrix:
    """Decide each row by the classifier that it draws."""
    from xcolumns.weighted_prediction import predict_weighted_per_instance

    share = np.asarray(rule.p, dtype=float)
    drawn = np.random.default_rng(SEED).choice(len(share), size=proba.shape[0], p=share / share.sum())
    order = np.argsort(drawn, kind="stable")
    parts = [
        predict_weighted_per_instance(proba[np.flatnonzero(drawn == one)], rule.k, a=rule.a[one], b=rule.b[one])
        for one in np.unique(drawn)
    ]
    return csr_matrix(vstack(parts, format="csr")[np.argsort(order)])


# ---------------------------------------------------------------------------------------------------------------------
# one table of weights


def priors(rows: Rows, _: Goal, *, counted: str) -> Any:
    truth = truth_of(rows, counted)
    return np.bincount(truth.indices, weights=truth.data, minlength=truth.shape[1]) / truth.shape[0]


def decide_by_priors(shares: Any, proba: csr_matrix, goal: Goal) -> csr_matrix:
    from xcolumns.weighted_prediction import predict_optimizing_macro_recall

    return predict_optimizing_macro_recall(proba, goal.k, shares)


def nothing(_: Rows, __: Goal) -> None:
    """Fit nothing."""


def decide_top(_: Any, proba: csr_matrix, goal: Goal) -> csr_matrix:
    from xcolumns.weighted_prediction import predict_top_k

    return predict_top_k(proba, goal.k)


# ---------------------------------------------------------------------------------------------------------------------
# these rows together


def decide_together(_: Any, proba: csr_matrix, goal: Goal) -> csr_matrix:
    from xcolumns import block_coordinate, metrics

    options = {"init_y_pred": "top", "seed": SEED}
    if goal.metric == "label_coverage":
        return block_coordinate.predict_optimizing_coverage_using_bc(proba, goal.k, **options)
    name = {"f1": "f1_score"}.get(goal.metric, goal.metric)
    metric = getattr(metrics, f"binary_{name}_on_conf_matrix")
    decided = block_coordinate.predict_using_bc_with_0approx(proba, metric, goal.k or 0, skip_tn=True, **options)
    decided.prune()  # arrays that have grown are longer than what is stored
    return decided


# ---------------------------------------------------------------------------------------------------------------------


def peers(goal: Goal, n_rows: int) -> list[Contestant]:
    """Return what xcolumns has for a goal and a number of rows."""
    if goal.average == "micro" and goal.k is not None:  # hits alone count, where every row gets k labels
        return [Contestant("top k", "xcolumns", "rule", nothing, decide_top)]
    made = [mixture(counted, iterations) for iterations in (SHORT, LONG) for counted in ("expected", "labels")]
    if goal.metric in ("recall", "label_coverage"):
        made += [
            Contestant(f"1 / prior, {counted}", "xcolumns", "rule", partial(priors, counted=counted), decide_by_priors)
            for counted in ("expected", "labels")
        ]
    if goal.average == "macro" and (goal.k is not None or n_rows <= MAX_SQUARED_ROWS):
        made.append(Contestant("block coordinates", "xcolumns", "together", nothing, decide_together))
    return made


def mixture(counted: str, iterations: int) -> Contestant:
    fit = partial(frank_wolfe, counted=counted, iterations=iterations)
    return Contestant(f"Frank-Wolfe {iterations}, {counted}", "xcolumns", "rule", fit, decide_mixture)
