"""What is frozen beside the calls: public names and signatures, pickles, a solution in a file, and times of benchmarks.

``python -m tests.golden freeze`` writes all of it; ``test_frozen.py`` holds the library to it.
"""

from __future__ import annotations

import csv
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.golden import adapter
from tests.golden.columns import decisions_of, plain_values
from tests.golden.signatures import public_names
from tests.golden.worlds import make

FOLDER = Path(__file__).parent / "frozen"
SIGNATURES = FOLDER / "signatures.txt"
DECISIONS = FOLDER / "decisions.json"
TIMES = FOLDER / "times.json"
BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
TOLERANCE = 0.05  # by which a time may be longer

_PLAIN = {"count": "labels", "recalibrate": False}
_FAIR = {
    "metric": "accuracy",
    "bounds": "demographic_parity <= 0.2",
    "sensitive": ["sex"],
    "confidence": None,
    **_PLAIN,
}
_MIXED = {"metric": "min_recall", "randomized": True, "count": "expected", "recalibrate": False}

# A rule of every kind, by the call that makes it.
RULES: dict[str, dict[str, Any]] = {
    "weighted": {"world": {"kind": "multiclass", "seed": 1, "labels": "words"}, "options": {"metric": "macro_f1"}},
    "outputs": {"world": {"kind": "mixed", "seed": 2}, "options": {"metric": "accuracy", "average": "macro"}},
    "abstaining": {"world": {"kind": "multiclass", "seed": 3}, "options": {"metric": "accuracy", "abstain": 0.3}},
    "mixture": {"world": {"kind": "multiclass", "seed": 4, "grid": 32}, "options": _MIXED},
    "grouped": {"world": {"kind": "binary", "seed": 5}, "options": _FAIR},
    "cost": {"world": {"kind": "multiclass", "seed": 6}, "options": {"metric": "cost", "row_costs": "wrong"}},
}
ESTIMATOR = {
    "world": {"kind": "multiclass", "seed": 7, "labels": "words"},
    "options": {"estimator": "optimal", "model": "bayes", "metric": "macro_f1", "folds": 3},
}


def freeze_signatures(say: Callable[[str], None]) -> int:
    """Write the public signatures."""
    SIGNATURES.write_text(public_names(), encoding="utf-8")
    say(f"{SIGNATURES.name} was written.")
    return 0


def freeze(say: Callable[[str], None]) -> int:
    """Write everything that is frozen."""
    FOLDER.mkdir(exist_ok=True)
    freeze_signatures(say)
    decisions = {}
    for name, call in RULES.items():
        rule = adapter.rule_of({"fit": call["options"]}, make(call["world"]))
        (FOLDER / f"{name}.pkl").write_bytes(pickle.dumps(rule, protocol=4))
        rule.to_json(FOLDER / f"{name}.json")
        decisions[name] = decided_by_rule(rule, call)
    world = make(ESTIMATOR["world"])
    estimator = adapter.fitted_estimator(ESTIMATOR["options"], world)
    (FOLDER / "estimator.pkl").write_bytes(pickle.dumps(estimator, protocol=4))
    decisions["estimator"] = decided_by_estimator(estimator)
    estimator.solution_.save(FOLDER / "solution.json")
    decisions["solution"] = decided_by_solution(estimator.solution_)
    DECISIONS.write_text(json.dumps(plain_values(decisions), indent=1) + "\n", encoding="utf-8")
    TIMES.write_text(json.dumps(committed_times(), indent=1) + "\n", encoding="utf-8")
    say(f"Frozen: {', '.join(sorted(path.name for path in FOLDER.iterdir()))}.")
    return 0


def decided_by_rule(rule: Any, call: dict[str, Any]) -> Any:
    """Return the decisions of a rule about the new rows of its world, as they are stored."""
    world = make(call["world"])
    labels = adapter.predictions(rule, world, "new", call["options"])
    return plain_values(decisions_of(labels, world, rule.abstain_label))


def decided_by_estimator(estimator: Any) -> Any:
    """Return the decisions of the frozen estimator about the new rows of its world, as they are stored."""
    world = make(ESTIMATOR["world"])
    return plain_values(decisions_of(estimator.predict(world.features[world.part("new")]), world))


def decided_by_solution(solution: Any) -> Any:
    """Return the decisions of that estimator's rule about the probabilities of its world, as they are stored."""
    return decided_by_rule(solution.rule, {"world": ESTIMATOR["world"], "options": {}})


def committed_times() -> dict[str, list[dict[str, str]]]:
    """Return the times of the benchmarks as their tables are committed."""
    found = {}
    for name in ("default", "latency"):
        with (BENCHMARKS / f"{name}.csv").open(encoding="utf-8", newline="") as file:
            found[name] = list(csv.DictReader(file))
    return found


def slower(frozen: dict[str, list[dict[str, str]]], now: dict[str, list[dict[str, str]]]) -> list[str]:
    """Return what takes more than 5 % longer than it did, a line each; rows are matched by their place and name."""
    found = []
    for name, rows in frozen.items():
        column = "best" if name == "latency" else "default, ms"
        for then, new in zip(rows, now[name], strict=True):
            what = " ".join(filter(None, (then["what"], then.get("rows", ""), then.get("unit", ""))))
            if then["what"] != new["what"]:
                raise ValueError(f"golden: {name} has other rows than were frozen: {then['what']!r}, {new['what']!r}.")
            before, after = (float(row[column].replace(",", "")) for row in (then, new))
            if after > before * (1 + TOLERANCE):
                found.append(f"{name}: {what}: {before:g} -> {after:g} ({after / before - 1:+.0%})")
    return found


def compare_times(say: Callable[[str], None]) -> int:
    """Say which benchmarks, as committed now, take longer than when times were frozen."""
    found = slower(json.loads(TIMES.read_text(encoding="utf-8")), committed_times())
    say("\n".join(found) or "No time is more than 5 % longer than when it was frozen.")
    return int(bool(found))
