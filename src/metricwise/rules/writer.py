"""Base of writers of rules: exports and cards. One method for each kind, and an error for kinds without one."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from ..core.errors import InvalidType, argument, mention

T = TypeVar("T")


class RuleWriter(Generic[T]):
    """Base of writers: a kind that a writer has no method for is refused.

    A rule calls the method of its kind (:meth:`.Rule.accept`). A kind that writers do not know can call the method
    of another kind with a rule that decides alike.
    """

    target = "this format"  # what is written, for messages

    def weighted(self, rule: Any) -> T:
        """Write a rule of one loss."""
        return self.other(rule)

    def mixture(self, rule: Any) -> T:
        """Write a rule that draws one of several."""
        return self.other(rule)

    def grouped(self, rule: Any) -> T:
        """Write a rule for each sensitive group."""
        return self.other(rule)

    def cut_points(self, rule: Any) -> T:
        """Write a rule that compares one score with cut points."""
        return self.other(rule)

    def example_cost(self, rule: Any) -> T:
        """Write a rule that decides each row by its own costs."""
        return self.other(
            rule,
            "exports do not support costs per row",
            f"use rule.predict(proba, {argument('cost')}), or export a rule with one loss for all rows, from "
            "optimize(..., metrics.Cost(costs))",
        )

    def labels(self, rule: Any) -> T:
        """Write a rule for very many labels."""
        budget = f"{self.target} does not support {mention('labels_per_row')}, by which the labels of a row compete"
        many = "exports do not support rules for very many labels"
        return self.other(rule, many if rule.labels_per_row is None else budget)

    def label_sets(self, rule: Any) -> T:
        """Write a rule for the best set of labels of each row."""
        return self.other(rule, "the best set of labels of a row is found by computation, not by a table of weights")

    def other(self, rule: Any, reason: str = "", remedy: str = "") -> T:
        """Refuse a rule that cannot be written, with a reason and what to do instead."""
        raise InvalidType(
            "rule",
            f"not be a {type(rule).__name__}, because {reason or f'{self.target} does not support such rules'}",
            remedy=remedy or "use rule.predict(proba)",
        )
