"""The rule for costs that differ from row to row: the decision of least expected cost, by the costs of its own row.

Owns how costs and probabilities of a row become a decision in the user's labels. Must not know where costs come from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InvalidParameter, entry_point, mention
from ..core.losses import Loss
from ..data import (
    Probabilities,
    Schema,
    decode,
    observed_labels,
    python_labels,
    read_row_costs,
    read_sample_weight,
    table_of,
)
from . import serialize
from .decisions import decide_costs
from .description import headline, link_lines
from .link import Link, shaped_like
from .stored import StoredRule
from .weighted import WeightedRule, last_column, read_link, same_classes, same_label, shared_from_dict, shared_to_dict

__all__ = ["CostRule"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

_FIELDS = ("classes", "multioutput", "normalize", "link", "output_names", "facts", "abstain_cost")


@dataclass(frozen=True, eq=False)
class CostRule(StoredRule):
    """Rule that predicts the class of least expected cost for each row, ``argmin_j sum_i cost[n, i, j] * eta_i``.

    Ties go to the lowest class. Two rules are equal if they decide alike; `facts` are not compared.

    Parameters
    ----------
    classes : ndarray of shape (K,)
        Label of each class, in column order.
    link : Link, optional
        Recalibration that is applied to the probabilities first.
    normalize : bool, default=False
        Whether `predict` divides each row of probabilities by its sum, so that scores are accepted.
    abstain_label : text, number or boolean, optional
        Label that is predicted if the rule abstains; None: it never does.
    abstain_cost : float, optional
        Cost of an abstention; None: it is given by the costs of each row.
    facts : mapping
        As in WeightedRule.

    See Also
    --------
    metricwise.optimize : Find the rule, with ``cost=``.
    WeightedRule : A rule with one loss for all rows.

    References
    ----------
    .. [1] Elkan (2001), "The Foundations of Cost-Sensitive Learning", IJCAI.

    Examples
    --------
    >>> import numpy as np
    >>> import metricwise as mw
    >>> rule = mw.CostRule(np.array(["pay", "refuse"]))
    >>> proba = [[0.9, 0.1], [0.9, 0.1]]
    >>> amount = [[50.0, 100.0], [50.0, 900.0]]  # lost if the row is of that class, and decided otherwise
    >>> rule.predict(proba, cost=amount)
    array(['pay', 'refuse'], dtype='<U6')
    """

    classes: NDArray[Any]
    link: Link | None = None
    normalize: bool = False
    abstain_label: Any = None
    abstain_cost: float | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    reader: WeightedRule = field(init=False, repr=False)

    @entry_point("{class}")
    def __post_init__(self) -> None:
        object.__setattr__(self, "facts", dict(self.facts))
        classes = np.asarray(self.classes)
        width = len(classes) + (self.abstain_label is not None) if classes.ndim == 1 else 2
        # Argmax of the same classes: it reads probabilities and checks all that both have in common.
        reader = WeightedRule(
            Loss.argmax(width), (classes,), self.link, normalize=self.normalize, abstain_label=self.abstain_label
        )
        object.__setattr__(self, "reader", reader)
        object.__setattr__(self, "classes", reader.classes[0])
        object.__setattr__(self, "abstain_label", reader.abstain_label)
        priced = self.abstain_cost
        if priced is not None and (self.abstain_label is None or not np.isfinite(priced)):
            raise InvalidParameter(
                "abstain_cost", f"be a finite number, given together with {mention('abstain_label')}", repr(priced)
            )

    @property
    def schema(self) -> Schema:
        """Classes, and whether the rule may abstain."""
        return self.reader.schema

    @entry_point()
    def predict(self, proba: Any, cost: Any = None, *, pos_label: Any = None) -> NDArray[Any]:
        """Predict labels.

        Parameters
        ----------
        proba : array-like of shape (N,) or (N, K)
            As in WeightedRule.predict.
        cost : array-like of shape (N, K), (N, K, K) or (N, K, K + 1)
            Costs of the decisions about these rows, as in :func:`metricwise.optimize`.
        pos_label : object, optional
            As in WeightedRule.predict.

        Returns
        -------
        ndarray of shape (N,)
        """
        read = self.reader.read(proba, self.facts, pos_label)
        codes = self.decide(read, self.read_cost(cost, read.n_rows))
        return decode(codes, self.schema.decisions)[:, 0]

    @entry_point()
    def distribution(self, proba: Any, cost: Any = None, *, pos_label: Any = None) -> FloatArray:
        """Return 1 for the decision about each row and 0 for the others; abstentions are the last column.

        Parameters
        ----------
        proba, cost, pos_label
            As in `predict`.

        Returns
        -------
        ndarray of shape (N, K), or (N, K + 1) if the rule may abstain
        """
        read = self.reader.read(proba, self.facts, pos_label)
        codes = self.decide(read, self.read_cost(cost, read.n_rows))
        out = np.zeros((len(codes), self.schema.decision_width))
        np.put_along_axis(out, last_column(codes, self.schema), 1.0, axis=1)
        return out

    @entry_point()
    def calibrated(self, proba: Any, *, pos_label: Any = None) -> NDArray[Any] | list[NDArray[Any]]:
        """Return the probabilities behind the recalibration of the rule, as :meth:`WeightedRule.calibrated` does.

        Parameters
        ----------
        proba, pos_label
            As in `predict`.

        Returns
        -------
        ndarray of the shape of proba
        """
        read = self.reader.read(proba, self.facts, pos_label)
        return shaped_like(proba, self.reader.calibrated_of(read), multioutput=False)

    @entry_point()
    def value(self, proba: Any, y: Any, cost: Any = None, sample_weight: Any = None) -> float:
        """Return minus the mean cost of the decisions about rows whose labels are known.

        Parameters
        ----------
        proba, cost
            As in `predict`.
        y : array-like of shape (N,)
            True labels; missing ones are ignored.
        sample_weight : array-like of shape (N,), optional

        Returns
        -------
        float
        """
        read = self.reader.read(proba, self.facts)
        costs = self.read_cost(cost, read.n_rows)
        true = _codes(y, self.classes, read.n_rows)
        weight = read_sample_weight(sample_weight, read.n_rows)
        weight = np.where(true >= 0, 1.0 if weight is None else weight, 0.0)
        if not weight.any():
            raise InvalidParameter("y", "have at least one observed label of positive weight", "none")
        return -float(self.paid(costs, true, self.decide(read, costs)[:, 0]) @ weight / weight.sum())

    def read_cost(self, cost: Any, n_rows: int) -> FloatArray:
        """Read the costs of decisions about `n_rows` rows."""
        may, k = self.abstain_label is not None, len(self.classes)
        return read_row_costs(cost, n_rows, k, abstain=may, abstain_cost=self.abstain_cost)

    def decide(self, proba: Probabilities, cost: FloatArray) -> IntArray:
        """Return codes of shape (N, 1) for probabilities and costs that have been read already."""
        return decide_costs(proba if self.link is None else self.link.view(proba), cost, self.abstain_cost)

    def paid(self, cost: FloatArray, true: NDArray[Any], decided: NDArray[Any]) -> FloatArray:
        """Return the costs (N,) of decisions (N,) about rows of true classes (N,); 0 if the class is not known."""
        own = np.maximum(true, 0).astype(np.intp)
        rows = np.arange(len(own))
        if cost.ndim == 2:
            paid = np.where(decided == own, 0.0, cost[rows, own])
            if self.abstain_cost is not None:
                paid = np.where(decided == cost.shape[1], self.abstain_cost, paid)
        elif self.abstain_cost is not None:
            inside = np.minimum(decided, cost.shape[2] - 1)
            paid = np.where(decided == cost.shape[2], self.abstain_cost, cost[rows, own, inside])
        else:
            paid = cost[rows, own, decided]
        return np.where(true >= 0, paid, 0.0)

    def paid_by_class(self, cost: FloatArray, decided: NDArray[Any]) -> FloatArray:
        """Return what decisions (N,) would cost if rows were of each class, (N, K)."""
        table = table_of(cost, self.abstain_cost)
        return np.asarray(np.take_along_axis(table, decided[:, None, None].astype(np.intp), axis=2)[:, :, 0])

    def describe(self) -> str:
        """Describe the rule in a few lines of plain English."""
        labels = ", ".join(map(repr, python_labels(self.classes)[:6]))
        what = f"For each row, predict the class of least expected cost, by the costs of that row. Classes: {labels}."
        lines = [*headline(self.facts, False), what]
        if self.abstain_label is not None:
            price = "as given by the costs of the row" if self.abstain_cost is None else f"{self.abstain_cost:g}"
            lines.append(f"Abstain, {self.abstain_label!r}, if every class costs more than an abstention: {price}.")
        return "\n".join([*lines, *link_lines(self.reader, 0, own_costs=True)])

    @entry_point()
    def to_dict(self) -> dict[str, Any]:
        """Return the rule as a dict of JSON types; `from_dict` restores it exactly."""
        link = self.link
        return {
            "format": serialize.FORMAT,
            "version": serialize.VERSION,
            "kind": "row_costs",
            **shared_to_dict(self.reader),
            "link": None if link is None else link.to_dict(),
            "abstain_cost": serialize.plain(self.abstain_cost, "abstain_cost"),
            "facts": serialize.plain(self.facts, "facts"),
        }

    @classmethod
    @entry_point()
    def from_dict(cls, document: Mapping[str, Any]) -> CostRule:
        """Return the rule from a dict written by `to_dict`; every field is checked."""
        read = serialize.read_object(document, "the rule")
        serialize.check_fields(read, "row_costs", _FIELDS, ("abstain_label",))
        shared = shared_from_dict(read)
        if len(shared["classes"]) != 1 or shared["multioutput"] or shared["output_names"] is not None:
            raise InvalidParameter("classes", "be those of one output", f"{len(shared['classes'])} outputs")
        price = read["abstain_cost"]
        return cls(
            shared["classes"][0],
            read_link(read["link"]),
            shared["normalize"],
            shared["abstain_label"],
            None if price is None else float(serialize.read_numbers(price, "abstain_cost", 0)),
            serialize.read_facts(read["facts"]),
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CostRule):
            return NotImplemented
        return (
            self.link == other.link
            and self.normalize == other.normalize
            and self.abstain_cost == other.abstain_cost
            and same_label(self.abstain_label, other.abstain_label)
            and same_classes((self.classes,), (other.classes,))
        )

    __hash__ = None  # type: ignore[assignment]  # holds arrays, compares by content


def _codes(y: Any, classes: NDArray[Any], n_rows: int) -> NDArray[Any]:
    """Read labels of known classes, (N,), -1 where one is missing."""
    labels = observed_labels(y)
    if labels.multioutput or len(labels.codes) != n_rows:
        raise InvalidParameter("y", f"have one label for each of the {n_rows} rows", f"shape {np.shape(y)}")
    known = {label: code for code, label in enumerate(python_labels(classes))}
    seen = python_labels(labels.classes[0])
    unknown = [label for label in seen if label not in known]
    if unknown:
        raise InvalidParameter("y", f"hold only the classes {list(known)}", repr(unknown[0]))
    table = np.array([known[label] for label in seen] + [-1], dtype=np.intp)
    return np.asarray(table[labels.codes[:, 0]])
