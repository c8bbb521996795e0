"""Folds of a classifier, from `cv` and `groups`. Must not know models."""

from __future__ import annotations

import inspect
import warnings
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import (
    KFold,
    ShuffleSplit,
    StratifiedKFold,
    StratifiedShuffleSplit,
    check_cv,
)
from sklearn.utils.metadata_routing import get_routing_for_object

from ..core.errors import InvalidParameter, mention
from ._compat import GroupsConsumerMixin, count_rows, routing_enabled
from ._targets import Target

__all__ = ["check_groups", "make_splits"]

_N_FOLDS = 5

Split = tuple[NDArray[np.intp], NDArray[np.intp]]


def make_splits(
    cv: Any, X: Any, target: Target, random_state: Any, params: dict[str, Any], *, stratify: bool = True
) -> list[Split]:
    """Return the (train, test) rows of each fold, without repetitions.

    None and integers are stratified by combinations of classes if possible; a float is the share of test rows in a
    single split.
    """
    n = count_rows(X)
    splits = [
        (_row_numbers(train, n, "trains on"), _tested_once(_row_numbers(test, n, "tests")))
        for train, test in _split(cv, X, target, random_state, params, stratify)
    ]
    if not splits:
        raise InvalidParameter("cv", "yield at least one split into training and test rows", "none")
    return splits


def _split(
    cv: Any, X: Any, target: Target, random_state: Any, params: dict[str, Any], stratify: bool
) -> list[tuple[Any, Any]]:
    n, strata = count_rows(X), target.strata()
    if isinstance(cv, Real) and not isinstance(cv, Integral):
        return list(_one_split(float(cv), n, strata, random_state, stratify).split(np.zeros(n), strata))
    if cv is None or isinstance(cv, Integral):
        folds = _N_FOLDS if cv is None else int(cv)
        can = np.bincount(strata).max() >= folds
        splitter = StratifiedKFold(folds) if can else KFold(folds)
        with warnings.catch_warnings():
            # Folds that lack a class are aligned: no need to warn of them.
            warnings.filterwarnings("ignore", message="The least populated class in y", category=UserWarning)
            return list(splitter.split(np.zeros(n), strata))
    y = target.whole() if target.complete and target.alike() else strata
    return list(check_cv(cv, y, classifier=True).split(X, y, **params))


def _row_numbers(part: Any, n: int, verb: str) -> NDArray[np.intp]:
    """Read one side of a split, row numbers or a mask."""
    rows = np.asarray(part)
    if rows.dtype.kind == "b" and rows.shape == (n,):
        rows = np.flatnonzero(rows)
    if rows.ndim != 1 or rows.dtype.kind not in "iu" or len(rows) == 0:
        raise InvalidParameter(
            "cv",
            f"yield row indices, or masks of {n} rows, with at least one row on each side of a split",
            remedy=f"got a split that {verb} an array of {rows.dtype} of shape {rows.shape}",
        )
    if rows.min() < -n or rows.max() >= n:
        raise InvalidParameter(
            "cv",
            f"yield indices of the {n} rows of X, from 0 to {n - 1}",
            f"a split that {verb} rows {rows.min()} to {rows.max()}",
        )
    rows = rows.astype(np.intp, copy=False)
    return np.where(rows < 0, rows + n, rows) if rows.min() < 0 else rows


def _tested_once(rows: NDArray[np.intp]) -> NDArray[np.intp]:
    """Leave out repetitions: one model says the same of a row however often it is asked."""
    once = np.unique(rows)
    return rows if len(once) == len(rows) else once


def _one_split(share: float, n: int, strata: NDArray[Any], random_state: Any, stratify: bool) -> Any:
    n_test = int(np.floor(share * n + 1e-9))  # 0.29 * 100 is 28.999...
    if not 0 < n_test < n:
        raise InvalidParameter(
            "",
            problem=f"cv={share} leaves one side of the split of {n} rows empty",
            remedy="use another share or more rows",
        )
    counts = np.bincount(strata)
    can = stratify and counts.min() >= 2 and min(n_test, n - n_test) >= len(counts)
    splitter = StratifiedShuffleSplit if can else ShuffleSplit
    return splitter(1, test_size=n_test, random_state=random_state)


# ------------------------------------------------------------------------------------------------------ groups


def check_groups(cv: Any, groups: Any, estimator: Any) -> None:
    """Refuse groups that `cv` would not keep together, unless metadata routing hands them to the estimator."""
    if groups is None or _knows_groups(cv):
        return
    if routing_enabled() and get_routing_for_object(estimator).consumes("fit", ["groups"]):
        return
    if cv is None or isinstance(cv, (Real, str)):
        description = f"cv={cv!r}"
    elif hasattr(cv, "split"):
        description = f"{type(cv).__name__}, which does not"
    else:
        description = "splits that are made already"
    raise InvalidParameter(
        "groups",
        problem=(
            f"{mention('groups')} needs a cv that keeps the rows of a group together, such as GroupKFold, "
            f"StratifiedGroupKFold or LeaveOneGroupOut, got {description}"
        ),
        remedy="pass such a splitter as cv, or leave groups out",
    )


def _knows_groups(cv: Any) -> bool:
    """Whether a splitter uses groups: scikit-learn's all take them, and most ignore them."""
    split = getattr(cv, "split", None)
    if not callable(split) or isinstance(cv, str):
        return False
    if isinstance(cv, GroupsConsumerMixin):
        return True
    if str(getattr(split, "__module__", "")).partition(".")[0] == "sklearn":
        return False
    parameters = inspect.signature(split).parameters
    return "groups" in parameters or any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
