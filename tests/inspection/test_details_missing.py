"""What is missing says why: it does not apply, or it could not be made; programming errors are raised."""

import pickle

import numpy as np
import pytest

import metricwise as mw
import worlds
from metricwise.core.errors import InvalidParameter
from metricwise.inspection.details import Details, Missing, NotApplicable, attempt

ROWS = ("path", "moves", "gains", "reliability")


def solved(**options):
    p, y = worlds.binary(300, b=2, seed=np.random.default_rng(1))
    return p, mw.optimize(p, y, "f1", **options)


def refuse(error):
    raise error


def test_refusals_are_data_and_errors_are_raised():
    assert attempt(lambda: 3) == 3
    assert attempt(lambda: None) is None
    does_not_apply = NotApplicable("", problem="there are no rows", owner="Solution")
    assert attempt(lambda: refuse(does_not_apply)) == Missing("there are no rows.", failed=False)
    refused = InvalidParameter("n", "be positive", "-1", owner="report")
    assert attempt(lambda: refuse(refused)) == Missing("n must be positive, got -1.", failed=True)
    for error in (ValueError("bug"), KeyError("bug"), AssertionError()):
        with pytest.raises(type(error)):
            attempt(lambda error=error: refuse(error))


def test_rows_that_changed_are_reported_instead_of_hidden(tmp_path):
    p, solution = solved()
    p[:] = p[::-1].copy()
    summary = mw.report.summarize(solution)
    assert set(summary["missing"]) == set(ROWS)
    for section in ROWS:
        assert summary[section] is None
        assert summary["missing"][section]["failed"]
        assert summary["missing"][section]["reason"].startswith("the rows have changed since optimize was called")
    solution.report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Parts that are not available" in page
    assert "The rows have changed since optimize was called" in page
    assert "No curve: the rows have changed since optimize was called" in solution._repr_html_()


def test_what_does_not_apply_is_no_failure(tmp_path):
    p, solution = solved()
    solution.save(tmp_path / "solution.json")
    again = mw.load_solution(tmp_path / "solution.json")
    missing = mw.report.summarize(again)["missing"]
    assert set(missing) == set(ROWS)
    assert not any(section["failed"] for section in missing.values())
    again.report(tmp_path / "report.html")
    assert "Parts that are not available" not in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "No curve" not in again._repr_html_()
    unlabelled = mw.report.summarize(mw.optimize(p, None, "f1"))["missing"]
    assert unlabelled == {
        name: {"reason": "there are no labels.", "failed": False} for name in ("gains", "reliability")
    }


def test_pickles_report_what_was_counted_before():
    _, solution = solved()
    assert solution.details.moves is not None
    copy = pickle.loads(pickle.dumps(solution))  # noqa: S301
    summary = mw.report.summarize(copy)
    assert summary["moves"] is not None
    assert set(summary["missing"]) == {"path", "gains", "reliability"}
    assert not any(section["failed"] for section in summary["missing"].values())


@pytest.mark.parametrize("error", [ValueError, TypeError, KeyError, AssertionError])
def test_programming_errors_are_raised(error, monkeypatch):
    _, solution = solved()
    monkeypatch.setattr(Details, "curve", property(lambda self: refuse(error("bug"))))
    with pytest.raises(error, match="bug"):
        mw.report.summarize(solution)
    with pytest.raises(error, match="bug"):
        solution._repr_html_()
