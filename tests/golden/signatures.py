"""Public names and signatures, a line for each name and parameter, so that a diff shows what changed.

Without annotations, which may become better, and without what classes inherit from other libraries.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterator
from importlib import import_module
from typing import Any

PACKAGE = "metricwise"


def public_names() -> str:
    """Return all public names of the package and of its public modules, and all commands with their options."""
    values = {name: value for module in _modules() for name, value in _members_of(module)}
    public = {value for value in values.values() if inspect.isclass(value)}
    lines = [line for name, value in values.items() for line in _lines(name, value, public)]
    return "\n".join([*lines, *_commands()]) + "\n"


def _modules() -> Iterator[str]:
    package = import_module(PACKAGE)
    yield PACKAGE
    yield from sorted(f"{PACKAGE}.{name}" for name in package.__all__ if inspect.ismodule(getattr(package, name)))


def _members_of(name: str) -> Iterator[tuple[str, Any]]:
    module = import_module(name)
    for public in sorted(module.__all__):
        value = getattr(module, public)
        if not inspect.ismodule(value) and public != "__version__":
            yield f"{name}.{public}", value


def _lines(name: str, value: Any, public: set[type]) -> Iterator[str]:
    if inspect.isclass(value):
        bases = [base for base in value.__mro__[1:] if base in public]
        yield f"class {name}{f'({bases[0].__name__})' if bases else ''}"
        yield from _parameters(value)
        yield from _members(name, value, public)
    elif callable(value):
        yield f"def {name}"
        yield from _parameters(value)
    else:
        yield f"{name}: {type(value).__name__}"


def _members(name: str, value: type, public: set[type]) -> Iterator[str]:
    """Members of a class that no public class above it has listed."""
    above = [base for base in value.__mro__[1:] if base in public]
    inherited = {member for base in above for member in dir(base)}
    own = [base for base in value.__mro__ if base.__module__.split(".")[0] == PACKAGE and base not in above]
    fields = {field.name for field in dataclasses.fields(value)} if dataclasses.is_dataclass(value) else set()
    names = fields.union(*(vars(base) for base in own))
    members = sorted(
        member for member in names if not member.startswith("_") and (member not in inherited or member in vars(value))
    )
    for member in members:
        found = inspect.getattr_static(value, member, None)
        function = found.__func__ if isinstance(found, (classmethod, staticmethod)) else found
        if inspect.isfunction(function):
            yield f"def {name}.{member}"
            yield from _parameters(function)
        else:
            yield f"{name}.{member}"


def _parameters(value: Any) -> Iterator[str]:
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return
    for parameter in signature.parameters.values():
        if parameter.name not in ("self", "cls"):
            star = {"VAR_POSITIONAL": "*", "VAR_KEYWORD": "**", "KEYWORD_ONLY": "keyword "}.get(parameter.kind.name, "")
            default = "" if parameter.default is inspect.Parameter.empty else f" = {_default(parameter.default)}"
            yield f"    {star}{parameter.name}{default}"


def _default(value: Any) -> str:
    text = repr(value)
    return text if " at 0x" not in text else f"<{type(value).__name__}>"


def _commands() -> Iterator[str]:
    import typer

    from tests.golden.adapter import command_app

    group = typer.main.get_command(command_app())
    for name, command in sorted(group.commands.items()):
        yield f"$ {PACKAGE} {name}"
        for parameter in command.params:
            words = parameter.opts + parameter.secondary_opts
            default = (
                "" if parameter.default in (None, ()) or callable(parameter.default) else f" = {parameter.default!r}"
            )
            needed = " (required)" if parameter.required else ""
            shown = " ".join(words) if parameter.param_type_name == "option" else parameter.name
            yield f"    {shown}{default}{needed}"
