"""The seeded faults, where they stand in the source, and the source with one of them.

Owns the catalogue, ``faults.toml``. Knows files and their syntax; must not know tests, nor import the library.
"""

from __future__ import annotations

import ast
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
CATALOGUE = Path(__file__).with_name("faults.toml")
SOURCE = "src"
COMPILED = (".pyx", ".pxi", ".h")


class MisaimedError(Exception):
    """A fault does not apply to the source: re-aim it in ``faults.toml``."""


@dataclass(frozen=True)
class Fault:
    """One expression, and what a mistake makes of it.

    Parameters
    ----------
    id : str
        What it is called.
    area : str
        The part of the library.
    where : str
        ``module:qualified.name``; of compiled kernels ``package/file``.
    old, new : str
        Text that occurs once there, and what replaces it.
    wrong : str
        What is wrong then, as a phrase.
    through : str, optional
        Of compiled kernels: the Python function whose tests reach them.
    """

    id: str
    area: str
    where: str
    old: str
    new: str
    wrong: str
    through: str | None = None

    @property
    def module(self) -> str:
        """Dotted name of the module or package."""
        return self.where.partition(":")[0].partition("/")[0]

    @property
    def compiled(self) -> bool:
        """Whether the kernels must be built again."""
        return self.where.endswith(COMPILED)


@dataclass(frozen=True)
class Place:
    """Where a fault stands: a file below the root, the position of the old text, and the lines of its statement."""

    path: str
    start: int
    lines: tuple[int, ...]


def read() -> list[Fault]:
    """Return all faults.

    Raises
    ------
    ValueError
        If two have the same name.
    """
    faults = [Fault(**entry) for entry in tomllib.loads(CATALOGUE.read_text(encoding="utf-8"))["fault"]]
    names = [fault.id for fault in faults]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"faults.toml: each id must be given once, got {', '.join(twice)} more than once.")
    return faults


def locate(fault: Fault, root: Path = ROOT) -> Place:
    """Return where a fault stands.

    Raises
    ------
    MisaimedError
        If there is no such file or function, or the old text does not occur exactly once in it.
    """
    if fault.compiled:
        package, _, name = fault.where.partition("/")
        path = Path(SOURCE, *package.split("."), name)
        text = _text(root / path, fault)
        return Place(path.as_posix(), _only(text, fault, 0, len(text)), ())
    module, _, qualname = fault.where.partition(":")
    path, text, tree = parse(module, root, fault)
    node = _definition(tree, qualname, fault)
    begin, end = _offset(text, node.lineno), _offset(text, (node.end_lineno or node.lineno) + 1)
    start = _only(text, fault, begin, end)
    old = fault.old.strip()
    first = text.count("\n", 0, text.index(old, start)) + 1
    return Place(path, start, _statement(node, first, first + old.count("\n")))


def parse(module: str, root: Path, fault: Fault) -> tuple[str, str, ast.Module]:
    """Return the path of a module below the root, its text and its syntax tree."""
    bare = Path(SOURCE, *module.split("."))
    path = bare / "__init__.py" if (root / bare).is_dir() else bare.with_suffix(".py")
    text = _text(root / path, fault)
    return path.as_posix(), text, ast.parse(text)


def function_lines(where: str, root: Path, fault: Fault) -> tuple[str, tuple[int, ...]]:
    """Return the path of a module and the lines of a function or class in it."""
    module, _, qualname = where.partition(":")
    path, _, tree = parse(module, root, fault)
    node = _definition(tree, qualname, fault)
    body = node.body[0].lineno
    return path, tuple(range(body, (node.end_lineno or body) + 1))


def apply(fault: Fault, root: Path) -> None:
    """Write a fault into the source below a root."""
    place = locate(fault, root)
    path = root / place.path
    text = path.read_text(encoding="utf-8")
    changed = text[: place.start] + fault.new + text[place.start + len(fault.old) :]
    if not fault.compiled:
        ast.parse(changed)
    path.write_text(changed, encoding="utf-8")


def misaimed(faults: list[Fault], root: Path = ROOT) -> list[str]:
    """Return what is to be said of the faults that do not apply."""
    found = []
    for fault in faults:
        try:
            locate(fault, root)
            if fault.through is not None:
                function_lines(fault.through, root, fault)
        except MisaimedError as error:
            found.append(str(error))
    return found


def _text(path: Path, fault: Fault) -> str:
    if not path.is_file():
        raise MisaimedError(f"{fault.id}: there is no file for {fault.where}.")
    return path.read_text(encoding="utf-8")


def _definition(tree: ast.Module, qualname: str, fault: Fault) -> ast.FunctionDef | ast.ClassDef:
    """Return the function or class of a qualified name."""
    node: ast.AST = tree
    for name in qualname.split("."):
        inside = [
            child
            for child in ast.walk(node)
            if isinstance(child, (ast.FunctionDef, ast.ClassDef)) and child.name == name and child is not node
        ]
        if not inside:
            raise MisaimedError(f"{fault.id}: there is no {qualname} in {fault.module}.")
        node = inside[0]
    assert isinstance(node, (ast.FunctionDef, ast.ClassDef))
    return node


def _only(text: str, fault: Fault, begin: int, end: int) -> int:
    """Return where the old text stands, which must be once."""
    number = text.count(fault.old, begin, end)
    if number != 1:
        raise MisaimedError(f"{fault.id}: the old text must occur once in {fault.where}, got {number} times.")
    return text.index(fault.old, begin, end)


def _offset(text: str, line: int) -> int:
    """Return where a line begins."""
    return sum(len(one) for one in text.splitlines(keepends=True)[: line - 1])


def _statement(node: ast.AST, first: int, last: int) -> tuple[int, ...]:
    """Return the lines of the smallest statement around some lines; of one with a body, these lines alone."""
    around = [
        child
        for child in ast.walk(node)
        if isinstance(child, ast.stmt) and child.lineno <= first and last <= (child.end_lineno or child.lineno)
    ]
    smallest = min(around, key=lambda child: (child.end_lineno or child.lineno) - child.lineno)
    if hasattr(smallest, "body"):
        return tuple(range(first, last + 1))
    return tuple(range(smallest.lineno, (smallest.end_lineno or smallest.lineno) + 1))
