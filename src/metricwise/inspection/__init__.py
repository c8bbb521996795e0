"""What people look at: details counted from rows, displays, and one summary rendered as page and card.

Notebooks show the cards of rules once this package has been imported. Must not fit rules.
"""

from __future__ import annotations

from typing import Any

from ..rules.base import Rule


def _rule_card(rule: Any) -> str:
    """Return the card of a rule; the module is loaded when the first card is shown."""
    from .card import rule_card

    return str(rule_card(rule))


Rule.html_card = staticmethod(_rule_card)
