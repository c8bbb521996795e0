"""What people look at: details counted from rows, cards, displays and reports.

Owns how a rule is shown. Notebooks show the cards of rules once this package has been imported. Must not fit rules.
"""

from __future__ import annotations

from typing import Any

from ..rules.base import Rule


def _rule_card(rule: Any) -> str:
    """Return the card of a rule; cards are loaded when the first one is shown."""
    from .cards import rule_card

    return str(rule_card(rule))


Rule.html_card = staticmethod(_rule_card)
