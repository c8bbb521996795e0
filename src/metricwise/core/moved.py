"""The error of a pickle that asks for a module or a class that has moved."""

from __future__ import annotations

from .._version import __version__


def moved_error(name: str, kind: str = "module") -> ModuleNotFoundError:
    """Return the error that says what to do with a pickle of another version."""
    return ModuleNotFoundError(
        f"No {kind} named {name!r} in metricwise {__version__}. If this is raised while unpickling, the "
        "pickle was made by another version: load it with that version, save its rule with rule.to_json(path), and "
        "read that file with metricwise.load_rule(path).",
        name=name,
    )
