"""The report in a real browser: no word on the console, the slider works, labels run nothing, all can use it."""

import json
import re
import shutil
import subprocess
import tarfile
from decimal import ROUND_HALF_UP, Decimal

import numpy as np
import pytest

import metricwise as mw
import worlds

pytest.importorskip("jinja2")
playwright = pytest.importorskip("playwright.sync_api")

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed: apt-get install chromium")

NASTY = ["<img src=x onerror='window.ran=1'>", "</script><script>window.ran=1</script>", "plain & 'quoted' \"label\""]


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as driver:
        one = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield one
        one.close()


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    """Pages of a binary target and of three classes with nasty labels."""
    folder, rng = tmp_path_factory.mktemp("reports"), np.random.default_rng(0)
    p, y = worlds.binary(1500, seed=rng)
    P, labels = worlds.multiclass(500, names=NASTY, seed=rng)
    mw.optimize(p, y, "f1", subject_to="precision >= 0.5").report(folder / "binary.html")
    mw.optimize(P, labels, "macro_f1", classes=NASTY).report(folder / "nasty.html")
    return folder


@pytest.fixture
def opened(browser, reports):
    pages = []

    def go(name, **options):
        page = browser.new_page(**options)
        said = []
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: said.append(request.url) if not _ours(request.url) else None)
        page.goto((reports / f"{name}.html").as_uri())
        pages.append(page)
        return page, said

    def _ours(url):
        return url.startswith(("file:", "data:"))

    yield go
    for page in pages:
        page.close()


def path_of(page):
    return json.loads(page.eval_on_selector("#path", "one => one.textContent"))


def column(page, name):
    return page.eval_on_selector_all(f"#metrics tbody .{name}", "cells => cells.map(cell => cell.textContent)")


def shown(value):
    """Half up, as decimals have it."""
    text = str(Decimal(f"{value:.9f}").quantize(Decimal("0.001"), ROUND_HALF_UP))
    return text.replace("-", "−")


def test_the_slider_moves_metrics_and_confusion(opened):
    page, said = opened("binary")
    path = path_of(page)
    series = [*path["values"].values(), *path["bounded"].values()]

    def check(at):
        assert column(page, "at") == [shown(values[at]) for values in series]
        cells = page.eval_on_selector_all("#after tbody td", "cells => cells.map(cell => cell.textContent)")
        assert [int(cell.replace(",", "")) for cell in cells] == path["confusion"]["cells"][at]

    check(path["chosen"])
    assert "(the rule)" in page.inner_text("#position")
    page.focus("#slider")
    for _ in range(10):
        page.keyboard.press("ArrowRight")
    value = float(page.input_value("#slider"))
    at = int(np.argmin(np.abs(np.array(path["position"]) - value)))
    assert at != path["chosen"]
    check(at)
    page.keyboard.press("Home")
    check(0)
    page.click("#to-argmax")
    check(path["plain"])
    assert "(argmax)" in page.inner_text("#position")
    changed = page.eval_on_selector_all("#change tbody td", "cells => cells.map(cell => cell.textContent)")
    assert set(changed) == {"0"}
    page.click("#to-rule")
    check(path["chosen"])
    assert said == []


def test_labels_run_nothing(opened):
    page, said = opened("nasty")
    page.click("#to-argmax")
    assert page.evaluate("window.ran") is None
    assert page.locator("img").count() == 0
    names = page.eval_on_selector_all("#before tbody th span", "cells => cells.map(cell => cell.title)")
    assert names == NASTY
    assert said == []


def test_all_of_it_is_reached_by_keyboard(opened):
    page, _ = opened("binary")
    seen = set()
    for _ in range(40):
        page.keyboard.press("Tab")
        seen.add(page.evaluate("document.activeElement.id || document.activeElement.tagName"))
    assert {"slider", "to-argmax", "to-rule", "SUMMARY", "A"} <= seen


@pytest.mark.parametrize("name", ["binary", "nasty"])
def test_it_fits_a_phone(opened, name):
    page, _ = opened(name, viewport={"width": 360, "height": 740})
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_it_prints(opened):
    page, _ = opened("binary")
    page.emulate_media(media="print")
    assert not page.is_visible("#slider")
    assert page.is_visible("#metrics")


@pytest.fixture(scope="module")
def axe(request):
    """The text of axe-core, which npm has; kept in the cache of pytest."""
    folder = request.config.cache.mkdir("axe-core")
    script = folder / "axe.min.js"
    if not script.exists():
        npm = shutil.which("npm")
        if npm is None:
            pytest.skip("axe-core comes from npm, which is not installed")
        command = [npm, "pack", "--silent", "axe-core@4"]
        try:
            subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=60)
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
            pytest.skip("npm cannot fetch axe-core here")
        with tarfile.open(next(folder.glob("axe-core-*.tgz"))) as archive:
            script.write_bytes(archive.extractfile("package/axe.min.js").read())
    return script.read_text(encoding="utf-8")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["binary", "nasty"])
def test_no_serious_fault_of_accessibility(opened, axe, name, scheme):
    page, _ = opened(name, color_scheme=scheme, bypass_csp=True)
    page.eval_on_selector_all("details", "all => all.forEach(one => one.open = true)")
    page.evaluate(axe)
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
    serious = [
        (one["id"], [node["html"] for node in one["nodes"]][:3])
        for one in found
        if one["impact"] in ("serious", "critical")
    ]
    assert serious == []


@pytest.mark.parametrize(("scale", "shown"), [(3.0, r"−?\d+\.\d\d"), (1e-5, r"−?0\.0000\d{3}")])
def test_the_slider_moves_in_the_unit_of_scores(browser, tmp_path, scale, shown):
    p, y = worlds.binary(400)
    scores = scale * np.log(p / (1 - p))
    solution = mw.optimize(scores, y, "f1", input="scores")
    solution.report(tmp_path / "scores.html")
    page = browser.new_page()
    page.goto((tmp_path / "scores.html").as_uri())
    position = page.locator("#position")
    assert re.fullmatch(rf"{shown} \(the rule\)", position.inner_text())
    number = float(position.inner_text().split()[0].replace("−", "-"))
    assert number == pytest.approx(solution.rule.threshold, abs=1e-3 * np.ptp(scores))
    page.evaluate("s = document.getElementById('slider'); s.value = s.max; s.dispatchEvent(new Event('input'))")
    assert float(position.inner_text().replace("−", "-")) == pytest.approx(scores.max(), abs=0.03 * np.ptp(scores))
    assert page.locator("#metrics tbody tr").first.locator(".at").inner_text() == "0.000"
    page.close()
