"""Pages of the documentation say what happens."""

import doctest
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@pytest.mark.parametrize("name", ["guide", "floors", "fair", "abstain", "when_not"])
def test_the_code_of_a_page(name):
    page = DOCS / f"{name}.md"
    if not page.exists():
        pytest.skip("the documentation is not here")
    blocks = re.findall(r"```pycon\n(.*?)```", page.read_text(), flags=re.DOTALL)
    example = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, name, str(page), 0)
    said = []
    doctest.DocTestRunner(optionflags=FLAGS).run(example, out=said.append)
    assert not said, "".join(said)
