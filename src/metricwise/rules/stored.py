"""What every rule does with itself: it takes facts along, it is written to JSON and read from it, notebooks show it."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

from ..core.errors import entry_point
from ..core.views import above
from . import serialize

__all__ = ["StoredRule"]


class StoredRule(ABC):
    """A frozen dataclass with `facts` that is a dict of JSON types, too."""

    facts: Mapping[str, Any]

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return the rule as a dict of JSON types; `from_dict` restores it exactly."""

    @classmethod
    @abstractmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Return the rule from a dict written by `to_dict`; every field is checked."""

    def with_facts(self, **facts: Any) -> Self:
        """Return a copy with additional facts, such as ``date="2026-11-17"`` or a contact.

        Parameters
        ----------
        **facts
            Any JSON values; they are added to the existing facts, or replace those of the same name.

        Returns
        -------
        rule
        """
        rule: Any = self  # every subclass is a dataclass
        copy: Self = replace(rule, facts={**self.facts, **facts})
        return copy

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the rule as JSON text; if `path` is given, also write it to that file, completely or not at all.

        An existing file keeps its permissions, a symbolic link is followed, and a pipe or /dev/stdout is written to.
        """
        return serialize.dump(self.to_dict(), path)

    @classmethod
    @entry_point()
    def from_json(cls, path_or_text: str | os.PathLike[str]) -> Self:
        """Load a rule from a JSON file, or from JSON text. No code in it is executed."""
        document = serialize.parse(serialize.read_text(path_or_text))
        return cls.from_dict(serialize.read_object(document, "the rule"))

    def _repr_html_(self) -> str:
        return str(above("inspection.cards").rule_card(self))
