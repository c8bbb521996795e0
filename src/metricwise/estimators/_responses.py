"""Responses of classifiers, as arrays whose columns are the classes of the target.

A response is what a method of a classifier returns for rows: probabilities, log-probabilities or a decision function.
Must not know metrics or rules.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InvalidParameter, argument
from ..core.inputs import Input, InputKind
from ..data.frames import column_names, is_frame, match_columns
from ..data.label_rows import is_sparse
from ..data.row_spec import take_rows
from ._boosters import gives_margins, raw_margins, takes_codes_only
from ._targets import Target

__all__ = [
    "DECISION",
    "LOG_PROBA",
    "METHODS",
    "PROBA",
    "RESPONSES",
    "Response",
    "fitted_classes",
    "known_classes",
    "response_for",
]

Block = NDArray[Any]
Blocks = list[Block]  # of M outputs

_AGREEMENT = (
    0.95  # share of rows whose largest value must be the class predicted; that of one-vs-rest SVC is above 0.99
)
_MAX_SUM_ERROR = 1e-3  # of probabilities behind log-probabilities; those of scikit-learn's models are below 1e-9


# ------------------------------------------------------------------------------------------------------ classes


def known_classes(model: Any, target: Target) -> tuple[NDArray[Any], ...]:
    """Return what the columns of a fitted model's probabilities stand for, as labels of the target where it can."""
    classes = getattr(model, "classes_", None)
    codes_only = takes_codes_only(model)
    if classes is None:
        codes = map(np.arange, map(len, target.classes))
        return tuple(_labels_of(*pair, target) for pair in enumerate(codes)) if codes_only else target.classes
    if not target.several:
        return (_labels_of(0, _plain(classes), target) if codes_only else _plain(classes),)
    nested = isinstance(classes, (list, tuple)) and len(classes) == target.n_outputs and np.ndim(classes[0]) == 1
    return tuple(map(_plain, classes)) if nested else tuple(np.array([0, 1]) for _ in range(target.n_outputs))


def _labels_of(m: int, codes: NDArray[Any], target: Target) -> NDArray[Any]:
    """Return the labels of output m that the codes of a model stand for, which has been fitted to nothing else.

    Labels that are codes themselves stand for themselves; code j of any others is the label of column j.
    """
    names = target.named(m).tolist()
    return codes if set(names) == set(range(len(names))) else target.columns(m)


def fitted_classes(model: Any, X: Any = None) -> tuple[tuple[NDArray[Any], ...], bool]:
    """Return the classes of each output of a fitted model, and whether its labels are 2-D, without any labels given.

    Multilabel models often have ``classes_`` like those of a multiclass one, a list of the outputs; what they predict
    for a row is the one sign that all of them give. Without rows at hand, one of zeros is tried.
    """
    classes = model.classes_
    if isinstance(classes, (list, tuple)) and len(classes) and np.ndim(classes[0]) == 1:
        return tuple(map(_plain, classes)), True
    width = _predicted_width(model, X)
    return (tuple(np.array([0, 1]) for _ in range(width)), True) if width > 1 else ((_plain(classes),), False)


def _predicted_width(model: Any, X: Any) -> int:
    """Return the number of columns that a model predicts; 1 where it cannot be found out."""
    if X is not None:
        predicted = model.predict(take_rows(X, slice(0, 1)))
    else:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of columns that have no names
                predicted = model.predict(np.zeros((1, model.n_features_in_)))
        except Exception:  # columns that are no numbers, or go by name
            return 1
    shape = np.shape(predicted)
    return int(shape[1]) if len(shape) == 2 else 1


def _plain(labels: Any) -> NDArray[Any]:
    """Labels of one type as an array of that type: estimators often keep strings as objects."""
    array = np.asarray(labels)
    if array.dtype.kind != "O":
        return array
    return np.array(array.tolist()) if len(set(map(type, array.tolist()))) == 1 else array


def _places(classes: NDArray[Any], names: NDArray[Any]) -> list[int]:
    """Return the position of each class of a model among the names of the target's; refuse others."""
    place = {label: k for k, label in enumerate(names.tolist())}
    unknown = [label for label in classes.tolist() if label not in place]
    if unknown:
        raise InvalidParameter(
            "estimator", problem=f"the estimator's classes must be among {list(place)}, got also {unknown}"
        )
    return [place[label] for label in classes.tolist()]


# --------------------------------------------------------------------------------------------------- responses


