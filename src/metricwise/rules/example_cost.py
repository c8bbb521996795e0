"""The rule for example-dependent costs: for each row, the decision of least expected cost. Must not know metrics."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InvalidParameter, entry_point, mention
from ..core.labels import python_label, python_labels
from ..core.ordinal_map import OrdinalMap
from ..core.probabilities import Probabilities
from ..core.schema import Schema
from ..data.labels import observed_labels
from ..data.row_costs import read_row_costs, table_of
from ..data.weights import read_sample_weight
from .base import Rule, RuleRows, check_outputs, rule_input, same_classes, same_label
from .calibration import TemperatureScaling, recalibrated
from .class_shares import ShareShift
from .codec import LINK, SHARED_FIELDS, JsonField, nullable, read_numbers
from .decisions import decide_costs
from .describe import link_lines
from .metadata import NO_METADATA, RuleMetadata
from .writer import RuleWriter

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
T = TypeVar("T")


_ABSTAIN_COST = JsonField(
    "abstain_cost",
    {
        "description": "Cost of an abstention; null if the costs of each row include it or the rule never abstains.",
        "type": ["number", "null"],
    },
    nullable(lambda value, name: float(read_numbers(value, name, 0))),
)
_ONE_OUTPUT: dict[str, Any] = {"multioutput": {"const": False}, "output_names": {"type": "null"}}
_SHARED_FIELDS = tuple(
    replace(field, schema=_ONE_OUTPUT.get(field.name, field.schema))
    if field.name != "classes"
    else replace(field, schema={**field.schema, "maxItems": 1})
    for field in SHARED_FIELDS
)


@dataclass(frozen=True, eq=False)
class CostRule(Rule):
    """Rule that predicts the class with the lowest expected cost, ``argmin_j sum_i cost[n, i, j] * eta_i``.

    Ties go to the lowest class. Two rules are equal if they decide alike; `metadata` is not compared.

    Parameters
    ----------
    classes : tuple of one ndarray of shape (K,)
        Label of each class of the output, in column order.
    link : TemperatureScaling, optional
        Recalibration that is applied to the probabilities first.
    normalize : bool, default=False
        Whether `predict` divides each row of probabilities by its sum, so that scores are accepted.
    abstain_label : text, number or boolean, optional
        Label that is predicted if the rule abstains; None: it never does.
    abstain_cost : float, optional
        Cost of an abstention; None: it is given by the costs of each row.
    metadata : RuleMetadata, or mapping
        As in WeightedRule.
    input : {"probabilities", "logits", "log_proba", "scores"}, default="probabilities"
    ordinal_map : OrdinalMap, optional
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
    >>> rule = mw.CostRule((np.array(["pay", "refuse"]),))
    >>> proba = [[0.9, 0.1], [0.9, 0.1]]
    >>> amount = [[50.0, 100.0], [50.0, 900.0]]  # lost if the row is of that class, and decided otherwise
    >>> rule.predict(proba, cost=amount)
    array(['pay', 'refuse'], dtype='<U6')
    """

    classes: tuple[NDArray[Any], ...]
    link: TemperatureScaling | None = None
    normalize: bool = False
    abstain_label: Any = None
    abstain_cost: float | None = None
    metadata: RuleMetadata = NO_METADATA
    input: str = field(default="probabilities", repr=False)
    ordinal_map: OrdinalMap | None = field(default=None, repr=False)
    multioutput: bool = field(init=False, repr=False, default=False)
    output_names: tuple[str, ...] | None = field(init=False, repr=False, default=None)
    schema: Schema = field(init=False, repr=False)
    kind: ClassVar[str] = "row_costs"
    summary: ClassVar[str] = "Predict the class with the lowest expected cost, given the costs of the row."
    needs: ClassVar[frozenset[str]] = frozenset({"cost"})
    fields: ClassVar = (LINK, _ABSTAIN_COST)
    shared_fields: ClassVar = _SHARED_FIELDS

    @entry_point("{class}")
    def __post_init__(self) -> None:
        object.__setattr__(self, "abstain_label", python_label(self.abstain_label))
        schema = Schema(
            self.classes,
            False,
            self.normalize,
            None,
            abstain_label=self.abstain_label,
            input=rule_input(self.input, self.ordinal_map, self.classes),
        )
        object.__setattr__(self, "schema", schema)
        object.__setattr__(self, "classes", schema.classes)
        object.__setattr__(self, "metadata", RuleMetadata.of(self.metadata))
        if len(schema.classes) != 1:
            raise InvalidParameter("classes", "be those of one output", f"{len(schema.classes)} outputs")
        check_outputs(schema, self.link)
        priced = self.abstain_cost
        if priced is not None and (self.abstain_label is None or not np.isfinite(priced)):
            raise InvalidParameter(
                "abstain_cost", f"be a finite number, given together with {mention('abstain_label')}", repr(priced)
            )

    def decide(self, rows: RuleRows) -> IntArray:
        """Return the codes of the decisions of least expected cost, of shape (N, 1)."""
        assert rows.cost is not None
        proba = rows.proba if self.link is None else self.link.view(rows.proba)
        return decide_costs(proba, rows.cost, self.abstain_cost)

    def calibrate(self, rows: RuleRows) -> Probabilities:
        """Return the probabilities behind the link."""
        return recalibrated(self.link, rows.proba)

    def move(self, shift: ShareShift) -> Self:
        """Return the rule after a shift of class shares."""
        return replace(self, link=shift.move_link(self.link))

    @property
    def shared_link(self) -> TemperatureScaling | None:
        """The link."""
        return self.link

    def accept(self, writer: RuleWriter[T]) -> T:
        """Return what a writer writes of the rule."""
        return writer.example_cost(self)

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
        rows = self.read_rows(proba, cost=cost)
        assert rows.cost is not None
        n_rows = rows.proba.n_rows
        true = _codes(y, self.classes[0], n_rows)
        weight = read_sample_weight(sample_weight, n_rows)
        weight = np.where(true >= 0, 1.0 if weight is None else weight, 0.0)
        if not weight.any():
            raise InvalidParameter("y", "have at least one observed label of positive weight", "none")
        return -float(self.paid(rows.cost, true, self.decide(rows)[:, 0]) @ weight / weight.sum())

    def read_cost(self, cost: Any, n_rows: int) -> FloatArray:
        """Read the costs of decisions about `n_rows` rows."""
        may, k = self.abstain_label is not None, len(self.classes[0])
        return read_row_costs(cost, n_rows, k, abstain=may, abstain_cost=self.abstain_cost)

    def paid(self, cost: FloatArray, true: NDArray[Any], decided: NDArray[Any]) -> FloatArray:
        """Return the costs (N,) of decisions (N,) about rows of true classes (N,); 0 if the class is not known."""
        true_class = np.maximum(true, 0).astype(np.intp)
        rows = np.arange(len(true_class))
        if cost.ndim == 2:
            paid = np.where(decided == true_class, 0.0, cost[rows, true_class])
            if self.abstain_cost is not None:
                paid = np.where(decided == cost.shape[1], self.abstain_cost, paid)
        elif self.abstain_cost is not None:
            inside = np.minimum(decided, cost.shape[2] - 1)
            paid = np.where(decided == cost.shape[2], self.abstain_cost, cost[rows, true_class, inside])
        else:
            paid = cost[rows, true_class, decided]
        return np.where(true >= 0, paid, 0.0)

    def paid_by_class(self, cost: FloatArray, decided: NDArray[Any]) -> FloatArray:
        """Return what decisions (N,) would cost if rows were of each class, (N, K)."""
        table = table_of(cost, self.abstain_cost)
        return np.asarray(np.take_along_axis(table, decided[:, None, None].astype(np.intp), axis=2)[:, :, 0])

    def decision_lines(self, metadata: RuleMetadata) -> list[str]:
        """Say what the rule decides."""
        labels = ", ".join(map(repr, python_labels(self.classes[0])[:6]))
        lines = [f"Predict the class with the lowest expected cost, given the costs of the row. Classes: {labels}."]
        if self.abstain_label is not None:
            price = "as given by the costs of the row" if self.abstain_cost is None else f"{self.abstain_cost:g}"
            lines.append(f"Abstain ({self.abstain_label!r}) if every class costs more than an abstention: {price}.")
        return [*lines, *link_lines(self.link, self.schema, 0, own_costs=True)]

    @classmethod
    def _from_values(cls, values: dict[str, Any], metadata: RuleMetadata) -> CostRule:
        """Return the rule of the values of all fields."""
        several, names = values.pop("multioutput"), values.pop("output_names")
        if several or names is not None:
            raise InvalidParameter("classes", "be those of one output", f"{len(values['classes'])} outputs")
        return cls(**values, metadata=metadata)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CostRule):
            return NotImplemented
        return (
            self.link == other.link
            and self.normalize == other.normalize
            and (self.input, self.ordinal_map) == (other.input, other.ordinal_map)
            and self.abstain_cost == other.abstain_cost
            and same_label(self.abstain_label, other.abstain_label)
            and same_classes(self.classes, other.classes)
        )

    __hash__ = None  # type: ignore[assignment]  # holds arrays, compares by content


def _codes(y: Any, classes: NDArray[Any], n_rows: int) -> NDArray[Any]:
    """Read labels of known classes, (N,), -1 where one is missing."""
    labels = observed_labels(y)
    if labels.multioutput or len(labels.codes) != n_rows:
        raise InvalidParameter("y", f"have one label for each of the {n_rows} rows", f"shape {np.shape(y)}")
    code_of = {label: code for code, label in enumerate(python_labels(classes))}
    observed = python_labels(labels.classes[0])
    unknown = [label for label in observed if label not in code_of]
    if unknown:
        raise InvalidParameter("y", f"hold only the classes {list(code_of)}", repr(unknown[0]))
    table = np.array([code_of[label] for label in observed] + [-1], dtype=np.intp)
    return np.asarray(table[labels.codes[:, 0]])
