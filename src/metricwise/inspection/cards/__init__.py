"""Cards: what a notebook shows of a solution, a rule or a fitted estimator, as HTML.

Owns the cards, and the words, tables and small charts that reports have in common with them. They need nothing but what
the library needs: no matplotlib, no templates. Every label is escaped. Must not count rows.
"""

from .card import estimator_card, rule_card, solution_card
from .numbers import advice

__all__ = ["advice", "estimator_card", "rule_card", "solution_card"]
