"""Which calls there are: kinds of call by metrics, targets, engines and options.

``python -m tests.golden compose`` writes them to ``calls.jsonl``, which is what is run. A call's name ends with a
checksum of the call, so that adding one renames no other. Knows words of users, and nothing of the library.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PATH = Path(__file__).parent / "calls.jsonl"
N_QUICK = 60  # calls that `make test` makes

Call = dict[str, Any]

PLAIN = {"count": "labels", "recalibrate": False}
EXPECTED = {"count": "expected", "recalibrate": False}
COSTS = {2: [[0, 1], [5, 0]], 3: [[0, 1, 4], [2, 0, 1], [9, 3, 0]]}

BINARY = ["f1", "f2", "f0.5", "accuracy", "balanced_accuracy", "jaccard", "mcc", "kappa", "g_mean", "h_mean", "q_mean"]
BINARY += [
    "min_recall",
    "macro_f1",
    "weighted_f1",
    "fowlkes_mallows",
    "precision",
    "recall",
    "specificity",
    "decathlon",
]
BINARY += [
    "polynomial",
    "micro_f1",
    "f1_macro",
    "f1_weighted",
    "jaccard_macro",
    "matthews_corrcoef",
    "balanced_accuracy",
]
MULTICLASS = ["macro_f1", "weighted_f1", "micro_f1", "accuracy", "balanced_accuracy", "min_recall", "g_mean", "h_mean"]
MULTICLASS += ["q_mean", "kappa", "mcc", "macro_precision", "macro_recall", "macro_jaccard", "macro_specificity"]
MULTICLASS += ["weighted_precision", "weighted_jaccard", "decathlon", "weighted_exponential", "f1[1]"]
MULTICLASS += ["recall[2]", "precision[1]", "jaccard[2]", "f1_macro", "f1_micro", "f1_weighted", "macro_f2"]
ORDINAL = ["ordinal", "squared_ordinal", "quadratic_kappa", "linear_kappa"]
MULTILABEL = ["f1", "f1_micro", "f1_macro", "f1_samples", "f1_weighted", "jaccard", "precision_macro", "recall_macro"]
MULTILABEL += ["balanced_accuracy", "hamming_accuracy", "mcc", "g_mean", "min_recall", "jaccard_samples"]
OUTPUTS = ["balanced_accuracy", "macro_f1", "accuracy", "min_recall", "g_mean", "kappa", "mcc", "micro_f1"]


def compose() -> list[Call]:
    """Return all calls, each with its name, and whether `make test` makes it."""
    calls = []
    for kind, world, operation, options in _all():
        call = {"kind": kind, "world": world, "do": operation, "options": options}
        digest = hashlib.sha256(json.dumps(call, sort_keys=True).encode()).hexdigest()[:6]
        words = [kind, world["kind"], _about(options), digest]
        calls.append({"id": "/".join(word for word in words if word), **call})
    calls = list({call["id"]: call for call in calls}.values())
    quick = _spread_over_kinds(calls)
    return [{**call, "quick": True} if call["id"] in quick else call for call in calls]


def write(calls: list[Call], path: Path = PATH) -> None:
    """Write calls, one a line."""
    path.write_text("".join(json.dumps(call) + "\n" for call in calls), encoding="utf-8")


def read(path: Path = PATH) -> list[Call]:
    """Read the calls that are stored."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _about(options: Any) -> str:
    """A word for a name: the metric, or the command."""
    metric = options.get("metric", options.get("metrics", options.get("to", "")))
    if "commands" in options:
        metric = options["commands"][-1][0]
    text = metric if isinstance(metric, str) else json.dumps(metric)
    return re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")[:28]


