"""See that a tag names the version that would be published: ``python tests/check_version.py v0.1.0``.

Needs no package installed, so that a release stops before anything is built.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def version():
    """Return the version of the package, without importing it."""
    text = (ROOT / "src" / "metricwise" / "_version.py").read_text(encoding="utf-8")
    return re.search(r'__version__ = "([^"]+)"', text)[1]


def problems(tag):
    """Return what disagrees with a tag, as sentences."""
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    agreements = {
        f"the tag is {tag!r}, and the version of the package {version()}": tag == f"v{version()}",
        f"CHANGELOG.md has no section {version()}": re.search(
            rf"^## \[{re.escape(version())}\]", changelog, re.MULTILINE
        ),
        f"CITATION.cff does not have version {version()}": f"version: {version()}\n" in citation,
    }
    return [problem for problem, agrees in agreements.items() if not agrees]


if __name__ == "__main__":
    found = problems(sys.argv[1] if sys.argv[1:] else "")
    if found:
        sys.exit("; ".join(found) + ".")
    print(f"version {version()}: the tag, the changelog and the citation agree.")
