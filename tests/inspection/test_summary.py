"""Card, page and command line are rendered from the same summary."""

import json

import pytest

import metricwise as mw
import worlds
from metricwise.inspection.summary import summarize_for_card, summarize_result


@pytest.fixture(scope="module")
def solution():
    p, y = worlds.binary(600)
    return mw.optimize(p, y, "recall", subject_to="precision >= 0.6", record=["mcc"])


def test_a_card_shows_part_of_the_report(solution):
    report, card = mw.report.summarize(solution), summarize_for_card(solution)
    assert card["missing"] == report["missing"] == {}
    path = card.pop("path")
    assert {key: report[key] for key in card} == card
    for key in ("kind", "position", "plain", "chosen", "bounded", "range"):
        assert path[key] == report["path"][key]
    first = next(iter(report["path"]["values"].items()))
    assert next(iter(path["values"].items())) == first


def test_results_need_no_rows(solution, tmp_path):
    solution.save(tmp_path / "solution.json")
    loaded = mw.load_solution(tmp_path / "solution.json")
    result = summarize_result(loaded)
    assert result == summarize_result(solution)
    assert json.loads(json.dumps(result, allow_nan=False)) == result
    assert summarize_for_card(loaded)["path"] is None


def test_constraints_are_those_of_the_solution(solution):
    (constraint,) = summarize_result(solution)["promises"]
    (expected,) = solution.constraints
    assert constraint["name"] == expected.name
    assert constraint["value"] == expected.value
    assert constraint["kept"] == (expected.low - 1e-9 <= expected.value <= expected.high + 1e-9)
