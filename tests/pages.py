"""The code of pages in Markdown: found, run as a reader would, and held to the output that the page shows."""

import code
import doctest
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
FENCED = re.compile(r"^```([^\n]*)\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)
NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?")


def blocks(text, language):
    """Return the fenced blocks of a language; "" is none."""
    return [block for named, block in FENCED.findall(text) if named == language]


def run_doctests(path):
    """Run the sessions of a page, one after another, and return what differs from it."""
    session = "\n".join(blocks(path.read_text(encoding="utf-8"), "pycon"))
    example = doctest.DocTestParser().get_doctest(session, {}, path.stem, str(path), 0)
    said = []
    doctest.DocTestRunner(optionflags=FLAGS).run(example, out=said.append)
    return "".join(said)


class Console(code.InteractiveConsole):
    """Takes lines as a Python prompt does when they are pasted, and fails where that would show an error."""

    def showtraceback(self):
        raise

    def showsyntaxerror(self, *args, **kwargs):
        raise

    def paste(self, lines):
        waiting = False
        for line in lines.splitlines():
            waiting = self.push(line)
        assert not waiting, f"a prompt would wait for more after\n{lines}"


def pasted(text):
    """Yield the Python blocks of a page, to be pasted, with the output that the page shows below each, or None."""
    pattern = r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?"
    for found in re.finditer(pattern, text, flags=re.DOTALL | re.MULTILINE):
        yield found[1], found[2]


def same_output(shown, expected):
    """Compare words exactly, and numbers up to what another processor or a search that ends elsewhere may change.

    Rounded to two places they are what a page claims: 0.02. In full they are how a rule looks: a tenth.
    """
    if NUMBER.sub("0", shown).split() != NUMBER.sub("0", expected).split():
        return False
    pairs = zip(NUMBER.findall(shown), NUMBER.findall(expected), strict=True)
    return all(abs(float(a) - float(b)) <= _tolerance(b) for a, b in pairs)


def _tolerance(number):
    return 0.02 if len(number.partition(".")[2]) <= 2 else 0.1 * max(1.0, abs(float(number)))
