"""Reports as Markdown and HTML.

Defines the subset of Markdown that reports use: headings, paragraphs, pipe tables, images and links.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..protocol import RunSettings

__all__ = ["markdown_table", "picture", "write_pages"]

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 75rem; margin: 2rem auto; padding: 0 1rem; color: #1b1f24; }
table { border-collapse: collapse; margin: 1rem 0; font-variant-numeric: tabular-nums; font-size: 14px; }
th, td { padding: 0.25rem 0.6rem; border-bottom: 1px solid #d8dee4; text-align: right; }
th:first-child, td:first-child { text-align: left; }
thead th { border-bottom: 2px solid #8c959f; }
img { max-width: 100%; height: auto; }
code { background: #f2f4f6; padding: 0.1rem 0.3rem; }
"""


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return a pipe table; the first column is left-aligned, numbers are to the right.

    Examples
    --------
    >>> from reproduction.reports.pages import markdown_table
    >>> print(markdown_table(["set", "value"], [["car", 0.7]]))
    | set | value |
    |:---|---:|
    | car | 0.7 |
    """
    rule = "|" + "|".join([":---"] + ["---:"] * (len(header) - 1)) + "|"
    lines = [header, *rows]
    text = ["| " + " | ".join(str(cell) for cell in line) + " |" for line in lines]
    return "\n".join([text[0], rule, *text[1:]])


def picture(name: str, words: str) -> str:
    """Return an image, by file name, with its alternative text."""
    return f"![{words}]({name})"


def write_pages(
    name: str, tables: Mapping[str, str], facts: Mapping[str, Any], settings: RunSettings, folder: Path
) -> Path:
    """Write ``<name>.md`` and ``<name>.html`` and return the path of the first.

    Parameters
    ----------
    name : str
    tables : dict of str to str
        Title to Markdown.
    facts : dict
        What made the results.
    settings : RunSettings
    folder : pathlib.Path
    """
    parts = [f"# {name}", _origin(facts)]
    if settings.made_up:
        parts.append("**Made-up data**: small files in the layout of the real ones. These numbers mean nothing.")
    elif settings.quick:
        parts.append("**A quick run**: few repetitions and small sizes, to see that everything works.")
    for title, body in tables.items():
        parts += [f"## {title}", body]
    text = "\n\n".join(parts) + "\n"
    path = folder / f"{name}.md"
    path.write_text(text, encoding="utf-8")
    (folder / f"{name}.html").write_text(to_html(text, name), encoding="utf-8")
    return path


def _origin(facts: Mapping[str, Any]) -> str:
    """Return a sentence on the command and machine of the results, and the accuracy of their last digits."""
    lines = [
        f"Made by `{facts.get('command') or 'python -m reproduction'}` with seed {facts.get('seed')}, in "
        f"{facts.get('seconds', 0.0):,.0f} seconds, on {_machine(facts)}."
    ]
    lines += [f"Continued by `{run.get('command')}` on {_machine(run)}." for run in facts.get("continued", [])]
    lines.append(
        "The same seed gives the same numbers on the same machine, whatever the number of processes; on another "
        "processor, or with another library of linear algebra, last digits may differ."
    )
    return " ".join(lines)


def _machine(run: Mapping[str, Any]) -> str:
    versions = ", ".join(f"{package} {number}" for package, number in run.get("versions", {}).items())
    return (
        f"{run.get('processor')} ({run.get('cores')} cores; {run.get('jobs')} processes, BLAS threads in each: "
        f"{run.get('threads')}), with {run.get('blas')}; {versions}"
    )


def to_html(text: str, title: str) -> str:
    """Return a page of the Markdown that reports use.

    Examples
    --------
    >>> from reproduction.reports.pages import to_html
    >>> "<h1>Toy</h1>" in to_html("# Toy", "toy")
    True
    """
    body = "\n".join(_block(block) for block in re.split(r"\n{2,}", text.strip()))
    head = f'<meta charset="utf-8"><title>{html.escape(title)}</title><style>{_STYLE}</style>'
    return f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body>\n{body}\n</body></html>\n'


def _block(block: str) -> str:
    lines = block.split("\n")
    if lines[0].startswith("#"):
        level = len(lines[0]) - len(lines[0].lstrip("#"))
        return f"<h{level}>{_inline(lines[0][level:].strip())}</h{level}>"
    if lines[0].startswith("|") and len(lines) > 1:
        head, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
        top = "".join(f"<th>{_inline(cell)}</th>" for cell in head)
        middle = "\n".join("<tr>" + "".join(f"<td>{_inline(cell)}</td>" for cell in row) + "</tr>" for row in rows)
        return f"<table><thead><tr>{top}</tr></thead>\n<tbody>\n{middle}\n</tbody></table>"
    if all(line.startswith("- ") for line in lines):
        return "<ul>" + "".join(f"<li>{_inline(line[2:])}</li>" for line in lines) + "</ul>"
    return f"<p>{_inline(' '.join(lines))}</p>"


def _inline(text: str) -> str:
    text = html.escape(text)
    text = re.sub(r"!\[([^\]]*)\]\(([^)]*)\)", r'<img src="\2" alt="\1">', text)
    text = re.sub(r"\[([^\]]*)\]\(([^)]*)\.md\)", r'<a href="\2.html">\1</a>', text)
    text = re.sub(r"\*\*([^*]+)\*\*", r"<strong>\1</strong>", text)
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", text)
