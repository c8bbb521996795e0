"""Pages of the documentation say what happens."""

import pytest

from pages import DOCS, blocks, run_doctests

OWN_TESTS = ("deploy",)  # in tests/docs/test_deploy.py
PAGES = sorted(
    str(path.relative_to(DOCS))
    for path in [*DOCS.glob("*.md"), *DOCS.glob("guide/*.md")]
    if blocks(path.read_text(encoding="utf-8"), "pycon") and path.stem not in OWN_TESTS
)


def test_pages_are_found():
    assert not DOCS.exists() or {"floors.md", "guide/rare_classes.md"} <= set(PAGES)


@pytest.mark.parametrize("name", PAGES)
def test_the_code_of_a_page(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = run_doctests(DOCS / name)
    assert not said, said