class Response:
    """Class probabilities, by `predict_proba`; other responses derive from it."""

    method: ClassVar[str] = "predict_proba"
    kind: ClassVar[InputKind] = "probabilities"
    absent: ClassVar[float] = 0.0  # what a class has that a fold lacks, and sums over folds start from

    @property
    def input(self) -> Input:
        """What rules take it for."""
        return Input.of(self.kind)

    def is_given_by(self, model: Any) -> bool:
        """Whether a classifier has the method."""
        return hasattr(model, self.method)

    def blocks(self, model: Any, X: Any, target: Target) -> Blocks:
        """Return what a fitted model says of rows, an array (N, K_m) per output in the order of the target's classes.

        Decision functions of two classes have one column, that of the second class.
        """
        return self.blocks_of(self.ask(model, X), model, target)

    def blocks_of(self, raw: Any, model: Any, target: Target) -> Blocks:
        """Return what a fitted model has said as arrays of the outputs; see `blocks`."""
        if is_sparse(raw):
            raise InvalidParameter(
                "estimator",
                f"have a dense {self.method} for this rule",
                "a sparse one",
                "use a rule for very many labels, such as LabelRule",
            )
        if not target.several:
            blocks = [raw]
        elif isinstance(raw, (list, tuple)):
            blocks = list(raw)
        else:
            blocks = self._split(np.asarray(raw), target)
        if len(blocks) != target.n_outputs:
            raise InvalidParameter(
                "estimator", problem=f"the estimator must have {target.n_outputs} outputs, as y has, got {len(blocks)}"
            )
        classes = known_classes(model, target)
        return [self._align(_by_name(block, classes[m]), classes[m], target.named(m)) for m, block in enumerate(blocks)]

    def check(self, model: Any, X: Any, target: Target, blocks: Blocks) -> None:
        """Refuse what does not mean what it seems to."""

    def is_usable(self, blocks: Blocks) -> bool:
        """Whether all numbers can be read."""
        return not any(np.isnan(block).any() for block in blocks)

    def add(self, total: Block, rows: Any, block: Block) -> None:
        """Add what a fold says of its rows."""
        total[rows] += block

    def divide(self, total: Block, counts: NDArray[np.intp]) -> Block:
        """Return the mean over folds from their sum."""
        return np.asarray(total / counts[:, None].astype(total.dtype))

    def pack(self, blocks: Blocks, target: Target, both: bool = False) -> Any:
        """Return the arrays of the outputs in a shape that `optimize` and rules take, one array where widths agree.

        `both` makes two columns of single ones, for rules that were fitted to these.
        """
        if not target.several:
            return blocks[0]
        if len({block.shape[1] for block in blocks}) == 1:
            return np.stack(blocks, axis=1)
        return blocks

    # ------------------------------------------------------------------------------------------------------ ties

    def certainty(self, block: Block) -> Block:
        """Return the largest probability of each row, (N,)."""
        return np.asarray(block.max(axis=1))

    def tell_rows(self, block: Block) -> Block:
        """Return numbers (n, w) that differ where the response tells rows apart."""
        return block

    def tie_codes(self, block: Block) -> NDArray[np.intp]:
        """Return numbers (n,) that are the same for certain rows that rules can hardly tell apart."""
        return np.asarray(block.argmax(axis=1))

    # --------------------------------------------------------------------------------------------------- reading

    def ask(self, model: Any, X: Any) -> Any:
        """Return what the method of a model returns."""
        return getattr(model, self.method)(X)

    def _split(self, array: Block, target: Target) -> Blocks:
        """Read (N, M) numbers of class 1, or (N, M, K)."""
        if array.ndim == 3:
            return [array[:, m, : len(labels)] for m, labels in enumerate(target.classes)]
        if any(len(labels) != 2 for labels in target.classes):
            raise InvalidParameter(
                "estimator",
                problem=(
                    f"the estimator's {self.method} must return a list with one array per output if outputs "
                    f"have more than two classes, got an array of shape {array.shape}"
                ),
            )
        return [self._of_column(column) for column in array.T]

    def _of_column(self, column: Block) -> Block:
        return np.stack([1 - column, column], axis=1)

    def _uniform(self, n_classes: int) -> float:
        return 1.0 / n_classes

    def _align(self, block: Block, classes: NDArray[Any], names: NDArray[Any]) -> Block:
        """Put columns in order; classes that a fold lacks get nothing, rows without any probability 1/K."""
        if block.ndim != 2 or block.shape[1] != len(classes):
            raise InvalidParameter(
                "estimator",
                problem=(
                    f"the estimator's {self.method} must have one column per class, {len(classes)}, "
                    f"got shape {block.shape}"
                ),
            )
        if len(classes) == len(names) and np.array_equal(classes, names):
            return block
        dtype = block.dtype if block.dtype.kind == "f" else np.float64
        out = np.full((len(block), len(names)), self.absent, dtype=dtype)
        out[:, _places(classes, names)] = block
        out[(out == self.absent).all(axis=1)] = self._uniform(len(names))
        return out


