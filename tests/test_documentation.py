"""Links lead somewhere, and every public name is documented, with an example and with what to look at besides."""

import inspect
import re
import runpy
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

import metricwise as mw
from pages import DOCS, FENCED, ROOT

HOMEPAGE = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]["Homepage"]
HOSTS = ("//github.com/metricwise", "raw.githubusercontent.com", HOMEPAGE.partition(":")[2])  # may change
SHOWN = ("console", "pycon", "text")  # languages of blocks that show output
MADE = ("_build", "examples", "api/generated")  # by Sphinx, while it builds
PAGES = [
    *(
        ROOT / name
        for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "RELEASING.md", "SECURITY.md")
    ),
    *(path for path in sorted(DOCS.rglob("*.md")) if not path.relative_to(DOCS).as_posix().startswith(MADE)),
]


def links(text):
    """Yield the targets of links and images, inline and by directive, but for those in code."""
    yield from re.findall(r"^```\{(?:image|include)\} (\S+)$", text, flags=re.MULTILINE)
    yield from re.findall(r"^:link: (\S+)$", text, flags=re.MULTILINE)
    prose = re.sub(r"`[^`\n]+`", "", FENCED.sub("", text))
    yield from (target for target in re.findall(r"\]\(<?([^)>\s]+)>?\)", prose))
    yield from re.findall(r'(?:href|src|srcset)="([^"]+)"', prose)


def anchors(path):
    """Return the anchors of a page: headings as GitHub and MyST name them, and labels."""
    text = path.read_text(encoding="utf-8")
    if path.name == "contributing.md":
        text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    headings = re.findall(r"^#{1,3} (.*)$", FENCED.sub("", text), flags=re.MULTILINE)
    slugs = {re.sub(r"[^\w\- ]", "", re.sub(r"\s", "-", heading.strip().lower())) for heading in headings}
    return slugs | set(re.findall(r"^\(([\w-]+)\)=$", text, flags=re.MULTILINE))


def leads_somewhere(page, target):
    """Say whether a target of a page is there; other sites are not asked."""
    if re.match(r"https?://|mailto:", target):
        return True
    path, _, anchor = target.partition("#")
    file = (page.parent / path) if path else page
    if page.is_relative_to(DOCS) and file.resolve().is_relative_to(DOCS / "examples"):
        source = file.stem.removesuffix(".rst")
        return source == "index" or (ROOT / "examples" / f"{source}.py").exists()
    if path == "rule.schema.json":
        return True  # published beside the pages: tests/docs/test_deploy.py
    candidates = [file, Path(f"{file}.md"), Path(f"{file}.rst")]
    found = next((one for one in candidates if one.is_file()), None)
    return found is not None and (not anchor or anchor in anchors(found))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page):
    targets = list(links(page.read_text(encoding="utf-8")))
    assert [target for target in targets if not leads_somewhere(page, target)] == []
    assert [target for target in targets if any(host in target for host in HOSTS)] == []


def test_the_page_of_the_package_leads_to_the_repository():
    package_page = runpy.run_path(str(ROOT / "setup.py"))["package_page"]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    pairs = list(zip(links(readme), links(package_page(readme, "https://example.org/home")), strict=True))
    for target, completed in pairs:
        assert completed == target or completed.startswith("https://example.org/home/")
        assert completed.startswith("https://")
        assert completed.endswith(target)
    assert ("docs/_static/front.svg", "https://example.org/home/raw/HEAD/docs/_static/front.svg") in pairs
    assert ("docs/floors.md", "https://example.org/home/blob/HEAD/docs/floors.md") in pairs


def test_a_link_that_leads_nowhere_is_noticed():
    page = DOCS / "guide.md"
    for target in (
        "nowhere.md",
        "floors.md#nowhere",
        "../docs/nowhere.md",
        "examples/plot_nowhere",
    ):
        assert not leads_somewhere(page, target)
    assert leads_somewhere(page, "floors.md#a-lower-bound-on-precision")
    assert list(links("[a](b.md#c) `[not](this.md)`\n```\n[nor](this.md)\n```\n")) == ["b.md#c"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_outputs_show_numbers(page):
    """Numbers are compared with a tolerance, so that pages need not hide their digits."""
    sessions = [text for language, text in FENCED.findall(page.read_text(encoding="utf-8")) if language in SHOWN]
    assert re.findall(r".*\d\.\.\..*", "\n".join(sessions)) == []


# ------------------------------------------------------------------------------------------------------ public names

API = re.findall(r"^   ([\w.]+)$", (DOCS / "api" / "index.rst").read_text(encoding="utf-8"), flags=re.MULTILINE)
# What is implemented or derived from, not called: CONTRIBUTING says how, and those that do have examples.
INTERFACES = {
    "displays.RowsDisplay",
    "oracles.base.Oracle",
    "solvers.BaseSolver",
    "data.sources.base.Source",
    "data.sources.base.SourceBase",
    "data.tables.formats.FileFormat",
    "data.tables.reading.TableReader",
}


def named(name):
    found = mw
    for part in name.split("."):
        found = getattr(found, part, None) or import_module(f"{found.__name__}.{part}")
    return found


# What the library itself is made of, and users meet through other names.
UNLISTED = {
    "metricwise.displays.display_of",
    "metricwise.metrics.FromFunction",
    "metricwise.metrics.Resolved",
    "metricwise.solvers.SOLVERS",
    "metricwise.solvers.Solver",
    "metricwise.solvers.make_solver",
}


def test_every_public_name_is_in_the_api():
    missing = {name for name in mw.__all__ if not inspect.ismodule(getattr(mw, name))} - {"__version__"} - set(API)
    listed = {name.rpartition(".")[2] for name in API}
    for module in (mw.metrics, mw.solvers, mw.theory, mw.geometry, mw.export, mw.displays):
        missing |= {f"{module.__name__}.{name}" for name in module.__all__ if name not in listed}
    assert missing == UNLISTED


@pytest.mark.parametrize("name", API)
def test_a_public_name_has_an_example_and_related_names(name):
    text = inspect.getdoc(named(name)) or ""
    assert re.search(r"^See Also\n-+\n\S", text, flags=re.MULTILINE)
    assert name in INTERFACES or re.search(r"^Examples\n-+\n[^>]*>>> ", text, flags=re.MULTILINE)