def _spread_over_kinds(calls: list[Call]) -> set[str]:
    """Names of some calls of every kind, in proportion to how many there are."""
    kinds: dict[str, list[str]] = {}
    for call in calls:
        kinds.setdefault(call["kind"], []).append(call["id"])
    shares = {kind: max(1, round(N_QUICK * len(names) / len(calls))) for kind, names in kinds.items()}
    largest = max(shares, key=shares.__getitem__)
    shares[largest] += N_QUICK - sum(shares.values())
    return {names[at * len(names) // shares[kind]] for kind, names in kinds.items() for at in range(shares[kind])}


# ------------------------------------------------------------------------------------------------------------ the calls


def _all() -> Iterator[tuple[str, Call, str, Call]]:
    for kind, make in KINDS.items():
        for world, operation, options in make():
            yield kind, world, operation, options


Made = Iterator[tuple[Call, str, Call]]


def _world(kind: str, seed: int, **others: Any) -> Call:
    return {"kind": kind, "seed": seed, **others}


def _plain() -> Made:
    """Every metric by the default, on a world of its own, and by a fixed recipe on another."""
    trust = ("calibrated", "overconfident", "tilted")
    for at, metric in enumerate(BINARY):
        yield _world("binary", at, rows=300 + 20 * (at % 5), trust=trust[at % 3]), "optimize", {"metric": metric}
        yield _world("binary", 50 + at, rows=200, grid=64), "optimize", {"metric": metric, **PLAIN}
    for at, metric in enumerate(MULTICLASS):
        k = 3 + at % 2
        spec = _world("multiclass", 100 + at, rows=350, classes=k, trust=trust[at % 3], rare=at % 4 == 0)
        yield spec, "optimize", {"metric": metric}
        other = _world("multiclass", 150 + at, rows=200, classes=7 - k, grid=128 * (at % 2))
        yield other, "optimize", {"metric": metric, **(PLAIN if at % 3 else EXPECTED)}
    for at, metric in enumerate(ORDINAL):
        yield _world("ordinal", 200 + at, rows=300, classes=4), "optimize", {"metric": metric}
        yield _world("ordinal", 210 + at, rows=300, labels="ratings"), "optimize", {"metric": metric, **PLAIN}
        words = {"metric": {"name": metric, "order": "@order"}}
        yield _world("ordinal", 220 + at, rows=300, labels="words"), "optimize", words
        ordered = {"metric": metric, "y_form": "categorical", "form": "pandas"}
        yield _world("ordinal", 230 + at, rows=250, labels="words", trust="tilted"), "optimize", ordered
    for at, metric in enumerate(MULTILABEL):
        average = {} if "_" in metric and metric.split("_")[-1] in ("micro", "macro", "samples", "weighted") else None
        for which in ("micro", "macro") if average is None else (None,):
            options = {"metric": metric} | ({} if which is None else {"average": which})
            yield _world("multilabel", 240 + at, rows=220), "optimize", options
    for at, metric in enumerate(OUTPUTS):
        yield _world("mixed", 270 + at, rows=260), "optimize", {"metric": metric, "average": "macro"}
        options = {"metric": metric, "average": ("micro", "macro")[at % 2], **PLAIN}
        yield _world("multioutput", 280 + at, rows=240), "optimize", options


def _metrics_by_object() -> Made:
    """Metrics with parameters, ratios of one's own, functions, scorers."""
    specs: list[tuple[str, Any]] = [
        ("binary", {"name": "cost", "cost": COSTS[2]}),
        ("multiclass", {"name": "cost", "cost": COSTS[3]}),
        ("multiclass", {"name": "weighted_accuracy", "class_weight": [1, 2, 5]}),
        ("multiclass", {"name": "weighted_exponential", "gamma": 0.5}),
        ("binary", {"name": "fbeta", "beta": 3.0}),
        ("multiclass", {"name": "micro_f1", "negative_label": 1}),
        ("multiclass", {"name": "polynomial", "gamma": 2.0}),
        ("binary", {"ratio": [[[0, 0], [0, 1]], [[0, 0.3], [0.7, 1]]]}),
        ("multiclass", {"linear": [[1, 0, 0], [0.5, 1, 0], [0, 0, 3]]}),
        ("binary", {"function": "profit"}),
        ("multiclass", {"function": "profit"}),
        ("multiclass", {"function": "hits"}),
        ("binary", {"sklearn": "f1_score"}),
        ("binary", {"sklearn": "fbeta_score", "beta": 2}),
        ("multiclass", {"sklearn": "f1_score", "average": "macro"}),
        ("multiclass", {"sklearn": "cohen_kappa_score", "weights": "quadratic"}),
        ("multiclass", {"sklearn": "balanced_accuracy_score"}),
        ("binary", {"sklearn": "matthews_corrcoef"}),
    ]
    for at, (kind, metric) in enumerate(specs):
        yield _world(kind, 300 + at, rows=260), "optimize", {"metric": metric}
        yield _world(kind, 320 + at, rows=180, grid=64), "optimize", {"metric": metric, **PLAIN}
    yield _world("binary", 340, rows=60), "optimize", {"metric": {"function": "whole_rows"}}


def _solvers() -> Made:
    by_form = {
        "closed_form": ["accuracy", "balanced_accuracy"],
        "sweep": ["f1", "mcc", "g_mean"],
        "path": ["micro_f1", "kappa"],
        "dinkelbach": ["micro_f1", "kappa", "f1[1]"],
        "bisection": ["micro_f1", "kappa"],
        "frank_wolfe": ["g_mean", "h_mean", "q_mean"],
        "column_generation": ["min_recall"],
        "ascent": ["macro_f1", "mcc", "g_mean"],
    }
    seed = 350
    for solver, metrics in by_form.items():
        for metric in metrics:
            for count in ("labels", "expected"):
                seed += 1
                kind = "binary" if solver == "sweep" else "multiclass"
                options = {"metric": metric, "solver": solver, "count": count, "recalibrate": count == "labels"}
                yield _world(kind, seed, rows=220), "optimize", options
    for at, metric in enumerate(["min_recall", "g_mean", "h_mean", "q_mean"]):
        options = {"metric": metric, "randomized": True, "count": "expected", "recalibrate": False, "seed": at}
        yield _world("multiclass", 400 + at, rows=200, grid=32), "optimize", options
        options = {"metric": metric, "randomized": True}
        yield _world("multiclass", 410 + at, rows=240), "optimize", options
    for metric, tol in [("micro_f1", 1e-3), ("g_mean", 1e-2), ("macro_f1", 1e-2)]:
        yield _world("multiclass", 420, rows=200), "optimize", {"metric": metric, "tol": tol, **EXPECTED}


def _counted() -> Made:
    """What is counted, without labels, priors, weights, missing labels, copies, absent classes."""
    for at, metric in enumerate(["f1", "macro_f1", "min_recall", "kappa"]):
        kind = "binary" if metric == "f1" else "multiclass"
        for more in [{"count": "blended"}, {"labelled": False}, {"recalibrate": True}, {"recalibrate": False}]:
            yield _world(kind, 430 + at, rows=240, trust="overconfident"), "optimize", {"metric": metric, **more}
        yield _world(kind, 435 + at, rows=260), "optimize", {"metric": metric, "weights": "importance"}
        yield _world(kind, 440 + at, rows=260), "optimize", {"metric": metric, "weights": "frequency"}
        yield _world(kind, 445 + at, rows=260), "optimize", {"metric": metric, "clusters": True}
        yield _world(kind, 450 + at, rows=260), "optimize", {"metric": metric, "time": True}
        yield _world(kind, 455 + at, rows=260, missing=0.2), "optimize", {"metric": metric}
        yield _world(kind, 460 + at, rows=240, copies=3), "optimize", {"metric": metric}
        prior = [0.9, 0.1] if kind == "binary" else [0.2, 0.3, 0.5]
        yield _world(kind, 465 + at, rows=240), "optimize", {"metric": metric, "prior": prior}
        yield _world(kind, 470 + at, rows=240), "optimize", {"metric": metric, "seed": 5}
        scores = {"metric": metric, "normalize": True, "scale": 3.0, "form": "columns"}
        yield _world(kind, 475 + at, rows=200), "optimize", scores
    for at, metric in enumerate(["macro_f1", "min_recall", "balanced_accuracy", "macro_precision", "g_mean"]):
        absent = _world("multiclass", 480 + at, rows=200, absent=True)
        yield absent, "optimize", {"metric": metric, "name_classes": True}
        yield absent, "optimize", {"metric": metric, "name_classes": True, "at_zero": 1.0, **PLAIN}
    for at, average in enumerate(["micro", "macro", "instance"]):
        options = {"metric": "f1", "average": average, "output_weights": [1, 2, 4]}
        yield _world("multilabel", 490 + at, rows=200, missing=0.1), "optimize", options
        yield (
            _world("multilabel", 493 + at, rows=200),
            "optimize",
            {**options, "weights": "importance", "clusters": True},
        )
    yield _world("binary", 496, rows=220, missing=0.15), "optimize", {"metric": "f1", "missing_code": -9}
    yield _world("mixed", 497, rows=220, missing=0.15), "optimize", {"metric": "macro_f1", "average": "macro"}
    yield _world("binary", 498, rows=1500), "optimize", {"metric": "f1"}
    yield _world("multiclass", 499, rows=1500, classes=4), "optimize", {"metric": "macro_f1"}
    yield _world("multiclass", 500, rows=25_000), "optimize", {"metric": "macro_f1"}
    yield _world("binary", 501, rows=25_000), "optimize", {"metric": "f1", "bounds": "precision >= 0.7"}
    for labels in ("signs", "bools", "words", "floats", "ratings"):
        options = {"metric": "f1", "form": "columns"}
        if labels in ("words", "floats", "ratings"):
            options["positive"] = {"words": "bee", "floats": 1.5, "ratings": 2}[labels]
        yield _world("binary", 502, rows=220, labels=labels), "optimize", options
    for labels in ("ratings", "words", "floats"):
        yield _world("multiclass", 503, rows=220, labels=labels), "optimize", {"metric": "macro_f1"}
        yield _world("mixed", 504, rows=200, labels=labels), "optimize", {"metric": "macro_f1", "average": "macro"}


def _recorded() -> Made:
    names = {"binary": ["precision", "recall", "accuracy"], "multiclass": ["accuracy", "kappa", "min_recall"]}
    for at, metric in enumerate(["f1", "mcc", "balanced_accuracy", "g_mean"]):
        yield _world("binary", 510 + at, rows=240), "optimize", {"metric": metric, "record": names["binary"]}
        yield _world("binary", 515 + at), "optimize", {"metric": metric, "record": names["binary"], **PLAIN}
    for at, metric in enumerate(["macro_f1", "min_recall", "accuracy", "kappa"]):
        yield _world("multiclass", 520 + at, rows=240), "optimize", {"metric": metric, "record": names["multiclass"]}
        named = {"named": {"mine": "accuracy", "costs": {"name": "cost", "cost": COSTS[3]}, "first": "recall[0]"}}
        yield _world("multiclass", 525 + at, rows=240), "optimize", {"metric": metric, "record": named}
    for at, average in enumerate(["micro", "macro", "instance"]):
        options = {"metric": "f1", "average": average, "record": ["f1_macro", "hamming_accuracy", "jaccard"]}
        yield _world("multilabel", 530 + at, rows=200), "optimize", options
    options = {"metric": "macro_f1", "average": "macro", "record": ["accuracy", "balanced_accuracy"]}
    yield _world("mixed", 535, rows=220), "optimize", options
    unlabelled = {"metric": "macro_f1", "record": ["accuracy"], "labelled": False}
    yield _world("multiclass", 536, rows=240), "optimize", unlabelled


def _constrained() -> Made:
    binary = [
        ("recall", "precision >= 0.6"),
        ("recall", "precision >= 0.7 and share <= 0.4"),
        ("f1", "recall >= 0.5"),
        ("f1", "share <= 0.3"),
        ("accuracy", "recall >= 0.6"),
        ("precision", "recall >= 0.5"),
        ("balanced_accuracy", "specificity >= 0.8"),
        ("g_mean", "0.2 <= share <= 0.4"),
        ("mcc", "false_positive_rate <= 0.2"),
        ("accuracy", "share within 0.05 of prior"),
        ("recall", "precision >= 99 %"),
    ]
    for at, (metric, bounds) in enumerate(binary):
        yield _world("binary", 540 + at, rows=320), "optimize", {"metric": metric, "bounds": bounds}
        options = {"metric": metric, "bounds": bounds, "confidence": None}
        yield _world("binary", 555 + at, rows=260), "optimize", options
        yield _world("binary", 570 + at, rows=200), "optimize", {**options, **EXPECTED, "labelled": False}
    several = [
        ("accuracy", "recall[2] >= 0.5"),
        ("macro_f1", "recall[1] >= 0.5"),
        ("macro_f1", ["recall[2] >= 0.4", "share[0] <= 0.7"]),
        ("recall[1]", "precision[1] >= 0.4"),
        ("balanced_accuracy", "accuracy >= 0.5"),
        ("min_recall", "share[0] >= 0.2"),
        ("accuracy", {"at_least": ["recall", 0.4, 1]}),
        ("accuracy", {"between": ["share", 0.1, 0.5, 2]}),
        ("accuracy", {"near_prior": [0.05, 1]}),
        ("accuracy", {"at_most": [{"name": "cost", "cost": COSTS[3]}, -0.5]}),
        ("kappa", "recall[0] >= 0.5"),
    ]
    for at, (metric, bounds) in enumerate(several):
        yield _world("multiclass", 580 + at, rows=300), "optimize", {"metric": metric, "bounds": bounds}
        options = {"metric": metric, "bounds": bounds, "confidence": None, **PLAIN}
        yield _world("multiclass", 600 + at, rows=220), "optimize", options
        if at < 6:
            yield _world("multiclass", 620 + at, rows=200), "optimize", {**options, "randomized": True}
    for at, average in enumerate(["micro", "macro"]):
        options = {"metric": "f1", "average": average, "bounds": "precision >= 0.5"}
        yield _world("multilabel", 630 + at, rows=220), "optimize", options
        named = {**options, "form": "pandas", "bounds": "recall[second] >= 0.5"}
        yield _world("multilabel", 633 + at, rows=220), "optimize", named
        yield _world("multilabel", 636 + at, rows=220), "optimize", {**named, "confidence": None}
    more = {"metric": "recall", "bounds": "precision >= 0.6"}
    for at, extra in enumerate(
        [
            {"weights": "importance"},
            {"weights": "frequency"},
            {"clusters": True},
            {"time": True},
            {"record": ["f1"]},
            {"confidence": 0.8},
            {"confidence": 0.99},
            {"prior": [0.6, 0.4]},
            {"randomized": True},
        ]
    ):
        yield _world("binary", 640 + at, rows=400), "optimize", {**more, **extra}
    yield _world("binary", 650, rows=300, copies=3), "optimize", more
    yield _world("binary", 651, rows=60), "optimize", more
    yield _world("binary", 652, rows=300, missing=0.2), "optimize", more


def _trade_offs() -> Made:
    pairs = [("recall", "precision"), ("f1", "share"), ("accuracy", "recall"), ("precision", "recall")]
    for at, (metric, against) in enumerate(pairs):
        yield _world("binary", 660 + at, rows=250), "trade_off", {"metric": metric, "against": against, "points": 6}
        options = {"metric": metric, "against": against, "points": 4, **EXPECTED, "record": ["accuracy"]}
        yield _world("binary", 665 + at, rows=200), "trade_off", options
    for at, (metric, against) in enumerate(
        [("accuracy", "recall[2]"), ("macro_f1", "recall[1]"), ("recall[1]", "precision[1]")]
    ):
        yield _world("multiclass", 670 + at, rows=220), "trade_off", {"metric": metric, "against": against, "points": 4}
    ceiling = {"metric": "recall", "against": "false_positive_rate", "ceiling": True, "points": 5}
    yield _world("binary", 675, rows=250), "trade_off", ceiling
    yield _world("binary", 676, rows=250), "trade_off", {**ceiling, "weights": "importance"}
    yield (
        _world("multiclass", 677, rows=200),
        "trade_off",
        {"metric": "accuracy", "against": "abstained", "abstain": True, "points": 4},
    )
    yield _world("binary", 678, rows=200), "trade_off", {**ceiling, "bounds": "precision >= 0.5"}


def _grouped() -> Made:
    bounds = ["demographic_parity <= 0.1", "equal_opportunity <= 0.1", "equalized_odds <= 0.15", "accuracy gap <= 0.05"]
    bounds += ["predictive_parity <= 0.1", "accuracy >= 0.6 in every group", "recall >= 0.5 in group f"]
    for at, bound in enumerate(bounds):
        fast = {"bounds": bound, "sensitive": ["sex"], "confidence": None, **PLAIN}
        for number, metric in enumerate(("accuracy", "f1")):
            yield _world("binary", 680 + at + 10 * number, rows=200), "optimize", {"metric": metric, **fast}
            unaware = {"metric": metric, **fast, "aware": False}
            yield _world("binary", 700 + at + 10 * number, rows=120), "optimize", unaware
    for at, bound in enumerate(bounds[:3]):  # by the default, which takes seconds
        options = {"metric": "accuracy", "bounds": bound, "sensitive": ["sex"]}
        yield _world("binary", 743 + at, rows=160), "optimize", options
    for at, metric in enumerate(["accuracy", "balanced_accuracy", "f1"]):
        worst = {"metric": {"worst_group": metric}, "sensitive": ["sex"]}
        yield _world("binary", 1400 + at, rows=160), "optimize", worst
        yield _world("binary", 1405 + at, rows=160), "optimize", {**worst, "aware": False, **PLAIN}
    both = {"metric": "accuracy", "bounds": "demographic_parity <= 0.2", "sensitive": ["sex", "region"], **PLAIN}
    yield _world("binary", 720, rows=300), "optimize", {**both, "confidence": None}
    yield _world("binary", 721, rows=300), "optimize", {**both, "confidence": None, "randomized": True}
    for at, bound in enumerate(
        ["demographic_parity[1] <= 0.1", "accuracy >= 0.4 in every group", "recall[2] gap <= 0.1"]
    ):
        options = {"metric": "macro_f1", "bounds": bound, "sensitive": ["sex"], "confidence": None, **PLAIN}
        yield _world("multiclass", 725 + at, rows=260), "optimize", options
    for at, bound in enumerate(
        [
            {"gap": ["recall", 0.1, 1]},
            {"in_every_group": {"at_least": ["accuracy", 0.55]}},
            {"in_group": [{"at_least": ["recall", 0.5, 1]}, "m"]},
        ]
    ):
        options = {"metric": "accuracy", "bounds": bound, "sensitive": ["sex"], "confidence": None}
        yield _world("binary", 730 + at, rows=260), "optimize", options
    tags = {"metric": "f1", "average": "macro", "sensitive": ["sex"], "confidence": None, **PLAIN}
    yield _world("multilabel", 733, rows=150), "optimize", {**tags, "bounds": "demographic_parity <= 0.2"}
    plain = {"metric": "f1", "sensitive": ["sex"], "record": ["recall"]}
    yield _world("binary", 735, rows=260), "optimize", plain
    yield _world("multiclass", 736, rows=260), "optimize", {"metric": "macro_f1", "sensitive": ["region"]}
    bounded = {**plain, "bounds": bounds[0], "confidence": None, **PLAIN}
    yield _world("binary", 737, rows=260), "optimize", {**bounded, "weights": "importance"}
    yield _world("binary", 738, rows=260), "optimize", {**bounded, "clusters": True}


def _abstaining() -> Made:
    for at, cost in enumerate([0.1, 0.2, 0.35]):
        for metric in ("accuracy", "balanced_accuracy"):
            yield _world("multiclass", 740 + at, rows=260), "optimize", {"metric": metric, "abstain": cost}
            yield _world("binary", 745 + at, rows=260), "optimize", {"metric": metric, "abstain": cost}
        yield (
            _world("multiclass", 750 + at, rows=220),
            "optimize",
            {"metric": {"name": "cost", "cost": COSTS[3]}, "abstain": cost * 5, **PLAIN},
        )
        yield _world("ordinal", 755 + at, rows=220), "optimize", {"metric": "ordinal", "abstain": cost}
    share = {"abstain": True, "bounds": "abstained <= 0.2"}
    for at, metric in enumerate(["accuracy", "f1", "precision", "recall", "jaccard"]):
        yield _world("binary", 760 + at, rows=260), "optimize", {"metric": metric, **share}
        yield _world("binary", 766 + at, rows=220), "optimize", {"metric": metric, **share, "confidence": None, **PLAIN}
    for at, metric in enumerate(["accuracy", "macro_f1", "balanced_accuracy", "g_mean", "kappa", "min_recall"]):
        yield _world("multiclass", 772 + at, rows=220), "optimize", {"metric": metric, **share}
        yield _world("multiclass", 781 + at, rows=200), "optimize", {"metric": metric, **share, "confidence": None}
    yield _world("multiclass", 788, rows=220, labels="words"), "optimize", {"metric": "accuracy", "abstain": 0.3}
    yield (
        _world("multiclass", 789, rows=220, labels="words"),
        "optimize",
        {"metric": "accuracy", "abstain": 0.3, "abstain_label": "ask", "record": ["macro_f1", "abstained"]},
    )
    yield (
        _world("multilabel", 790, rows=200),
        "optimize",
        {"metric": "hamming_accuracy", "average": "macro", "abstain": 0.2},
    )
    yield _world("mixed", 791, rows=200), "optimize", {"metric": "accuracy", "average": "macro", "abstain": 0.2}
    bound = {"metric": "accuracy", "abstain": 0.2, "bounds": "recall[1] >= 0.3"}
    yield _world("multiclass", 792, rows=260), "optimize", bound
    yield _world("multiclass", 793, rows=260), "optimize", {**bound, "confidence": None, "weights": "importance"}


def _row_costs() -> Made:
    for at, kind in enumerate(["binary", "multiclass"]):
        form = {"form": "columns"}
        for costs in ("wrong", "tables"):
            options = {"metric": "cost", "row_costs": costs, **form}
            yield _world(kind, 800 + at, rows=260), "optimize", options
            yield _world(kind, 803 + at, rows=260, trust="overconfident"), "optimize", options
            yield _world(kind, 806 + at, rows=200), "optimize", {**options, "recalibrate": False}
            yield _world(kind, 809 + at, rows=200), "optimize", {**options, "weights": "importance"}
            yield _world(kind, 812 + at, rows=200), "optimize", {**options, "weights": "frequency"}
            yield _world(kind, 815 + at, rows=200), "optimize", {**options, "clusters": True}
            yield _world(kind, 818 + at, rows=200), "optimize", {**options, "labelled": False}
        asked = {"metric": "cost", "row_costs": "abstaining", "abstain": True, **form}
        yield _world(kind, 821 + at, rows=220), "optimize", asked
        yield (
            _world(kind, 824 + at, rows=220),
            "optimize",
            {"metric": "cost", "row_costs": "tables", "abstain": 1.0, **form},
        )
    yield _world("multiclass", 827, rows=240, labels="words"), "optimize", {"metric": "cost", "row_costs": "wrong"}
    yield _world("multiclass", 828, rows=240, missing=0.2), "optimize", {"metric": "cost", "row_costs": "tables"}


def _per_output() -> Made:
    mixed = {"each": {"0": "macro_f1", "1": "f1", "2": "accuracy"}}
    named = {"each": {"first": "min_recall", "second": "f1", "third": "kappa"}}
    for at, extra in enumerate(
        [
            {},
            PLAIN,
            EXPECTED,
            {"weights": "importance"},
            {"clusters": True},
            {"record": ["accuracy"]},
            {"output_weights": [1, 2, 3]},
        ]
    ):
        yield _world("mixed", 830 + at, rows=240), "optimize", {"metric": mixed, **extra}
        tags = {"metric": ["f1", "mcc", "balanced_accuracy"], **extra}
        yield (
            _world("multilabel", 840 + at, rows=220),
            "optimize",
            {**tags, **({"record": ["f1"]} if "record" in extra else {})},
        )
    for at, extra in enumerate([{}, PLAIN, {"record": ["accuracy"]}]):
        yield _world("mixed", 850 + at, rows=240), "optimize", {"metric": named, "form": "pandas", **extra}
    bounded = {"metric": named, "form": "pandas", "bounds": "recall[second, 1] >= 0.5", "confidence": None}
    yield _world("mixed", 855, rows=240), "optimize", bounded
    yield _world("mixed", 856, rows=240, missing=0.15), "optimize", {"metric": mixed}


def _tables() -> Made:
    for at, form in enumerate(["csv", "tsv", "parquet", "feather"]):
        yield _world("binary", 860 + at, rows=240), "optimize", {"metric": "f1", "form": form}
        yield _world("multiclass", 865 + at, rows=240), "optimize", {"metric": "macro_f1", "form": form}
        yield (
            _world("multiclass", 870 + at, rows=240, labels="words"),
            "optimize",
            {"metric": "min_recall", "form": form, "weights": "importance"},
        )
        yield _world("multilabel", 875 + at, rows=200), "optimize", {"metric": "f1", "average": "macro", "form": form}
        yield _world("mixed", 880 + at, rows=200), "optimize", {"metric": "accuracy", "average": "macro", "form": form}
        hand = {"rule": {"weights": [1, 2, 3]}, "form": form}
        yield _world("multiclass", 885 + at, rows=120, labels="words"), "predict_table", hand
    fitted = {"rule": {"fit": {"metric": "macro_f1", "average": "macro", "form": "pandas"}}, "form": "parquet"}
    yield _world("mixed", 890, rows=150, labels="words"), "predict_table", fitted
    yield _world("multiclass", 891, rows=240), "optimize", {"metric": "macro_f1", "form": "parquet", "clusters": True}
    yield (
        _world("binary", 892, rows=300),
        "optimize",
        {"metric": "recall", "bounds": "precision >= 0.6", "form": "parquet"},
    )
    yield _world("multiclass", 893, rows=240), "optimize", {"metric": "accuracy", "abstain": 0.2, "form": "csv"}
    yield _world("multiclass", 894, rows=240, missing=0.1), "optimize", {"metric": "macro_f1", "form": "parquet"}
    yield _world("multiclass", 895, rows=240), "optimize", {"metric": "kappa", "form": "csv", **PLAIN}


def _dask() -> Made:
    for at, form in enumerate(["dask_array", "dask_frame"]):
        columns = {"form": form}
        for number, metric in enumerate(["macro_f1", "min_recall", "kappa", "accuracy", "g_mean"]):
            yield _world("multiclass", 900 + 10 * at + number, rows=240), "optimize", {"metric": metric, **columns}
        yield _world("multiclass", 905 + 10 * at, rows=240), "optimize", {"metric": "macro_f1", **columns, **PLAIN}
        weighted = {"metric": "macro_f1", **columns, "weights": "importance"}
        yield _world("multiclass", 906 + 10 * at, rows=240), "optimize", weighted
        yield (
            _world("multiclass", 907 + 10 * at, rows=240),
            "optimize",
            {**columns, "metric": "kappa", "clusters": True},
        )
        bounded = {"metric": "accuracy", "bounds": "recall[1] >= 0.3", **columns}
        yield _world("multiclass", 908 + 10 * at, rows=240), "optimize", bounded
        yield (
            _world("multiclass", 909 + 10 * at, rows=240),
            "optimize",
            {"metric": "accuracy", "abstain": 0.2, **columns},
        )
    yield _world("binary", 920, rows=300), "optimize", {"metric": "f1", "form": "dask_array"}
    yield _world("binary", 921, rows=300), "optimize", {"metric": "mcc", "form": "dask_array", "labelled": False}
    yield _world("multilabel", 922, rows=220), "optimize", {"metric": "f1", "average": "macro", "form": "dask_array"}
    yield _world("multioutput", 923, rows=220), "optimize", {"metric": "accuracy", "form": "dask_array"}
    yield _world("multiclass", 924, rows=240, missing=0.1), "optimize", {"metric": "macro_f1", "form": "dask_array"}


def _containers() -> Made:
    """Tensors, frames, lists, sparse matrices, float32, other strides."""
    for at, form in enumerate(["tensor", "device_tensor", "bfloat16", "float32", "fortran", "list", "columns"]):
        y_form = {"y_form": "array"}
        for number, (kind, metric) in enumerate(
            [("binary", "f1"), ("multiclass", "macro_f1"), ("multilabel", "f1_macro"), ("multioutput", "accuracy")]
        ):
            options = {"metric": metric, "form": form, **y_form}
            yield _world(kind, 930 + 5 * at + number, rows=220), "optimize", options
        weighted = {"metric": "min_recall", "form": form, **y_form, "weights": "importance", "clusters": True}
        yield _world("multiclass", 934 + 5 * at, rows=220), "optimize", weighted
    for at, form in enumerate(["pandas", "polars"]):
        words = {"labels": "words"}
        yield (
            _world("binary", 970 + at, rows=220, **words),
            "optimize",
            {"metric": "f1", "form": form, "positive": "bee"},
        )
        yield _world("multiclass", 973 + at, rows=220, **words), "optimize", {"metric": "macro_f1", "form": form}
        yield _world("multilabel", 976 + at, rows=220), "optimize", {"metric": "f1", "average": "macro", "form": form}
        yield (
            _world("mixed", 979 + at, rows=220, **words),
            "optimize",
            {"metric": "accuracy", "average": "macro", "form": form},
        )
        bounded = {"metric": "macro_f1", "form": form, "bounds": "recall[bee] >= 0.4"}
        yield _world("multiclass", 982 + at, rows=260, **words), "optimize", bounded
    for at, average in enumerate(["micro", "macro"]):
        sparse = {"metric": "f1", "average": average, "y_form": "sparse"}
        yield _world("multilabel", 985 + at, rows=220, outputs=6), "optimize", sparse
        yield _world("multilabel", 987 + at, rows=220, outputs=6), "optimize", {**sparse, **PLAIN}
    yield _world("multiclass", 990, rows=220, dtype="float32"), "optimize", {"metric": "macro_f1"}
    yield _world("multilabel", 991, rows=220, outputs=8), "optimize", {"metric": "f1", "average": "micro"}


def _evaluated() -> Made:
    binary = ["f1", "precision", "recall", "mcc", "balanced_accuracy"]
    for at, threshold in enumerate([0.3, 0.5, 0.7]):
        hand = {"rule": {"thresholds": threshold}, "metrics": binary}
        for number, extra in enumerate(
            [
                {},
                {"weights": "importance"},
                {"weights": "frequency"},
                {"clusters": True},
                {"time": True},
                {"sensitive": ["sex"]},
            ]
        ):
            if (at + number) % 2 == 0 or at == 0:
                yield _world("binary", 1000 + 10 * at + number, rows=260), "evaluate", {**hand, **extra}
        other = {**hand, "against": {"thresholds": 0.4}}
        yield _world("binary", 1008 + 10 * at, rows=260, missing=0.1), "evaluate", other
    several = ["accuracy", "macro_f1", "min_recall", "kappa", "g_mean", {"name": "cost", "cost": COSTS[3]}]
    for at, rule in enumerate([{"weights": [1, 2, 3]}, {"cuts": [0.6, 1.4]}, {"fit": {"metric": "macro_f1"}}]):
        hand = {"rule": rule, "metrics": several}
        yield _world("multiclass", 1040 + at, rows=240), "evaluate", hand
        yield _world("multiclass", 1044 + at, rows=240), "evaluate", {**hand, "against": {"weights": [3, 2, 1]}}
        yield _world("multiclass", 1048 + at, rows=240), "evaluate", {**hand, "weights": "importance", "clusters": True}
        yield _world("multiclass", 1052 + at, rows=240, copies=3), "evaluate", hand
    outputs = {"rule": {"thresholds": [0.3, 0.5, 0.6]}, "metrics": ["f1", "jaccard"]}
    for at, average in enumerate(["micro", "macro", "instance"]):
        yield _world("multilabel", 1060 + at, rows=220), "evaluate", {**outputs, "average": average}
    mixture = {"rule": {"fit": {"metric": "min_recall", "randomized": True, **EXPECTED}}, "metrics": several}
    yield _world("multiclass", 1064, rows=220, grid=32), "evaluate", mixture
    abstaining = {"rule": {"fit": {"metric": "accuracy", "abstain": 0.2}}, "metrics": ["accuracy", "macro_f1"]}
    yield _world("multiclass", 1065, rows=220), "evaluate", abstaining
    yield _world("multiclass", 1066, rows=220), "evaluate", {**abstaining, "abstain": True}
    for at, rule in enumerate([{"thresholds": 0.4}, {"weights": [1, 4]}]):
        yield (
            _world("binary", 1070 + at, rows=100, labels="words"),
            "apply",
            {"rule": {**rule, **({"positive": "bee"} if "thresholds" in rule else {})}, "form": "columns"},
        )
    yield _world("multiclass", 1072, rows=100), "apply", {"rule": {"cuts": [0.5, 1.2]}}
    yield _world("multilabel", 1073, rows=100), "apply", {"rule": {"thresholds": [0.2, 0.5, 0.7]}}
    yield _world("multiclass", 1074, rows=150, grid=32), "apply", {"rule": mixture["rule"]}
    yield _world("mixed", 1075, rows=150), "apply", {"rule": {"fit": {"metric": "macro_f1", "average": "macro"}}}


def _summaries() -> Made:
    for at, metric in enumerate(["f1", "balanced_accuracy", "mcc", "recall"]):
        bounds = {"bounds": "precision >= 0.6"} if metric == "recall" else {}
        yield _world("binary", 1080 + at, rows=260), "summarize", {"metric": metric, **bounds}
    for at, metric in enumerate(["macro_f1", "min_recall", "kappa", "accuracy", {"name": "cost", "cost": COSTS[3]}]):
        yield (
            _world("multiclass", 1085 + at, rows=260, labels="ints"),
            "summarize",
            {"metric": metric, "record": ["accuracy"]},
        )
    yield _world("ordinal", 1091, rows=260, classes=4), "summarize", {"metric": "quadratic_kappa"}
    yield _world("multilabel", 1092, rows=220), "summarize", {"metric": "f1", "average": "macro"}
    yield _world("mixed", 1093, rows=220), "summarize", {"metric": "accuracy", "average": "macro"}
    yield _world("multiclass", 1094, rows=220), "summarize", {"metric": "accuracy", "abstain": 0.2}
    yield _world("binary", 1095, rows=260), "summarize", {"metric": "f1", **PLAIN}
    yield _world("binary", 1096, rows=260), "summarize", {"metric": "f1", "labelled": False}
    yield (
        _world("mixed", 1097, rows=220),
        "summarize",
        {"metric": {"each": {"0": "macro_f1", "1": "f1", "2": "accuracy"}}},
    )
    fair = {
        "metric": "accuracy",
        "bounds": "demographic_parity <= 0.1",
        "sensitive": ["sex"],
        "aware": False,
        "confidence": None,
    }
    yield _world("binary", 1098, rows=260), "summarize", fair


def _exports() -> Made:
    rules = [
        ("binary", {"thresholds": 0.37}, {}),
        ("multiclass", {"weights": [1, 2, 5]}, {}),
        ("multiclass", {"cuts": [0.6, 1.3]}, {}),
        ("multiclass", {"fit": {"metric": "macro_f1"}}, {"trust": "overconfident"}),
        ("multiclass", {"fit": {"metric": "kappa", **PLAIN}}, {"labels": "words"}),
        ("multiclass", {"fit": {"metric": "accuracy", "abstain": 0.25}}, {}),
        ("multilabel", {"fit": {"metric": "f1", "average": "macro"}}, {}),
        ("mixed", {"fit": {"metric": "accuracy", "average": "macro"}}, {}),
    ]
    for at, (kind, rule, more) in enumerate(rules):
        for to in ("sql", "python", "onnx"):
            yield _world(kind, 1100 + at, rows=160, **more), "export", {"rule": rule, "to": to}
        yield _world(kind, 1110 + at, rows=160, **more), "export", {"rule": rule, "to": "onnx", "type": "float32"}
    for at, dialect in enumerate(["postgres", "sqlite", "bigquery", "snowflake", "spark", "oracle"]):
        rule = {"fit": {"metric": "macro_f1"}}
        yield _world("multiclass", 1120 + at, rows=160), "export", {"rule": rule, "to": "sql", "dialect": dialect}
    fair = {
        "metric": "accuracy",
        "bounds": "demographic_parity <= 0.1",
        "sensitive": ["sex"],
        "confidence": None,
        **PLAIN,
    }
    for to in ("sql", "python", "onnx"):
        options = {"rule": {"fit": {**fair, "form": "columns"}}, "to": to, **({"group": "sex"} if to == "sql" else {})}
        yield _world("binary", 1130, rows=260), "export", options
    costs = {"fit": {"metric": "cost", "row_costs": "wrong", "form": "columns"}}
    mixture = {"fit": {"metric": "min_recall", "randomized": True, **EXPECTED}}
    for to in ("sql", "python", "onnx"):
        yield _world("binary", 1131, rows=160), "export", {"rule": costs, "to": to}
    yield _world("multiclass", 1132, rows=160, grid=32), "export", {"rule": mixture, "to": "python"}


def _estimators() -> Made:
    for at, model in enumerate(["bayes", "tree"]):
        optimal = {"estimator": "optimal", "model": model, "folds": 3}
        for number, metric in enumerate(["f1", "balanced_accuracy", "mcc"]):
            yield _world("binary", 1140 + 5 * at + number, rows=240), "estimator", {**optimal, "metric": metric}
        for number, metric in enumerate(["macro_f1", "min_recall", "kappa", "f1_macro"]):
            yield _world("multiclass", 1150 + 5 * at + number, rows=240), "estimator", {**optimal, "metric": metric}
        yield _world("multiclass", 1160 + at, rows=240, labels="words"), "estimator", {**optimal, "metric": "macro_f1"}
        several = {**optimal, "several_models": True}
        yield _world("multilabel", 1163 + at, rows=220), "estimator", {**several, "metric": "f1", "average": "macro"}
        yield _world("mixed", 1166 + at, rows=220), "estimator", {**several, "metric": "accuracy", "average": "macro"}
        each = {"each": {"0": "macro_f1", "1": "f1", "2": "accuracy"}}
        yield _world("mixed", 1169 + at, rows=220), "estimator", {**several, "metric": each}
        weighted = {"estimator": "weighted", "model": model, "folds": 3, "steps": 3}
        yield _world("binary", 1172 + at, rows=240), "estimator", {**weighted, "metric": "f1"}
        yield _world("multiclass", 1175 + at, rows=240), "estimator", {**weighted, "metric": "g_mean"}
        priced = {"estimator": "cost_sensitive", "model": model}
        yield _world("binary", 1178 + at, rows=240), "estimator", {**priced, "loss": COSTS[2]}
        yield _world("multiclass", 1181 + at, rows=240), "estimator", {**priced, "loss": COSTS[3]}
        fixed = {"estimator": "fixed", "model": model}
        yield _world("binary", 1184 + at, rows=200), "estimator", {**fixed, "rule": {"thresholds": 0.3}}
        yield _world("multiclass", 1187 + at, rows=200), "estimator", {**fixed, "rule": {"weights": [1, 2, 4]}}
    optimal = {"estimator": "optimal", "model": "bayes", "folds": 3, "metric": "f1"}
    extras: list[Call] = [
        {"weights": "importance"},
        {"time": True},
        {"record": ["recall"]},
        {"bounds": "precision >= 0.5"},
        {"bounds": "precision >= 0.5", "confidence": None},
        {"bounds": "demographic_parity <= 0.1", "sensitive": ["sex"], "confidence": None, **PLAIN},
        {"bounds": "demographic_parity <= 0.1", "sensitive": ["sex"], "aware": False, "confidence": None, **PLAIN},
        {"metric": "accuracy", "abstain": 0.2},
        {"metric": "cost", "row_costs": "wrong"},
        {"calibration": "sigmoid"},
        {"refit": False},
        {"refit": False, "folds": 0.5, "seed": 1},
        {"seed": 3},
        PLAIN,
        EXPECTED,
        {"clusters": True},
        {"clusters": True, "folds": "by cluster"},
        {"metric": {"sklearn": "fbeta_score", "beta": 2}},
    ]
    for at, extra in enumerate(extras):
        yield _world("binary", 1190 + at, rows=260), "estimator", {**optimal, **extra}
    for at, metric in enumerate(["f1", "mcc", "g_mean", "f2"]):
        yield _world("binary", 1210 + at, rows=200), "score", {"metric": metric}
    for at, metric in enumerate(["macro_f1", "min_recall", {"name": "cost", "cost": COSTS[3]}, "quadratic_kappa"]):
        yield _world("multiclass", 1215 + at, rows=200), "score", {"metric": metric, "model": "tree"}
    yield _world("binary", 1220, rows=200, labels="words"), "score", {"metric": "f1", "positive": "bee"}


def _command_line() -> Made:
    def fit(metric: str, **more: Any) -> list[Any]:
        return [
            "fit",
            more.pop("table", "given.csv"),
            {"target": "target", "metric": metric, "output": "rule.json", **more},
        ]

    def applied(**more: Any) -> list[Any]:
        return ["apply", "rule.json", more.pop("table", "new.csv"), {"keep": "id", "output": "decided.csv", **more}]

    for at, metric in enumerate(["f1", "balanced_accuracy", "mcc", "accuracy", "g_mean"]):
        yield _world("binary", 1230 + at, rows=220), "commands", {"commands": [fit(metric), applied()]}
    for at, metric in enumerate(["macro_f1", "min_recall", "kappa", "micro_f1"]):
        steps = [
            fit(metric, record=["accuracy"]),
            applied(),
            ["evaluate", "rule.json", "new.csv", {"metric": ["accuracy", "macro_f1"]}],
        ]
        yield _world("multiclass", 1240 + at, rows=220, labels="words"), "commands", {"commands": steps}
        as_json = [fit(metric, json=True), applied(json=True), ["evaluate", "rule.json", "new.csv", {"json": True}]]
        yield _world("multiclass", 1245 + at, rows=220), "commands", {"commands": as_json}
    for at, form in enumerate(["tsv", "parquet", "feather"]):
        steps = [fit("macro_f1", table=f"given.{form}"), applied(table=f"new.{form}", output=f"decided.{form}")]
        yield _world("multiclass", 1250 + at, rows=220), "commands", {"commands": steps, "form": form}
    more: list[Call] = [
        {"weight": "weight"},
        {"weight": "frequency", "weight_kind": "frequency"},
        {"groups": "cluster"},
        {"time": "time"},
        {"bounds": "precision >= 0.6"},
        {"bounds": ["precision >= 0.6", "share <= 0.5"], "confidence": "none"},
        {"bounds": "precision >= 0.99 and recall >= 0.99"},
        {"bounds": "demographic_parity <= 0.1", "sensitive": ["sex"]},
        {"bounds": "demographic_parity <= 0.1", "sensitive": ["sex"], "group_blind": True, "confidence": "none"},
        {"seed": 4},
        {"record": ["recall", "precision"]},
        {"proba": "p_1"},
        {"proba_prefix": "p_"},
    ]
    for at, extra in enumerate(more):
        after = [applied()] if "99" not in str(extra) else []
        yield _world("binary", 1260 + at, rows=260), "commands", {"commands": [fit("f1", **extra), *after]}
    abstain = [fit("accuracy", abstain=0.2), applied()]
    yield _world("multiclass", 1280, rows=220), "commands", {"commands": abstain}
    named = [fit("accuracy", abstain=0.3, abstain_label="ask"), applied()]
    yield _world("multiclass", 1281, rows=220, labels="words"), "commands", {"commands": named}
    outputs = [
        "fit",
        "given.csv",
        {"target": ["first", "second", "third"], "metric": "accuracy", "average": "macro", "output": "rule.json"},
    ]
    yield _world("mixed", 1282, rows=220, labels="words"), "commands", {"commands": [outputs, applied()]}
    tags = [
        "fit",
        "given.csv",
        {"target": ["first", "second", "third"], "metric": "f1_macro", "proba_prefix": "p_", "output": "rule.json"},
    ]
    yield _world("multilabel", 1283, rows=220), "commands", {"commands": [tags, applied()]}
    for at, ending in enumerate(["py", "sql"]):
        steps = [fit("macro_f1"), ["export", "rule.json", {"output": f"rule.{ending}"}], ["explain", "rule.json", {}]]
        yield _world("multiclass", 1285 + at, rows=200), "commands", {"commands": steps}
    against = [fit("f1"), ["compare", "rule.json", "new.csv", {"threshold": 0.5}]]
    yield _world("binary", 1287, rows=220), "commands", {"commands": against}
    weights = [fit("macro_f1"), ["compare", "rule.json", "new.csv", {"class_weights": "ant=1,bee=2,cat=3"}]]
    yield _world("multiclass", 1288, rows=220, labels="words"), "commands", {"commands": weights}
    curve = ["trade-off", "given.csv", {"target": "target", "metric": "recall", "against": "precision", "points": 4}]
    yield _world("binary", 1289, rows=220), "commands", {"commands": [curve]}
    page = [fit("f1"), ["report", "rule.json", "new.csv", {"output": "report.html"}]]
    yield _world("binary", 1290, rows=220), "commands", {"commands": page}
    for at, words in enumerate(
        [
            ["metrics", {}],
            ["metrics", "g_mean", {}],
            ["metrics", "f1", {"json": True}],
            ["--help", {}],
            ["fit", {"help": True}],
        ]
    ):
        yield _world("binary", 1291, rows=20 + at), "commands", {"commands": [words]}
    wrong = [
        fit("nonsense"),
        fit("roc_auc"),
        fit("f1", table="nowhere.csv"),
        ["fit", "given.csv", {"target": "nobody", "metric": "f1", "output": "rule.json"}],
        fit("f1", weight="nobody"),
        fit("f1", bounds="precison >= 0.6"),
        fit("f1", average="mean"),
        fit("f1", confidence="2"),
        applied(),
        fit("f1", output="nowhere/rule.json"),
        ["fitt", {}],
        fit("f1", proba="id"),
    ]
    for at, step in enumerate(wrong):
        yield _world("binary", 1300 + at, rows=80), "commands", {"commands": [step]}


def _refused() -> Made:
    """Calls that must not work, for what they say."""
    binary: list[Call] = [
        {"metric": "nonsense"},
        {"metric": "f1_scor"},
        {"metric": "roc_auc"},
        {"metric": "log_loss"},
        {"metric": "fbeta"},
        {"metric": "cost"},
        {"metric": "f1", "average": "mean"},
        {"metric": "f1", "solver": "nobody"},
        {"metric": "f1", "solver": "frank_wolfe"},
        {"metric": "f1", "solver": "closed_form"},
        {"metric": "f1", "count": "votes"},
        {"metric": "f1", "recalibrate": "yes"},
        {"metric": "f1", "prior": [0.5, 0.6]},
        {"metric": "f1", "prior": [1, 2, 3]},
        {"metric": "f1", "randomized": "no"},
        {"metric": "f1", "seed": -1},
        {"metric": "f1", "seed": 0.5},
        {"metric": "f1", "tol": -1.0, "solver": "bisection"},
        {"metric": "f1", "positive": 7},
        {"metric": "f1[5]"},
        {"metric": "f1[bee]"},
        {"metric": "f1", "confidence": 2.0, "bounds": "recall >= 0.5"},
        {"metric": "f1", "bounds": "recall > 0.5"},
        {"metric": "f1", "bounds": "recal >= 0.5"},
        {"metric": "f1", "bounds": "recall >= 1.5"},
        {"metric": "f1", "bounds": "recall >= 80"},
        {"metric": "f1", "bounds": "mcc <= 0.5"},
        {"metric": "f1", "bounds": "share[9] <= 0.5"},
        {"metric": "f1", "bounds": 3},
        {"metric": "f1", "bounds": "precision >= 0.99 and recall >= 0.99"},
        {"metric": "f1", "bounds": "demographic_parity <= 0.1"},
        {"metric": "f1", "bounds": "accuracy >= 0.5 in group x", "sensitive": ["sex"]},
        {"metric": {"worst_group": "f1"}},
        {"metric": "f1", "abstain": 0.2},
        {"metric": "accuracy", "abstain": -1.0},
        {"metric": "accuracy", "abstain": True},
        {"metric": "accuracy", "abstain": 0.2, "abstain_label": 1},
        {"metric": "accuracy", "abstain_label": "ask"},
        {"metric": "f1", "row_costs": "wrong"},
        {"metric": "cost", "row_costs": "wrong", "prior": [0.5, 0.5]},
        {"metric": "cost", "row_costs": "abstaining"},
        {"metric": "f1", "output_weights": [1, 2]},
        {"metric": "f1", "record": ["nonsense"]},
        {"metric": "f1", "record": "accuracy"},
        {"metric": "f1", "labelled": False, "recalibrate": True},
        {"metric": "f1", "labelled": False, "count": "labels"},
        {"metric": "f1", "scale": 2.0},
        {"metric": "f1", "scale": -1.0},
        {"metric": "f1", "form": "sparse"},
        {"metric": {"each": {"0": "f1", "1": "f1"}}},
        {"metric": ["f1", "mcc"]},
        {"metric": 3},
        {"metric": "f1", "at_zero": "x"},
        {"metric": "f1", "clusters": True, "time": True},
        {"metric": {"name": "cost", "cost": [[0, 1], [1, 0], [2, 2]]}},
        {"metric": "f1", "aware": False},
        {"metric": {"sklearn": "roc_auc_score"}},
        {"metric": {"sklearn": "log_loss"}},
        {"metric": "f1", "solver": "sweep", "bounds": "recall >= 0.5"},
        {"metric": "f1", "form": "tensor", "time": True, "clusters": True},
    ]
    for at, options in enumerate(binary):
        yield _world("binary", 1320 + at % 7, rows=90), "optimize", options
    words: list[Call] = [
        {"metric": "f1"},
        {"metric": "f1", "positive": "wasp"},
        {"metric": "quadratic_kappa"},
        {"metric": "ordinal"},
        {"metric": "recall[wasp]"},
        {"metric": "macro_f1", "bounds": "recall[wasp] >= 0.5"},
        {"metric": "macro_f1", "abstain": 0.2},
        {"metric": "macro_f1", "solver": "closed_form"},
        {"metric": "macro_f1", "solver": "sweep"},
        {"metric": "precision"},
        {"metric": "accuracy", "prior": [0.5, 0.5]},
        {"metric": {"name": "cost", "cost": COSTS[2]}},
        {"metric": {"name": "weighted_accuracy", "class_weight": [1, 2]}},
        {"metric": "accuracy", "abstain": 0.2, "abstain_label": "ant"},
        {"metric": "min_recall", "bounds": "g_mean <= 0.5"},
    ]
    for at, options in enumerate(words):
        yield _world("multiclass", 1330 + at % 5, rows=90, labels="words"), "optimize", options
    several: list[Call] = [
        {"metric": "macro_f1"},
        {"metric": "f1", "average": "macro"},
        {"metric": "quadratic_kappa"},
        {"metric": ["f1", "mcc"]},
        {"metric": {"each": {"0": "accuracy"}}},
        {"metric": "f1_samples"},
        {"metric": "accuracy", "row_costs": "wrong"},
        {"metric": "cost", "row_costs": "wrong"},
        {"metric": {"each": {"0": "accuracy", "1": "f1", "9": "f1"}}},
        {"metric": "accuracy", "average": "macro", "output_weights": [1, 2]},
    ]
    for at, options in enumerate(several):
        yield _world("mixed", 1340 + at % 3, rows=90), "optimize", options
    for at, options in enumerate(
        [
            {"metric": "f1_macro", "average": "micro"},
            {"metric": "accuracy", "average": "instance", "bounds": "recall >= 0.5"},
            {"metric": "subset_accuracy"},
        ]
    ):
        yield _world("multilabel", 1345 + at, rows=90), "optimize", options
    judged: list[Call] = [
        {"rule": {"thresholds": 0.3}, "metrics": ["nonsense"]},
        {"rule": {"thresholds": 0.3}, "metrics": []},
        {"rule": {"thresholds": 1.3}, "metrics": ["f1"]},
        {"rule": {"thresholds": "a"}, "metrics": ["f1"]},
        {"rule": {"weights": [1, -2]}, "metrics": ["f1"]},
        {"rule": {"weights": [1, 2, 3]}, "metrics": ["f1"]},
        {"rule": {"cuts": [0.5, 0.2]}, "metrics": ["f1"]},
        {"rule": {"thresholds": 0.3}, "metrics": ["f1"], "average": "mean"},
        {"rule": {"thresholds": 0.3}, "metrics": ["accuracy"], "abstain": 0.2},
    ]
    for at, options in enumerate(judged):
        yield _world("binary", 1350 + at, rows=90), "evaluate", options
    frontier: list[Call] = [
        {"metric": "recall", "against": "nonsense"},
        {"metric": "recall", "against": "precision", "points": 1},
        {"metric": "recall", "against": "abstained"},
        {"metric": "recall", "against": "mcc"},
    ]
    for at, options in enumerate(frontier):
        yield _world("binary", 1360 + at, rows=90), "trade_off", options
    estimators: list[Call] = [
        {"metric": "nonsense"},
        {"metric": "f1", "folds": 1},
        {"metric": "f1", "bounds": "recal >= 0.5"},
        {"metric": "f1", "abstain": 0.2},
        {"metric": "f1[7]"},
        {"metric": "cost"},
        {"metric": "f1", "sensitive": ["sex"], "clusters": True},
    ]
    for at, options in enumerate(estimators):
        yield _world("binary", 1365 + at, rows=90), "estimator", {"estimator": "optimal", "folds": 3, **options}


def _theory() -> Made:
    for at, metric in enumerate(["accuracy", "min_recall", "kappa", "g_mean"]):
        yield (
            _world("multiclass", 1380 + at, rows=60, grid=16),
            "theory",
            {"metric": metric, "rule": {"weights": [1, 2, 3]}},
        )


KINDS = {
    "plain": _plain,
    "metric": _metrics_by_object,
    "solver": _solvers,
    "counted": _counted,
    "recorded": _recorded,
    "constrained": _constrained,
    "trade_off": _trade_offs,
    "grouped": _grouped,
    "abstaining": _abstaining,
    "row_costs": _row_costs,
    "per_output": _per_output,
    "table": _tables,
    "dask": _dask,
    "container": _containers,
    "evaluated": _evaluated,
    "summary": _summaries,
    "export": _exports,
    "estimator": _estimators,
    "command": _command_line,
    "refused": _refused,
    "theory": _theory,
}