class LogProba(Response):
    """Log-probabilities of all classes, by `predict_log_proba`; -inf for a class that a fold lacks."""

    method = "predict_log_proba"
    kind: ClassVar[InputKind] = "log_proba"
    absent = -np.inf

    def is_usable(self, blocks: Blocks) -> bool:
        """Whether all numbers are logarithms of probabilities that sum to 1."""
        return super().is_usable(blocks) and all(
            bool((np.abs(np.exp(block.astype(np.float64)).sum(axis=1) - 1) <= _MAX_SUM_ERROR).all()) for block in blocks
        )

    def add(self, total: Block, rows: Any, block: Block) -> None:
        """Add the probabilities of a fold, in log space."""
        total[rows] = np.logaddexp(total[rows], block)

    def divide(self, total: Block, counts: NDArray[np.intp]) -> Block:
        """Return the logarithms of mean probabilities."""
        return np.asarray(total - np.log(counts[:, None]).astype(total.dtype))

    def certainty(self, block: Block) -> Block:
        """Return the largest probability of each row, (N,)."""
        return np.asarray(np.exp(block.max(axis=1)))

    def tell_rows(self, block: Block) -> Block:
        """Return log-odds against the largest class: its own log-probability is 0 but for rounding."""
        return np.asarray(block - block.max(axis=1, keepdims=True))

    def tie_codes(self, block: Block) -> NDArray[np.intp]:
        """Return the same number for rows of equal log-odds."""
        return np.unique(self.tell_rows(block).round(6), axis=0, return_inverse=True)[1].reshape(-1)

    def ask(self, model: Any, X: Any) -> Any:
        """Return log-probabilities, also of 0."""
        with np.errstate(divide="ignore"):
            return super().ask(model, X)

    def _of_column(self, column: Block) -> Block:
        with np.errstate(divide="ignore"):
            return np.stack([np.log(-np.expm1(np.minimum(column, 0))), column], axis=1)

    def _uniform(self, n_classes: int) -> float:
        return float(-np.log(n_classes))


class Decision(Response):
    """Scores by `decision_function`: of the second of two classes, whose sign decides, or one against the rest each."""

    method = "decision_function"
    kind: ClassVar[InputKind] = "scores"

    @property
    def input(self) -> Input:
        """Scores that have a boundary, at 0."""
        return Input(self.kind, has_boundary=True)

    def check(self, model: Any, X: Any, target: Target, blocks: Blocks) -> None:
        """Refuse pairwise values of three classes, which have as many columns as values of one against the rest."""
        if not any(block.shape[1] == 3 for block in blocks):
            return
        predicted = np.asarray(model.predict(X)).reshape(len(blocks[0]), -1)
        for m, block in enumerate(blocks):
            if block.shape[1] == 3:
                largest = target.named(m)[block.argmax(axis=1)]
                if np.mean(largest.astype(object) == predicted[:, m].astype(object)) < _AGREEMENT:
                    raise _one_vs_one("the largest value of a row is not that of the class predicted")

    def is_usable(self, blocks: Blocks) -> bool:
        """Whether all numbers are finite."""
        return all(np.isfinite(block).all() for block in blocks)

    def pack(self, blocks: Blocks, target: Target, both: bool = False) -> Any:
        """Return (N,) or (N, M) if all outputs have two classes, and columns of all classes otherwise."""
        if both or len({block.shape[1] for block in blocks}) > 1:
            return super().pack([_both_columns(block) for block in blocks], target)
        if blocks[0].shape[1] == 1:
            return np.concatenate(blocks, axis=1) if target.several else blocks[0][:, 0]
        return super().pack(blocks, target)

    def _split(self, array: Block, target: Target) -> Blocks:
        return super()._split(array[:, None] if array.ndim == 1 else array, target)

    def _of_column(self, column: Block) -> Block:
        return column

    def _align(self, block: Block, classes: NDArray[Any], names: NDArray[Any]) -> Block:
        """Return a column for the second of two names, or one per name; classes that a fold lacks are below others."""
        margins = _margins(block if block.dtype.kind == "f" else block.astype(np.float64), classes)
        places = _places(classes, names)
        if len(names) == 2:
            column = np.zeros(len(block), dtype=margins.dtype)
            if places:
                column = margins[:, places.index(1)] if 1 in places else -margins[:, places.index(0)]
            return column[:, None]
        if places == list(range(len(names))):
            return margins
        out = np.zeros((len(block), len(names)), dtype=margins.dtype)
        if places:
            low, high = margins.min(axis=1), margins.max(axis=1)
            out[:] = (low - np.where(high > low, high - low, 1))[:, None]
            out[:, places] = margins
        return out


