"""The user guide says what happens."""

import doctest
import re
from pathlib import Path

import pytest

GUIDE = Path(__file__).parents[2] / "docs" / "guide.md"
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def test_the_code_of_the_user_guide():
    if not GUIDE.exists():
        pytest.skip("the documentation is not here")
    blocks = re.findall(r"```pycon\n(.*?)```", GUIDE.read_text(), flags=re.DOTALL)
    example = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, "guide", str(GUIDE), 0)
    said = []
    doctest.DocTestRunner(optionflags=FLAGS).run(example, out=said.append)
    assert not said, "".join(said)
