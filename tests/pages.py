"""The code of pages in Markdown: found, run as a reader would, and held to the output that the page shows."""

import code
import doctest
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
FENCED = re.compile(r"^```([^\n]*)\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)
NUMBER = re.compile(r"[-+]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?")
PIECE = re.compile(rf"(?P<number>{NUMBER.pattern})|(?P<omitted>\.\.\.)|(?P<space>\s+)")


def blocks(text, language):
    """Return the fenced blocks of a language; "" is none."""
    return [block for named, block in FENCED.findall(text) if named == language]


def run_doctests(path):
    """Run the sessions of a page, one after another, and return what differs from it."""
    session = "\n".join(blocks(path.read_text(encoding="utf-8"), "pycon"))
    example = doctest.DocTestParser().get_doctest(session, {}, path.stem, str(path), 0)
    said = []
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    doctest.DocTestRunner(checker=NumberChecker(), optionflags=flags).run(example, out=said.append)
    return "".join(said)


class NumberChecker(doctest.OutputChecker):
    """Accepts what a session shows if it is the same output as that of the page."""

    def check_output(self, want, got, optionflags):
        exact = super().check_output(want, got, optionflags)
        return exact or same_output(got, want.replace(doctest.BLANKLINE_MARKER, ""))


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

    Pages show the numbers of one run. Three dots stand for text that a page leaves out.
    """
    match = re.fullmatch(_pattern(" ".join(expected.split())), " ".join(shown.split()), flags=re.DOTALL)
    if match is None:
        return False
    return all(map(_is_near, match.groups(), _numbers(expected)))


def _pattern(expected):
    """Return what shown output must match: numbers are groups."""
    parts, end = [], 0
    for piece in PIECE.finditer(expected):
        parts += [re.escape(expected[end : piece.start()]), _piece_pattern(piece)]
        end = piece.end()
    return "".join(parts) + re.escape(expected[end:])


def _piece_pattern(piece):
    if piece["number"]:
        return f"({NUMBER.pattern})"
    return ".*?" if piece["omitted"] else r"\s+"


def _numbers(text):
    return [piece["number"] for piece in PIECE.finditer(text) if piece["number"]]


def _is_near(shown, expected):
    return abs(_value(shown) - _value(expected)) <= _tolerance(expected)


def _value(number):
    return float(number.replace(",", ""))


def _tolerance(number):
    """Return how far a number may be off: values and shares by 0.03, or 0.02 if rounded; large numbers by a part."""
    size, decimals = abs(_value(number)), len(number.partition(".")[2])
    if decimals <= 2:
        return 0.02 if size <= 100 else 0.05 * size
    return 0.03 if size <= 1 else 0.1 * size