class Logits(LogProba):
    """Log-probabilities as logits: the log-odds of the second of two classes, and of more classes as they are."""

    kind = "logits"

    def pack(self, blocks: Blocks, target: Target, both: bool = False) -> Any:
        """Return (N,) or (N, M) if all outputs have two classes, and columns of all classes otherwise."""
        if both or any(block.shape[1] != 2 for block in blocks):
            return super().pack(blocks, target)
        return DECISION.pack([block[:, 1:] - block[:, :1] for block in blocks], target)


class DecisionLogits(Decision):
    """A decision function that is taken for logits."""

    kind = "logits"


class Margins(Decision):
    """Raw margins of a classifier that has them without a `decision_function`."""

    def is_given_by(self, model: Any) -> bool:
        """Whether it is such a classifier."""
        return gives_margins(model)

    def ask(self, model: Any, X: Any) -> Any:
        """Return the margins, (N,) or (N, K)."""
        return raw_margins(model, X)


class MarginLogits(Margins):
    """Raw margins that are taken for logits."""

    kind = "logits"


def _margins(block: Block, classes: NDArray[Any]) -> Block:
    """Return the decision function (N, classes) of one class against the rest; 1 for a single class."""
    k = len(classes)
    if k < 2:
        return np.ones((len(block), k), dtype=block.dtype)
    columns = block[:, None] if block.ndim == 1 else block
    if columns.ndim == 2 and k == 2 and columns.shape[1] == 1:
        return np.concatenate([-columns, columns], axis=1)
    if columns.ndim == 2 and columns.shape[1] == k:
        return _margins(columns[:, 1:] - columns[:, :1], classes) if k == 2 else columns
    if columns.ndim == 2 and columns.shape[1] == k * (k - 1) // 2:
        raise _one_vs_one(f"it has {columns.shape[1]} columns for {k} classes")
    raise InvalidParameter(
        "estimator",
        problem=(
            f"the estimator's decision_function must have one column per class, {k}, or a single one for two classes, "
            f"got shape {block.shape}"
        ),
        remedy=f"use {argument('response', 'predict_proba')} if it has that",
    )


def _one_vs_one(reason: str) -> InvalidParameter:
    return InvalidParameter(
        "estimator",
        problem=(
            f"the estimator's decision_function must compare each class with the rest, not pairs of classes: {reason}"
        ),
        remedy=(
            "use one-vs-rest values, such as those of SVC(decision_function_shape='ovr'), or "
            f"{argument('response', 'predict_proba')}"
        ),
    )


def _both_columns(block: Block) -> Block:
    """Return a single column as two, whose difference it is; more columns as they are."""
    return np.concatenate([-block / 2, block / 2], axis=1) if block.shape[1] == 1 else block


def _by_name(block: Any, classes: NDArray[Any]) -> NDArray[Any]:
    """Return an array in the order of the classes, for a data frame whose columns are named by them."""
    named = is_frame(block) and set(map(str, column_names(block))) == set(map(str, classes.tolist()))
    return np.asarray(match_columns(block, classes) if named else block)


PROBA, LOG_PROBA, DECISION = Response(), LogProba(), Decision()
RESPONSES: tuple[Response, ...] = (PROBA, LOG_PROBA, DECISION)  # from the first choice to the last
METHODS = tuple(response.method for response in RESPONSES)

_BY_INPUT: dict[str, Sequence[Response]] = {
    "probabilities": (PROBA,),
    "log_proba": (LOG_PROBA,),
    "scores": (DECISION, Margins()),
    "logits": (Logits(), DecisionLogits(), MarginLogits()),
}


def response_for(kind: str, model: Any) -> Response:
    """Return the response of a model that a rule on some input takes.

    Logits are log-probabilities, which are that of any model, or else the decision function.
    """
    responses = _BY_INPUT[kind]
    for response in responses:
        if response.is_given_by(model):
            return response
    methods = dict.fromkeys(response.method for response in responses)
    raise InvalidParameter(
        "estimator",
        f"have {' or '.join(methods)}, because the rule takes {kind}",
        f"{type(model).__name__}, which lacks {'it' if len(methods) == 1 else 'both'}",
    )
